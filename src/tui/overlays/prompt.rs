//! One line to write, over the conversation.

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use ratatui::{
    buffer::Buffer,
    layout::{Position, Rect},
};

use super::frame::{frame, lines};
use crate::{
    t,
    text::{Role, Sanitized, Span, StyledLine},
    tui::{
        app::{Answer, Choice, Overlay, Placement, Scene},
        editor::draft::{Draft, MOST_LINE_BYTES},
        spoken,
        terminal::surface::Links,
    },
};

/// A line of text that becomes a choice.
pub struct Prompt {
    title: Sanitized,
    draft: Draft,
    /// Makes the choice of the finished line.
    choice: fn(String) -> Choice,
    /// The previous text of a line that acts while it is written, restored on Esc.
    before: Option<String>,
    /// An emptied line is a choice, too: it removes the text.
    may_empty: bool,
}

impl Prompt {
    pub fn new(title: &'static str, text: &str, choice: fn(String) -> Choice) -> Self {
        Self {
            title: Sanitized::literal(title),
            draft: Draft::new(text),
            choice,
            before: None,
            may_empty: false,
        }
    }

    /// Takes an emptied line as a choice, if there is a text to empty.
    pub fn may_empty(mut self) -> Self {
        self.may_empty = !self.draft.is_empty();
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
            Some(_) => Answer::Live((self.choice)(self.draft.text().into_owned())),
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
            KeyCode::Char('u') if ctrl => self.draft.take_all(),
            _ => {
                let version = self.draft.version;
                if !self.draft.edit(event) || version == self.draft.version {
                    return Answer::Taken;
                }
            }
        }
        self.changed()
    }

    fn paste(&mut self, text: &str) -> Option<Answer> {
        let room = MOST_LINE_BYTES.saturating_sub(self.draft.text().len());
        let text = Sanitized::line(&text.split_whitespace().collect::<Vec<_>>().join(" "));
        self.draft
            .insert(text.get(..text.floor_char_boundary(room)).unwrap_or_default());
        Some(self.changed())
    }

    fn placeholder(&self) -> &'static str {
        t!("composer-on-field")
    }

    fn placement(&self) -> Placement {
        Placement::Popup { columns: 76, lines: 3 }
    }

    fn render(&mut self, area: Rect, buf: &mut Buffer, _: &mut Links, scene: &Scene<'_>) {
        let inside = frame(area, buf, &format!(" {} ", self.title), "", scene.theme);
        let shown = self.draft.window(columns(area)).0;
        let line = StyledLine::of([
            Span::new(" › ", Role::Accent),
            Span::new(Sanitized::new(&shown), Role::Text),
        ]);
        lines(inside, buf, &[line], scene.theme);
    }

    fn caret(&self, area: Rect) -> Option<Position> {
        let at = self.draft.window(columns(area)).1;
        let x = 4 + at.min(columns(area).saturating_sub(1)) as u16;
        Some(Position::new(area.x + x, area.y + 1))
    }

    fn hints(&self) -> Vec<(&'static str, &'static str)> {
        vec![("enter", t!("footer-done")), ("esc", t!("footer-back"))]
    }

    fn spoken(&self, shown: &Buffer) -> (Vec<String>, Option<&'static str>) {
        (spoken::drawn(shown), Some(t!("plain-how-prompt")))
    }

    fn keys_of(&mut self, line: &str, _: bool) -> Result<Vec<KeyCode>, String> {
        Ok(line.chars().map(KeyCode::Char).chain([KeyCode::Enter]).collect())
    }
}

/// Columns of the text in a frame: between its border, the sign and a blank.
fn columns(area: Rect) -> usize {
    usize::from(area.width.saturating_sub(6))
}

#[cfg(test)]
mod tests {
    use pretty_assertions::assert_eq;

    use super::*;
    use crate::transcript::Transcript;

    #[test]
    fn a_long_line_is_shown_around_its_caret() {
        let mut prompt = Prompt::new("Rename", "an old title", Choice::Search);
        let shown = |prompt: &mut Prompt| Scene::drawn(prompt, &Transcript::default(), 20, 3);
        assert_eq!(
            shown(&mut prompt),
            ["╭─ Rename ─────────╮", "│ › an old title   │", "╰──────────────────╯"]
        );
        let area = Rect::new(2, 5, 20, 3);
        assert_eq!(prompt.caret(area), Some(Position::new(18, 6)));
        prompt.paste("that is longer");
        assert!(shown(&mut prompt)[1].ends_with("that is longer│") || shown(&mut prompt)[1].contains("is longer"));
        assert_eq!(prompt.caret(area), Some(Position::new(19, 6)));
    }
}
