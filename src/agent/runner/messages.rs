//! Messages of the user's: those that wait, the one that is made ready, and what is said to a running answer.

use std::{collections::VecDeque, pin::Pin};

use futures::stream::FuturesOrdered;
use serde_json::{Map, Value};

use crate::{
    agent::{
        runner::{context_builder::Steering, hook_points::Stopping},
        turn::Submission,
    },
    journal::Log,
    models::{EndReason, Piece, PieceStream},
    protocol::{
        ClarificationResponse, CompactionScope, Message, Mode, Permission, Position, Restriction, Submit, Turn,
    },
    tools::run_terminal_cmd,
    transcript::Transcript,
};

/// The messages that have not become turns yet, and what the one that has is for.
#[derive(Default)]
pub struct Messages {
    /// Messages that came while an answer was being made: each opens a turn of its own after it.
    pub queue: VecDeque<(Submit, QueuedWork)>,
    /// A message that is being made ready for the model.
    pub next: Option<Pin<Box<dyn Future<Output = Box<Submission>> + Send>>>,
    /// The message, if it stands in the log before its answer begins.
    pub shown: Option<ShownMessage>,
    /// Messages to the running answer whose context is being built.
    pub steering: FuturesOrdered<Pin<Box<dyn Future<Output = Steering> + Send>>>,
    /// The message that is made ready is to be stopped as soon as it stands in the log.
    pub is_stopped: bool,
    /// The running turn is the user's own command.
    pub user_command: Option<UserCommand>,
    /// The turn that is made ready makes what is told shorter.
    pub compaction: Option<CompactionScope>,
    /// The mode of the last message.
    pub mode: Option<Mode>,
    /// Hooks after the last answer, while they run.
    pub stopping: Option<Stopping>,
    /// The conversation from before the program started has been read.
    pub is_recollected: bool,
}

impl Messages {
    /// Puts a message behind those that wait for an answer.
    pub fn push(&mut self, submit: Submit) {
        self.queue.push_back((submit, QueuedWork::Answer));
    }

    /// Puts a message to an answer that it cannot join behind those that wait; `turn` is that of the answer, as long as it runs.
    pub fn push_said(&mut self, submit: Submit, turn: Option<Turn>) {
        self.queue
            .push_back((submit, turn.map_or(QueuedWork::Answer, QueuedWork::Said)));
    }

    /// Drops what was said to the answer of a turn and not heard: whoever stops the answer has the words back.
    pub fn drop_said(&mut self, turn: Turn) {
        self.steering.clear();
        self.queue
            .retain(|(_, work)| !matches!(work, QueuedWork::Said(it) if *it == turn));
    }

    /// Takes the message that waits for the provider's list of models.
    pub fn take_asking(&mut self) -> Option<Submit> {
        self.shown.as_mut()?.asking.take()
    }

    /// Takes the mode of a message. Returns true if it leaves debug mode.
    pub fn enter(&mut self, mode: Mode) -> bool {
        self.mode.replace(mode) == Some(Mode::Debug) && mode != Mode::Debug
    }

    /// Takes the next message that waits, and remembers what it is for.
    pub fn take(&mut self) -> Option<Submit> {
        let (mut submit, work) = self.queue.pop_front()?;
        self.queue.shrink_to_fit();
        (self.user_command, self.compaction) = match work {
            QueuedWork::Answer | QueuedWork::Said(_) => (None, None),
            QueuedWork::Command(own) => (Some(own), None),
            QueuedWork::Compaction(how) => (None, Some(how)),
        };
        // What a mode keeps the model from doing it does not keep the user from.
        if self.user_command.is_some() && submit.mode.is_read_only() {
            submit.mode = Mode::Agent;
        }
        Some(submit)
    }

    /// The message that answers the question to which the conversation went back, if that is the one.
    pub fn answering(&self, log: &Log, turn: Turn, response: ClarificationResponse) -> Option<Submit> {
        let is_of_it = |it: &Submit| {
            let answer = it.message.clarification_response.as_ref();
            answer.is_some_and(|it| it.document_id == response.document_id)
        };
        // The first answer counts, also when its turn has not begun yet.
        if self.next.is_some() || self.shown.is_some() || self.queue.iter().any(|it| is_of_it(&it.0)) {
            return None;
        }
        let transcript = Transcript::from_entries(&log.after(Position(0)));
        let question = transcript.reopened(turn, &response.document_id)?.clarification()?;
        let message = Message {
            content: question.readable(&response),
            clarification_response: Some(response),
            ..Message::user("")
        };
        Some(Submit {
            message,
            mode: self.mode.unwrap_or_default(),
            model: None,
        })
    }
}

/// A message that stands in the log before its answer begins.
pub struct ShownMessage {
    /// The message, while the provider is asked for its models.
    asking: Option<Submit>,
    /// Rights that the user has taken from the answer meanwhile.
    pub restrictions: Vec<Restriction>,
}

impl ShownMessage {
    /// A message that waits for the provider's list of models.
    pub fn asking(submit: Submit) -> Self {
        Self {
            asking: Some(submit),
            restrictions: Vec::new(),
        }
    }
}

/// A call that the user makes. It stands where a model's call would, so that it is judged, held, shown and remembered
/// like one; the model is not asked.
pub struct UserCommand {
    name: String,
    arguments: Map<String, Value>,
    /// The user typed it; otherwise the model made it before.
    pub is_typed: bool,
    /// The model is told of it.
    pub is_shown: bool,
    /// The call has been made; what is asked next is what to say to its result, which is nothing.
    is_asked: bool,
    /// Number of messages that the model had been told before.
    pub from: usize,
}

/// The purpose of a message that waits.
pub enum QueuedWork {
    /// The model answers it.
    Answer,
    /// The same; it was said to the answer of this turn, which it could not join.
    Said(Turn),
    /// A command of the user's own.
    Command(UserCommand),
    /// The history is compacted.
    Compaction(CompactionScope),
}

impl UserCommand {
    /// The command `line`, which the user typed. It may reach the network and let git commit, as in their shell; the rest of the
    /// sandbox holds it.
    pub fn typed(line: String, is_shown: bool) -> Self {
        let permissions = [Permission::Network, Permission::GitWrite];
        let permissions: Vec<Value> = permissions.iter().map(|it| it.as_str().into()).collect();
        Self {
            name: run_terminal_cmd::NAME.to_owned(),
            arguments: Map::from_iter([
                ("command".to_owned(), line.into()),
                ("required_permissions".to_owned(), permissions.into()),
            ]),
            is_typed: true,
            is_shown,
            is_asked: false,
            from: 0,
        }
    }

    /// A call of the model's that is made again.
    pub fn repeated(name: String, arguments: Map<String, Value>) -> Self {
        Self {
            name,
            arguments,
            is_typed: false,
            is_shown: true,
            is_asked: false,
            from: 0,
        }
    }

    /// The answer in a model's place: the call, and then nothing.
    pub fn stream(&mut self, now_ms: u64) -> PieceStream {
        if std::mem::replace(&mut self.is_asked, true) {
            return Box::pin(futures::stream::iter([Piece::End(EndReason::Stop)]));
        }
        let (id, name) = (format!("own_{now_ms}"), self.name.clone());
        let arguments = std::mem::take(&mut self.arguments);
        Box::pin(futures::stream::iter([
            Piece::CallStart {
                slot: 0,
                id: id.clone(),
                name: name.clone(),
            },
            Piece::CallDone {
                slot: 0,
                id,
                name,
                arguments: Ok(arguments),
                opaque: None,
            },
            Piece::End(EndReason::ToolUse),
        ]))
    }
}
