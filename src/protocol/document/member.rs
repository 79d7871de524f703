//! Lenient reading of members: a wrong type counts as absent, a number in a string counts as a number.

use serde_json::{Map, Value};

use super::{Member, MemberForm};

pub fn text<'a>(members: &'a Map<String, Value>, name: &str) -> Option<&'a str> {
    members.get(name).and_then(Value::as_str)
}

pub fn integer(members: &Map<String, Value>, name: &str) -> Option<i64> {
    whole(members.get(name)?)
}

/// A number without its fraction, also from digits in a string.
pub fn whole(value: &Value) -> Option<i64> {
    match value {
        Value::Number(number) => number.as_i64().or_else(|| number.as_f64().map(|it| it as i64)),
        Value::String(text) => {
            let text = text.trim();
            let float = || text.parse::<f64>().ok().filter(|it| it.is_finite()).map(|it| it as i64);
            text.parse().ok().or_else(float)
        }
        Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => None,
    }
}

/// Returns a line number or a count; negative numbers become 0. `None` if absent or of another type.
pub fn count(members: &Map<String, Value>, name: &str) -> Option<u64> {
    integer(members, name).map(|it| it.max(0) as u64)
}

pub fn boolean(members: &Map<String, Value>, name: &str) -> Option<bool> {
    members.get(name).and_then(Value::as_bool)
}

pub fn object<'a>(members: &'a Map<String, Value>, name: &str) -> Option<&'a Map<String, Value>> {
    members.get(name).and_then(Value::as_object)
}

pub fn list<'a>(members: &'a Map<String, Value>, name: &str) -> &'a [Value] {
    members.get(name).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

pub fn texts<'a>(members: &'a Map<String, Value>, name: &str) -> Vec<&'a str> {
    list(members, name).iter().filter_map(Value::as_str).collect()
}

/// Sets `name` if it is missing or null.
pub fn default(members: &mut Map<String, Value>, name: &str, value: impl Into<Value>) {
    if members.get(name).is_none_or(Value::is_null) {
        members.insert(name.to_owned(), value.into());
    }
}

/// Gives scalars of the wrong type the right one: a number that should be a text, digits in a text, `"true"`.
/// What has no counterpart stays, and readers treat it as absent.
pub fn coerce(members: &mut Map<String, Value>, texts: &[&str], integers: &[&str], booleans: &[&str]) {
    for name in texts {
        coerce_text(members, name);
    }
    for name in integers {
        coerce_integer(members, name);
    }
    for name in booleans {
        coerce_boolean(members, name);
    }
}

/// Does the same for the members of a kind.
pub fn coerce_members(members: &mut Map<String, Value>, table: &[Member]) {
    for (name, form, _, _) in table {
        match form {
            MemberForm::Text | MemberForm::Word(_) => coerce_text(members, name),
            MemberForm::Count(_) | MemberForm::Code => coerce_integer(members, name),
            MemberForm::Flag => coerce_boolean(members, name),
            MemberForm::Details
            | MemberForm::Record(_)
            | MemberForm::Object(_)
            | MemberForm::Nullable(_)
            | MemberForm::Loose(_)
            | MemberForm::List(_)
            | MemberForm::Any => {}
        }
    }
}

fn coerce_text(members: &mut Map<String, Value>, name: &str) {
    if let Some(value @ (Value::Number(_) | Value::Bool(_))) = members.get_mut(name) {
        *value = Value::String(value.to_string());
    }
}

fn coerce_integer(members: &mut Map<String, Value>, name: &str) {
    if let Some(value @ (Value::String(_) | Value::Number(_))) = members.get_mut(name)
        && let Some(number) = whole(value)
    {
        *value = number.into();
    }
}

fn coerce_boolean(members: &mut Map<String, Value>, name: &str) {
    let truth = match members.get(name) {
        Some(Value::String(word)) => word.trim().to_ascii_lowercase().parse().ok(),
        Some(Value::Number(number)) => number.as_i64().map(|it| it != 0),
        Some(Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_)) | None => None,
    };
    if let Some(truth) = truth {
        members.insert(name.to_owned(), Value::Bool(truth));
    }
}

/// A text however it was wrapped: scalars are printed, lists of parts joined, anything else becomes JSON.
pub fn text_of(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        Value::Bool(_) | Value::Number(_) => value.to_string(),
        Value::Object(members) => match members.get("text").or_else(|| members.get("content")) {
            Some(Value::String(text)) => text.clone(),
            Some(_) | None => value.to_string(),
        },
        Value::Array(parts) => {
            let is_part = |it: &Value| it.is_string() || it.get("text").is_some_and(Value::is_string);
            if !parts.is_empty() && parts.iter().all(is_part) {
                parts.iter().map(text_of).collect()
            } else {
                value.to_string()
            }
        }
    }
}
