//! Conversations of a stateful gateway: in memory while they are used, and always on disk.
//!
//! A conversation keeps one link, so that the agent remembers what it has read and been allowed. If a request changes
//! what the link was opened with (its tools), the conversation is loaded from disk again, as after a restart.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use axum::http::StatusCode;
use serde_json::Value;
use tokio::{
    sync::watch,
    time::{Instant, timeout},
};

use super::{LinkRequest, Opener, events::EventHub, history, refusal::Refusal, turn::ServedResponse};
use crate::{
    journal::{
        Log,
        file::{Listed, Recorder, Session, Store, StoreError, Stored},
    },
    link::{Asker, Link},
    protocol::{ConversationId, Request, Role},
};

/// Number of conversations in memory above which [`Conversations::sweep`] closes idle ones early.
const MAX_OPEN: usize = 256;

/// Time that a turn with an open question has to end when the next message arrives. It usually ends at once.
const YIELD_TIMEOUT: Duration = Duration::from_secs(10);

/// All open conversations, and the store of their session files.
pub struct Conversations {
    store: Store,
    /// Open conversations by id. Locked while one is opened, so that none is opened twice.
    open_ones: tokio::sync::Mutex<HashMap<ConversationId, Arc<Conversation>>>,
    /// Number of conversations that were opened.
    opened: watch::Sender<u64>,
    /// The last list of the store, so that unchanged files are not read again.
    listed: Mutex<HashMap<String, Listed>>,
    /// Events of all open conversations.
    pub events: Arc<EventHub>,
}

/// An open conversation: its link, and the recorder that writes it to disk.
pub struct Conversation {
    pub id: ConversationId,
    pub link: Arc<dyn Link>,
    /// Milliseconds since 1970 at which it began.
    pub created: u64,
    /// Result of [`wanted`] when the link was opened.
    wanted: (Value, Asker),
    usage: Mutex<ConversationUse>,
    recorder: Mutex<Option<Recorder>>,
    /// Turns true when it is closed: another one may take its place.
    is_closed: watch::Sender<bool>,
}

/// A conversation's records, as they are when it is opened.
struct Records {
    created: u64,
    log: Arc<Log>,
    recorder: Recorder,
}

struct ConversationUse {
    /// Last response, running or ended.
    answer: Option<Arc<ServedResponse>>,
    /// True while a [`Claim`] exists.
    is_taken: bool,
    /// Time of the last use.
    since: Instant,
}

/// Exclusive right to send one message to a conversation. Dropping it lets the next message in.
pub struct Claim(Arc<Conversation>);

impl Claim {
    /// Returns the conversation that was claimed.
    pub fn conversation(&self) -> &Arc<Conversation> {
        &self.0
    }

    /// Records `served` as the response that the next message has to wait for.
    pub fn answers(self, served: &Arc<ServedResponse>) {
        self.0.lock().answer = Some(Arc::clone(served));
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        let mut state = self.0.lock();
        state.is_taken = false;
        state.since = Instant::now();
    }
}

impl Conversation {
    fn lock(&self) -> MutexGuard<'_, ConversationUse> {
        self.usage.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn is_idle(&self) -> bool {
        let state = self.lock();
        !state.is_taken && state.answer.as_ref().is_none_or(|it| it.has_ended())
    }

    /// Returns the response that is running.
    pub fn running(&self) -> Option<Arc<ServedResponse>> {
        self.lock().answer.clone().filter(|it| !it.has_ended())
    }

    /// Waits until the conversation is closed. Everything about it is in its log then.
    pub async fn closed(&self) {
        // It cannot fail: `self` owns the sender.
        let _ = self.is_closed.subscribe().wait_for(|it| *it).await;
    }

    /// Claims the conversation. Refused with 409 while a turn runs, even if that waits for an answer.
    pub fn claim_idle(self: &Arc<Self>) -> Result<Claim, Refusal> {
        let mut state = self.lock();
        if state.is_taken {
            return Err(busy(None));
        }
        if let Some(running) = state.answer.as_ref().filter(|it| !it.has_ended()) {
            return Err(busy(Some(running)));
        }
        state.is_taken = true;
        Ok(Claim(Arc::clone(self)))
    }

    /// Claims the conversation, after a turn with an open question has yielded. Refused with 409 while another turn
    /// runs.
    async fn claim(self: &Arc<Self>) -> Result<Claim, Refusal> {
        loop {
            let running = {
                let mut state = self.lock();
                if state.is_taken {
                    return Err(busy(None));
                }
                match state.answer.clone().filter(|it| !it.has_ended()) {
                    None => {
                        state.is_taken = true;
                        return Ok(Claim(Arc::clone(self)));
                    }
                    Some(running) => running,
                }
            };
            if !running.yield_to_message() {
                return Err(busy(Some(&running)));
            }
            if timeout(YIELD_TIMEOUT, running.ended()).await.is_err() {
                return Err(busy(Some(&running)));
            }
        }
    }

    /// Writes everything to disk and closes the file; the store reports a failure. Blocks.
    fn finish(&self) {
        self.is_closed.send_replace(true);
        drop(self.recorder.lock().unwrap_or_else(PoisonError::into_inner).take());
    }
}

fn busy(running: Option<&Arc<ServedResponse>>) -> Refusal {
    let refusal = Refusal::new(StatusCode::CONFLICT, "the conversation is being answered").after_seconds(1);
    match running {
        Some(it) => refusal.details(format!(
            "{} is running: read it at /api/v1/chat/responses/{}/stream, or cancel it",
            it.identity.id, it.identity.id
        )),
        None => refusal.details("another message was a moment earlier"),
    }
}

impl Conversations {
    pub fn new(store: Store) -> Self {
        Self {
            store,
            open_ones: tokio::sync::Mutex::default(),
            opened: watch::Sender::new(0),
            listed: Mutex::default(),
            events: Arc::default(),
        }
    }

    /// Returns the conversation if it is open.
    pub async fn find(&self, id: &ConversationId) -> Option<Arc<Conversation>> {
        self.open_ones.lock().await.get(id).cloned()
    }

    /// Counts the conversations that are opened from now on.
    pub fn openings(&self) -> watch::Receiver<u64> {
        let mut openings = self.opened.subscribe();
        openings.mark_unchanged();
        openings
    }

    /// Begins to gather the events of all conversations.
    pub async fn gather_events(&self) {
        let open_ones = self.open_ones.lock().await;
        if self.events.start() {
            for conversation in open_ones.values() {
                self.gather(conversation);
            }
        }
    }

    fn gather(&self, conversation: &Conversation) {
        let is_closed = conversation.is_closed.subscribe();
        self.events.follow(&conversation.id, conversation.link.log(), is_closed);
    }

    /// Lists the stored conversations, the last changed one first, and those of them that are open.
    pub async fn list(&self) -> Result<(Vec<Listed>, HashMap<ConversationId, Arc<Conversation>>), Refusal> {
        let known = std::mem::take(&mut *self.listed.lock().unwrap_or_else(PoisonError::into_inner));
        let store = self.store.clone();
        let listed = blocking(move || store.list_anew(&known)).await;
        let listed = match listed {
            Some(Ok(listed)) => listed,
            Some(Err(error)) => return Err(disk(&error)),
            None => return Err(unread()),
        };
        let by_id = listed.iter().map(|it| (it.session.id.clone(), it.clone())).collect();
        *self.listed.lock().unwrap_or_else(PoisonError::into_inner) = by_id;
        Ok((listed, self.open_ones.lock().await.clone()))
    }

    /// Reads a conversation from the disk. 404 for an unknown id.
    pub async fn read(&self, id: &ConversationId) -> Result<Stored, Refusal> {
        let (store, name) = (self.store.clone(), id.as_str().to_owned());
        match blocking(move || store.read(&name)).await {
            Some(Ok(stored)) => Ok(stored),
            Some(Err(error)) => Err(not_resumed(&error)),
            None => Err(unread()),
        }
    }

    /// Claims a conversation without a message: as it is open, or opened as for a message. Refused with 404 for an unknown
    /// id, and with 409 while a turn runs.
    pub async fn claim_idle(&self, id: &ConversationId, open: &Opener, now_ms: u64) -> Result<Claim, Refusal> {
        if let Some(conversation) = self.find(id).await {
            let claim = conversation.claim_idle()?;
            if !conversation.link.log().is_closed() {
                return Ok(claim);
            }
        }
        let request = Request {
            conversation_id: Some(id.clone()),
            ..Request::default()
        };
        self.claim_for(&request, Asker::Later, open, now_ms).await
    }

    /// Claims the conversation of a request: continues the open one, loads a stored one, or begins a new one.
    ///
    /// A request with assistant messages carries its whole conversation and always begins a new one. Errors: 404 for an
    /// unknown id, 409 while it is busy here or in another process, 500 if the disk fails, 502 if no link can be
    /// opened.
    pub async fn claim_for(
        &self,
        request: &Request,
        asker: Asker,
        open: &Opener,
        now_ms: u64,
    ) -> Result<Claim, Refusal> {
        // A request with assistant messages carries the whole conversation, which is then stored under a new id.
        let is_whole = request.messages.iter().any(|it| it.role == Role::Assistant);
        let known = request.conversation_id.as_ref().filter(|_| !is_whole);
        let mut open_ones = self.open_ones.lock().await;
        let Some(id) = known else {
            let id = ConversationId::fresh();
            let mut request = request.clone();
            request.conversation_id = Some(id.clone());
            let log = history::before(&request, now_ms);
            let session = Session {
                id: id.as_str().to_owned(),
                created: now_ms,
                workspace: String::new(),
                version: env!("CARGO_PKG_VERSION").to_owned(),
                branch: None,
            };
            let recorder = self.store.record(session, &log).map_err(|error| disk(&error))?;
            let records = Records {
                created: now_ms,
                log,
                recorder,
            };
            return self.open(&mut open_ones, &request, asker, records, open).await;
        };
        if let Some(conversation) = open_ones.get(id).cloned() {
            let claim = conversation.claim().await?;
            if conversation.wanted == wanted(request, asker, &*conversation.link)
                && !conversation.link.log().is_closed()
            {
                return Ok(claim);
            }
            open_ones.remove(id);
            blocking(move || conversation.finish()).await;
        }
        let (store, name) = (self.store.clone(), id.as_str().to_owned());
        let resumed = blocking(move || store.resume(&name, now_ms)).await;
        let resumed = match resumed {
            Some(Ok(resumed)) => resumed,
            Some(Err(error)) => return Err(not_resumed(&error)),
            None => return Err(unread()),
        };
        let records = Records {
            created: resumed.session.created,
            log: resumed.log,
            recorder: resumed.recorder,
        };
        self.open(&mut open_ones, request, asker, records, open).await
    }

    async fn open(
        &self,
        open_ones: &mut HashMap<ConversationId, Arc<Conversation>>,
        request: &Request,
        asker: Asker,
        records: Records,
        open: &Opener,
    ) -> Result<Claim, Refusal> {
        let link = super::open(open, &LinkRequest { request, asker }, records.log)?;
        let wanted = wanted(request, asker, &*link);
        let id = request.conversation_id.clone().unwrap_or_else(ConversationId::fresh);
        let conversation = Arc::new(Conversation {
            id: id.clone(),
            link,
            created: records.created,
            wanted,
            usage: Mutex::new(ConversationUse {
                answer: None,
                is_taken: false,
                since: Instant::now(),
            }),
            recorder: Mutex::new(Some(records.recorder)),
            is_closed: watch::Sender::new(false),
        });
        self.gather(&conversation);
        open_ones.insert(id, Arc::clone(&conversation));
        self.opened.send_modify(|it| *it += 1);
        conversation.claim().await
    }

    /// Closes conversations that were idle for `keep`, and the longest idle ones above [`MAX_OPEN`]. Their files stay.
    pub async fn sweep(&self, keep: Duration) {
        let mut open_ones = self.open_ones.lock().await;
        let mut idle: Vec<_> = open_ones
            .values()
            .filter(|it| it.is_idle())
            .map(|it| (it.lock().since, it.id.clone()))
            .collect();
        idle.sort_unstable_by_key(|it| it.0);
        let too_many = open_ones.len().saturating_sub(MAX_OPEN);
        let old = idle
            .into_iter()
            .enumerate()
            .filter(|(at, (since, _))| *at < too_many || since.elapsed() > keep);
        let old: Vec<_> = old.filter_map(|(_, (_, id))| open_ones.remove(&id)).collect();
        // While the lock is held, so that none of them is opened again before its file is closed.
        if !old.is_empty() {
            blocking(move || old.iter().for_each(|it| it.finish())).await;
        }
    }

    /// Closes all conversations. Everything is on disk when this returns.
    pub async fn finish(&self) {
        let all: Vec<_> = self.open_ones.lock().await.drain().map(|(_, it)| it).collect();
        blocking(move || all.iter().for_each(|it| it.finish())).await;
    }
}

/// Returns the parts of a request that its link was opened with and cannot change.
fn wanted(request: &Request, asker: Asker, link: &dyn Link) -> (Value, Asker) {
    let context = request.context.as_ref().filter(|_| !link.about().reads_context);
    (
        serde_json::json!([request.tools, request.available_tools, context]),
        asker,
    )
}

async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Option<T> {
    // It fails only if the work panics, which the runtime reports.
    tokio::task::spawn_blocking(work).await.ok()
}

fn unread() -> Refusal {
    Refusal::new(StatusCode::INTERNAL_SERVER_ERROR, "the conversation could not be read")
}

fn disk(error: &dyn std::error::Error) -> Refusal {
    Refusal::new(StatusCode::INTERNAL_SERVER_ERROR, "the conversation cannot be stored").details(error.to_string())
}

fn not_resumed(error: &StoreError) -> Refusal {
    match error {
        StoreError::Missing { .. } => {
            Refusal::new(StatusCode::NOT_FOUND, "no conversation with that name is stored here")
                .details("leave `conversationId` out to begin one, or send all of its messages")
        }
        StoreError::Held { .. } => Refusal::new(StatusCode::CONFLICT, error.to_string()),
        StoreError::Newer { .. } | StoreError::Failed { .. } | StoreError::NotStored(_) => disk(error),
    }
}
