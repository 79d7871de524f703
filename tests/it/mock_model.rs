//! A model server that says what the test says, when the test says it.

use std::{
    convert::Infallible,
    sync::mpsc::{Receiver, Sender, channel},
    time::Duration,
};

use axum::{
    Json, Router,
    body::Body,
    extract::State,
    response::Response,
    routing::{get, post},
};
use bytes::Bytes;
use futures::stream;
use serde_json::{Value, json};
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};

use crate::model::query;

/// Only a failure waits for so long.
const LIMIT: Duration = Duration::from_mins(2);

pub struct Model {
    /// As `OPENAI_BASE_URL` wants it.
    pub url: String,
    requests: Receiver<Answer>,
    runtime: Option<tokio::runtime::Runtime>,
}

/// A request, and the answer to it in the making.
pub struct Answer {
    pub request: Value,
    body: UnboundedSender<Bytes>,
    closed: Receiver<()>,
}

impl Model {
    pub fn start() -> Self {
        Self::start_with(Router::new())
    }

    /// One that lists these models.
    pub fn start_with_models(ids: &[&str]) -> Self {
        let list: Vec<Value> = ids.iter().map(|it| json!({ "id": it, "object": "model" })).collect();
        let list = json!({ "object": "list", "data": list });
        Self::start_with(Router::new().route("/v1/models", get(async move || Json(list))))
    }

    /// One that answers each question for its models so: with ids, with a status, or never.
    pub fn start_with_lists(
        list: impl Fn() -> Option<Result<Vec<&'static str>, u16>> + Clone + Send + Sync + 'static,
    ) -> Self {
        let answer = get(async move || {
            let status = |it: u16| axum::http::StatusCode::from_u16(it).expect("a status");
            match list() {
                Some(Ok(ids)) => {
                    let list: Vec<Value> = ids.iter().map(|it| json!({ "id": it })).collect();
                    (status(200), Json(json!({ "data": list })))
                }
                Some(Err(code)) => (status(code), Json(Value::Null)),
                None => std::future::pending().await,
            }
        });
        Self::start_with(Router::new().route("/v1/models", answer))
    }

    fn start_with(router: Router) -> Self {
        let (send, requests) = channel();
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .expect("a runtime");
        let listener = runtime
            .block_on(tokio::net::TcpListener::bind("127.0.0.1:0"))
            .expect("a port");
        let address = listener.local_addr().expect("an address");
        let router = Router::new()
            .route("/v1/chat/completions", post(answer))
            .with_state(send)
            .merge(router);
        runtime.spawn(async move { axum::serve(listener, router).await });
        Self {
            url: format!("http://{address}/v1"),
            requests,
            runtime: Some(runtime),
        }
    }

    /// The next request, once it is there.
    pub fn asked(&self) -> Answer {
        self.requests.recv_timeout(LIMIT).expect("a request comes")
    }

    /// Whether nothing was asked since.
    pub fn is_idle(&self) -> bool {
        self.requests.try_recv().is_err()
    }
}

impl Drop for Model {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

impl Answer {
    /// What the user said last, without what the agent adds.
    pub fn message(&self) -> &str {
        let last = self.request["messages"].as_array().and_then(|it| it.last());
        query(last.and_then(|it| it["content"].as_str()).expect("a message"))
    }

    /// The next words.
    pub fn says(&self, text: &str) {
        self.chunk(&json!({ "content": text }), &Value::Null);
    }

    /// Ends the answer with calls of tools: name and arguments.
    pub fn calls(self, calls: &[(&str, Value)]) {
        let calls: Vec<Value> = calls
            .iter()
            .enumerate()
            .map(|(at, (name, arguments))| {
                json!({
                    "index": at, "id": format!("call_{at}"), "type": "function",
                    "function": { "name": name, "arguments": arguments.to_string() },
                })
            })
            .collect();
        self.chunk(&json!({ "tool_calls": calls }), &json!("tool_calls"));
        let _ = self.body.send(Bytes::from_static(b"data: [DONE]\n\n"));
    }

    /// What the tools said of the last calls, in their order.
    pub fn results(&self) -> Vec<String> {
        let messages = self.request["messages"].as_array().expect("a list");
        let results = messages.iter().rev().take_while(|it| it["role"] == "tool");
        let mut results: Vec<String> = results
            .map(|it| {
                it["content"]
                    .as_str()
                    .map_or_else(|| it["content"].to_string(), str::to_owned)
            })
            .collect();
        results.reverse();
        results
    }

    /// Ends the answer as servers do.
    pub fn finish(self) {
        self.chunk(&json!({}), &json!("stop"));
        // A client that has left needs no end.
        let _ = self.body.send(Bytes::from_static(b"data: [DONE]\n\n"));
    }

    /// Until the client has closed the connection.
    pub fn wait_closed(&self) {
        self.closed.recv_timeout(LIMIT).expect("the client leaves");
    }

    fn chunk(&self, delta: &Value, reason: &Value) {
        let chunk = json!({
            "id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": "scripted",
            "choices": [{ "index": 0, "delta": delta, "finish_reason": reason }],
        });
        let _ = self.body.send(Bytes::from(format!("data: {chunk}\n\n")));
    }
}

/// Says that the body is no longer wanted when it is dropped.
struct Notice(Sender<()>);

impl Drop for Notice {
    fn drop(&mut self) {
        let _ = self.0.send(());
    }
}

async fn answer(State(requests): State<Sender<Answer>>, Json(request): Json<Value>) -> Response {
    let (body, pieces) = unbounded_channel();
    let (notice, closed) = channel();
    let _ = requests.send(Answer { request, body, closed });
    let body = stream::unfold((pieces, Notice(notice)), |(mut pieces, notice)| async {
        let piece = pieces.recv().await?;
        Some((Ok::<_, Infallible>(piece), (pieces, notice)))
    });
    Response::builder()
        .header("content-type", "text/event-stream")
        .body(Body::from_stream(body))
        .expect("a response")
}
