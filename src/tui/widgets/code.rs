//! Code under a heading, with or without line numbers, laid out line by line as it grows; colours follow when they are
//! ready.

use super::{
    DocumentState, RenderContext,
    heading::{gap, sign},
    seed,
};
use crate::{
    protocol::Document,
    text::{
        Background, CodeLine, Role, Sanitized, Span, StyledLine,
        width::{pad_start, part},
        wrap::wrap_code,
    },
};

/// Columns of a line number at least, so that most files have their code in one column.
const NUMBER: usize = 3;
/// Columns between the number and the code: a blank, the sign of a change, a blank.
const SIGN: usize = 3;
/// Code that has no numbers stands as far right as in Markdown.
const INDENT: usize = 2;

/// A growing piece of code.
pub(super) struct Code<'a> {
    pub glyph: Span,
    pub head: StyledLine,
    /// The number of the first line and the greatest that is to be expected.
    pub numbers: Option<(u64, u64)>,
    pub language: &'a str,
    pub content: &'a str,
    pub gutter: Gutter,
}

/// The gutter of a line of code.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Gutter {
    #[default]
    Plain,
    Added,
    Removed,
}

impl Gutter {
    pub const fn ground(self) -> Background {
        match self {
            Self::Plain => Background::Plain,
            Self::Added => Background::Added,
            Self::Removed => Background::Removed,
        }
    }

    pub const fn word_ground(self) -> Background {
        match self {
            Self::Plain => Background::Plain,
            Self::Added => Background::AddedWord,
            Self::Removed => Background::RemovedWord,
        }
    }
}

pub(super) fn grow(
    code: Code<'_>,
    document: &Document,
    look: &RenderContext<'_>,
    state: &mut DocumentState,
) -> Option<usize> {
    let signed = state.sign(code.glyph, false);
    let headed = state.set_head(vec![code.head]);
    let before = state.rows.len();
    let above = state.memo.head;
    let lines = &mut state.memo.lines;
    lines.take(code.content, document.is_open());
    let colours = look
        .colours
        .code(seed(document, look), code.language, lines.text(), !document.is_open());
    let digits = code.numbers.map_or(0, |(_, last)| digits(last));
    let changed = lines.lay(&mut state.rows, above, &colours, |at, line, colours| {
        let number = code.numbers.map(|(first, _)| first + at as u64);
        let pieces = pieces(line, colours, code.gutter.ground());
        code_line(&pieces, number, digits, code.gutter, look.width)
    });
    if signed || headed {
        Some(0)
    } else if changed == before && before == state.rows.len() {
        None
    } else {
        Some(changed)
    }
}

/// Columns that numbers up to `last` take.
pub(super) fn digits(last: u64) -> usize {
    (last.max(1).ilog10() as usize + 1).max(NUMBER)
}

/// One line of code as rows. `digits` 0: there are no numbers at all.
pub(super) fn code_line(
    pieces: &[Span],
    number: Option<u64>,
    digits: usize,
    gutter: Gutter,
    columns: usize,
) -> Vec<StyledLine> {
    let ground = gutter.ground();
    let (first, rest) = if digits == 0 && gutter == Gutter::Plain {
        (vec![gap(INDENT)], vec![gap(2 * INDENT)])
    } else {
        let text = number.map_or_else(String::new, |it| it.to_string());
        let number = Span::new(pad_start(&text, digits), Role::Faint).on(ground);
        let mark = match gutter {
            Gutter::Plain => sign("   ", Role::Text),
            Gutter::Added => sign(" + ", Role::Added).on(ground),
            Gutter::Removed => sign(" − ", Role::Removed).on(ground),
        };
        (vec![number, mark], vec![gap(digits + SIGN).on(ground)])
    };
    let mut rows = wrap_code(pieces, columns, &first, &rest);
    for row in &mut rows {
        row.background = ground;
        row.gutter = rest.len() as u8;
    }
    if let Some(row) = rows.first_mut() {
        row.gutter = first.len() as u8;
    }
    rows
}

/// Puts the sign of a problem into the gutter of a line with a number.
pub(super) fn flagged(mut rows: Vec<StyledLine>, flag: Option<(&'static str, Role)>) -> Vec<StyledLine> {
    let Some((flag, role)) = flag else { return rows };
    if let Some(row) = rows.first_mut()
        && let Some(mark) = row.spans.get_mut(1)
        && let Some(rest) = mark.text.strip_prefix(' ')
    {
        mark.text = Sanitized::new(rest);
        let ground = row.background;
        row.spans.insert(1, sign(flag.trim_end(), role).on(ground));
        row.gutter += 1;
    }
    rows
}

/// A line in its colours, or plain, on a ground.
pub(super) fn pieces(line: &str, colours: Option<&CodeLine>, ground: Background) -> Vec<Span> {
    match colours {
        Some(spans) => spans.iter().map(|it| it.clone().on(ground)).collect(),
        None => vec![Span::new(Sanitized::new(line), Role::Text).on(ground)],
    }
}

/// Paints the changed bytes of a line on the ground of changed words.
pub(super) fn mark_words(spans: Vec<Span>, words: &[std::ops::Range<usize>], gutter: Gutter) -> Vec<Span> {
    if words.is_empty() {
        return spans;
    }
    let mut marked = Vec::with_capacity(spans.len() + 2 * words.len());
    let mut start = 0;
    for span in spans {
        let end = start + span.text.len();
        let mut at = start;
        for word in words.iter().filter(|it| it.start < end && it.end > start) {
            let (from, to) = (word.start.max(start), word.end.min(end));
            if from > at {
                marked.push(part(&span, at - start..from - start));
            }
            marked.push(part(&span, from - start..to - start).on(gutter.word_ground()));
            at = to;
        }
        if at < end {
            marked.push(part(&span, at - start..end - start));
        }
        start = end;
    }
    marked
}
