//! The areas of the panes on the screen.

use ratatui::layout::{Constraint, Layout, Rect};

/// First column of the draft.
pub const DRAFT: usize = 3;

/// Columns left free at the right.
pub const MARGIN: usize = 1;

/// Columns left free at the left of a page.
pub const PAGE_INDENT: u16 = 3;

/// Columns before the content where there is room for addresses.
pub const GUTTER: usize = 8;

/// Width from which the gutter has room for addresses.
const WIDE: u16 = 60;

/// Most messages in the queue that are shown.
const MOST_QUEUED: usize = 3;

/// Lines from which the status command has more than one.
const STATUS_HEIGHT: u16 = 20;

/// All that the places depend on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Demand {
    /// Columns and lines of the screen, or of the inline region.
    pub size: (u16, u16),
    /// Rows of the draft.
    pub draft_rows: u16,
    /// Messages that wait.
    pub queued: usize,
    /// Older turns are being read: a line says so.
    pub is_reading_back: bool,
    /// The question of trust is open: it has a line.
    pub is_asked: bool,
    /// Columns of an outline beside the transcript; 0 without one.
    pub beside: usize,
    /// Lines of the status command below the header.
    pub status_rows: usize,
    /// The screen is a region among the terminal's own lines: nothing is left free, and the header stands below.
    pub is_inline: bool,
}

/// The panes' places, each over all columns, and the columns inside the transcript. Panes that there is no room for are
/// empty.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Areas {
    demand: Demand,
    pub header: Rect,
    pub transcript: Rect,
    pub queue: Rect,
    /// The line of the question of trust.
    pub trust: Rect,
    pub rule: Rect,
    pub composer: Rect,
    /// The line between composer and footer, for news that need two.
    pub above_footer: Rect,
    pub footer: Rect,
    /// Columns before the content: address and glyph.
    pub gutter: usize,
    pub columns: usize,
    /// Columns at the right that the outline has for itself.
    pub beside: usize,
}

impl Areas {
    /// Solves the layout where it is not the one for these demands: a solve takes about 100 µs.
    pub fn solve(&mut self, demand: Demand) {
        if *self != Self::default() && self.demand == demand {
            return;
        }
        let (columns, height) = demand.size;
        // Lines below the draft: what is left free, the footer, and the header of an inline region.
        let (footer, header, below) = if demand.is_inline {
            let has_both = u16::from(height >= 4);
            (has_both, has_both, 2.min(height.saturating_sub(1)))
        } else {
            let footer = u16::from(height >= 8);
            (footer, 1, (footer + u16::from(height >= 16)).min(height))
        };
        let end = height - below;
        let draft = demand.draft_rows.min(end);
        let rule = (end - draft).min(1);
        let room = end - draft - rule;
        let kept = if demand.is_inline { 0 } else { 4 };
        let asked = u16::from(demand.is_asked).min(room.saturating_sub(1));
        let room = room - asked;
        let queued = (demand.queued.min(MOST_QUEUED) as u16).min(room.saturating_sub(kept));
        let above = if demand.is_inline { 0 } else { room.min(1) };
        let status = status_rows(demand).min((room - queued - above).saturating_sub(8));
        let earlier = u16::from(demand.is_reading_back && room - queued - above - status > 1);
        let at_end = if demand.is_inline { header } else { 0 };
        let free = below.saturating_sub(footer + at_end);
        let [
            top,
            _,
            _,
            transcript,
            queue,
            trust,
            rule,
            composer,
            above_footer,
            footer,
            bottom,
        ] = Layout::vertical(
            [
                above,
                status,
                earlier,
                room - queued - above - status - earlier,
                queued,
                asked,
                rule,
                draft,
                free,
                footer,
                at_end,
            ]
            .map(Constraint::Length),
        )
        .areas(Rect::new(0, 0, columns, height));
        *self = Self {
            demand,
            header: if demand.is_inline { bottom } else { top },
            transcript,
            queue,
            trust,
            rule,
            composer,
            above_footer,
            footer,
            gutter: if columns >= WIDE { GUTTER } else { 3 },
            columns: usize::from(columns),
            beside: demand.beside,
        };
    }

    /// The line about older turns that are being read, above the transcript; empty without one.
    pub fn earlier(&self) -> Rect {
        let y = if self.demand.is_inline { 0 } else { self.header.bottom() };
        let y = y + self.status_height(y);
        Rect {
            y,
            height: self.transcript.y.saturating_sub(y),
            ..self.transcript
        }
    }

    /// The lines of the status command, below the header; empty without any.
    pub fn status(&self) -> Rect {
        let y = self.header.bottom();
        Rect {
            y,
            height: self.status_height(y),
            ..self.transcript
        }
    }

    fn status_height(&self, y: u16) -> u16 {
        let between = self.transcript.y.saturating_sub(y);
        status_rows(self.demand).min(between)
    }

    /// The area of a page instead of the transcript.
    pub fn page(&self) -> Rect {
        Rect {
            x: PAGE_INDENT,
            width: self.transcript.width.saturating_sub(PAGE_INDENT + MARGIN as u16),
            ..self.transcript
        }
    }

    /// The area of a popup above the composer, of at most so many columns and lines.
    pub fn popup(&self, columns: usize, lines: usize) -> Rect {
        let height = lines.min(usize::from(self.transcript.height).max(3)) as u16;
        Rect {
            x: 2,
            y: self.rule.y.saturating_sub(height),
            width: self.columns.saturating_sub(4).min(columns) as u16,
            height,
        }
    }

    /// The area of an outline: at the right of the transcript where there is room for both, else over it.
    pub fn outline(&self) -> Rect {
        let width = outline_columns(self.columns as u16);
        let x = self.columns as u16 - width;
        Rect {
            x,
            width,
            height: self.transcript.height.max(3),
            ..self.transcript
        }
    }

    /// Returns the columns of content, at least 1.
    pub fn content(&self) -> usize {
        self.columns.saturating_sub(self.gutter + MARGIN + self.beside).max(1)
    }
}

/// Lines for the status command, where there is room for them.
fn status_rows(demand: Demand) -> u16 {
    if demand.is_inline || demand.size.1 < STATUS_HEIGHT {
        0
    } else {
        demand.status_rows as u16
    }
}

/// Columns of an outline on a screen of `columns`; all of them where it lies over the transcript.
pub fn outline_columns(columns: u16) -> u16 {
    if columns < 100 {
        columns
    } else {
        (columns * 2 / 5).clamp(44, 72)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(demand: Demand) -> [(u16, u16); 9] {
        let mut areas = Areas::default();
        areas.solve(demand);
        let earlier = areas.earlier();
        let Areas {
            header,
            transcript,
            queue,
            trust,
            rule,
            composer,
            above_footer,
            footer,
            ..
        } = areas;
        [
            header,
            earlier,
            transcript,
            queue,
            trust,
            rule,
            composer,
            above_footer,
            footer,
        ]
        .map(|it| (it.y, it.height))
    }

    #[test]
    fn each_pane_has_its_lines() {
        let demand = Demand {
            size: (80, 24),
            draft_rows: 2,
            queued: 5,
            ..Demand::default()
        };
        assert_eq!(
            lines(demand),
            [
                (0, 1),
                (1, 0),
                (1, 15),
                (16, 3),
                (19, 0),
                (19, 1),
                (20, 2),
                (22, 1),
                (23, 1)
            ]
        );
        let asked = Demand {
            is_asked: true,
            ..demand
        };
        assert_eq!(
            lines(asked),
            [
                (0, 1),
                (1, 0),
                (1, 14),
                (15, 3),
                (18, 1),
                (19, 1),
                (20, 2),
                (22, 1),
                (23, 1)
            ]
        );
        let reading = Demand {
            is_reading_back: true,
            ..demand
        };
        assert_eq!(lines(reading)[1..3], [(1, 1), (2, 14)]);
        let status = Demand {
            status_rows: 2,
            ..demand
        };
        assert_eq!(lines(status)[..3], [(0, 1), (3, 0), (3, 13)]);
        let small = Demand {
            size: (80, 19),
            ..status
        };
        assert_eq!(lines(small)[..3], [(0, 1), (1, 0), (1, 10)]);
        let inline = Demand {
            is_inline: true,
            size: (80, 8),
            draft_rows: 1,
            ..Demand::default()
        };
        assert_eq!(
            lines(inline),
            [(7, 1), (0, 0), (0, 4), (4, 0), (4, 0), (4, 1), (5, 1), (6, 0), (6, 1)]
        );
    }

    #[test]
    fn no_pane_leaves_the_screen_however_small_it_is() {
        for height in 0..40 {
            for draft_rows in 1..=height.max(1) {
                for is_inline in [false, true] {
                    let demand = Demand {
                        size: (3, height),
                        draft_rows,
                        queued: 9,
                        is_asked: height % 2 == 0,
                        is_reading_back: height % 3 == 0,
                        beside: 0,
                        status_rows: usize::from(height % 4),
                        is_inline,
                    };
                    let mut areas = lines(demand);
                    areas.sort_unstable();
                    let mut end = 0;
                    for (y, lines) in areas {
                        assert!(y >= end || lines == 0, "{demand:?} {areas:?}");
                        end = end.max(y + lines);
                    }
                    assert!(end <= height, "{demand:?} {areas:?}");
                }
            }
        }
    }
}
