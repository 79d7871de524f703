//! One line to write, over the conversation.

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use super::{Answer, Choice, Overlay, Placement, Scene, picker::frame_row};
use crate::{
    t,
    text::{Role, Sanitized, Span, StyledLine, width},
    tui::{
        editor::draft::{Draft, MOST_LINE_BYTES},
        spoken,
    },
};

pub struct Prompt {
    title: Sanitized,
    draft: Draft,
    /// What becomes of the line.
    choice: fn(String) -> Choice,
    /// What there was before, where the line acts while it is written: it comes back when the prompt is left.
    before: Option<String>,
    /// A line that was emptied says something, too: there is nothing any more.
    may_empty: bool,
    rows: Vec<StyledLine>,
}

impl Prompt {
    pub fn new(title: &'static str, text: &str, choice: fn(String) -> Choice) -> Self {
        Self {
            title: Sanitized::literal(title),
            draft: Draft::new(text),
            choice,
            before: None,
            may_empty: false,
            rows: Vec::new(),
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

    fn changed(&self) -> Answer {
        match &self.before {
            Some(_) => Answer::Live((self.choice)(self.draft.text().to_owned())),
            None => Answer::Taken,
        }
    }
}

impl Overlay for Prompt {
    fn key(&mut self, event: KeyEvent, _: &Scene<'_>) -> Answer {
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

    fn paste(&mut self, text: &str) -> Answer {
        let room = MOST_LINE_BYTES.saturating_sub(self.draft.text().len());
        let text = Sanitized::line(&text.split_whitespace().collect::<Vec<_>>().join(" "));
        self.draft
            .insert(text.get(..text.floor_char_boundary(room)).unwrap_or_default());
        self.changed()
    }

    fn placement(&self) -> Placement {
        Placement::Popup(76)
    }

    fn lay_out(&mut self, _: &Scene<'_>, columns: usize, _: usize) {
        let inside = columns.saturating_sub(6);
        let shown = width::pad(&self.draft.window(inside).0, inside);
        self.rows = vec![
            frame_row("╭", &format!(" {} ", self.title), "╮", columns),
            StyledLine::of(vec![
                Span::new(Sanitized::literal("│ "), Role::Rule),
                Span::new(Sanitized::literal("› "), Role::Accent),
                Span::new(Sanitized::new(&shown), Role::Text),
                Span::new(Sanitized::literal(" │"), Role::Rule),
            ]),
            frame_row("╰", "", "╯", columns),
        ];
    }

    fn rows(&self) -> &[StyledLine] {
        &self.rows
    }

    fn caret(&self, columns: usize) -> Option<(usize, usize)> {
        let inside = columns.saturating_sub(6);
        Some((4 + self.draft.window(inside).1.min(inside.saturating_sub(1)), 1))
    }

    fn hints(&self) -> Vec<(&'static str, &'static str)> {
        vec![("enter", t!("footer-done")), ("esc", t!("footer-back"))]
    }

    fn spoken(&self) -> (Vec<String>, Option<&'static str>) {
        (words::lines(&self.rows), Some(t!("plain-how-prompt")))
    }

    fn keys_of(&mut self, line: &str, _: bool) -> Result<Vec<KeyCode>, String> {
        Ok(line.chars().map(KeyCode::Char).chain([KeyCode::Enter]).collect())
    }
}
