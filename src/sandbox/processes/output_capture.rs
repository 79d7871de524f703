//! The output of a command: beginning and end in memory, and a log file once it is long.

use std::{collections::VecDeque, fs::File, io::Write, path::PathBuf};

use crate::os::file;

/// Kept from the beginning.
const HEAD_BYTES: usize = 256 << 10;
/// Kept from the end.
const TAIL_BYTES: usize = 768 << 10;
/// Kept of each stream when they are kept apart.
const APART_BYTES: usize = 1 << 20;
/// From here on there is a file.
const SHORT_BYTES: u64 = 32 << 10;
/// Maximum size of the log file, in bytes: a command in a loop must not fill the disk.
const MOST_LOGGED: u64 = 256 << 20;

/// The output of one command.
#[derive(Debug)]
pub struct Printed {
    head: Vec<u8>,
    tail: VecDeque<u8>,
    total: u64,
    path: PathBuf,
    log: Log,
    /// The same by stream, if it is kept apart.
    apart: Option<Apart>,
}

#[derive(Debug)]
enum Log {
    NotYet,
    Open {
        file: File,
        bytes: u64,
    },
    Full,
    /// The file could not be created or written, for this reason.
    Failed(String),
}

/// Standard output and standard error of a command, the beginning of each.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Apart {
    pub output: Vec<u8>,
    pub errors: Vec<u8>,
}

impl Apart {
    pub fn push(&mut self, stream: Stream, bytes: &[u8]) {
        let kept = match stream {
            Stream::Output => &mut self.output,
            Stream::Errors => &mut self.errors,
        };
        let free = APART_BYTES.saturating_sub(kept.len()).min(bytes.len());
        kept.extend_from_slice(bytes.get(..free).unwrap_or_default());
    }
}

/// One of the two streams that a command writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stream {
    Output,
    Errors,
}

/// A part of an output.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Excerpt {
    pub first: Vec<u8>,
    /// Number of bytes left out between `first` and `last`.
    pub skipped: u64,
    pub last: Vec<u8>,
    /// Position at which the next part begins, in bytes.
    pub end: u64,
}

impl Printed {
    pub fn new(log: PathBuf, is_apart: bool) -> Self {
        Self {
            head: Vec::new(),
            tail: VecDeque::new(),
            total: 0,
            path: log,
            log: Log::NotYet,
            apart: is_apart.then(Apart::default),
        }
    }

    /// Returns standard output and standard error so far, if they are kept apart.
    pub fn apart(&self) -> Option<&Apart> {
        self.apart.as_ref()
    }

    /// Takes the next output of one stream.
    pub fn push_from(&mut self, stream: Stream, bytes: &[u8]) {
        if let Some(apart) = &mut self.apart {
            apart.push(stream, bytes);
        }
        self.push(bytes);
    }

    pub fn push(&mut self, bytes: &[u8]) {
        self.total += bytes.len() as u64;
        if matches!(self.log, Log::NotYet) && self.total > SHORT_BYTES {
            self.log = match file::append(&self.path) {
                // All that came before is still in the head, which is longer than what is short.
                Ok(file) => Log::Open { file, bytes: 0 },
                Err(error) => {
                    tracing::warn!(%error, "the log of a command cannot be written");
                    let cause = std::error::Error::source(&error).map(|it| format!(": {it}"));
                    Log::Failed(format!("{error}{}", cause.unwrap_or_default()))
                }
            };
            let before = std::mem::take(&mut self.head);
            self.write(&before);
            self.head = before;
        }
        self.write(bytes);
        let free = HEAD_BYTES.saturating_sub(self.head.len()).min(bytes.len());
        let (first, rest) = bytes.split_at(free);
        self.head.extend_from_slice(first);
        let spare = (self.tail.len() + rest.len())
            .saturating_sub(TAIL_BYTES)
            .min(self.tail.len());
        self.tail.drain(..spare);
        let start = rest.len().saturating_sub(TAIL_BYTES);
        self.tail.extend(rest.get(start..).unwrap_or_default());
    }

    fn write(&mut self, bytes: &[u8]) {
        let Log::Open { file, bytes: written } = &mut self.log else {
            return;
        };
        let size = bytes.len() as u64;
        if *written + size > MOST_LOGGED {
            file.write_all(b"\n[the log ends here]\n").ok();
            self.log = Log::Full;
            return;
        }
        match file.write_all(bytes) {
            Ok(()) => *written += size,
            Err(error) => {
                tracing::warn!(%error, "the log of a command cannot be written");
                self.log = Log::Failed(error.to_string());
            }
        }
    }

    /// Returns the number of bytes printed so far.
    pub fn total(&self) -> u64 {
        self.total
    }

    /// The file that holds all of it, if there is one.
    pub fn log(&self) -> Option<PathBuf> {
        matches!(self.log, Log::Open { .. } | Log::Full).then(|| self.path.clone())
    }

    /// Returns the reason why a log file is missing. `None`: it is not.
    pub fn log_failure(&self) -> Option<String> {
        match &self.log {
            Log::Failed(why) => Some(why.clone()),
            Log::NotYet | Log::Open { .. } | Log::Full => None,
        }
    }

    /// From the byte `start` on, as far as it is kept.
    pub fn since(&self, start: u64) -> Excerpt {
        let head = self.head.len() as u64;
        let tail_start = self.total - self.tail.len() as u64;
        let index = |it: u64| usize::try_from(it).unwrap_or(usize::MAX);
        let first = self.head.get(index(start)..).unwrap_or_default().to_vec();
        let from = start.max(head);
        let skipped = tail_start.saturating_sub(from);
        let last = self
            .tail
            .iter()
            .skip(index(from.saturating_sub(tail_start)))
            .copied()
            .collect();
        Excerpt {
            first,
            skipped,
            last,
            end: self.total,
        }
    }
}

impl Excerpt {}

#[cfg(test)]
mod tests {
    use super::*;
    use pretty_assertions::assert_eq;
    use proptest::prelude::*;

    fn bytes(count: usize) -> Vec<u8> {
        (0..count).map(|it| (it % 251) as u8).collect()
    }

    #[test]
    fn short_output_needs_no_file_and_long_output_is_in_it_whole() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log");
        let mut printed = Printed::new(path.clone(), false);
        let all = bytes(3 << 20);
        let short = usize::try_from(SHORT_BYTES).unwrap();
        printed.push(&all[..short]);
        assert_eq!((printed.log(), path.exists()), (None, false));
        for piece in all[short..].chunks(70_000) {
            printed.push(piece);
        }
        assert_eq!(printed.log(), Some(path.clone()));
        assert!(std::fs::read(path).unwrap() == all);
        assert!(printed.head.capacity() <= 2 * HEAD_BYTES && printed.tail.capacity() <= 4 * TAIL_BYTES);
    }

    #[test]
    fn where_no_file_can_be_made_the_rest_goes_on() {
        let mut printed = Printed::new(PathBuf::from("/nowhere/log"), false);
        printed.push(&bytes(100_000));
        assert_eq!((printed.log(), printed.total()), (None, 100_000));
        assert!(printed.since(0).first == bytes(100_000));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn a_part_is_what_was_printed_but_for_what_it_says(
            pieces in prop::collection::vec(0..500_000_usize, 0..8),
            start in 0..2_000_000_u64,
        ) {
            let total: usize = pieces.iter().sum();
            let all = bytes(total);
            let mut printed = Printed::new(PathBuf::from("/nowhere/log"), false);
            let mut at = 0;
            for piece in pieces {
                printed.push(&all[at..at + piece]);
                at += piece;
            }
            let found = printed.since(start);
            let start = usize::try_from(start).unwrap().min(total);
            let skipped = usize::try_from(found.skipped).unwrap();
            prop_assert_eq!(found.first.len() + skipped + found.last.len(), total - start);
            prop_assert!(found.first == all[start..start + found.first.len()]);
            prop_assert!(found.last == all[total - found.last.len()..]);
            prop_assert_eq!(found.end, total as u64);
            prop_assert!(total > HEAD_BYTES + TAIL_BYTES || skipped == 0);
        }
    }
}
