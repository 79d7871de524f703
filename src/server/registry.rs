//! Responses that clients can ask about by id: those that run, and those that ended a short while ago.

use std::{
    collections::{HashMap, VecDeque},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::time::Instant;

use super::turn::ServedResponse;
use crate::{
    journal::Follower,
    protocol::{Position, ResponseId},
};

/// Number of removed response ids to remember, to answer 410 instead of 404.
const MAX_REMOVED: usize = 4096;
/// Memory limit of all ended responses together, in bytes. The last one to end is kept even if it is larger.
const MAX_ENDED_BYTES: usize = 64 << 20;

/// Responses by id. All methods are safe to call from several tasks.
#[derive(Default)]
pub struct ResponseRegistry(Mutex<Table>);

#[derive(Default)]
struct Table {
    responses: HashMap<ResponseId, RegisteredResponse>,
    removed: VecDeque<ResponseId>,
}

struct RegisteredResponse {
    served: Arc<ServedResponse>,
    /// Keeps the deltas of ended documents in the log, for readers that reconnect.
    anchor: Option<Follower>,
    ended: Option<Instant>,
    /// Time that it stays after its end; zero: it is not kept.
    keep: Duration,
    /// Approximate memory use in bytes; 0 until the response has ended.
    weight: usize,
}

/// Result of [`ResponseRegistry::find`].
pub enum Lookup {
    Here(Arc<ServedResponse>),
    Gone,
    Unknown,
}

impl ResponseRegistry {
    /// Adds a response that stays for `keep` after its end. With `is_resumable` its deltas are kept, so that a reader that
    /// lost its connection can catch up.
    pub fn insert(&self, served: &Arc<ServedResponse>, is_resumable: bool, keep: Duration) {
        let entry = RegisteredResponse {
            served: Arc::clone(served),
            anchor: is_resumable.then(|| served.follow(Position(0))),
            ended: None,
            keep,
            weight: 0,
        };
        self.lock().responses.insert(served.identity.id.clone(), entry);
    }

    /// Looks a response up by id: present, removed a while ago, or never seen.
    pub fn find(&self, id: &str) -> Lookup {
        let id = ResponseId::from(id);
        let table = self.lock();
        match table.responses.get(&id) {
            Some(entry) => Lookup::Here(Arc::clone(&entry.served)),
            None if table.removed.contains(&id) => Lookup::Gone,
            None => Lookup::Unknown,
        }
    }

    /// Marks a response as ended. Then removes the oldest ended ones until all of them fit into [`MAX_ENDED_BYTES`].
    pub fn mark_ended(&self, id: &ResponseId) {
        let mut table = self.lock();
        if table.responses.get(id).is_some_and(|it| it.keep.is_zero()) {
            table.remove(id);
            return;
        }
        if let Some(entry) = table.responses.get_mut(id) {
            entry.ended = Some(Instant::now());
            entry.weight = entry.served.weight();
        }
        let mut ended: Vec<(Instant, usize, ResponseId)> = table
            .responses
            .iter()
            .filter(|(other, _)| *other != id)
            .filter_map(|(other, it)| Some((it.ended?, it.weight, other.clone())))
            .collect();
        let own = table.responses.get(id).map_or(0, |it| it.weight);
        let mut sum = own + ended.iter().map(|it| it.1).sum::<usize>();
        if sum <= MAX_ENDED_BYTES {
            return;
        }
        ended.sort_unstable_by_key(|it| it.0);
        for (_, weight, other) in ended {
            if sum <= MAX_ENDED_BYTES {
                break;
            }
            sum -= weight;
            table.remove(&other);
        }
    }

    /// Removes responses whose time after their end is over. Their deltas go after a quarter of that time.
    pub fn sweep(&self) {
        let mut table = self.lock();
        for entry in table.responses.values_mut() {
            // Time enough for readers to reconnect.
            if entry.ended.is_some_and(|it| it.elapsed() > entry.keep / 4) {
                entry.anchor = None;
            }
        }
        let is_old = |it: &RegisteredResponse| it.ended.is_some_and(|ended| ended.elapsed() > it.keep);
        let old = table.responses.iter().filter(|(_, it)| is_old(it));
        let old: Vec<_> = old.map(|(id, _)| id.clone()).collect();
        for id in old {
            table.remove(&id);
        }
    }

    fn lock(&self) -> MutexGuard<'_, Table> {
        // No panic can leave the table half changed: each change is a single call.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Table {
    fn remove(&mut self, id: &ResponseId) {
        if self.responses.remove(id).is_some() {
            self.removed.push_back(id.clone());
            if self.removed.len() > MAX_REMOVED {
                self.removed.pop_front();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        journal::Log,
        link::{About, local::Local},
        protocol::{Dialect, codec::Identity},
        server::turn::ResponseOptions,
    };

    fn served(id: &str) -> Arc<ServedResponse> {
        let (link, _inbox) = Local::new(Log::new(), About::default());
        let identity = Identity {
            id: id.into(),
            ..Identity::local("m", crate::protocol::Mode::Agent, 0)
        };
        let options = ResponseOptions {
            accepts_answers: false,
            is_stream: true,
            is_stateful: true,
            linger: Duration::ZERO,
            patience: Duration::ZERO,
        };
        ServedResponse::new(Arc::new(link), identity, Dialect::default(), options)
    }

    #[tokio::test]
    async fn what_has_ended_makes_room_the_oldest_first() {
        let responses = ResponseRegistry::default();
        let half = MAX_ENDED_BYTES / 2;
        for (id, bytes) in [("a", half), ("runs", MAX_ENDED_BYTES), ("b", half), ("c", 10)] {
            let it = served(id);
            it.weigh(bytes);
            responses.insert(&it, true, Duration::from_mins(1));
        }
        let is_here = |id: &str| matches!(responses.find(id), Lookup::Here(_));
        responses.mark_ended(&"a".into());
        responses.mark_ended(&"b".into());
        assert!(is_here("a") && is_here("b"), "there is room for both");
        responses.mark_ended(&"c".into());
        assert!(matches!(responses.find("a"), Lookup::Gone), "the oldest makes room");
        assert!(
            is_here("b") && is_here("c") && is_here("runs"),
            "what runs stays, whatever it takes"
        );
        responses.mark_ended(&"runs".into());
        assert!(
            is_here("runs") && !is_here("b") && !is_here("c"),
            "the last one stays, however large"
        );
    }
}
