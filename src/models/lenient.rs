//! Tolerant reading of JSON, shared by all wire formats.
//!
//! A wrong type counts as absent, and what had to be left out is said once. An answer weighs what it holds, and there
//! is a limit to it.

use serde_json::{Map, Value};

use super::{EndReason, Failure, FailureKind, Piece, Tokens, objects::SILENCE_LIMIT_BYTES};
use crate::protocol::{Notice, Severity};

/// Maximum size of an answer, in bytes.
pub const ANSWER_LIMIT_BYTES: usize = 64 << 20;

/// Maximum number of calls in an answer; the rest is left out.
pub const CALLS_LIMIT: usize = 256;

/// Returns the failure of a body with too much text between its objects.
pub fn no_object() -> Failure {
    let limit = SILENCE_LIMIT_BYTES / 1_000_000;
    let message = format!("the answer has more than {limit} MB without an object");
    Failure::new(FailureKind::Oversized, message)
}

/// Parses one JSON text, or several that a proxy put side by side.
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

/// Returns the kind of an event: its own `type`, else the name of the event. Error: the failure that it reports.
pub fn kind_of<'a>(value: &'a Value, members: &'a Map<String, Value>, event: &'a str) -> Result<&'a str, Failure> {
    let kind = members.get("type").and_then(Value::as_str).unwrap_or(event);
    match error_of(members).or_else(|| (kind == "error" || event == "error").then_some(value)) {
        Some(error) => Err(Failure::from_server(None, error)),
        None => Ok(kind),
    }
}

/// Returns the failure for an object of another format than `own`: people point us at such servers by mistake. `None`: it
/// is not recognised.
pub fn foreign(kind: &str, members: &Map<String, Value>, own: &str) -> Option<Failure> {
    let format = if members.contains_key("choices") {
        "OpenAI chat completions"
    } else if kind == "message_start" || (kind == "message" && members.contains_key("content")) {
        "Anthropic messages"
    } else if kind.starts_with("response.") {
        "OpenAI responses"
    } else if kind == "document_start" || members.get("documents").is_some_and(Value::is_array) {
        let message = "this is a documents gateway: start with --gateway and its address";
        return Some(Failure::new(FailureKind::Garbled, message));
    } else {
        return None;
    };
    // OpenAI has two formats.
    let expected = if format.starts_with("OpenAI") {
        own.trim_start_matches("OpenAI ")
    } else {
        own
    };
    let message = format!("this address speaks {format}, not {expected}");
    (format != own).then(|| Failure::new(FailureKind::Garbled, message))
}

/// The arguments of a call: none at all are an empty object, what is no object is given back.
pub fn arguments(text: String) -> Result<Map<String, Value>, String> {
    if text.trim().is_empty() {
        return Ok(Map::new());
    }
    serde_json::from_str(&text).map_err(|_| text)
}

/// Returns a member's text; empty if there is none.
pub fn text<'a>(members: &'a Map<String, Value>, name: &str) -> &'a str {
    members.get(name).and_then(Value::as_str).unwrap_or_default()
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

/// State that the decoders of all formats share: what was given of an answer, its repairs, and its size.
#[derive(Debug, Default)]
pub struct AnswerState {
    pub has_started: bool,
    /// The end or an error was given.
    pub is_over: bool,
    usage: Tokens,
    /// Codes of the repairs that were reported.
    noticed: Vec<&'static str>,
    bytes: usize,
}

impl AnswerState {
    /// Reports a repair, the first time only.
    pub fn notice(&mut self, code: &'static str, message: &str, out: &mut Vec<Piece>) {
        if self.noticed.contains(&code) {
            return;
        }
        self.noticed.push(code);
        out.push(Piece::Notice(Notice::new(Severity::Warning, code, message)));
    }

    /// Reports calls beyond [`CALLS_LIMIT`].
    pub fn notice_call_limit(&mut self, out: &mut Vec<Piece>) {
        let message = "the answer asks for more tools than can be meant; the rest was left out";
        self.notice("too-many-calls", message, out);
    }

    /// Adds to the size of the answer. Error: it is larger than [`ANSWER_LIMIT_BYTES`].
    pub fn weigh(&mut self, bytes: usize) -> Result<(), Failure> {
        self.bytes = self.bytes.saturating_add(bytes);
        if self.bytes > ANSWER_LIMIT_BYTES {
            let message = format!("the answer is larger than {} MiB", ANSWER_LIMIT_BYTES >> 20);
            return Err(Failure::new(FailureKind::Oversized, message));
        }
        Ok(())
    }

    /// Does the same and ends the answer if it is too large. Returns false if it is over.
    pub fn takes(&mut self, bytes: usize, out: &mut Vec<Piece>) -> bool {
        if !self.is_over
            && let Err(failure) = self.weigh(bytes)
        {
            self.fail(failure, out);
        }
        !self.is_over
    }

    /// Gives the start of the answer once its id or its model is known.
    pub fn start(&mut self, id: Option<&Value>, model: Option<&Value>, out: &mut Vec<Piece>) {
        if self.has_started {
            return;
        }
        let text = |it: Option<&Value>| {
            let text = it.and_then(Value::as_str).filter(|it| !it.is_empty());
            text.map(str::to_owned)
        };
        let (response_id, model) = (text(id), text(model));
        if response_id.is_some() || model.is_some() {
            self.has_started = true;
            out.push(Piece::Start { response_id, model });
        }
    }

    /// Gives the counts if they are new.
    pub fn count(&mut self, tokens: Tokens, out: &mut Vec<Piece>) {
        if tokens != Tokens::default() && tokens != self.usage {
            self.usage = tokens;
            out.push(Piece::Usage(tokens));
        }
    }

    /// Gives the end of the answer.
    pub fn end(&mut self, reason: EndReason, out: &mut Vec<Piece>) {
        self.is_over = true;
        out.push(Piece::End(reason));
    }

    /// Ends the answer with a failure, unless it is over.
    pub fn fail(&mut self, failure: Failure, out: &mut Vec<Piece>) {
        if !self.is_over {
            self.is_over = true;
            out.push(Piece::Error(failure));
        }
    }
}

/// Returns the failure for a body that ended before the answer did. `what` names the format: `chat completions`.
pub fn broken_off(has_begun: bool, answer: &AnswerState, what: &str) -> Failure {
    if has_begun {
        Failure::new(FailureKind::Interrupted, "the answer broke off before its end")
    } else if answer.noticed.contains(&BAD_JSON) {
        something_else(what)
    } else {
        Failure::new(
            FailureKind::Interrupted,
            "the server ended the stream without an answer",
        )
    }
}

/// Returns the failure for an answer in no known format. `what` names the expected one.
pub fn something_else(what: &str) -> Failure {
    let message = format!("the server answered with something else than {what}");
    Failure::new(FailureKind::Garbled, message)
}

/// The code of the notice that a line is no JSON.
pub const BAD_JSON: &str = "bad-json";
