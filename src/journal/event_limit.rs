//! A bound on what an answer may cost in the log, whatever the size of its pieces.
//!
//! Whoever reads the answer bounds the text; here it is the number of events that counts, because each costs much more than the
//! one character that a hostile delta may carry. Past a first bound neighbours are joined, past a second the answer
//! is cut. What the log drops when a document ends no longer counts.

use rustc_hash::FxHashMap;

use super::log::delta_of;
use crate::protocol::{DocumentId, Event};

/// Events from which on deltas of the same text that arrive together are joined.
const JOINED_FROM: usize = 1_000;

/// Maximum number of events.
const MOST_EVENTS: usize = 500_000;

/// Maximum number of documents; the decoder stops earlier and reports it.
const MOST_DOCUMENTS: usize = 60_000;

/// More events than are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooMany;

/// Cost of an event beside its text, in bytes.
const EVENT_BYTES: usize = 256;

/// Bytes processed in one go: a few milliseconds, so that other tasks on the thread are not kept waiting.
const STINT_BYTES: usize = 32 << 10;

/// Work of one producer between two turns of the others.
///
/// A socket in a flood is always ready, and a task that never waits keeps its thread: the key that is to stop it would not
/// even be read.
#[derive(Debug, Default)]
pub struct PollBudget {
    bytes: usize,
}

impl PollBudget {
    /// Charges one event with `bytes` bytes of text. Returns true when the budget is used up.
    pub fn spend(&mut self, bytes: usize) -> bool {
        self.bytes += EVENT_BYTES + bytes;
        self.is_over()
    }

    pub fn is_over(&self) -> bool {
        self.bytes >= STINT_BYTES
    }

    /// Yields to other tasks when the budget is used up, and renews it.
    pub async fn pause(&mut self) {
        if self.is_over() {
            self.bytes = 0;
            tokio::task::yield_now().await;
        }
    }
}

/// Counts the events of one response.
#[derive(Debug, Default)]
pub struct EventLimit {
    kept: usize,
    documents: usize,
    /// Deltas of documents that are open.
    deltas: FxHashMap<DocumentId, usize>,
}

impl EventLimit {
    /// Returns true if so much is stored that events that arrive together should be joined.
    pub fn is_high(&self) -> bool {
        self.kept >= JOINED_FROM
    }

    /// Returns the part of `events` that is added to the log. Events that arrived together may be joined.
    pub fn admit(&mut self, events: Vec<Event>) -> Result<Vec<Event>, TooMany> {
        let events = if self.kept < JOINED_FROM {
            events
        } else {
            joined(events)
        };
        let counted = events.iter().map(|it| self.count(it)).collect::<Vec<_>>();
        if counted.contains(&Err(TooMany)) {
            Err(TooMany)
        } else {
            Ok(events)
        }
    }

    /// Counts an event that is added to the log unchanged. Fails when there are too many.
    pub fn count(&mut self, event: &Event) -> Result<(), TooMany> {
        self.kept += 1;
        match event {
            Event::DocumentStart(_) => self.documents += 1,
            Event::DocumentEnd { document, .. } => {
                self.kept -= self.deltas.remove(document).unwrap_or(0);
            }
            other => {
                if let Some(document) = delta_of(other) {
                    *self.deltas.entry(document.clone()).or_default() += 1;
                }
            }
        }
        if self.kept > MOST_EVENTS || self.documents > MOST_DOCUMENTS {
            Err(TooMany)
        } else {
            Ok(())
        }
    }
}

/// The same with neighbouring deltas made one.
fn joined(events: Vec<Event>) -> Vec<Event> {
    let mut joined: Vec<Event> = Vec::new();
    for event in events {
        match (joined.last_mut(), &event) {
            (
                Some(Event::ContentDelta { document, delta }),
                Event::ContentDelta {
                    document: of,
                    delta: more,
                },
            ) if document == of => delta.push_str(more),
            (Some(Event::ThinkingDelta { delta }), Event::ThinkingDelta { delta: more }) => delta.push_str(more),
            (
                Some(Event::MetadataDelta {
                    document,
                    metadata,
                    append,
                }),
                Event::MetadataDelta {
                    document: of,
                    metadata: changed,
                    append: more,
                },
            ) if document == of && metadata.is_empty() && changed.is_empty() => {
                for (member, text) in more {
                    match append.iter_mut().find(|it| it.0 == *member) {
                        Some((_, whole)) => whole.push_str(text),
                        None => append.push((member.clone(), text.clone())),
                    }
                }
            }
            (Some(_) | None, _) => joined.push(event),
        }
    }
    joined
}

#[cfg(test)]
mod tests {
    use futures::FutureExt as _;
    use serde_json::{Map, json};

    use super::*;
    use crate::protocol::Response;

    fn events(script: &[(&str, &str)]) -> Vec<Event> {
        let event = |(word, text): &(&str, &str)| match *word {
            "think" => Event::ThinkingDelta { delta: (*text).into() },
            "append" => Event::MetadataDelta {
                document: "a".into(),
                metadata: Map::new(),
                append: vec![("output".into(), (*text).into())],
            },
            "set" => Event::MetadataDelta {
                document: "a".into(),
                metadata: Map::from_iter([("output".to_owned(), json!(text))]),
                append: Vec::new(),
            },
            "end" => Event::DocumentEnd {
                document: (*text).into(),
                final_content: None,
                metadata: Map::new(),
            },
            document => Event::ContentDelta {
                document: document.into(),
                delta: (*text).into(),
            },
        };
        script.iter().map(event).collect()
    }

    #[test]
    fn a_budget_yields_to_others_once_it_is_used_up_and_not_before() {
        let mut budget = PollBudget::default();
        assert_eq!(budget.pause().now_or_never(), Some(()));
        assert!(!budget.spend(0));
        assert_eq!(budget.pause().now_or_never(), Some(()));
        assert!(budget.spend(STINT_BYTES));
        assert_eq!(budget.pause().now_or_never(), None, "others come first");
        assert_eq!(budget.pause().now_or_never(), Some(()), "it is renewed");
    }

    #[test]
    fn neighbours_are_joined_and_nothing_is_moved() {
        let pieces = events(&[
            ("a", "1"),
            ("a", "2"),
            ("b", "3"),
            ("a", "4"),
            ("think", "5"),
            ("think", "6"),
            ("append", "7"),
            ("append", "8"),
            ("set", "9"),
            ("append", "0"),
        ]);
        let expected = events(&[
            ("a", "12"),
            ("b", "3"),
            ("a", "4"),
            ("think", "56"),
            ("append", "78"),
            ("set", "9"),
            ("append", "0"),
        ]);
        let mut first = Response::default();
        let mut second = Response::default();
        for event in &pieces {
            first.apply(event, 0);
        }
        assert_eq!(joined(pieces), expected);
        for event in &expected {
            second.apply(event, 0);
        }
        assert_eq!(first.documents, second.documents);
    }

    #[test]
    fn an_answer_of_usual_size_is_left_as_it_is() {
        let mut flood = EventLimit::default();
        let pieces = events(&[("a", "1"), ("a", "2")]);
        for _ in 0..JOINED_FROM / 2 {
            assert_eq!(flood.admit(pieces.clone()), Ok(pieces.clone()));
        }
        assert_eq!(flood.admit(pieces), Ok(events(&[("a", "12")])));
    }

    #[test]
    fn a_flood_ends_and_what_ended_does_not_count() {
        let mut flood = EventLimit::default();
        for _ in 0..4 {
            for _ in 0..MOST_EVENTS / 2 {
                assert!(flood.admit(events(&[("a", "x")])).is_ok());
            }
            assert!(flood.admit(events(&[("end", "a")])).is_ok());
        }
        let more = (0..MOST_EVENTS).find(|_| flood.admit(events(&[("a", "x")])).is_err());
        assert!(more.is_some());
    }
}
