//! The link against servers made of bare sockets, most of them hostile.

use std::{
    collections::VecDeque,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use pretty_assertions::assert_eq;
use serde_json::{Value, json};

use super::{Http, Settings};
use crate::{
    config::{KeySource, Secret},
    journal::{Earlier, Follower, Log, Recent},
    link::{AskError, Link},
    net::{
        client::{Peer, Timeouts},
        retry::Policy,
        test_server::{self, Diary, STREAM, diary, page},
    },
    protocol::{
        Command, Cost, Dialect, Entry, Event, FinishReason, Message, Mode, Position, Progress, Query, Reply, Response,
        Status, Submit, Turn,
    },
    transcript::Transcript,
};

/// A gateway's reaction to a request.
#[derive(Clone)]
enum Does {
    /// Answers and waits for the next one on the same connection.
    Says(String),
    /// Answers and closes.
    Ends(String),
    /// Answers, perhaps with nothing, and leaves the client waiting.
    Hangs(String),
}

use Does::{Ends, Hangs, Says};

/// A gateway that deals with its requests one after the other, and tells of each, and of each client that went away.
async fn gateway(script: impl IntoIterator<Item = Does>) -> (String, Diary<String>) {
    let script: Arc<Mutex<VecDeque<Does>>> = Arc::new(Mutex::new(script.into_iter().collect()));
    let (seen, diary) = diary();
    let base = test_server::listen(move |mut socket| {
        let (script, seen) = (Arc::clone(&script), seen.clone());
        async move {
            loop {
                let request = socket.request().await;
                if request.is_empty() {
                    return;
                }
                let does = script.lock().unwrap().pop_front();
                seen.send(request).unwrap();
                match does.unwrap_or(Hangs(String::new())) {
                    Says(text) => socket.send(text).await,
                    Ends(text) => return socket.send(text).await,
                    Hangs(text) => {
                        socket.send(text).await;
                        socket.closed().await;
                        seen.send("closed".into()).unwrap();
                        return;
                    }
                }
            }
        }
    })
    .await;
    (base, diary)
}

/// The path and the JSON of a request.
fn parts(request: &str) -> (String, Value) {
    let path = request.split(' ').nth(1).unwrap_or_default().to_owned();
    let body = request.split_once("\r\n\r\n").map_or("", |it| it.1);
    (path, serde_json::from_str(body).unwrap_or_default())
}

/// An event of dialect A.
fn event(name: &str, data: Value) -> String {
    format!("event: {name}\ndata: {data}\n\n")
}

fn text(id: &str, words: &str) -> String {
    event("document_start", json!({ "id": id, "type": "text", "sequence": 1 }))
        + &event("content_delta", json!({ "documentId": id, "delta": words }))
        + &event("document_end", json!({ "documentId": id }))
}

fn done() -> String {
    event("done", json!({ "usage": { "promptTokens": 1, "completionTokens": 2 } }))
}

fn start(members: Value) -> String {
    event("response_start", members)
}

fn stream(events: &[&str]) -> String {
    format!("{STREAM}{}", events.concat())
}

fn answer(words: &str) -> Does {
    Ends(stream(&[&text("doc_001", words), &done()]))
}

/// A user at the link.
struct User {
    link: Http,
    follower: Follower,
    transcript: Transcript,
    entries: Vec<Arc<Entry>>,
}

impl User {
    fn at(base: &str) -> Self {
        Self::with(base, |_| {})
    }

    fn with(base: &str, change: impl FnOnce(&mut Settings)) -> Self {
        Self::going_on(base, Log::new(), change)
    }

    fn going_on(base: &str, log: Arc<Log>, change: impl FnOnce(&mut Settings)) -> Self {
        let mut settings = Settings::new(Peer::new(base.parse().unwrap()));
        settings.retries = Policy {
            retries: 3,
            floor: Duration::from_millis(1),
            ..Policy::default()
        };
        change(&mut settings);
        let link = Http::start(settings, log).unwrap();
        Self {
            follower: link.log().follow(Position(0)),
            link,
            transcript: Transcript::default(),
            entries: Vec::new(),
        }
    }

    fn say(&self, words: &str) {
        self.say_in(Mode::Agent, words);
    }

    fn say_in(&self, mode: Mode, words: &str) {
        self.link.send(Command::Submit(Submit {
            message: Message::user(words),
            mode,
            model: None,
        }));
    }

    fn answer(&self, turn: u32, document: &str, option: &str) {
        let response = json!({
            "documentId": document, "outcome": "answered",
            "answers": [{ "questionId": "q1", "selectedOptionIds": [option] }],
        });
        self.link.send(Command::Answer {
            turn: Turn(turn),
            response: serde_json::from_value(response).unwrap(),
        });
    }

    /// Reads the log until `is_there`.
    async fn until(&mut self, is_there: impl Fn(&Transcript) -> bool) {
        let reading = async {
            while !is_there(&self.transcript) {
                let mut batch = Vec::new();
                assert!(self.follower.next(&mut batch).await, "the log was closed");
                self.transcript.apply_all(&batch);
                self.entries.extend(batch);
            }
        };
        let reading = tokio::time::timeout(Duration::from_secs(20), reading).await;
        assert!(
            reading.is_ok(),
            "it never came: {:#?}",
            self.transcript.exchanges.last()
        );
    }

    /// Reads until `turn` is over; its response.
    async fn over(&mut self, turn: u32) -> &Response {
        self.until(|it| {
            it.exchanges
                .iter()
                .any(|it| it.turn == Turn(turn) && !it.response.is_running())
        })
        .await;
        self.response(turn)
    }

    fn response(&self, turn: u32) -> &Response {
        &self
            .transcript
            .exchanges
            .iter()
            .find(|it| it.turn == Turn(turn))
            .unwrap()
            .response
    }

    async fn asks(&mut self, words: &str) -> &Response {
        let turn = self.link.log().turn().0 + 1;
        self.say(words);
        self.over(turn).await
    }

    fn retries(&self) -> Vec<Progress> {
        let progress = self.entries.iter().filter_map(|it| match &it.event {
            Event::Progress(it @ Progress::Retrying { .. }) => Some(it.clone()),
            _ => None,
        });
        progress.collect()
    }
}

/// `kind text` of each document, errors with their code; then the finish reason.
fn shown(response: &Response) -> Vec<String> {
    let show = |it: &crate::protocol::Document| match it.metadata.get("errorCode") {
        Some(code) => format!("{} {}: {}", it.kind, code.as_str().unwrap(), it.text()),
        None if it.is_incomplete() => format!("{} {} (incomplete)", it.kind, it.text()),
        None => format!("{} {}", it.kind, it.text()),
    };
    let mut shown: Vec<_> = response.documents.iter().map(show).collect();
    shown.extend(response.ending.iter().map(|it| it.finish_reason.to_string()));
    shown
}

fn once(settings: &mut Settings) {
    settings.retries.retries = 0;
}

#[tokio::test]
async fn an_answer_is_read_by_its_type_whatever_was_asked_for() {
    let named = [text("doc_001", "hello"), done()].concat();
    let data = concat!(
        "data: {\"type\":\"document_start\",\"document\":{\"id\":\"doc_001\",\"type\":\"text\"}}\r\n\r\n",
        "data: {\"type\":\"content_delta\",\"documentId\":\"doc_001\",\"delta\":\"hello\"}\r\n\r\n",
        "data: {\"type\":\"document_end\",\"documentId\":\"doc_001\"}\r\n\r\ndata: [DONE]\r\n\r\n",
    );
    let whole = json!({
        "id": "chat_1", "status": "completed",
        "documents": [{ "id": "doc_001", "type": "text", "sequence": 1, "content": "hello", "metadata": {} }],
    });
    let (data, whole) = (data.to_owned(), whole.to_string());
    let cases = [
        ("text/event-stream", &named),
        ("Text/Event-Stream; charset=utf-8", &data),
        ("application/json", &whole),
        ("application/vnd.sheaf+json", &whole),
        ("text/plain", &named),
        ("text/plain", &whole),
        ("application/octet-stream", &data),
    ];
    for (media, body) in cases {
        let (base, _diary) = gateway([Ends(page("200 OK", media, body))]).await;
        let mut user = User::at(&base);
        assert_eq!(shown(user.asks("hi").await), ["text hello", "stop"], "{media}: {body}");
    }
}

#[tokio::test]
async fn a_request_says_what_the_protocol_wants() {
    let (base, mut diary) = gateway([answer("hello")]).await;
    let mut user = User::with(&format!("{base}/api/v1/chat/completions"), |it| {
        it.token = KeySource::Given(Secret::new("tell-nobody"));
        it.model = Some("m1".into());
        it.dialect = Some(Dialect::Data);
        it.context = Some(json!({ "workspacePath": "/w" }).into());
        it.tools = Some(vec!["grep".into()]);
    });
    user.say_in(Mode::Ask, "hi");
    user.over(1).await;
    let request = diary.next().await;
    let (path, body) = parts(&request);
    assert_eq!(path, "/api/v1/chat/completions");
    let head = request.to_lowercase();
    for line in [
        "accept: text/event-stream",
        "content-type: application/json",
        "authorization: bearer tell-nobody",
    ] {
        assert!(head.lines().any(|it| it == line), "`{line}` in\n{request}");
    }
    assert_eq!(
        body,
        json!({
            "model": "m1", "mode": "ask", "context": { "workspacePath": "/w" }, "tools": ["grep"], "stream": true,
            "streamOptions": { "dialect": "data" }, "messages": [{ "role": "user", "content": "hi" }],
        })
    );
}

#[tokio::test]
async fn a_gateway_is_told_when_nobody_can_answer_while_it_answers() {
    for (accepts, dialect, wanted) in [
        (true, None, Value::Null),
        (false, None, json!({ "liveInput": false })),
        (
            false,
            Some(Dialect::Named),
            json!({ "dialect": "named", "liveInput": false }),
        ),
    ] {
        let (base, mut diary) = gateway([answer("hello")]).await;
        let mut user = User::with(&base, |it| {
            it.accepts_answers = accepts;
            it.dialect = dialect;
        });
        user.asks("hi").await;
        let (_, body) = parts(&diary.next().await);
        assert_eq!(body["streamOptions"], wanted);
    }
}

#[tokio::test]
async fn without_a_token_there_is_no_header() {
    let (base, mut diary) = gateway([answer("hello")]).await;
    User::at(&base).asks("hi").await;
    assert!(!diary.next().await.to_lowercase().contains("authorization"));
}

#[tokio::test]
async fn what_was_said_before_travels_again() {
    let (base, mut diary) = gateway([answer("one"), answer("two")]).await;
    let mut user = User::at(&base);
    user.asks("first").await;
    user.asks("second").await;
    diary.next().await;
    let (_, body) = parts(&diary.next().await);
    let messages = &body["messages"];
    assert_eq!(messages[0], json!({ "role": "user", "content": "first" }));
    assert_eq!(messages[1]["content"], "one");
    assert_eq!(messages[1]["documents"][0]["type"], "text");
    assert_eq!(messages[2], json!({ "role": "user", "content": "second" }));
    assert_eq!(body.get("conversationId"), None);
}

#[tokio::test]
async fn a_gateway_that_remembers_is_told_new_things_only_and_everything_when_it_forgot() {
    let opening = start(json!({ "id": "chat_1", "conversationId": "conv_1", "capabilities": ["stateful"] }));
    let first = Ends(stream(&[&opening, &text("doc_001", "one"), &done()]));
    let second = Ends(stream(&[&opening, &text("doc_001", "two"), &done()]));
    let forgot = Says(page(
        "404 Not Found",
        "application/json",
        r#"{"detail":"no such conversation"}"#,
    ));
    let (base, mut diary) = gateway([first, second, forgot, answer("three")]).await;
    let mut user = User::at(&base);
    user.asks("first").await;
    user.asks("second").await;
    assert_eq!(shown(user.asks("third").await), ["text three", "stop"]);
    let mut sent = Vec::new();
    for _ in 0..4 {
        let (_, body) = parts(&diary.next().await);
        sent.push((
            body["conversationId"].clone(),
            body["messages"].as_array().unwrap().len(),
        ));
    }
    assert_eq!(
        sent,
        [
            (json!(null), 1),
            (json!("conv_1"), 1),
            (json!("conv_1"), 1),
            (json!(null), 5)
        ]
    );
}

#[tokio::test]
async fn a_conversation_goes_on_where_its_log_ends() {
    let (base, mut diary) = gateway([answer("one"), answer("two")]).await;
    let mut user = User::at(&base);
    user.asks("first").await;
    let entries = user
        .link
        .log()
        .after(Position(0))
        .iter()
        .map(|it| (**it).clone())
        .collect();
    let mut user = User::going_on(&base, Log::from_entries(entries), |_| {});
    user.asks("second").await;
    diary.next().await;
    let (_, body) = parts(&diary.next().await);
    assert_eq!(body["messages"].as_array().unwrap().len(), 3);
    assert_eq!(body["messages"][1]["content"], "one");
}

/// The entries before the end, and the number of times that they were read.
#[derive(Debug)]
struct Front(Vec<Entry>, Arc<AtomicUsize>);

impl Earlier for Front {
    fn entries(&self) -> Vec<Entry> {
        self.1.fetch_add(1, Ordering::Relaxed);
        self.0.clone()
    }

    fn spent(&self) -> Cost {
        Cost::default()
    }
}

#[tokio::test]
async fn of_a_long_conversation_a_gateway_that_remembers_needs_the_end_only() {
    let opening = start(json!({ "id": "chat_1", "conversationId": "conv_1", "capabilities": ["stateful"] }));
    let said = |words: &str| Ends(stream(&[&opening, &text("doc_001", words), &done()]));
    let forgot = Says(page(
        "404 Not Found",
        "application/json",
        r#"{"detail":"no such conversation"}"#,
    ));
    let script = [said("one"), said("two"), said("three"), forgot, answer("four")];
    let (base, mut diary) = gateway(script).await;
    let mut user = User::at(&base);
    user.asks("first").await;
    user.asks("second").await;
    let mut entries: Vec<Entry> = user
        .link
        .log()
        .after(Position(0))
        .iter()
        .map(|it| Entry::clone(it))
        .collect();
    let at = entries.iter().position(|it| it.turn == Turn(2)).unwrap();
    let mut end = entries.split_off(at);
    let recent = Recent {
        after: entries.last().unwrap().position,
        turn: Turn(2),
        title: None,
    };
    // What is said late of an old answer is nothing to answer behind.
    end.push(Entry {
        position: Position(end.last().unwrap().position.0 + 1),
        turn: Turn(1),
        at_ms: 1,
        event: Event::DocumentUpdate {
            document: "doc_001".into(),
            metadata: serde_json::Map::new(),
        },
    });
    let read = Arc::new(AtomicUsize::new(0));
    let front = Box::new(Front(entries, Arc::clone(&read)));
    let link = Log::from_recent(recent.clone(), front, end);
    let mut user = User::going_on(&base, Arc::clone(&link), |_| {});
    user.follower = link.follow(recent.after);
    assert_eq!(shown(user.asks("third").await), ["text three", "stop"]);
    assert_eq!(read.load(Ordering::Relaxed), 0);
    assert_eq!(shown(user.asks("fourth").await), ["text four", "stop"]);
    assert_eq!(read.load(Ordering::Relaxed), 1);
    let mut sent = Vec::new();
    for _ in 0..5 {
        let (_, body) = parts(&diary.next().await);
        let all = body["messages"].as_array().unwrap().iter();
        sent.push(
            all.map(|it| it["content"].as_str().unwrap().to_owned())
                .collect::<Vec<_>>(),
        );
    }
    assert_eq!(sent[2..4], [["third"], ["fourth"]]);
    assert_eq!(sent[4], ["first", "one", "second", "two", "third", "three", "fourth"]);
}

#[tokio::test]
async fn an_answer_that_a_dead_program_left_open_is_closed() {
    let (base, mut diary) = gateway([answer("two")]).await;
    let log = Log::new();
    log.append(0, Event::UserMessage(Message::user("first")));
    log.append(
        0,
        Event::DocumentStart(crate::protocol::DocumentStart {
            id: "doc_001".into(),
            kind: crate::protocol::Kind::Text,
            sequence: Some(1),
            content: Some("half".into()),
            metadata: serde_json::Map::new(),
        }),
    );
    let mut user = User::going_on(&base, log, |_| {});
    assert_eq!(shown(user.over(1).await), ["text half (incomplete)", "interrupted"]);
    user.asks("second").await;
    let (_, body) = parts(&diary.next().await);
    assert_eq!(body["messages"].as_array().unwrap().len(), 3);
}

#[tokio::test]
async fn a_gateway_without_modes_is_asked_for_plans_elsewhere() {
    let no_mode = || {
        Says(page(
            "422 Unprocessable",
            "application/json",
            r#"{"detail":[{"msg":"bad mode"}]}"#,
        ))
    };
    let (base, mut diary) = gateway([no_mode(), answer("plan"), answer("plan"), answer("work")]).await;
    let mut user = User::at(&base);
    for (turn, mode) in [(1, Mode::Plan), (2, Mode::Plan), (3, Mode::Agent)] {
        user.say_in(mode, "go");
        assert_eq!(user.over(turn).await.status(), Status::Completed);
    }
    let mut paths = Vec::new();
    for _ in 0..4 {
        let (path, body) = parts(&diary.next().await);
        paths.push(format!("{path} {}", body["mode"].as_str().unwrap()));
    }
    assert_eq!(
        paths,
        [
            "/api/v1/chat/completions plan",
            "/api/v1/chat/plan plan",
            "/api/v1/chat/plan plan",
            "/api/v1/chat/completions agent",
        ]
    );
}

#[tokio::test]
async fn when_the_other_way_is_no_better_the_first_failure_is_told() {
    let bad = Says(page(
        "400 Bad Request",
        "application/json",
        r#"{"error":"messages are too long"}"#,
    ));
    let none = Says(page("404 Not Found", "text/html", "<h1>Nope</h1>"));
    let (base, mut diary) = gateway([bad, none, answer("plan")]).await;
    let mut user = User::at(&base);
    user.say_in(Mode::Plan, "go");
    assert_eq!(
        shown(user.over(1).await),
        ["error INTERNAL: messages are too long", "error"]
    );
    user.say_in(Mode::Plan, "again");
    user.over(2).await;
    let mut paths = Vec::new();
    for _ in 0..3 {
        paths.push(parts(&diary.next().await).0);
    }
    assert_eq!(
        paths[2], "/api/v1/chat/completions",
        "the gateway may have modes after all"
    );
}

#[tokio::test]
async fn an_error_is_read_in_every_shape() {
    let json = "application/json";
    let ours = r#"{"error":{"code":"LLM_OVERLOADED","message":"busy","source":"gateway","details":"later"}}"#;
    let openai =
        r#"{"error":{"message":"no such model","type":"invalid_request_error","code":"model_not_found","param":null}}"#;
    let whole = r#"{"status":"error","documents":[{"id":"a","type":"text","content":"half"},
        {"id":"b","type":"error","content":"broke","metadata":{"errorCode":"INTERNAL"}}]}"#;
    let html = format!(
        "<html><body><h1>Bad  Gateway</h1>\x1b[31m{}</body></html>",
        "x".repeat(900)
    );
    let shortened = format!("error LLM_UNAVAILABLE: Bad Gateway \x1b[31m{}", "x".repeat(300 - 17));
    let cases: [(&str, &str, &str, &[&str]); 9] = [
        ("400 Bad", json, ours, &["error LLM_OVERLOADED: busy", "error"]),
        (
            "400 Bad",
            json,
            r#"{"error":"wrong"}"#,
            &["error INTERNAL: wrong", "error"],
        ),
        (
            "400 Bad",
            json,
            r#"{"message":"wrong"}"#,
            &["error INTERNAL: wrong", "error"],
        ),
        (
            "400 Bad",
            json,
            r#"{"detail":"wrong"}"#,
            &["error INTERNAL: wrong", "error"],
        ),
        (
            "400 Bad",
            json,
            openai,
            &["error model_not_found: no such model", "error"],
        ),
        ("500 Oh", json, whole, &["text half", "error INTERNAL: broke", "error"]),
        ("502 Bad Gateway", "text/html", &html, &[&shortened, "error"]),
        (
            "401 No",
            "text/plain",
            "who are you?",
            &["error UNAUTHORIZED: who are you?", "error"],
        ),
        (
            "200 OK",
            json,
            r#"{"error":{"message":"wrong"}}"#,
            &["error INTERNAL: wrong", "error"],
        ),
    ];
    for (status, media, body, expected) in cases {
        let (base, _diary) = gateway([Ends(page(status, media, body))]).await;
        let mut user = User::with(&base, once);
        let response = user.asks("hi").await;
        assert_eq!(shown(response), expected, "{status} {body}");
        assert_eq!(response.status(), Status::Error, "{status} {body}");
    }
}

#[tokio::test]
async fn words_that_are_no_json_come_with_the_status() {
    let (base, _diary) = gateway([Ends(page("500 Oh", "text/plain", "boom"))]).await;
    let mut user = User::with(&base, once);
    let details = user.asks("hi").await.documents[0].metadata["details"].clone();
    assert_eq!(details, "HTTP status 500");
}

#[tokio::test]
async fn a_server_of_another_kind_is_named() {
    let chunk = "data: {\"object\":\"chat.completion.chunk\",\"choices\":[{\"delta\":{\"content\":\"hi\"}}]}\n\n";
    let message = "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"id\":\"m\"}}\n\n";
    let cases = [
        (
            "text/event-stream",
            chunk,
            "this is an OpenAI-compatible server; configure it as a provider",
        ),
        (
            "application/json",
            r#"{"choices":[]}"#,
            "this is an OpenAI-compatible server; configure it as a provider",
        ),
        (
            "text/event-stream",
            message,
            "this is an Anthropic server; configure it as a provider",
        ),
    ];
    for (media, body, expected) in cases {
        let (base, _diary) = gateway([Ends(page("200 OK", media, body))]).await;
        let mut user = User::at(&base);
        let response = user.asks("hi").await;
        assert_eq!(
            shown(response)[0],
            format!("error STREAM_PROTOCOL: {expected}"),
            "{body}"
        );
    }
    let (base, _diary) = gateway([Ends(page(
        "404 Not Found",
        "application/json",
        r#"{"detail":"Not Found"}"#,
    ))])
    .await;
    let mut user = User::at(&base);
    let details = user.asks("hi").await.documents[0].metadata["details"].clone();
    assert!(details.as_str().unwrap().contains("as a provider"), "{details}");
}

#[tokio::test]
async fn whatever_a_server_does_the_answer_ends_and_says_why() {
    let text_begun = event("document_start", json!({ "id": "a", "type": "text" }))
        + &event("content_delta", json!({ "documentId": "a", "delta": "half" }));
    let long = format!("data: {}", "x".repeat(17 << 20));
    let cases: Vec<(&str, Does, &str, &str)> = vec![
        ("closes at once", Ends(String::new()), "LLM_UNAVAILABLE", "error"),
        (
            "speaks something else",
            Ends("220 smtp.example.org ESMTP\r\n\r\n".into()),
            "STREAM_PROTOCOL",
            "error",
        ),
        (
            "redirects",
            Ends(
                "HTTP/1.1 307 Temporary Redirect\r\nLocation: https://evil.example/\r\nContent-Length: 0\r\n\r\n"
                    .into(),
            ),
            "STREAM_PROTOCOL",
            "error",
        ),
        (
            "sends huge headers",
            Ends(format!("HTTP/1.1 200 OK\r\nX: {}\r\n\r\n", "x".repeat(1 << 20))),
            "STREAM_PROTOCOL",
            "error",
        ),
        (
            "compresses",
            Ends("HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 2\r\n\r\n\x1f\x0b".into()),
            "STREAM_PROTOCOL",
            "error",
        ),
        (
            "answers a page",
            Ends(page("200 OK", "text/html", "<h1>Log in</h1>")),
            "STREAM_PROTOCOL",
            "interrupted",
        ),
        (
            "answers a list",
            Ends(page("200 OK", "application/json", "[1]")),
            "STREAM_PROTOCOL",
            "interrupted",
        ),
        (
            "answers half an object",
            Ends(page("200 OK", "application/json", "{\"a\"")),
            "STREAM_PROTOCOL",
            "interrupted",
        ),
        (
            "sends a line without end",
            Ends(stream(&[&text_begun, &long])),
            "STREAM_PROTOCOL",
            "interrupted",
        ),
        (
            "cuts in the middle",
            Ends(format!(
                "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nContent-Length: 9999\r\n\r\n{text_begun}event: con"
            )),
            "STREAM_INTERRUPTED",
            "interrupted",
        ),
        (
            "falls silent",
            Hangs(stream(&[&text_begun, ": ping\n"])),
            "STREAM_INTERRUPTED",
            "interrupted",
        ),
        (
            "never sends a body",
            Hangs(STREAM.into()),
            "STREAM_INTERRUPTED",
            "interrupted",
        ),
        ("never answers", Hangs(String::new()), "LLM_UNAVAILABLE", "error"),
    ];
    for (name, does, code, reason) in cases {
        let begun = matches!(&does, Ends(it) | Hangs(it) if it.contains("half"));
        let (base, _diary) = gateway([does]).await;
        let mut user = User::with(&base, |it| {
            once(it);
            it.peer.timeouts = Timeouts {
                first_byte: Duration::from_millis(300),
                idle: Duration::from_millis(300),
                ..Timeouts::default()
            };
        });
        let response = user.asks("hi").await;
        let mut shown = shown(response);
        if begun {
            assert_eq!(shown.remove(0), "text half (incomplete)", "{name}");
        }
        assert!(shown[0].starts_with(&format!("error {code}: ")), "{name}: {shown:?}");
        assert_eq!(shown[1..], [reason], "{name}: {shown:?}");
        assert_eq!(response.status(), Status::Error, "{name}");
    }
}

#[tokio::test]
async fn a_stream_that_just_stops_is_interrupted_and_keeps_what_came() {
    let (base, mut diary) = gateway([Ends(stream(&[&text("a", "one"), &text("b", "two")]))]).await;
    let mut user = User::at(&base);
    assert_eq!(shown(user.asks("hi").await), ["text one", "text two", "interrupted"]);
    diary.next().await;
    assert_eq!(diary.so_far(), Vec::<String>::new(), "nothing is asked twice");
}

#[tokio::test]
async fn ten_megabytes_in_one_line_are_an_answer_like_any_other() {
    let words = "x".repeat(10 << 20);
    let (base, _diary) = gateway([answer(&words)]).await;
    let mut user = User::at(&base);
    let response = user.asks("hi").await;
    assert_eq!(response.documents[0].text().len(), 10 << 20);
    assert_eq!(response.status(), Status::Completed);
}

#[tokio::test]
async fn nobody_there_is_tried_again_and_told_in_the_end() {
    let mut user = User::at(&test_server::nobody().await);
    let response = user.asks("hi").await;
    assert!(shown(response)[0].starts_with("error LLM_UNAVAILABLE: connection refused: http://127.0.0.1:"));
    assert_eq!(response.ending.as_ref().unwrap().finish_reason, FinishReason::Error);
}

#[tokio::test]
async fn a_busy_gateway_is_asked_again_when_it_says() {
    let busy = |after| Says(format!("HTTP/1.1 429 Busy\r\n{after}\r\nContent-Length: 0\r\n\r\n"));
    let (base, mut diary) = gateway([busy("Retry-After-Ms: 150"), busy("Retry-After: 0.2"), answer("hello")]).await;
    let mut user = User::at(&base);
    let begun = Instant::now();
    user.say("hi");
    let retrying = |attempt| move |it: &Transcript| matches!(it.progress, Some(Progress::Retrying { attempt: at, .. }) if at == attempt);
    user.until(retrying(1)).await;
    user.until(retrying(2)).await;
    assert_eq!(shown(user.over(1).await), ["text hello", "stop"]);
    assert!(begun.elapsed() >= Duration::from_millis(350));
    let Progress::Retrying { of, because, .. } = &user.retries()[0] else {
        unreachable!()
    };
    assert_eq!((*of, because.as_str()), (3, "too many requests (429)"));
    let bodies: Vec<_> = [diary.next().await, diary.next().await, diary.next().await]
        .iter()
        .map(|it| parts(it))
        .collect();
    assert_eq!(
        (&bodies[0], &bodies[0]),
        (&bodies[1], &bodies[2]),
        "the same is asked each time"
    );
}

#[tokio::test]
async fn what_is_worth_a_second_try_and_what_is_not() {
    let page = |status: &str, body: &str| Says(page(status, "application/json", body));
    let gone = || Ends(String::new());
    let cut = Ends(stream(&[&event(
        "document_start",
        json!({ "id": "a", "type": "text" }),
    )]));
    let cases = [
        ("overloaded to the end", vec![page("503 No", ""); 5], 4),
        ("closed before an answer", vec![gone(), gone(), answer("x")], 3),
        ("a wrong token", vec![page("401 No", ""); 5], 1),
        ("forbidden", vec![page("403 No", ""); 5], 1),
        (
            "an empty purse",
            vec![page("429 No", r#"{"error":{"code":"insufficient_quota"}}"#); 5],
            1,
        ),
        ("a bad request", vec![page("400 No", ""); 5], 1),
        ("cut after its start", vec![cut; 5], 1),
    ];
    for (name, script, expected) in cases {
        let (base, mut diary) = gateway(script).await;
        let mut user = User::at(&base);
        user.asks("hi").await;
        assert_eq!(diary.so_far().len(), expected, "{name}");
    }
}

#[tokio::test]
async fn a_long_pause_is_for_those_who_can_stop_it() {
    let busy = |after: u32| {
        Says(format!(
            "HTTP/1.1 429 Busy\r\nRetry-After: {after}\r\nContent-Length: 0\r\n\r\n"
        ))
    };
    let (base, _diary) = gateway([busy(300)]).await;
    let mut user = User::with(&base, |it| it.is_attended = false);
    let details = user.asks("hi").await.documents[0].metadata["details"].clone();
    assert!(
        details.as_str().unwrap().contains("send the message again"),
        "{details}"
    );

    let (base, _diary) = gateway([busy(300)]).await;
    let mut user = User::at(&base);
    user.say("hi");
    user.until(|it| matches!(it.progress, Some(Progress::Retrying { .. })))
        .await;
    stops(&mut user).await;
}

/// Stops the turn that runs, which ends as cancelled. How long that took.
async fn stops(user: &mut User) -> Duration {
    let turn = user.link.log().turn().0;
    let begun = Instant::now();
    user.link.send(Command::Cancel);
    let response = user.over(turn).await;
    let took = begun.elapsed();
    let ending = response.ending.as_ref().unwrap();
    assert_eq!(
        (&ending.status, &ending.finish_reason),
        (&Status::Completed, &FinishReason::Cancelled)
    );
    took
}

#[tokio::test]
async fn stopping_closes_the_connection_in_every_state() {
    let busy = "HTTP/1.1 429 Busy\r\nRetry-After: 300\r\nContent-Length: 0\r\n\r\n";
    test_server::promptly("between two tries", async || {
        let (base, _diary) = gateway([Says(busy.into())]).await;
        let mut user = User::at(&base);
        user.say("hi");
        user.until(|it| matches!(it.progress, Some(Progress::Retrying { .. })))
            .await;
        stops(&mut user).await
    })
    .await;

    test_server::promptly("waiting for the answer", async || {
        let (base, mut diary) = gateway([Hangs(String::new())]).await;
        let mut user = User::at(&base);
        user.say("hi");
        diary.next().await;
        stops(&mut user).await + diary.closed().await
    })
    .await;

    test_server::promptly("in the middle of the stream", async || {
        let half = stream(&[&event("document_start", json!({ "id": "a", "type": "text" }))]);
        let (base, mut diary) = gateway([Hangs(half), answer("next")]).await;
        let mut user = User::at(&base);
        user.say("hi");
        user.until(|it| it.exchanges.last().is_some_and(|it| !it.response.documents.is_empty()))
            .await;
        diary.next().await;
        let took = stops(&mut user).await + diary.closed().await;
        assert_eq!(shown(user.response(1)), ["text  (incomplete)", "cancelled"]);
        assert_eq!(
            shown(user.asks("again").await),
            ["text next", "stop"],
            "the conversation goes on"
        );
        took
    })
    .await;

    test_server::promptly("in the middle of an error's body", async || {
        let half = "HTTP/1.1 500 Oh\r\nContent-Length: 100\r\n\r\nhm";
        let (base, mut diary) = gateway([Hangs(half.into())]).await;
        let mut user = User::at(&base);
        user.say("hi");
        diary.next().await;
        stops(&mut user).await + diary.closed().await
    })
    .await;

    let authority = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/tls/ca.pem");
    test_server::promptly("connecting", async || {
        let (base, mut diary) = test_server::mute().await;
        let mut user = User::with(&base, |it| it.peer.ca_file = Some(authority.clone()));
        user.say("hi");
        diary.next().await;
        stops(&mut user).await + diary.closed().await
    })
    .await;

    test_server::promptly("while a key command runs", async || {
        let (base, mut diary) = gateway([answer("hello")]).await;
        let hangs = KeySource::Command(vec!["sleep".into(), "600".into()]);
        let mut user = User::with(&base, |it| it.token = hangs);
        user.say("hi");
        user.until(|it| it.progress.is_some()).await;
        let took = stops(&mut user).await;
        assert_eq!(diary.so_far(), Vec::<String>::new());
        took
    })
    .await;
}

#[tokio::test]
async fn a_flood_is_stopped_before_its_next_part_is_read() {
    let base = test_server::listen(|mut socket: test_server::Socket| async move {
        use tokio::io::AsyncWriteExt;
        socket.request().await;
        let opening = event("document_start", json!({ "id": "a", "type": "text" }));
        socket.send(format!("{STREAM}{opening}")).await;
        let flood = event("content_delta", json!({ "documentId": "a", "delta": "word " })).repeat(1000);
        while socket.stream.write_all(flood.as_bytes()).await.is_ok() {}
    })
    .await;
    for so_far in [1, 30_000] {
        let mut user = User::at(&base);
        user.say("go");
        user.until(|it| {
            it.exchanges
                .last()
                .is_some_and(|it| it.response.documents.first().is_some_and(|it| it.text().len() > so_far))
        })
        .await;
        let sent = user.link.log().last();
        stops(&mut user).await;
        let entries = user.link.log().after(sent);
        let late = entries
            .iter()
            .filter(|it| matches!(it.event, Event::ContentDelta { .. }));
        assert_eq!(late.count(), 0, "after {so_far}");
    }
}

#[tokio::test]
async fn dropping_the_link_closes_the_connection() {
    test_server::promptly("dropped", async || {
        let (base, mut diary) = gateway([Hangs(String::new())]).await;
        let user = User::at(&base);
        user.say("hi");
        diary.next().await;
        drop(user);
        diary.closed().await
    })
    .await;
}

#[tokio::test]
async fn a_gateway_that_wants_to_be_told_is_told_to_stop() {
    let opening = start(json!({ "id": "chat_7", "capabilities": ["cancel"] }));
    let (base, mut diary) = gateway([
        Hangs(stream(&[&opening])),
        Says(page("200 OK", "application/json", "{}")),
    ])
    .await;
    let mut user = User::with(&base, |it| it.token = KeySource::Given(Secret::new("t")));
    user.say("hi");
    user.until(|it| it.exchanges.last().is_some_and(|it| it.response.origin.id.is_some()))
        .await;
    diary.next().await;
    stops(&mut user).await;
    let mut seen = [diary.next().await, diary.next().await];
    seen.sort();
    assert!(
        seen[0].starts_with("POST /api/v1/chat/responses/chat_7/cancel "),
        "{seen:?}"
    );
    assert!(seen[0].to_lowercase().contains("authorization: bearer t"));
    assert_eq!(seen[1], "closed");
}

#[tokio::test]
async fn a_message_in_the_middle_of_an_answer_waits_for_its_turn() {
    let (base, mut diary) = gateway([Hangs(String::new()), answer("two")]).await;
    let mut user = User::at(&base);
    user.say("one");
    diary.next().await;
    user.say("two");
    user.link.send(Command::Cancel);
    assert_eq!(shown(user.over(2).await), ["text two", "stop"]);
}

fn question(id: &str) -> String {
    let questions = json!([{ "id": "q1", "text": "Which?", "options": [{ "id": "a", "label": "The first" }, "b"] }]);
    event(
        "document_start",
        json!({ "id": id, "type": "clarification", "sequence": 1, "metadata": { "questions": questions } }),
    )
}

#[tokio::test]
async fn an_answer_after_the_turn_is_the_next_message() {
    let ended = question("d1") + &event("document_end", json!({ "documentId": "d1" })) + &done();
    let (base, mut diary) = gateway([Ends(stream(&[&ended])), answer("thanks")]).await;
    let mut user = User::at(&base);
    user.asks("hi").await;
    user.answer(1, "d1", "a");
    user.answer(1, "d1", "b");
    assert_eq!(shown(user.over(2).await), ["text thanks", "stop"]);
    diary.next().await;
    let (_, body) = parts(&diary.next().await);
    assert_eq!(
        body["messages"][2],
        json!({
            "role": "user", "content": "Which? -> The first",
            "clarificationResponse": {
                "documentId": "d1", "outcome": "answered",
                "answers": [{ "questionId": "q1", "selectedOptionIds": ["a"] }],
            },
        })
    );
    assert_eq!(diary.so_far(), Vec::<String>::new(), "the second answer is dropped");
}

#[tokio::test]
async fn an_answer_in_the_middle_of_the_turn_waits_where_the_gateway_cannot_take_it() {
    let (seen, mut diary) = test_server::diary();
    let (go, gate) = tokio::sync::watch::channel(false);
    let base = test_server::listen(move |mut socket| {
        let (seen, mut gate) = (seen.clone(), gate.clone());
        async move {
            let (_, body) = parts(&socket.request().await);
            let messages = body["messages"].as_array().unwrap().clone();
            seen.send(messages.len()).unwrap();
            if messages.len() > 1 {
                return socket.send(stream(&[&text("doc_001", "thanks"), &done()])).await;
            }
            socket.send(stream(&[&question("d1")])).await;
            gate.wait_for(|it| *it).await.unwrap();
            socket
                .send(event("document_end", json!({ "documentId": "d1" })) + &done())
                .await;
        }
    })
    .await;
    let mut user = User::at(&base);
    user.say("hi");
    user.until(|it| it.open_question().is_some()).await;
    user.answer(1, "d1", "a");
    assert_eq!(diary.next().await, 1);
    go.send(true).unwrap();
    assert_eq!(shown(user.over(2).await), ["text thanks", "stop"]);
    assert_eq!(diary.next().await, 3);
}

#[tokio::test]
async fn an_answer_in_the_middle_of_the_turn_goes_to_a_gateway_that_can_take_it() {
    let opening = start(json!({ "id": "chat_7", "capabilities": ["live_input"] }));
    let (seen, mut diary) = test_server::diary();
    let (taken, gate) = tokio::sync::watch::channel(0);
    let taken = Arc::new(taken);
    let base = test_server::listen(move |mut socket| {
        let (seen, mut gate, taken) = (seen.clone(), gate.clone(), Arc::clone(&taken));
        let opening = opening.clone();
        async move {
            let request = socket.request().await;
            let (path, body) = parts(&request);
            if path.ends_with("/input") {
                seen.send((path, body)).unwrap();
                let first = *taken.borrow() == 0;
                let status = if first { "503 Busy" } else { "202 Accepted" };
                socket.send(page(status, "application/json", "")).await;
                taken.send_modify(|it| *it += 1);
                return;
            }
            socket.send(stream(&[&opening, &question("d1")])).await;
            gate.wait_for(|it| *it == 2).await.unwrap();
            let end = json!({ "documentId": "d1", "metadata": { "outcome": "answered" } });
            socket.send(event("document_end", end) + &done()).await;
        }
    })
    .await;
    let mut user = User::at(&base);
    user.say("hi");
    user.until(|it| it.open_question().is_some()).await;
    user.answer(1, "d1", "a");
    user.answer(1, "d1", "a");
    let lost = |it: &Transcript| {
        it.exchanges[0]
            .response
            .notices
            .iter()
            .any(|it| it.code == "answer-lost")
    };
    user.until(lost).await;
    assert!(user.transcript.open_question().is_some(), "the question is still open");
    user.answer(1, "d1", "a");
    let response = user.over(1).await;
    assert_eq!(response.documents[0].metadata["outcome"], "answered");
    for _ in 0..2 {
        let (path, body) = diary.next().await;
        assert_eq!(path, "/api/v1/chat/responses/chat_7/input");
        assert_eq!(body["documentId"], "d1");
        assert_eq!(body["answers"][0]["selectedOptionIds"], json!(["a"]));
    }
    assert!(diary.so_far().is_empty(), "an answer goes out once");
}

#[tokio::test]
async fn an_answer_to_a_closed_question_goes_nowhere() {
    let (base, mut diary) = gateway([answer("hello")]).await;
    let mut user = User::at(&base);
    user.asks("hi").await;
    user.answer(1, "d9", "a");
    user.answer(9, "d1", "a");
    user.until(|it| it.exchanges[0].response.notices.len() == 2).await;
    diary.next().await;
    assert_eq!(diary.so_far(), Vec::<String>::new());
}

#[tokio::test]
async fn a_form_that_is_closed_by_hand_closes_without_a_word() {
    let ended = question("d1") + &event("document_end", json!({ "documentId": "d1" })) + &done();
    let (base, mut diary) = gateway([Ends(stream(&[&ended]))]).await;
    let mut user = User::at(&base);
    user.asks("hi").await;
    let response = json!({ "documentId": "d1", "outcome": "cancelled" });
    user.link.send(Command::Answer {
        turn: Turn(1),
        response: serde_json::from_value(response).unwrap(),
    });
    user.until(|it| it.exchanges[0].response.documents[0].metadata.contains_key("outcome"))
        .await;
    diary.next().await;
    assert_eq!(diary.so_far(), Vec::<String>::new());
}

#[tokio::test]
async fn a_document_that_was_changed_here_travels_as_it_is_now() {
    let (base, mut diary) = gateway([answer("one"), answer("two")]).await;
    let mut user = User::at(&base);
    user.asks("first").await;
    let metadata = json!({ "pinned": true }).as_object().unwrap().clone();
    user.link.send(Command::Update {
        turn: Turn(1),
        document: "doc_001".into(),
        metadata,
    });
    user.asks("second").await;
    diary.next().await;
    let (_, body) = parts(&diary.next().await);
    assert_eq!(body["messages"][1]["documents"][0]["metadata"]["pinned"], true);
    assert_eq!(user.response(1).documents[0].metadata["pinned"], true);
}

#[tokio::test]
async fn the_models_are_those_that_the_gateway_lists() {
    let list = page("200 OK", "application/json", r#"{"data":[{"id":"m1"},{"id":"m2"},{}]}"#);
    let none = page("404 Not Found", "text/plain", "");
    let (base, _diary) = gateway([Says(list), Says(none)]).await;
    let user = User::at(&base);
    let found = user.link.ask(Query::Models).await.unwrap();
    assert_eq!(found, Reply::Models(vec!["m1".into(), "m2".into()]));
    assert!(matches!(
        user.link.ask(Query::Models).await,
        Err(AskError::Unsupported { .. })
    ));
}
