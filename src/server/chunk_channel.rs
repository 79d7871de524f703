//! A channel with room for one chunk of a body. Tokio's makes room for 32 as soon as it is there, and there is one for each
//! stream.

use std::{
    future::poll_fn,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::{Context, Poll, Waker},
};

use bytes::Bytes;

/// Sending half. Its methods are for one task at a time.
pub struct ChunkSender(Shared);

/// Receiving half.
pub struct ChunkReceiver(Shared);

#[derive(Clone, Default)]
struct Shared(Arc<Mutex<Slot>>);

#[derive(Default)]
struct Slot {
    chunk: Option<Bytes>,
    /// One half has gone.
    is_closed: bool,
    sender: Option<Waker>,
    receiver: Option<Waker>,
}

pub fn channel() -> (ChunkSender, ChunkReceiver) {
    let shared = Shared::default();
    (ChunkSender(shared.clone()), ChunkReceiver(shared))
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Slot> {
        // Nothing that runs under the lock leaves it half done.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn wake(waker: Option<Waker>) {
    if let Some(waker) = waker {
        waker.wake();
    }
}

impl ChunkSender {
    /// Waits until there is room. Returns false if the receiver has gone.
    pub async fn has_room(&self) -> bool {
        poll_fn(|cx| {
            let mut slot = self.0.lock();
            if slot.is_closed || slot.chunk.is_none() {
                return Poll::Ready(!slot.is_closed);
            }
            slot.sender = Some(cx.waker().clone());
            Poll::Pending
        })
        .await
    }

    /// Sends a chunk. It replaces one that is still there, so [`has_room`](Self::has_room) comes first.
    pub fn put(&self, chunk: Bytes) {
        let mut slot = self.0.lock();
        if slot.is_closed {
            return;
        }
        slot.chunk = Some(chunk);
        let receiver = slot.receiver.take();
        drop(slot);
        wake(receiver);
    }

    /// Waits until the receiver has gone.
    pub async fn closed(&self) {
        poll_fn(|cx| {
            let mut slot = self.0.lock();
            if slot.is_closed {
                return Poll::Ready(());
            }
            slot.sender = Some(cx.waker().clone());
            Poll::Pending
        })
        .await;
    }
}

impl ChunkReceiver {
    /// Takes the next chunk; `None` when the sender has gone and all was taken.
    pub fn poll_recv(&mut self, cx: &mut Context<'_>) -> Poll<Option<Bytes>> {
        let mut slot = self.0.lock();
        if let Some(chunk) = slot.chunk.take() {
            let sender = slot.sender.take();
            drop(slot);
            wake(sender);
            return Poll::Ready(Some(chunk));
        }
        if slot.is_closed {
            return Poll::Ready(None);
        }
        slot.receiver = Some(cx.waker().clone());
        Poll::Pending
    }
}

impl Drop for ChunkSender {
    fn drop(&mut self) {
        let mut slot = self.0.lock();
        slot.is_closed = true;
        let receiver = slot.receiver.take();
        drop(slot);
        wake(receiver);
    }
}

impl Drop for ChunkReceiver {
    fn drop(&mut self) {
        let mut slot = self.0.lock();
        slot.is_closed = true;
        let (chunk, sender) = (slot.chunk.take(), slot.sender.take());
        drop(slot);
        drop(chunk);
        wake(sender);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn next(receiver: &mut ChunkReceiver) -> Option<Bytes> {
        poll_fn(|cx| receiver.poll_recv(cx)).await
    }

    #[tokio::test]
    async fn chunks_come_in_order_and_the_last_one_after_the_sender_has_gone() {
        let (sender, mut receiver) = channel();
        let sending = tokio::spawn(async move {
            for at in 0..100_u8 {
                assert!(sender.has_room().await);
                sender.put(Bytes::copy_from_slice(&[at]));
            }
        });
        for at in 0..100_u8 {
            assert_eq!(next(&mut receiver).await.as_deref(), Some(&[at][..]));
        }
        assert_eq!(next(&mut receiver).await, None);
        sending.await.expect("it ends");
    }

    #[tokio::test]
    async fn there_is_room_for_one_chunk() {
        let (sender, mut receiver) = channel();
        assert!(sender.has_room().await);
        sender.put(Bytes::from_static(b"a"));
        let mut waiting = Box::pin(sender.has_room());
        assert!(futures::poll!(&mut waiting).is_pending());
        assert!(next(&mut receiver).await.is_some());
        assert!(waiting.await);
    }

    #[tokio::test]
    async fn a_sender_hears_that_the_receiver_has_gone_wherever_it_waits() {
        let (sender, receiver) = channel();
        sender.put(Bytes::from_static(b"a"));
        let waiting = tokio::spawn(async move {
            let had_room = sender.has_room().await;
            sender.closed().await;
            had_room
        });
        tokio::task::yield_now().await;
        drop(receiver);
        assert!(!waiting.await.expect("it ends"));
    }
}
