//! Git's own folders, the files that stand for them, and what in them decides what git runs.

use std::{
    ffi::OsStr,
    fs,
    path::{Path, PathBuf},
};

use super::protected_names as name;
use crate::os::file;

/// Maximum size of a file that points to git's folder, in bytes.
const LONGEST_POINTER: u64 = 8 << 10;

/// Names of which one, beside `HEAD`, makes git look whether a folder is a repository without a working tree, whatever it is called.
const BARE_SIGNS: [&str; 3] = ["objects", "refs", "commondir"];
/// Parts of such a folder that run or decide what runs, say where git finds those, or make it a repository.
const BARE_FIXED: [&str; 6] = ["HEAD", "hooks", "config", "config.worktree", "info", "commondir"];

/// Parts of git's folder that run or decide what runs, or say where git finds those.
pub const GIT_FIXED: [&str; 5] = ["hooks", "config", "config.worktree", "info", "commondir"];
/// The same in the folder of a linked worktree.
const WORKTREE_FIXED: [&str; 3] = ["config.worktree", "commondir", "gitdir"];
/// Those that are folders.
const FOLDERS: [&str; 2] = ["hooks", "info"];
/// Maximum number of entries of what runs or decides what runs that are searched for links.
const MOST_ENTRIES: usize = 20_000;
/// Maximum number of folders below `modules` that are looked at.
const MOST_MODULES: usize = 20_000;

/// Returns true if git may take a folder with these names for a repository.
pub fn is_bare(has: impl Fn(&str) -> bool) -> bool {
    has("HEAD") && BARE_SIGNS.into_iter().any(has)
}

/// Returns true if a name in a folder that git may take for a repository decides what git runs there.
pub fn is_bare_part(name: &OsStr) -> bool {
    BARE_FIXED.iter().any(|it| name == *it)
}

/// Returns true if a file at a path, below `root`, would be such a part, or make a repository of the folder that it is in.
pub fn is_in_bare(path: &Path, root: &Path) -> bool {
    let ways = path.ancestors().take_while(|it| *it != root && it.starts_with(root));
    let mut ways = ways.filter_map(|it| Some((it.parent()?, it.file_name()?)));
    ways.any(|(folder, name)| {
        let is_part = is_bare_part(name) || BARE_SIGNS.iter().any(|it| name == *it);
        is_part && is_bare(|it| name == it || fs::symlink_metadata(folder.join(it)).is_ok())
    })
}

/// Returns the git folder of the workspace at `root`. `None` if it has none.
pub fn git_folder(root: &Path) -> Option<PathBuf> {
    let git = root.join(".git");
    if git.is_dir() {
        Some(git)
    } else {
        pointer(&git, "gitdir: ")
    }
}

/// The folders that a `.git` stands for beside itself: a file for its own, and the one that it shares with others.
pub fn pointed(git: &Path) -> Vec<PathBuf> {
    if !git.file_name().is_some_and(name::is_git) {
        return Vec::new();
    }
    let common = |own: &Path| pointer(&own.join("commondir"), "");
    if git.is_dir() {
        return common(git).into_iter().collect();
    }
    let own = git.is_file().then(|| pointer(git, "gitdir: ")).flatten();
    own.into_iter()
        .flat_map(|own| common(&own).into_iter().chain([own]))
        .collect()
}

/// Git's own folders behind a `.git`: itself, and those that it stands for.
pub fn git_folders(git: &Path) -> Vec<PathBuf> {
    let own = git.is_dir().then(|| git.to_owned());
    own.into_iter().chain(pointed(git)).collect()
}

/// The links among what runs or decides what runs behind a `.git`, by which it lies elsewhere, and true if not all was searched.
pub fn links(git: &Path) -> (Vec<PathBuf>, bool) {
    let (mut found, mut is_partial) = (Vec::new(), false);
    for folder in git_folders(git) {
        let fixed = Fixed::of(&folder);
        is_partial |= fixed.is_partial;
        let mut open = fixed.paths;
        open.extend(
            ["modules", "worktrees"]
                .map(|it| folder.join(it))
                .into_iter()
                .filter(|it| it.is_symlink()),
        );
        let mut left = MOST_ENTRIES;
        while let Some(path) = open.pop() {
            if path.is_symlink() {
                found.push(path);
                continue;
            }
            let entries = fs::read_dir(&path).into_iter().flatten().flatten().take(left);
            let entries: Vec<_> = entries.collect();
            left -= entries.len();
            is_partial |= left == 0;
            let is_telling = |it: &fs::DirEntry| it.file_type().is_ok_and(|it| it.is_dir() || it.is_symlink());
            open.extend(entries.into_iter().filter(is_telling).map(|it| it.path()));
        }
    }
    (found, is_partial)
}

/// Git's own folders that a command with `git_write` may write, behind a `.git` in the folders of a conversation. A file there may
/// name any folder of the user's: one elsewhere counts only if it was named when the conversation began (`recorded`), or if it
/// names the file in turn, as that of a linked worktree does.
pub fn openable(git: &Path, roots: &[PathBuf], recorded: &[PathBuf]) -> Vec<PathBuf> {
    if fs::symlink_metadata(git).is_ok_and(|it| it.is_dir()) {
        return vec![git.to_owned()];
    }
    let mut folders = pointed(git);
    let is_inside = |it: &PathBuf| roots.iter().any(|root| it.starts_with(root));
    let Some(own) = folders.last().cloned() else {
        return folders;
    };
    let is_elsewhere = !is_inside(&own);
    let is_back = || pointer(&own.join("gitdir"), "").is_some_and(|it| it == git);
    if is_elsewhere && !recorded.contains(&own) && !is_back() {
        return Vec::new();
    }
    // What lies inside was perhaps made by a command, and so was what it says of where the rest is.
    folders.retain(|it| is_elsewhere || is_inside(it));
    // Only what git itself would use.
    folders.retain(|it| it.components().any(|part| name::is_git(part.as_os_str())) && it.join("HEAD").is_file());
    folders
}

/// Parts of a folder of git's that run or decide what runs.
#[derive(Debug, Default)]
pub struct Fixed {
    /// Paths, whether they exist or not, also of submodules and of linked worktrees.
    pub paths: Vec<PathBuf>,
    /// Not all submodules were looked at.
    pub is_partial: bool,
}

impl Fixed {
    pub fn of(folder: &Path) -> Self {
        let mut fixed = Self::default();
        fixed.paths.extend(GIT_FIXED.iter().map(|it| folder.join(it)));
        for worktree in folders_in(&folder.join("worktrees")) {
            fixed.paths.extend(WORKTREE_FIXED.iter().map(|it| worktree.join(it)));
        }
        // The name of a submodule may have slashes, and its repository may have submodules.
        let mut open = folders_in(&folder.join("modules"));
        let mut count = 0;
        while let Some(module) = open.pop() {
            count += 1;
            if count > MOST_MODULES {
                fixed.is_partial = true;
                break;
            }
            let is_repository = ["HEAD", "config", "hooks", "commondir"]
                .iter()
                .any(|it| module.join(it).exists());
            if is_repository {
                fixed.paths.extend(GIT_FIXED.iter().map(|it| module.join(it)));
                open.extend(folders_in(&module.join("modules")));
            } else {
                open.extend(folders_in(&module));
            }
        }
        fixed
    }

    /// Those that are folders, for which empty ones can stand.
    pub fn folders(self) -> impl Iterator<Item = PathBuf> {
        let is_folder = |it: &PathBuf| it.file_name().is_some_and(|it| FOLDERS.iter().any(|name| it == *name));
        self.paths.into_iter().filter(is_folder)
    }
}

/// Returns true for a file of a linked worktree that leads to the git folder that it is in: git makes one for each worktree.
pub fn leads_home(path: &Path) -> bool {
    let home = path.ancestors().nth(3).and_then(|it| it.canonicalize().ok());
    let is_worktrees = path.ancestors().nth(2).is_some_and(|it| it.ends_with("worktrees"));
    let is_home = |it: PathBuf| home.is_some_and(|home| home == it);
    is_worktrees && (path.ends_with("gitdir") || path.ends_with("commondir") && pointer(path, "").is_some_and(is_home))
}

fn folders_in(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let folders = entries.filter(|it| it.file_type().is_ok_and(|it| it.is_dir()));
    folders.map(|it| it.path()).collect()
}

/// The path that stands in a file, relative to the file's folder.
fn pointer(file: &Path, prefix: &str) -> Option<PathBuf> {
    let text = String::from_utf8(file::read_unlinked(file, LONGEST_POINTER).ok()?).ok()?;
    let path = text.strip_prefix(prefix)?.trim_end_matches(['\n', '\r']);
    file.parent()?.join(path).canonicalize().ok()
}
