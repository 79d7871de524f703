//! Work that the screen asks for. `update` returns these; `run` carries them out and brings the outcome back.

use super::{app::Mouse, image::Order, picture::Source};
use crate::{
    protocol::{Command, DocumentId, Restore, Turn},
    theme::Rgb,
};

#[expect(
    clippy::large_enum_variant,
    reason = "few live at a time, and each is carried out at once"
)]
#[derive(Clone, Debug, PartialEq)]
pub enum Effect {
    Send(Command),
    /// To the clipboard, by whatever way there is.
    Copy {
        text: String,
        what: String,
    },
    /// Into a file of the workspace that the user asked for.
    Save {
        path: String,
        text: String,
    },
    /// Look up what a citation cites.
    Cite {
        turn: Turn,
        document: DocumentId,
        path: String,
        first: u64,
        last: u64,
    },
    Models,
    /// Files that fit what was typed behind an `@`.
    Files(String),
    /// Functions and types whose name fits what was typed behind an `@`.
    Symbols(String),
    /// Read the commands that the workspace and the user have written.
    Commands,
    /// A new conversation in the place of this one.
    Begin,
    /// What conversations there are.
    Sessions,
    /// Those in which these words are said.
    FindSessions(String),
    /// How one ended.
    PreviewSession(String),
    /// Put one out of the way, or back.
    ArchiveSession {
        id: String,
        is_archived: bool,
    },
    /// Remove one for good.
    RemoveSession(String),
    /// Take one up in the place of this one.
    Resume(String),
    /// The conversation into a file of the workspace, in the form that its name says.
    Export(String),
    /// What the model is told, and what it costs.
    Context,
    /// Have it asked whether the workspace may act.
    Trust,
    /// What each turn did to files, for going back to before this one, else the last.
    Changes(Option<Turn>),
    /// What taking back would do.
    Restoration(Restore),
    /// Shows what holds commands, once `guard` is as the user wants it.
    /// Show what runs without a question; with `forget`, what was allowed for the session asks again.
    Permissions {
        forget: bool,
    },
    Sandbox {
        guard: Option<bool>,
    },
    /// A plan in the user's editor, as a file.
    EditPlan {
        turn: Turn,
        document: DocumentId,
        text: String,
    },
    /// The draft in the user's editor.
    EditDraft(String),
    /// The pasted text at the caret in the user's editor.
    EditChip(String),
    /// A hunk of a change that waits, in the user's editor.
    EditHunk {
        turn: Turn,
        document: DocumentId,
        index: u64,
        /// The file that it is a part of.
        path: String,
        text: String,
    },
    /// Read a picture that a tool has read, to draw it.
    ReadPicture {
        turn: Turn,
        document: DocumentId,
        path: String,
    },
    /// Make a picture into what the terminal takes.
    MakePicture(Order),
    /// Read a picture for the draft.
    Picture(Source),
    /// Remember what was sent.
    NoteSent(String),
    /// Read what was sent in all workspaces.
    History,
    /// A file of the workspace in the user's editor.
    OpenFile {
        path: String,
        line: Option<u64>,
    },
    Remember(Rgb),
    /// Ask the terminal for its background again.
    AskColours,
    /// From now on the mouse does this.
    Mouse(Mouse),
    /// Have the user's command say what stands in the header.
    Status {
        command: Vec<String>,
        /// JSON.
        state: String,
    },
    /// Write this into the terminal's own lines.
    Print(String),
    Suspend,
    Redraw,
    Quit(u8),
}
