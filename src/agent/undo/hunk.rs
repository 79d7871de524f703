//! Taking back a change that the user has rejected: one hunk, on the disk, and only where it still stands.
//!
//! The file may have moved on since. What a hunk wrote is looked for where it must stand by now, else anywhere in the file;
//! where it is not found, or in several places, nothing is written and the user is told why.

use std::sync::Arc;

use crate::{
    protocol::{Applied, Document, Operation, Response, View},
    sandbox::{Change, Refused, Seen, Workspace},
    tools::edit::{
        hunks::hunks,
        notebook::{self, CellEdit},
        replace::Edit,
        text::Text,
    },
};

/// Larger files are not edited at all.
const MOST_BYTES: u64 = 50 << 20;

/// Why a change cannot be taken back; each is a sentence for the user.
#[derive(Debug, thiserror::Error)]
pub enum NotUndone {
    #[error("{0}: not undone, its text is no longer in the file")]
    Gone(String),
    #[error("{0}: not undone, its text now occurs in {1} places")]
    Several(String, usize),
    #[error("{0}: not undone, it only deleted lines, and the file has changed since")]
    Moved(String),
    #[error("{0}: not undone, the previous text is unknown; /undo undoes a whole turn")]
    Unknown(String),
    #[error("{0}: not undone, an inserted cell can only be removed in a notebook editor")]
    Cell(String),
    #[error("{0} exists already")]
    Exists(String),
    #[error("it was rejected already")]
    Twice,
    #[error("{0} is not changed: this was never made")]
    Never(String),
    #[error("{0} cannot be edited: {1}")]
    Unreadable(String, String),
    #[error("{0}: not undone: {1}")]
    Refused(String, Refused),
}

/// The change on the disk that undoes, or redoes, one document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rejected {
    pub path: String,
    pub kind: Reversal,
}

/// The way to undo a document's change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reversal {
    /// `new` stood from `line` on when the answer had ended and is to be `old` again.
    Replace { old: String, new: String, line: u64 },
    /// The same within the cell `cell` of a notebook.
    InCell {
        cell: u64,
        old: String,
        new: String,
        line: u64,
    },
    /// A file that was made, with this text.
    Delete { text: String },
    /// A file that was renamed to `path`.
    Rename { back: String },
    /// A file that was made with this text, and is gone.
    Create { text: String },
}

/// The change that undoes the document at `at`; `None`: the document changes no file.
pub fn rejected(response: &Response, at: usize) -> Option<Result<Rejected, NotUndone>> {
    let document = response.documents.get(at)?;
    let View::FileEdit(edit) = document.view() else {
        return None;
    };
    let path = edit.new_file_path.unwrap_or(edit.file_path).to_owned();
    match edit.applied {
        Applied::Rejected => return Some(Err(NotUndone::Twice)),
        Applied::Failed => return Some(Err(NotUndone::Gone(path))),
        Applied::Applied | Applied::Pending | Applied::Other(_) => {}
    }
    let kind = match (edit.operation, &edit.diff) {
        (_, Some(diff)) if let Some(cell) = edit.cell => {
            if cell.is_new {
                return Some(Err(NotUndone::Cell(path)));
            }
            Reversal::InCell {
                cell: cell.index,
                old: diff.old.to_owned(),
                new: diff.new.to_owned(),
                line: diff.start_line.unwrap_or(1).saturating_add_signed(shift(response, at)),
            }
        }
        (_, Some(diff)) => Reversal::Replace {
            old: diff.old.to_owned(),
            new: diff.new.to_owned(),
            line: diff.start_line.unwrap_or(1).saturating_add_signed(shift(response, at)),
        },
        (Operation::Create, None) => Reversal::Delete {
            text: edit.content.unwrap_or_default().to_owned(),
        },
        (Operation::Rename, None) => Reversal::Rename {
            back: edit.file_path.to_owned(),
        },
        (Operation::Edit | Operation::Delete | Operation::Other(_), None) => {
            return Some(Err(NotUndone::Unknown(path)));
        }
    };
    Some(Ok(Rejected { path, kind }))
}

/// Returns true if a change was on the disk: one that was left out or failed never was.
pub fn is_made(document: &Document) -> bool {
    !matches!(document.view(), View::FileEdit(it) if matches!(it.applied, Applied::Rejected | Applied::Failed))
}

/// The change that redoes the document at `at`, which was undone; `None`: the document changes no file.
pub fn again(response: &Response, at: usize) -> Option<Result<Rejected, NotUndone>> {
    let document = response.documents.get(at)?;
    let View::FileEdit(edit) = document.view() else {
        return None;
    };
    let path = edit.new_file_path.unwrap_or(edit.file_path).to_owned();
    if !is_made(document) && !document.is_undone() {
        return Some(Err(NotUndone::Never(path)));
    }
    let start = edit.diff.as_ref().and_then(|it| it.start_line).unwrap_or(1);
    let line = start.saturating_add_signed(shift(response, at));
    let kind = match (edit.operation, &edit.diff, edit.cell) {
        (_, Some(_), Some(cell)) if cell.is_new => return Some(Err(NotUndone::Cell(path))),
        (_, Some(diff), Some(cell)) => Reversal::InCell {
            cell: cell.index,
            old: diff.new.to_owned(),
            new: diff.old.to_owned(),
            line,
        },
        (_, Some(diff), None) => Reversal::Replace {
            old: diff.new.to_owned(),
            new: diff.old.to_owned(),
            line,
        },
        (Operation::Create, None, _) => Reversal::Create {
            text: edit.content.unwrap_or_default().to_owned(),
        },
        (Operation::Rename, None, _) => {
            let path = edit.file_path.to_owned();
            let back = edit.new_file_path.unwrap_or(edit.file_path).to_owned();
            let kind = Reversal::Rename { back };
            return Some(Ok(Rejected { path, kind }));
        }
        (Operation::Edit | Operation::Delete | Operation::Other(_), None, _) => {
            return Some(Err(NotUndone::Unknown(path)));
        }
    };
    Some(Ok(Rejected { path, kind }))
}

/// By how many lines the other changes of the same file have moved the one at `at`: hunks above it of its own call, and
/// all of later calls that stand above it.
fn shift(response: &Response, at: usize) -> i64 {
    let own = response.documents.get(at).map(Document::view);
    let Some(View::FileEdit(own)) = own else { return 0 };
    let start = own.diff.as_ref().and_then(|it| it.start_line).unwrap_or(1);
    let mut line = start as i64;
    for (n, document) in response.documents.iter().enumerate() {
        let View::FileEdit(other) = document.view() else {
            continue;
        };
        let Some(diff) = other
            .diff
            .as_ref()
            .filter(|_| n != at && other.file_path == own.file_path && other.cell == own.cell)
        else {
            continue;
        };
        let is_own_call = own.tool_call_id.is_some() && other.tool_call_id == own.tool_call_id;
        let is_over = matches!(other.applied, Applied::Failed | Applied::Rejected) || document.is_undone();
        let other_start = diff.start_line.unwrap_or(1);
        // Hunks of one call count by the file before it; those of later calls by the file as it was then.
        let is_above = if is_own_call {
            other_start < start
        } else {
            n > at && (other_start as i64) < line
        };
        if !is_over && is_above {
            line += diff.new.lines().count() as i64 - diff.old.lines().count() as i64;
        }
    }
    line - start as i64
}

/// The text with the change taken back.
pub fn undone(
    path: &str,
    text: &str,
    old: &str,
    new: &str,
    line: u64,
    is_untouched: bool,
) -> Result<String, NotUndone> {
    let start_of = |line: u64| {
        let mut at = 0;
        for _ in 1..line {
            at += text.get(at..)?.find('\n')? + 1;
        }
        Some(at)
    };
    if new.is_empty() {
        // Nothing in the file says where the lines were: that is known only while nobody has touched it.
        let at = start_of(line)
            .filter(|_| is_untouched)
            .ok_or_else(|| NotUndone::Moved(path.to_owned()))?;
        let mut whole = text.to_owned();
        whole.insert_str(at, old);
        return Ok(whole);
    }
    let expected = start_of(line).filter(|at| text.get(*at..).is_some_and(|it| it.starts_with(new)));
    let at = match expected {
        Some(at) => at,
        None => {
            let places: Vec<usize> = text.match_indices(new).map(|it| it.0).collect();
            match places.as_slice() {
                [at] => *at,
                [] => return Err(NotUndone::Gone(path.to_owned())),
                several => return Err(NotUndone::Several(path.to_owned(), several.len())),
            }
        }
    };
    let mut whole = String::with_capacity(text.len() + old.len());
    whole.push_str(text.get(..at).unwrap_or_default());
    whole.push_str(old);
    whole.push_str(text.get(at + new.len()..).unwrap_or_default());
    Ok(whole)
}

/// Takes a change back on the disk. Waits for it.
pub fn take_back(workspace: &Workspace, seen: &Seen, rejected: &Rejected) -> Result<(), NotUndone> {
    let path = &rejected.path;
    let refused = |why: Refused| NotUndone::Refused(path.clone(), why);
    let file = workspace.locate(path).map_err(refused)?;
    workspace.may_change(&file).map_err(refused)?;
    if let Reversal::Create { text } = &rejected.kind {
        if workspace.read(&file, MOST_BYTES).is_ok() {
            return Err(NotUndone::Exists(path.clone()));
        }
        let change = Change {
            operation: Operation::Create,
            to: None,
            old: None,
            new: Some(text.as_bytes().into()),
            hunks: hunks("", text),
            cell: None,
            file,
        };
        return workspace.commit(seen, &[change]).map_err(refused);
    }
    let bytes: Arc<[u8]> = workspace.read(&file, MOST_BYTES).map_err(refused)?.into();
    let read = || Text::read(&bytes).map_err(|why| NotUndone::Unreadable(path.clone(), why.to_string()));
    let is_untouched = || seen.check(&file, &bytes).is_ok();
    let mut change = Change {
        operation: Operation::Edit,
        to: None,
        old: Some(Arc::clone(&bytes)),
        new: None,
        hunks: Vec::new(),
        cell: None,
        file: file.clone(),
    };
    let (text, whole) = match &rejected.kind {
        Reversal::Replace { old, new, line } => {
            let text = read()?;
            let whole = undone(path, &text.text, old, new, *line, is_untouched())?;
            (text, whole)
        }
        Reversal::InCell { cell, old, new, line } => {
            let text = read()?;
            let gone = || NotUndone::Gone(path.clone());
            let index = usize::try_from(*cell).map_err(|_| gone())?;
            let (kind, source) = notebook::source_of(&text.text, index).ok_or_else(gone)?;
            let edit = notebook::Change {
                cell: index,
                kind,
                what: CellEdit::Edit(Edit {
                    new: undone(path, &source, old, new, *line, is_untouched())?,
                    old: source,
                    is_all: false,
                }),
            };
            let changed = notebook::change(&text.text, &edit, "")
                .map_err(|why| NotUndone::Unreadable(path.clone(), why.to_string()))?;
            (text, changed.text)
        }
        Reversal::Delete { text: made } => {
            let text = read()?;
            if text.text.trim_end_matches('\n') != made.trim_end_matches('\n') {
                return Err(NotUndone::Gone(path.clone()));
            }
            change.operation = Operation::Delete;
            change.hunks = hunks(&text.text, "");
            return workspace.commit(seen, &[change]).map_err(refused);
        }
        Reversal::Create { .. } => return Ok(()),
        Reversal::Rename { back } => {
            let to = workspace.locate(back).map_err(refused)?;
            workspace.may_change(&to).map_err(refused)?;
            change.operation = Operation::Rename;
            change.to = Some(to);
            change.new = Some(bytes);
            return workspace.commit(seen, &[change]).map_err(refused);
        }
    };
    change.new = Some(text.write(&whole).into());
    change.hunks = hunks(&text.text, &whole);
    workspace.commit(seen, &[change]).map_err(refused)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hunk_is_taken_back_where_it_stands_and_nowhere_else() {
        let undo = |text: &str, old: &str, new: &str, line: u64, untouched: bool| {
            undone("a.rs", text, old, new, line, untouched).map_err(|it| it.to_string())
        };
        for (name, text, old, new, line, untouched, result) in [
            (
                "where it was written",
                "a\nB\nc\n",
                "b\n",
                "B\n",
                2,
                true,
                Ok("a\nb\nc\n"),
            ),
            (
                "the file has grown above it",
                "x\ny\na\nB\nc\n",
                "b\n",
                "B\n",
                2,
                false,
                Ok("x\ny\na\nb\nc\n"),
            ),
            (
                "twice, but one is at its line",
                "B\nB\n",
                "b\n",
                "B\n",
                2,
                true,
                Ok("B\nb\n"),
            ),
            ("added lines", "a\nnew\nb\n", "", "new\n", 2, true, Ok("a\nb\n")),
            (
                "lines that were taken away",
                "a\nc\n",
                "b\n",
                "",
                2,
                true,
                Ok("a\nb\nc\n"),
            ),
            (
                "the same in a file that has moved on",
                "a\nx\nc\n",
                "b\n",
                "",
                2,
                false,
                Err("a.rs: not undone, it only deleted lines, and the file has changed since"),
            ),
            (
                "it was written over",
                "a\nQ\nc\n",
                "b\n",
                "B\n",
                2,
                false,
                Err("a.rs: not undone, its text is no longer in the file"),
            ),
            (
                "in several places",
                "x\nB\nB\n",
                "b\n",
                "B\n",
                9,
                false,
                Err("a.rs: not undone, its text now occurs in 2 places"),
            ),
        ] {
            let result: Result<String, String> = result.map(str::to_owned).map_err(str::to_owned);
            assert_eq!(undo(text, old, new, line, untouched), result, "{name}");
        }
    }

    #[test]
    fn other_changes_of_the_file_move_the_place() {
        let mut response = Response::default();
        let edit = |id: &str, call: &str, start: u64, old: &str, new: &str| {
            let metadata = serde_json::json!({
                "filePath": "a.rs", "operation": "edit", "toolCallId": call,
                "diff": { "oldString": old, "newString": new, "startLine": start },
            });
            let serde_json::Value::Object(metadata) = metadata else {
                unreachable!()
            };
            [
                crate::protocol::Event::DocumentStart(crate::protocol::DocumentStart {
                    id: id.into(),
                    kind: crate::protocol::Kind::FileEdit,
                    sequence: None,
                    content: None,
                    metadata: serde_json::Map::new(),
                }),
                crate::protocol::Event::DocumentEnd {
                    document: id.into(),
                    final_content: None,
                    metadata,
                },
            ]
        };
        let edits = [
            edit("a", "1", 2, "b\n", "b1\nb2\nb3\n"),
            edit("b", "1", 10, "x\n", "y\n"),
            edit("c", "2", 1, "a\n", ""),
            edit("d", "3", 20, "z\n", "w\n"),
        ];
        for event in edits.iter().flatten() {
            response.apply(event, 1);
        }
        let line = |at: usize| match rejected(&response, at) {
            Some(Ok(Rejected {
                kind: Reversal::Replace { line, .. },
                ..
            })) => line,
            other => panic!("{other:?}"),
        };
        // The last one counts by the file as the calls before it left it.
        assert_eq!([line(0), line(1), line(2), line(3)], [1, 11, 1, 20]);
        for (at, word) in [(0, "rejected"), (1, "failed")] {
            let id = response.documents[at].id.clone();
            let metadata = serde_json::Map::from_iter([("applied".to_owned(), word.into())]);
            response.apply(&crate::protocol::Event::DocumentUpdate { document: id, metadata }, 2);
            assert!(!is_made(&response.documents[at]), "{word}");
            let again = again(&response, at).map(|it| it.map_err(|it| it.to_string()));
            assert_eq!(
                again,
                Some(Err("a.rs is not changed: this was never made".to_owned())),
                "{word}"
            );
        }
        assert!(matches!(again(&response, 2), Some(Ok(_))));
    }

    #[test]
    fn in_a_notebook_a_change_is_taken_back_in_its_cell() {
        let folder = tempfile::tempdir().unwrap();
        let whole = |source: &str| {
            format!(
                "{{\n \"cells\": [\n  {{\"cell_type\": \"code\", \"outputs\": [], \"source\": {source}}}\n ],\n \"nbformat\": 4,\n \"nbformat_minor\": 4\n}}\n"
            )
        };
        let path = folder.path().join("a.ipynb");
        let workspace = Workspace::open(folder.path()).unwrap();
        let seen = Seen::default();
        let reject = |now: &str, old: &str, new: &str, line: u64, is_own: bool| {
            let bytes = whole(now);
            std::fs::write(&path, &bytes).unwrap();
            if is_own {
                seen.wrote(&workspace.locate("a.ipynb").unwrap(), Some(bytes.as_bytes()));
            }
            let rejected = Rejected {
                path: "a.ipynb".to_owned(),
                kind: Reversal::InCell {
                    cell: 0,
                    old: old.to_owned(),
                    new: new.to_owned(),
                    line,
                },
            };
            take_back(&workspace, &seen, &rejected).map_err(|it| it.to_string())?;
            let now: serde_json::Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
            let lines = now["cells"][0]["source"].as_array().unwrap();
            Ok::<String, String>(lines.iter().filter_map(|it| it.as_str()).collect())
        };
        let quoted = r#"["x = 1\n", "print(\"b\")\n", "y"]"#;
        let back = reject(quoted, "print(\"a\")\n", "print(\"b\")\n", 2, true);
        assert_eq!(back.as_deref(), Ok("x = 1\nprint(\"a\")\ny"));
        // Lines that were only taken away come back where they stood in the cell, and not in the file.
        let back = reject(r#"["x\n", "y"]"#, "gone\n", "", 2, true);
        assert_eq!(back.as_deref(), Ok("x\ngone\ny"));
        for (now, is_own) in [(r#"["x\n", "z"]"#, false), ("7", true)] {
            assert!(reject(now, "a\n", "b\n", 1, is_own).is_err(), "{now}");
        }
    }

    #[test]
    fn a_file_that_was_made_goes_and_one_that_has_changed_stays() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("new.rs"), "made\n").unwrap();
        std::fs::write(folder.path().join("crlf.rs"), "a\r\nB\r\n").unwrap();
        let workspace = Workspace::open(folder.path()).unwrap();
        let seen = Seen::default();
        let reject = |path: &str, kind| {
            let rejected = Rejected {
                path: path.into(),
                kind,
            };
            take_back(&workspace, &seen, &rejected).map_err(|it| it.to_string())
        };
        let made = |text: &str| Reversal::Delete { text: text.into() };
        assert!(reject("new.rs", made("other\n")).is_err());
        assert!(folder.path().join("new.rs").exists());
        assert_eq!(reject("new.rs", made("made\n")), Ok(()));
        assert!(!folder.path().join("new.rs").exists());
        let replace = Reversal::Replace {
            old: "b\n".into(),
            new: "B\n".into(),
            line: 2,
        };
        assert_eq!(reject("crlf.rs", replace.clone()), Ok(()));
        assert_eq!(
            std::fs::read(folder.path().join("crlf.rs")).unwrap(),
            b"a\r\nb\r\n",
            "line ends stay"
        );
        assert!(reject("crlf.rs", replace.clone()).is_err(), "it is gone");
        assert!(reject("../out.rs", replace).is_err());
    }
}
