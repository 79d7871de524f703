//! A request and its answer, whatever the format: connecting, waiting, trying again, giving pieces.
//!
//! A format is a [`Wire`]: how a request is spelled and how bytes become pieces, both pure. Everything that waits or
//! can be repeated is here, once. A request is repeated only while nothing of an answer was given.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use chrono::Utc;
use futures::{FutureExt, StreamExt};
use serde_json::Value;
use tokio::{
    sync::OnceCell,
    time::{sleep, timeout},
};

use super::{
    Account, EndReason, Failure, FailureKind, Model, ModelRequest, Out, Piece, PieceStream, Promise, Provider,
    ToolSpec,
    body::{Read, WHOLE_LIMIT_BYTES},
    listing::{self, Page},
    produce, rate_limits,
    tap::{self, Watched},
    text_tool_calls,
};
use crate::{
    config::{self, Environment, Secret},
    net::{
        client::{self, Body, Client, HeaderMap, Request, Response, Url},
        retry::{self, Advice, Decision, Policy, Tries},
    },
    protocol::{Notice, Progress, RateLimit, Severity},
    text::figure,
};

/// A wire format: how to write requests and read answers. Pure: no clock, no socket.
pub trait Wire: Send + Sync + 'static {
    /// For the header and for messages: `openai`.
    fn name(&self) -> &'static str;

    /// The address under which the endpoints lie, from one as users paste it.
    fn base(&self, pasted: &Url) -> Url;

    /// Adds the key to a request.
    fn authorise(&self, request: Request, key: &Secret) -> Request {
        request.bearer(key.expose())
    }

    /// The request for an answer. `request.model` is never empty.
    fn ask(&self, request: &ModelRequest, settings: &config::Provider) -> Request;

    /// The media type of an answer.
    fn media_type(&self) -> &'static str {
        "text/event-stream"
    }

    /// Returns a reader of the answer to `request`. Calls without an id are given one later.
    fn read(&self, request: &ModelRequest, settings: &config::Provider) -> Box<dyn Read>;

    /// Returns a request that must be answered before `request`; usually `None`. Called again until [`Wire::learn`] has
    /// received the answer.
    fn inquire(&self, request: &ModelRequest, settings: &config::Provider) -> Option<Request> {
        let (_, _) = (request, settings);
        None
    }

    /// The answer to [`Wire::inquire`]; none when there was none, which is no reason not to go on.
    fn learn(&self, request: &ModelRequest, body: Option<&[u8]>) {
        let (_, _) = (request, body);
    }

    /// The tokens that the server will hold of a conversation, where that is less than what the model was made for.
    fn window(&self, request: &ModelRequest, settings: &config::Provider) -> Option<u64> {
        let (_, _) = (request, settings);
        None
    }

    /// Adapts the request after an invisible failure, so that it can be repeated at once. Returns a line for the user;
    /// `None`: it cannot be repeated. Called once for each answer.
    fn mend(&self, failure: &Failure, request: &mut ModelRequest, settings: &config::Provider) -> Option<String> {
        let (_, _, _) = (failure, request, settings);
        None
    }

    /// Returns true if the server can search the web for this model: [`ToolSpec::is_at_provider`].
    fn searches_web(&self, model: &str, settings: &config::Provider) -> bool {
        let (_, _) = (model, settings);
        false
    }

    /// Returns true if its servers may print a call as text, where their template has no tools.
    fn prints_calls(&self) -> bool {
        false
    }

    /// The request for a vector of each text; none where the format has no such thing.
    fn embed(&self, texts: &[String], settings: &config::Provider) -> Option<Request> {
        let (_, _) = (texts, settings);
        None
    }

    /// The request for a page of the list of models; `after` is what [`Page::next`] of the page before said.
    fn list(&self, after: Option<&str>) -> Request {
        let _ = after;
        Request::get("models")
    }

    /// Reads a page of the list. Most servers have one page only.
    fn listed(&self, body: &[u8]) -> Result<Page, Failure> {
        let page = listing::listed(body)?;
        Ok(Page { next: None, ..page })
    }
}

/// Maximum number of pages of a list of models.
const PAGES_LIMIT: usize = 50;

/// Maximum number of texts embedded with one request: Gemini accepts 100, others a few thousand.
const TEXTS_LIMIT: usize = 96;

/// Embeddings are JSON numbers, a dozen bytes each, some thousand for each text.
const EMBEDDED_LIMIT_BYTES: usize = 64 << 20;

/// As much of an error's body as is read.
const ERROR_LIMIT_BYTES: usize = 64 << 10;

/// Times after which waiting is reported or ended.
#[derive(Clone, Copy, Debug)]
pub(super) struct Patience {
    /// Connecting takes no longer on most days; then it is the answer that is waited for.
    connecting: Duration,
    /// Time limit after a finish reason: only the token counts and `[DONE]` are missing then, and some servers forget
    /// both.
    pub(super) aftermath: Duration,
    /// A silence in mid-answer that the user should know of.
    pub(super) stalled: Duration,
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
pub struct Server(pub(super) Arc<Exchange>);

pub(super) struct Exchange {
    wire: Box<dyn Wire>,
    client: Client,
    name: String,
    settings: config::Provider,
    environment: Environment,
    key: OnceCell<Option<Secret>>,
    /// As of the last answer, with its time in milliseconds since the Unix epoch.
    limits: Mutex<(Vec<RateLimit>, u64)>,
    pub(super) policy: Policy,
    pub(super) patience: Patience,
}

impl Server {
    pub fn new(wire: impl Wire, settings: &config::Provider, environment: &Environment) -> Result<Self, Failure> {
        let mut peer = (settings.connection.peer()).map_err(|it| Failure::from_error(FailureKind::NotFound, &it))?;
        peer.base = wire.base(&peer.base);
        let host = peer.base.host_str().unwrap_or_default();
        let name = match peer.base.port() {
            Some(port) => format!("{} at {host}:{port}", wire.name()),
            None => format!("{} at {host}", wire.name()),
        };
        let client = Client::new(peer).map_err(|it| Failure::from(&it))?;
        Ok(Self(Arc::new(Exchange {
            wire: Box::new(wire),
            client,
            name,
            settings: settings.clone(),
            environment: environment.clone(),
            key: OnceCell::new(),
            limits: Mutex::default(),
            policy: settings.connection.retry_policy(),
            patience: Patience::default(),
        })))
    }

    /// Shortens all waits, for tests.
    #[cfg(test)]
    pub(super) fn hurried(mut self) -> Self {
        let exchange = Arc::get_mut(&mut self.0).expect("nobody else has it");
        exchange.policy.retries = exchange.policy.retries.min(3);
        exchange.policy.within = Duration::from_mins(1);
        exchange.policy.floor = Duration::from_millis(1);
        exchange.policy.highest_floor = Duration::from_millis(4);
        exchange.patience.aftermath = Duration::from_millis(50);
        exchange.patience.stalled = Duration::from_millis(40);
        self
    }
}

impl Provider for Server {
    fn peer(&self) -> &str {
        &self.0.name
    }

    fn stream(&self, request: ModelRequest) -> PieceStream {
        let exchange = Arc::clone(&self.0);
        produce(move |out| async move { exchange.answer(request, &out).await })
    }

    fn warm(&self) -> Promise<()> {
        let client = self.0.client.clone();
        Box::pin(async move {
            // What fails here fails again with the first request, and is said then.
            let _ = client.warm().await;
        })
    }

    fn models(&self) -> Promise<Result<Vec<Model>, Failure>> {
        let exchange = Arc::clone(&self.0);
        Box::pin(async move { exchange.list().await.map_err(|(failure, _)| failure) })
    }

    fn window(&self, model: String) -> Promise<Option<u64>> {
        let exchange = Arc::clone(&self.0);
        Box::pin(async move {
            let request = ModelRequest {
                model,
                ..ModelRequest::default()
            };
            exchange.inquire(&request).await;
            exchange.wire.window(&request, &exchange.settings)
        })
    }

    fn account(&self) -> Account {
        let (limits, limits_at_ms) = self.0.limits.lock().unwrap_or_else(PoisonError::into_inner).clone();
        Account {
            key: self.0.settings.key.origin(&self.0.environment),
            limits,
            limits_at_ms,
        }
    }

    fn embed(&self, texts: Vec<String>) -> Promise<Result<Vec<Vec<f32>>, Failure>> {
        let exchange = Arc::clone(&self.0);
        Box::pin(async move { exchange.embed(&texts).await })
    }
}

async fn fail(held: Vec<Piece>, failure: Failure, out: &Out) {
    for piece in held {
        out.give(piece).await;
    }
    out.give(Piece::Error(failure)).await;
}

/// Result of one attempt.
enum Outcome {
    /// The answer ended, well or not, and was given.
    Over,
    /// Failed before one of its calls was complete. The pieces came before the failure and are given if it is final.
    Failed(Trouble, Vec<Piece>, Seen),
}

/// Part of an answer that failed.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Seen {
    Nothing,
    /// A part of it was given; it is void if the request is repeated.
    Part,
}

/// A failure, in words and as far as retrying is concerned.
type Trouble = (Failure, retry::Failure);

impl Exchange {
    async fn answer(&self, mut request: ModelRequest, out: &Out) {
        let mut tries: Option<Tries> = None;
        let mut is_mended = false;
        loop {
            let ((failure, reason), held, seen) = match self.attempt(&mut request, out).await {
                Outcome::Over => return,
                Outcome::Failed(trouble, held, seen) => (trouble, held, seen),
            };
            if !is_mended
                && seen == Seen::Nothing
                && let Some(because) = self.wire.mend(&failure, &mut request, &self.settings)
            {
                is_mended = true;
                out.give(Piece::Notice(Notice::new(Severity::Warning, "asked-again", because)))
                    .await;
                continue;
            }
            let now = Utc::now();
            let tries = tries.get_or_insert(Tries::first(now));
            let (until, because) = match self.policy.after_failure(*tries, &reason, dice(), now) {
                Decision::Wait { until, because } => (until, because),
                Decision::Ask { until, because }
                    if request.is_attended && until - now < pause(self.patience.longest_pause) =>
                {
                    (until, because)
                }
                Decision::Ask { until, .. } => {
                    let pause = figure::pause((until - now).num_seconds().unsigned_abs());
                    let hint = format!("it asks for a pause of {pause}: send the message again after that");
                    return fail(held, failure.hint(hint), out).await;
                }
                Decision::GiveUp => return fail(held, failure, out).await,
            };
            tries.retried += 1;
            if seen == Seen::Part {
                out.give(Piece::Void).await;
            }
            let progress = Progress::Retrying {
                attempt: tries.retried,
                of: self.policy.retries,
                at_ms: u64::try_from(until.timestamp_millis()).unwrap_or_default(),
                because,
            };
            out.give(Piece::Progress(progress)).await;
            sleep((until - Utc::now()).to_std().unwrap_or_default()).await;
        }
    }

    async fn attempt(&self, request: &mut ModelRequest, out: &Out) -> Outcome {
        // In boxes, and so no part of the future that lasts as long as the answer: what is over when it begins.
        let Response { status, headers, body } = match Box::pin(self.open(request, out)).await {
            Ok(response) => response,
            Err(trouble) => return Outcome::Failed(trouble, Vec::new(), Seen::Nothing),
        };
        if !status.is_success() {
            let response = Response { status, headers, body };
            return Box::pin(refuse(response, request.is_watched, out)).await;
        }
        let answer = Box::new(self.answer_of(request, headers, body));
        self.read(answer, out).await
    }

    /// Sends the request and waits for the head of the answer.
    async fn open(&self, request: &mut ModelRequest, out: &Out) -> Result<Response, Trouble> {
        let peer = || self.name.clone();
        out.give(Piece::Progress(Progress::Connecting { peer: peer() })).await;
        let asked = self.question(request).await?;
        if request.is_watched {
            out.give(tap::request(&asked, self.client.peer())).await;
        }
        let waiting = || Piece::Progress(Progress::Waiting { peer: peer() });
        let mut opening = Box::pin(self.client.open(asked));
        let opened = if let Ok(opened) = timeout(self.patience.connecting, &mut opening).await {
            opened
        } else {
            out.give(waiting()).await;
            opening.await
        };
        let response = opened.map_err(|error| broken(&error))?;
        let at_ms = u64::try_from(Utc::now().timestamp_millis()).unwrap_or_default();
        *self.limits.lock().unwrap_or_else(PoisonError::into_inner) = (rate_limits::read(&response.headers), at_ms);
        if response.status.is_success() {
            out.give(waiting()).await;
        }
        Ok(response)
    }

    /// What an answer needs while it is read.
    fn answer_of<'a>(&self, request: &'a ModelRequest, headers: HeaderMap, body: Body) -> Reading<'a> {
        let mut wire = self.wire.read(request, &self.settings);
        let mut given = Given::new(request_id(&headers));
        if self.wire.prints_calls() {
            given.tools = &request.tools;
        }
        let watched = request.is_watched.then(|| {
            wire.watch();
            Watched::new(self.wire.media_type())
        });
        Reading {
            wire,
            body,
            given,
            watched,
        }
    }

    /// The request as it goes out, once all is known that it needs.
    async fn question(&self, request: &mut ModelRequest) -> Result<Request, Trouble> {
        if request.model.is_empty() {
            request.model = self.first_model().await?;
        }
        if !self.wire.searches_web(&request.model, &self.settings) {
            request.tools.retain(|it| !it.is_at_provider());
        }
        self.inquire(request).await;
        let asked = self.wire.ask(request, &self.settings);
        let asked = self.authorised(asked).await.map_err(lasting)?;
        Ok(asked.accept(self.wire.media_type()))
    }

    async fn inquire(&self, request: &ModelRequest) {
        if let Some(inquiry) = self.wire.inquire(request, &self.settings) {
            let answer = self.whole(inquiry, WHOLE_LIMIT_BYTES).await;
            self.wire.learn(request, answer.ok().as_deref());
        }
    }

    async fn read(&self, mut answer: Box<Reading<'_>>, out: &Out) -> Outcome {
        loop {
            let is_finished = answer.wire.is_finished();
            let last = match self.next(&mut answer.body, is_finished, out).await {
                Next::Chunk(chunk) => {
                    let Reading {
                        wire, given, watched, ..
                    } = &mut *answer;
                    let outcome = match watched {
                        None => given.give(wire.push(&chunk), out).await,
                        Some(watched) => {
                            let parts = watched.cut(&chunk);
                            Box::pin(given.give_watched(&mut **wire, parts, out)).await
                        }
                    };
                    match outcome {
                        Some(outcome) => return outcome,
                        None => continue,
                    }
                }
                Next::End => None,
                Next::Broken(failure) => Some(failure),
            };
            let Reading {
                wire,
                mut given,
                watched,
                ..
            } = *answer;
            if let Some(rest) = watched.and_then(Watched::finish) {
                out.give(rest).await;
            }
            let pieces = match last {
                Some(failure) => wire.cut(failure),
                None => wire.finish(),
            };
            return given.give(pieces, out).await.unwrap_or(Outcome::Over);
        }
    }

    /// The next chunk, and word of it when it is long in coming.
    async fn next(&self, body: &mut Body, is_finished: bool, out: &Out) -> Next {
        let Patience { aftermath, stalled, .. } = self.patience;
        loop {
            let wait = if is_finished { aftermath } else { stalled / 2 };
            // What is there needs no timer.
            let next = match body.next().now_or_never() {
                Some(next) => Ok(next),
                None => timeout(wait, body.next()).await,
            };
            match next {
                Ok(Some(Ok(chunk))) => return Next::Chunk(chunk),
                Ok(Some(Err(error))) => return Next::Broken(Failure::from(&error)),
                Ok(None) => return Next::End,
                Err(_) if is_finished => return Next::End,
                Err(_) => {
                    if let Some(silent) = body.silent_for().filter(|it| *it >= stalled) {
                        let silent_ms = u64::try_from(silent.as_millis()).unwrap_or(u64::MAX);
                        out.give(Piece::Progress(Progress::Stalled { silent_ms })).await;
                    }
                }
            }
        }
    }

    /// Servers on this machine have one model, and nobody likes to spell it. Others list models for images and sounds, too: one
    /// that is known to call tools goes first.
    async fn first_model(&self) -> Result<String, Trouble> {
        let models = self.list().await?;
        Model::first_usable(&models).map(|it| it.id.clone()).ok_or_else(|| {
            let failure = Failure::new(FailureKind::NotFound, "no model is chosen and the server lists none");
            (
                failure.hint("name one: `sheaf --model NAME` or `model` in the configuration"),
                retry::Failure::Lasting,
            )
        })
    }

    async fn list(&self) -> Result<Vec<Model>, Trouble> {
        let mut models: Vec<Model> = Vec::new();
        let mut after = None;
        for _ in 0..PAGES_LIMIT {
            let request = self.wire.list(after.as_deref());
            let body = self.whole(request, WHOLE_LIMIT_BYTES).await?;
            let page = self.wire.listed(&body).map_err(lasting)?;
            models.extend(page.models);
            // A server that does not know about pages gives the first one for ever.
            if page.next.is_none() || page.next == after {
                break;
            }
            after = page.next;
        }
        let mut seen = std::collections::HashSet::new();
        models.retain(|it| seen.insert(it.id.clone()));
        Ok(models)
    }

    async fn embed(&self, texts: &[String]) -> Result<Vec<Vec<f32>>, Failure> {
        let mut vectors = Vec::with_capacity(texts.len());
        for texts in texts.chunks(TEXTS_LIMIT) {
            let request = self.wire.embed(texts, &self.settings).ok_or_else(|| {
                Failure::new(
                    FailureKind::Request,
                    format!("{} makes no embeddings", self.wire.name()),
                )
            })?;
            let body = self.whole(request, EMBEDDED_LIMIT_BYTES).await;
            let more = listing::embedded(&body.map_err(|(failure, _)| failure)?)?;
            if more.len() != texts.len() {
                let message = format!("the server gave {} embeddings for {} texts", more.len(), texts.len());
                return Err(Failure::new(FailureKind::Garbled, message));
            }
            vectors.extend(more);
        }
        Ok(vectors)
    }

    /// The whole body of an answer that is no stream.
    async fn whole(&self, request: Request, limit_bytes: usize) -> Result<Vec<u8>, Trouble> {
        let request = self.authorised(request).await.map_err(lasting)?;
        let opened = self.client.open(request.accept("application/json")).await;
        let response = opened.map_err(|it| broken(&it))?;
        if !response.status.is_success() {
            return Err(refused(response).await.0);
        }
        response.body.read(limit_bytes).await.map_err(|it| broken(&it))
    }

    /// Adds the key, which is fetched now if it never was.
    async fn authorised(&self, request: Request) -> Result<Request, Failure> {
        let fetch = || self.settings.key.resolve(&self.environment);
        let key = self.key.get_or_try_init(fetch).await;
        let key = key.map_err(|it| Failure::from_error(FailureKind::Key, &it))?;
        Ok(match key {
            Some(key) => self.wire.authorise(request, key),
            None => request,
        })
    }
}

enum Next {
    Chunk(bytes::Bytes),
    End,
    Broken(Failure),
}

/// An answer that is being read.
struct Reading<'a> {
    wire: Box<dyn Read>,
    body: Body,
    given: Given<'a>,
    /// Set if somebody looks at the bytes.
    watched: Option<Watched>,
}

/// The pieces of an answer so far. Invisible ones are held back: an error before anything visible may be retried.
struct Given<'a> {
    held: Vec<Piece>,
    is_visible: bool,
    /// A call is complete: it may be carried out, so the request is not repeated.
    has_call: bool,
    request_id: Option<Box<str>>,
    /// The ids of calls to which the server gave none, by their slots.
    ids: HashMap<usize, String>,
    /// Random part that makes these ids unique.
    seed: String,
    /// The tools whose calls may come as text; none: no call does.
    tools: &'a [Arc<ToolSpec>],
    /// The end of the text so far, as far as it may be printed calls.
    said: text_tool_calls::Tail,
}

impl Given<'_> {
    fn new(request_id: Option<Box<str>>) -> Self {
        Self {
            held: Vec::new(),
            is_visible: false,
            has_call: false,
            request_id,
            ids: HashMap::new(),
            seed: seed(),
            tools: &[],
            said: text_tool_calls::Tail::default(),
        }
    }

    /// Keeps what may turn out to be a call. A call that the server itself gave rules that out.
    fn listen(&mut self, piece: &Piece) {
        match piece {
            Piece::Text(text) if !self.tools.is_empty() => self.said.push(text),
            Piece::CallStart { .. } | Piece::Refusal(_) => self.said = text_tool_calls::Tail::NO_CALLS,
            _ => {}
        }
    }

    /// The calls that were printed as text, as pieces; empty where there are none.
    fn printed(&self) -> Vec<Piece> {
        let calls = self.said.calls(|name| self.tools.iter().any(|it| it.is_called(name)));
        let mut pieces = Vec::new();
        for (slot, (name, arguments)) in calls.into_iter().enumerate() {
            let id = format!("call_{}_{slot}", self.seed);
            let fragment = Value::Object(arguments.clone()).to_string();
            pieces.push(Piece::CallStart {
                slot,
                id: id.clone(),
                name: name.clone(),
            });
            pieces.push(Piece::CallArguments { slot, fragment });
            pieces.push(Piece::CallDone {
                slot,
                id,
                name,
                arguments: Ok(arguments),
                opaque: None,
            });
        }
        if !pieces.is_empty() {
            pieces.insert(0, Piece::Notice(Notice::new(Severity::Warning, "printed-call", "the model wrote its call as text, since its server's template knows of no tools: it is taken as one")));
        }
        pieces
    }

    /// An outcome when the answer is over.
    async fn give(&mut self, pieces: Vec<Piece>, out: &Out) -> Option<Outcome> {
        for piece in pieces {
            if let Some(outcome) = self.pass(piece, out) {
                return Some(outcome);
            }
            // No piece is held while the reader is waited for: this future would be as large as one for each `await`.
            out.room().await;
        }
        None
    }

    /// Gives the pieces of the parts of a chunk, each after what was seen of it.
    async fn give_watched(
        &mut self,
        wire: &mut dyn Read,
        parts: Vec<(Vec<Piece>, &[u8])>,
        out: &Out,
    ) -> Option<Outcome> {
        for (seen, part) in parts {
            for piece in seen {
                out.give(piece).await;
            }
            if let Some(outcome) = self.give(wire.push(part), out).await {
                return Some(outcome);
            }
        }
        None
    }

    fn pass(&mut self, piece: Piece, out: &Out) -> Option<Outcome> {
        self.listen(&piece);
        match self.named(piece) {
            Piece::Error(failure) => {
                let failure = Failure {
                    request_id: self.request_id.take(),
                    ..failure
                };
                let reason = passing(&failure);
                let seen = if self.is_visible { Seen::Part } else { Seen::Nothing };
                let is_repeatable = !self.has_call && reason != retry::Failure::Lasting;
                if seen == Seen::Nothing || is_repeatable {
                    let held = std::mem::take(&mut self.held);
                    return Some(Outcome::Failed((failure, reason), held, seen));
                }
                self.release(out);
                out.push(Piece::Error(failure));
                return Some(Outcome::Over);
            }
            Piece::End(reason) => {
                self.release(out);
                let printed = if reason == EndReason::Stop {
                    self.printed()
                } else {
                    Vec::new()
                };
                let reason = if printed.is_empty() { reason } else { EndReason::ToolUse };
                for piece in printed {
                    out.push(piece);
                }
                out.push(Piece::End(reason));
                return Some(Outcome::Over);
            }
            piece @ (Piece::Text(_)
            | Piece::Thinking(_)
            | Piece::ThinkingDone { .. }
            | Piece::Searched(_)
            | Piece::CallStart { .. }
            | Piece::CallArguments { .. }
            | Piece::CallDone { .. }
            | Piece::Refusal(_)) => {
                self.is_visible = true;
                self.has_call |= matches!(piece, Piece::CallDone { .. });
                self.release(out);
                out.push(piece);
            }
            piece @ (Piece::Seen(_) | Piece::Void) => out.push(piece),
            piece @ (Piece::Progress(_) | Piece::Start { .. } | Piece::Usage(_) | Piece::Notice(_)) => {
                self.held.push(piece);
                if self.is_visible {
                    self.release(out);
                }
            }
        }
        None
    }

    /// A call without an id gets one that no other call of the conversation has, and keeps it.
    fn named(&mut self, mut piece: Piece) -> Piece {
        if let Piece::CallStart { slot, id, .. } | Piece::CallDone { slot, id, .. } = &mut piece {
            if id.is_empty() && !self.ids.contains_key(slot) {
                self.ids.insert(*slot, format!("call_{}_{slot}", self.seed));
            }
            if let Some(own) = self.ids.get(slot) {
                id.clone_from(own);
            }
        }
        piece
    }

    fn release(&mut self, out: &Out) {
        // Nothing is held any more for the rest of the answer.
        for piece in std::mem::take(&mut self.held) {
            out.push(piece);
        }
    }
}

/// Returns how far an error in the midst of an answer may pass.
fn passing(failure: &Failure) -> retry::Failure {
    let status = |status| retry::Failure::Status {
        status,
        words: failure.said.as_deref().unwrap_or_default().to_owned(),
        advice: Advice::default(),
    };
    match failure.kind {
        FailureKind::Overloaded => status(503),
        FailureKind::Busy => status(429),
        FailureKind::Interrupted => retry::Failure::Connection(failure.message.to_string()),
        FailureKind::Key
        | FailureKind::Credit
        | FailureKind::NotFound
        | FailureKind::TooLong
        | FailureKind::Request
        | FailureKind::Unreachable
        | FailureKind::Garbled
        | FailureKind::Oversized => retry::Failure::Lasting,
    }
}

fn lasting(failure: Failure) -> Trouble {
    (failure, retry::Failure::Lasting)
}

fn broken(error: &client::Error) -> Trouble {
    (Failure::from(error), retry::Failure::from(error))
}

/// Reads what a refusal says.
async fn refuse(response: Response, is_watched: bool, out: &Out) -> Outcome {
    let status = response.status;
    let (trouble, text) = refused(response).await;
    if is_watched {
        let said = format!("HTTP status {status}\n{text}");
        out.give(tap::body(&said)).await;
    }
    Outcome::Failed(trouble, Vec::new(), Seen::Nothing)
}

/// An answer with an error's status, and what it said.
async fn refused(response: Response) -> (Trouble, String) {
    let status = response.status.as_u16();
    let mut advice = Advice::of(&response.headers, Utc::now());
    let request_id = request_id(&response.headers);
    let body = response.body.beginning(ERROR_LIMIT_BYTES).await;
    let text = String::from_utf8_lossy(&body);
    let text = text.trim_start_matches('\u{feff}').trim();
    let error = match serde_json::from_str::<Value>(text) {
        Ok(Value::Array(mut items)) if items.len() == 1 => inner_error(items.remove(0)),
        Ok(value) => inner_error(value),
        Err(_) => Value::String(text.to_owned()),
    };
    advice.after = advice.after.or_else(|| delay(&error));
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
        _ => retry::Failure::Status {
            status,
            words: words.to_owned(),
            advice,
        },
    };
    ((failure, reason), text.to_owned())
}

fn inner_error(body: Value) -> Value {
    match body {
        Value::Object(mut members) if members.get("error").is_some_and(|it| !it.is_null()) => {
            members.remove("error").unwrap_or_default()
        }
        other => other,
    }
}

/// Google says in the error itself how long to wait: `"retryDelay": "12.5s"`.
fn delay(error: &Value) -> Option<Duration> {
    const WEEK: f64 = 7.0 * 24.0 * 3600.0;
    let details = error.get("details")?.as_array()?;
    let text = details.iter().find_map(|it| it.get("retryDelay")?.as_str())?;
    let seconds: f64 = text.trim().strip_suffix('s')?.parse().ok()?;
    let span = Duration::try_from_secs_f64(seconds.min(WEEK)).ok()?;
    (!span.is_zero()).then_some(span)
}

fn request_id(headers: &HeaderMap) -> Option<Box<str>> {
    ["x-request-id", "request-id", "x-litellm-call-id", "cf-ray"]
        .iter()
        .find_map(|name| headers.get(*name)?.to_str().ok())
        .map(|it| it.chars().take(100).collect::<String>().into())
}

fn pause(duration: Duration) -> chrono::TimeDelta {
    chrono::TimeDelta::from_std(duration).unwrap_or(chrono::TimeDelta::MAX)
}

/// A number from 0 to 1 that other clients do not have.
fn dice() -> f64 {
    let bits = uuid::Uuid::new_v4().as_u128() as u32;
    f64::from(bits) / f64::from(u32::MAX)
}

/// A word that no other answer has.
fn seed() -> String {
    let whole = uuid::Uuid::new_v4().simple().to_string();
    whole.chars().take(12).collect()
}
