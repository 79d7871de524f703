//! A stream as it goes out: what one reader has had of a response, and what its socket takes.
//!
//! The reader follows the response at its own pace. What the socket does not take waits in the response's log, which all
//! readers share; a reader has two pieces of its own and its place.

use std::{
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use bytes::Bytes;
use hyper::body::Frame;
use tokio::{
    sync::{OwnedSemaphorePermit, mpsc},
    time::{Instant, sleep_until},
};

use super::turn::{Seat, Turning};
use crate::protocol::{
    Dialect, Entry, Position,
    codec::{Encoder, Mark, PING},
};

/// A stream goes to the socket in pieces of about this size.
const PIECE_BYTES: usize = 16 << 10;

/// Pieces that wait for the socket; with those that the HTTP library holds, a reader has no more than 64 KiB.
const PIECES: usize = 1;

/// What writes a response down: the protocol's own stream, or another server's.
pub trait Pen: Send {
    /// The bytes for an event, often none.
    fn write(&mut self, entry: &Entry) -> String;

    /// There is nothing more.
    fn finish(&mut self) -> String;
}

/// The protocol's stream, for a reader that may come back.
pub struct Documents {
    encoder: Encoder,
    /// Parts of the next event that the reader has had.
    parts: usize,
}

impl Documents {
    pub fn new(turning: &Turning, dialect: Dialect) -> Self {
        Self {
            encoder: Encoder::new(dialect, turning.identity.clone()),
            parts: 0,
        }
    }

    /// As if everything up to `mark` had been written.
    pub fn behind(turning: &Turning, dialect: Dialect, mark: Mark) -> Self {
        let mut pen = Self::new(turning, dialect);
        for entry in turning.said_until(Position(mark.number)) {
            pen.encoder.skip(&entry.event);
        }
        pen.encoder.resume();
        pen.parts = mark.part;
        pen
    }
}

impl Pen for Documents {
    fn write(&mut self, entry: &Entry) -> String {
        let parts = std::mem::take(&mut self.parts);
        self.encoder.push_rest(&entry.event, entry.position.0, parts)
    }

    fn finish(&mut self) -> String {
        // Whatever ends a response says so itself.
        if self.encoder.is_done() {
            String::new()
        } else {
            self.encoder.finish()
        }
    }
}

/// What a reader holds while it reads.
pub struct Reader {
    pub turning: Arc<Turning>,
    pub seat: Seat,
    pub pen: Box<dyn Pen>,
    /// It has had this much.
    pub since: Position,
    /// The place among all streams.
    pub permit: Arc<OwnedSemaphorePermit>,
    pub ping: Duration,
}

impl Reader {
    /// The body of the stream; dropping it is leaving.
    pub fn body(self) -> Pieces {
        let (out, pieces) = mpsc::channel(PIECES);
        tokio::spawn(self.write(out));
        Pieces(pieces)
    }

    async fn write(mut self, out: mpsc::Sender<Bytes>) {
        let mut follower = self.turning.follow(self.since);
        let mut batch = Vec::new();
        let mut next_ping = Instant::now() + self.ping;
        loop {
            let mut text = String::new();
            let mut is_over = false;
            tokio::select! {
                biased;
                () = out.closed() => break,
                more = follower.next(&mut batch) => {
                    for entry in batch.drain(..) {
                        text.push_str(&self.pen.write(&entry));
                        if text.len() >= PIECE_BYTES && !send(&out, std::mem::take(&mut text)).await {
                            return;
                        }
                    }
                    if !more {
                        text.push_str(&self.pen.finish());
                        is_over = true;
                    }
                }
                () = sleep_until(next_ping) => text.push_str(PING),
            }
            if !text.is_empty() {
                next_ping = Instant::now() + self.ping;
                if !send(&out, text).await {
                    break;
                }
            }
            if is_over {
                break;
            }
        }
        drop((self.seat, self.permit));
    }
}

/// `false`: the reader has gone.
async fn send(out: &mpsc::Sender<Bytes>, text: String) -> bool {
    let mut bytes = Bytes::from(text);
    while !bytes.is_empty() {
        let piece = bytes.split_to(bytes.len().min(PIECE_BYTES));
        if out.send(piece).await.is_err() {
            return false;
        }
    }
    true
}

/// The body of a stream: what the other end of the channel writes.
pub struct Pieces(mpsc::Receiver<Bytes>);

impl hyper::body::Body for Pieces {
    type Data = Bytes;
    type Error = std::convert::Infallible;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        self.0.poll_recv(cx).map(|it| it.map(|it| Ok(Frame::data(it))))
    }
}
