//! A list to choose from: modes, models, themes, everything one can do.

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use crate::{
    protocol::Mode,
    say,
    text::{Clean, Ground, Mark, Role, Row, Span, width},
    tui::{
        action::{self, Action},
        app::App,
        command,
        draft::Draft,
        filter::{FACETS, Filter},
        fuzzy,
        keymap::Place,
        layer::{Change, Spot, Verdict},
        library::Kept,
        pane::Item,
        places::Named,
    },
};

#[derive(Clone)]
pub enum Choice {
    Mode(Mode),
    Model(String),
    Theme(String),
    /// With what stands behind it.
    Action(&'static Action, String),
    /// A command of a file.
    Custom(String),
    /// A draft.
    Draft(String),
    /// What becomes of the pasted text at the caret.
    Chip(ChipWay),
    /// What the user says of a change of a file.
    Review(Verdict, Spot),
    /// For the model, on the hunk that the review below is at.
    Remark(String),
    /// To the branch that a turn is on, or to the end of its answer, where others go on behind a part of it.
    Branch(crate::protocol::Turn, bool),
    /// Files or conversation as they were.
    Back(super::Back),
    /// A change of the messages that wait.
    Waiting(Change),
    /// New words for the todo that is selected.
    Reworded(String),
    /// Look for this in the conversation.
    Search(String),
    /// Show only what these words name.
    Filter(String),
    /// Go to this item.
    Item(Item),
    /// Copy what these words name.
    Copy(&'static str),
    /// Open a file in the editor, at a line.
    Open(String, Option<u64>),
    /// Take up a conversation.
    Session(Box<Kept>),
    /// A new todo, behind the one that is selected.
    Inserted(String),
}

struct Entry {
    label: Clean,
    about: Clean,
    /// Keys, at the right.
    facts: Clean,
    /// What it is found by besides, and is not shown.
    aliases: String,
    role: Role,
    choice: Choice,
    /// Listed only when it is looked for.
    is_deep: bool,
}

impl Default for Entry {
    fn default() -> Self {
        Self {
            label: Clean::default(),
            about: Clean::default(),
            facts: Clean::default(),
            aliases: String::new(),
            role: Role::Text,
            choice: Choice::Filter(String::new()),
            is_deep: false,
        }
    }
}

/// What can be done with a chip.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChipWay {
    View,
    Unfold,
    Edit,
    Remove,
}

/// A draft that is offered.
pub struct Offer {
    pub label: String,
    pub about: String,
    pub facts: String,
    /// What the draft becomes.
    pub draft: String,
}

pub struct Picker {
    title: Clean,
    entries: Vec<Entry>,
    filter: Draft,
    /// Indices of the entries that pass the filter, the best first.
    passing: Vec<usize>,
    /// Among those that pass the filter.
    at: usize,
    /// What holds when nothing is chosen; where it is there, what is moved to holds meanwhile.
    before: Option<Choice>,
    /// What is typed may be terms of a query, where no entry is meant by it.
    takes_terms: bool,
}

/// At most so many entries are shown at once.
const MOST_SHOWN: usize = 12;

impl Picker {
    pub fn modes(current: Mode) -> Self {
        let about = |mode| match mode {
            Mode::Agent => say!("mode-about-agent"),
            Mode::Plan => say!("mode-about-plan"),
            Mode::Ask => say!("mode-about-ask"),
            Mode::Debug => say!("mode-about-debug"),
        };
        let entries = Mode::ALL.map(|mode| Entry {
            label: Clean::literal(mode.as_str()),
            about: Clean::literal(about(mode)),
            facts: Clean::default(),
            role: role_of(mode),
            choice: Choice::Mode(mode),
            ..Entry::default()
        });
        let at = Mode::ALL.iter().position(|it| *it == current).unwrap_or_default();
        Self::of(Clean::literal(say!("list-mode")), entries.into(), at)
    }

    pub fn efforts(current: Option<&str>) -> Self {
        let row = |word: &'static str, about: &'static str| Entry {
            label: Clean::literal(word),
            about: Clean::literal(about),
            choice: Choice::Action(&action::everywhere::EFFORT, word.to_owned()),
            ..Entry::default()
        };
        let words = action::everywhere::EFFORTS;
        let mut entries = vec![row("auto", say!("effort-about-auto"))];
        entries.extend(words.map(|it| row(it, "")));
        let at = words.iter().position(|it| Some(*it) == current).map_or(0, |it| it + 1);
        Self::of(Clean::literal(say!("list-effort")), entries, at)
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
                ..Entry::default()
            })
            .collect();
        let at = names
            .iter()
            .position(|it| Some(it.as_str()) == current)
            .unwrap_or_default();
        Self::of(Clean::literal(say!("list-model")), entries, at)
    }

    /// Files that fit what is typed in the draft; the draft itself is the filter.
    ///
    /// What stands beside a name is what it is, where that is known.
    pub fn files(title: &'static str, names: &[String], about: &[String], at: usize) -> Self {
        let about = about.iter().map(String::as_str).chain(std::iter::repeat(""));
        let entries = names.iter().zip(about).map(|(name, about)| Entry {
            label: Clean::line(name),
            about: Clean::line(about),
            facts: Clean::default(),
            role: Role::Text,
            choice: Choice::Model(String::new()),
            ..Entry::default()
        });
        Self::of(Clean::literal(title), entries.collect(), at)
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
                    Clean::literal(say!("theme-about-auto"))
                } else {
                    Clean::default()
                },
                facts: Clean::default(),
                role: Role::Text,
                choice: Choice::Theme(name.clone()),
                ..Entry::default()
            })
            .collect();
        let at = names.iter().position(|it| it == current).unwrap_or_default();
        // Moving over a name shows it; leaving brings back what was.
        Self {
            before: Some(Choice::Theme(current.to_owned())),
            ..Self::of(Clean::literal(say!("list-theme")), entries, at)
        }
    }

    /// What can be shown alone, each with how much of it there is.
    pub fn facets(current: &Filter, counts: &[usize]) -> Self {
        let everything = Entry {
            label: Clean::literal("everything"),
            about: Clean::literal(say!("filter-everything")),
            facts: Clean::default(),
            role: Role::Text,
            choice: Choice::Filter(String::new()),
            ..Entry::default()
        };
        let facets = FACETS.iter().zip(counts).map(|(facet, count)| Entry {
            label: Clean::literal(facet.name),
            about: Clean::literal(facet.about()),
            facts: Clean::line(&count.to_string()),
            role: if *count == 0 { Role::Dim } else { Role::Text },
            choice: Choice::Filter(facet.name.to_owned()),
            ..Entry::default()
        });
        let entries = std::iter::once(everything).chain(facets).collect();
        let at = FACETS.iter().position(|it| current.has(it)).map_or(0, |it| it + 1);
        Self {
            takes_terms: true,
            ..Self::of(Clean::literal(say!("list-show-only")), entries, at)
        }
    }

    /// What was sent before, the newest first.
    pub fn history(texts: &[String]) -> Self {
        let entries = texts.iter().rev().map(|text| Entry {
            label: Clean::line(text.get(..text.floor_char_boundary(400)).unwrap_or(text)),
            choice: Choice::Draft(text.clone()),
            ..Entry::default()
        });
        Self::of(Clean::literal(say!("list-sent-before")), entries.collect(), 0)
    }

    /// What can be done with the pasted text at the caret.
    pub fn chip(is_text: bool) -> Self {
        let entry = |label, about, way| Entry {
            label: Clean::literal(label),
            about: Clean::literal(about),
            choice: Choice::Chip(way),
            ..Entry::default()
        };
        let mut entries = Vec::new();
        if is_text {
            entries.push(entry(say!("chip-view"), say!("chip-about-view"), ChipWay::View));
            entries.push(entry(say!("chip-unfold"), say!("chip-about-unfold"), ChipWay::Unfold));
            entries.push(entry(say!("chip-edit"), say!("chip-about-edit"), ChipWay::Edit));
        }
        entries.push(entry(say!("chip-remove"), say!("chip-about-remove"), ChipWay::Remove));
        Self::of(Clean::literal(say!("list-pasted")), entries, 0)
    }

    /// The forms of a copy.
    pub fn copies(is_selected: bool) -> Self {
        let what = if is_selected {
            say!("copy-about-document")
        } else {
            say!("copied-last-answer")
        };
        let entry = |label, about, words| Entry {
            label: Clean::literal(label),
            about: Clean::literal(about),
            facts: Clean::default(),
            role: Role::Text,
            choice: Choice::Copy(words),
            ..Entry::default()
        };
        let all = say!("copy-about-all");
        Self::of(
            Clean::literal(say!("list-copy-as")),
            vec![
                entry(say!("copy-markdown"), what, "markdown"),
                entry(say!("copy-plain"), what, "plain"),
                entry(say!("copy-code"), what, "code"),
                entry(say!("copy-all-markdown"), all, "markdown all"),
                entry(say!("copy-all-plain"), all, "plain all"),
                entry(say!("copy-all-code"), all, "code all"),
            ],
            0,
        )
    }

    /// The files that a document names.
    pub fn places(places: Vec<Named>) -> Self {
        let entry = |(path, line): Named| Entry {
            label: Clean::line(&match line {
                Some(line) => format!("{path}:{line}"),
                None => path.clone(),
            }),
            about: Clean::default(),
            facts: Clean::default(),
            role: Role::Link,
            choice: Choice::Open(path, line),
            ..Entry::default()
        };
        Self::of(
            Clean::literal(say!("list-open")),
            places.into_iter().map(entry).collect(),
            0,
        )
    }

    /// Everything one can do, what was done lately first; what may stand behind a command once somebody types it.
    pub fn palette(app: &App) -> Self {
        let recent = &app.composer.commands.recent;
        let mut actions: Vec<_> = action::ACTIONS
            .iter()
            .filter(|it| app.is_developer || it.name != "panic")
            .filter(|it| {
                !matches!(
                    it.name,
                    "palette" | "send" | "escape" | "interrupt" | "newline" | "queue" | "leave"
                )
            })
            .collect();
        actions.sort_by_key(|it| recent.iter().position(|name| *name == it.name).unwrap_or(usize::MAX));
        let entry = |it: &'static Action| {
            let keys = Place::ALL
                .into_iter()
                .find_map(|at| app.keymap.keys(at, it.name).first().copied());
            let label = if it.slash.is_empty() {
                it.hint().to_owned()
            } else {
                format!("/{}", it.slash)
            };
            Entry {
                label: Clean::line(&label),
                about: Clean::literal(it.about()),
                facts: Clean::line(&keys.map(|it| it.to_string()).unwrap_or_default()),
                aliases: it.aliases(),
                choice: Choice::Action(it, String::new()),
                ..Entry::default()
            }
        };
        let deep = actions.iter().flat_map(|it| {
            let arguments = command::arguments(app, it.slash);
            arguments.into_iter().map(|(argument, about)| Entry {
                label: Clean::line(&format!("/{} {argument}", it.slash)),
                about: Clean::literal(about),
                choice: Choice::Action(it, argument),
                is_deep: true,
                ..Entry::default()
            })
        });
        let custom = app.composer.commands.custom.iter().map(|it| Entry {
            label: Clean::line(&format!("/{}", it.name)),
            about: Clean::line(&it.about),
            facts: Clean::line(&it.origin),
            choice: Choice::Custom(it.name.clone()),
            ..Entry::default()
        });
        let deep: Vec<Entry> = deep.collect();
        let entries = actions.iter().map(|it| entry(it)).chain(custom).chain(deep).collect();
        Self::of(Clean::literal(say!("list-do")), entries, 0)
    }

    /// Drafts that fit what has been typed.
    pub fn offers(title: &'static str, offers: Vec<Offer>, typed: &str) -> Self {
        let entry = |it: Offer| Entry {
            label: Clean::line(&it.label),
            about: Clean::line(&it.about),
            facts: Clean::line(&it.facts),
            choice: Choice::Draft(it.draft),
            ..Entry::default()
        };
        let mut picker = Self::of(Clean::literal(title), offers.into_iter().map(entry).collect(), 0);
        picker.filter = Draft::new(typed);
        picker.sift();
        picker
    }

    fn of(title: Clean, entries: Vec<Entry>, at: usize) -> Self {
        let mut picker = Self {
            title,
            entries,
            filter: Draft::default(),
            passing: Vec::new(),
            at: 0,
            before: None,
            takes_terms: false,
        };
        picker.sift();
        picker.at = at;
        picker
    }

    pub fn is_empty(&self) -> bool {
        self.passing.is_empty()
    }

    /// How many entries pass the filter.
    pub fn count(&self) -> usize {
        self.passing.len()
    }

    pub fn go_to(&mut self, at: usize) {
        self.at = at.min(self.passing.len().saturating_sub(1));
    }

    /// The title, and the entries with their numbers, for whoever reads lines.
    pub fn labels(&self) -> Vec<String> {
        let entries = self.passing.iter().filter_map(|it| self.entries.get(*it));
        let lines = entries.enumerate().map(|(at, entry)| {
            let here = if at == self.at { say!("list-chosen-now") } else { "" };
            let parts = [entry.label.as_str(), entry.about.as_str(), entry.facts.as_str(), here];
            let said: Vec<_> = parts.into_iter().filter(|it| !it.is_empty()).collect();
            format!("  {} {}", at + 1, said.join(", "))
        });
        std::iter::once(self.heading().trim().to_owned()).chain(lines).collect()
    }

    /// The draft that is chosen now.
    pub fn offered(&self) -> Option<String> {
        if let Choice::Draft(draft) = &self.here()?.choice {
            return Some(draft.clone());
        }
        None
    }

    fn here(&self) -> Option<&Entry> {
        self.passing.get(self.at).and_then(|it| self.entries.get(*it))
    }

    pub fn key(&mut self, event: KeyEvent) -> super::Answer {
        use super::Answer::{Chosen, Live, Taken};
        let count = self.passing.len();
        let ctrl = event.modifiers.contains(KeyModifiers::CONTROL);
        let was = self.at;
        let mut is_other = false;
        match event.code {
            KeyCode::Esc => return self.leave(),
            KeyCode::Char('c' | '.' | 'k') if ctrl => return self.leave(),
            KeyCode::Enter => {
                return match self.here() {
                    Some(entry) => Chosen(entry.choice.clone()),
                    None if self.takes_terms => Chosen(Choice::Filter(self.filter.text().to_owned())),
                    None => Taken,
                };
            }
            KeyCode::Up => self.at = self.at.checked_sub(1).unwrap_or(count.saturating_sub(1)),
            KeyCode::Char('p') if ctrl => self.at = self.at.checked_sub(1).unwrap_or(count.saturating_sub(1)),
            KeyCode::Down | KeyCode::Tab => self.at = (self.at + 1) % count.max(1),
            // Ctrl+R once more goes to what was sent before that, as in a shell.
            KeyCode::Char('n' | 'r') if ctrl => self.at = (self.at + 1) % count.max(1),
            KeyCode::PageUp => self.at = self.at.saturating_sub(MOST_SHOWN),
            KeyCode::PageDown => self.at = (self.at + MOST_SHOWN).min(count.saturating_sub(1)),
            _ => {
                let before = self.filter.text().to_owned();
                if !self.filter.edit(event) || before == self.filter.text() {
                    return Taken;
                }
                self.sift();
                is_other = true;
            }
        }
        is_other |= self.at != was;
        match self.here() {
            Some(entry) if self.before.is_some() && is_other => Live(entry.choice.clone()),
            Some(_) | None => Taken,
        }
    }

    fn leave(&self) -> super::Answer {
        match &self.before {
            Some(choice) => super::Answer::Chosen(choice.clone()),
            None => super::Answer::Close,
        }
    }

    pub fn wheel(&mut self, by: isize) {
        let last = self.passing.len().saturating_sub(1);
        self.at = self.at.saturating_add_signed(by).min(last);
    }

    /// The rows of the list, framed, for so many columns and at most so many rows.
    pub fn rows(&self, columns: usize, height: usize) -> Vec<Row> {
        let most = height.saturating_sub(2).clamp(1, MOST_SHOWN);
        let passing = &self.passing;
        let first = self.at.saturating_sub(most - 1);
        let inside = columns.saturating_sub(5);
        // What is said of the entries begins in one column.
        let described = self.entries.iter().filter(|it| !it.about.is_empty());
        let column = described.map(|it| width::width(&it.label)).max().unwrap_or(0);
        let mut rows = vec![frame_row("╭", &self.heading(), "╮", columns)];
        for (n, entry) in passing.iter().enumerate().skip(first).take(most) {
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
            let text = if self.takes_terms {
                say!("list-terms")
            } else {
                say!("list-nothing")
            };
            let text = width::pad(text, inside);
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
        heading(&self.title, &self.filter)
    }

    /// Column of the caret inside the first row: what is typed narrows the list.
    pub fn caret(&self, columns: usize) -> usize {
        caret_in(&self.title, &self.filter, columns)
    }

    /// Ranks the entries by what is typed.
    fn sift(&mut self) {
        self.at = 0;
        if self.filter.text().trim().is_empty() {
            self.passing = (0..self.entries.len())
                .filter(|it| self.entries.get(*it).is_some_and(|it| !it.is_deep))
                .collect();
            return;
        }
        let facts: Vec<String> = self
            .entries
            .iter()
            .map(|it| format!("{} {} {}", it.about, it.facts, it.aliases))
            .collect();
        let texts = self.entries.iter().zip(&facts);
        self.passing = fuzzy::rank(
            self.filter.text(),
            texts.map(|(it, facts)| (it.label.as_str(), facts.as_str())),
        );
        if self.takes_terms && self.filter.text().contains([':', '=', '<', '>', '"', ' ']) {
            self.passing.clear();
        }
    }
}

/// What a list is called, and what narrows it.
pub(super) fn heading(title: &str, filter: &Draft) -> String {
    if filter.text().is_empty() {
        format!(" {title} ")
    } else {
        format!(" {title} › {} ", Clean::line(filter.text()))
    }
}

/// Where the caret stands in a frame with that heading: behind the title, and in what is typed.
pub(super) fn caret_in(title: &str, filter: &Draft, columns: usize) -> usize {
    let before = filter.slice(0..filter.caret());
    let typed = if filter.text().is_empty() {
        0
    } else {
        3 + width::width(&Clean::line(before))
    };
    (3 + width::width(title) + typed).min(columns.saturating_sub(3))
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
