//! The state of a path, and restoring it: bytes and mode of a file, the target of a link, the mode of a folder.
//!
//! Everything is looked at and put in place through the folder that holds the name, opened without following a link.

use std::{
    ffi::{OsStr, OsString},
    fs::File,
    io::{self, Read as _},
    os::{
        fd::OwnedFd,
        unix::{ffi::OsStringExt as _, fs::PermissionsExt},
    },
    path::{Path, PathBuf},
    sync::Arc,
};

use rustix::{
    fs::{AtFlags, FileType, Mode, OFlags, Stat},
    io::Errno,
};
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use crate::sandbox::{
    files::{
        open,
        replace::{Temporary, name_beside},
    },
    workspace::Workspace,
};

/// State of a path, without the bytes of a file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PathState {
    Nothing,
    File {
        /// SHA-256 of its bytes.
        hash: String,
        mode: u32,
    },
    Link {
        #[serde(with = "written")]
        target: PathBuf,
    },
    Folder {
        mode: u32,
    },
    /// Never stored: a pipe, a device, a file that is too large.
    Other,
}

/// State of a path, with the bytes of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PathContent {
    pub stand: PathState,
    pub bytes: Option<Arc<[u8]>>,
}

impl PathContent {
    pub const NOTHING: Self = Self {
        stand: PathState::Nothing,
        bytes: None,
    };

    pub fn file(bytes: Arc<[u8]>, mode: u32) -> Self {
        Self {
            stand: PathState::File {
                hash: hashed(&bytes),
                mode,
            },
            bytes: Some(bytes),
        }
    }
}

impl PathState {
    /// The same thing, whatever its mode is.
    pub fn is_like(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::File { hash, .. }, Self::File { hash: same, .. }) => hash == same,
            (Self::Folder { .. }, Self::Folder { .. }) => true,
            (one, other) => one == other,
        }
    }

    pub fn mode(&self) -> Option<u32> {
        match self {
            Self::File { mode, .. } | Self::Folder { mode } => Some(*mode),
            Self::Nothing | Self::Link { .. } | Self::Other => None,
        }
    }

    /// The same with another mode, where it has one.
    pub fn with_mode(self, new: u32) -> Self {
        match self {
            Self::File { hash, .. } => Self::File { hash, mode: new },
            Self::Folder { .. } => Self::Folder { mode: new },
            other @ (Self::Nothing | Self::Link { .. } | Self::Other) => other,
        }
    }
}

/// Reads the state of `path`. Files of more than `most` bytes are not read.
pub fn look(workspace: &Workspace, path: &Path, most: u64) -> io::Result<PathContent> {
    let (base, inner) = place(workspace, path)?;
    let folder = match open::folder_of(&base, inner) {
        Ok(folder) => folder,
        Err(error) if is_absent(&error) || is_link(&error) => return Ok(PathContent::NOTHING),
        Err(error) => return Err(error),
    };
    look_in(&folder, name_of(inner)?, most)
}

fn look_in(folder: &OwnedFd, name: &OsStr, most: u64) -> io::Result<PathContent> {
    let about = match rustix::fs::statat(folder, name, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(about) => about,
        Err(Errno::NOENT) => return Ok(PathContent::NOTHING),
        Err(error) => return Err(error.into()),
    };
    let bare = |stand| PathContent { stand, bytes: None };
    Ok(match FileType::from_raw_mode(about.st_mode) {
        FileType::Symlink => bare(PathState::Link {
            target: target(folder, name)?,
        }),
        FileType::Directory => bare(PathState::Folder { mode: mode_of(&about) }),
        FileType::RegularFile => match contents(folder, name, most)? {
            Some(bytes) => PathContent::file(bytes.into(), mode_of(&about)),
            None => bare(PathState::Other),
        },
        _ => bare(PathState::Other),
    })
}

/// Returns the target of a link.
pub fn target(folder: &OwnedFd, name: &OsStr) -> io::Result<PathBuf> {
    let target = rustix::fs::readlinkat(folder, name, Vec::new())?;
    Ok(OsString::from_vec(target.into_bytes()).into())
}

/// `None`: it is larger.
pub fn contents(folder: &OwnedFd, name: &OsStr, most: u64) -> io::Result<Option<Vec<u8>>> {
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let file = File::from(rustix::fs::openat(folder, name, flags, Mode::empty())?);
    let about = file.metadata()?;
    if !about.is_file() || about.len() > most {
        return Ok(None);
    }
    let mut bytes = Vec::with_capacity(usize::try_from(about.len()).unwrap_or_default() + 1);
    file.take(most.saturating_add(1)).read_to_end(&mut bytes)?;
    Ok((bytes.len() as u64 <= most).then_some(bytes))
}

/// Returns the permission bits.
pub fn mode_of(about: &Stat) -> u32 {
    // 16 bits wide on macOS, 32 on Linux.
    (u64::from(about.st_mode) & 0o7777) as u32
}

/// Makes `inner` below `base` what `to` says; `bytes` are those of a file. A folder that is to go stays while
/// something is in it.
pub fn put(workspace: &Workspace, path: &Path, to: &PathState, bytes: Option<&[u8]>) -> io::Result<()> {
    let (base, inner) = place(workspace, path)?;
    let name = name_of(inner)?;
    if *to == PathState::Nothing {
        return match open::folder_of(&base, inner) {
            Ok(folder) => remove(&folder, name),
            Err(error) if is_absent(&error) || is_link(&error) => Ok(()),
            Err(error) => Err(error),
        };
    }
    open::make_folders(&base, inner)?;
    let folder = open::folder_of(&base, inner)?;
    let there = rustix::fs::statat(&folder, name, AtFlags::SYMLINK_NOFOLLOW).ok();
    let is_folder = there
        .as_ref()
        .is_some_and(|it| FileType::from_raw_mode(it.st_mode) == FileType::Directory);
    match to {
        PathState::File { mode, .. } => {
            let bytes = bytes.ok_or(io::ErrorKind::NotFound)?;
            if is_folder {
                rustix::fs::unlinkat(&folder, name, AtFlags::REMOVEDIR)?;
            }
            let owner = there.filter(|_| !is_folder).map(|it| (it.st_uid, it.st_gid));
            Temporary::made(&folder, name, bytes, Some((*mode, owner)))?.settle(name, false)
        }
        PathState::Link { target } => {
            if is_folder {
                rustix::fs::unlinkat(&folder, name, AtFlags::REMOVEDIR)?;
            }
            let beside = name_beside(name);
            rustix::fs::symlinkat(target, &folder, &beside)?;
            rustix::fs::renameat(&folder, &beside, &folder, name).map_err(|error| {
                rustix::fs::unlinkat(&folder, &beside, AtFlags::empty()).ok();
                error.into()
            })
        }
        PathState::Folder { mode } => {
            if there.is_some() && !is_folder {
                rustix::fs::unlinkat(&folder, name, AtFlags::empty())?;
            }
            match rustix::fs::mkdirat(&folder, name, Mode::from_raw_mode(0o700)) {
                Ok(()) | Err(Errno::EXIST) => {}
                Err(error) => return Err(error.into()),
            }
            let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            let made = File::from(rustix::fs::openat(&folder, name, flags, Mode::empty())?);
            made.set_permissions(PermissionsExt::from_mode(*mode))
        }
        PathState::Nothing => Ok(()),
        PathState::Other => Err(io::ErrorKind::Unsupported.into()),
    }
}

fn remove(folder: &OwnedFd, name: &OsStr) -> io::Result<()> {
    match rustix::fs::unlinkat(folder, name, AtFlags::empty()) {
        Ok(()) | Err(Errno::NOENT) => Ok(()),
        // Linux says the first of a folder, POSIX the second.
        Err(Errno::ISDIR | Errno::PERM) => match rustix::fs::unlinkat(folder, name, AtFlags::REMOVEDIR) {
            Ok(()) | Err(Errno::NOENT | Errno::NOTEMPTY | Errno::EXIST) => Ok(()),
            Err(error) => Err(error.into()),
        },
        Err(error) => Err(error.into()),
    }
}

/// The folder of the workspace that an absolute path is below, and the part of the path below it.
fn place<'a>(workspace: &Workspace, path: &'a Path) -> io::Result<(PathBuf, &'a Path)> {
    let base = workspace.base(path).ok_or(io::ErrorKind::InvalidInput)?;
    let inner = path.strip_prefix(&base).map_err(io::Error::other)?;
    Ok((base, inner))
}

fn name_of(inner: &Path) -> io::Result<&OsStr> {
    inner.file_name().ok_or_else(|| io::ErrorKind::InvalidInput.into())
}

/// A link stands on the way: behind it is another place.
fn is_link(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::CrossesDevices || error.raw_os_error() == Some(libc::ELOOP)
}

fn is_absent(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}

/// Returns the SHA-256 of `bytes`, in hexadecimal.
pub fn hashed(bytes: &[u8]) -> String {
    use std::fmt::Write as _;
    let mut text = String::with_capacity(64);
    for byte in Sha256::digest(bytes) {
        write!(text, "{byte:02x}").expect("a string takes everything");
    }
    text
}

/// Paths in a file of JSON: text, and bytes where they are no text.
pub mod written {
    use std::{
        ffi::OsString,
        os::unix::ffi::{OsStrExt as _, OsStringExt as _},
        path::{Path, PathBuf},
    };

    use serde::{Deserialize, Deserializer, Serialize as _, Serializer};

    pub fn serialize<S: Serializer>(path: &Path, to: S) -> Result<S::Ok, S::Error> {
        match path.to_str() {
            Some(text) => text.serialize(to),
            None => path.as_os_str().as_bytes().serialize(to),
        }
    }

    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Written {
        Text(PathBuf),
        Bytes(Vec<u8>),
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<PathBuf, D::Error> {
        Ok(match Written::deserialize(from)? {
            Written::Text(path) => path,
            Written::Bytes(bytes) => OsString::from_vec(bytes).into(),
        })
    }
}
