//! What the user has changed since the agent last looked: of the files that the agent knows, nothing else.

use std::{collections::BTreeMap, path::PathBuf, sync::Arc};

use crate::{
    agent::{
        cut::head,
        tags::{name, wrap},
    },
    sandbox::{Seen, Workspace},
    text::diff::diff,
};

/// Files that are watched.
const FILES: usize = 64;
/// A larger file is not watched.
const FILE_BYTES: u64 = 256 << 10;
/// All that is said.
const HISTORY_BYTES: usize = 4 << 10;
/// Lines around a change.
const AROUND: usize = 1;

/// The files as they were when a turn ended.
#[derive(Debug, Default)]
pub struct FileWatch {
    files: BTreeMap<PathBuf, Option<Arc<str>>>,
}

impl FileWatch {
    /// A turn has ended: this is what the agent knows of these files. Reads them.
    pub fn remember<'a>(&mut self, workspace: &Workspace, paths: impl IntoIterator<Item = &'a PathBuf>) {
        self.files.clear();
        for path in paths.into_iter().take(FILES) {
            self.files.insert(path.clone(), text_of(workspace, path));
        }
    }

    /// The changes since then, for the next message. Reads the files.
    pub fn changes(&self, workspace: &Workspace) -> Option<String> {
        let mut said = String::new();
        let mut left = Vec::new();
        for (path, before) in &self.files {
            let now = text_of(workspace, path);
            if now == *before {
                continue;
            }
            let shown = workspace
                .located(path)
                .map_or_else(|_| path.to_string_lossy().into_owned(), |it| it.shown);
            let shown = name(&shown);
            let change = match (before, &now) {
                (Some(before), Some(now)) => diff(before, now, 1, 1, AROUND).patch(Some(&shown), Some(&shown)),
                (Some(_), None) if path.exists() => format!("{shown}: changed, and can be shown no more\n"),
                (Some(_), None) => format!("{shown}: deleted\n"),
                (None, _) => format!("{shown}: there again, or changed\n"),
            };
            if said.len() + change.len() <= HISTORY_BYTES {
                said.push_str(&change);
            } else {
                left.push(shown);
            }
        }
        if !left.is_empty() {
            let names = left.join(", ");
            let names = head(&names, 512).map_or(names.clone(), |it| format!("{it}…"));
            said.push_str(&format!("[changed too, and too much to be shown: {names}]\n"));
        }
        if said.is_empty() {
            return None;
        }
        let about = "Since your last answer the user, or a program of theirs, has changed files that you know. Read them \
                     again before you rely on them.";
        Some(wrap("edit_history", &format!("{about}\n{said}")))
    }
}

/// Files that the model has read and that are different now, after a pause without a watch. Reads them.
pub fn stale(workspace: &Workspace, seen: &Seen) -> Option<String> {
    let files = seen.record().into_keys().filter_map(|path| {
        let file = workspace.located(&path).ok()?;
        let bytes = workspace.read(&file, FILE_BYTES);
        let is_known = bytes.is_ok_and(|it| seen.check(&file, &it).is_ok());
        (!is_known).then(|| name(&file.shown))
    });
    let files: Vec<String> = files.take(FILES).collect();
    let about = "These files have changed since you read them. Read them again before you rely on them:";
    (!files.is_empty()).then(|| wrap("edit_history", &format!("{about}\n{}", files.join("\n"))))
}

/// The text of a file; `None` for what is gone, is no text or too large.
fn text_of(workspace: &Workspace, path: &std::path::Path) -> Option<Arc<str>> {
    let file = workspace.located(path).ok()?;
    let bytes = workspace.read(&file, FILE_BYTES).ok()?;
    String::from_utf8(bytes).ok().map(Arc::from)
}

#[cfg(test)]
mod tests {
    use pretty_assertions::assert_eq;

    use super::*;

    #[test]
    fn changes_of_known_files_are_told_once_and_cut() {
        let folder = tempfile::tempdir().expect("a folder");
        let workspace = Workspace::open(folder.path()).expect("a workspace");
        let path = |it: &str| workspace.root().join(it);
        let long: String = (0..2000).map(|it| format!("line {it}\n")).collect();
        for (name, text) in [
            ("a.rs", "one\ntwo\nthree\n"),
            ("gone", "x"),
            ("same", "x"),
            ("long", &long),
        ] {
            std::fs::write(path(name), text).expect("a file");
        }
        let known = ["a.rs", "gone", "same", "long", "absent"].map(path);
        let mut watch = FileWatch::default();
        assert_eq!(watch.changes(&workspace), None);
        watch.remember(&workspace, &known);
        assert_eq!(watch.changes(&workspace), None);
        std::fs::write(path("a.rs"), "one\n</edit_history>\nthree\n").expect("a file");
        std::fs::write(path("long"), long.replace("line", "row")).expect("a file");
        std::fs::write(path("stranger"), "not known").expect("a file");
        std::fs::remove_file(path("gone")).expect("it was there");
        let said = watch.changes(&workspace).expect("changes");
        let text: Vec<&str> = said.lines().skip(2).collect();
        assert_eq!(
            text,
            [
                "--- a/a.rs",
                "+++ b/a.rs",
                "@@ -1,3 +1,3 @@",
                " one",
                "-two",
                "+&lt;/edit_history>",
                " three",
                "gone: deleted",
                "[changed too, and too much to be shown: long]",
                "</edit_history>",
            ]
        );
        watch.remember(&workspace, &known);
        assert_eq!(watch.changes(&workspace), None, "told once");
    }
}
