//! Empty folders that stand where something protected could be made while a command runs.
//!
//! Nothing can be mounted over a name that does not exist, so it exists meanwhile. Git and editors take no notice of an empty
//! folder. Commands that run at the same time share them; the last one takes them away.

use std::{
    collections::BTreeMap,
    fs, io,
    path::{Path, PathBuf},
    sync::{Mutex, PoisonError},
};

/// How many commands of this program hold each.
static HELD: Mutex<BTreeMap<PathBuf, usize>> = Mutex::new(BTreeMap::new());

/// The places that one command holds.
#[derive(Debug, Default)]
pub(super) struct Places(Vec<PathBuf>);

impl Places {
    /// Makes those of `names` that do not exist. What cannot be made is left out.
    pub(super) fn make(names: Vec<PathBuf>) -> Self {
        let mut held = HELD.lock().unwrap_or_else(PoisonError::into_inner);
        let mut ours = Vec::new();
        for path in names {
            // One that another command holds must stay as long as we do.
            if !held.contains_key(&path) && fs::create_dir(&path).is_err() {
                continue;
            }
            *held.entry(path.clone()).or_default() += 1;
            ours.push(path);
        }
        Self(ours)
    }

    pub(super) fn paths(&self) -> impl Iterator<Item = &Path> {
        self.0.iter().map(PathBuf::as_path)
    }

    /// The command has ended.
    pub(super) fn leave(&mut self) {
        let mut held = HELD.lock().unwrap_or_else(PoisonError::into_inner);
        for path in self.0.drain(..) {
            let Some(count) = held.get_mut(&path) else { continue };
            *count = count.saturating_sub(1);
            if *count > 0 {
                continue;
            }
            held.remove(&path);
            match fs::remove_dir(&path) {
                Ok(()) => {}
                // The user has put something in it, or taken it away.
                Err(error) if matches!(error.kind(), io::ErrorKind::DirectoryNotEmpty | io::ErrorKind::NotFound) => {}
                Err(error) => tracing::warn!(%error, path = %path.display(), "an empty folder is left behind"),
            }
        }
    }
}

impl Drop for Places {
    fn drop(&mut self) {
        self.leave();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_shared_and_the_last_takes_them_away() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        fs::create_dir(path(".vscode")).unwrap();
        fs::write(path(".idea"), "").unwrap();
        let names = || [".git", ".vscode", ".idea", "no/such/.git"].map(path).to_vec();
        let mut first = Places::make(names());
        let mut second = Places::make(names());
        for places in [&first, &second] {
            assert_eq!(places.paths().collect::<Vec<_>>(), [path(".git")]);
        }
        first.leave();
        assert!(path(".git").is_dir());
        second.leave();
        assert!(!path(".git").exists() && path(".vscode").is_dir() && path(".idea").is_file());
        // What the user has filled meanwhile stays.
        let third = Places::make(names());
        fs::write(path(".git/HEAD"), "").unwrap();
        drop(third);
        assert!(path(".git/HEAD").is_file());
    }
}
