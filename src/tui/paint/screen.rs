//! What the terminal shows now, and the fewest bytes that make it show something else.
//!
//! ratatui's own `Terminal` hides its previous buffer, so the screen keeps the shown lines itself. A frame names every
//! line by a key; a line with the key it had is not touched, not even composed. When the lines of the scroll region have
//! moved, the terminal is told to scroll and only what is new is painted. A frame is one write, wrapped in a
//! synchronized update when it touches more than one place.

#![expect(
    clippy::disallowed_types,
    reason = "here the colours that the theme gave become bytes"
)]

use std::{fmt::Write as _, io::Write as _, ops::Range};

use ratatui::style::{Color, Modifier, Style};

use super::line::{Cell, Line};

/// Lines that stay equal to be worth a scroll.
const WORTH_SCROLLING: usize = 3;

/// A gap of unchanged cells this short is written again rather than jumped over.
const SHORT_GAP: usize = 4;

/// What is to be shown.
pub struct Frame<'a> {
    /// One key for each line from the top; equal keys mean equal lines. 0 is never equal.
    pub keys: &'a [u64],
    /// Lines that move together when the reader scrolls.
    pub region: Range<usize>,
    /// Where the caret is; `None` hides it.
    pub caret: Option<(u16, u16)>,
    /// Pictures, where the terminal does not take their cells as text.
    pub strips: Option<&'a dyn Strips>,
}

/// Pictures that a terminal paints where its cursor is, a row of cells at a time.
pub trait Strips {
    /// What paints these columns of a row of a picture; the cursor may be anywhere afterwards.
    fn strip(&self, id: u32, row: usize, columns: Range<usize>, out: &mut Vec<u8>);

    /// What takes away the strip that the cursor is on, where writing over it is not enough.
    fn eraser(&self) -> &'static [u8];
}

/// Cells of a line that show neighbouring columns of one row of a picture.
struct Run {
    x: usize,
    id: u32,
    row: usize,
    columns: Range<usize>,
}

/// The double of the terminal's screen.
pub struct Screen {
    width: usize,
    lines: Vec<Line>,
    keys: Vec<u64>,
    scratch: Line,
    pen: Option<Style>,
    /// Where the terminal's cursor is, if that is certain.
    at: Option<(usize, usize)>,
    caret: Option<(u16, u16)>,
    caret_shown: Option<bool>,
    body: Vec<u8>,
    /// Places painted since the frame began.
    runs: usize,
    cleared: bool,
    /// Cells of pictures are written as blanks.
    are_strips: bool,
    /// The line of the terminal that the first one is, from 0.
    top: usize,
    /// OSC 8 links are written.
    pub links: bool,
    /// Synchronized updates are written.
    pub synchronized: bool,
}

impl Screen {
    pub fn new(width: u16, height: u16) -> Self {
        let mut screen = Self {
            width: 0,
            lines: Vec::new(),
            keys: Vec::new(),
            scratch: Line::default(),
            pen: None,
            at: None,
            caret: None,
            caret_shown: None,
            body: Vec::new(),
            runs: 0,
            cleared: false,
            are_strips: false,
            top: 0,
            links: true,
            synchronized: true,
        };
        screen.resize(width, height);
        screen
    }

    pub fn width(&self) -> usize {
        self.width
    }

    pub fn height(&self) -> usize {
        self.lines.len()
    }

    /// Takes a new size; the next frame paints everything.
    pub fn resize(&mut self, width: u16, height: u16) {
        self.width = usize::from(width.max(1));
        let height = usize::from(height.max(1));
        self.lines = (0..height).map(|_| Line::blank(self.width)).collect();
        self.keys = vec![0; height];
        self.scratch = Line::blank(self.width);
        self.forget();
    }

    /// Is so many lines of the terminal from `top` on, all of them blank.
    pub fn place(&mut self, width: u16, height: u16, top: usize) {
        self.resize(width, height);
        self.top = top;
        self.cleared = false;
    }

    /// Has more lines, blank ones at its end; what was shown has gone up with the terminal's other lines.
    pub fn grow(&mut self, width: u16, height: u16, top: usize) {
        if self.width != usize::from(width) {
            self.place(width, height, top);
            return;
        }
        self.lines
            .resize_with(usize::from(height), || Line::blank(usize::from(width)));
        self.keys.resize(usize::from(height), 0);
        self.top = top;
        self.pen = None;
        self.at = None;
    }

    /// Lines of the terminal between the first one and the caret, when it has become so wide.
    pub fn rows_above_caret(&self, width: usize, reflows: bool) -> usize {
        let (x, y) = self.caret.unwrap_or_default();
        if !reflows {
            return usize::from(y);
        }
        let used = |line: &Line| line.cells.iter().rposition(|it| !it.is_blank()).map_or(0, |it| it + 1);
        let above = self.lines.iter().take(usize::from(y));
        let rows: usize = above.map(|it| used(it).div_ceil(width.max(1)).max(1)).sum();
        rows + usize::from(x) / width.max(1)
    }

    /// The terminal shows who knows what: the next frame clears it and paints everything.
    pub fn forget(&mut self) {
        self.cleared = true;
        self.pen = None;
        self.at = None;
        self.caret_shown = None;
    }

    /// Appends to `out` what turns the shown screen into `frame`. `paint` fills a blank line with what belongs there.
    pub fn show(&mut self, frame: &Frame<'_>, out: &mut Vec<u8>, paint: &mut dyn FnMut(usize, &mut Line)) {
        self.body.clear();
        self.runs = 0;
        if std::mem::take(&mut self.cleared) {
            if self.top == 0 {
                self.body.extend_from_slice(b"\x1b[m\x1b[H\x1b[2J");
            } else {
                let _ = write!(self.body, "\x1b[m\x1b[{}H\x1b[J", self.top + 1);
            }
            self.pen = Some(Style::new());
            self.at = Some((0, 0));
            self.runs += 2;
            for line in &mut self.lines {
                line.reset();
            }
            self.keys.fill(0);
        }
        self.are_strips = frame.strips.is_some();
        // What does not go away when it is written over does not move with the text, either.
        if frame.strips.is_none_or(|it| it.eraser().is_empty()) {
            self.scroll(frame);
        }
        for y in 0..self.lines.len() {
            let key = frame.keys.get(y).copied().unwrap_or_default();
            if key != 0 && self.keys.get(y) == Some(&key) {
                continue;
            }
            let mut next = std::mem::take(&mut self.scratch);
            next.reset();
            paint(y, &mut next);
            self.paint_line(y, &next, frame.strips);
            if let (Some(line), Some(old)) = (self.lines.get_mut(y), self.keys.get_mut(y)) {
                self.scratch = std::mem::replace(line, next);
                *old = key;
            }
        }
        self.place_caret(frame.caret);
        if self.body.is_empty() {
            return;
        }
        // One run arrives in one write; only what is spread over the screen could be seen half done.
        let wrapped = self.synchronized && self.runs > 1;
        if wrapped {
            out.extend_from_slice(b"\x1b[?2026h");
        }
        out.extend_from_slice(&self.body);
        if wrapped {
            out.extend_from_slice(b"\x1b[?2026l");
        }
    }

    /// Moves lines that are still wanted elsewhere in the region.
    fn scroll(&mut self, frame: &Frame<'_>) {
        let region = frame.region.start..frame.region.end.min(self.lines.len());
        let (Some(old), Some(new)) = (self.keys.get(region.clone()), frame.keys.get(region.clone())) else {
            return;
        };
        let height = region.len();
        let equal = |shift: isize| {
            (0..height)
                .filter(|&y| {
                    let from = y as isize + shift;
                    from >= 0
                        && (from as usize) < height
                        && new.get(y).is_some_and(|&key| key > 1)
                        && old.get(from as usize) == new.get(y)
                })
                .count()
        };
        // Where hardly a line has changed nothing has moved: most frames of an answer end here.
        let changed = old.iter().zip(new).filter(|(old, new)| old != new).count();
        if changed < WORTH_SCROLLING {
            return;
        }
        let stay = equal(0);
        let best = (1..height as isize)
            .flat_map(|it| [it, -it])
            .map(|it| (equal(it), it))
            .max_by_key(|&(n, it)| (n, -it.abs()));
        let Some((kept, shift)) = best else { return };
        if kept < stay + WORTH_SCROLLING {
            return;
        }
        let count = shift.unsigned_abs();
        self.set_pen(Style::new());
        let letter = if shift > 0 { 'S' } else { 'T' };
        let _ = write!(
            self.body,
            "\x1b[{};{}r\x1b[{count}{letter}\x1b[r",
            self.top + region.start + 1,
            self.top + region.end
        );
        self.at = (self.top == 0).then_some((0, 0));
        self.runs += 2;
        let (Some(lines), Some(keys)) = (self.lines.get_mut(region.clone()), self.keys.get_mut(region)) else {
            return;
        };
        if shift > 0 {
            lines.rotate_left(count);
            keys.rotate_left(count);
        } else {
            lines.rotate_right(count);
            keys.rotate_right(count);
        }
        let fresh = if shift > 0 { height - count..height } else { 0..count };
        for y in fresh {
            if let (Some(line), Some(key)) = (lines.get_mut(y), keys.get_mut(y)) {
                line.reset();
                *key = 0;
            }
        }
    }

    fn paint_line(&mut self, y: usize, next: &Line, strips: Option<&dyn Strips>) {
        let Some(shown) = self.lines.get_mut(y).map(std::mem::take) else {
            return;
        };
        let strips = strips.filter(|_| are_other_pictures(next, &shown));
        if let Some(eraser) = strips.map(Strips::eraser).filter(|it| !it.is_empty()) {
            for run in runs(&shown) {
                self.go(run.x, y);
                self.body.extend_from_slice(eraser);
            }
        }
        self.paint_difference(y, next, &shown);
        for run in strips.map(|_| runs(next)).unwrap_or_default() {
            let Some(strips) = strips else { break };
            self.go(run.x, y);
            strips.strip(run.id, run.row, run.columns, &mut self.body);
            self.at = None;
        }
        if let Some(line) = self.lines.get_mut(y) {
            *line = shown;
        }
    }

    fn paint_difference(&mut self, y: usize, next: &Line, shown: &Line) {
        let relinked = shown.links != next.links;
        let blank_from = next.cells.iter().rposition(|it| !it.is_blank()).map_or(0, |it| it + 1);
        let mut x = 0;
        while x < self.width {
            if x >= blank_from {
                // Nothing more to show: one sequence clears the rest, if there is a rest.
                if shown.cells.iter().skip(x).any(|it| !it.is_blank()) {
                    self.go(x, y);
                    let pen = self.pen.unwrap_or_default();
                    if pen.bg.is_some_and(|it| it != Color::Reset)
                        || pen.add_modifier.contains(Modifier::REVERSED)
                        || self.pen.is_none()
                    {
                        self.set_pen(Style::new());
                    }
                    self.body.extend_from_slice(b"\x1b[K");
                }
                return;
            }
            let (Some(old), Some(new)) = (shown.cells.get(x), next.cells.get(x)) else {
                return;
            };
            if old == new && !(relinked && (shown.link_at(x).is_some() || next.link_at(x).is_some())) {
                x += 1;
                continue;
            }
            // The second half of a wide character comes with its first.
            if new.symbol().is_empty() {
                x += 1;
                continue;
            }
            // A short way inside a line is cheaper to write than to jump.
            if let Some((at, row)) = self.at
                && row == y
                && at < x
                && x - at <= SHORT_GAP
                && self.is_plain_gap(next, at, x)
            {
                for gap in at..x {
                    if let Some(cell) = next.cells.get(gap) {
                        self.put(cell);
                    }
                }
            }
            self.go(x, y);
            x = self.run(y, x, next, shown, relinked, blank_from);
        }
    }

    /// Writes cells from `x` on while they differ; returns where it stopped.
    fn run(&mut self, y: usize, mut x: usize, next: &Line, shown: &Line, relinked: bool, blank_from: usize) -> usize {
        while x < blank_from {
            let (Some(old), Some(new)) = (shown.cells.get(x), next.cells.get(x)) else {
                break;
            };
            if old == new && !(relinked && (shown.link_at(x).is_some() || next.link_at(x).is_some())) {
                break;
            }
            let link = if self.links { next.link_at(x) } else { None };
            if let Some((range, target)) = link {
                let _ = write!(self.body, "\x1b]8;;{target}\x1b\\");
                for at in x..range.end.min(self.width) {
                    if let Some(cell) = next.cells.get(at) {
                        self.put(cell);
                    }
                }
                self.body.extend_from_slice(b"\x1b]8;;\x1b\\");
                x = range.end;
                // A link is an island: whatever follows is addressed anew.
                continue;
            }
            let before = self.at;
            self.put(new);
            x += new.width().max(1);
            if before.is_some() && self.at.is_none() {
                // The width of what was written is a matter of opinion between terminals.
                self.go(x.min(self.width.saturating_sub(1)), y);
            }
        }
        x
    }

    fn is_plain_gap(&self, line: &Line, from: usize, to: usize) -> bool {
        line.cells.get(from..to).is_some_and(|cells| {
            cells
                .iter()
                .all(|it| it.symbol().len() == 1 && (it.is_space() || Some(it.style) == self.pen))
        }) && (from..to).all(|x| line.link_at(x).is_none())
    }

    fn put(&mut self, cell: &Cell) {
        if cell.symbol().is_empty() {
            return;
        }
        // A blank shows no foreground: whatever pen has its background will do.
        let is_picture = self.are_strips && cell.is_picture();
        let fits = (cell.is_space() || is_picture)
            && self.pen.is_some_and(|pen| {
                pen.bg.unwrap_or(Color::Reset) == cell.style.bg.unwrap_or(Color::Reset) && !shows_on_blank(pen)
            })
            && !shows_on_blank(cell.style);
        if !fits {
            // The colour of a picture's cell is its number.
            let style = cell.style;
            self.set_pen(if is_picture { Style { fg: None, ..style } } else { style });
        }
        let symbol = if is_picture { " " } else { cell.symbol() };
        self.body.extend_from_slice(symbol.as_bytes());
        self.at = self.at.and_then(|(x, y)| {
            let x = x + cell.width();
            // In the last column terminals wait with the wrap: the position is no place one can count on.
            (x < self.width && cell.is_certain()).then_some((x, y))
        });
    }

    fn go(&mut self, x: usize, y: usize) {
        if self.at == Some((x, y)) {
            return;
        }
        self.runs += 1;
        match self.at {
            Some((_, row)) if row == y && x == 0 => self.body.push(b'\r'),
            Some((column, row)) if row == y && column < x && x - column < 10 => {
                let _ = match x - column {
                    1 => write!(self.body, "\x1b[C"),
                    n => write!(self.body, "\x1b[{n}C"),
                };
            }
            _ => {
                let _ = if x == 0 {
                    write!(self.body, "\x1b[{}H", self.top + y + 1)
                } else {
                    write!(self.body, "\x1b[{};{}H", self.top + y + 1, x + 1)
                };
            }
        }
        self.at = Some((x, y));
    }

    fn set_pen(&mut self, style: Style) {
        if self.pen == Some(style) {
            return;
        }
        let mut text = String::new();
        let old = self.pen;
        let from = old.unwrap_or_default();
        let lost = from.add_modifier - style.add_modifier;
        if style == Style::new() || old.is_none() {
            text.push_str(";0");
            Self::push_difference(&mut text, Style::new(), style);
        } else {
            if lost.intersects(Modifier::BOLD | Modifier::DIM) {
                text.push_str(";22");
            }
            for (modifier, code) in [
                (Modifier::ITALIC, ";23"),
                (Modifier::UNDERLINED, ";24"),
                (Modifier::REVERSED, ";27"),
                (Modifier::CROSSED_OUT, ";29"),
            ] {
                if lost.contains(modifier) {
                    text.push_str(code);
                }
            }
            // 22 takes bold and dim away together: what stays has to be said again.
            let mut base = from;
            base.add_modifier -= lost;
            if lost.intersects(Modifier::BOLD | Modifier::DIM) {
                base.add_modifier -= Modifier::BOLD | Modifier::DIM;
            }
            Self::push_difference(&mut text, base, style);
        }
        self.pen = Some(style);
        if text.is_empty() {
            // Two names for the same look.
            return;
        }
        let codes = text.trim_start_matches(';');
        let codes = if codes == "0" { "" } else { codes };
        let _ = write!(self.body, "\x1b[{codes}m");
    }

    pub(super) fn push_difference(text: &mut String, from: Style, to: Style) {
        let gained = to.add_modifier - from.add_modifier;
        for (modifier, code) in [
            (Modifier::BOLD, ";1"),
            (Modifier::DIM, ";2"),
            (Modifier::ITALIC, ";3"),
            (Modifier::UNDERLINED, ";4"),
            (Modifier::REVERSED, ";7"),
            (Modifier::CROSSED_OUT, ";9"),
        ] {
            if gained.contains(modifier) {
                text.push_str(code);
            }
        }
        let fg = to.fg.unwrap_or(Color::Reset);
        if fg != from.fg.unwrap_or(Color::Reset) {
            push_colour(text, fg, 30);
        }
        let bg = to.bg.unwrap_or(Color::Reset);
        if bg != from.bg.unwrap_or(Color::Reset) {
            push_colour(text, bg, 40);
        }
    }

    fn place_caret(&mut self, caret: Option<(u16, u16)>) {
        match caret {
            Some((x, y)) => {
                let place = (usize::from(x).min(self.width.saturating_sub(1)), usize::from(y));
                if self.at != Some(place) {
                    let runs = self.runs;
                    self.go(place.0, place.1);
                    self.runs = runs;
                }
                if self.caret_shown != Some(true) {
                    self.body.extend_from_slice(b"\x1b[?25h");
                }
            }
            None => {
                if self.caret_shown != Some(false) {
                    self.body.extend_from_slice(b"\x1b[?25l");
                }
            }
        }
        self.caret_shown = Some(caret.is_some());
        self.caret = caret;
    }

    /// The shown screen as text, for tests: what a person would see.
    pub fn text(&self) -> String {
        self.lines.iter().map(|it| it.text() + "\n").collect()
    }

    pub fn line(&self, y: usize) -> Option<&Line> {
        self.lines.get(y)
    }
}

/// Whether a blank in this style is anything but its background.
fn shows_on_blank(style: Style) -> bool {
    style
        .add_modifier
        .intersects(Modifier::UNDERLINED | Modifier::REVERSED | Modifier::CROSSED_OUT)
}

/// SGR codes of a colour; `base` is 30 for the foreground, 40 for the background.
fn push_colour(text: &mut String, colour: Color, base: u8) {
    let named = |n: u8| if n < 8 { base + n } else { base + 60 + n - 8 };
    let _ = match colour {
        Color::Reset => write!(text, ";{}", base + 9),
        Color::Rgb(r, g, b) => write!(text, ";{};2;{r};{g};{b}", base + 8),
        Color::Indexed(n) if n < 16 => write!(text, ";{}", named(n)),
        Color::Indexed(n) => write!(text, ";{};5;{n}", base + 8),
        Color::Black => write!(text, ";{}", named(0)),
        Color::Red => write!(text, ";{}", named(1)),
        Color::Green => write!(text, ";{}", named(2)),
        Color::Yellow => write!(text, ";{}", named(3)),
        Color::Blue => write!(text, ";{}", named(4)),
        Color::Magenta => write!(text, ";{}", named(5)),
        Color::Cyan => write!(text, ";{}", named(6)),
        Color::Gray => write!(text, ";{}", named(7)),
        Color::DarkGray => write!(text, ";{}", named(8)),
        Color::LightRed => write!(text, ";{}", named(9)),
        Color::LightGreen => write!(text, ";{}", named(10)),
        Color::LightYellow => write!(text, ";{}", named(11)),
        Color::LightBlue => write!(text, ";{}", named(12)),
        Color::LightMagenta => write!(text, ";{}", named(13)),
        Color::LightCyan => write!(text, ";{}", named(14)),
        Color::White => write!(text, ";{}", named(15)),
    };
}

/// Whether cells of pictures come, go or change.
fn are_other_pictures(next: &Line, shown: &Line) -> bool {
    let pairs = next.cells.iter().zip(&shown.cells);
    pairs
        .into_iter()
        .any(|(new, old)| (new.is_picture() || old.is_picture()) && new != old)
}

/// Adds a line of pictures as text that goes on in the next line. The terminal has to have that line before a strip is
/// painted: where it is the last, some go on by themselves.
pub fn print_pictures(line: &Line, strips: &dyn Strips, text: &mut String) {
    let runs = runs(line);
    let mut plain = line.clone();
    for run in &runs {
        plain.blank_out(run.x..run.x + run.columns.len());
    }
    super::line::print(&plain, text);
    text.push_str("\r\n");
    for run in runs {
        let mut strip = Vec::new();
        strips.strip(run.id, run.row, run.columns, &mut strip);
        let strip = String::from_utf8_lossy(&strip);
        let _ = write!(text, "\x1b7\x1b[A\x1b[{}G{strip}\x1b8", run.x + 1);
    }
}

/// What a line shows of pictures.
fn runs(line: &Line) -> Vec<Run> {
    let mut runs: Vec<Run> = Vec::new();
    for (x, cell) in line.cells.iter().enumerate() {
        let Some((id, row, column)) = cell.picture() else {
            continue;
        };
        match runs.last_mut() {
            Some(run) if (run.id, run.row, run.columns.end) == (id, row, column) && run.x + run.columns.len() == x => {
                run.columns.end += 1;
            }
            _ => runs.push(Run {
                x,
                id,
                row,
                columns: column..column + 1,
            }),
        }
    }
    runs
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::{
        text::{Clean, Ground, Role, Span},
        theme::Theme,
    };

    /// A frame as data: what each line says, and where the region begins and ends.
    #[derive(Clone, Debug)]
    struct Picture {
        lines: Vec<Vec<(String, Role, Ground)>>,
        region: Range<usize>,
        caret: Option<(u16, u16)>,
    }

    fn keys(picture: &Picture) -> Vec<u64> {
        use std::hash::{DefaultHasher, Hash, Hasher};
        let key = |line: &Vec<(String, Role, Ground)>| {
            let mut hasher = DefaultHasher::new();
            line.hash(&mut hasher);
            hasher.finish().max(2)
        };
        picture.lines.iter().map(key).collect()
    }

    fn show(screen: &mut Screen, picture: &Picture, theme: &Theme) -> Vec<u8> {
        let mut out = Vec::new();
        let keys = keys(picture);
        let frame = Frame {
            keys: &keys,
            region: picture.region.clone(),
            caret: picture.caret,
            strips: None,
        };
        screen.show(&frame, &mut out, &mut |y, line| {
            let spans: Vec<_> = picture.lines[y]
                .iter()
                .map(|(text, role, ground)| Span::new(Clean::new(text), *role).on(*ground))
                .collect();
            let width = line.width();
            line.put(0, width, &spans, Ground::Plain, theme);
        });
        out
    }

    fn assert_same(parser: &vt100::Parser, screen: &Screen, picture: &Picture) {
        for y in 0..screen.height() {
            let line = screen.line(y).unwrap();
            for x in 0..screen.width() {
                let ours = &line.cells[x];
                let theirs = parser.screen().cell(y as u16, x as u16).unwrap();
                let symbol = if theirs.is_wide_continuation() {
                    ""
                } else {
                    theirs.contents()
                };
                let symbol = if symbol.is_empty() && !theirs.is_wide_continuation() {
                    " "
                } else {
                    symbol
                };
                assert_eq!(ours.symbol(), symbol, "cell {x},{y} of\n{}", screen.text());
                let ground = match ours.style.bg {
                    Some(Color::Rgb(r, g, b)) => vt100::Color::Rgb(r, g, b),
                    _ => vt100::Color::Default,
                };
                // The emulator keeps no colours for the second half of a wide character.
                if !theirs.is_wide_continuation() {
                    assert_eq!(ground, theirs.bgcolor(), "ground of {x},{y}");
                }
                if !ours.is_space() && !ours.symbol().is_empty() {
                    let colour = match ours.style.fg {
                        Some(Color::Rgb(r, g, b)) => vt100::Color::Rgb(r, g, b),
                        _ => vt100::Color::Default,
                    };
                    assert_eq!(colour, theirs.fgcolor(), "colour of {x},{y}");
                    assert_eq!(
                        ours.style.add_modifier.contains(Modifier::BOLD),
                        theirs.bold(),
                        "weight of {x},{y}"
                    );
                }
            }
        }
        if let Some((x, y)) = picture.caret {
            let x = x.min(screen.width() as u16 - 1);
            assert_eq!(parser.screen().cursor_position(), (y, x));
        }
        assert_eq!(parser.screen().hide_cursor(), picture.caret.is_none());
    }

    fn span() -> impl Strategy<Value = (String, Role, Ground)> {
        let text = prop_oneof![
            "[a-z ]{0,12}",
            Just("語漢".to_owned()),
            Just("● ✓ ±".to_owned()),
            Just("ab\tc".to_owned()),
            Just("é".to_owned()),
            Just("      ".to_owned()),
        ];
        let role = prop_oneof![
            Just(Role::Text),
            Just(Role::Strong),
            Just(Role::Error),
            Just(Role::Faint)
        ];
        let ground = prop_oneof![4 => Just(Ground::Plain), 1 => Just(Ground::Added), 1 => Just(Ground::Selection)];
        (text, role, ground)
    }

    const HEIGHT: usize = 9;

    fn picture() -> impl Strategy<Value = Picture> {
        let lines = proptest::collection::vec(proptest::collection::vec(span(), 0..4), HEIGHT);
        (
            lines,
            0usize..4,
            5usize..=HEIGHT,
            proptest::option::of((0u16..24, 0u16..HEIGHT as u16)),
        )
            .prop_map(|(lines, start, end, caret)| Picture {
                lines,
                region: start..end,
                caret,
            })
    }

    /// Frames as programs make them: whole new ones, one line changed, lines moved.
    fn frames() -> impl Strategy<Value = Vec<Picture>> {
        let step = (picture(), 0usize..4, 1usize..4);
        (picture(), proptest::collection::vec(step, 1..8)).prop_map(|(first, steps)| {
            let mut all = vec![first];
            for (fresh, what, by) in steps {
                let by = by.min(fresh.region.len());
                let mut next = all.last().unwrap().clone();
                next.caret = fresh.caret;
                match what {
                    0 => next = fresh,
                    1 => next.lines[by] = fresh.lines[by].clone(),
                    2 => {
                        next.region = fresh.region.clone();
                        next.lines[fresh.region.clone()].rotate_left(by);
                        for y in fresh.region.end - by..fresh.region.end {
                            next.lines[y] = fresh.lines[y].clone();
                        }
                    }
                    _ => {
                        next.region = fresh.region.clone();
                        next.lines[fresh.region.clone()].rotate_right(by);
                    }
                }
                all.push(next);
            }
            all
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(256))]
        #[test]
        fn a_terminal_shows_what_the_screen_believes_it_shows(frames in frames(), width in 8u16..24) {
            let theme = Theme::built_in("sheaf-dark").unwrap();
            let mut screen = Screen::new(width, HEIGHT as u16);
            let mut parser = vt100::Parser::new(
                std::num::NonZeroU16::new(HEIGHT as u16).unwrap(), std::num::NonZeroU16::new(width).unwrap(), 0);
            for picture in &frames {
                let out = show(&mut screen, picture, &theme);
                parser.process(&out);
                assert_same(&parser, &screen, picture);
            }
        }
    }

    fn lines(texts: &[&str]) -> Picture {
        Picture {
            lines: texts
                .iter()
                .map(|it| vec![((*it).to_owned(), Role::Text, Ground::Plain)])
                .collect(),
            region: 1..texts.len() - 1,
            caret: Some((2, texts.len() as u16 - 1)),
        }
    }

    #[test]
    fn a_frame_that_changes_nothing_writes_nothing() {
        let theme = Theme::built_in("sheaf-dark").unwrap();
        let mut screen = Screen::new(20, 4);
        let picture = lines(&["head", "one", "two", "› "]);
        assert!(!show(&mut screen, &picture, &theme).is_empty());
        assert_eq!(show(&mut screen, &picture, &theme), b"");
    }

    #[test]
    fn a_word_at_the_end_of_a_line_costs_little_more_than_itself() {
        let theme = Theme::built_in("sheaf-dark").unwrap();
        let mut screen = Screen::new(40, 4);
        show(&mut screen, &lines(&["head", "one", "two", "› "]), &theme);
        show(&mut screen, &lines(&["head", "one", "two and", "› "]), &theme);
        let out = show(&mut screen, &lines(&["head", "one", "two and three", "› "]), &theme);
        // To the place, the word, back to the caret.
        assert_eq!(String::from_utf8_lossy(&out), "\x1b[3;9Hthree\x1b[4;3H");
    }

    #[test]
    fn lines_that_move_are_moved_by_the_terminal() {
        let theme = Theme::built_in("sheaf-dark").unwrap();
        let mut screen = Screen::new(40, 8);
        show(
            &mut screen,
            &lines(&["head", "a1", "b2", "c3", "d4", "e5", "f6", "› "]),
            &theme,
        );
        let out = show(
            &mut screen,
            &lines(&["head", "b2", "c3", "d4", "e5", "f6", "g7", "› "]),
            &theme,
        );
        let out = String::from_utf8_lossy(&out);
        assert!(out.contains("\x1b[2;7r\x1b[1S\x1b[r"), "{out:?}");
        assert!(out.contains("g7") && !out.contains("f6"), "{out:?}");
        assert!(
            out.starts_with("\x1b[?2026h") && out.ends_with("\x1b[?2026l"),
            "{out:?}"
        );
    }

    fn emulator(height: u16, width: u16, scrollback: usize) -> vt100::Parser {
        let size = |it| std::num::NonZeroU16::new(it).unwrap();
        vt100::Parser::new(size(height), size(width), scrollback)
    }

    /// Pictures whose strips are letters, so that an emulator shows which one stands where.
    struct Letters(&'static [u8]);

    fn letter(id: u32, row: usize, column: usize) -> char {
        char::from(b'A' + ((id as usize * 7 + row * 5 + column) % 26) as u8)
    }

    impl Strips for Letters {
        fn strip(&self, id: u32, row: usize, columns: Range<usize>, out: &mut Vec<u8>) {
            out.extend(columns.map(|column| letter(id, row, column) as u8));
        }

        fn eraser(&self) -> &'static [u8] {
            self.0
        }
    }

    /// A line: blank, words, or a row of a picture with words in it from some column on.
    #[derive(Clone, Debug, Hash)]
    enum Part {
        Blank,
        Words(u8),
        Picture { id: u8, row: u8, covered: Option<u8> },
    }

    fn parts() -> impl Strategy<Value = Vec<Part>> {
        let part = prop_oneof![
            Just(Part::Blank),
            (0_u8..4).prop_map(Part::Words),
            (1_u8..3, 0_u8..6, prop::option::of(0_u8..9)).prop_map(|(id, row, covered)| Part::Picture {
                id,
                row,
                covered
            }),
        ];
        // A long picture that moves, and lines that are anything.
        prop_oneof![
            (0_usize..12, 1_u8..3).prop_map(|(from, id)| {
                let row = |y: usize| match y.checked_sub(from) {
                    Some(row) if row < 6 => Part::Picture {
                        id,
                        row: row as u8,
                        covered: None,
                    },
                    _ => Part::Words((y % 4) as u8),
                };
                (0..12).map(row).collect()
            }),
            prop::collection::vec(part, 12..13),
        ]
    }

    proptest! {
        #[test]
        fn pictures_stand_where_they_belong_and_nowhere_else(
            frames in prop::collection::vec(parts(), 1..9),
            erases in any::<bool>(),
        ) {
            let theme = Theme::built_in("sheaf-dark").unwrap();
            let (width, height) = (24_u16, 12_u16);
            let letters = Letters(if erases { b"\x1b[s" } else { b"" });
            let mut parser = emulator(height, width, 0);
            let mut screen = Screen::new(width, height);
            for parts in frames {
                let keys: Vec<u64> = parts
                    .iter()
                    .map(|part| {
                        use std::hash::{DefaultHasher, Hash, Hasher};
                        let mut hasher = DefaultHasher::new();
                        part.hash(&mut hasher);
                        hasher.finish().max(2)
                    })
                    .collect();
                let frame = Frame { keys: &keys, region: 0..11, caret: Some((0, 11)), strips: Some(&letters) };
                let mut out = Vec::new();
                screen.show(&frame, &mut out, &mut |y, line| match &parts[y] {
                    Part::Blank => {}
                    Part::Words(n) => {
                        let words = Clean::new(&"some words ".repeat(usize::from(*n)));
                        line.put(0, 24, &[Span::new(words, Role::Text)], Ground::Plain, &theme);
                    }
                    Part::Picture { id, row, covered } => {
                        let mut cells = Clean::default();
                        for column in 0..10 {
                            cells.push(&Clean::picture_cell(usize::from(*row), column, 1));
                        }
                        let role = Role::Picture(0, 0, *id);
                        line.put(4, 24, &[Span::new(cells, role)], Ground::Plain, &theme);
                        if let Some(at) = covered {
                            let popup = [Span::new(Clean::literal("=#="), Role::Accent)];
                            line.put(4 + usize::from(*at), 24, &popup, Ground::Plain, &theme);
                        }
                    }
                });
                parser.process(&out);
                for y in 0..height {
                    for x in 0..width {
                        let cell = &screen.line(usize::from(y)).unwrap().cells[usize::from(x)];
                        let wanted = match cell.picture() {
                            Some((id, row, column)) => letter(id, row, column).to_string(),
                            None => cell.symbol().to_owned(),
                        };
                        let shown = parser.screen().cell(y, x).unwrap().contents();
                        let shown = if shown.is_empty() { " " } else { shown };
                        prop_assert_eq!(&wanted, shown, "cell {},{} of\n{}", x, y, parser.screen().contents());
                    }
                }
            }
        }
    }

    #[test]
    fn a_printed_line_has_a_line_below_it_before_its_strip_is_painted() {
        let theme = Theme::built_in("sheaf-dark").unwrap();
        let mut parser = emulator(3, 20, 10);
        for row in 0..6 {
            let mut line = Line::blank(20);
            let mut cells = Clean::default();
            for column in 0..5 {
                cells.push(&Clean::picture_cell(row, column, 1));
            }
            let spans = [
                Span::new(Clean::literal("▌ "), Role::User),
                Span::new(cells, Role::Picture(0, 0, 1)),
            ];
            line.put(1, 20, &spans, Ground::Plain, &theme);
            let mut text = String::new();
            print_pictures(&line, &Letters(b""), &mut text);
            parser.process(text.as_bytes());
        }
        let id = 1 << 24 | 1;
        let row = |row: usize| {
            let letters: String = (0..5).map(|column| letter(id, row, column)).collect();
            format!(" ▌ {letters}")
        };
        parser.screen_mut().set_scrollback(10);
        let shown: Vec<String> = parser.screen().rows(0, 20).collect();
        assert_eq!(shown, [row(0), row(1), row(2)]);
        parser.screen_mut().set_scrollback(0);
        let shown: Vec<String> = parser.screen().rows(0, 20).collect();
        assert_eq!(shown, [row(4), row(5), String::new()]);
    }

    #[test]
    fn a_link_is_closed_on_its_own_row() {
        let theme = Theme::built_in("sheaf-dark").unwrap();
        let mut screen = Screen::new(30, 1);
        let mut out = Vec::new();
        let frame = Frame {
            keys: &[7],
            region: 0..0,
            caret: None,
            strips: None,
        };
        screen.show(&frame, &mut out, &mut |_, line| {
            let target: std::sync::Arc<str> = "https://example.org/".into();
            let spans = [
                Span::new(Clean::literal("see "), Role::Text),
                Span::new(Clean::literal("docs"), Role::Text).linked(Some(target)),
                Span::new(Clean::literal(" now"), Role::Text),
            ];
            line.put(0, 30, &spans, Ground::Plain, &theme);
        });
        let out = String::from_utf8_lossy(&out);
        assert!(
            out.contains("\x1b]8;;https://example.org/\x1b\\docs\x1b]8;;\x1b\\"),
            "{out:?}"
        );
    }
}
