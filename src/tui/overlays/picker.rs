//! A list to choose from: modes, models, themes, everything one can do.

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use super::{Answer, Overlay, Placement, Scene};
use crate::{
    protocol::Mode,
    t,
    text::{Background, Modifier, Role, Sanitized, Span, StyledLine, width},
    tui::{
        actions,
        app::{Action, App, MentionOffer, keymap::Place},
        command,
        editor::draft::Draft,
        filter::{FACETS, Filter},
        fuzzy,
        library::Kept,
        overlays::{Change, Spot, Verdict},
        places::Named,
        widgets::transcript::Item,
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
    label: Sanitized,
    about: Sanitized,
    /// Keys, at the right.
    facts: Sanitized,
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
            label: Sanitized::default(),
            about: Sanitized::default(),
            facts: Sanitized::default(),
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
    title: Sanitized,
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
    rows: Vec<StyledLine>,
}

/// At most so many entries are shown at once.
const MOST_SHOWN: usize = 12;

impl Picker {
    pub fn modes(current: Mode) -> Self {
        let about = |mode| match mode {
            Mode::Agent => t!("mode-about-agent"),
            Mode::Plan => t!("mode-about-plan"),
            Mode::Ask => t!("mode-about-ask"),
            Mode::Debug => t!("mode-about-debug"),
        };
        let entries = Mode::ALL.map(|mode| Entry {
            label: Sanitized::literal(mode.as_str()),
            about: Sanitized::literal(about(mode)),
            facts: Sanitized::default(),
            role: role_of(mode),
            choice: Choice::Mode(mode),
            ..Entry::default()
        });
        let at = Mode::ALL.iter().position(|it| *it == current).unwrap_or_default();
        Self::of(Sanitized::literal(t!("list-mode")), entries.into(), at)
    }

    pub fn efforts(current: Option<&str>) -> Self {
        let row = |word: &'static str, about: &'static str| Entry {
            label: Sanitized::literal(word),
            about: Sanitized::literal(about),
            choice: Choice::Action(&actions::everywhere::EFFORT, word.to_owned()),
            ..Entry::default()
        };
        let words = actions::everywhere::EFFORTS;
        let mut entries = vec![row("auto", t!("effort-about-auto"))];
        entries.extend(words.map(|it| row(it, "")));
        let at = words.iter().position(|it| Some(*it) == current).map_or(0, |it| it + 1);
        Self::of(Sanitized::literal(t!("list-effort")), entries, at)
    }

    pub fn models(names: &[String], current: Option<&str>) -> Self {
        let entries: Vec<_> = names
            .iter()
            .map(|name| Entry {
                label: Sanitized::line(name),
                about: Sanitized::default(),
                facts: Sanitized::default(),
                role: Role::Text,
                choice: Choice::Model(name.clone()),
                ..Entry::default()
            })
            .collect();
        let at = names
            .iter()
            .position(|it| Some(it.as_str()) == current)
            .unwrap_or_default();
        Self::of(Sanitized::literal(t!("list-model")), entries, at)
    }

    /// Files, symbols or documents that fit the text in the draft; the draft itself is the filter.
    pub fn files(title: &'static str, offers: &[MentionOffer], at: usize) -> Self {
        let entries = offers.iter().map(|it| Entry {
            label: Sanitized::line(&it.name),
            about: Sanitized::line(&it.about),
            facts: Sanitized::default(),
            role: Role::Text,
            choice: Choice::Model(String::new()),
            ..Entry::default()
        });
        Self::of(Sanitized::literal(title), entries.collect(), at)
    }

    pub fn themes(names: &[String], current: &str) -> Self {
        let names: Vec<_> = std::iter::once("auto".to_owned())
            .chain(names.iter().cloned())
            .collect();
        let entries = names
            .iter()
            .map(|name| Entry {
                label: Sanitized::line(name),
                about: if name == "auto" {
                    Sanitized::literal(t!("theme-about-auto"))
                } else {
                    Sanitized::default()
                },
                facts: Sanitized::default(),
                role: Role::Text,
                choice: Choice::Theme(name.clone()),
                ..Entry::default()
            })
            .collect();
        let at = names.iter().position(|it| it == current).unwrap_or_default();
        // Moving over a name shows it; leaving brings back what was.
        Self {
            before: Some(Choice::Theme(current.to_owned())),
            ..Self::of(Sanitized::literal(t!("list-theme")), entries, at)
        }
    }

    /// What can be shown alone, each with how much of it there is.
    pub fn facets(current: &Filter, counts: &[usize]) -> Self {
        let everything = Entry {
            label: Sanitized::literal("everything"),
            about: Sanitized::literal(t!("filter-everything")),
            facts: Sanitized::default(),
            role: Role::Text,
            choice: Choice::Filter(String::new()),
            ..Entry::default()
        };
        let facets = FACETS.iter().zip(counts).map(|(facet, count)| Entry {
            label: Sanitized::literal(facet.name),
            about: Sanitized::literal(facet.about()),
            facts: Sanitized::line(&count.to_string()),
            role: if *count == 0 { Role::Dim } else { Role::Text },
            choice: Choice::Filter(facet.name.to_owned()),
            ..Entry::default()
        });
        let entries = std::iter::once(everything).chain(facets).collect();
        let at = FACETS.iter().position(|it| current.has(it)).map_or(0, |it| it + 1);
        Self {
            takes_terms: true,
            ..Self::of(Sanitized::literal(t!("list-show-only")), entries, at)
        }
    }

    /// What was sent before, the newest first.
    pub fn history(texts: &[String]) -> Self {
        let entries = texts.iter().rev().map(|text| Entry {
            label: Sanitized::line(text.get(..text.floor_char_boundary(400)).unwrap_or(text)),
            choice: Choice::Draft(text.clone()),
            ..Entry::default()
        });
        Self::of(Sanitized::literal(t!("list-sent-before")), entries.collect(), 0)
    }

    /// What can be done with the pasted text at the caret.
    pub fn chip(is_text: bool) -> Self {
        let entry = |label, about, way| Entry {
            label: Sanitized::literal(label),
            about: Sanitized::literal(about),
            choice: Choice::Chip(way),
            ..Entry::default()
        };
        let mut entries = Vec::new();
        if is_text {
            entries.push(entry(t!("chip-view"), t!("chip-about-view"), ChipWay::View));
            entries.push(entry(t!("chip-unfold"), t!("chip-about-unfold"), ChipWay::Unfold));
            entries.push(entry(t!("chip-edit"), t!("chip-about-edit"), ChipWay::Edit));
        }
        entries.push(entry(t!("chip-remove"), t!("chip-about-remove"), ChipWay::Remove));
        Self::of(Sanitized::literal(t!("list-pasted")), entries, 0)
    }

    /// The forms of a copy.
    pub fn copies(is_selected: bool) -> Self {
        let what = if is_selected {
            t!("copy-about-document")
        } else {
            t!("copied-last-answer")
        };
        let entry = |label, about, words| Entry {
            label: Sanitized::literal(label),
            about: Sanitized::literal(about),
            facts: Sanitized::default(),
            role: Role::Text,
            choice: Choice::Copy(words),
            ..Entry::default()
        };
        let all = t!("copy-about-all");
        Self::of(
            Sanitized::literal(t!("list-copy-as")),
            vec![
                entry(t!("copy-markdown"), what, "markdown"),
                entry(t!("copy-plain"), what, "plain"),
                entry(t!("copy-code"), what, "code"),
                entry(t!("copy-all-markdown"), all, "markdown all"),
                entry(t!("copy-all-plain"), all, "plain all"),
                entry(t!("copy-all-code"), all, "code all"),
            ],
            0,
        )
    }

    /// The files that a document names.
    pub fn places(places: Vec<Named>) -> Self {
        let entry = |(path, line): Named| Entry {
            label: Sanitized::line(&match line {
                Some(line) => format!("{path}:{line}"),
                None => path.clone(),
            }),
            about: Sanitized::default(),
            facts: Sanitized::default(),
            role: Role::Link,
            choice: Choice::Open(path, line),
            ..Entry::default()
        };
        Self::of(
            Sanitized::literal(t!("list-open")),
            places.into_iter().map(entry).collect(),
            0,
        )
    }

    /// Everything one can do, what was done lately first; what may stand behind a command once somebody types it.
    pub fn palette(app: &App) -> Self {
        let recent = &app.composer.commands.recent;
        let mut actions: Vec<_> = actions::ACTIONS
            .iter()
            .filter(|it| app.preferences.is_developer || it.name != "panic")
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
                .find_map(|at| app.preferences.keymap.keys(at, it.name).first().copied());
            let label = if it.slash.is_empty() {
                it.hint().to_owned()
            } else {
                format!("/{}", it.slash)
            };
            Entry {
                label: Sanitized::line(&label),
                about: Sanitized::literal(it.about()),
                facts: Sanitized::line(&keys.map(|it| it.to_string()).unwrap_or_default()),
                aliases: it.aliases(),
                choice: Choice::Action(it, String::new()),
                ..Entry::default()
            }
        };
        let deep = actions.iter().flat_map(|it| {
            let arguments = command::arguments(app, it.slash);
            arguments.into_iter().map(|(argument, about)| Entry {
                label: Sanitized::line(&format!("/{} {argument}", it.slash)),
                about: Sanitized::literal(about),
                choice: Choice::Action(it, argument),
                is_deep: true,
                ..Entry::default()
            })
        });
        let custom = app.composer.commands.custom.iter().map(|it| Entry {
            label: Sanitized::line(&format!("/{}", it.name)),
            about: Sanitized::line(&it.about),
            facts: Sanitized::line(&it.origin),
            choice: Choice::Custom(it.name.clone()),
            ..Entry::default()
        });
        let deep: Vec<Entry> = deep.collect();
        let entries = actions.iter().map(|it| entry(it)).chain(custom).chain(deep).collect();
        Self::of(Sanitized::literal(t!("list-do")), entries, 0)
    }

    /// Drafts that fit what has been typed.
    pub fn offers(title: &'static str, offers: Vec<Offer>, typed: &str) -> Self {
        let entry = |it: Offer| Entry {
            label: Sanitized::line(&it.label),
            about: Sanitized::line(&it.about),
            facts: Sanitized::line(&it.facts),
            choice: Choice::Draft(it.draft),
            ..Entry::default()
        };
        let mut picker = Self::of(Sanitized::literal(title), offers.into_iter().map(entry).collect(), 0);
        picker.filter = Draft::new(typed);
        picker.sift();
        picker
    }

    fn of(title: Sanitized, entries: Vec<Entry>, at: usize) -> Self {
        let mut picker = Self {
            title,
            entries,
            filter: Draft::default(),
            passing: Vec::new(),
            at: 0,
            before: None,
            takes_terms: false,
            rows: Vec::new(),
        };
        picker.sift();
        picker.at = at;
        picker
    }

    pub fn is_empty(&self) -> bool {
        self.passing.is_empty()
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

    /// Chooses the next entry, or the previous one; round and round.
    pub fn step(&mut self, forward: bool) {
        let count = self.passing.len().max(1);
        self.at = (self.at + if forward { 1 } else { count - 1 }) % count;
    }

    fn leave(&self) -> Answer {
        match &self.before {
            Some(choice) => Answer::Chosen(choice.clone()),
            None => Answer::Close,
        }
    }

    /// Returns the framed list: `columns` wide, at most `height` rows.
    pub fn framed(&self, columns: usize, height: usize) -> Vec<StyledLine> {
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
            let ground = if is_here {
                Background::Selection
            } else {
                Background::Plain
            };
            let mark = if is_here { Modifier::BOLD } else { Modifier::NONE };
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
            let text = |text: String, role| Span::new(Sanitized::new(&text), role).on(ground);
            rows.push(StyledLine::of(vec![
                Span::new(Sanitized::literal("│"), Role::Rule),
                text(if is_here { "› ".into() } else { "  ".into() }, Role::Accent),
                text(label, entry.role).modified(mark),
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
                Span::new(Sanitized::literal("│"), Role::Rule),
            ]));
        }
        if passing.is_empty() {
            let text = if self.takes_terms {
                t!("list-terms")
            } else {
                t!("list-nothing")
            };
            let text = width::pad(text, inside);
            rows.push(StyledLine::of(vec![
                Span::new(Sanitized::literal("│  "), Role::Rule),
                Span::new(Sanitized::new(width::cut(&text, inside)), Role::Dim),
                Span::new(Sanitized::literal(" │"), Role::Rule),
            ]));
        }
        rows.push(frame_row("╰", "", "╯", columns));
        rows
    }

    fn heading(&self) -> String {
        heading(&self.title, &self.filter)
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

impl Overlay for Picker {
    fn key(&mut self, event: KeyEvent, _: &Scene<'_>) -> Answer {
        use Answer::{Chosen, Live, Taken};
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
            KeyCode::Up => self.step(false),
            KeyCode::Char('p') if ctrl => self.step(false),
            KeyCode::Down | KeyCode::Tab => self.step(true),
            // Ctrl+R once more goes to what was sent before that, as in a shell.
            KeyCode::Char('n' | 'r') if ctrl => self.step(true),
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

    fn wheel(&mut self, by: isize) {
        let last = self.passing.len().saturating_sub(1);
        self.at = self.at.saturating_add_signed(by).min(last);
    }

    fn placement(&self) -> Placement {
        Placement::Popup(90)
    }

    fn lay_out(&mut self, _: &Scene<'_>, columns: usize, height: usize) {
        self.rows = self.framed(columns, height);
    }

    fn rows(&self) -> &[StyledLine] {
        &self.rows
    }

    fn caret(&self, columns: usize) -> Option<(usize, usize)> {
        Some((caret_in(&self.title, &self.filter, columns), 0))
    }

    fn hints(&self) -> Vec<(&'static str, &'static str)> {
        vec![
            ("enter", t!("footer-choose")),
            ("↑↓", t!("footer-move")),
            ("esc", t!("footer-close")),
        ]
    }

    fn spoken(&self) -> (Vec<String>, Option<&'static str>) {
        let entries = self.passing.iter().filter_map(|it| self.entries.get(*it));
        let lines = entries.enumerate().map(|(at, entry)| {
            let here = if at == self.at { t!("list-chosen-now") } else { "" };
            let parts = [entry.label.as_str(), entry.about.as_str(), entry.facts.as_str(), here];
            let said: Vec<_> = parts.into_iter().filter(|it| !it.is_empty()).collect();
            format!("  {} {}", at + 1, said.join(", "))
        });
        let lines = std::iter::once(self.heading().trim().to_owned()).chain(lines).collect();
        (lines, Some(t!("plain-how-picker")))
    }

    fn keys_of(&mut self, line: &str, _: bool) -> Result<Vec<KeyCode>, String> {
        let Ok(number) = line.parse::<usize>() else {
            return Ok(line.chars().map(KeyCode::Char).collect());
        };
        let count = self.passing.len();
        match number.checked_sub(1).filter(|it| *it < count) {
            Some(at) => {
                self.at = at;
                Ok(vec![KeyCode::Enter])
            }
            None => Err(t!("plain-entries", count = count)),
        }
    }
}

/// What a list is called, and what narrows it.
pub(super) fn heading(title: &str, filter: &Draft) -> String {
    if filter.text().is_empty() {
        format!(" {title} ")
    } else {
        format!(" {title} › {} ", Sanitized::line(filter.text()))
    }
}

/// Where the caret stands in a frame with that heading: behind the title, and in what is typed.
pub(super) fn caret_in(title: &str, filter: &Draft, columns: usize) -> usize {
    let before = filter.slice(0..filter.caret());
    let typed = if filter.text().is_empty() {
        0
    } else {
        3 + width::width(&Sanitized::line(before))
    };
    (3 + width::width(title) + typed).min(columns.saturating_sub(3))
}

pub(super) fn frame_row(left: &'static str, title: &str, right: &'static str, columns: usize) -> StyledLine {
    let title = width::cut_end(title, columns.saturating_sub(4));
    let rest = columns.saturating_sub(3 + width::width(&title));
    StyledLine::of(vec![
        Span::new(Sanitized::literal(left), Role::Rule),
        Span::new(Sanitized::literal("─"), Role::Rule),
        Span::new(Sanitized::new(&title), Role::Dim),
        Span::new(Sanitized::new(&"─".repeat(rest)), Role::Rule),
        Span::new(Sanitized::literal(right), Role::Rule),
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
