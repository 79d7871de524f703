//! The chunk that nearly every chunk of an answer is: one choice with a few words of text and nothing else.
//!
//! It is read in one pass and without copies, where the lenient way builds a tree of all that came. Whatever is not
//! just this is `None` and read there: what is found here is what would be found there, only sooner (but that what is not
//! looked at need not be sound).

use std::borrow::Cow;

use serde::Deserialize;

/// The words of a chunk that holds nothing else.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Plain<'a> {
    /// The choice they belong to.
    pub index: u64,
    pub text: Cow<'a, str>,
}

/// A member that anything depends on holds null, or the chunk is more than plain.
type Nothing = Option<()>;

#[derive(Deserialize)]
struct Chunk<'a> {
    #[serde(borrow)]
    choices: [Choice<'a>; 1],
    #[serde(default)]
    usage: Nothing,
    #[serde(default)]
    error: Nothing,
    #[serde(default, borrow)]
    object: Option<Text<'a>>,
    #[serde(default)]
    r#type: Nothing,
    #[serde(default)]
    x_groq: Nothing,
}

#[derive(Deserialize)]
struct Choice<'a> {
    index: u64,
    #[serde(borrow)]
    delta: Delta<'a>,
    #[serde(default)]
    finish_reason: Nothing,
    #[serde(default)]
    usage: Nothing,
}

#[derive(Deserialize)]
struct Delta<'a> {
    #[serde(borrow)]
    content: Text<'a>,
    #[serde(default)]
    reasoning_details: Nothing,
    #[serde(default)]
    reasoning_content: Nothing,
    #[serde(default)]
    reasoning: Nothing,
    #[serde(default)]
    thinking: Nothing,
    #[serde(default)]
    refusal: Nothing,
    #[serde(default)]
    tool_calls: Nothing,
    #[serde(default)]
    function_call: Nothing,
}

#[derive(Deserialize)]
struct Text<'a>(#[serde(borrow)] Cow<'a, str>);

pub(super) fn read(data: &str) -> Option<Plain<'_>> {
    let Chunk {
        choices,
        usage,
        error,
        object,
        r#type,
        x_groq,
    } = serde_json::from_str(data).ok()?;
    let [
        Choice {
            index,
            delta,
            finish_reason,
            usage: own_usage,
        },
    ] = choices;
    let Delta {
        content: Text(text),
        reasoning_details,
        reasoning_content,
        reasoning,
        thinking,
        refusal,
        tool_calls,
        function_call,
    } = delta;
    let others = [
        usage,
        error,
        r#type,
        x_groq,
        finish_reason,
        own_usage,
        reasoning_details,
        reasoning_content,
        reasoning,
        thinking,
        refusal,
        tool_calls,
        function_call,
    ];
    let is_plain = others.iter().all(Option::is_none) && object.is_none_or(|it| it.0 != "error");
    is_plain.then_some(Plain { index, text })
}

#[cfg(test)]
mod tests {
    use pretty_assertions::assert_eq;
    use serde_json::{Value, json};

    use super::*;
    use crate::{
        models::{body::Decode as _, openai::stream::Decoder},
        net::sse::Frame,
    };

    fn text(data: &Value) -> Option<String> {
        read(&data.to_string()).map(|it| format!("{} {}", it.index, it.text))
    }

    #[test]
    fn words_and_nothing_else_are_plain() {
        let servers = [
            json!({ "choices": [{ "index": 0, "delta": { "content": "hi" } }] }),
            json!({ "id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m", "system_fingerprint": null, "service_tier": "x",
                "usage": null, "choices": [{ "index": 0, "delta": { "role": "assistant", "content": "hi", "refusal": null },
                "logprobs": { "content": [] }, "finish_reason": null }], "obfuscation": "xyz", "timings": { "ms": 1.5 } }),
        ];
        for data in servers {
            assert_eq!(text(&data).as_deref(), Some("0 hi"), "{data}");
        }
        let escaped = r#"{"choices":[{"index":1,"delta":{"content":"a\n\u00e9\ud83d\ude00\""}}]}"#;
        assert_eq!(read(escaped).expect("it is plain").text, "a\né😀\"");
    }

    #[test]
    fn anything_more_is_not() {
        let chunk = |choice: Value| json!({ "choices": [choice] });
        let delta = |delta: Value| chunk(json!({ "index": 0, "delta": delta }));
        for (name, data) in [
            (
                "a reason to finish",
                chunk(json!({ "index": 0, "delta": { "content": "a" }, "finish_reason": "stop" })),
            ),
            ("no index", chunk(json!({ "delta": { "content": "a" } }))),
            (
                "an index of another type",
                chunk(json!({ "index": "0", "delta": { "content": "a" } })),
            ),
            (
                "two choices",
                json!({ "choices": [{ "index": 0, "delta": { "content": "a" } }, { "index": 1, "delta": { "content": "b" } }] }),
            ),
            ("no choice", json!({ "choices": [] })),
            (
                "usage",
                json!({ "choices": [{ "index": 0, "delta": { "content": "a" } }], "usage": {} }),
            ),
            (
                "usage in the choice",
                chunk(json!({ "index": 0, "delta": { "content": "a" }, "usage": {} })),
            ),
            (
                "an error",
                json!({ "choices": [{ "index": 0, "delta": { "content": "a" } }], "error": "x" }),
            ),
            (
                "an error by its object",
                json!({ "choices": [{ "index": 0, "delta": { "content": "a" } }], "object": "error" }),
            ),
            ("parts", delta(json!({ "content": [{ "type": "text", "text": "a" }] }))),
            ("no content", delta(json!({ "content": null }))),
            ("thinking", delta(json!({ "content": "a", "reasoning": "b" }))),
            ("a call", delta(json!({ "content": "a", "tool_calls": [{}] }))),
            ("a refusal", delta(json!({ "content": "a", "refusal": "no" }))),
            ("a string", json!("a")),
        ] {
            assert_eq!(text(&data), None, "{name}");
        }
        for data in [
            "",
            "{",
            "{}{}",
            "null",
            r#"{"choices":[{"index":0,"delta":{"content":"\ud83d"}}]}"#,
        ] {
            assert_eq!(read(data), None, "{data}");
        }
        let twice = r#"{"choices":[{"index":0,"delta":{"content":"a","content":"b"}}]}"#;
        assert_eq!(read(twice), None);
    }

    #[test]
    fn a_plain_chunk_is_read_as_the_lenient_way_reads_it() {
        let content = ["", "a", "<think>b", "</think>", " c", "\u{1b}[2J", "漢"];
        let pieces = |more: &str| {
            let mut decoder = Decoder::new(true);
            let mut pieces = Vec::new();
            for text in content {
                let data = format!(
                    r#"{{"id":"i","choices":[{{"index":0,"delta":{{"content":{}}}}}]{more}}}"#,
                    json!(text)
                );
                assert_eq!(read(&data).is_some(), more.is_empty());
                let frame = Frame {
                    data,
                    ..Frame::default()
                };
                decoder.push(&frame, &mut pieces);
            }
            pieces.extend(decoder.finish());
            pieces
        };
        // A member without a meaning that makes the chunk more than plain.
        assert_eq!(pieces(""), pieces(r#","x_groq":{}"#));
    }
}
