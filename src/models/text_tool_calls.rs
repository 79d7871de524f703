//! Calls that a model printed as text, because its server's template does not know of tools.
//!
//! Nothing is guessed: the end of the answer must be nothing but such calls, of tools that were offered, and the server
//! must have given none itself.

use serde_json::{Map, Value};

use super::lenient;

/// A call of this length was no call.
const TAIL_LIMIT_BYTES: usize = 64 << 10;

/// Marks that what may be calls begins with.
const MARKS: [&str; 2] = ["<tool_call>", FENCE];
const FENCE: &str = "```";

/// The end of an answer while it comes, as far as it may be calls.
#[derive(Debug, Default)]
pub struct Tail {
    text: String,
    /// Words came before `text`.
    has_words: bool,
    is_too_long: bool,
}

impl Tail {
    /// Takes the next piece of the answer, which may end anywhere.
    pub fn push(&mut self, piece: &str) {
        if self.is_too_long {
            return;
        }
        self.text.push_str(piece);
        let is_object = !self.has_words && self.text.trim_start().starts_with('{');
        if !is_object && !MARKS.iter().any(|it| self.text.starts_with(it)) {
            let mark = MARKS.iter().filter_map(|it| self.text.find(it)).min();
            // A mark may have come in part.
            let longest = MARKS[0].len() - 1;
            let words = mark.unwrap_or_else(|| self.text.floor_char_boundary(self.text.len().saturating_sub(longest)));
            let dropped: String = self.text.drain(..words).collect();
            self.has_words |= !dropped.trim().is_empty();
        }
        if self.text.len() > TAIL_LIMIT_BYTES {
            *self = Self::NO_CALLS;
        }
    }

    /// The calls of an answer that ends here.
    pub fn calls(&self, is_tool: impl Fn(&str) -> bool) -> Vec<(String, Map<String, Value>)> {
        if self.has_words && self.text.trim_start().starts_with('{') {
            return Vec::new();
        }
        calls(&self.text, is_tool)
    }

    /// The end of an answer in which nothing is a call.
    pub const NO_CALLS: Self = Self {
        text: String::new(),
        has_words: true,
        is_too_long: true,
    };
}

/// The calls at the end of `text`, in order; empty when there is anything else.
///
/// Three forms: `<tool_call>{…}</tool_call>`, one or several; a fence of `json` around objects; and a bare object that is
/// the whole text.
fn calls(text: &str, is_tool: impl Fn(&str) -> bool) -> Vec<(String, Map<String, Value>)> {
    let text = text.trim();
    let objects = if text.ends_with("</tool_call>") {
        tagged(text)
    } else if let Some(fenced) = text.strip_suffix(FENCE) {
        let inside = fenced.rsplit_once(FENCE).map(|(_, it)| it).unwrap_or_default();
        inside
            .strip_prefix("json")
            .or_else(|| inside.strip_prefix("tool_call"))
            .and_then(|it| lenient::values(it).ok())
    } else if text.starts_with('{') && text.ends_with('}') {
        lenient::values(text).ok()
    } else {
        None
    };
    let calls: Option<Vec<_>> = objects.into_iter().flatten().map(|it| call(it, &is_tool)).collect();
    calls.unwrap_or_default()
}

/// The objects of the last tags in a row.
fn tagged(text: &str) -> Option<Vec<Value>> {
    let mut objects = Vec::new();
    let mut rest = text;
    while let Some(before) = rest.trim_end().strip_suffix("</tool_call>") {
        let (before, inside) = before.rsplit_once("<tool_call>")?;
        objects.push(serde_json::from_str(inside.trim()).ok()?);
        rest = before;
    }
    objects.reverse();
    Some(objects)
}

fn call(value: Value, is_tool: &impl Fn(&str) -> bool) -> Option<(String, Map<String, Value>)> {
    let Value::Object(mut members) = value else { return None };
    let name = members
        .get("name")
        .and_then(Value::as_str)
        .filter(|it| is_tool(it))?
        .to_owned();
    let found = ["arguments", "parameters"].iter().find_map(|it| members.remove(*it));
    // What holds more than a call is an example or data.
    if members.keys().any(|it| !matches!(it.as_str(), "name" | "type" | "id")) {
        return None;
    }
    match found? {
        Value::Object(arguments) => Some((name, arguments)),
        Value::String(text) => Some((name, lenient::arguments(text).ok()?)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use pretty_assertions::assert_eq;
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn found(text: &str) -> Value {
        let is_tool = |it: &str| ["read_file", "grep"].contains(&it);
        calls(text, is_tool)
            .into_iter()
            .map(|(name, arguments)| json!([name, arguments]))
            .collect()
    }

    #[test]
    fn only_an_end_that_is_nothing_but_calls_is_one() {
        let read = json!([["read_file", { "path": "a" }]]);
        let object = r#"{"name": "read_file", "arguments": {"path": "a"}}"#;
        for (name, text, want) in [
            ("a tag", format!("<tool_call>\n{object}\n</tool_call>"), read.clone()),
            (
                "a tag after words",
                format!("I look.\n<tool_call>{object}</tool_call>\n"),
                read.clone(),
            ),
            (
                "two tags",
                format!(
                    "<tool_call>{object}</tool_call>\n<tool_call>{{\"name\":\"grep\",\"arguments\":{{}}}}</tool_call>"
                ),
                json!([["read_file", { "path": "a" }], ["grep", {}]]),
            ),
            ("a fence", format!("```json\n{object}\n```"), read.clone()),
            (
                "a fence with two",
                format!("```json\n{object}\n{object}\n```"),
                json!([["read_file", { "path": "a" }], ["read_file", { "path": "a" }]]),
            ),
            ("an object alone", object.to_owned(), read.clone()),
            ("parameters", object.replace("arguments", "parameters"), read.clone()),
            (
                "arguments as text",
                r#"{"name":"read_file","arguments":"{\"path\":\"a\"}"}"#.to_owned(),
                read,
            ),
            (
                "words behind it",
                format!("```json\n{object}\n```\nThat is how it works."),
                json!([]),
            ),
            ("words before a bare object", format!("Like {object}"), json!([])),
            ("an unknown tool", object.replace("read_file", "rm"), json!([])),
            (
                "a call and data",
                object.replace("{\"name\"", "{\"more\": 1, \"name\""),
                json!([]),
            ),
            (
                "one good and one bad",
                format!("```json\n{object}\n{{\"name\":\"rm\",\"arguments\":{{}}}}\n```"),
                json!([]),
            ),
            ("another language", format!("```python\n{object}\n```"), json!([])),
            ("no arguments", r#"{"name":"grep"}"#.to_owned(), json!([])),
            ("a tag that never opened", format!("{object}</tool_call>"), json!([])),
            ("nothing", String::new(), json!([])),
        ] {
            assert_eq!(found(&text), want, "{name}");
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(128))]

        #[test]
        fn any_text_is_taken(words in prop::collection::vec(prop::sample::select(vec!["<tool_call>", "</tool_call>", "```", "json", "{", "}", "\"name\":", "\"grep\"", "é", "\n"]), 0..20)) {
            found(&words.concat());
        }

        #[test]
        fn an_answer_that_comes_in_pieces_has_the_same_calls(
            words in prop::collection::vec(
                prop::sample::select(vec![
                    "<tool_call>", "<tool_", "call>", "</tool_call>", "```", "`", "json", "\n", "é", "words and more words ", "{", "}",
                    r#"{"name": "grep", "arguments": {}}"#,
                ]),
                0..12,
            ),
        ) {
            let is_tool = |it: &str| it == "grep";
            let mut tail = Tail::default();
            for piece in &words {
                tail.push(piece);
            }
            prop_assert_eq!(tail.calls(is_tool), calls(&words.concat(), is_tool));
        }
    }

    #[test]
    fn words_before_a_call_are_not_kept() {
        let object = r#"{"name": "grep", "arguments": {}}"#;
        let mut tail = Tail::default();
        for _ in 0..1000 {
            tail.push("some words, ");
        }
        assert!(tail.text.len() < 100, "{}", tail.text.len());
        tail.push(object);
        assert_eq!(tail.calls(|_| true), [], "an object behind words is no call");
        for piece in ["\n<tool", "_call>", object, "</tool_call>"] {
            tail.push(piece);
        }
        assert_eq!(tail.calls(|_| true).len(), 1);
    }
}
