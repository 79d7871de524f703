//! The goals of motions in a draft, and the ranges of text objects.

use super::Span;
use crate::tui::editor::draft::{Class, Draft, TextPosition};

pub(super) fn to(draft: &Draft, goal: TextPosition, inclusive: bool) -> Span {
    let at = draft.caret();
    let range = if goal < at {
        goal..at
    } else if inclusive {
        at..draft.after(goal)
    } else {
        at..goal
    };
    Span { range, lines: false }
}

pub(super) fn inclusive(draft: &Draft, goal: TextPosition) -> Span {
    let at = draft.caret();
    let range = if goal < at {
        goal..draft.after(at)
    } else {
        at..draft.after(goal)
    };
    Span { range, lines: false }
}

/// From the caret's line to that of `goal`.
pub(super) fn lines(draft: &Draft, goal: TextPosition) -> Span {
    let at = draft.caret();
    Span {
        range: at.min(goal)..at.max(goal),
        lines: true,
    }
}

/// The first place that is not blank in the line with that number, counted from 1, or in the last one.
pub(super) fn line_number(draft: &Draft, number: usize) -> TextPosition {
    let row = (number - 1).min(draft.end().row);
    draft.line_text(TextPosition { row, byte: 0 })
}

fn class_of(draft: &Draft, at: TextPosition, big: bool) -> Class {
    match draft.class_at(at) {
        Class::Sign if big => Class::Word,
        class => class,
    }
}

pub(super) fn next_word(draft: &Draft, at: TextPosition, big: bool) -> TextPosition {
    let end = draft.end();
    let class = class_of(draft, at, big);
    let mut at = at;
    while at < end && class != Class::Blank && class_of(draft, at, big) == class {
        at = draft.after(at);
    }
    while at < end && class_of(draft, at, big) == Class::Blank {
        at = draft.after(at);
    }
    at
}

/// The end of the word that contains `at`.
pub(super) fn word_end(draft: &Draft, at: TextPosition, big: bool) -> TextPosition {
    let class = class_of(draft, at, big);
    let mut at = at;
    while at < draft.end() && class_of(draft, at, big) == class {
        at = draft.after(at);
    }
    at
}

/// The last letter of the word that ends next.
pub(super) fn last_of_word(draft: &Draft, at: TextPosition, big: bool) -> TextPosition {
    let mut at = draft.after(at);
    while at < draft.end() && class_of(draft, at, big) == Class::Blank {
        at = draft.after(at);
    }
    if at >= draft.end() {
        return draft.before(draft.end());
    }
    draft.before(word_end(draft, at, big))
}

pub(super) fn word_start(draft: &Draft, at: TextPosition, big: bool) -> TextPosition {
    let start = TextPosition::default();
    let mut at = at;
    while at > start && class_of(draft, draft.before(at), big) == Class::Blank {
        at = draft.before(at);
    }
    let class = class_of(draft, draft.before(at), big);
    while at > start && class_of(draft, draft.before(at), big) == class {
        at = draft.before(at);
    }
    at
}

/// The last letter of the word before.
pub(super) fn end_before(draft: &Draft, at: TextPosition, big: bool) -> TextPosition {
    let start = TextPosition::default();
    let class = class_of(draft, at, big);
    let mut at = at;
    while at > start && class != Class::Blank && class_of(draft, at, big) == class {
        at = draft.before(at);
    }
    while at > start && class_of(draft, at, big) == Class::Blank {
        at = draft.before(at);
    }
    at
}

pub(super) fn find(draft: &Draft, kind: char, wanted: char, times: usize, again: bool) -> Option<TextPosition> {
    let at = draft.caret();
    let (start, end) = (at.line_start(), draft.line_end(at));
    let mut buffer = [0; 4];
    let wanted: &str = wanted.encode_utf8(&mut buffer);
    let forward = kind.is_lowercase();
    let mut place = at;
    // Said again, `t` does not stay where it is.
    if again && kind == 't' {
        place = draft.after(place).min(end);
    }
    if again && kind == 'T' {
        place = draft.before(place).max(start);
    }
    for _ in 0..times {
        place = if forward {
            let from = draft.after(place).min(end);
            from.right(draft.slice(from..end).find(wanted)?)
        } else {
            start.right(draft.slice(start..place).rfind(wanted)?)
        };
    }
    Some(match kind {
        't' => draft.before(place),
        'T' => draft.after(place),
        _ => place,
    })
}

fn is_blank_line(draft: &Draft, row: usize) -> bool {
    draft.line(row).trim().is_empty()
}

pub(super) fn paragraph(draft: &Draft, at: TextPosition, forward: bool) -> TextPosition {
    let mut line = at.line_start();
    let mut was_text = !is_blank_line(draft, line.row);
    while let Some(next) = if forward {
        draft.line_after(line)
    } else {
        line.line_before()
    } {
        line = next;
        let is_blank = is_blank_line(draft, line.row);
        if is_blank && was_text {
            return line;
        }
        was_text |= !is_blank;
    }
    if forward { draft.end() } else { TextPosition::default() }
}

/// The characters from a place on.
fn characters(draft: &Draft, from: TextPosition) -> impl Iterator<Item = (TextPosition, char)> {
    let lines = draft.lines().iter().enumerate().skip(from.row);
    let all = lines.flat_map(|(row, line)| {
        line.char_indices()
            .map(move |(byte, it)| (TextPosition { row, byte }, it))
    });
    all.skip_while(move |it| it.0 < from)
}

/// The characters before a place, the last one first.
fn characters_before(draft: &Draft, to: TextPosition) -> impl Iterator<Item = (TextPosition, char)> {
    let lines = draft.lines().iter().enumerate().take(to.row + 1).rev();
    let all = lines.flat_map(|(row, line)| {
        let characters = line.char_indices().rev();
        characters.map(move |(byte, it)| (TextPosition { row, byte }, it))
    });
    all.skip_while(move |it| it.0 >= to)
}

/// The place where as many brackets are closed as opened; the first character is one of them.
fn balanced(
    mut characters: impl Iterator<Item = (TextPosition, char)>,
    open: char,
    close: char,
) -> Option<TextPosition> {
    let mut depth = 0usize;
    let found = characters.find(|(_, it)| {
        if *it == open {
            depth += 1;
        } else if *it == close {
            depth -= 1;
        }
        depth == 0
    });
    found.map(|it| it.0)
}

/// The bracket that belongs to the one at a place.
pub(super) fn partner(draft: &Draft, at: TextPosition) -> Option<TextPosition> {
    let (_, here) = characters(draft, at).next()?;
    let (other, forward) = match here {
        '(' => (')', true),
        '[' => (']', true),
        '{' => ('}', true),
        ')' => ('(', false),
        ']' => ('[', false),
        '}' => ('{', false),
        _ => return None,
    };
    if forward {
        balanced(characters(draft, at), here, other)
    } else {
        balanced(characters_before(draft, at.right(1)), here, other)
    }
}

/// The stretch of a text object around the caret.
pub(super) fn object(draft: &Draft, around: bool, name: char, times: usize) -> Option<Span> {
    let at = draft.caret();
    let span = |range| Some(Span { range, lines: false });
    // Quotes and brackets are one byte long.
    let between = |first: TextPosition, last: TextPosition| {
        span(if around {
            first..last.right(1)
        } else {
            first.right(1)..last
        })
    };
    match name {
        'w' | 'W' => {
            let big = name == 'W';
            let here = class_of(draft, at, big);
            let mut start = at;
            let line = at.line_start();
            while start > line && class_of(draft, draft.before(start), big) == here {
                start = draft.before(start);
            }
            let end_of_line = draft.line_end(at);
            let mut end = at;
            for _ in 0..times {
                end = word_end(draft, end, big).min(end_of_line);
            }
            if around {
                let more = draft.skip(end, |it| it == Class::Blank).min(end_of_line);
                if more > end {
                    end = more;
                } else {
                    start = draft.skip_back(start, |it| it == Class::Blank).max(line);
                }
            }
            span(start..end)
        }
        '"' | '\'' | '`' => {
            let text = draft.line(at.row);
            let places: Vec<usize> = text.match_indices(name).map(|it| it.0).collect();
            let pair = places.chunks_exact(2).find(|it| it[1] >= at.byte)?;
            between(at.line_start().right(pair[0]), at.line_start().right(pair[1]))
        }
        '(' | ')' | 'b' | '[' | ']' | '{' | '}' | 'B' | '<' | '>' => {
            let (open, close) = match name {
                '[' | ']' => ('[', ']'),
                '{' | '}' | 'B' => ('{', '}'),
                '<' | '>' => ('<', '>'),
                _ => ('(', ')'),
            };
            let here = characters(draft, at).next();
            let mut first = match here {
                Some((here, it)) if here == at && it == open => at.right(1),
                _ => at,
            };
            for _ in 0..times {
                let mut depth = 0usize;
                let found = characters_before(draft, first).find(|(_, it)| {
                    if *it == close {
                        depth += 1;
                    } else if *it == open {
                        if depth == 0 {
                            return true;
                        }
                        depth -= 1;
                    }
                    false
                });
                first = found?.0;
            }
            between(first, balanced(characters(draft, first), open, close)?)
        }
        'p' => {
            let last = draft.end().row;
            let blank = is_blank_line(draft, at.row);
            let mut first = at.row;
            while first > 0 && is_blank_line(draft, first - 1) == blank {
                first -= 1;
            }
            let grow = |mut row: usize, blank: bool| {
                while row < last && is_blank_line(draft, row + 1) == blank {
                    row += 1;
                }
                row
            };
            let mut row = grow(at.row, blank);
            if around {
                row = grow(row, !blank);
            }
            let start = TextPosition { row: first, byte: 0 };
            let end = draft.line_end(TextPosition { row, byte: 0 });
            Some(Span {
                range: start..end,
                lines: true,
            })
        }
        _ => None,
    }
}
