//! What a document is when it is copied: no gutters, no breaks of wrapping, nothing left out.

use serde_json::Value;

use super::{file_edit, terminal_command, todo, tool_call};
use crate::{
    protocol::{Document, View},
    text::Clean,
};

/// The whole document as text.
pub fn copy_text(document: &Document) -> Clean {
    match document.view() {
        View::Text(it) => Clean::new(it.content),
        View::CodeReference(it) => Clean::new(it.content),
        View::CodeBlock(it) => Clean::new(it.content),
        View::FileEdit(it) => match file_edit::patch(&it) {
            Some(patch) => patch,
            None => Clean::new(it.content.unwrap_or(it.file_path)),
        },
        View::ToolCall(it) => {
            let mut text = tool_call::summary(&it).into_string();
            if let Some(result) = it.result {
                text.push('\n');
                match tool_call::readable(result.data) {
                    Value::String(result) => text.push_str(result),
                    other => text.push_str(&serde_json::to_string_pretty(other).unwrap_or_default()),
                }
            }
            Clean::from(text)
        }
        View::TerminalCommand(it) => {
            let mut text = Clean::from(format!("$ {}\n", it.command));
            text.push(&terminal_command::plain(it.output));
            text
        }
        View::Plan(it) => {
            let todos = it
                .todos
                .iter()
                .map(|it| format!("{} {}", todo::checkbox(&it.status).text, it.content));
            let todos: Vec<String> = todos.collect();
            let title = format!("# {}", it.title);
            let parts = [title.as_str(), it.overview, &todos.join("\n"), it.content];
            let parts: Vec<&str> = parts
                .into_iter()
                .map(|it| it.trim_end_matches('\n'))
                .filter(|it| !it.is_empty())
                .collect();
            Clean::from(format!("{}\n", parts.join("\n\n")))
        }
        View::Error(it) => {
            let parts = [it.content, it.code, it.source, &it.details];
            let parts: Vec<&str> = parts.into_iter().filter(|it| !it.is_empty()).collect();
            Clean::from(parts.join("\n"))
        }
        View::Unknown(it) => {
            let json = serde_json::to_string_pretty(it.metadata).unwrap_or_default();
            let json = if it.metadata.is_empty() { "" } else { &json };
            let parts = [it.content.unwrap_or_default(), json];
            let parts: Vec<&str> = parts.into_iter().filter(|it| !it.is_empty()).collect();
            Clean::from(parts.join("\n"))
        }
        View::Clarification(_) | View::TodoUpdate(_) => Clean::from(document.plain_text()),
    }
}

/// Only the code of a document, for pasting it somewhere else; `None` where there is none.
pub fn code_only(document: &Document) -> Option<Clean> {
    let code = match document.view() {
        View::Text(it) => return fences(it.content),
        View::CodeReference(it) => it.content,
        View::CodeBlock(it) => it.content,
        View::FileEdit(it) => it.diff.as_ref().map(|it| it.new).or(it.content)?,
        View::TerminalCommand(it) => it.command,
        View::ToolCall(_)
        | View::Plan(_)
        | View::Clarification(_)
        | View::Error(_)
        | View::TodoUpdate(_)
        | View::Unknown(_) => return None,
    };
    (!code.is_empty()).then(|| Clean::new(code))
}

/// What stands between fences, with an empty line between two of them.
fn fences(source: &str) -> Option<Clean> {
    let mut code = String::new();
    let mut open: Option<&str> = None;
    for line in source.split_inclusive('\n') {
        let start = line.trim();
        let length = start.len() - start.trim_start_matches(['`', '~']).len();
        let fence = start.get(..length).filter(|it| it.len() >= 3);
        match (open, fence) {
            (None, Some(fence)) => {
                if !code.is_empty() {
                    code.push('\n');
                }
                open = Some(fence);
            }
            (Some(begun), Some(fence)) if fence.starts_with(begun) && start.len() == fence.len() => open = None,
            (Some(_), _) => code.push_str(line),
            (None, None) => {}
        }
    }
    (!code.is_empty()).then(|| Clean::from(code))
}
