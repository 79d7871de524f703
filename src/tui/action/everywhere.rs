//! What can be done wherever one is.

use super::Action;
use crate::{
    protocol::{Command, Mode},
    say,
    tui::{
        app::{App, Focus, Mouse},
        effect::Effect,
        layer::{Inspector, Layer, Page, Picker},
        pane::{Item, transcript::Shown},
    },
};

/// Two presses of Ctrl+C within this time leave the program.
const TWICE_MS: u64 = 2000;

pub const MODE_NEXT: Action = Action {
    name: "mode.next",
    slash: "",
    run: |app, _| set_mode(app, app.mode.next()),
};

pub const MODE: Action = Action {
    name: "mode",
    slash: "mode",
    run: |app, word| match Mode::parse(word) {
        Some(mode) => set_mode(app, mode),
        None if word.is_empty() => {
            app.layers.push(Layer::Picker(Picker::modes(app.mode)));
            Vec::new()
        }
        None => {
            app.say(say!("action-no-mode", word = word));
            Vec::new()
        }
    },
};

pub const MODEL: Action = Action {
    name: "model",
    slash: "model",
    run: |app, word| {
        if word.is_empty() {
            app.say(say!("action-asking-for-models"));
            return vec![Effect::Models];
        }
        app.model = Some(word.to_owned());
        app.say(say!("action-model-chosen", model = word));
        Vec::new()
    },
};

/// How hard a model can be told to think.
pub const EFFORTS: [&str; 4] = ["off", "low", "medium", "high"];

pub const EFFORT: Action = Action {
    name: "effort",
    slash: "effort",
    run: |app, word| {
        if !app.about.hears {
            let text = say!("action-effort-deaf", peer = app.about.peer.as_str());
            app.say(text);
            return Vec::new();
        }
        let chosen = EFFORTS.into_iter().find(|it| *it == word);
        match chosen {
            Some(effort) => {
                app.effort = Some(effort);
                app.say(say!("action-effort-chosen", effort = effort));
            }
            None if word == "auto" => {
                app.effort = None;
                app.say(say!("action-effort-auto"));
            }
            None if word.is_empty() => app.layers.push(Layer::Picker(Picker::efforts(app.effort))),
            None => app.say(say!("action-no-effort", word = word, known = EFFORTS.join(", "))),
        }
        Vec::new()
    },
};

pub const THEME: Action = Action {
    name: "theme",
    slash: "theme",
    run: |app, word| {
        if word.is_empty() {
            app.layers
                .push(Layer::Picker(Picker::themes(&app.themes.names, &app.themes.chosen)));
        } else if app.themes.names.iter().any(|it| it == word) || word == "auto" {
            app.choose_theme(word);
        } else {
            app.say(say!(
                "action-no-theme",
                word = word,
                known = app.themes.names.join(", ")
            ));
        }
        Vec::new()
    },
};

pub const PALETTE: Action = Action {
    name: "palette",
    slash: "",
    run: |app, _| {
        app.layers.push(Layer::Picker(Picker::palette(app)));
        Vec::new()
    },
};

pub const MOUSE: Action = Action {
    name: "mouse",
    slash: "mouse",
    run: |app, word| {
        let next = match (Mouse::parse(word), app.mouse) {
            (Some(mouse), _) => mouse,
            (None, Mouse::Full) if word.is_empty() => Mouse::Wheel,
            (None, Mouse::Wheel) if word.is_empty() => Mouse::Off,
            (None, Mouse::Off) if word.is_empty() => Mouse::Full,
            (None, Mouse::Full | Mouse::Wheel | Mouse::Off) => {
                app.say(say!("action-no-mouse", word = word));
                return Vec::new();
            }
        };
        app.mouse = next;
        app.say(match next {
            Mouse::Full => say!("action-mouse-full"),
            Mouse::Wheel => say!("action-mouse-wheel"),
            Mouse::Off => say!("action-mouse-off"),
        });
        vec![Effect::Mouse(next)]
    },
};

pub const PROBLEMS: Action = Action {
    name: "problems",
    slash: "problems",
    run: |app, _| {
        if app.problems.is_empty() {
            app.say(say!("action-no-problems"));
        } else {
            app.layers.push(Layer::Page(Page::problems(&app.problems)));
        }
        Vec::new()
    },
};

pub const CONTEXT: Action = Action {
    name: "context",
    slash: "context",
    run: |app, _| {
        app.say(say!("action-counting"));
        vec![Effect::Context]
    },
};

pub const INSPECT: Action = Action {
    name: "inspect",
    slash: "inspect",
    run: |app, _| {
        let trace = app.link.log().watch();
        app.layers.push(Layer::Inspector(Inspector::new(trace)));
        Vec::new()
    },
};

pub const TRUST: Action = Action {
    name: "trust",
    slash: "trust",
    run: |_, _| vec![Effect::Trust],
};

pub const SANDBOX: Action = Action {
    name: "sandbox",
    slash: "sandbox",
    run: |app, word| {
        let guard = match word.trim() {
            "" => None,
            "guard" => Some(true),
            "strict" => Some(false),
            _ => {
                app.say(say!("action-sandbox-how"));
                return Vec::new();
            }
        };
        app.say(say!("action-looking"));
        vec![Effect::Sandbox { guard }]
    },
};

pub const PERMISSIONS: Action = Action {
    name: "permissions",
    slash: "permissions",
    run: |app, word| {
        let forget = match word.trim() {
            "" => false,
            "reset" => true,
            _ => {
                app.say(say!("action-permissions-how"));
                return Vec::new();
            }
        };
        app.say(say!("action-looking"));
        vec![Effect::Permissions { forget }]
    },
};

pub const KEYS: Action = Action {
    name: "keys",
    slash: "keys",
    run: |app, _| {
        app.layers.push(Layer::Page(Page::keys(&app.keymap, app.is_developer)));
        Vec::new()
    },
};

pub const HELP: Action = Action {
    name: "help",
    slash: "help",
    run: |app, argument| (KEYS.run)(app, argument),
};

pub const FOCUS: Action = Action {
    name: "focus",
    slash: "",
    run: |app, _| {
        match app.focus {
            Focus::Composer => focus_transcript(app),
            Focus::Transcript => focus_composer(app),
        }
        Vec::new()
    },
};

pub const ESCAPE: Action = Action {
    name: "escape",
    slash: "",
    run: |app, _| {
        if app.focus == Focus::Transcript && app.search.take().is_some() {
            return Vec::new();
        }
        // Where nothing fits there is nothing to go to first.
        let is_at_hand = app.focus == Focus::Transcript || app.pane.items.is_empty();
        if is_at_hand && !app.pane.filter.is_empty() {
            return super::finding::show_only(app, "");
        }
        if app.focus == Focus::Transcript && !app.is_busy() {
            focus_composer(app);
            return Vec::new();
        }
        let is_idle = !app.is_busy() && app.asking.submitted_ms.is_none();
        if is_idle && app.composer.field.is_empty() && !app.transcript.exchanges.is_empty() {
            return super::undo::REWIND.go(app, "");
        }
        stop(app)
    },
};

pub const INTERRUPT: Action = Action {
    name: "interrupt",
    slash: "",
    run: |app, _| {
        if app.focus == Focus::Composer
            && let Some(text) = app.composer.field.selected()
        {
            return vec![Effect::Copy {
                text,
                what: say!("copied-selection").into(),
            }];
        }
        if app.is_busy() {
            return stop(app);
        }
        if !app.composer.field.is_empty() {
            app.composer.history.keep(&app.composer.field.text());
            app.composer.field.clear();
            focus_composer(app);
            return Vec::new();
        }
        if app.now_ms.saturating_sub(app.last_interrupt_ms) < TWICE_MS {
            return vec![Effect::Quit(0)];
        }
        app.last_interrupt_ms = app.now_ms;
        app.say(say!("action-quit-how"));
        Vec::new()
    },
};

pub const LEAVE: Action = Action {
    name: "leave",
    slash: "",
    run: |app, _| {
        if app.composer.field.is_empty() {
            return vec![Effect::Quit(0)];
        }
        if app.focus == Focus::Composer {
            app.composer.field.delete();
        }
        Vec::new()
    },
};

pub const QUIT: Action = Action {
    name: "quit",
    slash: "quit",
    run: |_, _| vec![Effect::Quit(0)],
};

pub const SUSPEND: Action = Action {
    name: "suspend",
    slash: "",
    run: |_, _| vec![Effect::Suspend],
};

pub const REDRAW: Action = Action {
    name: "redraw",
    slash: "",
    run: |_, _| vec![Effect::Redraw],
};

pub const PANIC: Action = Action {
    name: "panic",
    slash: "panic",
    run: |app, _| {
        assert!(!app.is_developer, "asked for with /panic");
        app.say(say!("action-no-panic"));
        Vec::new()
    },
};

fn set_mode(app: &mut App, mode: Mode) -> Vec<Effect> {
    app.mode = mode;
    Vec::new()
}

fn stop(app: &mut App) -> Vec<Effect> {
    if app.is_busy() {
        vec![Effect::Send(Command::Cancel)]
    } else {
        Vec::new()
    }
}

pub fn focus_composer(app: &mut App) {
    app.focus = Focus::Composer;
    app.asking.took_focus = false;
    if app.inline.is_some() {
        // What was walked through stands in the terminal's own lines.
        app.pane.go_to_end();
    }
    app.pane.selected = None;
    app.pane.release();
}

/// To the question that waits, else to the last document in view.
pub fn focus_transcript(app: &mut App) {
    let waiting = app.transcript.waiting().or_else(|| app.plan_to_build());
    let waiting = waiting.map(Item::Document);
    let last = app.pane.lines.iter().rev().find_map(Shown::item);
    let Some(item) = waiting.or(last).or_else(|| app.pane.items.last().copied()) else {
        app.say(say!("action-nothing-to-read"));
        return;
    };
    app.focus = Focus::Transcript;
    app.asking.since_ms = app.now_ms;
    app.with_pane(|pane, context| pane.select(item, context));
}
