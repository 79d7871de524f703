//! Files that git's configuration names: hooks, further configuration, attributes, and programs.
//!
//! Whoever changes or makes one of them decides what git runs, so they are held like the configuration itself.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
};

use super::{git_folders::git_folders, resolve::LONGEST_PATH, stamp::Reading};
use crate::{os::file, text::WordList};

/// Maximum size of a file of configuration, in bytes.
const LONGEST_FILE: u64 = 1 << 20;
/// Maximum number of files of configuration that are read for a repository.
const MOST_FILES: usize = 64;

/// Settings whose value is a path.
const PATHS: WordList = WordList("core.hookspath core.attributesfile include.path includeif.path init.templatedir");
/// Settings, and parts of sections, whose value is a command. All of the sections `alias` and `pager` are.
const COMMANDS: WordList = WordList(
    "core.fsmonitor core.sshcommand core.editor core.pager core.askpass core.gitproxy core.alternaterefscommand
     sequence.editor diff.external diff.command diff.textconv merge.driver filter.clean filter.smudge filter.process
     gpg.program credential.helper interactive.difffilter difftool.cmd difftool.path mergetool.cmd mergetool.path man.cmd
     man.path browser.cmd browser.path guitool.cmd tar.command hook.command submodule.update trailer.cmd trailer.command
     sendemail.sendmailcmd sendemail.smtpserver sendemail.tocmd sendemail.cccmd sendemail.headercmd gpg.defaultkeycommand
     instaweb.httpd imap.tunnel uploadpack.packobjectshook remote.receivepack remote.uploadpack",
);

/// A repository, whose configuration says what git runs in it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Repository {
    /// Git's folder, or the file that stands for it.
    pub git: PathBuf,
    /// Top of its working tree, to which paths in its configuration are relative.
    pub top: PathBuf,
}

impl Repository {
    /// The repository with this `.git`.
    pub fn of(git: &Path) -> Self {
        Self {
            git: git.to_owned(),
            top: git.parent().unwrap_or(git).to_owned(),
        }
    }

    /// The repository that git would find from a folder, which need not be its top.
    pub fn around(folder: &Path) -> Option<Self> {
        let git = folder.ancestors().map(|it| it.join(".git"));
        git.into_iter().find(|it| it.exists()).map(|it| Self::of(&it))
    }
}

/// Paths that the configuration names, for each repository; read again when it has changed.
#[derive(Clone, Debug, Default)]
pub struct NamedFiles(Arc<Mutex<HashMap<Repository, Arc<Named>>>>);

/// Paths that the configuration of a repository, of the user and of the machine names.
#[derive(Debug, Default)]
pub struct Named {
    /// Absolute, whether they exist or not.
    pub paths: BTreeSet<PathBuf>,
    /// Not all of the configuration could be read.
    pub is_partial: bool,
    /// The files that say so, whether they exist or not, each as it was before it was read.
    said: BTreeMap<PathBuf, Reading>,
}

impl NamedFiles {
    pub fn look(&self, repository: &Repository, home: Option<&Path>) -> Arc<Named> {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let is_same = |it: &&Arc<Named>| it.said.iter().all(|(path, reading)| reading.is_current(path));
        if let Some(known) = known.get(repository).filter(is_same) {
            return Arc::clone(known);
        }
        let named = Arc::new(Named::read(repository, home));
        known.insert(repository.clone(), Arc::clone(&named));
        named
    }
}

impl Named {
    fn read(repository: &Repository, home: Option<&Path>) -> Self {
        let Repository { git, top } = repository;
        let mut named = Self::default();
        named.said.insert(git.clone(), Reading::before(git));
        let own = git_folders(git);
        let mut open = files(git, home);
        let (mut values, mut included) = (Vec::new(), 0);
        let mut tops = BTreeSet::from([top.clone()]);
        while let Some(path) = open.pop() {
            if named.said.contains_key(&path) {
                continue;
            }
            if named.said.len() > MOST_FILES {
                named.is_partial = true;
                break;
            }
            named.said.insert(path.clone(), Reading::before(&path));
            let bytes = match file::read(&path, LONGEST_FILE) {
                Ok(bytes) => bytes,
                Err(error) => {
                    // What is not there says nothing to git either.
                    named.is_partial |= !error.is_absent() && !matches!(error, file::Error::Dangling { .. });
                    continue;
                }
            };
            let folder = path.parent().unwrap_or(&path).to_owned();
            let said = settings(&String::from_utf8_lossy(&bytes));
            // Another working tree may be named, and where it is named does not matter.
            let trees = said
                .iter()
                .filter(|it| it.0 == "core.worktree" && it.1.len() <= LONGEST_PATH);
            tops.extend(trees.flat_map(|it| own.iter().map(|git| absolute(&it.1, git, home))));
            values.extend(said.into_iter().map(|(key, value)| (folder.clone(), key, value)));
            // What is included is read next.
            for (folder, key, value) in values.iter().skip(included) {
                if key.starts_with("include") && PATHS.contains(key) && !value.is_empty() && value.len() <= LONGEST_PATH
                {
                    open.push(absolute(value, folder, home));
                }
            }
            included = values.len();
        }
        let reach: Vec<&PathBuf> = tops.iter().chain(&own).collect();
        let is_in_reach = |it: &PathBuf| reach.iter().any(|folder| it.starts_with(folder));
        for (folder, key, value) in &values {
            let is_path = PATHS.contains(key);
            let is_command = ["alias.", "pager."].iter().any(|it| key.starts_with(it)) || COMMANDS.contains(key);
            if value.len() > LONGEST_PATH {
                named.is_partial |= is_path || is_command;
            } else if value.is_empty() {
            } else if is_path && key.starts_with("include") {
                named.paths.insert(absolute(value, folder, home));
            } else if is_path {
                named.paths.extend(tops.iter().map(|top| absolute(value, top, home)));
            } else if is_command {
                let words = value.split(|it: char| it.is_whitespace() || "'\"`;&|()<>{}!=$".contains(it));
                let words: Vec<_> = words.filter(|it| !it.is_empty()).enumerate().collect();
                for top in &tops {
                    // The first is a program, which without a slash is found elsewhere; a script may have any name.
                    let is_path = |at: usize, it: &str| {
                        it.contains('/') || (at > 0 && (it.contains('.') || top.join(it).is_file()))
                    };
                    let programs = words.iter().filter(|(at, it)| is_path(*at, it));
                    let programs = programs.map(|it| absolute(it.1, top, home));
                    // A folder may hold anything, such as the whole of the sources.
                    let named_here = programs.filter(|it| is_in_reach(it) && !it.is_dir());
                    named.paths.extend(named_here);
                }
            }
        }
        named
    }
}

/// Settings that git gives a submodule when it makes one. None of them makes git run something.
const OF_NEW_MODULES: WordList = WordList(
    "core.repositoryformatversion core.filemode core.bare core.logallrefupdates core.worktree core.ignorecase
     core.precomposeunicode core.symlinks extensions.objectformat remote.url remote.fetch branch.remote branch.merge
     submodule.url submodule.active submodule.branch",
);

/// Returns true for a git folder as git makes it for a new submodule: its configuration makes git run nothing, and neither does
/// anything else in it.
pub fn is_plain_module(folder: &Path) -> bool {
    let is_absent = |name: &str| std::fs::symlink_metadata(folder.join(name)).is_err();
    let names = |name: &str| -> Option<Vec<String>> {
        match std::fs::symlink_metadata(folder.join(name)) {
            Ok(about) if !about.is_dir() => None,
            Ok(_) => {
                let entries = std::fs::read_dir(folder.join(name)).ok()?;
                let entries = entries.map(|it| it.ok().filter(|it| it.file_type().is_ok_and(|it| it.is_file())));
                entries.map(|it| it?.file_name().into_string().ok()).collect()
            }
            Err(_) => Some(Vec::new()),
        }
    };
    let config = file::read_unlinked(&folder.join("config"), LONGEST_FILE).ok();
    let is_plain = |bytes: Vec<u8>| {
        let settings = settings(&String::from_utf8_lossy(&bytes));
        settings.iter().all(|(key, _)| OF_NEW_MODULES.contains(key))
    };
    let is_folder = std::fs::symlink_metadata(folder).is_ok_and(|it| it.is_dir());
    is_folder
        && folder.join("HEAD").is_file()
        && is_absent("commondir")
        && is_absent("config.worktree")
        && config.is_some_and(is_plain)
        && names("hooks").is_some_and(|it| it.iter().all(|it| it.ends_with(".sample")))
        && names("info").is_some_and(|it| it.iter().all(|it| it == "exclude"))
}

/// The files of configuration that git reads first, in no order.
fn files(git: &Path, home: Option<&Path>) -> Vec<PathBuf> {
    let folders = git_folders(git);
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
    let of_user = written.strip_prefix('~').and_then(|it| it.split_once('/'));
    let path = match (of_user, home) {
        (Some(("", rest)), Some(home)) => home.join(rest),
        (Some((name, rest)), _) if !name.is_empty() => match home_of(name) {
            Some(home) => home.join(rest),
            None => folder.join(written),
        },
        _ => folder.join(written),
    };
    file::lexical(&path)
}

/// The home of a user of the machine. `None`: nobody has that name.
fn home_of(name: &str) -> Option<PathBuf> {
    let bytes = file::read(Path::new("/etc/passwd"), LONGEST_FILE).ok()?;
    let text = String::from_utf8_lossy(&bytes);
    let line = text.lines().find(|it| it.split(':').next() == Some(name))?;
    line.split(':').nth(5).map(PathBuf::from)
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
            let Some(end) = end_of_head(rest) else { continue };
            let (head, rest) = rest.split_at(end);
            let word = head.split(['"', ' ', '\t', '.']).next().unwrap_or_default();
            section = word.to_ascii_lowercase();
            line = rest.strip_prefix(']').unwrap_or(rest).trim();
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

/// The place of the bracket that ends the head of a section. A name in quotes may hold one, too.
fn end_of_head(text: &str) -> Option<usize> {
    let (mut is_quoted, mut is_escaped) = (false, false);
    for (at, letter) in text.char_indices() {
        match letter {
            _ if is_escaped => is_escaped = false,
            '\\' if is_quoted => is_escaped = true,
            '"' => is_quoted = !is_quoted,
            ']' if !is_quoted => return Some(at),
            _ => {}
        }
    }
    None
}

/// A value without quotes, signs of escape and comments.
fn plain(value: &str) -> String {
    let (mut text, mut is_quoted) = (String::new(), false);
    let mut letters = value.trim().chars();
    while let Some(letter) = letters.next() {
        match letter {
            '"' => is_quoted = !is_quoted,
            '\\' => text.extend(letters.next().map(|it| match it {
                'n' => '\n',
                't' => '\t',
                'b' => '\u{8}',
                it => it,
            })),
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
            (
                "work/.git/more.cfg",
                "[core]\n\tFSMonitor = bin/watch\n[pager]\n\tlog = less.sh | ./absent/pager | cd ./tools\n",
            ),
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
        let look = |home: Option<&Path>| NamedFiles::default().look(&Repository::of(&root.join(".git")), home);
        let found = look(Some(&home));
        assert!(!found.is_partial);
        let shown: Vec<_> = found
            .paths
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
                "work/absent/pager",
                "work/bin/watch",
                "work/common.cfg",
                "work/scripts/x.sh",
                "work/ssh.sh",
                "work/tools/clean.sh",
                "work/tools/hooks",
            ]
        );
        // A configuration that is no plain file, or names itself, ends, and it is said that not all is known.
        fs::remove_file(root.join(".git/config")).unwrap();
        std::os::unix::fs::symlink("/dev/zero", root.join(".git/config")).unwrap();
        let found = look(None);
        assert!(found.is_partial && found.paths.iter().all(|it| !it.starts_with(&root)));
    }

    #[test]
    fn the_configuration_is_read_as_git_reads_it() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().join("work");
        fs::create_dir_all(root.join(".git")).unwrap();
        fs::write(root.join("runme"), "").unwrap();
        let named = NamedFiles::default();
        for (config, expected) in [
            ("[core] ; \"x]\"\nhooksPath = hk\n", "hk"),
            ("[core] # see [\"a\"]\nhooksPath = hk\n", "hk"),
            ("[includeIf \"gitdir:/x/\\\"]y\"]\npath = ../more\n", "more"),
            ("[core]\nhooksPath = \"h\\tk\"\n", "h\tk"),
            ("[core]\nhooksPath = hk\nworktree = ../wt\n", "wt/hk"),
            ("[core]\nworktree = ../wt\nhooksPath = hk\n", "wt/hk"),
            ("[core]\nfsmonitor = sh runme\n", "runme"),
            ("[alias]\nx = !sh runme\n", "runme"),
            ("[gpg \"ssh\"]\ndefaultKeyCommand = ./key\n", "key"),
            ("[sendemail]\ntoCmd = ./to\n", "to"),
            ("[instaweb]\nhttpd = ./httpd\n", "httpd"),
        ] {
            fs::write(root.join(".git/config"), config).unwrap();
            let found = named.look(&Repository::of(&root.join(".git")), None);
            assert!(
                found.paths.contains(&root.join(expected)),
                "{config}: {:?}",
                found.paths
            );
        }
        assert_eq!(absolute("~root/x", &root, None), Path::new("/root/x"));
        assert_eq!(absolute("~no such user/x", &root, None), root.join("~no such user/x"));
    }

    #[test]
    fn a_configuration_that_is_too_long_is_said_to_be_known_in_part() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        fs::create_dir(root.join(".git")).unwrap();
        let named = NamedFiles::default();
        let is_partial = |config: &str| {
            fs::write(root.join(".git/config"), config).unwrap();
            named.look(&Repository::of(&root.join(".git")), None).is_partial
        };
        let includes = |count: usize| {
            let lines = (0..count).map(|at| format!("[include]\npath = {at}.cfg\n"));
            lines.collect::<String>()
        };
        assert!(!is_partial(&includes(50)) && is_partial(&includes(70)));
        let command = |bytes: usize| format!("[alias]\nx = !{}\n", "a ".repeat(bytes / 2));
        assert!(!is_partial(&command(4000)) && is_partial(&command(5000)));
        assert!(is_partial(&"# x\n".repeat(300_000)) && !is_partial(""));
        // The last word counts as the first does.
        let words = format!("[alias]\nx = !{} ./last.sh\n", "./a.sh ".repeat(100));
        fs::write(root.join(".git/config"), words).unwrap();
        let found = named.look(&Repository::of(&root.join(".git")), None);
        assert!(found.paths.contains(&root.join("last.sh")));
    }
}
