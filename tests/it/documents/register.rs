//! Sections 6 and 10 for readers, and the bullets of section 14 that are no property.

use pretty_assertions::assert_eq;
use serde_json::{Value, json};
use sheaf::protocol::{
    CommandState, Dialect, Event, FinishReason, Kind, Mode, Severity, Status, View,
    codec::{Breach, DecodeError, Decoder, Failure, Foreign},
};

use super::{Read, answer, assert_strict, body, data, identity, stream};

fn named(events: &[(&str, Value)]) -> String {
    events
        .iter()
        .map(|(name, data)| format!("event: {name}\ndata: {data}\n\n"))
        .collect()
}

fn ending(read: &Read) -> (Status, FinishReason) {
    let ending = read.response.ending.as_ref().expect("it ended");
    (ending.status.clone(), ending.finish_reason.clone())
}

fn texts(read: &Read) -> Vec<(String, String)> {
    read.response
        .documents
        .iter()
        .map(|it| (it.id.to_string(), it.text().to_owned()))
        .collect()
}

fn pair(id: &str, text: &str) -> (String, String) {
    (id.to_owned(), text.to_owned())
}

const START: &str = r#"data: {"type":"document_start","document":{"id":"a","type":"text"}}

data: {"type":"content_delta","documentId":"a","delta":"hi"}

"#;
const END: &str = "data: {\"type\":\"document_end\",\"documentId\":\"a\"}\n\n";
const DONE: &str = "data: {\"type\":\"done\"}\n\n";
const MARK: &str = "data: [DONE]\n\n";

#[test]
fn an_error_is_a_document_in_the_named_dialect() {
    let read = stream(named(&[
        (
            "document_start",
            json!({ "id": "a", "type": "error", "sequence": 1, "metadata": { "errorCode": "TOOL_FAILED" } }),
        ),
        ("content_delta", json!({ "documentId": "a", "delta": "no luck" })),
        ("document_end", json!({ "documentId": "a" })),
        ("document_start", json!({ "id": "b", "type": "text", "sequence": 2 })),
        (
            "document_end",
            json!({ "documentId": "b", "finalContent": "and on it goes" }),
        ),
        ("done", json!({})),
    ]));
    assert_eq!(read.codes(), [""; 0]);
    assert_eq!(texts(&read), [pair("a", "no luck"), pair("b", "and on it goes")]);
    assert_eq!(read.document("a").kind, Kind::Error);
    assert_eq!(ending(&read), (Status::Completed, FinishReason::Stop));
}

#[test]
fn an_error_is_an_event_in_the_data_dialect() {
    let read = stream(format!(
        "{START}data: {{\"type\":\"error\",\"code\":\"LLM_OVERLOADED\",\"message\":\"busy\"}}\n\n{END}{DONE}"
    ));
    assert_eq!(texts(&read), [pair("a", "hi"), pair("doc_002", "busy")]);
    let View::Error(error) = read.document("doc_002").view() else {
        panic!("an error")
    };
    assert_eq!((error.code, error.source), ("LLM_OVERLOADED", "gateway"));
    assert!(read.document("a").is_incomplete());
    assert_eq!(ending(&read), (Status::Error, FinishReason::Error));
}

#[test]
fn an_error_may_be_a_document_in_the_data_dialect_too() {
    let read = data([
        json!({ "type": "document_start", "document": { "id": "a", "type": "error", "content": "no", "errorCode": "X" } }),
        json!({ "type": "document_end", "documentId": "a" }),
    ]);
    assert_eq!(read.document("a").kind, Kind::Error);
    assert_eq!(ending(&read), (Status::Completed, FinishReason::Stop));
}

#[test]
fn an_error_event_is_read_in_every_form() {
    for (frame, message) in [
        ("event: error\ndata: {\"message\":\"m\"}", "m"),
        (
            "event: error\ndata: {\"error\":{\"message\":\"m\",\"type\":\"t\"}}",
            "m",
        ),
        ("data: {\"type\":\"error\",\"data\":{\"message\":\"m\"}}", "m"),
        ("data: {\"error\":\"m\"}", "m"),
        ("data: {\"error\":{\"message\":\"m\"}}", "m"),
        ("data: {\"type\":\"error\"}", "the gateway reported an error"),
    ] {
        let read = stream(format!("{frame}\n\n"));
        assert_eq!(texts(&read), [pair("doc_001", message)], "{frame}");
        assert_eq!(ending(&read), (Status::Error, FinishReason::Error), "{frame}");
    }
}

#[test]
fn a_stream_ends_by_a_mark_by_done_by_both_or_by_neither() {
    for (name, tail, codes, end) in [
        (
            "mark only",
            MARK.to_owned(),
            vec![],
            (Status::Completed, FinishReason::Stop),
        ),
        (
            "done only",
            DONE.to_owned(),
            vec![],
            (Status::Completed, FinishReason::Stop),
        ),
        (
            "both",
            format!("{DONE}{MARK}"),
            vec![],
            (Status::Completed, FinishReason::Stop),
        ),
        (
            "neither",
            String::new(),
            vec!["interrupted"],
            (Status::Error, FinishReason::Interrupted),
        ),
    ] {
        let read = stream(format!("{START}{END}{tail}"));
        assert_eq!(read.codes(), codes, "{name}");
        assert_eq!(texts(&read), [pair("a", "hi")], "{name}");
        assert_eq!(ending(&read), end, "{name}");
        assert!(!read.document("a").is_incomplete(), "{name}");
    }
}

#[test]
fn what_is_open_at_the_end_is_closed() {
    for (tail, code) in [
        (DONE, "unclosed-document"),
        (MARK, "unclosed-document"),
        ("", "interrupted"),
    ] {
        let read = stream(format!("{START}{tail}"));
        assert_eq!(read.codes(), [code]);
        assert_eq!(read.document("a").is_incomplete(), tail.is_empty());
        assert_eq!(texts(&read), [pair("a", "hi")]);
    }
}

#[test]
fn nothing_after_the_end_is_read() {
    let wanted = stream(format!("{START}{END}{DONE}")).events;
    for tail in [START, DONE, MARK, "data: nonsense\n\n", "data: {\"choices\":[]}\n\n"] {
        assert_eq!(stream(format!("{START}{END}{DONE}{tail}")).events, wanted, "{tail}");
    }
}

#[test]
fn a_stream_without_a_byte_is_an_interrupted_answer() {
    let read = stream("");
    assert_eq!(read.codes(), ["interrupted"]);
    assert_eq!(ending(&read), (Status::Error, FinishReason::Interrupted));
}

#[test]
fn unknown_events_are_kept_and_harm_nobody() {
    let read = stream(format!(
        "event: mood\ndata: {{\"x\":{{\"y\":null}}}}\n\ndata: {{\"type\":\"other\",\"n\":1}}\n\n{START}{END}event: ping\ndata: {{}}\n\n{DONE}"
    ));
    assert_eq!(read.codes(), [""; 0]);
    let unknown: Vec<_> = read
        .events
        .iter()
        .filter(|it| matches!(it, Event::Unknown { .. }))
        .collect();
    assert_eq!(
        unknown,
        [
            &Event::Unknown {
                name: "mood".to_owned(),
                data: json!({ "x": { "y": null } })
            },
            &Event::Unknown {
                name: "other".to_owned(),
                data: json!({ "n": 1 })
            },
        ]
    );
}

#[test]
fn unknown_kinds_and_words_are_shown() {
    let read = data([
        json!({ "type": "document_start", "document": { "id": "a", "type": "chart", "points": [1] } }),
        json!({ "type": "content_delta", "documentId": "a", "delta": "c" }),
        json!({ "type": "document_end", "documentId": "a" }),
        json!({ "type": "document_start", "document": { "id": "b", "type": "terminal_command", "command": "x", "state": "dozing" } }),
        json!({ "type": "document_end", "documentId": "b" }),
    ]);
    assert_eq!(read.codes(), [""; 0]);
    let View::Unknown(chart) = read.document("a").view() else {
        panic!("a chart")
    };
    assert_eq!(
        (chart.kind, chart.content, json!(chart.metadata)),
        ("chart", Some("c"), json!({ "points": [1] }))
    );
    let View::TerminalCommand(command) = read.document("b").view() else {
        panic!("a command")
    };
    assert_eq!(command.state, CommandState::Other("dozing".to_owned()));
}

#[test]
fn a_second_start_makes_a_second_document_and_gets_what_follows() {
    let delta = |text: &str| json!({ "type": "content_delta", "documentId": "a", "delta": text });
    let start = json!({ "type": "document_start", "document": { "id": "a", "type": "text" } });
    let end = json!({ "type": "document_end", "documentId": "a" });
    let read = data([
        start.clone(),
        delta("1"),
        start.clone(),
        delta("2"),
        end.clone(),
        delta("1"),
        end.clone(),
    ]);
    assert_eq!(read.codes(), ["duplicate-id"]);
    assert_eq!(texts(&read), [pair("a", "11"), pair("a#2", "2")]);
    let read = data([
        start.clone(),
        delta("1"),
        end.clone(),
        start,
        delta("2"),
        end.clone(),
        delta("late"),
        end,
    ]);
    assert_eq!(read.codes(), ["duplicate-id", "late-event", "late-event"]);
    assert_eq!(texts(&read), [pair("a", "1"), pair("a#2", "2")]);
}

#[test]
fn events_for_a_document_that_nobody_started_start_it() {
    let read = data([
        json!({ "type": "content_delta", "documentId": "a", "delta": "text" }),
        json!({ "type": "document_end", "documentId": "a" }),
        json!({ "type": "tool_result", "documentId": "b", "result": "found" }),
        json!({ "type": "document_end", "documentId": "b" }),
        json!({ "type": "document_end", "documentId": "c", "finalContent": "whole" }),
        json!({ "type": "document_end", "documentId": "d" }),
        json!({ "type": "document_update", "documentId": "e", "metadata": { "x": 1 } }),
    ]);
    assert_eq!(read.codes(), ["unknown-document"; 5]);
    assert_eq!(texts(&read), [pair("a", "text"), pair("b", ""), pair("c", "whole")]);
    assert_eq!(read.document("b").kind, Kind::ToolCall);
    assert_eq!(read.metadata("b")["result"]["data"], "found");
}

#[test]
fn late_deltas_are_dropped() {
    let late = [
        json!({ "type": "content_delta", "documentId": "a", "delta": "late" }),
        json!({ "type": "metadata_delta", "documentId": "a", "metadata": { "x": 1 } }),
        json!({ "type": "tool_result", "documentId": "a", "result": 1 }),
        json!({ "type": "tool_call_start", "documentId": "a", "toolName": "t" }),
        json!({ "type": "document_end", "documentId": "a", "finalContent": "late" }),
    ];
    let tail: String = late.iter().map(|it| format!("data: {it}\n\n")).collect();
    let read = stream(format!("{START}{END}{tail}{DONE}"));
    assert_eq!(read.codes(), ["late-event"; 5]);
    assert_eq!(read.documents(), stream(format!("{START}{END}{DONE}")).documents());
}

#[test]
fn a_change_after_the_end_is_no_late_delta() {
    let update =
        json!({ "type": "document_update", "documentId": "a", "metadata": { "format": "plain", "x": { "y": 1 } } });
    let read = stream(format!("{START}{END}data: {update}\n\n{DONE}"));
    assert_eq!(read.codes(), [""; 0]);
    assert_eq!(read.metadata("a"), json!({ "format": "plain", "x": { "y": 1 } }));
    let early = stream(format!("{START}data: {update}\n\n{END}{DONE}"));
    assert_eq!(early.codes(), [""; 0]);
    assert_eq!(early.documents(), read.documents());
}

#[test]
fn final_content_wins() {
    let end = |text: Value| {
        format!(
            "data: {}\n\n",
            json!({ "type": "document_end", "documentId": "a", "finalContent": text })
        )
    };
    for (sent, wanted, codes) in [
        (json!("hi"), "hi", vec![]),
        (json!(null), "hi", vec![]),
        (json!("ho"), "ho", vec!["final-content"]),
        (json!(""), "", vec!["final-content"]),
        (json!(["h", "i"]), "hi", vec!["wrong-type"]),
    ] {
        let read = stream(format!("{START}{}{DONE}", end(sent.clone())));
        assert_eq!(read.codes(), codes, "{sent}");
        assert_eq!(texts(&read), [pair("a", wanted)], "{sent}");
    }
}

#[test]
fn an_event_without_a_document_goes_to_the_newest() {
    let read = stream(format!(
        "{START}data: {{\"type\":\"content_delta\",\"delta\":\"!\"}}\n\n{END}{DONE}"
    ));
    assert_eq!(read.codes(), ["missing-id"]);
    assert_eq!(texts(&read), [pair("a", "hi!")]);
    let read = stream(format!(
        "data: {{\"type\":\"content_delta\",\"delta\":\"alone\"}}\n\n{DONE}"
    ));
    assert_eq!(texts(&read), [pair("doc_001", "alone")]);
}

#[test]
fn ids_may_be_numbers() {
    let read = data([
        json!({ "type": "document_start", "document": { "id": 7, "type": "text" } }),
        json!({ "type": "content_delta", "documentId": 7, "delta": 42 }),
        json!({ "type": "content_delta", "documentId": "7", "delta": { "text": "!" } }),
        json!({ "type": "document_end", "documentId": 7 }),
    ]);
    assert_eq!(read.codes(), ["wrong-type"; 2]);
    assert_eq!(texts(&read), [pair("7", "42!")]);
}

#[test]
fn the_outer_name_counts_when_two_differ() {
    let read = stream(
        "event: document_start\ndata: {\"id\":\"a\",\"type\":\"text\"}\n\n\
         event: content_delta\ndata: {\"type\":\"document_end\",\"documentId\":\"a\",\"delta\":\"hi\"}\n\n\
         event: chunk\ndata: {\"type\":\"content_delta\",\"documentId\":\"a\",\"delta\":\"!\"}\n\n\
         event: message\ndata: {\"type\":\"document_end\",\"documentId\":\"a\"}\n\n\
         event: done\ndata:\n\n",
    );
    assert_eq!(read.codes(), ["two-names"; 2]);
    assert_eq!(texts(&read), [pair("a", "hi!")]);
}

#[test]
fn data_that_is_no_object_is_skipped() {
    for odd in ["5", "\"text\"", "[]", "null", "true", "nonsense", "{", "<html>"] {
        let read = stream(format!("{START}data: {odd}\n\n{END}{DONE}"));
        assert_eq!(read.codes().len(), 1, "{odd}");
        assert_eq!(texts(&read), [pair("a", "hi")], "{odd}");
    }
    let nameless = stream(format!("{START}data: {{\"x\":1}}\n\n{END}{DONE}"));
    assert_eq!(nameless.codes(), ["nameless-event"]);
}

#[test]
fn half_a_character_costs_one_character_and_no_delta() {
    let read = stream(format!(
        "{START}data: {{\"type\":\"content_delta\",\"documentId\":\"a\",\"delta\":\" x\\ud83d\"}}\n\n{END}{DONE}"
    ));
    assert_eq!(read.codes(), ["mended-json"]);
    assert_eq!(texts(&read), [pair("a", "hi x\u{fffd}")]);
}

#[test]
fn arguments_come_whole_or_in_pieces() {
    let arguments = |pieces: Vec<Value>| {
        let events = pieces
            .into_iter()
            .map(|it| json!({ "type": "tool_call_arguments", "documentId": "a", "arguments": it }));
        let start =
            json!({ "type": "document_start", "document": { "id": "a", "type": "tool_call", "toolName": "t" } });
        let end = json!({ "type": "document_end", "documentId": "a" });
        data(std::iter::once(start).chain(events).chain([end])).metadata("a")["arguments"].clone()
    };
    assert_eq!(arguments(vec![json!({ "a": 1 })]), json!({ "a": 1 }));
    assert_eq!(
        arguments(vec![json!({ "a": 1 }), json!({ "b": null })]),
        json!({ "b": null })
    );
    assert_eq!(arguments(vec![json!("{\"a\""), json!(":1}")]), json!({ "a": 1 }));
    assert_eq!(
        arguments(vec![json!("{\"a\":1}"), json!("{\"b\":2}")]),
        json!({ "b": 2 })
    );
    assert_eq!(
        arguments(vec![json!({}), json!("{\"a\":"), json!("1}")]),
        json!({ "a": 1 })
    );
    assert_eq!(arguments(vec![json!("{\"a\":")]), json!({ "_raw": "{\"a\":" }));
    assert_eq!(arguments(vec![]), json!({}));
}

#[test]
fn a_calls_name_and_id_come_from_its_start_or_its_event() {
    let read = data([
        json!({ "type": "document_start", "document": { "id": "a", "type": "tool_call" } }),
        json!({ "type": "tool_call_start", "documentId": "a", "toolName": "grep", "toolCallId": "c1", "arguments": { "p": 1 } }),
        json!({ "type": "tool_result", "documentId": "a", "result": "1" }),
        json!({ "type": "tool_result", "documentId": "a", "result": { "error": "2" }, "durationMs": "9", "truncated": true }),
        json!({ "type": "document_end", "documentId": "a" }),
    ]);
    assert_eq!(read.codes(), [""; 0]);
    assert_eq!(
        read.metadata("a"),
        json!({
            "toolName": "grep", "toolCallId": "c1", "arguments": { "p": 1 },
            "result": { "status": "error", "data": "2" }, "duration_ms": 9, "truncated": true,
        })
    );
}

#[test]
fn edits_and_commands_take_results_as_metadata() {
    let read = data([
        json!({ "type": "document_start", "document": { "id": "a", "type": "terminal_command", "command": "ls" } }),
        json!({ "type": "tool_result", "documentId": "a", "result": { "exit_code": 0, "output": "x\n" }, "duration_ms": 3 }),
        json!({ "type": "document_end", "documentId": "a" }),
        json!({ "type": "document_start", "document": { "id": "b", "type": "terminal_command", "command": "ls" } }),
        json!({ "type": "tool_result", "documentId": "b", "result": "y\n" }),
        json!({ "type": "document_end", "documentId": "b" }),
        json!({ "type": "document_start", "document": { "id": "c", "type": "file_edit", "path": "a.rs" } }),
        json!({ "type": "tool_result", "documentId": "c", "result": { "applied": "failed", "old_string": "o" } }),
        json!({ "type": "document_end", "documentId": "c" }),
    ]);
    let (a, b, c) = (read.metadata("a"), read.metadata("b"), read.metadata("c"));
    assert_eq!(
        (&a["exitCode"], &a["output"], &a["duration_ms"]),
        (&json!(0), &json!("x\n"), &json!(3))
    );
    assert_eq!(b["output"], "y\n");
    assert_eq!(
        (&c["applied"], &c["diff"]),
        (&json!("failed"), &json!({ "oldString": "o", "newString": "" }))
    );
}

#[test]
fn metadata_grows_by_patches_and_by_appending() {
    let patch = |it: Value| json!({ "type": "metadata_delta", "documentId": "a", "metadata": it });
    let read = data([
        json!({ "type": "document_start", "document": { "id": "a", "type": "terminal_command", "command": "x", "x": { "a": 1, "b": 2 }, "gone": 1 } }),
        patch(json!({ "x": { "a": null, "c": { "d": null } }, "gone": null, "cwd": "/" })),
        json!({ "type": "metadata_delta", "documentId": "a", "append": { "output": "1", "log": 2 } }),
        json!({ "type": "metadata_delta", "documentId": "a", "append": { "output": "3" }, "metadata": { "output": "0" } }),
        json!({ "type": "metadata_delta", "documentId": "a", "append": "no", "metadata": [] }),
        json!({ "type": "document_end", "documentId": "a", "exitCode": 1, "metadata": { "exitCode": 2 } }),
    ]);
    assert_eq!(read.codes(), ["wrong-type"; 3]);
    assert_eq!(
        read.metadata("a"),
        json!({
            "command": "x", "x": { "b": 2, "c": {} }, "workingDirectory": "/", "output": "03", "log": "2",
            "exitCode": 2, "permissions": [],
        })
    );
}

#[test]
fn top_level_members_may_come_at_the_start_at_the_end_or_late() {
    let members = json!({
        "id": "chat_9", "conversationId": "conv_9", "model": "paper-1", "mode": "plan", "created": "2026-05-04T10:20:30Z",
    });
    let with = |name: &str, wrapped: bool| {
        let mut event = if wrapped {
            json!({ "response": members })
        } else {
            members.clone()
        };
        event["type"] = name.into();
        format!("data: {event}\n\n")
    };
    for (name, text) in [
        (
            "at the start",
            format!("{}{START}{END}{DONE}", with("response_start", false)),
        ),
        (
            "at the start, wrapped",
            format!("{}{START}{END}{DONE}", with("response_start", true)),
        ),
        ("late", format!("{START}{}{END}{DONE}", with("response_start", false))),
        ("at the end", format!("{START}{END}{}", with("done", false))),
        ("at the end, wrapped", format!("{START}{END}{}", with("done", true))),
    ] {
        let read = stream(text);
        let whole = answer(&read.response, &identity());
        for (member, value) in members.as_object().expect("an object") {
            assert_eq!(&whole[member], value, "{name}: {member}");
        }
        assert_eq!(texts(&read), [pair("a", "hi")], "{name}");
        assert_eq!(whole["status"], "completed", "{name}");
    }
}

#[test]
fn members_of_a_response_that_we_do_not_know_survive() {
    let start = json!({ "type": "response_start", "id": "c", "region": { "x": null }, "metadata": { "trace": 1 } });
    let done =
        json!({ "type": "done", "seal": 7, "usage": { "promptTokens": 1, "cached": 2 }, "metadata": { "cost": 3 } });
    let read = stream(format!("data: {start}\n\ndata: {done}\n\n"));
    let whole = answer(&read.response, &identity());
    assert_eq!((&whole["region"], &whole["seal"]), (&json!({ "x": null }), &json!(7)));
    assert_eq!(whole["usage"]["cached"], 2);
    assert_eq!(
        (&whole["metadata"]["trace"], &whole["metadata"]["cost"]),
        (&json!(1), &json!(3))
    );
    assert_eq!(answer(&body(&whole).response, &identity()), whole);
}

#[test]
fn thinking_is_no_document() {
    let read = data([
        json!({ "type": "thinking_delta", "delta": "hm" }),
        json!({ "type": "thinking_delta", "delta": "m" }),
        json!({ "type": "document_start", "document": { "id": "a", "type": "text", "content": "yes" } }),
        json!({ "type": "document_end", "documentId": "a" }),
        json!({ "type": "thinking_delta", "delta": "oh" }),
    ]);
    let thoughts: Vec<_> = read
        .response
        .thinking
        .iter()
        .map(|it| (it.before, it.text.as_str()))
        .collect();
    assert_eq!(thoughts, [(0, "hmm"), (1, "oh")]);
    assert_eq!(read.response.documents.len(), 1);
}

#[test]
fn a_whole_answer_as_one_event_is_read() {
    let whole = json!({ "id": "chat_1", "documents": [{ "id": "a", "type": "text", "content": "hi" }] });
    let read = stream(format!("data: {whole}\n\n{MARK}"));
    assert_eq!(read.codes(), ["answer-in-stream"]);
    assert_eq!(texts(&read), [pair("a", "hi")]);
}

#[test]
fn documents_that_only_the_end_lists_are_not_lost() {
    let list =
        json!([{ "id": "a", "type": "text", "content": "other" }, { "id": "b", "type": "text", "content": "new" }]);
    let read = stream(format!(
        "{START}{END}data: {}\n\n",
        json!({ "type": "done", "documents": list })
    ));
    assert_eq!(texts(&read), [pair("a", "hi"), pair("b", "new")]);
}

#[test]
fn other_protocols_are_told_from_ours() {
    for (what, first, text) in [
        (
            Foreign::OpenAi,
            json!({ "object": "chat.completion.chunk", "choices": [] }),
            "an OpenAI-compatible",
        ),
        (
            Foreign::OpenAi,
            json!({ "choices": [{ "delta": {} }] }),
            "an OpenAI-compatible",
        ),
        (
            Foreign::OpenAi,
            json!({ "type": "response.created", "response": {} }),
            "an OpenAI-compatible",
        ),
        (
            Foreign::Anthropic,
            json!({ "type": "message_start", "message": { "id": "m" } }),
            "an Anthropic",
        ),
        (
            Foreign::Anthropic,
            json!({ "type": "message", "role": "assistant", "content": [] }),
            "an Anthropic",
        ),
        (
            Foreign::Ollama,
            json!({ "model": "m", "created_at": "t", "message": {}, "done": false }),
            "an Ollama",
        ),
        (Foreign::Gemini, json!({ "candidates": [] }), "a Gemini"),
    ] {
        let wanted = format!("this is {text} server; configure it as a provider");
        for event in [None, Some("message_start")] {
            let mut decoder = Decoder::new(identity());
            let error = decoder.frame(event, &first.to_string()).expect_err("foreign");
            assert!(
                matches!(error, DecodeError::Foreign { what: it } if it == what),
                "{first}"
            );
            assert_eq!(error.to_string(), wanted);
            assert_strict(&decoder.fail(&Breach {
                code: "STREAM_PROTOCOL",
                source: "client",
                message: &wanted,
                details: "",
            }));
        }
        let error = Decoder::body(identity(), &first.to_string()).expect_err("foreign");
        assert_eq!(error.to_string(), wanted);
    }
    let lines = "{\"model\":\"m\",\"created_at\":\"t\",\"message\":{},\"done\":false}\n{\"done\":true}";
    assert!(matches!(
        Decoder::body(identity(), lines),
        Err(DecodeError::Foreign { what: Foreign::Ollama })
    ));
}

#[test]
fn our_own_events_are_never_foreign() {
    let read = stream(format!("{START}data: {{\"type\":\"x\",\"choices\":[]}}\n\n{END}{DONE}"));
    assert_eq!(texts(&read), [pair("a", "hi")]);
    assert_eq!(body(&json!({ "documents": [], "choices": [] })).documents(), json!([]));
}

#[test]
fn a_body_that_is_no_object_says_how_it_begins() {
    for (text, what) in [
        ("<html><body>Bad Gateway</body></html>", "a web page"),
        ("", "no JSON object"),
        ("[1]", "no JSON object"),
        ("\"hi\"", "no JSON object"),
    ] {
        let error = Decoder::body(identity(), text).expect_err("no answer");
        assert_eq!(error.to_string(), format!("the answer is {what}: {text}"));
    }
}

#[test]
fn a_body_with_an_error_is_an_answer_that_failed() {
    let read = body(&json!({ "error": { "code": "RATE_LIMITED", "message": "slow down" } }));
    assert_eq!(texts(&read), [pair("doc_001", "slow down")]);
    assert_eq!(ending(&read), (Status::Error, FinishReason::Error));
}

#[test]
fn error_bodies_are_read_in_every_form() {
    let failure = |code: &str, message: &str, source: &str, details: &str| Failure {
        code: code.to_owned(),
        message: message.to_owned(),
        source: source.to_owned(),
        details: details.to_owned(),
    };
    let long = "word ".repeat(200);
    let cases = [
        (
            429,
            r#"{"error":{"code":"RATE_LIMITED","message":"Too many","source":"gateway","details":"12 s"}}"#,
            failure("RATE_LIMITED", "Too many", "gateway", "12 s"),
        ),
        (500, r#"{"error":"text"}"#, failure("INTERNAL", "text", "gateway", "")),
        (
            401,
            r#"{"message":"who are you"}"#,
            failure("UNAUTHORIZED", "who are you", "gateway", ""),
        ),
        (
            422,
            r#"{"detail":"bad mode"}"#,
            failure("INTERNAL", "bad mode", "gateway", ""),
        ),
        (
            422,
            r#"{"detail":[{"loc":["x"]}]}"#,
            failure(
                "INTERNAL",
                "[\n  {\n    \"loc\": [\n      \"x\"\n    ]\n  }\n]",
                "gateway",
                "",
            ),
        ),
        (
            400,
            r#"{"error":{"message":"m","type":"invalid_request_error","code":null,"param":"tools"}}"#,
            failure("invalid_request_error", "m", "gateway", "tools"),
        ),
        (
            500,
            r#"{"status":"error","documents":[{"id":"a","type":"error","content":"c","metadata":{"errorCode":"LLM_AUTH","source":"llm","details":"d"}}]}"#,
            failure("LLM_AUTH", "c", "llm", "d"),
        ),
        (
            502,
            "<html><head><title>502</title></head><body>Bad   gateway</body></html>",
            failure("LLM_UNAVAILABLE", "502 Bad gateway", "gateway", ""),
        ),
        (503, "", failure("LLM_UNAVAILABLE", "HTTP status 503", "gateway", "")),
        (403, "no", failure("PERMISSION_DENIED", "no", "gateway", "")),
        (418, long.as_str(), failure("INTERNAL", &long[..300], "gateway", "")),
    ];
    for (status, text, wanted) in cases {
        assert_eq!(Failure::read(status, text), wanted, "{text}");
    }
    let ours = failure("RATE_LIMITED", "Too many", "gateway", "12 s");
    assert_eq!(Failure::read(429, &ours.to_json().to_string()), ours);
}

#[test]
fn a_broken_connection_keeps_what_came_and_says_why() {
    let mut decoder = Decoder::new(identity());
    let mut events = decoder
        .frame(None, &START[6..START.find("\n\n").expect("a frame")])
        .expect("ours");
    events.extend(decoder.fail(&Breach {
        code: "STREAM_INTERRUPTED",
        source: "stream",
        message: "connection reset",
        details: "os error 104",
    }));
    assert_eq!(decoder.finish(), []);
    assert_strict(&events);
    let read = Read::of(events);
    assert!(read.document("a").is_incomplete());
    assert_eq!(read.document("doc_002").text(), "connection reset");
    assert_eq!(
        read.metadata("doc_002"),
        json!({ "errorCode": "STREAM_INTERRUPTED", "source": "stream", "details": "os error 104" })
    );
    assert_eq!(ending(&read), (Status::Error, FinishReason::Interrupted));
}

#[test]
fn a_stopped_answer_is_completed_and_says_cancelled() {
    let mut decoder = Decoder::new(identity());
    let mut events = Vec::new();
    for kind in ["tool_call", "terminal_command", "text"] {
        let start = json!({ "type": "document_start", "document": { "id": kind, "type": kind } });
        events.extend(decoder.frame(None, &start.to_string()).expect("ours"));
    }
    events.extend(decoder.cancel());
    assert_strict(&events);
    let read = Read::of(events);
    assert_eq!(ending(&read), (Status::Completed, FinishReason::Cancelled));
    assert_eq!(
        read.metadata("tool_call")["result"],
        json!({ "status": "error", "data": "cancelled" })
    );
    assert_eq!(read.metadata("terminal_command")["state"], "cancelled");
}

#[test]
fn an_unknown_mode_is_noticed() {
    let read = stream(format!(
        "data: {{\"type\":\"response_start\",\"mode\":\"dream\"}}\n\n{START}{END}{DONE}"
    ));
    assert_eq!(read.codes(), ["unknown-mode"]);
    assert_eq!(read.response.mode, Some(Mode::Ask));
    assert_eq!(read.response.notices[0].severity, Severity::Warning);
}

#[test]
fn a_document_without_a_type_is_told_by_its_members() {
    for (members, kind) in [
        (json!({ "toolName": "t" }), Kind::ToolCall),
        (json!({ "command": "ls" }), Kind::TerminalCommand),
        (json!({ "diff": null }), Kind::FileEdit),
        (json!({ "questions": [] }), Kind::Clarification),
        (json!({ "title": "T", "todos": [] }), Kind::Plan),
        (json!({ "todos": [] }), Kind::TodoUpdate),
        (json!({ "errorCode": "X" }), Kind::Error),
        (json!({ "content": "hi" }), Kind::Text),
    ] {
        let mut event = members.clone();
        event["type"] = "document_start".into();
        event["id"] = "a".into();
        let read = data([event, json!({ "type": "document_end", "documentId": "a" })]);
        assert_eq!(read.document("a").kind, kind, "{members}");
        assert_eq!(read.codes(), ["wrong-type"], "{members}");
    }
}

#[test]
fn a_response_says_once_who_it_is() {
    let start = |id: &str| format!("data: {{\"type\":\"response_start\",\"id\":\"{id}\"}}\n\n");
    let read = stream(format!("{}{}{DONE}", start("one"), start("two")));
    assert_eq!(read.codes(), ["late-response-start"]);
    assert_eq!(read.response.origin.id, Some("two".into()));
}

#[test]
fn names_of_a_response_that_are_no_text_are_dropped_and_not_passed_on() {
    let read = stream(named(&[
        (
            "response_start",
            json!({ "id": "chat_1", "conversationId": ["conv_1"], "model": "m", "mode": 7 }),
        ),
        (
            "done",
            json!({ "id": [1], "model": { "name": "m" }, "mode": null, "kept": [2] }),
        ),
    ]));
    assert_eq!(read.codes(), ["unknown-mode", "wrong-type", "wrong-type", "wrong-type"]);
    let mut encoder = super::Encoder::new(Dialect::Named, identity());
    let said: String = read.events.iter().map(|it| encoder.push(it)).collect();
    let done = said.trim_end().lines().last().expect("a line");
    assert!(
        done.contains("\"kept\":[2]") && !done.contains("\"id\"") && !done.contains("\"model\""),
        "{done}"
    );
    assert!(!said.contains("conv_1"), "{said}");
}
