//! A screen without a terminal: keys and events go in, pictures and commands come out.
//!
//! For tests and benches, inside the crate and outside of it. What it shows was painted by the real painter and read back
//! by a terminal emulator, so a picture is what a person would see.

use std::{
    future::Future,
    num::NonZeroU16,
    pin::Pin,
    sync::{Arc, Mutex, PoisonError},
};

use serde_json::{Map, Value};

use super::{
    app::{App, Asking, Composer, Focus, Mouse, Themes, Where},
    effect::Effect,
    input::{Input, Parser},
    keymap::Keymap,
    msg::Msg,
    paint::Screen,
    pane::Pane,
    update::update,
    view::Layout,
};
use crate::{
    config::Settings,
    journal::Log,
    link::{About, AskError, Link},
    protocol::{Command, DocumentStart, Done, Event, Kind, Message, Position, Query, Reply},
    text::NoColours,
    theme::Theme,
};

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
            peer: "test".into(),
            model: Some("model".into()),
            window: Some(1000),
            is_replay: false,
            hears: false,
            runs: true,
            reads_context: false,
            workspace: None,
            hold: crate::link::Hold::default(),
        }
    }

    fn ask(&self, _: Query) -> Pin<Box<dyn Future<Output = Result<Reply, AskError>> + Send>> {
        Box::pin(async { Ok(Reply::Models(vec!["one".into(), "two".into()])) })
    }
}

pub struct Desk {
    pub app: App,
    pub screen: Screen,
    pub link: Arc<Noting>,
    pub effects: Vec<Effect>,
    terminal: Option<vt100::Parser>,
    read: Position,
    bytes: usize,
}

/// A time far from zero, so that ages can be negative mistakes.
const START_MS: u64 = 1_700_000_000_000;

impl Desk {
    pub fn new(width: u16, height: u16) -> Self {
        Self::on(Log::new(), width, height)
    }

    /// With a log of which there is something already.
    pub fn on(log: Arc<Log>, width: u16, height: u16) -> Self {
        let (transcript, read) = super::earlier::beginning(&log, false);
        let link = Arc::new(Noting {
            log,
            sent: Mutex::default(),
        });
        let settings = Settings {
            links: false,
            ..Settings::default()
        };
        let app = App {
            about: link.about(),
            link: Arc::clone(&link) as Arc<dyn Link>,
            transcript,
            reads_from: None,
            looked_back: 0,
            reads_whole: false,
            pane: Pane::default(),
            composer: Composer::default(),
            focus: Focus::Composer,
            layers: Vec::new(),
            mode: crate::protocol::Mode::Agent,
            model: None,
            effort: None,
            status: super::status::Status::default(),
            place: Where {
                workspace: "/work".into(),
                home: None,
                shown: "~/shop".into(),
                branch: Some("main".into()),
            },
            asking: Asking::default(),
            toast: None,
            clicks: super::app::Clicks::default(),
            theme: Theme::built_in("sheaf-dark").expect("it is in the table"),
            themes: Themes {
                names: vec!["sheaf-dark".into(), "sheaf-light".into()],
                chosen: "sheaf-dark".into(),
                ..Themes::default()
            },
            keymap: Keymap::built_in(),
            settings,
            now_ms: START_MS,
            size: (width, height),
            last_interrupt_ms: 0,
            is_developer: false,
            look_version: 1,
            colours: Arc::new(NoColours),
            colours_version: 1,
            show_thinking: false,
            show_times: false,
            search: None,
            selection: None,
            lights: Vec::new(),
            mouse: Mouse::Full,
            has_keyboard_protocol: false,
            problems: Vec::new(),
            layout: Layout::default(),
            chrome: None,
            is_unstored: false,
            inline: None,
            images: super::image::Images::default(),
            aside: Vec::new(),
        };
        let size = at_least_one;
        let mut desk = Self {
            app,
            screen: Screen::new(width, height),
            link,
            effects: Vec::new(),
            terminal: Some(vt100::Parser::new(size(height), size(width), 0)),
            read,
            bytes: 0,
        };
        desk.screen.links = false;
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
                Some((name, _)) => (named(name), name.len() + 2),
                None => {
                    let Some(letter) = rest.chars().next() else { return };
                    (letter.to_string().into_bytes(), letter.len_utf8())
                }
            };
            let mut inputs = Vec::new();
            let mut parser = Parser::default();
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

    pub fn take(&mut self, msg: Msg) {
        let effects = update(&mut self.app, msg);
        for effect in &effects {
            if let Effect::Send(command) = effect {
                self.link.send(command.clone());
            }
        }
        self.effects.extend(effects);
        self.draw();
    }

    pub fn resize(&mut self, width: u16, height: u16) {
        self.screen.resize(width, height);
        let size = at_least_one;
        if self.terminal.is_some() {
            self.terminal = Some(vt100::Parser::new(size(height), size(width), 0));
        }
        self.take(Msg::Resize(width, height));
    }

    /// Puts events into the log and shows what came of them.
    pub fn events(&mut self, events: impl IntoIterator<Item = Event>) {
        for event in events {
            self.link.log.append(self.app.now_ms, event);
        }
        self.read = self.app.reads_from.take().unwrap_or(self.read);
        let entries = self.link.log.after(self.read);
        self.read = self.link.log.last();
        self.take(Msg::Entries(entries));
    }

    pub fn draw(&mut self) {
        let mut out = Vec::new();
        self.app.measure();
        self.app.draw(&mut self.screen, &mut out);
        self.bytes += out.len();
        if let Some(terminal) = &mut self.terminal {
            terminal.process(&out);
        }
    }

    /// Bytes written to the terminal so far.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// What a person sees.
    pub fn picture(&self) -> String {
        let Some(terminal) = &self.terminal else {
            return self.screen.text();
        };
        let (height, width) = terminal.screen().size();
        let rows = terminal.screen().rows(0, width.get()).take(usize::from(height.get()));
        rows.map(|it| it.trim_end().to_owned()).collect::<Vec<_>>().join("\n")
    }

    /// The same with every colour and attribute: the sequences that would paint it.
    pub fn painted(&self) -> String {
        let terminal = self.terminal.as_ref();
        terminal.map(|it| it.screen().contents_formatted()).unwrap_or_default()
    }

    /// Without the emulator, for benches of everything before it.
    pub fn blind(mut self) -> Self {
        self.terminal = None;
        self
    }

    pub fn line(&self, y: usize) -> String {
        self.picture().lines().nth(y).unwrap_or_default().to_owned()
    }

    pub fn shows(&self, text: &str) -> bool {
        self.picture().contains(text)
    }

    pub fn sent(&self) -> Vec<Command> {
        self.link.sent.lock().unwrap_or_else(PoisonError::into_inner).clone()
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

fn at_least_one(n: u16) -> NonZeroU16 {
    NonZeroU16::new(n).unwrap_or(NonZeroU16::MIN)
}

fn named(name: &str) -> Vec<u8> {
    let bytes: &[u8] = match name {
        "enter" => b"\r",
        "esc" => b"\x1b",
        "tab" => b"\t",
        "shift+tab" => b"\x1b[Z",
        "ctrl+shift+left" => b"\x1b[1;6D",
        "alt+/" => b"\x1b/",
        "up" => b"\x1b[A",
        "down" => b"\x1b[B",
        "right" => b"\x1b[C",
        "left" => b"\x1b[D",
        "home" => b"\x1b[H",
        "end" => b"\x1b[F",
        "pgup" => b"\x1b[5~",
        "pgdn" => b"\x1b[6~",
        "f1" => b"\x1bOP",
        "f2" => b"\x1bOQ",
        "backspace" => b"\x7f",
        "alt+enter" => b"\x1b\r",
        "shift+enter" => b"\x1b[13;2u",
        "ctrl+." => b"\x1b[46;5u",
        _ => {
            let letter = name
                .strip_prefix("ctrl+")
                .and_then(|it| it.bytes().next())
                .expect("a key with a name");
            return vec![letter & 0x1f];
        }
    };
    bytes.to_vec()
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
