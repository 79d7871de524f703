//! A channel for what is large and comes seldom. Tokio makes room for 32 values as soon as a channel is there: for commands
//! that would be 9 KiB for each conversation of a gateway, most of which never hear one.

use tokio::sync::mpsc;

/// Sending half.
#[derive(Debug)]
pub struct Outbox<T>(mpsc::UnboundedSender<Box<T>>);

/// Receiving half.
#[derive(Debug)]
pub struct Inbox<T>(mpsc::UnboundedReceiver<Box<T>>);

/// The receiver has gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gone;

/// Creates a channel without bound: people are slower than the producer, and a bound would make `send` wait.
pub fn channel<T>() -> (Outbox<T>, Inbox<T>) {
    let (outbox, inbox) = mpsc::unbounded_channel();
    (Outbox(outbox), Inbox(inbox))
}

impl<T> Outbox<T> {
    pub fn send(&self, it: T) -> Result<(), Gone> {
        self.0.send(Box::new(it)).map_err(|_| Gone)
    }
}

impl<T> Inbox<T> {
    /// `None` when all senders have gone and everything was read. Safe to drop at any await: nothing is lost.
    pub async fn recv(&mut self) -> Option<T> {
        self.0.recv().await.map(|it| *it)
    }

    /// Returns true if nothing waits to be read.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}
