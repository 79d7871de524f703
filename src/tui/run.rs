//! The loop: waits for keys, events and outcomes, lets `update` change the state, draws, carries effects out.
//!
//! A key is drawn at once. Entries of the log are gathered for a frame, unless the last frame is older than that. When
//! the terminal is slower than we are, frames are left out; nothing is ever queued for it.

use std::{
    collections::VecDeque,
    io,
    path::{Path, PathBuf},
    pin::pin,
    sync::Arc,
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

use tokio::{
    signal::unix::{SignalKind, signal},
    sync::mpsc,
};

use super::{
    app::{App, Asking, Citation, Composer, Focus, Mouse, Themes, Where},
    attention::{Attention, State, Way},
    custom,
    effect::Effect,
    input::{Burst, Input, Parser, gather},
    keep,
    keymap::Keymap,
    library::Library,
    msg::{Msg, Outcome},
    pace::Pace,
    paint::Screen,
    pane::Pane,
    picture::{self, Source},
    places,
    tty::{self, Tty, Wishes},
    update::update,
    view::Layout,
};
use crate::{
    config::{self, Ledger, Paths, Place, Print, Problem, Settings},
    journal::Follower,
    link::Link,
    os::{clipboard, file, panic, process, resident},
    protocol::{Command, Entry, Message, Mode, Position, Query, Reply, Restoration, Submit},
    text::{Clean, highlight::Highlighter, redact::redact},
    theme,
    transcript::Transcript,
};

/// So long the user's command for the header may take.
const STATUS_PATIENCE: Duration = Duration::from_secs(5);
/// So long after the first frame the start is over.
const SETTLED: Duration = Duration::from_secs(2);

/// An Esc that stands alone for so long was the key.
const ESCAPE: Duration = Duration::from_millis(25);

/// Entries are applied for so long before keys are looked at again.
const SLICE: Duration = Duration::from_millis(4);

/// A file that is cited is read up to this size.
const CITED_BYTES: u64 = 2 << 20;

/// A draft that has not been changed for so long is written down.
const DRAFT_REST: Duration = Duration::from_secs(1);

/// So many messages can be had again.
const MOST_RECALLED: usize = 1000;

/// What the screen is started with.
pub struct Setup {
    pub link: Arc<dyn Link>,
    /// Links that take the place of the first one.
    pub switch: mpsc::UnboundedReceiver<Arc<dyn Link>>,
    pub settings: Settings,
    pub paths: Paths,
    pub workspace: PathBuf,
    pub problems: Vec<Problem>,
    pub mode: Mode,
    /// Sent as the first message.
    pub prompt: Option<String>,
    pub is_developer: bool,
    /// What is written and sent is remembered for the next time.
    pub keeps: bool,
    /// The conversations that there are; none where there is only the one.
    pub library: Option<Arc<dyn Library>>,
}

/// Why the screen could not start or go on.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("standard output is no terminal\nsheaf -p answers without one")]
    NoTerminal(#[source] io::Error),
    #[error("signals cannot be listened to")]
    NoSignals(#[source] io::Error),
}

/// Runs the screen until the user leaves it; returns the exit code.
pub async fn run(setup: Setup) -> Result<u8, Error> {
    let mut out = Vec::with_capacity(16 * 1024);
    let tmux = std::env::var_os("TMUX").is_some();
    tty::guard_against_faults();
    give_back_on_panic(setup.paths.state.clone());
    // Before the terminal is taken over: a signal that came between the two would end us and leave it as it is.
    let signals = Signals::new().map_err(Error::NoSignals)?;
    let tty = Tty::open(
        Wishes {
            mouse: if setup.settings.mouse { Mouse::Full } else { Mouse::Off },
            tmux,
        },
        &mut out,
    )
    .map_err(Error::NoTerminal)?;
    Tty::ask(&mut out);
    let size = tty.size().unwrap_or((80, 24));
    let (wakes, woken) = mpsc::unbounded_channel();
    let waker = wakes.clone();
    let colours = Arc::new(Highlighter::new(Some(Arc::new(move || {
        let _ = waker.send(Wake::Colours);
    }))));
    let mut session = Session {
        app: app(&setup, size, Arc::clone(&colours)),
        screen: Screen::new(size.0, size.1),
        follower: watched(&setup.link),
        tty,
        out,
        paths: setup.paths,
        outcomes: mpsc::unbounded_channel(),
        backlog: VecDeque::new(),
        exit: None,
        is_back: false,
        has_sent: false,
        draft_seen: 0,
        has_kept_draft: false,
        keeps: setup.keeps,
        attention: Attention::new(Way::of(&setup.settings.ui.notify, |name| std::env::var(name).ok())),
        library: setup.library,
        wakes: wakes.clone(),
    };
    session.take_up();
    session.draft_seen = session.app.composer.field.version();
    session.screen.links = session.app.settings.links;
    session.draw();
    if let Some(text) = setup.prompt {
        let submit = Submit {
            message: Message::user(text),
            mode: session.app.mode,
            model: None,
        };
        session.app.link.send(Command::Submit(submit));
    }
    tokio::spawn(async {
        tokio::time::sleep(SETTLED).await;
        resident::give_back();
    });
    forward(signals, setup.switch, &wakes);
    // As a task of its own, because waking the future that `block_on` runs costs a system call each time.
    let ended = tokio::spawn(async move {
        session.go(wakes, woken, colours).await;
        session.exit.unwrap_or_default()
    });
    match ended.await {
        Ok(code) => Ok(code),
        Err(error) if error.is_panic() => std::panic::resume_unwind(error.into_panic()),
        Err(_) => Ok(0),
    }
}

/// Follows a link, and keeps what comes for the inspector.
fn watched(link: &Arc<dyn Link>) -> Follower {
    link.log().watch();
    link.log().follow(Position(0))
}

fn app(setup: &Setup, size: (u16, u16), colours: Arc<Highlighter>) -> App {
    let settings = setup.settings.clone();
    let surroundings = theme::Surroundings::of(|name| std::env::var(name).ok());
    let seen = theme::Seen {
        reported: None,
        remembered: theme::recall(&setup.paths.state),
    };
    let themes = Themes {
        names: theme::names(&setup.paths.themes()),
        chosen: settings.theme.clone(),
        folder: setup.paths.themes(),
        seen,
        surroundings,
    };
    let mut keymap = Keymap::built_in();
    let mut problems: Vec<_> = setup.problems.iter().map(ToString::to_string).collect();
    problems.extend(keymap.load(&setup.paths.keymap()).iter().map(ToString::to_string));
    if themes.chosen != "auto" {
        let asked = settings.origin("theme").place.clone();
        let asked = asked.unwrap_or_else(|| Place::Variable("SHEAF_THEME".to_owned()));
        let (_, wrong) = theme::load(&themes.chosen, &themes.folder, &asked);
        problems.extend(wrong.iter().map(ToString::to_string));
    }
    // The page that stands where no conversation is shows them whole; there may be a conversation at once.
    let toast = match problems.len() {
        0 => None,
        1 => Some("the settings have a problem: /problems".to_owned()),
        n => Some(format!("the settings have {n} problems: /problems")),
    };
    let mut composer = Composer::default();
    composer.field.vim = settings.ui.vim.then(super::vim::Vim::default);
    App {
        about: setup.link.about(),
        link: Arc::clone(&setup.link),
        transcript: Transcript::default(),
        pane: Pane::default(),
        composer,
        focus: Focus::Composer,
        layers: Vec::new(),
        mode: setup.mode,
        model: None,
        effort: None,
        status: super::status::Status::new(settings.ui.status_command.clone().unwrap_or_default()),
        place: place(&setup.workspace),
        asking: Asking::default(),
        toast,
        theme: themes.resolve(settings.color),
        themes,
        keymap,
        show_thinking: settings.ui.thinking == "shown",
        show_times: false,
        search: None,
        selection: None,
        lights: Vec::new(),
        mouse: if settings.mouse { Mouse::Full } else { Mouse::Off },
        settings,
        now_ms: now_ms(),
        size,
        last_interrupt_ms: 0,
        is_developer: setup.is_developer,
        look_version: 1,
        colours,
        colours_version: 1,
        has_keyboard_protocol: false,
        problems,
        layout: Layout::default(),
        chrome: None,
        is_unstored: false,
        aside: Vec::new(),
    }
}

struct Session {
    app: App,
    screen: Screen,
    follower: Follower,
    tty: Tty,
    /// Bytes that the terminal has not taken yet.
    out: Vec<u8>,
    paths: Paths,
    outcomes: (mpsc::UnboundedSender<Outcome>, mpsc::UnboundedReceiver<Outcome>),
    /// Entries that are read and not applied yet.
    backlog: VecDeque<Arc<Entry>>,
    exit: Option<u8>,
    /// The draft's version that was looked at last, and whether a file holds one.
    draft_seen: u64,
    has_kept_draft: bool,
    /// What is written and sent is remembered.
    keeps: bool,
    /// Continued after a stop of our own, of which the signal is still to come.
    is_back: bool,
    /// A command has gone out since the last look at others.
    has_sent: bool,
    library: Option<Arc<dyn Library>>,
    wakes: mpsc::UnboundedSender<Wake>,
    attention: Attention,
}

impl Session {
    async fn go(
        &mut self,
        wakes: mpsc::UnboundedSender<Wake>,
        mut woken: mpsc::UnboundedReceiver<Wake>,
        colours: Arc<Highlighter>,
    ) {
        let mut parser = Parser::default();
        let mut inputs = Vec::new();
        let mut burst = Burst::default();
        let mut buffer = vec![0; 16 * 1024];
        let mut batch = Vec::new();
        let mut pace = Pace::start(Instant::now());
        let mut escape_at: Option<Instant> = None;
        let mut draft_at: Option<Instant> = None;
        let mut tick: Option<(u64, Instant)> = None;
        // One sleep for all that is waited for: making a new one for each turn of the loop would wake the timer each time.
        let mut sleep = pin!(tokio::time::sleep(Duration::ZERO));
        let mut sleeps_until: Option<Instant> = None;
        // What holds commands is found out beside us, and the header says it.
        self.tell_hold(&wakes);
        // Something new is not on the screen yet; a key's doing does not wait for the frame.
        let (mut dirty, mut urgent) = (false, false);
        while self.exit.is_none() {
            // Whoever obeys a command lives on this thread: it comes before the frame, which may take its time.
            if std::mem::take(&mut self.has_sent) {
                tokio::task::yield_now().await;
            }
            if self.apply_slice() {
                dirty = true;
            }
            let due = pace.due();
            if dirty && !self.tty.is_full() && (urgent || Instant::now() >= due) {
                let began = Instant::now();
                self.draw();
                pace.drawn(began, Instant::now());
                (dirty, urgent) = (false, false);
            }
            let tick_ms = self.next_tick();
            if tick.map(|it| it.0) != tick_ms {
                tick = tick_ms.map(|at| (at, Instant::now() + Duration::from_millis(at.saturating_sub(now_ms()))));
            }
            let version = self.app.composer.field.version();
            if version != self.draft_seen {
                self.draft_seen = version;
                draft_at = Some(Instant::now() + DRAFT_REST);
            }
            // Colours that nobody asks for any more.
            let look_at = colours.look_at();
            let frame_at = (dirty && !self.tty.is_full()).then_some(due);
            let next = [draft_at, escape_at, look_at, frame_at, tick.map(|it| it.1)];
            let next = next.into_iter().flatten().min();
            if next != sleeps_until {
                sleeps_until = next;
                if let Some(at) = next {
                    sleep.as_mut().reset(at.into());
                }
            }
            // All of this is polled with each token: what seldom happens is told by tasks, through one door.
            tokio::select! {
                biased;
                read = self.tty.read(&mut buffer) => {
                    match read {
                        Ok(0) | Err(_) => {
                            // Nobody is there any more.
                            tty::abandon();
                            self.exit = Some(129);
                        }
                        Ok(n) => {
                            parser.push(buffer.get(..n).unwrap_or_default(), &mut inputs);
                            gather(&mut inputs, &mut burst, now_ms());
                            escape_at = parser.is_waiting().then(|| Instant::now() + ESCAPE);
                            self.take_inputs(&mut inputs).await;
                            (dirty, urgent) = (true, true);
                        }
                    }
                }
                Some(wake) = woken.recv() => {
                    match wake {
                        Wake::Signal(signal) => {
                            self.on_signal(signal).await;
                            (dirty, urgent) = (true, true);
                        }
                        Wake::Link(link) => {
                            self.follower = watched(&link);
                            self.backlog.clear();
                            if let Some(folder) = link.about().workspace {
                                self.app.place = place(&folder);
                            }
                            self.handle(Msg::Switch(link)).await;
                            self.tell_hold(&wakes);
                            (dirty, urgent) = (true, true);
                        }
                        Wake::Colours => {
                            if !colours.take_ready().is_empty() {
                                self.handle(Msg::Colours).await;
                                dirty = true;
                            }
                        }
                        Wake::Held => {
                            self.app.chrome = None;
                            dirty = true;
                        }
                    }
                }
                ready = self.tty.writable(), if self.tty.is_full() => {
                    if ready.is_err() || self.tty.write(&mut self.out).is_err() {
                        tty::abandon();
                        self.exit = Some(129);
                    }
                }
                Some(outcome) = self.outcomes.1.recv() => {
                    self.handle(Msg::Done(outcome)).await;
                    (dirty, urgent) = (true, true);
                }
                // Keys are only seen when the thread has looked for them.
                () = tokio::task::yield_now(), if !self.backlog.is_empty() => {}
                more = self.follower.next(&mut batch), if self.backlog.is_empty() => {
                    self.backlog.extend(batch.drain(..));
                    if !more {
                        // A closed log stays closed: nothing will come from it.
                        self.follower = crate::journal::Log::new().follow(Position(0));
                    }
                }
                () = &mut sleep, if sleeps_until.is_some() => {
                    sleeps_until = None;
                    let now = Instant::now();
                    let is_over = |at: Option<Instant>| at.is_some_and(|it| it <= now);
                    if is_over(draft_at) {
                        draft_at = None;
                        self.keep_draft();
                    }
                    if is_over(escape_at) {
                        escape_at = None;
                        parser.flush(&mut inputs);
                        self.take_inputs(&mut inputs).await;
                        (dirty, urgent) = (true, true);
                    }
                    if is_over(look_at) && colours.look_after() {
                        self.handle(Msg::Colours).await;
                        dirty = true;
                    }
                    if is_over(tick.map(|it| it.1)) {
                        tick = None;
                        self.handle(Msg::Tick).await;
                        dirty = true;
                    }
                }
            }
        }
        tty::leave();
        self.keep_draft();
    }

    /// Looks something up among the conversations, beside us.
    fn read(&self, look: impl FnOnce(&dyn Library) -> Outcome + Send + 'static) {
        let send = self.outcomes.0.clone();
        let library = self.library.clone();
        tokio::task::spawn_blocking(move || {
            let outcome = match library {
                Some(library) => look(library.as_ref()),
                None => Outcome::Failed("there is only this conversation here".to_owned()),
            };
            let _ = send.send(outcome);
        });
    }

    /// Puts another conversation in the place of this one.
    fn open(&self, open: impl FnOnce(&dyn Library) -> Result<Arc<dyn Link>, String> + Send + 'static) {
        let wakes = self.wakes.clone();
        let failed = self.outcomes.0.clone();
        let library = self.library.clone();
        tokio::task::spawn_blocking(move || {
            let opened = match library {
                Some(library) => open(library.as_ref()),
                None => Err("there is only this conversation here".to_owned()),
            };
            match opened {
                Ok(link) => drop(wakes.send(Wake::Link(link))),
                Err(why) => drop(failed.send(Outcome::Failed(why))),
            }
        });
    }

    /// Has us woken when it is known what holds the commands of the link.
    fn tell_hold(&self, wakes: &mpsc::UnboundedSender<Wake>) {
        let hold = self.app.about.hold.clone();
        let wakes = wakes.clone();
        let mut known = hold.known();
        tokio::spawn(async move {
            // The user may change it.
            loop {
                hold.clone().wait(known).await;
                known = hold.known();
                if wakes.send(Wake::Held).is_err() {
                    return;
                }
            }
        });
    }

    /// Writes down what is not sent yet, so that it is there again whatever becomes of us.
    fn keep_draft(&mut self) {
        if !self.keeps {
            return;
        }
        let field = &self.app.composer.field;
        let draft = (!field.is_empty()).then(|| field.stored());
        if draft.is_none() && !self.has_kept_draft {
            return;
        }
        self.has_kept_draft = draft.is_some();
        let kept = keep::keep_draft(&self.paths.state, &self.app.place.workspace, draft.as_ref());
        if let Err(why) = kept {
            tracing::warn!("the draft is not kept: {why}");
        }
    }

    /// Takes up what was left behind: the draft, and what was sent before.
    fn take_up(&mut self) {
        let (state, workspace) = (self.paths.state.clone(), self.app.place.workspace.clone());
        if !self.keeps {
            return;
        }
        if let Some(draft) = keep::take_draft(&state, &workspace) {
            self.app.composer.field.restore(&draft);
            self.has_kept_draft = true;
        }
        let send = self.outcomes.0.clone();
        tokio::task::spawn_blocking(move || {
            let texts = keep::history(&state, Some(&workspace), MOST_RECALLED);
            let _ = send.send(Outcome::History {
                texts,
                is_everywhere: false,
            });
        });
    }

    /// Applies entries for a short while; whether there were any.
    fn apply_slice(&mut self) -> bool {
        if self.backlog.is_empty() {
            return false;
        }
        self.app.now_ms = now_ms();
        let until = Instant::now() + SLICE;
        while !self.backlog.is_empty() && Instant::now() < until {
            let count = self.backlog.len().min(64);
            let entries: Vec<_> = self.backlog.drain(..count).collect();
            for effect in update(&mut self.app, Msg::Entries(entries)) {
                self.spawn(effect);
            }
        }
        true
    }

    async fn take_inputs(&mut self, inputs: &mut Vec<Input>) {
        for input in inputs.drain(..) {
            if let Input::Focus(has_focus) = input {
                self.attention.focus(has_focus);
                continue;
            }
            self.handle(Msg::Input(input)).await;
        }
    }

    async fn handle(&mut self, msg: Msg) {
        self.app.now_ms = now_ms();
        for effect in update(&mut self.app, msg) {
            self.carry_out(effect).await;
        }
    }

    /// Effects that need the terminal are done here and now; the rest goes its own way.
    async fn carry_out(&mut self, effect: Effect) {
        match effect {
            Effect::Suspend => self.suspend(),
            Effect::Redraw => self.screen.forget(),
            Effect::Print(text) => {
                // The other screen is the one that scrolls; what is shown here is drawn anew afterwards.
                self.out.extend_from_slice(b"\x1b[?1049l\x1b[m");
                self.out.extend_from_slice(text.as_bytes());
                self.out.extend_from_slice(b"\x1b[?1049h");
                self.screen.forget();
            }
            Effect::AskColours => Tty::ask_colours(&mut self.out),
            Effect::Mouse(mouse) => self.tty.use_mouse(mouse, &mut self.out),
            Effect::EditDraft(text) => {
                let outcome = self.edit_draft(&text).await;
                Box::pin(self.handle(Msg::Done(Outcome::Edited(outcome)))).await;
            }
            Effect::EditChip(text) => {
                let outcome = self.edit_draft(&text).await;
                Box::pin(self.handle(Msg::Done(Outcome::ChipEdited(outcome)))).await;
            }
            Effect::EditPlan { turn, document, text } => {
                let text = self.edit_draft(&text).await;
                let outcome = Outcome::PlanEdited { turn, document, text };
                Box::pin(self.handle(Msg::Done(outcome))).await;
            }
            Effect::OpenFile { path, line } => {
                if let Err(why) = self.open_file(&path, line).await {
                    Box::pin(self.handle(Msg::Done(Outcome::Failed(why)))).await;
                } else {
                    let reply = self.app.link.ask(Query::Opened(path));
                    // Whoever does not care says so, and nobody minds.
                    tokio::spawn(reply);
                }
            }
            other => self.spawn(other),
        }
    }

    fn spawn(&mut self, effect: Effect) {
        let send = self.outcomes.0.clone();
        match effect {
            Effect::Send(command) => {
                self.app.link.send(command);
                self.has_sent = true;
            }
            Effect::Quit(code) => self.exit = Some(code),
            Effect::Copy { text, what } => {
                // What is pasted from it may go to a shell.
                let text = Clean::new(&text).to_string();
                let folder = self.paths.state.clone();
                // OSC 52 has to go through our own door to the terminal, in one piece.
                let around = clipboard::Surroundings::read();
                tokio::spawn(async move {
                    let outcome = match clipboard::copy(&text, &around, &folder).await {
                        Ok(clipboard::Way::Terminal(bytes)) => Outcome::Osc52 { bytes, what },
                        Ok(way) => Outcome::Copied(Ok(format!("copied {what} ({way})"))),
                        Err(error) => Outcome::Copied(Err(format!("{what} could not be copied: {error}"))),
                    };
                    let _ = send.send(outcome);
                });
            }
            Effect::Save { path, text } => {
                let target = self.app.place.workspace.join(&path);
                tokio::task::spawn_blocking(move || {
                    let saved = target
                        .parent()
                        .map_or(Ok(()), std::fs::create_dir_all)
                        .map_err(|it| it.to_string())
                        .and_then(|()| {
                            file::write(&target, text.as_bytes(), file::Access::Shared).map_err(|it| it.to_string())
                        });
                    let _ = send.send(Outcome::Saved(match saved {
                        Ok(()) => Ok(format!("saved as {path}")),
                        Err(why) => Err(format!("{path} could not be written: {why}")),
                    }));
                });
            }
            Effect::Cite {
                turn,
                document,
                path,
                first,
                last,
            } => {
                let root = self.app.place.workspace.clone();
                tokio::task::spawn_blocking(move || {
                    let found = match file::read_beneath(&root, Path::new(&path), CITED_BYTES) {
                        Ok(bytes) => String::from_utf8(bytes)
                            .map_or(Citation::Unread, |text| Citation::Lines(lines(&text, first, last))),
                        Err(error) if error.kind() == io::ErrorKind::NotFound => Citation::Missing,
                        Err(_) => Citation::Unread,
                    };
                    let _ = send.send(Outcome::Cited { turn, document, found });
                });
            }
            Effect::Models => {
                let reply = self.app.link.ask(Query::Models);
                tokio::spawn(async move {
                    let outcome = match reply.await {
                        Ok(Reply::Models(names)) => Ok(names),
                        Ok(
                            Reply::Files(_)
                            | Reply::Context(_)
                            | Reply::Sandbox(_)
                            | Reply::Changes(_)
                            | Reply::Restoration(_)
                            | Reply::Heard,
                        ) => Err("the answer is to another question".to_owned()),
                        Err(error) => Err(error.to_string()),
                    };
                    let _ = send.send(Outcome::Models(outcome));
                });
            }
            Effect::Files(pattern) => {
                let query = Query::Files {
                    pattern: pattern.clone(),
                    limit: super::mention::MOST,
                };
                let reply = self.app.link.ask(query);
                tokio::spawn(async move {
                    // A link that knows no files offers none.
                    let files = match reply.await {
                        Ok(Reply::Files(files)) => files,
                        Ok(
                            Reply::Models(_)
                            | Reply::Context(_)
                            | Reply::Sandbox(_)
                            | Reply::Changes(_)
                            | Reply::Restoration(_)
                            | Reply::Heard,
                        )
                        | Err(_) => Vec::new(),
                    };
                    let _ = send.send(Outcome::Files { pattern, files });
                });
            }
            Effect::Picture(source) => {
                let workspace = self.app.place.workspace.clone();
                tokio::spawn(async move {
                    let outcome = match source {
                        Source::Clipboard => match clipboard::picture(&clipboard::Surroundings::read()).await {
                            Some(bytes) => picture::of("clipboard.png", &bytes).map_err(|it| (it, None)),
                            None => Err(("the clipboard holds no picture".to_owned(), None)),
                        },
                        Source::Path(path, text) => {
                            let read = tokio::task::spawn_blocking(move || picture::read(&workspace.join(path)));
                            let read = read.await.unwrap_or_else(|it| Err(it.to_string()));
                            read.map_err(|it| (it, Some(text)))
                        }
                    };
                    let _ = send.send(Outcome::Picture(outcome));
                });
            }
            Effect::NoteSent(_) if !self.keeps => {}
            Effect::NoteSent(text) => {
                let (state, workspace) = (self.paths.state.clone(), self.app.place.workspace.clone());
                let at_ms = self.app.now_ms;
                tokio::task::spawn_blocking(move || {
                    if let Err(why) = keep::note(&state, &workspace, at_ms, &text) {
                        let _ = send.send(Outcome::Failed(format!("what was sent is not remembered: {why}")));
                    }
                });
            }
            Effect::History => {
                let state = self.paths.state.clone();
                tokio::task::spawn_blocking(move || {
                    let texts = keep::history(&state, None, MOST_RECALLED);
                    let _ = send.send(Outcome::History {
                        texts,
                        is_everywhere: true,
                    });
                });
            }
            Effect::Commands => {
                let (workspace, paths) = (self.app.place.workspace.clone(), self.paths.clone());
                let is_whole = self.app.settings.trusted.clone();
                tokio::task::spawn_blocking(move || {
                    let is_whole = config::trusts(&is_whole, &workspace);
                    let said = Ledger::under(&paths.state).said(&workspace);
                    let may_act = |path: &str, text: &str| is_whole || said.lets(path, &Print::of(&[text.as_bytes()]));
                    let found = custom::find(&workspace, &paths.config, &may_act);
                    let _ = send.send(Outcome::Commands(found));
                });
            }
            Effect::Begin => self.open(|library| library.begin()),
            Effect::Resume(id) => self.open(move |library| library.resume(&id)),
            Effect::Sessions => self.read(|library| Outcome::Sessions(library.list())),
            Effect::FindSessions(words) => self.read(move |library| {
                let found = library.find(&words);
                Outcome::SessionsFound { words, found }
            }),
            Effect::ArchiveSession { id, is_archived } => self.read(move |library| Outcome::SessionChanged {
                failed: library.archive(&id, is_archived).err(),
                kept: library.list().unwrap_or_default(),
            }),
            Effect::RemoveSession(id) => self.read(move |library| Outcome::SessionChanged {
                failed: library.remove(&id).err(),
                kept: library.list().unwrap_or_default(),
            }),
            Effect::PreviewSession(id) => self.read(move |library| {
                let said = library.preview(&id);
                Outcome::SessionPreview { id, said }
            }),
            Effect::Export(path) => {
                let log = Arc::clone(self.app.link.log());
                let target = self.app.place.workspace.join(&path);
                self.read(move |library| {
                    Outcome::Saved(library.export(&log, &target).map(|()| format!("written to {path}")))
                });
            }
            Effect::Context => {
                let reply = self.app.link.ask(Query::Context);
                tokio::spawn(async move {
                    let outcome = match reply.await {
                        Ok(Reply::Context(parts)) => Ok(parts),
                        Ok(
                            Reply::Models(_)
                            | Reply::Files(_)
                            | Reply::Sandbox(_)
                            | Reply::Changes(_)
                            | Reply::Restoration(_)
                            | Reply::Heard,
                        ) => Err("the answer is to another question".to_owned()),
                        Err(error) => Err(error.to_string()),
                    };
                    let _ = send.send(Outcome::Context(outcome));
                });
            }
            Effect::Changes(on) => {
                let reply = self.app.link.ask(Query::Changes);
                tokio::spawn(async move {
                    // Who changes no files here can still go back in the conversation.
                    let changes = match reply.await {
                        Ok(Reply::Changes(changes)) => changes,
                        Ok(
                            Reply::Models(_)
                            | Reply::Files(_)
                            | Reply::Context(_)
                            | Reply::Sandbox(_)
                            | Reply::Restoration(_)
                            | Reply::Heard,
                        )
                        | Err(_) => Vec::new(),
                    };
                    let _ = send.send(Outcome::Changes { on, changes });
                });
            }
            Effect::Restoration(of) => {
                let reply = self.app.link.ask(Query::Restoration(of.clone()));
                tokio::spawn(async move {
                    let found = match reply.await {
                        Ok(Reply::Restoration(found)) => found,
                        Ok(
                            Reply::Models(_)
                            | Reply::Files(_)
                            | Reply::Context(_)
                            | Reply::Sandbox(_)
                            | Reply::Changes(_)
                            | Reply::Heard,
                        )
                        | Err(_) => Restoration::default(),
                    };
                    let _ = send.send(Outcome::Restoration { of, found });
                });
            }
            Effect::Sandbox { guard } => {
                let reply = self.app.link.ask(Query::Sandbox { guard });
                tokio::spawn(async move {
                    let outcome = match reply.await {
                        Ok(Reply::Sandbox(sandbox)) => Ok(sandbox),
                        Ok(
                            Reply::Models(_)
                            | Reply::Files(_)
                            | Reply::Context(_)
                            | Reply::Changes(_)
                            | Reply::Restoration(_)
                            | Reply::Heard,
                        ) => Err("the answer is to another question".to_owned()),
                        Err(error) => Err(error.to_string()),
                    };
                    let _ = send.send(Outcome::Sandbox(outcome));
                });
            }
            Effect::Trust => {
                let reply = self.app.link.ask(Query::Trust);
                tokio::spawn(async move {
                    if let Err(error) = reply.await {
                        let _ = send.send(Outcome::Failed(error.to_string()));
                    }
                });
            }
            Effect::Status { command, state } => {
                let folder = self.app.place.workspace.clone();
                tokio::spawn(async move {
                    let (program, arguments) = command.split_first().map_or(("", &[][..]), |it| (it.0.as_str(), it.1));
                    let run = process::Command::new(program)
                        .args(arguments)
                        .input(state)
                        .folder(folder)
                        .timeout(STATUS_PATIENCE)
                        .output();
                    let said = run.await.map(|it| String::from_utf8_lossy(&it).into_owned());
                    let _ = send.send(Outcome::Status(said.map_err(|it| it.to_string())));
                });
            }
            Effect::Remember(colour) => {
                let state = self.paths.state.clone();
                // Only the next start is the worse for it when this fails.
                tokio::task::spawn_blocking(move || drop(theme::remember(&state, colour)));
            }
            Effect::Suspend
            | Effect::Redraw
            | Effect::Print(_)
            | Effect::Mouse(_)
            | Effect::AskColours
            | Effect::EditDraft(_)
            | Effect::EditChip(_)
            | Effect::EditPlan { .. }
            | Effect::OpenFile { .. } => {}
        }
    }

    fn draw(&mut self) {
        self.app.now_ms = now_ms();
        self.out.append(&mut self.app.aside);
        self.app.measure();
        self.app.draw(&mut self.screen, &mut self.out);
        self.tell();
        if let Some((command, state)) = self.app.status_due() {
            self.spawn(Effect::Status { command, state });
        }
        if self.tty.write(&mut self.out).is_err() {
            tty::abandon();
            self.exit = Some(129);
        }
        for effect in self.app.citations() {
            self.spawn(effect);
        }
    }

    /// Tells whoever looks elsewhere how things stand.
    fn tell(&mut self) {
        let app = &self.app;
        let state = if app.asking.announced.is_some() {
            State::Asking
        } else if app.transcript.is_running() {
            State::Working
        } else {
            State::Idle
        };
        let about = app.transcript.title().unwrap_or_default();
        self.attention.look(state, &app.place.shown, about, &mut self.out);
    }

    /// When the screen has to be looked at again because it shows the time, in milliseconds since the Unix epoch.
    fn next_tick(&self) -> Option<u64> {
        if !self.app.shows_time() {
            return None;
        }
        let origin = self.app.clock_origin();
        let elapsed = now_ms().saturating_sub(origin);
        Some(origin + (elapsed / 1000 + 1) * 1000)
    }

    async fn on_signal(&mut self, signal: Signal) {
        match signal {
            Signal::Resize => {
                if let Some((width, height)) = self.tty.size() {
                    self.screen.resize(width, height);
                    self.handle(Msg::Resize(width, height)).await;
                }
            }
            Signal::Stop => self.suspend(),
            Signal::Continue if std::mem::take(&mut self.is_back) => {}
            Signal::Continue => {
                // Somebody stopped us without asking: the terminal may be anything now.
                self.out.clear();
                tty::leave();
                if self.tty.enter(&mut self.out).is_err() {
                    self.exit = Some(129);
                }
                self.screen.forget();
            }
            Signal::End(code) => self.exit = Some(code),
        }
    }

    fn suspend(&mut self) {
        tty::leave();
        self.out.clear();
        tty::stop_here();
        // Continued. The signal that says so finds everything done already.
        self.is_back = true;
        if self.tty.enter(&mut self.out).is_err() {
            self.exit = Some(129);
        }
        if let Some((width, height)) = self.tty.size() {
            self.app.size = (width, height);
            self.screen.resize(width, height);
        }
        self.screen.forget();
    }

    /// Gives the terminal to an editor until that ends.
    async fn edit(&mut self, arguments: Vec<std::ffi::OsString>) -> Result<(), String> {
        let editor = editor();
        tty::leave();
        self.out.clear();
        let ended = process::Command::shell(&editor)
            .args(arguments)
            .folder(&self.app.place.workspace)
            .interact()
            .await;
        if self.tty.enter(&mut self.out).is_err() {
            self.exit = Some(129);
        }
        self.screen.forget();
        match ended {
            Ok(status) if status.success() => Ok(()),
            Ok(status) => Err(format!("{editor} ended with {status}")),
            Err(error) => Err(format!(
                "{editor} could not be started: {error}; set $VISUAL or $EDITOR"
            )),
        }
    }

    async fn edit_draft(&mut self, text: &str) -> Result<String, String> {
        let path = self.paths.state.join(format!("draft-{}.md", std::process::id()));
        file::private_folder(&self.paths.state).map_err(|it| it.to_string())?;
        file::write(&path, text.as_bytes(), file::Access::Private).map_err(|it| it.to_string())?;
        let edited = self.edit(vec![path.clone().into()]).await;
        let text = file::read(&path, 16 << 20).map_err(|it| it.to_string());
        let _ = std::fs::remove_file(&path);
        edited?;
        Ok(String::from_utf8_lossy(&text?).into_owned())
    }

    async fn open_file(&mut self, path: &str, line: Option<u64>) -> Result<(), String> {
        let target = self.app.place.workspace.join(path);
        if !target.starts_with(&self.app.place.workspace) || path.split('/').any(|it| it == "..") {
            return Err(format!("{path} is outside the workspace"));
        }
        if !target.exists() {
            return Err(format!("{path} does not exist"));
        }
        self.edit(places::arguments(&editor(), &target, line)).await
    }
}

enum Signal {
    Resize,
    Stop,
    Continue,
    /// Ends the program with this code.
    End(u8),
}

struct Signals {
    resize: tokio::signal::unix::Signal,
    stop: tokio::signal::unix::Signal,
    go_on: tokio::signal::unix::Signal,
    hangup: tokio::signal::unix::Signal,
    interrupt: tokio::signal::unix::Signal,
    quit: tokio::signal::unix::Signal,
    terminate: tokio::signal::unix::Signal,
}

impl Signals {
    fn new() -> io::Result<Self> {
        Ok(Self {
            resize: signal(SignalKind::window_change())?,
            stop: signal(SignalKind::from_raw(libc::SIGTSTP))?,
            go_on: signal(SignalKind::from_raw(libc::SIGCONT))?,
            hangup: signal(SignalKind::hangup())?,
            interrupt: signal(SignalKind::interrupt())?,
            quit: signal(SignalKind::quit())?,
            terminate: signal(SignalKind::terminate())?,
        })
    }

    async fn next(&mut self) -> Signal {
        tokio::select! {
            _ = self.resize.recv() => Signal::Resize,
            _ = self.stop.recv() => Signal::Stop,
            _ = self.go_on.recv() => Signal::Continue,
            // Giving the terminal back fails at once where it is gone.
            _ = self.hangup.recv() => Signal::End(129),
            _ = self.interrupt.recv() => Signal::End(130),
            _ = self.quit.recv() => Signal::End(131),
            _ = self.terminate.recv() => Signal::End(143),
        }
    }
}

/// What seldom happens.
enum Wake {
    Signal(Signal),
    /// Another link takes the place of the one that is.
    Link(Arc<dyn Link>),
    /// Code has got its colours.
    Colours,
    /// It is known what holds the commands of the link, or that is another thing now.
    Held,
}

/// Tells of signals and of links to come for as long as the screen is there.
fn forward(
    mut signals: Signals,
    mut switch: mpsc::UnboundedReceiver<Arc<dyn Link>>,
    wakes: &mpsc::UnboundedSender<Wake>,
) {
    let tell = wakes.clone();
    tokio::spawn(async move { while tell.send(Wake::Signal(signals.next().await)).is_ok() {} });
    let tell = wakes.clone();
    tokio::spawn(async move {
        while let Some(link) = switch.recv().await {
            if tell.send(Wake::Link(link)).is_err() {
                break;
            }
        }
    });
}

fn editor() -> String {
    let named = std::env::var("VISUAL").or_else(|_| std::env::var("EDITOR"));
    named.unwrap_or_else(|_| "vi".into())
}

pub fn now_ms() -> u64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |it| it.as_millis() as u64)
}

/// Lines `first` to `last`, counted from 1.
fn lines(text: &str, first: u64, last: u64) -> String {
    let count = last.saturating_sub(first) as usize + 1;
    let chosen: Vec<_> = text
        .lines()
        .skip(first.saturating_sub(1) as usize)
        .take(count)
        .collect();
    chosen.join("\n")
}

/// The workspace as the header shows it, with the branch that `.git/HEAD` names.
fn place(workspace: &Path) -> Where {
    let home = std::env::var_os("HOME").map(PathBuf::from);
    let shown = match home.as_deref().and_then(|home| workspace.strip_prefix(home).ok()) {
        Some(rest) if rest.as_os_str().is_empty() => "~".to_owned(),
        Some(rest) => format!("~/{}", rest.display()),
        None => workspace.display().to_string(),
    };
    Where {
        workspace: workspace.to_owned(),
        home,
        shown,
        branch: branch(workspace),
    }
}

fn branch(workspace: &Path) -> Option<String> {
    let git = workspace.ancestors().map(|it| it.join(".git")).find(|it| it.exists())?;
    // In a linked worktree `.git` is a file that names the folder.
    let folder = if git.is_file() {
        let text = String::from_utf8(file::read(&git, 4096).ok()?).ok()?;
        git.parent()?.join(text.strip_prefix("gitdir:")?.trim())
    } else {
        git
    };
    let head = String::from_utf8(file::read(&folder.join("HEAD"), 4096).ok()?).ok()?;
    let head = head.trim();
    Some(match head.strip_prefix("ref: refs/heads/") {
        Some(name) => name.to_owned(),
        None => head.get(..8)?.to_owned(),
    })
}

/// The terminal comes back before the message is printed; a panic elsewhere than here, or one that is caught, is only noted.
fn give_back_on_panic(state: PathBuf) {
    let here = std::thread::current().id();
    std::panic::set_hook(Box::new(move |info| {
        let trace = std::backtrace::Backtrace::force_capture();
        let text = format!("sheaf {} {info}\n\n{trace}\n", env!("CARGO_PKG_VERSION"));
        let text = redact(&text);
        let path = state.join(format!("crash-{}.txt", now_ms()));
        let kept =
            file::private_folder(&state).and_then(|()| file::write(&path, text.as_bytes(), file::Access::Private));
        if std::thread::current().id() != here || panic::is_contained() {
            tracing::error!("{info}");
            return;
        }
        tty::leave();
        let said = Clean::new(&redact(&info.to_string()));
        let mut message = format!("sheaf failed: {said}\n");
        if kept.is_ok() {
            message.push_str(&format!("the report is in {}\n", path.display()));
        }
        let _ = io::Write::write_all(&mut io::stderr(), message.as_bytes());
    }));
}
