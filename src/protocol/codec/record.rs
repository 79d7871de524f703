//! Events as JSON without loss: a line of the journal, a line of `--output-format events`.
//!
//! Unlike the encoder this changes nothing, so that what is read back is what was written.

use std::io::{self, Write};

use serde_json::{Map, Value, json};

use crate::protocol::{Entry, Event, Position, Turn};

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

/// Writes the members of a record but its position, without braces around them: what [`to_json`] returns, and nothing of it is
/// in memory twice. Writes nothing for progress.
pub fn write_members(entry: &Entry, out: &mut impl Write) -> io::Result<()> {
    if matches!(entry.event, Event::Progress(_)) {
        return Ok(());
    }
    write!(out, r#""turn":{},"at":{},"#, entry.turn.0, entry.at_ms)?;
    match &entry.event {
        Event::Unknown { name, data } if !NAMES.contains(&name.as_str()) => {
            out.write_all(br#""event":"#)?;
            serde_json::to_writer(&mut *out, name)?;
            out.write_all(br#","data":"#)?;
            serde_json::to_writer(out, data)?;
        }
        event => serde_json::to_writer(
            Bare {
                out,
                has_begun: false,
                brace: false,
            },
            event,
        )?,
    }
    Ok(())
}

/// Passes a JSON object on without its first and its last brace.
struct Bare<'a, W> {
    out: &'a mut W,
    has_begun: bool,
    /// A brace was the last byte: it is passed on if more comes.
    brace: bool,
}

impl<W: Write> Write for Bare<'_, W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut rest = bytes;
        if !self.has_begun && !rest.is_empty() {
            self.has_begun = true;
            rest = rest.get(1..).unwrap_or_default();
        }
        if rest.is_empty() {
            return Ok(bytes.len());
        }
        if std::mem::take(&mut self.brace) {
            self.out.write_all(b"}")?;
        }
        if let Some(before) = rest.strip_suffix(b"}") {
            (self.brace, rest) = (true, before);
        }
        self.out.write_all(rest)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

/// One line without its end.
pub fn to_line(entry: &Entry) -> Option<String> {
    let mut line = format!(r#"{{"n":{},"#, entry.position.0).into_bytes();
    write_members(entry, &mut line).expect("maps with text keys and plain values become JSON");
    line.push(b'}');
    let is_stored = !matches!(entry.event, Event::Progress(_));
    String::from_utf8(line).ok().filter(|_| is_stored)
}

/// Reads a record; other members are ignored.
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

/// Returns an event's name and data. The data of progress is null.
pub fn parts(event: &Event) -> (String, Value) {
    match event {
        Event::Progress(_) => ("progress".to_owned(), Value::Null),
        Event::Unknown { name, data } if !NAMES.contains(&name.as_str()) => (name.clone(), data.clone()),
        _ => {
            let mut whole = serde_json::to_value(event).expect("maps with text keys and plain values become JSON");
            let name = whole["event"].as_str().unwrap_or_default().to_owned();
            (name, whole["data"].take())
        }
    }
}

/// Returns the event that [`parts`] took apart. Fails for known events whose data is wrong, and for progress.
pub fn event(name: &str, data: Value) -> Result<Event, RecordError> {
    if !NAMES.contains(&name) {
        return Ok(Event::Unknown {
            name: name.to_owned(),
            data,
        });
    }
    serde_json::from_value(json!({ "event": name, "data": data })).map_err(|source| RecordError::Data {
        event: name.to_owned(),
        source: Some(source).filter(|_| name != "progress"),
    })
}

/// Names of our events. A foreign event with such a name is stored as `unknown`.
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
