//! What can happen to the screen, by source.

use std::sync::Arc;

use super::{
    app::Citation,
    custom::Custom,
    effects::Ask,
    image::Made,
    library::{SessionExcerpt, StoredSession},
    picture::ImageAttachment,
    terminal::Input,
};
use crate::{
    journal::Log,
    link::Link,
    protocol::{Cost, Entry, Reply, Turn},
};

pub enum Msg {
    Input(Input),
    Resize(u16, u16),
    /// New entries of the log that is followed.
    Entries(Vec<Arc<Entry>>),
    /// Another conversation takes the place of this one.
    Switch(Arc<dyn Link>),
    Done(Outcome),
    /// Some code got its colours.
    Colours,
    /// A second has passed while something on the screen shows the time.
    Tick,
    Continued,
}

/// What came of an effect.
#[derive(Debug)]
pub enum Outcome {
    /// The reply to a question, or why there is none.
    Replied(Ask, Result<Reply, String>),
    /// What the part of a long conversation has cost that is not shown.
    SpentEarlier {
        /// Of whose conversation.
        log: Arc<Log>,
        spent: Cost,
    },
    Copied(Result<String, String>),
    /// Bytes that carry a copy through the terminal, still to be written to it.
    Osc52 {
        bytes: Vec<u8>,
        what: String,
    },
    Saved(Result<String, String>),
    /// What the file holds at the lines that a document cites.
    Cited {
        turn: Turn,
        document: crate::protocol::DocumentId,
        found: Citation,
    },
    /// The commands that files hold.
    Commands(Vec<Custom>),
    Sessions(Result<Vec<StoredSession>, String>),
    /// The words that were looked for, and where they were found.
    SessionsFound {
        words: String,
        found: Vec<(String, String)>,
    },
    /// What could not be done with a conversation of the list: that is read again, where it can be.
    SessionChanged {
        failed: Option<String>,
        kept: Option<Vec<StoredSession>>,
    },
    SessionPreview {
        id: String,
        said: Vec<SessionExcerpt>,
    },
    Edited(Result<String, String>),
    ChipEdited(Result<String, String>),
    /// A picture, or why there is none and what was pasted instead.
    Picture(Result<ImageAttachment, (String, Option<String>)>),
    /// What was sent before, oldest first: here when the program began, or everywhere when somebody asked.
    History {
        texts: Vec<String>,
        is_everywhere: bool,
    },
    PlanEdited {
        turn: Turn,
        document: crate::protocol::DocumentId,
        text: Result<String, String>,
    },
    HunkEdited {
        turn: Turn,
        document: crate::protocol::DocumentId,
        index: u64,
        text: Result<String, String>,
    },
    /// A picture that a tool has read, in base64.
    PictureRead {
        turn: Turn,
        document: crate::protocol::DocumentId,
        data: Option<String>,
    },
    /// What a picture was made into, by its number.
    PictureMade(u32, Option<Made>),
    /// What the user's command for the header said.
    Status(Result<String, String>),
    Failed(String),
}
