//! One object for a whole conversation, and the way back.

use serde_json::{Map, Value, json};

use super::Transcript;
use crate::protocol::{
    Entry, Event, Message, Mode, Position, Turn,
    codec::{DecodeError, Decoder, Identity},
};

/// Says what kind of file it is, and which version of it.
const MARK: &str = "sheafConversation";
const VERSION: u64 = 1;

/// `session` says where it comes from.
pub fn object(transcript: &Transcript, title: &str, session: Value) -> Value {
    let turns: Vec<Value> = transcript
        .exchanges
        .iter()
        .map(|it| {
            let mut turn = Map::new();
            turn.insert("turn".into(), it.turn.0.into());
            turn.insert("at".into(), it.at_ms.into());
            if let Some(message) = &it.message {
                turn.insert("message".into(), json!(message));
            }
            turn.insert("response".into(), it.response.to_json());
            turn.into()
        })
        .collect();
    json!({ MARK: VERSION, "session": session, "title": title, "turns": turns })
}

/// Why an object is no conversation.
#[derive(Debug, thiserror::Error)]
pub enum ObjectError {
    #[error("it was exported by a newer sheaf\n  update sheaf to import it")]
    Newer,
    #[error("turn {turn} has no message and no response that can be read")]
    Turn {
        turn: usize,
        #[source]
        source: Option<DecodeError>,
    },
}

/// The entries of an object that [`object`] has written; `None` when it is something else.
pub fn read(bytes: &[u8]) -> Option<Result<Vec<Entry>, ObjectError>> {
    let value: Value = serde_json::from_slice(bytes).ok()?;
    let version = value.get(MARK)?.as_u64();
    if version.is_none_or(|it| it > VERSION) {
        return Some(Err(ObjectError::Newer));
    }
    Some(entries(&value))
}

fn entries(value: &Value) -> Result<Vec<Entry>, ObjectError> {
    let mut entries: Vec<Entry> = Vec::new();
    let mut push = |turn: u32, at_ms: u64, event: Event| {
        entries.push(Entry {
            position: Position(entries.len() as u64 + 1),
            turn: Turn(turn),
            at_ms,
            event,
        });
    };
    let turns = value
        .get("turns")
        .and_then(Value::as_array)
        .map_or(&[][..], Vec::as_slice);
    let title = value.get("title").and_then(Value::as_str);
    let mut number = 0;
    for (at, turn) in turns.iter().enumerate() {
        let at_ms = turn.get("at").and_then(Value::as_u64).unwrap_or_default();
        let message = turn
            .get("message")
            .and_then(|it| serde_json::from_value::<Message>(it.clone()).ok());
        let response = turn.get("response").filter(|it| it.is_object());
        let has_message = message.is_some();
        number += u32::from(has_message || at == 0);
        if let Some(message) = message {
            push(number, at_ms, Event::UserMessage(message));
        }
        if at == 0
            && let Some(title) = title
        {
            push(number, at_ms, Event::Title(title.into()));
        }
        let Some(response) = response else {
            if has_message {
                continue;
            }
            return Err(ObjectError::Turn {
                turn: at + 1,
                source: None,
            });
        };
        let events =
            Decoder::body(Identity::local("", Mode::Agent, at_ms), &response.to_string()).map_err(|source| {
                ObjectError::Turn {
                    turn: at + 1,
                    source: Some(source),
                }
            })?;
        for event in events {
            push(number, at_ms, event);
        }
    }
    Ok(entries)
}
