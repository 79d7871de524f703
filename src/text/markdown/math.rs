//! Formulas among the words: found by the parser, shown as Unicode where they are simple, else as they stand.
//!
//! The parser knows `$…$` and `$$…$$` only. `\(…\)` and `\[…\]`, which it would read as escaped brackets, are given to it as
//! dollar signs with a control character beside them: as many bytes, so that every place in the source stays where it is.

use std::{borrow::Cow, ops::Range};

use super::HIDDEN;
use crate::text::latex;

const ROUND: char = '\u{1}';
const SQUARE: char = '\u{2}';
/// A dollar sign that is one.
const DOLLAR: char = '\u{3}';

/// A source in which dollar signs replace escaped brackets.
pub(super) struct Marked<'a> {
    pub source: Cow<'a, str>,
    original: &'a str,
    /// Byte offsets of backslashes before brackets.
    at: Vec<usize>,
}

impl<'a> Marked<'a> {
    pub fn of(original: &'a str) -> Self {
        let mut marked = Self {
            source: Cow::Borrowed(original),
            original,
            at: Vec::new(),
        };
        let has_brackets = original.contains("\\(") || original.contains("\\[");
        let has_dollars = original.contains('$');
        if !(has_brackets || has_dollars) || original.contains([ROUND, SQUARE, DOLLAR]) {
            return marked;
        }
        let mut source = original.as_bytes().to_vec();
        if has_dollars {
            for at in dollars(original) {
                if let Some(sign) = source.get_mut(at) {
                    *sign = DOLLAR as u8;
                }
            }
        }
        if has_brackets {
            marked.at = brackets(original);
        }
        for &at in &marked.at {
            let Some(pair) = source.get_mut(at..at + 2) else {
                continue;
            };
            let with = match pair {
                [_, b'('] => [b'$', ROUND as u8],
                [_, b')'] => [ROUND as u8, b'$'],
                [_, b'['] => [b'$', SQUARE as u8],
                _ => [SQUARE as u8, b'$'],
            };
            pair.copy_from_slice(&with);
        }
        let Ok(source) = String::from_utf8(source) else {
            marked.at.clear();
            return marked;
        };
        marked.source = Cow::Owned(source);
        marked
    }

    /// Returns a part of the original source; without backslashes that only escape, unless it is code.
    pub fn text<'t>(&self, text: &'t str, range: &Range<usize>, is_code: bool) -> Cow<'t, str> {
        let unmarked = self.unmarked(text, range, is_code);
        if unmarked.contains(DOLLAR) {
            return Cow::Owned(plain(&unmarked));
        }
        unmarked
    }

    fn unmarked<'t>(&self, text: &'t str, range: &Range<usize>, is_code: bool) -> Cow<'t, str> {
        let first = self.at.partition_point(|it| it + 1 < range.start);
        let has_marks = self.at.get(first).is_some_and(|it| *it < range.end);
        if !has_marks || (!is_code && range.len() != text.len()) {
            if !has_marks {
                return Cow::Borrowed(text);
            }
            return Cow::Owned(text.replace([ROUND, SQUARE], ""));
        }
        if is_code {
            return Cow::Owned(with_brackets(text));
        }
        let original = self.original.get(range.clone()).unwrap_or_default();
        let shown = original
            .char_indices()
            .filter(|(at, _)| self.at.binary_search(&(range.start + at)).is_err());
        Cow::Owned(shown.map(|it| it.1).collect())
    }

    /// A formula as the lines that are shown of it.
    pub fn formula(&self, text: &str, range: &Range<usize>, is_display: bool) -> Vec<String> {
        let text = plain(text).replace(HIDDEN, "");
        let bracket = text.chars().next().filter(|it| matches!(*it, ROUND | SQUARE));
        let inner = bracket.and_then(|it| text.strip_prefix(it)?.strip_suffix(it));
        if let (Some(bracket), Some(inner)) = (bracket, inner.filter(|it| !it.contains([ROUND, SQUARE]))) {
            let (open, close) = if bracket == ROUND { ("(", ")") } else { ("[", "]") };
            if !latex::is_formula(inner.trim()) {
                return vec![format!("{open}{inner}{close}")];
            }
            let lines = latex::unicode(inner.trim()).filter(|it| it.len() == 1 || bracket == SQUARE);
            return lines.unwrap_or_else(|| vec![format!("\\{open}{inner}\\{close}")]);
        }
        let is_marked = self.at.iter().any(|it| range.contains(it));
        if is_marked || text.contains([ROUND, SQUARE]) {
            // It began at a dollar sign and ended at a bracket, or the other way round.
            let shown = self.original.get(range.clone()).unwrap_or_default().char_indices();
            let shown = shown.filter(|(at, it)| *it != HIDDEN && self.at.binary_search(&(range.start + at)).is_err());
            return vec![shown.map(|it| it.1).collect()];
        }
        let sign = if is_display { "$$" } else { "$" };
        let next = self.original.get(range.end..).and_then(|it| it.chars().next());
        // `$A/$B` is a path, and `$5 or 7$2` no formula either.
        let goes_on = next.is_some_and(|it| it.is_alphanumeric() || matches!(it, '{' | '(' | '_'));
        let lines = if goes_on || !(is_display || latex::is_formula(&text)) {
            None
        } else {
            latex::unicode(text.trim()).filter(|it| it.len() == 1 || is_display)
        };
        lines.unwrap_or_else(|| vec![format!("{sign}{text}{sign}")])
    }
}

/// Code of the marked source with its brackets.
fn with_brackets(text: &str) -> String {
    let mut code = String::with_capacity(text.len());
    let mut is_open = false;
    let mut letters = text.chars().peekable();
    while let Some(letter) = letters.next() {
        let is_round = letter == ROUND;
        if !is_round && letter != SQUARE {
            code.push(letter);
        } else if !is_open && code.ends_with('$') {
            code.pop();
            code.push_str(if is_round { "\\(" } else { "\\[" });
            is_open = true;
        } else {
            letters.next_if_eq(&'$');
            code.push_str(if is_round { "\\)" } else { "\\]" });
            is_open = false;
        }
    }
    code
}

/// A text of the marked source with its dollar signs.
pub(super) fn plain(text: &str) -> String {
    text.replace(DOLLAR, "$")
}

/// The word before a place in a line, read on as the place moves on: a word may be as long as the line.
#[derive(Default)]
struct Word {
    /// As far as the line was looked at.
    seen: usize,
    /// Byte at which the word begins.
    start: usize,
    is_address: bool,
}

impl Word {
    /// Returns true if the last word of `line` is or contains an address. `line` must begin with the line of the
    /// previous call.
    fn is_address(&mut self, line: &str) -> bool {
        let new = line.get(self.seen..).unwrap_or_default();
        if let Some((blank, letter)) = new.char_indices().rev().find(|it| it.1.is_whitespace()) {
            self.start = self.seen + blank + letter.len_utf8();
            self.is_address = false;
        }
        // What makes an address may have begun before.
        let from = (self.start..=self.seen.saturating_sub(2).max(self.start))
            .rev()
            .find(|it| line.is_char_boundary(*it));
        let new = line.get(from.unwrap_or(self.start)..).unwrap_or_default();
        self.is_address |= new.contains("://") || new.contains("](");
        self.seen = line.len();
        self.is_address
    }
}

/// Returns the offsets of dollar signs that begin and end no formula: prices, variables of a shell. The parser would
/// take the text between two of them for one, code and all. Decided line by line, as for brackets.
fn dollars(source: &str) -> Vec<usize> {
    let mut found = Vec::new();
    let mut start = 0;
    for line in source.split_inclusive('\n') {
        let words = line.trim();
        let is_display = words == "$$" || (words.len() > 4 && words.starts_with("$$") && words.ends_with("$$"));
        if !is_display {
            let mut at = 0;
            // What stands between the last blank and the dollar sign, looked at once.
            let mut word = Word::default();
            while let Some(next) = line.get(at..).and_then(|it| it.find('$')).map(|it| at + it) {
                // An escaped one is none already, and an address has to stay one.
                let before = line.get(..next).unwrap_or_default();
                if word.is_address(before) || before.ends_with('\\') {
                    at = next + 1;
                    continue;
                }
                match formula_end(line, next) {
                    Some(end) => at = end + 1,
                    None => {
                        found.push(start + next);
                        at = next + 1;
                    }
                }
            }
        }
        start += line.len();
    }
    found
}

/// Returns the end of the formula that begins at a dollar sign. `None` if none does.
fn formula_end(line: &str, from: usize) -> Option<usize> {
    let inner = line.get(from + 1..)?;
    let length = inner.find('$')?;
    let (inner, rest) = (inner.get(..length)?, inner.get(length + 1..)?);
    let next = rest.chars().next();
    let goes_on = next.is_some_and(|it| it.is_alphanumeric() || matches!(it, '{' | '(' | '_' | '$'));
    let is_tight = !inner.starts_with(char::is_whitespace) && !inner.ends_with([' ', '\t', '\\']) && !inner.is_empty();
    (is_tight && !goes_on && !inner.contains('`') && latex::is_formula(inner)).then_some(from + 1 + length)
}

/// Returns the offsets of the backslashes before brackets that form a pair: in one line, or around lines of their
/// own.
///
/// A formula must not depend on the text of other blocks, because blocks are read one by one while they stream; so
/// everything here is decided by lines that can only be of one block.
fn brackets(source: &str) -> Vec<usize> {
    let mut found = Vec::new();
    // The `\[` that is a line of its own, and the lines after it.
    let mut opened: Option<Opened<'_>> = None;
    let mut start = 0;
    for line in source.split_inclusive('\n') {
        let words = line.trim();
        let first = start + (line.len() - line.trim_start().len());
        let at = start;
        start += line.len();
        if let Some(mut open) = opened.take() {
            let is_of_another = open.is_indented && !is_indented(line);
            if words == "\\]" && !is_of_another {
                found.extend([open.at, first]);
                continue;
            }
            // What may begin another block ends it.
            let ends = is_of_another
                || words.is_empty()
                || words.contains('$')
                || words.contains("\\[")
                || words.starts_with(|it| "-+*#>|`~=<0123456789[".contains(it));
            if !ends {
                open.lines.push((line, at));
                opened = Some(open);
                continue;
            }
            open.give_up(&mut found);
        }
        if words == "\\[" {
            opened = Some(Opened {
                at: first,
                is_indented: is_indented(line),
                lines: Vec::new(),
            });
        } else {
            in_line(line, at, &mut found);
        }
    }
    if let Some(open) = opened {
        open.give_up(&mut found);
    }
    found
}

/// A `\[` that is a line of its own, with the lines after it and the bytes at which they begin.
struct Opened<'a> {
    at: usize,
    is_indented: bool,
    lines: Vec<(&'a str, usize)>,
}

impl Opened<'_> {
    /// Nothing closes it: its lines are text.
    fn give_up(self, found: &mut Vec<usize>) {
        for (line, start) in self.lines {
            in_line(line, start, found);
        }
    }
}

/// Returns true if a line may be indented code.
fn is_indented(line: &str) -> bool {
    line.starts_with("    ") || line.trim_start_matches(' ').starts_with('\t')
}

/// Pairs of brackets in one line, none inside another.
fn in_line(line: &str, start: usize, found: &mut Vec<usize>) {
    let mut open: Option<(usize, u8)> = None;
    let bytes = line.as_bytes();
    let mut at = 0;
    while let (Some(sign), Some(next)) = (bytes.get(at), bytes.get(at + 1)) {
        if *sign != b'\\' {
            at += 1;
            continue;
        }
        match (*next, open) {
            (b'(' | b'[', _) => open = Some((at, *next)),
            (b')', Some((from, b'('))) | (b']', Some((from, b'['))) => {
                found.extend([start + from, start + at]);
                open = None;
            }
            _ => {}
        }
        at += 2;
    }
}
