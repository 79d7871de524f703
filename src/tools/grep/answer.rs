//! What was found, written down: a page of it, and what is said of the rest.

use std::{collections::BTreeMap, path::PathBuf};

use serde_json::{Value, json};

use super::{
    Search, SearchState, Show,
    look::{Eye, FileMatches, Kind, Line},
};
use crate::{
    sandbox::Workspace,
    tools::{
        Outcome,
        walk::{self, Until},
    },
};

/// The matches to be written down.
pub(super) struct Answer<'a> {
    pub(super) search: &'a Search,
    pub(super) workspace: &'a Workspace,
    /// The time was up.
    pub(super) is_cut_short: bool,
    pub(super) files: &'a [PathBuf],
    pub(super) state: SearchState,
}

impl Answer<'_> {
    /// The result in the wanted form, cut at its limits.
    pub(super) fn outcome(mut self, until: &Until) -> Outcome {
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
    fn names(&self, found: &BTreeMap<usize, FileMatches>) -> Page {
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
    fn content(&self, found: BTreeMap<usize, FileMatches>, until: &Until) -> Page {
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
