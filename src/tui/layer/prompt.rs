//! One line to write, over the conversation.

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use unicode_segmentation::UnicodeSegmentation;

use super::{Answer, Choice, picker::frame_row};
use crate::text::{Clean, Role, Row, Span, width};

pub struct Prompt {
    title: Clean,
    text: String,
    /// What becomes of the line.
    choice: fn(String) -> Choice,
    /// What there was before, where the line acts while it is written: it comes back when the prompt is left.
    before: Option<String>,
}

impl Prompt {
    pub fn new(title: &'static str, text: &str, choice: fn(String) -> Choice) -> Self {
        Self {
            title: Clean::literal(title),
            text: text.to_owned(),
            choice,
            before: None,
        }
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
            KeyCode::Char('u') if ctrl => self.text.clear(),
            KeyCode::Enter if self.text.trim().is_empty() => return Answer::Close,
            KeyCode::Enter => return Answer::Chosen((self.choice)(self.text.trim().to_owned())),
            KeyCode::Backspace => {
                let last = self.text.grapheme_indices(true).next_back().map(|(at, _)| at);
                self.text.truncate(last.unwrap_or_default());
            }
            KeyCode::Char(letter) if !ctrl => self.text.push(letter),
            _ => return Answer::Taken,
        }
        match &self.before {
            Some(_) => Answer::Live((self.choice)(self.text.clone())),
            None => Answer::Taken,
        }
    }

    pub fn paste(&mut self, text: &str) {
        self.text
            .push_str(&text.split_whitespace().collect::<Vec<_>>().join(" "));
    }

    pub fn rows(&self, columns: usize) -> Vec<Row> {
        let inside = columns.saturating_sub(6);
        let shown = width::pad(&self.shown(inside), inside);
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
        (4 + width::width(&self.shown(inside)).min(inside.saturating_sub(1)), 1)
    }

    /// The end of the line is what one sees while writing.
    fn shown(&self, inside: usize) -> String {
        let text = Clean::line(&self.text).to_string();
        let mut text = text.as_str();
        while width::width(text) + 1 > inside.max(2) {
            let Some(first) = text.graphemes(true).next() else {
                break;
            };
            text = text.get(first.len()..).unwrap_or_default();
        }
        text.to_owned()
    }
}
