//! A stream as it goes out: what one reader has had of a response, and what its socket takes.
//!
//! The reader follows the response at its own pace. What the socket does not take waits in the response's log, which all
//! readers share; a reader has two pieces of its own and its place.

use std::{
    collections::HashMap,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use bytes::Bytes;
use hyper::body::Frame;
use serde_json::Value;
use tokio::{
    sync::{OwnedSemaphorePermit, mpsc},
    time::{Instant, sleep_until},
};

use super::turn::{Seat, Turning};
use crate::protocol::{
    Dialect, DocumentId, Entry, Event, Kind, Position,
    codec::{END, PING, frame},
};

/// A stream goes to the socket in pieces of about this size.
const PIECE_BYTES: usize = 16 << 10;

/// Pieces that wait for the socket; with those that the HTTP library holds, a reader has no more than 64 KiB.
const PIECES: usize = 1;

/// So many events are in the hands of a reader that may be held up.
const AT_ONCE: usize = 32;

/// What writes a response down: the protocol's own stream, or another server's.
pub trait Pen: Send {
    /// The bytes for an event, often none.
    fn write(&mut self, entry: &Entry) -> String;

    /// There is nothing more.
    fn finish(&mut self) -> String;
}

/// The protocol's stream, for a reader that may come back: the id of an event is its place in the response.
///
/// What is in the response's log is strict already, so it is put into words one by one. Only of calls that have ended the
/// events in between are said anew where they are gone.
pub struct Documents {
    dialect: Dialect,
    /// How much of each open call the reader has had.
    calls: HashMap<DocumentId, Call>,
    /// The end was written here.
    is_done: bool,
}

/// The steps of a call that were told.
#[derive(Clone, Copy, Default)]
struct Call {
    name: bool,
    arguments: bool,
    result: bool,
}

impl Documents {
    pub fn new(dialect: Dialect) -> Self {
        Self {
            dialect,
            calls: HashMap::new(),
            is_done: false,
        }
    }

    /// As if everything up to `since` had been written.
    pub fn behind(turning: &Turning, dialect: Dialect, since: Position) -> Self {
        let mut pen = Self::new(dialect);
        for entry in turning.said_until(since) {
            pen.follow(&entry.event);
        }
        pen.is_done = false;
        pen
    }

    fn follow(&mut self, event: &Event) {
        let mut told = |document: &DocumentId, tell: fn(&mut Call)| {
            if let Some(call) = self.calls.get_mut(document) {
                tell(call);
            }
        };
        match event {
            Event::DocumentStart(start) if start.kind == Kind::ToolCall => {
                self.calls.insert(start.id.clone(), Call::default());
            }
            Event::ToolCallStart { document, .. } => told(document, |it| it.name = true),
            Event::ToolCallArguments { document, .. } => told(document, |it| it.arguments = true),
            Event::ToolResult { document, .. } => told(document, |it| it.result = true),
            Event::DocumentEnd { document, .. } => {
                self.calls.remove(document);
            }
            Event::Done(_) => self.is_done = true,
            Event::UserMessage(_)
            | Event::ResponseStart(_)
            | Event::DocumentStart(_)
            | Event::ContentDelta { .. }
            | Event::MetadataDelta { .. }
            | Event::ThinkingDelta { .. }
            | Event::DocumentUpdate { .. }
            | Event::Notice(_)
            | Event::Progress(_)
            | Event::Title(_)
            | Event::Branch(_)
            | Event::Unknown { .. } => {}
        }
    }

    /// The steps of a call that its end takes along. They have no ids of their own: whoever comes back to them gets all anew.
    fn missing(&self, event: &Event) -> String {
        let Event::DocumentEnd { document, metadata, .. } = event else {
            return String::new();
        };
        let Some(call) = self.calls.get(document).filter(|it| !it.result) else {
            return String::new();
        };
        let text = |name: &str| metadata.get(name).and_then(Value::as_str).map(str::to_owned);
        let document = || document.clone();
        let name = (!call.name).then(|| Event::ToolCallStart {
            document: document(),
            tool_name: text("toolName").unwrap_or_else(|| "tool".to_owned()),
            tool_call_id: text("toolCallId"),
        });
        let arguments = metadata.get("arguments").filter(|_| !call.arguments);
        let arguments = arguments.map(|it| Event::ToolCallArguments {
            document: document(),
            arguments: it.clone(),
        });
        let result = metadata.get("result").map(|it| Event::ToolResult {
            document: document(),
            result: it.clone(),
            duration_ms: metadata.get("duration_ms").and_then(Value::as_u64),
        });
        let events = [name, arguments, result].into_iter().flatten();
        events.map(|it| frame(self.dialect, &it)).collect()
    }
}

impl Pen for Documents {
    fn write(&mut self, entry: &Entry) -> String {
        let mut out = self.missing(&entry.event);
        out.push_str(&format!("id: {}\n", entry.position.0));
        out.push_str(&frame(self.dialect, &entry.event));
        self.follow(&entry.event);
        out
    }

    fn finish(&mut self) -> String {
        // Whatever ends a response says so itself; of its two marks in dialect B the last one may have been missed.
        match self.dialect {
            Dialect::Data if !self.is_done => END.to_owned(),
            Dialect::Data | Dialect::Named => String::new(),
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
        self.seat.reads();
        let mut batch = Vec::new();
        let mut next_ping = Instant::now() + self.ping;
        loop {
            let mut text = String::new();
            let mut is_over = false;
            tokio::select! {
                biased;
                () = out.closed() => break,
                more = follower.next_some(AT_ONCE, &mut batch) => {
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
