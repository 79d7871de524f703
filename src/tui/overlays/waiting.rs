//! The messages that wait for their turn: edited, put in another order, taken back.

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use super::{Answer, Choice, Overlay, Placement, Scene, picker::frame_row};
use crate::{
    t,
    text::{Background, Modifier, Role, Sanitized, Span, StyledLine, width},
};

/// What is done with one of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// Back into the draft.
    Edit(usize),
    Remove(usize),
    /// In front of the one before it.
    Earlier(usize),
}

pub struct Waiting {
    texts: Vec<Sanitized>,
    at: usize,
    rows: Vec<StyledLine>,
}

impl Waiting {
    pub fn new<'a>(texts: impl Iterator<Item = &'a str>) -> Self {
        let texts: Vec<_> = texts.map(Sanitized::line).collect();
        Self {
            at: texts.len().saturating_sub(1),
            texts,
            rows: Vec::new(),
        }
    }
}

impl Overlay for Waiting {
    fn key(&mut self, event: KeyEvent, _: &Scene<'_>) -> Answer {
        let last = self.texts.len().saturating_sub(1);
        match event.code {
            KeyCode::Esc | KeyCode::Char('q') => Answer::Close,
            KeyCode::Char('c') if event.modifiers.contains(KeyModifiers::CONTROL) => Answer::Close,
            KeyCode::Up | KeyCode::Char('k') => {
                self.at = self.at.saturating_sub(1);
                Answer::Taken
            }
            KeyCode::Down | KeyCode::Char('j') => {
                self.at = (self.at + 1).min(last);
                Answer::Taken
            }
            KeyCode::Enter | KeyCode::Char('e') => Answer::Chosen(Choice::Waiting(Change::Edit(self.at))),
            KeyCode::Char('d' | 'x') | KeyCode::Delete => {
                let at = self.at;
                self.texts.remove(at);
                self.at = at.min(self.texts.len().saturating_sub(1));
                let choice = Choice::Waiting(Change::Remove(at));
                if self.texts.is_empty() {
                    Answer::Chosen(choice)
                } else {
                    Answer::Live(choice)
                }
            }
            KeyCode::Char('K') if self.at > 0 => {
                self.texts.swap(self.at, self.at - 1);
                self.at -= 1;
                Answer::Live(Choice::Waiting(Change::Earlier(self.at + 1)))
            }
            KeyCode::Char('J') if self.at < last => {
                self.texts.swap(self.at, self.at + 1);
                self.at += 1;
                Answer::Live(Choice::Waiting(Change::Earlier(self.at)))
            }
            _ => Answer::Taken,
        }
    }

    fn placement(&self) -> Placement {
        Placement::Popup(90)
    }

    fn lay_out(&mut self, _: &Scene<'_>, columns: usize, _: usize) {
        let inside = columns.saturating_sub(5);
        let mut rows = vec![frame_row("╭", &format!(" {} ", t!("waiting-title")), "╮", columns)];
        let first = self.at.saturating_sub(9);
        for (n, text) in self.texts.iter().enumerate().skip(first).take(10) {
            let is_here = n == self.at;
            let ground = if is_here {
                Background::Selection
            } else {
                Background::Plain
            };
            let mark = if is_here { Modifier::BOLD } else { Modifier::NONE };
            let text = width::pad(&width::cut_end(text, inside), inside);
            rows.push(StyledLine::of([
                Span::new(Sanitized::literal("│"), Role::Rule),
                Span::new(Sanitized::literal(if is_here { "› " } else { "  " }), Role::Accent).on(ground),
                Span::new(Sanitized::new(&text), Role::Text).modified(mark).on(ground),
                Span::new(Sanitized::literal(" "), Role::Text).on(ground),
                Span::new(Sanitized::literal("│"), Role::Rule),
            ]));
        }
        rows.push(frame_row("╰", "", "╯", columns));
        self.rows = rows;
    }

    fn rows(&self) -> &[StyledLine] {
        &self.rows
    }

    fn hints(&self) -> Vec<(&'static str, &'static str)> {
        vec![
            ("enter", t!("footer-edit")),
            ("d", t!("footer-take-back")),
            ("J K", t!("footer-reorder")),
            ("esc", t!("footer-back")),
        ]
    }
}
