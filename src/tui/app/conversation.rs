//! The conversation: its link, its fold, and the folder that it is about.

use std::{path::PathBuf, sync::Arc};

use serde_json::Value;

use super::backfill::{self, Backfill};
use crate::{
    link::{About, Link},
    protocol::{Mode, Position, Restriction, Turn},
    transcript::{DocumentIndex, Transcript},
    tui::spoken::worded,
};

/// The member of a message that says when its answer asks before changes, and its only value.
pub const APPROVALS: &str = "approvals";
pub const ASK: &str = "ask";

/// One conversation and the link that produces it.
pub struct Conversation {
    pub link: Arc<dyn Link>,
    pub about: About,
    pub transcript: Transcript,
    pub workspace: Workspace,
    /// Position to follow the log from, after the transcript was folded anew; taken by the event loop.
    pub follow_from: Option<Position>,
    /// The older part of a long conversation, as far as it is wanted.
    pub backfill: Backfill,
    /// A long conversation is folded from its first entry, because what is written stays in the terminal's lines.
    pub reads_whole: bool,
    pub answer: AnswerFacts,
    /// The conversation cannot be written to disk; the header says so as long as it lasts.
    pub is_unstored: bool,
    pub commits: Commits,
    /// The last question beside the conversation, and its answer.
    pub side_answer: Option<(String, String)>,
}

/// Facts about the answer of a turn that hold while it runs.
#[derive(Clone, Debug, Default)]
pub struct AnswerFacts {
    /// The rights that the user has taken from it.
    pub restricted: Option<(Turn, Restriction)>,
    /// The model that writes it, if another one was chosen meanwhile.
    pub model: Option<(Turn, String)>,
    /// The turn that the user has stopped here.
    pub stopped: Option<Turn>,
}

/// Commits of this conversation, as far as they outlive their card.
#[derive(Clone, Debug, Default)]
pub struct Commits {
    /// Commits whose hooks run.
    pub running: usize,
    /// The user was told so when they wanted to quit: the next time stops the hooks.
    pub has_warned: bool,
    /// The user's own message on a card that was closed before its commit was made.
    pub message: Option<String>,
}

/// The folder that the conversation is about.
#[derive(Clone, Debug, Default)]
pub struct Workspace {
    pub folder: PathBuf,
    /// The user's home folder.
    pub home: Option<PathBuf>,
    /// The folder as the header shows it: `~/code/shop`.
    pub label: String,
    /// The Git branch; `None` outside a repository.
    pub branch: Option<String>,
}

impl Conversation {
    /// Starts following `link`; `reads_whole` folds a long conversation from its first entry.
    pub fn of(link: Arc<dyn Link>, workspace: Workspace, reads_whole: bool) -> Self {
        Self {
            about: link.about(),
            transcript: backfill::beginning(link.log(), reads_whole).0,
            link,
            workspace,
            follow_from: None,
            backfill: Backfill::default(),
            reads_whole,
            answer: AnswerFacts::default(),
            is_unstored: false,
            commits: Commits::default(),
            side_answer: None,
        }
    }

    /// The plan that waits to be built; `None` in a recording.
    pub fn plan_to_build(&self) -> Option<DocumentIndex> {
        self.transcript.open_plan().filter(|_| !self.about.is_replay)
    }

    /// The turn that a document belongs to; the default turn if there is no such document.
    pub fn turn_of(&self, place: DocumentIndex) -> Turn {
        self.transcript
            .exchanges
            .get(place.exchange)
            .map(|it| it.turn)
            .unwrap_or_default()
    }

    /// The size of the model's context in tokens: that of the last answer, because its tokens are the ones that are counted.
    pub fn window(&self) -> Option<u64> {
        self.transcript
            .context_window()
            .or(self.about.window)
            .filter(|it| *it > 0)
    }

    /// The mode of the running answer; `None` if none is running.
    pub fn running_mode(&self) -> Option<Mode> {
        let exchange = self.transcript.exchanges.last().filter(|_| self.is_busy())?;
        match self.restriction() {
            Some(Restriction::Mode(mode)) => Some(mode),
            Some(Restriction::AsksFirst) | None => exchange.response.mode_at(exchange.response.documents.len()),
        }
    }

    /// The custom mode of the running answer; `None` if it has none, or none is running.
    pub fn running_custom_mode(&self) -> Option<&str> {
        let exchange = self.transcript.exchanges.last().filter(|_| self.is_busy())?;
        exchange.message.as_ref()?.custom_mode()
    }

    /// The mode that the running answer had until a read-only one was chosen; `None` without such a change.
    pub fn restricted_mode(&self) -> Option<Mode> {
        let exchange = self.transcript.exchanges.last().filter(|_| self.is_busy())?;
        matches!(self.restriction(), Some(Restriction::Mode(_)))
            .then(|| exchange.response.mode_at(exchange.response.documents.len()))?
    }

    /// Returns true if the running answer asks before each change because the user wants it.
    pub fn asks_first(&self) -> bool {
        let message = self.transcript.exchanges.last().and_then(|it| it.message.as_ref());
        let wish = message.and_then(|it| it.extra.get(APPROVALS)).and_then(Value::as_str);
        self.is_busy() && (wish == Some(ASK) || self.restriction() == Some(Restriction::AsksFirst))
    }

    /// The rights that the user has taken from the running answer.
    fn restriction(&self) -> Option<Restriction> {
        let turn = self.transcript.exchanges.last()?.turn;
        self.answer.restricted.filter(|it| it.0 == turn).map(|it| it.1)
    }

    /// The model that writes the running answer, if another one was chosen since it began.
    pub fn answering_model(&self) -> Option<&str> {
        let turn = self.transcript.exchanges.last()?.turn;
        let model = self.answer.model.as_ref().filter(|it| it.0 == turn && self.is_busy())?;
        Some(&model.1)
    }

    /// Returns true while an answer is running that the user has stopped here.
    pub fn is_stopping(&self) -> bool {
        let turn = self.transcript.exchanges.last().map(|it| it.turn);
        self.is_busy() && self.answer.stopped.is_some() && self.answer.stopped == turn
    }

    /// Returns true while an answer is running.
    pub fn is_busy(&self) -> bool {
        self.transcript.is_running()
    }

    /// The document that waits for the user: an open question, else a plan to build.
    pub fn waiting(&self) -> Option<DocumentIndex> {
        self.transcript.open_question().or_else(|| self.plan_to_build())
    }

    /// Returns the name of the other end in the language of the interface.
    pub fn peer(&self) -> String {
        worded(&self.about.peer)
    }

    /// Returns true if the question of trust is open and nothing else waits for the user.
    pub fn waits_for_trust(&self) -> bool {
        self.transcript.trust.is_some() && self.waiting().is_none()
    }

    /// When the newest turn began, in milliseconds since the Unix epoch; 0 if there is none.
    pub fn last_turn_ms(&self) -> u64 {
        self.transcript.exchanges.last().map_or(0, |it| it.at_ms)
    }
}
