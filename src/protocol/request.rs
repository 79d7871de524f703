//! Requests, messages and answers, from a client to a gateway.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::{ConversationId, DocumentId, Mode, Outcome, Role};

/// One message of a conversation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Message {
    pub role: Role,
    #[serde(default)]
    pub content: String,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub clarification_response: Option<ClarificationResponse>,
    /// The response's documents, when an earlier answer travels back.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub documents: Vec<Value>,
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

impl Message {
    pub fn user(content: impl Into<String>) -> Self {
        Self {
            role: Role::User,
            content: content.into(),
            clarification_response: None,
            documents: Vec::new(),
            extra: Map::new(),
        }
    }

    #[cfg(test)]
    pub fn assistant(content: impl Into<String>) -> Self {
        Self {
            role: Role::Assistant,
            ..Self::user(content)
        }
    }
}

/// The user's answer to a clarification or approval.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ClarificationResponse {
    pub document_id: DocumentId,
    pub outcome: Outcome,
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub answers: Vec<QuestionAnswer>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub reason: Option<String>,
}

impl ClarificationResponse {
    /// An answer without a reason.
    pub fn new(document_id: DocumentId, outcome: Outcome, answers: Vec<QuestionAnswer>) -> Self {
        Self {
            document_id,
            outcome,
            answers,
            reason: None,
        }
    }
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct QuestionAnswer {
    pub question_id: String,
    #[serde(default)]
    pub selected_option_ids: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub free_text: Option<String>,
    /// Decisions on the hunks of a change. The option beside them is a rejection unless all hunks are accepted
    /// unchanged, so that a reader that does not know hunks writes nothing.
    #[serde(skip_serializing_if = "Vec::is_empty", default, deserialize_with = "hunks")]
    pub hunks: Vec<HunkAnswer>,
}

/// The user's decision on one hunk of a change that needs approval.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct HunkAnswer {
    /// Which hunk of the change, counted from 1.
    pub index: u64,
    /// True if the hunk is to be written. A hunk without a decision is not.
    pub accepted: bool,
    /// Text to write instead of the proposed one.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub new_string: Option<String>,
    /// For the model.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub comment: Option<String>,
}

impl HunkAnswer {
    /// Reads a list of decisions. An unreadable one becomes a rejection of no hunk, so that a non-empty list never
    /// becomes an empty one, which would accept everything.
    pub fn list(value: &Value) -> Vec<Self> {
        let items = value.as_array().into_iter().flatten();
        let unread = Self {
            index: 0,
            accepted: false,
            new_string: None,
            comment: None,
        };
        items
            .map(|it| Self::deserialize(it).unwrap_or_else(|_| unread.clone()))
            .collect()
    }
}

fn hunks<'de, D: serde::Deserializer<'de>>(source: D) -> Result<Vec<HunkAnswer>, D::Error> {
    Ok(HunkAnswer::list(&Value::deserialize(source)?))
}

/// The body of `POST /api/v1/chat/completions`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Request {
    pub model: String,
    pub mode: Mode,
    pub context: Option<Value>,
    pub messages: Vec<Message>,
    /// `None`: all tools that the mode permits.
    pub tools: Option<Vec<String>>,
    pub available_tools: Option<Value>,
    pub stream: bool,
    pub conversation_id: Option<ConversationId>,
    /// `None`: the gateway's own choice.
    pub dialect: Option<Dialect>,
    pub extra: Map<String, Value>,
}

/// Framing of a stream.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Dialect {
    /// A: the event's name in the `event:` line.
    #[default]
    Named,
    /// B: the name as `type` inside the data, `[DONE]` at the end.
    Data,
}

impl Dialect {
    pub fn parse(word: &str) -> Option<Self> {
        match word {
            "named" => Some(Self::Named),
            "data" => Some(Self::Data),
            _ => None,
        }
    }

    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Named => "named",
            Self::Data => "data",
        }
    }
}
