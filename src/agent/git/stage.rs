//! Accepted changes of files, made on another state of the same files: the last commit, or git's index. Pure.
//!
//! A change says what it replaced in the file as it was then. Where that stands now follows from comparing the two files
//! line by line; a change is made only where its own lines are unchanged. What was not accepted is never taken along: a
//! change that builds on it is left out, and the reason says so.

use std::{collections::BTreeMap, ops::Range};

use similar::DiffOp;

use crate::{
    protocol::Operation,
    tools::edit::{
        hunks::{compare, lines},
        text::Text,
    },
};

/// Git's mode of an ordinary file.
pub const PLAIN_MODE: &str = "100644";
/// Git's mode of a symbolic link.
const LINK_MODE: &str = "120000";
/// Git's mode of a submodule.
const SUBMODULE_MODE: &str = "160000";

/// A file in a commit or in the index.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Blob {
    /// As git writes it: `100644`.
    pub mode: String,
    pub bytes: Vec<u8>,
}

/// Files by their paths from the top of the repository; `None`: there is no such file.
pub type Files = BTreeMap<String, Option<Blob>>;

/// A change of a file that the user has accepted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AcceptedChange {
    /// Path from the top of the repository, before the change.
    pub path: String,
    pub kind: ChangeKind,
}

/// The effect of a change on its file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ChangeKind {
    /// A new file, with its bytes and git's mode.
    Create(Blob),
    Delete,
    /// A new name, from the top of the repository.
    Rename(String),
    Replace(Replaced),
}

/// Whole lines that replace others; every line end is `\n`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Replaced {
    pub old: String,
    pub new: String,
    /// The line of `old` in `before`, counted from 1.
    pub line: Option<u64>,
    /// The whole file before the change, if it is still known.
    pub before: Option<String>,
}

/// The reason why a change is left out of a commit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LeftOut {
    #[error("builds on a change that is neither accepted nor committed")]
    BuildsOn,
    #[error("its file is not in the last commit, and its creation is not accepted")]
    NoFile,
    #[error("another file has this name in the last commit")]
    Exists,
    #[error("its place in the file is no longer known")]
    Lost,
    #[error("the file is not text")]
    NotText,
    #[error("the file is a link or a submodule")]
    NotFile,
}

/// A change that was made: the lines of the file that it wrote, from 0; empty for a removal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Made {
    pub path: String,
    pub operation: Operation,
    pub lines: Range<usize>,
    pub removed: usize,
    /// False if the file contained the change already.
    pub is_new: bool,
}

/// Makes the changes in their order; returns for each what it did, or why it was left out.
///
/// The lines of a change are those of the last state: later changes move them. Neighbours that replace lines of the same
/// state of a file are placed together.
pub fn apply(files: &mut Files, changes: &[AcceptedChange]) -> Vec<Result<Made, LeftOut>> {
    let mut results: Vec<Result<Made, LeftOut>> = Vec::new();
    for group in changes.chunk_by(is_of_one_state) {
        let made = match group {
            [change] if !matches!(change.kind, ChangeKind::Replace(_)) => vec![one(files, change)],
            _ => replace(files, group),
        };
        for it in made.iter().flatten().filter(|it| it.is_new) {
            let path = group.first().map(|it| it.path.as_str()).unwrap_or_default();
            results
                .iter_mut()
                .flatten()
                .for_each(|earlier| shift(earlier, it, path));
        }
        results.extend(made);
    }
    results
}

fn is_of_one_state(one: &AcceptedChange, other: &AcceptedChange) -> bool {
    let (ChangeKind::Replace(replaced), ChangeKind::Replace(next)) = (&one.kind, &other.kind) else {
        return false;
    };
    one.path == other.path && replaced.before.is_some() && replaced.before == next.before && replaced.line < next.line
}

/// Replaces lines of one file, from its beginning to its end.
fn replace(files: &mut Files, group: &[AcceptedChange]) -> Vec<Result<Made, LeftOut>> {
    let Some(path) = group.first().map(|it| &it.path) else {
        return Vec::new();
    };
    let read = || {
        let blob = files.get(path).and_then(Option::as_ref).ok_or(LeftOut::NoFile)?;
        if is_no_file(blob) {
            return Err(LeftOut::NotFile);
        }
        let text = Text::read(&blob.bytes).map_err(|_| LeftOut::NotText)?;
        Ok((blob.clone(), text))
    };
    let (blob, text) = match read() {
        Ok(it) => it,
        Err(why) => return group.iter().map(|_| Err(why)).collect(),
    };
    let found = lines(&text.text);
    let mut whole = String::with_capacity(text.text.len());
    // The next line that is not written yet, and the lines written.
    let (mut next, mut count) = (0, 0);
    let mut results = Vec::new();
    for change in group {
        let ChangeKind::Replace(replaced) = &change.kind else {
            continue;
        };
        let (added, removed) = (lines(&replaced.new).len(), lines(&replaced.old).len());
        let (at, is_new) = match place(&found, replaced) {
            Ok(Place::Here(at)) if at < next => {
                results.push(Err(LeftOut::BuildsOn));
                continue;
            }
            Ok(Place::Here(at)) => (at, true),
            Ok(Place::Done(at)) => (at, false),
            Err(why) => {
                results.push(Err(why));
                continue;
            }
        };
        let mut line = at;
        if is_new {
            whole.push_str(&found[next..at].concat());
            whole.push_str(&replaced.new);
            line = count + at - next;
            count = line + added;
            next = at + removed;
        }
        results.push(Ok(Made {
            path: path.clone(),
            operation: Operation::Edit,
            lines: line..line + added,
            removed,
            is_new,
        }));
    }
    whole.push_str(&found[next..].concat());
    if whole != text.text {
        let bytes = text.write(&whole);
        files.insert(path.clone(), Some(Blob { bytes, ..blob }));
    }
    results
}

fn is_no_file(blob: &Blob) -> bool {
    blob.mode == LINK_MODE || blob.mode == SUBMODULE_MODE
}

/// Moves the lines of an earlier change by what a later one did above them.
fn shift(earlier: &mut Made, made: &Made, path: &str) {
    if earlier.path != path {
        return;
    }
    earlier.path.clone_from(&made.path);
    match made.operation {
        Operation::Delete => earlier.lines = 0..0,
        Operation::Edit => {
            let (start, added, removed) = (made.lines.start, made.lines.len(), made.removed);
            if start + removed <= earlier.lines.start {
                let move_by = |it: usize| it + added - removed;
                earlier.lines = move_by(earlier.lines.start)..move_by(earlier.lines.end);
            } else if start < earlier.lines.end {
                // It has rewritten a part of these lines: what is left of them is around its own.
                let end = (earlier.lines.end.max(start + removed) + added).saturating_sub(removed);
                earlier.lines = earlier.lines.start.min(start)..end;
            }
        }
        Operation::Create | Operation::Rename | Operation::Other(_) => {}
    }
}

fn one(files: &mut Files, change: &AcceptedChange) -> Result<Made, LeftOut> {
    let path = &change.path;
    let made = |operation, lines, removed, is_new| Made {
        path: path.clone(),
        operation,
        lines,
        removed,
        is_new,
    };
    let file = files.get(path).cloned().flatten();
    if file.as_ref().is_some_and(is_no_file) {
        return Err(LeftOut::NotFile);
    }
    match (&change.kind, file) {
        (ChangeKind::Create(blob), found) => {
            let is_there = found.as_ref().is_some_and(|it| is_alike(&it.bytes, &blob.bytes));
            // An empty file is a name that somebody has reserved (`git add -N`).
            if found.is_some_and(|it| !it.bytes.is_empty() && !is_there) {
                return Err(LeftOut::Exists);
            }
            if !is_there {
                files.insert(path.clone(), Some(blob.clone()));
            }
            let count = blob.bytes.split_inclusive(|it| *it == b'\n').count();
            Ok(made(Operation::Create, 0..count, 0, !is_there))
        }
        (ChangeKind::Delete, found) => {
            let lines = found
                .as_ref()
                .map_or(0, |it| it.bytes.split_inclusive(|it| *it == b'\n').count());
            files.insert(path.clone(), None);
            Ok(made(Operation::Delete, 0..0, lines, found.is_some()))
        }
        (ChangeKind::Rename(to), found) => {
            let is_taken = files.get(to).is_some_and(Option::is_some);
            let is_new = match (&found, is_taken) {
                (Some(_), false) => true,
                (None, true) => false,
                (Some(_), true) => return Err(LeftOut::Exists),
                (None, false) => return Err(LeftOut::NoFile),
            };
            if is_new {
                files.insert(to.clone(), found);
                files.insert(path.clone(), None);
            }
            Ok(Made {
                path: to.clone(),
                ..made(Operation::Rename, 0..0, 0, is_new)
            })
        }
        // Placed together with its neighbours.
        (ChangeKind::Replace(_), _) => Err(LeftOut::Lost),
    }
}

/// Compares two files by their text: a checkout may have other line ends than a commit.
fn is_alike(one: &[u8], other: &[u8]) -> bool {
    one == other || matches!((Text::read(one), Text::read(other)), (Ok(one), Ok(other)) if one.text == other.text)
}

/// The place of a change in a file: a line from 0.
#[derive(Debug, PartialEq, Eq)]
enum Place {
    Here(usize),
    /// The file contains the change.
    Done(usize),
}

fn place(file: &[&str], change: &Replaced) -> Result<Place, LeftOut> {
    let (old, new) = (lines(&change.old), lines(&change.new));
    let start = change.line.and_then(|it| usize::try_from(it).ok()?.checked_sub(1));
    let before: Option<Vec<&str>> = change.before.as_deref().map(lines);
    let (Some(before), Some(start)) = (before, start) else {
        return place_by_text(file, &old, &new, start);
    };
    // What is kept of the file must be what the change was made on.
    if before.get(start..start + old.len()) != Some(old.as_slice()) {
        return place_by_text(file, &old, &new, Some(start));
    }
    if let Some(at) = Alignment::new(&before, file).range(start..start + old.len()) {
        // Beside a neighbour that is not in the file: the lines may have been put there before.
        let is_there =
            |at: Option<usize>| at.is_some_and(|at| !new.is_empty() && file.get(at..at + new.len()) == Some(&new));
        let places = [Some(at.line), at.line.checked_sub(new.len())];
        if old.is_empty()
            && at.is_weak
            && let Some(Some(at)) = places.into_iter().find(|it| is_there(*it))
        {
            return Ok(Place::Done(at));
        }
        return Ok(Place::Here(at.line));
    }
    let after: Vec<&str> = [&before[..start], &new, &before[start + old.len()..]].concat();
    match Alignment::new(&after, file).range(start..start + new.len()) {
        Some(at) => Ok(Place::Done(at.line)),
        None => Err(LeftOut::BuildsOn),
    }
}

/// Finds a change without the file that it was made on: where its lines are, if that is one place only.
fn place_by_text(file: &[&str], old: &[&str], new: &[&str], start: Option<usize>) -> Result<Place, LeftOut> {
    let places = |lines: &[&str]| -> Vec<usize> {
        let count = file.len().checked_sub(lines.len()).filter(|_| !lines.is_empty());
        let all = count.map_or(0..0, |it| 0..it + 1);
        all.filter(|at| file.get(*at..at + lines.len()) == Some(lines))
            .collect()
    };
    match places(old).as_slice() {
        [at] => return Ok(Place::Here(*at)),
        several if let Some(at) = several.iter().find(|it| Some(**it) == start) => return Ok(Place::Here(*at)),
        [] => {}
        _ => return Err(LeftOut::Lost),
    }
    match places(new).as_slice() {
        [at] => Ok(Place::Done(*at)),
        [] if old.is_empty() => Err(LeftOut::Lost),
        [] => Err(LeftOut::BuildsOn),
        _ => Err(LeftOut::Lost),
    }
}

/// The lines of one file in another.
struct Alignment {
    /// For each line of the one file its line in the other.
    lines: Vec<Option<usize>>,
    /// Lines of the other file.
    count: usize,
}

/// The place of a stretch of lines in another file.
struct Aligned {
    line: usize,
    /// Only one of its neighbours is there.
    is_weak: bool,
}

impl Alignment {
    fn new(one: &[&str], other: &[&str]) -> Self {
        let mut lines = vec![None; one.len()];
        for op in compare(one, other) {
            if let DiffOp::Equal {
                old_index,
                new_index,
                len,
            } = op
            {
                for at in 0..len {
                    lines[old_index + at] = Some(new_index + at);
                }
            }
        }
        Self {
            lines,
            count: other.len(),
        }
    }

    /// Finds a stretch, which may be empty: all its lines, one after the other, or the gap between its neighbours.
    fn range(&self, range: Range<usize>) -> Option<Aligned> {
        if let Some((first, rest)) = self.lines.get(range.clone())?.split_first() {
            let first = (*first)?;
            let is_whole = rest.iter().zip(first + 1..).all(|(it, at)| *it == Some(at));
            return is_whole.then_some(Aligned {
                line: first,
                is_weak: false,
            });
        }
        let before = range.start.checked_sub(1).map(|it| self.lines[it]);
        let after = self.lines.get(range.start).copied();
        let aligned = |line, is_weak| Some(Aligned { line, is_weak });
        match (before, after) {
            (Some(Some(before)), Some(Some(after))) if after == before + 1 => aligned(after, false),
            (Some(Some(_)), Some(Some(_))) => None,
            (Some(Some(before)), Some(None) | None) => aligned(before + 1, before + 1 < self.count),
            (Some(None) | None, Some(Some(after))) => aligned(after, after > 0),
            (None, None) if self.count == 0 => aligned(0, false),
            (Some(None) | None, Some(None) | None) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use pretty_assertions::assert_eq;
    use proptest::prelude::*;

    use super::*;
    use crate::tools::edit::hunks::hunks;

    fn file(text: &str) -> Blob {
        Blob {
            mode: PLAIN_MODE.to_owned(),
            bytes: text.as_bytes().to_vec(),
        }
    }

    fn edit(before: &str, after: &str, hunk: usize) -> AcceptedChange {
        let hunk = hunks(before, after).swap_remove(hunk);
        AcceptedChange {
            path: "a".to_owned(),
            kind: ChangeKind::Replace(Replaced {
                old: hunk.old,
                new: hunk.new,
                line: Some(hunk.start),
                before: Some(before.to_owned()),
            }),
        }
    }

    fn text_of(files: &Files) -> String {
        let blob = files.get("a").cloned().flatten();
        blob.map_or_else(|| "-".to_owned(), |it| String::from_utf8(it.bytes).expect("text"))
    }

    /// The file after the changes, and what came of each: its lines from 1, `=` where it was there, or why not.
    fn check(name: &str, base: &str, changes: &[AcceptedChange], expected: &str, results: &[&str]) {
        let mut files = Files::from([("a".to_owned(), Some(file(base)))]);
        let made = apply(&mut files, changes);
        assert_eq!(text_of(&files), expected, "{name}");
        let made: Vec<String> = made
            .iter()
            .map(|it| match it {
                Ok(it) if !it.is_new => "=".to_owned(),
                Ok(it) => format!("{}-{}", it.lines.start + 1, it.lines.end),
                Err(why) => format!("{why:?}"),
            })
            .collect();
        assert_eq!(made, results, "{name}");
    }

    #[test]
    fn a_change_is_made_on_the_commit_without_its_neighbours() {
        let (v0, v1) = ("1\n2\n3\n4\n5\n6\n7\n8\n", "one\n2\n3\n4\nfive\n6\n7\n8\n9\n");
        check(
            "the first of three",
            v0,
            &[edit(v0, v1, 0)],
            "one\n2\n3\n4\n5\n6\n7\n8\n",
            &["1-1"],
        );
        check(
            "the one in the middle",
            v0,
            &[edit(v0, v1, 1)],
            "1\n2\n3\n4\nfive\n6\n7\n8\n",
            &["5-5"],
        );
        check(
            "the first and the last",
            v0,
            &[edit(v0, v1, 0), edit(v0, v1, 2)],
            "one\n2\n3\n4\n5\n6\n7\n8\n9\n",
            &["1-1", "9-9"],
        );
        let v2 = v1.replace("five\n", "V\n");
        check("one that builds on another", v0, &[edit(v1, &v2, 0)], v0, &["BuildsOn"]);
        check(
            "both",
            v0,
            &[edit(v0, v1, 1), edit(v1, &v2, 0)],
            "1\n2\n3\n4\nV\n6\n7\n8\n",
            &["5-5", "5-5"],
        );
        check("committed already", &v2, &[edit(v1, &v2, 0)], &v2, &["="]);
        check("its lines are in an older commit", v1, &[edit(v0, v1, 2)], v1, &["="]);
    }

    #[test]
    fn a_place_is_found_by_what_is_around_it() {
        let grown = "x\ny\n{\n}\n{\n}\n";
        let (before, after) = ("{\n}\n{\n}\n", "{\n}\n{\nnew\n}\n");
        check(
            "a duplicate line, in a file with more lines above",
            grown,
            &[edit(before, after, 0)],
            "x\ny\n{\n}\n{\nnew\n}\n",
            &["6-6"],
        );
        check(
            "between lines of which one is new",
            "a\nc\n",
            &[edit("a\nb\nc\n", "a\nb\nx\nc\n", 0)],
            "a\nx\nc\n",
            &["2-2"],
        );
        check(
            "the same, and it is there",
            "a\nx\nc\n",
            &[edit("a\nb\nc\n", "a\nb\nx\nc\n", 0)],
            "a\nx\nc\n",
            &["="],
        );
        check(
            "a line is taken out",
            "0\na\nb\nc\n",
            &[edit("a\nb\nc\n", "a\nc\n", 0)],
            "0\na\nc\n",
            &["3-2"],
        );
        check(
            "it is out already",
            "0\na\nc\n",
            &[edit("a\nb\nc\n", "a\nc\n", 0)],
            "0\na\nc\n",
            &["="],
        );
        check("into an empty file", "", &[edit("", "a\n", 0)], "a\n", &["1-1"]);
        check(
            "at the end, where the file has more",
            "a\nb\n",
            &[edit("a\n", "a\nx\n", 0)],
            "a\nx\nb\n",
            &["2-2"],
        );
        check(
            "lines are put above a change",
            "1\n2\n3\n4\n5\n",
            &[
                edit("1\n2\n3\n4\n5\n", "1\n2\n3\n4\nV\n", 0),
                edit("1\n2\n3\n4\nV\n", "0\n1\n2\n3\n4\nV\n", 0),
            ],
            "0\n1\n2\n3\n4\nV\n",
            &["6-6", "1-1"],
        );
    }

    #[test]
    fn line_ends_and_marks_stay_as_they_are() {
        check(
            "CRLF",
            "a\r\nb\r\n",
            &[edit("a\nb\n", "a\nB\nc\n", 0)],
            "a\r\nB\r\nc\r\n",
            &["2-3"],
        );
        check("no end", "a\nb", &[edit("a\nb", "a\nB", 0)], "a\nB", &["2-2"]);
        check(
            "the end is added",
            "a\nb",
            &[edit("a\nb", "a\nb\n", 0)],
            "a\nb\n",
            &["2-2"],
        );
        check(
            "the end is removed",
            "a\nb\n",
            &[edit("a\nb\n", "a\nb", 0)],
            "a\nb",
            &["2-2"],
        );
        check(
            "added after a last line without an end",
            "a",
            &[edit("a", "a\nb", 0)],
            "a\nb",
            &["1-2"],
        );
        check(
            "a byte order mark",
            "\u{feff}a\n",
            &[edit("a\n", "b\n", 0)],
            "\u{feff}b\n",
            &["1-1"],
        );
        check("zero bytes", "a\0\n", &[edit("a\n", "b\n", 0)], "a\0\n", &["NotText"]);
    }

    #[test]
    fn files_come_go_and_move() {
        let change = |kind| AcceptedChange {
            path: "a".to_owned(),
            kind,
        };
        let create = |text: &str| change(ChangeKind::Create(file(text)));
        let mut files = Files::from([("a".to_owned(), None), ("b".to_owned(), None)]);
        let made = apply(&mut files, &[create("1\n2\n"), edit("1\n2\n", "1\nII\n", 0)]);
        assert_eq!(text_of(&files), "1\nII\n");
        assert!(made.iter().all(Result::is_ok), "{made:?}");
        let made = apply(&mut files, &[create("1\nII\n")]);
        assert_eq!(made[0].as_ref().map(|it| it.is_new), Ok(false), "it is there");
        assert_eq!(apply(&mut files, &[create("other")])[0], Err(LeftOut::Exists));
        let made = apply(&mut files, &[change(ChangeKind::Rename("b".to_owned()))]);
        assert_eq!(made[0].as_ref().map(|it| it.path.as_str()), Ok("b"));
        assert_eq!((text_of(&files).as_str(), files["b"].is_some()), ("-", true));
        let made = apply(&mut files, &[change(ChangeKind::Rename("b".to_owned()))]);
        assert_eq!(made[0].as_ref().map(|it| it.is_new), Ok(false), "it has moved already");
        assert_eq!(apply(&mut files, &[edit("1\n", "2\n", 0)])[0], Err(LeftOut::NoFile));
        let mut files = Files::from([("a".to_owned(), Some(file("1\n2\n")))]);
        let made = apply(&mut files, &[change(ChangeKind::Delete), change(ChangeKind::Delete)]);
        let facts: Vec<_> = made.iter().flatten().map(|it| (it.removed, it.is_new)).collect();
        assert_eq!((text_of(&files).as_str(), facts), ("-", vec![(2, true), (0, false)]));
        let link = Blob {
            mode: LINK_MODE.to_owned(),
            bytes: b"target".to_vec(),
        };
        let mut files = Files::from([("a".to_owned(), Some(link))]);
        assert_eq!(apply(&mut files, &[edit("1\n", "2\n", 0)])[0], Err(LeftOut::NotFile));
    }

    #[test]
    fn without_the_file_before_it_a_change_is_found_by_its_lines_or_not_at_all() {
        let change = |old: &str, new: &str, line| AcceptedChange {
            path: "a".to_owned(),
            kind: ChangeKind::Replace(Replaced {
                old: old.to_owned(),
                new: new.to_owned(),
                line,
                before: None,
            }),
        };
        check(
            "one place",
            "1\n2\n",
            &[change("2\n", "II\n", None)],
            "1\nII\n",
            &["2-2"],
        );
        check(
            "several, one at its line",
            "2\n2\n",
            &[change("2\n", "II\n", Some(2))],
            "2\nII\n",
            &["2-2"],
        );
        check(
            "several",
            "2\n2\n",
            &[change("2\n", "II\n", Some(9))],
            "2\n2\n",
            &["Lost"],
        );
        check(
            "there already",
            "1\nII\n",
            &[change("2\n", "II\n", None)],
            "1\nII\n",
            &["="],
        );
        check("an insertion", "1\n", &[change("", "II\n", Some(2))], "1\n", &["Lost"]);
        check("gone", "1\n", &[change("2\n", "II\n", Some(2))], "1\n", &["BuildsOn"]);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(256))]

        /// All hunks of all versions make the last version; a second time they change nothing.
        #[test]
        fn all_changes_make_the_last_version(versions in prop::collection::vec("([a-d]\n){0,12}[a-d]?", 1..4)) {
            let mut changes = Vec::new();
            for pair in versions.windows(2) {
                changes.extend((0..hunks(&pair[0], &pair[1]).len()).map(|it| edit(&pair[0], &pair[1], it)));
            }
            let mut files = Files::from([("a".to_owned(), Some(file(&versions[0])))]);
            let made = apply(&mut files, &changes);
            if made.iter().all(|it| it.as_ref().is_ok_and(|it| it.is_new)) {
                prop_assert_eq!(&text_of(&files), versions.last().expect("one"));
            }
        }

        /// Whatever is accepted of one change: exactly these hunks are made.
        #[test]
        fn any_choice_of_hunks_is_made_exactly(
            old in "([a-d]\n){0,30}[a-d]?", new in "([a-d]\n){0,30}[a-d]?", chosen in prop::collection::vec(any::<bool>(), 40),
        ) {
            let all = hunks(&old, &new);
            let wanted: Vec<usize> = (0..all.len()).filter(|it| chosen[*it % chosen.len()]).collect();
            let (was, mut expected, mut at) = (lines(&old), String::new(), 0);
            for hunk in wanted.iter().map(|it| &all[*it]) {
                let start = hunk.start as usize - 1;
                expected.push_str(&was[at..start].concat());
                expected.push_str(&hunk.new);
                at = hunk.end as usize;
            }
            expected.push_str(&was[at..].concat());
            let changes: Vec<_> = wanted.iter().map(|it| edit(&old, &new, *it)).collect();
            let mut files = Files::from([("a".to_owned(), Some(file(&old)))]);
            let made = apply(&mut files, &changes);
            // A change that cannot be placed is left out and named; it is never made elsewhere.
            if made.iter().all(Result::is_ok) {
                prop_assert_eq!(text_of(&files), expected, "{:?}", made);
            }
        }
    }
}
