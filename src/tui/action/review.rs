//! What can be said of changes: all of a turn in one place, and a decision for each.

use serde_json::{Map, Value};

use super::{Action, answer, everywhere::focus_composer};
use crate::{
    protocol::{Answer, Applied, ClarificationResponse, Command, Kind, Outcome, View},
    say,
    transcript::Place,
    tui::{
        app::App,
        doc,
        effect::Effect,
        layer::{Layer, Review, Verdict},
    },
};

pub const REVIEW: Action = Action {
    name: "review",
    slash: "review",
    run: |app, _| {
        let on = app.selected().filter(|it| is_edit(app, *it));
        open(app, on);
        Vec::new()
    },
};

pub const ACT: Action = Action {
    name: "act",
    slash: "",
    run: |app, _| match app.selected() {
        Some(place) if is_edit(app, place) => {
            open(app, Some(place));
            Vec::new()
        }
        Some(_) | None => (answer::RETRY.run)(app, ""),
    },
};

fn is_edit(app: &App, place: Place) -> bool {
    let document = app.transcript.get(place);
    document.is_some_and(|it| it.kind == Kind::FileEdit || doc::staged(it).is_some())
}

/// Lets a change be written that waits for it, or not.
fn decide(app: &mut App, place: Place, is_allowed: bool) -> Vec<Effect> {
    let turn = app.turn_of(place);
    let Some(document) = app.transcript.get(place) else {
        return Vec::new();
    };
    let View::Clarification(view) = document.view() else {
        return Vec::new();
    };
    let wanted = if is_allowed { "allow_once" } else { "reject_once" };
    let question = view.questions.first();
    let option = question.and_then(|it| Some((it.id, it.options.iter().find(|it| it.id == wanted)?.id)));
    let id = document.id.clone();
    let (outcome, answers) = match option {
        Some((question, option)) => {
            let answer = Answer {
                question_id: question.to_owned(),
                selected_option_ids: vec![option.to_owned()],
                free_text: None,
            };
            (Outcome::Answered, vec![answer])
        }
        // Whoever asks must take a no, whatever they offer.
        None if !is_allowed => (Outcome::Skipped, Vec::new()),
        None => {
            app.say(say!("action-not-allowed-here"));
            return Vec::new();
        }
    };
    if !app.asking.sent.insert((turn, id.clone())) {
        return Vec::new();
    }
    vec![Effect::Send(Command::Answer {
        turn,
        response: ClarificationResponse {
            document_id: id,
            outcome,
            answers,
            reason: None,
        },
    })]
}

fn open(app: &mut App, on: Option<Place>) {
    match Review::new(&app.transcript, on, app.now_ms) {
        Some(review) => app.layers.push(Layer::Review(Box::new(review))),
        None => app.say(say!("action-no-file-changed")),
    }
}

/// What is said of the change at a place.
pub fn judge(app: &mut App, verdict: Verdict, place: Place) -> Vec<Effect> {
    let turn = app.turn_of(place);
    let Some(document) = app.transcript.get(place) else {
        return Vec::new();
    };
    let staged = doc::staged(document);
    let document = match (&staged, verdict) {
        (Some(_), Verdict::Accept | Verdict::Reject) => return decide(app, place, verdict == Verdict::Accept),
        (Some(_), Verdict::Edit) => {
            app.say(say!("action-not-written-yet"));
            return Vec::new();
        }
        (Some(staged), Verdict::Comment) => staged,
        (None, _) => document,
    };
    let View::FileEdit(edit) = document.view() else {
        return Vec::new();
    };
    let id = document.id.clone();
    let update = |name: &str, value: Value| {
        let metadata = Map::from_iter([(name.to_owned(), value)]);
        vec![Effect::Send(Command::Update {
            turn,
            document: id.clone(),
            metadata,
        })]
    };
    match verdict {
        Verdict::Accept => update("accepted", true.into()),
        Verdict::Reject if edit.applied == Applied::Rejected => {
            app.say(say!("action-rejected-already"));
            Vec::new()
        }
        // Whoever wrote it takes it back: it may be on another machine.
        Verdict::Reject => update("applied", Applied::Rejected.as_str().into()),
        Verdict::Edit => vec![Effect::OpenFile {
            path: edit.new_file_path.unwrap_or(edit.file_path).to_owned(),
            line: edit.diff.as_ref().and_then(|it| it.start_line),
        }],
        Verdict::Comment => {
            let address = app
                .transcript
                .address(place)
                .map(|it| it.to_string())
                .unwrap_or_default();
            let draft = app.composer.field.text();
            let gap = if draft.is_empty() { "" } else { "\n" };
            app.composer.field.set(&format!("{draft}{gap}#{address} "));
            focus_composer(app);
            Vec::new()
        }
    }
}
