//! Runs turns: takes letters, polls the model, runs tools, appends to the log. The only part of the agent that touches
//! the world.
//!
//! Everything happens on the thread of whoever runs it, which may be the screen's; what may take long (tools that read or
//! change files, what a model is told of the workspace) has threads of its own.

use std::{
    any::Any,
    borrow::Cow,
    collections::{HashMap, VecDeque},
    pin::Pin,
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

use futures::{
    FutureExt, Stream, StreamExt,
    stream::{FuturesOrdered, FuturesUnordered, SelectAll},
};
use tokio::sync::{mpsc, watch};

use super::{
    approval::{Rule, remember},
    background::{self, Background},
    behind::Behind,
    brief::{Briefing, Heard},
    checks::Known,
    compact, history, hold, marks, review,
    trust::{Page, Standing, Verdict},
    turn::{Effect, Input, JobId, Prepared, Purpose, Turn},
    undo::{self, Restored},
};
use crate::{
    config::{Paths, Settings},
    index::Index,
    journal::{Flood, Log, Raw, Stint, TooMany},
    link::{
        AskError, Asker, Hold,
        local::{Inbox, Letter},
    },
    model::{
        Chosen, Effort, EndReason, Failure, FailureKind, ModelMessage, ModelRequest, Piece, PieceStream, Provider,
        Roles, catalogue,
    },
    os::panic,
    protocol::{
        ASIDE, Applied, Branch, ClarificationResponse, Command, ConversationId, DocumentId, Entry, Event, Mode, Notice,
        Position, Query, Reply, ResponseId, Restore, Severity, Shorten, Submit, Title, Turn as ProtocolTurn,
    },
    sandbox::{Checkpoints, Commands, Seen, Settled, Tier, Workspace},
    text::redact,
    tool::{Access, Context, Fault, Input as Arguments, Outcome, Proposal, Stop, Tool, Work},
    transcript::Transcript,
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
    rejected: VecDeque<(crate::protocol::Turn, DocumentId)>,
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
    next: Option<Pin<Box<dyn Future<Output = Box<super::turn::Submission>> + Send>>>,
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

/// A command that the user runs. It stands where a model's call would, so that it is judged, held, shown and remembered
/// like one; the model is not asked.
struct Own {
    line: String,
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
        let (id, name) = (format!("own_{now_ms}"), "run_terminal_cmd".to_owned());
        let mut arguments = serde_json::Map::new();
        arguments.insert("command".into(), self.line.clone().into());
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
    Ready(Box<super::turn::Submission>),
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
                Happened::Heard(heard) if !self.turn.is_running() => self.queue.push_back((heard.submit, Wish::Answer)),
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

    /// In a flood, adds to a piece of text what is there already, and returns what came behind that.
    fn gather(&mut self, input: Input) -> (Input, Option<Input>) {
        match input {
            Input::Piece(Piece::Text(text)) => self.gather_text(text),
            Input::Output { job, text } => self.gather_output(job, text),
            other => (other, None),
        }
    }

    fn gather_text(&mut self, mut text: String) -> (Input, Option<Input>) {
        let mut next = None;
        if let Some(stream) = &mut self.stream
            && self.flood.is_high()
        {
            while !self.stint.is_over() {
                match stream.next().now_or_never() {
                    None => break,
                    Some(Some(Piece::Text(more))) => {
                        text.push_str(&more);
                        self.stint.spend(more.len());
                    }
                    Some(other) => {
                        next = Some(Input::Piece(other.unwrap_or_else(endless)));
                        break;
                    }
                }
            }
        }
        (Input::Piece(Piece::Text(text)), next)
    }

    fn gather_output(&mut self, job: JobId, mut text: String) -> (Input, Option<Input>) {
        let mut next = None;
        while !self.stint.is_over() {
            match self.outputs.next().now_or_never().flatten() {
                None => break,
                Some((same, more)) if same == job => {
                    text.push_str(&more);
                    self.stint.spend(more.len());
                }
                Some((job, text)) => {
                    next = Some(Input::Output { job, text });
                    break;
                }
            }
        }
        (Input::Output { job, text }, next)
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
                let own = Own {
                    line,
                    is_shown,
                    is_asked: false,
                    from: 0,
                };
                self.queue.push_back((submit, Wish::Command(own)));
            }
            Command::Steer(submit) if self.turn.is_running() => {
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
            Command::Answer { .. } => {
                let notice = Notice {
                    severity: Severity::Warning,
                    code: "no-question".to_owned(),
                    message: "no question is open: the answer was left out".to_owned(),
                    document: None,
                };
                self.log.append(now_ms(), Event::Notice(notice));
            }
        }
    }

    /// Begins to take back the next change that the user has rejected; what it did is in the log afterwards.
    fn take_back(&mut self) {
        while self.reversal.is_none()
            && let Some((turn, document)) = self.rejected.front()
        {
            let mut response = crate::protocol::Response::default();
            for entry in self.log.after(Position(0)).iter().filter(|it| it.turn == *turn) {
                response.apply(&entry.event, entry.at_ms);
            }
            let at = response.position_of(document);
            match at.and_then(|it| review::rejected(&response, it)) {
                Some(Ok(rejected)) => {
                    let workspace = self.setup.workspace.clone();
                    let seen = Arc::clone(&self.seen);
                    let work = tokio::task::spawn_blocking(move || {
                        let workspace = workspace.ok_or("there is no workspace here")?;
                        review::take_back(&workspace, &seen, &rejected).map_err(|it| it.to_string())
                    });
                    self.reversal =
                        Some(Box::pin(work.map(|it| {
                            it.unwrap_or_else(|it| Err(format!("taking it back broke down: {it}")))
                        })));
                }
                Some(Err(why)) => {
                    self.rejected.pop_front();
                    self.say_kept(why.to_string());
                }
                None => {
                    self.rejected.pop_front();
                    self.say_kept("it is no change of a file".to_owned());
                }
            }
        }
    }

    fn reversed(&mut self, result: Result<(), String>) {
        self.reversal = None;
        if let Some((turn, document)) = self.rejected.pop_front() {
            match result {
                Ok(()) => {
                    let mut metadata = serde_json::Map::new();
                    metadata.insert("applied".into(), Applied::Rejected.as_str().into());
                    self.log
                        .append_to(turn, now_ms(), Event::DocumentUpdate { document, metadata });
                }
                Err(why) => self.say_kept(why),
            }
        }
        self.take_back();
    }

    /// The conversation goes on somewhere else: the model is told what was said there, and nothing else.
    fn go_on(&mut self, branch: Branch) {
        if self.turn.is_running() || self.next.is_some() {
            return self.notice(
                "not-there",
                "an answer is being made: the conversation goes on here".to_owned(),
            );
        }
        self.log.append(now_ms(), Event::Branch(branch));
        let transcript = Transcript::of(&self.log.after(Position(0)));
        self.turn.memory.begin_again(transcript.todos);
        self.is_seeded = false;
        self.told.clear();
    }

    /// Begins to take back, or to do again, what calls did to files.
    fn restore(&mut self, wish: Restore) {
        if self.turn.is_running() || self.next.is_some() || self.restoring.is_some() {
            return self.notice(
                "not-restored",
                "nothing is taken back while an answer is made".to_owned(),
            );
        }
        let Some(workspace) = self.setup.workspace.clone() else {
            return self.notice("not-restored", "there is no workspace here".to_owned());
        };
        let seen = Arc::clone(&self.seen);
        let entries = self.log.after(Position(0));
        let work = tokio::task::spawn_blocking(move || {
            let transcript = Transcript::of(&entries);
            undo::restore(&seen, &workspace, &transcript, &wish)
        });
        let broken = |it| Err(format!("taking it back broke down: {it}"));
        self.restoring = Some(Box::pin(work.map(move |it| it.unwrap_or_else(broken))));
    }

    fn restored(&mut self, result: Result<Restored, String>) {
        self.restoring = None;
        match result {
            Ok(Restored { events, said, told }) => {
                for (turn, event) in events {
                    self.log.append_to(turn, now_ms(), event);
                }
                self.told.push_str(&told);
                let notice = Notice {
                    severity: Severity::Info,
                    code: "restored".to_owned(),
                    message: said,
                    document: None,
                };
                self.log.append(now_ms(), Event::Notice(notice));
            }
            Err(why) => self.notice("not-restored", why),
        }
    }

    fn say_kept(&self, message: String) {
        let notice = Notice {
            severity: Severity::Warning,
            code: "not-taken-back".to_owned(),
            message,
            document: None,
        };
        self.log.append(now_ms(), Event::Notice(notice));
    }

    /// Opens the question whether the workspace may act, where there is something to ask and nobody else has the word.
    fn ask_for_trust(&mut self, is_wanted: bool, standing: Option<Standing>) {
        let asked = |it: &Standing| {
            if is_wanted {
                !it.shut.is_empty()
            } else {
                !it.asked.is_empty()
            }
        };
        let Some(mut standing) = standing.filter(asked) else {
            if is_wanted {
                self.notice("trust", "nothing here waits for your trust".to_owned());
            }
            return;
        };
        if is_wanted {
            standing.asked = std::mem::take(&mut standing.shut);
        }
        let is_free = !self.turn.is_running() && self.next.is_none() && self.queue.is_empty() && self.page.is_none();
        if !is_free {
            let names: Vec<&str> = standing.asked.iter().take(3).map(|it| it.path.as_str()).collect();
            let message = format!(
                "{} of this folder do nothing before you trust them ({}): /trust asks about it",
                standing.asked.len(),
                names.join(", ")
            );
            self.notice("trust", message);
            return;
        }
        if self.log.last() != Position(0) {
            self.log.append(now_ms(), Page::message());
        }
        let (page, events) = Page::open(&standing);
        self.page = Some((page, self.log.turn()));
        for event in events {
            self.log.append(now_ms(), event);
        }
    }

    /// Closes that question, if it is open; no answer is a no for now.
    fn take_trust(&mut self, response: Option<&ClarificationResponse>) {
        let Some((page, turn)) = self.page.take() else { return };
        let verdict = response.map_or(Verdict::Later, Page::verdict);
        let kept = match (&self.setup.workspace, &self.setup.paths) {
            (Some(workspace), Some(paths)) => page.keep(verdict, workspace, paths),
            (Some(_) | None, _) => Err("there is nowhere to keep it".to_owned()),
        };
        let word = match (verdict, &kept) {
            (Verdict::Later, _) => "Nothing of this folder acts. /trust asks again.".to_owned(),
            (Verdict::Trusted | Verdict::Never, Err(why)) => {
                format!("Nothing of this folder acts: what you said could not be kept. {why}")
            }
            (Verdict::Never, Ok(_)) => "Nothing of this folder acts. It is asked again when a file changes.".to_owned(),
            (Verdict::Trusted, Ok(_)) => {
                // What holds from now on is read again, and compared with what was shown.
                self.looking = Some((false, self.briefing.look_again(&self.setup)));
                "These files act from your next message on.".to_owned()
            }
        };
        for event in page.close(response, &word) {
            self.log.append_to(turn, now_ms(), event);
        }
    }

    /// What was done about protected files is said to the user, whoever waited for the command.
    fn tell_settled(&mut self, settled: &Settled) {
        let mut told = settled.told();
        let more = told.len().saturating_sub(1);
        if let Some(first) = told.first_mut().filter(|_| more > 0) {
            first.push_str(&format!(" (and {more} more)"));
        }
        if settled.is_breach() && !std::mem::replace(&mut self.turn.memory.is_halted, true) {
            told.push(
                "from here on every command of this conversation asks, and the top of the workspace is held again"
                    .to_owned(),
            );
            self.tell_hold();
        }
        // One notice: what comes later would take the place of what came before.
        if !told.is_empty() {
            self.notice("protected", told.join("\n"));
        }
    }

    /// The header says what holds from now on.
    fn tell_hold(&self) {
        if let Some(workspace) = &self.setup.workspace {
            hold::tell(workspace, &self.setup.hold);
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

    fn submit(&mut self, submit: Submit) {
        if !std::mem::replace(&mut self.is_seeded, true) {
            let entries = self.log.after(Position(0));
            // A server that is offered no tools may refuse calls of them.
            let before = if self.setup.tools.is_empty() {
                history::spoken(&entries)
            } else {
                history::told(&entries)
            };
            self.turn.memory.remember(before);
            let is_title = |it: &Arc<Entry>| matches!(it.event, Event::Title(_));
            self.turn.memory.is_titled = entries.iter().any(is_title);
            self.turn.memory.dollars = spent(&entries);
        }
        self.seen.begin(u64::from(self.log.turn().0) + 1);
        self.briefing.begin();
        let was = self.mode.replace(submit.mode);
        if was == Some(Mode::Debug) && submit.mode != Mode::Debug {
            self.look_for_marks();
        }
        if self.setup.asker == Asker::Here && !submit.mode.is_read_only() {
            self.look_first();
        }
        self.choose(submit.model.as_deref());
        self.size_up();
        // What only makes room tells the model nothing.
        let facts = super::brief::Said {
            is_aside: self.shorten.is_some(),
            ..self.facts(!self.turn.memory.is_opened)
        };
        self.next = Some(self.briefing.brief(submit, facts, &self.setup));
    }

    /// Remembers what the model that answers takes in: what the settings or the catalogue say, else what its server says,
    /// which is asked once.
    fn size_up(&mut self) {
        let Chosen { provider, model } = &self.chosen;
        let known = catalogue::known(model, &self.setup.settings.models).window;
        let asked = (provider.peer().to_owned(), model.clone());
        self.turn.memory.window = known.or(self.windows.get(&asked).copied().flatten());
        if known.is_some() || !self.setup.asker.is_attended() || self.windows.contains_key(&asked) {
            return;
        }
        self.windows.insert(asked.clone(), None);
        let provider = Arc::clone(provider);
        self.sizing.push(Box::pin(async move {
            let model = asked.1.clone();
            if let Some(window) = provider.window(model.clone()).await {
                return (asked, Some(window));
            }
            let listed = provider.models().await.unwrap_or_default();
            let found = listed.iter().find(|it| it.id == model || model.is_empty());
            (asked, found.and_then(|it| it.window))
        }));
    }

    fn facts(&self, is_first: bool) -> super::brief::Said {
        super::brief::Said {
            response: ResponseId::fresh(),
            is_first,
            is_aside: false,
            chosen: self.chosen.clone(),
            seen: Arc::clone(&self.seen),
            log: Arc::clone(&self.log),
        }
    }

    /// Who answers from here on: a model of the provider, or another provider's as `provider/model`.
    fn choose(&mut self, wanted: Option<&str>) {
        let provider = Arc::clone(&self.setup.provider);
        let Some(wanted) = wanted.filter(|it| !it.is_empty()) else {
            self.chosen = Chosen {
                provider,
                model: self.setup.model.clone(),
            };
            return;
        };
        let is_elsewhere = wanted
            .split_once('/')
            .is_some_and(|(name, _)| self.setup.settings.providers.contains_key(name));
        if is_elsewhere {
            match self.setup.roles.named(wanted) {
                Ok(chosen) => return self.chosen = chosen,
                Err(failure) => {
                    let notice = Notice {
                        severity: Severity::Error,
                        code: "no-such-model".to_owned(),
                        message: failure.message.into(),
                        document: None,
                    };
                    self.log.append(now_ms(), Event::Notice(notice));
                }
            }
        }
        self.chosen = Chosen {
            provider,
            model: wanted.to_owned(),
        };
    }

    /// Asks the model for side jobs for a title, once, where there is one.
    fn think_of_title(&mut self) {
        if std::mem::replace(&mut self.has_title, true) || !self.setup.asker.is_attended() {
            return;
        }
        let Ok(Some(fast)) = self.setup.roles.fast() else {
            return;
        };
        // A conversation that was taken up again has its title: the user's, or one that was thought of then.
        let entries = self.log.after(Position(0));
        let titles = entries.iter().filter_map(|it| match &it.event {
            Event::Title(title) => Some(title),
            _ => None,
        });
        if titles.clone().count() > 1 || titles.clone().any(|it| it.by_user) {
            return;
        }
        let mut said = history::spoken(&self.log.after(Position(0))).messages;
        said.truncate(2);
        said.push(ModelMessage::user(
            "Give this conversation a title of at most six words, in its language. Answer with the title alone.",
        ));
        let request = ModelRequest {
            model: fast.model,
            messages: said,
            effort: Some(Effort::Off),
            ..ModelRequest::default()
        };
        let mut pieces = fast.provider.stream(request);
        self.titles.push(Box::pin(async move {
            let mut title = String::new();
            while let Some(piece) = pieces.next().await {
                match piece {
                    Piece::Text(text) if title.len() < 400 => title.push_str(&text),
                    Piece::Error(_) => return None,
                    _ => {}
                }
            }
            let line = title.lines().map(str::trim).find(|it| !it.is_empty())?;
            let line = line.trim_matches(['"', '#', '*', ' ', '.']);
            (!line.is_empty() && line.chars().count() <= 80).then(|| line.to_owned())
        }));
    }

    /// Tells who looks closely what came of a server. What is made from then on is made of it, until something else happens.
    fn trace(&self, input: &Input, now_ms: u64) {
        let Some(trace) = self.log.trace() else { return };
        let Input::Piece(piece) = input else {
            return trace.over();
        };
        if let Piece::Seen(raw) = piece {
            trace.came(now_ms, self.log.turn(), raw.as_ref().clone());
            if matches!(**raw, Raw::Request(_)) {
                trace.over();
            }
        }
    }

    fn step(&mut self, input: Input) {
        let was_running = self.turn.is_running();
        if matches!(input, Input::Piece(Piece::End(_) | Piece::Error(_))) {
            // It is over: to poll it again would bring its end again, for as long as tools run.
            self.stream = None;
        }
        let now = now_ms();
        self.trace(&input, now);
        let mut is_too_much = false;
        for effect in self.turn.step(input, now) {
            match effect {
                Effect::Append(event) => {
                    if matches!(event, Event::UserMessage(_)) {
                        self.flood = Flood::default();
                    }
                    is_too_much |= self.flood.count(&event) == Err(TooMany);
                    self.background
                        .note(&event, self.log.turn(), self.setup.workspace.as_deref());
                    self.log.append(now, event);
                }
                Effect::CallModel { .. } if self.own.is_some() => {
                    self.stream = self.own.as_mut().map(|it| it.stream(now));
                }
                Effect::CallModel { mut request, stand_in } => {
                    self.briefing.touched(&self.seen, &mut self.turn.memory, &mut request);
                    let others = self.setup.roles.fallback();
                    let provider = match stand_in.checked_sub(1).and_then(|it| others.get(it)) {
                        Some(other) => {
                            request.model.clone_from(&other.model);
                            &other.provider
                        }
                        None => &self.chosen.provider,
                    };
                    request.is_watched = self.log.trace().is_some();
                    self.stream = Some(provider.stream(request));
                }
                Effect::Summarise { brief, attempt } => self.summarise(&brief, attempt),
                Effect::Forgot => self.briefing.forgot(),
                Effect::StopModel => self.stream = None,
                Effect::Prepare {
                    job,
                    tool,
                    call,
                    arguments,
                } => self.prepare(job, tool, call, arguments),
                Effect::Run {
                    job,
                    tool,
                    call,
                    arguments,
                    was_asked,
                } => self.run_tool(job, tool, call, arguments, was_asked),
                Effect::Make { job, call, proposal } => self.make(job, call, proposal),
                Effect::Check(job) => self.check(job),
                Effect::StopJobs => self.stop_jobs(),
                Effect::Store(rules) => self.store(&rules),
                Effect::Expire(document) => self.timers.push(Box::pin(async move {
                    tokio::time::sleep(PATIENCE).await;
                    Input::Expired(document)
                })),
                Effect::FindMarks => self.find_marks(),
            }
        }
        if is_too_much && self.turn.is_running() {
            let message = "the answer has more pieces than can be kept";
            let failure = Failure::new(FailureKind::Oversized, message);
            self.step(Input::Piece(Piece::Error(failure)));
            // Where it was not the model that flooded, but a tool.
            self.step(Input::Cancel);
        }
        if !self.turn.is_running() {
            self.stream = None;
            self.timers.clear();
            self.looked_at.lock().unwrap_or_else(PoisonError::into_inner).clear();
            self.known.lock().unwrap_or_else(PoisonError::into_inner).clear();
            if was_running {
                self.briefing.ended(&self.seen, self.setup.workspace.as_ref());
                if let Some(own) = self.own.take() {
                    if !own.is_shown {
                        self.turn.memory.told.truncate(own.from);
                    }
                } else {
                    self.think_of_title();
                }
            }
        }
    }

    /// Asks for a summary: the model for side jobs, if there is one, then the one that answers.
    fn summarise(&mut self, brief: &compact::Brief, attempt: u32) {
        let fast = self.setup.roles.fast().ok().flatten().filter(|_| attempt == 0);
        let chosen = fast.as_ref().unwrap_or(&self.chosen);
        let known = catalogue::known(&chosen.model, &self.setup.settings.models).window;
        let window = known.or(if fast.is_some() { None } else { brief.window });
        let request = ModelRequest {
            model: chosen.model.clone(),
            is_attended: self.setup.asker.is_attended(),
            is_watched: self.log.trace().is_some(),
            ..compact::request(brief, window, attempt)
        };
        self.stream = Some(chosen.provider.stream(request));
    }

    fn context(&self, call: String, output: mpsc::UnboundedSender<String>) -> Option<Context> {
        let workspace = Arc::clone(self.setup.workspace.as_ref()?);
        Some(Context {
            workspace,
            seen: Arc::clone(&self.seen),
            index: Arc::clone(&self.index),
            findings: self.briefing.findings(),
            settings: Arc::clone(&self.setup.settings),
            apply: self.setup.roles.apply().ok().flatten(),
            call,
            output,
            stop: self.stop.0.clone(),
        })
    }

    /// Looks at the workspace on a thread of its own, which nobody waits for: the first command needs to know what was there.
    fn look_first(&mut self) {
        let Some(workspace) = self.setup.workspace.clone() else {
            return;
        };
        if std::mem::replace(&mut self.has_looked, true) || self.seen.checkpoints().is_none() {
            return;
        }
        let seen = Arc::clone(&self.seen);
        let look = move || {
            if let Some(checkpoints) = seen.checkpoints() {
                checkpoints.prepare(&workspace);
            }
        };
        if let Err(error) = std::thread::Builder::new().name("survey".to_owned()).spawn(look) {
            tracing::warn!(%error, "the workspace is looked at when the first command runs");
        }
    }

    /// Works out what a call would touch or change, on a thread of its own.
    fn prepare(&mut self, job: JobId, tool: &'static Tool, call: String, arguments: Arguments) {
        let (output, _) = mpsc::unbounded_channel();
        let context = self.context(call, output);
        if matches!(tool.work, Work::Command { .. }) {
            self.look_first();
        }
        let looked_at = Arc::clone(&self.looked_at);
        let work = async move {
            let Some(context) = context else {
                return Err(no_workspace());
            };
            match tool.work {
                Work::Call { touches, .. } | Work::Command { touches, .. } => {
                    let accesses = touches(&arguments, &context)?;
                    let has_command = accesses.iter().any(|it| matches!(it, Access::Command { .. }));
                    if matches!(tool.work, Work::Command { .. }) {
                        let behind = Behind::of(&accesses, &context.workspace);
                        looked_at
                            .lock()
                            .unwrap_or_else(PoisonError::into_inner)
                            .insert(job, behind);
                    }
                    Ok(Prepared {
                        accesses,
                        proposal: None,
                        tier: if has_command { Commands::tier() } else { Tier::None },
                    })
                }
                Work::Change(propose) => {
                    let proposal = propose(arguments, context).await?;
                    Ok(Prepared {
                        accesses: proposal.accesses(),
                        proposal: Some(proposal),
                        tier: Tier::None,
                    })
                }
                Work::Turn(_) => Ok(Prepared {
                    accesses: Vec::new(),
                    proposal: None,
                    tier: Tier::None,
                }),
            }
        };
        let work = self.aside(work);
        self.jobs.push(Box::pin(async move {
            let result = work.await;
            Input::Prepared { job, result }
        }));
    }

    fn run_tool(&mut self, job: JobId, tool: &'static Tool, call: String, mut arguments: Arguments, was_asked: bool) {
        let began = Instant::now();
        let behind = self
            .looked_at
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .remove(&job)
            .filter(|_| was_asked);
        // Another command may have gone elsewhere since the user was shown where this one runs.
        if let Some(directory) = behind.as_ref().and_then(|it| it.directory.as_ref()?.to_str()) {
            arguments.0.insert("working_directory".to_owned(), directory.into());
        }
        let (output, mut printed) = mpsc::unbounded_channel();
        let context = self.context(call, output);
        let is_command = matches!(tool.work, Work::Command { .. });
        let work = async move {
            let Some(context) = context else {
                return Err(no_workspace());
            };
            if let Some(behind) = behind {
                let workspace = Arc::clone(&context.workspace);
                let looked = tokio::task::spawn_blocking(move || behind.changed(&workspace)).await;
                if let Some(file) = looked.unwrap_or_default() {
                    let message = format!("`{file}` has changed since the user was asked about this command");
                    return Err(Fault::new("COMMAND_CHANGED", message)
                        .hint("It was not run. Call again, so that the user can look at what it is now."));
                }
            }
            match tool.work {
                Work::Command { run, .. } => undo::watched(run, arguments, context).await,
                Work::Call { run, .. } => run(arguments, context).await,
                Work::Change(_) | Work::Turn(_) => Ok(Outcome::default()),
            }
        };
        let done = move |result: Result<Outcome, Fault>| Input::Ran {
            job,
            // Whatever a tool has come upon, the model is not told our keys.
            result: result.map(|it| match redact::held(&it.text) {
                Cow::Borrowed(_) => it,
                Cow::Owned(text) => Outcome { text, ..it },
            }),
            took_ms: u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX),
        };
        if is_command {
            let printed = futures::stream::poll_fn(move |cx| printed.poll_recv(cx));
            self.outputs.push(Box::pin(printed.map(move |text| (job, text))));
            // On this very thread: a child that is to die with its parent dies with the thread that started it.
            self.jobs.push(Box::pin(async move {
                let result = panic::contained(work).await;
                done(result.unwrap_or_else(|panic| Err(broken(&panic))))
            }));
        } else {
            let work = self.aside(work);
            self.jobs.push(Box::pin(async move { done(work.await) }));
        }
    }

    fn make(&mut self, job: JobId, call: String, proposal: Proposal) {
        let began = Instant::now();
        let workspace = self.setup.workspace.clone();
        let seen = Arc::clone(&self.seen);
        let (lints, known) = (self.briefing.lints(), Arc::clone(&self.known));
        let work = self.aside(async move {
            let workspace = workspace.ok_or_else(no_workspace)?;
            if let Some(before) = lints.and_then(|it| it.before(&proposal.changes)) {
                known.lock().unwrap_or_else(PoisonError::into_inner).insert(job, before);
            }
            workspace.commit_for(&seen, &call, &proposal.changes)?;
            Ok(Outcome::default())
        });
        self.jobs.push(Box::pin(async move {
            Input::Ran {
                job,
                result: work.await,
                took_ms: u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX),
            }
        }));
    }

    /// Asks checkers about what a call has changed. Whatever becomes of it, there is an answer, and soon.
    fn check(&mut self, job: JobId) {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner).remove(&job);
        let asked = self
            .briefing
            .lints()
            .zip(known)
            .map(|(lints, known)| lints.after(known));
        self.jobs.push(Box::pin(async move {
            let said = match asked {
                Some(asked) => asked.await,
                None => None,
            };
            let text = said.unwrap_or_default();
            Input::Checked {
                job,
                text: redact::held(&text).into_owned(),
            }
        }));
    }

    /// Runs `work` on a thread where it may block. Whatever becomes of it, there is a result.
    fn aside<T: Send + 'static>(
        &self,
        work: impl Future<Output = Result<T, Fault>> + Send + 'static,
    ) -> Pin<Box<dyn Future<Output = Result<T, Fault>> + Send>> {
        let mut stopped = self.stop.1.subscribe();
        let runtime = tokio::runtime::Handle::current();
        let task = tokio::task::spawn_blocking(move || {
            runtime.block_on(async move {
                tokio::select! {
                    biased;
                    _ = stopped.wait_for(|it| *it) => Err(Fault::new("CANCELLED", "cancelled by the user")),
                    result = panic::contained(work) => {
                        result.unwrap_or_else(|panic| Err(broken(&panic)))
                    }
                }
            })
        });
        let broken = |error| Err(Fault::new("INTERNAL", format!("the tool broke down: {error}")));
        Box::pin(task.map(move |it| it.unwrap_or_else(broken)))
    }

    fn stop_jobs(&mut self) {
        let (stop, sender) = std::mem::replace(&mut self.stop, (Stop::default(), watch::Sender::new(false)));
        stop.set();
        sender.send_replace(true);
        self.jobs.clear();
        self.outputs.clear();
    }

    /// Debugging is left: what it put into the code should not stay there unsaid.
    fn look_for_marks(&self) {
        let workspace = self.setup.workspace.clone();
        let stop = Stop::default();
        let work = self.aside(async move { Ok(workspace.map_or_else(Vec::new, |it| marks::find(&it, &stop))) });
        self.left.push(Box::pin(work.map(Result::unwrap_or_default)));
    }

    fn find_marks(&mut self) {
        let workspace = self.setup.workspace.clone();
        let stop = self.stop.0.clone();
        let work = self.aside(async move { Ok(workspace.map_or_else(Vec::new, |it| marks::find(&it, &stop))) });
        self.jobs
            .push(Box::pin(async move { Input::Marks(work.await.unwrap_or_default()) }));
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

    /// Keeps rules for good; where that fails, they hold for this conversation and the user hears why.
    fn store(&mut self, rules: &[Rule]) {
        let stored = match &self.setup.paths {
            Some(paths) => remember(paths, rules).map_err(|it| it.to_string()),
            None => Err("there is no configuration to write to".to_owned()),
        };
        if let Err(why) = stored {
            let rules: Vec<String> = rules.iter().map(Rule::to_string).collect();
            let notice = Notice {
                severity: Severity::Warning,
                code: "rule-not-kept".to_owned(),
                message: format!("{} holds for this conversation only: {why}", rules.join(", ")),
                document: None,
            };
            self.log.append(now_ms(), Event::Notice(notice));
        }
    }

    /// Asks the server or the workspace beside the answer that may be running.
    fn ask(&mut self, query: Query, reply: tokio::sync::oneshot::Sender<Result<Reply, AskError>>) {
        let peer = self.setup.provider.peer().to_owned();
        match query {
            Query::Models => {
                let models = self.setup.provider.models();
                tokio::spawn(async move {
                    let answer = match models.await {
                        Ok(models) => Ok(Reply::Models(models.into_iter().map(|it| it.id).collect())),
                        Err(failure) => Err(AskError::Failed {
                            peer,
                            source: failure.into(),
                        }),
                    };
                    // Nobody may be waiting any more.
                    let _ = reply.send(answer);
                });
            }
            Query::Trust => {
                let is_possible = self.setup.asker == Asker::Here && self.setup.workspace.is_some();
                if is_possible && self.page.is_none() {
                    self.looking = Some((true, self.briefing.look_again(&self.setup)));
                }
                let heard = if is_possible {
                    Ok(Reply::Heard)
                } else {
                    Err(AskError::Unsupported { peer })
                };
                // Nobody may be waiting any more.
                let _ = reply.send(heard);
            }
            Query::Changes | Query::Restoration(_) => {
                let Some(workspace) = self.setup.workspace.clone() else {
                    // Nobody may be waiting any more.
                    let _ = reply.send(Err(AskError::Unsupported { peer }));
                    return;
                };
                let seen = Arc::clone(&self.seen);
                let entries = self.log.after(Position(0));
                tokio::task::spawn_blocking(move || {
                    let answer = undo::ask(&query, &seen, &workspace, &entries);
                    // Nobody may be waiting any more.
                    let _ = reply.send(answer.ok_or(AskError::Unsupported { peer }));
                });
            }
            Query::Opened(path) => {
                let heard = match &self.setup.workspace {
                    Some(workspace) => {
                        self.briefing.opened(path, workspace);
                        Ok(Reply::Heard)
                    }
                    None => Err(AskError::Unsupported { peer }),
                };
                let _ = reply.send(heard);
            }
            Query::Sandbox { guard } => {
                let Some(workspace) = self.setup.workspace.clone().filter(|_| self.setup.asker == Asker::Here) else {
                    // Nobody may be waiting any more.
                    let _ = reply.send(Err(AskError::Unsupported { peer }));
                    return;
                };
                let (paths, hold) = (self.setup.paths.clone(), self.setup.hold.clone());
                // The first who asks waits for a trial.
                tokio::task::spawn_blocking(move || {
                    // Nobody may be waiting any more.
                    let _ = reply.send(Ok(Reply::Sandbox(hold::sandbox(
                        &workspace,
                        paths.as_ref(),
                        guard,
                        &hold,
                    ))));
                });
            }
            Query::Files { .. } | Query::Context => {
                let answer = self.briefing.ask(query, &self.setup, &self.chosen, &self.turn.memory);
                tokio::spawn(async move {
                    let _ = reply.send(answer.await.ok_or(AskError::Unsupported { peer }));
                });
            }
        }
    }
}

/// What the answers of a conversation have cost, as far as it was known.
fn spent(entries: &[Arc<Entry>]) -> f64 {
    let cost = |it: &Arc<Entry>| match &it.event {
        Event::Done(done) => done.extra_usage.get("costUsd")?.as_f64(),
        _ => None,
    };
    entries.iter().filter_map(cost).sum()
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

fn text_of(input: &Input) -> &str {
    if let Input::Piece(Piece::Text(text) | Piece::Thinking(text)) | Input::Output { text, .. } = input {
        text
    } else {
        ""
    }
}

/// The end of an answer whose provider forgot it: the conversation must not hang.
fn endless() -> Piece {
    let message = "the provider stopped without a word";
    Piece::Error(Failure::new(FailureKind::Interrupted, message))
}

fn no_workspace() -> Fault {
    Fault::new("TOOL_FAILED", "there is no workspace here")
}

/// A tool that panicked: its call failed, and nothing else.
fn broken(panic: &Box<dyn Any + Send>) -> Fault {
    let text = panic.downcast_ref::<&str>().copied();
    let text = text
        .or_else(|| panic.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("no message");
    Fault::new("INTERNAL", format!("the tool broke down: {text}")).hint("Do it in another way.")
}

fn now_ms() -> u64 {
    u64::try_from(chrono::Utc::now().timestamp_millis()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use std::{io::Write, time::Instant};

    use pretty_assertions::assert_eq;
    use serde_json::{Value, json};
    use tokio::{net::TcpSocket, task::JoinHandle};

    use super::*;
    use crate::{
        agent::prompt,
        config::{self, Connection, Environment},
        journal::Follower,
        link::{About, Link, local::Local},
        model::{self, Model, ModelRequest, Promise},
        net::peer::{self, STREAM, Socket, page},
        protocol::{Entry, FinishReason, Kind, Message, Mode, Progress, Status},
        transcript::Transcript,
    };

    /// A conversation with a server, as a consumer has it.
    struct Conversation {
        link: Local,
        follower: Follower,
        transcript: Transcript,
        seen: Vec<Arc<Entry>>,
        agent: JoinHandle<()>,
        /// How long nothing may come before nothing will.
        patience: Duration,
    }

    impl Conversation {
        fn with(url: &str) -> Self {
            Self::over(config::Provider {
                connection: Connection::default().at(url),
                ..config::Provider::default()
            })
        }

        fn over(settings: config::Provider) -> Self {
            Self::of(model::open(&settings, &Environment::default()).expect("sound settings"))
        }

        fn of(provider: Arc<dyn Provider>) -> Self {
            let log = Log::new();
            let (link, inbox) = Local::new(
                Arc::clone(&log),
                About {
                    peer: provider.peer().to_owned(),
                    ..About::default()
                },
            );
            let setup = Setup {
                provider,
                model: "m".to_owned(),
                conversation: "conv_1".into(),
                asker: Asker::Here,
                workspace: None,
                settings: Arc::default(),
                tools: Vec::new(),
                roles: Arc::new(Roles::new(&Settings::default(), &Environment::default())),
                paths: None,
                hold: Hold::default(),
            };
            let agent = tokio::spawn(run(setup, Arc::clone(&log), inbox));
            let follower = log.follow(Position(0));
            Self {
                link,
                follower,
                transcript: Transcript::default(),
                seen: Vec::new(),
                agent,
                patience: Duration::from_secs(20),
            }
        }

        fn say(&self, message: &str) {
            self.submit(message, Mode::Agent, None);
        }

        fn submit(&self, message: &str, mode: Mode, model: Option<&str>) {
            self.link.send(Command::Submit(Submit {
                message: Message::user(message),
                mode,
                model: model.map(str::to_owned),
            }));
        }

        /// Reads the log until `is_there` holds of what was read.
        async fn until(&mut self, what: &str, is_there: impl Fn(&Self) -> bool) {
            while !is_there(self) {
                let mut batch = Vec::new();
                let next = tokio::time::timeout(self.patience, self.follower.next(&mut batch)).await;
                assert!(
                    next.unwrap_or_else(|_| panic!("still no {what}: {:#?}", self.seen)),
                    "the log ended before {what}"
                );
                self.transcript.apply_all(&batch);
                self.seen.extend(batch);
            }
        }

        async fn until_done(&mut self, turns: usize) {
            self.until("done", |it| it.ended() == turns).await;
        }

        fn ended(&self) -> usize {
            self.transcript
                .exchanges
                .iter()
                .filter(|it| !it.response.is_running())
                .count()
        }

        fn has_progress(&self, is: fn(&Progress) -> bool) -> bool {
            self.seen
                .iter()
                .any(|it| matches!(&it.event, Event::Progress(progress) if is(progress)))
        }

        /// The documents of an answer, and how it ended.
        fn shown(&self, turn: usize) -> String {
            let response = &self
                .transcript
                .exchanges
                .get(turn - 1)
                .expect("the turn is there")
                .response;
            let mut shown: Vec<String> = response
                .documents
                .iter()
                .map(|it| {
                    let code = it
                        .metadata
                        .get("errorCode")
                        .and_then(Value::as_str)
                        .map(|it| format!(" {it}"));
                    let cut = if it.is_incomplete() { " incomplete" } else { "" };
                    format!("{}{}{cut} {:?}", it.kind, code.unwrap_or_default(), it.text())
                })
                .collect();
            let ending = response.ending.as_ref().expect("it ended");
            shown.push(format!("{} {}", ending.status, ending.finish_reason));
            shown.join(" | ")
        }
    }

    fn chunk(text: &str) -> String {
        format!("data: {}\n\n", json!({ "choices": [{ "delta": { "content": text } }] }))
    }

    const END: &str = concat!(
        "data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n",
        "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":7,\"completion_tokens\":3}}\n\n",
        "data: [DONE]\n\n"
    );

    fn answer(text: &str) -> String {
        format!("{STREAM}{}{END}", chunk(text))
    }

    /// The JSON body of a request as it came.
    fn body(request: &str) -> Value {
        let (_, body) = request.split_once("\r\n\r\n").expect("a head and a body");
        serde_json::from_str(body).expect("JSON")
    }

    /// What a conversation without tools is told.
    fn system(mode: Mode, model: &str) -> String {
        prompt::system(&prompt::Facts {
            mode,
            model,
            parallel: true,
            ..prompt::Facts::default()
        })
    }

    fn asks(mode: Mode, was: Option<Mode>, text: &str) -> String {
        prompt::query(text, prompt::reminder(mode, was).as_slice())
    }

    #[tokio::test]
    async fn a_conversation_goes_on_with_what_was_said() {
        let (told, mut diary) = peer::diary();
        let url = peer::listen(move |mut socket: Socket| {
            let told = told.clone();
            async move {
                told.send(body(&socket.request().await)).ok();
                socket.send(answer("Look:\n```12:13:src/a.rs\nx\n```\nDone.")).await;
            }
        })
        .await;
        let mut conversation = Conversation::with(&url);
        conversation.say("# Show me\nthe code");
        conversation.until_done(1).await;
        assert_eq!(
            conversation.shown(1),
            r#"text "Look:" | code_reference "x" | text "Done." | completed stop"#
        );
        assert_eq!(conversation.transcript.title(), Some("Show me"));
        conversation.submit("and now?", Mode::Plan, Some("other"));
        conversation.until_done(2).await;
        assert_eq!(
            diary.next().await,
            json!({
                "model": "m",
                "stream": true,
                "stream_options": { "include_usage": true },
                "messages": [
                    { "role": "system", "content": system(Mode::Agent, "m") },
                    { "role": "user", "content": asks(Mode::Agent, None, "# Show me\nthe code") },
                ],
            })
        );
        assert_eq!(
            diary.next().await,
            json!({
                "model": "other",
                "stream": true,
                "stream_options": { "include_usage": true },
                "messages": [
                    { "role": "system", "content": system(Mode::Plan, "other") },
                    { "role": "user", "content": asks(Mode::Agent, None, "# Show me\nthe code") },
                    { "role": "assistant", "content": "Look:\n```12:13:src/a.rs\nx\n```\nDone." },
                    { "role": "user", "content": asks(Mode::Plan, Some(Mode::Agent), "and now?") },
                ],
            })
        );
        let [first, second] = conversation.transcript.exchanges.as_slice() else {
            panic!("two turns")
        };
        assert_eq!(
            (first.response.model.as_deref(), second.response.model.as_deref()),
            (Some("m"), Some("other"))
        );
        assert_eq!(
            (first.response.mode, second.response.mode),
            (Some(Mode::Agent), Some(Mode::Plan))
        );
        assert_eq!(first.response.usage.total_tokens, 10);
        assert_ne!(first.response.id, second.response.id);
    }

    #[tokio::test]
    async fn a_slow_answer_is_shown_as_it_comes() {
        let (go_on, wait) = tokio::sync::watch::channel(0);
        let url = peer::listen(move |mut socket: Socket| {
            let mut wait = wait.clone();
            async move {
                socket.request().await;
                socket.send(format!("{STREAM}{}", chunk("one "))).await;
                wait.wait_for(|it| *it >= 1).await.ok();
                // In two parts, the first of which ends in the middle of a character.
                let whole = chunk("zwö").into_bytes();
                let inside = whole.iter().position(|it| !it.is_ascii()).expect("the ö") + 1;
                let (head, tail) = whole.split_at(inside);
                socket.send(head).await;
                wait.wait_for(|it| *it >= 2).await.ok();
                socket.send(tail).await;
                socket.send(END).await;
            }
        })
        .await;
        let mut conversation = Conversation::with(&url);
        conversation.say("hi");
        let text = |it: &Conversation| {
            let exchange = it.transcript.exchanges.first();
            exchange
                .and_then(|it| it.response.documents.first())
                .map(|it| it.text().to_owned())
        };
        conversation
            .until("the first word", |it| text(it).as_deref() == Some("one"))
            .await;
        assert!(conversation.transcript.is_running());
        go_on.send_replace(1);
        go_on.send_replace(2);
        conversation.until_done(1).await;
        assert_eq!(conversation.shown(1), r#"text "one zwö" | completed stop"#);
    }

    #[tokio::test]
    async fn an_answer_that_breaks_off_keeps_what_came() {
        let cases = [
            (
                "cut",
                format!("{STREAM}{}", chunk("so far")),
                r#"text incomplete "so far" | error STREAM_INTERRUPTED "the answer broke off before its end" | error interrupted"#,
            ),
            (
                "cut in a fence",
                format!("{STREAM}{}", chunk("a\n```c\nx")),
                r#"text "a" | code_block incomplete "x" | error STREAM_INTERRUPTED "the answer broke off before its end" | error interrupted"#,
            ),
            (
                "an error in mid-stream",
                format!("{STREAM}{}data: {{\"error\":\"boom\"}}\n\n", chunk("so far")),
                r#"text incomplete "so far" | error LLM_BAD_RESPONSE "the server reported an error" | error error"#,
            ),
            (
                "an error at once",
                page("401 No", "application/json", "{\"error\":{\"message\":\"no\"}}"),
                r#"error LLM_AUTH "the server does not accept the key" | error error"#,
            ),
            (
                "the body is shorter than promised",
                page("200 OK", "text/event-stream", &chunk("so far")).replace("Length: ", "Length: 9"),
                r#"text incomplete "so far" | error STREAM_INTERRUPTED "the connection to URL broke in the middle of the answer" | error interrupted"#,
            ),
        ];
        for (name, answer, want) in cases {
            let url = peer::answer(answer).await;
            let mut conversation = Conversation::with(&url);
            conversation.say("hi");
            conversation.until_done(1).await;
            assert_eq!(conversation.shown(1), want.replace("URL", &url), "{name}");
        }
    }

    #[tokio::test]
    async fn nothing_malformed_reaches_the_next_request() {
        let half = json!({ "choices": [{ "delta": { "tool_calls": [
            { "index": 0, "id": "BROKEN", "function": { "name": "write", "arguments": "{\"file_path\": \"BROKEN" } },
        ] } }] });
        let whole = json!({ "choices": [{ "delta": { "tool_calls": [
            { "index": 0, "id": "BROKEN", "function": { "name": "write", "arguments": "{\"file_path\": \"BROKEN\"}" } },
        ] } }] });
        for (name, rest) in [
            ("no JSON", b"data: {BROKEN\n\n".to_vec()),
            ("another shape", b"data: {\"choices\": \"BROKEN\"}\n\n".to_vec()),
            ("another line", b"BROKEN\n\n".to_vec()),
            (
                "no UTF-8",
                b"data: {\"choices\":[{\"delta\":{\"content\":\"\xff\xfeBROKEN\n\n".to_vec(),
            ),
            (
                "half an event",
                b"data: {\"choices\":[{\"delta\":{\"content\":\"BROKEN".to_vec(),
            ),
            ("half a call", format!("data: {half}\n\n").into_bytes()),
            (
                "a whole call before the break",
                format!("data: {whole}\n\n").into_bytes(),
            ),
            ("an error", b"data: {\"error\":{\"message\":\"BROKEN\"}}\n\n".to_vec()),
        ] {
            let (told, mut diary) = peer::diary();
            let url = peer::listen(move |mut socket: Socket| {
                let (told, rest) = (told.clone(), rest.clone());
                async move {
                    let body = body(&socket.request().await);
                    let is_first = body["messages"].as_array().is_some_and(|it| it.len() == 2);
                    told.send(body).ok();
                    if is_first {
                        socket.send(format!("{STREAM}{}", chunk("so far"))).await;
                        socket.send(rest).await;
                    } else {
                        socket.send(answer("ok")).await;
                    }
                }
            })
            .await;
            let mut conversation = Conversation::with(&url);
            conversation.say("hi");
            conversation.until_done(1).await;
            conversation.say("again");
            conversation.until_done(2).await;
            diary.next().await;
            let messages = diary.next().await["messages"].clone();
            assert!(!messages.to_string().contains("BROKEN"), "{name}: {messages}");
            assert_eq!(
                messages[2],
                json!({ "role": "assistant", "content": "so far" }),
                "{name}: {messages}"
            );
            assert_eq!(conversation.shown(2), r#"text "ok" | completed stop"#, "{name}");
        }
    }

    #[tokio::test]
    async fn a_server_that_falls_silent_is_given_up() {
        let url = peer::listen(|mut socket: Socket| async move {
            socket.request().await;
            socket.send(format!("{STREAM}{}", chunk("so far"))).await;
            socket.hang().await;
        })
        .await;
        let mut connection = Connection::default().at(&url);
        connection.idle_timeout = Duration::from_millis(100);
        let mut conversation = Conversation::over(config::Provider {
            connection,
            ..config::Provider::default()
        });
        conversation.say("hi");
        conversation.until_done(1).await;
        assert_eq!(
            conversation.shown(1),
            format!(
                "text incomplete \"so far\" | error STREAM_INTERRUPTED \"{url} fell silent: no byte for 100 ms\" | error interrupted"
            )
        );
    }

    #[tokio::test]
    async fn a_busy_server_is_asked_again_with_a_countdown() {
        let (told, mut diary) = peer::diary();
        let url = peer::listen(move |mut socket: Socket| {
            let told = told.clone();
            async move {
                socket.request().await;
                told.send(()).ok();
                let busy = page("429 Slow", "application/json", "{\"error\":\"slow down\"}");
                socket
                    .send(busy.replace("\r\n\r\n", "\r\nRetry-After: 1\r\n\r\n"))
                    .await;
            }
        })
        .await;
        let mut conversation = Conversation::with(&url);
        conversation.say("hi");
        let is_counting = |it: &Progress| matches!(it, Progress::Retrying { attempt: 1, of: 3, .. });
        conversation
            .until("the countdown", |it| it.has_progress(is_counting))
            .await;
        diary.next().await;
        diary.next().await;
        conversation.link.send(Command::Cancel);
        conversation.until_done(1).await;
        assert_eq!(conversation.shown(1), "completed cancelled");
    }

    /// Cancels once `ready`, and sees that the answer ends and `closed` comes within 100 ms, at best of three.
    async fn cancel_is_quick(
        name: &str,
        url: &str,
        ready: fn(&Conversation) -> bool,
        mut closed: Option<peer::Diary<()>>,
    ) {
        let mut best = Duration::MAX;
        for _ in 0..3 {
            let mut conversation = Conversation::with(url);
            conversation.say("hi");
            conversation.until(name, ready).await;
            let start = Instant::now();
            conversation.link.send(Command::Cancel);
            conversation.until_done(1).await;
            if let Some(closed) = &mut closed {
                closed.next().await;
            }
            best = best.min(start.elapsed());
            let ending = conversation
                .transcript
                .exchanges
                .first()
                .and_then(|it| it.response.ending.clone());
            let ending = ending.expect("it ended");
            assert_eq!(
                (ending.status, ending.finish_reason),
                (Status::Completed, FinishReason::Cancelled),
                "{name}"
            );
        }
        assert!(best < Duration::from_millis(100), "{name}: {best:?}");
    }

    #[tokio::test]
    async fn cancelling_takes_effect_at_once_while_connecting() {
        // A server whose queue of connections is full answers no more handshakes.
        let socket = TcpSocket::new_v4().expect("a socket");
        socket.bind("127.0.0.1:0".parse().expect("an address")).expect("a port");
        let listener = socket.listen(1).expect("a listener");
        let address = listener.local_addr().expect("an address");
        let mut waiting = Vec::new();
        for _ in 0..8 {
            waiting.push(tokio::spawn(tokio::net::TcpStream::connect(address)));
        }
        let is_connecting = |it: &Conversation| it.has_progress(|it| matches!(it, Progress::Waiting { .. }));
        cancel_is_quick(
            "a connection that hangs",
            &format!("http://{address}"),
            is_connecting,
            None,
        )
        .await;
        drop(listener);
    }

    #[tokio::test]
    async fn cancelling_takes_effect_at_once_while_waiting() {
        let (told, diary) = peer::diary();
        let url = peer::listen(move |mut socket: Socket| {
            let told = told.clone();
            async move {
                socket.request().await;
                socket.closed().await;
                told.send(()).ok();
            }
        })
        .await;
        let is_waiting = |it: &Conversation| it.has_progress(|it| matches!(it, Progress::Waiting { .. }));
        cancel_is_quick("the first byte", &url, is_waiting, Some(diary)).await;
    }

    #[tokio::test]
    async fn cancelling_takes_effect_at_once_in_a_flood() {
        let (told, diary) = peer::diary();
        let url = peer::listen(move |mut socket: Socket| {
            let told = told.clone();
            async move {
                use tokio::io::AsyncWriteExt;
                socket.request().await;
                socket.send(STREAM).await;
                let flood = chunk("word ").repeat(100);
                while socket.stream.write_all(flood.as_bytes()).await.is_ok() {}
                told.send(()).ok();
            }
        })
        .await;
        let is_flooded = |it: &Conversation| {
            it.transcript
                .exchanges
                .iter()
                .any(|it| !it.response.documents.is_empty())
        };
        cancel_is_quick("the first word", &url, is_flooded, Some(diary)).await;
    }

    #[tokio::test]
    async fn a_flood_of_tiny_pieces_is_joined_and_whole() {
        let url = peer::listen(|mut socket: Socket| async move {
            socket.request().await;
            socket.send(STREAM).await;
            for _ in 0..600 {
                socket.send(&chunk("xy").repeat(100)).await;
            }
            socket.send("data: [DONE]\n\n").await;
        })
        .await;
        let mut conversation = Conversation::with(&url);
        conversation.say("go");
        conversation.until_done(1).await;
        let response = &conversation.transcript.exchanges[0].response;
        assert_eq!(response.documents[0].text().len(), 120_000);
        let pieces = conversation.seen.len();
        assert!(pieces < 50_000, "{pieces} events for 60000 pieces");
    }

    #[tokio::test]
    async fn an_answer_of_nothing_but_documents_ends() {
        let url = peer::listen(|mut socket: Socket| async move {
            use tokio::io::AsyncWriteExt;
            socket.request().await;
            socket.send(STREAM).await;
            let flood = chunk(&"```\nx\n```\n".repeat(1000));
            while socket.stream.write_all(flood.as_bytes()).await.is_ok() {}
        })
        .await;
        let mut conversation = Conversation::with(&url);
        conversation.say("go");
        conversation.until_done(1).await;
        let response = &conversation.transcript.exchanges[0].response;
        assert!(response.documents.len() < 70_000, "{}", response.documents.len());
        let ending = response.ending.as_ref().expect("it ended");
        assert_eq!(ending.status, Status::Error);
    }

    #[tokio::test]
    async fn messages_that_come_early_wait_for_their_turn() {
        let url = peer::listen(|mut socket: Socket| async move {
            let request = body(&socket.request().await);
            let count = request["messages"].as_array().map_or(0, Vec::len);
            socket.send(answer(&format!("{count} messages"))).await;
        })
        .await;
        let mut conversation = Conversation::with(&url);
        conversation.say("one");
        conversation.say("two");
        conversation.say("three");
        conversation.until_done(3).await;
        let shown: Vec<String> = (1..=3).map(|it| conversation.shown(it)).collect();
        let want = ["2", "4", "6"].map(|it| format!("text \"{it} messages\" | completed stop"));
        assert_eq!(shown, want);
    }

    #[tokio::test]
    async fn what_cannot_be_done_is_said() {
        let url = peer::answer(page(
            "200 OK",
            "application/json",
            "{\"data\":[{\"id\":\"a\"},{\"id\":\"b\"}]}",
        ))
        .await;
        let mut conversation = Conversation::with(&url);
        conversation.link.send(Command::Cancel);
        conversation.link.send(Command::Answer {
            turn: crate::protocol::Turn(1),
            response: crate::protocol::ClarificationResponse {
                document_id: "doc_001".into(),
                outcome: crate::protocol::Outcome::Skipped,
                answers: Vec::new(),
                reason: None,
            },
        });
        conversation.until("a notice", |it| !it.seen.is_empty()).await;
        let codes: Vec<_> = conversation
            .seen
            .iter()
            .map(|it| match &it.event {
                Event::Notice(notice) => notice.code.clone(),
                other => format!("{other:?}"),
            })
            .collect();
        assert_eq!(codes, ["no-question"]);
        let models = conversation.link.ask(Query::Models).await.expect("a list");
        assert_eq!(models, Reply::Models(vec!["a".to_owned(), "b".to_owned()]));
        let nobody = Conversation::with(&peer::nobody().await);
        let error = nobody.link.ask(Query::Models).await.expect_err("nobody is there");
        assert!(matches!(error, AskError::Failed { .. }), "{error:?}");
    }

    /// A provider that always has another word.
    struct Endless;

    impl Provider for Endless {
        fn peer(&self) -> &'static str {
            "somebody"
        }

        fn stream(&self, _: ModelRequest) -> PieceStream {
            Box::pin(futures::stream::repeat_with(|| Piece::Text("word ".to_owned())))
        }

        fn warm(&self) -> Promise<()> {
            Box::pin(std::future::ready(()))
        }

        fn models(&self) -> Promise<Result<Vec<Model>, Failure>> {
            Box::pin(std::future::ready(Ok(Vec::new())))
        }
    }

    #[tokio::test]
    async fn what_is_always_ready_leaves_others_their_turn_and_is_stopped_before_its_next_word() {
        for (name, so_far) in [("at its start", 1), ("when pieces are joined", 25_000)] {
            let mut conversation = Conversation::of(Arc::new(Endless));
            conversation.say("go");
            let is_word = |it: &Arc<Entry>| matches!(it.event, Event::ContentDelta { .. });
            conversation
                .until(name, |it| it.seen.len() >= so_far && it.seen.iter().any(is_word))
                .await;
            let sent = conversation.link.log().last();
            conversation.link.send(Command::Cancel);
            conversation.until_done(1).await;
            // Positions count what the log has dropped, too: what was held back of the text, and its and the answer's end.
            let late = conversation.link.log().last().0 - sent.0;
            assert!(late <= 6, "{late} events, {name}");
        }
    }

    /// A provider that breaks its promise.
    struct Mute;

    impl Provider for Mute {
        fn peer(&self) -> &'static str {
            "nobody"
        }

        fn stream(&self, _: ModelRequest) -> PieceStream {
            Box::pin(futures::stream::iter([Piece::Text("so far".to_owned())]))
        }

        fn warm(&self) -> Promise<()> {
            Box::pin(std::future::ready(()))
        }

        fn models(&self) -> Promise<Result<Vec<Model>, Failure>> {
            Box::pin(std::future::ready(Ok(Vec::new())))
        }
    }

    #[tokio::test]
    async fn a_provider_that_forgets_its_end_does_not_hang_the_conversation() {
        let mut conversation = Conversation::of(Arc::new(Mute));
        conversation.say("hi");
        conversation.until_done(1).await;
        assert_eq!(
            conversation.shown(1),
            r#"text incomplete "so far" | error STREAM_INTERRUPTED "the provider stopped without a word" | error interrupted"#
        );
    }

    #[tokio::test]
    async fn when_the_consumer_goes_the_answer_is_dropped_and_the_log_ends() {
        let (told, mut diary) = peer::diary();
        let url = peer::listen(move |mut socket: Socket| {
            let told = told.clone();
            async move {
                socket.request().await;
                socket.send(format!("{STREAM}{}", chunk("so far"))).await;
                socket.closed().await;
                told.send(()).ok();
            }
        })
        .await;
        let mut conversation = Conversation::with(&url);
        conversation.say("hi");
        let has_text = |it: &Conversation| {
            it.transcript
                .exchanges
                .iter()
                .any(|it| !it.response.documents.is_empty())
        };
        conversation.until("the first word", has_text).await;
        let Conversation {
            link,
            mut follower,
            mut transcript,
            agent,
            ..
        } = conversation;
        drop(link);
        diary.next().await;
        agent.await.expect("it ends by itself");
        let mut batch = Vec::new();
        while follower.next(&mut batch).await {}
        transcript.apply_all(&batch);
        let ending = transcript
            .exchanges
            .first()
            .and_then(|it| it.response.ending.clone())
            .expect("it ended");
        assert_eq!(ending.finish_reason, FinishReason::Cancelled);
    }

    /// With a real server: `SHEAF_TEST_MODEL_URL=http://127.0.0.1:8089 cargo test real_model -- --nocapture`.
    #[tokio::test]
    async fn a_real_model_answers() {
        let Ok(url) = std::env::var("SHEAF_TEST_MODEL_URL") else {
            // Past the capture of a test's output, which would swallow it.
            let skipped = "SKIPPED: a_real_model_answers needs SHEAF_TEST_MODEL_URL, the address of a model server";
            writeln!(std::io::stderr(), "\n{skipped}").ok();
            return;
        };
        let mut settings = config::Provider {
            connection: Connection::default().at(&url),
            ..config::Provider::default()
        };
        settings.max_tokens = Some(200);
        settings.temperature = Some(0.0);
        let mut conversation = Conversation::over(settings);
        // A busy machine needs minutes for the first word.
        conversation.patience = Duration::from_mins(5);
        let models = conversation.link.ask(Query::Models).await.expect("a list of models");
        eprintln!("models: {models:?}");
        let questions = [
            "Write a Rust function that adds two numbers. Answer with one fenced code block and nothing else.",
            "What is the name of the function in your last answer? Answer with the name only.",
        ];
        for (at, question) in questions.iter().enumerate() {
            conversation.submit(question, Mode::Agent, Some(""));
            conversation.until_done(at + 1).await;
            let exchange = conversation.transcript.exchanges.get(at).expect("the turn is there");
            eprintln!(
                "{question}\n-> {} {:?}",
                conversation.shown(at + 1),
                exchange.response.usage
            );
            let ending = exchange.response.ending.clone().expect("it ended");
            assert_eq!(ending.status, Status::Completed);
            assert!(exchange.response.usage.completion_tokens > 0, "the server counts");
            assert!(exchange.response.model.is_some(), "the server says which model");
        }
        let first = conversation.transcript.exchanges.first().expect("the turn is there");
        assert!(
            first.response.documents.iter().any(|it| it.kind == Kind::CodeBlock),
            "{}",
            conversation.shown(1)
        );
        // In mid-answer, a real server's connection too is dropped at once.
        conversation.submit("Count from 1 to 500, one number a line.", Mode::Ask, Some(""));
        let has_begun = |it: &Conversation| {
            it.transcript
                .exchanges
                .get(2)
                .is_some_and(|it| !it.response.documents.is_empty())
        };
        conversation.until("the first number", has_begun).await;
        let start = Instant::now();
        conversation.link.send(Command::Cancel);
        conversation.until_done(3).await;
        eprintln!("cancelled within {:?}: {}", start.elapsed(), conversation.shown(3));
    }
}
