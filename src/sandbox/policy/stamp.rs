//! Metadata by which a change of a file or a folder is noticed, whatever a command does to its times.

use std::{
    fs, io,
    os::unix::fs::MetadataExt as _,
    path::Path,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

/// Time after a change in which another one may not show in the time of the file.
pub const TICK: Duration = Duration::from_millis(20);
/// The same on file systems that know whole seconds only.
const LONG_TICK: Duration = Duration::from_secs(2);

/// Metadata of what is at a path, and, if that is a link, of what it leads to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stamp {
    own: FileState,
    /// `None`: it is no link, or leads nowhere.
    target: Option<FileState>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct FileState {
    device: u64,
    inode: u64,
    changed: (i64, i64),
}

impl FileState {
    fn of(about: &fs::Metadata) -> Self {
        Self {
            device: about.dev(),
            inode: about.ino(),
            changed: (about.ctime(), about.ctime_nsec()),
        }
    }

    fn is_fresh(self) -> bool {
        let (seconds, nanoseconds) = (
            u64::try_from(self.changed.0).unwrap_or_default(),
            u32::try_from(self.changed.1).unwrap_or_default(),
        );
        let changed = UNIX_EPOCH + Duration::new(seconds, nanoseconds);
        let tick = if nanoseconds == 0 { LONG_TICK } else { TICK };
        SystemTime::now().duration_since(changed).map_or(true, |it| it < tick)
    }
}

impl Stamp {
    pub fn of(path: &Path) -> io::Result<Self> {
        let own = fs::symlink_metadata(path)?;
        let target = own.is_symlink().then(|| fs::metadata(path).ok()).flatten();
        Ok(Self {
            own: FileState::of(&own),
            target: target.as_ref().map(FileState::of),
        })
    }

    /// Returns true if it may change from now on without its stamp showing it.
    pub fn is_fresh(self) -> bool {
        self.own.is_fresh() || self.target.is_some_and(FileState::is_fresh)
    }
}

/// State of a file just before it was read, so that what is known from it can be kept until it changes.
#[derive(Clone, Copy, Debug)]
pub struct Reading {
    /// `None`: there was no file.
    stamp: Option<Stamp>,
    is_fresh: bool,
}

impl Reading {
    /// To be called before the file is read: what changes in between is read again.
    pub fn before(path: &Path) -> Self {
        let stamp = Stamp::of(path).ok();
        Self {
            stamp,
            is_fresh: stamp.is_some_and(Stamp::is_fresh),
        }
    }

    /// Returns true if the file would be read as it was.
    pub fn is_current(&self, path: &Path) -> bool {
        !self.is_fresh && Stamp::of(path).ok() == self.stamp
    }

    /// Returns true if both readings were of the same state.
    pub fn is_like(&self, other: &Self) -> bool {
        self.stamp == other.stamp
    }
}
