//! Entries before those that a log holds in memory: the older part of a long conversation, which stays on disk until
//! it is read. A conversation that was opened at its end has such a part from the start; a growing one gets it from
//! [`super::Log::retire`].

use std::{fmt::Debug, sync::Arc};

use crate::protocol::{Cost, Entry, Position, Title, Turn};

/// Source of the older entries of a log.
pub trait Earlier: Send + Sync + Debug {
    /// Returns all of them, in order. Unreadable ones are left out.
    fn entries(&self) -> Vec<Entry>;

    /// Returns the last `bytes` bytes or so, from a turn on that needs nothing before it. `None` if there is no such
    /// turn.
    fn last(&self, bytes: u64) -> Option<(Turn, Vec<Entry>)> {
        let _ = bytes;
        None
    }

    /// Returns the cost of the older answers without keeping their entries.
    fn spent(&self) -> Cost;
}

/// The part of a conversation that is on disk, and where the part in memory begins.
#[derive(Debug)]
pub struct StoredPart {
    pub recent: Recent,
    pub source: Box<dyn Earlier>,
}

impl StoredPart {
    /// Returns its entries after `since`.
    pub fn after(&self, since: Position) -> impl Iterator<Item = Arc<Entry>> {
        let is_wanted = move |it: &Entry| it.position > since && it.position <= self.recent.after;
        self.source.entries().into_iter().filter(is_wanted).map(Arc::new)
    }
}

/// Start of the part that a log holds in memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Recent {
    /// Position of the last entry before it.
    pub after: Position,
    /// Its first turn.
    pub turn: Turn,
    /// Title of the conversation at that point.
    pub title: Option<Title>,
}
