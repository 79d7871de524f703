//! One response and its readers: who comes back, who leaves, who stops it, what becomes of a question.

use super::*;
use crate::protocol::{
    Response,
    codec::{Decoder, Identity},
};

fn store() -> (tempfile::TempDir, Store) {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::new(folder.path().join("served"));
    (folder, store)
}

/// Everything that is hard to come back into: two documents at once, a start with a text, a call, a change of metadata.
fn script() -> Vec<Event> {
    let object = |it: Value| it.as_object().expect("an object").clone();
    let mut events = vec![
        Event::ResponseStart(crate::protocol::ResponseStart::default()),
        Event::ThinkingDelta { delta: "hm".to_owned() },
        start("a", "text", json!({ "format": "markdown" })),
        delta("a", "one "),
        Event::DocumentStart(DocumentStart {
            id: "b".into(),
            kind: Kind::TerminalCommand,
            sequence: None,
            content: None,
            metadata: object(json!({ "command": "ls", "permissions": [], "state": "running" })),
        }),
        delta("a", "two "),
        Event::MetadataDelta {
            document: "b".into(),
            metadata: serde_json::Map::new(),
            append: vec![("output".to_owned(), "x\n".to_owned())],
        },
        delta("a", "three"),
        end("a", Some("one two three"), json!({ "format": "markdown" })),
        Event::MetadataDelta {
            document: "b".into(),
            metadata: serde_json::Map::new(),
            append: vec![("output".to_owned(), "y\n".to_owned())],
        },
        end(
            "b",
            None,
            json!({ "command": "ls", "permissions": [], "state": "completed", "exitCode": 0, "output": "x\ny\n", "duration_ms": 3 }),
        ),
        // A start that takes two events, an end that takes several.
        Event::DocumentStart(DocumentStart {
            id: "c".into(),
            kind: Kind::CodeBlock,
            sequence: None,
            content: Some("let x;".into()),
            metadata: object(json!({ "language": "rust", "purpose": "example" })),
        }),
        end("c", Some("let x;"), json!({ "language": "rust", "purpose": "example" })),
        start("d", "tool_call", json!({ "toolName": "grep", "toolCallId": "k" })),
        end(
            "d",
            None,
            json!({ "toolName": "grep", "toolCallId": "k", "arguments": { "pattern": "x" },
                    "result": { "status": "success", "data": "y" }, "duration_ms": 1 }),
        ),
    ];
    events.push(Event::Done(Done {
        duration_ms: Some(7),
        ..Done::default()
    }));
    events
}

/// One event of a stream as text, and the last id that came with it or before it.
#[derive(Clone, Debug)]
struct Frame {
    id: String,
    name: Option<String>,
    data: String,
}

fn frames(body: &str) -> Vec<Frame> {
    frames_after(body, "")
}

fn frames_after(body: &str, last: &str) -> Vec<Frame> {
    let mut last = last.to_owned();
    let frames = body.split_terminator("\n\n").filter(|it| !it.starts_with(':'));
    frames
        .map(|it| {
            let member = |name: &str| it.lines().find_map(|it| it.strip_prefix(name)).map(str::to_owned);
            if let Some(id) = member("id: ") {
                assert!(id.parse::<u64>().is_ok(), "a number: {id}");
                last = id;
            }
            Frame {
                id: last.clone(),
                name: member("event: "),
                data: member("data: ").expect("data"),
            }
        })
        .collect()
}

/// Returns the header of a reader that has had these events.
fn header_behind(had: &[Frame]) -> String {
    let last = had.last().map(|it| &it.id).filter(|it| !it.is_empty());
    last.map_or_else(String::new, |it| format!("Last-Event-ID: {it}\r\n"))
}

fn folded(frames: &[Frame]) -> Value {
    let mut decoder = Decoder::new(Identity::local("", Mode::Agent, 0));
    let mut response = Response::default();
    for frame in frames {
        for event in decoder
            .frame(frame.name.as_deref(), &frame.data)
            .expect("it is the protocol")
        {
            response.apply(&event, 0);
        }
    }
    let doubled = response.documents.iter().any(|it| it.id.as_str().contains('#'));
    assert!(!doubled, "a document began twice: {response:?}");
    let mut whole = response.to_json();
    whole.as_object_mut().expect("an object").remove("capabilities");
    whole
}

#[tokio::test]
async fn whoever_comes_back_anywhere_misses_nothing() {
    let (_folder, store) = store();
    for dialect in ["named", "data"] {
        let mut gateway = Gateway::keeping(quick(), 64, Some(store.clone()));
        let body = json!({ "model": "m", "stream": true, "messages": [{ "role": "user", "content": "hi" }],
                           "streamOptions": { "dialect": dialect } });
        let mut client = gateway.post("/api/v1/chat/completions", &body).await;
        let turn = gateway.turn().await;
        turn.say(script());
        let last = if dialect == "named" { "event: done" } else { "[DONE]" };
        let mut said = client.until(last).await;
        said.push_str(&client.until("\r\n0\r\n\r\n").await);
        let all = frames(&body_of(&said));
        let whole = folded(&all);
        assert_eq!(whole["documents"].as_array().map(Vec::len), Some(4));
        let texts: Vec<_> = all.iter().filter(|it| it.data.contains("\"delta\"")).collect();
        assert!(texts.len() >= 5, "pieces arrive as pieces: {texts:?}");
        let id = id_in(&said);
        let path = format!("/api/v1/chat/responses/{id}");
        let object = json_of(&gateway.get(&path, "").await.end().await);
        assert_eq!(object["documents"], whole["documents"]);
        let numbers: Vec<_> = all
            .iter()
            .filter(|it| it.data != "[DONE]")
            .map(|it| it.id.as_str())
            .collect();
        let counted: Vec<_> = (1..=numbers.len()).map(|it| it.to_string()).collect();
        assert_eq!(numbers, counted, "events are counted");
        // Who has had the very last mark has no reason to come back.
        for cut in 0..all.len() {
            let (had, left) = all.split_at(cut);
            let header = header_behind(had);
            let said = gateway.get(&format!("{path}/stream"), &header).await.end().await;
            let rest = frames_after(&body_of(&said), had.last().map_or("", |it| &it.id));
            // Nobody gets anything twice, and nobody misses anything.
            let told = |it: &[Frame]| it.iter().map(|it| (it.id.clone(), it.data.clone())).collect::<Vec<_>>();
            assert_eq!(told(&rest), told(left), "{dialect} after {header:?}");
        }
        let other = if dialect == "named" { "data" } else { "named" };
        let said = gateway
            .get(&format!("{path}/stream?dialect={other}"), "")
            .await
            .end()
            .await;
        assert_eq!(folded(&frames(&body_of(&said))), whole, "in the other dialect");
    }
}

#[tokio::test]
async fn whoever_comes_back_after_the_pieces_are_gone_misses_nothing_that_counts() {
    let mut gateway = Gateway::new();
    let mut client = gateway.chat(true).await;
    let turn = gateway.turn().await;
    let mut events = script();
    let done = events.pop().expect("an end");
    turn.say(events);
    let said = client
        .until("\"toolCallId\":\"k\",\"arguments\":{\"pattern\":\"x\"}")
        .await;
    let said = said + &client.until("\n\n").await;
    let id = id_in(&said);
    let body = body_of(&(said.trim_end().to_owned() + "\n\n")).replace("\r\n", "");
    let had = frames(&body);
    // More than is kept for those who come back.
    let z = "z".repeat(32 << 10);
    let mut flood = vec![start("z", "text", json!({ "format": "plain" }))];
    flood.extend((0..40).map(|_| delta("z", &z)));
    flood.push(end("z", Some("z"), json!({ "format": "plain" })));
    turn.say(flood);
    let path = format!("/api/v1/chat/responses/{id}");
    while json_of(&gateway.get(&path, "").await.end().await)["documents"][4]["content"] != "z" {}
    let mut readers = Vec::new();
    for cut in 0..had.len() {
        let header = header_behind(had.get(..cut).unwrap_or_default());
        let mut reader = gateway
            .get(&format!("/api/v1/chat/responses/{id}/stream"), &header)
            .await;
        // All of them sit before it ends, and read: who does not is cut.
        let head = reader.until("\r\n\r\n").await;
        assert!(head.starts_with("HTTP/1.1 200"), "{head}");
        readers.push(tokio::spawn(async move { reader.end().await }));
    }
    turn.say([done]);
    let mut whole = None;
    for (cut, reader) in readers.into_iter().enumerate() {
        let rest = reader.await.expect("it read");
        let rest = frames(&body_of(&format!(
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n{rest}"
        )));
        let both: Vec<_> = had.iter().take(cut).cloned().chain(rest).collect();
        let found = folded(&both);
        let whole = whole.get_or_insert_with(|| found.clone());
        assert_eq!(&found, whole, "after {cut} events");
        assert_eq!(found["documents"][0]["content"], "one two three");
    }
}

#[tokio::test]
async fn a_mark_that_is_none_is_refused() {
    let (_folder, store) = store();
    let mut gateway = Gateway::keeping(quick(), 64, Some(store));
    let mut client = gateway.chat(true).await;
    let turn = gateway.turn().await;
    turn.say(script());
    let id = id_in(&client.until("event: done").await);
    let path = format!("/api/v1/chat/responses/{id}/stream");
    for (mark, wanted) in [
        ("0", 200),
        ("3", 200),
        ("20", 200),
        ("21", 400),
        ("7.2", 400),
        ("99999999999999999999999", 400),
        ("-1", 400),
        ("1.x", 400),
        (".1", 400),
        ("x", 400),
        ("", 400),
        ("1\r\nLast-Event-ID: 2", 400),
    ] {
        let said = gateway
            .get(&path, &format!("Last-Event-ID: {mark}\r\n"))
            .await
            .end()
            .await;
        assert!(said.starts_with(&format!("HTTP/1.1 {wanted}")), "{mark:?}: {said}");
    }
    let said = gateway.get(&format!("{path}?dialect=c"), "").await.end().await;
    assert!(said.starts_with("HTTP/1.1 400"), "{said}");
    for id in ["chat_other", "..%2f..%2fetc", "%00", "x".repeat(5000).as_str()] {
        for end in ["", "/stream"] {
            let said = gateway
                .get(&format!("/api/v1/chat/responses/{id}{end}"), "")
                .await
                .end()
                .await;
            assert!(said.starts_with("HTTP/1.1 404"), "{id} {end}: {said}");
        }
    }
}

#[tokio::test]
async fn several_read_one_response_and_it_goes_on_until_the_last_has_left() {
    let mut gateway = Gateway::with(forgetful(), 64);
    let mut first = gateway.chat(true).await;
    let mut turn = gateway.turn().await;
    turn.say([
        Event::ResponseStart(crate::protocol::ResponseStart::default()),
        start("a", "text", json!({})),
        delta("a", "so "),
    ]);
    let id = id_in(&first.until("\"so \"").await);
    let path = format!("/api/v1/chat/responses/{id}/stream");
    let mut second = gateway.get(&path, "").await;
    second.until("\"so \"").await;
    let mut third = gateway.get(&path, "Last-Event-ID: 3\r\n").await;
    third.until("\r\n\r\n").await;
    drop(first);
    turn.say([delta("a", "far")]);
    second.until("\"far\"").await;
    let said = third.until("\"far\"").await;
    assert!(!said.contains("\"so \""), "{said}");
    drop(second);
    turn.say([delta("a", "ther")]);
    third.until("\"ther\"").await;
    drop(third);
    assert_eq!(turn.told().await, Command::Cancel);
    let gone = async { while !gateway.get(&path, "").await.end().await.starts_with("HTTP/1.1 410") {} };
    tokio::time::timeout(PATIENCE, gone).await.expect("it is over");
}

#[tokio::test]
async fn a_stream_of_no_conversation_waits_a_while_for_its_reader_and_can_be_read_again() {
    let mut gateway = Gateway::patient(quick());
    let mut client = gateway.chat(true).await;
    let mut turn = gateway.turn().await;
    turn.say([
        Event::ResponseStart(crate::protocol::ResponseStart::default()),
        start("a", "text", json!({})),
        delta("a", "so "),
    ]);
    let said = client.until("\"so \"").await;
    let path = format!("/api/v1/chat/responses/{}/stream", id_in(&said));
    drop(client);
    turn.say([delta("a", "far")]);
    let mut back = gateway.get(&path, "Last-Event-ID: 3\r\n").await;
    let said = back.until("\"far\"").await;
    assert!(!said.contains("\"so \""), "{said}");
    turn.say([end("a", Some("so far"), json!({})), Event::Done(Done::default())]);
    back.until("event: done").await;
    drop(back);
    // The end is behind it: what was missed can still be had, and the whole.
    let rest = gateway.get(&path, "Last-Event-ID: 4\r\n").await.end().await;
    assert!(rest.contains("event: done") && !rest.contains("\"far\"}"), "{rest}");
    let whole = json_of(&gateway.get(path.trim_end_matches("/stream"), "").await.end().await);
    assert_eq!(whole["documents"][0]["content"], "so far", "{whole}");
    assert!(turn.told.try_recv().is_err(), "nothing was stopped");

    // Who does not come back is not worked for any longer.
    let mut client = gateway.chat(true).await;
    let mut turn = gateway.turn().await;
    turn.say([start("a", "text", json!({})), delta("a", "so")]);
    client.until("\"so\"").await;
    let since = Instant::now();
    drop(client);
    assert_eq!(turn.told().await, Command::Cancel);
    assert!(since.elapsed() >= LINGER, "{:?}", since.elapsed());

    // A client that wanted one object has no id to come back with.
    let client = gateway.chat(false).await;
    let mut turn = gateway.turn().await;
    drop(client);
    assert_eq!(turn.told().await, Command::Cancel);
}

#[tokio::test]
async fn an_ended_stream_is_forgotten_after_a_while() {
    let mut gateway = Gateway::with(forgetful(), 64);
    let mut client = gateway.chat(true).await;
    let turn = gateway.turn().await;
    turn.say(script());
    let id = id_in(&client.until("event: done").await);
    let path = format!("/api/v1/chat/responses/{id}");
    let gone = async { while !gateway.get(&path, "").await.end().await.starts_with("HTTP/1.1 410") {} };
    tokio::time::timeout(PATIENCE, gone).await.expect("it is forgotten");
}

#[tokio::test]
async fn a_kept_conversation_waits_a_while_for_its_reader() {
    let (_folder, store) = store();
    let mut gateway = Gateway::keeping(quick(), 64, Some(store));
    let mut client = gateway.chat(true).await;
    let mut turn = gateway.turn().await;
    turn.say([
        Event::ResponseStart(crate::protocol::ResponseStart::default()),
        start("a", "text", json!({})),
        delta("a", "so "),
    ]);
    let said = client.until("\"so \"").await;
    assert!(said.contains("\"capabilities\":[\"cancel\",\"stateful\"]"), "{said}");
    let path = format!("/api/v1/chat/responses/{}/stream", id_in(&said));
    drop(client);
    turn.say([delta("a", "far")]);
    let mut back = gateway.get(&path, "Last-Event-ID: 3\r\n").await;
    back.until("\"far\"").await;
    let since = Instant::now();
    drop(back);
    assert_eq!(turn.told().await, Command::Cancel);
    assert!(since.elapsed() >= LINGER, "{:?}", since.elapsed());
    turn.say([Event::Done(Done {
        finish_reason: Some(crate::protocol::FinishReason::Cancelled),
        ..Done::default()
    })]);
    let ended = async {
        loop {
            let said = gateway.get(path.trim_end_matches("/stream"), "").await.end().await;
            if said.contains("\"finishReason\":\"cancelled\"") {
                return said;
            }
        }
    };
    let said = tokio::time::timeout(PATIENCE, ended)
        .await
        .expect("it is known to have ended");
    assert!(said.contains("so far"), "{said}");
}

#[tokio::test]
async fn to_stop_twice_or_too_late_is_no_mistake() {
    let (_folder, store) = store();
    let mut gateway = Gateway::keeping(quick(), 64, Some(store));
    let mut client = gateway.chat(true).await;
    let mut turn = gateway.turn().await;
    turn.say([Event::ResponseStart(crate::protocol::ResponseStart::default())]);
    let path = format!(
        "/api/v1/chat/responses/{}/cancel",
        id_in(&client.until("\"streaming\"").await)
    );
    for _ in 0..2 {
        let said = gateway.post(&path, &json!({})).await.until("\r\n").await;
        assert!(said.contains("202"), "{said}");
    }
    assert_eq!(turn.told().await, Command::Cancel);
    turn.say([Event::Done(Done::default())]);
    client.until("event: done").await;
    let said = gateway.post(&path, &json!({})).await.until("\r\n").await;
    assert!(said.contains("202"), "{said}");
    assert!(turn.told.try_recv().is_err(), "it was told once");
    let said = gateway
        .post("/api/v1/chat/responses/chat_x/cancel", &json!({}))
        .await
        .until("\r\n")
        .await;
    assert!(said.contains("404"), "{said}");
}

#[tokio::test]
async fn a_client_that_cannot_answer_gets_the_question_as_the_end() {
    let mut gateway = Gateway::new();
    for (options, asker) in [
        (json!({ "liveInput": false }), Asker::Later),
        (json!({ "liveInput": true }), Asker::Live),
        (json!({}), Asker::Live),
    ] {
        let body = json!({ "model": "m", "stream": true, "messages": [{ "role": "user", "content": "hi" }],
                           "streamOptions": options });
        let mut client = gateway.post("/api/v1/chat/completions", &body).await;
        let mut turn = gateway.turn().await;
        assert_eq!(turn.asker, asker);
        turn.say(question());
        if asker == Asker::Later {
            let said = client.until("event: done").await;
            let said = said + &client.until("\n\n").await;
            assert!(said.contains("awaiting_input") && said.contains("Which?"), "{said}");
            assert_eq!(turn.told().await, Command::Cancel);
        } else {
            client.until("Which?").await;
        }
    }
}

#[tokio::test]
async fn a_question_that_nobody_answers_is_not_waited_for_for_ever() {
    let limits = Limits {
        question_time: Duration::from_millis(200),
        ..quick()
    };
    let mut gateway = Gateway::with(limits, 64);
    let mut client = gateway.chat(true).await;
    let mut turn = gateway.turn().await;
    let since = Instant::now();
    turn.say(question());
    let said = client.until("awaiting_input").await;
    assert!(
        since.elapsed() >= limits.question_time && said.contains("Which?"),
        "{said}"
    );
    assert_eq!(turn.told().await, Command::Cancel);
}
