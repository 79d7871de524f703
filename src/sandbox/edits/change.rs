//! Changes of files: all of them are made, or none is.
//!
//! A file is written beside its old self and takes its place in one step, so that nobody ever sees half of it. What it was
//! when the change was worked out is compared right before: what somebody else wrote meanwhile is not lost.

use std::{
    collections::BTreeMap,
    ffi::OsStr,
    fs::File,
    io,
    os::{fd::OwnedFd, unix::fs::MetadataExt},
    path::{Path, PathBuf},
    sync::Arc,
};

use rustix::{
    fs::{AtFlags, Mode, OFlags},
    io::Errno,
};

use super::seen_files::Seen;
use crate::{
    protocol::Operation,
    sandbox::{
        checkpoints::{PathContent, PathState},
        files::{
            Located, Place, Refused, open, refusal,
            replace::{FileMetadata, Temporary, sync},
        },
        policy::protected_names as name,
        workspace::Workspace,
    },
};

/// Maximum size of a written file, in bytes: a model that writes more is in a loop.
const MOST_BYTES: u64 = 50 << 20;

/// A change of one file. `old` and `new` are what stands on the disk, byte for byte.
#[derive(Clone, Debug, PartialEq)]
pub struct Change {
    pub file: Located,
    pub operation: Operation,
    /// New location of a renamed file.
    pub to: Option<Located>,
    /// Content when the change was computed; the change is refused if the file has changed since.
    pub old: Option<Arc<[u8]>>,
    /// New content; `None`: the path is deleted. A deleted folder has neither, and must be empty.
    pub new: Option<Arc<[u8]>>,
    /// The places that differ, first to last, as text with `\n`.
    pub hunks: Vec<Hunk>,
    /// The notebook cell whose lines the hunks count. `None`: they count lines of the file.
    pub cell: Option<Cell>,
}

/// A cell of a notebook.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cell {
    /// From 0.
    pub index: usize,
    /// Its source before; `None`: it is a new one.
    pub source: Option<String>,
    /// Language of the cell.
    pub language: String,
}

/// A place that differs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hunk {
    pub old: String,
    pub new: String,
    /// Lines of `old` in the file before, counted from 1, inclusive. An insertion has `end = start - 1`.
    pub start: u64,
    pub end: u64,
}

/// State of a path before a change.
#[derive(Clone)]
enum OldState {
    Nothing,
    Folder,
    File {
        bytes: Arc<[u8]>,
        about: Option<FileMetadata>,
    },
}

/// A path that gets new content.
struct WriteStep<'a> {
    file: &'a Located,
    base: PathBuf,
    was: OldState,
    new: Option<Arc<[u8]>>,
    /// Metadata of the file that this one is renamed from.
    like: Option<FileMetadata>,
}

/// A step that was made, and the folders that were made for it.
struct CompletedStep<'a> {
    step: &'a WriteStep<'a>,
    made: Vec<PathBuf>,
}

impl Workspace {
    /// Makes the changes, or none of them: each is checked before the first is made, and what was made is taken back when
    /// one fails. Waits for the disk.
    pub fn commit(&self, seen: &Seen, changes: &[Change]) -> Result<(), Refused> {
        self.commit_for(seen, "", changes)
    }

    /// The same, as what `call` does: what the files were is kept under its name.
    pub fn commit_for(&self, seen: &Seen, call: &str, changes: &[Change]) -> Result<(), Refused> {
        let mut steps = Vec::new();
        let mut planned = BTreeMap::new();
        for change in changes {
            self.plan(change, &mut planned, &mut steps)?;
        }
        let record = seen.checkpoints().map(|it| (it, it.began(call, kept_of(&steps))));
        let mut done: Vec<CompletedStep<'_>> = Vec::new();
        for step in &steps {
            match step.make() {
                Ok(made) => done.push(CompletedStep { step, made }),
                Err(refused) => {
                    // All are tried; the first that fails is said, because then the files are not as they were.
                    let back = done.iter().rev().map(CompletedStep::undo).fold(Ok(()), Result::and);
                    if let (Some((checkpoints, id)), Ok(())) = (record, &back) {
                        checkpoints.dropped(id);
                    }
                    return Err(back.err().unwrap_or(refused));
                }
            }
        }
        for step in &steps {
            seen.wrote(step.file, step.new.as_deref());
            if step.file.is_protected {
                self.commands().vouch(&step.base, &step.file.path);
            }
        }
        if let Some((checkpoints, id)) = record {
            checkpoints.ended(self, id);
        }
        Ok(())
    }

    /// Checks a change against what is there, or against what the changes before it will have made of it.
    fn plan<'a>(
        &self,
        change: &'a Change,
        planned: &mut BTreeMap<&'a Path, OldState>,
        steps: &mut Vec<WriteStep<'a>>,
    ) -> Result<(), Refused> {
        let file = &change.file;
        let base = self.writable(file)?;
        let was = match planned.get(file.path.as_path()) {
            Some(was) => was.clone(),
            None => self.look(file)?,
        };
        match (&was, &change.old) {
            (OldState::Nothing, None) if change.operation == Operation::Delete => {
                return Err(Refused::Missing(file.shown.clone()));
            }
            (OldState::Nothing, None) => {}
            (OldState::Folder, None) if change.operation == Operation::Delete => {}
            (OldState::Folder, _) => return Err(Refused::Directory(file.shown.clone())),
            (OldState::Nothing, Some(_)) => return Err(Refused::Missing(file.shown.clone())),
            (OldState::File { .. }, None) => return Err(Refused::Exists(file.shown.clone())),
            (OldState::File { bytes, .. }, Some(old)) if bytes != old => {
                return Err(Refused::Stale(file.shown.clone()));
            }
            (OldState::File { .. }, Some(_)) => {}
        }
        if let Some(new) = &change.new
            && new.len() as u64 > MOST_BYTES
        {
            return Err(Refused::Huge {
                path: file.shown.clone(),
                bytes: new.len() as u64,
            });
        }
        let mut push = |file: &'a Located, base, was, new: Option<Arc<[u8]>>, like| {
            let after = new
                .clone()
                .map_or(OldState::Nothing, |bytes| OldState::File { bytes, about: None });
            planned.insert(&file.path, after);
            steps.push(WriteStep {
                file,
                base,
                was,
                new,
                like,
            });
        };
        match &change.to {
            Some(to) if to.path != file.path => {
                let to_base = self.writable(to)?;
                let like = match &was {
                    OldState::File { about, .. } => *about,
                    OldState::Nothing | OldState::Folder => None,
                };
                push(file, base, was, None, None);
                let there = match self.look(to)? {
                    OldState::Nothing => OldState::Nothing,
                    OldState::Folder | OldState::File { .. } => return Err(Refused::Exists(to.shown.clone())),
                };
                push(to, to_base, there, change.new.clone(), like);
                // The new name first: a file that has two names for a moment is better than one that has none.
                let last = steps.len() - 1;
                steps.swap(last - 1, last);
            }
            Some(_) | None => push(file, base, was, change.new.clone(), None),
        }
        Ok(())
    }

    /// Checks that tools may write the file; [`Self::commit`] refuses the same files.
    pub fn may_change(&self, file: &Located) -> Result<(), Refused> {
        self.writable(file).map(drop)
    }

    /// The folder of the workspace that a file may be written in.
    fn writable(&self, file: &Located) -> Result<PathBuf, Refused> {
        match file.place {
            Place::Hidden => return Err(Refused::Hidden(file.shown.clone())),
            Place::Outside => return Err(Refused::Outside(file.shown.clone())),
            Place::Inside | Place::Added => {}
        }
        if self.commands().logs().is_some_and(|it| file.path.starts_with(it)) {
            return Err(Refused::Outside(file.shown.clone()));
        }
        let base = self
            .base(&file.path)
            .ok_or_else(|| Refused::Outside(file.shown.clone()))?;
        if name::leads_to_git(file.path.strip_prefix(&base).unwrap_or(&file.path)) {
            return Err(Refused::Git(file.shown.clone()));
        }
        if file.path == base {
            return Err(Refused::Directory(file.shown.clone()));
        }
        Ok(base)
    }

    fn look(&self, file: &Located) -> Result<OldState, Refused> {
        let found = match self.open_file(file, OFlags::RDONLY | OFlags::NONBLOCK, Mode::empty()) {
            Ok(found) => found,
            Err(error) => {
                return match refusal(file, error) {
                    Refused::Missing(_) => Ok(OldState::Nothing),
                    other => Err(other),
                };
            }
        };
        match open::contents(found, file, MOST_BYTES) {
            Ok((bytes, about)) => Ok(OldState::File {
                bytes: bytes.into(),
                about: Some(FileMetadata::of(&about)),
            }),
            Err(Refused::Directory(_)) => Ok(OldState::Folder),
            Err(other) => Err(other),
        }
    }
}

/// Returns the states of all paths that the steps will write, including folders that they will create.
fn kept_of(steps: &[WriteStep<'_>]) -> Vec<(PathBuf, PathContent)> {
    let mut found: Vec<(PathBuf, PathContent)> = Vec::new();
    for step in steps {
        if step.new.is_some() {
            let folders = step.inner().ancestors().skip(1).filter(|it| !it.as_os_str().is_empty());
            let absent = folders
                .map(|it| step.base.join(it))
                .take_while(|it| std::fs::symlink_metadata(it).is_err());
            for folder in absent {
                if !found.iter().any(|it| it.0 == folder) {
                    found.push((folder, PathContent::NOTHING));
                }
            }
        }
        let was = match &step.was {
            OldState::File { bytes, about } => PathContent::file(Arc::clone(bytes), about.map_or(0o644, |it| it.mode)),
            OldState::Nothing => PathContent::NOTHING,
            OldState::Folder => {
                let mode = std::fs::symlink_metadata(&step.file.path).map_or(0o755, |it| it.mode() & 0o7777);
                PathContent {
                    stand: PathState::Folder { mode },
                    bytes: None,
                }
            }
        };
        // A name that several steps write was what the first of them finds.
        if !found.iter().any(|it| it.0 == step.file.path) {
            found.push((step.file.path.clone(), was));
        }
    }
    found
}

impl WriteStep<'_> {
    /// Returns the opened parent folder and the file name.
    fn place(&self) -> io::Result<(OwnedFd, &OsStr)> {
        let name = self.file.path.file_name().ok_or(io::ErrorKind::InvalidInput)?;
        Ok((open::folder_of(&self.base, self.inner())?, name))
    }

    fn inner(&self) -> &Path {
        self.file.path.strip_prefix(&self.base).unwrap_or(&self.file.path)
    }

    /// Gives the folders that were made.
    fn make(&self) -> Result<Vec<PathBuf>, Refused> {
        let Some(new) = &self.new else {
            return self.remove().map(|()| Vec::new());
        };
        let failed = |error| refused_write(self.file, error);
        let made = open::make_folders(&self.base, self.inner()).map_err(failed)?;
        let written = (|| {
            let (folder, name) = self.place().map_err(failed)?;
            let like = match &self.was {
                OldState::File { about, .. } => about.or(self.like),
                OldState::Nothing | OldState::Folder => self.like,
            };
            if matches!(self.was, OldState::File { about: Some(_), .. }) {
                rustix::fs::accessat(&folder, name, rustix::fs::Access::WRITE_OK, AtFlags::empty())
                    .map_err(|it| failed(it.into()))?;
            }
            let temporary = Temporary::filled(&folder, name, new, like).map_err(failed)?;
            self.check_again(&folder, name)?;
            temporary
                .settle(name, matches!(self.was, OldState::Nothing))
                .map_err(failed)
        })();
        if written.is_err() {
            open::remove_folders(&made);
        }
        written.map(|()| made)
    }

    fn remove(&self) -> Result<(), Refused> {
        let failed = |error| refused_write(self.file, error);
        let (folder, name) = self.place().map_err(failed)?;
        self.check_again(&folder, name)?;
        let flags = match self.was {
            OldState::Folder => AtFlags::REMOVEDIR,
            OldState::Nothing | OldState::File { .. } => AtFlags::empty(),
        };
        rustix::fs::unlinkat(&folder, name, flags).map_err(|error| match error {
            Errno::NOTEMPTY | Errno::EXIST => Refused::Directory(self.file.shown.clone()),
            other => failed(other.into()),
        })?;
        sync(folder);
        Ok(())
    }

    /// Compares the path with its earlier state once more; no system call closes the moment that is left.
    fn check_again(&self, folder: &OwnedFd, name: &OsStr) -> Result<(), Refused> {
        let OldState::File { about: Some(about), .. } = &self.was else {
            return Ok(());
        };
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let now = rustix::fs::openat(folder, name, flags, Mode::empty()).map_err(io::Error::from);
        let now = now
            .and_then(|it| File::from(it).metadata())
            .map(|it| FileMetadata::of(&it));
        match now {
            Ok(now) if now == *about => Ok(()),
            Ok(_) => Err(Refused::Stale(self.file.shown.clone())),
            Err(error) => Err(refused_write(self.file, error)),
        }
    }
}

impl CompletedStep<'_> {
    fn undo(&self) -> Result<(), Refused> {
        let step = self.step;
        let back = || -> io::Result<()> {
            let (folder, name) = step.place()?;
            match &step.was {
                OldState::Nothing => {
                    rustix::fs::unlinkat(&folder, name, AtFlags::empty())?;
                    open::remove_folders(&self.made);
                }
                OldState::Folder => rustix::fs::mkdirat(&folder, name, Mode::from_raw_mode(0o777))?,
                OldState::File { bytes, about } => {
                    Temporary::filled(&folder, name, bytes, about.or(step.like))?.settle(name, false)?;
                }
            }
            Ok(())
        };
        back().map_err(|source| Refused::Torn {
            path: step.file.shown.clone(),
            source,
        })
    }
}

/// The refusal for an error of writing, where a folder in the way is no file that is absent.
fn refused_write(file: &Located, error: io::Error) -> Refused {
    match error.kind() {
        io::ErrorKind::NotADirectory => Refused::Failed {
            path: file.shown.clone(),
            source: error,
        },
        io::ErrorKind::AlreadyExists => Refused::Exists(file.shown.clone()),
        _ => refusal(file, error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sandbox::workspace::tests::{Ground, pipe};
    use pretty_assertions::assert_eq;
    use std::{
        fs,
        os::unix::fs::{PermissionsExt, symlink},
    };

    fn bytes(text: &str) -> Arc<[u8]> {
        Arc::from(text.as_bytes())
    }

    /// A change as a tool would work it out: `None` is nothing.
    fn change(workspace: &Workspace, written: &str, old: Option<&str>, new: Option<&str>) -> Change {
        let operation = match (old, new) {
            (None, Some(_)) => Operation::Create,
            (_, None) => Operation::Delete,
            (Some(_), Some(_)) => Operation::Edit,
        };
        Change {
            file: workspace.locate(written).unwrap(),
            operation,
            to: None,
            old: old.map(bytes),
            new: new.map(bytes),
            hunks: Vec::new(),
            cell: None,
        }
    }

    fn renamed(workspace: &Workspace, from: &str, to: &str, text: &str) -> Change {
        Change {
            operation: Operation::Rename,
            to: Some(workspace.locate(to).unwrap()),
            ..change(workspace, from, Some(text), Some(text))
        }
    }

    /// Every name below the workspace's folder and what a file holds.
    fn tree(ground: &Ground) -> BTreeMap<String, String> {
        fn add(folder: &Path, base: &Path, found: &mut BTreeMap<String, String>) {
            for entry in fs::read_dir(folder).unwrap() {
                let path = entry.unwrap().path();
                let name = path.strip_prefix(base).unwrap().to_string_lossy().into_owned();
                let about = fs::symlink_metadata(&path).unwrap();
                if about.is_dir() {
                    found.insert(name, "/".to_owned());
                    add(&path, base, found);
                } else if about.is_file() {
                    found.insert(name, String::from_utf8_lossy(&fs::read(&path).unwrap()).into_owned());
                } else {
                    found.insert(name, "special".to_owned());
                }
            }
        }
        let mut found = BTreeMap::new();
        let base = ground.path("shop");
        add(&base, &base, &mut found);
        found
    }

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).unwrap().permissions().mode() & 0o7777
    }

    #[test]
    fn files_are_made_changed_moved_and_removed_in_one_go() {
        let ground = Ground::new();
        ground.put("shop/edited", "old\r\n");
        ground.put("shop/gone", "x");
        ground.put("shop/from", "same");
        fs::create_dir(ground.path("shop/empty")).unwrap();
        fs::set_permissions(ground.path("shop/from"), fs::Permissions::from_mode(0o750)).unwrap();
        let workspace = ground.workspace();
        let seen = Seen::default();
        let changes = [
            change(&workspace, "edited", Some("old\r\n"), Some("\u{feff}new\r\nlast")),
            change(&workspace, "new/deep/file", None, Some("")),
            change(&workspace, "gone", Some("x"), None),
            change(&workspace, "empty", None, None),
            renamed(&workspace, "from", "moved/to", "same"),
        ];
        workspace.commit(&seen, &changes).unwrap();
        let expected = [
            ("edited", "\u{feff}new\r\nlast"),
            ("moved", "/"),
            ("moved/to", "same"),
            ("new", "/"),
            ("new/deep", "/"),
            ("new/deep/file", ""),
        ];
        let expected: BTreeMap<_, _> = expected.map(|(name, text)| (name.to_owned(), text.to_owned())).into();
        assert_eq!(tree(&ground), expected);
        assert_eq!(mode(&ground.path("shop/moved/to")), 0o750);
        let changed: Vec<_> = seen.changed();
        assert_eq!(
            changed,
            ["shop/edited", "shop/moved/to", "shop/new/deep/file"].map(|it| ground.path(it))
        );
        let edited = workspace.locate("edited").unwrap();
        seen.check(&edited, "\u{feff}new\r\nlast".as_bytes()).unwrap();
    }

    #[test]
    fn modes_and_links_stay_and_new_files_follow_the_umask() {
        let ground = Ground::new();
        ground.put("shop/script", "a");
        ground.put("shop/real/file", "a");
        ground.link("shop/link", "real/file");
        let workspace = ground.workspace();
        for kept in [0o755, 0o600, 0o644, 0o4755] {
            fs::set_permissions(ground.path("shop/script"), fs::Permissions::from_mode(kept)).unwrap();
            let now = fs::read_to_string(ground.path("shop/script")).unwrap();
            let next = format!("{now}b");
            workspace
                .commit(
                    &Seen::default(),
                    &[change(&workspace, "script", Some(&now), Some(&next))],
                )
                .unwrap();
            assert_eq!(mode(&ground.path("shop/script")), kept);
        }
        let through = change(&workspace, "link", Some("a"), Some("b"));
        let new = change(&workspace, "plain", None, Some("x"));
        workspace.commit(&Seen::default(), &[through, new]).unwrap();
        assert!(fs::symlink_metadata(ground.path("shop/link")).unwrap().is_symlink());
        assert_eq!(fs::read_to_string(ground.path("shop/real/file")).unwrap(), "b");
        fs::File::create(ground.path("shop/usual")).unwrap();
        assert_eq!(mode(&ground.path("shop/plain")), mode(&ground.path("shop/usual")));
    }

    #[test]
    fn nothing_changes_when_one_of_several_cannot() {
        let ground = Ground::new();
        ground.put("shop/one", "1");
        ground.put("shop/stale", "changed meanwhile");
        ground.put("shop/there", "x");
        ground.put("shop/folder/file", "x");
        ground.put("shop/.git/config", "x");
        ground.put("shop/.env", "x");
        ground.put("shop/huge", "x");
        ground.put("other/file", "x");
        pipe(&ground.path("shop/pipe"));
        ground.link("shop/out", ground.path("other/file"));
        ground.link("shop/dangling", ground.path("other/new"));
        let workspace = ground.workspace();
        let before = tree(&ground);
        let huge = "x".repeat(usize::try_from(MOST_BYTES).unwrap() + 1);
        let good = || {
            vec![
                change(&workspace, "one", Some("1"), Some("2")),
                change(&workspace, "new/file", None, Some("x")),
            ]
        };
        for (bad, expected) in [
            (change(&workspace, "stale", Some("as it was"), Some("y")), "Stale"),
            (change(&workspace, "stale", Some("as it was"), None), "Stale"),
            (change(&workspace, "there", None, Some("y")), "Exists"),
            (change(&workspace, "absent", Some("x"), Some("y")), "Missing"),
            (change(&workspace, "absent", Some("x"), None), "Missing"),
            (change(&workspace, "absent", None, None), "Missing"),
            (change(&workspace, "folder", None, Some("y")), "Directory"),
            (change(&workspace, "folder", Some("x"), Some("y")), "Directory"),
            (change(&workspace, "folder", None, None), "Directory"),
            (change(&workspace, ".", None, None), "Directory"),
            (change(&workspace, "there/below", None, Some("y")), "Failed"),
            (change(&workspace, "pipe", None, Some("y")), "Special"),
            (change(&workspace, ".git/config", Some("x"), Some("y")), "Git"),
            (change(&workspace, "sub/.GIT/hooks/x", None, Some("y")), "Git"),
            (change(&workspace, ".git", None, Some("y")), "Git"),
            (change(&workspace, ".env", Some("x"), Some("y")), "Hidden"),
            (change(&workspace, "../other/file", Some("x"), Some("y")), "Outside"),
            (change(&workspace, "out", Some("x"), Some("y")), "Outside"),
            (change(&workspace, "dangling", None, Some("y")), "Outside"),
            (change(&workspace, "huge", Some("x"), Some(&huge)), "Huge"),
            (renamed(&workspace, "there", "stale", "x"), "Exists"),
            (renamed(&workspace, "there", "../other/new", "x"), "Outside"),
            (renamed(&workspace, "there", ".git/x", "x"), "Git"),
        ] {
            let seen = Seen::default();
            // First and last: what was checked before it and what comes after it.
            for first in [true, false] {
                let mut changes = good();
                changes.insert(if first { 0 } else { 2 }, bad.clone());
                let error = workspace.commit(&seen, &changes).unwrap_err();
                let named = format!("{error:?}");
                assert!(
                    named.starts_with(expected),
                    "{} wants {expected}: {named}",
                    bad.file.shown
                );
                assert_eq!(tree(&ground), before, "{}", bad.file.shown);
                assert_eq!(seen.known(), Vec::<PathBuf>::new());
            }
        }
    }

    #[test]
    fn what_was_made_is_taken_back_when_a_later_file_fails() {
        let ground = Ground::new();
        ground.put("shop/edited", "old");
        ground.put("shop/deleted", "x");
        ground.put("shop/from", "y");
        fs::create_dir(ground.path("shop/empty")).unwrap();
        fs::set_permissions(ground.path("shop/deleted"), fs::Permissions::from_mode(0o711)).unwrap();
        let workspace = ground.workspace();
        let before = tree(&ground);
        // That a file cannot become a folder shows only when the first of the two is made.
        let changes = [
            change(&workspace, "edited", Some("old"), Some("new")),
            change(&workspace, "deleted", Some("x"), None),
            change(&workspace, "empty", None, None),
            change(&workspace, "made/for/it", None, Some("x")),
            renamed(&workspace, "from", "to", "y"),
            change(&workspace, "a", None, Some("x")),
            change(&workspace, "a/b", None, Some("x")),
        ];
        let error = workspace.commit(&Seen::default(), &changes).unwrap_err();
        assert!(
            matches!(error, Refused::Failed { .. } | Refused::Exists(_)),
            "{error:?}"
        );
        assert_eq!(tree(&ground), before);
        assert_eq!(mode(&ground.path("shop/deleted")), 0o711);
    }

    #[test]
    fn several_changes_of_one_file_build_on_each_other() {
        let ground = Ground::new();
        ground.put("shop/file", "1");
        let workspace = ground.workspace();
        let changes = [
            change(&workspace, "file", Some("1"), Some("2")),
            change(&workspace, "file", Some("2"), Some("3")),
            change(&workspace, "new", None, Some("x")),
            change(&workspace, "new", Some("x"), None),
        ];
        workspace.commit(&Seen::default(), &changes).unwrap();
        let expected = BTreeMap::from([("file".to_owned(), "3".to_owned())]);
        assert_eq!(tree(&ground), expected);
        let error = workspace
            .commit(
                &Seen::default(),
                &[
                    change(&workspace, "file", Some("3"), Some("4")),
                    change(&workspace, "file", Some("3"), Some("5")),
                ],
            )
            .unwrap_err();
        assert!(matches!(error, Refused::Stale(_)), "{error:?}");
        assert_eq!(tree(&ground), expected);
    }

    #[test]
    fn what_changes_between_the_look_and_the_step_is_not_lost() {
        let ground = Ground::new();
        let path = ground.put("shop/file", "old");
        let workspace = ground.workspace();
        let change = change(&workspace, "file", Some("old"), Some("new"));
        type Meddle = fn(&Path, &Path);
        let cases: [(&str, Meddle); 4] = [
            ("written", |path, _| fs::write(path, "sneaky").unwrap()),
            ("replaced", |path, other| {
                fs::write(other, "sneaky").unwrap();
                fs::rename(other, path).unwrap();
            }),
            ("a link", |path, other| {
                fs::remove_file(path).unwrap();
                symlink(other, path).unwrap();
            }),
            ("gone", |path, _| fs::remove_file(path).unwrap()),
        ];
        for (name, meddle) in cases {
            fs::remove_file(&path).ok();
            fs::write(&path, "old").unwrap();
            let other = ground.put("other/file", "theirs");
            let mut steps = Vec::new();
            workspace.plan(&change, &mut BTreeMap::new(), &mut steps).unwrap();
            meddle(&path, &other);
            let error = steps[0].make().unwrap_err();
            assert!(
                matches!(error, Refused::Stale(_) | Refused::Missing(_)),
                "{name}: {error:?}"
            );
            assert_ne!(fs::read_to_string(&path).ok().as_deref(), Some("new"), "{name}");
            assert_ne!(fs::read_to_string(&other).ok().as_deref(), Some("new"), "{name}");
            assert!(tree(&ground).len() <= 1, "{name}: nothing is left beside it");
        }
        // A name that was free is not taken from whoever took it.
        fs::remove_file(&path).ok();
        let fresh = super::tests::change(&workspace, "file", None, Some("new"));
        let mut steps = Vec::new();
        workspace.plan(&fresh, &mut BTreeMap::new(), &mut steps).unwrap();
        fs::write(&path, "theirs").unwrap();
        assert!(matches!(steps[0].make(), Err(Refused::Exists(_))));
        assert_eq!(fs::read_to_string(&path).unwrap(), "theirs");
    }

    #[test]
    fn the_longest_names_can_be_written_and_an_added_folder_too() {
        let ground = Ground::new();
        let workspace = ground.workspace();
        let long = "n".repeat(255);
        let changes = [
            change(&workspace, &long, None, Some("x")),
            change(&workspace, "../added/file", None, Some("x")),
        ];
        workspace.commit(&Seen::default(), &changes).unwrap();
        assert_eq!(fs::read_to_string(ground.path("shop").join(long)).unwrap(), "x");
        assert_eq!(fs::read_to_string(ground.path("added/file")).unwrap(), "x");
    }
}
