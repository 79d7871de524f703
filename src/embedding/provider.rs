//! Vectors from a server: the model that `roles.embed` names.

use std::{
    sync::atomic::{AtomicUsize, Ordering},
    time::Duration,
};

use tokio::runtime::Handle;

use super::{Effort, EmbedError, Embedder};
use crate::models::{Chosen, FailureKind};

/// Maximum time of a request, with its repetitions.
const PATIENCE: Duration = Duration::from_secs(30);
/// Texts of one request.
const BATCH: usize = 64;
/// Bytes of a text that are sent.
const LONGEST: usize = 4_000;
/// Bytes of a text that are sent when the server has refused longer ones: many local servers read 512 tokens.
const SHORT: usize = 1_000;

/// What models want before questions and documents: a part of the model's name, both prefixes. From the models' cards.
const PREFIXES: [(&str, &str, &str); 7] = [
    ("nomic-embed", "search_query: ", "search_document: "),
    ("e5-", "query: ", "passage: "),
    ("bge-", "Represent this sentence for searching relevant passages: ", ""),
    (
        "mxbai-embed",
        "Represent this sentence for searching relevant passages: ",
        "",
    ),
    ("snowflake-arctic-embed2", "query: ", ""),
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

/// A model of a provider.
pub struct ProviderEmbedder {
    chosen: Chosen,
    /// As the settings name it.
    id: String,
    dims: AtomicUsize,
    prefixes: (&'static str, &'static str),
}

impl ProviderEmbedder {
    /// `id` is the model as the settings name it: `provider/model`.
    pub fn new(chosen: Chosen, id: &str) -> Self {
        let name = id.to_lowercase();
        let known = PREFIXES.iter().find(|it| name.contains(it.0));
        Self {
            chosen,
            id: id.to_owned(),
            dims: AtomicUsize::new(0),
            prefixes: known.map_or(("", ""), |it| (it.1, it.2)),
        }
    }

    fn ask(&self, prefix: &str, texts: &[String], longest: usize) -> Result<Vec<Vec<f32>>, EmbedError> {
        let runtime = Handle::try_current().map_err(|it| EmbedError::Server(it.to_string()))?;
        let cut = texts.iter().map(|it| {
            let text = it.get(..it.floor_char_boundary(longest)).unwrap_or_default();
            format!("{prefix}{text}")
        });
        let promise = self.chosen.provider.embed(cut.collect());
        let answer = runtime.block_on(async { tokio::time::timeout(PATIENCE, promise).await });
        let answer = answer
            .map_err(|_| EmbedError::Server(format!("{} made no vectors in {} s", self.id, PATIENCE.as_secs())))?;
        let vectors = match answer {
            Ok(vectors) => vectors,
            Err(failure) if failure.kind == FailureKind::Request && longest > SHORT => {
                return self.ask(prefix, texts, SHORT);
            }
            Err(failure) => return Err(EmbedError::Server(failure.to_string())),
        };
        if vectors.len() != texts.len() {
            let (given, made) = (texts.len(), vectors.len());
            return Err(EmbedError::Server(format!("{made} vectors came for {given} texts")));
        }
        let dims = vectors.first().map_or(0, Vec::len);
        if vectors.iter().any(|it| it.len() != dims) {
            return Err(EmbedError::Server("vectors of different lengths came".to_owned()));
        }
        self.dims.store(dims, Ordering::Relaxed);
        Ok(vectors)
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

    fn embed_documents(&self, texts: &[String], _: Effort) -> Result<Vec<Vec<f32>>, EmbedError> {
        self.ask(self.prefixes.1, texts, LONGEST)
    }

    fn embed_query(&self, text: &str) -> Result<Vec<f32>, EmbedError> {
        let vectors = self.ask(self.prefixes.0, &[text.to_owned()], LONGEST)?;
        vectors
            .into_iter()
            .next()
            .ok_or_else(|| EmbedError::Server("no vector came".to_owned()))
    }
}
