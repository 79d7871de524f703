//! Vectors from a server: the model that `roles.embed` names.

use std::{
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use super::{Effort, EmbedError, Embedder, wait::wait};
use crate::{
    index::IsOver,
    models::{Chosen, Failure, FailureKind},
    text::redact::redact,
};

/// Maximum time of a request.
const PATIENCE: Duration = Duration::from_mins(1);
/// Time after a failure in which searches do not ask again.
const PAUSE: Duration = Duration::from_mins(1);
/// Texts of one request.
const BATCH: usize = 64;
/// Bytes of a text that are sent, and of one that the server has refused as too long: many local servers read 512 tokens.
const LONGEST: [usize; 3] = [4_000, 1_000, 400];
/// Words with which servers refuse a text that is too long, beside those that mean it for a conversation.
const TOO_LONG: [&str; 6] = ["too large", "too long", "context", "maximum", "tokens", "413"];

/// What models want before questions and documents: the beginning of the model's name, both prefixes. From the models' cards.
const PREFIXES: [(&str, &str, &str); 9] = [
    ("nomic-embed-text", "search_query: ", "search_document: "),
    ("e5-", "query: ", "passage: "),
    ("multilingual-e5-", "query: ", "passage: "),
    ("bge-small-en", FOR_SEARCH, ""),
    ("bge-base-en", FOR_SEARCH, ""),
    ("bge-large-en", FOR_SEARCH, ""),
    ("mxbai-embed-large", FOR_SEARCH, ""),
    (
        "embeddinggemma",
        "task: code retrieval | query: ",
        "title: none | text: ",
    ),
    (
        "qwen3-embedding",
        "Instruct: Given a question, retrieve code that answers it\nQuery:",
        "",
    ),
];

const FOR_SEARCH: &str = "Represent this sentence for searching relevant passages: ";

/// A model of a provider.
pub struct ProviderEmbedder {
    chosen: Chosen,
    /// Model and server: the same name elsewhere may be another model.
    id: String,
    dims: AtomicUsize,
    prefixes: (&'static str, &'static str),
    failed: Mutex<Option<(Instant, EmbedError)>>,
}

impl ProviderEmbedder {
    /// The model that a provider was opened for.
    pub fn new(chosen: Chosen) -> Self {
        // `openai at api.openai.com`: the first word is the user's own.
        let peer = chosen.provider.peer();
        let server = peer.rsplit_once(" at ").map_or(peer, |it| it.1);
        let name = chosen.model.rsplit('/').next().unwrap_or_default().to_lowercase();
        let known = PREFIXES.iter().find(|it| name.starts_with(it.0));
        Self {
            id: format!("{}@{server}", chosen.model),
            dims: AtomicUsize::new(0),
            prefixes: known.map_or(("", ""), |it| (it.1, it.2)),
            failed: Mutex::default(),
            chosen,
        }
    }

    /// Asks for vectors. Texts that are too long for the server are found by halves, and sent in a shorter form.
    fn ask(
        &self,
        prefix: &str,
        texts: &[String],
        lengths: &[usize],
        is_over: IsOver<'_>,
    ) -> Result<Vec<Vec<f32>>, EmbedError> {
        let [longest, shorter @ ..] = lengths else {
            return Err(EmbedError::Server("a text is too long for the server".to_owned()));
        };
        let cut = texts.iter().map(|it| {
            let text = it.get(..it.floor_char_boundary(*longest)).unwrap_or_default();
            // Keys are for their own servers only.
            format!("{prefix}{}", redact(text))
        });
        let promise = self.chosen.provider.embed(cut.collect());
        let Some(answer) = wait(promise, PATIENCE, is_over) else {
            return Err(EmbedError::Server(format!("{} has not answered in time", self.id)));
        };
        match answer {
            Ok(vectors) => self.checked(vectors, texts.len()),
            Err(failure) if is_too_long(&failure) => match texts {
                [_] => self.ask(prefix, texts, shorter, is_over),
                _ => {
                    let (first, second) = texts.split_at(texts.len() / 2);
                    let mut vectors = self.ask(prefix, first, lengths, is_over)?;
                    vectors.extend(self.ask(prefix, second, lengths, is_over)?);
                    Ok(vectors)
                }
            },
            Err(failure) => {
                let details = failure.details();
                let said = details.lines().next().unwrap_or_default();
                let message = if said.is_empty() {
                    failure.to_string()
                } else {
                    format!("{failure} ({said})")
                };
                Err(match failure.kind {
                    FailureKind::Key | FailureKind::Credit | FailureKind::NotFound => EmbedError::Unusable(message),
                    _ => EmbedError::Server(message),
                })
            }
        }
    }

    fn checked(&self, vectors: Vec<Vec<f32>>, wanted: usize) -> Result<Vec<Vec<f32>>, EmbedError> {
        if vectors.len() != wanted {
            let made = vectors.len();
            return Err(EmbedError::Server(format!("{made} vectors came for {wanted} texts")));
        }
        let dims = vectors.first().map_or(0, Vec::len);
        let before = self.dims.load(Ordering::Relaxed);
        if vectors.iter().any(|it| it.len() != dims) || (before != 0 && before != dims) {
            return Err(EmbedError::Server("vectors of different lengths came".to_owned()));
        }
        self.dims.store(dims, Ordering::Relaxed);
        Ok(vectors)
    }

    /// Asks unless the server has failed a moment ago.
    fn ask_again(&self, prefix: &str, texts: &[String], is_over: IsOver<'_>) -> Result<Vec<Vec<f32>>, EmbedError> {
        let failed = self.failed.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if let Some((at, error)) = failed.filter(|it| it.0.elapsed() < PAUSE) {
            tracing::debug!(since = ?at.elapsed(), "the server of vectors is not asked again yet");
            return Err(error);
        }
        let answer = self.ask(prefix, texts, &LONGEST, is_over);
        let failure = answer.as_ref().err().map(|it| (Instant::now(), it.clone()));
        *self.failed.lock().unwrap_or_else(PoisonError::into_inner) = failure;
        answer
    }
}

fn is_too_long(failure: &Failure) -> bool {
    let words = format!("{failure} {}", failure.details()).to_lowercase();
    match failure.kind {
        FailureKind::TooLong => true,
        FailureKind::Request | FailureKind::Unreachable => TOO_LONG.iter().any(|it| words.contains(it)),
        _ => false,
    }
}

impl Embedder for ProviderEmbedder {
    fn id(&self) -> &str {
        &self.id
    }

    fn dims(&self) -> usize {
        self.dims.load(Ordering::Relaxed)
    }

    fn is_local(&self) -> bool {
        false
    }

    fn batch(&self) -> usize {
        BATCH
    }

    fn embed_documents(
        &self,
        texts: &[String],
        effort: Effort,
        is_over: IsOver<'_>,
    ) -> Result<Vec<Vec<f32>>, EmbedError> {
        match effort {
            Effort::Search => self.ask_again(self.prefixes.1, texts, is_over),
            Effort::Build | Effort::Aside => self.ask(self.prefixes.1, texts, &LONGEST, is_over),
        }
    }

    fn embed_query(&self, text: &str, is_over: IsOver<'_>) -> Result<Vec<f32>, EmbedError> {
        let vectors = self.ask_again(self.prefixes.0, &[text.to_owned()], is_over)?;
        let first = vectors.into_iter().next();
        first.ok_or_else(|| EmbedError::Server("no vector came".to_owned()))
    }
}
