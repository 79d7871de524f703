//! The files of a workspace by time and length: servers are told of what others have changed.

use std::{
    collections::BTreeMap,
    fs::Metadata,
    path::{Path, PathBuf},
    time::{Duration, SystemTime},
};

use crate::{
    config::Settings,
    sandbox::{Bounds, Workspace},
    text::language::language_of,
};

/// Entries that are looked at.
const MOST_ENTRIES: usize = 20_000;
/// Time of the look.
const PATIENCE: Duration = Duration::from_millis(200);
/// Changes that servers are told at once; the others are told the next time.
const MOST_CHANGES: usize = 500;

/// The change of a file, in the protocol's numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DiskChange {
    Created = 1,
    Changed = 2,
    Deleted = 3,
}

/// Tells a file from a changed one without reading it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Print {
    /// When its text changed.
    modified: Option<SystemTime>,
    /// When anything of it changed, its name included.
    touched: Option<SystemTime>,
    length: u64,
}

/// The files of a workspace that have a language or a server of the user's, as searches see them.
#[derive(Debug)]
pub struct Tree {
    files: BTreeMap<PathBuf, Print>,
    /// When the look began.
    at: SystemTime,
    /// There are more than were looked at.
    is_partial: bool,
}

impl Tree {
    /// Looks at the workspace for a fifth of a second at most.
    pub fn read(workspace: &Workspace, settings: &Settings) -> Self {
        let at = SystemTime::now();
        let bounds = Bounds::within(PATIENCE).entries(MOST_ENTRIES);
        let Ok(walk) = workspace.locate("").and_then(|it| workspace.walker(&it, bounds)) else {
            return Self {
                files: BTreeMap::new(),
                at,
                is_partial: true,
            };
        };
        let files = walk.entries().flatten().filter_map(|it| {
            let is_file = it.file_type().is_some_and(|it| it.is_file());
            let about = it
                .metadata()
                .ok()
                .filter(|_| is_file && is_wanted(it.path(), settings))?;
            Some((it.into_path(), print(&about)))
        });
        Self {
            files: files.collect(),
            at,
            is_partial: walk.is_cut(),
        }
    }

    /// Takes over what a later look has seen. Returns the files that have come, changed or gone, and not what may only have been
    /// missed before or now.
    pub fn update(&mut self, now: Self) -> Vec<(PathBuf, DiskChange)> {
        let mut changes = Vec::new();
        let unseen: Vec<PathBuf> = {
            let keys = self.files.keys();
            keys.filter(|it| !now.files.contains_key(*it)).cloned().collect()
        };
        for (file, print) in now.files {
            let change = match self.files.get(&file) {
                Some(before) if *before == print => continue,
                Some(before) if before.modified == print.modified && before.length == print.length => None,
                Some(_) => Some(DiskChange::Changed),
                // It may have been there when the look before this one ended too early.
                None if self.is_partial && print.touched.is_some_and(|it| it < self.at) => None,
                None => Some(DiskChange::Created),
            };
            if let Some(change) = change {
                if changes.len() == MOST_CHANGES {
                    continue;
                }
                changes.push((file.clone(), change));
            }
            self.files.insert(file, print);
        }
        for file in unseen {
            let is_gone =
                || matches!(file.symlink_metadata(), Err(error) if error.kind() == std::io::ErrorKind::NotFound);
            if changes.len() < MOST_CHANGES && is_gone() {
                self.files.remove(&file);
                changes.push((file, DiskChange::Deleted));
            }
        }
        if changes.len() < MOST_CHANGES {
            self.at = now.at;
        }
        self.is_partial = now.is_partial;
        changes
    }
}

/// Returns true for files that a server may read.
fn is_wanted(file: &Path, settings: &Settings) -> bool {
    let extension = file.extension().map(|it| it.to_string_lossy().to_ascii_lowercase());
    let is_own = |it: &String| Some(it.trim_start_matches('.').to_ascii_lowercase()) == extension;
    language_of(&file.to_string_lossy()) != "text" || settings.lsp.values().any(|it| it.extensions.iter().any(is_own))
}

fn print(about: &Metadata) -> Print {
    Print {
        modified: about.modified().ok(),
        touched: touched(about),
        length: about.len(),
    }
}

#[cfg(unix)]
fn touched(about: &Metadata) -> Option<SystemTime> {
    use std::os::unix::fs::MetadataExt as _;
    let seconds = u64::try_from(about.ctime()).ok()?;
    let nanoseconds = u32::try_from(about.ctime_nsec()).ok()?;
    SystemTime::UNIX_EPOCH.checked_add(Duration::new(seconds, nanoseconds))
}

#[cfg(not(unix))]
fn touched(about: &Metadata) -> Option<SystemTime> {
    about.modified().ok()
}

#[cfg(test)]
mod tests {
    use std::fs;

    use pretty_assertions::assert_eq;

    use super::*;
    use crate::config::LanguageServer;

    #[test]
    fn what_has_come_changed_or_gone_is_told() {
        let top = tempfile::tempdir().expect("a folder");
        let root = top.path().canonicalize().expect("a folder");
        let write = |name: &str, text: &str| fs::write(root.join(name), text).expect("written");
        for name in ["a.py", "b.py", "notes", "own.fake"] {
            write(name, "1");
        }
        let workspace = Workspace::open(&root).expect("a workspace");
        let mut settings = Settings::default();
        let own = LanguageServer {
            extensions: vec![".Fake".to_owned()],
            ..LanguageServer::default()
        };
        settings.lsp.insert("fake".to_owned(), own);
        let look = || Tree::read(&workspace, &settings);
        let mut tree = look();
        assert_eq!(tree.update(look()), []);
        for (name, text) in [("a.py", "12"), ("c.py", "1"), ("notes", "12"), ("own.fake", "12")] {
            write(name, text);
        }
        fs::remove_file(root.join("b.py")).expect("it was there");
        let expected = [
            (root.join("a.py"), DiskChange::Changed),
            (root.join("c.py"), DiskChange::Created),
            (root.join("own.fake"), DiskChange::Changed),
            (root.join("b.py"), DiskChange::Deleted),
        ];
        assert_eq!(tree.update(look()), expected);
        assert_eq!(tree.update(look()), [], "it is told once");
    }

    #[test]
    fn a_look_that_ended_early_loses_nothing() {
        let top = tempfile::tempdir().expect("a folder");
        let root = top.path().canonicalize().expect("a folder");
        let workspace = Workspace::open(&root).expect("a workspace");
        let settings = Settings::default();
        let write = |name: &str| fs::write(root.join(name), "1").expect("written");
        for name in ["a.py", "b.py", "c.py"] {
            write(name);
        }
        // A look that has not come to some files.
        let without = |names: &[&str]| {
            let mut tree = Tree::read(&workspace, &settings);
            tree.files.retain(|file, _| !names.iter().any(|it| file.ends_with(it)));
            tree.is_partial = true;
            tree
        };
        let mut tree = without(&["c.py"]);
        tree.at += Duration::from_secs(1);
        assert_eq!(
            tree.update(Tree::read(&workspace, &settings)),
            [],
            "c.py was there, and is not new"
        );
        fs::remove_file(root.join("a.py")).expect("it was there");
        tree.at = SystemTime::UNIX_EPOCH;
        write("d.py");
        let gone = (root.join("a.py"), DiskChange::Deleted);
        let come = (root.join("d.py"), DiskChange::Created);
        assert_eq!(tree.update(without(&["b.py"])), [come, gone], "b.py is still there");
        fs::remove_file(root.join("b.py")).expect("it was there");
        assert_eq!(
            tree.update(without(&[])),
            [(root.join("b.py"), DiskChange::Deleted)],
            "it is not lost"
        );
    }
}
