//! Schemas of arguments, reduced to what every provider accepts: `type`, `properties`, `required`, `items`, `enum`,
//! `description`, `minimum`, `maximum`.
//!
//! A server's schema is any JSON Schema, of any depth. What is reduced away costs the model a hint and nothing else: the server
//! checks the arguments by the whole of it.

use serde_json::{Map, Value, json};

use super::content::capped;
use crate::text::Sanitized;

/// Depth of objects and lists that is kept.
const DEPTH: usize = 8;
/// Properties of one object, and values of one enumeration, that are kept.
const ENTRIES: usize = 64;
/// All nodes of a schema that are looked at.
const NODES: usize = 500;
/// Bytes of one description.
const ABOUT_BYTES: usize = 500;

/// The schema of a tool's arguments, for a model: always an object.
pub fn reduced(schema: &Value) -> Value {
    let mut reducer = Reducer {
        root: schema,
        left: NODES,
    };
    let mut reduced = reducer.node(schema, 0, &mut Vec::new());
    if reduced.get("type").and_then(Value::as_str) != Some("object") {
        reduced = Map::from_iter([("type".to_owned(), json!("object"))]);
    }
    reduced.entry("properties").or_insert_with(|| json!({}));
    reduced.entry("required").or_insert_with(|| json!([]));
    reduced.into()
}

struct Reducer<'a> {
    root: &'a Value,
    left: usize,
}

impl<'a> Reducer<'a> {
    /// `seen`: the references that led here.
    fn node(&mut self, schema: &'a Value, depth: usize, seen: &mut Vec<&'a str>) -> Map<String, Value> {
        let mut reduced = Map::new();
        let Some(members) = schema.as_object() else {
            return reduced;
        };
        if self.left == 0 {
            return reduced;
        }
        self.left -= 1;
        // Only within the schema: nothing is fetched.
        if let Some(reference) = members.get("$ref").and_then(Value::as_str) {
            let target = reference.strip_prefix('#').and_then(|it| self.root.pointer(it));
            if let Some(target) = target.filter(|_| !seen.contains(&reference) && depth < DEPTH) {
                seen.push(reference);
                reduced = self.node(target, depth + 1, seen);
                seen.pop();
            }
            return with_about(reduced, members);
        }
        // Of several forms the first that says something: most say `null` beside one other.
        for choice in ["anyOf", "oneOf", "allOf"] {
            let forms = members.get(choice).and_then(Value::as_array);
            let is_null = |it: &&Value| it.get("type").and_then(Value::as_str) == Some("null");
            let mut forms = forms.into_iter().flatten().filter(|it| !is_null(it));
            if let (Some(form), None) = (forms.next(), members.get("type"))
                && depth < DEPTH
            {
                reduced = self.node(form, depth + 1, seen);
                return with_about(reduced, members);
            }
        }
        let kind = kind(members);
        if let Some(kind) = kind {
            reduced.insert("type".to_owned(), kind.into());
        }
        if let Some(values) = values(members) {
            reduced.insert("enum".to_owned(), values.into());
        }
        for bound in ["minimum", "maximum"] {
            if let Some(number) = members.get(bound).filter(|it| it.is_number()) {
                reduced.insert(bound.to_owned(), number.clone());
            }
        }
        if kind == Some("object")
            && let Some(properties) = members.get("properties").and_then(Value::as_object)
        {
            let mut kept = Map::new();
            if depth < DEPTH {
                for (name, property) in properties.iter().filter(|it| is_name(it.0)).take(ENTRIES) {
                    kept.insert(name.clone(), self.node(property, depth + 1, seen).into());
                }
            }
            let required = members.get("required").and_then(Value::as_array);
            let required = required.into_iter().flatten().filter_map(Value::as_str);
            let required: Vec<Value> = required.filter(|it| kept.contains_key(*it)).map(Value::from).collect();
            reduced.insert("properties".to_owned(), kept.into());
            if !required.is_empty() {
                reduced.insert("required".to_owned(), required.into());
            }
        }
        if kind == Some("array") {
            let items = members.get("items").filter(|_| depth < DEPTH);
            let mut items = items.map_or_else(Map::new, |it| self.node(it, depth + 1, seen));
            if !items.contains_key("type") {
                // Some providers refuse a list without it.
                items.insert("type".to_owned(), "string".into());
            }
            reduced.insert("items".to_owned(), items.into());
        }
        with_about(reduced, members)
    }
}

fn with_about(mut reduced: Map<String, Value>, members: &Map<String, Value>) -> Map<String, Value> {
    let about = members.get("description").and_then(Value::as_str).unwrap_or_default();
    if !about.is_empty() {
        let about = capped(Sanitized::new(about).as_str(), ABOUT_BYTES);
        reduced.insert("description".to_owned(), about.into());
    }
    reduced
}

/// The one type of a schema: of several the first that is not `null`.
fn kind(members: &Map<String, Value>) -> Option<&'static str> {
    const KINDS: [&str; 6] = ["string", "integer", "number", "boolean", "array", "object"];
    let named = |it: &Value| KINDS.into_iter().find(|kind| it == *kind);
    match members.get("type") {
        Some(Value::Array(kinds)) => kinds.iter().find_map(named),
        Some(kind) => named(kind),
        None if members.contains_key("properties") => Some("object"),
        None if members.contains_key("items") => Some("array"),
        None if members.contains_key("enum") || members.contains_key("const") => Some("string"),
        None => None,
    }
}

/// The texts of an enumeration; `None` if it holds anything else.
fn values(members: &Map<String, Value>) -> Option<Vec<Value>> {
    let values = match (members.get("enum"), members.get("const")) {
        (Some(Value::Array(values)), _) => values.clone(),
        (_, Some(value)) => vec![value.clone()],
        (_, None) => return None,
    };
    let is_usable = !values.is_empty() && values.iter().all(|it| it.as_str().is_some_and(is_harmless));
    is_usable.then(|| values.into_iter().take(ENTRIES).collect())
}

fn is_harmless(text: &str) -> bool {
    text.len() <= 200 && Sanitized::line(text).as_str() == text
}

fn is_name(name: &str) -> bool {
    !name.is_empty()
        && name.len() <= 64
        && name
            .chars()
            .all(|it| it.is_ascii_alphanumeric() || "_-.$@".contains(it))
}

#[cfg(test)]
mod tests {
    use pretty_assertions::assert_eq;

    use super::*;

    #[test]
    fn a_schema_keeps_what_every_provider_knows() {
        let schema = json!({
            "$schema": "http://json-schema.org/draft-07/schema#",
            "type": "object",
            "additionalProperties": false,
            "properties": {
                "path": { "type": "string", "description": "Where\u{1b}[2J", "minLength": 1, "format": "uri" },
                "n": { "type": ["null", "integer"], "minimum": 1, "exclusiveMaximum": 5, "default": 3 },
                "maybe": { "anyOf": [{ "type": "null" }, { "type": "boolean" }], "description": "or not" },
                "kind": { "enum": ["a", "b"] },
                "list": { "type": "array", "items": { "$ref": "#/$defs/edit" } },
                "bare": { "type": "array" },
                "bad\u{1b}name": { "type": "string" },
                "evil": { "$ref": "https://evil.example/schema.json" },
            },
            "required": ["path", "gone", 7],
            "$defs": { "edit": { "type": "object", "properties": { "old": { "type": "string" } }, "required": ["old"] } },
        });
        assert_eq!(
            reduced(&schema),
            json!({
                "type": "object",
                "properties": {
                    "path": { "type": "string", "description": "Where" },
                    "n": { "type": "integer", "minimum": 1 },
                    "maybe": { "type": "boolean", "description": "or not" },
                    "kind": { "type": "string", "enum": ["a", "b"] },
                    "list": {
                        "type": "array",
                        "items": { "type": "object", "properties": { "old": { "type": "string" } }, "required": ["old"] },
                    },
                    "bare": { "type": "array", "items": { "type": "string" } },
                    "evil": {},
                },
                "required": ["path"],
            })
        );
    }

    #[test]
    fn a_bomb_stays_small() {
        // A reference to itself, an exponential tree of references, and a deep nest.
        let own = json!({ "type": "object", "properties": { "a": { "$ref": "#" } } });
        assert!(reduced(&own).to_string().len() < 1000);
        let mut definitions = Map::new();
        for level in 0..40 {
            let next = json!({ "$ref": format!("#/$defs/d{}", level + 1) });
            let properties = json!({ "a": next, "b": next, "c": next });
            definitions.insert(
                format!("d{level}"),
                json!({ "type": "object", "properties": properties }),
            );
        }
        let tree = json!({ "type": "object", "properties": { "x": { "$ref": "#/$defs/d0" } }, "$defs": definitions });
        assert!(reduced(&tree).to_string().len() < 64 << 10);
        let mut deep = json!({ "type": "string" });
        for _ in 0..100 {
            deep = json!({ "type": "object", "properties": { "a": deep } });
        }
        assert!(reduced(&deep).to_string().len() < 1000);
        let wide: Map<String, Value> = (0..10_000)
            .map(|it| (format!("p{it}"), json!({ "type": "string" })))
            .collect();
        let wide = reduced(&json!({ "type": "object", "properties": wide }));
        assert_eq!(wide["properties"].as_object().map(Map::len), Some(ENTRIES));
        for odd in [
            json!(null),
            json!([]),
            json!(true),
            json!({ "type": "string" }),
            json!({}),
        ] {
            assert_eq!(
                reduced(&odd),
                json!({ "type": "object", "properties": {}, "required": [] }),
                "{odd}"
            );
        }
    }
}
