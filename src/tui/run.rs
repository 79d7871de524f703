//! The loop: waits for keys, events and outcomes, lets `update` change the state, draws, carries effects out.
//!
//! A key is drawn at once. Entries of the log are gathered for a frame, unless the last frame is older than that. When
//! the terminal is slower than we are, frames are left out; nothing is ever queued for it.

use std::{
    collections::VecDeque,
    io,
    path::PathBuf,
    pin::pin,
    sync::Arc,
    time::{Duration, Instant},
};

use tokio::{
    signal::unix::{SignalKind, signal},
    sync::mpsc,
};

use super::{
    app::{App, Mouse},
    backfill,
    effects::{Carried, Effect, EffectRunner, history},
    msg::{Msg, Outcome},
    places, prompt_store,
    setup::{Setup, app, now_ms, workspace},
    terminal::{
        Input, Surface,
        ansi_backend::synchronize,
        frame_pacer::FramePacer,
        inline_region::Region,
        input_parser::{Burst, InputParser, gather},
        notifications::{Activity, Method, Notifier},
        tty::{self, Tty, TtyOptions},
    },
    update::update,
};
use crate::{
    journal::{Follower, Log},
    link::Link,
    os::{file, memory_trim, panic, process},
    protocol::{Command, Entry, Message, Position, Query, Submit},
    t,
    text::{Sanitized, highlight::Highlighter, redact::redact},
};

/// So long after the first frame the start is over.
const SETTLED: Duration = Duration::from_secs(2);
/// So long after something was sent, what it took to send it is not needed any more.
const ASKED: Duration = Duration::from_millis(1500);

/// An Esc that stands alone for so long was the key.
const ESCAPE: Duration = Duration::from_millis(25);

/// Entries are applied for so long before keys are looked at again.
const SLICE: Duration = Duration::from_millis(4);

/// A draft that has not been changed for so long is written down.
const DRAFT_REST: Duration = Duration::from_secs(1);

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
        TtyOptions {
            // Inline the terminal's own selection and scrolling are what one has it for.
            mouse: if setup.settings.mouse && !setup.is_inline {
                Mouse::Full
            } else {
                Mouse::Off
            },
            inline: setup.is_inline,
            tmux,
        },
        &mut out,
    )
    .map_err(Error::NoTerminal)?;
    Tty::ask(setup.is_inline, &mut out);
    let size = tty.size().unwrap_or((80, 24));
    let (wakes, woken) = mpsc::unbounded_channel();
    let waker = wakes.clone();
    let colours = Arc::new(Highlighter::new(Some(Arc::new(move || {
        let _ = waker.send(Wake::Colours);
    }))));
    let (outcomes, outcomes_here) = mpsc::unbounded_channel();
    let opened = wakes.clone();
    let mut session = Session {
        app: app(&setup, size, tty.cell(), Arc::<Highlighter>::clone(&colours)),
        screen: Surface::new(size.0, size.1),
        follower: watched(&setup.link, setup.is_inline),
        tty,
        out,
        outcomes: outcomes_here,
        backlog: VecDeque::new(),
        exit: None,
        is_back: false,
        has_sent: false,
        draft_seen: 0,
        has_kept_draft: false,
        notifier: Notifier::new(Method::of(&setup.settings.ui.notify, |name| std::env::var(name).ok())),
        region: setup.is_inline.then(|| Region::new(size)),
        hands: EffectRunner {
            outcomes,
            paths: setup.paths,
            keeps: setup.keeps,
            library: setup.library,
            opened: Arc::new(move |link| drop(opened.send(Wake::Link(link)))),
        },
    };
    session.count_earlier(Arc::clone(session.app.conversation.link.log()));
    session.take_up();
    session.draft_seen = session.app.composer.field.version();
    session.screen.has_links = session.app.preferences.settings.links;
    session.draw();
    if let Some(text) = setup.prompt {
        let submit = Submit {
            message: Message::user(text),
            mode: session.app.composer.mode,
            model: None,
        };
        session.app.conversation.link.send(Command::Submit(submit));
    }
    give_back_after(SETTLED);
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

/// Drops the pages of code that ran once, a while from now.
fn give_back_after(rest: Duration) {
    tokio::spawn(async move {
        tokio::time::sleep(rest).await;
        memory_trim::give_back();
    });
}

/// Follows a link, and keeps what comes for the inspector.
pub fn watched(link: &Arc<dyn Link>, is_whole: bool) -> Follower {
    link.log().watch();
    link.log().follow(backfill::beginning(link.log(), is_whole).1)
}

struct Session {
    app: App,
    screen: Surface,
    follower: Follower,
    tty: Tty,
    /// Bytes that the terminal has not taken yet.
    out: Vec<u8>,
    hands: EffectRunner,
    /// Where we are on the terminal, without the alternate screen.
    region: Option<Region>,
    outcomes: mpsc::UnboundedReceiver<Outcome>,
    /// Entries that are read and not applied yet.
    backlog: VecDeque<Arc<Entry>>,
    exit: Option<u8>,
    /// The draft's version that was looked at last, and whether a file holds one.
    draft_seen: u64,
    has_kept_draft: bool,
    /// Continued after a stop of our own, of which the signal is still to come.
    is_back: bool,
    /// A command has gone out since the last look at others.
    has_sent: bool,
    notifier: Notifier,
}

impl Session {
    async fn go(
        &mut self,
        wakes: mpsc::UnboundedSender<Wake>,
        mut woken: mpsc::UnboundedReceiver<Wake>,
        colours: Arc<Highlighter>,
    ) {
        let mut parser = InputParser::default();
        let mut inputs = Vec::new();
        let mut burst = Burst::default();
        let mut buffer = vec![0; 16 * 1024];
        let mut batch = Vec::new();
        let mut pace = FramePacer::start(Instant::now());
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
                // What is left of a picture goes with the next frames.
                (dirty, urgent) = (self.app.terminal.images.is_sending(), false);
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
                            self.follower = watched(&link, self.app.conversation.reads_whole);
                            self.backlog.clear();
                            self.count_earlier(Arc::clone(link.log()));
                            if let Some(folder) = link.about().workspace {
                                self.app.conversation.workspace = workspace(&folder);
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
                            self.app.viewport.bars = None;
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
                Some(outcome) = self.outcomes.recv() => {
                    self.handle(Msg::Done(outcome)).await;
                    (dirty, urgent) = (true, true);
                }
                // Keys are only seen when the thread has looked for them.
                () = tokio::task::yield_now(), if !self.backlog.is_empty() => {}
                more = self.follower.next(&mut batch), if self.backlog.is_empty() => {
                    self.backlog.extend(batch.drain(..));
                    if !more {
                        // A closed log stays closed: nothing will come from it.
                        self.follower = Log::new().follow(Position(0));
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
        self.give_back();
        self.keep_draft();
    }

    /// Gives the terminal back; what is inline takes its region away first.
    fn give_back(&mut self) {
        if let Some(region) = &mut self.region {
            let mut out = Vec::new();
            self.app.leave_inline(region, &mut out);
            // Where the terminal is full it will not take this either, and then nothing is lost by it.
            let _ = self.tty.write(&mut out);
            tty::withdraw();
        }
        let mut out = Vec::new();
        self.app.terminal.images.leave(&mut out);
        if !out.is_empty() {
            // The same holds for this: what stays is a picture that nobody sees.
            let _ = self.tty.write(&mut out);
        }
        tty::leave();
        self.out.clear();
    }

    /// Has us woken when it is known what holds the commands of the link.
    fn tell_hold(&self, wakes: &mpsc::UnboundedSender<Wake>) {
        let hold = self.app.conversation.about.hold.clone();
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
        if !self.hands.keeps {
            return;
        }
        let field = &self.app.composer.field;
        let draft = (!field.is_empty()).then(|| field.stored());
        if draft.is_none() && !self.has_kept_draft {
            return;
        }
        self.has_kept_draft = draft.is_some();
        let kept = prompt_store::keep_draft(
            &self.hands.paths.state,
            &self.app.conversation.workspace.folder,
            draft.as_ref(),
        );
        if let Err(why) = kept {
            tracing::warn!("the draft is not kept: {why}");
        }
    }

    /// Takes up what was left behind: the draft, and what was sent before.
    fn take_up(&mut self) {
        let (state, workspace) = (
            self.hands.paths.state.clone(),
            self.app.conversation.workspace.folder.clone(),
        );
        if !self.hands.keeps {
            return;
        }
        if let Some(draft) = prompt_store::take_draft(&state, &workspace) {
            self.app.composer.field.restore(&draft);
            self.has_kept_draft = true;
        }
        history::recall(&self.hands, Some(workspace));
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
                self.notifier.focus(has_focus);
            }
            self.handle(Msg::Input(input)).await;
        }
    }

    async fn handle(&mut self, msg: Msg) {
        self.app.now_ms = now_ms();
        let effects = update(&mut self.app, msg);
        if let Some(position) = self.app.conversation.follow_from.take() {
            self.backlog.clear();
            self.follower = self.app.conversation.link.log().follow(position);
        }
        for effect in effects {
            self.carry_out(effect).await;
        }
    }

    /// What the part of a long conversation has cost that is not shown is looked up meanwhile.
    fn count_earlier(&self, log: Arc<Log>) {
        if log.recent().is_some() {
            let outcomes = self.hands.outcomes.clone();
            tokio::task::spawn_blocking(move || {
                // Nobody may be there any more.
                let spent = log.spent_earlier();
                let _ = outcomes.send(Outcome::SpentEarlier { log, spent });
            });
        }
    }

    /// Effects that need the terminal are done here and now; the rest goes its own way.
    async fn carry_out(&mut self, effect: Effect) {
        match effect {
            Effect::Suspend => self.suspend(),
            Effect::Redraw => self.screen.forget(),
            Effect::Print(text) if self.app.terminal.inline.is_some() => {
                if let Some(inline) = &mut self.app.terminal.inline {
                    inline.aside.push_str(&text);
                }
            }
            Effect::Print(text) => {
                // The other screen is the one that scrolls; what is shown here is drawn anew afterwards.
                tty::print_below(&text, &mut self.out);
                self.screen.forget();
            }
            Effect::AskColours => Tty::ask_colours(&mut self.out),
            Effect::Mouse(mouse) => self.tty.use_mouse(mouse, &mut self.out),
            Effect::EditDraft(text) => {
                let outcome = self.edit_draft(&text, "md").await;
                Box::pin(self.handle(Msg::Done(Outcome::Edited(outcome)))).await;
            }
            Effect::EditChip(text) => {
                let outcome = self.edit_draft(&text, "md").await;
                Box::pin(self.handle(Msg::Done(Outcome::ChipEdited(outcome)))).await;
            }
            Effect::EditPlan { turn, document, text } => {
                let text = self.edit_draft(&text, "md").await;
                let outcome = Outcome::PlanEdited { turn, document, text };
                Box::pin(self.handle(Msg::Done(outcome))).await;
            }
            Effect::EditHunk {
                turn,
                document,
                index,
                path,
                text,
            } => {
                let text = self.edit_draft(&text, ending(&path)).await;
                let outcome = Outcome::HunkEdited {
                    turn,
                    document,
                    index,
                    text,
                };
                Box::pin(self.handle(Msg::Done(outcome))).await;
            }
            Effect::OpenFile { path, line } => {
                if let Err(why) = self.open_file(&path, line).await {
                    Box::pin(self.handle(Msg::Done(Outcome::Failed(why)))).await;
                } else {
                    let reply = self.app.conversation.link.ask(Query::FileOpened(path));
                    // Whoever does not care says so, and nobody minds.
                    tokio::spawn(reply);
                }
            }
            other => self.spawn(other),
        }
    }

    fn spawn(&mut self, effect: Effect) {
        match self.hands.carry_out(effect, &self.app) {
            // What is the terminal's is asked for by keys only.
            Carried::Away | Carried::Terminal(_) => {}
            Carried::Sent => {
                self.has_sent = true;
                // Asking ran through code that the answer does not need.
                give_back_after(ASKED);
            }
            Carried::Quit(code) => self.exit = Some(code),
        }
    }

    fn draw(&mut self) {
        self.app.now_ms = now_ms();
        self.out.append(&mut self.app.terminal.pending);
        let began = self.out.len();
        if let Some(region) = &mut self.region {
            self.app.prepare_inline(region, &mut self.screen, &mut self.out);
        }
        let is_moved = self.out.len() > began;
        self.app.measure();
        self.app.terminal.images.flow(&mut self.out);
        self.app.draw(&mut self.screen, &mut self.out);
        if is_moved && self.screen.synchronized {
            synchronize(&mut self.out, began);
        }
        self.tell();
        if let Some((command, state)) = self.app.status_due() {
            self.spawn(Effect::Status { command, state });
        }
        if self.tty.write(&mut self.out).is_err() {
            tty::abandon();
            self.exit = Some(129);
        }
        let mut wanted = self
            .app
            .questions
            .citations(&self.app.viewport.pane.lines, &self.app.conversation);
        let next = self.app.next_to_print();
        wanted.extend(self.app.pictures_wanted(next));
        for effect in wanted {
            self.spawn(effect);
        }
    }

    /// Tells whoever looks elsewhere how things stand.
    fn tell(&mut self) {
        let app = &self.app;
        let state = if app.questions.announced.is_some() {
            Activity::Asking
        } else if app.conversation.transcript.is_running() {
            Activity::Working
        } else {
            Activity::Idle
        };
        let about = app.conversation.transcript.title().unwrap_or_default();
        self.notifier
            .look(state, &app.conversation.workspace.label, about, &mut self.out);
    }

    /// When the screen has to be looked at again because it shows the time, in milliseconds since the Unix epoch.
    fn next_tick(&self) -> Option<u64> {
        if !self.app.shows_time() {
            return None;
        }
        let origin = self.app.conversation.last_turn_ms();
        let elapsed = now_ms().saturating_sub(origin);
        Some(origin + (elapsed / 1000 + 1) * 1000)
    }

    async fn on_signal(&mut self, signal: Signal) {
        match signal {
            Signal::Resize => {
                if let Some((width, height)) = self.tty.size() {
                    match &mut self.region {
                        Some(region) => region.resize(width, height),
                        None => self.screen.resize(width, height),
                    }
                    self.app.cells_are(self.tty.cell());
                    self.handle(Msg::Resize(width, height)).await;
                }
            }
            Signal::Stop => self.suspend(),
            Signal::Continue if std::mem::take(&mut self.is_back) => {}
            Signal::Continue => {
                // Somebody stopped us without asking: the terminal may be anything now, and what the shell wrote is not ours.
                // A page may have had the whole terminal: leaving gives that back before it is forgotten.
                tty::withdraw();
                tty::leave();
                if let Some(region) = &mut self.region {
                    *region = Region::new(self.tty.size().unwrap_or(self.app.terminal.size));
                    self.app.come_back();
                }
                self.out.clear();
                if self.tty.enter(&mut self.out).is_err() {
                    self.exit = Some(129);
                }
                self.screen.forget();
            }
            Signal::End(code) => self.exit = Some(code),
        }
    }

    fn suspend(&mut self) {
        self.give_back();
        tty::stop_here();
        // Continued. The signal that says so finds everything done already.
        self.is_back = true;
        if self.tty.enter(&mut self.out).is_err() {
            self.exit = Some(129);
        }
        if let Some((width, height)) = self.tty.size() {
            self.app.terminal.size = (width, height);
            self.screen.resize(width, height);
            if self.region.is_some() {
                self.region = Some(Region::new((width, height)));
            }
        }
        self.screen.forget();
    }

    /// Gives the terminal to an editor until that ends.
    async fn edit(&mut self, arguments: Vec<std::ffi::OsString>) -> Result<(), String> {
        let editor = editor();
        self.give_back();
        let ended = process::Command::shell(&editor)
            .args(arguments)
            .folder(&self.app.conversation.workspace.folder)
            .interact()
            .await;
        if self.tty.enter(&mut self.out).is_err() {
            self.exit = Some(129);
        }
        self.screen.forget();
        match ended {
            Ok(status) if status.success() => Ok(()),
            Ok(status) => Err(t!("news-editor-ended", editor = editor, status = status.to_string())),
            Err(error) => Err(t!("news-editor-not-started", editor = editor, why = error.to_string())),
        }
    }

    /// Has a text written in the editor, which knows by `ending` what it is.
    async fn edit_draft(&mut self, text: &str, ending: &str) -> Result<String, String> {
        let name = format!("draft-{}.{ending}", std::process::id());
        let path = self.hands.paths.state.join(name);
        file::private_folder(&self.hands.paths.state).map_err(|it| it.to_string())?;
        file::write(&path, text.as_bytes(), file::Access::Private).map_err(|it| it.to_string())?;
        let edited = self.edit(vec![path.clone().into()]).await;
        let text = file::read(&path, 16 << 20).map_err(|it| it.to_string());
        let _ = std::fs::remove_file(&path);
        edited?;
        Ok(String::from_utf8_lossy(&text?).into_owned())
    }

    async fn open_file(&mut self, path: &str, line: Option<u64>) -> Result<(), String> {
        let target = self.app.conversation.workspace.folder.join(path);
        if !target.starts_with(&self.app.conversation.workspace.folder) || path.split('/').any(|it| it == "..") {
            return Err(t!("news-outside", path = path));
        }
        if !target.exists() {
            return Err(t!("news-absent", path = path));
        }
        self.edit(places::arguments(&editor(), &target, line)).await
    }
}

/// What the name of a draft ends in where a part of the file at `path` is written.
fn ending(path: &str) -> &str {
    let ending = path.rsplit('/').next().and_then(|it| Some(it.rsplit_once('.')?.1));
    ending
        .filter(|it| (1..=10).contains(&it.len()) && it.bytes().all(|it| it.is_ascii_alphanumeric()))
        .unwrap_or("txt")
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
        let said = Sanitized::new(&redact(&info.to_string()));
        let mut message = format!("sheaf failed: {said}\n");
        if kept.is_ok() {
            message.push_str(&format!("the report is in {}\n", path.display()));
        }
        let _ = io::Write::write_all(&mut io::stderr(), message.as_bytes());
    }));
}
