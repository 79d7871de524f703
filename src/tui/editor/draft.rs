//! A text that is being written: text, caret, selection, edits and yank buffer of one `TextArea`, the only copy of them.
//!
//! The crate moves and deletes by characters and undoes edit by edit. Here the caret never stands inside a grapheme, a
//! chip is crossed whole, and undo takes back a step: a word, a deletion, a paste, or a command of Vim.
//!
//! A chip is a mark of the private use area, which is the key to its content, and its label between two signs of that area.

use std::{borrow::Cow, ops::Range};

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use ratatui::style::{Modifier, Style};
use ratatui_textarea::{CursorMove, DataCursor, TextArea, WrapMode};
use unicode_segmentation::{GraphemeCursor, UnicodeSegmentation};

use crate::text::{Sanitized, width};

/// Most bytes of the edits that undo remembers, and those of an edit beside its text.
const MOST_UNDO_BYTES: usize = 16 << 20;
const EDIT_BYTES: usize = 100;

/// Most bytes of a paste into a draft of one line.
pub const MOST_LINE_BYTES: usize = 16 << 10;

/// The signs around the label of a chip, and its most bytes.
pub(super) const OPEN: char = '\u{FFFFC}';
pub(super) const CLOSE: char = '\u{FFFFD}';
pub(super) const MOST_LABEL: usize = 512;

pub(super) fn is_private(letter: char) -> bool {
    ('\u{F0000}'..=CLOSE).contains(&letter)
}

/// A place between two graphemes of a draft.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct TextPosition {
    /// The line, counted from 0.
    pub row: usize,
    /// Bytes from the beginning of the line.
    pub byte: usize,
}

impl TextPosition {
    /// The place so many bytes to the right, in the same line.
    pub fn right(self, bytes: usize) -> Self {
        Self {
            byte: self.byte + bytes,
            ..self
        }
    }

    /// The beginning of its line.
    pub fn line_start(self) -> Self {
        Self { byte: 0, ..self }
    }

    /// The beginning of the previous line.
    pub fn line_before(self) -> Option<Self> {
        self.row.checked_sub(1).map(|row| Self { row, byte: 0 })
    }
}

/// The kind of the last edit: one that continues it belongs to the same step of undo.
#[derive(Clone, Copy, Debug, Default)]
enum EditRun {
    #[default]
    None,
    /// Letters, up to the caret.
    Typed(TextPosition),
    Deleted(TextPosition),
}

/// Edits of the text area that are undone and redone together.
#[derive(Clone, Copy, Debug)]
struct UndoStep {
    edits: usize,
    /// Bytes that they take.
    bytes: usize,
    /// The caret on the other side of the step.
    caret: TextPosition,
}

#[derive(Clone, Debug)]
pub struct Draft {
    pub(super) area: TextArea<'static>,
    undo: Vec<UndoStep>,
    redo: Vec<UndoStep>,
    run: EditRun,
    /// Steps are joined while this is not 0.
    joined: usize,
    /// The yank buffer contains whole lines.
    pub kept_lines: bool,
    /// Grows with every change of text, caret or selection.
    pub version: u64,
}

impl Default for Draft {
    fn default() -> Self {
        Self::new("")
    }
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
    /// A draft whose caret is at the end of the text.
    pub fn new(text: &str) -> Self {
        let mut area = TextArea::new(text.split('\n').map(str::to_owned).collect());
        area.set_wrap_mode(WrapMode::WordOrGlyph);
        area.set_cursor_style(Style::new());
        area.set_cursor_line_style(Style::new());
        area.set_selection_style(Style::new().add_modifier(Modifier::REVERSED));
        area.set_max_histories(usize::MAX);
        area.move_cursor(CursorMove::Bottom);
        area.move_cursor(CursorMove::End);
        Self {
            area,
            undo: Vec::new(),
            redo: Vec::new(),
            run: EditRun::None,
            joined: 0,
            kept_lines: false,
            version: 0,
        }
    }

    pub fn is_empty(&self) -> bool {
        self.area.is_empty()
    }

    pub fn text(&self) -> Cow<'_, str> {
        self.slice(TextPosition::default()..self.end())
    }

    /// The lines of the text; there is always one.
    pub fn lines(&self) -> &[String] {
        self.area.lines()
    }

    pub fn line(&self, row: usize) -> &str {
        self.lines().get(row).map_or("", String::as_str)
    }

    /// The end of the text.
    pub fn end(&self) -> TextPosition {
        let row = self.lines().len() - 1;
        TextPosition {
            row,
            byte: self.line(row).len(),
        }
    }

    pub fn caret(&self) -> TextPosition {
        let cursor = self.area.cursor();
        self.position((cursor.0, cursor.1))
    }

    /// The other end of the selection.
    pub fn anchor(&self) -> Option<TextPosition> {
        let (start, end) = self.area.selection_range()?;
        let anchor = if self.area.cursor() == start { end } else { start };
        Some(self.position(anchor))
    }

    /// The selected part, if there is one.
    pub fn selection(&self) -> Option<Range<TextPosition>> {
        let (start, end) = self.area.selection_range()?;
        (start != end).then(|| self.position(start)..self.position(end))
    }

    /// The place at a line and a character of it.
    pub(super) fn position(&self, (row, character): (usize, usize)) -> TextPosition {
        let line = self.line(row);
        let byte = line.char_indices().nth(character).map_or(line.len(), |it| it.0);
        TextPosition { row, byte }
    }

    /// The text of a part; copied if it has several lines.
    pub fn slice(&self, range: Range<TextPosition>) -> Cow<'_, str> {
        let (start, end) = (range.start, range.end);
        if start.row == end.row {
            return self
                .line(start.row)
                .get(start.byte..end.byte)
                .unwrap_or_default()
                .into();
        }
        let lines = self.lines().get(start.row..=end.row).unwrap_or_default().join("\n");
        let end = lines.len() - (self.line(end.row).len() - end.byte);
        lines.get(start.byte..end).unwrap_or_default().to_owned().into()
    }

    /// Bytes of a part.
    fn bytes(&self, range: &Range<TextPosition>) -> usize {
        let lines = self.lines().get(range.start.row..range.end.row).unwrap_or_default();
        lines.iter().map(|it| it.len() + 1).sum::<usize>() + range.end.byte - range.start.byte
    }

    /// Moves the text area's cursor to a place, and with it the end of a selection that it has.
    fn put(&mut self, at: TextPosition) {
        let line = self.line(at.row);
        let goal = DataCursor(at.row, line.get(..at.byte).map_or(0, |it| it.chars().count()));
        let is_line_end = at.byte == line.len();
        // A jump takes 16 bits; to lines and characters beyond, the rows of the screen are walked.
        self.area
            .move_cursor(match (u16::try_from(goal.0), u16::try_from(goal.1)) {
                (Ok(row), column) => CursorMove::Jump(row, column.unwrap_or(u16::MAX)),
                (Err(_), _) => CursorMove::Jump(u16::MAX, 0),
            });
        let mut step = CursorMove::Down;
        while self.area.cursor() < goal {
            let from = self.area.cursor();
            self.area.move_cursor(if is_line_end && from.0 == goal.0 {
                CursorMove::End
            } else {
                step
            });
            if self.area.cursor() > goal && step == CursorMove::Down {
                self.area.move_cursor(CursorMove::Up);
            }
            if self.area.cursor() <= from {
                step = CursorMove::Forward;
            }
        }
    }

    /// Puts caret and selection somewhere, which is no change yet.
    pub(super) fn mark(&mut self, anchor: Option<TextPosition>, caret: TextPosition) {
        self.area.cancel_selection();
        if let Some(anchor) = anchor {
            self.put(anchor);
            self.area.start_selection();
        }
        self.put(caret);
    }

    /// Puts the caret somewhere, and the selection's other end where it is to be.
    pub fn go(&mut self, to: TextPosition, selecting: bool) {
        let anchor = selecting.then(|| self.anchor().unwrap_or(self.caret()));
        self.mark(anchor, self.border(to));
        self.run = EditRun::None;
        self.version += 1;
    }

    pub fn select(&mut self, range: Range<TextPosition>) {
        self.mark(Some(self.border(range.start)), self.border(range.end));
        self.version += 1;
    }

    pub fn deselect(&mut self) {
        self.area.cancel_selection();
        self.version += 1;
    }

    /// Puts `with` in the place of a part; the caret stands behind it.
    pub fn replace(&mut self, range: Range<TextPosition>, with: &str) {
        let start = self.border(range.start);
        let end = self.border(range.end).max(start);
        if start == end && with.is_empty() {
            return;
        }
        let removed = self.bytes(&(start..end));
        let goes_on = match self.run {
            EditRun::Typed(at) => start == end && at == start && !with.contains(char::is_whitespace),
            EditRun::Deleted(at) => with.is_empty() && (end == at || start == at) && removed < 32,
            EditRun::None => false,
        };
        if !goes_on {
            self.remember();
        }
        self.redo.clear();
        if let Some(step) = self.undo.last_mut() {
            let edits = usize::from(start < end) + usize::from(!with.is_empty());
            step.edits += edits;
            step.bytes += removed + with.len() + edits * EDIT_BYTES;
        }
        self.mark((start < end).then_some(start), end);
        self.area.insert_str(with);
        // What was put in may have joined with what stands behind it.
        let caret = self.border(self.caret());
        self.mark(None, caret);
        self.run = if with.is_empty() {
            EditRun::Deleted(start)
        } else if start == end && with.chars().count() <= 2 {
            EditRun::Typed(caret)
        } else {
            EditRun::None
        };
        self.version += 1;
    }

    /// Inserts text at the caret, or replaces the selection by it.
    pub fn insert(&mut self, text: &str) {
        let caret = self.caret();
        self.replace(self.selection().unwrap_or(caret..caret), text);
    }

    /// Cuts a part: removes it and keeps it.
    pub fn take(&mut self, range: Range<TextPosition>) {
        if range.is_empty() {
            return;
        }
        self.keep(range.clone(), false);
        self.replace(range, "");
    }

    /// Cuts the whole text.
    pub fn take_all(&mut self) {
        self.take(TextPosition::default()..self.end());
    }

    /// Puts a part into the yank buffer.
    pub fn keep(&mut self, range: Range<TextPosition>, lines: bool) {
        let text = self.slice(range).into_owned();
        self.area.set_yank_text(text);
        self.kept_lines = lines;
    }

    /// The text that was cut or copied last.
    pub fn kept(&self) -> String {
        self.area.yank_text()
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
        self.remember();
        self.joined += 1;
    }

    pub fn end_step(&mut self) {
        self.joined = self.joined.saturating_sub(1);
        self.run = EditRun::None;
        if self.joined == 0 {
            self.undo.pop_if(|it| it.edits == 0);
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
            KeyCode::Char('a') if ctrl => self.go(at.line_start(), false),
            KeyCode::Char('e') if ctrl => self.go(self.line_end(at), false),
            KeyCode::Char('s') if alt => self.select(TextPosition::default()..self.end()),
            KeyCode::Char('b') if alt => self.go(self.word_before(at), false),
            KeyCode::Char('f') if alt => self.go(self.word_after(at), false),
            KeyCode::Char('b') if ctrl => self.go(self.before(at), false),
            KeyCode::Char('f') if ctrl => self.go(self.after(at), false),
            KeyCode::Char('w') if ctrl => self.take(self.selection().unwrap_or(self.word_before(at)..at)),
            KeyCode::Char('u') if ctrl => self.take(at.line_start()..at),
            KeyCode::Char('d') if ctrl => self.replace(at..self.after(at), ""),
            KeyCode::Char('d') if alt => self.take(at..self.word_after(at)),
            KeyCode::Char('k') if ctrl || alt => self.take(at..self.line_end(at)),
            KeyCode::Char('h') if ctrl => return self.edit(KeyEvent::from(KeyCode::Backspace)),
            KeyCode::Char('t') if ctrl => self.transpose(),
            KeyCode::Char('/' | '_' | '-') if ctrl => return self.undo(),
            KeyCode::Char('/' | '_' | '-') if alt => return self.redo(),
            KeyCode::Char('y') if ctrl => {
                let kept = self.kept();
                self.as_one(|draft| draft.insert(&kept));
            }
            KeyCode::Backspace | KeyCode::Delete if self.selection().is_some() => {
                self.take(self.selection().unwrap_or(at..at));
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
            KeyCode::Home if ctrl => self.go(TextPosition::default(), shift),
            KeyCode::End if ctrl => self.go(self.end(), shift),
            KeyCode::Home => self.go(at.line_start(), shift),
            KeyCode::End => self.go(self.line_end(at), shift),
            _ => return false,
        }
        true
    }

    /// Swaps the graphemes around the caret, at the end of a line the last two, and moves behind them.
    fn transpose(&mut self) {
        let at = self.caret();
        let last = if at == self.line_end(at) { self.before(at) } else { at };
        // The beginning of a line has nothing before it.
        if at.byte == 0 || last.byte == 0 {
            return;
        }
        let (first, end) = (self.before(last), self.after(last));
        let swapped = format!("{}{}", self.slice(last..end), self.slice(first..last));
        self.as_one(|draft| draft.replace(first..end, &swapped));
    }

    /// The draft as one line of at most so many columns, moved so that the caret is in it, and the caret's column.
    pub fn window(&self, columns: usize) -> (Sanitized, usize) {
        let shown = |range: Range<TextPosition>| Sanitized::line(&self.slice(range));
        // One column is the caret's own, behind the last letter.
        let mut room = columns.max(2) - 1;
        let caret = self.caret();
        let mut start = caret;
        while start > TextPosition::default() {
            let before = self.before(start);
            match room.checked_sub(width::width(&shown(before..start))) {
                Some(rest) => (start, room) = (before, rest),
                None => break,
            }
        }
        let column = width::width(&shown(start..caret));
        let line = shown(start..self.end());
        (Sanitized::new(width::cut(&line, columns)), column)
    }

    pub fn undo(&mut self) -> bool {
        self.step(true)
    }

    pub fn redo(&mut self) -> bool {
        self.step(false)
    }

    fn step(&mut self, back: bool) -> bool {
        let caret = self.caret();
        let (from, to) = if back {
            (&mut self.undo, &mut self.redo)
        } else {
            (&mut self.redo, &mut self.undo)
        };
        let Some(step) = from.pop() else {
            return false;
        };
        to.push(UndoStep { caret, ..step });
        // After each edit the crate breaks the whole text, which is needed once.
        self.area.set_wrap_mode(WrapMode::None);
        for _ in 0..step.edits {
            if back {
                self.area.undo();
            } else {
                self.area.redo();
            }
        }
        self.area.set_wrap_mode(WrapMode::WordOrGlyph);
        self.mark(None, self.border(step.caret));
        self.run = EditRun::None;
        self.version += 1;
        true
    }

    /// Forgets what was done: nothing can be undone or redone.
    pub fn forget_undo(&mut self) {
        // The text area forgets all edits or none.
        self.area.set_max_histories(usize::MAX);
        (self.undo, self.redo) = (Vec::new(), Vec::new());
        self.run = EditRun::None;
    }

    /// Begins a step of undo, unless one is open.
    fn remember(&mut self) {
        if self.joined > 0 && !self.undo.is_empty() {
            return;
        }
        if self.undo.iter().map(|it| it.bytes).sum::<usize>() > MOST_UNDO_BYTES {
            self.forget_undo();
        }
        self.undo.push(UndoStep {
            edits: 0,
            bytes: 0,
            caret: self.caret(),
        });
    }

    /// The border of a grapheme at or before a place.
    fn border(&self, at: TextPosition) -> TextPosition {
        let at = at.min(self.end());
        let line = self.line(at.row);
        let mut byte = line.floor_char_boundary(at.byte);
        let mut cursor = GraphemeCursor::new(byte, line.len(), true);
        if let Ok(false) = cursor.is_boundary(line, 0) {
            byte = cursor.prev_boundary(line, 0).ok().flatten().unwrap_or(0);
        }
        let byte = chip_around(line, byte).unwrap_or(byte);
        TextPosition { byte, ..at }
    }

    /// The place one grapheme before `at`.
    pub fn before(&self, at: TextPosition) -> TextPosition {
        match at.byte.checked_sub(1) {
            Some(byte) => self.border(TextPosition { byte, ..at }),
            None => at.line_before().map_or(at, |it| self.line_end(it)),
        }
    }

    /// The place one grapheme after `at`.
    pub fn after(&self, at: TextPosition) -> TextPosition {
        let line = self.line(at.row);
        if at.byte >= line.len() {
            return self.line_after(at).unwrap_or(at);
        }
        let next = |byte| {
            let mut cursor = GraphemeCursor::new(byte, line.len(), true);
            cursor.next_boundary(line, 0).ok().flatten().unwrap_or(line.len())
        };
        let mut byte = next(at.byte);
        if chip_around(line, byte).is_some() {
            let close = line.get(byte..).and_then(|it| it.find(CLOSE));
            byte = close.map_or(line.len(), |it| next(byte + it));
        }
        TextPosition { byte, ..at }
    }

    /// The grapheme at a place; empty at the end.
    pub fn grapheme(&self, at: TextPosition) -> Cow<'_, str> {
        self.slice(at..self.after(at))
    }

    pub fn class_at(&self, at: TextPosition) -> Class {
        class(&self.grapheme(at))
    }

    /// The end of the line that contains `at`, without its line break.
    pub fn line_end(&self, at: TextPosition) -> TextPosition {
        let byte = self.line(at.row).len();
        TextPosition { byte, ..at }
    }

    /// The beginning of the next line.
    pub fn line_after(&self, at: TextPosition) -> Option<TextPosition> {
        let row = at.row + 1;
        (row < self.lines().len()).then_some(TextPosition { row, byte: 0 })
    }

    /// The first place of the line that is not blank.
    pub fn line_text(&self, at: TextPosition) -> TextPosition {
        let line = self.line(at.row);
        let byte = line.len() - line.trim_start().len();
        TextPosition { byte, ..at }
    }

    /// The end of the next word, as most editors move.
    pub fn word_after(&self, at: TextPosition) -> TextPosition {
        let at = self.skip(at, |it| it == Class::Blank);
        let class = self.class_at(at);
        self.skip(at, |it| it == class && it != Class::Blank)
    }

    /// The beginning of the word that contains `at`, or of the previous one.
    pub fn word_before(&self, at: TextPosition) -> TextPosition {
        let at = self.skip_back(at, |it| it == Class::Blank);
        let class = self.class_at(self.before(at));
        self.skip_back(at, |it| it == class)
    }

    /// The first place from `at` on whose class is not wanted.
    pub fn skip(&self, mut at: TextPosition, wanted: impl Fn(Class) -> bool) -> TextPosition {
        let end = self.end();
        while at < end && wanted(self.class_at(at)) {
            at = self.after(at);
        }
        at
    }

    /// The last place up to `at` before which the class is not wanted.
    pub fn skip_back(&self, mut at: TextPosition, wanted: impl Fn(Class) -> bool) -> TextPosition {
        while at > TextPosition::default() && wanted(self.class_at(self.before(at))) {
            at = self.before(at);
        }
        at
    }

    /// The place in a line, as many graphemes from its beginning.
    pub fn in_line(&self, at: TextPosition, graphemes: usize) -> TextPosition {
        let line = self.line(at.row);
        let byte = line.grapheme_indices(true).nth(graphemes).map_or(line.len(), |it| it.0);
        TextPosition { byte, ..at }
    }

    /// Graphemes between the beginning of the line and a place.
    pub fn column(&self, at: TextPosition) -> usize {
        self.slice(at.line_start()..at).graphemes(true).count()
    }
}

/// The beginning of the chip around a byte of a line, if that is inside of one.
fn chip_around(line: &str, byte: usize) -> Option<usize> {
    let from = line.floor_char_boundary(byte.saturating_sub(MOST_LABEL));
    // The first byte of every private character, so that other lines are passed fast.
    let before = line.get(from..byte).filter(|it| it.as_bytes().contains(&0xf3))?;
    let (at, sign) = before.char_indices().rfind(|(_, it)| is_private(*it) && *it != OPEN)?;
    let is_chip = || {
        line.get(from + at + sign.len_utf8()..)
            .is_some_and(|it| it.starts_with(OPEN))
    };
    (sign != CLOSE && is_chip()).then_some(from + at)
}

#[cfg(test)]
impl Draft {
    /// The place so many bytes from the beginning of the text.
    pub fn place(&self, bytes: usize) -> TextPosition {
        let text = self.text();
        let before = text.get(..text.floor_char_boundary(bytes)).unwrap_or_default();
        TextPosition {
            row: before.matches('\n').count(),
            byte: before.len() - before.rfind('\n').map_or(0, |it| it + 1),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// A place in the first line.
    fn at(byte: usize) -> TextPosition {
        TextPosition { row: 0, byte }
    }

    #[test]
    fn a_step_of_undo_is_a_word_a_deletion_or_a_paste() {
        let mut draft = Draft::default();
        for letter in "two words".chars() {
            draft.insert(&letter.to_string());
        }
        draft.insert(" and a paste");
        draft.replace(at(0)..at(4), "");
        let mut seen = vec![draft.text().into_owned()];
        while draft.undo() {
            seen.push(draft.text().into_owned());
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
        let mut at = TextPosition::default();
        let mut seen = Vec::new();
        while at < draft.end() {
            let next = draft.word_after(at);
            seen.push(draft.slice(at..next).trim().to_owned());
            at = next;
        }
        assert_eq!(seen, ["fn", "größe", "(", "e\u{301}a", "):", "語漢", "👨‍👩‍👧", "x"]);
        let mut back = Vec::new();
        while at > TextPosition::default() {
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
        draft.go(at(4), false);
        draft.go(at(7), true);
        assert_eq!(draft.selection(), Some(at(4)..at(7)));
        draft.insert("2");
        assert_eq!((&*draft.text(), draft.selection()), ("one 2", None));
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
        draft.go(at(0), false);
        assert_eq!((draft.window(5).0.as_str(), draft.window(5).1), ("語語", 0));
    }

    proptest! {
        #[test]
        fn places_stay_borders_and_undo_finds_the_way_back(
            edits in proptest::collection::vec((0usize..40, 0usize..8, "[a 語\u{301}👨\u{200d}\n]{0,3}"), 0..30)
        ) {
            let mut draft = Draft::new("begin 語 e\u{301}");
            let first = draft.text().into_owned();
            for (at, length, with) in edits {
                draft.replace(draft.place(at)..draft.place(at + length), &with);
                let caret = draft.caret();
                let steps = [caret, draft.before(caret), draft.after(caret), draft.word_after(caret), draft.word_before(caret)];
                for at in steps {
                    prop_assert_eq!(draft.border(at), at);
                }
            }
            while draft.undo() {}
            prop_assert_eq!(draft.text(), first);
        }
    }
}
