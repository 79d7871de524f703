//! The paths of the protocol, and what is checked in which order before one of them is taken.

use std::{
    collections::BTreeSet,
    sync::{Arc, LazyLock},
    time::{Duration, Instant},
};

use axum::{
    Router,
    body::Body,
    extract::{MatchedPath, Request as HttpRequest, State},
    http::{HeaderValue, Method, Response as HttpResponse, StatusCode, header, request::Parts},
    middleware::{self, Next},
    response::IntoResponse,
    routing::{MethodRouter, get, post},
};
use bytes::{Bytes, BytesMut};
use http_body_util::BodyExt;
use serde_json::{Value, json};
use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore, watch},
    time::timeout,
};

use super::{
    Guest, Limits, Opener, chat,
    door::{self, Door, HEALTH},
    hall::Hall,
    kept::Kept,
    openai,
    refusal::{self, Refusal},
};

/// Everything that the handlers share.
pub struct House {
    pub door: Door,
    pub open: Box<Opener>,
    pub visited: Box<dyn Fn(&Visit) + Send + Sync>,
    pub answers: Arc<Semaphore>,
    pub hall: Hall,
    pub kept: Option<Kept>,
    /// How long the turn of a kept conversation goes on after its last reader left.
    pub linger: Duration,
    /// What clients can have done here.
    pub tools: Vec<String>,
    pub limits: Limits,
    /// Turns true once.
    pub stop: watch::Receiver<bool>,
}

impl House {
    /// A place among all answers.
    pub fn place(&self) -> Result<Arc<OwnedSemaphorePermit>, Refusal> {
        let permit = Arc::clone(&self.answers).try_acquire_owned();
        permit.map(Arc::new).map_err(|_| {
            Refusal::new(StatusCode::SERVICE_UNAVAILABLE, "too many answers are running")
                .details("`serve.max_streams` says how many may")
                .after_seconds(5)
        })
    }

    /// Lets go of what nobody came back for.
    pub async fn sweep(&self, keep: Duration) {
        self.hall.sweep(keep);
        if self.hall.is_quiet() {
            // Only a panic there would be an error, and then nothing was given back.
            let _ = tokio::task::spawn_blocking(crate::os::resident::trim_when_worth).await;
        }
        if let Some(kept) = &self.kept {
            kept.sweep(keep).await;
        }
    }
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

/// Every path, with the methods that it takes. The description of the API is held against this list.
pub fn paths() -> Vec<(&'static str, &'static str, MethodRouter<Arc<House>>)> {
    let health = || async { refusal::json(StatusCode::OK, json!({ "status": "ok" }).to_string()) };
    vec![
        (HEALTH, "get", get(health)),
        ("/api/v1/chat/completions", "post", post(chat::completions)),
        ("/api/v1/chat/plan", "post", post(chat::plan)),
        ("/api/v1/chat/responses/{id}", "get", get(chat::response)),
        ("/api/v1/chat/responses/{id}/stream", "get", get(chat::stream)),
        ("/api/v1/chat/responses/{id}/input", "post", post(chat::input)),
        (CANCEL, "post", post(chat::cancel)),
        ("/v1/chat/completions", "post", post(openai::completions)),
        ("/v1/models", "get", get(openai::models)),
        ("/v1/models/{*id}", "get", get(openai::one_model)),
        ("/openapi.json", "get", get(description)),
    ]
}

/// Takes a body and needs none.
const CANCEL: &str = "/api/v1/chat/responses/{id}/cancel";

/// What the API is, for programs.
const DESCRIPTION: &str = include_str!("../../assets/openapi.json");

async fn description() -> HttpResponse<Body> {
    refusal::json(StatusCode::OK, DESCRIPTION.to_owned())
}

/// Below this, errors have the form of OpenAI's.
const OPENAI: &str = "/v1/";

pub fn router(house: Arc<House>) -> Router {
    let routes = Router::new();
    let routes = paths()
        .into_iter()
        .fold(routes, |it, (path, _, method)| it.route(path, method));
    routes
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
    let other = response.extensions_mut().remove::<refusal::Openai>();
    if let Some(refusal::Openai(text)) = other.filter(|_| telling.visit.path.starts_with(OPENAI)) {
        *response.body_mut() = Body::from(text);
        response.headers_mut().remove(header::CONTENT_LENGTH);
        // Tools may have run, so it is for the user to ask again.
        if response.status().is_server_error() {
            response
                .headers_mut()
                .insert("x-should-retry", HeaderValue::from_static("false"));
        }
    }
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
    if head.method == Method::POST && takes_posts(&head) {
        if !door::is_json(&head.headers) && !is_bare_cancel(&head) {
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

/// Whether the path is one that is posted to; another one refuses the method, whatever the body is.
fn takes_posts(head: &Parts) -> bool {
    static POSTED: LazyLock<BTreeSet<&str>> = LazyLock::new(|| {
        let posted = paths().into_iter().filter(|(_, method, _)| *method == "post");
        posted.map(|(path, _, _)| path).collect()
    });
    let matched = head.extensions.get::<MatchedPath>();
    matched.is_some_and(|it| POSTED.contains(it.as_str()))
}

/// Whether something is to be stopped and nothing said with it, not even of what type.
fn is_bare_cancel(head: &Parts) -> bool {
    let is_cancel = head
        .extensions
        .get::<MatchedPath>()
        .is_some_and(|it| it.as_str() == CANCEL);
    let says = |name| head.headers.contains_key(name);
    let has_length = head.headers.get(header::CONTENT_LENGTH).is_some_and(|it| it != "0");
    is_cancel && !has_length && !says(header::CONTENT_TYPE) && !says(header::TRANSFER_ENCODING)
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
pub async fn read(house: &House, body: Body, limit_bytes: usize) -> Result<Value, Refusal> {
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
