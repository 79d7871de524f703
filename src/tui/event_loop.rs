//! The one event loop: waits for messages, lets `update` change the state, has effects carried out and changes shown.
//!
//! The screen, `--plain` and the tests run the same loop; each brings a [`FrontEnd`] of its own. Input comes before all else.
//! Entries of the log are applied in slices, so that input is seen in a flood of them. Nothing wakes the loop while it is idle.

use std::{
    collections::VecDeque,
    io,
    sync::Arc,
    time::{Duration, Instant},
};

use tokio::{
    signal::unix::{SignalKind, signal},
    sync::mpsc,
};

use super::{
    actions::writing::open_with,
    app::{App, Effect, backfill},
    effect_runner::Carried,
    msg::{EffectOutcome, Msg},
    setup::{now_ms, workspace},
    terminal::tty::leave,
    update::update,
};
use crate::{
    journal::{Follower, Log},
    link::Link,
    os::ending,
    protocol::{Entry, Position, Query},
};

/// Time that hooks of the end may take.
const LAST_MOMENT: Duration = Duration::from_secs(5);
/// Longest time that entries are applied before input is looked at again.
const SLICE: Duration = Duration::from_millis(4);

/// Why a front end could not start.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("standard output is no terminal\nsheaf -p answers without one")]
    NoTerminal(#[source] io::Error),
    #[error("signals cannot be listened to")]
    NoSignals(#[source] io::Error),
}

/// Input and output of the program: the screen, lines of text, or a test.
pub trait FrontEnd: Send {
    /// Most entries of the log that one message brings.
    const ENTRIES_AT_ONCE: usize = usize::MAX;

    type Input: Send;

    /// The time in milliseconds since the Unix epoch.
    fn now_ms(&self, _app: &App) -> u64 {
        now_ms()
    }

    /// Notes a message that is about to change the state.
    fn note(&mut self, msg: &Msg);

    /// Shows what has changed since the last call, or leaves it for a later one. Returns what the view needs.
    fn show(&mut self, app: &mut App) -> Vec<Effect>;

    /// Waits for input or for a time to act. The future may be dropped at any await: nothing is lost.
    fn read(&mut self) -> impl Future<Output = Self::Input> + Send;

    /// Turns input into messages.
    fn take(&mut self, input: Self::Input, app: &mut App) -> Vec<Msg>;

    /// Carries an effect out, or starts a task that does.
    fn carry_out(&mut self, effect: Effect, app: &mut App) -> impl Future<Output = Carried> + Send;

    /// Ends it: the terminal becomes what it was.
    fn leave(&mut self, app: &mut App);
}

/// A conversation, what shows it, and where its messages come from.
pub struct EventLoop<F> {
    pub app: App,
    pub front: F,
    inbox: mpsc::UnboundedReceiver<Msg>,
    follower: Follower,
    /// Entries that were read and are not applied yet.
    backlog: VecDeque<Arc<Entry>>,
    batch: Vec<Arc<Entry>>,
    /// A command has gone out since other tasks could last run.
    has_sent: bool,
    exit: Option<u8>,
}

impl<F: FrontEnd> EventLoop<F> {
    /// A loop over the messages of `inbox` and the entries of `follower`.
    pub fn over(app: App, front: F, inbox: mpsc::UnboundedReceiver<Msg>, follower: Follower) -> Self {
        Self {
            app,
            front,
            inbox,
            follower,
            backlog: VecDeque::new(),
            batch: Vec::new(),
            has_sent: false,
            exit: None,
        }
    }

    /// Runs until the program is to end; returns its exit code.
    pub async fn run(mut self) -> u8 {
        loop {
            self.step().await;
            if let Some(code) = self.exit {
                self.front.leave(&mut self.app);
                let ended = self.app.conversation.link.ask(Query::EndSession);
                tokio::time::timeout(LAST_MOMENT, ended).await.ok();
                return code;
            }
        }
    }

    /// Shows what has changed, waits for the next thing to happen and handles it. May be dropped while it waits.
    pub async fn step(&mut self) {
        // The task that obeys a command may share this thread: it comes before the frame, which may take its time.
        if std::mem::take(&mut self.has_sent) {
            tokio::task::yield_now().await;
        }
        self.apply_slice().await;
        self.show().await;
        tokio::select! {
            biased;
            input = self.front.read() => {
                for msg in self.front.take(input, &mut self.app) {
                    self.handle(msg).await;
                }
            }
            Some(msg) = self.inbox.recv() => self.handle(msg).await,
            // Input is only seen when the thread has looked for it.
            () = tokio::task::yield_now(), if !self.backlog.is_empty() => {}
            more = self.follower.next(&mut self.batch), if self.backlog.is_empty() => {
                self.backlog.extend(self.batch.drain(..));
                if !more {
                    // A closed log stays closed: nothing will come from it.
                    self.follower = Log::new().follow(Position(0));
                }
            }
        }
    }

    /// Shows what has changed.
    pub async fn show(&mut self) {
        for effect in self.front.show(&mut self.app) {
            self.carry_out(effect).await;
        }
    }

    /// Sends the first message of a conversation.
    pub async fn submit(&mut self, text: String) {
        self.app.now_ms = self.front.now_ms(&self.app);
        for effect in open_with(&mut self.app, text) {
            self.carry_out(effect).await;
        }
    }

    /// Opens the list of conversations.
    pub async fn choose(&mut self) {
        let draft = self.app.composer.field.version();
        self.carry_out(Effect::Sessions(draft)).await;
    }

    /// Lets `update` take a message, and carries out what follows from it.
    pub async fn handle(&mut self, msg: Msg) {
        let mut outcomes = VecDeque::new();
        let mut next = Some(msg);
        while let Some(msg) = next {
            if let Msg::Switch(link) = &msg {
                self.follow(link);
            }
            self.front.note(&msg);
            self.app.now_ms = self.front.now_ms(&self.app);
            let effects = update(&mut self.app, msg);
            if let Some(position) = self.app.conversation.follow_from.take() {
                self.backlog.clear();
                self.follower = self.app.conversation.link.log().follow(position);
            }
            for effect in effects {
                outcomes.extend(self.carry_out(effect).await);
            }
            next = outcomes.pop_front().map(Msg::Done);
        }
    }

    /// Carries out one effect; returns its outcome if that is known at once.
    async fn carry_out(&mut self, effect: Effect) -> Option<EffectOutcome> {
        match self.front.carry_out(effect, &mut self.app).await {
            Carried::Away => {}
            Carried::Sent => self.has_sent = true,
            Carried::Quit(code) => self.exit = Some(code),
            Carried::Done(outcome) => return Some(outcome),
        }
        None
    }

    /// Follows another conversation from now on.
    fn follow(&mut self, link: &Arc<dyn Link>) {
        self.follower = watched(link, self.app.conversation.reads_whole);
        self.backlog.clear();
        if let Some(folder) = link.about().workspace {
            self.app.conversation.workspace = workspace(&folder);
        }
    }

    /// Applies entries for a short while.
    async fn apply_slice(&mut self) {
        if self.backlog.is_empty() {
            return;
        }
        let until = Instant::now() + SLICE;
        while !self.backlog.is_empty() && Instant::now() < until {
            let count = self.backlog.len().min(F::ENTRIES_AT_ONCE);
            let entries = self.backlog.drain(..count).collect();
            self.handle(Msg::Entries(entries)).await;
        }
    }
}

/// Follows the log of a link and has it keep the raw frames for the inspector.
pub fn watched(link: &Arc<dyn Link>, is_whole: bool) -> Follower {
    link.log().watch();
    link.log().follow(backfill::beginning(link.log(), is_whole).1)
}

/// Brings the links that take the place of the first one into `inbox`.
pub fn forward(mut switch: mpsc::UnboundedReceiver<Arc<dyn Link>>, inbox: mpsc::UnboundedSender<Msg>) {
    tokio::spawn(async move {
        while let Some(link) = switch.recv().await {
            if inbox.send(Msg::Switch(link)).is_err() {
                break;
            }
        }
    });
}

/// A signal that a front end acts on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signal {
    Resize,
    Stop,
    Continue,
    Interrupt,
    /// Ends the program with this code.
    End(u8),
}

/// Signals that end every front end.
pub const ENDING: [(SignalKind, Signal); 3] = [
    // Restoring the terminal fails at once where it is gone.
    (SignalKind::hangup(), Signal::End(129)),
    (SignalKind::quit(), Signal::End(131)),
    (SignalKind::terminate(), Signal::End(143)),
];

/// Catches signals from now on and has `tell` pass them on until it returns false. What ends or interrupts the program ends
/// it also when the event loop cannot act, because nobody reads what it writes.
pub fn listen(
    kinds: impl IntoIterator<Item = (SignalKind, Signal)>,
    tell: impl Fn(Signal) -> bool + Clone + Send + 'static,
) -> Result<(), Error> {
    let kinds: Vec<_> = kinds.into_iter().collect();
    let is_limited = |it: &Signal| matches!(it, Signal::Interrupt | Signal::End(_));
    let limited = kinds.iter().filter(|it| is_limited(&it.1));
    ending::limit(limited.map(|it| it.0.as_raw_value()), leave);
    for (kind, meaning) in kinds {
        let mut signals = signal(kind).map_err(Error::NoSignals)?;
        let tell = tell.clone();
        tokio::spawn(async move {
            while signals.recv().await.is_some() {
                if is_limited(&meaning) {
                    ending::noticed(matches!(meaning, Signal::End(_)));
                }
                if !tell(meaning) {
                    break;
                }
            }
        });
    }
    Ok(())
}
