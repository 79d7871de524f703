//! The person's repository: what is in it, and commits that a key of theirs started.
//!
//! Looking runs nothing that the repository configures: no hook, no filter, no pager. [`commit`] is the one exception: the
//! person has read on the card which hooks, filters and signing run, and has pressed Enter. No model can reach it.

pub mod accepted;
pub mod changes;
pub mod commit;
pub mod note;
pub mod remote;
mod stage;

use std::{
    path::{Path, PathBuf},
    time::Duration,
};

use self::stage::Blob;
use crate::{
    os::process::{self, Command, Output},
    protocol::sentence,
    text::WordList,
};

/// A slower repository says nothing.
const PATIENCE: Duration = Duration::from_secs(10);
/// Bytes of git's output that are read.
const OUTPUT_BYTES: usize = 256 << 10;
/// Larger files are not compared.
const BLOB_BYTES: usize = 50 << 20;

/// Options that keep git from running what a repository configures.
const SAFE: WordList = WordList(
    "--no-optional-locks --no-pager --literal-pathspecs -c core.fsmonitor= -c core.hooksPath=/dev/null -c core.pager=cat -c
     diff.external= -c safe.bareRepository=explicit -c protocol.allow=never -c core.quotePath=false",
);

/// The user's own `git`, which runs nothing that the repository configures, except filters: see [`filters`].
pub fn quiet(root: &Path) -> Command {
    Command::new("git")
        .arg("-C")
        .arg(root)
        .args(SAFE.iter())
        .timeout(PATIENCE)
        .limit_bytes(OUTPUT_BYTES)
}

/// Options that switch off the filters that the repository configures: `git status` runs them on files that look
/// changed. The user's own (LFS) stay. `None`: git does not work here, or a filter has a name that cannot be switched
/// off.
pub async fn filters(root: &Path) -> Option<Vec<String>> {
    let mut off = Vec::new();
    for key in configured_filters(root).await? {
        let (filter, member) = key.rsplit_once('.')?;
        if filter.contains(['=', '\n']) {
            return None;
        }
        match member {
            "clean" | "smudge" | "process" => off.push(format!("{key}=")),
            "required" => off.push(format!("{key}=false")),
            _ => {}
        }
    }
    Some(off)
}

/// The settings of filters that the repository configures, such as `filter.tidy.clean`; `None`: git does not work here.
async fn configured_filters(root: &Path) -> Option<Vec<String>> {
    let listed = quiet(root)
        .args([
            "config",
            "--show-scope",
            "--name-only",
            "-z",
            "--get-regexp",
            r"^filter\..*",
        ])
        .run()
        .await
        .ok()?;
    // 1: there are none.
    if !matches!(listed.status.code(), Some(0 | 1)) || listed.truncated {
        return None;
    }
    let text = String::from_utf8(listed.stdout).ok()?;
    let mut words = text.split_terminator('\0');
    let mut keys = Vec::new();
    while let Some(scope) = words.next() {
        let key = words.next()?;
        if !matches!(scope, "system" | "global" | "command") {
            keys.push(key.to_owned());
        }
    }
    Some(keys)
}

/// Runs work on a thread that may block: comparing files takes long, and the screen shares its thread.
pub async fn on_thread<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T, Error> {
    let worked = tokio::task::spawn_blocking(work).await;
    worked.map_err(|it| Error::Failed(it.to_string()))
}

/// Why a repository cannot be used; each is a sentence for the user.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("{}", sentence::NO_GIT.text())]
    NoGit,
    #[error("{}", sentence::NO_REPOSITORY.text())]
    NoRepository,
    #[error("{0}")]
    Failed(String),
}

impl From<process::Error> for Error {
    fn from(error: process::Error) -> Self {
        match error {
            process::Error::NotFound { .. } => Self::NoGit,
            process::Error::Start { .. }
            | process::Error::TimedOut { .. }
            | process::Error::Stopped { .. }
            | process::Error::Failed { .. }
            | process::Error::Wait { .. } => Self::Failed(error.to_string()),
        }
    }
}

/// A repository with files.
#[derive(Clone, Debug)]
pub struct Repository {
    /// The top of its files.
    pub top: PathBuf,
    /// The folder that was asked about, from the top: `""` or `src/`.
    pub prefix: String,
    /// Git's own folder of this worktree.
    folder: PathBuf,
    /// The last commit; `None`: there is none.
    pub head: Option<String>,
    /// The branch; `None` for a detached head.
    pub branch: Option<String>,
}

/// A file as git lists it: mode, object and path from the top.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Listed {
    mode: String,
    object: String,
    path: String,
}

impl Listed {
    /// Reads entries that end with a NUL: words, the object as the one at `object_at`, a tab and the path.
    fn read(entries: &[u8], object_at: usize) -> Vec<Self> {
        let entries = String::from_utf8_lossy(entries);
        let listed = entries.split_terminator('\0').filter_map(|it| {
            let (words, path) = it.split_once('\t')?;
            let mut words = words.split(' ');
            Some(Self {
                mode: words.next()?.to_owned(),
                object: words.nth(object_at - 1)?.to_owned(),
                path: path.to_owned(),
            })
        });
        listed.collect()
    }
}

impl Repository {
    /// Finds the repository around a folder.
    pub async fn open(folder: &Path) -> Result<Self, Error> {
        let found = quiet(folder)
            .args(["rev-parse", "--show-toplevel", "--absolute-git-dir", "--show-prefix"])
            .run()
            .await?;
        if !found.status.success() {
            return Err(Error::NoRepository);
        }
        let text = String::from_utf8_lossy(&found.stdout);
        let mut lines = text.split('\n');
        let top = PathBuf::from(lines.next().unwrap_or_default());
        let git = PathBuf::from(lines.next().unwrap_or_default());
        let prefix = lines.next().unwrap_or_default().to_owned();
        let head = head(&top).await?;
        let branch = line(quiet(&top).args(["symbolic-ref", "--quiet", "--short", "HEAD"])).await?;
        Ok(Self {
            top,
            prefix,
            folder: git,
            head,
            branch,
        })
    }

    /// The last commit now, which may be another one than [`Self::head`].
    async fn head_now(&self) -> Result<Option<String>, Error> {
        head(&self.top).await
    }

    fn quiet(&self) -> Command {
        quiet(&self.top)
    }

    /// Files of git's own folder, some of which worktrees share: `MERGE_HEAD`, `hooks`.
    async fn paths(&self, names: &[&str]) -> Result<Vec<PathBuf>, Error> {
        let arguments = names.iter().flat_map(|it| ["--git-path", it]);
        let text = self.plain().arg("rev-parse").args(arguments).output().await?;
        let text = String::from_utf8_lossy(&text);
        Ok(text.lines().map(|it| self.top.join(it)).collect())
    }

    /// The user's own git, as it is: it runs hooks.
    fn plain(&self) -> Command {
        Command::new("git")
            .arg("-C")
            .arg(&self.top)
            .timeout(PATIENCE)
            .limit_bytes(OUTPUT_BYTES)
    }

    /// The files of the last commit among `paths`, and the folders and submodules.
    async fn in_commit(&self, commit: Option<&str>, paths: &[String]) -> Result<Vec<Listed>, Error> {
        let (Some(commit), false) = (commit, paths.is_empty()) else {
            return Ok(Vec::new());
        };
        let tree = self
            .quiet()
            .args(["ls-tree", "-z", "--full-tree", commit, "--"])
            .args(paths);
        let text = tree.output().await?;
        // Mode, type, object and path.
        Ok(Listed::read(&text, 2))
    }

    /// The files of the index among `paths`.
    async fn in_index(&self, paths: &[String]) -> Result<Vec<Listed>, Error> {
        if paths.is_empty() {
            return Ok(Vec::new());
        }
        let text = self
            .quiet()
            .args(["ls-files", "--stage", "-z", "--"])
            .args(paths)
            .output()
            .await?;
        // Mode, object, stage and path.
        let mut listed = Listed::read(&text, 1);
        // What stands below a name that is a folder here is not that file.
        listed.retain(|it| paths.contains(&it.path));
        Ok(listed)
    }

    /// Returns true if the branch contains a commit.
    pub async fn contains(&self, commit: &str) -> bool {
        let (Some(head), false) = (&self.head, commit.starts_with('-')) else {
            return false;
        };
        let asked = self.quiet().args(["merge-base", "--is-ancestor", commit, head]);
        asked.run().await.is_ok_and(|it| it.status.success())
    }

    /// The content of a listed file; `None` for one that is too large.
    async fn blob(&self, listed: &Listed) -> Result<Option<Blob>, Error> {
        if !matches!(listed.mode.as_str(), "100644" | "100755") {
            // A link or a submodule: its content is not needed.
            return Ok(Some(Blob {
                mode: listed.mode.clone(),
                bytes: b" ".to_vec(),
            }));
        }
        let Output {
            status,
            stdout,
            stderr,
            truncated,
        } = self
            .quiet()
            .args(["cat-file", "blob", &listed.object])
            .limit_bytes(BLOB_BYTES)
            .run()
            .await?;
        if !status.success() {
            return Err(Error::Failed(String::from_utf8_lossy(&stderr).trim().to_owned()));
        }
        Ok((!truncated).then(|| Blob {
            mode: listed.mode.clone(),
            bytes: stdout,
        }))
    }
}

async fn head(top: &Path) -> Result<Option<String>, Error> {
    line(quiet(top).args(["rev-parse", "--verify", "--quiet", "HEAD^{commit}"])).await
}

/// The first line that a command prints; `None` if it fails or prints nothing.
async fn line(command: Command) -> Result<Option<String>, Error> {
    let Output { status, stdout, .. } = command.run().await?;
    let text = String::from_utf8_lossy(&stdout);
    let line = text.lines().next().unwrap_or_default().to_owned();
    Ok(Some(line).filter(|it| status.success() && !it.is_empty()))
}

#[cfg(test)]
mod tests;
