//! The one text field of the program: `ratatui-textarea` behind a door.
//!
//! The crate edits by code point, keeps `\r` and lays everything out again on every key. Here a Backspace takes a whole
//! grapheme, pasted line ends are newlines, controls never get in, and what is large becomes a chip.

use std::sync::Arc;

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use ratatui::{buffer::Buffer, layout::Rect, style::Style, widgets::Widget};
use ratatui_textarea::{CursorMove, TextArea, WrapMode};
use unicode_segmentation::UnicodeSegmentation;

use super::paint::Line;
use crate::text::Clean;

/// A paste of more than this many bytes or lines becomes a chip.
const CHIP_BYTES: usize = 8 * 1024;
const CHIP_LINES: usize = 12;

/// Characters of the private use area stand for chips while they are edited; one each.
const CHIP_FIRST: u32 = 0xF0000;

/// A pasted text that is shown as its size.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Chip {
    mark: char,
    text: String,
}

pub struct Field {
    area: TextArea<'static>,
    chips: Vec<Chip>,
    /// Grows with every change of text or caret.
    version: u64,
    /// Rows taken, for a version and a width.
    measured: Option<(u64, u16, u16)>,
    drawn: Option<((u64, u16, u16, Style), Drawn)>,
}

/// Where a field was drawn.
#[derive(Clone, Debug)]
pub struct Drawn {
    buffer: Arc<Buffer>,
    /// Column and row of the caret inside the field.
    pub caret: (u16, u16),
}

impl Default for Field {
    fn default() -> Self {
        Self::new(Vec::new())
    }
}

impl Field {
    fn new(lines: Vec<String>) -> Self {
        let mut area = TextArea::new(lines);
        area.set_wrap_mode(WrapMode::WordOrGlyph);
        area.set_cursor_style(Style::new());
        area.set_cursor_line_style(Style::new());
        area.set_max_histories(500);
        Self {
            area,
            chips: Vec::new(),
            version: 1,
            measured: None,
            drawn: None,
        }
    }

    pub fn version(&self) -> u64 {
        self.version
    }

    pub fn is_empty(&self) -> bool {
        self.area.is_empty()
    }

    /// The text as it will be sent: chips written out.
    pub fn text(&self) -> String {
        let shown = self.area.lines().join("\n");
        if self.chips.is_empty() {
            return shown;
        }
        let mut text = String::with_capacity(shown.len());
        let mut rest = shown.as_str();
        // A chip is shown as `‹mark›label`; the label is ours and as long as it says.
        while let Some((at, chip)) = self.next_chip(rest) {
            text.push_str(rest.get(..at).unwrap_or_default());
            text.push_str(&chip.text);
            let shown = label(chip);
            rest = rest.get(at + shown.len()..).unwrap_or_default();
        }
        text.push_str(rest);
        text
    }

    /// Replaces everything; the caret goes to the end.
    pub fn set(&mut self, text: &str) {
        let mut field = Self::new(tidy(text).split('\n').map(str::to_owned).collect());
        field.area.move_cursor(CursorMove::Bottom);
        field.area.move_cursor(CursorMove::End);
        field.version = self.version + 1;
        *self = field;
    }

    pub fn clear(&mut self) {
        self.set("");
    }

    /// Takes the text and leaves the field empty.
    pub fn take(&mut self) -> String {
        let text = self.text();
        self.clear();
        text
    }

    /// The text of the caret's line up to the caret.
    pub fn before_caret(&self) -> String {
        let cursor = self.area.cursor();
        let (row, column) = (cursor.0, cursor.1);
        let line = self.area.lines().get(row).map(String::as_str).unwrap_or_default();
        line.chars().take(column).collect()
    }

    /// Puts `text` in the place of so many characters before the caret.
    pub fn replace_before(&mut self, characters: usize, text: &str) {
        self.version += 1;
        for _ in 0..characters {
            self.area.delete_char();
        }
        self.area.insert_str(tidy(text));
    }

    pub fn newline(&mut self) {
        self.version += 1;
        self.area.insert_newline();
    }

    /// Whether the caret stands behind a backslash at the end of its line; if so the backslash goes.
    pub fn take_backslash(&mut self) -> bool {
        let cursor = self.area.cursor();
        let line = self.area.lines().get(cursor.0).map(String::as_str).unwrap_or_default();
        if !line.ends_with('\\') || line.chars().count() != cursor.1 {
            return false;
        }
        self.version += 1;
        self.area.delete_char()
    }

    pub fn paste(&mut self, text: &str) {
        let text = tidy(text);
        self.version += 1;
        if text.len() <= CHIP_BYTES && text.lines().count() <= CHIP_LINES {
            self.area.insert_str(&text);
            return;
        }
        let mark = char::from_u32(CHIP_FIRST + self.chips.len() as u32 % 0xFFFD).unwrap_or('\u{F0000}');
        let chip = Chip { mark, text };
        self.area.insert_str(label(&chip));
        self.chips.push(chip);
    }

    /// The key as an edit; `false` when it means nothing to a text field.
    pub fn key(&mut self, event: KeyEvent) -> bool {
        let ctrl = event.modifiers.contains(KeyModifiers::CONTROL);
        let alt = event.modifiers.contains(KeyModifiers::ALT);
        let by_word = ctrl || alt;
        match event.code {
            KeyCode::Char(letter) if !ctrl && !alt => {
                if letter.is_control() {
                    return false;
                }
                self.area.insert_char(letter);
            }
            KeyCode::Char('a') if ctrl => self.area.move_cursor(CursorMove::Head),
            KeyCode::Char('e') if ctrl => self.area.move_cursor(CursorMove::End),
            KeyCode::Char('b') if alt => self.area.move_cursor(CursorMove::WordBack),
            KeyCode::Char('f') if alt => self.area.move_cursor(CursorMove::WordForward),
            KeyCode::Char('b') if ctrl => self.left(),
            KeyCode::Char('f') if ctrl => self.right(),
            KeyCode::Char('w') if ctrl => {
                self.area.delete_word();
            }
            KeyCode::Char('d') if alt => {
                self.area.delete_next_word();
            }
            KeyCode::Char('/' | '_' | '-') if ctrl => {
                self.area.undo();
            }
            KeyCode::Char('y') if ctrl => {
                self.area.paste();
            }
            KeyCode::Backspace if by_word => {
                self.area.delete_word();
            }
            KeyCode::Delete if by_word => {
                self.area.delete_next_word();
            }
            KeyCode::Backspace => self.delete_before(),
            KeyCode::Delete => self.delete_after(),
            KeyCode::Left if by_word => self.area.move_cursor(CursorMove::WordBack),
            KeyCode::Right if by_word => self.area.move_cursor(CursorMove::WordForward),
            KeyCode::Left => self.left(),
            KeyCode::Right => self.right(),
            KeyCode::Home if ctrl => self.area.move_cursor(CursorMove::Top),
            KeyCode::End if ctrl => self.area.move_cursor(CursorMove::Bottom),
            KeyCode::Home => self.area.move_cursor(CursorMove::Head),
            KeyCode::End => self.area.move_cursor(CursorMove::End),
            KeyCode::Up => self.area.move_cursor(CursorMove::Up),
            KeyCode::Down => self.area.move_cursor(CursorMove::Down),
            _ => return false,
        }
        self.version += 1;
        true
    }

    /// Whether Up would leave the field.
    pub fn is_at_top(&self) -> bool {
        self.area.screen_cursor().row == 0
    }

    /// Whether Down would leave the field.
    pub fn is_at_bottom(&self) -> bool {
        let cursor = self.area.cursor();
        cursor.0 + 1 >= self.area.lines().len()
            && self.area.lines().last().is_none_or(|it| it.chars().count() == cursor.1)
    }

    /// How many rows the text takes at this width.
    pub fn rows(&mut self, width: u16) -> u16 {
        if let Some((version, at, rows)) = self.measured
            && (version, at) == (self.version, width)
        {
            return rows;
        }
        // The crate tells its wrapping only by where the caret is, and only for the area it was drawn in.
        let area = Rect::new(0, 0, width.max(1), 1);
        let mut probe = self.area.clone();
        (&probe).render(area, &mut Buffer::empty(area));
        probe.move_cursor(CursorMove::Bottom);
        probe.move_cursor(CursorMove::End);
        let rows = (probe.screen_cursor().row + 1).min(usize::from(u16::MAX)) as u16;
        self.measured = Some((self.version, width, rows));
        rows
    }

    pub fn draw(&mut self, width: u16, height: u16, style: Style) -> Drawn {
        let key = (self.version, width, height, style);
        if let Some((made_for, drawn)) = &self.drawn
            && *made_for == key
        {
            return drawn.clone();
        }
        let area = Rect::new(0, 0, width.max(1), height.max(1));
        let mut buffer = Buffer::empty(area);
        self.area.set_style(style);
        (&self.area).render(area, &mut buffer);
        let (top, _) = self.area.scroll_offset();
        let cursor = self.area.screen_cursor();
        let x = (cursor.col as u16).min(area.width - 1);
        let y = (cursor.row as u16).saturating_sub(top).min(area.height - 1);
        let drawn = Drawn {
            buffer: Arc::new(buffer),
            caret: (x, y),
        };
        self.drawn = Some((key, drawn.clone()));
        drawn
    }

    fn next_chip(&self, text: &str) -> Option<(usize, &Chip)> {
        self.chips
            .iter()
            .filter_map(|chip| Some((text.find(chip.mark)?, chip)))
            .min_by_key(|(at, _)| *at)
    }

    fn before(&self) -> String {
        let cursor = self.area.cursor();
        let line = self.area.lines().get(cursor.0).map(String::as_str).unwrap_or_default();
        line.chars().take(cursor.1).collect()
    }

    fn after(&self) -> String {
        let cursor = self.area.cursor();
        let line = self.area.lines().get(cursor.0).map(String::as_str).unwrap_or_default();
        line.chars().skip(cursor.1).collect()
    }

    /// Characters of what stands before the caret as one thing: a chip, or a grapheme.
    fn unit_before(&self) -> usize {
        let before = self.before();
        if let Some(chip) = self.chips.iter().find(|it| before.ends_with(&label(it))) {
            return label(chip).chars().count();
        }
        before.graphemes(true).next_back().map_or(0, |it| it.chars().count())
    }

    fn unit_after(&self) -> usize {
        let after = self.after();
        if let Some(chip) = self.chips.iter().find(|it| after.starts_with(&label(it))) {
            return label(chip).chars().count();
        }
        after.graphemes(true).next().map_or(0, |it| it.chars().count())
    }

    fn left(&mut self) {
        for _ in 0..self.unit_before().max(1) {
            self.area.move_cursor(CursorMove::Back);
        }
    }

    fn right(&mut self) {
        for _ in 0..self.unit_after().max(1) {
            self.area.move_cursor(CursorMove::Forward);
        }
    }

    fn delete_before(&mut self) {
        for _ in 0..self.unit_before().max(1) {
            self.area.delete_char();
        }
    }

    fn delete_after(&mut self) {
        for _ in 0..self.unit_after().max(1) {
            self.area.delete_next_char();
        }
    }
}

impl Drawn {
    /// Puts row `row` of the field into `line` from column `x` on.
    pub fn row(&self, row: u16, x: usize, line: &mut Line) {
        line.copy(x, &self.buffer, row);
    }
}

fn label(chip: &Chip) -> String {
    let lines = chip.text.lines().count();
    let size = if lines > 1 {
        format!("{lines} lines")
    } else {
        format!("{} characters", chip.text.chars().count())
    };
    format!("{}[pasted {size}]", chip.mark)
}

/// Line ends are `\n`; what a terminal would obey is gone.
fn tidy(text: &str) -> String {
    Clean::new(&text.replace("\r\n", "\n").replace('\r', "\n")).replace('\t', "    ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn press(field: &mut Field, code: KeyCode) {
        field.key(KeyEvent::new(code, KeyModifiers::NONE));
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
        assert!(field.area.lines()[0].contains("[pasted 40 lines]"));
        assert_eq!(field.text(), format!("see {}!", "line of text\n".repeat(40)));
        press(&mut field, KeyCode::Backspace);
        press(&mut field, KeyCode::Backspace);
        assert_eq!(field.text(), "see ");
    }

    #[test]
    fn nothing_that_a_terminal_obeys_gets_in() {
        let mut field = Field::default();
        field.paste("a\x1b[31mb\x07\rc\u{202e}d\te");
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
}
