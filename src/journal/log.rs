//! The log in memory: append, and follow by position.

use std::{
    collections::{BTreeMap, HashMap},
    num::NonZeroUsize,
    ops::Bound,
    sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError},
};

use tokio::sync::watch;

use super::{
    backfill::{Earlier, Recent, StoredPart},
    delta_memory::DeltaMemory,
    run::{DeltaRun, Readable, StoredEntries},
    trace::Trace,
};
use crate::{
    os::long_text,
    protocol::{Cost, DocumentId, Entry, Event, Position, Turn},
};

/// Bytes of older entries that are read for a follower that wants some, but not all of them.
const LATELY_BYTES: u64 = 4 << 20;

/// Bytes of deltas that a follower that may stall takes at a time.
const BATCH_BYTES: usize = 16 << 10;

/// Entries for which a follower keeps room between two calls: those of an answer come a few at a time.
const KEPT_FOUND: usize = 8;

/// Memory of unread deltas that are kept for a close follower after their documents have ended, in bytes.
const SPENT_BYTES: usize = 1 << 20;

/// An append-only list of entries that any number of readers follow, each at its own pace.
#[derive(Debug)]
pub struct Log {
    state: Mutex<LogState>,
    /// The position of the newest entry; `watch` lets a slow reader skip straight to it.
    newest: watch::Sender<Position>,
    /// The position of the newest entry that is no piece of something unfinished, once somebody follows it.
    settled: OnceLock<watch::Sender<Position>>,
    /// Raw frames, for the inspector.
    trace: OnceLock<Arc<Trace>>,
}

#[derive(Debug, Default)]
struct LogState {
    /// Entries by the first position of each, with gaps where deltas were dropped. A tree, because documents that are
    /// open at the same time leave gaps anywhere.
    entries: BTreeMap<Position, StoredEntries>,
    last: Position,
    turn: Turn,
    /// Positions of the deltas of each open document.
    open: HashMap<(Turn, DocumentId), Vec<Position>>,
    closed: bool,
    /// Pieces of ended documents that a close follower has still to read.
    spent: BTreeMap<Position, StoredEntries>,
    spent_bytes: usize,
    /// Last position that each close follower has read.
    close: HashMap<u64, Position>,
    followers: u64,
    /// If set, entries after this position are dropped when every close follower has read them.
    lets_go: Option<Position>,
    deltas: DeltaMemory,
    /// The entries that are not in memory.
    earlier: Option<Arc<StoredPart>>,
}

impl Default for Log {
    fn default() -> Self {
        Self {
            state: Mutex::default(),
            newest: watch::Sender::new(Position(0)),
            settled: OnceLock::new(),
            trace: OnceLock::new(),
        }
    }
}

impl Log {
    pub fn new() -> Arc<Self> {
        Arc::default()
    }

    /// Creates a log that holds at most `delta_bytes` bytes of deltas in memory; the others are in a file.
    pub fn sparing(delta_bytes: usize) -> Arc<Self> {
        let log = Self::default();
        log.lock().deltas = DeltaMemory::of(delta_bytes);
        Arc::new(log)
    }

    /// A log that starts with entries from elsewhere, ordered by position.
    pub fn from_entries(entries: Vec<Entry>) -> Arc<Self> {
        let log = Self::new();
        for entry in entries {
            log.insert(entry);
        }
        log
    }

    /// Creates a log whose older entries are read from `earlier` each time they are needed.
    pub fn from_recent(recent: Recent, earlier: Box<dyn Earlier>, entries: Vec<Entry>) -> Arc<Self> {
        let log = Self::default();
        let mut state = log.lock();
        (state.last, state.turn) = (recent.after, recent.turn);
        state.earlier = Some(Arc::new(StoredPart {
            recent,
            source: earlier,
        }));
        drop(state);
        for entry in entries {
            log.insert(entry);
        }
        Arc::new(log)
    }

    /// Returns the start of the part in memory. `None` if that begins with the first entry.
    pub fn recent(&self) -> Option<Recent> {
        self.lock().earlier.as_ref().map(|it| it.recent.clone())
    }

    /// Removes the entries up to `recent` from memory: from now on they are read from `earlier`. Does nothing and returns false
    /// while a close follower has not read them.
    pub fn retire(&self, recent: Recent, earlier: Box<dyn Earlier>) -> bool {
        let mut state = self.lock();
        if state.close.values().any(|it| *it < recent.after) {
            return false;
        }
        let rest = state.entries.split_off(&Position(recent.after.0 + 1));
        for first in std::mem::replace(&mut state.entries, rest).into_keys() {
            state.deltas.removed(first);
        }
        state.earlier = Some(Arc::new(StoredPart {
            recent,
            source: earlier,
        }));
        true
    }

    /// Reads all entries into memory if `event` continues from a turn on disk: the end alone makes no sense then.
    fn unretire_for(&self, event: &Event) {
        let Event::Branch(branch) = event else { return };
        loop {
            let part = self.lock().earlier.clone();
            let Some(part) = part.filter(|it| branch.after < it.recent.turn) else {
                return;
            };
            let entries: Vec<_> = part.after(Position(0)).collect();
            if entries.is_empty() {
                tracing::warn!("older turns cannot be read now; they stay on disk");
                return;
            }
            let mut state = self.lock();
            if state.earlier.as_ref().is_some_and(|it| Arc::ptr_eq(it, &part)) {
                let entries = entries.into_iter().map(|it| (it.position, StoredEntries::Whole(it)));
                state.entries.extend(entries);
                state.earlier = None;
            }
        }
    }

    /// Returns the part in memory with some entries before it, if they can be read. `None` if all entries are in memory.
    pub fn lately(&self) -> Option<Vec<Arc<Entry>>> {
        let recent = self.recent()?;
        let further = self.further(LATELY_BYTES).map(|it| it.1);
        Some(further.unwrap_or_else(|| self.after(recent.after)))
    }

    /// Returns the part in memory with about `bytes` bytes of entries before it, and the turn with which they begin.
    /// `None` if all entries are in
    /// memory, or only all of them can be read.
    pub fn further(&self, bytes: u64) -> Option<(Turn, Vec<Arc<Entry>>)> {
        let state = self.lock();
        let part = state.earlier.clone()?;
        let rest: Vec<_> = all_after(&state.entries, part.recent.after).collect();
        drop(state);
        let (turn, entries) = part.source.last(bytes)?;
        let mut entries: Vec<_> = entries.into_iter().map(Arc::new).collect();
        entries.extend(rest.into_iter().flat_map(Readable::entries));
        Some((turn, entries))
    }

    /// Returns the cost of the answers before the part in memory, and the turn with which that begins. `None` if all entries
    /// are in memory. Takes a while.
    pub fn spent_earlier(&self) -> Option<(Cost, Turn)> {
        let part = self.lock().earlier.clone()?;
        Some((part.source.spent(), part.recent.turn))
    }

    /// Appends to the current turn; a user message opens the next one.
    pub fn append(&self, at_ms: u64, event: Event) -> Position {
        self.unretire_for(&event);
        let mut state = self.lock();
        if matches!(event, Event::UserMessage(_)) {
            state.turn.0 += 1;
        }
        let turn = state.turn;
        self.push_next(state, turn, at_ms, event)
    }

    /// Appends to a given turn: a change of an older document.
    pub fn append_to(&self, turn: Turn, at_ms: u64, event: Event) -> Position {
        self.unretire_for(&event);
        self.push_next(self.lock(), turn, at_ms, event)
    }

    fn push_next(&self, state: MutexGuard<'_, LogState>, turn: Turn, at_ms: u64, event: Event) -> Position {
        let entry = Entry {
            position: Position(state.last.0 + 1),
            turn,
            at_ms,
            event,
        };
        self.push(state, entry)
    }

    /// The turn that [`Self::append`] writes to.
    pub fn turn(&self) -> Turn {
        self.lock().turn
    }

    pub fn last(&self) -> Position {
        self.lock().last
    }

    /// Returns everything after `since` that is still stored.
    pub fn after(&self, since: Position) -> Vec<Arc<Entry>> {
        let state = self.lock();
        let part = state.stored_after(since);
        let rest: Vec<_> = all_after(&state.entries, since).collect();
        drop(state);
        let mut entries: Vec<_> = part.iter().flat_map(|it| it.after(since)).collect();
        entries.extend(rest.into_iter().flat_map(Readable::entries));
        entries
    }

    pub fn follow(self: &Arc<Self>, since: Position) -> Follower {
        Follower {
            log: Arc::clone(self),
            since,
            changed: self.newest.subscribe(),
            close: None,
            found: Vec::new(),
        }
    }

    /// Like [`Self::follow`], but includes deltas of documents that have ended meanwhile: for followers that forward
    /// events to readers. If unread deltas need more than a mebibyte of memory, the oldest are left out.
    pub fn follow_closely(self: &Arc<Self>, since: Position) -> Follower {
        let mut state = self.lock();
        state.followers += 1;
        let id = state.followers;
        state.close.insert(id, since);
        drop(state);
        let mut follower = self.follow(since);
        follower.close = Some(id);
        follower
    }

    /// Drops new entries as soon as every close follower has read them: for a log that is only passed on and stored
    /// elsewhere. Entries stay while there is no such follower, and so do earlier ones.
    pub fn let_go(&self) {
        let mut state = self.lock();
        state.lets_go = Some(state.last);
    }

    /// Like [`Self::follow`], but wakes up for settled events only; deltas come with them, or on demand.
    pub fn follow_settled(self: &Arc<Self>, since: Position) -> Follower {
        Follower {
            log: Arc::clone(self),
            since,
            changed: self.settled.get_or_init(|| watch::Sender::new(since)).subscribe(),
            close: None,
            found: Vec::new(),
        }
    }

    /// Starts the trace of raw frames, deltas included.
    pub fn watch(&self) -> Arc<Trace> {
        Arc::clone(self.trace.get_or_init(Arc::default))
    }

    /// Returns the trace of raw frames. `None` unless somebody asked for one.
    pub fn trace(&self) -> Option<&Arc<Trace>> {
        self.trace.get()
    }

    /// Nothing will be appended any more: followers end when they have read everything.
    pub fn close(&self) {
        self.lock().closed = true;
        self.newest.send_modify(|_| {});
        if let Some(settled) = self.settled.get() {
            settled.send_modify(|_| {});
        }
    }

    /// Returns true if nothing more will be appended.
    pub fn is_closed(&self) -> bool {
        self.lock().closed
    }

    /// Adds an entry of another log with its position and turn, unless that position is taken.
    pub fn mirror(&self, entry: Entry) {
        self.insert(entry);
    }

    /// Puts an entry of an older log in, at its own position.
    fn insert(&self, entry: Entry) {
        self.unretire_for(&entry.event);
        let mut state = self.lock();
        state.turn = state.turn.max(entry.turn);
        let position = entry.position.max(Position(state.last.0 + 1));
        self.push(state, Entry { position, ..entry });
    }

    fn push(&self, mut state: MutexGuard<'_, LogState>, entry: Entry) -> Position {
        let position = entry.position;
        state.last = position;
        let is_settled = !is_piece(&entry.event);
        if let Some(trace) = self.trace.get() {
            trace.made(&Arc::new(entry.clone()));
        }
        state.settle(&entry);
        state.keep(entry);
        let is_full = state.deltas.is_full();
        drop(state);
        if is_full {
            self.move_to_file();
        }
        if let Some(settled) = self.settled.get().filter(|_| is_settled) {
            settled.send_replace(position);
        }
        self.newest.send_replace(position);
        position
    }

    /// Moves the oldest complete runs to a file while too many are in memory. Nobody waits for the disk but who appends.
    fn move_to_file(&self) {
        loop {
            let mut state = self.lock();
            let Some((first, run)) = state.overdue() else { return };
            let file = state.deltas.file();
            drop(state);
            let file = file.map_or_else(|| long_text::scratch_file().map(Arc::new), Ok);
            let moved = file.and_then(|file| Ok((run.move_to(&file)?, file)));
            let mut state = self.lock();
            match moved {
                Ok((moved, file)) => {
                    state.deltas.set_file(&file);
                    state.moved(first, StoredEntries::Scratch(Arc::new(moved)));
                }
                Err(error) => {
                    tracing::debug!(%error, "a part of an answer stays in memory");
                    state.not_moved(first);
                }
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, LogState> {
        // A panic in a reader cannot leave the list half-written: every change of it is a single insert or remove.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Limit of what a follower reads at a time.
#[derive(Clone, Copy, Debug)]
struct ReadLimit {
    entries: usize,
    /// Bytes of deltas. Other entries are shared with the log.
    bytes: usize,
}

impl ReadLimit {
    const NONE: Self = Self {
        entries: usize::MAX,
        bytes: usize::MAX,
    };

    fn some(most: NonZeroUsize) -> Self {
        Self {
            entries: most.get(),
            bytes: BATCH_BYTES,
        }
    }

    /// Adds entries to `found`. Returns the last one if the limit was reached.
    fn fill(self, entries: impl Iterator<Item = Readable>, found: &mut Vec<Readable>) -> Option<Position> {
        let mut left = self;
        for mut entry in entries {
            left.entries -= entry.limit(left.entries);
            left.bytes = left.bytes.saturating_sub(entry.delta_bytes());
            let last = entry.last();
            found.push(entry);
            if left.entries == 0 || left.bytes == 0 {
                return Some(last);
            }
        }
        None
    }
}

impl LogState {
    /// Returns the part on disk if it has entries after `since`.
    fn stored_after(&self, since: Position) -> Option<Arc<StoredPart>> {
        self.earlier.clone().filter(|it| since < it.recent.after)
    }

    /// Adds the entries after `since` to `found`, up to a limit; with the deltas of ended documents if `with_spent`. Returns
    /// the last one if the limit was reached.
    fn read(&self, since: Position, with_spent: bool, limit: ReadLimit, found: &mut Vec<Readable>) -> Option<Position> {
        if !with_spent || self.spent.is_empty() {
            return limit.fill(all_after(&self.entries, since), found);
        }
        let mut kept = all_after(&self.entries, since).peekable();
        let mut spent = all_after(&self.spent, since).peekable();
        let merged = std::iter::from_fn(|| match (kept.peek(), spent.peek()) {
            (Some(one), Some(other)) if other.first() < one.first() => spent.next(),
            (Some(_), _) => kept.next(),
            (None, _) => spent.next(),
        });
        limit.fill(merged, found)
    }

    /// Drops entries that every close follower has read.
    fn sweep(&mut self) {
        let Some(read) = self.close.values().min().copied() else {
            while !self.spent.is_empty() {
                self.forget_first();
            }
            self.deltas.tidy();
            return;
        };
        while self.spent.first_key_value().is_some_and(|(_, it)| it.last() <= read) {
            self.forget_first();
        }
        self.deltas.tidy();
        if let Some(floor) = self.lets_go {
            let next = |it: &Self| {
                let (first, kept) = it.entries.range((Bound::Excluded(floor), Bound::Unbounded)).next()?;
                (kept.last() <= read).then_some(*first)
            };
            while let Some(first) = next(self) {
                self.entries.remove(&first);
                self.deltas.removed(first);
            }
        }
    }

    /// Drops text that is only printed, after `since`, if every close follower has read it.
    fn drop_printed(&mut self, since: Position) {
        let Some(read) = self.close.values().min().copied().filter(|it| *it > since) else {
            return;
        };
        // One that begins at or before it may have been read in part.
        let from = self.entries.range(..=since).next_back().map_or(since, |it| *it.0);
        let new = self
            .entries
            .range(from..=read)
            .filter(|(_, it)| it.is_only_printed() && it.last() <= read);
        let printed: Vec<_> = new.map(|(first, _)| *first).collect();
        for first in printed {
            self.entries.remove(&first);
            self.deltas.removed(first);
        }
    }

    fn forget_first(&mut self) {
        match self.spent.pop_first() {
            Some((first, pieces)) => {
                self.deltas.removed(first);
                self.spent_bytes = self.spent_bytes.saturating_sub(pieces.size());
            }
            None => self.spent_bytes = 0,
        }
    }

    fn keep(&mut self, entry: Entry) {
        let open = delta_of(&entry.event).map(|it| (entry.turn, it.clone()));
        if let Some(mut last) = self.entries.last_entry() {
            if last.get_mut().join(&entry) {
                return;
            }
            if last.get().is_run() {
                last.get_mut().complete();
                self.deltas.completed(*last.key(), last.get().size());
            }
        }
        let position = entry.position;
        // What is let go when it has been read need not be found again when its document ends.
        if let Some(pieces) = open
            .filter(|_| self.lets_go.is_none())
            .and_then(|it| self.open.get_mut(&it))
        {
            pieces.push(position);
        }
        self.entries.insert(position, StoredEntries::new(entry));
    }

    /// Drops the deltas that `entry` makes superfluous.
    fn settle(&mut self, entry: &Entry) {
        // Progress is true only until the next thing happens.
        let last = self.entries.last_key_value().and_then(|(_, it)| it.whole());
        if last.is_some_and(|it| matches!(it.event, Event::Progress(_))) {
            self.entries.pop_last();
        }
        if let Event::DocumentStart(start) = &entry.event {
            self.open.insert((entry.turn, start.id.clone()), Vec::new());
        }
        if let Event::DocumentEnd {
            document,
            final_content,
            metadata,
        } = &entry.event
        {
            let pieces = self.open.remove(&(entry.turn, document.clone())).unwrap_or_default();
            for position in pieces {
                let is_said = |it: &StoredEntries| it.is_said_by(final_content.is_some(), metadata);
                if self.entries.get(&position).is_some_and(is_said) {
                    self.spend(position);
                }
            }
            while self.spent_bytes > SPENT_BYTES {
                self.forget_first();
            }
            self.deltas.tidy();
        }
    }

    /// Returns the oldest complete run that should move to a file.
    fn overdue(&mut self) -> Option<(Position, DeltaRun)> {
        loop {
            let first = self.deltas.overdue()?;
            let stored = self.entries.get(&first).or_else(|| self.spent.get(&first));
            if let Some(run) = stored.and_then(StoredEntries::run) {
                return Some((first, run));
            }
        }
    }

    /// A run is in a file now, unless it was dropped meanwhile.
    fn moved(&mut self, first: Position, scratch: StoredEntries) {
        if let Some(run) = self.entries.get_mut(&first) {
            *run = scratch;
        } else if let Some(run) = self.spent.get_mut(&first) {
            self.spent_bytes = self.spent_bytes.saturating_sub(run.size()) + scratch.size();
            *run = scratch;
        }
    }

    /// A run stays in memory, unless it was dropped meanwhile.
    fn not_moved(&mut self, first: Position) {
        let stored = self.entries.get(&first).or_else(|| self.spent.get(&first));
        if let Some(size) = stored.map(StoredEntries::size) {
            self.deltas.failed(first, size);
        }
    }

    /// Removes deltas; a close follower that has not read them still gets them.
    fn spend(&mut self, position: Position) {
        let Some(pieces) = self.entries.remove(&position) else {
            return;
        };
        if !self.close.values().any(|since| *since < pieces.last()) {
            self.deltas.removed(position);
            return;
        }
        // The last one of a document has not been counted yet.
        if pieces.is_run() {
            self.deltas.completed(position, pieces.size());
        }
        self.spent_bytes += pieces.size();
        self.spent.insert(position, pieces);
    }
}

/// Returns the entries after `since`.
fn all_after(kept: &BTreeMap<Position, StoredEntries>, since: Position) -> impl Iterator<Item = Readable> {
    // The one that begins at or before it may go on behind it.
    let from = kept.range(..=since).next_back().map_or(since, |(first, _)| *first);
    let range = kept.range((Bound::Included(from), Bound::Unbounded));
    range.flat_map(move |(_, it)| it.after(since))
}

/// Returns the document whose end makes the event superfluous. `None` for other events.
pub(super) fn delta_of(event: &Event) -> Option<&DocumentId> {
    let is_whole = matches!(
        event,
        Event::DocumentStart(_) | Event::DocumentEnd { .. } | Event::DocumentUpdate { .. }
    );
    event.document().filter(|_| !is_whole)
}

/// Returns true for events that the end of their document replaces.
pub(super) fn is_piece(event: &Event) -> bool {
    match event {
        // Whole arguments are what a tool is about to be run with.
        Event::ToolCallArguments { arguments, .. } => arguments.is_string(),
        Event::ToolResult { .. } => false,
        Event::ThinkingDelta { .. } => true,
        other => delta_of(other).is_some(),
    }
}

/// A reader of a log with a position of its own.
#[derive(Debug)]
pub struct Follower {
    log: Arc<Log>,
    since: Position,
    changed: watch::Receiver<Position>,
    /// Its number among the close ones.
    close: Option<u64>,
    /// What was found and is not read yet; empty between two calls.
    found: Vec<Readable>,
}

impl Drop for Follower {
    fn drop(&mut self) {
        if let Some(id) = self.close {
            let mut state = self.log.lock();
            state.close.remove(&id);
            state.sweep();
        }
    }
}

impl Follower {
    /// Waits until there is something new and appends all of it to `batch`; `false` when the log is closed and read.
    ///
    /// Safe to drop at any await: nothing is lost.
    pub async fn next(&mut self, batch: &mut Vec<Arc<Entry>>) -> bool {
        self.next_within(ReadLimit::NONE, batch).await
    }

    /// Adds the entries that are there now to `batch`, without waiting.
    pub fn take(&mut self, batch: &mut Vec<Arc<Entry>>) -> bool {
        self.take_within(ReadLimit::NONE, batch)
    }

    /// Like [`Self::next`], but returns at most `most` entries and about `BATCH_BYTES` of text at a time, for readers that
    /// may stall on a batch.
    pub async fn next_some(&mut self, most: NonZeroUsize, batch: &mut Vec<Arc<Entry>>) -> bool {
        self.next_within(ReadLimit::some(most), batch).await
    }

    /// Adds entries that are there now to `batch`, without waiting: as many as [`Self::next_some`].
    pub fn take_some(&mut self, most: NonZeroUsize, batch: &mut Vec<Arc<Entry>>) -> bool {
        self.take_within(ReadLimit::some(most), batch)
    }

    async fn next_within(&mut self, limit: ReadLimit, batch: &mut Vec<Arc<Entry>>) -> bool {
        loop {
            self.changed.mark_unchanged();
            if self.take_within(limit, batch) {
                return true;
            }
            if self.log.lock().closed || self.changed.changed().await.is_err() {
                return self.take_within(limit, batch);
            }
        }
    }

    fn take_within(&mut self, limit: ReadLimit, batch: &mut Vec<Arc<Entry>>) -> bool {
        let before = batch.len();
        let since = self.since;
        let mut state = self.log.lock();
        let part = state.stored_after(since);
        let cut = state.read(since, self.close.is_some(), limit, &mut self.found);
        let read = cut.unwrap_or(state.last);
        let is_new = !self.found.is_empty();
        if let Some(id) = self.close {
            state.close.insert(id, read);
            state.drop_printed(since);
            state.sweep();
        }
        drop(state);
        batch.extend(part.iter().flat_map(|it| it.after(since)));
        batch.extend(self.found.drain(..).flat_map(Readable::entries));
        if self.found.capacity() > KEPT_FOUND {
            self.found = Vec::new();
        }
        let is_new = is_new || batch.len() > before;
        if is_new {
            self.since = read;
        }
        is_new
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Map;

    use super::*;
    use crate::os::scratch::ScratchFile;
    use crate::protocol::{DocumentStart, Kind, Message};

    fn start(id: &str) -> Event {
        Event::DocumentStart(DocumentStart {
            id: id.into(),
            kind: Kind::Text,
            sequence: None,
            content: None,
            metadata: Map::new(),
        })
    }

    fn delta(id: &str) -> Event {
        Event::ContentDelta {
            document: id.into(),
            delta: "x".into(),
        }
    }

    fn end(id: &str) -> Event {
        Event::DocumentEnd {
            document: id.into(),
            final_content: Some("xx".into()),
            metadata: Map::new(),
        }
    }

    #[test]
    fn the_deltas_of_an_ended_document_are_dropped_and_nobody_elses() {
        let log = Log::new();
        for event in [
            Event::UserMessage(Message::user("hi")),
            start("a"),
            start("b"),
            delta("a"),
            delta("b"),
            end("a"),
        ] {
            log.append(0, event);
        }
        let positions: Vec<_> = log.after(Position(0)).iter().map(|it| it.position.0).collect();
        assert_eq!(positions, [1, 2, 3, 5, 6]);
    }

    #[test]
    fn an_entry_whose_position_is_taken_comes_after_the_last() {
        let log = Log::new();
        for text in ["first", "second"] {
            log.mirror(Entry {
                position: Position(7),
                turn: Turn(1),
                at_ms: 0,
                event: Event::UserMessage(Message::user(text)),
            });
        }
        let found = log.after(Position(0));
        let said: Vec<_> = found
            .iter()
            .map(|it| match &it.event {
                Event::UserMessage(message) => (it.position.0, message.content.as_str()),
                other => panic!("{other:?}"),
            })
            .collect();
        assert_eq!(said, [(7, "first"), (8, "second")]);
    }

    /// Older entries that are read from elsewhere, and how often.
    #[derive(Clone, Debug, Default)]
    struct Counted {
        entries: Vec<Entry>,
        reads: Arc<std::sync::atomic::AtomicUsize>,
    }

    impl Earlier for Counted {
        fn entries(&self) -> Vec<Entry> {
            self.reads.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
            self.entries.clone()
        }

        fn spent(&self) -> Cost {
            Cost::default()
        }
    }

    #[test]
    fn older_entries_are_read_by_whoever_needs_them_only() {
        let log = Log::new();
        for text in ["first", "second", "third"] {
            log.append(0, Event::UserMessage(Message::user(text)));
        }
        let source = Counted {
            entries: log.after(Position(0)).iter().take(2).map(|it| (**it).clone()).collect(),
            ..Counted::default()
        };
        let reads = || source.reads.load(std::sync::atomic::Ordering::Relaxed);
        let recent = Recent {
            after: Position(2),
            turn: Turn(3),
            title: None,
        };
        assert!(log.retire(recent, Box::new(source.clone())));
        let positions = |since: u64| {
            let found = log.after(Position(since));
            found.iter().map(|it| it.position.0).collect::<Vec<_>>()
        };
        assert_eq!((positions(2), reads()), (vec![3], 0));
        assert_eq!((positions(1), reads()), (vec![2, 3], 1));
        assert_eq!((positions(0), reads()), (vec![1, 2, 3], 2));
    }

    #[test]
    fn a_result_is_dropped_when_the_end_of_its_call_repeats_it() {
        for (members, expected) in [
            (&["result"][..], false),
            (&["output"], false),
            (&["toolName"], true),
            (&[], true),
        ] {
            let log = Log::new();
            log.append(0, start("a"));
            log.append(
                0,
                Event::ToolResult {
                    document: "a".into(),
                    result: "found".into(),
                    duration_ms: None,
                },
            );
            let metadata = members.iter().map(|it| ((*it).to_owned(), "found".into())).collect();
            log.append(
                0,
                Event::DocumentEnd {
                    document: "a".into(),
                    final_content: None,
                    metadata,
                },
            );
            let found = log.after(Position(0));
            let has_result = found.iter().any(|it| matches!(it.event, Event::ToolResult { .. }));
            assert_eq!(has_result, expected, "{members:?}");
        }
    }

    #[test]
    fn text_that_was_printed_is_not_kept() {
        let said = |text: &str| Event::Said { delta: text.into() };
        let log = Log::new();
        let mut close = log.follow_closely(Position(0));
        log.append(0, Event::UserMessage(Message::user("hi")));
        log.append(0, start("a"));
        for _ in 0..3 {
            log.append(0, said("x"));
            log.append(0, said("y"));
            log.append(0, delta("a"));
        }
        let mut batch = Vec::new();
        // The second take begins within two pieces that are stored together.
        for limit in [3, 100] {
            let limit = ReadLimit {
                entries: limit,
                bytes: usize::MAX,
            };
            assert!(close.take_within(limit, &mut batch));
        }
        let is_said = |it: &&Arc<Entry>| matches!(it.event, Event::Said { .. });
        assert_eq!(batch.iter().filter(is_said).count(), 6);
        assert_eq!(log.after(Position(0)).iter().filter(is_said).count(), 0);
        assert_eq!(log.after(Position(0)).len(), 5);
    }

    #[test]
    fn documents_that_were_open_side_by_side_end_in_one_pass() {
        let log = Log::new();
        let count = 30_000;
        for at in 0..count {
            log.append(0, start(&at.to_string()));
            log.append(0, delta(&at.to_string()));
        }
        let began = std::time::Instant::now();
        for at in 0..count {
            log.append(0, end(&at.to_string()));
        }
        // Looking through everything for each of them would take minutes.
        assert!(began.elapsed().as_secs() < 5, "{:?}", began.elapsed());
        assert_eq!(log.after(Position(0)).len(), 2 * count);
    }

    #[test]
    fn a_reader_in_the_middle_misses_nothing_that_counts() {
        let log = Log::new();
        let mut follower = log.follow(Position(0));
        let mut batch = Vec::new();
        log.append(0, start("a"));
        log.append(0, delta("a"));
        assert!(follower.take(&mut batch));
        log.append(0, end("a"));
        assert!(follower.take(&mut batch));
        assert_eq!(batch.len(), 3);
        assert!(!follower.take(&mut batch));
    }

    #[test]
    fn a_close_reader_misses_no_piece_and_nothing_is_kept_that_all_have_read() {
        let log = Log::new();
        let mut close = log.follow_closely(Position(0));
        let late = log.follow_closely(Position(0));
        let mut batch = Vec::new();
        for event in [start("a"), delta("a")] {
            log.append(0, event);
        }
        close.take(&mut batch);
        for event in [start("b"), delta("a"), delta("b"), delta("a"), end("a"), end("b")] {
            log.append(0, event);
        }
        close.take(&mut batch);
        let positions: Vec<_> = batch.iter().map(|it| it.position.0).collect();
        assert_eq!(positions, [1, 2, 3, 4, 5, 6, 7, 8]);
        // Who comes later, or does not ask for it, gets what is settled.
        assert_eq!(log.after(Position(0)).len(), 4);
        assert_eq!(log.lock().spent.len(), 4);
        drop(late);
        let state = log.lock();
        assert_eq!((state.spent.len(), state.spent_bytes), (0, 0));
    }

    #[test]
    fn a_run_that_ends_twice_is_counted_once() {
        let log = Log::new();
        log.append(0, start("a"));
        for _ in 0..100 {
            log.append(0, delta("a"));
            // What is said of progress is gone with the next event.
            log.append(0, Event::Progress(crate::protocol::Progress::Idle));
        }
        let mut state = log.lock();
        let sizes = state
            .entries
            .iter()
            .filter(|it| it.1.is_run())
            .map(|it| (*it.0, it.1.size()));
        let sizes: Vec<_> = sizes.collect();
        let counted: usize = sizes.iter().map(|it| it.1).sum();
        for (first, _) in &sizes {
            state.deltas.removed(*first);
        }
        assert!(sizes.len() == 100 && counted > 0);
        assert_eq!(state.deltas.bytes(), 0, "of {counted}");
    }

    #[test]
    fn nobody_waits_while_another_one_reads_or_writes_the_disk() {
        let folder = tempfile::tempdir().unwrap();
        let file = Arc::new(ScratchFile::new(folder.path()).unwrap());
        let log = Log::sparing(0);
        log.lock().deltas.set_file(&file);
        for event in [start("a"), delta("a"), start("b")] {
            log.append(0, event);
        }
        // One reads a run that is in the file, and one writes the next, while the disk does not answer.
        let disk = file.disk.write().unwrap();
        let reader = {
            let mut follower = log.follow(Position(0));
            std::thread::spawn(move || {
                let mut batch = Vec::new();
                follower.take(&mut batch);
                batch.len()
            })
        };
        let writer = {
            let log = Arc::clone(&log);
            std::thread::spawn(move || {
                log.append(0, delta("b"));
                log.append(0, start("c"));
            })
        };
        // Whoever only wants to know what is in memory is told.
        let (tell, told) = std::sync::mpsc::channel();
        let asking = {
            let log = Arc::clone(&log);
            std::thread::spawn(move || {
                while log.last() < Position(5) {
                    std::thread::yield_now();
                }
                let mut batch = Vec::new();
                log.follow(Position(4)).take(&mut batch);
                tell.send(batch.len()).unwrap();
            })
        };
        let found = told.recv_timeout(std::time::Duration::from_secs(20));
        drop(disk);
        assert_eq!(found, Ok(1), "somebody waited for the disk");
        asking.join().unwrap();
        writer.join().unwrap();
        assert!(reader.join().unwrap() >= 3);
        assert_eq!(log.after(Position(0)).len(), 5);
    }

    #[test]
    fn a_close_reader_that_never_reads_costs_no_more_than_its_share() {
        let log = Log::new();
        let mut close = log.follow_closely(Position(0));
        log.append(0, start("a"));
        for _ in 0..100_000 {
            log.append(0, delta("a"));
        }
        log.append(0, end("a"));
        assert!(log.lock().spent_bytes <= SPENT_BYTES);
        let mut batch = Vec::new();
        close.take(&mut batch);
        assert!(batch.len() > 1000 && batch.is_sorted_by_key(|it| it.position));
        assert_eq!(log.lock().spent_bytes, 0);
    }

    #[test]
    fn what_is_only_passed_on_is_let_go_when_all_have_read_it() {
        let log = Log::new();
        for event in [start("before"), end("before")] {
            log.append(0, event);
        }
        let mut close = log.follow_closely(Position(2));
        let mut late = log.follow_closely(Position(2));
        log.let_go();
        let mut batches = [Vec::new(), Vec::new()];
        for round in 0..3 {
            for event in [
                start("a"),
                delta("a"),
                start("b"),
                delta("b"),
                delta("a"),
                end("a"),
                end("b"),
            ] {
                log.append(round, event);
                close.take(&mut batches[0]);
            }
            assert_eq!(log.after(Position(0)).len(), 9, "the late one has not read it");
            late.take(&mut batches[1]);
            let state = log.lock();
            assert_eq!(
                (state.entries.len(), state.spent.len()),
                (2, 0),
                "what was before stays"
            );
            assert!(state.open.is_empty());
        }
        let positions = |it: &[Arc<Entry>]| it.iter().map(|it| it.position.0).collect::<Vec<_>>();
        assert_eq!(positions(&batches[0]), (3..=23).collect::<Vec<_>>());
        assert_eq!(positions(&batches[1]), (3..=23).collect::<Vec<_>>());
    }

    #[tokio::test]
    async fn a_closed_log_ends_its_followers_after_the_last_entry() {
        let log = Log::new();
        let mut follower = log.follow(Position(0));
        log.append(0, start("a"));
        log.close();
        let mut batch = Vec::new();
        assert!(follower.next(&mut batch).await);
        assert_eq!(batch.len(), 1);
        assert!(!follower.next(&mut batch).await);
    }
}
