//! Runs hooks: programs of the user or a project at fixed points.
//!
//! They run in the sandbox unless the user's settings say otherwise, all of an occasion at once, each in a process group of its
//! own and within its time. Setting up a sandbox takes longer than most hooks do, so they share one. Whatever becomes of one, there is an answer: a broken hook is a line for the user.

use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex, MutexGuard, OnceLock, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::Instant,
};

use serde_json::{Map, Value};

#[cfg(target_os = "linux")]
use crate::sandbox::{BatchLine, End, Report};
use crate::{
    agent::undo::ChangeWatch,
    extensions::{
        hooks::{
            Answer, Broken, Common, Decision, Exit, GivenVariable, Hook, HookSet, Isolation, Merged, Occasion, Point,
            Run, hook_input, merge, read_answer,
        },
        made_data_folder,
    },
    os::{
        file::{self, Access},
        lazy_channel::{self, Inbox, Outbox},
    },
    protocol::Permission,
    sandbox::{Commands, How, Seen, Spec, Tier, Workspace},
};

/// Bytes of a hook's output that are read; more is a mistake.
const OUTPUT_BYTES: usize = 1 << 20;
/// Hooks of an occasion that the document of a call has.
const MOST_RUNS: usize = 50;
/// Changed files that are named one by one.
const MOST_NAMED: usize = 5;
/// Time beyond that of the hooks, after which their sandbox is ended.
#[cfg(target_os = "linux")]
const LATE: std::time::Duration = std::time::Duration::from_secs(10);

/// News of a hook for the user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HookNews {
    /// Hooks ran for the call with this id.
    Ran { call: String, runs: Vec<Value> },
    /// It changed something, or broke down.
    Line(String),
    /// It ended the answer, for this reason.
    Halt(String),
    /// It forbids the summary that is being asked for, for this reason.
    KeepsHistory(String),
}

/// The hooks of a conversation. Shared by everything that works on it.
#[derive(Debug)]
pub struct Hooks {
    state: Mutex<State>,
    workspace: Option<Arc<Workspace>>,
    count: AtomicU64,
    /// Keeps what files were before hooks changed them.
    seen: OnceLock<Arc<Seen>>,
    /// Takes news for the user.
    news: Outbox<HookNews>,
}

#[derive(Debug, Default)]
struct State {
    set: Arc<HookSet>,
    common: Common,
    /// Variables that hooks have set for later ones of their file: a project's hook sets none for the user's.
    variables: Vec<GivenVariable>,
    /// Hooks that are called once and were.
    called: BTreeSet<(String, String)>,
    /// Number of times that a hook has gone on with an answer.
    loops: u32,
    /// The hooks of the end have been called.
    has_ended: bool,
}

impl Hooks {
    /// No hooks, and the receiver of what the user is to see.
    pub fn new(workspace: Option<Arc<Workspace>>) -> (Arc<Self>, Inbox<HookNews>) {
        let (news, received) = lazy_channel::channel();
        let hooks = Self {
            state: Mutex::default(),
            workspace,
            count: AtomicU64::new(0),
            seen: OnceLock::new(),
            news,
        };
        (Arc::new(hooks), received)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The root of the workspace.
    pub fn root(&self) -> Option<&Path> {
        self.workspace.as_ref().map(|it| it.root())
    }

    /// Replaces the hooks.
    pub fn set(&self, set: HookSet) {
        self.state().set = Arc::new(set);
    }

    /// The hooks.
    pub fn all(&self) -> Arc<HookSet> {
        Arc::clone(&self.state().set)
    }

    /// Replaces the facts that every hook is told.
    pub fn begin(&self, common: Common) {
        self.state().common = common;
    }

    /// The user has said something: hooks may go on with the answer again.
    pub fn spoken(&self) {
        self.state().loops = 0;
    }

    /// Returns true the first time that the conversation ends.
    pub fn end_once(&self) -> bool {
        !std::mem::replace(&mut self.state().has_ended, true)
    }

    /// Number of times that a hook has gone on with the answer.
    pub fn loops(&self) -> u32 {
        self.state().loops
    }

    /// A hook goes on with the answer.
    pub fn count_loop(&self) {
        self.state().loops += 1;
    }

    /// Returns true if there is a hook for this point.
    pub fn has(&self, point: Point) -> bool {
        self.state().set.has(point)
    }

    /// Calls the hooks of an occasion, and waits for all of them. The default if there are none.
    pub async fn run(self: &Arc<Self>, occasion: Occasion) -> Merged {
        let (hooks, common, variables, loops) = {
            let mut state = self.state();
            let set = Arc::clone(&state.set);
            let mut hooks: Vec<Hook> = set.at(&occasion).into_iter().cloned().collect();
            hooks.retain(|it| !it.is_once || state.called.insert((it.path.clone(), it.command.clone())));
            (hooks, state.common.clone(), state.variables.clone(), state.loops)
        };
        if hooks.is_empty() {
            return Merged::default();
        }
        let told = |(at, hook): (usize, Hook)| Call {
            at,
            input: hook_input(hook.dialect, &hook.event, &common, &occasion).to_string(),
            variables: {
                let own = variables
                    .iter()
                    .filter(|it| (it.owner, &it.path) == (hook.owner, &hook.path));
                let own: Vec<_> = own.map(|it| it.variable.clone()).collect();
                [Self::variables(&common, &own), hook.variables.clone()].concat()
            },
            hook,
        };
        let hooks = hooks.into_iter().enumerate();
        let (detached, waited): (Vec<_>, Vec<_>) = hooks.partition(|it| it.1.is_detached);
        let detached: Vec<Call> = detached.into_iter().map(told).collect();
        if !detached.is_empty() {
            let hooks = Arc::clone(self);
            tokio::spawn(async move {
                for Ran { hook, result, .. } in hooks.call(detached).await {
                    if let Err(Broken(why)) = result {
                        hooks.say(format!("hook {} {}: {why}", hook.path, hook.event));
                    }
                }
            });
        }
        let waited: Vec<Call> = waited.into_iter().map(told).collect();
        let watch = if waited.is_empty() {
            None
        } else {
            self.watch(&occasion).await
        };
        let ran = self.call(waited).await;
        if let Some(watch) = watch {
            self.say_changes(watch, &occasion).await;
        }
        let runs: Vec<Run<'_>> = ran
            .iter()
            .map(|ran| Run {
                hook: &ran.hook,
                result: ran.result.clone(),
                took_ms: ran.took_ms,
                exit: ran.exit,
            })
            .collect();
        let merged = merge(&runs, loops);
        let call = occasion.call_id();
        if call.is_empty() {
            for line in &merged.lines {
                self.say(line.clone());
            }
        } else {
            let runs = merged.runs.iter().take(MOST_RUNS).cloned().collect();
            let call = call.to_owned();
            self.news.send(HookNews::Ran { call, runs }).ok();
        }
        // What nobody waits for may come when another answer is being made.
        if let Some(why) = merged.halt.as_ref().filter(|_| occasion.is_waited_for()) {
            self.news.send(HookNews::Halt(why.clone())).ok();
        }
        self.state().variables.extend(merged.variables.iter().cloned());
        merged
    }

    /// Tells that a hook forbids a summary.
    pub fn keep_history(&self, why: &str) {
        self.news.send(HookNews::KeepsHistory(why.to_owned())).ok();
    }

    /// From now on changes of files by hooks are kept for undo.
    pub fn keep_changes(&self, seen: Arc<Seen>) {
        self.seen.set(seen).ok();
    }

    /// Looks at the workspace before hooks change it. `None`: nothing is kept, or it could not be told from the changes of a
    /// command that runs.
    async fn watch(&self, occasion: &Occasion) -> Option<ChangeWatch> {
        let (seen, workspace) = (self.seen.get()?, self.workspace.as_ref()?);
        let is_before = matches!(
            occasion.point(),
            Point::ToolBefore | Point::ShellBefore | Point::McpBefore | Point::ReadBefore
        );
        let is_mixed = || workspace.commands().all().iter().any(|it| it.outcome().is_none());
        if seen.checkpoints().is_none() || (is_before && is_mixed()) {
            return None;
        }
        ChangeWatch::begin(seen, workspace, occasion.call_id()).await
    }

    /// Says which files the hooks of an occasion have changed.
    async fn say_changes(&self, watch: ChangeWatch, occasion: &Occasion) {
        let mut paths = watch.end().await;
        if paths.is_empty() {
            return;
        }
        let more = paths.len().saturating_sub(MOST_NAMED);
        paths.truncate(MOST_NAMED);
        if more > 0 {
            paths.push(format!("{more} more"));
        }
        self.say(format!(
            "hooks of {} changed {}",
            occasion.point().name(),
            paths.join(", ")
        ));
    }

    fn say(&self, line: String) {
        // Nobody listens once the conversation has ended.
        self.news.send(HookNews::Line(line)).ok();
    }

    fn variables(common: &Common, own: &[(String, String)]) -> Vec<(String, String)> {
        let root = &common.root;
        let mut variables: Vec<(String, String)> = own.to_vec();
        for name in ["CURSOR_PROJECT_DIR", "CLAUDE_PROJECT_DIR", "SHEAF_PROJECT_DIR"] {
            variables.push((name.to_owned(), root.clone()));
        }
        let version = format!("sheaf/{}", env!("CARGO_PKG_VERSION"));
        variables.push(("CURSOR_VERSION".to_owned(), version));
        if !common.effort.is_empty() {
            variables.push(("CLAUDE_EFFORT".to_owned(), common.effort.clone()));
        }
        variables
    }

    /// Runs hooks beside each other and reads their answers, in their order.
    async fn call(&self, calls: Vec<Call>) -> Vec<Ran> {
        let Some(workspace) = &self.workspace else {
            return calls.into_iter().map(|it| it.broken("there is no workspace")).collect();
        };
        let (calls, mut ran) = self.unchanged(calls).await;
        ran.extend(self.beside(workspace, calls).await);
        ran.sort_by_key(|it| it.at);
        ran
    }

    /// Runs hooks beside each other. Those that may do the same share a sandbox, except that hooks of a project cannot reach the
    /// user's own.
    #[cfg(target_os = "linux")]
    async fn beside(&self, workspace: &Arc<Workspace>, calls: Vec<Call>) -> Vec<Ran> {
        let (free, held): (Vec<Call>, Vec<Call>) =
            calls.into_iter().partition(|it| it.hook.isolation == Isolation::Free);
        let mut groups: Vec<Vec<Call>> = Vec::new();
        for call in held {
            let is_of = |it: &&mut Vec<Call>| it.first().is_some_and(|it| it.hook.shares_with(&call.hook));
            match groups.iter_mut().find(is_of) {
                Some(group) => group.push(call),
                None => groups.push(vec![call]),
            }
        }
        let groups = groups.into_iter().map(|it| together(workspace, it));
        let free = free.into_iter().map(|it| self.alone(workspace, it));
        let (groups, free) = tokio::join!(futures::future::join_all(groups), futures::future::join_all(free));
        groups.into_iter().flatten().chain(free).collect()
    }

    /// Runs hooks beside each other. Each that is not free has a sandbox of its own: only Linux runs several programs in one.
    #[cfg(not(target_os = "linux"))]
    async fn beside(&self, workspace: &Arc<Workspace>, calls: Vec<Call>) -> Vec<Ran> {
        futures::future::join_all(calls.into_iter().map(|it| self.alone(workspace, it))).await
    }

    /// The calls whose files are as they were approved; the others have an answer: a guard whose script was changed, by a model
    /// perhaps, must not be gone for that.
    async fn unchanged(&self, calls: Vec<Call>) -> (Vec<Call>, Vec<Ran>) {
        let approved = self.state().set.approved.clone();
        let named: BTreeSet<String> = calls.iter().map(|it| it.hook.path.clone()).collect();
        let find = move || -> Vec<String> {
            let changed = approved
                .iter()
                .filter(|it| named.contains(&it.path) && !it.is_unchanged());
            changed.map(|it| it.path.clone()).collect()
        };
        let changed = tokio::task::spawn_blocking(find).await.unwrap_or_default();
        let (gone, calls): (Vec<Call>, Vec<Call>) = calls.into_iter().partition(|it| changed.contains(&it.hook.path));
        let why = "it or its script has changed since you trusted it; /trust asks about it";
        let refused = |call: Call| {
            let answer = Answer {
                decision: Some(Decision::Deny),
                reason: why.to_owned(),
                message: why.to_owned(),
                ..Answer::default()
            };
            call.ran(Ok(answer), None, 0)
        };
        (calls, gone.into_iter().map(refused).collect())
    }

    /// Runs a hook for which no sandbox is set up together with others.
    async fn alone(&self, workspace: &Arc<Workspace>, call: Call) -> Ran {
        let began = Instant::now();
        let (result, exit) = match self.ran_alone(workspace, &call).await {
            Ok((exit, stdout, stderr)) => (read_answer(&call.hook, exit, &stdout, &stderr), Some(exit)),
            Err(broken) => (Err(broken), None),
        };
        call.ran(
            result,
            exit,
            u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX),
        )
    }

    /// Its end, its output and its errors.
    async fn ran_alone(&self, workspace: &Arc<Workspace>, call: &Call) -> Result<(Exit, String, String), Broken> {
        let failed = |what: &str, why: &dyn std::fmt::Display| Broken(format!("{what}: {why}"));
        let hook = &call.hook;
        let place = Arc::clone(workspace);
        let number = self.count.fetch_add(1, Ordering::Relaxed);
        let is_free = hook.isolation == Isolation::Free;
        let input = call.input.clone();
        let files = tokio::task::spawn_blocking(move || {
            if !is_free && Commands::tier() == Tier::None {
                return Err(Broken(NO_SANDBOX.to_owned()));
            }
            // Commands in the sandbox can write into their own folder, and nobody may answer for a hook.
            let folder = if is_free {
                let folder = std::env::temp_dir().join(format!("sheaf-hook-{}", uuid::Uuid::new_v4().simple()));
                file::private_folder(&folder)
                    .map(|()| folder)
                    .map_err(|it| failed("it did not run", &it))?
            } else {
                let folder = place.commands().temporary_folder();
                folder.map_err(|it| failed("it did not run", &it))?
            };
            HookFiles::new(&folder, number, &input, is_free)
        });
        let files = files.await.map_err(|it| failed("it did not run", &it))??;
        let spec = Spec {
            line: files.line(&hook.command),
            directory: hook.directory.clone(),
            permissions: permissions(hook.isolation),
            only_reads: false,
            limit: Some(hook.timeout),
            folders: data_folders([hook]).await,
            variables: call.variables.clone(),
        };
        let begun = Arc::clone(workspace).begin(spec, |_| {}).await;
        let foreground = begun.map_err(|it| failed("it did not run", &it))?;
        let ended = foreground.running().ended().await;
        let running = foreground.leave();
        let printed = running.since(0);
        let mut stderr = String::from_utf8_lossy(&printed.first).into_owned();
        stderr.push_str(&String::from_utf8_lossy(&printed.last));
        let stdout = tokio::task::spawn_blocking(move || files.output());
        let stdout = stdout.await.map_err(|it| failed("its output cannot be read", &it))??;
        Ok((exit(ended.how), stdout, stderr))
    }
}

/// The folders that hooks of plugins may write, which are made.
async fn data_folders(hooks: impl IntoIterator<Item = &Hook>) -> Vec<PathBuf> {
    let named: Vec<_> = hooks
        .into_iter()
        .map(|it| it.variables.clone())
        .filter(|it| !it.is_empty())
        .collect();
    if named.is_empty() {
        return Vec::new();
    }
    let make = move || named.iter().filter_map(|it| made_data_folder(it)).collect();
    tokio::task::spawn_blocking(make).await.unwrap_or_default()
}

const NO_SANDBOX: &str = "there is no sandbox here; agent.hooks = \"free\" in your settings runs hooks without one";

/// A hook that is called, and what it is told.
struct Call {
    /// Its position among the hooks of the occasion.
    at: usize,
    hook: Hook,
    input: String,
    variables: Vec<(String, String)>,
}

impl Call {
    /// It did not run, for this reason.
    fn broken(self, why: &str) -> Ran {
        self.ran(Err(Broken(why.to_owned())), None, 0)
    }

    fn ran(self, result: Result<Answer, Broken>, exit: Option<Exit>, took_ms: u64) -> Ran {
        let Self { at, hook, .. } = self;
        Ran {
            at,
            hook,
            result,
            exit,
            took_ms,
        }
    }
}

/// What came of a call.
struct Ran {
    at: usize,
    hook: Hook,
    result: Result<Answer, Broken>,
    exit: Option<Exit>,
    took_ms: u64,
}

fn permissions(isolation: Isolation) -> Vec<Permission> {
    match isolation {
        Isolation::Sandbox => Vec::new(),
        Isolation::Network => vec![Permission::Network],
        Isolation::Free => vec![Permission::All],
    }
}

fn exit(how: How) -> Exit {
    match how {
        // A shell says so of a program that it started.
        How::Exited(code) if code > 128 && code < 160 => Exit::Signal(code - 128),
        How::Exited(code) => Exit::Code(code),
        How::Killed(signal) => Exit::Signal(signal),
        How::TimedOut => Exit::TimedOut,
        How::Cancelled => Exit::Cancelled,
    }
}

/// Runs hooks that may do the same in one sandbox.
#[cfg(target_os = "linux")]
async fn together(workspace: &Arc<Workspace>, calls: Vec<Call>) -> Vec<Ran> {
    let all = |calls: Vec<Call>, why: &str| calls.into_iter().map(|it| it.broken(why)).collect();
    let tier = tokio::task::spawn_blocking(Commands::tier).await.unwrap_or_default();
    if tier == Tier::None {
        return all(calls, NO_SANDBOX);
    }
    let (calls, lost): (Vec<Call>, Vec<Call>) = calls.into_iter().partition(|it| it.hook.directory.is_dir());
    let mut ran: Vec<_> = lost
        .into_iter()
        .map(|it| {
            let why = format!(
                "it did not run: the folder `{}` does not exist",
                it.hook.directory.display()
            );
            it.broken(&why)
        })
        .collect();
    let Some(first) = calls.first() else {
        return ran;
    };
    let spec = Spec {
        line: calls
            .iter()
            .map(|it| it.hook.command.as_str())
            .collect::<Vec<_>>()
            .join("\n"),
        directory: workspace.root().to_owned(),
        permissions: permissions(first.hook.isolation),
        only_reads: false,
        folders: data_folders(calls.iter().map(|it| &it.hook)).await,
        // Each has a time of its own.
        limit: calls.iter().map(|it| it.hook.timeout).max().map(|it| it + LATE),
        variables: Vec::new(),
    };
    let lines = calls.iter().map(|it| BatchLine {
        line: it.hook.command.clone(),
        directory: it.hook.directory.clone(),
        seen: it.hook.folder.iter().cloned().collect(),
        variables: it.variables.clone(),
        input: it.input.replace('\0', ""),
        limit: it.hook.timeout,
    });
    let printed = Arc::new(Mutex::new(Vec::new()));
    let sink = Arc::clone(&printed);
    let output = move |bytes: &[u8]| {
        sink.lock()
            .unwrap_or_else(PoisonError::into_inner)
            .extend_from_slice(bytes);
    };
    let foreground = match Arc::clone(workspace).begin_all(spec, lines.collect(), output).await {
        Ok(foreground) => foreground,
        Err(error) => {
            ran.extend::<Vec<_>>(all(calls, &format!("it did not run: {error}")));
            return ran;
        }
    };
    let ended = foreground.running().ended().await;
    foreground.leave();
    let printed = std::mem::take(&mut *printed.lock().unwrap_or_else(PoisonError::into_inner));
    let mut reports: Vec<Option<Report>> = calls.iter().map(|_| None).collect();
    for report in Report::decode(&printed) {
        if let Some(place) = reports.get_mut(report.at) {
            *place = Some(report);
        }
    }
    ran.extend(calls.into_iter().zip(reports).map(|(call, report)| match report {
        Some(report) => call.reported(&report),
        // The sandbox says itself why it could not be set up; otherwise all of it was ended.
        None => {
            let told = String::from_utf8_lossy(&printed).into_owned();
            let told = told
                .lines()
                .find(|it| it.starts_with("sheaf: "))
                .unwrap_or_default()
                .to_owned();
            let exit = unreported(ended.how);
            let result = read_answer(&call.hook, exit, "", &told);
            call.ran(result, Some(exit), 0)
        }
    }));
    ran
}

/// The end of a hook whose sandbox has ended without a report of it.
#[cfg(target_os = "linux")]
fn unreported(how: How) -> Exit {
    match how {
        // That would mean something else.
        How::Exited(0 | 2) => Exit::Code(1),
        other => exit(other),
    }
}

impl Call {
    #[cfg(target_os = "linux")]
    fn reported(self, report: &Report) -> Ran {
        let exit = match report.end {
            End::Exited(code) => exit(How::Exited(code)),
            End::Killed(signal) => Exit::Signal(signal),
            End::TimedOut => Exit::TimedOut,
        };
        let result = if report.output.len() > OUTPUT_BYTES {
            Err(too_long())
        } else {
            let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
            read_answer(&self.hook, exit, &text(&report.output), &text(&report.errors))
        };
        self.ran(result, Some(exit), report.took_ms)
    }
}

fn too_long() -> Broken {
    Broken(format!("it printed more than {OUTPUT_BYTES} bytes"))
}

/// The files through which a hook gets its input and gives its output. Dropping them removes them.
struct HookFiles {
    input: PathBuf,
    output: PathBuf,
    /// A folder that is nobody else's.
    folder: Option<PathBuf>,
}

impl HookFiles {
    fn new(folder: &Path, number: u64, input: &str, is_own: bool) -> Result<Self, Broken> {
        let files = Self {
            folder: is_own.then(|| folder.to_owned()),
            input: folder.join(format!("hook-{number}.json")),
            output: folder.join(format!("hook-{number}.out")),
        };
        let written = file::write(&files.input, input.as_bytes(), Access::Private);
        written.map_err(|it| Broken(format!("its input cannot be written: {it}")))?;
        Ok(files)
    }

    /// The line that runs the hook's command. Its standard error is the output of the line.
    fn line(&self, command: &str) -> String {
        let quoted = |path: &Path| format!("'{}'", path.to_string_lossy().replace('\'', r"'\''"));
        let (input, output) = (quoted(&self.input), quoted(&self.output));
        let most = OUTPUT_BYTES + 1;
        format!("{{ {command}\n}} < {input} | head -c {most} > {output}; exit \"${{PIPESTATUS[0]}}\"")
    }

    /// What the hook printed.
    fn output(&self) -> Result<String, Broken> {
        match file::read(&self.output, OUTPUT_BYTES as u64) {
            Ok(bytes) => Ok(String::from_utf8_lossy(&bytes).into_owned()),
            Err(error) if error.is_absent() => Ok(String::new()),
            Err(file::Error::TooLarge { .. }) => Err(too_long()),
            Err(error) => Err(Broken(format!("its output cannot be read: {error}"))),
        }
    }
}

impl Drop for HookFiles {
    fn drop(&mut self) {
        for path in [&self.input, &self.output] {
            std::fs::remove_file(path).ok();
        }
        if let Some(folder) = &self.folder {
            std::fs::remove_dir(folder).ok();
        }
    }
}

/// The members of a changed input by the names that the tool's schema has: those that the hook leaves out stay as they were.
pub fn changed_input(
    synonyms: &[(&str, &[&str])],
    before: &Map<String, Value>,
    changed: &Map<String, Value>,
) -> Map<String, Value> {
    let mut whole = changed.clone();
    for (name, value) in before {
        let others = synonyms.iter().find(|it| it.0 == name).map_or(&[][..], |it| it.1);
        let is_named = changed.contains_key(name) || others.iter().any(|it| changed.contains_key(*it));
        if !is_named {
            whole.insert(name.clone(), value.clone());
        }
    }
    whole
}

#[cfg(test)]
mod tests;
