//! How much of a result a model is given, and how long it is looked for: what agents need in common, in one place.

use std::time::Duration;

/// Bytes, lines, characters and entries that a tool gives at most. What is left out is said in the result, with the way to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Of one reading of a file; a line is cut after so many characters.
    pub read_lines: u64,
    pub read_bytes: u64,
    pub line_characters: u64,
    /// Of one `grep`.
    pub grep_matches: u64,
    pub grep_files: u64,
    pub grep_bytes: u64,
    /// Of a search by name, and of a listing.
    pub glob_files: u64,
    pub list_entries: u64,
    /// Of a search by words.
    pub search_chunks: u64,
    pub search_bytes: u64,
    /// A search that takes longer shows what it has.
    pub search_time: Duration,
    /// Of what a command printed: its beginning and its end.
    pub output_head: u64,
    pub output_tail: u64,
    /// Of a page: what is loaded, what is given of its text, how often it may lead elsewhere, and how long all of it may take.
    pub fetch_bytes: u64,
    pub fetch_text: u64,
    pub fetch_redirects: u64,
    pub fetch_time: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            read_lines: 2000,
            read_bytes: 256 << 10,
            line_characters: 2000,
            grep_matches: 200,
            grep_files: 100,
            grep_bytes: 64 << 10,
            glob_files: 200,
            list_entries: 500,
            search_chunks: 10,
            search_bytes: 32 << 10,
            search_time: Duration::from_secs(10),
            output_head: 8 << 10,
            output_tail: 24 << 10,
            fetch_bytes: 1 << 20,
            fetch_text: 48 << 10,
            fetch_redirects: 5,
            fetch_time: Duration::from_secs(20),
        }
    }
}

/// A limit as a size in memory; one that is larger than that is none.
pub fn size(limit: u64) -> usize {
    usize::try_from(limit).unwrap_or(usize::MAX)
}
