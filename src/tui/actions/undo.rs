//! Undoing changes of files, and redoing them.

use crate::{
    protocol::{Address, Command, DocumentId, Query, Reply, Restore, RestoreTarget, Turn, TurnChanges},
    t,
    transcript::DocumentIndex,
    tui::{
        app::{Action, App, Effect, RewindTarget, effects::ask},
        overlays::Rewind,
        widgets::is_undone,
    },
};

pub const UNDO: Action = Action::new("undo", "undo", |app, word| match target(app, word, false) {
    Ok(what) => restore(what),
    Err(why) => app.toast(why),
});

/// Makes the file changes again that were undone: the last ones, or those of the document with the address `word`.
pub const REDO: Action = Action::new("redo", "redo", |app, word| match target(app, word, true) {
    Ok(what) => restore(what),
    Err(why) => app.toast(why),
});

pub const UNDO_THIS: Action = Action::new("undo.this", "", |app, _| match app.viewport.selected() {
    Some(place) => match of_document(app, place, None) {
        Some(what) => restore(what),
        None => Vec::new(),
    },
    None => app.toast(t!("action-no-document")),
});

pub const REWIND: Action = Action::new("rewind", "rewind", |app, word| {
    let on = word.trim().trim_start_matches('#');
    if on.is_empty() {
        return vec![offered(None, app)];
    }
    match on.parse() {
        Ok(turn) => vec![offered(Some(Turn(turn)), app)],
        Err(_) => app.toast(t!("action-no-turn", word = on)),
    }
});

/// Asks what each turn did to files and opens the list of turns. Who changes no files here can still go back in the
/// conversation.
fn offered(on: Option<Turn>, app: &App) -> Effect {
    let draft = app.composer.field.version();
    ask!(Query::Changes, Reply::Changes, or_default, move |app, changes| {
        offer(app, draft, on, &changes)
    })
}

fn offer(app: &mut App, draft: u64, on: Option<Turn>, changes: &[TurnChanges]) -> Vec<Effect> {
    if !app.overlays.is_empty() {
        return Vec::new();
    }
    let Some(rewind) = Rewind::new(&app.conversation.transcript, changes, on, app.now_ms) else {
        return app.toast(t!("action-nothing-said"));
    };
    let look = rewind.look();
    if app.has_typed_since(draft) {
        return Vec::new();
    }
    app.open(rewind);
    vec![look]
}

/// Goes back.
pub fn go_back(app: &mut App, back: RewindTarget) -> Vec<Effect> {
    if app.conversation.is_busy() {
        return app.toast(t!("action-answering"));
    }
    let mut effects = Vec::new();
    effects.extend(back.files.map(|it| Effect::Send(Command::Restore(it))));
    if back.conversation {
        effects.extend(super::branch::before(app, back.turn));
    }
    effects
}

/// Makes the change of a document again.
pub fn redo(turn: Turn, document: DocumentId) -> Vec<Effect> {
    restore(RestoreTarget::RedoDocument { turn, document })
}

fn restore(what: RestoreTarget) -> Vec<Effect> {
    vec![Effect::Send(Command::Restore(Restore {
        target: what,
        except: Vec::new(),
        overwrite: false,
        seen: None,
    }))]
}

/// The target that the argument names: nothing, a turn or an address.
fn target(app: &App, word: &str, again: bool) -> Result<RestoreTarget, String> {
    let word = word.trim().trim_start_matches('#');
    if word.is_empty() {
        return Ok(if again {
            RestoreTarget::RedoLast
        } else {
            RestoreTarget::Last
        });
    }
    let wrong = || t!("action-neither-turn-nor-address", word = word);
    if let Some((turn, number)) = word.split_once('.') {
        let address = Address {
            turn: Turn(turn.parse().map_err(|_| wrong())?),
            number: number.parse().map_err(|_| wrong())?,
        };
        let place = app.conversation.transcript.index_of(address);
        let place = place.ok_or_else(|| t!("action-no-such-document", word = word))?;
        return of_document(app, place, Some(again)).ok_or_else(wrong);
    }
    match word.parse() {
        Ok(turn) if !again => Ok(RestoreTarget::Turn(Turn(turn))),
        Ok(_) => Err(t!("action-redo-how").to_owned()),
        Err(_) => Err(wrong()),
    }
}

/// `again`: as the document stands, where nobody says.
fn of_document(app: &App, place: DocumentIndex, again: Option<bool>) -> Option<RestoreTarget> {
    let document = app.conversation.transcript.get(place)?;
    let turn = app.conversation.turn_of(place);
    let is_undone = is_undone(document);
    let document = document.id.clone();
    Some(if again.unwrap_or(is_undone) {
        RestoreTarget::RedoDocument { turn, document }
    } else {
        RestoreTarget::Document { turn, document }
    })
}
