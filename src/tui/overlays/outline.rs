//! The conversation as a list, a line for each message and document; where one moves in it, the conversation follows.
//!
//! Only the lines in view are ever made, and what a line says is worked out for all of them only when somebody types
//! what to look for.

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use super::{
    Answer, Choice, ListCursor, Overlay, Placement, Scene,
    picker::{caret_in, frame_row, heading},
};
use crate::{
    protocol::Document,
    t,
    text::{Background, Modifier, Role, Sanitized, Span, StyledLine, width},
    transcript::Transcript,
    tui::{
        draft::Draft,
        filter::has_failed,
        widgets,
        widgets::transcript::{Item, address},
    },
};

/// So many items are worth a second thread.
const MANY: usize = 2000;

pub struct Outline {
    items: Vec<Item>,
    /// What each item says, in small letters, once somebody looks for something.
    said: Vec<String>,
    filter: Draft,
    /// Indices of the items that hold the filter.
    passing: Vec<usize>,
    /// Among those that pass; the view is centred when its `top` is `usize::MAX`.
    cursor: ListCursor,
    /// Where the reader was.
    origin: Option<Item>,
    /// For the size of the last layout.
    rows: Vec<StyledLine>,
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
            cursor: ListCursor {
                top: usize::MAX,
                ..ListCursor::new(at.min(items.len().saturating_sub(1)))
            },
            items,
            said: Vec::new(),
            filter: Draft::default(),
            origin: here,
            rows: Vec::new(),
        }
    }

    fn here(&self) -> Option<Item> {
        self.items.get(*self.passing.get(self.cursor.at)?).copied()
    }

    /// To the next message, or the one before.
    fn turn(&mut self, forward: bool) {
        let is_message = |n: &usize| {
            let item = self.passing.get(*n).and_then(|it| self.items.get(*it));
            matches!(item, Some(Item::Message(_)))
        };
        let found = if forward {
            (self.cursor.at + 1..self.passing.len()).find(is_message)
        } else {
            (0..self.cursor.at).rev().find(is_message)
        };
        self.cursor.at = found.unwrap_or(self.cursor.at);
    }

    /// Lists what holds every word of the filter; the reader stays on what still passes.
    fn sift(&mut self) {
        let here = self.passing.get(self.cursor.at).copied();
        let filter = self.filter.text().to_lowercase();
        let words: Vec<&str> = filter.split_whitespace().collect();
        self.passing = (0..self.items.len())
            .filter(|at| {
                let said = self.said.get(*at).map(String::as_str);
                said.is_none_or(|it| words.iter().all(|word| it.contains(word)))
            })
            .collect();
        let near = here.map_or(0, |here| self.passing.partition_point(|it| *it < here));
        self.cursor.at = near.min(self.passing.len().saturating_sub(1));
        self.cursor.top = usize::MAX;
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
                let before = self.filter.text().to_owned();
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

    fn placement(&self) -> Placement {
        Placement::Beside
    }

    fn lay_out(&mut self, scene: &Scene<'_>, columns: usize, height: usize) {
        let transcript = scene.transcript;
        self.cursor.height = height.saturating_sub(2).max(1);
        if self.said.is_empty() && !self.filter.text().is_empty() {
            self.said = said(transcript, &self.items);
            self.sift();
        }
        let ListCursor { at, top, height } = self.cursor;
        if top == usize::MAX {
            self.cursor.top = at.saturating_sub(height / 2);
        }
        self.cursor.show(height);
        let top = self.cursor.top.min(self.passing.len().saturating_sub(height));
        self.cursor.top = top;
        let title = heading(t!("outline-title"), &self.filter);
        self.rows.clear();
        self.rows.push(frame_row("╭", &title, "╮", columns));
        for n in top..top + height {
            let item = self.passing.get(n).and_then(|it| self.items.get(*it));
            self.rows.push(match item {
                Some(item) => line(transcript, *item, n == at, columns),
                None => empty(if n == 0 { t!("list-nothing") } else { "" }, columns),
            });
        }
        let count = self.passing.len();
        let place = t!("outline-place", at = (at + 1).min(count), count = count);
        self.rows.push(frame_row("╰", &format!(" {place} "), "╯", columns));
    }

    fn rows(&self) -> &[StyledLine] {
        &self.rows
    }

    fn caret(&self, columns: usize) -> Option<(usize, usize)> {
        Some((caret_in(t!("outline-title"), &self.filter, columns), 0))
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

/// What each item says, to be looked through. Of a long conversation two threads make it: nobody waits for it but who has typed
/// the first letter.
fn said(transcript: &Transcript, items: &[Item]) -> Vec<String> {
    let all = |items: &[Item]| -> Vec<String> {
        let said = |it: &Item| says(transcript, *it).1.to_lowercase();
        items.iter().map(said).collect()
    };
    if items.len() < MANY {
        return all(items);
    }
    let (first, second) = items.split_at(items.len() / 2);
    std::thread::scope(|scope| {
        let second = scope.spawn(|| all(second));
        let mut said = all(first);
        said.extend(second.join().unwrap_or_default());
        said
    })
}

/// The sign of an item and what it says in a line.
fn says(transcript: &Transcript, item: Item) -> ((&'static str, Role), Sanitized) {
    match item {
        Item::Message(at) => {
            let message = transcript.exchanges.get(at).and_then(|it| it.message.as_ref());
            let text = message.map(|it| it.content.as_str()).unwrap_or_default();
            let first = text.lines().find(|it| !it.trim().is_empty()).unwrap_or_default();
            (("▌", Role::User), Sanitized::line(head(first)))
        }
        Item::Document(place) => match transcript.get(place) {
            Some(document) => (sign(document), widgets::summary(document)),
            None => ((" ", Role::Text), Sanitized::default()),
        },
        Item::Thinking(..) | Item::Ending(_) => ((" ", Role::Text), Sanitized::default()),
    }
}

/// More of a line is never seen.
fn head(line: &str) -> &str {
    line.get(..line.floor_char_boundary(400)).unwrap_or(line)
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

fn line(transcript: &Transcript, item: Item, is_here: bool, columns: usize) -> StyledLine {
    let ground = if is_here {
        Background::Selection
    } else {
        Background::Plain
    };
    let mark = if is_here { Modifier::BOLD } else { Modifier::NONE };
    let ((sign, sign_role), text) = says(transcript, item);
    let role = match item {
        Item::Message(_) => Role::User,
        Item::Document(_) | Item::Thinking(..) | Item::Ending(_) => Role::Text,
    };
    let number = width::pad_start(&address(transcript, item), 5);
    let room = columns.saturating_sub(2 + 1 + 5 + 1 + 2 + 1);
    let text = width::pad(&width::cut_end(&text, room), room);
    StyledLine::of([
        Span::new(Sanitized::literal("│"), Role::Rule),
        Span::new(Sanitized::literal(if is_here { "›" } else { " " }), Role::Accent).on(ground),
        Span::new(Sanitized::line(&number), Role::Faint).on(ground),
        Span::new(Sanitized::literal(" "), Role::Text).on(ground),
        Span::new(Sanitized::literal(sign), sign_role).on(ground),
        Span::new(Sanitized::literal(" "), Role::Text).on(ground),
        Span::new(Sanitized::new(&text), role).modified(mark).on(ground),
        Span::new(Sanitized::literal(" "), Role::Text).on(ground),
        Span::new(Sanitized::literal("│"), Role::Rule),
    ])
}

fn empty(text: &'static str, columns: usize) -> StyledLine {
    let room = columns.saturating_sub(2);
    let text = width::pad(width::cut(&format!("  {text}"), room), room);
    StyledLine::of([
        Span::new(Sanitized::literal("│"), Role::Rule),
        Span::new(Sanitized::new(&text), Role::Dim),
        Span::new(Sanitized::literal("│"), Role::Rule),
    ])
}
