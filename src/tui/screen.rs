//! The screen: the terminal as a [`FrontEnd`], drawn by widgets.
//!
//! What a key did is drawn at once. Entries of the log are gathered for a frame, unless the last frame is older than that. When
//! the terminal is slower than sheaf, frames are skipped; nothing is ever queued for it.

use std::{
    io,
    path::PathBuf,
    pin::Pin,
    sync::Arc,
    time::{Duration, Instant},
};

use tokio::{
    signal::unix::SignalKind,
    sync::mpsc,
    time::{Sleep, sleep},
};

use super::{
    app::{App, Effect},
    effect_runner::{Carried, EffectRunner, history},
    event_loop::{self, ENDING, Error, EventLoop, FrontEnd, Signal},
    external_editor as editor,
    msg::{EffectOutcome, Msg},
    prompt_store::DraftKeeper,
    setup::{Setup, app, now_ms},
    terminal::{
        Input, Mouse, Surface,
        ansi_backend::synchronize,
        frame_pacer::FramePacer,
        inline_region::Region,
        input_parser::{Burst, InputParser, gather},
        notifications::{Activity, Method, Notifier},
        tty::{self, Tty, TtyOptions},
    },
};
use crate::{
    journal::Log,
    link::SandboxStatus,
    os::{file, memory_trim, panic},
    protocol::Query,
    t,
    text::{Sanitized, highlight::Highlighter, redact::redact},
};

/// Time after the first frame until the code that ran only at the start is dropped from memory.
const SETTLED: Duration = Duration::from_secs(2);
/// Time after a message was sent until the code that sent it is dropped from memory.
const ASKED: Duration = Duration::from_millis(1500);

/// Runs the screen until the user leaves it; returns the exit code.
pub async fn run(setup: Setup) -> Result<u8, Error> {
    let mut out = Vec::with_capacity(16 * 1024);
    tty::guard_against_faults();
    restore_on_panic(setup.paths.state.clone());
    let (wakes, woken) = mpsc::unbounded_channel();
    let (inbox, inbox_here) = mpsc::unbounded_channel();
    // Before the terminal is taken over: a signal that came between the two would end us and leave it as it is.
    let signals = [
        (SignalKind::window_change(), Signal::Resize),
        (SignalKind::from_raw(libc::SIGTSTP), Signal::Stop),
        (SignalKind::from_raw(libc::SIGCONT), Signal::Continue),
        (SignalKind::interrupt(), Signal::End(130)),
    ];
    let tell = wakes.clone();
    event_loop::listen(signals.into_iter().chain(ENDING), move |it| {
        tell.send(Wake::Signal(it)).is_ok()
    })?;
    let tty = Tty::open(
        TtyOptions {
            // Inline the terminal's own selection and scrolling are what one has it for.
            mouse: if setup.settings.mouse && !setup.is_inline {
                Mouse::Full
            } else {
                Mouse::Off
            },
            inline: setup.is_inline,
            tmux: std::env::var_os("TMUX").is_some(),
        },
        &mut out,
    )
    .map_err(Error::NoTerminal)?;
    Tty::ask(setup.is_inline, &mut out);
    let size = tty.size().unwrap_or((80, 24));
    let colours = Arc::new(Highlighter::new(Some(Arc::new(move || {
        let _ = wakes.send(Wake::Colours);
    }))));
    let mut app = app(&setup, size, tty.cell(), Arc::<Highlighter>::clone(&colours));
    let opens_with_list = setup.library.as_ref().is_some_and(|it| it.opens_with_list());
    let mut drafts = DraftKeeper::new(setup.keeps.then(|| setup.paths.state.clone()));
    let runner = EffectRunner {
        inbox,
        paths: setup.paths,
        keeps: setup.keeps,
        library: setup.library,
    };
    app.composer.stash = drafts.take_up(&app.conversation.workspace.folder);
    if app.composer.stash.is_some() {
        app.toast(t!("news-draft"));
    }
    if setup.keeps {
        history::recall(&runner, Some(app.conversation.workspace.folder.clone()), None);
        history::uses(&runner);
    }
    // Typed or pasted at once, a command of a file is known, and Shift+Tab goes round the modes of files.
    runner.carry_out(Effect::Commands, &app);
    let mut surface = Surface::new(size.0, size.1);
    surface.has_links = app.preferences.settings.links;
    let screen = Screen {
        surface,
        region: setup.is_inline.then(|| Region::new(size)),
        output: TerminalOutput {
            tty,
            bytes: out,
            is_gone: false,
            is_back: false,
        },
        keys: Keys {
            buffer: vec![0; 16 * 1024],
            ..Keys::default()
        },
        frames: Frames {
            pacer: FramePacer::start(Instant::now()),
            is_dirty: true,
            is_urgent: true,
        },
        alarm: Alarm::new(),
        tick: None,
        drafts,
        woken,
        colours,
        notifier: Notifier::new(Method::of(&setup.settings.ui.notify, |name| std::env::var(name).ok())),
        runner,
    };
    screen.count_earlier(Arc::clone(setup.link.log()));
    screen.tell_hold(app.conversation.about.hold.clone());
    event_loop::forward(setup.switch, screen.runner.inbox.clone());
    let follower = event_loop::watched(&setup.link, setup.is_inline);
    let mut events = EventLoop::over(app, screen, inbox_here, follower);
    events.show().await;
    if opens_with_list && setup.prompt.is_none() {
        events.choose().await;
    }
    if let Some(text) = setup.prompt {
        events.submit(text).await;
    }
    give_back_after(SETTLED);
    // As a task of its own, because waking the future that `block_on` runs costs a system call each time.
    match tokio::spawn(events.run()).await {
        Ok(code) => Ok(code),
        Err(error) if error.is_panic() => std::panic::resume_unwind(error.into_panic()),
        Err(_) => Ok(0),
    }
}

/// Drops the pages of code that ran once, a while from now.
fn give_back_after(rest: Duration) {
    tokio::spawn(async move {
        sleep(rest).await;
        memory_trim::drop_unchanged_pages();
    });
}

/// A terminal, and what is shown there.
struct Screen {
    surface: Surface,
    /// The lines that are drawn without the alternate screen.
    region: Option<Region>,
    output: TerminalOutput,
    keys: Keys,
    frames: Frames,
    alarm: Alarm,
    /// When what shows the time changes, by the system's clock in milliseconds and as the instant to wake up at.
    tick: Option<(u64, Instant)>,
    drafts: DraftKeeper,
    woken: mpsc::UnboundedReceiver<Wake>,
    colours: Arc<Highlighter>,
    notifier: Notifier,
    runner: EffectRunner,
}

/// The terminal and the bytes on their way to it.
struct TerminalOutput {
    tty: Tty,
    /// Bytes that the terminal has not taken yet.
    bytes: Vec<u8>,
    /// Nobody is there any more.
    is_gone: bool,
    /// Continued after a stop of our own, of which the signal is still to come.
    is_back: bool,
}

impl TerminalOutput {
    /// Writes what the terminal takes now.
    fn flush(&mut self) {
        if self.tty.write(&mut self.bytes).is_err() {
            self.abandon();
        }
    }

    fn abandon(&mut self) {
        tty::abandon();
        self.is_gone = true;
    }

    /// Takes the terminal again.
    fn enter(&mut self) {
        self.is_gone |= self.tty.enter(&mut self.bytes).is_err();
    }
}

/// Bytes of the terminal on their way to becoming inputs.
#[derive(Default)]
struct Keys {
    parser: InputParser,
    burst: Burst,
    inputs: Vec<Input>,
    buffer: Vec<u8>,
    /// When what the parser holds back is taken as it is: an Esc that stands alone, or a chord.
    escape_at: Option<Instant>,
}

impl Keys {
    /// Parses the first `count` bytes of the buffer.
    fn parse(&mut self, count: usize) {
        let bytes = self.buffer.get(..count).unwrap_or_default();
        self.parser.push(bytes, &mut self.inputs);
        gather(&mut self.inputs, &mut self.burst, now_ms());
        self.escape_at = self.parser.waits().map(|it| Instant::now() + it);
    }

    /// Takes what the parser holds back as it is.
    fn flush(&mut self) {
        self.escape_at = None;
        self.parser.flush(&mut self.inputs);
    }
}

/// Decides when something new is drawn.
struct Frames {
    pacer: FramePacer,
    /// Something new is not on the screen yet.
    is_dirty: bool,
    /// A key's doing does not wait for the frame.
    is_urgent: bool,
}

impl Frames {
    fn request(&mut self, is_urgent: bool) {
        self.is_dirty = true;
        self.is_urgent |= is_urgent;
    }
}

/// One sleep for all that is waited for: making a new one for each turn of the loop would wake the timer each time.
struct Alarm {
    sleep: Pin<Box<Sleep>>,
    at: Option<Instant>,
}

impl Alarm {
    fn new() -> Self {
        Self {
            sleep: Box::pin(sleep(Duration::ZERO)),
            at: None,
        }
    }

    fn set(&mut self, at: Option<Instant>) {
        if at != self.at {
            self.at = at;
            if let Some(at) = at {
                self.sleep.as_mut().reset(at.into());
            }
        }
    }
}

/// Events that are rare.
enum Wake {
    Signal(Signal),
    /// Code has got its colours.
    Colours,
}

/// Input of the screen.
enum ScreenInput {
    Gone,
    /// Bytes that were read into the buffer.
    Bytes(io::Result<usize>),
    Wake(Wake),
    /// The terminal takes bytes again.
    Writable(io::Result<()>),
    Alarm,
}

impl FrontEnd for Screen {
    const ENTRIES_AT_ONCE: usize = 64;

    type Input = ScreenInput;

    fn note(&mut self, msg: &Msg) {
        self.frames.request(!matches!(
            msg,
            Msg::Entries(_) | Msg::Colours | Msg::Tick | Msg::SandboxStatus
        ));
        if let Msg::Input(Input::Focus(has_focus)) = msg {
            self.notifier.focus(*has_focus);
        }
        if let Msg::Switch(link) = msg {
            self.count_earlier(Arc::clone(link.log()));
            self.tell_hold(link.about().hold);
        }
    }

    fn show(&mut self, app: &mut App) -> Vec<Effect> {
        let mut due = self.frames.pacer.due();
        let mut effects = Vec::new();
        let is_full = self.output.tty.is_full();
        if self.frames.is_dirty && !is_full && (self.frames.is_urgent || Instant::now() >= due) {
            let began = Instant::now();
            effects = self.draw(app);
            self.frames.pacer.drawn(began, Instant::now());
            due = self.frames.pacer.due();
            // What is left of a picture goes with the next frames.
            (self.frames.is_dirty, self.frames.is_urgent) = (app.terminal.images.is_sending(), false);
        }
        let tick_ms = next_tick(app);
        if self.tick.map(|it| it.0) != tick_ms {
            self.tick = tick_ms.map(|at| (at, Instant::now() + Duration::from_millis(at.saturating_sub(now_ms()))));
        }
        self.drafts.look(&app.composer.field);
        let frame_at = (self.frames.is_dirty && !self.output.tty.is_full()).then_some(due);
        let deadlines = [
            self.drafts.due,
            self.keys.escape_at,
            // Colours that nobody asks for any more.
            self.colours.look_at(),
            frame_at,
            self.tick.map(|it| it.1),
        ];
        self.alarm.set(deadlines.into_iter().flatten().min());
        effects
    }

    async fn read(&mut self) -> ScreenInput {
        if self.output.is_gone {
            return ScreenInput::Gone;
        }
        // All of this is polled with each token: what is rare is told by tasks, through one door.
        tokio::select! {
            biased;
            read = self.output.tty.read(&mut self.keys.buffer) => ScreenInput::Bytes(read),
            Some(wake) = self.woken.recv() => ScreenInput::Wake(wake),
            ready = self.output.tty.writable(), if self.output.tty.is_full() => ScreenInput::Writable(ready),
            () = &mut self.alarm.sleep, if self.alarm.at.is_some() => ScreenInput::Alarm,
        }
    }

    fn take(&mut self, input: ScreenInput, app: &mut App) -> Vec<Msg> {
        match input {
            ScreenInput::Bytes(Ok(count)) if count > 0 => {
                self.keys.parse(count);
                self.frames.request(true);
                self.keys.inputs.drain(..).map(Msg::Input).collect()
            }
            ScreenInput::Bytes(_) => {
                tty::abandon();
                vec![Msg::End(129)]
            }
            ScreenInput::Gone => vec![Msg::End(129)],
            ScreenInput::Wake(Wake::Signal(signal)) => {
                self.frames.request(true);
                self.on_signal(signal, app).into_iter().collect()
            }
            ScreenInput::Wake(Wake::Colours) if self.colours.take_ready().is_empty() => Vec::new(),
            ScreenInput::Wake(Wake::Colours) => vec![Msg::Colours],
            ScreenInput::Writable(Ok(())) => {
                self.output.flush();
                Vec::new()
            }
            ScreenInput::Writable(Err(_)) => {
                self.output.abandon();
                Vec::new()
            }
            ScreenInput::Alarm => {
                self.alarm.at = None;
                self.deadlines(Instant::now(), app)
            }
        }
    }

    async fn carry_out(&mut self, effect: Effect, app: &mut App) -> Carried {
        match effect {
            Effect::Suspend => self.suspend(app),
            Effect::Redraw => self.surface.forget(),
            Effect::Print(text) => {
                if let Some(inline) = &mut app.terminal.inline {
                    inline.aside.push_str(&text);
                } else {
                    // The other screen is the one that scrolls; this one is drawn anew afterwards.
                    tty::print_below(&text, &mut self.output.bytes);
                    self.surface.forget();
                }
            }
            Effect::AskColours => Tty::ask_colours(&mut self.output.bytes),
            Effect::Mouse(mouse) => self.output.tty.use_mouse(mouse, &mut self.output.bytes),
            Effect::EditDraft(text) => {
                return Carried::Done(EffectOutcome::Edited(self.edit_text(&text, "md", app).await));
            }
            Effect::EditChip(text) => {
                return Carried::Done(EffectOutcome::ChipEdited(self.edit_text(&text, "md", app).await));
            }
            Effect::EditPlan { turn, document, text } => {
                let text = self.edit_text(&text, "md", app).await;
                return Carried::Done(EffectOutcome::PlanEdited { turn, document, text });
            }
            Effect::EditHunk {
                turn,
                document,
                index,
                path,
                text,
            } => {
                let text = self.edit_text(&text, editor::ending(&path), app).await;
                return Carried::Done(EffectOutcome::HunkEdited {
                    turn,
                    document,
                    index,
                    text,
                });
            }
            Effect::OpenFile { path, line } => {
                if let Err(why) = self.open_file(&path, line, app).await {
                    return Carried::Done(EffectOutcome::Failed(why));
                }
                // Links that do not care reply with an error, which is of no interest.
                tokio::spawn(app.conversation.link.ask(Query::FileOpened(path)));
            }
            Effect::OpenRules(path) => {
                if let Err(why) = self.edit(editor::arguments_for_new(&path), app).await {
                    return Carried::Done(EffectOutcome::Failed(why));
                }
            }
            other => {
                let carried = self.runner.carry_out(other, app);
                if matches!(carried, Carried::Sent) {
                    // Asking ran through code that the answer does not need.
                    give_back_after(ASKED);
                }
                return carried;
            }
        }
        Carried::Away
    }

    fn leave(&mut self, app: &mut App) {
        self.give_back(app);
        self.keep_draft(app);
    }
}

impl Screen {
    fn keep_draft(&mut self, app: &App) {
        let composer = &app.composer;
        let folder = &app.conversation.workspace.folder;
        self.drafts.keep(&composer.field, composer.stash.as_ref(), folder);
    }

    /// Acts on what the alarm was set for.
    fn deadlines(&mut self, now: Instant, app: &App) -> Vec<Msg> {
        let is_over = |at: Option<Instant>| at.is_some_and(|it| it <= now);
        let mut messages = Vec::new();
        if is_over(self.drafts.due) {
            self.keep_draft(app);
        }
        if is_over(self.keys.escape_at) {
            self.keys.flush();
            self.frames.request(true);
            messages.extend(self.keys.inputs.drain(..).map(Msg::Input));
        }
        if is_over(self.colours.look_at()) && self.colours.look_after() {
            messages.push(Msg::Colours);
        }
        if is_over(self.tick.map(|it| it.1)) {
            self.tick = None;
            messages.push(Msg::Tick);
        }
        messages
    }

    /// Gives the terminal back; what is inline takes its region away first.
    fn give_back(&mut self, app: &mut App) {
        let mut out = Vec::new();
        if let Some(region) = &mut self.region {
            app.leave_inline(region, &mut out);
        }
        app.terminal.images.leave(&mut out);
        // A full terminal does not take this either: what stays then is a picture or a region that nobody sees.
        let _ = self.output.tty.write(&mut out);
        if self.region.is_some() {
            tty::withdraw();
        }
        tty::leave();
        self.output.bytes.clear();
    }

    /// Sends a message whenever it is known what holds the commands of the link, or that has changed.
    fn tell_hold(&self, hold: SandboxStatus) {
        let inbox = self.runner.inbox.clone();
        let mut known = hold.known();
        tokio::spawn(async move {
            loop {
                hold.clone().wait(known).await;
                known = hold.known();
                if inbox.send(Msg::SandboxStatus).is_err() {
                    return;
                }
            }
        });
    }

    /// Looks up in the background what the part of a long conversation has cost that is not folded.
    fn count_earlier(&self, log: Arc<Log>) {
        if log.recent().is_some() {
            self.runner.block(move || {
                let (spent, before) = log.spent_earlier().unwrap_or_default();
                EffectOutcome::SpentEarlier { log, spent, before }
            });
        }
    }

    fn draw(&mut self, app: &mut App) -> Vec<Effect> {
        app.now_ms = now_ms();
        let out = &mut self.output.bytes;
        out.append(&mut app.terminal.pending);
        let began = out.len();
        if let Some(region) = &mut self.region {
            app.prepare_inline(region, &mut self.surface, out);
        }
        let is_moved = out.len() > began;
        app.measure();
        app.terminal.images.flow(out);
        app.draw(&mut self.surface, out);
        if is_moved && self.surface.synchronized {
            synchronize(out, began);
        }
        notify(&mut self.notifier, app, out);
        let status = app.status_due();
        self.output.flush();
        let mut effects: Vec<_> = status.into_iter().map(Effect::Status).collect();
        effects.extend(app.questions.citations(&app.viewport.pane.lines, &app.conversation));
        let next = app.next_to_print();
        effects.extend(app.pictures_wanted(next));
        effects
    }

    fn on_signal(&mut self, signal: Signal, app: &mut App) -> Option<Msg> {
        match signal {
            Signal::Resize => {
                let (width, height) = self.output.tty.size()?;
                match &mut self.region {
                    Some(region) => region.resize(width, height),
                    None => self.surface.resize(width, height),
                }
                app.cells_are(self.output.tty.cell());
                return Some(Msg::Resize(width, height));
            }
            Signal::Stop => self.suspend(app),
            Signal::Continue if std::mem::take(&mut self.output.is_back) => {}
            Signal::Continue => {
                // Somebody stopped us without asking: the terminal may be anything now, and what the shell wrote is not ours.
                // A page may have had the whole terminal: leaving gives that back before it is forgotten.
                tty::withdraw();
                tty::leave();
                if let Some(region) = &mut self.region {
                    *region = Region::new(self.output.tty.size().unwrap_or(app.terminal.size));
                    app.come_back();
                }
                self.output.bytes.clear();
                self.output.enter();
                self.surface.forget();
            }
            Signal::Interrupt => return Some(Msg::Interrupt),
            Signal::End(code) => return Some(Msg::End(code)),
        }
        None
    }

    fn suspend(&mut self, app: &mut App) {
        self.give_back(app);
        tty::stop_here();
        // Continued. The signal that says so finds everything done already.
        self.output.is_back = true;
        self.output.enter();
        if let Some((width, height)) = self.output.tty.size() {
            app.terminal.size = (width, height);
            self.surface.resize(width, height);
            if self.region.is_some() {
                self.region = Some(Region::new((width, height)));
            }
        }
        self.surface.forget();
    }

    /// Has a text edited in the user's editor, as a file whose name ends in `ending`.
    async fn edit_text(&mut self, text: &str, ending: &str, app: &mut App) -> Result<String, String> {
        let draft = editor::DraftFile::write(&self.runner.paths.state, text, ending)?;
        let edited = self.edit(vec![draft.path().into()], app).await;
        let text = draft.take();
        edited?;
        text
    }

    async fn open_file(&mut self, path: &str, line: Option<u64>, app: &mut App) -> Result<(), String> {
        let arguments = editor::arguments_for(&app.conversation.workspace.folder, path, line)?;
        self.edit(arguments, app).await
    }

    /// Gives the terminal to the editor until that ends.
    async fn edit(&mut self, arguments: Vec<std::ffi::OsString>, app: &mut App) -> Result<(), String> {
        self.give_back(app);
        let ended = editor::run(arguments, &app.conversation.workspace.folder).await;
        self.output.enter();
        self.surface.forget();
        ended
    }
}

/// Tells a user who looks elsewhere how things stand.
fn notify(notifier: &mut Notifier, app: &App, out: &mut Vec<u8>) {
    let state = if app.questions.announced.is_some() {
        Activity::Asking
    } else if app.conversation.transcript.is_running() {
        Activity::Working
    } else {
        Activity::Idle
    };
    let about = app.conversation.transcript.title().unwrap_or_default();
    notifier.look(state, &app.conversation.workspace.label, about, out);
}

/// When a frame is due because it shows the time, in milliseconds since the Unix epoch.
fn next_tick(app: &App) -> Option<u64> {
    if !app.shows_time() {
        return None;
    }
    let origin = app.conversation.last_turn_ms();
    let elapsed = now_ms().saturating_sub(origin);
    Some(origin + (elapsed / 1000 + 1) * 1000)
}

/// Restores the terminal before a panic is reported. A panic of another thread, or one that is caught, is only recorded.
fn restore_on_panic(state: PathBuf) {
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
