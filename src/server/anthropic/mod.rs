//! Anthropic's messages API for the agent, so that any client of that API can talk to it.
//!
//! Thinking blocks are written only for clients that ask for them with `thinking`.

mod request;
mod write;

use std::sync::Arc;

use axum::{
    body::Body,
    extract::State,
    http::{HeaderMap, StatusCode},
};
use serde_json::{Value, json};

use self::{request::ParsedRequest, write::EventEncoder};
use super::{
    facade::{self, Answer},
    state::{ServerState, read},
};

/// Path of the endpoint.
pub const MESSAGES: &str = "/v1/messages";

/// Status of an overloaded server in this API, which others say with 503.
pub const OVERLOADED: u16 = 529;

/// `POST /v1/messages`: answers a conversation, as a stream of events or as one object.
pub async fn messages(State(state): State<Arc<ServerState>>, body: Body) -> Answer {
    let permit = state.acquire_stream()?;
    let body = read(&state, body, state.limits.body_bytes).await?;
    let ParsedRequest { request, with_thinking } = request::read(body)?;
    let encoder = |identity: &_| EventEncoder::new(identity, with_thinking);
    let object = |identity: &_, pieces, flat: &_| write::object(identity, pieces, flat, with_thinking);
    facade::answer(&state, permit, request, encoder, object).await
}

/// Returns true if a request to a path that several APIs share comes from a client of this one.
pub fn is_client(headers: &HeaderMap) -> bool {
    headers.contains_key("anthropic-version")
}

/// Returns the list of models in the form of this API.
pub fn models(names: &[String]) -> Value {
    let data: Vec<_> = names.iter().map(|it| model(it)).collect();
    json!({ "data": data, "has_more": false, "first_id": names.first(), "last_id": names.last() })
}

/// Returns one model in the form of this API.
pub fn model(name: &str) -> Value {
    json!({ "type": "model", "id": name, "display_name": name, "created_at": "1970-01-01T00:00:00Z" })
}

/// Status with which this API says what others say with `status`.
pub fn status(status: StatusCode) -> StatusCode {
    if status == StatusCode::SERVICE_UNAVAILABLE {
        StatusCode::from_u16(OVERLOADED).unwrap_or(status)
    } else {
        status
    }
}
