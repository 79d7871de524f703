//! One turn as it goes out: the events of a link's log from the message on, as a stream or as one object.
//!
//! Nothing is kept for a reader: it follows the log at its own pace, and what its socket does not take waits there.
//! Whoever goes away takes the turn along.

use std::{
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use bytes::Bytes;
use hyper::body::Frame;
use serde_json::{Map, Value};
use tokio::{
    sync::{OwnedSemaphorePermit, mpsc, watch},
    time::{Instant, sleep_until},
};

use super::live::{Listed, Live};
use crate::{
    journal::{Cut, Follower, closing},
    link::Link,
    protocol::{
        Command, Document, DocumentId, DocumentStart, Done, Entry, Event, FinishReason, Kind, Position, Response,
        ResponseStart, Severity, Status, Submit, Turn, View,
        codec::{Encoder, Identity, PING},
    },
};

/// A stream goes to the socket in pieces of about this size.
const PIECE_BYTES: usize = 16 << 10;

/// Pieces that wait for the socket; with those that the HTTP library holds, a reader has no more than 64 KiB.
pub const PIECES: usize = 1;

/// A running turn. Dropping it stops the turn.
pub struct Answer {
    link: Arc<dyn Link>,
    follower: Follower,
    /// Known once the message is in the log.
    turn: Option<Turn>,
    /// What has gone out so far.
    response: Response,
    identity: Identity,
    since: Instant,
    hears_answers: bool,
    listed: Option<Listed>,
    /// The place among all answers.
    _permit: OwnedSemaphorePermit,
}

impl Answer {
    /// Sends the message off. `hears_answers`: the client can answer questions while the turn runs.
    pub fn start(
        link: Arc<dyn Link>,
        submit: Submit,
        identity: Identity,
        hears_answers: bool,
        live: &Arc<Live>,
        permit: OwnedSemaphorePermit,
    ) -> Self {
        let since = link.log().last();
        let follower = link.log().follow_closely(since);
        let listed = hears_answers.then(|| live.list(identity.id.clone(), Arc::clone(&link), since));
        link.send(Command::Submit(submit));
        Self {
            link,
            follower,
            turn: None,
            response: Response::default(),
            identity,
            since: Instant::now(),
            hears_answers,
            listed,
            _permit: permit,
        }
    }

    pub fn identity(&self) -> &Identity {
        &self.identity
    }

    /// The whole response, once it has ended. A question that nobody can answer meanwhile ends it.
    pub async fn whole(mut self, mut stop: watch::Receiver<bool>) -> (Response, Identity) {
        let mut batch = Vec::new();
        while self.response.is_running() {
            tokio::select! {
                biased;
                () = stopped(&mut stop) => {
                    self.end_all(&shut_down(&self.response, self.took_ms()));
                }
                more = self.follower.next(&mut batch) => {
                    for entry in batch.drain(..) {
                        self.take(&entry);
                    }
                    if !more {
                        self.end_all(&closing(&self.response, Cut::Interrupted));
                    } else if self.response.documents.iter().any(waits) {
                        self.end_all(&await_input(&self.response, self.took_ms()));
                    }
                }
            }
        }
        self.stop();
        (std::mem::take(&mut self.response), self.identity.clone())
    }

    /// Writes the response as events until it has ended or the reader has gone.
    pub async fn stream(
        mut self,
        mut encoder: Encoder,
        out: mpsc::Sender<Bytes>,
        mut stop: watch::Receiver<bool>,
        ping: Duration,
    ) {
        let mut batch = Vec::new();
        let mut next_ping = Instant::now() + ping;
        while !encoder.is_done() {
            let mut text = String::new();
            tokio::select! {
                biased;
                () = out.closed() => return,
                () = stopped(&mut stop) => {
                    let events = shut_down(&self.response, self.took_ms());
                    self.end_all(&events);
                    self.stop();
                    text.extend(events.iter().map(|it| encoder.push(it)));
                }
                more = self.follower.next(&mut batch) => {
                    for entry in batch.drain(..) {
                        for event in self.take(&entry) {
                            text.push_str(&encoder.push(&event));
                        }
                        if text.len() >= PIECE_BYTES && !send(&out, std::mem::take(&mut text)).await {
                            return;
                        }
                    }
                    if !more {
                        text.push_str(&encoder.finish());
                    }
                }
                () = sleep_until(next_ping) => text.push_str(PING),
            }
            if !text.is_empty() {
                next_ping = Instant::now() + ping;
                if !send(&out, text).await {
                    return;
                }
            }
        }
    }

    /// The entry as this response says it: nothing, mostly one event, several when a link says that it cannot.
    fn take(&mut self, entry: &Entry) -> Vec<Event> {
        if !self.response.is_running() {
            return Vec::new();
        }
        let Some(turn) = self.turn else {
            self.turn = matches!(entry.event, Event::UserMessage(_)).then_some(entry.turn);
            let events = match &entry.event {
                Event::Notice(notice) if notice.severity == Severity::Error => {
                    failed(&self.response, "LLM_UNAVAILABLE", &notice.message, self.took_ms())
                }
                _ => Vec::new(),
            };
            self.end_all(&events);
            return events;
        };
        if entry.turn != turn {
            return Vec::new();
        }
        let mut event = match &entry.event {
            Event::UserMessage(_) | Event::Notice(_) | Event::Progress(_) | Event::Title(_) => return Vec::new(),
            event => event.clone(),
        };
        match &mut event {
            Event::ResponseStart(start) => self.introduce(start),
            Event::Done(done) if done.id.is_some() => done.id = Some(self.identity.id.clone()),
            _ => {}
        }
        self.response.apply(&event, entry.at_ms);
        vec![event]
    }

    /// The response goes by our name: that of a recording comes again and again. What it can do is what we can.
    fn introduce(&self, start: &mut ResponseStart) {
        start.id = Some(self.identity.id.clone());
        let asks = self.link.about().is_replay || start.capabilities.iter().any(|it| it == "live_input");
        start.capabilities.clear();
        if self.hears_answers {
            start.capabilities.push("cancel".to_owned());
            if asks {
                start.capabilities.push("live_input".to_owned());
            }
        }
    }

    fn end_all(&mut self, events: &[Event]) {
        for event in events {
            self.response.apply(event, 0);
        }
    }

    fn took_ms(&self) -> u64 {
        u64::try_from(self.since.elapsed().as_millis()).unwrap_or(u64::MAX)
    }

    /// Nobody can reach the turn any more.
    fn stop(&mut self) {
        self.listed = None;
        self.link.send(Command::Cancel);
    }
}

impl Drop for Answer {
    fn drop(&mut self) {
        if self.response.is_running() {
            self.stop();
        }
    }
}

async fn stopped(stop: &mut watch::Receiver<bool>) {
    // A server that is gone has stopped as well.
    let _ = stop.wait_for(|it| *it).await;
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
pub struct Pieces(pub mpsc::Receiver<Bytes>);

impl hyper::body::Body for Pieces {
    type Data = Bytes;
    type Error = std::convert::Infallible;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        self.0.poll_recv(cx).map(|it| it.map(|it| Ok(Frame::data(it))))
    }
}

/// Whether the document is a question that stands open.
pub fn waits(document: &Document) -> bool {
    match document.view() {
        View::Clarification(it) => document.is_open() && it.outcome.is_none() && !it.questions.is_empty(),
        View::Text(_)
        | View::CodeReference(_)
        | View::CodeBlock(_)
        | View::FileEdit(_)
        | View::ToolCall(_)
        | View::TerminalCommand(_)
        | View::Plan(_)
        | View::Error(_)
        | View::TodoUpdate(_)
        | View::Unknown(_) => false,
    }
}

/// How a response ends whose question travels to the next message.
fn await_input(response: &Response, took_ms: u64) -> Vec<Event> {
    let waiting: Vec<_> = response.documents.iter().filter(|it| waits(it)).collect();
    let ended = waiting.iter().map(|it| Event::DocumentEnd {
        document: it.id.clone(),
        final_content: it.content.clone(),
        metadata: it.metadata.clone(),
    });
    let is_other = |it: &Event| match it {
        Event::DocumentEnd { document, .. } => waiting.iter().all(|it| it.id != *document),
        _ => false,
    };
    let others = closing(response, Cut::Cancelled).into_iter().filter(is_other);
    ended
        .chain(others)
        .chain([Event::Done(Done {
            status: Some(Status::Completed),
            finish_reason: Some(FinishReason::AwaitingInput),
            duration_ms: Some(took_ms),
            ..Done::default()
        })])
        .collect()
}

/// How a response ends that goes down with the server.
fn shut_down(response: &Response, took_ms: u64) -> Vec<Event> {
    failed(response, "STREAM_INTERRUPTED", "the gateway is shutting down", took_ms)
}

/// Closes what is open, says why, and ends.
fn failed(response: &Response, code: &str, message: &str, took_ms: u64) -> Vec<Event> {
    let ends = closing(response, Cut::Interrupted);
    let mut events: Vec<_> = ends.into_iter().filter(|it| !matches!(it, Event::Done(_))).collect();
    let mut number = response.documents.len() as u64 + 1;
    while response.get(&DocumentId::numbered(number)).is_some() {
        number += 1;
    }
    let id = DocumentId::numbered(number);
    let metadata = Map::from_iter([
        ("errorCode".to_owned(), Value::from(code)),
        ("source".to_owned(), "gateway".into()),
        ("details".to_owned(), "".into()),
    ]);
    events.push(Event::DocumentStart(DocumentStart {
        id: id.clone(),
        kind: Kind::Error,
        sequence: Some(response.documents.len() as u64 + 1),
        content: Some(message.to_owned()),
        metadata: metadata.clone(),
    }));
    events.push(Event::DocumentEnd {
        document: id,
        final_content: Some(message.to_owned()),
        metadata,
    });
    events.push(Event::Done(Done {
        status: Some(Status::Error),
        finish_reason: Some(FinishReason::Error),
        duration_ms: Some(took_ms),
        ..Done::default()
    }));
    events
}

/// What of a turn has gone into a log behind `since`.
pub fn so_far(link: &dyn Link, since: Position) -> (Turn, Response) {
    let mut response = Response::default();
    let mut turn = Turn(0);
    for entry in link.log().after(since) {
        turn = entry.turn;
        response.apply(&entry.event, entry.at_ms);
    }
    (turn, response)
}
