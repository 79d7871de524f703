//! Runs turns: takes letters, polls the model, runs tools, appends to the log. The only part of the agent that touches
//! the world.
//!
//! Everything happens on the thread of whoever runs it, which may be the screen's; what may take long (tools that read or
//! change files, what a model is told of the workspace) has threads of its own.

mod ask;
mod gather;
mod jobs;
mod message;
mod restore;
mod step;
mod trust;

use std::{
    collections::{HashMap, VecDeque},
    pin::Pin,
    sync::{Arc, Mutex},
    time::Duration,
};

use futures::{
    Stream, StreamExt,
    stream::{FuturesOrdered, FuturesUnordered, SelectAll},
};
use tokio::sync::{mpsc, watch};

use self::gather::{endless, text_of};
use super::{
    background::{self, Background},
    behind::Behind,
    brief::{Briefing, Heard},
    checks::Known,
    trust::{Page, Standing},
    turn::{Input, JobId, Purpose, Submission, Turn},
    undo::{self, Restored},
};
use crate::{
    config::{Paths, Settings},
    index::Index,
    journal::{Flood, Log, Stint},
    link::{
        Asker, Hold,
        local::{Inbox, Letter},
    },
    model::{Chosen, EndReason, Piece, PieceStream, Provider, Roles},
    protocol::{
        ASIDE, Applied, Command, ConversationId, DocumentId, Event, Mode, Notice, Severity, Shorten, Submit, Title,
        Turn as ProtocolTurn,
    },
    sandbox::{Checkpoints, Seen, Settled, Workspace},
    tool::{Stop, Tool},
};

/// Whom to ask, in which conversation, and with what.
pub struct Setup {
    pub provider: Arc<dyn Provider>,
    /// Where a message names none; empty: the server's first.
    pub model: String,
    pub conversation: ConversationId,
    /// Who answers questions.
    pub asker: Asker,
    /// Where tools work; `None`: there are no tools.
    pub workspace: Option<Arc<Workspace>>,
    pub settings: Arc<Settings>,
    /// All that may be offered in some mode.
    pub tools: Vec<&'static Tool>,
    /// Other models: by name, for other jobs, and for when one is overloaded.
    pub roles: Arc<Roles>,
    /// Where rules are kept that hold always.
    pub paths: Option<Paths>,
    /// Where the screen reads what holds commands.
    pub hold: Hold,
}

/// A start is not the time to read certificates; a moment later nobody waits for them.
const WARM_UP: Duration = Duration::from_millis(200);

/// Answers until the other end of `inbox` has gone; then the running answer is cancelled and the log closed.
pub async fn run(setup: Setup, log: Arc<Log>, inbox: Inbox) {
    let warm = setup.provider.warm();
    let driver = Driver::new(setup, log, inbox);
    let warm = async {
        tokio::time::sleep(WARM_UP).await;
        warm.await;
        std::future::pending::<()>().await;
    };
    tokio::select! {
        () = driver.work() => {}
        () = warm => {}
    }
}

struct Driver {
    setup: Setup,
    log: Arc<Log>,
    inbox: Inbox,
    turn: Turn,
    /// What was said before this program ran has been read.
    is_seeded: bool,
    briefing: Briefing,
    /// Who answers.
    chosen: Chosen,
    /// Titles that are being thought of.
    titles: FuturesUnordered<Pin<Box<dyn Future<Output = Option<String>> + Send>>>,
    has_title: bool,
    /// Of the last message.
    mode: Option<Mode>,
    /// Changes that the user has rejected, to be taken back one after the other, and the one that is.
    rejected: VecDeque<(ProtocolTurn, DocumentId)>,
    reversal: Option<Reversal>,
    /// Files are being restored.
    restoring: Option<Restoring>,
    /// What the model is to be told of that.
    told: String,
    /// The workspace has been looked at, or is.
    has_looked: bool,
    /// Marks of instrumentation that are looked for because debugging was left.
    left: FuturesUnordered<Pin<Box<dyn Future<Output = Vec<String>> + Send>>>,
    seen: Arc<Seen>,
    index: Arc<Index>,
    stream: Option<PieceStream>,
    /// What models take in that only their servers know: found out once, beside their first answer.
    windows: HashMap<Asked, Option<u64>>,
    sizing: FuturesUnordered<Sizing>,
    /// What is being prepared and run, and what a message is being told with.
    jobs: Jobs,
    /// What is still wanted when an answer has ended: questions that expire.
    timers: Jobs,
    outputs: SelectAll<Outputs>,
    /// Commands that go on after their calls.
    background: Background,
    /// Nobody waits for the jobs any more, once it is `true`.
    stop: (Stop, watch::Sender<bool>),
    /// A message that is being made ready for the model.
    next: Option<Pin<Box<dyn Future<Output = Box<Submission>> + Send>>>,
    /// What was said while an answer is made, while it is looked up what it points at.
    hearing: FuturesOrdered<Pin<Box<dyn Future<Output = Heard> + Send>>>,
    /// It is to be stopped at once.
    is_stopped: bool,
    /// What the running answer costs.
    flood: Flood,
    stint: Stint,
    /// Messages that came while an answer was being made: each opens a turn of its own after it.
    queue: VecDeque<(Submit, Wish)>,
    /// The running turn is the user's own command.
    own: Option<Own>,
    /// The turn that is made ready makes what is told shorter.
    shorten: Option<Shorten>,
    /// What stood behind the commands that are prepared.
    looked_at: Arc<Mutex<HashMap<JobId, Behind>>>,
    /// What checkers knew of the files that calls are changing.
    known: Arc<Mutex<HashMap<JobId, Known>>>,
    /// Looks whether the workspace has something that the user is to be asked about.
    looking: Option<Looking>,
    /// The question about it, in its turn, while it is open.
    page: Option<(Page, ProtocolTurn)>,
    /// What was done about protected files that commands made or changed.
    settled: Option<mpsc::UnboundedReceiver<Settled>>,
}

/// A call that the user makes. It stands where a model's call would, so that it is judged, held, shown and remembered
/// like one; the model is not asked.
struct Own {
    name: String,
    arguments: serde_json::Map<String, serde_json::Value>,
    is_shown: bool,
    /// The call has been made; what is asked next is what to say to its result, which is nothing.
    is_asked: bool,
    /// How much the model had been told before.
    from: usize,
}

/// What a message that waits is for.
enum Wish {
    Answer,
    Command(Own),
    Room(Shorten),
}

impl Own {
    fn stream(&mut self, now_ms: u64) -> PieceStream {
        if std::mem::replace(&mut self.is_asked, true) {
            return Box::pin(futures::stream::iter([Piece::End(EndReason::Stop)]));
        }
        let (id, name) = (format!("own_{now_ms}"), self.name.clone());
        let arguments = std::mem::take(&mut self.arguments);
        Box::pin(futures::stream::iter([
            Piece::CallStart {
                slot: 0,
                id: id.clone(),
                name: name.clone(),
            },
            Piece::CallDone {
                slot: 0,
                id,
                name,
                arguments: Ok(arguments),
                opaque: None,
            },
            Piece::End(EndReason::ToolUse),
        ]))
    }
}

/// A server and its model.
type Asked = (String, String);
type Sizing = Pin<Box<dyn Future<Output = (Asked, Option<u64>)> + Send>>;
type Restoring = Pin<Box<dyn Future<Output = Result<Restored, String>> + Send>>;
type Reversal = Pin<Box<dyn Future<Output = Result<(), String>> + Send>>;

/// A look at what a workspace would do; whether the user wants to hear what came of it in any case.
type Looking = (bool, Pin<Box<dyn Future<Output = Option<Standing>> + Send>>);

type Jobs = FuturesUnordered<Pin<Box<dyn Future<Output = Input> + Send>>>;
type Outputs = Pin<Box<dyn Stream<Item = (JobId, String)> + Send>>;

/// A question that changes what the model may do is a no after so long.
const PATIENCE: Duration = Duration::from_mins(10);

enum Happened {
    Letter(Option<Letter>),
    Ready(Box<Submission>),
    Heard(Heard),
    Input(Input),
    Title(Option<String>),
    Left(Vec<String>),
    Sized(Asked, Option<u64>),
    Reversed(Result<(), String>),
    Restored(Result<Restored, String>),
    Went(background::Update),
    Looked(bool, Option<Standing>),
    Settled(Settled),
}

/// What the agent will have read and written. What files were before is kept, where there is a place for it.
fn memory(setup: &Setup) -> Seen {
    let (Some(_), Some(paths)) = (&setup.workspace, &setup.paths) else {
        return Seen::default();
    };
    match Checkpoints::open(&paths.state.join("checkpoints"), setup.conversation.as_str()) {
        Ok(checkpoints) => Seen::keeping(checkpoints),
        Err(error) => {
            tracing::warn!(%error, "what files were cannot be kept");
            Seen::default()
        }
    }
}

impl Driver {
    fn new(setup: Setup, log: Arc<Log>, inbox: Inbox) -> Self {
        let briefing = Briefing::start(&setup);
        let looking: Option<Looking> = (setup.asker == Asker::Here).then(|| (false, briefing.standing()));
        let seen = Arc::new(memory(&setup));
        let settled = setup.workspace.as_ref().and_then(|it| it.commands().settled());
        Self {
            chosen: Chosen {
                provider: Arc::clone(&setup.provider),
                model: setup.model.clone(),
            },
            titles: FuturesUnordered::new(),
            has_title: false,
            mode: None,
            rejected: VecDeque::new(),
            reversal: None,
            restoring: None,
            told: String::new(),
            has_looked: false,
            left: FuturesUnordered::new(),
            setup,
            log,
            inbox,
            turn: Turn::default(),
            is_seeded: false,
            briefing,
            seen,
            index: Arc::default(),
            stream: None,
            windows: HashMap::new(),
            sizing: FuturesUnordered::new(),
            jobs: Jobs::new(),
            timers: Jobs::new(),
            outputs: SelectAll::new(),
            background: Background::default(),
            stop: (Stop::default(), watch::Sender::new(false)),
            next: None,
            hearing: FuturesOrdered::new(),
            is_stopped: false,
            flood: Flood::default(),
            stint: Stint::default(),
            queue: VecDeque::new(),
            own: None,
            shorten: None,
            looked_at: Arc::default(),
            known: Arc::default(),
            looking,
            page: None,
            settled,
        }
    }

    async fn work(mut self) {
        loop {
            match self.happening().await {
                Happened::Letter(Some(Letter::Command(command))) => self.obey(command),
                Happened::Letter(Some(Letter::Ask(query, reply))) => self.ask(query, reply),
                Happened::Letter(None) => {
                    self.next = None;
                    self.step(Input::Cancel);
                    for update in self.background.close() {
                        self.log.append_to(update.turn, now_ms(), update.event());
                    }
                    self.log.close();
                    return;
                }
                Happened::Ready(mut submission) => {
                    self.next = None;
                    if self.own.is_some() {
                        // The model is not asked.
                        submission.limits.dollars_in_all = None;
                    }
                    submission.purpose = match (self.shorten.take(), &self.own) {
                        (Some(how), _) => Purpose::Room(how),
                        (None, Some(_)) => Purpose::Command,
                        (None, None) => Purpose::Answer,
                    };
                    if submission.purpose == Purpose::Answer && !self.told.is_empty() {
                        let told = undo::tell(&std::mem::take(&mut self.told));
                        submission.parts.insert(0, told);
                    }
                    submission.turn = ProtocolTurn(self.log.turn().0 + 1);
                    let (from, was_opened) = (self.turn.memory.told.messages.len(), self.turn.memory.is_opened);
                    self.step(Input::Submit(submission));
                    if let Some(own) = &mut self.own {
                        // The surroundings stay told.
                        own.from = from + usize::from(!was_opened && self.turn.memory.is_opened);
                    }
                    self.warn();
                    if std::mem::take(&mut self.is_stopped) {
                        self.step(Input::Cancel);
                    }
                }
                // The answer may have ended in the meantime: then it is a message of its own.
                Happened::Heard(heard) if !self.turn.is_answering() => {
                    self.queue.push_back((heard.submit, Wish::Answer));
                }
                Happened::Heard(Heard { submit, parts }) => {
                    let was = self.mode.replace(submit.mode);
                    if was == Some(Mode::Debug) && submit.mode != Mode::Debug {
                        self.look_for_marks();
                    }
                    self.step(Input::Steer {
                        message: submit.message,
                        parts,
                        mode: submit.mode,
                    });
                    self.warn();
                }
                Happened::Title(title) => {
                    if let Some(title) = title {
                        self.log.append(now_ms(), Event::Title(title.into()));
                    }
                }
                Happened::Sized(asked, window) => {
                    self.windows.insert(asked, window);
                    self.size_up();
                }
                Happened::Reversed(result) => self.reversed(result),
                Happened::Went(update) => {
                    self.log.append_to(update.turn, now_ms(), update.event());
                }
                Happened::Restored(result) => self.restored(result),
                Happened::Looked(is_wanted, standing) => {
                    self.looking = None;
                    self.ask_for_trust(is_wanted, standing);
                }
                Happened::Settled(settled) => self.tell_settled(&settled),
                Happened::Left(marks) if marks.is_empty() => {}
                Happened::Left(marks) => {
                    let notice = Notice {
                        severity: Severity::Warning,
                        code: "debug-marks".to_owned(),
                        message: format!("instrumentation is left in the code: {}", marks.join(", ")),
                        document: None,
                    };
                    self.log.append(now_ms(), Event::Notice(notice));
                }
                Happened::Input(input) => {
                    self.stint.spend(text_of(&input).len());
                    let (input, next) = self.gather(input);
                    self.step(input);
                    if let Some(next) = next {
                        self.step(next);
                    }
                    self.stint.pause().await;
                }
            }
            if !self.turn.is_running()
                && self.next.is_none()
                && self.hearing.is_empty()
                && self.restoring.is_none()
                && let Some((mut submit, wish)) = self.queue.pop_front()
            {
                (self.own, self.shorten) = match wish {
                    Wish::Answer => (None, None),
                    Wish::Command(own) => (Some(own), None),
                    Wish::Room(how) => (None, Some(how)),
                };
                // What a mode keeps the model from doing it does not keep the user from.
                if self.own.is_some() && submit.mode.is_read_only() {
                    submit.mode = Mode::Agent;
                }
                self.submit(submit);
            }
        }
    }

    /// Waits for the next thing that matters. A letter first: whoever wants to stop a flood must get through.
    async fn happening(&mut self) -> Happened {
        let Self {
            inbox,
            stream,
            jobs,
            timers,
            outputs,
            next,
            hearing,
            titles,
            left,
            sizing,
            reversal,
            restoring,
            looking,
            background,
            settled,
            ..
        } = self;
        tokio::select! {
            biased;
            // What was said before is heard before: looking up what it points at takes a moment, and never long.
            letter = inbox.recv(), if hearing.is_empty() => Happened::Letter(letter),
            Some(submission) = maybe(next.as_mut()) => Happened::Ready(submission),
            Some(heard) = hearing.next(), if !hearing.is_empty() => Happened::Heard(heard),
            // Before the model hears of the command that did it.
            Some(Some(settled)) = maybe(settled.as_mut().map(|it| std::future::poll_fn(|cx| it.poll_recv(cx)))) => {
                Happened::Settled(settled)
            }
            // What a command printed comes before the news that it has ended.
            Some((job, text)) = outputs.next(), if !outputs.is_empty() => Happened::Input(Input::Output { job, text }),
            Some(input) = jobs.next(), if !jobs.is_empty() => Happened::Input(input),
            Some(piece) = maybe(stream.as_mut().map(StreamExt::next)) => {
                Happened::Input(Input::Piece(piece.unwrap_or_else(endless)))
            }
            Some(input) = timers.next(), if !timers.is_empty() => Happened::Input(input),
            Some(update) = background.next(), if !background.is_empty() => Happened::Went(update),
            Some(result) = maybe(reversal.as_mut()) => Happened::Reversed(result),
            Some(result) = maybe(restoring.as_mut()) => Happened::Restored(result),
            Some(title) = titles.next(), if !titles.is_empty() => Happened::Title(title),
            Some(marks) = left.next(), if !left.is_empty() => Happened::Left(marks),
            Some((asked, window)) = sizing.next(), if !sizing.is_empty() => Happened::Sized(asked, window),
            (is_wanted, standing) = looked(looking.as_mut()) => Happened::Looked(is_wanted, standing),
        }
    }

    fn obey(&mut self, command: Command) {
        match command {
            Command::Answer { turn, response }
                if self
                    .page
                    .as_ref()
                    .is_some_and(|(page, its)| *its == turn && page.is(&response.document_id)) =>
            {
                self.take_trust(Some(&response));
                return;
            }
            // Whoever says something else does not want to be asked now.
            Command::Submit(_)
            | Command::Run { .. }
            | Command::Again { .. }
            | Command::Compact { .. }
            | Command::Steer(_)
            | Command::Cancel => self.take_trust(None),
            Command::Update { .. }
            | Command::Answer { .. }
            | Command::Rename(_)
            | Command::Restore(_)
            | Command::GoOn(_)
            | Command::Next => {}
        }
        match command {
            Command::Submit(submit) => self.queue.push_back((submit, Wish::Answer)),
            Command::Compact { submit, how } => self.queue.push_back((submit, Wish::Room(how))),
            Command::Run {
                mut submit,
                line,
                is_shown,
            } => {
                // Neither is it told when the conversation is read again.
                if !is_shown {
                    submit.message.extra.insert(ASIDE.to_owned(), true.into());
                }
                let arguments = serde_json::Map::from_iter([("command".to_owned(), line.into())]);
                let own = Own {
                    name: "run_terminal_cmd".to_owned(),
                    arguments,
                    is_shown,
                    is_asked: false,
                    from: 0,
                };
                self.queue.push_back((submit, Wish::Command(own)));
            }
            Command::Again {
                submit,
                turn,
                document,
                from,
            } => match self.call_behind(turn, &document) {
                Some(called) => {
                    self.go_on(from);
                    let own = Own {
                        name: called.name,
                        arguments: called.arguments,
                        is_shown: true,
                        is_asked: false,
                        from: 0,
                    };
                    self.queue.push_back((submit, Wish::Command(own)));
                }
                None => self.notice("no-call", "no call stands behind it that can be made again".to_owned()),
            },
            // Room that is made, and a command of the user's, have no model that could hear it.
            Command::Steer(submit) if self.turn.is_answering() => {
                let facts = self.facts(false);
                let heard = self.briefing.steering(submit, self.turn.mode(), facts, &self.setup);
                self.hearing.push_back(heard);
            }
            Command::Steer(submit) => self.queue.push_back((submit, Wish::Answer)),
            Command::Cancel => {
                // Who stops an answer wants to think again: the words go back to where they were written.
                self.hearing.clear();
                // A message that is being made ready is stopped as soon as it stands in the log.
                self.is_stopped = self.next.is_some();
                self.step(Input::Cancel);
            }
            Command::Update {
                turn,
                document,
                metadata,
            } if metadata.get("applied").and_then(serde_json::Value::as_str) == Some(Applied::Rejected.as_str()) => {
                self.rejected.push_back((turn, document));
                self.take_back();
            }
            Command::Update {
                turn,
                document,
                metadata,
            } => {
                self.turn.memory.edited(&metadata);
                self.log
                    .append_to(turn, now_ms(), Event::DocumentUpdate { document, metadata });
            }
            Command::Rename(text) => {
                let title = Title { text, by_user: true };
                self.log.append(now_ms(), Event::Title(title));
            }
            Command::Restore(wish) => self.restore(wish),
            Command::GoOn(branch) => self.go_on(branch),
            Command::Next => {}
            Command::Answer { response, turn: _ } if self.turn.is_running() => self.step(Input::Answer(response)),
            Command::Answer { response, turn } => match self.answering(turn, response) {
                Some(submit) => self.queue.push_back((submit, Wish::Answer)),
                None => self.notice("no-question", "no question is open: the answer was left out".to_owned()),
            },
        }
    }

    fn notice(&self, code: &str, message: String) {
        let notice = Notice {
            severity: Severity::Warning,
            code: code.to_owned(),
            message,
            document: None,
        };
        self.log.append(now_ms(), Event::Notice(notice));
    }

    /// What the user should know of what the model is told.
    fn warn(&mut self) {
        for message in self.briefing.warnings() {
            let notice = Notice {
                severity: Severity::Warning,
                code: "context".to_owned(),
                message,
                document: None,
            };
            self.log.append(now_ms(), Event::Notice(notice));
        }
    }
}

async fn looked(looking: Option<&mut Looking>) -> (bool, Option<Standing>) {
    match looking {
        Some((is_wanted, standing)) => (*is_wanted, standing.await),
        None => std::future::pending().await,
    }
}

/// Waits for ever where there is nothing to wait for.
async fn maybe<F: Future + Unpin>(future: Option<F>) -> Option<F::Output> {
    match future {
        Some(future) => Some(future.await),
        None => std::future::pending().await,
    }
}

fn now_ms() -> u64 {
    u64::try_from(chrono::Utc::now().timestamp_millis()).unwrap_or_default()
}

#[cfg(test)]
mod tests;
