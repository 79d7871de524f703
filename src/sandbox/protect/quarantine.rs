//! Quarantine of files that a command created without permission, and the record of those that the user wanted.
//!
//! Nothing of it is ever removed: who made a file cannot always be told, and it may be the user's. What our own tools wrote
//! because the user said so is known by what the system says of it, also by other programs of ours in the same workspace.

use std::{
    collections::BTreeSet,
    ffi::{OsStr, OsString},
    fs, io,
    io::Write as _,
    os::{fd::AsFd, unix::fs::MetadataExt as _},
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
};

use rustix::io::Errno;

use crate::{os::file, sandbox::files::open};

/// The list of what is vouched for begins anew from here on: it matters while a command runs.
const LONGEST_LIST: u64 = 64 << 10;
/// Name of the list in the folder.
const LIST: &str = "known";

/// The place of one conversation, or of all: it lives in the folder of the program's state.
#[derive(Clone, Debug, Default)]
pub struct Quarantine {
    /// None: a folder for temporary files, which nobody cleans up but the machine.
    folder: Option<PathBuf>,
    known: Arc<Mutex<BTreeSet<FileIdentity>>>,
}

/// Metadata that identify a file in a state; every change of the file changes them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct FileIdentity {
    pub device: u64,
    pub inode: u64,
    /// Seconds and nanoseconds since the Unix epoch.
    pub changed: (i64, i64),
}

impl FileIdentity {
    /// `None`: there is no such file.
    pub fn of(path: &Path) -> Option<Self> {
        let about = fs::symlink_metadata(path).ok()?;
        Some(Self {
            device: about.dev(),
            inode: about.ino(),
            changed: (about.ctime(), about.ctime_nsec()),
        })
    }

    /// Device, inode, and the time of the last change in seconds and nanoseconds.
    pub fn line(self) -> String {
        let Self {
            device,
            inode,
            changed: (seconds, nanoseconds),
        } = self;
        format!("{device} {inode} {seconds} {nanoseconds}\n")
    }
}

impl Quarantine {
    pub fn at(folder: Option<PathBuf>) -> Self {
        Self {
            folder,
            known: Arc::default(),
        }
    }

    /// Records that the user wanted the file as it is: it is not quarantined until it changes.
    pub fn vouch(&self, path: &Path) {
        let Some(mark) = FileIdentity::of(path) else { return };
        self.known.lock().unwrap_or_else(PoisonError::into_inner).insert(mark);
        let Some(list) = self.list() else { return };
        let written = (|| -> io::Result<()> {
            self.make()?;
            if fs::metadata(&list).is_ok_and(|it| it.len() > LONGEST_LIST) {
                fs::remove_file(&list)?;
            }
            let mut list = file::append(&list).map_err(io::Error::other)?;
            list.write_all(mark.line().as_bytes())
        })();
        if let Err(error) = written {
            tracing::warn!(%error, "other programs cannot be told what the user wanted");
        }
    }

    /// Returns true if the user wanted the file as it is.
    pub fn is_known(&self, path: &Path) -> bool {
        let Some(mark) = FileIdentity::of(path) else {
            return false;
        };
        if self
            .known
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .contains(&mark)
        {
            return true;
        }
        let listed = self.list().and_then(|it| file::read(&it, LONGEST_LIST * 2).ok());
        let line = mark.line();
        listed.is_some_and(|it| it.split_inclusive(|it| *it == b'\n').any(|it| it == line.as_bytes()))
    }

    /// Takes `inner` away from `root` without following any link; gives where it is now.
    pub fn put(&self, root: &Path, inner: &Path) -> io::Result<PathBuf> {
        let name = inner.file_name().ok_or(io::ErrorKind::InvalidInput)?;
        let from = open::folder_of(root, inner)?;
        let kept = unused(name);
        // Who cannot make the folder keeps it in the workspace, under a name that means nothing.
        let there = self.make().and_then(|it| {
            rustix::fs::renameat(&from, name, rustix::fs::CWD, it.join(&kept))?;
            Ok(it.join(&kept))
        });
        match there {
            Ok(path) => Ok(path),
            Err(error) if error.kind() == io::ErrorKind::NotFound && !exists(&from, name) => Err(error),
            Err(_) => {
                let top = rustix::fs::open(
                    root,
                    rustix::fs::OFlags::RDONLY | rustix::fs::OFlags::DIRECTORY | rustix::fs::OFlags::CLOEXEC,
                    rustix::fs::Mode::empty(),
                )?;
                rustix::fs::renameat(&from, name, &top, &kept)?;
                Ok(root.join(&kept))
            }
        }
    }

    /// Moves what [`Self::put`] took away back to `inner`, unless something is there.
    pub fn take_back(kept: &Path, root: &Path, inner: &Path) -> io::Result<()> {
        let name = inner.file_name().ok_or(io::ErrorKind::InvalidInput)?;
        let folder = open::folder_of(root, inner)?;
        if exists(&folder, name) {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        Ok(rustix::fs::renameat(rustix::fs::CWD, kept, &folder, name)?)
    }

    /// The folder of what is put aside. `None`: one for temporary files.
    pub fn folder(&self) -> Option<&Path> {
        self.folder.as_deref()
    }

    fn make(&self) -> io::Result<PathBuf> {
        let folder = match &self.folder {
            Some(folder) => folder.clone(),
            None => std::env::temp_dir().join(format!("sheaf-aside-{}", rustix::process::getuid().as_raw())),
        };
        file::private_folder(&folder).map_err(io::Error::other)?;
        Ok(folder)
    }

    fn list(&self) -> Option<PathBuf> {
        self.folder.as_ref().map(|it| it.join(LIST))
    }
}

fn exists(folder: impl AsFd, name: &OsStr) -> bool {
    let found = rustix::fs::statat(folder, name, rustix::fs::AtFlags::SYMLINK_NOFOLLOW);
    !matches!(found, Err(Errno::NOENT))
}

/// A name that nothing has, that means nothing and says what it was.
fn unused(name: &OsStr) -> OsString {
    let chance = uuid::Uuid::new_v4().simple().to_string();
    let mut kept = OsString::from("aside-");
    kept.push(chance.get(..8).unwrap_or_default());
    kept.push("-");
    kept.push(name.to_string_lossy().trim_start_matches('.'));
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_user_wanted_is_known_to_all_until_somebody_changes_it() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join(".mcp.json");
        fs::write(&file, "mine").unwrap();
        let place = || Quarantine::at(Some(folder.path().join("state")));
        let (ours, theirs, nowhere) = (place(), place(), Quarantine::default());
        assert!(!ours.is_known(&file));
        ours.vouch(&file);
        assert!(ours.is_known(&file) && theirs.is_known(&file));
        assert!(!nowhere.is_known(&file), "without a folder nothing is shared");
        fs::write(&file, "evil").unwrap();
        assert!(!ours.is_known(&file) && !theirs.is_known(&file));
        // A list that grows begins anew.
        fs::write(folder.path().join("state/known"), vec![b'1'; 70 << 10]).unwrap();
        ours.vouch(&file);
        assert!(theirs.is_known(&file));
        assert!(fs::metadata(folder.path().join("state/known")).unwrap().len() < 100);
    }

    #[test]
    fn what_is_put_aside_is_moved_and_no_link_is_followed() {
        let folder = tempfile::tempdir().unwrap();
        let base = folder.path().canonicalize().unwrap();
        let (root, out) = (base.join("work"), base.join("out"));
        for path in [&root, &out] {
            fs::create_dir(path).unwrap();
        }
        fs::write(out.join("file"), "theirs").unwrap();
        std::os::unix::fs::symlink(&out, root.join("link")).unwrap();
        let aside = Quarantine::at(Some(base.join("aside")));
        aside.put(&root, "link/file".as_ref()).unwrap_err();
        let link = aside.put(&root, "link".as_ref()).unwrap();
        assert!(link.is_symlink() && out.join("file").exists());
        fs::write(root.join(".envrc"), "x").unwrap();
        let kept = aside.put(&root, ".envrc".as_ref()).unwrap();
        assert_eq!(fs::read_to_string(&kept).unwrap(), "x");
        assert!(kept.to_string_lossy().ends_with("-envrc") && !root.join(".envrc").exists());
        assert_eq!(
            aside.put(&root, ".envrc".as_ref()).unwrap_err().kind(),
            io::ErrorKind::NotFound
        );
        // Where the folder cannot be made, it stays in the workspace and means nothing there.
        fs::write(base.join("no"), "").unwrap();
        fs::write(root.join(".envrc"), "x").unwrap();
        let stuck = Quarantine::at(Some(base.join("no/folder")));
        let kept = stuck.put(&root, ".envrc".as_ref()).unwrap();
        assert_eq!(kept.parent(), Some(root.as_path()));
    }
}
