//! A list to choose from: modes, models, themes, everything one can do.

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use crate::{
    protocol::Mode,
    text::{Clean, Ground, Mark, Role, Row, Span, width},
    tui::{
        action::{self, Action},
        keymap::{Keymap, Place},
    },
};

#[derive(Clone)]
pub enum Choice {
    Mode(Mode),
    Model(String),
    Theme(String),
    Action(&'static Action),
    /// New words for the todo that is selected.
    Reworded(String),
    /// A new todo, behind the one that is selected.
    Inserted(String),
}

struct Entry {
    label: Clean,
    about: Clean,
    /// Keys, at the right.
    facts: Clean,
    role: Role,
    choice: Choice,
}

pub struct Picker {
    title: Clean,
    entries: Vec<Entry>,
    filter: String,
    /// Among those that pass the filter.
    at: usize,
}

/// At most so many entries are shown at once.
const MOST_SHOWN: usize = 12;

impl Picker {
    pub fn modes(current: Mode) -> Self {
        let about = |mode| match mode {
            Mode::Agent => "reads, changes and runs",
            Mode::Plan => "reads, asks and writes a plan",
            Mode::Ask => "reads and answers",
            Mode::Debug => "finds the cause of a fault, then mends it",
        };
        let entries = Mode::ALL.map(|mode| Entry {
            label: Clean::literal(mode.as_str()),
            about: Clean::literal(about(mode)),
            facts: Clean::default(),
            role: role_of(mode),
            choice: Choice::Mode(mode),
        });
        let at = Mode::ALL.iter().position(|it| *it == current).unwrap_or_default();
        Self {
            title: Clean::literal("mode"),
            entries: entries.into(),
            filter: String::new(),
            at,
        }
    }

    pub fn models(names: &[String], current: Option<&str>) -> Self {
        let entries: Vec<_> = names
            .iter()
            .map(|name| Entry {
                label: Clean::line(name),
                about: Clean::default(),
                facts: Clean::default(),
                role: Role::Text,
                choice: Choice::Model(name.clone()),
            })
            .collect();
        let at = names
            .iter()
            .position(|it| Some(it.as_str()) == current)
            .unwrap_or_default();
        Self {
            title: Clean::literal("model"),
            entries,
            filter: String::new(),
            at,
        }
    }

    /// Files that fit what is typed in the draft; the draft itself is the filter.
    pub fn files(names: &[String], at: usize) -> Self {
        let entries = names.iter().map(|name| Entry {
            label: Clean::line(name),
            about: Clean::default(),
            facts: Clean::default(),
            role: Role::Text,
            choice: Choice::Model(String::new()),
        });
        Self {
            title: Clean::literal("files"),
            entries: entries.collect(),
            filter: String::new(),
            at,
        }
    }

    pub fn themes(names: &[String], current: &str) -> Self {
        let names: Vec<_> = std::iter::once("auto".to_owned())
            .chain(names.iter().cloned())
            .collect();
        let entries = names
            .iter()
            .map(|name| Entry {
                label: Clean::line(name),
                about: if name == "auto" {
                    Clean::literal("by the terminal's background")
                } else {
                    Clean::default()
                },
                facts: Clean::default(),
                role: Role::Text,
                choice: Choice::Theme(name.clone()),
            })
            .collect();
        let at = names.iter().position(|it| it == current).unwrap_or_default();
        Self {
            title: Clean::literal("theme"),
            entries,
            filter: String::new(),
            at,
        }
    }

    pub fn palette(keymap: &Keymap, is_developer: bool) -> Self {
        let entries = action::ACTIONS
            .iter()
            .filter(|it| is_developer || it.name != "panic")
            .filter(|it| {
                !matches!(
                    it.name,
                    "palette" | "send" | "escape" | "interrupt" | "newline" | "queue" | "leave"
                )
            })
            .map(|it| {
                let keys = Place::ALL
                    .into_iter()
                    .find_map(|at| keymap.keys(at, it.name).first().copied());
                let slash = if it.slash.is_empty() {
                    String::new()
                } else {
                    format!("/{}  ", it.slash)
                };
                Entry {
                    label: Clean::line(it.about),
                    about: Clean::default(),
                    facts: Clean::line(&format!("{slash}{}", keys.map(|it| it.to_string()).unwrap_or_default())),
                    role: Role::Text,
                    choice: Choice::Action(it),
                }
            })
            .collect();
        Self {
            title: Clean::literal("do"),
            entries,
            filter: String::new(),
            at: 0,
        }
    }

    pub fn key(&mut self, event: KeyEvent) -> super::Answer {
        use super::Answer::{Chosen, Close, Taken};
        let count = self.passing().len();
        let ctrl = event.modifiers.contains(KeyModifiers::CONTROL);
        match event.code {
            KeyCode::Esc => return Close,
            KeyCode::Char('c' | '.' | 'k') if ctrl => return Close,
            KeyCode::Enter => {
                return match self.passing().get(self.at).and_then(|it| self.entries.get(*it)) {
                    Some(entry) => Chosen(entry.choice.clone()),
                    None => Taken,
                };
            }
            KeyCode::Up => self.at = self.at.checked_sub(1).unwrap_or(count.saturating_sub(1)),
            KeyCode::Char('p') if ctrl => self.at = self.at.checked_sub(1).unwrap_or(count.saturating_sub(1)),
            KeyCode::Down | KeyCode::Tab => self.at = (self.at + 1) % count.max(1),
            KeyCode::Char('n') if ctrl => self.at = (self.at + 1) % count.max(1),
            KeyCode::PageUp => self.at = self.at.saturating_sub(MOST_SHOWN),
            KeyCode::PageDown => self.at = (self.at + MOST_SHOWN).min(count.saturating_sub(1)),
            KeyCode::Backspace => {
                self.filter.pop();
                self.at = 0;
            }
            KeyCode::Char(letter) if !ctrl => {
                self.filter.push(letter);
                self.at = 0;
            }
            _ => {}
        }
        Taken
    }

    pub fn wheel(&mut self, by: isize) {
        let count = self.passing().len();
        self.at = self.at.saturating_add_signed(by).min(count.saturating_sub(1));
    }

    /// The rows of the list, framed, for so many columns.
    pub fn rows(&self, columns: usize) -> Vec<Row> {
        let passing = self.passing();
        let first = self.at.saturating_sub(MOST_SHOWN - 1);
        let inside = columns.saturating_sub(5);
        // What is said of the entries begins in one column.
        let described = self.entries.iter().filter(|it| !it.about.is_empty());
        let column = described.map(|it| width::width(&it.label)).max().unwrap_or(0);
        let mut rows = vec![frame_row("╭", &self.heading(), "╮", columns)];
        for (n, entry) in passing.iter().enumerate().skip(first).take(MOST_SHOWN) {
            let Some(entry) = self.entries.get(*entry) else {
                continue;
            };
            let is_here = n == self.at;
            let ground = if is_here { Ground::Selection } else { Ground::Plain };
            let mark = if is_here { Mark::BOLD } else { Mark::NONE };
            let room = inside.saturating_sub(width::width(&entry.facts) + 2);
            let label = width::cut_end(&entry.label, room);
            let label = if entry.about.is_empty() {
                label
            } else {
                width::pad(&label, column.min(room))
            };
            let about = width::cut_end(&entry.about, room.saturating_sub(width::width(&label) + 2));
            let used = width::width(&label) + if about.is_empty() { 0 } else { width::width(&about) + 2 };
            let space = inside.saturating_sub(used + width::width(&entry.facts));
            let text = |text: String, role| Span::new(Clean::new(&text), role).on(ground);
            rows.push(Row::of(vec![
                Span::new(Clean::literal("│"), Role::Rule),
                text(if is_here { "› ".into() } else { "  ".into() }, Role::Accent),
                text(label, entry.role).marked(mark),
                text(
                    if about.is_empty() {
                        String::new()
                    } else {
                        format!("  {about}")
                    },
                    Role::Dim,
                ),
                text(" ".repeat(space), Role::Dim),
                text(entry.facts.to_string(), Role::Dim),
                text(" ".into(), Role::Dim),
                Span::new(Clean::literal("│"), Role::Rule),
            ]));
        }
        if passing.is_empty() {
            let text = width::pad("nothing like that", inside);
            rows.push(Row::of(vec![
                Span::new(Clean::literal("│  "), Role::Rule),
                Span::new(Clean::new(width::cut(&text, inside)), Role::Dim),
                Span::new(Clean::literal(" │"), Role::Rule),
            ]));
        }
        rows.push(frame_row("╰", "", "╯", columns));
        rows
    }

    fn heading(&self) -> String {
        if self.filter.is_empty() {
            format!(" {} ", self.title)
        } else {
            format!(" {} › {} ", self.title, self.filter)
        }
    }

    /// Indices of the entries that hold every letter of the filter in order; words that begin with it first.
    fn passing(&self) -> Vec<usize> {
        let filter = self.filter.to_lowercase();
        let mut scored: Vec<_> = self
            .entries
            .iter()
            .enumerate()
            .filter_map(|(at, it)| {
                let text = format!("{} {} {}", it.label, it.about, it.facts).to_lowercase();
                score(&text, &filter).map(|score| (score, at))
            })
            .collect();
        scored.sort_unstable();
        scored.into_iter().map(|(_, at)| at).collect()
    }
}

/// The lower the better; `None`: it does not match.
fn score(text: &str, filter: &str) -> Option<usize> {
    if filter.is_empty() {
        return Some(0);
    }
    if text
        .split_whitespace()
        .any(|it| it.trim_start_matches('/').starts_with(filter))
    {
        return Some(0);
    }
    if text.contains(filter) {
        return Some(1);
    }
    let mut letters = text.chars();
    filter
        .chars()
        .filter(|it| !it.is_whitespace())
        .all(|wanted| letters.any(|it| it == wanted))
        .then_some(2)
}

pub(super) fn frame_row(left: &'static str, title: &str, right: &'static str, columns: usize) -> Row {
    let title = width::cut_end(title, columns.saturating_sub(4));
    let rest = columns.saturating_sub(3 + width::width(&title));
    Row::of(vec![
        Span::new(Clean::literal(left), Role::Rule),
        Span::new(Clean::literal("─"), Role::Rule),
        Span::new(Clean::new(&title), Role::Dim),
        Span::new(Clean::new(&"─".repeat(rest)), Role::Rule),
        Span::new(Clean::literal(right), Role::Rule),
    ])
}

pub const fn role_of(mode: Mode) -> Role {
    match mode {
        Mode::Agent => Role::ModeAgent,
        Mode::Plan => Role::ModePlan,
        Mode::Ask => Role::ModeAsk,
        Mode::Debug => Role::ModeDebug,
    }
}
