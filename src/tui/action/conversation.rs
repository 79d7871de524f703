//! The conversation as a whole: a new one, one that is kept, what it cost, the whole of it as a file.

use super::Action;
use crate::{
    protocol::{Address, Command, Message, Shorten, Submit, Turn},
    say,
    tui::{
        app::App,
        effect::Effect,
        layer::{Layer, Page},
    },
};

pub const NEW: Action = Action {
    name: "conversation.new",
    slash: "new",
    run: |app, _| begin(app),
};

pub const CLEAR: Action = Action {
    name: "conversation.clear",
    slash: "clear",
    run: |app, _| begin(app),
};

pub const RESUME: Action = Action {
    name: "conversation.resume",
    slash: "resume",
    run: |app, _| {
        if is_at_work(app) {
            return Vec::new();
        }
        vec![Effect::Sessions]
    },
};

pub const EXPORT: Action = Action {
    name: "conversation.export",
    slash: "export",
    run: |_, path| {
        let path = if path.is_empty() { "conversation.html" } else { path };
        vec![Effect::Export(path.to_owned())]
    },
};

pub const COST: Action = Action {
    name: "conversation.cost",
    slash: "cost",
    run: |app, _| {
        app.layers.push(Layer::Page(Page::cost(&app.transcript)));
        Vec::new()
    },
};

pub const COMPACT: Action = Action {
    name: "conversation.compact",
    slash: "compact",
    run: |app, keep| {
        let keep = keep.trim().to_owned();
        shorten(app, "/compact", &keep, Shorten::Summary { keep: keep.clone() })
    },
};

pub const RENAME: Action = Action {
    name: "conversation.rename",
    slash: "rename",
    run: |app, title| {
        let title = title.split_whitespace().collect::<Vec<_>>().join(" ");
        if title.is_empty() {
            app.say(say!("action-rename-how"));
            return Vec::new();
        }
        vec![Effect::Send(Command::Rename(title))]
    },
};

pub const DROP: Action = Action {
    name: "conversation.drop",
    slash: "drop",
    run: |app, word| {
        let word = word.trim().trim_start_matches('#').to_owned();
        let address = word.split_once('.').and_then(|(turn, number)| {
            Some(Address {
                turn: Turn(turn.parse().ok()?),
                number: number.parse().ok()?,
            })
        });
        let selected = || app.transcript.address(app.selected()?);
        match if word.is_empty() { selected() } else { address } {
            Some(address) => shorten(app, "/drop", &address.to_string(), Shorten::Drop(address)),
            None if word.is_empty() => {
                app.say(say!("action-drop-which"));
                Vec::new()
            }
            None => {
                app.say(say!("action-no-address", word = word));
                Vec::new()
            }
        }
    },
};

/// Has the model told less, in a turn of its own.
fn shorten(app: &mut App, word: &str, rest: &str, how: Shorten) -> Vec<Effect> {
    if is_at_work(app) {
        return Vec::new();
    }
    if app.transcript.exchanges.is_empty() {
        app.say(say!("action-nothing-said"));
        return Vec::new();
    }
    app.pane.go_to_end();
    let submit = Submit {
        message: Message::user(format!("{word} {rest}").trim()),
        mode: app.mode,
        model: app.model.clone(),
    };
    vec![Effect::Send(Command::Compact { submit, how })]
}

fn begin(app: &mut App) -> Vec<Effect> {
    if is_at_work(app) {
        return Vec::new();
    }
    if app.transcript.exchanges.is_empty() {
        app.say(say!("action-is-new"));
        return Vec::new();
    }
    vec![Effect::Begin]
}

/// What is at work would go on unseen: it is stopped first, by whoever wants that.
fn is_at_work(app: &mut App) -> bool {
    let is_running = app.transcript.is_running();
    if is_running {
        app.say(say!("action-at-work"));
    }
    is_running
}
