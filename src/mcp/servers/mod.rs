//! All servers of a conversation: which may start, their lifecycles, and calls to their tools.
//!
//! They live on a thread of their own, so that a flood of one holds up no screen. Nothing is read and nothing is started
//! before [`Servers::start`].

use std::{
    collections::{BTreeMap, BTreeSet},
    path::PathBuf,
    sync::{Arc, Mutex, OnceLock, PoisonError},
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
    connection::{Connection, Patience},
    content::Reply,
    definition::Definition,
    host::{Asker, Host, Progress},
    info::{Error, PromptInfo, ResourceInfo, ToolInfo},
    name::ToolName,
    oauth::Tokens,
};
use crate::{
    config::{Environment, Fingerprint, McpServer},
    sandbox::Workspace,
};

mod lifecycle;

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
    /// The program's own data folder, with the user's plugins; `None`: there are none.
    pub data: Option<PathBuf>,
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
    starts: u64,
}

/// What a ready server offers.
#[derive(Clone, Debug, Default)]
struct Lists {
    tools: Vec<ToolInfo>,
    /// Why other tools of the server are not among them.
    left_out: Vec<String>,
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
                // It may block: nothing else is on the thread yet.
                inner.take(inner.find());
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
            let is_there = self
                .inner
                .entries()
                .get(&name.server)
                .is_some_and(|it| it.lists.tools.iter().any(|it| it.name == name.tool));
            let why = if is_there {
                format!(
                    "its tool {} is switched off, or has changed and waits for the user",
                    name.tool
                )
            } else {
                format!("it has no tool {}", name.tool)
            };
            return Err(Error::Gone(why));
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

    /// The values that a server offers for the argument of a prompt that is being typed.
    pub async fn values(
        &self,
        server: &str,
        prompt: &str,
        argument: (&str, &str),
        before: Map<String, Value>,
    ) -> Result<Vec<String>, Error> {
        let (connection, patience) = self.connected(server).await?;
        connection.values(prompt, argument, before, patience).await
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
        if matches!(state, State::Unapproved(_)) && definition.is_foreign() {
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
        let unapproved = || -> BTreeSet<String> {
            let entries = self.inner.entries();
            let waiting = entries.iter().filter(|it| matches!(it.1.state, State::Unapproved(_)));
            waiting.map(|it| it.0.clone()).collect()
        };
        let names: Vec<String> = {
            let entries = self.inner.entries();
            let waiting = entries.iter().filter(|it| waits(it.1));
            waiting.map(|it| it.0.clone()).collect()
        };
        let before = unapproved();
        for name in names {
            self.restart(&name);
        }
        // Trust is not enough to start them.
        self.inner.tell_of_unapproved(&before);
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

impl Drop for Servers {
    fn drop(&mut self) {
        if let Some(Some(engine)) = self.engine.get() {
            engine.stop.send_replace(Some(Arc::clone(&self.inner)));
        }
    }
}
