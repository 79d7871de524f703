//! Replacing a file in one step: the new bytes are written beside it and take its name.

use std::{
    collections::HashSet,
    ffi::{OsStr, OsString},
    fs::File,
    io::{self, Write},
    os::{
        fd::OwnedFd,
        unix::{ffi::OsStrExt, fs::MetadataExt},
    },
};

use rustix::{
    fs::{AtFlags, Mode, OFlags},
    io::Errno,
};

use crate::sandbox::policy::resolve::LONGEST_NAME;

/// Metadata of a file, which change with every write to it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct FileMetadata {
    device: u64,
    inode: u64,
    size: u64,
    changed: (i64, i64),
    pub mode: u32,
    owner: (u32, u32),
}

impl FileMetadata {
    pub fn of(file: &std::fs::Metadata) -> Self {
        Self {
            device: file.dev(),
            inode: file.ino(),
            size: file.size(),
            changed: (file.ctime(), file.ctime_nsec()),
            mode: file.mode() & 0o7777,
            owner: (file.uid(), file.gid()),
        }
    }
}

/// A file that is removed unless it was moved to its place.
pub struct Temporary<'a> {
    folder: &'a OwnedFd,
    name: OsString,
    is_settled: bool,
}

impl<'a> Temporary<'a> {
    /// A file beside `name` with these bytes, which are on the disk when this returns.
    pub fn filled(folder: &'a OwnedFd, name: &OsStr, bytes: &[u8], like: Option<FileMetadata>) -> io::Result<Self> {
        Self::made(folder, name, bytes, like.map(|it| (it.mode, Some(it.owner))))
    }

    /// The same with a mode, and an owner where the file had one.
    pub fn made(
        folder: &'a OwnedFd,
        name: &OsStr,
        bytes: &[u8],
        like: Option<(u32, Option<(u32, u32)>)>,
    ) -> io::Result<Self> {
        // What replaces a file is nobody's until it has that one's mode.
        let mode = if like.is_some() { 0o600 } else { 0o666 };
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let (file, temporary) = loop {
            let beside = name_beside(name);
            match rustix::fs::openat(folder, &beside, flags, Mode::from_raw_mode(mode)) {
                Ok(file) => {
                    let temporary = Self {
                        folder,
                        name: beside,
                        is_settled: false,
                    };
                    break (file, temporary);
                }
                Err(Errno::EXIST) => {}
                Err(error) => return Err(error.into()),
            }
        };
        let mut file = File::from(file);
        file.write_all(bytes)?;
        if let Some((mode, owner)) = like {
            // Not ours to give, usually; then the file is ours from now on.
            if let Some((user, group)) = owner
                && FileMetadata::of(&file.metadata()?).owner != (user, group)
            {
                std::os::unix::fs::fchown(&file, Some(user), Some(group)).ok();
            }
            file.set_permissions(std::os::unix::fs::PermissionsExt::from_mode(mode))?;
        }
        file.sync_all()?;
        Ok(temporary)
    }

    /// Gives it the name; `is_new`: which must be free.
    pub fn settle(mut self, name: &OsStr, is_new: bool) -> io::Result<()> {
        let plain = || rustix::fs::renameat(self.folder, &self.name, self.folder, name);
        if is_new {
            let flags = rustix::fs::RenameFlags::NOREPLACE;
            match rustix::fs::renameat_with(self.folder, &self.name, self.folder, name, flags) {
                // A file system, or a kernel, that does not know the flag.
                Err(Errno::INVAL | Errno::NOSYS | Errno::NOTSUP) => {
                    match rustix::fs::statat(self.folder, name, AtFlags::SYMLINK_NOFOLLOW) {
                        Err(Errno::NOENT) => plain()?,
                        Err(error) => return Err(error.into()),
                        Ok(_) => return Err(io::ErrorKind::AlreadyExists.into()),
                    }
                }
                other => other?,
            }
        } else {
            plain()?;
        }
        self.is_settled = true;
        if let Ok(folder) = self.folder.try_clone() {
            sync(folder);
        }
        Ok(())
    }
}

impl Drop for Temporary<'_> {
    fn drop(&mut self) {
        if !self.is_settled {
            rustix::fs::unlinkat(self.folder, &self.name, AtFlags::empty()).ok();
        }
    }
}

/// A new name is safe only when its folder is on the disk. Some file systems cannot do that, and then nothing is lost.
pub fn sync(folder: OwnedFd) {
    File::from(folder).sync_all().ok();
}

/// Begins the end of a name beside another one.
const PREFIX: &str = ".sheaf-";

/// Letters of the mark that makes a name beside another one unique.
const MARK_LETTERS: usize = 12;

/// Returns true for a name that [`name_beside`] gives to one of these.
pub fn is_name_beside(beside: &OsStr, names: &HashSet<&OsStr>) -> bool {
    let name = beside.as_bytes().strip_prefix(b".");
    let parts = name.and_then(|it| it.split_at_checked(it.len().checked_sub(PREFIX.len() + MARK_LETTERS)?));
    let Some((name, end)) = parts else {
        return false;
    };
    let is_mark = |it: &[u8]| it.iter().all(u8::is_ascii_hexdigit);
    end.strip_prefix(PREFIX.as_bytes()).is_some_and(is_mark) && names.contains(OsStr::from_bytes(name))
}

pub fn name_beside(name: &OsStr) -> OsString {
    let mark = uuid::Uuid::new_v4().simple().to_string();
    let mark: String = mark.chars().take(MARK_LETTERS).collect();
    let mut beside = OsString::from(".");
    let end = format!("{PREFIX}{mark}");
    beside.push(if name.len() + end.len() + 1 > LONGEST_NAME {
        "long".as_ref()
    } else {
        name
    });
    beside.push(end);
    beside
}
