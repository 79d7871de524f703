//! Links: sources of a conversation and targets of commands: a gateway, the embedded agent, a recording.
//!
//! Whatever is behind it, a link is a log to follow and a place to send commands. What a command does is seen in the
//! log and nowhere else, so a consumer needs no second path for its own keypresses.

pub mod follow;
pub mod http;
pub mod local;
pub mod replay;

use std::{
    future::{Future, ready},
    path::PathBuf,
    pin::Pin,
    sync::{Arc, Mutex, PoisonError},
};

use tokio::sync::Notify;

use crate::{
    journal::Log,
    protocol::{Command, Query, Reply},
};

/// A conversation with the one who answers it.
pub trait Link: Send + Sync {
    fn log(&self) -> &Arc<Log>;

    /// Never blocks; a command that cannot be followed becomes an `error` document or a notice in the log.
    fn send(&self, command: Command);

    fn about(&self) -> About;

    /// Returns true if each document in the log ends with all of the text that its deltas said.
    fn has_whole_ends(&self) -> bool {
        false
    }

    /// Asks something that leaves no trace in the conversation; by default the link cannot answer.
    fn ask(&self, _query: Query) -> Pin<Box<dyn Future<Output = Result<Reply, AskError>> + Send>> {
        let peer = self.about().peer;
        Box::pin(ready(Err(AskError::Unsupported { peer })))
    }
}

/// Description of the other end, for the header and for messages.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct About {
    /// `openai at 127.0.0.1:8080`, `gateway example.org`, `replay of tour.sse`.
    pub peer: String,
    pub model: Option<String>,
    /// Other services that could answer: their keys are in the environment, and the settings choose none.
    pub also: Vec<String>,
    /// Tokens that fit into the model's window, if known.
    pub window: Option<u64>,
    /// A recording: what is typed goes nowhere.
    pub is_replay: bool,
    /// The model is a script: only what it expects gets a true answer.
    pub is_scripted: bool,
    /// Another program writes the conversation: only answers and a stop are passed on to it. The value is the command that
    /// continues a copy.
    pub written_elsewhere: Option<String>,
    /// True if a message sent during an answer joins that answer.
    pub hears: bool,
    /// True if the peer runs commands on this machine.
    pub runs: bool,
    /// True if the peer reads the `context` of each message; otherwise the link got it once.
    pub reads_context: bool,
    /// The conversation and its files are the peer's: the folder in which the program was started says nothing.
    pub is_attached: bool,
    /// Folder of its files. `None`: the folder in which the program was started.
    pub workspace: Option<PathBuf>,
    /// Sandbox of the commands that the peer runs here.
    pub hold: SandboxStatus,
}

/// The one who can answer questions that come up during an answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Asker {
    /// Somebody at this screen.
    #[default]
    Here,
    /// Nobody: actions that need an answer are refused.
    Nobody,
    /// A program: it hears questions at once and may answer them.
    Program,
    /// The client of a gateway, which hears questions at once.
    Live,
    /// The client of a gateway, which answers a question with its next message.
    Later,
}

impl Asker {
    /// Returns true if a question can be waited for.
    pub const fn is_attended(self) -> bool {
        matches!(self, Self::Here | Self::Program | Self::Live)
    }

    /// Returns true if there is no screen, here or elsewhere: the model's own text is printed.
    pub const fn prints_text(self) -> bool {
        matches!(self, Self::Nobody | Self::Program)
    }

    /// Returns true for somebody across a network, who may not leave the sandbox.
    pub const fn is_afar(self) -> bool {
        matches!(self, Self::Live | Self::Later)
    }
}

/// Sandbox around commands, once it is known: nobody waits for the trial.
#[derive(Clone, Debug, Default)]
pub struct SandboxStatus(Arc<StatusCell>);

#[derive(Debug, Default)]
struct StatusCell {
    held: Mutex<Option<Held>>,
    told: Notify,
}

/// Strength of the sandbox around a command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Held {
    Whole,
    /// But for this.
    Partly(String),
    Nothing,
}

impl SandboxStatus {
    /// The last answer counts: the user may change it.
    pub fn found(&self, held: Held) {
        *self.0.held.lock().unwrap_or_else(PoisonError::into_inner) = Some(held);
        self.0.told.notify_waiters();
    }

    /// Returns the status, if it is known.
    pub fn known(&self) -> Option<Held> {
        self.0.held.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Until something else is known than `before`; for ever, if nobody finds that out.
    pub async fn wait(self, before: Option<Held>) {
        loop {
            let told = self.0.told.notified();
            if self.known() != before {
                return;
            }
            told.await;
        }
    }
}

impl PartialEq for SandboxStatus {
    fn eq(&self, other: &Self) -> bool {
        self.known() == other.known()
    }
}

impl Eq for SandboxStatus {}

/// Reason why a query has no reply.
#[derive(Debug, thiserror::Error)]
pub enum AskError {
    /// The peer has no such thing.
    #[error("{peer} cannot answer that")]
    Unsupported { peer: String },
    /// The peer refused it, and says why.
    #[error("{0}")]
    Refused(String),
    /// The peer should have answered and did not.
    #[error("{peer} did not answer")]
    Failed {
        peer: String,
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
}
