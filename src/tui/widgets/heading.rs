//! The first row of a document: kind, title, and facts at the right edge.

use std::ops::Range;

use crate::{
    locale::figure,
    text::{
        Modifier, Role, Sanitized, Span, StyledLine,
        width::{cut_end, cut_middle, cut_spans, pad, spans_width, width},
        wrap::wrap,
    },
    tui::editor::draft::{Draft, TextPosition},
};

/// Columns of the word that names a kind or a tool, with the blank behind it.
pub(super) const WORD: usize = 7;

/// The pane shows no facts where the content is narrower: that is a screen of less than 40 columns.
pub(super) const FACTS_FROM: usize = 36;

/// Columns between two facts, and between the content and the facts.
const GAP: usize = 2;

/// Facts at the right edge. Where there is too little room, the lightest goes first.
#[derive(Clone, Debug, Default)]
pub(super) struct Facts(Vec<Fact>);

#[derive(Clone, Debug)]
struct Fact {
    weight: Weight,
    spans: Vec<Span>,
}

/// Precedence of a fact when there is little room.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Weight {
    Light,
    Medium,
    /// The state: goes last.
    Heavy,
}

impl Facts {
    pub fn push(&mut self, weight: Weight, spans: impl Into<Vec<Span>>) {
        let spans = spans.into();
        if spans.iter().any(|it| !it.text.is_empty()) {
            self.0.push(Fact { weight, spans });
        }
    }

    pub fn word(&mut self, weight: Weight, text: impl Into<Sanitized>, role: Role) {
        let span = Span::new(text, role);
        self.push(
            weight,
            [Span {
                text: Sanitized::line(&span.text),
                ..span
            }],
        );
    }

    pub fn has(&self, weight: Weight) -> bool {
        self.0.iter().any(|it| it.weight == weight)
    }

    /// Puts others behind these.
    pub fn extend(&mut self, others: Self) {
        self.0.extend(others.0);
    }

    pub fn duration(&mut self, milliseconds: Option<u64>) {
        // What took no time was not done.
        if let Some(it) = milliseconds.filter(|it| *it > 0) {
            self.word(Weight::Medium, figure::duration(it), Role::Dim);
        }
    }

    /// The facts that fit beside `wants` columns of content, and the columns that are left for the content.
    ///
    /// Content has a claim to what it wants up to two thirds of the width, and to one third beside the heaviest fact.
    pub fn fit(mut self, wants: usize, columns: usize) -> (Vec<Span>, usize) {
        if columns < FACTS_FROM {
            return (Vec::new(), columns);
        }
        loop {
            let taken = self.width();
            if taken == 0 {
                return (Vec::new(), columns);
            }
            let left = columns.checked_sub(taken + GAP);
            let heaviest = self.0.len() == 1 && self.0.iter().all(|it| it.weight == Weight::Heavy);
            let claim = wants.min(if heaviest { columns / 3 } else { columns * 2 / 3 });
            if let Some(left) = left.filter(|it| *it >= claim) {
                return (self.spans(), left);
            }
            let lightest = self.0.iter().map(|it| it.weight).min();
            if let Some(at) = self.0.iter().rposition(|it| Some(it.weight) == lightest) {
                self.0.remove(at);
            }
        }
    }

    fn width(&self) -> usize {
        let gaps = self.0.len().saturating_sub(1) * GAP;
        gaps + self.0.iter().map(|it| spans_width(&it.spans)).sum::<usize>()
    }

    fn spans(self) -> Vec<Span> {
        let mut spans = Vec::new();
        for fact in self.0 {
            if !spans.is_empty() {
                spans.push(gap(GAP));
            }
            spans.extend(fact.spans);
        }
        spans
    }
}

/// Empty columns.
pub(super) fn gap(columns: usize) -> Span {
    const BLANKS: &str = "                ";
    match BLANKS.get(..columns) {
        Some(blanks) => Span::new(Sanitized::literal(blanks), Role::Text),
        None => Span::new(" ".repeat(columns), Role::Text),
    }
}

/// A literal of ours in a role.
pub(super) const fn sign(text: &'static str, role: Role) -> Span {
    Span {
        text: Sanitized::literal(text),
        role,
        modifier: crate::text::Modifier::NONE,
        background: crate::text::Background::Plain,
        link: None,
    }
}

/// A sign and what it means.
pub(super) fn signed(sign: &str, word: &str) -> Sanitized {
    Sanitized::from(format!("{sign} {word}"))
}

/// The sign of what is going on, and a word for it.
pub(super) fn at_work(word: &str) -> [Span; 2] {
    [sign("◐", Role::Waiting), Span::new(format!(" {word}"), Role::Dim)]
}

/// The word of a heading: dim, as wide as all of them; a longer one has a gap behind it.
pub(super) fn word(text: &str) -> Span {
    word_within(text, 3 * WORD)
}

fn word_within(text: &str, columns: usize) -> Span {
    let text = cut_end(&Sanitized::line(text), columns);
    let columns = if width(&text) < WORD { WORD } else { width(&text) + GAP };
    Span::new(pad(&text, columns), Role::Dim)
}

/// One row of a word, a title that is cut where it must be, and facts.
pub(super) fn heading(name: &str, title: &[Span], facts: Facts, columns: usize) -> StyledLine {
    let mut spans = Vec::with_capacity(title.len() + 1);
    if !name.is_empty() {
        // The name of a server's tool is long.
        spans.push(word_within(name, (columns / 3).max(3 * WORD)));
    }
    spans.extend_from_slice(title);
    line(&spans, facts, columns)
}

/// One row of spans that is cut where it must be, and facts.
pub(super) fn line(spans: &[Span], facts: Facts, columns: usize) -> StyledLine {
    let (facts, room) = facts.fit(spans_width(spans), columns);
    StyledLine::of(cut_spans(spans, room)).facts(facts)
}

/// A title that is shown whole, in several rows where it must be. Facts that would leave it too little room beside
/// them stand at the right of a row of their own.
pub(super) fn titled(title: &[Span], first: &[Span], rest: &[Span], facts: Facts, columns: usize) -> Vec<StyledLine> {
    let text: usize = title
        .iter()
        .map(|it| it.text.lines().map(width).max().unwrap_or(0))
        .sum();
    let wants = spans_width(first) + text;
    let heaviest: Vec<Fact> = facts
        .0
        .iter()
        .filter(|it| it.weight == Weight::Heavy)
        .cloned()
        .collect();
    let (mut facts, mut room) = facts.fit(wants, columns);
    if facts.is_empty() && columns >= FACTS_FROM {
        // The state does not go: it takes a row.
        facts = cut_spans(&Facts(heaviest).spans(), columns - 1);
        room = if facts.is_empty() { columns } else { 0 };
    }
    if room >= wants || room * 3 >= columns * 2 {
        let mut rows = wrap(title, room, first, rest);
        if let Some(first) = rows.first_mut() {
            first.facts = facts;
        }
        return rows;
    }
    let mut rows = wrap(title, columns, first, rest);
    rows.push(StyledLine::default().facts(facts));
    rows
}

/// A heading about a path, which is cut in its middle so that its name stays.
pub(super) fn path_heading(name: &str, path: &Span, behind: &[Span], facts: Facts, columns: usize) -> StyledLine {
    let mut spans = Vec::with_capacity(behind.len() + 2);
    if !name.is_empty() {
        spans.push(word(name));
    }
    let around = spans_width(&spans) + spans_width(behind);
    let (facts, room) = facts.fit(around + width(&path.text), columns);
    // What stands behind goes before the name does.
    const NAME: usize = 8;
    let text = cut_middle(&path.text, room.saturating_sub(around).max(NAME));
    spans.push(Span {
        text: Sanitized::from(text),
        ..path.clone()
    });
    spans.extend_from_slice(behind);
    StyledLine::of(cut_spans(&spans, room)).facts(facts)
}

/// A key and what it does.
pub fn key(name: &'static str, does: &'static str, role: Role) -> Vec<Span> {
    vec![sign(name, role).bold().key(), gap(1), sign(does, Role::Dim)]
}

/// The name of the key at a column of a row: the column is on the key or on the words after it. Of several keys it is the one
/// under the column.
pub fn key_at(spans: &[Span], column: usize) -> Option<&str> {
    let (mut key, mut end) = (None, 0);
    for span in spans {
        let start = end;
        end += width(&span.text);
        if column < end && span.modifier.contains(Modifier::KEY) {
            return Some(word_at(span.text.as_str(), column - start));
        }
        if span.modifier.contains(Modifier::KEY) {
            key = Some(span.text.as_str());
        } else if span.text.trim().is_empty() && width(&span.text) > 1 {
            key = None;
        }
        if column < end {
            return key;
        }
    }
    None
}

/// Returns a text of a model or of ours with its `code` drawn as code, without the marks. A mark without a partner stays.
pub fn with_code(text: &Sanitized, role: Role) -> Vec<Span> {
    let mut spans = Vec::new();
    let mut end = 0;
    while let Some((first, last)) = code_in(text, end) {
        spans.push(Span::new(text.slice(end..first.start), role));
        spans.push(Span::new(text.slice(first.end..last.start), Role::Code));
        end = last.end;
    }
    spans.push(Span::new(text.slice(end..text.len()), role));
    spans.retain(|it| !it.text.is_empty());
    spans
}

/// The marks around the first code of a text from a byte on.
fn code_in(text: &str, from: usize) -> Option<(Range<usize>, Range<usize>)> {
    let next = |from: usize| {
        let start = from + text.get(from..)?.find('`')?;
        let rest = text.get(start..)?;
        Some(start..start + rest.len() - rest.trim_start_matches('`').len())
    };
    let mut first = next(from)?;
    loop {
        let mut last = first.clone();
        while let Some(found) = next(last.end) {
            if found.len() == first.len() {
                return Some((first, found));
            }
            last = found;
        }
        first = next(first.end)?;
    }
}

/// The word at a column of a key's name; all of a name such as `tab, r, enter`.
fn word_at(name: &str, column: usize) -> &str {
    let mut end = 0;
    let mut words = name.split(' ').filter(|_| !name.contains(','));
    let found = words.find(|it| {
        end += width(it) + 1;
        column < end
    });
    found.unwrap_or(name)
}

/// Stands where something is typed in a document.
pub const TYPING: &str = "▏";

/// The text that is being typed, with a sign for its caret.
pub(super) fn being_typed(draft: &Draft) -> Vec<Span> {
    let caret = draft.caret();
    let text = |text: &str| Span::new(Sanitized::line(text), Role::Strong);
    let before = draft.slice(TextPosition::default()..caret);
    let after = draft.slice(caret..draft.end());
    vec![text(&before), sign(TYPING, Role::Waiting), text(&after)]
}

/// Puts a key and its word behind the last row, or whole onto a row of its own where they do not fit.
pub(super) fn put_key(rows: &mut Vec<StyledLine>, key: &[Span], between: usize, columns: usize) {
    let taken = rows.last().map_or(0, |it| spans_width(&it.spans));
    match rows.last_mut() {
        Some(row) if taken + between + spans_width(key) <= columns => {
            row.spans.push(gap(between));
            row.spans.extend_from_slice(key);
        }
        Some(_) => {
            let mut more = wrap(key, columns.max(1), &[], &[]);
            // Only the width broke the line of keys.
            if let Some(first) = more.first_mut() {
                (first.continues, first.spaced) = (true, true);
            }
            rows.extend(more);
        }
        None => rows.extend(wrap(key, columns.max(1), &[], &[])),
    }
}

/// The first line that says something, for where there is one line only. Reads no more than it needs.
pub(super) fn first_line(text: &str) -> Sanitized {
    const MOST: usize = 2000;
    let start = text.trim_start();
    let line = start.split('\n').next().unwrap_or_default();
    let end = line.char_indices().nth(MOST).map_or(line.len(), |(at, _)| at);
    Sanitized::line(line.get(..end).unwrap_or_default().trim_end())
}

/// Columns between two keys in one row.
pub(super) const KEYS_GAP: usize = 3;

/// Keys beside each other, as many in a row as fit.
pub(super) fn keys_rows(keys: &[Vec<Span>], columns: usize) -> Vec<StyledLine> {
    let mut rows: Vec<StyledLine> = Vec::new();
    for key in keys {
        put_key(&mut rows, key, KEYS_GAP, columns);
    }
    rows
}

#[cfg(test)]
mod tests {
    use super::*;

    fn facts() -> Facts {
        let mut facts = Facts::default();
        facts.word(Weight::Heavy, "✓ 0", Role::Done);
        facts.word(Weight::Medium, "5.3 s", Role::Dim);
        facts.word(Weight::Light, "no network", Role::Dim);
        facts
    }

    fn check(wants: usize, columns: usize) -> (String, usize) {
        let (spans, room) = facts().fit(wants, columns);
        (spans.iter().map(|it| it.text.as_str()).collect(), room)
    }

    #[test]
    fn code_in_a_text_is_drawn_as_code_without_its_marks() {
        for (text, expected) in [
            ("run `cargo test` and `ls`", "run [cargo test] and [ls]"),
            ("``a`b`` is `c", "[a`b] is `c"),
            ("`all of it`", "[all of it]"),
            ("one ` alone", "one ` alone"),
            ("``", "``"),
            ("", ""),
        ] {
            let shown: String = with_code(&Sanitized::new(text), Role::Text)
                .iter()
                .map(|it| match it.role {
                    Role::Code => format!("[{}]", it.text),
                    _ => it.text.to_string(),
                })
                .collect();
            assert_eq!(shown, expected, "{text}");
        }
    }

    #[test]
    fn the_lightest_fact_goes_first() {
        for (name, wants, columns, kept, room) in [
            ("all fit", 20, 60, "✓ 0  5.3 s  no network", 36),
            (
                "content has a claim to two thirds of the width",
                60,
                60,
                "✓ 0  5.3 s",
                48,
            ),
            ("short content leaves room for all", 5, 37, "✓ 0  5.3 s  no network", 13),
            ("long content keeps state and time", 60, 37, "✓ 0  5.3 s", 25),
            ("a screen of 40 columns shows facts", 60, 36, "✓ 0  5.3 s", 24),
            ("too narrow for facts", 5, 35, "", 35),
        ] {
            assert_eq!(check(wants, columns), (kept.to_owned(), room), "{name}");
        }
        let mut wide = facts();
        wide.word(Weight::Light, "x".repeat(40), Role::Dim);
        let (spans, room) = wide.fit(0, 40);
        assert_eq!(
            (spans_width(&spans), room),
            (22, 16),
            "no wider than the row, beside nothing"
        );
    }

    #[test]
    fn words_stand_in_one_column() {
        for (name, text, shown) in [
            ("short", "read", "read   "),
            ("six letters", "search", "search "),
            ("too long for the column", "resolve", "resolve  "),
            (
                "a stranger's",
                "github__create_issue_comment",
                "github__create_issue…  ",
            ),
        ] {
            assert_eq!(word(text).text, shown, "{name}");
        }
    }

    #[test]
    fn a_key_is_never_parted_from_its_word() {
        for columns in 1..60 {
            let mut rows = wrap(&[Span::new("the answer failed", Role::Dim)], columns, &[], &[]);
            put_key(&mut rows, &key("r", "try again", Role::Error), 2, columns);
            let lines: Vec<_> = rows.iter().map(StyledLine::plain).collect();
            assert!(lines.iter().all(|it| width(it) <= columns), "{columns} {lines:?}");
            let is_whole = lines.iter().any(|it| it.ends_with("r try again"));
            assert_eq!(is_whole, columns >= 11, "{columns} {lines:?}");
        }
    }

    #[test]
    fn each_of_several_printed_keys_is_found_by_itself() {
        let key = |name, does| key(name, does, Role::Dim);
        let row = [key("j k", "step"), vec![gap(3)], key("tab, r, enter", "review")].concat();
        let found: Vec<_> = [0, 2, 4, 9, 12, 20].into_iter().map(|it| key_at(&row, it)).collect();
        let all = Some("tab, r, enter");
        assert_eq!(found, [Some("j"), Some("k"), Some("j k"), None, all, all]);
    }
}
