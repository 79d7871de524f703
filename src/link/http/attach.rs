//! A conversation that a server of ours runs and stores: what is said in it arrives as it happens, whoever says it, and
//! messages, answers and a stop go back.
//!
//! The server's records are mirrored with their turns, so all who are attached see the same. A connection that breaks is
//! opened again after the last record; nothing is sent twice by itself.

use std::{collections::VecDeque, future::Future, pin::Pin, sync::Arc, time::Duration};

use chrono::Utc;
use futures::StreamExt;
use serde_json::{Map, Value, json};
use tokio::{
    sync::mpsc,
    time::{sleep, timeout},
};

use super::{ASIDE, Settings, history, models};
use crate::{
    config::KeyError,
    journal::{EventLimit, Log, PollBudget},
    link::{About, AskError, Link},
    net::{
        client::{self, Client, Request},
        retry::{self, Advice, Decision, Tries},
        sse::{Frame, Frames},
    },
    os::lazy_channel,
    protocol::{
        ClarificationResponse, Command, ConversationId, Event, Notice, Position, Progress, Query, Reply, Severity,
        Submit, Turn,
        codec::{Failure, record},
    },
    transcript::Transcript,
};

/// Path of the stored conversations.
const CONVERSATIONS: &str = "api/v1/conversations";

/// Limit of an answer as one object, in bytes.
const OBJECT_LIMIT_BYTES: usize = 64 << 20;

/// As much of an error's body as is read.
const ERROR_LIMIT_BYTES: usize = 64 << 10;

/// Number of conversations that are listed.
const MAX_LISTED: usize = 1000;

/// Time after which a message is sent again that another one was faster than.
const BUSY_PAUSE: Duration = Duration::from_secs(1);

/// Bytes that are read before commands are heard again.
const PART_BYTES: usize = 16 << 10;

/// Why a server's conversations cannot be had. Each names the next step.
#[derive(Debug, thiserror::Error)]
pub enum AttachError {
    #[error(
        "{server} refuses the token\n  set SHEAF_TOKEN to the token of that server; the first lines of `sheaf serve` say \
         where it is"
    )]
    Token { server: String },
    #[error("{server} has no stored conversations: {message}\n  start it with `sheaf serve --stateful`")]
    NotStored { server: String, message: String },
    #[error("{server} has no conversation `{id}`\n  leave #{id} out to choose from the list")]
    Missing { server: String, id: String },
    #[error("{server} answered with status {status}: {message}\n  look at what the server printed")]
    Status {
        server: String,
        status: u16,
        message: String,
    },
    #[error("the answer of {server} cannot be read\n  the address has to be that of a `sheaf serve`")]
    Unreadable { server: String },
    #[error("{server} cannot be reached\n  start it with `sheaf serve --stateful`, or check the address")]
    Unreachable {
        server: String,
        #[source]
        source: client::Error,
    },
    #[error(transparent)]
    Key(#[from] KeyError),
}

/// A server that runs conversations.
#[derive(Clone)]
pub struct AttachServer {
    client: Client,
    settings: Arc<Settings>,
}

/// A conversation in a server's list.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ServedConversation {
    pub id: String,
    pub title: String,
    pub turns: u32,
    /// Time of the last change in milliseconds since the Unix epoch.
    pub changed_ms: u64,
}

impl AttachServer {
    /// Connects with the first request.
    pub fn new(settings: Settings) -> Result<Self, client::Error> {
        Ok(Self {
            client: settings.client()?,
            settings: Arc::new(settings),
        })
    }

    fn name(&self) -> String {
        self.client.name().to_owned()
    }

    /// Lists the conversations, the last changed one first.
    pub async fn list(&self) -> Result<Vec<ServedConversation>, AttachError> {
        let mut all = Vec::new();
        let mut after: Option<String> = None;
        while all.len() < MAX_LISTED {
            let mut request = Request::get(CONVERSATIONS).query("limit", "200");
            if let Some(after) = &after {
                request = request.query("after", after);
            }
            let page = self.object(request, None).await?;
            let entries = page.get("conversations").and_then(Value::as_array);
            let entries = entries.ok_or_else(|| AttachError::Unreadable { server: self.name() })?;
            all.extend(entries.iter().filter_map(listed));
            after = page.get("next").and_then(Value::as_str).map(str::to_owned);
            if after.is_none() {
                break;
            }
        }
        Ok(all)
    }

    /// Reads the last `count` turns of a conversation as an object of the server.
    pub async fn end_of(&self, conversation: &ServedConversation, count: u32) -> Result<Value, AttachError> {
        let after = conversation.turns.saturating_sub(count).to_string();
        let path = self.path(&conversation.id, "")?;
        self.object(Request::get(path).query("after", after), Some(&conversation.id))
            .await
    }

    /// Fails with the reason if there is no such conversation.
    pub async fn check(&self, id: &str) -> Result<(), AttachError> {
        let path = self.path(id, "")?;
        self.object(Request::get(path).query("limit", "1"), Some(id))
            .await
            .map(|_| ())
    }

    /// Path of a conversation's endpoint. An id that is no plain name is missing.
    fn path(&self, id: &str, end: &str) -> Result<String, AttachError> {
        below(id, end).ok_or_else(|| AttachError::Missing {
            server: self.name(),
            id: id.to_owned(),
        })
    }

    /// Requests an object. `id` is the conversation that it is about.
    async fn object(&self, request: Request, id: Option<&str>) -> Result<Value, AttachError> {
        let request = self.authorised(request.accept("application/json")).await?;
        let answer = self
            .client
            .open(request)
            .await
            .map_err(|source| self.unreachable(source))?;
        let status = answer.status.as_u16();
        if !answer.status.is_success() {
            let body = answer.body.beginning(ERROR_LIMIT_BYTES).await;
            return Err(self.refused(status, &String::from_utf8_lossy(&body), id));
        }
        let body = answer
            .body
            .read(OBJECT_LIMIT_BYTES)
            .await
            .map_err(|source| self.unreachable(source))?;
        serde_json::from_slice(&body).map_err(|_| AttachError::Unreadable { server: self.name() })
    }

    fn unreachable(&self, source: client::Error) -> AttachError {
        AttachError::Unreachable {
            server: self.name(),
            source,
        }
    }

    fn refused(&self, status: u16, body: &str, id: Option<&str>) -> AttachError {
        let server = self.name();
        let message = Failure::read(status, body).message;
        match (status, id) {
            (401 | 403, _) => AttachError::Token { server },
            (404, Some(id)) if !body.contains("--stateful") => AttachError::Missing {
                server,
                id: id.to_owned(),
            },
            (404, _) => AttachError::NotStored { server, message },
            _ => AttachError::Status {
                server,
                status,
                message,
            },
        }
    }

    async fn authorised(&self, request: Request) -> Result<Request, KeyError> {
        let token = self.settings.token.resolve(&self.settings.environment).await?;
        Ok(match token {
            Some(token) => request.bearer(token.expose()),
            None => request,
        })
    }

    /// Attaches to a conversation, on the current Tokio runtime. `None`: the first message begins a new one.
    pub fn attach(&self, id: Option<&str>) -> Attached {
        let log = Log::new();
        let name = self.client.name();
        let host = name.split_once("://").map_or(name, |(_, host)| host);
        let about = About {
            peer: format!("sheaf at {host}"),
            is_attached: true,
            model: self.settings.model.clone(),
            ..About::default()
        };
        let (commands, inbox) = lazy_channel::channel();
        let driver = Driver {
            server: self.clone(),
            log: Arc::clone(&log),
            inbox,
            sent: mpsc::unbounded_channel(),
            conversation: id.map(ConversationId::from),
            since: 0,
            flood: EventLimit::default(),
            queue: VecDeque::new(),
            sending: None,
            messages: 0,
            is_running: false,
        };
        tokio::spawn(driver.run());
        Attached {
            log,
            about,
            server: self.clone(),
            commands,
        }
    }
}

fn listed(value: &Value) -> Option<ServedConversation> {
    let number = |name: &str| value.get(name).and_then(Value::as_u64).unwrap_or_default();
    let text = |name: &str| value.get(name).and_then(Value::as_str).map(str::to_owned);
    Some(ServedConversation {
        id: text("id").filter(|it| history::is_plain_name(it))?,
        title: text("title").unwrap_or_default(),
        turns: u32::try_from(number("turns")).unwrap_or(u32::MAX),
        changed_ms: number("changed"),
    })
}

/// Path below a conversation; `None` for an id that is no plain name and could lead elsewhere.
fn below(id: &str, end: &str) -> Option<String> {
    history::is_plain_name(id).then(|| format!("{CONVERSATIONS}/{id}{end}"))
}

/// A link to a conversation of a server.
pub struct Attached {
    log: Arc<Log>,
    about: About,
    server: AttachServer,
    commands: lazy_channel::Outbox<Command>,
}

impl Link for Attached {
    fn log(&self) -> &Arc<Log> {
        &self.log
    }

    fn send(&self, command: Command) {
        // The driver ends only after this sender is gone.
        let _ = self.commands.send(command);
    }

    fn about(&self) -> About {
        self.about.clone()
    }

    fn ask(&self, query: Query) -> Pin<Box<dyn Future<Output = Result<Reply, AskError>> + Send>> {
        let (server, peer) = (self.server.clone(), self.about.peer.clone());
        Box::pin(async move {
            let Query::Models = query else {
                return Err(AskError::Unsupported { peer });
            };
            match timeout(ASIDE, models(&server.client, &server.settings)).await {
                Ok(Ok(Some(names))) => Ok(Reply::Models(names)),
                Ok(Ok(None)) => Err(AskError::Unsupported { peer }),
                Ok(Err(source)) => Err(AskError::Failed { peer, source }),
                Err(late) => Err(AskError::Failed {
                    peer,
                    source: late.into(),
                }),
            }
        })
    }
}

/// Result of sending a message.
struct Sent {
    submit: Submit,
    outcome: Result<Option<ConversationId>, SendFailure>,
}

enum SendFailure {
    /// Another message is being answered.
    Busy,
    Failed(String),
}

/// Why the stream was left.
enum Break {
    /// The link was dropped.
    Gone,
    /// Nothing is to be tried before the next command.
    Over(String),
    Broken(Failure, retry::Failure),
}

/// The task behind the link.
struct Driver {
    server: AttachServer,
    log: Arc<Log>,
    inbox: lazy_channel::Inbox<Command>,
    sent: (mpsc::UnboundedSender<Sent>, mpsc::UnboundedReceiver<Sent>),
    /// `None` before the first message of a new conversation.
    conversation: Option<ConversationId>,
    /// The last record's number at the server.
    since: u64,
    flood: EventLimit,
    /// Messages that wait for the end of the running answer.
    queue: VecDeque<Submit>,
    /// Number of messages in the conversation so far, whoever sent them, when a message of ours went on its way.
    sending: Option<u64>,
    messages: u64,
    is_running: bool,
}

impl Driver {
    async fn run(mut self) {
        let mut tries: Option<Tries> = None;
        loop {
            if self.conversation.is_none() {
                if !self.hear().await {
                    return;
                }
                continue;
            }
            let before = self.since;
            let broken = self.follow().await;
            if self.since > before {
                tries = None;
            }
            match broken {
                Break::Gone => return,
                Break::Over(message) => {
                    tries = None;
                    self.say(Severity::Error, "not-attached", message);
                    // The next command is a reason to try again.
                    if !self.hear().await {
                        return;
                    }
                }
                Break::Broken(failure, reason) => {
                    let now = Utc::now();
                    let so_far = *tries.get_or_insert(Tries::first(now));
                    match self.server.settings.retries.after_failure(so_far, &reason, 0.5, now) {
                        Decision::Wait { until, because } | Decision::Ask { until, because } => {
                            self.progress(Progress::Retrying {
                                attempt: so_far.retried + 1,
                                of: self.server.settings.retries.retries,
                                at_ms: u64::try_from(until.timestamp_millis()).unwrap_or_default(),
                                because,
                            });
                            tries = tries.map(|it| Tries {
                                retried: it.retried + 1,
                                ..it
                            });
                            let pause = sleep((until - now).to_std().unwrap_or_default());
                            tokio::pin!(pause);
                            loop {
                                tokio::select! {
                                    biased;
                                    is_on = self.hear() => if !is_on {
                                        return;
                                    },
                                    () = &mut pause => break,
                                }
                            }
                        }
                        Decision::GiveUp => {
                            tries = None;
                            self.progress(Progress::Idle);
                            let message = format!(
                                "the server is gone: {}; start it again, then send a message or press esc to attach again",
                                failure.message
                            );
                            self.say(Severity::Error, "not-attached", message);
                            if !self.hear().await {
                                return;
                            }
                        }
                    }
                }
            }
        }
    }

    /// Waits for a command or the outcome of a message, and deals with it. Returns false when the link was dropped.
    async fn hear(&mut self) -> bool {
        tokio::select! {
            biased;
            command = self.inbox.recv() => match command {
                Some(command) => self.obey(command),
                None => return false,
            },
            Some(sent) = self.sent.1.recv() => self.was_sent(sent),
        }
        true
    }

    /// Follows the conversation until the connection ends.
    async fn follow(&mut self) -> Break {
        let id = self.conversation.clone().unwrap_or_else(ConversationId::fresh);
        let Some(path) = below(id.as_str(), "/stream") else {
            return Break::Over(format!("`{id}` is no name of a conversation"));
        };
        let mut request = Request::get(path).accept("text/event-stream");
        if self.since > 0 {
            request = request.header("last-event-id", &self.since.to_string());
        }
        let server = self.server.clone();
        let mut opening = Box::pin(async move {
            let request = server.authorised(request).await.map_err(AttachError::from)?;
            let answer = server.client.open(request).await.map_err(|it| server.unreachable(it))?;
            Ok::<_, AttachError>(answer)
        });
        let opened = loop {
            tokio::select! {
                biased;
                is_on = self.hear() => if !is_on {
                    return Break::Gone;
                },
                opened = &mut opening => break opened,
            }
        };
        let answer = match opened {
            Ok(answer) if answer.status.is_success() => answer,
            Ok(answer) => {
                let status = answer.status.as_u16();
                let advice = Advice::of(&answer.headers, Utc::now());
                let body = answer.body.beginning(ERROR_LIMIT_BYTES).await;
                let body = String::from_utf8_lossy(&body);
                let error = self.server.refused(status, &body, Some(id.as_str()));
                if matches!(status, 401 | 403 | 404) {
                    return Break::Over(one_line(&error));
                }
                let failure = Failure::read(status, &body);
                let words = format!("{} {}", failure.code, failure.message);
                return Break::Broken(failure, retry::Failure::Status { status, words, advice });
            }
            Err(AttachError::Unreachable { source, .. }) => return broken(&source),
            Err(error) => return Break::Over(one_line(&error)),
        };
        self.progress(Progress::Idle);
        self.read(answer.body).await
    }

    /// Reads a stream of records.
    async fn read(&mut self, mut body: client::Body) -> Break {
        let mut frames = Frames::new();
        let mut stint = PollBudget::default();
        loop {
            let piece = tokio::select! {
                biased;
                is_on = self.hear() => if is_on {
                    continue;
                } else {
                    return Break::Gone;
                },
                piece = body.next() => piece,
            };
            let mut piece = match piece {
                Some(Ok(piece)) => piece,
                // What was read is not read again: to go on is always worth a try.
                Some(Err(error)) => {
                    let words = error.to_string().lines().next().unwrap_or_default().to_owned();
                    return Break::Broken(Failure::read(503, &words), retry::Failure::Connection(words));
                }
                // The server stops, or it closed an idle connection.
                None => {
                    let failure = Failure::read(503, "");
                    let reason = retry::Failure::Connection("the server closed the connection".to_owned());
                    return Break::Broken(failure, reason);
                }
            };
            while !piece.is_empty() {
                let part = piece.split_to(piece.len().min(PART_BYTES));
                for frame in frames.push(&part) {
                    let taken = match frame {
                        Ok(frame) => self.take(&frame),
                        Err(error) => Err(error.to_string()),
                    };
                    if let Err(message) = taken {
                        return Break::Over(message);
                    }
                }
                if stint.spend(part.len()) {
                    stint.pause().await;
                }
            }
        }
    }

    /// Mirrors a record. Error: the conversation cannot be followed further.
    fn take(&mut self, frame: &Frame) -> Result<(), String> {
        match frame.event.as_deref() {
            Some("record") => {}
            Some("reset") => {
                // The server was killed: what it had not stored is void, and its numbers are given again.
                let last = frame.id.as_deref().and_then(|it| it.parse().ok());
                self.since = last.unwrap_or(self.since);
                return Ok(());
            }
            _ => return Ok(()),
        }
        let Ok(members) = serde_json::from_str::<Map<String, Value>>(&frame.data) else {
            return Ok(());
        };
        // A newer server may have records that this version cannot read.
        let Ok(entry) = record::from_json(members) else {
            return Ok(());
        };
        if entry.position.0 <= self.since || matches!(entry.event, Event::Told(_)) {
            return Ok(());
        }
        self.since = entry.position.0;
        match &entry.event {
            Event::UserMessage(_) => {
                self.flood = EventLimit::default();
                self.messages += 1;
                self.is_running = true;
            }
            Event::Done(_) => self.is_running = false,
            _ => {}
        }
        if self.flood.count(&entry.event).is_err() {
            return Err("the answer has too many events to store".to_owned());
        }
        self.log.mirror(entry);
        self.send_next();
        Ok(())
    }

    fn obey(&mut self, command: Command) {
        match command {
            // A message joins no running answer: it comes next.
            Command::Submit(submit) | Command::Begin(submit) | Command::Steer(submit) => {
                self.queue.push_back(submit);
                self.send_next();
            }
            Command::Answer { turn, response } => self.answer(turn, response),
            Command::Cancel => {
                let path = self.conversation.as_ref().and_then(|it| below(it.as_str(), "/cancel"));
                if let Some(path) = path.filter(|_| self.is_running) {
                    self.post(path, "{}".to_owned(), "the answer was not stopped");
                }
            }
            Command::Record(notice) => {
                self.log.append(now_ms(), Event::Notice(notice));
            }
            Command::Next | Command::Restrict(_) | Command::Background => {}
            Command::Run { .. }
            | Command::RepeatCall { .. }
            | Command::StopCommand { .. }
            | Command::Compact { .. }
            | Command::Rename(_)
            | Command::Update { .. }
            | Command::SwitchBranch(_)
            | Command::Restore(_) => self.say(
                Severity::Warning,
                "not-here",
                "an attached screen sends messages, answers and a stop; the rest belongs to the server".to_owned(),
            ),
        }
    }

    /// Answers a question of the running turn, or with the next message.
    fn answer(&mut self, turn: Turn, response: ClarificationResponse) {
        let path = self.conversation.as_ref().and_then(|it| below(it.as_str(), "/input"));
        if let Some(path) = path.filter(|_| self.is_running) {
            return self.post(
                path,
                json!(response).to_string(),
                "the answer did not reach the server; answer again",
            );
        }
        let transcript = Transcript::from_entries(&self.log.after(Position(0)));
        let exchange = transcript.exchange_of(turn);
        let Some(document) = exchange.and_then(|it| it.response.get(&response.document_id)) else {
            return;
        };
        let mode = exchange.and_then(|it| it.response.mode).unwrap_or_default();
        self.queue.push_front(Submit {
            message: history::answering(document, response),
            mode,
            model: self.server.settings.model.clone(),
        });
        self.send_next();
    }

    /// Posts something beside the messages; a failure is a notice that begins with `otherwise`.
    fn post(&self, path: String, body: String, otherwise: &'static str) {
        let (server, log) = (self.server.clone(), Arc::clone(&self.log));
        tokio::spawn(async move {
            let id = None;
            let posted = timeout(ASIDE, server.object(Request::post(path, body), id)).await;
            let failed = match posted {
                Ok(Ok(_)) => return,
                Ok(Err(error)) => one_line(&error),
                Err(_) => "no reply".to_owned(),
            };
            let notice = Notice::new(Severity::Error, "not-sent", format!("{otherwise}: {failed}"));
            log.append(now_ms(), Event::Notice(notice));
        });
    }

    /// Sends the next message that waits, if no answer is running.
    fn send_next(&mut self) {
        if self.is_running || self.sending.is_some() {
            return;
        }
        let Some(submit) = self.queue.pop_front() else { return };
        self.sending = Some(self.messages);
        let (server, sender, conversation) = (self.server.clone(), self.sent.0.clone(), self.conversation.clone());
        tokio::spawn(async move {
            let outcome = server.say(&submit, conversation).await;
            if matches!(outcome, Err(SendFailure::Busy)) {
                sleep(BUSY_PAUSE).await;
            }
            // Nobody hears it when the link is gone.
            let _ = sender.send(Sent { submit, outcome });
        });
    }

    fn was_sent(&mut self, sent: Sent) {
        let before = self.sending.take();
        match sent.outcome {
            Ok(conversation) => {
                // Its record may come a moment later, or the whole answer may be there already.
                self.is_running |= before == Some(self.messages);
                self.conversation = self.conversation.take().or(conversation);
            }
            Err(SendFailure::Busy) => {
                self.queue.push_front(sent.submit);
                self.send_next();
            }
            Err(SendFailure::Failed(message)) => {
                self.say(
                    Severity::Error,
                    "not-sent",
                    format!("the message was not sent: {message}"),
                );
                self.send_next();
            }
        }
    }

    fn say(&self, severity: Severity, code: &str, message: String) {
        self.log
            .append(now_ms(), Event::Notice(Notice::new(severity, code, message)));
    }

    fn progress(&self, progress: Progress) {
        self.log.append(now_ms(), Event::Progress(progress));
    }
}

impl AttachServer {
    /// Sends a message and returns the conversation's name, which the server chooses for a new one. Its answer is read
    /// by the stream.
    async fn say(
        &self,
        submit: &Submit,
        conversation: Option<ConversationId>,
    ) -> Result<Option<ConversationId>, SendFailure> {
        let failed = |error: &dyn std::error::Error| SendFailure::Failed(one_line(error));
        let mut body = json!({
            "mode": submit.mode,
            "stream": true,
            "messages": [submit.message],
        });
        if let Some(model) = submit.model.as_ref().or(self.settings.model.as_ref()) {
            body["model"] = model.as_str().into();
        }
        if let Some(conversation) = &conversation {
            body["conversationId"] = conversation.as_str().into();
        }
        let request = Request::post(history::COMPLETIONS, body.to_string()).accept("text/event-stream");
        let request = self.authorised(request).await.map_err(|it| failed(&it))?;
        let answer = self
            .client
            .open(request)
            .await
            .map_err(|it| failed(&self.unreachable(it)))?;
        let status = answer.status.as_u16();
        if status == 409 {
            return Err(SendFailure::Busy);
        }
        if !answer.status.is_success() {
            let body = answer.body.beginning(ERROR_LIMIT_BYTES).await;
            let id = conversation.as_ref().map(ConversationId::as_str);
            return Err(failed(&self.refused(status, &String::from_utf8_lossy(&body), id)));
        }
        if conversation.is_some() {
            return Ok(conversation);
        }
        let (mut frames, mut body) = (Frames::new(), answer.body);
        while let Some(Ok(piece)) = body.next().await {
            for frame in frames.push(&piece).into_iter().flatten() {
                let data: Option<Value> = serde_json::from_str(&frame.data).ok();
                let id = data.as_ref().and_then(|it| it.get("conversationId")?.as_str());
                if let Some(id) = id {
                    return Ok(Some(ConversationId::from(id)));
                }
            }
        }
        Err(SendFailure::Failed(
            "the server named no conversation; start it with `sheaf serve --stateful`".to_owned(),
        ))
    }
}

fn broken(error: &client::Error) -> Break {
    let message = error.to_string();
    let failure = Failure::read(503, message.lines().next().unwrap_or_default());
    Break::Broken(failure, retry::Failure::from(error))
}

/// An error with its hint in one line.
fn one_line(error: &dyn std::error::Error) -> String {
    let text = error.to_string();
    let lines = text.lines().map(str::trim).filter(|it| !it.is_empty());
    lines.collect::<Vec<_>>().join("; ")
}

fn now_ms() -> u64 {
    u64::try_from(Utc::now().timestamp_millis()).unwrap_or_default()
}
