//! OpenAI's responses API for the agent, like its chat completions: nothing is stored, so a request brings its whole
//! conversation as `input`.

mod request;
mod write;

use std::sync::Arc;

use axum::{body::Body, extract::State};

use crate::server::{
    facade::{self, Answer},
    state::{ServerState, read},
};

/// `POST /v1/responses`: answers a conversation, as a stream of events or as one object.
pub async fn responses(State(state): State<Arc<ServerState>>, body: Body) -> Answer {
    let permit = state.acquire_stream()?;
    let body = read(&state, body, state.limits.body_bytes).await?;
    let request = request::read(body)?;
    facade::answer(&state, permit, request, write::EventEncoder::new, write::object).await
}
