//! Search in the conversation: first the documents that contain the words, then the cells that show them.
//!
//! Texts are read in place, without a copy; only a document that is gone to is laid out. Markdown marks and line breaks are
//! skipped.

use std::ops::Range;

use serde_json::Value;

use crate::tui::{
    app::{App, Focus},
    widgets::{action_line, transcript::Item},
};
use crate::{
    protocol::Document,
    t,
    text::{StyledLine, width},
    transcript::Transcript,
};

/// A pattern that is searched for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Needle {
    letters: Vec<char>,
    /// Small letters mean both; a capital means itself.
    folds: bool,
}

/// A search that is on.
#[derive(Clone, Debug)]
pub struct Search {
    pub pattern: String,
    pub needle: Needle,
    /// Items that hold it, from the top. One that turns out to show it nowhere is taken out.
    pub hits: Vec<Item>,
    /// The current hit: an item, and the index of its occurrence.
    pub at: Option<(Item, usize)>,
    /// The item at which the search began.
    origin: Option<Item>,
    /// Something was added since the hits were collected.
    pub is_stale: bool,
}

/// An occurrence: rows of an item and columns in them, counted with the gutter.
pub type Occurrence = Vec<(usize, Range<usize>)>;

impl Needle {
    /// `None`: there is nothing to search for.
    pub fn new(pattern: &str) -> Option<Self> {
        let folds = !pattern.chars().any(char::is_uppercase);
        let letters: Vec<char> = pattern.chars().collect();
        (!letters.is_empty()).then_some(Self { letters, folds })
    }

    /// The first occurrence from the byte `from` on, sign by sign.
    pub fn find(&self, text: &str, from: usize) -> Option<Range<usize>> {
        self.search(text, from, false)
    }

    /// Returns true if a source contains the pattern, across Markdown marks and line breaks.
    pub fn is_in(&self, source: &str) -> bool {
        self.search(source, 0, true).is_some()
    }

    fn search(&self, text: &str, mut from: usize, loosely: bool) -> Option<Range<usize>> {
        let first = *self.letters.first()?;
        loop {
            let rest = text.get(from..)?;
            let at = from + self.candidate(rest, first)?;
            if let Some(end) = self.end_of_match(text, at, loosely) {
                return Some(at..end);
            }
            from = at + text.get(at..)?.chars().next()?.len_utf8();
        }
    }

    /// The next byte at which the first letter stands.
    fn candidate(&self, text: &str, first: char) -> Option<usize> {
        if first.is_whitespace() {
            return text.find(char::is_whitespace);
        }
        if first.is_ascii() {
            let (small, large) = (first as u8, (first as u8).to_ascii_uppercase());
            return if self.folds {
                text.bytes().position(|it| it == small || it == large)
            } else {
                text.bytes().position(|it| it == small)
            };
        }
        text.find(|it| self.is_same(first, it))
    }

    fn end_of_match(&self, text: &str, start: usize, loosely: bool) -> Option<usize> {
        let mut letters = text.get(start..)?.char_indices().peekable();
        let mut end = start;
        for wanted in &self.letters {
            let (at, letter) = loop {
                let (at, letter) = letters.next()?;
                if loosely && end > start && matches!(letter, '*' | '_' | '`' | '~') && letter != *wanted {
                    continue;
                }
                break (at, letter);
            };
            if wanted.is_whitespace() && letter.is_whitespace() {
                while loosely && letters.next_if(|(_, it)| it.is_whitespace()).is_some() {}
            } else if !self.is_same(*wanted, letter) {
                return None;
            }
            end = start + at + letter.len_utf8();
        }
        Some(end)
    }

    fn is_same(&self, wanted: char, letter: char) -> bool {
        wanted == letter || self.folds && letter.to_lowercase().eq(wanted.to_lowercase())
    }

    /// Finds all occurrences in rows, across wrapped lines and without their gutters.
    pub fn occurrences(&self, rows: &[StyledLine]) -> Vec<Occurrence> {
        let mut found = Vec::new();
        let mut first = 0;
        while first < rows.len() {
            let more = rows.iter().skip(first + 1).take_while(|it| it.continues).count();
            let line = rows.get(first..=first + more).unwrap_or_default();
            self.in_line(line, first, &mut found);
            first += more + 1;
        }
        found
    }

    fn in_line(&self, rows: &[StyledLine], first: usize, found: &mut Vec<Occurrence>) {
        let mut text = String::new();
        // Where the text of each row begins and ends in the line's.
        let mut places: Vec<Range<usize>> = Vec::with_capacity(rows.len());
        for row in rows {
            if row.spaced {
                text.push(' ');
            }
            let start = text.len();
            text.extend(row.content().iter().map(|it| it.text.as_str()));
            places.push(start..text.len());
        }
        let mut from = 0;
        while let Some(range) = self.find(&text, from) {
            from = range.end.max(range.start + 1);
            let parts = rows.iter().zip(&places).enumerate().filter_map(|(at, (row, place))| {
                let start = range.start.max(place.start);
                let end = range.end.min(place.end);
                let begin = width::spans_width(row.gutter());
                let columns = |to: usize| begin + width::width(text.get(place.start..to).unwrap_or_default());
                (start < end).then(|| (first + at, columns(start)..columns(end)))
            });
            let parts: Occurrence = parts.collect();
            if !parts.is_empty() {
                found.push(parts);
            }
        }
    }
}

/// Returns true if an item contains the pattern.
fn says(transcript: &Transcript, item: Item, needle: &Needle) -> bool {
    let exchange = transcript.exchanges.get(item.exchange());
    match item {
        Item::Message(_) => exchange
            .and_then(|it| it.message.as_ref())
            .is_some_and(|it| needle.is_in(&it.content)),
        Item::Thinking(_, at) => exchange
            .and_then(|it| it.response.thinking.get(at))
            .is_some_and(|it| needle.is_in(&it.text)),
        Item::Document(place) => transcript.get(place).is_some_and(|it| document_says(it, needle)),
        Item::Ending(_) => false,
        Item::Action(_, at) => exchange
            .and_then(|it| it.actions.get(at))
            .is_some_and(|it| needle.is_in(&action_line(it))),
    }
}

fn document_says(document: &Document, needle: &Needle) -> bool {
    needle.is_in(document.text())
        || document
            .metadata
            .iter()
            .any(|(name, value)| !is_inner(name) && value_says(value, needle))
}

fn value_says(value: &Value, needle: &Needle) -> bool {
    match value {
        Value::String(text) => needle.is_in(text),
        Value::Array(values) => values.iter().any(|it| value_says(it, needle)),
        Value::Object(members) => members
            .iter()
            .any(|(name, it)| !is_inner(name) && value_says(it, needle)),
        Value::Number(it) => needle.is_in(&it.to_string()),
        Value::Null | Value::Bool(_) => false,
    }
}

/// Members that no look shows.
fn is_inner(name: &str) -> bool {
    name == "id" || name.ends_with("Id") || name.ends_with("_id")
}

impl App {
    /// Searches for what has been typed so far and goes to the first occurrence from where the search began.
    pub fn seek(&mut self, pattern: &str) {
        let Some(needle) = Needle::new(pattern) else {
            self.viewport.search = None;
            return;
        };
        let before = self.viewport.search.take();
        let origin = match &before {
            Some(it) => it.origin,
            None => self.viewport.pane.selected.or_else(|| {
                self.viewport
                    .pane
                    .lines
                    .iter()
                    .find_map(crate::tui::widgets::transcript::VisibleLine::item)
            }),
        };
        // What does not hold a part does not hold the whole, unless the capital in it means less.
        let narrows = |it: &&Search| {
            !it.is_stale
                && it.needle.folds == needle.folds
                && pattern.starts_with(&it.pattern)
                && !it.pattern.is_empty()
        };
        let hits = match before.as_ref().filter(narrows) {
            Some(it) => self.holding(&it.hits, &needle),
            None => self.holding(&self.viewport.pane.items, &needle),
        };
        self.viewport.search = Some(Search {
            pattern: pattern.to_owned(),
            needle,
            hits,
            at: None,
            origin,
            is_stale: false,
        });
        self.seek_on(true);
    }

    /// Goes to the next occurrence, or to the one before; round and round.
    pub fn seek_on(&mut self, forward: bool) {
        let Some(mut search) = self.viewport.search.take() else {
            self.toast(t!("search-first"));
            return;
        };
        if std::mem::take(&mut search.is_stale) {
            search.hits = self.holding(&self.viewport.pane.items, &search.needle);
        }
        let found = self.seek_from(&mut search, forward);
        match found {
            Some((item, at, row, is_around)) => {
                search.at = Some((item, at));
                self.viewport.focus = Focus::Transcript;
                self.questions.since_ms = self.now_ms;
                self.with_pane(|pane, context| pane.show_row(item, row, context));
                if is_around {
                    self.toast(if forward {
                        t!("search-from-beginning")
                    } else {
                        t!("search-from-end")
                    });
                }
            }
            None => {
                search.at = None;
                self.toast(t!("search-nothing", pattern = search.pattern.as_str()));
            }
        }
        self.viewport.search = Some(search);
        self.viewport.bars = None;
    }

    fn holding(&self, items: &[Item], needle: &Needle) -> Vec<Item> {
        let items = items.iter().copied();
        items
            .filter(|it| says(&self.conversation.transcript, *it, needle))
            .collect()
    }

    /// The item, which of its occurrences, its row, and whether the search went past an end.
    fn seek_from(&mut self, search: &mut Search, forward: bool) -> Option<(Item, usize, usize, bool)> {
        let order = |app: &Self, item: Item| app.viewport.pane.index_of(item).unwrap_or(usize::MAX);
        let here = search.at.map(|it| it.0).or(search.origin);
        let here_at = here.map_or(0, |it| order(self, it));
        let mut at = search.hits.partition_point(|it| order(self, *it) < here_at);
        // The occurrence in the item where the reader is.
        let mut after = search.at.map(|it| it.1);
        let mut is_around = false;
        if search.hits.get(at).copied() != here {
            after = None;
            if !forward {
                (at, is_around) = before(at, search.hits.len())?;
            }
        }
        // Once round, and the first one again; hits that show nothing go on the way.
        let mut left = search.hits.len() + 1;
        while left > 0 && !search.hits.is_empty() {
            left -= 1;
            if at >= search.hits.len() {
                at = 0;
                is_around = true;
            }
            let item = search.hits.get(at).copied()?;
            let rows = self.rows_showing(item, &search.needle);
            if rows.is_empty() {
                search.hits.remove(at);
                if !forward {
                    let round;
                    (at, round) = before(at, search.hits.len())?;
                    is_around |= round;
                }
                continue;
            }
            let next = match (forward, after.take()) {
                (true, Some(n)) => Some(n + 1).filter(|it| *it < rows.len()),
                (true, None) => Some(0),
                (false, Some(n)) => n.checked_sub(1),
                (false, None) => Some(rows.len() - 1),
            };
            if let Some(n) = next {
                return Some((item, n, rows.get(n).copied().unwrap_or_default(), is_around));
            }
            if forward {
                at += 1;
            } else {
                let round;
                (at, round) = before(at, search.hits.len())?;
                is_around |= round;
            }
        }
        None
    }

    /// The row of each occurrence in an item; one that is folded away is unfolded.
    fn rows_showing(&mut self, item: Item, needle: &Needle) -> Vec<usize> {
        let rows = |pane: &mut crate::tui::widgets::transcript::Pane,
                    context: &crate::tui::widgets::transcript::TranscriptContext<'_>|
         -> Vec<usize> {
            let found = needle.occurrences(pane.rows_of(item, context));
            found.iter().filter_map(|it| it.first()).map(|it| it.0).collect()
        };
        let found = self.with_pane(rows);
        if !found.is_empty() {
            return found;
        }
        let fold = self.viewport.pane.fold_of(item);
        self.viewport.pane.set_fold(item, crate::tui::widgets::Fold::Full);
        let found = self.with_pane(rows);
        if found.is_empty() {
            self.viewport.pane.set_fold(item, fold);
            self.with_pane(|pane, context| pane.rows_of(item, context).len());
        }
        found
    }
}

/// The place before `at` in a round of so many, and whether that went past the beginning.
fn before(at: usize, count: usize) -> Option<(usize, bool)> {
    match at.checked_sub(1) {
        Some(it) => Some((it, false)),
        None => Some((count.checked_sub(1)?, true)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::{Role, Span, wrap::wrap};

    #[test]
    fn small_letters_mean_both_and_a_capital_itself() {
        for (pattern, text, found) in [
            ("cart", "the Cart", Some(4..8)),
            ("Cart", "the cart", None),
            ("Cart", "the Cart", Some(4..8)),
            ("straße", "STRASSE Straße", Some(8..15)),
            ("ä", "Ä", Some(0..2)),
            ("語", "漢語", Some(3..6)),
            ("aab", "aaab", Some(1..4)),
            ("x", "", None),
        ] {
            assert_eq!(
                Needle::new(pattern).unwrap().find(text, 0),
                found,
                "{pattern} in {text}"
            );
        }
    }

    #[test]
    fn marks_of_markdown_and_breaks_of_lines_are_read_over() {
        for (pattern, source, is_in) in [
            ("bold word", "a **bold** word", true),
            ("bold word", "a bold\nword", true),
            ("snake_case", "a snake_case name", true),
            ("bold word", "a bold, word", false),
        ] {
            assert_eq!(
                Needle::new(pattern).unwrap().is_in(source),
                is_in,
                "{pattern} in {source}"
            );
        }
    }

    #[test]
    fn an_occurrence_goes_on_behind_the_break_of_a_row() {
        let rows = wrap(
            &[Span::new("see the whole book about src/shop/cart.rs", Role::Text)],
            14,
            &[Span::new("• ", Role::Faint)],
            &[Span::new("  ", Role::Text)],
        );
        let texts: Vec<String> = rows.iter().map(StyledLine::plain).collect();
        assert_eq!(
            texts,
            ["• see the", "  whole book", "  about", "  src/shop/", "  cart.rs"]
        );
        let find = |pattern: &str| Needle::new(pattern).unwrap().occurrences(&rows);
        assert_eq!(find("the whole"), [vec![(0, 6..9), (1, 2..7)]]);
        assert_eq!(find("shop/cart"), [vec![(3, 6..11), (4, 2..6)]]);
        assert_eq!(find("o").len(), 5);
        assert_eq!(find("nothing"), [] as [Occurrence; 0]);
    }
}
