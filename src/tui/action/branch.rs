//! Branches: going on behind something older, and back to what was left.

use super::{Action, everywhere::focus_composer};
use crate::{
    protocol::{Branch, Command, DocumentId, Turn, View},
    say,
    tui::{
        app::App,
        effect::Effect,
        layer::{Branches, Layer},
        pane::Item,
    },
};

pub const BRANCHES: Action = Action {
    name: "branches",
    slash: "branches",
    run: |app, _| {
        match Branches::new(&app.transcript) {
            Some(branches) => app.layers.push(Layer::Branches(Box::new(branches))),
            None => app.say(say!("action-nothing-said")),
        }
        Vec::new()
    },
};

pub const GO_ON: Action = Action {
    name: "branch",
    slash: "branch",
    run: |app, _| {
        if is_busy(app) {
            return Vec::new();
        }
        let Some(item) = app.pane.selected else {
            app.say(say!("action-nothing-selected"));
            return Vec::new();
        };
        let Some(exchange) = app.transcript.exchanges.get(item.exchange()) else {
            return Vec::new();
        };
        let after = exchange.turn;
        let upto = match item {
            Item::Document(place) => exchange.response.documents.get(place.document).map(|it| it.id.clone()),
            Item::Ending(_) => None,
            Item::Thinking(_, nth) => {
                let before = exchange.response.thinking.get(nth).map_or(0, |it| it.before);
                let last = before.checked_sub(1).and_then(|it| exchange.response.documents.get(it));
                last.map(|it| it.id.clone())
            }
            Item::Message(_) => return before(app, after),
        };
        let is_last = exchange.response.documents.last().map(|it| &it.id) == upto.as_ref();
        focus_composer(app);
        let upto = upto.filter(|_| !is_last);
        vec![Effect::Send(Command::GoOn(Branch { after, upto }))]
    },
};

pub const REWORD: Action = Action {
    name: "reword",
    slash: "reword",
    run: |app, _| {
        if is_busy(app) {
            return Vec::new();
        }
        let at = app.pane.selected.map_or(usize::MAX, Item::exchange);
        let exchanges = &app.transcript.exchanges;
        let Some(exchange) = exchanges.get(at).or(exchanges.last()) else {
            app.say(say!("action-nothing-said"));
            return Vec::new();
        };
        let turn = exchange.turn;
        before(app, turn)
    },
};

pub const AGAIN: Action = Action {
    name: "again",
    slash: "again",
    run: |app, _| {
        if is_busy(app) {
            return Vec::new();
        }
        let Some(place) = app.selected() else {
            app.say(say!("action-no-document"));
            return Vec::new();
        };
        let Some(document) = app.transcript.get(place) else {
            return Vec::new();
        };
        let turn = app.turn_of(place);
        let before = earlier(app, place.exchange, place.document);
        match document.view() {
            View::TerminalCommand(it) => {
                let line = it.command.to_owned();
                let mut effects = vec![Effect::Send(Command::GoOn(Branch {
                    after: turn,
                    upto: before,
                }))];
                effects.push(super::writing::run_command(app, &format!("! {line}"), &line, true));
                effects
            }
            View::Clarification(it) => {
                let asked: Vec<&str> = it.questions.iter().map(|it| it.text).collect();
                let asked = format!("{} ", say!("draft-about-question", question = asked.join(" ")));
                let upto = Some(document.id.clone());
                app.composer.field.set(&asked);
                focus_composer(app);
                vec![Effect::Send(Command::GoOn(Branch { after: turn, upto }))]
            }
            View::Text(_)
            | View::CodeReference(_)
            | View::CodeBlock(_)
            | View::FileEdit(_)
            | View::ToolCall(_)
            | View::Plan(_)
            | View::Error(_)
            | View::TodoUpdate(_)
            | View::Unknown(_) => {
                app.say(say!("action-again-what"));
                Vec::new()
            }
        }
    },
};

/// The document before this one; of the first there is none, and then nothing of the answer counts.
fn earlier(app: &App, exchange: usize, document: usize) -> Option<DocumentId> {
    let documents = &app.transcript.exchanges.get(exchange)?.response.documents;
    match document.checked_sub(1) {
        Some(at) => documents.get(at).map(|it| it.id.clone()),
        None => Some(Branch::NOTHING.into()),
    }
}

/// The conversation goes on before a turn; its message is there to be written again.
pub fn before(app: &mut App, turn: Turn) -> Vec<Effect> {
    let Some(exchange) = app.transcript.of_turn(turn) else {
        return Vec::new();
    };
    let words = exchange
        .message
        .as_ref()
        .map(|it| it.content.clone())
        .unwrap_or_default();
    let branch = app.transcript.before(turn);
    if app.composer.field.is_empty() {
        app.composer.field.set(&words);
    }
    focus_composer(app);
    vec![Effect::Send(Command::GoOn(branch))]
}

/// To the newest end of the branch that a turn is on.
pub fn go_to(app: &mut App, turn: Turn) -> Vec<Effect> {
    if is_busy(app) {
        return Vec::new();
    }
    let after = app.transcript.newest_below(turn);
    vec![Effect::Send(Command::GoOn(Branch { after, upto: None }))]
}

fn is_busy(app: &mut App) -> bool {
    let is_busy = app.is_busy();
    if is_busy {
        app.say(say!("action-answering"));
    }
    is_busy
}
