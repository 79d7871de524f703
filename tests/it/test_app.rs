//! A screen without a terminal, for tests and benches: keys and events go in, pictures and commands come out.
//!
//! The event loop is the real one. Its frames are drawn by the real surface and read back by a terminal emulator, so a picture is
//! what a person would see. The unit tests of `tui`, the integration tests and the benches each compile this file.

#![allow(dead_code, reason = "each of its users needs a part of it")]

use std::{
    convert::Infallible,
    future::{Future, pending},
    num::NonZeroU16,
    ops::{Deref, DerefMut},
    pin::{Pin, pin},
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Wake},
};

use serde_json::{Map, Value};
use sheaf::{
    config::Settings,
    journal::Log,
    link::{About, AskError, Link, SandboxStatus},
    protocol::{Command, DocumentStart, Done, Event, Kind, Message, Query, Reply},
    text::NoColours,
    theme::Theme,
    tui::{
        actions::ACTIONS,
        app::{
            App, Appearance, Composer, Conversation, Effect, Keymap, Overlays, Preferences, Questions, Status,
            Terminal, Themes, Viewport, Workspace, backfill,
        },
        effect_runner::Carried,
        event_loop::{EventLoop, FrontEnd},
        msg::{EffectOutcome, Msg},
        terminal::{Input, Surface, input_parser::InputParser},
    },
};
use tokio::sync::mpsc;

/// A link that only notes what is sent.
pub struct Noting {
    log: Arc<Log>,
    pub sent: Mutex<Vec<Command>>,
}

impl Link for Noting {
    fn log(&self) -> &Arc<Log> {
        &self.log
    }

    fn send(&self, command: Command) {
        self.sent.lock().unwrap_or_else(PoisonError::into_inner).push(command);
    }

    fn about(&self) -> About {
        About {
            is_attached: false,
            peer: "test".into(),
            model: Some("model".into()),
            also: Vec::new(),
            window: Some(1000),
            is_replay: false,
            is_scripted: false,
            written_elsewhere: None,
            hears: false,
            runs: true,
            reads_context: false,
            workspace: None,
            hold: SandboxStatus::default(),
        }
    }

    fn ask(&self, _: Query) -> Pin<Box<dyn Future<Output = Result<Reply, AskError>> + Send>> {
        Box::pin(async { Ok(Reply::Models(vec!["one".into(), "two".into()])) })
    }
}

/// The event loop with a [`Recorder`] instead of a terminal. Each message is shown before the next one is taken.
pub struct TestApp(EventLoop<Recorder>);

impl Deref for TestApp {
    type Target = EventLoop<Recorder>;

    fn deref(&self) -> &Self::Target {
        &self.0
    }
}

impl DerefMut for TestApp {
    fn deref_mut(&mut self) -> &mut Self::Target {
        &mut self.0
    }
}

/// A front end that records effects, and draws into a terminal emulator.
pub struct Recorder {
    pub screen: Surface,
    pub link: Arc<Noting>,
    /// All effects so far, oldest first. Only commands to the link are carried out.
    pub effects: Vec<Effect>,
    inbox: mpsc::UnboundedSender<Msg>,
    terminal: Option<vt100::Parser>,
    bytes: usize,
    is_dirty: bool,
    /// The disk does not answer: what is read of it does not come by itself.
    pub is_disk_held: bool,
}

impl FrontEnd for Recorder {
    type Input = Infallible;

    fn now_ms(&self, app: &App) -> u64 {
        app.now_ms
    }

    fn note(&mut self, _: &Msg) {
        self.is_dirty = true;
    }

    fn show(&mut self, app: &mut App) -> Vec<Effect> {
        if std::mem::take(&mut self.is_dirty) {
            self.draw(app);
        }
        Vec::new()
    }

    async fn read(&mut self) -> Infallible {
        pending().await
    }

    fn take(&mut self, input: Infallible, _: &mut App) -> Vec<Msg> {
        match input {}
    }

    async fn carry_out(&mut self, effect: Effect, app: &mut App) -> Carried {
        if let Effect::ReadBack(part) = &effect
            && !self.is_disk_held
        {
            let read = part.read(app.conversation.link.log());
            return Carried::Done(EffectOutcome::Backfilled(Box::new(read)));
        }
        if let Effect::Send(command) = &effect {
            self.link.send(command.clone());
        }
        self.effects.push(effect);
        Carried::Away
    }

    fn leave(&mut self, _: &mut App) {}
}

impl Recorder {
    fn draw(&mut self, app: &mut App) {
        let mut out = Vec::new();
        app.measure();
        app.draw(&mut self.screen, &mut out);
        self.bytes += out.len();
        if let Some(terminal) = &mut self.terminal {
            terminal.process(&out);
        }
    }
}

/// Notices that a future can go on.
#[derive(Default)]
struct Woken(AtomicBool);

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// A time far from zero, so that ages can be negative mistakes.
const START_MS: u64 = 1_700_000_000_000;

impl TestApp {
    pub fn new(width: u16, height: u16) -> Self {
        Self::on(Log::new(), width, height)
    }

    /// With a log of which there is something already.
    pub fn on(log: Arc<Log>, width: u16, height: u16) -> Self {
        let (transcript, read) = backfill::beginning(&log, false);
        let link = Arc::new(Noting {
            log,
            sent: Mutex::default(),
        });
        let settings = Settings {
            links: false,
            ..Settings::default()
        };
        let workspace = Workspace {
            folder: "/work".into(),
            home: None,
            label: "~/shop".into(),
            branch: Some("main".into()),
        };
        let app = App {
            conversation: Conversation {
                transcript,
                ..Conversation::of(Arc::clone(&link) as Arc<dyn Link>, workspace, false)
            },
            viewport: Viewport::default(),
            composer: Composer::default(),
            questions: Questions::default(),
            overlays: Overlays::default(),
            appearance: Appearance {
                output_rows: 8,
                theme: Theme::built_in("sheaf-dark").expect("it is in the table"),
                themes: Themes {
                    names: vec!["sheaf-dark".into(), "sheaf-light".into()],
                    chosen: "sheaf-dark".into(),
                    ..Themes::default()
                },
                look_version: 1,
                colours: Arc::new(NoColours),
                colours_version: 1,
                show_thinking: false,
                show_times: false,
                context_lines: 3,
            },
            terminal: Terminal {
                size: (width, height),
                ..Terminal::default()
            },
            preferences: Preferences {
                settings,
                keymap: Keymap::built_in(ACTIONS),
                is_developer: false,
                problems: Vec::new(),
                written: std::collections::BTreeMap::new(),
            },
            status: Status::default(),
            toast: None,
            toast_ms: 0,
            now_ms: START_MS,
        };
        let (inbox, inbox_here) = mpsc::unbounded_channel();
        let follower = link.log.follow(read);
        let mut screen = Surface::new(width, height);
        screen.has_links = false;
        let recorder = Recorder {
            screen,
            link,
            effects: Vec::new(),
            inbox,
            terminal: Some(emulator(width, height)),
            bytes: 0,
            is_dirty: false,
            is_disk_held: false,
        };
        let mut desk = Self(EventLoop::over(app, recorder, inbox_here, follower));
        desk.draw();
        desk
    }

    /// Lets so much time pass.
    pub fn later(&mut self, ms: u64) {
        self.app.now_ms += ms;
        self.draw();
    }

    /// Keys as one writes them: words in `<…>` are keys, everything else is typed.
    pub fn keys(&mut self, text: &str) {
        let mut rest = text;
        while !rest.is_empty() {
            let (bytes, used) = match rest.strip_prefix('<').and_then(|it| it.split_once('>')) {
                Some((name, _)) => (bytes_of(name), name.len() + 2),
                None => {
                    let Some(letter) = rest.chars().next() else { return };
                    (letter.to_string().into_bytes(), letter.len_utf8())
                }
            };
            let mut inputs = Vec::new();
            let mut parser = InputParser::default();
            parser.push(&bytes, &mut inputs);
            parser.flush(&mut inputs);
            for input in inputs {
                self.take(Msg::Input(input));
            }
            rest = rest.get(used..).unwrap_or_default();
        }
    }

    pub fn paste(&mut self, text: &str) {
        self.take(Msg::Input(Input::Paste(text.to_owned())));
    }

    /// Handles a message and shows what came of it.
    pub fn take(&mut self, msg: Msg) {
        // The loop keeps the other end.
        let _ = self.front.inbox.send(msg);
        self.settle();
    }

    /// Runs the loop until it waits for something to happen.
    fn settle(&mut self) {
        let woken = Arc::new(Woken::default());
        let waker = Arc::clone(&woken).into();
        let mut context = Context::from_waker(&waker);
        loop {
            // In a runtime's thread the budget of the calling task would make a channel wake us forever once it is spent.
            let mut step = pin!(tokio::task::unconstrained(self.0.step()));
            while step.as_mut().poll(&mut context).is_pending() {
                if !woken.0.swap(false, Ordering::Relaxed) {
                    return;
                }
            }
        }
    }

    /// The questions to the link so far, oldest first.
    pub fn asked(&self) -> Vec<&Query> {
        let asks = self.front.effects.iter().filter_map(|it| match it {
            Effect::Ask(ask) => Some(&ask.query),
            _ => None,
        });
        asks.collect()
    }

    /// Replies to the newest question to the link that passes `is_meant`, as the link would. Panics if there is none.
    pub fn reply_to(&mut self, is_meant: impl Fn(&Query) -> bool, reply: Reply) {
        let ask = self.front.effects.iter().rev().find_map(|it| match it {
            Effect::Ask(ask) if is_meant(&ask.query) => Some(ask.clone()),
            _ => None,
        });
        let ask = ask.expect("it was asked");
        self.take(Msg::Done(EffectOutcome::Replied(ask, Ok(reply))));
    }

    /// Replies to the newest question.
    pub fn reply(&mut self, reply: Reply) {
        self.reply_to(|_| true, reply);
    }

    /// Replies to the newest question for files that fit `wanted`.
    pub fn offer_files(&mut self, wanted: &str, files: Vec<String>) {
        let is_meant = |it: &Query| matches!(it, Query::Files { pattern, .. } if pattern == wanted);
        self.reply_to(is_meant, Reply::Files(files));
    }

    pub fn resize(&mut self, width: u16, height: u16) {
        self.front.screen.resize(width, height);
        if self.front.terminal.is_some() {
            self.front.terminal = Some(emulator(width, height));
        }
        self.take(Msg::Resize(width, height));
    }

    /// Puts events into the log and shows what came of them.
    pub fn events(&mut self, events: impl IntoIterator<Item = Event>) {
        for event in events {
            self.front.link.log.append(self.app.now_ms, event);
        }
        self.settle();
    }

    pub fn draw(&mut self) {
        let Self(event_loop) = self;
        event_loop.front.draw(&mut event_loop.app);
    }

    /// Bytes written to the terminal so far.
    pub fn bytes(&self) -> usize {
        self.front.bytes
    }

    /// The screen as a person sees it, as text.
    pub fn picture(&self) -> String {
        let Some(terminal) = &self.front.terminal else {
            return self.front.screen.text();
        };
        let (height, width) = terminal.screen().size();
        let rows = terminal.screen().rows(0, width.get()).take(usize::from(height.get()));
        rows.map(|it| it.trim_end().to_owned()).collect::<Vec<_>>().join("\n")
    }

    /// The same with every colour and attribute: the sequences that would paint it.
    pub fn painted(&self) -> String {
        let terminal = self.front.terminal.as_ref();
        terminal.map(|it| it.screen().contents_formatted()).unwrap_or_default()
    }

    /// Without the emulator, for benches of everything before it.
    pub fn blind(mut self) -> Self {
        self.front.terminal = None;
        self
    }

    pub fn line(&self, y: usize) -> String {
        self.picture().lines().nth(y).unwrap_or_default().to_owned()
    }

    pub fn shows(&self, text: &str) -> bool {
        self.picture().contains(text)
    }

    pub fn sent(&self) -> Vec<Command> {
        self.front
            .link
            .sent
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    /// A whole exchange: what was said and texts that answered.
    pub fn exchange(&mut self, message: &str, answers: &[&str]) {
        self.events([Event::UserMessage(Message::user(message))]);
        for (at, answer) in answers.iter().enumerate() {
            let id = format!("doc_{:03}", at + 1);
            self.events(document(&id, "text", Some(answer), Value::Null));
        }
        self.events([Event::Done(Done::default())]);
    }
}

fn emulator(width: u16, height: u16) -> vt100::Parser {
    let size = |it| NonZeroU16::new(it).unwrap_or(NonZeroU16::MIN);
    vt100::Parser::new(size(height), size(width), 0)
}

pub fn start(id: &str, kind: &str, metadata: Value) -> Event {
    Event::DocumentStart(DocumentStart {
        id: id.into(),
        kind: Kind::parse(kind),
        sequence: None,
        content: None,
        metadata: members(metadata),
    })
}

pub fn delta(id: &str, text: &str) -> Event {
    Event::ContentDelta {
        document: id.into(),
        delta: text.into(),
    }
}

pub fn end(id: &str, content: Option<&str>, metadata: Value) -> Event {
    Event::DocumentEnd {
        document: id.into(),
        final_content: content.map(Into::into),
        metadata: members(metadata),
    }
}

/// A document from start to end.
pub fn document(id: &str, kind: &str, content: Option<&str>, metadata: Value) -> [Event; 2] {
    [start(id, kind, Value::Null), end(id, content, metadata)]
}

fn members(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(members) => members,
        _ => Map::new(),
    }
}

/// Returns the bytes that a terminal sends for a key by its name.
fn bytes_of(name: &str) -> Vec<u8> {
    let bytes: &[u8] = match name {
        "enter" => b"\r",
        "esc" => b"\x1b",
        "tab" => b"\t",
        "shift+tab" => b"\x1b[Z",
        "ctrl+shift+left" => b"\x1b[1;6D",
        "up" => b"\x1b[A",
        "shift+up" => b"\x1b[1;2A",
        "shift+down" => b"\x1b[1;2B",
        "down" => b"\x1b[B",
        "right" => b"\x1b[C",
        "left" => b"\x1b[D",
        "home" => b"\x1b[H",
        "end" => b"\x1b[F",
        "pgup" => b"\x1b[5~",
        "pgdn" => b"\x1b[6~",
        "delete" => b"\x1b[3~",
        "f1" => b"\x1bOP",
        "f2" => b"\x1bOQ",
        "f3" => b"\x1bOR",
        "backspace" => b"\x7f",
        "alt+enter" => b"\x1b\r",
        "shift+enter" => b"\x1b[13;2u",
        "ctrl+." => b"\x1b[46;5u",
        "ctrl+enter" => b"\x1b[13;5u",
        _ if name.starts_with("alt+") => return name.replace("alt+", "\x1b").into_bytes(),
        _ => {
            if let Some(letter) = name.strip_prefix("alt+") {
                return format!("\x1b{letter}").into_bytes();
            }
            let letter = name
                .strip_prefix("ctrl+")
                .and_then(|it| it.bytes().next())
                .expect("a key with a name");
            return vec![letter & 0x1f];
        }
    };
    bytes.to_vec()
}
