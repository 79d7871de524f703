//! `sheaf serve`: the real binary as a gateway, asked by strangers and by friends.

use std::{
    io::{BufRead as _, BufReader, Read as _, Write as _},
    net::{SocketAddr, TcpListener, TcpStream},
    path::Path,
    process::{Child, Command},
    sync::mpsc,
    time::{Duration, Instant},
};

use serde_json::{Value, json};
use sheaf::protocol::{
    Mode, Response,
    codec::{Decoder, Identity, PING},
};

use crate::{
    model::{Model, Script, query, words},
    print::{home, sheaf, with_model},
};

/// Only a failure waits for so long.
const PATIENCE: Duration = Duration::from_secs(30);

pub const TOKEN: &str = "a-token-for-tests";

/// A running gateway. Gone with its test.
pub struct Gateway {
    pub address: SocketAddr,
    pub child: Child,
    /// What it said when it started.
    pub said: String,
}

impl Gateway {
    pub fn start(mut command: Command, arguments: &[&str]) -> Self {
        command.env("SHEAF_SERVE_TOKEN", TOKEN);
        Self::as_it_stands(command, arguments)
    }

    fn as_it_stands(mut command: Command, arguments: &[&str]) -> Self {
        command.args(["serve", "--listen", "127.0.0.1:0"]).args(arguments);
        let mut child = command.spawn().expect("it starts");
        let mut lines = BufReader::new(child.stdout.take().expect("it is piped"));
        let mut said = String::new();
        while !said.contains("tools:") {
            let mut line = String::new();
            assert!(
                lines.read_line(&mut line).expect("it is text") > 0,
                "it ended after {said:?}"
            );
            said.push_str(&line);
        }
        let (_, address) = said.split_once("http://").expect("an address");
        let address = address.lines().next().expect("a line").parse().expect("an address");
        Self { address, child, said }
    }

    pub fn replay(home: &Path, file: &str) -> Self {
        Self::start(sheaf(home), &["--replay", file, "--speed", "max"])
    }

    pub fn terminate(&self) {
        let id = rustix::process::Pid::from_child(&self.child);
        rustix::process::kill_process(id, rustix::process::Signal::TERM).expect("it runs");
    }

    pub fn connect(&self) -> TcpStream {
        let socket = TcpStream::connect(self.address).expect("it listens");
        socket.set_read_timeout(Some(PATIENCE)).expect("a socket");
        socket
    }

    /// Sends the bytes as they stand and reads until the gateway closes.
    pub fn say(&self, bytes: &[u8]) -> Answer {
        let mut socket = self.connect();
        // A gateway that has seen enough may answer before it has read everything.
        let _ = socket.write_all(bytes);
        Answer::read(&mut socket)
    }

    /// A request with everything as it should be, and `Connection: close`.
    pub fn post(&self, path: &str, body: &Value) -> Answer {
        self.say(&request(self.address, path, &body.to_string()))
    }

    pub fn chat(&self, body: &Value) -> Answer {
        self.post("/api/v1/chat/completions", body)
    }
}

impl Drop for Gateway {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

pub fn request(address: SocketAddr, path: &str, body: &str) -> Vec<u8> {
    format!(
        "POST {path} HTTP/1.1\r\nHost: {address}\r\nAuthorization: Bearer {TOKEN}\r\nConnection: close\r\n\
         Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    )
    .into_bytes()
}

pub struct Answer {
    pub status: u16,
    /// In lower case, one per line.
    pub headers: String,
    pub body: String,
}

impl Answer {
    fn read(socket: &mut TcpStream) -> Self {
        let mut bytes = Vec::new();
        let read = socket.read_to_end(&mut bytes);
        let text = String::from_utf8_lossy(&bytes).into_owned();
        let Some((head, body)) = text.split_once("\r\n\r\n") else {
            panic!("no answer, {read:?}: {text:?}")
        };
        let status = head.split(' ').nth(1).and_then(|it| it.parse().ok()).expect("a status");
        let headers = head.to_lowercase();
        let body = if headers.contains("transfer-encoding: chunked") {
            let head_bytes = bytes.windows(4).position(|it| it == b"\r\n\r\n").expect("a head") + 4;
            String::from_utf8_lossy(&joined(&bytes[head_bytes..])).into_owned()
        } else {
            body.to_owned()
        };
        Self { status, headers, body }
    }

    pub fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error}: {}", self.body))
    }

    fn code(&self) -> String {
        self.json()["error"]["code"].as_str().unwrap_or_default().to_owned()
    }
}

/// A body without the marks of its chunks. A chunk may end inside a letter.
fn joined(mut chunks: &[u8]) -> Vec<u8> {
    let mut body = Vec::new();
    while let Some(at) = chunks.windows(2).position(|it| it == b"\r\n") {
        let (size, rest) = (&chunks[..at], &chunks[at + 2..]);
        let size = std::str::from_utf8(size).expect("a size");
        let size = usize::from_str_radix(size, 16).expect("a size");
        body.extend_from_slice(rest.get(..size).expect("a whole chunk"));
        chunks = rest.get(size + 2..).expect("the end of a chunk");
    }
    body
}

pub fn messages(texts: &[&str]) -> Value {
    let roles = ["user", "assistant"].iter().cycle();
    let messages = texts
        .iter()
        .zip(roles)
        .map(|(text, role)| json!({ "role": role, "content": text }));
    messages.collect()
}

pub fn tour() -> String {
    format!("{}/assets/tour/tour.jsonl", env!("CARGO_MANIFEST_DIR"))
}

#[test]
fn strangers_are_refused_before_anything_is_read() {
    let home = home();
    let gateway = Gateway::replay(home.path(), &tour());
    let host = gateway.address.to_string();
    let port = gateway.address.port();
    let get = |head: &str| format!("GET {head}Connection: close\r\n\r\n");
    let post = |headers: &str| {
        format!(
            "POST /api/v1/chat/completions HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\nContent-Length: 2\r\n{headers}\r\n{{}}"
        )
    };
    let auth = format!("Authorization: Bearer {TOKEN}\r\n");
    let media = "Content-Type: application/json\r\n";
    let many = "X-Field: y\r\n".repeat(100);
    let long = format!("X-Long: {}\r\n", "y".repeat(70_000));
    let cases = [
        ("health", get(&format!("/healthz HTTP/1.1\r\nHost: {host}\r\n")), 200),
        (
            "health by name",
            get(&format!("/healthz HTTP/1.1\r\nHost: localhost:{port}\r\n")),
            200,
        ),
        ("another host", get("/healthz HTTP/1.1\r\nHost: evil.example\r\n"), 421),
        ("another port", get("/healthz HTTP/1.1\r\nHost: localhost:1\r\n"), 421),
        ("no host", get("/healthz HTTP/1.1\r\n"), 400),
        (
            "two hosts",
            get(&format!("/healthz HTTP/1.1\r\nHost: {host}\r\nHost: {host}\r\n")),
            400,
        ),
        (
            "a whole address",
            get(&format!("http://{host}/healthz HTTP/1.1\r\nHost: {host}\r\n")),
            400,
        ),
        (
            "a page",
            get(&format!(
                "/healthz HTTP/1.1\r\nHost: {host}\r\nOrigin: http://{host}\r\n"
            )),
            403,
        ),
        (
            "no page",
            get(&format!("/healthz HTTP/1.1\r\nHost: {host}\r\nOrigin: null\r\n")),
            403,
        ),
        ("no token", post(media), 401),
        (
            "a wrong token",
            post(&format!("{media}Authorization: Bearer x\r\n")),
            401,
        ),
        ("two tokens", post(&format!("{media}{auth}{auth}")), 401),
        ("basic", post(&format!("{media}Authorization: Basic {TOKEN}\r\n")), 401),
        (
            "a path that is none, without a token",
            get(&format!("/x HTTP/1.1\r\nHost: {host}\r\n")),
            401,
        ),
        (
            "a path that is none",
            get(&format!("/x HTTP/1.1\r\nHost: {host}\r\n{auth}")),
            404,
        ),
        (
            "another method",
            get(&format!("/api/v1/chat/plan HTTP/1.1\r\nHost: {host}\r\n{auth}")),
            405,
        ),
        ("no type", post(&auth), 415),
        ("a form", post(&format!("{auth}Content-Type: text/plain\r\n")), 415),
        ("too many fields", post(&format!("{auth}{media}{many}")), 431),
        ("too long a field", post(&format!("{auth}{media}{long}")), 431),
        (
            "two lengths",
            post(&format!("{auth}{media}Transfer-Encoding: chunked\r\n")),
            400,
        ),
        (
            "two lengths that differ",
            post(&format!("{auth}{media}Content-Length: 3\r\n")),
            400,
        ),
        ("no HTTP", "hello\r\n\r\n".to_owned(), 400),
        ("an empty object", post(&format!("{auth}{media}")), 400),
    ];
    for (name, text, wanted) in cases {
        let answer = gateway.say(text.as_bytes());
        assert_eq!(answer.status, wanted, "{name}: {}", answer.body);
        assert!(!answer.headers.contains("access-control"), "{name}: {}", answer.headers);
        if wanted == 401 {
            assert!(answer.headers.contains("www-authenticate: bearer"), "{name}");
            assert_eq!(answer.code(), "UNAUTHORIZED", "{name}");
        }
        if matches!(wanted, 403 | 404 | 405 | 415 | 421) {
            assert!(!answer.code().is_empty(), "{name}: {}", answer.body);
        }
    }
}

#[test]
fn a_page_that_is_listed_may_call() {
    let home = home();
    let arguments = [
        "--replay",
        &tour(),
        "--allow-origin",
        "https://app.example",
        "--allow-host",
        "docs.example",
    ];
    let gateway = Gateway::start(sheaf(home.path()), &arguments);
    let ask = |method: &str, origin: &str| {
        let text = format!(
            "{method} /api/v1/chat/completions HTTP/1.1\r\nHost: docs.example\r\nOrigin: {origin}\r\n\
             Access-Control-Request-Method: POST\r\nConnection: close\r\n\r\n"
        );
        gateway.say(text.as_bytes())
    };
    let preflight = ask("OPTIONS", "https://app.example");
    assert_eq!(preflight.status, 204);
    for header in [
        "allow-origin: https://app.example",
        "allow-headers: authorization, content-type, last-event-id",
        "allow-methods: get, post",
    ] {
        assert!(
            preflight.headers.contains(&format!("access-control-{header}")),
            "{}",
            preflight.headers
        );
    }
    let refused = ask("POST", "https://app.example");
    assert_eq!(refused.status, 401, "a page has to show the token as well");
    assert!(
        refused
            .headers
            .contains("access-control-allow-origin: https://app.example")
    );
    let other = ask("OPTIONS", "https://evil.example");
    assert_eq!(other.status, 403);
    assert!(!other.headers.contains("access-control"), "{}", other.headers);
}

#[test]
fn a_body_that_is_too_large_is_refused_by_name_of_the_limit() {
    let home = home();
    let gateway = Gateway::replay(home.path(), &tour());
    let head = |length: &str| {
        format!(
            "POST /api/v1/chat/completions HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {TOKEN}\r\n\
             Content-Type: application/json\r\n{length}\r\n\r\n",
            gateway.address
        )
    };
    let said = gateway.say(head("Content-Length: 33554433").as_bytes());
    assert_eq!(said.status, 413);
    assert!(said.body.contains("32 MiB"), "{}", said.body);
    let mut sent = head("Content-Length: 33554433").into_bytes();
    sent.resize(sent.len() + (33 << 20), b' ');
    assert_eq!(gateway.say(&sent).status, 413, "who sends it all hears it, too");
    let mut chunks = head("Transfer-Encoding: chunked").into_bytes();
    let chunk = [b"100000\r\n".as_slice(), &vec![b' '; 1 << 20], b"\r\n"].concat();
    for _ in 0..33 {
        chunks.extend_from_slice(&chunk);
    }
    assert_eq!(gateway.say(&chunks).status, 413, "in chunks");
    let body = format!(
        "{}{}",
        " ".repeat(31 << 20),
        json!({ "model": "m", "messages": messages(&["a", "b", "c"]) })
    );
    assert_eq!(
        gateway
            .say(&request(gateway.address, "/api/v1/chat/plan", &body))
            .status,
        200
    );
}

#[test]
fn a_body_in_chunks_is_read_and_ends_the_connection() {
    let home = home();
    let gateway = Gateway::replay(home.path(), &tour());
    let body = json!({ "model": "m", "messages": messages(&["a", "b", "c"]) }).to_string();
    let (one, two) = body.split_at(20);
    let chunks = format!("{:x}\r\n{one}\r\n{:x}\r\n{two}\r\n0\r\n\r\n", one.len(), two.len());
    let text = format!(
        "POST /api/v1/chat/plan HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {TOKEN}\r\n\
         Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n{chunks}",
        gateway.address
    );
    let answer = gateway.say(text.as_bytes());
    assert_eq!(answer.status, 200);
    assert!(answer.headers.contains("connection: close"));
}

#[test]
fn requests_that_make_no_sense_are_explained() {
    let home = home();
    let gateway = Gateway::replay(home.path(), &tour());
    let cases = [
        ("not JSON", "{", "the body is not JSON"),
        ("nothing", "", "the body is not JSON"),
        ("a list", "[]", "the request is not a JSON object"),
        ("no messages", r#"{"model":"m"}"#, "`messages` is missing"),
        ("empty messages", r#"{"messages":[]}"#, "`messages` is empty"),
        (
            "messages that are none",
            r#"{"messages":"hi"}"#,
            "`messages` has to be a list of messages",
        ),
        (
            "no role",
            r#"{"messages":[{"content":"hi"}]}"#,
            "`messages[0].role` is missing",
        ),
        (
            "no user",
            r#"{"messages":[{"role":"assistant","content":"hi"}]}"#,
            "the last of `messages` has to be the user's",
        ),
        (
            "a stream of seven",
            r#"{"stream":[7],"messages":[{"role":"user","content":"hi"}]}"#,
            "`stream` has to be true or false",
        ),
        ("deep", &"[".repeat(100_000), "the body is not JSON"),
    ];
    for (name, body, wanted) in cases {
        let answer = gateway.say(&request(gateway.address, "/api/v1/chat/completions", body));
        assert_eq!(answer.status, 400, "{name}");
        assert_eq!(answer.json()["error"]["message"], wanted, "{name}");
        assert!(answer.headers.contains("content-type: application/json"), "{name}");
    }
}

fn identity() -> Identity {
    Identity::local("", Mode::Agent, 0)
}

/// The response that a stream comes to, without what differs from run to run.
fn folded(stream: &str, is_named: bool) -> Value {
    let mut decoder = Decoder::new(identity());
    let mut response = Response::default();
    let mut last = 0_u64;
    let mut take = |name: Option<&str>, data: &str| {
        for event in decoder.frame(name, data).expect("it is the protocol") {
            response.apply(&event, 0);
        }
    };
    for frame in stream.split_terminator("\n\n").filter(|it| *it != PING.trim_end()) {
        let mut lines: Vec<_> = frame.lines().collect();
        if lines != ["data: [DONE]"] {
            let id = lines.remove(0).strip_prefix("id: ").expect("a place to come back to");
            last += 1;
            assert_eq!(id, last.to_string(), "events are counted");
        }
        match lines.as_slice() {
            [name, data] if is_named => take(name.strip_prefix("event: "), data.strip_prefix("data: ").expect("data")),
            [data] if !is_named => take(None, data.strip_prefix("data: ").expect("data")),
            other => panic!("{other:?}"),
        }
    }
    assert!(response.notices.is_empty(), "{:?}", response.notices);
    same(response.to_json())
}

fn same(mut response: Value) -> Value {
    assert!(
        response["id"].as_str().is_some_and(|it| it.starts_with("chat_0")),
        "{}",
        response["id"]
    );
    response["id"] = Value::Null;
    if let Some(members) = response.as_object_mut() {
        members.remove("capabilities");
    }
    response
}

#[test]
fn both_dialects_and_the_object_say_the_same() {
    let home = home();
    let gateway = Gateway::replay(home.path(), &tour());
    let body = |is_stream: bool, dialect: &str| {
        json!({ "model": "m", "stream": is_stream, "messages": messages(&["a", "b", "c"]),
                "streamOptions": { "dialect": dialect } })
    };
    let whole = gateway.chat(&body(false, "data"));
    assert!(
        whole.headers.contains("content-type: application/json"),
        "{}",
        whole.headers
    );
    let whole = same(whole.json());
    assert_eq!(whole["mode"], "plan", "as it was recorded");
    let kinds: Vec<_> = whole["documents"]
        .as_array()
        .expect("documents")
        .iter()
        .map(|it| &it["type"])
        .collect();
    assert_eq!(kinds, ["tool_call", "plan", "text"]);

    let named = gateway.chat(&body(true, "named"));
    assert!(
        named.headers.contains("content-type: text/event-stream"),
        "{}",
        named.headers
    );
    assert!(
        named
            .body
            .starts_with("id: 1\nevent: response_start\ndata: {\"id\":\"chat_"),
        "{}",
        named.body
    );
    assert_eq!(named.body.matches("event: done\n").count(), 1);
    assert!(!named.body.contains("[DONE]"));
    assert_eq!(folded(&named.body, true), whole);

    let data = gateway.chat(&body(true, "data"));
    assert!(
        data.body
            .starts_with("id: 1\ndata: {\"type\":\"response_start\",\"response\":{\"id\":"),
        "{}",
        data.body
    );
    assert_eq!(data.body.matches("\"type\":\"done\"").count(), 1);
    assert!(data.body.ends_with("data: [DONE]\n\n"));
    assert_eq!(folded(&data.body, false), whole);

    let unknown = gateway.chat(&body(true, "c"));
    assert!(unknown.body.starts_with("id: 1\nevent: "), "a dialect is a wish");
}

#[test]
fn the_body_says_whether_it_is_a_stream_whatever_is_accepted() {
    let home = home();
    let gateway = Gateway::replay(home.path(), &tour());
    for (is_stream, accept, wanted) in [
        (true, "application/json", "text/event-stream"),
        (false, "text/event-stream", "application/json"),
    ] {
        let body = json!({ "model": "m", "stream": is_stream, "messages": messages(&["a", "b", "c"]) });
        let sent =
            String::from_utf8(request(gateway.address, "/api/v1/chat/completions", &body.to_string())).expect("text");
        let sent = sent.replace("Connection: close", &format!("Accept: {accept}\r\nConnection: close"));
        let answer = gateway.say(sent.as_bytes());
        assert!(
            answer.headers.contains(&format!("content-type: {wanted}")),
            "{}",
            answer.headers
        );
    }
}

#[test]
fn a_question_can_be_answered_by_the_next_request() {
    let home = home();
    let gateway = Gateway::replay(home.path(), &tour());
    let first = gateway
        .chat(&json!({ "model": "m", "messages": messages(&["hi"]) }))
        .json();
    assert_eq!(first["metadata"]["finishReason"], "awaiting_input");
    let documents = first["documents"].as_array().expect("documents");
    let asked = documents.last().expect("one at least");
    assert_eq!(
        (&asked["type"], asked["metadata"].get("outcome")),
        (&json!("clarification"), None)
    );
    let mut all = messages(&["hi"]);
    let list = all.as_array_mut().expect("a list");
    list.push(json!({ "role": "assistant", "content": "", "documents": documents }));
    list.push(json!({ "role": "user", "content": "one", "clarificationResponse":
        { "documentId": asked["id"], "outcome": "answered", "answers": [] } }));
    let second = gateway.chat(&json!({ "model": "m", "messages": all })).json();
    assert_eq!(second["metadata"]["finishReason"], "stop");
    assert_eq!(
        second["documents"][0]["id"], "doc_007",
        "the turn goes on behind the question"
    );
    assert_eq!(second["documents"][0]["sequence"], 1);
}

#[test]
fn the_whole_conversation_reaches_the_model() {
    let home = home();
    let model = Model::with([Script::says("Use `map`.\n\n```rust\nlet x = 1;\n```\n")]);
    let gateway = Gateway::start(with_model(home.path(), &model), &[]);
    let body = json!({ "model": "wished", "mode": "ask", "messages": [
        { "role": "system", "content": "be short" },
        { "role": "user", "content": "one" },
        { "role": "assistant", "content": "ignored", "documents": [
            { "id": "doc_001", "type": "text", "content": "two" },
            { "id": "doc_002", "type": "code_block", "content": "let two;", "metadata": { "language": "rust" } },
        ] },
        { "role": "user", "content": "three" },
    ] });
    let answer = gateway.chat(&body).json();
    let kinds: Vec<_> = answer["documents"]
        .as_array()
        .expect("documents")
        .iter()
        .map(|it| &it["type"])
        .collect();
    assert_eq!(kinds, ["text", "code_block"]);
    assert_eq!(answer["mode"], "ask");
    let again = json!({ "model": "default", "conversationId": "conv_mine", "messages": messages(&["hi"]) });
    let plan = gateway.post("/api/v1/chat/plan", &again).json();
    assert_eq!(
        (&plan["mode"], &plan["conversationId"]),
        (&json!("plan"), &json!("conv_mine"))
    );
    let asked = model.requests();
    let [first, second] = asked.as_slice() else {
        panic!("{asked:?}")
    };
    assert_eq!(first["model"], "wished");
    assert_eq!(second["model"], "scripted");
    let said: Vec<_> = first["messages"].as_array().expect("messages").iter().skip(1).collect();
    let [before @ .., last] = said.as_slice() else {
        panic!("{said:?}")
    };
    assert_eq!(
        before,
        [
            &json!({ "role": "user", "content": "be short\n\none" }),
            &json!({ "role": "assistant", "content": "two\n\n```rust\nlet two;\n```" }),
        ]
    );
    let last = last["content"].as_str().expect("a text");
    assert_eq!(query(last), "three");
    assert!(last.contains("\n<system_reminder>\nAsk mode is on"), "{last}");
    assert!(
        last.starts_with("<user_info>\n"),
        "the model hears where it works, also in the middle: {last}"
    );
    let system = |it: &Value| it["messages"][0]["content"].as_str().expect("a text").to_owned();
    assert!(system(first).contains("Ask mode is on") && !system(first).contains("Plan mode"));
    assert!(system(second).contains("Plan mode is on") && !system(second).contains("Ask mode"));
}

#[test]
fn hundreds_of_half_requests_keep_nobody_out() {
    let home = home();
    let gateway = Gateway::replay(home.path(), &tour());
    let half = format!(
        "POST /api/v1/chat/completions HTTP/1.1\r\nHost: {}\r\nX-",
        gateway.address
    );
    let guests: Vec<_> = (0..300)
        .map(|_| {
            let mut socket = gateway.connect();
            // One that had to make room is closed already.
            let _ = socket.write_all(half.as_bytes());
            socket
        })
        .collect();
    for _ in 0..3 {
        let answer = gateway.chat(&json!({ "model": "m", "messages": messages(&["hi"]) }));
        assert_eq!(answer.status, 200, "{}", answer.body);
    }
    drop(guests);
}

#[test]
fn a_failing_model_is_an_error_document() {
    let home = home();
    let model = Model::with([Script::Refuses(401, json!({ "error": { "message": "no such key" } }))]);
    let gateway = Gateway::start(with_model(home.path(), &model), &[]);
    let answer = gateway.chat(&json!({ "model": "m", "messages": messages(&["hi"]) }));
    assert_eq!(answer.status, 200, "the gateway did its part; its own token was right");
    let answer = answer.json();
    assert_eq!(
        (&answer["status"], &answer["metadata"]["finishReason"]),
        (&json!("error"), &json!("error"))
    );
    assert_eq!(answer["documents"][0]["metadata"]["errorCode"], "LLM_AUTH");
}

/// A model server that says one word; it tells when it was asked, and when its client has gone.
fn mute_model() -> (SocketAddr, mpsc::Receiver<()>, mpsc::Receiver<Instant>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("it listens");
    let (told, gone) = mpsc::channel();
    let (heard, asked) = mpsc::channel();
    std::thread::spawn(move || {
        for socket in listener.incoming() {
            let Ok(mut socket) = socket else { return };
            let (told, heard) = (told.clone(), heard.clone());
            std::thread::spawn(move || {
                let mut seen = Vec::new();
                let mut byte = [0];
                while !seen.ends_with(b"}") || !String::from_utf8_lossy(&seen).contains("\"messages\"") {
                    if socket.read(&mut byte).unwrap_or(0) == 0 {
                        return;
                    }
                    seen.push(byte[0]);
                }
                let word = "data: {\"choices\":[{\"delta\":{\"content\":\"so far \"}}]}\n\n";
                let head = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n";
                socket.write_all(format!("{head}{word}").as_bytes()).ok();
                heard.send(()).ok();
                while socket.read(&mut byte).unwrap_or(0) > 0 {}
                told.send(Instant::now()).ok();
            });
        }
    });
    (address, asked, gone)
}

#[test]
fn a_client_that_goes_away_stops_the_model() {
    let home = home();
    let (model, asked, gone) = mute_model();
    let mut command = sheaf(home.path());
    command
        .env("OPENAI_BASE_URL", format!("http://{model}/v1"))
        .env("OPENAI_MODEL", "m");
    let gateway = Gateway::start(command, &["--set", "serve.grace=0s"]);
    for is_stream in [true, false] {
        let mut best = Duration::MAX;
        for _ in 0..3 {
            let body = json!({ "model": "m", "stream": is_stream, "messages": messages(&["hi"]) }).to_string();
            let mut socket = gateway.connect();
            socket
                .write_all(&request(gateway.address, "/api/v1/chat/completions", &body))
                .expect("it listens");
            let mut seen = Vec::new();
            let mut byte = [0];
            while is_stream && !seen.ends_with(b"so far") {
                assert_eq!(socket.read(&mut byte).expect("it streams"), 1);
                seen.push(byte[0]);
            }
            asked.recv_timeout(PATIENCE).expect("the model is asked");
            let since = Instant::now();
            drop(socket);
            let gone = gone.recv_timeout(PATIENCE).expect("the model is left");
            best = best.min(gone.saturating_duration_since(since));
        }
        assert!(best < Duration::from_millis(100), "{best:?}");
    }
}

#[test]
fn a_gateway_in_front_of_a_gateway_passes_everything_on() {
    let home = home();
    let behind = Gateway::replay(home.path(), &tour());
    let mut command = sheaf(home.path());
    command.env("SHEAF_TOKEN", TOKEN);
    let front = Gateway::start(command, &["--gateway", &format!("http://{}", behind.address)]);
    let body = json!({ "model": "m", "messages": messages(&["a", "b", "c"]) });
    let (there, here) = (same(behind.chat(&body).json()), same(front.chat(&body).json()));
    assert_eq!(here, there);
}

#[test]
fn the_first_words_name_the_tools_that_clients_get() {
    let home = home();
    let tools = |gateway: &Gateway| {
        let (_, tools) = gateway.said.split_once("  tools: ").expect("a line of tools");
        tools.trim_end().to_owned()
    };
    let model = Model::with([Script::says("yes")]);
    let agent = Gateway::start(with_model(home.path(), &model), &["--set", "tools.grep.enabled=false"]);
    let said = tools(&agent);
    agent.chat(&json!({ "model": "m", "messages": messages(&["hi"]) }));
    let asked = model.requests();
    let offered: Vec<_> = asked[0]["tools"]
        .as_array()
        .expect("tools")
        .iter()
        .filter_map(|it| it["function"]["name"].as_str())
        .collect();
    // A plan is written in plan mode only.
    let said = said.replace("create_plan, ", "");
    assert_eq!(said, offered.join(", "), "what is said is what the model gets");
    assert!(
        offered.contains(&"read_file") && !offered.contains(&"grep"),
        "{offered:?}"
    );
    for changes in [
        "write",
        "edit_file",
        "delete_file",
        "run_terminal_cmd",
        "web_fetch",
        "read_lints",
    ] {
        assert!(!offered.contains(&changes), "{changes} in {offered:?}");
    }
    let replay = Gateway::replay(home.path(), &tour());
    assert_eq!(tools(&replay), "none");
    let mut command = sheaf(home.path());
    command.env("SHEAF_TOKEN", TOKEN);
    let front = Gateway::start(command, &["--gateway", &format!("http://{}", replay.address)]);
    assert_eq!(tools(&front), "those of the gateway behind it");
}

#[test]
fn a_signal_ends_streams_with_a_word() {
    let home = home();
    let model = Model::with([Script::Hangs(words("so far "))]);
    let mut gateway = Gateway::start(with_model(home.path(), &model), &[]);
    let body = json!({ "model": "m", "stream": true, "messages": messages(&["hi"]) }).to_string();
    let mut socket = gateway.connect();
    socket
        .write_all(&request(gateway.address, "/api/v1/chat/completions", &body))
        .expect("it listens");
    let mut seen = Vec::new();
    let mut byte = [0];
    while !String::from_utf8_lossy(&seen).contains("far") {
        assert_eq!(socket.read(&mut byte).expect("it streams"), 1);
        seen.push(byte[0]);
    }
    let since = Instant::now();
    gateway.terminate();
    let mut rest = Vec::new();
    socket.read_to_end(&mut rest).expect("it ends well");
    let rest = String::from_utf8_lossy(&rest);
    assert!(rest.contains("shutting down") && rest.contains("event: done"), "{rest}");
    assert!(rest.trim_end().ends_with('0'), "the last chunk is there: {rest}");
    assert_eq!(gateway.child.wait().expect("it ends").code(), Some(143));
    assert!(since.elapsed() < Duration::from_secs(5));
}

#[test]
fn a_token_is_made_kept_and_never_shown() {
    let home = home();
    let log = home.path().join("log");
    let arguments = [
        "--replay",
        &tour(),
        "--speed",
        "max",
        "--log",
        log.to_str().expect("text"),
    ];
    let mut tokens = Vec::new();
    for _ in 0..2 {
        let mut gateway = Gateway::as_it_stands(sheaf(home.path()), &arguments);
        let path = home.path().join(".local/state/sheaf/serve-token");
        assert!(gateway.said.contains(path.to_str().expect("text")), "{}", gateway.said);
        let token = std::fs::read_to_string(&path).expect("it is there").trim().to_owned();
        use std::os::unix::fs::PermissionsExt as _;
        assert_eq!(
            std::fs::metadata(&path).expect("it is there").permissions().mode() & 0o777,
            0o600
        );
        assert!(token.len() >= 32);
        let body = json!({ "model": "m", "messages": messages(&["whispered", "b", "c"]) });
        let sent = request(gateway.address, "/api/v1/chat/plan?key=hidden", &body.to_string());
        let sent = String::from_utf8(sent).expect("text").replace(TOKEN, &token);
        assert_eq!(gateway.say(sent.as_bytes()).status, 200);
        gateway.terminate();
        gateway.child.wait().expect("it ends");
        let mut said = gateway.said.clone();
        gateway
            .child
            .stderr
            .take()
            .expect("it is piped")
            .read_to_string(&mut said)
            .expect("text");
        said.push_str(&std::fs::read_to_string(&log).expect("it is there"));
        assert!(said.contains("/api/v1/chat/plan") && said.contains("200"), "{said}");
        for secret in [token.as_str(), "hidden", "whispered"] {
            assert!(!said.contains(secret), "{secret} in {said}");
        }
        tokens.push(token);
    }
    assert_eq!(tokens.first(), tokens.last(), "it is the same after a restart");
}

#[test]
fn what_cannot_be_served_is_said_at_once() {
    let home = home();
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let taken = listener.local_addr().expect("an address").to_string();
    let tour = tour();
    type Case<'a> = (&'a str, &'a [&'a str], &'a [(&'a str, &'a str)], &'a str);
    let cases: &[Case<'_>] = &[
        ("nobody behind it", &[], &[], "no model is configured"),
        ("no recording", &["--replay", "/nowhere.sse"], &[], "/nowhere.sse"),
        (
            "all the world without a token",
            &["--replay", &tour, "--listen", "0.0.0.0:0"],
            &[],
            "the token has to be yours",
        ),
        (
            "all the world with a weak token",
            &["--replay", &tour, "--listen", "0.0.0.0:0"],
            &[("SHEAF_SERVE_TOKEN", "hunter2")],
            "the token has to be yours",
        ),
        (
            "a token that is none",
            &["--replay", &tour],
            &[("SHEAF_SERVE_TOKEN", "a b")],
            "a header cannot carry",
        ),
        (
            "a name",
            &["--replay", &tour, "--listen", "example.org:1"],
            &[],
            "no address to listen at",
        ),
        (
            "a port that is taken",
            &["--replay", &tour, "--listen", &taken],
            &[],
            "cannot be listened at",
        ),
    ];
    for (name, arguments, variables, wanted) in cases {
        let mut command = sheaf(home.path());
        let output = command
            .arg("serve")
            .args(*arguments)
            .envs(variables.iter().copied())
            .output()
            .expect("it starts");
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{name}: {said}");
        assert!(said.contains(wanted), "{name}: {said}");
        assert!(!said.contains("hunter2"), "{name}");
    }
    drop(listener);
}
