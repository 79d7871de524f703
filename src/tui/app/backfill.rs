//! Backfill: of a long conversation the screen has the end at first, and reads the rest when the reader asks for it. Continuing
//! a conversation waits for nothing else.
//!
//! The rest is read and folded on another thread, because a disk may be slow: meanwhile a line says so, and every key acts. An
//! action that needs the rest is done when it is there. In the transcript, where keys are commands, those that are pressed
//! meanwhile are kept for that time, and Esc drops them and the action.

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use super::{Action, App, Effect, Focus, effects::ReadBack};
use crate::{
    journal::Log,
    protocol::{Position, Turn},
    t,
    text::WordList,
    transcript::Transcript,
    tui::widgets::transcript::{Following, Item},
};

/// Bytes that are read at first when the reader scrolls up; twice as many each time. A look a little way back does not pay for
/// all of the conversation, and the way to the beginning is read a few times at most.
const FURTHER_BYTES: u64 = 4 << 20;

/// Actions that need no more than the documents shown. All others look at the whole conversation.
const NEAR: WordList = WordList(
    "send queue newline clear editor history picture chip queued vim mode.next mode model effort theme trust
     conversation.new conversation.clear conversation.resume conversation.compact conversation.rename
     conversation.export sandbox palette inspect keys mouse problems focus escape interrupt leave quit suspend redraw
     next previous turn.next line.up line.down page.up page.down bottom fold reasoning times copy copy.code open
     retry panic",
);

/// The fold of such a part, and of all that comes after it.
#[derive(Debug)]
pub struct Backfilled {
    pub number: u64,
    pub transcript: Transcript,
    /// Its last entry. `None`: there is none.
    pub last: Option<Position>,
}

impl ReadBack {
    /// Reads the part, or all of the conversation if there is no such part. Waits for the disk.
    pub fn read(self, log: &Log) -> Backfilled {
        let part = self.bytes.and_then(|it| log.further(it)).zip(log.recent());
        let (transcript, entries) = match part {
            Some(((turn, entries), recent)) => {
                let mut transcript = Transcript::starting_at(turn, recent.title);
                transcript.apply_all(&entries);
                (transcript, entries)
            }
            None => {
                let entries = log.after(Position(0));
                (Transcript::from_entries(&entries), entries)
            }
        };
        Backfilled {
            number: self.number,
            transcript,
            last: entries.last().map(|it| it.position),
        }
    }
}

/// The older part of a conversation: how much of it was read, and what is being read.
#[derive(Default)]
pub struct Backfill {
    /// Bytes before the end that were folded when the reader scrolled up.
    bytes: u64,
    /// Readings so far.
    number: u64,
    /// One at a time.
    reading: Option<Reading>,
}

struct Reading {
    is_whole: bool,
    /// Actions to be done then.
    waiting: Vec<Waiting>,
    /// Keys that are taken then.
    keys: Vec<KeyEvent>,
}

/// An action that needs the whole conversation.
struct Waiting {
    name: &'static str,
    run: fn(&mut App, &str) -> Vec<Effect>,
    words: String,
    /// The draft's version when it was asked for.
    draft: u64,
    /// It was a key of the transcript's, and so are those that follow.
    holds_keys: bool,
}

impl Backfill {
    /// Another conversation takes the place of this one: what is being read belongs to the old one.
    pub fn reset(&mut self) {
        (self.bytes, self.reading) = (0, None);
    }

    /// Returns true while something is read.
    pub fn is_reading(&self) -> bool {
        self.reading.is_some()
    }

    /// Returns true while an action waits that keeps the keys after it.
    pub fn holds_keys(&self) -> bool {
        let mut waiting = self.reading.iter().flat_map(|it| &it.waiting);
        waiting.any(|it| it.holds_keys)
    }

    /// Keeps a key for later. Esc drops what waits; false is returned for a key with Ctrl, which acts at once.
    pub fn hold(&mut self, event: KeyEvent) -> bool {
        let Some(reading) = self
            .reading
            .as_mut()
            .filter(|_| !event.modifiers.contains(KeyModifiers::CONTROL))
        else {
            return false;
        };
        if event.code == KeyCode::Esc {
            reading.waiting.clear();
            reading.keys.clear();
        } else {
            reading.keys.push(event);
        }
        true
    }

    /// Begins to read, instead of what is being read.
    fn begin(&mut self, bytes: Option<u64>) -> Effect {
        self.number += 1;
        let reading = self.reading.take();
        let (waiting, keys) = reading.map(|it| (it.waiting, it.keys)).unwrap_or_default();
        self.reading = Some(Reading {
            is_whole: bytes.is_none(),
            waiting,
            keys,
        });
        Effect::ReadBack(ReadBack {
            bytes,
            number: self.number,
        })
    }
}

/// Returns the transcript before any entry of the log was read, and the position to read on from. `is_whole`: from the first
/// entry in any case.
pub fn beginning(log: &Log, is_whole: bool) -> (Transcript, Position) {
    match log.recent().filter(|_| !is_whole) {
        Some(recent) => (Transcript::starting_at(recent.turn, recent.title.clone()), recent.after),
        None => (Transcript::default(), Position(0)),
    }
}

impl Action {
    /// Runs the action, or, if it may look at what has not been read, has that read first.
    pub fn go(&self, app: &mut App, words: &str) -> Vec<Effect> {
        // With words, a copy may be of any document, or of all.
        let is_near = NEAR.contains(self.name) && (words.is_empty() || self.name != "copy");
        if is_near || !app.conversation.transcript.is_partial() {
            return (self.run)(app, words);
        }
        let waiting = Waiting {
            name: self.name,
            run: self.run,
            words: words.to_owned(),
            draft: app.composer.field.version(),
            holds_keys: app.viewport.focus == Focus::Transcript && app.overlays.is_empty(),
        };
        let effects = app.look_back();
        if let Some(reading) = &mut app.conversation.backfill.reading {
            reading.waiting.push(waiting);
        }
        effects
    }
}

impl App {
    /// Has the whole of a long conversation read, unless that is being done. The lines in view stay where they are.
    fn look_back(&mut self) -> Vec<Effect> {
        let backfill = &mut self.conversation.backfill;
        let is_coming = backfill.reading.as_ref().is_some_and(|it| it.is_whole);
        if is_coming || !self.conversation.transcript.is_partial() {
            return Vec::new();
        }
        self.viewport.bars = None;
        vec![backfill.begin(None)]
    }

    /// Has the whole read if `turn` is not shown.
    pub fn look_back_to(&mut self, turn: Turn) -> Vec<Effect> {
        let first = self.conversation.transcript.exchanges.first();
        if first.is_some_and(|it| turn < it.turn) {
            return self.look_back();
        }
        Vec::new()
    }

    /// Takes what was read. Returns what follows, and the keys that were pressed meanwhile.
    pub fn take_back(&mut self, read: Backfilled) -> (Vec<Effect>, Vec<KeyEvent>) {
        let Backfilled {
            number,
            mut transcript,
            last,
        } = read;
        let backfill = &mut self.conversation.backfill;
        let Some(reading) = backfill.reading.take_if(|_| number == backfill.number) else {
            return (Vec::new(), Vec::new());
        };
        self.viewport.bars = None;
        // What has come since is in memory, unless the log has let go of it, too.
        let log = self.conversation.link.log();
        let since = last.unwrap_or_default();
        if log.recent().is_some_and(|it| it.after > since) {
            backfill.reading = Some(reading);
            return (vec![backfill.begin(None)], Vec::new());
        }
        let more = log.after(since);
        transcript.apply_all(&more);
        if transcript.is_partial() {
            transcript.inherit(&self.conversation.transcript);
        }
        self.put_back(transcript, more.last().map(|it| it.position).or(last));
        let mut effects = Vec::new();
        for it in reading.waiting {
            // A copy takes no keys from anybody.
            if !it.holds_keys && it.name != "copy" && self.has_typed_since(it.draft) {
                effects.extend(self.toast(t!("news-typed-meanwhile")));
                continue;
            }
            effects.extend((it.run)(self, &it.words));
        }
        (effects, reading.keys)
    }

    /// Replaces the fold by a longer one that ends with it.
    fn put_back(&mut self, transcript: Transcript, last: Option<Position>) {
        let first = self.conversation.transcript.exchanges.first().map(|it| it.turn);
        self.conversation.transcript = transcript;
        let mut exchanges = self.conversation.transcript.exchanges.iter();
        let by = exchanges.position(|it| Some(it.turn) == first).unwrap_or_default();
        self.viewport.pane.put_in_front(by, &self.conversation.transcript);
        (self.viewport.search, self.viewport.selection) = (None, None);
        self.conversation.follow_from = last;
    }

    /// Removes the turns that the log has retired, if the reader is at the end and nothing shown needs them.
    pub fn forget_retired(&mut self) {
        let pane = &self.viewport.pane;
        let is_at_end = pane.follow == Following::End && self.overlays.is_empty();
        let is_looking = self.viewport.search.is_some() || self.viewport.selection.is_some();
        let is_looking = is_looking || self.conversation.backfill.is_reading();
        // Inline, the items that are in the terminal's own lines are counted from the first one.
        if self.conversation.reads_whole || self.terminal.inline.is_some() || !is_at_end || is_looking {
            return;
        }
        let Some(recent) = self.conversation.link.log().recent() else {
            return;
        };
        let in_view = pane
            .first_exchange()
            .into_iter()
            .chain(pane.selected.map(Item::exchange));
        let exchanges = &self.conversation.transcript.exchanges;
        let is_shown = in_view
            .filter_map(|it| exchanges.get(it))
            .any(|it| it.turn < recent.turn);
        if is_shown {
            return;
        }
        let by = self.conversation.transcript.forget_before(recent.turn);
        if by > 0 {
            self.viewport.pane.remove_from_front(by);
            self.conversation.backfill.reset();
            self.viewport.bars = None;
        }
    }

    /// Has more of the conversation read when the reader has reached its first line.
    pub fn look_back_from_the_top(&mut self) -> Vec<Effect> {
        let backfill = &mut self.conversation.backfill;
        let is_partial = self.conversation.transcript.is_partial();
        let is_wanted = is_partial && self.overlays.is_empty() && self.viewport.pane.is_at_top();
        if !is_wanted || backfill.is_reading() {
            return Vec::new();
        }
        backfill.bytes = (backfill.bytes * 2).max(FURTHER_BYTES);
        self.viewport.bars = None;
        vec![backfill.begin(Some(backfill.bytes))]
    }
}
