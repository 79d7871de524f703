//! Errors of session files.

use std::io;

use crate::os::file;

/// Why something is not on the disk.
#[derive(Debug, thiserror::Error)]
pub enum TapeError {
    #[error("another sheaf writes this session")]
    Held(Option<u32>),
    /// It was read while it could not be locked, and whatever is appended would not follow what is there.
    #[error("another program has changed the file")]
    Changed,
    #[error(transparent)]
    File(#[from] file::Error),
    #[error(transparent)]
    Write(#[from] io::Error),
}
