//! Writes a flattened response as Anthropic's servers do: as a stream of events, or as one object.

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

/// Returns a whole answer as a `message` object; with thinking blocks if the client asked for them.
pub fn object(
    identity: &Identity,
    parts: Vec<OutputPart<LongText>>,
    flat: &Flattener,
    with_thinking: bool,
) -> LongJson {
    // Texts with nothing but thinking between them are one.
    let mut wanted: Vec<OutputPart<LongText>> = Vec::new();
    for part in parts {
        match (wanted.last_mut(), part) {
            (_, OutputPart::Reasoning(_)) if !with_thinking => {}
            (Some(OutputPart::Content(text)), OutputPart::Content(more)) => {
                more.parts().for_each(|it| text.push_str(it));
            }
            (_, part) => wanted.push(part),
        }
    }
    let (mut blocks, mut texts) = (Vec::new(), Vec::new());
    for (at, part) in wanted.into_iter().enumerate() {
        let (empty, text) = part.apart();
        let member = match empty {
            OutputPart::Content(_) => "text",
            OutputPart::Reasoning(_) => "thinking",
        };
        texts.push((format!("/content/{at}/{member}"), text));
        blocks.push(block(empty));
    }
    let whole = LongJson::from(message(identity, blocks, Some(stop_reason(flat)), flat.usage()));
    texts
        .into_iter()
        .fold(whole, |it, (pointer, text)| it.with(&pointer, text))
}

fn message(identity: &Identity, content: Vec<Value>, stop_reason: Option<&str>, tokens: Usage) -> Value {
    json!({
        "id": facade::id("msg_", identity),
        "type": "message",
        "role": "assistant",
        "model": identity.model,
        "content": content,
        "stop_reason": stop_reason,
        "stop_sequence": null,
        "usage": usage(tokens),
    })
}

fn block(part: OutputPart) -> Value {
    match part {
        OutputPart::Content(text) => json!({ "type": "text", "text": text, "citations": null }),
        OutputPart::Reasoning(text) => json!({ "type": "thinking", "thinking": text, "signature": "" }),
    }
}

fn stop_reason(flat: &Flattener) -> &'static str {
    match flat.stop_reason() {
        StopReason::End => "end_turn",
        StopReason::Length => "max_tokens",
        StopReason::Refusal => "refusal",
    }
}

fn usage(usage: Usage) -> Value {
    json!({
        "input_tokens": usage.prompt_tokens,
        "cache_creation_input_tokens": 0,
        "cache_read_input_tokens": 0,
        "output_tokens": usage.completion_tokens,
    })
}

/// Encodes a response as a stream of events.
pub struct EventEncoder {
    identity: Identity,
    with_thinking: bool,
    flat: Flattener,
    has_begun: bool,
    /// Number of finished blocks.
    blocks: usize,
    /// Sort of the open block: true for thinking.
    open: Option<bool>,
    is_done: bool,
}

fn event(name: &str, mut members: Value, out: &mut String) {
    members["type"] = name.into();
    out.push_str(&format!("event: {name}\ndata: {members}\n\n"));
}

impl EventEncoder {
    /// Creates an encoder; with thinking blocks if the client asked for them.
    pub fn new(identity: &Identity, with_thinking: bool) -> Self {
        Self {
            identity: identity.clone(),
            with_thinking,
            flat: Flattener::default(),
            has_begun: false,
            blocks: 0,
            open: None,
            is_done: false,
        }
    }

    fn begin(&mut self, out: &mut String) {
        if !std::mem::replace(&mut self.has_begun, true) {
            let message = message(&self.identity, Vec::new(), None, Usage::default());
            event("message_start", json!({ "message": message }), out);
        }
    }

    fn piece(&mut self, piece: OutputPart, out: &mut String) {
        let is_thinking = matches!(piece, OutputPart::Reasoning(_));
        if is_thinking && !self.with_thinking {
            return;
        }
        if self.open != Some(is_thinking) {
            self.close(out);
            let empty = match &piece {
                OutputPart::Content(_) => OutputPart::Content(String::new()),
                OutputPart::Reasoning(_) => OutputPart::Reasoning(String::new()),
            };
            let start = json!({ "index": self.blocks, "content_block": block(empty) });
            event("content_block_start", start, out);
            self.open = Some(is_thinking);
        }
        let delta = match piece {
            OutputPart::Content(text) => json!({ "type": "text_delta", "text": text }),
            OutputPart::Reasoning(text) => json!({ "type": "thinking_delta", "thinking": text }),
        };
        event(
            "content_block_delta",
            json!({ "index": self.blocks, "delta": delta }),
            out,
        );
    }

    fn close(&mut self, out: &mut String) {
        if self.open.take().is_some() {
            event("content_block_stop", json!({ "index": self.blocks }), out);
            self.blocks += 1;
        }
    }
}

impl StreamEncoder for EventEncoder {
    fn write(&mut self, entry: &Entry) -> Encoded {
        let mut out = String::new();
        self.begin(&mut out);
        for piece in self.flat.push(entry) {
            self.piece(piece, &mut out);
        }
        out.into()
    }

    fn finish(&mut self) -> Encoded {
        let mut out = String::new();
        if std::mem::replace(&mut self.is_done, true) {
            return out.into();
        }
        self.begin(&mut out);
        if let Some(failure) = &self.flat.failure {
            // Clients raise it as an exception; the text before it has been sent.
            event("error", refusal::anthropic(&failure.refusal()), &mut out);
            return out.into();
        }
        self.close(&mut out);
        let delta = json!({ "stop_reason": stop_reason(&self.flat), "stop_sequence": null });
        let usage = usage(self.flat.usage());
        event("message_delta", json!({ "delta": delta, "usage": usage }), &mut out);
        event("message_stop", json!({}), &mut out);
        out.into()
    }
}
