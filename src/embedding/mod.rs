//! Code by its meaning: vectors of texts, who makes them, and where they are kept.
//!
//! A search ranks by words first ([`crate::index`]); the best hundred chunks get vectors, if they have none yet, and both rankings
//! are fused. Vectors are kept by the hash of their text, so each text is embedded once, whatever the branch, worktree or program.

mod background;
mod hybrid;
mod install;
mod local;
mod onnx;
mod pack;
mod provider;
mod shared;
mod store;
mod vector;
mod wait;

use std::sync::Arc;

use crate::{
    config::{Environment, Paths, Settings},
    index::IsOver,
    models::Roles,
};

pub use background::{Answering, EmbeddingService};
pub use hybrid::{Embeddings, Found, Meaning, Progress};
pub use install::{
    Installed, KNOWN_MODELS, KnownModel, hexadecimal, install_file, install_folder, installed, is_name, remove,
};
pub use local::{Description, LocalModel, Pooling};
pub use provider::ProviderEmbedder;
pub use shared::SharedVectors;
pub use store::{Stored, clear, stored};
pub use vector::Vector;

/// Makes vectors of texts. Its methods block: they are called on threads that may.
pub trait Embedder: Send + Sync {
    /// The model and its version: vectors of different ids are never compared.
    fn id(&self) -> &str;

    /// Values of a vector; 0: known when the first vectors have come.
    fn dims(&self) -> usize;

    /// True if it runs on this machine: it costs no money, and no text leaves.
    fn is_local(&self) -> bool;

    /// Texts of one call of [`Embedder::embed_documents`].
    fn batch(&self) -> usize;

    /// A vector for each text, in their order. Nobody waits for a server any more when `is_over` says yes.
    fn embed_documents(
        &self,
        texts: &[String],
        effort: Effort,
        is_over: IsOver<'_>,
    ) -> Result<Vec<Vec<f32>>, EmbedError>;

    /// The vector of a question.
    fn embed_query(&self, text: &str, is_over: IsOver<'_>) -> Result<Vec<f32>, EmbedError>;

    /// Gives back the memory of a model that is not needed soon.
    fn rest(&self) {}
}

/// Share of this machine that a model may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effort {
    /// All processors: somebody waits for a search.
    Search,
    /// All processors: somebody builds the index.
    Build,
    /// One thread, with the priority of the caller.
    Aside,
}

/// Why there are no vectors.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EmbedError {
    /// The model cannot be used, now or later.
    #[error("{0}")]
    Unusable(String),
    /// The server gave no answer; it is asked again after a while.
    #[error("{0}")]
    Server(String),
    /// Vectors cannot be stored.
    #[error("vectors cannot be stored: {0}")]
    Store(String),
}

/// The value of `roles.embed` that turns vectors off.
pub const NONE: &str = "none";
/// Prefix of the name of a model on this machine: `local/NAME`.
pub const LOCAL: &str = "local/";

/// The outcome of opening vectors. `Ok(None)`: code is searched by words only.
pub type Opened = Result<Option<Embeddings>, EmbedError>;

/// The vectors of the model that `roles.embed` names; unset: of the first model that is installed.
///
/// They are opened when they are first needed, and kept in the cache folder.
pub fn service(settings: &Settings, paths: &Paths, environment: &Environment, roles: Arc<Roles>) -> EmbeddingService {
    let (named, index) = (settings.roles.embed.clone(), settings.index.clone());
    let (paths, environment) = (paths.clone(), environment.clone());
    EmbeddingService::new(settings.index.background, move || {
        let Some(embedder) = embedder(named.as_deref(), &paths, &roles)? else {
            return Ok(None);
        };
        let shared = index
            .cache
            .as_deref()
            .map(|it| SharedVectors::new(it, &index.cache_token, &environment, embedder.id()))
            .transpose()
            .map_err(EmbedError::Unusable)?;
        Ok(Some(Embeddings::new(
            embedder,
            Some((&paths.cache, index.size)),
            shared,
        )))
    })
}

/// The model that makes vectors.
fn embedder(named: Option<&str>, paths: &Paths, roles: &Roles) -> Result<Option<Arc<dyn Embedder>>, EmbedError> {
    let found = installed(&paths.data);
    match named.map(str::trim).filter(|it| !it.is_empty()) {
        Some(NONE) => Ok(None),
        None => Ok(match found.first() {
            Some(model) => Some(Arc::new(LocalModel::open(&model.folder)?)),
            None => None,
        }),
        Some(named) => match named.strip_prefix(LOCAL) {
            Some(name) => {
                let Some(model) = found.iter().find(|it| it.name == name) else {
                    let message = format!("the model `{name}` is not installed: sheaf index model install {name}");
                    return Err(EmbedError::Unusable(message));
                };
                Ok(Some(Arc::new(LocalModel::open(&model.folder)?)))
            }
            None => match roles.embed() {
                Ok(Some(chosen)) => Ok(Some(Arc::new(ProviderEmbedder::new(chosen)))),
                Ok(None) => Ok(None),
                Err(failure) => Err(EmbedError::Unusable(format!("roles.embed: {failure}"))),
            },
        },
    }
}
