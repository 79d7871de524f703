//! A page to read over the conversation: keys and commands.

use crossterm::event::{KeyCode, KeyEvent};

use super::Answer;
use crate::{
    text::{Clean, Role, Row, Span, width},
    tui::{
        action::ACTIONS,
        keymap::{Keymap, Place},
    },
};

pub struct Page {
    pub rows: Vec<Row>,
    pub top: usize,
    /// Rows in view as of the last paint.
    pub height: usize,
}

impl Page {
    /// Every key and command, from the tables that run them.
    pub fn keys(keymap: &Keymap, is_developer: bool) -> Self {
        let mut rows = vec![Row::of(vec![
            Span::new(Clean::literal("Keys and commands"), Role::Strong).bold(),
            Span::new(Clean::literal("   esc goes back"), Role::Dim),
        ])];
        for (place, title) in [
            (Place::Everywhere, "Everywhere"),
            (Place::Composer, "In the composer"),
            (Place::Transcript, "In the transcript (tab)"),
            (Place::Plan, "On a plan"),
        ] {
            rows.push(Row::blank());
            rows.push(Row::of(vec![Span::new(Clean::literal(title), Role::Strong).bold()]));
            for action in ACTIONS.iter().filter(|it| is_developer || it.name != "panic") {
                let keys = keymap.keys(place, action.name);
                if keys.is_empty() {
                    continue;
                }
                let keys: Vec<_> = keys.iter().map(ToString::to_string).collect();
                rows.push(line(&keys.join(" "), action.about));
            }
        }
        rows.push(Row::blank());
        rows.push(Row::of(vec![
            Span::new(Clean::literal("On a question"), Role::Strong).bold(),
        ]));
        for (keys, about) in [
            ("1 2 3", "choose, or toggle where several may be chosen"),
            ("enter", "send the answers"),
            ("o", "answer in your own words"),
            ("s", "skip"),
            ("y a A n", "an approval: once, this session, always, no because …"),
        ] {
            rows.push(line(keys, about));
        }
        rows.push(Row::blank());
        rows.push(Row::of(vec![
            Span::new(Clean::literal("Commands"), Role::Strong).bold(),
        ]));
        for action in ACTIONS
            .iter()
            .filter(|it| !it.slash.is_empty() && (is_developer || it.name != "panic"))
        {
            rows.push(line(&format!("/{}", action.slash), action.about));
        }
        Self {
            rows,
            top: 0,
            height: 1,
        }
    }

    pub fn key(&mut self, event: KeyEvent) -> Answer {
        match event.code {
            KeyCode::Esc | KeyCode::Enter | KeyCode::Char('q' | '?') | KeyCode::F(1) => return Answer::Close,
            KeyCode::Char('c') if event.modifiers.contains(crossterm::event::KeyModifiers::CONTROL) => {
                return Answer::Close;
            }
            KeyCode::Up | KeyCode::Char('k') => self.scroll(-1),
            KeyCode::Down | KeyCode::Char('j') => self.scroll(1),
            KeyCode::PageUp => self.scroll(-(self.height as isize)),
            KeyCode::PageDown | KeyCode::Char(' ') => self.scroll(self.height as isize),
            KeyCode::Home | KeyCode::Char('g') => self.top = 0,
            KeyCode::End | KeyCode::Char('G') => self.scroll(isize::MAX / 2),
            _ => {}
        }
        Answer::Taken
    }

    pub fn scroll(&mut self, by: isize) {
        self.top = self
            .top
            .saturating_add_signed(by)
            .min(self.rows.len().saturating_sub(self.height));
    }
}

fn line(keys: &str, about: &str) -> Row {
    Row::of(vec![
        Span::new(Clean::new(&width::pad(keys, 26)), Role::Accent),
        Span::new(Clean::new(about), Role::Text),
    ])
}
