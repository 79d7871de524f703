//! The screen as the terminal shows it, and the fewest bytes that make it show something else.
//!
//! This is the one part that replaces ratatui's `Terminal`. Widgets draw into a `Buffer` as everywhere, and
//! [`AnsiBackend`] is a `Backend`; but `Terminal::draw` renders and compares every cell for each token of an answer. Here
//! the shown buffer is kept, and each line has a key that stands for all that it shows: a line with the key it had is
//! neither rendered nor compared. Where lines moved, the terminal is told to scroll, and only new ones are painted. A
//! frame is one write. Measured for 20,000 tokens at 120×40, with a frame for each token (its text is 5.3 bytes):
//!
//! | design | µs a token | bytes a token |
//! | --- | --: | --: |
//! | `Terminal::draw`, with `Layout` in each frame | 382–705 | 276.9 |
//! | this one | 2.8–4.4 | 8.4 |
//!
//! One solve of `Layout` for four panes takes 95–137 µs, so it is no part of a frame either.
//!
//! A [`Frame`] is told its panes from the top to the bottom; lines that no pane takes are blank.

use std::{
    hash::{Hash, Hasher},
    ops::Range,
    sync::Arc,
};

use ratatui::{
    backend::{Backend, ClearType},
    buffer::{Buffer, Cell},
    layout::{Position, Rect, Size},
};
use rustc_hash::FxHasher;

use super::{
    ansi_backend::{AnsiBackend, Pen, columns, is_blank, is_picture, tidy},
    strips::{Strips, runs},
};

/// Lines that stay equal to be worth a scroll.
const WORTH_SCROLLING: usize = 3;

/// A gap of unchanged cells this short is written again rather than jumped over.
const SHORT_GAP: u16 = 4;

/// Key of a blank line. Keys that are given to a frame are greater; 0 equals no key, not even itself.
pub const BLANK: u64 = 1;

/// Columns of a line that are a link, and its target.
#[derive(Clone, Debug, PartialEq, Hash)]
pub struct Link {
    pub y: u16,
    pub columns: Range<u16>,
    pub target: Arc<str>,
}

/// Links of the cells of a buffer, which has no place for them.
pub type Links = Vec<Link>;

/// Returns a key made of a key and something else that the line shows.
pub fn mix(key: u64, other: u64) -> u64 {
    let mut hasher = FxHasher::default();
    hasher.write_u64(key);
    hasher.write_u64(other);
    hasher.finish().max(BLANK + 1)
}

/// Returns the key of a line of a buffer.
fn key_of(buffer: &Buffer, links: &Links, y: u16) -> u64 {
    let start = buffer.index_of(buffer.area.x, y);
    let cells = buffer.content.get(start..start + usize::from(buffer.area.width));
    let cells = cells.unwrap_or_default();
    if cells.iter().all(is_blank) {
        return BLANK;
    }
    let mut hasher = FxHasher::default();
    cells.hash(&mut hasher);
    links.iter().filter(|it| it.y == y).for_each(|it| it.hash(&mut hasher));
    hasher.finish().max(BLANK + 1)
}

/// Returns the text of a row of cells, with the blanks at its end.
pub fn text_of(buffer: &Buffer, row: Rect) -> String {
    let (mut text, mut x) = (String::new(), row.left());
    while x < row.right() {
        let symbol = buffer[(x, row.y)].symbol();
        text.push_str(symbol);
        x += columns(symbol).max(1);
    }
    text
}

/// The double of the terminal's screen.
#[derive(Default)]
pub struct Surface {
    shown: Buffer,
    /// Links of each shown line.
    links: Vec<Links>,
    /// Keys of the shown lines.
    keys: Vec<u64>,
    /// Lines that are rendered before they are compared.
    scratch: Buffer,
    scratch_links: Links,
    overlay: Option<Overlay>,
    backend: AnsiBackend,
    caret: Option<(u16, u16)>,
    /// The terminal is cleared before the next frame is painted.
    is_cleared: bool,
    /// OSC 8 links are written.
    pub has_links: bool,
    /// Synchronized updates are written.
    pub synchronized: bool,
}

/// Lines that lie over those below them.
struct Overlay {
    keys: Vec<u64>,
    buffer: Buffer,
    links: Links,
}

impl Overlay {
    /// Returns the key of the overlay's part of a line; `None`: it has none.
    fn key(&self, y: u16) -> Option<u64> {
        let at = y.checked_sub(self.buffer.area.y)?;
        self.keys.get(usize::from(at)).copied()
    }
}

/// Cells and links of one line.
#[derive(Clone, Copy)]
struct Row<'a> {
    cells: &'a [Cell],
    links: &'a [Link],
}

impl<'a> Row<'a> {
    fn link_at(self, x: u16) -> Option<&'a Link> {
        self.links.iter().find(|it| it.columns.contains(&x))
    }
}

impl Surface {
    /// A blank surface of at least one cell. The first frame clears the terminal.
    pub fn new(width: u16, height: u16) -> Self {
        let mut surface = Self {
            has_links: true,
            synchronized: true,
            ..Self::default()
        };
        surface.resize(width, height);
        surface
    }

    pub fn area(&self) -> Rect {
        self.shown.area
    }

    /// The cells that the terminal shows. The second half of a wide character is a cell with an empty symbol.
    pub fn shown(&self) -> &Buffer {
        &self.shown
    }

    /// Takes a new size; the next frame paints everything.
    pub fn resize(&mut self, width: u16, height: u16) {
        self.place(width, height, 0);
        self.is_cleared = true;
    }

    /// Takes `height` lines of the terminal from `top` on, all of them blank.
    pub fn place(&mut self, width: u16, height: u16, top: u16) {
        let size = Size::new(width.max(1), height.max(1));
        self.shown = Buffer::empty(Rect::from((Position::ORIGIN, size)));
        self.links = vec![Links::new(); usize::from(size.height)];
        self.keys = vec![0; usize::from(size.height)];
        self.overlay = None;
        self.backend.place(size, top);
        self.forget();
        self.is_cleared = false;
    }

    /// Adds blank lines at the end; the shown ones have gone up with the terminal's other lines.
    pub fn grow(&mut self, width: u16, height: u16, top: u16) {
        if self.shown.area.width != width {
            self.place(width, height, top);
            return;
        }
        self.shown.resize(Rect::new(0, 0, width, height));
        self.links.resize(usize::from(height), Links::new());
        self.keys.resize(usize::from(height), 0);
        self.backend.place(Size::new(width, height), top);
    }

    /// Returns the lines of the terminal from the first one to the caret after it became `width` columns wide. A terminal
    /// that `reflows` breaks lines that are too long.
    pub fn rows_above_caret(&self, width: usize, reflows: bool) -> usize {
        let (x, y) = self.caret.unwrap_or_default();
        if !reflows {
            return usize::from(y);
        }
        let used = |cells: &[Cell]| cells.iter().rposition(|it| !is_blank(it)).map_or(0, |it| it + 1);
        let above = self.shown.content.chunks(usize::from(self.shown.area.width));
        let rows = above
            .take(usize::from(y))
            .map(|it| used(it).div_ceil(width.max(1)).max(1));
        rows.sum::<usize>() + usize::from(x) / width.max(1)
    }

    /// Clears the terminal with the next frame, which paints everything: nobody knows what is shown.
    pub fn forget(&mut self) {
        self.is_cleared = true;
        self.backend.forget();
    }

    /// Begins a frame. `look` is the version of the theme; `strips` paints pictures where the terminal does not take their cells as text.
    pub fn frame<'a>(&'a mut self, look: u64, strips: Option<&'a dyn Strips>) -> Frame<'a> {
        self.backend.begin(strips.is_some());
        if std::mem::take(&mut self.is_cleared) {
            let Ok(()) = self.backend.clear();
            self.shown.reset();
            self.links.iter_mut().for_each(Vec::clear);
            self.keys.fill(0);
        }
        Frame {
            surface: self,
            look,
            strips,
            next: 0,
            has_overlay: false,
        }
    }

    /// Returns the shown lines as text, without blanks at their ends.
    pub fn text(&self) -> String {
        let rows = self.shown.area.rows();
        rows.map(|it| text_of(&self.shown, it).trim_end().to_owned() + "\n")
            .collect()
    }

    /// Index of the first cell of a line, and of the one after its last.
    fn range(&self, y: u16) -> Range<usize> {
        let width = usize::from(self.shown.area.width);
        usize::from(y) * width..(usize::from(y) + 1) * width
    }

    /// Moves shown lines of the region to where they are wanted.
    fn scroll(&mut self, region: Range<u16>, wanted: &[u64]) {
        let lines = usize::from(region.start)..usize::from(region.end);
        let Some(old) = self.keys.get(lines.clone()) else {
            return;
        };
        // Where hardly a line has changed nothing has moved: most frames of an answer end here.
        let changed = old.iter().zip(wanted).filter(|(old, new)| old != new).count();
        if changed < WORTH_SCROLLING {
            return;
        }
        let height = lines.len();
        let equal = |shift: isize| {
            let is_equal = |y: &usize| {
                let from = y.checked_add_signed(shift).filter(|it| *it < height);
                let new = wanted.get(*y).filter(|it| **it > BLANK);
                new.is_some() && from.and_then(|it| old.get(it)) == new
            };
            (0..height).filter(is_equal).count()
        };
        let best = (1..height as isize)
            .flat_map(|it| [it, -it])
            .map(|it| (equal(it), it))
            .max_by_key(|&(n, it)| (n, -it.abs()));
        let Some((kept, shift)) = best else { return };
        if kept < equal(0) + WORTH_SCROLLING {
            return;
        }
        let count = shift.unsigned_abs();
        self.backend.scroll(region.clone(), shift);
        let cells = self.range(region.start).start..self.range(region.end).start;
        let width = usize::from(self.shown.area.width);
        let (Some(cells), Some(links), Some(keys)) = (
            self.shown.content.get_mut(cells),
            self.links.get_mut(lines.clone()),
            self.keys.get_mut(lines),
        ) else {
            return;
        };
        let fresh = if shift > 0 {
            cells.rotate_left(count * width);
            links.rotate_left(count);
            keys.rotate_left(count);
            height - count..height
        } else {
            cells.rotate_right(count * width);
            links.rotate_right(count);
            keys.rotate_right(count);
            0..count
        };
        let cells = cells.get_mut(fresh.start * width..fresh.end * width);
        cells.into_iter().flatten().for_each(Cell::reset);
        for y in fresh {
            if let (Some(links), Some(key)) = (links.get_mut(y), keys.get_mut(y)) {
                links.clear();
                *key = 0;
            }
        }
    }

    /// Renders into the scratch buffer, over all columns of the lines of `area`.
    fn compose(&mut self, area: Rect, render: impl FnOnce(&mut Buffer, &mut Links)) {
        let lines = Rect {
            x: 0,
            width: self.shown.area.width,
            ..area
        };
        self.scratch.reset();
        self.scratch.resize(lines);
        self.scratch_links.clear();
        render(&mut self.scratch, &mut self.scratch_links);
    }

    /// Shows a line of the scratch buffer.
    fn show(&mut self, y: u16, key: u64, has_overlay: bool, strips: Option<&dyn Strips>) {
        let width = usize::from(self.shown.area.width);
        let from = usize::from(y - self.scratch.area.y) * width;
        let (Some(next), Some(links), Some(old_key)) = (
            self.scratch.content.get_mut(from..from + width),
            self.links.get_mut(usize::from(y)),
            self.keys.get_mut(usize::from(y)),
        ) else {
            return;
        };
        *old_key = key;
        let mut next_links: Links = self.scratch_links.extract_if(.., |it| it.y == y).collect();
        if let Some(overlay) = self.overlay.as_ref().filter(|it| has_overlay && it.key(y).is_some()) {
            overlay.cover(y, next, &mut next_links);
        }
        tidy(next);
        let shown_range = usize::from(y) * width..(usize::from(y) + 1) * width;
        let Some(shown) = self.shown.content.get_mut(shown_range) else {
            return;
        };
        let mut painter = Painter {
            backend: &mut self.backend,
            y,
            next: Row {
                cells: next,
                links: &next_links,
            },
            shown: Row { cells: shown, links },
            has_links: self.has_links,
        };
        painter.paint(strips);
        shown.swap_with_slice(next);
        *links = next_links;
    }
}

impl Overlay {
    /// Puts the overlay's part of a line over its cells.
    fn cover(&self, y: u16, cells: &mut [Cell], links: &mut Links) {
        let Rect { x, width, .. } = self.buffer.area;
        let columns_of = x..x + width;
        links.retain(|it| it.columns.end <= columns_of.start || it.columns.start >= columns_of.end);
        links.extend(self.links.iter().filter(|it| it.y == y).cloned());
        let row = usize::from(y - self.buffer.area.y) * usize::from(width);
        // Half of a wide character is no character.
        if let Some(before) = x.checked_sub(1).and_then(|it| cells.get_mut(usize::from(it)))
            && columns(before.symbol()) > 1
        {
            before.set_symbol(" ");
        }
        let over = self.buffer.content.iter().skip(row).take(usize::from(width));
        for (cell, over) in cells.iter_mut().skip(usize::from(x)).zip(over) {
            cell.clone_from(over);
        }
    }
}

/// A frame that is being painted.
pub struct Frame<'a> {
    surface: &'a mut Surface,
    look: u64,
    strips: Option<&'a dyn Strips>,
    /// The first line that is not painted yet.
    next: u16,
    has_overlay: bool,
}

impl Frame<'_> {
    /// Lays a buffer over the lines of its area, which are painted later.
    pub fn overlay(&mut self, buffer: Buffer, links: Links) {
        let keys = buffer.area.rows().map(|it| key_of(&buffer, &links, it.y)).collect();
        self.surface.overlay = Some(Overlay { keys, buffer, links });
        self.has_overlay = true;
    }

    /// Paints the lines of a buffer over all columns, which move when the reader scrolls.
    pub fn lines(&mut self, buffer: &Buffer, links: &Links) {
        let keys: Vec<u64> = buffer.area.rows().map(|it| key_of(buffer, links, it.y)).collect();
        self.rows(buffer.area, &keys, |_, row, out, out_links| {
            for x in row.columns().map(|it| it.x) {
                out[(x, row.y)].clone_from(&buffer[(x, row.y)]);
            }
            out_links.extend(links.iter().filter(|it| it.y == row.y).cloned());
        });
    }

    /// Paints a pane, which is rendered where `version` differs from that of the last frame: a hash of all that it shows.
    pub fn pane(&mut self, area: Rect, version: u64, render: impl FnOnce(&mut Buffer, &mut Links)) {
        let area = self.begin(area);
        let key = |it: &Self, y: u16| {
            let place = u64::from(area.y) << 32 | u64::from(area.height) << 16 | u64::from(y - area.y);
            it.key(y, mix(version, place))
        };
        if area.rows().all(|it| self.is_shown(it.y, key(self, it.y))) {
            return;
        }
        self.surface.compose(area, render);
        for y in area.top()..area.bottom() {
            let key = key(self, y);
            self.surface.show(y, key, self.has_overlay, self.strips);
        }
    }

    /// Paints lines that move when the reader scrolls, each of which is rendered where its key differs from that of the
    /// last frame. `render` gets a line's number, counted from the area's first, and its area. Lines without a key are
    /// blank.
    pub fn rows(&mut self, area: Rect, keys: &[u64], mut render: impl FnMut(usize, Rect, &mut Buffer, &mut Links)) {
        let area = self.begin(area);
        let given = keys.iter().copied().chain(std::iter::repeat(BLANK));
        let keys: Vec<u64> = (area.top()..area.bottom())
            .zip(given)
            .map(|(y, key)| self.key(y, key))
            .collect();
        // What does not go away when it is written over does not move with the text, either.
        if self.strips.is_none_or(|it| it.eraser().is_empty()) {
            self.surface.scroll(area.top()..area.bottom(), &keys);
        }
        for (at, (row, key)) in area.rows().zip(keys).enumerate() {
            if !self.is_shown(row.y, key) {
                self.surface
                    .compose(row, |buffer, links| render(at, row, buffer, links));
                self.surface.show(row.y, key, self.has_overlay, self.strips);
            }
        }
    }

    /// Blanks the lines that are left, places the caret (`None` hides it), and adds the bytes of the frame to `out`.
    pub fn finish(mut self, caret: Option<(u16, u16)>, out: &mut Vec<u8>) {
        let area = self.surface.shown.area;
        self.begin(Rect::new(0, area.bottom(), 0, 0));
        if !self.has_overlay {
            self.surface.overlay = None;
        }
        let backend = &mut self.surface.backend;
        let Ok(()) = match caret {
            Some((x, y)) => {
                let Ok(()) = backend.set_cursor_position((x.min(area.width - 1), y));
                backend.show_cursor()
            }
            None => backend.hide_cursor(),
        };
        self.surface.caret = caret;
        self.surface.backend.finish(self.surface.synchronized, out);
    }

    /// Blanks the lines between the last pane and this one; returns as much of it as there is room for.
    fn begin(&mut self, area: Rect) -> Rect {
        let screen = self.surface.shown.area;
        debug_assert!(area.y >= self.next, "panes come from the top to the bottom");
        for y in self.next..area.y.min(screen.bottom()) {
            let key = self.key(y, BLANK);
            if !self.is_shown(y, key) {
                self.surface.compose(Rect::new(0, y, 0, 1), |_, _| {});
                self.surface.show(y, key, self.has_overlay, self.strips);
            }
        }
        let area = area.intersection(screen);
        self.next = self.next.max(area.bottom());
        area
    }

    fn is_shown(&self, y: u16, key: u64) -> bool {
        key != 0 && self.surface.keys.get(usize::from(y)) == Some(&key)
    }

    /// Returns the key of a line with what lies over it. Of what is covered over all columns nothing is seen.
    fn key(&self, y: u16, key: u64) -> u64 {
        let key = if key == BLANK { BLANK } else { mix(key, self.look) };
        let overlay = self.surface.overlay.as_ref().filter(|_| self.has_overlay);
        match overlay.and_then(|it| Some((it, it.key(y)?))) {
            Some((overlay, over)) if overlay.buffer.area.width == self.surface.shown.area.width => over,
            Some((_, over)) => mix(key, over),
            None => key,
        }
    }
}

/// Paints what differs between two states of a line.
struct Painter<'a> {
    backend: &'a mut AnsiBackend,
    y: u16,
    next: Row<'a>,
    shown: Row<'a>,
    has_links: bool,
}

impl Painter<'_> {
    fn paint(&mut self, strips: Option<&dyn Strips>) {
        let strips = strips.filter(|_| self.are_other_pictures());
        let y = self.y;
        if let Some(eraser) = strips.map(Strips::eraser).filter(|it| !it.is_empty()) {
            for run in runs(self.shown.cells) {
                self.backend.go(Position { x: run.x, y });
                self.backend.bytes().extend_from_slice(eraser);
            }
        }
        self.paint_difference();
        if let Some(strips) = strips {
            for run in runs(self.next.cells) {
                self.backend.go(Position { x: run.x, y });
                strips.strip(run.id, run.row, run.columns, self.backend.bytes());
                self.backend.lose_cursor();
            }
        }
    }

    /// Returns true if cells of pictures come, go or change.
    fn are_other_pictures(&self) -> bool {
        let mut pairs = self.next.cells.iter().zip(self.shown.cells);
        pairs.any(|(new, old)| (is_picture(new) || is_picture(old)) && new != old)
    }

    fn paint_difference(&mut self) {
        let used = self.next.cells.iter().rposition(|it| !is_blank(it));
        let used = used.map_or(0, |it| it as u16 + 1);
        let mut x = 0;
        while x < used {
            let is_half = self.cell(x).is_some_and(|it| it.symbol().is_empty());
            if is_half || !self.differs(x) {
                x += 1;
                continue;
            }
            // A short way inside a line is cheaper to write than to jump.
            if let Some(at) = self.backend.at()
                && at.y == self.y
                && at.x < x
                && x - at.x <= SHORT_GAP
                && self.is_plain_gap(at.x..x)
            {
                self.draw(at.x..x);
            }
            x = self.paint_run(x, used);
        }
        // Nothing more to show: one sequence clears the rest, if there is a rest.
        let rest = self.shown.cells.iter().skip(usize::from(x));
        if rest.into_iter().any(|it| !is_blank(it)) {
            self.backend.go(Position { x, y: self.y });
            let Ok(()) = self.backend.clear_region(ClearType::UntilNewLine);
        }
    }

    /// Draws cells from `x` on while they differ; returns where it stopped.
    fn paint_run(&mut self, mut x: u16, used: u16) -> u16 {
        while x < used && self.differs(x) {
            let Some(cell) = self.cell(x) else { break };
            let after = x + columns(cell.symbol()).max(1);
            match self.next.link_at(x).filter(|_| self.has_links) {
                // A link is an island: whatever follows is addressed anew.
                Some(link) => {
                    let end = link.columns.end;
                    self.backend.go(Position { x, y: self.y });
                    self.backend.link(Some(&link.target));
                    self.draw(x..end.min(self.next.cells.len() as u16));
                    self.backend.link(None);
                    x = end;
                }
                None => {
                    self.draw(x..x + 1);
                    x = after;
                }
            }
        }
        x
    }

    fn draw(&mut self, columns: Range<u16>) {
        let (y, next) = (self.y, self.next.cells);
        let cells = columns.filter_map(|x| Some((x, y, next.get(usize::from(x))?)));
        let Ok(()) = self.backend.draw(cells);
    }

    fn cell(&self, x: u16) -> Option<&Cell> {
        self.next.cells.get(usize::from(x))
    }

    fn differs(&self, x: u16) -> bool {
        let is_relinked = || self.next.link_at(x).map(|it| &it.target) != self.shown.link_at(x).map(|it| &it.target);
        self.cell(x) != self.shown.cells.get(usize::from(x)) || is_relinked()
    }

    fn is_plain_gap(&self, columns: Range<u16>) -> bool {
        let pen = self.backend.pen();
        let is_plain = |cell: &Cell| cell.symbol().len() == 1 && (cell.symbol() == " " || Some(Pen::of(cell)) == pen);
        let cells = self
            .next
            .cells
            .get(usize::from(columns.start)..usize::from(columns.end));
        let mut columns = columns;
        cells.is_some_and(|it| it.iter().all(is_plain)) && columns.all(|x| self.next.link_at(x).is_none())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    #[expect(clippy::disallowed_types, reason = "the colours that a terminal shows are compared")]
    use ratatui::style::{Color, Modifier};

    use super::{super::ansi_backend::picture, *};
    use crate::{
        text::{Background, Role, Sanitized, Span},
        theme::Theme,
        tui::{terminal::strips::print_pictures, widgets::styled_line::put_spans},
    };

    /// A frame as data: what each line says, and where the region begins and ends.
    #[derive(Clone, Debug)]
    struct Screenful {
        lines: Vec<Vec<(String, Role, Background)>>,
        region: Range<usize>,
        caret: Option<(u16, u16)>,
    }

    fn keys(picture: &Screenful) -> Vec<u64> {
        use std::hash::{DefaultHasher, Hash, Hasher};
        let key = |line: &Vec<(String, Role, Background)>| {
            let mut hasher = DefaultHasher::new();
            line.hash(&mut hasher);
            hasher.finish().max(2)
        };
        picture.lines.iter().map(key).collect()
    }

    /// A frame of lines with these keys, of which those of the region move.
    fn frame(
        screen: &mut Surface,
        keys: &[u64],
        region: Range<usize>,
        caret: Option<(u16, u16)>,
        strips: Option<&dyn Strips>,
        mut render: impl FnMut(usize, Rect, &mut Buffer, &mut Links),
    ) -> Vec<u8> {
        let mut out = Vec::new();
        let area = screen.area();
        let mut frame = screen.frame(1, strips);
        let lines: Vec<Rect> = area.rows().collect();
        let around = |y: usize, frame: &mut Frame<'_>, render: &mut dyn FnMut(usize, Rect, &mut Buffer, &mut Links)| {
            frame.rows(lines[y], &keys[y..=y], |_, row, buf, links| render(y, row, buf, links));
        };
        (0..region.start).for_each(|y| around(y, &mut frame, &mut render));
        if !region.is_empty() {
            let area = lines[region.start].union(lines[region.end - 1]);
            frame.rows(area, &keys[region.clone()], |at, row, buf, links| {
                render(region.start + at, row, buf, links);
            });
        }
        (region.end.max(region.start)..lines.len()).for_each(|y| around(y, &mut frame, &mut render));
        frame.finish(caret, &mut out);
        out
    }

    fn put(area: Rect, x: u16, spans: &[Span], theme: &Theme, buf: &mut Buffer, links: &mut Links) {
        let area = Rect {
            x,
            width: area.width - x,
            ..area
        };
        put_spans(buf, area, spans, Background::Plain, theme, links);
    }

    fn show(screen: &mut Surface, picture: &Screenful, theme: &Theme) -> Vec<u8> {
        let keys = keys(picture);
        frame(
            screen,
            &keys,
            picture.region.clone(),
            picture.caret,
            None,
            |y, area, buf, links| {
                let spans: Vec<_> = picture.lines[y]
                    .iter()
                    .map(|(text, role, ground)| Span::new(Sanitized::new(text), *role).on(*ground))
                    .collect();
                put(area, 0, &spans, theme, buf, links);
            },
        )
    }

    fn assert_same(parser: &vt100::Parser, screen: &Surface, picture: &Screenful) {
        for y in 0..screen.area().height {
            for x in 0..screen.area().width {
                let ours = &screen.shown()[(x, y)];
                let theirs = parser.screen().cell(y, x).unwrap();
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
                let ground = match ours.bg {
                    Color::Rgb(r, g, b) => vt100::Color::Rgb(r, g, b),
                    _ => vt100::Color::Default,
                };
                // The emulator keeps no colours for the second half of a wide character.
                if !theirs.is_wide_continuation() {
                    assert_eq!(ground, theirs.bgcolor(), "ground of {x},{y}");
                }
                if ours.symbol() != " " && !ours.symbol().is_empty() {
                    let colour = match ours.fg {
                        Color::Rgb(r, g, b) => vt100::Color::Rgb(r, g, b),
                        _ => vt100::Color::Default,
                    };
                    assert_eq!(colour, theirs.fgcolor(), "colour of {x},{y}");
                    assert_eq!(
                        ours.modifier.contains(Modifier::BOLD),
                        theirs.bold(),
                        "weight of {x},{y}"
                    );
                }
            }
        }
        if let Some((x, y)) = picture.caret {
            let x = x.min(screen.area().width - 1);
            assert_eq!(parser.screen().cursor_position(), (y, x));
        }
        assert_eq!(parser.screen().hide_cursor(), picture.caret.is_none());
    }

    fn span() -> impl Strategy<Value = (String, Role, Background)> {
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
        let ground =
            prop_oneof![4 => Just(Background::Plain), 1 => Just(Background::Added), 1 => Just(Background::Selection)];
        (text, role, ground)
    }

    const HEIGHT: usize = 9;

    fn screenful() -> impl Strategy<Value = Screenful> {
        let lines = proptest::collection::vec(proptest::collection::vec(span(), 0..4), HEIGHT);
        (
            lines,
            0usize..4,
            5usize..=HEIGHT,
            proptest::option::of((0u16..24, 0u16..HEIGHT as u16)),
        )
            .prop_map(|(lines, start, end, caret)| Screenful {
                lines,
                region: start..end,
                caret,
            })
    }

    /// Frames as programs make them: whole new ones, one line changed, lines moved.
    fn frames() -> impl Strategy<Value = Vec<Screenful>> {
        let step = (screenful(), 0usize..4, 1usize..4);
        (screenful(), proptest::collection::vec(step, 1..8)).prop_map(|(first, steps)| {
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
            let mut screen = Surface::new(width, HEIGHT as u16);
            let mut parser = vt100::Parser::new(
                std::num::NonZeroU16::new(HEIGHT as u16).unwrap(), std::num::NonZeroU16::new(width).unwrap(), 0);
            for picture in &frames {
                let out = show(&mut screen, picture, &theme);
                parser.process(&out);
                assert_same(&parser, &screen, picture);
            }
        }
    }

    fn lines(texts: &[&str]) -> Screenful {
        Screenful {
            lines: texts
                .iter()
                .map(|it| vec![((*it).to_owned(), Role::Text, Background::Plain)])
                .collect(),
            region: 1..texts.len() - 1,
            caret: Some((2, texts.len() as u16 - 1)),
        }
    }

    #[test]
    fn a_frame_that_changes_nothing_writes_nothing() {
        let theme = Theme::built_in("sheaf-dark").unwrap();
        let mut screen = Surface::new(20, 4);
        let picture = lines(&["head", "one", "two", "› "]);
        assert!(!show(&mut screen, &picture, &theme).is_empty());
        assert_eq!(show(&mut screen, &picture, &theme), b"");
    }

    #[test]
    fn a_word_at_the_end_of_a_line_costs_little_more_than_itself() {
        let theme = Theme::built_in("sheaf-dark").unwrap();
        let mut screen = Surface::new(40, 4);
        show(&mut screen, &lines(&["head", "one", "two", "› "]), &theme);
        show(&mut screen, &lines(&["head", "one", "two and", "› "]), &theme);
        let out = show(&mut screen, &lines(&["head", "one", "two and three", "› "]), &theme);
        // To the place, the word, back to the caret.
        assert_eq!(String::from_utf8_lossy(&out), "\x1b[3;9Hthree\x1b[4;3H");
    }

    #[test]
    fn lines_that_move_are_moved_by_the_terminal() {
        let theme = Theme::built_in("sheaf-dark").unwrap();
        let mut screen = Surface::new(40, 8);
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

    #[test]
    fn what_lies_over_half_of_a_wide_character_is_shown_whole() {
        let theme = Theme::built_in("sheaf-dark").unwrap();
        for x in 3..7 {
            let mut screen = Surface::new(16, 3);
            let mut parser = emulator(3, 16, 0);
            show(&mut screen, &lines(&["", "語漢語漢語漢語漢", ""]), &theme);
            let mut buffer = Buffer::empty(Rect::new(x, 1, 5, 1));
            let mut links = Links::new();
            put_spans(
                &mut buffer,
                Rect::new(x, 1, 5, 1),
                &[Span::new(Sanitized::literal("╭─語╮"), Role::Text)],
                Background::Plain,
                &theme,
                &mut links,
            );
            let mut out = Vec::new();
            screen.forget();
            let mut frame = screen.frame(1, None);
            frame.overlay(buffer, links);
            let picture = lines(&["", "語漢語漢語漢語漢", ""]);
            let area = Rect::new(0, 1, 16, 1);
            frame.rows(area, &[9], |_, area, buf, links| {
                put(
                    area,
                    0,
                    &[Span::new(Sanitized::new(&picture.lines[1][0].0), Role::Text)],
                    &theme,
                    buf,
                    links,
                );
            });
            frame.finish(None, &mut out);
            parser.process(&out);
            let before = (usize::from(x) / 2, usize::from(x) % 2);
            let after = 16 - usize::from(x) - 5;
            let text: String = ["語", "漢"].into_iter().cycle().take(before.0).collect();
            let shown = parser.screen().rows(0, 16).nth(1).unwrap();
            let expected = format!("{text}{}╭─語╮{}", " ".repeat(before.1), " ".repeat(after % 2));
            assert!(shown.starts_with(&expected), "{x}: {shown:?} {expected:?}");
            assert_eq!(screen.text().lines().nth(1), Some(shown.trim_end()));
        }
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
            let mut screen = Surface::new(width, height);
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
                let out = frame(&mut screen, &keys, 0..11, Some((0, 11)), Some(&letters), |y, area, buf, links| match &parts[y] {
                    Part::Blank => {}
                    Part::Words(n) => {
                        let words = Sanitized::new(&"some words ".repeat(usize::from(*n)));
                        put(area, 0, &[Span::new(words, Role::Text)], &theme, buf, links);
                    }
                    Part::Picture { id, row, covered } => {
                        let mut cells = Sanitized::default();
                        for column in 0..10 {
                            cells.push(&Sanitized::picture_cell(usize::from(*row), column, 1));
                        }
                        let role = Role::Picture(0, 0, *id);
                        put(area, 4, &[Span::new(cells, role)], &theme, buf, links);
                        if let Some(at) = covered {
                            let popup = [Span::new(Sanitized::literal("=#="), Role::Accent)];
                            put(area, 4 + u16::from(*at), &popup, &theme, buf, links);
                        }
                    }
                });
                parser.process(&out);
                for y in 0..height {
                    for x in 0..width {
                        let cell = &screen.shown()[(x, y)];
                        let wanted = match picture(cell) {
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
            let mut line = Buffer::empty(Rect::new(0, 0, 20, 1));
            let mut cells = Sanitized::default();
            for column in 0..5 {
                cells.push(&Sanitized::picture_cell(row, column, 1));
            }
            let spans = [
                Span::new(Sanitized::literal("▌ "), Role::User),
                Span::new(cells, Role::Picture(0, 0, 1)),
            ];
            put(line.area, 1, &spans, &theme, &mut line, &mut Links::new());
            let mut text = String::new();
            print_pictures(&mut line.content, &Letters(b""), &mut text);
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
        let mut screen = Surface::new(30, 1);
        let out = frame(&mut screen, &[7], 0..0, None, None, |_, area, buf, links| {
            let target: std::sync::Arc<str> = "https://example.org/".into();
            let spans = [
                Span::new(Sanitized::literal("see "), Role::Text),
                Span::new(Sanitized::literal("docs"), Role::Text).linked(Some(target)),
                Span::new(Sanitized::literal(" now"), Role::Text),
            ];
            put(area, 0, &spans, &theme, buf, links);
        });
        let out = String::from_utf8_lossy(&out);
        assert!(
            out.contains("\x1b]8;;https://example.org/\x1b\\docs\x1b]8;;\x1b\\"),
            "{out:?}"
        );
    }
}
