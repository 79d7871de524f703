//! From the frames of a message to pieces.
//!
//! A message is a row of blocks, each started, filled and stopped. A call is given as done only when something after
//! its block shows that it was not the limit of tokens that stopped it: with empty arguments both look the same.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use crate::models::{
    Citations, EndReason, Failure, FailureKind, Piece, Tokens, WebPage, WebSearch,
    body::Decode,
    lenient::{self, AnswerState, BAD_JSON, CALLS_LIMIT, text, whole_number},
    thought::Thought,
};

/// Size charged for an empty block, so that a flood of them meets the limit, too.
const BLOCK_BYTES: usize = 256;

/// The state between two frames.
#[derive(Debug, Default)]
pub struct Decoder {
    begun: Begun,
    stop: Option<String>,
    usage: Usage,
    /// The blocks that were started and not stopped, by index.
    blocks: BTreeMap<u64, Block>,
    has_opened: bool,
    /// The index of the block that came last.
    last: u64,
    calls: usize,
    /// A call whose block has stopped, until more is known.
    held: Option<PartialCall>,
    /// Queries of the server's searches, by id.
    queries: BTreeMap<String, String>,
    citations: Citations,
    answer: AnswerState,
}

/// Parts of the message that have arrived.
#[derive(Debug, Default)]
struct Begun {
    /// Something of a message came.
    has_message: bool,
    /// Something that one can see came.
    has_said: bool,
}

#[derive(Debug)]
enum Block {
    /// With the pages that it cites.
    Text(Vec<WebPage>),
    /// A search of the server; its input may come in fragments.
    Search {
        block: Value,
        input: String,
    },
    /// The result of a search.
    Found(Value),
    Thinking {
        text: Thought,
        signature: String,
    },
    Redacted(Value),
    Call(PartialCall),
    Ignored,
}

#[derive(Debug)]
struct PartialCall {
    slot: usize,
    id: String,
    name: String,
    arguments: String,
    /// Arguments at the start of the block, used if no deltas follow.
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
    const FORMAT: &'static str = "messages";

    fn answer(&mut self) -> &mut AnswerState {
        &mut self.answer
    }

    fn has_answer(&self) -> bool {
        self.begun.has_message
    }

    fn is_finished(&self) -> bool {
        self.stop.is_some()
    }

    fn done(&mut self, out: &mut Vec<Piece>) {
        // The word of the message itself is missing: what has not stopped then is not whole.
        if self.stop.is_none() {
            self.blocks.clear();
        }
        if self.begun.has_message {
            self.end(out);
        }
    }

    fn object(&mut self, value: &Value, members: &Map<String, Value>, event: &str, out: &mut Vec<Piece>) {
        let result = lenient::kind_of(value, members, event).and_then(|kind| self.event(kind, value, members, out));
        if let Err(failure) = result {
            self.answer.fail(failure, out);
        }
    }

    fn end(&mut self, out: &mut Vec<Piece>) {
        let word = self.stop.take().unwrap_or_default();
        let is_cut = matches!(word.as_str(), "max_tokens" | "model_context_window_exceeded");
        // Unless a call is complete, the answer is asked for again once there is room.
        if word == "model_context_window_exceeded" && self.calls == 0 {
            let message = "the conversation is too long for the model";
            return self.answer.fail(Failure::new(FailureKind::TooLong, message), out);
        }
        if is_cut {
            self.blocks.clear();
            let is_whole =
                |it: &PartialCall| !it.arguments.trim().is_empty() && lenient::arguments(it.arguments.clone()).is_ok();
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
        self.answer.end(reason, out);
    }
}

impl Decoder {
    fn event(
        &mut self,
        kind: &str,
        value: &Value,
        members: &Map<String, Value>,
        out: &mut Vec<Piece>,
    ) -> Result<(), Failure> {
        match kind {
            "message_start" => self.begin(members.get("message"), out),
            "content_block_start" => self.open(members, out)?,
            "content_block_delta" => self.fill(members, out)?,
            "content_block_stop" => {
                let index = self.index(members);
                self.close(index, out);
            }
            "message_delta" => {
                self.begun.has_message = true;
                self.stopping(members.get("delta"), out);
                self.count(members.get("usage"), out);
            }
            "message_stop" => {
                self.begun.has_message = true;
                self.end(out);
            }
            "message" => self.message(value, out)?,
            "ping" => {}
            _ => match lenient::foreign(text(members, "type"), members, "Anthropic messages") {
                Some(failure) => return Err(failure),
                None if self.begun.has_message => {
                    let message = "an event of the answer is unknown and was left out";
                    self.answer.notice("unknown-event", message, out);
                }
                // What was never a message is named at the end.
                None => self.answer.notice(BAD_JSON, "an event is not of a message", out),
            },
        }
        Ok(())
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
        self.begun.has_message = true;
        let part = |name: &str| message.and_then(|it| it.get(name));
        self.answer.start(part("id"), part("model"), out);
        self.count(message.and_then(|it| it.get("usage")), out);
    }

    /// The index of an event; servers that leave it out mean the last block.
    fn index(&self, members: &Map<String, Value>) -> u64 {
        members.get("index").and_then(whole_number).unwrap_or(self.last)
    }

    fn open(&mut self, members: &Map<String, Value>, out: &mut Vec<Piece>) -> Result<(), Failure> {
        self.begun.has_message = true;
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
        self.answer.weigh(BLOCK_BYTES)?;
        let block = match text(given, "type") {
            "text" => {
                self.say(text(given, "text"), out)?;
                let cited = given.get("citations").and_then(Value::as_array).into_iter().flatten();
                Block::Text(cited.filter_map(WebPage::read).collect())
            }
            "thinking" => {
                let thought = begun("thinking");
                self.think(&thought, out)?;
                let mut text = Thought::default();
                text.push(&thought);
                Block::Thinking {
                    text,
                    signature: begun("signature"),
                }
            }
            "redacted_thinking" => {
                let data = begun("data");
                self.answer.weigh(data.len())?;
                Block::Redacted(json!({ "type": "redacted_thinking", "data": data }))
            }
            "server_tool_use" => {
                let block = Value::Object(given.clone());
                self.answer.weigh(block.to_string().len())?;
                Block::Search {
                    block,
                    input: String::new(),
                }
            }
            "web_search_tool_result" => {
                let block = Value::Object(given.clone());
                self.answer.weigh(block.to_string().len())?;
                Block::Found(block)
            }
            "tool_use" if self.calls >= CALLS_LIMIT => {
                self.answer.notice_call_limit(out);
                Block::Ignored
            }
            "tool_use" => {
                let slot = self.calls;
                self.calls += 1;
                self.begun.has_said = true;
                let name = begun("name");
                let id = begun("id");
                self.answer.weigh(name.len() + id.len())?;
                out.push(Piece::call_start(slot, &id, &name));
                // Mostly it is empty, the place for what follows.
                let begun = match given.get("input") {
                    Some(Value::Object(input)) if !input.is_empty() => Value::Object(input.clone()).to_string(),
                    Some(Value::String(input)) => input.clone(),
                    Some(_) | None => String::new(),
                };
                self.answer.weigh(begun.len())?;
                Block::Call(PartialCall {
                    slot,
                    id,
                    name,
                    arguments: String::new(),
                    begun,
                })
            }
            _ => {
                let message = "a part of the answer is neither text, reasoning nor a call and was left out";
                self.answer.notice("unknown-part", message, out);
                Block::Ignored
            }
        };
        self.blocks.insert(index, block);
        Ok(())
    }

    fn fill(&mut self, members: &Map<String, Value>, out: &mut Vec<Piece>) -> Result<(), Failure> {
        self.begun.has_message = true;
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
                    text.push(thought);
                }
                Ok(())
            }
            "signature_delta" => {
                let proof = text(delta, "signature");
                self.answer.weigh(proof.len())?;
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
                self.answer.weigh(fragment.len())?;
                match self.blocks.get_mut(&index) {
                    Some(Block::Call(call)) if !fragment.is_empty() => {
                        call.arguments.push_str(&fragment);
                        out.push(Piece::call_arguments(call.slot, &fragment));
                    }
                    Some(Block::Search { input, .. }) => input.push_str(&fragment),
                    Some(Block::Text(_) | Block::Thinking { .. } | Block::Redacted(_) | Block::Found(_)) | None => {
                        let message = "arguments without a call were dropped";
                        self.answer.notice("lost-arguments", message, out);
                    }
                    Some(Block::Call(_) | Block::Ignored) => {}
                }
                Ok(())
            }
            "citations_delta" => {
                let page = delta.get("citation").and_then(WebPage::read);
                if let (Some(page), Some(Block::Text(cited))) = (page, self.blocks.get_mut(&index)) {
                    self.answer.weigh(page.url.len() + page.title.len())?;
                    cited.push(page);
                }
                Ok(())
            }
            _ => {
                let message = "a part of the answer is neither text, reasoning nor a call and was left out";
                self.answer.notice("unknown-part", message, out);
                Ok(())
            }
        }
    }

    fn say(&mut self, text: &str, out: &mut Vec<Piece>) -> Result<(), Failure> {
        self.answer.weigh(text.len())?;
        if !text.is_empty() {
            self.begun.has_said = true;
            out.push(Piece::Text(text.to_owned()));
        }
        Ok(())
    }

    fn think(&mut self, text: &str, out: &mut Vec<Piece>) -> Result<(), Failure> {
        self.answer.weigh(text.len())?;
        if !text.is_empty() {
            self.begun.has_said = true;
            out.push(Piece::Thinking(text.to_owned()));
        }
        Ok(())
    }

    fn close(&mut self, index: u64, out: &mut Vec<Piece>) {
        match self.blocks.remove(&index) {
            Some(Block::Thinking { mut text, signature }) if !signature.trim().is_empty() => {
                if let Some(text) = text.take() {
                    let opaque = json!({ "type": "thinking", "thinking": text, "signature": signature });
                    out.push(Piece::ThinkingDone { opaque });
                }
            }
            Some(Block::Redacted(opaque)) => out.push(Piece::ThinkingDone { opaque }),
            Some(Block::Call(mut call)) => {
                self.release(out);
                if call.arguments.trim().is_empty() && !call.begun.is_empty() {
                    call.arguments = std::mem::take(&mut call.begun);
                    out.push(Piece::call_arguments(call.slot, &call.arguments));
                }
                self.held = Some(call);
            }
            Some(Block::Text(cited)) => {
                let marks = self.citations.marks(&cited);
                if !marks.is_empty() {
                    out.push(Piece::Text(marks));
                }
            }
            Some(Block::Search { mut block, input }) => {
                if let Ok(Value::Object(input)) = serde_json::from_str(&input) {
                    block["input"] = input.into();
                }
                let query = block
                    .pointer("/input/query")
                    .and_then(Value::as_str)
                    .unwrap_or_default();
                let id = block["id"].as_str().unwrap_or_default();
                self.queries.insert(id.to_owned(), query.to_owned());
                self.begun.has_said = true;
                out.push(Piece::ThinkingDone { opaque: block });
            }
            Some(Block::Found(block)) => {
                self.begun.has_said = true;
                out.push(Piece::Searched(Box::new(self.found(&block))));
                out.push(Piece::ThinkingDone { opaque: block });
            }
            // A thought without its maker's proof is refused when it comes back.
            Some(Block::Thinking { .. } | Block::Ignored) | None => {}
        }
    }

    /// Reads the result of a search.
    fn found(&self, block: &Value) -> WebSearch {
        let id = block["tool_use_id"].as_str().unwrap_or_default();
        let content = block.get("content");
        let failed = content.and_then(|it| it.get("error_code")).and_then(Value::as_str);
        let hits = content.and_then(Value::as_array).into_iter().flatten();
        WebSearch {
            id: id.to_owned(),
            query: self.queries.get(id).cloned().unwrap_or_default(),
            hits: hits.filter_map(WebPage::read).collect(),
            failed: failed.map(str::to_owned),
        }
    }

    /// Completes the held call, because something follows it.
    fn release(&mut self, out: &mut Vec<Piece>) {
        if let Some(call) = self.held.take() {
            out.push(Piece::call_done(call.slot, call.id, call.name, call.arguments, None));
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
            && self.answer.weigh(why.len()).is_ok()
        {
            self.begun.has_said = true;
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
        self.answer.count(tokens, out);
    }
}

#[cfg(test)]
mod tests {
    use pretty_assertions::assert_eq;
    use proptest::prelude::*;

    use super::*;
    use crate::models::{
        body::{Read, Reading},
        conformance::{notices, read, recorded, shape, thoughts},
    };

    fn reading() -> Box<dyn Read> {
        Box::new(Reading::new(Decoder::default()))
    }

    /// A stream of these data lines.
    fn stream(data: &[&str]) -> String {
        data.iter().fold(String::new(), |all, it| all + "data: " + it + "\n\n")
    }

    fn pieces(data: &[&str]) -> Vec<Piece> {
        read(reading(), [stream(data).as_bytes()])
    }

    fn check(cases: &[(&str, &[&str], &str)]) {
        for (name, data, want) in cases {
            assert_eq!(shape(&pieces(data)), *want, "{name}");
        }
    }

    const START: &str = r#"{"type":"message_start","message":{"id":"m1","model":"x","usage":{"input_tokens":1}}}"#;
    const TEXT: &str = r#"{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}"#;
    const HI: &str = r#"{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"hi"}}"#;
    const STOP0: &str = r#"{"type":"content_block_stop","index":0}"#;
    const CALL0: &str = r#"{"type":"content_block_start","index":0,"content_block":{"type":"tool_use","id":"t1","name":"list","input":{}}}"#;
    const FRAGMENT: &str =
        r#"{"type":"content_block_delta","index":0,"delta":{"type":"input_json_delta","partial_json":"{}"}}"#;
    const END: &str = r#"{"type":"message_delta","delta":{"stop_reason":"end_turn"}}"#;
    const USED: &str = r#"{"type":"message_delta","delta":{"stop_reason":"tool_use"}}"#;
    const FULL: &str = r#"{"type":"message_delta","delta":{"stop_reason":"max_tokens"}}"#;
    const LAST: &str = r#"{"type":"message_stop"}"#;

    #[test]
    fn recordings_are_read_wherever_they_are_cut() {
        let grep = |arguments: &str, read: &str| format!("call 0 grep {arguments} = {read}");
        let cases = [
            ("aimock-disconnect", r#"text "This answer will" | error STREAM_INTERRUPTED"#.to_owned()),
            ("aimock-err429", "error LLM_RATE_LIMITED".to_owned()),
            (
                "aimock-reasoning",
                r#"thinking "First I consider the question carefully." | text "The answer is 42 🦀." | end Stop"#.to_owned(),
            ),
            ("aimock-text", r#"text "Hello from aimock, a deterministic server." | end Stop"#.to_owned()),
            ("aimock-truncated", r#"text "This answer will be cut " | error STREAM_INTERRUPTED"#.to_owned()),
            (
                "litellm-mock-text",
                r#"text "Hello! This is a mocked answer from the proxy, with ünïcödé 🦀 and a newline\nsecond line." | usage 2095(0)+503 | end Stop"#
                    .to_owned(),
            ),
            ("litellm-qwen-text", r#"text "Hello!" | usage 35(34)+3 | end Stop"#.to_owned()),
            (
                "litellm-qwen-tool",
                grep("{\n    \"pattern\": \"TODO\",\n    \"glob\": \"**/*.py\"\n  }", r#"{"pattern":"TODO","glob":"**/*.py"}"#)
                    + " | usage 233(232)+37 | end ToolUse",
            ),
            ("llamacpp-qwen0.5b-err-bad", "error LLM_UNAVAILABLE".to_owned()),
            ("llamacpp-qwen0.5b-err-context", "error LLM_CONTEXT_LENGTH".to_owned()),
            ("llamacpp-qwen0.5b-length", r#"text "Sure, I can" | usage 33(18)+4 | end Length"#.to_owned()),
            // The server stops the block of the call that its limit cut.
            ("llamacpp-qwen0.5b-tool-length", "call 0 grep { | usage 179(18)+12 | end Length".to_owned()),
            (
                "llamacpp-qwen0.5b-tool",
                grep("{\n    \"pattern\": \"TODO\",\n    \"glob\": \"*/todo.*\"\n  }", r#"{"pattern":"TODO","glob":"*/todo.*"}"#)
                    + " | usage 179(0)+37 | end ToolUse",
            ),
            ("llamacpp-qwen1.5b-text", r#"text "Hello." | usage 35(22)+3 | end Stop"#.to_owned()),
        ];
        recorded("anthropic", reading, &cases);
    }

    #[test]
    fn a_search_of_the_server_is_shown_and_goes_back_unchanged() {
        let result = json!({
            "type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "caller": { "type": "direct" },
            "content": [
                { "type": "web_search_result", "url": "https://a.example/x(1)", "title": "A", "encrypted_content": "EqgF", "page_age": null },
                { "type": "web_search_result", "url": "javascript:alert(1)", "title": "B", "encrypted_content": "Abc" },
            ],
        });
        let cites = |url: &str| {
            json!({ "type": "citations_delta", "citation": { "type": "web_search_result_location", "url": url,
                    "title": "A", "encrypted_index": "Eo8B", "cited_text": "so" } })
        };
        let block = |index: u64, block: Value, deltas: Vec<Value>| -> Vec<Value> {
            let mut all = vec![json!({ "type": "content_block_start", "index": index, "content_block": block })];
            let delta = |it| json!({ "type": "content_block_delta", "index": index, "delta": it });
            all.extend(deltas.into_iter().map(delta));
            all.push(json!({ "type": "content_block_stop", "index": index }));
            all
        };
        let text = |it: &str| json!({ "type": "text_delta", "text": it });
        let input = |it: &str| json!({ "type": "input_json_delta", "partial_json": it });
        let used = json!({ "type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {} });
        let events = [
            vec![json!({ "type": "message_start", "message": { "id": "m" } })],
            block(0, json!({ "type": "text", "text": "" }), vec![text("I look.")]),
            block(1, used, vec![input("{\"query\": \"the "), input("answer\"}")]),
            block(2, result.clone(), Vec::new()),
            block(
                3,
                json!({ "type": "text", "text": "", "citations": [] }),
                vec![
                    text("It is 42"),
                    cites("https://a.example/x(1)"),
                    cites("https://a.example/x(1)"),
                ],
            ),
            block(
                4,
                json!({ "type": "text", "text": "" }),
                vec![text(", they say"), cites("https://b.example/")],
            ),
            vec![
                json!({ "type": "message_delta", "delta": { "stop_reason": "end_turn" } }),
                json!({ "type": "message_stop" }),
            ],
        ];
        let lines: Vec<String> = events.iter().flatten().map(Value::to_string).collect();
        let pieces = pieces(&lines.iter().map(String::as_str).collect::<Vec<_>>());
        assert_eq!(
            shape(&pieces),
            "text \"I look.\" | search \"the answer\" = https://a.example/x(1) | \
             text \"It is 42 [1](https://a.example/x%281%29), they say [2](https://b.example/)\" | end Stop"
        );
        let used = json!({ "type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search",
            "input": { "query": "the answer" } });
        assert_eq!(thoughts(&pieces), [used, result]);
        let failed = json!({ "type": "web_search_tool_result", "tool_use_id": "s",
            "content": { "type": "web_search_tool_result_error", "error_code": "max_uses_exceeded" } });
        let lines: Vec<String> = block(0, failed, Vec::new()).iter().map(Value::to_string).collect();
        let mut data: Vec<&str> = lines.iter().map(String::as_str).collect();
        data.extend([END, LAST]);
        assert_eq!(
            shape(&self::pieces(&data)),
            "search \"\" = max_uses_exceeded | end Stop"
        );
    }

    #[test]
    fn sloppy_events_are_read() {
        let good = r#"text "hi" | end Stop"#;
        check(&[
            ("as it should be", &[TEXT, HI, STOP0, END, LAST], good),
            ("no start of the message", &[TEXT, HI, STOP0, END, LAST], good),
            ("no start of the block", &[HI, END, LAST], good),
            ("no end of the block", &[TEXT, HI, END, LAST], good),
            ("no word of the end but the reason", &[TEXT, HI, STOP0, END], good),
            ("no reason but the word of the end", &[TEXT, HI, STOP0, LAST], good),
            ("an end as others have it", &[TEXT, HI, STOP0, "[DONE]"], good),
            ("both", &[TEXT, HI, STOP0, END, LAST, "[DONE]"], good),
            (
                "an empty reason first",
                &[
                    TEXT,
                    HI,
                    r#"{"type":"message_delta","delta":{"stop_reason":null}}"#,
                    END,
                ],
                good,
            ),
            (
                "the text in the start of its block",
                &[
                    r#"{"type":"content_block_start","index":0,"content_block":{"type":"text","text":"hi"}}"#,
                    END,
                ],
                good,
            ),
            (
                "no index",
                &[
                    r#"{"type":"content_block_start","content_block":{"type":"text"}}"#,
                    r#"{"type":"content_block_delta","delta":{"type":"text_delta","text":"hi"}}"#,
                    r#"{"type":"content_block_stop"}"#,
                    r#"{"type":"content_block_start","content_block":{"type":"tool_use","id":"t","name":"list"}}"#,
                    r#"{"type":"content_block_delta","delta":{"type":"input_json_delta","partial_json":"{}"}}"#,
                    r#"{"type":"content_block_stop"}"#,
                    USED,
                ],
                r#"text "hi" | call 0 list {} = {} | end ToolUse"#,
            ),
            (
                "nonsense in between",
                &[
                    "7",
                    "null",
                    "{",
                    ": ping",
                    r#"{"type":"moon"}"#,
                    r#"{"type":"content_block_delta"}"#,
                    TEXT,
                    HI,
                    END,
                ],
                good,
            ),
            (
                "two in one event",
                &[TEXT, &format!("{HI}{HI}"), END],
                r#"text "hihi" | end Stop"#,
            ),
            (
                "wrapped into lists",
                &[&format!("[{TEXT},{HI}]"), &format!("[{END}]")],
                good,
            ),
            ("nothing after the end counts", &[TEXT, HI, END, LAST, HI, LAST], good),
        ]);
        assert_eq!(notices(&pieces(&[TEXT, &format!("{HI}{HI}"), END])), ["glued-json"]);
        // Everything in `event:`, nothing in `type`.
        let named = "event: content_block_delta\ndata: {\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":\"hi\"}}\n\n\
                     event: message_stop\ndata: {}\n\n";
        assert_eq!(shape(&read(reading(), [named.as_bytes()])), good);
    }

    #[test]
    fn a_call_is_done_when_it_is_whole_and_only_then() {
        check(&[
            (
                "its arguments all at once",
                &[
                    r#"{"type":"content_block_start","index":0,"content_block":{"type":"tool_use","id":"t","name":"read","input":{"path":"a"}}}"#,
                    STOP0,
                    USED,
                ],
                r#"call 0 read {"path":"a"} = {"path":"a"} | end ToolUse"#,
            ),
            (
                "its arguments at once, and then in pieces",
                &[
                    r#"{"type":"content_block_start","index":0,"content_block":{"type":"tool_use","id":"t","name":"read","input":{"path":"a"}}}"#,
                    r#"{"type":"content_block_delta","index":0,"delta":{"type":"input_json_delta","partial_json":"{\"path\":\"a\"}"}}"#,
                    STOP0,
                    USED,
                ],
                r#"call 0 read {"path":"a"} = {"path":"a"} | end ToolUse"#,
            ),
            (
                "arguments as an object",
                &[
                    CALL0,
                    r#"{"type":"content_block_delta","index":0,"delta":{"type":"input_json_delta","partial_json":{"a":1}}}"#,
                    STOP0,
                    USED,
                ],
                r#"call 0 list {"a":1} = {"a":1} | end ToolUse"#,
            ),
            (
                "arguments that are a list",
                &[CALL0, &FRAGMENT.replace("{}\"", "[]\""), STOP0, USED],
                "call 0 list [] broken | end ToolUse",
            ),
            (
                "no arguments and no end of the block",
                &[CALL0, USED, LAST],
                "call 0 list  = {} | end ToolUse",
            ),
            (
                "the reason forgets the call",
                &[CALL0, STOP0, END],
                "call 0 list  = {} | end ToolUse",
            ),
            (
                "the limit cut it before its arguments",
                &[CALL0, STOP0, FULL],
                "call 0 list  | end Length",
            ),
            (
                "the limit cut it and its block has no end",
                &[CALL0, FRAGMENT, FULL],
                "call 0 list {} | end Length",
            ),
            (
                "the limit came after it",
                &[CALL0, FRAGMENT, STOP0, FULL],
                "call 0 list {} = {} | end Length",
            ),
            (
                "the limit came in the text behind it",
                &[CALL0, STOP0, &TEXT.replace('0', "1"), &HI.replace('0', "1"), FULL],
                r#"call 0 list  = {} | text "hi" | end Length"#,
            ),
            (
                "the body ended after its block",
                &[CALL0, FRAGMENT, STOP0],
                "call 0 list {} | error STREAM_INTERRUPTED",
            ),
            (
                "the end as others have it, in its midst",
                &[CALL0, FRAGMENT, "[DONE]"],
                "call 0 list {} | end ToolUse",
            ),
            (
                "arguments for a text",
                &[TEXT, HI, FRAGMENT, END],
                r#"text "hi" | end Stop"#,
            ),
        ]);
    }

    #[test]
    fn thoughts_go_back_as_they_came_with_their_proof_or_not_at_all() {
        let thought = |text: &str| {
            format!(
                r#"{{"type":"content_block_delta","index":0,"delta":{{"type":"thinking_delta","thinking":"{text}"}}}}"#
            )
        };
        let (first, second) = (thought("a "), thought("b"));
        let begin = r#"{"type":"content_block_start","index":0,"content_block":{"type":"thinking","thinking":"","signature":""}}"#;
        let proof = r#"{"type":"content_block_delta","index":0,"delta":{"type":"signature_delta","signature":"EqQB"}}"#;
        let hidden =
            r#"{"type":"content_block_start","index":0,"content_block":{"type":"redacted_thinking","data":"c2Vj"}}"#;
        let signed = json!({ "type": "thinking", "thinking": "a b", "signature": "EqQB" });
        let cases: [(&str, Vec<&str>, Vec<Value>); 6] = [
            ("signed", vec![begin, &first, &second, proof, STOP0, END], vec![signed]),
            ("not signed", vec![begin, &first, STOP0, END], vec![]),
            (
                "signed, and not shown",
                vec![begin, proof, STOP0, END],
                vec![json!({ "type": "thinking", "thinking": "", "signature": "EqQB" })],
            ),
            (
                "hidden",
                vec![hidden, STOP0, END],
                vec![json!({ "type": "redacted_thinking", "data": "c2Vj" })],
            ),
            ("cut", vec![begin, &first, proof], vec![]),
            (
                "signed from the beginning",
                vec![
                    r#"{"type":"content_block_start","index":0,"content_block":{"type":"thinking","thinking":"x","signature":"s"}}"#,
                    STOP0,
                    END,
                ],
                vec![json!({ "type": "thinking", "thinking": "x", "signature": "s" })],
            ),
        ];
        for (name, data, want) in cases {
            assert_eq!(thoughts(&pieces(&data)), want, "{name}");
        }
        // Among calls, each stays at its place.
        let order: Vec<&str> = pieces(&[
            begin,
            proof,
            STOP0,
            &CALL0.replace("\"index\":0", "\"index\":1"),
            r#"{"type":"content_block_stop","index":1}"#,
            &begin.replace("\"index\":0", "\"index\":2"),
            &proof.replace("\"index\":0", "\"index\":2"),
            r#"{"type":"content_block_stop","index":2}"#,
            USED,
        ])
        .iter()
        .filter_map(|it| match it {
            Piece::ThinkingDone { .. } => Some("thought"),
            Piece::CallDone { .. } => Some("call"),
            _ => None,
        })
        .collect();
        assert_eq!(order, ["thought", "call", "thought"]);
    }

    #[test]
    fn every_reason_has_its_end() {
        let end = |reason: &str| format!(r#"{{"type":"message_delta","delta":{{"stop_reason":"{reason}"}}}}"#);
        let cases = [
            ("end_turn", "Stop"),
            ("stop_sequence", "Stop"),
            ("max_tokens", "Length"),
            ("pause_turn", "Pause"),
            ("refusal", "Refusal"),
            ("cosmic_ray", "Other(\"cosmic_ray\")"),
        ];
        for (reason, want) in cases {
            let got = shape(&pieces(&[TEXT, HI, STOP0, &end(reason), LAST]));
            assert_eq!(got, format!("text \"hi\" | end {want}"));
        }
        assert_eq!(
            shape(&pieces(&[START, &end("model_context_window_exceeded"), LAST])),
            "usage 1(0)+0 | error LLM_CONTEXT_LENGTH",
            "nothing of an answer fitted"
        );
        assert_eq!(
            shape(&pieces(&[TEXT, HI, STOP0, &end("model_context_window_exceeded"), LAST])),
            "text \"hi\" | error LLM_CONTEXT_LENGTH",
            "half of an answer fitted: it is asked for again once there is room"
        );
        let why = r#"{"type":"message_delta","delta":{"stop_reason":"refusal","stop_details":{"type":"refusal","category":"cyber","explanation":"No malware."}}}"#;
        assert_eq!(
            shape(&pieces(&[START, why, LAST])),
            r#"refusal "No malware." | usage 1(0)+0 | end Refusal"#
        );
    }

    #[test]
    fn counts_are_taken_as_they_come() {
        let usage = |data: &[&str]| {
            let all = pieces(data);
            all.iter().rev().find_map(|it| match it {
                Piece::Usage(tokens) => Some(*tokens),
                _ => None,
            })
        };
        let start = r#"{"type":"message_start","message":{"id":"m","usage":{"input_tokens":10,"cache_read_input_tokens":200,"cache_creation_input_tokens":30,"output_tokens":1}}}"#;
        let end =
            |usage: &str| format!(r#"{{"type":"message_delta","delta":{{"stop_reason":"end_turn"}},"usage":{usage}}}"#);
        let tokens = Tokens {
            prompt: 240,
            cached: 200,
            cache_written: 30,
            completion: 7,
            reasoning: 0,
        };
        assert_eq!(usage(&[start, &end(r#"{"output_tokens":7}"#)]), Some(tokens));
        assert_eq!(
            usage(&[
                start,
                &end(r#"{"output_tokens":7,"output_tokens_details":{"thinking_tokens":5}}"#)
            ]),
            Some(Tokens { reasoning: 5, ..tokens })
        );
        assert_eq!(
            usage(&[
                start,
                &end(r#"{"input_tokens":11,"cache_read_input_tokens":null,"output_tokens":"7"}"#)
            ]),
            Some(Tokens { prompt: 241, ..tokens }),
            "what is repeated is added to nothing"
        );
        assert_eq!(usage(&[TEXT, HI, END]), None);
    }

    #[test]
    fn errors_and_strangers_are_named() {
        let word = |data: &[&str]| match pieces(data).pop() {
            Some(Piece::Error(failure)) => format!("{} {}", failure.kind.code(), failure.message),
            other => panic!("{other:?}"),
        };
        for (name, error, want) in [
            (
                "overloaded",
                r#"{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}"#,
                "LLM_OVERLOADED",
            ),
            (
                "without its type",
                r#"{"error":{"message":"Overloaded"}}"#,
                "LLM_OVERLOADED",
            ),
            (
                "in words only",
                r#"{"type":"error","message":"rate limit"}"#,
                "LLM_RATE_LIMITED",
            ),
            (
                "of the server",
                r#"{"type":"error","error":{"type":"api_error","message":"oh"}}"#,
                "LLM_UNAVAILABLE",
            ),
            (
                "of time",
                r#"{"type":"error","error":{"type":"timeout_error","message":"oh"}}"#,
                "LLM_UNAVAILABLE",
            ),
            (
                "no money",
                r#"{"type":"error","error":{"type":"billing_error","message":"oh"}}"#,
                "LLM_RATE_LIMITED",
            ),
            (
                "not found",
                r#"{"type":"error","error":{"type":"not_found_error","message":"model: x"}}"#,
                "LLM_UNAVAILABLE",
            ),
            (
                "in a list",
                r#"[{"error":{"type":"authentication_error","message":"no"}}]"#,
                "LLM_AUTH",
            ),
        ] {
            for before in [&[] as &[&str], &[START, TEXT, HI]] {
                let data: Vec<&str> = before.iter().copied().chain([error, HI, END]).collect();
                assert!(word(&data).starts_with(want), "{name}: {}", word(&data));
            }
        }
        let named = "event: error\ndata: the proxy gave up\n\n";
        assert_eq!(shape(&read(reading(), [named.as_bytes()])), "error LLM_BAD_RESPONSE");
        for (data, want) in [
            (
                r#"{"choices":[{"delta":{"content":"hi"}}]}"#,
                "this address speaks OpenAI chat completions, not Anthropic messages",
            ),
            (
                r#"{"type":"response.created","response":{}}"#,
                "this address speaks OpenAI responses, not Anthropic messages",
            ),
            (
                r#"{"type":"moon"}"#,
                "the server answered with something else than messages",
            ),
        ] {
            assert_eq!(word(&[data]), format!("LLM_BAD_RESPONSE {want}"));
        }
        assert_eq!(
            shape(&read(reading(), [b"<html>hi</html>".as_slice()])),
            "error LLM_BAD_RESPONSE"
        );
    }

    #[test]
    fn what_the_provider_does_itself_is_left_out_and_said_once() {
        let all = pieces(&[
            TEXT,
            HI,
            STOP0,
            r#"{"type":"content_block_start","index":1,"content_block":{"type":"mcp_tool_use","id":"s","name":"look","input":{}}}"#,
            r#"{"type":"content_block_delta","index":1,"delta":{"type":"input_json_delta","partial_json":"{}"}}"#,
            r#"{"type":"content_block_stop","index":1}"#,
            r#"{"type":"content_block_start","index":2,"content_block":{"type":"mcp_tool_result","content":[]}}"#,
            r#"{"type":"content_block_stop","index":2}"#,
            END,
        ]);
        assert_eq!(shape(&all), r#"text "hi" | end Stop"#);
        assert_eq!(notices(&all), ["unknown-part"]);
    }

    #[test]
    fn an_answer_without_end_meets_a_limit() {
        let mut reading = reading();
        reading.push(stream(&[START, TEXT]).as_bytes());
        let more = stream(&[&HI.replace("hi", &"x".repeat(1 << 20))]);
        let ends: Vec<Piece> = (0..66)
            .flat_map(|_| reading.push(more.as_bytes()))
            .filter(|it| !matches!(it, Piece::Text(_)))
            .collect();
        let [Piece::Error(failure)] = &ends[..] else {
            panic!("{ends:?}")
        };
        assert_eq!(failure.kind, FailureKind::Oversized);
        let mut blocks = super::tests::reading();
        let flood = stream(&[TEXT]).repeat(64 << 10);
        let ends = (0..5).flat_map(|_| blocks.push(flood.as_bytes())).count();
        assert_eq!(ends, 1, "blocks weigh something, too");
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(256))]

        #[test]
        fn whatever_comes_it_ends_once(picks in proptest::collection::vec((0..14_usize, 0..4_u64), 0..24), junk in "[\\[\\]{}\",:a0]{0,12}") {
            let known = [
                START, TEXT, HI, STOP0, CALL0, FRAGMENT, LAST, END, USED, FULL, "[DONE]",
                r#"{"type":"error","error":{}}"#,
                r#"{"type":"content_block_start","index":0,"content_block":{"type":"thinking"}}"#,
                junk.as_str(),
            ];
            let data: Vec<String> = picks.iter().map(|(it, index)| known[*it].replace("\"index\":0", &format!("\"index\":{index}"))).collect();
            let data: Vec<&str> = data.iter().map(String::as_str).collect();
            let whole = pieces(&data);
            let body = stream(&data);
            prop_assert_eq!(shape(&read(reading(), body.as_bytes().chunks(3))), shape(&whole));
        }
    }
}
