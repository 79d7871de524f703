//! A session turn by turn. A search looks at the bytes of each, and reads those only that can hold what it looks for: most of
//! what a session costs is reading its JSON.

use std::{collections::BTreeMap, ops::Range};

use regex::bytes::Regex;
use serde_json::Value;

use super::{
    Session,
    line::{self, Bad},
    load::{self, Newer, Stored},
};
use crate::protocol::{Entry, Turn};

/// Text in a question's line. Its answer is in the next turn, so such a turn cannot be read alone.
const QUESTION: &str = r#""type":"clarification""#;

/// A session whose lines are sorted by turn, but not parsed.
#[derive(Debug)]
pub struct Parts {
    pub session: Session,
    bytes: Vec<u8>,
    turns: BTreeMap<Turn, TurnLines>,
    question: Option<Regex>,
    /// Lines are missing that may be of any turn.
    is_damaged: bool,
}

/// Byte ranges of a turn's lines in order, neighbours joined, and the time of the last one.
#[derive(Debug, Default)]
struct TurnLines {
    places: Vec<Range<usize>>,
    last_ms: u64,
}

impl Parts {
    pub(super) fn of(id: &str, bytes: Vec<u8>) -> Result<Self, Newer> {
        let mut turns: BTreeMap<Turn, TurnLines> = BTreeMap::new();
        let mut session = None;
        let (mut at, mut last, mut is_damaged) = (0, 0, false);
        for whole in bytes.split_inclusive(|&it| it == b'\n') {
            let start = at;
            at += whole.len();
            let text = whole.strip_suffix(b"\n").unwrap_or(whole).trim_ascii();
            if text.is_empty() {
                continue;
            }
            let (position, turn, at_ms) = match line::glance(text) {
                Some(it) => (it.position, it.turn, it.at_ms),
                None => match line::read(text, true) {
                    Ok((position, mut members)) => {
                        if let Some(found) = members.shift_remove("session") {
                            session = session.or_else(|| serde_json::from_value(found).ok());
                            continue;
                        }
                        let number = |name: &str| members.get(name).and_then(Value::as_u64);
                        let Some(turn) = number("turn").and_then(|it| u32::try_from(it).ok()) else {
                            continue;
                        };
                        (position, turn, number("at").unwrap_or_default())
                    }
                    Err(Bad::Newer) => return Err(Newer),
                    Err(Bad::Damaged) => {
                        is_damaged = true;
                        continue;
                    }
                },
            };
            // A write whose end was not confirmed is made again, so a line may stand there twice.
            if position <= last {
                continue;
            }
            last = position;
            let part = turns.entry(Turn(turn)).or_default();
            part.last_ms = part.last_ms.max(at_ms);
            match part.places.last_mut().filter(|it| it.end == start) {
                Some(before) => before.end = at,
                None => part.places.push(start..at),
            }
        }
        let session = session.unwrap_or_else(|| Session {
            id: id.to_owned(),
            created: 0,
            workspace: String::new(),
            version: String::new(),
            branch: None,
        });
        Ok(Self {
            session,
            bytes,
            turns,
            question: Regex::new(QUESTION).ok(),
            is_damaged,
        })
    }

    /// Returns the turns, the last one first, each with the time of its last entry.
    pub fn turns(&self) -> impl Iterator<Item = (Turn, u64)> {
        self.turns.iter().rev().map(|(turn, part)| (*turn, part.last_ms))
    }

    /// Returns the lines of a turn in file order, several at a time.
    pub fn lines(&self, turn: Turn) -> impl Iterator<Item = &[u8]> {
        let places = self.turns.get(&turn).map(|it| it.places.as_slice()).unwrap_or_default();
        places.iter().filter_map(|it| self.bytes.get(it.clone()))
    }

    /// The whole file.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Returns true if a turn can be read from its own lines, whatever follows it.
    pub fn is_by_itself(&self, turn: Turn) -> bool {
        let asks = |lines: &[u8]| self.question.as_ref().is_none_or(|it| it.is_match(lines));
        !self.is_damaged && !self.lines(turn).any(asks)
    }

    /// The entries of a turn, with an end for its response.
    pub fn entries(&self, turn: Turn) -> Vec<Entry> {
        self.stored(&self.lines(turn).collect::<Vec<_>>().concat()).closed()
    }

    /// All entries, with an end for every response.
    pub fn all(&self) -> Vec<Entry> {
        self.stored(&self.bytes).closed()
    }

    fn stored(&self, bytes: &[u8]) -> Stored {
        // A newer version was told from the rest when the lines were sorted.
        load::read(&self.session.id, bytes).unwrap_or_else(|_| Stored::empty(self.session.clone()))
    }
}
