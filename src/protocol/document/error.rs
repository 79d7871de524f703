//! `error`: what failed, who failed, and the details. It does not end the response.

use std::borrow::Cow;

use serde_json::{Map, Value};

use super::{Document, member};

#[derive(Clone, Debug, PartialEq)]
pub struct Error<'a> {
    pub content: &'a str,
    /// UPPER_SNAKE.
    pub code: &'a str,
    /// A tool's name, `llm`, `gateway`, `stream` or `client`.
    pub source: &'a str,
    /// An object is printed as JSON.
    pub details: Cow<'a, str>,
}

impl<'a> Error<'a> {
    pub(super) fn read(it: &'a Document) -> Self {
        let members = &it.metadata;
        Self {
            content: it.text(),
            code: member::text(members, "errorCode").unwrap_or("INTERNAL"),
            source: member::text(members, "source").unwrap_or("gateway"),
            details: match members.get("details") {
                Some(Value::String(text)) => Cow::Borrowed(text),
                None | Some(Value::Null) => Cow::Borrowed(""),
                Some(other) => Cow::Owned(serde_json::to_string_pretty(other).unwrap_or_default()),
            },
        }
    }
}

pub(super) fn fill(metadata: &mut Map<String, Value>) {
    member::default(metadata, "errorCode", "INTERNAL");
    member::default(metadata, "source", "gateway");
    member::default(metadata, "details", "");
}
