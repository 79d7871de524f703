//! Messages: everything that can happen to the state, by source.

use std::{collections::BTreeMap, sync::Arc};

use super::{
    app::{
        backfill::Backfilled,
        effects::{Ask, FileWork},
        own_files::FileOutcome,
    },
    custom::Custom,
    image::Made,
    library::{SessionPreview, StoredSession},
    picture::ImageAttachment,
    terminal::Input,
    widgets::Citation,
};
use crate::{
    extensions::CustomMode,
    journal::Log,
    link::Link,
    protocol::{ClarificationResponse, Cost, Entry, Reply, Turn, UserAction},
};

pub enum Msg {
    Input(Input),
    Resize(u16, u16),
    /// New entries of the log that is followed.
    Entries(Vec<Arc<Entry>>),
    /// Another conversation takes the place of this one.
    Switch(Arc<dyn Link>),
    Done(EffectOutcome),
    /// Some code got its colours.
    Colours,
    /// A second has passed while something on the screen shows the time.
    Tick,
    /// It is known what holds the commands of the link, or that has changed.
    SandboxStatus,
    /// A line that was typed without a screen: a message, or a command with a slash.
    Line(String),
    /// The answer to a question of this turn, given without a form.
    Answer(Turn, ClarificationResponse),
    /// Stops the answer; ends the program when none is running.
    Interrupt,
    /// Ends the program with this code.
    End(u8),
}

/// A file that was written.
#[derive(Debug)]
pub struct SavedFile {
    pub action: UserAction,
    /// As the user calls it.
    pub path: String,
    /// Another file was in its place.
    pub is_replaced: bool,
}

/// The outcome of an effect.
#[derive(Debug)]
pub enum EffectOutcome {
    /// The reply to a question, or why there is none.
    Replied(Ask, Result<Reply, String>),
    /// The outcome of work on the person's own files.
    Filed(FileWork, Result<FileOutcome, String>),
    /// The older part of a long conversation.
    Backfilled(Box<Backfilled>),
    /// The cost of the part of a long conversation that is not folded.
    SpentEarlier {
        /// The log of that conversation.
        log: Arc<Log>,
        spent: Cost,
        /// The first turn that it does not cover.
        before: Turn,
    },
    Copied(Result<String, String>),
    /// Bytes that carry a copy through the terminal, still to be written to it.
    Osc52 {
        bytes: Vec<u8>,
        what: String,
    },
    Saved(Result<SavedFile, String>),
    /// A file that is to be saved exists and says something else.
    SaveExists {
        path: String,
        text: String,
        draft: u64,
    },
    /// The lines of the file that a document cites.
    Cited {
        turn: Turn,
        document: crate::protocol::DocumentId,
        found: Citation,
    },
    /// The commands that files hold.
    Commands(Vec<Custom>, Vec<CustomMode>),
    /// The same, for the line that the program was started with.
    CommandsFor(String, Vec<Custom>, Vec<CustomMode>),
    /// A name for an export that no file has; empty if none was found.
    ExportProposed {
        path: String,
        draft: u64,
    },
    /// The file of an export exists.
    ExportExists {
        path: String,
        draft: u64,
    },
    /// The stored conversations, and the draft's version when they were asked for.
    Sessions(Result<Vec<StoredSession>, String>, u64),
    /// The words that were looked for, and where they were found.
    SessionsFound {
        words: String,
        found: Vec<(String, String)>,
    },
    /// A stored conversation was changed, or could not be, and the list was read again.
    SessionChanged {
        failed: Option<String>,
        kept: Option<Vec<StoredSession>>,
    },
    SessionPreview {
        id: String,
        preview: Box<SessionPreview>,
    },
    Edited(Result<String, String>),
    ChipEdited(Result<String, String>),
    /// A picture, or why there is none and what was pasted instead.
    Picture(Result<ImageAttachment, (String, Option<String>)>),
    /// The messages sent before, oldest first: of this workspace at the start, or of all workspaces when the user asked.
    History {
        texts: Vec<String>,
        /// The draft's version when the user asked for those of all workspaces.
        draft: Option<u64>,
    },
    /// Uses of commands by name.
    Uses(BTreeMap<String, u32>),
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
    /// A converted picture, by its number.
    PictureMade(u32, Option<Made>),
    /// The output of the user's command for the header.
    Status(Result<String, String>),
    Failed(String),
}
