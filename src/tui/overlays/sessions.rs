//! The conversations that are kept: a list that what is typed narrows, by title and by what was said, and how each ended.

use std::collections::HashMap;

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use super::{
    Answer, Choice, ListCursor, Overlay, Scene,
    picker::{caret_in, heading},
};
use crate::{
    t,
    text::{Background, Modifier, Role, Sanitized, Span, StyledLine, figure::Age, width, wrap::wrap},
    tui::{
        app::Effect,
        editor::draft::Draft,
        library::{Kept, Said},
    },
};

/// From so many columns on the preview stands beside the list.
const WIDE: usize = 100;

/// Rows of a preview that stands below it.
const BELOW: usize = 8;

/// Fewer letters are looked for in titles only.
const LEAST_WORD: usize = 2;

pub struct Sessions {
    kept: Vec<Kept>,
    typed: Draft,
    /// What was said where the words were found, by id, and the words.
    found: HashMap<String, String>,
    found_for: String,
    previews: HashMap<String, Vec<Said>>,
    /// Conversations about other folders are listed, too.
    is_everywhere: bool,
    /// So are those that are archived.
    with_archived: bool,
    /// The one that is removed when the key comes once more.
    doomed: Option<String>,
    /// Indices of those that pass.
    passing: Vec<usize>,
    cursor: ListCursor,
    now_ms: u64,
    rows: Vec<StyledLine>,
}

impl Sessions {
    pub fn new(kept: Vec<Kept>, now_ms: u64) -> Self {
        let is_everywhere = kept.iter().all(|it| !it.elsewhere.is_empty());
        let mut sessions = Self {
            kept,
            typed: Draft::default(),
            found: HashMap::new(),
            found_for: String::new(),
            previews: HashMap::new(),
            is_everywhere,
            with_archived: false,
            doomed: None,
            passing: Vec::new(),
            cursor: ListCursor::new(0),
            now_ms,
            rows: Vec::new(),
        };
        sessions.sift();
        sessions
    }

    /// The list has changed.
    pub fn renew(&mut self, kept: Vec<Kept>) {
        let at = self.cursor.at;
        self.kept = kept;
        self.sift();
        // What was removed leaves its place to the next one.
        self.cursor.at = at.min(self.passing.len().saturating_sub(1));
    }

    /// The conversation that a preview is missing of.
    pub fn wanting(&self) -> Option<String> {
        let here = self.here()?;
        (!self.previews.contains_key(&here.id)).then(|| here.id.clone())
    }

    pub fn show(&mut self, id: String, said: Vec<Said>) {
        self.previews.insert(id, said);
    }

    /// Takes what was found, if it is still looked for.
    pub fn take(&mut self, words: &str, found: Vec<(String, String)>) {
        if words == self.typed.text() {
            self.found = found.into_iter().collect();
            words.clone_into(&mut self.found_for);
            self.sift();
        }
    }

    fn here(&self) -> Option<&Kept> {
        self.kept.get(*self.passing.get(self.cursor.at)?)
    }

    fn sift(&mut self) {
        let here = self.here().map(|it| it.id.clone());
        let typed = self.typed.text().to_lowercase();
        let words: Vec<&str> = typed.split_whitespace().collect();
        let passes = |it: &Kept| {
            let label = format!("{} {}", it.title, it.elsewhere).to_lowercase();
            let is_named = words.iter().all(|word| label.contains(word));
            let is_wanted = self.with_archived || !it.is_archived;
            is_wanted
                && (self.is_everywhere || it.elsewhere.is_empty())
                && (is_named || self.found.contains_key(&it.id))
        };
        self.passing = (0..self.kept.len())
            .filter(|at| self.kept.get(*at).is_some_and(passes))
            .collect();
        let is_here = |at: &usize| self.kept.get(*at).map(|it| &it.id) == here.as_ref();
        self.cursor.at = self.passing.iter().position(is_here).unwrap_or_default();
    }

    /// What is typed has changed.
    fn look(&mut self) -> Answer {
        self.found.clear();
        self.sift();
        if self.typed.text().trim().chars().count() >= LEAST_WORD {
            return Answer::Does(Effect::FindSessions(self.typed.text().to_owned()));
        }
        self.wanted()
    }

    fn wanted(&self) -> Answer {
        match self.wanting() {
            Some(id) => Answer::Does(Effect::PreviewSession(id)),
            None => Answer::Taken,
        }
    }

    fn nothing(&self) -> &'static str {
        match (self.kept.is_empty(), self.is_everywhere) {
            (true, _) => t!("sessions-none"),
            (false, true) => t!("list-nothing"),
            (false, false) => t!("sessions-none-here"),
        }
    }

    fn head(&self, columns: usize) -> StyledLine {
        let scope = match (self.is_everywhere, self.with_archived) {
            (true, false) => t!("sessions-everywhere"),
            (true, true) => t!("sessions-everywhere-archived"),
            (false, false) => t!("sessions-here"),
            (false, true) => t!("sessions-here-archived"),
        };
        let count = self.passing.len();
        let facts = t!(
            "sessions-facts",
            scope = scope,
            at = (self.cursor.at + 1).min(count),
            count = count
        );
        let typed = if self.doomed.is_some() {
            t!("sessions-doomed").to_owned()
        } else {
            heading(t!("sessions-title"), &self.typed).trim_start().to_owned()
        };
        let typed = Sanitized::line(&typed);
        let room = columns.saturating_sub(width::width(&facts) + 1);
        let typed = width::pad(&width::cut_end(&typed, room), room + 1);
        StyledLine::of([
            Span::new(Sanitized::new(&typed), Role::Accent).modified(Modifier::BOLD),
            Span::new(Sanitized::line(&facts), Role::Dim),
        ])
    }

    fn line(&self, it: &Kept, is_here: bool, columns: usize) -> StyledLine {
        let ground = if is_here {
            Background::Selection
        } else {
            Background::Plain
        };
        let mark = if is_here { Modifier::BOLD } else { Modifier::NONE };
        let ago = ago(self.now_ms.saturating_sub(it.changed));
        let facts = format!(" {}", width::pad_start(&ago, 9));
        let room = columns.saturating_sub(width::width(&facts) + 2);
        let title = if it.title.is_empty() {
            t!("sessions-untitled")
        } else {
            &it.title
        };
        let (about, role) = match self.found.get(&it.id) {
            Some(line) if !self.found_for.is_empty() => (line.as_str(), Role::Text),
            Some(_) | None => (it.elsewhere.as_str(), Role::Faint),
        };
        let title = width::cut_end(&Sanitized::line(title), room);
        let rest = room.saturating_sub(width::width(&title) + 2);
        let marked;
        let about = if it.is_archived {
            marked = format!("{}  {about}", t!("sessions-archived"));
            marked.as_str()
        } else {
            about
        };
        let about = if about.is_empty() || rest < 8 {
            String::new()
        } else {
            format!("  {}", width::cut_end(&Sanitized::line(about), rest))
        };
        let about = width::pad(&about, room.saturating_sub(width::width(&title)));
        StyledLine::of([
            Span::new(Sanitized::literal(if is_here { "› " } else { "  " }), Role::Accent).on(ground),
            Span::new(Sanitized::new(&title), Role::Text).modified(mark).on(ground),
            Span::new(Sanitized::new(&about), role).on(ground),
            Span::new(Sanitized::line(&facts), Role::Faint).on(ground),
        ])
    }

    fn preview(&self, columns: usize) -> Vec<StyledLine> {
        let mut rows = Vec::new();
        if let Some(it) = self.here() {
            let place = if it.elsewhere.is_empty() {
                t!("sessions-here")
            } else {
                &it.elsewhere
            };
            let facts = t!("sessions-turns", place = place, count = it.turns);
            let facts = width::cut_end(&Sanitized::line(&facts), columns);
            rows.push(StyledLine::of([Span::new(Sanitized::new(&facts), Role::Faint)]));
            rows.push(StyledLine::default());
        }
        let said = self.here().and_then(|it| self.previews.get(&it.id));
        for it in said.into_iter().flatten() {
            let (lead, role) = if it.is_message {
                ("▌ ", Role::User)
            } else {
                ("  ", Role::Text)
            };
            let lead = [Span::new(Sanitized::literal(lead), Role::User)];
            for line in it.text.lines() {
                let content = [Span::new(Sanitized::line(line), role)];
                rows.extend(wrap(&content, columns.max(8), &lead, &lead));
            }
            rows.push(StyledLine::default());
        }
        rows
    }
}

impl Overlay for Sessions {
    fn key(&mut self, event: KeyEvent, _: &Scene<'_>) -> Answer {
        let ctrl = event.modifiers.contains(KeyModifiers::CONTROL);
        let doomed = self.doomed.take();
        match event.code {
            KeyCode::Char('a') if ctrl => {
                return match self.here() {
                    Some(it) => Answer::Does(Effect::ArchiveSession {
                        id: it.id.clone(),
                        is_archived: !it.is_archived,
                    }),
                    None => Answer::Taken,
                };
            }
            KeyCode::Char('t') if ctrl => {
                self.with_archived = !self.with_archived;
                self.sift();
            }
            KeyCode::Char('d') if ctrl => {
                let here = self.here().map(|it| it.id.clone());
                if doomed.is_some() && doomed == here {
                    return here.map_or(Answer::Taken, |id| Answer::Does(Effect::RemoveSession(id)));
                }
                self.doomed = here;
                return Answer::Taken;
            }
            KeyCode::Esc => return Answer::Close,
            KeyCode::Char('c') if ctrl => return Answer::Close,
            KeyCode::Enter => {
                return match self.here() {
                    Some(it) => Answer::Chosen(Choice::Session(Box::new(it.clone()))),
                    None => Answer::Taken,
                };
            }
            KeyCode::Tab => {
                self.is_everywhere = !self.is_everywhere;
                self.sift();
            }
            KeyCode::Char('u') if ctrl => {
                self.typed.take(0..self.typed.text().len());
                return self.look();
            }
            _ if self.cursor.key(event, self.passing.len()) => {}
            _ => {
                let before = self.typed.text().to_owned();
                if self.typed.edit(event) && before != self.typed.text() {
                    return self.look();
                }
                return Answer::Taken;
            }
        }
        self.wanted()
    }

    fn wheel(&mut self, by: isize) {
        self.cursor.step(by, self.passing.len());
    }

    fn lay_out(&mut self, _: &Scene<'_>, columns: usize, height: usize) {
        self.rows.clear();
        let is_wide = columns >= WIDE;
        let left = if is_wide { columns * 9 / 20 } else { columns };
        let below = if is_wide || height < BELOW + 6 { 0 } else { BELOW };
        self.cursor.show(height.saturating_sub(2 + below));
        self.rows.push(self.head(columns));
        self.rows.push(StyledLine::default());
        let right = columns.saturating_sub(left + 3);
        let preview = self.preview(if is_wide { right } else { columns.saturating_sub(2) });
        for n in 0..self.cursor.height {
            let mut row = match self.passing.get(self.cursor.top + n).and_then(|it| self.kept.get(*it)) {
                Some(it) => self.line(it, self.cursor.top + n == self.cursor.at, left),
                None if n == 0 => StyledLine::of([Span::new(Sanitized::literal(self.nothing()), Role::Dim)]),
                None => StyledLine::default(),
            };
            if is_wide {
                let used: usize = row.spans.iter().map(|it| width::width(&it.text)).sum();
                let blank = " ".repeat((left + 1).saturating_sub(used));
                row.spans.push(Span::new(Sanitized::new(&blank), Role::Text));
                row.spans.push(Span::new(Sanitized::literal("│ "), Role::Rule));
                row.spans
                    .extend(preview.get(n).into_iter().flat_map(|it| it.spans.iter().cloned()));
            }
            self.rows.push(row);
        }
        if below > 0 {
            self.rows.push(StyledLine::of([Span::new(
                Sanitized::new(&"─".repeat(columns)),
                Role::Rule,
            )]));
            self.rows.extend(preview.into_iter().take(below - 1));
        }
    }

    fn rows(&self) -> &[StyledLine] {
        &self.rows
    }

    fn caret(&self, columns: usize) -> Option<(usize, usize)> {
        // Without the frame that a list has before its heading.
        Some((caret_in(t!("sessions-title"), &self.typed, columns) - 2, 0))
    }

    fn hints(&self) -> Vec<(&'static str, &'static str)> {
        vec![
            ("↑↓", t!("footer-move")),
            (t!("footer-letters"), t!("footer-find")),
            ("enter", t!("footer-take-up")),
            ("tab", t!("footer-folder-or-everywhere")),
            ("ctrl+a", t!("footer-archive")),
            ("ctrl+t", t!("footer-archived-too")),
            ("ctrl+d", t!("footer-remove")),
            ("esc", t!("footer-back")),
        ]
    }
}

/// How long ago a conversation was changed, as the reader says it.
fn ago(milliseconds: u64) -> Sanitized {
    Sanitized::new(&match Age::of(milliseconds) {
        Age::Now => return Sanitized::literal(t!("ago-now")),
        Age::Minutes(count) => t!("ago-minutes", count = count),
        Age::Hours(count) => t!("ago-hours", count = count),
        Age::Days(count) => t!("ago-days", count = count),
        Age::Months(count) => t!("ago-months", count = count),
        Age::Years(count) => t!("ago-years", count = count),
    })
}
