//! Memory limit of the deltas in a log. Complete runs above it move to a scratch file.

use std::{collections::BTreeMap, sync::Arc};

use crate::{
    os::{long_text, scratch::ScratchFile},
    protocol::Position,
};

/// Default limit in bytes.
const DEFAULT_BYTES: usize = 1 << 20;

/// The sizes of the complete runs in memory, and the file for the others.
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
        Self::of(DEFAULT_BYTES)
    }
}

impl DeltaMemory {
    /// Creates it with a limit in bytes.
    pub fn of(limit_bytes: usize) -> Self {
        Self {
            limit_bytes,
            complete: BTreeMap::new(),
            bytes: 0,
            file: None,
            has_failed: false,
        }
    }

    /// Maximum size of the runs in memory, in bytes.
    pub fn limit_bytes(&self) -> usize {
        self.limit_bytes
    }

    /// Adds a run that grows no more.
    pub fn completed(&mut self, first: Position, size_bytes: usize) {
        self.bytes += size_bytes;
        self.complete.insert(first, size_bytes);
    }

    /// Removes a run that the log has dropped or moved to the file.
    pub fn removed(&mut self, first: Position) {
        self.bytes -= self.complete.remove(&first).unwrap_or_default();
    }

    /// Removes the oldest run while the limit is exceeded: returns its first position, and the file for it. `None` below the
    /// limit, and without a file.
    pub fn overdue(&mut self) -> Option<(Position, Arc<ScratchFile>)> {
        if self.bytes <= self.limit_bytes {
            return None;
        }
        let file = self.file()?;
        let (first, size_bytes) = self.complete.pop_first()?;
        self.bytes -= size_bytes;
        Some((first, file))
    }

    /// Returns the file, created when needed. `None` if that fails.
    pub fn file(&mut self) -> Option<Arc<ScratchFile>> {
        if self.file.is_none() && !self.has_failed {
            let made = long_text::scratch_file().map(Arc::new);
            self.has_failed = made.is_err();
            self.file = made.ok();
        }
        self.file.clone()
    }

    /// Closes the file if no run is in it.
    pub fn tidy(&mut self) {
        if self.file.as_ref().is_some_and(|it| Arc::strong_count(it) == 1) {
            self.file = None;
        }
    }
}
