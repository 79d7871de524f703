//! Backfill: of a long conversation the screen has the end at first, and reads the rest when the reader asks for it. Continuing
//! a conversation waits for nothing else.

use std::sync::Arc;

use super::{Action, App, Effect};
use crate::{
    journal::Log,
    protocol::{Entry, Position, Turn},
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

/// Returns the transcript before any entry of the log was read, and the position to read on from. `is_whole`: from the first
/// entry in any case.
pub fn beginning(log: &Log, is_whole: bool) -> (Transcript, Position) {
    match log.recent().filter(|_| !is_whole) {
        Some(recent) => (Transcript::starting_at(recent.turn, recent.title.clone()), recent.after),
        None => (Transcript::default(), Position(0)),
    }
}

impl Action {
    /// Runs the action, after reading all that it may look at.
    pub fn go(&self, app: &mut App, words: &str) -> Vec<Effect> {
        // With words, a copy may be of any document, or of all.
        let is_near = NEAR.contains(self.name) && (words.is_empty() || self.name != "copy");
        if !is_near {
            app.look_back();
        }
        (self.run)(app, words)
    }
}

impl App {
    /// Reads the whole of a long conversation. The lines in view stay where they are.
    pub fn look_back(&mut self) {
        if !self.conversation.transcript.is_partial() {
            return;
        }
        let entries = self.conversation.link.log().after(Position(0));
        let whole = Transcript::from_entries(&entries);
        self.take_up(whole, &entries);
    }

    /// Reads the whole if `turn` is not shown.
    pub fn look_back_to(&mut self, turn: Turn) {
        let first = self.conversation.transcript.exchanges.first();
        if first.is_some_and(|it| turn < it.turn) {
            self.look_back();
        }
    }

    /// Reads a further part of it, or all if there is no such part.
    fn look_further_back(&mut self) {
        self.conversation.backfilled_bytes = (self.conversation.backfilled_bytes * 2).max(FURTHER_BYTES);
        let log = self.conversation.link.log();
        let (Some((turn, entries)), Some(recent)) = (log.further(self.conversation.backfilled_bytes), log.recent())
        else {
            return self.look_back();
        };
        let mut more = Transcript::starting_at(turn, recent.title);
        more.apply_all(&entries);
        more.inherit(&self.conversation.transcript);
        self.take_up(more, &entries);
    }

    /// Replaces the fold by a longer one that ends with it.
    fn take_up(&mut self, transcript: Transcript, entries: &[Arc<Entry>]) {
        let first = self.conversation.transcript.exchanges.first().map(|it| it.turn);
        self.conversation.transcript = transcript;
        let mut exchanges = self.conversation.transcript.exchanges.iter();
        let by = exchanges.position(|it| Some(it.turn) == first).unwrap_or_default();
        self.viewport.pane.put_in_front(by, &self.conversation.transcript);
        (self.viewport.search, self.viewport.selection) = (None, None);
        self.conversation.follow_from = entries.last().map(|it| it.position);
        self.viewport.bars = None;
    }

    /// Removes the turns that the log has retired, if the reader is at the end and nothing shown needs them.
    pub fn forget_retired(&mut self) {
        let pane = &self.viewport.pane;
        let is_at_end = pane.follow == Following::End && self.overlays.is_empty();
        let is_looking = self.viewport.search.is_some() || self.viewport.selection.is_some();
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
            self.conversation.backfilled_bytes = 0;
            self.viewport.bars = None;
        }
    }

    /// Takes up more of the conversation when the reader has reached its first line.
    pub fn look_back_from_the_top(&mut self) {
        if self.conversation.transcript.is_partial() && self.overlays.is_empty() && self.viewport.pane.is_at_top() {
            self.look_further_back();
        }
    }
}
