//! `tool_call`: a tool, its arguments and what came of it.

use std::sync::LazyLock;

use serde_json::{Map, Value};

use super::{
    ContentRule, Document, KindGroup, KindRow,
    MemberForm::{Any, Count, Flag, Loose, Record, Text, Word},
    Need::{Always, Free, Structure, Timed},
    Shape, hook_run, member,
    normal::{normalise_arguments, normalise_result, rename},
};
use crate::text::Role;

#[derive(Clone, Debug, PartialEq)]
pub struct ToolCall<'a> {
    pub tool_name: &'a str,
    /// `None` until the writer sends one or the document ends.
    pub tool_call_id: Option<&'a str>,
    /// Text that is not a JSON object is under `_raw`.
    pub arguments: &'a Map<String, Value>,
    /// `None`: not finished, or ended without one.
    pub result: Option<CallResult<'a>>,
    pub duration_ms: Option<u64>,
    pub truncated: bool,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CallResult<'a> {
    pub failed: bool,
    pub data: &'a Value,
}

/// Result that a strict writer gives a call that never got one.
pub(super) const NO_RESULT: &str = "no result received";

static NOTHING: LazyLock<Map<String, Value>> = LazyLock::new(Map::new);

impl<'a> ToolCall<'a> {
    pub(super) fn read(it: &'a Document) -> Self {
        let members = &it.metadata;
        let result = member::object(members, "result").map(|result| CallResult {
            failed: member::text(result, "status") == Some("error"),
            data: result.get("data").unwrap_or(&Value::Null),
        });
        let result = result.filter(|it| !it.failed || it.data.as_str() != Some(NO_RESULT));
        Self {
            tool_name: member::text(members, "toolName").unwrap_or("tool"),
            tool_call_id: member::text(members, "toolCallId"),
            arguments: member::object(members, "arguments").unwrap_or(&NOTHING),
            result,
            duration_ms: member::count(members, "duration_ms"),
            truncated: member::boolean(members, "truncated").unwrap_or_default(),
        }
    }

    pub(super) fn plain_text(&self) -> String {
        let arguments = Value::Object(self.arguments.clone());
        let mut text = format!("[{} {arguments}]", self.tool_name);
        if let Some(result) = &self.result {
            text.push_str(if result.failed { "\nfailed: " } else { "\nresult: " });
            match result.data {
                Value::String(data) => text.push_str(data),
                data => text.push_str(&data.to_string()),
            }
        }
        text
    }
}

static RESULT: Shape = Shape {
    name: "CallResult",
    about: "Result of a call.",
    members: &[
        (
            "status",
            Word(&["success", "error"]),
            Always,
            "`error`: the call failed",
        ),
        (
            "data",
            Any,
            Always,
            "what the tool gave, or why it failed; null for nothing",
        ),
    ],
};

pub(super) static ROW: KindRow = KindRow {
    aliases: &["call", "tool"],
    members: &[
        ("toolName", Text, Always, "name of the tool"),
        (
            "toolCallId",
            Text,
            Structure,
            "id of the call; readers call it `call_` and the id of the document",
        ),
        (
            "arguments",
            Record(&Any),
            Always,
            "arguments of the call; text that is no JSON object is in `_raw`",
        ),
        (
            "result",
            Loose(&RESULT),
            Free,
            "result of the call; absent while it runs",
        ),
        (
            "duration_ms",
            Count(0),
            Timed,
            "duration in milliseconds; absent while it runs",
        ),
        ("truncated", Flag, Free, "true if the result was cut"),
        ("state", Word(&["rejected"]), Free, "`rejected`: the call was not made"),
        ("reason", Text, Free, "reason for a rejected call"),
        hook_run::MEMBER,
    ],
    content: ContentRule::Absent,
    group: KindGroup::Action,
    label: "plain-kind-tool-call",
    sign: ("●", Role::Dim),
    is_line: true,
    normalise: |members| {
        rename(members, "name", "toolName");
        if let Some(arguments) = members.get_mut("arguments") {
            *arguments = normalise_arguments(arguments.take());
        }
        if let Some(result) = members.get_mut("result").filter(|it| !it.is_null()) {
            *result = normalise_result(result.take());
        }
    },
    fill: |metadata, id| {
        member::default(metadata, "toolName", "tool");
        member::default(metadata, "toolCallId", format!("call_{id}"));
        member::default(metadata, "arguments", Map::new());
    },
    ..KindRow::DEFAULT
};
