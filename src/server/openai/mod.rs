//! OpenAI's APIs for the agent, so that any of their clients can talk to it: chat completions and responses.

mod content;
mod request;
mod responses;
mod write;

use std::sync::Arc;

use axum::{
    body::Body,
    extract::{Path, State},
    http::{HeaderMap, StatusCode},
};
use serde_json::{Value, json};
use tokio::time::timeout;

pub use self::responses::responses;
use self::{request::ParsedRequest, write::ChunkEncoder};
use super::{
    LinkRequest, anthropic,
    facade::{self, Answer},
    refusal::{self, Refusal},
    state::{ServerState, read},
};
use crate::{
    journal::Log,
    link::{AskError, Asker},
    protocol::{Query, Reply, Request},
};

/// Time limit for fetching the list of models.
const MODEL_LIST_TIMEOUT: std::time::Duration = std::time::Duration::from_secs(10);

/// Model name reported when the link names none.
const ANY_MODEL: &str = "default";

/// `POST /v1/chat/completions`: answers a conversation, as a stream of chunks or as one object.
pub async fn completions(State(state): State<Arc<ServerState>>, body: Body) -> Answer {
    let permit = state.acquire_stream()?;
    let body = read(&state, body, state.limits.body_bytes).await?;
    let ParsedRequest { request, with_usage } = request::read(body)?;
    let encoder = |identity: &_| ChunkEncoder::new(identity, with_usage);
    facade::answer(&state, permit, request, encoder, write::object).await
}

/// `GET /v1/models`: the models that a request may name, and the agent's tools.
///
/// A client of Anthropic's API gets them in that form.
pub async fn models(State(state): State<Arc<ServerState>>, headers: HeaderMap) -> Answer {
    let names = names(&state).await?;
    if anthropic::is_client(&headers) {
        return Ok(refusal::json(StatusCode::OK, anthropic::models(&names).to_string()));
    }
    let data: Vec<_> = names.iter().map(|it| model(it)).collect();
    let list = json!({ "object": "list", "data": data, "tools": state.tools });
    Ok(refusal::json(StatusCode::OK, list.to_string()))
}

/// `GET /v1/models/{id}`; 404 for an unknown model.
pub async fn one_model(State(state): State<Arc<ServerState>>, Path(id): Path<String>, headers: HeaderMap) -> Answer {
    let names = names(&state).await?;
    if names.contains(&id) {
        let model = if anthropic::is_client(&headers) {
            anthropic::model(&id)
        } else {
            model(&id)
        };
        return Ok(refusal::json(StatusCode::OK, model.to_string()));
    }
    Err(Refusal::new(StatusCode::NOT_FOUND, "unknown model").details("GET /v1/models lists them"))
}

async fn names(state: &ServerState) -> Result<Vec<String>, Refusal> {
    if !state.models.is_empty() {
        return Ok(state.models.clone());
    }
    let wanted = LinkRequest {
        request: &Request::default(),
        asker: Asker::Later,
    };
    let link = super::open(&*state.open, &wanted, Log::new())?;
    let own = link.about().model;
    match timeout(MODEL_LIST_TIMEOUT, link.ask(Query::Models)).await {
        Ok(Ok(Reply::Models(names))) => Ok(names),
        Ok(Err(AskError::Unsupported { .. })) => Ok(vec![own.unwrap_or_else(|| ANY_MODEL.to_owned())]),
        // Many servers have no list of models; the configured model is still available.
        _ => match own {
            Some(own) => Ok(vec![own]),
            None => Err(Refusal::new(
                StatusCode::BAD_GATEWAY,
                "the list of models could not be had",
            )),
        },
    }
}

fn model(name: &str) -> Value {
    json!({ "id": name, "object": "model", "created": 0, "owned_by": "sheaf" })
}
