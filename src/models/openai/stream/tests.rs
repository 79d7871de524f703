//! Tests of streams that are nearly chat completions.

mod recorded;

use std::fmt::Write;

use pretty_assertions::assert_eq;
use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::{models::lenient::ANSWER_LIMIT_BYTES, net::sse::Frames};

/// Pieces in one line; neighbours of one kind are one, because where they were cut says nothing.
fn show(pieces: &[Piece]) -> String {
    let mut merged: Vec<Piece> = Vec::new();
    for piece in pieces {
        match (merged.last_mut(), piece) {
            (Some(Piece::Text(last)), Piece::Text(more)) | (Some(Piece::Thinking(last)), Piece::Thinking(more)) => {
                last.push_str(more);
            }
            (Some(Piece::CallArguments { slot: last, fragment }), Piece::CallArguments { slot, fragment: more })
                if last == slot =>
            {
                fragment.push_str(more);
            }
            _ => merged.push(piece.clone()),
        }
    }
    let mut line = String::new();
    for piece in &merged {
        if !line.is_empty() {
            line.push_str(" | ");
        }
        match piece {
            Piece::Progress(progress) => write!(line, "progress {progress:?}"),
            Piece::Start { model, .. } => write!(line, "start {}", model.as_deref().unwrap_or("-")),
            Piece::Text(text) => write!(line, "text {text:?}"),
            Piece::Thinking(text) => write!(line, "thinking {text:?}"),
            Piece::ThinkingDone { opaque } => write!(line, "opaque {opaque}"),
            Piece::Searched(search) => write!(line, "search {:?}", search.query),
            Piece::CallStart { slot, id, name } => write!(line, "call {slot} {id:?} {name:?}"),
            Piece::CallArguments { slot, fragment } => write!(line, "arguments {slot} {fragment:?}"),
            Piece::CallDone {
                slot,
                id,
                name,
                arguments,
                opaque: _,
            } => match arguments {
                Ok(arguments) => write!(line, "called {slot} {id:?} {name:?} {}", json!(arguments)),
                Err(text) => write!(line, "called {slot} {id:?} {name:?} with broken {text:?}"),
            },
            Piece::Usage(it) => {
                write!(
                    line,
                    "usage {}({})+{}({})",
                    it.prompt, it.cached, it.completion, it.reasoning
                )
            }
            Piece::Void => write!(line, "void"),
            Piece::Refusal(text) => write!(line, "refusal {text:?}"),
            Piece::Notice(notice) => write!(line, "notice {}", notice.code),
            Piece::Seen(_) => write!(line, "seen"),
            Piece::End(reason) => write!(line, "end {reason:?}"),
            Piece::Error(failure) => write!(
                line,
                "error {} {:?} {:?}",
                failure.kind.code(),
                failure.message,
                failure.said.as_deref().unwrap_or_default()
            ),
        }
        .expect("a String takes everything");
    }
    line
}

fn decode<'a>(chunks: impl IntoIterator<Item = &'a [u8]>) -> Vec<Piece> {
    let mut frames = Frames::new();
    let mut decoder = Decoder::new(true);
    let mut pieces = Vec::new();
    for chunk in chunks {
        for frame in frames.push(chunk) {
            decoder.push(&frame.expect("no line is too long"), &mut pieces);
        }
    }
    if let Some(frame) = frames.finish() {
        decoder.push(&frame.expect("no line is too long"), &mut pieces);
    }
    pieces.extend(decoder.finish());
    let ends = pieces
        .iter()
        .filter(|it| matches!(it, Piece::End(_) | Piece::Error(_)))
        .count();
    assert_eq!(ends, 1, "one end");
    assert!(
        matches!(pieces.last(), Some(Piece::End(_) | Piece::Error(_))),
        "the end is last"
    );
    pieces
}

/// A stream of these data lines, and `[DONE]`.
fn stream(data: &[&str]) -> String {
    data.iter()
        .chain(&["[DONE]"])
        .fold(String::new(), |all, it| all + "data: " + it + "\n\n")
}

const HI: &str = r#"{"choices":[{"delta":{"content":"hi"}}]}"#;
const STOP: &str = r#"{"choices":[{"delta":{},"finish_reason":"stop"}]}"#;
const HI_STOP: &str = r#"text "hi" | end Stop"#;

fn check(cases: &[(&str, &[&str], &str)]) {
    for (name, data, want) in cases {
        assert_eq!(show(&decode([stream(data).as_bytes()])), *want, "{name}");
    }
}

#[test]
fn sloppy_chunks_are_read() {
    check(&[
        ("only choices", &[HI, STOP], HI_STOP),
        (
            "everything",
            &[
                r#"{"id":"c1","object":"chat.completion.chunk","created":1,"model":"gpt-x","choices":[{"index":0,"delta":{"role":"assistant","content":""},"finish_reason":null}]}"#,
                HI,
                STOP,
                r#"{"choices":[],"usage":{"prompt_tokens":90,"completion_tokens":17,"total_tokens":107,"prompt_tokens_details":{"cached_tokens":64},"completion_tokens_details":{"reasoning_tokens":3}}}"#,
            ],
            r#"start gpt-x | text "hi" | usage 90(64)+17(3) | end Stop"#,
        ),
        (
            "finish reason is empty until it is not",
            &[r#"{"choices":[{"delta":{"content":"hi"},"finish_reason":""}]}"#, STOP],
            HI_STOP,
        ),
        (
            "an unknown finish reason",
            &[HI, r#"{"choices":[{"delta":{},"finish_reason":"cosmic_ray"}]}"#],
            r#"text "hi" | end Other("cosmic_ray")"#,
        ),
        (
            "a foreign finish reason",
            &[HI, r#"{"choices":[{"finish_reason":"end_turn"}]}"#],
            HI_STOP,
        ),
        ("no finish reason, but [DONE]", &[HI], HI_STOP),
        (
            "the finish reason comes with the content",
            &[r#"{"choices":[{"delta":{"content":"hi"},"finish_reason":"stop"}]}"#],
            HI_STOP,
        ),
        ("delta is null", &[r#"{"choices":[{"delta":null}]}"#, HI, STOP], HI_STOP),
        ("choices is null", &[r#"{"choices":null}"#, HI, STOP], HI_STOP),
        (
            "choices is empty",
            &[r#"{"choices":[]}"#, HI, STOP, r#"{"choices":[]}"#],
            HI_STOP,
        ),
        (
            "choices is missing",
            &[r#"{"object":"chat.completion.chunk"}"#, HI, STOP],
            HI_STOP,
        ),
        (
            "choices is an object",
            &[r#"{"choices":{"delta":{"content":"hi"}}}"#, STOP],
            HI_STOP,
        ),
        (
            "choices hold nonsense",
            &[r#"{"choices":[null,7,"x",[]]}"#, HI, STOP],
            HI_STOP,
        ),
        (
            "content is null",
            &[r#"{"choices":[{"delta":{"content":null}}]}"#, HI, STOP],
            HI_STOP,
        ),
        (
            "content is a list of parts",
            &[
                r#"{"choices":[{"delta":{"content":[{"type":"text","text":"h"},"i",{"type":"image"}]}}]}"#,
                STOP,
            ],
            r#"text "hi" | notice unknown-part | end Stop"#,
        ),
        (
            "content is a number",
            &[r#"{"choices":[{"delta":{"content":7}}]}"#, HI, STOP],
            HI_STOP,
        ),
        (
            "azure speaks about filters first",
            &[
                r#"{"choices":[],"prompt_filter_results":[{"prompt_index":0}]}"#,
                HI,
                r#"{"choices":[{"delta":{},"content_filter_results":{"hate":{"filtered":false}}}]}"#,
                STOP,
            ],
            HI_STOP,
        ),
        (
            "a second choice",
            &[
                r#"{"choices":[{"index":0,"delta":{"content":"hi"}},{"index":1,"delta":{"content":"ho"}}]}"#,
                STOP,
            ],
            r#"text "hi" | notice second-choice | end Stop"#,
        ),
        (
            "the only choice has index 1",
            &[r#"{"choices":[{"index":1,"delta":{"content":"hi"},"finish_reason":"stop"}]}"#],
            HI_STOP,
        ),
        (
            "a message in place of the delta",
            &[r#"{"choices":[{"message":{"content":"hi"},"finish_reason":"stop"}]}"#],
            HI_STOP,
        ),
        (
            "a last chunk repeats the message",
            &[
                HI,
                r#"{"choices":[{"delta":{},"message":{"content":"hi"},"finish_reason":"stop"}]}"#,
            ],
            HI_STOP,
        ),
        (
            "tool_calls is an empty list",
            &[r#"{"choices":[{"delta":{"content":"hi","tool_calls":[]}}]}"#, STOP],
            HI_STOP,
        ),
        (
            "what comes after the end is ignored",
            &[HI, STOP, "[DONE]", HI],
            HI_STOP,
        ),
    ]);
}

#[test]
fn sloppy_frames_are_read() {
    check(&[
        ("empty data", &["", HI, "", STOP], HI_STOP),
        (
            "a comment that became data",
            &[": OPENROUTER PROCESSING", HI, STOP],
            HI_STOP,
        ),
        (
            "a line that is no JSON",
            &[HI, "<hr>", "{\"choices\":", STOP],
            r#"text "hi" | notice bad-json | end Stop"#,
        ),
        (
            "JSON that is no object",
            &["7", "\"x\"", HI, STOP],
            r#"notice bad-json | text "hi" | end Stop"#,
        ),
        (
            "two objects in one event",
            &[&(HI.to_owned() + STOP)],
            r#"notice glued-json | text "hi" | end Stop"#,
        ),
        ("an object in a list", &[&format!("[{HI}]"), STOP], HI_STOP),
        ("[DONE] in quotes", &[HI, STOP, "\"[DONE]\""], HI_STOP),
    ]);
    let cases = [
        ("a byte order mark", format!("\u{feff}{}", stream(&[HI, STOP]))),
        ("lines end in CRLF", stream(&[HI, STOP]).replace('\n', "\r\n")),
        (
            "comments between",
            stream(&[HI, STOP]).replace("data", ": ping\n\n: \ndata"),
        ),
        (
            "no space after the colon",
            stream(&[HI, STOP]).replace("data: ", "data:"),
        ),
        (
            "the event is named message",
            stream(&[HI, STOP]).replace("data", "event: message\ndata"),
        ),
        ("no blank line at the end", stream(&[HI, STOP]).trim_end().to_owned()),
        (
            "[DONE] is missing after a finish reason",
            stream(&[HI, STOP]).replace("data: [DONE]\n\n", ""),
        ),
    ];
    for (name, body) in cases {
        assert_eq!(show(&decode([body.as_bytes()])), HI_STOP, "{name}");
    }
}

#[test]
fn a_cut_stream_is_no_answer() {
    let broke = r#"error STREAM_INTERRUPTED "the answer broke off before its end" """#;
    let call =
        r#"{"choices":[{"delta":{"tool_calls":[{"index":0,"id":"a","function":{"name":"ls","arguments":"{}"}}]}}]}"#;
    let cases = [
        ("in the answer", format!("data: {HI}\n\n"), format!(r#"text "hi" | {broke}"#)),
        ("in a frame", format!("data: {HI}\n\ndata: {{\"cho"), format!(r#"text "hi" | {broke}"#)),
        (
            "after a call: it must not run",
            format!("data: {call}\n\n"),
            format!(r#"call 0 "a" "ls" | arguments 0 "{{}}" | {broke}"#),
        ),
        (
            "in reasoning in the text",
            "data: {\"choices\":[{\"delta\":{\"content\":\"<think>hm</thi\"}}]}\n\n".to_owned(),
            format!(r#"thinking "hm</thi" | {broke}"#),
        ),
        (
            "before anything",
            ": ping\n\n".to_owned(),
            r#"error STREAM_INTERRUPTED "the server ended the stream without an answer" """#.to_owned(),
        ),
        (
            "nothing but rubbish",
            "data: x\n\ndata: y\n\n".to_owned(),
            r#"notice bad-json | error LLM_BAD_RESPONSE "the server answered with something else than chat completions" """#
                .to_owned(),
        ),
    ];
    for (name, body, want) in cases {
        assert_eq!(show(&decode([body.as_bytes()])), want, "{name}");
    }
}

#[test]
fn errors_in_mid_stream_end_it() {
    let said = |code: &str, message: &str, said: &str| format!(r#"text "hi" | error {code} {message:?} {said:?}"#);
    let reported = "the server reported an error";
    let cases: &[(&str, &str, String)] = &[
        (
            "null is no error",
            r#"{"error":null,"choices":[{"delta":{"content":"!"}}]}"#,
            r#"text "hi!" | end Stop"#.to_owned(),
        ),
        (
            "nor is an empty one",
            r#"{"error":"","choices":[]}"#,
            HI_STOP.to_owned(),
        ),
        (
            "an object",
            r#"{"error":{"message":"boom","type":"odd"}}"#,
            said("LLM_BAD_RESPONSE", reported, "boom"),
        ),
        (
            "a text",
            r#"{"error":"boom"}"#,
            said("LLM_BAD_RESPONSE", reported, "boom"),
        ),
        (
            "overloaded, by its code",
            r#"{"error":{"message":"later","code":529}}"#,
            said("LLM_OVERLOADED", "the server has no capacity at the moment", "later"),
        ),
        (
            "a code in quotes",
            r#"{"error":{"message":"oh","code":"502"}}"#,
            said("LLM_UNAVAILABLE", "the server failed (502)", "oh"),
        ),
        (
            "with a last choice",
            r#"{"error":{"message":"oh","code":502},"choices":[{"delta":{"content":"!"},"finish_reason":"error"}]}"#,
            r#"text "hi!" | error LLM_UNAVAILABLE "the server failed (502)" "oh""#.to_owned(),
        ),
        (
            "only a finish reason",
            r#"{"choices":[{"delta":{},"finish_reason":"error"}]}"#,
            said("LLM_UNAVAILABLE", "the server ended the answer with an error", ""),
        ),
        (
            "no resources",
            r#"{"choices":[{"delta":{},"finish_reason":"insufficient_system_resource"}]}"#,
            said("LLM_OVERLOADED", "the server ran out of capacity in mid-answer", ""),
        ),
        (
            "in a list of one",
            r#"[{"error":{"code":400,"message":"bad","status":"INVALID_ARGUMENT"}}]"#,
            said("LLM_BAD_RESPONSE", "the server refused the request (400)", "bad"),
        ),
        (
            "not wrapped, as vLLM had it",
            r#"{"object":"error","message":"max context length is 10","code":400}"#,
            said(
                "LLM_CONTEXT_LENGTH",
                "the conversation is too long for the model",
                "max context length is 10",
            ),
        ),
        (
            "FastAPI's",
            r#"{"detail":"Not Found"}"#,
            said("LLM_BAD_RESPONSE", reported, "Not Found"),
        ),
    ];
    for (name, data, want) in cases {
        assert_eq!(show(&decode([stream(&[HI, data]).as_bytes()])), *want, "{name}");
    }
    let events = [
        ("with JSON", "event: error\ndata: {\"message\":\"boom\"}\n\n"),
        ("wrapped", "event: error\ndata: {\"error\":{\"message\":\"boom\"}}\n\n"),
        ("in plain words", "event: error\ndata: boom\n\n"),
        ("as a JSON text", "event: error\ndata: \"boom\"\n\n"),
    ];
    for (name, event) in events {
        let body = format!("data: {HI}\n\n{event}");
        assert_eq!(
            show(&decode([body.as_bytes()])),
            said("LLM_BAD_RESPONSE", reported, "boom"),
            "{name}"
        );
    }
}

#[test]
fn usage_is_found_wherever_it_is() {
    check(&[
        (
            "floats",
            &[HI, r#"{"usage":{"prompt_tokens":5.0,"completion_tokens":2.6}}"#, STOP],
            r#"text "hi" | usage 5(0)+3(0) | end Stop"#,
        ),
        (
            "in quotes, negative, of a wrong type",
            &[
                r#"{"choices":[{"delta":{"content":"hi"},"finish_reason":"stop"}],"usage":{"prompt_tokens":"5","completion_tokens":-1,"prompt_tokens_details":7}}"#,
            ],
            r#"usage 5(0)+0(0) | text "hi" | end Stop"#,
        ),
        (
            "null in every chunk",
            &[
                r#"{"choices":[{"delta":{"content":"hi"}}],"usage":null}"#,
                STOP,
                r#"{"choices":[],"usage":{"prompt_tokens":5,"completion_tokens":2}}"#,
            ],
            r#"text "hi" | usage 5(0)+2(0) | end Stop"#,
        ),
        (
            "on every chunk, growing",
            &[
                r#"{"choices":[{"delta":{"content":"h"}}],"usage":{"prompt_tokens":5,"completion_tokens":1}}"#,
                r#"{"choices":[{"delta":{"content":"i"}}],"usage":{"prompt_tokens":5,"completion_tokens":2}}"#,
                r#"{"choices":[],"usage":{"prompt_tokens":5,"completion_tokens":2}}"#,
                STOP,
            ],
            r#"usage 5(0)+1(0) | text "h" | usage 5(0)+2(0) | text "i" | end Stop"#,
        ),
        (
            "zeros at the end do not wipe it out",
            &[
                r#"{"choices":[{"delta":{"content":"hi"}}],"usage":{"prompt_tokens":5,"completion_tokens":2}}"#,
                r#"{"choices":[],"usage":{"prompt_tokens":0,"completion_tokens":0}}"#,
                STOP,
            ],
            r#"usage 5(0)+2(0) | text "hi" | end Stop"#,
        ),
        (
            "under x_groq",
            &[
                HI,
                r#"{"choices":[{"delta":{},"finish_reason":"stop"}],"x_groq":{"id":"r","usage":{"prompt_tokens":5,"completion_tokens":2}}}"#,
            ],
            r#"text "hi" | usage 5(0)+2(0) | end Stop"#,
        ),
        (
            "in the choice",
            &[
                r#"{"choices":[{"delta":{"content":"hi"},"usage":{"prompt_tokens":5,"completion_tokens":2}}]}"#,
                STOP,
            ],
            r#"usage 5(0)+2(0) | text "hi" | end Stop"#,
        ),
        (
            "DeepSeek counts its cache beside",
            &[
                HI,
                STOP,
                r#"{"choices":[],"usage":{"prompt_tokens":5,"prompt_cache_hit_tokens":4,"completion_tokens":2}}"#,
            ],
            r#"text "hi" | usage 5(4)+2(0) | end Stop"#,
        ),
    ]);
}

#[test]
fn reasoning_has_many_names() {
    let content = r#"thinking "hm" | text "hi" | opaque {"reasoning_content":"hm"} | end Stop"#;
    let reasoning = r#"thinking "hm" | text "hi" | opaque {"reasoning":"hm"} | end Stop"#;
    check(&[
        (
            "reasoning_content",
            &[
                r#"{"choices":[{"delta":{"reasoning_content":"hm","content":null}}]}"#,
                HI,
                STOP,
            ],
            content,
        ),
        (
            "reasoning",
            &[r#"{"choices":[{"delta":{"reasoning":"hm","content":""}}]}"#, HI, STOP],
            reasoning,
        ),
        (
            "both at once",
            &[
                r#"{"choices":[{"delta":{"reasoning":"hm","reasoning_content":"hm"}}]}"#,
                HI,
                STOP,
            ],
            content,
        ),
        (
            "one null",
            &[
                r#"{"choices":[{"delta":{"reasoning_content":null,"reasoning":"hm"}}]}"#,
                HI,
                STOP,
            ],
            reasoning,
        ),
        (
            "before the role",
            &[
                r#"{"choices":[{"delta":{"reasoning_content":"hm"}}]}"#,
                r#"{"choices":[{"delta":{"role":"assistant","content":""}}]}"#,
                HI,
                STOP,
            ],
            content,
        ),
        (
            "parts of the content",
            &[
                r#"{"choices":[{"delta":{"content":[{"type":"thinking","thinking":[{"type":"text","text":"hm"}]}]}}]}"#,
                HI,
                STOP,
            ],
            r#"thinking "hm" | text "hi" | end Stop"#,
        ),
        (
            "details beside the text are kept for their maker",
            &[
                r#"{"choices":[{"delta":{"reasoning":"hm","reasoning_details":[{"type":"reasoning.text","text":"hm","signature":"s"}]}}]}"#,
                HI,
                STOP,
            ],
            r#"thinking "hm" | text "hi" | opaque {"reasoning":"hm","reasoning_details":[{"type":"reasoning.text","text":"hm","signature":"s"}]} | end Stop"#,
        ),
        (
            "details alone",
            &[
                r#"{"choices":[{"delta":{"reasoning_details":[{"type":"reasoning.summary","summary":"hm"},{"type":"reasoning.encrypted","data":"x"}]}}]}"#,
                HI,
                STOP,
            ],
            r#"thinking "hm" | text "hi" | opaque {"reasoning_details":[{"type":"reasoning.summary","summary":"hm"},{"type":"reasoning.encrypted","data":"x"}]} | end Stop"#,
        ),
        (
            "nothing but reasoning until the limit",
            &[r#"{"choices":[{"delta":{"reasoning":"hm"},"finish_reason":"length"}]}"#],
            r#"thinking "hm" | opaque {"reasoning":"hm"} | end Length"#,
        ),
    ]);
}

#[test]
fn a_think_block_at_the_start_is_reasoning() {
    let cases = [
        (
            "a block",
            "<think>hm</think>hi",
            r#"thinking "hm" | text "hi" | end Stop"#,
        ),
        (
            "white space around it",
            "\n <think>\n\nhm\n</think>\n\nhi",
            "thinking \"hm\\n\" | text \"\\n\\nhi\" | end Stop",
        ),
        ("an empty one", "<think>\n\n</think>hi", HI_STOP),
        ("not at the start", "hi <think>", r#"text "hi <think>" | end Stop"#),
        ("another tag", "<thing>hi", r#"text "<thing>hi" | end Stop"#),
        ("only a part of the tag", "<thi", r#"text "<thi" | end Stop"#),
        ("not closed", "<think>hm", r#"thinking "hm" | end Stop"#),
        (
            "nearly closed inside",
            "<think>a</thin>b</think>hi",
            r#"thinking "a</thin>b" | text "hi" | end Stop"#,
        ),
        (
            "twice",
            "<think>a</think>b<think>c",
            r#"thinking "a" | text "b<think>c" | end Stop"#,
        ),
    ];
    for (name, content, want) in cases {
        let chunk = |text: &str| json!({ "choices": [{ "delta": { "content": text } }] }).to_string();
        for at in (0..=content.len()).filter(|&at| content.is_char_boundary(at)) {
            let (head, tail) = content.split_at(at);
            let body = stream(&[&chunk(head), &chunk(tail), STOP]);
            assert_eq!(show(&decode([body.as_bytes()])), want, "{name}, cut at {at}");
        }
        let letters: Vec<String> = content.chars().map(|it| chunk(&it.to_string())).collect();
        let letters: Vec<&str> = letters.iter().map(String::as_str).chain([STOP]).collect();
        assert_eq!(
            show(&decode([stream(&letters).as_bytes()])),
            want,
            "{name}, letter by letter"
        );
    }
    let body = stream(&[r#"{"choices":[{"delta":{"content":"<think>hm</think>"}}]}"#]);
    let mut decoder = Decoder::new(false);
    let mut pieces = Vec::new();
    for frame in Frames::new().push(body.as_bytes()) {
        decoder.push(&frame.expect("short lines"), &mut pieces);
    }
    assert_eq!(show(&pieces), r#"text "<think>hm</think>" | end Stop"#, "switched off");
}

/// A chunk with these fragments of calls.
fn calls(fragments: &Value) -> String {
    json!({ "choices": [{ "index": 0, "delta": { "tool_calls": fragments } }] }).to_string()
}

#[test]
fn fragments_of_calls_find_their_slots() {
    let f = |name: &str, arguments: &str| json!({ "name": name, "arguments": arguments });
    let more = |arguments: &str| json!({ "arguments": arguments });
    let two = concat!(
        r#"call 0 "a" "ls" | arguments 0 "{\"p\":1}" | call 1 "b" "cat" | arguments 1 "{\"q\":2}" | "#,
        r#"called 0 "a" "ls" {"p":1} | called 1 "b" "cat" {"q":2} | end ToolUse"#
    );
    let one = r#"call 0 "a" "ls" | arguments 0 "{\"p\":1}" | called 0 "a" "ls" {"p":1} | end ToolUse"#;
    let cases: &[(&str, &[Value], &str)] = &[
        (
            "as specified",
            &[
                json!([{ "index": 0, "id": "a", "type": "function", "function": f("ls", "") }]),
                json!([{ "index": 0, "function": more("{\"p\"") }]),
                json!([{ "index": 0, "function": more(":1}") }]),
                json!([{ "index": 1, "id": "b", "type": "function", "function": f("cat", "") }]),
                json!([{ "index": 1, "function": more("{\"q\":2}") }]),
            ],
            two,
        ),
        (
            "interleaved",
            &[
                json!([{ "index": 0, "id": "a", "function": f("ls", "{\"p\"") }, { "index": 1, "id": "b", "function": f("cat", "{\"q\"") }]),
                json!([{ "index": 1, "function": more(":2}") }, { "index": 0, "function": more(":1}") }]),
            ],
            concat!(
                r#"call 0 "a" "ls" | arguments 0 "{\"p\"" | call 1 "b" "cat" | arguments 1 "{\"q\":2}" | arguments 0 ":1}" | "#,
                r#"called 0 "a" "ls" {"p":1} | called 1 "b" "cat" {"q":2} | end ToolUse"#
            ),
        ),
        (
            "no index",
            &[
                json!([{ "id": "a", "function": f("ls", "{\"p\":") }]),
                json!([{ "function": more("1}") }]),
                json!([{ "id": "b", "function": f("cat", "{\"q\":") }]),
                json!([{ "id": "b", "function": more("2}") }]),
            ],
            two,
        ),
        (
            "index is null",
            &[
                json!([{ "index": null, "id": "a", "function": f("ls", "{\"p\":1}") }, { "index": null, "id": "b", "function": f("cat", "{\"q\":2}") }]),
            ],
            two,
        ),
        (
            "index 0 for every call",
            &[
                json!([{ "index": 0, "id": "a", "function": f("ls", "{\"p\":1}") }]),
                json!([{ "index": 0, "id": "b", "function": f("cat", "{\"q\"") }]),
                json!([{ "index": 0, "function": more(":2}") }]),
            ],
            two,
        ),
        (
            "indices start at 1",
            &[
                json!([{ "index": 1, "id": "a", "function": f("ls", "{\"p\":1}") }]),
                json!([{ "index": 2, "id": "b", "function": f("cat", "{\"q\":2}") }]),
            ],
            two,
        ),
        (
            "arguments are an object",
            &[json!([{ "index": 0, "id": "a", "function": { "name": "ls", "arguments": { "p": 1 } } }])],
            one,
        ),
        (
            "id and name in every fragment",
            &[
                json!([{ "index": 0, "id": "a", "function": f("ls", "{\"p\"") }]),
                json!([{ "index": 0, "id": "a", "function": f("ls", ":1}") }]),
            ],
            one,
        ),
        (
            "name and arguments without the wrapper",
            &[json!([{ "index": 0, "id": "a", "name": "ls", "arguments": "{\"p\":1}" }])],
            one,
        ),
        (
            "the name comes late",
            &[
                json!([{ "index": 0, "id": "a", "function": more("{\"p\"") }]),
                json!([{ "index": 0, "function": f("ls", ":1}") }]),
            ],
            one,
        ),
        (
            "no id at all",
            &[json!([{ "index": 0, "id": "", "function": f("ls", "{}") }, { "index": 1, "function": f("cat", "") }])],
            r#"call 0 "" "ls" | arguments 0 "{}" | call 1 "" "cat" | called 0 "" "ls" {} | called 1 "" "cat" {} | end ToolUse"#,
        ),
        (
            "neither ids nor indices that differ",
            &[
                json!([{ "index": 0, "id": "", "function": f("ls", "{}") }]),
                json!([{ "index": 0, "id": "", "function": f("cat", "{}") }]),
            ],
            r#"call 0 "" "ls" | arguments 0 "{}" | call 1 "" "cat" | arguments 1 "{}" | called 0 "" "ls" {} | called 1 "" "cat" {} | end ToolUse"#,
        ),
        (
            "neither id nor index, only names",
            &[json!([{ "function": f("ls", "{}") }, { "function": f("cat", "{}") }])],
            r#"call 0 "" "ls" | arguments 0 "{}" | call 1 "" "cat" | arguments 1 "{}" | called 0 "" "ls" {} | called 1 "" "cat" {} | end ToolUse"#,
        ),
        (
            "broken arguments are kept",
            &[json!([{ "index": 0, "id": "a", "function": f("ls", "{\"p\"") }])],
            r#"call 0 "a" "ls" | arguments 0 "{\"p\"" | called 0 "a" "ls" with broken "{\"p\"" | end ToolUse"#,
        ),
        (
            "arguments that are no object",
            &[json!([{ "index": 0, "id": "a", "function": f("ls", "[1]") }])],
            r#"call 0 "a" "ls" | arguments 0 "[1]" | called 0 "a" "ls" with broken "[1]" | end ToolUse"#,
        ),
        (
            "blank arguments are none",
            &[json!([{ "index": 0, "id": "a", "function": f("ls", " ") }])],
            r#"call 0 "a" "ls" | arguments 0 " " | called 0 "a" "ls" {} | end ToolUse"#,
        ),
        (
            "a call without a name",
            &[json!([{ "index": 0, "id": "a", "function": more("{}") }])],
            r#"call 0 "a" "" | called 0 "a" "" {} | end ToolUse"#,
        ),
        (
            "nonsense",
            &[json!([null, 7, "x"]), json!("x"), json!(null)],
            "end Stop",
        ),
    ];
    for (name, fragments, want) in cases {
        for finish in ["stop", "tool_calls"] {
            let chunks: Vec<String> = fragments.iter().map(calls).collect();
            let stop = STOP.replace("stop", finish);
            let data: Vec<&str> = chunks.iter().map(String::as_str).chain([stop.as_str()]).collect();
            assert_eq!(
                show(&decode([stream(&data).as_bytes()])),
                *want,
                "{name}, finish reason {finish}"
            );
        }
    }
    check(&[
        (
            "the one function of old",
            &[
                r#"{"choices":[{"delta":{"function_call":{"name":"ls","arguments":"{\"p\":"}}}]}"#,
                r#"{"choices":[{"delta":{"function_call":{"arguments":"1}"}}}]}"#,
                r#"{"choices":[{"delta":{},"finish_reason":"function_call"}]}"#,
            ],
            r#"call 0 "" "ls" | arguments 0 "{\"p\":1}" | called 0 "" "ls" {"p":1} | end ToolUse"#,
        ),
        (
            "a call that the limit cut is none",
            &[
                r#"{"choices":[{"delta":{"tool_calls":[{"index":0,"id":"a","function":{"name":"ls","arguments":"{\"p"}}]}}]}"#,
                r#"{"choices":[{"delta":{},"finish_reason":"length"}]}"#,
            ],
            r#"call 0 "a" "ls" | arguments 0 "{\"p" | end Length"#,
        ),
        (
            "no arguments yet are not the empty ones",
            &[
                r#"{"choices":[{"delta":{"tool_calls":[{"index":0,"id":"a","function":{"name":"ls","arguments":""}}]}}]}"#,
                r#"{"choices":[{"delta":{},"finish_reason":"length"}]}"#,
            ],
            r#"call 0 "a" "ls" | end Length"#,
        ),
        (
            "nor after an end that nobody knows",
            &[
                r#"{"choices":[{"delta":{"tool_calls":[{"index":0,"id":"a","function":{"name":"ls"}}]}}]}"#,
                r#"{"choices":[{"delta":{},"finish_reason":"abort"}]}"#,
            ],
            r#"call 0 "a" "ls" | end Other("abort")"#,
        ),
        (
            "calls before the one that was cut are whole, without arguments too, and so is one that was closed in time",
            &[
                r#"{"choices":[{"delta":{"tool_calls":[{"index":0,"id":"a","function":{"name":"ls","arguments":""}}]}}]}"#,
                r#"{"choices":[{"delta":{"tool_calls":[{"index":1,"id":"b","function":{"name":"ls","arguments":"{}"}}]}}]}"#,
                r#"{"choices":[{"delta":{},"finish_reason":"length"}]}"#,
            ],
            r#"call 0 "a" "ls" | call 1 "b" "ls" | arguments 1 "{}" | called 0 "a" "ls" {} | called 1 "b" "ls" {} | end Length"#,
        ),
    ]);
}

#[test]
fn refusals_and_filters_have_their_own_ends() {
    check(&[
        (
            "a refusal",
            &[r#"{"choices":[{"delta":{"refusal":"I will not."}}]}"#, STOP],
            r#"refusal "I will not." | end Refusal"#,
        ),
        (
            "refusal is null",
            &[r#"{"choices":[{"delta":{"content":"hi","refusal":null}}]}"#, STOP],
            HI_STOP,
        ),
        (
            "a filter",
            &[HI, r#"{"choices":[{"delta":{},"finish_reason":"content_filter"}]}"#],
            r#"text "hi" | end ContentFilter"#,
        ),
        (
            "the limit",
            &[HI, r#"{"choices":[{"delta":{},"finish_reason":"length"}]}"#],
            r#"text "hi" | end Length"#,
        ),
    ]);
}

#[test]
fn one_body_instead_of_a_stream() {
    let garbled = "the server answered with something else than chat completions";
    let cases = [
        (
            "a whole answer",
            r#"{"id":"c","model":"m","choices":[{"message":{"role":"assistant","content":"hi"},"finish_reason":"stop"}],"usage":{"prompt_tokens":5,"completion_tokens":2}}"#.to_owned(),
            r#"start m | usage 5(0)+2(0) | text "hi" | end Stop"#.to_owned(),
        ),
        ("with a byte order mark", format!("\u{feff}{}", HI.replace("delta", "message")), HI_STOP.to_owned()),
        (
            "a call in it",
            r#"{"choices":[{"message":{"content":null,"tool_calls":[{"id":"a","function":{"name":"ls","arguments":"{}"}}]},"finish_reason":"tool_calls"}]}"#.to_owned(),
            r#"call 0 "a" "ls" | arguments 0 "{}" | called 0 "a" "ls" {} | end ToolUse"#.to_owned(),
        ),
        (
            "an error with status 200",
            r#"{"error":{"message":"Incorrect API key provided","code":"invalid_api_key"}}"#.to_owned(),
            r#"error LLM_AUTH "the server does not accept the key" "Incorrect API key provided""#.to_owned(),
        ),
        (
            "an error in a list of one",
            r#"[{"error":{"code":429,"message":"slow down","status":"RESOURCE_EXHAUSTED"}}]"#.to_owned(),
            r#"error LLM_RATE_LIMITED "too many requests" "slow down""#.to_owned(),
        ),
        ("HTML", "<html>no</html>".to_owned(), format!("error LLM_BAD_RESPONSE {garbled:?} \"<html>no</html>\"")),
        ("nothing", String::new(), format!("error LLM_BAD_RESPONSE {garbled:?} \"\"")),
        ("JSON about something else", "{\"ok\":true}".to_owned(), format!("error LLM_BAD_RESPONSE {garbled:?} {:?}", "{\"ok\":true}")),
        (
            "a documents gateway",
            r#"{"id":"chat_1","documents":[],"usage":{}}"#.to_owned(),
            r#"error LLM_BAD_RESPONSE "this is a documents gateway: start with --gateway and its address" """#.to_owned(),
        ),
        (
            "the native Ollama",
            "{\"model\":\"q\",\"message\":{\"content\":\"h\"},\"done\":false}\n{\"model\":\"q\",\"message\":{\"content\":\"i\"},\"done\":true}".to_owned(),
            r#"error LLM_BAD_RESPONSE "this is the native address of Ollama: its OpenAI-compatible one ends in /v1" """#.to_owned(),
        ),
        (
            "Anthropic",
            r#"{"type":"message","content":[{"type":"text","text":"hi"}]}"#.to_owned(),
            r#"error LLM_BAD_RESPONSE "this address speaks Anthropic messages, not OpenAI chat completions" """#.to_owned(),
        ),
    ];
    for (name, body, want) in cases {
        assert_eq!(show(&Decoder::new(true).whole(&body)), want, "{name}");
    }
}

#[test]
fn an_answer_without_end_meets_a_limit() {
    let chunk = format!(
        "data: {}\n\n",
        json!({ "choices": [{ "delta": { "content": "x".repeat(1 << 20) } }] })
    );
    let mut frames = Frames::new();
    let mut decoder = Decoder::new(true);
    let mut bytes = 0;
    for _ in 0..65 {
        for frame in frames.push(chunk.as_bytes()) {
            let mut pieces = Vec::new();
            decoder.push(&frame.expect("short of the line's limit"), &mut pieces);
            for piece in pieces {
                match piece {
                    Piece::Text(text) => bytes += text.len(),
                    Piece::Error(failure) => assert_eq!(failure.kind, FailureKind::Oversized),
                    other => panic!("{other:?}"),
                }
            }
        }
    }
    assert_eq!(bytes, ANSWER_LIMIT_BYTES);
    assert!(decoder.answer.is_over);
}

#[test]
fn more_calls_than_can_be_meant_are_left_out() {
    let fragments: Vec<Value> = (0..CALLS_LIMIT + 50)
        .map(|it| json!({ "index": it, "id": format!("c{it}"), "function": { "name": "ls", "arguments": "{}" } }))
        .collect();
    let pieces = decode([stream(&[&calls(&fragments.into()), STOP]).as_bytes()]);
    let done = pieces.iter().filter(|it| matches!(it, Piece::CallDone { .. })).count();
    let notices = pieces.iter().filter(|it| matches!(it, Piece::Notice(_))).count();
    assert_eq!((done, notices), (CALLS_LIMIT, 1));
}

/// JSON that looks like a chunk, with anything anywhere.
fn chunks() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        prop::sample::select(vec!["", "a", "stop", "error", "<think>", "</think>", "{}", "{"]).prop_map(Value::from),
    ];
    let names = prop::sample::select(vec![
        "choices",
        "delta",
        "message",
        "content",
        "text",
        "index",
        "id",
        "name",
        "function",
        "arguments",
        "tool_calls",
        "function_call",
        "finish_reason",
        "usage",
        "x_groq",
        "error",
        "reasoning",
        "reasoning_details",
        "refusal",
        "prompt_tokens",
        "type",
        "code",
        "model",
        "thinking",
        "object",
        "detail",
    ]);
    leaf.prop_recursive(5, 32, 4, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::vec((names.clone(), inner), 0..5).prop_map(|it| it
                .into_iter()
                .map(|(name, value)| (name.to_owned(), value))
                .collect::<Map<_, _>>()
                .into()),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn any_json_is_taken(values in prop::collection::vec(chunks(), 0..8), wrapped in any::<bool>()) {
        let wrap = |it: &Value| json!({ "choices": [{ "delta": it }] });
        let data: Vec<String> =
            values.iter().map(|it| if wrapped { wrap(it).to_string() } else { it.to_string() }).collect();
        let data: Vec<&str> = data.iter().map(String::as_str).collect();
        let pieces = decode([stream(&data).as_bytes()]);
        let started = pieces.iter().filter(|it| matches!(it, Piece::CallStart { .. })).count();
        let done = pieces.iter().filter(|it| matches!(it, Piece::CallDone { .. })).count();
        if matches!(pieces.last(), Some(Piece::End(_))) {
            prop_assert_eq!(started, done);
        } else {
            prop_assert_eq!(done, 0);
        }
    }

    #[test]
    fn any_bytes_are_taken(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        decode([bytes.as_slice()]);
        Decoder::new(true).whole(&String::from_utf8_lossy(&bytes));
    }
}
