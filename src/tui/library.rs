//! The conversations that are kept, as the screen sees them: begun, found, read a little, taken up again.
//!
//! Where they lie and how a link to one is made is not the screen's business; whoever starts it hands in a [`Library`].

use std::{path::Path, sync::Arc};

use crate::{journal::Log, link::Link};

/// Opens conversations. What takes long is called where nobody waits for it.
pub trait Library: Send + Sync {
    /// A new one, of which nothing is kept before something is said.
    fn begin(&self) -> Result<Arc<dyn Link>, String>;

    /// Takes one up again.
    fn resume(&self, id: &str) -> Result<Arc<dyn Link>, String>;

    /// All there are, the one that changed last first.
    fn list(&self) -> Result<Vec<Kept>, String>;

    /// Those in which all words are said somewhere, the one that changed last first, each with a line that holds them.
    fn find(&self, words: &str) -> Vec<(String, String)>;

    /// Writes a conversation into a new file, in the form that its name says.
    fn export(&self, log: &Arc<Log>, path: &Path) -> Result<(), String>;

    /// Puts one out of the way, or back.
    fn archive(&self, id: &str, is_archived: bool) -> Result<(), String>;

    /// Removes one for good.
    fn remove(&self, id: &str) -> Result<(), String>;

    /// The last messages of a stored conversation.
    fn preview(&self, id: &str) -> Vec<Said>;
}

/// A conversation of the list.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Kept {
    pub id: String,
    /// Its title, else how it began; empty: nothing was said.
    pub title: String,
    /// The folder that it is about, as the user would write it; empty: the one that is open.
    pub elsewhere: String,
    /// The same, as a path.
    pub folder: String,
    pub turns: u32,
    /// Milliseconds since the Unix epoch.
    pub changed: u64,
    /// It is out of the way.
    pub is_archived: bool,
}

/// A paragraph of a preview.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Said {
    pub is_message: bool,
    pub text: String,
}
