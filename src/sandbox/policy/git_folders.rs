//! Git's own folders, and the files that stand for them.

use std::path::{Path, PathBuf};

use super::protected_names as name;
use crate::os::file;

/// Maximum size of a file that points to git's folder, in bytes.
const LONGEST_POINTER: u64 = 8 << 10;

/// Returns the git folder of the workspace at `root`. `None` if it has none.
pub fn git_folder(root: &Path) -> Option<PathBuf> {
    let git = root.join(".git");
    if git.is_dir() {
        Some(git)
    } else {
        pointer(&git, "gitdir: ")
    }
}

/// The folders that a `.git` which is a file stands for: its own, and the one that it shares with others.
pub fn pointed(git: &Path) -> Vec<PathBuf> {
    let is_file = git.file_name().is_some_and(name::is_git) && git.is_file();
    let Some(own) = is_file.then(|| pointer(git, "gitdir: ")).flatten() else {
        return Vec::new();
    };
    let common = pointer(&own.join("commondir"), "");
    common.into_iter().chain([own]).collect()
}

/// Git's own folders behind a `.git`: itself, or those that it stands for.
pub fn git_folders(git: &Path) -> Vec<PathBuf> {
    if git.is_dir() {
        vec![git.to_owned()]
    } else {
        pointed(git)
    }
}

/// The path that stands in a file, relative to the file's folder.
fn pointer(file: &Path, prefix: &str) -> Option<PathBuf> {
    let text = String::from_utf8(file::read_unlinked(file, LONGEST_POINTER).ok()?).ok()?;
    let path = text.strip_prefix(prefix)?.trim_end_matches(['\n', '\r']);
    file.parent()?.join(path).canonicalize().ok()
}
