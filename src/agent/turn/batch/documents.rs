//! The documents of calls, made from a call and its change: pure, nothing is appended here.

use serde_json::{Map, Value, json};

use super::{super::Fault, Job, Stage};
use crate::{
    models::{CallResult, Image},
    protocol::{Applied, CommandState, Operation, Permission, document::language_of},
    tools::{
        Access, Change, Hunk,
        edit::{hunks::surroundings, pick::Picked, text::Text},
        object,
    },
};

/// As many characters of an argument stand in a message.
const SHOWN_CHARS: usize = 200;

/// The reason in a document whose hunks were all left out.
const LEFT_OUT: &str = "the user left this out";

impl Job {
    /// Ends the call with a result.
    pub fn settle(&mut self, text: impl Into<String>) {
        self.settle_with(text.into(), false, Vec::new());
    }

    /// Ends the call with an error.
    pub fn fail(&mut self, text: String) {
        self.settle_with(text, true, Vec::new());
    }

    /// Ends the call with a result of text and images; an empty text becomes `(no output)`.
    pub fn settle_with(&mut self, mut text: String, is_error: bool, images: Vec<Image>) {
        if text.trim().is_empty() {
            "(no output)".clone_into(&mut text);
        }
        self.result = Some(CallResult {
            call: self.call.id.clone(),
            name: self.call.name.clone(),
            text,
            is_error,
            images,
        });
        self.stage = Stage::Done;
    }
}

/// A command as its document starts.
pub fn command_metadata(job: &Job) -> Map<String, Value> {
    let mut metadata = object(json!({
        "command": job.arguments.text("command").unwrap_or_default(),
        "permissions": job.arguments.texts("required_permissions"),
        "toolCallId": job.call.id,
        "state": CommandState::Running,
    }));
    for access in &job.prepared.accesses {
        if let Access::Command {
            line,
            directory,
            permissions,
            is_background: _,
        } = access
        {
            let words: Vec<&str> = permissions.iter().map(Permission::as_str).collect();
            metadata.insert("command".into(), line.clone().into());
            metadata.insert("workingDirectory".into(), directory.path.to_string_lossy().into());
            metadata.insert("permissions".into(), words.into());
        }
    }
    metadata
}

/// The metadata with which the document of an edit starts.
pub fn edit_start(path: &str, operation: &Operation, name: &str, call: &str) -> Map<String, Value> {
    object(json!({
        "filePath": path,
        "operation": operation,
        "language": language_of(path),
        "toolCallId": call,
        "toolName": name,
    }))
}

/// A document of a change: what it starts with, its content, and what it ends with.
pub type Edit = (Map<String, Value>, Option<String>, Map<String, Value>);

/// The documents of a change: one for each hunk, or one for the whole.
pub fn edits(change: &Change, name: &str, call: &str, applied: &Applied) -> Vec<Edit> {
    let mut start = edit_start(&change.file.shown, &change.operation, name, call);
    if let Some(to) = &change.to {
        start.insert("newFilePath".into(), to.shown.clone().into());
    }
    if let Some(cell) = &change.cell {
        let is_new = cell.source.is_none();
        start.insert("cell".into(), json!({ "index": cell.index, "isNew": is_new }));
        if !matches!(cell.language.as_str(), "" | "other" | "raw") {
            start.insert("language".into(), cell.language.clone().into());
        }
    }
    let whole = |content: Option<String>| {
        let mut end = start.clone();
        end.insert("diff".into(), Value::Null);
        end.insert("applied".into(), applied.as_str().into());
        (start.clone(), content, end)
    };
    let is_whole = matches!(change.operation, Operation::Create | Operation::Delete) || change.hunks.is_empty();
    if is_whole {
        let content = match (&change.operation, &change.new) {
            (Operation::Create, Some(new)) => Some(String::from_utf8_lossy(new).into_owned()),
            _ => None,
        };
        return vec![whole(content)];
    }
    let count = change.hunks.len();
    let hunks = change
        .hunks
        .iter()
        .zip(diffs(change))
        .enumerate()
        .map(|(at, (hunk, diff))| {
            let mut end = start.clone();
            end.insert("diff".into(), diff.into());
            end.insert("applied".into(), applied.as_str().into());
            end.insert("hunk".into(), json!({ "index": at + 1, "count": count }));
            (start.clone(), Some(hunk.new.clone()), end)
        });
    hunks.collect()
}

/// The hunks of a change as `diff` members, each with the lines around it that nothing changes.
pub fn diffs(change: &Change) -> Vec<Map<String, Value>> {
    let around = before(change).map(|it| surroundings(&it, &change.hunks));
    let mut around = around.unwrap_or_default().into_iter();
    let diff = |hunk: &Hunk| {
        let mut diff = object(json!({
            "oldString": hunk.old,
            "newString": hunk.new,
            "startLine": hunk.start,
            "endLine": hunk.end,
        }));
        if let Some((before, after)) = around.next() {
            diff.insert("contextBefore".into(), before.into());
            diff.insert("contextAfter".into(), after.into());
        }
        diff
    };
    change.hunks.iter().map(diff).collect()
}

/// The text whose lines the hunks of a change count; `None`: it is not text.
pub fn before(change: &Change) -> Option<String> {
    match &change.cell {
        Some(cell) => Some(cell.source.clone().unwrap_or_default()),
        None => Text::read(change.old.as_deref()?).ok().map(|it| it.text),
    }
}

/// The documents of a change that was made in part: what was left out is said to be rejected.
pub fn parts(picked: &Picked, name: &str, call: &str) -> Vec<Edit> {
    if picked.hunks.is_empty() {
        if picked.change.is_some() {
            return edits(&picked.proposed, name, call, &Applied::Applied);
        }
        let mut documents = edits(&picked.proposed, name, call, &Applied::Rejected);
        for (_, _, end) in &mut documents {
            let reason = picked.why.as_deref().unwrap_or(LEFT_OUT);
            end.insert("reason".into(), reason.into());
        }
        return documents;
    }
    // As it was proposed, with what the user wrote in the place of some hunks.
    let whole = Change {
        hunks: picked.hunks.iter().map(|it| it.hunk.clone()).collect(),
        new: picked
            .change
            .as_ref()
            .map_or_else(|| picked.proposed.new.clone(), |it| it.new.clone()),
        ..picked.proposed.clone()
    };
    let mut documents = edits(&whole, name, call, &Applied::Applied);
    for ((_, _, end), said) in documents.iter_mut().zip(&picked.hunks) {
        // Where what the user wrote is what was there, nothing was made.
        let is_made = said.is_made && picked.change.is_some();
        if is_made {
            // They have looked at it: a review need not ask again.
            end.insert("accepted".into(), true.into());
            end.extend(said.comment.clone().map(|it| ("comment".to_owned(), it.into())));
        } else {
            let reason = said.comment.as_deref().unwrap_or(LEFT_OUT);
            end.insert("applied".into(), Applied::Rejected.as_str().into());
            end.insert("reason".into(), reason.into());
        }
        if said.is_edited {
            end.insert("edited".into(), true.into());
        }
    }
    documents
}

/// The check of a step for each of its documents, which are about these files: the problems of a file stand on its last document,
/// and everything else on the last of all. What is not clean as a whole is clean nowhere.
pub fn shared(checked: Value, files: &[&str]) -> Vec<Value> {
    let Some(last) = files.len().checked_sub(1) else {
        return Vec::new();
    };
    let list_of = |it: &Value, name: &str| it[name].as_array().cloned().unwrap_or_default();
    let (mut left, mut older) = (list_of(&checked, "problems"), list_of(&checked, "olderProblems"));
    let mut count = checked["newProblems"].as_u64().unwrap_or_default();
    let is_clean = count == 0 && older.is_empty() && checked["openProblems"].as_u64().unwrap_or_default() == 0;
    let mut all = vec![Value::Null; files.len()];
    for (at, file) in files.iter().enumerate().rev().skip(1) {
        let mut own = checked.clone();
        let is_last = !files.iter().skip(at + 1).any(|it| it == file);
        let own_of = |all: &mut Vec<Value>| -> Vec<Value> {
            let is_own = |it: &mut Value| is_last && it["filePath"] == **file;
            all.extract_if(.., is_own).collect()
        };
        let (problems, own_older) = (own_of(&mut left), own_of(&mut older));
        count = count.saturating_sub(problems.len() as u64);
        own["fixedProblems"] = 0.into();
        if let Some(own) = own.as_object_mut() {
            own.remove("openProblems");
            own.remove("olderProblems");
            own.remove("olderCount");
        }
        own["newProblems"] = problems.len().into();
        if problems.is_empty() && own_older.is_empty() && !is_clean {
            let mut why = own["unchecked"].as_array().cloned().unwrap_or_default();
            why.push("the changes of a step are judged together: see the last one".into());
            own["unchecked"] = why.into();
        }
        own["problems"] = problems.into();
        if !own_older.is_empty() {
            own["olderCount"] = own_older.len().into();
            own["olderProblems"] = own_older.into();
        }
        if let Some(it) = all.get_mut(at) {
            *it = own;
        }
    }
    let mut whole = checked;
    whole["newProblems"] = count.into();
    whole["problems"] = left.into();
    let moved = list_of(&whole, "olderProblems").len().saturating_sub(older.len());
    if let Some(count) = whole["olderCount"].as_u64() {
        whole["olderCount"] = count.saturating_sub(moved as u64).into();
    }
    if whole.get("olderProblems").is_some() {
        whole["olderProblems"] = older.into();
    }
    if let Some(it) = all.get_mut(last) {
        *it = whole;
    }
    all
}

/// Metadata of a rejected call: the reason, and the rules that would have allowed it.
pub fn why_not(job: &Job, fault: &Fault) -> Map<String, Value> {
    let mut why = object(json!({ "reason": fault.message }));
    if let Some(missing) = &job.refusal.missing {
        why.insert("missing".to_owned(), missing.clone().into());
        if job.refusal.needs_person {
            why.insert("protected".to_owned(), true.into());
        }
    }
    if job.refusal.is_forbidden {
        why.insert("forbidden".to_owned(), true.into());
    }
    why
}

/// Metadata of an action that failed: the error document after it says the same.
pub fn failure(fault: &Fault) -> Map<String, Value> {
    let mut failure = object(json!({ "errorCode": fault.code, "message": fault.message }));
    failure.extend(fault.next.clone().map(|it| ("details".to_owned(), it.into())));
    object(json!({ "failure": failure }))
}

/// A text on one line, cut after 200 characters.
pub fn gist(text: &str) -> String {
    let line: String = text.split_whitespace().collect::<Vec<_>>().join(" ");
    if line.chars().count() <= SHOWN_CHARS {
        return line;
    }
    let cut: String = line.chars().take(SHOWN_CHARS).collect();
    format!("{cut}…")
}

/// A name that the model made up, fit for a line.
pub fn plain(name: &str) -> String {
    let plain: String = name.chars().filter(|it| !it.is_control()).take(64).collect();
    if plain.trim().is_empty() {
        "tool".to_owned()
    } else {
        plain
    }
}
