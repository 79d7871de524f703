//! Enumerations of the protocol. Each keeps a word that it does not know, so that it survives a round trip.

use std::fmt;

macro_rules! words {
    ($($(#[$doc:meta])* $name:ident { $($variant:ident = $word:literal),* $(,)? })*) => {$(
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq, Eq, Hash)]
        pub enum $name { $($variant,)* /// A word of somebody else's.
            Other(String) }

        impl $name {
            /// The words this program knows, in the protocol's order.
            pub const KNOWN: &'static [&'static str] = &[$($word),*];

            pub fn parse(word: &str) -> Self {
                match word { $($word => Self::$variant,)* other => Self::Other(other.to_owned()) }
            }

            pub fn as_str(&self) -> &str {
                match self { $(Self::$variant => $word,)* Self::Other(word) => word }
            }
        }

        impl From<&str> for $name {
            fn from(word: &str) -> Self {
                Self::parse(word)
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.as_str())
            }
        }

        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
                to.serialize_str(self.as_str())
            }
        }

        impl<'de> serde::Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
                Ok(Self::parse(&<String as serde::Deserialize>::deserialize(from)?))
            }
        }
    )*};
}

pub(super) use words;

words! {
    Status { Completed = "completed", Streaming = "streaming", Error = "error" }
    /// Why a response ended (`metadata.finishReason`).
    FinishReason {
        Stop = "stop", AwaitingInput = "awaiting_input", Cancelled = "cancelled", MaxTurns = "max_turns",
        Length = "length", Refusal = "refusal", Error = "error", Interrupted = "interrupted",
    }
    TextFormat { Markdown = "markdown", Plain = "plain" }
    Purpose { NewCode = "new_code", Example = "example", Suggestion = "suggestion" }
    Operation { Create = "create", Edit = "edit", Delete = "delete", Rename = "rename" }
    Applied { Pending = "pending", Applied = "applied", Rejected = "rejected", Failed = "failed" }
    CommandState {
        Running = "running", Completed = "completed", Background = "background", TimedOut = "timed_out",
        Rejected = "rejected", Cancelled = "cancelled",
    }
    Permission { Network = "network", GitWrite = "git_write", All = "all" }
    TodoStatus { Pending = "pending", InProgress = "in_progress", Completed = "completed", Cancelled = "cancelled" }
    QuestionKind { Question = "question", Approval = "approval" }
    Outcome { Answered = "answered", Skipped = "skipped", Cancelled = "cancelled" }
    Role { User = "user", Assistant = "assistant", System = "system" }
}

/// Mode of the agent. A closed set: a mode that we do not know cannot be entered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Mode {
    #[default]
    Agent,
    Plan,
    Ask,
    Debug,
}

impl Mode {
    pub const ALL: [Self; 4] = [Self::Agent, Self::Plan, Self::Ask, Self::Debug];

    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL
            .into_iter()
            .find(|it| it.as_str().eq_ignore_ascii_case(word.trim()))
    }

    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Agent => "agent",
            Self::Plan => "plan",
            Self::Ask => "ask",
            Self::Debug => "debug",
        }
    }

    /// Returns the mode after this one, in a circle.
    pub const fn next(self) -> Self {
        Self::ALL[(self as usize + 1) % Self::ALL.len()]
    }

    /// Returns true if the mode changes neither files nor the machine.
    pub const fn is_read_only(self) -> bool {
        matches!(self, Self::Plan | Self::Ask)
    }
}

impl fmt::Display for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
