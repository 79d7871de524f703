//! Output streams: encodes a response's events for one reader and feeds them to its socket.
//!
//! Each reader follows the response at its own pace. Unsent events wait in the response's log, which all readers share;
//! a reader itself buffers at most two chunks. A longer event waits in a file.

use std::{
    collections::HashMap,
    num::NonZeroUsize,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use bytes::Bytes;
use hyper::body::Frame;
use serde_json::Value;
use tokio::{
    sync::OwnedSemaphorePermit,
    time::{Instant, sleep_until},
};

use super::{
    chunk_channel::{self, ChunkReceiver, ChunkSender},
    turn::{ReaderGuard, ServedResponse},
};
use crate::{
    os::long_text::LongText,
    protocol::{
        Dialect, DocumentId, Entry, Event, Kind, Position,
        codec::{END, PING, frame},
    },
};

/// Approximate size of the chunks given to the HTTP library.
pub const CHUNK_BYTES: usize = 16 << 10;

/// Events taken from the log at a time, which a slow reader holds in memory.
pub const EVENTS_PER_BATCH: NonZeroUsize = NonZeroUsize::new(32).expect("not zero");

/// Encodes a response for the wire: as the protocol's stream, or as OpenAI's chunks.
pub trait StreamEncoder: Send {
    /// Returns the text for an entry; often none.
    fn write(&mut self, entry: &Entry) -> Encoded;

    /// Returns the end of the stream. Nothing is written after it.
    fn finish(&mut self) -> Encoded;
}

/// Text for the wire.
#[derive(Debug, Default)]
pub struct Encoded {
    text: String,
    /// Text behind it that is too long for memory; empty most of the time.
    rest: LongText,
}

impl From<String> for Encoded {
    fn from(text: String) -> Self {
        Self {
            text,
            rest: LongText::new(),
        }
    }
}

impl Encoded {
    pub fn push_str(&mut self, more: &str) {
        if self.rest.is_empty() {
            self.text.push_str(more);
        } else {
            self.rest.push_str(more);
        }
    }

    /// Appends text that may be in a file.
    pub fn push_long(&mut self, more: &LongText) {
        if more.is_stored() {
            more.parts().for_each(|it| self.rest.push_str(it));
        } else {
            self.push_str(more);
        }
    }
}

/// Encodes the documents protocol. The `id:` of an event is its position in the response, so that readers can resume.
///
/// The log's events are strict already, so each is encoded on its own. Only the steps of an ended call, whose events
/// may be gone from the log, are made anew from its end event.
pub struct DocumentEncoder {
    dialect: Dialect,
    /// Steps of each open call that the reader has been sent.
    calls: HashMap<DocumentId, Call>,
    /// True after the end of the response has been written.
    is_done: bool,
}

/// Steps of a tool call that have been sent.
#[derive(Clone, Copy, Default)]
struct Call {
    name: bool,
    arguments: bool,
    result: bool,
}

impl DocumentEncoder {
    pub fn new(dialect: Dialect) -> Self {
        Self {
            dialect,
            calls: HashMap::new(),
            is_done: false,
        }
    }

    /// Creates an encoder in the state after everything up to `since` was written.
    pub fn behind(served: &ServedResponse, dialect: Dialect, since: Position) -> Self {
        let mut encoder = Self::new(dialect);
        for entry in served.entries_until(since) {
            encoder.follow(&entry.event);
        }
        encoder.is_done = false;
        encoder
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
            _ => {}
        }
    }

    /// Encodes the steps of a call that its end event contains and the reader has not been sent.
    ///
    /// They carry no `id:`, so a reader that resumes before the end gets all of them again.
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

impl StreamEncoder for DocumentEncoder {
    fn write(&mut self, entry: &Entry) -> Encoded {
        let mut out = self.missing(&entry.event);
        out.push_str(&format!("id: {}\n", entry.position.0));
        out.push_str(&frame(self.dialect, &entry.event));
        self.follow(&entry.event);
        out.into()
    }

    fn finish(&mut self) -> Encoded {
        // The last event ends the stream. Of dialect B's two end marks a resumed reader may have missed the second.
        match self.dialect {
            Dialect::Data if !self.is_done => END.to_owned().into(),
            Dialect::Data | Dialect::Named => Encoded::default(),
        }
    }
}

/// A reader of a response's stream.
pub struct Reader {
    pub served: Arc<ServedResponse>,
    pub guard: ReaderGuard,
    pub encoder: Box<dyn StreamEncoder>,
    /// Last position that the reader has; events after it are sent.
    pub since: Position,
    /// Permit of [`super::state::ServerState::acquire_stream`], held until the stream ends.
    pub permit: Arc<OwnedSemaphorePermit>,
    /// Silence after which a ping is sent.
    pub ping: Duration,
}

impl Reader {
    /// Starts a task that writes the stream, and returns its body. Dropping the body deregisters the reader.
    pub fn body(self) -> StreamBody {
        StreamBody::of(|out| self.write(out))
    }

    async fn write(mut self, out: ChunkSender) {
        let mut follower = self.served.follow(self.since);
        self.guard.reads();
        let mut batch = Vec::new();
        let mut next_ping = Instant::now() + self.ping;
        loop {
            let mut text = String::new();
            let mut is_over = false;
            tokio::select! {
                biased;
                () = out.closed() => break,
                more = follower.next_some(EVENTS_PER_BATCH, &mut batch) => {
                    for entry in batch.drain(..) {
                        let new = self.encoder.write(&entry);
                        // It may be long, and the reader may stall.
                        drop(entry);
                        text.push_str(&new.text);
                        let is_full = text.len() >= CHUNK_BYTES || !new.rest.is_empty();
                        if is_full && !Box::pin(send_both(&out, std::mem::take(&mut text), new.rest)).await {
                            return;
                        }
                    }
                    if !more {
                        let end = self.encoder.finish();
                        text.push_str(&end.text);
                        is_over = true;
                        let is_long = !end.rest.is_empty();
                        if is_long && !Box::pin(send_both(&out, std::mem::take(&mut text), end.rest)).await {
                            return;
                        }
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
        drop((self.guard, self.permit));
    }
}

/// Sends `text` in chunks. Returns false if the reader has gone.
pub async fn send(out: &ChunkSender, text: String) -> bool {
    if text.is_empty() {
        return true;
    }
    if text.len() <= CHUNK_BYTES {
        let has_room = out.has_room().await;
        if has_room {
            out.put(text.into());
        }
        return has_room;
    }
    // A reader that stalls here must not hold it in memory.
    Box::pin(send_long(out, LongText::from(text))).await
}

/// Sends a text and what follows it. Rare and large, so its future should be in a box.
async fn send_both(out: &ChunkSender, text: String, rest: LongText) -> bool {
    send(out, text).await && send_long(out, rest).await
}

async fn send_long(out: &ChunkSender, text: LongText) -> bool {
    let mut sent = 0;
    while sent < text.len() {
        if !out.has_room().await {
            return false;
        }
        let chunk = text.bytes_from(sent, CHUNK_BYTES);
        sent += chunk.len();
        out.put(Bytes::copy_from_slice(chunk));
    }
    true
}

/// HTTP body of a stream: the chunks from its writer task.
pub struct StreamBody(ChunkReceiver);

impl StreamBody {
    /// Starts a task that writes the body. Its channel closes when the body is dropped.
    pub fn of<F: Future<Output = ()> + Send + 'static>(write: impl FnOnce(ChunkSender) -> F) -> Self {
        let (out, pieces) = chunk_channel::channel();
        tokio::spawn(write(out));
        Self(pieces)
    }
}

impl hyper::body::Body for StreamBody {
    type Data = Bytes;
    type Error = std::convert::Infallible;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        self.0.poll_recv(cx).map(|it| it.map(|it| Ok(Frame::data(it))))
    }
}
