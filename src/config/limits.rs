//! Limits of tool results: how much a model gets, and how long tools may take.

use std::time::Duration;

/// Maximum sizes of tool results. A result that is cut says so, and how to get the rest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ResultLimits {
    /// Lines of one `read_file` result.
    pub read_lines: u64,
    /// Bytes of one `read_file` result.
    pub read_bytes: u64,
    /// Characters after which a line of a file is cut.
    pub line_characters: u64,
    /// Matches of one `grep` result.
    pub grep_matches: u64,
    /// Files of one `grep` result.
    pub grep_files: u64,
    /// Bytes of one `grep` result.
    pub grep_bytes: u64,
    /// Files of one search by name.
    pub glob_files: u64,
    /// Entries of one folder listing.
    pub list_entries: u64,
    /// Chunks of one `codebase_search` result.
    pub search_chunks: u64,
    /// Bytes of one `codebase_search` result.
    pub search_bytes: u64,
    /// Time after which a search returns what it has found so far.
    pub search_time: Duration,
    /// Bytes from the beginning of a command's output.
    pub output_head: u64,
    /// Bytes from the end of a command's output.
    pub output_tail: u64,
    /// Bytes of a web page that are downloaded.
    pub fetch_bytes: u64,
    /// Bytes of a web page's text for the model.
    pub fetch_text: u64,
    /// Number of redirects that a page may take.
    pub fetch_redirects: u64,
    /// Total time for one page.
    pub fetch_time: Duration,
}

impl Default for ResultLimits {
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

/// Converts a limit to `usize`; a larger one becomes the maximum.
pub fn size(limit: u64) -> usize {
    usize::try_from(limit).unwrap_or(usize::MAX)
}
