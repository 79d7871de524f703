//! Diagnostics of checkers, read from what they print by its shape: cargo's lines, eslint's or ruff's list, tsc's lines, or `file:line:column:`.

use std::path::PathBuf;

use serde::Deserialize;
use serde_json::Value;

use crate::lsp::{Diagnostic, Severity};

/// The severity that a checker has this word for.
fn severity(word: &str) -> Option<Severity> {
    let word = word.to_ascii_lowercase();
    match word.split(' ').next_back().unwrap_or_default() {
        "error" | "fatal" | "failure" => Some(Severity::Error),
        "warning" | "warn" => Some(Severity::Warning),
        "info" | "information" | "note" | "hint" | "help" | "style" | "convention" | "refactor" => Some(Severity::Info),
        _ => None,
    }
}

/// The diagnostics in the output of a checker, by its format: cargo's lines, eslint's or ruff's list, tsc's lines, or
/// `file:line:column:`.
pub fn read(source: &str, output: &str) -> Vec<Diagnostic> {
    for reader in [cargo, listed, typescript, plain] {
        let found = reader(source, output);
        if !found.is_empty() {
            return found;
        }
    }
    Vec::new()
}

#[derive(Deserialize)]
struct CargoLine {
    reason: String,
    message: Option<RustMessage>,
}

#[derive(Deserialize)]
struct RustMessage {
    message: String,
    level: String,
    code: Option<RustCode>,
    #[serde(default)]
    spans: Vec<RustSpan>,
}

#[derive(Deserialize)]
struct RustCode {
    code: String,
}

#[derive(Deserialize)]
struct RustSpan {
    file_name: PathBuf,
    line_start: u64,
    column_start: u64,
    is_primary: bool,
    label: Option<String>,
}

/// `cargo … --message-format=json`
fn cargo(source: &str, output: &str) -> Vec<Diagnostic> {
    let lines = output.lines().filter(|it| it.starts_with("{\"reason\""));
    let messages = lines
        .filter_map(|it| serde_json::from_str::<CargoLine>(it).ok())
        .filter(|it| it.reason == "compiler-message")
        .filter_map(|it| it.message);
    messages
        .filter_map(|it| {
            let at = it.spans.iter().find(|it| it.is_primary)?;
            // What is expected and what is found stands beside the place.
            let label = at
                .label
                .as_ref()
                .filter(|label| !label.is_empty() && **label != it.message);
            let is_lint = it.code.as_ref().is_some_and(|it| it.code.contains("clippy::"));
            Some(Diagnostic {
                file: at.file_name.clone(),
                line: at.line_start,
                column: at.column_start,
                severity: severity(it.level.split(':').next().unwrap_or_default()).unwrap_or(Severity::Info),
                message: label.map_or_else(|| it.message.clone(), |label| format!("{}: {label}", it.message)),
                source: if is_lint {
                    "clippy"
                } else if source == "cargo check" {
                    "rustc"
                } else {
                    source
                }
                .to_owned(),
                code: it.code.map(|it| it.code),
            })
        })
        .collect()
}

/// A list in JSON: eslint's files with messages, or ruff's messages with files.
fn listed(source: &str, output: &str) -> Vec<Diagnostic> {
    // In front of it stands what the program had to say beside.
    let starts = std::iter::once(0).chain(output.match_indices('\n').map(|it| it.0 + 1));
    let list = starts
        .filter(|at| output.get(*at..).is_some_and(|it| it.starts_with('[')))
        .take(20)
        .find_map(|at| {
            let mut values = serde_json::Deserializer::from_str(output.get(at..)?).into_iter::<Vec<Value>>();
            values.next()?.ok()
        });
    let number = |value: &Value| value.as_u64().unwrap_or(1).max(1);
    let text = |value: &Value| value.as_str().filter(|it| !it.is_empty()).map(str::to_owned);
    let mut found = Vec::new();
    for item in list.unwrap_or_default() {
        if let (Some(file), Some(messages)) = (item["filePath"].as_str(), item["messages"].as_array()) {
            // A file that it is not set up for is none of its concern, and no problem.
            let is_ignored = |it: &&Value| it["message"].as_str().is_some_and(|it| it.starts_with("File ignored "));
            found.extend(messages.iter().filter(|it| !is_ignored(it)).map(|it| Diagnostic {
                file: file.into(),
                line: number(&it["line"]),
                column: number(&it["column"]),
                severity: if it["severity"] == 2 {
                    Severity::Error
                } else {
                    Severity::Warning
                },
                message: text(&it["message"]).unwrap_or_default(),
                source: source.to_owned(),
                code: text(&it["ruleId"]),
            }));
        } else if let (Some(file), Some(message)) = (item["filename"].as_str(), item["message"].as_str()) {
            let code = text(&item["code"]).filter(|it| it != "invalid-syntax");
            let word = item["severity"].as_str().and_then(severity);
            let usual = if code.is_none() {
                Severity::Error
            } else {
                Severity::Warning
            };
            found.push(Diagnostic {
                file: file.into(),
                line: number(&item["location"]["row"]),
                column: number(&item["location"]["column"]),
                severity: word.unwrap_or(usual),
                message: message.to_owned(),
                source: source.to_owned(),
                code,
            });
        }
    }
    found
}

/// `src/a.ts(3,5): error TS2322: …`, with lines below it that are indented.
fn typescript(source: &str, output: &str) -> Vec<Diagnostic> {
    let mut found: Vec<Diagnostic> = Vec::new();
    for line in output.lines() {
        if let Some(it) = typescript_line(source, line) {
            found.push(it);
        } else if let (Some(last), true) = (found.last_mut(), line.starts_with("  ")) {
            last.message.push_str("; ");
            last.message.push_str(line.trim());
        }
    }
    found
}

fn typescript_line(source: &str, line: &str) -> Option<Diagnostic> {
    let (place, rest) = line.split_once("): ")?;
    let (file, place) = place.rsplit_once('(')?;
    let (row, column) = place.split_once(',')?;
    let (head, message) = rest.split_once(": ")?;
    let (word, code) = head.split_once(' ')?;
    Some(Diagnostic {
        file: file.into(),
        line: row.parse().ok()?,
        column: column.parse().ok()?,
        severity: severity(word)?,
        message: message.to_owned(),
        source: source.to_owned(),
        code: Some(code.to_owned()),
    })
}

/// `file:line:column: message`, as most programs say it.
fn plain(source: &str, output: &str) -> Vec<Diagnostic> {
    let text = crate::text::ansi::Output::of(output).plain();
    text.lines().filter_map(|it| plain_line(source, it)).collect()
}

fn plain_line(source: &str, line: &str) -> Option<Diagnostic> {
    let line = line.strip_prefix("vet: ").unwrap_or(line).trim_start();
    // The place below a message that was meant for people; what the message is stands above.
    if line.starts_with("-->") {
        return None;
    }
    // The first number behind a colon is the line, so that a path may have one.
    let mut from = 0;
    let (file, row, rest) = loop {
        let at = from + line.get(from..)?.find(':')?;
        let (file, rest) = (line.get(..at)?, line.get(at + 1..)?);
        let digits = rest.len() - rest.trim_start_matches(|it: char| it.is_ascii_digit()).len();
        match (
            rest.get(..digits).and_then(|it| it.parse::<u64>().ok()),
            rest.get(digits..),
        ) {
            (Some(row), Some(rest)) if rest.starts_with(':') => break (file, row, rest.get(1..)?),
            _ => from = at + 1,
        }
    };
    // A path, and no sentence that has a time in it.
    if file.is_empty() || file.contains("  ") || !file.contains(['.', '/']) || row == 0 {
        return None;
    }
    let digits = rest.len() - rest.trim_start_matches(|it: char| it.is_ascii_digit()).len();
    let (column, rest) = match (rest.get(..digits).and_then(|it| it.parse().ok()), rest.get(digits..)) {
        (Some(column), Some(more)) if more.starts_with(':') => (column, more.get(1..)?),
        _ => (1, rest),
    };
    let rest = rest.trim();
    let named = rest
        .split_once(':')
        .and_then(|(word, message)| Some((severity(word)?, message.trim())));
    let (severity, message) = named.unwrap_or((Severity::Error, rest));
    (!message.is_empty()).then(|| Diagnostic {
        file: file.into(),
        line: row,
        column,
        severity,
        message: message.to_owned(),
        source: source.to_owned(),
        code: None,
    })
}
