//! JSON as it stands: what a value says, which members it names twice, and where a part of it is.

use std::{borrow::Cow, collections::HashSet, ops::Range};

use serde_json::Value;

/// A way into a value: names and places, as in `["todos", "2", "id"]`.
pub type Path<'a> = &'a [Cow<'a, str>];

/// Parses strict JSON. Returns the value, and the names that an object in it has twice.
pub fn parse(text: &str) -> Result<(Value, Vec<String>), serde_json::Error> {
    let value = serde_json::from_str(text)?;
    let mut twice = Vec::new();
    note_twice(text, blanks(text, 0), &mut twice);
    Ok((value, twice))
}

/// Adds the names that objects in the value at `at` have twice.
fn note_twice(text: &str, at: usize, twice: &mut Vec<String>) {
    let is_object = text.as_bytes().get(at) == Some(&b'{');
    let mut names = HashSet::new();
    for (name, at) in parts(text, at).unwrap_or_default() {
        note_twice(text, at, twice);
        if is_object && !names.insert(name.clone()) {
            twice.push(name);
        }
    }
}

/// Returns the range in the JSON `text` to which the path leads; the deepest part that exists.
pub fn span(text: &str, path: Path<'_>) -> Range<usize> {
    let mut at = blanks(text, 0);
    for step in path {
        let Some(next) = enter(text, at, step) else { break };
        at = next;
    }
    at..skip(text, at)
}

/// Returns the start of the member or element `step` of the value at `at`. Of two members with one name the last counts.
fn enter(text: &str, at: usize, step: &str) -> Option<usize> {
    let parts = parts(text, at)?;
    parts.into_iter().rfind(|it| it.0 == step).map(|it| it.1)
}

/// Returns the name (or index) and the start of each member (or element) of the value at `at`. `None` if that is no
/// object or list, or does not end.
fn parts(text: &str, at: usize) -> Option<Vec<(String, usize)>> {
    let bytes = text.as_bytes();
    let is_object = match bytes.get(at)? {
        b'{' => true,
        b'[' => false,
        _ => return None,
    };
    let mut at = blanks(text, at + 1);
    let mut parts = Vec::new();
    while !matches!(bytes.get(at)?, b'}' | b']') {
        let mut name = parts.len().to_string();
        if is_object {
            let end = skip(text, at);
            name = serde_json::from_str(text.get(at..end)?).ok()?;
            at = blanks(text, blanks(text, end) + 1);
        }
        parts.push((name, at));
        at = blanks(text, skip(text, at));
        if bytes.get(at)? == &b',' {
            at = blanks(text, at + 1);
        }
    }
    Some(parts)
}

fn blanks(text: &str, from: usize) -> usize {
    let rest = text.as_bytes().get(from..).unwrap_or_default();
    from + rest.iter().take_while(|it| it.is_ascii_whitespace()).count()
}

/// The end of the value at `from`.
fn skip(text: &str, from: usize) -> usize {
    let bytes = text.as_bytes();
    let (mut at, mut depth) = (from, 0_usize);
    while let Some(&byte) = bytes.get(at) {
        at += 1;
        match byte {
            b'"' => {
                while let Some(&inner) = bytes.get(at) {
                    at += 1;
                    match inner {
                        b'\\' => at += 1,
                        b'"' => break,
                        _ => {}
                    }
                }
            }
            b'{' | b'[' => depth += 1,
            b'}' | b']' => depth = depth.saturating_sub(1),
            _ => {
                let is_word = |it: &&u8| !matches!(**it, b',' | b'}' | b']' | b':') && !it.is_ascii_whitespace();
                let rest = bytes.get(at..).unwrap_or_default();
                if depth == 0 {
                    return at + rest.iter().take_while(is_word).count();
                }
            }
        }
        if depth == 0 {
            return at;
        }
    }
    bytes.len()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn at<'a>(text: &'a str, path: &str) -> &'a str {
        let path: Vec<Cow<'_, str>> = path.split_terminator('.').map(Cow::from).collect();
        text.get(span(text, &path)).expect("a place between characters")
    }

    #[test]
    fn parts_are_found_where_they_are() {
        let text = r#" { "a" : [1, {"b\"":"}]"} , null] , "c":-1.5e3,"a\u0062": true }"#;
        for (path, wanted) in [
            ("", text.trim()),
            ("a", r#"[1, {"b\"":"}]"} , null]"#),
            ("a.0", "1"),
            ("a.1", r#"{"b\"":"}]"}"#),
            ("a.1.b\"", r#""}]""#),
            ("a.2", "null"),
            ("c", "-1.5e3"),
            ("ab", "true"),
            ("a.7", r#"[1, {"b\"":"}]"} , null]"#),
            ("none", text.trim()),
        ] {
            assert_eq!(at(text, path), wanted, "{path}");
        }
        assert_eq!(at(r#"{"a":1,"a":2}"#, "a"), "2");
    }

    #[test]
    fn members_that_are_named_twice_are_told_and_the_last_counts() {
        let (value, twice) = parse(r#"{"a":1,"b":[{"c":1,"c":{"d":1,"d":2}}],"a":2}"#).expect("JSON");
        assert_eq!(value, json!({ "a": 2, "b": [{ "c": { "d": 2 } }] }));
        assert_eq!(twice, ["d", "c", "a"]);
    }

    #[test]
    fn what_is_nearly_json_is_none() {
        for text in ["{'a':1}", "{\"a\":1,}", "{\"a\":NaN}", "{} {}", "", &"[".repeat(200)] {
            assert!(parse(text).is_err(), "{text}");
        }
    }

    proptest::proptest! {
        #[test]
        fn no_text_makes_the_search_panic(text in ".{0,60}", step in "[a-z0-9\"]{0,2}") {
            span(&text, &[Cow::from(step)]);
        }
    }
}
