//! A document: one addressable piece of an answer.
//!
//! The metadata is kept as the JSON object that travelled (names normalised, unknown members untouched), so nothing is
//! lost on the way through. What a kind means is read from it on demand: [`Document::view`] gives a typed view with
//! every default filled in, borrowing the text. `Document::finish` writes the defaults down once the document ends.

mod check;
mod clarification;
mod code_block;
mod code_reference;
mod compaction;
mod error;
mod file_edit;
mod fragments;
mod hook_run;
mod kind;
pub(super) mod member;
mod normal;
mod plan;
mod terminal_command;
mod text;
mod todo_update;
mod tool_call;
mod unknown;

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

pub use check::{CHECKED, ChangeCheck, Problem, change_check, pending_check, unchecked};
pub use clarification::{ANSWER, Clarification, QUESTION, Question, QuestionOption};
pub use code_block::CodeBlock;
pub use code_reference::CodeReference;
pub use compaction::{COMPACT, Cause, Compaction, CompactionMethod};
pub use error::{ERROR_CODES, Error};
pub use file_edit::{DIFF, FileEdit, Hunk, NotebookCell, Replacement};
pub use hook_run::{HOOKS, HookRun, hook_runs};
pub use kind::{ContentRule, KindGroup, KindRow, Member, MemberForm, Need, Shape};
pub use normal::{language_of, merge_patch, normalise, normalise_arguments, normalise_result};
pub use plan::{Plan, TODO, Todo};
pub use terminal_command::TerminalCommand;
pub use text::Text;
pub use todo_update::{CHANGE, TodoChange, TodoUpdate};
pub use tool_call::{CallResult, ToolCall};
pub use unknown::Unknown;

use super::{DocumentId, word::words};
use crate::os::long_text::LongText;
use kind::kinds;

/// The member of a document that names the commit that contains it.
pub const COMMITTED: &str = "committed";
/// The member of a document that says that its effect was undone: `true`, or `"partly"`.
pub const UNDONE: &str = "undone";

/// The first event of a document.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DocumentStart {
    pub id: DocumentId,
    #[serde(rename = "type")]
    pub kind: Kind,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sequence: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub content: Option<LongText>,
    /// Normalised: aliases resolved, flat members moved in.
    #[serde(skip_serializing_if = "Map::is_empty", default)]
    pub metadata: Map<String, Value>,
}

#[cfg(test)]
thread_local! {
    /// Views of documents that this thread has made.
    pub(crate) static VIEWS: std::cell::Cell<usize> = const { std::cell::Cell::new(0) };
}

/// A document as it is written.
#[derive(Debug, Serialize)]
pub struct StrictDocument<'a> {
    id: &'a DocumentId,
    #[serde(rename = "type")]
    kind: &'a Kind,
    sequence: u64,
    content: Option<LongText>,
    metadata: Map<String, Value>,
}

fn members(strict: StrictDocument<'_>) -> Value {
    let mut whole = Map::new();
    whole.insert("id".into(), strict.id.as_str().into());
    whole.insert("type".into(), strict.kind.as_str().into());
    whole.insert("sequence".into(), strict.sequence.into());
    whole.insert("content".into(), strict.content.map(String::from).into());
    whole.insert("metadata".into(), strict.metadata.into());
    whole.into()
}

/// One document of a response.
#[derive(Clone, Debug)]
pub struct Document {
    pub id: DocumentId,
    pub kind: Kind,
    /// As it was sent; `None` where the writer sends none.
    pub sequence: Option<u64>,
    pub content: Option<LongText>,
    /// Normalised names; defaults are written down when the document ends.
    pub metadata: Map<String, Value>,
    is_open: bool,
    /// Increases with every change; caches are keyed by it.
    pub version: u64,
    /// Milliseconds since the Unix epoch, from the log.
    pub started_ms: u64,
    /// When it ended, in the same time; 0 while it is open.
    pub ended_ms: u64,
    /// Fragments of the arguments' JSON text, until they make a whole.
    arguments: fragments::Fragments,
}

/// Equal if their content is equal; times and versions do not count.
impl PartialEq for Document {
    fn eq(&self, other: &Self) -> bool {
        self.id == other.id
            && self.kind == other.kind
            && self.content == other.content
            && self.metadata == other.metadata
            && self.is_open == other.is_open
    }
}

kinds! { $
    text: Text = "text",
    code_reference: CodeReference = "code_reference",
    code_block: CodeBlock = "code_block",
    file_edit: FileEdit = "file_edit",
    tool_call: ToolCall = "tool_call",
    terminal_command: TerminalCommand = "terminal_command",
    plan: Plan = "plan",
    clarification: Clarification = "clarification",
    error: Error = "error",
    todo_update: TodoUpdate = "todo_update",
}

impl Document {
    pub fn open(start: DocumentStart, at_ms: u64) -> Self {
        Self {
            id: start.id,
            kind: start.kind,
            sequence: start.sequence,
            content: start.content,
            metadata: start.metadata,
            is_open: true,
            version: 1,
            started_ms: at_ms,
            ended_ms: 0,
            arguments: fragments::Fragments::default(),
        }
    }

    /// Returns a document that has ended, as if its start had been its only event. Its times are 0.
    pub fn finished(start: DocumentStart) -> Self {
        let mut document = Self::open(start, 0);
        document.finish();
        document
    }

    /// Returns true if all of its effect was undone.
    pub fn is_undone(&self) -> bool {
        self.metadata.get(UNDONE) == Some(&Value::Bool(true))
    }

    /// Returns the call and the file, if it is about one, of an approval or an action. `None` for other kinds and without a
    /// call.
    pub fn decision_key(&self) -> Option<String> {
        let subject = self.metadata.get("subject");
        let about = match self.kind {
            Kind::FileEdit => self.metadata.get("filePath"),
            Kind::TerminalCommand | Kind::ToolCall => None,
            Kind::Clarification if subject?.get("type").and_then(Value::as_str) == Some("file_edit") => {
                let subject = subject?;
                subject
                    .get("filePath")
                    .or_else(|| subject.get("metadata")?.get("filePath"))
            }
            Kind::Clarification => None,
            _ => return None,
        };
        let call = self.metadata.get("toolCallId")?.as_str()?;
        Some(format!("{call}\n{}", about.and_then(Value::as_str).unwrap_or_default()))
    }

    /// Returns the typed view of a clarification. `None` for other kinds.
    pub fn clarification(&self) -> Option<Clarification<'_>> {
        if let View::Clarification(it) = self.view() {
            Some(it)
        } else {
            None
        }
    }

    pub fn is_open(&self) -> bool {
        self.is_open
    }

    /// Cut off before its end: the stream broke, or a fence was never closed.
    pub fn is_incomplete(&self) -> bool {
        self.metadata
            .get("incomplete")
            .and_then(Value::as_bool)
            .unwrap_or_default()
    }

    /// Returns the content; `""` if there is none.
    pub fn text(&self) -> &str {
        self.content.as_deref().unwrap_or_default()
    }

    /// Returns true while the change that it shows is being looked at.
    pub fn is_checking(&self) -> bool {
        self.kind == Kind::FileEdit && check::is_pending(&self.metadata)
    }

    /// The answer has ended.
    pub(super) fn settle(&mut self) {
        if self.kind == Kind::FileEdit && check::settle_check(&mut self.metadata) {
            self.version += 1;
        }
    }

    pub(super) fn push_content(&mut self, delta: &str) {
        self.version += 1;
        self.content.get_or_insert_default().push_str(delta);
    }

    pub(super) fn name_call(&mut self, tool_name: &str, tool_call_id: Option<&str>) {
        self.version += 1;
        self.metadata.insert("toolName".into(), tool_name.into());
        if let Some(id) = tool_call_id {
            self.metadata.insert("toolCallId".into(), id.into());
        }
    }

    /// Takes arguments: an object replaces them, a text is a piece. Returns the arguments when they are complete.
    pub(super) fn push_arguments(&mut self, arguments: &Value) -> Option<Value> {
        self.version += 1;
        let whole = if let Value::String(piece) = arguments {
            self.arguments.push(piece)
        } else {
            self.arguments.clear();
            Some(normalise_arguments(arguments.clone()))
        };
        if let Some(whole) = &whole {
            self.metadata.insert("arguments".into(), whole.clone());
        }
        whole
    }

    /// Bytes of arguments that are not whole yet.
    pub(super) fn pending_arguments(&self) -> usize {
        self.arguments.len()
    }

    /// The last result wins. Edits and commands take an object as metadata, a command takes a text as its output.
    pub(super) fn set_result(&mut self, result: &Value, duration_ms: Option<u64>) {
        self.version += 1;
        self.settle_arguments();
        let takes_members = matches!(self.kind, Kind::FileEdit | Kind::TerminalCommand);
        match bare(result) {
            Value::Object(members) if takes_members => {
                merge_patch(&mut self.metadata, normalise(&self.kind, members.clone()));
            }
            Value::String(output) if self.kind == Kind::TerminalCommand => {
                self.metadata.insert("output".into(), Value::String(output.clone()));
            }
            _ => {
                self.metadata.insert("result".into(), normalise_result(result.clone()));
            }
        }
        if let Some(duration) = duration_ms {
            self.metadata.insert("duration_ms".into(), duration.into());
        }
    }

    /// Applies a merge patch (RFC 7396), except that arguments, result and subject are replaced entirely, nulls
    /// included.
    pub(super) fn patch(&mut self, patch: &Map<String, Value>) {
        if patch.is_empty() {
            return;
        }
        self.version += 1;
        let mut patch = normalise(&self.kind, patch.clone());
        for name in ["arguments", "result", "subject"] {
            if let Some(whole @ Value::Object(_)) = patch.get_mut(name).map(Value::take) {
                patch.shift_remove(name);
                self.metadata.insert(name.to_owned(), whole);
            }
        }
        merge_patch(&mut self.metadata, patch);
    }

    /// Takes the members of `document_end`: each replaces the old value entirely, null removes it.
    pub(super) fn assign(&mut self, members: &Map<String, Value>) {
        self.version += 1;
        for (name, value) in normalise(&self.kind, members.clone()) {
            if value.is_null() {
                self.metadata.shift_remove(&name);
            } else {
                self.metadata.insert(name, value);
            }
        }
    }

    pub(super) fn append(&mut self, member: &str, text: &str) {
        self.version += 1;
        match self.metadata.get_mut(member) {
            Some(Value::String(old)) => old.push_str(text),
            Some(_) | None => {
                self.metadata.insert(member.to_owned(), Value::String(text.to_owned()));
            }
        }
    }

    /// Gives a call that ended without a result a failed one, for other readers; the view still shows none.
    pub(super) fn settle_result(&mut self) {
        if self.kind == Kind::ToolCall && !self.is_open() && self.metadata.get("result").is_none_or(Value::is_null) {
            let result = serde_json::json!({ "status": "error", "data": tool_call::NO_RESULT });
            self.metadata.insert("result".into(), result);
        }
    }

    /// Ends the document: writes down the defaults of its kind.
    pub(super) fn finish(&mut self) {
        self.version += 1;
        self.settle_arguments();
        self.is_open = false;
        self.fill();
        self.content = self.content.take().map(LongText::settled);
    }

    /// Writes down the defaults of absent members and content.
    pub(super) fn fill(&mut self) {
        let row = self.kind.row();
        self.content = match (row.content, self.content.take()) {
            (ContentRule::Absent, content) => content.filter(|it| !it.is_empty()),
            (ContentRule::Nullable, content) => content,
            (ContentRule::NotEmpty | ContentRule::Required | ContentRule::Optional, content) => {
                Some(content.unwrap_or_default())
            }
        };
        (row.fill)(&mut self.metadata, &self.id);
    }

    pub(super) fn settle_arguments(&mut self) -> Option<Value> {
        let whole = self.arguments.take()?;
        self.metadata.insert("arguments".into(), whole.clone());
        Some(whole)
    }
}

/// Returns the data of a `{status, data}` without other members, else the result itself.
fn bare(result: &Value) -> &Value {
    match result {
        Value::Object(members)
            if members.len() == 2 && members.get("status").and_then(Value::as_str) == Some("success") =>
        {
            members.get("data").filter(|it| !it.is_null()).unwrap_or(result)
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) | Value::Object(_) => {
            result
        }
    }
}

impl Document {
    /// The document as a strict writer prints it.
    pub fn to_json(&self, sequence: u64) -> Value {
        members(self.strict(sequence))
    }

    /// The same with an empty `content` if that is in a file, and then the content.
    pub fn to_json_apart(&self, sequence: u64) -> (Value, Option<LongText>) {
        let mut strict = self.strict(sequence);
        let stored = strict.content.as_mut().filter(|it| it.is_stored()).map(std::mem::take);
        (members(strict), stored)
    }

    /// Returns the members that a strict writer prints: nested metadata, defaults written down.
    pub fn strict(&self, sequence: u64) -> StrictDocument<'_> {
        let mut strict = self.clone();
        strict.settle_arguments();
        strict.fill();
        strict.settle_result();
        let mut metadata = strict.metadata;
        if self.kind == Kind::FileEdit {
            metadata.entry("diff").or_insert(Value::Null);
        }
        StrictDocument {
            id: &self.id,
            kind: &self.kind,
            sequence,
            content: strict.content,
            metadata,
        }
    }

    /// Text for a reader that knows no documents; `""` if there is nothing to say.
    pub fn plain_text(&self) -> String {
        with_view!(self, it => it.plain_text())
    }

    /// Returns the same text in pieces, without a copy of the content where it is part of it.
    pub fn plain_pieces(&self) -> Vec<Cow<'_, str>> {
        match self.view() {
            View::Text(it) => vec![it.content.into()],
            View::CodeBlock(it) => it.plain_pieces().into(),
            View::CodeReference(it) => it.plain_pieces().into(),
            View::Unknown(it) => vec![it.content.unwrap_or_default().into()],
            _ => vec![self.plain_text().into()],
        }
    }
}
