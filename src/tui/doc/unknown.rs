//! A kind that this program does not know: its name and what it holds, as JSON.

use super::{
    Leaf, Look,
    heading::{Facts, Weight, first_line, heading, sign},
    value::{Frame, json_rows, text_rows},
};
use crate::{
    protocol::document::Unknown,
    text::{Clean, Role, Span},
};

pub(super) fn leaf(unknown: &Unknown<'_>, look: &Look<'_>) -> Leaf {
    let mut rows = folded(unknown, look).rows;
    let frame = Frame {
        columns: look.width,
        indent: &[],
        role: Role::Dim,
    };
    if let Some(content) = unknown.content {
        rows.extend(text_rows(
            content,
            Frame {
                role: Role::Text,
                ..frame
            },
        ));
    }
    if !unknown.metadata.is_empty() {
        rows.extend(json_rows(unknown.metadata, frame));
    }
    Leaf {
        glyph: glyph(),
        rows,
        is_line: false,
    }
}

pub(super) fn folded(unknown: &Unknown<'_>, look: &Look<'_>) -> Leaf {
    let mut facts = Facts::default();
    facts.word(Weight::Heavy, "unknown kind", Role::Dim);
    let title = Span::new(first_line(unknown.content.unwrap_or_default()), Role::Text);
    Leaf {
        glyph: glyph(),
        rows: vec![heading(unknown.kind, &[title], facts, look.width)],
        is_line: true,
    }
}

pub(super) fn summary(unknown: &Unknown<'_>) -> Clean {
    Clean::line(format!("{}  {}", unknown.kind, first_line(unknown.content.unwrap_or_default())).trim_end())
}

fn glyph() -> Span {
    sign("·", Role::Dim)
}
