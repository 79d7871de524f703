//! Events of all conversations in one list, for streams that follow all of them.
//!
//! Nothing is gathered before the first such stream. Then one task per open conversation copies its events into a ring of
//! limited size, which all readers share; a reader has only a number in it.

use std::{
    collections::VecDeque,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
};

use tokio::sync::watch;

use super::{now_ms, reader::EVENTS_PER_BATCH, turn::weight};
use crate::{
    journal::Log,
    protocol::{ConversationId, Entry, codec::record},
};

/// Memory limit of the ring, in bytes. The last event stays, however large.
const RING_BYTES: usize = 1 << 20;

/// Shared list of the last events.
#[derive(Default)]
pub struct EventHub {
    is_started: AtomicBool,
    ring: Mutex<Ring>,
    newest: watch::Sender<u64>,
}

/// The last events, with ascending numbers.
#[derive(Default)]
struct Ring {
    events: VecDeque<GatheredEvent>,
    bytes: usize,
    /// Number of the last event.
    last: u64,
}

/// An event and its conversation.
#[derive(Clone)]
pub struct GatheredEvent {
    pub number: u64,
    pub conversation: ConversationId,
    pub entry: Arc<Entry>,
}

impl EventHub {
    /// Starts gathering. Returns true if it had not been started.
    ///
    /// Numbers begin with the time, so that those of a server that ran before are smaller.
    pub fn start(&self) -> bool {
        let mut ring = self.lock();
        let is_first = !self.is_started.swap(true, Ordering::Relaxed);
        if is_first {
            ring.last = now_ms().saturating_mul(1000);
            self.newest.send_replace(ring.last);
        }
        is_first
    }

    /// Gathers the events of a conversation from now on until `is_closed` turns true. Does nothing before [`Self::start`].
    pub fn follow(
        self: &Arc<Self>,
        conversation: &ConversationId,
        log: &Arc<Log>,
        mut is_closed: watch::Receiver<bool>,
    ) {
        if !self.is_started.load(Ordering::Relaxed) {
            return;
        }
        let mut follower = log.follow_closely(log.last());
        let (hub, conversation) = (Arc::clone(self), conversation.clone());
        tokio::spawn(async move {
            let mut batch = Vec::new();
            loop {
                let more = tokio::select! {
                    biased;
                    more = follower.next_some(EVENTS_PER_BATCH, &mut batch) => more,
                    // An error means that the conversation is gone.
                    _ = is_closed.wait_for(|it| *it) => false,
                };
                hub.push(&conversation, batch.drain(..));
                if !more {
                    return;
                }
            }
        });
    }

    fn push(&self, conversation: &ConversationId, entries: impl Iterator<Item = Arc<Entry>>) {
        let mut ring = self.lock();
        for entry in entries.filter(|it| is_public(it)) {
            ring.last += 1;
            ring.bytes += weight(&entry.event);
            let number = ring.last;
            ring.events.push_back(GatheredEvent {
                number,
                conversation: conversation.clone(),
                entry,
            });
            while ring.bytes > RING_BYTES && ring.events.len() > 1 {
                let old = ring.events.pop_front();
                ring.bytes -= old.map_or(0, |it| weight(&it.entry.event));
            }
        }
        self.newest.send_replace(ring.last);
    }

    /// Returns the number of the last event.
    pub fn last(&self) -> u64 {
        self.lock().last
    }

    /// Returns some events after `since`; the first element is true if there were others between, which are gone.
    pub fn after(&self, since: u64) -> (bool, Vec<GatheredEvent>) {
        let ring = self.lock();
        let first = ring.events.front().map_or(ring.last + 1, |it| it.number);
        let is_gap = since + 1 < first || since > ring.last;
        let at = ring
            .events
            .partition_point(|it| it.number <= since && since <= ring.last);
        let events = ring.events.iter().skip(at).take(EVENTS_PER_BATCH.get());
        (is_gap, events.cloned().collect())
    }

    /// Changes with each event.
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.newest.subscribe()
    }

    fn lock(&self) -> MutexGuard<'_, Ring> {
        // A panic cannot leave it half changed in a way that matters: at worst a number is missing.
        self.ring.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns true for entries that clients may see: not for those that are true only now, nor for what the model was told.
fn is_public(entry: &Entry) -> bool {
    use crate::protocol::Event;
    !matches!(entry.event, Event::Progress(_) | Event::Said { .. } | Event::Told(_))
}

/// Formats an entry of a conversation as a server-sent event. `None` for entries that clients do not see.
pub fn frame(id: u64, conversation: &ConversationId, entry: &Entry) -> Option<String> {
    if !is_public(entry) {
        return None;
    }
    let mut members = record::to_json(entry)?;
    members.shift_insert(0, "conversationId".to_owned(), conversation.as_str().into());
    let data = serde_json::Value::Object(members);
    Some(format!("id: {id}\nevent: record\ndata: {data}\n\n"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::{Event, Position, Turn};

    fn entry(at: u64, bytes: usize) -> Arc<Entry> {
        Arc::new(Entry {
            position: Position(at),
            turn: Turn(1),
            at_ms: 1,
            event: Event::ThinkingDelta {
                delta: "x".repeat(bytes),
            },
        })
    }

    #[test]
    fn a_reader_that_is_too_late_learns_of_the_gap() {
        let hub = EventHub::default();
        assert!(hub.start() && !hub.start());
        let first = hub.last();
        let (is_gap, events) = hub.after(first);
        assert!(!is_gap && events.is_empty());
        let conversation = ConversationId::from("conv_1");
        hub.push(&conversation, (1..=3).map(|it| entry(it, 10)));
        let numbers = |since| {
            let (is_gap, events) = hub.after(since);
            (is_gap, events.iter().map(|it| it.number - first).collect::<Vec<_>>())
        };
        assert_eq!(numbers(first), (false, vec![1, 2, 3]));
        assert_eq!(numbers(first + 2), (false, vec![3]));
        hub.push(&conversation, (4..=5).map(|it| entry(it, RING_BYTES)));
        assert_eq!(numbers(first + 2), (true, vec![5]), "what does not fit is gone");
        assert_eq!(numbers(first + 4), (false, vec![5]));
        assert_eq!(numbers(1), (true, vec![5]), "an id of an earlier server");
        assert_eq!(numbers(first + 99), (true, vec![5]), "an id of another server");
    }

    #[test]
    fn what_the_model_was_told_is_nobodys_business() {
        let conversation = ConversationId::from("conv_1");
        let told = Entry {
            event: Event::Told(serde_json::Map::new()),
            ..(*entry(1, 1)).clone()
        };
        assert_eq!(frame(1, &conversation, &told), None);
        let text = frame(7, &conversation, &entry(3, 1));
        let wanted = "id: 7\nevent: record\ndata: {\"conversationId\":\"conv_1\",\"n\":3,\"turn\":1,\"at\":1,\
                      \"event\":\"thinking_delta\",\"data\":{\"delta\":\"x\"}}\n\n";
        assert_eq!(text.as_deref(), Some(wanted));
    }
}
