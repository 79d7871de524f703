//! One line of cells, and how rows of spans become cells.

#![expect(
    clippy::disallowed_types,
    reason = "a cell is painted in whatever colour the theme gave it"
)]

use std::{ops::Range, sync::Arc};

use ratatui::{
    buffer::Buffer,
    style::{Color, Modifier, Style},
};
use unicode_width::UnicodeWidthStr;

use super::screen::Screen;
use crate::{
    text::{Ground, Mark, Role, Span, picture_place, width::Graphemes},
    theme::Theme,
};

/// A grapheme of up to this many bytes is kept without a heap allocation.
const INLINE: usize = 7;

/// One cell: a grapheme in a style. The second half of a wide character is a cell with an empty symbol.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cell {
    symbol: Symbol,
    pub style: Style,
}

/// Cells are compared and copied more than anything else on a frame: nearly all of them are one machine word.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Symbol {
    /// The bytes, zeros, and in the last place how many bytes there are.
    Short([u8; INLINE + 1]),
    Long(Arc<str>),
}

impl Symbol {
    const SPACE: Self = Self::Short([b' ', 0, 0, 0, 0, 0, 0, 1]);

    fn new(text: &str) -> Self {
        let mut bytes = [0; INLINE + 1];
        match bytes.get_mut(..text.len()).filter(|it| it.len() <= INLINE) {
            Some(slot) => {
                slot.copy_from_slice(text.as_bytes());
                bytes[INLINE] = text.len() as u8;
                Self::Short(bytes)
            }
            None => Self::Long(text.into()),
        }
    }

    fn as_str(&self) -> &str {
        match self {
            Self::Short(bytes) => bytes
                .get(..usize::from(bytes[INLINE]))
                .and_then(|it| std::str::from_utf8(it).ok())
                .unwrap_or(" "),
            Self::Long(text) => text,
        }
    }
}

impl Cell {
    pub const BLANK: Self = Self {
        symbol: Symbol::SPACE,
        style: Style::new(),
    };

    pub fn symbol(&self) -> &str {
        self.symbol.as_str()
    }

    pub fn width(&self) -> usize {
        let symbol = self.symbol();
        if symbol.len() == 1 { 1 } else { symbol.width() }
    }

    /// Shows nothing, not even a background.
    pub fn is_blank(&self) -> bool {
        self.symbol == Symbol::SPACE
            && self.style.bg.is_none_or(|it| it == Color::Reset)
            && self.style.add_modifier.is_empty()
    }

    pub fn is_space(&self) -> bool {
        self.symbol == Symbol::SPACE
    }

    /// Whether it stands for a part of a picture.
    pub fn is_picture(&self) -> bool {
        matches!(&self.symbol, Symbol::Long(text) if picture_place(text).is_some())
    }

    /// The picture's number, and the row and column of it that stand here.
    pub fn picture(&self) -> Option<(u32, usize, usize)> {
        let Symbol::Long(text) = &self.symbol else { return None };
        let (row, column, highest) = picture_place(text)?;
        match self.style.fg {
            Some(Color::Rgb(red, green, blue)) => Some((u32::from_be_bytes([highest, red, green, blue]), row, column)),
            _ => None,
        }
    }

    /// Whether all terminals agree on the width: no joined or variant-selected sequences.
    pub fn is_certain(&self) -> bool {
        let symbol = self.symbol();
        if self.is_picture() {
            return true;
        }
        let mut characters = symbol.chars();
        match (characters.next(), characters.next()) {
            (Some(only), None) => {
                !('\u{2190}'..='\u{2BFF}').contains(&only) || self.width() == 1 && !is_ambiguous(only)
            }
            _ => symbol.is_empty(),
        }
    }
}

/// Symbols that some terminals draw two cells wide as emoji.
fn is_ambiguous(character: char) -> bool {
    matches!(character,
        '\u{231A}'..='\u{231B}' | '\u{23E9}'..='\u{23F3}' | '\u{25AA}'..='\u{25AB}' | '\u{25B6}' | '\u{25C0}' |
        '\u{25FB}'..='\u{25FE}' | '\u{2600}'..='\u{2604}' | '\u{260E}' | '\u{2614}'..='\u{2615}' | '\u{2618}' | '\u{261D}' |
        '\u{2620}'..='\u{2623}' | '\u{2639}'..='\u{263A}' | '\u{2648}'..='\u{2653}' | '\u{2660}'..='\u{2668}' |
        '\u{26A0}'..='\u{26FF}' | '\u{2702}' | '\u{2705}' | '\u{2708}'..='\u{270F}' | '\u{2728}' | '\u{2733}'..='\u{2734}' |
        '\u{2744}' | '\u{2747}' | '\u{274C}' | '\u{274E}' | '\u{2753}'..='\u{2757}' | '\u{2763}'..='\u{2764}' |
        '\u{2795}'..='\u{2797}' | '\u{27A1}' | '\u{2934}'..='\u{2935}' | '\u{2B05}'..='\u{2B07}' | '\u{2B50}' | '\u{2B55}')
}

/// A line of the screen: its cells, and which of them are links.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Line {
    pub cells: Vec<Cell>,
    pub links: Vec<(Range<usize>, Arc<str>)>,
}

/// Adds a line as text in colours; no cursor is moved, and what is blank at its end is left out. Links are left out, too:
/// a terminal keeps their targets as long as its lines, where nobody sees them any more.
pub fn print(line: &Line, text: &mut String) {
    let used = line.cells.iter().rposition(|it| !it.is_blank()).map_or(0, |it| it + 1);
    let mut pen = Style::new();
    for cell in line.cells.iter().take(used) {
        if cell.symbol().is_empty() {
            continue;
        }
        if cell.style != pen {
            let mut codes = String::from("0");
            Screen::push_difference(&mut codes, Style::new(), cell.style);
            text.push_str("\x1b[");
            text.push_str(&codes);
            text.push('m');
            pen = cell.style;
        }
        text.push_str(cell.symbol());
    }
    if pen != Style::new() {
        text.push_str("\x1b[m");
    }
}

impl Line {
    pub fn blank(width: usize) -> Self {
        Self {
            cells: vec![Cell::BLANK; width],
            links: Vec::new(),
        }
    }

    pub fn reset(&mut self) {
        self.cells.fill(Cell::BLANK);
        self.links.clear();
    }

    pub fn width(&self) -> usize {
        self.cells.len()
    }

    /// Leaves nothing in these columns.
    pub fn blank_out(&mut self, columns: Range<usize>) {
        let count = columns.len();
        for cell in self.cells.iter_mut().skip(columns.start).take(count) {
            *cell = Cell::BLANK;
        }
    }

    pub fn link_at(&self, x: usize) -> Option<&(Range<usize>, Arc<str>)> {
        self.links.iter().find(|(range, _)| range.contains(&x))
    }

    pub fn text(&self) -> String {
        let text: String = self.cells.iter().map(Cell::symbol).collect();
        text.trim_end().to_owned()
    }

    /// Paints a ground from `range.start` to `range.end`, under what comes later.
    pub fn ground(&mut self, range: Range<usize>, ground: Ground, theme: &Theme) {
        if ground == Ground::Plain {
            return;
        }
        let style = theme.style(Role::Text, Mark::NONE, ground);
        let end = range.end.min(self.cells.len());
        for cell in self.cells.iter_mut().take(end).skip(range.start) {
            cell.style = bare(style);
        }
    }

    /// Writes spans from column `x` up to `limit`, cutting what does not fit; returns the column after the last.
    ///
    /// A span without a ground of its own stands on `ground`, which is painted there already.
    pub fn put(&mut self, mut x: usize, limit: usize, spans: &[Span], ground: Ground, theme: &Theme) -> usize {
        let limit = limit.min(self.cells.len());
        for span in spans {
            let ground = if span.ground == Ground::Plain {
                ground
            } else {
                span.ground
            };
            let style = theme.style(span.role, span.mark, ground);
            let start = x;
            for symbol in Graphemes::new(&span.text).map(|it| it.text) {
                let columns = match symbol {
                    "\t" => 4 - (x - start) % 4,
                    "\n" | "\r" | "\r\n" => 1,
                    _ if symbol.len() == 1 => 1,
                    _ => symbol.width(),
                };
                if columns == 0 {
                    continue;
                }
                if x + columns > limit {
                    self.link(start..x, span);
                    return x;
                }
                let shown = if matches!(symbol, "\t" | "\n" | "\r" | "\r\n") {
                    " "
                } else {
                    symbol
                };
                let wide = columns > 1 && shown != " ";
                for at in 0..columns {
                    let Some(cell) = self.cells.get_mut(x + at) else { break };
                    cell.symbol = match at {
                        0 => Symbol::new(shown),
                        _ if wide => Symbol::new(""),
                        _ => Symbol::SPACE,
                    };
                    cell.style = if shown == " " { bare(style) } else { style };
                }
                x += columns;
            }
            self.link(start..x, span);
        }
        x
    }

    /// Gives cells that are painted already another look.
    pub fn light(&mut self, columns: Range<usize>, role: Role, mark: Mark, ground: Ground, theme: &Theme) {
        let style = theme.style(role, mark, ground);
        let count = columns.end.saturating_sub(columns.start);
        for cell in self.cells.iter_mut().skip(columns.start).take(count) {
            cell.style = style;
        }
    }

    /// Takes over one row of a buffer that a ratatui widget was drawn into.
    pub fn copy(&mut self, x: usize, buffer: &Buffer, row: u16) {
        let mut column = 0;
        while column < buffer.area.width {
            let Some(cell) = buffer.cell((column, row)) else { return };
            // A chip's mark is a private character that no font has.
            let symbol = match cell.symbol() {
                it if it.starts_with(|c| ('\u{F0000}'..='\u{FFFFD}').contains(&c)) => "▤",
                it => it,
            };
            let columns = if symbol.len() == 1 { 1 } else { symbol.width().max(1) };
            for at in 0..columns {
                let Some(target) = self.cells.get_mut(x + usize::from(column) + at) else {
                    return;
                };
                target.symbol = if at == 0 { Symbol::new(symbol) } else { Symbol::new("") };
                target.style = plain(cell.style());
                if symbol == " " {
                    target.style = bare(target.style);
                }
            }
            column += columns as u16;
        }
    }

    fn link(&mut self, range: Range<usize>, span: &Span) {
        if let Some(target) = &span.link
            && !range.is_empty()
        {
            self.links.push((range, Arc::clone(target)));
        }
    }
}

/// A blank shows no foreground and no weight: leaving them out makes blanks equal that look equal.
fn bare(style: Style) -> Style {
    let shown = Modifier::UNDERLINED | Modifier::REVERSED | Modifier::CROSSED_OUT;
    if style.add_modifier.intersects(shown) {
        return style;
    }
    Style {
        fg: None,
        add_modifier: Modifier::empty(),
        ..style
    }
}

/// ratatui gives every member of a style a value; ours leave out what is the terminal's own, so that styles compare.
fn plain(style: Style) -> Style {
    let kept = |colour: Option<Color>| colour.filter(|it| *it != Color::Reset);
    let mut plain = Style::new();
    plain.fg = kept(style.fg);
    plain.bg = kept(style.bg);
    plain.add_modifier = style.add_modifier & !Modifier::HIDDEN;
    plain
}
