//! Messages that were sent before.

use std::path::PathBuf;

use super::EffectRunner;
use crate::{
    t,
    tui::{
        msg::{EffectOutcome, Msg},
        prompt_store,
    },
};

/// Most messages that can be recalled.
const MOST_RECALLED: usize = 1000;

/// Remembers a message that was sent, where the user wants that.
pub fn note(runner: &EffectRunner, workspace: PathBuf, at_ms: u64, text: String) {
    if !runner.keeps {
        return;
    }
    let (state, send) = (runner.paths.state.clone(), runner.inbox.clone());
    tokio::task::spawn_blocking(move || {
        if let Err(why) = prompt_store::note(&state, &workspace, at_ms, &text) {
            let _ = send.send(Msg::Done(EffectOutcome::Failed(t!("news-not-remembered", why = why))));
        }
    });
}

/// Counts a use of a command, where the user wants that. A failure costs only the order of a list.
pub fn count_use(runner: &EffectRunner, name: String) {
    if runner.keeps {
        let state = runner.paths.state.clone();
        tokio::task::spawn_blocking(move || {
            if let Err(why) = prompt_store::count_use(&state, &name) {
                tracing::debug!("the use of a command is not counted: {why}");
            }
        });
    }
}

/// Reads how often each command was used.
pub fn uses(runner: &EffectRunner) {
    let state = runner.paths.state.clone();
    runner.block(move || EffectOutcome::Uses(prompt_store::uses(&state)));
}

/// Reads the messages that were sent in `workspace`; in all workspaces without one, for a page asked for at a version of the
/// draft.
pub fn recall(runner: &EffectRunner, workspace: Option<PathBuf>, draft: Option<u64>) {
    let state = runner.paths.state.clone();
    runner.block(move || EffectOutcome::History {
        texts: prompt_store::history(&state, workspace.as_deref(), MOST_RECALLED),
        draft,
    });
}
