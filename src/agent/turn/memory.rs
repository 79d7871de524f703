//! What a conversation remembers from one answer to the next.

use std::{collections::HashSet, sync::Arc};

use serde_json::{Map, Value};

use super::Policy;
use crate::{
    agent::{
        history::{
            compaction,
            message_history::MessageHistory,
            told::{self, SessionPrompt},
        },
        prompt,
    },
    models::{CallResult, ModelMessage, Part, Said},
    protocol::document::TodoUpdate,
    transcript::Todos,
};

/// The state of a conversation that outlives an answer: the history word for word, and what holds for all of it.
#[derive(Debug, Default)]
pub struct Memory {
    /// Only ever added to, but for where room is made and for what [`Self::made_by`] takes out.
    pub history: MessageHistory,
    /// The window of the model that answers.
    pub window: Window,
    pub policy: Policy,
    pub todos: Todos,
    /// The cost of the whole conversation.
    pub costs: Costs,
    /// The surroundings have been told.
    pub is_opened: bool,
    /// It is called something.
    pub is_titled: bool,
    /// A command has changed what is protected.
    pub is_halted: bool,
    /// The system prompt and the tools of the last request.
    pub prompt: Option<Arc<SessionPrompt>>,
    /// Which format and model made the opaque parts.
    maker: String,
    calls: HashSet<String>,
}

/// The window of the model that answers, in tokens.
#[derive(Clone, Debug, Default)]
pub struct Window {
    /// `None`: it is not known.
    pub tokens: Option<u64>,
    /// The model whose server refused a request because it was too long, and the tokens of that request, as estimated.
    pub refused: Option<(String, u64)>,
    /// No room could be made: it is tried again when a request has this many tokens.
    pub no_compaction_below: u64,
}

/// The cost of a conversation.
#[derive(Clone, Copy, Debug, Default)]
pub struct Costs {
    /// Dollars, as far as prices are known.
    pub dollars: f64,
    /// Dollars that the user has said yes to.
    pub allowed: f64,
    /// Something was answered whose price is not known.
    pub is_unpriced: bool,
    /// The user was told that a price is not known.
    pub has_said_unpriced: bool,
}

impl Memory {
    /// Returns true if nothing was said yet.
    pub fn is_empty(&self) -> bool {
        self.history.messages.is_empty()
    }

    /// Nothing was said yet, here: what holds for all of the conversation stays.
    pub fn begin_again(&mut self, todos: Todos) {
        let before = std::mem::take(self);
        *self = Self {
            window: Window {
                no_compaction_below: 0,
                ..before.window
            },
            policy: before.policy,
            is_titled: before.is_titled,
            is_halted: before.is_halted,
            prompt: before.prompt,
            costs: Costs {
                dollars: 0.0,
                ..before.costs
            },
            todos,
            ..Self::default()
        };
    }

    /// Sets the history from before the program started.
    pub fn remember(&mut self, before: MessageHistory) {
        let calls = before.messages.iter().flat_map(ModelMessage::call_ids);
        self.calls.extend(calls.map(str::to_owned));
        self.history = before;
    }

    /// Sets what was told before the program started, word for word.
    pub fn restore(&mut self, told: MessageHistory, prompt: Option<Arc<SessionPrompt>>) {
        self.is_opened = told.opened_at.is_some();
        self.maker = prompt.as_ref().map(|it| it.maker.clone()).unwrap_or_default();
        self.prompt = prompt.or_else(|| self.prompt.take());
        self.remember(told);
        if let Some(ModelMessage::User(_)) = self.history.messages.last() {
            self.unanswered("(This answer was cut off.)");
        }
    }

    /// Keeps the system prompt that the model knows: servers cache what begins alike, and some refuse thoughts behind
    /// another beginning. Returns what `wanted` says instead, for the next message, and the names of changed tools.
    pub fn keep_prompt(&mut self, wanted: SessionPrompt) -> (Option<String>, Vec<String>) {
        let Some(kept) = self.prompt.as_mut().filter(|it| it.maker == wanted.maker) else {
            self.prompt = Some(wanted.into());
            return (None, Vec::new());
        };
        let changed = kept.changed_tools(&wanted);
        let kept = Arc::make_mut(kept);
        kept.tools = wanted.tools;
        if kept.newest == wanted.newest {
            return (None, changed);
        }
        let is_again = kept.newest != told::hash_of(kept.system.as_bytes());
        kept.newest = wanted.newest;
        (prompt::changes(&kept.system, &wanted.system, is_again), changed)
    }

    /// Adds the context before the first message, or before the first one since the program started.
    pub fn open(&mut self, parts: Vec<Part>) {
        self.is_opened = true;
        if !parts.is_empty() {
            self.history.opened_at = Some(self.history.messages.len());
            self.history.messages.push(ModelMessage::User(parts));
        }
    }

    /// The text of the first context, once it is told.
    pub fn opening(&self) -> Option<String> {
        match self.history.messages.get(self.history.opened_at?)? {
            ModelMessage::User(parts) => Some(compaction::words(parts)),
            ModelMessage::Assistant(_) | ModelMessage::Results(_) => None,
        }
    }

    /// Adds a message of the user; without parts nothing.
    pub fn user(&mut self, parts: Vec<Part>) {
        if !parts.is_empty() {
            self.history.messages.push(ModelMessage::User(parts));
        }
    }

    /// Adds a message of the model. One of blanks alone is left out.
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
        let settled = said.into_iter().map(|it| match it {
            Said::Text(text) => Said::Text(text.settled()),
            Said::Call(_) | Said::Opaque(_) => it,
        });
        let message = ModelMessage::Assistant(settled.collect());
        self.calls.extend(message.call_ids().map(str::to_owned));
        self.history.messages.push(message);
    }

    /// A word in the model's place where it said nothing, if it had the word.
    pub fn unanswered(&mut self, note: &str) {
        match self.history.messages.last() {
            Some(ModelMessage::User(_) | ModelMessage::Results(_)) => {
                self.history.messages.push(ModelMessage::assistant(note));
            }
            Some(ModelMessage::Assistant(_)) | None => {}
        }
    }

    /// Adds the results of the last message's calls.
    pub fn results(&mut self, results: Vec<CallResult>) {
        self.history.messages.push(ModelMessage::Results(results));
    }

    /// Returns true if a call has this id.
    pub fn has_call(&self, id: &str) -> bool {
        self.calls.contains(id)
    }

    /// Room was made: a request has so many tokens now.
    pub fn shortened(&mut self, tokens: u64) {
        self.history.estimated(tokens);
        self.window.no_compaction_below = 0;
    }

    /// From here on `maker` answers: what only another one can read goes.
    pub fn made_by(&mut self, maker: String) {
        if self.maker != maker && !self.maker.is_empty() {
            // Its window is another one.
            self.window.no_compaction_below = 0;
            for message in &mut self.history.messages {
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

    /// The text that the model wrote last before a call of its last message, in the same turn; empty without any.
    pub fn said_before(&self, call: &str) -> &str {
        fn text(said: &Said) -> Option<&str> {
            match said {
                Said::Text(text) if !text.trim().is_empty() => Some(text),
                Said::Text(_) | Said::Call(_) | Said::Opaque(_) => None,
            }
        }
        let Some(ModelMessage::Assistant(said)) = self.history.messages.last() else {
            return "";
        };
        let at = said.iter().position(|it| matches!(it, Said::Call(it) if it.id == call));
        let own = said.iter().take(at.unwrap_or_default()).rev().find_map(text);
        // A model that has begun a step often says why before its first call only.
        let earlier = || {
            let earlier = self.history.messages.iter().rev().skip(1);
            let mut turn = earlier.take_while(|it| !matches!(it, ModelMessage::User(_)));
            turn.find_map(|it| match it {
                ModelMessage::Assistant(said) => said.iter().rev().find_map(text),
                ModelMessage::Results(_) | ModelMessage::User(_) => None,
            })
        };
        own.or_else(earlier).unwrap_or_default()
    }

    /// The user changed a document: the todos of a plan are what the user says they are.
    pub fn edited(&mut self, metadata: &Map<String, Value>) {
        if metadata.get("todos").is_some_and(Value::is_array) {
            let mut update = metadata.clone();
            update.insert("merge".into(), false.into());
            self.todos.apply(&TodoUpdate::of(&update));
        }
    }

    /// The messages for a model that sees no images: a sentence stands where one is. They stay here, for the next model.
    pub fn without_images(&self) -> Vec<ModelMessage> {
        let mut messages = self.history.messages.clone();
        for message in &mut messages {
            match message {
                ModelMessage::User(parts) => {
                    for part in parts {
                        if matches!(part, Part::Image(_)) {
                            *part = Part::Text("[Here is an image, which you cannot see.]".to_owned());
                        }
                    }
                }
                ModelMessage::Results(results) => {
                    for result in results.iter_mut().filter(|it| !it.images.is_empty()) {
                        result.images.clear();
                        result
                            .text
                            .push_str("\nYou cannot see images: ask the user what is on it, if that matters.");
                    }
                }
                ModelMessage::Assistant(_) => {}
            }
        }
        messages
    }
}
