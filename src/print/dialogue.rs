//! Several turns in one run: messages, answers and a stop come from standard input while the answer is printed.

use std::collections::VecDeque;

use tokio::sync::mpsc::Receiver;

use serde_json::Value;

use crate::protocol::{ClarificationResponse, Command, Message, Mode, Submit};

/// Maximum number of messages that wait for their turns, and of their bytes. No more is read until one has begun.
const MOST_WAITING: usize = 64;
const MOST_WAITING_BYTES: usize = 32 << 20;

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
    input: Option<Receiver<Input>>,
    /// True if the run has more than one turn.
    pub is_open_ended: bool,
    mode: Mode,
    /// Custom mode of the messages.
    custom_mode: Option<String>,
    /// Messages that wait for the next turn, and whether they are to join the turn before it: they came before it had begun.
    queue: VecDeque<(Message, bool)>,
    /// Their size.
    queue_bytes: usize,
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
    pub fn new(
        input: Option<Receiver<Input>>,
        (mode, custom_mode): (Mode, Option<String>),
        exchanges: usize,
        budget: Option<f64>,
    ) -> Self {
        Self {
            is_open_ended: input.is_some(),
            input,
            mode,
            custom_mode,
            queue: VecDeque::new(),
            queue_bytes: 0,
            expected: exchanges,
            reported: exchanges,
            budget,
            spent: 0.0,
        }
    }

    /// Returns true if no more should be read for now: so many messages wait for their turns.
    fn is_full(&self) -> bool {
        self.queue.len() >= MOST_WAITING || self.queue_bytes >= MOST_WAITING_BYTES
    }

    /// Returns true while more may come from standard input.
    pub fn hears(&self) -> bool {
        self.input.is_some()
    }

    /// The next input. `None` at the end of standard input; never returns after that, and while too much waits. An answer that
    /// somebody waits for (`is_asking`) is read in any case: nothing goes on without it.
    pub async fn next(&mut self, is_asking: bool) -> Option<Input> {
        let is_read = is_asking || !self.is_full();
        let Some(input) = self.input.as_mut().filter(|_| is_read) else {
            return std::future::pending().await;
        };
        let next = input.recv().await;
        if next.is_none() {
            self.input = None;
        }
        next
    }

    /// Notes that a turn begins that nobody opened with a message of its own: an answer does.
    pub fn expect_turn(&mut self, exchanges: usize) {
        self.expected = exchanges + 1;
    }

    /// Opens a turn with a message.
    pub fn submit(&mut self, message: Message, exchanges: usize) -> Command {
        self.expected = exchanges + 1;
        Command::Submit(Submit {
            message: message.in_custom_mode(self.custom_mode.as_deref()),
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
        let is_joining = is_busy && joins && !waits;
        if is_joining && exchanges == self.expected {
            return Some(self.steer(message));
        }
        self.queue_bytes += size(&message);
        self.queue.push_back((message, is_joining));
        None
    }

    /// The next message that came before the exchange that it joins; `None` until that has begun.
    pub fn next_joining(&mut self, exchanges: usize) -> Option<Command> {
        if !self.is_busy(exchanges) || exchanges != self.expected {
            return None;
        }
        let at = self.queue.iter().position(|it| it.1)?;
        let (message, _) = self.queue.remove(at)?;
        self.queue_bytes -= size(&message);
        Some(self.steer(message))
    }

    fn steer(&self, message: Message) -> Command {
        Command::Steer(Submit {
            message: message.in_custom_mode(self.custom_mode.as_deref()),
            mode: self.mode,
            model: None,
        })
    }

    /// Returns true if an exchange runs, or will begin; its end has not been reported.
    pub fn is_busy(&self, exchanges: usize) -> bool {
        self.reported < self.expected.max(exchanges)
    }

    /// The turn of a message that waited, once nothing runs.
    pub fn next_turn(&mut self, exchanges: usize) -> Option<Command> {
        if self.is_busy(exchanges) {
            return None;
        }
        let (message, _) = self.queue.pop_front()?;
        self.queue_bytes -= size(&message);
        Some(self.submit(message, exchanges))
    }

    /// The turns of all exchanges have ended; the last one has cost so many dollars.
    pub fn end_turn(&mut self, exchanges: usize, dollars: f64) {
        self.reported = exchanges;
        self.spent += dollars;
        // What could not join the turn has one of its own.
        for it in &mut self.queue {
            it.1 = false;
        }
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
        self.queue_bytes = 0;
    }

    /// Returns true if nothing runs and nothing more will come.
    pub fn is_over(&self, exchanges: usize) -> bool {
        !self.hears() && self.queue.is_empty() && !self.is_busy(exchanges)
    }
}

/// Returns the approximate size of a message in bytes.
fn size(message: &Message) -> usize {
    fn of(value: &Value) -> usize {
        match value {
            Value::String(text) => text.len(),
            Value::Array(items) => items.iter().map(of).sum(),
            Value::Object(members) => members.values().map(of).sum(),
            Value::Null | Value::Bool(_) | Value::Number(_) => 8,
        }
    }
    message.content.len() + message.extra.values().map(of).sum::<usize>()
}

#[cfg(test)]
mod tests {
    use futures::FutureExt as _;
    use tokio::sync::mpsc::channel;

    use super::*;

    #[test]
    fn a_message_that_comes_before_its_exchange_joins_it_once_it_is_there() {
        let (_sender, receiver) = channel(1);
        let mut dialogue = Dialogue::new(Some(receiver), (Mode::Agent, None), 0, None);
        let say = |dialogue: &mut Dialogue, text: &str, waits, exchanges| {
            dialogue.message(Message::user(text), waits, true, exchanges)
        };
        let text = |command: Option<Command>| match command {
            Some(Command::Steer(it)) => ("steer", it.message.content),
            Some(Command::Submit(it)) => ("submit", it.message.content),
            other => panic!("{other:?}"),
        };
        assert_eq!(text(say(&mut dialogue, "one", false, 0)), ("submit", "one".to_owned()));
        for (words, waits) in [("join", false), ("later", true), ("behind it", false)] {
            assert_eq!(say(&mut dialogue, words, waits, 0), None);
        }
        assert_eq!(dialogue.next_joining(0), None, "there is nothing to join yet");
        assert_eq!(text(dialogue.next_joining(1)), ("steer", "join".to_owned()));
        assert_eq!(text(dialogue.next_joining(1)), ("steer", "behind it".to_owned()));
        assert_eq!(dialogue.next_joining(1), None, "the other one waits for its own turn");
        dialogue.end_turn(1, 0.0);
        assert_eq!(text(dialogue.next_turn(1)), ("submit", "later".to_owned()));
        assert_eq!(say(&mut dialogue, "too late", false, 1), None);
        dialogue.end_turn(2, 0.0);
        assert_eq!(dialogue.next_joining(2), None, "no turn runs");
        assert_eq!(text(dialogue.next_turn(2)), ("submit", "too late".to_owned()));
        assert_eq!(dialogue.queue_bytes, 0);
    }

    #[test]
    fn while_too_many_messages_wait_no_more_is_read_but_an_answer() {
        for (text, most) in [("next".to_owned(), MOST_WAITING), ("x".repeat(12 << 20), 3)] {
            let (sender, receiver) = channel(1);
            let mut dialogue = Dialogue::new(Some(receiver), (Mode::Agent, None), 0, None);
            dialogue.submit(Message::user("first"), 0);
            let mut waiting = 0;
            // Somebody writes whenever there is room.
            loop {
                let message = Message::user(text.clone());
                sender.try_send(Input::Message { message, waits: true }).ok();
                let Some(read) = dialogue.next(false).now_or_never() else {
                    break;
                };
                let Some(Input::Message { message, waits }) = read else {
                    panic!("{read:?}")
                };
                assert_eq!(dialogue.message(message, waits, true, 1), None);
                waiting += 1;
                assert!(waiting <= most, "{waiting}");
            }
            assert_eq!(waiting, most);
            // Who is asked must be heard.
            assert!(dialogue.next(true).now_or_never().is_some());
            sender.try_send(Input::Cancel).expect("there is room");
            assert!(dialogue.next(false).now_or_never().is_none());
            // A turn has ended, and the next one takes a message.
            dialogue.end_turn(1, 0.0);
            assert!(dialogue.next_turn(1).is_some());
            assert_eq!(dialogue.next(false).now_or_never(), Some(Some(Input::Cancel)));
            dialogue.clear();
            assert_eq!(dialogue.queue_bytes, 0);
        }
    }
}
