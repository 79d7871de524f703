//! Rows of spans as ratatui widgets: roles become the theme's styles, texts become cells.

use ratatui::{
    buffer::{Buffer, Cell},
    layout::Rect,
    style::Style,
    widgets::{StatefulWidget, Widget},
};
use unicode_width::UnicodeWidthStr;

use crate::{
    text::{
        Background, Modifier, Role, Span, StyledLine,
        width::{Graphemes, TAB, spans_width},
    },
    theme::Theme,
    tui::terminal::surface::{Link, Links},
};

/// Facts are left out where there are fewer columns of content.
const WIDTH_FOR_FACTS: u16 = 36;

/// A line on one row: its content from the left, its facts at the right edge where they fit.
///
/// The state collects the links, which a buffer has no place for.
pub struct StyledLineWidget<'a> {
    pub line: &'a StyledLine,
    /// Background that is there already; `Plain` leaves the line on its own.
    pub under: Background,
    pub theme: &'a Theme,
}

impl StatefulWidget for StyledLineWidget<'_> {
    type State = Links;

    fn render(self, area: Rect, buf: &mut Buffer, links: &mut Links) {
        let Self { line, under, theme } = self;
        fill(buf, area, line.background, theme);
        let under = match under {
            Background::Plain => line.background,
            other => other,
        };
        let end = put_spans(buf, area, &line.spans, under, theme, links);
        let at = area.right().saturating_sub(spans_width(&line.facts) as u16);
        if area.width >= WIDTH_FOR_FACTS && at > end {
            let rest = Rect {
                x: at,
                width: area.right() - at,
                ..area
            };
            put_spans(buf, rest, &line.facts, under, theme, links);
        }
    }
}

impl Widget for StyledLineWidget<'_> {
    fn render(self, area: Rect, buf: &mut Buffer) {
        StatefulWidget::render(self, area, buf, &mut Links::new());
    }
}

/// Lines below each other, from the first row of the area on.
pub struct LinesWidget<'a> {
    pub lines: &'a [StyledLine],
    pub theme: &'a Theme,
}

impl StatefulWidget for LinesWidget<'_> {
    type State = Links;

    fn render(self, area: Rect, buf: &mut Buffer, links: &mut Links) {
        for (line, row) in self.lines.iter().zip(area.rows()) {
            let widget = StyledLineWidget {
                line,
                under: Background::Plain,
                theme: self.theme,
            };
            StatefulWidget::render(widget, row, buf, links);
        }
    }
}

/// The cells of the first row of `area`, from its left edge on.
fn cells(buf: &mut Buffer, area: Rect) -> &mut [Cell] {
    let area = area.intersection(buf.area);
    if area.is_empty() {
        return &mut [];
    }
    let start = buf.index_of(area.x, area.y);
    let range = start..start + usize::from(area.width);
    buf.content.get_mut(range).unwrap_or_default()
}

/// Gives the first row of `area` a background, under what is written later.
pub fn fill(buf: &mut Buffer, area: Rect, background: Background, theme: &Theme) {
    if background != Background::Plain {
        let style = theme.style(Role::Text, Modifier::NONE, background);
        for cell in cells(buf, area) {
            restyle(cell, style);
        }
    }
}

/// Gives cells that are written already other colours.
pub fn light(buf: &mut Buffer, area: Rect, role: Role, modifier: Modifier, background: Background, theme: &Theme) {
    let style = theme.style(role, modifier, background);
    for cell in cells(buf, area) {
        restyle(cell, style);
    }
}

/// Writes spans into the first row of `area` and cuts what does not fit; returns the column after the last one.
///
/// A span without a background of its own gets `under`, which is painted there already.
pub fn put_spans(
    buf: &mut Buffer,
    area: Rect,
    spans: &[Span],
    under: Background,
    theme: &Theme,
    links: &mut Links,
) -> u16 {
    let cells = cells(buf, area);
    let mut x = 0;
    for span in spans {
        let background = match span.background {
            Background::Plain => under,
            other => other,
        };
        let style = theme.style(span.role, span.modifier, background);
        let start = x;
        let is_cut = put_text(cells, &mut x, &span.text, style);
        if let Some(target) = &span.link
            && x > start
        {
            links.push(Link {
                y: area.y,
                columns: area.x + start as u16..area.x + x as u16,
                target: target.clone(),
            });
        }
        if is_cut {
            break;
        }
    }
    area.x + x as u16
}

/// Writes a text from cell `x` on, which becomes the one after it; returns true if not all of it fits.
fn put_text(cells: &mut [Cell], x: &mut usize, text: &str, style: Style) -> bool {
    if text.bytes().all(|it| (0x20..0x7f).contains(&it)) {
        for byte in text.bytes() {
            let Some(cell) = cells.get_mut(*x) else { return true };
            restyle(cell.set_char(char::from(byte)), style);
            *x += 1;
        }
        return false;
    }
    let start = *x;
    for symbol in Graphemes::new(text).map(|it| it.text) {
        let (shown, columns) = match symbol {
            "\t" => (" ", TAB - (*x - start) % TAB),
            "\n" | "\r" | "\r\n" => (" ", 1),
            _ => (symbol, symbol.width()),
        };
        let Some(taken) = cells.get_mut(*x..*x + columns) else {
            return true;
        };
        let Some((first, rest)) = taken.split_first_mut() else {
            continue;
        };
        restyle(first.set_symbol(shown), style);
        for cell in rest {
            // What is behind a wide character is hidden by it.
            cell.reset();
            if shown == " " {
                restyle(cell, style);
            }
        }
        *x += columns;
    }
    false
}

fn restyle(cell: &mut Cell, style: Style) {
    cell.fg = style.fg.unwrap_or_default();
    cell.bg = style.bg.unwrap_or_default();
    cell.modifier = style.add_modifier;
}
