//! Reading what others wrote: lenient access to members, repair of broken JSON, the parts of a document.

use serde_json::{Map, Value};

pub use crate::protocol::document::member::text_of;
use crate::protocol::{Kind, Usage, document::member};

/// A document as received, in either shape.
pub struct Parts {
    pub id: Option<String>,
    pub kind: Kind,
    pub sequence: Option<u64>,
    pub content: Option<String>,
    /// Not normalised yet.
    pub metadata: Map<String, Value>,
    /// Names of members that were guessed or converted.
    pub odd: Vec<&'static str>,
}

impl Parts {
    /// Reads flat and nested shapes: members that do not belong to the frame are metadata, and explicit metadata
    /// wins.
    pub fn of(mut members: Map<String, Value>) -> Self {
        let mut odd = Vec::new();
        let id = take_text(&mut members, &["id", "documentId", "document_id"]);
        let kind = take_text(&mut members, &["type"]).filter(|it| !it.trim().is_empty());
        let kind = kind.or_else(|| take_text(&mut members, &["documentType", "document_type"]));
        let sequence = match members.shift_remove("sequence") {
            None | Some(Value::Null) => None,
            Some(value) => {
                let sequence = member::whole(&value).and_then(|it| u64::try_from(it).ok());
                let sound = sequence.filter(|&it| it > 0);
                if sound.is_none() {
                    odd.push("sequence");
                }
                sound
            }
        };
        let content = match members.shift_remove("content") {
            None | Some(Value::Null) => None,
            Some(Value::String(text)) => Some(text),
            Some(other) => {
                odd.push("content");
                Some(text_of(&other))
            }
        };
        let explicit = match members.shift_remove("metadata") {
            None | Some(Value::Null) => Map::new(),
            Some(Value::Object(explicit)) => explicit,
            Some(other) => {
                let parsed = other.as_str().and_then(|it| serde_json::from_str(it).ok());
                parsed.unwrap_or_else(|| {
                    odd.push("metadata");
                    Map::from_iter([("metadata".to_owned(), other)])
                })
            }
        };
        let mut metadata = members;
        // Dialect B names a path twice.
        if explicit
            .get("filePath")
            .is_some_and(|it| metadata.get("path") == Some(it))
        {
            metadata.shift_remove("path");
        }
        metadata.extend(explicit);
        let kind = if let Some(word) = kind {
            Kind::parse(word.trim())
        } else {
            odd.push("type");
            guess(&metadata)
        };
        // The concept's plans carry their Markdown under the name of the tool's argument.
        let content = match content {
            None if kind == Kind::Plan && metadata.get("plan").is_some_and(Value::is_string) => {
                metadata.shift_remove("plan").as_ref().map(text_of)
            }
            content => content,
        };
        Self {
            id,
            kind,
            sequence,
            content,
            metadata,
            odd,
        }
    }
}

/// Guesses the kind of a document without a type by members that only one kind has. `Text` if there is none.
fn guess(metadata: &Map<String, Value>) -> Kind {
    let has = |name: &str| metadata.contains_key(name);
    if has("toolName") || has("arguments") {
        Kind::ToolCall
    } else if has("command") {
        Kind::TerminalCommand
    } else if has("operation") || has("diff") {
        Kind::FileEdit
    } else if has("questions") {
        Kind::Clarification
    } else if has("todos") && has("title") {
        Kind::Plan
    } else if has("todos") {
        Kind::TodoUpdate
    } else if has("errorCode") {
        Kind::Error
    } else if has("startLine") {
        Kind::CodeReference
    } else if has("purpose") {
        Kind::CodeBlock
    } else {
        Kind::Text
    }
}

/// Removes and returns the first of `names` that holds a text or a number. `None` if none does.
pub fn take_text(members: &mut Map<String, Value>, names: &[&str]) -> Option<String> {
    names.iter().find_map(|&name| match members.get(name)? {
        Value::String(_) | Value::Number(_) => members.shift_remove(name).map(|it| match it {
            Value::String(text) => text,
            other => other.to_string(),
        }),
        Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => None,
    })
}

/// Removes and returns the first of `names` that holds a count, also as digits in a string. `None` if none does.
pub fn take_count(members: &mut Map<String, Value>, names: &[&str]) -> Option<u64> {
    names.iter().find_map(|&name| {
        let count = member::count(members, name)?;
        members.shift_remove(name);
        Some(count)
    })
}

/// Usage under the protocol's names or those that other servers use; a missing total is the sum.
pub fn take_usage(usage: &mut Map<String, Value>) -> Usage {
    let prompt_tokens = take_count(usage, &["promptTokens", "prompt_tokens", "inputTokens", "input_tokens"]);
    let completion_tokens = take_count(
        usage,
        &["completionTokens", "completion_tokens", "outputTokens", "output_tokens"],
    );
    let total_tokens = take_count(usage, &["totalTokens", "total_tokens"]);
    let prompt_tokens = prompt_tokens.unwrap_or(0);
    let completion_tokens = completion_tokens.unwrap_or(0);
    Usage {
        prompt_tokens,
        completion_tokens,
        total_tokens: total_tokens.unwrap_or_else(|| prompt_tokens.saturating_add(completion_tokens)),
    }
}

/// Returns the approximate size of a value in memory, in bytes.
pub fn weigh(value: &Value) -> usize {
    16 + match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => 0,
        Value::String(text) => text.len(),
        Value::Array(items) => items.iter().map(weigh).sum(),
        Value::Object(members) => weigh_all(members),
    }
}

pub fn weigh_all(members: &Map<String, Value>) -> usize {
    members.iter().map(|(name, value)| name.len() + weigh(value)).sum()
}

/// The longest start of `text` that fits into `bytes`.
pub fn cut(text: &str, bytes: usize) -> &str {
    text.get(..text.floor_char_boundary(bytes)).unwrap_or_default()
}

/// Parses JSON and repairs mistakes of JavaScript and Python: halves of a character that was cut between two deltas
/// become U+FFFD, `NaN` and `Infinity` become null. The flag is true if something was repaired.
pub fn parse(text: &str) -> Result<(Value, bool), serde_json::Error> {
    match serde_json::from_str(text) {
        Ok(value) => Ok((value, false)),
        Err(error) => match mend(text) {
            Some(mended) => serde_json::from_str(&mended).map(|it| (it, true)).map_err(|_| error),
            None => Err(error),
        },
    }
}

fn mend(text: &str) -> Option<String> {
    let mut mended = String::with_capacity(text.len());
    let mut changed = false;
    let mut in_string = false;
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        let (keep, skip) = match c {
            '\\' if in_string => match escape(rest) {
                Escape::Half => {
                    changed = true;
                    ("\\ufffd", 6)
                }
                Escape::Whole(length) => (cut(rest, length), length),
            },
            '"' => {
                in_string = !in_string;
                ("\"", 1)
            }
            'N' | 'I' | '-' if !in_string => {
                match ["NaN", "Infinity", "-Infinity", "-NaN"]
                    .into_iter()
                    .find(|it| rest.starts_with(it))
                {
                    Some(word) => {
                        changed = true;
                        ("null", word.len())
                    }
                    None => (cut(rest, 1), 1),
                }
            }
            other => (cut(rest, other.len_utf8()), other.len_utf8()),
        };
        mended.push_str(keep);
        rest = rest.get(skip..).unwrap_or_default();
    }
    changed.then_some(mended)
}

enum Escape {
    /// A surrogate without its partner.
    Half,
    /// Anything else, with its length.
    Whole(usize),
}

fn escape(rest: &str) -> Escape {
    let unit = |from: usize| {
        let digits = rest.get(from..from + 6)?.strip_prefix("\\u")?;
        u16::from_str_radix(digits, 16).ok()
    };
    match unit(0) {
        Some(0xD800..=0xDBFF) if matches!(unit(6), Some(0xDC00..=0xDFFF)) => Escape::Whole(12),
        Some(0xD800..=0xDFFF) => Escape::Half,
        Some(_) => Escape::Whole(6),
        None => Escape::Whole(1 + rest.chars().nth(1).map_or(0, char::len_utf8)),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn json_that_other_languages_write_is_mended() {
        let cases = [
            ("a high half", r#"{"a":"x\ud83d"}"#, json!({"a": "x\u{fffd}"})),
            ("a low half", r#"{"a":"\ude00x"}"#, json!({"a": "\u{fffd}x"})),
            (
                "two high halves",
                r#"["\ud83d\ud83d\ude00"]"#,
                json!(["\u{fffd}\u{1f600}"]),
            ),
            (
                "an escaped backslash before a u",
                r#"["\\ud83d\ud83d"]"#,
                json!(["\\ud83d\u{fffd}"]),
            ),
            (
                "python's numbers",
                r#"{"a":NaN,"b":[-Infinity,"NaN"]}"#,
                json!({"a": null, "b": [null, "NaN"]}),
            ),
        ];
        for (name, text, wanted) in cases {
            assert_eq!(parse(text).expect(name), (wanted, true), "{name}");
        }
        assert_eq!(parse("{}").expect("sound"), (json!({}), false));
        for text in ["", "{", "{'a':1}", "\"\\", "\\u", "\"\\ud83", "nul", "\"é\\"] {
            assert!(parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_cut_never_halves_a_character() {
        assert_eq!(cut("aé", 2), "a");
        assert_eq!(cut("aé", 3), "aé");
        assert_eq!(cut("", 3), "");
    }
}
