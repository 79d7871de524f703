//! Branches: continuing after an older document, and returning to an abandoned one.

use super::focus::focus_composer;
use crate::{
    protocol::{Address, Applied, Branch, Command, Document, DocumentId, Kind, Turn, View},
    t,
    transcript::{DocumentIndex, is_approval},
    tui::{
        app::{Action, App, Effect},
        overlays::Branches,
        widgets::{is_undone, transcript::Item},
    },
};

pub const BRANCHES: Action = Action::new("branches", "branches", |app, _| {
    match Branches::new(&app.conversation.transcript) {
        Some(branches) => app.open(branches),
        None => app.toast(t!("action-nothing-said")),
    }
});

pub const GO_ON: Action = Action::new("branch", "branch", |app, words| {
    if is_busy(app) {
        return Vec::new();
    }
    let Some(item) = meant(app, words) else {
        return Vec::new();
    };
    let Some(exchange) = app.conversation.transcript.exchanges.get(item.exchange()) else {
        return Vec::new();
    };
    let after = exchange.turn;
    let upto = match item {
        Item::Document(place) => exchange.response.documents.get(place.document).map(|it| it.id.clone()),
        Item::Ending(_) | Item::Action(..) => None,
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
    vec![Effect::Send(Command::SwitchBranch(Branch {
        after,
        upto,
        is_open: false,
    }))]
});

pub const REWORD: Action = Action::new("reword", "reword", |app, words| {
    if is_busy(app) {
        return Vec::new();
    }
    let chosen = if words.trim().is_empty() {
        app.viewport.pane.selected
    } else {
        let Some(item) = meant(app, words) else {
            return Vec::new();
        };
        Some(item)
    };
    let at = chosen.map_or(usize::MAX, Item::exchange);
    let exchanges = &app.conversation.transcript.exchanges;
    let Some(exchange) = exchanges.get(at).or(exchanges.last()) else {
        return app.toast(t!("action-nothing-said"));
    };
    let turn = exchange.turn;
    before(app, turn)
});

pub const AGAIN: Action = Action::new("again", "again", |app, words| {
    if is_busy(app) {
        return Vec::new();
    }
    let item = if words.trim().is_empty() && app.viewport.pane.selected.is_none() {
        let last = app.conversation.transcript.exchanges.len().checked_sub(1);
        last.map(Item::Ending)
    } else {
        meant(app, words)
    };
    let place = match item {
        Some(Item::Document(place)) => place,
        Some(item) => match own_call(app, item.exchange()) {
            Some(place) => place,
            None => return answer_again(app, item.exchange()),
        },
        None if app.conversation.transcript.exchanges.is_empty() => return app.hint(t!("action-nothing-said")),
        None => return Vec::new(),
    };
    let Some(document) = app.conversation.transcript.get(place) else {
        return Vec::new();
    };
    let turn = app.conversation.turn_of(place);
    let from = Branch {
        after: turn,
        upto: earlier(app, place.exchange, place.document),
        is_open: false,
    };
    let is_call = matches!(document.kind, Kind::TerminalCommand | Kind::ToolCall | Kind::FileEdit);
    if is_call && !app.conversation.about.runs {
        return app.toast(t!("action-makes-no-calls", peer = app.conversation.peer()));
    }
    match document.view() {
        View::TerminalCommand(it) => {
            let line = it.command.to_owned();
            // What the model was not to see stays so.
            let exchange = app.conversation.transcript.exchanges.get(place.exchange);
            let typed = exchange
                .and_then(|it| it.message.as_ref())
                .map_or("", |it| it.content.as_str());
            let (mark, is_shown) = if typed.starts_with("!!") {
                ("!!", false)
            } else {
                ("!", true)
            };
            let run = super::writing::run_command(app, &format!("{mark} {line}"), &line, is_shown);
            vec![Effect::Send(Command::SwitchBranch(from)), run]
        }
        View::FileEdit(edit) if edit.applied == Applied::Applied && !is_undone(document) => {
            // Made where it stands already, it finds nothing to change.
            let address = app.conversation.transcript.address(place).map(|it| it.to_string());
            app.toast(t!("action-again-stands", address = address.unwrap_or_default()))
        }
        View::ToolCall(_) | View::FileEdit(_) => {
            let document = document.id.clone();
            let number = app.conversation.transcript.address(place).map(|it| it.to_string());
            let typed = format!("/again {}", number.unwrap_or_default());
            vec![Effect::Send(Command::RepeatCall {
                submit: super::writing::own(app, &typed),
                turn,
                document,
                from,
            })]
        }
        View::Clarification(_) if !is_approval(document) => {
            let open = Branch {
                after: turn,
                upto: Some(document.id.clone()),
                is_open: true,
            };
            let name = (turn, document.id.clone());
            app.questions.forms.remove(&name);
            app.questions.sent.remove(&name);
            vec![Effect::Send(Command::SwitchBranch(open))]
        }
        // What was selected belongs to an answer.
        _ if words.trim().is_empty() => answer_again(app, place.exchange),
        _ => app.hint(t!("action-again-what")),
    }
});

/// The call of an exchange that the user began with a command of their own and not with a message.
fn own_call(app: &App, at: usize) -> Option<DocumentIndex> {
    let exchange = app.conversation.transcript.exchanges.get(at)?;
    let typed = &exchange.message.as_ref()?.content;
    let mut documents = exchange.response.documents.iter();
    let is_call = |it: &Document| matches!(it.kind, Kind::TerminalCommand | Kind::ToolCall | Kind::FileEdit);
    let is_own = typed.starts_with('!') || typed.starts_with("/again");
    let document = documents.position(is_call).filter(|_| is_own)?;
    Some(DocumentIndex { exchange: at, document })
}

/// Sends the message of an exchange again, as another branch: the answer is made anew.
fn answer_again(app: &mut App, at: usize) -> Vec<Effect> {
    // A server keeps its own branches.
    if app.conversation.about.is_attached {
        return app.hint(t!("action-again-attached"));
    }
    let exchange = app.conversation.transcript.exchanges.get(at);
    let message = exchange.and_then(|it| Some((it.turn, it.message.clone()?)));
    let Some((turn, message)) = message else {
        return app.hint(t!("action-no-message"));
    };
    let branch = app.conversation.transcript.parent_of(turn);
    app.viewport.pane.go_to_end();
    focus_composer(app);
    let sent = super::writing::submit(app, message);
    // Nothing is sent where another program writes.
    let switch = (!sent.is_empty()).then(|| Effect::Send(Command::SwitchBranch(branch)));
    switch.into_iter().chain(sent).collect()
}

/// The item that a command's argument names, a turn or a document, else the selected one; toasts why there is none.
fn meant(app: &mut App, words: &str) -> Option<Item> {
    let word = words.trim().trim_start_matches('#');
    if word.is_empty() {
        let selected = app.viewport.pane.selected;
        if selected.is_none() {
            app.hint(t!("action-which-document"));
        }
        return selected;
    }
    let found = match word.split_once('.') {
        Some((turn, number)) => turn.parse().ok().zip(number.parse().ok()).and_then(|(turn, number)| {
            let address = Address {
                turn: Turn(turn),
                number,
            };
            app.conversation.transcript.index_of(address).map(Item::Document)
        }),
        None => word.parse().ok().and_then(|turn| {
            let mut exchanges = app.conversation.transcript.exchanges.iter();
            exchanges.position(|it| it.turn == Turn(turn)).map(Item::Ending)
        }),
    };
    if found.is_none() {
        app.hint(t!("action-not-here", word = word));
    }
    found
}

/// The document before this one; of the first there is none, and then nothing of the answer counts.
fn earlier(app: &App, exchange: usize, document: usize) -> Option<DocumentId> {
    let documents = &app.conversation.transcript.exchanges.get(exchange)?.response.documents;
    match document.checked_sub(1) {
        Some(at) => documents.get(at).map(|it| it.id.clone()),
        None => Some(Branch::NOTHING.into()),
    }
}

/// The conversation goes on before a turn; its message is there to be written again.
pub fn before(app: &mut App, turn: Turn) -> Vec<Effect> {
    let Some(exchange) = app.conversation.transcript.exchange_of(turn) else {
        return Vec::new();
    };
    let words = exchange
        .message
        .as_ref()
        .map(|it| it.content.clone())
        .unwrap_or_default();
    let branch = app.conversation.transcript.parent_of(turn);
    if app.composer.field.is_empty() {
        app.composer.field.set(&words);
    }
    focus_composer(app);
    vec![Effect::Send(Command::SwitchBranch(branch))]
}

/// To the newest end of the branch that a turn is on, or to the end of its own answer.
pub fn go_to(app: &mut App, turn: Turn, is_whole: bool) -> Vec<Effect> {
    if is_busy(app) {
        return Vec::new();
    }
    let after = if is_whole {
        turn
    } else {
        app.conversation.transcript.newest_below(turn)
    };
    vec![Effect::Send(Command::SwitchBranch(Branch {
        after,
        ..Branch::default()
    }))]
}

fn is_busy(app: &mut App) -> bool {
    let is_busy = app.conversation.is_busy();
    if is_busy {
        app.toast(t!("action-answering"));
    }
    is_busy
}
