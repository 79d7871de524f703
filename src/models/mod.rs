//! Language models: one trait, one file for each format that a server may speak.
//!
//! Whatever the format, an answer arrives as [`Piece`]s, and nothing of a provider's own words goes further than
//! this module. Servers that call themselves compatible are not, so a provider reads leniently, says what it
//! repaired, and never takes a stream that was cut for an answer that ended.

mod anthropic;
mod body;
pub mod catalogue;
#[cfg(test)]
mod conformance;
pub mod discover;
mod failure;
mod gemini;
mod lenient;
mod listing;
pub mod lookup;
mod objects;
mod ollama;
mod openai;
mod openai_services;
mod rate_limits;
mod request;
mod responses;
pub mod roles;
pub mod script;
mod tap;
mod text_tool_calls;
mod thought;
mod tool_pairing;

use std::{
    collections::VecDeque,
    pin::Pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::Poll,
};

use futures::{Stream, future, stream};
use serde_json::{Map, Value};

pub use failure::{Failure, FailureKind};
pub use roles::{Chosen, Roles};

use crate::{
    config::{self, Environment},
    journal::Raw,
    os::long_text::LongText,
    protocol::{Notice, Progress, RateLimit},
};

/// Whoever answers.
pub trait Provider: Send + Sync {
    /// For the header and for messages: `openai at 127.0.0.1:8089`.
    fn peer(&self) -> &str;

    /// Asks for an answer. Nothing happens before the first poll; dropping the stream drops the request.
    ///
    /// Exactly one [`Piece::End`] or [`Piece::Error`] comes, and it comes last.
    fn stream(&self, request: ModelRequest) -> PieceStream;

    /// Does ahead of the first request what it would otherwise wait for; says nothing to the server.
    fn warm(&self) -> Promise<()>;

    /// The models that one may choose from, as far as the server says.
    fn models(&self) -> Promise<Result<Vec<Model>, Failure>>;

    /// The tokens that the server itself will hold of a conversation with `model`, where it can be asked and where that
    /// may be less than what the model was made for: it comes before the catalogue.
    fn window(&self, model: String) -> Promise<Option<u64>> {
        drop(model);
        Box::pin(future::ready(None))
    }

    /// The origin of the key, and the limits that the server reported last, with the time (ms since the Unix epoch).
    fn account(&self) -> Account {
        Account::default()
    }

    /// A vector for each text, in their order, made by the model of the settings.
    fn embed(&self, texts: Vec<String>) -> Promise<Result<Vec<Vec<f32>>, Failure>> {
        drop(texts);
        let message = format!("{} makes no embeddings", self.peer());
        Box::pin(future::ready(Err(Failure::new(FailureKind::Request, message))))
    }
}

/// The account at a server, as far as it is known.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Account {
    /// Origin of the key; `""` if there is none.
    pub key: String,
    pub limits: Vec<RateLimit>,
    /// 0: the server was not asked yet.
    pub limits_at_ms: u64,
}

/// An answer that is still to come, to one question.
pub type Promise<T> = Pin<Box<dyn Future<Output = T> + Send>>;

/// The pieces of one answer, in order. The last one is [`Piece::End`] or [`Piece::Error`].
pub type PieceStream = Pin<Box<dyn Stream<Item = Piece> + Send>>;

/// Creates a provider. Reads no file and opens no connection: the first request does.
pub type OpenProvider = fn(&config::Provider, &Environment) -> Result<Arc<dyn Provider>, Failure>;

/// A format that we speak.
pub struct Format {
    /// The word in the configuration: `kind` of a provider.
    pub name: &'static str,
    pub open: OpenProvider,
}

/// All wire formats.
pub const PROVIDERS: &[Format] = &[
    openai_services::FORMAT,
    responses::FORMAT,
    anthropic::FORMAT,
    gemini::FORMAT,
    ollama::FORMAT,
];

/// The provider that `settings` describe.
pub fn open(settings: &config::Provider, environment: &Environment) -> Result<Arc<dyn Provider>, Failure> {
    if let Some(format) = PROVIDERS.iter().find(|it| it.name == settings.kind) {
        return (format.open)(settings, environment);
    }
    let known = PROVIDERS.iter().map(|it| it.name).collect::<Vec<_>>().join(", ");
    let message = format!("unknown kind of provider `{}`", settings.kind);
    Err(Failure::new(FailureKind::NotFound, message).hint(format!("known kinds: {known}")))
}

/// Room for what a chunk of a fast server brings; a reader that waits holds the server back.
const ROOM: usize = 16;

/// Queue of pieces behind a stream. Producer and reader are one task: no channel with its wakers is needed.
#[derive(Clone, Debug, Default)]
struct Out(Arc<Mutex<VecDeque<Piece>>>);

impl Out {
    /// Adds a piece; the future waits until there is room for another one. What waits holds no piece.
    fn give(&self, piece: Piece) -> impl Future<Output = ()> + Send + '_ {
        self.push(piece);
        self.room()
    }

    fn push(&self, piece: Piece) {
        self.lock().push_back(piece);
    }

    async fn room(&self) {
        // Nobody has to wake us: the stream goes on with the work when the reader has taken what there is.
        future::poll_fn(|_| {
            if self.lock().len() < ROOM {
                Poll::Ready(())
            } else {
                Poll::Pending
            }
        })
        .await;
    }

    fn take(&self) -> Option<Piece> {
        let mut pieces = self.lock();
        let piece = pieces.pop_front();
        if piece.is_none() {
            // Until the next chunk comes.
            *pieces = VecDeque::new();
        }
        piece
    }

    fn lock(&self) -> MutexGuard<'_, VecDeque<Piece>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A stream of what `work` gives. It runs only while the stream is polled and goes with it.
fn produce<F>(work: impl FnOnce(Out) -> F) -> PieceStream
where
    F: Future<Output = ()> + Send + 'static,
{
    let out = Out::default();
    let mut work = Some(Box::pin(work(out.clone())));
    Box::pin(stream::poll_fn(move |cx| {
        if let Some(piece) = out.take() {
            return Poll::Ready(Some(piece));
        }
        let is_over = match &mut work {
            Some(work) => work.as_mut().poll(cx).is_ready(),
            None => true,
        };
        if is_over {
            work = None;
        }
        match out.take() {
            None if !is_over => Poll::Pending,
            piece => Poll::Ready(piece),
        }
    }))
}

/// A request to a model.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ModelRequest {
    /// Empty: the first that the server lists.
    pub model: String,
    pub system: Arc<str>,
    /// Oldest first; the last one is the user's or holds results.
    pub messages: Vec<ModelMessage>,
    /// In an order that never changes within a conversation: they are part of what servers cache.
    pub tools: Vec<Arc<ToolSpec>>,
    /// Reasoning effort. `None`: the server's default.
    pub effort: Option<Effort>,
    /// Names the conversation, so that a server sends its requests to the same cache. Empty: unknown.
    pub cache_key: String,
    /// Somebody sees a long countdown and can stop it; without, a server that wants a long pause is given up.
    pub is_attended: bool,
    /// Somebody looks at the bytes.
    pub is_watched: bool,
}

impl ModelRequest {
    /// Removes the web search of the provider, which a server has refused, and returns the line for the user. `None` if there is
    /// none.
    fn drop_search(&mut self, failure: &Failure) -> Option<String> {
        let said = failure.said.as_deref().unwrap_or_default().to_lowercase();
        let is_search = [
            "web_search",
            "web search",
            "google_search",
            "googlesearch",
            "server_tool_use",
        ];
        if failure.kind != FailureKind::Request || !is_search.iter().any(|it| said.contains(it)) {
            return None;
        }
        let before = self.tools.len();
        self.tools.retain(|it| !it.is_at_provider());
        let is_changed = self.drop_thoughts() | (self.tools.len() < before);
        is_changed.then(|| "the server does not search the web for this model: asked without".to_owned())
    }

    /// Removes the thoughts that a server wanted back, such as those of another account, which it cannot read. Returns false if there
    /// are none.
    pub fn drop_thoughts(&mut self) -> bool {
        let mut is_changed = false;
        for message in &mut self.messages {
            let ModelMessage::Assistant(all) = message else {
                continue;
            };
            let before = all.len();
            all.retain(|it| !matches!(it, Said::Opaque(_)));
            is_changed |= all.len() != before;
            for said in all {
                if let Said::Call(call) = said {
                    is_changed |= call.opaque.take().is_some();
                }
            }
        }
        is_changed
    }
}

/// Notice that a request is repeated without thoughts.
pub const THOUGHTS_DROPPED: &str = "the server did not take earlier thoughts back: asked without them";

/// A tool as a model sees it.
#[derive(Clone, Debug, PartialEq, Hash)]
pub struct ToolSpec {
    pub name: String,
    /// Other names that a call may come under. They are not sent.
    pub aliases: Vec<String>,
    pub about: Arc<str>,
    /// An object schema of `type, properties, required, items, enum, description` only, which every server takes.
    pub parameters: Arc<Value>,
}

impl ToolSpec {
    /// A tool that the provider runs itself, by its name in all formats.
    pub fn at_provider(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            aliases: Vec::new(),
            about: Arc::default(),
            parameters: Arc::default(),
        }
    }

    /// Returns true if `name` is its name or one of its aliases.
    pub fn is_called(&self, name: &str) -> bool {
        self.name == name || self.aliases.iter().any(|it| it == name)
    }

    /// Returns true for a tool that the provider runs itself.
    pub fn is_at_provider(&self) -> bool {
        self.parameters.is_null()
    }
}

/// A search that a provider made while it answered.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WebSearch {
    pub id: String,
    pub query: String,
    pub hits: Vec<WebPage>,
    /// Reason why nothing was found, in the provider's words.
    pub failed: Option<String>,
}

/// A page that a search has found, or that an answer cites.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WebPage {
    pub title: String,
    pub url: String,
}

impl WebPage {
    /// Reads `url` and `title`. `None` without a web address: others are no links.
    fn read(value: &Value) -> Option<Self> {
        let text = |name: &str| value.get(name).and_then(Value::as_str).unwrap_or_default().trim();
        let is_web = text("url").starts_with("https://") || text("url").starts_with("http://");
        (is_web && !text("url").contains(char::is_whitespace)).then(|| Self {
            title: text("title").to_owned(),
            url: text("url").to_owned(),
        })
    }
}

/// Pages that an answer cites, numbered in the order in which they come.
#[derive(Debug, Default)]
struct Citations(Vec<String>);

impl Citations {
    /// Returns Markdown for the end of a text that cites these pages; empty without any.
    fn marks<'a>(&mut self, pages: impl IntoIterator<Item = &'a WebPage>) -> String {
        let mut marks = String::new();
        let mut told = Vec::new();
        for page in pages {
            let at = self.0.iter().position(|it| *it == page.url).unwrap_or_else(|| {
                self.0.push(page.url.clone());
                self.0.len() - 1
            });
            if !told.contains(&at) {
                told.push(at);
                let url = page.url.replace('(', "%28").replace(')', "%29");
                marks.push_str(&format!(" [{}]({url})", at + 1));
            }
        }
        marks
    }
}

/// Returns true if the server of these settings can search the web for the model.
pub fn searches_web(settings: &config::Provider, model: &str) -> bool {
    match settings.kind.as_str() {
        "anthropic" => true,
        "gemini" => gemini::searches_web(model),
        "openai-responses" => true,
        "openai" => openai::is_own(settings) && responses::reasons(model),
        _ => false,
    }
}

/// Reasoning effort.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effort {
    Off,
    Low,
    Medium,
    High,
}

/// A message of one side. Two in a row of the same side are legal; a provider joins them if its server needs that.
#[derive(Clone, Debug, PartialEq, Hash)]
pub enum ModelMessage {
    User(Vec<Part>),
    /// In the order in which it came: reasoning, text, calls.
    Assistant(Vec<Said>),
    /// One result for each call of the previous message, in the order of the calls.
    Results(Vec<CallResult>),
}

impl ModelMessage {
    pub fn user(text: impl Into<String>) -> Self {
        Self::User(vec![Part::Text(text.into())])
    }

    pub fn assistant(text: impl Into<String>) -> Self {
        Self::Assistant(vec![Said::Text(LongText::from(text.into()).settled())])
    }

    /// Ids of the calls of the model in this message.
    pub fn call_ids(&self) -> impl Iterator<Item = &str> {
        let said = match self {
            Self::Assistant(said) => said.as_slice(),
            Self::User(_) | Self::Results(_) => &[],
        };
        said.iter().filter_map(|it| match it {
            Said::Call(call) => Some(call.id.as_str()),
            Said::Text(_) | Said::Opaque(_) => None,
        })
    }
}

/// A part of what the user says.
#[derive(Clone, Debug, PartialEq, Hash)]
pub enum Part {
    Text(String),
    Image(Image),
}

#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Image {
    /// `image/png`, `image/jpeg`, `image/gif` or `image/webp`.
    pub media_type: String,
    pub bytes: Arc<[u8]>,
}

impl std::fmt::Debug for Image {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Image({}, {} bytes)", self.media_type, self.bytes.len())
    }
}

/// A part of what the model said.
#[derive(Clone, Debug, PartialEq, Hash)]
pub enum Said {
    Text(LongText),
    /// Value of [`Piece::ThinkingDone`]. It is sent back only to the provider and model that made it.
    Opaque(Value),
    Call(Call),
}

/// A call that a model made.
#[derive(Clone, Debug, PartialEq, Hash)]
pub struct Call {
    /// Unique in the conversation.
    pub id: String,
    pub name: String,
    /// Always sound JSON, whatever the model wrote.
    pub arguments: Map<String, Value>,
    /// Value that the provider wants back with this call.
    pub opaque: Option<Value>,
}

/// Result of a tool call.
#[derive(Clone, Debug, PartialEq, Hash)]
pub struct CallResult {
    /// The id of the call.
    pub call: String,
    /// The name that the model called.
    pub name: String,
    /// Never empty.
    pub text: String,
    pub is_error: bool,
    /// Images. If the server takes none in results, the provider describes them.
    pub images: Vec<Image>,
}

/// A step of an answer.
#[derive(Clone, Debug, PartialEq)]
pub enum Piece {
    /// A state of waiting.
    Progress(Progress),
    /// Start of an answer. Comes at most once, before the model's first output.
    Start {
        response_id: Option<String>,
        model: Option<String>,
    },
    Text(String),
    Thinking(String),
    /// Reasoning that only its maker can read; it goes back unchanged, to the same model only.
    ThinkingDone {
        opaque: Value,
    },
    /// The provider has searched the web; what it wants back of that came as [`Piece::ThinkingDone`].
    Searched(Box<WebSearch>),
    CallStart {
        slot: usize,
        id: String,
        name: String,
    },
    /// A fragment of JSON text.
    CallArguments {
        slot: usize,
        fragment: String,
    },
    /// For every start, before the end; a call that was cut off has none.
    CallDone {
        slot: usize,
        id: String,
        name: String,
        /// The text itself when it is no JSON object.
        arguments: Result<Map<String, Value>, String>,
        /// Value that the provider wants back with this call.
        opaque: Option<Value>,
    },
    /// Counts of the whole request so far; the last one holds.
    Usage(Tokens),
    /// The model declines, in its own words.
    Refusal(String),
    /// Something in the stream had to be repaired or left out.
    Notice(Notice),
    /// All pieces so far are void: the answer broke off and is asked for again. Never after a [`Piece::CallDone`].
    Void,
    /// Raw traffic, before the pieces that result from it; only if [`ModelRequest::is_watched`].
    Seen(Box<Raw>),
    End(EndReason),
    Error(Failure),
}

impl Piece {
    fn call_start(slot: usize, id: &str, name: &str) -> Self {
        Self::CallStart {
            slot,
            id: id.to_owned(),
            name: name.to_owned(),
        }
    }

    fn call_arguments(slot: usize, fragment: &str) -> Self {
        Self::CallArguments {
            slot,
            fragment: fragment.to_owned(),
        }
    }

    /// Returns the end of a call with its `arguments` parsed.
    fn call_done(slot: usize, id: String, name: String, arguments: String, opaque: Option<Value>) -> Self {
        Self::CallDone {
            slot,
            id,
            name,
            arguments: lenient::arguments(arguments),
            opaque,
        }
    }
}

/// Token counts; 0 = unknown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tokens {
    pub prompt: u64,
    /// Tokens of the prompt that were read from the server's cache.
    pub cached: u64,
    /// Tokens of the prompt that were written to the server's cache, if that is charged.
    pub cache_written: u64,
    pub completion: u64,
    /// Tokens of the completion that were reasoning.
    pub reasoning: u64,
}

/// Reason why a model stopped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EndReason {
    Stop,
    /// The model waits for the results of its calls.
    ToolUse,
    /// The limit of tokens was reached.
    Length,
    Refusal,
    /// A filter at the provider's cut the answer.
    ContentFilter,
    /// The server wants what was said so far back, and goes on then.
    Pause,
    /// A word that we do not know: the answer ended.
    Other(String),
}

/// A model that a server offers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Model {
    pub id: String,
    /// Tokens that fit, if the server says so or we know the model.
    pub window: Option<u64>,
    /// The time at which the server says that it was made, in seconds since the Unix epoch.
    pub created: Option<u64>,
}

impl Model {
    /// The first model that is known to call tools, else the first one. `None`: the list is empty.
    fn first_usable(models: &[Self]) -> Option<&Self> {
        let usable = models.iter().find(|it| catalogue::listed(&it.id).tools == Some(true));
        usable.or(models.first())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_model_that_calls_tools_goes_before_one_for_images_or_sounds() {
        let first = |ids: &[&str]| {
            let models = ids.iter().map(|it| Model {
                id: (*it).to_owned(),
                ..Model::default()
            });
            Model::first_usable(&models.collect::<Vec<_>>()).map(|it| it.id.clone())
        };
        assert_eq!(
            first(&["whisper-1", "gpt-5.4", "gpt-6-sol"]).as_deref(),
            Some("gpt-5.4")
        );
        assert_eq!(first(&["my-own", "other"]).as_deref(), Some("my-own"));
        assert_eq!(first(&[]), None);
    }

    #[test]
    fn the_kinds_that_can_be_configured_are_those_that_are_spoken() {
        let key = config::KEYS
            .iter()
            .find(|it| it.path == "providers.*.kind")
            .expect("a key");
        let spoken: Vec<&str> = PROVIDERS.iter().map(|it| it.name).collect();
        assert_eq!(key.kind.describe(), spoken.join(" | "));
        for service in config::SERVICES {
            assert!(spoken.contains(&service.kind), "{}", service.name);
        }
    }
}
