//! The agent behind the API of OpenAI's chat completions, so that any client of that API can talk to it.
//!
//! What the agent says and makes is the content; what it thinks and does on the way is `reasoning_content`. It runs its
//! tools itself: a client's own are never called. A question is text, and what the client says next answers it; what
//! would need a yes meanwhile is not done, and the model is told so.

mod request;
mod spoken;
mod write;

use std::sync::Arc;

use axum::{
    body::Body,
    extract::{Path, State},
    http::{Response as HttpResponse, StatusCode},
};
use serde_json::{Value, json};
use tokio::time::{sleep, timeout};

use self::{request::Asked, spoken::Spoken, write::Chunks};
use super::{
    Wanted,
    chat::{Wish, begin, streamed},
    refusal::{self, Refusal},
    route::{House, read},
    turn::Turning,
};
use crate::{
    journal::Log,
    link::{AskError, Asker},
    protocol::{Event, Position, Query, Reply, Request},
};

type Answer = Result<HttpResponse<Body>, Refusal>;

/// How long a list of models may take.
const ASIDE: std::time::Duration = std::time::Duration::from_secs(10);

/// What clients call the model when they leave the choice to the gateway.
const ANY_MODEL: &str = "default";

pub async fn completions(State(house): State<Arc<House>>, body: Body) -> Answer {
    let permit = house.place()?;
    let body = read(&house, body, house.limits.body_bytes).await?;
    let Asked { request, with_usage } = request::read(body)?;
    let is_stream = request.stream;
    let wish = Wish {
        asker: Asker::Later,
        is_kept: false,
        comes_back: false,
    };
    let (turning, seat) = begin(&house, request, wish, &permit).await?;
    if is_stream {
        // A failure before the first word has a status of its own, which clients know how to handle.
        tokio::select! {
            () = turning.ended() => {}
            () = first_word(&turning) => {}
            () = sleep(house.limits.ping) => {}
        }
        if turning.has_ended()
            && let Some(refusal) = wordless(&turning)
        {
            return Err(refusal);
        }
        let pen = Box::new(Chunks::new(&turning.identity, with_usage));
        return Ok(streamed(&house, turning, seat, pen, Position(0), permit));
    }
    turning.ended().await;
    let (spoken, pieces) = whole(&turning);
    drop(seat);
    if let Some(failure) = &spoken.failure {
        return Err(failure.refusal());
    }
    let answer = write::object(&turning.identity, &pieces, &spoken);
    Ok(refusal::json(StatusCode::OK, answer.to_string()))
}

/// Returns when there is something to show.
async fn first_word(turning: &Arc<Turning>) {
    let mut follower = turning.follow(Position(0));
    let mut batch = Vec::new();
    while follower.next(&mut batch).await {
        if batch.iter().any(|it| !matches!(it.event, Event::ResponseStart(_))) {
            return;
        }
        batch.clear();
    }
}

/// Why an answer failed of which there is nothing to show.
fn wordless(turning: &Turning) -> Option<Refusal> {
    let (spoken, pieces) = whole(turning);
    let failure = spoken.failure.filter(|_| pieces.is_empty())?;
    Some(failure.refusal())
}

fn whole(turning: &Turning) -> (Spoken, Vec<spoken::Piece>) {
    let mut spoken = Spoken::default();
    let mut pieces = Vec::new();
    for entry in turning.said_until(turning.last()) {
        pieces.extend(spoken.hear(&entry));
    }
    (spoken, pieces)
}

/// The models that one may wish for.
pub async fn models(State(house): State<Arc<House>>) -> Answer {
    let names = names(&house).await?;
    let data: Vec<_> = names.iter().map(|it| model(it)).collect();
    let list = json!({ "object": "list", "data": data, "tools": house.tools });
    Ok(refusal::json(StatusCode::OK, list.to_string()))
}

pub async fn one_model(State(house): State<Arc<House>>, Path(id): Path<String>) -> Answer {
    let names = names(&house).await?;
    if names.contains(&id) {
        return Ok(refusal::json(StatusCode::OK, model(&id).to_string()));
    }
    Err(Refusal::new(StatusCode::NOT_FOUND, "there is no model of that name").details("GET /v1/models lists them"))
}

async fn names(house: &House) -> Result<Vec<String>, Refusal> {
    let wanted = Wanted {
        request: &Request::default(),
        asker: Asker::Later,
    };
    let link = super::open(&*house.open, &wanted, Log::new())?;
    let own = link.about().model;
    match timeout(ASIDE, link.ask(Query::Models)).await {
        Ok(Ok(Reply::Models(names))) => Ok(names),
        Ok(Err(AskError::Unsupported { .. })) => Ok(vec![own.unwrap_or_else(|| ANY_MODEL.to_owned())]),
        // Many servers have no list; the model that is set is there all the same.
        Ok(
            Ok(
                Reply::Files(_)
                | Reply::Context(_)
                | Reply::Sandbox(_)
                | Reply::Permissions(_)
                | Reply::Changes(_)
                | Reply::Restoration(_)
                | Reply::Symbols(_)
                | Reply::Heard,
            )
            | Err(AskError::Failed { .. }),
        )
        | Err(_) => match own {
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
