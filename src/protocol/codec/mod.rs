//! The documents protocol on the wire: bytes of others to strict events, events to bytes for others.
//!
//! The rule is *tolerant reader, strict writer*. A [`Decoder`] takes whatever a gateway sends, in either dialect, and
//! gives events that need no second look: every document starts once and ends once, with its whole content and
//! metadata, and there is one `done`. What it had to repair it says in notices. [`Strict`] writes only what the
//! protocol's own text allows. [`record`] is the lossless form that the journal keeps.
//!
//! Nothing here knows a clock, a file or a random number; what a response lacks comes in with [`Identity`].

mod decode;
mod encode;
mod failure;
mod foreign;
mod open;
mod payload;
pub mod record;
mod request;
mod strict;
mod time;

pub use decode::{Breach, Decoder};
pub use encode::{END, PING, answer, frame};
pub use failure::Failure;
pub use foreign::{DecodeError, Foreign};
pub use request::{Context, OpenFile, RequestError};
pub use strict::Strict;
pub use time::{is_time, iso};

use super::{ConversationId, Mode, ResponseId};

/// Names of a response whose writer gives none.
#[derive(Clone, Debug, PartialEq)]
pub struct Identity {
    pub id: ResponseId,
    /// For writers. A reader keeps its own and never sends it back.
    pub conversation_id: Option<ConversationId>,
    /// The model that was asked for.
    pub model: String,
    pub mode: Mode,
    /// When the answer began to arrive, in milliseconds since the Unix epoch.
    pub created_ms: u64,
}

impl Identity {
    /// A new id for a response that was asked of `model` in `mode`.
    pub fn local(model: impl Into<String>, mode: Mode, created_ms: u64) -> Self {
        Self {
            id: format!("chat_local_{}", uuid::Uuid::now_v7()).into(),
            conversation_id: None,
            model: model.into(),
            mode,
            created_ms,
        }
    }
}

/// Limits for reading one response. Beyond a limit content is cut or skipped, and a notice reports it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The data of one event.
    pub event_bytes: usize,
    /// Content and metadata of one document.
    pub document_bytes: usize,
    /// All documents of a response together, with later changes and events that we do not know.
    pub response_bytes: usize,
    /// A JSON answer.
    pub body_bytes: usize,
    pub documents: usize,
    /// Longer ids are replaced by a hash of themselves.
    pub id_bytes: usize,
    pub notices: usize,
    pub thinking_bytes: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            event_bytes: 16 << 20,
            document_bytes: 64 << 20,
            response_bytes: 256 << 20,
            body_bytes: 128 << 20,
            documents: 50_000,
            id_bytes: 256,
            notices: 1000,
            thinking_bytes: 8 << 20,
        }
    }
}
