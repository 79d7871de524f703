//! Commands that a model asked for: each a fresh `bash` in a session of its own, with nothing to read and little to know.
//!
//! What a command starts ends with it, and all of it ends with the conversation: a sentinel outside of the program does
//! that where the program is killed. Standard output and error are one pipe, read without a pause and kept within bounds.
//! The folder where a command ends is where the next one begins; variables are not kept, because what one command exports
//! would change what the next one means.

mod attendant;
mod launch;

use std::{
    collections::BTreeMap,
    io::{self, Write},
    os::fd::OwnedFd,
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex, MutexGuard, OnceLock, PoisonError,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use rustix::process::{Pid, Signal};
use tokio::{
    net::unix::pipe::Receiver,
    sync::{
        mpsc::{self, UnboundedReceiver, UnboundedSender},
        watch,
    },
};

use self::{
    attendant::Attendant,
    launch::{Start, held, shell, spawn, told, watch_over},
};
use super::{
    Tier,
    around::{Around, Settled, Shared, Wish},
    boundary::{self, Order},
    environment,
    ground::Ground,
    printed::{Excerpt, Printed},
    process::{Family, MARK},
};
use crate::{os::file, protocol::Permission};

/// The longest command that the system takes is 128 KiB, the end included.
const LONGEST_LINE: usize = (128 << 10) - 200;
/// Of so many conversations logs are kept.
const MOST_CONVERSATIONS: usize = 32;
/// Of so many commands that have ended the output is remembered.
const MOST_ENDED: usize = 50;

/// What is to run.
#[derive(Clone, Debug)]
pub struct Spec {
    /// For `bash -c`.
    pub line: String,
    /// Absolute.
    pub directory: PathBuf,
    /// What the boundary lets through for this command.
    pub permissions: Vec<Permission>,
    /// It looks at the workspace and changes nothing there, where there is a boundary.
    pub only_reads: bool,
    /// After this it is ended; none: it lives until the conversation ends.
    pub limit: Option<Duration>,
    /// More variables.
    pub variables: Vec<(String, String)>,
}

/// Why a command did not begin.
#[derive(Debug, thiserror::Error)]
pub enum NotStarted {
    #[error("the command is longer than {LONGEST_LINE} bytes; write it to a file and run that")]
    Long,
    #[error("the command holds a NUL character")]
    Nul,
    #[error("the folder `{0}` does not exist")]
    Folder(String),
    #[error("`bash` was not found; commands need it")]
    Bash,
    #[error("the command could not be started")]
    Failed(#[from] io::Error),
}

/// How a command ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ended {
    pub how: How,
    pub duration: Duration,
    /// The folder in which its shell was at its end, if it said so.
    pub directory: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum How {
    Exited(i32),
    /// By a signal that we did not send.
    Killed(i32),
    TimedOut,
    Cancelled,
}

/// The commands of one conversation. Dropping it ends them all.
#[derive(Debug)]
pub struct Commands {
    ground: Ground,
    /// Where commands are begun that say nothing else.
    directory: Mutex<PathBuf>,
    /// Names of our variables that are passed on.
    passed: Vec<String>,
    logs: Option<PathBuf>,
    shared: Shared,
    /// In a partial sandbox commands may write the whole workspace, which is compared afterwards.
    is_guarded: AtomicBool,
    /// A command did what only the kernel could have kept it from.
    is_halted: Arc<AtomicBool>,
    /// What was done about protected files, for whoever tells the user.
    settled: (UnboundedSender<Settled>, Mutex<Option<UnboundedReceiver<Settled>>>),
    session: OnceLock<Session>,
}

/// What there is once a command was run.
#[derive(Debug)]
struct Session {
    name: String,
    /// Private, for temporary files; canonical.
    temporary: PathBuf,
    /// Canonical.
    logs: PathBuf,
    count: AtomicU64,
    running: Mutex<BTreeMap<u64, Running>>,
    /// The input of the sentinel; none where it could not be started.
    sentinel: Mutex<Option<io::PipeWriter>>,
}

/// A command that runs or has run. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Running(Arc<Command>);

#[derive(Debug)]
struct Command {
    id: String,
    line: String,
    directory: PathBuf,
    /// What held it.
    tier: Tier,
    is_guarded: bool,
    family: Family,
    printed: Mutex<Printed>,
    /// How much of the output the model has been shown.
    shown: Mutex<u64>,
    /// Why it is to end.
    stop: watch::Sender<Option<How>>,
    ended: watch::Sender<Option<Ended>>,
    /// Counts what was printed, for those who wait for more.
    news: watch::Sender<u64>,
    /// What became of the protected files that it made or changed.
    settled: OnceLock<Settled>,
}

impl Commands {
    /// `logs` is the folder for logs of all conversations; without one they lie with the temporary files.
    pub(super) fn new(ground: Ground, passed: Vec<String>, logs: Option<PathBuf>, shared: Shared) -> Self {
        let (tell, told) = mpsc::unbounded_channel();
        Self {
            settled: (tell, Mutex::new(Some(told))),
            directory: Mutex::new(ground.root.clone()),
            ground,
            passed,
            logs,
            shared,
            is_guarded: AtomicBool::new(false),
            is_halted: Arc::default(),
            session: OnceLock::new(),
        }
    }

    /// For another conversation in the same folder.
    pub(super) fn fresh(&self) -> Self {
        let fresh = Self::new(
            self.ground.clone(),
            self.passed.clone(),
            self.logs.clone(),
            self.shared.clone(),
        );
        fresh.set_guarded(self.is_guarded());
        fresh
    }

    /// Whether commands in a partial sandbox may write the whole workspace, what is protected being compared afterwards.
    pub fn is_guarded(&self) -> bool {
        self.is_guarded.load(Ordering::Acquire)
    }

    /// The user wants it so, or not any more; it holds for commands that begin from here on.
    pub fn set_guarded(&self, is_guarded: bool) {
        self.is_guarded.store(is_guarded, Ordering::Release);
    }

    /// Whether a command has changed what is protected: from there on each asks, and none may write the whole workspace.
    pub fn is_halted(&self) -> bool {
        self.is_halted.load(Ordering::Acquire)
    }

    /// What is done about protected files that commands made or changed, as it is done; for the first who asks.
    pub fn settled(&self) -> Option<UnboundedReceiver<Settled>> {
        lock(&self.settled.1).take()
    }

    /// The user wanted what lies at `path` now, and the folders that lead there from `root`.
    pub(super) fn vouch(&self, root: &Path, path: &Path) {
        let parts = path.ancestors().take_while(|it| it.starts_with(root) && *it != root);
        for part in parts {
            self.shared.aside.vouch(part);
        }
    }

    pub(super) fn shared(&self) -> &Shared {
        &self.shared
    }

    /// What keeps a command within its bounds here. The first to ask waits for a trial of some milliseconds.
    pub fn tier() -> Tier {
        boundary::layers().tier
    }

    pub(super) fn ground(&self) -> &Ground {
        &self.ground
    }

    pub(super) fn passed(&self) -> &[String] {
        &self.passed
    }

    /// Where the next command begins.
    pub fn directory(&self) -> PathBuf {
        lock(&self.directory).clone()
    }

    pub fn set_directory(&self, directory: PathBuf) {
        *lock(&self.directory) = directory;
    }

    /// The private folder for temporary files, once there is one.
    pub fn temporary(&self) -> Option<&Path> {
        self.session.get().map(|it| it.temporary.as_path())
    }

    /// The folder of the logs, once there is one.
    pub fn logs(&self) -> Option<&Path> {
        self.session.get().map(|it| it.logs.as_path())
    }

    /// The command with this id.
    pub fn get(&self, id: &str) -> Option<Running> {
        let running = lock(&self.session.get()?.running);
        running.values().find(|it| it.id() == id).cloned()
    }

    /// All that are remembered, in the order in which they began.
    pub fn all(&self) -> Vec<Running> {
        let session = self.session.get();
        session.map_or_else(Vec::new, |it| lock(&it.running).values().cloned().collect())
    }

    /// Begins a command; `output` is called with what it prints, as it comes. Must be called in a runtime.
    pub fn start(&self, spec: Spec, output: impl FnMut(&[u8]) + Send + 'static) -> Result<Running, NotStarted> {
        if spec.line.len() > LONGEST_LINE {
            return Err(NotStarted::Long);
        }
        if spec.line.contains('\0') {
            return Err(NotStarted::Nul);
        }
        if !spec.directory.is_dir() {
            return Err(NotStarted::Folder(spec.directory.display().to_string()));
        }
        let session = self.session()?;
        let number = session.count.fetch_add(1, Ordering::Relaxed) + 1;
        let mark = format!("{}.{number}", session.name);
        let mut variables = environment::variables(std::env::vars_os(), &self.passed, &session.temporary);
        variables.extend(spec.variables.iter().map(|(name, value)| (name.into(), value.into())));
        variables.push((MARK.into(), mark.clone().into()));
        let tier = held(Self::tier(), &spec.permissions);
        variables.push(("SHEAF_SANDBOX".into(), tier.as_str().into()));
        if tier != Tier::None && spec.only_reads {
            let built = session.temporary.join("target");
            variables.push(("CARGO_TARGET_DIR".into(), built.into()));
        }
        let told = told(&session.temporary)?;
        let (reader, writer) = io::pipe()?;
        let shell = shell(&spec.line, &variables)?;
        let (around, start) = match tier {
            Tier::None => {
                let around = Around::unheld(&self.ground, &self.shared, &spec.permissions);
                (around, Start::Plain(shell))
            }
            Tier::Full | Tier::Partial => {
                let wish = Wish {
                    tier,
                    permissions: &spec.permissions,
                    only_reads: spec.only_reads,
                    temporary: &session.temporary,
                    // What lives on is compared too late, and the user works beside it.
                    is_guarded: self.is_guarded() && !self.is_halted() && spec.limit.is_some(),
                };
                let (around, policy) = Around::held(&self.ground, &self.shared, &wish);
                let order = Order {
                    policy,
                    directory: spec.directory.clone(),
                    command: shell,
                    keeps_terminal: false,
                };
                (around, Start::Held(boundary::handed_over(&order)?))
            }
        };
        if around.is_guarded() {
            // Looking at the state of git would write it.
            variables.push(("GIT_OPTIONAL_LOCKS".into(), "0".into()));
        }
        let child = spawn(start, &spec.directory, variables, writer, &told)?;
        let started = Instant::now();
        let group = child.id().and_then(|it| i32::try_from(it).ok()).and_then(Pid::from_raw);
        if let Some(group) = group {
            session.tell(&format!("+ {}\n", group.as_raw_nonzero()));
        }
        let command = Arc::new(Command {
            id: format!("cmd-{number}"),
            line: spec.line,
            directory: spec.directory,
            tier,
            is_guarded: around.is_guarded(),
            family: Family { group, mark },
            printed: Mutex::new(Printed::new(session.logs.join(format!("{number}.log")))),
            shown: Mutex::new(0),
            stop: watch::Sender::new(None),
            ended: watch::Sender::new(None),
            news: watch::Sender::new(0),
            settled: OnceLock::new(),
        });
        session.remember(number, Running(Arc::clone(&command)));
        let reader = Receiver::from_owned_fd(OwnedFd::from(reader))?;
        let attendant = Attendant {
            command: Arc::clone(&command),
            reader: Some(reader),
            told,
            started,
            limit: spec.limit,
            around,
            is_halted: Arc::clone(&self.is_halted),
            tell: self.settled.0.clone(),
            buried: session.sentinel_end(group),
            is_done: false,
        };
        tokio::spawn(attendant.attend(child, output));
        Ok(Running(command))
    }

    /// Begins a command and waits for its end. Dropping the future ends the command.
    pub async fn run(
        &self,
        spec: Spec,
        output: impl FnMut(&[u8]) + Send + 'static,
    ) -> Result<(Running, Ended), NotStarted> {
        let foreground = self.start(spec, output)?.foreground();
        let ended = foreground.running().ended().await;
        Ok((foreground.leave(), ended))
    }

    fn session(&self) -> io::Result<&Session> {
        if let Some(session) = self.session.get() {
            return Ok(session);
        }
        let session = Session::begin(self.logs.as_deref(), &self.ground.root)?;
        // Of two that were begun at once one goes again.
        Ok(self.session.get_or_init(|| session))
    }
}

impl Drop for Commands {
    fn drop(&mut self) {
        let Some(session) = self.session.get() else { return };
        let running: Vec<_> = lock(&session.running).values().cloned().collect();
        let mut is_any = false;
        for command in running.iter().filter(|it| it.outcome().is_none()) {
            is_any = true;
            command.stop();
            if let Some(group) = command.0.family.group {
                rustix::process::kill_process_group(group, Signal::KILL).ok();
            }
        }
        if is_any {
            let all = Family {
                group: None,
                mark: format!("{}.", session.name),
            };
            all.kill();
        }
    }
}

impl Session {
    fn begin(logs: Option<&Path>, root: &Path) -> io::Result<Self> {
        let name = uuid::Uuid::new_v4().simple().to_string();
        let temporary = std::env::temp_dir().join(format!("sheaf-{name}"));
        std::os::unix::fs::DirBuilderExt::mode(&mut std::fs::DirBuilder::new(), 0o700).create(&temporary)?;
        let temporary = temporary.canonicalize()?;
        let folder = match logs {
            Some(logs) => {
                prune(logs);
                logs.join(&name)
            }
            None => temporary.join("logs"),
        };
        file::private_folder(&folder).map_err(io::Error::other)?;
        let sentinel = watch_over(&name, &temporary, root);
        if let Err(error) = &sentinel {
            tracing::warn!(%error, "the sentinel of commands could not be started");
        }
        Ok(Self {
            name,
            logs: folder.canonicalize()?,
            temporary,
            count: AtomicU64::new(0),
            running: Mutex::default(),
            sentinel: Mutex::new(sentinel.ok()),
        })
    }

    fn remember(&self, number: u64, command: Running) {
        let mut running = lock(&self.running);
        running.insert(number, command);
        while running.len() > MOST_ENDED {
            let Some(oldest) = running.iter().find(|it| it.1.outcome().is_some()).map(|it| *it.0) else {
                return;
            };
            running.remove(&oldest);
        }
    }

    fn tell(&self, text: &str) {
        if let Some(sentinel) = &mut *lock(&self.sentinel) {
            sentinel.write_all(text.as_bytes()).ok();
        }
    }

    /// What says that a group has ended.
    fn sentinel_end(&self, group: Option<Pid>) -> Option<(io::PipeWriter, Pid)> {
        let sentinel = lock(&self.sentinel);
        sentinel.as_ref().and_then(|it| it.try_clone().ok()).zip(group)
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        std::fs::remove_dir_all(&self.temporary).ok();
    }
}

impl Running {
    /// What `await_command` asks for.
    pub fn id(&self) -> &str {
        &self.0.id
    }

    pub fn line(&self) -> &str {
        &self.0.line
    }

    /// Where it was begun.
    pub fn directory(&self) -> &Path {
        &self.0.directory
    }

    /// What held it while it ran.
    pub fn tier(&self) -> Tier {
        self.0.tier
    }

    /// Whether it could write the whole workspace although the sandbox is partial.
    pub fn is_guarded(&self) -> bool {
        self.0.is_guarded
    }

    /// How it ended, if it has.
    pub fn outcome(&self) -> Option<Ended> {
        self.0.ended.borrow().clone()
    }

    pub async fn ended(&self) -> Ended {
        let mut ended = self.0.ended.subscribe();
        let found = ended.wait_for(Option::is_some).await;
        found
            .ok()
            .and_then(|it| it.clone())
            .expect("the sender lives in the command")
    }

    /// Waits until it has printed something beyond `read` bytes, or has ended.
    pub async fn news(&self, read: u64) {
        let mut news = self.0.news.subscribe();
        tokio::select! {
            _ = news.wait_for(|it| *it > read) => {}
            _ = self.ended() => {}
        }
    }

    /// The output from the byte `start` on.
    pub fn since(&self, start: u64) -> Excerpt {
        lock(&self.0.printed).since(start)
    }

    /// What was printed since this was last asked.
    pub fn unread(&self) -> Excerpt {
        let mut shown = lock(&self.0.shown);
        let part = self.since(*shown);
        *shown = part.end;
        part
    }

    /// The file that has all of the output, if it is long.
    pub fn log(&self) -> Option<PathBuf> {
        lock(&self.0.printed).log()
    }

    /// Why that file is missing although the output is long.
    pub fn log_failure(&self) -> Option<String> {
        lock(&self.0.printed).log_failure()
    }

    /// What became of protected files that it made or changed; known once it has ended.
    pub fn settled(&self) -> Settled {
        self.0.settled.get().cloned().unwrap_or_default()
    }

    /// Asks it to end, and ends it when it does not.
    pub fn stop(&self) {
        self.0.stop(How::Cancelled);
    }

    /// While this is held the command is somebody's to wait for: dropping it stops the command.
    pub fn foreground(self) -> Foreground {
        Foreground(Some(self))
    }
}

impl Command {
    fn stop(&self, why: How) {
        if self.ended.borrow().is_some() {
            return;
        }
        let is_first = self.stop.send_if_modified(|it| {
            let is_first = it.is_none();
            it.get_or_insert(why);
            is_first
        });
        if is_first && let Some(group) = self.family.group {
            rustix::process::kill_process_group(group, Signal::TERM).ok();
        }
    }
}

/// Somebody waits for a command.
#[derive(Debug)]
pub struct Foreground(Option<Running>);

impl Foreground {
    pub fn running(&self) -> &Running {
        self.0.as_ref().expect("only leaving takes it, and that ends this")
    }

    /// Nobody waits any more; the command goes on.
    pub fn leave(mut self) -> Running {
        self.0.take().expect("only leaving takes it, and that ends this")
    }
}

impl Drop for Foreground {
    fn drop(&mut self) {
        if let Some(running) = &self.0 {
            running.stop();
        }
    }
}

/// Removes the logs of the conversations that are the oldest.
fn prune(logs: &Path) {
    let Ok(entries) = std::fs::read_dir(logs) else { return };
    let mut old: Vec<_> = entries
        .flatten()
        .filter_map(|it| Some((it.metadata().ok()?.modified().ok()?, it.path())))
        .collect();
    old.sort();
    let spare = (old.len() + 1).saturating_sub(MOST_CONVERSATIONS);
    for (_, path) in old.into_iter().take(spare) {
        std::fs::remove_dir_all(path).ok();
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests;
