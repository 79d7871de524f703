//! Calls in the shapes of Cursor's command line: a kind such as `readToolCall`, its arguments and its result.
//!
//! Made from documents alone, so it is the same for our agent, a gateway and a recording. Kinds that the other
//! program does not have become `function`, which every reader of its output knows.

mod edit;

use std::path::{Path, PathBuf};

use serde_json::{Map, Value, json};

pub use self::edit::edit;
use crate::{
    protocol::{
        Applied, CommandState, Document, Kind, KindGroup, QuestionKind, TodoStatus, View,
        document::{Plan, TerminalCommand, TodoChange, TodoUpdate, ToolCall},
    },
    tools::{
        self,
        cursor::{Answer, Arguments, Asked, absolute, text, whole, words},
        object, todo_write,
    },
    transcript::Todos,
};

/// Facts that documents do not hold.
#[derive(Clone, Copy, Debug)]
pub struct Around<'a> {
    pub workspace: &'a Path,
    /// Todos after the document.
    pub todos: &'a Todos,
}

impl Around<'_> {
    fn absolute(&self, path: &str) -> PathBuf {
        absolute(self.workspace, path)
    }
}

/// A call in Cursor's shapes, as it starts.
#[derive(Clone, Debug, PartialEq)]
pub struct CursorCall {
    /// May hold anything: never a file name.
    pub id: String,
    kind: Shape,
}

#[derive(Clone, Debug, PartialEq)]
enum Shape {
    Known {
        kind: &'static str,
        arguments: Map<String, Value>,
    },
    Function {
        name: String,
        arguments: Value,
    },
}

/// Result of a call: the one key of its result, and the value.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    pub key: &'static str,
    pub value: Value,
    is_background: bool,
}

impl Outcome {
    fn of(key: &'static str, value: Value) -> Self {
        Self {
            key,
            value,
            is_background: false,
        }
    }

    fn success(value: Value) -> Self {
        Self::of("success", value)
    }

    /// A failure with its text.
    pub fn error(text: &str, more: &[(&str, &str)]) -> Self {
        let mut value = Map::new();
        for (name, text) in more.iter().filter(|(_, text)| !text.is_empty()) {
            value.insert((*name).to_owned(), (*text).into());
        }
        value.insert("error".to_owned(), text.into());
        Self::of("error", Value::Object(value))
    }
}

impl CursorCall {
    fn known(id: String, kind: &'static str, arguments: Value) -> Self {
        Self {
            id,
            kind: Shape::Known {
                kind,
                arguments: object(arguments),
            },
        }
    }

    /// The member `tool_call` of a line.
    pub fn to_json(&self, outcome: Option<&Outcome>) -> Value {
        let (kind, mut body) = match &self.kind {
            Shape::Known { kind, arguments } => (*kind, object(json!({ "args": arguments }))),
            Shape::Function { name, arguments } => {
                // As text: that is how a model wrote them.
                (
                    "function",
                    object(json!({ "name": name, "arguments": arguments.to_string() })),
                )
            }
        };
        if let Some(outcome) = outcome {
            let mut result = Map::new();
            result.insert(outcome.key.to_owned(), outcome.value.clone());
            if kind == "shellToolCall" && outcome.key != "rejected" {
                result.insert("isBackground".to_owned(), outcome.is_background.into());
            }
            body.insert("result".to_owned(), Value::Object(result));
        }
        json!({ kind: body })
    }

    /// Returns the call's name and main argument, for a line of a log.
    pub fn gist(&self) -> String {
        let (name, arguments) = match &self.kind {
            Shape::Known { kind, arguments } => (kind.trim_end_matches("ToolCall"), arguments.clone()),
            Shape::Function { name, arguments } => (name.as_str(), object(arguments.clone())),
        };
        let about = ["command", "path", "pattern", "globPattern", "query", "url", "name"];
        let about = about.iter().find_map(|it| arguments.get(*it).and_then(Value::as_str));
        match about.or_else(|| arguments.values().find_map(Value::as_str)) {
            Some(about) => format!("{name} {about}"),
            None => name.to_owned(),
        }
    }
}

/// Returns the call of a document. `None` if it has none, or its arguments have not arrived.
///
/// Edits are combined by [`edit`]: several documents may belong to one.
pub fn call(document: &Document, around: Around<'_>) -> Option<CursorCall> {
    match document.view() {
        View::ToolCall(it) => tool_call(document, &it),
        View::TerminalCommand(it) => command(document, &it),
        View::TodoUpdate(it) => Some(todos(document, &it, around)),
        View::Plan(it) => Some(plan(document, &it)),
        View::Clarification(it) if it.kind == QuestionKind::Question => Some(CursorCall {
            id: id(document, None),
            kind: Shape::Function {
                name: "ask_question".to_owned(),
                arguments: json!({ "title": it.content, "questions": document.metadata.get("questions") }),
            },
        }),
        _ => None,
    }
}

/// Returns the outcome of an ended document's call.
pub fn outcome(document: &Document, call: &CursorCall, around: Around<'_>) -> Outcome {
    match document.view() {
        View::ToolCall(it) => called(document, &it, call, around),
        View::TerminalCommand(it) => commanded(document, &it),
        View::TodoUpdate(it) => {
            let whole: Vec<Value> = around
                .todos
                .list
                .iter()
                .map(|it| todo_write::printed(&it.id, &it.content, &it.status, &it.dependencies, document.started_ms))
                .collect();
            Outcome::success(json!({ "totalCount": whole.len(), "todos": whole, "wasMerge": it.merge }))
        }
        View::Clarification(it) => match it.outcome {
            Some(crate::protocol::Outcome::Answered) => {
                Outcome::success(json!({ "answers": document.metadata.get("answers") }))
            }
            Some(_) | None => Outcome::of("rejected", json!({ "reason": "nobody answered" })),
        },
        _ => Outcome::success(json!({})),
    }
}

fn id(document: &Document, id: Option<&str>) -> String {
    match id.or_else(|| text(&document.metadata, "toolCallId")) {
        Some(id) => id.to_owned(),
        None => format!("call_{}", document.id),
    }
}

/// Returns the outcome of a call that the user or a rule rejected.
fn rejected(document: &Document, more: &[(&str, &str)]) -> Outcome {
    let mut value = Map::new();
    for (name, text) in more.iter().filter(|(_, text)| !text.is_empty()) {
        value.insert((*name).to_owned(), (*text).into());
    }
    let reason = text(&document.metadata, "reason").unwrap_or("it was not allowed");
    value.insert("reason".to_owned(), reason.into());
    Outcome::of("rejected", Value::Object(value))
}

/// Returns true if the user or a rule rejected the action.
pub fn is_rejected(document: &Document) -> bool {
    match document.view() {
        View::FileEdit(it) => it.applied == Applied::Rejected,
        View::TerminalCommand(it) => it.state == CommandState::Rejected,
        View::ToolCall(_) => text(&document.metadata, "state") == Some("rejected"),
        _ => false,
    }
}

fn command(document: &Document, it: &TerminalCommand<'_>) -> Option<CursorCall> {
    if it.command.is_empty() && document.is_open() {
        return None;
    }
    let id = id(document, it.tool_call_id);
    let mut arguments = object(json!({ "command": it.command }));
    if let Some(directory) = it.working_directory {
        arguments.insert("workingDirectory".to_owned(), directory.into());
    }
    if let Some(timeout) = document.metadata.get("timeout") {
        arguments.insert("timeout".to_owned(), timeout.clone());
    }
    arguments.insert("toolCallId".to_owned(), id.clone().into());
    Some(CursorCall::known(id, "shellToolCall", Value::Object(arguments)))
}

fn commanded(document: &Document, it: &TerminalCommand<'_>) -> Outcome {
    let directory = it.working_directory.unwrap_or_default();
    if it.state == CommandState::Rejected {
        return rejected(document, &[("command", it.command), ("workingDirectory", directory)]);
    }
    let mut value = object(json!({ "command": it.command, "workingDirectory": directory }));
    if let Some(code) = it.exit_code {
        value.insert("exitCode".to_owned(), code.into());
    }
    let signal = text(&document.metadata, "signal").unwrap_or_default();
    let apart = text(&document.metadata, "stdout").zip(text(&document.metadata, "stderr"));
    let (stdout, stderr) = apart.unwrap_or((it.output, ""));
    let rest = json!({
        "signal": signal,
        "stdout": stdout,
        "stderr": stderr,
        "executionTime": it.duration_ms.unwrap_or_default(),
        "interleavedOutput": it.output,
    });
    value.extend(object(rest));
    let is_well = match it.state {
        CommandState::Background | CommandState::Running => true,
        CommandState::Completed => it.exit_code.unwrap_or_default() == 0,
        CommandState::TimedOut | CommandState::Rejected | CommandState::Cancelled | CommandState::Other(_) => false,
    };
    Outcome {
        key: if is_well { "success" } else { "failure" },
        value: Value::Object(value),
        is_background: it.state == CommandState::Background,
    }
}

fn todos(document: &Document, it: &TodoUpdate<'_>, around: Around<'_>) -> CursorCall {
    let changes: Vec<Value> = it
        .todos
        .iter()
        .map(
            |TodoChange {
                 id,
                 content,
                 status,
                 dependencies,
             }| {
                let known = around.todos.get(id);
                let content = content.or(known.map(|it| it.content.as_str())).unwrap_or(id);
                let status = status.clone().or(known.map(|it| it.status.clone()));
                let dependencies: Vec<String> = match dependencies {
                    Some(it) => it.iter().map(|it| (*it).to_owned()).collect(),
                    None => known.map(|it| it.dependencies.clone()).unwrap_or_default(),
                };
                let status = status.unwrap_or(TodoStatus::Pending);
                todo_write::printed(id, content, &status, &dependencies, document.started_ms)
            },
        )
        .collect();
    let arguments = json!({ "todos": changes, "merge": it.merge });
    CursorCall::known(id(document, None), "updateTodosToolCall", arguments)
}

fn plan(document: &Document, it: &Plan<'_>) -> CursorCall {
    let todos: Vec<Value> = it
        .todos
        .iter()
        .map(|todo| json!({ "id": todo.id, "content": todo.content, "dependencies": todo.dependencies }))
        .collect();
    let arguments = json!({ "name": it.title, "overview": it.overview, "plan": it.content, "todos": todos });
    CursorCall::known(id(document, None), "createPlanToolCall", arguments)
}

/// Splits the name of a foreign tool: `server__tool`. `None` for others.
fn foreign(name: &str) -> Option<(&str, &str)> {
    let (server, tool) = name.split_once("__")?;
    (!server.is_empty() && !tool.is_empty()).then_some((server, tool))
}

fn tool_call(document: &Document, it: &ToolCall<'_>) -> Option<CursorCall> {
    // Their text may still be coming.
    if document.is_open() && it.arguments.is_empty() && it.result.is_none() {
        return None;
    }
    let id = id(document, it.tool_call_id);
    let asked = Asked {
        arguments: Arguments(it.arguments),
        id: &id,
        started_ms: document.started_ms,
    };
    let tool = tools::built_in().find(it.tool_name, it.arguments);
    let name = tool.map_or(it.tool_name, |it| &it.name);
    let known = match tool.and_then(|it| it.cursor) {
        Some(shape) => Some((shape.kind, shape.arguments_of(&asked))),
        None => task(name, it.arguments).or_else(|| foreigners(name, it.arguments, &id)),
    };
    let kind = match known {
        Some((kind, arguments)) => Shape::Known { kind, arguments },
        None => Shape::Function {
            name: name.to_owned(),
            arguments: Value::Object(it.arguments.clone()),
        },
    };
    Some(CursorCall { id, kind })
}

/// A call that hands work to another agent; no tool of ours does.
fn task(name: &str, arguments: &Map<String, Value>) -> Option<(&'static str, Map<String, Value>)> {
    if name != "task" {
        return None;
    }
    let mut own = arguments.clone();
    if let Some(Value::String(kind)) = own.shift_remove("subagent_type") {
        own.insert("subagentType".to_owned(), json!({ "kind": kind }));
    }
    Some(("taskToolCall", own))
}

fn foreigners(name: &str, arguments: &Map<String, Value>, id: &str) -> Option<(&'static str, Map<String, Value>)> {
    let (server, tool) = foreign(name)?;
    let own = json!({
        "name": format!("{server}-{tool}"),
        "args": arguments,
        "toolCallId": id,
        "providerIdentifier": server,
        "toolName": tool,
    });
    Some(("mcpToolCall", object(own)))
}

fn called(document: &Document, it: &ToolCall<'_>, call: &CursorCall, around: Around<'_>) -> Outcome {
    let arguments = Arguments(it.arguments);
    let kind = match &call.kind {
        Shape::Known { kind, .. } => *kind,
        Shape::Function { .. } => "",
    };
    let mut shapes = tools::built_in().iter().filter_map(|it| it.cursor);
    let shape = shapes.find(|it| it.kind == kind);
    let subject = shape.and_then(|it| it.subject);
    let named = subject.map(|(name, names)| (name, arguments.text(names)));
    let named = named.as_slice();
    if is_rejected(document) {
        return rejected(document, named);
    }
    let Some(result) = it.result else {
        return Outcome::error("there is no result", named);
    };
    if result.failed {
        return Outcome::error(&words(result.data), named);
    }
    let nothing = Map::new();
    let answer = Answer {
        arguments,
        data: result.data,
        members: result.data.as_object().unwrap_or(&nothing),
        is_truncated: it.truncated,
        workspace: around.workspace,
    };
    Outcome::success(match (shape, kind) {
        (Some(shape), _) => (shape.result)(&answer),
        (None, "mcpToolCall") => match answer.members.get("content").filter(|it| it.is_array()) {
            Some(content) => json!({ "content": content, "isError": false }),
            None => json!({ "content": [{ "text": { "text": words(result.data) } }], "isError": false }),
        },
        (None, _) => whole(result.data),
    })
}

/// Returns true if the document describes a call.
pub fn is_call(document: &Document) -> bool {
    match document.kind {
        Kind::Plan => true,
        Kind::Clarification => document
            .clarification()
            .is_some_and(|it| it.kind == QuestionKind::Question),
        _ => document.kind.row().group == KindGroup::Action,
    }
}
