//! What can be done wherever one is.

use super::Action;
use crate::{
    protocol::{Command, Mode},
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
    hint: "mode",
    about: "go to the next mode: agent, plan, ask, debug",
    run: |app, _| set_mode(app, app.mode.next()),
};

pub const MODE: Action = Action {
    name: "mode",
    slash: "mode",
    hint: "mode",
    about: "choose a mode, or `/mode plan`",
    run: |app, word| match Mode::parse(word) {
        Some(mode) => set_mode(app, mode),
        None if word.is_empty() => {
            app.layers.push(Layer::Picker(Picker::modes(app.mode)));
            Vec::new()
        }
        None => {
            app.say(format!(
                "there is no mode {word}; the modes are agent, plan, ask and debug"
            ));
            Vec::new()
        }
    },
};

pub const MODEL: Action = Action {
    name: "model",
    slash: "model",
    hint: "model",
    about: "choose the model, or `/model NAME`",
    run: |app, word| {
        if word.is_empty() {
            app.say("asking for the models …");
            return vec![Effect::Models];
        }
        app.model = Some(word.to_owned());
        app.say(format!("the next answer comes from {word}"));
        Vec::new()
    },
};

/// How hard a model can be told to think.
pub const EFFORTS: [&str; 4] = ["off", "low", "medium", "high"];

pub const EFFORT: Action = Action {
    name: "effort",
    slash: "effort",
    hint: "effort",
    about: "how hard the model thinks: `/effort high`, medium, low or off, `auto` as the settings say",
    run: |app, word| {
        if !app.about.hears {
            let text = format!("{} decides itself how hard it thinks", app.about.peer);
            app.say(text);
            return Vec::new();
        }
        let chosen = EFFORTS.into_iter().find(|it| *it == word);
        match chosen {
            Some(effort) => {
                app.effort = Some(effort);
                app.say(format!(
                    "from the next message on the model thinks with effort {effort}"
                ));
            }
            None if word == "auto" => {
                app.effort = None;
                app.say("from the next message on the model thinks as hard as the settings say");
            }
            None if word.is_empty() => app.layers.push(Layer::Picker(Picker::efforts(app.effort))),
            None => app.say(format!(
                "the effort cannot be {word}; it is auto, {}",
                EFFORTS.join(", ")
            )),
        }
        Vec::new()
    },
};

pub const THEME: Action = Action {
    name: "theme",
    slash: "theme",
    hint: "theme",
    about: "choose the colours, or `/theme NAME`",
    run: |app, word| {
        if word.is_empty() {
            app.layers
                .push(Layer::Picker(Picker::themes(&app.themes.names, &app.themes.chosen)));
        } else if app.themes.names.iter().any(|it| it == word) || word == "auto" {
            app.choose_theme(word);
        } else {
            app.say(format!(
                "there is no theme {word}; there are auto, {}",
                app.themes.names.join(", ")
            ));
        }
        Vec::new()
    },
};

pub const PALETTE: Action = Action {
    name: "palette",
    slash: "",
    hint: "palette",
    about: "find anything one can do",
    run: |app, _| {
        app.layers.push(Layer::Picker(Picker::palette(app)));
        Vec::new()
    },
};

pub const MOUSE: Action = Action {
    name: "mouse",
    slash: "mouse",
    hint: "mouse",
    about: "what the mouse does here: `/mouse full` marks and selects, `wheel` only scrolls, `off` leaves it to the terminal",
    run: |app, word| {
        let next = match (Mouse::parse(word), app.mouse) {
            (Some(mouse), _) => mouse,
            (None, Mouse::Full) if word.is_empty() => Mouse::Wheel,
            (None, Mouse::Wheel) if word.is_empty() => Mouse::Off,
            (None, Mouse::Off) if word.is_empty() => Mouse::Full,
            (None, Mouse::Full | Mouse::Wheel | Mouse::Off) => {
                app.say(format!("the mouse cannot be {word}; it is full, wheel or off"));
                return Vec::new();
            }
        };
        app.mouse = next;
        app.say(match next {
            Mouse::Full => "mouse: scrolls, selects, marks what is copied",
            Mouse::Wheel => "mouse: scrolls; shift marks in the terminal's own way",
            Mouse::Off => "mouse: off; it is the terminal's own",
        });
        vec![Effect::Mouse(next)]
    },
};

pub const PROBLEMS: Action = Action {
    name: "problems",
    slash: "problems",
    hint: "problems",
    about: "show what is wrong with the settings",
    run: |app, _| {
        if app.problems.is_empty() {
            app.say("nothing is wrong with the settings");
        } else {
            app.layers.push(Layer::Page(Page::problems(&app.problems)));
        }
        Vec::new()
    },
};

pub const CONTEXT: Action = Action {
    name: "context",
    slash: "context",
    hint: "context",
    about: "show what the model is told, and what each part costs",
    run: |app, _| {
        app.say("counting …");
        vec![Effect::Context]
    },
};

pub const INSPECT: Action = Action {
    name: "inspect",
    slash: "inspect",
    hint: "inspector",
    about: "show what came, byte for byte, beside the documents that it made",
    run: |app, _| {
        let trace = app.link.log().watch();
        app.layers.push(Layer::Inspector(Inspector::new(trace)));
        Vec::new()
    },
};

pub const TRUST: Action = Action {
    name: "trust",
    slash: "trust",
    hint: "trust",
    about: "have it asked whether the rules, settings and checkers of this folder may act",
    run: |_, _| vec![Effect::Trust],
};

pub const SANDBOX: Action = Action {
    name: "sandbox",
    slash: "sandbox",
    hint: "sandbox",
    about: "show what holds commands; where that is partial, `guard` lets them write the whole workspace and puts back what is protected, `strict` does not",
    run: |app, word| {
        let guard = match word.trim() {
            "" => None,
            "guard" => Some(true),
            "strict" => Some(false),
            _ => {
                app.say("/sandbox shows what holds commands; guard and strict may stand behind it");
                return Vec::new();
            }
        };
        app.say("looking …");
        vec![Effect::Sandbox { guard }]
    },
};

pub const KEYS: Action = Action {
    name: "keys",
    slash: "help",
    hint: "keys",
    about: "show every key and command",
    run: |app, _| {
        app.layers.push(Layer::Page(Page::keys(&app.keymap, app.is_developer)));
        Vec::new()
    },
};

pub const FOCUS: Action = Action {
    name: "focus",
    slash: "",
    hint: "transcript",
    about: "go from the composer to the transcript and back; to a question that waits first",
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
    hint: "stop",
    about: "close what is open, end a search, show everything again; else go back to the composer; else stop the answer; again, with nothing written, rewind",
    run: |app, _| {
        if app.focus == Focus::Transcript && app.search.take().is_some() {
            return Vec::new();
        }
        if app.focus == Focus::Transcript && !app.pane.filter.is_empty() {
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
    hint: "stop",
    about: "copy what is selected; else stop the answer; else clear the draft; twice to quit",
    run: |app, _| {
        if app.focus == Focus::Composer
            && let Some(text) = app.composer.field.selected()
        {
            return vec![Effect::Copy {
                text,
                what: "what is selected".into(),
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
        app.say("ctrl+c again to quit");
        Vec::new()
    },
};

pub const LEAVE: Action = Action {
    name: "leave",
    slash: "",
    hint: "quit",
    about: "quit, when nothing is written",
    run: |app, _| {
        if app.composer.field.is_empty() {
            vec![Effect::Quit(0)]
        } else {
            Vec::new()
        }
    },
};

pub const QUIT: Action = Action {
    name: "quit",
    slash: "quit",
    hint: "quit",
    about: "quit",
    run: |_, _| vec![Effect::Quit(0)],
};

pub const SUSPEND: Action = Action {
    name: "suspend",
    slash: "",
    hint: "suspend",
    about: "go back to the shell; `fg` comes back here",
    run: |_, _| vec![Effect::Suspend],
};

pub const REDRAW: Action = Action {
    name: "redraw",
    slash: "",
    hint: "redraw",
    about: "paint the screen again",
    run: |_, _| vec![Effect::Redraw],
};

pub const PANIC: Action = Action {
    name: "panic",
    slash: "panic",
    hint: "panic",
    about: "panic, to see that the terminal is given back (only under SHEAF_DEV=1)",
    run: |app, _| {
        assert!(!app.is_developer, "asked for with /panic");
        app.say("there is no command /panic");
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
        app.say("nothing to read yet");
        return;
    };
    app.focus = Focus::Transcript;
    app.asking.since_ms = app.now_ms;
    app.with_pane(|pane, context| pane.select(item, context));
}
