//! Lenient reading of members: a wrong type counts as absent, a number in a string counts as a number.

use serde_json::{Map, Value};

pub fn text<'a>(members: &'a Map<String, Value>, name: &str) -> Option<&'a str> {
    members.get(name).and_then(Value::as_str)
}

pub fn integer(members: &Map<String, Value>, name: &str) -> Option<i64> {
    match members.get(name)? {
        Value::Number(number) => number.as_i64().or_else(|| number.as_f64().map(|it| it as i64)),
        Value::String(text) => text.trim().parse().ok(),
        Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => None,
    }
}

/// A line number or a count: what is below zero counts as zero.
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

/// Sets `name` where it is missing or null.
pub fn default(members: &mut Map<String, Value>, name: &str, value: impl Into<Value>) {
    if members.get(name).is_none_or(Value::is_null) {
        members.insert(name.to_owned(), value.into());
    }
}
