//! The goals of motions in a draft, and the ranges of text objects.

use super::Span;
use crate::tui::editor::draft::{Class, Draft};

pub(super) fn to(draft: &Draft, goal: usize, inclusive: bool) -> Span {
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

pub(super) fn inclusive(draft: &Draft, goal: usize) -> Span {
    let at = draft.caret();
    let range = if goal < at {
        goal..draft.after(at)
    } else {
        at..draft.after(goal)
    };
    Span { range, lines: false }
}

/// From the caret's line to that of `goal`.
pub(super) fn lines(draft: &Draft, goal: usize) -> Span {
    let at = draft.caret();
    Span {
        range: at.min(goal)..at.max(goal),
        lines: true,
    }
}

pub(super) fn line_number(draft: &Draft, number: usize) -> usize {
    let mut at = 0;
    for _ in 1..number {
        let end = draft.line_end(at);
        if end == draft.text().len() {
            break;
        }
        at = end + 1;
    }
    draft.line_text(at)
}

fn class_of(draft: &Draft, at: usize, big: bool) -> Class {
    match draft.class_at(at) {
        Class::Sign if big => Class::Word,
        class => class,
    }
}

pub(super) fn next_word(draft: &Draft, at: usize, big: bool) -> usize {
    let end = draft.text().len();
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
pub(super) fn word_end(draft: &Draft, at: usize, big: bool) -> usize {
    let class = class_of(draft, at, big);
    let mut at = at;
    while at < draft.text().len() && class_of(draft, at, big) == class {
        at = draft.after(at);
    }
    at
}

/// The last letter of the word that ends next.
pub(super) fn last_of_word(draft: &Draft, at: usize, big: bool) -> usize {
    let mut at = draft.after(at);
    while at < draft.text().len() && class_of(draft, at, big) == Class::Blank {
        at = draft.after(at);
    }
    if at >= draft.text().len() {
        return draft.before(draft.text().len());
    }
    draft.before(word_end(draft, at, big))
}

pub(super) fn word_start(draft: &Draft, at: usize, big: bool) -> usize {
    let mut at = at;
    while at > 0 && class_of(draft, draft.before(at), big) == Class::Blank {
        at = draft.before(at);
    }
    if at == 0 {
        return 0;
    }
    let class = class_of(draft, draft.before(at), big);
    while at > 0 && class_of(draft, draft.before(at), big) == class {
        at = draft.before(at);
    }
    at
}

/// The last letter of the word before.
pub(super) fn end_before(draft: &Draft, at: usize, big: bool) -> usize {
    let class = class_of(draft, at, big);
    let mut at = at;
    while at > 0 && class != Class::Blank && class_of(draft, at, big) == class {
        at = draft.before(at);
    }
    while at > 0 && class_of(draft, at, big) == Class::Blank {
        at = draft.before(at);
    }
    at
}

pub(super) fn find(draft: &Draft, kind: char, wanted: char, times: usize, again: bool) -> Option<usize> {
    let at = draft.caret();
    let (start, end) = (draft.line_start(at), draft.line_end(at));
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
            from + draft.slice(from..end).find(wanted)?
        } else {
            start + draft.slice(start..place).rfind(wanted)?
        };
    }
    Some(match kind {
        't' => draft.before(place),
        'T' => draft.after(place),
        _ => place,
    })
}

fn is_blank_line(draft: &Draft, at: usize) -> bool {
    draft.slice(draft.line_start(at)..draft.line_end(at)).trim().is_empty()
}

pub(super) fn paragraph(draft: &Draft, at: usize, forward: bool) -> usize {
    let end = draft.text().len();
    let mut line = draft.line_start(at);
    let step = |line: usize| {
        if forward {
            let next = draft.line_end(line) + 1;
            (next <= end).then_some(next)
        } else {
            line.checked_sub(1).map(|it| draft.line_start(it))
        }
    };
    let mut was_text = !is_blank_line(draft, line);
    while let Some(next) = step(line) {
        line = next;
        let is_blank = is_blank_line(draft, line);
        if is_blank && was_text {
            return line;
        }
        was_text |= !is_blank;
    }
    if forward { end } else { 0 }
}

/// The bracket that belongs to the one at a place.
pub(super) fn partner(draft: &Draft, at: usize) -> Option<usize> {
    let text = draft.text();
    let here = text.get(at..)?.chars().next()?;
    let (other, forward) = match here {
        '(' => (')', true),
        '[' => (']', true),
        '{' => ('}', true),
        ')' => ('(', false),
        ']' => ('[', false),
        '}' => ('{', false),
        _ => return None,
    };
    let mut depth = 0usize;
    let mut count = |it: char| {
        if it == here {
            depth += 1;
        } else if it == other {
            depth -= 1;
        }
        depth == 0
    };
    if forward {
        text.get(at..)?
            .char_indices()
            .find(|(_, it)| count(*it))
            .map(|it| at + it.0)
    } else {
        text.get(..at + 1)?
            .char_indices()
            .rev()
            .find(|(_, it)| count(*it))
            .map(|it| it.0)
    }
}

/// The stretch of a text object around the caret.
pub(super) fn object(draft: &Draft, around: bool, name: char, times: usize) -> Option<Span> {
    let at = draft.caret();
    let span = |range| Some(Span { range, lines: false });
    match name {
        'w' | 'W' => {
            let big = name == 'W';
            let here = class_of(draft, at, big);
            let mut start = at;
            let line = draft.line_start(at);
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
            let (line, end) = (draft.line_start(at), draft.line_end(at));
            let text = draft.slice(line..end);
            let places: Vec<usize> = text.match_indices(name).map(|it| line + it.0).collect();
            let pair = places.chunks_exact(2).find(|it| it[1] >= at)?;
            let (first, last) = (pair[0], pair[1]);
            if around {
                span(first..last + 1)
            } else {
                span(first + 1..last)
            }
        }
        '(' | ')' | 'b' | '[' | ']' | '{' | '}' | 'B' | '<' | '>' => {
            let (open, close) = match name {
                '[' | ']' => ('[', ']'),
                '{' | '}' | 'B' => ('{', '}'),
                '<' | '>' => ('<', '>'),
                _ => ('(', ')'),
            };
            let text = draft.text();
            let mut from = at;
            if text.get(at..)?.starts_with(open) {
                from = at + 1;
            }
            let mut first = 0;
            for _ in 0..times {
                let mut depth = 0usize;
                let found = text.get(..from)?.char_indices().rev().find(|(_, it)| {
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
                from = first;
            }
            let mut depth = 0usize;
            let last = text.get(first..)?.char_indices().find(|(_, it)| {
                if *it == open {
                    depth += 1;
                } else if *it == close {
                    depth -= 1;
                }
                depth == 0
            })?;
            let last = first + last.0;
            if around {
                span(first..last + 1)
            } else {
                span(first + 1..last)
            }
        }
        'p' => {
            let blank = is_blank_line(draft, at);
            let mut start = draft.line_start(at);
            while start > 0 && is_blank_line(draft, start - 1) == blank {
                start = draft.line_start(start - 1);
            }
            let mut end = draft.line_end(at);
            let grow = |mut end: usize, blank: bool| {
                while end < draft.text().len() && is_blank_line(draft, end + 1) == blank {
                    end = draft.line_end(end + 1);
                }
                end
            };
            end = grow(end, blank);
            if around {
                end = grow(end, !blank);
            }
            Some(Span {
                range: start..end,
                lines: true,
            })
        }
        _ => None,
    }
}
