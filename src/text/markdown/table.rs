//! Tables: aligned columns where they fit, one record per row where they do not.

use pulldown_cmark::Alignment;

use super::{
    room,
    tree::{Cell, Table},
};
use crate::text::{Role, Sanitized, Span, StyledLine, width::spans_width, wrap::wrap};

/// Between two columns.
const GAP: usize = 2;

/// A column that must shrink below this makes the table a list of records.
const NARROWEST: usize = 6;

/// Layout of a table.
#[derive(Clone, Debug)]
pub(super) enum Shape {
    /// With these column widths.
    Grid(Vec<usize>),
    Records,
}

impl Shape {
    /// The shape that shows all of `table` in `columns` columns.
    pub fn of(table: &Table, columns: usize) -> Self {
        let shape = fit(&widths(table, columns), columns).filter(|it| !it.is_empty());
        shape.map_or(Self::Records, Self::Grid)
    }
}

/// Lays a table out at the end of `rows`; one that continues another takes its shape and has no head.
pub(super) fn lay(
    table: &Table,
    columns: usize,
    first: &[Span],
    rest: &[Span],
    continued: Option<&Shape>,
    rows: &mut Vec<StyledLine>,
) {
    let (first, first_room) = room(first, columns);
    let (rest, rest_room) = room(rest, columns);
    let room = first_room.min(rest_room);
    let shape = continued.cloned().unwrap_or_else(|| Shape::of(table, room));
    let start = rows.len();
    match shape {
        Shape::Grid(widths) => grid(table, &widths, continued.is_none(), rows),
        Shape::Records => {
            if continued.is_some() && !table.rows.is_empty() {
                rows.push(StyledLine::blank());
            }
            records(table, room, rows);
        }
    }
    for (index, row) in rows.iter_mut().enumerate().skip(start) {
        let indent = if index == start { &first } else { &rest };
        row.spans.splice(0..0, indent.iter().cloned());
    }
}

/// Returns the natural widths of the columns, each at most `room`.
fn widths(table: &Table, room: usize) -> Vec<usize> {
    let mut widths: Vec<usize> = table.head.iter().map(|it| spans_width(it).clamp(1, room)).collect();
    for row in &table.rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = (*width).max(spans_width(cell).min(room));
        }
    }
    widths
}

/// Shrinks the widest columns until all fit. `None` if one would get too narrow.
fn fit(natural: &[usize], room: usize) -> Option<Vec<usize>> {
    let gaps = GAP * natural.len().saturating_sub(1);
    let room = room.checked_sub(gaps)?;
    if natural.iter().sum::<usize>() <= room {
        return Some(natural.to_vec());
    }
    // The narrow ones keep their width; the others share what is left of the room.
    let mut sorted = natural.to_vec();
    sorted.sort_unstable();
    let (mut left, mut sharing) = (room, sorted.len());
    for width in sorted {
        let share = left / sharing;
        if width > share {
            break;
        }
        left -= width;
        sharing -= 1;
    }
    let (share, mut spare) = (left / sharing, left % sharing);
    if share < NARROWEST {
        return None;
    }
    let widths = natural.iter().map(|&it| {
        if it <= share {
            return it;
        }
        let more = usize::from(spare > 0);
        spare -= more;
        share + more
    });
    Some(widths.collect())
}

fn grid(table: &Table, widths: &[usize], with_head: bool, rows: &mut Vec<StyledLine>) {
    if with_head {
        head(table, widths, rows);
    }
    for row in &table.rows {
        line(row, widths, &table.alignments, rows);
    }
}

/// The head and the rule under it.
pub(super) fn head(table: &Table, widths: &[usize], rows: &mut Vec<StyledLine>) {
    line(&table.head, widths, &table.alignments, rows);
    let mut spans = Vec::new();
    for (index, &width) in widths.iter().enumerate() {
        if index > 0 {
            spans.push(blank(GAP));
        }
        spans.push(Span::new("─".repeat(width), Role::Rule));
    }
    rows.push(StyledLine::of(spans));
}

/// One row of the table: as many rows of the screen as its highest cell.
fn line(cells: &[Cell], widths: &[usize], alignments: &[Alignment], rows: &mut Vec<StyledLine>) {
    let cells: Vec<Vec<StyledLine>> = cells
        .iter()
        .zip(widths)
        .map(|(cell, &width)| wrap(cell, width, &[], &[]))
        .collect();
    let height = cells.iter().map(Vec::len).max().unwrap_or(1);
    for index in 0..height {
        let mut spans = Vec::new();
        // Spaces are written only where something follows them.
        let mut owed = 0;
        for (column, &width) in widths.iter().enumerate() {
            let cell = cells
                .get(column)
                .and_then(|it| it.get(index))
                .map_or(&[][..], |it| &it.spans);
            let used = spans_width(cell);
            let free = width.saturating_sub(used);
            let before = match alignments.get(column) {
                Some(Alignment::Right) => free,
                Some(Alignment::Center) => free / 2,
                Some(Alignment::Left | Alignment::None) | None => 0,
            };
            owed += before;
            if used > 0 {
                if owed > 0 {
                    spans.push(blank(owed));
                }
                spans.extend_from_slice(cell);
                owed = 0;
            } else {
                owed += used;
            }
            owed += free - before + GAP;
        }
        rows.push(StyledLine::of(spans));
    }
}

/// `Header: value` for each cell, a blank row between two records.
fn records(table: &Table, room: usize, rows: &mut Vec<StyledLine>) {
    let indent = [blank(2)];
    if table.rows.is_empty() {
        for name in table.head.iter().filter(|it| !it.is_empty()) {
            rows.extend(wrap(name, room, &[], &indent));
        }
    }
    for (index, row) in table.rows.iter().enumerate() {
        if index > 0 {
            rows.push(StyledLine::blank());
        }
        let start = rows.len();
        for (name, value) in table.head.iter().zip(row).filter(|(_, value)| !value.is_empty()) {
            let mut spans = name.clone();
            if !spans.is_empty() {
                spans.push(Span::new(Sanitized::literal(": "), Role::Strong).bold());
            }
            spans.extend_from_slice(value);
            rows.extend(wrap(&spans, room, &[], &indent));
        }
        if rows.len() == start {
            rows.push(StyledLine::blank());
        }
    }
    if table.head.iter().all(Vec::is_empty) && table.rows.is_empty() {
        rows.push(StyledLine::blank());
    }
}

fn blank(columns: usize) -> Span {
    Span::new(" ".repeat(columns), Role::Text)
}
