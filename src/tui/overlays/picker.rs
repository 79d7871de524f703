//! A list to choose from: modes, models, themes, all commands.

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use ratatui::{
    buffer::Buffer,
    layout::{Position, Rect},
    widgets::StatefulWidget,
};

use super::frame::{self, caret_in, heading};
use crate::{
    protocol::{Mode, ModelOffer, ModelOffers, ProblemsReport},
    t,
    text::{Role, Sanitized, Span, StyledLine, figure, width},
    theme::Theme,
    tui::{
        app::{
            Action, Answer, App, ChipAction, Choice, Composer, DraftList, MentionOffer, Overlay, Placement, Scene,
            keymap::KeyContext,
            own_files::{RuleFile, RuleRole},
        },
        editor::draft::Draft,
        fuzzy,
        places::FileReference,
        terminal::surface::Links,
        widgets::{
            composer::role_of,
            filter::{FACETS, Filter},
            list::{ListCursor, ListWidget, bold_if},
        },
    },
};

struct PickerEntry {
    label: Sanitized,
    about: Sanitized,
    /// Keys, at the right.
    facts: Sanitized,
    /// More words that find it; not shown.
    aliases: String,
    role: Role,
    choice: Choice,
    /// Listed only while a filter is typed.
    is_deep: bool,
    /// The one in force: first, and marked.
    is_in_use: bool,
}

impl PickerEntry {
    fn new(label: impl AsRef<str>, about: impl AsRef<str>, choice: Choice) -> Self {
        Self {
            label: Sanitized::line(label.as_ref()),
            about: Sanitized::line(about.as_ref()),
            facts: Sanitized::default(),
            aliases: String::new(),
            role: Role::Text,
            choice,
            is_deep: false,
            is_in_use: false,
        }
    }

    /// Its facts, with the mark of the entry in force.
    fn mark(&self) -> Sanitized {
        let parts = [self.facts.as_str(), t!("list-in-use")];
        Sanitized::line(
            &parts
                .into_iter()
                .filter(|it| !it.is_empty())
                .collect::<Vec<_>>()
                .join("  "),
        )
    }

    fn in_use(mut self, is_in_use: bool) -> Self {
        self.is_in_use = is_in_use;
        self
    }
}

/// A draft to choose.
pub struct DraftOffer {
    pub label: String,
    pub about: String,
    /// At the right.
    pub facts: String,
    /// The text that becomes the draft.
    pub draft: String,
}

/// A framed list with a filter.
pub struct Picker {
    title: Sanitized,
    entries: Vec<PickerEntry>,
    filter: Draft,
    /// Indices of the entries that pass the filter, the best first.
    passing: Vec<usize>,
    /// Among those that pass.
    cursor: ListCursor,
    /// The choice in force before, restored on leaving; with one, the entry under the cursor is applied at once.
    before: Option<Choice>,
    /// A note in the frame's last line; empty: none.
    note: Sanitized,
    /// The description of the entry under the cursor is worth a line of its own if it is cut.
    has_facts: bool,
    /// The filter may be a query of its own, which no entry stands for.
    takes_terms: bool,
}

/// Entries that are in view at once.
const MOST_SHOWN: usize = 12;

/// The choice of the agent that asks first.
pub struct AskingAgent {
    pub action: &'static Action,
    /// Argument of the action.
    pub word: &'static str,
    pub is_in_use: bool,
}

impl Picker {
    /// The modes, and the agent that asks first where there is one.
    pub fn modes(composer: &Composer, action: &'static Action, asks: Option<AskingAgent>) -> Self {
        let current = composer.mode;
        let is_own = composer.commands.custom_mode.is_none();
        let about = |mode| match mode {
            Mode::Agent => t!("mode-about-agent"),
            Mode::Plan => t!("mode-about-plan"),
            Mode::Ask => t!("mode-about-ask"),
            Mode::Debug => t!("mode-about-debug"),
        };
        let entry = |mode: Mode| PickerEntry {
            role: role_of(mode),
            ..PickerEntry::new(mode.as_str(), about(mode), Choice::Mode(mode))
        };
        let is_asking = asks.as_ref().is_some_and(|it| it.is_in_use);
        let mut entries: Vec<_> = Mode::ALL
            .map(|it| entry(it).in_use(it == current && is_own && !is_asking))
            .into();
        if let Some(AskingAgent {
            action,
            word,
            is_in_use,
        }) = asks
        {
            let choice = Choice::Action(action, word.to_owned());
            let asking = PickerEntry {
                role: role_of(Mode::Agent),
                ..PickerEntry::new(word, t!("mode-about-agent-asks"), choice)
            };
            entries.insert(1, asking.in_use(is_in_use));
        }
        for mode in &composer.commands.modes {
            let choice = Choice::Action(action, mode.name.clone());
            let about = if mode.about.is_empty() { &mode.path } else { &mode.about };
            let entry = PickerEntry {
                role: role_of(mode.base),
                ..PickerEntry::new(&mode.name, about, choice)
            };
            entries.push(entry.in_use(composer.commands.custom_mode.as_ref() == Some(&mode.name)));
        }
        Self::of(t!("list-mode"), entries)
    }

    /// Arguments of `action`, which sets the reasoning effort: `auto` and `words`.
    pub fn efforts(action: &'static Action, words: &[&str], current: Option<&str>) -> Self {
        let current = current.unwrap_or("auto");
        let entry = |word: &str, about| {
            PickerEntry::new(word, about, Choice::Action(action, word.to_owned())).in_use(word == current)
        };
        let mut entries = vec![entry("auto", t!("effort-about-auto"))];
        entries.extend(words.iter().map(|it| entry(it, "")));
        Self::of(t!("list-effort"), entries)
    }

    /// Models with provider, window, price and effort, as far as they are known.
    /// Providers without a list are named below.
    pub fn models(offers: &ModelOffers, current: Option<&str>) -> Self {
        let entries = offers.models.iter().map(|it| {
            let is_in_use = current == Some(it.name.as_str()) || (it.is_own && current == Some(it.id.as_str()));
            PickerEntry::new(&it.id, about_model(it), Choice::Model(it.name.clone())).in_use(is_in_use)
        });
        let note = match offers.problems.as_slice() {
            [] => Sanitized::line(&format!(" {} ", t!("list-model-more"))),
            problems => Sanitized::line(&format!(" {} ", problems.join(" · "))),
        };
        Self {
            note,
            has_facts: true,
            ..Self::of(t!("list-model"), entries)
        }
    }

    /// Files, symbols or documents that fit the text in the draft; the draft itself is the filter.
    pub fn files(title: &'static str, offers: &[MentionOffer], at: usize) -> Self {
        let entries = offers
            .iter()
            .map(|it| PickerEntry::new(&it.name, &it.about, Choice::Model(String::new())));
        let mut picker = Self::of(title, entries);
        picker.cursor = ListCursor::new(at);
        picker
    }

    pub fn themes(names: &[String], current: &str) -> Self {
        let entry =
            |name: &str, about| PickerEntry::new(name, about, Choice::Theme(name.to_owned())).in_use(name == current);
        let mut entries = vec![entry("auto", t!("theme-about-auto"))];
        entries.extend(names.iter().map(|it| entry(it, "")));
        Self {
            before: Some(Choice::Theme(current.to_owned())),
            ..Self::of(t!("list-theme"), entries)
        }
    }

    /// The facets of `/filter`, each with the number of items that it shows.
    pub fn facets(current: &Filter, counts: &[usize]) -> Self {
        let is_whole = !FACETS.iter().any(|it| current.has(it));
        let everything = PickerEntry::new("everything", t!("filter-everything"), Choice::Filter(String::new()));
        let everything = everything.in_use(is_whole);
        let facets = FACETS.iter().zip(counts).map(|(facet, count)| PickerEntry {
            facts: Sanitized::line(&count.to_string()),
            role: if *count == 0 { Role::Dim } else { Role::Text },
            ..PickerEntry::new(facet.name, facet.about(), Choice::Filter(facet.name.to_owned()))
                .in_use(current.has(facet))
        });
        Self {
            takes_terms: true,
            ..Self::of(t!("list-show-only"), std::iter::once(everything).chain(facets))
        }
    }

    /// Messages that were sent, oldest first; listed newest first.
    pub fn history(texts: &[String]) -> Self {
        let entries = texts.iter().rev().map(|text| {
            let label = text.get(..text.floor_char_boundary(400)).unwrap_or(text);
            PickerEntry::new(label, "", Choice::Draft(text.clone()))
        });
        Self::of(t!("list-sent-before"), entries)
    }

    /// Files of rules, to open in the editor.
    pub fn rules(files: Vec<RuleFile>) -> Self {
        let entries = files.into_iter().map(|it| {
            let about = match (it.role, &it.text) {
                (_, None) => t!("memory-about-new"),
                (RuleRole::User, Some(_)) => t!("memory-you"),
                (RuleRole::Project, Some(_)) => t!("memory-project"),
                (RuleRole::Other, Some(_)) => "",
            };
            PickerEntry::new(it.shown, about, Choice::OpenRules(it.path))
        });
        Self::of(t!("memory-files"), entries)
    }

    /// Operations on the chip at the caret.
    pub fn chip(is_text: bool) -> Self {
        let entry = |label, about, action| PickerEntry::new(label, about, Choice::Chip(action));
        let mut entries = vec![entry(t!("chip-remove"), t!("chip-about-remove"), ChipAction::Remove)];
        if is_text {
            let of_text = [
                entry(t!("chip-view"), t!("chip-about-view"), ChipAction::View),
                entry(t!("chip-unfold"), t!("chip-about-unfold"), ChipAction::Unfold),
                entry(t!("chip-edit"), t!("chip-about-edit"), ChipAction::Edit),
            ];
            entries.splice(0..0, of_text);
        }
        Self::of(t!("list-pasted"), entries)
    }

    /// The ways out when the file of an export exists; the safe one first.
    pub fn overwrite(path: &str) -> Self {
        let elsewhere = Choice::ExportElsewhere(path.to_owned());
        let replace = Choice::Export {
            path: path.to_owned(),
            overwrites: true,
        };
        let entries = [
            PickerEntry::new(
                t!("export-elsewhere"),
                t!("export-about-elsewhere", path = path),
                elsewhere,
            ),
            PickerEntry::new(t!("export-overwrite"), t!("export-about-overwrite"), replace),
        ];
        Self::of(t!("list-export-exists"), entries)
    }

    /// Offers to replace a file of the workspace that says something else than `text`.
    pub fn replace(path: &str, text: String) -> Self {
        let replace = Choice::Replace {
            path: path.to_owned(),
            text,
        };
        let about = t!("save-about-replace", path = path);
        let entry = PickerEntry::new(t!("export-overwrite"), about, replace);
        Self::of(t!("list-export-exists"), [entry])
    }

    /// The forms of a copy.
    pub fn copies(is_selected: bool) -> Self {
        let document = if is_selected {
            t!("copy-about-document")
        } else {
            t!("copied-last-answer")
        };
        let all = t!("copy-about-all");
        let entries = [
            (t!("copy-markdown"), document, "markdown"),
            (t!("copy-plain"), document, "plain"),
            (t!("copy-code"), document, "code"),
            (t!("copy-all-markdown"), all, "markdown all"),
            (t!("copy-all-plain"), all, "plain all"),
            (t!("copy-all-code"), all, "code all"),
        ];
        let entries = entries.map(|(label, about, words)| PickerEntry::new(label, about, Choice::Copy(words)));
        Self::of(t!("list-copy-as"), entries)
    }

    /// The files that a document names.
    pub fn places(places: Vec<FileReference>) -> Self {
        let entries = places.into_iter().map(|(path, line)| {
            let label = line.map_or_else(|| path.clone(), |it| format!("{path}:{it}"));
            PickerEntry {
                role: Role::Link,
                ..PickerEntry::new(label, "", Choice::Open(path, line))
            }
        });
        Self::of(t!("list-open"), entries)
    }

    /// The problems of the conversation's files. `settings`: the entry for those in the settings, and their number.
    pub fn problems(report: &ProblemsReport, settings: Option<(Choice, usize)>) -> Self {
        let settings = settings.map(|(choice, count)| PickerEntry {
            role: Role::Waiting,
            ..PickerEntry::new(t!("problems-settings", count = count), "", choice)
        });
        let entries = report.problems.iter().map(|it| PickerEntry {
            role: if it.is_error { Role::Error } else { Role::Waiting },
            facts: Sanitized::line(&it.source),
            ..PickerEntry::new(
                format!("{}:{}:{}", it.path, it.line, it.column),
                &it.message,
                Choice::Open(it.path.clone(), Some(it.line)),
            )
        });
        let mut picker = Self::of(t!("problems-title"), settings.into_iter().chain(entries));
        picker.note = Sanitized::line(&report.unchecked.join("; "));
        picker
    }

    /// All commands, those used most first; with a filter also the arguments of those that have some.
    pub fn palette(app: &App) -> Self {
        let commands = &app.composer.commands;
        let hidden = ["palette", "send", "escape", "interrupt", "newline", "queue", "leave"];
        let mut actions: Vec<_> = app
            .preferences
            .keymap
            .actions
            .iter()
            .filter(|it| app.preferences.is_developer || it.name != "panic")
            .filter(|it| !hidden.contains(&it.name))
            .collect();
        // Within equal use, the table's order: by group.
        actions.sort_by_key(|it| commands.rank(it.name));
        let entry = |it: &'static Action| {
            let mut keys = KeyContext::ALL
                .into_iter()
                .filter_map(|at| app.preferences.keymap.keys(at, it.name).first());
            let label = if it.slash.is_empty() {
                it.hint().to_owned()
            } else {
                format!("/{}", it.slash)
            };
            PickerEntry {
                facts: Sanitized::line(&keys.next().map(ToString::to_string).unwrap_or_default()),
                aliases: it.aliases(),
                ..PickerEntry::new(label, it.about(), Choice::Action(it, String::new()))
            }
        };
        let deep = |it: &&'static Action| {
            let action = *it;
            let arguments = action.arguments(app).into_iter();
            let entries = arguments.map(move |(argument, about)| PickerEntry {
                is_deep: true,
                ..PickerEntry::new(
                    format!("/{} {argument}", action.slash),
                    about,
                    Choice::Action(action, argument),
                )
            });
            entries.collect::<Vec<_>>()
        };
        let custom = commands.custom.iter().map(|it| {
            let entry = PickerEntry {
                facts: Sanitized::line(&it.origin),
                ..PickerEntry::new(format!("/{}", it.name), &it.about, Choice::Custom(it.name.clone()))
            };
            (commands.rank(&format!("/{}", it.name)), entry)
        });
        let mut entries: Vec<_> = actions
            .iter()
            .map(|it| (commands.rank(it.name), entry(it)))
            .chain(custom)
            .collect();
        entries.sort_by_key(|it| it.0);
        let entries = entries.into_iter().map(|it| it.1);
        Self::of(t!("list-do"), entries.chain(actions.iter().flat_map(deep)))
    }

    /// Drafts that fit what has been typed.
    pub fn offers(title: &'static str, offers: Vec<DraftOffer>, typed: &str) -> Self {
        let entries = offers.into_iter().map(|it| PickerEntry {
            facts: Sanitized::line(&it.facts),
            ..PickerEntry::new(it.label, it.about, Choice::Draft(it.draft))
        });
        let mut picker = Self::of(title, entries);
        picker.filter = Draft::new(typed);
        picker.sift();
        picker
    }

    fn of(title: &'static str, entries: impl IntoIterator<Item = PickerEntry>) -> Self {
        let mut entries: Vec<_> = entries.into_iter().collect();
        entries.sort_by_key(|it| !it.is_in_use);
        let mut picker = Self {
            title: Sanitized::literal(title),
            entries,
            filter: Draft::default(),
            passing: Vec::new(),
            cursor: ListCursor::default(),
            before: None,
            note: Sanitized::default(),
            has_facts: false,
            takes_terms: false,
        };
        picker.sift();
        picker
    }

    pub fn is_empty(&self) -> bool {
        self.passing.is_empty()
    }

    /// Returns the number of entries that match what was typed.
    pub fn len(&self) -> usize {
        self.passing.len()
    }

    fn entry(&self, at: usize) -> Option<&PickerEntry> {
        self.passing.get(at).and_then(|it| self.entries.get(*it))
    }

    fn here(&self) -> Option<&PickerEntry> {
        self.entry(self.cursor.at)
    }

    /// Chooses the next entry, or the previous one; round and round.
    pub fn step(&mut self, forward: bool) {
        let count = self.passing.len().max(1);
        self.cursor.at = (self.cursor.at + if forward { 1 } else { count - 1 }) % count;
    }

    fn leave(&self) -> Answer {
        match &self.before {
            Some(choice) => Answer::Chosen(choice.clone()),
            None => Answer::Close,
        }
    }

    /// Lines of the list and its frame.
    pub fn lines(&self) -> usize {
        self.passing.len().clamp(1, MOST_SHOWN) + 2
    }

    /// Draws the list in its frame; returns the cursor with the view that it has then.
    pub fn draw(&self, area: Rect, buf: &mut Buffer, theme: &Theme) -> ListCursor {
        // What did not fit beside the entry under the cursor stands in the last line.
        let here = self.here().map_or("", |it| it.about.as_str());
        let column = self.column();
        let is_cut = column + width::width(here) + 12 > usize::from(area.width);
        let about = if is_cut && self.has_facts {
            format!(" {here} ")
        } else {
            self.note.to_string()
        };
        let inside = frame::frame(area, buf, &self.heading(), &about, theme);
        let mut cursor = self.cursor;
        let list = ListWidget {
            count: self.passing.len(),
            sign: "› ",
            is_active: true,
            line: |at, is_here, columns| match self.entry(at) {
                Some(entry) => line(entry, is_here, column, columns),
                None => Vec::new(),
            },
            theme,
        };
        list.render(inside, buf, &mut cursor);
        if self.passing.is_empty() {
            let text = if self.takes_terms {
                t!("list-terms")
            } else {
                t!("list-nothing")
            };
            let text = Span::new(format!("  {text}"), Role::Dim);
            frame::lines(inside, buf, &[StyledLine::of([text])], theme);
        }
        cursor
    }

    /// Column in which descriptions begin.
    fn column(&self) -> usize {
        let described = self.entries.iter().filter(|it| !it.about.is_empty());
        described.map(|it| width::width(&it.label)).max().unwrap_or(0)
    }

    fn heading(&self) -> String {
        heading(&self.title, &self.filter)
    }

    /// Ranks the entries by what is typed.
    fn sift(&mut self) {
        self.cursor = ListCursor::new(0);
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
            &self.filter.text(),
            texts.map(|(it, facts)| (it.label.as_str(), facts.as_str())),
        );
        // A command that Vim calls exactly so comes first.
        let text = self.filter.text();
        let is_named = |at: &usize| match self.entries.get(*at).map(|it| &it.choice) {
            Some(Choice::Action(action, argument)) => argument.is_empty() && action.vim_words().contains(&text.trim()),
            _ => false,
        };
        if let Some(at) = self.passing.iter().position(is_named) {
            self.passing[..=at].rotate_right(1);
        }
        if self.takes_terms && self.filter.text().contains([':', '=', '<', '>', '"', ' ']) {
            self.passing.clear();
        }
    }
}

impl DraftList for Picker {
    fn step(&mut self, forward: bool) {
        Self::step(self, forward);
    }

    fn offered(&self) -> Option<String> {
        match &self.here()?.choice {
            Choice::Draft(draft) => Some(draft.clone()),
            _ => None,
        }
    }

    fn lines(&self) -> usize {
        Self::lines(self)
    }

    fn draw(&self, area: Rect, buf: &mut Buffer, theme: &Theme) -> ListCursor {
        Self::draw(self, area, buf, theme)
    }
}

impl Overlay for Picker {
    fn key(&mut self, event: KeyEvent, _: &Scene<'_>) -> Answer {
        use Answer::{Chosen, Live, Taken};
        let count = self.passing.len();
        let ctrl = event.modifiers.contains(KeyModifiers::CONTROL);
        let was = self.cursor.at;
        let mut is_other = false;
        match event.code {
            KeyCode::Esc => return self.leave(),
            KeyCode::Char('c' | '.' | 'k') if ctrl => return self.leave(),
            KeyCode::Enter => {
                return match self.here() {
                    Some(entry) => Chosen(entry.choice.clone()),
                    None if self.takes_terms => Chosen(Choice::Filter(self.filter.text().into_owned())),
                    None => Taken,
                };
            }
            KeyCode::Up => self.step(false),
            KeyCode::Char('p') if ctrl => self.step(false),
            KeyCode::Down | KeyCode::Tab => self.step(true),
            // Ctrl+R once more goes to what was sent before that, as in a shell.
            KeyCode::Char('n' | 'r') if ctrl => self.step(true),
            KeyCode::PageUp => self.cursor.step(-(MOST_SHOWN as isize), count),
            KeyCode::PageDown => self.cursor.step(MOST_SHOWN as isize, count),
            _ => {
                let before = self.filter.text().into_owned();
                if !self.filter.edit(event) || before == self.filter.text() {
                    return Taken;
                }
                self.sift();
                is_other = true;
            }
        }
        is_other |= self.cursor.at != was;
        match self.here() {
            Some(entry) if self.before.is_some() && is_other => Live(entry.choice.clone()),
            Some(_) | None => Taken,
        }
    }

    fn paste(&mut self, text: &str) -> Option<Answer> {
        self.filter.insert(&Sanitized::line(text));
        self.sift();
        Some(Answer::Taken)
    }

    fn wheel(&mut self, by: isize) {
        self.cursor.step(by, self.passing.len());
    }

    fn list(&self) -> Option<&ListCursor> {
        Some(&self.cursor)
    }

    fn placement(&self) -> Placement {
        Placement::Popup {
            columns: 90,
            lines: self.lines(),
        }
    }

    fn render(&mut self, area: Rect, buf: &mut Buffer, _: &mut Links, scene: &Scene<'_>) {
        self.cursor = self.draw(area, buf, scene.theme);
    }

    fn caret(&self, area: Rect) -> Option<Position> {
        let x = caret_in(&self.title, &self.filter, area.width);
        Some(Position::new(area.x + x, area.y))
    }

    fn hints(&self) -> Vec<(&'static str, &'static str)> {
        vec![
            ("enter", t!("footer-choose")),
            ("↑↓", t!("footer-move")),
            ("esc", t!("footer-close")),
        ]
    }

    fn spoken(&self, _: &Buffer) -> (Vec<String>, Option<&'static str>) {
        let entries = self.passing.iter().filter_map(|it| self.entries.get(*it));
        let lines = entries.enumerate().map(|(at, entry)| {
            let here = if at == self.cursor.at {
                t!("list-chosen-now")
            } else {
                ""
            };
            let used = if entry.is_in_use { t!("list-in-use") } else { "" };
            let parts = [
                entry.label.as_str(),
                entry.about.as_str(),
                entry.facts.as_str(),
                used,
                here,
            ];
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
                self.cursor.at = at;
                Ok(vec![KeyCode::Enter])
            }
            None => Err(t!("plain-entries", count = count)),
        }
    }
}

/// Provider, window, price and effort of a model.
fn about_model(offer: &ModelOffer) -> String {
    let dollars = |thousandths: u64| {
        let whole = thousandths / 1000;
        match thousandths % 1000 {
            0 => format!("${whole}"),
            part => format!("${whole}.{}", format!("{part:03}").trim_end_matches('0')),
        }
    };
    let parts = [
        Some(offer.provider.clone()),
        offer.window.map(|it| figure::tokens(it).to_string()),
        offer.price.map(|it| format!("{}/{}", dollars(it.0), dollars(it.1))),
        offer.has_effort.then(|| t!("model-has-effort").to_owned()),
    ];
    parts
        .into_iter()
        .flatten()
        .filter(|it| !it.is_empty())
        .collect::<Vec<_>>()
        .join(" · ")
}

fn line(entry: &PickerEntry, is_here: bool, column: usize, columns: usize) -> Vec<Span> {
    let columns = columns.saturating_sub(1);
    let marked = if entry.is_in_use {
        entry.mark()
    } else {
        entry.facts.clone()
    };
    // A long path leaves room for the name; its end says the most.
    let marked = Sanitized::line(&width::cut_start(&marked, (columns / 3).max(8)));
    let facts = width::width(&marked);
    let room = columns.saturating_sub(facts + 2);
    let mut label = width::cut_end(&entry.label, room);
    if !entry.about.is_empty() {
        label = width::pad(&label, column.min(room));
    }
    let mut about = width::cut_end(&entry.about, room.saturating_sub(width::width(&label) + 2));
    if !about.is_empty() {
        about.insert_str(0, "  ");
    }
    let used = width::width(&label) + width::width(&about) + facts;
    vec![
        Span::new(Sanitized::new(&label), entry.role).modified(bold_if(is_here)),
        Span::new(Sanitized::new(&about), Role::Dim),
        Span::new(" ".repeat(columns.saturating_sub(used)), Role::Dim),
        Span::new(marked, if entry.is_in_use { Role::Accent } else { Role::Dim }),
    ]
}

#[cfg(test)]
mod tests {
    use pretty_assertions::assert_eq;

    use super::*;
    use crate::transcript::Transcript;

    #[test]
    fn descriptions_stand_in_one_column_and_the_filter_in_the_title() {
        let facts = |facts: &str| facts.to_owned();
        let offers = [("/ask", "no changes", ""), ("/语言", "language", "f2"), ("/x", "", "")];
        let offers = offers.map(|(label, about, keys)| DraftOffer {
            label: label.to_owned(),
            about: about.to_owned(),
            facts: facts(keys),
            draft: label.to_owned(),
        });
        let mut picker = Picker::offers("Run", offers.into(), "");
        picker.step(true);
        let drawn = |picker: &mut Picker, columns, lines| Scene::drawn(picker, &Transcript::default(), columns, lines);
        assert_eq!(
            drawn(&mut picker, 28, 5),
            [
                "╭─ Run ────────────────────╮",
                "│  /ask   no changes       │",
                "│› /语言  language      f2 │",
                "│  /x                      │",
                "╰──────────────────────────╯",
            ]
        );
        assert_eq!(drawn(&mut picker, 13, 3)[1], "│› /语…  f2 │");
        let long = [DraftOffer {
            label: "/tools:check".to_owned(),
            about: "Checks the code".to_owned(),
            facts: facts("~/.local/share/sheaf/plugins/tools/commands/check.md"),
            draft: String::new(),
        }];
        let mut paths = Picker::offers("Run", long.into(), "");
        let row = &drawn(&mut paths, 44, 3)[1];
        assert_eq!(row, "│› /tools:check  Checks th…  …nds/check.md │");
        let typed = KeyEvent::new(KeyCode::Char('z'), KeyModifiers::NONE);
        Scene::test(&Transcript::default(), |scene| picker.key(typed, scene));
        let lines = picker.lines() as u16;
        let nothing = drawn(&mut picker, 28, lines);
        assert!(nothing[0].starts_with("╭─ Run › z ───"), "{nothing:?}");
        assert_eq!(nothing.len(), 3);
        assert_eq!(picker.caret(Rect::new(2, 4, 28, 3)), Some(Position::new(12, 4)));
    }
}
