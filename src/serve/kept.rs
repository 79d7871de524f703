//! The conversations that a stateful gateway keeps: in memory while they are used, on the disk always.
//!
//! A conversation has one link, so that the agent knows what it has read and what it was allowed. When a request changes
//! what the link was opened with (its tools), the conversation is read from the disk again, as after a restart.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use axum::http::StatusCode;
use serde_json::Value;
use tokio::time::{Instant, timeout};

use super::{Opener, Wanted, refusal::Refusal, talk, turn::Turning};
use crate::{
    journal::{
        Log,
        file::{Recorder, Session, Store, StoreError},
    },
    link::{Asker, Link},
    protocol::{ConversationId, Request, Role},
};

/// So many conversations are in memory at a time; those that are used stay.
const MOST: usize = 256;

/// An answer that gives way to a message does so at once.
const GIVING_WAY: Duration = Duration::from_secs(10);

pub struct Kept {
    store: Store,
    /// Held while a conversation is opened, so that none is opened twice.
    here: tokio::sync::Mutex<HashMap<ConversationId, Arc<Conversation>>>,
}

pub struct Conversation {
    pub id: ConversationId,
    pub link: Arc<dyn Link>,
    wanted: (Value, Asker),
    use_: Mutex<Use>,
    recorder: Mutex<Option<Recorder>>,
}

struct Use {
    /// The last answer, which may be running.
    answer: Option<Arc<Turning>>,
    /// A message is about to be sent.
    is_taken: bool,
    since: Instant,
}

/// The right to send one message to a conversation.
pub struct Claim(Arc<Conversation>);

impl Claim {
    pub fn conversation(&self) -> &Arc<Conversation> {
        &self.0
    }

    /// From here on this answer is what others have to wait for.
    pub fn answers(self, turning: &Arc<Turning>) {
        self.0.lock().answer = Some(Arc::clone(turning));
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
    fn lock(&self) -> MutexGuard<'_, Use> {
        self.use_.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn is_idle(&self) -> bool {
        let state = self.lock();
        !state.is_taken && state.answer.as_ref().is_none_or(|it| it.has_ended())
    }

    /// Nobody else is answered meanwhile.
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
            if !running.gives_way() {
                return Err(busy(Some(&running)));
            }
            if timeout(GIVING_WAY, running.ended()).await.is_err() {
                return Err(busy(Some(&running)));
            }
        }
    }

    /// Everything is on the disk when this returns. Blocks.
    fn finish(&self) {
        let recorder = self.recorder.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(recorder) = recorder {
            recorder.finish();
        }
    }
}

fn busy(running: Option<&Arc<Turning>>) -> Refusal {
    let refusal = Refusal::new(StatusCode::CONFLICT, "the conversation is being answered").after_seconds(1);
    match running {
        Some(it) => refusal.details(format!(
            "{} is running: read it at /api/v1/chat/responses/{}/stream, or cancel it",
            it.identity.id, it.identity.id
        )),
        None => refusal.details("another message was a moment earlier"),
    }
}

impl Kept {
    pub fn new(store: Store) -> Self {
        Self {
            store,
            here: tokio::sync::Mutex::default(),
        }
    }

    /// The conversation that a request goes on with, or begins.
    pub async fn enter(&self, request: &Request, asker: Asker, open: &Opener, now_ms: u64) -> Result<Claim, Refusal> {
        // Whoever sends answers along sends the whole conversation: it is taken as it comes, beside what is kept.
        let is_whole = request.messages.iter().any(|it| it.role == Role::Assistant);
        let known = request.conversation_id.as_ref().filter(|_| !is_whole);
        let mut here = self.here.lock().await;
        let Some(id) = known else {
            let id = ConversationId::fresh();
            let mut request = request.clone();
            request.conversation_id = Some(id.clone());
            let log = talk::before(&request, now_ms);
            let session = Session {
                id: id.as_str().to_owned(),
                created: now_ms,
                workspace: String::new(),
                version: env!("CARGO_PKG_VERSION").to_owned(),
            };
            let recorder = self.store.record(session, &log).map_err(|error| disk(&error))?;
            return self.begin(&mut here, &request, asker, log, recorder, open).await;
        };
        if let Some(conversation) = here.get(id).cloned() {
            let claim = conversation.claim().await?;
            if conversation.wanted == wanted(request, asker, &*conversation.link)
                && !conversation.link.log().is_closed()
            {
                return Ok(claim);
            }
            here.remove(id);
            blocking(move || conversation.finish()).await;
        }
        let (store, name) = (self.store.clone(), id.as_str().to_owned());
        let resumed = blocking(move || store.resume(&name, now_ms)).await;
        let resumed = match resumed {
            Some(Ok(resumed)) => resumed,
            Some(Err(error)) => return Err(not_resumed(&error)),
            None => {
                return Err(Refusal::new(
                    StatusCode::INTERNAL_SERVER_ERROR,
                    "the conversation could not be read",
                ));
            }
        };
        self.begin(&mut here, request, asker, resumed.log, resumed.recorder, open)
            .await
    }

    async fn begin(
        &self,
        here: &mut HashMap<ConversationId, Arc<Conversation>>,
        request: &Request,
        asker: Asker,
        log: Arc<Log>,
        recorder: Recorder,
        open: &Opener,
    ) -> Result<Claim, Refusal> {
        let link = super::open(open, &Wanted { request, asker }, log)?;
        let wanted = wanted(request, asker, &*link);
        let id = request.conversation_id.clone().unwrap_or_else(ConversationId::fresh);
        let conversation = Arc::new(Conversation {
            id: id.clone(),
            link,
            wanted,
            use_: Mutex::new(Use {
                answer: None,
                is_taken: false,
                since: Instant::now(),
            }),
            recorder: Mutex::new(Some(recorder)),
        });
        here.insert(id, Arc::clone(&conversation));
        conversation.claim().await
    }

    /// Puts conversations away that nobody used for so long; their files stay.
    pub async fn sweep(&self, keep: Duration) {
        let mut here = self.here.lock().await;
        let mut idle: Vec<_> = here
            .values()
            .filter(|it| it.is_idle())
            .map(|it| (it.lock().since, it.id.clone()))
            .collect();
        idle.sort_unstable_by_key(|it| it.0);
        let too_many = here.len().saturating_sub(MOST);
        let old = idle
            .into_iter()
            .enumerate()
            .filter(|(at, (since, _))| *at < too_many || since.elapsed() > keep);
        let old: Vec<_> = old.filter_map(|(_, (_, id))| here.remove(&id)).collect();
        // Before anybody opens one of them again.
        if !old.is_empty() {
            blocking(move || old.iter().for_each(|it| it.finish())).await;
        }
    }

    /// Everything that was said is on the disk when this returns.
    pub async fn finish(&self) {
        let all: Vec<_> = self.here.lock().await.drain().map(|(_, it)| it).collect();
        blocking(move || all.iter().for_each(|it| it.finish())).await;
    }
}

/// What a link was opened with and cannot be changed.
fn wanted(request: &Request, asker: Asker, link: &dyn Link) -> (Value, Asker) {
    let context = request.context.as_ref().filter(|_| !link.about().reads_context);
    (
        serde_json::json!([request.tools, request.available_tools, context]),
        asker,
    )
}

async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Option<T> {
    // It fails only when the work panics, which has been reported.
    tokio::task::spawn_blocking(work).await.ok()
}

fn disk(error: &dyn std::error::Error) -> Refusal {
    Refusal::new(StatusCode::INTERNAL_SERVER_ERROR, "the conversation cannot be kept").details(error.to_string())
}

fn not_resumed(error: &StoreError) -> Refusal {
    match error {
        StoreError::Missing { .. } => Refusal::new(StatusCode::NOT_FOUND, "no conversation of that name is kept here")
            .details("leave `conversationId` out to begin one, or send all of its messages"),
        StoreError::Held { .. } => Refusal::new(StatusCode::CONFLICT, error.to_string()),
        StoreError::Newer { .. } | StoreError::Failed { .. } => disk(error),
    }
}
