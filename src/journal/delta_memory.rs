//! Limit of the deltas that a log holds in memory. Complete runs beyond it lie in a scratch file.

use std::{collections::BTreeMap, sync::Arc};

use crate::{
    os::{long_text, scratch::ScratchFile},
    protocol::Position,
};

/// Bytes of complete runs that a log holds in memory unless it is told otherwise.
const USUAL_BYTES: usize = 1 << 20;

/// The complete runs in memory, and the file for the others.
#[derive(Debug)]
pub struct DeltaMemory {
    limit_bytes: usize,
    /// Size in bytes of each complete run in memory, by its first position.
    complete: BTreeMap<Position, usize>,
    bytes: usize,
    file: Option<Arc<ScratchFile>>,
    /// No file could be created: everything stays in memory.
    has_failed: bool,
}

impl Default for DeltaMemory {
    fn default() -> Self {
        Self::of(USUAL_BYTES)
    }
}

impl DeltaMemory {
    /// Creates it for so many bytes.
    pub fn of(limit_bytes: usize) -> Self {
        Self {
            limit_bytes,
            complete: BTreeMap::new(),
            bytes: 0,
            file: None,
            has_failed: false,
        }
    }

    /// Bytes that may be in memory.
    pub fn limit_bytes(&self) -> usize {
        self.limit_bytes
    }

    /// Notes a run to which nothing will be added.
    pub fn completed(&mut self, first: Position, size_bytes: usize) {
        self.bytes += size_bytes;
        self.complete.insert(first, size_bytes);
    }

    /// Forgets a run that the log does not hold any more, or not in memory.
    pub fn removed(&mut self, first: Position) {
        self.bytes -= self.complete.remove(&first).unwrap_or_default();
    }

    /// Returns the first position of a run that should lie in a file, and the file. `None` if there is none.
    pub fn overdue(&mut self) -> Option<(Position, Arc<ScratchFile>)> {
        if self.bytes <= self.limit_bytes {
            return None;
        }
        let file = self.file()?;
        let (first, size_bytes) = self.complete.pop_first()?;
        self.bytes -= size_bytes;
        Some((first, file))
    }

    /// Returns the file, which is created if need be. `None` if it cannot be.
    pub fn file(&mut self) -> Option<Arc<ScratchFile>> {
        if self.file.is_none() && !self.has_failed {
            let made = long_text::scratch_file().map(Arc::new);
            self.has_failed = made.is_err();
            self.file = made.ok();
        }
        self.file.clone()
    }

    /// Gives the file back if no run is in it.
    pub fn tidy(&mut self) {
        if self.file.as_ref().is_some_and(|it| Arc::strong_count(it) == 1) {
            self.file = None;
        }
    }
}
