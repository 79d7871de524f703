//! The text that the mouse has marked.
//!
//! Both ends are places in documents, not on the screen, so marked text may scroll. The copied text has no gutters, no facts
//! and no wrapping.

use std::ops::Range;

use crate::text::{StyledLine, width, width::Graphemes};
use crate::tui::{
    app::App,
    widgets::transcript::{Item, Pane, VisibleLine},
};

/// A cell of a row of an item; columns count from the first column of the content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Point {
    pub item: Item,
    pub row: usize,
    pub column: usize,
}

/// From where the button went down to where the pointer is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Selection {
    pub from: Point,
    pub to: Point,
}

impl Selection {
    pub fn is_empty(&self) -> bool {
        self.from == self.to
    }

    /// The ends in the order of reading, each with the index of its item.
    fn ends(&self, pane: &Pane) -> Option<((usize, Point), (usize, Point))> {
        let from = (pane.index_of(self.from.item)?, self.from);
        let to = (pane.index_of(self.to.item)?, self.to);
        let order = |(at, it): &(usize, Point)| (*at, it.row, it.column);
        Some(if order(&from) <= order(&to) {
            (from, to)
        } else {
            (to, from)
        })
    }

    /// The marked stretch, worked out once for all the rows that are asked for.
    pub fn marked(&self, pane: &Pane) -> Option<Marked> {
        let (first, last) = self.ends(pane)?;
        Some(Marked { first, last })
    }
}

/// Both ends in the order of reading, each with the index of its item.
pub struct Marked {
    first: (usize, Point),
    last: (usize, Point),
}

impl Marked {
    /// The marked columns of a row; the pointer's own cell is marked, too.
    pub fn columns(&self, pane: &Pane, item: Item, row: usize) -> Option<Range<usize>> {
        let (first, last) = ((self.first.0, self.first.1.row), (self.last.0, self.last.1.row));
        let between = pane.items.get(first.0..=last.0)?;
        let at = (first.0 + between.iter().position(|it| *it == item)?, row);
        if at < first || at > last {
            return None;
        }
        let start = if at == first { self.first.1.column } else { 0 };
        let end = if at == last {
            self.last.1.column.saturating_add(1)
        } else {
            usize::MAX
        };
        Some(start..end)
    }
}

impl App {
    /// The place under a cell of the screen; beside the rows, the nearest one above, else below.
    pub fn point_at(&self, x: u16, y: u16) -> Option<Point> {
        let lines = &self.viewport.pane.lines;
        let y = usize::from(y.checked_sub(self.viewport.areas.transcript.y)?);
        let column = usize::from(x).saturating_sub(self.viewport.areas.gutter);
        if let Some(VisibleLine::StyledLine { item, row }) = lines.get(y) {
            let (item, row) = (*item, *row);
            return Some(Point { item, row, column });
        }
        let place = |shown: &VisibleLine, column| match shown {
            VisibleLine::StyledLine { item, row } => Some(Point {
                item: *item,
                row: *row,
                column,
            }),
            VisibleLine::Blank => None,
        };
        let above = lines.iter().take(y).rev().find_map(|it| place(it, usize::MAX - 1));
        above.or_else(|| lines.iter().skip(y).find_map(|it| place(it, 0)))
    }

    /// The word around a cell: what one takes into a hand, a path as well as a name.
    pub fn word_at(&self, point: Point) -> Option<Selection> {
        let Point { item, row, column } = point;
        let (shown, _) = self.viewport.pane.row(&VisibleLine::StyledLine { item, row })?;
        let mut at = width::spans_width(shown.gutter());
        let mut run: Option<(usize, usize)> = None;
        for span in shown.content() {
            for sign in Graphemes::new(&span.text) {
                let (start, end) = (at, at + sign.width);
                at = end;
                if sign.text.chars().any(is_parting) {
                    if run.is_some_and(|it| it.1 > column) {
                        break;
                    }
                    run = None;
                } else {
                    run = Some((run.map_or(start, |it| it.0), end));
                }
            }
            if run.is_some_and(|it| it.1 > column) && at > run.map_or(0, |it| it.1) {
                break;
            }
        }
        let (start, end) = run.filter(|it| (it.0..it.1).contains(&column))?;
        let point = |column| Point { item, row, column };
        Some(Selection {
            from: point(start),
            to: point(end - 1),
        })
    }

    /// The line around a cell, over all the rows that the width made of it.
    pub fn line_at(&self, point: Point) -> Option<Selection> {
        let rows = &self.viewport.pane.state(point.item)?.rows;
        let continues = |at: usize| rows.get(at).is_some_and(|it| it.continues);
        let first = (0..=point.row).rev().find(|at| !continues(*at))?;
        let last = (point.row..rows.len()).find(|at| !continues(at + 1))?;
        let point = |row, column| Point { row, column, ..point };
        Some(Selection {
            from: point(first, 0),
            to: point(last, usize::MAX - 1),
        })
    }

    /// The text that is marked.
    pub fn selected_text(&mut self) -> Option<String> {
        let selection = self.viewport.selection?;
        let ((first_at, first), (last_at, last)) = selection.ends(&self.viewport.pane)?;
        let items: Vec<Item> = self.viewport.pane.items.get(first_at..=last_at)?.to_vec();
        let mut text = String::new();
        let mut was_line = false;
        for (n, item) in items.into_iter().enumerate() {
            let at = first_at + n;
            let part = self.with_pane(|pane, context| {
                let rows = pane.rows_of(item, context);
                let from = if at == first_at {
                    (first.row, first.column)
                } else {
                    (0, 0)
                };
                let to = if at == last_at {
                    (last.row, last.column.saturating_add(1))
                } else {
                    (usize::MAX, usize::MAX)
                };
                text_between(rows, from, to)
            });
            let is_line = self.viewport.pane.state(item).is_some_and(|it| it.is_line);
            if part.is_empty() {
                continue;
            }
            if !text.is_empty() {
                text.push_str(if was_line && is_line { "\n" } else { "\n\n" });
            }
            text.push_str(&part);
            was_line = is_line;
        }
        (!text.is_empty()).then_some(text)
    }
}

/// Returns true for a letter that is no part of a word.
fn is_parting(letter: char) -> bool {
    letter.is_whitespace()
        || matches!(
            letter,
            '"' | '\'' | '`' | '(' | ')' | '[' | ']' | '<' | '>' | '{' | '}' | '|' | ',' | ';' | '│' | '。' | '、'
        )
}

/// The text of rows from one row and column to another, which is not part of it.
pub fn text_between(rows: &[StyledLine], from: (usize, usize), to: (usize, usize)) -> String {
    let mut text = String::new();
    for (at, row) in rows.iter().enumerate().skip(from.0) {
        if at > to.0 {
            break;
        }
        if row.is_picture() {
            continue;
        }
        if at > from.0 {
            match (row.continues, row.spaced) {
                (true, true) => text.push(' '),
                (true, false) => {}
                (false, _) => text.push('\n'),
            }
        }
        let start = if at == from.0 { from.1 } else { 0 };
        let end = if at == to.0 { to.1 } else { usize::MAX };
        push_columns(row, start..end, &mut text);
        if !rows.get(at + 1).is_some_and(|it| it.continues) {
            text.truncate(text.trim_end_matches(' ').len());
        }
    }
    text
}

fn push_columns(row: &StyledLine, columns: Range<usize>, text: &mut String) {
    let mut column = width::spans_width(row.gutter());
    for span in row.content() {
        for sign in Graphemes::new(&span.text) {
            let end = column + sign.width;
            if column < columns.end && end > columns.start {
                text.push_str(sign.text);
            }
            column = end;
        }
    }
}

/// The whole text of rows.
pub fn text_of(rows: &[StyledLine]) -> String {
    text_between(rows, (0, 0), (usize::MAX, usize::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::{Role, Span, wrap::wrap};

    #[test]
    fn what_is_copied_has_no_gutter_and_no_break_of_the_width() {
        let source = "take src/shop/cart.rs and the 漢字 book";
        let mut rows = wrap(
            &[Span::new(source, Role::Text)],
            12,
            &[],
            &[Span::new("  ", Role::Text)],
        );
        let mut code = StyledLine::of([Span::new(" 12  + ", Role::Faint), Span::new("let a;", Role::Text)]);
        code.gutter = 1;
        rows.push(code);
        assert!(rows.len() > 4);
        assert_eq!(text_of(&rows), format!("{source}\nlet a;"));
        assert_eq!(rows[1].plain(), "  src/shop/");
        assert_eq!(text_between(&rows, (1, 2), (1, 5)), "src");
        let last = rows.len() - 1;
        assert_eq!(text_between(&rows, (last, 0), (last, 11)), "let");
        assert_eq!(text_between(&rows, (last, 3), (last, 11)), "let");
    }
}
