//! A list of which only the lines in view are made, and the cursor in it.
//!
//! ratatui's `List` takes an item for each entry, in view or not: an outline has 60,000. Its `ListState` knows neither the
//! number of entries nor the height of a page, which the keys need; and its lines have no roles.

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use ratatui::{
    buffer::Buffer,
    layout::{Position, Rect},
    widgets::StatefulWidget,
};

use super::styled_line::{fill, put_spans};
use crate::{
    text::{Background, Modifier, Role, Span, width},
    theme::Theme,
    tui::terminal::surface::Links,
};

/// The chosen entry of a list, and the part of the list that is in view.
#[derive(Clone, Copy, Debug, Default)]
pub struct ListCursor {
    /// Index of the chosen entry; 0 in an empty list.
    pub at: usize,
    /// Index of the first entry in view; `None`: the next drawing puts the chosen one into the middle.
    pub top: Option<usize>,
    /// Entries that are in view at once, at least 1 once the list was drawn.
    pub height: usize,
    /// The entries of the last drawing, a row each; empty before it.
    pub area: Rect,
}

impl ListCursor {
    /// A cursor on an entry, with the list seen from its beginning.
    pub const fn new(at: usize) -> Self {
        Self {
            at,
            top: Some(0),
            height: 1,
            area: Rect::ZERO,
        }
    }

    /// A cursor on an entry in the middle of the view.
    pub const fn centred(at: usize) -> Self {
        Self {
            top: None,
            ..Self::new(at)
        }
    }

    /// Moves by `by` entries of `count`, as far as there are any.
    pub fn step(&mut self, by: isize, count: usize) {
        self.at = self.at.saturating_add_signed(by).min(count.saturating_sub(1));
    }

    /// Moves to the next entry that `is_wanted`, or the previous one; stays where there is none.
    pub fn find(&mut self, forward: bool, count: usize, is_wanted: impl Fn(usize) -> bool) {
        let found = if forward {
            (self.at + 1..count).find(|it| is_wanted(*it))
        } else {
            (0..self.at).rev().find(|it| is_wanted(*it))
        };
        self.at = found.unwrap_or(self.at);
    }

    /// Handles the keys that move in every list; returns false for any other key.
    pub fn key(&mut self, event: KeyEvent, count: usize) -> bool {
        let page = self.height as isize;
        match event.code {
            KeyCode::Up => self.step(-1, count),
            KeyCode::Down => self.step(1, count),
            KeyCode::Char('p') if event.modifiers.contains(KeyModifiers::CONTROL) => self.step(-1, count),
            KeyCode::Char('n') if event.modifiers.contains(KeyModifiers::CONTROL) => self.step(1, count),
            KeyCode::PageUp => self.step(-page, count),
            KeyCode::PageDown => self.step(page, count),
            KeyCode::Home => self.at = 0,
            KeyCode::End => self.at = count.saturating_sub(1),
            _ => return false,
        }
        true
    }

    /// The entry at a cell of the screen; `None` beside the list.
    pub fn entry_at(&self, cell: Position) -> Option<usize> {
        let row = usize::from(cell.y.checked_sub(self.area.y)?);
        self.area.contains(cell).then(|| self.top.unwrap_or(0) + row)
    }

    /// Brings the chosen entry into a view of `height` entries; returns the first entry in view.
    fn show(&mut self, height: usize, count: usize) -> usize {
        self.height = height.max(1);
        let top = self.top.unwrap_or_else(|| self.at.saturating_sub(self.height / 2));
        let top = top.min(self.at).max((self.at + 1).saturating_sub(self.height));
        let top = top.min(count.saturating_sub(self.height));
        self.top = Some(top);
        top
    }
}

/// Bold for the chosen entry of a list.
pub const fn bold_if(is_here: bool) -> Modifier {
    if is_here { Modifier::BOLD } else { Modifier::NONE }
}

/// A list: a line for each entry in view.
pub struct ListWidget<'a, F: Fn(usize, bool, usize) -> Vec<Span>> {
    pub count: usize,
    /// Sign before the chosen entry; the others are indented by as many columns.
    pub sign: &'static str,
    /// The chosen entry stands on the background of a selection.
    pub is_active: bool,
    /// Makes the spans of an entry from its index, whether it is chosen, and the columns that it has.
    pub line: F,
    pub theme: &'a Theme,
}

impl<F: Fn(usize, bool, usize) -> Vec<Span>> StatefulWidget for ListWidget<'_, F> {
    type State = ListCursor;

    fn render(self, area: Rect, buf: &mut Buffer, cursor: &mut ListCursor) {
        let top = cursor.show(usize::from(area.height), self.count);
        cursor.area = Rect {
            height: area.height.min(self.count.saturating_sub(top) as u16),
            ..area
        };
        let indent = width::width(self.sign);
        for (at, row) in (top..self.count).zip(area.rows()) {
            let is_here = at == cursor.at;
            let background = if is_here && self.is_active {
                Background::Selection
            } else {
                Background::Plain
            };
            let sign = if is_here { self.sign } else { "" };
            let mut spans = vec![Span::new(width::pad(sign, indent), Role::Accent)];
            spans.extend((self.line)(at, is_here, usize::from(area.width).saturating_sub(indent)));
            fill(buf, row, background, self.theme);
            put_spans(buf, row, &spans, background, self.theme, &mut Links::new());
        }
    }
}

#[cfg(test)]
mod tests {
    use pretty_assertions::assert_eq;

    use super::*;

    fn shown(cursor: &mut ListCursor, count: usize, height: u16) -> String {
        let theme = Theme::built_in("sheaf-dark").unwrap();
        let mut buffer = Buffer::empty(Rect::new(0, 0, 8, height));
        let list = ListWidget {
            count,
            sign: "› ",
            is_active: true,
            line: |at, _, columns| vec![Span::new(format!("{at} 語{columns}"), Role::Text)],
            theme: &theme,
        };
        list.render(buffer.area, &mut buffer, cursor);
        let selection = theme.style(Role::Text, Modifier::NONE, Background::Selection);
        let rows = buffer.area.rows().map(|row| {
            let cells: Vec<_> = row.columns().map(|it| &buffer[(it.x, it.y)]).collect();
            let text: String = cells.iter().map(|it| it.symbol()).collect();
            let is_selected = cells.iter().all(|it| Some(it.bg) == selection.bg || it.symbol() == " ");
            assert_eq!(is_selected, text.trim().is_empty() || text.starts_with('›'), "{text}");
            text.trim_end().to_owned() + "\n"
        });
        rows.collect()
    }

    #[test]
    fn the_view_moves_only_when_the_cursor_leaves_it() {
        let mut cursor = ListCursor::new(0);
        assert_eq!(shown(&mut cursor, 5, 3), "› 0 語 6\n  1 語 6\n  2 語 6\n");
        cursor.step(3, 5);
        assert_eq!(shown(&mut cursor, 5, 3), "  1 語 6\n  2 語 6\n› 3 語 6\n");
        cursor.step(-1, 5);
        assert_eq!(shown(&mut cursor, 5, 3), "  1 語 6\n› 2 語 6\n  3 語 6\n");
        // What has become shorter fills its view.
        cursor.step(9, 5);
        shown(&mut cursor, 5, 3);
        cursor.step(-9, 2);
        assert_eq!(shown(&mut cursor, 2, 3), "› 0 語 6\n  1 語 6\n\n");
        assert_eq!(shown(&mut cursor, 0, 1), "\n");
    }

    #[test]
    fn a_cell_leads_to_its_entry() {
        let mut cursor = ListCursor::new(4);
        shown(&mut cursor, 5, 3);
        let at = |y| cursor.entry_at(Position::new(7, y));
        assert_eq!([0, 1, 2, 3].map(at), [Some(2), Some(3), Some(4), None]);
        assert_eq!(cursor.entry_at(Position::new(8, 0)), None);
        // Below the last entry there is none.
        let mut cursor = ListCursor::new(0);
        shown(&mut cursor, 2, 3);
        assert_eq!(cursor.entry_at(Position::new(0, 2)), None);
        assert_eq!(ListCursor::new(0).entry_at(Position::ORIGIN), None);
    }

    #[test]
    fn a_centred_cursor_stands_in_the_middle_as_far_as_the_list_goes() {
        for (at, first) in [(0, 0), (50, 48), (99, 95)] {
            let mut cursor = ListCursor::centred(at);
            shown(&mut cursor, 100, 5);
            assert_eq!(cursor.top, Some(first));
        }
    }
}
