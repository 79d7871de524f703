//! One form for what travels in several: flat members, aliases, bare results, numbers in strings.

use std::borrow::Cow;

use serde_json::{Map, Value, json};

use super::{Kind, member};

/// Deepest nesting of a member's value. JSON is read to a depth of 128; a response object, an event and a line of the
/// journal each wrap a member a few levels more and must still be readable.
pub const DEPTH_LIMIT: usize = 96;

/// Resolves aliases of a kind's metadata; unknown members stay as they are.
///
/// The same function serves JSON documents, the payload of `document_start` and every patch. Doing it twice changes
/// nothing.
pub fn normalise(kind: &Kind, mut members: Map<String, Value>) -> Map<String, Value> {
    rename(&mut members, "durationMs", "duration_ms");
    for alias in ["call_id", "callId"] {
        rename(&mut members, alias, "toolCallId");
    }
    (kind.row().normalise)(&mut members);
    member::coerce_members(&mut members, kind.row().members);
    if !matches!(kind, Kind::Other(_)) {
        member::coerce(&mut members, &[], &[], &["incomplete"]);
    }
    for value in members.values_mut().filter(|it| is_deeper(it, DEPTH_LIMIT)) {
        *value = Value::String(value.to_string());
    }
    members
}

/// Returns arguments as an object: JSON text is parsed, any other value is stored under `_raw`.
pub fn normalise_arguments(arguments: Value) -> Value {
    let settled = match arguments {
        Value::Object(_) => arguments,
        Value::Null => json!({}),
        Value::String(text) if text.trim().is_empty() => json!({}),
        Value::String(text) => match serde_json::from_str(&text) {
            Ok(whole @ Value::Object(_)) => whole,
            // Some writers encode twice.
            Ok(Value::String(inner)) => match serde_json::from_str(&inner) {
                Ok(whole @ Value::Object(_)) => whole,
                Ok(_) | Err(_) => json!({ "_raw": text }),
            },
            Ok(_) | Err(_) => json!({ "_raw": text }),
        },
        other => json!({ "_raw": other.to_string() }),
    };
    if is_deeper(&settled, DEPTH_LIMIT) {
        return json!({ "_raw": settled.to_string() });
    }
    settled
}

/// A result as `{status, data}`.
pub fn normalise_result(result: Value) -> Value {
    let Value::Object(mut members) = result else {
        return json!({ "status": "success", "data": shallow(result) });
    };
    if let Some("success" | "error") = members.get("status").and_then(Value::as_str) {
        let data = members.get_mut("data").map(Value::take);
        members.insert("data".to_owned(), shallow(data.unwrap_or(Value::Null)));
        return Value::Object(members);
    }
    if members.get("status").is_none() && matches!(members.get("error"), Some(Value::String(_) | Value::Object(_))) {
        return json!({ "status": "error", "data": members.shift_remove("error").map(shallow) });
    }
    json!({ "status": "success", "data": shallow(Value::Object(members)) })
}

fn shallow(data: Value) -> Value {
    if is_deeper(&data, DEPTH_LIMIT - 1) {
        Value::String(data.to_string())
    } else {
        data
    }
}

/// Returns true if arrays and objects nest more than `limit` times.
pub fn is_deeper(value: &Value, limit: usize) -> bool {
    match value {
        Value::Array(items) => limit == 0 || items.iter().any(|it| is_deeper(it, limit - 1)),
        Value::Object(members) => limit == 0 || members.values().any(|it| is_deeper(it, limit - 1)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
    }
}

/// RFC 7396: null removes, objects merge, everything else replaces.
pub fn merge_patch(target: &mut Map<String, Value>, patch: Map<String, Value>) {
    for (name, value) in patch {
        match value {
            Value::Null => {
                target.shift_remove(&name);
            }
            Value::Object(inner) => {
                let slot = target.entry(name).or_insert_with(|| Value::Object(Map::new()));
                if !slot.is_object() {
                    *slot = Value::Object(Map::new());
                }
                if let Value::Object(members) = slot {
                    merge_patch(members, inner);
                }
            }
            other => {
                target.insert(name, other);
            }
        }
    }
}

/// Every name that a path travels under.
pub(super) fn settle_path(members: &mut Map<String, Value>) {
    for alias in ["path", "file", "target_file"] {
        rename(members, alias, "filePath");
    }
}

/// Renames a member. If both names are present, `name` wins and the alias stays as an unknown member.
pub(super) fn rename(members: &mut Map<String, Value>, alias: &str, name: &str) {
    if members.get(name).is_none_or(Value::is_null)
        && let Some(value) = members.shift_remove(alias)
    {
        members.insert(name.to_owned(), value);
    }
}

/// Returns text in a fence that is longer than any run of backticks in it: what stands before the text, the text, and what
/// stands after it.
pub(super) fn fenced_pieces<'a>(info: &str, content: &'a str) -> [Cow<'a, str>; 3] {
    let longest = content
        .lines()
        .map(str::trim_start)
        .map(|it| it.chars().take_while(|&c| c == '`').count())
        .max();
    let fence = "`".repeat(longest.unwrap_or(0).max(2) + 1);
    let is_closed = content.is_empty() || content.ends_with('\n');
    let end = if is_closed { fence.clone() } else { format!("\n{fence}") };
    [format!("{fence}{info}\n").into(), content.into(), end.into()]
}

/// Returns the same as one text.
pub(super) fn fenced(info: &str, content: &str) -> String {
    fenced_pieces(info, content).concat()
}

/// Returns text that ends with a line break; `""` for empty text.
pub(super) fn lines_closed(text: &str) -> String {
    if text.is_empty() || text.ends_with('\n') {
        text.to_owned()
    } else {
        format!("{text}\n")
    }
}

/// Names of files and `.` with their extensions, each with its fence tag.
const FENCE_TAGS: &str = include_str!("../../../assets/fence-tags.txt");

/// Returns the fence tag for a path, by its name or extension in any case. `""` if neither is known.
pub fn language_of(path: &str) -> &'static str {
    let name = path.rsplit(['/', '\\']).next().unwrap_or_default();
    let extension = name.rfind('.').and_then(|at| name.get(at..));
    let tag = |key: &str| {
        let mut rows = FENCE_TAGS.lines().filter_map(|it| it.split_once(' '));
        rows.find(|(it, _)| it.eq_ignore_ascii_case(key)).map(|(_, tag)| tag)
    };
    tag(name).or_else(|| tag(extension?)).unwrap_or_default()
}
