//! A list of settings or rules that are edited where they are shown. What is written says in which file and line.

use std::collections::BTreeMap;

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use ratatui::{
    buffer::Buffer,
    layout::{Position, Rect},
    widgets::StatefulWidget,
};

use super::frame;
use crate::{
    config::{self, KEYS, Layer, Settings, ValueKind},
    locale,
    protocol::{Permissions, Query, UserAction},
    t,
    text::{Role, Sanitized, Span, StyledLine, width, wrap::wrap},
    tui::{
        app::{
            Answer, App, Effect, Overlay, Scene,
            effects::{ask_for, own_files},
            own_files::{FileOutcome, FileTask},
        },
        editor::draft::Draft,
        terminal::surface::Links,
        widgets::list::{ListCursor, ListWidget, bold_if},
    },
};

/// A line of the list.
#[derive(Clone, Debug)]
struct EditRow {
    label: String,
    value: String,
    /// At the right: where the value comes from.
    origin: String,
    /// Something that is stronger than the user's file sets it.
    is_overridden: bool,
    /// The user's file sets it.
    is_own: bool,
    about: String,
    /// The values that it can have, if they are few.
    words: Vec<String>,
    action: RowAction,
}

/// The effect of Enter on a line.
#[derive(Clone, Debug, PartialEq, Eq)]
enum RowAction {
    /// None: a heading, or what cannot be changed here.
    Nothing,
    /// Edits a setting.
    Setting(String),
    /// Adds an entry to a list of rules.
    Add(&'static str),
    /// Removes a rule from a list, once it is pressed again.
    Remove(&'static str),
}

/// Identity of a row: rows come and go.
type RowKey = (RowAction, String);

impl EditRow {
    fn key(&self) -> RowKey {
        (self.action.clone(), self.label.clone())
    }
}

/// A value that is being written.
struct Editing {
    row: RowKey,
    draft: Draft,
    /// The values that the arrows go through, if they are few.
    words: Vec<String>,
    /// Nothing was typed yet: of few values, what is typed takes the place of the one that is there.
    is_fresh: bool,
    /// The value as it is: the same again is not written.
    was: String,
}

/// The list, and the line that is being edited.
pub struct EditList {
    title: &'static str,
    rows: Vec<EditRow>,
    filter: Draft,
    /// Indices of the rows that pass the filter.
    passing: Vec<usize>,
    cursor: ListCursor,
    editing: Option<Editing>,
    /// The row that the next Enter removes, if it is still the chosen one.
    marked: Option<RowKey>,
    /// What was written, and where.
    note: String,
    /// The caret's cell as of the last drawing.
    caret: Option<Position>,
}

impl EditList {
    /// All settings with their values and origins; `themes` are the names that there are.
    ///
    /// `written` has what was written since they were read, by path: value and place.
    pub fn settings(settings: &Settings, written: &BTreeMap<String, (String, String)>, themes: &[String]) -> Self {
        let is_at = |key: &config::Key, path: &str| {
            let (own, parts): (Vec<_>, Vec<_>) = (key.path.split('.').collect(), path.split('.').collect());
            own.len() == parts.len() && own.iter().zip(&parts).all(|(own, part)| *own == "*" || own == part)
        };
        let rows = config::explain(settings).into_iter().map(|it| {
            let key = KEYS.iter().find(|key| is_at(key, &it.path));
            // A table has no text, and rules are changed by /permissions.
            let is_fixed = key.is_some_and(|it| matches!(it.kind, ValueKind::Headers | ValueKind::Rules));
            let value = it.value.unwrap_or_default();
            let is_secret = value.contains(HIDDEN) || key.is_some_and(|it| it.kind == ValueKind::Secret);
            let mut about: Vec<_> = key
                .iter()
                .flat_map(|it| [locale::text_or(&it.text_id(), it.about).to_owned(), kind_text(it.kind)])
                .collect();
            if is_secret {
                about.push(t!("config-secret").to_owned());
            }
            let mut row = EditRow {
                words: match key.map(|it| &it.kind) {
                    Some(ValueKind::Flag) => owned(&["true", "false"]),
                    Some(ValueKind::Word(words)) => owned(words),
                    _ if it.path == THEME => owned(&["auto"]).into_iter().chain(themes.iter().cloned()).collect(),
                    _ => Vec::new(),
                },
                about: about.join(" · "),
                value,
                is_overridden: it.origin.layer > Layer::User,
                is_own: it.origin.layer == Layer::User,
                origin: match it.origin.place {
                    None => t!("config-default").to_owned(),
                    Some(_) => it.origin.to_string(),
                },
                action: if is_fixed || is_secret {
                    RowAction::Nothing
                } else {
                    RowAction::Setting(it.path.clone())
                },
                label: it.path,
            };
            if let Some((value, place)) = written.get(&row.label).filter(|_| !row.is_overridden) {
                (row.value, row.origin) = (value.clone(), place.clone());
                row.is_own = !value.is_empty();
            }
            row
        });
        Self::of(t!("config-title"), rows.collect())
    }

    /// The rules of permissions, in the order in which they are looked at.
    pub fn permissions(permissions: &Permissions) -> Self {
        let run = match permissions.run.as_str() {
            "ask" => t!("permissions-run-ask"),
            "list" => t!("permissions-run-list"),
            "force" => t!("permissions-run-force"),
            _ => t!("permissions-run-sandbox"),
        };
        let row = |label: &str, about: &str, action| EditRow {
            words: Vec::new(),
            label: label.to_owned(),
            value: String::new(),
            origin: String::new(),
            is_overridden: false,
            is_own: false,
            about: about.to_owned(),
            action,
        };
        let about = format!("{run} {}", t!("permissions-where"));
        let mut rows = vec![if permissions.run == "force" {
            row("--force", &about, RowAction::Nothing)
        } else {
            let kind = KEYS.iter().find(|it| it.path == RUN).map(|it| &it.kind);
            EditRow {
                words: match kind {
                    Some(ValueKind::Word(words)) => owned(words),
                    _ => Vec::new(),
                },
                value: permissions.run.clone(),
                is_own: permissions.run != "sandbox",
                ..row(RUN, &about, RowAction::Setting(RUN.to_owned()))
            }
        }];
        if permissions.has_invalid_rule {
            rows.push(row(t!("permissions-doubtful"), "", RowAction::Nothing));
        }
        for (name, list, rules, sign) in [
            (t!("permissions-deny"), "approvals.deny", &permissions.deny, "✗"),
            (t!("permissions-ask"), "approvals.ask", &permissions.ask, "?"),
            (t!("permissions-allow"), "approvals.allow", &permissions.allow, "✓"),
        ] {
            rows.push(row(name, list, RowAction::Nothing));
            for rule in rules {
                let mut row = row(rule, t!("permissions-remove"), RowAction::Remove(list));
                sign.clone_into(&mut row.origin);
                rows.push(row);
            }
            rows.push(row(
                t!("permissions-add"),
                t!("permissions-add-how"),
                RowAction::Add(list),
            ));
        }
        if !permissions.session.is_empty() {
            rows.push(row(
                t!("permissions-session"),
                t!("permissions-where"),
                RowAction::Nothing,
            ));
        }
        for rule in &permissions.session {
            rows.push(row(rule, t!("permissions-where"), RowAction::Nothing));
        }
        Self::of(t!("page-permissions"), rows)
    }

    fn of(title: &'static str, rows: Vec<EditRow>) -> Self {
        Self {
            title,
            passing: (0..rows.len()).collect(),
            rows,
            filter: Draft::default(),
            cursor: ListCursor::new(0),
            editing: None,
            marked: None,
            note: String::new(),
            caret: None,
        }
    }

    fn here(&self) -> Option<(usize, &EditRow)> {
        let at = *self.passing.get(self.cursor.at)?;
        Some((at, self.rows.get(at)?))
    }

    /// Finds the rows that pass the filter: those that have its words in their names, then those that have them in their
    /// descriptions.
    fn sift(&mut self) {
        let wanted = self.filter.text().to_lowercase();
        let words: Vec<&str> = wanted.split_whitespace().collect();
        let passes = |it: &EditRow| {
            let about = match it.action {
                RowAction::Setting(_) => it.about.as_str(),
                RowAction::Nothing | RowAction::Add(_) | RowAction::Remove(_) => "",
            };
            let text = format!("{} {} {about}", it.label, it.value).to_lowercase();
            words.iter().all(|word| text.contains(word))
        };
        let rows = self.rows.iter().enumerate();
        let mut passing: Vec<(bool, usize)> = rows
            .filter(|(_, it)| passes(it))
            .map(|(at, it)| {
                let label = it.label.to_lowercase();
                (!words.iter().all(|word| label.contains(word)), at)
            })
            .collect();
        passing.sort_unstable();
        self.passing = passing.into_iter().map(|it| it.1).collect();
    }

    /// Applies a filter that has changed: chooses the row of exactly that name, or the first that passes; without a filter the row
    /// stays chosen.
    fn search(&mut self) {
        let here = self.passing.get(self.cursor.at).copied();
        self.sift();
        let wanted = self.filter.text().to_lowercase();
        let is_named = |it: &usize| self.rows.get(*it).is_some_and(|it| it.label == wanted.trim());
        let named = self.passing.iter().position(is_named);
        let same = self.passing.iter().position(|it| Some(*it) == here);
        let place = named.or(same.filter(|_| wanted.trim().is_empty()));
        self.cursor = ListCursor::new(place.unwrap_or(0));
    }

    /// After a step: goes on in its direction to a row that is no heading, if there is one.
    fn skip_headings(&mut self, code: KeyCode) {
        let does = |at: &usize| {
            let row = self.passing.get(*at).and_then(|it| self.rows.get(*it));
            row.is_some_and(|it| it.action != RowAction::Nothing || !it.about.is_empty())
        };
        let at = self.cursor.at;
        let next = match code {
            KeyCode::Up => (0..=at)
                .rev()
                .find(does)
                .or_else(|| (at..self.passing.len()).find(does)),
            KeyCode::Down => (at..self.passing.len())
                .find(does)
                .or_else(|| (0..=at).rev().find(does)),
            _ => None,
        };
        if let Some(next) = next {
            self.cursor.at = next;
        }
    }

    fn row(&mut self, key: &RowKey) -> Option<(usize, &mut EditRow)> {
        self.rows.iter_mut().enumerate().find(|it| it.1.key() == *key)
    }

    fn enter(&mut self) -> Answer {
        let Some(row) = self.here().map(|it| it.1.clone()) else {
            return Answer::Taken;
        };
        self.note.clear();
        let key = row.key();
        if self.marked.take().as_ref() == Some(&key) {
            return Self::remove(key);
        }
        match row.action {
            RowAction::Nothing => {}
            RowAction::Setting(_) => self.edit(key, &typed(&row.value)),
            RowAction::Add(_) => self.edit(key, ""),
            RowAction::Remove(_) => self.mark(key),
        }
        Answer::Taken
    }

    /// Edits a row, beginning with `text`.
    fn edit(&mut self, row: RowKey, text: &str) {
        let (was, words) = match self.row(&row) {
            Some((_, it)) => (typed(&it.value), it.words.clone()),
            None => (String::new(), Vec::new()),
        };
        self.editing = Some(Editing {
            row,
            words,
            draft: Draft::new(text),
            is_fresh: true,
            was,
        });
    }

    /// Takes what was edited: the same value again is none, and an empty one removes the setting, if it is confirmed.
    fn edited(&mut self, editing: Editing) -> Answer {
        let text = editing.draft.text();
        if text.trim() == editing.was.trim() {
            return Answer::Taken;
        }
        if text.trim().is_empty() {
            self.mark(editing.row);
            return Answer::Taken;
        }
        if !editing.words.is_empty() && !editing.words.iter().any(|it| it == text.trim()) {
            self.note = t!("config-none-of", value = text.trim(), values = editing.words.join(", "));
            self.editing = Some(editing);
            return Answer::Taken;
        }
        Self::store(editing.row, &text)
    }

    /// Marks what the next Enter removes, if the user's file has it.
    fn mark(&mut self, key: RowKey) {
        let Some((_, row)) = self.row(&key) else { return };
        let (is_marked, note) = match row.action {
            RowAction::Remove(_) => (true, t!("permissions-again")),
            RowAction::Setting(_) if row.is_own => (true, t!("config-again")),
            RowAction::Setting(_) => (false, t!("config-not-yours")),
            RowAction::Add(_) | RowAction::Nothing => (false, ""),
        };
        note.clone_into(&mut self.note);
        self.marked = is_marked.then_some(key);
    }

    fn unmark(&mut self) -> bool {
        let was_marked = self.marked.take().is_some();
        if was_marked {
            self.note.clear();
        }
        was_marked
    }

    /// Removes a rule or a setting from the user's file.
    fn remove(key: RowKey) -> Answer {
        let (task, value) = match &key.0 {
            RowAction::Remove(list) => {
                let entry = key.1.clone();
                let task = FileTask::Entry {
                    path: list,
                    entry,
                    is_removed: true,
                };
                (task, None)
            }
            RowAction::Setting(path) => {
                let path = path.clone();
                (FileTask::Setting { path, value: None }, Some(String::new()))
            }
            RowAction::Add(_) | RowAction::Nothing => return Answer::Taken,
        };
        Answer::Does(own_files(task, move |app, outcome| {
            written(app, &key, value.clone(), outcome)
        }))
    }

    /// Stores what was written in the place of a row.
    fn store(key: RowKey, text: &str) -> Answer {
        let value = text.trim().to_owned();
        match key.0.clone() {
            RowAction::Setting(path) => {
                let task = FileTask::Setting {
                    path,
                    value: Some(value.clone()),
                };
                Answer::Does(own_files(task, move |app, outcome| {
                    written(app, &key, Some(value.clone()), outcome)
                }))
            }
            RowAction::Add(list) if !value.is_empty() => {
                // Whoever reads rules says what is wrong with one before it is written.
                Answer::Does(ask_for(
                    Query::CheckRule(value.clone()),
                    move |app, reply| match reply {
                        Err(why) => said(app, &key, &why, Some(&value)),
                        Ok(_) => {
                            let (key, value, task) = (
                                key.clone(),
                                value.clone(),
                                FileTask::Entry {
                                    path: list,
                                    entry: value.clone(),
                                    is_removed: false,
                                },
                            );
                            vec![own_files(task, move |app, outcome| {
                                written(app, &key, Some(value.clone()), outcome)
                            })]
                        }
                    },
                ))
            }
            RowAction::Add(_) | RowAction::Nothing | RowAction::Remove(_) => Answer::Taken,
        }
    }

    /// Shows what a change did to a row: its new value, a new rule above it, or that it is gone.
    fn take(&mut self, key: &RowKey, value: Option<String>, place: &str, is_applied: bool) {
        let Some((at, row)) = self.row(key) else { return };
        self.note = match (&row.action, value) {
            (RowAction::Setting(_), value) => {
                let value = value.unwrap_or_default();
                let is_removed = value.is_empty();
                if row.is_overridden && !is_removed {
                    t!("config-overridden", place = place, by = row.origin.as_str())
                } else {
                    if !row.is_overridden {
                        row.value = value;
                        let origin = if is_removed { t!("config-default") } else { place };
                        origin.clone_into(&mut row.origin);
                        row.is_own = !is_removed;
                    }
                    match (is_removed, is_applied) {
                        (true, true) => t!("config-removed-now", place = place),
                        (true, false) => t!("config-removed", place = place),
                        (false, true) => t!("config-written-now", place = place),
                        (false, false) => t!("config-written", place = place),
                    }
                }
            }
            (RowAction::Add(list), Some(rule)) => {
                let new = EditRow {
                    words: Vec::new(),
                    label: rule,
                    value: String::new(),
                    origin: place.to_owned(),
                    is_overridden: false,
                    is_own: true,
                    about: t!("permissions-remove").to_owned(),
                    action: RowAction::Remove(list),
                };
                self.rows.insert(at, new);
                self.sift();
                // The next rule goes to the same list.
                let place = self.passing.iter().position(|it| *it == at + 1);
                self.cursor = ListCursor::new(place.unwrap_or(self.cursor.at));
                t!("config-written-now", place = place)
            }
            (RowAction::Remove(_), _) => {
                self.rows.remove(at);
                self.sift();
                self.cursor = ListCursor::new(self.cursor.at.min(self.passing.len().saturating_sub(1)));
                t!("config-removed-now", place = place)
            }
            (RowAction::Add(_) | RowAction::Nothing, _) => String::new(),
        };
    }
}

/// The word after or before `text`; the first or the last one if `text` is none of them.
fn neighbour<'a>(words: &'a [String], text: &str, is_next: bool) -> &'a str {
    let count = words.len();
    let at = words.iter().position(|it| *it == text);
    let next = match (at, is_next) {
        (Some(at), true) => (at + 1) % count.max(1),
        (Some(at), false) => (at + count - 1) % count.max(1),
        (None, true) => 0,
        (None, false) => count.saturating_sub(1),
    };
    words.get(next).map_or("", String::as_str)
}

/// Settings with rows of their own.
const THEME: &str = "theme";
const RUN: &str = "approvals.run";

/// Returns the values that a kind accepts, in the user's language.
fn kind_text(kind: ValueKind) -> String {
    match kind {
        ValueKind::Text => t!("config-kind-text").to_owned(),
        ValueKind::Word(words) => words.join(" | "),
        ValueKind::Flag => t!("config-kind-switch").to_owned(),
        ValueKind::Whole { least, most: u64::MAX } => t!("config-kind-from", least = least),
        ValueKind::Whole { least, most } => t!("config-kind-between", least = least, most = most),
        ValueKind::Number => t!("config-kind-number").to_owned(),
        ValueKind::Duration | ValueKind::Grace => t!("config-kind-duration").to_owned(),
        ValueKind::Url => t!("config-kind-address").to_owned(),
        ValueKind::Proxy => t!("config-kind-proxy").to_owned(),
        ValueKind::Path => t!("config-kind-path").to_owned(),
        ValueKind::List => t!("config-kind-list").to_owned(),
        ValueKind::Words(words) => t!("config-kind-words", words = words.join(" | ")),
        ValueKind::Rules => t!("config-kind-rules").to_owned(),
        ValueKind::Headers | ValueKind::Variables => t!("config-kind-table").to_owned(),
        ValueKind::Secret => t!("config-kind-secret").to_owned(),
        ValueKind::Command => t!("config-kind-command").to_owned(),
    }
}

fn owned(words: &[&str]) -> Vec<String> {
    words.iter().map(|it| (*it).to_owned()).collect()
}

/// Rows of the list beside what is below it.
const LIST_ROWS: usize = 3;

/// Shown in the place of a secret.
const HIDDEN: &str = "***";

/// The text to type for a value that is written as in a file: a text without its quotes, anything else as it is.
fn typed(value: &str) -> String {
    let table = toml::from_str::<toml::Table>(&["value", value].join("=")).unwrap_or_default();
    match table.get("value") {
        Some(toml::Value::String(it)) => it.clone(),
        _ => value.to_owned(),
    }
}

/// Shows the outcome of a change in its list, or in a toast if that was closed.
fn written(app: &mut App, key: &RowKey, value: Option<String>, outcome: Result<FileOutcome, String>) -> Vec<Effect> {
    let place = match outcome {
        Ok(FileOutcome::Written { file, line }) => format!("{file}:{line}"),
        Ok(FileOutcome::Rules(_)) => return Vec::new(),
        Err(why) => return said(app, key, &why, value.as_deref()),
    };
    let mut is_applied = false;
    if let RowAction::Setting(path) = &key.0 {
        let value = value.clone().unwrap_or_default();
        let list = list_of(app, key);
        let is_overridden = list.is_some_and(|it| it.row(key).is_some_and(|it| it.1.is_overridden));
        is_applied = !is_overridden && apply(app, path, &value);
        let origin = if value.is_empty() { t!("config-default") } else { &place };
        app.preferences.written.insert(path.clone(), (value, origin.to_owned()));
    }
    let new = value.clone().unwrap_or_default();
    if let Some(list) = list_of(app, key) {
        list.take(key, value, &place, is_applied);
    }
    let change = |list: &'static str, rule: &str, is_removed| {
        let rule = rule.to_owned();
        // A gateway has rules of its own.
        ask_for(Query::ChangeRule { list, rule, is_removed }, |_, _| Vec::new())
    };
    match &key.0 {
        RowAction::Setting(path) if new.is_empty() => {
            App::record(UserAction::SettingRemoved, &[path, &place, "/config"])
        }
        RowAction::Setting(path) => {
            let name = format!("{path} = {new}");
            App::record(UserAction::SettingWritten, &[&name, &place, "/config"])
        }
        RowAction::Add(list) => {
            let mut effects = App::record(UserAction::SettingWritten, &[&new, &place, "/permissions"]);
            effects.push(change(list, &new, false));
            effects
        }
        RowAction::Remove(list) => {
            let mut effects = App::record(UserAction::SettingRemoved, &[&key.1, &place, "/permissions"]);
            effects.push(change(list, &key.1, true));
            effects
        }
        RowAction::Nothing => Vec::new(),
    }
}

/// Applies a setting that the screen reads as it goes; the empty text stands for its default. Returns false for all others,
/// which take effect at the next start.
fn apply(app: &mut App, path: &str, value: &str) -> bool {
    let settings = &mut app.preferences.settings;
    match path {
        "theme" => {
            let name = if value.is_empty() { "auto" } else { value };
            name.clone_into(&mut settings.theme);
            app.appearance.choose(name, settings.color);
        }
        "motion" => settings.motion = value != "false",
        _ => return false,
    }
    true
}

fn list_of<'a>(app: &'a mut App, key: &RowKey) -> Option<&'a mut EditList> {
    app.overlays
        .find::<EditList>(|it| it.rows.iter().any(|it| it.key() == *key))
}

/// Shows an error in its list, or in a toast if that was closed; what was typed can be corrected.
fn said(app: &mut App, key: &RowKey, why: &str, typed: Option<&str>) -> Vec<Effect> {
    let Some(list) = list_of(app, key) else {
        return app.toast(why);
    };
    why.clone_into(&mut list.note);
    if let Some(text) = typed.filter(|it| !it.is_empty() && list.editing.is_none()) {
        list.edit(key.clone(), text);
    }
    Vec::new()
}

impl Overlay for EditList {
    fn key(&mut self, event: KeyEvent, _: &Scene<'_>) -> Answer {
        let ctrl = event.modifiers.contains(KeyModifiers::CONTROL);
        if let Some(Editing {
            draft, words, is_fresh, ..
        }) = &mut self.editing
        {
            let was_fresh = std::mem::take(is_fresh);
            match event.code {
                KeyCode::Esc => self.editing = None,
                KeyCode::Char('c') if ctrl => self.editing = None,
                KeyCode::Char('u') if ctrl => draft.take_all(),
                KeyCode::Up | KeyCode::Down if !words.is_empty() => {
                    let word = neighbour(words, draft.text().trim(), event.code == KeyCode::Down);
                    draft.take_all();
                    draft.insert(word);
                }
                KeyCode::Enter => {
                    if let Some(editing) = self.editing.take() {
                        return self.edited(editing);
                    }
                }
                _ => {
                    if was_fresh && !words.is_empty() && matches!(event.code, KeyCode::Char(_)) && !ctrl {
                        draft.take_all();
                    }
                    draft.edit(event);
                }
            }
            return Answer::Taken;
        }
        if event.code == KeyCode::Enter {
            return self.enter();
        }
        // Any other key is a no.
        let was_marked = self.unmark();
        match event.code {
            KeyCode::Esc if was_marked => {}
            KeyCode::Esc if !self.filter.is_empty() => {
                self.filter.take_all();
                self.search();
            }
            KeyCode::Esc => return Answer::Close,
            KeyCode::Char('c') if ctrl => return Answer::Close,
            _ if self.cursor.key(event, self.passing.len()) => self.skip_headings(event.code),
            _ => {
                let version = self.filter.version;
                if self.filter.edit(event) && self.filter.version != version {
                    self.search();
                } else if event.code == KeyCode::Delete
                    && let Some(key) = self.here().map(|it| it.1.key())
                {
                    self.mark(key);
                }
            }
        }
        Answer::Taken
    }

    fn paste(&mut self, text: &str) -> Option<Answer> {
        let line = Sanitized::line(text);
        match &mut self.editing {
            Some(Editing { draft, .. }) => draft.insert(&line),
            None => {
                self.unmark();
                self.filter.insert(&line);
                self.search();
            }
        }
        Some(Answer::Taken)
    }

    fn list(&self) -> Option<&ListCursor> {
        self.editing.is_none().then_some(&self.cursor)
    }

    fn wheel(&mut self, by: isize) {
        self.unmark();
        self.cursor.step(by * 3, self.passing.len());
    }

    fn render(&mut self, area: Rect, buf: &mut Buffer, _: &mut Links, scene: &Scene<'_>) {
        let theme = scene.theme;
        let columns = usize::from(area.width);
        let head = StyledLine::of([
            Span::new(Sanitized::literal(self.title), Role::Strong).bold(),
            Span::new(Sanitized::line(&format!("   {}", self.filter.text())), Role::Accent),
        ]);
        let rest = frame::lines(area, buf, &[head, StyledLine::blank()], theme);
        let about = self.here().map(|it| it.1.about.clone()).unwrap_or_default();
        // What is typed comes first, as the rest may not have room.
        let mut below = vec![StyledLine::blank()];
        self.caret = None;
        let mut caret = None;
        if let Some(Editing {
            row: (_, name), draft, ..
        }) = &self.editing
        {
            let label = format!("{} › ", Sanitized::line(name));
            let room = columns.saturating_sub(width::width(&label)).max(1);
            let (shown, at) = draft.window(room);
            below.push(StyledLine::of([
                Span::new(Sanitized::new(&label), Role::Accent),
                Span::new(shown, Role::Text),
            ]));
            caret = Some((below.len() - 1, width::width(&label) + at));
        }
        if !self.note.is_empty() {
            let note = Span::new(Sanitized::line(&self.note), Role::Waiting);
            below.extend(wrap(&[note], columns, &[], &[]));
        }
        let about = wrap(&[Span::new(Sanitized::line(&about), Role::Dim)], columns, &[], &[]);
        below.extend(about.into_iter().take(3));
        let is_tight = usize::from(rest.height) < below.len() + LIST_ROWS;
        if is_tight {
            below.remove(0);
            below.truncate(usize::from(rest.height).saturating_sub(LIST_ROWS).max(1));
            caret = caret.map(|(row, column)| (row - 1, column));
        }
        let height = rest.height.saturating_sub(below.len() as u16);
        let place = Rect { height, ..rest };
        let label_columns = (columns / 2).max(1);
        let list = ListWidget {
            count: self.passing.len(),
            sign: "› ",
            is_active: self.editing.is_none(),
            line: |at, is_here, columns| {
                let row = self.passing.get(at).and_then(|it| self.rows.get(*it));
                row.map_or_else(Vec::new, |it| line(it, is_here, columns, label_columns))
            },
            theme,
        };
        let mut cursor = self.cursor;
        list.render(place, buf, &mut cursor);
        self.cursor = cursor;
        if self.passing.is_empty() && !self.filter.is_empty() {
            let nothing = Span::new(Sanitized::literal(t!("list-nothing")), Role::Dim);
            frame::lines(place, buf, &[StyledLine::of([nothing])], theme);
        }
        let under = Rect {
            y: place.bottom(),
            height: rest.height - height,
            ..rest
        };
        frame::lines(under, buf, &below, theme);
        self.caret = caret.map(|(row, column)| {
            let x = under.x + (column as u16).min(under.width.saturating_sub(1));
            Position::new(x, under.y + row as u16)
        });
    }

    fn caret(&self, _: Rect) -> Option<Position> {
        self.caret
    }

    fn hints(&self) -> Vec<(&'static str, &'static str)> {
        if let Some(editing) = &self.editing {
            let mut hints = vec![("enter", t!("footer-write"))];
            if !editing.words.is_empty() {
                hints.push(("↑↓", t!("footer-choose")));
            }
            hints.push(("esc", t!("footer-back")));
            return hints;
        }
        let enter = match self.here().map(|it| &it.1.action) {
            Some(RowAction::Remove(_)) => t!("footer-remove"),
            Some(RowAction::Add(_)) => t!("footer-add"),
            Some(RowAction::Setting(_)) => t!("footer-edit"),
            Some(RowAction::Nothing) | None => "",
        };
        let mut hints = Vec::new();
        if !enter.is_empty() {
            hints.push(("enter", enter));
        }
        if self
            .here()
            .is_some_and(|it| it.1.is_own && matches!(it.1.action, RowAction::Setting(_)))
        {
            hints.push(("delete", t!("footer-reset")));
        }
        hints.extend([
            ("↑↓", t!("footer-choose")),
            (t!("footer-letters"), t!("footer-find")),
            ("esc", t!("footer-close")),
        ]);
        hints
    }
}

/// A line of the list: label, value and origin, as far as there is room.
fn line(row: &EditRow, is_here: bool, columns: usize, label_columns: usize) -> Vec<Span> {
    let is_fixed = row.action == RowAction::Nothing;
    let role = if is_fixed { Role::Dim } else { Role::Text };
    let label = Sanitized::line(&row.label);
    if row.value.is_empty() && row.origin.len() <= 3 {
        let label = width::cut_end(&label, columns.saturating_sub(4));
        let sign = if row.origin.is_empty() {
            String::new()
        } else {
            format!("{} ", row.origin)
        };
        return vec![
            Span::new(Sanitized::line(&sign), Role::Dim),
            Span::new(Sanitized::new(&label), role).modified(bold_if(is_here)),
        ];
    }
    let label = width::pad(&width::cut_end(&label, label_columns.saturating_sub(2)), label_columns);
    let origin = Sanitized::line(&row.origin);
    let room = columns.saturating_sub(label_columns);
    // The origin goes first where there is little room.
    let beside = if room >= 40 {
        width::width(&origin).min(room / 2) + 2
    } else {
        0
    };
    let value = width::cut_end(&Sanitized::line(&row.value), room.saturating_sub(beside));
    let value = width::pad(&value, room.saturating_sub(beside));
    let mut spans = vec![
        Span::new(Sanitized::new(&label), role).modified(bold_if(is_here)),
        Span::new(Sanitized::new(&value), Role::Accent),
    ];
    if beside > 0 {
        let origin = width::cut_start(&origin, beside - 2);
        spans.push(Span::new(Sanitized::new(&format!("  {origin}")), Role::Faint));
    }
    spans
}
