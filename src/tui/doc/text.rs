//! `text`: Markdown, or plain words where the writer says so.

use super::{
    Fold, Leaf, Look, Sheet,
    heading::{Facts, Weight, first_line, line},
};
use crate::{
    protocol::{Document, TextFormat, document::Text},
    text::{Clean, Role, Span, figure, wrap::wrap},
};

pub(super) fn grow(text: &Text<'_>, document: &Document, look: &Look<'_>, sheet: &mut Sheet) -> Option<usize> {
    let signed = sheet.sign(Span::default(), false);
    let first = match text.format {
        TextFormat::Markdown | TextFormat::Other(_) => plain(text, document, look, sheet),
        TextFormat::Plain => plain(text, document, look, sheet),
    };
    Some(if signed { 0 } else { first })
}

fn plain(text: &Text<'_>, document: &Document, look: &Look<'_>, sheet: &mut Sheet) -> usize {
    let lines = &mut sheet.memo.lines;
    lines.take(text.content, document.is_open());
    lines.lay(&mut sheet.rows, 0, &[], |_, line, _| {
        wrap(&[Span::new(Clean::new(line), Role::Text)], look.width, &[], &[])
    })
}

pub(super) fn folded(text: &Text<'_>, look: &Look<'_>) -> Leaf {
    let mut facts = Facts::default();
    let lines = text.content.trim().lines().count();
    if lines > 1 {
        facts.word(Weight::Light, figure::count(lines, "line", "lines"), Role::Faint);
    }
    Leaf {
        glyph: Span::default(),
        rows: vec![line(&[Span::new(summary(text), Role::Dim)], facts, look.width)],
        is_line: true,
    }
}

/// The first line without the signs that make it a heading, a quote or an item.
pub(super) fn summary(text: &Text<'_>) -> Clean {
    let line = first_line(text.content);
    let start = line.len() - line.trim_start_matches(['#', '>', '-', '*', ' ', '`']).len();
    match line.slice(start..line.len()) {
        it if it.is_empty() => line,
        it => it,
    }
}
