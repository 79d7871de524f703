//! Ignore files, git's and ours. No other module opens them, and no crate does.
//!
//! They are a repository's, so they are opened as hostile: no link, no pipe, no device, and no more than a limit, of one file
//! and of all files of a walk. Git's only keep listings short: one that cannot be used says nothing. Ours hide: beside and
//! below one that cannot be used, or that has a pattern that cannot, everything is hidden.
//!
//! All follow git: patterns are relative to the file's folder, a deeper file wins over a higher one, the last pattern that
//! fits wins in a file, and nothing comes back below a folder that is out.

use std::{
    collections::{BTreeMap, HashMap},
    ffi::OsString,
    fs, io,
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex, PoisonError, RwLock,
        atomic::{AtomicU64, Ordering},
    },
};

use ignore::{
    Match,
    gitignore::{Gitignore, GitignoreBuilder},
};

use super::{git_folders::git_folders, stamp::Reading};
use crate::os::file;

/// Ours. In one folder the last has the last word.
const OURS: [&str; 2] = [".cursorignore", ".sheafignore"];
const GITS: &str = ".gitignore";
/// Maximum size of an ignore file, in bytes.
const LONGEST_FILE: u64 = 256 << 10;
/// Maximum size of all ignore files of a walk, in bytes: the worst patterns take about a second for each MiB.
const LONGEST_ALL: u64 = 4 << 20;

/// The ignore files that count beside ours.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Scope {
    /// Git's, with the repository's and the user's exclude files.
    pub git: bool,
    /// Files of this name. They win over git's.
    pub also: Option<&'static str>,
}

/// The ignore files of a tree. Each is read once, when the first entry of its folder is looked at.
#[derive(Debug)]
pub struct IgnoreFiles {
    /// Ours count in this folder and below. `None`: nowhere.
    base: Option<PathBuf>,
    scope: Scope,
    /// The user's exclude file.
    users: Option<Gitignore>,
    folders: RwLock<HashMap<OsString, Option<Arc<Level>>>>,
    /// Bytes that may still be read.
    left: AtomicU64,
    /// The files that were read, and those elsewhere that were looked for, each as it was before.
    read: Mutex<BTreeMap<PathBuf, Reading>>,
}

/// The rules of a folder that has any, linked to those of the folders above.
#[derive(Debug, Default)]
struct Level {
    above: Option<Arc<Level>>,
    ours: Rules,
    also: Option<Gitignore>,
    git: Option<Gitignore>,
    exclude: Option<Gitignore>,
    /// Git's rules of the folders above do not count here.
    is_repository: bool,
}

#[derive(Debug, Default)]
enum Rules {
    #[default]
    None,
    List(Gitignore),
    /// Nobody knows what they say.
    Unusable,
}

impl Rules {
    fn matched(&self, path: &Path, is_folder: bool) -> Option<bool> {
        match self {
            Self::None => None,
            Self::List(list) => decided(list.matched(path, is_folder)),
            Self::Unusable => Some(true),
        }
    }
}

impl IgnoreFiles {
    pub fn new(base: Option<PathBuf>, scope: Scope) -> Self {
        let mut read = BTreeMap::new();
        let folder = base.as_deref().filter(|_| scope.git);
        let users = folder.and_then(|it| users_rules(it, &mut read));
        Self {
            base,
            scope,
            users,
            folders: RwLock::default(),
            left: AtomicU64::new(LONGEST_ALL),
            read: Mutex::new(read),
        }
    }

    /// Takes the files that were read so far, and those outside of the listed folders that were not there, each with its state
    /// before that.
    pub fn take_read(&self) -> BTreeMap<PathBuf, Reading> {
        std::mem::take(&mut self.read.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn remember(&self, path: &Path) {
        let reading = Reading::before(path);
        let mut read = self.read.lock().unwrap_or_else(PoisonError::into_inner);
        read.insert(path.to_owned(), reading);
    }

    /// A folder was listed, which `has` entries of these names. One without rules of its own has those of the folder above.
    pub fn enter(&self, folder: &Path, has: impl Fn(&str) -> bool) {
        let is_below = self
            .base
            .as_ref()
            .is_some_and(|it| folder != it && folder.starts_with(it));
        let names = OURS.into_iter().chain([GITS, ".git"]).chain(self.scope.also);
        if !is_below || names.into_iter().any(has) {
            return;
        }
        let above = folder.parent().and_then(|it| self.level(it));
        let mut folders = self.folders.write().unwrap_or_else(PoisonError::into_inner);
        folders.entry(folder.as_os_str().to_owned()).or_insert(above);
    }

    /// Returns true if one of our files hides an entry of a folder that is not hidden itself.
    pub fn hide(&self, path: &Path, is_folder: bool) -> bool {
        let first = path
            .parent()
            .filter(|_| self.base.is_some())
            .and_then(|it| self.level(it));
        levels(first.as_ref())
            .find_map(|it| it.ours.matched(path, is_folder))
            .unwrap_or(false)
    }

    /// Returns true if a path that one of our files hides, or a folder on the way to it, lies below the base.
    pub fn hide_way(&self, path: &Path, is_folder: bool) -> bool {
        let Some(base) = &self.base else { return false };
        let Ok(inner) = path.strip_prefix(base) else {
            return false;
        };
        let mut here = base.clone();
        let count = inner.components().count();
        inner.components().enumerate().any(|(at, part)| {
            here.push(part);
            self.hide(&here, at + 1 < count || is_folder)
        })
    }

    /// Returns true if git, or the files that count beside it, leave out an entry of a folder that is not left out itself.
    pub fn leave_out(&self, path: &Path, is_folder: bool) -> bool {
        let first = path.parent().and_then(|it| self.level(it));
        let (mut also, mut git, mut exclude) = (None, None, None);
        let mut is_outside = false;
        let asked = |found: &mut Option<bool>, list: &Option<Gitignore>| {
            if let (None, Some(list)) = (*found, list) {
                *found = decided(list.matched(path, is_folder));
            }
        };
        for level in levels(first.as_ref()) {
            asked(&mut also, &level.also);
            if !is_outside {
                asked(&mut git, &level.git);
                asked(&mut exclude, &level.exclude);
            }
            is_outside |= level.is_repository;
        }
        let mut users = None;
        asked(&mut users, &self.users);
        also.or(git).or(exclude).or(users).unwrap_or(false)
    }

    /// The rules that count in a folder. `None`: there are none.
    fn level(&self, folder: &Path) -> Option<Arc<Level>> {
        let known = self.folders.read().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = known.get(folder.as_os_str()) {
            return known.clone();
        }
        drop(known);
        let is_in_base = self.base.as_ref().is_some_and(|it| folder.starts_with(it));
        if !is_in_base && self.scope == Scope::default() {
            return None;
        }
        let mut level = Level::default();
        if is_in_base {
            level.ours = self.ours(folder);
        }
        if let Some(name) = self.scope.also {
            level.also = self.one(folder, &folder.join(name));
        }
        if self.scope.git {
            level.git = self.one(folder, &folder.join(GITS));
            let git = folder.join(".git");
            level.is_repository = fs::symlink_metadata(&git).is_ok();
            if level.is_repository {
                let exclude = git_folders(&git).into_iter().map(|it| it.join("info/exclude"));
                // It lies in no folder that is listed, so nobody would notice that it has come.
                let exclude = exclude.inspect(|it| self.remember(it));
                level.exclude = exclude.filter_map(|it| self.one(folder, &it)).last();
            }
        }
        let is_top = level.is_repository && (!is_in_base || self.base.as_deref() == Some(folder));
        let above = folder.parent().filter(|_| !is_top).and_then(|it| self.level(it));
        // A folder without rules is the folder above, so that a deep tree costs no long chains.
        let level = if level.is_empty() {
            above
        } else {
            level.above = above;
            Some(Arc::new(level))
        };
        let mut folders = self.folders.write().unwrap_or_else(PoisonError::into_inner);
        folders.insert(folder.as_os_str().to_owned(), level.clone());
        level
    }

    fn ours(&self, folder: &Path) -> Rules {
        let mut rules: Option<GitignoreBuilder> = None;
        for name in OURS {
            let path = folder.join(name);
            let text = match self.text(&path) {
                Ok(None) => continue,
                Ok(Some(text)) => text,
                Err(_) => return Rules::Unusable,
            };
            if let Err(line) = add(rules.get_or_insert_with(|| builder(folder)), &text) {
                tracing::warn!(path = %path.display(), line, "a pattern cannot be read: everything beside the file is hidden");
                return Rules::Unusable;
            }
        }
        let Some(rules) = rules else { return Rules::None };
        rules.build().map_or(Rules::Unusable, Rules::List)
    }

    fn one(&self, folder: &Path, path: &Path) -> Option<Gitignore> {
        let text = self.text(path).ok().flatten()?;
        let mut rules = builder(folder);
        // A pattern that cannot be read names nothing.
        add(&mut rules, &text).ok();
        rules.build().ok()
    }

    /// The text of an ignore file, which is none if there is no file.
    fn text(&self, path: &Path) -> Result<Option<Vec<u8>>, Unusable> {
        if let Err(error) = fs::symlink_metadata(path)
            && is_nothing(&error)
        {
            return Ok(None);
        }
        self.remember(path);
        let left = self.left.load(Ordering::Relaxed);
        let bytes = match read(path, self.base.as_deref(), LONGEST_FILE.min(left)) {
            Ok(bytes) => bytes,
            Err(error) if is_absent(&error) => return Ok(None),
            Err(error) => {
                tracing::warn!(%error, "an ignore file is not read");
                return Err(Unusable);
            }
        };
        self.left.fetch_sub((bytes.len() as u64).min(left), Ordering::Relaxed);
        Ok(Some(bytes))
    }
}

impl Level {
    fn is_empty(&self) -> bool {
        let Self {
            above: _,
            ours,
            also,
            git,
            exclude,
            is_repository,
        } = self;
        let has_none = matches!(ours, Rules::None) && also.is_none() && git.is_none() && exclude.is_none();
        has_none && !is_repository
    }
}

struct Unusable;

fn levels(first: Option<&Arc<Level>>) -> impl Iterator<Item = &Level> {
    std::iter::successors(first.map(Arc::as_ref), |it| it.above.as_deref())
}

fn decided<T>(found: Match<T>) -> Option<bool> {
    match found {
        Match::None => None,
        Match::Ignore(_) => Some(true),
        Match::Whitelist(_) => Some(false),
    }
}

/// Reads a regular file, not through a link unless it stays in the base: then what it leads to is read by its own name.
fn read(path: &Path, base: Option<&Path>, limit: u64) -> Result<Vec<u8>, file::Error> {
    let read = |path: &Path| file::read_unlinked(path, limit);
    match (read(path), base) {
        (Err(file::Error::NotRegular { .. }), Some(base)) if path.is_symlink() => match fs::canonicalize(path) {
            Ok(target) if target.starts_with(base) => read(&target),
            Ok(_) | Err(_) => Err(file::Error::NotRegular { path: path.to_owned() }),
        },
        (read, _) => read,
    }
}

/// Returns true if there is no file: a folder of this name is none either.
fn is_absent(error: &file::Error) -> bool {
    match error {
        file::Error::Io { source, .. } => is_nothing(source),
        // A link on the way that leads to itself has nothing behind it.
        file::Error::NotRegular { path } => fs::symlink_metadata(path).map_or(true, |it| it.is_dir()),
        // It is on the way: the file itself is opened without following one.
        file::Error::Dangling { .. } => true,
        file::Error::TooOpen { .. } | file::Error::TooLarge { .. } => false,
    }
}

/// Returns true if the error says that nothing is at a path.
fn is_nothing(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}

fn builder(folder: &Path) -> GitignoreBuilder {
    let mut builder = GitignoreBuilder::new(folder);
    let is_blind = cfg!(any(windows, target_os = "macos"));
    builder.case_insensitive(is_blind).expect("a switch cannot fail");
    builder
}

/// Adds the patterns of a text. Error: the number of the first line, counted from 1, that is no pattern; the others are added.
fn add(rules: &mut GitignoreBuilder, text: &[u8]) -> Result<(), usize> {
    let text = text.strip_prefix("\u{feff}".as_bytes()).unwrap_or(text);
    let mut unreadable = None;
    for (line, at) in text.split(|it| *it == b'\n').zip(1..) {
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        let is_added =
            line.starts_with(b"#") || std::str::from_utf8(line).is_ok_and(|it| rules.add_line(None, it).is_ok());
        if !is_added {
            unreadable.get_or_insert(at);
        }
    }
    unreadable.map_or(Ok(()), Err)
}

/// The user's exclude file: the one that git's configuration names, else `git/ignore` beside it. The files that were looked
/// for go to `read`.
fn users_rules(folder: &Path, read: &mut BTreeMap<PathBuf, Reading>) -> Option<Gitignore> {
    let home = std::env::home_dir().filter(|it| it.is_absolute());
    let configured = std::env::var_os("XDG_CONFIG_HOME").map(PathBuf::from);
    let config = configured.filter(|it| it.is_absolute());
    let config = config
        .or_else(|| home.as_ref().map(|it| it.join(".config")))?
        .join("git");
    let mut remember = |path: &Path| {
        read.insert(path.to_owned(), Reading::before(path));
    };
    let files = home
        .iter()
        .map(|it| it.join(".gitconfig"))
        .chain([config.join("config")]);
    let named = files
        .inspect(|it| remember(it))
        .filter_map(|it| file::read(&it, LONGEST_FILE).ok())
        .find_map(|bytes| {
            let text = String::from_utf8_lossy(&bytes).into_owned();
            let mut values = text.lines().filter_map(|line| {
                let (key, value) = line.split_once('=')?;
                let is_it = key.trim().eq_ignore_ascii_case("excludesfile");
                Some(value.trim().trim_matches('"').trim().to_owned()).filter(|it| is_it && !it.is_empty())
            });
            values.next_back()
        });
    let path = match named.as_deref().map(|it| (it.strip_prefix("~/"), it)) {
        Some((Some(rest), _)) => home?.join(rest),
        Some((None, whole)) => PathBuf::from(whole),
        None => config.join("ignore"),
    };
    remember(&path);
    let bytes = file::read(&path, LONGEST_FILE).ok()?;
    let mut rules = builder(folder);
    add(&mut rules, &bytes).ok();
    rules.build().ok()
}
