//! Events of a conversation. The screen, the journal, the gateway and the headless formats read them.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::os::long_text::LongText;

use super::{
    ConversationId, DocumentId, DocumentStart, FinishReason, Message, Mode, Position, ResponseId, Status, Turn,
};

/// An event with its position in the log, its turn and the time when it was appended.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    pub position: Position,
    /// Document ids repeat across responses; together with the turn they are unique.
    pub turn: Turn,
    /// Milliseconds since the Unix epoch.
    pub at_ms: u64,
    pub event: Event,
}

/// One step of a response.
///
/// A record of the journal holds the name under `event` and the members under `data`; see `codec::record`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(
    tag = "event",
    content = "data",
    rename_all = "snake_case",
    rename_all_fields = "camelCase"
)]
pub enum Event {
    /// Ours: opens a turn. In the journal and on local links only.
    #[serde(with = "message_member")]
    UserMessage(Message),
    ResponseStart(ResponseStart),
    DocumentStart(DocumentStart),
    ContentDelta {
        #[serde(rename = "documentId")]
        document: DocumentId,
        delta: String,
    },
    ToolCallStart {
        #[serde(rename = "documentId")]
        document: DocumentId,
        tool_name: String,
        tool_call_id: Option<String>,
    },
    /// An object replaces the arguments; a string is a fragment of their JSON text.
    ToolCallArguments {
        #[serde(rename = "documentId")]
        document: DocumentId,
        arguments: Value,
    },
    ToolResult {
        #[serde(rename = "documentId")]
        document: DocumentId,
        result: Value,
        #[serde(rename = "duration_ms")]
        duration_ms: Option<u64>,
    },
    /// `metadata` is an RFC 7396 merge patch, `append` grows string members in place.
    MetadataDelta {
        #[serde(rename = "documentId")]
        document: DocumentId,
        #[serde(default)]
        metadata: Map<String, Value>,
        #[serde(default, with = "appends")]
        append: Vec<(String, String)>,
    },
    /// Model reasoning, for display only.
    ThinkingDelta {
        delta: String,
    },
    /// `metadata` is complete: a member replaces its namesake whole, null takes it away.
    DocumentEnd {
        #[serde(rename = "documentId")]
        document: DocumentId,
        final_content: Option<LongText>,
        #[serde(default)]
        metadata: Map<String, Value>,
    },
    /// Ours, legal after the end: a merge patch (rejected hunk, undo, edited plan, exit of a background command).
    DocumentUpdate {
        #[serde(rename = "documentId")]
        document: DocumentId,
        #[serde(default)]
        metadata: Map<String, Value>,
    },
    /// Ours: a repair by the decoder. Readers other than sheaf's ignore it.
    Notice(Notice),
    /// Ours: something that is true only now (connecting, a retry countdown); never stored.
    #[serde(skip)]
    Progress(Progress),
    /// Ours: text exactly as the model wrote it, before the documents that are made of it. Only for output without a
    /// screen; never stored or sent.
    #[serde(skip)]
    Said {
        delta: String,
    },
    /// Ours: a title for the conversation.
    Title(Title),
    /// Ours: the conversation continues after an older turn. Newer turns stay, on a branch of their own.
    Branch(Branch),
    /// Ours: what the model was told. In the log and the journal only: never on a wire, a screen or in an export.
    Told(Map<String, Value>),
    Done(Done),
    /// An event that sheaf does not know: stored and forwarded, shown in the inspector only.
    Unknown {
        name: String,
        data: Value,
    },
}

impl Event {
    /// Returns the document that the event changes. `None` for events of the response and of the conversation.
    pub fn document(&self) -> Option<&DocumentId> {
        match self {
            Self::DocumentStart(start) => Some(&start.id),
            Self::ContentDelta { document, .. }
            | Self::ToolCallStart { document, .. }
            | Self::ToolCallArguments { document, .. }
            | Self::ToolResult { document, .. }
            | Self::MetadataDelta { document, .. }
            | Self::DocumentEnd { document, .. }
            | Self::DocumentUpdate { document, .. } => Some(document),
            Self::UserMessage(_)
            | Self::ResponseStart(_)
            | Self::ThinkingDelta { .. }
            | Self::Notice(_)
            | Self::Progress(_)
            | Self::Said { .. }
            | Self::Title(_)
            | Self::Branch(_)
            | Self::Told(_)
            | Self::Done(_)
            | Self::Unknown { .. } => None,
        }
    }
}

/// The data of a `user_message`: the message as a member.
mod message_member {
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    use super::Message;

    #[derive(Serialize, Deserialize)]
    struct Data<M> {
        message: M,
    }

    pub fn serialize<S: Serializer>(message: &Message, to: S) -> Result<S::Ok, S::Error> {
        Data { message }.serialize(to)
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Message, D::Error> {
        Ok(Data::deserialize(from)?.message)
    }
}

/// Appended texts: an object as on the wire; pairs if a member is there twice.
mod appends {
    use serde::{Deserialize, Deserializer, Serialize, Serializer};
    use serde_json::{Map, Value};

    use crate::protocol::document::member::text_of;

    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Appends {
        Members(Map<String, Value>),
        Pairs(Vec<(String, String)>),
    }

    pub fn serialize<S: Serializer>(pairs: &[(String, String)], to: S) -> Result<S::Ok, S::Error> {
        let member = |(name, text): &(String, String)| (name.clone(), text.as_str().into());
        let members: Map<_, _> = pairs.iter().map(member).collect();
        if members.len() == pairs.len() {
            members.serialize(to)
        } else {
            pairs.serialize(to)
        }
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<(String, String)>, D::Error> {
        Ok(match Appends::deserialize(from)? {
            Appends::Members(members) => members.into_iter().map(|(name, text)| (name, text_of(&text))).collect(),
            Appends::Pairs(pairs) => pairs,
        })
    }
}

/// The members of a response object that are known when it starts.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ResponseStart {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<ResponseId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub conversation_id: Option<ConversationId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mode: Option<Mode>,
    /// ISO 8601, UTC.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub created: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub capabilities: Vec<String>,
    /// Members we do not know.
    #[serde(skip_serializing_if = "Map::is_empty", default)]
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
    /// Cost in dollars; `None` unless the answers state it.
    pub dollars: Option<f64>,
}

/// Code of the notice about a request that no answer counts.
const SPENT: &str = "spent";

impl Cost {
    /// Returns the notice of a request beside the conversation, such as one for the message of a commit.
    pub fn notice(&self) -> Notice {
        let Usage {
            prompt_tokens,
            completion_tokens,
            ..
        } = self.usage;
        let dollars = self.dollars.map_or_else(String::new, |it| format!(" {it}"));
        Notice::new(
            Severity::Info,
            SPENT,
            format!("{prompt_tokens} {completion_tokens}{dollars}"),
        )
    }

    /// Reads the notice of such a request. `None` for other notices.
    pub fn read(notice: &Notice) -> Option<Self> {
        let mut words = notice.message.split(' ').filter(|_| notice.code == SPENT);
        let (sent, made) = (words.next()?.parse::<u64>().ok()?, words.next()?.parse::<u64>().ok()?);
        let dollars = words.next().and_then(|it| it.parse::<f64>().ok());
        Some(Self {
            usage: Usage {
                prompt_tokens: sent,
                completion_tokens: made,
                total_tokens: sent.saturating_add(made),
            },
            dollars: dollars.filter(|it| it.is_finite() && *it >= 0.0),
        })
    }

    /// Adds another cost.
    pub fn add(&mut self, other: &Self) {
        let sum = &mut self.usage;
        sum.prompt_tokens = sum.prompt_tokens.saturating_add(other.usage.prompt_tokens);
        sum.completion_tokens = sum.completion_tokens.saturating_add(other.usage.completion_tokens);
        sum.total_tokens = sum.total_tokens.saturating_add(other.usage.total_tokens);
        self.dollars = match (self.dollars, other.dollars) {
            (Some(sum), Some(more)) => Some(sum + more),
            (sum, more) => sum.or(more),
        };
    }
}

/// The end of a response.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Done {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
    /// Members of `usage` that we do not know.
    #[serde(skip_serializing_if = "Map::is_empty", default)]
    pub extra_usage: Map<String, Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<ResponseId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub conversation_id: Option<ConversationId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mode: Option<Mode>,
    /// ISO 8601, UTC.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub created: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<Status>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub finish_reason: Option<FinishReason>,
    #[serde(rename = "duration_ms", skip_serializing_if = "Option::is_none")]
    pub duration_ms: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool_call_count: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub turn_count: Option<u64>,
    /// Members of `done` that we do not know.
    #[serde(skip_serializing_if = "Map::is_empty", default)]
    pub extra: Map<String, Value>,
    /// Members of its `metadata` that we do not know.
    #[serde(skip_serializing_if = "Map::is_empty", default)]
    pub extra_metadata: Map<String, Value>,
}

/// The point after which a conversation continues.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Branch {
    /// Turn after which it continues; 0 for the beginning.
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
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Title {
    #[serde(rename = "title")]
    pub text: String,
    #[serde(skip_serializing_if = "std::ops::Not::not", default)]
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

impl Notice {
    /// A notice about no document in particular.
    pub fn new(severity: Severity, code: &str, message: impl Into<String>) -> Self {
        Self {
            severity,
            code: code.to_owned(),
            message: message.into(),
            document: None,
        }
    }
}

/// State of a link before and between events.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Progress {
    Connecting {
        peer: String,
    },
    /// The peer is asked for its models: the message wants one of them.
    Listing {
        peer: String,
    },
    /// The request was sent; nothing has been received.
    Waiting {
        peer: String,
    },
    /// The peer failed or asked for a pause; the next attempt is at this time.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cost_is_read_as_it_was_written() {
        for dollars in [None, Some(0.0125), Some(0.0)] {
            let cost = Cost {
                usage: Usage {
                    prompt_tokens: 1200,
                    completion_tokens: 34,
                    total_tokens: 1234,
                },
                dollars,
            };
            assert_eq!(Cost::read(&cost.notice()), Some(cost));
        }
        for (code, message) in [
            ("spend", "1 2"),
            (SPENT, ""),
            (SPENT, "1"),
            (SPENT, "1 x"),
            (SPENT, "-1 2"),
        ] {
            assert_eq!(
                Cost::read(&Notice::new(Severity::Info, code, message)),
                None,
                "{code} {message}"
            );
        }
        let odd = Notice::new(Severity::Info, SPENT, "1 2 NaN");
        assert_eq!(Cost::read(&odd).and_then(|it| it.dollars), None);
    }

    #[test]
    fn an_unknown_price_does_not_hide_a_known_one() {
        let cost = |dollars| Cost {
            dollars,
            ..Cost::default()
        };
        for (left, right, sum) in [
            (None, None, None),
            (Some(1.0), None, Some(1.0)),
            (Some(1.0), Some(2.0), Some(3.0)),
        ] {
            let mut all = cost(left);
            all.add(&cost(right));
            assert_eq!(all.dollars, sum);
        }
    }
}
