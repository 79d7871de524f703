//! The responses that can be asked about: those that run, and those that ended a short while ago.

use std::{
    collections::{HashMap, VecDeque},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::time::Instant;

use super::turn::Turning;
use crate::{
    journal::Follower,
    protocol::{Position, ResponseId},
};

/// So many names of responses that are gone are remembered, to tell them from those that never were.
const GONE: usize = 4096;
/// What the responses that have ended may take together, beside the last one.
const MOST_BYTES: usize = 64 << 20;

#[derive(Default)]
pub struct Hall(Mutex<Table>);

#[derive(Default)]
struct Table {
    here: HashMap<ResponseId, Kept>,
    gone: VecDeque<ResponseId>,
}

struct Kept {
    turning: Arc<Turning>,
    /// Keeps the pieces of ended documents for readers that come back.
    anchor: Option<Follower>,
    ended: Option<Instant>,
    /// What it takes in memory, once it has ended.
    weight: usize,
}

/// What became of a response.
pub enum Found {
    Here(Arc<Turning>),
    Gone,
    Unknown,
}

impl Hall {
    /// `comes_back`: readers that were cut off may want what they have missed.
    pub fn enter(&self, turning: &Arc<Turning>, comes_back: bool) {
        let kept = Kept {
            turning: Arc::clone(turning),
            anchor: comes_back.then(|| turning.follow(Position(0))),
            ended: None,
            weight: 0,
        };
        self.lock().here.insert(turning.identity.id.clone(), kept);
    }

    pub fn find(&self, id: &str) -> Found {
        let id = ResponseId::from(id);
        let table = self.lock();
        match table.here.get(&id) {
            Some(kept) => Found::Here(Arc::clone(&kept.turning)),
            None if table.gone.contains(&id) => Found::Gone,
            None => Found::Unknown,
        }
    }

    /// The response has ended and is kept for a while, for which the oldest make room where it needs much.
    pub fn ended(&self, id: &ResponseId) {
        let mut table = self.lock();
        if let Some(kept) = table.here.get_mut(id) {
            kept.ended = Some(Instant::now());
            kept.weight = kept.turning.weight();
        }
        let mut ended: Vec<(Instant, usize, ResponseId)> = table
            .here
            .iter()
            .filter(|(other, _)| *other != id)
            .filter_map(|(other, it)| Some((it.ended?, it.weight, other.clone())))
            .collect();
        let own = table.here.get(id).map_or(0, |it| it.weight);
        let mut sum = own + ended.iter().map(|it| it.1).sum::<usize>();
        if sum <= MOST_BYTES {
            return;
        }
        ended.sort_unstable_by_key(|it| it.0);
        for (_, weight, other) in ended {
            if sum <= MOST_BYTES {
                break;
            }
            sum -= weight;
            table.leave(&other);
        }
    }

    pub fn leave(&self, id: &ResponseId) {
        self.lock().leave(id);
    }

    /// Whether nothing runs.
    pub fn is_quiet(&self) -> bool {
        self.lock().here.values().all(|it| it.ended.is_some())
    }

    /// Sends those away that ended longer than `keep` ago.
    pub fn sweep(&self, keep: Duration) {
        let old: Vec<_> = {
            let mut table = self.lock();
            for kept in table.here.values_mut() {
                // Whoever was cut off has had its time.
                if kept.ended.is_some_and(|it| it.elapsed() > keep / 4) {
                    kept.anchor = None;
                }
            }
            let is_old = |it: &Kept| it.ended.is_some_and(|it| it.elapsed() > keep);
            let old = table.here.iter().filter(|(_, it)| is_old(it));
            old.map(|(id, _)| id.clone()).collect()
        };
        for id in old {
            self.leave(&id);
        }
    }

    fn lock(&self) -> MutexGuard<'_, Table> {
        // Every change of the table is a single call of its own.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Table {
    fn leave(&mut self, id: &ResponseId) {
        if self.here.remove(id).is_some() {
            self.gone.push_back(id.clone());
            if self.gone.len() > GONE {
                self.gone.pop_front();
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
        serve::turn::Terms,
    };

    fn turning(id: &str) -> Arc<Turning> {
        let (link, _inbox) = Local::new(Log::new(), About::default());
        let identity = Identity {
            id: id.into(),
            ..Identity::local("m", crate::protocol::Mode::Agent, 0)
        };
        let terms = Terms {
            hears_answers: false,
            is_stream: true,
            is_stateful: true,
            linger: Duration::ZERO,
            patience: Duration::ZERO,
        };
        Turning::new(Arc::new(link), identity, Dialect::default(), terms)
    }

    #[tokio::test]
    async fn what_has_ended_makes_room_the_oldest_first() {
        let hall = Hall::default();
        let half = MOST_BYTES / 2;
        for (id, bytes) in [("a", half), ("runs", MOST_BYTES), ("b", half), ("c", 10)] {
            let it = turning(id);
            it.weigh(bytes);
            hall.enter(&it, true);
        }
        let here = |id: &str| matches!(hall.find(id), Found::Here(_));
        hall.ended(&"a".into());
        hall.ended(&"b".into());
        assert!(here("a") && here("b"), "there is room for both");
        hall.ended(&"c".into());
        assert!(!hall.is_quiet());
        assert!(matches!(hall.find("a"), Found::Gone), "the oldest makes room");
        assert!(
            here("b") && here("c") && here("runs"),
            "what runs stays, whatever it takes"
        );
        hall.ended(&"runs".into());
        assert!(
            here("runs") && !here("b") && !here("c"),
            "the last one stays, however large"
        );
        assert!(hall.is_quiet());
    }
}
