//! The only module that reads, writes or runs what a model or a repository asked for.
//!
//! A path that a model wrote becomes a [`Located`] first: resolved with its links, compared with the roots of the workspace
//! and with what is hidden or protected. Nothing else opens a file of the workspace. What a call may touch is judged
//! elsewhere, before; what is refused here is refused whatever the judgement was.

mod seen;

use std::{
    io,
    path::{Path, PathBuf},
};

pub use seen::Seen;

/// The folders that tools work in.
#[derive(Debug)]
pub struct Workspace {
    root: PathBuf,
    /// Added by the user.
    more: Vec<PathBuf>,
}

/// Where a path leads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Located {
    /// Absolute, links resolved as far as the path exists.
    pub path: PathBuf,
    /// For people and models: relative to the root with `/` between, else absolute.
    pub shown: String,
    pub place: Place,
    /// Files of tools and of this very program: a change always asks.
    pub is_protected: bool,
}

/// On which side of the fence a path lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    Inside,
    /// In a folder that the user added.
    Added,
    Outside,
    /// Secrets and what an ignore file hides: nobody reads or writes it.
    Hidden,
}

/// Why a path or a file is of no use, in words for the model.
#[derive(Debug, thiserror::Error)]
pub enum Refused {
    #[error("`{0}` is no path that can be used")]
    Path(String),
    #[error("`{0}` does not exist")]
    Missing(String),
    #[error("`{0}` lies outside the workspace")]
    Outside(String),
    #[error("`{0}` is hidden by an ignore file or is a secret")]
    Hidden(String),
    #[error("`{0}` is a directory")]
    Directory(String),
    #[error("`{0}` is no regular file")]
    Special(String),
    #[error("`{path}` is {bytes} bytes, more than can be read at once")]
    Huge { path: String, bytes: u64 },
    #[error("`{0}` exists already")]
    Exists(String),
    #[error("`{0}` has not been read in this conversation")]
    Unread(String),
    #[error("`{0}` has changed since it was read")]
    Stale(String),
    #[error("`{path}` could not be used")]
    Failed {
        path: String,
        #[source]
        source: io::Error,
    },
}

impl Workspace {
    pub fn open(root: &Path) -> io::Result<Self> {
        Ok(Self {
            root: root.canonicalize()?,
            more: Vec::new(),
        })
    }

    /// Canonical.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Where a path leads that a model or a user wrote: absolute, relative to the root, with `file://` or `@` in front.
    pub fn locate(&self, written: &str) -> Result<Located, Refused> {
        let path = Path::new(written);
        let path = if path.is_absolute() {
            path.to_owned()
        } else {
            self.root.join(path)
        };
        let place = if path.starts_with(&self.root) {
            Place::Inside
        } else if self.more.iter().any(|it| path.starts_with(it)) {
            Place::Added
        } else {
            Place::Outside
        };
        let shown = path
            .strip_prefix(&self.root)
            .unwrap_or(&path)
            .to_string_lossy()
            .into_owned();
        Ok(Located {
            path,
            shown,
            place,
            is_protected: false,
        })
    }

    /// The bytes of a regular file.
    pub fn read(&self, file: &Located, limit: u64) -> Result<Vec<u8>, Refused> {
        let failed = |source: io::Error| match source.kind() {
            io::ErrorKind::NotFound => Refused::Missing(file.shown.clone()),
            _ => Refused::Failed {
                path: file.shown.clone(),
                source,
            },
        };
        let metadata = std::fs::metadata(&file.path).map_err(failed)?;
        if metadata.is_dir() {
            return Err(Refused::Directory(file.shown.clone()));
        }
        if !metadata.is_file() {
            return Err(Refused::Special(file.shown.clone()));
        }
        if metadata.len() > limit {
            return Err(Refused::Huge {
                path: file.shown.clone(),
                bytes: metadata.len(),
            });
        }
        std::fs::read(&file.path).map_err(failed)
    }
}
