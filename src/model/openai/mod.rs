//! OpenAI's chat completions, and the many servers that call themselves compatible.

mod request;
mod stream;

use std::{pin::Pin, sync::Arc, time::Duration};

use chrono::Utc;
use futures::StreamExt;
use serde_json::Value;
use tokio::{
    sync::{OnceCell, mpsc},
    time::{sleep, timeout},
};

use super::{Failure, FailureKind, Format, Model, ModelRequest, Piece, PieceStream, Provider, catalogue, produce};
use crate::{
    config::{self, Environment, Secret},
    net::{
        client::{self, Body, Client, HeaderMap, Request, Response},
        retry::{self, Advice, Decision, Policy},
        sse::Frames,
    },
    protocol::Progress,
};
use stream::Decoder;

pub const FORMAT: Format = Format {
    name: "openai",
    open: |settings, environment| Ok(Arc::new(OpenAi::new(settings, environment)?)),
};

/// A body that is no stream: a whole answer, a list of models.
const BODY_LIMIT_BYTES: usize = 16 << 20;

/// As much of an error's body as is read.
const ERROR_LIMIT_BYTES: usize = 64 << 10;

/// Connecting takes no longer on most days; then it is the answer that is waited for.
const CONNECTING: Duration = Duration::from_millis(300);

/// After a finish reason only the count of tokens and `[DONE]` are missing, and some servers forget both.
const AFTERMATH: Duration = Duration::from_secs(3);

/// A silence in mid-answer that the user should know of, and how often it is looked for.
const STALLED: Duration = Duration::from_secs(10);
const STALL_CHECK: Duration = Duration::from_secs(5);

/// The longest pause a server is granted while somebody watches the countdown.
const LONGEST_PAUSE: Duration = Duration::from_secs(600);

/// A server, with its key once a request needed it.
pub struct OpenAi(Arc<Inner>);

struct Inner {
    client: Client,
    name: String,
    settings: config::Provider,
    environment: Environment,
    key: OnceCell<Option<Secret>>,
    policy: Policy,
}

impl OpenAi {
    pub fn new(settings: &config::Provider, environment: &Environment) -> Result<Self, Failure> {
        let mut peer = (settings.connection.peer()).map_err(|it| Failure::from_error(FailureKind::NotFound, &it))?;
        peer.base = request::base(&peer.base);
        let host = peer.base.host_str().unwrap_or_default();
        let name = match peer.base.port() {
            Some(port) => format!("openai at {host}:{port}"),
            None => format!("openai at {host}"),
        };
        let client = Client::new(peer).map_err(|it| Failure::from(&it))?;
        Ok(Self(Arc::new(Inner {
            client,
            name,
            settings: settings.clone(),
            environment: environment.clone(),
            key: OnceCell::new(),
            policy: Policy::default(),
        })))
    }
}

impl Provider for OpenAi {
    fn peer(&self) -> &str {
        &self.0.name
    }

    fn stream(&self, request: ModelRequest) -> PieceStream {
        let inner = Arc::clone(&self.0);
        produce(move |out| async move {
            // Nobody reads any more: there is nobody to tell.
            let _ = inner.answer(&request, &Out(out)).await;
        })
    }

    fn warm(&self) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        let client = self.0.client.clone();
        Box::pin(async move {
            // What fails here fails again with the first request, and is said then.
            let _ = client.warm().await;
        })
    }

    fn models(&self) -> Pin<Box<dyn Future<Output = Result<Vec<Model>, Failure>> + Send>> {
        let inner = Arc::clone(&self.0);
        Box::pin(async move { inner.list().await.map_err(|(failure, _)| failure) })
    }
}

/// The reader has gone.
struct Gone;

struct Out(mpsc::Sender<Piece>);

impl Out {
    async fn give(&self, piece: Piece) -> Result<(), Gone> {
        self.0.send(piece).await.map_err(|_| Gone)
    }
}

/// How one try went.
enum Outcome {
    /// The answer ended, well or not, and was given.
    Over,
    /// Nothing was given yet.
    Failed(Failure, retry::Failure),
}

impl Inner {
    async fn answer(&self, request: &ModelRequest, out: &Out) -> Result<(), Gone> {
        let mut retried = 0;
        loop {
            let (failure, reason) = match self.attempt(request, out).await? {
                Outcome::Over => return Ok(()),
                Outcome::Failed(failure, reason) => (failure, reason),
            };
            let now = Utc::now();
            let (until, because) = match self.policy.after_failure(retried, &reason, dice(), now) {
                Decision::Wait { until, because } => (until, because),
                Decision::Ask { until, because } if request.is_attended && until - now < pause(LONGEST_PAUSE) => {
                    (until, because)
                }
                Decision::Ask { until, .. } => {
                    let seconds = (until - now).num_seconds();
                    let hint = format!("it asks for a pause of {seconds} seconds: send the message again after that");
                    return out.give(Piece::Error(failure.hint(hint))).await;
                }
                Decision::GiveUp => return out.give(Piece::Error(failure)).await,
            };
            retried += 1;
            let progress = Progress::Retrying {
                attempt: retried,
                of: self.policy.retries,
                at_ms: u64::try_from(until.timestamp_millis()).unwrap_or_default(),
                because,
            };
            out.give(Piece::Progress(progress)).await?;
            sleep((until - Utc::now()).to_std().unwrap_or_default()).await;
        }
    }

    async fn attempt(&self, request: &ModelRequest, out: &Out) -> Result<Outcome, Gone> {
        out.give(Piece::Progress(Progress::Connecting {
            peer: self.name.clone(),
        }))
        .await?;
        let mut asked = request::body(request, &self.settings);
        if request.model.is_empty() {
            match self.first_model().await {
                Ok(model) => asked["model"] = model.into(),
                Err((failure, reason)) => return Ok(Outcome::Failed(failure, reason)),
            }
        }
        let request = Request::post("chat/completions", asked.to_string());
        let request = match self.authorised(request).await {
            Ok(request) => request.accept("text/event-stream"),
            Err(failure) => return Ok(Outcome::Failed(failure, retry::Failure::Lasting)),
        };
        let mut opening = std::pin::pin!(self.client.open(request));
        let waiting = Piece::Progress(Progress::Waiting {
            peer: self.name.clone(),
        });
        let opened = match timeout(CONNECTING, &mut opening).await {
            Ok(opened) => opened,
            Err(_) => {
                out.give(waiting.clone()).await?;
                opening.await
            }
        };
        match opened {
            Ok(response) if response.status.is_success() => {
                out.give(waiting).await?;
                let id = request_id(&response.headers);
                self.read(response.body, id, out).await
            }
            Ok(response) => {
                let (failure, reason) = refused(response).await;
                Ok(Outcome::Failed(failure, reason))
            }
            Err(error) => Ok(Outcome::Failed(Failure::from(&error), retry::Failure::from(&error))),
        }
    }

    /// Reads an answer, whatever its media type says: proxies label streams as JSON and JSON as streams.
    async fn read(&self, mut body: Body, request_id: Option<String>, out: &Out) -> Result<Outcome, Gone> {
        let mut decoder = Decoder::new(self.settings.think_tags);
        let mut given = Given {
            held: Vec::new(),
            is_visible: false,
            request_id,
        };
        let mut frames = Frames::new();
        let mut begun = Vec::new();
        let mut is_stream = false;
        loop {
            let chunk = match self.next(&mut body, &decoder, out).await? {
                Next::Chunk(chunk) => chunk,
                Next::End => {
                    let pieces = if is_stream {
                        let mut pieces = Vec::new();
                        match frames.finish() {
                            Some(Ok(frame)) => pieces.extend(decoder.push(&frame)),
                            Some(Err(error)) => pieces.extend(decoder.cut(oversized(&error))),
                            None => {}
                        }
                        pieces.extend(decoder.finish());
                        pieces
                    } else if begun.is_empty() {
                        decoder.finish()
                    } else {
                        decoder.whole(&String::from_utf8_lossy(&begun))
                    };
                    return given.give(pieces, out).await.map(|it| it.unwrap_or(Outcome::Over));
                }
                Next::Broken(failure) => {
                    let pieces = decoder.cut(failure);
                    return given.give(pieces, out).await.map(|it| it.unwrap_or(Outcome::Over));
                }
            };
            let fresh = if is_stream {
                chunk.to_vec()
            } else {
                begun.extend_from_slice(&chunk);
                match first_visible(&begun) {
                    // One body: it is read to its end.
                    Some(b'{' | b'[' | b'<') => {
                        if begun.len() > BODY_LIMIT_BYTES {
                            let failure = Failure::new(FailureKind::Oversized, "the answer is no stream and too large");
                            let pieces = decoder.cut(failure);
                            return given.give(pieces, out).await.map(|it| it.unwrap_or(Outcome::Over));
                        }
                        continue;
                    }
                    Some(_) => is_stream = true,
                    None if begun.len() > ERROR_LIMIT_BYTES => is_stream = true,
                    None => continue,
                }
                std::mem::take(&mut begun)
            };
            for frame in frames.push(&fresh) {
                let pieces = match frame {
                    Ok(frame) => decoder.push(&frame),
                    Err(error) => decoder.cut(oversized(&error)),
                };
                if let Some(outcome) = given.give(pieces, out).await? {
                    return Ok(outcome);
                }
            }
        }
    }

    /// The next chunk, and word of it when it is long in coming.
    async fn next(&self, body: &mut Body, decoder: &Decoder, out: &Out) -> Result<Next, Gone> {
        loop {
            let patience = if decoder.is_finished() { AFTERMATH } else { STALL_CHECK };
            match timeout(patience, body.next()).await {
                Ok(Some(Ok(chunk))) => return Ok(Next::Chunk(chunk)),
                Ok(Some(Err(error))) => return Ok(Next::Broken(Failure::from(&error))),
                Ok(None) => return Ok(Next::End),
                Err(_) if decoder.is_finished() => return Ok(Next::End),
                Err(_) => {
                    if let Some(silent) = body.silent_for().filter(|it| *it >= STALLED) {
                        let silent_ms = u64::try_from(silent.as_millis()).unwrap_or(u64::MAX);
                        out.give(Piece::Progress(Progress::Stalled { silent_ms })).await?;
                    }
                }
            }
        }
    }

    /// Servers on this machine have one model, and nobody likes to spell it.
    async fn first_model(&self) -> Result<String, (Failure, retry::Failure)> {
        let models = self.list().await?;
        models.into_iter().next().map(|it| it.id).ok_or_else(|| {
            let failure = Failure::new(FailureKind::NotFound, "no model is chosen and the server lists none");
            (
                failure.hint("name one: `sheaf --model NAME` or `model` in the configuration"),
                retry::Failure::Lasting,
            )
        })
    }

    async fn list(&self) -> Result<Vec<Model>, (Failure, retry::Failure)> {
        let lasting = |failure| (failure, retry::Failure::Lasting);
        let broken = |error: &client::Error| (Failure::from(error), retry::Failure::from(error));
        let request = self.authorised(Request::get("models")).await.map_err(lasting)?;
        let opened = self.client.open(request.accept("application/json")).await;
        let response = opened.map_err(|it| broken(&it))?;
        if !response.status.is_success() {
            return Err(refused(response).await);
        }
        let body = response.body.read(BODY_LIMIT_BYTES).await.map_err(|it| broken(&it))?;
        listed(&body).map_err(lasting)
    }

    /// Adds the key, which is fetched now if it never was.
    async fn authorised(&self, request: Request) -> Result<Request, Failure> {
        let fetch = || self.settings.key.resolve(&self.environment);
        let key = self.key.get_or_try_init(fetch).await;
        let key = key.map_err(|it| Failure::from_error(FailureKind::Key, &it))?;
        Ok(match key {
            Some(key) => request.bearer(key.expose()),
            None => request,
        })
    }
}

enum Next {
    Chunk(bytes::Bytes),
    End,
    Broken(Failure),
}

/// What was given of an answer. What nobody sees is held back: an error before anything visible may be retried.
struct Given {
    held: Vec<Piece>,
    is_visible: bool,
    request_id: Option<String>,
}

impl Given {
    /// An outcome when the answer is over.
    async fn give(&mut self, pieces: Vec<Piece>, out: &Out) -> Result<Option<Outcome>, Gone> {
        for piece in pieces {
            match piece {
                Piece::Error(failure) => {
                    let failure = Failure {
                        request_id: self.request_id.take(),
                        ..failure
                    };
                    let status = match failure.kind {
                        FailureKind::Overloaded => Some(503),
                        FailureKind::Busy => Some(429),
                        FailureKind::Key
                        | FailureKind::Credit
                        | FailureKind::NotFound
                        | FailureKind::TooLong
                        | FailureKind::Request
                        | FailureKind::Unreachable
                        | FailureKind::Garbled
                        | FailureKind::Interrupted
                        | FailureKind::Oversized => None,
                    };
                    if let Some(status) = status
                        && !self.is_visible
                    {
                        let words = failure.said.clone().unwrap_or_default();
                        let reason = retry::Failure::Status {
                            status,
                            words,
                            advice: Advice::default(),
                        };
                        return Ok(Some(Outcome::Failed(failure, reason)));
                    }
                    self.release(out).await?;
                    out.give(Piece::Error(failure)).await?;
                    return Ok(Some(Outcome::Over));
                }
                Piece::End(_) => {
                    self.release(out).await?;
                    out.give(piece).await?;
                    return Ok(Some(Outcome::Over));
                }
                Piece::Text(_)
                | Piece::Thinking(_)
                | Piece::ThinkingDone { .. }
                | Piece::CallStart { .. }
                | Piece::CallArguments { .. }
                | Piece::CallDone { .. }
                | Piece::Refusal(_) => {
                    self.is_visible = true;
                    self.release(out).await?;
                    out.give(piece).await?;
                }
                Piece::Progress(_) | Piece::Start { .. } | Piece::Usage(_) | Piece::Notice(_) => {
                    self.held.push(piece);
                    if self.is_visible {
                        self.release(out).await?;
                    }
                }
            }
        }
        Ok(None)
    }

    async fn release(&mut self, out: &Out) -> Result<(), Gone> {
        for piece in self.held.drain(..) {
            out.give(piece).await?;
        }
        Ok(())
    }
}

/// An answer with an error's status.
async fn refused(response: Response) -> (Failure, retry::Failure) {
    let status = response.status.as_u16();
    let advice = Advice::of(&response.headers, Utc::now());
    let request_id = request_id(&response.headers);
    let body = response.body.beginning(ERROR_LIMIT_BYTES).await;
    let text = String::from_utf8_lossy(&body);
    let text = text.trim_start_matches('\u{feff}').trim();
    let error = match serde_json::from_str::<Value>(text) {
        Ok(Value::Array(mut items)) if items.len() == 1 => inner_error(items.remove(0)),
        Ok(value) => inner_error(value),
        Err(_) => Value::String(text.to_owned()),
    };
    let failure = Failure {
        request_id,
        ..Failure::from_server(Some(status), &error)
    };
    // What the kind says of the words counts for a retry as well: an empty account is 429, too.
    let words = if failure.kind == FailureKind::Credit {
        "insufficient_quota"
    } else {
        ""
    };
    let reason = match failure.kind {
        FailureKind::Key | FailureKind::NotFound | FailureKind::TooLong => retry::Failure::Lasting,
        FailureKind::Credit
        | FailureKind::Request
        | FailureKind::Busy
        | FailureKind::Overloaded
        | FailureKind::Unreachable
        | FailureKind::Garbled
        | FailureKind::Interrupted
        | FailureKind::Oversized => retry::Failure::Status {
            status,
            words: words.to_owned(),
            advice,
        },
    };
    (failure, reason)
}

fn inner_error(body: Value) -> Value {
    match body {
        Value::Object(mut members) if members.get("error").is_some_and(|it| !it.is_null()) => {
            members.remove("error").unwrap_or_default()
        }
        other => other,
    }
}

fn request_id(headers: &HeaderMap) -> Option<String> {
    ["x-request-id", "request-id", "x-litellm-call-id", "cf-ray"]
        .iter()
        .find_map(|name| headers.get(*name)?.to_str().ok())
        .map(|it| it.chars().take(100).collect())
}

fn oversized(error: &crate::net::sse::FrameError) -> Failure {
    Failure::from_error(FailureKind::Oversized, error)
}

/// The first byte that is neither white space nor part of a byte order mark.
fn first_visible(bytes: &[u8]) -> Option<u8> {
    let bytes = bytes.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(bytes);
    bytes.iter().copied().find(|it| !it.is_ascii_whitespace())
}

/// A list of models, in whichever of the known shapes.
fn listed(body: &[u8]) -> Result<Vec<Model>, Failure> {
    let text = String::from_utf8_lossy(body);
    let text = text.trim_start_matches('\u{feff}');
    let garbled = || Failure::new(FailureKind::Garbled, "the server's list of models cannot be read").saying(text);
    let whole: Value = serde_json::from_str(text).map_err(|_| garbled())?;
    if let Some(error) = whole.get("error").filter(|it| !it.is_null()) {
        return Err(Failure::from_server(None, error));
    }
    let items = match &whole {
        Value::Array(items) => items,
        other => ["data", "models"]
            .iter()
            .find_map(|it| other.get(*it)?.as_array())
            .ok_or_else(garbled)?,
    };
    let mut models: Vec<Model> = Vec::new();
    let mut seen = std::collections::HashSet::new();
    for item in items {
        let id = match item {
            Value::String(id) => id.as_str(),
            other => ["id", "name", "model"]
                .iter()
                .find_map(|it| other.get(*it)?.as_str())
                .unwrap_or_default(),
        };
        if !id.is_empty() && seen.insert(id) {
            models.push(Model {
                id: id.to_owned(),
                window: window(item).or_else(|| catalogue::window(id)),
            });
        }
    }
    Ok(models)
}

/// What the server says of a model's window. What is loaded counts before what would be possible.
fn window(item: &Value) -> Option<u64> {
    let meta = item.get("meta");
    let within = |name: &str| meta.and_then(|it| it.get(name));
    [
        item.get("loaded_context_length"),
        within("n_ctx"),
        item.get("max_model_len"),
        item.get("context_length"),
        item.get("context_window"),
        item.get("max_context_length"),
        within("n_ctx_train"),
    ]
    .into_iter()
    .flatten()
    .find_map(|it| it.as_u64().filter(|it| *it > 0))
}

fn pause(duration: Duration) -> chrono::TimeDelta {
    chrono::TimeDelta::from_std(duration).unwrap_or(chrono::TimeDelta::MAX)
}

/// A number from 0 to 1 that other clients do not have.
fn dice() -> f64 {
    let bits = uuid::Uuid::new_v4().as_u128() as u32;
    f64::from(bits) / f64::from(u32::MAX)
}
