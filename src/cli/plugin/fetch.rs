//! Brings the files of a plugin here, within bounds and without running anything of it.
//!
//! git fetches without hooks, submodules and filters; its files are listed before any is written. Links are refused: they would be
//! the way out of the plugin's folder.

use std::{
    fs, io,
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
    time::Duration,
};

use anyhow::{Context as _, Result, bail};

use crate::{
    config::Fingerprint,
    extensions::PluginSource,
    os::{
        file::{self, Access},
        process::Command,
    },
    text::WordList,
};

/// Maximum number of files of a plugin.
const MOST_FILES: usize = 5000;
/// Maximum size of all files of a plugin, in bytes.
const MOST_BYTES: u64 = 64 << 20;
/// Maximum depth of its folders.
const DEPTH: usize = 16;
/// Maximum time of a fetch.
const PATIENCE: Duration = Duration::from_mins(3);
/// Options that keep git from running anything, and from what does not have to be fetched.
const SAFE: WordList = WordList(
    "--no-pager --literal-pathspecs -c core.hooksPath=/dev/null -c core.fsmonitor= -c core.bare=false -c init.templateDir=
     -c protocol.allow=never -c protocol.https.allow=always -c protocol.ssh.allow=always -c protocol.file.allow=always
     -c fetch.recurseSubmodules=false -c submodule.recurse=false -c fetch.fsckObjects=true -c gc.auto=0 -c maintenance.auto=false",
);
/// git, with a bound for each file that it writes.
const BOUNDED: &str = "ulimit -f 262144 && exec git";
/// The name under which the commit is fetched.
const FETCHED: &str = "refs/sheaf/plugin";

/// The files of a plugin that nobody has said yes to. Dropping it removes them.
pub struct Staged {
    folder: PathBuf,
    /// The folder of the plugin in it.
    pub root: PathBuf,
    /// The commit, or the hash of the content.
    pub revision: String,
    pub content: String,
}

impl Staged {
    fn new(plugins: &Path) -> Result<Self> {
        let folder = plugins.join(format!(".new-{}", uuid::Uuid::new_v4().simple()));
        let root = folder.join("files");
        file::private_folder(&root)?;
        Ok(Self {
            folder,
            root,
            revision: String::new(),
            content: String::new(),
        })
    }

    /// Moves the plugin to its place, instead of what is there.
    pub fn move_to(&self, place: &Path) -> Result<()> {
        let old = self.folder.join("old");
        if fs::symlink_metadata(place).is_ok() {
            file::rename(place, &old).with_context(|| format!("{} cannot be replaced", place.display()))?;
        }
        if let Err(error) = file::rename(&self.root, place) {
            file::rename(&old, place).ok();
            return Err(error).with_context(|| format!("{} cannot be written", place.display()));
        }
        Ok(())
    }
}

impl Drop for Staged {
    fn drop(&mut self) {
        fs::remove_dir_all(&self.folder).ok();
    }
}

/// The reason why an address is not fetched from.
pub fn refused_address(written: &str) -> Option<String> {
    let no_address = || Some("it is no address that git fetches from by https or ssh".to_owned());
    if written.starts_with('-') || written.chars().any(|it| it.is_whitespace() || it.is_control()) {
        return no_address();
    }
    let (scheme, rest) = written.split_once("://")?;
    let host = rest.split('/').next().unwrap_or_default();
    match scheme {
        "https" | "ssh" if host.is_empty() || host.starts_with('-') => no_address(),
        "https" | "ssh" | "file" => {
            let holds_password = host.rsplit_once('@').is_some_and(|it| it.0.contains(':'));
            holds_password
                .then(|| "the address holds a password; git asks its credential helper for it: leave it out".to_owned())
        }
        "http" | "git" => Some(format!("{scheme}:// is not encrypted; use https:// or ssh://")),
        _ => no_address(),
    }
}

/// Returns true for what may be a branch, a tag or a commit, and is no option and no pattern.
pub fn is_reference(written: &str) -> bool {
    let is_letter = |it: char| it.is_ascii_alphanumeric() || matches!(it, '/' | '.' | '-' | '_' | '@' | '+' | '#');
    !written.is_empty() && !written.starts_with(['-', '+']) && !written.contains("..") && written.chars().all(is_letter)
}

/// Brings the files of a plugin below `plugins`.
pub async fn fetch(source: &PluginSource, plugins: &Path) -> Result<Staged> {
    let mut staged = Staged::new(plugins)?;
    match source {
        PluginSource::Folder { path } => {
            copy(path, &staged.root)?;
            staged.content = content(&staged.root)?;
            staged.revision.clone_from(&staged.content);
        }
        PluginSource::Git { url, reference, path } => {
            staged.revision = clone(&staged, url, reference.as_deref(), path.as_deref()).await?;
            if let Some(path) = path {
                let inner = staged.root.join(path);
                if !inner.is_dir() {
                    bail!("there is no folder `{path}` in {url}");
                }
                // What is above it is nobody's part.
                let whole = staged.folder.join("whole");
                file::rename(&staged.root, &whole)?;
                file::rename(&whole.join(path), &staged.root)?;
            }
            staged.content = content(&staged.root)?;
        }
    }
    Ok(staged)
}

/// Fetches one commit and writes its files. Returns the commit.
async fn clone(staged: &Staged, url: &str, reference: Option<&str>, path: Option<&str>) -> Result<String> {
    let folder = staged.folder.join("git");
    let git = || {
        Command::shell(BOUNDED)
            .args(SAFE.iter())
            .timeout(PATIENCE)
            .limit_bytes(8 << 20)
            .without_terminal()
            .variable("GIT_DIR", folder.as_os_str())
            .variable("GIT_TERMINAL_PROMPT", "0")
            .variable("GIT_LFS_SKIP_SMUDGE", "1")
            .variable("GIT_ALLOW_PROTOCOL", "https:ssh:file")
    };
    git().args(["init", "--quiet", "--bare"]).output().await?;
    let refspec = format!("+{}:{FETCHED}", reference.unwrap_or("HEAD"));
    let fetched = git()
        .args([
            "fetch",
            "--quiet",
            "--depth",
            "1",
            "--no-tags",
            "--no-recurse-submodules",
            "--",
        ])
        .args([url, &refspec])
        .output()
        .await;
    fetched.with_context(|| format!("{url} cannot be fetched"))?;
    let commit = git()
        .args(["rev-parse", "--verify", &format!("{FETCHED}^{{commit}}")])
        .output()
        .await?;
    let commit = String::from_utf8_lossy(&commit).trim().to_owned();
    let mut list = git().args(["ls-tree", "-r", "-l", "-z", "--full-tree", &commit, "--"]);
    if let Some(path) = path {
        list = list.arg(path);
    }
    let listed = list.run().await?;
    if listed.truncated {
        bail!("{url} has too many files for a plugin");
    }
    check_tree(&listed.stdout)?;
    // What the user's own git would do with files while it writes them is switched off: filters run programs.
    git()
        .arg("--work-tree")
        .arg(staged.root.as_os_str())
        .args(["checkout", "--quiet", "--force", &commit, "--", path.unwrap_or(".")])
        .variable("GIT_CONFIG_GLOBAL", "/dev/null")
        .variable("GIT_CONFIG_NOSYSTEM", "1")
        .folder(&staged.root)
        .output()
        .await
        .context("its files cannot be written")?;
    Ok(commit)
}

/// Looks at a list of git's before its files are written.
fn check_tree(listed: &[u8]) -> Result<()> {
    let mut bounds = Bounds::default();
    for record in listed.split(|it| *it == 0).filter(|it| !it.is_empty()) {
        let record = String::from_utf8_lossy(record);
        let (about, path) = record.split_once('\t').context("git's list cannot be read")?;
        let mut words = about.split_whitespace();
        let (mode, size) = (words.next().unwrap_or_default(), words.nth(2).unwrap_or_default());
        match mode {
            "120000" => bail!("`{path}` is a link; a plugin has none"),
            // Submodules are left out.
            "160000" => {}
            _ => bounds.count(size.parse().unwrap_or(0))?,
        }
    }
    Ok(())
}

/// What a plugin may have.
#[derive(Default)]
struct Bounds {
    files: usize,
    bytes: u64,
}

impl Bounds {
    fn count(&mut self, bytes: u64) -> Result<()> {
        self.files += 1;
        self.bytes = self.bytes.saturating_add(bytes);
        if self.files > MOST_FILES {
            bail!("it has more than {MOST_FILES} files, which is too many for a plugin");
        }
        if self.bytes > MOST_BYTES {
            bail!(
                "it is larger than {} MiB, which is too much for a plugin",
                MOST_BYTES >> 20
            );
        }
        Ok(())
    }
}

/// The files of a folder, from it, sorted. A link or a device is an error.
fn files(root: &Path) -> Result<Vec<PathBuf>> {
    let (mut found, mut bounds) = (Vec::new(), Bounds::default());
    let mut open = vec![(PathBuf::new(), 0)];
    while let Some((below, depth)) = open.pop() {
        let folder = root.join(&below);
        let entries = fs::read_dir(&folder).with_context(|| format!("{} cannot be read", folder.display()))?;
        for entry in entries {
            let entry = entry?;
            let (kind, path) = (entry.file_type()?, below.join(entry.file_name()));
            if kind.is_symlink() {
                bail!("`{}` is a link; a plugin has none", path.display());
            }
            if kind.is_dir() {
                // The state of a repository is no part of what is in it.
                if entry.file_name() == ".git" {
                    continue;
                }
                if depth == DEPTH {
                    bail!("`{}` is too deep for a plugin", path.display());
                }
                open.push((path, depth + 1));
            } else if kind.is_file() {
                // A worktree has a file of this name.
                if entry.file_name() != ".git" {
                    bounds.count(entry.metadata()?.len())?;
                    found.push(path);
                }
            } else {
                bail!("`{}` is no file", path.display());
            }
        }
    }
    found.sort();
    Ok(found)
}

fn copy(from: &Path, to: &Path) -> Result<()> {
    for path in files(from)? {
        let place = to.join(&path);
        if let Some(folder) = place.parent() {
            fs::create_dir_all(folder)?;
        }
        let source = from.join(&path);
        let bytes = file::read_beneath(from, &path, MOST_BYTES);
        let bytes = bytes.with_context(|| format!("{} cannot be read", source.display()))?;
        file::write(&place, &bytes, Access::Shared)?;
        let mode = if is_program(&source) { 0o755 } else { 0o644 };
        fs::set_permissions(&place, fs::Permissions::from_mode(mode))?;
    }
    Ok(())
}

fn is_program(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|it| it.permissions().mode() & 0o100 != 0)
}

/// Returns true if there is nothing at a path.
pub fn is_gone(path: &Path) -> bool {
    fs::symlink_metadata(path).is_err_and(|it| it.kind() == io::ErrorKind::NotFound)
}

/// Files that differ between two folders, each with `new`, `removed` or `changed` (in its contents or in being a program); from
/// the folders, sorted. The first folder may be gone: it has no files then.
pub fn changed_files(before: &Path, after: &Path) -> Result<Vec<(PathBuf, &'static str)>> {
    let old = if is_gone(before) { Vec::new() } else { files(before)? };
    let new = files(after)?;
    let is_gone = |it: &&PathBuf| new.binary_search(it).is_err();
    let mut changed: Vec<_> = old.iter().filter(is_gone).map(|it| (it.clone(), "removed")).collect();
    for path in new {
        if old.binary_search(&path).is_err() {
            changed.push((path, "new"));
            continue;
        }
        let [was, is] = [before, after].map(|root| file::read_beneath(root, &path, MOST_BYTES));
        if was? != is? || is_program(&before.join(&path)) != is_program(&after.join(&path)) {
            changed.push((path, "changed"));
        }
    }
    changed.sort();
    Ok(changed)
}

/// A hash of all files below a folder, with their names and whether they are programs.
pub fn content(root: &Path) -> Result<String> {
    let mut parts: Vec<Vec<u8>> = Vec::new();
    for path in files(root)? {
        let bytes = file::read_beneath(root, &path, MOST_BYTES)?;
        parts.push(path.to_string_lossy().into_owned().into_bytes());
        parts.push(vec![u8::from(is_program(&root.join(&path)))]);
        parts.push(bytes);
    }
    let parts: Vec<&[u8]> = parts.iter().map(Vec::as_slice).collect();
    let print = serde_json::to_value(Fingerprint::of(&parts))?;
    Ok(print.as_str().unwrap_or_default().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_with_a_link_or_too_much_is_refused() {
        let check = |record: &str| check_tree(record.as_bytes()).map_err(|it| it.to_string());
        let name = "0123456789012345678901234567890123456789";
        assert_eq!(
            check(&format!(
                "100644 blob {name}     12\ta.md\0160000 commit {name}       -\tsub\0"
            )),
            Ok(())
        );
        let link = check(&format!("120000 blob {name}      9\tskills/out\0")).unwrap_err();
        assert!(link.contains("`skills/out` is a link"), "{link}");
        let large = check(&format!("100644 blob {name} 99999999\tbig\0")).unwrap_err();
        assert!(large.contains("larger than 64 MiB"), "{large}");
        let many = check(&format!("100644 blob {name} 1\tx\0").repeat(MOST_FILES + 1)).unwrap_err();
        assert!(many.contains("more than 5000 files"), "{many}");
    }
}
