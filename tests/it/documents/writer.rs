//! What only a writer does: framing, numbering, privacy, and events that stay readable however large the document.

use pretty_assertions::assert_eq;
use serde_json::{Map, Value, json};
use sheaf::protocol::{Dialect, DocumentStart, Done, Event, Kind, Message, ResponseStart, codec::Limits};

use super::{Encoder, Read, assert_strict, feed, identity};

fn start(id: &str, kind: Kind, sequence: Option<u64>, metadata: Value) -> Event {
    let Value::Object(metadata) = metadata else {
        panic!("metadata is an object")
    };
    Event::DocumentStart(DocumentStart {
        id: id.into(),
        kind,
        sequence,
        content: None,
        metadata,
    })
}

fn end(id: &str, content: Option<&str>) -> Event {
    Event::DocumentEnd {
        document: id.into(),
        final_content: content.map(Into::into),
        metadata: Map::new(),
    }
}

fn done() -> Event {
    Event::Done(Done::default())
}

fn written(mut encoder: Encoder, events: &[Event]) -> String {
    events.iter().map(|it| encoder.push(it)).collect()
}

fn read(text: &str) -> Read {
    let events = feed([text.as_bytes()], Limits::default());
    assert_strict(&events);
    Read::of(events)
}

#[test]
fn the_named_dialect_is_written_as_its_text_has_it() {
    let events = [
        start("doc_001", Kind::Text, None, json!({ "format": "markdown" })),
        Event::ContentDelta {
            document: "doc_001".into(),
            delta: "hi\n".to_owned(),
        },
        end("doc_001", Some("hi\n")),
        done(),
    ];
    assert_eq!(
        written(Encoder::new(Dialect::Named, identity()), &events),
        r#"event: response_start
data: {"id":"chat_local_1","model":"asked","mode":"ask","created":"2001-09-09T01:46:40Z","status":"streaming"}

event: document_start
data: {"id":"doc_001","type":"text","sequence":1,"metadata":{"format":"markdown"}}

event: content_delta
data: {"documentId":"doc_001","delta":"hi\n"}

event: document_end
data: {"documentId":"doc_001","finalContent":"hi\n","metadata":{"format":"markdown"}}

event: done
data: {"usage":{"promptTokens":0,"completionTokens":0,"totalTokens":0},"status":"completed","metadata":{"toolCallCount":0,"turnCount":1,"finishReason":"stop"}}

"#
    );
}

/// A reader that was built from the example of the specification alone: it knows no `metadata`, and a result is a text.
fn by_the_example(text: &str) -> Vec<(String, String)> {
    let mut seen = Vec::new();
    for line in text.lines().filter_map(|it| it.strip_prefix("data: {")) {
        let data: Value = serde_json::from_str(&format!("{{{line}")).expect("JSON");
        let word = |value: &Value| value.as_str().unwrap_or("undefined").to_owned();
        match data["type"].as_str() {
            Some("document_start") => {
                let document = &data["document"];
                let shown = match document["type"].as_str() {
                    Some("tool_call") => word(&document["toolName"]),
                    Some("code_reference") => format!("{} {}", word(&document["path"]), document["startLine"]),
                    Some("code_block") => word(&document["language"]),
                    Some("file_edit") => format!("{} {}", word(&document["operation"]), word(&document["filePath"])),
                    Some("terminal_command") => word(&document["command"]),
                    _ => String::new(),
                };
                seen.push((word(&document["id"]), shown));
            }
            Some("tool_call_arguments") => seen.push((word(&data["documentId"]), data["arguments"].to_string())),
            Some("tool_result") => seen.push((word(&data["documentId"]), word(&data["result"]))),
            _ => {}
        }
    }
    seen
}

#[test]
fn a_reader_built_from_the_example_reads_dialect_b() {
    let result = |id: &str, result: Value| Event::ToolResult {
        document: id.into(),
        result,
        duration_ms: Some(3),
    };
    let call = |id: &str| {
        start(
            id,
            Kind::ToolCall,
            None,
            json!({ "toolName": "grep", "toolCallId": "call_1" }),
        )
    };
    let cited = json!({ "filePath": "src/a.rs", "startLine": 2, "endLine": 3, "language": "rust" });
    let events = [
        call("a"),
        Event::ToolCallArguments {
            document: "a".into(),
            arguments: json!({ "pattern": "x" }),
        },
        result("a", json!({ "status": "success", "data": "src/a.rs:1:x" })),
        end("a", None),
        call("b"),
        result("b", json!({ "status": "error", "data": "no such folder" })),
        end("b", None),
        call("c"),
        result("c", json!({ "status": "success", "data": { "hits": [1, 2] } })),
        end("c", None),
        call("d"),
        result("d", json!({ "status": "success", "data": null })),
        end("d", None),
        start("e", Kind::CodeReference, None, cited),
        end("e", Some("fn a() {}")),
        start(
            "f",
            Kind::CodeBlock,
            None,
            json!({ "language": "rust", "purpose": "new_code" }),
        ),
        end("f", Some("x")),
        start(
            "g",
            Kind::FileEdit,
            None,
            json!({ "filePath": "src/b.rs", "operation": "create" }),
        ),
        end("g", Some("y")),
        start(
            "h",
            Kind::TerminalCommand,
            None,
            json!({ "command": "ls", "permissions": [], "state": "running" }),
        ),
        end("h", None),
        done(),
    ];
    let text = written(Encoder::new(Dialect::Data, identity()), &events);
    let shown = by_the_example(&text);
    let shown: Vec<_> = shown.iter().map(|(id, shown)| (id.as_str(), shown.as_str())).collect();
    assert_eq!(
        shown,
        [
            ("a", "grep"),
            ("a", "{\"pattern\":\"x\"}"),
            ("a", "src/a.rs:1:x"),
            ("b", "grep"),
            ("b", "no such folder"),
            ("c", "grep"),
            ("c", "{\"hits\":[1,2]}"),
            ("d", "grep"),
            ("d", ""),
            ("e", "src/a.rs 2"),
            ("f", "rust"),
            ("g", "create src/b.rs"),
            ("h", "ls"),
        ]
    );
    // Both forms are one to the decoder, before the end as well: a large result is on its own event only.
    let named = read(&written(Encoder::new(Dialect::Named, identity()), &events));
    let data = read(&text);
    assert_eq!(data.codes(), [""; 0]);
    let plain = |read: &Read| read.events.iter().map(|it| format!("{it:?}")).collect::<Vec<_>>();
    assert_eq!(plain(&data), plain(&named));
}

#[test]
fn a_text_in_the_data_dialect_differs_in_framing_only() {
    let events = [
        start("doc_001", Kind::Text, None, json!({})),
        end("doc_001", Some("hi")),
        done(),
    ];
    assert_eq!(
        written(Encoder::new(Dialect::Data, identity()), &events),
        r#"data: {"type":"response_start","response":{"id":"chat_local_1","model":"asked","mode":"ask","created":"2001-09-09T01:46:40Z","status":"streaming"}}

data: {"type":"document_start","document":{"id":"doc_001","type":"text","sequence":1,"metadata":{}}}

data: {"type":"content_delta","documentId":"doc_001","delta":"hi"}

data: {"type":"document_end","documentId":"doc_001","metadata":{"format":"markdown"}}

data: {"type":"done","usage":{"promptTokens":0,"completionTokens":0,"totalTokens":0},"status":"completed","metadata":{"toolCallCount":0,"turnCount":1,"finishReason":"stop"}}

data: [DONE]

"#
    );
}

#[test]
fn sequences_are_contiguous_and_sound_ids_are_kept() {
    let events = [
        start("first", Kind::Text, Some(4), json!({})),
        start("bad\nid", Kind::Text, Some(9), json!({})),
        end("first", Some("1")),
        Event::ContentDelta {
            document: "bad\nid".into(),
            delta: "2".to_owned(),
        },
        end("bad\nid", None),
        Event::DocumentUpdate {
            document: "bad\nid".into(),
            metadata: Map::from_iter([("x".to_owned(), 1.into())]),
        },
        done(),
    ];
    let read = read(&written(Encoder::new(Dialect::Named, identity()), &events));
    let found: Vec<_> = read
        .response
        .documents
        .iter()
        .map(|it| (it.id.as_str(), it.sequence, it.text()))
        .collect();
    assert_eq!(found, [("first", Some(1), "1"), ("doc_002", Some(2), "2")]);
    assert_eq!(read.metadata("doc_002")["x"], 1);
}

#[test]
fn our_own_events_stay_at_home() {
    let events = [
        Event::UserMessage(Message::user("secret")),
        Event::Title("secret".into()),
        Event::ResponseStart(ResponseStart::default()),
        done(),
    ];
    assert!(!written(Encoder::new(Dialect::Named, identity()), &events).contains("secret"));
    assert_eq!(
        written(Encoder::new(Dialect::Named, identity()).private(), &events)
            .matches("secret")
            .count(),
        2
    );
}

#[test]
fn the_end_comes_once_and_dialect_b_has_a_mark_behind_it() {
    let mut encoder = Encoder::new(Dialect::Data, identity());
    let text = encoder.push(&start("a", Kind::Text, None, json!({})));
    assert!(text.contains("data: {\"type\":\"document_start\""), "{text}");
    assert_eq!(encoder.push(&Event::Title("".into())), "");
    assert!(encoder.push(&done()).ends_with("\n\ndata: [DONE]\n\n"));
    assert_eq!(encoder.push(&done()), "");
}

#[test]
fn a_source_that_breaks_off_is_said_to_be_interrupted() {
    let mut encoder = Encoder::new(Dialect::Named, identity());
    let mut text = encoder.push(&start("a", Kind::Text, None, json!({})));
    text.push_str(&encoder.push(&Event::ContentDelta {
        document: "a".into(),
        delta: "hi".to_owned(),
    }));
    text.push_str(&encoder.finish());
    let read = read(&text);
    assert_eq!(read.codes(), [""; 0]);
    assert_eq!(read.document("a").text(), "hi");
    let ending = read.response.ending.expect("it ended");
    assert_eq!(
        (ending.status.as_str(), ending.finish_reason.as_str()),
        ("error", "interrupted")
    );
}

#[test]
fn a_large_document_travels_in_lines_that_every_reader_takes() {
    // Control characters take six bytes in JSON.
    let output = "\u{1b}".repeat(5 << 20);
    let content = "x".repeat(20 << 20);
    let events = [
        start(
            "a",
            Kind::TerminalCommand,
            None,
            json!({ "command": "yes", "output": output }),
        ),
        end("a", None),
        start("b", Kind::Text, None, json!({})),
        end("b", Some(&content)),
        done(),
    ];
    let text = written(Encoder::new(Dialect::Named, identity()), &events);
    let longest = text.lines().map(str::len).max().expect("lines");
    assert!(longest < 16 << 20, "{longest}");
    let read = read(&text);
    assert_eq!(read.codes(), [""; 0]);
    assert!(read.metadata("a")["output"] == output, "the output is whole");
    assert!(read.document("b").text() == content, "the text is whole");
}
