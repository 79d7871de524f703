//! The messages of the queue: edited, reordered, removed.

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use ratatui::{buffer::Buffer, layout::Rect, widgets::StatefulWidget};

use super::frame::frame;
use crate::{
    t,
    text::{Role, Sanitized, Span, width},
    tui::{
        app::{Answer, Choice, Overlay, Placement, QueueEdit, Scene},
        terminal::surface::Links,
        widgets::list::{ListCursor, ListWidget, bold_if},
    },
};

/// Messages that are in view at once.
const MOST_SHOWN: usize = 10;

/// A list of the messages that wait, in the order in which they will be sent.
pub struct QueueList {
    texts: Vec<Sanitized>,
    cursor: ListCursor,
}

impl QueueList {
    pub fn new<'a>(texts: impl Iterator<Item = &'a str>) -> Self {
        let texts: Vec<_> = texts.map(Sanitized::line).collect();
        Self {
            cursor: ListCursor::new(texts.len().saturating_sub(1)),
            texts,
        }
    }
}

impl Overlay for QueueList {
    fn key(&mut self, event: KeyEvent, _: &Scene<'_>) -> Answer {
        let (at, count) = (self.cursor.at, self.texts.len());
        match event.code {
            KeyCode::Esc | KeyCode::Char('q') => return Answer::Close,
            KeyCode::Char('c') if event.modifiers.contains(KeyModifiers::CONTROL) => return Answer::Close,
            KeyCode::Up | KeyCode::Char('k') => self.cursor.step(-1, count),
            KeyCode::Down | KeyCode::Char('j') => self.cursor.step(1, count),
            KeyCode::Enter | KeyCode::Char('e') => return Answer::Chosen(Choice::Queue(QueueEdit::Edit(at))),
            KeyCode::Char('d' | 'x') | KeyCode::Delete => {
                self.texts.remove(at);
                self.cursor.step(0, self.texts.len());
                let choice = Choice::Queue(QueueEdit::Remove(at));
                return if self.texts.is_empty() {
                    Answer::Chosen(choice)
                } else {
                    Answer::Live(choice)
                };
            }
            KeyCode::Char('K') if at > 0 => {
                self.texts.swap(at, at - 1);
                self.cursor.at -= 1;
                return Answer::Live(Choice::Queue(QueueEdit::Earlier(at)));
            }
            KeyCode::Char('J') if at + 1 < count => {
                self.texts.swap(at, at + 1);
                self.cursor.at += 1;
                return Answer::Live(Choice::Queue(QueueEdit::Earlier(at + 1)));
            }
            _ => {}
        }
        Answer::Taken
    }

    fn placement(&self) -> Placement {
        Placement::Popup {
            columns: 90,
            lines: self.texts.len().min(MOST_SHOWN) + 2,
        }
    }

    fn list(&self) -> Option<&ListCursor> {
        Some(&self.cursor)
    }

    fn render(&mut self, area: Rect, buf: &mut Buffer, _: &mut Links, scene: &Scene<'_>) {
        let inside = frame(area, buf, &format!(" {} ", t!("waiting-title")), "", scene.theme);
        let list = ListWidget {
            count: self.texts.len(),
            sign: "› ",
            is_active: true,
            line: |at, is_here, columns: usize| {
                let text = self.texts.get(at).map(Sanitized::as_str).unwrap_or_default();
                let text = Sanitized::new(&width::cut_end(text, columns.saturating_sub(1)));
                vec![Span::new(text, Role::Text).modified(bold_if(is_here))]
            },
            theme: scene.theme,
        };
        list.render(inside, buf, &mut self.cursor);
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

#[cfg(test)]
mod tests {
    use pretty_assertions::assert_eq;

    use super::*;
    use crate::transcript::Transcript;

    #[test]
    fn messages_are_moved_and_removed() {
        let mut queue = QueueList::new(["one", "two", "three"].into_iter());
        let mut press = |key| {
            Scene::test(&Transcript::default(), |scene| {
                queue.key(KeyEvent::new(key, KeyModifiers::NONE), scene);
            });
            Scene::drawn(&mut queue, &Transcript::default(), 20, 5)
        };
        assert_eq!(
            press(KeyCode::Char('K')),
            [
                "╭─ queued message…─╮",
                "│  one             │",
                "│› three           │",
                "│  two             │",
                "╰──────────────────╯",
            ]
        );
        assert_eq!(
            press(KeyCode::Char('d'))[1..4],
            ["│  one             │", "│› two             │", "│                  │"]
        );
    }
}
