//! OpenAI's chat completions, and the many servers that call themselves compatible.

mod body;
mod request;
mod stream;

use std::{sync::Arc, time::Duration};

use chrono::Utc;
use futures::StreamExt;
use serde_json::Value;
use tokio::{
    sync::{OnceCell, mpsc},
    time::{sleep, timeout},
};

use super::{
    Failure, FailureKind, Format, Model, ModelRequest, Piece, PieceStream, Promise, Provider, catalogue, produce,
};
use crate::{
    config::{self, Environment, Secret},
    net::{
        client::{self, Body, Client, HeaderMap, Request, Response},
        retry::{self, Advice, Decision, Policy},
    },
    protocol::Progress,
};
use body::{Reading, WHOLE_LIMIT_BYTES};

pub const FORMAT: Format = Format {
    name: "openai",
    open: |settings, environment| Ok(Arc::new(OpenAi::new(settings, environment)?)),
};

/// As much of an error's body as is read.
const ERROR_LIMIT_BYTES: usize = 64 << 10;

/// How long is waited before something is said or given up.
#[derive(Clone, Copy, Debug)]
struct Patience {
    /// Connecting takes no longer on most days; then it is the answer that is waited for.
    connecting: Duration,
    /// After a finish reason only the count of tokens and `[DONE]` are missing, and some servers forget both.
    aftermath: Duration,
    /// A silence in mid-answer that the user should know of.
    stalled: Duration,
    /// The longest pause a server is granted while somebody watches the countdown.
    longest_pause: Duration,
}

impl Default for Patience {
    fn default() -> Self {
        Self {
            connecting: Duration::from_millis(300),
            aftermath: Duration::from_secs(3),
            stalled: Duration::from_secs(10),
            longest_pause: Duration::from_mins(10),
        }
    }
}

/// A server, with its key once a request needed it.
pub struct OpenAi(Arc<Inner>);

struct Inner {
    client: Client,
    name: String,
    settings: config::Provider,
    environment: Environment,
    key: OnceCell<Option<Secret>>,
    policy: Policy,
    patience: Patience,
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
            patience: Patience::default(),
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

    fn warm(&self) -> Promise<()> {
        let client = self.0.client.clone();
        Box::pin(async move {
            // What fails here fails again with the first request, and is said then.
            let _ = client.warm().await;
        })
    }

    fn models(&self) -> Promise<Result<Vec<Model>, Failure>> {
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
                Decision::Ask { until, because }
                    if request.is_attended && until - now < pause(self.patience.longest_pause) =>
                {
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
        let opened = if let Ok(opened) = timeout(self.patience.connecting, &mut opening).await {
            opened
        } else {
            out.give(waiting.clone()).await?;
            opening.await
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

    async fn read(&self, mut body: Body, request_id: Option<Box<str>>, out: &Out) -> Result<Outcome, Gone> {
        let mut reading = Reading::new(self.settings.think_tags);
        let mut given = Given {
            held: Vec::new(),
            is_visible: false,
            request_id,
        };
        loop {
            let pieces = match self.next(&mut body, &reading, out).await? {
                Next::Chunk(chunk) => reading.push(&chunk),
                Next::End => {
                    let outcome = given.give(reading.finish(), out).await?;
                    return Ok(outcome.unwrap_or(Outcome::Over));
                }
                Next::Broken(failure) => {
                    let outcome = given.give(reading.cut(failure), out).await?;
                    return Ok(outcome.unwrap_or(Outcome::Over));
                }
            };
            if let Some(outcome) = given.give(pieces, out).await? {
                return Ok(outcome);
            }
        }
    }

    /// The next chunk, and word of it when it is long in coming.
    async fn next(&self, body: &mut Body, reading: &Reading, out: &Out) -> Result<Next, Gone> {
        let Patience { aftermath, stalled, .. } = self.patience;
        loop {
            let wait = if reading.is_finished() { aftermath } else { stalled / 2 };
            match timeout(wait, body.next()).await {
                Ok(Some(Ok(chunk))) => return Ok(Next::Chunk(chunk)),
                Ok(Some(Err(error))) => return Ok(Next::Broken(Failure::from(&error))),
                Ok(None) => return Ok(Next::End),
                Err(_) if reading.is_finished() => return Ok(Next::End),
                Err(_) => {
                    if let Some(silent) = body.silent_for().filter(|it| *it >= stalled) {
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
        let body = response.body.read(WHOLE_LIMIT_BYTES).await.map_err(|it| broken(&it))?;
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
    request_id: Option<Box<str>>,
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
                        let words = failure.said.as_deref().unwrap_or_default().to_owned();
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

fn request_id(headers: &HeaderMap) -> Option<Box<str>> {
    ["x-request-id", "request-id", "x-litellm-call-id", "cf-ray"]
        .iter()
        .find_map(|name| headers.get(*name)?.to_str().ok())
        .map(|it| it.chars().take(100).collect::<String>().into())
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

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use pretty_assertions::assert_eq;
    use serde_json::json;

    use super::*;
    use crate::{
        config::{Connection, KeySource},
        model::{EndReason, ModelMessage},
        net::peer::{self, STREAM, Socket, page},
    };

    const HI: &str = "data: {\"choices\":[{\"delta\":{\"content\":\"hi\"}}]}\n\n";
    const END: &str = "data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n";

    fn settings(url: &str) -> config::Provider {
        config::Provider {
            connection: Connection::default().at(url),
            ..config::Provider::default()
        }
    }

    /// A provider that waits as little as a test wants to.
    fn provider(settings: &config::Provider) -> OpenAi {
        let mut provider = OpenAi::new(settings, &Environment::default()).expect("sound settings");
        let inner = Arc::get_mut(&mut provider.0).expect("nobody else has it");
        inner.policy.base = Duration::from_millis(1);
        inner.patience.aftermath = Duration::from_millis(50);
        inner.patience.stalled = Duration::from_millis(40);
        provider
    }

    fn request() -> ModelRequest {
        ModelRequest {
            model: "m".to_owned(),
            messages: vec![ModelMessage::user("hello")],
            ..ModelRequest::default()
        }
    }

    /// A server that gives the n-th connection to the n-th script, and the last one to all that follow.
    async fn scripted(answers: Vec<String>) -> (String, Arc<AtomicUsize>) {
        let count = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&count);
        let url = peer::listen(move |mut socket: Socket| {
            let at = counted.fetch_add(1, Ordering::SeqCst).min(answers.len() - 1);
            let answer = answers.get(at).cloned().unwrap_or_default();
            async move {
                socket.request().await;
                socket.send(answer).await;
            }
        })
        .await;
        (url, count)
    }

    /// Pieces in words.
    fn show(pieces: &[Piece]) -> String {
        let word = |it: &Piece| match it {
            Piece::Progress(Progress::Connecting { .. }) => "connecting".to_owned(),
            Piece::Progress(Progress::Waiting { .. }) => "waiting".to_owned(),
            Piece::Progress(Progress::Retrying {
                attempt, of, because, ..
            }) => format!("retry {attempt}/{of} {because}"),
            Piece::Progress(Progress::Stalled { .. }) => "stalled".to_owned(),
            Piece::Text(text) => format!("{text:?}"),
            Piece::End(reason) => format!("{reason:?}"),
            Piece::Error(failure) => {
                let said = failure.said.as_deref().map(|it| format!(" ({it})")).unwrap_or_default();
                format!("{} {}{said}", failure.kind.code(), failure.message)
            }
            other => format!("{other:?}"),
        };
        pieces.iter().map(word).collect::<Vec<_>>().join(" | ")
    }

    async fn answer(settings: &config::Provider) -> String {
        show(&provider(settings).stream(request()).collect::<Vec<_>>().await)
    }

    #[tokio::test]
    async fn a_request_carries_what_is_configured_and_no_more() {
        let (told, mut diary) = peer::diary();
        let url = peer::listen(move |mut socket: Socket| {
            let told = told.clone();
            async move {
                told.send(socket.request().await).ok();
                socket.send(format!("{STREAM}{HI}{END}")).await;
            }
        })
        .await;
        let mut settings = settings(&format!("{url}/chat/completions"));
        answer(&settings).await;
        let plain = diary.next().await;
        let (head, body) = plain.split_once("\r\n\r\n").expect("a head and a body");
        assert!(head.starts_with("POST /v1/chat/completions HTTP/1.1\r\n"), "{head}");
        let head = head.to_lowercase();
        assert!(head.contains("\r\naccept: text/event-stream"), "{head}");
        assert!(head.contains("\r\ncontent-type: application/json"), "{head}");
        assert!(!head.contains("authorization"), "no key, no header: {head}");
        assert_eq!(
            serde_json::from_str::<Value>(body).expect("JSON"),
            json!({
                "model": "m",
                "stream": true,
                "messages": [{ "role": "user", "content": "hello" }],
                "stream_options": { "include_usage": true },
            })
        );
        settings.key = KeySource::Given(Secret::new("sk-1"));
        settings
            .connection
            .headers
            .insert("x-team".to_owned(), Secret::new("blue"));
        answer(&settings).await;
        let head = diary.next().await.to_lowercase();
        assert!(head.contains("\r\nauthorization: bearer sk-1\r\n"), "{head}");
        assert!(head.contains("\r\nx-team: blue\r\n"), "{head}");
    }

    #[tokio::test]
    async fn answers_of_every_form_are_read() {
        let whole = r#"{"choices":[{"message":{"content":"hi"},"finish_reason":"stop"}]}"#;
        let good = r#"connecting | waiting | "hi" | Stop"#;
        let cases = [
            ("a stream", format!("{STREAM}{HI}{END}"), good),
            (
                "a stream labelled as JSON",
                page("200 OK", "application/json", &format!("{HI}{END}")),
                good,
            ),
            ("JSON labelled as a stream", format!("{STREAM}{whole}"), good),
            ("JSON", page("200 OK", "application/json", whole), good),
            (
                "a stream that is cut",
                format!("{STREAM}{HI}"),
                r#"connecting | waiting | "hi" | STREAM_INTERRUPTED the answer broke off before its end"#,
            ),
            (
                "a page",
                page("200 OK", "text/html", "<html>Welcome</html>"),
                "connecting | waiting | LLM_BAD_RESPONSE the server answered with something else than chat completions \
                 (<html>Welcome</html>)",
            ),
            (
                "an empty body",
                page("200 OK", "text/event-stream", ""),
                "connecting | waiting | STREAM_INTERRUPTED the server ended the stream without an answer",
            ),
            (
                "an error in the stream, after text",
                format!("{STREAM}{HI}data: {{\"error\":{{\"message\":\"overloaded\"}}}}\n\n"),
                r#"connecting | waiting | "hi" | LLM_OVERLOADED the server has no capacity at the moment (overloaded)"#,
            ),
        ];
        for (name, body, want) in cases {
            let (url, count) = scripted(vec![body]).await;
            assert_eq!(answer(&settings(&url)).await, want, "{name}");
            assert_eq!(count.load(Ordering::SeqCst), 1, "{name}");
        }
    }

    #[tokio::test]
    async fn what_may_pass_is_tried_again_and_nothing_else() {
        let error = |status: &str, words: &str| {
            page(
                status,
                "application/json",
                &format!("{{\"error\":{{\"message\":\"{words}\"}}}}"),
            )
        };
        let good = format!("{STREAM}{HI}{END}");
        let fine = r#"connecting | waiting | "hi" | Stop"#;
        let cases = [
            (
                "503, then fine",
                vec![error("503 Busy", "Loading model"), good.clone()],
                format!("connecting | retry 1/3 it is overloaded (503) | {fine}"),
                2,
            ),
            (
                "429 with a wish, then fine",
                vec![
                    error("429 Slow", "slow").replace("\r\n\r\n", "\r\nRetry-After-Ms: 5\r\n\r\n"),
                    good.clone(),
                ],
                format!("connecting | retry 1/3 too many requests (429) | {fine}"),
                2,
            ),
            (
                "502 for ever",
                vec![page("502 Bad", "text/html", "<h1>Bad Gateway</h1>")],
                "connecting | retry 1/3 it failed (502) | connecting | retry 2/3 it failed (502) | connecting | \
                 retry 3/3 it failed (502) | connecting | LLM_UNAVAILABLE the server failed (502) (<h1>Bad Gateway</h1>)"
                    .to_owned(),
                4,
            ),
            (
                "an error in the stream before anything, then fine",
                vec![
                    format!("{STREAM}data: {{\"id\":\"c\",\"choices\":[]}}\n\ndata: {{\"error\":{{\"code\":529,\"message\":\"full\"}}}}\n\n"),
                    good,
                ],
                format!("connecting | waiting | retry 1/3 it is overloaded (503) | {fine}"),
                2,
            ),
            (
                "400",
                vec![error("400 Bad", "odd")],
                "connecting | LLM_BAD_RESPONSE the server refused the request (400) (odd)".to_owned(),
                1,
            ),
            (
                "401",
                vec![error("401 No", "wrong")],
                "connecting | LLM_AUTH the server does not accept the key (wrong)".to_owned(),
                1,
            ),
            (
                "an empty account",
                vec![error("429 Slow", "You exceeded your quota, insufficient_quota")],
                "connecting | LLM_RATE_LIMITED the account has no credit left (You exceeded your quota, insufficient_quota)"
                    .to_owned(),
                1,
            ),
            (
                "a redirect",
                vec!["HTTP/1.1 307 Elsewhere\r\nLocation: http://127.0.0.1:1/v1\r\nContent-Length: 0\r\n\r\n".to_owned()],
                "connecting | LLM_UNAVAILABLE URL redirects (307) to http://127.0.0.1:1/v1, which is not followed, because \
                 the token is meant for URL only"
                    .to_owned(),
                1,
            ),
        ];
        for (name, answers, want, tries) in cases {
            let (url, count) = scripted(answers).await;
            assert_eq!(answer(&settings(&url)).await, want.replace("URL", &url), "{name}");
            assert_eq!(count.load(Ordering::SeqCst), tries, "{name}");
        }
    }

    #[tokio::test]
    async fn nobody_listens() {
        let url = peer::nobody().await;
        let pieces: Vec<Piece> = provider(&settings(&url)).stream(request()).collect().await;
        let Some(Piece::Error(failure)) = pieces.last() else {
            panic!("{pieces:?}")
        };
        assert_eq!(failure.kind, FailureKind::Unreachable);
        assert_eq!(&*failure.message, format!("nothing listens at {url}"));
        assert!(
            failure.details().ends_with("start the server, or correct the address"),
            "{}",
            failure.details()
        );
        let retries = pieces
            .iter()
            .filter(|it| matches!(it, Piece::Progress(Progress::Retrying { .. })))
            .count();
        assert_eq!(retries, 3);
    }

    #[tokio::test]
    async fn a_long_pause_needs_somebody_who_watches() {
        let answer = page("429 Slow", "application/json", "{\"error\":\"slow down\"}");
        let answer = answer.replace("\r\n\r\n", "\r\nRetry-After: 120\r\nX-Request-Id: r-1\r\n\r\n");
        let (url, _) = scripted(vec![answer]).await;
        let provider = provider(&settings(&url));
        let pieces: Vec<Piece> = provider.stream(request()).collect().await;
        let Some(Piece::Error(failure)) = pieces.last() else {
            panic!("{pieces:?}")
        };
        assert_eq!(
            failure.details(),
            "the server says: slow down\nrequest id: r-1\nit asks for a pause of 120 seconds: send the message again after that"
        );
        let mut pieces = provider.stream(ModelRequest {
            is_attended: true,
            ..request()
        });
        assert!(matches!(
            pieces.next().await,
            Some(Piece::Progress(Progress::Connecting { .. }))
        ));
        let Some(Piece::Progress(Progress::Retrying { at_ms, .. })) = pieces.next().await else {
            panic!("a countdown")
        };
        let now = u64::try_from(Utc::now().timestamp_millis()).expect("after 1970");
        assert!(at_ms > now + 60_000 && at_ms <= now + 120_000, "{at_ms} after {now}");
    }

    #[tokio::test]
    async fn an_answer_that_forgets_its_end_is_over_after_its_finish_reason() {
        let url = peer::listen(|mut socket: Socket| async move {
            socket.request().await;
            socket
                .send(format!("{STREAM}{HI}{}", END.replace("data: [DONE]\n\n", "")))
                .await;
            socket.hang().await;
        })
        .await;
        assert_eq!(answer(&settings(&url)).await, r#"connecting | waiting | "hi" | Stop"#);
    }

    #[tokio::test]
    async fn a_silent_server_is_reported_and_then_given_up() {
        let url = peer::listen(|mut socket: Socket| async move {
            socket.request().await;
            socket.send(format!("{STREAM}{HI}")).await;
            socket.hang().await;
        })
        .await;
        let mut settings = settings(&url);
        settings.connection.idle_timeout = Duration::from_millis(200);
        let shown = answer(&settings).await;
        assert!(shown.starts_with(r#"connecting | waiting | "hi" | stalled"#), "{shown}");
        assert!(
            shown.ends_with(&format!("STREAM_INTERRUPTED {url} fell silent: no byte for 200 ms")),
            "{shown}"
        );
    }

    #[tokio::test]
    async fn dropping_the_stream_closes_the_connection() {
        let (told, mut diary) = peer::diary();
        let url = peer::listen(move |mut socket: Socket| {
            let told = told.clone();
            async move {
                socket.request().await;
                socket.send(format!("{STREAM}{HI}")).await;
                socket.closed().await;
                told.send("closed").ok();
            }
        })
        .await;
        let mut pieces = provider(&settings(&url)).stream(request());
        while !matches!(pieces.next().await, Some(Piece::Text(_))) {}
        assert!(diary.so_far().is_empty());
        drop(pieces);
        assert_eq!(diary.next().await, "closed");
    }

    #[tokio::test]
    async fn without_a_model_the_first_of_the_list_is_taken() {
        let (told, mut diary) = peer::diary();
        let url = peer::listen(move |mut socket: Socket| {
            let told = told.clone();
            async move {
                let request = socket.request().await;
                let answer = if request.starts_with("GET /v1/models ") {
                    page(
                        "200 OK",
                        "application/json",
                        "{\"data\":[{\"id\":\"first\"},{\"id\":\"second\"}]}",
                    )
                } else {
                    told.send(request).ok();
                    format!("{STREAM}{HI}{END}")
                };
                socket
                    .send(answer.replacen("\r\n", "\r\nConnection: close\r\n", 1))
                    .await;
            }
        })
        .await;
        let nameless = ModelRequest {
            model: String::new(),
            ..request()
        };
        let pieces: Vec<Piece> = provider(&settings(&url)).stream(nameless).collect().await;
        assert_eq!(pieces.last(), Some(&Piece::End(EndReason::Stop)));
        assert!(diary.next().await.contains("\"model\":\"first\""));
    }

    #[test]
    fn lists_of_models_are_read_in_every_shape() {
        let model = |id: &str, window: Option<u64>| Model {
            id: id.to_owned(),
            window,
        };
        let cases: &[(&str, &str, &[Model])] = &[
            (
                "OpenAI",
                r#"{"object":"list","data":[{"id":"gpt-4o","object":"model"},{"id":"own"}]}"#,
                &[model("gpt-4o", Some(128_000)), model("own", None)],
            ),
            (
                "vLLM",
                r#"{"data":[{"id":"q","max_model_len":4096}]}"#,
                &[model("q", Some(4096))],
            ),
            (
                "OpenRouter",
                r#"{"data":[{"id":"a/q","context_length":8192,"pricing":{}}]}"#,
                &[model("a/q", Some(8192))],
            ),
            (
                "llama.cpp",
                r#"{"models":[{"name":"x"}],"object":"list","data":[{"id":"q","meta":{"n_ctx_train":32768,"n_ctx":8192}}]}"#,
                &[model("q", Some(8192))],
            ),
            (
                "LM Studio",
                r#"{"data":[{"id":"q","max_context_length":9,"loaded_context_length":5}]}"#,
                &[model("q", Some(5))],
            ),
            (
                "Ollama's names",
                r#"{"models":[{"name":"q:latest"}]}"#,
                &[model("q:latest", None)],
            ),
            (
                "a bare list of names, one twice",
                r#"["a","b","a"]"#,
                &[model("a", None), model("b", None)],
            ),
            ("with a byte order mark", "\u{feff}{\"data\":[]}", &[]),
            (
                "nonsense among them",
                r#"{"data":[null,7,{"id":""},{"id":"a","context_length":-1}]}"#,
                &[model("a", None)],
            ),
        ];
        for (name, body, want) in cases {
            assert_eq!(listed(body.as_bytes()).expect(name), *want, "{name}");
        }
        for (name, body) in [
            ("HTML", "<html>"),
            ("no list", "{\"ok\":1}"),
            ("a number", "7"),
            ("nothing", ""),
        ] {
            assert_eq!(
                listed(body.as_bytes()).expect_err(name).kind,
                FailureKind::Garbled,
                "{name}"
            );
        }
        let refused = listed(br#"{"error":{"message":"Invalid API key"}}"#).expect_err("an error");
        assert_eq!(refused.kind, FailureKind::Key);
    }

    #[test]
    fn settings_that_cannot_work_are_refused() {
        let environment = Environment::default();
        let cases = [
            (config::Provider::default(), "no address is configured"),
            (
                settings("http://example.org"),
                "`http://example.org` would send the key and the conversation unencrypted",
            ),
        ];
        for (settings, want) in cases {
            let failure = OpenAi::new(&settings, &environment).err().expect(want);
            assert_eq!(&*failure.message, want);
        }
        let strange = config::Provider {
            kind: "carrier-pigeon".to_owned(),
            ..settings("http://127.0.0.1")
        };
        let failure = crate::model::open(&strange, &environment).err().expect("no such kind");
        assert_eq!(failure.details(), "known kinds: openai");
        let peer = OpenAi::new(&settings("http://127.0.0.1:8089/v1"), &environment).expect("sound");
        assert_eq!(peer.peer(), "openai at 127.0.0.1:8089");
    }

    #[tokio::test]
    async fn a_key_that_cannot_be_had_is_said_before_anything_is_sent() {
        let (url, count) = scripted(vec![format!("{STREAM}{HI}{END}")]).await;
        let mut settings = settings(&url);
        settings.key = KeySource::Variables(vec!["NO_SUCH_KEY".to_owned()]);
        assert_eq!(
            answer(&settings).await,
            "connecting | LLM_AUTH the environment has no NO_SUCH_KEY"
        );
        assert_eq!(count.load(Ordering::SeqCst), 0);
    }
}
