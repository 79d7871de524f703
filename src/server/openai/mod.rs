//! OpenAI's chat completions API for the agent, so that any client of that API can talk to it.
//!
//! Text and code of the answer are the content; thinking and tool calls are `reasoning_content`. The agent runs its own
//! tools and never calls the client's. A question becomes text, and the next message is its answer; an action that
//! would need an approval is not done, and the model is told so.

mod flatten;
mod request;
mod write;

use std::sync::Arc;

use axum::{
    body::Body,
    extract::{Path, State},
    http::{Response as HttpResponse, StatusCode},
};
use serde_json::{Value, json};
use tokio::time::{sleep, timeout};

use self::{flatten::Flattener, request::ParsedRequest, write::ChunkEncoder};
use super::{
    LinkRequest,
    chat::{TurnOptions, begin, streamed},
    refusal::{self, Refusal},
    state::{ServerState, read},
    turn::ServedResponse,
};
use crate::{
    journal::Log,
    link::{AskError, Asker},
    protocol::{Event, Position, Query, Reply, Request},
};

type Answer = Result<HttpResponse<Body>, Refusal>;

/// Time limit for fetching the list of models.
const MODEL_LIST_TIMEOUT: std::time::Duration = std::time::Duration::from_secs(10);

/// Model name reported when the link names none.
const ANY_MODEL: &str = "default";

/// `POST /v1/chat/completions`: answers a conversation, as a stream of chunks or as one object.
pub async fn completions(State(state): State<Arc<ServerState>>, body: Body) -> Answer {
    let permit = state.acquire_stream()?;
    let body = read(&state, body, state.limits.body_bytes).await?;
    let ParsedRequest { request, with_usage } = request::read(body)?;
    let is_stream = request.stream;
    let turn_options = TurnOptions {
        asker: Asker::Later,
        may_be_kept: false,
        is_resumable: false,
    };
    let (served, guard) = begin(&state, request, turn_options, &permit).await?;
    if is_stream {
        // A failure before the first event gets its own HTTP status, which clients handle better than an error in a
        // stream.
        tokio::select! {
            () = served.ended() => {}
            () = first_event(&served) => {}
            () = sleep(state.limits.ping_interval) => {}
        }
        if served.has_ended()
            && let Some(refusal) = early_failure(&served)
        {
            return Err(refusal);
        }
        let encoder = Box::new(ChunkEncoder::new(&served.identity, with_usage));
        return Ok(streamed(&state, served, guard, encoder, Position(0), permit));
    }
    served.ended().await;
    let (flat, pieces) = flattened(&served);
    drop(guard);
    if let Some(failure) = &flat.failure {
        return Err(failure.refusal());
    }
    let answer = write::object(&served.identity, &pieces, &flat);
    Ok(refusal::json(StatusCode::OK, answer.to_string()))
}

/// Waits for an event that has something to show.
async fn first_event(served: &Arc<ServedResponse>) {
    let mut follower = served.follow(Position(0));
    let mut batch = Vec::new();
    while follower.next(&mut batch).await {
        if batch.iter().any(|it| !matches!(it.event, Event::ResponseStart(_))) {
            return;
        }
        batch.clear();
    }
}

/// Returns the refusal for an answer that failed before it had any text.
fn early_failure(served: &ServedResponse) -> Option<Refusal> {
    let (flat, pieces) = flattened(served);
    let failure = flat.failure.filter(|_| pieces.is_empty())?;
    Some(failure.refusal())
}

fn flattened(served: &ServedResponse) -> (Flattener, Vec<flatten::OutputPart>) {
    let mut flat = Flattener::default();
    let mut pieces = Vec::new();
    for entry in served.entries_until(served.last()) {
        pieces.extend(flat.push(&entry));
    }
    (flat, pieces)
}

/// `GET /v1/models`: the models that a request may name, and the agent's tools.
pub async fn models(State(state): State<Arc<ServerState>>) -> Answer {
    let names = names(&state).await?;
    let data: Vec<_> = names.iter().map(|it| model(it)).collect();
    let list = json!({ "object": "list", "data": data, "tools": state.tools });
    Ok(refusal::json(StatusCode::OK, list.to_string()))
}

/// `GET /v1/models/{id}`; 404 for an unknown model.
pub async fn one_model(State(state): State<Arc<ServerState>>, Path(id): Path<String>) -> Answer {
    let names = names(&state).await?;
    if names.contains(&id) {
        return Ok(refusal::json(StatusCode::OK, model(&id).to_string()));
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
