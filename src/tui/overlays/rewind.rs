//! Going back: the messages of the conversation, the files that each answer changed, and a preview of undoing them.
//!
//! Shows a preview from the link; nothing is undone before the user decides.

use std::collections::BTreeSet;

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use ratatui::{buffer::Buffer, layout::Rect, widgets::StatefulWidget};

use super::frame::{self, first_line};
use crate::{
    protocol::{
        FileChange, Operation, Query, Reply, Restore, RestoreConflict, RestorePreview, RestoreTarget, Turn, TurnChanges,
    },
    t,
    text::{Background, Role, Sanitized, Span, StyledLine, width},
    theme::Theme,
    transcript::Transcript,
    tui::{
        app::{Answer, Choice, Effect, Overlay, RewindTarget, Scene, TOO_EARLY_MS, effects::ask},
        terminal::surface::Links,
        widgets::{
            list::{ListCursor, ListWidget, bold_if},
            message_text,
        },
    },
};

/// Columns from which on messages and files stand beside each other.
const BESIDE: usize = 80;

/// The page of messages to go back to.
pub struct Rewind {
    stops: Vec<Stop>,
    cursor: ListCursor,
    /// The preview that came last, and the turn that it is for.
    preview: Option<(Turn, RestorePreview)>,
    /// Paths that stay as they are.
    excluded: BTreeSet<String>,
    /// The cursor in the ways to go back, after Enter; `None` before.
    way: Option<ListCursor>,
    /// The cursor in the files while it has the keys; `None`: the messages have them.
    file: Option<ListCursor>,
    /// Lines of the patch above the view.
    top: usize,
    /// When the page was opened, in milliseconds since the Unix epoch: keys that decide are ignored for a moment.
    since_ms: u64,
}

/// A way to go back to a message.
#[derive(Clone, Copy)]
struct Way {
    files: bool,
    conversation: bool,
    /// The user's later changes to these files are discarded, too.
    overwrite: bool,
}

/// A message to go back to.
struct Stop {
    turn: Turn,
    text: Sanitized,
    /// Files that the answer changed, and how many of these changes were undone.
    files: usize,
    undone: usize,
}

impl Rewind {
    /// A page with the cursor on a turn, else on the last one; `None` for a conversation without messages.
    pub fn new(transcript: &Transcript, changes: &[TurnChanges], on: Option<Turn>, now_ms: u64) -> Option<Self> {
        let stop = |it: &crate::transcript::Exchange| {
            let message = it.message.as_ref()?;
            let changed = changes.iter().find(|change| change.turn == it.turn);
            Some(Stop {
                turn: it.turn,
                text: first_line(&message_text(message)),
                files: changed.map_or(0, |it| it.paths.len()),
                undone: changed.map_or(0, |it| it.undone),
            })
        };
        let stops: Vec<Stop> = transcript.exchanges.iter().filter_map(stop).collect();
        let last = stops.len().checked_sub(1)?;
        let at = on.and_then(|on| stops.iter().position(|it| it.turn == on));
        Some(Self {
            stops,
            cursor: ListCursor::new(at.unwrap_or(last)),
            preview: None,
            excluded: BTreeSet::new(),
            way: None,
            file: None,
            top: 0,
            since_ms: now_ms,
        })
    }

    fn turn(&self) -> Turn {
        self.stops.get(self.cursor.at).map(|it| it.turn).unwrap_or_default()
    }

    /// The effect that asks for the preview of undoing all files.
    pub fn look(&self) -> Effect {
        let turn = self.turn();
        let query = Query::RestorePreview(Restore {
            target: RestoreTarget::Since(turn),
            except: Vec::new(),
            overwrite: false,
            seen: None,
        });
        ask!(query, Reply::RestorePreview, or_default, move |app, found| {
            if let Some(rewind) = app.overlays.find::<Self>(|_| true) {
                rewind.take(turn, found);
            }
            Vec::new()
        })
    }

    /// Takes a preview, if it is for the message under the cursor.
    pub fn take(&mut self, turn: Turn, preview: RestorePreview) {
        if turn == self.turn() {
            if let Some(cursor) = &mut self.file {
                cursor.step(0, preview.files.len());
            }
            self.preview = Some((turn, preview));
        }
    }

    /// The preview for the message under the cursor; `None` until it came.
    fn preview(&self) -> Option<&RestorePreview> {
        let (turn, preview) = self.preview.as_ref()?;
        (*turn == self.turn()).then_some(preview)
    }

    fn files(&self) -> &[FileChange] {
        self.preview().map_or(&[], |it| &it.files)
    }

    /// Returns true for a file that is undone.
    fn goes(&self, file: &FileChange, overwrite: bool) -> bool {
        !file.is_lost && (overwrite || file.conflict.is_none()) && !self.excluded.contains(&file.path)
    }

    /// The ways to go back to the message under the cursor, the usual one first.
    fn ways(&self) -> Vec<Way> {
        let way = |files, conversation, overwrite| Way {
            files,
            conversation,
            overwrite,
        };
        let count = |overwrite| self.files().iter().filter(|it| self.goes(it, overwrite)).count();
        let (kept, all) = (count(false), count(true));
        let mut ways = Vec::new();
        if kept > 0 {
            ways.extend([way(true, true, false), way(true, false, false)]);
        }
        ways.push(way(false, true, false));
        if all > kept {
            ways.extend([way(true, true, true), way(true, false, true)]);
        }
        ways
    }

    /// What a way does, in words.
    fn about(&self, way: Way) -> String {
        let is_file = |it: &&FileChange| !it.path.ends_with('/') && self.goes(it, way.overwrite);
        let count = self.files().iter().filter(is_file).count();
        match (way.files, way.conversation, way.overwrite) {
            (true, true, false) => t!("rewind-way-both", count = count),
            (true, false, false) => t!("rewind-way-files", count = count),
            (true, true, true) => t!("rewind-way-both-over", count = count),
            (true, false, true) => t!("rewind-way-files-over", count = count),
            (false, _, _) => t!("rewind-way-conversation").to_owned(),
        }
    }

    fn step(&mut self, by: isize) -> Answer {
        let ways = self.ways().len();
        if let Some(cursor) = &mut self.way {
            cursor.step(by, ways);
            return Answer::Taken;
        }
        self.top = 0;
        let count = self.files().len();
        if let Some(cursor) = &mut self.file {
            cursor.step(by, count);
            return Answer::Taken;
        }
        let before = self.cursor.at;
        self.cursor.step(by, self.stops.len());
        if self.cursor.at == before {
            return Answer::Taken;
        }
        self.excluded.clear();
        Answer::Does(self.look())
    }

    /// Excludes the selected file, or includes it again.
    fn toggle(&mut self) {
        let path = self
            .file
            .and_then(|it| self.files().get(it.at))
            .map(|it| it.path.clone());
        if let Some(path) = path
            && !self.excluded.remove(&path)
        {
            self.excluded.insert(path);
        }
    }

    /// Enter: leaves a file as it is, shows the ways to go back, or takes the chosen one.
    fn enter(&mut self, now_ms: u64) -> Answer {
        if self.file.is_some() {
            self.toggle();
            return Answer::Taken;
        }
        // Nothing is undone before its preview was shown.
        if self.preview().is_none() {
            return Answer::Taken;
        }
        let Some(cursor) = self.way else {
            self.way = Some(ListCursor::new(0));
            self.since_ms = now_ms;
            return Answer::Taken;
        };
        let Some(way) = self.ways().get(cursor.at).copied() else {
            return Answer::Taken;
        };
        let restore = Restore {
            target: RestoreTarget::Since(self.turn()),
            except: self
                .excluded
                .iter()
                .map(|it| it.trim_end_matches('/').to_owned())
                .collect(),
            overwrite: way.overwrite,
            seen: self.preview().map(|it| it.states.clone()),
        };
        Answer::Chosen(Choice::Rewind(RewindTarget {
            turn: self.turn(),
            files: way.files.then_some(restore),
            conversation: way.conversation,
        }))
    }

    /// Draws the ways to go back.
    fn draw_ways(&mut self, area: Rect, buf: &mut Buffer, theme: &Theme, mut cursor: ListCursor) {
        let ways = self.ways();
        let list = ListWidget {
            count: ways.len(),
            sign: "› ",
            is_active: true,
            line: |at, is_here, columns| {
                let text = ways.get(at).map(|it| self.about(*it)).unwrap_or_default();
                let text = Sanitized::new(&width::cut_end(&text, columns));
                vec![Span::new(text, Role::Text).modified(bold_if(is_here))]
            },
            theme,
        };
        let title = t!("rewind-ways", turn = self.turn().0.to_string());
        let title = StyledLine::of([Span::new(Sanitized::new(&title), Role::Dim)]);
        let rest = frame::lines(area, buf, &[title, StyledLine::blank()], theme);
        list.render(rest, buf, &mut cursor);
        self.way = Some(cursor);
    }

    fn draw_messages(&mut self, area: Rect, buf: &mut Buffer, theme: &Theme) {
        let list = ListWidget {
            count: self.stops.len(),
            sign: "› ",
            is_active: self.file.is_none(),
            line: |at, is_here, columns| match self.stops.get(at) {
                Some(stop) => message(stop, is_here, columns),
                None => Vec::new(),
            },
            theme,
        };
        list.render(area, buf, &mut self.cursor);
    }

    /// Draws the preview of all files, and the patch of the selected one.
    fn draw_preview(&mut self, area: Rect, buf: &mut Buffer, theme: &Theme) {
        if let Some(cursor) = self.way {
            return self.draw_ways(area, buf, theme, cursor);
        }
        let columns = usize::from(area.width);
        let line = |text: &str, role| StyledLine::of([Span::new(Sanitized::new(width::cut(text, columns)), role)]);
        let Some(preview) = self.preview() else {
            frame::lines(area, buf, &[line(t!("action-looking"), Role::Dim)], theme);
            return;
        };
        let files = &preview.files;
        if files.is_empty() {
            frame::lines(area, buf, &[line(t!("rewind-nothing-changed"), Role::Dim)], theme);
            return;
        }
        let is_file = |it: &&FileChange| !it.path.ends_with('/');
        let count = files.iter().filter(is_file).count();
        let going = files.iter().filter(is_file).filter(|it| self.goes(it, false)).count();
        let mut rows = vec![line(&t!("rewind-going", going = going, count = count), Role::Dim)];
        if files.iter().any(|it| it.conflict.is_some() && !it.is_lost) {
            rows.push(line(t!("rewind-not-over"), Role::Waiting));
        }
        if preview.is_partial {
            rows.push(line(t!("rewind-partial"), Role::Waiting));
        }
        rows.push(StyledLine::blank());
        let rest = frame::lines(area, buf, &rows, theme);
        let shown = usize::from(area.height / 2).max(3).min(files.len());
        let list_area = Rect {
            height: rest.height.min(shown as u16),
            ..rest
        };
        let mut cursor = self.file.unwrap_or(ListCursor::new(0));
        let is_active = self.file.is_some();
        let list = ListWidget {
            count: files.len(),
            sign: if is_active { "› " } else { "  " },
            is_active,
            line: |at, _, columns| files.get(at).map_or_else(Vec::new, |it| self.file_line(it, columns)),
            theme,
        };
        list.render(list_area, buf, &mut cursor);
        let mut below = Vec::new();
        if files.len() > shown {
            below.push(line(
                &format!("  {}", t!("rewind-in-all", count = files.len())),
                Role::Faint,
            ));
        }
        let first_text = files.iter().position(|it| !it.patch.is_empty());
        let here = self.file.map(|it| it.at).or(first_text).and_then(|it| files.get(it));
        let patch: Vec<&str> = here.map(|it| it.patch.lines().skip(2).collect()).unwrap_or_default();
        if !patch.is_empty() {
            below.push(StyledLine::blank());
        }
        let left = usize::from(rest.height - list_area.height).saturating_sub(below.len());
        let top = self.top.min(patch.len().saturating_sub(left));
        below.extend(patch.into_iter().skip(top).take(left).map(|it| patch_line(it, columns)));
        let rest = Rect::new(rest.x, list_area.bottom(), rest.width, rest.height - list_area.height);
        frame::lines(rest, buf, &below, theme);
        self.top = top;
        self.file = self.file.map(|_| cursor);
    }

    fn file_line(&self, file: &FileChange, columns: usize) -> Vec<Span> {
        let (sign, sign_role) = if self.goes(file, false) {
            match file.operation {
                Operation::Create => ("+", Role::Added),
                Operation::Delete => ("−", Role::Removed),
                _ => ("±", Role::Accent),
            }
        } else {
            ("·", Role::Faint)
        };
        let (note, role) = match file.conflict {
            _ if file.is_lost => (t!("rewind-lost").to_owned(), Role::Error),
            _ if self.excluded.contains(&file.path) => (t!("rewind-stays").to_owned(), Role::Dim),
            Some(RestoreConflict::User) => (t!("rewind-changed-since").to_owned(), Role::Waiting),
            Some(RestoreConflict::Turn(turn)) => (t!("rewind-changed-in", turn = turn.0.to_string()), Role::Waiting),
            None if file.operation == Operation::Create => (t!("rewind-comes-back").to_owned(), Role::Dim),
            None if file.operation == Operation::Delete => (t!("rewind-goes").to_owned(), Role::Dim),
            None if file.added + file.removed == 0 => (t!("rewind-mode").to_owned(), Role::Dim),
            None => (format!("+{} −{}", file.added, file.removed), Role::Dim),
        };
        let room = columns.saturating_sub(2 + 2 + width::width(&note));
        let path = width::pad(&width::cut_start(&Sanitized::line(&file.path), room), room);
        vec![
            Span::new(Sanitized::literal(sign), sign_role),
            Span::new(Sanitized::new(&format!(" {path}  ")), Role::Text),
            Span::new(Sanitized::new(&note), role),
        ]
    }
}

fn message(stop: &Stop, is_here: bool, columns: usize) -> Vec<Span> {
    let facts = match (stop.files, stop.undone) {
        (0, _) => Sanitized::default(),
        (files, undone) if undone == files => Sanitized::literal(t!("rewind-undone")),
        (files, _) => Sanitized::new(&t!("count-files", count = files)),
    };
    let role = if stop.undone == stop.files {
        Role::Faint
    } else {
        Role::Dim
    };
    let number = width::pad_start(&stop.turn.0.to_string(), 4);
    let room = columns.saturating_sub(4 + 1 + 1 + width::width(&facts));
    let text = width::pad(&width::cut_end(&stop.text, room), room);
    vec![
        Span::new(Sanitized::new(&format!("{number} ")), Role::Faint),
        Span::new(Sanitized::new(&text), Role::User).modified(bold_if(is_here)),
        Span::new(Sanitized::literal(" "), Role::Text),
        Span::new(facts, role),
    ]
}

/// A line of a unified diff, on the background of its side over all columns.
fn patch_line(line: &str, columns: usize) -> StyledLine {
    let (role, background) = match line.as_bytes().first() {
        Some(b'+') => (Role::Text, Background::Added),
        Some(b'-') => (Role::Text, Background::Removed),
        Some(b'@') => (Role::Faint, Background::Plain),
        _ => (Role::Dim, Background::Plain),
    };
    StyledLine {
        background,
        ..StyledLine::of([Span::new(
            Sanitized::new(&width::cut_end(&Sanitized::line(line), columns)),
            role,
        )])
    }
}

impl Overlay for Rewind {
    /// Only arrows, page keys, Enter and Esc act; whoever types goes on writing the message.
    fn key(&mut self, event: KeyEvent, scene: &Scene<'_>) -> Answer {
        if event.code == KeyCode::Enter
            && self.file.is_none()
            && scene.now_ms.saturating_sub(self.since_ms) < TOO_EARLY_MS
        {
            return Answer::Taken;
        }
        let ctrl = event.modifiers.contains(KeyModifiers::CONTROL);
        match event.code {
            KeyCode::Char('c') if ctrl => return Answer::Close,
            KeyCode::Char(_) if (event.modifiers - KeyModifiers::SHIFT).is_empty() => return Answer::Typed(event),
            KeyCode::Enter => return self.enter(scene.now_ms),
            KeyCode::Esc | KeyCode::Left if self.way.is_some() => self.way = None,
            KeyCode::Esc | KeyCode::Left if self.file.is_some() => self.file = None,
            KeyCode::Esc => return Answer::Close,
            KeyCode::Up => return self.step(-1),
            KeyCode::Down => return self.step(1),
            KeyCode::Home => return self.step(isize::MIN / 2),
            KeyCode::End => return self.step(isize::MAX / 2),
            KeyCode::Right | KeyCode::Tab if self.way.is_none() && !self.files().is_empty() => {
                self.file = match self.file {
                    Some(_) if event.code == KeyCode::Tab => None,
                    file => Some(file.unwrap_or(ListCursor::new(0))),
                };
                self.top = 0;
            }
            KeyCode::PageDown => self.top += 5,
            KeyCode::PageUp => self.top = self.top.saturating_sub(5),
            _ => {}
        }
        Answer::Taken
    }

    fn paste(&mut self, _: &str) -> Option<Answer> {
        Some(Answer::Close)
    }

    fn wheel(&mut self, by: isize) {
        self.top = self.top.saturating_add_signed(by);
    }

    fn list(&self) -> Option<&ListCursor> {
        Some(self.way.as_ref().or(self.file.as_ref()).unwrap_or(&self.cursor))
    }

    fn render(&mut self, area: Rect, buf: &mut Buffer, _: &mut Links, scene: &Scene<'_>) {
        let theme = scene.theme;
        let facts = t!("rewind-place", at = self.cursor.at + 1, count = self.stops.len());
        let head = StyledLine::of([
            Span::new(Sanitized::literal(t!("rewind-title")), Role::Strong).bold(),
            Span::new(Sanitized::new(&format!("   {}", t!("rewind-to"))), Role::Dim),
        ]);
        let head = head.facts([Span::new(Sanitized::new(&facts), Role::Dim)]);
        let rest = frame::lines(area, buf, &[head, StyledLine::blank()], theme);
        let columns = usize::from(area.width);
        let [messages, preview] = if columns >= BESIDE {
            frame::beside(rest, (columns * 2 / 5).clamp(34, 60), buf, Role::Rule, theme)
        } else {
            let lines = self.stops.len().min(usize::from(rest.height / 3).max(1));
            frame::below(rest, lines, buf, Role::Rule, theme)
        };
        self.draw_messages(messages, buf, theme);
        self.draw_preview(preview, buf, theme);
    }

    fn most_columns(&self) -> u16 {
        u16::MAX
    }

    fn hints(&self) -> Vec<(&'static str, &'static str)> {
        let enter = match (self.way, self.file) {
            (Some(_), _) => t!("footer-rewind"),
            (None, Some(_)) => t!("footer-leave-it"),
            (None, None) => t!("footer-choose"),
        };
        let mut hints = vec![("enter", enter), ("↑↓", t!("footer-move"))];
        if self.way.is_none() && self.file.is_none() && !self.files().is_empty() {
            hints.push(("→", t!("footer-files")));
        }
        hints.push(("esc", t!("footer-back")));
        hints
    }
}
