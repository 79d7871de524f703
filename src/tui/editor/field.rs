//! The one text field of the program: a draft with chips, Vim's keys, and its picture.
//!
//! The draft's text area breaks its lines and paints them. What is large or no text becomes a chip: a mark and a label in
//! the draft, all of it in what is sent.

use std::{ops::Range, sync::Arc};

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use ratatui::{buffer::Buffer, layout::Rect, style::Style, widgets::Widget};
use serde_json::Value;

use super::{
    draft::{CLOSE, Draft, MOST_LABEL, OPEN, TextPosition, is_private},
    vim::{self, Vim},
};
use crate::{
    locale::figure,
    protocol::{Message, PartKind},
    t,
    text::{Sanitized, WordList},
};

/// Endings of pictures' names.
const PICTURES: WordList = WordList(".png .jpg .jpeg .gif .webp");

/// A paste of more than this many bytes or lines becomes a chip.
const CHIP_BYTES: usize = 8 * 1024;
const CHIP_LINES: usize = 12;

/// Characters of the private use area that mark chips, one each; the last two are the signs around a label.
const CHIP_FIRST: u32 = 0xF0000;
const CHIPS: u32 = 0xFFFC;

/// Content that is shown as a label with its size.
#[derive(Clone, Debug, PartialEq)]
pub enum Chip {
    /// A pasted text.
    Text(String),
    /// A picture, as a message carries it.
    Picture { name: String, bytes: usize, data: Value },
}

pub struct Field {
    draft: Draft,
    chips: Vec<Chip>,
    pub vim: Option<Vim>,
    /// The column that up and down keep to, for the version that they left.
    goal: Option<(u64, usize)>,
    /// Columns that the text is broken for.
    width: u16,
    /// Rows taken, for a version and a width.
    measured: Option<(u64, u16, u16)>,
    drawn: Option<((u64, u16, u16, Style), Drawn)>,
    /// Something was pasted since the field was empty.
    has_paste: bool,
}

/// A field as it was drawn.
#[derive(Clone, Debug)]
pub struct Drawn {
    buffer: Arc<Buffer>,
    /// Column and row of the caret inside the field.
    pub caret: (u16, u16),
    /// Rows above the first one are not in it.
    pub is_cut: bool,
}

impl Default for Field {
    fn default() -> Self {
        let mut field = Self {
            draft: Draft::default(),
            chips: Vec::new(),
            vim: None,
            goal: None,
            width: 80,
            measured: None,
            drawn: None,
            has_paste: false,
        };
        field.wrap();
        field
    }
}

impl Field {
    pub fn version(&self) -> u64 {
        self.draft.version
    }

    pub fn is_empty(&self) -> bool {
        self.draft.is_empty()
    }

    pub fn starts_with(&self, prefix: &str) -> bool {
        self.draft.line(0).starts_with(prefix)
    }

    /// The text as it will be sent: pasted texts written out, pictures by their names.
    pub fn text(&self) -> String {
        self.expand(&self.draft.text())
    }

    fn expand(&self, text: &str) -> String {
        let mut whole = String::with_capacity(text.len());
        for (_, letter) in unlabelled(text) {
            match self.chip(letter) {
                Some(Chip::Text(text)) => whole.push_str(text),
                // What it is called stays in the text, so that the words can speak of it.
                Some(Chip::Picture { name, .. }) => whole.push_str(&format!("[{}]", Sanitized::line(name))),
                None => whole.push(letter),
            }
        }
        whole
    }

    /// The places of the pasted texts in [`Self::text`], in bytes.
    pub fn pastes(&self) -> Vec<std::ops::Range<usize>> {
        let mut pastes = Vec::new();
        let mut at = 0;
        for (_, letter) in unlabelled(&self.draft.text()) {
            let length = match self.chip(letter) {
                Some(Chip::Text(text)) => {
                    pastes.push(at..at + text.len());
                    text.len()
                }
                Some(Chip::Picture { name, .. }) => Sanitized::line(name).as_str().len() + 2,
                None => letter.len_utf8(),
            };
            at += length;
        }
        pastes
    }

    /// The pictures of the draft, in their order.
    pub fn pictures(&self) -> Vec<Value> {
        let text = self.draft.text();
        unlabelled(&text)
            .filter_map(|it| self.chip(it.1))
            .filter_map(|it| match it {
                Chip::Picture { data, .. } => Some(data.clone()),
                Chip::Text(_) => None,
            })
            .collect()
    }

    /// The draft for a file: its text with the places of its chips, and the texts of these.
    pub fn stored(&self) -> Value {
        let chips: Vec<Value> = self
            .chips
            .iter()
            .map(|it| match it {
                Chip::Text(text) => Value::String(text.clone()),
                Chip::Picture { name, bytes, data } => {
                    serde_json::json!({ "name": name, "bytes": bytes, "data": data })
                }
            })
            .collect();
        let text: String = unlabelled(&self.draft.text()).map(|it| it.1).collect();
        serde_json::json!({ "text": text, "chips": chips })
    }

    /// Restores a stored draft; members that are not of a draft are ignored.
    pub fn restore(&mut self, stored: &Value) {
        let text = stored.get("text").and_then(Value::as_str).unwrap_or_default();
        let chips = stored.get("chips").and_then(Value::as_array);
        self.chips = chips
            .into_iter()
            .flatten()
            .take(CHIPS as usize)
            .map(|it| match it.as_str() {
                Some(text) => Chip::Text(tidy(text)),
                None => Chip::Picture {
                    name: it.get("name").and_then(Value::as_str).unwrap_or_default().to_owned(),
                    bytes: it.get("bytes").and_then(Value::as_u64).unwrap_or_default() as usize,
                    data: it.get("data").cloned().unwrap_or_default(),
                },
            })
            .collect();
        let version = self.draft.version + 1;
        let mut clean = String::with_capacity(text.len());
        for part in text.split_inclusive(is_private) {
            clean.push_str(&tidy(part.trim_end_matches(is_private)));
            // A character that stands for no chip would be shown as one.
            if let Some((mark, chip)) = part.chars().last().and_then(|it| Some((it, self.chip(it)?))) {
                clean.push_str(&labelled(mark, chip));
            }
        }
        self.draft = Draft::new(&clean);
        self.draft.version = version;
        self.wrap();
    }

    /// Deletes the letter after the caret.
    pub fn delete(&mut self) {
        self.draft.edit(KeyEvent::from(KeyCode::Delete));
    }

    /// Replaces the whole text; the caret goes to the end. Undo brings the old text back.
    pub fn set(&mut self, text: &str) {
        self.has_paste = false;
        self.rest();
        self.draft
            .replace(TextPosition::default()..self.draft.end(), &without_marks(&tidy(text)));
        self.draft.go(self.draft.end(), false);
    }

    pub fn clear(&mut self) {
        self.set("");
    }

    /// Removes the text, which was sent: undo does not bring it back.
    pub fn clear_sent(&mut self) {
        self.clear();
        self.draft.forget_undo();
    }

    /// Puts Vim into insert mode, because there is nothing to move in, and ends its command.
    fn rest(&mut self) {
        self.draft.end_steps();
        if let Some(vim) = &mut self.vim {
            *vim = Vim::default();
        }
    }

    /// The text of the caret's line up to the caret, chips as single characters.
    pub fn before_caret(&self) -> String {
        let at = self.draft.caret();
        let line = self.draft.slice(at.line_start()..at);
        unlabelled(&line).map(|it| it.1).collect()
    }

    /// Replaces the given number of characters before the caret, in its line, by `text`.
    pub fn replace_before(&mut self, characters: usize, text: &str) {
        let at = self.draft.caret();
        let line = self.draft.slice(at.line_start()..at);
        let bytes: Vec<usize> = unlabelled(&line).map(|it| it.0).collect();
        let start = bytes.iter().rev().take(characters).next_back();
        let start = start.map_or(at, |byte| TextPosition { byte: *byte, ..at });
        self.draft.replace(start..at, &without_marks(&tidy(text)));
    }

    pub fn newline(&mut self) {
        self.draft.insert("\n");
    }

    /// Removes a backslash before the caret at the end of its line; returns true if there was one.
    pub fn take_backslash(&mut self) -> bool {
        let at = self.draft.caret();
        if at != self.draft.line_end(at) || !self.draft.line(at.row).ends_with('\\') {
            return false;
        }
        self.draft.replace(self.draft.before(at)..at, "");
        true
    }

    /// Returns true if some of the draft was pasted.
    pub fn has_paste(&self) -> bool {
        self.has_paste && !self.is_empty()
    }

    pub fn paste(&mut self, text: &str) {
        self.has_paste = true;
        let text = tidy(text);
        if text.len() <= CHIP_BYTES && text.lines().count() <= CHIP_LINES {
            self.draft.as_one(|draft| draft.insert(&without_marks(&text)));
            return;
        }
        self.add(Chip::Text(text));
    }

    /// Inserts a chip at the caret.
    pub fn add(&mut self, chip: Chip) {
        let at = self.chips.len() as u32;
        let Some(mark) = (at < CHIPS).then(|| char::from_u32(CHIP_FIRST + at)).flatten() else {
            return;
        };
        self.draft.as_one(|draft| draft.insert(&labelled(mark, &chip)));
        self.chips.push(chip);
    }

    /// The chip at the caret or before it: its place in the draft and what it is.
    pub fn chip_here(&self) -> Option<(Range<TextPosition>, &Chip)> {
        let at = self.draft.caret();
        let places = [at..self.draft.after(at), self.draft.before(at)..at];
        places.into_iter().find_map(|place| {
            let letter = self.draft.slice(place.clone()).chars().next()?;
            Some((place, self.chip(letter)?))
        })
    }

    /// Replaces the chip at the caret by its text; returns false if it is no chip of text.
    pub fn unfold(&mut self) -> bool {
        let Some((place, Chip::Text(text))) = self.chip_here() else {
            return false;
        };
        let text = without_marks(text);
        self.draft.as_one(|draft| draft.replace(place, &text));
        true
    }

    /// Changes the text of the chip at the caret; an empty text removes the chip.
    pub fn change_chip(&mut self, text: &str) {
        let Some((place, Chip::Text(_))) = self.chip_here() else {
            return;
        };
        let text = tidy(text);
        self.draft.begin_step();
        self.draft.replace(place, "");
        if !text.is_empty() {
            self.add(Chip::Text(text));
        }
        self.draft.end_step();
    }

    pub fn remove_chip(&mut self) {
        if let Some((place, _)) = self.chip_here() {
            self.draft.replace(place, "");
        }
    }

    fn chip(&self, letter: char) -> Option<&Chip> {
        let at = (letter as u32).checked_sub(CHIP_FIRST)?;
        self.chips.get(at as usize)
    }

    /// The selected text, as it would be sent; `None` without a selection.
    pub fn selected(&self) -> Option<String> {
        let range = self.draft.selection()?;
        Some(self.expand(&self.draft.slice(range)))
    }

    /// Hands the key to Vim; returns true if Vim took it.
    pub fn vim_key(&mut self, event: KeyEvent) -> bool {
        match &mut self.vim {
            Some(vim) => vim.key(event, &mut self.draft),
            None => false,
        }
    }

    pub fn vim_mode(&self) -> Option<vim::Mode> {
        self.vim.as_ref().map(|it| it.mode)
    }

    /// Takes the key as an edit; `false` if it is none.
    pub fn key(&mut self, event: KeyEvent) -> bool {
        match event.code {
            KeyCode::Char(letter) if is_private(letter) => return false,
            _ => match row_step(event) {
                Some(down) => self.go_by_row(down),
                None => return self.draft.edit(event),
            },
        }
        true
    }

    /// Moves the caret by rows as they are shown, not by lines.
    fn go_by_row(&mut self, down: bool) {
        let cursor = self.draft.area.screen_cursor();
        let is_on_the_way = |it: &(u64, usize)| it.0 == self.draft.version;
        // Short rows on the way do not change where one is going.
        let goal = self.goal.filter(is_on_the_way).map_or(cursor.col, |it| it.1);
        let row = if down {
            cursor.row + 1
        } else {
            cursor.row.saturating_sub(1)
        };
        let caret = self.draft.caret();
        self.draft.go(self.at_screen(row, goal), false);
        // Of a label in several rows only the beginning is a place: down leads out of it.
        if down && self.draft.caret() == caret {
            self.draft.go(self.draft.after(caret), false);
            if self.draft.area.screen_cursor().row < row {
                self.draft.go(caret, false);
            }
        }
        self.goal = Some((self.draft.version, goal));
    }

    /// The place at a row and column of the text as it is broken; the last one of the row if that is shorter.
    fn at_screen(&self, row: usize, column: usize) -> TextPosition {
        let place = |row, column| {
            let cursor = self.draft.area.screen_to_data(row, column);
            self.draft.position((cursor.0, cursor.1))
        };
        let (start, to) = (place(row, 0), place(row, column));
        // The end of a broken row is the beginning of the next one.
        if to > start && to == place(row + 1, 0) {
            self.draft.before(to)
        } else {
            to
        }
    }

    /// Moves the caret to the letter at a column and row of the field as it was drawn.
    pub fn point(&mut self, x: u16, y: u16, height: u16, selecting: bool) {
        let (top, _) = self.draft.area.scroll_offset();
        let row = usize::from(top) + usize::from(y.min(height.saturating_sub(1)));
        self.draft.go(self.at_screen(row, usize::from(x)), selecting);
    }

    /// Selects everything, so that what is typed next replaces it.
    pub fn select_all(&mut self) {
        let end = self.draft.end();
        self.draft.select(TextPosition::default()..end);
    }

    /// Selects what is before the first blank.
    pub fn select_first_word(&mut self) {
        let mut end = TextPosition::default();
        loop {
            let next = self.draft.after(end);
            if next == end || self.draft.slice(end..next).starts_with(char::is_whitespace) {
                break;
            }
            end = next;
        }
        self.draft.select(TextPosition::default()..end);
    }

    /// Puts a message before the draft, with its pasted texts and pictures as chips, and a line break between them.
    pub fn put_before(&mut self, message: &Message) {
        let is_first = self.is_empty();
        self.rest();
        self.draft.go(TextPosition::default(), false);
        let parts = message.parts();
        let typed = parts.iter().filter(|it| it.1 == PartKind::Typed).map(|it| it.0);
        let pictures = message.extra.get("images").and_then(Value::as_array);
        let mut pictures = pictures.map_or(&[][..], Vec::as_slice).iter();
        let are_all_pictures = typed.flat_map(bracketed).filter(|it| it.1.is_some()).count() == pictures.len();
        let is_picture = |name: &&str| {
            let name = name.to_lowercase();
            are_all_pictures || PICTURES.iter().any(|it| name.ends_with(it))
        };
        for (text, kind) in parts {
            if kind != PartKind::Typed {
                self.add(Chip::Text(tidy(text)));
                continue;
            }
            for (text, name) in bracketed(text) {
                match name.filter(is_picture).and_then(|it| Some((it, pictures.next()?))) {
                    Some((name, data)) => self.add(picture(name, data)),
                    None => self.draft.insert(&without_marks(&tidy(text))),
                }
            }
        }
        for data in pictures {
            self.add(picture(t!("hint-picture"), data));
        }
        if !is_first {
            self.draft.insert("\n");
        }
        self.draft.go(self.draft.end(), false);
    }

    /// Selects the word at the caret.
    pub fn select_word(&mut self) {
        let at = self.draft.caret();
        let class = self.draft.class_at(at);
        let start = self.draft.skip_back(at, |it| it == class);
        let end = self.draft.skip(at, |it| it == class);
        self.draft.select(start..end);
    }

    /// Returns true if Up would leave the field.
    pub fn is_at_top(&self) -> bool {
        self.draft.area.screen_cursor().row == 0
    }

    /// Returns true at the end of the text.
    pub fn is_at_bottom(&self) -> bool {
        self.draft.caret() == self.draft.end()
    }

    /// The rows that the text takes at this width.
    pub fn rows(&mut self, width: u16) -> u16 {
        let version = self.draft.version;
        if let Some((of, at, rows)) = self.measured
            && (of, at) == (version, width)
        {
            return rows;
        }
        if self.width != width.max(1) {
            self.width = width.max(1);
            self.wrap();
        }
        // The crate tells its number of rows only by where the caret is.
        let (anchor, caret) = (self.draft.anchor(), self.draft.caret());
        self.draft.mark(None, self.draft.end());
        let rows = self.draft.area.screen_cursor().row + 1;
        self.draft.mark(anchor, caret);
        let rows = u16::try_from(rows).unwrap_or(u16::MAX);
        self.measured = Some((version, width, rows));
        rows
    }

    /// Breaks the text for the width: the crate does it where it draws, and scrolls to the caret there.
    fn wrap(&mut self) {
        let (anchor, caret) = (self.draft.anchor(), self.draft.caret());
        self.draft.mark(None, TextPosition::default());
        let place = Rect::new(0, 0, self.width, 1);
        (&self.draft.area).render(place, &mut Buffer::empty(place));
        self.draft.mark(anchor, caret);
    }

    pub fn draw(&mut self, width: u16, height: u16, style: Style) -> Drawn {
        let key = (self.draft.version, width, height, style);
        if let Some((made_for, drawn)) = &self.drawn
            && *made_for == key
        {
            return drawn.clone();
        }
        let place = Rect::new(0, 0, width.max(1), height.max(1));
        let rows = self.rows(place.width);
        let (anchor, caret) = (self.draft.anchor(), self.draft.caret());
        // In visual mode the letter under the caret is marked, too.
        let is_visual = matches!(self.vim_mode(), Some(vim::Mode::Visual | vim::Mode::VisualLine));
        let (from, to) = match anchor.filter(|_| is_visual) {
            Some(anchor) if anchor > caret => (Some(self.draft.after(anchor)), caret),
            Some(_) => (anchor, self.draft.after(caret)),
            None => (anchor, caret),
        };
        let mut buffer = Buffer::empty(place);
        let mut part;
        // The crate counts the rows of its view in 16 bits; of a longer text it gets the lines around the caret.
        let (draft, from, to) = if rows == u16::MAX {
            let first = to.row.saturating_sub(place.height.into());
            let last = (to.row + usize::from(place.height)).min(self.draft.lines().len());
            part = Draft::new(&self.draft.lines().get(first..last).unwrap_or_default().join("\n"));
            let inside = |at: TextPosition| TextPosition {
                row: at.row.saturating_sub(first),
                ..at
            };
            (&mut part, from.map(inside), inside(to))
        } else {
            (&mut self.draft, from, to)
        };
        // Rows that are gone at the end leave no blank ones.
        let (top, _) = draft.area.scroll_offset();
        let blank = top.saturating_add(place.height).saturating_sub(rows).min(top);
        if blank > 0 {
            draft.area.scroll((-(blank.min(i16::MAX as u16) as i16), 0));
        }
        draft.mark(from, to);
        draft.area.set_style(style);
        (&draft.area).render(place, &mut buffer);
        let (top, _) = draft.area.scroll_offset();
        let cursor = draft.area.screen_cursor();
        self.draft.mark(anchor, caret);
        let x = (cursor.col as u16).min(place.width - 1);
        let y = (cursor.row as u16).saturating_sub(top).min(place.height - 1);
        let drawn = Drawn {
            buffer: Arc::new(buffer),
            caret: (x, y),
            is_cut: top > 0,
        };
        self.drawn = Some((key, drawn.clone()));
        drawn
    }
}

impl Drawn {
    /// Copies what was drawn into an area.
    pub fn copy(&self, area: Rect, buf: &mut Buffer) {
        for at in area.intersection(buf.area).positions() {
            let from = self.buffer.cell((at.x - area.x, at.y - area.y));
            let (Some(from), Some(to)) = (from, buf.cell_mut(at)) else {
                continue;
            };
            to.clone_from(from);
            // No font has the private characters of a chip.
            if to.symbol().starts_with(is_private) {
                let symbol = to
                    .symbol()
                    .replace(OPEN, "[")
                    .replace(CLOSE, "]")
                    .replace(is_private, "▤");
                to.set_symbol(&symbol);
            }
        }
    }
}

/// The direction of a key that moves by rows: true for down.
pub fn row_step(event: KeyEvent) -> Option<bool> {
    let ctrl = event.modifiers.contains(KeyModifiers::CONTROL);
    match event.code {
        KeyCode::Up => Some(false),
        KeyCode::Down => Some(true),
        KeyCode::Char('p') if ctrl => Some(false),
        KeyCode::Char('n') if ctrl => Some(true),
        _ => None,
    }
}

/// Returns the parts of a text, and the name in those that are a name in brackets.
fn bracketed(text: &str) -> Vec<(&str, Option<&str>)> {
    let mut parts = Vec::new();
    let mut rest = text;
    while let Some(start) = rest.find('[')
        && let Some(length) = rest.get(start..).and_then(|it| it.find(']'))
    {
        let (before, after) = rest.split_at(start);
        let (name, after) = after.split_at(length + 1);
        parts.push((before, None));
        parts.push((name, name.get(1..length)));
        rest = after;
    }
    parts.push((rest, None));
    parts
}

fn picture(name: &str, data: &Value) -> Chip {
    let coded = data.get("data").and_then(Value::as_str).unwrap_or_default();
    Chip::Picture {
        name: name.to_owned(),
        bytes: coded.len() / 4 * 3,
        data: data.clone(),
    }
}

/// The characters of a part of the draft and their bytes, without the labels of its chips.
fn unlabelled(text: &str) -> impl Iterator<Item = (usize, char)> {
    let mut is_label = false;
    text.char_indices().filter(move |(_, it)| {
        is_label |= *it == OPEN;
        let is_own = !is_label;
        is_label &= *it != CLOSE;
        is_own
    })
}

/// Returns the label of a pasted text: its size.
pub fn pasted_label(text: &str) -> String {
    let lines = text.lines().count();
    if lines > 1 {
        t!("pasted-lines", count = figure::grouped(lines as u64))
    } else {
        t!(
            "pasted-characters",
            count = figure::grouped(text.chars().count() as u64)
        )
    }
}

/// A chip as it stands in the draft.
fn labelled(mark: char, chip: &Chip) -> String {
    let label = match chip {
        Chip::Text(text) => pasted_label(text),
        Chip::Picture { name, bytes, .. } => format!("{} {}", Sanitized::line(name), figure::bytes(*bytes as u64)),
    };
    let mut label = without_marks(&label);
    label.truncate(label.floor_char_boundary(MOST_LABEL - 16));
    format!("{mark}{OPEN}{label}{CLOSE}")
}

/// The text without the characters that would be taken for chips.
fn without_marks(text: &str) -> String {
    text.replace(is_private, "")
}

/// Line ends are `\n`; what a terminal would obey is gone.
fn tidy(text: &str) -> String {
    Sanitized::new(&text.replace("\r\n", "\n").replace('\r', "\n")).replace('\t', "    ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn press(field: &mut Field, code: KeyCode) {
        field.key(KeyEvent::new(code, KeyModifiers::NONE));
    }

    fn type_with_vim(field: &mut Field, keys: &str) {
        for letter in keys.chars() {
            let code = if letter == '⎋' {
                KeyCode::Esc
            } else {
                KeyCode::Char(letter)
            };
            let event = KeyEvent::new(code, KeyModifiers::NONE);
            if !field.vim_key(event) {
                field.key(event);
            }
        }
    }

    #[test]
    fn what_was_sent_from_insert_mode_leaves_no_step_open() {
        let mut field = Field {
            vim: Some(Vim::default()),
            ..Field::default()
        };
        type_with_vim(&mut field, "one two⎋A three");
        field.clear();
        type_with_vim(&mut field, "new draft⎋A more⎋u");
        assert_eq!(field.text(), "new draft");
        type_with_vim(&mut field, "uuu");
        assert_eq!(field.text(), "one two three", "what was sent is a step, too");
    }

    #[test]
    fn a_backspace_takes_what_a_person_sees_as_one() {
        for text in ["👨‍👩‍👧", "e\u{301}", "🇩🇪", "語", "a"] {
            let mut field = Field::default();
            field.paste(text);
            press(&mut field, KeyCode::Backspace);
            assert_eq!(field.text(), "", "{text:?}");
        }
    }

    #[test]
    fn a_large_paste_is_one_thing_that_is_sent_whole() {
        let mut field = Field::default();
        let pasted = "line of text\r\n".repeat(40);
        field.paste("see ");
        field.paste(&pasted);
        field.paste("!");
        let shown = field.draft.line(0).replace(OPEN, "[").replace(CLOSE, "]");
        assert!(shown.contains("[pasted 40 lines]!"));
        assert_eq!(field.text(), format!("see {}!", "line of text\n".repeat(40)));
        press(&mut field, KeyCode::Left);
        press(&mut field, KeyCode::Left);
        press(&mut field, KeyCode::Delete);
        assert_eq!(field.text(), "see !");
        field.draft.undo();
        assert_eq!(field.text(), format!("see {}!", "line of text\n".repeat(40)));
    }

    #[test]
    fn a_chip_unfolds_and_is_changed() {
        let mut field = Field::default();
        field.paste(&"long\n".repeat(40));
        field.paste(".");
        press(&mut field, KeyCode::Left);
        field.change_chip("short\n");
        assert_eq!(field.text(), "short\n.");
        assert!(field.unfold());
        assert_eq!(field.draft.text(), "short\n.");
        assert!(!field.unfold());
    }

    #[test]
    fn pictures_are_sent_beside_the_text_and_a_draft_is_stored_whole() {
        let mut field = Field::default();
        field.paste("look ");
        field.add(Chip::Picture {
            name: "shot.png".into(),
            bytes: 2048,
            data: serde_json::json!({ "mediaType": "image/png" }),
        });
        field.paste(&"long\n".repeat(40));
        let mut again = Field::default();
        again.restore(&field.stored());
        assert_eq!(again.text(), field.text());
        assert!(again.text().starts_with("look [shot.png]long"));
        assert_eq!(again.pictures(), [serde_json::json!({ "mediaType": "image/png" })]);
        again.restore(&serde_json::json!({ "text": "a\u{F0000}b\u{1b}[2J" }));
        assert_eq!(again.text(), "ab");
        again.restore(&serde_json::json!([1]));
        assert_eq!(again.text(), "");
    }

    #[test]
    fn nothing_that_a_terminal_obeys_gets_in() {
        let mut field = Field::default();
        field.paste("a\x1b[31mb\x07\rc\u{202e}d\te\u{F0000}");
        assert_eq!(field.text(), "ab\ncd    e");
    }

    #[test]
    fn a_backslash_before_the_caret_is_taken_once() {
        let mut field = Field::default();
        field.set("a\\");
        assert!(field.take_backslash());
        assert!(!field.take_backslash());
        assert_eq!(field.text(), "a");
    }

    #[test]
    fn up_and_down_go_by_rows_that_the_width_made() {
        let mut field = Field::default();
        field.set("one two three four five six");
        assert_eq!(field.rows(10), 3);
        press(&mut field, KeyCode::Up);
        let there = field.draft.caret();
        assert!(there.byte > 0 && there.byte < 20, "{there:?}");
        assert!(!field.is_at_top());
        press(&mut field, KeyCode::Up);
        assert!(field.is_at_top());
        press(&mut field, KeyCode::Down);
        assert!(!field.is_at_top() && field.draft.caret() <= there);
    }

    #[test]
    fn down_and_up_pass_a_label_that_takes_several_rows() {
        let mut field = Field::default();
        field.paste("see ");
        field.paste(&"long\n".repeat(40));
        field.paste(" and more");
        assert_eq!(field.rows(8), 5);
        field.key(KeyEvent::new(KeyCode::Home, KeyModifiers::NONE));
        let mut go = |key| {
            press(&mut field, key);
            field.before_caret().chars().count()
        };
        let (down, up) = (KeyCode::Down, KeyCode::Up);
        assert_eq!([down, down, down, down, up, up].map(&mut go), [4, 5, 10, 10, 4, 0]);
    }
}
