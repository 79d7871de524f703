//! Hooks that ran for calls, on their way into the documents of the calls.
//!
//! A hook may run before the document of its call has begun and after its last word; the document is updated once it has ended.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value};

use crate::{
    journal::Log,
    protocol::{DocumentId, Event, Kind, Position, document::HOOKS},
};

/// The hooks of the calls of an answer.
#[derive(Debug, Default)]
pub struct HookRuns {
    /// By the ids of calls.
    runs: BTreeMap<String, Vec<Value>>,
    /// Calls whose document does not have all of their hooks.
    untold: BTreeSet<String>,
    /// The first document of each call, and whether it has ended.
    documents: BTreeMap<String, (DocumentId, bool)>,
    /// The part of the log that was looked at.
    looked: Position,
    /// What hooks did beside calls.
    lines: Vec<String>,
}

impl HookRuns {
    /// An answer begins, and with it other calls.
    pub fn begin(&mut self, log: &Log) {
        *self = Self {
            looked: log.last(),
            lines: std::mem::take(&mut self.lines),
            ..Self::default()
        };
    }

    /// A hook has done something beside calls.
    pub fn say(&mut self, line: String) {
        self.lines.push(line);
    }

    /// Takes the lines of hooks that nobody was told of.
    pub fn take_lines(&mut self) -> Vec<String> {
        std::mem::take(&mut self.lines)
    }

    /// Hooks have run for a call.
    pub fn note(&mut self, call: String, runs: Vec<Value>) {
        self.untold.insert(call.clone());
        self.runs.entry(call).or_default().extend(runs);
    }

    /// The updates of documents that have ended. Looks at what is new in the log, if there is anything to tell.
    pub fn due(&mut self, log: &Log) -> Vec<Event> {
        if self.untold.is_empty() {
            return Vec::new();
        }
        for entry in log.after(self.looked) {
            self.looked = entry.position;
            self.look(&entry.event);
        }
        let (documents, runs) = (&self.documents, &self.runs);
        let mut events = Vec::new();
        self.untold.retain(|call| {
            let Some((document, true)) = documents.get(call) else {
                return true;
            };
            let runs = runs.get(call).cloned().unwrap_or_default();
            events.push(Event::DocumentUpdate {
                document: document.clone(),
                metadata: Map::from_iter([(HOOKS.to_owned(), runs.into())]),
            });
            false
        });
        events
    }

    fn look(&mut self, event: &Event) {
        match event {
            Event::DocumentStart(start) => {
                let is_action = matches!(start.kind, Kind::ToolCall | Kind::TerminalCommand | Kind::FileEdit);
                let call = start.metadata.get("toolCallId").and_then(Value::as_str);
                if let Some(call) = call.filter(|_| is_action) {
                    let document = (start.id.clone(), false);
                    self.documents.entry(call.to_owned()).or_insert(document);
                }
            }
            Event::DocumentEnd { document, .. } => {
                for (known, has_ended) in self.documents.values_mut() {
                    *has_ended |= known == document;
                }
            }
            _ => {}
        }
    }
}
