//! Actions that are available everywhere.

use super::focus::{focus_composer, focus_transcript};
use crate::{
    extensions::CustomMode,
    protocol::{Command, Mode, ModelOffer, ModelOffers, Query, Reply, Restriction, TrustAnswer},
    t,
    tui::{
        app::{
            Action, App, Choice, Effect, Focus,
            effects::{ask, ask_for},
        },
        overlays::{AskingAgent, Inspector, Page, Picker, ServersPage, TrustPage},
        terminal::Mouse,
    },
};

/// Two presses of Ctrl+C within this time quit; two of Esc open the rewind page.
const TWICE_MS: u64 = 2000;

/// The word of the agent that asks first, for `/mode`.
pub const AGENT_ASKS: &str = "agent-asks";

/// Goes round: agent, the agent that asks first, plan, ask, debug, then the modes of files.
pub const MODE_NEXT: Action = Action::new("mode.next", "", |app, _| {
    let is_agent = app.composer.mode == Mode::Agent && !app.composer.asks_first;
    let mut effects = look_for_modes(app);
    if is_agent && app.composer.commands.custom_mode.is_none() && app.conversation.about.hears {
        effects.extend(ask_first(app));
        return effects;
    }
    // The modes of files come after the program's own.
    let modes = &app.composer.commands.modes;
    let at = app
        .composer
        .commands
        .custom_mode
        .as_ref()
        .map(|name| modes.iter().position(|it| it.name == *name));
    let next = match at {
        Some(at) => modes.get(at.map_or(modes.len(), |it| it + 1)),
        None if app.composer.mode == Mode::Debug => modes.first(),
        None => None,
    };
    effects.extend(match (next.cloned(), at) {
        (Some(mode), _) => set_custom_mode(app, &mode),
        (None, Some(_)) => set_mode(app, Mode::Agent),
        (None, None) => set_mode(app, app.composer.mode.next()),
    });
    effects
});

pub const MODE: Action = Action::new("mode", "mode", |app, word| match Mode::parse(word) {
    Some(mode) => set_mode(app, mode),
    None if word == AGENT_ASKS => ask_first(app),
    None if let Some(mode) = app.composer.commands.mode(word).cloned() => set_custom_mode(app, &mode),
    None if word.is_empty() => {
        let asks = app.conversation.about.hears.then_some(AskingAgent {
            action: &MODE,
            word: AGENT_ASKS,
            is_in_use: app.composer.asks_first,
        });
        let mut effects = look_for_modes(app);
        effects.extend(app.open(Picker::modes(&app.composer, &MODE, asks)));
        effects
    }
    None => {
        let own = Mode::ALL.iter().map(|it| it.as_str());
        let files = app.composer.commands.modes.iter().map(|it| it.name.as_str());
        let modes = own.chain(files).collect::<Vec<_>>().join(", ");
        app.toast(t!("action-no-mode", word = word, modes = modes))
    }
});

pub const MODEL: Action = Action::new("model", "model", |app, word| {
    if word.is_empty() {
        app.toast(t!("action-asking-for-models"));
        let draft = app.composer.field.version();
        return vec![ask!(
            Query::ModelOffers,
            Reply::ModelOffers,
            or_default,
            move |app, offers| if offers == ModelOffers::default() {
                // A gateway knows only its own.
                vec![ask!(Query::Models, Reply::Models, move |app, ids| {
                    let models = ids.into_iter().map(|id| ModelOffer {
                        name: id.clone(),
                        id,
                        is_own: true,
                        ..ModelOffer::default()
                    });
                    let models = models.collect();
                    choose_model(
                        app,
                        draft,
                        &ModelOffers {
                            models,
                            problems: Vec::new(),
                        },
                    )
                })]
            } else {
                choose_model(app, draft, &offers)
            }
        )];
    }
    use_model(app, word.to_owned())
});

/// Takes a model for the next message. A running answer keeps its own, and the header names that until it ends.
pub fn use_model(app: &mut App, name: String) -> Vec<Effect> {
    let conversation = &mut app.conversation;
    let turn = conversation.transcript.exchanges.last().map(|it| it.turn);
    if let Some(turn) = turn.filter(|_| conversation.is_busy() && conversation.answering_model().is_none()) {
        let old = app.composer.model_name(&conversation.about).map(str::to_owned);
        conversation.answer.model = old.map(|it| (turn, it));
    }
    let effects = app.toast(t!("action-model-chosen", model = name.as_str()));
    app.composer.model = Some(name);
    effects
}

fn choose_model(app: &mut App, draft: u64, offers: &ModelOffers) -> Vec<Effect> {
    if offers.models.is_empty() {
        return match offers.problems.as_slice() {
            [] => app.toast(t!("news-no-models")),
            problems => app.toast(problems.join(" · ")),
        };
    }
    let current = app.composer.model_name(&app.conversation.about);
    let picker = Picker::models(offers, current);
    app.open_late(draft, picker)
}

/// The levels of a model's reasoning effort.
pub const EFFORTS: [&str; 4] = ["off", "low", "medium", "high"];

pub const EFFORT: Action = Action::new("effort", "effort", |app, word| {
    if !app.conversation.about.hears {
        let text = t!("action-effort-deaf", peer = app.conversation.peer());
        return app.toast(text);
    }
    let chosen = EFFORTS.into_iter().find(|it| *it == word);
    match chosen {
        Some(effort) => {
            app.composer.effort = Some(effort);
            app.toast(t!("action-effort-chosen", effort = effort))
        }
        None if word == "auto" => {
            app.composer.effort = None;
            app.toast(t!("action-effort-auto"))
        }
        None if word.is_empty() => offer_efforts(app),
        None => app.toast(t!("action-no-effort", word = word, known = EFFORTS.join(", "))),
    }
});

fn offer_efforts(app: &mut App) -> Vec<Effect> {
    let picker = Picker::efforts(&EFFORT, &EFFORTS, app.composer.effort);
    app.open(picker)
}

pub const THEME: Action = Action::new("theme", "theme", |app, word| {
    if word.is_empty() {
        app.overlays.push(Picker::themes(
            &app.appearance.themes.names,
            &app.appearance.themes.chosen,
        ));
    } else if app.appearance.themes.names.iter().any(|it| it == word) || word == "auto" {
        app.appearance.choose(word, app.preferences.settings.color);
    } else {
        app.toast(t!(
            "action-no-theme",
            word = word,
            known = app.appearance.themes.names.join(", ")
        ));
    }
    Vec::new()
});

pub const PALETTE: Action = Action::new("palette", "", |app, _| app.open(Picker::palette(app)));

pub const MOUSE: Action = Action::new("mouse", "mouse", |app, word| {
    let next = match (Mouse::parse(word), app.terminal.mouse) {
        (Some(mouse), _) => mouse,
        (None, Mouse::Full) if word.is_empty() => Mouse::Wheel,
        (None, Mouse::Wheel) if word.is_empty() => Mouse::Off,
        (None, Mouse::Off) if word.is_empty() => Mouse::Full,
        (None, Mouse::Full | Mouse::Wheel | Mouse::Off) => {
            return app.toast(t!("action-no-mouse", word = word));
        }
    };
    app.terminal.mouse = next;
    app.toast(match next {
        Mouse::Full => t!("action-mouse-full"),
        Mouse::Wheel => t!("action-mouse-wheel"),
        Mouse::Off => t!("action-mouse-off"),
    });
    vec![Effect::Mouse(next)]
});

pub const PROBLEMS: Action = Action::new("problems", "problems", |app, arguments| {
    if arguments == OF_SETTINGS && !app.preferences.problems.is_empty() {
        app.overlays.push(Page::problems(&app.preferences.problems));
        return Vec::new();
    }
    let draft = app.composer.field.version();
    vec![ask!(
        Query::Problems,
        Reply::Problems,
        or_default,
        move |app, report| {
            let count = app.preferences.problems.len();
            match (report.problems.is_empty(), count) {
                (true, 0) => {
                    let unchecked = report.unchecked.first();
                    let text = unchecked.map_or_else(
                        || t!("action-no-problems").to_owned(),
                        |why| t!("edit-unchecked", why = why.as_str()),
                    );
                    app.toast(text)
                }
                (true, _) => app.open_late(draft, Page::problems(&app.preferences.problems)),
                (false, _) => {
                    let choice = Choice::Action(&PROBLEMS, OF_SETTINGS.to_owned());
                    let settings = (count > 0).then_some((choice, count));
                    app.open_late(draft, Picker::problems(&report, settings))
                }
            }
        }
    )]
});

/// The argument of `/problems` for those in the settings alone.
const OF_SETTINGS: &str = "settings";

pub const CONTEXT: Action = Action::new("context", "context", |app, _| {
    app.toast(t!("action-counting"));
    let draft = app.composer.field.version();
    vec![ask!(Query::Context, Reply::Context, move |app, parts| {
        app.open_late(draft, Page::context(&parts, app.conversation.window()))
    })]
});

pub const INSPECT: Action = Action::new("inspect", "inspect", |app, _| {
    let trace = app.conversation.link.log().watch();
    app.open(Inspector::new(trace))
});

pub const TRUST: Action = Action::new("trust", "trust", |app, _| {
    let draft = app.composer.field.version();
    vec![ask!(Query::Trust, Reply::Trust, move |app, report| {
        if report.entries.is_empty() {
            return app.toast(t!("trust-nothing"));
        }
        app.open_late(draft, TrustPage::new(report, app.now_ms))
    })]
});

pub const MCP: Action = Action::new("mcp", "mcp", |app, _| {
    let draft = app.composer.field.version();
    vec![ask!(Query::Servers, Reply::Servers, move |app, report| {
        app.open_late(draft, ServersPage::new(report, app.now_ms))
    })]
});

/// Keeps the user's answer to the question of trust.
pub fn decide_trust(answer: TrustAnswer) -> Vec<Effect> {
    vec![ask_for(Query::DecideTrust(answer), |app, reply| match reply {
        // The folder's commands and modes act from now on, or no more.
        Ok(_) => vec![Effect::Commands],
        Err(why) => app.toast(t!("trust-unsaved", why = why)),
    })]
}

pub const SANDBOX: Action = Action::new("sandbox", "sandbox", |app, word| {
    let guard = match word.trim() {
        "" => None,
        "guard" => Some(true),
        "strict" => Some(false),
        _ => {
            return app.toast(t!("action-sandbox-how"));
        }
    };
    app.toast(t!("action-looking"));
    let draft = app.composer.field.version();
    vec![ask!(Query::Sandbox { guard }, Reply::Sandbox, move |app, sandbox| {
        app.open_late(draft, Page::sandbox(&sandbox))
    })]
});

pub const KEYS: Action = Action::new("keys", "keys", |app, _| {
    app.open(Page::keys(&app.preferences.keymap, app.preferences.is_developer))
});

pub const HELP: Action = Action::new("help", "help", |app, argument| (KEYS.run)(app, argument));

pub const FOCUS: Action = Action::new("focus", "", |app, _| {
    match app.viewport.focus {
        Focus::Composer => focus_transcript(app),
        Focus::Transcript => focus_composer(app),
    }
    Vec::new()
});

pub const ESCAPE: Action = Action::new("escape", "", |app, _| {
    if app.viewport.focus == Focus::Transcript && app.viewport.search.take().is_some() {
        return Vec::new();
    }
    // Where nothing fits there is nothing to go to first.
    let is_at_hand = app.viewport.focus == Focus::Transcript || app.viewport.pane.items.is_empty();
    if is_at_hand && !app.viewport.pane.filter.is_empty() {
        return super::finding::show_only(app, "");
    }
    if app.viewport.focus == Focus::Transcript {
        focus_composer(app);
        return Vec::new();
    }
    if app.conversation.is_busy() {
        return stop(app);
    }
    let is_idle = app.questions.submitted_ms.is_none() && app.composer.field.is_empty();
    if !is_idle || app.conversation.transcript.exchanges.is_empty() {
        return Vec::new();
    }
    if app.now_ms.saturating_sub(app.terminal.last_escape_ms) < TWICE_MS {
        app.terminal.last_escape_ms = 0;
        return super::undo::REWIND.go(app, "");
    }
    app.terminal.last_escape_ms = app.now_ms;
    app.toast(t!("action-rewind-how"))
});

pub const INTERRUPT: Action = Action::new("interrupt", "", |app, _| {
    if app.viewport.focus == Focus::Composer
        && let Some(text) = app.composer.field.selected()
    {
        return vec![Effect::Copy {
            text,
            what: t!("copied-selection").into(),
        }];
    }
    if app.conversation.is_busy() {
        return stop(app);
    }
    if !app.composer.field.is_empty() {
        app.composer.history.keep(&app.composer.field.text());
        app.composer.field.clear();
        focus_composer(app);
        return Vec::new();
    }
    if app.now_ms.saturating_sub(app.terminal.last_interrupt_ms) < TWICE_MS {
        return vec![Effect::Quit(0)];
    }
    app.terminal.last_interrupt_ms = app.now_ms;
    app.toast(t!("action-quit-how"))
});

pub const LEAVE: Action = Action::new("leave", "", |app, _| {
    if app.composer.field.is_empty() {
        return vec![Effect::Quit(0)];
    }
    if app.viewport.focus == Focus::Composer {
        app.composer.field.delete();
    }
    Vec::new()
});

pub const QUIT: Action = Action::new("quit", "quit", |_, _| vec![Effect::Quit(0)]);

pub const SUSPEND: Action = Action::new("suspend", "", |_, _| vec![Effect::Suspend]);

pub const REDRAW: Action = Action::new("redraw", "", |_, _| vec![Effect::Redraw]);

pub const PANIC: Action = Action::new("panic", "panic", |app, _| {
    assert!(!app.preferences.is_developer, "asked for with /panic");
    app.toast(t!("action-no-panic"))
});

/// Has the files of modes read, once, where somebody runs who knows them.
fn look_for_modes(app: &mut App) -> Vec<Effect> {
    let is_new = !app.composer.commands.is_read;
    is_new.then_some(Effect::Commands).into_iter().collect()
}

/// Sets a mode of a file for the next message.
fn set_custom_mode(app: &mut App, mode: &CustomMode) -> Vec<Effect> {
    let effects = set_mode(app, mode.base);
    app.composer.commands.custom_mode = Some(mode.name.clone());
    effects
}

/// Sets agent mode, in which the model asks before each change and each command; in the running answer, too, from now on.
fn ask_first(app: &mut App) -> Vec<Effect> {
    app.composer.enter(Mode::Agent);
    app.composer.asks_first = true;
    let is_writing = app.conversation.is_busy() && app.conversation.running_mode().is_none_or(|it| !it.is_read_only());
    let is_less = is_writing && !app.conversation.asks_first();
    restrict(app, is_less.then_some(Restriction::AsksFirst))
}

/// Takes rights from the running answer, if it hears.
fn restrict(app: &mut App, restriction: Option<Restriction>) -> Vec<Effect> {
    let Some(restriction) = restriction.filter(|_| app.conversation.about.hears) else {
        return Vec::new();
    };
    let turn = app.conversation.transcript.exchanges.last().map(|it| it.turn);
    app.conversation.answer.restricted = turn.map(|it| (it, restriction));
    vec![Effect::Send(Command::Restrict(restriction))]
}

/// Sets the mode of the next message. A read-only one takes effect in the running answer, too, from now on.
pub fn set_mode(app: &mut App, mode: Mode) -> Vec<Effect> {
    app.composer.enter(mode);
    app.composer.asks_first = false;
    let is_less = mode.is_read_only() && app.conversation.running_mode().is_some_and(|it| !it.is_read_only());
    restrict(app, is_less.then_some(Restriction::Mode(mode)))
}

fn stop(app: &mut App) -> Vec<Effect> {
    if app.conversation.is_busy() {
        app.conversation.answer.stopped = app.conversation.transcript.exchanges.last().map(|it| it.turn);
        vec![Effect::Send(Command::Cancel)]
    } else {
        Vec::new()
    }
}
