//! The protocol's own endpoints.

use std::{sync::Arc, time::Duration};

use axum::{
    body::Body,
    extract::{Path, RawQuery, State},
    http::{HeaderMap, HeaderValue, Response as HttpResponse, StatusCode, header},
};
use serde_json::json;
use tokio::sync::OwnedSemaphorePermit;

use super::{
    Wanted,
    ending::waits,
    hall::Found,
    now_ms,
    reader::{Documents, Pen, Reader},
    refusal::{self, Refusal},
    route::{House, read},
    talk,
    turn::{Keeper, Seat, Terms, Turning},
};
use crate::{
    link::Asker,
    protocol::{
        ClarificationResponse, Command, ConversationId, Dialect, Mode, Position, Request, ResponseId, Status,
        codec::{self, Identity},
    },
};

/// The answer to a question is not longer.
const INPUT_LIMIT_BYTES: usize = 1 << 20;

type Answer = Result<HttpResponse<Body>, Refusal>;

pub async fn completions(State(house): State<Arc<House>>, body: Body) -> Answer {
    chat(house, body, None).await
}

pub async fn plan(State(house): State<Arc<House>>, body: Body) -> Answer {
    chat(house, body, Some(Mode::Plan)).await
}

async fn chat(house: Arc<House>, body: Body, mode: Option<Mode>) -> Answer {
    // The place comes first: a body of many megabytes is read for those who will be answered.
    let permit = house.place()?;
    let body = read(&house, body, house.limits.body_bytes).await?;
    let (mut request, notices) = Request::from_json(&body)?;
    drop(body);
    for notice in notices {
        tracing::debug!(code = notice.code, "{}", notice.message);
    }
    request.mode = mode.unwrap_or(request.mode);
    let is_stream = request.stream;
    let asker = if is_stream && talk::hears_answers(&request) {
        Asker::Live
    } else {
        Asker::Later
    };
    let terms = Wish {
        asker,
        is_kept: house.kept.is_some(),
        comes_back: is_stream,
    };
    let (turning, seat) = begin(&house, request, terms, &permit).await?;
    if is_stream {
        let pen = Box::new(Documents::new(turning.dialect));
        return Ok(streamed(&house, turning, seat, pen, Position(0), permit));
    }
    turning.ended().await;
    let response = turning.response();
    drop(seat);
    let is_cut = *house.stop.borrow() && response.status() == Status::Error;
    let status = if is_cut {
        StatusCode::SERVICE_UNAVAILABLE
    } else {
        StatusCode::OK
    };
    Ok(refusal::json(
        status,
        codec::answer(&response, &turning.identity).to_string(),
    ))
}

/// What an endpoint wants of a turn.
#[derive(Clone, Copy, Debug)]
pub struct Wish {
    pub asker: Asker,
    /// The conversation may be one that is kept.
    pub is_kept: bool,
    /// Readers that were cut off may come back for what they have missed.
    pub comes_back: bool,
}

/// Sends a message off. The turn runs as long as somebody sits there, or a while longer when its conversation is kept.
pub async fn begin(
    house: &Arc<House>,
    request: Request,
    wish: Wish,
    permit: &Arc<OwnedSemaphorePermit>,
) -> Result<(Arc<Turning>, Seat), Refusal> {
    let asker = wish.asker;
    let mut submit = talk::submit(&request)?;
    let now_ms = now_ms();
    let claim = match house.kept.as_ref().filter(|_| wish.is_kept) {
        Some(kept) => Some(kept.enter(&request, asker, &*house.open, now_ms).await?),
        None => None,
    };
    let (link, conversation) = match &claim {
        Some(claim) => (Arc::clone(&claim.conversation().link), claim.conversation().id.clone()),
        None => {
            let wanted = Wanted {
                request: &request,
                asker,
            };
            let link = super::open(&*house.open, &wanted, talk::before(&request, now_ms))?;
            let conversation = request.conversation_id.clone().unwrap_or_else(ConversationId::fresh);
            (link, conversation)
        }
    };
    if link.about().reads_context {
        talk::tell_context(&mut submit.message, request.context.as_ref(), link.log());
    }
    let identity = Identity {
        id: ResponseId::fresh(),
        conversation_id: Some(conversation),
        model: submit.model.clone().or_else(|| link.about().model).unwrap_or_default(),
        mode: request.mode,
        created_ms: now_ms,
    };
    let is_stateful = claim.is_some();
    let terms = Terms {
        hears_answers: asker == Asker::Live,
        is_stream: request.stream,
        is_stateful,
        linger: if is_stateful { house.linger } else { Duration::ZERO },
        patience: house.limits.patience,
    };
    let turning = Turning::new(Arc::clone(&link), identity, request.dialect.unwrap_or_default(), terms);
    let seat = turning.sit(request.stream.then_some(Position(0)));
    house.hall.enter(&turning, wish.comes_back);
    let keeper = Keeper::start(&turning, link, submit);
    if let Some(claim) = claim {
        claim.answers(&turning);
    }
    let (house, id, permit) = (Arc::clone(house), turning.identity.id.clone(), Arc::clone(permit));
    tokio::spawn(async move {
        keeper.run(house.stop.clone()).await;
        if is_stateful {
            house.hall.ended(&id);
        } else {
            house.hall.leave(&id);
        }
        drop(permit);
    });
    Ok((turning, seat))
}

/// The response as a stream.
pub fn streamed(
    house: &House,
    turning: Arc<Turning>,
    seat: Seat,
    pen: Box<dyn Pen>,
    since: Position,
    permit: Arc<OwnedSemaphorePermit>,
) -> HttpResponse<Body> {
    let reader = Reader {
        turning,
        seat,
        pen,
        since,
        permit,
        ping: house.limits.ping,
    };
    let mut response = HttpResponse::new(Body::new(reader.body()));
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    // Proxies gather what they pass on unless they are asked not to.
    headers.insert("x-accel-buffering", HeaderValue::from_static("no"));
    response
}

/// The response as far as it is known.
pub async fn response(State(house): State<Arc<House>>, Path(id): Path<String>) -> Answer {
    let turning = found(&house, &id)?;
    let whole = codec::answer(&turning.response(), &turning.identity);
    Ok(refusal::json(StatusCode::OK, whole.to_string()))
}

/// The response as a stream once more, behind what the reader has had.
pub async fn stream(
    State(house): State<Arc<House>>,
    Path(id): Path<String>,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
) -> Answer {
    let permit = house.place()?;
    let turning = found(&house, &id)?;
    let since = since(&headers, turning.last())?;
    let dialect = match dialect(query.as_deref())? {
        Some(dialect) => dialect,
        None => turning.dialect,
    };
    let seat = turning.sit(Some(since));
    let pen = Box::new(Documents::behind(&turning, dialect, since));
    Ok(streamed(&house, turning, seat, pen, since, permit))
}

/// The last event that the reader says it has had.
fn since(headers: &HeaderMap, last: Position) -> Result<Position, Refusal> {
    let mut shown = headers.get_all("last-event-id").iter();
    let refused = |message: String| Refusal::new(StatusCode::BAD_REQUEST, message);
    let number = |it: &HeaderValue| {
        let text = it.to_str().ok()?.trim();
        let is_number = !text.is_empty() && text.bytes().all(|it| it.is_ascii_digit());
        is_number.then(|| text.parse().ok()).flatten()
    };
    let since = match (shown.next(), shown.next()) {
        (None, _) => return Ok(Position(0)),
        (Some(one), None) => number(one),
        (Some(_), Some(_)) => return Err(refused("a request has one Last-Event-ID".to_owned())),
    };
    let since = since.ok_or_else(|| {
        refused("`Last-Event-ID` is no id of an event".to_owned()).details("send back what stood behind `id:`")
    })?;
    if since > last.0 {
        return Err(refused(format!("the response has no event {since} yet"))
            .details("an id belongs to the response that it came with"));
    }
    Ok(Position(since))
}

fn dialect(query: Option<&str>) -> Result<Option<Dialect>, Refusal> {
    let word = query.and_then(|it| it.split('&').find_map(|it| it.strip_prefix("dialect=")));
    match word {
        None => Ok(None),
        Some(word) => Dialect::parse(word).map(Some).ok_or_else(|| {
            Refusal::new(StatusCode::BAD_REQUEST, "there is no such dialect").details("`named` or `data`")
        }),
    }
}

/// Takes an answer to a question of a running turn.
pub async fn input(State(house): State<Arc<House>>, Path(id): Path<String>, body: Body) -> Answer {
    let body = read(&house, body, INPUT_LIMIT_BYTES.min(house.limits.body_bytes)).await?;
    let response = ClarificationResponse::from_json(&body)?;
    let turning = found(&house, &id)?;
    let said = turning.response();
    match said.get(&response.document_id) {
        Some(document) if waits(document) => {
            if turning.tell(|turn| Command::Answer { turn, response }) {
                Ok(accepted(&turning))
            } else {
                Err(Refusal::new(StatusCode::CONFLICT, "the response has ended")
                    .details("send the answer with the next message"))
            }
        }
        Some(_) => Err(Refusal::new(StatusCode::CONFLICT, "the document is no open question")),
        None => Err(Refusal::new(StatusCode::NOT_FOUND, "the response has no such document")),
    }
}

/// Stops a response. Whoever does so twice, or too late, has what they wanted.
pub async fn cancel(State(house): State<Arc<House>>, Path(id): Path<String>) -> Answer {
    let turning = found(&house, &id)?;
    turning.cancel();
    Ok(accepted(&turning))
}

fn accepted(turning: &Turning) -> HttpResponse<Body> {
    refusal::json(StatusCode::ACCEPTED, json!({ "id": turning.identity.id }).to_string())
}

fn found(house: &House, id: &str) -> Result<Arc<Turning>, Refusal> {
    match house.hall.find(id) {
        Found::Here(turning) => Ok(turning),
        Found::Gone => Err(Refusal::new(
            StatusCode::GONE,
            "the response has ended and is not kept any more",
        )),
        Found::Unknown => Err(Refusal::new(StatusCode::NOT_FOUND, "there is no response of that name")),
    }
}
