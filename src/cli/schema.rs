//! An answer that has to fit a JSON Schema.
//!
//! What the schema refers to is looked up in the schema alone: nothing is fetched and no other file is read.

use std::path::Path;

use serde_json::Value;

use crate::{os::file, print::Form};

/// A larger schema would fill the window.
const SCHEMA_BYTES: u64 = 256 << 10;

/// A model that did not get it right after so many tries will not.
const ASKS: u32 = 2;

/// As many mistakes are told at once.
const MISTAKES: usize = 5;

/// What to add to a prompt, and how its answer is read.
pub fn form(path: &Path) -> Result<(String, Form), String> {
    let bytes = file::read(path, SCHEMA_BYTES).map_err(|it| it.to_string())?;
    let schema: Value = serde_json::from_slice(&bytes).map_err(|it| format!("{} is no JSON: {it}", path.display()))?;
    let validator =
        jsonschema::validator_for(&schema).map_err(|it| format!("{} is no JSON Schema: {it}", path.display()))?;
    let asking =
        format!("Answer with one JSON value and nothing else. It must fit this JSON Schema:\n```json\n{schema}\n```");
    let read = move |text: &str| {
        let value: Value = serde_json::from_str(text.trim()).map_err(|it| format!("it is no JSON: {it}"))?;
        let mistakes: Vec<String> = validator
            .iter_errors(&value)
            .take(MISTAKES)
            .map(|it| {
                let place = it.instance_path().to_string();
                let place = if place.is_empty() {
                    "the value".to_owned()
                } else {
                    place
                };
                format!("{place}: {it}")
            })
            .collect();
        if mistakes.is_empty() {
            Ok(value)
        } else {
            Err(mistakes.join("\n"))
        }
    };
    let form = Form {
        read: Box::new(read),
        asks: ASKS,
    };
    Ok((asking, form))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_fits_or_hears_why_it_does_not() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("schema.json");
        let schema = r#"{ "type": "object", "required": ["n"], "properties": { "n": { "type": "integer" } } }"#;
        std::fs::write(&path, schema).expect("written");
        let (asking, form) = form(&path).expect("it is a schema");
        assert!(asking.contains(r#""required":["n"]"#), "{asking}");
        assert_eq!((form.read)(" {\"n\": 1}\n"), Ok(serde_json::json!({ "n": 1 })));
        for (text, place) in [
            ("{\"n\": \"x\"}", "/n: "),
            ("{}", "the value: "),
            ("no", "it is no JSON"),
        ] {
            let why = (form.read)(text).expect_err(text);
            assert!(why.starts_with(place), "{text}: {why}");
        }
    }

    #[test]
    fn what_is_no_schema_is_said() {
        let folder = tempfile::tempdir().expect("a folder");
        for (text, says) in [
            ("{", "is no JSON"),
            (r#"{ "type": "no-such" }"#, "is no JSON Schema"),
            (r#"{ "$ref": "https://x.example/schema" }"#, "is no JSON Schema"),
        ] {
            let path = folder.path().join("schema.json");
            std::fs::write(&path, text).expect("written");
            let problem = form(&path).err().expect(text);
            assert!(problem.contains(says), "{text}: {problem}");
        }
        assert!(form(&folder.path().join("none")).is_err());
    }
}
