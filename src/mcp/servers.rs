//! All servers of a conversation: which may start, their lives, and calls to their tools.
//!
//! They live on a thread of their own, so that a flood of one holds up no screen. Nothing is read and nothing is started
//! before [`Servers::start`].

use std::{
    collections::{BTreeMap, BTreeSet},
    path::{Path, PathBuf},
    sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak},
    thread::JoinHandle,
    time::Duration,
};

use serde_json::{Map, Value};
use tokio::{
    runtime::Handle,
    sync::{mpsc, watch},
    time::Instant,
};

use super::{
    approval::{Approvals, Change, Standing},
    connection::{Connection, Patience, Transport},
    content::Reply,
    definition::{Definition, Endpoint, Resolved},
    files::{self, Found},
    host::{Asker, Changes, Host, Progress},
    http::{Http, header_arguments},
    info::{Era, Error, PromptInfo, ResourceInfo, ToolInfo},
    name::ToolName,
    oauth::{Token, Tokens},
    stdio::Stdio,
};
use crate::{
    config::{Environment, Fingerprint, McpServer},
    sandbox::{Commands, Service, ServiceSpec, Tier, Workspace},
    text::Sanitized,
};

/// Time in which several changes of a list count as one.
const COALESCE: Duration = Duration::from_millis(200);
/// The same for a server whose lists keep changing.
const LONGEST_PAUSE: Duration = Duration::from_secs(30);
/// Times that a server which ends is started again, unless it ran for [`STABLE`].
const MOST_RESTARTS: u32 = 4;
/// A server that ran so long is not counted as one that keeps ending.
const STABLE: Duration = Duration::from_mins(1);
/// Time that a call waits for a server that is being started.
const START_PATIENCE: Duration = Duration::from_secs(20);
/// Time that all servers have to end, together.
const LAST_PATIENCE: Duration = Duration::from_millis(3500);

/// Says whether the user trusts a file of the workspace as it is.
pub type IsTrusted = Arc<dyn Fn(&str, &Fingerprint) -> bool + Send + Sync>;

/// Settings and surroundings of the servers.
pub struct ServersSetup {
    /// The user's own entries.
    pub settings: BTreeMap<String, McpServer>,
    /// The name of the only server to start; `None`: all.
    pub only: Option<String>,
    pub workspace: Arc<Workspace>,
    /// The folder with the user's files of other programs; `None`: they are not read.
    pub home: Option<PathBuf>,
    /// `None`: nothing is approved, and no change is noticed.
    pub approvals: Option<Approvals>,
    pub is_trusted: IsTrusted,
    pub environment: Environment,
    /// Somebody is there who could approve a server.
    pub is_attended: bool,
    /// Tokens of servers that the user has signed in to.
    pub tokens: Option<Tokens>,
}

/// State of a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum State {
    /// Switched off.
    Off,
    /// The user has to approve it first.
    Unapproved(Standing),
    /// Its project's file is not trusted.
    Untrusted,
    /// It cannot be started as it is: why.
    Unusable(String),
    Starting,
    Ready,
    /// The user has to sign in first.
    SignIn,
    /// It failed: why.
    Failed(String),
}

/// A tool as the user is shown it.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolStatus {
    pub info: ToolInfo,
    pub is_on: bool,
    /// It is not what was approved, and not offered before it is.
    pub change: Option<Change>,
}

/// A server as the user is shown it.
#[derive(Clone, Debug, PartialEq)]
pub struct Status {
    pub definition: Definition,
    pub state: State,
    /// Version of the protocol; empty before it is known.
    pub version: String,
    /// Name and version that the server gives itself.
    pub title: String,
    pub tools: Vec<ToolStatus>,
    pub prompts: Vec<PromptInfo>,
    pub resources: Vec<ResourceInfo>,
    pub log: Vec<String>,
    /// Fingerprint of everything above that an approval is of.
    pub print: Fingerprint,
}

/// Something that the user should hear, in one harmless line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Note {
    pub code: &'static str,
    pub text: String,
}

/// One server.
struct Entry {
    definition: Definition,
    state: State,
    host: Arc<Host>,
    connection: Option<Arc<Connection>>,
    lists: Lists,
    changes: Vec<Change>,
    /// Names of the tools that are switched off.
    off: BTreeSet<String>,
    /// The user has let it run without a sandbox, in this conversation.
    is_free: bool,
    /// Ends the task that attends it.
    stop: Option<watch::Sender<bool>>,
    /// Counts the tasks that have attended it: only the last one speaks for it.
    life: u64,
}

/// What a ready server offers.
#[derive(Clone, Debug, Default)]
struct Lists {
    tools: Vec<ToolInfo>,
    prompts: Vec<PromptInfo>,
    resources: Vec<ResourceInfo>,
}

/// The servers of one conversation. Dropping it ends them.
pub struct Servers {
    inner: Arc<Inner>,
    engine: OnceLock<Option<Engine>>,
    notes: Mutex<Option<mpsc::UnboundedReceiver<Note>>>,
}

struct Inner {
    setup: ServersSetup,
    entries: Mutex<BTreeMap<String, Entry>>,
    problems: Mutex<Vec<String>>,
    asker: Mutex<Option<Asker>>,
    /// Counts changes of the states.
    news: watch::Sender<u64>,
    notes: mpsc::UnboundedSender<Note>,
    /// The definitions have been read.
    is_known: watch::Sender<bool>,
}

/// The thread on which servers are attended.
struct Engine {
    handle: Handle,
    /// The servers to end, once all of them are over.
    stop: watch::Sender<Option<Arc<Inner>>>,
}

/// Threads that may still be ending servers.
static THREADS: Mutex<Vec<JoinHandle<()>>> = Mutex::new(Vec::new());

/// Waits until the servers of all conversations that are over have ended: a few seconds at most. To be called when the program
/// ends.
pub fn settle() {
    let threads = std::mem::take(&mut *THREADS.lock().unwrap_or_else(PoisonError::into_inner));
    for thread in threads {
        thread.join().ok();
    }
}

impl Engine {
    fn start() -> Option<Self> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = match runtime {
            Ok(runtime) => runtime,
            Err(error) => {
                tracing::warn!(%error, "servers of tools cannot be started");
                return None;
            }
        };
        let (stop, mut stopped) = watch::channel::<Option<Arc<Inner>>>(None);
        let handle = runtime.handle().clone();
        let attend = move || {
            runtime.block_on(async {
                let inner = stopped.wait_for(Option::is_some).await.ok().and_then(|it| it.clone());
                if let Some(inner) = inner {
                    tokio::time::timeout(LAST_PATIENCE, inner.end_all()).await.ok();
                }
            });
            // What is left is killed when its tasks are dropped.
            runtime.shutdown_timeout(Duration::from_millis(500));
        };
        let thread = std::thread::Builder::new().name("mcp".to_owned()).spawn(attend).ok()?;
        let mut threads = THREADS.lock().unwrap_or_else(PoisonError::into_inner);
        threads.retain(|it| !it.is_finished());
        threads.push(thread);
        Some(Self { handle, stop })
    }
}

impl Servers {
    /// The servers for these settings. Reads and starts nothing.
    pub fn new(setup: ServersSetup) -> Self {
        let (notes, heard) = mpsc::unbounded_channel();
        let inner = Inner {
            setup,
            entries: Mutex::default(),
            problems: Mutex::default(),
            asker: Mutex::default(),
            news: watch::Sender::default(),
            notes,
            is_known: watch::Sender::new(false),
        };
        Self {
            inner: Arc::new(inner),
            engine: OnceLock::new(),
            notes: Mutex::new(Some(heard)),
        }
    }

    /// Reads the definitions and starts what may start, unless that was done before. Waits for nothing.
    pub fn start(&self) {
        self.engine.get_or_init(|| {
            let engine = Engine::start()?;
            let inner = Arc::clone(&self.inner);
            engine.handle.spawn(async move {
                let found = {
                    let inner = Arc::clone(&inner);
                    tokio::task::spawn_blocking(move || inner.find())
                        .await
                        .unwrap_or_default()
                };
                inner.take(found);
                inner.is_known.send_replace(true);
            });
            Some(engine)
        });
    }

    /// Notes for the user; `None` after the first call.
    pub fn notes(&self) -> Option<mpsc::UnboundedReceiver<Note>> {
        self.notes.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// Questions of servers go there from now on.
    pub fn set_asker(&self, asker: Option<Asker>) {
        for entry in self.inner.entries().values() {
            entry.host.set_asker(asker.clone());
        }
        *self.inner.asker.lock().unwrap_or_else(PoisonError::into_inner) = asker;
    }

    /// Waits until no server is being started any more, at most for `patience`. At once if none was started.
    pub async fn settled(&self, patience: Duration) {
        if self.engine.get().is_none_or(Option::is_none) {
            return;
        }
        let wait = async {
            let mut known = self.inner.is_known.subscribe();
            known.wait_for(|it| *it).await.ok();
            let mut news = self.inner.news.subscribe();
            while self.inner.entries().values().any(|it| it.state == State::Starting) {
                if news.changed().await.is_err() {
                    return;
                }
            }
        };
        tokio::time::timeout(patience, wait).await.ok();
    }

    /// Changes whenever the state of a server changes.
    pub fn news(&self) -> watch::Receiver<u64> {
        self.inner.news.subscribe()
    }

    /// The tools that may be offered, by server and in each server's order.
    pub fn tools(&self) -> Vec<(ToolName, ToolInfo)> {
        let entries = self.inner.entries();
        let ready = entries.iter().filter(|it| it.1.state == State::Ready);
        let tools = ready.flat_map(|(server, entry)| {
            let tools = entry.lists.tools.iter().filter(|it| entry.offers(&it.name));
            tools.map(move |it| {
                let name = ToolName {
                    server: server.clone(),
                    tool: it.name.clone(),
                };
                (name, it.clone())
            })
        });
        tools.collect()
    }

    /// Returns true if a tool may be called now.
    pub fn is_offered(&self, name: &ToolName) -> bool {
        let entries = self.inner.entries();
        let Some(entry) = entries.get(&name.server).filter(|it| it.state == State::Ready) else {
            return false;
        };
        entry.lists.tools.iter().any(|it| it.name == name.tool) && entry.offers(&name.tool)
    }

    /// The descriptions that ready servers give of their own tools.
    pub fn instructions(&self) -> Vec<(String, String)> {
        let entries = self.inner.entries();
        let said = entries
            .iter()
            .filter_map(|(name, it)| Some((name, it.connection.as_ref()?)));
        let said = said.filter(|it| !it.1.instructions.is_empty());
        said.map(|(name, it)| (name.clone(), it.instructions.clone())).collect()
    }

    /// All servers, sorted by name.
    pub fn statuses(&self) -> Vec<Status> {
        self.inner.entries().values().map(Entry::status).collect()
    }

    /// Mistakes in the definitions: a sentence each.
    pub fn problems(&self) -> Vec<String> {
        self.inner
            .problems
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    /// Calls a tool. Dropping this cancels the call.
    pub async fn call(
        &self,
        name: &ToolName,
        arguments: Map<String, Value>,
        progress: Option<mpsc::UnboundedSender<Progress>>,
    ) -> Result<Reply, Error> {
        let (connection, patience) = self.connected(&name.server).await?;
        if !self.is_offered(name) {
            let why = "it is switched off, or has changed and waits for the user";
            return Err(Error::Gone(why.to_owned()));
        }
        let first = connection
            .call(&name.tool, arguments.clone(), patience, progress.clone())
            .await;
        // A request that may have been taken is not sent again: it might be done twice.
        let is_again = match &first {
            Err(Error::SessionEnded) => true,
            Err(Error::SignIn { .. }) => self.inner.renew_token(&name.server).await,
            Err(_) | Ok(_) => false,
        };
        let result = if is_again {
            self.restart_of(&name.server, &connection);
            let (connection, patience) = self.connected(&name.server).await?;
            connection.call(&name.tool, arguments, patience, progress).await
        } else {
            first
        };
        if let Err(Error::SignIn { challenge }) = &result
            && !challenge.contains("insufficient_scope")
        {
            self.inner.set(&name.server, State::SignIn);
        }
        Ok(Reply::of_call(&result?))
    }

    /// The content of a resource.
    pub async fn resource(&self, server: &str, uri: &str) -> Result<Reply, Error> {
        let (connection, patience) = self.connected(server).await?;
        Ok(Reply::of_resource(&connection.read_resource(uri, patience).await?))
    }

    /// The text of a prompt.
    pub async fn prompt(&self, server: &str, name: &str, arguments: Map<String, Value>) -> Result<Reply, Error> {
        let (connection, patience) = self.connected(server).await?;
        Ok(Reply::of_prompt(&connection.prompt(name, arguments, patience).await?))
    }

    /// The connection to a server; waits for one that is being started.
    async fn connected(&self, server: &str) -> Result<(Arc<Connection>, Patience), Error> {
        let deadline = Instant::now() + START_PATIENCE;
        let mut news = self.inner.news.subscribe();
        loop {
            let state = {
                let entries = self.inner.entries();
                let Some(entry) = entries.get(server) else {
                    return Err(Error::Gone(format!("there is no server `{server}`")));
                };
                if let (State::Ready, Some(connection)) = (&entry.state, &entry.connection) {
                    return Ok((Arc::clone(connection), Patience::of(entry.definition.timeout)));
                }
                entry.state.clone()
            };
            match state {
                State::Starting | State::Ready => {}
                State::SignIn => {
                    return Err(Error::SignIn {
                        challenge: String::new(),
                    });
                }
                State::Failed(why) | State::Unusable(why) => return Err(Error::Gone(why)),
                State::Off => return Err(Error::Gone("it is switched off".to_owned())),
                State::Unapproved(_) | State::Untrusted => {
                    return Err(Error::Gone("the user has not approved it".to_owned()));
                }
            }
            if tokio::time::timeout_at(deadline, news.changed()).await.is_err() {
                return Err(Error::Timeout(START_PATIENCE));
            }
        }
    }

    /// Keeps the user's yes to a server and its tools, or to one tool, and starts it. `shown` is the [`Status::print`] of what
    /// the user was shown. Error: why nothing was kept.
    pub fn approve(&self, server: &str, tool: Option<&str>, shown: &str) -> Result<(), String> {
        let (definition, state, tools) = {
            let entries = self.inner.entries();
            let entry = entries
                .get(server)
                .ok_or_else(|| format!("there is no server `{server}`"))?;
            if entry.print().to_string() != shown {
                return Err(format!("{server} has changed since it was shown: look once more"));
            }
            if entry.state == State::Untrusted {
                let file = entry.definition.origin.shown();
                return Err(format!("{file}, which defines {server}, is not trusted: /trust asks"));
            }
            let is_meant = |it: &&ToolInfo| tool.is_none_or(|tool| tool == it.name);
            let tools: Vec<ToolInfo> = entry.lists.tools.iter().filter(is_meant).cloned().collect();
            (entry.definition.clone(), entry.state.clone(), tools)
        };
        let approvals = self.inner.setup.approvals.as_ref();
        let approvals = approvals.ok_or_else(|| "there is no folder to keep it in".to_owned())?;
        let root = self.inner.root();
        if matches!(state, State::Unapproved(_)) && definition.is_project() {
            approvals.approve(root, &definition)?;
        }
        if state == State::Ready {
            approvals.approve_tools(root, &definition, &tools)?;
        }
        if let Some(entry) = self.inner.entries().get_mut(server) {
            entry.is_free = true;
            // One that has changed meanwhile has changed again.
            let is_kept = |it: &Change| tools.iter().any(|tool| tool.name == it.tool);
            entry.changes.retain(|it| !is_kept(it));
        }
        if state == State::Ready {
            self.inner.tell();
        } else {
            self.restart(server);
        }
        Ok(())
    }

    /// Starts what has waited for the user's trust or approval and may start now.
    pub fn recheck(&self) {
        let waits = |it: &Entry| matches!(it.state, State::Untrusted | State::Unapproved(_));
        let names: Vec<String> = {
            let entries = self.inner.entries();
            let waiting = entries.iter().filter(|it| waits(it.1));
            waiting.map(|it| it.0.clone()).collect()
        };
        for name in names {
            self.restart(&name);
        }
    }

    /// Starts a server again whose connection is `failed`; another one, which somebody else has opened meanwhile, is kept.
    fn restart_of(&self, server: &str, failed: &Arc<Connection>) {
        let is_it = |it: &Entry| it.connection.as_ref().is_some_and(|it| Arc::ptr_eq(it, failed));
        let is_failed = self.inner.entries().get(server).is_some_and(is_it);
        if is_failed {
            self.restart(server);
        }
    }

    /// Ends a server and starts it again, if it may start.
    pub fn restart(&self, server: &str) {
        let Some(Some(engine)) = self.engine.get() else { return };
        let inner = Arc::clone(&self.inner);
        let server = server.to_owned();
        let _entered = engine.handle.enter();
        inner.begin(&server);
    }

    /// Switches a server on or off, for this conversation.
    pub fn switch(&self, server: &str, is_on: bool) {
        if let Some(entry) = self.inner.entries().get_mut(server) {
            entry.definition.is_enabled = is_on;
        }
        self.restart(server);
    }

    /// Switches a tool on or off, for this conversation.
    pub fn switch_tool(&self, server: &str, tool: &str, is_on: bool) {
        if let Some(entry) = self.inner.entries().get_mut(server) {
            if is_on {
                entry.off.remove(tool);
            } else {
                entry.off.insert(tool.to_owned());
            }
        }
        self.inner.tell();
    }
}

impl Entry {
    fn offers(&self, tool: &str) -> bool {
        !self.off.contains(tool) && self.offers_by_approval(tool)
    }

    /// Fingerprint of what an approval is of: the definition, and the tools that have changed.
    fn print(&self) -> Fingerprint {
        let definition = self.definition.print().to_string();
        let changed = self.lists.tools.iter().filter(|it| !self.offers_by_approval(&it.name));
        let prints = changed.map(|it| it.print.to_string());
        let parts: Vec<String> = std::iter::once(definition).chain(prints).collect();
        let parts: Vec<&[u8]> = parts.iter().map(String::as_bytes).collect();
        Fingerprint::of(&parts)
    }

    fn offers_by_approval(&self, tool: &str) -> bool {
        !self.changes.iter().any(|it| it.tool == tool)
    }

    fn status(&self) -> Status {
        let tool = |it: &ToolInfo| ToolStatus {
            is_on: !self.off.contains(&it.name),
            change: self.changes.iter().find(|change| change.tool == it.name).cloned(),
            info: it.clone(),
        };
        let connection = self.connection.as_ref();
        Status {
            definition: self.definition.clone(),
            state: self.state.clone(),
            version: connection.map_or_else(String::new, |it| it.era().version().to_owned()),
            title: connection.map_or_else(String::new, |it| it.title.clone()),
            tools: self.lists.tools.iter().map(tool).collect(),
            prompts: self.lists.prompts.clone(),
            resources: self.lists.resources.clone(),
            log: self.host.logged(),
            print: self.print(),
        }
    }
}

/// A server that was reached.
struct Reached {
    connection: Connection,
    service: Option<Service>,
}

impl Inner {
    fn entries(&self) -> MutexGuard<'_, BTreeMap<String, Entry>> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn root(&self) -> &Path {
        self.setup.workspace.root()
    }

    fn tell(&self) {
        self.news.send_modify(|it| *it += 1);
    }

    fn note(&self, code: &'static str, text: &str) {
        let _ = self.notes.send(Note {
            code,
            text: Sanitized::line(text).into_string(),
        });
    }

    fn find(&self) -> Found {
        files::find(&self.setup.settings, self.root(), self.setup.home.as_deref())
    }

    /// Takes the definitions that were found, and starts what may start.
    fn take(self: &Arc<Self>, found: Found) {
        *self.problems.lock().unwrap_or_else(PoisonError::into_inner) = found.problems;
        let names: Vec<String> = found.servers.iter().map(|it| it.name.clone()).collect();
        let asker = self.asker.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let roots: Vec<PathBuf> = std::iter::once(self.root().to_owned())
            .chain(self.setup.workspace.added().iter().cloned())
            .collect();
        let only = self.setup.only.as_ref();
        for definition in found
            .servers
            .into_iter()
            .filter(|it| only.is_none_or(|only| *only == it.name))
        {
            let host = Arc::new(Host::new(&definition.name, roots.clone()));
            host.set_asker(asker.clone());
            let entry = Entry {
                host,
                off: definition.disabled_tools.iter().cloned().collect(),
                state: State::Off,
                connection: None,
                lists: Lists::default(),
                changes: Vec::new(),
                is_free: false,
                stop: None,
                life: 0,
                definition,
            };
            self.entries().insert(entry.definition.name.clone(), entry);
        }
        for name in &names {
            self.begin(name);
        }
        self.tell_of_unapproved();
    }

    /// One line about the servers that wait for the user.
    fn tell_of_unapproved(&self) {
        let entries = self.entries();
        for (name, entry) in entries.iter() {
            if let State::Unusable(why) = &entry.state {
                self.note("mcp-failed", &format!("MCP server {name} cannot be started: {why}"));
            }
        }
        let is_alone = !self.setup.is_attended;
        let waits = |it: &&Entry| matches!(it.state, State::Unapproved(_)) || is_alone && it.state == State::Untrusted;
        let names: Vec<&str> = entries
            .values()
            .filter(waits)
            .map(|it| it.definition.name.as_str())
            .collect();
        let Some(first) = names.first() else { return };
        let next = if self.setup.is_attended {
            "/mcp shows what each would run and starts it".to_owned()
        } else {
            format!("`sheaf mcp approve {first}` shows what it would run and approves it")
        };
        let list = names.join(", ");
        drop(entries);
        self.note(
            "mcp-unapproved",
            &format!("not started, because you have not approved it: MCP server {list}; {next}"),
        );
    }

    /// The reason why a server may not start, as it is now; `None`: it may.
    fn hindrance(&self, entry: &Entry) -> Option<State> {
        let definition = &entry.definition;
        if !definition.is_enabled {
            return Some(State::Off);
        }
        if let Endpoint::Unusable(why) = &definition.endpoint {
            return Some(State::Unusable(why.clone()));
        }
        if let super::Origin::Project(path) = &definition.origin {
            let bytes = crate::os::file::read_beneath(self.root(), path.as_ref(), 4 << 20);
            let print = bytes.map(|it| Fingerprint::of(&[&it]));
            if !print.is_ok_and(|it| (self.setup.is_trusted)(path, &it)) {
                return Some(State::Untrusted);
            }
            let standing = match &self.setup.approvals {
                Some(approvals) => approvals.standing(self.root(), definition),
                None => Standing::New,
            };
            if standing != Standing::Approved {
                return Some(State::Unapproved(standing));
            }
        }
        let is_program = matches!(definition.endpoint, Endpoint::Program { .. });
        if is_program && !entry.is_free && Commands::tier() == Tier::None {
            return Some(if self.setup.is_attended {
                State::Unapproved(Standing::New)
            } else {
                State::Unusable("there is no sandbox here, and nobody who could be asked".to_owned())
            });
        }
        None
    }

    /// Ends a server, and starts it if it may start. Must be called in the runtime of the thread.
    fn begin(self: &Arc<Self>, name: &str) {
        {
            let mut entries = self.entries();
            let Some(entry) = entries.get_mut(name) else { return };
            if let Some(stop) = entry.stop.take() {
                stop.send_replace(true);
            }
            entry.connection = None;
            entry.life += 1;
            match self.hindrance(entry) {
                Some(state) => entry.state = state,
                None => {
                    let (stop, stopped) = watch::channel(false);
                    entry.stop = Some(stop);
                    entry.state = State::Starting;
                    let life = Life {
                        name: name.to_owned(),
                        number: entry.life,
                    };
                    tokio::spawn(attend(Arc::downgrade(self), life, stopped));
                }
            }
        }
        self.tell();
    }

    /// Changes the entry of a server, as long as `life` is its last one.
    fn change<T>(&self, life: &Life, change: impl FnOnce(&mut Entry) -> T) -> Option<T> {
        let mut entries = self.entries();
        let entry = entries.get_mut(&life.name).filter(|it| it.life == life.number);
        entry.map(change)
    }

    /// A life of a server comes to this state.
    fn come_to(&self, life: &Life, state: State) {
        self.change(life, |entry| {
            if state != State::Ready {
                entry.connection = None;
            }
            entry.state = state;
        });
        self.tell();
    }

    /// Renews the token of a server that refused it. Returns false if there is none, or it cannot be renewed.
    async fn renew_token(&self, name: &str) -> bool {
        let definition = self.entries().get(name).map(|it| it.definition.clone());
        let variable = |name: &str| self.setup.environment.get(name).map(str::to_owned);
        let resolved = definition.and_then(|it| it.resolve(self.root(), &variable).ok());
        let Some(Resolved::Http { url, .. }) = resolved else {
            return false;
        };
        let used = self.setup.tokens.as_ref().and_then(|it| it.get(&url));
        let refused = used.as_ref().map(Token::access);
        matches!(self.token(&url, refused).await, Ok(Some(_)))
    }

    fn is_http(&self, name: &str) -> bool {
        let entries = self.entries();
        entries
            .get(name)
            .is_some_and(|it| matches!(it.definition.endpoint, Endpoint::Http { .. }))
    }

    /// The state of a server changes.
    fn set(&self, name: &str, state: State) {
        if let Some(entry) = self.entries().get_mut(name) {
            if state != State::Ready {
                entry.connection = None;
            }
            entry.state = state;
        }
        self.tell();
    }

    /// Reaches a server.
    async fn reach(&self, name: &str, known: Option<&Era>) -> Result<Reached, State> {
        let (definition, host) = {
            let entries = self.entries();
            let entry = entries.get(name).ok_or(State::Off)?;
            (entry.definition.clone(), Arc::clone(&entry.host))
        };
        let variable = |name: &str| self.setup.environment.get(name).map(str::to_owned);
        let resolved = definition.resolve(self.root(), &variable).map_err(State::Unusable)?;
        let failed = |error: Error, host: &Host| match error {
            Error::SignIn { .. } => State::SignIn,
            error => State::Failed(with_log(&error.to_string(), host)),
        };
        match resolved {
            Resolved::Http { url, headers } => {
                let open = async |token: Option<Token>| {
                    let token = token.map(|it| it.access().to_owned());
                    let http = Http::new(&url, headers.clone(), token)?;
                    let transport = Transport::Http(Box::new(http));
                    Connection::open(transport, Arc::clone(&host), known).await
                };
                let not_renewed = |why: String| {
                    tracing::warn!(why, "a token could not be renewed");
                    State::SignIn
                };
                let token = self.token(&url, None).await.map_err(not_renewed)?;
                let mut connection = open(token.clone()).await;
                // It may have been withdrawn, or have ended by another clock.
                if let (Err(Error::SignIn { .. }), Some(token)) = (&connection, token) {
                    let again = self.token(&url, Some(token.access())).await;
                    let again = again.map_err(not_renewed)?.ok_or(State::SignIn)?;
                    connection = open(Some(again)).await;
                }
                Ok(Reached {
                    connection: connection.map_err(|it| failed(it, &host))?,
                    service: None,
                })
            }
            Resolved::Program {
                command,
                arguments,
                variables,
                directory,
                folders,
            } => {
                let spec = ServiceSpec {
                    program: command,
                    arguments,
                    directory,
                    variables,
                    network: definition.network,
                    folders,
                };
                match self.spawn(&spec, &host, known).await {
                    // It may not have survived the first question; the handshake is tried with a new one.
                    Err((Error::Gone(_), _)) if known.is_none() => {
                        let legacy = Era::Legacy(String::new());
                        let again = self.spawn(&spec, &host, Some(&legacy)).await;
                        again.map_err(|(error, how)| failed(with_end(error, &how), &host))
                    }
                    other => other.map_err(|(error, how)| failed(with_end(error, &how), &host)),
                }
            }
        }
    }

    /// The token for a server, renewed if it has ended or was `refused`; `None` without one. Error: why it is not renewed.
    async fn token(&self, url: &str, refused: Option<&str>) -> Result<Option<Token>, String> {
        match &self.setup.tokens {
            Some(tokens) => tokens.renewed(url, refused).await,
            None => Ok(None),
        }
    }

    /// Starts a program and opens the connection. Error: why not, and how the program has ended.
    async fn spawn(
        &self,
        spec: &ServiceSpec,
        host: &Arc<Host>,
        known: Option<&Era>,
    ) -> Result<Reached, (Error, String)> {
        let (workspace, spec) = (Arc::clone(&self.setup.workspace), spec.clone());
        let started = tokio::task::spawn_blocking(move || workspace.commands().serve(spec)).await;
        let gone = |why: String| (Error::Start(why), String::new());
        let (mut service, streams) = started
            .map_err(|it| gone(it.to_string()))?
            .map_err(|it| gone(it.to_string()))?;
        let stdio = Stdio::start(streams.input, streams.output, streams.errors, Arc::clone(host));
        match Connection::open(Transport::Stdio(stdio), Arc::clone(host), known).await {
            Ok(connection) => Ok(Reached {
                connection,
                service: Some(service),
            }),
            Err(error) => {
                let how = tokio::time::timeout(COALESCE, service.ended())
                    .await
                    .unwrap_or_default();
                tokio::spawn(service.end());
                Err((error, how))
            }
        }
    }

    /// Reads the lists of a server, and compares its tools with those that were approved.
    async fn read_lists(&self, life: &Life, connection: &Connection) -> Result<(), Error> {
        let name = &life.name;
        let tools = if connection.has("tools") {
            connection.tools().await?
        } else {
            Vec::new()
        };
        let host = self.entries().get(name).map(|it| Arc::clone(&it.host));
        let is_usable = |it: &ToolInfo| match header_arguments(&it.schema) {
            Err(why) if self.is_http(name) => {
                if let Some(host) = &host {
                    host.log(&format!("left out: the tool `{}`: {why}", it.name));
                }
                false
            }
            Ok(_) | Err(_) => true,
        };
        let tools: Vec<ToolInfo> = tools.into_iter().filter(is_usable).collect();
        let mut lists = Lists {
            tools,
            // A server that fails at these still has its tools.
            prompts: connection.prompts().await.unwrap_or_default(),
            resources: connection.resources().await.unwrap_or_default(),
        };
        let definition = self.entries().get(name).map(|it| it.definition.clone());
        let Some(definition) = definition else { return Ok(()) };
        let compared = self.setup.approvals.as_ref();
        let compared = compared.map_or(Ok(Vec::new()), |it| it.compare(self.root(), &definition, &lists.tools));
        let changes = compared.unwrap_or_else(|why| {
            lists.tools.clear();
            self.note(
                "mcp-failed",
                &format!("MCP server {name}: its tools are not offered, because nothing tells whether they have changed: {why}"),
            );
            Vec::new()
        });
        let is_news = self.change(life, |entry| {
            let is_news = entry.changes != changes;
            entry.lists = lists;
            entry.changes.clone_from(&changes);
            is_news
        });
        if is_news == Some(true) && !changes.is_empty() {
            self.tell_of_changes(name, &changes);
        }
        self.tell();
        Ok(())
    }

    /// One line about tools that are not offered before the user has approved them.
    fn tell_of_changes(&self, name: &str, changes: &[Change]) {
        let names: Vec<&str> = changes.iter().map(|it| it.tool.as_str()).take(5).collect();
        let next = if self.setup.is_attended {
            "/mcp shows the difference and approves them".to_owned()
        } else {
            format!("`sheaf mcp approve {name}` shows the difference and approves them")
        };
        let names = names.join(", ");
        self.note(
            "mcp-changed",
            &format!("MCP server {name}: not offered, because they have changed: {names}; {next}"),
        );
    }

    /// Ends all servers and waits until they have.
    async fn end_all(&self) {
        let stops: Vec<_> = self.entries().values_mut().filter_map(|it| it.stop.take()).collect();
        for stop in &stops {
            stop.send_replace(true);
        }
        for stop in stops {
            stop.closed().await;
        }
    }
}

fn with_end(error: Error, how: &str) -> Error {
    match error {
        Error::Gone(why) if !how.is_empty() => Error::Gone(format!("{why} ({how})")),
        other => other,
    }
}

/// A reason with the last line that the server printed.
fn with_log(why: &str, host: &Host) -> String {
    match host.last_line() {
        line if line.is_empty() => why.to_owned(),
        line => format!("{why}; it said: {line}"),
    }
}

/// A server from one start that the user wanted to the next: how often it had been started before.
struct Life {
    name: String,
    number: u64,
}

/// Starts a server, and again when it ends, until it is stopped or fails too often.
async fn attend(inner: Weak<Inner>, life: Life, mut stopped: watch::Receiver<bool>) {
    let (mut era, mut restarts) = (None, 0_u32);
    let name = &life.name;
    loop {
        let Some(here) = inner.upgrade() else { return };
        let reached = tokio::select! {
            () = asked_to_stop(&mut stopped) => return,
            reached = here.reach(name, era.as_ref()) => reached,
        };
        let Reached { connection, service } = match reached {
            Ok(reached) => reached,
            Err(state) => {
                let said = match &state {
                    State::Failed(why) | State::Unusable(why) => Some(format!("did not start: {why}")),
                    State::SignIn => Some(format!("wants you to sign in: `sheaf mcp login {name}`")),
                    _ => None,
                };
                if let Some(said) = said {
                    here.note("mcp-failed", &format!("MCP server {name} {said}"));
                }
                return here.come_to(&life, state);
            }
        };
        era = Some(connection.era().clone());
        let connection = Arc::new(connection);
        let began = Instant::now();
        let listed = tokio::select! {
            () = asked_to_stop(&mut stopped) => None,
            listed = here.read_lists(&life, &connection) => Some(listed),
        };
        let host = here.entries().get(name).map(|it| Arc::clone(&it.host));
        let why = match (listed, host) {
            (Some(Ok(())), Some(host)) => {
                here.change(&life, |entry| entry.connection = Some(Arc::clone(&connection)));
                here.come_to(&life, State::Ready);
                drop(here);
                live(&inner, &life, &connection, &host, &mut stopped).await
            }
            (Some(Err(error)), _) => Some(error.to_string()),
            (None, _) | (_, None) => None,
        };
        connection.close().await;
        connection.hang_up();
        drop(connection);
        if let Some(service) = service {
            service.end().await;
        }
        let (Some(why), Some(here)) = (why, inner.upgrade()) else {
            return;
        };
        if *stopped.borrow() {
            return;
        }
        if began.elapsed() > STABLE {
            restarts = 0;
        }
        let host = here.entries().get(name).map(|it| Arc::clone(&it.host));
        let why = host.map_or_else(|| why.clone(), |it| with_log(&why, &it));
        if restarts >= MOST_RESTARTS {
            here.note(
                "mcp-failed",
                &format!("MCP server {name} keeps ending and is left off: {why}"),
            );
            return here.come_to(&life, State::Failed(why));
        }
        here.note(
            "mcp-ended",
            &format!("MCP server {name} ended and is started again: {why}"),
        );
        here.come_to(&life, State::Starting);
        drop(here);
        // At once the first time, then ever later.
        let pause = if restarts == 0 {
            Duration::ZERO
        } else {
            Duration::from_secs(1 << restarts.min(5))
        };
        restarts += 1;
        tokio::select! {
            () = asked_to_stop(&mut stopped) => return,
            () = tokio::time::sleep(pause) => {}
        }
    }
}

async fn asked_to_stop(stopped: &mut watch::Receiver<bool>) {
    stopped.wait_for(|it| *it).await.ok();
}

/// Follows a ready server until it ends; returns why, or `None` if it was stopped.
async fn live(
    inner: &Weak<Inner>,
    life: &Life,
    connection: &Connection,
    host: &Host,
    stopped: &mut watch::Receiver<bool>,
) -> Option<String> {
    let mut changes = host.changes.subscribe();
    changes.mark_unchanged();
    let mut seen: Changes = *changes.borrow();
    let listening = connection.listen();
    tokio::pin!(listening);
    let (mut is_listening, mut pause) = (true, COALESCE);
    loop {
        tokio::select! {
            () = asked_to_stop(stopped) => return None,
            why = connection.over() => return Some(why),
            () = &mut listening, if is_listening => is_listening = false,
            changed = changes.changed() => {
                changed.ok()?;
                // A storm of changes is one change.
                tokio::select! {
                    () = asked_to_stop(stopped) => return None,
                    () = tokio::time::sleep(pause) => {}
                }
                let now = *changes.borrow_and_update();
                if now != seen {
                    seen = now;
                    let here = inner.upgrade()?;
                    let read = tokio::select! {
                        () = asked_to_stop(stopped) => return None,
                        read = here.read_lists(life, connection) => read,
                    };
                    if let Err(error) = read {
                        host.log(&format!("its lists cannot be read: {error}"));
                    }
                    // A server that says so all the time does not fill our time.
                    pause = (pause * 2).min(LONGEST_PAUSE);
                }
            }
        }
    }
}

impl Drop for Servers {
    fn drop(&mut self) {
        if let Some(Some(engine)) = self.engine.get() {
            engine.stop.send_replace(Some(Arc::clone(&self.inner)));
        }
    }
}
