//! Stored conversations.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use super::EffectRunner;
use crate::{
    journal::Log,
    link::Link,
    protocol::UserAction,
    t,
    tui::{
        library::Library,
        msg::{EffectOutcome, Msg, SavedFile},
    },
};

/// Lists the conversations.
pub fn list(runner: &EffectRunner, draft: u64) {
    read(runner, move |library| EffectOutcome::Sessions(library.list(), draft));
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

/// Writes the conversation to `target`, which the user calls `path`. Of a file that is there the user is
/// asked first, if the draft's version is given.
pub fn export(runner: &EffectRunner, log: &Arc<Log>, target: PathBuf, path: String, asks: Option<u64>) {
    let log = Arc::clone(log);
    read(runner, move |library| {
        let is_replaced = target.is_file();
        if let Some(draft) = asks.filter(|_| is_replaced) {
            return EffectOutcome::ExportExists { path, draft };
        }
        EffectOutcome::Saved(library.export(&log, &target).map(|()| SavedFile {
            action: UserAction::Exported,
            path,
            is_replaced,
        }))
    });
}

/// Returns the path that the user means: below the workspace, or below the home folder for `~/`.
pub fn target(workspace: &Path, home: Option<&Path>, path: &str) -> PathBuf {
    match (path.strip_prefix("~/"), home) {
        (Some(rest), Some(home)) => home.join(rest),
        (Some(_) | None, _) => workspace.join(path),
    }
}

/// Finds a name for an export that no file has. `home` is given in a git repository: there the file lies outside of it.
pub fn propose(runner: &EffectRunner, workspace: PathBuf, home: Option<PathBuf>, title: String, draft: u64) {
    runner.block(move || {
        let folder = if home.is_some() { "~/" } else { "" };
        let is_free = |it: &String| !target(&workspace, home.as_deref(), it).exists();
        let name = slug(&title);
        let more = (2..100).map(|it| format!("{folder}{name}-{it}.html"));
        let mut names = std::iter::once(format!("{folder}{name}.html")).chain(more);
        let path = names.find(is_free).unwrap_or_default();
        EffectOutcome::ExportProposed { path, draft }
    });
}

/// Maximum length of a proposed name, in characters.
const NAME_CHARACTERS: usize = 40;

/// Returns a title as the name of a file: its letters and digits in small letters, with single dashes between words.
fn slug(title: &str) -> String {
    let mut name = String::new();
    for letter in title.chars().flat_map(char::to_lowercase) {
        if letter.is_alphanumeric() {
            name.push(letter);
        } else if !name.is_empty() && !name.ends_with('-') {
            name.push('-');
        }
    }
    let name: String = name.chars().take(NAME_CHARACTERS).collect();
    let name = name.trim_end_matches('-');
    if name.is_empty() { "conversation" } else { name }.to_owned()
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_title_becomes_the_name_of_a_file() {
        for (title, expected) in [
            ("Discount codes", "discount-codes"),
            ("  Fix `src/a.rs`: ../../etc!  ", "fix-src-a-rs-etc"),
            ("Größe 漢字", "größe-漢字"),
            ("...", "conversation"),
            ("", "conversation"),
            (&"word ".repeat(30), "word-word-word-word-word-word-word-word"),
        ] {
            assert_eq!(slug(title), expected, "{title}");
        }
    }

    #[test]
    fn a_path_is_below_the_workspace_or_the_home_folder() {
        let (work, home) = (Path::new("/work"), Path::new("/home/kim"));
        for (path, home, expected) in [
            ("a.html", Some(home), "/work/a.html"),
            ("~/a.html", Some(home), "/home/kim/a.html"),
            ("~/a.html", None, "/work/~/a.html"),
            ("/tmp/a.html", Some(home), "/tmp/a.html"),
        ] {
            assert_eq!(target(work, home, path), Path::new(expected), "{path}");
        }
    }
}
