//! The lifecycle of a server: whether it may start, how it is reached, what it offers, and when it is started again.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::{Path, PathBuf},
    sync::{Arc, MutexGuard, PoisonError, Weak},
    time::Duration,
};

use tokio::{
    sync::{oneshot, watch},
    time::Instant,
};

use super::{Entry, Inner, Lists, Note, State};
use crate::{
    config::Fingerprint,
    extensions::{installed, made_data_folder},
    mcp::{
        approval::{Change, Standing},
        connection::{Connection, Transport},
        definition::{Endpoint, OAuthClient, Origin, Resolved},
        files::{self, Found},
        host::{Changes, Host},
        http::{Http, header_arguments},
        info::{Era, Error, ToolInfo},
        oauth::{self, Token},
        stdio::Stdio,
    },
    sandbox::{Commands, Service, ServiceSpec, Tier},
    text::Sanitized,
};

/// Time in which several changes of a list count as one.
const COALESCE: Duration = Duration::from_millis(200);
/// The same for a server whose lists keep changing.
const LONGEST_PAUSE: Duration = Duration::from_secs(30);
/// Time that a server has to open the stream on which it says things unasked.
const OPENING: Duration = Duration::from_secs(1);
/// Times that a server which ends is started again, unless it ran for [`STABLE`].
const MOST_RESTARTS: u32 = 4;
/// A server that ran so long is not counted as one that keeps ending.
const STABLE: Duration = Duration::from_mins(1);

/// A server that was reached.
struct Reached {
    connection: Connection,
    service: Option<Service>,
}

impl Inner {
    pub(super) fn entries(&self) -> MutexGuard<'_, BTreeMap<String, Entry>> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn root(&self) -> &Path {
        self.setup.workspace.root()
    }

    pub(super) fn tell(&self) {
        self.news.send_modify(|it| *it += 1);
    }

    fn note(&self, code: &'static str, text: &str) {
        let _ = self.notes.send(Note {
            code,
            text: Sanitized::line(text).into_string(),
        });
    }

    pub(super) fn find(&self) -> Found {
        let plugins = self.setup.data.as_deref().map(|it| installed(it).0);
        files::find(
            &self.setup.settings,
            self.root(),
            self.setup.home.as_deref(),
            &plugins.unwrap_or_default(),
        )
    }

    /// Takes the definitions that were found, and starts what may start.
    pub(super) fn take(self: &Arc<Self>, found: Found) {
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
                starts: 0,
                definition,
            };
            self.entries().insert(entry.definition.name.clone(), entry);
        }
        for name in &names {
            self.begin(name);
        }
        for (name, entry) in self.entries().iter() {
            if let State::Unusable(why) = &entry.state {
                self.note("mcp-failed", &format!("MCP server {name} cannot be started: {why}"));
            }
        }
        self.tell_of_unapproved(&BTreeSet::new());
    }

    /// One line about the servers that wait for the user, but for those that are `told` already.
    pub(super) fn tell_of_unapproved(&self, told: &BTreeSet<String>) {
        let entries = self.entries();
        let is_alone = !self.setup.is_attended;
        let waits = |it: &&Entry| matches!(it.state, State::Unapproved(_)) || is_alone && it.state == State::Untrusted;
        let names: Vec<&str> = entries
            .values()
            .filter(waits)
            .map(|it| it.definition.name.as_str())
            .filter(|it| !told.contains(*it))
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
        if let Origin::Project(path) = &definition.origin {
            let bytes = crate::os::file::read_beneath(self.root(), path.as_ref(), 4 << 20);
            let print = bytes.map(|it| Fingerprint::of(&[&it]));
            if !print.is_ok_and(|it| (self.setup.is_trusted)(path, &it)) {
                return Some(State::Untrusted);
            }
        }
        if definition.is_foreign() {
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
    pub(super) fn begin(self: &Arc<Self>, name: &str) {
        {
            let mut entries = self.entries();
            let Some(entry) = entries.get_mut(name) else { return };
            if let Some(stop) = entry.stop.take() {
                stop.send_replace(true);
            }
            entry.connection = None;
            entry.starts += 1;
            match self.hindrance(entry) {
                Some(state) => entry.state = state,
                None => {
                    let (stop, stopped) = watch::channel(false);
                    entry.stop = Some(stop);
                    entry.state = State::Starting;
                    let start = Start {
                        name: name.to_owned(),
                        number: entry.starts,
                    };
                    tokio::spawn(attend(Arc::downgrade(self), start, stopped));
                }
            }
        }
        self.tell();
    }

    /// Changes the entry of a server, as long as `start` is its last one.
    fn change<T>(&self, start: &Start, change: impl FnOnce(&mut Entry) -> T) -> Option<T> {
        let mut entries = self.entries();
        let entry = entries.get_mut(&start.name).filter(|it| it.starts == start.number);
        entry.map(change)
    }

    /// This start of a server has come to a state.
    fn come_to(&self, start: &Start, state: State) {
        self.change(start, |entry| {
            if state != State::Ready {
                entry.connection = None;
            }
            entry.state = state;
        });
        self.tell();
    }

    /// Renews the token of a server that refused it. Returns false if there is none, or it cannot be renewed.
    pub(super) async fn renew_token(&self, name: &str) -> bool {
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
    pub(super) fn set(&self, name: &str, state: State) {
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
                if let (Err(Error::SignIn { challenge }), true) = (&connection, definition.client.is_alone) {
                    let token = self.sign_in_alone(&url, challenge, &definition.client).await;
                    connection = open(Some(token.map_err(State::Failed)?)).await;
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
                if matches!(definition.origin, Origin::Plugin(_)) {
                    // What it may write has to be there.
                    made_data_folder(&variables);
                }
                let spec = ServiceSpec {
                    program: command,
                    arguments,
                    directory,
                    variables,
                    network: definition.network,
                    folders,
                    has_own_cache: false,
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

    /// Signs in without the user, as what they have registered for this program.
    async fn sign_in_alone(&self, url: &str, challenge: &str, client: &OAuthClient) -> Result<Token, String> {
        let server = oauth::find(url, challenge).await?;
        let token = oauth::sign_in_alone(server, client).await?;
        if let Some(tokens) = &self.setup.tokens {
            tokens.keep(url, token.clone())?;
        }
        Ok(token)
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
    async fn read_lists(&self, start: &Start, connection: &Connection) -> Result<(), Error> {
        let name = &start.name;
        let (tools, left_out) = if connection.has("tools") {
            connection.tools().await?
        } else {
            Default::default()
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
            left_out,
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
        let left_out = lists.left_out.clone();
        let mut is_left_out = false;
        let is_news = self.change(start, |entry| {
            let is_news = entry.changes != changes;
            is_left_out = !left_out.is_empty() && entry.lists.left_out != left_out;
            entry.lists = lists;
            entry.changes.clone_from(&changes);
            is_news
        });
        if is_news == Some(true) && !changes.is_empty() {
            self.tell_of_changes(name, &changes);
        }
        if let (true, [first, more @ ..]) = (is_left_out, left_out.as_slice()) {
            let more = match more.len() {
                0 => String::new(),
                count => format!(", and {count} more"),
            };
            self.note("mcp-failed", &format!("MCP server {name}: left out: {first}{more}"));
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
    pub(super) async fn end_all(&self) {
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

/// One start of a server. What is left of an earlier one changes nothing any more.
struct Start {
    name: String,
    number: u64,
}

/// Starts a server, and again when it ends, until it is stopped or fails too often.
async fn attend(inner: Weak<Inner>, start: Start, mut stopped: watch::Receiver<bool>) {
    let (mut era, mut restarts) = (None, 0_u32);
    let name = &start.name;
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
                return here.come_to(&start, state);
            }
        };
        era = Some(connection.era().clone());
        let connection = Arc::new(connection);
        let began = Instant::now();
        let listed = tokio::select! {
            () = asked_to_stop(&mut stopped) => None,
            listed = here.read_lists(&start, &connection) => Some(listed),
        };
        let host = here.entries().get(name).map(|it| Arc::clone(&it.host));
        let why = match (listed, host) {
            (Some(Ok(())), Some(host)) => {
                here.change(&start, |entry| entry.connection = Some(Arc::clone(&connection)));
                drop(here);
                live(&inner, &start, &connection, &host, &mut stopped).await
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
            return here.come_to(&start, State::Failed(why));
        }
        here.note(
            "mcp-ended",
            &format!("MCP server {name} ended and is started again: {why}"),
        );
        here.come_to(&start, State::Starting);
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
    start: &Start,
    connection: &Connection,
    host: &Host,
    stopped: &mut watch::Receiver<bool>,
) -> Option<String> {
    let mut changes = host.changes.subscribe();
    changes.mark_unchanged();
    let mut seen: Changes = *changes.borrow();
    let (opened, open) = oneshot::channel();
    let listening = connection.listen(opened);
    tokio::pin!(listening);
    let (mut is_listening, mut pause) = (true, COALESCE);
    // What a server asks during a call comes on this stream: a call before it is open would wait for ever.
    tokio::select! {
        () = asked_to_stop(stopped) => return None,
        why = connection.over() => return Some(why),
        () = &mut listening => is_listening = false,
        _ = open => {}
        () = tokio::time::sleep(OPENING) => {}
    }
    inner.upgrade()?.come_to(start, State::Ready);
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
                        read = here.read_lists(start, connection) => read,
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
