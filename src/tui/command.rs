//! The commands that are offered while a draft begins with a slash, and what may stand behind them.
//!
//! The list follows the draft; the keys that choose are its own, everything else is typed.

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use super::{
    actions,
    app::{App, Focus, Mouse},
    custom::Custom,
    effects::Effect,
    filter::FACETS,
    overlays::{DraftOffer, Picker},
};
use crate::{protocol::Mode, t};

/// What is offered.
#[derive(Default)]
pub struct Commands {
    /// The commands of files, as far as they have been read.
    pub custom: Vec<Custom>,
    /// The list, while one is shown.
    pub list: Option<List>,
    /// What was run lately, the last one first: names of actions.
    pub recent: Vec<&'static str>,
}

pub struct List {
    pub picker: Picker,
    /// The draft that it was made for.
    draft: String,
    /// Sent away, until something else is typed.
    is_hidden: bool,
    /// Somebody chose in it.
    is_moved: bool,
}

impl List {
    fn step(&mut self, forward: bool) {
        self.picker.step(forward);
        self.is_moved = true;
    }
}

impl Commands {
    pub fn shown(&self) -> Option<&Picker> {
        self.list.as_ref().filter(|it| !it.is_hidden).map(|it| &it.picker)
    }

    /// Notes that an action was run.
    pub fn note(&mut self, name: &'static str) {
        self.recent.retain(|it| *it != name);
        self.recent.insert(0, name);
        self.recent.truncate(12);
    }

    pub fn custom(&self, word: &str) -> Option<&Custom> {
        self.custom.iter().find(|it| it.name == word)
    }
}

/// What may stand behind a command, and what it means.
pub fn arguments(app: &App, command: &str) -> Vec<(String, &'static str)> {
    let literal = |words: &[(&str, &'static str)]| -> Vec<(String, &'static str)> {
        words.iter().map(|(word, about)| ((*word).to_owned(), *about)).collect()
    };
    match command {
        "mode" => Mode::ALL.map(|it| (it.as_str().to_owned(), "")).into(),
        "theme" => {
            let names = app.appearance.themes.names.iter().map(|it| (it.clone(), ""));
            std::iter::once(("auto".to_owned(), t!("theme-about-auto")))
                .chain(names)
                .collect()
        }
        "effort" => literal(&[
            ("auto", t!("effort-about-auto")),
            ("off", t!("effort-about-off")),
            ("low", ""),
            ("medium", ""),
            ("high", ""),
        ]),
        "filter" => {
            let facets = FACETS.iter().map(|it| (it.name.to_owned(), it.about()));
            facets.chain([("everything".to_owned(), "")]).collect()
        }
        "mouse" => Mouse::ALL.map(|it| (it.as_str().to_owned(), "")).into(),
        "sandbox" => literal(&[
            ("guard", t!("sandbox-about-guard")),
            ("strict", t!("sandbox-about-strict")),
        ]),
        "copy" => literal(&[
            ("markdown", t!("copy-about-markdown")),
            ("plain", t!("copy-about-plain")),
            ("code", t!("copy-about-code")),
            ("markdown all", t!("copy-about-all")),
            ("plain all", t!("copy-about-all")),
            ("code all", t!("copy-about-all-code")),
        ]),
        _ => Vec::new(),
    }
}

/// After a key: makes the list that fits the draft, or takes it away.
pub fn look(app: &mut App) -> Vec<Effect> {
    let draft = app.composer.field.text();
    let is_here = app.viewport.focus == Focus::Composer && app.overlays.is_empty();
    let Some(body) = draft
        .strip_prefix('/')
        .filter(|it| is_here && !it.contains('\n') && it.len() < 200)
    else {
        app.composer.commands.list = None;
        return Vec::new();
    };
    if app.composer.commands.list.as_ref().is_some_and(|it| it.draft == draft) {
        return Vec::new();
    }
    let is_first = app.composer.commands.list.is_none() && body.is_empty();
    let picker = offer(app, body);
    app.composer.commands.list = picker.map(|picker| List {
        picker,
        draft,
        is_hidden: false,
        is_moved: false,
    });
    // Files may have been written since the last time.
    if is_first { vec![Effect::Commands] } else { Vec::new() }
}

/// The commands of files have been read.
pub fn found(app: &mut App, custom: Vec<Custom>) {
    app.composer.commands.custom = custom;
    if let Some(list) = app.composer.commands.list.take() {
        let picker = offer(app, list.draft.trim_start_matches('/'));
        app.composer.commands.list = picker.map(|picker| List { picker, ..list });
    }
}

fn offer(app: &App, body: &str) -> Option<Picker> {
    let picker = match body.split_once(char::is_whitespace) {
        Some((word, typed)) => {
            let arguments = arguments(app, word);
            let offers = arguments.into_iter().map(|(argument, about)| DraftOffer {
                label: argument.clone(),
                about: about.to_owned(),
                facts: String::new(),
                draft: format!("/{word} {argument}"),
            });
            Picker::offers("/", offers.collect(), typed.trim_start())
        }
        None => {
            let mut actions: Vec<_> = actions::ACTIONS
                .iter()
                .filter(|it| !it.slash.is_empty() && (app.preferences.is_developer || it.name != "panic"))
                .collect();
            let recent = &app.composer.commands.recent;
            actions.sort_by_key(|it| recent.iter().position(|name| *name == it.name).unwrap_or(usize::MAX));
            let actions = actions.into_iter().map(|it| DraftOffer {
                label: format!("/{}", it.slash),
                about: it.about().to_owned(),
                facts: String::new(),
                draft: format!("/{}", it.slash),
            });
            let custom = app.composer.commands.custom.iter().map(|it| DraftOffer {
                label: format!("/{}", it.name),
                about: it.about.clone(),
                facts: it.origin.clone(),
                draft: format!("/{} ", it.name),
            });
            Picker::offers(t!("list-commands"), actions.chain(custom).collect(), body)
        }
    };
    (!picker.is_empty()).then_some(picker)
}

/// What became of a key.
pub enum Took {
    /// It was not for the list.
    No,
    Yes,
    /// The draft is a whole command now: it is to be sent.
    Send,
}

pub fn key(app: &mut App, event: KeyEvent) -> Took {
    if app.viewport.focus != Focus::Composer {
        return Took::No;
    }
    let ctrl = event.modifiers.contains(KeyModifiers::CONTROL);
    let Some(list) = app.composer.commands.list.as_mut().filter(|it| !it.is_hidden) else {
        return Took::No;
    };
    match event.code {
        KeyCode::Up | KeyCode::Down => list.step(event.code == KeyCode::Down),
        KeyCode::Char('p' | 'n') if ctrl => list.step(event.code == KeyCode::Char('n')),
        KeyCode::Esc => list.is_hidden = true,
        KeyCode::Tab | KeyCode::Enter if event.modifiers.is_empty() => {
            let Some(draft) = list.picker.offered() else {
                return Took::No;
            };
            if event.code == KeyCode::Tab {
                let more = if draft.ends_with(' ') { "" } else { " " };
                let draft = format!("{draft}{more}");
                app.composer.field.set(&draft);
                return Took::Yes;
            }
            // Enter takes what was chosen, or what was begun; a word that only resembles a command is no command.
            let is_begun = draft.starts_with(list.draft.trim_end());
            if draft == list.draft || !(is_begun || list.is_moved) {
                list.is_hidden = true;
                return Took::No;
            }
            app.composer.field.set(&draft);
            app.composer.commands.list = None;
            return if draft.ends_with(' ') { Took::Yes } else { Took::Send };
        }
        _ => return Took::No,
    }
    Took::Yes
}
