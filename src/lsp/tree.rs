//! The files of a workspace by time and length: servers are told of what others have changed.

use std::{
    collections::BTreeMap,
    path::PathBuf,
    time::{Duration, SystemTime},
};

use crate::{
    sandbox::{Bounds, Workspace},
    text::language::language_of,
};

/// Entries that are looked at.
const MOST_ENTRIES: usize = 20_000;
/// Time of the look.
const PATIENCE: Duration = Duration::from_millis(200);
/// Changes that servers are told at once.
const MOST_CHANGES: usize = 500;

/// The change of a file, in the protocol's numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DiskChange {
    Created = 1,
    Changed = 2,
    Deleted = 3,
}

/// The files of a workspace that have a language, as searches see them.
#[derive(Debug, Default)]
pub struct Tree {
    files: BTreeMap<PathBuf, (Option<SystemTime>, u64)>,
    /// There are more than were looked at.
    is_partial: bool,
}

impl Tree {
    /// Looks at the workspace for a fifth of a second at most.
    pub fn read(workspace: &Workspace) -> Self {
        let bounds = Bounds::within(PATIENCE).entries(MOST_ENTRIES);
        let Ok(walk) = workspace.locate("").and_then(|it| workspace.walker(&it, bounds)) else {
            return Self::default();
        };
        let files = walk.entries().flatten().filter_map(|it| {
            let is_file = it.file_type().is_some_and(|it| it.is_file());
            let has_language = language_of(&it.path().to_string_lossy()) != "text";
            let about = it.metadata().ok().filter(|_| is_file && has_language)?;
            Some((it.into_path(), (about.modified().ok(), about.len())))
        });
        Self {
            files: files.collect(),
            is_partial: walk.is_cut(),
        }
    }

    /// The files that have come, changed or gone since; none that may only have been missed.
    pub fn changes(&self, now: &Self) -> Vec<(PathBuf, DiskChange)> {
        let is_partial = self.is_partial || now.is_partial;
        let come = now.files.iter().filter_map(|(file, about)| match self.files.get(file) {
            None => (!is_partial).then(|| (file.clone(), DiskChange::Created)),
            Some(before) => (before != about).then(|| (file.clone(), DiskChange::Changed)),
        });
        let gone = self
            .files
            .keys()
            .filter(|it| !is_partial && !now.files.contains_key(*it));
        let gone = gone.map(|it| (it.clone(), DiskChange::Deleted));
        come.chain(gone).take(MOST_CHANGES).collect()
    }
}

#[cfg(test)]
mod tests {
    use pretty_assertions::assert_eq;

    use super::*;

    #[test]
    fn what_has_come_changed_or_gone_is_told() {
        let top = tempfile::tempdir().expect("a folder");
        let root = top.path().canonicalize().expect("a folder");
        let write = |name: &str, text: &str| std::fs::write(root.join(name), text).expect("written");
        write("a.py", "1");
        write("b.py", "1");
        write("notes", "1");
        let workspace = Workspace::open(&root).expect("a workspace");
        let before = Tree::read(&workspace);
        assert_eq!(before.changes(&Tree::read(&workspace)), []);
        write("a.py", "12");
        write("c.py", "1");
        write("notes", "12");
        std::fs::remove_file(root.join("b.py")).expect("it was there");
        let now = Tree::read(&workspace);
        let expected = [
            (root.join("a.py"), DiskChange::Changed),
            (root.join("c.py"), DiskChange::Created),
            (root.join("b.py"), DiskChange::Deleted),
        ];
        assert_eq!(before.changes(&now), expected);
        let partial = Tree {
            is_partial: true,
            ..now
        };
        assert_eq!(
            before.changes(&partial),
            expected[..1],
            "what was not looked at is not gone"
        );
    }
}
