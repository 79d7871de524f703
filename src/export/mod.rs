//! Conversations as files: for people (HTML, Markdown) and for programs (JSON, JSON lines).
//!
//! All formats are made from the same entries as the screen. Formats for people are sanitized; those for programs keep
//! the text unchanged.

mod html;
mod markdown;
mod redact;

use std::sync::Arc;

pub use redact::{RedactionRules, RuleError};

use crate::{
    journal::file::Session,
    protocol::{Address, Document, Entry, Event, View, codec::record},
    text::diff::CONTEXT_LINES,
    transcript::{Transcript, object},
};

/// File format of an export.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExportFormat {
    /// One self-contained page: folds, light and dark colours, no script, no network.
    Html,
    Markdown,
    /// One object with each turn's message and response object.
    Json,
    /// One line per event, as in the journal but without checksums.
    Jsonl,
}

/// A conversation to export: complete, or as far as it has come.
#[derive(Debug)]
pub struct ExportedConversation {
    pub session: Session,
    /// All log entries, in order.
    pub entries: Vec<Arc<Entry>>,
    /// The fold of `entries`.
    pub transcript: Transcript,
}

impl ExportedConversation {
    pub fn new(session: Session, entries: Vec<Entry>) -> Self {
        let entries: Vec<_> = entries.into_iter().map(Arc::new).collect();
        let mut transcript = Transcript::default();
        transcript.apply_all(&entries);
        Self {
            session,
            entries,
            transcript,
        }
    }

    /// Returns a copy without keys and without matches of the rules.
    pub fn redacted(&self, rules: &RedactionRules) -> Self {
        let session = Session {
            workspace: rules.text(&self.session.workspace).into_owned(),
            ..self.session.clone()
        };
        Self::new(
            session,
            rules.entries(self.entries.iter().map(|it| (**it).clone()).collect()),
        )
    }

    /// Returns the conversation's title, else the first line of the first message.
    pub fn title(&self) -> String {
        let first = || {
            let message = self.transcript.exchanges.iter().find_map(|it| it.message.as_ref())?;
            message
                .content
                .lines()
                .map(str::trim)
                .find(|it| !it.is_empty())
                .map(str::to_owned)
        };
        let title = self
            .transcript
            .title()
            .map(str::to_owned)
            .filter(|it| !it.trim().is_empty());
        title.or_else(first).unwrap_or_else(|| "A conversation".to_owned())
    }

    /// Exports the conversation. HTML and Markdown contain the current branch only.
    pub fn write(&self, form: ExportFormat) -> String {
        self.render(form, false)
    }

    /// Exports the conversation with all branches.
    pub fn with_branches(&self, form: ExportFormat) -> String {
        self.render(form, true)
    }

    fn render(&self, form: ExportFormat, has_others: bool) -> String {
        match form {
            ExportFormat::Html => html::page(self, has_others),
            ExportFormat::Markdown => markdown::text(self, has_others),
            ExportFormat::Json => {
                let object = object(&self.transcript, &self.title(), serde_json::json!(self.session));
                serde_json::to_string_pretty(&object).unwrap_or_default() + "\n"
            }
            ExportFormat::Jsonl => {
                // What the model was told beside the conversation (surroundings, instructions) is nobody else's.
                let shown = self.entries.iter().filter(|it| !matches!(it.event, Event::Told(_)));
                let lines = shown.filter_map(|it| record::to_line(it));
                lines.map(|it| it + "\n").collect()
            }
        }
    }

    /// Returns the document at an address, with its number. `None` if there is none.
    pub fn document(&self, address: Address) -> Option<(&Document, u64)> {
        let response = &self.transcript.exchange_of(address.turn)?.response;
        let at = (0..response.documents.len()).find(|at| response.number(*at) == address.number)?;
        Some((response.documents.get(at)?, address.number))
    }
}

/// File format of a single document.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DocumentFormat {
    /// The protocol's object.
    Json,
    Markdown,
    /// Content alone: a block's code, a command's output, an answer's text.
    Text,
    /// A unified diff; for file edits only.
    Patch,
}

/// Formats one document. `number` is its number in the response. `None` if it has no such format.
pub fn format_document(document: &Document, number: u64, form: DocumentFormat) -> Option<String> {
    match form {
        DocumentFormat::Json => serde_json::to_string_pretty(&document.to_json(number))
            .ok()
            .map(|it| it + "\n"),
        DocumentFormat::Markdown => Some(ensure_newline(document.plain_text())),
        DocumentFormat::Text => Some(ensure_newline(content_only(document))),
        DocumentFormat::Patch => patch(document),
    }
}

fn ensure_newline(text: String) -> String {
    if text.is_empty() || text.ends_with('\n') {
        text
    } else {
        text + "\n"
    }
}

/// Returns the content without headings or fences.
fn content_only(document: &Document) -> String {
    match document.view() {
        View::CodeReference(it) => it.content.to_owned(),
        View::CodeBlock(it) => it.content.to_owned(),
        View::TerminalCommand(it) => it.output.to_owned(),
        View::Error(it) => it.content.to_owned(),
        View::FileEdit(it) => match (it.content, &it.diff) {
            (Some(content), _) => content.to_owned(),
            (None, Some(diff)) => diff.new.to_owned(),
            (None, None) => String::new(),
        },
        _ => document.plain_text(),
    }
}

fn patch(document: &Document) -> Option<String> {
    let View::FileEdit(edit) = document.view() else {
        return None;
    };
    let target = edit.new_file_path.unwrap_or(edit.file_path);
    if let Some(diff) = edit.compare(CONTEXT_LINES) {
        return Some(diff.patch(Some(edit.file_path), Some(target)));
    }
    // A new or rewritten file: all lines are added.
    let diff = crate::text::diff::diff("", edit.content?, 1, 1, CONTEXT_LINES);
    Some(diff.patch(None, Some(target)))
}

#[cfg(test)]
mod tests;
