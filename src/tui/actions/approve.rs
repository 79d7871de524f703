//! Answers to questions, and approvals from wherever the focus is.

use crossterm::event::{KeyCode, KeyEvent};

use super::{
    focus::{focus_composer, focus_transcript},
    review,
};
use crate::{
    protocol::{ClarificationResponse, Command, Turn, View},
    t,
    transcript::{DocumentIndex, is_approval},
    tui::{
        app::{Action, App, Effect, Focus},
        widgets::{Form, Outcome, first_row, question_rows, transcript::Item},
    },
};

pub const ALLOW_ONCE: Action = Action::new("allow.once", "", |app, _| decide(app, 'y'));

pub const ALLOW_SESSION: Action = Action::new("allow.session", "", |app, _| decide(app, 'a'));

pub const REJECT: Action = Action::new("reject", "", |app, _| decide(app, 'n'));

/// Gives a key to the oldest approval that waits. Where the terminal cannot tell Alt and a letter from Esc and the letter, a grant
/// for the session is only marked.
fn decide(app: &mut App, letter: char) -> Vec<Effect> {
    let place = app.conversation.transcript.open_question();
    let document = place.and_then(|it| app.conversation.transcript.get(it));
    let (Some(place), Some(document)) = (place, document.filter(|it| is_approval(it))) else {
        return app.toast(t!("action-no-approval"));
    };
    let name = (app.conversation.turn_of(place), document.id.clone());
    if app.questions.is_too_early(app.now_ms) || app.questions.sent.contains(&name) {
        return Vec::new();
    }
    if letter != 'n'
        && let Some(why) = unseen(app, place)
    {
        return app.toast(why);
    }
    let Some(document) = app.conversation.transcript.get(place) else {
        return Vec::new();
    };
    let View::Clarification(view) = document.view() else {
        return Vec::new();
    };
    let mut form = Form::new(name.1.clone());
    if letter == 'a' {
        if !form.mark_session(&view) {
            return app.toast(t!("action-not-allowed-here"));
        }
        if !app.terminal.has_keyboard_protocol {
            app.questions.forms.insert(name, form);
            focus_transcript(app);
            return Vec::new();
        }
    }
    let code = if letter == 'a' {
        KeyCode::Enter
    } else {
        KeyCode::Char(letter)
    };
    match form.key(KeyEvent::from(code), &view) {
        Outcome::Answer(response) => send(app, name.0, response),
        Outcome::Ignored | Outcome::Changed | Outcome::Message(_) => app.toast(t!("action-not-allowed-here")),
    }
}

/// Returns `None` if all rows of an approval have been on the screen; else shows the next ones, and returns what to say about it.
pub fn unseen(app: &mut App, place: DocumentIndex) -> Option<&'static str> {
    let document = app.conversation.transcript.get(place)?;
    let name = (app.conversation.turn_of(place), document.id.clone());
    let item = Item::Document(place);
    let (rows, of) = app.questions.seen.get(&name).map_or((0, 0), |it| (it.rows, it.of));
    // Far from the view it is not laid out.
    let all = match app.viewport.pane.rows(item) {
        0 => of,
        all => all,
    };
    // Nothing was laid out yet, or everything was shown.
    if rows > 0 && rows >= all || app.viewport.areas.transcript.height == 0 {
        return None;
    }
    if rows == 0 {
        app.with_pane(|pane, context| pane.show_start(item, context));
        return Some(t!("approval-unseen"));
    }
    app.with_pane(|pane, context| pane.show_from(item, rows, context));
    Some(t!("approval-rest"))
}

/// Returns true if the marked row of a form is not in view, after it was shown.
pub fn hidden_form(app: &mut App, place: DocumentIndex) -> bool {
    let item = Item::Document(place);
    let height = app.viewport.pane.height();
    let Some(rows) = app.viewport.pane.state(item).and_then(|it| question_rows(&it.rows)) else {
        return false;
    };
    let in_view = app.viewport.pane.rows_in_view(item);
    let is_shown = in_view.is_some_and(|(from, to)| (from..=to).contains(rows.end()));
    if is_shown || app.viewport.areas.transcript.height == 0 {
        return false;
    }
    let from = first_row(&rows, height);
    app.with_pane(|pane, context| pane.show_from(item, from, context));
    true
}

/// Sends the answer to a question, unless decisions on hunks forbid it.
pub fn send(app: &mut App, turn: Turn, response: ClarificationResponse) -> Vec<Effect> {
    if !review::lets_out(app, turn, &response) {
        return Vec::new();
    }
    app.questions.sent.insert((turn, response.document_id.clone()));
    // What comes next is followed again if the view had been moved to the question's beginning.
    let decided = app
        .conversation
        .transcript
        .index_of_document(turn, &response.document_id);
    let has_keys = decided.is_some() && decided == app.viewport.question(&app.conversation.transcript);
    let pane = &app.viewport.pane;
    let is_shown = decided.map(Item::Document).is_some_and(|it| {
        if has_keys {
            pane.rows_in_view(it).is_some()
        } else {
            app.viewport.focus == Focus::Composer && pane.shows_start(it)
        }
    });
    if is_shown {
        app.viewport.pane.go_to_end();
    }
    // A form that was brought into view left the end, which is followed again.
    let in_view = app.questions.in_view.take();
    if in_view.is_some_and(|it| it.0 == response.document_id) {
        app.viewport.pane.go_to_end();
    }
    if app.viewport.question(&app.conversation.transcript).is_some() {
        focus_composer(app);
    }
    vec![Effect::Send(Command::Answer { turn, response })]
}
