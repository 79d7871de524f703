//! Routes of the API, and the checks in front of them: host and origin, token, content type, size.

use std::{
    collections::BTreeSet,
    sync::{Arc, LazyLock},
    time::{Duration, Instant},
};

use axum::{
    Router,
    body::Body,
    extract::{MatchedPath, Path, Request as HttpRequest, State},
    http::{HeaderValue, Method, Response as HttpResponse, StatusCode, header, request::Parts},
    middleware::{self, Next},
    response::IntoResponse,
    routing::{MethodRouter, get, post},
};
use bytes::Bytes;
use serde_json::{Map, Value, json};

use super::{
    ConnectionInfo, anthropic,
    auth::{self, HEALTH},
    chat,
    connection::OpenRequest,
    conversations, openai,
    refusal::{self, Refusal},
    state::{AccessRecord, ServerState, too_large},
};
use crate::protocol;

/// Returns every route as path, method and handler. A test compares the OpenAPI description with it.
pub fn paths() -> Vec<(&'static str, &'static str, MethodRouter<Arc<ServerState>>)> {
    let health = || async { refusal::json(StatusCode::OK, json!({ "status": "ok" }).to_string()) };
    vec![
        (HEALTH, "get", get(health)),
        ("/api/v1/chat/completions", "post", post(chat::completions)),
        ("/api/v1/chat/plan", "post", post(chat::plan)),
        ("/api/v1/chat/responses/{id}", "get", get(chat::response)),
        ("/api/v1/chat/responses/{id}/stream", "get", get(chat::stream)),
        ("/api/v1/chat/responses/{id}/input", "post", post(chat::input)),
        (CANCEL, "post", post(chat::cancel)),
        ("/api/v1/conversations", "get", get(conversations::list)),
        ("/api/v1/conversations/{id}", "get", get(conversations::one)),
        ("/api/v1/conversations/{id}/diff", "get", get(conversations::diff)),
        ("/api/v1/conversations/{id}/stream", "get", get(conversations::stream)),
        ("/api/v1/conversations/{id}/undo", "post", post(conversations::undo)),
        ("/api/v1/conversations/{id}/input", "post", post(conversations::input)),
        (CONVERSATION_CANCEL, "post", post(conversations::cancel)),
        ("/api/v1/events", "get", get(conversations::all)),
        ("/v1/chat/completions", "post", post(openai::completions)),
        ("/v1/responses", "post", post(openai::responses)),
        (anthropic::MESSAGES, "post", post(anthropic::messages)),
        ("/v1/models", "get", get(openai::models)),
        ("/v1/models/{*id}", "get", get(openai::one_model)),
        ("/openapi.json", "get", get(description)),
        (PROTOCOL, "get", get(schemas)),
        ("/protocol/{name}", "get", get(schema)),
    ]
}

/// Paths that accept a body but need none.
const CANCEL: &str = "/api/v1/chat/responses/{id}/cancel";
const CONVERSATION_CANCEL: &str = "/api/v1/conversations/{id}/cancel";

/// OpenAPI description of the paths. The schemas of the protocol are added when it is first requested.
const DESCRIPTION: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/openapi.json.deflate"));

async fn description() -> HttpResponse<Body> {
    static WHOLE: LazyLock<String> = LazyLock::new(|| {
        let unpacked = flate2::read::DeflateDecoder::new(DESCRIPTION);
        let mut whole: Value = serde_json::from_reader(unpacked).expect("a test reads the same text");
        let schemas = Value::Object(protocol::schema::definitions()).to_string();
        let schemas = schemas.replace("#/$defs/", "#/components/schemas/");
        let schemas: Map<String, Value> = serde_json::from_str(&schemas).expect("it was written as JSON");
        if let Some(components) = whole["components"]["schemas"].as_object_mut() {
            components.extend(schemas);
        }
        whole.to_string()
    });
    refusal::json(StatusCode::OK, WHOLE.clone())
}

/// Path of the list of schemas; each schema is below it.
const PROTOCOL: &str = "/protocol";

async fn schemas() -> HttpResponse<Body> {
    refusal::json(StatusCode::OK, protocol::schema::index(PROTOCOL).to_string())
}

/// `GET /protocol/{name}`: a schema with all that it refers to.
async fn schema(Path(name): Path<String>) -> Result<HttpResponse<Body>, Refusal> {
    let schema = if name == protocol::schema::WHOLE {
        Some(protocol::schema::whole())
    } else {
        protocol::schema::schema(&name)
    };
    let schema = schema.ok_or_else(|| {
        Refusal::new(StatusCode::NOT_FOUND, "unknown schema").details(format!("{PROTOCOL} lists them"))
    })?;
    Ok(refusal::json(StatusCode::OK, schema.to_string()))
}

/// Prefix of the paths whose errors have the form of another API.
const OTHERS: &str = "/v1/";

/// Returns the router with all routes and the checks in front of them.
pub fn router(state: Arc<ServerState>) -> Router {
    let routes = Router::new();
    let routes = paths()
        .into_iter()
        .fold(routes, |it, (path, _, method)| it.route(path, method));
    routes
        .fallback(|| async { Refusal::new(StatusCode::NOT_FOUND, "nothing at this path") })
        .method_not_allowed_fallback(|| async {
            Refusal::new(StatusCode::METHOD_NOT_ALLOWED, "this path takes another method")
        })
        .layer(middleware::from_fn_with_state(Arc::clone(&state), handle))
        .with_state(state)
}

/// Logs its record when dropped: after the response has been sent or abandoned. Until then the connection is at work.
struct AccessLogEntry {
    state: Arc<ServerState>,
    record: AccessRecord,
    since: Instant,
    _open: Option<OpenRequest>,
}

impl Drop for AccessLogEntry {
    fn drop(&mut self) {
        self.record.took = self.since.elapsed();
        (self.state.log_access)(&self.record);
        self.state.trim_soon();
    }
}

/// Middleware of all routes: runs the checks, adds common headers and logs the request.
async fn handle(State(state): State<Arc<ServerState>>, request: HttpRequest, next: Next) -> HttpResponse<Body> {
    let mut entry = AccessLogEntry {
        record: AccessRecord {
            method: request.method().to_string(),
            path: request.uri().path().to_owned(),
            // The usual status for a client that leaves before an answer.
            status: 499,
            took: Duration::ZERO,
        },
        state: Arc::clone(&state),
        since: Instant::now(),
        _open: request
            .extensions()
            .get::<ConnectionInfo>()
            .map(|it| it.requests.begin()),
    };
    let origin = state.access.allowed_origin(request.headers()).map(str::to_owned);
    let is_anthropic = anthropic::is_client(request.headers());
    let in_chunks = request.headers().contains_key(header::TRANSFER_ENCODING);
    let mut response = check_and_route(&state, request, next)
        .await
        .unwrap_or_else(IntoResponse::into_response);
    let other = response.extensions_mut().remove::<refusal::OtherForms>();
    if let Some(forms) = other.filter(|_| entry.record.path.starts_with(OTHERS)) {
        let is_error = response.status().is_server_error();
        let text = if is_anthropic || entry.record.path == anthropic::MESSAGES {
            *response.status_mut() = anthropic::status(response.status());
            forms.anthropic
        } else {
            forms.openai
        };
        *response.body_mut() = Body::from(text);
        response.headers_mut().remove(header::CONTENT_LENGTH);
        // Tools may have run, so clients must not retry without asking the user.
        if is_error {
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
        // [`super::connection`] does not scan chunked bodies for the next head.
        headers.insert(header::CONNECTION, HeaderValue::from_static("close"));
    }
    entry.record.status = response.status().as_u16();
    response.map(|body| Body::new(LoggedBody { body, _entry: entry }))
}

/// A body that logs its request when it has been sent.
struct LoggedBody {
    body: Body,
    _entry: AccessLogEntry,
}

impl hyper::body::Body for LoggedBody {
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

async fn check_and_route(
    state: &Arc<ServerState>,
    request: HttpRequest,
    next: Next,
) -> Result<HttpResponse<Body>, Refusal> {
    let (head, body) = request.into_parts();
    let Some(info) = head.extensions.get::<ConnectionInfo>().cloned() else {
        return Err(Refusal::new(
            StatusCode::INTERNAL_SERVER_ERROR,
            "the connection is unknown",
        ));
    };
    if info.conflict.is_seen() {
        return Err(Refusal::new(StatusCode::BAD_REQUEST, "a request says the length of its body once").closing());
    }
    state
        .access
        .check_host_and_origin(&head, info.local)
        .map_err(Refusal::closing)?;
    if head.method == Method::OPTIONS && state.access.allowed_origin(&head.headers).is_some() {
        return Ok(preflight());
    }
    if head.uri.path() != HEALTH && !state.access.has_valid_token(&head.headers) {
        if state.access.note_failure(Instant::now()) {
            tokio::time::sleep(state.limits.failure_delay).await;
        }
        let refusal = Refusal::new(StatusCode::UNAUTHORIZED, "the token is missing or wrong");
        return Err(refusal
            .details("send it as `Authorization: Bearer TOKEN` or `x-api-key: TOKEN`")
            .closing());
    }
    if head.method == Method::POST && is_post_path(&head) {
        if !auth::is_json(&head.headers) && !is_empty_cancel(&head) {
            let message = "the body has to be `Content-Type: application/json`";
            return Err(Refusal::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, message).closing());
        }
        let length = head
            .headers
            .get(header::CONTENT_LENGTH)
            .and_then(|it| it.to_str().ok()?.parse::<u64>().ok());
        if length.is_some_and(|it| it > state.limits.body_bytes as u64) {
            return Err(too_large(state.limits.body_bytes));
        }
    }
    Ok(next.run(HttpRequest::from_parts(head, body)).await)
}

/// Returns true if the route accepts POST. For others the router refuses the method, whatever the body is.
fn is_post_path(head: &Parts) -> bool {
    static POSTED: LazyLock<BTreeSet<&str>> = LazyLock::new(|| {
        let posted = paths().into_iter().filter(|(_, method, _)| *method == "post");
        posted.map(|(path, _, _)| path).collect()
    });
    let matched = head.extensions.get::<MatchedPath>();
    matched.is_some_and(|it| POSTED.contains(it.as_str()))
}

/// Returns true for a cancel request without body or content type.
fn is_empty_cancel(head: &Parts) -> bool {
    let is_cancel = head
        .extensions
        .get::<MatchedPath>()
        .is_some_and(|it| matches!(it.as_str(), CANCEL | CONVERSATION_CANCEL));
    let says = |name| head.headers.contains_key(name);
    let has_length = head.headers.get(header::CONTENT_LENGTH).is_some_and(|it| it != "0");
    is_cancel && !has_length && !says(header::CONTENT_TYPE) && !says(header::TRANSFER_ENCODING)
}

/// Answers a CORS preflight of an allowed page.
fn preflight() -> HttpResponse<Body> {
    let mut response = StatusCode::NO_CONTENT.into_response();
    let headers = response.headers_mut();
    headers.insert(
        header::ACCESS_CONTROL_ALLOW_METHODS,
        HeaderValue::from_static("GET, POST"),
    );
    headers.insert(
        header::ACCESS_CONTROL_ALLOW_HEADERS,
        HeaderValue::from_static("authorization, content-type, last-event-id, x-api-key, anthropic-version"),
    );
    response
}
