//! Protected files that a command has made where there were none.
//!
//! Nothing can be mounted over a file that does not exist, and an empty file in its place would be seen by git. So it is
//! looked what has come to the folders of the conversation once the command has ended: what runs, or decides what runs, is put
//! aside and said. Nothing is lost, and nothing of it acts.

use std::{
    collections::BTreeSet,
    fs, io,
    path::{Path, PathBuf},
};

use super::quarantine::Quarantine;
use crate::sandbox::{
    files::git_index as tracked,
    policy::{Ground, Survey, protected_names as name},
};

/// Files that the permission `git_write` lets git create.
const OF_GIT: [&str; 3] = [".gitmodules", ".gitattributes", ".git"];
/// Maximum number of files of a folder that are looked up in git's index.
const MOST_TRACKED: usize = 200;

/// Protected paths in the folders of a conversation before a command.
#[derive(Debug)]
pub struct Before {
    ground: Ground,
    names: BTreeSet<PathBuf>,
    git_write: bool,
    /// Parts of git's folders that run or decide what runs, and were not there.
    missing: Vec<PathBuf>,
    /// Git's folders outside of the conversation's.
    outside: Vec<PathBuf>,
}

impl Before {
    pub fn look(ground: &Ground, seen: &[Survey], git_write: bool) -> Self {
        let (mut missing, outside) = if git_write {
            ground.fixed_by_git(seen)
        } else {
            Default::default()
        };
        missing.retain(|it| fs::symlink_metadata(it).is_err());
        Self {
            ground: ground.clone(),
            names: ground.protected(seen),
            git_write,
            missing,
            outside,
        }
    }

    /// Puts aside what should not be there: the names, and where each is now. What our own tools wrote stays, because the
    /// user said so; where nobody else could write git's folder, what git wrote stays too.
    pub fn put_aside(&self, aside: &Quarantine, is_git_held: bool) -> Vec<(String, PathBuf)> {
        let unwanted = self.unwanted_paths(aside, is_git_held).into_iter();
        unwanted
            .filter_map(|path| {
                let shown = self.shown(&path);
                let (root, inner) = self.place(&path)?;
                match aside.put(root, inner) {
                    Ok(there) => Some((shown, there)),
                    // It was there for a moment only.
                    Err(error) if error.kind() == io::ErrorKind::NotFound => None,
                    Err(error) => {
                        tracing::error!(%error, name = %shown, "a protected file that a command made cannot be put aside");
                        Some((shown, path))
                    }
                }
            })
            .collect()
    }

    /// The names of what should not be there.
    pub fn unwanted(&self, aside: &Quarantine, is_git_held: bool) -> impl Iterator<Item = String> {
        let unwanted = self.unwanted_paths(aside, is_git_held).into_iter();
        unwanted.map(|it| self.shown(&it))
    }

    fn unwanted_paths(&self, aside: &Quarantine, is_git_held: bool) -> Vec<PathBuf> {
        let is_users = |path: &Path| {
            let is_gits = || {
                let (root, inner) = self.place(path)?;
                Some(is_git_held && !self.git_write && is_gits(root, inner))
            };
            aside.is_known(path) || is_gits().unwrap_or(false)
        };
        let mut arrived = self.arrived();
        arrived.retain(|it| self.is_unwanted(it) && !is_users(it));
        arrived
    }

    /// The user let the command make what it made: another one that ends later leaves it where it is.
    pub fn vouch(&self, aside: &Quarantine) {
        for path in self.arrived() {
            aside.vouch(&path);
        }
    }

    fn arrived(&self) -> Vec<PathBuf> {
        let mut arrived: Vec<_> = self
            .ground
            .protected(&self.ground.look())
            .difference(&self.names)
            .cloned()
            .collect();
        let in_git = self.missing.iter().filter(|it| fs::symlink_metadata(it).is_ok());
        arrived.extend(in_git.cloned());
        arrived
    }

    fn is_unwanted(&self, path: &Path) -> bool {
        let folded = path.file_name().map(name::folded).unwrap_or_default();
        // Variables of a project are set up by commands every day, and nothing of ours reads them.
        let is_setup = folded.starts_with(".env") && folded != ".envrc";
        let is_gits = self.git_write && OF_GIT.contains(&folded.as_str());
        !is_setup && !is_gits
    }

    /// The folder of the conversation that a path lies in, and the way from there.
    fn place<'a>(&'a self, path: &'a Path) -> Option<(&'a Path, &'a Path)> {
        let roots = self.ground.roots().chain(&self.outside);
        let root = roots.filter(|it| path.starts_with(it));
        let root = root.max_by_key(|it| it.as_os_str().len())?;
        Some((root, path.strip_prefix(root).ok()?))
    }

    fn shown(&self, path: &Path) -> String {
        let path = path.strip_prefix(&self.ground.root).unwrap_or(path);
        path.to_string_lossy().into_owned()
    }
}

/// Returns true if git wrote a file, or every file of a folder.
fn is_gits(root: &Path, inner: &Path) -> bool {
    let mut open = vec![inner.to_owned()];
    let mut files = 0;
    while let Some(inner) = open.pop() {
        let path = root.join(&inner);
        if fs::symlink_metadata(&path).is_ok_and(|it| it.is_dir()) {
            let Ok(entries) = fs::read_dir(&path) else { return false };
            open.extend(entries.flatten().map(|it| inner.join(it.file_name())));
        } else {
            files += 1;
            if files > MOST_TRACKED || !tracked::is_gits(root, &inner) {
                return false;
            }
        }
    }
    files > 0
}

#[cfg(test)]
mod tests {
    use super::*;
    use pretty_assertions::assert_eq;

    #[test]
    fn what_acts_and_was_not_there_is_put_aside() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().join("work");
        fs::create_dir(&root).unwrap();
        let aside = Quarantine::at(Some(folder.path().join("aside")));
        fs::write(root.join(".envrc"), "mine").unwrap();
        let taken = |git_write: bool, new: &[&str]| {
            let ground = Ground::bare(&root);
            let before = Before::look(&ground, &ground.look(), git_write);
            for name in new {
                fs::create_dir_all(root.join(name).parent().unwrap()).unwrap();
                fs::write(root.join(name), "evil").unwrap();
            }
            let taken = before.put_aside(&aside, true);
            for (name, path) in &taken {
                assert!(path.is_dir() || fs::read(path).unwrap() == b"evil", "{name}");
                assert!(!root.join(name).exists(), "{name}");
            }
            for name in new {
                fs::remove_file(root.join(name)).ok();
            }
            let mut names: Vec<_> = taken.into_iter().map(|it| it.0).collect();
            names.sort();
            names.join(" ")
        };
        assert_eq!(taken(false, &["a.rs", "Makefile", ".env", ".env.local"]), "");
        fs::create_dir_all(root.join("a/b/.github")).unwrap();
        assert_eq!(
            taken(false, &["a/b/.envrc", "a/.github/workflows/x.yml", "a/x.yml"]),
            "a/.github/workflows a/b/.envrc"
        );
        assert_eq!(
            taken(false, &[".MCP.json", "x.code-workspace", "b"]),
            ".MCP.json x.code-workspace"
        );
        assert_eq!(taken(false, &[".gitattributes", ".bashrc"]), ".bashrc .gitattributes");
        assert_eq!(taken(true, &[".gitattributes", ".bashrc"]), ".bashrc");
        assert_eq!(fs::read_to_string(root.join(".envrc")).unwrap(), "mine");
    }

    #[test]
    fn what_the_user_wanted_meanwhile_stays() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().join("work");
        fs::create_dir(&root).unwrap();
        let git = |words: &[&str]| {
            let done = std::process::Command::new("git")
                .args(["-c", "user.name=x", "-c", "user.email=x"])
                .args(words)
                .current_dir(&root)
                .output();
            assert!(done.unwrap().status.success(), "{words:?}");
        };
        git(&["init", "-q"]);
        fs::write(root.join(".gitattributes"), "* text\n").unwrap();
        git(&["add", "."]);
        git(&["commit", "-qm", "one"]);
        fs::remove_file(root.join(".gitattributes")).unwrap();
        let aside = Quarantine::at(Some(folder.path().join("aside")));
        let ground = Ground::bare(&root);
        let before = Before::look(&ground, &ground.look(), false);
        // The user's own git, a tool that asked, another command that was allowed to, and the command itself.
        git(&["checkout", "--", "."]);
        fs::write(root.join(".mcp.json"), "asked for").unwrap();
        aside.vouch(&root.join(".mcp.json"));
        let ground = Ground::bare(&root);
        let allowed = Before::look(&ground, &ground.look(), false);
        fs::write(root.join("x.code-workspace"), "allowed").unwrap();
        allowed.vouch(&aside);
        fs::write(root.join(".envrc"), "evil").unwrap();
        let taken: Vec<_> = before.put_aside(&aside, true).into_iter().map(|it| it.0).collect();
        assert_eq!(taken, [".envrc"]);
        for name in [".gitattributes", ".mcp.json", "x.code-workspace"] {
            assert!(root.join(name).exists(), "{name}");
        }
        // Where somebody else could have told git what to remember, it is not believed.
        let taken: Vec<_> = before.put_aside(&aside, false).into_iter().map(|it| it.0).collect();
        assert_eq!(taken, [".gitattributes"]);
    }
}
