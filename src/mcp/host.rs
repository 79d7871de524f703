//! Our side of a connection: what a server may ask of us and tell us beside its answers.

use std::{
    collections::{HashMap, VecDeque},
    path::PathBuf,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use futures::future::BoxFuture;
use serde_json::{Value, json};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc, watch};

use crate::text::sanitize;

/// Lines of a server's log that are kept.
const LOG_LINES: usize = 200;
/// Characters of a line of it.
const LOG_CHARS: usize = 500;
/// Questions of one server that may be open at once.
const MOST_OPEN: usize = 8;
/// Requests of one server that may be unanswered at once; more are dropped.
const MOST_REQUESTS: usize = 32;

/// Progress of a call, as the server tells it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Progress {
    pub progress: f64,
    pub total: Option<f64>,
    pub message: Option<String>,
}

/// A question of a server for the user (`elicitation/create`), as it came.
#[derive(Clone, Debug, PartialEq)]
pub struct Ask {
    pub server: String,
    pub params: Value,
}

/// The user's answer to a question, as the protocol has it: `{action, content?}`.
pub type Asked = Value;

/// Puts a question to the user.
pub type Asker = Arc<dyn Fn(Ask) -> BoxFuture<'static, Asked> + Send + Sync>;

/// Lists that a server said to have changed, each counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Changes {
    pub tools: u64,
    pub prompts: u64,
    pub resources: u64,
}

/// Our side of one server.
pub struct Host {
    server: String,
    /// Folders that a server of the handshake era is told.
    roots: Vec<PathBuf>,
    pub changes: watch::Sender<Changes>,
    places: Arc<Semaphore>,
    state: Mutex<HostState>,
}

#[derive(Default)]
struct HostState {
    log: VecDeque<String>,
    /// Where the progress of a call goes, by its token.
    progress: HashMap<u64, mpsc::UnboundedSender<Progress>>,
    asker: Option<Asker>,
    open: usize,
}

impl Host {
    /// The side of the server with this name.
    pub fn new(server: &str, roots: Vec<PathBuf>) -> Self {
        Self {
            server: server.to_owned(),
            roots,
            changes: watch::Sender::default(),
            places: Arc::new(Semaphore::new(MOST_REQUESTS)),
            state: Mutex::default(),
        }
    }

    fn state(&self) -> MutexGuard<'_, HostState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Questions go there from now on; `None`: nobody can be asked, and they are declined.
    pub fn set_asker(&self, asker: Option<Asker>) {
        self.state().asker = asker;
    }

    /// A place for a request of the server's, until it is answered; `None`, with a line in the log: too many are open.
    pub fn admit(&self) -> Option<OwnedSemaphorePermit> {
        let place = Arc::clone(&self.places).try_acquire_owned().ok();
        if place.is_none() {
            self.log("a request was dropped: too many are unanswered");
        }
        place
    }

    /// Returns true if questions reach somebody.
    pub fn can_ask(&self) -> bool {
        self.state().asker.is_some()
    }

    /// Returns true while a question of the server's is open.
    pub fn is_asking(&self) -> bool {
        self.state().open > 0
    }

    /// Keeps a line of the server's log, made harmless.
    pub fn log(&self, line: &str) {
        let line: String = line.chars().take(LOG_CHARS).collect();
        let line = sanitize(line.trim_end()).into_owned();
        if line.trim().is_empty() {
            return;
        }
        let mut state = self.state();
        if state.log.len() >= LOG_LINES {
            state.log.pop_front();
        }
        state.log.push_back(line);
    }

    /// The lines of the log that are kept, the oldest first.
    pub fn logged(&self) -> Vec<String> {
        self.state().log.iter().cloned().collect()
    }

    /// The last line of the log; empty without one.
    pub fn last_line(&self) -> String {
        self.state().log.back().cloned().unwrap_or_default()
    }

    /// Sends the progress of the call with this token there, until [`Self::forget`].
    pub fn follow(&self, token: u64, to: mpsc::UnboundedSender<Progress>) {
        self.state().progress.insert(token, to);
    }

    /// The call has ended.
    pub fn forget(&self, token: u64) {
        self.state().progress.remove(&token);
    }

    /// Takes a notification.
    pub fn hear(&self, method: &str, params: &Value) {
        match method {
            "notifications/tools/list_changed" => self.changes.send_modify(|it| it.tools += 1),
            "notifications/prompts/list_changed" => self.changes.send_modify(|it| it.prompts += 1),
            "notifications/resources/list_changed" => self.changes.send_modify(|it| it.resources += 1),
            "notifications/message" => {
                let level = params.get("level").and_then(Value::as_str).unwrap_or("info");
                let text = match params.get("data") {
                    Some(Value::String(text)) => text.clone(),
                    Some(other) => other.to_string(),
                    None => String::new(),
                };
                self.log(&format!("{level}: {text}"));
            }
            "notifications/progress" => {
                let token = params.get("progressToken");
                let token = token.and_then(|it| it.as_u64().or_else(|| it.as_str()?.parse().ok()));
                let Some(to) = token.and_then(|it| self.state().progress.get(&it).cloned()) else {
                    return;
                };
                let text = params.get("message").and_then(Value::as_str);
                let text = text.map(|it| sanitize(&it.chars().take(LOG_CHARS).collect::<String>()).into_owned());
                let _ = to.send(Progress {
                    progress: params.get("progress").and_then(Value::as_f64).unwrap_or_default(),
                    total: params.get("total").and_then(Value::as_f64),
                    message: text,
                });
            }
            _ => {}
        }
    }

    /// The answer to a request of the server's. Everything is answered: some servers wait for it before they end.
    pub async fn answer(self: &Arc<Self>, method: &str, params: Value) -> Result<Value, (i64, &'static str)> {
        match method {
            "ping" => Ok(json!({})),
            "roots/list" => Ok(self.roots_list()),
            "elicitation/create" => self.ask(params).await,
            _ => Err((super::message::RpcError::METHOD, "this client does not do that")),
        }
    }

    /// The folders that a server is told.
    pub fn roots_list(&self) -> Value {
        let root = |it: &PathBuf| {
            let uri = url::Url::from_file_path(it).map_or_else(|()| String::new(), |it| it.to_string());
            let name = it.file_name().unwrap_or_default().to_string_lossy();
            json!({ "uri": uri, "name": name })
        };
        json!({ "roots": self.roots.iter().map(root).collect::<Vec<_>>() })
    }

    /// Puts a question of the server's to the user.
    pub async fn ask(self: &Arc<Self>, params: Value) -> Result<Value, (i64, &'static str)> {
        let asker = {
            let mut state = self.state();
            if state.open >= MOST_OPEN {
                return Err((-32603, "too many questions are open"));
            }
            let Some(asker) = state.asker.clone() else {
                return Ok(json!({ "action": "decline" }));
            };
            state.open += 1;
            asker
        };
        // However this ends, the question is not open any more.
        let _open = Open(Arc::clone(self));
        let ask = Ask {
            server: self.server.clone(),
            params,
        };
        Ok(asker(ask).await)
    }
}

/// An open question.
struct Open(Arc<Host>);

impl Drop for Open {
    fn drop(&mut self) {
        let mut state = self.0.state();
        state.open = state.open.saturating_sub(1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn every_request_of_a_server_is_answered() {
        let host = Arc::new(Host::new("s", vec!["/work/a b".into()]));
        assert_eq!(host.answer("ping", Value::Null).await, Ok(json!({})));
        assert_eq!(
            host.answer("roots/list", Value::Null).await,
            Ok(json!({ "roots": [{ "uri": "file:///work/a%20b", "name": "a b" }] }))
        );
        // Nobody can be asked.
        assert_eq!(
            host.answer("elicitation/create", json!({})).await,
            Ok(json!({ "action": "decline" }))
        );
        let refused = host.answer("sampling/createMessage", json!({})).await;
        assert_eq!(refused.map_err(|it| it.0), Err(-32601));
    }

    #[test]
    fn a_log_is_bounded_and_harmless() {
        let host = Host::new("s", Vec::new());
        for number in 0..1000 {
            host.log(&format!("\u{1b}[31mline\u{202e} {number}{}", "x".repeat(2000)));
        }
        let log = host.logged();
        assert_eq!(log.len(), LOG_LINES);
        assert!(
            log.iter()
                .all(|it| it.chars().count() <= LOG_CHARS && !it.contains(['\u{1b}', '\u{202e}']))
        );
        assert!(host.last_line().starts_with("line 999"), "{}", host.last_line());
    }
}
