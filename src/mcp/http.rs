//! A server behind HTTP: every message is a POST of its own; the answer is JSON, or a stream of events that ends with it.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use base64::Engine as _;
use futures::StreamExt as _;
use serde_json::{Map, Value};
use tokio::sync::oneshot;
use url::Url;

use super::{
    host::Host,
    info::{Era, Error, ToolInfo},
    message::{self, Message},
};
use crate::net::{
    client::{Client, Error as NetError, Peer, Proxy, Request, Response},
    sse::Frames,
};

/// Bytes of one answer.
const ANSWER_BYTES: usize = 16 << 20;
/// Bytes of an answer that says why there is none.
const ERROR_BYTES: usize = 64 << 10;
/// The connection's own clock ends a request earlier.
const LONGEST: Duration = Duration::from_mins(11);
/// Depth to which a schema is searched for arguments that become headers.
const SCHEMA_DEPTH: usize = 8;
/// Times that a stream which broke off is taken up again.
const MOST_RESUMED: usize = 3;
/// Pause before that, unless the server names another.
const RESUME_AFTER: Duration = Duration::from_secs(1);
/// Pause before a stream that a server ends is opened again, whatever it names.
const LEAST_PAUSE: Duration = Duration::from_millis(500);

/// An argument that is sent as a header, too: the header's name and the path of the argument.
type HeaderArgument = (String, Vec<String>);

/// A server behind HTTP.
pub struct Http {
    client: Client,
    path: String,
    query: Vec<(String, String)>,
    headers: Vec<(String, String)>,
    /// The version that the handshake has agreed on.
    version: Option<String>,
    state: Mutex<HttpState>,
}

#[derive(Default)]
struct HttpState {
    /// Id of the session, which a server of the handshake era may give.
    session: Option<String>,
    /// The token that requests bear.
    token: Option<String>,
    arguments: HashMap<String, Vec<HeaderArgument>>,
}

impl Http {
    /// A server at `url`, of whose requests all bear `headers`. Opens nothing yet.
    pub fn new(url: &str, headers: Vec<(String, String)>, token: Option<String>) -> Result<Self, Error> {
        let wrong = |why: String| Error::Http(why);
        let url = Url::parse(url).map_err(|it| wrong(format!("its address cannot be read: {it}")))?;
        let mut base = url.clone();
        base.set_path("/");
        base.set_query(None);
        base.set_fragment(None);
        let mut peer = Peer::new(base);
        peer.timeouts.first_byte = LONGEST;
        peer.timeouts.idle = LONGEST;
        if peer.base.host_str().is_some_and(|it| it == "localhost") {
            peer.proxy = Proxy::Direct;
        }
        let client = Client::new(peer).map_err(|it| wrong(it.to_string()))?;
        let query = url
            .query_pairs()
            .map(|(name, value)| (name.into_owned(), value.into_owned()));
        Ok(Self {
            client,
            path: url.path().trim_start_matches('/').to_owned(),
            query: query.collect(),
            headers,
            version: None,
            state: Mutex::new(HttpState {
                token,
                ..HttpState::default()
            }),
        })
    }

    fn state(&self) -> MutexGuard<'_, HttpState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The version that the handshake has agreed on: requests bear it from now on.
    pub fn set_version(&mut self, version: &str) {
        self.version = Some(version.to_owned());
    }

    /// Notes which arguments of which tools are sent as headers.
    pub fn note_headers(&self, tools: &[ToolInfo]) {
        let found = tools
            .iter()
            .filter_map(|it| Some((it.name.clone(), header_arguments(&it.schema).ok()?)));
        self.state().arguments = found.filter(|it| !it.1.is_empty()).collect();
    }

    /// Adds the headers of every request.
    fn with_headers(&self, mut request: Request) -> Request {
        for (name, value) in &self.query {
            request = request.query(name, value);
        }
        for (name, value) in &self.headers {
            request = request.header(name, value);
        }
        let state = self.state();
        if let Some(token) = &state.token {
            request = request.bearer(token);
        }
        if let Some(session) = &state.session {
            request = request.header("mcp-session-id", session);
        }
        request
    }

    async fn post(&self, message: &Value, era: &Era) -> Result<Response, Error> {
        let body = serde_json::to_vec(message).unwrap_or_default();
        let mut request = Request::post(&*self.path, body).accept("application/json, text/event-stream");
        let method = message.get("method").and_then(Value::as_str);
        match era {
            Era::Modern => {
                request = request.header("mcp-protocol-version", era.version());
                if let Some(method) = method {
                    request = request.header("mcp-method", method);
                }
                let params = message.get("params");
                let member = |name: &str| params.and_then(|it| it.get(name)).and_then(Value::as_str);
                let name = match method {
                    Some("tools/call" | "prompts/get") => member("name"),
                    Some("resources/read") => member("uri"),
                    Some(_) | None => None,
                };
                if let Some(name) = name {
                    request = request.header("mcp-name", &header_value(name));
                }
                if method == Some("tools/call")
                    && let (Some(name), Some(arguments)) = (name, params.and_then(|it| it.get("arguments")))
                {
                    for (header, value) in self.argument_headers(name, arguments) {
                        request = request.header(&format!("mcp-param-{header}"), &value);
                    }
                }
            }
            Era::Legacy(_) => {
                if let Some(version) = &self.version {
                    request = request.header("mcp-protocol-version", version);
                }
            }
        }
        self.client.open(self.with_headers(request)).await.map_err(failed)
    }

    fn argument_headers(&self, tool: &str, arguments: &Value) -> Vec<(String, String)> {
        let state = self.state();
        let known = state.arguments.get(tool).map(Vec::as_slice).unwrap_or_default();
        let value = |path: &[String]| path.iter().try_fold(arguments, |it, name| it.get(name));
        let found = known.iter().filter_map(|(header, path)| {
            let text = match value(path)? {
                Value::String(text) => text.clone(),
                other @ (Value::Bool(_) | Value::Number(_)) => other.to_string(),
                Value::Null | Value::Array(_) | Value::Object(_) => return None,
            };
            Some((header.clone(), header_value(&text)))
        });
        found.collect()
    }

    /// Sends a request and waits for its answer; what comes before it is heard.
    pub async fn request(&self, id: u64, message: &Value, era: &Era, host: &Arc<Host>) -> Result<Value, Error> {
        let response = self.post(message, era).await?;
        let response = self.checked(response).await?;
        let session = response.headers.get("mcp-session-id").and_then(|it| it.to_str().ok());
        if let Some(session) = session.filter(|it| it.len() <= 1024) {
            self.state().session = Some(session.to_owned());
        }
        if response.media_type() == "text/event-stream" {
            return self.streamed(id, response, era, host).await;
        }
        let body = response.body.read(ANSWER_BYTES).await.map_err(failed)?;
        match message::parse(&body).map_err(Error::Malformed)? {
            Message::Response { id: of, result } if of == id => result.map_err(Error::Rpc),
            _ => Err(Error::Malformed("it is no answer to the request".to_owned())),
        }
    }

    /// Reads a stream until the answer comes; one that breaks off is taken up again where the server numbers its events.
    async fn streamed(&self, id: u64, response: Response, era: &Era, host: &Arc<Host>) -> Result<Value, Error> {
        let mut response = response;
        let (mut last, mut pause) = (None, RESUME_AFTER);
        for _ in 0..=MOST_RESUMED {
            let mut frames = Frames::new();
            let mut body = response.body;
            let mut total = 0;
            loop {
                let piece = body.next().await;
                let found = match &piece {
                    Some(Ok(piece)) => {
                        total += piece.len();
                        pause = retry(piece).unwrap_or(pause);
                        frames.push(piece)
                    }
                    Some(Err(_)) | None => frames.finish().into_iter().collect(),
                };
                for frame in found {
                    let frame = frame.map_err(|it| Error::Malformed(it.to_string()))?;
                    last = frame.id.or(last);
                    if frame.data.trim().is_empty() {
                        continue;
                    }
                    if let Some(result) = self.take(id, frame.data.as_bytes(), era, host)? {
                        return result;
                    }
                }
                if total > 4 * ANSWER_BYTES {
                    return Err(Error::Malformed("the stream is longer than 64 MiB".to_owned()));
                }
                if !matches!(piece, Some(Ok(_))) {
                    break;
                }
            }
            // In the stateless era a broken stream loses the request.
            let (Some(at), Era::Legacy(_)) = (&last, era) else {
                break;
            };
            tokio::time::sleep(pause).await;
            let mut request = Request::get(&*self.path).accept("text/event-stream");
            if let Some(version) = &self.version {
                request = request.header("mcp-protocol-version", version);
            }
            let request = self.with_headers(request.header("last-event-id", at));
            let again = self.client.open(request).await.map_err(failed)?;
            response = self.checked(again).await?;
        }
        Err(Error::Gone("the stream broke off before the answer came".to_owned()))
    }

    /// Hears what a server of the handshake era sends beside its answers, as long as this is waited for. Ends at once if it has no such
    /// stream, and after some failures.
    pub async fn stand(&self, host: &Arc<Host>, opened: oneshot::Sender<()>) {
        let mut opened = Some(opened);
        let era = Era::Legacy(self.version.clone().unwrap_or_default());
        let (mut last, mut pause, mut failures) = (None::<String>, RESUME_AFTER, 0);
        while failures < MOST_RESUMED {
            let mut request = Request::get(&*self.path).accept("text/event-stream");
            if let Some(version) = &self.version {
                request = request.header("mcp-protocol-version", version);
            }
            if let Some(at) = &last {
                request = request.header("last-event-id", at);
            }
            failures += 1;
            if let Ok(response) = self.client.open(self.with_headers(request)).await {
                if !response.status.is_success() || response.media_type() != "text/event-stream" {
                    return;
                }
                // Whoever has gone does not wait.
                if let Some(opened) = opened.take() {
                    opened.send(()).ok();
                }
                let (mut frames, mut body) = (Frames::new(), response.body);
                while let Some(Ok(piece)) = body.next().await {
                    pause = retry(&piece).unwrap_or(pause);
                    for frame in frames.push(&piece).into_iter().flatten() {
                        failures = 0;
                        last = frame.id.or(last);
                        // Nothing here is an answer: no request has this id.
                        if let Err(error) = self.take(u64::MAX, frame.data.as_bytes(), &era, host)
                            && !frame.data.trim().is_empty()
                        {
                            host.log(&format!("not understood: {error}"));
                        }
                    }
                }
            }
            tokio::time::sleep(pause.max(LEAST_PAUSE)).await;
        }
    }

    /// Takes an event of a stream. Returns the answer if it is one.
    fn take(&self, id: u64, data: &[u8], era: &Era, host: &Arc<Host>) -> Result<Option<Result<Value, Error>>, Error> {
        match message::parse(data).map_err(Error::Malformed)? {
            Message::Response { id: of, result } if of == id => return Ok(Some(result.map_err(Error::Rpc))),
            Message::Response { .. } | Message::Stray => {}
            Message::Notification { method, params } => host.hear(&method, &params),
            Message::Request { id, method, params } => {
                // Only a server of the handshake era may ask here.
                if let (Era::Legacy(_), Some(place)) = (era, host.admit()) {
                    let (request, client, host) = (self.plain_post(), self.client.clone(), Arc::clone(host));
                    tokio::spawn(async move {
                        let _place = place;
                        let result = host.answer(&method, params).await;
                        let body = serde_json::to_vec(&message::response(&id, result)).unwrap_or_default();
                        client.open(request.with_body(body)).await.ok();
                    });
                }
            }
        }
        Ok(None)
    }

    /// A message of the handshake era, still without a body.
    fn plain_post(&self) -> Request {
        let request = Request::post(&*self.path, Vec::new()).accept("application/json, text/event-stream");
        self.with_headers(match &self.version {
            Some(version) => request.header("mcp-protocol-version", version),
            None => request,
        })
    }

    /// Sends a notification of the handshake era without waiting. Must be called in a runtime, else nothing is sent.
    pub fn try_send(&self, message: &Value) {
        let Ok(runtime) = tokio::runtime::Handle::try_current() else {
            return;
        };
        let body = serde_json::to_vec(message).unwrap_or_default();
        let (request, client) = (self.plain_post().with_body(body), self.client.clone());
        runtime.spawn(async move {
            tokio::time::timeout(LEAST_PAUSE, client.open(request)).await.ok();
        });
    }

    /// Sends a message that nobody answers.
    pub async fn send(&self, message: &Value, era: &Era) -> Result<(), Error> {
        let response = self.post(message, era).await?;
        self.checked(response).await.map(drop)
    }

    /// Tells a server of the handshake era that its session is over.
    pub async fn close(&self) {
        if self.state().session.is_none() {
            return;
        }
        let mut request = Request::delete(&*self.path);
        if let Some(version) = &self.version {
            request = request.header("mcp-protocol-version", version);
        }
        let request = self.with_headers(request);
        self.state().session = None;
        tokio::time::timeout(Duration::from_secs(1), self.client.open(request))
            .await
            .ok();
    }

    /// A response that is none of success, as the error that it means.
    async fn checked(&self, response: Response) -> Result<Response, Error> {
        let status = response.status.as_u16();
        if response.status.is_success() {
            return Ok(response);
        }
        if status == 401 || status == 403 {
            let challenge = response.headers.get("www-authenticate").and_then(|it| it.to_str().ok());
            let challenge = challenge.unwrap_or_default().to_owned();
            if status == 401 || challenge.contains("insufficient_scope") {
                return Err(Error::SignIn { challenge });
            }
        }
        let had_session = self.state().session.is_some();
        let body = response.body.beginning(ERROR_BYTES).await;
        if let Ok(value) = serde_json::from_slice::<Value>(&body)
            && value.get("error").is_some_and(Value::is_object)
            && let Ok(Message::Response { result: Err(error), .. }) = message::parse(&with_id(value))
        {
            return Err(Error::Rpc(error));
        }
        if status == 404 && had_session {
            self.state().session = None;
            return Err(Error::SessionEnded);
        }
        Err(Error::Http(format!("status {status}")))
    }
}

/// The pause that a stream names before it is to be taken up again: the last line `retry:` of a piece, at most a minute.
fn retry(piece: &[u8]) -> Option<Duration> {
    let text = std::str::from_utf8(piece).ok()?;
    let named = text.lines().rev().find_map(|it| it.strip_prefix("retry:"))?;
    let milliseconds: u64 = named.trim().parse().ok()?;
    Some(Duration::from_millis(milliseconds.min(60_000)))
}

/// An error that names no request, as one that names any.
fn with_id(mut value: Value) -> Vec<u8> {
    if let Some(members) = value.as_object_mut() {
        members.insert("id".to_owned(), 0.into());
    }
    serde_json::to_vec(&value).unwrap_or_default()
}

fn failed(error: NetError) -> Error {
    Error::Http(error.to_string())
}

/// A text as the value of a header: as it is, or in Base64 where that would not arrive unchanged.
fn header_value(text: &str) -> String {
    let is_plain = text.bytes().all(|it| (0x20..0x7f).contains(&it));
    if is_plain && text.trim() == text && !text.is_empty() && !(text.starts_with("=?") && text.ends_with("?=")) {
        return text.to_owned();
    }
    format!("=?base64?{}?=", base64::engine::general_purpose::STANDARD.encode(text))
}

/// The arguments of a schema that are sent as headers. Error: the schema breaks the rules for them, and its tool must not be
/// used.
pub fn header_arguments(schema: &Value) -> Result<Vec<HeaderArgument>, String> {
    let mut found = Vec::new();
    if let Some(properties) = schema.get("properties").and_then(Value::as_object) {
        collect(properties, &mut Vec::new(), &mut found)?;
    }
    let mut names: Vec<_> = found.iter().map(|it| it.0.to_ascii_lowercase()).collect();
    names.sort();
    names.dedup();
    if names.len() < found.len() {
        return Err("two arguments are sent as one header".to_owned());
    }
    Ok(found)
}

fn collect(
    properties: &Map<String, Value>,
    path: &mut Vec<String>,
    found: &mut Vec<HeaderArgument>,
) -> Result<(), String> {
    for (name, schema) in properties {
        path.push(name.clone());
        if let Some(header) = schema.get("x-mcp-header") {
            let is_token = |it: &str| {
                !it.is_empty()
                    && it.len() < 100
                    && it
                        .bytes()
                        .all(|it| it.is_ascii_alphanumeric() || it == b'-' || it == b'_')
            };
            let header = header.as_str().filter(|it| is_token(it));
            let header = header.ok_or_else(|| "an argument names a header that is none".to_owned())?;
            let kind = schema.get("type").and_then(Value::as_str);
            if !matches!(kind, Some("string" | "integer" | "boolean")) {
                return Err(format!(
                    "the argument for the header `{header}` is no text, integer or boolean"
                ));
            }
            found.push((header.to_owned(), path.clone()));
        }
        let inner = schema.get("properties").and_then(Value::as_object);
        if let Some(inner) = inner.filter(|_| path.len() < SCHEMA_DEPTH) {
            collect(inner, path, found)?;
        }
        path.pop();
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_header_carries_any_text() {
        for (text, expected) in [
            ("get_weather", "get_weather"),
            ("two words", "two words"),
            (" edge", "=?base64?IGVkZ2U=?="),
            ("München", "=?base64?TcO8bmNoZW4=?="),
            ("a\nb", "=?base64?YQpi?="),
            ("=?base64?x?=", "=?base64?PT9iYXNlNjQ/eD89?="),
            ("", "=?base64??="),
        ] {
            assert_eq!(header_value(text), expected, "{text:?}");
        }
    }

    #[test]
    fn a_stream_names_the_pause_before_it_is_taken_up_again() {
        for (piece, expected) in [
            ("id: 1\nretry: 500\ndata:\n\n", Some(500)),
            ("data: retry: 5\n\n", None),
            ("retry: soon\n", None),
            ("retry: 99999999\n", Some(60_000)),
        ] {
            assert_eq!(retry(piece.as_bytes()), expected.map(Duration::from_millis), "{piece}");
        }
    }

    #[test]
    fn arguments_become_headers_by_the_rules_only() {
        let of = |properties: Value| header_arguments(&json!({ "type": "object", "properties": properties }));
        assert_eq!(
            of(json!({
                "a": { "type": "string", "x-mcp-header": "Region" },
                "b": { "type": "object", "properties": { "c": { "type": "integer", "x-mcp-header": "Deep" } } },
                "d": { "type": "string" },
            })),
            Ok(vec![
                ("Region".to_owned(), vec!["a".to_owned()]),
                ("Deep".to_owned(), vec!["b".to_owned(), "c".to_owned()]),
            ])
        );
        for wrong in [
            json!({ "a": { "type": "number", "x-mcp-header": "X" } }),
            json!({ "a": { "type": "object", "x-mcp-header": "X" } }),
            json!({ "a": { "type": "string", "x-mcp-header": "X\r\nEvil: 1" } }),
            json!({ "a": { "type": "string", "x-mcp-header": 7 } }),
            json!({ "a": { "type": "string", "x-mcp-header": "X" }, "b": { "type": "string", "x-mcp-header": "x" } }),
        ] {
            assert!(of(wrong.clone()).is_err(), "{wrong}");
        }
    }
}
