//! The commands that are offered while a draft begins with a slash, and what may stand behind them.
//!
//! The list follows the draft; the keys that choose are its own, everything else is typed.

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use super::{
    app::{App, CommandList, DraftList as _, Effect, Focus, ask_servers, effects::ask},
    custom::{Custom, described},
    overlays::{DraftOffer, Picker},
};
use crate::{
    extensions::CustomMode,
    protocol::{PromptValues, Query, Reply, ServerPrompt},
    t,
};

/// Bytes of a draft for which a list is made.
const MOST_BYTES: usize = 200;

/// After a key: makes the list that fits the draft, or takes it away.
pub fn look(app: &mut App) -> Vec<Effect> {
    let Some(draft) = begun(app) else {
        app.composer.commands.list = None;
        return Vec::new();
    };
    let list = app.composer.commands.list.as_ref();
    if list.is_some_and(|it| it.draft == draft) {
        return Vec::new();
    }
    let is_first = list.is_none() && draft == "/";
    app.composer.commands.list = None;
    renew(app);
    // Files may have been written since the last time, and servers started.
    if is_first {
        vec![Effect::Commands, ask_servers(renew)]
    } else {
        ask_for_values(app)
    }
}

/// Asks the server of the prompt in the draft for values of the argument that is being typed, one request at a time.
fn ask_for_values(app: &mut App) -> Vec<Effect> {
    let Some(draft) = begun(app).filter(|it| prompt_of(app, it).is_some()) else {
        return Vec::new();
    };
    let commands = &mut app.composer.commands;
    if commands.is_asking || commands.asked_for == draft {
        return Vec::new();
    }
    commands.is_asking = true;
    commands.asked_for.clone_from(&draft);
    let query = Query::PromptValues(draft.clone());
    vec![ask!(query, Reply::PromptValues, or_default, move |app, values| {
        let commands = &mut app.composer.commands;
        (commands.values, commands.is_asking) = (values, false);
        renew(app);
        ask_for_values(app)
    })]
}

/// The prompt of a server, with arguments, that a draft calls.
fn prompt_of<'a>(app: &'a App, draft: &str) -> Option<&'a ServerPrompt> {
    let (word, _) = draft.strip_prefix('/')?.split_once(char::is_whitespace)?;
    let mut prompts = app.composer.commands.prompts.iter();
    prompts.find(|it| it.command == word && !it.arguments.is_empty())
}

/// The draft, if it is the beginning of a command.
fn begun(app: &App) -> Option<String> {
    let is_here = app.viewport.focus == Focus::Composer && app.overlays.is_empty();
    if !is_here || !app.composer.field.starts_with("/") {
        return None;
    }
    Some(app.composer.field.text()).filter(|it| !it.contains('\n') && it.len() <= MOST_BYTES)
}

/// The commands and modes of files have been read.
pub fn found(app: &mut App, mut custom: Vec<Custom>, modes: Vec<CustomMode>) {
    // Another machine is told the name of a mode; commands of files are filled in by the agent here.
    let is_here = app.conversation.about.runs;
    custom.retain(|_| is_here);
    let commands = &mut app.composer.commands;
    (commands.custom, commands.modes, commands.is_read) = (custom, modes, is_here);
    renew(app);
}

/// Makes the list that fits the draft, of what is known now.
fn renew(app: &mut App) {
    app.viewport.bars = None;
    let Some(draft) = begun(app) else {
        return;
    };
    let before = app.composer.commands.list.take();
    let chosen = before
        .as_ref()
        .filter(|it| it.is_moved)
        .and_then(|it| it.picker.offered());
    let mut picker = offer(app, draft.get(1..).unwrap_or_default());
    // What was chosen stays chosen, if it is still there.
    let is_moved = picker.as_mut().is_some_and(|it| choose(it, chosen.as_deref()));
    app.composer.commands.list = picker.map(|picker| CommandList {
        picker: Box::new(picker),
        takes_free_text: prompt_of(app, &draft).is_some(),
        draft,
        is_hidden: before.as_ref().is_some_and(|it| it.is_hidden),
        is_moved,
    });
}

/// Moves to an offer. Returns false, and is at the first one, if it is not there.
fn choose(picker: &mut Picker, chosen: Option<&str>) -> bool {
    let Some(chosen) = chosen else {
        return false;
    };
    let count = picker.len();
    for _ in 0..count {
        if picker.offered().as_deref() == Some(chosen) {
            return true;
        }
        picker.step(true);
    }
    // It has come round.
    false
}

fn offer(app: &App, body: &str) -> Option<Picker> {
    let known = app.preferences.keymap.actions;
    let picker = match body.split_once(char::is_whitespace) {
        Some(_) if prompt_of(app, &format!("/{body}")).is_some() => {
            let PromptValues {
                before,
                values,
                is_last,
            } = &app.composer.commands.values;
            let typed = body.strip_prefix(before.strip_prefix('/')?)?;
            let offers = values.iter().map(|it| DraftOffer {
                label: it.clone(),
                about: String::new(),
                facts: String::new(),
                draft: format!("{before}{it}{}", if *is_last { "" } else { " " }),
            });
            Picker::offers("/", offers.collect(), typed)
        }
        Some((word, typed)) => {
            let action = known.iter().find(|it| it.slash == word);
            let arguments = action.map(|it| it.arguments(app)).unwrap_or_default();
            let offers = arguments.into_iter().map(|(argument, about)| DraftOffer {
                label: argument.clone(),
                about: about.to_owned(),
                facts: String::new(),
                draft: format!("/{word} {argument}"),
            });
            Picker::offers("/", offers.collect(), typed.trim_start())
        }
        None => {
            let actions: Vec<_> = known
                .iter()
                .filter(|it| !it.slash.is_empty() && (app.preferences.is_developer || it.name != "panic"))
                .collect();
            let commands = &app.composer.commands;
            let actions = actions.into_iter().map(|it| {
                let offer = DraftOffer {
                    label: format!("/{}", it.slash),
                    about: it.about().to_owned(),
                    facts: String::new(),
                    draft: format!("/{}", it.slash),
                };
                (commands.rank(it.name), offer)
            });
            let custom = commands.custom.iter().map(|it| {
                let offer = DraftOffer {
                    label: format!("/{}", it.name),
                    about: it.about.clone(),
                    facts: it.origin.clone(),
                    draft: format!("/{} ", it.name),
                };
                (commands.rank(&format!("/{}", it.name)), offer)
            });
            let prompts = commands.prompts.iter().map(|it| {
                let offer = DraftOffer {
                    label: format!("/{}", it.command),
                    about: described(&it.arguments, &it.about),
                    facts: String::new(),
                    draft: format!("/{} ", it.command),
                };
                (commands.rank(&format!("/{}", it.command)), offer)
            });
            let mut offers: Vec<_> = actions.chain(custom).chain(prompts).collect();
            // Within equal use, the table's order: by group.
            offers.sort_by_key(|it| it.0);
            Picker::offers(t!("list-commands"), offers.into_iter().map(|it| it.1).collect(), body)
        }
    };
    (!picker.is_empty()).then_some(picker)
}

/// The result of a key.
pub enum KeyResult {
    /// It was not for the list.
    No,
    Yes,
    /// The draft is a whole command now: it is to be sent.
    Send,
}

pub fn key(app: &mut App, event: KeyEvent) -> KeyResult {
    if app.viewport.focus != Focus::Composer {
        return KeyResult::No;
    }
    let ctrl = event.modifiers.contains(KeyModifiers::CONTROL);
    let Some(list) = app.composer.commands.list.as_mut().filter(|it| !it.is_hidden) else {
        return KeyResult::No;
    };
    match event.code {
        KeyCode::Up | KeyCode::Down => list.step(event.code == KeyCode::Down),
        KeyCode::Char('p' | 'n') if ctrl => list.step(event.code == KeyCode::Char('n')),
        KeyCode::Esc => list.is_hidden = true,
        KeyCode::Tab | KeyCode::Enter if event.modifiers.is_empty() => {
            let Some(draft) = list.picker.offered() else {
                return KeyResult::No;
            };
            if event.code == KeyCode::Tab {
                let more = if draft.ends_with(' ') { "" } else { " " };
                let draft = format!("{draft}{more}");
                app.composer.field.set(&draft);
                return KeyResult::Yes;
            }
            if draft == list.draft || !list.takes_marked() {
                list.is_hidden = true;
                return KeyResult::No;
            }
            app.composer.field.set(&draft);
            app.composer.commands.list = None;
            return if draft.ends_with(' ') {
                KeyResult::Yes
            } else {
                KeyResult::Send
            };
        }
        _ => return KeyResult::No,
    }
    KeyResult::Yes
}
