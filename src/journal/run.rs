//! Storage of a log: entire entries, and runs of deltas that would cost many times their text as entries.
//!
//! A model sends a word at a time, and a word as an entry of its own takes half a kilobyte. Consecutive deltas of one
//! thing are stored as one text with the offsets where they end; they are read as the entries that they were. A complete run
//! may be in a scratch file.

use std::sync::Arc;

use serde_json::Map;

use crate::{
    os::{long_text::LongText, scratch::ScratchFile},
    protocol::{DocumentId, Entry, Event, Position, Turn},
};

/// Maximum size of a run: what was read can be dropped in small parts, and nothing large is ever moved.
const RUN_BYTES: usize = 4 << 10;

/// Bytes by which a run grows, at first and at most. Room that was too small stays behind, in holes between what is in use.
const MORE_BYTES: usize = 512;
const MOST_MORE_BYTES: usize = 1 << 10;

/// Approximate cost of an entry beside its text, in bytes.
const ENTRY_BYTES: usize = 256;

/// Cost of a run beside its pieces, and of a piece beside its text, in bytes.
const RUN_COST: usize = 192;
const PIECE_COST: usize = size_of::<PieceEnd>();

/// The thing that the pieces of a run belong to.
#[derive(Clone, Debug, PartialEq, Eq)]
enum RunTarget {
    Content(DocumentId),
    Thinking,
    /// A member of the metadata that grows.
    Member(DocumentId, String),
    /// Text as the model wrote it, for output without a screen.
    Said,
}

/// Consecutive entries of a log.
#[derive(Debug)]
pub enum StoredEntries {
    Whole(Arc<Entry>),
    Run(Box<DeltaRun>),
    Scratch(Arc<ScratchRun>),
}

/// Entries for a reader. Those in a file are read by [`entries`](Self::entries), which waits for the disk.
#[derive(Debug)]
pub enum Readable {
    Entry(Arc<Entry>),
    Scratch {
        run: Arc<ScratchRun>,
        /// First piece, and the number of pieces.
        from: usize,
        count: usize,
    },
}

#[derive(Clone, Debug)]
pub struct DeltaRun {
    target: RunTarget,
    turn: Turn,
    first: Position,
    /// Time of the first piece.
    at_ms: u64,
    text: String,
    /// End of the first piece, which may be longer than a run.
    first_end: u32,
    /// Ends of the others.
    others: Vec<PieceEnd>,
}

impl Readable {
    /// Position of the first entry.
    pub fn first(&self) -> Position {
        match self {
            Self::Entry(entry) => entry.position,
            Self::Scratch { run, from, .. } => Position(run.first.0 + *from as u64),
        }
    }

    /// Position of the last entry.
    pub fn last(&self) -> Position {
        match self {
            Self::Entry(entry) => entry.position,
            Self::Scratch { count, .. } => Position(self.first().0 + (*count as u64).saturating_sub(1)),
        }
    }

    /// Leaves at most `most` entries. Returns their number.
    pub fn limit(&mut self, most: usize) -> usize {
        match self {
            Self::Entry(_) => 1,
            Self::Scratch { count, .. } => {
                *count = most.min(*count);
                *count
            }
        }
    }

    /// Returns the bytes of text in deltas; 0 for other events. Of those in a file, at least as many.
    pub fn delta_bytes(&self) -> usize {
        match self {
            Self::Entry(entry) => match &entry.event {
                Event::ContentDelta { delta, .. } | Event::ThinkingDelta { delta } => delta.len(),
                Event::MetadataDelta { append, .. } => append.iter().map(|it| it.1.len()).sum(),
                _ => 0,
            },
            Self::Scratch { run, .. } => run.text_bytes,
        }
    }

    /// Returns the entries, those of a file as far as it can be read.
    pub fn entries(self) -> impl Iterator<Item = Arc<Entry>> {
        let (entry, pieces) = match self {
            Self::Entry(entry) => (Some(entry), Vec::new()),
            Self::Scratch { run, from, count } => {
                let read = run.read();
                let pieces = read
                    .iter()
                    .flat_map(|it| (from..from + count).filter_map(move |at| it.piece(at)));
                (None, pieces.map(Arc::new).collect())
            }
        };
        entry.into_iter().chain(pieces)
    }
}

/// A run whose text and offsets are in a file.
#[derive(Debug)]
pub struct ScratchRun {
    target: RunTarget,
    turn: Turn,
    first: Position,
    at_ms: u64,
    file: Arc<ScratchFile>,
    /// Offset in the file, and the sizes of text and offsets there.
    at: u64,
    text_bytes: usize,
    first_end: u32,
    pieces: usize,
}

/// Small, because there is one for each word of an answer.
#[derive(Clone, Copy, Debug)]
struct PieceEnd {
    /// Byte offset behind the first piece at which its text ends.
    end: u16,
    /// Since the first.
    after_ms: u16,
}

impl RunTarget {
    /// That of an event that is nothing but more text.
    fn of(event: &Event) -> Option<Self> {
        if let Event::ContentDelta { document, .. } = event {
            return Some(Self::Content(document.clone()));
        }
        match event {
            Event::ThinkingDelta { .. } => return Some(Self::Thinking),
            Event::Said { .. } => return Some(Self::Said),
            _ => {}
        }
        if let Event::MetadataDelta {
            document,
            metadata,
            append,
        } = event
            && let [(name, _)] = append.as_slice()
        {
            return metadata
                .is_empty()
                .then(|| Self::Member(document.clone(), name.clone()));
        }
        None
    }

    /// Returns true if an end of the document with these members repeats such text.
    fn is_said_by(&self, has_content: bool, has: impl Fn(&str) -> bool) -> bool {
        match self {
            Self::Content(_) => has_content,
            Self::Member(_, name) => has(name),
            Self::Thinking | Self::Said => false,
        }
    }
}

impl PieceEnd {
    fn to_bytes(self) -> [u8; PIECE_COST] {
        let mut bytes = [0; PIECE_COST];
        bytes[..2].copy_from_slice(&self.end.to_le_bytes());
        bytes[2..].copy_from_slice(&self.after_ms.to_le_bytes());
        bytes
    }

    fn from_bytes([a, b, c, d]: [u8; PIECE_COST]) -> Self {
        Self {
            end: u16::from_le_bytes([a, b]),
            after_ms: u16::from_le_bytes([c, d]),
        }
    }
}

impl ScratchRun {
    /// Reads it. `None` if the file cannot be read: what it holds is a preview of what comes later.
    fn read(&self) -> Option<DeltaRun> {
        let bytes = self
            .file
            .read(self.at, self.text_bytes + (self.pieces - 1) * PIECE_COST);
        let bytes = bytes
            .inspect_err(|error| tracing::warn!(%error, "a part of an answer cannot be read back"))
            .ok()?;
        let (text, ends) = bytes.split_at_checked(self.text_bytes)?;
        let (ends, _) = ends.as_chunks();
        Some(DeltaRun {
            target: self.target.clone(),
            turn: self.turn,
            first: self.first,
            at_ms: self.at_ms,
            text: std::str::from_utf8(text).ok()?.to_owned(),
            first_end: self.first_end,
            others: ends.iter().map(|it| PieceEnd::from_bytes(*it)).collect(),
        })
    }
}

impl DeltaRun {
    /// Writes it to a file. Fails if there is no room.
    pub fn move_to(&self, file: &Arc<ScratchFile>) -> std::io::Result<ScratchRun> {
        let mut bytes = Vec::with_capacity(self.text.len() + self.others.len() * PIECE_COST);
        bytes.extend_from_slice(self.text.as_bytes());
        bytes.extend(self.others.iter().flat_map(|it| it.to_bytes()));
        Ok(ScratchRun {
            target: self.target.clone(),
            turn: self.turn,
            first: self.first,
            at_ms: self.at_ms,
            at: file.append(&bytes)?,
            file: Arc::clone(file),
            text_bytes: self.text.len(),
            first_end: self.first_end,
            pieces: self.count(),
        })
    }

    /// Number of pieces, at least one.
    fn count(&self) -> usize {
        self.others.len() + 1
    }

    /// Gives back the room for more.
    fn shrink(&mut self) {
        self.text.shrink_to_fit();
        self.others.shrink_to_fit();
    }

    /// Returns the entries after `since`.
    fn after(&self, since: Position) -> impl Iterator<Item = Arc<Entry>> {
        let from = (since.0 + 1).saturating_sub(self.first.0);
        let from = usize::try_from(from).unwrap_or(usize::MAX);
        (from..self.count()).filter_map(|at| self.piece(at).map(Arc::new))
    }

    fn event(&self, text: &str) -> Event {
        match &self.target {
            RunTarget::Content(document) => Event::ContentDelta {
                document: document.clone(),
                delta: text.to_owned(),
            },
            RunTarget::Thinking => Event::ThinkingDelta { delta: text.to_owned() },
            RunTarget::Said => Event::Said { delta: text.to_owned() },
            RunTarget::Member(document, name) => Event::MetadataDelta {
                document: document.clone(),
                metadata: Map::new(),
                append: vec![(name.clone(), text.to_owned())],
            },
        }
    }

    /// The text of an event that is more of the same.
    fn more<'a>(&self, event: &'a Event) -> Option<&'a str> {
        if let (RunTarget::Content(this), Event::ContentDelta { document, delta }) = (&self.target, event) {
            return (this == document).then_some(delta);
        }
        if let (RunTarget::Thinking, Event::ThinkingDelta { delta }) | (RunTarget::Said, Event::Said { delta }) =
            (&self.target, event)
        {
            return Some(delta);
        }
        if let (
            RunTarget::Member(this, name),
            Event::MetadataDelta {
                document,
                metadata,
                append,
            },
        ) = (&self.target, event)
            && let [(member, text)] = append.as_slice()
        {
            return (this == document && metadata.is_empty() && member == name).then_some(text);
        }
        None
    }

    fn has_room(&self, text: &str) -> bool {
        self.text.len() + text.len() + self.others.len() * PIECE_COST <= RUN_BYTES
    }

    fn last(&self) -> Position {
        Position(self.first.0 + self.others.len() as u64)
    }

    /// Offset at which the text of a piece ends, and the time since the first.
    fn end(&self, at: usize) -> Option<(usize, u16)> {
        let first = self.first_end as usize;
        let Some(other) = at.checked_sub(1) else {
            return Some((first, 0));
        };
        let piece = self.others.get(other)?;
        Some((first + usize::from(piece.end), piece.after_ms))
    }

    fn piece(&self, at: usize) -> Option<Entry> {
        let (end, after_ms) = self.end(at)?;
        let start = at.checked_sub(1).and_then(|it| self.end(it)).map_or(0, |it| it.0);
        let text = self.text.get(start..end)?;
        Some(Entry {
            position: Position(self.first.0 + at as u64),
            turn: self.turn,
            at_ms: self.at_ms + u64::from(after_ms),
            event: self.event(text),
        })
    }

    fn push(&mut self, at_ms: u64, text: &str) -> bool {
        let end = u16::try_from(self.text.len() + text.len() - self.first_end as usize);
        let after_ms = at_ms.checked_sub(self.at_ms).map(u16::try_from);
        let (Ok(end), Some(Ok(after_ms))) = (end, after_ms) else {
            return false;
        };
        // Doubled, the room for more would be half of what many short answers need.
        if self.text.capacity() - self.text.len() < text.len() {
            let more = self.text.capacity().clamp(MORE_BYTES, MOST_MORE_BYTES);
            self.text.reserve_exact(text.len().max(more));
        }
        if self.others.len() == self.others.capacity() {
            let more = (self.others.capacity() * PIECE_COST).clamp(MORE_BYTES, MOST_MORE_BYTES);
            self.others.reserve_exact(more / PIECE_COST);
        }
        self.text.push_str(text);
        self.others.push(PieceEnd { end, after_ms });
        true
    }
}

impl StoredEntries {
    pub fn new(entry: Entry) -> Self {
        let run = RunTarget::of(&entry.event).map(|target| DeltaRun {
            target,
            turn: entry.turn,
            first: entry.position,
            at_ms: entry.at_ms,
            text: String::new(),
            first_end: 0,
            others: Vec::new(),
        });
        if let Some(mut run) = run
            && run
                .more(&entry.event)
                .is_some_and(|text| u32::try_from(text.len()).is_ok())
        {
            run.text = text_of(entry.event);
            run.first_end = u32::try_from(run.text.len()).unwrap_or(u32::MAX);
            return Self::Run(Box::new(run));
        }
        Self::Whole(Arc::new(entry))
    }

    /// Appends an entry that continues this run. Returns false if it does not, or if the run is full.
    pub fn join(&mut self, entry: &Entry) -> bool {
        let Self::Run(run) = self else { return false };
        let is_next = entry.turn == run.turn && entry.position.0 == run.last().0 + 1;
        match run.more(&entry.event) {
            Some(text) => is_next && run.has_room(text) && run.push(entry.at_ms, text),
            None => false,
        }
    }

    pub fn last(&self) -> Position {
        match self {
            Self::Whole(entry) => entry.position,
            Self::Run(run) => run.last(),
            Self::Scratch(run) => Position(run.first.0 + (run.pieces as u64).saturating_sub(1)),
        }
    }

    /// Returns the entries after `since`, in order. Reads no file.
    pub fn after(&self, since: Position) -> impl Iterator<Item = Readable> {
        let (one, run) = match self {
            Self::Whole(entry) => {
                let entry = Some(Arc::clone(entry)).filter(|it| it.position > since);
                (entry.map(Readable::Entry), None)
            }
            Self::Run(run) => (None, Some(run)),
            Self::Scratch(run) => {
                let from = usize::try_from((since.0 + 1).saturating_sub(run.first.0)).unwrap_or(usize::MAX);
                let count = run.pieces.saturating_sub(from);
                let run = Arc::clone(run);
                ((count > 0).then_some(Readable::Scratch { run, from, count }), None)
            }
        };
        let pieces = run.into_iter().flat_map(move |run| run.after(since));
        one.into_iter().chain(pieces.map(Readable::Entry))
    }

    /// Returns true for a run in memory.
    pub fn is_run(&self) -> bool {
        matches!(self, Self::Run(_))
    }

    /// Tells a run that nothing will be added to it.
    pub fn complete(&mut self) {
        if let Self::Run(run) = self {
            run.shrink();
        }
    }

    /// A copy of a run in memory. `None` for other entries.
    pub fn run(&self) -> Option<DeltaRun> {
        match self {
            Self::Run(run) => Some(DeltaRun::clone(run)),
            Self::Whole(_) | Self::Scratch(_) => None,
        }
    }

    /// The only entry, if it is one.
    pub fn whole(&self) -> Option<&Entry> {
        match self {
            Self::Whole(entry) => Some(entry),
            Self::Run(_) | Self::Scratch(_) => None,
        }
    }

    /// Returns true for text that is only printed: nobody needs it after that.
    pub fn is_only_printed(&self) -> bool {
        match self {
            Self::Whole(entry) => matches!(entry.event, Event::Said { .. }),
            Self::Run(run) => run.target == RunTarget::Said,
            Self::Scratch(run) => run.target == RunTarget::Said,
        }
    }

    /// Returns the approximate size in bytes.
    pub fn size(&self) -> usize {
        match self {
            Self::Whole(entry) => size_of_piece(entry),
            Self::Scratch(_) => RUN_COST,
            Self::Run(run) => RUN_COST + run.text.len() + run.others.len() * PIECE_COST,
        }
    }

    /// Returns true if an end of the document with these members repeats all of the run.
    pub fn is_said_by(&self, has_content: bool, metadata: &Map<String, serde_json::Value>) -> bool {
        let has = |name: &str| metadata.contains_key(name);
        match self {
            Self::Run(run) => run.target.is_said_by(has_content, has),
            Self::Scratch(run) => run.target.is_said_by(has_content, has),
            Self::Whole(entry) => match &entry.event {
                Event::ContentDelta { .. } => has_content,
                Event::MetadataDelta { metadata, append, .. } => {
                    let appended = append.iter().map(|(name, _)| name);
                    metadata.keys().chain(appended).all(|it| has(it))
                }
                Event::ToolCallArguments { .. } => has("arguments"),
                // A command's result is its output.
                Event::ToolResult { .. } => has("result") || has("output"),
                Event::ToolCallStart { .. } => true,
                _ => false,
            },
        }
    }
}

/// The text of an event that has a target.
fn text_of(event: Event) -> String {
    match event {
        Event::ContentDelta { delta, .. } | Event::ThinkingDelta { delta } | Event::Said { delta } => delta,
        Event::MetadataDelta { mut append, .. } => append.pop().map_or_else(String::new, |it| it.1),
        _ => String::new(),
    }
}

/// Returns the approximate size in bytes of a delta that is stored alone.
pub fn size_of_piece(entry: &Entry) -> usize {
    let text = match &entry.event {
        Event::ContentDelta { delta, .. } | Event::ThinkingDelta { delta } => delta.len(),
        Event::DocumentStart(start) => start.content.as_ref().map_or(0, LongText::len) + debug_length(&start.metadata),
        Event::DocumentEnd {
            final_content,
            metadata,
            ..
        } => final_content.as_ref().map_or(0, LongText::len) + debug_length(metadata),
        // Anything else is rare, and about as long as its JSON.
        event => debug_length(event),
    };
    ENTRY_BYTES + text
}

/// Returns the length of a value's debug form, which is not stored for it.
fn debug_length(value: &impl std::fmt::Debug) -> usize {
    struct Length(usize);
    impl std::fmt::Write for Length {
        fn write_str(&mut self, text: &str) -> std::fmt::Result {
            self.0 += text.len();
            Ok(())
        }
    }
    let mut length = Length(0);
    // Counting does not fail.
    let _ = std::fmt::Write::write_fmt(&mut length, format_args!("{value:?}"));
    length.0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(position: u64, at_ms: u64, event: Event) -> Entry {
        Entry {
            position: Position(position),
            turn: Turn(1),
            at_ms,
            event,
        }
    }

    fn content(document: &str, text: &str) -> Event {
        Event::ContentDelta {
            document: document.into(),
            delta: text.to_owned(),
        }
    }

    fn output(document: &str, name: &str, text: &str) -> Event {
        Event::MetadataDelta {
            document: document.into(),
            metadata: Map::new(),
            append: vec![(name.to_owned(), text.to_owned())],
        }
    }

    fn thought(text: &str) -> Event {
        Event::ThinkingDelta { delta: text.to_owned() }
    }

    #[test]
    fn pieces_come_out_as_they_went_in_wherever_one_begins_to_read() {
        for events in [
            [content("a", "one "), content("a", ""), content("a", "zwei")],
            [
                output("a", "output", "x"),
                output("a", "output", "é"),
                output("a", "output", "\n"),
            ],
            [thought("hm"), thought(" "), thought("so")],
            [thought(&"long ".repeat(20)), thought(""), thought("so")],
        ] {
            let entries: Vec<_> = (0..)
                .zip(events)
                .map(|(at, event)| entry(7 + at, 100 + at * at, event))
                .collect();
            let mut kept = StoredEntries::new(entries[0].clone());
            for entry in &entries[1..] {
                assert!(kept.join(entry), "it goes on");
            }
            let folder = tempfile::tempdir().expect("a folder");
            let file = Arc::new(ScratchFile::new(folder.path()).expect("a file"));
            file.append(b"before").expect("there is room");
            for is_moved in [false, true] {
                if is_moved {
                    let moved = kept.run().expect("a run").move_to(&file).expect("there is room");
                    kept = StoredEntries::Scratch(Arc::new(moved));
                }
                assert_eq!(kept.is_run(), !is_moved);
                assert_eq!(kept.last(), Position(9));
                for since in 0..12 {
                    let out = kept.after(Position(since)).flat_map(Readable::entries);
                    let out: Vec<_> = out.map(Arc::unwrap_or_clone).collect();
                    let wanted: Vec<_> = entries.iter().filter(|it| it.position.0 > since).cloned().collect();
                    assert_eq!(out, wanted, "after {since}");
                }
            }
        }
    }

    #[test]
    fn what_is_something_else_is_not_joined() {
        let first = || entry(1, 100, content("a", "x"));
        let no_text = Event::DocumentUpdate {
            document: "a".into(),
            metadata: Map::new(),
        };
        for (why, other) in [
            ("another document", entry(2, 100, content("b", "x"))),
            ("another kind", entry(2, 100, thought("x"))),
            ("a gap", entry(3, 100, content("a", "x"))),
            ("a clock that went back", entry(2, 99, content("a", "x"))),
            ("too late to count", entry(2, 100 + (1 << 16), content("a", "x"))),
            ("no text", entry(2, 100, no_text)),
            ("enough", entry(2, 100, content("a", &"x".repeat(RUN_BYTES)))),
            (
                "another turn",
                Entry {
                    turn: Turn(2),
                    ..entry(2, 100, content("a", "x"))
                },
            ),
        ] {
            let mut kept = StoredEntries::new(first());
            assert!(!kept.join(&other), "{why}");
            let out = kept.after(Position(0)).flat_map(Readable::entries);
            let out: Vec<_> = out.map(Arc::unwrap_or_clone).collect();
            assert_eq!(out, [first()], "{why}");
        }
    }

    #[test]
    fn a_word_costs_little_more_than_its_text() {
        let mut all = vec![StoredEntries::new(entry(1, 0, content("a", "word ")))];
        for at in 2..=10_000 {
            let next = entry(at, at, content("a", "word "));
            if !all.last_mut().expect("one").join(&next) {
                all.push(StoredEntries::new(next));
            }
        }
        let size: usize = all.iter().map(StoredEntries::size).sum();
        assert!(size < 10_000 * 10, "{size}");
    }
}
