//! Several turns in one run: messages, answers and a stop come from standard input while the answer is printed.

use std::collections::VecDeque;

use tokio::sync::mpsc::UnboundedReceiver;

use crate::protocol::{ClarificationResponse, Command, Message, Mode, Submit};

/// An input of a program that drives a run.
#[derive(Clone, Debug, PartialEq)]
pub enum Input {
    /// A message. It joins the running answer unless it waits for the next turn.
    Message { message: Message, waits: bool },
    /// An answer to an open question or approval.
    Answer(ClarificationResponse),
    /// Stops the running answer.
    Cancel,
    /// A line that could not be read, and why. It ends the run.
    Wrong(String),
}

/// The turns of a run.
pub struct Dialogue {
    /// `None` once it has ended, and for a run with one message.
    input: Option<UnboundedReceiver<Input>>,
    /// True if the run has more than one turn.
    pub is_open_ended: bool,
    mode: Mode,
    /// Messages that wait for the next turn.
    queue: VecDeque<Message>,
    /// Number of exchanges that there will be once all that was sent has begun.
    pub expected: usize,
    /// Number of exchanges whose end has been reported.
    pub reported: usize,
    /// Cost after which no further turn begins, in dollars.
    budget: Option<f64>,
    /// Cost of the turns that have ended, in dollars.
    spent: f64,
}

impl Dialogue {
    pub fn new(input: Option<UnboundedReceiver<Input>>, mode: Mode, exchanges: usize, budget: Option<f64>) -> Self {
        Self {
            is_open_ended: input.is_some(),
            input,
            mode,
            queue: VecDeque::new(),
            expected: exchanges,
            reported: exchanges,
            budget,
            spent: 0.0,
        }
    }

    /// Returns true while more may come from standard input.
    pub fn hears(&self) -> bool {
        self.input.is_some()
    }

    /// The next input. `None` at the end of standard input; never returns after that.
    pub async fn next(&mut self) -> Option<Input> {
        let Some(input) = &mut self.input else {
            return std::future::pending().await;
        };
        let next = input.recv().await;
        if next.is_none() {
            self.input = None;
        }
        next
    }

    /// Opens a turn with a message.
    pub fn submit(&mut self, message: Message, exchanges: usize) -> Command {
        self.expected = exchanges + 1;
        Command::Submit(Submit {
            message,
            mode: self.mode,
            model: None,
        })
    }

    /// Takes a message. `joins`: the one who answers hears messages during an answer. Returns the command to send; `None`
    /// for a message that waits.
    pub fn message(&mut self, message: Message, waits: bool, joins: bool, exchanges: usize) -> Option<Command> {
        let is_busy = self.is_busy(exchanges);
        if !is_busy && self.queue.is_empty() {
            return Some(self.submit(message, exchanges));
        }
        // Before the exchange is there, nobody could say in which of two the message ended up.
        if is_busy && joins && !waits && exchanges == self.expected {
            return Some(Command::Steer(Submit {
                message,
                mode: self.mode,
                model: None,
            }));
        }
        self.queue.push_back(message);
        None
    }

    /// Returns true if an exchange runs, or will begin; its end has not been reported.
    fn is_busy(&self, exchanges: usize) -> bool {
        self.reported < self.expected.max(exchanges)
    }

    /// The turn of a message that waited, once nothing runs.
    pub fn next_turn(&mut self, exchanges: usize) -> Option<Command> {
        if self.is_busy(exchanges) {
            return None;
        }
        let message = self.queue.pop_front()?;
        Some(self.submit(message, exchanges))
    }

    /// The turns of all exchanges have ended; the last one has cost so many dollars.
    pub fn end_turn(&mut self, exchanges: usize, dollars: f64) {
        self.reported = exchanges;
        self.spent += dollars;
    }

    /// Returns why no further turn may begin; `None` if one may.
    pub fn spent(&self) -> Option<String> {
        let budget = self.budget.filter(|it| self.spent >= *it)?;
        let spent = self.spent;
        Some(format!(
            "the run has cost ${spent:.4}; --max-budget-usd is ${budget}\nstart another run to go on"
        ))
    }

    /// Drops the messages that wait.
    pub fn clear(&mut self) {
        self.queue.clear();
    }

    /// Returns true if nothing runs and nothing more will come.
    pub fn is_over(&self, exchanges: usize) -> bool {
        !self.hears() && self.queue.is_empty() && !self.is_busy(exchanges)
    }
}
