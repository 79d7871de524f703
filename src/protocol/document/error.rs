//! `error`: what failed, who failed, and the details. It does not end the response.

use std::borrow::Cow;

use serde_json::Value;

use super::{
    ContentRule, Document, KindGroup, KindRow,
    MemberForm::{Details, Text},
    Need::{Always, Expected},
    member,
    normal::rename,
};
use crate::text::Role;

macro_rules! codes {
    ($($code:ident)*) => {
        /// Codes that writers choose from, section 11 of the protocol. Readers accept any.
        pub const ERROR_CODES: [&str; 29] = [$(stringify!($code)),*];
    };
}

codes! {
    FILE_NOT_FOUND FILE_EXISTS PERMISSION_DENIED PATH_OUTSIDE_WORKSPACE IGNORED_FILE EDIT_NO_MATCH EDIT_AMBIGUOUS
    EDIT_STALE COMMAND_FAILED_TO_START COMMAND_TIMEOUT TOOL_UNKNOWN TOOL_ARGUMENTS_INVALID TOOL_FORBIDDEN_IN_MODE
    TOOL_REJECTED TOOL_FAILED LLM_AUTH LLM_RATE_LIMITED LLM_OVERLOADED LLM_CONTEXT_LENGTH LLM_REFUSAL
    LLM_BAD_RESPONSE LLM_UNAVAILABLE STREAM_INTERRUPTED STREAM_PROTOCOL UNAUTHORIZED RATE_LIMITED CANCELLED MAX_TURNS
    INTERNAL
}

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

    pub(super) fn plain_text(&self) -> String {
        let text = format!("[error {}] {}\n{}", self.code, self.content, self.details);
        text.trim_end().to_owned()
    }
}

pub(super) static ROW: KindRow = KindRow {
    members: &[
        ("errorCode", Text, Always, "UPPER_SNAKE, from the list in §11"),
        (
            "source",
            Text,
            Always,
            "who failed: a tool's name, `llm`, `gateway`, `stream` or `client`",
        ),
        (
            "details",
            Details,
            Expected,
            "more about it, for the user; may be `\"\"`",
        ),
    ],
    content: ContentRule::Required,
    group: KindGroup::Failure,
    label: "plain-kind-error",
    heading: Some("error-word"),
    sign: ("✗", Role::Error),
    normalise: |members| rename(members, "code", "errorCode"),
    fill: |metadata, _| {
        member::default(metadata, "errorCode", "INTERNAL");
        member::default(metadata, "source", "gateway");
        member::default(metadata, "details", "");
    },
    ..KindRow::DEFAULT
};
