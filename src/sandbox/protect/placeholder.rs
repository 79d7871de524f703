//! Empty folders that stand where something protected could be made while a command runs.
//!
//! Nothing can be mounted over a name that does not exist, so it exists meanwhile. Git and editors take no notice of an empty
//! folder. Commands share them, also those of other programs of ours: each holds a lock that goes with it, and whoever is
//! the last takes the folder away. What a crash has left is known by its mode, and goes with the next one who looks.

use std::{
    fs::{self, File},
    io,
    os::unix::fs::{DirBuilderExt as _, MetadataExt as _, PermissionsExt as _},
    path::{Path, PathBuf},
    time::Duration,
};

use rustix::fs::{FlockOperation, Mode, OFlags};

/// Nobody else gives a folder that only its owner writes the sign of one that many write. It is there from the first
/// moment, whatever the mask leaves of the rest.
const MODE: u32 = 0o1755;
pub const SIGN: u32 = 0o1000;
const WRITTEN_BY_OTHERS: u32 = 0o022;
/// Maximum attempts when another process removes the folder at the same moment.
const TRIES: usize = 100;
/// The first of them without a pause.
const AT_ONCE: usize = 10;
const PAUSE: Duration = Duration::from_millis(1);

/// The places that one command holds.
#[derive(Debug, Default)]
pub struct Places(Vec<(PathBuf, File)>);

impl Places {
    /// Makes those of `names` that do not exist. What cannot be made is left out.
    pub fn make(names: Vec<PathBuf>) -> Self {
        let held = names.into_iter().filter_map(|path| {
            let held = hold(&path).unwrap_or_else(|error| {
                tracing::debug!(%error, path = %path.display(), "an empty folder cannot be made");
                None
            })?;
            Some((path, held))
        });
        Self(held.collect())
    }

    pub fn paths(&self) -> impl Iterator<Item = &Path> {
        self.0.iter().map(|it| it.0.as_path())
    }

    /// Returns true if the folder at `path` is one of these.
    pub fn hold(&self, path: &Path) -> bool {
        self.0.iter().any(|it| it.0 == path && is_at(&it.1, path))
    }

    /// The command has ended.
    pub fn leave(&mut self) {
        for (path, held) in self.0.drain(..) {
            take_away(&path, &held);
        }
    }
}

impl Drop for Places {
    fn drop(&mut self) {
        self.leave();
    }
}

/// Returns true if an empty folder that stands for a name is at `path`, whoever holds it.
pub fn is_place(path: &Path) -> bool {
    let is_folder = fs::symlink_metadata(path).is_ok_and(|it| it.is_dir());
    is_folder && matches!(open(path), Ok(Some(_)))
}

/// Takes away what a program that was killed has left, where nobody holds it.
pub fn sweep(names: impl Iterator<Item = PathBuf>) {
    for path in names {
        if let Ok(Some(folder)) = open(&path)
            && rustix::fs::flock(&folder, FlockOperation::NonBlockingLockShared).is_ok()
        {
            take_away(&path, &folder);
        }
    }
}

/// Holds the folder at `path`, which is made if need be; none where something else stands there.
fn hold(path: &Path) -> io::Result<Option<File>> {
    for attempt in 0..TRIES {
        match fs::DirBuilder::new().mode(MODE).create(path) {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
        }
        let folder = match open(path) {
            Ok(Some(folder)) => folder,
            Ok(None) => return Ok(None),
            // It has just been taken away.
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            Err(error) => return Err(error),
        };
        match rustix::fs::flock(&folder, FlockOperation::NonBlockingLockShared) {
            Ok(()) if is_at(&folder, path) => return Ok(Some(folder)),
            // Somebody is about to take it away, or has.
            Ok(()) | Err(rustix::io::Errno::WOULDBLOCK) if attempt < AT_ONCE => std::thread::yield_now(),
            // Whoever does may have been put aside by the scheduler: those who wait must not use up their tries meanwhile.
            Ok(()) | Err(rustix::io::Errno::WOULDBLOCK) => std::thread::sleep(PAUSE),
            Err(error) => return Err(error.into()),
        }
    }
    Err(io::ErrorKind::WouldBlock.into())
}

/// The folder at `path` if it is one of ours.
fn open(path: &Path) -> io::Result<Option<File>> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let folder = match rustix::fs::open(path, flags, Mode::empty()) {
        Ok(folder) => File::from(folder),
        // A file, or a link.
        Err(rustix::io::Errno::NOTDIR | rustix::io::Errno::LOOP | rustix::io::Errno::ACCESS) => return Ok(None),
        Err(error) => return Err(error.into()),
    };
    let mode = folder.metadata()?.mode();
    let has_sign = mode & SIGN != 0 && mode & WRITTEN_BY_OTHERS == 0;
    Ok((has_sign && fs::read_dir(path)?.next().is_none()).then_some(folder))
}

/// Returns true if the opened folder is still at `path`.
fn is_at(folder: &File, path: &Path) -> bool {
    let (Ok(held), Ok(there)) = (folder.metadata(), fs::symlink_metadata(path)) else {
        return false;
    };
    (held.dev(), held.ino()) == (there.dev(), there.ino())
}

/// Removes the folder if nobody else holds it. What the user has put in it stays, and the sign goes.
fn take_away(path: &Path, held: &File) {
    if rustix::fs::flock(held, FlockOperation::NonBlockingLockExclusive).is_err() || !is_at(held, path) {
        return;
    }
    match fs::remove_dir(path) {
        Ok(()) => {}
        Err(error) if error.kind() == io::ErrorKind::DirectoryNotEmpty => {
            fs::set_permissions(path, fs::Permissions::from_mode(0o755)).ok();
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => tracing::warn!(%error, path = %path.display(), "an empty folder remains"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_shared_and_the_last_takes_them_away() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        fs::create_dir(path(".vscode")).unwrap();
        fs::write(path(".idea"), "").unwrap();
        std::os::unix::fs::symlink("nowhere", path(".husky")).unwrap();
        let names = || {
            [".git", ".vscode", ".idea", ".husky", "no/such/.git"]
                .map(path)
                .to_vec()
        };
        let mut first = Places::make(names());
        let mut second = Places::make(names());
        for places in [&first, &second] {
            assert_eq!(places.paths().collect::<Vec<_>>(), [path(".git")]);
        }
        first.leave();
        assert!(path(".git").is_dir());
        // Who only looks for what was left takes nothing from those who hold it.
        sweep(names().into_iter());
        assert!(path(".git").is_dir());
        second.leave();
        assert!(!path(".git").exists() && path(".vscode").is_dir() && path(".idea").is_file());
        // What the user has filled meanwhile stays, and is the user's.
        let third = Places::make(names());
        fs::write(path(".git/HEAD"), "").unwrap();
        drop(third);
        assert!(path(".git/HEAD").is_file());
        assert_eq!(fs::metadata(path(".git")).unwrap().mode() & 0o7777, 0o755);
    }

    #[test]
    fn what_a_crash_has_left_goes_and_an_empty_folder_of_the_users_stays() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        let names = || [".git", ".vscode"].map(path).to_vec();
        fs::create_dir(path(".vscode")).unwrap();
        let left = Places::make(names());
        // As the kernel does with the locks of whoever is killed.
        for (_, lock) in &left.0 {
            rustix::fs::flock(lock, FlockOperation::Unlock).unwrap();
        }
        sweep(names().into_iter());
        assert!(!path(".git").exists() && path(".vscode").is_dir());
        std::mem::forget(left);
    }

    #[test]
    fn many_at_once_leave_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(".git");
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    for _ in 0..200 {
                        let places = Places::make(vec![path.clone()]);
                        assert_eq!(places.paths().count(), 1);
                        assert!(path.is_dir());
                    }
                });
            }
        });
        sweep([path.clone()].into_iter());
        assert!(!path.exists());
    }
}
