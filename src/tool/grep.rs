//! `grep`: lines that match a regular expression, by ripgrep's own engine.
//!
//! The files are listed and put in order first, then searched on several threads. As soon as the files at the front hold
//! enough matches, nothing behind them is looked at: so the answer is the same every time, can be paged through, and a
//! pattern that matches everywhere costs no more than what is shown. What was not looked at is why totals are "at least".

use std::{
    collections::BTreeMap,
    fs::File,
    io::{self, Read},
    ops::Range,
    path::{Path, PathBuf},
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
};

use grep_matcher::{LineTerminator, Matcher};
use grep_regex::{ErrorKind, RegexMatcher, RegexMatcherBuilder};
use grep_searcher::{
    BinaryDetection, Searcher, SearcherBuilder, Sink, SinkContext, SinkContextKind, SinkFinish, SinkMatch,
};
use serde_json::{Map, Value, json};

use super::{
    Class, Fault, Input, Outcome, Tool, Work,
    arguments::truth,
    walk::{self, Filter, Until},
};
use crate::{config, protocol::Mode, sandbox::Workspace};

pub const TOOL: Tool = Tool {
    name: "grep",
    aliases: &["Grep", "grep_search", "rg"],
    about: "Search file contents with a regular expression (Rust syntax, as ripgrep). Best for exact names and texts. \
            Escape what is meant literally, such as `foo\\(`. Results are grouped by file: `21:text` is a match, `20-text` \
            its context. `head_limit` and `offset` count matches, or files with the other output modes. Hidden files are \
            searched, ignored files are not.",
    class: Class::Reads,
    modes: &Mode::ALL,
    schema: || {
        json!({
            "type": "object",
            "properties": {
                "pattern": { "type": "string", "description": "Regular expression, Rust regex syntax" },
                "path": { "type": "string", "description": "File or directory, default workspace" },
                "glob": { "type": "string", "description": "Filter such as *.rs or *.{ts,tsx}" },
                "type": { "type": "string", "description": "ripgrep file type such as rust, py" },
                "output_mode": { "type": "string", "enum": ["content", "files_with_matches", "count"] },
                "-A": { "type": "integer" },
                "-B": { "type": "integer" },
                "-C": { "type": "integer" },
                "-i": { "type": "boolean" },
                "multiline": { "type": "boolean" },
                "head_limit": { "type": "integer" },
                "offset": { "type": "integer" }
            },
            "required": ["pattern"]
        })
    },
    synonyms: &[
        ("pattern", &["query", "regex"]),
        ("path", &["target_directory", "directory", "dir_path"]),
        ("output_mode", &["outputMode"]),
        ("-A", &["context_after", "A", "after_context"]),
        ("-B", &["context_before", "B", "before_context"]),
        ("-C", &["context", "C"]),
        ("-i", &["ignore_case", "i", "case_insensitive"]),
        ("head_limit", &["headLimit"]),
    ],
    work: Work::Call {
        touches: |input, context| walk::reads("path", input, context),
        run: |input, context| {
            Box::pin(async move {
                let workspace = context.workspace.clone();
                walk::away(&context, move |until| search(&workspace, &input, until)).await
            })
        },
    },
};

/// `grep_search {query, case_sensitive, include_pattern, exclude_pattern}`, which ignored case unless told.
pub fn fold(given: &mut Map<String, Value>) {
    let is_old = ["case_sensitive", "include_pattern", "exclude_pattern"]
        .iter()
        .any(|it| given.contains_key(*it));
    let has = |given: &Map<String, Value>, name: &str| given.get(name).is_some_and(|it| !it.is_null());
    if !has(given, "-i") && !has(given, "ignore_case") && (is_old || (has(given, "query") && !has(given, "pattern"))) {
        let is_exact = given.get("case_sensitive").and_then(truth).unwrap_or_default();
        given.insert("-i".to_owned(), Value::Bool(!is_exact));
    }
    if !has(given, "glob") {
        let text = |name: &str| given.get(name).and_then(Value::as_str).filter(|it| !it.is_empty());
        let without = text("exclude_pattern").map(|it| format!("!{it}"));
        let globs: Vec<_> = text("include_pattern")
            .map(str::to_owned)
            .into_iter()
            .chain(without)
            .collect();
        if !globs.is_empty() {
            given.insert("glob".to_owned(), Value::String(globs.join(",")));
        }
    }
}

/// Lines around a match.
const MOST_CONTEXT: i64 = 100;
/// Characters of a line.
const MOST_CHARACTERS: usize = 500;
/// How far one can page.
const MOST_OFFSET: i64 = 10_000;
/// What a file may take in memory: a line, or all of it when a match may span lines.
const HEAP_BYTES: usize = 64 << 20;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Show {
    Content,
    Files,
    Count,
}

impl Show {
    const ALL: [(Self, &str); 3] = [
        (Self::Content, "content"),
        (Self::Files, "files_with_matches"),
        (Self::Count, "count"),
    ];

    fn read(word: Option<&str>) -> Result<Self, Fault> {
        let Some(word) = word.filter(|it| !it.is_empty()) else {
            return Ok(Self::Content);
        };
        let found = Self::ALL.iter().find(|(_, it)| *it == word);
        found.map(|(it, _)| *it).ok_or_else(|| {
            Fault::new(
                "TOOL_ARGUMENTS_INVALID",
                format!("there is no output mode called `{word}`"),
            )
            .hint("The modes are content, files_with_matches and count.")
        })
    }

    fn word(self) -> &'static str {
        let found = Self::ALL.iter().find(|(it, _)| *it == self);
        found.map_or("content", |(_, word)| word)
    }
}

/// How much is shown at most.
#[derive(Clone, Copy)]
struct Most {
    matches: usize,
    files: usize,
    bytes: usize,
}

/// A call, read.
struct Search {
    matcher: RegexMatcher,
    show: Show,
    is_multiline: bool,
    before: usize,
    after: usize,
    /// Matches or files that are not shown, and how many are.
    offset: usize,
    limit: usize,
    /// The most of both, and of bytes, that are shown at all.
    most: Most,
    /// What the model should know about how its pattern was taken.
    note: Option<String>,
}

impl Search {
    fn read(input: &Input, limits: &config::Limits) -> Result<Self, Fault> {
        let most = Most {
            matches: config::size(limits.grep_matches),
            files: config::size(limits.grep_files),
            bytes: config::size(limits.grep_bytes),
        };
        let pattern = input.text("pattern").unwrap_or_default();
        let show = Show::read(input.text("output_mode"))?;
        let lines = |name: &str| {
            let given = input.integer(name).or_else(|| input.integer("-C"));
            given.unwrap_or(0).clamp(0, MOST_CONTEXT) as usize
        };
        let fitting = if show == Show::Content {
            most.matches
        } else {
            most.files
        };
        let limit = input.integer("head_limit").filter(|it| *it > 0);
        let is_multiline = input.flag("multiline");
        let (matcher, is_multiline, note) = matcher(pattern, input.flag("-i"), is_multiline)?;
        let is_content = show == Show::Content;
        Ok(Self {
            matcher,
            show,
            is_multiline,
            before: if is_content { lines("-B") } else { 0 },
            after: if is_content { lines("-A") } else { 0 },
            offset: input.integer("offset").unwrap_or(0).clamp(0, MOST_OFFSET) as usize,
            limit: limit.map_or(fitting, |it| usize::try_from(it).unwrap_or(fitting).min(fitting)),
            most,
            note,
        })
    }

    /// How many matches of one file are counted.
    fn enough_in_file(&self) -> u64 {
        match self.show {
            Show::Content => (self.offset + self.most.matches + 1) as u64,
            Show::Files => 1,
            Show::Count => u64::MAX,
        }
    }

    /// The matches that are shown if all are in one file.
    fn held(&self) -> Range<u64> {
        match self.show {
            Show::Content => self.offset as u64..(self.offset + self.limit) as u64,
            Show::Files | Show::Count => 0..0,
        }
    }

    fn searcher(&self) -> Searcher {
        let mut builder = SearcherBuilder::new();
        builder
            .line_number(self.show == Show::Content)
            .multi_line(self.is_multiline)
            .before_context(self.before)
            .after_context(self.after)
            .heap_limit(Some(HEAP_BYTES))
            .binary_detection(BinaryDetection::quit(0));
        if !self.is_multiline {
            builder.line_terminator(LineTerminator::crlf());
        }
        builder.build()
    }
}

/// The pattern as a matcher, whether it spans lines, and what had to be changed for that.
fn matcher(
    pattern: &str,
    ignores_case: bool,
    is_multiline: bool,
) -> Result<(RegexMatcher, bool, Option<String>), Fault> {
    let build = |is_literal: bool, is_multiline: bool| {
        let mut builder = RegexMatcherBuilder::new();
        builder
            .case_insensitive(ignores_case)
            .multi_line(true)
            .fixed_strings(is_literal)
            .dot_matches_new_line(is_multiline)
            .size_limit(16 << 20)
            .dfa_size_limit(64 << 20);
        if !is_multiline {
            builder.crlf(true);
        }
        builder.build(pattern)
    };
    let error = match build(false, is_multiline) {
        Ok(matcher) => return Ok((matcher, is_multiline, None)),
        Err(error) => error,
    };
    if let ErrorKind::NotAllowed(_) = error.kind()
        && let Ok(matcher) = build(false, true)
    {
        let note = "The pattern holds a line break: it was searched for across lines, as with multiline.";
        return Ok((matcher, true, Some(note.to_owned())));
    }
    let reason = error.to_string();
    let reason = reason
        .lines()
        .rev()
        .find(|it| !it.trim().is_empty())
        .unwrap_or_default()
        .trim();
    let reason = reason.strip_prefix("error: ").unwrap_or(reason).to_owned();
    let spans = pattern.contains('\n');
    match build(true, is_multiline || spans) {
        Ok(matcher) => {
            let note = format!(
                "`{}` is no regular expression ({reason}): it was searched for as plain text.",
                walk::shortened(pattern, 100)
            );
            Ok((matcher, is_multiline || spans, Some(note)))
        }
        Err(_) => Err(Fault::new(
            "TOOL_ARGUMENTS_INVALID",
            format!("the pattern cannot be searched for: {reason}"),
        )),
    }
}

/// What one file holds.
#[derive(Default)]
struct Found {
    count: u64,
    lines: Vec<Line>,
}

struct Line {
    number: u64,
    kind: Kind,
    text: String,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
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
    found: Found,
    bytes: usize,
    is_binary: bool,
}

impl Collect<'_> {
    /// Whether lines of the match of this number, counted from nought, are held.
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

/// What one thread searches with.
struct Eye {
    searcher: Searcher,
    /// Most files are shorter: they are read at once and searched where they lie. No longer than the piece of a file in which
    /// the engine looks for binary data.
    buffer: Vec<u8>,
}

impl Eye {
    fn new(search: &Search) -> Self {
        Self {
            searcher: search.searcher(),
            buffer: vec![0; 64 << 10],
        }
    }

    /// What a file holds, with the lines of some matches; `None`: it is binary or cannot be read.
    fn look(&mut self, path: &Path, search: &Search, held: Range<u64>, until: &Until) -> Option<Found> {
        let mut file = walk::open(path).ok()?;
        let mut sink = Collect {
            search,
            held,
            found: Found::default(),
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

/// What the threads have found so far.
struct State {
    /// By the place of the file in the list; files without a match are not in it.
    found: BTreeMap<usize, Found>,
    /// Files that were looked at; told at the end.
    searched: usize,
    /// Those of them that could not be searched.
    refused: usize,
    /// Nothing behind this file is wanted.
    last: usize,
}

impl State {
    /// Forgets what cannot be shown any more: the files in front of it hold enough, and more cannot become less.
    fn settle(&mut self, search: &Search) {
        let mut matches = 0;
        let mut files = 0;
        let by_match = search.show == Show::Content;
        let last = self.found.iter().find_map(|(at, found)| {
            matches += found.count;
            files += 1;
            let is_enough = if by_match {
                matches > (search.offset + search.most.matches) as u64 || files > search.offset + search.most.files
            } else {
                files > search.offset + search.most.files
            };
            is_enough.then_some(*at)
        });
        if let Some(last) = last {
            self.last = last;
            self.found.split_off(&(last + 1));
        }
    }
}

fn search(workspace: &Workspace, input: &Input, until: &Until) -> Result<Outcome, Fault> {
    let place = walk::existing(walk::place(workspace, input.text("path"))?)?;
    let search = Search::read(input, &until.limits)?;
    let filter = Filter::new(workspace, input.text("glob"), input.text("type"))?;
    let listing = walk::files(&mut workspace.walker(&place)?, &filter, until);
    let files = listing.files;
    let state = Mutex::new(State {
        found: BTreeMap::new(),
        refused: 0,
        searched: 0,
        last: usize::MAX,
    });
    let next = AtomicUsize::new(0);
    let last = AtomicUsize::new(usize::MAX);
    let (searched, refused) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let work = || {
        let mut eye = Eye::new(&search);
        loop {
            let at = next.fetch_add(1, Ordering::Relaxed);
            let Some(path) = files.get(at).filter(|_| at <= last.load(Ordering::Relaxed)) else {
                return;
            };
            if until.is_over() {
                return;
            }
            let found = eye.look(path, &search, search.held(), until);
            searched.fetch_add(1, Ordering::Relaxed);
            match found {
                None => {
                    refused.fetch_add(1, Ordering::Relaxed);
                }
                Some(found) if found.count == 0 => {}
                Some(found) => {
                    let mut state = state.lock().unwrap_or_else(PoisonError::into_inner);
                    state.found.insert(at, found);
                    state.settle(&search);
                    last.store(state.last, Ordering::Relaxed);
                }
            }
        }
    };
    std::thread::scope(|scope| {
        for _ in 1..walk::threads().min(files.len()) {
            scope.spawn(work);
        }
        work();
    });
    let mut state = state.into_inner().unwrap_or_else(PoisonError::into_inner);
    (state.searched, state.refused) = (searched.into_inner(), refused.into_inner());
    let is_cut_short = until.is_over() || !listing.is_whole;
    let answer = Answer {
        search: &search,
        workspace,
        is_cut_short,
        files: &files,
        state,
    };
    Ok(answer.outcome(until))
}

/// What was found, to be written down.
struct Answer<'a> {
    search: &'a Search,
    workspace: &'a Workspace,
    /// The time was up.
    is_cut_short: bool,
    files: &'a [PathBuf],
    state: State,
}

impl Answer<'_> {
    fn outcome(mut self, until: &Until) -> Outcome {
        let found = std::mem::take(&mut self.state.found);
        let match_count: u64 = found.values().map(|it| it.count).sum();
        let file_count = found.len();
        let is_by_match = self.search.show == Show::Content;
        let total = if is_by_match { match_count } else { file_count as u64 };
        let is_early = self.state.last != usize::MAX;
        let mut page = if is_by_match {
            self.content(found, until)
        } else {
            self.names(&found)
        };
        let is_truncated = page.shown < total.saturating_sub(self.search.offset as u64) || self.is_cut_short;
        let at_least = if is_early || self.is_cut_short { "at least " } else { "" };
        let unit = if is_by_match { "matches" } else { "files" };
        if page.text.is_empty() {
            page.text = if total == 0 {
                let searched = self.state.searched - self.state.refused;
                format!(
                    "No matches in {searched} {}.\n",
                    if searched == 1 { "file" } else { "files" }
                )
            } else {
                format!("There are only {total} {unit}.\n")
            };
        }
        if self.is_cut_short {
            page.text.push_str(&format!(
                "[cut: the search stopped after {} s, {} of {} files were searched; narrow it with path, glob or type]\n",
                until.limits.search_time.as_secs(),
                self.state.searched,
                self.files.len(),
            ));
        } else if is_truncated {
            page.text.push_str(&format!(
                "[cut: {} of {at_least}{total} {unit} shown; use offset={}]\n",
                page.shown,
                self.search.offset as u64 + page.shown,
            ));
        }
        if self.state.refused > 0 && self.files.len() == 1 {
            page.text = format!("`{}` is no text.\n", self.shown(0));
        }
        if let Some(note) = &self.search.note {
            page.text = format!("{note}\n\n{}", page.text);
        }
        page.text.truncate(page.text.trim_end().len());
        Outcome {
            text: page.text,
            data: json!({
                "mode": self.search.show.word(),
                "matches": page.matches,
                "matchCount": match_count,
                "fileCount": file_count,
                "truncated": is_truncated,
            }),
            is_truncated,
            images: Vec::new(),
        }
    }

    fn shown(&self, at: usize) -> String {
        self.files
            .get(at)
            .map_or_else(String::new, |it| walk::shown(self.workspace, it))
    }

    /// A line for each file.
    fn names(&self, found: &BTreeMap<usize, Found>) -> Page {
        let mut page = Page::default();
        for (at, found) in found.iter().skip(self.search.offset).take(self.search.limit) {
            let path = self.shown(*at);
            let line = match self.search.show {
                Show::Count => format!("{path}:{}\n", found.count),
                Show::Files | Show::Content => format!("{path}\n"),
            };
            if page.text.len() + line.len() > self.search.most.bytes {
                break;
            }
            page.matches.push(match self.search.show {
                Show::Count => json!({ "filePath": path, "count": found.count }),
                Show::Files | Show::Content => json!({ "filePath": path }),
            });
            page.text.push_str(&line);
            page.shown += 1;
        }
        page
    }

    /// Each file's name, and below it its lines.
    fn content(&self, found: BTreeMap<usize, Found>, until: &Until) -> Page {
        let mut page = Page::default();
        let mut eye = Eye::new(self.search);
        let mut skip = self.search.offset as u64;
        let mut files = 0;
        for (at, found) in found {
            if page.shown >= self.search.limit as u64 || files >= self.search.most.files {
                break;
            }
            if skip >= found.count {
                skip -= found.count;
                continue;
            }
            let held = skip..skip + (self.search.limit as u64 - page.shown);
            // The lines that are held are those of a file that stands alone: where others come first, there are fewer.
            let is_held =
                held == self.search.held() || (held.start == self.search.held().start && found.count <= held.end);
            let found = match self.files.get(at) {
                Some(path) if !is_held => eye.look(path, self.search, held, until).unwrap_or_default(),
                Some(_) | None => found,
            };
            skip = 0;
            files += 1;
            if !self.file(&mut page, &self.shown(at), found.lines) {
                break;
            }
        }
        page
    }

    /// Adds one file. False: there was no more room.
    fn file(&self, page: &mut Page, path: &str, lines: Vec<Line>) -> bool {
        let mut text = String::new();
        if !page.text.is_empty() {
            text.push('\n');
        }
        text.push_str(path);
        text.push('\n');
        let mut is_first = true;
        // A break is written when something follows it.
        let mut is_apart = false;
        for line in lines {
            if line.kind == Kind::Match && page.shown >= self.search.limit as u64 {
                break;
            }
            let row = match line.kind {
                Kind::Match | Kind::More => format!("{}:{}\n", line.number, line.text),
                Kind::Context => format!("{}-{}\n", line.number, line.text),
                Kind::Break => {
                    is_apart = true;
                    continue;
                }
            };
            let front = if is_first {
                text.as_str()
            } else if is_apart {
                "--\n"
            } else {
                ""
            };
            if page.text.len() + front.len() + row.len() > self.search.most.bytes {
                return false;
            }
            page.text.push_str(front);
            page.text.push_str(&row);
            (is_first, is_apart) = (false, false);
            if line.kind == Kind::Match {
                page.shown += 1;
            }
            if line.kind != Kind::Context {
                page.matches
                    .push(json!({ "filePath": path, "line": line.number, "text": line.text }));
            }
        }
        true
    }
}

/// The part that is shown.
#[derive(Default)]
struct Page {
    text: String,
    matches: Vec<Value>,
    /// Matches, or files.
    shown: u64,
}

#[cfg(test)]
mod tests {
    use std::{
        io::Write as _,
        process::{Command, Stdio},
    };

    use super::{
        super::walk::tests::{Tree, input},
        *,
    };

    fn outcome(tree: &Tree, given: Value) -> Result<Outcome, Fault> {
        search(&tree.workspace, &input(&TOOL, given), &Until::done())
    }

    fn run(tree: &Tree, given: Value) -> String {
        outcome(tree, given).map_or_else(|it| it.text(), |it| it.text)
    }

    fn shop() -> Tree {
        Tree::new(&[
            ("src/cart.rs", b"use money;\n\npub struct Cart {\n    items: Vec<Item>,\n}\n\nimpl Cart {\n    pub fn total(&self) {}\n}\n"),
            ("src/money.rs", b"pub struct Money;\r\nimpl Money {}\r\n"),
            ("tests/cart.rs", b"fn Total() {}\n"),
            ("notes.txt", b"total total\nfoo(bar\n"),
            (".github/ci.yml", b"run: total\n"),
            (".git/config", b"total\n"),
            (".gitignore", b"*.log\n"),
            ("build.log", b"total\n"),
            ("blob.bin", b"total\0total\n"),
        ])
    }

    #[test]
    fn matches_are_grouped_by_file() {
        let tree = shop();
        let cases = [
            (
                "a word in several files",
                json!({ "pattern": "total" }),
                ".github/ci.yml\n1:run: total\n\nnotes.txt\n1:total total\n\nsrc/cart.rs\n8:    pub fn total(&self) {}",
            ),
            (
                "without regard to case",
                json!({ "pattern": "TOTAL", "-i": true, "path": "tests" }),
                "tests/cart.rs\n1:fn Total() {}",
            ),
            (
                "in one file",
                json!({ "pattern": "total", "path": "src/cart.rs" }),
                "src/cart.rs\n8:    pub fn total(&self) {}",
            ),
            (
                "with context",
                json!({ "pattern": "Cart", "-C": 1 }),
                "src/cart.rs\n2-\n3:pub struct Cart {\n4-    items: Vec<Item>,\n--\n6-\n7:impl Cart {\n8-    pub fn total(&self) {}",
            ),
            (
                "the own numbers win over -C",
                json!({ "pattern": "Cart", "-A": 0, "-C": 1 }),
                "src/cart.rs\n2-\n3:pub struct Cart {\n--\n6-\n7:impl Cart {",
            ),
            (
                "context of a shown match only",
                json!({ "pattern": "Cart", "-C": 1, "head_limit": 1 }),
                "src/cart.rs\n2-\n3:pub struct Cart {\n4-    items: Vec<Item>,\n[cut: 1 of 2 matches shown; use offset=1]",
            ),
            (
                "the next page",
                json!({ "pattern": "Cart", "offset": 1 }),
                "src/cart.rs\n7:impl Cart {",
            ),
            (
                "a page across files",
                json!({ "pattern": "total", "offset": 1, "head_limit": 1 }),
                "notes.txt\n1:total total\n[cut: 1 of 3 matches shown; use offset=2]",
            ),
            (
                "a page beyond the end",
                json!({ "pattern": "total", "offset": 9 }),
                "There are only 3 matches.",
            ),
            (
                "by ending",
                json!({ "pattern": "total", "glob": "*.{txt,yml}", "output_mode": "files_with_matches" }),
                ".github/ci.yml\nnotes.txt",
            ),
            (
                "by what is left out",
                json!({ "pattern": "total", "glob": "!src/**,!.github" }),
                "notes.txt\n1:total total",
            ),
            (
                "by type",
                json!({ "pattern": "total", "type": "rust" }),
                "src/cart.rs\n8:    pub fn total(&self) {}",
            ),
            (
                "counted",
                json!({ "pattern": "struct|impl", "output_mode": "count" }),
                "src/cart.rs:2\nsrc/money.rs:2",
            ),
            (
                "a page of files",
                json!({ "pattern": "struct", "output_mode": "files_with_matches", "head_limit": 1 }),
                "src/cart.rs\n[cut: 1 of 2 files shown; use offset=1]",
            ),
            (
                "the end of a line of Windows",
                json!({ "pattern": "Money;$" }),
                "src/money.rs\n1:pub struct Money;",
            ),
            (
                "across lines",
                json!({ "pattern": "struct Cart \\{.*?\\}", "multiline": true }),
                "src/cart.rs\n3:pub struct Cart {\n4:    items: Vec<Item>,\n5:}",
            ),
            (
                "a line break in the pattern",
                json!({ "pattern": "Cart \\{\\n    items" }),
                "The pattern holds a line break: it was searched for across lines, as with multiline.\n\nsrc/cart.rs\n3:pub struct Cart {\n4:    items: Vec<Item>,",
            ),
            (
                "what is no expression",
                json!({ "pattern": "foo(bar" }),
                "`foo(bar` is no regular expression (unclosed group): it was searched for as plain text.\n\nnotes.txt\n2:foo(bar",
            ),
            ("nothing", json!({ "pattern": "nowhere" }), "No matches in 6 files."),
            (
                "what is binary",
                json!({ "pattern": "total", "path": "blob.bin" }),
                "`blob.bin` is no text.",
            ),
            (
                "the old form",
                json!({ "query": "TOTAL", "include_pattern": "*.rs", "exclude_pattern": "tests/**", "explanation": "x" }),
                "src/cart.rs\n8:    pub fn total(&self) {}",
            ),
            (
                "the old form with case",
                json!({ "query": "Total", "case_sensitive": true }),
                "tests/cart.rs\n1:fn Total() {}",
            ),
            (
                "an unknown mode",
                json!({ "pattern": "x", "output_mode": "json" }),
                "Error [TOOL_ARGUMENTS_INVALID]: there is no output mode called `json`\nThe modes are content, files_with_matches and count.",
            ),
            (
                "an unknown place",
                json!({ "pattern": "x", "path": "nowhere" }),
                "Error [FILE_NOT_FOUND]: `nowhere` does not exist",
            ),
        ];
        for (name, given, expected) in cases {
            assert_eq!(run(&tree, given), expected, "{name}");
        }
    }

    #[test]
    fn the_document_gets_the_matches() {
        let outcome = outcome(&shop(), json!({ "pattern": "impl", "-A": 1 })).expect("matches");
        assert_eq!(
            outcome.data,
            json!({
                "mode": "content",
                "matches": [
                    { "filePath": "src/cart.rs", "line": 7, "text": "impl Cart {" },
                    { "filePath": "src/money.rs", "line": 2, "text": "impl Money {}" },
                ],
                "matchCount": 2,
                "fileCount": 2,
                "truncated": false,
            })
        );
    }

    /// Pages follow one another without a gap, and each is the same every time.
    #[test]
    fn one_can_page_through_all_matches() {
        let content: String = (0..50).map(|it| format!("match {it}\n\nother\n")).collect();
        let names: Vec<_> = (0..20).map(|it| format!("d{}/f{it:02}", it % 3)).collect();
        let files: Vec<_> = names.iter().map(|it| (it.as_str(), content.as_bytes())).collect();
        let tree = Tree::new(&files);
        let page = |offset: usize, limit: usize| {
            let given = json!({ "pattern": "match", "offset": offset, "head_limit": limit, "-C": 1 });
            outcome(&tree, given).expect("a page")
        };
        let mut all = Vec::new();
        while all.len() < 1000 {
            let next = page(all.len(), 200);
            assert_eq!(next.is_truncated, all.len() + 200 < 1000);
            if next.is_truncated {
                let end = format!(
                    "[cut: 200 of at least {} matches shown; use offset={}]",
                    next.data["matchCount"],
                    all.len() + 200
                );
                assert!(next.text.ends_with(&end), "{} does not end with {end}", next.text);
            }
            all.extend(next.data["matches"].as_array().expect("matches").clone());
        }
        let mut expected: Vec<_> = (0..20).map(|it| format!("d{}/f{it:02}", it % 3)).collect();
        expected.sort();
        let expected: Vec<_> = expected
            .iter()
            .flat_map(|file| {
                (0..50).map(move |it| json!({ "filePath": file, "line": it * 3 + 1, "text": format!("match {it}") }))
            })
            .collect();
        assert_eq!(all, expected);
        for (offset, limit) in [(0, 7), (49, 3), (50, 1), (123, 77), (990, 200)] {
            let part = page(offset, limit).data["matches"].clone();
            let end = (offset + limit).min(1000);
            assert_eq!(part, Value::from(expected[offset..end].to_vec()), "{offset} {limit}");
        }
    }

    #[test]
    fn limits_hold_whatever_is_found() {
        let wide = format!("{}needle{}\n", "x".repeat(100_000), "\u{e9}".repeat(100_000));
        let lines = "needle and some more words to fill the line, as many as there are\n".repeat(100_000);
        let names: Vec<_> = (0..150).map(|it| format!("many/{it:03}")).collect();
        let mut files = vec![("wide", wide.as_bytes()), ("lines", lines.as_bytes())];
        files.extend(names.iter().map(|it| (it.as_str(), &b"needle\n"[..])));
        let tree = Tree::new(&files);
        for mode in ["content", "files_with_matches", "count"] {
            for multiline in [false, true] {
                let given = json!({ "pattern": "needle", "output_mode": mode, "-C": 99, "multiline": multiline });
                let outcome = outcome(&tree, given).expect("matches");
                assert!(
                    outcome.is_truncated && outcome.text.len() <= (64 << 10) + 200,
                    "{mode}: {}",
                    outcome.text.len()
                );
            }
        }
        let wide = run(&tree, json!({ "pattern": "needle", "path": "wide" }));
        assert!(
            wide.starts_with(&format!("wide\n1:\u{2026} {}needle\u{e9}", "x".repeat(100))),
            "{wide}"
        );
        assert!(wide.ends_with("\u{e9} \u{2026} [a line of 300006 bytes]"), "{wide}");
        let files = outcome(&tree, json!({ "pattern": "needle", "path": "many" })).expect("matches");
        assert_eq!(files.data["matches"].as_array().map(Vec::len), Some(100));
        assert!(
            files
                .text
                .ends_with("[cut: 100 of at least 101 matches shown; use offset=100]"),
            "{}",
            files.text
        );
    }

    #[test]
    fn links_are_not_followed() {
        let tree = shop();
        let outside = Tree::new(&[("secret", b"total\n")]);
        std::os::unix::fs::symlink(outside.folder.path(), tree.folder.path().join("link")).expect("a link");
        std::os::unix::fs::symlink(outside.folder.path().join("secret"), tree.folder.path().join("file"))
            .expect("a link");
        let text = run(
            &tree,
            json!({ "pattern": "total", "output_mode": "files_with_matches" }),
        );
        assert_eq!(text, ".github/ci.yml\nnotes.txt\nsrc/cart.rs");
    }

    #[test]
    fn a_search_that_nobody_waits_for_ends() {
        let tree = shop();
        let mut until = Until::done();
        until.set();
        let outcome =
            search(&tree.workspace, &input(&TOOL, json!({ "pattern": "total" })), &until).expect("an outcome");
        assert!(outcome.is_truncated);
        assert!(
            outcome.text.contains("[cut: the search stopped after 10 s, 0 of "),
            "{}",
            outcome.text
        );
    }

    /// What ripgrep itself prints, where it is installed.
    fn ripgrep(folder: &Path, arguments: &[&str]) -> Option<String> {
        let mut command = Command::new("rg");
        command.current_dir(folder).stdin(Stdio::null());
        command.args([
            "--no-config",
            "--color=never",
            "--heading",
            "--with-filename",
            "--line-number",
            "--sort=path",
            "--hidden",
            "--glob=!.git",
        ]);
        let output = command
            .args(["--crlf", "--no-messages", "--no-require-git"])
            .args(arguments)
            .output()
            .ok()?;
        Some(String::from_utf8_lossy(&output.stdout).trim_end().to_owned())
    }

    #[test]
    fn ripgrep_prints_the_same() {
        let own = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/tool");
        let cases: [(&[&str], Value); 12] = [
            (
                &["fn \\w+_test|impl Sink"],
                json!({ "pattern": "fn \\w+_test|impl Sink" }),
            ),
            (&["-C2", "Outcome \\{$"], json!({ "pattern": "Outcome \\{$", "-C": 2 })),
            (
                &["-A3", "^pub const TOOL"],
                json!({ "pattern": "^pub const TOOL", "-A": 3 }),
            ),
            (&["-B4", "schema:"], json!({ "pattern": "schema:", "-B": 4 })),
            (
                &["-i", "-C1", "FILE_not_FOUND"],
                json!({ "pattern": "FILE_not_FOUND", "-i": true, "-C": 1 }),
            ),
            (&["-g", "*dir.rs", "fn"], json!({ "pattern": "fn", "glob": "*dir.rs" })),
            (
                &["-g", "!grep.rs", "-l", "Until"],
                json!({ "pattern": "Until", "glob": "!grep.rs", "output_mode": "files_with_matches" }),
            ),
            (
                &["-c", "--no-heading", "let"],
                json!({ "pattern": "let", "output_mode": "count" }),
            ),
            (
                &["-t", "rust", "-l", "serde_json"],
                json!({ "pattern": "serde_json", "type": "rust", "output_mode": "files_with_matches" }),
            ),
            (
                &["-U", "--multiline-dotall", "pub const TOOL: Tool.{20,90}aliases"],
                json!({ "pattern": "pub const TOOL: Tool.{20,90}aliases", "multiline": true }),
            ),
            (&["\\p{Greek}|\u{2026}"], json!({ "pattern": "\\p{Greek}|\u{2026}" })),
            (
                &["no such words anywhere, in \\d files"],
                json!({ "pattern": "no such words anywhere, in \\d files", "path": "." }),
            ),
        ];
        let tree = Tree::new(&[]);
        for file in std::fs::read_dir(own)
            .expect("a folder")
            .flatten()
            .filter(|it| it.path().is_file())
        {
            std::fs::copy(file.path(), tree.folder.path().join(file.file_name())).expect("a copy");
        }
        for (arguments, given) in cases {
            let mut arguments = arguments.to_vec();
            arguments.push("./");
            let Some(theirs) = ripgrep(tree.folder.path(), &arguments) else {
                // Past the capture of a test's output, which would swallow it.
                writeln!(std::io::stderr(), "\nSKIPPED: ripgrep_prints_the_same: there is no rg").ok();
                return;
            };
            let theirs: Vec<_> = theirs.lines().map(|it| it.strip_prefix("./").unwrap_or(it)).collect();
            let ours = outcome(&tree, given).expect("an outcome");
            // Long lines are cut by us only, and only we say that there is nothing.
            let is_comparable = |it: &str| it.len() <= MOST_CHARACTERS;
            assert!(theirs.iter().all(|it| is_comparable(it)));
            if theirs.is_empty() {
                assert!(ours.text.starts_with("No matches in "), "{arguments:?}: {}", ours.text);
            } else {
                assert!(!ours.is_truncated, "{arguments:?}: the case is too big");
                assert_eq!(ours.text.lines().collect::<Vec<_>>(), theirs, "{arguments:?}");
            }
        }
    }
}
