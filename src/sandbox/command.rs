//! Commands that a model asked for: each a fresh `bash` in a session of its own, with nothing to read and little to know.
//!
//! What a command starts ends with it, and all of it ends with the conversation: a sentinel outside of the program does
//! that where the program is killed. Standard output and error are one pipe, read without a pause and kept within bounds.
//! The folder where a command ends is where the next one begins; variables are not kept, because what one command exports
//! would change what the next one means.

use std::{
    collections::BTreeMap,
    ffi::OsString,
    fs::File,
    io::{self, Read, Seek, Write},
    os::{
        fd::{AsRawFd, OwnedFd},
        unix::process::ExitStatusExt,
    },
    path::{Path, PathBuf},
    process::{ExitStatus, Stdio},
    sync::{
        Arc, Mutex, MutexGuard, OnceLock, PoisonError,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use rustix::process::{Pid, Resource, Rlimit, Signal};
use tokio::{
    io::AsyncReadExt,
    net::unix::pipe::Receiver,
    process::Child,
    sync::{
        mpsc::{self, UnboundedReceiver, UnboundedSender},
        watch,
    },
};

use super::{
    Tier,
    around::{Around, Settled, Shared, Wish},
    boundary::{self, FOLDER_DESCRIPTOR, ORDER_DESCRIPTOR, Order},
    environment,
    ground::Ground,
    name::top_folders,
    printed::{Excerpt, Printed},
    process::{Family, MARK, duplicate},
};
use crate::{
    os::{file, process::find},
    protocol::Permission,
};

/// How long a command has to end by itself once it was asked to.
const GRACE: Duration = Duration::from_secs(2);
/// How long the pipe of a command is read that has ended, where something that cannot be killed holds it open.
const LAST_WORDS: Duration = Duration::from_millis(500);
/// How often it is looked whether the asked have gone.
const LOOK: Duration = Duration::from_millis(10);
/// Read at once.
const PIECE_BYTES: usize = 64 << 10;
/// The longest command that the system takes is 128 KiB, the end included.
const LONGEST_LINE: usize = (128 << 10) - 200;
/// Of so many conversations logs are kept.
const MOST_CONVERSATIONS: usize = 32;
/// Of so many commands that have ended the output is remembered.
const MOST_ENDED: usize = 50;

/// Kills what a conversation left when the other end of its input is gone, however that came. It reads the groups of
/// commands that begin (`+`) and end (`-`). At last it takes away the empty folders that were held for them, where nobody else
/// holds them.
const SENTINEL: &str = r#"
trap '' HUP INT TERM QUIT
groups=' '
while read -r word number; do
  case $word in
    +) groups="$groups$number " ;;
    -) case $groups in *" $number "*) groups="${groups%%" $number "*} ${groups#*" $number "}" ;; esac ;;
  esac
done
for pass in 1 2 3; do
  for group in $groups; do kill -KILL "-$group" 2>/dev/null; done
  for file in $(grep -lasF "SHEAF_COMMAND=$1." /proc/[0-9]*/environ 2>/dev/null); do
    pid=${file#/proc/}
    kill -KILL "${pid%/environ}" 2>/dev/null
  done
done
rm -rf -- "$2"
root=$3
shift 3
for name in "$@"; do
  [ -k "$root/$name" ] && flock -n "$root/$name" rmdir -- "$root/$name" 2>/dev/null
done
"#;

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

/// Reads what a command prints and waits for its end. When the runtime goes, so does the command.
struct Attendant {
    command: Arc<Command>,
    reader: Option<Receiver>,
    told: File,
    started: Instant,
    limit: Option<Duration>,
    around: Around,
    is_halted: Arc<AtomicBool>,
    tell: UnboundedSender<Settled>,
    buried: Option<(io::PipeWriter, Pid)>,
    is_done: bool,
}

impl Attendant {
    async fn attend(mut self, mut child: Child, mut output: impl FnMut(&[u8])) {
        let mut reader = self.reader.take();
        let mut piece = vec![0; PIECE_BYTES];
        let mut stop = self.command.stop.subscribe();
        let limit = self.limit;
        let limit = async move {
            match limit {
                Some(limit) => tokio::time::sleep(limit).await,
                None => std::future::pending().await,
            }
        };
        tokio::pin!(limit);
        let grace = tokio::time::sleep(GRACE);
        tokio::pin!(grace);
        let mut why = None;
        let status = loop {
            tokio::select! {
                // A flood must not keep anybody from stopping it.
                biased;
                asked = async { stop.wait_for(Option::is_some).await.ok().and_then(|it| *it) }, if why.is_none() => {
                    why = asked.or(Some(How::Cancelled));
                    grace.as_mut().reset(tokio::time::Instant::now() + GRACE);
                    let family = self.command.family.clone();
                    // Those that left the group are asked too; looking for them takes a moment.
                    tokio::task::spawn_blocking(move || family.ask_strays());
                }
                () = &mut limit, if why.is_none() => self.command.stop(How::TimedOut),
                () = &mut grace, if why.is_some() => {
                    self.kill().await;
                    grace.as_mut().reset(tokio::time::Instant::now() + GRACE);
                }
                status = child.wait() => break status,
                more = read(reader.as_mut(), &mut piece), if reader.is_some() => {
                    if more == 0 {
                        reader = None;
                    } else {
                        self.print(&piece[..more], &mut output);
                    }
                }
            }
        };
        if why.is_some() {
            // The shell is gone; what it started has the rest of the time.
            let deadline = grace.deadline();
            while self.command.family.is_group_alive() && tokio::time::Instant::now() < deadline {
                if reader.is_none() {
                    tokio::time::sleep(LOOK).await;
                    continue;
                }
                let drained = async {
                    while let more @ 1.. = read(reader.as_mut(), &mut piece).await {
                        self.print(&piece[..more], &mut output);
                    }
                };
                if tokio::time::timeout(LOOK, drained).await.is_ok() {
                    reader = None;
                }
            }
        }
        self.kill().await;
        let last_words = async {
            while let more @ 1.. = read(reader.as_mut(), &mut piece).await {
                self.print(&piece[..more], &mut output);
            }
        };
        tokio::time::timeout(LAST_WORDS, last_words).await.ok();
        self.is_done = true;
        self.settle();
        if let Some((sentinel, group)) = &mut self.buried {
            sentinel
                .write_all(format!("- {}\n", group.as_raw_nonzero()).as_bytes())
                .ok();
        }
        self.end(why.unwrap_or_else(|| how(status)));
    }

    /// Ends what is left, without holding up others meanwhile.
    async fn kill(&self) {
        let family = self.command.family.clone();
        tokio::task::spawn_blocking(move || family.kill()).await.ok();
    }

    /// Nothing of the command runs any more.
    fn settle(&mut self) {
        let settled = self.around.settle();
        if settled.is_breach() {
            self.is_halted.store(true, Ordering::Release);
        }
        if settled != Settled::default() {
            // Nobody may be listening.
            self.tell.send(settled.clone()).ok();
        }
        self.command.settled.set(settled).ok();
    }

    fn print(&self, bytes: &[u8], output: &mut impl FnMut(&[u8])) {
        let total = {
            let mut printed = lock(&self.command.printed);
            printed.push(bytes);
            printed.total()
        };
        output(bytes);
        self.command.news.send_replace(total);
    }

    fn end(&mut self, how: How) {
        let directory = if how == How::TimedOut || how == How::Cancelled {
            None
        } else {
            told_folder(&mut self.told)
        };
        self.command.ended.send_replace(Some(Ended {
            how,
            duration: self.started.elapsed(),
            directory,
        }));
    }
}

impl Drop for Attendant {
    fn drop(&mut self) {
        if !self.is_done {
            self.command.family.kill();
            self.settle();
            self.end(How::Cancelled);
        }
    }
}

/// How many bytes came; none at the end, and for ever where there is nothing to read.
async fn read(reader: Option<&mut Receiver>, piece: &mut [u8]) -> usize {
    match reader {
        Some(reader) => reader.read(piece).await.unwrap_or(0),
        None => 0,
    }
}

fn how(status: io::Result<ExitStatus>) -> How {
    match status {
        Ok(status) => match (status.code(), status.signal()) {
            (Some(code), _) => How::Exited(code),
            (None, signal) => How::Killed(signal.unwrap_or_default()),
        },
        Err(_) => How::Killed(0),
    }
}

/// The file that a shell writes its last folder to; it has no name, so nobody else does.
fn told(temporary: &Path) -> io::Result<File> {
    let path = temporary.join(format!(".folder-{}", uuid::Uuid::new_v4().simple()));
    let flags =
        rustix::fs::OFlags::RDWR | rustix::fs::OFlags::CREATE | rustix::fs::OFlags::EXCL | rustix::fs::OFlags::CLOEXEC;
    let file = rustix::fs::open(&path, flags, rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR)?;
    std::fs::remove_file(&path)?;
    Ok(File::from(file))
}

/// What the shell wrote there at its end.
fn told_folder(told: &mut File) -> Option<PathBuf> {
    let mut bytes = Vec::new();
    told.rewind().ok()?;
    told.take(16 << 10).read_to_end(&mut bytes).ok()?;
    // A name with a line end in it is not recognised, and then the folder stays what it was.
    let path = bytes.strip_suffix(b"\n")?;
    let path = path.rsplit(|it| *it == b'\n').next()?;
    let path = PathBuf::from(<OsString as std::os::unix::ffi::OsStringExt>::from_vec(path.to_vec()));
    (path.is_absolute() && path.is_dir()).then_some(path)
}

/// What holds a command that was given these permissions.
fn held(tier: Tier, permissions: &[Permission]) -> Tier {
    if permissions.contains(&Permission::All) {
        Tier::None
    } else {
        tier
    }
}

/// The shell that runs a line, which also says where it ended.
fn shell(line: &str, variables: &[(OsString, OsString)]) -> Result<Vec<OsString>, NotStarted> {
    let path = variables.iter().find(|it| it.0 == "PATH").map(|it| it.1.clone());
    let bash = find("bash", &path.unwrap_or_default()).ok_or(NotStarted::Bash)?;
    // Behind the command on its own line, so that messages of the shell name the right lines.
    let script = format!("trap 'builtin pwd -P 2>/dev/null >&{FOLDER_DESCRIPTOR}' EXIT; {line}");
    Ok([
        bash.into(),
        "--noprofile".into(),
        "--norc".into(),
        "-c".into(),
        script.into(),
    ]
    .into())
}

/// How a command comes to run.
enum Start {
    /// By itself.
    Plain(Vec<OsString>),
    /// Through the helper, which reads its order here.
    Held(io::PipeReader),
}

fn spawn(
    start: Start,
    directory: &Path,
    variables: Vec<(OsString, OsString)>,
    output: io::PipeWriter,
    told: &File,
) -> Result<Child, NotStarted> {
    let (arguments, order) = match start {
        Start::Plain(arguments) => (arguments, None),
        Start::Held(order) => ([boundary::program()?.into(), boundary::WORD.into()].into(), Some(order)),
    };
    let (program, arguments) = arguments.split_first().ok_or(NotStarted::Bash)?;
    #[expect(
        clippy::disallowed_methods,
        reason = "this is the place where a model's commands are started"
    )]
    let mut command = tokio::process::Command::new(program);
    command
        .args(arguments)
        .current_dir(directory)
        .env_clear()
        .envs(variables)
        .stdin(Stdio::null())
        .stdout(output.try_clone()?)
        .stderr(output);
    let told = told.as_raw_fd();
    let order_descriptor = order.as_ref().map(AsRawFd::as_raw_fd);
    let before = move || -> io::Result<()> {
        // No terminal: what has one could write to the screen and read what the user types.
        rustix::process::setsid()?;
        // A crash of a command leaves no memory on the disk.
        let none = Rlimit {
            current: Some(0),
            maximum: Some(0),
        };
        rustix::process::setrlimit(Resource::Core, none).ok();
        modest();
        if let Some(order) = order_descriptor {
            duplicate(order, ORDER_DESCRIPTOR)?;
        }
        duplicate(told, FOLDER_DESCRIPTOR)
    };
    #[expect(
        unsafe_code,
        reason = "between fork and exec only system calls are made: nothing is allocated and nothing locked"
    )]
    unsafe {
        command.pre_exec(before);
    }
    Ok(command.spawn()?)
}

/// When memory runs out, the command goes before we do.
#[cfg(target_os = "linux")]
fn modest() {
    let flags = rustix::fs::OFlags::WRONLY | rustix::fs::OFlags::CLOEXEC;
    if let Ok(file) = rustix::fs::open(c"/proc/self/oom_score_adj", flags, rustix::fs::Mode::empty()) {
        rustix::io::write(&file, b"1000").ok();
    }
}

#[cfg(not(target_os = "linux"))]
fn modest() {}

/// Starts the sentinel, in a group of its own so that a key in the terminal does not reach it.
fn watch_over(name: &str, temporary: &Path, root: &Path) -> io::Result<io::PipeWriter> {
    let (reader, writer) = io::pipe()?;
    #[expect(
        clippy::disallowed_methods,
        reason = "this is the place where a model's commands are started"
    )]
    let mut command = std::process::Command::new("/bin/sh");
    command
        .args(["-c", SENTINEL, "sheaf-sentinel", name])
        .arg(temporary)
        .arg(root)
        .args(top_folders())
        .current_dir("/")
        .env_clear()
        .env("PATH", "/usr/local/bin:/usr/bin:/bin")
        .stdin(reader)
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    std::os::unix::process::CommandExt::process_group(&mut command, 0);
    let mut child = command.spawn()?;
    // It ends when we do, or when the conversation does and is buried then.
    std::thread::Builder::new()
        .name("sentinel".to_owned())
        .stack_size(64 << 10)
        .spawn(move || child.wait())?;
    Ok(writer)
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
mod tests {
    use super::*;
    use pretty_assertions::assert_eq;
    use std::{fs, sync::mpsc};

    /// Longer than anything below takes; only a test that fails waits for it.
    const LONG: Duration = Duration::from_secs(30);

    struct Bench {
        folder: tempfile::TempDir,
        commands: Commands,
    }

    impl Bench {
        fn new() -> Self {
            let folder = tempfile::tempdir().unwrap();
            let logs = folder.path().join("logs");
            Self {
                commands: Commands::new(Ground::bare(folder.path()), Vec::new(), Some(logs), Shared::default()),
                folder,
            }
        }

        fn path(&self, name: &str) -> PathBuf {
            self.folder.path().canonicalize().unwrap().join(name)
        }

        fn spec(&self, line: &str) -> Spec {
            Spec {
                line: line.replace("HERE", &self.path("").display().to_string()),
                directory: self.commands.directory(),
                permissions: Vec::new(),
                only_reads: false,
                limit: Some(LONG),
                variables: Vec::new(),
            }
        }

        fn start(&self, line: &str) -> Running {
            self.commands.start(self.spec(line), |_| {}).unwrap()
        }

        /// What it printed and how it ended.
        async fn run(&self, line: &str) -> (String, How) {
            let (running, ended) = self.commands.run(self.spec(line), |_| {}).await.unwrap();
            (text(&running), ended.how)
        }

        /// The number in a file that a command writes.
        async fn number(&self, name: &str) -> Pid {
            until(|| fs::read_to_string(self.path(name)).is_ok_and(|it| it.ends_with('\n'))).await;
            let text = fs::read_to_string(self.path(name)).unwrap();
            Pid::from_raw(text.trim().parse().unwrap()).unwrap()
        }
    }

    fn text(running: &Running) -> String {
        let part = running.since(0);
        String::from_utf8_lossy(&[part.first, part.last].concat()).into_owned()
    }

    async fn until(is_so: impl Fn() -> bool) {
        let deadline = Instant::now() + LONG;
        while !is_so() {
            assert!(Instant::now() < deadline, "it never came");
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    }

    /// Dead, or a zombie that nobody has buried.
    fn is_gone(pid: Pid) -> bool {
        let stat = fs::read_to_string(format!("/proc/{}/stat", pid.as_raw_nonzero())).unwrap_or_default();
        rustix::process::test_kill_process(pid).is_err()
            || stat.rsplit(") ").next().is_some_and(|it| it.starts_with('Z'))
    }

    #[tokio::test]
    async fn a_command_gives_its_output_in_order_and_its_code() {
        let bench = Bench::new();
        for (line, output, how) in [
            (
                "echo out; echo err >&2; echo more; exit 3",
                "out\nerr\nmore\n",
                How::Exited(3),
            ),
            ("true", "", How::Exited(0)),
            ("printf 'no end'", "no end", How::Exited(0)),
            ("cat; echo read", "read\n", How::Exited(0)),
            ("read -r line; echo \"code $?\"", "code 1\n", How::Exited(0)),
            ("set -e; false; echo never", "", How::Exited(1)),
            ("kill -SEGV $$", "", How::Killed(libc::SIGSEGV)),
            ("printf '\\xff\\xfe!'", "\u{fffd}\u{fffd}!", How::Exited(0)),
            ("cat <<'END'\n$HOME\nEND\n", "$HOME\n", How::Exited(0)),
            ("f() { echo in f; }\nf # and a comment", "in f\n", How::Exited(0)),
            (
                "[ -t 0 ] || [ -t 1 ] || echo no terminal",
                "no terminal\n",
                How::Exited(0),
            ),
            ("(: < /dev/tty) 2>/dev/null || echo none", "none\n", How::Exited(0)),
            ("exec echo replaced", "replaced\n", How::Exited(0)),
            ("ulimit -c", "0\n", How::Exited(0)),
            ("trap 'echo mine' EXIT; echo x", "x\nmine\n", How::Exited(0)),
        ] {
            assert_eq!(bench.run(line).await, (output.to_owned(), how), "{line}");
        }
        let (output, how) = bench.run("echo 'unclosed").await;
        assert!(output.contains("line 1:") && how == How::Exited(2), "{output}");
        let (output, how) = bench.run("no-such-command-at-all").await;
        assert!(output.contains("not found") && how == How::Exited(127), "{output}");
    }

    #[tokio::test]
    async fn what_cannot_begin_says_why() {
        let bench = Bench::new();
        let folder = Spec {
            directory: bench.path("absent"),
            ..bench.spec("true")
        };
        for (spec, expected) in [
            (bench.spec("a\0b"), "the command holds a NUL character".to_owned()),
            (
                folder,
                format!("the folder `{}` does not exist", bench.path("absent").display()),
            ),
            (
                bench.spec(&"x".repeat(200_000)),
                format!("the command is longer than {LONGEST_LINE} bytes; write it to a file and run that"),
            ),
        ] {
            assert_eq!(bench.commands.start(spec, |_| {}).unwrap_err().to_string(), expected);
        }
        // The longest that is taken does begin.
        let longest = format!("echo $(( 1 + 1 )) #{}", "x".repeat(LONGEST_LINE));
        assert_eq!(
            bench.run(longest.get(..LONGEST_LINE).unwrap()).await,
            ("2\n".to_owned(), How::Exited(0))
        );
    }

    #[tokio::test]
    async fn the_folder_is_told_and_variables_are_not_kept() {
        let bench = Bench::new();
        fs::create_dir_all(bench.path("a/b c")).unwrap();
        std::os::unix::fs::symlink(bench.path("a"), bench.path("link")).unwrap();
        let root = bench.path("").components().as_path().to_owned();
        for (line, expected) in [
            ("cd a/b\\ c", Some(bench.path("a/b c"))),
            ("cd link && true", Some(bench.path("a"))),
            ("cd a; exit 3", Some(bench.path("a"))),
            ("(cd a)", Some(root.clone())),
            ("export FOO=1", Some(root.clone())),
            ("pwd() { echo /etc; }; PWD=/etc", Some(root.clone())),
            ("echo /etc >&198; cd a", Some(bench.path("a"))),
            ("printf /etc >&198", None),
            ("cd a; exec true", None),
            ("cd a; kill -KILL $$", None),
            ("mkdir gone; cd gone; rmdir ../gone", None),
        ] {
            let ended = bench.commands.run(bench.spec(line), |_| {}).await.unwrap().1;
            assert_eq!(ended.directory, expected, "{line}");
        }
        assert_eq!(bench.run("echo [$FOO]").await.0, "[]\n");
    }

    #[tokio::test]
    async fn the_environment_is_ours_to_say() {
        let bench = Bench::new();
        let spec = Spec {
            variables: vec![("EXTRA".to_owned(), "yes".to_owned())],
            ..bench.spec(
                "env | cut -d= -f1 | sort | tr '\\n' ' '; stat -c %a \"$TMPDIR\"; mktemp; echo $EXTRA $SHEAF_SANDBOX",
            )
        };
        let (running, _) = bench.commands.run(spec, |_| {}).await.unwrap();
        let text = text(&running);
        let mut lines = text.lines();
        let first = lines.next().unwrap();
        let allowed = [
            "HOME",
            "USER",
            "LOGNAME",
            "SHELL",
            "LANG",
            "LANGUAGE",
            "TZ",
            "PATH",
            "TMPDIR",
            "TERM",
            "PAGER",
            "GIT_PAGER",
            "GIT_TERMINAL_PROMPT",
            "GIT_EDITOR",
            "EDITOR",
            "VISUAL",
            "DEBIAN_FRONTEND",
            "SHEAF_COMMAND",
            "SHEAF_SANDBOX",
            "EXTRA",
            "PWD",
            "SHLVL",
            "_",
            "OLDPWD",
            "700",
        ];
        for name in first.split_whitespace() {
            assert!(allowed.contains(&name) || name.starts_with("LC_"), "{name}");
        }
        assert!(first.ends_with(" 700"), "{first}");
        let temporary = bench.commands.temporary().unwrap().to_owned();
        assert!(Path::new(lines.next().unwrap()).starts_with(&temporary));
        assert_eq!(lines.next(), Some("yes none"));
        drop(bench);
        assert!(!temporary.exists());
    }

    #[tokio::test]
    async fn what_a_command_leaves_behind_ends_with_it() {
        let bench = Bench::new();
        // In the group, in a group of its own, in a session of its own, and as a daemon; some hold the output open.
        for (name, line) in [
            ("background", "sleep 600 & echo $! > HERE/pid"),
            ("quiet", "sleep 600 >/dev/null 2>&1 </dev/null & echo $! > HERE/pid"),
            ("group", "set -m; sleep 600 & echo $! > HERE/pid"),
            (
                "session",
                "setsid sh -c 'echo $$ > HERE/pid; exec sleep 600' & until [ -s HERE/pid ]; do sleep 0.01; done",
            ),
            (
                "daemon",
                "(setsid sh -c 'echo $$ > HERE/pid; exec sleep 600' >/dev/null 2>&1 &) ; until [ -s HERE/pid ]; do sleep 0.01; done",
            ),
            (
                "deaf",
                "sh -c 'trap \"\" TERM HUP INT; echo $$ > HERE/pid; sleep 600' & until [ -s HERE/pid ]; do sleep 0.01; done",
            ),
        ] {
            fs::remove_file(bench.path("pid")).ok();
            let (_, how) = bench.run(&format!("{line}; echo done")).await;
            assert_eq!(how, How::Exited(0), "{name}");
            let pid = bench.number("pid").await;
            until(|| is_gone(pid)).await;
        }
    }

    #[tokio::test]
    async fn a_command_that_does_not_listen_is_ended() {
        let bench = Bench::new();
        for line in [
            "trap '' TERM; echo $$ > HERE/pid; while :; do sleep 0.05; done",
            "sh -c 'trap \"\" TERM; echo $$ > HERE/pid; while :; do sleep 0.05; done'",
        ] {
            let running = bench.start(line);
            let pid = bench.number("pid").await;
            running.stop();
            let ended = running.ended().await;
            assert_eq!((ended.how, ended.directory), (How::Cancelled, None));
            until(|| is_gone(pid)).await;
            fs::remove_file(bench.path("pid")).unwrap();
        }
    }

    #[tokio::test]
    async fn a_limit_ends_a_command_and_lets_it_say_goodbye() {
        let bench = Bench::new();
        let spec = Spec {
            limit: Some(Duration::from_millis(50)),
            ..bench.spec("sleep 600")
        };
        let (_, ended) = bench.commands.run(spec, |_| {}).await.unwrap();
        assert_eq!(ended.how, How::TimedOut);

        let line = "trap 'sleep 0.1; echo bye; exit 0' TERM; echo hello; while :; do sleep 0.02; done";
        let running = bench.start(line);
        running.news(0).await;
        running.0.stop(How::TimedOut);
        assert_eq!(running.ended().await.how, How::TimedOut);
        let text = text(&running);
        assert!(text.starts_with("hello\n") && text.ends_with("bye\n"), "{text}");
    }

    #[tokio::test]
    async fn letting_go_asks_a_command_to_end_at_once() {
        let bench = Bench::new();
        // It says itself that it was asked, so that no clock is needed.
        let running = bench
            .start("trap 'echo asked > HERE/asked; exit 0' TERM; echo $$ > HERE/pid; while :; do sleep 0.01; done");
        let pid = bench.number("pid").await;
        let foreground = running.clone().foreground();
        assert!(running.outcome().is_none());
        drop(foreground);
        assert_eq!(running.ended().await.how, How::Cancelled);
        assert!(bench.path("asked").exists());
        until(|| is_gone(pid)).await;
        // Whom nobody waits for goes on.
        let running = bench.start("sleep 600").foreground().leave();
        assert!(running.outcome().is_none());
        running.stop();
        assert_eq!(running.ended().await.how, How::Cancelled);
    }

    #[tokio::test]
    async fn a_flood_is_bounded_whole_on_the_disk_and_can_be_stopped() {
        let bench = Bench::new();
        let count = Arc::new(AtomicU64::new(0));
        let counter = Arc::clone(&count);
        let spec = bench.spec("head -c 100000000 /dev/zero | tr '\\0' x; echo end");
        let (running, ended) = bench
            .commands
            .run(spec, move |piece| {
                counter.fetch_add(piece.len() as u64, Ordering::Relaxed);
            })
            .await
            .unwrap();
        assert_eq!(
            (ended.how, count.load(Ordering::Relaxed)),
            (How::Exited(0), 100_000_004)
        );
        let part = running.since(0);
        assert!(part.first.len() + part.last.len() <= 1 << 20);
        assert!(part.last.ends_with(b"xxend\n"));
        assert_eq!(
            part.first.len() as u64 + part.skipped + part.last.len() as u64,
            100_000_004
        );
        let log = running.log();
        let log = log.unwrap_or_else(|| panic!("there is no log: {:?}", running.log_failure()));
        assert_eq!(fs::metadata(&log).unwrap().len(), 100_000_004);
        assert!(log.starts_with(bench.path("logs")));

        let running = bench.start("yes");
        running.news(1 << 20).await;
        running.stop();
        assert_eq!(running.ended().await.how, How::Cancelled);
    }

    #[tokio::test]
    async fn output_is_given_while_it_comes_and_read_on_later() {
        let bench = Bench::new();
        let (send, receive) = mpsc::channel();
        let spec = bench.spec("echo one; until [ -e HERE/go ]; do sleep 0.01; done; echo two");
        let running = bench
            .commands
            .start(spec, move |piece| send.send(piece.to_vec()).unwrap())
            .unwrap();
        running.news(0).await;
        assert_eq!(receive.recv().unwrap(), b"one\n");
        assert_eq!(running.unread().first, b"one\n");
        assert!(running.unread().is_empty());
        assert_eq!(running.outcome(), None);
        fs::write(bench.path("go"), "").unwrap();
        assert_eq!(running.ended().await.how, How::Exited(0));
        assert_eq!(running.unread().first, b"two\n");
        assert_eq!(bench.commands.get(running.id()).unwrap().line(), running.line());
        assert!(bench.commands.get("cmd-99").is_none());
    }

    #[tokio::test]
    async fn the_end_of_the_conversation_ends_all_commands() {
        let bench = Bench::new();
        bench.start("trap '' TERM; (setsid sh -c 'echo $$ > HERE/stray; exec sleep 600' &); echo $$ > HERE/pid; while :; do sleep 0.05; done");
        let (pid, stray) = (bench.number("pid").await, bench.number("stray").await);
        let Bench { folder, commands } = bench;
        drop(commands);
        until(|| is_gone(pid) && is_gone(stray)).await;
        drop(folder);
    }

    #[test]
    fn the_end_of_the_runtime_ends_all_commands() {
        let bench = Bench::new();
        let runtime = || {
            tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()
                .unwrap()
        };
        let first = runtime();
        let pid = first.block_on(async {
            bench.start("trap '' TERM; echo $$ > HERE/pid; while :; do sleep 0.05; done");
            bench.number("pid").await
        });
        drop(first);
        runtime().block_on(until(|| is_gone(pid)));
        assert_eq!(bench.commands.all()[0].outcome().unwrap().how, How::Cancelled);
    }

    /// No test by itself: the program that the next one kills.
    #[test]
    #[ignore = "runs inside of another test"]
    fn a_program_with_commands() {
        let folder = PathBuf::from(std::env::var_os("SHEAF_TEST_FOLDER").unwrap());
        let runtime = tokio::runtime::Runtime::new().unwrap();
        runtime.block_on(async {
            let commands = Commands::new(Ground::bare(&folder), Vec::new(), None, Shared::default());
            let line = "trap '' TERM; (setsid sh -c 'echo $$ > stray; exec sleep 600' >/dev/null 2>&1 &); \
                        echo $TMPDIR > temporary; echo $$ > pid; while :; do sleep 0.05; done";
            let spec = Spec {
                line: line.to_owned(),
                directory: folder.clone(),
                permissions: Vec::new(),
                only_reads: false,
                limit: None,
                variables: Vec::new(),
            };
            commands.run(spec, |_| {}).await.unwrap();
        });
    }

    #[tokio::test]
    async fn a_killed_program_takes_its_commands_along() {
        let bench = Bench::new();
        let mut program = std::process::Command::new(std::env::current_exe().unwrap())
            .args(["a_program_with_commands", "--ignored", "--quiet"])
            .env("SHEAF_TEST_FOLDER", bench.path(""))
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        let (pid, stray) = (bench.number("pid").await, bench.number("stray").await);
        let temporary = fs::read_to_string(bench.path("temporary")).unwrap();
        assert!(!is_gone(pid) && Path::new(temporary.trim()).is_dir());
        program.kill().unwrap();
        program.wait().unwrap();
        until(|| is_gone(pid) && is_gone(stray) && !Path::new(temporary.trim()).exists()).await;
    }
}
