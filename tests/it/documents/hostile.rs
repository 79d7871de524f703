//! Input that nobody should send: whatever it is, the answer ends once and what was said stays strict.

use proptest::{collection::vec, prelude::*, sample::Index};
use serde_json::{Value, json};
use sheaf::protocol::{
    Dialect, Mode, Request, Role,
    codec::{Decoder, Identity, Limits, RequestError, record},
};

use super::{Encoder, assert_strict, feed, fixture, fold, identity};

const STREAMS: &[&str] = &["named.sse", "data.sse", "envelope.sse", "flat.sse", "questions.sse"];

/// Every event and member of the protocol, thrown together at random.
fn scrambled_event() -> impl Strategy<Value = Value> {
    let names = [
        "response_start",
        "document_start",
        "content_delta",
        "tool_call_start",
        "tool_call_arguments",
        "tool_result",
        "metadata_delta",
        "thinking_delta",
        "document_end",
        "document_update",
        "error",
        "future",
        "text",
        "user_message",
    ];
    let members = [
        "id",
        "documentId",
        "delta",
        "type",
        "document",
        "data",
        "metadata",
        "append",
        "finalContent",
        "arguments",
        "result",
        "toolName",
        "usage",
        "status",
        "response",
        "content",
        "sequence",
        "todos",
        "questions",
        "diff",
        "output",
        "startLine",
        "message",
        "mode",
        "created",
        "documents",
        "incomplete",
    ];
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        // Printing and parsing other floats may change their last digit.
        (-4000..4000_i32).prop_map(|it| Value::from(f64::from(it) / 4.0)),
        proptest::sample::select(
            &[
                "a",
                "b",
                "a#2",
                "",
                "{\"x\":1}",
                "}",
                "text",
                "tool_call",
                "plan",
                "file_edit"
            ][..]
        )
        .prop_map(Value::from),
        any::<String>().prop_map(Value::from),
    ];
    let value = leaf.prop_recursive(3, 16, 4, move |inner| {
        prop_oneof![
            vec(inner.clone(), 0..4).prop_map(Value::from),
            vec((proptest::sample::select(members.to_vec()), inner), 0..4)
                .prop_map(|it| Value::Object(it.into_iter().map(|(name, value)| (name.to_owned(), value)).collect())),
        ]
    });
    (
        proptest::sample::select(names.to_vec()),
        vec((proptest::sample::select(members.to_vec()), value), 0..6),
    )
        .prop_map(|(name, members)| {
            let mut event = json!({ "documentId": "a" });
            for (member, value) in members {
                event[member] = value;
            }
            event["type"] = name.into();
            event
        })
}

fn read_and_check(bytes: &[u8], limits: Limits) {
    let events = feed([bytes], limits);
    assert_strict(&events);
    let response = fold(&events);
    // Whatever came in can be shown, written, and read again.
    for document in &response.documents {
        document.view();
        document.plain_text();
    }
    serde_json::from_str::<Value>(&response.to_json().to_string()).expect("an answer can be read back");
    for dialect in [Dialect::Named, Dialect::Data] {
        let mut encoder = Encoder::new(dialect, identity());
        let text: String = events.iter().map(|it| encoder.push(it)).collect();
        let again = feed([text.as_bytes()], Limits::default());
        assert_strict(&again);
        assert_eq!(fold(&again).documents.len(), response.documents.len(), "{text}");
    }
}

/// Limits so small that everything meets them.
fn tight() -> Limits {
    Limits {
        event_bytes: 400,
        document_bytes: 60,
        response_bytes: 300,
        documents: 5,
        id_bytes: 8,
        notices: 10,
        thinking_bytes: 10,
        ..Limits::default()
    }
}

proptest! {
    #![proptest_config(super::cases(192))]

    #[test]
    fn random_bytes_end_once(bytes in vec(any::<u8>(), 0..400)) {
        read_and_check(&bytes, Limits::default());
        let mut framed = b"data: ".to_vec();
        framed.extend(&bytes);
        framed.extend(b"\n\n");
        read_and_check(&framed, Limits::default());
    }

    #[test]
    fn scrambled_events_end_once(events in vec(scrambled_event(), 0..24), tight_limits in any::<bool>()) {
        let text: String = events.iter().map(|it| format!("data: {it}\n\n")).collect();
        read_and_check(text.as_bytes(), if tight_limits { tight() } else { Limits::default() });
    }

    #[test]
    fn flipped_bits_end_once(name in proptest::sample::select(STREAMS), flips in vec((any::<Index>(), 0..8_u8), 1..20)) {
        let mut bytes = fixture(name).into_bytes();
        for (at, bit) in flips {
            let at = at.index(bytes.len());
            bytes[at] ^= 1 << bit;
        }
        read_and_check(&bytes, Limits::default());
    }

    #[test]
    fn lines_that_are_lost_doubled_or_swapped_end_once(
        name in proptest::sample::select(STREAMS),
        changes in vec((0..3_u8, any::<Index>(), any::<Index>()), 1..30),
        blank in any::<bool>(),
    ) {
        let text = fixture(name);
        let separator = if blank { "\n\n" } else { "\n" };
        let mut parts: Vec<_> = text.split(separator).collect();
        for (what, one, other) in changes {
            if parts.is_empty() {
                break;
            }
            let (one, other) = (one.index(parts.len()), other.index(parts.len()));
            match what {
                0 => {
                    parts.remove(one);
                }
                1 => parts.insert(other, parts[one]),
                _ => parts.swap(one, other),
            }
        }
        read_and_check(parts.join(separator).as_bytes(), Limits::default());
        read_and_check(parts.join(separator).as_bytes(), tight());
    }

    #[test]
    fn bodies_of_any_shape_are_answers_or_errors(mut body in scrambled_event(), documents in vec(scrambled_event(), 0..5)) {
        if !documents.is_empty() {
            body["documents"] = documents.into();
        }
        if let Ok(events) = Decoder::body(identity(), &body.to_string()) {
            assert_strict(&events);
        }
        if let Ok((request, _)) = Request::from_json(&body) {
            prop_assert_eq!(Request::from_json(&request.to_json()).expect("what we write").0, request);
        }
        let line = body.to_string();
        let _ = record::from_line(&line);
    }

    #[test]
    fn records_of_any_shape_are_events_or_errors(mut event in scrambled_event()) {
        let name = event["type"].take();
        let line = json!({ "n": 1, "turn": 1, "at": 0, "event": name, "data": event }).to_string();
        if let Ok(entry) = record::from_line(&line) {
            prop_assert_eq!(record::from_line(&record::to_line(&entry).expect("no progress")).expect("a record"), entry);
        }
    }
}

#[test]
fn every_byte_of_every_stream_may_be_the_last() {
    for name in ["envelope.sse", "flat.sse", "questions.sse"] {
        let text = fixture(name);
        for end in 0..text.len() {
            if text.is_char_boundary(end) {
                assert_strict(&feed([&text.as_bytes()[..end]], Limits::default()));
            }
        }
    }
}

#[test]
fn a_writer_never_lets_a_name_break_its_frame() {
    for name in [
        "a\nb",
        "a\r\ndata: x",
        "",
        " padded ",
        "message",
        "done",
        "nul\0",
        "error",
    ] {
        for dialect in [Dialect::Named, Dialect::Data] {
            let mut encoder = Encoder::new(dialect, identity());
            let mut text = encoder.push(&sheaf::protocol::Event::Unknown {
                name: name.to_owned(),
                data: json!({ "x": "line\nbreak" }),
            });
            text.push_str(&encoder.finish());
            for line in text.lines().filter(|it| !it.is_empty()) {
                assert!(
                    line.starts_with("event: ") || line.starts_with("data: "),
                    "{name:?}: {line:?}"
                );
            }
            assert_strict(&feed([text.as_bytes()], Limits::default()));
        }
    }
}

#[test]
fn a_request_says_what_is_wrong_with_it() {
    let missing = |member: &str| RequestError::Missing {
        member: member.to_owned(),
    };
    let wrong = |member: &str, wanted| RequestError::WrongType {
        member: member.to_owned(),
        wanted,
    };
    const MODES: &str = "agent, plan, ask, debug";
    let unknown = |member: &str, value: &str, known: &str| RequestError::Unknown {
        member: member.to_owned(),
        value: format!("`{value}`"),
        known: known.to_owned(),
    };
    let with = |member: &str, value: Value| json!({ "messages": [{ "role": "user", "content": "" }], member: value });
    for (body, error) in [
        (json!([]), RequestError::NotAnObject),
        (json!({}), missing("messages")),
        (json!({ "messages": null }), missing("messages")),
        (
            json!({ "messages": [] }),
            RequestError::Empty {
                member: "messages".to_owned(),
            },
        ),
        (json!({ "messages": "hi" }), wrong("messages", "a list of messages")),
        (json!({ "messages": ["hi"] }), wrong("messages[0]", "an object")),
        (
            json!({ "messages": [{ "content": "hi" }] }),
            missing("messages[0].role"),
        ),
        (
            json!({ "messages": [{ "role": "user", "content": "" }, { "role": "user" }] }),
            missing("messages[1].content"),
        ),
        (
            json!({ "messages": [{ "role": "user", "content": "" }], "stream": "perhaps" }),
            wrong("stream", "true or false"),
        ),
        (
            json!({ "messages": [{ "role": "user", "content": "" }], "tools": 7 }),
            wrong("tools", "a list of names"),
        ),
        (with("mode", json!("dream")), unknown("mode", "dream", MODES)),
        (with("mode", json!("")), unknown("mode", "", MODES)),
        (
            with("mode", json!(["plan"])),
            wrong("mode", "a word: agent, plan, ask or debug"),
        ),
        (with("context", json!("src")), wrong("context", "an object")),
        (
            with("streamOptions", json!("data")),
            wrong("streamOptions", "an object"),
        ),
        (
            with("tools", json!(["grep", 7])),
            wrong("tools[1]", "the name of a tool"),
        ),
        (
            with("availableTools", json!(["grep"])),
            wrong("availableTools", "an object with an entry for each tool"),
        ),
        (
            with("availableTools", json!({ "grep": "no" })),
            wrong("availableTools.grep", "an object, or true or false"),
        ),
        (
            with("availableTools", json!({ "grep": { "enabled": "no" } })),
            wrong("availableTools.grep.enabled", "true or false"),
        ),
        (
            with("availableTools", json!({ "grep": { "requireApproval": 1 } })),
            wrong("availableTools.grep.requireApproval", "true or false"),
        ),
        (
            with("tools", json!({ "grep": { "allowedPaths": "src" } })),
            wrong("tools.grep.allowedPaths", "a list of folders"),
        ),
        (
            with("availableTools", json!({ "grep": { "scope": "machine" } })),
            unknown("availableTools.grep.scope", "machine", "workspace"),
        ),
        (
            with("availableTools", json!({ "grep": { "allowed_paths": ["src"] } })),
            unknown(
                "availableTools.grep",
                "allowed_paths",
                "enabled, scope, allowedPaths, requireApproval",
            ),
        ),
        (
            json!({ "messages": [{ "role": "user", "content": "", "clarificationResponse": { "outcome": "skipped" } }] }),
            missing("messages[0].clarificationResponse.documentId"),
        ),
    ] {
        assert_eq!(Request::from_json(&body).expect_err("a bad request"), error, "{body}");
    }
    assert_eq!(missing("messages").to_string(), "`messages` is missing");
    assert_eq!(
        unknown("mode", "dream", MODES).to_string(),
        "`mode` cannot be `dream`, known are: agent, plan, ask, debug"
    );
}

#[test]
fn a_request_is_read_in_every_form() {
    let (request, notices) = Request::from_json(&json!({
        "model": "paper-1", "mode": " Plan", "stream": "true", "conversationId": "conv_1", "x_more": { "y": null },
        "streamOptions": { "dialect": "data", "other": 1 },
        "context": {
            "workspacePath": "/w", "openFiles": ["a.rs", { "path": "b.rs", "content": "x", "cursorLine": "3" }, 7],
            "projectLayout": "src/", "rules": ["one", { "name": "r", "content": "two" }], "more": 1,
        },
        "messages": [
            { "role": "system", "content": "be brief" },
            { "role": "user", "content": [{ "type": "text", "text": "hi " }, { "type": "text", "text": "there" }] },
            { "role": "assistant", "documents": [{ "id": "a", "type": "text" }] },
            { "role": "user", "content": "Redis", "clarificationResponse": {
                "documentId": 9, "outcome": "answered", "answers": [{ "questionId": 2, "selectedOptionIds": [1], "freeText": "Redis" }] } },
        ],
        "tools": ["grep", { "type": "function", "function": { "name": "read_file" } }, { "name": "ls" }],
        "availableTools": { "ls": { "enabled": false }, "grep": { "scope": "workspace", "enabled": null }, "rm": false },
    }))
    .expect("a request");
    assert!(notices.is_empty(), "{notices:?}");
    assert_eq!(
        (request.mode, request.stream, request.dialect),
        (Mode::Plan, true, Some(Dialect::Data))
    );
    assert_eq!(
        request.tools.as_deref(),
        Some(&["grep".to_owned(), "read_file".to_owned(), "ls".to_owned()][..])
    );
    let permitted: Vec<_> = ["grep", "read_file", "ls", "edit_file"]
        .into_iter()
        .filter(|it| request.permits(it))
        .collect();
    assert_eq!(permitted, ["grep", "read_file"]);
    assert_eq!(request.messages[1].content, "hi there");
    assert_eq!(request.messages[0].role, Role::System);
    let answer = request.messages[3].clarification_response.as_ref().expect("an answer");
    assert_eq!(
        (
            answer.document_id.as_str(),
            answer.answers[0].selected_option_ids.as_slice()
        ),
        ("9", &["1".to_owned()][..])
    );
    let context = request.surroundings();
    assert_eq!(context.rules, ["one", "two"]);
    assert_eq!(context.open_files.len(), 2);
    assert_eq!(
        (context.open_files[1].path.as_str(), context.open_files[1].cursor_line),
        ("b.rs", Some(3))
    );
    let written = request.to_json();
    assert_eq!(written["x_more"], json!({ "y": null }));
    assert_eq!(written["streamOptions"], json!({ "dialect": "data", "other": 1 }));
    assert_eq!(written["context"]["openFiles"][0], "a.rs");
    let (again, notices) = Request::from_json(&written).expect("what we write");
    assert_eq!((again, notices), (request, vec![]));
}

#[test]
fn a_registry_may_stand_where_the_tools_do() {
    let body = json!({
        "model": "m", "messages": [{ "role": "user", "content": "" }],
        "tools": { "grep": { "enabled": true }, "rm": { "enabled": false }, "ls": {} },
    });
    let (request, _) = Request::from_json(&body).expect("a request");
    assert_eq!(
        request.tools.as_deref(),
        Some(&["grep".to_owned(), "ls".to_owned()][..])
    );
    assert!(request.permits("ls") && !request.permits("rm"));
    let none = json!({ "model": "m", "messages": [{ "role": "user", "content": "" }], "tools": [] });
    assert!(!Request::from_json(&none).expect("a request").0.permits("grep"));
    let all = json!({ "model": "m", "messages": [{ "role": "user", "content": "" }] });
    assert!(Request::from_json(&all).expect("a request").0.permits("grep"));
}

#[test]
fn a_local_identity_is_new_each_time() {
    let one = Identity::local("m", Mode::Agent, 0);
    assert!(one.id.as_str().starts_with("chat_local_"));
    assert_ne!(one.id, Identity::local("m", Mode::Agent, 0).id);
}
