//! What was done, in the shapes of Cursor's command line: a kind such as `readToolCall`, its arguments and its result.
//!
//! Made from documents alone, so that it is the same for our own agent, a gateway and a recording. Kinds that the other
//! program does not have become `function`, which every reader of its output knows.

mod edit;
mod listing;

use std::path::{Path, PathBuf};

use serde_json::{Map, Value, json};

pub use self::edit::edit;
use self::listing::Folder;
use crate::{
    protocol::{
        Applied, CommandState, Document, Kind, QuestionKind, TodoStatus, View,
        document::{Plan, TerminalCommand, TodoChange, TodoUpdate, ToolCall},
    },
    tool,
    transcript::Todos,
};

/// What documents say nothing about.
#[derive(Clone, Copy, Debug)]
pub struct Around<'a> {
    pub workspace: &'a Path,
    /// As they are after the document.
    pub todos: &'a Todos,
}

impl Around<'_> {
    fn absolute(&self, path: &str) -> PathBuf {
        // `.` says nothing.
        self.workspace.join(path).components().collect()
    }
}

/// A call as it starts.
#[derive(Clone, Debug, PartialEq)]
pub struct Call {
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

/// How a call ended: the one key of its result, and what stands beside that.
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

    /// It did not work, and this is what is known of it.
    pub fn error(text: &str, more: &[(&str, &str)]) -> Self {
        let mut value = Map::new();
        for (name, text) in more.iter().filter(|(_, text)| !text.is_empty()) {
            value.insert((*name).to_owned(), (*text).into());
        }
        value.insert("error".to_owned(), text.into());
        Self::of("error", Value::Object(value))
    }
}

impl Call {
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

    /// What it is about, for a line of a log.
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

/// The call behind a document, as far as it is known; `None`: there is none, or its arguments have not come yet.
///
/// Edits are put together by [`edit`]: several documents may belong to one.
pub fn call(document: &Document, around: Around<'_>) -> Option<Call> {
    match document.view() {
        View::ToolCall(it) => tool_call(document, &it),
        View::TerminalCommand(it) => command(document, &it),
        View::TodoUpdate(it) => Some(todos(document, &it, around)),
        View::Plan(it) => Some(plan(document, &it)),
        View::Clarification(it) if it.kind == QuestionKind::Question => Some(Call {
            id: id(document, None),
            kind: Shape::Function {
                name: "ask_question".to_owned(),
                arguments: json!({ "title": it.content, "questions": document.metadata.get("questions") }),
            },
        }),
        View::Clarification(_)
        | View::Text(_)
        | View::CodeReference(_)
        | View::CodeBlock(_)
        | View::FileEdit(_)
        | View::Error(_)
        | View::Unknown(_) => None,
    }
}

/// How the call behind an ended document went.
pub fn outcome(document: &Document, call: &Call, around: Around<'_>) -> Outcome {
    match document.view() {
        View::ToolCall(it) => called(document, &it, call, around),
        View::TerminalCommand(it) => commanded(document, &it),
        View::TodoUpdate(it) => {
            let whole: Vec<Value> = around
                .todos
                .list
                .iter()
                .map(|it| todo(&it.id, &it.content, &it.status, &it.dependencies, document.started_ms))
                .collect();
            Outcome::success(json!({ "totalCount": whole.len(), "todos": whole, "wasMerge": it.merge }))
        }
        View::Plan(_) => Outcome::success(json!({})),
        View::Clarification(it) => match it.outcome {
            Some(crate::protocol::Outcome::Answered) => {
                Outcome::success(json!({ "answers": document.metadata.get("answers") }))
            }
            Some(_) | None => Outcome::of("rejected", json!({ "reason": "nobody answered" })),
        },
        View::Text(_)
        | View::CodeReference(_)
        | View::CodeBlock(_)
        | View::FileEdit(_)
        | View::Error(_)
        | View::Unknown(_) => Outcome::success(json!({})),
    }
}

fn id(document: &Document, id: Option<&str>) -> String {
    match id.or_else(|| text(&document.metadata, "toolCallId")) {
        Some(id) => id.to_owned(),
        None => format!("call_{}", document.id),
    }
}

/// Somebody or some rule said no.
fn rejected(document: &Document, more: &[(&str, &str)]) -> Outcome {
    let mut value = Map::new();
    for (name, text) in more.iter().filter(|(_, text)| !text.is_empty()) {
        value.insert((*name).to_owned(), (*text).into());
    }
    let reason = text(&document.metadata, "reason").unwrap_or("it was not allowed");
    value.insert("reason".to_owned(), reason.into());
    Outcome::of("rejected", Value::Object(value))
}

/// Calls of tools are not done without the user's or a rule's yes, and say so in their state.
pub fn is_rejected(document: &Document) -> bool {
    match document.view() {
        View::FileEdit(it) => it.applied == Applied::Rejected,
        View::TerminalCommand(it) => it.state == CommandState::Rejected,
        View::ToolCall(_) => text(&document.metadata, "state") == Some("rejected"),
        View::Text(_)
        | View::CodeReference(_)
        | View::CodeBlock(_)
        | View::Plan(_)
        | View::Clarification(_)
        | View::Error(_)
        | View::TodoUpdate(_)
        | View::Unknown(_) => false,
    }
}

fn command(document: &Document, it: &TerminalCommand<'_>) -> Option<Call> {
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
    Some(Call::known(id, "shellToolCall", Value::Object(arguments)))
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
    let rest = json!({
        "signal": signal,
        "stdout": it.output,
        "stderr": "",
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

fn todos(document: &Document, it: &TodoUpdate<'_>, around: Around<'_>) -> Call {
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
                todo(id, content, &status, &dependencies, document.started_ms)
            },
        )
        .collect();
    let arguments = json!({ "todos": changes, "merge": it.merge });
    Call::known(id(document, None), "updateTodosToolCall", arguments)
}

fn todo(id: &str, content: &str, status: &TodoStatus, dependencies: &[String], at_ms: u64) -> Value {
    let status = match status {
        TodoStatus::Pending | TodoStatus::Other(_) => "TODO_STATUS_PENDING",
        TodoStatus::InProgress => "TODO_STATUS_IN_PROGRESS",
        TodoStatus::Completed => "TODO_STATUS_COMPLETED",
        TodoStatus::Cancelled => "TODO_STATUS_CANCELLED",
    };
    json!({
        "id": id,
        "content": content,
        "status": status,
        "createdAt": at_ms.to_string(),
        "updatedAt": at_ms.to_string(),
        "dependencies": dependencies,
    })
}

fn plan(document: &Document, it: &Plan<'_>) -> Call {
    let todos: Vec<Value> = it
        .todos
        .iter()
        .map(|todo| json!({ "id": todo.id, "content": todo.content, "dependencies": todo.dependencies }))
        .collect();
    let arguments = json!({ "name": it.title, "overview": it.overview, "plan": it.content, "todos": todos });
    Call::known(id(document, None), "createPlanToolCall", arguments)
}

/// The name by which a tool is known here, whoever called it what.
fn canonical<'a>(it: &ToolCall<'a>) -> &'a str {
    tool::find(tool::TOOLS, it.tool_name, it.arguments).map_or(it.tool_name, |it| it.name)
}

/// Calls of tools that are somebody else's: `server__tool`.
fn foreign(name: &str) -> Option<(&str, &str)> {
    let (server, tool) = name.split_once("__")?;
    (!server.is_empty() && !tool.is_empty()).then_some((server, tool))
}

/// The arguments of a call, by any of the names that models and gateways have for them.
struct Arguments<'a>(&'a Map<String, Value>);

impl<'a> Arguments<'a> {
    fn get(&self, names: &[&str]) -> Option<&'a Value> {
        let found = names.iter().find_map(|it| self.0.get(*it));
        found.filter(|it| !it.is_null())
    }

    fn text(&self, names: &[&str]) -> &'a str {
        self.get(names).and_then(Value::as_str).unwrap_or_default()
    }

    /// Those that are there, as they are called elsewhere.
    fn into(self, names: &[(&str, &[&str])]) -> Map<String, Value> {
        let mut into = Map::new();
        for (name, from) in names {
            if let Some(value) = self.get(from) {
                into.insert((*name).to_owned(), value.clone());
            }
        }
        into
    }
}

const PATH: &[&str] = &["target_file", "filePath", "file_path", "path", "file"];
const FOLDER: &[&str] = &["target_directory", "targetDirectory", "path", "directory", "filePath"];

fn tool_call(document: &Document, it: &ToolCall<'_>) -> Option<Call> {
    // Their text may still be coming.
    if document.is_open() && it.arguments.is_empty() && it.result.is_none() {
        return None;
    }
    let id = id(document, it.tool_call_id);
    let arguments = Arguments(it.arguments);
    let or_path = |arguments: &mut Map<String, Value>| {
        arguments.entry("path").or_insert_with(|| ".".into());
    };
    let (kind, arguments) = match canonical(it) {
        "read_file" => (
            "readToolCall",
            arguments.into(&[("path", PATH), ("offset", &["offset"]), ("limit", &["limit"])]),
        ),
        "grep" => (
            "grepToolCall",
            arguments.into(&[
                ("pattern", &["pattern"]),
                ("path", &["path"]),
                ("glob", &["glob"]),
                ("outputMode", &["output_mode", "outputMode"]),
                ("contextBefore", &["-B", "contextBefore"]),
                ("contextAfter", &["-A", "contextAfter"]),
                ("context", &["-C", "context"]),
                ("caseInsensitive", &["-i", "case_insensitive", "caseInsensitive"]),
                ("type", &["type"]),
                ("headLimit", &["head_limit", "headLimit"]),
                ("offset", &["offset"]),
                ("multiline", &["multiline"]),
            ]),
        ),
        "glob_file_search" => (
            "globToolCall",
            arguments.into(&[
                ("globPattern", &["glob_pattern", "globPattern", "pattern"]),
                ("targetDirectory", FOLDER),
            ]),
        ),
        "list_dir" => {
            let mut arguments = arguments.into(&[("path", FOLDER), ("ignore", &["ignore_globs", "ignore"])]);
            or_path(&mut arguments);
            arguments.entry("ignore").or_insert_with(|| json!([]));
            arguments.insert("toolCallId".to_owned(), id.clone().into());
            ("lsToolCall", arguments)
        }
        "codebase_search" => {
            let mut arguments = arguments.into(&[
                ("query", &["query"]),
                ("targetDirectories", &["target_directories", "targetDirectories"]),
                ("explanation", &["explanation"]),
            ]);
            arguments.entry("targetDirectories").or_insert_with(|| json!([]));
            ("semSearchToolCall", arguments)
        }
        "read_lints" => ("readLintsToolCall", arguments.into(&[("paths", &["paths"])])),
        "web_fetch" => {
            let mut arguments = arguments.into(&[("url", &["url"])]);
            arguments.insert("toolCallId".to_owned(), id.clone().into());
            ("webFetchToolCall", arguments)
        }
        "task" => {
            let mut own = arguments.0.clone();
            if let Some(Value::String(kind)) = own.shift_remove("subagent_type") {
                own.insert("subagentType".to_owned(), json!({ "kind": kind }));
            }
            ("taskToolCall", own)
        }
        name => match another(name, it.arguments, &id, document).or_else(|| foreigners(name, it.arguments, &id)) {
            Some(known) => known,
            None => {
                return Some(Call {
                    id,
                    kind: Shape::Function {
                        name: name.to_owned(),
                        arguments: Value::Object(it.arguments.clone()),
                    },
                });
            }
        },
    };
    Some(Call {
        id,
        kind: Shape::Known { kind, arguments },
    })
}

/// Tools whose documents are of another kind: called by somebody whose documents are not, or refused before there was one.
fn another(
    name: &str,
    all: &Map<String, Value>,
    id: &str,
    document: &Document,
) -> Option<(&'static str, Map<String, Value>)> {
    let arguments = Arguments(all);
    let known = |arguments: &mut Map<String, Value>| {
        arguments.insert("toolCallId".to_owned(), id.into());
    };
    Some(match name {
        "delete_file" => {
            let mut own = arguments.into(&[("path", PATH)]);
            known(&mut own);
            ("deleteToolCall", own)
        }
        "write" => {
            let mut own = arguments.into(&[("path", PATH), ("fileText", &["contents", "content", "file_text"])]);
            known(&mut own);
            ("writeToolCall", own)
        }
        "edit_file" | "search_replace" | "apply_patch" | "edit_notebook" => {
            let meant = edit::meant(all);
            let mut own = arguments.into(&[("path", &["file_path", "target_file", "target_notebook", "path"])]);
            own.extend(meant);
            ("editToolCall", own)
        }
        "run_terminal_cmd" => {
            let mut own = arguments.into(&[
                ("command", &["command"]),
                ("workingDirectory", &["working_directory", "workingDirectory", "cwd"]),
                ("timeout", &["timeout"]),
            ]);
            known(&mut own);
            ("shellToolCall", own)
        }
        "todo_write" => {
            let text = |it: &Value, name: &str| it.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
            let given = arguments.get(&["todos"]).and_then(Value::as_array);
            let todos = given.into_iter().flatten().map(|it| {
                let needs = it.get("dependencies").and_then(Value::as_array);
                let needs: Vec<_> = needs.into_iter().flatten().map(words).collect();
                let status = TodoStatus::parse(&text(it, "status"));
                todo(
                    &text(it, "id"),
                    &text(it, "content"),
                    &status,
                    &needs,
                    document.started_ms,
                )
            });
            let todos: Vec<_> = todos.collect();
            let merge = arguments.get(&["merge"]).and_then(Value::as_bool).unwrap_or(true);
            ("updateTodosToolCall", object(json!({ "todos": todos, "merge": merge })))
        }
        "create_plan" => {
            let own = arguments.into(&[
                ("name", &["name"]),
                ("overview", &["overview"]),
                ("plan", &["plan"]),
                ("todos", &["todos"]),
            ]);
            ("createPlanToolCall", own)
        }
        _ => return None,
    })
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

fn called(document: &Document, it: &ToolCall<'_>, call: &Call, around: Around<'_>) -> Outcome {
    let arguments = Arguments(it.arguments);
    let path = arguments.text(PATH);
    let url = arguments.text(&["url"]);
    let command = arguments.text(&["command"]);
    let named: &[(&str, &str)] = match &call.kind {
        Shape::Known {
            kind: "readToolCall" | "deleteToolCall" | "writeToolCall" | "editToolCall",
            ..
        } => &[("path", path)],
        Shape::Known {
            kind: "shellToolCall", ..
        } => &[("command", command)],
        Shape::Known {
            kind: "webFetchToolCall",
            ..
        } => &[("url", url)],
        Shape::Known { .. } | Shape::Function { .. } => &[],
    };
    if is_rejected(document) {
        return rejected(document, named);
    }
    let Some(result) = it.result else {
        return Outcome::error("there is no result", named);
    };
    if result.failed {
        return Outcome::error(&words(result.data), named);
    }
    let data = result.data;
    let nothing = Map::new();
    let members = data.as_object().unwrap_or(&nothing);
    let Shape::Known { kind, .. } = &call.kind else {
        return Outcome::success(whole(data));
    };
    Outcome::success(match *kind {
        "readToolCall" => read(data, members, path, it.truncated, around),
        "grepToolCall" => grepped(data, members, &arguments, around),
        "globToolCall" => {
            let files = members.get("files").or(Some(data)).and_then(Value::as_array);
            let files = files.cloned().unwrap_or_else(|| lines(data));
            json!({
                "pattern": arguments.text(&["glob_pattern", "globPattern", "pattern"]),
                "path": around.absolute(arguments.text(FOLDER)),
                "totalFiles": members.get("totalFiles").cloned().unwrap_or_else(|| files.len().into()),
                "files": files,
                "clientTruncated": it.truncated,
                "ripgrepTruncated": false,
            })
        }
        "lsToolCall" => {
            let entries = members.get("entries").or(Some(data)).and_then(Value::as_array);
            let entries = entries.cloned().unwrap_or_else(|| lines(data));
            let root = around.absolute(arguments.text(FOLDER));
            json!({ "directoryTreeRoot": Folder::of(&entries).to_json(&root, !it.truncated) })
        }
        "semSearchToolCall" => json!({ "results": found(data, members) }),
        "webFetchToolCall" => json!({
            "url": text(members, "url").unwrap_or(url),
            "markdown": text(members, "markdown").or(data.as_str()).unwrap_or_default(),
        }),
        "readLintsToolCall" => json!({ "fileDiagnostics": lints(members) }),
        "mcpToolCall" => match members.get("content").filter(|it| it.is_array()) {
            Some(content) => json!({ "content": content, "isError": false }),
            None => json!({ "content": [{ "text": { "text": words(data) } }], "isError": false }),
        },
        "deleteToolCall" => json!({ "path": around.absolute(path), "message": words(data) }),
        _ => whole(data),
    })
}

fn read(data: &Value, members: &Map<String, Value>, path: &str, is_cut: bool, around: Around<'_>) -> Value {
    let content = text(members, "content").or(data.as_str()).unwrap_or_default();
    let lines = content.lines().count();
    let total = members
        .get("totalLines")
        .and_then(Value::as_u64)
        .unwrap_or(lines as u64);
    let mut success = object(json!({
        "content": content,
        "isEmpty": content.is_empty(),
        "exceededLimit": is_cut,
        "totalLines": total,
        "totalChars": content.chars().count(),
    }));
    if let Some(size) = members.get("fileSize") {
        success.insert("fileSize".to_owned(), size.clone());
    }
    success.insert("path".to_owned(), json!(around.absolute(path)));
    if let (Some(first), Some(last)) = (members.get("startLine"), members.get("endLine")) {
        success.insert("readRange".to_owned(), json!({ "startLine": first, "endLine": last }));
    }
    Value::Object(success)
}

fn grepped(data: &Value, members: &Map<String, Value>, arguments: &Arguments<'_>, around: Around<'_>) -> Value {
    let asked = arguments.text(&["output_mode", "outputMode"]);
    let mode = text(members, "mode").unwrap_or(if asked.is_empty() { "content" } else { asked });
    let hits = members.get("matches").and_then(Value::as_array);
    let file = |it: &Value| {
        it.get("filePath")
            .and_then(Value::as_str)
            .unwrap_or_default()
            .to_owned()
    };
    let results = match (mode, hits) {
        ("files_with_matches", Some(hits)) => {
            let files: Vec<_> = hits.iter().map(file).collect();
            json!({ "files": { "files": files, "totalFiles": members.get("fileCount") } })
        }
        ("count", Some(hits)) => {
            let counts: Vec<_> = hits
                .iter()
                .map(|it| json!({ "file": file(it), "count": it.get("count") }))
                .collect();
            json!({ "count": { "counts": counts, "totalMatches": members.get("matchCount") } })
        }
        (_, Some(hits)) => {
            let mut files: Vec<(String, Vec<Value>)> = Vec::new();
            for hit in hits {
                let name = file(hit);
                if files.last().is_none_or(|(last, _)| *last != name) {
                    files.push((name, Vec::new()));
                }
                if let Some((_, lines)) = files.last_mut() {
                    lines.push(json!({
                        "lineNumber": hit.get("line"),
                        "content": hit.get("text"),
                        "contentTruncated": false,
                        "isContextLine": hit.get("isContext").and_then(Value::as_bool).unwrap_or_default(),
                    }));
                }
            }
            let matches: Vec<_> = files
                .into_iter()
                .map(|(file, matches)| json!({ "file": file, "matches": matches }))
                .collect();
            json!({ "content": { "matches": matches } })
        }
        // Somebody else's search, told as text.
        (_, None) => json!({ "content": { "matches": [], "text": words(data) } }),
    };
    let root = around.workspace.to_string_lossy().into_owned();
    json!({
        "pattern": arguments.text(&["pattern"]),
        "path": arguments.text(&["path"]),
        "outputMode": mode,
        "workspaceResults": { root: results },
    })
}

/// What a search of code found, as elements of XML.
fn found(data: &Value, members: &Map<String, Value>) -> String {
    let Some(chunks) = members.get("chunks").and_then(Value::as_array) else {
        return words(data);
    };
    let mut results = String::new();
    for chunk in chunks {
        let word = |name: &str| chunk.get(name).map(words).unwrap_or_default();
        let path = word("filePath")
            .replace('&', "&amp;")
            .replace('"', "&quot;")
            .replace('<', "&lt;");
        results.push_str(&format!(
            "<search_result path=\"{path}\" startLine=\"{}\" endLine=\"{}\">\n{}\n</search_result>\n",
            word("startLine"),
            word("endLine"),
            word("text").trim_end(),
        ));
    }
    results
}

fn lints(members: &Map<String, Value>) -> Vec<Value> {
    let files = members.get("fileDiagnostics").and_then(Value::as_array);
    let files = files.map(Vec::as_slice).unwrap_or_default();
    let place = |it: &Value| {
        let at = |name: &str| it.get(name).and_then(Value::as_u64).unwrap_or(1).saturating_sub(1);
        // Counted from nought, as language servers do.
        json!({ "line": at("line"), "character": at("column") })
    };
    let one = |it: &Value| {
        if it.get("range").is_some() {
            return it.clone();
        }
        json!({
            "severity": it.get("severity"),
            "range": { "start": place(it), "end": place(it) },
            "message": it.get("message"),
            "source": it.get("source"),
            "code": it.get("code"),
        })
    };
    let file = |it: &Value| {
        let found = it.get("diagnostics").and_then(Value::as_array);
        let found: Vec<Value> = found.into_iter().flatten().map(one).collect();
        json!({ "path": it.get("filePath").or(it.get("path")), "diagnostics": found })
    };
    files.iter().map(file).collect()
}

/// Whether a call stands behind a document of this kind.
pub fn is_call(document: &Document) -> bool {
    match document.kind {
        Kind::ToolCall | Kind::TerminalCommand | Kind::FileEdit | Kind::TodoUpdate | Kind::Plan => true,
        Kind::Clarification => {
            matches!(document.view(), View::Clarification(it) if it.kind == QuestionKind::Question)
        }
        Kind::Text | Kind::CodeReference | Kind::CodeBlock | Kind::Error | Kind::Other(_) => false,
    }
}

/// A value as text, texts without their quotes.
fn words(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Null => String::new(),
        other => other.to_string(),
    }
}

/// A result that has no shape of its own.
fn whole(data: &Value) -> Value {
    match data {
        Value::Object(_) => data.clone(),
        Value::Null => json!({}),
        other => json!({ "output": words(other) }),
    }
}

fn lines(data: &Value) -> Vec<Value> {
    let text = data.as_str().unwrap_or_default();
    text.lines()
        .map(str::trim)
        .filter(|it| !it.is_empty())
        .map(Value::from)
        .collect()
}

fn text<'a>(members: &'a Map<String, Value>, name: &str) -> Option<&'a str> {
    members.get(name).and_then(Value::as_str)
}

fn object(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(members) => members,
        _ => Map::new(),
    }
}
