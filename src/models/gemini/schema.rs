//! Tools in Gemini's words: the part of JSON Schema that it takes, and names that it allows.
//!
//! Gemini refuses a whole request over one keyword it does not know and over a name such as `-A`. What cannot be said
//! is left out, since it only narrows what a model may write; what is renamed on the way out is named back on the way in.

use std::sync::Arc;

use serde_json::{Map, Value, json};

use crate::{models::ToolSpec, text::WordList};

/// Schemas within schemas are followed this far; what lies deeper is any object. It also ends schemas that hold themselves.
const DEPTH_LIMIT: usize = 12;

/// A schema that refers to itself in several places would grow without end; this many parts are more than a tool has.
const PARTS_LIMIT: usize = 2000;

/// The longest name that Gemini takes.
const NAME_LIMIT: usize = 64;

/// The tools of one request, and how they are called on the wire.
#[derive(Clone, Debug, Default)]
pub struct Tools(Vec<Tool>);

#[derive(Clone, Debug)]
struct Tool {
    /// Ours.
    name: String,
    /// Gemini's.
    sent: String,
    about: Arc<str>,
    schema: Value,
}

impl Tools {
    pub fn new(tools: &[Arc<ToolSpec>]) -> Self {
        let names: Vec<&str> = tools.iter().map(|it| it.name.as_str()).collect();
        let sent = renamed(&names, "tool_", |it| it.is_ascii_alphanumeric() || "_-.:".contains(it));
        let all = tools.iter().zip(sent).map(|(tool, sent)| Tool {
            name: tool.name.clone(),
            sent,
            about: Arc::clone(&tool.about),
            schema: resolved(&tool.parameters, &tool.parameters, 0, &mut { PARTS_LIMIT }),
        });
        Self(all.collect())
    }

    /// Returns the tools as Gemini's function declarations.
    pub fn declarations(&self) -> Vec<Value> {
        let spell = |it: &Tool| {
            let mut declaration = json!({ "name": it.sent, "description": it.about });
            // An object without members is refused; a function without parameters is not.
            if !members(&it.schema).is_empty() {
                declaration["parameters"] = subset(&it.schema);
            }
            declaration
        };
        self.0.iter().map(spell).collect()
    }

    /// Gemini's name of a tool.
    pub fn sent<'a>(&'a self, name: &'a str) -> &'a str {
        self.0.iter().find(|it| it.name == name).map_or(name, |it| &it.sent)
    }

    /// Our name of a tool.
    pub fn own<'a>(&'a self, sent: &'a str) -> &'a str {
        self.0.iter().find(|it| it.sent == sent).map_or(sent, |it| &it.name)
    }

    /// Arguments of a call to our `name`, as Gemini writes them.
    pub fn arguments_out(&self, name: &str, arguments: &Map<String, Value>) -> Map<String, Value> {
        match self.0.iter().find(|it| it.name == name) {
            Some(tool) => translate(&tool.schema, arguments, |(own, sent)| (own, sent)),
            None => arguments.clone(),
        }
    }

    /// Arguments that Gemini wrote for our `name`, as we write them.
    pub fn arguments_in(&self, name: &str, arguments: &Map<String, Value>) -> Map<String, Value> {
        match self.0.iter().find(|it| it.name == name) {
            Some(tool) => translate(&tool.schema, arguments, |(own, sent)| (sent, own)),
            None => arguments.clone(),
        }
    }
}

/// Renames the members of `arguments` that have another name on the other side, at every depth that `schema` knows.
fn translate(
    schema: &Value,
    arguments: &Map<String, Value>,
    turn: for<'a> fn((&'a str, &'a str)) -> (&'a str, &'a str),
) -> Map<String, Value> {
    let names = members(schema);
    let rename = |(name, value): (&String, &Value)| {
        let found = names.iter().find(|(own, sent)| turn((own, sent)).0 == name);
        let Some((own, sent)) = found else {
            return (name.clone(), value.clone());
        };
        let within = schema
            .get("properties")
            .and_then(|it| it.get(*own))
            .unwrap_or(&Value::Null);
        (turn((own, sent)).1.to_owned(), translated(within, value, turn))
    };
    arguments.iter().map(rename).collect()
}

fn translated(schema: &Value, value: &Value, turn: for<'a> fn((&'a str, &'a str)) -> (&'a str, &'a str)) -> Value {
    match value {
        Value::Object(members) => translate(schema, members, turn).into(),
        Value::Array(items) => {
            let within = schema.get("items").unwrap_or(&Value::Null);
            items.iter().map(|it| translated(within, it, turn)).collect()
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => value.clone(),
    }
}

/// The members of an object's schema: our name and Gemini's.
fn members(schema: &Value) -> Vec<(&str, String)> {
    let properties = schema.get("properties").and_then(Value::as_object);
    let names: Vec<&str> = properties.into_iter().flat_map(Map::keys).map(String::as_str).collect();
    let sent = renamed(&names, "arg_", |it| it.is_ascii_alphanumeric() || it == '_');
    names.into_iter().zip(sent).collect()
}

/// Names of options that are letters, because a letter after a dash is no name.
const SPOKEN: [(&str, &str); 4] = [
    ("-A", "context_after"),
    ("-B", "context_before"),
    ("-C", "context"),
    ("-i", "ignore_case"),
];

/// A legal name for each: it begins with a letter or `_`, and no two are the same.
fn renamed(names: &[&str], prefix: &str, is_legal: impl Fn(char) -> bool) -> Vec<String> {
    let is_sound = |it: &str| {
        it.starts_with(|it: char| it.is_ascii_alphabetic() || it == '_')
            && it.chars().all(&is_legal)
            && it.len() <= NAME_LIMIT
    };
    let mut found: Vec<String> = Vec::with_capacity(names.len());
    for name in names {
        if is_sound(name) {
            found.push((*name).to_owned());
            continue;
        }
        let kept: String = name.chars().map(|it| if is_legal(it) { it } else { '_' }).collect();
        let kept = kept.trim_matches('_');
        let spoken = SPOKEN.iter().find(|it| it.0 == *name && is_sound(it.1));
        let short: String = match spoken {
            Some((_, spoken)) => (*spoken).to_owned(),
            None => format!("{prefix}{kept}").chars().take(NAME_LIMIT - 4).collect(),
        };
        let mut other = short.clone();
        let mut count = 1;
        while found.contains(&other) || names.contains(&other.as_str()) {
            count += 1;
            other = format!("{short}_{count}");
        }
        found.push(other);
    }
    found
}

/// `schema` with what it refers to in its place, and alternatives and types in one form.
fn resolved(root: &Value, schema: &Value, depth: usize, parts: &mut usize) -> Value {
    let Value::Object(members) = schema else {
        // `true` is any value.
        return json!({});
    };
    if depth > DEPTH_LIMIT || *parts == 0 {
        return json!({ "type": "object" });
    }
    *parts -= 1;
    if let Some(place) = members.get("$ref").and_then(Value::as_str) {
        let target = place.strip_prefix('#').and_then(|it| root.pointer(it));
        let mut found = target.map_or_else(|| json!({}), |it| resolved(root, it, depth + 1, parts));
        if let (Value::Object(found), Some(about)) = (&mut found, members.get("description")) {
            found.insert("description".to_owned(), about.clone());
        }
        return found;
    }
    let mut out = Map::new();
    for (name, value) in members {
        let mut inner = |it: &Value| resolved(root, it, depth + 1, parts);
        match (name.as_str(), value) {
            ("properties", Value::Object(all)) => {
                let all: Map<String, Value> = all.iter().map(|(name, it)| (name.clone(), inner(it))).collect();
                out.insert(name.clone(), all.into());
            }
            ("items", Value::Array(all)) => {
                out.insert(name.clone(), all.first().map_or_else(|| json!({}), &mut inner));
            }
            ("items", it) => {
                out.insert(name.clone(), inner(it));
            }
            ("anyOf" | "oneOf", Value::Array(all)) => alternatives(all.iter().map(&mut inner), &mut out),
            ("allOf", Value::Array(all)) => {
                for it in all.iter().map(&mut inner) {
                    merge(&mut out, it);
                }
            }
            ("const", Value::String(_)) => {
                out.insert("enum".to_owned(), json!([value]));
            }
            ("type", Value::Array(types)) => {
                if types.iter().any(|it| it == "null") {
                    out.insert("nullable".to_owned(), true.into());
                }
                if let Some(first) = types.iter().find(|it| *it != "null") {
                    out.insert(name.clone(), first.clone());
                }
            }
            _ => {
                out.insert(name.clone(), value.clone());
            }
        }
    }
    out.into()
}

/// One of several: `null` among them is a word of its own, and one that is left is no choice.
fn alternatives(all: impl Iterator<Item = Value>, out: &mut Map<String, Value>) {
    let mut left = Vec::new();
    for it in all {
        if it.get("type").is_some_and(|it| it == "null") {
            out.insert("nullable".to_owned(), true.into());
        } else {
            left.push(it);
        }
    }
    if left.len() == 1 {
        merge(out, left.remove(0));
    } else if !left.is_empty() {
        out.insert("anyOf".to_owned(), left.into());
    }
}

fn merge(out: &mut Map<String, Value>, more: Value) {
    let Value::Object(more) = more else { return };
    for (name, value) in more {
        match (out.get_mut(&name), value) {
            (Some(Value::Object(own)), Value::Object(more)) => own.extend(more),
            (Some(Value::Array(own)), Value::Array(more)) if name == "required" => own.extend(more),
            (Some(_), _) => {}
            (None, value) => {
                out.insert(name, value);
            }
        }
    }
}

/// Returns the part of a resolved schema that Gemini accepts.
fn subset(schema: &Value) -> Value {
    let get = |name: &str| schema.get(name);
    let text = |name: &str| get(name).and_then(Value::as_str);
    let mut out = Map::new();
    let choices = get("anyOf").and_then(Value::as_array);
    let kind = text("type").or_else(|| {
        if get("properties").is_some() {
            Some("object")
        } else if get("items").is_some() {
            Some("array")
        } else if choices.is_some() {
            None
        } else {
            Some("string")
        }
    });
    if let Some(kind) = kind {
        out.insert("type".to_owned(), kind.into());
    }
    const COPIED: WordList = WordList(
        "title description nullable minItems maxItems minLength maxLength pattern minimum maximum minProperties
         maxProperties",
    );
    for name in COPIED.iter() {
        if let Some(value) = get(name).filter(|it| !it.is_null()) {
            out.insert(name.to_owned(), value.clone());
        }
    }
    let formats: &[&str] = match kind {
        Some("string") => &["enum", "date-time"],
        Some("integer") => &["int32", "int64"],
        Some("number") => &["float", "double"],
        Some(_) | None => &[],
    };
    if let Some(format) = text("format").filter(|it| formats.contains(it)) {
        out.insert("format".to_owned(), format.into());
    }
    if let Some(Value::Array(words)) = get("enum") {
        if kind == Some("string") {
            // An empty word is refused, and so is a list that holds anything but words.
            let words: Vec<&Value> = words
                .iter()
                .filter(|it| it.as_str().is_some_and(|it| !it.is_empty()))
                .collect();
            if !words.is_empty() {
                out.insert("enum".to_owned(), json!(words));
            }
        } else {
            let words: Vec<String> = words.iter().map(ToString::to_string).collect();
            let about = text("description").map(|it| format!("{it} ")).unwrap_or_default();
            out.insert(
                "description".to_owned(),
                format!("{about}(one of {})", words.join(", ")).into(),
            );
        }
    }
    if let Some(choices) = choices {
        out.insert("anyOf".to_owned(), choices.iter().map(subset).collect());
    }
    if kind == Some("array") {
        let items = get("items").map_or_else(|| json!({ "type": "string" }), subset);
        out.insert("items".to_owned(), items);
    }
    let names = members(schema);
    if kind == Some("object") && !names.is_empty() {
        let within = |own: &str| get("properties").and_then(|it| it.get(own)).map_or(Value::Null, subset);
        let properties: Map<String, Value> = names.iter().map(|(own, sent)| (sent.clone(), within(own))).collect();
        out.insert("properties".to_owned(), properties.into());
        let required = get("required").and_then(Value::as_array).into_iter().flatten();
        let required: Vec<&str> = required
            .filter_map(|it| names.iter().find(|(own, _)| Some(*own) == it.as_str()))
            .map(|(_, sent)| sent.as_str())
            .collect();
        if !required.is_empty() {
            out.insert("required".to_owned(), required.into());
        }
    }
    out.into()
}

#[cfg(test)]
mod tests {
    use pretty_assertions::assert_eq;
    use proptest::prelude::*;

    use super::*;

    fn tool(name: &str, parameters: Value) -> Arc<ToolSpec> {
        let spec = ToolSpec {
            name: name.to_owned(),
            aliases: Vec::new(),
            about: "Does it.".to_owned().into(),
            parameters: parameters.into(),
        };
        spec.into()
    }

    fn parameters(schema: Value) -> Value {
        let tools = Tools::new(&[tool("t", schema)]);
        tools
            .declarations()
            .remove(0)
            .get("parameters")
            .cloned()
            .unwrap_or_default()
    }

    #[test]
    fn what_gemini_does_not_take_is_left_out_or_said_otherwise() {
        let of = |it: Value| json!({ "type": "object", "properties": { "a": it } });
        for (name, given, want) in [
            (
                "the plain form",
                json!({ "type": "string", "description": "d", "enum": ["x", "y"] }),
                None,
            ),
            (
                "additionalProperties and $schema",
                json!({ "type": "object", "$schema": "x", "additionalProperties": false, "properties": { "b": { "type": "integer" } }, "required": ["b", "gone"] }),
                Some(json!({ "type": "object", "properties": { "b": { "type": "integer" } }, "required": ["b"] })),
            ),
            (
                "const",
                json!({ "const": "x" }),
                Some(json!({ "type": "string", "enum": ["x"] })),
            ),
            (
                "oneOf",
                json!({ "oneOf": [{ "type": "string" }, { "type": "integer" }] }),
                Some(json!({ "anyOf": [{ "type": "string" }, { "type": "integer" }] })),
            ),
            (
                "anyOf with null, as optional members are written",
                json!({ "anyOf": [{ "type": "integer", "format": "uint32" }, { "type": "null" }], "description": "d" }),
                Some(json!({ "type": "integer", "description": "d", "nullable": true })),
            ),
            (
                "several types",
                json!({ "type": ["string", "null"] }),
                Some(json!({ "type": "string", "nullable": true })),
            ),
            (
                "numbers to choose from",
                json!({ "type": "integer", "description": "Level", "enum": [1, 2] }),
                Some(json!({ "type": "integer", "description": "Level (one of 1, 2)" })),
            ),
            (
                "an empty word",
                json!({ "type": "string", "enum": ["", "a"] }),
                Some(json!({ "type": "string", "enum": ["a"] })),
            ),
            (
                "a list of anything",
                json!({ "type": "array" }),
                Some(json!({ "type": "array", "items": { "type": "string" } })),
            ),
            ("true", json!(true), Some(json!({ "type": "string" }))),
            (
                "allOf",
                json!({ "allOf": [{ "type": "object", "properties": { "x": { "type": "string" } } }, { "properties": { "y": { "type": "string" } } }] }),
                Some(
                    json!({ "type": "object", "properties": { "x": { "type": "string" }, "y": { "type": "string" } } }),
                ),
            ),
        ] {
            let want = want.unwrap_or_else(|| given.clone());
            assert_eq!(parameters(of(given)), of(want), "{name}");
        }
        let shared = json!({
            "type": "object",
            "properties": { "a": { "$ref": "#/$defs/A", "description": "this one" }, "b": { "$ref": "#/nowhere" } },
            "$defs": { "A": { "type": "string", "description": "any" } },
        });
        let want = json!({
            "type": "object",
            "properties": { "a": { "type": "string", "description": "this one" }, "b": { "type": "string" } },
        });
        assert_eq!(parameters(shared), want, "$ref");
        assert_eq!(
            parameters(json!({ "type": "object", "properties": {} })),
            Value::Null,
            "no parameters"
        );
    }

    #[test]
    fn a_schema_that_holds_itself_ends() {
        let node = json!({
            "type": "object",
            "properties": { "a": { "$ref": "#" }, "b": { "$ref": "#" }, "c": { "$ref": "#" }, "d": { "$ref": "#/properties/a" } },
        });
        let text = parameters(node).to_string();
        assert!(text.len() < 1 << 20 && !text.contains("$ref"), "{} bytes", text.len());
    }

    #[test]
    fn illegal_names_go_out_and_come_back() {
        let tools = Tools::new(&[
            tool(
                "grep",
                json!({
                    "type": "object",
                    "properties": {
                        "pattern": { "type": "string" },
                        "-A": { "type": "integer" },
                        "-C": { "type": "integer" },
                        "context": { "type": "integer" },
                        "-a": { "type": "integer" },
                        "über-all": { "type": "array", "items": { "type": "object", "properties": { "$x": { "type": "string" } } } },
                    },
                    "required": ["pattern", "-A"],
                }),
            ),
            tool("2fast", json!({ "type": "object", "properties": {} })),
        ]);
        let sent = tools.declarations();
        let properties = sent[0]["parameters"]["properties"].as_object().expect("properties");
        let names: Vec<&str> = properties.keys().map(String::as_str).collect();
        assert_eq!(
            names,
            [
                "pattern",
                "context_after",
                "context_2",
                "context",
                "arg_a",
                "arg_ber_all"
            ]
        );
        assert_eq!(sent[0]["parameters"]["required"], json!(["pattern", "context_after"]));
        assert_eq!(
            (sent[1]["name"].as_str(), tools.own("tool_2fast")),
            (Some("tool_2fast"), "2fast")
        );
        assert_eq!(tools.sent("2fast"), "tool_2fast");

        let Value::Object(ours) =
            json!({ "pattern": "x", "-A": 3, "-C": 4, "über-all": [{ "$x": "y", "more": 1 }], "odd": null })
        else {
            panic!("an object")
        };
        let theirs = tools.arguments_out("grep", &ours);
        assert_eq!(
            Value::from(theirs.clone()),
            json!({ "pattern": "x", "context_after": 3, "context_2": 4, "arg_ber_all": [{ "arg_x": "y", "more": 1 }], "odd": null })
        );
        assert_eq!(tools.arguments_in("grep", &theirs), ours);
        assert_eq!(tools.arguments_in("unknown", &theirs), theirs);
    }

    fn any_json() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i32>().prop_map(Value::from),
            prop::sample::select(vec![
                "",
                "object",
                "array",
                "string",
                "null",
                "#",
                "#/properties/a",
                "-A"
            ])
            .prop_map(Value::from),
        ];
        let names = prop::sample::select(vec![
            "type",
            "properties",
            "items",
            "enum",
            "const",
            "anyOf",
            "oneOf",
            "allOf",
            "$ref",
            "required",
            "a",
            "-A",
            "format",
        ]);
        leaf.prop_recursive(5, 40, 5, move |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                prop::collection::vec((names.clone(), inner), 0..5).prop_map(|it| it
                    .into_iter()
                    .map(|(name, it)| (name.to_owned(), it))
                    .collect::<Map<_, _>>()
                    .into()),
            ]
        })
    }

    /// Every keyword that stands anywhere in a schema.
    fn keywords(schema: &Value, found: &mut Vec<String>) {
        let Value::Object(members) = schema else { return };
        for (name, value) in members {
            found.push(name.clone());
            match (name.as_str(), value) {
                ("properties", Value::Object(all)) => all.values().for_each(|it| keywords(it, found)),
                ("anyOf", Value::Array(all)) => all.iter().for_each(|it| keywords(it, found)),
                ("items", it) => keywords(it, found),
                _ => {}
            }
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(128))]

        #[test]
        fn any_schema_becomes_one_that_gemini_takes(schema in any_json(), arguments in any_json()) {
            let tools = Tools::new(&[tool("t", schema)]);
            for it in tools.declarations() {
                let mut found = Vec::new();
                keywords(it.get("parameters").unwrap_or(&Value::Null), &mut found);
                for keyword in found {
                    prop_assert!(!["$ref", "const", "oneOf", "allOf", "additionalProperties"].contains(&keyword.as_str()), "{}", keyword);
                }
            }
            if let Value::Object(arguments) = arguments {
                let out = tools.arguments_out("t", &arguments);
                if !arguments.keys().any(|it| it.starts_with("arg_") || SPOKEN.iter().any(|(_, name)| it == name)) {
                    prop_assert_eq!(tools.arguments_in("t", &out), arguments);
                }
            }
        }
    }
}
