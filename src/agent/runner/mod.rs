//! Runs turns: takes commands and questions, polls the model, runs tools, appends to the log. The only part of the agent
//! that touches the world.
//!
//! Everything happens on the thread of whoever runs it, which may be the screen's; what may take long (tools that read or
//! change files, what a model is told of the workspace) has threads of its own.

mod answer_stream;
mod approval_snapshot;
mod ask;
mod background;
mod checks;
mod commits;
mod context_builder;
mod expansion;
mod hook_calls;
mod hook_points;
mod hook_report;
mod hook_runs;
mod message_hooks;
mod messages;
mod model_choice;
mod model_offers;
mod notices;
mod problems;
mod recollection;
mod restorer;
mod sandbox_status;
mod server_desk;
mod setup;
mod side_question;
mod skill_report;
mod step;
mod tool_runner;
mod trust;

use std::{sync::Arc, time::Duration};

use futures::StreamExt;
use serde_json::Value;

use self::{
    answer_stream::{AnswerStream, endless, text_of},
    background::Background,
    context_builder::{ContextBuilder, MessageFacts, Steering},
    messages::{Messages, QueuedWork, ShownMessage, UserCommand},
    model_choice::{ModelChoice, ModelList, ServerModel},
    notices::{notice, now_ms, warn},
    recollection::{call_behind, remember},
    restorer::{Files, Restorer},
    server_desk::ServerNews,
    step::trace,
    tool_runner::ToolRunner,
    trust::{TrustQuestion, look_back, tell_settled},
};
use super::{
    hooks::HookNews,
    trust::Standing,
    turn::{Input, Purpose, Submission, Turn},
    undo::{self, Restored},
};
use crate::{
    agent::served,
    extensions::hooks::Point,
    journal::{EventLimit, Log},
    link::{
        Asker,
        local::{Inbox, Request},
    },
    protocol::{
        ASIDE, Applied, Branch, Command, Done, Event, FinishReason, Message, Mode, Notice, Position, Progress,
        ResponseId, Severity, Status, Submit, Title, Turn as ProtocolTurn, sentence,
    },
    sandbox::{LeftBehind, Settled},
    transcript::Transcript,
};

pub use self::setup::Setup;

/// Time after the start at which the provider gets ready (reads certificates): nobody waits for it then.
const WARM_UP: Duration = Duration::from_millis(200);

/// Answers until the other end of `inbox` has gone; then the running answer is cancelled and the log closed.
pub fn run(setup: Setup, log: Arc<Log>, inbox: Inbox) -> impl Future<Output = ()> + Send {
    // In a box: the future, which lasts as long as the conversation, would have room for it.
    run_with(Box::new(setup), log, inbox)
}

async fn run_with(setup: Box<Setup>, log: Arc<Log>, mut inbox: Inbox) {
    let warm = setup.provider.warm();
    let work = async {
        let Some((left, early)) = Box::pin(look_back(&setup, &mut inbox)).await else {
            return log.close();
        };
        let runner = Box::new(Runner::new(*setup, log, inbox));
        runner.work(left, early).await;
    };
    let warm = async {
        tokio::time::sleep(WARM_UP).await;
        warm.await;
        std::future::pending::<()>().await;
    };
    tokio::select! {
        () = work => {}
        () = warm => {}
    }
}

/// An agent with one conversation.
struct Runner {
    setup: Setup,
    log: Arc<Log>,
    inbox: Inbox,
    turn: Turn,
    context: ContextBuilder,
    messages: Messages,
    model: ModelChoice,
    answer: AnswerStream,
    tools: ToolRunner,
    restorer: Restorer,
    trust: TrustQuestion,
    /// Commands that go on after their calls.
    background: Background,
}

/// Something that a runner waits for.
enum RunnerEvent {
    Request(Option<Request>),
    /// The files of the workspace that name commands and modes have been read.
    Read,
    Ready(Box<Submission>),
    Steering(Steering),
    Input(Input),
    Title(Option<String>),
    MarksLeft(Vec<String>),
    Sized(ServerModel, Option<u64>),
    /// The provider's models.
    Listed(ModelList),
    Reversed(Result<Notice, String>),
    Restored(Result<Option<(Restored, Notice)>, String>),
    Background(background::Update),
    Server(ServerNews),
    Looked(Option<Standing>),
    Hook(HookNews),
    Stopped(Option<Submit>),
    Settled(Settled),
}

impl Runner {
    fn new(setup: Setup, log: Arc<Log>, inbox: Inbox) -> Self {
        let context = ContextBuilder::start(&setup);
        let trust = TrustQuestion::new(&setup, &context);
        Self {
            turn: Turn::default(),
            messages: Messages::default(),
            model: ModelChoice::new(&setup),
            answer: AnswerStream::default(),
            tools: ToolRunner::new(
                &setup,
                (context.findings(), context.servers()),
                (context.skills(), context.hooks()),
                &log,
            ),
            restorer: Restorer::default(),
            trust,
            background: Background::default(),
            setup,
            log,
            inbox,
            context,
        }
    }

    /// `left` was found before this, and the `early` requests came meanwhile.
    async fn work(mut self: Box<Self>, left: LeftBehind, early: Vec<Request>) {
        self.restorer.finish(files(&self.setup, &self.tools), &self.log);
        self.trust.ask_about_left(left, &self.setup, &self.log);
        for request in early {
            match request {
                // Nobody had been asked when it was said.
                Request::Command(Command::Submit(submit) | Command::Begin(submit)) => {
                    self.command(Command::Begin(submit));
                }
                Request::Command(command) => self.carry_out(command),
                Request::Ask(query, reply) => self.ask(query, reply),
            }
        }
        self.take_next();
        loop {
            self.tell_hook_runs();
            match self.next_event().await {
                RunnerEvent::Request(Some(Request::Command(command))) => self.command(command),
                RunnerEvent::Request(Some(Request::Ask(query, reply))) => self.ask(query, reply),
                RunnerEvent::Request(None) => {
                    self.messages.next = None;
                    self.abandon();
                    self.step(Input::Cancel);
                    Box::pin(self.end_session()).await;
                    for update in self.background.close() {
                        self.log.append_to(update.turn, now_ms(), update.event());
                    }
                    self.log.close();
                    return;
                }
                RunnerEvent::Ready(submission) => self.begin(submission),
                // The next message is taken below.
                RunnerEvent::Read => {}
                // The answer may have ended in the meantime: then it is a message of its own.
                RunnerEvent::Steering(it) if !self.turn.is_answering() => {
                    // What was put together for it is not said: its rules and its mode are said with the message.
                    self.context.forgot();
                    self.messages.push(it.submit);
                }
                RunnerEvent::Steering(Steering { submit, parts }) => {
                    self.enter(&submit);
                    self.step(Input::Steer {
                        message: submit.message,
                        parts,
                        mode: submit.mode,
                    });
                    self.warn_of_context();
                }
                RunnerEvent::Title(title) => {
                    if let Some(title) = title {
                        self.log.append(now_ms(), Event::Title(title.into()));
                    }
                }
                RunnerEvent::Listed(models) => {
                    self.model.list(models);
                    if let Some(submit) = self.messages.take_asking() {
                        self.log.append(now_ms(), Event::Progress(Progress::Idle));
                        self.make_ready(submit);
                    }
                }
                RunnerEvent::Sized(asked, window) => {
                    self.model.sized(asked, window);
                    self.size_up();
                }
                RunnerEvent::Reversed(result) => {
                    let (restorer, files) = (&mut self.restorer, files(&self.setup, &self.tools));
                    restorer.reversed(result, files, &self.log);
                }
                RunnerEvent::Background(update) => {
                    self.log.append_to(update.turn, now_ms(), update.event());
                }
                RunnerEvent::Server(ServerNews::Note(note)) => warn(&self.log, note.code, note.text),
                RunnerEvent::Server(ServerNews::Asked(asked)) => {
                    let is_answering = self.turn.is_running();
                    if let Some(input) = self.tools.servers.open(asked, is_answering) {
                        self.step(input);
                    }
                }
                RunnerEvent::Restored(result) => self.restorer.restored(result, &self.log),
                RunnerEvent::Hook(news) => self.hook_news(news),
                RunnerEvent::Stopped(submit) => {
                    self.messages.stopping = None;
                    if let Some(submit) = submit {
                        self.messages.push(submit);
                    }
                }
                RunnerEvent::Looked(standing) => self.trust.ask(standing, &self.log),
                RunnerEvent::Settled(settled) => {
                    tell_settled(&settled, &mut self.turn.memory.is_halted, &self.setup, &self.log);
                }
                RunnerEvent::MarksLeft(marks) if marks.is_empty() => {}
                RunnerEvent::MarksLeft(marks) => {
                    let message = sentence::MARKS_LEFT.with(&marks.join(", "));
                    warn(&self.log, "debug-marks", message);
                }
                RunnerEvent::Input(input) => {
                    self.input(input);
                    // Pieces that have arrived already are taken without polling every other source.
                    while self.inbox.is_empty()
                        && let Some(input) = self.answer.next_now()
                    {
                        self.input(input);
                    }
                    self.answer.budget.pause().await;
                }
            }
            self.take_next();
            self.tools.set_answering(self.turn.is_running());
        }
    }

    fn input(&mut self, input: Input) {
        // A hook that ends the answer is heard before the call that it was called for goes on.
        while let Some(news) = self.context.hook_news.try_recv() {
            self.hook_news(news);
        }
        self.answer.budget.spend(text_of(&input).len());
        let seen = |raw| trace(&self.log, raw, now_ms());
        let (input, next) = self.answer.gather(input, &mut self.tools.outputs, seen);
        self.step(input);
        if let Some(next) = next {
            self.step(next);
        }
    }

    /// Begins with the next message that waits, unless something has to come before.
    fn take_next(&mut self) {
        if !self.is_busy()
            && self.messages.steering.is_empty()
            && self.restorer.restoring.is_none()
            && !self.trust.is_asking_about_left()
            && !self.waits_for_lists()
            && let Some(submit) = self.messages.take()
        {
            self.submit(submit);
        }
    }

    /// Returns true if the next message is a command or in a mode of a file, and the files are still being read.
    fn waits_for_lists(&self) -> bool {
        let next = self.messages.queue.front();
        let is_named = next.is_some_and(|(it, _)| it.message.command().is_some() || it.message.custom_mode().is_some());
        is_named && !self.context.is_read()
    }

    /// Returns true if a message's command or mode asks for a model that the provider is asked about first.
    fn waits_for_models(&mut self, message: &Message) -> bool {
        // No model hears of what the user runs.
        if self.messages.user_command.is_some() || self.messages.is_stopped {
            return false;
        }
        let asked = self.context.asked_model(message);
        asked.is_some_and(|(wanted, _)| self.model.waits_for_list(&wanted, &self.setup))
    }

    /// Puts a message into the log before its answer begins: the provider is asked for its models, which may take seconds.
    fn show(&mut self, submit: Submit) {
        let mut message = submit.message.clone();
        if self.messages.compaction.is_some() {
            message.extra.insert(ASIDE.to_owned(), true.into());
        }
        self.answer.limit = EventLimit::default();
        self.log.append(now_ms(), Event::UserMessage(message));
        let peer = self.setup.provider.peer().to_owned();
        self.log.append(now_ms(), Event::Progress(Progress::Listing { peer }));
        self.messages.shown = Some(ShownMessage::asking(submit));
    }

    /// Ends the turn of a message that was shown and whose answer will not begin.
    fn abandon(&mut self) {
        if self.messages.shown.take().is_some() {
            let done = Done {
                status: Some(Status::Completed),
                finish_reason: Some(FinishReason::Cancelled),
                ..Done::default()
            };
            self.log.append(now_ms(), Event::Done(done));
        }
    }

    /// Waits for the next thing that matters. A request first: whoever wants to stop a flood must get through.
    async fn next_event(&mut self) -> RunnerEvent {
        let mut read = self.waits_for_lists().then(|| self.context.read());
        let (answer, tools, model) = (&mut self.answer, &mut self.tools, &mut self.model);
        let (messages, restorer, trust) = (&mut self.messages, &mut self.restorer, &mut self.trust);
        let settled = trust.settled.as_mut();
        let (servers, is_begun) = (&mut tools.servers, self.log.turn().0 > 0);
        tokio::select! {
            biased;
            // What was said before is heard before: looking up what it points at takes a moment, and never long.
            request = self.inbox.recv(), if messages.steering.is_empty() => RunnerEvent::Request(request),
            Some(()) = maybe(read.as_mut()) => RunnerEvent::Read,
            Some(submission) = maybe(messages.next.as_mut()) => RunnerEvent::Ready(submission),
            Some(it) = messages.steering.next(), if !messages.steering.is_empty() => RunnerEvent::Steering(it),
            // Before the model hears of the command that did it.
            Some(Some(settled)) = maybe(settled.map(|it| std::future::poll_fn(|cx| it.poll_recv(cx)))) => {
                RunnerEvent::Settled(settled)
            }
            // What a command printed comes before the news that it has ended.
            Some((job, text)) = tools.outputs.next(), if !tools.outputs.is_empty() => {
                RunnerEvent::Input(Input::Output { job, text })
            }
            Some(input) = tools.jobs.next(), if !tools.jobs.is_empty() => RunnerEvent::Input(input),
            Some(piece) = maybe(answer.stream.as_mut().map(StreamExt::next)) => {
                RunnerEvent::Input(Input::Piece(piece.unwrap_or_else(endless)))
            }
            Some(input) = answer.timers.next(), if !answer.timers.is_empty() => RunnerEvent::Input(input),
            Some(update) = self.background.next(), if !self.background.is_empty() => RunnerEvent::Background(update),
            news = servers.next(is_begun) => RunnerEvent::Server(news),
            Some(result) = maybe(restorer.reversal.as_mut()) => RunnerEvent::Reversed(result),
            Some(result) = maybe(restorer.restoring.as_mut()) => RunnerEvent::Restored(result),
            Some(title) = model.titles.next(), if !model.titles.is_empty() => RunnerEvent::Title(title),
            Some(marks) = tools.marks.left.next(), if !tools.marks.left.is_empty() => RunnerEvent::MarksLeft(marks),
            Some(models) = maybe(model.listing.as_mut()) => RunnerEvent::Listed(models),
            Some((asked, window)) = model.sizing.next(), if !model.sizing.is_empty() => RunnerEvent::Sized(asked, window),
            Some(standing) = maybe(trust.looking.as_mut()) => RunnerEvent::Looked(standing),
            Some(news) = self.context.hook_news.recv() => RunnerEvent::Hook(news),
            Some(submit) = maybe(messages.stopping.as_mut()) => RunnerEvent::Stopped(submit),
        }
    }

    /// Begins the turn of a message that is ready for the model.
    fn begin(&mut self, mut submission: Box<Submission>) {
        self.messages.next = None;
        self.tools.hook_runs.begin(&self.log);
        let late: Vec<HookNews> = std::iter::from_fn(|| self.context.hook_news.try_recv()).collect();
        let (halts, lines): (Vec<_>, Vec<_>) = late.into_iter().partition(|it| matches!(it, HookNews::Halt(_)));
        for news in lines {
            self.hook_news(news);
        }
        if self.messages.user_command.is_some() {
            // The model is not asked.
            submission.setup.limits.dollars_in_all = None;
            // Nor does a mode of a file keep the user from anything.
            submission.setup.custom_mode = None;
            if submission.mode.is_read_only() {
                submission.mode = Mode::Agent;
            }
        }
        submission.setup.purpose = match (self.messages.compaction.take(), &self.messages.user_command) {
            (Some(how), _) => Purpose::Compaction(how),
            (None, Some(own)) if own.is_typed => Purpose::Typed,
            (None, Some(_)) => Purpose::Repeated,
            (None, None) => Purpose::Answer,
        };
        if submission.setup.purpose == Purpose::Answer && !self.restorer.told.is_empty() {
            let told = undo::note_for_model(&std::mem::take(&mut self.restorer.told));
            submission.parts.insert(0, told);
        }
        let shown = self.messages.shown.take();
        submission.is_shown = shown.is_some();
        submission.setup.turn = ProtocolTurn(self.log.turn().0 + u32::from(shown.is_none()));
        let (from, was_opened) = (self.turn.memory.history.messages.len(), self.turn.memory.is_opened);
        self.step(Input::Submit(submission));
        for restriction in shown.into_iter().flat_map(|it| it.restrictions) {
            self.step(Input::Restrict(restriction));
        }
        for news in halts {
            self.hook_news(news);
        }
        if let Some(own) = &mut self.messages.user_command {
            // The surroundings stay told.
            own.from = from + usize::from(!was_opened && self.turn.memory.is_opened);
        }
        self.warn_of_context();
        if std::mem::take(&mut self.messages.is_stopped) {
            self.step(Input::Cancel);
        }
    }

    fn command(&mut self, command: Command) {
        match command {
            Command::Answer { turn, response }
                if self.trust.close_left(Some((turn, &response)), &self.setup, &self.log) =>
            {
                return;
            }
            // Whoever says something else does not want to be asked now.
            Command::Submit(_)
            | Command::Run { .. }
            | Command::RepeatCall { .. }
            | Command::Compact { .. }
            | Command::Steer(_) => {
                self.trust.close_left(None, &self.setup, &self.log);
                self.trust.pass(&self.setup, &self.log);
            }
            Command::Cancel => {
                self.trust.close_left(None, &self.setup, &self.log);
            }
            // Written before there was a question.
            Command::Begin(_) => {
                if self.trust.is_asking_about_left() {
                    notice(
                        &self.log,
                        Severity::Info,
                        "message-waits",
                        sentence::MESSAGE_WAITS.text(),
                    );
                }
            }
            Command::Update { .. }
            | Command::Answer { .. }
            | Command::Rename(_)
            | Command::Restore(_)
            | Command::SwitchBranch(_)
            | Command::Restrict(_)
            | Command::Background
            | Command::StopCommand { .. }
            | Command::Record(_)
            | Command::Next => {}
        }
        self.carry_out(command);
    }

    fn carry_out(&mut self, command: Command) {
        match command {
            Command::Submit(submit) | Command::Begin(submit) => {
                self.context.hooks().spoken();
                self.messages.stopping = None;
                self.messages.push(submit);
            }
            Command::Compact { submit, scope: how } => {
                self.messages.queue.push_back((submit, QueuedWork::Compaction(how)));
            }
            Command::Run {
                mut submit,
                line,
                is_shown,
            } => {
                // Neither is it told when the conversation is read again.
                if !is_shown {
                    submit.message.extra.insert(ASIDE.to_owned(), true.into());
                }
                let own = UserCommand::typed(line, is_shown);
                self.messages.queue.push_back((submit, QueuedWork::Command(own)));
            }
            Command::RepeatCall {
                submit,
                turn,
                document,
                from,
            } => match call_behind(&self.log, &self.setup.tools, turn, &document) {
                Some(called) => {
                    self.go_on(from);
                    let own = UserCommand::repeated(called.name, called.arguments);
                    self.messages.queue.push_back((submit, QueuedWork::Command(own)));
                }
                None => warn(&self.log, "no-call", sentence::NO_CALL.text()),
            },
            // Room that is made, and a command of the user's, have no model that could hear it.
            Command::Steer(submit) if self.turn.is_answering() && self.may_join(&submit.message) => {
                let facts = self.facts(false);
                let steering = self.context.steering(submit, self.turn.mode(), facts, &self.setup);
                self.messages.steering.push_back(steering);
            }
            Command::Steer(mut submit) => {
                // It comes when this turn is over, and a form would wait for it for ever.
                if self.turn.is_running() {
                    let given = submit.message.clarification_response.take();
                    self.step(Input::LeaveForm(given));
                }
                let turn = self.is_shown().then(|| self.log.turn());
                self.messages.push_said(submit, turn);
            }
            Command::Cancel => {
                // Who stops an answer wants to think again: the words go back to where they were written.
                if self.is_shown() {
                    self.messages.drop_said(self.log.turn());
                } else {
                    self.messages.steering.clear();
                }
                let is_made_ready = self.messages.next.is_some() || self.messages.shown.is_some();
                self.messages.is_stopped = is_made_ready || !self.is_busy() && self.waits_for_lists();
                self.step(Input::Cancel);
                if let Some(submit) = self.messages.take_asking() {
                    self.model.stop_listing();
                    self.make_ready(submit);
                }
            }
            Command::Update {
                turn,
                document,
                metadata,
            } if metadata.get("applied").and_then(Value::as_str) == Some(Applied::Rejected.as_str()) => {
                let (restorer, files) = (&mut self.restorer, files(&self.setup, &self.tools));
                restorer.reject((turn, document), files, &self.log);
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
            Command::Restrict(restriction) => match &mut self.messages.shown {
                Some(shown) => shown.restrictions.push(restriction),
                None => self.step(Input::Restrict(restriction)),
            },
            Command::Background => {
                if let Some(workspace) = &self.setup.workspace {
                    workspace.commands().detach();
                }
            }
            Command::StopCommand { turn, document } => {
                if let Some(update) = self.background.stop(turn, &document) {
                    self.log.append_to(update.turn, now_ms(), update.event());
                }
            }
            Command::Rename(text) => {
                let title = Title { text, by_user: true };
                self.log.append(now_ms(), Event::Title(title));
            }
            Command::Restore(wish) => {
                let is_busy = self.is_busy();
                let (restorer, files) = (&mut self.restorer, files(&self.setup, &self.tools));
                restorer.restore(wish, is_busy, files, &self.log);
            }
            Command::SwitchBranch(branch) => self.go_on(branch),
            Command::Record(notice) => {
                self.log.append(now_ms(), Event::Notice(notice));
            }
            Command::Next => {}
            // Documents of another turn may have the same id.
            Command::Answer { response, turn } if self.turn.is_running() && turn == self.log.turn() => {
                self.step(Input::Answer(response));
            }
            Command::Answer { response, turn } => match self.messages.answering(&self.log, turn, response) {
                Some(submit) => self.messages.push(submit),
                None => warn(&self.log, "no-question", "no question is open: the answer was left out"),
            },
        }
    }

    /// Returns true if a message may join the running answer: one that hooks look at, that something is fetched for, that is worked out first, or that is sent in
    /// another custom mode is a message of its own.
    fn may_join(&self, message: &Message) -> bool {
        let is_looked_at = self.context.hooks().has(Point::Prompt)
            || served::is_fetched_for(&message.content, self.setup.servers.as_deref());
        !is_looked_at && message.command().is_none() && message.custom_mode() == self.turn.custom_mode()
    }

    /// Returns true while an answer is made, or a message made ready.
    fn is_busy(&self) -> bool {
        self.is_shown() || self.messages.next.is_some()
    }

    /// Returns true while the last turn of the log has no end.
    fn is_shown(&self) -> bool {
        self.turn.is_running() || self.messages.shown.is_some()
    }

    /// Begins with a message.
    fn submit(&mut self, submit: Submit) {
        if let Some(servers) = &self.setup.servers {
            servers.start();
        }
        self.tools.seen.begin(u64::from(self.log.turn().0) + 1);
        self.context.begin();
        self.enter(&submit);
        if self.setup.asker == Asker::Here && !submit.mode.is_read_only() {
            self.tools.look_first(self.setup.workspace.as_ref());
        }
        if self.waits_for_models(&submit.message) {
            // What was said before is read before the message stands behind it.
            self.remember_once();
            return self.show(submit);
        }
        self.make_ready(submit);
    }

    /// Has a message made ready for the model.
    fn make_ready(&mut self, submit: Submit) {
        let asked = self.context.asked_model(&submit.message);
        let asked = asked.and_then(|it| self.model.find(it, &self.setup, &self.log));
        let model = asked.as_deref().or(submit.model.as_deref());
        self.model.choose(model, &self.setup, &self.log);
        self.size_up();
        self.remember_once();
        self.context.note_skills(&self.turn.memory.history);
        // What only makes room tells the model nothing.
        let facts = MessageFacts {
            is_aside: self.messages.compaction.is_some(),
            ..self.facts(!self.turn.memory.is_opened)
        };
        let debugs = submit.mode == Mode::Debug && !facts.is_aside;
        let brief = self.context.brief(submit, facts, &self.setup);
        self.messages.next = Some(if debugs {
            let noted = self.tools.note_marks(self.setup.workspace.as_ref());
            Box::pin(async move { futures::join!(brief, noted).0 })
        } else {
            brief
        });
    }

    /// Takes the mode of a message; what debugging put into the code should not stay there unsaid.
    fn enter(&mut self, submit: &Submit) {
        if self.messages.enter(submit.mode) {
            self.tools.look_for_marks(self.setup.workspace.clone());
        }
    }

    fn size_up(&mut self) {
        self.turn.memory.window.tokens = self.model.window(&self.setup);
    }

    /// Reads what was said before this program ran, when it is needed first.
    fn remember_once(&mut self) {
        if std::mem::replace(&mut self.messages.is_recollected, true) {
            return;
        }
        let restored = remember(&mut self.turn.memory, &self.setup, &self.log);
        if let Some(restored) = &restored {
            self.tools.seen.restore(restored.facts.files.clone());
            self.tools.restore_marks(restored.facts.context.marks.clone());
            if restored.facts.context.marks.is_some() && self.messages.mode != Some(Mode::Debug) {
                self.tools.look_for_marks(self.setup.workspace.clone());
            }
        }
        self.context.resume(restored.as_ref());
    }

    fn facts(&self, is_first: bool) -> MessageFacts {
        MessageFacts {
            response: ResponseId::fresh(),
            is_first,
            is_aside: false,
            chosen: self.model.chosen.clone(),
            seen: Arc::clone(&self.tools.seen),
            log: Arc::clone(&self.log),
            opened: self.turn.memory.opening(),
        }
    }

    /// Continues the conversation from another place: the model is told what was said there, and nothing else.
    fn go_on(&mut self, branch: Branch) {
        if self.is_busy() {
            return warn(&self.log, "not-there", sentence::STAYS_HERE.text());
        }
        self.log.append(now_ms(), Event::Branch(branch));
        let transcript = Transcript::from_entries(&self.log.after(Position(0)));
        self.turn.memory.begin_again(transcript.todos);
        self.messages.is_recollected = false;
        self.restorer.told.clear();
    }

    /// Tells the user what they should know of what the model is told.
    fn warn_of_context(&mut self) {
        for message in self.context.warnings() {
            warn(&self.log, "context", message);
        }
    }
}

/// The files of the conversation.
fn files<'a>(setup: &'a Setup, tools: &'a ToolRunner) -> Files<'a> {
    Files {
        workspace: setup.workspace.as_ref(),
        seen: &tools.seen,
    }
}

/// Waits for ever where there is nothing to wait for.
async fn maybe<F: Future + Unpin>(future: Option<F>) -> Option<F::Output> {
    match future {
        Some(future) => Some(future.await),
        None => std::future::pending().await,
    }
}

#[cfg(test)]
mod tests;
