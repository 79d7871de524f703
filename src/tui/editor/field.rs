//! The one text field of the program: a draft, shown through `ratatui-textarea`.
//!
//! The draft is ours, by graphemes; the crate breaks its lines and paints them. What is large or no text becomes a chip:
//! one character of a private area in the draft, a label on the screen, all of it in what is sent.

use std::{ops::Range, sync::Arc};

use crossterm::event::{KeyCode, KeyEvent};
use ratatui::{
    buffer::Buffer,
    layout::Rect,
    style::{Modifier, Style},
    widgets::Widget,
};
use ratatui_textarea::{CursorMove, TextArea, WrapMode};
use serde_json::Value;

use super::{
    draft::Draft,
    vim::{self, Vim},
};
use crate::{locale::figure, t, text::Sanitized};

/// A paste of more than this many bytes or lines becomes a chip.
const CHIP_BYTES: usize = 8 * 1024;
const CHIP_LINES: usize = 12;

/// Characters of the private use area stand for chips; one each.
const CHIP_FIRST: u32 = 0xF0000;
const CHIPS: u32 = 0xFFFD;

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
    /// The view of the draft, with labels for its chips.
    area: TextArea<'static>,
    shown: String,
    /// The draft's version that the area shows.
    synced: u64,
    /// The column that up and down keep to, for the version that they left.
    goal: Option<(u64, usize)>,
    /// Columns that the field was shown in last.
    width: u16,
    /// Rows taken, for a version and a width.
    measured: Option<(u64, u16, u16)>,
    drawn: Option<((u64, u16, u16, Style), Drawn)>,
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
        Self {
            draft: Draft::default(),
            chips: Vec::new(),
            vim: None,
            area: area(Vec::new()),
            shown: String::new(),
            synced: u64::MAX,
            goal: None,
            width: 80,
            measured: None,
            drawn: None,
        }
    }
}

fn area(lines: Vec<String>) -> TextArea<'static> {
    let mut area = TextArea::new(lines);
    area.set_wrap_mode(WrapMode::WordOrGlyph);
    area.set_cursor_style(Style::new());
    area.set_cursor_line_style(Style::new());
    area.set_selection_style(Style::new().add_modifier(Modifier::REVERSED));
    area.set_max_histories(0);
    area
}

impl Field {
    pub fn version(&self) -> u64 {
        self.draft.version
    }

    pub fn is_empty(&self) -> bool {
        self.draft.text().is_empty()
    }

    pub fn starts_with(&self, letter: char) -> bool {
        self.draft.text().starts_with(letter)
    }

    /// The text as it will be sent: pasted texts written out, pictures by their names.
    pub fn text(&self) -> String {
        self.expand(self.draft.text())
    }

    fn expand(&self, text: &str) -> String {
        let mut whole = String::with_capacity(text.len());
        for letter in text.chars() {
            match self.chip(letter) {
                Some(Chip::Text(text)) => whole.push_str(text),
                // What it is called stays in the text, so that the words can speak of it.
                Some(Chip::Picture { name, .. }) => whole.push_str(&format!("[{}]", Sanitized::line(name))),
                None => whole.push(letter),
            }
        }
        whole
    }

    /// The pictures of the draft, in their order.
    pub fn pictures(&self) -> Vec<Value> {
        let chips = self.draft.text().chars().filter_map(|it| self.chip(it));
        chips
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
        serde_json::json!({ "text": self.draft.text(), "chips": chips })
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
            clean.extend(part.chars().last().filter(|it| self.chip(*it).is_some()));
        }
        self.draft = Draft::new(&clean);
        self.draft.version = version;
    }

    /// Deletes the letter after the caret.
    pub fn delete(&mut self) {
        self.draft
            .edit(KeyEvent::new(KeyCode::Delete, crossterm::event::KeyModifiers::NONE));
    }

    /// Replaces the whole text; the caret goes to the end. Undo brings the old text back.
    pub fn set(&mut self, text: &str) {
        let text = tidy(text);
        self.rest();
        let end = self.draft.text().len();
        self.draft.replace(0..end, &text);
        let end = self.draft.text().len();
        self.draft.go(end, false);
    }

    pub fn clear(&mut self) {
        self.set("");
    }

    /// Puts Vim into insert mode, because there is nothing to move in, and ends its command.
    fn rest(&mut self) {
        self.draft.end_steps();
        if let Some(vim) = &mut self.vim {
            *vim = Vim::default();
        }
    }

    /// The text of the caret's line up to the caret.
    pub fn before_caret(&self) -> String {
        let at = self.draft.caret();
        self.draft.slice(self.draft.line_start(at)..at).to_owned()
    }

    /// Replaces the given number of characters before the caret by `text`.
    pub fn replace_before(&mut self, characters: usize, text: &str) {
        let at = self.draft.caret();
        let before = self.draft.slice(0..at);
        let start = before.char_indices().rev().nth(characters.saturating_sub(1));
        let start = if characters == 0 {
            at
        } else {
            start.map_or(0, |it| it.0)
        };
        self.draft.replace(start..at, &tidy(text));
    }

    pub fn newline(&mut self) {
        self.draft.insert("\n");
    }

    /// Removes a backslash before the caret at the end of its line; returns true if there was one.
    pub fn take_backslash(&mut self) -> bool {
        let at = self.draft.caret();
        if at != self.draft.line_end(at) || !self.draft.slice(0..at).ends_with('\\') {
            return false;
        }
        self.draft.replace(at - 1..at, "");
        true
    }

    pub fn paste(&mut self, text: &str) {
        let text = tidy(text);
        if text.len() <= CHIP_BYTES && text.lines().count() <= CHIP_LINES {
            let is_picture_taken = text.chars().any(is_private);
            let text = if is_picture_taken {
                text.chars().filter(|it| !is_private(*it)).collect()
            } else {
                text
            };
            self.draft.as_one(|draft| draft.insert(&text));
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
        self.chips.push(chip);
        self.draft.as_one(|draft| draft.insert(&mark.to_string()));
    }

    /// The chip at the caret or before it: its place in the draft and what it is.
    pub fn chip_here(&self) -> Option<(Range<usize>, &Chip)> {
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
        let text = text.clone();
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
        Some(self.expand(self.draft.slice(range)))
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
            KeyCode::Up => self.go_by_row(CursorMove::Up),
            KeyCode::Down => self.go_by_row(CursorMove::Down),
            _ => return self.draft.edit(event),
        }
        true
    }

    /// Moves the caret by rows as they are shown, not by lines.
    fn go_by_row(&mut self, by: CursorMove) {
        self.sync();
        let column = self.area.screen_cursor().col;
        let goal = self
            .goal
            .filter(|it| it.0 == self.draft.version)
            .map_or(column, |it| it.1);
        self.area.move_cursor(by);
        // Short rows on the way do not change where one is going.
        let row = self.area.screen_cursor().row;
        while self.area.screen_cursor().col < goal {
            self.area.move_cursor(CursorMove::Forward);
            let now = self.area.screen_cursor();
            if now.row != row || now.col > goal {
                self.area.move_cursor(CursorMove::Back);
                break;
            }
            if self.area.cursor() == self.end() {
                break;
            }
        }
        let cursor = self.area.cursor();
        let to = self.place_of(cursor.0, cursor.1);
        self.draft.go(to, false);
        self.synced = self.draft.version;
        self.goal = Some((self.draft.version, goal));
    }

    /// The position after the last letter shown.
    fn end(&self) -> (usize, usize) {
        let lines = self.area.lines();
        (
            lines.len().saturating_sub(1),
            lines.last().map_or(0, |it| it.chars().count()),
        )
    }

    /// Moves the caret to the letter at a column and row of the field as it was drawn.
    pub fn point(&mut self, x: u16, y: u16, height: u16, selecting: bool) {
        self.sync();
        let (top, _) = self.area.scroll_offset();
        let row = usize::from(top) + usize::from(y.min(height.saturating_sub(1)));
        // The crate says where its caret is on the screen, and nothing of other places.
        self.area.cancel_selection();
        self.area.move_cursor(CursorMove::Jump(0, 0));
        while self.area.screen_cursor().row < row && self.area.cursor() != self.end() {
            let before = self.area.screen_cursor().row;
            self.area.move_cursor(CursorMove::Down);
            if self.area.screen_cursor().row == before {
                break;
            }
        }
        let row = self.area.screen_cursor().row;
        while self.area.screen_cursor().col < usize::from(x) && self.area.cursor() != self.end() {
            self.area.move_cursor(CursorMove::Forward);
            let now = self.area.screen_cursor();
            if now.row != row || now.col > usize::from(x) {
                self.area.move_cursor(CursorMove::Back);
                break;
            }
        }
        let cursor = self.area.cursor();
        let to = self.place_of(cursor.0, cursor.1);
        self.draft.go(to, selecting);
    }

    /// Selects everything, so that what is typed next replaces it.
    pub fn select_all(&mut self) {
        self.draft.select(0..self.draft.text().len());
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
    pub fn is_at_top(&mut self) -> bool {
        self.sync();
        self.area.screen_cursor().row == 0
    }

    /// Returns true if Down would leave the field.
    pub fn is_at_bottom(&self) -> bool {
        self.draft.caret() == self.draft.text().len()
    }

    /// The rows that the text takes at this width.
    pub fn rows(&mut self, width: u16) -> u16 {
        let version = self.draft.version;
        if let Some((of, at, rows)) = self.measured
            && (of, at) == (version, width)
        {
            return rows;
        }
        self.width = width.max(1);
        self.sync();
        // The crate tells its wrapping only by where the caret is, and only for the area it was drawn in.
        let place = Rect::new(0, 0, self.width, 1);
        let mut probe = self.area.clone();
        (&probe).render(place, &mut Buffer::empty(place));
        probe.move_cursor(CursorMove::Bottom);
        probe.move_cursor(CursorMove::End);
        let rows = (probe.screen_cursor().row + 1).min(usize::from(u16::MAX)) as u16;
        self.measured = Some((version, width, rows));
        rows
    }

    pub fn draw(&mut self, width: u16, height: u16, style: Style) -> Drawn {
        let key = (self.draft.version, width, height, style);
        if let Some((made_for, drawn)) = &self.drawn
            && *made_for == key
        {
            return drawn.clone();
        }
        self.width = width.max(1);
        self.sync();
        let place = Rect::new(0, 0, width.max(1), height.max(1));
        let mut buffer = Buffer::empty(place);
        self.area.set_style(style);
        (&self.area).render(place, &mut buffer);
        let (top, _) = self.area.scroll_offset();
        let cursor = self.area.screen_cursor();
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

    /// Brings the area up to the draft.
    fn sync(&mut self) {
        if self.synced == self.draft.version {
            return;
        }
        self.synced = self.draft.version;
        let mut shown = String::with_capacity(self.draft.text().len());
        for letter in self.draft.text().chars() {
            shown.push(letter);
            if let Some(chip) = self.chip(letter) {
                shown.push_str(&label(chip));
            }
        }
        if shown != self.shown || self.area.is_empty() {
            self.area = area(shown.split('\n').map(str::to_owned).collect());
            self.shown = shown;
            // Rows are known only where the area has been drawn.
            let place = Rect::new(0, 0, self.width, 1);
            (&self.area).render(place, &mut Buffer::empty(place));
        }
        let jump = |(row, column): (usize, usize)| {
            CursorMove::Jump(
                row.min(usize::from(u16::MAX)) as u16,
                column.min(usize::from(u16::MAX)) as u16,
            )
        };
        self.area.cancel_selection();
        let (mut from, mut to) = (self.draft.anchor(), self.draft.caret());
        // In visual mode the letter under the caret is marked, too.
        if let (Some(anchor), Some(vim::Mode::Visual | vim::Mode::VisualLine)) = (from, self.vim_mode()) {
            if anchor > to {
                from = Some(self.draft.after(anchor));
            } else {
                to = self.draft.after(to);
            }
        }
        if let Some(anchor) = from.filter(|it| *it != to) {
            self.area.move_cursor(jump(self.cursor_of(anchor)));
            self.area.start_selection();
        }
        self.area.move_cursor(jump(self.cursor_of(to)));
    }

    /// Row and character of a place of the draft in what is shown.
    fn cursor_of(&self, at: usize) -> (usize, usize) {
        let (mut row, mut column) = (0, 0);
        for letter in self.draft.slice(0..at).chars() {
            if letter == '\n' {
                (row, column) = (row + 1, 0);
                continue;
            }
            column += 1 + self.chip(letter).map_or(0, |it| label(it).chars().count());
        }
        (row, column)
    }

    /// The place of the draft that is shown there.
    fn place_of(&self, row: usize, column: usize) -> usize {
        let (mut at_row, mut at_column) = (0, 0);
        for (at, letter) in self.draft.text().char_indices() {
            let more = 1 + self.chip(letter).map_or(0, |it| label(it).chars().count());
            if at_row == row && (letter == '\n' || column < at_column + more) {
                return at;
            }
            if letter == '\n' {
                (at_row, at_column) = (at_row + 1, 0);
            } else {
                at_column += more;
            }
        }
        self.draft.text().len()
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
            // The mark of a chip is a private character that no font has.
            if to.symbol().starts_with(is_private) {
                to.set_symbol("▤");
            }
        }
    }
}

fn is_private(letter: char) -> bool {
    ('\u{F0000}'..='\u{FFFFD}').contains(&letter)
}

/// The label of a chip.
fn label(chip: &Chip) -> String {
    match chip {
        Chip::Text(text) => {
            let lines = text.lines().count();
            if lines > 1 {
                format!("[{}]", t!("pasted-lines", count = lines))
            } else {
                format!("[{}]", t!("pasted-characters", count = text.chars().count()))
            }
        }
        Chip::Picture { name, bytes, .. } => format!("[{} {}]", Sanitized::line(name), figure::bytes(*bytes as u64)),
    }
}

/// Line ends are `\n`; what a terminal would obey is gone.
fn tidy(text: &str) -> String {
    Sanitized::new(&text.replace("\r\n", "\n").replace('\r', "\n")).replace('\t', "    ")
}

#[cfg(test)]
mod tests {
    use crossterm::event::KeyModifiers;

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
        field.sync();
        assert!(field.area.lines()[0].contains("[pasted 40 lines]!"));
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
        assert!(there > 0 && there < 20, "{there}");
        assert!(!field.is_at_top());
        press(&mut field, KeyCode::Up);
        assert!(field.is_at_top());
        press(&mut field, KeyCode::Down);
        assert!(!field.is_at_top() && field.draft.caret() <= there);
    }
}
