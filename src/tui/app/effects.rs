//! Work that the state asks for, as data: `update` returns effects, the effect runner carries them out, and the outcome comes
//! back as a message. A question to the link is one effect, whatever is asked: what to do with the reply comes with it.

use std::{fmt, path::PathBuf, sync::Arc};

use super::{
    App,
    own_files::{FileOutcome, FileTask},
};
use crate::{
    protocol::{Command, DocumentId, Query, Reply, Turn},
    t,
    theme::Rgb,
    tui::{image::ImageOrder, picture::Source, terminal::Mouse},
};

/// Takes the reply to a question, or why there is none.
type Continuation = dyn Fn(&mut App, Result<Reply, String>) -> Vec<Effect> + Send + Sync;

/// A question to the link, and what to do with the reply.
#[derive(Clone)]
pub struct Ask {
    pub query: Query,
    pub then: Arc<Continuation>,
}

impl PartialEq for Ask {
    fn eq(&self, other: &Self) -> bool {
        self.query == other.query
    }
}

impl fmt::Debug for Ask {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.query.fmt(f)
    }
}

/// Asks the link `query` and hands the content of a reply of that variant to `then`. Why there is no such reply is shown as a
/// toast; with `or_default` an empty reply is taken instead.
macro_rules! ask {
    ($query:expr, $reply:path, or_default, $then:expr) => {
        $crate::tui::app::Effect::ask($query, $crate::tui::app::effects::only!($reply), true, $then)
    };
    ($query:expr, $reply:path, $then:expr) => {
        $crate::tui::app::Effect::ask($query, $crate::tui::app::effects::only!($reply), false, $then)
    };
}

/// The content of a reply of one variant; `None` for any other, as a link may know less than it is asked.
macro_rules! only {
    ($reply:path) => {
        |reply| match reply {
            $reply(it) => Some(it),
            _ => None,
        }
    };
}

pub(in crate::tui) use {ask, only};

/// Takes the outcome of work on files, or an error for the user.
type FileContinuation = dyn Fn(&mut App, Result<FileOutcome, String>) -> Vec<Effect> + Send + Sync;

/// Work on the person's own files, and what to do with its outcome.
#[derive(Clone)]
pub struct FileWork {
    pub task: FileTask,
    pub then: Arc<FileContinuation>,
}

impl PartialEq for FileWork {
    fn eq(&self, other: &Self) -> bool {
        self.task == other.task
    }
}

impl fmt::Debug for FileWork {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.task.fmt(f)
    }
}

/// Has work done on the person's own files.
pub fn own_files(
    task: FileTask,
    then: impl Fn(&mut App, Result<FileOutcome, String>) -> Vec<Effect> + Send + Sync + 'static,
) -> Effect {
    Effect::Files(FileWork {
        task,
        then: Arc::new(then),
    })
}

/// A question whose reply, or the reason why there is none, is for `then`.
pub fn ask_for(
    query: Query,
    then: impl Fn(&mut App, Result<Reply, String>) -> Vec<Effect> + Send + Sync + 'static,
) -> Effect {
    Effect::Ask(Ask {
        query,
        then: Arc::new(then),
    })
}

impl Effect {
    /// Asks `query` and hands what `only` finds in the reply to `then`. Where there is none, `then` gets the default with
    /// `or_default`; else the toast says why.
    pub fn ask<T: Default + 'static>(
        query: Query,
        only: fn(Reply) -> Option<T>,
        or_default: bool,
        then: impl Fn(&mut App, T) -> Vec<Self> + Send + Sync + 'static,
    ) -> Self {
        let then = move |app: &mut App, reply: Result<Reply, String>| {
            let reply = reply.and_then(|it| only(it).ok_or_else(|| t!("news-other-answer").to_owned()));
            match reply {
                Ok(it) => then(app, it),
                Err(_) if or_default => then(app, T::default()),
                Err(why) => {
                    app.toast(why);
                    Vec::new()
                }
            }
        };
        Self::Ask(Ask {
            query,
            then: Arc::new(then),
        })
    }
}

/// Part of a conversation that is to be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReadBack {
    /// Bytes before the end, or so. `None`: all of it.
    pub bytes: Option<u64>,
    /// Tells this reading from others of the conversation.
    pub number: u64,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Effect {
    Send(Command),
    /// A question to the link.
    Ask(Ask),
    /// Read the older part of a long conversation.
    ReadBack(ReadBack),
    /// Work on the person's own files.
    Files(FileWork),
    /// To the clipboard, by whatever way there is.
    Copy {
        text: String,
        what: String,
    },
    /// Into a file of the workspace that the user asked for.
    Save {
        path: String,
        text: String,
        /// The user agreed to replace a file that says something else.
        overwrites: bool,
        /// The draft's version when it was asked for.
        draft: u64,
    },
    /// Look up what a citation cites.
    Cite {
        turn: Turn,
        document: DocumentId,
        path: String,
        first: u64,
        last: u64,
    },
    /// Read the commands that the workspace and the user have written.
    Commands,
    /// The same, for this line, which the program was started with and which may be one of them.
    OpenWith(String),
    /// A new conversation in the place of this one.
    Begin,
    /// List the stored conversations, for a page that is asked for at this version of the draft.
    Sessions(u64),
    /// Read the list of stored conversations again, for the page that shows it.
    RelistSessions,
    /// Find the stored conversations that contain these words.
    FindSessions(String),
    /// Read the end of a stored conversation.
    PreviewSession(String),
    /// Archive a stored conversation, or bring it back.
    ArchiveSession {
        id: String,
        is_archived: bool,
    },
    /// Delete a stored conversation permanently.
    RemoveSession(String),
    /// Resume a stored conversation in the place of this one.
    Resume(String),
    /// Write the conversation to a file of the workspace, in the format that its name says.
    Export {
        path: String,
        /// The user agreed to replace a file.
        overwrites: bool,
        /// The draft's version when it was asked for.
        draft: u64,
    },
    /// Find a name for an export of the conversation with this title.
    ProposeExport {
        title: String,
        /// The draft's version when it was asked for.
        draft: u64,
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
    MakePicture(ImageOrder),
    /// Read a picture for the draft.
    Picture(Source),
    /// Remember what was sent.
    NoteSent(String),
    /// Count a use of a command, by name.
    CountUse(String),
    /// Read what was sent in all workspaces, for a page that is asked for at this version of the draft.
    History(u64),
    /// A file of the workspace in the user's editor.
    OpenFile {
        path: String,
        line: Option<u64>,
    },
    /// A file of rules in the user's editor; its folder is made.
    OpenRules(PathBuf),
    Remember(Rgb),
    /// Ask the terminal for its background again.
    AskColours,
    /// From now on the mouse does this.
    Mouse(Mouse),
    /// Have the user's command say what stands in the header.
    Status(super::StatusRun),
    /// Write this into the terminal's own lines.
    Print(String),
    Suspend,
    Redraw,
    Quit(u8),
}
