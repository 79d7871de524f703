//! Commands that a model asked for: each a fresh `bash` in a session of its own, with nothing to read and little to know.
//!
//! What a command starts ends with it, and all of it ends with the conversation: a sentinel outside of the program does
//! that where the program is killed. Standard output and error are one pipe, read without a pause and kept within bounds.
//! The folder where a command ends is where the next one begins; variables are not kept, because what one command exports
//! would change what the next one means.

use std::{
    collections::BTreeSet,
    ffi::OsString,
    io,
    os::fd::OwnedFd,
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex, OnceLock,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use rustix::process::Pid;
use tokio::{
    net::unix::pipe::Receiver,
    signal::unix::{SignalKind, signal},
    sync::watch,
};

use super::{
    attendant::{Attendant, Readers},
    launch::{LONGEST_LINE, NotStarted, Start, held, shell, spawn, told},
    output_capture::Printed,
    overlay::Overlay,
    process_tree::{Family, Group, MARK},
    running::{Command, Running, Shown, lock},
    session::Session,
};
use crate::{
    os::{
        file,
        lazy_channel::{self, Inbox, Outbox},
    },
    protocol::Permission,
    sandbox::{
        kernel::{self, Order, Program},
        policy::{Ground, LookLimit, Policy, Tier, environment},
        protect::{Around, Settled, Shared, Wish},
    },
    shell::CommandLine,
};

/// A command to run.
#[derive(Clone, Debug)]
pub struct Spec {
    /// For `bash -c`.
    pub line: String,
    /// Absolute.
    pub directory: PathBuf,
    /// Permissions that the user granted for this command.
    pub permissions: Vec<Permission>,
    /// True if the command may only read the workspace, as far as there is a sandbox.
    pub only_reads: bool,
    /// Maximum run time. `None`: until the conversation ends.
    pub limit: Option<Duration>,
    /// Additional variables.
    pub variables: Vec<(String, String)>,
    /// Folders outside of the workspace that it may write, as far as there is a sandbox.
    pub folders: Vec<PathBuf>,
}

/// One of several lines that run beside each other.
#[derive(Clone, Debug)]
pub struct BatchLine {
    /// For `bash -c`.
    pub line: String,
    /// Absolute.
    pub directory: PathBuf,
    /// Folders that it may read although the sandbox has a temporary folder of its own in their place.
    pub seen: Vec<PathBuf>,
    /// Variables beside those of all.
    pub variables: Vec<(String, String)>,
    /// Its standard input, without a NUL.
    pub input: String,
    pub limit: Duration,
}

impl BatchLine {
    /// The program that runs it; `policy` lets it see its folders.
    fn program(self, bash: &OsString, policy: &mut Policy) -> Program {
        for folder in self.seen.into_iter().chain([self.directory.clone()]) {
            policy.show(folder);
        }
        let words = [
            bash.clone(),
            "--noprofile".into(),
            "--norc".into(),
            "-c".into(),
            self.line.into(),
        ];
        let variables = self
            .variables
            .into_iter()
            .map(|(name, value)| format!("{name}={value}").into());
        Program {
            command: words.into(),
            directory: self.directory,
            variables: variables.collect(),
            input: self.input,
            limit_ms: u64::try_from(self.limit.as_millis()).unwrap_or(u64::MAX),
        }
    }
}

/// The commands of one conversation. Dropping it ends them all.
#[derive(Debug)]
pub struct Commands {
    ground: Arc<Ground>,
    /// Folder in which the next command starts unless it names one.
    directory: Mutex<PathBuf>,
    /// Names of our variables that are passed on.
    passed: Arc<[String]>,
    logs: Option<PathBuf>,
    shared: Shared,
    flags: Flags,
    /// A command did what only the kernel could have kept it from.
    is_halted: Arc<AtomicBool>,
    /// Repositories that were there before the first command.
    repositories: OnceLock<BTreeSet<PathBuf>>,
    /// Reports of restored protected files, for the user.
    settled: (Outbox<Settled>, Mutex<Option<Inbox<Settled>>>),
    /// Counts the requests to stop waiting for commands, once somebody waits.
    detached: OnceLock<watch::Sender<u64>>,
    session: OnceLock<Session>,
}

/// What can be switched while commands run.
#[derive(Debug, Default)]
struct Flags {
    /// In a partial sandbox commands may write the whole workspace, which is compared afterwards.
    is_guarded: AtomicBool,
    has_told_of_gaps: AtomicBool,
    /// Standard output and standard error are also kept apart.
    is_apart: AtomicBool,
}

impl Commands {
    /// `logs` is the folder for logs of all conversations; without one they lie with the temporary files.
    pub fn new(ground: Ground, passed: Vec<String>, logs: Option<PathBuf>, shared: Shared) -> Self {
        Self::of(Arc::new(ground), passed.into(), logs, shared)
    }

    fn of(ground: Arc<Ground>, passed: Arc<[String]>, logs: Option<PathBuf>, shared: Shared) -> Self {
        let (tell, told) = lazy_channel::channel();
        Self {
            settled: (tell, Mutex::new(Some(told))),
            directory: Mutex::new(ground.root.clone()),
            ground,
            passed,
            logs,
            shared,
            flags: Flags::default(),
            is_halted: Arc::default(),
            repositories: OnceLock::new(),
            detached: OnceLock::new(),
            session: OnceLock::new(),
        }
    }

    /// For another conversation in the same folder.
    pub fn fresh(&self) -> Self {
        let (ground, passed) = (Arc::clone(&self.ground), Arc::clone(&self.passed));
        let fresh = Self::of(ground, passed, self.logs.clone(), self.shared.clone());
        fresh.set_guarded(self.is_guarded());
        fresh.set_apart(self.flags.is_apart.load(Ordering::Acquire));
        fresh
    }

    /// Returns true if commands in a partial sandbox may write the whole workspace, with protected files compared
    /// afterwards.
    pub fn is_guarded(&self) -> bool {
        self.flags.is_guarded.load(Ordering::Acquire)
    }

    /// The user wants it so, or not any more; it holds for commands that begin from here on.
    pub fn set_guarded(&self, is_guarded: bool) {
        self.flags.is_guarded.store(is_guarded, Ordering::Release);
    }

    /// Keeps standard output and standard error of the commands that begin from here on apart, too. Each has a pipe of
    /// its own then, so lines that are printed at almost the same time may change places in the joined output.
    pub fn set_apart(&self, is_apart: bool) {
        self.flags.is_apart.store(is_apart, Ordering::Release);
    }

    /// Returns true if a command has changed protected files: then every command asks, and none may write the whole
    /// workspace.
    pub fn is_halted(&self) -> bool {
        self.is_halted.load(Ordering::Acquire)
    }

    /// Returns the reports of protected files that commands created or changed. `None` after the first call.
    pub fn settled(&self) -> Option<Inbox<Settled>> {
        lock(&self.settled.1).take()
    }

    /// The user wanted what lies at `path` now, and the folders that lead there from `root`.
    pub fn vouch(&self, root: &Path, path: &Path) {
        let parts = path.ancestors().take_while(|it| it.starts_with(root) && *it != root);
        for part in parts {
            self.shared.aside.vouch(part);
        }
    }

    pub fn shared(&self) -> &Shared {
        &self.shared
    }

    /// Returns the strength of the sandbox here. The first caller waits for a trial of some milliseconds.
    pub fn tier() -> Tier {
        kernel::layers().tier
    }

    /// Returns what the sandbox does not cover here, or why there is none. Empty: nothing is missing.
    pub fn gaps(&self) -> &'static str {
        kernel::layers().but(self.is_guarded() && !self.is_halted())
    }

    /// The user hears, once in a conversation, that a command failed because the sandbox is partial.
    pub fn tell_of_gaps(&self) {
        if !self.flags.has_told_of_gaps.swap(true, Ordering::AcqRel) {
            let settled = Settled {
                gaps: Some(self.gaps()),
                ..Settled::default()
            };
            self.settled.0.send(settled).ok();
        }
    }

    pub fn ground(&self) -> &Ground {
        &self.ground
    }

    /// Returns the reason for which not every file that should be protected is. The first caller waits for a walk; later ones
    /// hear what the last command found.
    pub fn limit_reached(&self) -> Option<LookLimit> {
        self.ground.look_once();
        self.ground.limit_reached()
    }

    /// Returns true if git would work in a repository, seen from `folder`, that was not there when this was first asked: a command
    /// may have made it, with any hooks. Where other programs run in the same line (`is_mixed`), they may still make one anywhere
    /// below a known one.
    pub fn is_new_repository(&self, folder: &Path, is_mixed: bool) -> bool {
        let known = self
            .repositories
            .get_or_init(|| self.ground.look().repositories().cloned().collect());
        // What does not exist yet a command of the line may make.
        let Ok(folder) = folder.canonicalize() else {
            return true;
        };
        let inside = folder.ancestors().take_while(|it| self.ground.is_inside(it));
        for part in inside {
            let git = part.join(".git");
            if git.is_file() || git.join("HEAD").exists() {
                return !known.contains(&git) || (is_mixed && part != folder);
            }
            // One without a working tree is found by what is in it.
            if ["HEAD", "objects", "refs"].iter().all(|it| part.join(it).exists()) {
                return true;
            }
        }
        false
    }

    pub fn passed(&self) -> &[String] {
        &self.passed
    }

    /// Returns the folder in which the next command starts.
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

    /// The private folder for temporary files; it is made if there is none.
    pub fn temporary_folder(&self) -> io::Result<PathBuf> {
        Ok(self.session()?.temporary.clone())
    }

    /// The folder of the logs, once there is one.
    pub fn logs(&self) -> Option<&Path> {
        self.session.get().map(|it| it.logs.as_path())
    }

    /// Lets all commands continue in the background that somebody waits for.
    pub fn detach(&self) {
        if let Some(detached) = self.detached.get() {
            detached.send_modify(|it| *it += 1);
        }
    }

    /// Changes when [`detach`](Self::detach) is called.
    pub fn detached(&self) -> watch::Receiver<u64> {
        self.detached.get_or_init(|| watch::Sender::new(0)).subscribe()
    }

    /// The command with this id.
    pub fn get(&self, id: &str) -> Option<Running> {
        let running = lock(&self.session.get()?.running);
        running.values().find(|it| it.id() == id).cloned()
    }

    /// Returns all commands in memory, in the order in which they were started.
    pub fn all(&self) -> Vec<Running> {
        let session = self.session.get();
        session.map_or_else(Vec::new, |it| lock(&it.running).values().cloned().collect())
    }

    /// Begins a command; `output` is called with what it prints, as it comes. Must be called in a runtime.
    pub fn start(&self, spec: Spec, output: impl FnMut(&[u8]) + Send + 'static) -> Result<Running, NotStarted> {
        self.start_with(spec, (Vec::new(), None), output)
    }

    /// Texts that are laid over files of the workspace, for [`Self::start_over`]. Error: there can be no overlay here.
    pub fn overlay(&self, files: &[(PathBuf, String)]) -> io::Result<Overlay> {
        if Self::tier() != Tier::Full || kernel::wraps() {
            return Err(io::ErrorKind::Unsupported.into());
        }
        let session = self.session()?;
        // What lies in the temporary folder would be a part of what it is laid over.
        let beside = session
            .temporary
            .parent()
            .filter(|_| session.logs.starts_with(&session.temporary));
        let name = format!("sheaf-{}", uuid::Uuid::new_v4().simple());
        Overlay::new(&self.ground.root, beside.unwrap_or(&session.logs).join(name), files)
    }

    /// The same for a command that only reads, and sees an overlay.
    pub fn start_over(
        &self,
        spec: Spec,
        overlay: &Overlay,
        output: impl FnMut(&[u8]) + Send + 'static,
    ) -> Result<Running, NotStarted> {
        if !spec.only_reads || held(Self::tier(), &spec.permissions) != Tier::Full {
            return Err(io::Error::from(io::ErrorKind::Unsupported).into());
        }
        self.start_with(spec, (Vec::new(), Some(overlay)), output)
    }

    /// Begins programs beside each other in one sandbox, in place of the line of `spec`: setting one up for each would take much
    /// longer than most of them do. What is printed are their reports ([`kernel::Report`]).
    #[cfg(target_os = "linux")]
    pub fn start_all(
        &self,
        spec: Spec,
        lines: Vec<BatchLine>,
        output: impl FnMut(&[u8]) + Send + 'static,
    ) -> Result<Running, NotStarted> {
        if held(Self::tier(), &spec.permissions) == Tier::None {
            return Err(io::Error::from(io::ErrorKind::Unsupported).into());
        }
        self.start_with(spec, (lines, None), output)
    }

    fn start_with(
        &self,
        spec: Spec,
        (lines, overlay): (Vec<BatchLine>, Option<&Overlay>),
        output: impl FnMut(&[u8]) + Send + 'static,
    ) -> Result<Running, NotStarted> {
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
        let is_apart = self.flags.is_apart.load(Ordering::Acquire);
        let (reader, writer) = io::pipe()?;
        let (errors, error_writer) = if is_apart {
            io::pipe().map(|(it, to)| (Some(it), Some(to)))?
        } else {
            (None, None)
        };
        let shell = shell(&spec.line, &variables)?;
        let (around, start) = match tier {
            Tier::None => {
                let around = Around::unheld(&self.ground, &self.shared, &spec.permissions);
                (around, Start::Plain(shell))
            }
            Tier::Full | Tier::Partial => {
                let wish = Wish {
                    tier,
                    wraps: tier == Tier::Full && kernel::wraps(),
                    permissions: &spec.permissions,
                    only_reads: spec.only_reads,
                    temporary: &session.temporary,
                    is_guarded: self.is_guarded() && !self.is_halted(),
                    is_background: spec.limit.is_none(),
                    makes_submodules: spec.permissions.contains(&Permission::GitWrite)
                        && CommandLine::read(&spec.line).makes_submodules(),
                    mark: &mark,
                };
                let (around, mut policy) = Around::held(&self.ground, &self.shared, &wish);
                self.ground.grant(&spec.folders, &mut policy);
                policy.over = overlay.map(|it| it.folder.clone());
                let bash = shell.first().cloned().unwrap_or_default();
                let programs: Vec<_> = lines.into_iter().map(|it| it.program(&bash, &mut policy)).collect();
                // What only looks around reaches nothing that runs beside it.
                let is_shared = tier == Tier::Full && !policy.wraps && !policy.network && !spec.only_reads;
                let network = is_shared.then(|| session.network()).flatten();
                let order = Order {
                    variables: Vec::new(),
                    joins: network.is_some(),
                    policy,
                    directory: spec.directory.clone(),
                    command: shell,
                    keeps_terminal: false,
                    programs,
                };
                (around, Start::Held(kernel::handed_over(&order)?, network))
            }
        };
        if around.is_guarded() || spec.only_reads {
            // Looking at the state of git would write it.
            variables.push(("GIT_OPTIONAL_LOCKS".into(), "0".into()));
        }
        // Before it begins, so that its end is not missed.
        let children = signal(SignalKind::child())?;
        let child = spawn(start, &spec.directory, variables, (writer, error_writer), &told)?;
        let started = Instant::now();
        let group = child.id().and_then(|it| i32::try_from(it).ok()).and_then(Pid::from_raw);
        let grave = session.watch(group, around.record());
        let command = Arc::new(Command {
            id: format!("cmd-{number}"),
            line: spec.line,
            directory: spec.directory,
            tier,
            is_guarded: around.is_guarded(),
            family: Family {
                group: Group::new(group),
                mark,
            },
            printed: Mutex::new(Printed::new(session.logs.join(format!("{number}.log")), is_apart)),
            shown: Shown::default(),
            stop: watch::Sender::new(None),
            ended: watch::Sender::new(None),
            news: watch::Sender::new(0),
            settled: OnceLock::new(),
        });
        session.remember(number, Running(Arc::clone(&command)));
        let receiver = |it: io::PipeReader| Receiver::from_owned_fd(OwnedFd::from(it));
        let readers = Readers {
            output: Some(receiver(reader)?),
            errors: errors.map(receiver).transpose()?,
        };
        let attendant = Attendant {
            command: Arc::clone(&command),
            child,
            children,
            readers,
            told,
            started,
            limit: spec.limit,
            around: Some(around),
            is_halted: Arc::clone(&self.is_halted),
            tell: self.settled.0.clone(),
            grave,
            is_done: false,
        };
        tokio::spawn(attendant.attend(output));
        Ok(Running(command))
    }

    /// Keeps `bytes` in a file beside the logs of commands, which tools may read. Returns its path.
    pub fn keep(&self, name: &str, bytes: &[u8]) -> io::Result<PathBuf> {
        let plain = |it: char| {
            if it.is_ascii_alphanumeric() || "-_.".contains(it) {
                it
            } else {
                '_'
            }
        };
        let name: String = name.chars().map(plain).take(120).collect();
        let path = self.session()?.logs.join(name.trim_start_matches('.'));
        file::write(&path, bytes, file::Access::Private).map_err(io::Error::other)?;
        Ok(path)
    }

    pub(super) fn session(&self) -> io::Result<&Session> {
        if let Some(session) = self.session.get() {
            return Ok(session);
        }
        let session = Session::begin(self.logs.as_deref(), &self.ground.root, self.shared.aside.folder())?;
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
            command.0.family.kill();
        }
        if is_any {
            let all = Family {
                group: Group::default(),
                mark: format!("{}.", session.name),
            };
            all.kill();
        }
    }
}

#[cfg(test)]
mod tests;
