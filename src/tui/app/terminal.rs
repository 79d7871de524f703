//! The terminal's abilities and the clicks of its mouse.

use std::collections::VecDeque;

use super::{TOO_EARLY_MS, inline::Inline};
use crate::tui::{image::Images, terminal::Mouse};

/// The terminal's size, abilities and pending output, and the state of its mouse.
#[derive(Default)]
pub struct Terminal {
    /// Columns and lines.
    pub size: (u16, u16),
    /// Presses of the left mouse button.
    pub clicks: Clicks,
    pub mouse: Mouse,
    /// The terminal tells keys apart by the kitty keyboard protocol.
    pub has_keyboard_protocol: bool,
    /// When Ctrl+C was last pressed with nothing to stop or clear, in milliseconds since the Unix epoch.
    pub last_interrupt_ms: u64,
    /// When Esc was pressed last on an empty draft, in milliseconds since the Unix epoch.
    pub last_escape_ms: u64,
    /// Without the alternate screen: how much of the conversation is in the terminal's own lines.
    pub inline: Option<Inline>,
    /// The conversation's pictures that the terminal has.
    pub images: Images,
    /// Notices that came before the one on the screen could be read, oldest first.
    pub notices: VecDeque<String>,
    /// Sequences that paint nothing (a copy), written before the next frame.
    pub pending: Vec<u8>,
}

/// Presses of the left button that follow each other at one place.
#[derive(Clone, Copy, Debug, Default)]
pub struct Clicks {
    at_ms: u64,
    place: (u16, u16),
    /// 1 for a click, 2 for a double click, 3 for a triple click.
    pub count: u8,
    /// The button went down in the draft, and marks there.
    pub in_draft: bool,
    /// When the window last got the focus, in milliseconds since the Unix epoch.
    pub came_ms: Option<u64>,
}

/// Longest time between two presses of one double or triple click, in milliseconds.
const CLICKS_MS: u64 = 400;

impl Clicks {
    /// Counts a press at `place` (column, line).
    pub fn press(&mut self, now_ms: u64, place: (u16, u16)) {
        let follows = place == self.place && now_ms.saturating_sub(self.at_ms) < CLICKS_MS;
        let count = if follows && self.count < 3 { self.count + 1 } else { 1 };
        *self = Self {
            at_ms: now_ms,
            place,
            count,
            in_draft: false,
            came_ms: self.came_ms,
        };
    }

    /// Returns true if the click only brought the window to the front.
    pub fn is_arrival(&self) -> bool {
        self.has_come_at(self.at_ms)
    }

    /// Returns true if the window got the focus a moment before `now_ms`.
    pub fn has_come_at(&self, now_ms: u64) -> bool {
        self.came_ms.is_some_and(|it| now_ms.saturating_sub(it) < TOO_EARLY_MS)
    }
}
