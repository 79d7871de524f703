//! The call behind a document: what a model called, with what, and what it was told.
//!
//! A document keeps what a person wants to see, not what the model read, so a result is told anew from that. An edit of
//! several places becomes a call for each: said so, it can be read by a model that never heard of the tool that made it.

use serde_json::{Map, Value, json};

use crate::protocol::{
    Applied, CommandState, Document, Operation, Outcome, QuestionKind, View,
    document::{FileEdit, TerminalCommand, ToolCall},
};

/// A call that was made and what came of it.
pub struct Called {
    pub id: String,
    pub name: String,
    pub arguments: Map<String, Value>,
    /// Never empty.
    pub result: String,
    pub is_error: bool,
}

/// A result is told as far as this: most of what was read long ago is stale.
const RESULT_BYTES: usize = 16 << 10;

/// `None`: no call stands behind it. `error`: the document behind it, if that is one.
pub fn called(document: &Document, error: Option<&Document>) -> Option<Called> {
    let (name, arguments, result) = match document.view() {
        View::ToolCall(it) => tool_call(&it),
        View::TerminalCommand(it) => command(document, &it),
        View::FileEdit(it) => edit(document, &it, error),
        View::TodoUpdate(it) => {
            let todos = document.metadata.get("todos").cloned().unwrap_or_default();
            let arguments = json!({ "merge": it.merge, "todos": todos });
            ("todo_write".to_owned(), arguments, Ok("The list is kept.".to_owned()))
        }
        View::Plan(it) => {
            let todos: Vec<_> = it
                .todos
                .iter()
                .map(|it| json!({ "id": it.id, "content": it.content, "dependencies": it.dependencies }))
                .collect();
            let arguments = json!({ "name": it.title, "overview": it.overview, "plan": it.content, "todos": todos });
            (
                "create_plan".to_owned(),
                arguments,
                Ok("The user sees the plan.".to_owned()),
            )
        }
        // Without an id nothing called for it: it is what the model said.
        View::Clarification(it)
            if it.kind == QuestionKind::Question && document.metadata.contains_key("toolCallId") =>
        {
            let questions: Vec<_> = it
                .questions
                .iter()
                .map(|it| {
                    let options: Vec<_> = it
                        .options
                        .iter()
                        .map(|it| json!({ "id": it.id, "label": it.label }))
                        .collect();
                    json!({ "id": it.id, "prompt": it.text, "options": options })
                })
                .collect();
            let result = match it.outcome {
                Some(Outcome::Answered) => words(document.metadata.get("answers").unwrap_or(&Value::Null)),
                Some(_) => "The user did not answer.".to_owned(),
                None => "What the user answers stands in their next message.".to_owned(),
            };
            let arguments = json!({ "title": it.content, "questions": questions });
            ("ask".to_owned(), arguments, Ok(result))
        }
        _ => return None,
    };
    let id = match text(&document.metadata, "toolCallId") {
        Some(id) if !id.is_empty() => id.to_owned(),
        Some(_) | None => format!("call_{}", document.id),
    };
    let (result, is_error) = match result {
        Ok(text) => (text, false),
        Err(text) => (text, true),
    };
    Some(Called {
        id,
        name,
        arguments: match arguments {
            Value::Object(arguments) => arguments,
            _ => Map::new(),
        },
        result: cut(result),
        is_error,
    })
}

type Told = (String, Value, Result<String, String>);

fn tool_call(it: &ToolCall<'_>) -> Told {
    let result = match it.result {
        None => Err("There is no result: the call was interrupted.".to_owned()),
        Some(result) if result.failed => Err(words(result.data)),
        Some(result) => {
            let members = result.data.as_object();
            let read = members.and_then(|it| text(it, "content").or_else(|| text(it, "markdown")));
            Ok(read.map_or_else(|| words(result.data), str::to_owned))
        }
    };
    (it.tool_name.to_owned(), Value::Object(it.arguments.clone()), result)
}

fn command(document: &Document, it: &TerminalCommand<'_>) -> Told {
    let mut arguments = Map::new();
    arguments.insert("command".to_owned(), it.command.into());
    if !it.permissions.is_empty() {
        let words: Vec<_> = it.permissions.iter().map(crate::protocol::Permission::as_str).collect();
        arguments.insert("required_permissions".to_owned(), words.into());
    }
    let printed = |note: String| format!("{}\n{note}", it.output.trim_end()).trim_start().to_owned();
    let result = match &it.state {
        CommandState::Rejected => Err(refusal(document)),
        CommandState::Completed => Ok(printed(match it.exit_code {
            Some(code) => format!("exit code {code}"),
            None => String::new(),
        })),
        CommandState::Background => Ok(printed("it went on in the background".to_owned())),
        CommandState::TimedOut => Ok(printed("it took too long and was ended".to_owned())),
        CommandState::Running | CommandState::Cancelled => Err(printed("it was interrupted".to_owned())),
        CommandState::Other(word) => Ok(printed(word.clone())),
    };
    ("run_terminal_cmd".to_owned(), Value::Object(arguments), result)
}

fn edit(document: &Document, it: &FileEdit<'_>, error: Option<&Document>) -> Told {
    let path = it.file_path;
    let meant = document.metadata.get("arguments").filter(|it| it.is_object());
    let (name, arguments) = match (&it.operation, &it.diff, meant) {
        (_, _, Some(meant)) => (it.tool_name.unwrap_or("edit_file"), meant.clone()),
        (Operation::Delete, ..) => ("delete_file", json!({ "target_file": path })),
        (Operation::Rename, ..) => {
            let to = it.new_file_path.unwrap_or_default();
            let patch = format!("*** Begin Patch\n*** Update File: {path}\n*** Move to: {to}\n*** End Patch\n");
            ("apply_patch", json!({ "input": patch }))
        }
        (Operation::Create | Operation::Edit | Operation::Other(_), Some(diff), _) => (
            "search_replace",
            json!({ "file_path": path, "old_string": diff.old, "new_string": diff.new }),
        ),
        (Operation::Create | Operation::Edit | Operation::Other(_), None, _) => (
            "write",
            json!({ "file_path": path, "contents": it.content.unwrap_or_default() }),
        ),
    };
    let result = match it.applied {
        Applied::Applied | Applied::Other(_) => {
            let mut said = format!("`{path}` is changed.");
            if document.metadata.get("edited") == Some(&Value::Bool(true)) {
                said.push_str("\nThe user rewrote this part: it stands as they wrote it.");
            }
            if let Some(comment) = text(&document.metadata, "comment") {
                said.push_str("\nThe user says: ");
                said.push_str(comment);
            }
            Ok(said)
        }
        Applied::Pending => Ok(format!("`{path}` is to be changed.")),
        Applied::Rejected => Err(refusal(document)),
        Applied::Failed => Err(match error.map(Document::view) {
            Some(View::Error(error)) => format!("Error [{}]: {}\n{}", error.code, error.content, error.details),
            Some(_) | None => format!("`{path}` was not changed."),
        }),
    };
    (name.to_owned(), arguments, result)
}

fn refusal(document: &Document) -> String {
    let reason = text(&document.metadata, "reason").unwrap_or("the user said no");
    format!("Error [TOOL_REJECTED]: {reason}")
}

fn cut(mut text: String) -> String {
    text.truncate(text.trim_end().len());
    if text.is_empty() {
        return "(no output)".to_owned();
    }
    if text.len() > RESULT_BYTES {
        text.truncate(text.floor_char_boundary(RESULT_BYTES));
        text.push_str("\n[cut: the rest was not kept]");
    }
    text
}

fn words(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Null => String::new(),
        other => other.to_string(),
    }
}

fn text<'a>(members: &'a Map<String, Value>, name: &str) -> Option<&'a str> {
    members.get(name).and_then(Value::as_str)
}
