//! The task behind the link: takes commands, asks the gateway, writes the log.
//!
//! Every wait goes through [`Driver::meanwhile`], which hears commands at the same time. So a turn can be stopped in
//! every state, and stopping drops the request, which closes the connection.

use std::{
    collections::{HashSet, VecDeque},
    sync::Arc,
    time::Duration,
};

use bytes::Bytes;
use chrono::{DateTime, TimeDelta, Utc};
use futures::StreamExt;
use serde_json::{Map, Value, json};
use tokio::{
    sync::mpsc,
    time::{sleep, timeout},
};

use super::{
    Settings,
    context::ContextSearch,
    history::{self, Ask, History},
};
use crate::{
    config::Secret,
    journal::{Cut, EventLimit, Log, PollBudget, Raw, Recent, Sent, TooMany, closing},
    net::{
        client::{self, Body, Client, Request},
        retry::{self, Advice, Decision, Tries},
        sse::{Frame, FrameError, Frames},
    },
    os::lazy_channel,
    protocol::{
        ClarificationResponse, Command, ConversationId, Document, DocumentId, Event, Message, Mode, Notice, Outcome,
        Position, Progress, Response, ResponseId, Severity, Submit, Title, Turn,
        codec::{Breach, Decoder, Failure, Identity, Limits},
    },
    text::figure,
    transcript::Transcript,
};

/// Connecting takes no longer on most days; then it is the answer that is waited for.
const CONNECTING: Duration = Duration::from_millis(300);

/// A silence in mid-answer that the user should know of, and how often it is looked for.
const STALLED: Duration = Duration::from_secs(10);
const STALL_CHECK: Duration = Duration::from_secs(5);

/// The longest pause a gateway is granted while somebody watches the countdown.
const LONGEST_PAUSE: Duration = Duration::from_mins(10);

/// Time limit for delivering an answer to a question, or a cancellation.
const ASIDE: Duration = Duration::from_secs(5);

/// Requests for one message or answer of a user, if nobody watches: a gateway that asks or fails without end is left alone.
const MAX_UNATTENDED_REQUESTS: u32 = 20;

/// As much of an error's body as is read.
const ERROR_LIMIT_BYTES: usize = 64 << 10;

/// As much of an answer without a known type as is looked at.
const SNIFF_LIMIT_BYTES: usize = 4 << 10;

/// Bytes that are read before commands are heard again.
const PART_BYTES: usize = 16 << 10;

/// Time for reading the rest of a stream after its end, so that the connection can be reused.
const LEFTOVERS: Duration = Duration::from_secs(1);

/// Reason why a turn stops.
enum Stop {
    /// The user's wish.
    Cancelled,
    /// The link was dropped.
    Gone,
}

/// Result of one attempt.
enum Attempt {
    /// The answer begins.
    Answered(client::Response),
    /// The answer is in the log already.
    Over,
    /// Failed before the first byte of an answer.
    Refused(Failure, retry::Failure),
    /// The gateway has to be asked in another way.
    Otherwise(Failure),
}

/// Result of delivering an answer to a question.
struct AnswerDelivery {
    turn: Turn,
    document: DocumentId,
    failed: Option<String>,
}

type Deliveries = (
    mpsc::UnboundedSender<Box<AnswerDelivery>>,
    mpsc::UnboundedReceiver<Box<AnswerDelivery>>,
);

/// The next answer that was delivered or not; waits forever while there is none.
async fn delivered(handed: &mut Option<Deliveries>) -> Option<Box<AnswerDelivery>> {
    match handed {
        Some((_, deliveries)) => deliveries.recv().await,
        None => std::future::pending().await,
    }
}

/// The task behind a link to a gateway: sends commands, and appends the answers to the log.
pub struct Driver {
    client: Client,
    settings: Arc<Settings>,
    log: Arc<Log>,
    inbox: lazy_channel::Inbox<Command>,
    /// Answers that are being delivered. `None` before the first one.
    handed: Option<Deliveries>,
    /// Messages that wait for their turn.
    queue: VecDeque<Submit>,
    history: History,
    /// Turns before this one are on disk, and not in the history.
    front: Option<Turn>,
    server: Server,
    wanted: Wanted,
    current: Current,
}

/// The gateway's token, its place and its abilities.
struct Server {
    /// Requests since the last message or answer that a user wrote.
    requests: u32,
    /// The gateway's token, fetched when a request first needs it.
    token: Token,
    finding: ContextSearch,
    known: GatewayInfo,
}

/// Mode and model of the last message.
#[derive(Default)]
struct Wanted {
    mode: Mode,
    model: Option<String>,
}

/// The gateway's token.
enum Token {
    /// Not fetched yet; that may run a command.
    Unasked,
    None,
    Is(Secret),
}

/// Properties that the gateway has reported.
#[derive(Default)]
struct GatewayInfo {
    conversation: Option<ConversationId>,
    is_stateful: bool,
    /// Plans have an endpoint of their own.
    plans_apart: bool,
}

/// The turn that runs or ran last.
#[derive(Default)]
struct Current {
    turn: Turn,
    response: Response,
    flood: EventLimit,
    /// Ours, where the gateway gives no other.
    local_id: Option<ResponseId>,
    /// Reads the stream; gone when the response has ended.
    decoder: Option<Decoder>,
    is_stalled: bool,
    /// Questions whose answers are on their way.
    answered: HashSet<DocumentId>,
    /// Answers that have to wait for the end of the turn.
    waiting: VecDeque<ClarificationResponse>,
}

impl Current {
    /// The response's id on the wire.
    fn wire_id(&self) -> Option<&ResponseId> {
        self.response
            .origin
            .id
            .as_ref()
            .filter(|it| Some(*it) != self.local_id.as_ref())
    }

    fn can(&self, what: &str) -> bool {
        self.response.origin.capabilities.iter().any(|it| it == what)
    }
}

impl Driver {
    pub fn new(client: Client, settings: Arc<Settings>, log: Arc<Log>, inbox: lazy_channel::Inbox<Command>) -> Self {
        let mut driver = Self {
            client,
            settings,
            inbox,
            handed: None,
            queue: VecDeque::new(),
            history: History::default(),
            front: None,
            server: Server {
                requests: 0,
                token: Token::Unasked,
                finding: ContextSearch::default(),
                known: GatewayInfo::default(),
            },
            wanted: Wanted::default(),
            current: Current::default(),
            log,
        };
        let recent = driver.log.recent();
        driver.front = recent.as_ref().map(|it| it.turn);
        driver.remember(recent);
        driver
    }

    /// Takes over the conversation that the log has already, or its end.
    fn remember(&mut self, recent: Option<Recent>) {
        let (mut transcript, since) = match recent {
            Some(it) => (Transcript::starting_at(it.turn, it.title), it.after),
            None => (Transcript::default(), Position(0)),
        };
        transcript.apply_all(&self.log.after(since));
        for exchange in transcript.exchanges {
            let response = exchange.response;
            self.history.push(exchange.turn, exchange.message, &response);
            learn(&mut self.server.known, &response);
            self.wanted.mode = response.mode.unwrap_or(self.wanted.mode);
            self.current = Current {
                turn: exchange.turn,
                response,
                ..Current::default()
            };
        }
        if self.current.turn != Turn::default() {
            // A program that died in mid-answer left it open, and nobody is coming to end it.
            let rest = closing(&self.current.response, Cut::Interrupted);
            self.write(rest);
        }
    }

    /// Takes over what stands in front of the end of a long conversation: a gateway that remembers nothing is told all of it.
    async fn remember_front(&mut self) -> Result<(), Stop> {
        let Some(turn) = self.front else { return Ok(()) };
        let log = Arc::clone(&self.log);
        let fold = tokio::task::spawn_blocking(move || {
            let mut transcript = Transcript::default();
            transcript.apply_all(&log.after(Position(0)));
            let mut history = History::default();
            let earlier = transcript.exchanges.into_iter().filter(|it| it.turn < turn);
            for exchange in earlier {
                history.push(exchange.turn, exchange.message, &exchange.response);
            }
            history
        });
        if let Ok(before) = self.meanwhile(fold).await? {
            self.history.put_in_front(before);
        }
        self.front = None;
        Ok(())
    }

    pub async fn run(mut self: Box<Self>) {
        loop {
            let next = self.queue.pop_front();
            // Most conversations of a gateway never have another one.
            self.queue.shrink_to_fit();
            let ended = match next {
                Some(submit) => self.turn(submit).await.err(),
                None => match self.hear().await {
                    Some(Stop::Cancelled) | None => None,
                    Some(Stop::Gone) => Some(Stop::Gone),
                },
            };
            if let Some(Stop::Gone) = ended {
                return;
            }
        }
    }

    /// Waits for something to happen and deals with it.
    async fn hear(&mut self) -> Option<Stop> {
        tokio::select! {
            biased;
            command = self.inbox.recv() => match command {
                Some(command) => self.obey(command),
                None => Some(Stop::Gone),
            },
            Some(handed) = delivered(&mut self.handed) => {
                self.was_handed(*handed);
                None
            }
        }
    }

    /// Runs `work`, hearing commands all the while; what stops the turn drops the work.
    async fn meanwhile<T>(&mut self, work: impl Future<Output = T>) -> Result<T, Stop> {
        let mut work = std::pin::pin!(work);
        loop {
            tokio::select! {
                biased;
                stop = self.hear() => if let Some(stop) = stop {
                    return Err(stop);
                },
                result = &mut work => return Ok(result),
            }
        }
    }

    fn obey(&mut self, command: Command) -> Option<Stop> {
        match command {
            // A gateway takes no word in between: it comes next.
            Command::Submit(submit) | Command::Begin(submit) | Command::Steer(submit) => {
                self.server.requests = 0;
                self.queue.push_back(submit);
            }
            Command::Answer { turn, response } => return self.answer(turn, response),
            Command::Run { .. } | Command::RepeatCall { .. } => {
                let notice = Notice::new(
                    Severity::Error,
                    "runs-no-commands",
                    "the gateway runs no commands of yours",
                );
                self.log.append(now_ms(), Event::Notice(notice));
            }
            Command::Compact { .. } => self.note(
                Severity::Warning,
                "not-compacted",
                "the gateway manages the model's context itself",
                None,
            ),
            Command::Rename(text) => {
                let title = Title { text, by_user: true };
                self.log.append(now_ms(), Event::Title(title));
            }
            Command::Record(notice) => {
                self.log.append(now_ms(), Event::Notice(notice));
            }
            Command::Next | Command::Restrict(_) | Command::Background | Command::StopCommand { .. } => {}
            Command::Cancel => return Some(Stop::Cancelled),
            Command::SwitchBranch(branch) if self.current.decoder.is_none() => {
                self.log.append(now_ms(), Event::Branch(branch));
                self.history = History::default();
                self.front = None;
                self.remember(None);
                // Whoever remembers what was said remembers the other branch.
                self.server.known.conversation = None;
            }
            Command::SwitchBranch(_) => self.note(
                Severity::Warning,
                "not-there",
                "still working: the conversation continues here",
                None,
            ),
            Command::Restore(_) => self.note(
                Severity::Warning,
                "not-restored",
                "the files are the gateway's: it takes nothing back",
                None,
            ),
            Command::Update {
                turn,
                document,
                metadata,
            } => self.update(turn, document, metadata),
        }
        None
    }

    fn update(&mut self, turn: Turn, document: DocumentId, metadata: Map<String, Value>) {
        let at_ms = now_ms();
        let event = Event::DocumentUpdate { document, metadata };
        if turn == self.current.turn {
            self.current.response.apply(&event, at_ms);
        }
        self.log.append_to(turn, at_ms, event);
        // Of a long conversation, what stands in front of the end is read for an older turn only.
        let recent = self.log.recent().filter(|it| turn >= it.turn);
        let entries = self.log.after(recent.map_or(Position(0), |it| it.after));
        let of_turn = entries
            .iter()
            .filter(|it| it.turn == turn)
            .map(|it| (&it.event, it.at_ms));
        self.history.update(turn, &history::response_of(of_turn));
    }

    /// Counts a request. Returns why it must not be made, if nobody watches and there were too many.
    fn count_request(&mut self) -> Option<Failure> {
        self.server.requests += 1;
        let is_over = !self.settings.is_attended && self.server.requests > MAX_UNATTENDED_REQUESTS;
        is_over.then(|| Failure {
            code: "MAX_TURNS".to_owned(),
            message: format!("reached the limit of {MAX_UNATTENDED_REQUESTS} requests to the gateway for one message"),
            source: "client".to_owned(),
            details: "the gateway asks or fails again and again, and nobody is there to answer".to_owned(),
        })
    }

    /// Takes an answer to a question. The second answer to the same one is dropped. Stops the turn where there were too
    /// many.
    fn answer(&mut self, turn: Turn, response: ClarificationResponse) -> Option<Stop> {
        if self.settings.has_user_answers {
            self.server.requests = 0;
        }
        let document = response.document_id.clone();
        let is_of_it = |it: &Submit| {
            let answer = it.message.clarification_response.as_ref();
            answer.is_some_and(|it| it.document_id == document)
        };
        if self.current.decoder.is_none()
            && !self.queue.iter().any(is_of_it)
            && let Some(question) = self.reopened(turn, &document)
        {
            self.queue.push_front(Submit {
                message: history::answering(&question, response),
                mode: self.wanted.mode,
                model: self.wanted.model.clone(),
            });
            return None;
        }
        let current = &mut self.current;
        let is_open = current.response.get(&document).is_some_and(history::is_open_question);
        if turn != current.turn || !is_open {
            self.note(
                Severity::Info,
                "too-late",
                "the question is no longer open",
                Some(document),
            );
            return None;
        }
        if !current.answered.insert(document) {
            return None;
        }
        if !current.response.is_running() {
            self.say(response);
            return None;
        }
        let path = current
            .wire_id()
            .and_then(|it| history::below_response(it.as_str(), "input"));
        match path.filter(|_| current.can("live_input")) {
            Some(path) => {
                if let Some(failure) = self.count_request() {
                    self.breach(&failure.code, &failure.message, &failure.details);
                    return Some(Stop::Cancelled);
                }
                self.hand_over(turn, &response, path);
            }
            None => current.waiting.push_back(response),
        }
        None
    }

    /// The question that the conversation went back to.
    fn reopened(&self, turn: Turn, document: &DocumentId) -> Option<Document> {
        let transcript = Transcript::from_entries(&self.log.after(Position(0)));
        transcript.reopened(turn, document).cloned()
    }

    /// Makes the answer the next message.
    fn say(&mut self, response: ClarificationResponse) {
        let Some(document) = self.current.response.get(&response.document_id) else {
            return;
        };
        if !history::is_open_question(document) {
            // The gateway or the end of the turn has closed it meanwhile.
            return;
        }
        if response.outcome == Outcome::Cancelled {
            // The user wants nothing more of it: the form closes, and nobody is asked anything.
            let metadata = Map::from_iter([("outcome".to_owned(), json!(response.outcome))]);
            self.update(self.current.turn, response.document_id, metadata);
            return;
        }
        self.queue.push_front(Submit {
            message: history::answering(document, response),
            mode: self.wanted.mode,
            model: self.wanted.model.clone(),
        });
    }

    /// Sends the answer while the response runs; the gateway then closes the question by an event.
    fn hand_over(&mut self, turn: Turn, response: &ClarificationResponse, path: String) {
        let request = self.authorised(Request::post(path, json!(response).to_string()));
        let (sender, _) = self.handed.get_or_insert_with(mpsc::unbounded_channel);
        let (client, sender) = (self.client.clone(), sender.clone());
        let document = response.document_id.clone();
        tokio::spawn(async move {
            let failed = match timeout(ASIDE, client.open(request)).await {
                Ok(Ok(answer)) if answer.status.is_success() => None,
                Ok(Ok(answer)) => Some(format!("status {}", answer.status.as_u16())),
                Ok(Err(error)) => Some(first_line(&error)),
                Err(_) => Some("no reply".to_owned()),
            };
            // Nobody hears it when the link is gone.
            let _ = sender.send(Box::new(AnswerDelivery { turn, document, failed }));
        });
    }

    fn was_handed(&mut self, handed: AnswerDelivery) {
        let Some(failed) = handed.failed else { return };
        if handed.turn == self.current.turn {
            self.current.answered.remove(&handed.document);
            let message = format!("the answer did not reach the gateway ({failed}); answer again");
            self.note(Severity::Error, "answer-lost", &message, Some(handed.document));
        }
    }

    /// Asks, and listens until the response has ended.
    async fn turn(&mut self, submit: Submit) -> Result<(), Stop> {
        let message = submit.message.clone();
        self.wanted.mode = submit.mode;
        self.wanted.model = submit.model.clone().or_else(|| self.settings.model.clone());
        self.log.append(now_ms(), Event::UserMessage(message.clone()));
        self.current = Current {
            turn: self.log.turn(),
            ..Current::default()
        };
        let model = self.wanted.model.clone().unwrap_or_default();
        let identity = Identity::local(model, self.wanted.mode, now_ms());
        self.current.local_id = Some(identity.id.clone());
        self.current.decoder = Some(Decoder::new(identity.clone()));
        let stop = self.ask(&message, &identity).await.err();
        if let Some(stop) = &stop {
            if let Stop::Cancelled = stop {
                self.call_off();
            }
            self.close(Decoder::cancel);
        }
        self.current.decoder = None;
        self.history
            .push(self.current.turn, Some(message), &self.current.response);
        learn(&mut self.server.known, &self.current.response);
        // The message that answers first comes first.
        for answer in std::mem::take(&mut self.current.waiting).into_iter().rev() {
            self.say(answer);
        }
        match stop {
            Some(Stop::Gone) => Err(Stop::Gone),
            Some(Stop::Cancelled) | None => Ok(()),
        }
    }

    /// Tries until there is an answer, or a reason not to try any more.
    async fn ask(&mut self, message: &Message, identity: &Identity) -> Result<(), Stop> {
        let mut tries: Option<Tries> = None;
        // What the gateway said before it was asked in another way, should that be no better.
        let mut first = None;
        loop {
            // In boxes, and so no part of the future that lasts as long as the answer: what is over when it begins.
            let (failure, reason) = match Box::pin(self.attempt(message, identity)).await? {
                Attempt::Answered(answer) => return Box::pin(self.read(answer, identity)).await,
                Attempt::Over => return Ok(()),
                Attempt::Otherwise(failure) => {
                    first.get_or_insert(failure);
                    continue;
                }
                Attempt::Refused(failure, reason) => (failure, reason),
            };
            let now = Utc::now();
            let so_far = *tries.get_or_insert(Tries::first(now));
            match self.settings.retries.after_failure(so_far, &reason, dice(), now) {
                Decision::Wait { until, because } => Box::pin(self.pause(so_far.retried + 1, until, because)).await?,
                Decision::Ask { until, because } if self.is_worth_it(until - now) => {
                    Box::pin(self.pause(so_far.retried + 1, until, because)).await?;
                }
                Decision::Ask { until, .. } => {
                    let pause = figure::pause((until - now).num_seconds().unsigned_abs());
                    let hint = format!("it asks for a pause of {pause}: send the message again after that");
                    self.refuse(identity, &with_hint(failure, &hint));
                    return Ok(());
                }
                Decision::GiveUp => {
                    // The other way was no better: the next plan is asked for as usual again.
                    self.server.known.plans_apart &= first.is_none();
                    self.refuse(identity, first.as_ref().unwrap_or(&failure));
                    return Ok(());
                }
            }
            if let Some(tries) = &mut tries {
                tries.retried += 1;
            }
        }
    }

    fn is_worth_it(&self, pause: TimeDelta) -> bool {
        self.settings.is_attended && pause.to_std().is_ok_and(|it| it <= LONGEST_PAUSE)
    }

    async fn pause(&mut self, attempt: u32, until: DateTime<Utc>, because: String) -> Result<(), Stop> {
        self.progress(Progress::Retrying {
            attempt,
            of: self.settings.retries.retries,
            at_ms: u64::try_from(until.timestamp_millis()).unwrap_or_default(),
            because,
        });
        let pause = (until - Utc::now()).to_std().unwrap_or_default();
        self.meanwhile(sleep(pause)).await
    }

    async fn attempt(&mut self, message: &Message, identity: &Identity) -> Result<Attempt, Stop> {
        let peer = self.client.name().to_owned();
        self.progress(Progress::Connecting { peer: peer.clone() });
        if matches!(self.server.token, Token::Unasked) {
            let settings = Arc::clone(&self.settings);
            let found = Box::pin(settings.token.resolve(&settings.environment));
            let found = self.meanwhile(found).await?;
            match found {
                Ok(found) => self.server.token = found.map_or(Token::None, Token::Is),
                Err(error) => return Ok(Attempt::Refused(ours("UNAUTHORIZED", &error), retry::Failure::Lasting)),
            }
        }
        let settings = Arc::clone(&self.settings);
        let mut finding = std::mem::take(&mut self.server.finding);
        let found = Box::pin(finding.now(settings.context.as_ref(), &message.content));
        let context = self.meanwhile(found).await;
        self.server.finding = finding;
        let context = context?;
        let is_plan = self.wanted.mode == Mode::Plan && self.server.known.plans_apart;
        let only_new = self.server.known.is_stateful && self.server.known.conversation.is_some();
        if !only_new {
            Box::pin(self.remember_front()).await?;
        }
        let ask = Ask {
            message,
            mode: self.wanted.mode,
            model: self.wanted.model.as_deref(),
            conversation: self.server.known.conversation.as_ref(),
            only_new,
            context,
        };
        let body = history::body(&ask, &self.history, &self.settings);
        let path = if is_plan { history::PLAN } else { history::COMPLETIONS };
        if let Some(failure) = self.count_request() {
            return Ok(Attempt::Refused(failure, retry::Failure::Lasting));
        }
        self.trace_request(path, &body);
        let request = self.authorised(Request::post(path, body)).accept("text/event-stream");

        let client = self.client.clone();
        let mut opening = Box::pin(async move { client.open(request).await });
        let opened = if let Ok(opened) = self.meanwhile(timeout(CONNECTING, &mut opening)).await? {
            opened
        } else {
            self.progress(Progress::Waiting { peer: peer.clone() });
            self.meanwhile(opening).await?
        };
        match opened {
            Ok(answer) if answer.status.is_success() => {
                self.progress(Progress::Waiting { peer });
                Ok(Attempt::Answered(answer))
            }
            Ok(answer) => self.refused(answer, identity).await,
            Err(error) => Ok(Attempt::Refused(unreachable(&error), retry::Failure::from(&error))),
        }
    }

    /// Tells who looks closely what goes out.
    fn trace_request(&self, path: &str, body: &str) {
        let Some(trace) = self.log.trace() else { return };
        let peer = self.client.peer();
        let base = peer.base.as_str().trim_end_matches('/');
        let mut headers = vec![
            ("Content-Type".to_owned(), Some("application/json".to_owned())),
            ("Accept".to_owned(), Some("text/event-stream".to_owned())),
        ];
        if matches!(self.server.token, Token::Is(_)) {
            headers.push(("Authorization".to_owned(), None));
        }
        // Whoever sets a header may set a secret.
        headers.extend(peer.headers.keys().map(|it| (it.as_str().to_owned(), None)));
        let sent = Sent::post(format!("{base}/{path}"), headers, body);
        trace.came(now_ms(), self.current.turn, Raw::Request(sent));
        trace.over();
    }

    /// Reads what the gateway says with the status of an error.
    async fn refused(&mut self, answer: client::Response, identity: &Identity) -> Result<Attempt, Stop> {
        let status = answer.status.as_u16();
        let advice = Advice::of(&answer.headers, Utc::now());
        let body = self.meanwhile(answer.body.beginning(ERROR_LIMIT_BYTES)).await?;
        let body = String::from_utf8_lossy(&body);
        if let Some(trace) = self.log.trace() {
            trace.came(
                now_ms(),
                self.current.turn,
                Raw::body(&format!("HTTP status {status}\n{body}")),
            );
            trace.over();
        }
        if serde_json::from_str::<Value>(&body).is_ok_and(|it| it.get("documents").is_some_and(Value::is_array)) {
            // A whole response that failed has more to say than its error.
            self.read_body(identity, &body);
            return Ok(Attempt::Over);
        }
        let mut failure = Failure::read(status, &body);
        if failure.details.is_empty() && !body.trim().is_empty() && !body.trim_start().starts_with('{') {
            // Words of a proxy say little without the number.
            failure.details = format!("HTTP status {status}");
        }
        // Gateways that know no modes say so in many ways.
        let knows_no_mode = matches!(status, 400 | 404 | 405 | 422);
        if self.wanted.mode == Mode::Plan && knows_no_mode && !self.server.known.plans_apart {
            self.server.known.plans_apart = true;
            return Ok(Attempt::Otherwise(failure));
        }
        if matches!(status, 404 | 410) && self.server.known.conversation.take().is_some() {
            // It has forgotten the conversation; we have not, and send all of it.
            return Ok(Attempt::Otherwise(failure));
        }
        let words = format!("{} {}", failure.code, failure.message);
        let failure = match status {
            401 | 403 => {
                // The next request asks for the token anew: it may have been renewed.
                self.server.token = Token::Unasked;
                with_hint(
                    failure,
                    "check the token: SHEAF_TOKEN, or `token` of the gateway in the configuration",
                )
            }
            404 | 405 => with_hint(
                failure,
                "no documents gateway at this address; configure a model server as a provider",
            ),
            _ => failure,
        };
        Ok(Attempt::Refused(
            failure,
            retry::Failure::Status { status, words, advice },
        ))
    }

    /// Reads an answer by its type, whatever was asked for.
    async fn read(&mut self, answer: client::Response, identity: &Identity) -> Result<(), Stop> {
        let media = answer.media_type();
        let client::Response { headers, body, .. } = answer;
        drop(headers);
        let mut body = Box::new(body);
        let mut begun: Vec<u8> = Vec::new();
        let is_stream = match media.as_str() {
            "text/event-stream" => true,
            "application/json" => false,
            it if it.ends_with("+json") => false,
            // Proxies lose the type: the first character tells.
            _ => loop {
                let visible = begun.iter().find(|it| !it.is_ascii_whitespace()).copied();
                match visible {
                    Some(first) => break !matches!(first, b'{' | b'[' | b'<'),
                    None if begun.len() > SNIFF_LIMIT_BYTES => break true,
                    None => {}
                }
                match self.next(&mut body).await? {
                    Some(Ok(piece)) => begun.extend_from_slice(&piece),
                    Some(Err(error)) => {
                        self.break_off(&error);
                        return Ok(());
                    }
                    None => break true,
                }
            },
        };
        if is_stream {
            return self.read_stream(body, begun).await;
        }
        let limit = Limits::default().body_bytes;
        loop {
            match self.next(&mut body).await? {
                Some(Ok(piece)) if begun.len() + piece.len() <= limit => begun.extend_from_slice(&piece),
                Some(Ok(_)) => {
                    self.break_down(&format!("the answer is larger than {} MiB", limit >> 20));
                    return Ok(());
                }
                Some(Err(error)) => {
                    self.break_off(&error);
                    return Ok(());
                }
                None => break,
            }
        }
        self.read_body(identity, &String::from_utf8_lossy(&begun));
        Ok(())
    }

    fn read_body(&mut self, identity: &Identity, text: &str) {
        let raws = self.log.trace().map(|_| (0, Raw::body(text)));
        match Decoder::body(identity.clone(), text) {
            Ok(events) => self.write_beside(events, raws.into_iter().collect()),
            Err(error) => self.break_down(&described(&error)),
        }
    }

    async fn read_stream(&mut self, mut body: Box<Body>, begun: Vec<u8>) -> Result<(), Stop> {
        let mut frames = Frames::new();
        let mut stint = PollBudget::default();
        let mut piece = Bytes::from(begun);
        loop {
            while !piece.is_empty() {
                let part = piece.split_to(piece.len().min(PART_BYTES));
                if !self.decode(frames.push(&part)) {
                    return Ok(());
                }
                if stint.spend(part.len()) {
                    self.meanwhile(stint.pause()).await?;
                }
            }
            if !self.current.response.is_running() {
                // It is over for us; read to its end, the connection can serve the next message.
                tokio::spawn(timeout(LEFTOVERS, body.beginning(ERROR_LIMIT_BYTES)));
                return Ok(());
            }
            piece = match self.next(&mut body).await? {
                Some(Ok(piece)) => piece,
                end => {
                    let last = frames.finish();
                    if self.decode(last.into_iter().collect()) {
                        match end {
                            Some(Err(error)) => self.break_off(&error),
                            Some(Ok(_)) | None => self.close(Decoder::finish),
                        }
                    }
                    return Ok(());
                }
            };
        }
    }

    /// Reads frames that came together; `false` when the stream cannot be read further.
    fn decode(&mut self, frames: Vec<Result<Frame, FrameError>>) -> bool {
        let Some(decoder) = &mut self.current.decoder else {
            return false;
        };
        let mut events = Vec::new();
        let mut broken = None;
        // Each with the number of events that came before it.
        let mut raws = Vec::new();
        for frame in frames {
            let read = match frame {
                Ok(frame) => {
                    if self.log.trace().is_some() {
                        let raw = Raw::frame(frame.event.as_deref(), &frame.data, frame.id.as_deref());
                        raws.push((events.len(), raw));
                    }
                    decoder
                        .frame(frame.event.as_deref(), &frame.data)
                        .map_err(|error| described(&error))
                }
                Err(error) => Err(error.to_string()),
            };
            match read {
                Ok(more) => events.extend(more),
                Err(message) => {
                    broken = Some(message);
                    break;
                }
            }
        }
        match self.current.flood.admit(events) {
            Ok(events) => self.write_beside(events, raws),
            Err(TooMany) => broken = Some("the answer has too many events to store".to_owned()),
        }
        if let Some(message) = &broken {
            self.break_down(message);
        }
        broken.is_none()
    }

    /// The next piece of the body; says so when it is long in coming.
    async fn next(&mut self, body: &mut Body) -> Result<Option<Result<Bytes, client::Error>>, Stop> {
        loop {
            if let Ok(piece) = self.meanwhile(timeout(STALL_CHECK, body.next())).await? {
                if std::mem::take(&mut self.current.is_stalled) {
                    self.progress(Progress::Idle);
                }
                return Ok(piece);
            }
            let silent = body.silent_for().unwrap_or_default();
            if silent >= STALLED {
                self.current.is_stalled = true;
                let silent_ms = u64::try_from(silent.as_millis()).unwrap_or(u64::MAX);
                self.progress(Progress::Stalled { silent_ms });
            }
        }
    }

    /// The connection failed in the middle of the answer.
    fn break_off(&mut self, error: &client::Error) {
        let Failure { message, details, .. } = ours("STREAM_INTERRUPTED", error);
        self.breach("STREAM_INTERRUPTED", &message, &details);
    }

    /// Ends the answer, because the response cannot be read.
    fn break_down(&mut self, message: &str) {
        let (message, details) = message.split_once('\n').unwrap_or((message, ""));
        self.breach("STREAM_PROTOCOL", message, details);
    }

    fn breach(&mut self, code: &str, message: &str, details: &str) {
        let breach = Breach {
            code,
            source: "stream",
            message,
            details,
        };
        self.close(|decoder| decoder.fail(&breach));
    }

    /// Ends a response that would not end by itself.
    fn close(&mut self, how: impl FnOnce(&mut Decoder) -> Vec<Event>) {
        if let Some(mut decoder) = self.current.decoder.take()
            && self.current.response.is_running()
        {
            self.write(how(&mut decoder));
        }
    }

    /// Ends a response that never began.
    fn refuse(&mut self, identity: &Identity, failure: &Failure) {
        let mut whole = failure.to_json();
        if let Value::Object(members) = &mut whole {
            members.insert("status".to_owned(), "error".into());
        }
        self.read_body(identity, &whole.to_string());
    }

    fn write(&mut self, events: Vec<Event>) {
        self.write_beside(events, Vec::new());
    }

    /// Writes events, each beside what it was made of, for who looks closely.
    fn write_beside(&mut self, events: Vec<Event>, raws: Vec<(usize, Raw)>) {
        let at_ms = now_ms();
        let mut raws = raws.into_iter().peekable();
        let (trace, turn) = (self.log.trace().cloned(), self.current.turn);
        let came = |raw| {
            if let Some(trace) = &trace {
                trace.came(at_ms, turn, raw);
            }
        };
        for (at, event) in events.into_iter().enumerate() {
            while let Some((_, raw)) = raws.next_if(|it| it.0 <= at) {
                came(raw);
            }
            self.current.response.apply(&event, at_ms);
            self.log.append(at_ms, event);
        }
        raws.for_each(|(_, raw)| came(raw));
        if let Some(trace) = &trace {
            trace.over();
        }
    }

    fn progress(&self, progress: Progress) {
        self.log.append(now_ms(), Event::Progress(progress));
    }

    fn note(&mut self, severity: Severity, code: &str, message: &str, document: Option<DocumentId>) {
        self.write(vec![Event::Notice(Notice {
            severity,
            code: code.to_owned(),
            message: message.to_owned(),
            document,
        })]);
    }

    /// Tells the gateway in words what closing the connection says already; some only hear the words.
    fn call_off(&self) {
        let current = &self.current;
        let path = current
            .wire_id()
            .and_then(|it| history::below_response(it.as_str(), "cancel"));
        if let Some(path) = path.filter(|_| current.can("cancel")) {
            let request = self.authorised(Request::post(path, "{}"));
            let client = self.client.clone();
            tokio::spawn(async move {
                if let Ok(Err(error)) = timeout(ASIDE, client.open(request)).await {
                    tracing::debug!(%error, "the gateway was not told to stop");
                }
            });
        }
    }

    fn authorised(&self, request: Request) -> Request {
        match &self.server.token {
            Token::Is(token) => request.bearer(token.expose()),
            Token::Unasked | Token::None => request,
        }
    }
}

/// Keeps what a response says of its gateway.
fn learn(known: &mut GatewayInfo, response: &Response) {
    if response.origin.conversation_id.is_some() {
        known.conversation.clone_from(&response.origin.conversation_id);
        known.is_stateful = response.origin.capabilities.iter().any(|it| it == "stateful");
    }
}

/// An error of our own side; its first line is the message, the others and its causes are the details.
fn ours(code: &str, error: &dyn std::error::Error) -> Failure {
    let text = error.to_string();
    let (message, hint) = text.split_once('\n').unwrap_or((&text, ""));
    let causes = std::iter::successors(error.source(), |it| it.source());
    let causes = causes.map(ToString::to_string).collect::<Vec<_>>().join(": ");
    let mut details: Vec<_> = Some(causes)
        .filter(|it| !it.is_empty())
        .map(|it| format!("cause: {it}"))
        .into_iter()
        .collect();
    details.extend(hint.lines().map(|it| it.trim().to_owned()));
    Failure {
        code: code.to_owned(),
        message: message.to_owned(),
        source: "client".to_owned(),
        details: details.join("\n"),
    }
}

fn unreachable(error: &client::Error) -> Failure {
    let code = match error {
        client::Error::Redirect { .. }
        | client::Error::NotHttp { .. }
        | client::Error::HeadersTooLarge { .. }
        | client::Error::Compressed { .. }
        | client::Error::TooLarge { .. } => "STREAM_PROTOCOL",
        client::Error::Cut { .. } | client::Error::IdleTimeout { .. } => "STREAM_INTERRUPTED",
        client::Error::Address { .. }
        | client::Error::PlainHttp { .. }
        | client::Error::PublicHttp { .. }
        | client::Error::Header { .. }
        | client::Error::File { .. }
        | client::Error::Certificate { .. }
        | client::Error::Proxy { .. }
        | client::Error::Trust { .. }
        | client::Error::Request { .. } => "INTERNAL",
        client::Error::Refused { .. }
        | client::Error::Name { .. }
        | client::Error::Tls { .. }
        | client::Error::Connect { .. }
        | client::Error::ConnectTimeout { .. }
        | client::Error::FirstByteTimeout { .. }
        | client::Error::Closed { .. } => "LLM_UNAVAILABLE",
    };
    ours(code, error)
}

fn with_hint(mut failure: Failure, hint: &str) -> Failure {
    if !failure.details.is_empty() {
        failure.details.push('\n');
    }
    failure.details.push_str(hint);
    failure
}

/// An error with its causes, in one line each.
fn described(error: &dyn std::error::Error) -> String {
    let causes = std::iter::successors(error.source(), |it| it.source());
    let lines = std::iter::once(error.to_string()).chain(causes.map(|it| format!("cause: {it}")));
    lines.collect::<Vec<_>>().join("\n")
}

fn now_ms() -> u64 {
    u64::try_from(Utc::now().timestamp_millis()).unwrap_or_default()
}

/// A random number from 0 to 1.
fn dice() -> f64 {
    f64::from(uuid::Uuid::new_v4().as_u64_pair().1 as u32) / f64::from(u32::MAX)
}

fn first_line(error: &client::Error) -> String {
    error.to_string().lines().next().unwrap_or_default().to_owned()
}
