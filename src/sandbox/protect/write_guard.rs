//! The other way of the partial sandbox: a command may write all of the workspace, and what is protected there is looked at
//! before and after, and put back.
//!
//! Without mounts the kernel can hold the top of a workspace or let it go, and nothing between. Where the user prefers
//! commands that can make files there, this stands in for it: copies in memory of what git keeps (but for its objects,
//! which only ever grow) and of the other protected files. Between the two looks a command can change them; whatever reads
//! them in that time reads what the command wrote. So a command that did it is the last that ran unasked.

use std::{
    collections::BTreeMap,
    fs,
    io::{self, Read as _, Write as _},
    os::unix::fs::{MetadataExt as _, PermissionsExt as _},
    path::{Path, PathBuf},
    sync::Arc,
    time::SystemTime,
};

use rustix::fs::{Mode, OFlags, RawMode};

use super::quarantine::{FileIdentity, Quarantine};
use crate::sandbox::{files::open, policy::protected_names as name};

/// Maximum bytes kept in memory. Above it the top of the workspace is made read-only instead.
const MOST_BYTES: u64 = 64 << 20;
/// Maximum number of files that are watched.
const MOST_ENTRIES: usize = 20_000;
/// Maximum number of entries searched for a moved folder.
const MOST_SEARCHED: usize = 50_000;
/// Folders to which git only adds: large, and not part of its state.
const STORES: [&str; 3] = ["objects", "lfs", "annex"];

/// A protected file that was found changed after a command, and its handling.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Mended {
    /// Restored; the command's version is in `aside`, if it was kept.
    Back { path: String, aside: Option<PathBuf> },
    /// Not restored.
    Lost { path: String, why: String },
    /// Another command ran that was allowed to change it.
    Left { path: String },
    /// It may have been there before the command, where nobody could look.
    Unsure { path: String },
    /// A protected file in a folder that git ignores or that holds packages: builds and installations make those.
    Packaged { path: String },
    /// A repository in a folder that was not there.
    Repository { path: String },
    /// A folder that could not be looked into any more, and can again.
    Opened { path: String },
    /// A folder that cannot be looked into any more.
    Closed { path: String },
}

impl std::fmt::Display for Mended {
    /// A sentence without its end, for people and models.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Back { path, aside: None } => {
                write!(
                    f,
                    "the command changed `{path}`, which is protected: it is what it was again"
                )
            }
            Self::Back {
                path,
                aside: Some(aside),
            } => write!(
                f,
                "the command changed `{path}`, which is protected: it is what it was again, and what the command made of \
                 it lies in {}",
                aside.display()
            ),
            Self::Lost { path, why } => write!(
                f,
                "the command changed `{path}`, which is protected, and it could not be made what it was: {why}"
            ),
            Self::Left { path } => write!(
                f,
                "`{path}` changed while another command ran that was allowed to change it: it was left as it is"
            ),
            Self::Unsure { path } => write!(
                f,
                "`{path}`, which runs or decides what runs, was found after the command and may have been there before: it \
                 was left as it is"
            ),
            Self::Packaged { path } => write!(
                f,
                "the command made `{path}`, which runs or decides what runs for whoever works there: it is left, since git \
                 ignores the folder or it holds packages"
            ),
            Self::Repository { path } => write!(
                f,
                "the command made the repository `{path}`: its hooks and its configuration run when git is used there, so \
                 look at them first"
            ),
            Self::Opened { path } => write!(
                f,
                "the command took away the right to look into `{path}`: its owner has it again"
            ),
            Self::Closed { path } => write!(
                f,
                "nobody can look into `{path}` since the command: it is not known what it made there"
            ),
        }
    }
}

/// Protected files, as they were before a command.
#[derive(Debug)]
pub struct Watch {
    roots: Vec<PathBuf>,
    /// Watched paths, with everything below them.
    paths: Vec<PathBuf>,
    entries: BTreeMap<PathBuf, Entry>,
}

/// The kind of a watched path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Watched {
    /// A file or a link, as it was.
    File(FileIdentity),
    /// A folder, or something that cannot be read.
    Other,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Entry {
    print: FileMetadata,
    what: EntryContent,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum EntryContent {
    Folder,
    Link(PathBuf),
    File(Arc<[u8]>),
    /// A pipe or a device, which is only looked at.
    Other,
}

/// Metadata of a file, which change with every change of the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct FileMetadata {
    device: u64,
    inode: u64,
    size: u64,
    mode: u32,
    modified: (i64, i64),
    changed: (i64, i64),
    /// The number of one that is gone is given to the next that is made: only with this it is the same one.
    born: Option<SystemTime>,
}

impl FileMetadata {
    fn of(about: &fs::Metadata) -> Self {
        Self {
            device: about.dev(),
            inode: about.ino(),
            size: about.size(),
            mode: about.mode(),
            modified: (about.mtime(), about.mtime_nsec()),
            changed: (about.ctime(), about.ctime_nsec()),
            born: about.created().ok(),
        }
    }

    /// Returns true if `about` is of the same folder, file or link, changed or moved or not.
    fn is_of(&self, about: &fs::Metadata) -> bool {
        let now = Self::of(about);
        (now.device, now.inode, now.born) == (self.device, self.inode, self.born)
    }

    fn identity(self) -> FileIdentity {
        FileIdentity {
            device: self.device,
            inode: self.inode,
            changed: self.changed,
        }
    }

    fn rights(self) -> u32 {
        self.mode & 0o7777
    }
}

/// Too many or too large files to watch.
#[derive(Debug)]
pub struct TooMuch;

impl Watch {
    /// Looks at `paths` and all below, in `roots`. What has not changed since `before` is not read again.
    pub fn look(roots: Vec<PathBuf>, paths: Vec<PathBuf>, before: Option<&Self>) -> Result<Self, TooMuch> {
        let mut entries = BTreeMap::new();
        let mut bytes = 0;
        for path in &paths {
            walk(path, &mut |path, about| {
                let print = FileMetadata::of(about);
                let known = before
                    .and_then(|it| it.entries.get(path))
                    .filter(|it| it.print == print);
                let what = match known {
                    Some(known) => known.what.clone(),
                    // It went while it was looked at.
                    None => match what(path, about, MOST_BYTES - bytes) {
                        Ok(what) => what,
                        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
                        Err(_) => return Err(TooMuch),
                    },
                };
                if let EntryContent::File(content) = &what {
                    bytes += content.len() as u64;
                }
                entries.insert(path.to_owned(), Entry { print, what });
                if bytes >= MOST_BYTES || entries.len() > MOST_ENTRIES {
                    return Err(TooMuch);
                }
                Ok(())
            })?;
        }
        Ok(Self { roots, paths, entries })
    }

    /// Watched paths, which stand for everything below them, too.
    pub fn paths(&self) -> impl Iterator<Item = &Path> {
        self.paths.iter().map(PathBuf::as_path)
    }

    /// All that was there.
    pub fn entries(&self) -> impl Iterator<Item = (&Path, Watched)> {
        self.entries.iter().map(|(path, entry)| {
            let what = match entry.what {
                EntryContent::File(_) | EntryContent::Link(_) => Watched::File(entry.print.identity()),
                EntryContent::Folder | EntryContent::Other => Watched::Other,
            };
            (path.as_path(), what)
        })
    }

    /// Makes everything what it was. `may_differ` says what others were allowed to change meanwhile; nothing is removed:
    /// what stood in the way is put aside.
    pub fn put_back(&self, aside: &Quarantine, may_differ: impl Fn(&Path) -> bool) -> Vec<Mended> {
        let mut mended = Vec::new();
        for (path, entry) in &self.entries {
            let Some((root, inner)) = self.place(path) else {
                continue;
            };
            let now = fs::symlink_metadata(path).ok();
            if now.as_ref().is_some_and(|it| entry.is_still(root, path, it)) {
                continue;
            }
            let shown = inner.to_string_lossy().into_owned();
            if may_differ(path) || aside.is_known(path) {
                mended.push(Mended::Left { path: shown });
                continue;
            }
            mended.push(match entry.restore(root, inner, now.as_ref(), aside) {
                Ok(aside) => Mended::Back { path: shown, aside },
                Err(error) => Mended::Lost {
                    path: shown,
                    why: error.to_string(),
                },
            });
        }
        self.take_new(aside, &may_differ, &mut mended);
        mended
    }

    /// Quarantines new entries of the watched folders. A folder is taken with its contents.
    fn take_new(&self, aside: &Quarantine, may_differ: &impl Fn(&Path) -> bool, mended: &mut Vec<Mended>) {
        let mut new: Vec<PathBuf> = Vec::new();
        for path in &self.paths {
            // Whoever makes more than can be looked at has made enough to be told of.
            let _ = walk(path, &mut |path, _| {
                let is_below = new.last().is_some_and(|it| path.starts_with(it));
                if !self.entries.contains_key(path) && !is_below {
                    new.push(path.to_owned());
                }
                if new.len() > MOST_ENTRIES { Err(TooMuch) } else { Ok(()) }
            });
        }
        for path in new {
            let Some((root, inner)) = self.place(&path) else {
                continue;
            };
            let shown = inner.to_string_lossy().into_owned();
            if may_differ(&path) || aside.is_known(&path) {
                mended.push(Mended::Left { path: shown });
                continue;
            }
            match aside.put(root, inner) {
                Ok(there) => mended.push(Mended::Back {
                    path: shown,
                    aside: Some(there),
                }),
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => mended.push(Mended::Lost {
                    path: shown,
                    why: error.to_string(),
                }),
            }
        }
    }

    fn place<'a>(&'a self, path: &'a Path) -> Option<(&'a Path, &'a Path)> {
        let roots = self.roots.iter().filter(|it| path.starts_with(it));
        let root = roots.max_by_key(|it| it.as_os_str().len())?;
        Some((root, path.strip_prefix(root).ok()?))
    }
}

impl Entry {
    /// Returns true if the entry looks unchanged to every reader.
    fn is_still(&self, root: &Path, path: &Path, about: &fs::Metadata) -> bool {
        let now = FileMetadata::of(about);
        if now == self.print {
            return true;
        }
        let is_same_kind = now.mode == self.print.mode;
        is_same_kind
            && match &self.what {
                // What is in it is looked at one by one; another folder is as good, unless this one is elsewhere.
                EntryContent::Folder => self.is_itself(about) || self.find(root).is_none(),
                EntryContent::Link(target) => fs::read_link(path).is_ok_and(|it| it == *target),
                EntryContent::File(content) => {
                    now.size == self.print.size
                        && what(path, about, now.size + 1).is_ok_and(|it| it == EntryContent::File(Arc::clone(content)))
                }
                EntryContent::Other => self.is_itself(about),
            }
    }

    fn is_itself(&self, about: &fs::Metadata) -> bool {
        self.print.is_of(about)
    }

    /// Makes it what it was; gives where that is now what stood there.
    fn restore(
        &self,
        root: &Path,
        inner: &Path,
        now: Option<&fs::Metadata>,
        aside: &Quarantine,
    ) -> io::Result<Option<PathBuf>> {
        let name = inner.file_name().ok_or(io::ErrorKind::InvalidInput)?;
        let rights = Mode::from_raw_mode(self.print.rights() as RawMode);
        let at = open::folder_of(root, inner)?;
        let set_rights = || -> io::Result<()> {
            let folder = open::below(root, inner, OFlags::RDONLY | OFlags::DIRECTORY, Mode::empty())?;
            Ok(rustix::fs::fchmod(&folder, rights)?)
        };
        let moved = match (&self.what, now) {
            (EntryContent::Folder, Some(now)) if self.is_itself(now) => return set_rights().map(|()| None),
            (EntryContent::Folder, _) => self.find(root),
            (EntryContent::Link(_) | EntryContent::File(_) | EntryContent::Other, _) => None,
        };
        if self.what == EntryContent::Folder && moved.is_none() && now.is_some_and(fs::Metadata::is_dir) {
            // Another folder in its place is as good, once it holds the same.
            return set_rights().map(|()| None);
        }
        let kept = if now.is_some() {
            Some(aside.put(root, inner)?)
        } else {
            None
        };
        match &self.what {
            EntryContent::Folder => {
                let back = moved.and_then(|it| {
                    let it = it.strip_prefix(root).ok()?.to_owned();
                    let from = open::folder_of(root, &it).ok()?;
                    rustix::fs::renameat(&from, it.file_name()?, &at, name).ok()
                });
                if back.is_none() {
                    rustix::fs::mkdirat(&at, name, rights)?;
                    if STORES.iter().any(|it| name == *it) && name::leads_to_git(inner) {
                        return Err(io::Error::other("what it held was removed, and was not kept"));
                    }
                }
                set_rights()?;
            }
            EntryContent::Link(target) => rustix::fs::symlinkat(target, &at, name)?,
            EntryContent::File(content) => {
                let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
                let file = rustix::fs::openat(&at, name, flags, Mode::RUSR | Mode::WUSR)?;
                let mut file = fs::File::from(file);
                file.write_all(content)?;
                file.set_permissions(fs::Permissions::from_mode(self.print.rights()))?;
            }
            EntryContent::Other => return Err(io::Error::other("it is no regular file")),
        }
        Ok(kept)
    }

    /// Returns the new path of a folder that was moved within the workspace. `None` if it is not found.
    fn find(&self, root: &Path) -> Option<PathBuf> {
        let mut open = vec![root.to_owned()];
        let mut count = 0;
        while let Some(folder) = open.pop() {
            for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
                count += 1;
                if count > MOST_SEARCHED {
                    return None;
                }
                let Ok(about) = fs::symlink_metadata(entry.path()) else {
                    continue;
                };
                if about.is_dir() && self.is_itself(&about) {
                    return Some(entry.path());
                }
                if about.is_dir() {
                    open.push(entry.path());
                }
            }
        }
        None
    }
}

/// Reads the entry at a path. Error: a file of more than `limit` bytes.
fn what(path: &Path, about: &fs::Metadata, limit: u64) -> io::Result<EntryContent> {
    if about.is_dir() {
        return Ok(EntryContent::Folder);
    }
    if about.is_symlink() {
        return fs::read_link(path).map(EntryContent::Link);
    }
    if !about.is_file() {
        return Ok(EntryContent::Other);
    }
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = fs::File::from(rustix::fs::open(path, flags, Mode::empty())?);
    let mut bytes = Vec::new();
    file.take(limit + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > limit {
        return Err(io::ErrorKind::FileTooLarge.into());
    }
    Ok(EntryContent::File(bytes.into()))
}

/// Goes through a path and all below, parents first, without following links and without what git only adds to.
pub fn walk(path: &Path, look: &mut impl FnMut(&Path, &fs::Metadata) -> Result<(), TooMuch>) -> Result<(), TooMuch> {
    let Ok(about) = fs::symlink_metadata(path) else {
        return Ok(());
    };
    look(path, &about)?;
    let is_store = path
        .file_name()
        .is_some_and(|it| STORES.iter().any(|store| it == *store))
        && name::leads_to_git(path);
    if !about.is_dir() || is_store {
        return Ok(());
    }
    let mut below: Vec<_> = fs::read_dir(path).into_iter().flatten().flatten().collect();
    below.sort_by_key(fs::DirEntry::file_name);
    for entry in below {
        walk(&entry.path(), look)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use pretty_assertions::assert_eq;

    use super::*;

    struct Bench {
        _folder: tempfile::TempDir,
        root: PathBuf,
        aside: Quarantine,
    }

    impl Bench {
        fn new() -> Self {
            let folder = tempfile::tempdir().unwrap();
            let base = folder.path().canonicalize().unwrap();
            let root = base.join("work");
            for (path, text) in [
                (".git/HEAD", "ref: refs/heads/main"),
                (".git/config", "[core]"),
                (".git/hooks/pre-commit.sample", "x"),
                (".git/refs/heads/main", "1234"),
                (".git/objects/12/34", "an object"),
                (".vscode/tasks.json", "{}"),
                ("local.toml", "mine"),
                ("a.txt", "x"),
            ] {
                let path = root.join(path);
                fs::create_dir_all(path.parent().unwrap()).unwrap();
                fs::write(path, text).unwrap();
            }
            std::os::unix::fs::symlink("a.txt", root.join(".vscode/link")).unwrap();
            fs::set_permissions(
                root.join(".git/hooks/pre-commit.sample"),
                fs::Permissions::from_mode(0o755),
            )
            .unwrap();
            Self {
                aside: Quarantine::at(Some(base.join("aside"))),
                root,
                _folder: folder,
            }
        }

        fn paths(&self) -> Vec<PathBuf> {
            [".git", ".vscode", "local.toml"].map(|it| self.root.join(it)).to_vec()
        }

        fn look(&self) -> Watch {
            Watch::look(vec![self.root.clone()], self.paths(), None).unwrap()
        }

        /// All that there is, with its content and its mode.
        fn all(&self) -> Vec<String> {
            let mut all = Vec::new();
            walk(&self.root, &mut |path, about| {
                let text = match what(path, about, 1000).unwrap() {
                    EntryContent::File(bytes) => String::from_utf8_lossy(&bytes).into_owned(),
                    other => format!("{other:?}"),
                };
                let inner = path.strip_prefix(&self.root).unwrap().display();
                all.push(format!("{inner} {:o} {text}", about.mode()));
                Ok(())
            })
            .unwrap();
            all.push(fs::read_to_string(self.root.join(".git/objects/12/34")).unwrap());
            all
        }
    }

    fn paths(mended: &[Mended]) -> Vec<&str> {
        let path = |it: &Mended| match it {
            Mended::Back { path, .. }
            | Mended::Lost { path, .. }
            | Mended::Left { path }
            | Mended::Unsure { path }
            | Mended::Packaged { path }
            | Mended::Repository { path }
            | Mended::Opened { path }
            | Mended::Closed { path } => path.clone(),
        };
        mended
            .iter()
            .map(|it| Box::leak(path(it).into_boxed_str()) as &str)
            .collect()
    }

    #[test]
    fn what_is_made_anew_is_not_taken_for_what_is_gone() {
        let bench = Bench::new();
        for name in ["a", "b", "c", "d", "e"] {
            let folder = bench.root.join(".vscode").join(name);
            fs::create_dir_all(&folder).unwrap();
            fs::write(folder.join("file"), name).unwrap();
        }
        let before = bench.all();
        // The numbers of the folders are given out again, in another order each time.
        for round in 0..40 {
            let watch = bench.look();
            fs::remove_dir_all(bench.root.join(".vscode")).unwrap();
            watch.put_back(&bench.aside, |_| false);
            assert_eq!(bench.all(), before, "round {round}");
        }
    }

    #[test]
    fn whatever_a_command_did_to_what_is_protected_is_undone_and_nothing_is_lost() {
        type Attack = (&'static str, &'static [&'static str]);
        let attacks: &[Attack] = &[
            ("true", &[]),
            ("echo y > a.txt; mkdir target; echo x > target/x", &[]),
            ("touch .git/config; cp -p .git/HEAD h; mv h .git/HEAD", &[]),
            ("echo x > .git/objects/12/56", &[]),
            ("echo evil > .git/hooks/post-commit", &[".git/hooks/post-commit"]),
            (
                "echo evil >> .git/config; chmod 600 .git/HEAD",
                &[".git/HEAD", ".git/config"],
            ),
            ("rm -r .vscode", &[".vscode", ".vscode/link", ".vscode/tasks.json"]),
            ("rm .vscode/link; ln -s /etc/passwd .vscode/link", &[".vscode/link"]),
            ("echo evil > local.toml", &["local.toml"]),
            ("mv .git .git2", &[".git"]),
            ("mv .git deep; mkdir .git; echo evil > .git/config", &[".git"]),
            ("mkdir -p x/y; mv .git x/y; ln -s x/y/.git .git", &[".git"]),
            ("mv .git/hooks .git/h2; ln -s /tmp .git/hooks", &[".git/hooks"]),
            ("chmod 755 .vscode; chmod 700 .vscode", &[".vscode"]),
            ("mv .git/objects .git/o2", &[".git/objects"]),
            (
                "rm .git/HEAD; mkdir -p .git/HEAD/deep; echo x > .git/HEAD/deep/x",
                &[".git/HEAD"],
            ),
        ];
        for (attack, expected) in attacks {
            let bench = Bench::new();
            let before: Vec<_> = bench.all();
            let watch = bench.look();
            let done = std::process::Command::new("bash")
                .args(["-ec", attack])
                .current_dir(&bench.root)
                .status();
            assert!(done.unwrap().success(), "{attack}");
            let mended = watch.put_back(&bench.aside, |_| false);
            assert_eq!(paths(&mended), *expected, "{attack}: {mended:?}");
            let free = |it: &String| {
                !["a.txt", "target", "x", "deep"].iter().any(|free| it.starts_with(free)) && !it.starts_with(' ')
            };
            let now: Vec<_> = bench.all().into_iter().filter(free).collect();
            let before: Vec<_> = before.into_iter().filter(free).collect();
            assert_eq!(now, before, "{attack}");
            assert!(watch.put_back(&bench.aside, |_| false).is_empty(), "{attack}");
            for it in mended {
                if let Mended::Back { aside: Some(path), .. } = it {
                    assert!(fs::symlink_metadata(&path).is_ok(), "{attack}: {}", path.display());
                }
            }
        }
    }

    #[test]
    fn what_is_not_kept_is_said_and_what_others_may_do_stays() {
        let bench = Bench::new();
        let watch = bench.look();
        fs::remove_dir_all(bench.root.join(".git/objects")).unwrap();
        let mended = watch.put_back(&bench.aside, |_| false);
        assert!(
            matches!(mended.as_slice(), [Mended::Lost { path, .. }] if path == ".git/objects"),
            "{mended:?}"
        );
        let bench = Bench::new();
        let watch = bench.look();
        fs::write(bench.root.join(".git/HEAD"), "theirs").unwrap();
        fs::write(bench.root.join(".git/new"), "theirs").unwrap();
        fs::write(bench.root.join(".vscode/tasks.json"), "asked for").unwrap();
        fs::write(bench.root.join(".vscode/evil"), "evil").unwrap();
        bench.aside.vouch(&bench.root.join(".vscode/tasks.json"));
        let git = bench.root.join(".git");
        let mended = watch.put_back(&bench.aside, |it| it.starts_with(&git));
        assert_eq!(
            paths(&mended),
            [".git/HEAD", ".vscode/tasks.json", ".git/new", ".vscode/evil"]
        );
        assert_eq!(mended.iter().filter(|it| matches!(it, Mended::Left { .. })).count(), 3);
        assert_eq!(fs::read_to_string(git.join("HEAD")).unwrap(), "theirs");
        assert!(!bench.root.join(".vscode/evil").exists());
    }

    #[test]
    fn what_did_not_change_is_not_read_again_and_too_much_is_not_watched() {
        let bench = Bench::new();
        let first = bench.look();
        fs::write(bench.root.join(".git/config"), "[user]").unwrap();
        let second = Watch::look(vec![bench.root.clone()], bench.paths(), Some(&first)).unwrap();
        let content = |watch: &Watch, path: &str| match &watch.entries[&bench.root.join(path)].what {
            EntryContent::File(content) => Arc::clone(content),
            other => panic!("{other:?}"),
        };
        assert!(Arc::ptr_eq(
            &content(&first, ".git/HEAD"),
            &content(&second, ".git/HEAD")
        ));
        assert_eq!(&*content(&second, ".git/config"), b"[user]");
        let large = fs::File::create(bench.root.join(".git/index")).unwrap();
        large.set_len(MOST_BYTES).unwrap();
        Watch::look(vec![bench.root.clone()], bench.paths(), None).unwrap_err();
    }
}
