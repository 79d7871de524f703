//! Reads what was said before this program ran.

use std::sync::Arc;

use super::notices::notice;
use crate::{
    agent::{
        history::{
            self, Called,
            message_history::MessageHistory,
            told::{self, Restored},
        },
        runner::setup::Setup,
        turn::Memory,
    },
    journal::{Log, Recent},
    protocol::{DocumentId, Entry, Event, Kind, Position, Response, Severity, Turn},
    tools::ToolSet,
};

/// Few models of which nobody knows it take in more, in tokens.
const USUAL_WINDOW: u64 = 300_000;

/// Fills the memory with what the log says was told, else with what it says was said. Returns what was told, if there is
/// a record of it.
pub fn remember(memory: &mut Memory, setup: &Setup, log: &Log) -> Option<Restored> {
    if let Some(recent) = log.recent().cloned()
        && let Some(restored) = told_lately(memory, setup, log, &recent)
    {
        memory.is_titled = true;
        count_earlier(memory, setup, log, &recent);
        return Some(restored);
    }
    if let Some(recent) = log.recent().cloned()
        && let Some(before) = said_lately(memory, setup, log, &recent)
    {
        let is_whole = before.has_summary();
        memory.remember(before);
        memory.is_titled = true;
        count_earlier(memory, setup, log, &recent);
        if !is_whole {
            notice(
                log,
                Severity::Info,
                "remembered-lately",
                "the conversation is too long for one request: the model sees only the later part",
            );
        }
        return None;
    }
    let entries = log.after(Position(0));
    let restored = restore(memory, setup, &entries);
    if restored.is_none() {
        memory.remember(said(setup, &entries));
    }
    let is_title = |it: &Arc<Entry>| matches!(it.event, Event::Title(_));
    memory.is_titled = entries.iter().any(is_title);
    memory.costs.dollars = spent(&entries);
    restored
}

/// Adds up the cost of a conversation that was opened at its end, where a limit needs it.
fn count_earlier(memory: &mut Memory, setup: &Setup, log: &Log, recent: &Recent) {
    if setup.settings.agent.max_dollars_in_all.is_some() {
        let earlier = log.spent_earlier().dollars.unwrap_or_default();
        memory.costs.dollars = earlier + spent(&log.after(recent.after));
    }
}

/// Restores what was told from the end of a conversation, if it holds all of it.
fn told_lately(memory: &mut Memory, setup: &Setup, log: &Log, recent: &Recent) -> Option<Restored> {
    restore(memory, setup, &log.after(recent.after)).or_else(|| restore(memory, setup, &log.lately()?))
}

/// Restores what was told word for word; what no record holds, because the program was cut off, is added as it was said.
fn restore(memory: &mut Memory, setup: &Setup, entries: &[Arc<Entry>]) -> Option<Restored> {
    let transcript = history::folded(entries);
    let root = setup.workspace.as_ref().map(|it| it.root());
    let restored = told::restore(entries, &transcript, root)?;
    let mut told = restored.history.clone();
    if setup.tools.is_empty() {
        history::add_text_only(&transcript, Some(restored.upto), &mut told);
    } else {
        history::add_with_calls(&transcript, Some(restored.upto), &mut told);
    }
    memory.restore(told, restored.facts.prompt.clone());
    Some(restored)
}

/// The end of a conversation that was opened at its end, if the model could be told no more anyway: it begins with a
/// summary, or it fills the window. Reading all of it would take seconds and hundreds of megabytes.
fn said_lately(memory: &Memory, setup: &Setup, log: &Log, recent: &Recent) -> Option<MessageHistory> {
    let window = memory.window.tokens.unwrap_or(USUAL_WINDOW);
    let is_enough = |it: &MessageHistory| !it.is_short && (it.has_summary() || it.size_of(0..) >= window);
    let late = said(setup, &log.after(recent.after));
    if is_enough(&late) {
        return Some(late);
    }
    Some(said(setup, &log.lately()?)).filter(is_enough)
}

/// The messages that the model is told of these entries.
fn said(setup: &Setup, entries: &[Arc<Entry>]) -> MessageHistory {
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
