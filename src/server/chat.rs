//! Endpoints of the documents protocol.

use std::{sync::Arc, time::Duration};

use axum::{
    body::Body,
    extract::{Path, RawQuery, State},
    http::{HeaderMap, HeaderValue, Response as HttpResponse, StatusCode, header},
};
use serde_json::json;
use tokio::sync::OwnedSemaphorePermit;

use super::{
    LinkRequest,
    ending::is_open_question,
    history, now_ms,
    reader::{DocumentEncoder, Reader, StreamBody, StreamEncoder},
    refusal::{self, Refusal},
    registry::Lookup,
    state::{ServerState, read},
    stream_connection::MEDIA_TYPE,
    turn::{EventRelay, ReaderGuard, ResponseOptions, ServedResponse},
};
use crate::{
    link::Asker,
    protocol::{
        ClarificationResponse, Command, ConversationId, Dialect, Mode, Position, Request, ResponseId, Status,
        codec::{self, Identity},
    },
};

/// Maximum body size of an answer to a question, in bytes.
const INPUT_LIMIT_BYTES: usize = 1 << 20;

type Answer = Result<HttpResponse<Body>, Refusal>;

/// `POST /api/v1/chat/completions`: answers a conversation, as a stream or as one object.
pub async fn completions(State(state): State<Arc<ServerState>>, body: Body) -> Answer {
    chat(state, body, None).await
}

/// `POST /api/v1/chat/plan`: the same in plan mode.
pub async fn plan(State(state): State<Arc<ServerState>>, body: Body) -> Answer {
    chat(state, body, Some(Mode::Plan)).await
}

async fn chat(state: Arc<ServerState>, body: Body, mode: Option<Mode>) -> Answer {
    // The permit comes first: a body of many megabytes is read only for a request that will be answered.
    let permit = state.acquire_stream()?;
    let body = read(&state, body, state.limits.body_bytes).await?;
    let (mut request, notices) = Request::from_json(&body)?;
    drop(body);
    for notice in notices {
        tracing::debug!(code = notice.code, "{}", notice.message);
    }
    request.mode = mode.unwrap_or(request.mode);
    let is_stream = request.stream;
    let asker = if is_stream && history::accepts_answers(&request) {
        Asker::Live
    } else {
        Asker::Later
    };
    let options = TurnOptions {
        asker,
        may_be_kept: state.conversations.is_some(),
        is_resumable: is_stream,
    };
    let (served, guard) = begin(&state, request, options, &permit).await?;
    if is_stream {
        let encoder = Box::new(DocumentEncoder::new(served.dialect));
        return Ok(streamed(&state, served, guard, encoder, Position(0), permit));
    }
    served.ended().await;
    let response = served.response();
    drop(guard);
    let is_cut = *state.stop.borrow() && response.status() == Status::Error;
    let status = if is_cut {
        StatusCode::SERVICE_UNAVAILABLE
    } else {
        StatusCode::OK
    };
    let whole = codec::answer(&response, &served.identity).to_text();
    Ok(refusal::long_json(status, whole))
}

/// Options of an endpoint for the turn that it begins.
#[derive(Clone, Copy, Debug)]
pub struct TurnOptions {
    /// The client's way to answer questions.
    pub asker: Asker,
    /// True if the conversation may be stored.
    pub may_be_kept: bool,
    /// True if readers may reconnect for the events that they missed.
    pub is_resumable: bool,
}

/// Sends a request's last message to a link and starts relaying its answer. Returns the response and its first reader.
///
/// The turn runs while the response has readers; with a stored conversation it continues for a while without any.
pub async fn begin(
    state: &Arc<ServerState>,
    request: Request,
    turn_options: TurnOptions,
    permit: &Arc<OwnedSemaphorePermit>,
) -> Result<(Arc<ServedResponse>, ReaderGuard), Refusal> {
    let asker = turn_options.asker;
    let mut submit = history::submit(&request)?;
    if let Some(model) = &submit.model {
        state.check_model(model)?;
    }
    let now_ms = now_ms();
    let claim = match state.conversations.as_ref().filter(|_| turn_options.may_be_kept) {
        Some(conversations) => Some(conversations.claim_for(&request, asker, &*state.open, now_ms).await?),
        None => None,
    };
    let (link, conversation) = match &claim {
        Some(claim) => (Arc::clone(&claim.conversation().link), claim.conversation().id.clone()),
        None => {
            let wanted = LinkRequest {
                request: &request,
                asker,
            };
            let link = super::open(&*state.open, &wanted, history::before(&request, now_ms))?;
            let conversation = request.conversation_id.clone().unwrap_or_else(ConversationId::fresh);
            (link, conversation)
        }
    };
    if link.about().reads_context {
        history::attach_context(&mut submit.message, request.context.as_ref(), link.log());
    }
    let identity = Identity {
        id: ResponseId::fresh(),
        conversation_id: Some(conversation),
        model: submit.model.clone().or_else(|| link.about().model).unwrap_or_default(),
        mode: request.mode,
        created_ms: now_ms,
    };
    let is_stateful = claim.is_some();
    let options = ResponseOptions {
        accepts_answers: asker == Asker::Live,
        is_stream: request.stream,
        is_stateful,
        // Who did not get a stream does not know the response's id and cannot return.
        linger: match (is_stateful, turn_options.is_resumable) {
            (true, _) => state.linger,
            (false, true) => state.grace,
            (false, false) => Duration::ZERO,
        },
        patience: state.limits.question_time,
    };
    let served = ServedResponse::new(
        Arc::clone(&link),
        identity,
        request.dialect.unwrap_or_default(),
        options,
    );
    let guard = served.add_reader(request.stream.then_some(Position(0)));
    let keep = match (is_stateful, turn_options.is_resumable) {
        (true, _) => state.limits.retention,
        (false, true) => state.limits.brief_retention,
        (false, false) => Duration::ZERO,
    };
    state.responses.insert(&served, turn_options.is_resumable, keep);
    let relay = EventRelay::start(&served, link, submit);
    if let Some(claim) = claim {
        claim.answers(&served);
    }
    let (state, id, permit) = (Arc::clone(state), served.identity.id.clone(), Arc::clone(permit));
    tokio::spawn(async move {
        // What the request and the prompt took for a moment.
        state.trim_soon();
        relay.run(state.stop.clone()).await;
        state.responses.mark_ended(&id);
        state.trim_soon();
        drop(permit);
    });
    Ok((served, guard))
}

/// Returns an event stream of the response, from the event after `since`.
pub fn streamed(
    state: &ServerState,
    served: Arc<ServedResponse>,
    guard: ReaderGuard,
    encoder: Box<dyn StreamEncoder>,
    since: Position,
    permit: Arc<OwnedSemaphorePermit>,
) -> HttpResponse<Body> {
    let reader = Reader {
        served,
        guard,
        encoder,
        since,
        permit,
        ping: state.limits.ping_interval,
    };
    event_stream(reader.body())
}

/// Returns a response with a stream of events.
pub fn event_stream(body: StreamBody) -> HttpResponse<Body> {
    let mut response = HttpResponse::new(Body::new(body));
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(MEDIA_TYPE));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    // Proxies buffer responses unless told otherwise.
    headers.insert("x-accel-buffering", HeaderValue::from_static("no"));
    response
}

/// `GET /api/v1/chat/responses/{id}`: the response as far as it exists, as one object.
pub async fn response(State(state): State<Arc<ServerState>>, Path(id): Path<String>) -> Answer {
    let served = found(&state, &id)?;
    let whole = codec::answer(&served.response(), &served.identity);
    Ok(refusal::long_json(StatusCode::OK, whole.to_text()))
}

/// `GET /api/v1/chat/responses/{id}/stream`: resumes the stream after the reader's `Last-Event-ID`.
pub async fn stream(
    State(state): State<Arc<ServerState>>,
    Path(id): Path<String>,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
) -> Answer {
    let permit = state.acquire_stream()?;
    let served = found(&state, &id)?;
    let since = since(&headers, served.last())?;
    let dialect = match dialect(query.as_deref())? {
        Some(dialect) => dialect,
        None => served.dialect,
    };
    let guard = served.add_reader(Some(since));
    let encoder = Box::new(DocumentEncoder::behind(&served, dialect, since));
    Ok(streamed(&state, served, guard, encoder, since, permit))
}

/// Reads `Last-Event-ID`; 0 without one. Refused with 400 if it is no number or beyond the `last` event.
fn since(headers: &HeaderMap, last: Position) -> Result<Position, Refusal> {
    let Some(since) = last_event_id(headers)? else {
        return Ok(Position(0));
    };
    if since > last.0 {
        return Err(Refusal::new(
            StatusCode::BAD_REQUEST,
            format!("the response has no event {since} yet"),
        )
        .details("an id belongs to the response that it came with"));
    }
    Ok(Position(since))
}

/// Reads `Last-Event-ID`. Refused with 400 if it is no number.
pub fn last_event_id(headers: &HeaderMap) -> Result<Option<u64>, Refusal> {
    let mut shown = headers.get_all("last-event-id").iter();
    let refused = |message: &str| Refusal::new(StatusCode::BAD_REQUEST, message);
    let number = |it: &HeaderValue| {
        let text = it.to_str().ok()?.trim();
        let is_number = !text.is_empty() && text.bytes().all(|it| it.is_ascii_digit());
        is_number.then(|| text.parse().ok()).flatten()
    };
    match (shown.next(), shown.next()) {
        (None, _) => Ok(None),
        (Some(one), None) => number(one)
            .map(Some)
            .ok_or_else(|| refused("`Last-Event-ID` is not an event id").details("send back the value of `id:`")),
        (Some(_), Some(_)) => Err(refused("a request has one Last-Event-ID")),
    }
}

/// Reads the dialect from the query; `None` without one.
fn dialect(query: Option<&str>) -> Result<Option<Dialect>, Refusal> {
    let word = query.and_then(|it| it.split('&').find_map(|it| it.strip_prefix("dialect=")));
    match word {
        None => Ok(None),
        Some(word) => Dialect::parse(word)
            .map(Some)
            .ok_or_else(|| Refusal::new(StatusCode::BAD_REQUEST, "unknown dialect").details("`named` or `data`")),
    }
}

/// `POST /api/v1/chat/responses/{id}/input`: answers a question of a running turn.
pub async fn input(State(state): State<Arc<ServerState>>, Path(id): Path<String>, body: Body) -> Answer {
    let response = read_answer(&state, body).await?;
    let served = found(&state, &id)?;
    give_answer(&served, response)
}

/// Reads the body of an answer to a question.
pub async fn read_answer(state: &ServerState, body: Body) -> Result<ClarificationResponse, Refusal> {
    let body = read(state, body, INPUT_LIMIT_BYTES.min(state.limits.body_bytes)).await?;
    Ok(ClarificationResponse::from_json(&body)?)
}

/// Answers an open question of a response.
pub fn give_answer(served: &Arc<ServedResponse>, response: ClarificationResponse) -> Answer {
    let said = served.response();
    match said.get(&response.document_id) {
        Some(document) if is_open_question(document) => {
            if served.send_command(|turn| Command::Answer { turn, response }) {
                Ok(accepted(served))
            } else {
                Err(Refusal::new(StatusCode::CONFLICT, "the response has ended")
                    .details("send the answer with the next message"))
            }
        }
        Some(_) => Err(Refusal::new(
            StatusCode::CONFLICT,
            "the document is not an open question",
        )),
        None => Err(Refusal::new(StatusCode::NOT_FOUND, "the response has no such document")),
    }
}

/// `POST /api/v1/chat/responses/{id}/cancel`: stops a response. Succeeds as well if it has ended.
pub async fn cancel(State(state): State<Arc<ServerState>>, Path(id): Path<String>) -> Answer {
    let served = found(&state, &id)?;
    served.cancel();
    Ok(accepted(&served))
}

pub fn accepted(served: &ServedResponse) -> HttpResponse<Body> {
    refusal::json(StatusCode::ACCEPTED, json!({ "id": served.identity.id }).to_string())
}

fn found(state: &ServerState, id: &str) -> Result<Arc<ServedResponse>, Refusal> {
    match state.responses.find(id) {
        Lookup::Here(served) => Ok(served),
        Lookup::Gone => Err(Refusal::new(
            StatusCode::GONE,
            "the response has ended and is no longer stored",
        )),
        Lookup::Unknown => Err(Refusal::new(StatusCode::NOT_FOUND, "unknown response")),
    }
}
