//! Going back: the messages of the conversation, what the answer to each did to files, and what would become of them. Then
//! files, conversation or both are as they were before one of the messages.
//!
//! It holds what it was told; nothing is done before the user says what.

use std::collections::BTreeSet;

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use super::{Answer, Choice, Overlay, Scene};
use crate::{
    protocol::{
        FileChange, Operation, Query, Reply, Restore, RestoreConflict, RestorePreview, RestoreTarget, Turn, TurnChanges,
    },
    t,
    text::{Background, Modifier, Role, Sanitized, Span, StyledLine, width},
    transcript::Transcript,
    tui::app::{Effect, TOO_EARLY_MS, effects::ask},
};

/// Beside each other from here on.
const BESIDE: usize = 80;

/// What the user wants to go back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Back {
    /// To before this turn.
    pub turn: Turn,
    /// The files, and how.
    pub files: Option<Restore>,
    pub conversation: bool,
}

pub struct Rewind {
    stops: Vec<Stop>,
    at: usize,
    /// What would become of the files, once it is known, and of which stop.
    seen: Option<(Turn, RestorePreview)>,
    /// Paths that stay as they are.
    but: BTreeSet<String>,
    over: bool,
    /// The file that is looked at; `None`: the messages have the keys.
    file: Option<usize>,
    /// Lines of the patch above the view.
    top: usize,
    /// What decides is ignored for a moment.
    since_ms: u64,
    rows: Vec<StyledLine>,
}

/// A message that one may go back to.
struct Stop {
    turn: Turn,
    said: Sanitized,
    files: usize,
    undone: usize,
}

impl Rewind {
    /// `None`: nothing was said.
    pub fn new(transcript: &Transcript, changes: &[TurnChanges], on: Option<Turn>, now_ms: u64) -> Option<Self> {
        let stops: Vec<Stop> = transcript
            .exchanges
            .iter()
            .filter_map(|it| {
                let message = it.message.as_ref()?;
                let changed = changes.iter().find(|change| change.turn == it.turn);
                let line = message
                    .content
                    .lines()
                    .find(|it| !it.trim().is_empty())
                    .unwrap_or_default();
                Some(Stop {
                    turn: it.turn,
                    said: Sanitized::line(line.get(..line.floor_char_boundary(400)).unwrap_or(line)),
                    files: changed.map_or(0, |it| it.paths.len()),
                    undone: changed.map_or(0, |it| it.undone),
                })
            })
            .collect();
        let last = stops.len().checked_sub(1)?;
        let at = on
            .and_then(|on| stops.iter().position(|it| it.turn == on))
            .unwrap_or(last);
        Some(Self {
            stops,
            at,
            seen: None,
            but: BTreeSet::new(),
            over: false,
            file: None,
            top: 0,
            since_ms: now_ms,
            rows: Vec::new(),
        })
    }

    fn turn(&self) -> Turn {
        self.stops.get(self.at).map(|it| it.turn).unwrap_or_default()
    }

    /// Asks what would become of the files, all of them.
    pub fn look(&self) -> Effect {
        let turn = self.turn();
        let query = Query::RestorePreview(Restore {
            target: RestoreTarget::Since(turn),
            except: Vec::new(),
            overwrite: false,
        });
        ask!(query, Reply::RestorePreview, or_default, move |app, found| {
            if let Some(rewind) = app.overlays.top::<Self>() {
                rewind.take(turn, found);
            }
            Vec::new()
        })
    }

    /// Takes what would become of the files, if it is of the stop that is looked at.
    fn take(&mut self, turn: Turn, restoration: RestorePreview) {
        if turn == self.turn() {
            self.file = self.file.map(|it| it.min(restoration.files.len().saturating_sub(1)));
            self.seen = Some((turn, restoration));
        }
    }

    fn files(&self) -> &[FileChange] {
        match &self.seen {
            Some((turn, it)) if *turn == self.turn() => &it.files,
            Some(_) | None => &[],
        }
    }

    fn is_known(&self) -> bool {
        self.seen.as_ref().is_some_and(|it| it.0 == self.turn())
    }

    /// Whether a file goes back.
    fn goes(&self, file: &FileChange) -> bool {
        !file.is_lost && (self.over || file.conflict.is_none()) && !self.but.contains(&file.path)
    }

    fn step(&mut self, by: isize) -> Answer {
        self.top = 0;
        if let Some(at) = self.file {
            let last = self.files().len().saturating_sub(1);
            self.file = Some(at.saturating_add_signed(by).min(last));
            return Answer::Taken;
        }
        let last = self.stops.len().saturating_sub(1);
        let at = self.at.saturating_add_signed(by).min(last);
        if at == self.at {
            return Answer::Taken;
        }
        self.at = at;
        self.but.clear();
        Answer::Does(self.look())
    }

    /// The file that is looked at stays as it is, or goes back after all.
    fn leave(&mut self) {
        let path = self.file.and_then(|it| self.files().get(it)).map(|it| it.path.clone());
        if let Some(path) = path
            && !self.but.remove(&path)
        {
            self.but.insert(path);
        }
    }

    fn chosen(&self, files: bool, conversation: bool) -> Answer {
        // What would become of files is shown before it is done.
        if files && !self.is_known() {
            return Answer::Taken;
        }
        let has_files = files && self.files().iter().any(|it| self.goes(it));
        if files && !has_files && !conversation {
            return Answer::Said(t!("rewind-no-file").to_owned());
        }
        let restore = Restore {
            target: RestoreTarget::Since(self.turn()),
            except: self.but.iter().map(|it| it.trim_end_matches('/').to_owned()).collect(),
            overwrite: self.over,
        };
        Answer::Chosen(Choice::Back(Back {
            turn: self.turn(),
            files: has_files.then_some(restore),
            conversation,
        }))
    }

    fn messages(&self, columns: usize, height: usize) -> Vec<Vec<Span>> {
        let first = (self.at + 1)
            .saturating_sub(height)
            .min(self.stops.len().saturating_sub(height));
        let shown = self.stops.iter().enumerate().skip(first).take(height);
        let has_keys = self.file.is_none();
        let line = |(n, stop): (usize, &Stop)| {
            let is_here = n == self.at;
            let ground = if is_here && has_keys {
                Background::Selection
            } else {
                Background::Plain
            };
            let mark = if is_here { Modifier::BOLD } else { Modifier::NONE };
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
            let room = columns.saturating_sub(2 + 4 + 1 + 1 + width::width(&facts));
            let said = width::pad(&width::cut_end(&stop.said, room), room);
            vec![
                Span::new(Sanitized::literal(if is_here { "› " } else { "  " }), Role::Accent).on(ground),
                Span::new(Sanitized::new(&number), Role::Faint).on(ground),
                Span::new(Sanitized::literal(" "), Role::Text).on(ground),
                Span::new(Sanitized::new(&said), Role::User).modified(mark).on(ground),
                Span::new(Sanitized::literal(" "), Role::Text).on(ground),
                Span::new(facts, role).on(ground),
            ]
        };
        shown.map(line).collect()
    }

    /// What would become of the files, and of the one that is looked at in full.
    fn becomes(&mut self, columns: usize, height: usize) -> Vec<Vec<Span>> {
        let say = |text: &str, role| vec![Span::new(Sanitized::new(width::cut(text, columns)), role)];
        if !self.is_known() {
            return vec![say(t!("action-looking"), Role::Dim)];
        }
        let files = self.files();
        let mut rows = Vec::new();
        if files.is_empty() {
            rows.push(say(t!("rewind-nothing-changed"), Role::Dim));
            return rows;
        }
        let is_file = |it: &&FileChange| !it.path.ends_with('/');
        let count = files.iter().filter(is_file).count();
        let going = files.iter().filter(is_file).filter(|it| self.goes(it)).count();
        let clashing = files.iter().filter(|it| it.conflict.is_some() && !it.is_lost).count();
        rows.push(say(&t!("rewind-going", going = going, count = count), Role::Dim));
        if clashing > 0 {
            let (word, key) = if self.over {
                (t!("rewind-over"), t!("rewind-over-key"))
            } else {
                (t!("rewind-not-over"), t!("rewind-not-over-key"))
            };
            // What it means and how to have it otherwise are both needed, however narrow it is.
            let whole = format!("{word} {key}");
            if width::width(&whole) <= columns {
                rows.push(say(&whole, Role::Waiting));
            } else {
                rows.extend([say(word, Role::Waiting), say(key, Role::Waiting)]);
            }
        }
        if self.seen.as_ref().is_some_and(|it| it.1.is_partial) {
            rows.push(say(t!("rewind-partial"), Role::Waiting));
        }
        rows.push(Vec::new());
        let first_text = files.iter().position(|it| !it.patch.is_empty());
        let here = self.file.or(first_text).unwrap_or_default();
        let room = (height / 2).max(3).min(files.len());
        let looked = self.file.unwrap_or_default() + 1;
        let first = looked.saturating_sub(room).min(files.len().saturating_sub(room));
        for (n, file) in files.iter().enumerate().skip(first).take(room) {
            rows.push(self.file_line(file, self.file == Some(n), columns));
        }
        if files.len() > room {
            rows.push(say(
                &format!("  {}", t!("rewind-in-all", count = files.len())),
                Role::Faint,
            ));
        }
        let patch = files.get(here).map(|it| it.patch.clone()).unwrap_or_default();
        let lines: Vec<&str> = patch.lines().skip(2).collect();
        if lines.is_empty() {
            return rows;
        }
        rows.push(Vec::new());
        let left = height.saturating_sub(rows.len());
        self.top = self.top.min(lines.len().saturating_sub(left));
        for line in lines.into_iter().skip(self.top).take(left) {
            let (role, ground) = match line.as_bytes().first() {
                Some(b'+') => (Role::Text, Background::Added),
                Some(b'-') => (Role::Text, Background::Removed),
                Some(b'@') => (Role::Faint, Background::Plain),
                _ => (Role::Dim, Background::Plain),
            };
            let line = width::cut_end(&Sanitized::line(line), columns);
            let line = if ground == Background::Plain {
                line.clone()
            } else {
                width::pad(&line, columns)
            };
            rows.push(vec![Span::new(Sanitized::new(&line), role).on(ground)]);
        }
        rows
    }

    fn file_line(&self, file: &FileChange, is_here: bool, columns: usize) -> Vec<Span> {
        let ground = if is_here {
            Background::Selection
        } else {
            Background::Plain
        };
        let (sign, sign_role) = if self.goes(file) {
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
            _ if self.but.contains(&file.path) => (t!("rewind-stays").to_owned(), Role::Dim),
            Some(RestoreConflict::User) => (t!("rewind-changed-since").to_owned(), Role::Waiting),
            Some(RestoreConflict::Turn(turn)) => (t!("rewind-changed-in", turn = turn.0.to_string()), Role::Waiting),
            None if file.operation == Operation::Create => (t!("rewind-comes-back").to_owned(), Role::Dim),
            None if file.operation == Operation::Delete => (t!("rewind-goes").to_owned(), Role::Dim),
            None if file.added + file.removed == 0 => (t!("rewind-mode").to_owned(), Role::Dim),
            None => (format!("+{} −{}", file.added, file.removed), Role::Dim),
        };
        let room = columns.saturating_sub(2 + 2 + 2 + width::width(&note));
        let path = width::pad(&width::cut_start(&Sanitized::line(&file.path), room), room);
        vec![
            Span::new(Sanitized::literal(if is_here { "› " } else { "  " }), Role::Accent).on(ground),
            Span::new(Sanitized::literal(sign), sign_role).on(ground),
            Span::new(Sanitized::literal(" "), Role::Text).on(ground),
            Span::new(Sanitized::new(&path), Role::Text).on(ground),
            Span::new(Sanitized::literal("  "), Role::Text).on(ground),
            Span::new(Sanitized::new(&note), role).on(ground),
        ]
    }
}

impl Overlay for Rewind {
    fn key(&mut self, event: KeyEvent, scene: &Scene<'_>) -> Answer {
        let decides = matches!(event.code, KeyCode::Char('b' | 'c' | 'f') | KeyCode::Enter);
        if decides && scene.now_ms.saturating_sub(self.since_ms) < TOO_EARLY_MS {
            return Answer::Taken;
        }
        let ctrl = event.modifiers.contains(KeyModifiers::CONTROL);
        match event.code {
            KeyCode::Esc | KeyCode::Left | KeyCode::Char('h') if self.file.is_some() => self.file = None,
            KeyCode::Esc | KeyCode::Char('q') => return Answer::Close,
            KeyCode::Char('c') if ctrl => return Answer::Close,
            KeyCode::Up | KeyCode::Char('k') => return self.step(-1),
            KeyCode::Down | KeyCode::Char('j') => return self.step(1),
            KeyCode::Home | KeyCode::Char('g') => return self.step(isize::MIN / 2),
            KeyCode::End | KeyCode::Char('G') => return self.step(isize::MAX / 2),
            KeyCode::Right | KeyCode::Tab | KeyCode::Char('l') if !self.files().is_empty() => {
                self.file = match self.file {
                    Some(_) if event.code == KeyCode::Tab => None,
                    at => Some(at.unwrap_or_default()),
                };
                self.top = 0;
            }
            KeyCode::PageDown => self.top += 5,
            KeyCode::PageUp => self.top = self.top.saturating_sub(5),
            KeyCode::Char(' ' | 'x') => self.leave(),
            KeyCode::Char('o') => self.over = !self.over,
            KeyCode::Char('f') => return self.chosen(true, false),
            KeyCode::Char('c') => return self.chosen(false, true),
            KeyCode::Enter | KeyCode::Char('b') => return self.chosen(true, true),
            _ => {}
        }
        Answer::Taken
    }

    fn wheel(&mut self, by: isize) {
        self.top = self.top.saturating_add_signed(by);
    }

    fn lay_out(&mut self, _: &Scene<'_>, columns: usize, height: usize) {
        let facts = t!("rewind-place", at = self.at + 1, count = self.stops.len());
        let mut rows = vec![
            StyledLine::of([
                Span::new(Sanitized::literal(t!("rewind-title")), Role::Strong).bold(),
                Span::new(Sanitized::new(&format!("   {}", t!("rewind-to"))), Role::Dim),
            ])
            .facts([Span::new(Sanitized::new(&facts), Role::Dim)]),
            StyledLine::blank(),
        ];
        let body = height.saturating_sub(rows.len()).max(1);
        if columns >= BESIDE {
            let list = (columns * 2 / 5).clamp(34, 60);
            let room = columns.saturating_sub(list + 3);
            let (left, right) = (self.messages(list, body), self.becomes(room, body));
            for line in 0..body {
                let mut spans = left.get(line).cloned().unwrap_or_default();
                let rest = list.saturating_sub(width::spans_width(&spans));
                spans.push(Span::new(Sanitized::new(&" ".repeat(rest)), Role::Text));
                spans.push(Span::new(Sanitized::literal(" │ "), Role::Rule));
                spans.extend(right.get(line).cloned().unwrap_or_default());
                rows.push(StyledLine::of(spans));
            }
        } else {
            let above = self.stops.len().min((body / 3).max(1));
            rows.extend(self.messages(columns, above).into_iter().map(StyledLine::of));
            rows.push(StyledLine::of([Span::new(
                Sanitized::new(&"─".repeat(columns)),
                Role::Rule,
            )]));
            let rest = body.saturating_sub(above + 1);
            rows.extend(self.becomes(columns, rest).into_iter().map(StyledLine::of));
        }
        self.rows = rows;
    }

    fn rows(&self) -> &[StyledLine] {
        &self.rows
    }

    fn hints(&self) -> Vec<(&'static str, &'static str)> {
        vec![
            ("enter", t!("footer-files-and-conversation")),
            ("f", t!("footer-files")),
            ("c", t!("footer-conversation")),
            ("→", t!("footer-a-file")),
            ("space", t!("footer-leave-it")),
            ("o", t!("footer-changed-since")),
            ("esc", t!("footer-back")),
        ]
    }
}
