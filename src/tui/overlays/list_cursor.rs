//! The chosen entry of a list. ratatui's `ListState` knows neither the number of entries nor the height of a page, which the
//! keys need.

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

/// The chosen entry of a list, and the part of the list that is in view.
#[derive(Clone, Copy, Debug)]
pub struct ListCursor {
    /// Index of the chosen entry; 0 in an empty list.
    pub at: usize,
    /// Index of the first entry in view.
    pub top: usize,
    /// Entries that are in view at once, at least 1.
    pub height: usize,
}

impl ListCursor {
    pub const fn new(at: usize) -> Self {
        Self { at, top: 0, height: 1 }
    }

    /// Moves by so many entries of `count`, as far as there are any.
    pub fn step(&mut self, by: isize, count: usize) {
        self.at = self.at.saturating_add_signed(by).min(count.saturating_sub(1));
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

    /// Brings the chosen entry into a view of `height` entries.
    pub fn show(&mut self, height: usize) {
        self.height = height.max(1);
        self.top = self.top.min(self.at).max((self.at + 1).saturating_sub(self.height));
    }
}
