//! From the frames of a chat completion to pieces.
//!
//! Reads `serde_json::Value` member by member, because hardly a server sends what the specification says: nothing
//! here is required, a wrong type counts as absent, and whatever had to be left out is said once. What must not
//! be guessed is the end: without a finish reason or `[DONE]` the answer was cut.

use serde_json::{Map, Value};

use super::plain;
use crate::{
    models::{
        EndReason, Failure, FailureKind, Piece, Tokens,
        body::Decode,
        lenient::{self, AnswerState, CALLS_LIMIT, error_of, whole_number},
        thought::{Thought, Thoughts},
    },
    net::sse::Frame,
};

/// The state between two frames.
#[derive(Debug, Default)]
pub struct Decoder {
    inline: Inline,
    choice: Choice,
    has_text: bool,
    is_refused: bool,
    calls: Vec<PartialCall>,
    /// The call that was written to last.
    writing: usize,
    reasoning: Reasoning,
    answer: AnswerState,
}

/// The choice that is read.
#[derive(Debug, Default)]
struct Choice {
    /// The index of the choice that is read; a second choice is nobody's answer.
    index: Option<u64>,
    is_known: bool,
    finish: Option<String>,
}

/// Reasoning of the model.
#[derive(Debug, Default)]
struct Reasoning {
    /// Reasoning in a form that goes back to its maker as it came.
    opaque: Thoughts,
    /// Name of the field in which the server sends reasoning and wants it back, and all reasoning so far.
    thought: Option<(&'static str, Thought)>,
}

/// State of an answer that may start with `<think>`.
#[derive(Debug, Default)]
enum Inline {
    /// Nothing visible came yet, but for a part of the tag.
    Before(String),
    /// `held` may be the start of the closing tag.
    Inside { held: String, has_begun: bool },
    /// Text is text.
    #[default]
    Off,
}

#[derive(Debug, Default)]
struct PartialCall {
    index: Option<u64>,
    id: String,
    name: String,
    arguments: String,
    is_announced: bool,
    /// Value that Google's endpoint wants back with this call.
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
            ..Self::default()
        }
    }
}

impl Decode for Decoder {
    const FORMAT: &'static str = "chat completions";

    fn answer(&mut self) -> &mut AnswerState {
        &mut self.answer
    }

    fn has_answer(&self) -> bool {
        self.choice.is_known
    }

    /// A finish reason came: at most a count of tokens is missing.
    fn is_finished(&self) -> bool {
        self.choice.finish.is_some()
    }

    fn done(&mut self, out: &mut Vec<Piece>) {
        self.end(out);
    }

    fn fast_path(&mut self, frame: &Frame, data: &str, out: &mut Vec<Piece>) -> bool {
        if !self.answer.has_started || frame.event.is_some() {
            return false;
        }
        let Some(chunk) = plain::read(data).filter(|it| self.choice.index == Some(it.index)) else {
            return false;
        };
        self.choice.is_known = true;
        self.text(&chunk.text, out);
        true
    }

    fn object(&mut self, value: &Value, members: &Map<String, Value>, event: &str, out: &mut Vec<Piece>) {
        if let Some(failure) = foreign(members) {
            self.answer.fail(failure, out);
            return;
        }
        let error = if event == "error" {
            Some(error_of(members).unwrap_or(value))
        } else {
            error_of(members).or_else(|| is_bare_error(members).then_some(value))
        };
        if error.is_none() || members.contains_key("choices") {
            self.chunk(members, out);
        }
        if let Some(error) = error {
            self.flush(out);
            self.answer.fail(Failure::from_server(None, error), out);
        }
    }

    fn end(&mut self, out: &mut Vec<Piece>) {
        self.flush(out);
        let word = self.choice.finish.take().unwrap_or_else(|| "stop".to_owned());
        match word.as_str() {
            "error" => {
                let failure = Failure::new(FailureKind::Unreachable, "the server ended the answer with an error");
                return self.answer.fail(failure, out);
            }
            "insufficient_system_resource" => {
                let failure = Failure::new(FailureKind::Overloaded, "the server ran out of capacity in mid-answer");
                return self.answer.fail(failure, out);
            }
            _ => {}
        }
        let mut opaque = Map::new();
        if let Some((name, mut thought)) = self.reasoning.thought.take()
            && let Some(text) = thought.take()
        {
            opaque.insert(name.to_owned(), text.into());
        }
        if let Some(details) = self.reasoning.opaque.take() {
            opaque.insert("reasoning_details".to_owned(), details.into());
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
            if !call.is_announced {
                out.push(Piece::call_start(slot, &call.id, &call.name));
            }
            if is_stopped && slot == self.writing && !is_object(&call.arguments) {
                continue;
            }
            out.push(Piece::call_done(slot, call.id, call.name, call.arguments, call.opaque));
        }
        self.answer.end(reason, out);
    }

    fn flush(&mut self, out: &mut Vec<Piece>) {
        match std::mem::replace(&mut self.inline, Inline::Off) {
            Inline::Before(held) if !held.is_empty() => out.push(Piece::Text(held)),
            Inline::Inside { held, .. } if !held.is_empty() => out.push(Piece::Thinking(held)),
            Inline::Before(_) | Inline::Inside { .. } | Inline::Off => {}
        }
    }
}

impl Decoder {
    fn chunk(&mut self, members: &Map<String, Value>, out: &mut Vec<Piece>) {
        self.answer.start(members.get("id"), members.get("model"), out);
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
            && *self.choice.index.get_or_insert(index) != index
        {
            self.answer
                .notice("second-choice", "a second choice of the answer was left out", out);
            return;
        }
        self.choice.is_known = true;
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
            self.choice.finish = Some(reason.to_owned());
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
            && self.answer.takes(text.len(), out)
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
            if !self.answer.is_over {
                let thought = self.reasoning.thought.get_or_insert_with(|| (name, Thought::default()));
                thought.1.push(text);
            }
        } else {
            for detail in details.into_iter().flatten() {
                let text = ["text", "summary"].iter().find_map(|name| detail.get(*name)?.as_str());
                self.think(text.unwrap_or_default(), out);
            }
        }
        for detail in details.into_iter().flatten() {
            let bytes = detail.to_string().len();
            if self.answer.takes(bytes, out) {
                self.reasoning.opaque.push(detail, bytes);
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
            self.answer.notice(
                "unknown-part",
                "a part of the answer is neither text nor reasoning and was left out",
                out,
            );
        }
    }

    fn think(&mut self, text: &str, out: &mut Vec<Piece>) {
        if text.is_empty() || !self.answer.takes(text.len(), out) {
            return;
        }
        // A server that tells reasoning apart leaves none in the text.
        self.flush(out);
        out.push(Piece::Thinking(text.to_owned()));
    }

    fn text(&mut self, text: &str, out: &mut Vec<Piece>) {
        if text.is_empty() || !self.answer.takes(text.len(), out) {
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
                    self.flush(out);
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
            self.answer.notice_call_limit(out);
            return;
        }
        let extra = members.get("extra_content").filter(|it| it.is_object());
        let weight = arguments.len() + extra.map_or(0, |it| it.to_string().len());
        if !self.answer.takes(weight, out) {
            return;
        }
        self.flush(out);
        if slot == self.calls.len() {
            self.calls.push(PartialCall {
                index,
                ..PartialCall::default()
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
            out.push(Piece::call_start(slot, &call.id, &call.name));
            if !call.arguments.is_empty() {
                out.push(Piece::call_arguments(slot, &call.arguments));
            }
        } else if call.is_announced && !arguments.is_empty() {
            out.push(Piece::call_arguments(slot, &arguments));
        }
    }

    /// Returns the index of the call that a fragment belongs to; the number of calls for a new one.
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
        self.answer.count(tokens, out);
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
    let kind = members.get("type").and_then(Value::as_str).unwrap_or_default();
    let message = if members.contains_key("choices") {
        return None;
    } else if members.contains_key("candidates") {
        "this address speaks Gemini, not OpenAI chat completions"
    } else if members.get("message").is_some_and(Value::is_object) && members.contains_key("done") {
        "this is the native address of Ollama: its OpenAI-compatible one ends in /v1"
    } else {
        return lenient::foreign(kind, members, "OpenAI chat completions");
    };
    Some(Failure::new(FailureKind::Garbled, message))
}

fn is_object(text: &str) -> bool {
    serde_json::from_str::<Map<String, Value>>(text).is_ok()
}

#[cfg(test)]
mod tests;
