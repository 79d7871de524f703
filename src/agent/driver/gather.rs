//! In a flood, what is there already is one piece: a word of its own would cost more than it says.

use futures::{FutureExt, StreamExt};

use super::Driver;
use crate::{
    agent::turn::{Input, JobId},
    model::{Failure, FailureKind, Piece},
};

impl Driver {
    /// In a flood, adds to a piece of text what is there already, and returns what came behind that.
    pub(super) fn gather(&mut self, input: Input) -> (Input, Option<Input>) {
        match input {
            Input::Piece(Piece::Text(text)) => self.gather_text(text),
            Input::Output { job, text } => self.gather_output(job, text),
            other => (other, None),
        }
    }

    pub(super) fn gather_text(&mut self, mut text: String) -> (Input, Option<Input>) {
        let mut next = None;
        if let Some(stream) = &mut self.stream
            && self.flood.is_high()
        {
            while !self.stint.is_over() {
                match stream.next().now_or_never() {
                    None => break,
                    Some(Some(Piece::Text(more))) => {
                        text.push_str(&more);
                        self.stint.spend(more.len());
                    }
                    Some(other) => {
                        next = Some(Input::Piece(other.unwrap_or_else(endless)));
                        break;
                    }
                }
            }
        }
        (Input::Piece(Piece::Text(text)), next)
    }

    pub(super) fn gather_output(&mut self, job: JobId, mut text: String) -> (Input, Option<Input>) {
        let mut next = None;
        while !self.stint.is_over() {
            match self.outputs.next().now_or_never().flatten() {
                None => break,
                Some((same, more)) if same == job => {
                    text.push_str(&more);
                    self.stint.spend(more.len());
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

pub(super) fn text_of(input: &Input) -> &str {
    if let Input::Piece(Piece::Text(text) | Piece::Thinking(text)) | Input::Output { text, .. } = input {
        text
    } else {
        ""
    }
}

/// The end of an answer whose provider forgot it: the conversation must not hang.
pub(super) fn endless() -> Piece {
    let message = "the provider stopped without a word";
    Piece::Error(Failure::new(FailureKind::Interrupted, message))
}
