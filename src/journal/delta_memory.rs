//! Memory limit of the deltas in a log. Complete runs above it move to a scratch file.

use std::{collections::BTreeMap, sync::Arc};

use crate::{os::scratch::ScratchFile, protocol::Position};

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
    /// Size in bytes at which the disk is tried again; 0 if it has not failed.
    retry_at: usize,
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
            retry_at: 0,
        }
    }

    /// Adds a run that grows no more. One that is here counts once.
    pub fn completed(&mut self, first: Position, size_bytes: usize) {
        let before = self.complete.insert(first, size_bytes).unwrap_or_default();
        self.bytes = self.bytes - before + size_bytes;
    }

    /// Removes a run that the log has dropped or moved to the file.
    pub fn removed(&mut self, first: Position) {
        self.bytes -= self.complete.remove(&first).unwrap_or_default();
    }

    /// Returns true if a run should move to the file.
    pub fn is_full(&self) -> bool {
        self.bytes > self.limit_bytes.max(self.retry_at) && !self.complete.is_empty()
    }

    /// Removes the oldest run while the limit is exceeded: returns its first position. `None` below the limit, and while the disk
    /// has failed a moment ago.
    pub fn overdue(&mut self) -> Option<Position> {
        let is_full = self.is_full();
        let (first, size_bytes) = is_full.then(|| self.complete.pop_first()).flatten()?;
        self.bytes -= size_bytes;
        Some(first)
    }

    /// Size in bytes of the complete runs in memory.
    #[cfg(test)]
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// The file. `None` if there is none yet.
    pub fn file(&self) -> Option<Arc<ScratchFile>> {
        self.file.clone()
    }

    /// Takes a file that was made for it.
    pub fn set_file(&mut self, file: &Arc<ScratchFile>) {
        self.file = Some(Arc::clone(file));
        self.retry_at = 0;
    }

    /// A run could not be moved: it is counted again, and there is another attempt when twice as much is here.
    pub fn failed(&mut self, first: Position, size_bytes: usize) {
        self.completed(first, size_bytes);
        self.retry_at = self.bytes * 2;
    }

    /// Closes the file if no run is in it.
    pub fn tidy(&mut self) {
        if self.file.as_ref().is_some_and(|it| Arc::strong_count(it) == 1) {
            self.file = None;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_counted_is_what_is_there() {
        let mut memory = DeltaMemory::of(10);
        memory.completed(Position(1), 8);
        // A run that ended twice, because what was between has gone, is there once.
        memory.completed(Position(1), 8);
        assert!(!memory.is_full(), "{memory:?}");
        memory.completed(Position(5), 8);
        assert_eq!(memory.overdue(), Some(Position(1)));
        assert_eq!(memory.overdue(), None);
        // What the disk did not take is still there, and the disk is tried again when there is more.
        memory.completed(Position(9), 8);
        assert_eq!(memory.overdue(), Some(Position(5)));
        memory.failed(Position(5), 8);
        assert_eq!((memory.bytes, memory.overdue()), (16, None));
        for at in 10..13 {
            memory.completed(Position(at), 8);
        }
        assert_eq!(memory.overdue(), Some(Position(5)));
        for at in [9, 10, 11, 12, 5] {
            memory.removed(Position(at));
        }
        assert_eq!((memory.bytes, memory.complete.len()), (0, 0));
    }
}
