//! Language servers: what they report of files, and of the changes of a step before it is shown as done.
//!
//! A server is started at the first file of its language, in the sandbox, which lets it write nothing and reach no network, and
//! only in a workspace that may act. It looks at a file before it is changed, and at all that a step has changed when the step
//! is over; what it is told is what the disk has, but for the moment in which it looks at a proposal that a person is to be asked
//! about. Servers live on a thread of their own: one that hangs or floods holds up
//! nothing else, and no other server. They end with [`LanguageServers`], and when nobody has asked them for some time.

mod catalogue;
mod desk;
mod diagnostic;
mod position;
mod server;
mod slot;
mod tree;
mod wire;

use std::{
    collections::{BTreeMap, BTreeSet},
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex, PoisonError, Weak,
        atomic::{AtomicU64, Ordering},
    },
    thread::JoinHandle,
    time::Duration,
};

use tokio::{
    sync::{mpsc, oneshot},
    time::{Instant, timeout_at},
};

pub use diagnostic::{Diagnostic, Severity, added};
pub use position::{Place, Spot};
pub use server::Question;

use crate::{
    config::Settings,
    os::file,
    sandbox::{Commands, Tier, Workspace},
};
use catalogue::Catalogue;

/// Bytes of a file that is told to a server.
const FILE_BYTES: u64 = 4 << 20;
/// Time that is waited at the end of the program for servers to end.
const SETTLE_LIMIT: Duration = Duration::from_secs(5);
/// Time after the end of a look or a question in which its answer is still taken: the disk may hold the servers' thread up.
const GRACE: Duration = Duration::from_secs(1);
/// The reasons why there is no answer then, or none at all.
pub const LATE: &str = "language servers have not answered in time";
const NONE: &str = "no language server may run here";

/// The language servers that a conversation asks. All conversations in a workspace share them; they end with the last one.
pub struct LanguageServers {
    /// None is asked, whatever is wanted.
    is_off: bool,
    engine: Mutex<Option<Arc<Engine>>>,
    /// Tells conversations apart.
    by: u64,
}

/// The way to the thread of a workspace's servers.
struct Engine(mpsc::UnboundedSender<Job>);

/// The engines, by the workspace's root.
static ENGINES: Mutex<BTreeMap<PathBuf, Weak<Engine>>> = Mutex::new(BTreeMap::new());
/// Number of conversations.
static COUNT: AtomicU64 = AtomicU64::new(0);

impl Default for LanguageServers {
    fn default() -> Self {
        Self {
            is_off: false,
            engine: Mutex::default(),
            by: COUNT.fetch_add(1, Ordering::Relaxed),
        }
    }
}

impl std::fmt::Debug for LanguageServers {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LanguageServers").finish_non_exhaustive()
    }
}

/// A change of a file, as a whole.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Edit {
    /// Canonical.
    pub file: PathBuf,
    /// It does not exist before the change.
    pub is_new: bool,
    /// It is gone after the change.
    pub is_deleted: bool,
    /// The file that is moved to it: what was wrong there is not new here.
    pub from: Option<PathBuf>,
}

/// The report about a step. Hints are no problems.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Comparison {
    /// Problems that were not there before, by file.
    pub new: BTreeMap<PathBuf, Vec<Diagnostic>>,
    /// Problems of files of which it is not known what was wrong with them before.
    pub doubtful: BTreeMap<PathBuf, Vec<Diagnostic>>,
    /// Number of problems that are gone.
    pub fixed: usize,
    /// Files that were looked at.
    pub checked: BTreeSet<PathBuf>,
    /// Why files were not.
    pub unchecked: Unchecked,
    pub found: Found,
}

/// All that servers have found, by server and by file that it has looked at.
pub type Found = BTreeMap<String, BTreeMap<PathBuf, Vec<Diagnostic>>>;

/// Files that were not looked at, by the reason.
pub type Unchecked = BTreeMap<String, BTreeSet<PathBuf>>;

/// The report about files as they are.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Look {
    pub found: Found,
    pub checked: BTreeSet<PathBuf>,
    pub unchecked: Unchecked,
}

/// The answer to a question about a symbol.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// Places of it, by file and line.
    Places(Vec<Place>),
    /// Texts of files with its new name, by file: the text that was changed, and the new one.
    Renamed(Vec<(PathBuf, String, String)>),
}

/// Work for the thread.
enum Job {
    /// Files are about to be changed.
    Before {
        /// The conversation that changes them.
        by: u64,
        edits: Vec<Edit>,
        /// Files that may depend on them.
        others: Vec<PathBuf>,
        /// It is the first of a step.
        is_first: bool,
        until: Instant,
        /// Told before anything is written: what comes later is not known.
        reply: oneshot::Sender<()>,
    },
    /// Files have been changed.
    After {
        by: u64,
        edits: Vec<Edit>,
        others: Vec<PathBuf>,
        until: Instant,
        reply: oneshot::Sender<Comparison>,
    },
    /// Changes are proposed: files with their new texts.
    Preview {
        by: u64,
        proposed: Vec<(Edit, String)>,
        others: Vec<PathBuf>,
        until: Instant,
        reply: oneshot::Sender<Comparison>,
    },
    Look {
        files: Vec<PathBuf>,
        until: Instant,
        reply: oneshot::Sender<Look>,
    },
    Ask {
        file: PathBuf,
        spot: Spot,
        question: Question,
        until: Instant,
        reply: oneshot::Sender<Result<Answer, String>>,
    },
    /// The servers of a file are to start and to open it, because it may change.
    Start(PathBuf),
    /// A message of the user's begins in a conversation.
    Begin(u64),
    /// A conversation is over.
    Forget(u64),
    /// All servers are to end: the workspace may not act any more.
    End,
}

/// Threads that may still be ending servers.
static THREADS: Mutex<Vec<JoinHandle<()>>> = Mutex::new(Vec::new());

/// Waits until the servers of workspaces that are over have ended: five seconds at most. To be called when the program ends.
pub fn settle() {
    let threads = std::mem::take(&mut *THREADS.lock().unwrap_or_else(PoisonError::into_inner));
    let began = std::time::Instant::now();
    while threads.iter().any(|it| !it.is_finished()) && began.elapsed() < SETTLE_LIMIT {
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// The workspace and the settings of a conversation.
#[derive(Clone, Copy, Debug)]
pub struct Around<'a> {
    pub workspace: &'a Arc<Workspace>,
    pub settings: &'a Arc<Settings>,
}

impl LanguageServers {
    /// None, whatever is asked.
    pub fn off() -> Self {
        let mut servers = Self::default();
        servers.is_off = true;
        servers
    }

    /// Has the servers look at files that are about to change and at `others` that may depend on them; `is_first`: it is the
    /// first change of a step. Returns when they have, or at the end of the time: what they have not answered by then is not
    /// known later. Does nothing in a workspace that may not act, or without a sandbox.
    pub async fn before(
        &self,
        around: Around<'_>,
        (edits, others): (Vec<Edit>, Vec<PathBuf>),
        is_first: bool,
        until: Instant,
    ) {
        let (reply, answer) = oneshot::channel();
        let job = Job::Before {
            by: self.by,
            edits,
            others,
            is_first,
            until,
            reply,
        };
        if self.send(around, job) {
            timeout_at(until, answer).await.ok();
        }
    }

    /// Has the servers look at what has changed since [`Self::before`] and at what may depend on it, `others` included, together
    /// with earlier changes that they have not looked at. What they do not answer by the end of the time is unchecked. `None`:
    /// no server may run.
    pub async fn after(
        &self,
        around: Around<'_>,
        edits: Vec<Edit>,
        others: Vec<PathBuf>,
        until: Instant,
    ) -> Option<Comparison> {
        let (reply, answer) = oneshot::channel();
        let job = Job::After {
            by: self.by,
            edits,
            others,
            until,
            reply,
        };
        if !self.send(around, job) {
            return None;
        }
        answer.await.ok()
    }

    /// Has the servers look at what changes would bring that are proposed and not made, each file with its new text (empty: it is
    /// to be deleted), and at `others` that may depend on them. Nothing is written, and no other look sees it. What they do not
    /// answer by the end of the time is unchecked. `None`: no server may run.
    pub async fn preview(
        &self,
        around: Around<'_>,
        proposed: Vec<(Edit, String)>,
        others: Vec<PathBuf>,
        until: Instant,
    ) -> Option<Comparison> {
        let (reply, answer) = oneshot::channel();
        let job = Job::Preview {
            by: self.by,
            proposed,
            others,
            until,
            reply,
        };
        if !self.send(around, job) {
            return None;
        }
        timeout_at(until + GRACE, answer).await.ok()?.ok()
    }

    /// Has the servers look at files as they are.
    pub async fn look(&self, around: Around<'_>, files: Vec<PathBuf>, within: Duration) -> Look {
        let (reply, answer) = oneshot::channel();
        let until = Instant::now() + within;
        let all = files.iter().cloned().collect();
        if files.is_empty() || !self.send(around, Job::Look { files, until, reply }) {
            return Look::default();
        }
        answered(answer, until).await.unwrap_or_else(|why| Look {
            unchecked: Unchecked::from([(why.to_owned(), all)]),
            ..Look::default()
        })
    }

    /// Asks the first server of a file about the symbol at a place. Error: why there is no answer.
    pub async fn ask(
        &self,
        around: Around<'_>,
        (file, spot): (PathBuf, Spot),
        question: Question,
        within: Duration,
    ) -> Result<Answer, String> {
        let (reply, answer) = oneshot::channel();
        let until = Instant::now() + within;
        let job = Job::Ask {
            file,
            spot,
            question,
            until,
            reply,
        };
        if !self.send(around, job) {
            return Err(NONE.to_owned());
        }
        answered(answer, until).await.unwrap_or_else(|why| Err(why.to_owned()))
    }

    /// Has the servers for a file start, unless they run, and open it: they have read the project by the time it changes.
    pub fn start(&self, around: Around<'_>, file: &Path) {
        self.send(around, Job::Start(file.to_owned()));
    }

    /// A message of the user's begins: what is left of earlier changes is looked at, but nothing in it is called new.
    pub fn begin(&self) {
        self.tell(Job::Begin(self.by));
    }

    /// Ends the servers: the user trusts the workspace no more. They start again where they are needed and may.
    pub fn end(&self) {
        self.tell(Job::End);
    }

    /// Has the thread do something, if it runs.
    fn tell(&self, job: Job) {
        let engine = self.engine.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(engine) = &*engine {
            engine.0.send(job).ok();
        }
    }

    /// Returns true if there is a server for a file, and it may run.
    pub fn knows(&self, workspace: &Workspace, settings: &Settings, file: &Path) -> bool {
        !self.is_off
            && may_run(workspace, settings)
            && !with_catalogue(workspace, settings, |it| it.servers(file)).is_empty()
    }

    /// Returns true if there is a server for some project in the workspace, whether it may run or not.
    pub fn is_any_installed(workspace: &Workspace, settings: &Settings) -> bool {
        settings.agent.language_servers
            && with_catalogue(workspace, settings, |it: &Catalogue<'_>| Catalogue::has_any(it))
    }

    /// Returns true if there is a server for some project in the workspace, and it may run.
    pub fn has_any(workspace: &Workspace, settings: &Settings) -> bool {
        may_run(workspace, settings) && Self::is_any_installed(workspace, settings)
    }

    fn send(&self, Around { workspace, settings }: Around<'_>, job: Job) -> bool {
        if self.is_off || !may_run(workspace, settings) {
            return false;
        }
        let mut held = self.engine.lock().unwrap_or_else(PoisonError::into_inner);
        if held.is_none() {
            *held = engine(workspace, settings);
        }
        held.as_ref().is_some_and(|it| it.0.send(job).is_ok())
    }
}

impl Drop for LanguageServers {
    fn drop(&mut self) {
        let engine = self.engine.get_mut().unwrap_or_else(PoisonError::into_inner);
        if let Some(engine) = engine.take() {
            engine.0.send(Job::Forget(self.by)).ok();
        }
    }
}

/// The answer of the thread; error: why there is none.
async fn answered<T>(answer: oneshot::Receiver<T>, until: Instant) -> Result<T, &'static str> {
    let answer = timeout_at(until + GRACE, answer).await;
    answer.map_err(|_| LATE)?.map_err(|_| NONE)
}

fn may_run(workspace: &Workspace, settings: &Settings) -> bool {
    settings.agent.language_servers && workspace.may_act() && Commands::tier() != Tier::None
}

fn with_catalogue<T>(workspace: &Workspace, settings: &Settings, f: impl FnOnce(&Catalogue<'_>) -> T) -> T {
    let path = std::env::var_os("PATH").unwrap_or_default();
    f(&Catalogue {
        top: workspace.root(),
        path: &path,
        settings: &settings.lsp,
    })
}

/// The engine of a workspace, which starts unless it runs; `None` if there can be none.
fn engine(workspace: &Arc<Workspace>, settings: &Arc<Settings>) -> Option<Arc<Engine>> {
    let mut engines = ENGINES.lock().unwrap_or_else(PoisonError::into_inner);
    engines.retain(|_, it| it.strong_count() > 0);
    if let Some(engine) = engines.get(workspace.root()).and_then(Weak::upgrade) {
        return Some(engine);
    }
    let engine = Arc::new(Engine(attend(workspace, settings)?));
    engines.insert(workspace.root().to_owned(), Arc::downgrade(&engine));
    Some(engine)
}

/// Starts the thread; `None` if there can be none.
fn attend(workspace: &Arc<Workspace>, settings: &Arc<Settings>) -> Option<mpsc::UnboundedSender<Job>> {
    let (send, jobs) = mpsc::unbounded_channel::<Job>();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| tracing::warn!(%error, "language servers cannot be started"));
    let runtime = runtime.ok()?;
    let (workspace, settings) = (Arc::clone(workspace), Arc::clone(settings));
    let work = move || {
        runtime.block_on(desk::attend(workspace, settings, jobs));
        runtime.shutdown_timeout(Duration::from_millis(500));
    };
    let thread = std::thread::Builder::new().name("lsp".to_owned()).spawn(work).ok()?;
    let mut threads = THREADS.lock().unwrap_or_else(PoisonError::into_inner);
    threads.retain(|it| !it.is_finished());
    threads.push(thread);
    Some(send)
}

/// What the disk has of a file.
enum OnDisk {
    Text(String),
    /// It is longer than [`FILE_BYTES`], or no UTF-8 text, or cannot be read.
    Other,
    Gone,
}

fn on_disk(file: &Path) -> OnDisk {
    match text_of(file) {
        Some(text) => OnDisk::Text(text),
        None if matches!(file.symlink_metadata(), Err(error) if error.kind() == std::io::ErrorKind::NotFound) => {
            OnDisk::Gone
        }
        None => OnDisk::Other,
    }
}

/// The text of a file for a server; `None` for what is too long, or no text.
fn text_of(file: &Path) -> Option<String> {
    let bytes = file::read_unlinked(file, FILE_BYTES).ok()?;
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use pretty_assertions::assert_eq;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn what_the_thread_of_the_servers_does_not_answer_ends() {
        let (until, began) = (Instant::now() + Duration::from_secs(20), Instant::now());
        let (_reply, answer) = oneshot::channel::<Look>();
        assert_eq!(answered(answer, until).await, Err(LATE));
        assert_eq!(began.elapsed().as_secs(), 21);
        let (reply, answer) = oneshot::channel::<Look>();
        drop(reply);
        assert_eq!(answered(answer, until).await, Err(NONE));
    }
}
