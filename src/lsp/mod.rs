//! Language servers: what they report of files, and of a change before it is shown as done.
//!
//! A server is started at the first file of its language, in the sandbox, which lets it write nothing and reach no network, and
//! only in a workspace that may act. It is given the text of a change, so that nothing has to be on the disk. Servers live on a
//! thread of their own: one that hangs or floods holds up nothing else. They end with [`LanguageServers`], and when nobody has
//! asked them for some time.

mod catalogue;
mod diagnostic;
mod position;
mod server;
mod tree;
mod wire;

use std::{
    collections::{BTreeMap, BTreeSet},
    path::{Path, PathBuf},
    pin::Pin,
    sync::{
        Arc, Mutex, OnceLock, PoisonError, Weak,
        atomic::{AtomicU64, Ordering},
    },
    thread::JoinHandle,
    time::Duration,
};

use futures::{StreamExt as _, stream::FuturesUnordered};
use tokio::{
    sync::{mpsc, oneshot, watch},
    time::Instant,
};

pub use diagnostic::{Diagnostic, Severity, added};
pub use position::{Place, Spot};
pub use server::{Edit, Question};

use crate::{
    config::Settings,
    os::file,
    sandbox::{Commands, Service, ServiceSpec, Tier, Workspace},
};
use catalogue::{Catalogue, Found};
use server::{Compared, Known, Server};
use tree::Tree;

/// Bytes of a file that is told to a server.
const FILE_BYTES: u64 = 4 << 20;
/// A server that nobody has asked for so long ends.
const IDLE: Duration = Duration::from_mins(15);
/// A server that ends so often in [`DEATHS_WITHIN`] is not started again.
const MOST_DEATHS: usize = 3;
const DEATHS_WITHIN: Duration = Duration::from_mins(5);
/// A server that holds more memory after its work is ended.
const MEMORY_BYTES: u64 = 4 << 30;
/// Time that a server has to end once it was asked to.
const LAST_PATIENCE: Duration = Duration::from_secs(1);
/// Files in which a symbol is renamed at once.
const MOST_RENAMED: usize = 100;
/// Changed files that are kept until a server looks at them.
const MOST_UNSEEN: usize = 64;
/// Files that a look is about.
const MOST_LOOKED_AT: usize = 40;

/// The language servers that a conversation asks. All conversations in a workspace share them; they end with the last one.
pub struct LanguageServers {
    engine: OnceLock<Option<Arc<Engine>>>,
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
            engine: OnceLock::new(),
            by: COUNT.fetch_add(1, Ordering::Relaxed),
        }
    }
}

impl std::fmt::Debug for LanguageServers {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LanguageServers").finish_non_exhaustive()
    }
}

/// The report about a change.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Comparison {
    /// Problems that were not there before, as far as it is known what was, by file.
    pub new: BTreeMap<PathBuf, Vec<Diagnostic>>,
    /// Files whose problems before the change are not known.
    pub unknown: BTreeSet<PathBuf>,
    /// Number of problems that are gone.
    pub fixed: usize,
    /// Files that were looked at.
    pub checked: BTreeSet<PathBuf>,
    /// Why files were not, by file.
    pub unchecked: BTreeMap<PathBuf, String>,
}

/// The report about files as they are.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Look {
    pub found: Vec<Diagnostic>,
    pub checked: BTreeSet<PathBuf>,
    pub unchecked: BTreeMap<PathBuf, String>,
    /// Names of the servers that have looked.
    pub servers: BTreeSet<String>,
}

/// The answer to a question about a symbol.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// Places of it, by file and line.
    Places(Vec<Place>),
    /// Texts of files with its new name, by file: the text that was changed, and the new one.
    Renamed(Vec<(PathBuf, String, String)>),
}

/// Name and folder of a server.
type ServerKey = (String, PathBuf);
/// Files and their texts.
type Texts = Vec<(PathBuf, String)>;

/// Work for the thread.
enum Job {
    Compare {
        /// The conversation that made the changes.
        by: u64,
        edits: Vec<Edit>,
        /// Files that may depend on them.
        others: Vec<PathBuf>,
        until: Instant,
        reply: oneshot::Sender<Comparison>,
    },
    /// Changes that nobody waits for a report on: the next comparison is about them, too.
    Note { by: u64, edits: Vec<Edit> },
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
}

/// Threads that may still be ending servers.
static THREADS: Mutex<Vec<JoinHandle<()>>> = Mutex::new(Vec::new());

/// Waits until the servers of workspaces that are over have ended: a few seconds at most. To be called when the program ends.
pub fn settle() {
    let threads = std::mem::take(&mut *THREADS.lock().unwrap_or_else(PoisonError::into_inner));
    for thread in threads {
        thread.join().ok();
    }
}

impl LanguageServers {
    /// None, whatever is asked.
    pub fn off() -> Self {
        Self {
            engine: OnceLock::from(None),
            ..Self::default()
        }
    }

    /// Has the servers look at changes and at `others` that may depend on them, before and after. What they do not answer
    /// `within` the time is unchecked. Looks at nothing in a workspace that may not act, or without a sandbox.
    pub async fn compare(
        &self,
        workspace: &Arc<Workspace>,
        settings: &Arc<Settings>,
        edits: Vec<Edit>,
        others: Vec<PathBuf>,
        within: Duration,
    ) -> Comparison {
        let (reply, answer) = oneshot::channel();
        let job = Job::Compare {
            by: self.by,
            edits,
            others,
            until: Instant::now() + within,
            reply,
        };
        if !self.send(workspace, settings, job) {
            return Comparison::default();
        }
        answer.await.unwrap_or_default()
    }

    /// Has the servers look at files as they are.
    pub async fn look(
        &self,
        workspace: &Arc<Workspace>,
        settings: &Arc<Settings>,
        files: Vec<PathBuf>,
        within: Duration,
    ) -> Look {
        let (reply, answer) = oneshot::channel();
        let until = Instant::now() + within;
        if !self.send(workspace, settings, Job::Look { files, until, reply }) {
            return Look::default();
        }
        answer.await.unwrap_or_default()
    }

    /// Asks the first server of a file about the symbol at a place. Error: why there is no answer.
    pub async fn ask(
        &self,
        workspace: &Arc<Workspace>,
        settings: &Arc<Settings>,
        (file, spot): (PathBuf, Spot),
        question: Question,
        within: Duration,
    ) -> Result<Answer, String> {
        let (reply, answer) = oneshot::channel();
        let job = Job::Ask {
            file,
            spot,
            question,
            until: Instant::now() + within,
            reply,
        };
        let none = || "no language server may run here".to_owned();
        if !self.send(workspace, settings, job) {
            return Err(none());
        }
        answer.await.unwrap_or_else(|_| Err(none()))
    }

    /// Takes note of changes that are not looked at now.
    pub fn note(&self, workspace: &Arc<Workspace>, settings: &Arc<Settings>, edits: Vec<Edit>) {
        let by = self.by;
        self.send(workspace, settings, Job::Note { by, edits });
    }

    /// Has the servers for a file start, unless they run, and open it: they have read the project by the time it changes.
    pub fn start(&self, workspace: &Arc<Workspace>, settings: &Arc<Settings>, file: &Path) {
        self.send(workspace, settings, Job::Start(file.to_owned()));
    }

    /// Returns true if there is a server for a file.
    pub fn knows(workspace: &Workspace, settings: &Settings, file: &Path) -> bool {
        may_run(workspace, settings) && !with_catalogue(workspace, settings, |it| it.servers(file)).is_empty()
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

    fn send(&self, workspace: &Arc<Workspace>, settings: &Arc<Settings>, job: Job) -> bool {
        if !may_run(workspace, settings) {
            return false;
        }
        let engine = self.engine.get_or_init(|| engine(workspace, settings));
        engine.as_ref().is_some_and(|it| it.0.send(job).is_ok())
    }
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
    let (send, mut jobs) = mpsc::unbounded_channel::<Job>();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| tracing::warn!(%error, "language servers cannot be started"));
    let runtime = runtime.ok()?;
    let mut desk = Desk {
        workspace: Arc::clone(workspace),
        settings: Arc::clone(settings),
        slots: BTreeMap::new(),
        unseen: BTreeMap::new(),
        tree: None,
        opening: FuturesUnordered::new(),
    };
    let work = move || {
        runtime.block_on(async {
            loop {
                let idle = desk.idle_at();
                tokio::select! {
                    job = jobs.recv() => match job {
                        Some(job) => desk.work(job).await,
                        None => break,
                    },
                    Some(opened) = desk.opening.next(), if !desk.opening.is_empty() => {
                        if let Some((server, file)) = opened
                            && let Some(text) = text_of(&file)
                        {
                            server.open(&file, &text);
                        }
                    }
                    () = tokio::time::sleep_until(idle.unwrap_or_else(Instant::now)), if idle.is_some() => {
                        desk.end_idle().await;
                    }
                }
            }
            desk.end_all().await;
        });
        runtime.shutdown_timeout(Duration::from_millis(500));
    };
    let thread = std::thread::Builder::new().name("lsp".to_owned()).spawn(work).ok()?;
    let mut threads = THREADS.lock().unwrap_or_else(PoisonError::into_inner);
    threads.retain(|it| !it.is_finished());
    threads.push(thread);
    Some(send)
}

/// The servers, on their thread.
struct Desk {
    workspace: Arc<Workspace>,
    settings: Arc<Settings>,
    slots: BTreeMap<ServerKey, Slot>,
    /// Changes that no server has looked at, by conversation.
    unseen: BTreeMap<u64, Unseen>,
    /// The files on the disk, as they were when servers were last told.
    tree: Option<Tree>,
    /// Files that are to be opened in servers that start.
    opening: FuturesUnordered<Opening>,
}

/// A server that has started, and the file to open in it; `None`: it has not.
type Opening = Pin<Box<dyn Future<Output = Option<(Arc<Server>, PathBuf)>> + Send>>;

/// Changes that no server has looked at.
#[derive(Default)]
struct Unseen {
    /// The texts from before the first of them; `None`: the file did not exist.
    files: BTreeMap<PathBuf, Option<String>>,
    /// Files that may depend on these.
    others: BTreeSet<PathBuf>,
    /// The problems of both before the changes, as far as a server has told them.
    known: Known,
}

impl Unseen {
    /// The edits, together with the earlier ones: from what was there before those, to what is there now.
    fn joined(&self, mut edits: Vec<Edit>) -> Vec<Edit> {
        for (file, old) in &self.files {
            match edits.iter_mut().find(|it| it.file == *file) {
                Some(edit) => edit.old.clone_from(old),
                None => edits.push(Edit {
                    file: file.clone(),
                    old: old.clone(),
                    new: None,
                }),
            }
        }
        // Hooks and others may have changed what was written.
        for edit in &mut edits {
            edit.new = text_of(&edit.file);
        }
        edits
    }

    fn add(&mut self, edits: impl IntoIterator<Item = Edit>) {
        for edit in edits {
            if self.files.len() < MOST_UNSEEN {
                self.files.entry(edit.file).or_insert(edit.old);
            }
        }
    }
}

/// A place for a server.
#[derive(Default)]
struct Slot {
    server: Option<Running>,
    /// When it ended by itself, the newest last.
    deaths: Vec<Instant>,
    /// Why the last one has ended, or did not start.
    why: String,
    used: Option<Instant>,
}

/// A server that was started.
struct Running {
    /// `None`: it has not answered yet. Error: it never will.
    started: watch::Receiver<Option<Result<Arc<Server>, String>>>,
    /// Asks for a look at its memory. Dropped, it ends the service.
    service: mpsc::Sender<()>,
}

impl Desk {
    async fn work(&mut self, job: Job) {
        self.carry_out(job).await;
        for slot in self.slots.values() {
            if let Some(running) = &slot.server {
                running.service.try_send(()).ok();
            }
        }
    }

    /// Whoever has gone is not worked for.
    async fn carry_out(&mut self, job: Job) {
        match job {
            Job::Compare {
                by,
                edits,
                others,
                until,
                mut reply,
            } => {
                let compared = tokio::select! {
                    it = self.compare(by, edits.clone(), others, until) => Some(it),
                    () = reply.closed() => None,
                };
                if compared.is_none_or(|it| reply.send(it).is_err()) {
                    self.unseen.entry(by).or_default().add(edits);
                }
            }
            Job::Note { by, edits } => self.unseen.entry(by).or_default().add(edits),
            Job::Look {
                files,
                until,
                mut reply,
            } => {
                tokio::select! {
                    it = self.look(files, until) => drop(reply.send(it)),
                    () = reply.closed() => {}
                }
            }
            Job::Ask {
                file,
                spot,
                question,
                until,
                mut reply,
            } => {
                tokio::select! {
                    it = self.ask(&file, spot, &question, until) => drop(reply.send(it)),
                    () = reply.closed() => {}
                }
            }
            Job::Start(file) => {
                for found in with_catalogue(&self.workspace, &self.settings, |it| it.servers(&file)) {
                    let key = (found.name.clone(), found.root.clone());
                    // Whether it works is seen when it is asked.
                    self.server(&key, &found, Instant::now()).await.ok();
                    let running = self.slots.get(&key).and_then(|it| it.server.as_ref());
                    if let Some(mut started) = running.map(|it| it.started.clone()) {
                        let file = file.clone();
                        self.opening.push(Box::pin(async move {
                            let answered = started.wait_for(Option::is_some).await.ok()?.clone();
                            Some((answered?.ok()?, file))
                        }));
                    }
                }
            }
        }
    }

    async fn compare(&mut self, by: u64, edits: Vec<Edit>, mut others: Vec<PathBuf>, until: Instant) -> Comparison {
        let mut comparison = Comparison::default();
        let unseen = self.unseen.entry(by).or_default();
        let edits = unseen.joined(edits);
        unseen.others.retain(|it| it.is_file());
        others.extend(unseen.others.iter().cloned());
        others.sort();
        others.dedup();
        others.retain(|it| !edits.iter().any(|edit| edit.file == *it));
        self.tell_changes(&edits);
        let mut groups: BTreeMap<ServerKey, (Found, Vec<Edit>)> = BTreeMap::new();
        for edit in edits {
            for found in with_catalogue(&self.workspace, &self.settings, |it| it.servers(&edit.file)) {
                let key = (found.name.clone(), found.root.clone());
                let group = groups.entry(key).or_insert_with(|| (found, Vec::new()));
                group.1.push(edit.clone());
            }
        }
        for (key, (found, edits)) in groups {
            let others: Texts = others
                .iter()
                .filter(|it| self.is_of(&key, it))
                .filter_map(|it| Some((it.clone(), text_of(it)?)))
                .collect();
            let mut before = BTreeMap::new();
            let left = until.saturating_duration_since(Instant::now());
            let first = Instant::now() + left.mul_f32(0.6);
            let is_compared = match self.server(&key, &found, first).await {
                Ok(server) => {
                    let known = self.unseen.get(&by).map(|it| it.known.clone()).unwrap_or_default();
                    let compared = server.compare(&edits, &others, &known, (first, until)).await;
                    before = compared.before.clone();
                    comparison.take(&found.name, compared, &edits);
                    true
                }
                Err(why) => {
                    let named = edits.iter().map(|it| &it.file).chain(others.iter().map(|it| &it.0));
                    comparison.unchecked.extend(named.map(|it| (it.clone(), why.clone())));
                    false
                }
            };
            let unseen = self.unseen.entry(by).or_default();
            // What a change has done to all of them is found out from what was there before it.
            let is_checked = |it: &PathBuf| comparison.checked.contains(it);
            let is_whole = others.iter().all(|it| is_checked(&it.0))
                && edits
                    .iter()
                    .all(|it| is_checked(&it.file) || is_compared && it.new.is_none());
            if is_whole {
                for file in edits.iter().map(|it| &it.file).chain(others.iter().map(|it| &it.0)) {
                    unseen.known.remove(file);
                }
            } else {
                // It need not be found out again.
                let found = before.into_iter().filter_map(|(file, found)| Some((file, found?)));
                unseen.known.extend(found);
            }
            for (file, _) in others {
                if comparison.checked.contains(&file) {
                    unseen.others.remove(&file);
                } else if unseen.others.len() < MOST_UNSEEN {
                    unseen.others.insert(file);
                }
            }
            if is_whole {
                for edit in &edits {
                    unseen.files.remove(&edit.file);
                }
            } else {
                unseen.add(edits);
            }
        }
        comparison
    }

    /// Tells all servers of files that have come, changed or gone on the disk since they were last told, but for `edits`, of which
    /// they are told otherwise.
    fn tell_changes(&mut self, edits: &[Edit]) {
        let now = Tree::read(&self.workspace);
        let Some(before) = self.tree.replace(now) else { return };
        let Some(now) = &self.tree else { return };
        let mut changes = before.changes(now);
        changes.retain(|it| !edits.iter().any(|edit| edit.file == it.0));
        for slot in self.slots.values() {
            if let Some(Ok(server)) = slot.server.as_ref().and_then(|it| it.started.borrow().clone()) {
                server.tell_disk(&changes);
            }
        }
    }

    async fn look(&mut self, files: Vec<PathBuf>, until: Instant) -> Look {
        self.tell_changes(&[]);
        let mut look = Look::default();
        let mut groups: BTreeMap<ServerKey, (Found, Texts)> = BTreeMap::new();
        for file in files.into_iter().take(MOST_LOOKED_AT) {
            let Some(text) = text_of(&file) else { continue };
            for found in with_catalogue(&self.workspace, &self.settings, |it| it.servers(&file)) {
                let key = (found.name.clone(), found.root.clone());
                let group = groups.entry(key).or_insert_with(|| (found, Vec::new()));
                group.1.push((file.clone(), text.clone()));
            }
        }
        for (key, (found, files)) in groups {
            let server = match self.server(&key, &found, until).await {
                Ok(server) => server,
                Err(why) => {
                    look.unchecked.extend(files.into_iter().map(|it| (it.0, why.clone())));
                    continue;
                }
            };
            look.servers.insert(found.name.clone());
            for (file, problems) in server.look(&files, until).await {
                match problems {
                    Some(problems) => {
                        look.found.extend(problems);
                        look.checked.insert(file);
                    }
                    None => {
                        look.unchecked.insert(file, late(&found.name));
                    }
                }
            }
        }
        look
    }

    async fn ask(&mut self, file: &Path, spot: Spot, question: &Question, until: Instant) -> Result<Answer, String> {
        let found = with_catalogue(&self.workspace, &self.settings, |it| it.servers(file));
        let found = found
            .into_iter()
            .next()
            .ok_or("no language server is installed for this file")?;
        let text = text_of(file).ok_or("the file cannot be read as text")?;
        self.tell_changes(&[]);
        let key = (found.name.clone(), found.root.clone());
        let server = self.server(&key, &found, until).await?;
        let answer = server.ask(file, &text, spot, question, until).await?;
        if !matches!(question, Question::Rename(_)) {
            return Ok(Answer::Places(position::places(&answer)));
        }
        let mut renamed = Vec::new();
        let files = position::edited_files(&answer)?;
        let (root, added) = (self.workspace.root(), self.workspace.added());
        let is_inside = |it: &Path| it.starts_with(root) || added.iter().any(|root| it.starts_with(root));
        if let Some((file, _)) = files.iter().find(|it| !is_inside(&it.0)) {
            return Err(format!("it is used in {}, outside of the workspace", file.display()));
        }
        if files.len() > MOST_RENAMED {
            return Err(format!(
                "it is used in {} files, and at most {MOST_RENAMED} are changed at once",
                files.len()
            ));
        }
        for (file, edits) in files {
            let text = text_of(&file).ok_or_else(|| format!("{} cannot be read as text", file.display()))?;
            let replacements = position::replacements(&edits, &file, &text, server.encoding())?;
            let new = position::replaced(&text, &replacements);
            renamed.push((file, text, new));
        }
        Ok(Answer::Renamed(renamed))
    }

    /// Returns true if the server is one of those for the file.
    fn is_of(&self, key: &ServerKey, file: &Path) -> bool {
        let servers = with_catalogue(&self.workspace, &self.settings, |it| it.servers(file));
        servers.iter().any(|it| it.name == key.0 && it.root == key.1)
    }

    /// A server that has answered. Error: why there is none, or none yet.
    async fn server(&mut self, key: &ServerKey, found: &Found, until: Instant) -> Result<Arc<Server>, String> {
        let slot = self.slots.entry(key.clone()).or_default();
        slot.used = Some(Instant::now());
        slot.bury();
        if slot.server.is_none() {
            let recent = |it: &&Instant| it.elapsed() < DEATHS_WITHIN;
            if slot.deaths.iter().filter(recent).count() >= MOST_DEATHS {
                return Err(format!("{} has ended {MOST_DEATHS} times ({})", key.0, slot.why));
            }
            slot.server = Some(spawn(&self.workspace, found.clone()));
        }
        let Some(running) = &mut slot.server else {
            return Err(slot.why.clone());
        };
        let answered = running.started.wait_for(Option::is_some);
        let answered = tokio::time::timeout_at(until, answered).await;
        match answered.ok().and_then(Result::ok).and_then(|it| it.clone()) {
            Some(Ok(server)) => Ok(server),
            Some(Err(why)) => {
                slot.bury();
                Err(format!("{} does not work: {why}", key.0))
            }
            None => Err(format!("{} is still starting", key.0)),
        }
    }

    /// When the first server has been idle for long enough; `None`: none runs.
    fn idle_at(&self) -> Option<Instant> {
        let running = self.slots.values().filter(|it| it.server.is_some());
        running.filter_map(|it| it.used).min().map(|it| it + IDLE)
    }

    async fn end_idle(&mut self) {
        for slot in self.slots.values_mut() {
            if slot.used.is_some_and(|it| it.elapsed() >= IDLE) {
                slot.end().await;
            }
        }
    }

    async fn end_all(&mut self) {
        let ends = self.slots.values_mut().map(Slot::end);
        futures::future::join_all(ends).await;
    }
}

impl Slot {
    /// Takes note of a server that has ended by itself.
    fn bury(&mut self) {
        let Some(running) = &self.server else { return };
        let why = match &*running.started.borrow() {
            None => return,
            Some(Ok(server)) => server.over(),
            Some(Err(why)) => Some(why.clone()),
        };
        if let Some(why) = why {
            self.deaths.push(Instant::now());
            self.why = why;
            self.server = None;
        }
    }

    async fn end(&mut self) {
        let Some(running) = self.server.take() else { return };
        let server = running.started.borrow().clone();
        if let Some(Ok(server)) = server {
            server.shut_down(LAST_PATIENCE).await;
        }
    }
}

/// Starts a server. Waits for nothing.
fn spawn(workspace: &Arc<Workspace>, found: Found) -> Running {
    let (tell, started) = watch::channel(None);
    let (service, mut looks) = mpsc::channel(1);
    let workspace = Arc::clone(workspace);
    tokio::spawn(async move {
        match open(workspace, &found).await {
            Ok((server, service)) => {
                let server = Arc::new(server);
                tell.send_replace(Some(Ok(Arc::clone(&server))));
                let mut service = service;
                loop {
                    tokio::select! {
                        look = looks.recv() => match look {
                            Some(()) if service.resident() > MEMORY_BYTES => {
                                server.give_up("it took more than 4 GiB of memory");
                                break;
                            }
                            Some(()) => {}
                            None => break,
                        },
                        how = service.ended() => {
                            server.give_up(&format!("it has ended ({how})"));
                            break;
                        }
                    }
                }
                // Its input is closed with the last of these.
                tell.send_modify(|it| *it = Some(Err(server.over().unwrap_or_default())));
                drop(server);
                service.end().await;
            }
            Err(why) => {
                tell.send_replace(Some(Err(why)));
            }
        }
    });
    Running { started, service }
}

async fn open(workspace: Arc<Workspace>, found: &Found) -> Result<(Server, Service), String> {
    let spec = ServiceSpec {
        program: found.program.to_string_lossy().into_owned(),
        arguments: found.arguments.clone(),
        directory: found.root.clone(),
        variables: found.variables.clone(),
        network: false,
        folders: Vec::new(),
    };
    let started = tokio::task::spawn_blocking(move || workspace.commands().serve(spec)).await;
    let started = started.map_err(|it| it.to_string())?;
    let (service, streams) = started.map_err(|it| it.to_string())?;
    let server = Server::start(found, streams.input, streams.output, streams.errors).await?;
    Ok((server, service))
}

impl Comparison {
    fn take(&mut self, name: &str, compared: Compared, edits: &[Edit]) {
        let Compared { mut before, after } = compared;
        // Hints are no problems.
        let matters = |it: &Diagnostic| it.severity != Severity::Info;
        for (file, after) in after {
            let Some(mut after) = after else {
                self.unchecked.insert(file, late(name));
                continue;
            };
            after.retain(matters);
            let is_made = edits.iter().any(|it| it.file == file && it.old.is_none());
            let before = match before.remove(&file).flatten() {
                Some(mut before) => {
                    before.retain(matters);
                    before
                }
                None if is_made => Vec::new(),
                None => {
                    self.unknown.insert(file.clone());
                    Vec::new()
                }
            };
            self.fixed += added(&after, before.clone()).len();
            let new = added(&before, after);
            if !new.is_empty() {
                self.new.entry(file.clone()).or_default().extend(new);
            }
            self.checked.insert(file);
        }
    }
}

fn late(name: &str) -> String {
    format!("{name} has not answered in time")
}

/// The text of a file for a server; `None` for what is too long, or no text.
fn text_of(file: &Path) -> Option<String> {
    let bytes = file::read_unlinked(file, FILE_BYTES).ok()?;
    String::from_utf8(bytes).ok()
}
