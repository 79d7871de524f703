//! A model server that does as it is told: for every request the next script.

use std::{
    collections::VecDeque,
    convert::Infallible,
    net::SocketAddr,
    sync::{Arc, Mutex},
    time::Duration,
};

use axum::{
    Router,
    body::{Body, Bytes},
    extract::State,
    http::{StatusCode, header},
    response::Response,
    routing::post,
};
use futures::{StreamExt as _, stream};
use serde_json::{Value, json};

/// What a server does with one request.
#[derive(Clone, Debug)]
pub enum Script {
    /// Says the pieces, waiting before each, and ends as it should.
    Says(Vec<String>, Duration),
    /// Says the pieces and then nothing more, with the connection open.
    Hangs(Vec<String>),
    /// Says the pieces and closes the connection.
    Breaks(Vec<String>),
    /// Says a text and ends for this reason.
    Ends(&'static str, &'static str),
    /// Refuses with a status and a body.
    Refuses(u16, Value),
    /// Says a text and calls tools, by name and with arguments; the nth call has the id `call_n`.
    Calls(&'static str, Vec<(&'static str, Value)>),
}

impl Script {
    pub fn says(text: &str) -> Self {
        Self::Says(words(text), Duration::ZERO)
    }
}

pub fn words(text: &str) -> Vec<String> {
    text.split_inclusive(' ').map(str::to_owned).collect()
}

/// What the user wrote, in a message that the model got: the last block of it, its only one of that name.
pub fn query(message: &str) -> &str {
    let mut parts = message.split("<user_query>\n");
    let (Some(before), Some(query), None) = (parts.next(), parts.next(), parts.next()) else {
        panic!("{message}")
    };
    assert!(
        before.is_empty() || before.ends_with(">\n") || before.ends_with(">\n\n"),
        "{message}"
    );
    query
        .strip_suffix("\n</user_query>")
        .unwrap_or_else(|| panic!("{message}"))
}

/// A server on a port of its own, as long as this lives.
pub struct Model {
    pub address: SocketAddr,
    state: Arc<Shared>,
    // Dropping the runtime ends the server.
    _runtime: tokio::runtime::Runtime,
}

#[derive(Default)]
struct Shared {
    scripts: Mutex<VecDeque<Script>>,
    requests: Mutex<Vec<Value>>,
}

impl Model {
    /// The last script serves every further request.
    pub fn with(scripts: impl IntoIterator<Item = Script>) -> Self {
        let state = Arc::new(Shared::default());
        state.scripts.lock().expect("no test panics with it").extend(scripts);
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .expect("a runtime");
        let app = Router::new()
            .route("/v1/chat/completions", post(answer))
            .with_state(Arc::clone(&state));
        let listener = runtime
            .block_on(tokio::net::TcpListener::bind(("127.0.0.1", 0)))
            .expect("a port");
        let address = listener.local_addr().expect("it listens");
        runtime.spawn(async move { axum::serve(listener, app).await });
        Self {
            address,
            state,
            _runtime: runtime,
        }
    }

    /// The bodies of all requests so far.
    pub fn requests(&self) -> Vec<Value> {
        self.state.requests.lock().expect("no test panics with it").clone()
    }
}

async fn answer(State(state): State<Arc<Shared>>, body: Bytes) -> Response {
    let request = serde_json::from_slice(&body).unwrap_or(Value::Null);
    state.requests.lock().expect("no test panics with it").push(request);
    let script = {
        let mut scripts = state.scripts.lock().expect("no test panics with it");
        if scripts.len() > 1 {
            scripts.pop_front()
        } else {
            scripts.front().cloned()
        }
    };
    let (pieces, pause) = match script.unwrap_or(Script::says("hello")) {
        Script::Refuses(status, body) => {
            return Response::builder()
                .status(StatusCode::from_u16(status).expect("a status"))
                .header(header::CONTENT_TYPE, "application/json")
                .body(Body::from(body.to_string()))
                .expect("all parts are sound");
        }
        Script::Says(pieces, pause) => {
            let mut chunks: Vec<_> = pieces.iter().map(|it| delta(it)).collect();
            chunks.push(
                json!({ "choices": [{ "index": 0, "delta": {}, "finish_reason": "stop" }],
                        "usage": { "prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15 } }),
            );
            let mut lines: Vec<_> = chunks.iter().map(|it| format!("data: {it}\n\n")).collect();
            lines.push("data: [DONE]\n\n".to_owned());
            (lines, Some((pause, false)))
        }
        Script::Calls(text, calls) => {
            let mut chunks = vec![delta(text)];
            for (nth, (name, arguments)) in calls.iter().enumerate() {
                let function = json!({ "name": name, "arguments": arguments.to_string() });
                let call =
                    json!({ "index": nth, "id": format!("call_{nth}"), "type": "function", "function": function });
                chunks.push(json!({ "choices": [{ "index": 0, "delta": { "tool_calls": [call] } }] }));
            }
            chunks.push(
                json!({ "choices": [{ "index": 0, "delta": {}, "finish_reason": "tool_calls" }],
                        "usage": { "prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15 } }),
            );
            let mut lines: Vec<_> = chunks.iter().map(|it| format!("data: {it}\n\n")).collect();
            lines.push("data: [DONE]\n\n".to_owned());
            (lines, Some((Duration::ZERO, false)))
        }
        Script::Ends(text, reason) => {
            let end = json!({ "choices": [{ "index": 0, "delta": {}, "finish_reason": reason }] });
            let lines = [
                format!("data: {}\n\n", delta(text)),
                format!("data: {end}\n\n"),
                "data: [DONE]\n\n".to_owned(),
            ];
            (lines.into(), Some((Duration::ZERO, false)))
        }
        Script::Hangs(pieces) => (
            pieces.iter().map(|it| format!("data: {}\n\n", delta(it))).collect(),
            Some((Duration::ZERO, true)),
        ),
        Script::Breaks(pieces) => (
            pieces.iter().map(|it| format!("data: {}\n\n", delta(it))).collect(),
            None,
        ),
    };
    let (pause, hangs) = pause.unwrap_or_default();
    let said = stream::iter(pieces).then(move |line| async move {
        tokio::time::sleep(pause).await;
        Ok::<_, Infallible>(Bytes::from(line))
    });
    let body = if hangs {
        Body::from_stream(said.chain(stream::pending()))
    } else {
        Body::from_stream(said)
    };
    Response::builder()
        .header(header::CONTENT_TYPE, "text/event-stream")
        .body(body)
        .expect("all parts are sound")
}

fn delta(text: &str) -> Value {
    json!({ "choices": [{ "index": 0, "delta": { "content": text } }] })
}
