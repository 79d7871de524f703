//! Opening files of the workspace, and reading them.

use std::{
    fs::File,
    io::{self, Read},
    os::fd::{AsFd, OwnedFd},
    path::{Component, Path},
};

use rustix::fs::{CWD, Mode, OFlags};

use super::{Located, Refused, refusal};

/// Opens `path` below `base`. Both are resolved: a link on the way has come since, and nothing is opened through it.
pub fn below(base: &Path, path: &Path, flags: OFlags, mode: Mode) -> io::Result<OwnedFd> {
    let flags = flags | OFlags::CLOEXEC;
    let folder = rustix::fs::open(base, FOLDER | OFlags::NOFOLLOW, Mode::empty())?;
    let path = if path.as_os_str().is_empty() {
        Path::new(".")
    } else {
        path
    };
    #[cfg(target_os = "linux")]
    {
        use rustix::{fs::ResolveFlags, io::Errno};
        let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS | ResolveFlags::NO_SYMLINKS;
        for _ in 0..MOST_TRIES {
            match rustix::fs::openat2(&folder, path, flags, mode, resolve) {
                // A name was moved while it looked.
                Err(Errno::AGAIN) => {}
                // An old kernel, or a container that does not know the call.
                Err(Errno::NOSYS | Errno::PERM) => break,
                other => return Ok(other?),
            }
        }
    }
    step_by_step(folder, path, flags, mode)
}

/// Maximum attempts to resolve a path while names on it move.
#[cfg(target_os = "linux")]
const MOST_TRIES: usize = 16;

#[cfg(target_os = "linux")]
const FOLDER: OFlags = OFlags::PATH.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);
#[cfg(not(target_os = "linux"))]
const FOLDER: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);

#[cfg(test)]
pub fn stepwise(base: &Path, path: &Path, flags: OFlags, mode: Mode) -> io::Result<OwnedFd> {
    let base = rustix::fs::open(base, FOLDER | OFlags::NOFOLLOW, Mode::empty())?;
    step_by_step(base, path, flags, mode)
}

/// The same where the kernel cannot do it in one step.
fn step_by_step(base: OwnedFd, path: &Path, flags: OFlags, mode: Mode) -> io::Result<OwnedFd> {
    let mut folder = base;
    let mut parts = path.components().peekable();
    while let Some(part) = parts.next() {
        let name = match part {
            Component::Normal(name) => name,
            Component::CurDir => ".".as_ref(),
            Component::ParentDir | Component::RootDir | Component::Prefix(_) => {
                return Err(io::ErrorKind::InvalidInput.into());
            }
        };
        if parts.peek().is_none() {
            return Ok(rustix::fs::openat(&folder, name, flags | OFlags::NOFOLLOW, mode)?);
        }
        folder = rustix::fs::openat(&folder, name, FOLDER | OFlags::NOFOLLOW, Mode::empty())?;
    }
    Err(io::ErrorKind::InvalidInput.into())
}

/// Reads a file. Returns its bytes and its metadata. Errors: it is a folder, no regular file, or longer than `limit`.
pub fn contents(found: OwnedFd, file: &Located, limit: u64) -> Result<(Vec<u8>, std::fs::Metadata), Refused> {
    let failed = |error| refusal(file, error);
    let is_kernels = is_kernels(&found);
    let source = File::from(found);
    let about = source.metadata().map_err(failed)?;
    if about.is_dir() {
        return Err(Refused::Directory(file.shown.clone()));
    }
    if !about.is_file() || is_kernels {
        return Err(Refused::Special(file.shown.clone()));
    }
    let huge = |bytes| Refused::Huge {
        path: file.shown.clone(),
        bytes,
    };
    if about.len() > limit {
        return Err(huge(about.len()));
    }
    let mut bytes = Vec::with_capacity(usize::try_from(about.len()).unwrap_or_default());
    source
        .take(limit.saturating_add(1))
        .read_to_end(&mut bytes)
        .map_err(failed)?;
    // It has grown meanwhile.
    if bytes.len() as u64 > limit {
        return Err(huge(bytes.len() as u64));
    }
    Ok((bytes, about))
}

/// Returns true for files of `/proc` and the like: they may tell the secrets of any process and may never end.
#[cfg(target_os = "linux")]
fn is_kernels(file: &OwnedFd) -> bool {
    use rustix::fs::FsWord;

    const PROC: FsWord = 0x9fa0;
    const TRACE: FsWord = 0x7472_6163;
    const DEBUG: FsWord = 0x6462_6720;
    let kind = rustix::fs::fstatfs(file).map(|it| it.f_type);
    kind.is_ok_and(|it| matches!(it, PROC | TRACE | DEBUG))
}

/// macOS has no such files.
#[cfg(not(target_os = "linux"))]
fn is_kernels(_: &OwnedFd) -> bool {
    false
}

/// The folder that holds a path, for making and renaming names in it.
pub fn folder_of(base: &Path, path: &Path) -> io::Result<OwnedFd> {
    let parent = path.parent().ok_or(io::ErrorKind::InvalidInput)?;
    below(base, parent, OFlags::RDONLY | OFlags::DIRECTORY, Mode::empty())
}

/// Makes the folders that lead to `path` below `base`; gives the ones that it made, the outermost first.
pub fn make_folders(base: &Path, path: &Path) -> io::Result<Vec<std::path::PathBuf>> {
    let mut made = Vec::new();
    let Some(parent) = path.parent() else {
        return Ok(made);
    };
    let mut folder = rustix::fs::openat(CWD, base, FOLDER | OFlags::NOFOLLOW, Mode::empty())?;
    let mut here = base.to_owned();
    let outcome = (|| {
        for part in parent.components() {
            here.push(part);
            match rustix::fs::mkdirat(folder.as_fd(), part.as_os_str(), Mode::from_raw_mode(0o777)) {
                Ok(()) => made.push(here.clone()),
                Err(rustix::io::Errno::EXIST) => {}
                Err(error) => return Err(io::Error::from(error)),
            }
            folder = rustix::fs::openat(&folder, part.as_os_str(), FOLDER | OFlags::NOFOLLOW, Mode::empty())?;
        }
        Ok(())
    })();
    match outcome {
        Ok(()) => Ok(made),
        Err(error) => {
            remove_folders(&made);
            Err(error)
        }
    }
}

/// Takes back what [`make_folders`] made, as far as nothing has come into it.
pub fn remove_folders(made: &[std::path::PathBuf]) {
    for folder in made.iter().rev() {
        std::fs::remove_dir(folder).ok();
    }
}
