//! The frames and rules of overlays.

use ratatui::{
    buffer::Buffer,
    layout::Rect,
    widgets::{Block, BorderType, Borders, Padding, Widget},
};

use crate::{
    text::{Background, Modifier, Role, Sanitized, Span, StyledLine, width},
    theme::Theme,
    tui::{
        editor::draft::Draft,
        terminal::surface::Links,
        widgets::styled_line::{LinesWidget, put_spans},
    },
};

/// Draws a border with a title in its first line and another one in its last; returns the area inside.
pub(super) fn frame(area: Rect, buf: &mut Buffer, title: &str, bottom: &str, theme: &Theme) -> Rect {
    let border = theme.style(Role::Rule, Modifier::NONE, Background::Plain);
    let block = Block::bordered().border_type(BorderType::Rounded).border_style(border);
    let inside = block.inner(area);
    block.render(area, buf);
    for (text, y) in [(title, area.top()), (bottom, area.bottom().saturating_sub(1))] {
        let room = usize::from(area.width.saturating_sub(4));
        let text = [Span::new(Sanitized::new(&width::cut_end(text, room)), Role::Dim)];
        let line = Rect::new(area.x + 2, y, area.width.saturating_sub(2), 1);
        put_spans(buf, line, &text, Background::Plain, theme, &mut Links::new());
    }
    inside
}

/// Splits an area behind `columns` by a vertical rule with a blank on both sides.
pub(super) fn beside(area: Rect, columns: usize, buf: &mut Buffer, rule: Role, theme: &Theme) -> [Rect; 2] {
    let left = Rect {
        width: area.width.min(columns as u16),
        ..area
    };
    let rest = area.width.saturating_sub(left.width + 1);
    let rest = Rect::new(left.right() + 1, area.y, rest, area.height);
    let block = Block::new().borders(Borders::LEFT).padding(Padding::left(1));
    [left, ruled(block, rest, buf, rule, theme)]
}

/// Splits an area below `lines` by a horizontal rule.
pub(super) fn below(area: Rect, lines: usize, buf: &mut Buffer, rule: Role, theme: &Theme) -> [Rect; 2] {
    let above = Rect {
        height: area.height.min(lines as u16),
        ..area
    };
    let rest = Rect::new(area.x, above.bottom(), area.width, area.height - above.height);
    [above, ruled(Block::new().borders(Borders::TOP), rest, buf, rule, theme)]
}

fn ruled(block: Block<'_>, area: Rect, buf: &mut Buffer, rule: Role, theme: &Theme) -> Rect {
    let block = block.border_style(theme.style(rule, Modifier::NONE, Background::Plain));
    let inside = block.inner(area);
    block.render(area, buf);
    inside
}

/// Draws lines without links below each other; returns the area below them.
pub(super) fn lines(area: Rect, buf: &mut Buffer, lines: &[StyledLine], theme: &Theme) -> Rect {
    let taken = area.height.min(lines.len() as u16);
    ratatui::widgets::StatefulWidget::render(LinesWidget { lines, theme }, area, buf, &mut Links::new());
    Rect::new(area.x, area.y + taken, area.width, area.height - taken)
}

/// Splits an area below its first `lines`.
pub(super) fn cut(area: Rect, lines: u16) -> [Rect; 2] {
    let taken = lines.min(area.height);
    let above = Rect { height: taken, ..area };
    [
        above,
        Rect::new(area.x, area.y + taken, area.width, area.height - taken),
    ]
}

/// The title of a list, with the filter that was typed.
pub(super) fn heading(title: &str, filter: &Draft) -> String {
    if filter.is_empty() {
        format!(" {title} ")
    } else {
        format!(" {title} › {} ", Sanitized::line(&filter.text()))
    }
}

/// The caret's column in a frame with that heading: behind the title, and in what is typed.
pub(super) fn caret_in(title: &str, filter: &Draft, columns: u16) -> u16 {
    let before = filter.slice(filter.caret().line_start()..filter.caret());
    let typed = if filter.is_empty() {
        0
    } else {
        3 + width::width(&Sanitized::line(&before))
    };
    (3 + width::width(title) + typed).min(usize::from(columns).saturating_sub(3)) as u16
}

/// The first line of a text that is not blank, or its beginning: no more than 400 bytes, as more is never in view.
pub(super) fn first_line(text: &str) -> Sanitized {
    let line = text.lines().find(|it| !it.trim().is_empty()).unwrap_or_default();
    Sanitized::line(line.get(..line.floor_char_boundary(400)).unwrap_or(line))
}
