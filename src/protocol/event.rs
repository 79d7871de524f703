//! Events of a conversation. The screen, the journal, the gateway and the headless formats read them.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::{
    ConversationId, DocumentId, DocumentStart, FinishReason, Message, Mode, Position, ResponseId, Status, Turn,
};

/// An event where it stands: its place in the log, the turn it belongs to and when it was appended.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    pub position: Position,
    /// Document ids repeat across responses; together with the turn they are unique.
    pub turn: Turn,
    /// Milliseconds since the Unix epoch.
    pub at_ms: u64,
    pub event: Event,
}

/// One step in the making of a response.
#[derive(Clone, Debug, PartialEq)]
pub enum Event {
    /// Ours: opens a turn. In the journal and on local links only.
    UserMessage(Message),
    ResponseStart(ResponseStart),
    DocumentStart(DocumentStart),
    ContentDelta {
        document: DocumentId,
        delta: String,
    },
    ToolCallStart {
        document: DocumentId,
        tool_name: String,
        tool_call_id: Option<String>,
    },
    /// An object replaces the arguments; a string is a fragment of their JSON text.
    ToolCallArguments {
        document: DocumentId,
        arguments: Value,
    },
    ToolResult {
        document: DocumentId,
        result: Value,
        duration_ms: Option<u64>,
    },
    /// `metadata` is an RFC 7396 merge patch, `append` grows string members in place.
    MetadataDelta {
        document: DocumentId,
        metadata: Map<String, Value>,
        append: Vec<(String, String)>,
    },
    /// Model reasoning, for display only.
    ThinkingDelta {
        delta: String,
    },
    /// `metadata` is complete: a member replaces its namesake whole, null takes it away.
    DocumentEnd {
        document: DocumentId,
        final_content: Option<String>,
        metadata: Map<String, Value>,
    },
    /// Ours, legal after the end: a merge patch (rejected hunk, undo, edited plan, exit of a background command).
    DocumentUpdate {
        document: DocumentId,
        metadata: Map<String, Value>,
    },
    /// Ours: what the decoder had to repair. Readers other than sheaf's ignore it.
    Notice(Notice),
    /// Ours: something that is true only now (connecting, a retry countdown); never stored.
    Progress(Progress),
    /// Ours: a title for the conversation.
    Title(Title),
    /// Ours: the conversation goes on behind something older. What was said since stays, on a branch of its own.
    Branch(Branch),
    Done(Done),
    /// An event of somebody else's: kept and forwarded, shown in the inspector only.
    Unknown {
        name: String,
        data: Value,
    },
}

/// The members of a response object that are known when it starts.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ResponseStart {
    pub id: Option<ResponseId>,
    pub conversation_id: Option<ConversationId>,
    pub model: Option<String>,
    pub mode: Option<Mode>,
    /// ISO 8601, UTC.
    pub created: Option<String>,
    pub capabilities: Vec<String>,
    /// Members we do not know.
    pub extra: Map<String, Value>,
}

/// Tokens, summed over all model requests of a response; 0 = unknown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Usage {
    pub prompt_tokens: u64,
    pub completion_tokens: u64,
    pub total_tokens: u64,
}

/// Cost of answers.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Cost {
    pub usage: Usage,
    /// Dollars, where whoever answered says so.
    pub dollars: Option<f64>,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Done {
    pub usage: Option<Usage>,
    pub id: Option<ResponseId>,
    pub conversation_id: Option<ConversationId>,
    pub model: Option<String>,
    pub mode: Option<Mode>,
    /// ISO 8601, UTC.
    pub created: Option<String>,
    pub status: Option<Status>,
    pub finish_reason: Option<FinishReason>,
    pub duration_ms: Option<u64>,
    pub tool_call_count: Option<u64>,
    pub turn_count: Option<u64>,
    /// Members of `done`, its `usage` and its `metadata` that we do not know.
    pub extra: Map<String, Value>,
    pub extra_usage: Map<String, Value>,
    pub extra_metadata: Map<String, Value>,
}

/// The point after which a conversation continues.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Branch {
    /// Behind this turn; 0: from the beginning.
    pub after: Turn,
    /// Last document of that turn's answer that belongs to the branch. `None`: the whole answer does.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub upto: Option<DocumentId>,
    /// That document is a question, and its answer counts no more: it is to be answered in another way.
    #[serde(rename = "open", skip_serializing_if = "std::ops::Not::not", default)]
    pub is_open: bool,
}

impl Branch {
    /// No document has this name: nothing of the answer counts.
    pub const NOTHING: &'static str = "";
}

/// The title of a conversation. A title of the user's is never replaced by a program's.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Title {
    pub text: String,
    pub by_user: bool,
}

impl Title {
    /// Takes the place of `old`, unless that is the user's and this one is not; whether it did.
    pub fn replace(self, old: &mut Option<Self>) -> bool {
        let may = self.by_user || !old.as_ref().is_some_and(|it| it.by_user);
        if may {
            *old = Some(self);
        }
        may
    }
}

impl<T: Into<String>> From<T> for Title {
    fn from(text: T) -> Self {
        Self {
            text: text.into(),
            by_user: false,
        }
    }
}

/// Severity of a repair.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    Info,
    Warning,
    Error,
}

/// A defect of a stream, and its repair.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Notice {
    pub severity: Severity,
    /// A short kebab-case name: `unknown-document`, `duplicate-id`, `bad-json` …
    pub code: String,
    pub message: String,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub document: Option<DocumentId>,
}

/// State of a link before and between events.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Progress {
    Connecting {
        peer: String,
    },
    /// The request is out; nothing has come back yet.
    Waiting {
        peer: String,
    },
    /// The peer asked for a pause or failed; the next try comes at this time.
    Retrying {
        attempt: u32,
        of: u32,
        at_ms: u64,
        because: String,
    },
    /// No byte for so long that the user should know.
    Stalled {
        silent_ms: u64,
    },
    /// Nothing to report any more.
    Idle,
}
