//! Changes of files as calls: the documents of one file belong to one.

use serde_json::{Map, Value, json};

use super::{Around, CursorCall, Outcome, Shape, id, rejected};
use crate::{
    protocol::{Applied, Document, FileEdit, Operation, View},
    tools::{cursor::edit_arguments, object},
};

/// Returns the call of the documents of one file's change, and its outcome. `why` is the error that came with it.
///
/// `nth` is the number of the file among those of the call, from 0.
pub fn edit(
    documents: &[Document],
    nth: usize,
    why: Option<&str>,
    around: Around<'_>,
) -> Option<(CursorCall, Outcome)> {
    let document = documents.first()?;
    let edits: Vec<FileEdit<'_>> = documents
        .iter()
        .filter_map(|it| match it.view() {
            View::FileEdit(it) => Some(it),
            _ => None,
        })
        .collect();
    let first = edits.first()?;
    let mut id = id(document, first.tool_call_id);
    if nth > 0 {
        id.push_str(&format!(":{nth}"));
    }
    let path = first.file_path;
    let absolute = around.absolute(path);
    let (kind, mut arguments, success) = match &first.operation {
        Operation::Create => {
            let text = first.content.unwrap_or_default();
            let success = json!({
                "path": absolute,
                "linesCreated": text.lines().count(),
                "fileSize": text.len(),
            });
            (
                "writeToolCall",
                object(json!({ "path": path, "fileText": text })),
                success,
            )
        }
        Operation::Delete => {
            let success = json!({ "path": absolute, "message": format!("Deleted {path}") });
            ("deleteToolCall", object(json!({ "path": path })), success)
        }
        Operation::Edit | Operation::Rename | Operation::Other(_) => {
            let change = Change::of(&edits);
            let success = json!({
                "path": absolute,
                "linesAdded": change.added,
                "linesRemoved": change.removed,
                "diffString": change.text,
                "message": match first.new_file_path {
                    Some(to) => format!("Moved {path} to {to}"),
                    None => format!("Changed {path}"),
                },
            });
            ("editToolCall", changed_arguments(documents, &edits, path), success)
        }
    };
    if kind != "editToolCall" {
        arguments.insert("toolCallId".to_owned(), id.clone().into());
    }
    let outcome = match first.applied {
        Applied::Applied | Applied::Pending | Applied::Other(_) => Outcome::success(success),
        Applied::Rejected => rejected(document, &[("path", path)]),
        Applied::Failed => Outcome::error(why.unwrap_or("it could not be applied"), &[("path", path)]),
    };
    let kind = Shape::Known { kind, arguments };
    Some((CursorCall { id, kind }, outcome))
}

fn changed_arguments(documents: &[Document], edits: &[FileEdit<'_>], path: &str) -> Map<String, Value> {
    let mut arguments = object(json!({ "path": path }));
    if let Some(to) = edits.first().and_then(|it| it.new_file_path) {
        let mut patch = format!("*** Begin Patch\n*** Update File: {path}\n*** Move to: {to}\n");
        for diff in edits.iter().filter_map(|it| it.diff.as_ref()) {
            patch.push_str("@@\n");
            signed(&mut patch, '-', diff.old);
            signed(&mut patch, '+', diff.new);
        }
        patch.push_str("*** End Patch\n");
        arguments.insert("applyPatch".to_owned(), json!({ "patchContent": patch }));
        return arguments;
    }
    let mut parts: Vec<Value> = edits
        .iter()
        .filter_map(|it| it.diff.as_ref())
        .map(|it| json!({ "oldText": it.old, "newText": it.new }))
        .collect();
    if parts.is_empty() {
        // It came to nothing: what was meant stands beside it.
        let meant = edits_meant(documents);
        arguments.extend(meant);
    } else if parts.len() > 1 {
        arguments.insert("multiStrReplace".to_owned(), json!({ "edits": parts }));
    } else if let Some(only) = parts.pop() {
        arguments.insert("strReplace".to_owned(), only);
    }
    arguments
}

/// The arguments of an edit that was not made.
fn edits_meant(documents: &[Document]) -> Map<String, Value> {
    let arguments = documents.first().and_then(|it| it.metadata.get("arguments"));
    arguments
        .and_then(Value::as_object)
        .map_or_else(Map::new, edit_arguments)
}

/// The places of a change as a unified diff without context.
#[derive(Default)]
struct Change {
    text: String,
    added: usize,
    removed: usize,
}

impl Change {
    fn of(edits: &[FileEdit<'_>]) -> Self {
        let mut change = Self::default();
        // By how much the places before have moved what follows.
        let mut shift = 0_i64;
        for diff in edits.iter().filter_map(|it| it.diff.as_ref()) {
            let (removed, added) = (diff.old.lines().count(), diff.new.lines().count());
            if let Some(start) = diff.start_line {
                // An empty side is named by the line before it.
                let old = if removed == 0 { start.saturating_sub(1) } else { start };
                let moved = i64::try_from(start).unwrap_or(i64::MAX).saturating_add(shift);
                let new = if added == 0 { moved.saturating_sub(1) } else { moved };
                change
                    .text
                    .push_str(&format!("@@ -{old},{removed} +{new},{added} @@\n"));
            } else {
                change.text.push_str("@@\n");
            }
            signed(&mut change.text, '-', diff.old);
            signed(&mut change.text, '+', diff.new);
            shift += added as i64 - removed as i64;
            change.added += added;
            change.removed += removed;
        }
        change
    }
}

fn signed(into: &mut String, sign: char, text: &str) {
    for line in text.lines() {
        into.push(sign);
        into.push_str(line);
        into.push('\n');
    }
}
