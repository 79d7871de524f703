//! The encoder of event streams: writes what the protocol's own text allows, whatever the source did.
//!
//! What is said is decided by [`Strict`](super::Strict); here it is put into words. Dialect B has what A has, and beside
//! it the flat members of the specification's example, for readers that were built from that example alone.

use serde_json::{Map, Value};

use super::{
    Identity,
    payload::{cut, weigh},
    record,
    time::iso,
};
use crate::protocol::{Dialect, Done, Event, Response, Status, Usage, long_json::LongJson};

/// A comment that keeps a silent stream alive.
pub const PING: &str = ": ping\n\n";

/// The mark at the end of a stream in dialect B.
pub const END: &str = "data: [DONE]\n\n";

/// Formats a strict event as server-sent event; in dialect B the end mark follows the last one.
pub fn frame(dialect: Dialect, event: &Event) -> String {
    let about = |document: &crate::protocol::DocumentId| members([("documentId", document.as_str().into())]);
    let (name, mut data) = match event {
        Event::ResponseStart(start) => {
            let mut whole = object(record::parts(event).1);
            let capabilities = whole.shift_remove("capabilities");
            whole.shift_remove("extra");
            whole.insert("status".into(), Status::Streaming.as_str().into());
            whole.extend(capabilities.map(|it| ("capabilities".to_owned(), it)));
            add(&mut whole, &start.extra);
            ("response_start", wrapped(dialect, "response", whole))
        }
        Event::DocumentStart(_) => {
            let mut document = object(record::parts(event).1);
            document.entry("metadata").or_insert_with(|| Map::new().into());
            if dialect == Dialect::Data {
                flatten(&mut document);
            }
            ("document_start", wrapped(dialect, "document", document))
        }
        Event::ContentDelta { document, delta } => {
            let mut data = about(document);
            data.insert("delta".into(), delta.as_str().into());
            ("content_delta", data)
        }
        Event::MetadataDelta {
            document,
            metadata,
            append,
        } => {
            let mut data = about(document);
            if !metadata.is_empty() {
                data.insert("metadata".into(), metadata.clone().into());
            }
            if !append.is_empty() {
                let append = append.iter().map(|(name, text)| (name.clone(), text.as_str().into()));
                data.insert("append".into(), append.collect::<Map<_, _>>().into());
            }
            ("metadata_delta", data)
        }
        Event::ThinkingDelta { delta } => ("thinking_delta", members([("delta", delta.as_str().into())])),
        Event::UserMessage(_) | Event::Notice(_) | Event::Title(_) | Event::Branch(_) => {
            let (name, data) = record::parts(event);
            return any(dialect, &name, data);
        }
        Event::Progress(_) | Event::Told(_) | Event::Said { .. } => return String::new(),
        Event::Done(done) => {
            let mut text = written(dialect, "done", &mut last(done));
            if dialect == Dialect::Data {
                text.push_str(END);
            }
            return text;
        }
        Event::Unknown { name, data } => return any(dialect, name, data.clone()),
        Event::ToolCallStart { .. }
        | Event::ToolCallArguments { .. }
        | Event::ToolResult { .. }
        | Event::DocumentEnd { .. }
        | Event::DocumentUpdate { .. } => {
            let (name, data) = record::parts(event);
            let mut data = object(data);
            let is_optional = |name: &str| matches!(name, "toolCallId" | "duration_ms" | "finalContent");
            data.retain(|name, value| !(value.is_null() && is_optional(name)));
            if dialect == Dialect::Data && name == "tool_result" {
                flatten_result(&mut data);
            }
            return written(dialect, &name, &mut data);
        }
    };
    written(dialect, name, &mut data)
}

/// Members of a document that are never metadata.
const FRAME: [&str; 8] = [
    "id",
    "type",
    "sequence",
    "content",
    "metadata",
    "documentId",
    "document_id",
    "documentType",
];

/// Copies the metadata of a document's start beside it. A path has the example's name, too. Members that would make the
/// line much longer are left out.
fn flatten(document: &mut Map<String, Value>) {
    const LARGEST_BYTES: usize = 64 << 10;
    let Some(Value::Object(metadata)) = document.get("metadata").cloned() else {
        return;
    };
    let path = metadata.get("filePath").cloned().map(|it| ("path".to_owned(), it));
    for (name, value) in metadata.into_iter().chain(path) {
        let is_plain = !FRAME.contains(&name.as_str()) && !value.is_null();
        if is_plain && weigh(&value) <= LARGEST_BYTES {
            document.entry(name).or_insert(value);
        }
    }
}

/// Makes the result of a call the text that the example has. The status of a failure, and data that is no text, stand
/// beside it, so that nothing is lost.
fn flatten_result(data: &mut Map<String, Value>) {
    const TEXT_BYTES: usize = 128 << 10;
    let Some(Value::Object(result)) = data.get("result") else {
        return;
    };
    let (Some(Value::String(status)), Some(said), 2) = (result.get("status"), result.get("data"), result.len()) else {
        return;
    };
    let (status, said) = (status.clone(), said.clone());
    let text = match &said {
        Value::String(text) => text.clone(),
        Value::Null => String::new(),
        other => cut(&other.to_string(), TEXT_BYTES).to_owned(),
    };
    data.insert("result".into(), text.into());
    if status != "success" {
        data.insert("status".into(), status.into());
    }
    if !said.is_string() {
        data.insert("data".into(), said);
    }
}

/// Returns the members of a `done` event.
fn last(done: &Done) -> Map<String, Value> {
    let mut stored = object(record::parts(&Event::Done(done.clone())).1);
    let mut metadata = Map::new();
    for name in ["duration_ms", "toolCallCount", "turnCount", "finishReason"] {
        metadata.extend(stored.shift_remove(name).map(|it| (name.to_owned(), it)));
    }
    add(&mut metadata, &done.extra_metadata);
    for name in ["usage", "extraUsage", "extra", "extraMetadata"] {
        stored.shift_remove(name);
    }
    let mut data = members([("usage", usage(done.usage.unwrap_or_default(), &done.extra_usage))]);
    data.append(&mut stored);
    data.insert("metadata".into(), metadata.into());
    add(&mut data, &done.extra);
    data
}

/// In dialect B, puts the members into a member `name`.
fn wrapped(dialect: Dialect, name: &str, whole: Map<String, Value>) -> Map<String, Value> {
    match dialect {
        Dialect::Named => whole,
        Dialect::Data => members([(name, whole.into())]),
    }
}

/// One event of the protocol.
fn written(dialect: Dialect, name: &str, data: &mut Map<String, Value>) -> String {
    let mut out = String::new();
    match dialect {
        Dialect::Named => line(&mut out, "event", name),
        Dialect::Data => {
            data.shift_insert(0, "type".to_owned(), name.into());
        }
    }
    line(&mut out, "data", &Value::Object(std::mem::take(data)).to_string());
    out.push('\n');
    out
}

/// An event that the protocol does not know, under a name that may be anything.
fn any(dialect: Dialect, name: &str, data: Value) -> String {
    let mut data = match data {
        Value::Object(members) => members,
        other => members([("data", other)]),
    };
    let is_plain = !name.is_empty() && name != "message" && name.trim() == name && !name.contains(char::is_control);
    if dialect == Dialect::Named && is_plain {
        return written(dialect, name, &mut data);
    }
    // A member called `type` cannot stand beside the name.
    if data.contains_key("type") {
        data = members([("data", data.into())]);
    }
    data.shift_insert(0, "type".to_owned(), name.into());
    let mut out = String::new();
    line(&mut out, "data", &Value::Object(data).to_string());
    out.push('\n');
    out
}

fn line(out: &mut String, field: &str, value: &str) {
    debug_assert!(
        !value.contains(['\n', '\r']),
        "JSON and plain names have no line breaks"
    );
    out.push_str(field);
    out.push_str(": ");
    out.push_str(value);
    out.push('\n');
}

/// Formats the JSON answer of a strict writer. Absent members come from the identity.
pub fn answer(response: &Response, identity: &Identity) -> LongJson {
    let mut whole = head(
        identity,
        response.origin.id.as_ref().map(crate::protocol::ResponseId::as_str),
        response.origin.conversation_id.as_ref(),
        response.model.as_deref(),
        response.mode,
        response.origin.created.as_deref(),
    );
    response.to_long_json().map("", |it| {
        if let Value::Object(members) = it {
            add(&mut whole, &members);
        }
        whole.into()
    })
}

/// The members of a response that are known at its start.
fn head(
    identity: &Identity,
    id: Option<&str>,
    conversation_id: Option<&crate::protocol::ConversationId>,
    model: Option<&str>,
    mode: Option<crate::protocol::Mode>,
    created: Option<&str>,
) -> Map<String, Value> {
    let mut whole = members([("id", id.unwrap_or(identity.id.as_str()).into())]);
    if let Some(conversation) = conversation_id.or(identity.conversation_id.as_ref()) {
        whole.insert("conversationId".into(), conversation.as_str().into());
    }
    // Nobody need know it, but it has to be said: who asks for no model may be answered by a recording that names none.
    let mut models = [model, Some(identity.model.as_str())].into_iter().flatten();
    let model = models.find(|it| !it.is_empty()).unwrap_or("unknown");
    whole.insert("model".into(), model.into());
    whole.insert("mode".into(), mode.unwrap_or(identity.mode).as_str().into());
    let created = created.map_or_else(|| iso(identity.created_ms), str::to_owned);
    whole.insert("created".into(), created.into());
    whole
}

fn usage(usage: Usage, extra: &Map<String, Value>) -> Value {
    let mut whole = members([
        ("promptTokens", usage.prompt_tokens.into()),
        ("completionTokens", usage.completion_tokens.into()),
        ("totalTokens", usage.total_tokens.into()),
    ]);
    add(&mut whole, extra);
    whole.into()
}

/// Returns the members of an object; none of any other value.
fn object(data: Value) -> Map<String, Value> {
    match data {
        Value::Object(members) => members,
        _ => Map::new(),
    }
}

fn members<const N: usize>(pairs: [(&str, Value); N]) -> Map<String, Value> {
    pairs
        .into_iter()
        .map(|(name, value)| (name.to_owned(), value))
        .collect()
}

/// Adds members that are missing.
fn add(whole: &mut Map<String, Value>, extra: &Map<String, Value>) {
    for (name, value) in extra {
        whole.entry(name.clone()).or_insert_with(|| value.clone());
    }
}
