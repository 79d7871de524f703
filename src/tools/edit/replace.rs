//! One text of a file replaced by another: exactly, or with the small differences that models make when they copy.
//!
//! A ladder of ways to look, strictest first; the first that finds anything decides, and it must find one place only.
//! Nothing on it guesses: blanks are compared line by line and never across lines, a hit has as many lines as what was
//! looked for, and lines that are not to change keep the file's own characters. Matchers that look for likeness, or for
//! first and last lines, have damaged files in other programs; there is none here.

use std::{collections::HashSet, ops::Range};

use similar::DiffOp;

use super::{
    hunks::{compare, lines},
    text::{plain, rows},
};

/// Places that are named when there are several.
const MOST_PLACES: usize = 20;
/// No more are looked for, where one is too many.
const MOST_HITS: usize = 100;
/// Lines of the region that is shown when nothing was found.
const NEAR_LINES: usize = 40;

/// A replacement of a text by another.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Edit {
    pub old: String,
    pub new: String,
    /// Every place is meant.
    pub is_all: bool,
}

/// The way in which a text was matched, strictest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Rung {
    #[error("exactly")]
    Exact,
    /// With the file's line ends.
    #[error("with the file's line ends")]
    Ends,
    /// Without the line numbers that reading a file puts in front.
    #[error("without line numbers in front")]
    Numbers,
    /// Blanks at the ends of lines do not count.
    #[error("without regard to blanks at the ends of lines")]
    Trailing,
    /// Neither does indentation, if all lines differ by the same.
    #[error("with all lines indented more or less by the same")]
    Leading,
    /// Typographic quotes and dashes count as plain ones.
    #[error("with plain quotes and dashes for typographic ones")]
    Signs,
}

const LADDER: [Rung; 6] = [
    Rung::Exact,
    Rung::Ends,
    Rung::Numbers,
    Rung::Trailing,
    Rung::Leading,
    Rung::Signs,
];

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Replaced {
    pub text: String,
    /// Places.
    pub count: usize,
    pub rung: Rung,
}

/// Why nothing was replaced. Line numbers count from 1.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Mismatch {
    /// There is nothing to look for, and the file is not empty.
    Empty,
    /// Old and new are the same.
    Same,
    Absent {
        tried: Vec<Rung>,
        near: Option<Near>,
    },
    Many {
        count: usize,
        /// The first of them.
        lines: Vec<usize>,
        rung: Rung,
    },
}

/// The region of the file that has most in common with what was looked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Near {
    pub first: usize,
    pub lines: Vec<String>,
}

/// A place, and what comes there.
struct Hit {
    range: Range<usize>,
    new: String,
}

/// `text`, whose lines end in `\n`, after the edit.
pub fn replace(text: &str, edit: &Edit) -> Result<Replaced, Mismatch> {
    let (old, new) = (plain(&edit.old), plain(&edit.new));
    if old == new {
        return Err(Mismatch::Same);
    }
    if old.is_empty() {
        if text.is_empty() {
            return Ok(Replaced {
                text: new,
                count: 1,
                rung: Rung::Exact,
            });
        }
        return Err(Mismatch::Empty);
    }
    let mut tried = Vec::new();
    for rung in LADDER {
        let Some(hits) = look(text, edit, &old, &new, rung) else {
            continue;
        };
        tried.push(rung);
        if hits.is_empty() {
            continue;
        }
        if hits.len() > 1 && !edit.is_all {
            return Err(Mismatch::Many {
                count: hits.len(),
                lines: places(text, &hits),
                rung,
            });
        }
        let mut done = String::with_capacity(text.len());
        let mut at = 0;
        for hit in &hits {
            done.push_str(part(text, at..hit.range.start));
            done.push_str(&hit.new);
            at = hit.range.end;
        }
        done.push_str(part(text, at..text.len()));
        if done == text {
            return Err(Mismatch::Same);
        }
        return Ok(Replaced {
            text: done,
            count: hits.len(),
            rung,
        });
    }
    Err(Mismatch::Absent {
        tried,
        near: near(text, &old),
    })
}

/// The hits on one rung; `None` where the rung has no other text to look for than those above it.
fn look(text: &str, edit: &Edit, old: &str, new: &str, rung: Rung) -> Option<Vec<Hit>> {
    let exact = |old: &str, new: &str| {
        let at = found(text, old, edit.is_all, |_| true);
        let hit = |at: usize| Hit {
            range: at..at + old.len(),
            new: new.to_owned(),
        };
        at.into_iter().map(hit).collect()
    };
    match rung {
        Rung::Exact => Some(exact(&edit.old, new)),
        Rung::Ends => (edit.old != old).then(|| exact(old, new)),
        Rung::Numbers => {
            let old = unnumbered(old, true)?;
            let new = unnumbered(new, false).unwrap_or_else(|| new.to_owned());
            // Only numbers: there is nothing left to look for.
            (!old.trim().is_empty()).then(|| exact(&old, &new))
        }
        Rung::Trailing => Some(folded(text, old, new, edit.is_all, |it| it)),
        Rung::Leading => Some(indented(text, old, new, edit.is_all)),
        Rung::Signs => Some(folded(text, old, new, edit.is_all, plain_sign)),
    }
}

/// Offsets of `old` in `text` that `accept` takes: those that do not overlap if `is_all`, else at most the first.
/// Linear in both, whatever they repeat.
fn found(text: &str, old: &str, is_all: bool, mut accept: impl FnMut(usize) -> bool) -> Vec<usize> {
    let (text, old) = (text.as_bytes(), old.as_bytes());
    if old.is_empty() {
        return Vec::new();
    }
    // Knuth, Morris, Pratt: for each length, the longest head of `old` that ends what was matched, too.
    let mut shorter = vec![0; old.len()];
    let mut length = 0;
    for at in 1..old.len() {
        while length > 0 && old[at] != old[length] {
            length = shorter[length - 1];
        }
        if old[at] == old[length] {
            length += 1;
        }
        shorter[at] = length;
    }
    let mut found = Vec::new();
    let mut free = 0;
    length = 0;
    for (at, byte) in text.iter().enumerate() {
        while length > 0 && *byte != old[length] {
            length = shorter[length - 1];
        }
        if *byte == old[length] {
            length += 1;
        }
        if length < old.len() {
            continue;
        }
        length = shorter[length - 1];
        let start = at + 1 - old.len();
        if (is_all && start < free) || !accept(start) {
            continue;
        }
        free = at + 1;
        found.push(start);
        if !is_all && found.len() >= MOST_HITS {
            break;
        }
    }
    found
}

/// A text whose lines all begin with a number and a bar, without these; `None` if one does not. Where lines follow each
/// other their numbers do too.
fn unnumbered(text: &str, is_counted: bool) -> Option<String> {
    let mut last: Option<u64> = None;
    let mut bare = String::with_capacity(text.len());
    for line in lines(text) {
        let (number, rest) = line.split_once('|')?;
        let number: u64 = number.trim_start_matches(' ').parse().ok()?;
        if is_counted && last.is_some_and(|it| it.checked_add(1) != Some(number)) {
            return None;
        }
        last = Some(number);
        bare.push_str(rest);
    }
    last.map(|_| bare)
}

/// A text as it is compared: another one with as many lines, and in each line the same characters or their likes up to
/// where it ends.
struct View<'a> {
    text: String,
    /// The offset of each line here and in the file, with the line itself.
    lines: Vec<(usize, usize, &'a str)>,
}

impl<'a> View<'a> {
    fn new(text: &'a str, line: impl Fn(&'a str, &mut String)) -> Self {
        let mut view = Self {
            text: String::with_capacity(text.len()),
            lines: Vec::new(),
        };
        let mut at = 0;
        for row in text.split('\n') {
            view.lines.push((view.text.len(), at, row));
            line(row, &mut view.text);
            view.text.push('\n');
            at += row.len() + 1;
        }
        // The last piece has no end.
        view.text.pop();
        view
    }

    /// The line that a place is in.
    fn line(&self, at: usize) -> usize {
        self.lines.partition_point(|it| it.0 <= at).saturating_sub(1)
    }
}

/// Goes through a [`View`] and the text itself side by side.
struct Walk<'a> {
    view: &'a View<'a>,
    /// The line, and the offset in it here and there.
    line: usize,
    here: usize,
    there: usize,
}

impl Walk<'_> {
    /// The place in the text itself. At the end of a line it is behind all blanks there, if `is_end`. Quick where one
    /// place lies behind the other.
    fn to(&mut self, at: usize, is_end: bool) -> usize {
        let line = self.view.line(at);
        let (start, own, row) = self.view.lines[line];
        if line != self.line || start + self.here > at {
            (self.line, self.here, self.there) = (line, 0, 0);
        }
        let until = self
            .view
            .lines
            .get(line + 1)
            .map_or(self.view.text.len(), |it| it.0 - 1);
        if is_end && at == until && at > start {
            return own + row.len();
        }
        let mine = part(&self.view.text, start + self.here..at);
        let theirs = part(row, self.there..row.len());
        let count = mine.chars().count();
        self.here += mine.len();
        self.there += theirs.chars().take(count).map(char::len_utf8).sum::<usize>();
        own + self.there
    }
}

/// Hits where lines may differ in blanks at their ends and in what `fold` makes equal.
fn folded(text: &str, old: &str, new: &str, is_all: bool, fold: fn(char) -> char) -> Vec<Hit> {
    let line = |row: &str, into: &mut String| into.extend(row.trim_end().chars().map(fold));
    let view = View::new(text, line);
    // What is looked for may end inside of a line, with a blank that counts.
    let (body, last) = match old.rsplit_once('\n') {
        Some((body, last)) => (Some(body), last),
        None => (None, old),
    };
    let mut pattern = String::new();
    for row in body.into_iter().flat_map(|it| it.split('\n')) {
        line(row, &mut pattern);
        pattern.push('\n');
    }
    let tail = if last.trim().is_empty() { "" } else { last };
    pattern.extend(tail.chars().map(fold));
    let ends_bare = pattern.trim_end_matches([' ', '\t']).len();
    if pattern.trim().is_empty() {
        return Vec::new();
    }
    let mut at = found(&view.text, &pattern, is_all, |_| true);
    if at.is_empty() && ends_bare < pattern.len() {
        // Or at the end of one, where it does not.
        pattern.truncate(ends_bare);
        let is_end = |it: usize| matches!(view.text.as_bytes().get(it), None | Some(b'\n'));
        at = found(&view.text, &pattern, is_all, |it| is_end(it + pattern.len()));
    }
    let mut walk = Walk {
        view: &view,
        line: 0,
        here: 0,
        there: 0,
    };
    at.into_iter()
        .map(|at| {
            let range = walk.to(at, false)..walk.to(at + pattern.len(), true);
            let new = blended(old, new, part(text, range.clone()), fold);
            Hit { range, new }
        })
        .collect()
}

/// `new`, with the file's own characters where it does not differ from `old`. `stood` is what is in the file: as many
/// lines as `old` has.
fn blended(old: &str, new: &str, stood: &str, fold: fn(char) -> char) -> String {
    let pieces = |text: &'_ str| -> Vec<String> { text.split('\n').map(str::to_owned).collect() };
    let (before, mut after, own) = (pieces(old), pieces(new), pieces(stood));
    if before.len() != own.len() {
        return new.to_owned();
    }
    let (left, right): (Vec<&str>, Vec<&str>) = (
        before.iter().map(|it| it.trim_end()).collect(),
        after.iter().map(|it| it.trim_end()).collect(),
    );
    let ops = compare(&left, &right);
    for op in ops {
        let pairs = op.old_range().zip(op.new_range());
        match op {
            DiffOp::Equal { .. } => {
                for (i, j) in pairs {
                    own[i].clone_into(&mut after[j]);
                }
            }
            DiffOp::Replace { .. } if op.old_range().len() == op.new_range().len() => {
                for (i, j) in pairs {
                    after[j] = mended(&before[i], &after[j], &own[i], fold);
                }
            }
            DiffOp::Replace { .. } | DiffOp::Insert { .. } | DiffOp::Delete { .. } => {}
        }
    }
    after.join("\n")
}

/// A line that changed, with the file's own characters before and behind what changed in it.
fn mended(old: &str, new: &str, own: &str, fold: fn(char) -> char) -> String {
    let old_chars: Vec<char> = old.chars().collect();
    let new_chars: Vec<char> = new.chars().collect();
    let own: Vec<char> = own.chars().collect();
    let shortest = old_chars.len().min(new_chars.len()).min(own.len());
    // The characters stand for each other one by one, up to where blanks at the end differ.
    let like = |at: usize| old_chars[at] == new_chars[at] && fold(own[at]) == fold(old_chars[at]);
    let head = (0..shortest).take_while(|at| like(*at)).count();
    let from_end = |it: &[char], back: usize| it[it.len() - 1 - back];
    let tail = if old_chars.len() == own.len() {
        (0..shortest - head)
            .take_while(|back| from_end(&old_chars, *back) == from_end(&new_chars, *back))
            .count()
    } else {
        0
    };
    let middle = &new_chars[head..new_chars.len() - tail];
    own[..head]
        .iter()
        .chain(middle)
        .chain(&own[own.len() - tail..])
        .collect()
}

/// Hits of whole lines that are indented more, or less, by the same.
fn indented(text: &str, old: &str, new: &str, is_all: bool) -> Vec<Hit> {
    let view = View::new(text, |row, into| into.push_str(row.trim()));
    let has_end = old.ends_with('\n');
    let wanted = rows(old);
    let pattern = wanted.iter().map(|it| it.trim()).collect::<Vec<_>>().join("\n");
    if pattern.trim().is_empty() {
        return Vec::new();
    }
    let is_line = |at: usize| {
        let before = at.checked_sub(1).and_then(|it| view.text.as_bytes().get(it));
        let behind = view.text.as_bytes().get(at + pattern.len());
        matches!(before, None | Some(b'\n')) && matches!(behind, None | Some(b'\n'))
    };
    let moves = |at: usize| {
        let first = view.line(at);
        let stood = view.lines.get(first..first + wanted.len())?;
        let shift = shift(stood.iter().map(|it| it.2).zip(wanted.iter().copied()))?;
        Some((stood, moved(new, shift)?, moved_text(&wanted, shift)?))
    };
    let at = found(&view.text, &pattern, is_all, |it| is_line(it) && moves(it).is_some());
    let mut hits = Vec::new();
    for (stood, moved, was) in at.into_iter().filter_map(moves) {
        let (_, start, _) = stood[0];
        let (_, last, row) = stood[stood.len() - 1];
        let end = last + row.len();
        let (range, was, moved) = match (has_end, end < text.len()) {
            (true, true) => (start..end + 1, format!("{was}\n"), moved),
            // The last line has no end, and gets none.
            (true, false) => (start..end, was, moved.strip_suffix('\n').unwrap_or(&moved).to_owned()),
            (false, _) => (start..end, was, moved),
        };
        let new = blended(&was, &moved, part(text, range.clone()), |it| it);
        hits.push(Hit { range, new });
    }
    hits
}

/// By what lines of a file are indented more than those looked for: `(add, remove)`.
fn shift<'a>(pairs: impl Iterator<Item = (&'a str, &'a str)>) -> Option<(&'a str, &'a str)> {
    let mut shift = None;
    for (file, wanted) in pairs.filter(|it| !it.1.trim().is_empty()) {
        let (file, wanted) = (indent(file), indent(wanted));
        let this = match (file.strip_suffix(wanted), wanted.strip_suffix(file)) {
            (Some(add), _) => (add, ""),
            (None, Some(remove)) => ("", remove),
            (None, None) => return None,
        };
        if shift.is_some_and(|it| it != this) {
            return None;
        }
        shift = Some(this);
    }
    shift
}

fn moved(text: &str, (add, remove): (&str, &str)) -> Option<String> {
    let rows: Vec<&str> = text.split('\n').collect();
    moved_text(&rows, (add, remove))
}

fn moved_text(rows: &[&str], (add, remove): (&str, &str)) -> Option<String> {
    let row = |row: &&str| {
        if row.trim().is_empty() {
            return Some((*row).to_owned());
        }
        Some(format!("{add}{}", row.strip_prefix(remove)?))
    };
    let rows: Option<Vec<String>> = rows.iter().map(row).collect();
    rows.map(|it| it.join("\n"))
}

fn indent(line: &str) -> &str {
    line.split_at(line.len() - line.trim_start().len()).0
}

/// The plain sign for a typographic one; never more than one character.
fn plain_sign(c: char) -> char {
    match c {
        '‘' | '’' | '‚' | '‛' | '′' => '\'',
        '“' | '”' | '„' | '‟' | '″' => '"',
        '‐' | '‑' | '‒' | '–' | '—' | '―' | '−' => '-',
        '\u{a0}' | '\u{202f}' | '\u{2007}' => ' ',
        _ => c,
    }
}

fn part(text: &str, range: Range<usize>) -> &str {
    text.get(range).unwrap_or_default()
}

/// The lines that the first hits begin in.
fn places(text: &str, hits: &[Hit]) -> Vec<usize> {
    let mut places = Vec::new();
    let (mut at, mut line) = (0, 1);
    for hit in hits.iter().take(MOST_PLACES) {
        line += part(text, at..hit.range.start).matches('\n').count();
        at = hit.range.start;
        places.push(line);
    }
    places.dedup();
    places
}

/// The region with most words in common, if these are a third of those looked for.
fn near(text: &str, old: &str) -> Option<Near> {
    let wanted: HashSet<&str> = rows(old).into_iter().flat_map(words).collect();
    if wanted.is_empty() {
        return None;
    }
    let equal: HashSet<&str> = rows(old)
        .into_iter()
        .map(str::trim)
        .filter(|it| !it.is_empty())
        .collect();
    let file = rows(text);
    let length = rows(old).len().clamp(1, NEAR_LINES).min(file.len());
    let alike: Vec<usize> = file
        .iter()
        .map(|line| {
            let found: HashSet<&str> = words(line).filter(|it| wanted.contains(it)).collect();
            found.len() + usize::from(equal.contains(line.trim()))
        })
        .collect();
    let mut sum: usize = alike.iter().take(length).sum();
    let mut best = (sum, 0);
    for end in length..file.len() {
        sum = sum + alike[end] - alike[end - length];
        if sum > best.0 {
            best = (sum, end + 1 - length);
        }
    }
    if best.0 * 3 < wanted.len() {
        return None;
    }
    // A line around it, because models lose lines at the edges.
    let first = best.1.saturating_sub(1);
    let until = (best.1 + length + 1).min(file.len());
    Some(Near {
        first: first + 1,
        lines: file[first..until].iter().map(|it| (*it).to_owned()).collect(),
    })
}

fn words(line: &str) -> impl Iterator<Item = &str> {
    let is_word = |it: char| it.is_alphanumeric() || it == '_';
    // A line without end has no more to say.
    line.split(move |it| !is_word(it)).filter(|it| it.len() > 1).take(200)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn edit(old: &str, new: &str) -> Edit {
        Edit {
            old: old.to_owned(),
            new: new.to_owned(),
            is_all: false,
        }
    }

    #[track_caller]
    fn check(text: &str, old: &str, new: &str, rung: Rung, wants: &str) {
        let replaced = replace(text, &edit(old, new)).expect("a hit");
        assert_eq!((replaced.text.as_str(), replaced.rung), (wants, rung), "{old:?}");
    }

    #[track_caller]
    fn refused(text: &str, old: &str, new: &str) -> Mismatch {
        replace(text, &edit(old, new)).expect_err(old)
    }

    #[track_caller]
    fn absent(text: &str, old: &str, new: &str) {
        let found = refused(text, old, new);
        assert!(matches!(found, Mismatch::Absent { .. }), "{old:?}: {found:?}");
    }

    #[test]
    fn exact_text_is_replaced_wherever_it_begins() {
        use Rung::Exact;
        check(
            "let a = 1;\nlet b = 2;\n",
            "a = 1",
            "a = 3",
            Exact,
            "let a = 3;\nlet b = 2;\n",
        );
        check("a\nb\nc\n", "a\nb\n", "", Exact, "c\n");
        check("a\nb", "b", "b\n", Exact, "a\nb\n");
        check("ä → ö\n", "→", "⇒", Exact, "ä ⇒ ö\n");
        let (before, behind) = ("v".repeat(1 << 20), "x".repeat(1 << 20));
        check(
            &format!("{before}y{behind}"),
            "vy",
            "vz",
            Exact,
            &format!("{before}z{behind}"),
        );
        check("", "", "new\n", Exact, "new\n");
    }

    #[test]
    fn line_ends_are_the_files_own() {
        check("a\nb\n", "a\r\nb", "a\r\nB\r\nc", Rung::Ends, "a\nB\nc\n");
        check("a\nb\n", "a\nb", "a\r\nB", Rung::Exact, "a\nB\n");
        assert_eq!(refused("a\nb\n", "a\r\nb", "a\nb"), Mismatch::Same);
    }

    #[test]
    fn line_numbers_of_a_reading_are_no_text() {
        use Rung::Numbers;
        check(
            "fn a\nfn b\nfn c\n",
            "2|fn b\n3|fn c",
            "2|fn B\n3|fn C",
            Numbers,
            "fn a\nfn B\nfn C\n",
        );
        check(
            "fn a\n  fn b\n",
            "     2|  fn b\n",
            "  fn B\n",
            Numbers,
            "fn a\n  fn B\n",
        );
        // Not on every line, or not one after the other.
        absent("fn a\nfn b\n", "1|fn a\nfn b", "x");
        absent("fn a\nfn b\n", "1|fn a\n3|fn b", "x");
        absent("a\n\nb\n", "2|", "x");
        // A table is what it is.
        check("1|a\n2|b\n", "2|b", "2|c", Rung::Exact, "1|a\n2|c\n");
    }

    #[test]
    fn blanks_at_the_ends_of_lines_do_not_count() {
        use Rung::Trailing;
        check("a  \nb\t\nc\n", "a\nb\nc", "a\nB\nc", Trailing, "a  \nB\nc\n");
        check("a\nb\n", "a \nb", "a\nB", Trailing, "a\nB\n");
        check(
            "x = f(a,  \n  b) + 1\n",
            "f(a,\n  b)",
            "f(b,\n  b)",
            Trailing,
            "x = f(b,\n  b) + 1\n",
        );
        check("a\nb  \n", "a\nb \n", "a\nc\n", Trailing, "a\nc\n");
        // Never across lines.
        absent("a\n\nb\n", "a\nb", "x");
        absent("ab c\n", "a bc", "x");
        absent("a b\n", "a  b", "x");
    }

    #[test]
    fn an_even_difference_of_indentation_is_kept() {
        use Rung::Leading;
        check(
            "  if x {\n    y();\n  }\n",
            "if x {\n  y();\n}",
            "if x {\n  y();\n  z();\n}",
            Leading,
            "  if x {\n    y();\n    z();\n  }\n",
        );
        check(
            "a:\n\tb\n\n\tc\n",
            "\t\tb\n\n\t\tc\n",
            "\t\tb\n\t\t\td\n",
            Leading,
            "a:\n\tb\n\t\td\n",
        );
        check("\ta\n\tb", "a\nb\n", "a\nB\n", Leading, "\ta\n\tB");
        // Uneven: tabs for blanks, or one line alone.
        absent("\ta {\n\t\tb\n\t}\n", "  a {\n    b\n  }", "x");
        absent("  a\n b\n", "a\nb", "x");
        // The new text cannot lose what it has not.
        absent("a\nb\n", "  a\n  b", "  a\nb");
    }

    #[test]
    fn typographic_signs_count_as_plain_ones() {
        use Rung::Signs;
        check(
            "say “hi” – now\n",
            "say \"hi\" - now",
            "say \"hi\" - later",
            Signs,
            "say “hi” – later\n",
        );
        check("it’s\nso\n", "it's\nso", "it's\nnot so", Signs, "it’s\nnot so\n");
        check("it's\n", "it’s", "it’s not", Signs, "it's not\n");
        check("“a”, “b”\n", "\"a\", \"b\"", "\"a\", \"c\"", Signs, "“a”, “c”\n");
        absent("a…\n", "a...", "x");
    }

    #[test]
    fn several_places_are_named_and_none_is_taken() {
        assert_eq!(
            refused("x\ny\nx\n", "x", "z"),
            Mismatch::Many {
                count: 2,
                lines: vec![1, 3],
                rung: Rung::Exact
            }
        );
        // Overlapping ones too.
        assert!(matches!(refused("aaa", "aa", "b"), Mismatch::Many { count: 2, .. }));
        assert!(matches!(
            refused("  a\n  b\n    a\n    b\n", "a\nb", "x\ny"),
            Mismatch::Many {
                rung: Rung::Leading,
                count: 2,
                ..
            }
        ));
        let all = Edit {
            is_all: true,
            ..edit("x", "z")
        };
        let replaced = replace("x\ny\nx\n", &all).expect("hits");
        assert_eq!((replaced.text.as_str(), replaced.count), ("z\ny\nz\n", 2));
        let all = Edit {
            is_all: true,
            ..edit("a\nb", "c\nd")
        };
        let replaced = replace("  a\n  b\n\ta\n\tb\n", &all).expect("hits");
        assert_eq!((replaced.text.as_str(), replaced.count), ("  c\n  d\n\tc\n\td\n", 2));
    }

    #[test]
    fn much_that_is_alike_is_looked_at_once() {
        // False hits, inside of lines, do not hide the true ones.
        let text = format!("{}  a\n  b\n  a\n  b\n", "xa\nbx\n".repeat(500));
        assert!(matches!(
            refused(&text, " a\n b", " c\n d"),
            Mismatch::Many { count: 2, .. }
        ));
        let line = format!("{}x", "it’s ".repeat(40_000));
        let all = Edit {
            is_all: true,
            ..edit("it's ", "is ")
        };
        let done = replace(&line, &all).expect("hits");
        assert_eq!((done.count, done.text.len()), (40_000, 120_001));
        let (text, old) = ("a".repeat(400_000), "a".repeat(200_000));
        assert!(matches!(refused(&text, &old, "b"), Mismatch::Many { .. }));
        assert!(matches!(
            refused(&text, &format!("{old}b"), "b"),
            Mismatch::Absent { .. }
        ));
    }

    #[test]
    fn nothing_to_do_is_said() {
        assert_eq!(refused("a\n", "", "b"), Mismatch::Empty);
        assert_eq!(refused("a\n", "a", "a"), Mismatch::Same);
        assert_eq!(refused("a\n", " ", " "), Mismatch::Same);
        absent("a\nb\n", " \n", "x");
    }

    #[test]
    fn what_was_tried_and_what_comes_near_is_told() {
        let file = "one\ntwo\nfn total(items: &[Item]) -> Money {\n    items.iter().sum()\n}\nlast\n";
        let old = "fn total(items: Vec<Item>) -> Money {\n    items.sum()\n}";
        let Mismatch::Absent { tried, near } = refused(file, old, "x") else {
            panic!("found");
        };
        assert_eq!(tried, [Rung::Exact, Rung::Trailing, Rung::Leading, Rung::Signs]);
        let near = near.expect("a region");
        assert_eq!(near.first, 2);
        assert_eq!(near.lines.len(), 5);
        let Mismatch::Absent { near, .. } = refused(file, "something entirely different", "x") else {
            panic!("found");
        };
        assert_eq!(near, None);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(256))]

        #[test]
        fn a_hit_never_grows(
            text in "([ab ]{0,3}\t?\n){0,8}[ab’]{0,2}",
            old in "([ab ]{0,3}\n){0,3}[ab']{1,2}",
            new in "([cd ]{0,3}\n){0,3}[cd]{1,2}",
            is_all: bool,
        ) {
            let edit = Edit { old: old.clone(), new: new.clone(), is_all };
            if let Ok(done) = replace(&text, &edit) {
                let lines = |text: &str| text.matches('\n').count() as i64;
                let count = done.count as i64;
                prop_assert_eq!(lines(&done.text), lines(&text) + count * (lines(&new) - lines(&old)));
                prop_assert!(is_all || count == 1);
            }
        }

        #[test]
        fn what_stands_there_once_is_found_exactly(head in "[abc\n]{0,20}", tail in "[abc\n]{0,20}", old in "x[a-c\n]{0,9}x", new in "[a-z\n]{0,9}") {
            let text = format!("{head}{old}{tail}");
            let done = replace(&text, &edit(&old, &new));
            if old == new {
                prop_assert_eq!(done, Err(Mismatch::Same));
            } else {
                prop_assert_eq!(done.map(|it| it.text), Ok(format!("{head}{new}{tail}")));
            }
        }
    }
}
