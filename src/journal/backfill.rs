//! Entries before those that a log holds in memory: the older part of a long conversation, which stays on disk until
//! it is read.

use std::fmt::Debug;

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
