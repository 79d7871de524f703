//! Applies new entries of the log to the state.

use std::sync::Arc;

use crate::{
    protocol::{
        Command, DocumentId, Entry, Event, FinishReason, Kind, Message, Mode, ResponseChange, Severity, Turn, View,
    },
    t,
    text::{Sanitized, WordList},
    transcript::{DocumentIndex, is_approval},
    tui::{
        actions::{focus::focus_composer, writing::take_back},
        app::{App, Effect, Focus, inline},
        spoken::worded,
        widgets::{
            Form, action_line,
            transcript::{Following, Item},
        },
    },
};

/// Warnings of the agent's that are for the user, unlike repairs of a stream.
const OWN_NOTICES: WordList = WordList(
    "trust read-only not-there protected not-taken-back not-restored no-call context compacted not-compacted
     debug-marks rule-not-kept stand-in price-unknown mcp-unapproved mcp-failed mcp-changed mcp-ended model-unknown
     answer-dropped",
);

pub(super) fn follow(app: &mut App, entries: &[Arc<Entry>]) -> Vec<Effect> {
    let mut finished = false;
    let mut is_growth_only = true;
    let had_progress = app.conversation.transcript.progress.is_some();
    for entry in entries {
        let moved = app.conversation.transcript.apply(entry);
        let is_growth = match moved.change {
            // A form that grows its questions begins to wait for somebody.
            ResponseChange::Grew(document) => app
                .conversation
                .transcript
                .get(DocumentIndex {
                    exchange: moved.exchange,
                    document,
                })
                .is_some_and(|it| it.kind != Kind::Clarification),
            ResponseChange::Nothing | ResponseChange::Thinking => true,
            _ => false,
        };
        is_growth_only &= is_growth;
        if !is_growth || had_progress {
            app.viewport.bars = None;
        }
        if let Event::Branch(_) = &entry.event {
            branched(app);
        }
        app.viewport.pane.moved(moved, &app.conversation.transcript);
        if let Some(search) = &mut app.viewport.search {
            search.is_stale = true;
        }
        if let Event::Notice(notice) = &entry.event
            && (notice.severity == Severity::Error
                || notice.code.starts_with("session-")
                || OWN_NOTICES.contains(&notice.code))
        {
            // What is lost, or will be: repairs of a stream are only for those who look for them.
            app.notice(worded(notice.message.lines().next().unwrap_or_default()));
            match notice.code.as_str() {
                "session-not-stored" => app.conversation.is_unstored = true,
                "session-stored-again" => app.conversation.is_unstored = false,
                _ => {}
            }
            app.viewport.bars = None;
        }
        // Whoever reads further up does not see the line.
        if let ResponseChange::Acted(nth) = moved.change
            && app.viewport.pane.follow != Following::End
            && let Some(exchange) = app.conversation.transcript.exchanges.get(moved.exchange)
            && let Some(action) = exchange.actions.get(nth)
        {
            app.toast(action_line(action));
        }
        if let Event::DocumentEnd { document, .. } = &entry.event
            && let Some(mode) = agreed_mode(app, moved.exchange, document)
        {
            app.composer.enter(mode);
            app.viewport.bars = None;
        }
        if let Event::DocumentStart(start) = &entry.event
            && start.metadata.get("role").is_some_and(|it| it == "user")
            && !app.composer.said.is_empty()
        {
            app.composer.said.remove(0);
            app.viewport.bars = None;
        }
        // The answer was over before it was heard: it is a message of its own now.
        if let Event::UserMessage(message) = &entry.event
            && app.composer.said.first() == Some(&message.content)
        {
            app.composer.said.remove(0);
            app.viewport.bars = None;
        }
        if let ResponseChange::Finished = moved.change {
            finished = true;
        }
    }
    app.questions.submitted_ms = None;
    if !app.conversation.is_busy() && !is_growth_only {
        app.forget_retired();
    }
    if !is_growth_only {
        announce(app);
    }
    if finished && !app.conversation.is_busy() {
        if was_stopped(app) && !app.composer.said.is_empty() {
            take_back_queue(app);
            return Vec::new();
        }
        app.composer.said.clear();
    }
    if finished
        && !app.conversation.is_busy()
        && !app.composer.queue.is_empty()
        && app.conversation.transcript.open_question().is_none()
    {
        if was_stopped(app) {
            take_back_queue(app);
            return Vec::new();
        }
        let submit = app.composer.queue.remove(0);
        return vec![Effect::Send(Command::Submit(submit))];
    }
    Vec::new()
}

/// Another branch is shown: places mean other documents now.
fn branched(app: &mut App) {
    let filter = std::mem::take(&mut app.viewport.pane.filter);
    app.viewport.pane.reset();
    app.viewport.pane.filter = filter;
    app.viewport.pane.list(0, &app.conversation.transcript);
    (app.viewport.search, app.viewport.selection) = (None, None);
    app.questions.announced = None;
    app.viewport.bars = None;
    if app.conversation.transcript.exchanges.is_empty() {
        app.toast(t!("done-branched-start"));
    }
    let last = app.conversation.transcript.exchanges.len().saturating_sub(1);
    let shown = app.viewport.pane.items.partition_point(|it| it.exchange() < last);
    if let Some(inline) = &mut app.terminal.inline {
        inline.flowed = inline::Flowed::default();
        inline.printed = shown;
        let text = Sanitized::line(t!("inline-branched"));
        inline.aside.push_str(&format!("\r\n  ── {text} ──\r\n"));
    }
}

fn was_stopped(app: &App) -> bool {
    let ending = app
        .conversation
        .transcript
        .exchanges
        .last()
        .and_then(|it| it.response.ending.as_ref());
    ending.is_some_and(|it| it.finish_reason == FinishReason::Cancelled)
}

/// Puts messages that waited behind a stopped answer back in front of the draft: the user wants to think again.
pub(super) fn take_back_queue(app: &mut App) {
    let said = app.composer.said.drain(..).map(Message::user);
    let messages: Vec<_> = said.chain(app.composer.queue.drain(..).map(|it| it.message)).collect();
    take_back(app, &messages);
}

/// The mode that the user has just agreed to, here: what comes next is said in it, too.
fn agreed_mode(app: &App, exchange: usize, document: &DocumentId) -> Option<Mode> {
    let exchange = app.conversation.transcript.exchanges.get(exchange)?;
    if !app.questions.sent.contains(&(exchange.turn, document.clone())) {
        return None;
    }
    let View::Clarification(it) = exchange.response.get(document)?.view() else {
        return None;
    };
    let planned = it.subject?.get("metadata")?;
    let mut chosen = it.answers.iter().flat_map(|it| &it.selected_option_ids);
    if planned.get("toolName")?.as_str() != Some("switch_mode") || !chosen.any(|it| it == "allow_once") {
        return None;
    }
    Mode::parse(planned.get("arguments")?.get("target_mode_id")?.as_str()?)
}

/// Brings a new question, or a plan that may be built, to the reader's notice, without taking the keys from somebody who writes.
fn announce(app: &mut App) {
    let Some(place) = app.conversation.waiting() else {
        app.questions.announced = None;
        if app.questions.took_focus || app.questions.has_focus {
            focus_composer(app);
        }
        return;
    };
    let Some(document) = app.conversation.transcript.get(place) else {
        return;
    };
    let name = (app.conversation.turn_of(place), document.id.clone());
    if app.questions.announced.as_ref() == Some(&name) {
        return;
    }
    if document.kind == Kind::Clarification {
        app.questions
            .forms
            .entry(name.clone())
            .or_insert_with(|| Form::new(name.1.clone()));
    }
    app.questions.announced = Some(name.clone());
    app.questions.since_ms = app.now_ms;
    // Only what the model asks may take the focus, and only if nothing is typed: there letters are the answer. The first page
    // (turn 0) was not asked for.
    let is_question = document.kind == Kind::Clarification && !is_approval(document) && name.0 != Turn(0);
    let is_free = app.viewport.focus == Focus::Composer && app.composer.field.is_empty() && app.overlays.is_empty();
    if is_question && is_free {
        app.viewport.focus = Focus::Transcript;
        app.questions.took_focus = true;
        app.viewport.pane.selected = Some(Item::Document(place));
    }
}
