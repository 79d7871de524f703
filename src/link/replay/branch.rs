//! Branches of a recording: parts that are played for some answers only.

use std::collections::HashMap;

use serde_json::Value;

use crate::protocol::{ClarificationResponse, DocumentId, Entry, Event};

/// A mark in a recording: events between a branch and its join are played for some answers only.
pub enum Mark<'a> {
    Branch(Branch<'a>),
    Join,
}

/// `{"document": id, "when": [option ids], "unless": [option ids]}`: the answer to `document` must contain one of the first
/// and none of the second. Either list may be absent.
pub struct Branch<'a> {
    pub document: &'a str,
    when: Option<&'a Value>,
    unless: Option<&'a Value>,
}

impl<'a> Mark<'a> {
    /// Returns the mark in an event; `None` for other events.
    pub fn of(event: &'a Event) -> Option<Self> {
        let Event::Unknown { name, data } = event else {
            return None;
        };
        match name.as_str() {
            "replay_branch" => Some(Self::Branch(Branch {
                document: data.get("document").and_then(Value::as_str).unwrap_or_default(),
                when: data.get("when"),
                unless: data.get("unless"),
            })),
            "replay_join" => Some(Self::Join),
            _ => None,
        }
    }
}

impl Branch<'_> {
    /// Returns true if the branch is played, by the options chosen for each document.
    pub fn is_taken(&self, chosen: &HashMap<DocumentId, Vec<String>>) -> bool {
        let chosen = chosen
            .get(&DocumentId::from(self.document))
            .map_or(&[][..], Vec::as_slice);
        let names = |list: &Value| {
            list.as_array().is_some_and(|list| {
                list.iter()
                    .filter_map(Value::as_str)
                    .any(|id| chosen.iter().any(|it| it == id))
            })
        };
        self.when.is_none_or(names) && !self.unless.is_some_and(names)
    }
}

/// Returns `entries` without the branches that `answers` exclude, and without the marks of those that it decides.
pub fn without_marks(entries: &[Entry], answers: &[ClarificationResponse]) -> Vec<Entry> {
    let chosen: HashMap<_, Vec<_>> = answers
        .iter()
        .map(|it| {
            let ids = it.answers.iter().flat_map(|it| it.selected_option_ids.clone());
            (it.document_id.clone(), ids.collect())
        })
        .collect();
    let (mut in_branch, mut is_taken) = (false, true);
    let mut decided = Vec::new();
    for entry in entries {
        match Mark::of(&entry.event) {
            Some(Mark::Branch(branch)) if chosen.contains_key(&DocumentId::from(branch.document)) => {
                in_branch = true;
                is_taken = branch.is_taken(&chosen);
            }
            Some(Mark::Join) if in_branch => (in_branch, is_taken) = (false, true),
            Some(_) | None if is_taken => decided.push(entry.clone()),
            Some(_) | None => {}
        }
    }
    decided
}
