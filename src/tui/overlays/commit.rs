//! The commit card: what will be committed, what git will run, and a message to edit.
//!
//! Opened by a key of the person's. Enter commits, Esc leaves everything as it is; nothing is pushed.

use std::sync::Arc;

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use ratatui::{
    buffer::Buffer,
    layout::{Position, Rect},
};

use super::frame;
use crate::{
    protocol::{CommitOutcome, CommitPreview, CommitRequest, DocumentId, Query, Reply, Turn},
    t,
    text::{Background, Modifier, Role, Sanitized, Span, StyledLine, wrap::wrap},
    tui::{
        app::{Answer, App, Effect, Overlay, Scene, TOO_EARLY_MS, effects::ask_for},
        editor::field::Field,
        overlays::Review,
        spoken,
        terminal::surface::Links,
        widgets,
    },
};

/// Most columns of the card.
const COLUMNS: u16 = 100;
/// Most rows of the message.
const MESSAGE_ROWS: u16 = 8;
/// Files that are listed.
const FILES: usize = 12;

/// What the card is doing.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Stage {
    Editing,
    Committing,
    /// Nothing was committed; what git and the hooks said.
    Failed(String),
}

/// The commit card.
pub struct CommitCard {
    /// Its identity: what is asked for one card is not for another.
    id: Arc<()>,
    documents: Vec<(Turn, DocumentId)>,
    /// `None` until the repository was read.
    preview: Option<CommitPreview>,
    message: Field,
    /// The message as it was proposed; another one is the person's.
    proposed: String,
    /// A model is writing the message.
    is_writing: bool,
    stage: Stage,
    /// When there was something to read first, in milliseconds since the Unix epoch.
    since_ms: u64,
    /// Rows of the facts above the view.
    top: usize,
    /// Caret and area of the message as of the last drawing.
    caret: Option<Position>,
}

impl CommitCard {
    /// A card for these documents, and the question that fills it; `message` was written on an earlier card.
    pub fn new(documents: Vec<(Turn, DocumentId)>, message: Option<&str>) -> (Self, Effect) {
        let id = Arc::new(());
        let look = Self::look(Arc::clone(&id), documents.clone());
        let mut card = Self {
            id,
            documents,
            preview: None,
            proposed: String::new(),
            message: Field::default(),
            is_writing: false,
            stage: Stage::Editing,
            since_ms: 0,
            top: 0,
            caret: None,
        };
        if let Some(text) = message {
            card.message.set(text);
        }
        (card, look)
    }

    /// Asks for the facts of the commit.
    fn look(id: Arc<()>, documents: Vec<(Turn, DocumentId)>) -> Effect {
        ask_for(Query::CommitPreview(documents), move |app, reply| match reply {
            Ok(Reply::CommitPreview(preview)) => {
                let now_ms = app.now_ms;
                let card = Self::find(app, &id);
                card.map(|it| it.take(*preview, now_ms)).unwrap_or_default()
            }
            Ok(_) | Err(_) => {
                app.overlays.close::<Self>(|it| Arc::ptr_eq(&it.id, &id));
                app.toast(t!("commit-not-here"))
            }
        })
    }

    fn find<'a>(app: &'a mut App, id: &Arc<()>) -> Option<&'a mut Self> {
        app.overlays.find::<Self>(|it| Arc::ptr_eq(&it.id, id))
    }

    /// Shows the commit, and has a model write the message.
    fn take(&mut self, preview: CommitPreview, now_ms: u64) -> Vec<Effect> {
        self.since_ms = now_ms;
        let is_first = self.preview.is_none();
        if preview.problem.is_empty() {
            self.propose(&preview.message, now_ms);
        }
        let writes = is_first && preview.problem.is_empty() && !self.is_edited();
        self.preview = Some(preview);
        if !writes {
            return Vec::new();
        }
        self.is_writing = true;
        let id = Arc::clone(&self.id);
        vec![ask_for(
            Query::CommitMessage(self.documents.clone()),
            move |app, reply| {
                let now_ms = app.now_ms;
                if let Some(card) = Self::find(app, &id) {
                    card.is_writing = false;
                    if let Ok(Reply::CommitMessage(text)) = reply {
                        card.propose(&text, now_ms);
                    }
                }
                Vec::new()
            },
        )]
    }

    /// Proposes a message, unless it is empty or the person has begun one.
    fn propose(&mut self, text: &str, now_ms: u64) {
        if !text.is_empty() && !self.is_edited() && self.stage == Stage::Editing {
            self.since_ms = now_ms;
            self.message.set(text);
            text.clone_into(&mut self.proposed);
        }
    }

    fn is_edited(&self) -> bool {
        self.message.text() != self.proposed
    }

    fn commit(&mut self, now_ms: u64) -> Answer {
        let Some(preview) = self.preview.as_ref().filter(|it| it.problem.is_empty()) else {
            return Answer::Taken;
        };
        let message = self.message.text().trim().to_owned();
        if self.stage == Stage::Committing || now_ms.saturating_sub(self.since_ms) < TOO_EARLY_MS {
            return Answer::Taken;
        }
        if message.is_empty() {
            return Answer::Said(t!("commit-no-message").to_owned());
        }
        let request = CommitRequest {
            documents: self.documents.clone(),
            message,
            state: preview.state.clone(),
        };
        self.stage = Stage::Committing;
        self.top = 0;
        let id = Arc::clone(&self.id);
        Answer::Does(ask_for(Query::Commit(Box::new(request)), move |app, reply| {
            let outcome = match reply {
                Ok(Reply::Commit(outcome)) => outcome,
                Ok(_) => CommitOutcome::default(),
                Err(why) => CommitOutcome {
                    output: why,
                    ..CommitOutcome::default()
                },
            };
            done(app, &id, outcome)
        }))
    }

    /// The facts below the message.
    fn facts(&self, columns: usize) -> Vec<StyledLine> {
        let mut rows = Vec::new();
        let mut add = |text: &str, role: Role| {
            for line in text.lines() {
                rows.extend(wrap(&[Span::new(Sanitized::line(line), role)], columns, &[], &[]));
            }
        };
        match &self.stage {
            Stage::Editing => {}
            Stage::Committing => add(t!("commit-running"), Role::Waiting),
            Stage::Failed(output) => {
                add(t!("commit-failed"), Role::Error);
                add(output, Role::Text);
                add(" ", Role::Text);
            }
        }
        let Some(preview) = &self.preview else {
            add(t!("commit-reading"), Role::Dim);
            return rows;
        };
        if !preview.problem.is_empty() {
            add(&spoken::worded(&preview.problem), Role::Error);
        }
        for it in preview.files.iter().take(FILES) {
            let operation = widgets::operation(&it.operation);
            add(
                &format!("{operation} {}  +{} −{}", it.path, it.added, it.removed),
                Role::Text,
            );
        }
        if let Some(more) = preview.files.len().checked_sub(FILES).filter(|it| *it > 0) {
            add(&t!("commit-more-files", count = more), Role::Dim);
        }
        for it in &preview.left_out {
            add(&t!("commit-left-out", what = it.as_str()), Role::Waiting);
        }
        if !preview.problem.is_empty() {
            return rows;
        }
        add(" ", Role::Text);
        add(&t!("commit-author", author = preview.author.as_str()), Role::Dim);
        if !preview.hooks.is_empty() {
            add(&t!("commit-hooks", hooks = preview.hooks.join(", ")), Role::Waiting);
        }
        if preview.is_signed {
            add(t!("commit-signs"), Role::Waiting);
        }
        match preview.note.as_str() {
            "off" => {}
            level => {
                add(t!("commit-note"), Role::Dim);
                let is_full = level == "full";
                let holds = if is_full {
                    t!("commit-note-full")
                } else {
                    t!("commit-note-short")
                };
                add(holds, Role::Dim);
            }
        }
        add(t!("commit-no-push"), Role::Dim);
        rows
    }

    fn title(&self) -> String {
        let Some(preview) = self.preview.as_ref().filter(|it| it.problem.is_empty()) else {
            return t!("commit-title").to_owned();
        };
        let (hunks, files) = (preview.hunks, preview.files.len());
        match &preview.branch {
            Some(branch) => t!(
                "commit-title-branch",
                hunks = hunks,
                files = files,
                branch = branch.as_str()
            ),
            None => t!("commit-title-detached", hunks = hunks, files = files),
        }
    }
}

/// Closes the card after a commit, with the review below it; else shows why there is none, and the facts as they are now.
fn done(app: &mut App, id: &Arc<()>, outcome: CommitOutcome) -> Vec<Effect> {
    let commits = &mut app.conversation.commits;
    commits.running = commits.running.saturating_sub(1);
    commits.has_warned = false;
    let Some(commit) = outcome.commit else {
        let Some(card) = CommitCard::find(app, id) else {
            return app.toast(format!("{} {}", t!("commit-failed"), outcome.output));
        };
        card.stage = Stage::Failed(outcome.output);
        return vec![CommitCard::look(Arc::clone(id), card.documents.clone())];
    };
    app.conversation.commits.message = None;
    if app.overlays.close::<CommitCard>(|it| Arc::ptr_eq(&it.id, id)) {
        app.overlays.close::<Review>(|_| true);
    }
    // The conversation says that it is done; this is what hooks say beyond that.
    if outcome.output.is_empty() {
        return Vec::new();
    }
    let short = commit.get(..8).unwrap_or(&commit);
    app.toast(t!("commit-done-said", commit = short, said = outcome.output))
}

impl Overlay for CommitCard {
    fn key(&mut self, event: KeyEvent, scene: &Scene<'_>) -> Answer {
        let ctrl = event.modifiers.contains(KeyModifiers::CONTROL);
        let breaks = event
            .modifiers
            .intersects(KeyModifiers::ALT | KeyModifiers::SHIFT | KeyModifiers::CONTROL);
        match event.code {
            KeyCode::Esc => return Answer::Close,
            KeyCode::Char('c') if ctrl => return Answer::Close,
            KeyCode::PageDown => self.top += 5,
            KeyCode::PageUp => self.top = self.top.saturating_sub(5),
            KeyCode::Enter if !breaks => return self.commit(scene.now_ms),
            _ if self.stage == Stage::Committing => {}
            KeyCode::Enter => self.message.newline(),
            KeyCode::Char('j') if ctrl => self.message.newline(),
            _ => {
                self.message.key(event);
            }
        }
        Answer::Taken
    }

    fn paste(&mut self, text: &str) -> Option<Answer> {
        if self.stage == Stage::Committing {
            return None;
        }
        self.message.paste(text);
        Some(Answer::Taken)
    }

    fn closed(&self, app: &mut App) {
        app.conversation.commits.message = self.is_edited().then(|| self.message.text());
    }

    fn wheel(&mut self, by: isize) {
        self.top = self.top.saturating_add_signed(by * 3);
    }

    fn render(&mut self, area: Rect, buf: &mut Buffer, _: &mut Links, scene: &Scene<'_>) {
        let area = Rect {
            width: area.width.min(COLUMNS),
            ..area
        };
        let theme = scene.theme;
        let title = StyledLine::of([Span::new(Sanitized::line(&self.title()), Role::Strong).bold()]);
        let rest = frame::lines(area, buf, &[title], theme);
        let inner = rest.width.saturating_sub(4).max(1);
        let rows = self.message.rows(inner).clamp(1, MESSAGE_ROWS);
        let boxed = Rect {
            height: (rows + 2).min(rest.height),
            ..rest
        };
        let state = if self.is_writing { t!("commit-writing") } else { "" };
        let label = format!(" {} ", t!("commit-message"));
        let bottom = if state.is_empty() {
            String::new()
        } else {
            format!(" {state} ")
        };
        let inside = frame::frame(boxed, buf, &label, &bottom, theme);
        let field = Rect {
            x: inside.x + 1,
            width: inside.width.saturating_sub(2),
            ..inside
        };
        self.caret = None;
        if field.width > 0 && field.height > 0 {
            let style = theme.style(Role::Text, Modifier::NONE, Background::Plain);
            let drawn = self.message.draw(field.width, field.height, style);
            drawn.copy(field, buf);
            let (x, y) = drawn.caret;
            self.caret = Some(Position::new(field.x + x, field.y + y));
        }
        let below = Rect {
            y: boxed.bottom(),
            height: rest.bottom().saturating_sub(boxed.bottom()),
            ..rest
        };
        let facts = self.facts(usize::from(below.width));
        self.top = self.top.min(facts.len().saturating_sub(usize::from(below.height)));
        frame::lines(below, buf, facts.get(self.top..).unwrap_or_default(), theme);
    }

    fn caret(&self, _: Rect) -> Option<Position> {
        self.caret
    }

    fn placeholder(&self) -> &'static str {
        t!("composer-on-message")
    }

    fn hints(&self) -> Vec<(&'static str, &'static str)> {
        let can = self.preview.as_ref().is_some_and(|it| it.problem.is_empty());
        let mut hints = Vec::new();
        if can && self.stage != Stage::Committing {
            hints.push(("enter", t!("footer-commit")));
            hints.push(("alt+enter", t!("footer-newline")));
        }
        hints.push(("esc", t!("footer-back")));
        hints
    }

    fn spoken(&self, shown: &Buffer) -> (Vec<String>, Option<&'static str>) {
        (spoken::drawn(shown), Some(t!("plain-how-commit")))
    }

    fn keys_of(&mut self, line: &str, _: bool) -> Result<Vec<KeyCode>, String> {
        if matches!(line, "" | "enter") {
            return Ok(vec![KeyCode::Enter]);
        }
        self.message.set(line);
        Ok(Vec::new())
    }
}
