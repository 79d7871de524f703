//! Taking back what was done to files, and doing it again.

use super::Action;
use crate::{
    protocol::{Address, Command, Restore, Target, Turn, TurnChanges},
    say,
    transcript::Place,
    tui::{
        app::App,
        doc::is_undone,
        effect::Effect,
        layer::{Back, Layer, Rewind},
    },
};

pub const UNDO: Action = Action {
    name: "undo",
    slash: "undo",
    run: |app, word| match target(app, word, false) {
        Ok(what) => restore(what),
        Err(why) => {
            app.say(why);
            Vec::new()
        }
    },
};

pub const REDO: Action = Action {
    name: "redo",
    slash: "redo",
    run: |app, word| match target(app, word, true) {
        Ok(what) => restore(what),
        Err(why) => {
            app.say(why);
            Vec::new()
        }
    },
};

pub const UNDO_THIS: Action = Action {
    name: "undo.this",
    slash: "",
    run: |app, _| match app.selected() {
        Some(place) => match of_document(app, place, None) {
            Some(what) => restore(what),
            None => Vec::new(),
        },
        None => {
            app.say(say!("action-no-document"));
            Vec::new()
        }
    },
};

pub const REWIND: Action = Action {
    name: "rewind",
    slash: "rewind",
    run: |app, word| {
        let on = word.trim().trim_start_matches('#');
        if on.is_empty() {
            return vec![Effect::Changes(None)];
        }
        match on.parse() {
            Ok(turn) => vec![Effect::Changes(Some(Turn(turn)))],
            Err(_) => {
                app.say(say!("action-no-turn", word = on));
                Vec::new()
            }
        }
    },
};

/// What there is to go back to.
pub fn offer(app: &mut App, on: Option<Turn>, changes: &[TurnChanges]) -> Vec<Effect> {
    if !app.layers.is_empty() {
        return Vec::new();
    }
    let Some(rewind) = Rewind::new(&app.transcript, changes, on, app.now_ms) else {
        app.say(say!("action-nothing-said"));
        return Vec::new();
    };
    let look = rewind.look();
    app.layers.push(Layer::Rewind(Box::new(rewind)));
    vec![look]
}

/// Goes back.
pub fn go_back(app: &mut App, back: Back) -> Vec<Effect> {
    if app.is_busy() {
        app.say(say!("action-answering"));
        return Vec::new();
    }
    let mut effects = Vec::new();
    effects.extend(back.files.map(|it| Effect::Send(Command::Restore(it))));
    if back.conversation {
        effects.extend(super::branch::before(app, back.turn));
    }
    effects
}

fn restore(what: Target) -> Vec<Effect> {
    vec![Effect::Send(Command::Restore(Restore {
        what,
        but: Vec::new(),
        over: false,
    }))]
}

/// What stands behind the command: nothing, a turn or an address.
fn target(app: &App, word: &str, again: bool) -> Result<Target, String> {
    let word = word.trim().trim_start_matches('#');
    if word.is_empty() {
        return Ok(if again { Target::LastAgain } else { Target::Last });
    }
    let wrong = || say!("action-neither-turn-nor-address", word = word);
    if let Some((turn, number)) = word.split_once('.') {
        let address = Address {
            turn: Turn(turn.parse().map_err(|_| wrong())?),
            number: number.parse().map_err(|_| wrong())?,
        };
        let place = app.transcript.place_of(address);
        let place = place.ok_or_else(|| say!("action-no-such-document", word = word))?;
        return of_document(app, place, Some(again)).ok_or_else(wrong);
    }
    match word.parse() {
        Ok(turn) if !again => Ok(Target::Turn(Turn(turn))),
        Ok(_) => Err(say!("action-redo-how").to_owned()),
        Err(_) => Err(wrong()),
    }
}

/// `again`: as the document stands, where nobody says.
fn of_document(app: &App, place: Place, again: Option<bool>) -> Option<Target> {
    let document = app.transcript.get(place)?;
    let turn = app.turn_of(place);
    let is_undone = is_undone(document);
    let document = document.id.clone();
    Some(if again.unwrap_or(is_undone) {
        Target::Again { turn, document }
    } else {
        Target::Document { turn, document }
    })
}
