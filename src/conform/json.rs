//! JSON as it stands: what a value says, which members it names twice, and where a part of it is.

use std::{borrow::Cow, ops::Range};

use serde::{
    Deserialize, Deserializer,
    de::{MapAccess, SeqAccess, Visitor},
};
use serde_json::{Map, Number, Value};

/// A way into a value: names and places, as in `["todos", "2", "id"]`.
pub type Path<'a> = &'a [Cow<'a, str>];

/// The value, and the names that an object in it bears twice. Strict: what is not JSON to the letter is none.
pub fn parse(text: &str) -> Result<(Value, Vec<String>), serde_json::Error> {
    let read: ParsedValue = serde_json::from_str(text)?;
    Ok((read.value, read.twice))
}

struct ParsedValue {
    value: Value,
    twice: Vec<String>,
}

impl<'de> Deserialize<'de> for ParsedValue {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_any(ValueVisitor)
    }
}

struct ValueVisitor;

impl ParsedValue {
    fn plain(value: Value) -> Self {
        Self {
            value,
            twice: Vec::new(),
        }
    }
}

impl<'de> Visitor<'de> for ValueVisitor {
    type Value = ParsedValue;

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("JSON")
    }

    fn visit_unit<E>(self) -> Result<ParsedValue, E> {
        Ok(ParsedValue::plain(Value::Null))
    }

    fn visit_bool<E>(self, it: bool) -> Result<ParsedValue, E> {
        Ok(ParsedValue::plain(it.into()))
    }

    fn visit_i64<E>(self, it: i64) -> Result<ParsedValue, E> {
        Ok(ParsedValue::plain(it.into()))
    }

    fn visit_u64<E>(self, it: u64) -> Result<ParsedValue, E> {
        Ok(ParsedValue::plain(it.into()))
    }

    fn visit_f64<E>(self, it: f64) -> Result<ParsedValue, E> {
        Ok(ParsedValue::plain(
            Number::from_f64(it).map_or(Value::Null, Value::Number),
        ))
    }

    fn visit_str<E>(self, it: &str) -> Result<ParsedValue, E> {
        Ok(ParsedValue::plain(it.into()))
    }

    fn visit_string<E>(self, it: String) -> Result<ParsedValue, E> {
        Ok(ParsedValue::plain(it.into()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut from: A) -> Result<ParsedValue, A::Error> {
        let (mut values, mut twice) = (Vec::new(), Vec::new());
        while let Some(next) = from.next_element::<ParsedValue>()? {
            values.push(next.value);
            twice.extend(next.twice);
        }
        Ok(ParsedValue {
            value: values.into(),
            twice,
        })
    }

    fn visit_map<A: MapAccess<'de>>(self, mut from: A) -> Result<ParsedValue, A::Error> {
        let (mut members, mut twice) = (Map::new(), Vec::new());
        while let Some((name, next)) = from.next_entry::<String, ParsedValue>()? {
            twice.extend(next.twice);
            if members.insert(name.clone(), next.value).is_some() {
                twice.push(name);
            }
        }
        Ok(ParsedValue {
            value: members.into(),
            twice,
        })
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

/// The start of the member or the element `step` of the value at `at`.
fn enter(text: &str, at: usize, step: &str) -> Option<usize> {
    let bytes = text.as_bytes();
    let is_object = match bytes.get(at)? {
        b'{' => true,
        b'[' => false,
        _ => return None,
    };
    let mut at = blanks(text, at + 1);
    let mut index = 0;
    let mut found = None;
    while !matches!(bytes.get(at)?, b'}' | b']') {
        let mut is_wanted = !is_object && step.parse() == Ok(index);
        if is_object {
            let end = skip(text, at);
            let name: String = serde_json::from_str(text.get(at..end)?).ok()?;
            is_wanted = name == step;
            // Behind the colon.
            at = blanks(text, blanks(text, end) + 1);
        }
        if is_wanted {
            // Of two members with one name the last counts.
            found = Some(at);
        }
        at = blanks(text, skip(text, at));
        if bytes.get(at)? == &b',' {
            at = blanks(text, at + 1);
        }
        index += 1;
    }
    found
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
