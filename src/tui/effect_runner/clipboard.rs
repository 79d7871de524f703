//! The clipboard: copies, and pictures that are pasted.

use std::path::PathBuf;

use super::EffectRunner;
use crate::{
    os::clipboard,
    t,
    text::Sanitized,
    tui::{
        msg::EffectOutcome,
        picture::{self, Source},
    },
};

/// Copies `text` by whatever way there is; `what` names it in the news about that.
pub fn copy(runner: &EffectRunner, text: &str, what: String) {
    // What is pasted from it may go to a shell.
    let text = Sanitized::new(text).to_string();
    let folder = runner.paths.state.clone();
    // OSC 52 has to go through our own door to the terminal, in one piece.
    let around = clipboard::Surroundings::read();
    runner.spawn(async move {
        match clipboard::copy(&text, &around, &folder).await {
            Ok(clipboard::ClipboardRoute::Terminal(bytes)) => EffectOutcome::Osc52 { bytes, what },
            Ok(way) => EffectOutcome::Copied(Ok(t!("news-copied", what = what, way = way.to_string()))),
            Err(error) => EffectOutcome::Copied(Err(t!("news-not-copied", what = what, why = error.to_string()))),
        }
    });
}

/// Reads a picture for the draft: of the clipboard, or a file of the workspace.
pub fn picture(runner: &EffectRunner, source: Source, workspace: PathBuf) {
    runner.spawn(async move {
        EffectOutcome::Picture(match source {
            Source::Clipboard => match clipboard::picture(&clipboard::Surroundings::read()).await {
                Some(bytes) => picture::of("clipboard.png", &bytes).map_err(|it| (it, None)),
                None => Err((t!("news-no-picture").to_owned(), None)),
            },
            Source::Path(path, text) => {
                let read = tokio::task::spawn_blocking(move || picture::read(&workspace.join(path)));
                let read = read.await.unwrap_or_else(|it| Err(it.to_string()));
                read.map_err(|it| (it, Some(text)))
            }
        })
    });
}
