//! State that all request handlers share, and reading a request's body.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use axum::{body::Body, http::StatusCode};
use bytes::BytesMut;
use http_body_util::BodyExt;
use serde_json::Value;
use tokio::{
    runtime::Handle,
    sync::{OwnedSemaphorePermit, Semaphore, watch},
    time::{sleep, timeout},
};

use super::{
    Limits, Opener, auth::AccessPolicy, refusal::Refusal, registry::ResponseRegistry, sessions::Conversations,
};
use crate::os::{long_text::release_pages, memory_trim::trim_when_worth};

/// State shared by all request handlers.
pub struct ServerState {
    pub access: AccessPolicy,
    pub open: Box<Opener>,
    /// Called once for each request, after its response has been sent or abandoned.
    pub log_access: Box<dyn Fn(&AccessRecord) + Send + Sync>,
    /// One permit for each answer that may run.
    pub answers: Arc<Semaphore>,
    pub responses: ResponseRegistry,
    /// `None` for a stateless gateway.
    pub conversations: Option<Conversations>,
    /// Time that the turn of a stored conversation continues after its last reader has left.
    pub linger: Duration,
    /// Time that any other stream continues after its last reader has left.
    pub grace: Duration,
    /// Models that requests may name. Empty: any.
    pub models: Vec<String>,
    /// Names of the tools that the agent may use here.
    pub tools: Vec<String>,
    /// True if clients may undo what the agent did to files.
    pub can_undo: bool,
    pub limits: Limits,
    /// Turns true once, when the server shuts down.
    pub stop: watch::Receiver<bool>,
    /// True from the end of an answer or a request until free memory has been returned to the system.
    pub is_trim_due: AtomicBool,
}

/// Time from the end of an answer or a request until free memory is returned, together with that of others.
const TRIM_DELAY: Duration = Duration::from_secs(3);

impl ServerState {
    /// Takes a permit for one running answer. Refused with 503 if all are taken.
    pub fn acquire_stream(&self) -> Result<Arc<OwnedSemaphorePermit>, Refusal> {
        let permit = Arc::clone(&self.answers).try_acquire_owned();
        permit.map(Arc::new).map_err(|_| {
            Refusal::new(StatusCode::SERVICE_UNAVAILABLE, "too many answers are running")
                .details("`serve.max_streams` says how many may")
                .after_seconds(5)
        })
    }

    /// Refuses a model that is not on the list of those that requests may name, with 400.
    pub fn check_model(&self, model: &str) -> Result<(), Refusal> {
        if self.models.is_empty() || self.models.iter().any(|it| it == model) {
            return Ok(());
        }
        let known = format!(
            "known are: {}; without a name it is the gateway's own",
            self.models.join(", ")
        );
        Err(Refusal::new(StatusCode::BAD_REQUEST, "this model cannot be named here")
            .details(known)
            .param("model"))
    }

    /// Returns free memory to the system after [`TRIM_DELAY`].
    pub fn trim_soon(self: &Arc<Self>) {
        // Without a runtime the program ends.
        let Ok(runtime) = Handle::try_current() else { return };
        if self.is_trim_due.swap(true, Ordering::Relaxed) {
            return;
        }
        let state = Arc::clone(self);
        runtime.spawn(async move {
            sleep(TRIM_DELAY).await;
            state.is_trim_due.store(false, Ordering::Relaxed);
            // An error means that it panicked, and then no memory was returned.
            let trimmed = tokio::task::spawn_blocking(|| {
                release_pages();
                trim_when_worth();
            });
            let _ = trimmed.await;
        });
    }

    /// Removes responses and conversations that nobody used for long, and returns their memory to the system.
    pub async fn sweep(self: &Arc<Self>) {
        self.responses.sweep();
        self.trim_soon();
        if let Some(conversations) = &self.conversations {
            conversations.sweep(self.limits.retention).await;
        }
    }
}

/// A finished request, for the access log. It contains nothing of the conversation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AccessRecord {
    pub method: String,
    /// Path without the query. The client wrote it: sanitize it before printing.
    pub path: String,
    /// HTTP status; 499 if the client left before an answer.
    pub status: u16,
    /// Time until the last byte of the answer was handed to the socket.
    pub took: Duration,
}

/// Refuses a body of more than `limit_bytes`, with 413.
pub fn too_large(limit_bytes: usize) -> Refusal {
    let limit = if limit_bytes >= 1 << 20 {
        format!("{} MiB", limit_bytes >> 20)
    } else {
        format!("{limit_bytes} bytes")
    };
    Refusal::new(
        StatusCode::PAYLOAD_TOO_LARGE,
        format!("a body may not be larger than {limit}"),
    )
    .closing()
}

/// Reads a whole JSON body. Refused with 400 if it is no JSON or breaks off, 408 if it is too slow, 413 above
/// `limit_bytes`.
pub async fn read(state: &ServerState, body: Body, limit_bytes: usize) -> Result<Value, Refusal> {
    let reading = async {
        let mut body = body;
        let mut bytes = BytesMut::new();
        while let Some(frame) = body.frame().await {
            let frame = frame.map_err(|_| Refusal::new(StatusCode::BAD_REQUEST, "the body broke off").closing())?;
            if let Ok(data) = frame.into_data() {
                if bytes.len() + data.len() > limit_bytes {
                    return Err(too_large(limit_bytes));
                }
                bytes.extend_from_slice(&data);
            }
        }
        Ok(bytes)
    };
    let bytes = timeout(state.limits.body_time, reading).await.map_err(|_| {
        let seconds = state.limits.body_time.as_secs();
        Refusal::new(
            StatusCode::REQUEST_TIMEOUT,
            format!("the body did not come within {seconds} s"),
        )
        .closing()
    })??;
    serde_json::from_slice(&bytes)
        .map_err(|error| Refusal::new(StatusCode::BAD_REQUEST, "the body is not JSON").details(error.to_string()))
}
