//! One file searched: by ripgrep's engine, into what of it is held.

use std::{
    fs::File,
    io::{self, Read},
    ops::Range,
    path::Path,
};

use grep_matcher::Matcher;
use grep_regex::RegexMatcher;
use grep_searcher::{Searcher, Sink, SinkContext, SinkContextKind, SinkFinish, SinkMatch};

use super::Search;
use crate::tools::walk::{self, Until};

/// Characters of a line.
pub(super) const MOST_CHARACTERS: usize = 500;
/// Memory for one file: a line, or all of it when a match may span lines.
pub(super) const HEAP_BYTES: usize = 64 << 20;

/// The matches in one file.
#[derive(Default)]
pub(super) struct FileMatches {
    pub(super) count: u64,
    pub(super) lines: Vec<Line>,
}

/// A line to be shown.
pub(super) struct Line {
    pub(super) number: u64,
    pub(super) kind: Kind,
    pub(super) text: String,
}

/// The part of a line in a result.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// The first line of a match.
    Match,
    /// Another line of a match that spans several.
    More,
    Context,
    /// Between places that are not neighbours.
    Break,
}

/// Takes what is found in one file.
struct Collect<'a> {
    search: &'a Search,
    /// The matches, counted from nought, whose lines are held.
    held: Range<u64>,
    found: FileMatches,
    bytes: usize,
    is_binary: bool,
}

impl Collect<'_> {
    /// Returns true if the lines of the match with this number, counted from 0, are kept.
    fn holds(&self, number: Option<u64>) -> bool {
        number.is_some_and(|it| self.held.contains(&it)) && self.bytes <= self.search.most.bytes
    }

    fn push(&mut self, number: Option<u64>, kind: Kind, text: String) {
        // Never more than the row will be: what is not held has no room on the page either.
        self.bytes += text.len() + 3;
        self.found.lines.push(Line {
            number: number.unwrap_or_default(),
            kind,
            text,
        });
    }
}

impl Sink for Collect<'_> {
    type Error = io::Error;

    fn matched(&mut self, _: &Searcher, found: &SinkMatch<'_>) -> io::Result<bool> {
        let number = self.found.count;
        self.found.count += 1;
        if self.holds(Some(number)) {
            for (at, line) in found.lines().enumerate() {
                if self.bytes > self.search.most.bytes {
                    break;
                }
                let text = cut(line, Some(&self.search.matcher));
                let kind = if at == 0 { Kind::Match } else { Kind::More };
                self.push(found.line_number().map(|it| it + at as u64), kind, text);
            }
        }
        Ok(self.found.count < self.search.enough_in_file())
    }

    fn context(&mut self, _: &Searcher, context: &SinkContext<'_>) -> io::Result<bool> {
        let number = match context.kind() {
            SinkContextKind::Before => Some(self.found.count),
            SinkContextKind::After => self.found.count.checked_sub(1),
            SinkContextKind::Other => None,
        };
        if self.holds(number) {
            self.push(context.line_number(), Kind::Context, cut(context.bytes(), None));
        }
        Ok(true)
    }

    fn context_break(&mut self, _: &Searcher) -> io::Result<bool> {
        if self.found.lines.last().is_some_and(|it| it.kind != Kind::Break) && self.holds(Some(self.found.count)) {
            self.push(None, Kind::Break, String::new());
        }
        Ok(true)
    }

    fn binary_data(&mut self, _: &Searcher, _: u64) -> io::Result<bool> {
        self.is_binary = true;
        Ok(false)
    }

    fn finish(&mut self, _: &Searcher, finish: &SinkFinish) -> io::Result<()> {
        self.is_binary |= finish.binary_byte_offset().is_some();
        Ok(())
    }
}

/// A line as it is shown: not more of it than helps, and the match in it.
fn cut(line: &[u8], matcher: Option<&RegexMatcher>) -> String {
    let line = line.strip_suffix(b"\n").unwrap_or(line);
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    if line.len() <= MOST_CHARACTERS {
        return String::from_utf8_lossy(line).into_owned();
    }
    let at = matcher
        .and_then(|it| it.find(line).ok().flatten())
        .map_or(0, |it| it.start());
    // A fifth of what is shown stands in front of the match.
    let start = if at < MOST_CHARACTERS / 2 {
        0
    } else {
        at - MOST_CHARACTERS / 5
    };
    // Four bytes hold any character, and the middle of one at the start is left out.
    let is_inner = |it: &&u8| **it & 0b1100_0000 == 0b1000_0000;
    let inner = line.iter().skip(start).take(3).take_while(is_inner).count();
    let window = line.get(start + inner..).unwrap_or_default();
    let part = window.get(..MOST_CHARACTERS * 4).unwrap_or(window);
    let part = String::from_utf8_lossy(part);
    let shown: String = part.chars().take(MOST_CHARACTERS).collect();
    let front = if start > 0 { "… " } else { "" };
    let behind = if shown.len() < window.len() { " …" } else { "" };
    format!("{front}{shown}{behind} [a line of {} bytes]", line.len())
}

/// A file that stops to be read when nobody waits any more.
struct Watched<'a> {
    file: File,
    until: &'a Until,
}

impl Read for Watched<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.until.is_over() {
            return Err(io::Error::other("nobody waits"));
        }
        self.file.read(buffer)
    }
}

/// The searcher of one thread.
pub(super) struct Eye {
    searcher: Searcher,
    /// Most files are shorter: they are read at once and searched where they lie. No longer than the piece of a file in which
    /// the engine looks for binary data.
    buffer: Vec<u8>,
}

impl Eye {
    /// A searcher for a compiled search.
    pub(super) fn new(search: &Search) -> Self {
        Self {
            searcher: search.searcher(),
            buffer: vec![0; 64 << 10],
        }
    }

    /// The matches in a file, with the lines of some of them; `None`: it is binary or cannot be read.
    pub(super) fn look(
        &mut self,
        path: &Path,
        search: &Search,
        held: Range<u64>,
        until: &Until,
    ) -> Option<FileMatches> {
        let mut file = walk::open(path).ok()?;
        let mut sink = Collect {
            search,
            held,
            found: FileMatches::default(),
            bytes: 0,
            is_binary: false,
        };
        let mut length = 0;
        let is_whole = loop {
            let Some(room) = self.buffer.get_mut(length..).filter(|it| !it.is_empty()) else {
                break false;
            };
            match file.read(room) {
                Ok(0) => break true,
                Ok(more) => length += more,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => return None,
            }
        };
        let front = self.buffer.get(..length).unwrap_or_default();
        let done = if is_whole {
            self.searcher.search_slice(&search.matcher, front, &mut sink)
        } else {
            let rest = Watched { file, until };
            self.searcher
                .search_reader(&search.matcher, front.chain(rest), &mut sink)
        };
        (done.is_ok() && !sink.is_binary).then_some(sink.found)
    }
}
