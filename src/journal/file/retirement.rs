//! Retirement: old turns of a long conversation leave memory once they are in its file.
//!
//! The log reads them from there, as for a session that was opened at its end. About a mebibyte of the newest turns stays;
//! it must make sense without the rest ([`leads_back`]).

use std::{collections::VecDeque, path::Path};

use super::recent::{Front, leads_back};
use crate::{
    journal::{Log, Recent},
    protocol::{Position, Title, Turn},
};

/// Turns in this many bytes at the end of the file stay in memory, and at least this many turns.
const KEPT_BYTES: u64 = 1 << 20;
const KEPT_TURNS: usize = 4;

/// Maximum number of turns to try as the first one in memory.
const MOST_LOOKS: usize = 16;

/// A turn in the file of a session.
#[derive(Clone, Debug)]
pub struct TurnStart {
    pub turn: Turn,
    /// Position of its message.
    pub position: Position,
    /// Offset of its message's line.
    pub offset: u64,
    /// Title of the conversation at that point.
    pub title: Option<Title>,
}

/// Turns in memory that are in the file, oldest first.
#[derive(Debug, Default)]
pub struct WrittenTurns(VecDeque<TurnStart>);

impl WrittenTurns {
    pub fn add(&mut self, start: TurnStart) {
        self.0.push_back(start);
    }

    /// Removes old turns from the memory of `log` if there are many. All entries of the log must be in the
    /// first `end_bytes` bytes of the session `id` at `path`.
    pub fn retire(&mut self, log: &Log, path: &Path, id: &str, end_bytes: u64) {
        let bytes_from = |it: &TurnStart| end_bytes.saturating_sub(it.offset);
        if self.0.front().is_none_or(|it| bytes_from(it) < 2 * KEPT_BYTES) {
            return;
        }
        let newest = self.0.len().saturating_sub(KEPT_TURNS);
        // Nothing comes before the first one.
        let candidates = self
            .0
            .iter()
            .take(newest + 1)
            .skip(1)
            .rev()
            .filter(|it| bytes_from(it) >= KEPT_BYTES);
        let found = candidates.take(MOST_LOOKS).find(|it| {
            let rest = log.after(Position(it.position.0 - 1));
            !leads_back(rest.iter().map(AsRef::as_ref), it.turn)
        });
        let Some(start) = found.cloned() else { return };
        let recent = Recent {
            after: Position(start.position.0 - 1),
            turn: start.turn,
            title: start.title,
        };
        let front = Front::of(path, id, start.offset);
        if log.retire(recent, Box::new(front)) {
            self.0.retain(|it| it.offset >= start.offset);
            crate::os::memory_trim::trim_when_worth();
        }
    }
}
