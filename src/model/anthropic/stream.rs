//! From the frames of a message to pieces.
//!
//! A message is a row of blocks, each started, filled and stopped. A call is given as done only when something after
//! its block shows that it was not the limit of tokens that stopped it: with empty arguments both look the same.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use crate::{
    model::{
        EndReason, Failure, FailureKind, Piece, Tokens,
        body::Decode,
        lenient::{self, BAD_JSON, CALLS_LIMIT, Ledger, broken_off, error_of, values, whole_number},
    },
    net::sse::Frame,
};

const WHAT: &str = "messages";

/// What an empty block weighs, so that a flood of them meets the limit too.
const BLOCK_BYTES: usize = 256;

/// The state between two frames.
#[derive(Debug, Default)]
pub struct Decoder {
    has_started: bool,
    /// Something of a message came.
    has_message: bool,
    /// Something that one can see came.
    has_said: bool,
    /// The end or an error was given.
    is_over: bool,
    stop: Option<String>,
    usage: Usage,
    given: Tokens,
    /// The blocks that were started and not stopped, by index.
    blocks: BTreeMap<u64, Block>,
    has_opened: bool,
    /// The index of the block that came last.
    last: u64,
    calls: usize,
    /// A call whose block has stopped, until more is known.
    held: Option<Call>,
    ledger: Ledger,
}

#[derive(Debug)]
enum Block {
    Text,
    Thinking { text: String, signature: String },
    Redacted(Value),
    Call(Call),
    Ignored,
}

#[derive(Debug)]
struct Call {
    slot: usize,
    id: String,
    name: String,
    arguments: String,
    /// What stood at the start of the block, which holds if nothing follows.
    begun: String,
}

/// Counts as they came last; the server repeats only some of them.
#[derive(Debug, Default)]
struct Usage {
    input: u64,
    read: u64,
    written: u64,
    output: u64,
    thinking: u64,
}

impl Decode for Decoder {
    fn push(&mut self, frame: &Frame) -> Vec<Piece> {
        let mut out = Vec::new();
        let data = frame.data.trim();
        // Proxies turn comments into data.
        if self.is_over || data.is_empty() || data.starts_with(':') {
            return out;
        }
        if data.trim_matches('"') == "[DONE]" {
            if self.has_message {
                self.end(&mut out);
            }
            return out;
        }
        let is_error = frame.event.as_deref() == Some("error");
        match values(data) {
            Ok(values) => {
                if values.len() > 1 {
                    self.ledger
                        .notice("glued-json", "several JSON objects came in one event", &mut out);
                }
                for value in values {
                    self.value(&value, is_error, &mut out);
                }
            }
            Err(_) if is_error => self.fail(Failure::from_server(None, &Value::String(data.to_owned())), &mut out),
            Err(_) => {
                let message = "a line of the answer is no JSON and was skipped";
                self.ledger.notice(BAD_JSON, message, &mut out);
            }
        }
        out
    }

    fn finish(&mut self) -> Vec<Piece> {
        let failure = broken_off(self.has_message, &self.ledger, WHAT);
        self.cut(failure)
    }

    fn cut(&mut self, failure: Failure) -> Vec<Piece> {
        let mut out = Vec::new();
        if self.is_over {
            return out;
        }
        if self.stop.is_some() {
            self.end(&mut out);
        } else {
            self.fail(failure, &mut out);
        }
        out
    }

    fn is_finished(&self) -> bool {
        self.stop.is_some()
    }

    fn whole(mut self, body: &str) -> Vec<Piece> {
        let mut out = Vec::new();
        let body = body.trim_start_matches('\u{feff}').trim();
        match values(body) {
            Ok(values) => {
                for value in values {
                    self.value(&value, false, &mut out);
                }
            }
            Err(_) => self.fail(lenient::something_else(WHAT).saying(body), &mut out),
        }
        if !self.is_over {
            if self.has_message {
                self.end(&mut out);
            } else {
                self.fail(lenient::something_else(WHAT).saying(body), &mut out);
            }
        }
        out
    }
}

impl Decoder {
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
                    let message = "an event of the answer is no JSON object and was skipped";
                    self.ledger.notice(BAD_JSON, message, out);
                }
                return;
            }
        };
        let kind = text(members, "type");
        let error = error_of(members).or_else(|| (is_error || kind == "error").then_some(value));
        if let Some(error) = error {
            self.fail(Failure::from_server(None, error), out);
            return;
        }
        let result = match kind {
            "message_start" => {
                self.begin(members.get("message"), out);
                Ok(())
            }
            "content_block_start" => self.open(members, out),
            "content_block_delta" => self.fill(members, out),
            "content_block_stop" => {
                let index = self.index(members);
                self.close(index, out);
                Ok(())
            }
            "message_delta" => {
                self.has_message = true;
                self.stopping(members.get("delta"), out);
                self.count(members.get("usage"), out);
                Ok(())
            }
            "message_stop" => {
                self.has_message = true;
                self.end(out);
                Ok(())
            }
            "message" => self.message(value, out),
            "ping" => Ok(()),
            _ => {
                match foreign(members) {
                    Some(failure) => self.fail(failure, out),
                    None if self.has_message => {
                        let message = "an event of the answer is unknown and was left out";
                        self.ledger.notice("unknown-event", message, out);
                    }
                    // What was never a message is named at the end.
                    None => self.ledger.notice(BAD_JSON, "an event is not of a message", out),
                }
                Ok(())
            }
        };
        if let Err(failure) = result {
            self.fail(failure, out);
        }
    }

    /// A whole one, in spite of the wish for a stream.
    fn message(&mut self, message: &Value, out: &mut Vec<Piece>) -> Result<(), Failure> {
        self.begin(Some(message), out);
        let blocks = message.get("content");
        if let Some(Value::String(text)) = blocks {
            self.say(text, out)?;
        }
        for (index, block) in (0_u64..).zip(blocks.and_then(Value::as_array).into_iter().flatten()) {
            let start = Map::from_iter([
                ("index".to_owned(), index.into()),
                ("content_block".to_owned(), block.clone()),
            ]);
            self.open(&start, out)?;
            self.close(index, out);
        }
        self.stopping(Some(message), out);
        Ok(())
    }

    fn begin(&mut self, message: Option<&Value>, out: &mut Vec<Piece>) {
        self.has_message = true;
        let part = |name: &str| {
            let text = message.and_then(|it| it.get(name)?.as_str());
            text.filter(|it| !it.is_empty()).map(str::to_owned)
        };
        let (response_id, model) = (part("id"), part("model"));
        if !self.has_started && (response_id.is_some() || model.is_some()) {
            self.has_started = true;
            out.push(Piece::Start { response_id, model });
        }
        self.count(message.and_then(|it| it.get("usage")), out);
    }

    /// The index of an event; servers that leave it out mean the last block.
    fn index(&self, members: &Map<String, Value>) -> u64 {
        members.get("index").and_then(whole_number).unwrap_or(self.last)
    }

    fn open(&mut self, members: &Map<String, Value>, out: &mut Vec<Piece>) -> Result<(), Failure> {
        self.has_message = true;
        let index = match members.get("index").and_then(whole_number) {
            Some(index) => index,
            None if self.has_opened => self.last.saturating_add(1),
            None => 0,
        };
        // Two blocks cannot have one index: the one before has stopped without a word.
        self.close(index, out);
        self.release(out);
        self.last = index;
        self.has_opened = true;
        let empty = Map::new();
        let given = members
            .get("content_block")
            .and_then(Value::as_object)
            .unwrap_or(&empty);
        let begun = |name: &str| text(given, name).to_owned();
        self.ledger.weigh(BLOCK_BYTES)?;
        let block = match text(given, "type") {
            "text" => {
                self.say(text(given, "text"), out)?;
                Block::Text
            }
            "thinking" => {
                let thought = begun("thinking");
                self.think(&thought, out)?;
                Block::Thinking {
                    text: thought,
                    signature: begun("signature"),
                }
            }
            "redacted_thinking" => {
                let data = begun("data");
                self.ledger.weigh(data.len())?;
                Block::Redacted(json!({ "type": "redacted_thinking", "data": data }))
            }
            "tool_use" if self.calls >= CALLS_LIMIT => {
                let message = "the answer asks for more tools than can be meant; the rest was left out";
                self.ledger.notice("too-many-calls", message, out);
                Block::Ignored
            }
            "tool_use" => {
                let slot = self.calls;
                self.calls += 1;
                self.has_said = true;
                let name = begun("name");
                let id = begun("id");
                self.ledger.weigh(name.len() + id.len())?;
                out.push(Piece::CallStart {
                    slot,
                    id: id.clone(),
                    name: name.clone(),
                });
                // Mostly it is empty, the place for what follows.
                let begun = match given.get("input") {
                    Some(Value::Object(input)) if !input.is_empty() => Value::Object(input.clone()).to_string(),
                    Some(Value::String(input)) => input.clone(),
                    Some(_) | None => String::new(),
                };
                self.ledger.weigh(begun.len())?;
                Block::Call(Call {
                    slot,
                    id,
                    name,
                    arguments: String::new(),
                    begun,
                })
            }
            _ => {
                let message = "a part of the answer is neither text, reasoning nor a call and was left out";
                self.ledger.notice("unknown-part", message, out);
                Block::Ignored
            }
        };
        self.blocks.insert(index, block);
        Ok(())
    }

    fn fill(&mut self, members: &Map<String, Value>, out: &mut Vec<Piece>) -> Result<(), Failure> {
        self.has_message = true;
        let index = self.index(members);
        let empty = Map::new();
        let delta = members.get("delta").and_then(Value::as_object).unwrap_or(&empty);
        match text(delta, "type") {
            // Text and thoughts are understood without the start of their block, too.
            "text_delta" => self.say(text(delta, "text"), out),
            "thinking_delta" => {
                let thought = text(delta, "thinking");
                self.think(thought, out)?;
                if let Some(Block::Thinking { text, .. }) = self.blocks.get_mut(&index) {
                    text.push_str(thought);
                }
                Ok(())
            }
            "signature_delta" => {
                let proof = text(delta, "signature");
                self.ledger.weigh(proof.len())?;
                if let Some(Block::Thinking { signature, .. }) = self.blocks.get_mut(&index) {
                    proof.clone_into(signature);
                }
                Ok(())
            }
            "input_json_delta" => {
                let fragment = match delta.get("partial_json") {
                    Some(Value::String(fragment)) => fragment.clone(),
                    Some(whole @ Value::Object(_)) => whole.to_string(),
                    Some(_) | None => String::new(),
                };
                self.ledger.weigh(fragment.len())?;
                match self.blocks.get_mut(&index) {
                    Some(Block::Call(call)) if !fragment.is_empty() => {
                        call.arguments.push_str(&fragment);
                        out.push(Piece::CallArguments {
                            slot: call.slot,
                            fragment,
                        });
                    }
                    Some(Block::Text | Block::Thinking { .. } | Block::Redacted(_)) | None => {
                        let message = "arguments came for something that is no call and were left out";
                        self.ledger.notice("lost-arguments", message, out);
                    }
                    Some(Block::Call(_) | Block::Ignored) => {}
                }
                Ok(())
            }
            "citations_delta" => Ok(()),
            _ => {
                let message = "a part of the answer is neither text, reasoning nor a call and was left out";
                self.ledger.notice("unknown-part", message, out);
                Ok(())
            }
        }
    }

    fn say(&mut self, text: &str, out: &mut Vec<Piece>) -> Result<(), Failure> {
        self.ledger.weigh(text.len())?;
        if !text.is_empty() {
            self.has_said = true;
            out.push(Piece::Text(text.to_owned()));
        }
        Ok(())
    }

    fn think(&mut self, text: &str, out: &mut Vec<Piece>) -> Result<(), Failure> {
        self.ledger.weigh(text.len())?;
        if !text.is_empty() {
            self.has_said = true;
            out.push(Piece::Thinking(text.to_owned()));
        }
        Ok(())
    }

    fn close(&mut self, index: u64, out: &mut Vec<Piece>) {
        match self.blocks.remove(&index) {
            Some(Block::Thinking { text, signature }) if !signature.trim().is_empty() => {
                let opaque = json!({ "type": "thinking", "thinking": text, "signature": signature });
                out.push(Piece::ThinkingDone { opaque });
            }
            Some(Block::Redacted(opaque)) => out.push(Piece::ThinkingDone { opaque }),
            Some(Block::Call(mut call)) => {
                self.release(out);
                if call.arguments.trim().is_empty() && !call.begun.is_empty() {
                    call.arguments = std::mem::take(&mut call.begun);
                    out.push(Piece::CallArguments {
                        slot: call.slot,
                        fragment: call.arguments.clone(),
                    });
                }
                self.held = Some(call);
            }
            // A thought without its maker's proof is refused when it comes back.
            Some(Block::Thinking { .. } | Block::Text | Block::Ignored) | None => {}
        }
    }

    /// What comes after a call shows that it is whole.
    fn release(&mut self, out: &mut Vec<Piece>) {
        if let Some(call) = self.held.take() {
            out.push(Piece::CallDone {
                slot: call.slot,
                id: call.id,
                name: call.name,
                arguments: lenient::arguments(call.arguments),
                opaque: None,
            });
        }
    }

    /// Reads why the message stops, where that is said already.
    fn stopping(&mut self, said: Option<&Value>, out: &mut Vec<Piece>) {
        let Some(said) = said else { return };
        let reason = said.get("stop_reason").and_then(Value::as_str);
        let Some(reason) = reason.filter(|it| !it.is_empty()) else {
            return;
        };
        self.stop = Some(reason.to_owned());
        let why = said.pointer("/stop_details/explanation").and_then(Value::as_str);
        if let Some(why) = why.filter(|it| reason == "refusal" && !it.trim().is_empty())
            && self.ledger.weigh(why.len()).is_ok()
        {
            self.has_said = true;
            out.push(Piece::Refusal(why.to_owned()));
        }
    }

    fn count(&mut self, usage: Option<&Value>, out: &mut Vec<Piece>) {
        let Some(usage) = usage else { return };
        let Usage {
            input,
            read,
            written,
            output,
            thinking,
        } = &mut self.usage;
        for (pointer, count) in [
            ("/input_tokens", &mut *input),
            ("/cache_read_input_tokens", &mut *read),
            ("/cache_creation_input_tokens", &mut *written),
            ("/output_tokens", &mut *output),
            ("/output_tokens_details/thinking_tokens", &mut *thinking),
        ] {
            if let Some(number) = usage.pointer(pointer).and_then(whole_number) {
                *count = number;
            }
        }
        let tokens = Tokens {
            // The server counts apart what was in the cache and what went there.
            prompt: input.saturating_add(*read).saturating_add(*written),
            cached: *read,
            cache_written: *written,
            completion: *output,
            reasoning: *thinking,
        };
        if tokens != self.given && tokens != Tokens::default() {
            self.given = tokens;
            out.push(Piece::Usage(tokens));
        }
    }

    fn end(&mut self, out: &mut Vec<Piece>) {
        let word = self.stop.take().unwrap_or_default();
        let is_cut = matches!(word.as_str(), "max_tokens" | "model_context_window_exceeded");
        if word == "model_context_window_exceeded" && !self.has_said {
            let message = "the conversation is too long for the model";
            return self.fail(Failure::new(FailureKind::TooLong, message), out);
        }
        if is_cut {
            self.blocks.clear();
            let is_whole =
                |it: &Call| !it.arguments.trim().is_empty() && lenient::arguments(it.arguments.clone()).is_ok();
            self.held = self.held.take().filter(is_whole);
        }
        // Servers forget to stop their blocks.
        for index in self.blocks.keys().copied().collect::<Vec<_>>() {
            self.close(index, out);
        }
        self.release(out);
        let reason = match word.as_str() {
            "max_tokens" | "model_context_window_exceeded" => EndReason::Length,
            "pause_turn" => EndReason::Pause,
            "refusal" => EndReason::Refusal,
            // Whether tools were called is seen in the calls: servers write `end_turn` beside them.
            "end_turn" | "stop_sequence" | "tool_use" | "stop" | "" => {
                if self.calls > 0 {
                    EndReason::ToolUse
                } else {
                    EndReason::Stop
                }
            }
            _ => EndReason::Other(word),
        };
        self.is_over = true;
        out.push(Piece::End(reason));
    }

    fn fail(&mut self, failure: Failure, out: &mut Vec<Piece>) {
        self.is_over = true;
        out.push(Piece::Error(failure));
    }
}

/// A member's text; empty when there is none.
fn text<'a>(members: &'a Map<String, Value>, name: &str) -> &'a str {
    members.get(name).and_then(Value::as_str).unwrap_or_default()
}

/// Formats that people point us at by mistake.
fn foreign(members: &Map<String, Value>) -> Option<Failure> {
    let message = if members.contains_key("choices") {
        "this address speaks OpenAI chat completions, not Anthropic messages"
    } else if text(members, "type").starts_with("response.") {
        "this address speaks OpenAI responses, not Anthropic messages"
    } else if text(members, "type") == "document_start" || members.get("documents").is_some_and(Value::is_array) {
        "this is a documents gateway: start with --gateway and its address"
    } else {
        return None;
    };
    Some(Failure::new(FailureKind::Garbled, message))
}
