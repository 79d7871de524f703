//! What stands in front of what a log holds in memory: the older part of a long conversation, which stays on the disk until
//! somebody looks back.

use std::fmt::Debug;

use crate::protocol::{Cost, Entry, Position, Title, Turn};

/// Where the older entries of a log are kept.
pub trait Earlier: Send + Sync + Debug {
    /// All of them, in order. What cannot be read any more is left out.
    fn entries(&self) -> Vec<Entry>;

    /// About so many bytes of them, the last ones, from a turn on that needs nothing before it; `None` where there is no such
    /// turn.
    fn last(&self, bytes: u64) -> Option<(Turn, Vec<Entry>)> {
        let _ = bytes;
        None
    }

    /// What they came to, without keeping them.
    fn spent(&self) -> Cost;
}

/// Where the part that a log holds in memory begins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Recent {
    /// Of the last entry in front of it.
    pub after: Position,
    /// Its first turn.
    pub turn: Turn,
    /// What the conversation was called before.
    pub title: Option<Title>,
}
