//! Files that git's configuration names: hooks, further configuration, attributes, and programs.
//!
//! Whoever changes one of them decides what git runs, so they are held like the configuration itself.

use std::{
    collections::{BTreeSet, HashMap},
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
};

use super::{
    git_folders::git_folders,
    resolve::{LONGEST_PATH, lexical},
    survey::Stamp,
};
use crate::{os::file, text::WordList};

/// Maximum size of a file of configuration, in bytes.
const LONGEST_FILE: u64 = 1 << 20;
/// Maximum number of files of configuration that are read.
const MOST_FILES: usize = 64;
/// Words of a command that are looked at.
const MOST_WORDS: usize = 16;

/// Settings whose value is a path.
const PATHS: WordList = WordList("core.hookspath core.attributesfile include.path includeif.path init.templatedir");
/// Settings, and parts of sections, whose value is a command.
const COMMANDS: WordList = WordList(
    "core.fsmonitor core.sshcommand core.editor core.pager core.askpass core.gitproxy core.alternaterefscommand
     sequence.editor diff.external diff.command diff.textconv merge.driver filter.clean filter.smudge filter.process
     gpg.program credential.helper interactive.difffilter difftool.cmd mergetool.cmd man.cmd browser.cmd trailer.cmd
     trailer.command sendemail.sendmailcmd uploadpack.packobjectshook remote.receivepack remote.uploadpack",
);

/// Paths that the configuration names, for each folder of a conversation; read again when it has changed.
#[derive(Clone, Debug, Default)]
pub struct NamedFiles(Arc<Mutex<HashMap<PathBuf, Known>>>);

#[derive(Debug)]
struct Known {
    named: Arc<BTreeSet<PathBuf>>,
    /// The files that say so, whether they exist or not.
    said: Vec<(PathBuf, Option<Stamp>)>,
}

impl NamedFiles {
    /// Absolute paths that the configuration of the repository at `root`, of the user and of the machine names, whether
    /// they exist or not.
    pub fn look(&self, root: &Path, home: Option<&Path>) -> Arc<BTreeSet<PathBuf>> {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let is_same = |it: &&Known| it.said.iter().all(|(path, stamp)| Stamp::of(path) == *stamp);
        if let Some(known) = known.get(root).filter(is_same) {
            return Arc::clone(&known.named);
        }
        let mut said = BTreeSet::from([root.join(".git")]);
        said.extend(files(root, home));
        let before: Vec<_> = said.into_iter().map(|it| (Stamp::of(&it), it)).collect();
        let (named, read) = named(root, home);
        let mut said: Vec<_> = before.into_iter().map(|(stamp, path)| (path, stamp)).collect();
        said.extend(read.into_iter().map(|it| {
            let stamp = Stamp::of(&it);
            (it, stamp)
        }));
        let named = Arc::new(named);
        let found = Known {
            named: Arc::clone(&named),
            said,
        };
        known.insert(root.to_owned(), found);
        named
    }
}

/// The paths that the configuration names, and the files that were read for it.
fn named(root: &Path, home: Option<&Path>) -> (BTreeSet<PathBuf>, BTreeSet<PathBuf>) {
    let mut open = files(root, home);
    let mut read: BTreeSet<PathBuf> = BTreeSet::new();
    let mut found = BTreeSet::new();
    while let Some(path) = open.pop() {
        if read.len() >= MOST_FILES || !read.insert(path.clone()) {
            continue;
        }
        let Ok(bytes) = file::read(&path, LONGEST_FILE) else {
            continue;
        };
        let folder = path.parent().unwrap_or(&path).to_owned();
        for (key, value) in settings(&String::from_utf8_lossy(&bytes)) {
            if value.is_empty() || value.len() > LONGEST_PATH {
                continue;
            }
            if PATHS.iter().any(|it| it == key) {
                let is_more = key.starts_with("include");
                let named = absolute(&value, if is_more { &folder } else { root }, home);
                found.insert(named.clone());
                if is_more {
                    open.push(named);
                }
            } else if key.starts_with("alias.") || COMMANDS.iter().any(|it| it == key) {
                let words = value.split([' ', '\t', '\'', '"', ';', '&', '|', '(', ')', '!']);
                let words = words.filter(|it| it.contains('/') || it.contains('.')).take(MOST_WORDS);
                let named = words.map(|it| absolute(it, root, home));
                found.extend(named.filter(|it| it != root && it.starts_with(root) && it.is_file()));
            }
        }
    }
    (found, read)
}

/// The files of configuration that git reads first, in no order.
fn files(root: &Path, home: Option<&Path>) -> Vec<PathBuf> {
    let folders = git_folders(&root.join(".git"));
    let own = folders
        .iter()
        .flat_map(|it| ["config", "config.worktree"].map(|name| it.join(name)));
    own.chain(globals(home))
        .chain([PathBuf::from("/etc/gitconfig")])
        .collect()
}

/// The user's files for all repositories, whether they exist or not.
pub fn globals(home: Option<&Path>) -> Vec<PathBuf> {
    let configured = std::env::var_os("XDG_CONFIG_HOME").map(PathBuf::from);
    let config = configured.filter(|it| it.is_absolute());
    let config = config.or_else(|| home.map(|it| it.join(".config")));
    let own = std::env::var_os("GIT_CONFIG_GLOBAL").map(PathBuf::from);
    let files = home.map(|it| it.join(".gitconfig")).into_iter();
    files
        .chain(config.map(|it| it.join("git/config")))
        .chain(own.filter(|it| it.is_absolute()))
        .collect()
}

fn absolute(written: &str, folder: &Path, home: Option<&Path>) -> PathBuf {
    let path = match (written.strip_prefix("~/"), home) {
        (Some(rest), Some(home)) => home.join(rest),
        _ => folder.join(written),
    };
    lexical(&path)
}

/// The settings of a file as `section.key`, in lower case and without the name between, with their values.
fn settings(text: &str) -> Vec<(String, String)> {
    let mut found = Vec::new();
    let mut section = String::new();
    let joined = text
        .strip_prefix('\u{feff}')
        .unwrap_or(text)
        .replace("\\\r\n", "")
        .replace("\\\n", "");
    for line in joined.lines() {
        let mut line = line.trim();
        if let Some(rest) = line.strip_prefix('[') {
            // A name in quotes may hold a bracket.
            let end = rest
                .rfind(']')
                .filter(|_| rest.contains('"'))
                .or_else(|| rest.find(']'));
            let Some(end) = end else { continue };
            let (head, rest) = rest.split_at(end);
            let word = head.split(['"', ' ', '\t', '.']).next().unwrap_or_default();
            section = word.to_ascii_lowercase();
            line = rest.trim_start_matches(']').trim();
        }
        if line.starts_with(['#', ';']) {
            continue;
        }
        if let Some((key, value)) = line.split_once('=') {
            let key = format!("{section}.{}", key.trim().to_ascii_lowercase());
            found.push((key, plain(value)));
        }
    }
    found
}

/// A value without quotes, signs of escape and comments.
fn plain(value: &str) -> String {
    let (mut text, mut is_quoted) = (String::new(), false);
    let mut letters = value.trim().chars();
    while let Some(letter) = letters.next() {
        match letter {
            '"' => is_quoted = !is_quoted,
            '\\' => text.extend(letters.next()),
            '#' | ';' if !is_quoted => break,
            it => text.push(it),
        }
    }
    text.trim().to_owned()
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn what_the_configuration_names_is_found() {
        let folder = tempfile::tempdir().unwrap();
        let (root, home) = (folder.path().join("work"), folder.path().join("home"));
        for (path, text) in [
            (
                "work/.git/config",
                "[core]\n\thooksPath = tools/hooks ; ours\n\tattributesFile=\"a b.txt\"\n[include] path = ../common.cfg\n\
                 [includeIf \"gitdir:/x/]y\"]\n\tpath = more\\\n.cfg\n[Alias]\n\tx = !sh scripts/x.sh --y\n[filter \"f\"]\n\
                 \tclean = \"./tools/clean.sh %f\"\n[user]\n\tname = scripts/x.sh\n",
            ),
            (
                "work/common.cfg",
                "[core]\n\tsshCommand = ./ssh.sh\n[include]\n\tpath = common.cfg\n",
            ),
            ("work/.git/more.cfg", "[core]\n\tFSMonitor = bin/watch\n"),
            ("home/.gitconfig", "[core]\n\tattributesFile = ~/attributes\n"),
            ("work/scripts/x.sh", ""),
            ("work/tools/clean.sh", ""),
            ("work/ssh.sh", ""),
            ("work/bin/watch", ""),
        ] {
            let path = folder.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        let found = NamedFiles::default().look(&root, Some(&home));
        let shown: Vec<_> = found
            .iter()
            .filter_map(|it| it.strip_prefix(folder.path()).ok())
            .map(|it| it.display().to_string())
            .collect();
        assert_eq!(
            shown,
            [
                "home/attributes",
                "work/.git/more.cfg",
                "work/a b.txt",
                "work/bin/watch",
                "work/common.cfg",
                "work/scripts/x.sh",
                "work/ssh.sh",
                "work/tools/clean.sh",
                "work/tools/hooks",
            ]
        );
        // A configuration that is no plain file, or names itself, ends.
        fs::remove_file(root.join(".git/config")).unwrap();
        std::os::unix::fs::symlink("/dev/zero", root.join(".git/config")).unwrap();
        assert!(
            NamedFiles::default()
                .look(&root, None)
                .iter()
                .all(|it| !it.starts_with(&root))
        );
    }
}
