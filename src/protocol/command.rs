//! What a consumer asks of a link. Everything that comes of it arrives as events.

use serde_json::{Map, Value};

use super::{ClarificationResponse, DocumentId, Message, Mode, Turn};

#[derive(Clone, Debug, PartialEq)]
pub enum Command {
    /// A message of the user: opens a turn.
    Submit(Submit),
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
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reply {
    Models(Vec<String>),
}
