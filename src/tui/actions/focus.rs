//! The focus on the draft or on the transcript.

use crate::{
    t,
    tui::{
        app::{App, Focus},
        widgets::transcript::{Item, VisibleLine, is_receipt},
    },
};

/// Moves the focus to the draft; nothing is selected then.
pub fn focus_composer(app: &mut App) {
    app.viewport.focus = Focus::Composer;
    (app.questions.took_focus, app.questions.has_focus) = (false, false);
    app.questions.marked = None;
    app.viewport.typed.clear();
    if app.terminal.inline.is_some() {
        // Older items are in the terminal's own lines.
        app.viewport.pane.go_to_end();
    }
    app.viewport.pane.selected = None;
    app.viewport.pane.release();
}

/// Moves the focus to the open question, else to the last document in view.
pub fn focus_transcript(app: &mut App) {
    let waiting = app.conversation.waiting();
    let is_waiting = waiting.is_some();
    let waiting = waiting.map(Item::Document);
    let transcript = &app.conversation.transcript;
    let is_stop = |it: &Item| !is_receipt(transcript, *it);
    let pane = &app.viewport.pane;
    let last = pane.lines.iter().rev().filter_map(VisibleLine::item).find(is_stop);
    let Some(item) = waiting.or(last).or_else(|| pane.items.last().copied()) else {
        app.toast(t!("action-nothing-to-read"));
        return;
    };
    app.viewport.focus = Focus::Transcript;
    app.questions.since_ms = app.now_ms;
    app.questions.has_focus = is_waiting;
    app.with_pane(|pane, context| pane.select_here(item, context));
}
