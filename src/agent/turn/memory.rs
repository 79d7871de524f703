//! What a conversation remembers from one answer to the next.

use std::collections::HashSet;

use serde_json::{Map, Value};

use super::Policy;
use crate::{
    model::{CallResult, ModelMessage, Part, Said},
    protocol::document::TodoUpdate,
    transcript::Todos,
};

/// What was said, word for word as the model heard it, and what holds for all of the conversation.
#[derive(Debug, Default)]
pub struct Memory {
    /// Only ever added to, but for what [`Self::compact`] and [`Self::made_by`] take out.
    pub messages: Vec<ModelMessage>,
    /// Tokens of the last request and its answer, as the server counted them; 0: it did not.
    pub context_tokens: u64,
    /// What the model that answers takes in, as far as that is known.
    pub window: Option<u64>,
    pub policy: Policy,
    pub todos: Todos,
    /// What all of the conversation has cost, as far as prices are known, and how much of that the user has said yes to.
    pub dollars: f64,
    pub dollars_allowed: f64,
    /// Something was answered whose price is not known; and that was said.
    pub is_unpriced: bool,
    pub has_said_unpriced: bool,
    /// The surroundings have been told.
    pub is_opened: bool,
    /// A command has changed what is protected.
    pub is_halted: bool,
    /// Which format and model made the opaque parts.
    maker: String,
    calls: HashSet<String>,
}

/// So many results at the end stay whole when room has to be made.
const RESULTS_KEPT: usize = 4;
/// A result shorter than this is not worth dropping.
const WORTH_BYTES: usize = 400;

impl Memory {
    pub fn is_empty(&self) -> bool {
        self.messages.is_empty()
    }

    /// Nothing was said yet, here: what holds for all of the conversation stays.
    pub fn begin_again(&mut self, todos: Todos) {
        let policy = std::mem::take(&mut self.policy);
        *self = Self {
            window: self.window,
            policy,
            todos,
            ..Self::default()
        };
    }

    /// What was said before this program ran.
    pub fn remember(&mut self, before: Vec<ModelMessage>) {
        for message in before {
            match message {
                ModelMessage::Assistant(said) => self.assistant(said),
                other => self.messages.push(other),
            }
        }
    }

    /// What stands before the first message, or before the first one since the program began.
    pub fn open(&mut self, parts: Vec<Part>) {
        self.is_opened = true;
        if !parts.is_empty() {
            self.messages.push(ModelMessage::User(parts));
        }
    }

    pub fn user(&mut self, parts: Vec<Part>) {
        if !parts.is_empty() {
            self.messages.push(ModelMessage::User(parts));
        }
    }

    /// What the model said. Nothing but blanks is nothing said.
    pub fn assistant(&mut self, said: Vec<Said>) {
        let is_worth = |it: &Said| match it {
            Said::Text(text) => !text.trim().is_empty(),
            Said::Call(_) => true,
            // Reasoning alone is no answer, and some servers refuse it.
            Said::Opaque(_) => false,
        };
        if !said.iter().any(is_worth) {
            return;
        }
        self.calls.extend(said.iter().filter_map(|it| match it {
            Said::Call(call) => Some(call.id.clone()),
            Said::Text(_) | Said::Opaque(_) => None,
        }));
        self.messages.push(ModelMessage::Assistant(said));
    }

    /// A word in the model's place where it said nothing, if it had the word.
    pub fn unanswered(&mut self, note: &str) {
        match self.messages.last() {
            Some(ModelMessage::User(_) | ModelMessage::Results(_)) => {
                self.messages.push(ModelMessage::assistant(note));
            }
            Some(ModelMessage::Assistant(_)) | None => {}
        }
    }

    pub fn results(&mut self, results: Vec<CallResult>) {
        self.messages.push(ModelMessage::Results(results));
    }

    pub fn has_call(&self, id: &str) -> bool {
        self.calls.contains(id)
    }

    /// From here on `maker` answers: what only another one can read goes.
    pub fn made_by(&mut self, maker: String) {
        if self.maker != maker && !self.maker.is_empty() {
            for message in &mut self.messages {
                if let ModelMessage::Assistant(said) = message {
                    said.retain(|it| !matches!(it, Said::Opaque(_)));
                    for part in said {
                        if let Said::Call(call) = part {
                            call.opaque = None;
                        }
                    }
                }
            }
        }
        self.maker = maker;
    }

    /// The settings' rules, beside those that the user gave in this conversation.
    pub fn take_policy(&mut self, mut policy: Policy) {
        policy.rules.session = std::mem::take(&mut self.policy.rules.session);
        self.policy = policy;
    }

    /// The user changed a document: the todos of a plan are what the user says they are.
    pub fn edited(&mut self, metadata: &Map<String, Value>) {
        if metadata.get("todos").is_some_and(Value::is_array) {
            let mut update = metadata.clone();
            update.insert("merge".into(), false.into());
            self.todos.change(&TodoUpdate::of(&update));
        }
    }

    /// Drops the text of old results. `false`: there is nothing to drop.
    pub fn compact(&mut self) -> bool {
        let count = self
            .messages
            .iter()
            .filter(|it| matches!(it, ModelMessage::Results(_)))
            .count();
        let mut left = count.saturating_sub(RESULTS_KEPT);
        let mut has_dropped = false;
        for message in &mut self.messages {
            let ModelMessage::Results(results) = message else {
                continue;
            };
            if left == 0 {
                break;
            }
            left -= 1;
            for result in results
                .iter_mut()
                .filter(|it| it.text.len() > WORTH_BYTES || !it.images.is_empty())
            {
                let first = result.text.lines().next().unwrap_or_default();
                let first: String = first.chars().take(80).collect();
                result.text = format!("[result dropped to make room: {} {first}]", result.name);
                result.images.clear();
                has_dropped = true;
            }
        }
        has_dropped
    }
}
