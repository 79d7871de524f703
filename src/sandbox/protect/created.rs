//! Protected files that a command has made where there were none.
//!
//! Nothing can be mounted over a file that does not exist, and an empty file in its place would be seen by git. So it is
//! looked what has come to the top of the workspace once the command has ended: what runs, or decides what runs, is put
//! aside and said. Nothing is lost, and nothing of it acts.

use std::{
    collections::BTreeSet,
    ffi::{OsStr, OsString},
    fs, io,
    path::{Path, PathBuf},
};

use super::quarantine::Quarantine;
use crate::sandbox::{files::git_index as tracked, policy::protected_names as name};

/// Files that the permission `git_write` lets git create.
const OF_GIT: [&str; 2] = [".gitmodules", ".gitattributes"];

/// The top of a workspace before a command.
#[derive(Debug)]
pub struct Before {
    root: PathBuf,
    names: BTreeSet<OsString>,
    git_write: bool,
}

impl Before {
    pub fn look(root: &Path, git_write: bool) -> Self {
        Self {
            root: root.to_owned(),
            names: names(root).collect(),
            git_write,
        }
    }

    /// Puts aside what should not be there: the names, and where each is now. What our own tools wrote stays, because the
    /// user said so; where nobody else could write git's folder, what git wrote stays too.
    pub fn put_aside(&self, aside: &Quarantine, is_git_held: bool) -> Vec<(String, PathBuf)> {
        let unwanted = self.unwanted_names(aside, is_git_held);
        unwanted.filter_map(|name| {
            let shown = name.to_string_lossy().into_owned();
            match aside.put(&self.root, name.as_ref()) {
                Ok(path) => Some((shown, path)),
                // It was there for a moment only.
                Err(error) if error.kind() == io::ErrorKind::NotFound => None,
                Err(error) => {
                    tracing::error!(%error, name = %shown, "a protected file that a command made cannot be put aside");
                    Some((shown, self.root.join(name)))
                }
            }
        })
        .collect()
    }

    /// The names of what should not be there.
    pub fn unwanted(&self, aside: &Quarantine, is_git_held: bool) -> impl Iterator<Item = String> {
        self.unwanted_names(aside, is_git_held)
            .map(|it| it.to_string_lossy().into_owned())
    }

    fn unwanted_names(&self, aside: &Quarantine, is_git_held: bool) -> impl Iterator<Item = OsString> {
        let is_users = move |name: &OsStr| {
            let is_gits = || is_git_held && !self.git_write && tracked::is_gits(&self.root, name.as_ref());
            aside.is_known(&self.root.join(name)) || is_gits()
        };
        self.arrived().filter(move |it| self.is_unwanted(it) && !is_users(it))
    }

    /// The user let the command make what it made: another one that ends later leaves it where it is.
    pub fn vouch(&self, aside: &Quarantine) {
        let is_protected = |it: &OsString| name::is_protected(Path::new(it));
        for name in self.arrived().filter(is_protected) {
            aside.vouch(&self.root.join(name));
        }
    }

    fn arrived(&self) -> impl Iterator<Item = OsString> {
        names(&self.root).filter(|it| !self.names.contains(it))
    }

    fn is_unwanted(&self, name: &OsStr) -> bool {
        let folded = name::folded(name);
        // Variables of a project are set up by commands every day, and nothing of ours reads them.
        let is_setup = folded.starts_with(".env") && folded != ".envrc";
        let is_gits = self.git_write && OF_GIT.contains(&folded.as_str());
        name::is_protected(Path::new(name)) && !is_setup && !is_gits
    }
}

fn names(root: &Path) -> impl Iterator<Item = OsString> {
    fs::read_dir(root)
        .into_iter()
        .flatten()
        .flatten()
        .map(|it| it.file_name())
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
            let before = Before::look(&root, git_write);
            for name in new {
                fs::write(root.join(name), "evil").unwrap();
            }
            let taken = before.put_aside(&aside, true);
            for (name, path) in &taken {
                assert_eq!(fs::read(path).unwrap(), b"evil", "{name}");
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
        let before = Before::look(&root, false);
        // The user's own git, a tool that asked, another command that was allowed to, and the command itself.
        git(&["checkout", "--", "."]);
        fs::write(root.join(".mcp.json"), "asked for").unwrap();
        aside.vouch(&root.join(".mcp.json"));
        let allowed = Before::look(&root, false);
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
