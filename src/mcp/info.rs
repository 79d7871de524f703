//! What is known of a server: its era, its tools, prompts and resources, and why it gave no result.

use std::time::Duration;

use serde_json::Value;

use super::message::RpcError;
use crate::{config::Fingerprint, text::Sanitized};

/// The version of the stateless era.
pub const MODERN: &str = "2026-07-28";
/// The version that a handshake offers.
pub const LEGACY: &str = "2025-11-25";
/// Versions of the handshake era, as servers may choose them.
pub const LEGACY_VERSIONS: [&str; 4] = [LEGACY, "2025-06-18", "2025-03-26", "2024-11-05"];

/// Reason why a server gave no result.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum Error {
    #[error("the connection ended: {0}")]
    Gone(String),
    #[error("it could not be started: {0}")]
    Start(String),
    /// The request was not taken: it can be sent again in a new session.
    #[error("the server has ended the session")]
    SessionEnded,
    #[error("no answer within {} s", .0.as_secs())]
    Timeout(Duration),
    #[error("error {}: {}", .0.code, Sanitized::line(&.0.message).as_str())]
    Rpc(RpcError),
    #[error("an answer cannot be read: {0}")]
    Malformed(String),
    #[error("it wants you to sign in")]
    SignIn {
        /// The header `WWW-Authenticate`.
        challenge: String,
    },
    #[error("HTTP: {0}")]
    Http(String),
    #[error("it speaks no version of the protocol that sheaf does: {0}")]
    Version(String),
}

/// Era of the protocol.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Era {
    /// Without a handshake.
    Modern,
    /// With the version that the server has chosen.
    Legacy(String),
}

impl Era {
    /// The version, as messages name it.
    pub fn version(&self) -> &str {
        match self {
            Self::Modern => MODERN,
            Self::Legacy(version) => version,
        }
    }
}

/// A tool of a server. Texts are harmless on a terminal and bounded; what they say is the server's.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolInfo {
    /// As the server calls it.
    pub name: String,
    pub title: String,
    pub about: String,
    /// As it came.
    pub schema: Value,
    /// Fingerprint of everything above as it came.
    pub print: Fingerprint,
}

/// A prompt of a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PromptInfo {
    pub name: String,
    pub about: String,
    /// Names of its arguments, and whether each must be given.
    pub arguments: Vec<(String, bool)>,
}

/// A resource of a server, or a template of resources.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResourceInfo {
    /// The address; that of a template has `{name}` where something is to be filled in.
    pub uri: String,
    pub name: String,
    pub about: String,
}
