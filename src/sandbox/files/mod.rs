//! Files of the workspace: the paths that lead to them, opening them without following links, and replacing them whole.

pub mod git_index;
pub mod open;
pub mod replace;

use std::{io, path::PathBuf};

/// A resolved path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Located {
    /// Absolute, links resolved as far as the path exists.
    pub path: PathBuf,
    /// For people and models: relative to the root with `/` between, else absolute. The root itself is `.`.
    pub shown: String,
    pub place: Place,
    /// Files of tools and of this very program: a change always asks.
    pub is_protected: bool,
    /// A folder stood there when the path was resolved.
    pub is_folder: bool,
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

/// Reason why a path or file is refused, in words for the model.
#[derive(Debug, thiserror::Error)]
pub enum Refused {
    #[error("`{0}` is not a usable path")]
    Path(String),
    #[error("`{0}` does not exist")]
    Missing(String),
    #[error("`{0}` is outside the workspace")]
    Outside(String),
    #[error("`{0}` is hidden by an ignore file or is a secret")]
    Hidden(String),
    #[error("`{0}` belongs to git, and no tool writes there")]
    Git(String),
    #[error("`{0}` is a directory")]
    Directory(String),
    #[error("`{0}` is not a regular file")]
    Special(String),
    #[error("`{path}` is {bytes} bytes, more than can be handled at once")]
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
    /// Several files were to be changed, one failed, and this one is not as it was before.
    #[error("`{path}` could not be restored after another file had failed")]
    Torn {
        path: String,
        #[source]
        source: io::Error,
    },
}

/// The refusal that says what an error of the system means for a file.
pub fn refusal(file: &Located, error: io::Error) -> Refused {
    let shown = file.shown.clone();
    match error.kind() {
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => Refused::Missing(shown),
        io::ErrorKind::IsADirectory => Refused::Directory(shown),
        io::ErrorKind::InvalidFilename => Refused::Path(shown),
        // A link stands where none stood when the path was resolved.
        io::ErrorKind::CrossesDevices => Refused::Stale(shown),
        _ if error.raw_os_error() == Some(libc::ELOOP) => Refused::Stale(shown),
        // A pipe without a reader, a device without a driver, a file of the kernel that has nothing to say now.
        _ if matches!(error.raw_os_error(), Some(libc::ENXIO | libc::ENODEV | libc::EAGAIN)) => Refused::Special(shown),
        _ => Refused::Failed {
            path: shown,
            source: error,
        },
    }
}

/// A text of a model's for a message to it.
pub fn shortened(text: &str) -> String {
    let mut short: String = text
        .chars()
        .take(200)
        .map(|it| if it == '\0' { '␀' } else { it })
        .collect();
    if short.len() < text.len() && text.chars().count() > 200 {
        short.push('…');
    }
    short
}
