//! The bytes of the screen: a ratatui backend that writes the fewest.
//!
//! It keeps the terminal's cursor and colours, as far as they are certain, and repeats neither. Cells come from
//! [`Surface`](super::surface::Surface), which keeps what the terminal shows. Bytes are gathered in memory and never fail.

#![expect(
    clippy::disallowed_types,
    reason = "here the colours that the theme gave become bytes"
)]

use std::{convert::Infallible, fmt::Write as _, io::Write as _};

use ratatui::{
    backend::{Backend, ClearType, WindowSize},
    buffer::Cell,
    layout::{Position, Size},
    style::{Color, Modifier},
};
use unicode_width::UnicodeWidthStr;

use crate::text::picture_place;

/// Modifiers that have a code, with the code that switches each on.
const MODIFIERS: [(Modifier, &str); 6] = [
    (Modifier::BOLD, ";1"),
    (Modifier::DIM, ";2"),
    (Modifier::ITALIC, ";3"),
    (Modifier::UNDERLINED, ";4"),
    (Modifier::REVERSED, ";7"),
    (Modifier::CROSSED_OUT, ";9"),
];

/// All modifiers that have a code.
const SHOWN_MODIFIERS: Modifier = {
    let (mut all, mut at) = (Modifier::empty(), 0);
    while at < MODIFIERS.len() {
        all = all.union(MODIFIERS[at].0);
        at += 1;
    }
    all
};

/// Modifiers that a blank shows.
const ON_BLANKS: Modifier = Modifier::UNDERLINED
    .union(Modifier::REVERSED)
    .union(Modifier::CROSSED_OUT);

/// Placeholders of pictures are longer than this many bytes.
const LONGEST_PLAIN: usize = 7;

/// The colours and modifiers that the terminal writes in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pen {
    fg: Color,
    bg: Color,
    modifier: Modifier,
}

impl Pen {
    pub const fn of(cell: &Cell) -> Self {
        Self {
            fg: cell.fg,
            bg: cell.bg,
            modifier: cell.modifier,
        }
    }

    /// Adds the SGR codes, each after a `;`, that turn this pen into `to`, which has all its modifiers.
    fn push_difference(self, to: Self, codes: &mut String) {
        for (modifier, code) in MODIFIERS {
            if to.modifier.contains(modifier) && !self.modifier.contains(modifier) {
                codes.push_str(code);
            }
        }
        if to.fg != self.fg {
            push_colour(codes, to.fg, 30);
        }
        if to.bg != self.bg {
            push_colour(codes, to.bg, 40);
        }
    }
}

/// Returns the columns of a symbol, 0 for the second half of a wide one.
pub fn columns(symbol: &str) -> u16 {
    if symbol.len() == 1 { 1 } else { symbol.width() as u16 }
}

/// Returns true if the cell shows nothing, not even a background.
pub fn is_blank(cell: &Cell) -> bool {
    cell.symbol() == " " && cell.bg == Color::Reset && cell.modifier.is_empty()
}

/// Returns true if the cell stands for a part of a picture.
pub fn is_picture(cell: &Cell) -> bool {
    cell.symbol().len() > LONGEST_PLAIN && picture_place(cell.symbol()).is_some()
}

/// Returns the number of the picture, and the row and column of it that the cell stands for.
pub fn picture(cell: &Cell) -> Option<(u32, usize, usize)> {
    let (row, column, highest) = picture_place(cell.symbol())?;
    match cell.fg {
        Color::Rgb(red, green, blue) => Some((u32::from_be_bytes([highest, red, green, blue]), row, column)),
        _ => None,
    }
}

/// Makes cells equal that look equal, and leaves nothing in the second half of wide characters.
pub fn tidy(cells: &mut [Cell]) {
    let mut covered = 0;
    for x in 0..cells.len() {
        let room = cells.len() - x;
        let Some(cell) = cells.get_mut(x) else { return };
        if covered > 0 {
            covered -= 1;
            cell.reset();
            cell.set_symbol("");
        } else if !cell.symbol().is_ascii() {
            let wide = usize::from(columns(cell.symbol()).max(1));
            if wide > room {
                cell.set_symbol(" ");
            } else {
                covered = wide - 1;
            }
        }
        normalise(cell);
    }
}

/// Removes what a cell does not show: the foreground and weight of a blank, and modifiers without a code.
fn normalise(cell: &mut Cell) {
    cell.modifier &= SHOWN_MODIFIERS;
    if cell.symbol() == " " && !cell.modifier.intersects(ON_BLANKS) {
        cell.fg = Color::Reset;
        cell.modifier = Modifier::empty();
    }
}

/// Returns true if all terminals agree on the width: no joined or variant-selected sequences.
fn is_certain(cell: &Cell) -> bool {
    let symbol = cell.symbol();
    let mut characters = symbol.chars();
    match (characters.next(), characters.next()) {
        (Some(only), None) => !('\u{2190}'..='\u{2BFF}').contains(&only) || columns(symbol) == 1 && !is_ambiguous(only),
        _ => symbol.is_empty() || is_picture(cell),
    }
}

/// Returns true for symbols that some terminals draw two cells wide as emoji.
fn is_ambiguous(character: char) -> bool {
    matches!(character,
        '\u{231A}'..='\u{231B}' | '\u{23E9}'..='\u{23F3}' | '\u{25AA}'..='\u{25AB}' | '\u{25B6}' | '\u{25C0}' |
        '\u{25FB}'..='\u{25FE}' | '\u{2600}'..='\u{2604}' | '\u{260E}' | '\u{2614}'..='\u{2615}' | '\u{2618}' | '\u{261D}' |
        '\u{2620}'..='\u{2623}' | '\u{2639}'..='\u{263A}' | '\u{2648}'..='\u{2653}' | '\u{2660}'..='\u{2668}' |
        '\u{26A0}'..='\u{26FF}' | '\u{2702}' | '\u{2705}' | '\u{2708}'..='\u{270F}' | '\u{2728}' | '\u{2733}'..='\u{2734}' |
        '\u{2744}' | '\u{2747}' | '\u{274C}' | '\u{274E}' | '\u{2753}'..='\u{2757}' | '\u{2763}'..='\u{2764}' |
        '\u{2795}'..='\u{2797}' | '\u{27A1}' | '\u{2934}'..='\u{2935}' | '\u{2B05}'..='\u{2B07}' | '\u{2B50}' | '\u{2B55}')
}

/// Adds a row of cells as text in colours. No cursor is moved and what is blank at its end is left out, and so are links:
/// a terminal keeps their targets as long as its lines, where nobody sees them any more.
pub fn print_row(cells: &mut [Cell], text: &mut String) {
    tidy(cells);
    let used = cells.iter().rposition(|it| !is_blank(it)).map_or(0, |it| it + 1);
    let mut pen = Pen::default();
    for cell in cells.iter().take(used) {
        if cell.symbol().is_empty() {
            continue;
        }
        if Pen::of(cell) != pen {
            pen = Pen::of(cell);
            text.push_str("\x1b[0");
            Pen::default().push_difference(pen, text);
            text.push('m');
        }
        text.push_str(cell.symbol());
    }
    if pen != Pen::default() {
        text.push_str("\x1b[m");
    }
}

/// Gathers the bytes of a frame.
#[derive(Debug, Default)]
pub struct AnsiBackend {
    size: Size,
    /// Line of the terminal that the first line is, from 0.
    top: u16,
    bytes: Vec<u8>,
    /// `None`: unknown.
    pen: Option<Pen>,
    /// The terminal's cursor, if that is certain.
    at: Option<Position>,
    is_cursor_shown: Option<bool>,
    /// Places painted since the frame began.
    runs: usize,
    /// Cells of pictures are written as blanks, for strips to be painted over them.
    has_strips: bool,
    codes: String,
}

impl AnsiBackend {
    /// Takes the lines of the terminal from `top` on, of which nothing is known.
    pub fn place(&mut self, size: Size, top: u16) {
        (self.size, self.top) = (size, top);
        (self.pen, self.at) = (None, None);
    }

    /// Forgets where the cursor is and whether it is shown.
    pub fn forget(&mut self) {
        (self.pen, self.at, self.is_cursor_shown) = (None, None, None);
    }

    /// Begins a frame: drops the bytes of the last one. `has_strips`: images are painted afterwards as strips, so their cells
    /// are written as blanks.
    pub fn begin(&mut self, has_strips: bool) {
        self.bytes.clear();
        self.runs = 0;
        self.has_strips = has_strips;
    }

    /// Adds the bytes of the frame to `out`. One run arrives in one write; what is spread over the screen could be seen
    /// half done, and is a synchronized update where that is allowed.
    pub fn finish(&self, synchronized: bool, out: &mut Vec<u8>) {
        let from = out.len();
        out.extend_from_slice(&self.bytes);
        if synchronized && self.runs > 1 {
            synchronize(out, from);
        }
    }

    pub const fn pen(&self) -> Option<Pen> {
        self.pen
    }

    pub const fn at(&self) -> Option<Position> {
        self.at
    }

    /// Points the cells that are drawn next at an address, or at none any more.
    pub fn link(&mut self, target: Option<&str>) {
        let _ = write!(self.bytes, "\x1b]8;;{}\x1b\\", target.unwrap_or_default());
    }

    /// The bytes of the frame, for sequences that leave the cursor where it is.
    pub fn bytes(&mut self) -> &mut Vec<u8> {
        &mut self.bytes
    }

    /// Notes that the cursor may be anywhere.
    pub fn lose_cursor(&mut self) {
        self.at = None;
    }

    /// Moves the cursor by the shortest sequence.
    pub fn go(&mut self, to: Position) {
        if self.at == Some(to) {
            return;
        }
        self.runs += 1;
        let Position { x, y } = to;
        match self.at {
            Some(at) if at.y == y && x == 0 => self.bytes.push(b'\r'),
            Some(at) if at.y == y && at.x < x && x - at.x < 10 => {
                let _ = match x - at.x {
                    1 => write!(self.bytes, "\x1b[C"),
                    n => write!(self.bytes, "\x1b[{n}C"),
                };
            }
            _ => {
                let line = self.top + y + 1;
                let _ = if x == 0 {
                    write!(self.bytes, "\x1b[{line}H")
                } else {
                    write!(self.bytes, "\x1b[{line};{}H", x + 1)
                };
            }
        }
        self.at = Some(to);
    }

    fn put(&mut self, cell: &Cell) {
        let pen = Pen::of(cell);
        let is_picture = self.has_strips && is_picture(cell);
        let is_blank = is_picture || cell.symbol() == " ";
        // A blank shows no foreground: whatever pen has its background will do.
        let fits = is_blank
            && !pen.modifier.intersects(ON_BLANKS)
            && self
                .pen
                .is_some_and(|it| it.bg == pen.bg && !it.modifier.intersects(ON_BLANKS));
        if !fits {
            // The colour of a picture's cell is its number.
            self.set_pen(if is_picture {
                Pen {
                    fg: Color::Reset,
                    ..pen
                }
            } else {
                pen
            });
        }
        let symbol = if is_picture { " " } else { cell.symbol() };
        self.bytes.extend_from_slice(symbol.as_bytes());
        self.at = self.at.and_then(|Position { x, y }| {
            let x = x + columns(cell.symbol());
            // In the last column terminals wait with the wrap: the position is no place one can count on.
            (x < self.size.width && is_certain(cell)).then_some(Position { x, y })
        });
    }

    fn set_pen(&mut self, pen: Pen) {
        if self.pen == Some(pen) {
            return;
        }
        let mut codes = std::mem::take(&mut self.codes);
        codes.clear();
        let mut from = self.pen.unwrap_or_default();
        if pen == Pen::default() || self.pen.is_none() {
            codes.push_str(";0");
            from = Pen::default();
        } else {
            let lost = from.modifier - pen.modifier;
            from.modifier -= lost;
            // 22 takes bold and dim away together: what stays has to be said again.
            let weight = Modifier::BOLD | Modifier::DIM;
            if lost.intersects(weight) {
                codes.push_str(";22");
                from.modifier -= weight;
            }
            for (modifier, code) in [
                (Modifier::ITALIC, ";23"),
                (Modifier::UNDERLINED, ";24"),
                (Modifier::REVERSED, ";27"),
                (Modifier::CROSSED_OUT, ";29"),
            ] {
                if lost.contains(modifier) {
                    codes.push_str(code);
                }
            }
        }
        from.push_difference(pen, &mut codes);
        self.pen = Some(pen);
        if !codes.is_empty() {
            let shortest = codes.trim_start_matches(';');
            let _ = write!(self.bytes, "\x1b[{}m", if shortest == "0" { "" } else { shortest });
        }
        self.codes = codes;
    }

    /// Scrolls lines of a region by so many lines, up if positive. (ratatui's own method for it is behind a feature that
    /// brings the crates of three other backends into the lock file.)
    pub fn scroll(&mut self, region: std::ops::Range<u16>, by: isize) {
        self.set_pen(Pen::default());
        let (first, last) = (self.top + region.start + 1, self.top + region.end);
        let (count, letter) = (by.unsigned_abs(), if by > 0 { 'S' } else { 'T' });
        let _ = write!(self.bytes, "\x1b[{first};{last}r\x1b[{count}{letter}\x1b[r");
        self.at = (self.top == 0).then_some(Position::ORIGIN);
        self.runs += 2;
    }
}

impl Backend for AnsiBackend {
    type Error = Infallible;

    fn draw<'a, I>(&mut self, content: I) -> Result<(), Infallible>
    where
        I: Iterator<Item = (u16, u16, &'a Cell)>,
    {
        for (x, y, cell) in content {
            // The second half of a wide character comes with its first.
            if !cell.symbol().is_empty() {
                self.go(Position { x, y });
                self.put(cell);
            }
        }
        Ok(())
    }

    fn hide_cursor(&mut self) -> Result<(), Infallible> {
        if self.is_cursor_shown.replace(false) != Some(false) {
            self.bytes.extend_from_slice(b"\x1b[?25l");
        }
        Ok(())
    }

    fn show_cursor(&mut self) -> Result<(), Infallible> {
        if self.is_cursor_shown.replace(true) != Some(true) {
            self.bytes.extend_from_slice(b"\x1b[?25h");
        }
        Ok(())
    }

    fn get_cursor_position(&mut self) -> Result<Position, Infallible> {
        Ok(self.at.unwrap_or_default())
    }

    /// Moves the cursor, which nobody sees half done: that is no run.
    fn set_cursor_position<P: Into<Position>>(&mut self, position: P) -> Result<(), Infallible> {
        let runs = self.runs;
        self.go(position.into());
        self.runs = runs;
        Ok(())
    }

    fn clear(&mut self) -> Result<(), Infallible> {
        let _ = match self.top {
            0 => write!(self.bytes, "\x1b[m\x1b[H\x1b[2J"),
            top => write!(self.bytes, "\x1b[m\x1b[{}H\x1b[J", top + 1),
        };
        self.pen = Some(Pen::default());
        self.at = Some(Position::ORIGIN);
        self.runs += 2;
        Ok(())
    }

    /// Clears from the cursor on, or all lines; nothing else is asked for here.
    fn clear_region(&mut self, clear_type: ClearType) -> Result<(), Infallible> {
        if clear_type != ClearType::UntilNewLine {
            return self.clear();
        }
        // What is cleared gets the background of the pen.
        if self
            .pen
            .is_none_or(|it| it.bg != Color::Reset || it.modifier.contains(Modifier::REVERSED))
        {
            self.set_pen(Pen::default());
        }
        self.bytes.extend_from_slice(b"\x1b[K");
        Ok(())
    }

    fn size(&self) -> Result<Size, Infallible> {
        Ok(self.size)
    }

    fn window_size(&mut self) -> Result<WindowSize, Infallible> {
        Ok(WindowSize {
            columns_rows: self.size,
            pixels: Size::ZERO,
        })
    }

    fn flush(&mut self) -> Result<(), Infallible> {
        Ok(())
    }
}

/// Makes what `out` has from `start` on one synchronized update, which the terminal shows at once.
pub fn synchronize(out: &mut Vec<u8>, start: usize) {
    out.splice(start..start, *b"\x1b[?2026h");
    out.extend_from_slice(b"\x1b[?2026l");
}

/// Adds the SGR codes of a colour; `base` is 30 for the foreground, 40 for the background.
fn push_colour(codes: &mut String, colour: Color, base: u8) {
    let named = |n: u8| if n < 8 { base + n } else { base + 60 + n - 8 };
    let n = match colour {
        Color::Reset => base + 9,
        Color::Rgb(r, g, b) => {
            let _ = write!(codes, ";{};2;{r};{g};{b}", base + 8);
            return;
        }
        Color::Indexed(n) if n >= 16 => {
            let _ = write!(codes, ";{};5;{n}", base + 8);
            return;
        }
        Color::Indexed(n) => named(n),
        Color::Black => named(0),
        Color::Red => named(1),
        Color::Green => named(2),
        Color::Yellow => named(3),
        Color::Blue => named(4),
        Color::Magenta => named(5),
        Color::Cyan => named(6),
        Color::Gray => named(7),
        Color::DarkGray => named(8),
        Color::LightRed => named(9),
        Color::LightGreen => named(10),
        Color::LightYellow => named(11),
        Color::LightBlue => named(12),
        Color::LightMagenta => named(13),
        Color::LightCyan => named(14),
        Color::White => named(15),
    };
    let _ = write!(codes, ";{n}");
}

#[cfg(test)]
mod tests {
    use pretty_assertions::assert_eq;

    use super::*;

    fn cell(symbol: &str, fg: Color, modifier: Modifier) -> Cell {
        let mut cell = Cell::default();
        cell.set_symbol(symbol);
        cell.fg = fg;
        cell.modifier = modifier;
        cell
    }

    /// The bytes of cells that are drawn one after the other, from the first place on.
    fn bytes(cells: &[(u16, u16, Cell)]) -> String {
        let mut backend = AnsiBackend::default();
        backend.place(Size::new(10, 3), 0);
        backend.begin(false);
        let Ok(()) = backend.draw(cells.iter().map(|(x, y, it)| (*x, *y, it)));
        let mut out = Vec::new();
        backend.finish(false, &mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn neither_place_nor_pen_is_said_twice() {
        let (plain, bold) = (Modifier::empty(), Modifier::BOLD);
        let red = Color::Indexed(1);
        for (cells, expected) in [
            (
                vec![
                    (0, 0, cell("a", Color::Reset, plain)),
                    (1, 0, cell("b", Color::Reset, plain)),
                ],
                "\x1b[1H\x1b[mab",
            ),
            (
                vec![
                    (0, 0, cell("a", Color::Reset, plain)),
                    (3, 0, cell("b", Color::Reset, plain)),
                ],
                "\x1b[1H\x1b[ma\x1b[2Cb",
            ),
            (
                vec![(2, 1, cell("a", red, bold)), (3, 1, cell("b", red, bold))],
                "\x1b[2;3H\x1b[0;1;31mab",
            ),
            // A blank takes whatever pen there is.
            (
                vec![
                    (0, 0, cell("a", Color::Reset, bold)),
                    (1, 0, cell(" ", Color::Reset, plain)),
                ],
                "\x1b[1H\x1b[0;1ma ",
            ),
            // After a character of doubtful width the place is said again.
            (
                vec![
                    (0, 0, cell("☀", Color::Reset, plain)),
                    (1, 0, cell("b", Color::Reset, plain)),
                ],
                "\x1b[1H\x1b[m☀\x1b[1;2Hb",
            ),
            // So it is after the last column, where terminals differ.
            (
                vec![
                    (9, 0, cell("a", Color::Reset, plain)),
                    (0, 1, cell("b", Color::Reset, plain)),
                ],
                "\x1b[1;10H\x1b[ma\x1b[2Hb",
            ),
        ] {
            assert_eq!(bytes(&cells), expected, "{cells:?}");
        }
    }

    #[test]
    fn blanks_that_look_alike_are_equal() {
        let mut cells = [
            cell(" ", Color::Indexed(1), Modifier::BOLD),
            cell(" ", Color::Indexed(1), Modifier::UNDERLINED),
            cell("語", Color::Reset, Modifier::SLOW_BLINK),
            cell("x", Color::Reset, Modifier::empty()),
            cell("漢", Color::Reset, Modifier::empty()),
        ];
        tidy(&mut cells);
        assert!(is_blank(&cells[0]) && !is_blank(&cells[1]));
        assert_eq!(cells[2].modifier, Modifier::empty());
        assert_eq!(
            (cells[3].symbol(), cells[4].symbol()),
            ("", " "),
            "half a character is none"
        );
    }
}
