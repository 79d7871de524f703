//! Signs on a grid that grows; lines that meet are joined.

use crate::text::width::Graphemes;

pub const UP: u8 = 1;
pub const DOWN: u8 = 2;
pub const LEFT: u8 = 4;
pub const RIGHT: u8 = 8;

/// More columns are never drawn.
const MOST_COLUMNS: usize = 500;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
enum Cell {
    #[default]
    Blank,
    /// The right half of a wide sign.
    Covered,
    Sign(String),
    /// A line that goes these ways.
    Line(u8),
}

#[derive(Debug, Default)]
pub struct Canvas {
    rows: Vec<Vec<Cell>>,
}

impl Canvas {
    fn cell(&mut self, x: usize, y: usize) -> Option<&mut Cell> {
        if x >= MOST_COLUMNS {
            return None;
        }
        if self.rows.len() <= y {
            self.rows.resize_with(y + 1, Vec::new);
        }
        let row = self.rows.get_mut(y)?;
        if row.len() <= x {
            row.resize(x + 1, Cell::Blank);
        }
        row.get_mut(x)
    }

    /// Writes over what is there.
    pub fn write(&mut self, x: usize, y: usize, text: &str) {
        let mut at = x;
        for it in Graphemes::new(text) {
            if let Some(cell) = self.cell(at, y) {
                *cell = Cell::Sign(it.text.to_owned());
            }
            for covered in 1..it.width {
                if let Some(cell) = self.cell(at + covered, y) {
                    *cell = Cell::Covered;
                }
            }
            at += it.width;
        }
    }

    /// Whether nothing stands there.
    pub fn is_free(&mut self, x: usize, y: usize, columns: usize) -> bool {
        (x..x + columns).all(|x| self.cell(x, y).is_some_and(|it| *it == Cell::Blank))
    }

    /// Adds ways to a line.
    pub fn join(&mut self, x: usize, y: usize, ways: u8) {
        if let Some(cell) = self.cell(x, y) {
            match cell {
                Cell::Line(there) => *there |= ways,
                Cell::Blank | Cell::Covered | Cell::Sign(_) => *cell = Cell::Line(ways),
            }
        }
    }

    /// A line between two columns; where one comes down through it, that one stays in front.
    pub fn across(&mut self, from: usize, to: usize, y: usize) {
        let (left, right) = (from.min(to), from.max(to));
        for x in left + 1..right {
            if let Some(cell) = self.cell(x, y) {
                *cell = match cell {
                    Cell::Line(ways) if *ways & (LEFT | RIGHT) == 0 => Cell::Line(*ways),
                    Cell::Line(ways) => Cell::Line(*ways | LEFT | RIGHT),
                    Cell::Blank | Cell::Covered | Cell::Sign(_) => Cell::Line(LEFT | RIGHT),
                };
            }
        }
        if left < right {
            self.join(left, y, RIGHT);
            self.join(right, y, LEFT);
        }
    }

    /// A line down from one row to another, both of which it only touches.
    pub fn down(&mut self, x: usize, from: usize, to: usize) {
        for y in from + 1..to {
            if let Some(cell) = self.cell(x, y) {
                *cell = match cell {
                    // It passes before a line that goes by, and joins one that turns.
                    Cell::Line(ways) if *ways != (LEFT | RIGHT) => Cell::Line(*ways | UP | DOWN),
                    Cell::Line(_) | Cell::Blank | Cell::Covered | Cell::Sign(_) => Cell::Line(UP | DOWN),
                };
            }
        }
        if from < to {
            self.join(x, from, DOWN);
            self.join(x, to, UP);
        }
    }

    /// A frame of three rows around a text; `corners` are its four, from the left above clockwise.
    pub fn frame(&mut self, x: usize, y: usize, text: &str, corners: [&str; 4]) {
        let columns = crate::text::width::width(text) + 2;
        let edge = "─".repeat(columns);
        self.write(x, y, &format!("{}{edge}{}", corners[0], corners[1]));
        self.write(x, y + 1, &format!("│ {text} │"));
        self.write(x, y + 2, &format!("{}{edge}{}", corners[3], corners[2]));
    }

    pub fn height(&self) -> usize {
        self.rows.len()
    }

    pub fn text(&self) -> String {
        let mut text = String::new();
        for row in &self.rows {
            let mut line = String::new();
            for cell in row {
                match cell {
                    Cell::Blank => line.push(' '),
                    Cell::Covered => {}
                    Cell::Sign(sign) => line.push_str(sign),
                    Cell::Line(ways) => line.push(sign(*ways)),
                }
            }
            text.push_str(line.trim_end());
            text.push('\n');
        }
        text
    }
}

fn sign(ways: u8) -> char {
    // By the sum of the ways: up 1, down 2, left 4, right 8.
    const SIGNS: [char; 16] = [
        ' ', '│', '│', '│', '─', '┘', '┐', '┤', '─', '└', '┌', '├', '─', '┴', '┬', '┼',
    ];
    SIGNS.get(usize::from(ways)).copied().unwrap_or(' ')
}
