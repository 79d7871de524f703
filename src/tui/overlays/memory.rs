//! The card that remembers a line: which file it goes to, and what is written there.

use std::sync::Arc;

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use ratatui::{buffer::Buffer, layout::Rect};

use super::frame;
use crate::{
    protocol::UserAction,
    t,
    text::{Role, Sanitized, Span, StyledLine, diff::LineKind, diff::diff, wrap::wrap},
    tui::{
        app::{
            Action, Answer, App, Choice, Effect, Overlay, Scene, TOO_EARLY_MS,
            effects::own_files,
            own_files::{FileOutcome, FileTask, RuleFile, RuleRole},
        },
        terminal::surface::Links,
    },
};

/// Unchanged lines around the new one.
const CONTEXT_LINES: usize = 3;

/// The card of a line to remember.
pub struct MemoryCard {
    /// Its identity: files that were read for one card are not for another.
    id: Arc<()>,
    line: String,
    /// Files that it may go to; empty until they were read.
    files: Vec<RuleFile>,
    /// The action that sends the draft as a message, with its argument; `None` for `/memory`.
    send: Option<(&'static Action, &'static str)>,
    /// Version of the draft that is remembered; `None` for `/memory`.
    draft: Option<u64>,
    at: usize,
    /// When the files came, in milliseconds since the Unix epoch.
    since_ms: u64,
}

impl MemoryCard {
    pub fn new(line: &str, send: Option<(&'static Action, &'static str)>, draft: u64) -> (Self, Effect) {
        let id = Arc::new(());
        let own = Arc::clone(&id);
        let look = own_files(FileTask::Rules, move |app, outcome| {
            let now_ms = app.now_ms;
            match outcome {
                Ok(FileOutcome::Rules(files)) => {
                    if let Some(card) = app.overlays.find::<Self>(|it| Arc::ptr_eq(&it.id, &own)) {
                        card.files = files.into_iter().filter(|it| it.role != RuleRole::Other).collect();
                        card.since_ms = now_ms;
                    }
                    Vec::new()
                }
                Ok(FileOutcome::Written { .. }) => Vec::new(),
                Err(why) => app.toast(why),
            }
        });
        let card = Self {
            id,
            line: line.to_owned(),
            files: Vec::new(),
            draft: send.map(|_| draft),
            send,
            at: 0,
            since_ms: 0,
        };
        (card, look)
    }

    fn count(&self) -> usize {
        self.files.len() + usize::from(self.send.is_some())
    }

    fn decide(&self, now_ms: u64) -> Answer {
        if now_ms.saturating_sub(self.since_ms) < TOO_EARLY_MS || self.files.is_empty() {
            return Answer::Taken;
        }
        let Some(file) = self.files.get(self.at) else {
            return match self.send {
                Some((action, word)) => Answer::Chosen(Choice::Action(action, word.to_owned())),
                None => Answer::Close,
            };
        };
        let task = FileTask::AddLine {
            file: file.clone(),
            line: self.line.clone(),
        };
        let (role, id, draft) = (file.role, Arc::clone(&self.id), self.draft);
        Answer::Does(own_files(task, move |app, outcome| match outcome {
            Ok(FileOutcome::Written { file, line }) => {
                app.overlays.close::<Self>(|it| Arc::ptr_eq(&it.id, &id));
                // What was typed meanwhile stays.
                if draft == Some(app.composer.field.version()) {
                    app.composer.field.clear();
                }
                if role == RuleRole::Project {
                    app.toast(t!("memory-written-project"));
                }
                App::record(UserAction::Remembered, &[&format!("{file}:{line}")])
            }
            Ok(FileOutcome::Rules(_)) => Vec::new(),
            Err(why) => app.toast(why),
        }))
    }
}

impl Overlay for MemoryCard {
    fn key(&mut self, event: KeyEvent, scene: &Scene<'_>) -> Answer {
        let last = self.count().saturating_sub(1);
        match event.code {
            KeyCode::Esc => return Answer::Close,
            KeyCode::Char('c') if event.modifiers.contains(KeyModifiers::CONTROL) => return Answer::Close,
            // Words are words: they go on with the draft.
            KeyCode::Char(_) if (event.modifiers - KeyModifiers::SHIFT).is_empty() => return Answer::Typed(event),
            KeyCode::Up | KeyCode::BackTab => self.at = self.at.saturating_sub(1),
            KeyCode::Down => self.at = (self.at + 1).min(last),
            KeyCode::Tab => self.at = if self.at == last { 0 } else { self.at + 1 },
            KeyCode::Enter => return self.decide(scene.now_ms),
            _ => {}
        }
        Answer::Taken
    }

    fn paste(&mut self, _: &str) -> Option<Answer> {
        Some(Answer::Close)
    }

    fn render(&mut self, area: Rect, buf: &mut Buffer, _: &mut Links, scene: &Scene<'_>) {
        let columns = usize::from(area.width.min(100));
        let mut rows = vec![
            StyledLine::of([Span::new(Sanitized::literal(t!("memory-title")), Role::Strong).bold()]),
            StyledLine::blank(),
        ];
        let mut add = |text: &str, role: Role| {
            rows.extend(wrap(&[Span::new(Sanitized::line(text), role)], columns, &[], &[]));
        };
        if self.files.is_empty() {
            add(t!("memory-reading"), Role::Dim);
        }
        let sign = |at: usize| if at == self.at { "›" } else { " " };
        for (at, file) in self.files.iter().enumerate() {
            let whose = match file.role {
                RuleRole::User => t!("memory-you"),
                RuleRole::Project | RuleRole::Other => t!("memory-project"),
            };
            let role = if at == self.at { Role::Accent } else { Role::Text };
            add(&format!("{} {whose}   {}", sign(at), file.shown), role);
        }
        if self.send.is_some() && !self.files.is_empty() {
            let at = self.files.len();
            let role = if at == self.at { Role::Accent } else { Role::Text };
            add(&format!("{} {}", sign(at), t!("memory-send")), role);
        }
        add(" ", Role::Text);
        if let Some(file) = self.files.get(self.at) {
            let old = file.text.clone().unwrap_or_default();
            let found = diff(&old, &file.with(&self.line), 1, 1, CONTEXT_LINES);
            for line in &found.lines {
                let (sign, role) = match line.kind {
                    LineKind::Added => ("+", Role::Added),
                    LineKind::Removed => ("−", Role::Removed),
                    LineKind::Context => (" ", Role::Dim),
                    LineKind::Skip(_) => continue,
                };
                let number = line.new.or(line.old).unwrap_or_default();
                add(&format!("{number:>4} {sign} {}", line.text), role);
            }
            add(" ", Role::Text);
            add(
                match file.role {
                    RuleRole::Project => t!("memory-about-project"),
                    RuleRole::User | RuleRole::Other => t!("memory-about-you"),
                },
                Role::Dim,
            );
        }
        frame::lines(area, buf, &rows, scene.theme);
    }

    fn hints(&self) -> Vec<(&'static str, &'static str)> {
        let enter = if self.at < self.files.len() {
            t!("footer-write")
        } else {
            t!("footer-send")
        };
        vec![
            ("enter", enter),
            ("↑↓", t!("footer-choose")),
            ("esc", t!("footer-back")),
        ]
    }
}
