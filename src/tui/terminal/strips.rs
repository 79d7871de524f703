//! Rows of images for terminals that paint them at the cursor instead of taking cells.

use std::{fmt::Write as _, ops::Range};

use ratatui::buffer::Cell;

use super::ansi_backend::{picture, print_row};

/// Pictures that a terminal paints where its cursor is, a row of cells at a time.
pub trait Strips {
    /// Adds the bytes that paint these columns of a row of a picture; the cursor may be anywhere afterwards.
    fn strip(&self, id: u32, row: usize, columns: Range<usize>, out: &mut Vec<u8>);

    /// Returns the bytes that remove the strip under the cursor; empty where writing over it is enough.
    fn eraser(&self) -> &'static [u8];
}

/// Cells of a line that show neighbouring columns of one row of a picture.
pub(super) struct StripRun {
    pub x: u16,
    pub id: u32,
    pub row: usize,
    pub columns: Range<usize>,
}

/// Returns the parts of pictures that a line shows, from the left.
pub(super) fn runs(cells: &[Cell]) -> Vec<StripRun> {
    let mut runs: Vec<StripRun> = Vec::new();
    for (x, cell) in (0..).zip(cells) {
        let Some((id, row, column)) = picture(cell) else {
            continue;
        };
        match runs.last_mut() {
            Some(run)
                if (run.id, run.row, run.columns.end) == (id, row, column)
                    && usize::from(run.x) + run.columns.len() == usize::from(x) =>
            {
                run.columns.end += 1;
            }
            _ => runs.push(StripRun {
                x,
                id,
                row,
                columns: column..column + 1,
            }),
        }
    }
    runs
}

/// Adds a line of pictures as text that goes on in the next line. The terminal has to have that line before a strip is
/// painted: where it is the last, some go on by themselves.
pub fn print_pictures(cells: &mut [Cell], strips: &dyn Strips, text: &mut String) {
    let runs = runs(cells);
    for run in &runs {
        let covered = cells.iter_mut().skip(usize::from(run.x)).take(run.columns.len());
        covered.for_each(Cell::reset);
    }
    print_row(cells, text);
    text.push_str("\r\n");
    for run in runs {
        let mut strip = Vec::new();
        strips.strip(run.id, run.row, run.columns, &mut strip);
        let strip = String::from_utf8_lossy(&strip);
        let _ = write!(text, "\x1b7\x1b[A\x1b[{}G{strip}\x1b8", run.x + 1);
    }
}
