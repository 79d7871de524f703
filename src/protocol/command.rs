//! What a consumer asks of a link. Everything that comes of it arrives as events.

use serde_json::{Map, Value};

use super::{ClarificationResponse, DocumentId, Message, Mode, Turn};

#[derive(Clone, Debug, PartialEq)]
pub enum Command {
    /// A message of the user: opens a turn.
    Submit(Submit),
    /// Said to whoever is at work: it joins the answer that is being made; when none is, it opens a turn.
    Steer(Submit),
    /// A command that the user runs: a turn of its own, in which `submit` says what was typed. No message can ask for it, so
    /// that none of another machine does.
    Run {
        submit: Submit,
        line: String,
        /// The model is told of it.
        is_shown: bool,
    },
    /// An answer to an open clarification or approval of `turn`.
    Answer {
        turn: Turn,
        response: ClarificationResponse,
    },
    /// Stops the running response; does nothing when none runs.
    Cancel,
    /// Changes a document after its end (an edited todo, a rejected hunk).
    Update {
        turn: Turn,
        document: DocumentId,
        metadata: Map<String, Value>,
    },
}

#[derive(Clone, Debug, PartialEq)]
pub struct Submit {
    pub message: Message,
    pub mode: Mode,
    /// `None`: the link's own.
    pub model: Option<String>,
}

/// A question that is answered at once and leaves no trace in the conversation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Query {
    /// The ids of the models that one may choose.
    Models,
    /// Files of the workspace whose path fits what was typed, the best first.
    Files { pattern: String, limit: usize },
    /// What the next request would hold, part by part.
    Context,
    /// Ask the user again whether the workspace may act.
    Trust,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reply {
    Models(Vec<String>),
    /// Paths from the workspace's root, directories with a `/` at the end.
    Files(Vec<String>),
    Context(Vec<ContextPart>),
    /// It is done; what comes of it is seen in the log.
    Heard,
}

/// A part of what a model is told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ContextPart {
    /// `system prompt`, `rule .cursor/rules/errors.mdc`, `conversation` …
    pub name: String,
    /// An estimate, until the server counts.
    pub tokens: u64,
    /// What one should know of it: that it was cut, why it is missing. May be empty.
    pub note: String,
}
