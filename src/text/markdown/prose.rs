//! Markdown as text without looks: its first line for the folded state, all of it for copying.

use std::iter;

use super::{
    tree::{self, Block, Definitions},
    upto,
};
use crate::text::{Role, Sanitized, Span, width::width};

/// A summary has at most this many characters, and is looked for in this many bytes.
const SUMMARY: usize = 400;
const SUMMARY_SOURCE: usize = 8 * 1024;

/// One line for the folded state: the first prose of `source` without its marks.
pub fn summary(source: &str) -> Sanitized {
    let mut end = source.len().min(SUMMARY_SOURCE);
    while !source.is_char_boundary(end) {
        end -= 1;
    }
    let tree = tree::read(upto(source, end), &Definitions::new());
    let blocks: Vec<&Block> = tree.blocks.iter().map(|(block, _)| block).collect();
    let text = prose(&blocks).unwrap_or_else(|| {
        let mut text = String::new();
        for (block, _) in &tree.blocks {
            blocks_text(std::slice::from_ref(block), "", &mut text);
        }
        text
    });
    let line = text
        .lines()
        .map(str::trim)
        .find(|it| !it.is_empty())
        .unwrap_or_default();
    Sanitized::from(line.chars().take(SUMMARY).collect::<String>())
}

fn prose(blocks: &[&Block]) -> Option<String> {
    blocks.iter().find_map(|block| match block {
        Block::Text(spans) | Block::Heading(spans) => {
            Some(spans.iter().map(|it| it.text.as_str()).collect::<String>()).filter(|it| !it.trim().is_empty())
        }
        Block::Quote(blocks) => prose(&blocks.iter().collect::<Vec<_>>()),
        Block::List(list) => list
            .items
            .iter()
            .find_map(|it| prose(&it.blocks.iter().collect::<Vec<_>>())),
        Block::Code(_) | Block::Html(_) | Block::Table(_) | Block::Rule => None,
    })
}

/// The text of `source` without marks, for copying.
#[cfg(test)]
pub fn plain(source: &str) -> String {
    let tree = tree::read(source, &Definitions::new());
    let mut text = String::new();
    for (index, (block, _)) in tree.blocks.iter().enumerate() {
        if index > 0 {
            text.push('\n');
        }
        blocks_text(std::slice::from_ref(block), "", &mut text);
    }
    text
}

/// Adds the plain text of blocks, for copying to places that do not understand Markdown.
fn blocks_text(blocks: &[Block], indent: &str, text: &mut String) {
    for (index, block) in blocks.iter().enumerate() {
        if index > 0 && !matches!(block, Block::List(_)) {
            text.push('\n');
        }
        block_text(block, indent, text);
    }
}

fn block_text(block: &Block, indent: &str, text: &mut String) {
    let mut lines = |spans: &[Span]| {
        let all: String = spans.iter().map(|it| it.text.as_str()).collect();
        push_lines(&all, indent, text);
    };
    match block {
        Block::Text(spans) | Block::Heading(spans) | Block::Html(spans) => lines(spans),
        Block::Code(code) => push_lines(&Sanitized::new(&code.source), indent, text),
        Block::Quote(blocks) => blocks_text(blocks, &format!("{indent}> "), text),
        Block::List(list) => {
            for (index, item) in list.items.iter().enumerate() {
                let marker = match (item.task, list.start) {
                    (Some(true), _) => "☑ ".to_owned(),
                    (Some(false), _) => "☐ ".to_owned(),
                    (None, Some(start)) => format!("{}. ", start.saturating_add(index as u64)),
                    (None, None) => "• ".to_owned(),
                };
                let hanging = format!("{indent}{}", " ".repeat(width(&marker)));
                let mut inner = String::new();
                blocks_text(&item.blocks, &hanging, &mut inner);
                text.push_str(indent);
                text.push_str(&marker);
                text.push_str(inner.strip_prefix(&hanging).unwrap_or(&inner));
                if inner.is_empty() {
                    text.push('\n');
                }
            }
        }
        Block::Table(table) => {
            for row in iter::once(&table.head).chain(&table.rows) {
                let cells = row
                    .iter()
                    .map(|cell| cell.iter().map(|it| it.text.as_str()).collect::<String>());
                lines(&[Span::new(cells.collect::<Vec<_>>().join("\t"), Role::Text)]);
            }
        }
        Block::Rule => push_lines("---", indent, text),
    }
}

fn push_lines(lines: &str, indent: &str, text: &mut String) {
    for line in lines.lines() {
        text.push_str(format!("{indent}{line}").trim_end());
        text.push('\n');
    }
}
