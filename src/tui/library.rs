//! Saved conversations, as the screen sees them: created, found, previewed, resumed.
//!
//! The composition root hands in a [`Library`]: folders and links are not the screen's business.

use std::{path::Path, sync::Arc};

use crate::{journal::Log, link::Link, transcript::Transcript};

/// A store of conversations. Its methods may block; they are called on a thread of their own.
pub trait Library: Send + Sync {
    /// Creates a conversation, which is stored with its first message.
    fn begin(&self) -> Result<Arc<dyn Link>, String>;

    /// Resumes one.
    fn resume(&self, id: &str) -> Result<Arc<dyn Link>, String>;

    /// Lists all, the one with the newest answer first.
    fn list(&self) -> Result<Vec<StoredSession>, String>;

    /// Finds those that contain all words, the one with the newest answer first: ids, each with a line that contains them.
    fn find(&self, words: &str) -> Vec<(String, String)>;

    /// Writes a conversation into a file, which is replaced if it exists, in the format of its extension.
    fn export(&self, log: &Arc<Log>, path: &Path) -> Result<(), String>;

    /// Archives one, or brings it back.
    fn archive(&self, id: &str, is_archived: bool) -> Result<(), String>;

    /// Deletes one permanently.
    fn remove(&self, id: &str) -> Result<(), String>;

    /// Reads the end of one; empty if it cannot be read.
    fn preview(&self, id: &str) -> SessionPreview;

    /// Returns true if the user chooses one at the start.
    fn opens_with_list(&self) -> bool {
        false
    }
}

/// A saved conversation in a list.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StoredSession {
    pub id: String,
    /// Its title, else its first words; empty if it has no message.
    pub title: String,
    /// Its folder, as the user would write it; empty for the workspace's own.
    pub elsewhere: String,
    /// Its folder as a path.
    pub folder: String,
    pub turns: u32,
    /// Milliseconds since the Unix epoch.
    pub changed: u64,
    pub is_archived: bool,
    /// It is the conversation on this screen.
    pub is_open: bool,
}

/// The end of a saved conversation, and facts about it.
#[derive(Debug, Default)]
pub struct SessionPreview {
    /// The model that answered last, if known.
    pub model: Option<String>,
    /// Git branch of its folder when it began.
    pub branch: Option<String>,
    /// Number of its own branches, the current one counted.
    pub branches: usize,
    /// Size of its file.
    pub bytes: u64,
    /// Milliseconds since the Unix epoch.
    pub created: u64,
    /// The last turns of its current branch.
    pub end: Transcript,
}
