//! One response while it is made, and after: the link's events as this gateway says them, in a log of the response's own.
//!
//! ```text
//! the link's log ─► keeper ─► the response's log ─► a reader, another reader, the object
//! ```
//!
//! Readers come and go and share what there is; nothing is kept for one of them but its place. The keeper decides what
//! becomes of a response that nobody reads, of a question that nobody answers, and of everything when the server stops.

use std::{
    collections::HashSet,
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

use super::ending::{await_input, failed, shut_down, waits};
use crate::{
    journal::{Cut, Follower, Log, closing},
    link::Link,
    protocol::{
        Command, Dialect, DocumentId, Entry, Event, Kind, Position, Response, ResponseStart, Severity, Submit, Turn,
        Usage,
        codec::{Identity, Strict},
    },
};

/// A link that was told to stop may say so itself; after this, the gateway does.
const STOPPING: Duration = Duration::from_secs(5);

/// So long a link is heard when the server stops.
const LAST_WORDS: Duration = Duration::from_millis(500);

/// So many events are taken over in one go.
const AT_ONCE: usize = 64;

/// How a response is made and by what it ends.
#[derive(Clone, Copy, Debug)]
pub struct Terms {
    /// The client can answer questions while the turn runs.
    pub hears_answers: bool,
    /// Its name is known while it runs, so that it can be stopped.
    pub is_stream: bool,
    /// The conversation is kept, so that the next message need not repeat it.
    pub is_stateful: bool,
    /// How long the turn goes on when its last reader has left.
    pub linger: Duration,
    /// How long a question stays open.
    pub patience: Duration,
}

/// A response that is being made, or was.
pub struct Turning {
    pub identity: Identity,
    /// What the first reader asked for.
    pub dialect: Dialect,
    terms: Terms,
    /// From position 1: what readers are told, event by event.
    log: Arc<Log>,
    /// While it runs.
    link: Mutex<Option<Arc<dyn Link>>>,
    /// The turn in the link's log, once the message is there.
    turn: OnceLock<Turn>,
    readers: watch::Sender<usize>,
    wish: watch::Sender<Wish>,
    has_ended: watch::Sender<bool>,
    /// About what its texts take in memory, in bytes.
    weight: AtomicUsize,
}

/// What somebody wants of the keeper.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Wish {
    #[default]
    Nothing,
    Stop,
    /// Another message has come: an open question gives way to it.
    GiveWay,
}

/// A reader's place. The turn may end when the last one is left.
pub struct Seat {
    turning: Arc<Turning>,
    /// Keeps the pieces of what ends before the reader begins to read.
    anchor: Option<Follower>,
}

impl Seat {
    /// The reader follows by itself now.
    pub fn reads(&mut self) {
        self.anchor = None;
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        self.turning.readers.send_modify(|it| *it = it.saturating_sub(1));
    }
}

impl Turning {
    pub fn new(link: Arc<dyn Link>, identity: Identity, dialect: Dialect, terms: Terms) -> Arc<Self> {
        Arc::new(Self {
            identity,
            dialect,
            terms,
            log: Log::new(),
            link: Mutex::new(Some(link)),
            turn: OnceLock::new(),
            readers: watch::Sender::new(0),
            wish: watch::Sender::new(Wish::Nothing),
            has_ended: watch::Sender::new(false),
            weight: AtomicUsize::new(0),
        })
    }

    /// About what its texts take in memory, in bytes.
    pub fn weight(&self) -> usize {
        self.weight.load(Ordering::Relaxed)
    }

    /// `since`: what a reader of the stream has had; `None` for one who waits for the whole.
    pub fn sit(self: &Arc<Self>, since: Option<Position>) -> Seat {
        self.readers.send_modify(|it| *it += 1);
        Seat {
            turning: Arc::clone(self),
            anchor: since.map(|it| self.follow(it)),
        }
    }

    #[cfg(test)]
    pub fn weigh(&self, bytes: usize) {
        self.weight.store(bytes, Ordering::Relaxed);
    }

    /// A reader of everything behind `since`.
    pub fn follow(&self, since: Position) -> Follower {
        self.log.follow_closely(since)
    }

    /// What has been said up to `until`, with the pieces of what has ended as far as they are there.
    pub fn said_until(&self, until: Position) -> Vec<Arc<Entry>> {
        let mut entries = Vec::new();
        self.follow(Position(0)).take(&mut entries);
        entries.retain(|it| it.position <= until);
        entries
    }

    pub fn last(&self) -> Position {
        self.log.last()
    }

    /// The response as far as it is known.
    pub fn response(&self) -> Response {
        let mut response = Response::default();
        for entry in self.log.after(Position(0)) {
            response.apply(&entry.event, entry.at_ms);
        }
        response
    }

    pub fn has_ended(&self) -> bool {
        *self.has_ended.borrow()
    }

    /// Returns when nothing will be added any more.
    pub async fn ended(&self) {
        // The sender is in here.
        let _ = self.has_ended.subscribe().wait_for(|it| *it).await;
    }

    /// Stops the turn; does nothing when it has ended.
    pub fn cancel(&self) {
        self.wish.send_replace(Wish::Stop);
    }

    /// Whether the turn waits for an answer of the user's. Then it ends, so that a message can be that answer.
    pub fn gives_way(&self) -> bool {
        let waits = !self.has_ended() && self.response().documents.iter().any(waits);
        if waits {
            self.wish.send_if_modified(|it| {
                let is_free = *it == Wish::Nothing;
                if is_free {
                    *it = Wish::GiveWay;
                }
                is_free
            });
        }
        waits
    }

    /// Sends a command about the running turn; `false` when it has ended.
    pub fn tell(&self, command: impl FnOnce(Turn) -> Command) -> bool {
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

/// Carries the events of a link's turn over, and ends the response.
pub struct Keeper {
    turning: Arc<Turning>,
    link: Arc<dyn Link>,
    follower: Follower,
    since: Instant,
    /// Questions, open or not.
    questions: HashSet<DocumentId>,
    /// The only writer of the response's log: readers need no second look.
    strict: Strict,
}

impl Keeper {
    /// Sends the message off.
    pub fn start(turning: &Arc<Turning>, link: Arc<dyn Link>, submit: Submit) -> Self {
        let follower = link.log().follow_closely(link.log().last());
        if !turning.terms.is_stateful {
            // The response's own log has all of it, and nobody comes back to the link.
            link.log().let_go();
        }
        link.send(Command::Submit(submit));
        Self {
            turning: Arc::clone(turning),
            link,
            follower,
            since: Instant::now(),
            questions: HashSet::new(),
            strict: Strict::new(turning.identity.clone()),
        }
    }

    /// Runs until the response has ended.
    pub async fn run(mut self, mut stop: watch::Receiver<bool>) {
        let terms = self.turning.terms;
        let mut readers = self.turning.readers.subscribe();
        let mut wish = self.turning.wish.subscribe();
        // What happened before is news as well.
        readers.mark_changed();
        wish.mark_changed();
        let mut batch = Vec::new();
        // When it is given up: because nobody reads, because the link does not stop, because nobody answers.
        let (mut left, mut late, mut asked) = (None, None, None);
        loop {
            let cut = tokio::select! {
                biased;
                () = stopped(&mut stop) => {
                    let usage = self.last_words().await;
                    Some(shut_down(&self.turning.response(), usage, self.took_ms()))
                }
                () = until(late) => Some(closing(&self.turning.response(), Cut::Cancelled)),
                () = until(asked) => Some(await_input(&self.turning.response(), self.took_ms())),
                () = until(left) => {
                    left = None;
                    self.link.send(Command::Cancel);
                    late = Some(Instant::now() + if terms.linger.is_zero() { Duration::ZERO } else { STOPPING });
                    None
                }
                _ = readers.changed() => {
                    let is_empty = *readers.borrow_and_update() == 0;
                    left = (is_empty && late.is_none()).then(|| Instant::now() + terms.linger);
                    None
                }
                _ = wish.changed() => match *wish.borrow_and_update() {
                    Wish::Stop if late.is_none() => {
                        self.link.send(Command::Cancel);
                        late = Some(Instant::now() + STOPPING);
                        None
                    }
                    Wish::GiveWay if asked.is_some() => Some(await_input(&self.turning.response(), self.took_ms())),
                    Wish::Nothing | Wish::Stop | Wish::GiveWay => None,
                },
                more = self.follower.next_some(AT_ONCE, &mut batch) => {
                    let mut is_question = false;
                    for entry in batch.drain(..) {
                        is_question |= self.take(&entry);
                        if self.turning.has_ended() {
                            return;
                        }
                    }
                    if is_question {
                        let is_open = self.turning.response().documents.iter().any(waits);
                        asked = is_open.then(|| {
                            let patience = if terms.hears_answers { terms.patience } else { Duration::ZERO };
                            Instant::now() + patience
                        });
                    }
                    (!more).then(|| closing(&self.turning.response(), Cut::Interrupted))
                }
            };
            if let Some(events) = cut {
                self.link.send(Command::Cancel);
                return self.say_all(events);
            }
        }
    }

    /// Stops the link and hears how its turn ends, if it says so soon: what that took is in its last event.
    async fn last_words(&mut self) -> Option<Usage> {
        self.link.send(Command::Cancel);
        let until = Instant::now() + LAST_WORDS;
        let mut batch = Vec::new();
        while let Ok(true) = timeout_at(until, self.follower.next_some(AT_ONCE, &mut batch)).await {
            for entry in batch.drain(..) {
                match &entry.event {
                    Event::Done(done) if Some(&entry.turn) == self.turning.turn.get() => return done.usage,
                    _ => self.take(&entry),
                };
            }
        }
        None
    }

    /// Takes an event over; `true` when it is about a question.
    fn take(&mut self, entry: &Entry) -> bool {
        let Some(turn) = self.turning.turn.get() else {
            if let Event::Notice(notice) = &entry.event
                && notice.severity == Severity::Error
            {
                let response = self.turning.response();
                self.say_all(failed(&response, "LLM_UNAVAILABLE", &notice.message, self.took_ms()));
            } else if matches!(entry.event, Event::UserMessage(_)) {
                self.turning.turn.get_or_init(|| entry.turn);
            }
            return false;
        };
        if entry.turn != *turn {
            return false;
        }
        let mut event = match &entry.event {
            Event::UserMessage(_) | Event::Notice(_) | Event::Progress(_) | Event::Title(_) | Event::Branch(_) => {
                return false;
            }
            event => event.clone(),
        };
        let identity = &self.turning.identity;
        match &mut event {
            Event::ResponseStart(start) => self.introduce(start),
            Event::Done(done) => {
                if done.id.is_some() {
                    done.id = Some(identity.id.clone());
                }
                if self.turning.terms.is_stateful && done.conversation_id.is_some() {
                    done.conversation_id.clone_from(&identity.conversation_id);
                }
            }
            Event::DocumentStart(start) if start.kind == Kind::Clarification => {
                self.questions.insert(start.id.clone());
            }
            _ => {}
        }
        let is_question =
            !self.questions.is_empty() && document_of(&event).is_some_and(|it| self.questions.contains(it));
        self.say(entry.at_ms, &event);
        is_question
    }

    /// The response goes by our name: that of a recording comes again and again. What it can do is what we can.
    fn introduce(&self, start: &mut ResponseStart) {
        let Turning { identity, terms, .. } = &*self.turning;
        start.id = Some(identity.id.clone());
        let asks = self.link.about().is_replay || start.capabilities.iter().any(|it| it == "live_input");
        start.capabilities.clear();
        let mut can = |what: &str| start.capabilities.push(what.to_owned());
        if terms.is_stream {
            can("cancel");
        }
        if terms.hears_answers && asks {
            can("live_input");
        }
        if terms.is_stateful {
            can("stateful");
            start.conversation_id.clone_from(&identity.conversation_id);
        }
    }

    fn say_all(&mut self, events: Vec<Event>) {
        for event in events {
            self.say(super::now_ms(), &event);
        }
    }

    fn say(&mut self, at_ms: u64, event: &Event) {
        if self.turning.has_ended() {
            return;
        }
        for event in self.strict.push(event) {
            self.turning.weight.fetch_add(weight(&event), Ordering::Relaxed);
            self.turning.log.append(at_ms, event);
        }
        if self.strict.is_done() {
            self.end();
        }
    }

    fn end(&self) {
        self.turning.log.close();
        // Nothing that comes later is for this turn.
        drop(self.turning.link.lock().unwrap_or_else(PoisonError::into_inner).take());
        self.turning.has_ended.send_replace(true);
    }

    fn took_ms(&self) -> u64 {
        u64::try_from(self.since.elapsed().as_millis()).unwrap_or(u64::MAX)
    }
}

impl Drop for Keeper {
    /// However the keeper goes, nobody waits for it.
    fn drop(&mut self) {
        if !self.turning.has_ended() {
            self.link.send(Command::Cancel);
            self.say_all(closing(&self.turning.response(), Cut::Interrupted));
        }
    }
}

/// The texts of an event, and something for all else. Answers are large by their texts.
fn weight(event: &Event) -> usize {
    const REST: usize = 64;
    let text = match event {
        Event::ContentDelta { delta, .. } | Event::ThinkingDelta { delta } => delta.len(),
        Event::ToolCallArguments { arguments, .. } => texts(arguments),
        Event::DocumentEnd { final_content, .. } => final_content.as_ref().map_or(0, String::len),
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

/// The document that an event is about.
fn document_of(event: &Event) -> Option<&DocumentId> {
    match event {
        Event::DocumentStart(start) => Some(&start.id),
        Event::ContentDelta { document, .. }
        | Event::ToolCallStart { document, .. }
        | Event::ToolCallArguments { document, .. }
        | Event::ToolResult { document, .. }
        | Event::MetadataDelta { document, .. }
        | Event::DocumentEnd { document, .. }
        | Event::DocumentUpdate { document, .. } => Some(document),
        Event::UserMessage(_)
        | Event::ResponseStart(_)
        | Event::ThinkingDelta { .. }
        | Event::Notice(_)
        | Event::Progress(_)
        | Event::Title(_)
        | Event::Branch(_)
        | Event::Done(_)
        | Event::Unknown { .. } => None,
    }
}

async fn stopped(stop: &mut watch::Receiver<bool>) {
    // A server that is gone has stopped as well.
    let _ = stop.wait_for(|it| *it).await;
}

/// At that time, or never.
async fn until(time: Option<Instant>) {
    match time {
        Some(time) => sleep_until(time).await,
        None => std::future::pending().await,
    }
}
