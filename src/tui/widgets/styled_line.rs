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

/// Columns between long content and its facts.
const GAP: u16 = 2;

/// A line on one row: its content from the left, its facts at the right edge where they fit.
///
/// The state collects the links, which a buffer has no place for.
pub struct StyledLineWidget<'a> {
    pub line: &'a StyledLine,
    /// Background that is there already; `Plain` leaves the line on its own.
    pub under: Background,
    /// Columns at whose end the facts and the background stand, unless the content is longer; never more than there are.
    pub measure: u16,
    pub theme: &'a Theme,
}

impl StatefulWidget for StyledLineWidget<'_> {
    type State = Links;

    fn render(self, area: Rect, buf: &mut Buffer, links: &mut Links) {
        let Self {
            line,
            under,
            measure,
            theme,
        } = self;
        // The background ends where the facts do, unless the content is longer.
        let ground = Rect {
            width: measure.max(spans_width(&line.spans) as u16).min(area.width),
            ..area
        };
        fill(buf, ground, line.background, theme);
        let under = match under {
            Background::Plain => line.background,
            other => other,
        };
        let end = put_spans(buf, area, &line.spans, under, theme, links);
        let columns = spans_width(&line.facts) as u16;
        let edge = area.x.saturating_add(measure).max(end.saturating_add(GAP + columns));
        let edge = edge.min(area.right());
        let at = edge.saturating_sub(columns);
        if area.width >= WIDTH_FOR_FACTS && at > end {
            let rest = Rect {
                x: at,
                width: edge - at,
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
                measure: u16::MAX,
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

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use pretty_assertions::assert_eq;

    use super::*;
    use crate::{text::Sanitized, tui::terminal::surface::text_of};

    fn theme() -> Theme {
        Theme::built_in("sheaf-dark").unwrap()
    }

    fn span(text: &str) -> Span {
        Span::new(Sanitized::new(text), Role::Text)
    }

    #[test]
    fn the_background_ends_with_the_measure_or_with_longer_content() {
        for (text, measure, end) in [
            ("short", 10, 10),
            ("longer than ten columns", 10, 23),
            ("short", 100, 40),
        ] {
            let mut buffer = Buffer::empty(Rect::new(0, 0, 40, 1));
            let line = StyledLine {
                background: Background::Added,
                ..StyledLine::of([span(text)])
            };
            let theme = theme();
            let widget = StyledLineWidget {
                line: &line,
                under: Background::Plain,
                measure,
                theme: &theme,
            };
            Widget::render(widget, buffer.area, &mut buffer);
            let ground = buffer[(0, 0)].bg;
            let last = (0..40).filter(|it| buffer[(*it, 0)].bg == ground).count();
            assert_eq!(last, end, "{text} {measure}");
        }
    }

    /// A line drawn into the middle of a row of `#`, and the links that it has.
    fn drawn(line: &StyledLine, width: u16) -> (String, Links) {
        let mut buffer = Buffer::filled(Rect::new(0, 0, width + 2, 1), Cell::new("#"));
        let area = Rect::new(1, 0, width, 1);
        for x in area.left()..area.right() {
            buffer[(x, 0)].reset();
        }
        let (theme, mut links) = (theme(), Links::new());
        let widget = StyledLineWidget {
            line,
            under: Background::Plain,
            measure: u16::MAX,
            theme: &theme,
        };
        StatefulWidget::render(widget, area, &mut buffer, &mut links);
        (text_of(&buffer, buffer.area), links)
    }

    #[test]
    fn a_text_is_cut_at_its_area_and_never_in_a_character() {
        for (text, width, shown) in [
            ("words", 7, "#words  #"),
            ("words", 3, "#wor#"),
            ("words", 0, "##"),
            ("語漢", 4, "#語漢#"),
            ("語漢", 3, "#語 #"),
            ("a語", 2, "#a #"),
            ("a\tb", 7, "#a   b  #"),
            ("e\u{301}o", 3, "#e\u{301}o #"),
            ("a\nb", 4, "#a b #"),
        ] {
            assert_eq!(drawn(&StyledLine::of([span(text)]), width).0, shown, "{text:?} {width}");
        }
    }

    #[test]
    fn facts_stand_at_the_right_where_there_is_room_for_them() {
        let line = StyledLine::of([span("left")]).facts([span("12 s")]);
        assert_eq!(drawn(&line, 36).0, format!("#left{}12 s#", " ".repeat(28)));
        assert_eq!(drawn(&line, 35).0, format!("#left{}#", " ".repeat(31)));
        let line = StyledLine::of([span(&"x".repeat(33))]).facts([span("12 s")]);
        assert_eq!(drawn(&line, 36).0, format!("#{}   #", "x".repeat(33)));
    }

    #[test]
    fn facts_stand_at_the_measure_or_after_longer_content() {
        let theme = Theme::built_in("sheaf-dark").unwrap();
        for (content, at) in [(4, 46), (45, 47), (54, 56), (55, 56), (57, 57)] {
            let line = StyledLine::of([span(&"x".repeat(content))]).facts([span("12 s")]);
            let mut buffer = Buffer::empty(Rect::new(0, 0, 60, 1));
            let widget = StyledLineWidget {
                line: &line,
                under: Background::Plain,
                measure: 50,
                theme: &theme,
            };
            Widget::render(widget, buffer.area, &mut buffer);
            let text: String = buffer.content.iter().map(Cell::symbol).collect();
            assert_eq!(text.find("12 s").unwrap_or(content), at, "{content}: {text}");
        }
    }

    #[test]
    fn links_have_the_columns_of_the_screen_as_far_as_they_are_shown() {
        let target: Arc<str> = "https://example.com".into();
        let line = StyledLine::of([span("語 "), span("link").linked(Some(target.clone())), span(" x")]);
        let link = |columns| Link {
            y: 0,
            columns,
            target: target.clone(),
        };
        assert_eq!(drawn(&line, 12).1, [link(4..8)]);
        assert_eq!(drawn(&line, 5).1, [link(4..6)]);
        assert_eq!(drawn(&line, 3).1, []);
    }

    #[test]
    fn a_background_reaches_the_end_of_the_area() {
        let theme = theme();
        let line = StyledLine {
            background: Background::Added,
            ..StyledLine::of([span("a"), span("語").on(Background::AddedWord)])
        };
        let mut buffer = Buffer::empty(Rect::new(0, 0, 6, 1));
        let widget = StyledLineWidget {
            line: &line,
            under: Background::Plain,
            measure: u16::MAX,
            theme: &theme,
        };
        Widget::render(widget, Rect::new(0, 0, 5, 1), &mut buffer);
        let background = |it| theme.style(Role::Text, Modifier::NONE, it).bg.unwrap_or_default();
        let (added, word) = (background(Background::Added), background(Background::AddedWord));
        let cells: Vec<_> = buffer.content.iter().map(|it| it.bg).collect();
        assert_eq!([cells[0], cells[1], cells[3], cells[4]], [added, word, added, added]);
        assert_eq!(cells[5], background(Background::Plain));
    }

    #[test]
    fn lines_end_with_their_area() {
        let theme = theme();
        let lines = ["one", "two", "three"].map(|it| StyledLine::of([span(it)]));
        let mut buffer = Buffer::empty(Rect::new(0, 0, 4, 3));
        let widget = LinesWidget {
            lines: &lines,
            theme: &theme,
        };
        widget.render(Rect::new(1, 1, 3, 2), &mut buffer, &mut Links::new());
        let shown: Vec<_> = buffer.area.rows().map(|it| text_of(&buffer, it)).collect();
        assert_eq!(shown, ["    ", " one", " two"]);
    }
}
