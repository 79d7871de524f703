//! Names of things: newtypes, so that one id cannot be taken for another.

use std::{fmt, sync::Arc};

use serde::{Deserialize, Serialize};

macro_rules! ids {
    ($($(#[$doc:meta])* $name:ident, $prefix:literal;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(Arc<str>);

        impl $name {
            /// A new one that no other program made: the prefix and a time-ordered UUID.
            pub fn fresh() -> Self {
                Self(format!(concat!($prefix, "{}"), uuid::Uuid::now_v7()).into())
            }

            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl From<&str> for $name {
            fn from(text: &str) -> Self {
                Self(text.into())
            }
        }

        impl From<String> for $name {
            fn from(text: String) -> Self {
                Self(text.into())
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }
    )*};
}

ids! {
    /// Unique inside one response only; readers key by (turn, document).
    DocumentId, "doc_";
    ResponseId, "chat_";
    ConversationId, "conv_";
}

impl DocumentId {
    /// Returns the id that a strict writer sends: `doc_` and the sequence, zero-padded.
    pub fn numbered(sequence: u64) -> Self {
        format!("doc_{sequence:03}").into()
    }
}

/// Position of an entry in a log. Positions increase; gaps are legal.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Position(pub u64);

/// Number of a user message and its answer, from 1. 0 holds everything before the first message.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Turn(pub u32);

impl fmt::Display for Turn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// A document as a person names it: `7.3` is document 3 of turn 7.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Address {
    pub turn: Turn,
    pub number: u64,
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.turn.0, self.number)
    }
}
