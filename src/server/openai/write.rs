//! Writes a flattened response as OpenAI's servers do: as chunks, or as one object.

use serde_json::{Value, json};

use crate::{
    os::long_text::LongText,
    protocol::{Entry, Usage, codec::Identity, long_json::LongJson},
    server::{
        facade,
        flatten::{Flattener, OutputPart, StopReason},
        reader::{Encoded, StreamEncoder},
        refusal,
    },
};

/// Returns a whole answer as a `chat.completion` object.
pub fn object(identity: &Identity, parts: Vec<OutputPart<LongText>>, flat: &Flattener) -> LongJson {
    let (mut content, mut reasoning) = (LongText::new(), LongText::new());
    for part in parts {
        let (whole, text) = match part {
            OutputPart::Content(text) => (&mut content, text),
            OutputPart::Reasoning(text) => (&mut reasoning, text),
        };
        if whole.is_empty() {
            *whole = text;
        } else {
            text.parts().for_each(|it| whole.push_str(it));
        }
    }
    let mut message = json!({ "role": "assistant", "content": "", "refusal": null });
    if !reasoning.is_empty() {
        message["reasoning_content"] = "".into();
    }
    let whole = json!({
        "id": name(identity),
        "object": "chat.completion",
        "created": identity.created_ms / 1000,
        "model": identity.model,
        "choices": [{ "index": 0, "message": message, "logprobs": null, "finish_reason": finish_reason(flat) }],
        "usage": usage(flat.usage()),
    });
    LongJson::from(whole)
        .with("/choices/0/message/content", content)
        .with("/choices/0/message/reasoning_content", reasoning)
}

fn name(identity: &Identity) -> String {
    facade::id("chatcmpl-", identity)
}

fn finish_reason(flat: &Flattener) -> &'static str {
    match flat.stop_reason() {
        StopReason::End => "stop",
        StopReason::Length => "length",
        StopReason::Refusal => "content_filter",
    }
}

fn usage(usage: Usage) -> Value {
    json!({
        "prompt_tokens": usage.prompt_tokens,
        "completion_tokens": usage.completion_tokens,
        "total_tokens": usage.total_tokens,
    })
}

/// Encodes a response as a stream of `chat.completion.chunk` objects.
pub struct ChunkEncoder {
    identity: Identity,
    with_usage: bool,
    flat: Flattener,
    has_begun: bool,
    is_done: bool,
}

impl ChunkEncoder {
    /// Creates an encoder. With `with_usage` the last chunk carries the token usage.
    pub fn new(identity: &Identity, with_usage: bool) -> Self {
        Self {
            identity: identity.clone(),
            with_usage,
            flat: Flattener::default(),
            has_begun: false,
            is_done: false,
        }
    }

    fn chunk(&self, choices: &Value, usage: Option<Value>) -> String {
        let mut chunk = json!({
            "id": name(&self.identity),
            "object": "chat.completion.chunk",
            "created": self.identity.created_ms / 1000,
            "model": self.identity.model,
            "choices": choices,
        });
        if self.with_usage {
            chunk["usage"] = usage.unwrap_or_default();
        }
        data(&chunk)
    }

    fn delta(&self, delta: &Value, finish_reason: Option<&str>) -> String {
        let choice = json!([{ "index": 0, "delta": delta, "logprobs": null, "finish_reason": finish_reason }]);
        self.chunk(&choice, None)
    }

    fn begin(&mut self) -> String {
        if std::mem::replace(&mut self.has_begun, true) {
            return String::new();
        }
        self.delta(&json!({ "role": "assistant", "content": "" }), None)
    }
}

fn data(value: &Value) -> String {
    format!("data: {value}\n\n")
}

impl StreamEncoder for ChunkEncoder {
    fn write(&mut self, entry: &Entry) -> Encoded {
        let mut out = self.begin();
        for piece in self.flat.push(entry) {
            out.push_str(&match piece {
                OutputPart::Content(text) => self.delta(&json!({ "content": text }), None),
                OutputPart::Reasoning(text) => self.delta(&json!({ "reasoning_content": text }), None),
            });
        }
        out.into()
    }

    fn finish(&mut self) -> Encoded {
        if std::mem::replace(&mut self.is_done, true) {
            return Encoded::default();
        }
        let mut out = self.begin();
        match &self.flat.failure {
            // Clients raise it as an exception; the text before it has been sent.
            Some(failure) => out.push_str(&data(&refusal::openai(&failure.refusal()))),
            None => {
                out.push_str(&self.delta(&json!({}), Some(finish_reason(&self.flat))));
                if self.with_usage {
                    out.push_str(&self.chunk(&json!([]), Some(usage(self.flat.usage()))));
                }
            }
        }
        out.push_str("data: [DONE]\n\n");
        out.into()
    }
}
