//! What every format needs to read JSON of servers that do not keep to one.
//!
//! A wrong type counts as absent, and what had to be left out is said once. An answer weighs what it holds, and there
//! is a limit to it.

use serde_json::{Map, Value};

use super::{Failure, FailureKind, Piece};
use crate::protocol::{Notice, Severity};

/// More than this in one answer is no answer.
pub const ANSWER_LIMIT_BYTES: usize = 64 << 20;

/// More calls than this in one answer are left out.
pub const CALLS_LIMIT: usize = 256;

/// One JSON text, or several that a proxy put side by side.
pub fn values(data: &str) -> serde_json::Result<Vec<Value>> {
    serde_json::Deserializer::from_str(data).into_iter().collect()
}

/// The error of a chunk, if it holds one that says something.
pub fn error_of(members: &Map<String, Value>) -> Option<&Value> {
    members.get("error").filter(|it| match it {
        Value::Null | Value::Bool(_) => false,
        Value::String(text) => !text.trim().is_empty(),
        Value::Object(members) => !members.is_empty(),
        Value::Array(items) => !items.is_empty(),
        Value::Number(_) => true,
    })
}

/// What one event's data is, before anybody asks what it means.
pub enum Step<'a> {
    /// Its kind by its own word, else by that of the event.
    Event(&'a str, &'a Map<String, Value>),
    Error(Failure),
    /// Some gateways wrap an error, or everything, into a list of one.
    Many(&'a [Value]),
    /// No JSON object.
    Nothing,
}

impl<'a> Step<'a> {
    /// For formats whose events have a `type`.
    pub fn of(value: &'a Value, event: &'a str) -> Self {
        let members = match value {
            Value::Object(members) => members,
            Value::Array(items) => return Self::Many(items),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) if event == "error" => {
                return Self::Error(Failure::from_server(None, value));
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => return Self::Nothing,
        };
        let kind = members.get("type").and_then(Value::as_str).unwrap_or(event);
        let error = error_of(members).or_else(|| (kind == "error" || event == "error").then_some(value));
        error.map_or(Self::Event(kind, members), |it| {
            Self::Error(Failure::from_server(None, it))
        })
    }
}

/// The arguments of a call: none at all are an empty object, what is no object is given back.
pub fn arguments(text: String) -> Result<Map<String, Value>, String> {
    if text.trim().is_empty() {
        return Ok(Map::new());
    }
    serde_json::from_str(&text).map_err(|_| text)
}

/// A count, also as a float or in quotes; nothing below zero.
pub fn whole_number(value: &Value) -> Option<u64> {
    match value {
        Value::Number(number) => number
            .as_u64()
            .or_else(|| number.as_f64().filter(|it| *it >= 0.0).map(|it| it.round() as u64)),
        Value::String(text) => text.trim().parse().ok(),
        Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => None,
    }
}

/// A vector; none unless it is a list of numbers.
pub fn numbers(value: &Value) -> Option<Vec<f32>> {
    value
        .as_array()?
        .iter()
        .map(|it| it.as_f64().map(|it| it as f32))
        .collect()
}

/// What was said of an answer's repairs, and what the answer weighs.
#[derive(Debug, Default)]
pub struct Ledger {
    /// By code.
    noticed: Vec<&'static str>,
    bytes: usize,
}

impl Ledger {
    /// Says what was repaired, the first time only.
    pub fn notice(&mut self, code: &'static str, message: &str, out: &mut Vec<Piece>) {
        if self.noticed.contains(&code) {
            return;
        }
        self.noticed.push(code);
        out.push(Piece::Notice(Notice {
            severity: Severity::Warning,
            code: code.to_owned(),
            message: message.to_owned(),
            document: None,
        }));
    }

    pub fn has_noticed(&self, code: &str) -> bool {
        self.noticed.contains(&code)
    }

    /// Adds to what the answer weighs; a failure when it has become too much.
    pub fn weigh(&mut self, bytes: usize) -> Result<(), Failure> {
        self.bytes = self.bytes.saturating_add(bytes);
        if self.bytes > ANSWER_LIMIT_BYTES {
            let message = format!("the answer is larger than {} MiB", ANSWER_LIMIT_BYTES >> 20);
            return Err(Failure::new(FailureKind::Oversized, message));
        }
        Ok(())
    }
}

/// What is missing when a body has ended and the answer has not. `what` names the format: `chat completions`.
pub fn broken_off(has_begun: bool, ledger: &Ledger, what: &str) -> Failure {
    if has_begun {
        Failure::new(FailureKind::Interrupted, "the answer broke off before its end")
    } else if ledger.has_noticed(BAD_JSON) {
        something_else(what)
    } else {
        Failure::new(
            FailureKind::Interrupted,
            "the server ended the stream without an answer",
        )
    }
}

pub fn something_else(what: &str) -> Failure {
    let message = format!("the server answered with something else than {what}");
    Failure::new(FailureKind::Garbled, message)
}

/// The code of the notice that a line is no JSON.
pub const BAD_JSON: &str = "bad-json";
