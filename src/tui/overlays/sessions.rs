//! The saved conversations: a list that is filtered by title and content, and a preview.

use std::collections::HashMap;

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use ratatui::{
    buffer::Buffer,
    layout::{Position, Rect},
    widgets::StatefulWidget,
};

use super::frame::{self, caret_in, heading};
use crate::{
    locale::figure,
    protocol::Document,
    t,
    text::{Modifier, Role, Sanitized, Span, StyledLine, figure::Age, width},
    tui::{
        app::{Answer, Choice, Effect, Overlay, Scene},
        editor::draft::Draft,
        image::Images,
        library::{SessionPreview, StoredSession},
        spoken,
        terminal::surface::Links,
        widgets::{
            list::{ListCursor, ListWidget, bold_if},
            message_text,
            transcript::{Pane, TranscriptContext, TranscriptWidget, local_time},
        },
    },
};

/// Columns from which on the preview stands beside the list.
const WIDE: usize = 100;

/// Rows of a preview that stands below the list, with its rule.
const BELOW: usize = 10;

/// Columns before the content of a preview, for addresses and signs.
const GUTTER: usize = 7;

/// Lines of a message or a document that are read aloud.
const SPOKEN_LINES: usize = 3;

/// Letters from which on the contents are searched, too.
const LEAST_WORD: usize = 2;

/// The list of saved conversations.
pub struct Sessions {
    all: Vec<StoredSession>,
    filter: Draft,
    hits: ContentHits,
    /// The ends of conversations, by id.
    previews: HashMap<String, DrawnPreview>,
    scope: SessionScope,
    /// The id of the one that ctrl+d deletes.
    doomed: Option<String>,
    /// Indices of those that pass the filter.
    passing: Vec<usize>,
    cursor: ListCursor,
    now_ms: u64,
}

/// A preview, and the pane that draws its end as the conversation itself does.
struct DrawnPreview {
    preview: SessionPreview,
    pane: Pane,
}

/// The conversations whose content has the words of the filter.
#[derive(Default)]
struct ContentHits {
    /// A line with the words, by id.
    lines: HashMap<String, String>,
    words: String,
}

/// The conversations that are listed at all.
#[derive(Clone, Copy)]
struct SessionScope {
    /// Those of other folders, too.
    is_everywhere: bool,
    /// Archived ones, too.
    with_archived: bool,
}

impl Sessions {
    pub fn new(sessions: Vec<StoredSession>, now_ms: u64) -> Self {
        let mut list = Self {
            filter: Draft::default(),
            hits: ContentHits::default(),
            previews: HashMap::new(),
            scope: SessionScope {
                is_everywhere: sessions.iter().all(|it| !it.elsewhere.is_empty()),
                with_archived: false,
            },
            doomed: None,
            passing: Vec::new(),
            cursor: ListCursor::new(0),
            now_ms,
            all: sessions,
        };
        list.sift();
        list
    }

    /// Replaces the list. The entry after a deleted one takes its place.
    pub fn renew(&mut self, sessions: Vec<StoredSession>) {
        let at = self.cursor.at;
        self.all = sessions;
        self.sift();
        self.cursor.at = at.min(self.passing.len().saturating_sub(1));
    }

    /// The id of the conversation under the cursor, if its preview is missing.
    pub fn wanting(&self) -> Option<String> {
        let here = self.here()?;
        (!self.previews.contains_key(&here.id)).then(|| here.id.clone())
    }

    pub fn show(&mut self, id: String, preview: SessionPreview) {
        let mut pane = Pane::default();
        pane.list(0, &preview.end);
        self.previews.insert(id, DrawnPreview { preview, pane });
    }

    /// Takes the results of a search, if the filter still has these words.
    pub fn take(&mut self, words: &str, found: Vec<(String, String)>) {
        if words == self.filter.text() {
            self.hits = ContentHits {
                lines: found.into_iter().collect(),
                words: words.to_owned(),
            };
            self.sift();
        }
    }

    fn entry(&self, at: usize) -> Option<&StoredSession> {
        self.all.get(*self.passing.get(at)?)
    }

    fn here(&self) -> Option<&StoredSession> {
        self.entry(self.cursor.at)
    }

    fn sift(&mut self) {
        let here = self.here().map(|it| it.id.clone());
        let filter = self.filter.text().to_lowercase();
        let words: Vec<&str> = filter.split_whitespace().collect();
        let passes = |it: &StoredSession| {
            let label = format!("{} {}", it.title, it.elsewhere).to_lowercase();
            let is_named = words.iter().all(|word| label.contains(word));
            (self.scope.with_archived || !it.is_archived)
                && (self.scope.is_everywhere || it.elsewhere.is_empty())
                && (is_named || self.hits.lines.contains_key(&it.id))
        };
        let passing = self.all.iter().enumerate().filter(|it| passes(it.1));
        self.passing = passing.map(|it| it.0).collect();
        let is_here = |at: &usize| self.all.get(*at).map(|it| &it.id) == here.as_ref();
        self.cursor.at = self.passing.iter().position(is_here).unwrap_or_default();
    }

    /// Lists and searches anew after a change of the filter.
    fn look(&mut self) -> Answer {
        self.hits.lines.clear();
        self.sift();
        if self.filter.text().trim().chars().count() >= LEAST_WORD {
            return Answer::Does(Effect::FindSessions(self.filter.text().into_owned()));
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
        match (self.all.is_empty(), self.scope.is_everywhere) {
            (true, _) => t!("sessions-none"),
            (false, true) => t!("list-nothing"),
            (false, false) => t!("sessions-none-here"),
        }
    }

    fn head(&self, columns: usize) -> StyledLine {
        let scope = match (self.scope.is_everywhere, self.scope.with_archived) {
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
            heading(t!("sessions-title"), &self.filter).trim_start().to_owned()
        };
        let typed = Sanitized::line(&typed);
        let room = columns.saturating_sub(width::width(&facts) + 1);
        let typed = width::pad(&width::cut_end(&typed, room), room + 1);
        StyledLine::of([
            Span::new(Sanitized::new(&typed), Role::Accent).modified(Modifier::BOLD),
            Span::new(Sanitized::line(&facts), Role::Dim),
        ])
    }

    fn line(&self, it: &StoredSession, is_here: bool, columns: usize) -> Vec<Span> {
        let facts = format!(" {}", width::pad_start(&ago(self.now_ms.saturating_sub(it.changed)), 9));
        let room = columns.saturating_sub(width::width(&facts));
        let title = if it.title.is_empty() {
            t!("sessions-untitled")
        } else {
            &it.title
        };
        let (about, role) = match self.hits.lines.get(&it.id) {
            Some(line) if !self.hits.words.is_empty() => (line.as_str(), Role::Text),
            Some(_) | None => (it.elsewhere.as_str(), Role::Faint),
        };
        let marks = [
            (it.is_open, t!("list-in-use")),
            (it.is_archived, t!("sessions-archived")),
        ];
        let marks = marks.into_iter().filter(|it| it.0).map(|it| it.1);
        let parts = marks.chain([about]).filter(|it| !it.is_empty());
        let about = parts.collect::<Vec<_>>().join("  ");
        let title = width::cut_end(&Sanitized::line(title), room);
        let left = room.saturating_sub(width::width(&title));
        let about = if about.is_empty() || left < 10 {
            String::new()
        } else {
            format!("  {}", width::cut_end(&Sanitized::line(&about), left - 2))
        };
        vec![
            Span::new(Sanitized::new(&title), Role::Text).modified(bold_if(is_here)),
            Span::new(Sanitized::new(&width::pad(&about, left)), role),
            Span::new(Sanitized::line(&facts), Role::Faint),
        ]
    }

    /// Two lines about the conversation under the cursor: model and branches; folder, size and date.
    fn facts(&self, columns: usize) -> Vec<StyledLine> {
        let Some(it) = self.here() else {
            return Vec::new();
        };
        let place = if it.elsewhere.is_empty() {
            t!("sessions-here")
        } else {
            &it.elsewhere
        };
        let mut about = Vec::new();
        let mut where_and_when = vec![t!("sessions-turns", place = place, count = it.turns)];
        if let Some(DrawnPreview { preview, .. }) = self.previews.get(&it.id) {
            about.extend(preview.model.clone());
            about.extend(
                preview
                    .branch
                    .as_ref()
                    .map(|it| t!("sessions-git-branch", name = it.as_str())),
            );
            let branches = preview.branches;
            about.extend((branches > 1).then(|| t!("sessions-branches", count = branches)));
            where_and_when.push(figure::bytes(preview.bytes).to_string());
            where_and_when.extend(local_time(preview.created, "%Y-%m-%d %H:%M").filter(|_| preview.created > 0));
        }
        let line = |parts: &[String], role| {
            let text = width::cut_end(&Sanitized::line(&parts.join("  ")), columns);
            StyledLine::of([Span::new(Sanitized::new(&text), role)])
        };
        let lines = [line(&about, Role::Dim), line(&where_and_when, Role::Faint)];
        lines.into_iter().filter(|it| !it.plain().is_empty()).collect()
    }

    /// Draws facts and the end of the conversation under the cursor.
    fn draw_preview(&mut self, area: Rect, buf: &mut Buffer, scene: &Scene<'_>) {
        let facts = self.facts(usize::from(area.width));
        let rest = frame::lines(area, buf, &facts, scene.theme);
        // A blank line between, where there is room.
        let [_, rest] = frame::cut(rest, u16::from(rest.height > 4));
        let here = self.here().map(|it| it.id.clone());
        let Some(drawn) = here.and_then(|it| self.previews.get_mut(&it)) else {
            return;
        };
        let gutter = GUTTER.min(usize::from(rest.width) / 4);
        let context = TranscriptContext {
            transcript: &drawn.preview.end,
            forms: &HashMap::new(),
            cited: &HashMap::new(),
            colours: scene.colours,
            colours_version: scene.colours_version,
            now_ms: scene.now_ms,
            width: usize::from(rest.width).saturating_sub(gutter + 1).max(1),
            show_thinking: false,
            has_focus: false,
            context_lines: scene.context_lines,
            output_rows: scene.output_rows,
            root: None,
            images: &Images::default(),
            has_nerd_font: false,
            theme: scene.theme,
            review_key: None,
            is_preview: true,
            builds_plans: false,
        };
        drawn.pane.measure(&context, usize::from(rest.height));
        let widget = TranscriptWidget {
            context: &context,
            lights: &[],
            gutter,
            beside: 0,
            show_times: false,
            offset: 0,
        };
        widget.render(rest, buf, &mut drawn.pane);
    }

    /// The end of the conversation under the cursor as plain lines.
    fn spoken_preview(&self, columns: usize) -> Vec<StyledLine> {
        let mut rows = self.facts(columns);
        let drawn = self.here().and_then(|it| self.previews.get(&it.id));
        for exchange in drawn.iter().flat_map(|it| &it.preview.end.exchanges) {
            let message = exchange.message.as_ref().map(message_text);
            let last = exchange.response.documents.iter().rev().map(Document::plain_text);
            let last = last.into_iter().find(|it| !it.trim().is_empty());
            for text in [message, last].into_iter().flatten() {
                let lines = text.lines().filter(|it| !it.trim().is_empty()).take(SPOKEN_LINES);
                rows.extend(lines.map(|it| StyledLine::of([Span::new(Sanitized::line(it), Role::Text)])));
            }
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
                self.scope.with_archived = !self.scope.with_archived;
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
                self.scope.is_everywhere = !self.scope.is_everywhere;
                self.sift();
            }
            KeyCode::Char('u') if ctrl => {
                self.filter.take_all();
                return self.look();
            }
            _ if self.cursor.key(event, self.passing.len()) => {}
            _ => {
                let before = self.filter.text().into_owned();
                if self.filter.edit(event) && before != self.filter.text() {
                    return self.look();
                }
                return Answer::Taken;
            }
        }
        self.wanted()
    }

    fn paste(&mut self, text: &str) -> Option<Answer> {
        self.doomed = None;
        self.filter.insert(&Sanitized::line(text));
        Some(self.look())
    }

    fn wheel(&mut self, by: isize) {
        self.cursor.step(by, self.passing.len());
    }

    fn list(&self) -> Option<&ListCursor> {
        Some(&self.cursor)
    }

    fn render(&mut self, area: Rect, buf: &mut Buffer, _: &mut Links, scene: &Scene<'_>) {
        let (columns, theme) = (usize::from(area.width), scene.theme);
        let rest = frame::lines(area, buf, &[self.head(columns), StyledLine::blank()], theme);
        let lines = usize::from(rest.height);
        let (list, preview) = if columns >= WIDE {
            let [list, preview] = frame::beside(rest, columns * 9 / 20, buf, Role::Rule, theme);
            (list, preview)
        } else if lines + 2 < BELOW + 6 {
            (rest, Rect::ZERO)
        } else {
            let [list, preview] = frame::below(rest, lines - BELOW, buf, Role::Rule, theme);
            (list, preview)
        };
        let mut cursor = self.cursor;
        let widget = ListWidget {
            count: self.passing.len(),
            sign: "› ",
            is_active: true,
            line: |at, is_here, columns| match self.entry(at) {
                Some(it) => self.line(it, is_here, columns),
                None => Vec::new(),
            },
            theme,
        };
        widget.render(list, buf, &mut cursor);
        self.cursor = cursor;
        if self.passing.is_empty() {
            let nothing = Span::new(Sanitized::literal(self.nothing()), Role::Dim);
            frame::lines(list, buf, &[StyledLine::of([nothing])], theme);
        }
        if !preview.is_empty() {
            self.draw_preview(preview, buf, scene);
        }
    }

    fn caret(&self, area: Rect) -> Option<Position> {
        // Without the frame that a list has before its heading.
        let x = caret_in(t!("sessions-title"), &self.filter, area.width) - 2;
        Some(Position::new(area.x + x, area.y))
    }

    fn spoken(&self, shown: &Buffer) -> (Vec<String>, Option<&'static str>) {
        let columns = usize::from(shown.area.width);
        let entries = (0..self.passing.len()).take(self.cursor.height);
        let entries = entries.filter_map(|at| {
            let sign = if at == self.cursor.at { "› " } else { "  " };
            let mut spans = vec![Span::new(sign, Role::Accent)];
            spans.extend(self.line(self.entry(at)?, false, columns.saturating_sub(2)));
            Some(StyledLine::of(spans))
        });
        let lines = std::iter::once(self.head(columns)).chain(entries);
        let preview = self.spoken_preview(columns).into_iter().take(BELOW - 1);
        let lines: Vec<_> = lines.chain(preview).collect();
        (spoken::lines(&lines), Some(t!("plain-how-keys")))
    }

    fn hints(&self) -> Vec<(&'static str, &'static str)> {
        let has_one = self.here().is_some();
        let hints = [
            (has_one, "enter", t!("footer-take-up")),
            (has_one, "↑↓", t!("footer-move")),
            (true, t!("footer-letters"), t!("footer-find")),
            (true, "tab", t!("footer-folder-or-everywhere")),
            (has_one, "ctrl+a", t!("footer-archive")),
            (true, "ctrl+t", t!("footer-archived-too")),
            (has_one, "ctrl+d", t!("footer-remove")),
            (true, "esc", t!("footer-back")),
        ];
        let works = hints.into_iter().filter(|it| it.0);
        works.map(|(_, key, word)| (key, word)).collect()
    }
}

/// Returns an age in words.
fn ago(milliseconds: u64) -> Sanitized {
    Sanitized::new(&match Age::of(milliseconds) {
        Age::Now => return Sanitized::literal(t!("ago-now")),
        Age::Seconds(count) => t!("ago-seconds", count = count),
        Age::Minutes(count) => t!("ago-minutes", count = count),
        Age::Hours(count) => t!("ago-hours", count = count),
        Age::Days(count) => t!("ago-days", count = count),
        Age::Months(count) => t!("ago-months", count = count),
        Age::Years(count) => t!("ago-years", count = count),
    })
}
