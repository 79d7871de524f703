//! Stored conversations.

use std::{path::PathBuf, sync::Arc};

use super::EffectRunner;
use crate::{
    journal::Log,
    link::Link,
    t,
    tui::{
        library::Library,
        msg::{EffectOutcome, Msg},
    },
};

/// Lists the conversations.
pub fn list(runner: &EffectRunner) {
    read(runner, |library| EffectOutcome::Sessions(library.list()));
}

/// Finds the conversations in which `words` are said.
pub fn find(runner: &EffectRunner, words: String) {
    read(runner, move |library| {
        let found = library.find(&words);
        EffectOutcome::SessionsFound { words, found }
    });
}

/// Reads the end of a conversation.
pub fn preview(runner: &EffectRunner, id: String) {
    read(runner, move |library| {
        let preview = Box::new(library.preview(&id));
        EffectOutcome::SessionPreview { id, preview }
    });
}

/// Changes a conversation of the list and reads the list again.
pub fn change(runner: &EffectRunner, change: impl FnOnce(&dyn Library) -> Result<(), String> + Send + 'static) {
    read(runner, move |library| EffectOutcome::SessionChanged {
        failed: change(library).err(),
        kept: library.list().ok(),
    });
}

/// Writes the conversation to `target`, which the user calls `path`.
pub fn export(runner: &EffectRunner, log: &Arc<Log>, target: PathBuf, path: String) {
    let log = Arc::clone(log);
    read(runner, move |library| {
        EffectOutcome::Saved(library.export(&log, &target).map(|()| t!("news-written", path = path)))
    });
}

/// Puts another conversation in the place of this one.
pub fn open(runner: &EffectRunner, open: impl FnOnce(&dyn Library) -> Result<Arc<dyn Link>, String> + Send + 'static) {
    let library = runner.library.clone();
    runner.block_for(move || {
        let library = library.ok_or_else(|| t!("news-alone").to_owned());
        match library.and_then(|it| open(it.as_ref())) {
            Ok(link) => Msg::Switch(link),
            Err(why) => Msg::Done(EffectOutcome::Failed(why)),
        }
    });
}

/// Looks something up among the conversations, on another thread.
fn read(runner: &EffectRunner, look: impl FnOnce(&dyn Library) -> EffectOutcome + Send + 'static) {
    let library = runner.library.clone();
    runner.block(move || match library {
        Some(library) => look(library.as_ref()),
        None => EffectOutcome::Failed(t!("news-alone").to_owned()),
    });
}
