//! The gateway from outside, with limits that a test can wait for and a link that does as it is told.

mod api;
mod attached;
mod conversations;
mod facades;
mod kept;
mod openai;
mod turns;

use std::{
    future::Future,
    net::SocketAddr,
    pin::Pin,
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    sync::{mpsc, oneshot},
    task::JoinHandle,
};

use super::*;
use crate::{
    link::{About, AskError},
    protocol::{
        Command, DocumentStart, Done, Event, FileChange, Kind, Mode, Notice, Operation, Query, Reply, RestorePreview,
        Severity, Status, Turn, Usage,
    },
};

/// Nothing here takes so long unless something is wrong.
const PATIENCE: Duration = Duration::from_secs(10);

/// A link that appends what was said and leaves the rest to the test.
struct Puppet {
    log: Arc<Log>,
    told: mpsc::UnboundedSender<Command>,
}

impl Link for Puppet {
    fn log(&self) -> &Arc<Log> {
        &self.log
    }

    fn send(&self, command: Command) {
        if let Command::Submit(submit) = &command {
            self.log.append(1, Event::UserMessage(submit.message.clone()));
        }
        if let Command::Restore(_) = &command {
            let metadata = serde_json::Map::from_iter([("undone".to_owned(), true.into())]);
            let document = "e".into();
            self.log
                .append_to(Turn(1), 1, Event::DocumentUpdate { document, metadata });
            self.log
                .append(1, Event::Notice(Notice::new(Severity::Info, "did-undo", "a.rs\n2\n")));
        }
        self.told.send(command).ok();
    }

    fn about(&self) -> About {
        About {
            model: Some("puppet".to_owned()),
            ..About::default()
        }
    }

    fn ask(&self, query: Query) -> Pin<Box<dyn Future<Output = Result<Reply, AskError>> + Send>> {
        let reply = match query {
            Query::RestorePreview(_) => Reply::RestorePreview(RestorePreview {
                files: vec![FileChange {
                    path: "a.rs".to_owned(),
                    operation: Operation::Edit,
                    added: 1,
                    removed: 2,
                    patch: "-x".to_owned(),
                    conflict: None,
                    is_lost: false,
                }],
                ..RestorePreview::default()
            }),
            _ => Reply::Models(vec!["one".to_owned(), "two".to_owned()]),
        };
        Box::pin(async { Ok(reply) })
    }
}

/// A turn as the link sees it.
struct Turned {
    log: Arc<Log>,
    told: mpsc::UnboundedReceiver<Command>,
    asker: Asker,
}

impl Turned {
    fn say(&self, events: impl IntoIterator<Item = Event>) {
        for event in events {
            self.log.append(2, event);
        }
    }

    async fn message(&mut self) -> crate::protocol::Submit {
        match self.told().await {
            Command::Submit(submit) => submit,
            other => panic!("a message, not {other:?}"),
        }
    }

    async fn told(&mut self) -> Command {
        let told = tokio::time::timeout(PATIENCE, self.told.recv()).await;
        told.expect("in time").expect("somebody is there")
    }
}

struct Gateway {
    address: SocketAddr,
    turns: mpsc::UnboundedReceiver<Turned>,
    stop: oneshot::Sender<()>,
    served: JoinHandle<()>,
    visits: Arc<Mutex<Vec<String>>>,
}

/// Nothing is waited for that a test waits for, and nobody is cut because the machine is busy.
fn quick() -> Limits {
    Limits {
        head_time: PATIENCE,
        body_time: PATIENCE,
        idle_time: Duration::from_secs(1),
        write_time: PATIENCE,
        ping_interval: Duration::from_millis(100),
        failure_delay: Duration::from_millis(300),
        shutdown_time: Duration::from_secs(2),
        ..Limits::default()
    }
}

/// Whoever does not go on has no time.
fn impatient() -> Limits {
    Limits {
        head_time: Duration::from_millis(150),
        body_time: Duration::from_millis(150),
        idle_time: Duration::from_millis(300),
        write_time: Duration::from_millis(150),
        ..quick()
    }
}

impl Gateway {
    fn with(limits: Limits, max_streams: usize) -> Self {
        Self::keeping(limits, max_streams, None)
    }

    fn keeping(limits: Limits, max_streams: usize, store: Option<Store>) -> Self {
        Self::start(limits, max_streams, store, Duration::ZERO)
    }

    /// A gateway that stores nothing and waits for a reader that left.
    fn patient(limits: Limits) -> Self {
        Self::start(limits, 64, None, LINGER)
    }

    /// One that stores conversations, at this address.
    fn at(address: SocketAddr, limits: Limits, store: Store) -> Self {
        Self::listen(&address.to_string(), limits, 64, Some(store), Duration::ZERO)
    }

    fn start(limits: Limits, max_streams: usize, store: Option<Store>, grace: Duration) -> Self {
        Self::listen("127.0.0.1:0", limits, max_streams, store, grace)
    }

    fn listen(listen: &str, limits: Limits, max_streams: usize, store: Option<Store>, grace: Duration) -> Self {
        let (opened, turns) = mpsc::unbounded_channel();
        let visits = Arc::new(Mutex::new(Vec::new()));
        let seen = Arc::clone(&visits);
        let server = Server::bind(ServerOptions {
            listen: listen.to_owned(),
            token: Secret::new("secret"),
            is_token_given: true,
            allow_host: Vec::new(),
            allow_origin: Vec::new(),
            max_streams,
            store,
            linger: LINGER,
            grace,
            models: Vec::new(),
            tools: vec!["grep".to_owned()],
            can_undo: true,
            open: Box::new(move |wanted, log| {
                if wanted.request.model == "none" {
                    return Err("there is nobody to ask\n  set a key".into());
                }
                let (told, commands) = mpsc::unbounded_channel();
                let link = Puppet {
                    log: Arc::clone(&log),
                    told,
                };
                let asker = wanted.asker;
                opened
                    .send(Turned {
                        log,
                        told: commands,
                        asker,
                    })
                    .ok();
                Ok(Arc::new(link))
            }),
            log_access: Box::new(move |it| {
                seen.lock()
                    .unwrap()
                    .push(format!("{} {} {}", it.method, it.path, it.status));
            }),
            limits,
        })
        .expect("a port");
        let address = server.address();
        let (stop, stopped) = oneshot::channel();
        let served = tokio::spawn(server.run(async {
            stopped.await.ok();
        }));
        Self {
            address,
            turns,
            stop,
            served,
            visits,
        }
    }

    fn new() -> Self {
        Self::with(quick(), 64)
    }

    async fn client(&self) -> Client {
        Client(TcpStream::connect(self.address).await.expect("it listens"))
    }

    async fn post(&self, path: &str, body: &Value) -> Client {
        let mut client = self.client().await;
        client
            .send(&post(self.address, path, "secret", &body.to_string()))
            .await;
        client
    }

    async fn get(&self, path: &str, headers: &str) -> Client {
        let mut client = self.client().await;
        let host = self.address;
        let head = format!("GET {path} HTTP/1.1\r\nHost: {host}\r\nAuthorization: Bearer secret\r\n");
        client.send(&format!("{head}{headers}Connection: close\r\n\r\n")).await;
        client
    }

    async fn chat(&self, is_stream: bool) -> Client {
        let body = json!({ "model": "m", "stream": is_stream, "messages": [{ "role": "user", "content": "hi" }] });
        self.post("/api/v1/chat/completions", &body).await
    }

    async fn turn(&mut self) -> Turned {
        let turn = tokio::time::timeout(PATIENCE, self.turns.recv()).await;
        let mut turn = turn.expect("in time").expect("the server is there");
        assert!(matches!(turn.told().await, Command::Submit(_)));
        turn
    }
}

fn post(address: SocketAddr, path: &str, token: &str, body: &str) -> String {
    format!(
        "POST {path} HTTP/1.1\r\nHost: {address}\r\nAuthorization: Bearer {token}\r\nContent-Type: application/json\r\n\
         Content-Length: {}\r\n\r\n{body}",
        body.len()
    )
}

/// Limits of a server that forgets ended streams soon.
fn forgetful() -> Limits {
    Limits {
        brief_retention: Duration::from_millis(80),
        ..quick()
    }
}

/// Time that a turn goes on without readers.
const LINGER: Duration = Duration::from_millis(300);

struct Client(TcpStream);

impl Client {
    async fn send(&mut self, text: &str) {
        self.0.write_all(text.as_bytes()).await.expect("it is taken");
    }

    /// Reads until `text` came, and gives everything so far.
    async fn until(&mut self, text: &str) -> String {
        let mut seen = Vec::new();
        let reading = async {
            while !String::from_utf8_lossy(&seen).contains(text) {
                match self.0.read_u8().await {
                    Ok(byte) => seen.push(byte),
                    Err(error) => return Err(error),
                }
            }
            Ok(())
        };
        let read = tokio::time::timeout(PATIENCE, reading).await;
        let seen = String::from_utf8_lossy(&seen).into_owned();
        match read {
            Ok(Ok(())) => seen,
            other => panic!("no {text:?} but {other:?} after {seen}"),
        }
    }

    /// Reads until the server closes.
    async fn end(&mut self) -> String {
        let mut seen = Vec::new();
        let read = tokio::time::timeout(PATIENCE, self.0.read_to_end(&mut seen)).await;
        // A connection that was cut may have been reset.
        let _ = read.expect("it is closed in time");
        String::from_utf8_lossy(&seen).into_owned()
    }
}

fn start(id: &str, kind: &str, metadata: Value) -> Event {
    let Value::Object(metadata) = metadata else {
        panic!("an object")
    };
    Event::DocumentStart(DocumentStart {
        id: id.into(),
        kind: Kind::parse(kind),
        sequence: None,
        content: None,
        metadata,
    })
}

fn delta(id: &str, text: impl Into<String>) -> Event {
    Event::ContentDelta {
        document: id.into(),
        delta: text.into(),
    }
}

/// The least time of some goes: a machine with other work is slow at times, and a wrong program always.
async fn promptly(mut scenario: impl AsyncFnMut() -> Duration) {
    let mut best = Duration::MAX;
    for _ in 0..3 {
        best = best.min(scenario().await);
    }
    assert!(best < Duration::from_millis(100), "{best:?}");
}

#[tokio::test]
async fn a_silent_stream_shows_that_it_lives() {
    let mut gateway = Gateway::new();
    let mut client = gateway.chat(true).await;
    let turn = gateway.turn().await;
    client.until(": ping\n\n").await;
    client.until(": ping\n\n").await;
    turn.say([
        start("a", "text", json!({})),
        delta("a", "so"),
        Event::Done(Done::default()),
    ]);
    let rest = client.until("event: done").await;
    assert!(rest.contains("\"delta\":\"so\""), "{rest}");
}

#[tokio::test]
async fn a_client_that_goes_away_takes_the_turn_along() {
    for is_stream in [true, false] {
        promptly(async || {
            let mut gateway = Gateway::new();
            let mut client = gateway.chat(is_stream).await;
            let mut turn = gateway.turn().await;
            turn.say([start("a", "text", json!({})), delta("a", "so")]);
            if is_stream {
                client.until("\"so\"").await;
            }
            let since = Instant::now();
            drop(client);
            assert_eq!(turn.told().await, Command::Cancel);
            since.elapsed()
        })
        .await;
    }
}

#[tokio::test]
async fn a_reader_that_does_not_read_is_cut_and_costs_no_memory() {
    let mut gateway = Gateway::with(impatient(), 64);
    let client = gateway.chat(true).await;
    let mut turn = gateway.turn().await;
    turn.say([start("a", "text", json!({}))]);
    let since = Instant::now();
    // More than the systems at both ends take in.
    for _ in 0..256 {
        turn.say([delta("a", "x".repeat(64 << 10))]);
    }
    assert_eq!(turn.told().await, Command::Cancel);
    assert!(since.elapsed() >= impatient().write_time);
    drop(client);
}

#[tokio::test]
async fn a_reader_that_is_slow_gets_everything() {
    let limits = Limits {
        write_time: Duration::from_secs(3),
        ..quick()
    };
    let mut gateway = Gateway::with(limits, 64);
    let mut client = gateway.chat(true).await;
    let turn = gateway.turn().await;
    turn.say([
        start("a", "text", json!({})),
        delta("a", "x".repeat(2 << 20)),
        Event::Done(Done::default()),
    ]);
    client.until("\"x").await;
    let mut bytes = vec![0; 256 << 10];
    let mut count = 0;
    loop {
        // All of it takes longer than a socket may stand still, no part of it does.
        tokio::time::sleep(limits.write_time / 6).await;
        let read = client.0.read(&mut bytes).await.expect("it is not cut");
        count += bytes.iter().take(read).filter(|it| **it == b'x').count();
        if read == 0 || String::from_utf8_lossy(bytes.get(..read).unwrap_or_default()).contains("event: done") {
            break;
        }
    }
    assert!(count > (2 << 20) - (256 << 10), "{count}");
}

#[tokio::test]
async fn whoever_does_not_go_on_is_not_waited_for() {
    let gateway = Gateway::with(impatient(), 64);
    let host = gateway.address;
    let cases = [
        ("says nothing", String::new(), ""),
        ("half a head", format!("GET /healthz HTTP/1.1\r\nHost: {host}\r\n"), ""),
        (
            "is done",
            format!("GET /healthz HTTP/1.1\r\nHost: {host}\r\n\r\n"),
            "200 OK",
        ),
        (
            "half a body",
            post(host, "/api/v1/chat/completions", "secret", "{\"messages\"").replace("Length: 11", "Length: 99"),
            "408 Request Timeout",
        ),
    ];
    for (name, text, wanted) in cases {
        let mut client = gateway.client().await;
        client.send(&text).await;
        let seen = client.end().await;
        assert!(
            seen.contains(wanted) && seen.is_empty() == wanted.is_empty(),
            "{name}: {seen}"
        );
    }
}

#[tokio::test]
async fn too_many_connections_are_turned_away_until_one_is_free() {
    let limits = Limits {
        connections: 2,
        idle_time: PATIENCE,
        ..quick()
    };
    let mut gateway = Gateway::with(limits, 64);
    let health = format!("GET /healthz HTTP/1.1\r\nHost: {}\r\n\r\n", gateway.address);
    let (mut guests, mut turns) = (Vec::new(), Vec::new());
    for _ in 0..2 {
        guests.push(gateway.chat(true).await);
        turns.push(gateway.turn().await);
    }
    let refused = gateway.client().await.end().await;
    assert!(
        refused.starts_with("HTTP/1.1 503") && refused.contains("Retry-After"),
        "{refused}"
    );
    guests.pop();
    let let_in = async {
        loop {
            let mut client = gateway.client().await;
            client.0.write_all(health.as_bytes()).await.ok();
            let mut seen = vec![0; 12];
            if client.0.read_exact(&mut seen).await.is_ok() && seen == b"HTTP/1.1 200" {
                return;
            }
        }
    };
    tokio::time::timeout(PATIENCE, let_in)
        .await
        .expect("the place is free again");
}

#[tokio::test]
async fn who_asks_nothing_keeps_nobody_out() {
    let limits = Limits {
        connections: 4,
        idle_time: PATIENCE,
        head_time: PATIENCE,
        ..quick()
    };
    let gateway = Gateway::with(limits, 64);
    let health = format!("GET /healthz HTTP/1.1\r\nHost: {}\r\n\r\n", gateway.address);
    let mut guests = Vec::new();
    for said in ["", "GET /healthz HT", &health, "POST / HTTP/1.1\r\nHost: x\r\n"]
        .iter()
        .cycle()
        .take(40)
    {
        let mut client = gateway.client().await;
        client.send(said).await;
        if *said == health {
            client.until("ok").await;
        }
        guests.push(client);
    }
    let mut client = gateway.client().await;
    client.send(&health).await;
    assert!(client.until("ok").await.starts_with("HTTP/1.1 200"));
}

#[tokio::test]
async fn a_stream_is_the_last_answer_of_its_connection() {
    let mut gateway = Gateway::new();
    let mut client = gateway.chat(true).await;
    let turn = gateway.turn().await;
    client
        .send(&format!("GET /healthz HTTP/1.1\r\nHost: {}\r\n\r\n", gateway.address))
        .await;
    turn.say([start("a", "text", json!({})), Event::Done(Done::default())]);
    let said = client.end().await;
    let (head, body) = said.split_once("\r\n\r\n").expect("a head");
    for header in [
        "connection: close",
        "transfer-encoding: chunked",
        "cache-control: no-store",
    ] {
        assert_eq!(head.matches(header).count(), 1, "{head}");
    }
    assert!(body.ends_with("\r\n0\r\n\r\n") && !said.contains("\"ok\""), "{said}");
    // What cannot be sent in chunks ends with the connection.
    let mut client = gateway.client().await;
    let body = json!({ "model": "m", "stream": true, "messages": [{ "role": "user", "content": "hi" }] });
    let asked = post(gateway.address, "/api/v1/chat/completions", "secret", &body.to_string());
    client.send(&asked.replacen("HTTP/1.1", "HTTP/1.0", 1)).await;
    gateway.turn().await.say([Event::Done(Done::default())]);
    let said = client.end().await;
    assert!(said.contains("event: done") && !said.contains("chunked"), "{said}");
}

#[tokio::test]
async fn no_more_answers_run_than_may() {
    let mut gateway = Gateway::with(quick(), 1);
    let mut first = gateway.chat(true).await;
    let turn = gateway.turn().await;
    let refused = gateway.chat(false).await.until("}}").await;
    assert!(refused.starts_with("HTTP/1.1 503"), "{refused}");
    assert!(
        refused.contains("retry-after: 5") && refused.contains("RATE_LIMITED"),
        "{refused}"
    );
    turn.say([Event::Done(Done::default())]);
    first.until("event: done").await;
    let freed = async { while gateway.chat(true).await.until("\r\n").await.contains("503") {} };
    tokio::time::timeout(PATIENCE, freed)
        .await
        .expect("the place is free again");
}

#[tokio::test]
async fn guesses_wait_and_the_right_token_never_does() {
    let gateway = Gateway::new();
    let ask = async |token: &str| {
        let since = Instant::now();
        let mut client = gateway.client().await;
        client
            .send(&post(gateway.address, "/api/v1/chat/plan", token, "{}"))
            .await;
        let seen = client.until("}}").await;
        (seen, since.elapsed())
    };
    for _ in 0..10 {
        let (seen, _) = ask("guess").await;
        assert!(
            seen.starts_with("HTTP/1.1 401") && seen.contains("www-authenticate: Bearer\r\n"),
            "{seen}"
        );
    }
    let (seen, took) = ask("guess").await;
    assert!(
        seen.starts_with("HTTP/1.1 401") && took >= quick().failure_delay,
        "{took:?}"
    );
    promptly(async || {
        let (seen, took) = ask("secret").await;
        assert!(seen.starts_with("HTTP/1.1 400"), "{seen}");
        took
    })
    .await;
}

#[tokio::test]
async fn a_server_that_stops_says_what_its_turns_have_taken() {
    let mut gateway = Gateway::new();
    let mut stream = gateway.chat(true).await;
    let mut turn = gateway.turn().await;
    turn.say([start("a", "text", json!({})), delta("a", "so")]);
    stream.until("\"so\"").await;
    gateway.stop.send(()).expect("it runs");
    assert_eq!(turn.told().await, Command::Cancel);
    turn.say([
        end("a", Some("so"), json!({ "incomplete": true })),
        Event::Done(Done {
            usage: Some(Usage {
                prompt_tokens: 11,
                completion_tokens: 1,
                total_tokens: 12,
            }),
            status: Some(Status::Error),
            ..Done::default()
        }),
    ]);
    let said = stream.end().await;
    assert!(
        said.contains("\"totalTokens\":12") && said.contains("\"status\":\"error\""),
        "{said}"
    );
    assert_eq!(said.matches("event: done").count(), 1);
    gateway.served.await.expect("it ends");
}

#[tokio::test]
async fn the_last_word_of_a_server_that_stops_is_an_error_document() {
    let mut gateway = Gateway::new();
    let mut stream = gateway.chat(true).await;
    let mut turn = gateway.turn().await;
    let mut whole = gateway.chat(false).await;
    let mut other = gateway.turn().await;
    for it in [&turn, &other] {
        it.say([start("a", "text", json!({})), delta("a", "so")]);
    }
    stream.until("\"so\"").await;
    let address = gateway.address;
    let since = Instant::now();
    gateway.stop.send(()).expect("it runs");
    let said = stream.end().await;
    let order = [
        "event: document_end",
        "\"incomplete\":true",
        "\"type\":\"error\"",
        "shutting down",
        "event: done",
        "\"status\":\"error\"",
    ];
    let found: Vec<_> = order.iter().map(|it| said.find(it)).collect();
    assert!(
        found.iter().all(Option::is_some) && found.is_sorted(),
        "{found:?} {said}"
    );
    assert_eq!(said.matches("event: done").count(), 1);
    let said = whole.end().await;
    assert!(
        said.starts_with("HTTP/1.1 503") && said.contains("\"status\":\"error\""),
        "{said}"
    );
    assert!(
        said.contains("\"content\":\"so\"") && said.contains("shutting down"),
        "{said}"
    );
    assert_eq!(
        (turn.told().await, other.told().await),
        (Command::Cancel, Command::Cancel)
    );
    gateway.served.await.expect("it ends");
    assert!(since.elapsed() < PATIENCE);
    assert!(TcpStream::connect(address).await.is_err(), "nobody listens any more");
}

#[tokio::test]
async fn a_server_that_stops_does_not_wait_for_a_reader_that_does_not_read() {
    let limits = Limits {
        write_time: PATIENCE * 10,
        ..quick()
    };
    let mut gateway = Gateway::with(limits, 64);
    let mut client = gateway.chat(true).await;
    let turn = gateway.turn().await;
    turn.say([start("a", "text", json!({})), delta("a", "x".repeat(4 << 20))]);
    client.until("\"x").await;
    gateway.stop.send(()).expect("it runs");
    tokio::time::timeout(PATIENCE, gateway.served)
        .await
        .expect("it ends")
        .expect("it does not panic");
}

fn question() -> [Event; 2] {
    let questions =
        json!({ "questions": [{ "id": "q1", "text": "Which?", "options": [{ "id": "x", "label": "X" }] }] });
    let Value::Object(metadata) = questions else {
        panic!("an object")
    };
    [
        start("q", "clarification", json!({ "kind": "question" })),
        Event::MetadataDelta {
            document: "q".into(),
            metadata,
            append: Vec::new(),
        },
    ]
}

/// The name under which a stream's response runs.
fn id_in(said: &str) -> String {
    let (_, rest) = said.split_once("\"id\":\"").expect("an id");
    rest.split('"').next().expect("a name").to_owned()
}

#[tokio::test]
async fn a_question_is_answered_while_the_stream_runs() {
    let mut gateway = Gateway::with(forgetful(), 64);
    let mut stream = gateway.chat(true).await;
    let mut turn = gateway.turn().await;
    turn.say([Event::ResponseStart(crate::protocol::ResponseStart {
        id: Some("chat_theirs".into()),
        capabilities: vec!["live_input".to_owned(), "stateful".to_owned()],
        ..crate::protocol::ResponseStart::default()
    })]);
    turn.say(question());
    let said = stream.until("Which?").await;
    assert!(said.contains("\"capabilities\":[\"cancel\",\"live_input\"]"), "{said}");
    assert!(!said.contains("theirs"), "{said}");
    let id = id_in(&said);
    let path = |id: &str| format!("/api/v1/chat/responses/{id}/input");
    let answer = json!({ "documentId": "q", "outcome": "answered",
                         "answers": [{ "questionId": "q1", "selectedOptionIds": ["x"] }] });
    for (name, id, body, wanted) in [
        ("another response", "chat_other", answer.clone(), "404"),
        ("a path that leads elsewhere", "..%2f..%2fx", answer.clone(), "404"),
        (
            "another document",
            id.as_str(),
            json!({ "documentId": "z", "outcome": "skipped" }),
            "404",
        ),
        ("no answer", id.as_str(), json!({ "answers": 7 }), "400"),
        ("the answer", id.as_str(), answer.clone(), "202"),
    ] {
        let said = gateway.post(&path(id), &body).await.until("\r\n").await;
        assert!(said.contains(wanted), "{name}: {said}");
    }
    let Command::Answer { turn: of, response } = turn.told().await else {
        panic!("an answer")
    };
    assert_eq!((of.0, response.document_id.as_str()), (1, "q"));
    let outcome = json!({ "outcome": "answered", "answers": answer["answers"] });
    let Value::Object(metadata) = outcome else {
        panic!("an object")
    };
    turn.say([Event::DocumentEnd {
        document: "q".into(),
        final_content: None,
        metadata,
    }]);
    stream.until("event: document_end").await;
    let said = gateway.post(&path(&id), &answer).await.until("\r\n").await;
    assert!(said.contains("409"), "{said}");
    let said = gateway
        .post(&format!("/api/v1/chat/responses/{id}/cancel"), &json!({}))
        .await
        .until("\r\n")
        .await;
    assert!(said.contains("202"), "{said}");
    assert_eq!(turn.told().await, Command::Cancel);
    turn.say([Event::Done(Done::default())]);
    stream.until("event: done").await;
    let gone = async {
        while !gateway
            .post(&path(&id), &answer)
            .await
            .until("\r\n")
            .await
            .contains("410")
        {}
    };
    tokio::time::timeout(PATIENCE, gone)
        .await
        .expect("the response is forgotten");
}

#[tokio::test]
async fn a_question_ends_an_answer_that_is_one_object() {
    let mut gateway = Gateway::new();
    let mut client = gateway.chat(false).await;
    let mut turn = gateway.turn().await;
    turn.say(question());
    let said = client.until("awaiting_input\"").await;
    assert!(
        said.starts_with("HTTP/1.1 200") && said.contains("\"status\":\"completed\""),
        "{said}"
    );
    assert!(said.contains("Which?") && !said.contains("\"outcome\""), "{said}");
    assert_eq!(turn.told().await, Command::Cancel);
}

#[tokio::test]
async fn a_link_that_cannot_be_had_is_an_error_before_the_stream() {
    let gateway = Gateway::new();
    let body = json!({ "model": "none", "stream": true, "messages": [{ "role": "user", "content": "hi" }] });
    let said = gateway.post("/api/v1/chat/completions", &body).await.until("}}").await;
    assert!(said.starts_with("HTTP/1.1 502"), "{said}");
    assert!(
        said.contains("there is nobody to ask\"") && said.contains("set a key"),
        "{said}"
    );
}

#[tokio::test]
async fn a_link_that_cannot_answer_ends_the_response() {
    let mut gateway = Gateway::new();
    let notice = Notice {
        severity: Severity::Error,
        code: "nobody-there".to_owned(),
        message: "the agent has ended".to_owned(),
        document: None,
    };
    // The log of a link that takes no message has none.
    struct Dead(Arc<Log>, Notice);
    impl Link for Dead {
        fn log(&self) -> &Arc<Log> {
            &self.0
        }
        fn send(&self, _: Command) {
            self.0.append(1, Event::Notice(self.1.clone()));
        }
        fn about(&self) -> About {
            About::default()
        }
        fn ask(&self, _: Query) -> Pin<Box<dyn Future<Output = Result<Reply, AskError>> + Send>> {
            Box::pin(async {
                Err(AskError::Unsupported {
                    peer: "nobody".to_owned(),
                })
            })
        }
    }
    let server = Server::bind(ServerOptions {
        listen: "0".to_owned(),
        token: Secret::new("secret"),
        is_token_given: true,
        allow_host: Vec::new(),
        allow_origin: Vec::new(),
        max_streams: 1,
        store: None,
        linger: Duration::ZERO,
        grace: Duration::ZERO,
        models: Vec::new(),
        tools: Vec::new(),
        can_undo: false,
        open: Box::new(move |_, log| Ok(Arc::new(Dead(log, notice.clone())))),
        log_access: Box::new(|_| {}),
        limits: quick(),
    })
    .expect("a port");
    gateway.address = server.address();
    tokio::spawn(server.run(std::future::pending()));
    for is_stream in [true, false] {
        let said = gateway.chat(is_stream).await.until("\"finishReason\":\"error\"").await;
        assert!(
            said.contains("the agent has ended") && said.contains("LLM_UNAVAILABLE"),
            "{said}"
        );
    }
}

#[tokio::test]
async fn the_path_of_plans_plans() {
    let mut gateway = Gateway::new();
    let body = json!({ "model": "m", "mode": "agent", "messages": [{ "role": "user", "content": "hi" }] });
    for (path, wanted) in [
        ("/api/v1/chat/plan", Mode::Plan),
        ("/api/v1/chat/completions", Mode::Agent),
    ] {
        let _client = gateway.post(path, &body).await;
        let mut turn = gateway.turns.recv().await.expect("a turn");
        let Command::Submit(submit) = turn.told().await else {
            panic!("a message")
        };
        assert_eq!((submit.mode, submit.model.as_deref()), (wanted, Some("m")), "{path}");
    }
}

#[tokio::test]
async fn visits_are_noted_without_what_was_said() {
    let gateway = Gateway::new();
    let said = gateway.get("/v1/models?key=secret", "").await.end().await;
    assert!(said.starts_with("HTTP/1.1 200"), "{said}");
    let noted = async {
        while gateway.visits.lock().unwrap().is_empty() {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(PATIENCE, noted).await.expect("it is noted");
    assert_eq!(*gateway.visits.lock().unwrap(), ["GET /v1/models 200"]);
}

#[test]
fn addresses_are_written_in_few_ways() {
    for (text, wanted) in [
        ("127.0.0.1:8643", Some("127.0.0.1:8643")),
        ("[::1]:80", Some("[::1]:80")),
        ("localhost:0", Some("127.0.0.1:0")),
        (" 8643 ", Some("127.0.0.1:8643")),
        ("0.0.0.0:1", Some("0.0.0.0:1")),
        ("example.org:80", None),
        ("localhost", None),
        ("99999", None),
        ("", None),
    ] {
        assert_eq!(address(text).ok().map(|it| it.to_string()).as_deref(), wanted, "{text}");
    }
}

#[tokio::test]
async fn other_machines_are_let_in_only_with_a_token_of_ones_own() {
    let bind = |token: &str, is_token_given| {
        Server::bind(ServerOptions {
            listen: "0.0.0.0:0".to_owned(),
            token: Secret::new(token),
            is_token_given,
            allow_host: Vec::new(),
            allow_origin: Vec::new(),
            max_streams: 1,
            store: None,
            linger: Duration::ZERO,
            grace: Duration::ZERO,
            models: Vec::new(),
            tools: Vec::new(),
            can_undo: false,
            open: Box::new(|_, _| Err("nobody".into())),
            log_access: Box::new(|_| {}),
            limits: Limits::default(),
        })
    };
    let strong = "5f0e8c1d2b3a49788f9e0d1c2b3a4958";
    assert!(matches!(bind(strong, false), Err(ServeError::Token(_))));
    assert!(matches!(bind("short", true), Err(ServeError::Token(_))));
    assert!(bind(strong, true).is_ok());
}

/// Returns an answer's body without the marks of chunks.
fn body_of(said: &str) -> String {
    let (head, body) = said.split_once("\r\n\r\n").expect("a head");
    if !head.to_lowercase().contains("transfer-encoding: chunked") {
        return body.to_owned();
    }
    let (mut rest, mut whole) = (body, String::new());
    while let Some((size, more)) = rest.split_once("\r\n") {
        let size = usize::from_str_radix(size, 16).expect("a size");
        whole.push_str(more.get(..size).expect("a whole chunk"));
        rest = more.get(size..).expect("its end").trim_start_matches("\r\n");
    }
    whole
}

fn json_of(said: &str) -> Value {
    serde_json::from_str(&body_of(said)).unwrap_or_else(|error| panic!("{error}: {said}"))
}

fn end(id: &str, content: Option<&str>, metadata: Value) -> Event {
    let Value::Object(metadata) = metadata else {
        panic!("an object")
    };
    Event::DocumentEnd {
        document: id.into(),
        final_content: content.map(Into::into),
        metadata,
    }
}
