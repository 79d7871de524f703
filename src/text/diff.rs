//! Two texts line by line: what went, what came, and which words changed inside of a line.
//!
//! Results depend on the texts alone, never on a clock: difficult input gets a longer diff, not a slower one. Line ends
//! count (a line that lost its `\r` or its newline has changed) but are kept beside the text, which is as it was
//! written: clean it by [`DiffLine::pieces`] before it is shown.

use std::{collections::HashMap, fmt::Write as _, ops::Range};

use similar::{Algorithm, DiffOp, capture_diff_slices, group_diff_ops};

use super::Sanitized;

/// Lines shown around a change.
pub const CONTEXT_LINES: usize = 3;
/// Longer lines are not compared word by word.
const LONGEST_LINE_BYTES: usize = 2000;
/// Changed lines beyond these are not compared word by word.
const MOST_REFINED_LINES: usize = 4000;
/// Removed times added lines up to which the best pairs are searched; beyond, lines pair in order.
const MOST_PAIRINGS: usize = 1600;
/// Share of two lines that must be equal to mark the rest; below it, marks would tell nothing.
const LEAST_ALIKE: f64 = 0.5;

/// Kind of a line in a diff.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LineKind {
    Context,
    Removed,
    Added,
    /// Number of unchanged lines that are left out here.
    Skip(usize),
}

/// End of a line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum End {
    #[default]
    Newline,
    /// `\r\n`.
    Return,
    /// The last line of a text without a newline at its end.
    Missing,
}

impl End {
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Newline => "\n",
            Self::Return => "\r\n",
            Self::Missing => "",
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DiffLine {
    pub kind: LineKind,
    /// Line number in the old text; absent for added lines. Of a skip: its first line.
    pub old: Option<usize>,
    /// Line number in the new text; absent for removed lines. Of a skip: its first line.
    pub new: Option<usize>,
    /// Without its end.
    pub text: String,
    pub end: End,
    /// The bytes of `text` that differ from the line it is paired with; empty when the whole line counts as changed.
    pub words: Vec<Range<usize>>,
}

impl DiffLine {
    /// The text in one row's worth of clean pieces, and whether each one is a changed word. Tabs stay.
    pub fn pieces(&self) -> Vec<(Sanitized, bool)> {
        let mut pieces = Vec::new();
        let mut at = 0;
        let mut push = |range: Range<usize>, changed| {
            let text = self.text.get(range).unwrap_or_default();
            if !text.is_empty() {
                pieces.push((
                    Sanitized::from(text.replace(['\r', '\n', '\u{2028}', '\u{2029}'], " ")),
                    changed,
                ));
            }
        };
        for word in &self.words {
            push(at..word.start, false);
            push(word.clone(), true);
            at = word.end;
        }
        push(at..self.text.len(), false);
        pieces
    }
}

/// The lines of a diff, hunk after hunk.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Diff {
    /// Lines of all hunks; empty if the texts are equal. A [`LineKind::Skip`] replaces the lines between two hunks,
    /// before the first and after the last one.
    pub lines: Vec<DiffLine>,
    pub added: usize,
    pub removed: usize,
    /// The numbers of the texts' first lines.
    pub first: (usize, usize),
}

/// Number of unchanged lines to show.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ContextLines {
    /// Around each change.
    pub around: usize,
    /// Above the first change, where the others are shown already.
    pub above: usize,
}

impl ContextLines {
    /// The same number of lines everywhere.
    pub const fn new(lines: usize) -> Self {
        Self {
            around: lines,
            above: usize::MAX,
        }
    }
}

impl Default for ContextLines {
    fn default() -> Self {
        Self::new(CONTEXT_LINES)
    }
}

/// A replacement of some lines of a file, with the unchanged whole lines before and after it, as far as they are known.
#[derive(Clone, Copy, Debug)]
pub struct Excerpt<'a> {
    pub before: &'a str,
    pub old: &'a str,
    pub new: &'a str,
    pub after: &'a str,
    /// Number of the first line of `old`.
    pub first: usize,
}

impl Excerpt<'_> {
    /// Compares old and new. The lines around them are shown where the texts have too few unchanged lines of their own;
    /// what is not shown of them is not counted as left out.
    pub fn diff(&self, context: ContextLines) -> Diff {
        let mut old: Vec<&str> = self.old.split_inclusive('\n').collect();
        let mut new: Vec<&str> = self.new.split_inclusive('\n').collect();
        let mut ops = operations(&old, &new);
        let equal = |op: Option<&DiffOp>| match op {
            Some(DiffOp::Equal { len, .. }) => *len,
            _ => 0,
        };
        if ops.iter().all(|it| matches!(it, DiffOp::Equal { .. })) {
            return Diff::default();
        }
        let (lead, tail) = (equal(ops.first()), equal(ops.last()));
        let before: Vec<&str> = self.before.split_inclusive('\n').collect();
        let wanted = context.around.saturating_sub(lead).min(context.above);
        let before = before.get(before.len().saturating_sub(wanted)..).unwrap_or_default();
        let wanted = context.around.saturating_sub(tail);
        let after: Vec<&str> = self.after.split_inclusive('\n').take(wanted).collect();
        let at = before.len();
        ops = ops.into_iter().map(|it| moved(it, at)).collect();
        surround(&mut ops, at, after.len(), (at + old.len(), at + new.len()));
        old.splice(..0, before.iter().copied());
        new.splice(..0, before.iter().copied());
        old.extend(&after);
        new.extend(&after);
        let first = self.first.saturating_sub(at);
        compared(old, new, ops, (first, first), context.around)
    }
}

/// The same operation `by` lines further down.
fn moved(op: DiffOp, by: usize) -> DiffOp {
    match op {
        DiffOp::Equal {
            old_index,
            new_index,
            len,
        } => DiffOp::Equal {
            old_index: old_index + by,
            new_index: new_index + by,
            len,
        },
        DiffOp::Delete {
            old_index,
            old_len,
            new_index,
        } => DiffOp::Delete {
            old_index: old_index + by,
            old_len,
            new_index: new_index + by,
        },
        DiffOp::Insert {
            old_index,
            new_index,
            new_len,
        } => DiffOp::Insert {
            old_index: old_index + by,
            new_index: new_index + by,
            new_len,
        },
        DiffOp::Replace {
            old_index,
            old_len,
            new_index,
            new_len,
        } => DiffOp::Replace {
            old_index: old_index + by,
            old_len,
            new_index: new_index + by,
            new_len,
        },
    }
}

/// Adds equal lines before and after all operations; `end` is where the last one ends.
fn surround(ops: &mut Vec<DiffOp>, before: usize, after: usize, end: (usize, usize)) {
    match ops.first_mut() {
        _ if before == 0 => {}
        Some(DiffOp::Equal {
            old_index,
            new_index,
            len,
        }) => (*old_index, *new_index, *len) = (0, 0, *len + before),
        Some(_) | None => ops.insert(
            0,
            DiffOp::Equal {
                old_index: 0,
                new_index: 0,
                len: before,
            },
        ),
    }
    match ops.last_mut() {
        _ if after == 0 => {}
        Some(DiffOp::Equal { len, .. }) => *len += after,
        Some(_) | None => ops.push(DiffOp::Equal {
            old_index: end.0,
            new_index: end.1,
            len: after,
        }),
    }
}

/// Compares `old` and `new`, with `context` unchanged lines around each change.
///
/// `first_old` and `first_new` are the numbers of their first lines: 1 for whole files.
pub fn diff(old: &str, new: &str, first_old: usize, first_new: usize, context: usize) -> Diff {
    let old: Vec<&str> = old.split_inclusive('\n').collect();
    let new: Vec<&str> = new.split_inclusive('\n').collect();
    let ops = operations(&old, &new);
    compared(old, new, ops, (first_old, first_new), context)
}

fn operations(old: &[&str], new: &[&str]) -> Vec<DiffOp> {
    // Comparing numbers instead of lines: each line is hashed once.
    let mut numbers = HashMap::new();
    let mut number = |line| {
        let next = numbers.len();
        *numbers.entry(line).or_insert(next)
    };
    let old: Vec<usize> = old.iter().map(|&it| number(it)).collect();
    let new: Vec<usize> = new.iter().map(|&it| number(it)).collect();
    capture_diff_slices(Algorithm::Myers, &old, &new)
}

fn compared(old: Vec<&str>, new: Vec<&str>, ops: Vec<DiffOp>, first: (usize, usize), context: usize) -> Diff {
    let mut builder = Builder {
        old,
        new,
        refined: 0,
        diff: Diff {
            first,
            ..Diff::default()
        },
    };
    // Doubling it must not overflow.
    let context = context.min(usize::MAX / 4);
    let mut shown_old = 0;
    let mut shown_new = 0;
    for group in group_diff_ops(ops, context) {
        if group.iter().all(|it| matches!(it, DiffOp::Equal { .. })) {
            continue;
        }
        for op in group {
            builder.skip(shown_old, shown_new, op.old_range().start - shown_old);
            shown_old = op.old_range().end;
            shown_new = op.new_range().end;
            builder.op(op);
        }
    }
    if !builder.diff.lines.is_empty() {
        let rest = builder.old.len() - shown_old;
        builder.skip(shown_old, shown_new, rest);
    }
    builder.diff
}

struct Builder<'a> {
    old: Vec<&'a str>,
    new: Vec<&'a str>,
    /// Changed lines that were compared word by word.
    refined: usize,
    diff: Diff,
}

impl Builder<'_> {
    fn skip(&mut self, old: usize, new: usize, count: usize) {
        if count > 0 {
            self.line(LineKind::Skip(count), Some(old), Some(new), "\n", Vec::new());
        }
    }

    fn op(&mut self, op: DiffOp) {
        let (old, new) = (op.old_range(), op.new_range());
        if let DiffOp::Equal { .. } = op {
            for (i, j) in old.zip(new) {
                self.line(LineKind::Context, Some(i), Some(j), self.old[i], Vec::new());
            }
            return;
        }
        let mut old_words = vec![Vec::new(); old.len()];
        let mut new_words = vec![Vec::new(); new.len()];
        self.refined += old.len() + new.len();
        if self.refined <= MOST_REFINED_LINES {
            for (i, j) in pairs(&self.old[old.clone()], &self.new[new.clone()]) {
                let (before, _) = part(self.old[old.start + i]);
                let (after, _) = part(self.new[new.start + j]);
                if let Some((removed, added)) = words(before, after) {
                    old_words[i] = removed;
                    new_words[j] = added;
                }
            }
        }
        self.diff.removed += old.len();
        self.diff.added += new.len();
        for (i, words) in old.zip(old_words) {
            self.line(LineKind::Removed, Some(i), None, self.old[i], words);
        }
        for (j, words) in new.zip(new_words) {
            self.line(LineKind::Added, None, Some(j), self.new[j], words);
        }
    }

    fn line(&mut self, kind: LineKind, old: Option<usize>, new: Option<usize>, line: &str, words: Vec<Range<usize>>) {
        let (text, end) = part(line);
        let (first_old, first_new) = self.diff.first;
        self.diff.lines.push(DiffLine {
            kind,
            old: old.map(|it| it.saturating_add(first_old)),
            new: new.map(|it| it.saturating_add(first_new)),
            text: text.to_owned(),
            end,
            words,
        });
    }
}

/// A line and its end.
fn part(line: &str) -> (&str, End) {
    match line.strip_suffix('\n') {
        None => (line, End::Missing),
        Some(text) => match text.strip_suffix('\r') {
            None => (text, End::Newline),
            Some(text) => (text, End::Return),
        },
    }
}

/// Which removed line became which added one: pairs that are alike, in order, with the most in common overall.
fn pairs(old: &[&str], new: &[&str]) -> Vec<(usize, usize)> {
    if old.is_empty() || new.is_empty() {
        return Vec::new();
    }
    if old.len() == new.len() || old.len() * new.len() > MOST_PAIRINGS {
        return (0..old.len().min(new.len())).map(|it| (it, it)).collect();
    }
    let old: Vec<_> = old.iter().map(|it| Bag::of(it)).collect();
    let new: Vec<_> = new.iter().map(|it| Bag::of(it)).collect();
    // Of the lines from `i` and `j` on: the most that pairing can have in common.
    let mut best = vec![vec![0.0; new.len() + 1]; old.len() + 1];
    let mut alike = vec![vec![0.0; new.len()]; old.len()];
    for i in (0..old.len()).rev() {
        for j in (0..new.len()).rev() {
            alike[i][j] = old[i].alike(&new[j]);
            let paired = if alike[i][j] < LEAST_ALIKE {
                0.0
            } else {
                alike[i][j] + best[i + 1][j + 1]
            };
            best[i][j] = f64::max(paired, f64::max(best[i + 1][j], best[i][j + 1]));
        }
    }
    let (mut i, mut j) = (0, 0);
    let mut pairs = Vec::new();
    while i < old.len() && j < new.len() {
        if alike[i][j] >= LEAST_ALIKE && best[i][j] <= alike[i][j] + best[i + 1][j + 1] {
            pairs.push((i, j));
            (i, j) = (i + 1, j + 1);
        } else if best[i + 1][j] >= best[i][j + 1] {
            i += 1;
        } else {
            j += 1;
        }
    }
    pairs
}

/// The words of a line without their order: a cheap measure of likeness.
struct Bag<'a> {
    words: HashMap<&'a str, usize>,
    bytes: usize,
}

impl<'a> Bag<'a> {
    fn of(line: &'a str) -> Self {
        let mut words = HashMap::new();
        let mut bytes = 0;
        if line.len() <= LONGEST_LINE_BYTES {
            for word in tokens(line).into_iter().filter(|it| !it.trim().is_empty()) {
                *words.entry(word).or_insert(0) += 1;
                bytes += word.len();
            }
        }
        Self { words, bytes }
    }

    fn alike(&self, other: &Self) -> f64 {
        let shared = |(word, count): (&&str, &usize)| word.len() * other.words.get(word).map_or(0, |it| *it.min(count));
        let common: usize = self.words.iter().map(shared).sum();
        share(common, self.bytes + other.bytes)
    }
}

/// Returns the share of `common` in `total` bytes of both sides, from 0 to 1.
fn share(common: usize, total: usize) -> f64 {
    if total == 0 {
        0.0
    } else {
        2.0 * common as f64 / total as f64
    }
}

type Words = Vec<Range<usize>>;

/// Returns the changed bytes of two lines. `None` if they are too different.
fn words(old: &str, new: &str) -> Option<(Words, Words)> {
    if old.len() > LONGEST_LINE_BYTES || new.len() > LONGEST_LINE_BYTES {
        return None;
    }
    let (old_tokens, new_tokens) = (tokens(old), tokens(new));
    let (mut removed, mut added) = (Vec::new(), Vec::new());
    let (mut at_old, mut at_new) = (0, 0);
    let mut common = 0;
    let bytes = |tokens: &[&str]| tokens.iter().map(|it| it.len()).sum::<usize>();
    let ink = |tokens: &[&str]| tokens.iter().map(|it| it.trim().len()).sum::<usize>();
    for op in capture_diff_slices(Algorithm::Myers, &old_tokens, &new_tokens) {
        let before = &old_tokens[op.old_range()];
        let after = &new_tokens[op.new_range()];
        let (end_old, end_new) = (at_old + bytes(before), at_new + bytes(after));
        if let DiffOp::Equal { .. } = op {
            common += ink(before);
        } else {
            mark(&mut removed, at_old..end_old, old);
            mark(&mut added, at_new..end_new, new);
        }
        (at_old, at_new) = (end_old, end_new);
    }
    let total = ink(&old_tokens) + ink(&new_tokens);
    // Lines of blanks differ in nothing else.
    let alike = total == 0 || share(common, total) >= LEAST_ALIKE;
    alike.then_some((removed, added))
}

/// Adds a changed range; one that only blanks part from the last one is joined to it.
fn mark(ranges: &mut Vec<Range<usize>>, range: Range<usize>, line: &str) {
    if range.is_empty() {
        return;
    }
    match ranges.last_mut() {
        Some(last) if line.get(last.end..range.start).is_some_and(|it| it.trim().is_empty()) => last.end = range.end,
        _ => ranges.push(range),
    }
}

/// Words, runs of blanks, and every other character alone.
fn tokens(line: &str) -> Vec<&str> {
    #[derive(PartialEq)]
    enum Class {
        Word,
        Blank,
        Other,
    }
    let class = |c: char| match c {
        _ if c.is_alphanumeric() || c == '_' => Class::Word,
        _ if c.is_whitespace() => Class::Blank,
        _ => Class::Other,
    };
    let mut tokens = Vec::new();
    let mut start = 0;
    let mut before = Class::Other;
    for (at, c) in line.char_indices() {
        let now = class(c);
        // A mark that combines stays with its base.
        let combines = unicode_width::UnicodeWidthChar::width(c) == Some(0);
        if at > 0 && !combines && (now != before || now == Class::Other) {
            tokens.push(line.get(start..at).unwrap_or_default());
            start = at;
        }
        if at == 0 || !combines {
            before = now;
        }
    }
    if start < line.len() {
        tokens.push(line.get(start..).unwrap_or_default());
    }
    tokens
}

impl Diff {
    /// Returns the diff in unified form, for `git apply` and `patch`; `""` if nothing changed.
    ///
    /// A path is `None` if the file does not exist: before it is created, after it is deleted.
    pub fn patch(&self, old_path: Option<&str>, new_path: Option<&str>) -> String {
        if self.lines.is_empty() {
            return String::new();
        }
        let mut out = format!("--- {}\n+++ {}\n", name("a/", old_path), name("b/", new_path));
        // The last line seen on each side: what a side without lines in a hunk is placed behind.
        let mut last = (self.first.0.saturating_sub(1), self.first.1.saturating_sub(1));
        for hunk in self.lines.chunk_by(|a, b| !is_skip(a) && !is_skip(b)) {
            if let [
                DiffLine {
                    kind: LineKind::Skip(count),
                    old: Some(old),
                    new: Some(new),
                    ..
                },
            ] = hunk
            {
                last = (old + count - 1, new + count - 1);
                continue;
            }
            let old = Side::of(hunk.iter().filter_map(|it| it.old), last.0);
            let new = Side::of(hunk.iter().filter_map(|it| it.new), last.1);
            last = (old.last, new.last);
            // Writing to a string does not fail.
            let _ = writeln!(out, "@@ -{},{} +{},{} @@", old.start, old.count, new.start, new.count);
            for line in hunk {
                out.push(match line.kind {
                    LineKind::Removed => '-',
                    LineKind::Added => '+',
                    LineKind::Context | LineKind::Skip(_) => ' ',
                });
                out.push_str(&line.text);
                out.push_str(line.end.as_str());
                if line.end == End::Missing {
                    out.push_str("\n\\ No newline at end of file\n");
                }
            }
        }
        out
    }
}

fn is_skip(line: &DiffLine) -> bool {
    matches!(line.kind, LineKind::Skip(_))
}

/// Lines of one text that a hunk covers.
struct Side {
    start: usize,
    count: usize,
    last: usize,
}

impl Side {
    fn of(numbers: impl Iterator<Item = usize>, before: usize) -> Self {
        let numbers: Vec<usize> = numbers.collect();
        Self {
            start: numbers.first().copied().unwrap_or(before),
            count: numbers.len(),
            last: numbers.last().copied().unwrap_or(before),
        }
    }
}

/// Formats a path as patches do: quoted if it contains characters that would end it, with a tab after it if it has
/// blanks.
fn name(prefix: &str, path: Option<&str>) -> String {
    let Some(path) = path else {
        return "/dev/null".to_owned();
    };
    let path = path.trim_start_matches('/');
    if !path.contains(|c: char| c.is_control() || c == '"' || c == '\\') {
        let end = if path.contains(' ') { "\t" } else { "" };
        return format!("{prefix}{path}{end}");
    }
    let mut out = format!("\"{prefix}");
    for byte in path.bytes() {
        match byte {
            b'"' | b'\\' => {
                out.push('\\');
                out.push(byte.into());
            }
            b' '..=b'~' => out.push(byte.into()),
            _ => {
                let _ = write!(out, "\\{byte:03o}");
            }
        }
    }
    out.push('"');
    out
}

#[cfg(test)]
#[expect(clippy::format_collect, reason = "short texts, and read more easily")]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::process::Stdio;

    /// The diff as signs, numbers and texts; changed words in brackets.
    fn drawn(diff: &Diff) -> String {
        let mut out = String::new();
        for line in &diff.lines {
            let number = |it: Option<usize>| it.map_or(String::from("."), |it| it.to_string());
            let sign = match line.kind {
                LineKind::Context => ' ',
                LineKind::Removed => '-',
                LineKind::Added => '+',
                LineKind::Skip(count) => {
                    let _ = writeln!(out, "{} {} … {count}", number(line.old), number(line.new));
                    continue;
                }
            };
            let _ = write!(out, "{} {} {sign}", number(line.old), number(line.new));
            for (piece, changed) in line.pieces() {
                let _ = if changed {
                    write!(out, "[{piece}]")
                } else {
                    write!(out, "{piece}")
                };
            }
            out.push_str(match line.end {
                End::Newline => "\n",
                End::Return => "␍\n",
                End::Missing => "∅\n",
            });
        }
        out
    }

    fn check(old: &str, new: &str, context: usize, expected: &str) {
        let diff = diff(old, new, 1, 1, context);
        assert_eq!(drawn(&diff), expected, "{old:?} -> {new:?}");
    }

    #[test]
    fn a_change_in_an_excerpt_stands_among_the_lines_around_it() {
        let around = ContextLines::new(2);
        let check = |name: &str, excerpt: Excerpt<'_>, context: ContextLines, wants: &[&str]| {
            let diff = excerpt.diff(context);
            let lines = diff.lines.iter().map(|it| {
                let number = |it: Option<usize>| it.map_or_else(|| "-".to_owned(), |it| it.to_string());
                let sign = match it.kind {
                    LineKind::Context => " ".to_owned(),
                    LineKind::Removed => "-".to_owned(),
                    LineKind::Added => "+".to_owned(),
                    LineKind::Skip(count) => format!("skip {count}"),
                };
                format!("{} {} {sign}{}", number(it.old), number(it.new), it.text)
            });
            assert_eq!(lines.collect::<Vec<_>>(), wants, "{name}");
        };
        let excerpt = Excerpt {
            before: "6\n7\n8\n9\n",
            old: "ten\n",
            new: "10\n11\n",
            after: "12\n13\n14\n",
            first: 10,
        };
        let found = [
            "8 8  8",
            "9 9  9",
            "10 - -ten",
            "- 10 +10",
            "- 11 +11",
            "11 12  12",
            "12 13  13",
        ];
        check("in the middle", excerpt, around, &found);
        check(
            "none",
            excerpt,
            ContextLines::new(0),
            &["10 - -ten", "- 10 +10", "- 11 +11"],
        );
        check("one above", excerpt, ContextLines { above: 1, ..around }, &found[1..]);
        check(
            "all of them",
            excerpt,
            ContextLines::new(9),
            &[
                "6 6  6",
                "7 7  7",
                "8 8  8",
                "9 9  9",
                "10 - -ten",
                "- 10 +10",
                "- 11 +11",
                "11 12  12",
                "12 13  13",
                "13 14  14",
            ],
        );
        let edges = Excerpt {
            before: "",
            old: "a\n",
            new: "b",
            after: "",
            first: 1,
        };
        check("the whole file", edges, around, &["1 - -a", "- 1 +b"]);
        // Its own lines come first; those around it only fill up.
        let own = Excerpt {
            old: "9a\nten\n",
            new: "9a\n10\n",
            first: 10,
            ..excerpt
        };
        check(
            "a line of its own",
            own,
            around,
            &["9 9  9", "10 10  9a", "11 - -ten", "- 11 +10", "12 12  12", "13 13  13"],
        );
        let many = Excerpt {
            old: "a\nb\nc\nten\n",
            new: "a\nb\nc\n10\n",
            first: 10,
            ..excerpt
        };
        check(
            "lines of its own",
            many,
            around,
            &[
                "10 10 skip 1",
                "11 11  b",
                "12 12  c",
                "13 - -ten",
                "- 13 +10",
                "14 14  12",
                "15 15  13",
            ],
        );
        let twice = Excerpt {
            old: "a\n1\n2\n3\n4\n5\nb\n",
            new: "A\n1\n2\n3\n4\n5\nB\n",
            ..excerpt
        };
        check(
            "two changes",
            twice,
            ContextLines::new(1),
            &[
                "9 9  9",
                "10 - -a",
                "- 10 +A",
                "11 11  1",
                "12 12 skip 3",
                "15 15  5",
                "16 - -b",
                "- 16 +B",
                "17 17  12",
            ],
        );
        check(
            "no change",
            Excerpt {
                old: "a\n",
                new: "a\n",
                ..excerpt
            },
            around,
            &[],
        );
        // An inserted line that looks like the one before it stays where it was inserted.
        let like = Excerpt {
            before: "}\n",
            old: "",
            new: "}\n",
            after: "x\n",
            first: 2,
        };
        check("an insertion", like, around, &["1 1  }", "- 2 +}", "2 3  x"]);
    }

    #[test]
    fn a_patch_of_an_excerpt_has_the_lines_around_it() {
        let excerpt = Excerpt {
            before: "a\n",
            old: "b\n",
            new: "B\n",
            after: "c",
            first: 2,
        };
        assert_eq!(
            excerpt.diff(ContextLines::default()).patch(Some("x"), Some("x")),
            "--- a/x\n+++ b/x\n@@ -1,3 +1,3 @@\n a\n-b\n+B\n c\n\\ No newline at end of file\n"
        );
    }

    #[test]
    fn equal_texts_have_no_lines() {
        check("", "", 3, "");
        check("a\nb", "a\nb", 3, "");
    }

    #[test]
    fn a_changed_word_is_marked_on_both_sides() {
        check(
            "let timeout = Duration::from_secs(5);\n",
            "let timeout = Duration::from_secs(30);\n",
            3,
            "1 . -let timeout = Duration::from_secs([5]);\n. 1 +let timeout = Duration::from_secs([30]);\n",
        );
    }

    #[test]
    fn changed_words_parted_by_blanks_are_one_range() {
        check(
            "call(one two, third, fourth)\n",
            "call(uno dos, third, fourth)\n",
            3,
            "1 . -call([one two], third, fourth)\n. 1 +call([uno dos], third, fourth)\n",
        );
    }

    #[test]
    fn lines_that_have_little_in_common_are_not_refined() {
        check(
            "alpha beta\n",
            "gamma delta\n",
            3,
            "1 . -alpha beta\n. 1 +gamma delta\n",
        );
    }

    #[test]
    fn a_line_is_paired_with_the_one_it_became() {
        check(
            "fn run(a: u32) -> u32 {\n",
            "/// Runs.\n#[inline]\nfn run(a: u64) -> u32 {\n",
            3,
            "1 . -fn run(a: [u32]) -> u32 {\n. 1 +/// Runs.\n. 2 +#[inline]\n. 3 +fn run(a: [u64]) -> u32 {\n",
        );
    }

    #[test]
    fn an_inserted_line_has_its_context() {
        check(
            "a\nb\nc\nd\ne\nf\ng\nh\n",
            "a\nb\nc\nd\nX\ne\nf\ng\nh\n",
            2,
            "1 1 … 2\n3 3  c\n4 4  d\n. 5 +X\n5 6  e\n6 7  f\n7 8 … 2\n",
        );
    }

    #[test]
    fn two_changes_far_apart_are_two_hunks() {
        check(
            "1\n2\n3\n4\n5\n6\n7\n8\n9\n",
            "2\n3\n4\n5\n6\n7\n8\n9\nten\n",
            1,
            "1 . -1\n2 1  2\n3 2 … 6\n9 8  9\n. 9 +ten\n",
        );
    }

    #[test]
    fn line_ends_and_the_missing_newline_count() {
        check("a\r\nb\n", "a\nb\n", 0, "1 . -a␍\n. 1 +a\n2 2 … 1\n");
        check("a", "a\n", 3, "1 . -a∅\n. 1 +a\n");
        check("a\nb", "a", 3, "1 . -a\n2 . -b∅\n. 1 +a∅\n");
    }

    #[test]
    fn a_new_file_and_a_deleted_one() {
        check("", "a\nb\n", 3, ". 1 +a\n. 2 +b\n");
        check("a\nb\n", "", 3, "1 . -a\n2 . -b\n");
    }

    #[test]
    fn numbers_start_where_the_fragment_lies() {
        let diff = diff("a\nb\n", "a\nc\n", 40, 42, 3);
        assert_eq!(drawn(&diff), "40 42  a\n41 . -b\n. 43 +c\n");
        assert_eq!((diff.added, diff.removed), (1, 1));
    }

    #[test]
    fn pieces_are_clean() {
        let diff = diff("", "a\x1b[31mb\rc\u{202e}\td\n", 1, 1, 3);
        assert_eq!(diff.lines[0].pieces(), [(Sanitized::new("ab c\td"), false)]);
    }

    #[test]
    fn large_texts_are_compared_in_time() {
        let old: String = (0..100_000).map(|it| format!("line {it}\n")).collect();
        let other: String = (0..100_000).map(|it| format!("other {it}\n")).collect();
        let every_tenth: String = (0..100_000)
            .map(|it| {
                if it % 10 == 0 {
                    format!("changed {it}\n")
                } else {
                    format!("line {it}\n")
                }
            })
            .collect();
        let scattered: String = (0..20_000_u64).map(|it| format!("{}\n", it * 7919 % 97)).collect();
        let scattered_too: String = (0..20_000_u64).map(|it| format!("{}\n", it * 104_729 % 89)).collect();
        for (old, new) in [(&old, &other), (&old, &every_tenth), (&scattered, &scattered_too)] {
            let diff = diff(old, new, 1, 1, 3);
            assert!(diff.added > 0 && diff.removed > 0);
        }
        let long = "word ".repeat(100_000);
        let diff = diff(&long, &format!("{long}end"), 1, 1, 3);
        assert_eq!(diff.lines.len(), 2);
    }

    #[test]
    fn a_patch_says_where_and_what() {
        let patch = diff("a\nb\nc\n", "a\nX\nc", 1, 1, 1).patch(Some("src/a.rs"), Some("src/a.rs"));
        let expected =
            "--- a/src/a.rs\n+++ b/src/a.rs\n@@ -1,3 +1,3 @@\n a\n-b\n-c\n+X\n+c\n\\ No newline at end of file\n";
        assert_eq!(patch, expected);
        let created = diff("", "a\n", 1, 1, 3).patch(None, Some("new file"));
        assert_eq!(created, "--- /dev/null\n+++ b/new file\t\n@@ -0,0 +1,1 @@\n+a\n");
        assert_eq!(diff("a", "a", 1, 1, 3).patch(Some("a"), Some("a")), "");
    }

    /// Runs `git apply` or `patch` on `old` and returns the result. `None` without that program.
    fn applied(program: &str, arguments: &[&str], old: &str, patch: &str) -> Option<String> {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("file name");
        if !old.is_empty() {
            std::fs::write(&file, old).unwrap();
        }
        #[expect(clippy::disallowed_methods, reason = "the program under comparison is a real one")]
        let mut command = std::process::Command::new(program);
        let child = command
            .args(arguments)
            .current_dir(folder.path())
            .env("GIT_CEILING_DIRECTORIES", folder.path().parent()?)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn();
        let mut child = child.ok()?;
        std::io::Write::write_all(&mut child.stdin.take().unwrap(), patch.as_bytes()).unwrap();
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success(), "{program}: {output:?}\n{patch}");
        Some(std::fs::read_to_string(&file).unwrap_or_default())
    }

    #[test]
    fn real_programs_accept_the_patch() {
        let numbered: String = (1..60).map(|it| format!("line {it}\n")).collect();
        let changed = numbered
            .replace("line 7\n", "seven\n")
            .replace("line 30\n", "")
            .replace("line 50\n", "50\nmore\n");
        let cases = [
            (numbered.as_str(), changed.as_str()),
            ("a\nb\nc", "a\nc\n"),
            ("a\nb\n", "a\nb"),
            ("", "new\nfile"),
            ("old\nfile\n", ""),
            ("a\r\nb\r\n", "a\r\nB\r\n"),
            ("x\n", "before\nx\nafter\n"),
            ("", "-- \n++ \n@@ -1 +1 @@\n"),
        ];
        for (old, new) in cases {
            let name = "file name";
            let old_name = (!old.is_empty()).then_some(name);
            let new_name = (!new.is_empty()).then_some(name);
            for context in [0, 1, 3] {
                let patch = diff(old, new, 1, 1, context).patch(old_name, new_name);
                let zero: &[&str] = if context == 0 {
                    &["apply", "--unidiff-zero"]
                } else {
                    &["apply"]
                };
                for (program, arguments) in [("git", zero), ("patch", &["-p1", "--binary"])] {
                    if let Some(result) = applied(program, arguments, old, &patch) {
                        assert_eq!(result, new, "{program}, context {context}\n{patch}");
                    }
                }
            }
        }
    }

    fn text() -> impl Strategy<Value = String> {
        let line = prop_oneof![
            Just("a b c"),
            Just("a b"),
            Just("x"),
            Just(""),
            Just("a b c d"),
            Just("é ü"),
            Just("\t{")
        ];
        let lines = proptest::collection::vec((line, prop_oneof![4 => Just("\n"), 1 => Just("\r\n")]), 0..12);
        (lines, any::<bool>()).prop_map(|(lines, ends)| {
            let mut text: String = lines.iter().map(|(line, end)| format!("{line}{end}")).collect();
            if !ends && text.ends_with('\n') {
                text.pop();
            }
            text
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(256))]

        #[test]
        fn both_texts_can_be_read_from_the_diff(old in text(), new in text()) {
            let diff = diff(&old, &new, 1, 1, usize::MAX);
            let side = |gone: LineKind| -> String {
                let lines = diff.lines.iter().filter(|it| it.kind != gone);
                lines.map(|it| format!("{}{}", it.text, it.end.as_str())).collect()
            };
            if old == new {
                prop_assert!(diff.lines.is_empty());
            } else {
                prop_assert_eq!(side(LineKind::Added), old);
                prop_assert_eq!(side(LineKind::Removed), new);
            }
        }

        #[test]
        fn numbers_and_skips_cover_both_texts(old in text(), new in text(), context in 0usize..4) {
            let diff = diff(&old, &new, 1, 1, context);
            if diff.lines.is_empty() {
                prop_assert_eq!(&old, &new);
                return Ok(());
            }
            let (mut at_old, mut at_new) = (1, 1);
            for line in &diff.lines {
                prop_assert!(line.old.is_none_or(|it| it == at_old) && line.new.is_none_or(|it| it == at_new));
                let count = if let LineKind::Skip(count) = line.kind { count } else { 1 };
                at_old += line.old.map_or(0, |_| count);
                at_new += line.new.map_or(0, |_| count);
            }
            prop_assert_eq!(at_old - 1, old.split_inclusive('\n').count());
            prop_assert_eq!(at_new - 1, new.split_inclusive('\n').count());
        }

        #[test]
        fn words_lie_in_order_on_character_borders(old in any::<String>(), new in any::<String>()) {
            for line in diff(&old, &new, 1, 1, 3).lines {
                let mut at = 0;
                for word in line.words {
                    prop_assert!(word.start >= at && word.start < word.end);
                    prop_assert!(line.text.get(word.clone()).is_some());
                    at = word.end;
                }
            }
        }
    }
}
