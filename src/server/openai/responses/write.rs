//! Writes a flattened response as OpenAI's responses API does: as a stream of events, or as one object.

use serde_json::{Value, json};

use crate::{
    os::long_text::LongText,
    protocol::{Entry, codec::Identity, long_json::LongJson},
    server::{
        facade,
        flatten::{Failure, Flattener, OutputPart, StopReason},
        reader::{Encoded, StreamEncoder},
    },
};

/// Returns a whole answer as a `response` object.
pub fn object(identity: &Identity, parts: Vec<OutputPart<LongText>>, flat: &Flattener) -> LongJson {
    let items = parts.into_iter().enumerate();
    let items = items.map(|(at, part)| Item::completed(identity, at, part));
    whole(identity, items.collect(), flat)
}

fn whole(identity: &Identity, items: Vec<Item>, flat: &Flattener) -> LongJson {
    let (output, texts): (Vec<_>, Vec<_>) = items.into_iter().map(|it| (it.value, (it.text_at, it.text))).unzip();
    let whole = LongJson::from(response(identity, status(flat), output, Some(flat)));
    let texts = texts.into_iter().enumerate();
    texts.fold(whole, |it, (at, (place, text))| {
        it.with(&format!("/output/{at}{place}"), text)
    })
}

/// A finished item of `output`.
struct Item {
    /// The item without its text.
    value: Value,
    text: LongText,
    /// JSON pointer of the text in the item.
    text_at: &'static str,
}

impl Item {
    fn completed(identity: &Identity, at: usize, part: OutputPart<LongText>) -> Self {
        let (empty, text) = part.apart();
        let text_at = match empty {
            OutputPart::Content(_) => "/content/0/text",
            OutputPart::Reasoning(_) => "/summary/0/text",
        };
        Self {
            value: item(&item_id(identity, at, &empty), empty, "completed"),
            text,
            text_at,
        }
    }
}

/// Status of the object, and the name of a stream's last event after `response.`.
fn status(flat: &Flattener) -> &'static str {
    match (&flat.failure, flat.stop_reason()) {
        (Some(_), _) => "failed",
        (None, StopReason::End) => "completed",
        (None, StopReason::Length | StopReason::Refusal) => "incomplete",
    }
}

fn response(identity: &Identity, status: &str, output: Vec<Value>, flat: Option<&Flattener>) -> Value {
    let reason = flat.and_then(|it| match it.stop_reason() {
        StopReason::End => None,
        StopReason::Length => Some("max_output_tokens"),
        StopReason::Refusal => Some("content_filter"),
    });
    let usage = flat.map(|it| {
        let usage = it.usage();
        json!({
            "input_tokens": usage.prompt_tokens,
            "input_tokens_details": { "cached_tokens": 0, "cache_write_tokens": 0 },
            "output_tokens": usage.completion_tokens,
            "output_tokens_details": { "reasoning_tokens": 0 },
            "total_tokens": usage.total_tokens,
        })
    });
    json!({
        "id": facade::id("resp_", identity),
        "object": "response",
        "created_at": identity.created_ms / 1000,
        "status": status,
        "background": false,
        "error": flat.and_then(|it| it.failure.as_ref()).map(error),
        "incomplete_details": reason.map(|it| json!({ "reason": it })),
        "instructions": null,
        "max_output_tokens": null,
        "metadata": {},
        "model": identity.model,
        "output": output,
        "parallel_tool_calls": true,
        "previous_response_id": null,
        "reasoning": { "effort": null, "summary": null },
        "store": false,
        "temperature": null,
        "text": { "format": { "type": "text" } },
        "tool_choice": "auto",
        "tools": [],
        "top_p": null,
        "truncation": "disabled",
        "usage": usage,
        "user": null,
    })
}

fn error(failure: &Failure) -> Value {
    let code = match failure.code.as_str() {
        "LLM_RATE_LIMITED" => "rate_limit_exceeded",
        "LLM_CONTEXT_LENGTH" => "context_length_exceeded",
        _ => "server_error",
    };
    json!({ "code": code, "message": failure.sentence() })
}

fn item_id<T>(identity: &Identity, at: usize, part: &OutputPart<T>) -> String {
    let prefix = match part {
        OutputPart::Content(_) => "msg_",
        OutputPart::Reasoning(_) => "rs_",
    };
    format!("{}_{at}", facade::id(prefix, identity))
}

/// Returns an item of `output`; without its content while it is `in_progress`.
fn item(id: &str, part: OutputPart, status: &str) -> Value {
    let is_done = status != "in_progress";
    match part {
        OutputPart::Content(text) => {
            let content = is_done.then(|| content_part(text));
            json!({ "id": id, "type": "message", "status": status, "role": "assistant", "content": list(content) })
        }
        OutputPart::Reasoning(text) => {
            let summary = is_done.then(|| summary_part(text));
            json!({ "id": id, "type": "reasoning", "status": status, "summary": list(summary) })
        }
    }
}

fn list(one: Option<Value>) -> Value {
    one.into_iter().collect()
}

fn content_part(text: String) -> Value {
    json!({ "type": "output_text", "text": text, "annotations": [], "logprobs": [] })
}

fn summary_part(text: String) -> Value {
    json!({ "type": "summary_text", "text": text })
}

/// Encodes a response as a stream of events with ascending `sequence_number`.
pub struct EventEncoder {
    identity: Identity,
    flat: Flattener,
    /// Number of events written.
    sequence: u64,
    output: Vec<Item>,
    /// Item that is being written.
    open: Option<OutputPart<LongText>>,
    is_done: bool,
}

impl EventEncoder {
    pub fn new(identity: &Identity) -> Self {
        Self {
            identity: identity.clone(),
            flat: Flattener::default(),
            sequence: 0,
            output: Vec::new(),
            open: None,
            is_done: false,
        }
    }

    fn event(&mut self, name: &str, members: impl Into<LongJson>, out: &mut Encoded) {
        let name = format!("response.{name}");
        let sequence = self.sequence;
        self.sequence += 1;
        let members = members.into().map("", |mut it| {
            it["type"] = name.as_str().into();
            it["sequence_number"] = sequence.into();
            it
        });
        out.push_str(&format!("event: {name}\ndata: "));
        out.push_long(&members.to_text());
        out.push_str("\n\n");
    }

    fn begin(&mut self, out: &mut Encoded) {
        if self.sequence > 0 {
            return;
        }
        for name in ["created", "in_progress"] {
            let response = response(&self.identity, "in_progress", Vec::new(), None);
            self.event(name, json!({ "response": response }), out);
        }
    }

    /// Writes a piece, in a new item if the open one is of the other sort.
    fn piece(&mut self, piece: OutputPart, out: &mut Encoded) {
        let is_same = matches!(
            (&self.open, &piece),
            (Some(OutputPart::Content(_)), OutputPart::Content(_))
                | (Some(OutputPart::Reasoning(_)), OutputPart::Reasoning(_))
        );
        if !is_same {
            self.close(out);
            self.open_item(&piece, out);
        }
        let (name, text) = match &piece {
            OutputPart::Content(text) => ("output_text.delta", text),
            OutputPart::Reasoning(text) => ("reasoning_summary_text.delta", text),
        };
        let mut members = self.place(&piece);
        members["delta"] = text.as_str().into();
        self.event(name, members, out);
        match (&mut self.open, piece) {
            (Some(OutputPart::Content(whole)), OutputPart::Content(more))
            | (Some(OutputPart::Reasoning(whole)), OutputPart::Reasoning(more)) => whole.push_str(&more),
            (_, OutputPart::Content(text)) => self.open = Some(OutputPart::Content(text.into())),
            (_, OutputPart::Reasoning(text)) => self.open = Some(OutputPart::Reasoning(text.into())),
        }
    }

    /// Members that say which part of the output an event is about.
    fn place<T>(&self, part: &OutputPart<T>) -> Value {
        let at = self.output.len();
        let id = item_id(&self.identity, at, part);
        match part {
            OutputPart::Content(_) => {
                json!({ "item_id": id, "output_index": at, "content_index": 0, "logprobs": [] })
            }
            OutputPart::Reasoning(_) => json!({ "item_id": id, "output_index": at, "summary_index": 0 }),
        }
    }

    fn open_item(&mut self, part: &OutputPart, out: &mut Encoded) {
        let at = self.output.len();
        let (name, first, empty) = match part {
            OutputPart::Content(_) => (
                "content_part",
                content_part(String::new()),
                OutputPart::Content(String::new()),
            ),
            OutputPart::Reasoning(_) => {
                let part = summary_part(String::new());
                ("reasoning_summary_part", part, OutputPart::Reasoning(String::new()))
            }
        };
        let item = item(&item_id(&self.identity, at, part), empty, "in_progress");
        self.event("output_item.added", json!({ "output_index": at, "item": item }), out);
        let mut members = self.place(part);
        members["part"] = first;
        self.event(&format!("{name}.added"), members, out);
    }

    fn close(&mut self, out: &mut Encoded) {
        let Some(part) = self.open.take() else { return };
        let at = self.output.len();
        let place = self.place(&part);
        let (text_name, part_name, empty) = match &part {
            OutputPart::Content(_) => ("output_text", "content_part", content_part(String::new())),
            OutputPart::Reasoning(_) => {
                let empty = summary_part(String::new());
                ("reasoning_summary_text", "reasoning_summary_part", empty)
            }
        };
        let item = Item::completed(&self.identity, at, part);
        let mut members = place.clone();
        members["text"] = "".into();
        let members = LongJson::from(members).with("/text", item.text.clone());
        self.event(&format!("{text_name}.done"), members, out);
        let mut members = place;
        members["part"] = empty;
        let members = LongJson::from(members).with("/part/text", item.text.clone());
        self.event(&format!("{part_name}.done"), members, out);
        let members = LongJson::from(json!({ "output_index": at, "item": item.value }));
        let members = members.with(&format!("/item{}", item.text_at), item.text.clone());
        self.event("output_item.done", members, out);
        self.output.push(item);
    }
}

impl StreamEncoder for EventEncoder {
    fn write(&mut self, entry: &Entry) -> Encoded {
        let mut out = Encoded::default();
        self.begin(&mut out);
        for piece in self.flat.push(entry) {
            self.piece(piece, &mut out);
        }
        out
    }

    fn finish(&mut self) -> Encoded {
        let mut out = Encoded::default();
        if std::mem::replace(&mut self.is_done, true) {
            return out;
        }
        self.begin(&mut out);
        self.close(&mut out);
        let status = status(&self.flat);
        let whole = whole(&self.identity, std::mem::take(&mut self.output), &self.flat);
        let whole = whole.map("/response", |it| json!({ "response": it }));
        self.event(status, whole, &mut out);
        out
    }
}
