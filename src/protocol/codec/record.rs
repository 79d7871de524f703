//! Events as JSON without loss: a line of the journal, a line of `--output-format events`.
//!
//! Unlike the encoder this changes nothing, so that what is read back is what was written.

use serde::{Deserialize, Serialize, de::DeserializeOwned};
use serde_json::{Map, Value, json};

use crate::protocol::{
    DocumentId, DocumentStart, Done, Entry, Event, Kind, Message, Mode, Notice, Position, ResponseStart, Status, Title,
    Turn, Usage,
};

/// Why a line is no record.
#[derive(Debug, thiserror::Error)]
pub enum RecordError {
    #[error("the line is no JSON")]
    Json(#[from] serde_json::Error),
    #[error("the record lacks {member}, or it has the wrong type")]
    Member { member: &'static str },
    #[error("the data of a {event} cannot be read")]
    Data {
        event: String,
        source: Option<serde_json::Error>,
    },
}

/// The members of a record: position, turn, time, and the event. `None` for progress, which is never stored.
pub fn to_json(entry: &Entry) -> Option<Map<String, Value>> {
    if matches!(entry.event, Event::Progress(_)) {
        return None;
    }
    let (name, data) = parts(&entry.event);
    let mut record = Map::new();
    record.insert("n".into(), entry.position.0.into());
    record.insert("turn".into(), entry.turn.0.into());
    record.insert("at".into(), entry.at_ms.into());
    record.insert("event".into(), name.into());
    record.insert("data".into(), data);
    Some(record)
}

/// One line without its end.
pub fn to_line(entry: &Entry) -> Option<String> {
    to_json(entry).map(|it| Value::Object(it).to_string())
}

/// Members beside the record's own are ignored.
pub fn from_json(mut record: Map<String, Value>) -> Result<Entry, RecordError> {
    let number = |record: &Map<String, Value>, member: &'static str| {
        let number = record.get(member).and_then(Value::as_u64);
        number.ok_or(RecordError::Member { member })
    };
    let position = Position(number(&record, "n")?);
    let turn = u32::try_from(number(&record, "turn")?).map_err(|_| RecordError::Member { member: "turn" })?;
    let at_ms = number(&record, "at")?;
    let Some(Value::String(name)) = record.shift_remove("event") else {
        return Err(RecordError::Member { member: "event" });
    };
    let Some(data) = record.shift_remove("data") else {
        return Err(RecordError::Member { member: "data" });
    };
    Ok(Entry {
        position,
        turn: Turn(turn),
        at_ms,
        event: event(&name, data)?,
    })
}

pub fn from_line(line: &str) -> Result<Entry, RecordError> {
    match serde_json::from_str(line)? {
        Value::Object(record) => from_json(record),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
            Err(RecordError::Member { member: "event" })
        }
    }
}

/// An event's name and data.
pub fn parts(event: &Event) -> (String, Value) {
    let (name, data) = match event {
        Event::UserMessage(message) => ("user_message", json!({ "message": message })),
        Event::ResponseStart(start) => ("response_start", json(&StartData::of(start))),
        Event::DocumentStart(start) => (
            "document_start",
            json(&DocumentData {
                id: start.id.clone(),
                kind: start.kind.clone(),
                sequence: start.sequence,
                content: start.content.clone(),
                metadata: start.metadata.clone(),
            }),
        ),
        Event::ContentDelta { document, delta } => ("content_delta", json!({ "documentId": document, "delta": delta })),
        Event::ToolCallStart {
            document,
            tool_name,
            tool_call_id,
        } => (
            "tool_call_start",
            json!({ "documentId": document, "toolName": tool_name, "toolCallId": tool_call_id }),
        ),
        Event::ToolCallArguments { document, arguments } => (
            "tool_call_arguments",
            json!({ "documentId": document, "arguments": arguments }),
        ),
        Event::ToolResult {
            document,
            result,
            duration_ms,
        } => (
            "tool_result",
            json!({ "documentId": document, "result": result, "duration_ms": duration_ms }),
        ),
        Event::MetadataDelta {
            document,
            metadata,
            append,
        } => (
            "metadata_delta",
            json!({ "documentId": document, "metadata": metadata, "append": Appends::of(append) }),
        ),
        Event::ThinkingDelta { delta } => ("thinking_delta", json!({ "delta": delta })),
        Event::DocumentEnd {
            document,
            final_content,
            metadata,
        } => (
            "document_end",
            json!({ "documentId": document, "finalContent": final_content, "metadata": metadata }),
        ),
        Event::DocumentUpdate { document, metadata } => (
            "document_update",
            json!({ "documentId": document, "metadata": metadata }),
        ),
        Event::Notice(notice) => ("notice", json(notice)),
        Event::Progress(_) => ("progress", Value::Null),
        Event::Title(title) if title.by_user => ("title", json!({ "title": title.text, "byUser": true })),
        Event::Title(title) => ("title", json!({ "title": title.text })),
        Event::Branch(branch) => ("branch", json(branch)),
        Event::Done(done) => ("done", json(&DoneData::of(done))),
        // A stranger's event may bear a name that is ours.
        Event::Unknown { name, data } if NAMES.contains(&name.as_str()) => {
            ("unknown", json!({ "name": name, "data": data }))
        }
        Event::Unknown { name, data } => return (name.clone(), data.clone()),
    };
    (name.to_owned(), data)
}

/// The event that [`parts`] took apart.
pub fn event(name: &str, data: Value) -> Result<Event, RecordError> {
    fn read<T: DeserializeOwned>(name: &str, data: Value) -> Result<T, RecordError> {
        serde_json::from_value(data).map_err(|source| RecordError::Data {
            event: name.to_owned(),
            source: Some(source),
        })
    }
    Ok(match name {
        "user_message" => Event::UserMessage(read::<MessageData>(name, data)?.message),
        "response_start" => Event::ResponseStart(read::<StartData>(name, data)?.into_start()),
        "document_start" => {
            let it: DocumentData = read(name, data)?;
            Event::DocumentStart(DocumentStart {
                id: it.id,
                kind: it.kind,
                sequence: it.sequence,
                content: it.content,
                metadata: it.metadata,
            })
        }
        "content_delta" => {
            let it: DeltaData = read(name, data)?;
            Event::ContentDelta {
                document: it.document_id,
                delta: it.delta,
            }
        }
        "tool_call_start" => {
            let it: CallData = read(name, data)?;
            Event::ToolCallStart {
                document: it.document_id,
                tool_name: it.tool_name,
                tool_call_id: it.tool_call_id,
            }
        }
        "tool_call_arguments" => {
            let it: ArgumentsData = read(name, data)?;
            Event::ToolCallArguments {
                document: it.document_id,
                arguments: it.arguments,
            }
        }
        "tool_result" => {
            let it: ResultData = read(name, data)?;
            Event::ToolResult {
                document: it.document_id,
                result: it.result,
                duration_ms: it.duration_ms,
            }
        }
        "metadata_delta" => {
            let it: PatchData = read(name, data)?;
            Event::MetadataDelta {
                document: it.document_id,
                metadata: it.metadata,
                append: it.append.into_pairs(),
            }
        }
        "thinking_delta" => Event::ThinkingDelta {
            delta: read::<ThinkingData>(name, data)?.delta,
        },
        "document_end" => {
            let it: EndData = read(name, data)?;
            Event::DocumentEnd {
                document: it.document_id,
                final_content: it.final_content,
                metadata: it.metadata,
            }
        }
        "document_update" => {
            let it: PatchData = read(name, data)?;
            Event::DocumentUpdate {
                document: it.document_id,
                metadata: it.metadata,
            }
        }
        "notice" => Event::Notice(read::<Notice>(name, data)?),
        "title" => {
            let it: TitleData = read(name, data)?;
            Event::Title(Title {
                text: it.title,
                by_user: it.by_user,
            })
        }
        "branch" => Event::Branch(read(name, data)?),
        "done" => Event::Done(read::<DoneData>(name, data)?.into_done()),
        "progress" => {
            return Err(RecordError::Data {
                event: name.to_owned(),
                source: None,
            });
        }
        "unknown" => {
            let it: UnknownData = read(name, data)?;
            Event::Unknown {
                name: it.name,
                data: it.data,
            }
        }
        other => Event::Unknown {
            name: other.to_owned(),
            data,
        },
    })
}

/// The names that mean something here.
const NAMES: &[&str] = &[
    "user_message",
    "response_start",
    "document_start",
    "content_delta",
    "tool_call_start",
    "tool_call_arguments",
    "tool_result",
    "metadata_delta",
    "thinking_delta",
    "document_end",
    "document_update",
    "notice",
    "progress",
    "title",
    "branch",
    "done",
    "unknown",
];

fn json(data: &impl Serialize) -> Value {
    serde_json::to_value(data).expect("maps with text keys and plain values always become JSON")
}

#[derive(Deserialize)]
struct MessageData {
    message: Message,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct StartData {
    #[serde(skip_serializing_if = "Option::is_none", default)]
    id: Option<crate::protocol::ResponseId>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    conversation_id: Option<crate::protocol::ConversationId>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    model: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    mode: Option<Mode>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    created: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    capabilities: Vec<String>,
    #[serde(skip_serializing_if = "Map::is_empty", default)]
    extra: Map<String, Value>,
}

impl StartData {
    fn of(it: &ResponseStart) -> Self {
        Self {
            id: it.id.clone(),
            conversation_id: it.conversation_id.clone(),
            model: it.model.clone(),
            mode: it.mode,
            created: it.created.clone(),
            capabilities: it.capabilities.clone(),
            extra: it.extra.clone(),
        }
    }

    fn into_start(self) -> ResponseStart {
        ResponseStart {
            id: self.id,
            conversation_id: self.conversation_id,
            model: self.model,
            mode: self.mode,
            created: self.created,
            capabilities: self.capabilities,
            extra: self.extra,
        }
    }
}

#[derive(Serialize, Deserialize)]
struct DocumentData {
    id: DocumentId,
    #[serde(rename = "type")]
    kind: Kind,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    sequence: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    content: Option<String>,
    #[serde(skip_serializing_if = "Map::is_empty", default)]
    metadata: Map<String, Value>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct DeltaData {
    document_id: DocumentId,
    delta: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct CallData {
    document_id: DocumentId,
    tool_name: String,
    #[serde(default)]
    tool_call_id: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ArgumentsData {
    document_id: DocumentId,
    arguments: Value,
}

#[derive(Deserialize)]
struct ResultData {
    #[serde(rename = "documentId")]
    document_id: DocumentId,
    result: Value,
    #[serde(default)]
    duration_ms: Option<u64>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct PatchData {
    document_id: DocumentId,
    #[serde(default)]
    metadata: Map<String, Value>,
    #[serde(default)]
    append: Appends,
}

/// An object as on the wire; pairs where a member comes twice.
#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum Appends {
    Members(Map<String, Value>),
    Pairs(Vec<(String, String)>),
}

impl Default for Appends {
    fn default() -> Self {
        Self::Pairs(Vec::new())
    }
}

impl Appends {
    fn of(pairs: &[(String, String)]) -> Self {
        let members: Map<_, _> = pairs
            .iter()
            .map(|(name, text)| (name.clone(), text.as_str().into()))
            .collect();
        if members.len() == pairs.len() {
            Self::Members(members)
        } else {
            Self::Pairs(pairs.to_vec())
        }
    }

    fn into_pairs(self) -> Vec<(String, String)> {
        match self {
            Self::Members(members) => members
                .into_iter()
                .map(|(name, text)| (name, super::payload::text_of(&text)))
                .collect(),
            Self::Pairs(pairs) => pairs,
        }
    }
}

#[derive(Deserialize)]
struct ThinkingData {
    delta: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct EndData {
    document_id: DocumentId,
    #[serde(default)]
    final_content: Option<String>,
    #[serde(default)]
    metadata: Map<String, Value>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct TitleData {
    title: String,
    #[serde(default)]
    by_user: bool,
}

#[derive(Deserialize)]
struct UnknownData {
    name: String,
    data: Value,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct DoneData {
    #[serde(skip_serializing_if = "Option::is_none", default)]
    usage: Option<Usage>,
    #[serde(skip_serializing_if = "Map::is_empty", default)]
    extra_usage: Map<String, Value>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    id: Option<crate::protocol::ResponseId>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    conversation_id: Option<crate::protocol::ConversationId>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    model: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    mode: Option<Mode>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    created: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    status: Option<Status>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    finish_reason: Option<crate::protocol::FinishReason>,
    #[serde(rename = "duration_ms", skip_serializing_if = "Option::is_none", default)]
    duration_ms: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    tool_call_count: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    turn_count: Option<u64>,
    #[serde(skip_serializing_if = "Map::is_empty", default)]
    extra: Map<String, Value>,
    #[serde(skip_serializing_if = "Map::is_empty", default)]
    extra_metadata: Map<String, Value>,
}

impl DoneData {
    fn of(it: &Done) -> Self {
        let it = it.clone();
        Self {
            usage: it.usage,
            extra_usage: it.extra_usage,
            id: it.id,
            conversation_id: it.conversation_id,
            model: it.model,
            mode: it.mode,
            created: it.created,
            status: it.status,
            finish_reason: it.finish_reason,
            duration_ms: it.duration_ms,
            tool_call_count: it.tool_call_count,
            turn_count: it.turn_count,
            extra: it.extra,
            extra_metadata: it.extra_metadata,
        }
    }

    fn into_done(self) -> Done {
        Done {
            usage: self.usage,
            extra_usage: self.extra_usage,
            id: self.id,
            conversation_id: self.conversation_id,
            model: self.model,
            mode: self.mode,
            created: self.created,
            status: self.status,
            finish_reason: self.finish_reason,
            duration_ms: self.duration_ms,
            tool_call_count: self.tool_call_count,
            turn_count: self.turn_count,
            extra: self.extra,
            extra_metadata: self.extra_metadata,
        }
    }
}
