//! One line to write, over the conversation.

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use super::{Answer, Choice, picker::frame_row};
use crate::{
    text::{Clean, Role, Row, Span, width},
    tui::draft::{Draft, MOST_LINE_BYTES},
};

pub struct Prompt {
    title: Clean,
    draft: Draft,
    /// What becomes of the line.
    choice: fn(String) -> Choice,
    /// What there was before, where the line acts while it is written: it comes back when the prompt is left.
    before: Option<String>,
    /// A line that was emptied says something, too: there is nothing any more.
    may_empty: bool,
}

impl Prompt {
    pub fn new(title: &'static str, text: &str, choice: fn(String) -> Choice) -> Self {
        Self {
            title: Clean::literal(title),
            draft: Draft::new(text),
            choice,
            before: None,
            may_empty: false,
        }
    }

    /// Emptied, it takes back what it said.
    pub fn may_empty(mut self) -> Self {
        self.may_empty = !self.draft.text().is_empty();
        self
    }

    /// A line that acts while it is written.
    pub fn live(title: &'static str, before: &str, choice: fn(String) -> Choice) -> Self {
        Self {
            before: Some(before.to_owned()),
            ..Self::new(title, "", choice)
        }
    }

    pub fn key(&mut self, event: KeyEvent) -> Answer {
        let ctrl = event.modifiers.contains(KeyModifiers::CONTROL);
        let leave = || match &self.before {
            Some(text) => Answer::Chosen((self.choice)(text.clone())),
            None => Answer::Close,
        };
        match event.code {
            KeyCode::Esc => return leave(),
            KeyCode::Char('c') if ctrl => return leave(),
            KeyCode::Enter if self.before.is_some() => return Answer::Close,
            KeyCode::Enter if self.draft.text().trim().is_empty() && !self.may_empty => return Answer::Close,
            KeyCode::Enter => return Answer::Chosen((self.choice)(self.draft.text().trim().to_owned())),
            // Nothing else is cleared here, and the whole line is what one means.
            KeyCode::Char('u') if ctrl => self.draft.take(0..self.draft.text().len()),
            _ => {
                let version = self.draft.version;
                if !self.draft.edit(event) || version == self.draft.version {
                    return Answer::Taken;
                }
            }
        }
        self.changed()
    }

    fn changed(&self) -> Answer {
        match &self.before {
            Some(_) => Answer::Live((self.choice)(self.draft.text().to_owned())),
            None => Answer::Taken,
        }
    }

    pub fn paste(&mut self, text: &str) -> Answer {
        let room = MOST_LINE_BYTES.saturating_sub(self.draft.text().len());
        let text = Clean::line(&text.split_whitespace().collect::<Vec<_>>().join(" "));
        self.draft
            .insert(text.get(..text.floor_char_boundary(room)).unwrap_or_default());
        self.changed()
    }

    pub fn rows(&self, columns: usize) -> Vec<Row> {
        let inside = columns.saturating_sub(6);
        let shown = width::pad(&self.draft.window(inside).0, inside);
        vec![
            frame_row("╭", &format!(" {} ", self.title), "╮", columns),
            Row::of(vec![
                Span::new(Clean::literal("│ "), Role::Rule),
                Span::new(Clean::literal("› "), Role::Accent),
                Span::new(Clean::new(&shown), Role::Text),
                Span::new(Clean::literal(" │"), Role::Rule),
            ]),
            frame_row("╰", "", "╯", columns),
        ]
    }

    /// Column and row of the caret inside the rows.
    pub fn caret(&self, columns: usize) -> (usize, usize) {
        let inside = columns.saturating_sub(6);
        (4 + self.draft.window(inside).1.min(inside.saturating_sub(1)), 1)
    }
}
