//! A language server that runs: what it was told, what it reports, and what it asks.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap, HashSet},
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicI64, AtomicUsize, Ordering},
    },
    time::Duration,
};

use futures::StreamExt as _;
use serde_json::{Value, json};
use tokio::{
    io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _, BufReader},
    sync::{RwLock, mpsc, oneshot, watch},
    time::{Instant, timeout_at},
};

use super::{
    catalogue::{Found, language_id},
    diagnostic::{self, Diagnostic, Item},
    position::{self, Encoding, Spot, path, uri},
    tree::DiskChange,
    wire,
};
use crate::text::Sanitized;

/// Time that a server has to answer `initialize`.
const START_LIMIT: Duration = Duration::from_secs(45);
/// Some servers say only after their start that they can be asked for problems; later, they are taken to report by themselves.
const OFFER_WAIT: Duration = Duration::from_millis(500);
/// Reports without a version count once no other has come for so long, and so do those with one where several files were changed
/// together: some servers report at once what they know without the other files, and again when they know better.
const QUIET: Duration = Duration::from_millis(400);
/// Time in which a server that reports by itself comes to the files that depend on a change.
const SETTLE: Duration = Duration::from_millis(600);
/// Pause before a server that was busy is asked again.
const RETRY: Duration = Duration::from_millis(50);
/// Work that a server announces at once, and the bytes of the name that it has.
const MOST_TASKS: usize = 1000;
const TASK_BYTES: usize = 200;
/// Files that are open in a server.
const MOST_OPEN: usize = 64;
/// Messages that wait to be written.
const MOST_WAITING: usize = 1024;
const MOST_WAITING_BYTES: usize = 128 << 20;
/// A server that leaves a request unanswered and says nothing for so long is ended at the next one that it does not answer.
const SILENCE: Duration = Duration::from_mins(2);
/// One that has left a request unanswered and said nothing for so long is not waited for longer than this.
const LONG_SILENCE: Duration = Duration::from_secs(15);
const SILENT_PATIENCE: Duration = Duration::from_secs(2);
/// A request that no server knows, and that all refuse in its turn.
const HEARD: &str = "$/sheaf/heard";
/// The command of a language server that passes a request on to TypeScript's own server.
const TSSERVER_REQUEST: &str = "typescript.tsserverRequest";
const REPORT_UNREADABLE: &str = "its report cannot be read";
/// Files that a server is asked about at a time.
const MOST_ASKED: usize = 16;
/// Characters of the words in which a server refuses.
const REFUSAL_CHARS: usize = 300;
/// Bytes at the end of the error output that are kept, for the reason why it ended.
const KEPT_ERRORS: usize = 2000;

/// Why nothing is known of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Missing {
    /// The server has not answered in time.
    Late,
    /// The server is still starting.
    Starting,
    /// The server is still reading the project.
    Reading,
    /// The server could not read the project; its words.
    Broken(String),
    /// The server's own words.
    Refused(String),
    /// Why the connection has ended, or there is none.
    Gone(String),
}

impl Missing {
    /// A sentence without a full stop, about the server of this name.
    pub fn told(&self, name: &str) -> String {
        match self {
            Self::Late => format!("{name} has not answered in time"),
            Self::Starting => format!("{name} is still starting"),
            Self::Reading => format!("{name} is still reading the project"),
            Self::Broken(why) => format!("{name} could not read the project: {why}"),
            Self::Refused(why) => format!("{name} refused: {why}"),
            Self::Gone(why) => format!("{name} is not running: {why}"),
        }
    }
}

/// The problems of files, by file.
pub type Reports = BTreeMap<PathBuf, Result<Vec<Diagnostic>, Missing>>;

/// The time that a look has.
#[derive(Clone, Copy, Debug)]
pub struct LookTime {
    pub until: Instant,
    /// A server that has been reading the project for so long is not waited for; `None`: it is.
    pub patience: Option<Duration>,
}

/// Texts that are laid over files for a moment.
#[derive(Debug, Default)]
pub struct Overlay {
    /// The proposed text of each file.
    pub proposed: BTreeMap<PathBuf, String>,
    /// Files that may depend on these.
    pub others: BTreeSet<PathBuf>,
    /// Open files that keep the text that the server knows.
    pub held: BTreeSet<PathBuf>,
}

/// A question about a symbol.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Question {
    Definition,
    References,
    Rename { old: String, new: String },
}

/// The connection to a server. Its tasks end with the streams.
pub struct Server {
    name: String,
    out: mpsc::Sender<Vec<u8>>,
    shared: Arc<Shared>,
    /// The next number of a request, or of a version of a text: no two openings of a file have the same.
    next: AtomicI64,
    /// When the first of the requests that it has not answered was sent; one from before it said something does not count.
    silent: Mutex<Option<Instant>>,
    /// Held for writing while texts that nobody has written are laid over files: nobody else is to see them.
    overlay: RwLock<()>,
}

struct Shared {
    state: Mutex<State>,
    /// When something has come.
    news: watch::Sender<Instant>,
    /// Bytes of messages that wait to be written.
    waiting_bytes: AtomicUsize,
    initialization: Value,
    folders: Value,
}

#[derive(Default)]
struct State {
    waiting: HashMap<i64, oneshot::Sender<Result<Value, Value>>>,
    /// Why the connection has ended.
    over: Option<String>,
    errors: String,
    encoding: Encoding,
    offer: Offer,
    /// When it was told that it is initialized.
    begun: Option<Instant>,
    /// Work that it has announced and not ended.
    progress: HashSet<String>,
    status: Status,
    /// Since when it has been reading the project; `None`: it is ready, as far as it says so.
    reading: Option<Instant>,
    open: HashMap<PathBuf, Open>,
    published: HashMap<PathBuf, Published>,
    /// When it was last told of a text or of the disk.
    told: Option<Instant>,
}

/// The way to the problems of a file.
#[derive(Clone, Debug, Default, PartialEq)]
enum Offer {
    /// The server reports them by itself.
    #[default]
    Reports,
    /// It is asked for them, with this identifier.
    Pull(Value),
    /// It passes requests on to TypeScript's own server, which answers what it finds in a file at once. By itself it reports only a
    /// file whose problems have changed, so nothing is heard of one that stays clean.
    Tsserver,
}

/// The state of a server in its own words.
#[derive(Debug, Default)]
struct Status {
    /// It has nothing to do; `None`: it does not say.
    is_quiescent: Option<bool>,
    health: Health,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
enum Health {
    #[default]
    Ok,
    /// It works, and misses something.
    Warning(String),
    /// It knows nothing of the project.
    Error(String),
}

/// A file that is open in the server.
struct Open {
    version: i64,
    text: Arc<str>,
    /// When it was last told.
    told: Instant,
    /// The last answer to a pull.
    pulled: Option<(Value, Vec<Item>)>,
}

/// What a server has reported of a file by itself.
struct Published {
    version: Option<i64>,
    at: Instant,
    items: Vec<Item>,
}

impl State {
    /// Takes note of when the server begins to read the project, and when it is done.
    fn note_reading(&mut self) {
        let is_reading = !self.progress.is_empty() || self.status.is_quiescent == Some(false);
        self.reading = is_reading.then(|| self.reading.unwrap_or_else(Instant::now));
    }
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn end(&self, why: &str) {
        let waiting = {
            let mut state = self.state();
            let errors = state.errors.trim().lines().next_back().unwrap_or_default().to_owned();
            let why = if errors.is_empty() {
                why.to_owned()
            } else {
                format!("{why}: {errors}")
            };
            state.over.get_or_insert_with(|| line(&why));
            std::mem::take(&mut state.waiting)
        };
        drop(waiting);
        self.tell();
    }

    fn tell(&self) {
        self.news.send_modify(|it| *it = Instant::now());
    }

    /// Has a message written. Returns false if the server reads nothing, and is given up.
    fn send(&self, out: &mpsc::Sender<Vec<u8>>, message: &Value) -> bool {
        let bytes = wire::write(message);
        let waiting = bytes.len() + self.waiting_bytes.fetch_add(bytes.len(), Ordering::Relaxed);
        let is_sent = waiting <= MOST_WAITING_BYTES && out.try_send(bytes).is_ok();
        if !is_sent {
            self.end("it reads nothing");
        }
        is_sent
    }
}

/// The reason why there is no answer.
#[derive(Clone, Debug, PartialEq)]
enum NoAnswer {
    Late,
    Gone,
    /// The server's error.
    Refused(Value),
}

impl Server {
    /// Speaks through these streams, on tasks of the current runtime, and initializes the server. Error: why it cannot be used.
    pub async fn start(
        found: &Found,
        input: impl AsyncWrite + Send + Unpin + 'static,
        output: impl AsyncRead + Send + Unpin + 'static,
        errors: impl AsyncRead + Send + Unpin + 'static,
    ) -> Result<Self, String> {
        let (out, to_write) = mpsc::channel(MOST_WAITING);
        let uri = uri(&found.root);
        let name = found.root.file_name().map(|it| it.to_string_lossy().into_owned());
        let folders = json!([{ "uri": uri, "name": name.unwrap_or_default() }]);
        let shared = Arc::new(Shared {
            state: Mutex::default(),
            news: watch::Sender::new(Instant::now()),
            waiting_bytes: AtomicUsize::default(),
            initialization: found.initialization.clone(),
            folders: folders.clone(),
        });
        {
            let mut state = shared.state();
            state.status.is_quiescent = found.tells_when_ready.then_some(false);
            state.note_reading();
        }
        tokio::spawn(write(input, to_write, Arc::clone(&shared)));
        tokio::spawn(read(output, out.downgrade(), Arc::clone(&shared)));
        tokio::spawn(keep_errors(errors, Arc::clone(&shared)));
        let server = Self {
            name: found.name.clone(),
            out,
            shared,
            next: AtomicI64::new(1),
            silent: Mutex::default(),
            overlay: RwLock::default(),
        };
        let wish = json!({
            "processId": null,
            "clientInfo": { "name": "sheaf", "version": env!("CARGO_PKG_VERSION") },
            "rootUri": uri,
            "workspaceFolders": folders,
            "initializationOptions": found.initialization,
            "capabilities": capabilities(),
        });
        let answer = server.request("initialize", wish, Instant::now() + START_LIMIT).await;
        let answer = answer.map_err(|why| match why {
            NoAnswer::Late => "it did not answer within 45 s".to_owned(),
            NoAnswer::Gone => server.over().unwrap_or_default(),
            NoAnswer::Refused(error) => {
                format!("it refused to start: {}", message(&error))
            }
        })?;
        {
            let mut state = server.shared.state();
            let about = &answer["capabilities"];
            if about["positionEncoding"] == "utf-8" {
                state.encoding = Encoding::Utf8;
            }
            let commands = about["executeCommandProvider"]["commands"].as_array();
            if about["diagnosticProvider"].is_object() {
                state.offer = Offer::Pull(about["diagnosticProvider"]["identifier"].clone());
            } else if commands.is_some_and(|it| it.iter().any(|it| it == TSSERVER_REQUEST)) {
                state.offer = Offer::Tsserver;
            }
            state.begun = Some(Instant::now());
        }
        server.notify("initialized", json!({}));
        Ok(server)
    }

    /// Why the connection has ended; `None` while it lives.
    pub fn over(&self) -> Option<String> {
        self.shared.state().over.clone()
    }

    /// Gives the server up.
    pub fn give_up(&self, why: &str) {
        self.shared.end(why);
    }

    /// Asks the server to end.
    pub async fn shut_down(&self, within: Duration) {
        let asked = self.request("shutdown", Value::Null, Instant::now() + within);
        asked.await.ok();
        self.notify("exit", Value::Null);
    }

    /// Waits until the server has read the project, as far as it says so.
    async fn ready(&self, time: LookTime) -> Result<(), Missing> {
        let ready = self.wait(time.until, |state| {
            let offer = state.begun? + OFFER_WAIT;
            if state.offer == Offer::Reports && Instant::now() < offer {
                return Some(Err(offer));
            }
            let Some(since) = state.reading else {
                return Some(Ok(true));
            };
            match time.patience.map(|it| since + it) {
                Some(end) if end <= Instant::now() => Some(Ok(false)),
                Some(end) => Some(Err(end)),
                None => None,
            }
        });
        match ready.await {
            Some(true) => match &self.shared.state().status.health {
                Health::Error(why) => Err(Missing::Broken(why.clone())),
                Health::Ok | Health::Warning(_) => Ok(()),
            },
            Some(false) => Err(Missing::Reading),
            None => match self.over() {
                Some(why) => Err(Missing::Gone(why)),
                None if self.shared.state().reading.is_some() => Err(Missing::Reading),
                None => Err(Missing::Late),
            },
        }
    }

    /// Says what others have changed on the disk.
    pub fn tell_disk(&self, changes: &[(PathBuf, DiskChange)]) {
        let changes: Vec<Value> = changes
            .iter()
            .map(|(file, change)| json!({ "uri": uri(file), "type": *change as u8 }))
            .collect();
        if !changes.is_empty() {
            self.notify("workspace/didChangeWatchedFiles", json!({ "changes": changes }));
        }
    }

    /// Opens a file as it is on the disk. One that is opened with another text than the disk's some servers do not take for the
    /// files that depend on it, so it is to be open before it changes. What was told longest ago is closed for it, where too much
    /// is open.
    pub fn open(&self, file: &Path, text: &str) {
        let surplus = {
            let state = self.shared.state();
            if state.open.contains_key(file) {
                return;
            }
            let oldest = state.open.iter().min_by_key(|it| it.1.told);
            oldest.filter(|_| state.open.len() >= MOST_OPEN).map(|it| it.0.clone())
        };
        if let Some(surplus) = surplus {
            self.close(&surplus);
        }
        self.tell_texts(&[(file, text)]);
    }

    /// Has a server that is asked for problems find those of an open file, so that it has read what the file needs by the time that
    /// it changes.
    pub async fn warm(&self, file: &Path, until: Instant) {
        let time = LookTime { until, patience: None };
        if self.ready(time).await.is_err() {
            return;
        }
        let offer = self.shared.state().offer.clone();
        if let Offer::Pull(identifier) = offer {
            self.pulled(file, &identifier, until).await.ok();
        }
    }

    /// Looks at files, which have these texts on the disk; `written`: what has become of files that were changed since they were
    /// last looked at. `held`: open files that keep the text that the server knows.
    pub async fn look(
        &self,
        files: &[(PathBuf, String)],
        written: &[(PathBuf, DiskChange)],
        held: &BTreeSet<PathBuf>,
        time: LookTime,
    ) -> Reports {
        let files: Vec<_> = files
            .iter()
            .map(|(file, text)| (file.as_path(), text.as_str()))
            .collect();
        let Ok(_turn) = timeout_at(time.until, self.overlay.read()).await else {
            return late(&files);
        };
        self.refresh(&files, held);
        let since = Instant::now();
        self.tell_texts(&files);
        self.tell_written(&files, written);
        self.problems(&files, since, written.len() > 1, time).await
    }

    /// Looks at files as they are, then with an overlay, which it takes back: the reports before and after, each with its own end.
    pub async fn preview(
        &self,
        overlay: &Overlay,
        (before_time, after_time): (LookTime, LookTime),
    ) -> (Reports, Reports) {
        let over = overlay.proposed.iter().map(|it| (it.0.as_path(), it.1.as_str()));
        let Ok(_turn) = timeout_at(before_time.until, self.overlay.write()).await else {
            return (Reports::new(), late(&over.collect::<Vec<_>>()));
        };
        let known = |file: &Path| {
            let held = overlay
                .held
                .contains(file)
                .then(|| self.shared.state().open.get(file).map(|it| it.text.to_string()));
            held.flatten().or_else(|| super::text_of(file))
        };
        let texts = |files: &mut dyn Iterator<Item = &PathBuf>| -> Vec<(PathBuf, String)> {
            files.filter_map(|it| Some((it.clone(), known(it)?))).collect()
        };
        let (there, others) = (texts(&mut overlay.proposed.keys()), texts(&mut overlay.others.iter()));
        let there: Vec<_> = there.iter().map(|it| (it.0.as_path(), it.1.as_str())).collect();
        let others = others.iter().map(|it| (it.0.as_path(), it.1.as_str()));
        let all: Vec<_> = there.iter().copied().chain(others.clone()).collect();
        self.refresh(&all, &overlay.held);
        let since = Instant::now();
        self.tell_texts(&all);
        let before = self.problems(&all, since, false, before_time).await;
        let over: Vec<_> = over.collect();
        let since = Instant::now();
        self.tell_texts(&over);
        let all: Vec<_> = over.iter().copied().chain(others).collect();
        let after = self.problems(&all, since, over.len() > 1, after_time).await;
        let is_there = |file: &Path| there.iter().any(|it| it.0 == file);
        self.tell_texts(&there);
        for (file, _) in over.iter().filter(|it| !is_there(it.0)) {
            self.close(file);
        }
        (before, after)
    }

    /// Asks about the symbol at a place of a file. Error: why there is no answer.
    pub async fn ask(
        &self,
        file: &Path,
        text: &str,
        spot: Spot,
        question: &Question,
        until: Instant,
    ) -> Result<Value, String> {
        let name = &self.name;
        let turn = timeout_at(until, self.overlay.read()).await;
        let _turn = turn.map_err(|_| Missing::Late.told(name))?;
        self.refresh(&[(file, text)], &BTreeSet::new());
        self.tell_texts(&[(file, text)]);
        let time = LookTime { until, patience: None };
        self.ready(time).await.map_err(|it| it.told(name))?;
        let encoding = self.shared.state().encoding;
        let at = position::units(text, spot, encoding);
        let mut wish = json!({ "textDocument": { "uri": uri(file) }, "position": at });
        let method = match question {
            Question::Definition => "textDocument/definition",
            Question::References => {
                wish["context"] = json!({ "includeDeclaration": true });
                "textDocument/references"
            }
            Question::Rename { new, .. } => {
                wish["newName"] = new.as_str().into();
                "textDocument/rename"
            }
        };
        loop {
            match self.request(method, wish.clone(), until).await {
                Ok(answer) => return Ok(answer),
                Err(NoAnswer::Refused(error)) if is_busy(&error) && Instant::now() + RETRY < until => {
                    tokio::time::sleep(RETRY).await;
                }
                Err(why) => return Err(self.missing(why).told(name)),
            }
        }
    }

    /// What it means that there is no answer.
    fn missing(&self, why: NoAnswer) -> Missing {
        match why {
            NoAnswer::Late => Missing::Late,
            NoAnswer::Gone => Missing::Gone(self.over().unwrap_or_default()),
            NoAnswer::Refused(error) => Missing::Refused(message(&error)),
        }
    }

    /// The server's own warning about what it misses, which makes its reports incomplete: a sentence without a full stop.
    pub fn warning(&self) -> Option<String> {
        match &self.shared.state().status.health {
            Health::Warning(why) => Some(format!("{} warns: {why}", self.name)),
            Health::Ok | Health::Error(_) => None,
        }
    }

    /// The unit of columns.
    pub fn encoding(&self) -> Encoding {
        self.shared.state().encoding
    }

    /// Brings what is open and neither among `wanted` nor `held` to what the disk has, and closes what is too much.
    fn refresh(&self, wanted: &[(&Path, &str)], held: &BTreeSet<PathBuf>) {
        let mut open: Vec<(PathBuf, Instant)> = {
            let state = self.shared.state();
            let is_kept = |file: &PathBuf| held.contains(file) || wanted.iter().any(|it| it.0 == file.as_path());
            let others = state.open.iter().filter(|(file, _)| !is_kept(file));
            others.map(|(file, it)| (file.clone(), it.told)).collect()
        };
        open.sort_by_key(|it| it.1);
        let surplus = (open.len() + wanted.len() + held.len()).saturating_sub(MOST_OPEN);
        for (at, (file, _)) in open.iter().enumerate() {
            match super::text_of(file).filter(|_| at >= surplus) {
                Some(text) => self.tell_texts(&[(file, &text)]),
                None => self.close(file),
            }
        }
    }

    fn tell_texts(&self, files: &[(&Path, &str)]) {
        for (file, text) in files {
            let message = {
                let mut state = self.shared.state();
                let now = Instant::now();
                let version = || self.next.fetch_add(1, Ordering::Relaxed);
                match state.open.get_mut(*file) {
                    Some(open) if *open.text == **text => None,
                    Some(open) => {
                        open.version = version();
                        open.text = (*text).into();
                        open.told = now;
                        Some((
                            "textDocument/didChange",
                            json!({
                                "textDocument": { "uri": uri(file), "version": open.version },
                                "contentChanges": [{ "text": text }],
                            }),
                        ))
                    }
                    None => {
                        let version = version();
                        let open = Open {
                            version,
                            text: (*text).into(),
                            told: now,
                            pulled: None,
                        };
                        state.open.insert(file.to_path_buf(), open);
                        let about = json!({
                            "uri": uri(file), "languageId": language_id(file), "version": version, "text": text,
                        });
                        Some(("textDocument/didOpen", json!({ "textDocument": about })))
                    }
                }
            };
            if let Some((method, parameters)) = message {
                self.notify(method, parameters);
            }
        }
    }

    fn close(&self, file: &Path) {
        let was_open = {
            let mut state = self.shared.state();
            state.published.remove(file);
            state.open.remove(file).is_some()
        };
        if was_open {
            self.notify("textDocument/didClose", json!({ "textDocument": { "uri": uri(file) } }));
        }
    }

    /// Says what has become of files on the disk; those of which `texts` has none are closed.
    fn tell_written(&self, texts: &[(&Path, &str)], written: &[(PathBuf, DiskChange)]) {
        for (file, _) in written {
            if texts.iter().any(|it| it.0 == file.as_path()) {
                let about = json!({ "textDocument": { "uri": uri(file) } });
                self.notify("textDocument/didSave", about);
            } else {
                self.close(file);
            }
        }
        self.tell_disk(written);
    }

    /// The problems of files that are open and were told `since`, or before; `is_joint`: several of them were changed. All are
    /// waited for at the same time.
    async fn problems(&self, files: &[(&Path, &str)], since: Instant, is_joint: bool, time: LookTime) -> Reports {
        if files.is_empty() {
            return Reports::new();
        }
        if let Err(missing) = self.ready(time).await {
            let missing = |it: &(&Path, &str)| (it.0.to_owned(), Err(missing.clone()));
            return files.iter().map(missing).collect();
        }
        let offer = self.shared.state().offer.clone();
        let encoding = self.encoding();
        let look = async |file: &Path, text: &str| {
            let items = match &offer {
                Offer::Pull(identifier) => self.pulled(file, identifier, time.until).await,
                Offer::Tsserver => self.asked_of_tsserver(file, time.until).await,
                Offer::Reports => self.settled(file, since, is_joint, time.until).await,
            };
            let found = items.map(|it| diagnostic::placed(&it, file, text, encoding, &self.name));
            (file.to_owned(), found)
        };
        let looks: Vec<_> = files.iter().map(|(file, text)| look(file, text)).collect();
        // What reports by itself is only waited for.
        let at_once = if offer == Offer::Reports {
            looks.len()
        } else {
            MOST_ASKED
        };
        futures::stream::iter(looks).buffer_unordered(at_once).collect().await
    }

    /// The report of a server that reports by itself. What was not told `since` then is reported after what was, if at all: an older
    /// report says nothing about what was told since.
    async fn settled(&self, file: &Path, since: Instant, is_joint: bool, until: Instant) -> Result<Vec<Item>, Missing> {
        let (is_told, last) = {
            let state = self.shared.state();
            let is_told = state.open.get(file).is_some_and(|it| it.told >= since);
            (is_told, state.told.unwrap_or(since))
        };
        if !is_told {
            let settled = last + SETTLE;
            tokio::time::sleep_until(until.min(settled)).await;
            let state = self.shared.state();
            // Where nothing has changed, an older one still holds.
            let is_current = last < since || state.published.get(file).is_some_and(|it| it.at >= since);
            if settled > until || !is_current {
                return Err(Missing::Late);
            }
        }
        // A report without a version may be of an earlier text until something that was sent behind the last one is answered.
        let heard = async {
            let answer = self.request(HEARD, Value::Null, until).await;
            matches!(answer, Ok(_) | Err(NoAnswer::Refused(_)))
        };
        let found = tokio::select! {
            found = self.pushed(file, (is_joint, true), until) => found,
            is_heard = heard => {
                if is_heard {
                    self.pushed(file, (is_joint, false), until).await
                } else {
                    None
                }
            }
        };
        found.ok_or_else(|| self.late())
    }

    /// The reason why nothing has come by the end of the time.
    fn late(&self) -> Missing {
        self.over().map_or(Missing::Late, Missing::Gone)
    }

    /// Asks for the problems of a file, again where the server is busy.
    async fn pulled(&self, file: &Path, identifier: &Value, until: Instant) -> Result<Vec<Item>, Missing> {
        loop {
            let known = self.shared.state().open.get(file).and_then(|it| it.pulled.clone());
            let mut wish = json!({ "textDocument": { "uri": uri(file) } });
            if !identifier.is_null() {
                wish["identifier"] = identifier.clone();
            }
            if let Some((id, _)) = &known {
                wish["previousResultId"] = id.clone();
            }
            let nonsense = || Missing::Refused(REPORT_UNREADABLE.to_owned());
            match self.request("textDocument/diagnostic", wish, until).await {
                Ok(answer) if answer["kind"] == "unchanged" => return known.map(|it| it.1).ok_or_else(nonsense),
                Ok(mut answer) => {
                    // Anything else is no answer.
                    let Value::Array(items) = taken(&mut answer, "items") else {
                        return Err(nonsense());
                    };
                    let items = Item::read_all(&items);
                    let id = taken(&mut answer, "resultId");
                    if let Some(open) = self.shared.state().open.get_mut(file) {
                        open.pulled = id.is_string().then(|| (id, items.clone()));
                    }
                    return Ok(items);
                }
                Err(NoAnswer::Refused(error)) if is_busy(&error) => {
                    if Instant::now() + RETRY >= until {
                        return Err(Missing::Late);
                    }
                    tokio::time::sleep(RETRY).await;
                }
                Err(why) => return Err(self.missing(why)),
            }
        }
    }

    /// Asks TypeScript's own server, behind the language server, for the problems of a file as it is.
    async fn asked_of_tsserver(&self, file: &Path, until: Instant) -> Result<Vec<Item>, Missing> {
        let mut items = Vec::new();
        for command in ["syntacticDiagnosticsSync", "semanticDiagnosticsSync"] {
            let wish = json!({
                "command": TSSERVER_REQUEST,
                "arguments": [command, { "file": file.to_string_lossy() }],
            });
            let answer = self.request("workspace/executeCommand", wish, until).await;
            let mut answer = answer.map_err(|it| self.missing(it))?;
            let Value::Array(found) = taken(&mut answer, "body") else {
                return Err(Missing::Refused(REPORT_UNREADABLE.to_owned()));
            };
            items.extend(Item::read_all_of_tsserver(&found));
        }
        Ok(items)
    }

    /// Waits for a report of a file as it is; with `needs_version` for one that says so itself.
    async fn pushed(&self, file: &Path, (is_joint, needs_version): (bool, bool), until: Instant) -> Option<Vec<Item>> {
        let found = self.wait(until, |state| {
            let open = state.open.get(file)?;
            let published = state.published.get(file).filter(|it| it.at >= open.told)?;
            if published.version.map_or(needs_version, |it| it != open.version) {
                return None;
            }
            // Another may be on its way.
            let is_sure = published.version.is_some() && !is_joint;
            if !is_sure && published.at + QUIET > Instant::now() {
                return Some(Err(published.at + QUIET));
            }
            Some(Ok(published.items.clone()))
        });
        found.await
    }

    /// Waits until `look` finds something; `Some(Err(time))`: it is to be looked at again then. `None`: the time is over, or the
    /// connection.
    async fn wait<T>(&self, until: Instant, look: impl Fn(&State) -> Option<Result<T, Instant>>) -> Option<T> {
        let mut news = self.shared.news.subscribe();
        loop {
            news.borrow_and_update();
            let again = {
                let state = self.shared.state();
                if state.over.is_some() {
                    return None;
                }
                match look(&state) {
                    Some(Ok(found)) => return Some(found),
                    Some(Err(again)) => again.min(until),
                    None => until,
                }
            };
            if timeout_at(again, news.changed()).await.is_err() && Instant::now() >= until {
                return None;
            }
        }
    }

    async fn request(&self, method: &str, parameters: Value, until: Instant) -> Result<Value, NoAnswer> {
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        let since = Instant::now();
        let until = if self.is_silent() {
            until.min(since + SILENT_PATIENCE)
        } else {
            until
        };
        let (send, answer) = oneshot::channel();
        {
            let mut state = self.shared.state();
            if state.over.is_some() {
                return Err(NoAnswer::Gone);
            }
            state.waiting.insert(id, send);
        }
        let mut message = json!({ "jsonrpc": "2.0", "id": id, "method": method });
        if !parameters.is_null() {
            message["params"] = parameters;
        }
        if !self.shared.send(&self.out, &message) {
            return Err(NoAnswer::Gone);
        }
        let answered = timeout_at(until, answer).await;
        self.shared.state().waiting.remove(&id);
        match answered {
            Ok(Ok(Ok(result))) => Ok(result),
            Ok(Ok(Err(error))) => Err(NoAnswer::Refused(error)),
            Ok(Err(_)) => Err(NoAnswer::Gone),
            Err(_) => {
                self.notify("$/cancelRequest", json!({ "id": id }));
                self.note_silence(since);
                Err(NoAnswer::Late)
            }
        }
    }

    /// Returns true if a request was not answered in a long time, and nothing has come since it was sent.
    fn is_silent(&self) -> bool {
        let heard = *self.shared.news.borrow();
        let silent = self.silent.lock().unwrap_or_else(PoisonError::into_inner);
        silent.is_some_and(|it| it > heard && it.elapsed() >= LONG_SILENCE)
    }

    /// A request of this time was not answered: gives the server up if it has been silent for long.
    fn note_silence(&self, since: Instant) {
        let heard = *self.shared.news.borrow();
        let mut silent = self.silent.lock().unwrap_or_else(PoisonError::into_inner);
        *silent = silent.or(Some(since)).filter(|it| *it > heard);
        if silent.is_some_and(|it| it.elapsed() >= SILENCE) {
            self.shared.end("it answers nothing");
        }
    }

    fn notify(&self, method: &str, parameters: Value) {
        if method.starts_with("textDocument/did") || method == "workspace/didChangeWatchedFiles" {
            self.shared.state().told = Some(Instant::now());
        }
        let mut message = json!({ "jsonrpc": "2.0", "method": method });
        if !parameters.is_null() {
            message["params"] = parameters;
        }
        self.shared.send(&self.out, &message);
    }
}

/// The reports of files that nothing was heard of in time.
fn late(files: &[(&Path, &str)]) -> Reports {
    let late = |it: &(&Path, &str)| (it.0.to_owned(), Err(Missing::Late));
    files.iter().map(late).collect()
}

/// The errors ServerCancelled, ContentModified and RequestCancelled: it has other work to do first.
fn is_busy(error: &Value) -> bool {
    matches!(error["code"].as_i64(), Some(-32802..=-32800))
}

/// A member of a value; null where there is none.
fn taken(value: &mut Value, name: &str) -> Value {
    value.get_mut(name).map(Value::take).unwrap_or_default()
}

/// Everything that we can do with what a server has.
fn capabilities() -> Value {
    json!({
        "general": { "positionEncodings": ["utf-8", "utf-16"] },
        "window": { "workDoneProgress": true },
        "workspace": {
            "configuration": true,
            "workspaceFolders": true,
            "didChangeWatchedFiles": { "dynamicRegistration": true },
            "diagnostics": { "refreshSupport": true },
        },
        "textDocument": {
            "synchronization": { "didSave": true },
            "publishDiagnostics": { "versionSupport": true, "relatedInformation": true },
            "diagnostic": { "dynamicRegistration": true, "relatedDocumentSupport": false },
        },
        "experimental": { "serverStatusNotification": true },
    })
}

async fn write(mut input: impl AsyncWrite + Unpin, mut to_write: mpsc::Receiver<Vec<u8>>, shared: Arc<Shared>) {
    while let Some(bytes) = to_write.recv().await {
        if input.write_all(&bytes).await.is_err() || input.flush().await.is_err() {
            return;
        }
        shared.waiting_bytes.fetch_sub(bytes.len(), Ordering::Relaxed);
    }
}

async fn keep_errors(mut errors: impl AsyncRead + Unpin, shared: Arc<Shared>) {
    let mut piece = [0; 4096];
    while let Ok(count) = errors.read(&mut piece).await {
        let Some(read) = piece.get(..count).filter(|it| !it.is_empty()) else {
            return;
        };
        let mut state = shared.state();
        state.errors.push_str(&String::from_utf8_lossy(read));
        let surplus = state.errors.len().saturating_sub(KEPT_ERRORS);
        let start = state.errors.ceil_char_boundary(surplus);
        state.errors.drain(..start);
    }
}

async fn read(output: impl AsyncRead + Unpin, out: mpsc::WeakSender<Vec<u8>>, shared: Arc<Shared>) {
    let mut output = BufReader::new(output);
    loop {
        let message = match wire::read(&mut output).await {
            Ok(Some(message)) => message,
            Ok(None) => return shared.end("it has ended"),
            Err(error) => return shared.end(&error.to_string()),
        };
        if let Some(answer) = shared.take(message)
            && let Some(out) = out.upgrade()
            && !shared.send(&out, &answer)
        {
            return;
        }
        shared.tell();
    }
}

impl Shared {
    /// Takes a message; returns the answer to a request.
    fn take(&self, mut message: Value) -> Option<Value> {
        let Value::String(method) = taken(&mut message, "method") else {
            self.take_answer(message);
            return None;
        };
        let parameters = taken(&mut message, "params");
        if message.get("id").is_none_or(Value::is_null) {
            self.take_notification(&method, parameters);
            return None;
        }
        let result = match method.as_str() {
            "workspace/configuration" => {
                let items = parameters["items"].as_array().map_or(0, Vec::len).min(100);
                Ok(self.configuration(&parameters, items))
            }
            "client/registerCapability" => {
                let all = parameters["registrations"].as_array();
                let pull = all
                    .into_iter()
                    .flatten()
                    .find(|it| it["method"] == "textDocument/diagnostic");
                if let Some(it) = pull {
                    self.state().offer = Offer::Pull(it["registerOptions"]["identifier"].clone());
                }
                Ok(Value::Null)
            }
            "workspace/workspaceFolders" => Ok(self.folders.clone()),
            "workspace/applyEdit" => Ok(json!({ "applied": false })),
            "client/unregisterCapability" | "window/workDoneProgress/create" | "window/showMessageRequest" => {
                Ok(Value::Null)
            }
            method if method.starts_with("workspace/") && method.ends_with("/refresh") => Ok(Value::Null),
            _ => Err(json!({ "code": -32601, "message": "sheaf does not know this method" })),
        };
        let mut answer = json!({ "jsonrpc": "2.0", "id": taken(&mut message, "id") });
        match result {
            Ok(result) => answer["result"] = result,
            Err(error) => answer["error"] = error,
        }
        Some(answer)
    }

    /// The sections that a server asks for: of its `initializationOptions` what has the name of the section, else nothing.
    fn configuration(&self, parameters: &Value, count: usize) -> Value {
        let section = |at: usize| {
            let name = parameters["items"][at]["section"].as_str()?;
            let found = name
                .split('.')
                .try_fold(&self.initialization, |value, part| value.get(part));
            found.cloned()
        };
        (0..count).map(|at| section(at).unwrap_or_default()).collect()
    }

    fn take_answer(&self, mut message: Value) {
        let Some(id) = message["id"].as_i64() else { return };
        let Some(waiting) = self.state().waiting.remove(&id) else {
            return;
        };
        let answer = match message.get_mut("error").map(Value::take) {
            Some(error) if !error.is_null() => Err(error),
            _ => Ok(taken(&mut message, "result")),
        };
        waiting.send(answer).ok();
    }

    fn take_notification(&self, method: &str, parameters: Value) {
        let mut state = self.state();
        match method {
            "textDocument/publishDiagnostics" => {
                let Some(file) = path(&parameters["uri"]) else { return };
                let version = parameters["version"].as_i64();
                // Only what is open is asked about, and what is older than what it was told says nothing about it.
                let is_wanted = |it: &Open| version.is_none_or(|version| version >= it.version);
                if !state.open.get(&file).is_some_and(is_wanted) {
                    return;
                }
                let items = parameters["diagnostics"].as_array();
                let items = items.map(|it| Item::read_all(it)).unwrap_or_default();
                let at = Instant::now();
                state.published.insert(file, Published { version, at, items });
            }
            "$/progress" => {
                let token = parameters["token"].to_string();
                match parameters["value"]["kind"].as_str() {
                    Some("begin") if state.progress.len() < MOST_TASKS && token.len() <= TASK_BYTES => {
                        state.progress.insert(token);
                    }
                    Some("end") => {
                        state.progress.remove(&token);
                    }
                    _ => {}
                }
                state.note_reading();
            }
            "experimental/serverStatus" => {
                let why = || message(&parameters);
                state.status.is_quiescent = parameters["quiescent"].as_bool();
                state.status.health = match parameters["health"].as_str() {
                    Some("error") => Health::Error(why()),
                    Some("warning") => Health::Warning(why()),
                    _ => Health::Ok,
                };
                state.note_reading();
            }
            _ => {}
        }
    }
}

/// The words of an error.
fn message(error: &Value) -> String {
    line(error["message"].as_str().unwrap_or_default())
}

/// What a server says, as one line without control characters or a full stop, cut.
fn line(text: &str) -> String {
    let line = Sanitized::line(text);
    line.trim_end_matches(['.', ' ']).chars().take(REFUSAL_CHARS).collect()
}

#[cfg(test)]
mod tests;
