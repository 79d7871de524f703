//! What keeps a model from going round in circles.

use std::hash::{DefaultHasher, Hash, Hasher};

use super::AnswerLimits;
use crate::models::{Call, CallResult};

/// Counts of an answer's requests and calls, for its limits.
#[derive(Debug, Default)]
pub struct Guard {
    /// Requests to the model since the user last said to go on.
    pub requests: u32,
    /// Calls since then.
    pub calls: u32,
    /// Cost in dollars of the requests since then, as far as prices are known.
    pub dollars: f64,
    /// Messages in a row in which no call could be read.
    pub garbled: u32,
    /// Times in a row that the server wanted to pause.
    pub pauses: u32,
    /// The last call with its result, and how often it came in a row.
    last: Option<(u64, bool)>,
    repeats: u32,
}

/// The action to take about a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Advice {
    Fine,
    /// It failed in the same way before: tell the model.
    Warn,
    /// It fails again and again.
    Stop,
    /// It succeeds again and again, and nothing changes.
    Ask,
}

/// The same call that succeeds so often in a row, with the same result.
const ASK_AT: u32 = 4;

impl Guard {
    /// Counts a call with its result. Returns what to do about it.
    pub fn note(&mut self, call: &Call, result: &CallResult, limits: &AnswerLimits) -> Advice {
        self.calls += 1;
        let mut hasher = DefaultHasher::new();
        call.name.hash(&mut hasher);
        for (name, value) in &call.arguments {
            name.hash(&mut hasher);
            value.to_string().hash(&mut hasher);
        }
        if !result.is_error {
            result.text.hash(&mut hasher);
        }
        let this = (hasher.finish(), result.is_error);
        if self.last == Some(this) {
            self.repeats += 1;
        } else {
            self.last = Some(this);
            self.repeats = 1;
        }
        if result.is_error && self.repeats >= limits.max_failures {
            Advice::Stop
        } else if result.is_error && self.repeats == limits.warn_failures {
            Advice::Warn
        } else if !result.is_error && self.repeats == ASK_AT {
            Advice::Ask
        } else {
            Advice::Fine
        }
    }

    /// The user said to go on.
    pub fn reset(&mut self) {
        *self = Self::default();
    }
}
