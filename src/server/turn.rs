//! One response, while it runs and afterwards: the link's events, rewritten for this gateway, in the response's own
//! log.
//!
//! ```text
//! the link's log ─► event relay ─► the response's log ─► readers, or one JSON object
//! ```
//!
//! Readers share the log; each has only a position in it. The relay decides when to stop a response that nobody reads,
//! a question that nobody answers, and everything when the server stops.

use std::{
    collections::HashSet,
    num::NonZeroUsize,
    sync::{
        Arc, Mutex, OnceLock, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use serde_json::Value;
use tokio::{
    sync::watch,
    time::{Instant, sleep_until, timeout_at},
};

use super::ending::{awaiting_input, failed, is_open_question, shut_down};
use crate::{
    journal::{Cut, Follower, Log, closing},
    link::Link,
    os::long_text::LongText,
    protocol::{
        Command, Dialect, DocumentId, Entry, Event, Kind, Position, Response, ResponseStart, Severity, Submit, Turn,
        Usage,
        codec::{Identity, Strict},
    },
};

/// Time that a cancelled link has to end its turn, after which the gateway ends the response itself.
const STOP_TIMEOUT: Duration = Duration::from_secs(5);

/// Time to wait for a link's token usage when the server stops.
const USAGE_TIMEOUT: Duration = Duration::from_millis(500);

/// Maximum size of a response's deltas in memory, in bytes; its readers share them. The others are in a file.
const DELTA_BYTES: usize = 2 << 10;

/// Number of events copied before other tasks and timers are looked at.
const EVENTS_PER_BATCH: NonZeroUsize = NonZeroUsize::new(64).expect("not zero");

/// Options of a response that decide when it ends and what its client can do.
#[derive(Clone, Copy, Debug)]
pub struct ResponseOptions {
    /// True if the client can answer questions while the turn runs.
    pub accepts_answers: bool,
    /// True if the client knows the response's id while it runs, and so can cancel it.
    pub is_stream: bool,
    /// True if the conversation is stored, so that the next message need not repeat it.
    pub is_stateful: bool,
    /// Time that the turn continues after its last reader has left.
    pub linger: Duration,
    /// Time that a question stays open.
    pub patience: Duration,
}

/// A response that is running or has ended, shared by its relay, its readers and the registry.
pub struct ServedResponse {
    /// Id, conversation, model, mode and time of creation, as this gateway reports them.
    pub identity: Identity,
    /// Dialect that the first reader asked for.
    pub dialect: Dialect,
    options: ResponseOptions,
    /// Events for readers, one log entry for each event on the wire, from position 1.
    log: Arc<Log>,
    /// `None` after the response has ended.
    link: Mutex<Option<Arc<dyn Link>>>,
    /// Number of the turn in the link's log; set when the link has logged the user's message.
    turn: OnceLock<Turn>,
    signals: watch::Sender<Signals>,
    /// Approximate memory use of the logged events, in bytes.
    weight: AtomicUsize,
}

/// State of a response that others wait for.
#[derive(Clone, Copy, Debug, Default)]
struct Signals {
    readers: usize,
    /// Number of readers that have come or gone.
    reader_changes: usize,
    stop_request: StopRequest,
    has_ended: bool,
}

/// Request to the relay to end the turn early.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum StopRequest {
    #[default]
    Nothing,
    Stop,
    /// A new message has arrived: end the turn if it has an open question, so that the message can answer it.
    Yield,
}

/// Registration of a reader; dropping it deregisters. A turn without readers may be stopped.
pub struct ReaderGuard {
    served: Arc<ServedResponse>,
    /// Keeps deltas in the log until the reader has its own follower.
    anchor: Option<Follower>,
}

impl ReaderGuard {
    /// Releases the deltas: the reader follows the log itself now.
    pub fn reads(&mut self) {
        self.anchor = None;
    }

    /// Returns true if it belongs to this response.
    pub fn is_of(&self, served: &Arc<ServedResponse>) -> bool {
        Arc::ptr_eq(&self.served, served)
    }
}

impl Drop for ReaderGuard {
    fn drop(&mut self) {
        self.served.signals.send_modify(|it| {
            it.readers = it.readers.saturating_sub(1);
            it.reader_changes += 1;
        });
    }
}

impl ServedResponse {
    /// Creates a response without events. [`EventRelay`] fills it.
    pub fn new(link: Arc<dyn Link>, identity: Identity, dialect: Dialect, options: ResponseOptions) -> Arc<Self> {
        Arc::new(Self {
            identity,
            dialect,
            options,
            log: Log::sparing(DELTA_BYTES),
            link: Mutex::new(Some(link)),
            turn: OnceLock::new(),
            signals: watch::Sender::default(),
            weight: AtomicUsize::new(0),
        })
    }

    /// Returns the approximate memory use of the logged events, in bytes.
    pub fn weight(&self) -> usize {
        self.weight.load(Ordering::Relaxed)
    }

    /// Registers a reader. `since` is the last position that a stream's reader has; `None` for one that waits for the
    /// end.
    pub fn add_reader(self: &Arc<Self>, since: Option<Position>) -> ReaderGuard {
        self.signals.send_modify(|it| {
            it.readers += 1;
            it.reader_changes += 1;
        });
        ReaderGuard {
            served: Arc::clone(self),
            anchor: since.map(|it| self.follow(it)),
        }
    }

    /// Sets the size of the response, in bytes.
    #[cfg(test)]
    pub fn weigh(&self, bytes: usize) {
        self.weight.store(bytes, Ordering::Relaxed);
    }

    /// Returns a follower of all events after `since`, with the deltas that are still in the log.
    pub fn follow(&self, since: Position) -> Follower {
        self.log.follow_closely(since)
    }

    /// Returns all logged entries up to and including `until`, with the deltas that are still in the log.
    pub fn entries_until(&self, until: Position) -> Vec<Arc<Entry>> {
        let mut entries = Vec::new();
        self.follow(Position(0)).take(&mut entries);
        entries.retain(|it| it.position <= until);
        entries
    }

    /// Reads the events up to `until`, of which only a few are in memory at a time. Returns `until`.
    pub fn each(&self, until: Position, mut read: impl FnMut(&Entry)) -> Position {
        let mut follower = self.follow(Position(0));
        let mut batch = Vec::new();
        while follower.take_some(EVENTS_PER_BATCH, &mut batch) {
            let is_behind = batch.last().is_some_and(|it| it.position > until);
            batch
                .drain(..)
                .filter(|it| it.position <= until)
                .for_each(|it| read(&it));
            if is_behind {
                break;
            }
        }
        until
    }

    /// Returns the position of the last logged event; 0 for none.
    pub fn last(&self) -> Position {
        self.log.last()
    }

    /// Returns the response as far as it has been logged.
    pub fn response(&self) -> Response {
        let mut response = Response::default();
        for entry in self.log.after(Position(0)) {
            response.apply(&entry.event, entry.at_ms);
        }
        response
    }

    /// Returns true if no event will follow.
    pub fn has_ended(&self) -> bool {
        self.signals.borrow().has_ended
    }

    /// Waits until the response has ended.
    pub async fn ended(&self) {
        // It cannot fail: `self` owns the sender.
        let _ = self.signals.subscribe().wait_for(|it| it.has_ended).await;
    }

    /// Stops the turn. Does nothing if it has ended.
    pub fn cancel(&self) {
        self.signals.send_modify(|it| it.stop_request = StopRequest::Stop);
    }

    /// Returns true if the turn waits for the user's answer.
    pub fn is_waiting(&self) -> bool {
        !self.has_ended() && self.response().documents.iter().any(is_open_question)
    }

    /// Returns true if the turn waits for the user's answer, and asks it to end, so that the next message can be the
    /// answer.
    pub fn yield_to_message(&self) -> bool {
        let is_waiting = self.is_waiting();
        if is_waiting {
            self.signals.send_if_modified(|it| {
                let is_free = it.stop_request == StopRequest::Nothing;
                if is_free {
                    it.stop_request = StopRequest::Yield;
                }
                is_free
            });
        }
        is_waiting
    }

    /// Sends a command about the running turn to the link. Returns false if the turn has ended or not begun.
    pub fn send_command(&self, command: impl FnOnce(Turn) -> Command) -> bool {
        let link = self.link.lock().unwrap_or_else(PoisonError::into_inner).clone();
        match (link, self.turn.get()) {
            (Some(link), Some(turn)) => {
                link.send(command(*turn));
                true
            }
            (None, _) | (_, None) => false,
        }
    }
}

/// Copies the events of a link's turn to the response's log and ends the response. Dropping it ends it as interrupted.
pub struct EventRelay {
    served: Arc<ServedResponse>,
    link: Arc<dyn Link>,
    follower: Follower,
    since: Instant,
    /// All questions of the turn, open or closed.
    questions: HashSet<DocumentId>,
    /// Only writer of the response's log, so readers need not check its events again.
    strict: Strict,
}

impl EventRelay {
    /// Sends the message to the link and starts following its log.
    pub fn start(served: &Arc<ServedResponse>, link: Arc<dyn Link>, submit: Submit) -> Box<Self> {
        let follower = link.log().follow_closely(link.log().last());
        if !served.options.is_stateful {
            // The response's own log keeps everything, and no later request uses this link.
            link.log().let_go();
        }
        link.send(Command::Submit(submit));
        let strict = Strict::new(served.identity.clone());
        // In a box: the future of a task would have room for it twice.
        Box::new(Self {
            served: Arc::clone(served),
            strict: if link.has_whole_ends() {
                strict.of_whole_ends()
            } else {
                strict
            },
            link,
            follower,
            since: Instant::now(),
            questions: HashSet::new(),
        })
    }

    /// Copies events until the response has ended. `stop` turns true when the server shuts down.
    pub async fn run(mut self: Box<Self>, mut stop: watch::Receiver<bool>) {
        let options = self.served.options;
        let mut signals = self.served.signals.subscribe();
        // Changes before the subscription count as well.
        signals.mark_changed();
        let mut reader_changes = None;
        let mut batch = Vec::new();
        // Deadlines: nobody reads, a cancelled link does not end, nobody answers the open question.
        let (mut abandon_at, mut stop_deadline, mut answer_deadline) = (None, None, None);
        loop {
            let cut = tokio::select! {
                biased;
                () = stopped(&mut stop) => {
                    let usage = Box::pin(self.final_usage()).await;
                    Some(shut_down(&self.served.response(), usage, self.took_ms()))
                }
                () = until(stop_deadline) => Some(closing(&self.served.response(), Cut::Cancelled)),
                () = until(answer_deadline) => Some(awaiting_input(&self.served.response(), self.took_ms())),
                () = until(abandon_at) => {
                    abandon_at = None;
                    self.link.send(Command::Cancel);
                    stop_deadline = Some(Instant::now() + if options.linger.is_zero() { Duration::ZERO } else { STOP_TIMEOUT });
                    None
                }
                _ = signals.changed() => {
                    let now = *signals.borrow_and_update();
                    if reader_changes.replace(now.reader_changes) != Some(now.reader_changes) {
                        let is_over = now.readers == 0 && stop_deadline.is_none();
                        abandon_at = is_over.then(|| Instant::now() + options.linger);
                    }
                    match now.stop_request {
                        StopRequest::Stop if stop_deadline.is_none() => {
                            self.link.send(Command::Cancel);
                            stop_deadline = Some(Instant::now() + STOP_TIMEOUT);
                            None
                        }
                        StopRequest::Yield if answer_deadline.is_some() => {
                            Some(awaiting_input(&self.served.response(), self.took_ms()))
                        }
                        StopRequest::Nothing | StopRequest::Stop | StopRequest::Yield => None,
                    }
                }
                more = self.follower.next_some(EVENTS_PER_BATCH, &mut batch) => {
                    let mut is_question = false;
                    for entry in batch.drain(..) {
                        is_question |= self.take(&entry);
                        if self.served.has_ended() {
                            return;
                        }
                    }
                    if is_question {
                        let is_open = self.served.response().documents.iter().any(is_open_question);
                        answer_deadline = is_open.then(|| {
                            let patience = if options.accepts_answers { options.patience } else { Duration::ZERO };
                            Instant::now() + patience
                        });
                    }
                    (!more).then(|| closing(&self.served.response(), Cut::Interrupted))
                }
            };
            if let Some(events) = cut {
                self.link.send(Command::Cancel);
                return self.emit_all(events);
            }
        }
    }

    /// Cancels the link and waits up to [`USAGE_TIMEOUT`] for its last event. Returns the token usage in it, if any.
    async fn final_usage(&mut self) -> Option<Usage> {
        self.link.send(Command::Cancel);
        let until = Instant::now() + USAGE_TIMEOUT;
        let mut batch = Vec::new();
        while let Ok(true) = timeout_at(until, self.follower.next_some(EVENTS_PER_BATCH, &mut batch)).await {
            for entry in batch.drain(..) {
                match &entry.event {
                    Event::Done(done) if Some(&entry.turn) == self.served.turn.get() => return done.usage,
                    _ => self.take(&entry),
                };
            }
        }
        None
    }

    /// Copies one event of the link's log. Returns true if it concerns a question.
    fn take(&mut self, entry: &Entry) -> bool {
        let Some(turn) = self.served.turn.get() else {
            if let Event::Notice(notice) = &entry.event
                && notice.severity == Severity::Error
            {
                let response = self.served.response();
                self.emit_all(failed(&response, "LLM_UNAVAILABLE", &notice.message, self.took_ms()));
            } else if matches!(entry.event, Event::UserMessage(_)) {
                self.served.turn.get_or_init(|| entry.turn);
            }
            return false;
        };
        if entry.turn != *turn {
            return false;
        }
        let mut event = match &entry.event {
            Event::UserMessage(_)
            | Event::Notice(_)
            | Event::Progress(_)
            | Event::Said { .. }
            | Event::Told(_)
            | Event::Title(_)
            | Event::Branch(_) => return false,
            event => event.clone(),
        };
        let identity = &self.served.identity;
        match &mut event {
            Event::ResponseStart(start) => self.rewrite_start(start),
            Event::Done(done) => {
                if done.id.is_some() {
                    done.id = Some(identity.id.clone());
                }
                if self.served.options.is_stateful && done.conversation_id.is_some() {
                    done.conversation_id.clone_from(&identity.conversation_id);
                }
            }
            Event::DocumentStart(start) if start.kind == Kind::Clarification => {
                self.questions.insert(start.id.clone());
            }
            _ => {}
        }
        let is_question = !self.questions.is_empty() && event.document().is_some_and(|it| self.questions.contains(it));
        self.emit(entry.at_ms, &event);
        is_question
    }

    /// Replaces the link's id and capabilities by the gateway's own. A replayed recording would repeat its old id.
    fn rewrite_start(&self, start: &mut ResponseStart) {
        let ServedResponse { identity, options, .. } = &*self.served;
        start.id = Some(identity.id.clone());
        let asks = self.link.about().is_replay || start.capabilities.iter().any(|it| it == "live_input");
        start.capabilities.clear();
        let mut can = |what: &str| start.capabilities.push(what.to_owned());
        if options.is_stream {
            can("cancel");
        }
        if options.accepts_answers && asks {
            can("live_input");
        }
        if options.is_stateful {
            can("stateful");
            start.conversation_id.clone_from(&identity.conversation_id);
        }
    }

    fn emit_all(&mut self, events: Vec<Event>) {
        for event in events {
            self.emit(super::now_ms(), &event);
        }
    }

    fn emit(&mut self, at_ms: u64, event: &Event) {
        if self.served.has_ended() {
            return;
        }
        for event in self.strict.push(event) {
            self.served.weight.fetch_add(weight(&event), Ordering::Relaxed);
            self.served.log.append(at_ms, event);
        }
        if self.strict.is_done() {
            self.end();
        }
    }

    fn end(&self) {
        self.served.log.close();
        // Commands sent later must not reach the link's next turn.
        drop(self.served.link.lock().unwrap_or_else(PoisonError::into_inner).take());
        self.served.signals.send_modify(|it| it.has_ended = true);
    }

    fn took_ms(&self) -> u64 {
        u64::try_from(self.since.elapsed().as_millis()).unwrap_or(u64::MAX)
    }
}

impl Drop for EventRelay {
    /// Ends the response on every path, so that no reader waits forever.
    fn drop(&mut self) {
        if !self.served.has_ended() {
            self.link.send(Command::Cancel);
            self.emit_all(closing(&self.served.response(), Cut::Interrupted));
        }
    }
}

/// Approximate memory use of an event: its texts and a flat amount for the rest.
pub fn weight(event: &Event) -> usize {
    const REST: usize = 64;
    let text = match event {
        Event::ContentDelta { delta, .. } | Event::ThinkingDelta { delta } => delta.len(),
        Event::ToolCallArguments { arguments, .. } => texts(arguments),
        Event::DocumentEnd { final_content, .. } => final_content.as_ref().map_or(0, LongText::len),
        Event::ToolResult { result, .. } => texts(result),
        Event::MetadataDelta { metadata, append, .. } => {
            metadata.values().map(texts).sum::<usize>() + append.len() * REST
        }
        _ => 0,
    };
    REST + text
}

fn texts(value: &Value) -> usize {
    match value {
        Value::String(text) => text.len(),
        Value::Array(list) => list.iter().map(texts).sum(),
        Value::Object(members) => members.values().map(texts).sum(),
        Value::Null | Value::Bool(_) | Value::Number(_) => 8,
    }
}

async fn stopped(stop: &mut watch::Receiver<bool>) {
    // An error means that the server is gone, which is a stop as well.
    let _ = stop.wait_for(|it| *it).await;
}

/// Waits until `time`; forever for `None`.
async fn until(time: Option<Instant>) {
    match time {
        Some(time) => sleep_until(time).await,
        None => std::future::pending().await,
    }
}
