//! Saved conversations, as the screen sees them: created, found, previewed, resumed.
//!
//! The composition root hands in a [`Library`]: folders and links are not the screen's business.

use std::{path::Path, sync::Arc};

use crate::{journal::Log, link::Link};

/// A store of conversations. Its methods may block; they are called on a thread of their own.
pub trait Library: Send + Sync {
    /// Creates a conversation, which is stored with its first message.
    fn begin(&self) -> Result<Arc<dyn Link>, String>;

    /// Resumes one.
    fn resume(&self, id: &str) -> Result<Arc<dyn Link>, String>;

    /// Lists all, the one that changed last first.
    fn list(&self) -> Result<Vec<StoredSession>, String>;

    /// Finds those that contain all words, the one that changed last first: ids, each with a line that contains them.
    fn find(&self, words: &str) -> Vec<(String, String)>;

    /// Writes a conversation into a new file, in the format of its extension.
    fn export(&self, log: &Arc<Log>, path: &Path) -> Result<(), String>;

    /// Archives one, or brings it back.
    fn archive(&self, id: &str, is_archived: bool) -> Result<(), String>;

    /// Deletes one permanently.
    fn remove(&self, id: &str) -> Result<(), String>;

    /// Reads the last paragraphs of one.
    fn preview(&self, id: &str) -> Vec<SessionExcerpt>;
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
}

/// A paragraph of a preview.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionExcerpt {
    pub is_message: bool,
    pub text: String,
}
