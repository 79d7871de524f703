//! A text that is being written: caret, selection, undo. Pure; how it is shown is the field's business.
//!
//! Places are bytes, and always borders of graphemes. A chip is one character of a private area, so that whatever moves
//! over a letter or takes one away does the same with it.

use std::ops::Range;

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use unicode_segmentation::{GraphemeCursor, UnicodeSegmentation};

use crate::text::{Sanitized, width};

/// Most states that undo remembers, and their most bytes in all.
const MOST_UNDO: usize = 500;
const MOST_UNDO_BYTES: usize = 4 << 20;

/// Most bytes of a paste into a draft of one line.
pub const MOST_LINE_BYTES: usize = 16 << 10;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Snapshot {
    text: String,
    caret: usize,
}

/// The kind of the last edit: one that continues it belongs to the same step of undo.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum EditRun {
    #[default]
    None,
    /// Letters, up to the caret.
    Typed(usize),
    Deleted(usize),
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Draft {
    text: String,
    caret: usize,
    /// The other end of the selection.
    anchor: Option<usize>,
    undo: Vec<Snapshot>,
    redo: Vec<Snapshot>,
    run: EditRun,
    /// Steps are joined while this is not 0.
    joined: usize,
    /// The text that was cut or copied last.
    pub kept: String,
    /// `kept` is whole lines.
    pub kept_lines: bool,
    /// Grows with every change of text, caret or selection.
    pub version: u64,
}

/// The class of a letter, for motions by words.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Class {
    Blank,
    Word,
    Sign,
}

pub fn class(grapheme: &str) -> Class {
    match grapheme.chars().next() {
        None => Class::Blank,
        Some(it) if it.is_whitespace() => Class::Blank,
        Some(it) if it.is_alphanumeric() || it == '_' => Class::Word,
        Some(_) => Class::Sign,
    }
}

impl Draft {
    pub fn new(text: &str) -> Self {
        Self {
            text: text.to_owned(),
            caret: text.len(),
            ..Self::default()
        }
    }

    pub fn text(&self) -> &str {
        &self.text
    }

    pub fn caret(&self) -> usize {
        self.caret
    }

    pub fn anchor(&self) -> Option<usize> {
        self.anchor
    }

    /// The selected part, if there is one.
    pub fn selection(&self) -> Option<Range<usize>> {
        let anchor = self.anchor?;
        let range = anchor.min(self.caret)..anchor.max(self.caret);
        (!range.is_empty()).then_some(range)
    }

    pub fn slice(&self, range: Range<usize>) -> &str {
        self.text.get(range).unwrap_or_default()
    }

    /// Puts the caret somewhere, and the selection's other end where it is to be.
    pub fn go(&mut self, to: usize, selecting: bool) {
        let to = self.border(to.min(self.text.len()));
        if selecting {
            self.anchor.get_or_insert(self.caret);
        } else {
            self.anchor = None;
        }
        self.caret = to;
        self.run = EditRun::None;
        self.version += 1;
    }

    pub fn select(&mut self, range: Range<usize>) {
        self.anchor = Some(self.border(range.start.min(self.text.len())));
        self.caret = self.border(range.end.min(self.text.len()));
        self.version += 1;
    }

    pub fn deselect(&mut self) {
        self.anchor = None;
        self.version += 1;
    }

    /// Puts `with` in the place of a part; the caret stands behind it.
    pub fn replace(&mut self, range: Range<usize>, with: &str) {
        let start = self.border(range.start.min(self.text.len()));
        let end = self.border(range.end.min(self.text.len())).max(start);
        if start == end && with.is_empty() {
            return;
        }
        let goes_on = match self.run {
            EditRun::Typed(at) => start == end && at == start && !with.contains(char::is_whitespace),
            EditRun::Deleted(at) => with.is_empty() && (end == at || start == at) && end - start < 32,
            EditRun::None => false,
        };
        if !goes_on {
            self.remember();
        }
        self.redo.clear();
        self.text.replace_range(start..end, with);
        // What was put in may have joined with what stands behind it.
        self.caret = self.border(start + with.len());
        self.anchor = None;
        self.run = if with.is_empty() {
            EditRun::Deleted(start)
        } else if start == end && with.chars().count() <= 2 {
            EditRun::Typed(self.caret)
        } else {
            EditRun::None
        };
        self.version += 1;
    }

    /// Inserts text at the caret, or replaces the selection by it.
    pub fn insert(&mut self, text: &str) {
        let range = self.selection().unwrap_or(self.caret..self.caret);
        self.replace(range, text);
    }

    /// Cuts a part: removes it and keeps it.
    pub fn take(&mut self, range: Range<usize>) {
        if range.is_empty() {
            return;
        }
        self.keep(range.clone(), false);
        self.replace(range, "");
    }

    pub fn keep(&mut self, range: Range<usize>, lines: bool) {
        self.kept = self.slice(range).to_owned();
        self.kept_lines = lines;
    }

    /// Makes everything that `edit` does one step of undo.
    pub fn as_one<R>(&mut self, edit: impl FnOnce(&mut Self) -> R) -> R {
        self.begin_step();
        let result = edit(self);
        self.end_step();
        result
    }

    /// Joins all edits until `end_step` into one step of undo.
    pub fn begin_step(&mut self) {
        if self.joined == 0 {
            self.remember();
        }
        self.joined += 1;
    }

    pub fn end_step(&mut self) {
        self.joined = self.joined.saturating_sub(1);
        self.run = EditRun::None;
        if self.joined == 0 && self.undo.last().is_some_and(|it| it.text == self.text) {
            self.undo.pop();
        }
    }

    /// Ends every step that is open.
    pub fn end_steps(&mut self) {
        self.joined = self.joined.min(1);
        self.end_step();
    }

    /// Makes the next edit a step of its own.
    pub fn end_run(&mut self) {
        self.run = EditRun::None;
    }

    /// Takes the key as an edit or a motion; `false` if it is neither. Up and Down need rows and are left to the caller.
    pub fn edit(&mut self, event: KeyEvent) -> bool {
        let ctrl = event.modifiers.contains(KeyModifiers::CONTROL);
        let alt = event.modifiers.contains(KeyModifiers::ALT);
        let shift = event.modifiers.contains(KeyModifiers::SHIFT);
        let by_word = ctrl || alt;
        let at = self.caret();
        match event.code {
            KeyCode::Char(letter) if !ctrl && !alt => {
                if letter.is_control() {
                    return false;
                }
                self.insert(&letter.to_string());
            }
            KeyCode::Char('a') if ctrl => self.go(self.line_start(at), false),
            KeyCode::Char('e') if ctrl => self.go(self.line_end(at), false),
            KeyCode::Char('a') if alt => self.select(0..self.text().len()),
            KeyCode::Char('b') if alt => self.go(self.word_before(at), false),
            KeyCode::Char('f') if alt => self.go(self.word_after(at), false),
            KeyCode::Char('b') if ctrl => self.go(self.before(at), false),
            KeyCode::Char('f') if ctrl => self.go(self.after(at), false),
            KeyCode::Char('w') if ctrl => self.take(self.selection().unwrap_or(self.word_before(at)..at)),
            KeyCode::Char('u') if ctrl => self.take(self.line_start(at)..at),
            KeyCode::Char('d') if ctrl => self.replace(at..self.after(at), ""),
            KeyCode::Char('d') if alt => self.take(at..self.word_after(at)),
            KeyCode::Char('k') if alt => self.take(at..self.line_end(at).max(at)),
            KeyCode::Char('/' | '_' | '-') if ctrl => return self.undo(),
            KeyCode::Char('/' | '_' | '-') if alt => return self.redo(),
            KeyCode::Char('y') if ctrl => {
                let kept = self.kept.clone();
                self.as_one(|draft| draft.insert(&kept));
            }
            KeyCode::Backspace | KeyCode::Delete if self.selection().is_some() => {
                self.take(self.selection().unwrap_or_default());
            }
            KeyCode::Backspace if by_word => self.take(self.word_before(at)..at),
            KeyCode::Delete if by_word => self.take(at..self.word_after(at)),
            KeyCode::Backspace => self.replace(self.before(at)..at, ""),
            KeyCode::Delete => self.replace(at..self.after(at), ""),
            KeyCode::Left if by_word => self.go(self.word_before(at), shift),
            KeyCode::Right if by_word => self.go(self.word_after(at), shift),
            // Without Shift a selection ends at the side that the key points to.
            KeyCode::Left if !shift && self.selection().is_some() => {
                self.go(self.selection().map_or(at, |it| it.start), false);
            }
            KeyCode::Right if !shift && self.selection().is_some() => {
                self.go(self.selection().map_or(at, |it| it.end), false);
            }
            KeyCode::Left => self.go(self.before(at), shift),
            KeyCode::Right => self.go(self.after(at), shift),
            KeyCode::Home if ctrl => self.go(0, shift),
            KeyCode::End if ctrl => self.go(self.text().len(), shift),
            KeyCode::Home => self.go(self.line_start(at), shift),
            KeyCode::End => self.go(self.line_end(at), shift),
            _ => return false,
        }
        true
    }

    /// The draft as one line of at most so many columns, moved so that the caret is in it, and the caret's column.
    pub fn window(&self, columns: usize) -> (Sanitized, usize) {
        let shown = |range: Range<usize>| Sanitized::line(self.slice(range));
        // One column is the caret's own, behind the last letter.
        let mut room = columns.max(2) - 1;
        let mut start = self.caret;
        while start > 0 {
            let before = self.before(start);
            match room.checked_sub(width::width(&shown(before..start))) {
                Some(rest) => (start, room) = (before, rest),
                None => break,
            }
        }
        let caret = width::width(&shown(start..self.caret));
        let line = shown(start..self.text.len());
        (Sanitized::new(width::cut(&line, columns)), caret)
    }

    pub fn undo(&mut self) -> bool {
        self.step(true)
    }

    pub fn redo(&mut self) -> bool {
        self.step(false)
    }

    fn step(&mut self, back: bool) -> bool {
        let (from, to) = if back {
            (&mut self.undo, &mut self.redo)
        } else {
            (&mut self.redo, &mut self.undo)
        };
        let Some(state) = from.pop() else {
            return false;
        };
        to.push(Snapshot {
            text: std::mem::replace(&mut self.text, state.text),
            caret: self.caret,
        });
        self.caret = state.caret.min(self.text.len());
        self.anchor = None;
        self.run = EditRun::None;
        self.version += 1;
        true
    }

    fn remember(&mut self) {
        if self.joined > 0 {
            return;
        }
        self.undo.push(Snapshot {
            text: self.text.clone(),
            caret: self.caret,
        });
        let mut bytes: usize = self.undo.iter().map(|it| it.text.len()).sum();
        while self.undo.len() > MOST_UNDO || bytes > MOST_UNDO_BYTES && self.undo.len() > 1 {
            bytes -= self.undo.remove(0).text.len();
        }
    }

    /// The border of a grapheme at or before a place.
    fn border(&self, at: usize) -> usize {
        let at = self.text.floor_char_boundary(at);
        let mut cursor = GraphemeCursor::new(at, self.text.len(), true);
        match cursor.is_boundary(&self.text, 0) {
            Ok(false) => self.before(at),
            Ok(true) | Err(_) => at,
        }
    }

    /// The place one grapheme before `at`.
    pub fn before(&self, at: usize) -> usize {
        let mut cursor = GraphemeCursor::new(at, self.text.len(), true);
        cursor.prev_boundary(&self.text, 0).ok().flatten().unwrap_or(0)
    }

    /// The place one grapheme after `at`.
    pub fn after(&self, at: usize) -> usize {
        let mut cursor = GraphemeCursor::new(at, self.text.len(), true);
        let next = cursor.next_boundary(&self.text, 0).ok().flatten();
        next.unwrap_or(self.text.len())
    }

    /// The grapheme at a place; empty at the end.
    pub fn grapheme(&self, at: usize) -> &str {
        self.slice(at..self.after(at))
    }

    pub fn class_at(&self, at: usize) -> Class {
        class(self.grapheme(at))
    }

    /// The beginning of the line that contains `at`.
    pub fn line_start(&self, at: usize) -> usize {
        self.slice(0..at).rfind('\n').map_or(0, |it| it + 1)
    }

    /// The end of the line that contains `at`, without its line break.
    pub fn line_end(&self, at: usize) -> usize {
        let rest = self.text.get(at..).unwrap_or_default();
        rest.find('\n').map_or(self.text.len(), |it| at + it)
    }

    /// The first place of the line that is not blank.
    pub fn line_text(&self, at: usize) -> usize {
        let (start, end) = (self.line_start(at), self.line_end(at));
        let line = self.slice(start..end);
        start + (line.len() - line.trim_start().len())
    }

    /// The end of the next word, as most editors move.
    pub fn word_after(&self, at: usize) -> usize {
        let at = self.skip(at, |it| it == Class::Blank);
        let class = self.class_at(at);
        self.skip(at, |it| it == class && it != Class::Blank)
    }

    /// The beginning of the word that contains `at`, or of the previous one.
    pub fn word_before(&self, at: usize) -> usize {
        let at = self.skip_back(at, |it| it == Class::Blank);
        if at == 0 {
            return 0;
        }
        let class = self.class_at(self.before(at));
        self.skip_back(at, |it| it == class)
    }

    /// The first place from `at` on whose class is not wanted.
    pub fn skip(&self, mut at: usize, wanted: impl Fn(Class) -> bool) -> usize {
        while at < self.text.len() && wanted(self.class_at(at)) {
            at = self.after(at);
        }
        at
    }

    /// The last place up to `at` before which the class is not wanted.
    pub fn skip_back(&self, mut at: usize, wanted: impl Fn(Class) -> bool) -> usize {
        while at > 0 && wanted(self.class_at(self.before(at))) {
            at = self.before(at);
        }
        at
    }

    /// The place in another line, as many graphemes from its beginning.
    pub fn in_line(&self, line_start: usize, graphemes: usize) -> usize {
        let end = self.line_end(line_start);
        let line = self.slice(line_start..end);
        line.grapheme_indices(true)
            .nth(graphemes)
            .map_or(end, |it| line_start + it.0)
    }

    pub fn column(&self, at: usize) -> usize {
        self.slice(self.line_start(at)..at).graphemes(true).count()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_step_of_undo_is_a_word_a_deletion_or_a_paste() {
        let mut draft = Draft::default();
        for letter in "two words".chars() {
            draft.insert(&letter.to_string());
        }
        draft.insert(" and a paste");
        draft.replace(0..4, "");
        let mut seen = vec![draft.text().to_owned()];
        while draft.undo() {
            seen.push(draft.text().to_owned());
        }
        assert_eq!(
            seen,
            ["words and a paste", "two words and a paste", "two words", "two", ""]
        );
        while draft.redo() {}
        assert_eq!(draft.text(), "words and a paste");
        draft.undo();
        draft.insert("x");
        assert!(!draft.redo(), "what was written since is not lost");
    }

    #[test]
    fn words_are_walked_by_what_people_see_as_letters() {
        let draft = Draft::new("fn  größe(e\u{301}a): 語漢 👨‍👩‍👧x");
        let mut at = 0;
        let mut seen = Vec::new();
        while at < draft.text().len() {
            let next = draft.word_after(at);
            seen.push(draft.slice(at..next).trim().to_owned());
            at = next;
        }
        assert_eq!(seen, ["fn", "größe", "(", "e\u{301}a", "):", "語漢", "👨‍👩‍👧", "x"]);
        let mut back = Vec::new();
        while at > 0 {
            let next = draft.word_before(at);
            back.push(draft.slice(next..at).trim().to_owned());
            at = next;
        }
        back.reverse();
        assert_eq!(back, seen);
    }

    #[test]
    fn what_is_typed_takes_the_place_of_what_is_selected() {
        let mut draft = Draft::new("one two");
        draft.go(4, false);
        draft.go(7, true);
        assert_eq!(draft.selection(), Some(4..7));
        draft.insert("2");
        assert_eq!((draft.text(), draft.selection()), ("one 2", None));
    }

    #[test]
    fn a_long_line_is_shown_around_the_caret() {
        let mut draft = Draft::new(&"語".repeat(100_000));
        draft.insert("ab");
        for (columns, shown) in [
            (1, "b"),
            (2, "b"),
            (3, "ab"),
            (4, "ab"),
            (5, "語ab"),
            (6, "語ab"),
            (7, "語語ab"),
        ] {
            let (line, caret) = draft.window(columns);
            assert_eq!((line.as_str(), caret), (shown, width::width(shown)), "{columns}");
        }
        draft.go(0, false);
        assert_eq!((draft.window(5).0.as_str(), draft.window(5).1), ("語語", 0));
    }

    proptest! {
        #[test]
        fn places_stay_borders_and_undo_finds_the_way_back(
            edits in proptest::collection::vec((0usize..40, 0usize..8, "[a 語\u{301}👨\u{200d}\n]{0,3}"), 0..30)
        ) {
            let mut draft = Draft::new("begin 語 e\u{301}");
            let first = draft.text().to_owned();
            for (at, length, with) in edits {
                draft.replace(at..at + length, &with);
                prop_assert!(draft.text().is_char_boundary(draft.caret()));
                let steps = [draft.before(draft.caret()), draft.after(draft.caret()), draft.word_after(draft.caret()), draft.word_before(draft.caret())];
                prop_assert!(steps.iter().all(|it| draft.text().is_char_boundary(*it)));
            }
            while draft.undo() {}
            prop_assert_eq!(draft.text(), first);
        }
    }
}
