//! The conversations that are kept: a list that what is typed narrows, by title and by what was said, and how each ended.

use std::collections::HashMap;

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use super::{
    Answer, Choice,
    picker::{caret_in, heading},
};
use crate::{
    say,
    text::{Clean, Ground, Mark, Role, Row, Span, figure::Age, width, wrap::wrap},
    tui::{
        draft::Draft,
        effect::Effect,
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
    at: usize,
    top: usize,
    height: usize,
    now_ms: u64,
    pub rows: Vec<Row>,
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
            at: 0,
            top: 0,
            height: 1,
            now_ms,
            rows: Vec::new(),
        };
        sessions.sift();
        sessions
    }

    /// The list has changed.
    pub fn renew(&mut self, kept: Vec<Kept>) {
        let at = self.at;
        self.kept = kept;
        self.sift();
        // What was removed leaves its place to the next one.
        self.at = at.min(self.passing.len().saturating_sub(1));
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
        self.kept.get(*self.passing.get(self.at)?)
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
        self.at = self.passing.iter().position(is_here).unwrap_or_default();
    }

    pub fn key(&mut self, event: KeyEvent) -> Answer {
        let ctrl = event.modifiers.contains(KeyModifiers::CONTROL);
        let last = self.passing.len().saturating_sub(1);
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
            KeyCode::Up => self.at = self.at.saturating_sub(1),
            KeyCode::Char('p') if ctrl => self.at = self.at.saturating_sub(1),
            KeyCode::Down => self.at = (self.at + 1).min(last),
            KeyCode::Char('n') if ctrl => self.at = (self.at + 1).min(last),
            KeyCode::PageUp => self.at = self.at.saturating_sub(self.height),
            KeyCode::PageDown => self.at = (self.at + self.height).min(last),
            KeyCode::Home => self.at = 0,
            KeyCode::End => self.at = last,
            KeyCode::Tab => {
                self.is_everywhere = !self.is_everywhere;
                self.sift();
            }
            KeyCode::Char('u') if ctrl => {
                self.typed.take(0..self.typed.text().len());
                return self.look();
            }
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

    /// Column of the caret in the first row.
    pub fn caret(&self, columns: usize) -> usize {
        // Without the frame that a list has before its heading.
        caret_in(say!("sessions-title"), &self.typed, columns) - 2
    }

    pub fn wheel(&mut self, by: isize) {
        let last = self.passing.len().saturating_sub(1);
        self.at = self.at.saturating_add_signed(by).min(last);
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

    pub fn lay_out(&mut self, columns: usize, height: usize) {
        self.rows.clear();
        let is_wide = columns >= WIDE;
        let left = if is_wide { columns * 9 / 20 } else { columns };
        let below = if is_wide || height < BELOW + 6 { 0 } else { BELOW };
        self.height = height.saturating_sub(2 + below).max(1);
        self.top = self.top.min(self.at).max((self.at + 1).saturating_sub(self.height));
        self.rows.push(self.head(columns));
        self.rows.push(Row::default());
        let right = columns.saturating_sub(left + 3);
        let preview = self.preview(if is_wide { right } else { columns.saturating_sub(2) });
        for n in 0..self.height {
            let mut row = match self.passing.get(self.top + n).and_then(|it| self.kept.get(*it)) {
                Some(it) => self.line(it, self.top + n == self.at, left),
                None if n == 0 => Row::of([Span::new(Clean::literal(self.nothing()), Role::Dim)]),
                None => Row::default(),
            };
            if is_wide {
                let used: usize = row.spans.iter().map(|it| width::width(&it.text)).sum();
                let blank = " ".repeat((left + 1).saturating_sub(used));
                row.spans.push(Span::new(Clean::new(&blank), Role::Text));
                row.spans.push(Span::new(Clean::literal("│ "), Role::Rule));
                row.spans
                    .extend(preview.get(n).into_iter().flat_map(|it| it.spans.iter().cloned()));
            }
            self.rows.push(row);
        }
        if below > 0 {
            self.rows
                .push(Row::of([Span::new(Clean::new(&"─".repeat(columns)), Role::Rule)]));
            self.rows.extend(preview.into_iter().take(below - 1));
        }
    }

    fn nothing(&self) -> &'static str {
        match (self.kept.is_empty(), self.is_everywhere) {
            (true, _) => say!("sessions-none"),
            (false, true) => say!("list-nothing"),
            (false, false) => say!("sessions-none-here"),
        }
    }

    fn head(&self, columns: usize) -> Row {
        let scope = match (self.is_everywhere, self.with_archived) {
            (true, false) => say!("sessions-everywhere"),
            (true, true) => say!("sessions-everywhere-archived"),
            (false, false) => say!("sessions-here"),
            (false, true) => say!("sessions-here-archived"),
        };
        let count = self.passing.len();
        let facts = say!(
            "sessions-facts",
            scope = scope,
            at = (self.at + 1).min(count),
            count = count
        );
        let typed = if self.doomed.is_some() {
            say!("sessions-doomed").to_owned()
        } else {
            heading(say!("sessions-title"), &self.typed).trim_start().to_owned()
        };
        let typed = Clean::line(&typed);
        let room = columns.saturating_sub(width::width(&facts) + 1);
        let typed = width::pad(&width::cut_end(&typed, room), room + 1);
        Row::of([
            Span::new(Clean::new(&typed), Role::Accent).marked(Mark::BOLD),
            Span::new(Clean::line(&facts), Role::Dim),
        ])
    }

    fn line(&self, it: &Kept, is_here: bool, columns: usize) -> Row {
        let ground = if is_here { Ground::Selection } else { Ground::Plain };
        let mark = if is_here { Mark::BOLD } else { Mark::NONE };
        let ago = ago(self.now_ms.saturating_sub(it.changed));
        let facts = format!(" {}", width::pad_start(&ago, 9));
        let room = columns.saturating_sub(width::width(&facts) + 2);
        let title = if it.title.is_empty() {
            say!("sessions-untitled")
        } else {
            &it.title
        };
        let (about, role) = match self.found.get(&it.id) {
            Some(line) if !self.found_for.is_empty() => (line.as_str(), Role::Text),
            Some(_) | None => (it.elsewhere.as_str(), Role::Faint),
        };
        let title = width::cut_end(&Clean::line(title), room);
        let rest = room.saturating_sub(width::width(&title) + 2);
        let marked;
        let about = if it.is_archived {
            marked = format!("{}  {about}", say!("sessions-archived"));
            marked.as_str()
        } else {
            about
        };
        let about = if about.is_empty() || rest < 8 {
            String::new()
        } else {
            format!("  {}", width::cut_end(&Clean::line(about), rest))
        };
        let about = width::pad(&about, room.saturating_sub(width::width(&title)));
        Row::of([
            Span::new(Clean::literal(if is_here { "› " } else { "  " }), Role::Accent).on(ground),
            Span::new(Clean::new(&title), Role::Text).marked(mark).on(ground),
            Span::new(Clean::new(&about), role).on(ground),
            Span::new(Clean::line(&facts), Role::Faint).on(ground),
        ])
    }

    fn preview(&self, columns: usize) -> Vec<Row> {
        let mut rows = Vec::new();
        if let Some(it) = self.here() {
            let place = if it.elsewhere.is_empty() {
                say!("sessions-here")
            } else {
                &it.elsewhere
            };
            let facts = say!("sessions-turns", place = place, count = it.turns);
            let facts = width::cut_end(&Clean::line(&facts), columns);
            rows.push(Row::of([Span::new(Clean::new(&facts), Role::Faint)]));
            rows.push(Row::default());
        }
        let said = self.here().and_then(|it| self.previews.get(&it.id));
        for it in said.into_iter().flatten() {
            let (lead, role) = if it.is_message {
                ("▌ ", Role::User)
            } else {
                ("  ", Role::Text)
            };
            let lead = [Span::new(Clean::literal(lead), Role::User)];
            for line in it.text.lines() {
                let content = [Span::new(Clean::line(line), role)];
                rows.extend(wrap(&content, columns.max(8), &lead, &lead));
            }
            rows.push(Row::default());
        }
        rows
    }
}

/// How long ago a conversation was changed, as the reader says it.
fn ago(milliseconds: u64) -> Clean {
    Clean::new(&match Age::of(milliseconds) {
        Age::Now => return Clean::literal(say!("ago-now")),
        Age::Minutes(count) => say!("ago-minutes", count = count),
        Age::Hours(count) => say!("ago-hours", count = count),
        Age::Days(count) => say!("ago-days", count = count),
        Age::Months(count) => say!("ago-months", count = count),
        Age::Years(count) => say!("ago-years", count = count),
    })
}
