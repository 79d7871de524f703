//! The running answer as it comes: its stream, what it costs, and the questions that expire.
//!
//! In a flood, what is there already is one piece: a word of its own would cost more than it says.

use std::time::Duration;

use futures::{FutureExt, StreamExt, stream::SelectAll};

use super::tool_runner::{Jobs, Outputs};
use crate::{
    agent::turn::{Input, JobId},
    journal::{EventLimit, PollBudget, Raw},
    models::{Failure, FailureKind, Piece, PieceStream},
    protocol::DocumentId,
};

/// A question that changes what the model may do is a no after this time.
const PATIENCE: Duration = Duration::from_mins(10);

/// The answer that a model is giving.
#[derive(Default)]
pub struct AnswerStream {
    /// `None`: no model is asked.
    pub stream: Option<PieceStream>,
    /// Questions that expire, which may outlast the answer.
    pub timers: Jobs,
    /// The limit of what an answer may append to the log.
    pub limit: EventLimit,
    /// The share of the thread's time that one poll may take.
    pub budget: PollBudget,
}

impl AnswerStream {
    /// Closes a question unanswered when its time is over.
    pub fn expire(&self, document: DocumentId) {
        self.timers.push(Box::pin(async move {
            tokio::time::sleep(PATIENCE).await;
            Input::Expired(document)
        }));
    }

    /// Returns the next piece of the answer if it is there and the budget is not used up.
    pub fn next_now(&mut self) -> Option<Input> {
        if self.budget.is_over() {
            return None;
        }
        let piece = self.stream.as_mut()?.next().now_or_never()?;
        Some(Input::Piece(piece.unwrap_or_else(endless)))
    }

    /// In a flood, adds to a piece of text what is there already, and returns what came behind that. `seen` gets the frames
    /// that the text is made of.
    pub fn gather(
        &mut self,
        input: Input,
        outputs: &mut SelectAll<Outputs>,
        seen: impl FnMut(Raw),
    ) -> (Input, Option<Input>) {
        match input {
            Input::Piece(Piece::Text(text)) => self.gather_text(text, seen),
            Input::Output { job, text } => self.gather_output(job, text, outputs),
            other => (other, None),
        }
    }

    fn gather_text(&mut self, mut text: String, mut seen: impl FnMut(Raw)) -> (Input, Option<Input>) {
        let mut next = None;
        if let Some(stream) = &mut self.stream
            && self.limit.is_high()
        {
            while !self.budget.is_over() {
                match stream.next().now_or_never() {
                    None => break,
                    Some(Some(Piece::Text(more))) => {
                        text.push_str(&more);
                        self.budget.spend(more.len());
                    }
                    Some(Some(Piece::Seen(raw))) => seen(*raw),
                    Some(other) => {
                        next = Some(Input::Piece(other.unwrap_or_else(endless)));
                        break;
                    }
                }
            }
        }
        (Input::Piece(Piece::Text(text)), next)
    }

    fn gather_output(
        &mut self,
        job: JobId,
        mut text: String,
        outputs: &mut SelectAll<Outputs>,
    ) -> (Input, Option<Input>) {
        let mut next = None;
        while !self.budget.is_over() {
            match outputs.next().now_or_never().flatten() {
                None => break,
                Some((same, more)) if same == job => {
                    text.push_str(&more);
                    self.budget.spend(more.len());
                }
                Some((job, text)) => {
                    next = Some(Input::Output { job, text });
                    break;
                }
            }
        }
        (Input::Output { job, text }, next)
    }
}

/// The text of a piece or of a command's output; empty for other inputs.
pub fn text_of(input: &Input) -> &str {
    if let Input::Piece(Piece::Text(text) | Piece::Thinking(text)) | Input::Output { text, .. } = input {
        text
    } else {
        ""
    }
}

/// The end of an answer whose provider forgot it: the conversation must not hang.
pub fn endless() -> Piece {
    let message = "the provider stopped without a word";
    Piece::Error(Failure::new(FailureKind::Interrupted, message))
}
