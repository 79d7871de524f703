//! The conversation as a list, a line for each message and document; the conversation follows the cursor.
//!
//! Only the lines in view are made. The texts of all lines are made when a filter is typed, and not before.

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use ratatui::{
    buffer::Buffer,
    layout::{Position, Rect},
    widgets::StatefulWidget,
};

use super::frame::{self, caret_in, first_line, heading};
use crate::{
    protocol::Document,
    t,
    text::{Role, Sanitized, Span, StyledLine, width},
    transcript::Transcript,
    tui::{
        app::{Answer, Choice, Overlay, Placement, Scene},
        editor::draft::Draft,
        terminal::surface::Links,
        widgets::{
            self,
            filter::has_failed,
            list::{ListCursor, ListWidget, bold_if},
            transcript::{Item, address},
        },
    },
};

/// Number of items from which on two threads make the texts of lines.
const MANY: usize = 2000;

/// The outline of a conversation.
pub struct Outline {
    items: Vec<Item>,
    /// The text of each item in lower case; empty until a filter is typed.
    texts: Vec<String>,
    filter: Draft,
    /// Indices of the items that pass the filter.
    passing: Vec<usize>,
    /// Among those that pass.
    cursor: ListCursor,
    /// The item that the reader came from.
    origin: Option<Item>,
}

impl Outline {
    pub fn new(items: &[Item], here: Option<Item>) -> Self {
        let items: Vec<Item> = items
            .iter()
            .copied()
            .filter(|it| matches!(it, Item::Message(_) | Item::Document(_)))
            .collect();
        let at = here.map_or(0, |here| {
            let exact = items.iter().position(|it| *it == here);
            exact.unwrap_or_else(|| items.partition_point(|it| it.exchange() < here.exchange()))
        });
        Self {
            passing: (0..items.len()).collect(),
            cursor: ListCursor::centred(at.min(items.len().saturating_sub(1))),
            items,
            texts: Vec::new(),
            filter: Draft::default(),
            origin: here,
        }
    }

    fn item(&self, at: usize) -> Option<Item> {
        self.items.get(*self.passing.get(at)?).copied()
    }

    fn here(&self) -> Option<Item> {
        self.item(self.cursor.at)
    }

    /// Moves to the next message, or the previous one.
    fn turn(&mut self, forward: bool) {
        let mut cursor = self.cursor;
        cursor.find(forward, self.passing.len(), |at| {
            matches!(self.item(at), Some(Item::Message(_)))
        });
        self.cursor = cursor;
    }

    /// Lists the items that contain every word of the filter; the cursor stays on its item where that passes.
    fn sift(&mut self) {
        let here = self.passing.get(self.cursor.at).copied();
        let filter = self.filter.text().to_lowercase();
        let words: Vec<&str> = filter.split_whitespace().collect();
        self.passing = (0..self.items.len())
            .filter(|at| {
                let text = self.texts.get(*at);
                text.is_none_or(|it| words.iter().all(|word| it.contains(word)))
            })
            .collect();
        let near = here.map_or(0, |here| self.passing.partition_point(|it| *it < here));
        self.cursor = ListCursor {
            top: None,
            at: near.min(self.passing.len().saturating_sub(1)),
            ..self.cursor
        };
    }
}

impl Overlay for Outline {
    fn key(&mut self, event: KeyEvent, _: &Scene<'_>) -> Answer {
        let ctrl = event.modifiers.contains(KeyModifiers::CONTROL);
        match event.code {
            KeyCode::Esc => {
                return match self.origin {
                    Some(item) => Answer::Chosen(Choice::Item(item)),
                    None => Answer::Close,
                };
            }
            KeyCode::Char('c') if ctrl => return Answer::Close,
            KeyCode::Enter => {
                return match self.here() {
                    Some(item) => Answer::Chosen(Choice::Item(item)),
                    None => Answer::Taken,
                };
            }
            KeyCode::Tab => self.cursor.step(1, self.passing.len()),
            KeyCode::Left => self.turn(false),
            KeyCode::Right => self.turn(true),
            _ if self.cursor.key(event, self.passing.len()) => {}
            _ => {
                let before = self.filter.text().into_owned();
                if !self.filter.edit(event) || before == self.filter.text() {
                    return Answer::Taken;
                }
                self.sift();
            }
        }
        match self.here() {
            Some(item) => Answer::Live(Choice::Item(item)),
            None => Answer::Taken,
        }
    }

    fn wheel(&mut self, by: isize) {
        self.cursor.step(by, self.passing.len());
    }

    fn list(&self) -> Option<&ListCursor> {
        Some(&self.cursor)
    }

    fn placement(&self) -> Placement {
        Placement::Beside
    }

    fn render(&mut self, area: Rect, buf: &mut Buffer, _: &mut Links, scene: &Scene<'_>) {
        let (transcript, theme) = (scene.transcript, scene.theme);
        if self.texts.is_empty() && !self.filter.is_empty() {
            self.texts = texts(transcript, &self.items);
            self.sift();
        }
        let count = self.passing.len();
        let place = t!("outline-place", at = (self.cursor.at + 1).min(count), count = count);
        let title = heading(t!("outline-title"), &self.filter);
        let inside = frame::frame(area, buf, &title, &format!(" {place} "), theme);
        let mut cursor = self.cursor;
        let list = ListWidget {
            count,
            sign: "›",
            is_active: true,
            line: |at, is_here, columns| {
                let item = self.item(at);
                item.map_or_else(Vec::new, |it| line(transcript, it, is_here, columns))
            },
            theme,
        };
        list.render(inside, buf, &mut cursor);
        self.cursor = cursor;
        if count == 0 {
            let nothing = Span::new(format!("  {}", t!("list-nothing")), Role::Dim);
            frame::lines(inside, buf, &[StyledLine::of([nothing])], theme);
        }
    }

    fn caret(&self, area: Rect) -> Option<Position> {
        let x = caret_in(t!("outline-title"), &self.filter, area.width);
        Some(Position::new(area.x + x, area.y))
    }

    fn hints(&self) -> Vec<(&'static str, &'static str)> {
        vec![
            ("↑↓", t!("footer-move")),
            ("←→", t!("footer-turn")),
            (t!("footer-letters"), t!("footer-find")),
            ("enter", t!("footer-go")),
            ("esc", t!("footer-back")),
        ]
    }
}

/// Returns the text of each item in lower case.
fn texts(transcript: &Transcript, items: &[Item]) -> Vec<String> {
    let all = |items: &[Item]| -> Vec<String> {
        let text = |it: &Item| content(transcript, *it).1.to_lowercase();
        items.iter().map(text).collect()
    };
    if items.len() < MANY {
        return all(items);
    }
    let (first, second) = items.split_at(items.len() / 2);
    std::thread::scope(|scope| {
        let second = scope.spawn(|| all(second));
        let mut texts = all(first);
        texts.extend(second.join().unwrap_or_default());
        texts
    })
}

/// Returns an item's sign, and its text in one line.
fn content(transcript: &Transcript, item: Item) -> ((&'static str, Role), Sanitized) {
    match item {
        Item::Message(at) => {
            let message = transcript.exchanges.get(at).and_then(|it| it.message.as_ref());
            let text = message.map(widgets::message_text).unwrap_or_default();
            (("▌", Role::User), first_line(&text))
        }
        Item::Document(place) => match transcript.get(place) {
            Some(document) => (sign(document), widgets::summary(document)),
            None => ((" ", Role::Text), Sanitized::default()),
        },
        Item::Thinking(..) | Item::Ending(_) | Item::Action(..) => ((" ", Role::Text), Sanitized::default()),
    }
}

fn sign(document: &Document) -> (&'static str, Role) {
    if has_failed(document) {
        return ("✗", Role::Error);
    }
    if document.is_open() {
        return ("◐", Role::Waiting);
    }
    document.kind.row().sign
}

fn line(transcript: &Transcript, item: Item, is_here: bool, columns: usize) -> Vec<Span> {
    let ((sign, sign_role), text) = content(transcript, item);
    let role = match item {
        Item::Message(_) => Role::User,
        Item::Document(_) | Item::Thinking(..) | Item::Ending(_) | Item::Action(..) => Role::Text,
    };
    let number = width::pad_start(&address(transcript, item), 5);
    let text = width::cut_end(&text, columns.saturating_sub(5 + 1 + 2 + 1));
    vec![
        Span::new(Sanitized::line(&number), Role::Faint),
        Span::new(Sanitized::literal(" "), Role::Text),
        Span::new(Sanitized::literal(sign), sign_role),
        Span::new(Sanitized::literal(" "), Role::Text),
        Span::new(Sanitized::new(&text), role).modified(bold_if(is_here)),
    ]
}
