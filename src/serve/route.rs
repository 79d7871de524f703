//! The paths of the protocol, and what is checked in which order before one of them is taken.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use axum::{
    Router,
    body::Body,
    extract::{Path, Request as HttpRequest, State},
    http::{HeaderValue, Method, Response as HttpResponse, StatusCode, header},
    middleware::{self, Next},
    response::IntoResponse,
    routing::{get, post},
};
use bytes::{Bytes, BytesMut};
use http_body_util::BodyExt;
use serde_json::{Value, json};
use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore, mpsc, watch},
    time::timeout,
};

use super::{
    Guest, Limits, Opener,
    answer::{self, Answer, Pieces},
    door::{self, Door, HEALTH},
    live::Live,
    refusal::{self, Refusal},
    talk,
};
use crate::{
    journal::Log,
    link::{AskError, Link},
    protocol::{
        ClarificationResponse, Command, ConversationId, Mode, Query, Reply, Request, ResponseId, Status,
        codec::{self, Encoder, Identity},
    },
};

/// How long a list of models may take.
const ASIDE: Duration = Duration::from_secs(10);

/// The answer to a question is not longer.
const INPUT_LIMIT_BYTES: usize = 1 << 20;

/// Everything that the handlers share.
pub struct House {
    pub door: Door,
    pub open: Box<Opener>,
    pub visited: Box<dyn Fn(&Visit) + Send + Sync>,
    pub answers: Arc<Semaphore>,
    pub live: Arc<Live>,
    pub limits: Limits,
    /// Turns true once.
    pub stop: watch::Receiver<bool>,
}

/// A request that was answered, for the access log: nothing of what was said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Visit {
    pub method: String,
    /// Without the query. A stranger wrote it.
    pub path: String,
    pub status: u16,
    /// Until the last byte of the answer was on its way.
    pub took: Duration,
}

pub fn router(house: Arc<House>) -> Router {
    Router::new()
        .route(
            HEALTH,
            get(|| async { refusal::json(StatusCode::OK, json!({ "status": "ok" }).to_string()) }),
        )
        .route("/v1/models", get(models))
        .route("/api/v1/chat/completions", post(completions))
        .route("/api/v1/chat/plan", post(plan))
        .route("/api/v1/chat/responses/{id}/input", post(input))
        .route("/api/v1/chat/responses/{id}/cancel", post(cancel))
        .fallback(|| async { Refusal::new(StatusCode::NOT_FOUND, "there is nothing at this path") })
        .method_not_allowed_fallback(|| async {
            Refusal::new(StatusCode::METHOD_NOT_ALLOWED, "this path takes another method")
        })
        .layer(middleware::from_fn_with_state(Arc::clone(&house), enter))
        .with_state(house)
}

/// Tells of a visit when the answer has gone out, or is given up.
struct Telling {
    house: Arc<House>,
    visit: Visit,
    since: Instant,
}

impl Drop for Telling {
    fn drop(&mut self) {
        self.visit.took = self.since.elapsed();
        (self.house.visited)(&self.visit);
    }
}

/// In front of every path.
async fn enter(State(house): State<Arc<House>>, request: HttpRequest, next: Next) -> HttpResponse<Body> {
    let mut telling = Telling {
        visit: Visit {
            method: request.method().to_string(),
            path: request.uri().path().to_owned(),
            // What a client that goes away before an answer is noted with, as elsewhere.
            status: 499,
            took: Duration::ZERO,
        },
        house: Arc::clone(&house),
        since: Instant::now(),
    };
    let origin = house.door.origin(request.headers()).map(str::to_owned);
    let in_chunks = request.headers().contains_key(header::TRANSFER_ENCODING);
    let mut response = admitted(&house, request, next)
        .await
        .unwrap_or_else(IntoResponse::into_response);
    let headers = response.headers_mut();
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    if let Some(origin) = origin.and_then(|it| HeaderValue::from_str(&it).ok()) {
        headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, origin);
        headers.insert(header::VARY, HeaderValue::from_static("Origin"));
    }
    if in_chunks {
        // The wire does not follow chunks to the next head.
        headers.insert(header::CONNECTION, HeaderValue::from_static("close"));
    }
    telling.visit.status = response.status().as_u16();
    response.map(|body| {
        Body::new(Told {
            body,
            _telling: telling,
        })
    })
}

/// A body that tells when it is over.
struct Told {
    body: Body,
    _telling: Telling,
}

impl hyper::body::Body for Told {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: std::pin::Pin<&mut Self>,
        cx: &mut std::task::Context<'_>,
    ) -> std::task::Poll<Option<Result<hyper::body::Frame<Bytes>, axum::Error>>> {
        std::pin::Pin::new(&mut self.body).poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> hyper::body::SizeHint {
        self.body.size_hint()
    }
}

async fn admitted(house: &Arc<House>, request: HttpRequest, next: Next) -> Result<HttpResponse<Body>, Refusal> {
    let (head, body) = request.into_parts();
    let Some(guest) = head.extensions.get::<Guest>().cloned() else {
        return Err(Refusal::new(
            StatusCode::INTERNAL_SERVER_ERROR,
            "the connection is unknown",
        ));
    };
    if guest.conflict.is_seen() {
        return Err(Refusal::new(StatusCode::BAD_REQUEST, "a request says the length of its body once").closing());
    }
    house.door.admit(&head, guest.local).map_err(Refusal::closing)?;
    if head.method == Method::OPTIONS && house.door.origin(&head.headers).is_some() {
        return Ok(preflight());
    }
    if head.uri.path() != HEALTH && !house.door.knows(&head.headers) {
        if house.door.note_failure(Instant::now()) {
            tokio::time::sleep(house.limits.failure_delay).await;
        }
        let refusal = Refusal::new(StatusCode::UNAUTHORIZED, "the token is missing or wrong");
        return Err(refusal.details("send it as `Authorization: Bearer TOKEN`").closing());
    }
    if head.method == Method::POST {
        if !door::is_json(&head.headers) {
            let message = "the body has to be `Content-Type: application/json`";
            return Err(Refusal::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, message).closing());
        }
        let length = head
            .headers
            .get(header::CONTENT_LENGTH)
            .and_then(|it| it.to_str().ok()?.parse::<u64>().ok());
        if length.is_some_and(|it| it > house.limits.body_bytes as u64) {
            return Err(too_large(house.limits.body_bytes));
        }
    }
    Ok(next.run(HttpRequest::from_parts(head, body)).await)
}

/// What a browser asks for before a page that may call does so.
fn preflight() -> HttpResponse<Body> {
    let mut response = StatusCode::NO_CONTENT.into_response();
    let headers = response.headers_mut();
    headers.insert(
        header::ACCESS_CONTROL_ALLOW_METHODS,
        HeaderValue::from_static("GET, POST"),
    );
    headers.insert(
        header::ACCESS_CONTROL_ALLOW_HEADERS,
        HeaderValue::from_static("authorization, content-type"),
    );
    response
}

fn too_large(limit_bytes: usize) -> Refusal {
    let limit = if limit_bytes >= 1 << 20 {
        format!("{} MiB", limit_bytes >> 20)
    } else {
        format!("{limit_bytes} bytes")
    };
    Refusal::new(
        StatusCode::PAYLOAD_TOO_LARGE,
        format!("a body may not be larger than {limit}"),
    )
    .closing()
}

/// Reads a body to its end, within the limits.
async fn read(house: &House, body: Body, limit_bytes: usize) -> Result<Value, Refusal> {
    let reading = async {
        let mut body = body;
        let mut bytes = BytesMut::new();
        while let Some(frame) = body.frame().await {
            let frame = frame.map_err(|_| Refusal::new(StatusCode::BAD_REQUEST, "the body broke off").closing())?;
            if let Ok(data) = frame.into_data() {
                if bytes.len() + data.len() > limit_bytes {
                    return Err(too_large(limit_bytes));
                }
                bytes.extend_from_slice(&data);
            }
        }
        Ok(bytes)
    };
    let bytes = timeout(house.limits.body_time, reading).await.map_err(|_| {
        let seconds = house.limits.body_time.as_secs();
        Refusal::new(
            StatusCode::REQUEST_TIMEOUT,
            format!("the body did not come within {seconds} s"),
        )
        .closing()
    })??;
    serde_json::from_slice(&bytes)
        .map_err(|error| Refusal::new(StatusCode::BAD_REQUEST, "the body is no JSON").details(error.to_string()))
}

async fn completions(State(house): State<Arc<House>>, body: Body) -> Result<HttpResponse<Body>, Refusal> {
    chat(house, body, None).await
}

async fn plan(State(house): State<Arc<House>>, body: Body) -> Result<HttpResponse<Body>, Refusal> {
    chat(house, body, Some(Mode::Plan)).await
}

async fn chat(house: Arc<House>, body: Body, mode: Option<Mode>) -> Result<HttpResponse<Body>, Refusal> {
    // The place comes first: a body of many megabytes is read for those who will be answered.
    let permit = place(&house)?;
    let body = read(&house, body, house.limits.body_bytes).await?;
    let (mut request, notices) = Request::from_json(&body)?;
    drop(body);
    for notice in notices {
        tracing::debug!(code = notice.code, "{}", notice.message);
    }
    request.mode = mode.unwrap_or(request.mode);
    let submit = talk::submit(&request)?;
    let now_ms = now_ms();
    let link = open(&house, &request, talk::before(&request, now_ms))?;
    let identity = Identity {
        id: ResponseId::fresh(),
        conversation_id: Some(request.conversation_id.clone().unwrap_or_else(ConversationId::fresh)),
        model: submit.model.clone().or_else(|| link.about().model).unwrap_or_default(),
        mode: request.mode,
        created_ms: now_ms,
    };
    let answer = Answer::start(link, submit, identity, request.stream, &house.live, permit);
    if !request.stream {
        let (response, identity) = answer.whole(house.stop.clone()).await;
        let is_cut = *house.stop.borrow() && response.status() == Status::Error;
        let status = if is_cut {
            StatusCode::SERVICE_UNAVAILABLE
        } else {
            StatusCode::OK
        };
        return Ok(refusal::json(status, codec::answer(&response, &identity).to_string()));
    }
    let encoder = Encoder::new(request.dialect.unwrap_or_default(), answer.identity().clone());
    let (out, pieces) = mpsc::channel(answer::PIECES);
    tokio::spawn(answer.stream(encoder, out, house.stop.clone(), house.limits.ping));
    let mut response = HttpResponse::new(Body::new(Pieces(pieces)));
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    // Proxies gather what they pass on unless they are asked not to.
    headers.insert("x-accel-buffering", HeaderValue::from_static("no"));
    Ok(response)
}

fn place(house: &House) -> Result<OwnedSemaphorePermit, Refusal> {
    Arc::clone(&house.answers).try_acquire_owned().map_err(|_| {
        Refusal::new(StatusCode::SERVICE_UNAVAILABLE, "too many answers are running")
            .details("`serve.max_streams` says how many may")
            .after_seconds(5)
    })
}

fn open(house: &House, request: &Request, log: Arc<Log>) -> Result<Arc<dyn Link>, Refusal> {
    (house.open)(request, log).map_err(|error| {
        let text = error.to_string();
        let (message, hint) = text.split_once('\n').unwrap_or((&text, ""));
        Refusal::new(StatusCode::BAD_GATEWAY, message).details(hint.trim())
    })
}

/// The models that one may wish for, in the form that model servers use.
async fn models(State(house): State<Arc<House>>) -> Result<HttpResponse<Body>, Refusal> {
    let link = open(&house, &Request::default(), Log::new())?;
    let failed = || Refusal::new(StatusCode::BAD_GATEWAY, "the list of models could not be had");
    match timeout(ASIDE, link.ask(Query::Models)).await {
        Ok(Ok(Reply::Models(names))) => {
            let models: Vec<_> = names.iter().map(|it| json!({ "id": it, "object": "model" })).collect();
            // No link runs tools for strangers yet.
            let list = json!({ "object": "list", "data": models, "tools": [] });
            Ok(refusal::json(StatusCode::OK, list.to_string()))
        }
        Ok(Err(AskError::Unsupported { .. })) => Err(Refusal::new(StatusCode::NOT_FOUND, "there is no list of models")),
        Ok(Ok(Reply::Files(_) | Reply::Context(_)) | Err(AskError::Failed { .. })) | Err(_) => Err(failed()),
    }
}

/// Takes an answer to a question of a running turn.
async fn input(
    State(house): State<Arc<House>>,
    Path(id): Path<String>,
    body: Body,
) -> Result<HttpResponse<Body>, Refusal> {
    let body = read(&house, body, INPUT_LIMIT_BYTES.min(house.limits.body_bytes)).await?;
    let response = ClarificationResponse::from_json(&body)?;
    let running = house.live.find(&id).ok_or_else(not_running)?;
    let (turn, so_far) = answer::so_far(&*running.link, running.since);
    match so_far.get(&response.document_id) {
        Some(document) if answer::waits(document) => {
            running.link.send(Command::Answer { turn, response });
            Ok(refusal::json(StatusCode::ACCEPTED, json!({}).to_string()))
        }
        Some(_) => Err(Refusal::new(StatusCode::CONFLICT, "the document is no open question")),
        None => Err(Refusal::new(StatusCode::NOT_FOUND, "the response has no such document")),
    }
}

async fn cancel(State(house): State<Arc<House>>, Path(id): Path<String>) -> Result<HttpResponse<Body>, Refusal> {
    let running = house.live.find(&id).ok_or_else(not_running)?;
    running.link.send(Command::Cancel);
    Ok(refusal::json(StatusCode::ACCEPTED, json!({}).to_string()))
}

fn not_running() -> Refusal {
    Refusal::new(StatusCode::NOT_FOUND, "no response of that name is running")
}

fn now_ms() -> u64 {
    u64::try_from(chrono::Utc::now().timestamp_millis()).unwrap_or_default()
}
