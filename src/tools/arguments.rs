//! From what a model wrote as the arguments of a call to an [`Input`].
//!
//! Models write JSON that is nearly right: in a fence, twice, with raw line breaks, under the name that another program has
//! for the same thing, a number as text. Whatever can be meant in one way only is read that way; nothing is made up. What is
//! left is the model's to mend and comes back as a [`Fault`] that lists the arguments.

use serde_json::{Map, Value};

use super::tool::{Fault, Input, Tool};

/// Names for the path of a file, beside the one a tool shows.
pub const FILE: &[&str] = &[
    "target_file",
    "file_path",
    "path",
    "filePath",
    "relative_workspace_path",
    "absolute_path",
    "filename",
];

/// Names for the path of a directory.
pub const DIRECTORY: &[&str] = &[
    "path",
    "relative_workspace_path",
    "directory",
    "dir_path",
    "targetDirectory",
];

/// Required by schemas so that models say what they are up to; a call without is as good.
const NEVER_REQUIRED: [&str; 3] = ["explanation", "instructions", "description"];

/// The arguments of a call, by the names and with the kinds of the tool's schema, in its order.
///
/// `raw` is the object, or the text where it is none. Reading an [`Input`] again gives the same one.
pub fn read(tool: &Tool, raw: Result<&Map<String, Value>, &str>) -> Result<Input, Fault> {
    let schema = &tool.schema;
    let invalid = |message: String| Fault::arguments(message).hint(listed(&tool.name, schema));
    let mut given = match raw {
        Ok(object) => object.clone(),
        Err(text) => object(text).map_err(|it| invalid(format!("the arguments are no JSON object: {it}")))?,
    };
    if tool.takes_any {
        return Ok(Input(given));
    }
    if let Some(old) = tool.old_form {
        (old.fold)(&mut given);
    }
    let none = Map::new();
    let properties = schema.get("properties").and_then(Value::as_object).unwrap_or(&none);
    let required: Vec<_> = texts(schema.get("required")).collect();
    let mut input = Map::new();
    for (name, wanted) in properties {
        let value = find(tool, properties, &given, name);
        let value = match value {
            Some(value) => {
                let value = coerce(name, value, wanted);
                Some(value.map_err(|kind| invalid(format!("the argument `{name}` must be {kind}")))?)
            }
            // A command without the word runs in the foreground.
            None if name == "is_background" => Some(Value::Bool(false)),
            None if required.contains(&name.as_str()) && !NEVER_REQUIRED.contains(&name.as_str()) => {
                return Err(invalid(format!("the argument `{name}` is missing")));
            }
            None => None,
        };
        if let Some(mut value) = value {
            rename_inside(tool, name, &mut value);
            input.insert(name.clone(), value);
        }
    }
    for name in tool.old_form.map_or(&[][..], |it| it.kept) {
        if let Some(value) = given.get(*name) {
            input.insert((*name).to_owned(), value.clone());
        }
    }
    Ok(Input(input))
}

/// A call inside a call of `multi_tool_use.parallel`, by which some models mean several calls at once.
#[derive(Clone, Debug, PartialEq)]
pub struct Wrapped {
    pub name: String,
    /// The text itself when it is no JSON object.
    pub arguments: Result<Map<String, Value>, String>,
}

/// The calls that a model wrapped into one; `None` when the call is what it says.
pub fn unwrap(name: &str, raw: Result<&Map<String, Value>, &str>) -> Option<Result<Vec<Wrapped>, Fault>> {
    if !matches!(name, "multi_tool_use.parallel" | "multi_tool_use_parallel" | "parallel") {
        return None;
    }
    let invalid = |message: String| {
        Fault::arguments(message).hint("Call each tool by itself; several calls may stand in one message.")
    };
    let given = match raw {
        Ok(object) => Ok(object.clone()),
        Err(text) => object(text).map_err(|it| invalid(format!("the arguments are no JSON object: {it}"))),
    };
    Some(given.and_then(|mut given| {
        let uses = match given.remove("tool_uses") {
            Some(Value::Array(uses)) => uses,
            Some(Value::String(text)) => match serde_json::from_str(&text) {
                Ok(Value::Array(uses)) => uses,
                _ => return Err(invalid("the argument `tool_uses` must be a list".to_owned())),
            },
            _ => return Err(invalid("the argument `tool_uses` is missing".to_owned())),
        };
        uses.into_iter()
            .map(|it| wrapped(it).ok_or_else(|| invalid("a member of `tool_uses` names no tool".to_owned())))
            .collect()
    }))
}

fn wrapped(value: Value) -> Option<Wrapped> {
    let Value::Object(mut members) = value else {
        return None;
    };
    let mut first = |names: &[&str]| names.iter().find_map(|it| members.remove(*it));
    let Some(Value::String(name)) = first(&["recipient_name", "name", "tool_name"]) else {
        return None;
    };
    let name = name.strip_prefix("functions.").unwrap_or(&name).to_owned();
    let arguments = match first(&["parameters", "arguments", "input"]) {
        Some(Value::Object(arguments)) => Ok(arguments),
        Some(Value::String(text)) => object(&text).map_err(|_| text),
        None | Some(Value::Null) => Ok(Map::new()),
        Some(other @ (Value::Bool(_) | Value::Number(_) | Value::Array(_))) => Err(other.to_string()),
    };
    Some(Wrapped { name, arguments })
}

/// The value for `name`: under its own name, else under another that the tool knows for it. `null` is absent.
fn find(tool: &Tool, properties: &Map<String, Value>, given: &Map<String, Value>, name: &str) -> Option<Value> {
    let present = |name: &str| given.get(name).filter(|it| !it.is_null());
    if let Some(value) = present(name) {
        return Some(value.clone());
    }
    let others = tool.synonyms.iter().filter(|(canonical, _)| *canonical == name);
    others
        .flat_map(|(_, others)| others.iter())
        // What the tool itself calls so is something else.
        .filter(|it| !properties.contains_key(**it))
        .find_map(|other| translate(name, other, present(other)?))
}

/// The value of `other` as one of `name`.
fn translate(name: &str, other: &str, value: &Value) -> Option<Value> {
    match (name, other) {
        // Seconds, unless the number would be a quarter of an hour then.
        ("timeout_ms", "timeout") => match whole(value) {
            Some(seconds @ 0..=1000) => Some(Value::from(seconds * 1000)),
            _ => Some(value.clone()),
        },
        // Nought does not mean a limit, but that nobody waits.
        ("timeout_ms", "block_until_ms") => (whole(value) != Some(0)).then(|| value.clone()),
        ("is_background", "block_until_ms") => (whole(value) == Some(0)).then_some(Value::Bool(true)),
        _ => Some(value.clone()),
    }
}

/// Other names inside lists: the canonical name is `questions[].prompt` then.
fn rename_inside(tool: &Tool, name: &str, value: &mut Value) {
    let Some(items) = value.as_array_mut() else {
        return;
    };
    for (canonical, others) in tool.synonyms {
        let Some(member) = canonical.strip_prefix(name).and_then(|it| it.strip_prefix("[].")) else {
            continue;
        };
        for item in items.iter_mut().filter_map(Value::as_object_mut) {
            if item.get(member).is_some_and(|it| !it.is_null()) {
                continue;
            }
            if let Some(found) = others.iter().find(|it| item.get(**it).is_some_and(|it| !it.is_null()))
                && let Some(value) = item.remove(*found)
            {
                item.insert(member.to_owned(), value);
            }
        }
    }
}

/// `value` as the schema wants it, or what it should have been.
fn coerce(name: &str, value: Value, wanted: &Value) -> Result<Value, &'static str> {
    match wanted.get("type").and_then(Value::as_str).unwrap_or_default() {
        "string" => match value {
            Value::String(text) => Ok(Value::String(fold_case(text, wanted))),
            Value::Number(_) | Value::Bool(_) => Ok(Value::String(value.to_string())),
            Value::Array(items) if name == "command" => {
                let words: Option<Vec<_>> = items.iter().map(Value::as_str).collect();
                words.map(|it| Value::String(shell(&it))).ok_or("a text")
            }
            Value::Array(mut items) if items.len() == 1 => match items.pop() {
                Some(Value::String(text)) => Ok(Value::String(fold_case(text, wanted))),
                _ => Err("a text"),
            },
            Value::Null | Value::Array(_) | Value::Object(_) => Err("a text"),
        },
        "integer" => whole(&value).map(Value::from).ok_or("a whole number"),
        "number" => match &value {
            Value::Number(_) => Ok(value),
            Value::String(text) => match serde_json::from_str(text.trim()) {
                Ok(number @ Value::Number(_)) => Ok(number),
                _ => Err("a number"),
            },
            Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => Err("a number"),
        },
        "boolean" => truth(&value).map(Value::Bool).ok_or("true or false"),
        "array" => {
            let items = match value {
                Value::Array(items) => items,
                Value::String(text) => match serde_json::from_str(&text) {
                    Ok(Value::Array(items)) => items,
                    _ if text.is_empty() => Vec::new(),
                    _ => vec![Value::String(text)],
                },
                one => vec![one],
            };
            let item = wanted.get("items").unwrap_or(&Value::Null);
            let items: Result<_, _> = items.into_iter().map(|it| inner(it, item)).collect();
            items.map(Value::Array)
        }
        "object" => match value {
            Value::Object(members) => Ok(Value::Object(inner_members(members, wanted))),
            Value::String(text) => match serde_json::from_str(&text) {
                Ok(Value::Object(members)) => Ok(Value::Object(inner_members(members, wanted))),
                _ => Err("an object"),
            },
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) => Err("an object"),
        },
        _ => Ok(value),
    }
}

/// An item of a list. What is built of parts may have other names inside, and is the tool's to read.
fn inner(value: Value, wanted: &Value) -> Result<Value, &'static str> {
    match wanted.get("type").and_then(Value::as_str) {
        Some("object" | "array") => Ok(coerce("", value.clone(), wanted).unwrap_or(value)),
        _ => coerce("", value, wanted).map_err(|kind| match kind {
            "a whole number" => "a list of whole numbers",
            "a number" => "a list of numbers",
            "true or false" => "a list of true or false",
            _ => "a list of texts",
        }),
    }
}

fn inner_members(mut members: Map<String, Value>, wanted: &Value) -> Map<String, Value> {
    if let Some(properties) = wanted.get("properties").and_then(Value::as_object) {
        for (name, wanted) in properties {
            if let Some(value) = members.get_mut(name)
                && !value.is_null()
                && let Ok(better) = coerce(name, value.clone(), wanted)
            {
                *value = better;
            }
        }
    }
    members.retain(|_, it| !it.is_null());
    members
}

/// The word of an enumeration that differs in case only; everything else as it is.
fn fold_case(text: String, wanted: &Value) -> String {
    if texts(wanted.get("enum")).any(|it| it == text) {
        return text;
    }
    let same = texts(wanted.get("enum")).find(|it| it.eq_ignore_ascii_case(&text));
    same.map_or(text.clone(), str::to_owned)
}

fn texts(list: Option<&Value>) -> impl Iterator<Item = &str> {
    list.and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
}

/// A whole number: itself, with a fraction of nought, or as text.
pub fn whole(value: &Value) -> Option<i64> {
    match value {
        Value::Number(number) => number.as_i64().or_else(|| {
            let number = number.as_f64()?;
            // Beyond this, neighbours cannot be told apart.
            (number.fract() == 0.0 && number.abs() < 9_007_199_254_740_992.0).then_some(number as i64)
        }),
        Value::String(text) => match serde_json::from_str(text.trim()) {
            Ok(number @ Value::Number(_)) => whole(&number),
            _ => None,
        },
        Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => None,
    }
}

/// Yes or no: itself, as text, or as 0 and 1.
pub fn truth(value: &Value) -> Option<bool> {
    match value {
        Value::Bool(truth) => Some(*truth),
        Value::Number(number) => match number.as_i64() {
            Some(0) => Some(false),
            Some(1) => Some(true),
            _ => None,
        },
        Value::String(text) => match text.trim() {
            it if it.eq_ignore_ascii_case("true") || it == "1" => Some(true),
            it if it.eq_ignore_ascii_case("false") || it == "0" => Some(false),
            _ => None,
        },
        Value::Null | Value::Array(_) | Value::Object(_) => None,
    }
}

/// Words as one line that a shell takes apart into them again.
fn shell(words: &[&str]) -> String {
    let is_plain = |it: char| it.is_ascii_alphanumeric() || "_-./:=@%+,".contains(it);
    let quoted = words.iter().map(|word| {
        if !word.is_empty() && word.chars().all(is_plain) {
            (*word).to_owned()
        } else {
            format!("'{}'", word.replace('\'', r"'\''"))
        }
    });
    quoted.collect::<Vec<_>>().join(" ")
}

/// The arguments of the tool, on one line.
fn listed(tool: &str, schema: &Value) -> String {
    let required: Vec<_> = texts(schema.get("required")).collect();
    let properties = schema.get("properties").and_then(Value::as_object);
    let list: Vec<_> = properties
        .into_iter()
        .flatten()
        .map(|(name, wanted)| {
            let kind = wanted.get("type").and_then(Value::as_str).unwrap_or("any");
            let is_required = required.contains(&name.as_str()) && !NEVER_REQUIRED.contains(&name.as_str());
            let required = if is_required { ", required" } else { "" };
            format!("`{name}` ({kind}{required})")
        })
        .collect();
    format!("`{tool}` takes a JSON object with: {}.", list.join(", "))
}

/// The object that a text is, or that can be made out in it; else what the parser said about the text as it is.
fn object(text: &str) -> Result<Map<String, Value>, String> {
    let text = text.trim();
    if text.is_empty() {
        return Ok(Map::new());
    }
    let first = match whole_object(text) {
        Ok(object) => return Ok(object),
        Err(first) => first,
    };
    let bare = without_fence(text);
    let repaired = escape_controls(bare);
    whole_object(bare)
        .ok()
        .or_else(|| first_object(bare))
        .or_else(|| whole_object(&repaired).ok())
        .or_else(|| first_object(&repaired))
        .ok_or(first)
}

fn whole_object(text: &str) -> Result<Map<String, Value>, String> {
    match serde_json::from_str(text) {
        Ok(Value::Object(object)) => Ok(object),
        Ok(Value::Null) => Ok(Map::new()),
        // Encoded twice.
        Ok(Value::String(inner)) => match serde_json::from_str(&inner) {
            Ok(Value::Object(object)) => Ok(object),
            _ => Err("it is a text".to_owned()),
        },
        Ok(Value::Bool(_) | Value::Number(_)) => Err("it is a single value".to_owned()),
        Ok(Value::Array(_)) => Err("it is a list".to_owned()),
        Err(error) => Err(error.to_string()),
    }
}

/// The first complete object at the start of the text. Some servers put an empty one in front of the real one.
fn first_object(text: &str) -> Option<Map<String, Value>> {
    let values = serde_json::Deserializer::from_str(text).into_iter::<Value>();
    let mut objects = values.map_while(|it| match it {
        Ok(Value::Object(object)) => Some(object),
        _ => None,
    });
    let first = objects.next()?;
    if first.is_empty() {
        return Some(objects.next().unwrap_or(first));
    }
    Some(first)
}

/// Without the fence around it, closed or not.
fn without_fence(text: &str) -> &str {
    let Some(inside) = text.strip_prefix("```") else {
        return text;
    };
    let inside = inside.trim_start_matches(|it: char| it.is_ascii_alphanumeric());
    let inside = inside.trim();
    inside.strip_suffix("```").unwrap_or(inside).trim_end()
}

/// With line breaks, tabs and other control characters inside of strings written as JSON wants them.
fn escape_controls(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 16);
    let mut is_string = false;
    let mut is_escaped = false;
    for it in text.chars() {
        if is_string && it < ' ' {
            // A backslash in front of a real line break: the break is what was meant.
            if is_escaped {
                out.pop();
            }
            match it {
                '\n' => out.push_str("\\n"),
                '\r' => out.push_str("\\r"),
                '\t' => out.push_str("\\t"),
                other => out.push_str(&format!("\\u{:04x}", u32::from(other))),
            }
            is_escaped = false;
            continue;
        }
        if it == '"' && !is_escaped {
            is_string = !is_string;
        }
        is_escaped = is_string && it == '\\' && !is_escaped;
        out.push(it);
    }
    out
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;
    use crate::tools::{Class, Part, Work, built_in};

    /// One argument of each kind, and the names that need more than another name.
    fn sample() -> Tool {
        Tool {
            schema: json!({
                "type": "object",
                "properties": {
                    "target_file": { "type": "string" },
                    "count": { "type": "integer" },
                    "share": { "type": "number" },
                    "deep": { "type": "boolean" },
                    "names": { "type": "array", "items": { "type": "string" } },
                    "options": { "type": "object", "properties": { "depth": { "type": "integer" } } },
                    "mode": { "type": "string", "enum": ["content", "count"] },
                    "command": { "type": "string" },
                    "timeout_ms": { "type": "integer" },
                    "is_background": { "type": "boolean" },
                    "explanation": { "type": "string" },
                    "questions": {
                        "type": "array",
                        "items": { "type": "object", "properties": { "prompt": { "type": "string" } } }
                    }
                },
                "required": ["target_file", "explanation", "is_background"]
            })
            .into(),
            synonyms: &[
                ("target_file", FILE),
                ("command", &["cmd"]),
                ("timeout_ms", &["timeout", "block_until_ms"]),
                ("is_background", &["run_in_background", "block_until_ms"]),
                ("questions[].prompt", &["text", "question"]),
            ],
            ..Tool::new("sample", Class::Reads, Work::Turn(Part::Ask))
        }
    }

    /// Reads arguments with a file and no background, which must come out beside `expected`.
    fn check(name: &str, given: Value, expected: Value) {
        let Value::Object(mut given) = given else {
            panic!("{name}: the case is no object")
        };
        let mut whole = json!({ "target_file": "a", "is_background": false });
        for (name, value) in expected.as_object().expect("an object") {
            whole[name] = value.clone();
        }
        if !FILE.iter().any(|it| given.contains_key(*it)) {
            given.insert("target_file".to_owned(), json!("a"));
        }
        let input = read(&sample(), Ok(&given)).map(|it| Value::Object(it.0));
        assert_eq!(input, Ok(whole), "{name}");
    }

    #[test]
    fn values_become_what_the_schema_wants() {
        let cases = [
            ("nothing is added", json!({}), json!({})),
            ("a number as text", json!({ "count": "5" }), json!({ "count": 5 })),
            (
                "blanks around a number",
                json!({ "count": " -5 " }),
                json!({ "count": -5 }),
            ),
            ("a fraction of nought", json!({ "count": 5.0 }), json!({ "count": 5 })),
            ("a fraction as text", json!({ "share": "0.5" }), json!({ "share": 0.5 })),
            ("a truth as text", json!({ "deep": "true" }), json!({ "deep": true })),
            (
                "a truth in Python",
                json!({ "deep": "False" }),
                json!({ "deep": false }),
            ),
            ("a truth as a number", json!({ "deep": 1 }), json!({ "deep": true })),
            (
                "one text for a list",
                json!({ "names": "x" }),
                json!({ "names": ["x"] }),
            ),
            ("no text for a list", json!({ "names": "" }), json!({ "names": [] })),
            (
                "a list as text",
                json!({ "names": "[\"x\", \"y\"]" }),
                json!({ "names": ["x", "y"] }),
            ),
            (
                "numbers in a list of texts",
                json!({ "names": [1, true] }),
                json!({ "names": ["1", "true"] }),
            ),
            (
                "a list of one for a text",
                json!({ "mode": ["count"] }),
                json!({ "mode": "count" }),
            ),
            (
                "an object as text",
                json!({ "options": "{\"depth\": \"3\"}" }),
                json!({ "options": { "depth": 3 } }),
            ),
            (
                "a number for a text",
                json!({ "command": 7 }),
                json!({ "command": "7" }),
            ),
            ("null is absent", json!({ "count": null, "names": null }), json!({})),
            ("what nobody knows is left out", json!({ "colour": "red" }), json!({})),
            (
                "a word in capitals",
                json!({ "mode": "Content" }),
                json!({ "mode": "content" }),
            ),
            (
                "a word nobody knows is the tool's",
                json!({ "mode": "files" }),
                json!({ "mode": "files" }),
            ),
        ];
        for (name, given, expected) in cases {
            check(name, given, expected);
        }
    }

    #[test]
    fn other_names_are_understood_and_the_right_one_wins() {
        let cases = [
            (
                "another name",
                json!({ "filePath": "b" }),
                json!({ "target_file": "b" }),
            ),
            (
                "both names",
                json!({ "path": "b", "target_file": "c" }),
                json!({ "target_file": "c" }),
            ),
            (
                "both names, one of them null",
                json!({ "path": "b", "target_file": null }),
                json!({ "target_file": "b" }),
            ),
            (
                "a command in words",
                json!({ "cmd": ["ls", "my file", "it's"] }),
                json!({ "command": r"ls 'my file' 'it'\''s'" }),
            ),
            ("seconds", json!({ "timeout": 30 }), json!({ "timeout_ms": 30_000 })),
            (
                "milliseconds",
                json!({ "timeout": 30_000 }),
                json!({ "timeout_ms": 30_000 }),
            ),
            (
                "a wait of nought",
                json!({ "block_until_ms": 0 }),
                json!({ "is_background": true }),
            ),
            ("a wait", json!({ "block_until_ms": 500 }), json!({ "timeout_ms": 500 })),
            (
                "in the background",
                json!({ "run_in_background": "true" }),
                json!({ "is_background": true }),
            ),
            (
                "inside a list",
                json!({ "questions": [{ "question": "why?", "header": "h" }, { "prompt": "how?", "text": "no" }] }),
                json!({ "questions": [{ "header": "h", "prompt": "why?" }, { "prompt": "how?", "text": "no" }] }),
            ),
        ];
        for (name, given, expected) in cases {
            check(name, given, expected);
        }
    }

    #[test]
    fn text_is_read_as_far_as_it_can_be_meant_in_one_way() {
        let cases = [
            ("an object", r#"{"target_file":"b"}"#, "b"),
            ("in a fence", "```json\n{\"target_file\":\"b\"}\n```", "b"),
            ("in a fence that is not closed", "```\n{\"target_file\":\"b\"}", "b"),
            ("words after it", "{\"target_file\":\"b\"}\nThis reads b.", "b"),
            ("twice", r#"{"target_file":"b"}{"target_file":"c"}"#, "b"),
            ("an empty one in front", r#"{}{"target_file":"b"}"#, "b"),
            ("a raw line break", "{\"target_file\":\"b\nc\t\u{1}\"}", "b\nc\t\u{1}"),
            (
                "a raw line break and words after it",
                "{\"target_file\":\"b\nc\"} done",
                "b\nc",
            ),
            (
                "a quote before a raw line break",
                "{\"target_file\":\"\\\"b\\\\\\\"\n\"}",
                "\"b\\\"\n",
            ),
            ("encoded twice", r#""{\"target_file\":\"b\"}""#, "b"),
            (
                "a line break escaped by a backslash alone",
                "{\"target_file\":\"b\\\nc\"}",
                "b\nc",
            ),
        ];
        for (name, text, expected) in cases {
            let input = read(&sample(), Err(text));
            let file = input.as_ref().map(|it| it.text("target_file"));
            assert_eq!(file, Ok(Some(expected)), "{name}");
        }
        let nothing = Tool {
            schema: json!({ "type": "object", "properties": {}, "required": [] }).into(),
            ..sample()
        };
        for text in ["", "  \n", "{}", "null", "```json\n{}\n```"] {
            assert_eq!(read(&nothing, Err(text)), Ok(Input::default()), "{text:?}");
        }
    }

    #[test]
    fn what_is_wrong_is_named_with_what_is_wanted() {
        let cases = [
            ("the argument `target_file` is missing", r#"{"count":1}"#),
            ("the argument `target_file` is missing", r#"{"target_file":null}"#),
            (
                "the argument `target_file` must be a text",
                r#"{"target_file":{"a":1}}"#,
            ),
            (
                "the argument `count` must be a whole number",
                r#"{"target_file":"a","count":1.5}"#,
            ),
            (
                "the argument `count` must be a whole number",
                r#"{"target_file":"a","count":"many"}"#,
            ),
            (
                "the argument `count` must be a whole number",
                r#"{"target_file":"a","count":1e300}"#,
            ),
            (
                "the argument `deep` must be true or false",
                r#"{"target_file":"a","deep":"perhaps"}"#,
            ),
            (
                "the argument `names` must be a list of texts",
                r#"{"target_file":"a","names":[{}]}"#,
            ),
            (
                "the argument `options` must be an object",
                r#"{"target_file":"a","options":"x"}"#,
            ),
            (
                "the argument `command` must be a text",
                r#"{"target_file":"a","command":["a",1]}"#,
            ),
            ("the arguments are no JSON object: it is a list", "[1]"),
            ("the arguments are no JSON object: it is a single value", "5"),
            (
                "the arguments are no JSON object: EOF while parsing a string at line 1 column 19",
                r#"{"target_file":"abc"#,
            ),
        ];
        for (message, text) in cases {
            let fault = read(&sample(), Err(text)).expect_err(text);
            assert_eq!(
                (fault.code, fault.message.as_str()),
                ("TOOL_ARGUMENTS_INVALID", message)
            );
            let next = fault.next.expect("the list of arguments");
            assert!(next.starts_with(
                "`sample` takes a JSON object with: `target_file` (string, required), `count` (integer), "
            ));
            assert!(next.contains("`explanation` (string), "), "{next}");
        }
    }

    #[test]
    fn calls_in_a_call_are_taken_apart() {
        let read = |name: &str, text: &str| unwrap(name, Err(text));
        assert_eq!(read("grep", "{}"), None);
        let calls = read(
            "multi_tool_use.parallel",
            r#"{"tool_uses":[{"recipient_name":"functions.grep","parameters":{"pattern":"x"}},
                {"recipient_name":"list_dir","parameters":"{\"target_directory\":\".\"}"},
                {"recipient_name":"functions.ls"},
                {"recipient_name":"cat","parameters":"no"}]}"#,
        );
        let call = |name: &str, arguments: Value| Wrapped {
            name: name.to_owned(),
            arguments: match arguments {
                Value::Object(it) => Ok(it),
                other => Err(other.as_str().unwrap_or_default().to_owned()),
            },
        };
        let expected = vec![
            call("grep", json!({ "pattern": "x" })),
            call("list_dir", json!({ "target_directory": "." })),
            call("ls", json!({})),
            call("cat", json!("no")),
        ];
        assert_eq!(calls, Some(Ok(expected)));
        for (text, message) in [
            ("{}", "the argument `tool_uses` is missing"),
            (r#"{"tool_uses":"x"}"#, "the argument `tool_uses` must be a list"),
            (r#"{"tool_uses":[1]}"#, "a member of `tool_uses` names no tool"),
        ] {
            let fault = read("multi_tool_use_parallel", text).map(|it| it.map_err(|it| it.message));
            assert_eq!(fault, Some(Err(message.to_owned())));
        }
    }

    #[test]
    fn a_megabyte_is_read_in_a_moment() {
        for text in [
            format!("{{\"target_file\":\"{}", "\n\\\"".repeat(300_000)),
            "{".repeat(1_000_000),
            "[{\"a\":".repeat(100_000),
            "{}".repeat(500_000),
            "```".repeat(300_000),
        ] {
            assert!(read(&sample(), Err(&text)).is_err());
        }
    }

    fn value() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            any::<i32>().prop_map(|it| Value::from(f64::from(it) / 4.0)),
            "[a-z0-9\\[\\]{}\":, \n\\\\]{0,12}".prop_map(Value::from),
            Just(json!("[\"a\", 1]")),
            Just(json!("{\"depth\": \"4\"}")),
            Just(json!("true")),
        ];
        leaf.prop_recursive(3, 24, 4, |inner| {
            prop_oneof![
                proptest::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                proptest::collection::vec(("[a-z]{1,6}", inner), 0..4)
                    .prop_map(|it| Value::Object(it.into_iter().collect())),
            ]
        })
    }

    /// Every tool there is, with every name that it knows for its arguments and some that it does not.
    fn names(tool: &Tool) -> Vec<String> {
        let schema = &tool.schema;
        let properties = schema["properties"]
            .as_object()
            .expect("an object schema")
            .keys()
            .cloned();
        let others = tool.synonyms.iter().flat_map(|(_, others)| others.iter());
        let others = others.map(|it| (*it).to_owned());
        let more = [
            "query",
            "case_sensitive",
            "include_pattern",
            "exclude_pattern",
            "colour",
        ];
        let lines = [
            "should_read_entire_file",
            "start_line_one_indexed",
            "end_line_one_indexed_inclusive",
        ];
        properties
            .chain(others)
            .chain(more.into_iter().chain(lines).map(str::to_owned))
            .collect()
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(256))]

        #[test]
        fn any_text_is_read_or_refused(text in "[{}\\[\\]\":,a-z0-9\n\\\\` ]{0,80}") {
            let _ = read(&sample(), Err(&text));
            let _ = unwrap("multi_tool_use.parallel", Err(&text));
        }

        #[test]
        fn what_was_read_is_read_as_it_is(
            values in proptest::collection::vec((any::<proptest::sample::Index>(), value()), 0..8),
        ) {
            for tool in built_in().iter().map(|it| &**it).chain([&sample()]) {
                let names = names(tool);
                let given: Map<_, _> = values.iter().map(|(at, value)| (at.get(&names).clone(), value.clone())).collect();
                if let Ok(input) = read(tool, Ok(&given)) {
                    prop_assert_eq!(read(tool, Ok(&input.0)), Ok(input.clone()));
                    let text = Value::Object(input.0.clone()).to_string();
                    prop_assert_eq!(read(tool, Err(&text)), Ok(input));
                }
            }
        }

        #[test]
        fn the_name_of_the_schema_wins(ours in "[a-z]{1,8}", theirs in "[a-z]{1,8}", at in any::<proptest::sample::Index>()) {
            let other = at.get(&FILE[1..]);
            let given = json!({ *other: theirs, "target_file": ours });
            let input = read(&sample(), Ok(given.as_object().expect("an object"))).expect("it is whole");
            prop_assert_eq!(input.text("target_file"), Some(ours.as_str()));
        }
    }
}
