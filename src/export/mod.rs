//! A conversation as a file: for people (HTML, Markdown) and for programs (JSON, JSON lines).
//!
//! All of them are folds of the same entries, like the screen. What people read is cleaned; what programs read is as it was.

mod html;
mod markdown;
mod redact;

use std::sync::Arc;

pub use redact::{RuleError, Rules};

use crate::{
    journal::file::Session,
    protocol::{Address, Document, Entry, View, codec::record},
    text::diff::CONTEXT_LINES,
    transcript::{Transcript, object},
};

/// What is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// One page that needs nothing else: folds, colours for light and dark, no script and no network.
    Html,
    Markdown,
    /// One object: each turn's message and response object.
    Json,
    /// A line for each event, as the journal keeps them, without checksums.
    Jsonl,
}

/// A conversation that is over, or as far as it has come.
#[derive(Debug)]
pub struct Whole {
    pub session: Session,
    pub entries: Vec<Arc<Entry>>,
    pub transcript: Transcript,
}

impl Whole {
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

    /// The same without keys and without what the rules name.
    pub fn redacted(&self, rules: &Rules) -> Self {
        let session = Session {
            workspace: rules.text(&self.session.workspace).into_owned(),
            ..self.session.clone()
        };
        Self::new(
            session,
            rules.entries(self.entries.iter().map(|it| (**it).clone()).collect()),
        )
    }

    /// Its title, else the first line of the first message.
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

    /// As a page and as Markdown the branch that one is on; the other forms have all of them.
    pub fn write(&self, form: Form) -> String {
        self.written(form, false)
    }

    /// With all branches, whatever the form.
    pub fn with_branches(&self, form: Form) -> String {
        self.written(form, true)
    }

    fn written(&self, form: Form, has_others: bool) -> String {
        match form {
            Form::Html => html::page(self, has_others),
            Form::Markdown => markdown::text(self, has_others),
            Form::Json => {
                let object = object(&self.transcript, &self.title(), serde_json::json!(self.session));
                serde_json::to_string_pretty(&object).unwrap_or_default() + "\n"
            }
            Form::Jsonl => {
                let lines = self.entries.iter().filter_map(|it| record::to_line(it));
                lines.map(|it| it + "\n").collect()
            }
        }
    }

    /// The document at an address.
    pub fn document(&self, address: Address) -> Option<(&Document, u64)> {
        let response = &self.transcript.of_turn(address.turn)?.response;
        let at = (0..response.documents.len()).find(|at| response.number(*at) == address.number)?;
        Some((response.documents.get(at)?, address.number))
    }
}

/// One document on its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Single {
    /// The object of the protocol.
    Json,
    Markdown,
    /// What one would paste: the code of a block, the output of a command, the text of an answer.
    Text,
    /// A unified diff, for edits.
    Patch,
}

/// `None`: it has no such form.
pub fn single(document: &Document, number: u64, form: Single) -> Option<String> {
    match form {
        Single::Json => serde_json::to_string_pretty(&document.to_json(number))
            .ok()
            .map(|it| it + "\n"),
        Single::Markdown => Some(closed(document.plain_text())),
        Single::Text => Some(closed(bare(document))),
        Single::Patch => patch(document),
    }
}

fn closed(text: String) -> String {
    if text.is_empty() || text.ends_with('\n') {
        text
    } else {
        text + "\n"
    }
}

/// The content without anything around it.
fn bare(document: &Document) -> String {
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
        View::Text(_)
        | View::ToolCall(_)
        | View::Plan(_)
        | View::Clarification(_)
        | View::TodoUpdate(_)
        | View::Unknown(_) => document.plain_text(),
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
    // A file that is made or written anew: all of it is added.
    let diff = crate::text::diff::diff("", edit.content?, 1, 1, CONTEXT_LINES);
    Some(diff.patch(None, Some(target)))
}

#[cfg(test)]
mod tests;
