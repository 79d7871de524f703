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

    /// The response has ended and is kept for a while.
    pub fn ended(&self, id: &ResponseId) {
        if let Some(kept) = self.lock().here.get_mut(id) {
            kept.ended = Some(Instant::now());
        }
    }

    pub fn leave(&self, id: &ResponseId) {
        let mut table = self.lock();
        if table.here.remove(id).is_some() {
            table.gone.push_back(id.clone());
            if table.gone.len() > GONE {
                table.gone.pop_front();
            }
        }
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
