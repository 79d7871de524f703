//! Reads what was said before this program ran.

use std::sync::Arc;

use super::notices::notice;
use crate::{
    agent::{
        history::{self, Called, message_history::MessageHistory},
        runner::setup::Setup,
        turn::Memory,
    },
    journal::{Log, Recent},
    protocol::{DocumentId, Entry, Event, Kind, Position, Response, Severity, Turn},
    tools::ToolSet,
};

/// Few models of which nobody knows it take in more, in tokens.
const USUAL_WINDOW: u64 = 300_000;

/// Fills the memory with what the log says was said.
pub fn remember(memory: &mut Memory, setup: &Setup, log: &Log) {
    if let Some(recent) = log.recent()
        && let Some(before) = said_lately(memory, setup, log, &recent)
    {
        let is_whole = before.has_summary();
        memory.remember(before);
        memory.is_titled = true;
        if setup.settings.agent.max_dollars_in_all.is_some() {
            let earlier = log.spent_earlier().and_then(|it| it.0.dollars).unwrap_or_default();
            memory.costs.dollars = earlier + spent(&log.after(recent.after));
        }
        if !is_whole {
            notice(
                log,
                Severity::Info,
                "remembered-lately",
                "the conversation is too long for one request: the model sees only the later part",
            );
        }
        return;
    }
    let entries = log.after(Position(0));
    let before = told(setup, &entries);
    memory.remember(before);
    let is_title = |it: &Arc<Entry>| matches!(it.event, Event::Title(_));
    memory.is_titled = entries.iter().any(is_title);
    memory.costs.dollars = spent(&entries);
}

/// The end of a conversation that was opened at its end, if the model could be told no more anyway: it begins with a
/// summary, or it fills the window. Reading all of it would take seconds and hundreds of megabytes.
fn said_lately(memory: &Memory, setup: &Setup, log: &Log, recent: &Recent) -> Option<MessageHistory> {
    let window = memory.window.tokens.unwrap_or(USUAL_WINDOW);
    let is_enough = |it: &MessageHistory| !it.is_short && (it.has_summary() || it.size_of(0..) >= window);
    let late = told(setup, &log.after(recent.after));
    if is_enough(&late) {
        return Some(late);
    }
    Some(told(setup, &log.lately()?)).filter(is_enough)
}

/// The messages that the model is told of these entries.
fn told(setup: &Setup, entries: &[Arc<Entry>]) -> MessageHistory {
    // A server that is offered no tools may refuse calls of them.
    if setup.tools.is_empty() {
        history::text_only(entries)
    } else {
        history::with_calls(entries)
    }
}

/// The call that a document shows, where it can be made by the user, too: with one of `tools`.
pub fn call_behind(log: &Log, tools: &ToolSet, turn: Turn, document: &DocumentId) -> Option<Called> {
    let mut response = Response::default();
    for entry in log.after(Position(0)).iter().filter(|it| it.turn == turn) {
        response.apply(&entry.event, entry.at_ms);
    }
    let document = response.get(document)?;
    let is_users = matches!(document.kind, Kind::ToolCall | Kind::TerminalCommand | Kind::FileEdit);
    let called = history::called(document, None).filter(|_| is_users)?;
    tools.get(&called.name).is_some().then_some(called)
}

/// The known cost of the answers in dollars.
fn spent(entries: &[Arc<Entry>]) -> f64 {
    let cost = |it: &Arc<Entry>| match &it.event {
        Event::Done(done) => done.extra_usage.get("costUsd")?.as_f64(),
        _ => None,
    };
    entries.iter().filter_map(cost).sum()
}
