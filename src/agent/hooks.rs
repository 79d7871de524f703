//! Runs hooks: programs of the user or a project at fixed points.
//!
//! They run in the sandbox unless the user's settings say otherwise, all of an occasion at once, each in a process group of its
//! own and within its time. Whatever becomes of one, there is an answer: a broken hook is a line for the user.

use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::Instant,
};

use serde_json::{Map, Value};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use crate::{
    extensions::hooks::{
        Answer, Broken, Common, Decision, Exit, Hook, HookSet, Isolation, Merged, Occasion, Point, Run, hook_input,
        merge, read_answer,
    },
    os::file::{self, Access},
    protocol::Permission,
    sandbox::{Commands, How, Spec, Tier, Workspace},
};

/// Bytes of a hook's output that are read; more is a mistake.
const OUTPUT_BYTES: u64 = 1 << 20;

/// News of a hook for the user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HookNews {
    /// It changed something, or broke down.
    Line(String),
    /// It ended the answer, for this reason.
    Halt(String),
}

/// The hooks of a conversation. Shared by everything that works on it.
#[derive(Debug)]
pub struct Hooks {
    state: Mutex<State>,
    workspace: Option<Arc<Workspace>>,
    count: AtomicU64,
    /// Takes news for the user.
    news: UnboundedSender<HookNews>,
}

#[derive(Debug, Default)]
struct State {
    set: Arc<HookSet>,
    common: Common,
    /// Variables that hooks have set for later ones.
    variables: Vec<(String, String)>,
    /// Hooks that are called once and were.
    called: BTreeSet<(String, String)>,
    /// Number of times that a hook has gone on with an answer.
    loops: u32,
    /// The hooks of the end have been called.
    has_ended: bool,
}

impl Hooks {
    /// No hooks, and the receiver of what the user is to see.
    pub fn new(workspace: Option<Arc<Workspace>>) -> (Arc<Self>, UnboundedReceiver<HookNews>) {
        let (news, received) = unbounded_channel();
        let hooks = Self {
            state: Mutex::default(),
            workspace,
            count: AtomicU64::new(0),
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
        let calls = hooks.iter().map(|hook| {
            let input = hook_input(hook.dialect, &hook.event, &common, &occasion).to_string();
            let variables = Self::variables(&common, &variables);
            async move {
                let began = Instant::now();
                let result = if hook.is_detached {
                    let (hooks, hook) = (Arc::clone(self), hook.clone());
                    tokio::spawn(async move {
                        let result = hooks.call(&hook, input, variables).await;
                        if let Err(Broken(why)) = result {
                            hooks.say(format!("hook {} {}: {why}", hook.path, hook.event));
                        }
                    });
                    Ok(Answer::default())
                } else {
                    self.call(hook, input, variables).await
                };
                Run {
                    hook,
                    result,
                    took_ms: u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX),
                }
            }
        });
        let runs = futures::future::join_all(calls).await;
        let merged = merge(&runs, loops);
        for line in &merged.lines {
            self.say(line.clone());
        }
        if let Some(why) = &merged.halt {
            self.news.send(HookNews::Halt(why.clone())).ok();
        }
        self.state().variables.extend(merged.variables.iter().cloned());
        merged
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

    /// Runs a hook and reads its answer.
    async fn call(&self, hook: &Hook, input: String, variables: Vec<(String, String)>) -> Result<Answer, Broken> {
        let workspace = self
            .workspace
            .as_ref()
            .ok_or_else(|| Broken("there is no workspace".to_owned()))?;
        let failed = |what: &str, why: &dyn std::fmt::Display| Broken(format!("{what}: {why}"));
        let approved = self
            .state()
            .set
            .approved
            .iter()
            .find(|it| it.path == hook.path)
            .cloned();
        let place = Arc::clone(workspace);
        let number = self.count.fetch_add(1, Ordering::Relaxed);
        let is_free = hook.isolation == Isolation::Free;
        let files = tokio::task::spawn_blocking(move || {
            if approved.is_some_and(|it| !it.is_unchanged()) {
                return Ok(None);
            }
            if !is_free && Commands::tier() == Tier::None {
                let why = "there is no sandbox here; agent.hooks = \"free\" in your settings runs hooks without one";
                return Err(Broken(why.to_owned()));
            }
            let folder = place.commands().temporary_folder();
            let folder = folder.map_err(|it| failed("it did not run", &it))?;
            HookFiles::new(&folder, number, &input).map(Some)
        });
        let files = files.await.map_err(|it| failed("it did not run", &it))??;
        // A guard whose script was changed, by a model perhaps, must not be gone for that.
        let Some(files) = files else {
            let why = "it or its script has changed since you trusted it; /trust asks about it".to_owned();
            return Ok(Answer {
                decision: Some(Decision::Deny),
                reason: why.clone(),
                message: why,
                ..Answer::default()
            });
        };
        let permissions = match hook.isolation {
            Isolation::Sandbox => Vec::new(),
            Isolation::Network => vec![Permission::Network],
            Isolation::Free => vec![Permission::All],
        };
        let spec = Spec {
            line: files.line(&hook.command),
            directory: hook.directory.clone(),
            permissions,
            only_reads: false,
            limit: Some(hook.timeout),
            variables,
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
        let exit = match ended.how {
            // A shell says so of a program that it started.
            How::Exited(code) if code > 128 && code < 160 => Exit::Signal(code - 128),
            How::Exited(code) => Exit::Code(code),
            How::Killed(signal) => Exit::Signal(signal),
            How::TimedOut => Exit::TimedOut,
            How::Cancelled => Exit::Cancelled,
        };
        read_answer(hook, exit, &stdout, &stderr)
    }
}

/// The files through which a hook gets its input and gives its output. Dropping them removes them.
struct HookFiles {
    input: PathBuf,
    output: PathBuf,
}

impl HookFiles {
    fn new(folder: &Path, number: u64, input: &str) -> Result<Self, Broken> {
        let files = Self {
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
        match file::read(&self.output, OUTPUT_BYTES) {
            Ok(bytes) => Ok(String::from_utf8_lossy(&bytes).into_owned()),
            Err(error) if error.is_absent() => Ok(String::new()),
            Err(file::Error::TooLarge { .. }) => Err(Broken(format!("it printed more than {OUTPUT_BYTES} bytes"))),
            Err(error) => Err(Broken(format!("its output cannot be read: {error}"))),
        }
    }
}

impl Drop for HookFiles {
    fn drop(&mut self) {
        for path in [&self.input, &self.output] {
            std::fs::remove_file(path).ok();
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
