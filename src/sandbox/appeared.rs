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

use super::name;

/// What `git_write` lets git make.
const OF_GIT: [&str; 2] = [".gitmodules", ".gitattributes"];

/// The top of a workspace before a command.
#[derive(Debug)]
pub(super) struct Before {
    root: PathBuf,
    names: BTreeSet<OsString>,
    git_write: bool,
}

impl Before {
    pub(super) fn look(root: &Path, git_write: bool) -> Self {
        Self {
            root: root.to_owned(),
            names: names(root).collect(),
            git_write,
        }
    }

    /// Puts aside into `folder` what should not be there: the names, and where each is now.
    pub(super) fn put_aside(&self, folder: &Path) -> Vec<(String, PathBuf)> {
        let new = names(&self.root).filter(|it| !self.names.contains(it) && self.is_unwanted(it));
        new.filter_map(|name| {
            let shown = name.to_string_lossy().into_owned();
            match put_aside(&self.root, &name, folder) {
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

fn put_aside(root: &Path, name: &OsStr, folder: &Path) -> io::Result<PathBuf> {
    let from = root.join(name);
    let chance = uuid::Uuid::new_v4().simple().to_string();
    let unused = |folder: &Path| {
        let mut name = OsString::from("aside-");
        name.push(chance.get(..8).unwrap_or_default());
        name.push("-");
        name.push(
            from.file_name()
                .unwrap_or_default()
                .to_string_lossy()
                .trim_start_matches('.'),
        );
        folder.join(name)
    };
    let to = unused(folder);
    match rename(&from, &to) {
        Ok(()) => Ok(to),
        // On another disk: under another name it acts no more than elsewhere.
        Err(error) if error.kind() == io::ErrorKind::CrossesDevices => {
            let to = unused(root);
            rename(&from, &to).map(|()| to)
        }
        Err(error) => Err(error),
    }
}

fn rename(from: &Path, to: &Path) -> io::Result<()> {
    rustix::fs::rename(from, to).map_err(io::Error::from)
}

#[cfg(test)]
mod tests {
    use super::*;
    use pretty_assertions::assert_eq;

    #[test]
    fn what_acts_and_was_not_there_is_put_aside() {
        let folder = tempfile::tempdir().unwrap();
        let (root, aside) = (folder.path().join("work"), folder.path().join("aside"));
        for path in [&root, &aside] {
            fs::create_dir(path).unwrap();
        }
        fs::write(root.join(".envrc"), "mine").unwrap();
        let taken = |git_write: bool, new: &[&str]| {
            let before = Before::look(&root, git_write);
            for name in new {
                fs::write(root.join(name), "evil").unwrap();
            }
            let taken = before.put_aside(&aside);
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
}
