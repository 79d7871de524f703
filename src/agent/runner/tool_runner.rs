//! Runs tools: prepares calls, runs them, and makes changes; where they may block, on threads of their own.

use std::{
    any::Any,
    borrow::Cow,
    collections::HashMap,
    pin::Pin,
    sync::{Arc, Mutex, OnceLock, PoisonError},
    time::Instant,
};

use futures::{
    FutureExt, Stream, StreamExt,
    stream::{FuturesUnordered, SelectAll},
};
use serde_json::json;
use tokio::sync::{mpsc, watch};

use crate::{
    agent::{
        git,
        history::told::MarkBaseline,
        hooks::Hooks,
        marks,
        runner::{
            approval_snapshot::ApprovalSnapshot,
            checks::{KnownMistakes, Lints},
            hook_calls::{self, Noted},
            hook_runs::HookRuns,
            notices::warn,
            sandbox_status,
            server_desk::ServerDesk,
            setup::Setup,
        },
        turn::{CheckReport, Input, JobId, Prepared, Preview, ProposalReport},
        undo,
    },
    embedding::{Answering, EmbeddingService},
    extensions::SkillShelf,
    index::Index,
    journal::Log,
    link::SandboxStatus,
    lsp::LanguageServers,
    os::panic,
    protocol::{
        Permission,
        document::{self, CHECKED},
    },
    sandbox::{Checkpoints, Commands, Seen, Tier, Workspace},
    shell::CommandLine,
    text::redact,
    tools::{
        self, Access, Change, Context, Fault, Input as Arguments, Outcome, Proposal, Stop, Tool, Work, lints::Findings,
    },
};

/// Returns true if git would work in a repository that was not there when the conversation began. The repositories of the
/// start are noted before the first command.
pub fn reaches_new_repository(accesses: &[Access], commands: &Commands) -> bool {
    accesses.iter().any(|it| {
        let Access::Command { line, directory, .. } = it else {
            return false;
        };
        let line = CommandLine::read(line);
        let is_mixed = line.runs_others_than_git();
        let mut folders = line.folders(&directory.path).into_iter();
        folders.any(|it| commands.is_new_repository(&it, is_mixed))
    })
}

/// Works out what a call would touch or change.
async fn prepared(
    tool: &Tool,
    arguments: Arguments,
    context: Context,
    job: JobId,
    snapshots: &Mutex<HashMap<JobId, ApprovalSnapshot>>,
    hold: &SandboxStatus,
) -> Result<Prepared, Fault> {
    let nothing = |accesses, proposal| Prepared {
        accesses,
        proposal,
        ..Prepared::default()
    };
    match &tool.work {
        Work::Call { touches, .. } | Work::Command { touches, .. } => {
            let accesses = touches(&arguments, &context)?;
            let has_command = accesses.iter().any(|it| matches!(it, Access::Command { .. }));
            if matches!(tool.work, Work::Command { .. }) {
                let snapshot = ApprovalSnapshot::of(&accesses, &context.workspace);
                snapshots
                    .lock()
                    .unwrap_or_else(PoisonError::into_inner)
                    .insert(job, snapshot);
            }
            let commands = context.workspace.commands();
            let is_new_repository = reaches_new_repository(&accesses, commands);
            let limit_reached = if has_command { commands.limit_reached() } else { None };
            if limit_reached.is_some() {
                sandbox_status::report(&context.workspace, hold);
            }
            let (tier, gaps) = if has_command {
                (Commands::tier(), commands.gaps().to_owned())
            } else {
                (Tier::None, String::new())
            };
            Ok(Prepared {
                remotes: remotes(&accesses).await,
                tier,
                gaps,
                limit_reached,
                is_new_repository,
                ..nothing(accesses, None)
            })
        }
        Work::Change(propose) => {
            let proposal = propose(arguments, context).await?;
            Ok(nothing(proposal.accesses(), Some(proposal)))
        }
        Work::Turn(_) => Ok(nothing(Vec::new(), None)),
    }
}

/// Work that ends with an input of the turn.
pub type Jobs = FuturesUnordered<Pin<Box<dyn Future<Output = Input> + Send>>>;
/// The output of a command, with its call.
pub type Outputs = Pin<Box<dyn Stream<Item = (JobId, String)> + Send>>;

/// Conditions under which a call runs.
#[derive(Clone, Copy, Debug)]
pub struct CallMode {
    /// The user has looked at it: it runs as it was looked at.
    pub was_asked: bool,
    /// The mode lets nothing be changed.
    pub only_reads: bool,
}

/// The calls of tools that are being prepared and run, and what the agent knows of files by them.
pub struct ToolRunner {
    /// Files that the agent has read and written.
    pub seen: Arc<Seen>,
    knowledge: Knowledge,
    hooks: CallHooks,
    pub hook_runs: HookRuns,
    /// The workspace has been looked at, or is.
    has_looked: bool,
    /// Calls that are being prepared or run.
    pub jobs: Jobs,
    /// The output of running commands.
    pub outputs: SelectAll<Outputs>,
    pub marks: Marks,
    /// Nobody waits for the jobs any more, once it is `true`. The sender is there once something has run.
    stop: (Stop, OnceLock<watch::Sender<bool>>),
    /// Snapshots of the files that prepared commands would run, taken when they were prepared.
    snapshots: Arc<Mutex<HashMap<JobId, ApprovalSnapshot>>>,
    /// News of servers of tools, and their open questions.
    pub servers: ServerDesk,
    /// Known mistakes of the files that calls are changing.
    known: Arc<Mutex<HashMap<JobId, KnownMistakes>>>,
}

/// Marks of instrumentation in the person's files.
#[derive(Default)]
pub struct Marks {
    /// Those that are looked for because debugging was left.
    pub left: FuturesUnordered<Pin<Box<dyn Future<Output = Vec<String>> + Send>>>,
    /// Those from before debugging began, once they are known; `None`: nothing is debugged.
    before: Option<watch::Receiver<Option<MarkBaseline>>>,
}

/// What all calls share.
struct Knowledge {
    index: Arc<Index>,
    embeddings: Arc<EmbeddingService>,
    /// Holds the background work on vectors up while an answer is written.
    answering: Option<Answering>,
    findings: Arc<Findings>,
    servers: Arc<LanguageServers>,
    skills: Arc<SkillShelf>,
}

/// The hooks, and the calls that they are told of when these have run.
#[derive(Clone)]
struct CallHooks {
    hooks: Arc<Hooks>,
    noted: Arc<Mutex<HashMap<JobId, Noted>>>,
}

impl CallHooks {
    /// The hooks for the end of a call.
    fn take(&self, job: JobId) -> (Arc<Hooks>, Option<Noted>) {
        let noted = self.noted.lock().unwrap_or_else(PoisonError::into_inner).remove(&job);
        (Arc::clone(&self.hooks), noted)
    }
}

impl ToolRunner {
    /// Runs nothing yet. What files were before is kept, where there is a place for it.
    pub fn new(
        setup: &Setup,
        (findings, servers): (Arc<Findings>, Arc<LanguageServers>),
        (skills, hooks): (Arc<SkillShelf>, Arc<Hooks>),
        log: &Log,
    ) -> Self {
        let (seen, failed) = memory(setup);
        if let Some(why) = failed {
            warn(log, "undo-off", why);
        }
        let seen = Arc::new(seen);
        hooks.keep_changes(Arc::clone(&seen));
        Self {
            seen,
            knowledge: Knowledge {
                index: Arc::clone(&setup.index),
                embeddings: Arc::clone(&setup.embeddings),
                answering: None,
                findings,
                servers,
                skills,
            },
            hooks: CallHooks {
                hooks,
                noted: Arc::default(),
            },
            hook_runs: HookRuns::default(),
            has_looked: false,
            jobs: Jobs::new(),
            outputs: SelectAll::new(),
            marks: Marks::default(),
            stop: Default::default(),
            snapshots: Arc::default(),
            servers: ServerDesk::of(setup.servers.as_ref(), setup.asker.is_attended()),
            known: Arc::default(),
        }
    }

    fn context(
        &self,
        setup: &Setup,
        call: String,
        only_reads: bool,
        output: mpsc::UnboundedSender<String>,
    ) -> Option<Context> {
        let workspace = Arc::clone(setup.workspace.as_ref()?);
        Some(Context {
            workspace,
            seen: Arc::clone(&self.seen),
            index: Arc::clone(&self.knowledge.index),
            embeddings: Arc::clone(&self.knowledge.embeddings),
            findings: Arc::clone(&self.knowledge.findings),
            servers: Arc::clone(&self.knowledge.servers),
            skills: Arc::clone(&self.knowledge.skills),
            settings: Arc::clone(&setup.settings),
            apply: setup.roles.apply().ok().flatten(),
            call,
            only_reads,
            output,
            stop: self.stop.0.clone(),
        })
    }

    /// Tells the work in the background whether an answer is being written.
    pub fn set_answering(&mut self, is_answering: bool) {
        let knowledge = &mut self.knowledge;
        if is_answering != knowledge.answering.is_some() {
            knowledge.answering = is_answering.then(|| knowledge.embeddings.answering());
        }
    }

    /// Looks at the workspace on a thread of its own, which nobody waits for: the first command needs to know what was there.
    pub fn look_first(&mut self, workspace: Option<&Arc<Workspace>>) {
        let Some(workspace) = workspace.cloned() else {
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

    /// Works out what a call would touch or change, on a thread of its own, and asks hooks about it.
    /// `is_checked`: language servers look at changes before the user is asked about them.
    pub fn prepare(
        &mut self,
        setup: &Setup,
        (job, call): (JobId, String),
        tool: Arc<Tool>,
        arguments: Arguments,
        is_checked: bool,
    ) {
        let (output, _) = mpsc::unbounded_channel();
        // Nothing is run yet.
        let context = self.context(setup, call, true, output);
        if matches!(tool.work, Work::Command { .. }) {
            self.look_first(setup.workspace.as_ref());
        }
        let snapshots = Arc::clone(&self.snapshots);
        let CallHooks { hooks, noted: all } = self.hooks.clone();
        let hold = setup.hold.clone();
        let work = async move {
            let Some(context) = context else {
                return Err(no_workspace());
            };
            if !matches!(tool.work, Work::Turn(_)) {
                Arc::clone(&context.workspace).look_once().await;
            }
            let prepare = |arguments| prepared(&tool, arguments, context.clone(), job, &snapshots, &hold);
            let mut prepared = prepare(arguments.clone()).await?;
            let ended = |why: &String| Fault::new("TOOL_REJECTED", format!("a hook ended the answer: {why}"));
            let mut asked = hook_calls::before(&hooks, &tool, &arguments, &prepared.accesses, &context).await;
            if let Some(why) = &asked.halt {
                return Err(ended(why));
            }
            let mut arguments = arguments;
            if let Some(changed) = asked.input.take() {
                let whole = hook_calls::changed(&tool, &arguments, &changed);
                match tools::arguments::read(&tool, Ok(&whole)) {
                    Ok(changed) => {
                        arguments = changed;
                        prepared = prepare(arguments.clone()).await?;
                        prepared.hook.arguments = Some(arguments.clone());
                        // Guards judge what will be done, not what was asked for.
                        let again = hook_calls::before(&hooks, &tool, &arguments, &prepared.accesses, &context).await;
                        asked = hook_calls::judged_again(asked, again);
                        if let Some(why) = &asked.halt {
                            return Err(ended(why));
                        }
                    }
                    // To go on with the old input would do what the hook did not want.
                    Err(fault) => {
                        let message = format!("a hook changed the input to what cannot be read: {}", fault.message);
                        return Err(Fault::new("TOOL_REJECTED", message));
                    }
                }
            }
            prepared.hook.decision = asked.decision;
            prepared.hook.lifts_question = asked.lifts_question;
            prepared.hook.reason = asked.reason;
            if is_checked && prepared.proposal.is_some() {
                prepared.preview = Preview::Wanted;
            }
            let noted = Noted {
                call: hook_calls::call(&tool, &arguments, &prepared.accesses, &context),
                context: asked.context,
            };
            all.lock().unwrap_or_else(PoisonError::into_inner).insert(job, noted);
            Ok(prepared)
        };
        let work = self.aside(work);
        self.jobs.push(Box::pin(async move {
            let result = work.await;
            Input::Prepared { job, result }
        }));
    }

    /// Runs a call.
    pub fn run(
        &mut self,
        setup: &Setup,
        job: JobId,
        tool: Arc<Tool>,
        call: String,
        mut arguments: Arguments,
        how: CallMode,
    ) {
        let began = Instant::now();
        let snapshot = self
            .snapshots
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .remove(&job)
            .filter(|_| how.was_asked);
        // Another command may have gone elsewhere since the user was shown where this one runs.
        if let Some(directory) = snapshot.as_ref().and_then(|it| it.directory.as_ref()?.to_str()) {
            arguments.0.insert("working_directory".to_owned(), directory.into());
        }
        let (output, mut printed) = mpsc::unbounded_channel();
        let context = self.context(setup, call, how.only_reads, output);
        let is_command = matches!(tool.work, Work::Command { .. });
        let (hooks, hooked) = self.hooks.take(job);
        let work = async move {
            let Some(context) = context else {
                return Err(no_workspace());
            };
            if let Some(snapshot) = snapshot {
                let workspace = Arc::clone(&context.workspace);
                let looked = tokio::task::spawn_blocking(move || snapshot.changed(&workspace)).await;
                if let Some(file) = looked.unwrap_or_default() {
                    let message = format!("`{file}` has changed since the user was asked about this command");
                    return Err(Fault::new("COMMAND_CHANGED", message)
                        .hint("It was not run. Call again, so that the user can look at what it is now."));
                }
            }
            let result = match &tool.work {
                Work::Command { run, .. } => undo::watched(Arc::clone(run), arguments, context).await,
                Work::Call { run, .. } => run(arguments, context).await,
                Work::Change(_) | Work::Turn(_) => Ok(Outcome::default()),
            };
            hook_calls::after(&hooks, hooked, result, began).await
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
        let printed = futures::stream::poll_fn(move |cx| printed.poll_recv(cx));
        self.outputs.push(Box::pin(printed.map(move |text| (job, text))));
        if is_command {
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

    /// Asks language servers what changes would bring. Whatever becomes of it, there is an answer, and soon.
    pub fn preview(&mut self, lints: Option<Lints>, job: JobId, changes: Vec<Change>) {
        let work = self.aside(async move {
            Ok(match lints {
                Some(lints) => lints.preview(&changes).await,
                None => ProposalReport::default(),
            })
        });
        self.jobs.push(Box::pin(async move {
            let report = work.await.unwrap_or_default();
            Input::Previewed { job, report }
        }));
    }

    /// Makes a change that was worked out. `lints`: who looks at the files before and after it. The data of the outcome has the
    /// member `checked` where somebody does.
    pub fn make(
        &mut self,
        workspace: Option<Arc<Workspace>>,
        lints: Option<Lints>,
        job: JobId,
        call: String,
        proposal: Proposal,
    ) {
        let began = Instant::now();
        let seen = Arc::clone(&self.seen);
        let known = Arc::clone(&self.known);
        let (hooks, hooked) = self.hooks.take(job);
        let work = self.aside(async move {
            let workspace = workspace.ok_or_else(no_workspace)?;
            let before = match &lints {
                Some(lints) => lints.before(&proposal.changes).await,
                None => None,
            };
            workspace.commit_for(&seen, &call, &proposal.changes)?;
            let mut outcome = hook_calls::after_edit(&hooks, hooked, (&call, &proposal), began).await;
            if let Some(before) = before {
                known.lock().unwrap_or_else(PoisonError::into_inner).insert(job, before);
                outcome.data = json!({ CHECKED: document::pending_check() });
            }
            Ok(outcome)
        });
        self.jobs.push(Box::pin(async move {
            Input::Ran {
                job,
                result: work.await,
                took_ms: u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX),
            }
        }));
    }

    /// Asks language servers and checkers about what calls have changed. Whatever becomes of it, there is an answer, and soon.
    pub fn check(&mut self, lints: Option<Lints>, jobs: &[JobId]) {
        let known = {
            let mut all = self.known.lock().unwrap_or_else(PoisonError::into_inner);
            let known = jobs.iter().filter_map(|it| all.remove(it));
            known.reduce(KnownMistakes::and)
        };
        let asked = lints.zip(known).map(|(lints, known)| lints.after(known));
        self.jobs.push(Box::pin(async move {
            let report = match asked {
                Some(asked) => asked.await,
                None => CheckReport::default(),
            };
            let text = redact::held(&report.text).into_owned();
            Input::Checked {
                report: CheckReport { text, ..report },
            }
        }));
    }

    /// Runs `work` on a thread where it may block. Whatever becomes of it, there is a result.
    fn aside<T: Send + 'static>(
        &self,
        work: impl Future<Output = Result<T, Fault>> + Send + 'static,
    ) -> Pin<Box<dyn Future<Output = Result<T, Fault>> + Send>> {
        let mut stopped = self.stop.1.get_or_init(|| watch::Sender::new(false)).subscribe();
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

    /// Stops all calls: nobody waits for them any more.
    pub fn stop(&mut self) {
        let (stop, sender) = std::mem::take(&mut self.stop);
        stop.set();
        if let Some(sender) = sender.get() {
            sender.send_replace(true);
        }
        self.jobs.clear();
        self.outputs.clear();
    }

    /// Debugging begins, unless it has: notes the marks that are there. The returned future ends when they are known, which
    /// the first change has to wait for.
    pub fn note_marks(&mut self, workspace: Option<&Arc<Workspace>>) -> impl Future<Output = ()> + Send + use<> {
        if self.marks.before.is_none() {
            let (known, before) = watch::channel(None);
            self.marks.before = Some(before);
            let workspace = workspace.cloned();
            tokio::task::spawn_blocking(move || {
                let marks = workspace.map(|it| marks::find(&it, &Stop::default()).baseline());
                known.send_replace(Some(marks.unwrap_or_default()));
            });
        }
        let before = self.marks.before.clone();
        async move { drop(known_marks(before).await) }
    }

    /// Marks from before debugging began, as far as they are known.
    pub fn marks_before(&self) -> Option<MarkBaseline> {
        self.marks.before.as_ref()?.borrow().clone()
    }

    /// Takes over the marks from before debugging began, from before this program ran.
    pub fn restore_marks(&mut self, before: Option<MarkBaseline>) {
        if let Some(before) = before {
            self.marks.before = Some(watch::channel(Some(before)).1);
        }
    }

    /// The places of marks that debugging has put into the code.
    fn new_marks(
        &self,
        workspace: Option<Arc<Workspace>>,
        stop: Stop,
    ) -> impl Future<Output = Vec<String>> + Send + use<> {
        let before = self.marks.before.clone();
        let work = move || workspace.map(|it| marks::find(&it, &stop)).unwrap_or_default();
        async move {
            let before = known_marks(before).await;
            let found = tokio::task::spawn_blocking(work).await.unwrap_or_default();
            found.since(&before)
        }
    }

    /// Debugging is left: what it put into the code should not stay there unsaid.
    pub fn look_for_marks(&mut self, workspace: Option<Arc<Workspace>>) {
        let work = self.new_marks(workspace, Stop::default());
        self.marks.left.push(Box::pin(work));
        self.marks.before = None;
    }

    /// Looks for marks of instrumentation because the turn wants to know.
    pub fn find_marks(&mut self, workspace: Option<Arc<Workspace>>) {
        let stop = self.stop.0.clone();
        let work = self.new_marks(workspace, stop);
        self.jobs.push(Box::pin(async move { Input::Marks(work.await) }));
    }

    /// Forgets what was noted for the calls of an answer that has ended.
    pub fn forget_calls(&self) {
        self.snapshots.lock().unwrap_or_else(PoisonError::into_inner).clear();
        self.known.lock().unwrap_or_else(PoisonError::into_inner).clear();
        self.hooks.noted.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }
}

/// Waits until the marks from before are known; none where nothing was noted.
async fn known_marks(before: Option<watch::Receiver<Option<MarkBaseline>>>) -> MarkBaseline {
    let Some(mut before) = before else {
        return MarkBaseline::default();
    };
    match before.wait_for(Option::is_some).await {
        Ok(known) => known.clone().unwrap_or_default(),
        Err(_) => MarkBaseline::default(),
    }
}

/// The record of files that the agent reads and writes; checkpoints are kept if there is a place for them. Also why they are not,
/// for the user.
fn memory(setup: &Setup) -> (Seen, Option<String>) {
    let (Some(_), Some(paths)) = (&setup.workspace, &setup.paths) else {
        return (Seen::default(), None);
    };
    match Checkpoints::open(&paths.state.join("checkpoints"), setup.conversation.as_str()) {
        Ok(checkpoints) => (Seen::keeping(checkpoints), None),
        Err(error) => {
            tracing::warn!(%error, "undo data cannot be stored");
            let why = format!(
                "undo is off in this conversation, because its undo data cannot be read: {error}; a new conversation has undo again"
            );
            (Seen::default(), Some(why))
        }
    }
}

/// The servers behind the remotes that a command's git reaches; empty without the network.
async fn remotes(accesses: &[Access]) -> Vec<String> {
    for access in accesses {
        if let Access::Command {
            line,
            directory,
            permissions,
            ..
        } = access
            && (permissions
                .iter()
                .any(|it| matches!(it, Permission::Network | Permission::All))
                || Commands::tier() == Tier::None)
        {
            return git::remote::hosts(&directory.path, line).await;
        }
    }
    Vec::new()
}

fn no_workspace() -> Fault {
    Fault::new("TOOL_FAILED", "no workspace here")
}

/// A tool that panicked: its call failed, and nothing else.
fn broken(panic: &Box<dyn Any + Send>) -> Fault {
    let text = panic.downcast_ref::<&str>().copied();
    let text = text
        .or_else(|| panic.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("no message");
    Fault::new("INTERNAL", format!("the tool broke down: {text}")).hint("Do it in another way.")
}
