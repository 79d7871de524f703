//! What a hook is told, in the form that its program expects: exact for Cursor and Claude Code. Pure.

use std::path::Path;

use globset::GlobBuilder;
use serde_json::{Map, Value, json};
use url::Url;

use super::{Dialect, Point};
use crate::shell::CommandLine;

/// Facts that every hook is told.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Common {
    pub conversation: String,
    /// The answer that is being made; `""` if none is.
    pub generation: String,
    pub model: String,
    /// The root of the workspace.
    pub root: String,
    /// `agent`, `plan`, `ask`, `debug`
    pub mode: String,
    /// The reasoning effort; `""`: automatic.
    pub effort: String,
}

/// A call of a tool, by our names.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ToolCall {
    pub id: String,
    pub name: String,
    pub arguments: Map<String, Value>,
    /// The server and the tool, if it is an MCP server's.
    pub mcp: Option<(String, String)>,
    /// The file that it is about, of several in one argument.
    pub file: Option<String>,
    /// The folder in which a command runs.
    pub directory: String,
    /// The root of the workspace.
    pub root: String,
}

/// The reason why a hook is called, with what is known of it.
#[derive(Clone, Debug, PartialEq)]
pub enum Occasion {
    /// `startup` or `resume`
    SessionStart {
        source: String,
    },
    SessionEnd {
        duration_ms: u64,
    },
    Prompt {
        text: String,
        /// Files that the message names, absolute.
        files: Vec<String>,
    },
    ToolBefore(ToolCall),
    ToolAfter {
        call: ToolCall,
        output: String,
        data: Value,
        duration_ms: u64,
    },
    ToolFailed {
        call: ToolCall,
        error: String,
        is_timeout: bool,
        is_denied: bool,
        duration_ms: u64,
    },
    ShellBefore {
        call: ToolCall,
        command: String,
        timeout_ms: u64,
        is_sandboxed: bool,
    },
    McpBefore(ToolCall),
    ReadBefore {
        call: ToolCall,
        /// Absolute.
        path: String,
        content: String,
    },
    EditAfter {
        /// The id of the call that changed it.
        call: String,
        /// Absolute.
        path: String,
        /// The old and the new text of each place.
        edits: Vec<(String, String)>,
    },
    CompactBefore {
        is_asked: bool,
        /// What the summary is to keep, in the user's words.
        keep: String,
        tokens: u64,
        window: Option<u64>,
        messages: usize,
        /// Messages that the summary replaces.
        replaced: usize,
        is_first: bool,
    },
    Stop {
        /// `completed`, `aborted` or `error`
        status: &'static str,
        /// Number of times that a hook has gone on with this answer.
        loops: u32,
        last_message: String,
    },
    Notification {
        message: String,
        /// `permission_prompt`, `idle_prompt`, `elicitation_dialog`
        kind: &'static str,
    },
}

impl Occasion {
    /// The id of the call that it is about. Empty: it is about none.
    pub fn call_id(&self) -> &str {
        match self {
            Self::EditAfter { call, .. } => call,
            other => other.call().map_or("", |it| it.id.as_str()),
        }
    }

    /// Returns true if something waits for its hooks.
    pub fn is_waited_for(&self) -> bool {
        !matches!(self, Self::Notification { .. } | Self::SessionEnd { .. })
    }

    /// The point at which its hooks are called.
    pub fn point(&self) -> Point {
        match self {
            Self::SessionStart { .. } => Point::SessionStart,
            Self::SessionEnd { .. } => Point::SessionEnd,
            Self::Prompt { .. } => Point::Prompt,
            Self::ToolBefore(_) => Point::ToolBefore,
            Self::ToolAfter { .. } => Point::ToolAfter,
            Self::ToolFailed { .. } => Point::ToolFailed,
            Self::ShellBefore { .. } => Point::ShellBefore,
            Self::McpBefore(_) => Point::McpBefore,
            Self::ReadBefore { .. } => Point::ReadBefore,
            Self::EditAfter { .. } => Point::EditAfter,
            Self::CompactBefore { .. } => Point::CompactBefore,
            Self::Stop { .. } => Point::Stop,
            Self::Notification { .. } => Point::Notification,
        }
    }

    /// The call that it is about.
    fn call(&self) -> Option<&ToolCall> {
        match self {
            Self::ToolBefore(call)
            | Self::ToolAfter { call, .. }
            | Self::ToolFailed { call, .. }
            | Self::ShellBefore { call, .. }
            | Self::McpBefore(call)
            | Self::ReadBefore { call, .. } => Some(call),
            Self::SessionStart { .. }
            | Self::SessionEnd { .. }
            | Self::Prompt { .. }
            | Self::EditAfter { .. }
            | Self::CompactBefore { .. }
            | Self::Stop { .. }
            | Self::Notification { .. } => None,
        }
    }

    /// The texts that a matcher is compared with.
    pub fn subjects(&self, dialect: Dialect) -> Vec<String> {
        match self {
            Self::ShellBefore { command, .. } => vec![command.clone()],
            Self::ToolBefore(call) | Self::ToolAfter { call, .. } | Self::ToolFailed { call, .. } => {
                let name = tool(dialect, call).0;
                match dialect {
                    // A guard for writing means every tool that writes.
                    Dialect::Sheaf => vec![call.name.clone(), kind(&name).to_owned(), name],
                    Dialect::Cursor => vec![kind(&name).to_owned(), name],
                    Dialect::Claude => vec![name],
                }
            }
            Self::McpBefore(call) => vec![tool(dialect, call).0],
            Self::ReadBefore { path, .. } => vec!["Read".to_owned(), path.clone()],
            Self::EditAfter { path, .. } => vec!["Write".to_owned(), path.clone()],
            Self::SessionStart { source } => vec![source.clone()],
            Self::CompactBefore { is_asked, .. } => vec![trigger(*is_asked).to_owned()],
            Self::Notification { kind, .. } => vec![(*kind).to_owned()],
            Self::SessionEnd { .. } | Self::Prompt { .. } | Self::Stop { .. } => vec![String::new()],
        }
    }

    /// Returns true if its call fits a permission rule in Claude Code's form; other occasions fit none.
    pub fn fits(&self, rule: &str) -> bool {
        let Some(call) = self.call() else { return false };
        let (name, input) = tool(Dialect::Claude, call);
        let Some((wanted, inner)) = rule.trim().strip_suffix(')').and_then(|it| it.split_once('(')) else {
            return name == rule.trim();
        };
        if wanted != name {
            return false;
        }
        let text = |member: &str| input.get(member).and_then(Value::as_str);
        if let Some(command) = text("command") {
            let fits = |command: &str| match inner.strip_suffix(":*").or_else(|| inner.strip_suffix(" *")) {
                Some(begin) => {
                    let rest = command.trim().strip_prefix(begin);
                    rest.is_some_and(|it| it.is_empty() || it.starts_with(char::is_whitespace))
                }
                None => glob(inner, command.trim()),
            };
            // Each command of the line counts, whatever stands before it.
            let line = CommandLine::read(command);
            let mut parts = line.commands.iter().map(|it| {
                let words: Vec<&str> = it
                    .words
                    .iter()
                    .map(|it| it.text.as_deref().unwrap_or(&it.source))
                    .collect();
                words.join(" ")
            });
            return fits(command) || parts.any(|it| fits(&it));
        }
        if let Some(path) = text("file_path")
            .or_else(|| text("path"))
            .or_else(|| text("notebook_path"))
        {
            let inner = inner.trim_start_matches("./");
            let relative = path
                .strip_prefix(&call.root)
                .map_or(path, |it| it.trim_start_matches('/'));
            let file = Path::new(path)
                .file_name()
                .and_then(|it| it.to_str())
                .unwrap_or_default();
            return glob(inner, relative) || glob(inner, path) || (!inner.contains('/') && glob(inner, file));
        }
        let Some(url) = text("url") else { return false };
        match (inner.strip_prefix("domain:"), Url::parse(url)) {
            (Some(domain), Ok(url)) => url.host_str().is_some_and(|host| {
                let below = host
                    .strip_suffix(domain)
                    .is_some_and(|it| it.is_empty() || it.ends_with('.'));
                below || host == domain
            }),
            (Some(_), Err(_)) => false,
            (None, _) => url.contains(inner),
        }
    }
}

fn glob(pattern: &str, text: &str) -> bool {
    let built = GlobBuilder::new(pattern).literal_separator(false).build();
    built.is_ok_and(|it| it.compile_matcher().is_match(text))
}

fn trigger(is_asked: bool) -> &'static str {
    if is_asked { "manual" } else { "auto" }
}

/// The kind of tool that Cursor's matchers name.
fn kind(name: &str) -> &str {
    match name {
        "StrReplace" | "EditNotebook" | "ApplyPatch" => "Write",
        "Glob" | "LS" | "SemanticSearch" => "Grep",
        name => name,
    }
}

/// The name and the arguments of a call as a program knows them.
pub fn tool(dialect: Dialect, call: &ToolCall) -> (String, Value) {
    let arguments = &call.arguments;
    if let Some((server, tool)) = &call.mcp {
        let name = match dialect {
            Dialect::Sheaf | Dialect::Cursor => format!("MCP:{tool}"),
            Dialect::Claude => format!("mcp__{server}__{tool}"),
        };
        return (name, Value::Object(arguments.clone()));
    }
    let is_claude = dialect == Dialect::Claude;
    let text = |name: &str| arguments.get(name).and_then(Value::as_str).unwrap_or_default();
    let file = |name: &str| Value::from(absolute(&call.root, text(name)));
    let mut members = Map::new();
    let name = match call.name.as_str() {
        "run_terminal_cmd" => {
            members.insert("command".into(), text("command").into());
            put(&mut members, "description", arguments.get("explanation"));
            if is_claude {
                put(&mut members, "timeout", arguments.get("timeout_ms"));
                put(&mut members, "run_in_background", arguments.get("is_background"));
                "Bash"
            } else {
                put(&mut members, "working_directory", arguments.get("working_directory"));
                "Shell"
            }
        }
        "read_file" => {
            members.insert(if is_claude { "file_path" } else { "path" }.into(), file("target_file"));
            put(&mut members, "limit", arguments.get("limit"));
            put(&mut members, "offset", arguments.get("offset"));
            "Read"
        }
        "write" => {
            members.insert("file_path".into(), file("file_path"));
            members.insert("content".into(), text("contents").into());
            "Write"
        }
        "search_replace" => {
            members.insert(if is_claude { "file_path" } else { "path" }.into(), file("file_path"));
            members.insert("old_string".into(), text("old_string").into());
            members.insert("new_string".into(), text("new_string").into());
            put(&mut members, "edits", arguments.get("edits"));
            put(&mut members, "replace_all", arguments.get("replace_all"));
            if is_claude { "Edit" } else { "StrReplace" }
        }
        "rename_symbol" => {
            let path = call
                .file
                .as_deref()
                .map_or_else(|| file("file_path"), |it| absolute(&call.root, it).into());
            members.insert(if is_claude { "file_path" } else { "path" }.into(), path);
            members.insert("old_string".into(), text("symbol").into());
            members.insert("new_string".into(), text("new_name").into());
            if is_claude { "Edit" } else { "StrReplace" }
        }
        "edit_file" if is_claude => {
            members.insert("file_path".into(), file("target_file"));
            members.insert("old_string".into(), "".into());
            members.insert("new_string".into(), text("code_edit").into());
            "Edit"
        }
        "edit_file" => {
            members.insert("file_path".into(), file("target_file"));
            members.insert("content".into(), text("code_edit").into());
            "Write"
        }
        "apply_patch" => {
            let patch = arguments.values().find_map(Value::as_str).unwrap_or_default();
            let files = call.patched_files();
            let path = call.file.as_ref().or_else(|| files.first()).map_or("", String::as_str);
            members.insert("file_path".into(), absolute(&call.root, path).into());
            members.insert("patch".into(), patch.into());
            if is_claude {
                let (before, after) = replaced(patch, path);
                members.insert("old_string".into(), before.into());
                members.insert("new_string".into(), after.into());
            }
            if is_claude { "Edit" } else { "ApplyPatch" }
        }
        "edit_notebook" => {
            members.clone_from(arguments);
            let path = file("target_notebook");
            members.shift_remove("target_notebook");
            members.insert(if is_claude { "notebook_path" } else { "path" }.into(), path);
            if is_claude { "NotebookEdit" } else { "EditNotebook" }
        }
        "delete_file" => {
            members.insert(if is_claude { "file_path" } else { "path" }.into(), file("target_file"));
            "Delete"
        }
        "grep" => {
            for name in ["pattern", "path", "glob", "head_limit"] {
                put(&mut members, name, arguments.get(name));
            }
            "Grep"
        }
        "glob_file_search" => {
            let (pattern, folder) = if is_claude {
                ("pattern", "path")
            } else {
                ("glob_pattern", "target_directory")
            };
            members.insert(pattern.into(), text("glob_pattern").into());
            put(&mut members, folder, arguments.get("target_directory"));
            "Glob"
        }
        "list_dir" => {
            members.insert("path".into(), file("target_directory"));
            "LS"
        }
        "codebase_search" => {
            members.clone_from(arguments);
            "SemanticSearch"
        }
        "web_fetch" => {
            members.insert("url".into(), text("url").into());
            "WebFetch"
        }
        "web_search" => {
            let name = if is_claude { "query" } else { "search_term" };
            members.insert(name.into(), text("search_term").into());
            "WebSearch"
        }
        "todo_write" => {
            members.clone_from(arguments);
            "TodoWrite"
        }
        "skill" => {
            members.insert("skill".into(), text("name").into());
            put(&mut members, "args", arguments.get("arguments"));
            "Skill"
        }
        name => {
            members.clone_from(arguments);
            name
        }
    };
    (name.to_owned(), Value::Object(members))
}

fn put(members: &mut Map<String, Value>, name: &str, value: Option<&Value>) {
    if let Some(value) = value {
        members.insert(name.to_owned(), value.clone());
    }
}

/// Marks of a patch that a path follows.
const FILE_MARKS: [&str; 4] = [
    "*** Update File: ",
    "*** Add File: ",
    "*** Delete File: ",
    "*** Move to: ",
];

fn named(line: &str) -> Option<&str> {
    FILE_MARKS
        .iter()
        .find_map(|mark| line.strip_prefix(mark))
        .map(str::trim)
}

/// Returns the files that a patch names, in its order, with those to which it moves some. It may be in no form at all.
pub fn patched_files(patch: &str) -> impl Iterator<Item = &str> {
    patch.lines().filter_map(named)
}

impl ToolCall {
    /// All files that a patch names, with those to which it moves some; none for another tool.
    pub fn patched_files(&self) -> Vec<String> {
        let mut files: Vec<String> = Vec::new();
        if self.name == "apply_patch" {
            let patch = self.arguments.values().find_map(Value::as_str).unwrap_or_default();
            for file in patched_files(patch) {
                if !files.iter().any(|it| it == file) {
                    files.push(file.to_owned());
                }
            }
        }
        files
    }
}

/// The lines of a file that a patch replaces, and those that it puts there.
fn replaced(patch: &str, path: &str) -> (String, String) {
    let (mut before, mut after) = (String::new(), String::new());
    let mut is_it = false;
    for line in patch.lines() {
        if let Some(file) = named(line) {
            // A new name belongs to the file above it.
            is_it = file == path || is_it && line.starts_with("*** Move to: ");
            continue;
        }
        if !is_it || line.starts_with("***") || line.starts_with("@@") {
            continue;
        }
        let mut both = [
            (&mut before, line.strip_prefix('-')),
            (&mut after, line.strip_prefix('+')),
        ];
        let is_changed = both.iter().any(|it| it.1.is_some());
        let same = line.strip_prefix(' ').unwrap_or(line);
        for (to, own) in &mut both {
            if let Some(text) = own.or((!is_changed).then_some(same)) {
                to.push_str(text);
                to.push('\n');
            }
        }
    }
    (before, after)
}

fn absolute(root: &str, path: &str) -> String {
    Path::new(root).join(path).to_string_lossy().into_owned()
}

/// The version that hooks are told.
fn version() -> String {
    format!("sheaf/{}", env!("CARGO_PKG_VERSION"))
}

/// The input of a hook for `event`, in its form.
pub fn hook_input(dialect: Dialect, event: &str, common: &Common, occasion: &Occasion) -> Value {
    let mut members = match dialect {
        Dialect::Sheaf | Dialect::Cursor => cursor(event, common),
        Dialect::Claude => claude(event, common),
    };
    let own = match dialect {
        Dialect::Sheaf | Dialect::Cursor => cursor_own(common, occasion),
        Dialect::Claude => claude_own(common, occasion),
    };
    if let Value::Object(own) = own {
        members.extend(own);
    }
    Value::Object(members)
}

fn object(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(members) => members,
        _ => Map::new(),
    }
}

fn cursor(event: &str, common: &Common) -> Map<String, Value> {
    object(json!({
        "conversation_id": common.conversation,
        "generation_id": common.generation,
        "model": common.model,
        "hook_event_name": event,
        "cursor_version": version(),
        "workspace_roots": [common.root],
        "user_email": null,
        "transcript_path": null,
    }))
}

fn cursor_own(common: &Common, occasion: &Occasion) -> Value {
    let with_tool = |call: &ToolCall| {
        let (name, input) = tool(Dialect::Cursor, call);
        object(json!({
            "tool_name": name,
            "tool_input": input,
            "tool_use_id": call.id,
            "cwd": call.directory,
        }))
    };
    match occasion {
        Occasion::SessionStart { .. } => json!({
            "session_id": common.conversation,
            "is_background_agent": false,
            "composer_mode": common.mode,
        }),
        Occasion::SessionEnd { duration_ms } => json!({
            "session_id": common.conversation,
            "reason": "user_close",
            "duration_ms": duration_ms,
            "final_status": "completed",
        }),
        Occasion::Prompt { text, files } => {
            let attachments: Vec<Value> = files
                .iter()
                .map(|it| json!({ "type": "file", "filePath": it }))
                .collect();
            json!({ "prompt": text, "attachments": attachments })
        }
        Occasion::ToolBefore(call) => {
            let mut members = with_tool(call);
            members.insert("agent_message".into(), "".into());
            Value::Object(members)
        }
        Occasion::ToolAfter {
            call,
            output,
            data: _,
            duration_ms,
        } => {
            let mut members = with_tool(call);
            members.insert("tool_output".into(), output.as_str().into());
            members.insert("duration".into(), (*duration_ms).into());
            Value::Object(members)
        }
        Occasion::ToolFailed {
            call,
            error,
            is_timeout,
            is_denied,
            duration_ms,
        } => {
            let kind = match (is_timeout, is_denied) {
                (true, _) => "timeout",
                (false, true) => "permission_denied",
                (false, false) => "error",
            };
            let mut members = with_tool(call);
            members.insert("error_message".into(), error.as_str().into());
            members.insert("failure_type".into(), kind.into());
            members.insert("duration".into(), (*duration_ms).into());
            members.insert("is_interrupt".into(), false.into());
            Value::Object(members)
        }
        Occasion::ShellBefore {
            call,
            command,
            timeout_ms,
            is_sandboxed,
        } => json!({
            "command": command,
            "cwd": call.directory,
            "timeout": timeout_ms,
            "sandbox": is_sandboxed,
        }),
        Occasion::McpBefore(call) => {
            let server = call.mcp.as_ref().map(|it| it.0.as_str()).unwrap_or_default();
            let (name, input) = tool(Dialect::Cursor, call);
            let name = name.trim_start_matches("MCP:").to_owned();
            json!({ "tool_name": name, "tool_input": input.to_string(), "command": server })
        }
        Occasion::ReadBefore { path, content, .. } => json!({
            "file_path": path,
            "content": content,
            "attachments": [],
        }),
        Occasion::EditAfter { path, edits, .. } => {
            let edit = |it: &(String, String)| json!({ "old_string": it.0, "new_string": it.1 });
            json!({ "file_path": path, "edits": edits.iter().map(edit).collect::<Vec<_>>() })
        }
        Occasion::CompactBefore {
            is_asked,
            keep: _,
            tokens,
            window,
            messages,
            replaced,
            is_first,
        } => {
            let size = window.unwrap_or_default();
            let percent = tokens.saturating_mul(100).checked_div(size).unwrap_or_default();
            json!({
                "trigger": trigger(*is_asked),
                "context_usage_percent": percent,
                "context_tokens": tokens,
                "context_window_size": size,
                "message_count": messages,
                "messages_to_compact": replaced,
                "is_first_compaction": is_first,
            })
        }
        Occasion::Stop { status, loops, .. } => json!({ "status": status, "loop_count": loops }),
        Occasion::Notification { message, kind } => json!({ "message": message, "notification_type": kind }),
    }
}

fn claude(event: &str, common: &Common) -> Map<String, Value> {
    let mode = match common.mode.as_str() {
        "plan" | "ask" => "plan",
        _ => "default",
    };
    let mut members = object(json!({
        "session_id": common.conversation,
        "transcript_path": "",
        "cwd": common.root,
        "hook_event_name": event,
        "permission_mode": mode,
    }));
    if !common.generation.is_empty() {
        members.insert("prompt_id".into(), common.generation.as_str().into());
    }
    if !common.effort.is_empty() {
        members.insert("effort".into(), json!({ "level": common.effort }));
    }
    members
}

fn claude_own(common: &Common, occasion: &Occasion) -> Value {
    let with_tool = |call: &ToolCall| {
        let (name, input) = tool(Dialect::Claude, call);
        object(json!({ "tool_name": name, "tool_input": input, "tool_use_id": call.id }))
    };
    match occasion {
        Occasion::SessionStart { source } => json!({ "source": source, "model": common.model }),
        Occasion::SessionEnd { .. } => json!({ "reason": "other" }),
        Occasion::Prompt { text, .. } => json!({ "prompt": text }),
        Occasion::ToolBefore(call) | Occasion::ShellBefore { call, .. } | Occasion::McpBefore(call) => {
            Value::Object(with_tool(call))
        }
        Occasion::ReadBefore { call, .. } => Value::Object(with_tool(call)),
        Occasion::ToolAfter {
            call,
            output,
            data,
            duration_ms,
        } => {
            let mut members = with_tool(call);
            members.insert("tool_response".into(), response(call, output, data));
            members.insert("duration_ms".into(), (*duration_ms).into());
            Value::Object(members)
        }
        Occasion::ToolFailed {
            call,
            error,
            duration_ms,
            ..
        } => {
            let mut members = with_tool(call);
            members.insert("error".into(), error.as_str().into());
            members.insert("is_interrupt".into(), false.into());
            members.insert("duration_ms".into(), (*duration_ms).into());
            Value::Object(members)
        }
        Occasion::EditAfter { path, .. } => json!({ "file_path": path, "event": "change" }),
        Occasion::CompactBefore { is_asked, keep, .. } => {
            json!({ "trigger": trigger(*is_asked), "custom_instructions": keep })
        }
        Occasion::Stop {
            loops, last_message, ..
        } => json!({
            "stop_hook_active": *loops > 0,
            "last_assistant_message": last_message,
            "background_tasks": [],
        }),
        Occasion::Notification { message, kind } => json!({ "message": message, "notification_type": kind }),
    }
}

/// The result of a call in Claude Code's form.
fn response(call: &ToolCall, output: &str, data: &Value) -> Value {
    match call.name.as_str() {
        "run_terminal_cmd" => json!({
            "stdout": output,
            "stderr": "",
            "interrupted": data.get("state").and_then(Value::as_str) == Some("cancelled"),
            "exitCode": data.get("exitCode").cloned().unwrap_or_default(),
        }),
        "write" | "search_replace" | "rename_symbol" | "edit_file" | "apply_patch" | "edit_notebook"
        | "delete_file" => {
            let path = tool(Dialect::Claude, call)
                .1
                .get("file_path")
                .cloned()
                .unwrap_or_default();
            json!({ "filePath": path, "success": true })
        }
        _ => json!({ "content": output }),
    }
}
