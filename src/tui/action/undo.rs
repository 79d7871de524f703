//! Taking back what was done to files, and doing it again.

use super::Action;
use crate::{
    protocol::{Address, Command, Restore, Target, Turn, TurnChanges},
    transcript::Place,
    tui::{
        app::App,
        effect::Effect,
        layer::{Back, Layer, Rewind},
    },
};

pub const UNDO: Action = Action {
    name: "undo",
    slash: "undo",
    hint: "undo",
    about: "take back what the last turn did to files, `/undo 7` that of a turn, `/undo 7.3` that of a document",
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
    hint: "redo",
    about: "do again what was taken back last, `/redo 7.3` what a document did",
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
    hint: "undo this",
    about: "take back what the selected document did to files, or do it again",
    run: |app, _| match app.selected() {
        Some(place) => match of_document(app, place, None) {
            Some(what) => restore(what),
            None => Vec::new(),
        },
        None => {
            app.say("no document is selected: tab goes to them");
            Vec::new()
        }
    },
};

pub const REWIND: Action = Action {
    name: "rewind",
    slash: "rewind",
    hint: "rewind",
    about: "go back to before a message: files, conversation or both, or `/rewind 7`",
    run: |app, word| {
        let on = word.trim().trim_start_matches('#');
        if on.is_empty() {
            return vec![Effect::Changes(None)];
        }
        match on.parse() {
            Ok(turn) => vec![Effect::Changes(Some(Turn(turn)))],
            Err(_) => {
                app.say(format!("{on} is no turn such as 7"));
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
        app.say("nothing was said yet");
        return Vec::new();
    };
    let look = rewind.look();
    app.layers.push(Layer::Rewind(Box::new(rewind)));
    vec![look]
}

/// Goes back.
pub fn go_back(app: &mut App, back: Back) -> Vec<Effect> {
    if app.is_busy() {
        app.say("an answer is being made: esc stops it");
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
    let wrong = || format!("{word} is neither a turn such as 7 nor an address such as 7.3");
    if let Some((turn, number)) = word.split_once('.') {
        let address = Address {
            turn: Turn(turn.parse().map_err(|_| wrong())?),
            number: number.parse().map_err(|_| wrong())?,
        };
        let place = app.transcript.place_of(address);
        let place = place.ok_or_else(|| format!("there is no document {word}"))?;
        return of_document(app, place, Some(again)).ok_or_else(wrong);
    }
    match word.parse() {
        Ok(turn) if !again => Ok(Target::Turn(Turn(turn))),
        Ok(_) => Err("a turn is done again with /redo alone, a document with /redo 7.3".to_owned()),
        Err(_) => Err(wrong()),
    }
}

/// `again`: as the document stands, where nobody says.
fn of_document(app: &App, place: Place, again: Option<bool>) -> Option<Target> {
    let document = app.transcript.get(place)?;
    let turn = app.turn_of(place);
    let is_undone = document.metadata.get("undone").is_some_and(|it| it == true);
    let document = document.id.clone();
    Some(if again.unwrap_or(is_undone) {
        Target::Again { turn, document }
    } else {
        Target::Document { turn, document }
    })
}
