//! What the user said: strong, behind a bar, with the time at the right.

use super::{
    Fold, Look, Sheet,
    heading::{Facts, Weight, first_line, gap, line, sign},
};
use crate::{
    protocol::Message,
    text::{Clean, Role, Row, Span, figure, width::spans_width, wrap::wrap},
};

/// More lines than this are a paste: its beginning stands for it.
const MOST_LINES: usize = 16;
const HEAD_LINES: usize = 8;
/// One line of a paste may be as long as a file.
const HEAD_BYTES: usize = 4000;

impl Sheet {
    /// A user's message. `time` is when it was said, as the user's clock shows it.
    pub fn message(message: &Message, time: &Clean, look: &Look<'_>) -> Self {
        let width = look.width.max(1);
        let mut facts = Facts::default();
        facts.word(Weight::Light, time.clone(), Role::Faint);
        let rows = match look.fold {
            Fold::Folded => vec![line(&[strong(&first_line(&message.content))], facts, width)],
            Fold::Usual => head(message.content.trim_end(), facts, width),
            Fold::Full => whole(message.content.trim_end(), facts, width),
        };
        Self {
            glyph: sign("▌", Role::User),
            rows,
            is_bar: true,
            ..Self::default()
        }
    }
}

fn strong(text: &Clean) -> Span {
    Span::new(text.clone(), Role::Strong).bold()
}

fn whole(text: &str, facts: Facts, width: usize) -> Vec<Row> {
    let spans = [strong(&Clean::new(text))];
    let wants = text
        .lines()
        .next()
        .map_or(0, |it| spans_width(&[strong(&first_line(it))]));
    let (facts, room) = facts.fit(wants, width);
    let mut rows = wrap(&spans, room, &[], &[]);
    if let Some(first) = rows.first_mut() {
        first.facts = facts;
    }
    rows
}

fn head(text: &str, facts: Facts, width: usize) -> Vec<Row> {
    let lines = text.lines().count();
    let shown: usize = if lines > MOST_LINES {
        text.split_inclusive('\n').take(HEAD_LINES).map(str::len).sum()
    } else {
        text.len()
    };
    let shown = if shown > HEAD_BYTES {
        floor(text, HEAD_BYTES)
    } else {
        shown
    };
    let (head, rest) = text.split_at(shown);
    let mut rows = whole(head.trim_end(), facts, width);
    if !rest.is_empty() {
        let more = match rest.lines().count() {
            1 => figure::count(rest.chars().count(), "sign", "signs"),
            lines => figure::count(lines, "line", "lines"),
        };
        rows.push(line(
            &[sign("…", Role::Dim), gap(1), Span::new(more, Role::Dim)],
            Facts::default(),
            width,
        ));
    }
    rows
}

/// The last border between characters that is not after `byte`.
fn floor(text: &str, byte: usize) -> usize {
    text.floor_char_boundary(byte)
}
