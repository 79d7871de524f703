//! `file_edit`: one replacement in a file, or its creation, deletion or renaming.

use serde_json::{Map, Value};

use super::{Document, member, normal::language_of};
use crate::{
    protocol::{Applied, Operation},
    text::diff,
};

#[derive(Clone, Debug, PartialEq)]
pub struct FileEdit<'a> {
    /// The new text; for `create` the whole file.
    pub content: Option<&'a str>,
    /// For a renaming: the old path.
    pub file_path: &'a str,
    pub new_file_path: Option<&'a str>,
    pub operation: Operation,
    pub language: &'a str,
    pub diff: Option<Replacement<'a>>,
    pub applied: Applied,
    pub hunk: Option<Hunk>,
    /// In a notebook: the cell, whose lines the diff counts, and not those of the file.
    pub cell: Option<NotebookCell>,
    pub tool_call_id: Option<&'a str>,
    pub tool_name: Option<&'a str>,
}

/// Exactly one replacement.
#[derive(Clone, Debug, PartialEq)]
pub struct Replacement<'a> {
    pub old: &'a str,
    pub new: &'a str,
    /// Lines of `old` before the edit, 1-based, inclusive; an insertion before line n is n, n − 1. `None`: unknown.
    pub start_line: Option<u64>,
    pub end_line: Option<u64>,
}

/// Which hunk of its call and file this is, counted from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hunk {
    pub index: u64,
    pub count: u64,
}

/// A cell of a notebook.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotebookCell {
    /// From 0.
    pub index: u64,
    pub is_new: bool,
}

impl<'a> FileEdit<'a> {
    pub(super) fn read(it: &'a Document) -> Self {
        let members = &it.metadata;
        let file_path = member::text(members, "filePath").unwrap_or_default();
        let diff = member::object(members, "diff").map(|diff| Replacement {
            old: member::text(diff, "oldString").unwrap_or_default(),
            new: member::text(diff, "newString").unwrap_or_default(),
            start_line: member::count(diff, "startLine"),
            end_line: member::count(diff, "endLine"),
        });
        Self {
            content: it.content.as_deref(),
            file_path,
            new_file_path: member::text(members, "newFilePath"),
            operation: member::text(members, "operation").map_or_else(|| guess(members), Operation::parse),
            language: member::text(members, "language").unwrap_or_else(|| language_of(file_path)),
            diff,
            applied: member::text(members, "applied").map_or(Applied::Applied, Applied::parse),
            hunk: member::object(members, "hunk").and_then(|hunk| {
                Some(Hunk {
                    index: member::count(hunk, "index")?,
                    count: member::count(hunk, "count")?,
                })
            }),
            cell: member::object(members, "cell").and_then(|cell| {
                Some(NotebookCell {
                    index: member::count(cell, "index")?,
                    is_new: cell.get("isNew").and_then(Value::as_bool).unwrap_or_default(),
                })
            }),
            tool_call_id: member::text(members, "toolCallId"),
            tool_name: member::text(members, "toolName"),
        }
    }
}

impl FileEdit<'_> {
    /// What changes line by line, with `context` lines around it; `None` without a replacement.
    ///
    /// The texts are pieces of a file: where one of them does not end with its line, the rest of the line follows both.
    pub fn compare(&self, context: usize) -> Option<diff::Diff> {
        let texts = self.diff.as_ref()?;
        let is_whole = |text: &str| text.is_empty() || text.ends_with('\n');
        let closed = |text: &str| {
            if text.is_empty() || (is_whole(texts.old) && is_whole(texts.new)) {
                text.to_owned()
            } else {
                format!("{text}\n")
            }
        };
        let first = usize::try_from(texts.start_line.unwrap_or(1)).unwrap_or(1);
        Some(diff::diff(
            &closed(texts.old),
            &closed(texts.new),
            first,
            first,
            context,
        ))
    }
}

/// An edit that does not say what it does is an edit when it has a diff, else it writes a file.
fn guess(metadata: &Map<String, Value>) -> Operation {
    if member::object(metadata, "diff").is_some() {
        Operation::Edit
    } else {
        Operation::Create
    }
}

pub(super) fn fill(metadata: &mut Map<String, Value>) {
    member::default(metadata, "filePath", "");
    let operation = guess(metadata);
    member::default(metadata, "operation", operation.as_str());
    let language = language_of(member::text(metadata, "filePath").unwrap_or_default());
    member::default(metadata, "language", language);
    // Absent and null say the same; one of them has to be the form that is kept.
    if metadata.get("diff").is_some_and(Value::is_null) {
        metadata.shift_remove("diff");
    }
}
