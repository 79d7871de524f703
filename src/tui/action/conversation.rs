//! The conversation as a whole: a new one, one that is kept, what it cost, the whole of it as a file.

use super::Action;
use crate::tui::{
    app::App,
    effect::Effect,
    layer::{Layer, Page},
};

pub const NEW: Action = Action {
    name: "conversation.new",
    slash: "new",
    hint: "new",
    about: "begin a new conversation; this one is kept",
    run: |app, _| begin(app),
};

pub const CLEAR: Action = Action {
    name: "conversation.clear",
    slash: "clear",
    hint: "new",
    about: "the same as /new",
    run: |app, _| begin(app),
};

pub const RESUME: Action = Action {
    name: "conversation.resume",
    slash: "resume",
    hint: "conversations",
    about: "take up a conversation that is kept: find it by its title or by what was said in it",
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
    hint: "export",
    about: "write the conversation into a file: `/export talk.html`, `.md`, `.json` or `.jsonl`",
    run: |_, path| {
        let path = if path.is_empty() { "conversation.html" } else { path };
        vec![Effect::Export(path.to_owned())]
    },
};

pub const COST: Action = Action {
    name: "conversation.cost",
    slash: "cost",
    hint: "cost",
    about: "show what each turn took: tokens, time, dollars where the price is known",
    run: |app, _| {
        app.layers.push(Layer::Page(Page::cost(&app.transcript)));
        Vec::new()
    },
};

fn begin(app: &mut App) -> Vec<Effect> {
    if is_at_work(app) {
        return Vec::new();
    }
    if app.transcript.exchanges.is_empty() {
        app.say("this conversation is new");
        return Vec::new();
    }
    vec![Effect::Begin]
}

/// What is at work would go on unseen: it is stopped first, by whoever wants that.
fn is_at_work(app: &mut App) -> bool {
    let is_running = app.transcript.is_running();
    if is_running {
        app.say("it is still at work: esc stops it");
    }
    is_running
}
