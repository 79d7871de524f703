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
    app::{App, Appearance, Composer, Conversation, Preferences, Questions, Terminal, Themes, Viewport, Workspace},
    effects::Effect,
    keymap::Keymap,
    msg::{Msg, Outcome},
    overlays::Overlays,
    terminal::{
        Input, Surface,
        input_parser::{InputParser, bytes_of},
    },
    update::update,
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
            hold: crate::link::SandboxStatus::default(),
        }
    }

    fn ask(&self, _: Query) -> Pin<Box<dyn Future<Output = Result<Reply, AskError>> + Send>> {
        Box::pin(async { Ok(Reply::Models(vec!["one".into(), "two".into()])) })
    }
}

pub struct TestApp {
    pub app: App,
    pub screen: Surface,
    pub link: Arc<Noting>,
    pub effects: Vec<Effect>,
    terminal: Option<vt100::Parser>,
    read: Position,
    bytes: usize,
}

/// A time far from zero, so that ages can be negative mistakes.
const START_MS: u64 = 1_700_000_000_000;

impl TestApp {
    pub fn new(width: u16, height: u16) -> Self {
        Self::on(Log::new(), width, height)
    }

    /// With a log of which there is something already.
    pub fn on(log: Arc<Log>, width: u16, height: u16) -> Self {
        let (transcript, read) = super::backfill::beginning(&log, false);
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
            },
            terminal: Terminal {
                size: (width, height),
                ..Terminal::default()
            },
            preferences: Preferences {
                settings,
                keymap: Keymap::built_in(),
                is_developer: false,
                problems: Vec::new(),
            },
            status: super::status::Status::default(),
            toast: None,
            now_ms: START_MS,
        };
        let size = at_least_one;
        let mut desk = Self {
            app,
            screen: Surface::new(width, height),
            link,
            effects: Vec::new(),
            terminal: Some(vt100::Parser::new(size(height), size(width), 0)),
            read,
            bytes: 0,
        };
        desk.screen.has_links = false;
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

    /// The questions to the link so far, oldest first.
    pub fn asked(&self) -> Vec<&Query> {
        let asks = self.effects.iter().filter_map(|it| match it {
            Effect::Ask(ask) => Some(&ask.query),
            _ => None,
        });
        asks.collect()
    }

    /// Replies to the newest question that passes `is_meant`.
    pub fn reply_to(&mut self, is_meant: impl Fn(&Query) -> bool, reply: Reply) {
        let ask = self.effects.iter().rev().find_map(|it| match it {
            Effect::Ask(ask) if is_meant(&ask.query) => Some(ask.clone()),
            _ => None,
        });
        let ask = ask.expect("it was asked");
        self.take(Msg::Done(Outcome::Replied(ask, Ok(reply))));
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
        self.read = self.app.conversation.follow_from.take().unwrap_or(self.read);
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
