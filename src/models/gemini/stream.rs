//! From Gemini's chunks to pieces.
//!
//! Every chunk is a whole answer of its own with the parts that are new. Calls come whole; a signature belongs to the
//! very part that it came with and goes back with it. There is no last word: the answer is over where a finish reason
//! came and the body ended.

use serde_json::{Map, Value};

use super::schema::Tools;
use crate::{
    models::{
        Citations, EndReason, Failure, FailureKind, Piece, Tokens, WebPage, WebSearch,
        body::Read,
        lenient::{self, AnswerState, BAD_JSON, CALLS_LIMIT, whole_number},
        objects::{Objects, ScannedPart},
        tap,
    },
    net::sse::{Frame, Frames},
};

/// Message for a call that cannot be read; one more attempt is worthwhile.
pub const MALFORMED: &str = "the model wrote a call that Gemini itself could not read";

const WHAT: &str = "a Gemini stream";

/// Reads one answer: events, one JSON list that grows, or one object.
pub struct Reading {
    decoder: Decoder,
    form: BodyKind,
    is_watched: bool,
}

enum BodyKind {
    /// Nothing visible came yet.
    Unknown(Vec<u8>),
    Events(Box<Frames>),
    Objects(Objects),
}

impl Reading {
    pub fn new(tools: Tools) -> Self {
        Self {
            decoder: Decoder::new(tools),
            form: BodyKind::Unknown(Vec::new()),
            is_watched: false,
        }
    }

    fn event(&mut self, frame: &Frame, out: &mut Vec<Piece>) {
        out.extend(self.is_watched.then(|| tap::event(frame)));
        self.decoder.data(&frame.data, out);
    }
}

impl Read for Reading {
    fn push(&mut self, chunk: &[u8]) -> Vec<Piece> {
        let mut out = Vec::new();
        match &mut self.form {
            BodyKind::Unknown(begun) => {
                begun.extend_from_slice(chunk);
                let begun = std::mem::take(begun);
                let first = begun
                    .iter()
                    .find(|it| !it.is_ascii_whitespace() && !b"\xEF\xBB\xBF".contains(it));
                self.form = match first {
                    None => {
                        // White space and byte order marks alone say nothing and need not be kept.
                        return out;
                    }
                    Some(b'{' | b'[' | b'<') => BodyKind::Objects(Objects::default()),
                    Some(_) => BodyKind::Events(Box::default()),
                };
                return self.push(&begun);
            }
            BodyKind::Events(frames) => {
                for frame in frames.push(chunk) {
                    match frame {
                        Ok(frame) => self.event(&frame, &mut out),
                        Err(error) => {
                            let failure = Failure::from_error(FailureKind::Oversized, &error);
                            self.decoder.cut(failure, &mut out);
                        }
                    }
                }
            }
            BodyKind::Objects(objects) => {
                for found in objects.push(chunk) {
                    self.decoder.found(found, &mut out);
                }
            }
        }
        out
    }

    fn watch(&mut self) {
        self.is_watched = true;
    }

    fn finish(mut self: Box<Self>) -> Vec<Piece> {
        let mut out = Vec::new();
        match &mut self.form {
            BodyKind::Unknown(_) => {}
            BodyKind::Events(frames) => {
                if let Some(Ok(frame)) = frames.finish() {
                    self.event(&frame, &mut out);
                }
            }
            BodyKind::Objects(objects) => {
                if let Some(found) = objects.finish() {
                    self.decoder.found(found, &mut out);
                }
            }
        }
        let failure = self.decoder.unfinished();
        self.decoder.cut(failure, &mut out);
        out
    }

    fn cut(mut self: Box<Self>, failure: Failure) -> Vec<Piece> {
        let mut out = Vec::new();
        self.decoder.cut(failure, &mut out);
        out
    }

    fn is_finished(&self) -> bool {
        self.decoder.finish.is_some() || self.decoder.blocked.is_some()
    }
}

/// The state between two chunks.
#[derive(Default)]
struct Decoder {
    tools: Tools,
    answer: AnswerState,
    has_candidate: bool,
    finish: Option<String>,
    /// The server's text beside its finish reason.
    said: String,
    /// Reason why the request itself was refused.
    blocked: Option<String>,
    /// Text received in place of chunks.
    junk: String,
    calls: Vec<Called>,
    /// The pages that it rests on were shown.
    is_grounded: bool,
}

struct Called {
    id: String,
    name: String,
    arguments: Map<String, Value>,
    opaque: Option<Value>,
}

impl Decoder {
    fn new(tools: Tools) -> Self {
        Self {
            tools,
            ..Self::default()
        }
    }

    fn data(&mut self, data: &str, out: &mut Vec<Piece>) {
        let data = data.trim();
        // Proxies turn comments into data and add OpenAI's last word.
        if data.is_empty() || data.starts_with(':') || data == "[DONE]" {
            return;
        }
        match lenient::values(data) {
            Ok(values) => values.iter().for_each(|it| self.value(it, out)),
            Err(_) => self.found(ScannedPart::Junk(data.chars().take(600).collect()), out),
        }
    }

    fn found(&mut self, found: ScannedPart, out: &mut Vec<Piece>) {
        match found {
            _ if self.answer.is_over => {}
            ScannedPart::Object(members) => self.members(&members, out),
            ScannedPart::Junk(text) => {
                if self.junk.is_empty() {
                    self.junk = text;
                }
                self.answer
                    .notice(BAD_JSON, "a part of the answer is not JSON and was skipped", out);
            }
            ScannedPart::TooLong => {
                let message = "a part of the answer is longer than is read";
                self.answer.fail(Failure::new(FailureKind::Oversized, message), out);
            }
            ScannedPart::NoObject => self.answer.fail(lenient::no_object(), out),
        }
    }

    fn value(&mut self, value: &Value, out: &mut Vec<Piece>) {
        match value {
            _ if self.answer.is_over => {}
            Value::Object(members) => self.members(members, out),
            Value::Array(items) => items
                .iter()
                .filter(|it| it.is_object())
                .for_each(|it| self.value(it, out)),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {
                self.found(ScannedPart::Junk(value.to_string()), out);
            }
        }
    }

    fn members(&mut self, members: &Map<String, Value>, out: &mut Vec<Piece>) {
        if let Some(error) = lenient::error_of(members) {
            return self.answer.fail(Failure::from_server(None, error), out);
        }
        // Code Assist and some proxies wrap the chunk.
        if let Some(Value::Object(inner)) = members.get("response")
            && !members.contains_key("candidates")
        {
            return self.members(inner, out);
        }
        if members.contains_key("choices") {
            let message = "this address speaks OpenAI chat completions, not Gemini";
            return self.answer.fail(Failure::new(FailureKind::Garbled, message), out);
        }
        self.answer
            .start(members.get("responseId"), members.get("modelVersion"), out);
        if let Some(usage) = members.get("usageMetadata") {
            self.count(usage, out);
        }
        if let Some(feedback) = members.get("promptFeedback")
            && let Some(reason) = feedback.get("blockReason").and_then(Value::as_str)
        {
            let words = feedback.get("blockReasonMessage").and_then(Value::as_str);
            self.blocked = Some(words.unwrap_or(reason).to_owned());
        }
        if let Some(Value::Array(candidates)) = members.get("candidates") {
            for candidate in candidates.iter().filter_map(Value::as_object) {
                self.candidate(candidate, out);
            }
        }
    }

    fn candidate(&mut self, candidate: &Map<String, Value>, out: &mut Vec<Piece>) {
        if candidate.get("index").and_then(whole_number).is_some_and(|it| it > 0) {
            self.answer
                .notice("second-choice", "a second choice of the answer was left out", out);
            return;
        }
        self.has_candidate = true;
        let parts = candidate.get("content").and_then(|it| it.get("parts"));
        match parts {
            Some(Value::Array(parts)) => {
                for part in parts.iter().filter_map(Value::as_object) {
                    self.part(part, out);
                }
            }
            Some(Value::Object(part)) => self.part(part, out),
            Some(Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_)) | None => {}
        }
        if let Some(grounding) = candidate.get("groundingMetadata") {
            self.ground(grounding, out);
        }
        let text = |name: &str| candidate.get(name).and_then(Value::as_str).filter(|it| !it.is_empty());
        if let Some(reason) = text("finishReason").filter(|it| *it != "FINISH_REASON_UNSPECIFIED") {
            self.finish = Some(reason.to_owned());
        }
        if let Some(words) = text("finishMessage") {
            words.clone_into(&mut self.said);
        }
    }

    fn part(&mut self, part: &Map<String, Value>, out: &mut Vec<Piece>) {
        if self.answer.is_over {
            return;
        }
        let signature = part
            .get("thoughtSignature")
            .and_then(Value::as_str)
            .filter(|it| !it.is_empty());
        if let Some(call) = part.get("functionCall").and_then(Value::as_object) {
            return self.call(call, signature, out);
        }
        // Searches of the server's own; they go back as they came.
        if part.contains_key("toolCall") || part.contains_key("toolResponse") {
            let opaque = Value::Object(part.clone());
            if self.answer.takes(opaque.to_string().len(), out) {
                out.push(Piece::ThinkingDone { opaque });
            }
            return;
        }
        let text = part.get("text").and_then(Value::as_str);
        if text.is_none() && signature.is_none() {
            if [
                "inlineData",
                "fileData",
                "executableCode",
                "codeExecutionResult",
                "functionResponse",
            ]
            .iter()
            .any(|it| part.contains_key(*it))
            {
                let message = "a part of the answer is neither text nor a call and was left out";
                self.answer.notice("unknown-part", message, out);
            }
            return;
        }
        let text = text.unwrap_or_default();
        let weight = text.len() + signature.map_or(0, str::len);
        if !self.answer.takes(weight, out) {
            return;
        }
        let is_thought = part.get("thought").and_then(Value::as_bool) == Some(true);
        if !text.is_empty() {
            out.push(if is_thought {
                Piece::Thinking(text.to_owned())
            } else {
                Piece::Text(text.to_owned())
            });
        }
        if let Some(signature) = signature {
            let mut opaque = Map::from_iter([
                ("text".to_owned(), text.into()),
                ("thoughtSignature".to_owned(), signature.into()),
            ]);
            if is_thought {
                opaque.insert("thought".to_owned(), true.into());
            }
            out.push(Piece::ThinkingDone { opaque: opaque.into() });
        }
    }

    fn call(&mut self, call: &Map<String, Value>, signature: Option<&str>, out: &mut Vec<Piece>) {
        let text = |name: &str| call.get(name).and_then(Value::as_str).filter(|it| !it.is_empty());
        let arguments = call.get("args").and_then(Value::as_object);
        let Some(sent) = text("name") else {
            self.answer
                .notice("nameless-call", "a call without a name was left out", out);
            return;
        };
        if self.calls.len() == CALLS_LIMIT {
            self.answer.notice_call_limit(out);
            return;
        }
        let name = self.tools.own(sent).to_owned();
        let arguments = arguments.map(|it| self.tools.arguments_in(&name, it));
        let fragment = arguments
            .clone()
            .map(|it| Value::Object(it).to_string())
            .unwrap_or_default();
        if !self.answer.takes(fragment.len() + signature.map_or(0, str::len), out) {
            return;
        }
        let mut opaque = Map::new();
        if let Some(signature) = signature {
            opaque.insert("thoughtSignature".to_owned(), signature.into());
        }
        if let Some(id) = text("id") {
            opaque.insert("id".to_owned(), id.into());
        }
        let slot = self.calls.len();
        let id = text("id").unwrap_or_default().to_owned();
        out.push(Piece::call_start(slot, &id, &name));
        if !fragment.is_empty() {
            out.push(Piece::call_arguments(slot, &fragment));
        }
        self.calls.push(Called {
            id,
            name,
            arguments: arguments.unwrap_or_default(),
            opaque: (!opaque.is_empty()).then_some(opaque.into()),
        });
    }

    /// Reads what was searched and found. It comes with the last chunk; a part that came before is not shown again.
    fn ground(&mut self, grounding: &Value, out: &mut Vec<Piece>) {
        let list = |name: &str| grounding.get(name).and_then(Value::as_array).into_iter().flatten();
        let queries: Vec<&str> = list("webSearchQueries").filter_map(Value::as_str).collect();
        let pages = list("groundingChunks").filter_map(|it| {
            let web = it.get("web")?;
            WebPage::read(&serde_json::json!({ "url": web.get("uri"), "title": web.get("title") }))
        });
        let pages: Vec<WebPage> = pages.collect();
        if self.is_grounded || pages.is_empty() {
            return;
        }
        self.is_grounded = true;
        let weight = pages.iter().map(|it| it.url.len() + it.title.len()).sum();
        if !self.answer.takes(weight, out) {
            return;
        }
        let marks = Citations::default().marks(&pages);
        out.push(Piece::Text(marks));
        out.push(Piece::Searched(Box::new(WebSearch {
            id: "google_search".to_owned(),
            query: queries.join("; "),
            hits: pages,
            failed: None,
        })));
    }

    /// Counts are of the whole answer so far.
    fn count(&mut self, usage: &Value, out: &mut Vec<Piece>) {
        let count = |name: &str| usage.get(name).and_then(whole_number).unwrap_or(0);
        let reasoning = count("thoughtsTokenCount");
        let tokens = Tokens {
            prompt: count("promptTokenCount").saturating_add(count("toolUsePromptTokenCount")),
            cached: count("cachedContentTokenCount"),
            cache_written: 0,
            completion: count("candidatesTokenCount").saturating_add(reasoning),
            reasoning,
        };
        self.answer.count(tokens, out);
    }

    /// Returns the failure for a body that ended without an end of the answer.
    fn unfinished(&self) -> Failure {
        lenient::broken_off(self.has_candidate, &self.answer, WHAT).saying(&self.junk)
    }

    /// The body is over or cannot be read further. An answer that had its finish reason is whole all the same.
    fn cut(&mut self, failure: Failure, out: &mut Vec<Piece>) {
        if self.answer.is_over {
            return;
        }
        if let Some(reason) = self.finish.take() {
            return self.end(&reason, out);
        }
        if let Some(blocked) = self.blocked.take() {
            let message = format!("Gemini refused the question: {blocked}");
            self.answer.notice("blocked", &message, out);
            return self.answer.end(EndReason::ContentFilter, out);
        }
        self.answer.fail(failure, out);
    }

    fn end(&mut self, word: &str, out: &mut Vec<Piece>) {
        let has_calls = !self.calls.is_empty();
        let failed = |message: &str| Failure::new(FailureKind::Garbled, message).saying(&self.said);
        let reason = match word {
            "STOP" if has_calls => EndReason::ToolUse,
            "STOP" => EndReason::Stop,
            "MAX_TOKENS" | "CONTINUATION" => EndReason::Length,
            "SAFETY"
            | "RECITATION"
            | "BLOCKLIST"
            | "PROHIBITED_CONTENT"
            | "SPII"
            | "IMAGE_SAFETY"
            | "IMAGE_PROHIBITED_CONTENT"
            | "IMAGE_RECITATION"
            | "MODEL_ARMOR"
            | "ESCALATION" => EndReason::ContentFilter,
            // What came with it is kept where there is anything; the calls in front of the broken one are sound.
            "MALFORMED_FUNCTION_CALL" | "UNEXPECTED_TOOL_CALL" | "MALFORMED_RESPONSE" if !has_calls => {
                let failure = failed(MALFORMED);
                return self.answer.fail(failure, out);
            }
            "MISSING_THOUGHT_SIGNATURE" => {
                let failure = failed("Gemini reports a missing signature of its earlier calls");
                return self.answer.fail(failure, out);
            }
            _ if has_calls => EndReason::ToolUse,
            _ => EndReason::Other(word.to_owned()),
        };
        if reason == EndReason::ContentFilter && !self.said.is_empty() {
            let message = std::mem::take(&mut self.said);
            self.answer.notice("blocked", &message, out);
        }
        for (slot, call) in std::mem::take(&mut self.calls).into_iter().enumerate() {
            out.push(Piece::CallDone {
                slot,
                id: call.id,
                name: call.name,
                arguments: Ok(call.arguments),
                opaque: call.opaque,
            });
        }
        self.answer.end(reason, out);
    }
}

#[cfg(test)]
mod tests {
    use pretty_assertions::assert_eq;
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;
    use crate::models::{
        ToolSpec,
        conformance::{read, recorded, shape},
    };

    fn tools() -> Tools {
        Tools::new(&[ToolSpec {
            name: "grep".to_owned(),
            aliases: Vec::new(),
            about: String::new().into(),
            parameters: json!({ "type": "object", "properties": { "-A": { "type": "integer" } } }).into(),
        }
        .into()])
    }

    fn pieces(chunks: &[Value]) -> Vec<Piece> {
        let body: String = chunks.iter().map(|it| format!("data: {it}\r\n\r\n")).collect();
        read(Box::new(Reading::new(tools())), [body.as_bytes()])
    }

    fn parts(parts: Value) -> Value {
        json!({ "candidates": [{ "content": { "role": "model", "parts": parts } }] })
    }

    fn finish(reason: &str) -> Value {
        json!({ "candidates": [{ "finishReason": reason }] })
    }

    #[test]
    fn every_finish_reason_has_its_end() {
        let said = parts(json!([{ "text": "hi" }]));
        let called = parts(json!([{ "functionCall": { "name": "ls", "args": {} } }]));
        let filter = r#"text "hi" | end ContentFilter"#;
        let broken = r#"text "hi" | error LLM_BAD_RESPONSE"#;
        for (reason, after_text, after_call) in [
            ("STOP", r#"text "hi" | end Stop"#, "ToolUse"),
            ("MAX_TOKENS", r#"text "hi" | end Length"#, "Length"),
            ("CONTINUATION", r#"text "hi" | end Length"#, "Length"),
            ("SAFETY", filter, "ContentFilter"),
            ("RECITATION", filter, "ContentFilter"),
            ("BLOCKLIST", filter, "ContentFilter"),
            ("PROHIBITED_CONTENT", filter, "ContentFilter"),
            ("SPII", filter, "ContentFilter"),
            ("IMAGE_SAFETY", filter, "ContentFilter"),
            ("IMAGE_PROHIBITED_CONTENT", filter, "ContentFilter"),
            ("IMAGE_RECITATION", filter, "ContentFilter"),
            ("MODEL_ARMOR", filter, "ContentFilter"),
            ("ESCALATION", filter, "ContentFilter"),
            ("LANGUAGE", r#"text "hi" | end Other("LANGUAGE")"#, "ToolUse"),
            ("OTHER", r#"text "hi" | end Other("OTHER")"#, "ToolUse"),
            ("IMAGE_OTHER", r#"text "hi" | end Other("IMAGE_OTHER")"#, "ToolUse"),
            ("NO_IMAGE", r#"text "hi" | end Other("NO_IMAGE")"#, "ToolUse"),
            (
                "TOO_MANY_TOOL_CALLS",
                r#"text "hi" | end Other("TOO_MANY_TOOL_CALLS")"#,
                "ToolUse",
            ),
            (
                "PUP_LIMITED_DISABLED",
                r#"text "hi" | end Other("PUP_LIMITED_DISABLED")"#,
                "ToolUse",
            ),
            ("MALFORMED_FUNCTION_CALL", broken, "ToolUse"),
            ("UNEXPECTED_TOOL_CALL", broken, "ToolUse"),
            ("MALFORMED_RESPONSE", broken, "ToolUse"),
            (
                "FINISH_REASON_UNSPECIFIED",
                r#"text "hi" | error STREAM_INTERRUPTED"#,
                "none",
            ),
        ] {
            assert_eq!(shape(&pieces(&[said.clone(), finish(reason)])), after_text, "{reason}");
            let want = if after_call == "none" {
                "call 0 ls {} | error STREAM_INTERRUPTED".to_owned()
            } else {
                format!("call 0 ls {{}} = {{}} | end {after_call}")
            };
            assert_eq!(
                shape(&pieces(&[called.clone(), finish(reason)])),
                want,
                "{reason}, after a call"
            );
        }
        let missing = shape(&pieces(&[called, finish("MISSING_THOUGHT_SIGNATURE")]));
        assert_eq!(missing, "call 0 ls {} | error LLM_BAD_RESPONSE");
    }

    #[test]
    fn a_signature_stays_with_its_part() {
        let got = pieces(&[
            parts(json!([{ "text": "Hm.", "thought": true }])),
            parts(json!([{ "text": "Hi", "thoughtSignature": "s1" }, { "thoughtSignature": "s2" }])),
            parts(json!([
                { "functionCall": { "name": "grep", "args": { "context_after": 2 }, "id": "g1" }, "thoughtSignature": "s3" },
                { "functionCall": { "name": "grep", "args": { "context_after": 3 } } },
            ])),
            finish("STOP"),
        ]);
        let opaque: Vec<Value> = got
            .iter()
            .filter_map(|it| match it {
                Piece::ThinkingDone { opaque } => Some(opaque.clone()),
                Piece::CallDone {
                    id, arguments, opaque, ..
                } => Some(json!([id, arguments.clone().ok(), opaque])),
                _ => None,
            })
            .collect();
        assert_eq!(
            opaque,
            [
                json!({ "text": "Hi", "thoughtSignature": "s1" }),
                json!({ "text": "", "thoughtSignature": "s2" }),
                json!(["g1", { "-A": 2 }, { "thoughtSignature": "s3", "id": "g1" }]),
                json!(["", { "-A": 3 }, null]),
            ]
        );
    }

    #[test]
    fn recordings_are_read_wherever_they_are_cut() {
        let cases = [
            ("aimock-err429", "error LLM_RATE_LIMITED"),
            (
                "aimock-reasoning",
                r#"thinking "First I consider the question carefully." | text "The answer is 42 🦀." | end Stop"#,
            ),
            (
                "aimock-text",
                r#"text "Hello from aimock, a deterministic server." | end Stop"#,
            ),
            (
                "aimock-tools",
                r#"text "Let me look." | call 0 grep {"pattern":"TODO","glob":"*.py"} = {"pattern":"TODO","glob":"*.py"} | call 1 read_file {"path":"src/main.rs"} = {"path":"src/main.rs"} | end ToolUse"#,
            ),
            (
                "aimock-truncated",
                r#"text "This answer will be cut somewhere in the" | error STREAM_INTERRUPTED"#,
            ),
            ("written-blocked", "usage 7(0)+0 | end ContentFilter"),
            (
                "written-signed",
                r#"thinking "Let me look." | text "I look. " | call 0 grep {"pattern":"ünï 🦀"} = {"pattern":"ünï 🦀"} | call 1 read_file {"path":"a.rs"} = {"path":"a.rs"} | usage 11(4)+14 | end ToolUse"#,
            ),
        ];
        recorded(
            "gemini",
            || Box::new(Reading::new(Tools::default())),
            &cases.map(|(name, want)| (name, want.to_owned())),
        );
    }

    #[test]
    fn odd_chunks_are_read() {
        let hi = parts(json!([{ "text": "hi" }]));
        let stop = finish("STOP");
        let good = r#"text "hi" | end Stop"#;
        for (name, chunks, want) in [
            (
                "wrapped",
                vec![json!({ "response": hi }), json!({ "response": stop })],
                good,
            ),
            ("in a list", vec![json!([hi, stop])], good),
            (
                "parts as an object",
                vec![parts(json!({ "text": "hi" })), stop.clone()],
                good,
            ),
            (
                "nonsense between",
                vec![
                    json!(7),
                    json!({}),
                    json!({ "candidates": 1 }),
                    hi.clone(),
                    stop.clone(),
                ],
                good,
            ),
            (
                "a second choice",
                vec![
                    hi.clone(),
                    json!({ "candidates": [{ "index": 1, "content": { "parts": [{ "text": "ho" }] } }] }),
                    stop.clone(),
                ],
                good,
            ),
            (
                "a picture",
                vec![
                    parts(json!([{ "inlineData": { "data": "" } }, { "text": "hi" }])),
                    stop.clone(),
                ],
                good,
            ),
            (
                "a call without a name",
                vec![
                    parts(json!([{ "functionCall": { "args": {} } }, { "text": "hi" }])),
                    stop,
                ],
                good,
            ),
            (
                "counts that grow",
                vec![
                    json!({ "usageMetadata": { "promptTokenCount": 11, "candidatesTokenCount": 1 } }),
                    hi,
                    json!({ "candidates": [{ "finishReason": "STOP" }], "usageMetadata": { "promptTokenCount": 11, "toolUsePromptTokenCount": 2,
                        "candidatesTokenCount": 4, "thoughtsTokenCount": 5, "cachedContentTokenCount": 7, "totalTokenCount": 22 } }),
                ],
                r#"text "hi" | usage 13(7)+9 | end Stop"#,
            ),
            (
                "a refused question",
                vec![json!({ "promptFeedback": { "blockReason": "SAFETY" } })],
                "end ContentFilter",
            ),
            (
                "no candidates",
                vec![json!({ "usageMetadata": {} })],
                "error STREAM_INTERRUPTED",
            ),
            (
                "chat completions",
                vec![json!({ "choices": [] })],
                "error LLM_BAD_RESPONSE",
            ),
            (
                "a full server",
                vec![json!({ "error": { "code": 429, "status": "RESOURCE_EXHAUSTED", "message": "Quota exceeded" } })],
                "error LLM_RATE_LIMITED",
            ),
            (
                "a wrong key",
                vec![
                    json!([{ "error": { "code": 400, "message": "API key not valid.", "status": "INVALID_ARGUMENT" } }]),
                ],
                "error LLM_AUTH",
            ),
        ] {
            assert_eq!(shape(&pieces(&chunks)), want, "{name}");
        }
        let page = read(Box::new(Reading::new(tools())), [b"<html>hello</html>".as_slice()]);
        let Some(Piece::Error(failure)) = page.last() else {
            panic!("{page:?}")
        };
        assert_eq!(
            (failure.kind, failure.said.as_deref()),
            (FailureKind::Garbled, Some("<html>hello</html>"))
        );
    }

    #[test]
    fn an_answer_without_end_meets_a_limit() {
        let mut reading = Reading::new(tools());
        let chunk = format!("data: {}\n\n", parts(json!([{ "text": "x".repeat(1 << 20) }])));
        let pieces: Vec<Piece> = (0..70).flat_map(|_| reading.push(chunk.as_bytes())).collect();
        let Some(Piece::Error(failure)) = pieces.last() else {
            panic!("no error")
        };
        assert_eq!(failure.kind, FailureKind::Oversized);
        assert_eq!(pieces.len(), lenient::ANSWER_LIMIT_BYTES / (1 << 20) + 1);
    }

    /// JSON that looks like a chunk, with anything anywhere.
    fn any_chunk() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            prop::sample::select(vec!["", "a", "STOP", "SAFETY", "grep"]).prop_map(Value::from),
        ];
        let names = prop::sample::select(vec![
            "candidates",
            "content",
            "parts",
            "text",
            "thought",
            "thoughtSignature",
            "functionCall",
            "name",
            "args",
            "id",
            "finishReason",
            "usageMetadata",
            "promptTokenCount",
            "promptFeedback",
            "blockReason",
            "error",
            "index",
            "response",
        ]);
        leaf.prop_recursive(6, 40, 4, move |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                prop::collection::vec((names.clone(), inner), 0..5).prop_map(|it| it
                    .into_iter()
                    .map(|(name, it)| (name.to_owned(), it))
                    .collect::<Map<_, _>>()
                    .into()),
            ]
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(128))]

        #[test]
        fn any_chunks_are_taken(chunks in prop::collection::vec(any_chunk(), 0..6)) {
            shape(&pieces(&chunks));
            let parts: Vec<Value> = chunks.iter().map(|it| parts(json!([it]))).collect();
            shape(&pieces(&parts));
        }

        #[test]
        fn any_bytes_are_taken(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let whole = shape(&read(Box::new(Reading::new(tools())), [bytes.as_slice()]));
            prop_assert_eq!(shape(&read(Box::new(Reading::new(tools())), bytes.chunks(1))), whole);
        }
    }

    #[test]
    fn a_search_of_the_server_is_shown_and_its_parts_go_back_unchanged() {
        let used = json!({ "toolCall": { "id": "t1", "args": { "queries": ["q"] } }, "thoughtSignature": "s" });
        let grounding = json!({
            "webSearchQueries": ["the answer", "42"],
            "groundingChunks": [
                { "web": { "uri": "https://a.example/x", "title": "a.example" } },
                { "web": { "uri": "data:text/html,x", "title": "no page" } },
            ],
        });
        let pieces = pieces(&[
            parts(json!([used, { "text": "42" }])),
            json!({ "candidates": [{ "finishReason": "STOP", "groundingMetadata": grounding }] }),
        ]);
        assert_eq!(
            shape(&pieces),
            "text \"42 [1](https://a.example/x)\" | search \"the answer; 42\" = https://a.example/x | end Stop"
        );
        let opaque = pieces.iter().find_map(|it| match it {
            Piece::ThinkingDone { opaque } => Some(opaque.clone()),
            _ => None,
        });
        assert_eq!(opaque, Some(used));
    }
}
