//! The member `compaction` of a `tool_call`, sheaf's own: how the conversation was shortened for the model.
//!
//! It holds what is needed to repeat the compaction when the conversation is read from its journal. Turns are counted
//! back from the document, because a conversation that is sent elsewhere is numbered anew.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::Document;
use crate::protocol::DocumentId;

/// Name of the call of such a document.
pub const COMPACT: &str = "compact_conversation";

/// The member of the document.
pub(super) const MEMBER: &str = "compaction";

/// Cause, method and size of a compaction.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Compaction {
    pub cause: Cause,
    pub way: CompactionMethod,
    /// Tokens of the entire request before and after; estimates if the server does not count.
    pub before_tokens: u64,
    pub after_tokens: u64,
    /// Context window of the model; `None` if it is unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub window_tokens: Option<u64>,
    /// Number of turns up to this document that stay unchanged. It includes the document's own turn if that is one of
    /// the model's.
    pub kept_turns: usize,
    /// In the oldest of these turns, only the user's message and the documents after this one stay.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub behind: Option<DocumentId>,
    /// Ids of the calls whose results were removed, with [`CompactionMethod::Single`].
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub calls: Vec<String>,
}

/// Why room was made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Cause {
    /// The window was almost full.
    #[default]
    Full,
    /// The server refused the request as too long.
    Overflow,
    /// The user asked for it.
    Asked,
}

/// Method of a compaction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum CompactionMethod {
    /// A line replaces each older tool result.
    Results,
    /// A summary replaces the conversation before it. It is the text of the result.
    #[default]
    Summary,
    /// A line replaces the results of single calls.
    Single,
}

impl Compaction {
    /// As the member of a document.
    pub fn to_json(&self) -> Value {
        serde_json::to_value(self).unwrap_or_default()
    }
}

impl Document {
    /// Returns the compaction that this document describes and its summary (`""` if it has none). `None` for other
    /// documents.
    pub fn compaction(&self) -> Option<(Compaction, &str)> {
        let said = self.metadata.get(MEMBER)?;
        let compaction = serde_json::from_value(said.clone()).ok()?;
        let text = self.metadata.get("result").and_then(|it| it.pointer("/data/content"));
        Some((compaction, text.and_then(Value::as_str).unwrap_or_default()))
    }
}
