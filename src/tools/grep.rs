//! `grep`: lines that match a regular expression, by ripgrep's own engine.
//!
//! The files are listed and put in order first, then searched on several threads. As soon as the files at the front hold
//! enough matches, nothing behind them is looked at: so the answer is the same every time, can be paged through, and a
//! pattern that matches everywhere costs no more than what is shown. What was not looked at is why totals are "at least".

mod answer;
mod look;

use std::{
    collections::BTreeMap,
    ops::Range,
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
};

use grep_matcher::LineTerminator;
use grep_regex::{ErrorKind, RegexMatcher, RegexMatcherBuilder};
use grep_searcher::{BinaryDetection, Searcher, SearcherBuilder};
use serde_json::{Map, Value, json};

use self::{
    answer::Answer,
    look::{Eye, FileMatches, HEAP_BYTES},
};
use super::{
    arguments::truth,
    cursor::{self, CursorCall, text, words},
    tool::{Class, Fault, Input, OldForm, Outcome, Tool, names, schema},
    walk::{self, Filter, Until},
};
use crate::{config, protocol::CallSubject, sandbox::Workspace};

/// The description that a model is shown.
const ABOUT: &str = "\
    Search file contents with a regular expression (Rust syntax, as ripgrep). Best for exact names and texts. \
    Escape what is meant literally, such as `foo\\(`. Results are grouped by file: `21:text` is a match, `20-text` \
    its context. `head_limit` and `offset` count matches, or files with the other output modes. Hidden files are \
    searched, ignored files are not.";

/// The tool `grep`.
pub fn tool() -> Tool {
    Tool {
        aliases: names(["Grep", "grep_search", "rg"]),
        about: ABOUT.into(),
        schema: schema(
            json!({
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
            }),
            &["pattern"],
        ),
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
        word: "grep".into(),
        subject: CallSubject::Grep,
        rule: Some(("Read", &["grep"])),
        is_basic: true,
        old_form: Some(OldForm::new(fold)),
        cursor: Some(CursorCall {
            result: printed,
            ..CursorCall::new(
                "grepToolCall",
                &[
                    ("pattern", &["pattern"]),
                    ("path", &["path"]),
                    ("glob", &["glob"]),
                    ("outputMode", &["output_mode", "outputMode"]),
                    ("contextBefore", &["-B", "contextBefore"]),
                    ("contextAfter", &["-A", "contextAfter"]),
                    ("context", &["-C", "context"]),
                    ("caseInsensitive", &["-i", "case_insensitive", "caseInsensitive"]),
                    ("type", &["type"]),
                    ("headLimit", &["head_limit", "headLimit"]),
                    ("offset", &["offset"]),
                    ("multiline", &["multiline"]),
                ],
            )
        }),
        examples: &[
            r#"{ "pattern": "total" }"#,
            r#"{ "pattern": "one", "path": "a.txt", "output_mode": "content" }"#,
        ],
        ..Tool::new(
            "grep",
            Class::Reads,
            walk::work("path", |context, input, until| search(&context.workspace, input, until)),
        )
    }
}

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
/// The largest offset for paging.
const MOST_OFFSET: i64 = 10_000;
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
            Fault::arguments(format!("unknown output mode `{word}`"))
                .hint("The modes are content, files_with_matches and count.")
        })
    }

    fn word(self) -> &'static str {
        let found = Self::ALL.iter().find(|(it, _)| *it == self);
        found.map_or("content", |(_, word)| word)
    }
}

/// The limits of a result.
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
    /// A note for the model about how its pattern was read.
    note: Option<String>,
}

impl Search {
    fn read(input: &Input, limits: &config::ResultLimits) -> Result<Self, Fault> {
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

    /// Number of matches of one file after which counting stops.
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
        let note = "The pattern contains a line break, so it was searched across lines, as with multiline.";
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
                "`{}` is not a regular expression ({reason}); it was searched as plain text.",
                walk::shortened(pattern, 100)
            );
            Ok((matcher, is_multiline || spans, Some(note)))
        }
        Err(_) => Err(Fault::arguments(format!(
            "the pattern cannot be searched for: {reason}"
        ))),
    }
}

/// The shared results of the threads.
struct SearchState {
    /// By the place of the file in the list; files without a match are not in it.
    found: BTreeMap<usize, FileMatches>,
    /// Files that were looked at; told at the end.
    searched: usize,
    /// Those of them that could not be searched.
    refused: usize,
    /// Nothing behind this file is wanted.
    last: usize,
}

impl SearchState {
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
    let listing = walk::files(&workspace.walker(&place, until.bounds())?, &filter, until);
    let files = listing.files;
    let state = Mutex::new(SearchState {
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

/// The result in Cursor's shape.
fn printed(answer: &cursor::Answer<'_>) -> Value {
    let (members, arguments) = (answer.members, answer.arguments);
    let asked = arguments.text(&["output_mode", "outputMode"]);
    let mode = text(members, "mode").unwrap_or(if asked.is_empty() { "content" } else { asked });
    let hits = members.get("matches").and_then(Value::as_array);
    let file = |it: &Value| {
        it.get("filePath")
            .and_then(Value::as_str)
            .unwrap_or_default()
            .to_owned()
    };
    let results = match (mode, hits) {
        ("files_with_matches", Some(hits)) => {
            let files: Vec<_> = hits.iter().map(file).collect();
            json!({ "files": { "files": files, "totalFiles": members.get("fileCount") } })
        }
        ("count", Some(hits)) => {
            let counts: Vec<_> = hits
                .iter()
                .map(|it| json!({ "file": file(it), "count": it.get("count") }))
                .collect();
            json!({ "count": { "counts": counts, "totalMatches": members.get("matchCount") } })
        }
        (_, Some(hits)) => {
            let mut files: Vec<(String, Vec<Value>)> = Vec::new();
            for hit in hits {
                let name = file(hit);
                if files.last().is_none_or(|(last, _)| *last != name) {
                    files.push((name, Vec::new()));
                }
                if let Some((_, lines)) = files.last_mut() {
                    lines.push(json!({
                        "lineNumber": hit.get("line"),
                        "content": hit.get("text"),
                        "contentTruncated": false,
                        "isContextLine": hit.get("isContext").and_then(Value::as_bool).unwrap_or_default(),
                    }));
                }
            }
            let matches: Vec<_> = files
                .into_iter()
                .map(|(file, matches)| json!({ "file": file, "matches": matches }))
                .collect();
            json!({ "content": { "matches": matches } })
        }
        // Somebody else's search, told as text.
        (_, None) => json!({ "content": { "matches": [], "text": words(answer.data) } }),
    };
    let root = answer.workspace.to_string_lossy().into_owned();
    json!({
        "pattern": arguments.text(&["pattern"]),
        "path": arguments.text(&["path"]),
        "outputMode": mode,
        "workspaceResults": { root: results },
    })
}

#[cfg(test)]
mod tests;
