//! `text`: Markdown, or plain words where the writer says so.

use super::{
    Leaf, Look, Sheet,
    heading::{Facts, Weight, first_line, line},
    seed,
};
use crate::{
    protocol::{Document, TextFormat, document::Text},
    text::{Clean, Role, Span, figure, markdown, markdown::Flow, wrap::wrap},
};

pub(super) fn grow(text: &Text<'_>, document: &Document, look: &Look<'_>, sheet: &mut Sheet) -> Option<usize> {
    let signed = sheet.sign(Span::default(), false);
    let first = match text.format {
        TextFormat::Markdown | TextFormat::Other(_) => {
            let flow = sheet.memo.flow.get_or_insert_with(|| Flow::new(seed(document, look)));
            let is_closed = !document.is_open();
            flow.update(text.content, is_closed, look.width, look.colours, &mut sheet.rows)
        }
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

pub(super) fn summary(text: &Text<'_>) -> Clean {
    match text.format {
        TextFormat::Markdown | TextFormat::Other(_) => markdown::summary(text.content),
        TextFormat::Plain => first_line(text.content),
    }
}
