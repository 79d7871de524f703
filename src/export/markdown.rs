//! Markdown export: text unchanged, other documents with their address in a comment before them.

use std::fmt::Write as _;

use serde_json::Value;

use super::ExportedConversation;
use crate::{
    protocol::{Document, Kind, Role, View},
    text::ansi::Output,
    transcript::Exchange,
};

/// Returns the conversation. With `has_others` the other branches follow at the end.
pub fn text(whole: &ExportedConversation, has_others: bool) -> String {
    let mut out = format!("# {}\n", line(&whole.title()));
    for exchange in &whole.transcript.exchanges {
        section(exchange, 0, &mut out);
    }
    let others = whole.transcript.other_branches();
    for (after, exchanges) in others.iter().filter(|_| has_others) {
        let _ = write!(out, "\n# Another branch, after turn {}\n", after.0);
        for (exchange, shared) in exchanges {
            section(exchange, *shared, &mut out);
        }
    }
    out
}

/// Writes one exchange. The first `shared` documents, and then the message, are left out: they were written already.
fn section(exchange: &Exchange, shared: usize, out: &mut String) {
    let turn = exchange.turn.0;
    if let Some(message) = exchange.message.as_ref().filter(|_| shared == 0) {
        let _ = write!(
            out,
            "\n## {turn} · {}\n\n{}\n",
            speaker_name(message.role == Role::User),
            message.content.trim_end()
        );
    }
    let response = &exchange.response;
    for (at, document) in response.documents.iter().enumerate().skip(shared) {
        let text = document_text(document);
        let text = text.trim_end();
        if text.is_empty() {
            continue;
        }
        out.push('\n');
        if document.kind != Kind::Text {
            let _ = writeln!(
                out,
                "<!-- {turn}.{} {} -->\n",
                response.number(at),
                document.kind.as_str()
            );
        }
        out.push_str(text);
        out.push('\n');
    }
}

/// Returns a document as Markdown. The output of programs is fenced.
fn document_text(document: &Document) -> String {
    match document.view() {
        View::ToolCall(it) => {
            let arguments = serde_json::to_string_pretty(it.arguments).unwrap_or_default();
            let mut text = format!("**{}**\n\n{}", it.tool_name, fenced("json", &arguments));
            if let Some(result) = it.result {
                let word = if result.failed { "Failed:" } else { "Result:" };
                let (language, data) = match result.data {
                    Value::String(text) => ("", text.clone()),
                    other => ("json", serde_json::to_string_pretty(other).unwrap_or_default()),
                };
                let _ = write!(text, "\n{word}\n\n{}", fenced(language, &data));
            }
            text
        }
        View::TerminalCommand(it) => {
            let printed = Output::of(it.output).plain();
            let end = it
                .exit_code
                .map_or_else(|| it.state.to_string(), |code| format!("exit {code}"));
            format!("{}\n{end}", fenced("console", &format!("$ {}\n{printed}", it.command)))
        }
        _ => document.plain_text(),
    }
}

/// Wraps text in a fence longer than any run of backticks in it.
fn fenced(language: &str, text: &str) -> String {
    let runs = text.split(|c| c != '`').map(str::len);
    let fence = "`".repeat(runs.max().unwrap_or(0).max(2) + 1);
    format!("{fence}{language}\n{}\n{fence}\n", text.trim_end_matches('\n'))
}

fn speaker_name(is_user: bool) -> &'static str {
    if is_user { "You" } else { "Sheaf" }
}

fn line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}
