//! From the lines of an Ollama's answer to pieces.
//!
//! Each line is an object with what is new; the last one is `done` and counts. Calls come whole, and an error is a line
//! like any other, with status 200 and perhaps without an end of line.

use serde_json::{Map, Value};

use crate::models::{
    EndReason, Failure, FailureKind, Piece, Tokens,
    body::Read,
    lenient::{self, AnswerState, BAD_JSON, CALLS_LIMIT, whole_number},
    objects::{Objects, ScannedPart},
    thought::Thought,
};

const WHAT: &str = "Ollama's chat";

/// Reads one answer.
#[derive(Default)]
pub struct Reading {
    objects: Objects,
    answer: AnswerState,
    has_message: bool,
    /// All thinking so far; it is sent back as one text.
    thinking: Thought,
    calls: Vec<Called>,
    junk: String,
}

struct Called {
    id: String,
    name: String,
    arguments: Result<Map<String, Value>, String>,
}

impl Read for Reading {
    fn push(&mut self, chunk: &[u8]) -> Vec<Piece> {
        let mut out = Vec::new();
        for found in self.objects.push(chunk) {
            self.found(found, &mut out);
        }
        out
    }

    fn finish(mut self: Box<Self>) -> Vec<Piece> {
        let mut out = Vec::new();
        if let Some(found) = self.objects.finish() {
            self.found(found, &mut out);
        }
        let failure = lenient::broken_off(self.has_message, &self.answer, WHAT).saying(&self.junk);
        self.answer.fail(failure, &mut out);
        out
    }

    fn cut(mut self: Box<Self>, failure: Failure) -> Vec<Piece> {
        let mut out = Vec::new();
        self.answer.fail(failure, &mut out);
        out
    }

    fn is_finished(&self) -> bool {
        self.answer.is_over
    }
}

impl Reading {
    fn found(&mut self, found: ScannedPart, out: &mut Vec<Piece>) {
        match found {
            _ if self.answer.is_over => {}
            ScannedPart::Object(members) => self.line(&members, out),
            ScannedPart::Junk(text) => {
                if self.junk.is_empty() {
                    self.junk = text;
                }
                self.answer
                    .notice(BAD_JSON, "a line of the answer is not JSON and was skipped", out);
            }
            ScannedPart::TooLong => {
                let message = "a line of the answer is longer than is read";
                self.answer.fail(Failure::new(FailureKind::Oversized, message), out);
            }
            ScannedPart::NoObject => self.answer.fail(lenient::no_object(), out),
        }
    }

    fn line(&mut self, line: &Map<String, Value>, out: &mut Vec<Piece>) {
        if let Some(error) = lenient::error_of(line) {
            return self.answer.fail(Failure::from_server(None, error), out);
        }
        if line.contains_key("choices") {
            let message = "this address speaks OpenAI chat completions, not Ollama's own chat";
            return self.answer.fail(Failure::new(FailureKind::Garbled, message), out);
        }
        let text = |name: &str| line.get(name).and_then(Value::as_str).filter(|it| !it.is_empty());
        self.answer.start(None, line.get("model"), out);
        if let Some(message) = line.get("message").and_then(Value::as_object) {
            self.has_message = true;
            self.message(message, out);
        }
        if line.get("done").and_then(Value::as_bool) == Some(true) && !self.answer.is_over {
            self.end(line, text("done_reason").unwrap_or("stop"), out);
        }
    }

    fn message(&mut self, message: &Map<String, Value>, out: &mut Vec<Piece>) {
        let text = |name: &str| message.get(name).and_then(Value::as_str).unwrap_or_default();
        let (thinking, content) = (text("thinking"), text("content"));
        if !self.answer.takes(thinking.len() + content.len(), out) {
            return;
        }
        if !thinking.is_empty() {
            self.thinking.push(thinking);
            out.push(Piece::Thinking(thinking.to_owned()));
        }
        if !content.is_empty() {
            out.push(Piece::Text(content.to_owned()));
        }
        match message.get("tool_calls") {
            Some(Value::Array(calls)) => {
                for call in calls.iter().filter_map(Value::as_object) {
                    self.call(call, out);
                }
            }
            Some(Value::Object(call)) => self.call(call, out),
            Some(Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_)) | None => {}
        }
    }

    fn call(&mut self, call: &Map<String, Value>, out: &mut Vec<Piece>) {
        if self.answer.is_over {
            return;
        }
        let function = call.get("function").and_then(Value::as_object).unwrap_or(call);
        let text = |it: Option<&Value>| it.and_then(Value::as_str).unwrap_or_default().to_owned();
        let (id, name) = (text(call.get("id")), text(function.get("name")));
        if name.is_empty() {
            self.answer
                .notice("nameless-call", "a call without a name was left out", out);
            return;
        }
        if self.calls.len() == CALLS_LIMIT {
            self.answer.notice_call_limit(out);
            return;
        }
        // An object, but proxies and old versions write text.
        let fragment = match function.get("arguments") {
            Some(Value::String(text)) => text.clone(),
            Some(whole @ (Value::Object(_) | Value::Array(_))) => whole.to_string(),
            Some(Value::Null | Value::Bool(_) | Value::Number(_)) | None => String::new(),
        };
        if !self.answer.takes(fragment.len(), out) {
            return;
        }
        let slot = self.calls.len();
        out.push(Piece::call_start(slot, &id, &name));
        if !fragment.is_empty() {
            out.push(Piece::call_arguments(slot, &fragment));
        }
        self.calls.push(Called {
            id,
            name,
            arguments: lenient::arguments(fragment),
        });
    }

    fn end(&mut self, line: &Map<String, Value>, word: &str, out: &mut Vec<Piece>) {
        let count = |name: &str| line.get(name).and_then(whole_number).unwrap_or(0);
        let tokens = Tokens {
            prompt: count("prompt_eval_count"),
            completion: count("eval_count"),
            ..Tokens::default()
        };
        self.answer.count(tokens, out);
        if let Some(thinking) = self.thinking.take().filter(|it| !it.is_empty()) {
            out.push(Piece::ThinkingDone {
                opaque: serde_json::json!({ "thinking": thinking }),
            });
        }
        let has_calls = !self.calls.is_empty();
        for (slot, call) in std::mem::take(&mut self.calls).into_iter().enumerate() {
            out.push(Piece::CallDone {
                slot,
                id: call.id,
                name: call.name,
                arguments: call.arguments,
                opaque: None,
            });
        }
        let reason = match word {
            "length" => EndReason::Length,
            "stop" if has_calls => EndReason::ToolUse,
            "stop" => EndReason::Stop,
            // `load` and `unload` end a request that asked for nothing.
            other => EndReason::Other(other.to_owned()),
        };
        self.answer.end(reason, out);
    }
}

#[cfg(test)]
mod tests {
    use pretty_assertions::assert_eq;
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;
    use crate::models::conformance::{read, recorded, shape};

    fn check(body: &str) -> String {
        shape(&read(Box::new(Reading::default()), [body.as_bytes()]))
    }

    #[test]
    fn odd_lines_are_read() {
        let hi = r#"{"model":"q","message":{"role":"assistant","content":"hi"},"done":false}"#;
        let done = r#"{"done":true,"done_reason":"stop"}"#;
        let call = |arguments: &str| {
            format!(
                r#"{{"message":{{"tool_calls":[{{"id":"o1","function":{{"index":0,"name":"ls","arguments":{arguments}}}}}]}}}}"#
            )
        };
        for (name, body, want) in [
            ("lines", format!("{hi}\n{done}\n"), r#"text "hi" | end Stop"#),
            (
                "an old version's end",
                format!("{hi}\n{{\"done\":true}}"),
                r#"text "hi" | end Stop"#,
            ),
            (
                "one line for all",
                r#"{"message":{"content":"hi"},"done":true,"done_reason":"stop","prompt_eval_count":3,"eval_count":2}"#
                    .to_owned(),
                r#"text "hi" | usage 3(0)+2 | end Stop"#,
            ),
            (
                "a line that is no JSON",
                format!("{hi}\nBad\n{done}"),
                r#"text "hi" | end Stop"#,
            ),
            (
                "what comes after the end",
                format!("{hi}\n{done}\n{hi}\n"),
                r#"text "hi" | end Stop"#,
            ),
            (
                "arguments as text",
                format!("{}\n{done}", call(r#""{\"a\":1}""#)),
                r#"call 0 ls {"a":1} = {"a":1} | end ToolUse"#,
            ),
            (
                "arguments that are a list",
                format!("{}\n{done}", call("[1]")),
                "call 0 ls [1] broken | end ToolUse",
            ),
            (
                "an error in the middle, without end of line",
                format!("{hi}\n{{\"error\":\"llama runner process has terminated\"}}"),
                r#"text "hi" | error LLM_BAD_RESPONSE"#,
            ),
            (
                "too long",
                "{\"error\":\"the input length exceeds the context length\"}".to_owned(),
                "error LLM_CONTEXT_LENGTH",
            ),
            (
                "no such model",
                "{\"error\":\"model 'q' not found, try pulling it first\"}".to_owned(),
                "error LLM_UNAVAILABLE",
            ),
            (
                "only loaded",
                r#"{"message":{"content":""},"done":true,"done_reason":"load"}"#.to_owned(),
                r#"end Other("load")"#,
            ),
            ("cut", hi.to_owned(), r#"text "hi" | error STREAM_INTERRUPTED"#),
            (
                "chat completions",
                r#"{"choices":[]}"#.to_owned(),
                "error LLM_BAD_RESPONSE",
            ),
            ("a page", "<html>".to_owned(), "error LLM_BAD_RESPONSE"),
            ("nothing", String::new(), "error STREAM_INTERRUPTED"),
        ] {
            assert_eq!(check(&body), want, "{name}");
        }
    }

    #[test]
    fn recordings_are_read_wherever_they_are_cut() {
        let cases = [
            (
                "aimock-text",
                r#"text "Hello from aimock, a deterministic server." | end Stop"#,
            ),
            (
                "aimock-tools",
                r#"text "Let me look." | call 0 grep {"pattern":"TODO","glob":"*.py"} = {"pattern":"TODO","glob":"*.py"} | call 1 read_file {"path":"src/main.rs"} = {"path":"src/main.rs"} | end ToolUse"#,
            ),
            ("written-error", r#"text "Hel" | error LLM_BAD_RESPONSE"#),
            (
                "written-thinking",
                r#"thinking "Let me look." | text "I look." | call 0 read_file {"target_file":"a.rs"} = {"target_file":"a.rs"} | usage 80(0)+20 | end ToolUse"#,
            ),
        ];
        recorded(
            "ollama",
            || Box::new(Reading::default()),
            &cases.map(|(name, want)| (name, want.to_owned())),
        );
    }

    #[test]
    fn what_was_thought_goes_back_in_one() {
        let line = |it: Value| format!("{it}\n");
        let body = line(json!({ "message": { "thinking": "Let " } }))
            + &line(json!({ "message": { "thinking": "me see." } }))
            + &line(json!({ "message": { "content": "42" }, "done": true }));
        let pieces = read(Box::new(Reading::default()), [body.as_bytes()]);
        let opaque = pieces.iter().find_map(|it| match it {
            Piece::ThinkingDone { opaque } => Some(opaque.clone()),
            _ => None,
        });
        assert_eq!(opaque, Some(json!({ "thinking": "Let me see." })));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(128))]

        #[test]
        fn any_bytes_are_taken(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            read(Box::new(Reading::default()), [bytes.as_slice()]);
        }
    }
}
