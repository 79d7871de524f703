//! The receipt of a turn: what it changed, how its tests went, what it cost.
//!
//! A function of the fold, so it is the same live, after a resume, in a replay and from a gateway.

use std::collections::BTreeSet;

use super::Exchange;
use crate::{
    protocol::{Applied, CommandState, Document, Kind, View, tool_label},
    shell::{Tests, tests_of},
};

/// Figures of a turn that did something.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Receipt {
    /// Files with changes that were made and were not undone.
    pub files: usize,
    /// Lines of these changes.
    pub added: usize,
    pub removed: usize,
    /// Outcome of the last command that ran tests; `None` if there is none, or its exit code is another command's.
    pub has_passed: Option<bool>,
    /// Length of the turn in milliseconds.
    pub took_ms: u64,
    /// Tokens of all requests; 0 if unknown.
    pub tokens: u64,
    /// Cost in dollars; `None` unless the answer states it.
    pub dollars: Option<f64>,
}

impl Receipt {
    /// Sums up a turn that has ended; `None` if it runs, or has done nothing that lasts.
    pub fn of(exchange: &Exchange) -> Option<Self> {
        let response = &exchange.response;
        let ending = response.ending.as_ref()?;
        let mut receipt = Self::default();
        let mut files = BTreeSet::new();
        let mut has_acted = false;
        let mut tests = None;
        for document in &response.documents {
            match document.view() {
                View::FileEdit(edit) if is_made(&edit.applied, document) => {
                    has_acted = true;
                    files.insert(edit.file_path.to_owned());
                    let (added, removed) = match edit.compare(0) {
                        Some(diff) => (diff.added, diff.removed),
                        None => (edit.content.map_or(0, |it| it.lines().count()), 0),
                    };
                    receipt.added += added;
                    receipt.removed += removed;
                }
                View::TerminalCommand(command) if command.state != CommandState::Rejected => {
                    has_acted = true;
                    tests = tests_of(command.command, command.exit_code).or(tests);
                }
                _ => has_acted |= is_foreign_call(document),
            }
        }
        if !has_acted {
            return None;
        }
        let last_ms = response
            .documents
            .iter()
            .map(|it| it.ended_ms)
            .max()
            .unwrap_or_default();
        receipt.files = files.len();
        receipt.has_passed = match tests {
            Some(Tests::Passed) => Some(true),
            Some(Tests::Failed) => Some(false),
            Some(Tests::Unknown) | None => None,
        };
        receipt.took_ms = ending
            .duration_ms
            .unwrap_or_else(|| last_ms.saturating_sub(exchange.at_ms));
        receipt.tokens = response.usage.total_tokens;
        receipt.dollars = response.extra_usage.get("costUsd").and_then(serde_json::Value::as_f64);
        Some(receipt)
    }
}

/// Returns true if a turn may have a receipt, without reading what its documents say.
pub fn has_done_something(exchange: &Exchange) -> bool {
    let documents = &exchange.response.documents;
    let is_action = |it: &Document| matches!(it.kind, Kind::FileEdit | Kind::TerminalCommand) || is_foreign_call(it);
    documents.iter().any(is_action)
}

fn is_made(applied: &Applied, document: &Document) -> bool {
    let is_undone = document.is_undone();
    match applied {
        Applied::Applied | Applied::Other(_) => !is_undone,
        Applied::Pending | Applied::Rejected | Applied::Failed => false,
    }
}

/// Returns true for a call of a tool server, which may have changed anything.
fn is_foreign_call(document: &Document) -> bool {
    match document.view() {
        View::ToolCall(call) => call.tool_name.starts_with("mcp__") && tool_label::label(call.tool_name).is_none(),
        _ => false,
    }
}
