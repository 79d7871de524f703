//! An answer that has to fit a JSON Schema.
//!
//! Knows what providers accept for structured output and the rest that is in common use; a keyword that would be ignored
//! is an error, so that no answer passes by mistake. What the schema refers to is looked up in the schema alone: nothing
//! is fetched and no other file is read.

use std::path::Path;

use regex::Regex;
use serde_json::{Map, Value};

use crate::{os::file, print::AnswerSchema, text::WordList};

/// A larger schema would fill the window.
const SCHEMA_BYTES: u64 = 256 << 10;

/// Maximum number of times that the model is asked again; one that did not get it right by then will not.
const ASKS: u32 = 2;

/// Maximum number of mistakes that are told at once.
const MISTAKES: usize = 5;

/// Maximum number of schemas within each other, references followed: a schema may refer to itself.
const DEPTH: usize = 100;

const TYPES: [&str; 7] = ["null", "boolean", "integer", "number", "string", "array", "object"];

/// Keywords that would change which values fit, and are not read here.
const UNKNOWN: WordList = WordList(
    "$dynamicRef $recursiveRef additionalItems dependencies dependentSchemas unevaluatedItems unevaluatedProperties",
);

/// Returns what to add to a prompt, and how its answer is read.
pub fn form(path: &Path) -> Result<(String, AnswerSchema), String> {
    let bytes = file::read(path, SCHEMA_BYTES).map_err(|it| it.to_string())?;
    let schema: Value = serde_json::from_slice(&bytes).map_err(|it| format!("{} is not JSON: {it}", path.display()))?;
    check(&schema, &schema, "#").map_err(|it| format!("{} is not a JSON Schema: {it}", path.display()))?;
    let asking =
        format!("Answer with one JSON value and nothing else. It must fit this JSON Schema:\n```json\n{schema}\n```");
    let read = move |text: &str| {
        let value: Value = serde_json::from_str(text.trim()).map_err(|it| format!("not JSON: {it}"))?;
        let mut mistakes = Mistakes {
            root: &schema,
            found: Vec::new(),
        };
        mistakes.gather(&schema, &value, "", 0);
        mistakes.found.truncate(MISTAKES);
        if mistakes.found.is_empty() {
            Ok(value)
        } else {
            Err(mistakes.found.join("\n"))
        }
    };
    let form = AnswerSchema {
        parse: Box::new(read),
        retries: ASKS,
    };
    Ok((asking, form))
}

/// Checks that every keyword of a schema and of those within it has a value of its kind; `place` is its JSON pointer.
fn check(schema: &Value, root: &Value, place: &str) -> Result<(), String> {
    let Value::Object(keywords) = schema else {
        let is_boolean = schema.is_boolean();
        return is_boolean
            .then_some(())
            .ok_or(format!("{place} is not a schema: {schema}"));
    };
    for (keyword, value) in keywords {
        let place = format!("{place}/{keyword}");
        let is_type = |it: &Value| it.as_str().is_some_and(|it| TYPES.contains(&it));
        let is_fine = match keyword.as_str() {
            "type" => is_type(value) || value.as_array().is_some_and(|it| it.iter().all(is_type)),
            "enum" => value.is_array(),
            "required" => value.as_array().is_some_and(|it| it.iter().all(Value::is_string)),
            "uniqueItems" => value.is_boolean(),
            "minimum" | "maximum" | "exclusiveMinimum" | "exclusiveMaximum" => value.is_number(),
            "multipleOf" => value.as_f64().is_some_and(|it| it > 0.0),
            "minLength" | "maxLength" | "minItems" | "maxItems" | "minProperties" | "maxProperties" | "minContains"
            | "maxContains" => value.is_u64(),
            "pattern" => value.as_str().is_some_and(|it| Regex::new(it).is_ok()),
            "$ref" => referred(root, value).is_some(),
            "items" | "contains" | "additionalProperties" | "propertyNames" | "not" | "if" | "then" | "else" => {
                check(value, root, &place)?;
                true
            }
            "anyOf" | "oneOf" | "allOf" | "prefixItems" => {
                let parts = value.as_array().filter(|it| !it.is_empty());
                for (at, part) in parts.into_iter().flatten().enumerate() {
                    check(part, root, &format!("{place}/{at}"))?;
                }
                parts.is_some()
            }
            "properties" | "patternProperties" | "$defs" | "definitions" => {
                for (name, part) in value.as_object().into_iter().flatten() {
                    if keyword == "patternProperties" && Regex::new(name).is_err() {
                        return Err(format!("{place} has a pattern that cannot be read: {name}"));
                    }
                    check(part, root, &format!("{place}/{name}"))?;
                }
                value.is_object()
            }
            "dependentRequired" => value.as_object().is_some_and(|it| {
                it.values()
                    .all(|it| it.as_array().is_some_and(|it| it.iter().all(Value::is_string)))
            }),
            unknown if UNKNOWN.contains(unknown) => return Err(format!("{place} is not supported")),
            _ => true,
        };
        if !is_fine {
            return Err(format!("{place} cannot be {value}"));
        }
    }
    Ok(())
}

/// Returns the schema that a `$ref` within `root` names.
fn referred<'a>(root: &'a Value, reference: &Value) -> Option<&'a Value> {
    root.pointer(
        &reference
            .as_str()?
            .strip_prefix('#')?
            .replace("%25", "%")
            .replace("%7E", "~"),
    )
}

/// Collects what does not fit.
struct Mistakes<'a> {
    root: &'a Value,
    found: Vec<String>,
}

impl<'a> Mistakes<'a> {
    /// Adds the mistakes of `value`, which stands at the JSON pointer `place` of the answer.
    fn gather(&mut self, schema: &'a Value, value: &Value, place: &str, depth: usize) {
        let keywords = match schema {
            Value::Object(_) if depth > DEPTH => return self.add(place, "is nested too deeply".to_owned(), value),
            Value::Object(keywords) => keywords,
            Value::Bool(false) => return self.add(place, "is not allowed".to_owned(), value),
            _ => return,
        };
        for (keyword, wanted) in keywords {
            let parts = || wanted.as_array().into_iter().flatten();
            let fitting = || parts().filter(|it| self.fits(it, value, depth)).count();
            let problem = match keyword.as_str() {
                "type" if !parts().chain([wanted]).any(|it| is_of_type(value, it)) => {
                    format!("is not of type {wanted}")
                }
                "enum" if !parts().any(|it| is_same(it, value)) => format!("is not one of {wanted}"),
                "const" if !is_same(wanted, value) => format!("is not {wanted}"),
                "anyOf" if fitting() == 0 => "fits none of anyOf".to_owned(),
                "oneOf" if fitting() != 1 => format!("fits {} of oneOf, not one", fitting()),
                "not" if self.fits(wanted, value, depth) => "fits what it must not".to_owned(),
                "allOf" => {
                    parts().for_each(|it| self.gather(it, value, place, depth + 1));
                    continue;
                }
                "$ref" => {
                    if let Some(it) = referred(self.root, wanted) {
                        self.gather(it, value, place, depth + 1);
                    }
                    continue;
                }
                "if" => {
                    let branch = if self.fits(wanted, value, depth) {
                        "then"
                    } else {
                        "else"
                    };
                    if let Some(it) = keywords.get(branch) {
                        self.gather(it, value, place, depth + 1);
                    }
                    continue;
                }
                other => match beyond(other, wanted, value) {
                    Some(problem) => problem,
                    None => continue,
                },
            };
            self.add(place, problem, value);
        }
        match value {
            Value::Object(members) => self.members(keywords, members, place, depth),
            Value::Array(items) => self.items(keywords, items, place, depth),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }

    fn members(&mut self, keywords: &'a Map<String, Value>, members: &Map<String, Value>, place: &str, depth: usize) {
        let names = |of: &'a Value| of.as_array().into_iter().flatten().filter_map(Value::as_str);
        let dependent = keywords
            .get("dependentRequired")
            .and_then(Value::as_object)
            .into_iter()
            .flatten();
        let wanted = dependent.filter(|it| members.contains_key(it.0)).map(|it| it.1);
        for name in keywords.get("required").into_iter().chain(wanted).flat_map(names) {
            if !members.contains_key(name) {
                let place = named(place);
                self.found.push(format!("{place}: {name:?} is a required property"));
            }
        }
        for (name, value) in members {
            let place = format!("{place}/{}", name.replace('~', "~0").replace('/', "~1"));
            let mut is_known = false;
            let properties = keywords.get("properties").and_then(|it| it.get(name));
            let patterns = keywords.get("patternProperties").and_then(Value::as_object);
            let patterns = patterns.into_iter().flatten().filter(|it| is_match(it.0, name));
            for schema in properties.into_iter().chain(patterns.map(|it| it.1)) {
                is_known = true;
                self.gather(schema, value, &place, depth + 1);
            }
            match keywords.get("additionalProperties") {
                Some(Value::Bool(false)) if !is_known => self.found.push(format!("{place}: unknown property")),
                Some(schema) if !is_known => self.gather(schema, value, &place, depth + 1),
                Some(_) | None => {}
            }
            if let Some(schema) = keywords.get("propertyNames") {
                self.gather(schema, &Value::from(name.as_str()), &place, depth + 1);
            }
        }
    }

    fn items(&mut self, keywords: &'a Map<String, Value>, items: &[Value], place: &str, depth: usize) {
        let first: &[Value] = keywords
            .get("prefixItems")
            .and_then(Value::as_array)
            .map_or(&[], Vec::as_slice);
        for (at, item) in items.iter().enumerate() {
            if let Some(schema) = first.get(at).or_else(|| keywords.get("items")) {
                self.gather(schema, item, &format!("{place}/{at}"), depth + 1);
            }
        }
        if let Some(schema) = keywords.get("contains") {
            let count = items.iter().filter(|it| self.fits(schema, it, depth)).count() as u64;
            let bound = |name| keywords.get(name).and_then(Value::as_u64);
            if count < bound("minContains").unwrap_or(1) || bound("maxContains").is_some_and(|it| count > it) {
                let place = named(place);
                self.found
                    .push(format!("{place}: {count} of its items fit \"contains\""));
            }
        }
    }

    fn fits(&self, schema: &'a Value, value: &Value, depth: usize) -> bool {
        let mut mistakes = Mistakes {
            root: self.root,
            found: Vec::new(),
        };
        mistakes.gather(schema, value, "", depth + 1);
        mistakes.found.is_empty()
    }

    fn add(&mut self, place: &str, problem: String, value: &Value) {
        // Long values are not repeated to whoever wrote them.
        let shown = value.to_string();
        let shown = if shown.len() > 60 { "it" } else { &shown };
        self.found.push(format!("{}: {shown} {problem}", named(place)));
    }
}

fn named(place: &str) -> &str {
    if place.is_empty() { "the value" } else { place }
}

fn is_of_type(value: &Value, wanted: &Value) -> bool {
    match wanted.as_str() {
        Some("null") => value.is_null(),
        Some("boolean") => value.is_boolean(),
        Some("integer") => value.is_i64() || value.is_u64() || value.as_f64().is_some_and(|it| it.fract() == 0.0),
        Some("number") => value.is_number(),
        Some("string") => value.is_string(),
        Some("array") => value.is_array(),
        Some("object") => value.is_object(),
        _ => false,
    }
}

/// Returns true for equal values; 1 and 1.0 are.
fn is_same(one: &Value, other: &Value) -> bool {
    one == other || (one.is_number() && one.as_f64() == other.as_f64())
}

fn is_match(pattern: &str, text: &str) -> bool {
    Regex::new(pattern).is_ok_and(|it| it.is_match(text))
}

/// Returns how a value is too small, too large or of another shape than one keyword wants; `None` if it is not, or if the
/// keyword is about other kinds of values.
fn beyond(keyword: &str, wanted: &Value, value: &Value) -> Option<String> {
    let limit = wanted.as_f64().unwrap_or_default();
    let number = value.as_f64();
    let letters = value.as_str().map(|it| it.chars().count() as f64);
    let items = value.as_array().map(|it| it.len() as f64);
    let members = value.as_object().map(|it| it.len() as f64);
    let (is_bad, problem) = match keyword {
        "minimum" => (number? < limit, "is less than the minimum of"),
        "maximum" => (number? > limit, "is greater than the maximum of"),
        "exclusiveMinimum" => (number? <= limit, "is not greater than"),
        "exclusiveMaximum" => (number? >= limit, "is not less than"),
        "multipleOf" => {
            let times = number? / limit;
            ((times - times.round()).abs() > 1e-9, "is not a multiple of")
        }
        "minLength" => (letters? < limit, "is shorter than"),
        "maxLength" => (letters? > limit, "is longer than"),
        "pattern" => (!is_match(wanted.as_str()?, value.as_str()?), "does not match"),
        "minItems" => (items? < limit, "has fewer items than"),
        "maxItems" => (items? > limit, "has more items than"),
        "minProperties" => (members? < limit, "has fewer properties than"),
        "maxProperties" => (members? > limit, "has more properties than"),
        "uniqueItems" => {
            let items = value.as_array()?;
            let is_twice = |at: usize| items.iter().take(at).any(|it| is_same(it, &items[at]));
            let has_twins = (0..items.len()).any(is_twice);
            return (wanted == true && has_twins).then(|| "has the same item twice".to_owned());
        }
        _ => return None,
    };
    is_bad.then(|| format!("{problem} {wanted}"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_answer_fits_or_hears_why_it_does_not() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("schema.json");
        let schema = r#"{ "type": "object", "required": ["n"], "properties": { "n": { "type": "integer" } } }"#;
        std::fs::write(&path, schema).expect("written");
        let (asking, form) = form(&path).expect("it is a schema");
        assert!(asking.contains(r#""required":["n"]"#), "{asking}");
        assert_eq!((form.parse)(" {\"n\": 1}\n"), Ok(serde_json::json!({ "n": 1 })));
        for (text, place) in [
            ("{\"n\": \"x\"}", "/n: \"x\" is not of type \"integer\""),
            ("{}", "the value: \"n\" is a required property"),
            ("no", "not JSON"),
        ] {
            let why = (form.parse)(text).expect_err(text);
            assert!(why.starts_with(place), "{text}: {why}");
        }
    }

    /// The validator agrees with the full one on what fits.
    #[test]
    fn every_keyword_is_read_as_the_standard_says() {
        let tree = json!({ "$defs": { "node": { "type": "object", "required": ["name"], "additionalProperties": false,
            "properties": { "name": { "type": "string" }, "children": { "type": "array", "items": { "$ref": "#/$defs/node" } } } } },
            "$ref": "#/$defs/node" });
        let schemas = [
            json!(true),
            json!(false),
            json!({ "type": ["integer", "null"] }),
            json!({ "enum": [1, "a", null, [1], { "name": 1 }] }),
            json!({ "const": 3 }),
            json!({ "minimum": 1, "maximum": 3.5, "multipleOf": 0.5 }),
            json!({ "exclusiveMinimum": 1, "exclusiveMaximum": 3 }),
            json!({ "minLength": 1, "maxLength": 2, "pattern": "^[a-zé]" }),
            json!({ "minItems": 1, "maxItems": 2, "uniqueItems": true, "items": { "type": "integer" } }),
            json!({ "prefixItems": [{ "type": "string" }], "items": false }),
            json!({ "contains": { "const": 1 }, "minContains": 1, "maxContains": 1 }),
            json!({ "minProperties": 1, "maxProperties": 1, "propertyNames": { "maxLength": 4 } }),
            json!({ "properties": { "name": { "type": "string" } }, "required": ["name"], "additionalProperties": { "type": "integer" } }),
            json!({ "patternProperties": { "^n": { "type": "string" } }, "additionalProperties": false }),
            json!({ "dependentRequired": { "name": ["a/b"] } }),
            json!({ "anyOf": [{ "type": "string" }, { "minimum": 2, "type": "number" }] }),
            json!({ "oneOf": [{ "type": "number" }, { "type": "integer" }] }),
            json!({ "allOf": [{ "type": "number" }, { "maximum": 2 }] }),
            json!({ "not": { "type": "string" } }),
            json!({ "if": { "type": "string" }, "then": { "minLength": 2 }, "else": { "type": "number" } }),
            json!({ "format": "email", "x-mine": 7, "description": "d" }),
            tree,
        ];
        let values = [
            json!(null),
            json!(true),
            json!(0),
            json!(1),
            json!(1.0),
            json!(2.25),
            json!(3),
            json!(4),
            json!(""),
            json!("a"),
            json!("é"),
            json!("ab"),
            json!("Abc"),
            json!([]),
            json!([1]),
            json!([1, 1]),
            json!([1, 2, 3]),
            json!(["a", 1]),
            json!({}),
            json!({ "name": "a" }),
            json!({ "name": 1 }),
            json!({ "name": "a", "a/b": 1 }),
            json!({ "number": "a", "name": "b" }),
            json!({ "name": "a", "children": [{ "name": "b", "children": [] }] }),
            json!({ "name": "a", "children": [{ "name": "b", "children": [{}] }] }),
        ];
        for schema in &schemas {
            assert_eq!(check(schema, schema, "#"), Ok(()), "{schema}");
            let full = jsonschema::validator_for(schema).expect("a schema");
            for value in &values {
                let mut mistakes = Mistakes {
                    root: schema,
                    found: Vec::new(),
                };
                mistakes.gather(schema, value, "", 0);
                assert_eq!(
                    mistakes.found.is_empty(),
                    full.is_valid(value),
                    "{schema}: {value}: {:?}",
                    mistakes.found
                );
            }
        }
    }

    #[test]
    fn a_schema_that_only_refers_to_itself_comes_to_an_end() {
        let schema = json!({ "$ref": "#" });
        let mut mistakes = Mistakes {
            root: &schema,
            found: Vec::new(),
        };
        mistakes.gather(&schema, &json!(1), "", 0);
        assert_eq!(mistakes.found, ["the value: 1 is nested too deeply"]);
    }

    #[test]
    fn what_is_no_schema_is_said() {
        let folder = tempfile::tempdir().expect("a folder");
        for (text, says) in [
            ("{", "is not JSON"),
            (r#"{ "type": "no-such" }"#, "is not a JSON Schema"),
            (r#"{ "$ref": "https://x.example/schema" }"#, "is not a JSON Schema"),
            (r#"{ "properties": { "a": 1 } }"#, "#/properties/a is not a schema: 1"),
            (
                r#"{ "items": { "required": "a" } }"#,
                "#/items/required cannot be \"a\"",
            ),
            (r#"{ "pattern": "(" }"#, "#/pattern cannot be"),
            (
                r#"{ "unevaluatedItems": false }"#,
                "#/unevaluatedItems is not supported",
            ),
        ] {
            let path = folder.path().join("schema.json");
            std::fs::write(&path, text).expect("written");
            let problem = form(&path).err().expect(text);
            assert!(problem.contains(says), "{text}: {problem}");
        }
        assert!(form(&folder.path().join("none")).is_err());
    }
}
