//! `code_block`: code without a file; its language and what it is for at the right.

use super::{
    Leaf, Look, Sheet,
    code::{Code, Gutter, grow as grow_code},
    heading::{Facts, Weight, first_line, heading, sign},
};
use crate::{
    protocol::{Document, Purpose, document::CodeBlock},
    text::{Clean, Role, Row, Span, figure},
};

pub(super) fn grow(block: &CodeBlock<'_>, document: &Document, look: &Look<'_>, sheet: &mut Sheet) -> Option<usize> {
    let code = Code {
        glyph: glyph(),
        head: head(block, document, &[], Facts::default(), look),
        numbers: None,
        language: block.language,
        content: block.content,
        gutter: Gutter::Plain,
    };
    grow_code(code, document, look, sheet)
}

pub(super) fn folded(block: &CodeBlock<'_>, document: &Document, look: &Look<'_>) -> Leaf {
    let mut facts = Facts::default();
    facts.word(
        Weight::Light,
        figure::count(block.content.lines().count(), "line", "lines"),
        Role::Dim,
    );
    let title = [Span::new(first_line(block.content), Role::Text)];
    Leaf {
        glyph: glyph(),
        rows: vec![head(block, document, &title, facts, look)],
        is_line: true,
    }
}

pub(super) fn summary(block: &CodeBlock<'_>) -> Clean {
    let language = if block.language.is_empty() {
        "code"
    } else {
        block.language
    };
    Clean::line(&format!("{language}  {}", first_line(block.content)))
}

fn glyph() -> Span {
    sign("»", Role::Dim)
}

fn head(block: &CodeBlock<'_>, document: &Document, title: &[Span], mut facts: Facts, look: &Look<'_>) -> Row {
    if document.is_incomplete() {
        facts.word(Weight::Heavy, "broken off", Role::Error);
    }
    facts.word(Weight::Medium, block.language, Role::Faint);
    let purpose = match &block.purpose {
        Purpose::NewCode => Clean::literal("new"),
        Purpose::Example => Clean::literal("example"),
        Purpose::Suggestion => Clean::literal("suggestion"),
        Purpose::Other(word) => Clean::line(&word.replace('_', " ")),
    };
    facts.word(Weight::Light, purpose, Role::Faint);
    heading("code", title, facts, look.width)
}
