//! Reviewing changes: all of a turn on one page, with a decision for each.

use serde_json::{Map, Value};

use super::{answer, focus::focus_composer, undo};
use crate::{
    protocol::{Applied, ClarificationResponse, Command, DocumentId, Kind, Outcome, QuestionAnswer, Turn, View},
    t,
    transcript::DocumentIndex,
    tui::{
        app::{Action, App, ChangeId, Choice, Effect, Verdict},
        hunk_decisions,
        overlays::{Prompt, Review},
        widgets,
    },
};

pub const REVIEW: Action = Action::new("review", "review", |app, _| {
    let on = app.viewport.selected().filter(|it| is_edit(app, *it));
    open(app, on)
});

pub const ACT: Action = Action::new("act", "", |app, _| match app.viewport.selected() {
    Some(place) if is_edit(app, place) => open(app, Some(place)),
    Some(_) | None => answer::mark_retry(app),
});

pub const MORE_CONTEXT: Action = Action::new("context.more", "", |app, _| show_context(app, true));

pub const LESS_CONTEXT: Action = Action::new("context.less", "", |app, _| show_context(app, false));

/// The numbers of unchanged lines around a change that can be chosen; no writer records more.
const STEPS: [usize; 5] = [0, 1, 3, 6, 12];

/// Shows more unchanged lines around each change, or fewer.
pub fn show_context(app: &mut App, more: bool) -> Vec<Effect> {
    let now = app.appearance.context_lines;
    let next = if more {
        STEPS.into_iter().find(|it| *it > now)
    } else {
        STEPS.into_iter().rfind(|it| *it < now)
    };
    app.appearance.context_lines = next.unwrap_or(now);
    if let Some(item) = app.viewport.pane.selected {
        app.with_pane(|pane, context| pane.select(item, context));
    }
    app.toast(t!("action-context-lines", count = app.appearance.context_lines))
}

fn is_edit(app: &App, place: DocumentIndex) -> bool {
    let document = app.conversation.transcript.get(place);
    document.is_some_and(|it| it.kind == Kind::FileEdit || widgets::staged(it).is_some())
}

/// Lets a change be written that waits for it, or not.
fn decide(app: &mut App, place: DocumentIndex, is_allowed: bool) -> Vec<Effect> {
    let turn = app.conversation.turn_of(place);
    let Some(document) = app.conversation.transcript.get(place) else {
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
            let answer = QuestionAnswer {
                question_id: question.to_owned(),
                selected_option_ids: vec![option.to_owned()],
                free_text: None,
                hunks: Vec::new(),
            };
            (Outcome::Answered, vec![answer])
        }
        // Whoever asks must take a no, whatever they offer.
        None if !is_allowed => (Outcome::Skipped, Vec::new()),
        None => {
            return app.toast(t!("action-not-allowed-here"));
        }
    };
    if !app.questions.sent.insert((turn, id.clone())) {
        return Vec::new();
    }
    vec![Effect::Send(Command::Answer {
        turn,
        response: ClarificationResponse::new(id, outcome, answers),
    })]
}

fn open(app: &mut App, on: Option<DocumentIndex>) -> Vec<Effect> {
    match Review::new(&app.conversation.transcript, on, app.now_ms) {
        Some(review) => app.open(review),
        None => app.toast(t!("action-no-file-changed")),
    }
}

/// Applies a decision to a change.
pub fn judge(app: &mut App, verdict: Verdict, spot: ChangeId) -> Vec<Effect> {
    if let Some(index) = spot.hunk {
        return judge_hunk(app, verdict, spot.place, index);
    }
    let place = spot.place;
    let turn = app.conversation.turn_of(place);
    let Some(document) = app.conversation.transcript.get(place) else {
        return Vec::new();
    };
    let staged = widgets::staged(document);
    let document = match (&staged, verdict) {
        (Some(_), Verdict::Accept | Verdict::Reject) => return decide(app, place, verdict == Verdict::Accept),
        (Some(_), Verdict::Edit) => {
            return app.toast(t!("action-change-whole"));
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
        // A yes to what was taken back brings it back, and is no yes to a change that is not on the disk.
        Verdict::Accept if document.is_undone() => {
            let effects = undo::redo(turn, id);
            app.toast(t!("action-redoing"));
            effects
        }
        Verdict::Accept if edit.applied == Applied::Rejected => app.toast(t!("action-never-written")),
        Verdict::Accept => update("accepted", true.into()),
        Verdict::Reject if edit.applied == Applied::Rejected => app.toast(t!("action-rejected-already")),
        // Whoever wrote it takes it back: it may be on another machine.
        Verdict::Reject => update("applied", Applied::Rejected.as_str().into()),
        Verdict::Edit => vec![Effect::OpenFile {
            path: edit.new_file_path.unwrap_or(edit.file_path).to_owned(),
            line: edit.diff.as_ref().and_then(|it| it.start_line),
        }],
        Verdict::Comment => {
            into_draft(app, place, "");
            focus_composer(app);
            Vec::new()
        }
    }
}

/// Notes a decision on a hunk that waits; once each has one, the answer is sent.
fn judge_hunk(app: &mut App, verdict: Verdict, place: DocumentIndex, index: u64) -> Vec<Effect> {
    let turn = app.conversation.turn_of(place);
    let Some(document) = app.conversation.transcript.get(place) else {
        return Vec::new();
    };
    let id = document.id.clone();
    if app.questions.sent.contains(&(turn, id.clone())) {
        return Vec::new();
    }
    match verdict {
        Verdict::Accept => app
            .questions
            .hunk_decisions
            .set(turn, &id, index, |it| it.accepted = true),
        Verdict::Reject => app
            .questions
            .hunk_decisions
            .set(turn, &id, index, |it| it.accepted = false),
        Verdict::Comment => {
            let said = app.questions.hunk_decisions.get(turn, &id, index);
            let before = said.and_then(|it| it.comment.clone()).unwrap_or_default();
            let title = t!("action-hunk-comment");
            app.overlays
                .push(Prompt::new(title, &before, Choice::Remark).may_empty());
            return Vec::new();
        }
        Verdict::Edit => {
            let Some(staged) = widgets::staged(document) else {
                return Vec::new();
            };
            let hunk = hunk_decisions::hunk(&staged, index, app.questions.hunk_decisions.get(turn, &id, index));
            let View::FileEdit(edit) = hunk.view() else {
                return Vec::new();
            };
            return vec![Effect::EditHunk {
                turn,
                document: id,
                index,
                path: edit.new_file_path.unwrap_or(edit.file_path).to_owned(),
                text: hunk_decisions::text(&hunk),
            }];
        }
    }
    send_picks(app, place)
}

/// A word for the model on the hunk that the review is at. A hunk that was not accepted is left out because of it.
pub fn remark(app: &mut App, text: String) -> Vec<Effect> {
    let Some(review) = app.overlays.top::<Review>() else {
        return Vec::new();
    };
    let (begun, spot) = (review.remarking(), review.remarked());
    let turn = spot.map(|it| app.conversation.turn_of(it.place));
    let id = spot
        .and_then(|it| app.conversation.transcript.get(it.place))
        .map(|it| it.id.clone());
    let (
        Some(ChangeId {
            place,
            hunk: Some(index),
        }),
        Some(turn),
        Some(id),
    ) = (spot, turn, id)
    else {
        keep(app, begun.map(|it| it.place), &text);
        return Vec::new();
    };
    let is_waiting = app
        .conversation
        .transcript
        .get(place)
        .and_then(widgets::staged)
        .is_some();
    if !is_waiting || app.questions.sent.contains(&(turn, id.clone())) {
        keep(app, Some(place), &text);
        return Vec::new();
    }
    app.questions.hunk_decisions.set(turn, &id, index, |it| {
        it.comment = Some(text).filter(|it| !it.is_empty());
    });
    send_picks(app, place)
}

/// Accepts a hunk with the text that the user wrote in its place.
pub fn edited(app: &mut App, turn: Turn, document: &DocumentId, index: u64, text: &str) -> Vec<Effect> {
    let Some(place) = app.conversation.transcript.index_of_document(turn, document) else {
        keep(app, None, text);
        return Vec::new();
    };
    let staged = app.conversation.transcript.get(place).and_then(widgets::staged);
    let Some(staged) = staged.filter(|_| !app.questions.sent.contains(&(turn, document.clone()))) else {
        keep(app, Some(place), text);
        return Vec::new();
    };
    let shown = hunk_decisions::hunk(&staged, index, app.questions.hunk_decisions.get(turn, document, index));
    if hunk_decisions::text(&shown) == text {
        return app.toast(t!("action-hunk-unchanged"));
    }
    let is_proposed = hunk_decisions::text(&hunk_decisions::hunk(&staged, index, None)) == text;
    app.questions.hunk_decisions.set(turn, document, index, |it| {
        it.accepted = true;
        it.new_string = (!is_proposed).then(|| text.to_owned());
    });
    send_picks(app, place)
}

/// Returns true if an answer may be sent, else toasts why not. The decisions on its hunks end with it.
pub fn lets_out(app: &mut App, turn: Turn, response: &ClarificationResponse) -> bool {
    if let Some(why) = app
        .questions
        .hunk_decisions
        .forbids(turn, response, &app.conversation.transcript)
    {
        app.questions.forms.remove(&(turn, response.document_id.clone()));
        app.toast(why);
        return false;
    }
    app.questions.hunk_decisions.forget(turn, &response.document_id);
    true
}

/// Moves an edited text into the draft, as its question was answered meanwhile.
fn keep(app: &mut App, place: Option<DocumentIndex>, text: &str) {
    match place {
        Some(place) => into_draft(app, place, text),
        None if text.is_empty() => {}
        None => {
            let draft = app.composer.field.text();
            let gap = if draft.is_empty() { "" } else { "\n" };
            app.composer.field.set(&format!("{draft}{gap}{text}"));
        }
    }
    app.toast(t!("action-answered-meanwhile"));
}

/// Words on a document at the end of the draft.
fn into_draft(app: &mut App, place: DocumentIndex, text: &str) {
    let address = app.conversation.transcript.address(place).map(|it| it.to_string());
    let draft = app.composer.field.text();
    let gap = if draft.is_empty() { "" } else { "\n" };
    let address = address.unwrap_or_default();
    app.composer.field.set(&format!("{draft}{gap}#{address} {text}"));
}

fn send_picks(app: &mut App, place: DocumentIndex) -> Vec<Effect> {
    let turn = app.conversation.turn_of(place);
    let Some(document) = app.conversation.transcript.get(place) else {
        return Vec::new();
    };
    let Some(response) = app.questions.hunk_decisions.answer(turn, document) else {
        return Vec::new();
    };
    let id = document.id.clone();
    app.questions.hunk_decisions.forget(turn, &id);
    if !app.questions.sent.insert((turn, id)) {
        return Vec::new();
    }
    vec![Effect::Send(Command::Answer { turn, response })]
}
