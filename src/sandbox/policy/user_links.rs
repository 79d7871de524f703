//! Links of the user's by which a file elsewhere is a setting of theirs, as where the home's files are kept in a repository.

use std::{
    fs,
    path::{Path, PathBuf},
};

use super::protected_names as name;
use crate::text::WordList;

/// Folders with parts that act, in this program's own folders and in those of [`FOLDERS`].
const PARTS: WordList = WordList("agents commands hooks modes output-styles plugins rules skills themes");
/// Folders in the home that this program takes parts from.
const FOLDERS: WordList = WordList(".agents .claude .cursor .sheaf");
/// Depth in a folder of parts: a skill is a folder, too.
const MOST_DEPTH: usize = 2;
/// Entries of all these folders that are looked at.
const MOST_ENTRIES: usize = 20_000;

/// The links in this program's folders `own` and in the home by which files are settings of the user's, without those where these
/// lead; and true if not all were found. Wherever they lead: most leave the conversation's folders alone.
pub fn user_links(own: &[PathBuf], home: Option<&Path>) -> (Vec<PathBuf>, bool) {
    let mut search = Search::default();
    let of_home = home.into_iter().flat_map(|home| FOLDERS.iter().map(|it| home.join(it)));
    for folder in own.iter().cloned().chain(of_home) {
        search.take(folder.clone());
        search.list(&folder, 0);
        for part in PARTS.iter().map(|it| folder.join(it)) {
            search.list(&part, MOST_DEPTH);
        }
    }
    for file in home
        .into_iter()
        .flat_map(|home| name::plain_files().map(|it| home.join(it)))
    {
        search.take(file);
    }
    search.found.sort();
    search.found.dedup();
    (search.found, search.is_cut)
}

#[derive(Default)]
struct Search {
    found: Vec<PathBuf>,
    entries: usize,
    is_cut: bool,
}

impl Search {
    /// Takes a path if it is a link.
    fn take(&mut self, path: PathBuf) {
        if fs::symlink_metadata(&path).is_ok_and(|it| it.is_symlink()) {
            self.found.push(path);
        }
    }

    /// Takes the links in a folder and, so many levels down, in its folders.
    fn list(&mut self, folder: &Path, depth: usize) {
        // A link in the way was taken where it is.
        if !fs::symlink_metadata(folder).is_ok_and(|it| it.is_dir()) {
            return;
        }
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            self.entries += 1;
            if self.entries > MOST_ENTRIES {
                self.is_cut = true;
                return;
            }
            match entry.file_type() {
                Ok(kind) if kind.is_symlink() => self.found.push(entry.path()),
                Ok(kind) if kind.is_dir() && depth > 0 => self.list(&entry.path(), depth - 1),
                Ok(_) | Err(_) => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use pretty_assertions::assert_eq;

    use super::*;

    #[test]
    fn links_to_settings_are_found_at_every_depth_that_acts() {
        let folder = tempfile::tempdir().unwrap();
        let (home, config) = (folder.path(), folder.path().join("config"));
        let links = [
            ".bashrc",
            ".claude.json",
            ".claude/settings.json",
            ".claude/skills/pdf/SKILL.md",
            ".cursor",
            "config/config.toml",
            "config/commands/git/save.md",
            "config/rules",
            "config/themes/own.toml",
        ];
        let others = [
            "notes",
            ".claude/projects/deep",
            "config/sessions/one",
            "config/skills/a/b/c/d",
        ];
        for link in links.iter().chain(&others) {
            let path = home.join(link);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            symlink("/nowhere", path).unwrap();
        }
        fs::write(home.join(".zshrc"), "").unwrap();
        let (found, is_cut) = user_links(&[config], Some(home));
        let mut expected: Vec<_> = links.iter().map(|it| home.join(it)).collect();
        expected.sort();
        assert_eq!((found, is_cut), (expected, false));
        assert_eq!(user_links(&[], None), (Vec::new(), false));
    }
}
