//! Results of overlays, as data: what a key chose, and what it is about.

use std::path::PathBuf;

use super::Action;
use crate::{
    protocol::{DocumentId, Mode, Restore, TrustAnswer, Turn},
    transcript::DocumentIndex,
    tui::{library::StoredSession, widgets::transcript::Item},
};

/// Something that was chosen in an overlay.
#[derive(Clone)]
pub enum Choice {
    Mode(Mode),
    Model(String),
    Theme(String),
    /// An action, with its arguments.
    Action(&'static Action, String),
    /// The name of a command that a file defines.
    Custom(String),
    /// A text that becomes the draft.
    Draft(String),
    /// For the pasted text at the caret.
    Chip(ChipAction),
    /// A decision on a change of a file.
    Review(Verdict, ChangeId),
    /// Accepts all these changes.
    AcceptAll(Vec<ChangeId>),
    /// More unchanged lines around each change, or fewer.
    ContextLines(bool),
    /// Opens the commit card for these documents.
    Commit(Vec<(Turn, DocumentId)>),
    /// A comment to the model, on the hunk that the review below is at.
    Remark(String),
    /// To the branch of a turn. `true`: to the end of its answer, where others continue after a part of it.
    Branch(Turn, bool),
    /// Restores files, conversation or both.
    Rewind(RewindTarget),
    /// An answer to the question whether the workspace may act.
    Trust(TrustAnswer),
    /// Stops a command that runs in the background.
    StopCommand(Turn, DocumentId),
    /// A change of the queue.
    Queue(QueueEdit),
    /// A new text for the selected todo.
    Reworded(String),
    /// A pattern to search the conversation for.
    Search(String),
    /// A query of `/filter`; empty shows everything.
    Filter(String),
    /// Goes to this item.
    Item(Item),
    /// Arguments of `/copy`.
    Copy(&'static str),
    /// Opens a file in the editor, at a line.
    Open(String, Option<u64>),
    /// Opens a file of rules in the editor, which may be new.
    OpenRules(PathBuf),
    /// Resumes a saved conversation.
    Session(Box<StoredSession>),
    /// Exports the conversation to a file.
    Export {
        path: String,
        /// An existing file is replaced.
        overwrites: bool,
    },
    /// Asks for the file of an export.
    ExportElsewhere(String),
    /// Write this text to a file of the workspace that says something else.
    Replace {
        path: String,
        text: String,
    },
    /// A new todo after the selected one.
    Inserted(String),
}

/// An operation on a chip of the draft.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChipAction {
    View,
    Unfold,
    Edit,
    Remove,
}

/// A decision on a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    Accept,
    Reject,
    Edit,
    Comment,
}

/// A change that can be decided on: a document, or a hunk of one that waits for approval.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ChangeId {
    pub place: DocumentIndex,
    /// Counted from 1.
    pub hunk: Option<u64>,
}

/// The state to go back to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RewindTarget {
    /// The first turn that is undone.
    pub turn: Turn,
    /// The files; `None` leaves them as they are.
    pub files: Option<Restore>,
    pub conversation: bool,
}

/// A change of one message of the queue, by its index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QueueEdit {
    /// Moves it back into the draft.
    Edit(usize),
    Remove(usize),
    /// Swaps it with the one before it.
    Earlier(usize),
}
