//! A channel for what comes seldom. Tokio makes room for 32 values as soon as a channel is there, and nearly a KiB for the
//! channel itself: much for each of several in every conversation of a gateway, most of which never hear one.

use std::{
    collections::VecDeque,
    future::poll_fn,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::{Context, Poll, Waker},
};

/// Sending half.
#[derive(Debug)]
pub struct Outbox<T>(Shared<T>);

/// Receiving half.
#[derive(Debug)]
pub struct Inbox<T>(Shared<T>);

type Shared<T> = Arc<Mutex<Queue<T>>>;

/// In boxes: room for the first values is small, and stays.
#[derive(Debug)]
struct Queue<T> {
    values: VecDeque<Box<T>>,
    outboxes: usize,
    /// The receiver has gone.
    is_closed: bool,
    reader: Option<Waker>,
}

/// The receiver has gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gone;

/// Creates a channel without bound: people are slower than the producer, and a bound would make `send` wait.
pub fn channel<T>() -> (Outbox<T>, Inbox<T>) {
    let shared = Arc::new(Mutex::new(Queue {
        values: VecDeque::new(),
        outboxes: 1,
        is_closed: false,
        reader: None,
    }));
    (Outbox(Arc::clone(&shared)), Inbox(shared))
}

fn lock<T>(shared: &Shared<T>) -> MutexGuard<'_, Queue<T>> {
    // Nothing that runs under the lock leaves it half done.
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

impl<T> Outbox<T> {
    pub fn send(&self, it: T) -> Result<(), Gone> {
        let mut queue = lock(&self.0);
        if queue.is_closed {
            return Err(Gone);
        }
        queue.values.push_back(Box::new(it));
        let reader = queue.reader.take();
        drop(queue);
        if let Some(reader) = reader {
            reader.wake();
        }
        Ok(())
    }
}

impl<T> Clone for Outbox<T> {
    fn clone(&self) -> Self {
        lock(&self.0).outboxes += 1;
        Self(Arc::clone(&self.0))
    }
}

impl<T> Drop for Outbox<T> {
    fn drop(&mut self) {
        let mut queue = lock(&self.0);
        queue.outboxes -= 1;
        if queue.outboxes == 0
            && let Some(reader) = queue.reader.take()
        {
            drop(queue);
            reader.wake();
        }
    }
}

impl<T> Inbox<T> {
    /// `None` when all senders have gone and everything was read. Safe to drop at any await: nothing is lost.
    pub async fn recv(&mut self) -> Option<T> {
        poll_fn(|cx| self.poll_recv(cx)).await
    }

    /// The same for a task that polls.
    pub fn poll_recv(&mut self, cx: &mut Context<'_>) -> Poll<Option<T>> {
        let mut queue = lock(&self.0);
        if let Some(it) = queue.values.pop_front() {
            return Poll::Ready(Some(*it));
        }
        if queue.outboxes == 0 {
            return Poll::Ready(None);
        }
        queue.reader = Some(cx.waker().clone());
        Poll::Pending
    }

    /// Returns what waits to be read, without waiting.
    pub fn try_recv(&mut self) -> Option<T> {
        lock(&self.0).values.pop_front().map(|it| *it)
    }

    /// Returns true if nothing waits to be read.
    pub fn is_empty(&self) -> bool {
        lock(&self.0).values.is_empty()
    }
}

impl<T> Drop for Inbox<T> {
    fn drop(&mut self) {
        let mut queue = lock(&self.0);
        queue.is_closed = true;
        let values = std::mem::take(&mut queue.values);
        drop(queue);
        // They may have senders of their own.
        drop(values);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn what_was_sent_is_read_in_order_also_after_the_senders_have_gone() {
        let (outbox, mut inbox) = channel();
        let other = outbox.clone();
        outbox.send(1).expect("somebody reads");
        drop(outbox);
        other.send(2).expect("somebody reads");
        assert!(!inbox.is_empty());
        assert_eq!(
            (inbox.recv().await, inbox.try_recv(), inbox.try_recv()),
            (Some(1), Some(2), None)
        );
        let mut waiting = Box::pin(inbox.recv());
        assert!(futures::poll!(&mut waiting).is_pending(), "one sender is left");
        drop(other);
        assert_eq!(waiting.await, None);
    }

    #[tokio::test]
    async fn a_reader_that_waits_is_woken() {
        let (outbox, mut inbox) = channel();
        let reading = tokio::spawn(async move { (inbox.recv().await, inbox.recv().await) });
        tokio::task::yield_now().await;
        outbox.send("a").expect("somebody reads");
        tokio::task::yield_now().await;
        drop(outbox);
        assert_eq!(reading.await.expect("it ends"), (Some("a"), None));
    }

    #[test]
    fn a_sender_hears_that_the_receiver_has_gone() {
        let (outbox, inbox) = channel();
        drop(inbox);
        assert_eq!(outbox.send(1), Err(Gone));
    }
}
