//! `file_edit`: one replacement in a file, or its creation, deletion or renaming.

use serde_json::{Map, Value, json};

use super::{
    ContentRule, Document, KindGroup, KindRow,
    MemberForm::{Any, Count, Flag, Nullable, Object, Text, Word},
    Need::{Always, Free, Placed, Structure},
    Shape, check, hook_run, member,
    normal::{fenced, language_of, rename, settle_path},
};
use crate::{
    protocol::{Applied, Operation},
    text::{
        Role,
        diff::{self, ContextLines},
    },
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
    /// Cell of a notebook; the diff's lines are counted in it, not in the file.
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
    pub around: Option<Surroundings<'a>>,
}

/// Unchanged lines of the file around a replacement of whole lines, when it was made: as many as its writer recorded,
/// at most up to the next change. Either may be empty, as at the start and the end of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Surroundings<'a> {
    pub before: &'a str,
    pub after: &'a str,
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
            around: surroundings(diff),
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
    pub(super) fn plain_text(&self) -> String {
        let head = format!("[{} {}]", self.operation, self.file_path);
        match (&self.diff, self.content) {
            (Some(diff), _) => {
                let lines = format!("{}{}", prefixed('-', diff.old), prefixed('+', diff.new));
                format!("{head}\n{}", fenced("diff", &lines))
            }
            (None, Some(content)) => format!("{head}\n{}", fenced(self.language, content)),
            (None, None) => head,
        }
    }

    /// Compares the replacement line by line, with `context` lines around each change. `None` without a replacement.
    pub fn compare(&self, context: usize) -> Option<diff::Diff> {
        self.compare_within(ContextLines::new(context))
    }

    /// Compares the replacement line by line. `None` without a replacement.
    ///
    /// The texts are pieces of a file: if one of them does not end with a line break, the rest of the line follows
    /// both, unless the file is known to end there.
    pub fn compare_within(&self, context: ContextLines) -> Option<diff::Diff> {
        let texts = self.diff.as_ref()?;
        let around = texts.around.unwrap_or(Surroundings { before: "", after: "" });
        let is_end = texts.around.is_some() && around.after.is_empty();
        let is_whole = |text: &str| text.is_empty() || text.ends_with('\n');
        let closed = |text: &str| {
            if is_end || text.is_empty() || (is_whole(texts.old) && is_whole(texts.new)) {
                text.to_owned()
            } else {
                format!("{text}\n")
            }
        };
        let excerpt = diff::Excerpt {
            before: around.before,
            old: &closed(texts.old),
            new: &closed(texts.new),
            after: around.after,
            first: usize::try_from(texts.start_line.unwrap_or(1)).unwrap_or(1),
        };
        Some(excerpt.diff(context))
    }

    /// Counts the unchanged lines between the hunk `before` of the same file and this one; `None` if that is unknown.
    pub fn lines_since(&self, before: &FileEdit<'_>) -> Option<usize> {
        let (start, end) = (self.diff.as_ref()?.start_line?, before.diff.as_ref()?.end_line?);
        usize::try_from(start.checked_sub(end)?.checked_sub(1)?).ok()
    }
}

/// The recorded lines around a replacement. What does not end with a line break stands before nothing.
fn surroundings(diff: &Map<String, Value>) -> Option<Surroundings<'_>> {
    let (before, after) = (member::text(diff, "contextBefore"), member::text(diff, "contextAfter"));
    if before.is_none() && after.is_none() {
        return None;
    }
    let before = before.filter(|it| it.ends_with('\n')).unwrap_or_default();
    Some(Surroundings {
        before,
        after: after.unwrap_or_default(),
    })
}

/// Guesses the operation of an edit that states none: an edit if it has a diff, else the creation of a file.
fn guess(metadata: &Map<String, Value>) -> Operation {
    if member::object(metadata, "diff").is_some() {
        Operation::Edit
    } else {
        Operation::Create
    }
}

fn prefixed(sign: char, text: &str) -> String {
    text.lines().map(|it| format!("{sign}{it}\n")).collect()
}

/// A replacement, as a member.
pub static DIFF: Shape = Shape {
    name: "Diff",
    about: "One replacement in a file.",
    members: &[
        (
            "oldString",
            Text,
            Always,
            "exact text before, without line numbers; `\"\"` for an insertion",
        ),
        ("newString", Text, Always, "exact text after"),
        (
            "startLine",
            Count(1),
            Placed,
            "first line of `oldString` before the edit, counted from 1; of an insertion the line that it is put before",
        ),
        (
            "endLine",
            Count(0),
            Placed,
            "last line of `oldString`, included; of an insertion `startLine` − 1",
        ),
        (
            "contextBefore",
            Text,
            Free,
            "unchanged whole lines before it, when it was made; `\"\"` at the start of the file",
        ),
        (
            "contextAfter",
            Text,
            Free,
            "unchanged whole lines after it; `\"\"` at the end of the file",
        ),
    ],
};

/// The failure of an action, as a member.
pub(super) static FAILURE: Shape = Shape {
    name: "ActionFailure",
    about: "Why an action failed.",
    members: &[
        ("errorCode", Text, Placed, "UPPER_SNAKE, from the list in §11"),
        ("message", Text, Placed, "the reason in words"),
        ("details", Text, Free, "a hint"),
    ],
};

static HUNK: Shape = Shape {
    name: "Hunk",
    about: "Place of an edit among those of its call and file.",
    members: &[
        ("index", Count(0), Placed, "number of this edit, counted from 1"),
        ("count", Count(0), Placed, "number of edits"),
    ],
};

static CELL: Shape = Shape {
    name: "Cell",
    about: "A cell of a notebook.",
    members: &[
        ("index", Count(0), Placed, "position of the cell, counted from 0"),
        ("isNew", Flag, Free, "true if the edit adds the cell"),
    ],
};

pub(super) static ROW: KindRow = KindRow {
    aliases: &["edit"],
    members: &[
        (
            "filePath",
            Text,
            Always,
            "path from the workspace root, with `/`; of a `rename` the old path",
        ),
        (
            "operation",
            Word(Operation::KNOWN),
            Always,
            "readers take an edit without one for `edit` if it has a `diff`, otherwise for `create`",
        ),
        (
            "language",
            Text,
            Structure,
            "fence tag; readers derive it from the path",
        ),
        (
            "diff",
            Nullable(&DIFF),
            Free,
            "the one replacement of an `edit`; null for other operations and for an edit that never came about",
        ),
        ("newFilePath", Text, Free, "target of a `rename`"),
        (
            "toolCallId",
            Text,
            Free,
            "call that made the edit; all edits of a call have the same",
        ),
        ("toolName", Text, Free, "tool that made the edit"),
        (
            "applied",
            Word(Applied::KNOWN),
            Free,
            "state of the edit; absent means `applied`",
        ),
        (
            "hunk",
            Object(&HUNK),
            Free,
            "place of this edit among those of its call and file",
        ),
        (
            "cell",
            Object(&CELL),
            Free,
            "cell of a notebook; the lines of the diff are counted in it",
        ),
        (
            "failure",
            Object(&FAILURE),
            Free,
            "why it failed, as the `error` document after it says",
        ),
        ("reason", Text, Free, "reason for a rejected edit"),
        hook_run::MEMBER,
        check::MEMBER,
        (
            "edited",
            Flag,
            Free,
            "true if the user changed the proposed text before accepting it",
        ),
        ("accepted", Flag, Free, "true if the user accepted this hunk by itself"),
        ("comment", Text, Free, "the user's comment on the hunk, for the model"),
        (
            "result",
            Any,
            Free,
            "result of the call, on the last of its edits: `{status, data}`",
        ),
    ],
    content: ContentRule::Nullable,
    group: KindGroup::Action,
    label: "plain-kind-file-edit",
    heading: Some("edit-edit"),
    sign: ("±", Role::Done),
    normalise: |members| {
        settle_path(members);
        settle_diff(members);
    },
    fill: |metadata, _| {
        member::default(metadata, "filePath", "");
        let operation = guess(metadata);
        member::default(metadata, "operation", operation.as_str());
        let language = language_of(member::text(metadata, "filePath").unwrap_or_default());
        member::default(metadata, "language", language);
        // Absent and null mean the same; one form is kept.
        if metadata.get("diff").is_some_and(Value::is_null) {
            metadata.shift_remove("diff");
        }
        if let Some(Value::Object(diff)) = metadata.get_mut("diff") {
            member::default(diff, "oldString", "");
            member::default(diff, "newString", "");
            // Lines are counted from 1; an insertion at the start of a file ends before it.
            for (name, least) in [("startLine", 1), ("endLine", 0)] {
                if member::integer(diff, name).is_some_and(|it| it < least) {
                    diff.insert(name.to_owned(), least.into());
                }
            }
        }
    },
    ..KindRow::DEFAULT
};

/// The texts of a diff.
const TEXTS: &[&str] = &["oldString", "newString", "contextBefore", "contextAfter"];

/// Combines `old_string` and `new_string`, inside `diff` or not, into one `diff`.
fn settle_diff(members: &mut Map<String, Value>) {
    for (alias, name) in [("old_string", "oldString"), ("new_string", "newString")] {
        rename(members, alias, name);
    }
    if let Some(Value::Object(diff)) = members.get_mut("diff") {
        for (alias, name) in [
            ("old_string", "oldString"),
            ("new_string", "newString"),
            ("start_line", "startLine"),
            ("end_line", "endLine"),
            ("context_before", "contextBefore"),
            ("context_after", "contextAfter"),
        ] {
            rename(diff, alias, name);
        }
        member::coerce(diff, TEXTS, &["startLine", "endLine"], &[]);
    }
    let loose: Vec<_> = ["oldString", "newString", "startLine", "endLine"]
        .into_iter()
        .filter_map(|name| members.shift_remove(name).map(|value| (name, value)))
        .collect();
    if loose.is_empty() {
        return;
    }
    let slot = members.entry("diff").or_insert_with(|| json!({}));
    if !slot.is_object() {
        *slot = json!({});
    }
    if let Value::Object(diff) = slot {
        for (name, value) in loose {
            diff.entry(name).or_insert(value);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::DocumentId;

    #[test]
    fn lines_that_no_file_has_become_the_nearest_ones() {
        for (start, end, expected) in [
            (json!(0), json!(-1), [json!(1), json!(0)]),
            (json!(-7), json!(4), [json!(1), json!(4)]),
            (json!(3), json!(2), [json!(3), json!(2)]),
        ] {
            let Value::Object(mut metadata) = json!({ "diff": { "startLine": start, "endLine": end } }) else {
                unreachable!("an object was written");
            };
            (ROW.fill)(&mut metadata, &DocumentId::from("doc_001"));
            assert_eq!(
                [&metadata["diff"]["startLine"], &metadata["diff"]["endLine"]],
                [&expected[0], &expected[1]]
            );
        }
    }
}
