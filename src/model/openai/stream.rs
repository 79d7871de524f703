//! From the frames of a chat completion to pieces.
//!
//! Reads `serde_json::Value` member by member, because hardly a server sends what the specification says: nothing
//! here is required, a wrong type counts as absent, and whatever had to be left out is said once. What must not
//! be guessed is the end: without a finish reason or `[DONE]` the answer was cut.

use serde_json::{Map, Value};

use super::plain;
use crate::{
    model::{
        EndReason, Failure, FailureKind, Piece, Tokens,
        lenient::{ANSWER_LIMIT_BYTES, CALLS_LIMIT, arguments as parse_arguments, error_of, values, whole_number},
    },
    net::sse::Frame,
    protocol::{Notice, Severity},
};

/// The state between two frames.
#[derive(Debug)]
pub struct Decoder {
    inline: Inline,
    has_started: bool,
    /// The index of the choice that is read; a second choice is nobody's answer.
    choice: Option<u64>,
    has_choice: bool,
    finish: Option<String>,
    /// The end or an error was given.
    is_over: bool,
    usage: Tokens,
    has_text: bool,
    is_refused: bool,
    calls: Vec<Call>,
    /// The call that was written to last.
    writing: usize,
    /// Reasoning in a form that goes back to its maker as it came.
    opaque: Vec<Value>,
    /// All that was thought, and the name under which the server sends it and wants it back.
    thought: Option<(&'static str, String)>,
    /// What was said already, by code.
    noticed: Vec<&'static str>,
    bytes: usize,
}

/// Where we are in an answer that may start with `<think>`.
#[derive(Debug)]
enum Inline {
    /// Nothing visible came yet, but for a part of the tag.
    Before(String),
    /// What is held back may be the start of the closing tag.
    Inside { held: String, has_begun: bool },
    /// Text is text.
    Off,
}

#[derive(Debug, Default)]
struct Call {
    index: Option<u64>,
    id: String,
    name: String,
    arguments: String,
    is_announced: bool,
    /// What Google's door wants back with this very call.
    opaque: Option<Value>,
}

const OPENING: &str = "<think>";
const CLOSING: &str = "</think>";

/// White space in front of `<think>` that is waited for.
const INLINE_LIMIT_BYTES: usize = 1024;

impl Decoder {
    pub fn new(inline_thinking: bool) -> Self {
        Self {
            inline: if inline_thinking {
                Inline::Before(String::new())
            } else {
                Inline::Off
            },
            has_started: false,
            choice: None,
            has_choice: false,
            finish: None,
            is_over: false,
            usage: Tokens::default(),
            has_text: false,
            is_refused: false,
            calls: Vec::new(),
            writing: 0,
            opaque: Vec::new(),
            thought: None,
            noticed: Vec::new(),
            bytes: 0,
        }
    }

    pub fn push(&mut self, frame: &Frame) -> Vec<Piece> {
        let mut out = Vec::new();
        let data = frame.data.trim();
        // Proxies turn comments into data.
        if self.is_over || data.is_empty() || data.starts_with(':') {
            return out;
        }
        if data.trim_matches('"') == "[DONE]" {
            self.end(&mut out);
            return out;
        }
        if self.has_started
            && frame.event.is_none()
            && let Some(chunk) = plain::read(data)
            && self.choice == Some(chunk.index)
        {
            self.has_choice = true;
            self.text(&chunk.text, &mut out);
            return out;
        }
        let is_error = frame.event.as_deref() == Some("error");
        match values(data) {
            Ok(values) => {
                if values.len() > 1 {
                    self.notice("glued-json", "several JSON objects came in one event", &mut out);
                }
                for value in values {
                    self.value(&value, is_error, &mut out);
                }
            }
            Err(_) if is_error => self.fail(Failure::from_server(None, &Value::String(data.to_owned())), &mut out),
            Err(_) => self.notice("bad-json", "a line of the answer is no JSON and was skipped", &mut out),
        }
        out
    }

    /// The body ended. Without a finish reason that is no end.
    pub fn finish(&mut self) -> Vec<Piece> {
        let failure = if self.has_choice {
            Failure::new(FailureKind::Interrupted, "the answer broke off before its end")
        } else if self.noticed.contains(&"bad-json") {
            Failure::new(
                FailureKind::Garbled,
                "the server answered with something else than chat completions",
            )
        } else {
            Failure::new(
                FailureKind::Interrupted,
                "the server ended the stream without an answer",
            )
        };
        self.cut(failure)
    }

    /// The body cannot be read further. An answer that had its finish reason is whole all the same.
    pub fn cut(&mut self, failure: Failure) -> Vec<Piece> {
        let mut out = Vec::new();
        if self.is_over {
            return out;
        }
        if self.finish.is_some() {
            self.end(&mut out);
        } else {
            self.flush_inline(&mut out);
            self.fail(failure, &mut out);
        }
        out
    }

    /// A finish reason came: at most a count of tokens is missing.
    pub fn is_finished(&self) -> bool {
        self.finish.is_some()
    }

    /// An answer that was not streamed: one JSON body, an error or a whole completion.
    pub fn whole(mut self, body: &str) -> Vec<Piece> {
        let mut out = Vec::new();
        let body = body.trim_start_matches('\u{feff}').trim();
        match values(body) {
            Ok(values) => {
                for value in values {
                    self.value(&value, false, &mut out);
                }
            }
            Err(_) => self.fail(no_completion(body), &mut out),
        }
        if self.is_over {
            return out;
        }
        if self.has_choice {
            self.end(&mut out);
        } else {
            self.fail(no_completion(body), &mut out);
        }
        out
    }

    fn value(&mut self, value: &Value, is_error: bool, out: &mut Vec<Piece>) {
        if self.is_over {
            return;
        }
        let members = match value {
            Value::Object(members) => members,
            // Some gateways wrap an error, or everything, into a list of one.
            Value::Array(items) => {
                for item in items.iter().filter(|it| it.is_object()) {
                    self.value(item, is_error, out);
                }
                return;
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {
                if is_error {
                    self.fail(Failure::from_server(None, value), out);
                } else {
                    self.notice(
                        "bad-json",
                        "an event of the answer is no JSON object and was skipped",
                        out,
                    );
                }
                return;
            }
        };
        if let Some(failure) = foreign(members) {
            self.fail(failure, out);
            return;
        }
        let error = if is_error {
            Some(error_of(members).unwrap_or(value))
        } else {
            error_of(members).or_else(|| is_bare_error(members).then_some(value))
        };
        if error.is_none() || members.contains_key("choices") {
            self.chunk(members, out);
        }
        if let Some(error) = error {
            self.flush_inline(out);
            self.fail(Failure::from_server(None, error), out);
        }
    }

    fn chunk(&mut self, members: &Map<String, Value>, out: &mut Vec<Piece>) {
        let text = |name: &str| members.get(name).and_then(Value::as_str).filter(|it| !it.is_empty());
        if !self.has_started && (text("id").is_some() || text("model").is_some()) {
            self.has_started = true;
            out.push(Piece::Start {
                response_id: text("id").map(str::to_owned),
                model: text("model").map(str::to_owned),
            });
        }
        let groq = members.get("x_groq").and_then(|it| it.get("usage"));
        for usage in [members.get("usage"), groq].into_iter().flatten() {
            self.count(usage, out);
        }
        match members.get("choices") {
            Some(Value::Array(choices)) => {
                for choice in choices {
                    self.one_choice(choice, out);
                }
            }
            Some(choice @ Value::Object(_)) => self.one_choice(choice, out),
            Some(Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_)) | None => {}
        }
    }

    fn one_choice(&mut self, choice: &Value, out: &mut Vec<Piece>) {
        let Value::Object(members) = choice else { return };
        if let Some(index) = members.get("index").and_then(whole_number)
            && *self.choice.get_or_insert(index) != index
        {
            self.notice("second-choice", "a second choice of the answer was left out", out);
            return;
        }
        self.has_choice = true;
        if let Some(usage) = members.get("usage") {
            self.count(usage, out);
        }
        match (members.get("delta"), members.get("message"), members.get("text")) {
            (Some(Value::Object(delta)), ..) if !delta.is_empty() => self.delta(delta, out),
            (Some(Value::String(text)), ..) => self.text(text, out),
            // A last chunk may repeat the whole message.
            (_, Some(Value::Object(message)), _) if !self.has_text && self.calls.is_empty() => self.delta(message, out),
            (_, _, Some(Value::String(text))) => self.text(text, out),
            _ => {}
        }
        if let Some(reason) = members.get("finish_reason").and_then(Value::as_str)
            && !reason.is_empty()
        {
            self.finish = Some(reason.to_owned());
        }
    }

    fn delta(&mut self, delta: &Map<String, Value>, out: &mut Vec<Piece>) {
        self.reasoning(delta, out);
        match delta.get("content") {
            Some(Value::String(text)) => self.text(text, out),
            Some(Value::Array(parts)) => {
                for part in parts {
                    self.part(part, out);
                }
            }
            Some(part @ Value::Object(_)) => self.part(part, out),
            Some(Value::Null | Value::Bool(_) | Value::Number(_)) | None => {}
        }
        if let Some(text) = delta.get("refusal").and_then(Value::as_str)
            && !text.is_empty()
            && self.weigh(text, out)
        {
            self.is_refused = true;
            out.push(Piece::Refusal(text.to_owned()));
        }
        match delta.get("tool_calls") {
            Some(Value::Array(fragments)) => {
                for fragment in fragments {
                    self.call(fragment, out);
                }
            }
            Some(fragment @ Value::Object(_)) => self.call(fragment, out),
            Some(Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_)) | None => {}
        }
        // The form before there were several calls.
        if let Some(function @ Value::Object(_)) = delta.get("function_call") {
            self.call(
                &Value::Object(Map::from_iter([("function".to_owned(), function.clone())])),
                out,
            );
        }
    }

    /// Servers that know both names send the same text under both.
    fn reasoning(&mut self, delta: &Map<String, Value>, out: &mut Vec<Piece>) {
        let details = delta.get("reasoning_details").and_then(Value::as_array);
        let named = ["reasoning_content", "reasoning", "thinking"]
            .iter()
            .find_map(|name| Some((*name, delta.get(*name)?.as_str().filter(|it| !it.is_empty())?)));
        if let Some((name, text)) = named {
            self.think(text, out);
            if !self.is_over {
                let thought = self.thought.get_or_insert_with(|| (name, String::new()));
                thought.1.push_str(text);
            }
        } else {
            for detail in details.into_iter().flatten() {
                let text = ["text", "summary"].iter().find_map(|name| detail.get(*name)?.as_str());
                self.think(text.unwrap_or_default(), out);
            }
        }
        for detail in details.into_iter().flatten() {
            if self.weigh(&detail.to_string(), out) {
                self.opaque.push(detail.clone());
            }
        }
    }

    /// A part of a content that is a list: text, or reasoning with parts of its own.
    fn part(&mut self, part: &Value, out: &mut Vec<Piece>) {
        if let Value::String(text) = part {
            self.text(text, out);
        } else if let Some(text) = part.get("text").and_then(Value::as_str) {
            self.text(text, out);
        } else if let Some(thinking) = part.get("thinking") {
            match thinking {
                Value::String(text) => self.think(text, out),
                Value::Array(parts) => {
                    for text in parts.iter().filter_map(|it| it.get("text")?.as_str()) {
                        self.think(text, out);
                    }
                }
                Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => {}
            }
        } else {
            self.notice(
                "unknown-part",
                "a part of the answer is neither text nor reasoning and was left out",
                out,
            );
        }
    }

    fn think(&mut self, text: &str, out: &mut Vec<Piece>) {
        if text.is_empty() || !self.weigh(text, out) {
            return;
        }
        // A server that tells reasoning apart leaves none in the text.
        self.flush_inline(out);
        out.push(Piece::Thinking(text.to_owned()));
    }

    fn text(&mut self, text: &str, out: &mut Vec<Piece>) {
        if text.is_empty() || !self.weigh(text, out) {
            return;
        }
        self.has_text = true;
        match &mut self.inline {
            Inline::Off => out.push(Piece::Text(text.to_owned())),
            Inline::Before(held) => {
                held.push_str(text);
                let visible = held.trim_start();
                if let Some(inside) = visible.strip_prefix(OPENING) {
                    let inside = inside.to_owned();
                    self.inline = Inline::Inside {
                        held: String::new(),
                        has_begun: false,
                    };
                    self.inside(&inside, out);
                } else if !OPENING.starts_with(visible) || held.len() > INLINE_LIMIT_BYTES {
                    self.flush_inline(out);
                }
            }
            Inline::Inside { .. } => self.inside(text, out),
        }
    }

    fn inside(&mut self, text: &str, out: &mut Vec<Piece>) {
        let Inline::Inside { held, has_begun } = &mut self.inline else {
            return;
        };
        held.push_str(text);
        let (thinking, after) = if let Some((thinking, after)) = held.split_once(CLOSING) {
            (thinking.to_owned(), Some(after.to_owned()))
        } else {
            let kept = (1..CLOSING.len().min(held.len() + 1))
                .rev()
                .find(|&length| CLOSING.get(..length).is_some_and(|start| held.ends_with(start)));
            let tail = held.split_off(held.len() - kept.unwrap_or(0));
            (std::mem::replace(held, tail), None)
        };
        let thinking = if *has_begun {
            thinking.as_str()
        } else {
            thinking.trim_start()
        };
        if !thinking.is_empty() {
            *has_begun = true;
            out.push(Piece::Thinking(thinking.to_owned()));
        }
        if let Some(after) = after {
            self.inline = Inline::Off;
            if !after.is_empty() {
                out.push(Piece::Text(after));
            }
        }
    }

    fn flush_inline(&mut self, out: &mut Vec<Piece>) {
        match std::mem::replace(&mut self.inline, Inline::Off) {
            Inline::Before(held) if !held.is_empty() => out.push(Piece::Text(held)),
            Inline::Inside { held, .. } if !held.is_empty() => out.push(Piece::Thinking(held)),
            Inline::Before(_) | Inline::Inside { .. } | Inline::Off => {}
        }
    }

    fn call(&mut self, fragment: &Value, out: &mut Vec<Piece>) {
        let Value::Object(members) = fragment else { return };
        // A few servers leave the wrapper out.
        let function = members.get("function").and_then(Value::as_object).unwrap_or(members);
        let text = |it: Option<&Value>| it.and_then(Value::as_str).unwrap_or_default().to_owned();
        let (id, name) = (text(members.get("id")), text(function.get("name")));
        let arguments = match function.get("arguments") {
            Some(Value::String(text)) => text.clone(),
            Some(whole @ (Value::Object(_) | Value::Array(_))) => whole.to_string(),
            Some(Value::Null | Value::Bool(_) | Value::Number(_)) | None => String::new(),
        };
        let index = members.get("index").and_then(whole_number);
        let slot = self.slot(index, &id, &name, &arguments);
        if slot == CALLS_LIMIT {
            self.notice(
                "too-many-calls",
                "the answer asks for more tools than can be meant; the rest was left out",
                out,
            );
            return;
        }
        let extra = members.get("extra_content").filter(|it| it.is_object());
        let weight = extra.map(ToString::to_string).unwrap_or_default();
        if !self.weigh(&arguments, out) || !self.weigh(&weight, out) {
            return;
        }
        self.flush_inline(out);
        if slot == self.calls.len() {
            self.calls.push(Call {
                index,
                ..Call::default()
            });
        }
        self.writing = slot;
        let Some(call) = self.calls.get_mut(slot) else { return };
        if call.id.is_empty() {
            call.id = id;
        }
        if call.name.is_empty() {
            call.name = name;
        }
        call.arguments.push_str(&arguments);
        if let Some(extra) = extra {
            call.opaque = Some(Value::Object(Map::from_iter([(
                "extra_content".to_owned(),
                extra.clone(),
            )])));
        }
        if !call.is_announced && !call.name.is_empty() {
            call.is_announced = true;
            out.push(Piece::CallStart {
                slot,
                id: call.id.clone(),
                name: call.name.clone(),
            });
            if !call.arguments.is_empty() {
                out.push(Piece::CallArguments {
                    slot,
                    fragment: call.arguments.clone(),
                });
            }
        } else if call.is_announced && !arguments.is_empty() {
            out.push(Piece::CallArguments {
                slot,
                fragment: arguments,
            });
        }
    }

    /// Which call a fragment belongs to; the number of calls for a new one.
    fn slot(&self, index: Option<u64>, id: &str, name: &str, arguments: &str) -> usize {
        let new = self.calls.len();
        let known = (!id.is_empty())
            .then(|| self.calls.iter().rposition(|it| it.id == id))
            .flatten();
        match index {
            Some(_) => {
                // Servers that count wrongly send index 0 for every call, so the newest call of an index has it.
                let Some(at) = self.calls.iter().rposition(|it| it.index == index) else {
                    return new;
                };
                let Some(call) = self.calls.get(at) else { return new };
                let is_named = !name.is_empty() && !call.name.is_empty();
                if is_named && !id.is_empty() && id != call.id && !(call.id.is_empty() && call.arguments.is_empty()) {
                    known.unwrap_or(new)
                } else if is_named && id.is_empty() && !arguments.is_empty() && is_object(&call.arguments) {
                    // Neither index nor id tell them apart, but the arguments before are whole.
                    new
                } else {
                    at
                }
            }
            None => match known {
                Some(at) => at,
                None if !id.is_empty() || !name.is_empty() => new,
                None => new.saturating_sub(1),
            },
        }
    }

    fn count(&mut self, usage: &Value, out: &mut Vec<Piece>) {
        let count = |names: &[&str]| {
            names
                .iter()
                .find_map(|path| {
                    path.split('.')
                        .try_fold(usage, |it, name| it.get(name))
                        .and_then(whole_number)
                })
                .unwrap_or(0)
        };
        let tokens = Tokens {
            prompt: count(&["prompt_tokens", "input_tokens"]),
            cache_written: 0,
            cached: count(&[
                "prompt_tokens_details.cached_tokens",
                "input_tokens_details.cached_tokens",
                "prompt_cache_hit_tokens",
            ]),
            completion: count(&["completion_tokens", "output_tokens"]),
            reasoning: count(&[
                "completion_tokens_details.reasoning_tokens",
                "output_tokens_details.reasoning_tokens",
            ]),
        };
        if tokens != Tokens::default() && tokens != self.usage {
            self.usage = tokens;
            out.push(Piece::Usage(tokens));
        }
    }

    fn end(&mut self, out: &mut Vec<Piece>) {
        self.flush_inline(out);
        let word = self.finish.take().unwrap_or_else(|| "stop".to_owned());
        match word.as_str() {
            "error" => {
                let failure = Failure::new(FailureKind::Unreachable, "the server ended the answer with an error");
                return self.fail(failure, out);
            }
            "insufficient_system_resource" => {
                let failure = Failure::new(FailureKind::Overloaded, "the server ran out of capacity in mid-answer");
                return self.fail(failure, out);
            }
            _ => {}
        }
        let mut opaque = Map::new();
        if let Some((name, text)) = self.thought.take() {
            opaque.insert(name.to_owned(), text.into());
        }
        if !self.opaque.is_empty() {
            opaque.insert("reasoning_details".to_owned(), std::mem::take(&mut self.opaque).into());
        }
        if !opaque.is_empty() {
            out.push(Piece::ThinkingDone { opaque: opaque.into() });
        }
        let has_calls = !self.calls.is_empty();
        let reason = match word.as_str() {
            "length" | "max_tokens" | "max_output_tokens" | "model_length" => EndReason::Length,
            "content_filter" | "safety" => EndReason::ContentFilter,
            "refusal" => EndReason::Refusal,
            // Whether tools were called is seen in the calls: servers write `stop` beside them.
            "stop" | "end_turn" | "eos" | "eos_token" | "stop_sequence" | "complete" | "tool_calls" | "tool_use"
            | "function_call" => {
                if has_calls {
                    EndReason::ToolUse
                } else if self.is_refused {
                    EndReason::Refusal
                } else {
                    EndReason::Stop
                }
            }
            _ => EndReason::Other(word),
        };
        // Where the model did not stop by itself, what it wrote last may be half of what it meant: no arguments at all
        // are as cut as half of them.
        let is_stopped = matches!(reason, EndReason::Length | EndReason::Other(_));
        for (slot, call) in std::mem::take(&mut self.calls).into_iter().enumerate() {
            let id = call.id;
            if !call.is_announced {
                out.push(Piece::CallStart {
                    slot,
                    id: id.clone(),
                    name: call.name.clone(),
                });
            }
            if is_stopped && slot == self.writing && !is_object(&call.arguments) {
                continue;
            }
            out.push(Piece::CallDone {
                slot,
                id,
                name: call.name,
                arguments: parse_arguments(call.arguments),
                opaque: call.opaque,
            });
        }
        self.is_over = true;
        out.push(Piece::End(reason));
    }

    fn fail(&mut self, failure: Failure, out: &mut Vec<Piece>) {
        self.is_over = true;
        out.push(Piece::Error(failure));
    }

    /// Adds to what the answer weighs; `false` when it has become too much.
    fn weigh(&mut self, text: &str, out: &mut Vec<Piece>) -> bool {
        if self.is_over {
            return false;
        }
        self.bytes = self.bytes.saturating_add(text.len());
        if self.bytes > ANSWER_LIMIT_BYTES {
            let limit = ANSWER_LIMIT_BYTES >> 20;
            self.fail(
                Failure::new(FailureKind::Oversized, format!("the answer is larger than {limit} MiB")),
                out,
            );
            return false;
        }
        true
    }

    /// Says what was repaired, the first time only.
    fn notice(&mut self, code: &'static str, message: &str, out: &mut Vec<Piece>) {
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
}

/// An error that is not wrapped in `error`: old vLLM, FastAPI.
fn is_bare_error(members: &Map<String, Value>) -> bool {
    let is = |name: &str, word: &str| members.get(name).and_then(Value::as_str) == Some(word);
    is("object", "error")
        || is("type", "error")
        || (["detail", "message"].iter().any(|it| members.contains_key(*it))
            && ["choices", "id", "usage", "object", "model"]
                .iter()
                .all(|it| !members.contains_key(*it)))
}

/// Formats that people point us at by mistake.
fn foreign(members: &Map<String, Value>) -> Option<Failure> {
    if members.contains_key("choices") {
        return None;
    }
    let kind = members.get("type").and_then(Value::as_str).unwrap_or_default();
    let message = if kind == "message_start" || (kind == "message" && members.contains_key("content")) {
        "this address speaks Anthropic messages, not OpenAI chat completions"
    } else if kind.starts_with("response.") {
        "this address speaks OpenAI responses, not chat completions"
    } else if kind == "document_start" || members.get("documents").is_some_and(Value::is_array) {
        "this is a documents gateway: start with --gateway and its address"
    } else if members.contains_key("candidates") {
        "this address speaks Gemini, not OpenAI chat completions"
    } else if members.get("message").is_some_and(Value::is_object) && members.contains_key("done") {
        "this is the native address of Ollama: its OpenAI-compatible one ends in /v1"
    } else {
        return None;
    };
    Some(Failure::new(FailureKind::Garbled, message))
}

fn is_object(text: &str) -> bool {
    serde_json::from_str::<Map<String, Value>>(text).is_ok()
}

fn no_completion(body: &str) -> Failure {
    Failure::new(
        FailureKind::Garbled,
        "the server answered with something else than chat completions",
    )
    .saying(body)
}

#[cfg(test)]
mod tests {
    use std::{fmt::Write, path::PathBuf};

    use pretty_assertions::assert_eq;
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;
    use crate::net::sse::Frames;

    /// Pieces in one line; neighbours of one kind are one, because where they were cut says nothing.
    fn show(pieces: &[Piece]) -> String {
        let mut merged: Vec<Piece> = Vec::new();
        for piece in pieces {
            match (merged.last_mut(), piece) {
                (Some(Piece::Text(last)), Piece::Text(more)) | (Some(Piece::Thinking(last)), Piece::Thinking(more)) => {
                    last.push_str(more);
                }
                (
                    Some(Piece::CallArguments { slot: last, fragment }),
                    Piece::CallArguments { slot, fragment: more },
                ) if last == slot => fragment.push_str(more),
                _ => merged.push(piece.clone()),
            }
        }
        let mut line = String::new();
        for piece in &merged {
            if !line.is_empty() {
                line.push_str(" | ");
            }
            match piece {
                Piece::Progress(progress) => write!(line, "progress {progress:?}"),
                Piece::Start { model, .. } => write!(line, "start {}", model.as_deref().unwrap_or("-")),
                Piece::Text(text) => write!(line, "text {text:?}"),
                Piece::Thinking(text) => write!(line, "thinking {text:?}"),
                Piece::ThinkingDone { opaque } => write!(line, "opaque {opaque}"),
                Piece::CallStart { slot, id, name } => write!(line, "call {slot} {id:?} {name:?}"),
                Piece::CallArguments { slot, fragment } => write!(line, "arguments {slot} {fragment:?}"),
                Piece::CallDone {
                    slot,
                    id,
                    name,
                    arguments,
                    opaque: _,
                } => match arguments {
                    Ok(arguments) => write!(line, "called {slot} {id:?} {name:?} {}", json!(arguments)),
                    Err(text) => write!(line, "called {slot} {id:?} {name:?} with broken {text:?}"),
                },
                Piece::Usage(it) => {
                    write!(
                        line,
                        "usage {}({})+{}({})",
                        it.prompt, it.cached, it.completion, it.reasoning
                    )
                }
                Piece::Refusal(text) => write!(line, "refusal {text:?}"),
                Piece::Notice(notice) => write!(line, "notice {}", notice.code),
                Piece::Seen(_) => write!(line, "seen"),
                Piece::End(reason) => write!(line, "end {reason:?}"),
                Piece::Error(failure) => write!(
                    line,
                    "error {} {:?} {:?}",
                    failure.kind.code(),
                    failure.message,
                    failure.said.as_deref().unwrap_or_default()
                ),
            }
            .expect("a String takes everything");
        }
        line
    }

    fn decode<'a>(chunks: impl IntoIterator<Item = &'a [u8]>) -> Vec<Piece> {
        let mut frames = Frames::new();
        let mut decoder = Decoder::new(true);
        let mut pieces = Vec::new();
        for chunk in chunks {
            for frame in frames.push(chunk) {
                pieces.extend(decoder.push(&frame.expect("no line is too long")));
            }
        }
        if let Some(frame) = frames.finish() {
            pieces.extend(decoder.push(&frame.expect("no line is too long")));
        }
        pieces.extend(decoder.finish());
        let ends = pieces
            .iter()
            .filter(|it| matches!(it, Piece::End(_) | Piece::Error(_)))
            .count();
        assert_eq!(ends, 1, "one end");
        assert!(
            matches!(pieces.last(), Some(Piece::End(_) | Piece::Error(_))),
            "the end is last"
        );
        pieces
    }

    /// A stream of these data lines, and `[DONE]`.
    fn stream(data: &[&str]) -> String {
        data.iter()
            .chain(&["[DONE]"])
            .fold(String::new(), |all, it| all + "data: " + it + "\n\n")
    }

    const HI: &str = r#"{"choices":[{"delta":{"content":"hi"}}]}"#;
    const STOP: &str = r#"{"choices":[{"delta":{},"finish_reason":"stop"}]}"#;
    const HI_STOP: &str = r#"text "hi" | end Stop"#;

    fn check(cases: &[(&str, &[&str], &str)]) {
        for (name, data, want) in cases {
            assert_eq!(show(&decode([stream(data).as_bytes()])), *want, "{name}");
        }
    }

    #[test]
    fn sloppy_chunks_are_read() {
        check(&[
            ("only choices", &[HI, STOP], HI_STOP),
            (
                "everything",
                &[
                    r#"{"id":"c1","object":"chat.completion.chunk","created":1,"model":"gpt-x","choices":[{"index":0,"delta":{"role":"assistant","content":""},"finish_reason":null}]}"#,
                    HI,
                    STOP,
                    r#"{"choices":[],"usage":{"prompt_tokens":90,"completion_tokens":17,"total_tokens":107,"prompt_tokens_details":{"cached_tokens":64},"completion_tokens_details":{"reasoning_tokens":3}}}"#,
                ],
                r#"start gpt-x | text "hi" | usage 90(64)+17(3) | end Stop"#,
            ),
            (
                "finish reason is empty until it is not",
                &[r#"{"choices":[{"delta":{"content":"hi"},"finish_reason":""}]}"#, STOP],
                HI_STOP,
            ),
            (
                "an unknown finish reason",
                &[HI, r#"{"choices":[{"delta":{},"finish_reason":"cosmic_ray"}]}"#],
                r#"text "hi" | end Other("cosmic_ray")"#,
            ),
            (
                "a foreign finish reason",
                &[HI, r#"{"choices":[{"finish_reason":"end_turn"}]}"#],
                HI_STOP,
            ),
            ("no finish reason, but [DONE]", &[HI], HI_STOP),
            (
                "the finish reason comes with the content",
                &[r#"{"choices":[{"delta":{"content":"hi"},"finish_reason":"stop"}]}"#],
                HI_STOP,
            ),
            ("delta is null", &[r#"{"choices":[{"delta":null}]}"#, HI, STOP], HI_STOP),
            ("choices is null", &[r#"{"choices":null}"#, HI, STOP], HI_STOP),
            (
                "choices is empty",
                &[r#"{"choices":[]}"#, HI, STOP, r#"{"choices":[]}"#],
                HI_STOP,
            ),
            (
                "choices is missing",
                &[r#"{"object":"chat.completion.chunk"}"#, HI, STOP],
                HI_STOP,
            ),
            (
                "choices is an object",
                &[r#"{"choices":{"delta":{"content":"hi"}}}"#, STOP],
                HI_STOP,
            ),
            (
                "choices hold nonsense",
                &[r#"{"choices":[null,7,"x",[]]}"#, HI, STOP],
                HI_STOP,
            ),
            (
                "content is null",
                &[r#"{"choices":[{"delta":{"content":null}}]}"#, HI, STOP],
                HI_STOP,
            ),
            (
                "content is a list of parts",
                &[
                    r#"{"choices":[{"delta":{"content":[{"type":"text","text":"h"},"i",{"type":"image"}]}}]}"#,
                    STOP,
                ],
                r#"text "hi" | notice unknown-part | end Stop"#,
            ),
            (
                "content is a number",
                &[r#"{"choices":[{"delta":{"content":7}}]}"#, HI, STOP],
                HI_STOP,
            ),
            (
                "azure speaks about filters first",
                &[
                    r#"{"choices":[],"prompt_filter_results":[{"prompt_index":0}]}"#,
                    HI,
                    r#"{"choices":[{"delta":{},"content_filter_results":{"hate":{"filtered":false}}}]}"#,
                    STOP,
                ],
                HI_STOP,
            ),
            (
                "a second choice",
                &[
                    r#"{"choices":[{"index":0,"delta":{"content":"hi"}},{"index":1,"delta":{"content":"ho"}}]}"#,
                    STOP,
                ],
                r#"text "hi" | notice second-choice | end Stop"#,
            ),
            (
                "the only choice has index 1",
                &[r#"{"choices":[{"index":1,"delta":{"content":"hi"},"finish_reason":"stop"}]}"#],
                HI_STOP,
            ),
            (
                "a message in place of the delta",
                &[r#"{"choices":[{"message":{"content":"hi"},"finish_reason":"stop"}]}"#],
                HI_STOP,
            ),
            (
                "a last chunk repeats the message",
                &[
                    HI,
                    r#"{"choices":[{"delta":{},"message":{"content":"hi"},"finish_reason":"stop"}]}"#,
                ],
                HI_STOP,
            ),
            (
                "tool_calls is an empty list",
                &[r#"{"choices":[{"delta":{"content":"hi","tool_calls":[]}}]}"#, STOP],
                HI_STOP,
            ),
            (
                "what comes after the end is ignored",
                &[HI, STOP, "[DONE]", HI],
                HI_STOP,
            ),
        ]);
    }

    #[test]
    fn sloppy_frames_are_read() {
        check(&[
            ("empty data", &["", HI, "", STOP], HI_STOP),
            (
                "a comment that became data",
                &[": OPENROUTER PROCESSING", HI, STOP],
                HI_STOP,
            ),
            (
                "a line that is no JSON",
                &[HI, "<hr>", "{\"choices\":", STOP],
                r#"text "hi" | notice bad-json | end Stop"#,
            ),
            (
                "JSON that is no object",
                &["7", "\"x\"", HI, STOP],
                r#"notice bad-json | text "hi" | end Stop"#,
            ),
            (
                "two objects in one event",
                &[&(HI.to_owned() + STOP)],
                r#"notice glued-json | text "hi" | end Stop"#,
            ),
            ("an object in a list", &[&format!("[{HI}]"), STOP], HI_STOP),
            ("[DONE] in quotes", &[HI, STOP, "\"[DONE]\""], HI_STOP),
        ]);
        let cases = [
            ("a byte order mark", format!("\u{feff}{}", stream(&[HI, STOP]))),
            ("lines end in CRLF", stream(&[HI, STOP]).replace('\n', "\r\n")),
            (
                "comments between",
                stream(&[HI, STOP]).replace("data", ": ping\n\n: \ndata"),
            ),
            (
                "no space after the colon",
                stream(&[HI, STOP]).replace("data: ", "data:"),
            ),
            (
                "the event is named message",
                stream(&[HI, STOP]).replace("data", "event: message\ndata"),
            ),
            ("no blank line at the end", stream(&[HI, STOP]).trim_end().to_owned()),
            (
                "[DONE] is missing after a finish reason",
                stream(&[HI, STOP]).replace("data: [DONE]\n\n", ""),
            ),
        ];
        for (name, body) in cases {
            assert_eq!(show(&decode([body.as_bytes()])), HI_STOP, "{name}");
        }
    }

    #[test]
    fn a_cut_stream_is_no_answer() {
        let broke = r#"error STREAM_INTERRUPTED "the answer broke off before its end" """#;
        let call = r#"{"choices":[{"delta":{"tool_calls":[{"index":0,"id":"a","function":{"name":"ls","arguments":"{}"}}]}}]}"#;
        let cases = [
            ("in the answer", format!("data: {HI}\n\n"), format!(r#"text "hi" | {broke}"#)),
            ("in a frame", format!("data: {HI}\n\ndata: {{\"cho"), format!(r#"text "hi" | {broke}"#)),
            (
                "after a call: it must not run",
                format!("data: {call}\n\n"),
                format!(r#"call 0 "a" "ls" | arguments 0 "{{}}" | {broke}"#),
            ),
            (
                "in reasoning in the text",
                "data: {\"choices\":[{\"delta\":{\"content\":\"<think>hm</thi\"}}]}\n\n".to_owned(),
                format!(r#"thinking "hm</thi" | {broke}"#),
            ),
            (
                "before anything",
                ": ping\n\n".to_owned(),
                r#"error STREAM_INTERRUPTED "the server ended the stream without an answer" """#.to_owned(),
            ),
            (
                "nothing but rubbish",
                "data: x\n\ndata: y\n\n".to_owned(),
                r#"notice bad-json | error LLM_BAD_RESPONSE "the server answered with something else than chat completions" """#
                    .to_owned(),
            ),
        ];
        for (name, body, want) in cases {
            assert_eq!(show(&decode([body.as_bytes()])), want, "{name}");
        }
    }

    #[test]
    fn errors_in_mid_stream_end_it() {
        let said = |code: &str, message: &str, said: &str| format!(r#"text "hi" | error {code} {message:?} {said:?}"#);
        let reported = "the server reported an error";
        let cases: &[(&str, &str, String)] = &[
            (
                "null is no error",
                r#"{"error":null,"choices":[{"delta":{"content":"!"}}]}"#,
                r#"text "hi!" | end Stop"#.to_owned(),
            ),
            (
                "nor is an empty one",
                r#"{"error":"","choices":[]}"#,
                HI_STOP.to_owned(),
            ),
            (
                "an object",
                r#"{"error":{"message":"boom","type":"odd"}}"#,
                said("LLM_BAD_RESPONSE", reported, "boom"),
            ),
            (
                "a text",
                r#"{"error":"boom"}"#,
                said("LLM_BAD_RESPONSE", reported, "boom"),
            ),
            (
                "overloaded, by its code",
                r#"{"error":{"message":"later","code":529}}"#,
                said("LLM_OVERLOADED", "the server has no capacity at the moment", "later"),
            ),
            (
                "a code in quotes",
                r#"{"error":{"message":"oh","code":"502"}}"#,
                said("LLM_UNAVAILABLE", "the server failed (502)", "oh"),
            ),
            (
                "with a last choice",
                r#"{"error":{"message":"oh","code":502},"choices":[{"delta":{"content":"!"},"finish_reason":"error"}]}"#,
                r#"text "hi!" | error LLM_UNAVAILABLE "the server failed (502)" "oh""#.to_owned(),
            ),
            (
                "only a finish reason",
                r#"{"choices":[{"delta":{},"finish_reason":"error"}]}"#,
                said("LLM_UNAVAILABLE", "the server ended the answer with an error", ""),
            ),
            (
                "no resources",
                r#"{"choices":[{"delta":{},"finish_reason":"insufficient_system_resource"}]}"#,
                said("LLM_OVERLOADED", "the server ran out of capacity in mid-answer", ""),
            ),
            (
                "in a list of one",
                r#"[{"error":{"code":400,"message":"bad","status":"INVALID_ARGUMENT"}}]"#,
                said("LLM_BAD_RESPONSE", "the server refused the request (400)", "bad"),
            ),
            (
                "not wrapped, as vLLM had it",
                r#"{"object":"error","message":"max context length is 10","code":400}"#,
                said(
                    "LLM_CONTEXT_LENGTH",
                    "the conversation is too long for the model",
                    "max context length is 10",
                ),
            ),
            (
                "FastAPI's",
                r#"{"detail":"Not Found"}"#,
                said("LLM_BAD_RESPONSE", reported, "Not Found"),
            ),
        ];
        for (name, data, want) in cases {
            assert_eq!(show(&decode([stream(&[HI, data]).as_bytes()])), *want, "{name}");
        }
        let events = [
            ("with JSON", "event: error\ndata: {\"message\":\"boom\"}\n\n"),
            ("wrapped", "event: error\ndata: {\"error\":{\"message\":\"boom\"}}\n\n"),
            ("in plain words", "event: error\ndata: boom\n\n"),
            ("as a JSON text", "event: error\ndata: \"boom\"\n\n"),
        ];
        for (name, event) in events {
            let body = format!("data: {HI}\n\n{event}");
            assert_eq!(
                show(&decode([body.as_bytes()])),
                said("LLM_BAD_RESPONSE", reported, "boom"),
                "{name}"
            );
        }
    }

    #[test]
    fn usage_is_found_wherever_it_is() {
        check(&[
            (
                "floats",
                &[HI, r#"{"usage":{"prompt_tokens":5.0,"completion_tokens":2.6}}"#, STOP],
                r#"text "hi" | usage 5(0)+3(0) | end Stop"#,
            ),
            (
                "in quotes, negative, of a wrong type",
                &[
                    r#"{"choices":[{"delta":{"content":"hi"},"finish_reason":"stop"}],"usage":{"prompt_tokens":"5","completion_tokens":-1,"prompt_tokens_details":7}}"#,
                ],
                r#"usage 5(0)+0(0) | text "hi" | end Stop"#,
            ),
            (
                "null in every chunk",
                &[
                    r#"{"choices":[{"delta":{"content":"hi"}}],"usage":null}"#,
                    STOP,
                    r#"{"choices":[],"usage":{"prompt_tokens":5,"completion_tokens":2}}"#,
                ],
                r#"text "hi" | usage 5(0)+2(0) | end Stop"#,
            ),
            (
                "on every chunk, growing",
                &[
                    r#"{"choices":[{"delta":{"content":"h"}}],"usage":{"prompt_tokens":5,"completion_tokens":1}}"#,
                    r#"{"choices":[{"delta":{"content":"i"}}],"usage":{"prompt_tokens":5,"completion_tokens":2}}"#,
                    r#"{"choices":[],"usage":{"prompt_tokens":5,"completion_tokens":2}}"#,
                    STOP,
                ],
                r#"usage 5(0)+1(0) | text "h" | usage 5(0)+2(0) | text "i" | end Stop"#,
            ),
            (
                "zeros at the end do not wipe it out",
                &[
                    r#"{"choices":[{"delta":{"content":"hi"}}],"usage":{"prompt_tokens":5,"completion_tokens":2}}"#,
                    r#"{"choices":[],"usage":{"prompt_tokens":0,"completion_tokens":0}}"#,
                    STOP,
                ],
                r#"usage 5(0)+2(0) | text "hi" | end Stop"#,
            ),
            (
                "under x_groq",
                &[
                    HI,
                    r#"{"choices":[{"delta":{},"finish_reason":"stop"}],"x_groq":{"id":"r","usage":{"prompt_tokens":5,"completion_tokens":2}}}"#,
                ],
                r#"text "hi" | usage 5(0)+2(0) | end Stop"#,
            ),
            (
                "in the choice",
                &[
                    r#"{"choices":[{"delta":{"content":"hi"},"usage":{"prompt_tokens":5,"completion_tokens":2}}]}"#,
                    STOP,
                ],
                r#"usage 5(0)+2(0) | text "hi" | end Stop"#,
            ),
            (
                "DeepSeek counts its cache beside",
                &[
                    HI,
                    STOP,
                    r#"{"choices":[],"usage":{"prompt_tokens":5,"prompt_cache_hit_tokens":4,"completion_tokens":2}}"#,
                ],
                r#"text "hi" | usage 5(4)+2(0) | end Stop"#,
            ),
        ]);
    }

    #[test]
    fn reasoning_has_many_names() {
        let content = r#"thinking "hm" | text "hi" | opaque {"reasoning_content":"hm"} | end Stop"#;
        let reasoning = r#"thinking "hm" | text "hi" | opaque {"reasoning":"hm"} | end Stop"#;
        check(&[
            (
                "reasoning_content",
                &[
                    r#"{"choices":[{"delta":{"reasoning_content":"hm","content":null}}]}"#,
                    HI,
                    STOP,
                ],
                content,
            ),
            (
                "reasoning",
                &[r#"{"choices":[{"delta":{"reasoning":"hm","content":""}}]}"#, HI, STOP],
                reasoning,
            ),
            (
                "both at once",
                &[
                    r#"{"choices":[{"delta":{"reasoning":"hm","reasoning_content":"hm"}}]}"#,
                    HI,
                    STOP,
                ],
                content,
            ),
            (
                "one null",
                &[
                    r#"{"choices":[{"delta":{"reasoning_content":null,"reasoning":"hm"}}]}"#,
                    HI,
                    STOP,
                ],
                reasoning,
            ),
            (
                "before the role",
                &[
                    r#"{"choices":[{"delta":{"reasoning_content":"hm"}}]}"#,
                    r#"{"choices":[{"delta":{"role":"assistant","content":""}}]}"#,
                    HI,
                    STOP,
                ],
                content,
            ),
            (
                "parts of the content",
                &[
                    r#"{"choices":[{"delta":{"content":[{"type":"thinking","thinking":[{"type":"text","text":"hm"}]}]}}]}"#,
                    HI,
                    STOP,
                ],
                r#"thinking "hm" | text "hi" | end Stop"#,
            ),
            (
                "details beside the text are kept for their maker",
                &[
                    r#"{"choices":[{"delta":{"reasoning":"hm","reasoning_details":[{"type":"reasoning.text","text":"hm","signature":"s"}]}}]}"#,
                    HI,
                    STOP,
                ],
                r#"thinking "hm" | text "hi" | opaque {"reasoning":"hm","reasoning_details":[{"type":"reasoning.text","text":"hm","signature":"s"}]} | end Stop"#,
            ),
            (
                "details alone",
                &[
                    r#"{"choices":[{"delta":{"reasoning_details":[{"type":"reasoning.summary","summary":"hm"},{"type":"reasoning.encrypted","data":"x"}]}}]}"#,
                    HI,
                    STOP,
                ],
                r#"thinking "hm" | text "hi" | opaque {"reasoning_details":[{"type":"reasoning.summary","summary":"hm"},{"type":"reasoning.encrypted","data":"x"}]} | end Stop"#,
            ),
            (
                "nothing but reasoning until the limit",
                &[r#"{"choices":[{"delta":{"reasoning":"hm"},"finish_reason":"length"}]}"#],
                r#"thinking "hm" | opaque {"reasoning":"hm"} | end Length"#,
            ),
        ]);
    }

    #[test]
    fn a_think_block_at_the_start_is_reasoning() {
        let cases = [
            (
                "a block",
                "<think>hm</think>hi",
                r#"thinking "hm" | text "hi" | end Stop"#,
            ),
            (
                "white space around it",
                "\n <think>\n\nhm\n</think>\n\nhi",
                "thinking \"hm\\n\" | text \"\\n\\nhi\" | end Stop",
            ),
            ("an empty one", "<think>\n\n</think>hi", HI_STOP),
            ("not at the start", "hi <think>", r#"text "hi <think>" | end Stop"#),
            ("another tag", "<thing>hi", r#"text "<thing>hi" | end Stop"#),
            ("only a part of the tag", "<thi", r#"text "<thi" | end Stop"#),
            ("not closed", "<think>hm", r#"thinking "hm" | end Stop"#),
            (
                "nearly closed inside",
                "<think>a</thin>b</think>hi",
                r#"thinking "a</thin>b" | text "hi" | end Stop"#,
            ),
            (
                "twice",
                "<think>a</think>b<think>c",
                r#"thinking "a" | text "b<think>c" | end Stop"#,
            ),
        ];
        for (name, content, want) in cases {
            let chunk = |text: &str| json!({ "choices": [{ "delta": { "content": text } }] }).to_string();
            for at in (0..=content.len()).filter(|&at| content.is_char_boundary(at)) {
                let (head, tail) = content.split_at(at);
                let body = stream(&[&chunk(head), &chunk(tail), STOP]);
                assert_eq!(show(&decode([body.as_bytes()])), want, "{name}, cut at {at}");
            }
            let letters: Vec<String> = content.chars().map(|it| chunk(&it.to_string())).collect();
            let letters: Vec<&str> = letters.iter().map(String::as_str).chain([STOP]).collect();
            assert_eq!(
                show(&decode([stream(&letters).as_bytes()])),
                want,
                "{name}, letter by letter"
            );
        }
        let body = stream(&[r#"{"choices":[{"delta":{"content":"<think>hm</think>"}}]}"#]);
        let mut decoder = Decoder::new(false);
        let pieces: Vec<Piece> = Frames::new()
            .push(body.as_bytes())
            .into_iter()
            .flat_map(|it| decoder.push(&it.expect("short lines")))
            .collect();
        assert_eq!(show(&pieces), r#"text "<think>hm</think>" | end Stop"#, "switched off");
    }

    /// A chunk with these fragments of calls.
    fn calls(fragments: &Value) -> String {
        json!({ "choices": [{ "index": 0, "delta": { "tool_calls": fragments } }] }).to_string()
    }

    #[test]
    fn fragments_of_calls_find_their_slots() {
        let f = |name: &str, arguments: &str| json!({ "name": name, "arguments": arguments });
        let more = |arguments: &str| json!({ "arguments": arguments });
        let two = concat!(
            r#"call 0 "a" "ls" | arguments 0 "{\"p\":1}" | call 1 "b" "cat" | arguments 1 "{\"q\":2}" | "#,
            r#"called 0 "a" "ls" {"p":1} | called 1 "b" "cat" {"q":2} | end ToolUse"#
        );
        let one = r#"call 0 "a" "ls" | arguments 0 "{\"p\":1}" | called 0 "a" "ls" {"p":1} | end ToolUse"#;
        let cases: &[(&str, &[Value], &str)] = &[
            (
                "as specified",
                &[
                    json!([{ "index": 0, "id": "a", "type": "function", "function": f("ls", "") }]),
                    json!([{ "index": 0, "function": more("{\"p\"") }]),
                    json!([{ "index": 0, "function": more(":1}") }]),
                    json!([{ "index": 1, "id": "b", "type": "function", "function": f("cat", "") }]),
                    json!([{ "index": 1, "function": more("{\"q\":2}") }]),
                ],
                two,
            ),
            (
                "interleaved",
                &[
                    json!([{ "index": 0, "id": "a", "function": f("ls", "{\"p\"") }, { "index": 1, "id": "b", "function": f("cat", "{\"q\"") }]),
                    json!([{ "index": 1, "function": more(":2}") }, { "index": 0, "function": more(":1}") }]),
                ],
                concat!(
                    r#"call 0 "a" "ls" | arguments 0 "{\"p\"" | call 1 "b" "cat" | arguments 1 "{\"q\":2}" | arguments 0 ":1}" | "#,
                    r#"called 0 "a" "ls" {"p":1} | called 1 "b" "cat" {"q":2} | end ToolUse"#
                ),
            ),
            (
                "no index",
                &[
                    json!([{ "id": "a", "function": f("ls", "{\"p\":") }]),
                    json!([{ "function": more("1}") }]),
                    json!([{ "id": "b", "function": f("cat", "{\"q\":") }]),
                    json!([{ "id": "b", "function": more("2}") }]),
                ],
                two,
            ),
            (
                "index is null",
                &[
                    json!([{ "index": null, "id": "a", "function": f("ls", "{\"p\":1}") }, { "index": null, "id": "b", "function": f("cat", "{\"q\":2}") }]),
                ],
                two,
            ),
            (
                "index 0 for every call",
                &[
                    json!([{ "index": 0, "id": "a", "function": f("ls", "{\"p\":1}") }]),
                    json!([{ "index": 0, "id": "b", "function": f("cat", "{\"q\"") }]),
                    json!([{ "index": 0, "function": more(":2}") }]),
                ],
                two,
            ),
            (
                "indices start at 1",
                &[
                    json!([{ "index": 1, "id": "a", "function": f("ls", "{\"p\":1}") }]),
                    json!([{ "index": 2, "id": "b", "function": f("cat", "{\"q\":2}") }]),
                ],
                two,
            ),
            (
                "arguments are an object",
                &[json!([{ "index": 0, "id": "a", "function": { "name": "ls", "arguments": { "p": 1 } } }])],
                one,
            ),
            (
                "id and name in every fragment",
                &[
                    json!([{ "index": 0, "id": "a", "function": f("ls", "{\"p\"") }]),
                    json!([{ "index": 0, "id": "a", "function": f("ls", ":1}") }]),
                ],
                one,
            ),
            (
                "name and arguments without the wrapper",
                &[json!([{ "index": 0, "id": "a", "name": "ls", "arguments": "{\"p\":1}" }])],
                one,
            ),
            (
                "the name comes late",
                &[
                    json!([{ "index": 0, "id": "a", "function": more("{\"p\"") }]),
                    json!([{ "index": 0, "function": f("ls", ":1}") }]),
                ],
                one,
            ),
            (
                "no id at all",
                &[
                    json!([{ "index": 0, "id": "", "function": f("ls", "{}") }, { "index": 1, "function": f("cat", "") }]),
                ],
                r#"call 0 "" "ls" | arguments 0 "{}" | call 1 "" "cat" | called 0 "" "ls" {} | called 1 "" "cat" {} | end ToolUse"#,
            ),
            (
                "neither ids nor indices that differ",
                &[
                    json!([{ "index": 0, "id": "", "function": f("ls", "{}") }]),
                    json!([{ "index": 0, "id": "", "function": f("cat", "{}") }]),
                ],
                r#"call 0 "" "ls" | arguments 0 "{}" | call 1 "" "cat" | arguments 1 "{}" | called 0 "" "ls" {} | called 1 "" "cat" {} | end ToolUse"#,
            ),
            (
                "neither id nor index, only names",
                &[json!([{ "function": f("ls", "{}") }, { "function": f("cat", "{}") }])],
                r#"call 0 "" "ls" | arguments 0 "{}" | call 1 "" "cat" | arguments 1 "{}" | called 0 "" "ls" {} | called 1 "" "cat" {} | end ToolUse"#,
            ),
            (
                "broken arguments are kept",
                &[json!([{ "index": 0, "id": "a", "function": f("ls", "{\"p\"") }])],
                r#"call 0 "a" "ls" | arguments 0 "{\"p\"" | called 0 "a" "ls" with broken "{\"p\"" | end ToolUse"#,
            ),
            (
                "arguments that are no object",
                &[json!([{ "index": 0, "id": "a", "function": f("ls", "[1]") }])],
                r#"call 0 "a" "ls" | arguments 0 "[1]" | called 0 "a" "ls" with broken "[1]" | end ToolUse"#,
            ),
            (
                "blank arguments are none",
                &[json!([{ "index": 0, "id": "a", "function": f("ls", " ") }])],
                r#"call 0 "a" "ls" | arguments 0 " " | called 0 "a" "ls" {} | end ToolUse"#,
            ),
            (
                "a call without a name",
                &[json!([{ "index": 0, "id": "a", "function": more("{}") }])],
                r#"call 0 "a" "" | called 0 "a" "" {} | end ToolUse"#,
            ),
            (
                "nonsense",
                &[json!([null, 7, "x"]), json!("x"), json!(null)],
                "end Stop",
            ),
        ];
        for (name, fragments, want) in cases {
            for finish in ["stop", "tool_calls"] {
                let chunks: Vec<String> = fragments.iter().map(calls).collect();
                let stop = STOP.replace("stop", finish);
                let data: Vec<&str> = chunks.iter().map(String::as_str).chain([stop.as_str()]).collect();
                assert_eq!(
                    show(&decode([stream(&data).as_bytes()])),
                    *want,
                    "{name}, finish reason {finish}"
                );
            }
        }
        check(&[
            (
                "the one function of old",
                &[
                    r#"{"choices":[{"delta":{"function_call":{"name":"ls","arguments":"{\"p\":"}}}]}"#,
                    r#"{"choices":[{"delta":{"function_call":{"arguments":"1}"}}}]}"#,
                    r#"{"choices":[{"delta":{},"finish_reason":"function_call"}]}"#,
                ],
                r#"call 0 "" "ls" | arguments 0 "{\"p\":1}" | called 0 "" "ls" {"p":1} | end ToolUse"#,
            ),
            (
                "a call that the limit cut is none",
                &[
                    r#"{"choices":[{"delta":{"tool_calls":[{"index":0,"id":"a","function":{"name":"ls","arguments":"{\"p"}}]}}]}"#,
                    r#"{"choices":[{"delta":{},"finish_reason":"length"}]}"#,
                ],
                r#"call 0 "a" "ls" | arguments 0 "{\"p" | end Length"#,
            ),
            (
                "no arguments yet are not the empty ones",
                &[
                    r#"{"choices":[{"delta":{"tool_calls":[{"index":0,"id":"a","function":{"name":"ls","arguments":""}}]}}]}"#,
                    r#"{"choices":[{"delta":{},"finish_reason":"length"}]}"#,
                ],
                r#"call 0 "a" "ls" | end Length"#,
            ),
            (
                "nor after an end that nobody knows",
                &[
                    r#"{"choices":[{"delta":{"tool_calls":[{"index":0,"id":"a","function":{"name":"ls"}}]}}]}"#,
                    r#"{"choices":[{"delta":{},"finish_reason":"abort"}]}"#,
                ],
                r#"call 0 "a" "ls" | end Other("abort")"#,
            ),
            (
                "calls before the one that was cut are whole, without arguments too, and so is one that was closed in time",
                &[
                    r#"{"choices":[{"delta":{"tool_calls":[{"index":0,"id":"a","function":{"name":"ls","arguments":""}}]}}]}"#,
                    r#"{"choices":[{"delta":{"tool_calls":[{"index":1,"id":"b","function":{"name":"ls","arguments":"{}"}}]}}]}"#,
                    r#"{"choices":[{"delta":{},"finish_reason":"length"}]}"#,
                ],
                r#"call 0 "a" "ls" | call 1 "b" "ls" | arguments 1 "{}" | called 0 "a" "ls" {} | called 1 "b" "ls" {} | end Length"#,
            ),
        ]);
    }

    #[test]
    fn refusals_and_filters_have_their_own_ends() {
        check(&[
            (
                "a refusal",
                &[r#"{"choices":[{"delta":{"refusal":"I will not."}}]}"#, STOP],
                r#"refusal "I will not." | end Refusal"#,
            ),
            (
                "refusal is null",
                &[r#"{"choices":[{"delta":{"content":"hi","refusal":null}}]}"#, STOP],
                HI_STOP,
            ),
            (
                "a filter",
                &[HI, r#"{"choices":[{"delta":{},"finish_reason":"content_filter"}]}"#],
                r#"text "hi" | end ContentFilter"#,
            ),
            (
                "the limit",
                &[HI, r#"{"choices":[{"delta":{},"finish_reason":"length"}]}"#],
                r#"text "hi" | end Length"#,
            ),
        ]);
    }

    #[test]
    fn one_body_instead_of_a_stream() {
        let garbled = "the server answered with something else than chat completions";
        let cases = [
            (
                "a whole answer",
                r#"{"id":"c","model":"m","choices":[{"message":{"role":"assistant","content":"hi"},"finish_reason":"stop"}],"usage":{"prompt_tokens":5,"completion_tokens":2}}"#.to_owned(),
                r#"start m | usage 5(0)+2(0) | text "hi" | end Stop"#.to_owned(),
            ),
            ("with a byte order mark", format!("\u{feff}{}", HI.replace("delta", "message")), HI_STOP.to_owned()),
            (
                "a call in it",
                r#"{"choices":[{"message":{"content":null,"tool_calls":[{"id":"a","function":{"name":"ls","arguments":"{}"}}]},"finish_reason":"tool_calls"}]}"#.to_owned(),
                r#"call 0 "a" "ls" | arguments 0 "{}" | called 0 "a" "ls" {} | end ToolUse"#.to_owned(),
            ),
            (
                "an error with status 200",
                r#"{"error":{"message":"Incorrect API key provided","code":"invalid_api_key"}}"#.to_owned(),
                r#"error LLM_AUTH "the server does not accept the key" "Incorrect API key provided""#.to_owned(),
            ),
            (
                "an error in a list of one",
                r#"[{"error":{"code":429,"message":"slow down","status":"RESOURCE_EXHAUSTED"}}]"#.to_owned(),
                r#"error LLM_RATE_LIMITED "too many requests" "slow down""#.to_owned(),
            ),
            ("HTML", "<html>no</html>".to_owned(), format!("error LLM_BAD_RESPONSE {garbled:?} \"<html>no</html>\"")),
            ("nothing", String::new(), format!("error LLM_BAD_RESPONSE {garbled:?} \"\"")),
            ("JSON about something else", "{\"ok\":true}".to_owned(), format!("error LLM_BAD_RESPONSE {garbled:?} {:?}", "{\"ok\":true}")),
            (
                "a documents gateway",
                r#"{"id":"chat_1","documents":[],"usage":{}}"#.to_owned(),
                r#"error LLM_BAD_RESPONSE "this is a documents gateway: start with --gateway and its address" """#.to_owned(),
            ),
            (
                "the native Ollama",
                "{\"model\":\"q\",\"message\":{\"content\":\"h\"},\"done\":false}\n{\"model\":\"q\",\"message\":{\"content\":\"i\"},\"done\":true}".to_owned(),
                r#"error LLM_BAD_RESPONSE "this is the native address of Ollama: its OpenAI-compatible one ends in /v1" """#.to_owned(),
            ),
            (
                "Anthropic",
                r#"{"type":"message","content":[{"type":"text","text":"hi"}]}"#.to_owned(),
                r#"error LLM_BAD_RESPONSE "this address speaks Anthropic messages, not OpenAI chat completions" """#.to_owned(),
            ),
        ];
        for (name, body, want) in cases {
            assert_eq!(show(&Decoder::new(true).whole(&body)), want, "{name}");
        }
    }

    #[test]
    fn an_answer_without_end_meets_a_limit() {
        let chunk = format!(
            "data: {}\n\n",
            json!({ "choices": [{ "delta": { "content": "x".repeat(1 << 20) } }] })
        );
        let mut frames = Frames::new();
        let mut decoder = Decoder::new(true);
        let mut bytes = 0;
        for _ in 0..65 {
            for frame in frames.push(chunk.as_bytes()) {
                for piece in decoder.push(&frame.expect("short of the line's limit")) {
                    match piece {
                        Piece::Text(text) => bytes += text.len(),
                        Piece::Error(failure) => assert_eq!(failure.kind, FailureKind::Oversized),
                        other => panic!("{other:?}"),
                    }
                }
            }
        }
        assert_eq!(bytes, ANSWER_LIMIT_BYTES);
        assert!(decoder.is_over);
    }

    #[test]
    fn more_calls_than_can_be_meant_are_left_out() {
        let fragments: Vec<Value> = (0..CALLS_LIMIT + 50)
            .map(|it| json!({ "index": it, "id": format!("c{it}"), "function": { "name": "ls", "arguments": "{}" } }))
            .collect();
        let pieces = decode([stream(&[&calls(&fragments.into()), STOP]).as_bytes()]);
        let done = pieces.iter().filter(|it| matches!(it, Piece::CallDone { .. })).count();
        let notices = pieces.iter().filter(|it| matches!(it, Piece::Notice(_))).count();
        assert_eq!((done, notices), (CALLS_LIMIT, 1));
    }

    fn fixture(name: &str) -> Vec<u8> {
        let path = PathBuf::from(env!("CARGO_MANIFEST_DIR"))
            .join("tests/fixtures/openai")
            .join(name);
        std::fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
    }

    const MOCKED: &str = "Hello! This is a mocked answer from the proxy, with ünïcödé 🦀 and a newline\nsecond line.";
    const REVERSE: &str = "```rust\nfn reverse_string(s: &str) -> String {\n    s.chars().rev().collect()\n}\n```";

    /// What a person reads in the recorded streams.
    fn recorded() -> Vec<(&'static str, String)> {
        let qwen = "start qwen2.5-coder-1.5b";
        let call = |id: &str, name: &str, arguments: &str| {
            let whole: Value = serde_json::from_str(arguments).expect("whole arguments");
            format!("call 0 {id:?} {name:?} | arguments 0 {arguments:?}#called 0 {id:?} {name:?} {whole}")
        };
        // A call, then the count of tokens, then the call's end: that is the order in which they come.
        let called = |start: &str, call: String, usage: &str| {
            let (begun, done) = call.split_once('#').expect("two parts");
            format!("{start} | {begun} | usage {usage} | {done} | end ToolUse")
        };
        let count = "1, 2, 3, 4, 5, 6";
        vec![
            ("aimock-chat-reasoning", r#"start gpt-4o | thinking "First I consider the question carefully." | text "The answer is 42 🦀." | usage 2(0)+5(0) | opaque {"reasoning_content":"First I consider the question carefully."} | end Stop"#.into()),
            ("aimock-chat-text", r#"start gpt-4o | text "Hello from aimock, a deterministic server." | usage 2(0)+11(0) | end Stop"#.into()),
            ("aimock-chat-tools", concat!(
                r#"start gpt-4o | text "Let me look." | call 0 "call_JWKF7KsJghleXklk" "grep" | "#,
                r#"arguments 0 "{\"pattern\":\"TODO\",\"glob\":\"*.py\"}" | call 1 "call_e8oyLEHzDK2W8-Of" "read_file" | "#,
                r#"arguments 1 "{\"path\":\"src/main.rs\"}" | usage 3(0)+20(0) | "#,
                r#"called 0 "call_JWKF7KsJghleXklk" "grep" {"pattern":"TODO","glob":"*.py"} | "#,
                r#"called 1 "call_e8oyLEHzDK2W8-Of" "read_file" {"path":"src/main.rs"} | end ToolUse"#
            ).into()),
            ("litellm-mock-text-usage", format!("start mock-gpt | text {MOCKED:?} | usage 8(0)+26(0) | end Stop")),
            ("litellm-mock-text", format!("start mock-gpt | text {MOCKED:?} | end Stop")),
            ("litellm-mock-toolcalls", format!("start mock-gpt | text {MOCKED:?} | usage 8(0)+26(0) | end Stop")),
            ("litellm-qwen-text-nousage", r#"start qwen | text "Hello!" | end Stop"#.into()),
            ("litellm-qwen-text-usage", r#"start qwen | text "Hello!" | usage 35(34)+3(0) | end Stop"#.into()),
            ("litellm-qwen-tool-required", called(
                "start qwen",
                call("zFcWFydnNKRMSxCUdaA7j91vvwVGUpNv", "grep", "{\n    \"pattern\": \"TODO\",\n    \"glob\": \"*.py\"\n  }"),
                "233(18)+35(0)",
            )),
            ("llamacpp-keepalive-ping", r#"start qwen-0.5b | text "The quick brown fox jumps over the lazy" | usage 3534(0)+8(0) | end Length"#.into()),
            ("llamacpp-officialtpl-length", format!("{qwen} | text {count:?} | usage 39(24)+16(0) | end Length")),
            ("llamacpp-officialtpl-stopseq", format!("{qwen} | text \"{count}, \" | usage 41(30)+19(0) | end Stop")),
            ("llamacpp-officialtpl-text-nousage", format!("{qwen} | text \"Hello!\" | end Stop")),
            ("llamacpp-officialtpl-text-usage", format!("{qwen} | text {REVERSE:?} | usage 42(0)+25(0) | end Stop")),
            ("llamacpp-officialtpl-tool-parallel", {
                let call = |path: &str| format!("{{\n  \"name\": \"read_file\",\n  \"arguments\": {{\n    \"path\": \"{path}\",\n    \"start_line\": 1,\n    \"end_line\": 100\n  }}\n}}\n");
                let text = format!("```json\n{}{}```", call("Cargo.toml"), call("src/lib.rs"));
                format!("{qwen} | text {text:?} | usage 336(314)+93(0) | end Stop")
            }),
            ("llamacpp-officialtpl-tool-required", {
                let text = "```json\n{\n  \"name\": \"grep\",\n  \"arguments\": {\n    \"pattern\": \"TODO\",\n    \"glob\": \"*.py\"\n  }\n}\n".to_owned()
                    + &"```\n".repeat(39);
                format!("{qwen} | text {text:?} | usage 327(314)+150(0) | end Length")
            }),
            ("llamacpp-officialtpl-unicode", format!("{qwen} | text {:?} | usage 53(24)+21(0) | end Stop", "日本語 🦀🚀 naïve — ünïcödé 👩\u{200d}💻")),
            ("llamacpp-qwen1.5b-err-role", format!("{qwen} | text \"I'm sorry, but\" | end Length")),
            ("llamacpp-qwen1.5b-json-schema", format!("{qwen} | text {:?} | usage 39(24)+15(0) | end Stop", r#"{ "name": "Ada", "age": 36 }"#)),
            ("llamacpp-qwen1.5b-legacy-completions", format!(
                "{qwen} | text {:?} | usage 6(0)+20(0) | end Length",
                "\n    return a + b\n\ndef subtract(a, b):\n    return a - b\n\ndef"
            )),
            ("llamacpp-qwen1.5b-length", format!("{qwen} | text {count:?} | usage 39(24)+16(0) | end Length")),
            ("llamacpp-qwen1.5b-logprobs", format!("{qwen} | text \"Yes.\" | usage 32(24)+3(0) | end Stop")),
            ("llamacpp-qwen1.5b-stopseq", format!("{qwen} | text \"{count}, \" | usage 41(30)+19(0) | end Stop")),
            ("llamacpp-qwen1.5b-text-nousage", format!("{qwen} | text \"Hello!\" | end Stop")),
            ("llamacpp-qwen1.5b-text-usage", format!("{qwen} | text {REVERSE:?} | usage 42(5)+25(0) | end Stop")),
            ("llamacpp-qwen1.5b-tool-auto", called(
                qwen,
                call("lHgmVlm0Bq4EbVIQgo7tzhVayOuUrQXF", "read_file", r#"{"path": "src/main.rs", "start_line": 1, "end_line": 10}"#),
                "324(5)+38(0)",
            )),
            ("llamacpp-qwen1.5b-tool-named", called(
                qwen,
                call("tU22aYiRzdKTzvKrxT83ksr4hgR7fcLw", "read_file", r#"{"path": "main.py", "start_line": 1, "end_line": 10}"#),
                "322(312)+37(0)",
            )),
            ("llamacpp-qwen1.5b-tool-required", called(
                qwen,
                call("Qj9sISTP0W62aIqyyXO0MxOJookdj6rw", "grep", r#"{"pattern": "TODO", "glob": "*.py"}"#),
                "325(312)+26(0)",
            )),
            ("llamacpp-qwen1.5b-tool-result-turn", called(
                qwen,
                call("8SpzWsuCErl6fBLVecHlluIomdO2TYjk", "write_file", r#"{"path": "src/main.rs", "content": "fn main() {\n    println!(\"hi\");\n}"}"#),
                "374(312)+43(0)",
            )),
            ("llamacpp-qwen1.5b-tool-write-long", {
                let code = "def fizz_buzz(n):\\n    for i in range(1, n+1):\\n        if i % 3 == 0 and i % 5 == 0:\\n            print('FizzBuzz')\\n        elif i % 3 == 0:\\n            print('Fizz')\\n        elif i % 5 == 0:\\n            print('Buzz')\\n        else:\\n            print(i)\\n\\nif __name__ == '__main__':\\n    fizz_buzz(30)";
                let arguments = format!("{{\"path\": \"fizz.py\", \"content\": \"{code}\"}}");
                called(qwen, call("Wtga5q17BO9FZC1J7fPd2DPCwOXPKS6T", "write_file", &arguments), "346(312)+140(0)")
            }),
        ]
    }

    #[test]
    fn recorded_streams_are_read_wherever_they_are_cut() {
        for (name, want) in recorded() {
            let body = fixture(&format!("{name}.sse"));
            assert_eq!(show(&decode([body.as_slice()])), want, "{name}");
            assert_eq!(show(&decode(body.chunks(1))), want, "{name}, byte by byte");
            // Some billion bytes: a minute with optimisation, half an hour without. See CONTRIBUTING.md.
            if std::env::var_os("SHEAF_TEST_EVERY_SPLIT").is_some() {
                for at in 0..=body.len() {
                    let (head, tail) = body.split_at(at);
                    assert_eq!(show(&decode([head, tail])), want, "{name}, cut at {at}");
                }
                continue;
            }
            // Cut between two events, the whole answer is decoded anew each time.
            let text = String::from_utf8(body).expect("recorded as UTF-8");
            let events: Vec<_> = text.split_inclusive("\n\n").map(str::as_bytes).collect();
            let mut at = 0;
            for event in &events {
                at += event.len();
                let (head, tail) = text.as_bytes().split_at(at);
                assert_eq!(show(&decode([head, tail])), want, "{name}, cut at {at}");
            }
            // Cut inside an event, the frames are the same: nothing but they reaches the decoder. The events beside it
            // come in the same pieces; those further away have no influence, as the cuts between them show.
            for at in 0..events.len() {
                let (before, behind) = (at.checked_sub(1).map(|it| events[it]), events.get(at + 1));
                let before = before.unwrap_or_default();
                let near = [before, events[at], behind.copied().unwrap_or_default()].concat();
                let whole = frames([near.as_slice()]);
                for cut in 0..=events[at].len() {
                    let (head, tail) = near.split_at(before.len() + cut);
                    assert_eq!(frames([head, tail]), whole, "{name}, event {at} cut at {cut}");
                }
            }
        }
    }

    fn frames<'a>(chunks: impl IntoIterator<Item = &'a [u8]>) -> Vec<Frame> {
        let mut frames = Frames::new();
        let mut found: Vec<_> = chunks.into_iter().flat_map(|it| frames.push(it)).collect();
        found.extend(frames.finish());
        found.into_iter().map(|it| it.expect("no line is too long")).collect()
    }

    #[test]
    fn recorded_bodies_are_read() {
        let cases = [
            ("litellm-mock-nostream-toolcalls", format!("start mock-gpt | usage 10(0)+20(0) | text {MOCKED:?} | end Stop")),
            (
                "llamacpp-qwen1.5b-nostream",
                r#"start qwen2.5-coder-1.5b | usage 32(25)+10(0) | text "Hello! How can I assist you today?" | end Stop"#.to_owned(),
            ),
        ];
        for (name, want) in cases {
            let body = String::from_utf8(fixture(&format!("{name}.sse"))).expect("UTF-8");
            assert_eq!(show(&Decoder::new(true).whole(&body)), want, "{name}");
        }
    }

    #[test]
    fn recorded_errors_name_what_to_do() {
        let cases = [
            ("aimock-chat-err429", 429, FailureKind::Busy),
            ("aimock-chat-nomatch", 404, FailureKind::NotFound),
            ("litellm-err-badkey", 400, FailureKind::Key),
            ("litellm-err-context", 400, FailureKind::TooLong),
            ("litellm-err-dead-upstream", 500, FailureKind::Unreachable),
            ("litellm-err-unknown-model", 400, FailureKind::NotFound),
            ("llamacpp-err-503-loading", 503, FailureKind::Overloaded),
            ("llamacpp-qwen1.5b-err-404", 404, FailureKind::NotFound),
            ("llamacpp-qwen1.5b-err-badjson", 400, FailureKind::Request),
            ("llamacpp-qwen1.5b-err-context", 400, FailureKind::TooLong),
        ];
        for (name, status, want) in cases {
            let body: Value = serde_json::from_slice(&fixture(&format!("{name}.sse"))).expect("JSON");
            let error = body.get("error").expect("an error");
            let failure = Failure::from_server(Some(status), error);
            assert_eq!(failure.kind, want, "{name}: {failure:?}");
            let said = error.get("message").and_then(Value::as_str).expect("a message");
            assert_eq!(failure.said.as_deref(), Some(said), "{name}");
        }
    }

    #[test]
    fn every_recording_has_its_test() {
        let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/openai");
        let count = std::fs::read_dir(folder)
            .expect("the folder is there")
            .filter(|it| {
                it.as_ref()
                    .is_ok_and(|it| it.path().extension().is_some_and(|it| it == "sse"))
            })
            .count();
        assert_eq!(count, recorded().len() + 2 + 10);
    }

    /// JSON that looks like a chunk, with anything anywhere.
    fn chunks() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            any::<f64>().prop_map(Value::from),
            prop::sample::select(vec!["", "a", "stop", "error", "<think>", "</think>", "{}", "{"])
                .prop_map(Value::from),
        ];
        let names = prop::sample::select(vec![
            "choices",
            "delta",
            "message",
            "content",
            "text",
            "index",
            "id",
            "name",
            "function",
            "arguments",
            "tool_calls",
            "function_call",
            "finish_reason",
            "usage",
            "x_groq",
            "error",
            "reasoning",
            "reasoning_details",
            "refusal",
            "prompt_tokens",
            "type",
            "code",
            "model",
            "thinking",
            "object",
            "detail",
        ]);
        leaf.prop_recursive(5, 32, 4, move |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                prop::collection::vec((names.clone(), inner), 0..5).prop_map(|it| it
                    .into_iter()
                    .map(|(name, value)| (name.to_owned(), value))
                    .collect::<Map<_, _>>()
                    .into()),
            ]
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(256))]

        #[test]
        fn any_json_is_taken(values in prop::collection::vec(chunks(), 0..8), wrapped in any::<bool>()) {
            let wrap = |it: &Value| json!({ "choices": [{ "delta": it }] });
            let data: Vec<String> =
                values.iter().map(|it| if wrapped { wrap(it).to_string() } else { it.to_string() }).collect();
            let data: Vec<&str> = data.iter().map(String::as_str).collect();
            let pieces = decode([stream(&data).as_bytes()]);
            let started = pieces.iter().filter(|it| matches!(it, Piece::CallStart { .. })).count();
            let done = pieces.iter().filter(|it| matches!(it, Piece::CallDone { .. })).count();
            if matches!(pieces.last(), Some(Piece::End(_))) {
                prop_assert_eq!(started, done);
            } else {
                prop_assert_eq!(done, 0);
            }
        }

        #[test]
        fn any_bytes_are_taken(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            decode([bytes.as_slice()]);
            Decoder::new(true).whole(&String::from_utf8_lossy(&bytes));
        }
    }
}
