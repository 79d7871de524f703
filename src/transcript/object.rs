//! One object for a whole conversation, and the way back.

use std::collections::HashMap;

use serde_json::{Map, Value, json};

use super::{Exchange, Transcript};
use crate::protocol::{
    Branch, Entry, Event, Message, Mode, Position, Title, Turn,
    codec::{DecodeError, Decoder, Identity},
};

/// Member that identifies the file and its format version.
const MARK: &str = "sheafConversation";
const VERSION: u64 = 1;

/// Formats a conversation as one object. `session` is its origin. `turns` are those of the current branch, all others
/// are in `branches`; a turn names the turn that it continues if that is not the previous one.
pub fn object(transcript: &Transcript, title: &str, session: Value) -> Value {
    let here: Vec<Value> = transcript.exchanges.iter().map(turn).collect();
    let mut whole = Map::new();
    whole.insert(MARK.into(), VERSION.into());
    whole.insert("session".into(), session);
    whole.insert("title".into(), title.into());
    if transcript.is_named() {
        whole.insert("titleByUser".into(), true.into());
    }
    whole.insert("turns".into(), here.into());
    if transcript.is_branched() {
        let others: Vec<Value> = transcript.shelf.iter().map(turn).collect();
        whole.insert("branches".into(), others.into());
        whole.insert("head".into(), json!(transcript.head()));
    }
    whole.into()
}

/// Formats one turn: its message and its response object.
pub fn turn(it: &Exchange) -> Value {
    let mut turn = Map::new();
    turn.insert("turn".into(), it.turn.0.into());
    turn.insert("at".into(), it.at_ms.into());
    turn.insert("behind".into(), json!(it.parent));
    if it.is_cut {
        turn.insert("isCut".into(), true.into());
    }
    if let Some(message) = &it.message {
        turn.insert("message".into(), json!(message));
    }
    let thoughts = it.response.thinking.iter();
    let thoughts: Vec<Value> = thoughts
        .map(|it| json!({ "before": it.before, "text": it.text }))
        .collect();
    if !thoughts.is_empty() {
        turn.insert("thinking".into(), thoughts.into());
    }
    turn.insert("response".into(), it.response.to_json());
    turn.into()
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
    let title = value.get("title").and_then(Value::as_str);
    let by_user = value.get("titleByUser").and_then(Value::as_bool) == Some(true);
    let turns = in_order(value);
    // Where the conversation stands, as an import of these turns numbers them.
    let mut head = Branch::default();
    let mut numbers: HashMap<u64, u32> = HashMap::new();
    let (mut number, mut last_ms) = (0, 0);
    for (at, turn) in turns.iter().enumerate() {
        let at_ms = turn.get("at").and_then(Value::as_u64).unwrap_or_default();
        last_ms = at_ms;
        let message = turn
            .get("message")
            .and_then(|it| serde_json::from_value::<Message>(it.clone()).ok());
        let response = turn.get("response").filter(|it| it.is_object());
        let has_message = message.is_some();
        if at > 0
            && let Some(behind) = way(turn.get("behind"), &numbers)
            && behind != head
        {
            push(number, at_ms, Event::Branch(behind));
        }
        number += u32::from(has_message || at == 0);
        let old = turn.get("turn").and_then(Value::as_u64);
        numbers.insert(old.unwrap_or(u64::from(number)), number);
        head = Branch {
            after: Turn(number),
            ..Branch::default()
        };
        if let Some(message) = message {
            push(number, at_ms, Event::UserMessage(message));
        }
        if at == 0
            && let Some(text) = title.map(str::to_owned)
        {
            push(number, at_ms, Event::Title(Title { text, by_user }));
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
        let mut thoughts = thoughts(turn).into_iter().peekable();
        let mut documents = 0;
        for event in events {
            let is_end = matches!(event, Event::Done(_));
            if is_end || matches!(event, Event::DocumentStart(_)) {
                while let Some((_, delta)) = thoughts.next_if(|(before, _)| is_end || *before <= documents) {
                    push(number, at_ms, Event::ThinkingDelta { delta });
                }
                documents += 1;
            }
            push(number, at_ms, event);
        }
    }
    if let Some(there) = way(value.get("head"), &numbers)
        && there != head
    {
        push(number, last_ms, Event::Branch(there));
    }
    Ok(entries)
}

/// Returns all turns in the order in which they began.
fn in_order(value: &Value) -> Vec<&Value> {
    let list = |name: &str| {
        let list = value.get(name).and_then(Value::as_array);
        list.map_or(&[][..], Vec::as_slice)
    };
    let others = list("branches");
    if others.is_empty() {
        return list("turns").iter().collect();
    }
    let is_cut = |it: &&Value| it.get("isCut").and_then(Value::as_bool) == Some(true);
    let here = list("turns").iter().filter(|it| !is_cut(it));
    let mut all: Vec<&Value> = here.chain(others).collect();
    all.sort_by_key(|it| it.get("turn").and_then(Value::as_u64));
    all
}

/// Reads the point after which a turn continues, with this turn's new number.
fn way(value: Option<&Value>, numbers: &HashMap<u64, u32>) -> Option<Branch> {
    let old: Branch = serde_json::from_value(value?.clone()).ok()?;
    let after = match old.after.0 {
        0 => 0,
        after => *numbers.get(&u64::from(after))?,
    };
    Some(Branch {
        after: Turn(after),
        ..old
    })
}

/// Returns pieces of reasoning, each with the number of documents before it.
fn thoughts(turn: &Value) -> Vec<(usize, String)> {
    let list = turn.get("thinking").and_then(Value::as_array);
    let read = |it: &Value| {
        let before = usize::try_from(it.get("before")?.as_u64()?).ok()?;
        Some((before, it.get("text")?.as_str()?.to_owned()))
    };
    list.map_or(&[][..], Vec::as_slice).iter().filter_map(read).collect()
}
