//! Reading a session: whatever bytes are there, all of it that is whole.

use std::{collections::BTreeMap, io::Read as _, path::Path};

use serde_json::{Map, Value};

use super::{
    Session,
    error::TapeError,
    line::{self, Bad},
    record,
};
use crate::{
    journal::{Cut, closing, log::delta_of},
    os::file,
    protocol::{DocumentId, DocumentStart, Entry, Event, Kind, Notice, Position, Response, Severity, Title, Turn},
};

/// A session as it was read.
#[derive(Debug)]
pub struct Stored {
    pub session: Session,
    /// Ordered by position.
    pub entries: Vec<Entry>,
    /// Damage that was found, and its repair.
    pub notices: Vec<Notice>,
    /// Bytes up to the end of the last complete line.
    pub(super) good_bytes: usize,
    /// First turn that was read. Later events of earlier turns (a background command has ended) do not tell how those
    /// ended.
    pub(super) from: Turn,
}

/// The file was written by a newer version that this one cannot read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Newer;

pub fn bytes(path: &Path) -> Result<Vec<u8>, TapeError> {
    let mut bytes = Vec::new();
    file::open(path)?.read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Reads a file of ours: lines without a checksum are damaged. Fails for files of a newer version.
pub fn read(id: &str, bytes: &[u8]) -> Result<Stored, Newer> {
    scan(id, bytes, true)
}

/// Reads a file that may have been written by hand.
pub fn read_loosely(name: &str, bytes: &[u8]) -> Result<Stored, Newer> {
    scan(name, bytes, false)
}

fn scan(id: &str, bytes: &[u8], sealed: bool) -> Result<Stored, Newer> {
    let mut session = None;
    let mut entries: Vec<Entry> = Vec::new();
    let mut good_bytes = 0;
    let mut damage = Damage::default();
    let mut at = 0;
    for whole in bytes.split_inclusive(|&it| it == b'\n') {
        let end = at + whole.len();
        at = end;
        let text = whole.strip_suffix(b"\n").unwrap_or(whole).trim_ascii();
        if text.is_empty() {
            continue;
        }
        match line::read(text, sealed) {
            Ok((position, mut members)) => {
                damage.settle();
                good_bytes = end;
                if let Some(found) = members.shift_remove("session") {
                    session = session.or_else(|| serde_json::from_value(found).ok());
                    continue;
                }
                let last = entries.last().map_or(0, |it| it.position.0);
                let position = if sealed { position } else { position.max(last + 1) };
                // A write whose end was not confirmed is made again, so a line may stand there twice.
                if position <= last {
                    continue;
                }
                match record::from_members(Position(position), members) {
                    Some(entry) => entries.push(entry),
                    None => damage.strange += 1,
                }
            }
            Err(Bad::Newer) => return Err(Newer),
            Err(Bad::Damaged) => damage.pending += 1,
        }
    }
    let was_damaged = damage.skipped + damage.pending > 0;
    let mut stored = Stored {
        session: session.unwrap_or_else(|| Session {
            id: id.to_owned(),
            created: entries.first().map_or(0, |it| it.at_ms),
            workspace: String::new(),
            version: String::new(),
            branch: None,
        }),
        entries,
        notices: damage.notices(bytes.len() - good_bytes),
        good_bytes,
        from: Turn(0),
    };
    if was_damaged {
        stored.start_what_lost_its_start();
    }
    Ok(stored)
}

/// Bad lines, counted.
#[derive(Default)]
struct Damage {
    /// Unreadable lines with good ones after them.
    skipped: usize,
    /// Unreadable lines with no good one after them so far.
    pending: usize,
    /// Whole, but nothing that we know.
    strange: usize,
}

impl Damage {
    fn settle(&mut self) {
        self.skipped += std::mem::take(&mut self.pending);
    }

    fn notices(&self, tail_bytes: usize) -> Vec<Notice> {
        let mut notices = Vec::new();
        if self.skipped > 0 {
            notices.push(damaged(self.skipped));
        }
        let mut say = |code: &str, message: String| {
            notices.push(Notice::new(Severity::Warning, code, message));
        };
        if self.pending > 0 {
            say(
                "session-cut",
                format!("the last {tail_bytes} bytes of this session cannot be read; what stood before them is here"),
            );
        }
        if self.strange > 0 {
            say(
                "session-strange",
                format!("{} of this session mean nothing to this sheaf", lines(self.strange)),
            );
        }
        notices
    }
}

/// Returns the notice about damaged lines with whole ones after them.
pub fn damaged(count: usize) -> Notice {
    let were = if count == 1 { "was" } else { "were" };
    let message = format!("{} of this session cannot be read and {were} left out", lines(count));
    Notice::new(Severity::Warning, "session-damaged", message)
}

fn lines(count: usize) -> String {
    if count == 1 {
        "1 line".to_owned()
    } else {
        format!("{count} lines")
    }
}

impl Stored {
    /// A session of which nothing is known but its name.
    pub(super) fn empty(session: Session) -> Self {
        Self {
            session,
            entries: Vec::new(),
            notices: Vec::new(),
            good_bytes: 0,
            from: Turn(0),
        }
    }

    /// Returns an end for each response that has none, in order.
    pub(super) fn endings(&self) -> Vec<(Turn, u64, Event)> {
        let mut turns: BTreeMap<Turn, (bool, u64, Response)> = BTreeMap::new();
        for entry in self.entries.iter().filter(|it| it.turn >= self.from) {
            let (has_begun, last_ms, response) = turns.entry(entry.turn).or_default();
            *has_begun |= !matches!(
                entry.event,
                Event::Notice(_) | Event::Title(_) | Event::Branch(_) | Event::Unknown { .. }
            );
            *last_ms = entry.at_ms;
            response.apply(&entry.event, entry.at_ms);
        }
        turns
            .into_iter()
            .filter(|(_, (has_begun, ..))| *has_begun)
            .flat_map(|(turn, (_, last_ms, response))| {
                closing(&response, Cut::Interrupted)
                    .into_iter()
                    .map(move |event| (turn, last_ms, event))
            })
            .collect()
    }

    /// Returns the title. `None` if the session has none.
    pub(super) fn title(&self) -> Option<Title> {
        let mut title = None;
        for entry in &self.entries {
            if let Event::Title(it) = &entry.event {
                it.clone().replace(&mut title);
            }
        }
        title
    }

    /// The entries, with an end for every response.
    pub fn closed(self) -> Vec<Entry> {
        let endings = self.endings();
        let mut entries = self.entries;
        for (turn, at_ms, event) in endings {
            let position = entries.last().map_or(1, |it| it.position.0 + 1);
            entries.push(Entry {
                position: Position(position),
                turn,
                at_ms,
                event,
            });
        }
        entries
    }

    /// Starts documents whose first line is lost where they are first mentioned: their end carries everything.
    fn start_what_lost_its_start(&mut self) {
        let mut known = std::collections::HashSet::new();
        let mut whole = Vec::with_capacity(self.entries.len());
        for entry in std::mem::take(&mut self.entries) {
            match &entry.event {
                Event::DocumentStart(start) => {
                    known.insert((entry.turn, start.id.clone()));
                }
                event => {
                    if let Some((document, kind)) = about(event)
                        && known.insert((entry.turn, document.clone()))
                    {
                        whole.push(Entry {
                            // The lost line has left a gap in the positions.
                            position: Position(entry.position.0.saturating_sub(1)),
                            event: Event::DocumentStart(DocumentStart {
                                id: document.clone(),
                                kind,
                                sequence: None,
                                content: None,
                                metadata: Map::new(),
                            }),
                            ..entry.clone()
                        });
                    }
                }
            }
            whole.push(entry);
        }
        self.entries = whole;
    }
}

/// The document that an event speaks of, and the kind that it seems to be.
fn about(event: &Event) -> Option<(&DocumentId, Kind)> {
    match event {
        Event::ContentDelta { document, .. } => Some((document, Kind::Text)),
        Event::MetadataDelta { document, metadata, .. } | Event::DocumentEnd { document, metadata, .. } => {
            Some((document, kind_of(metadata)))
        }
        other => delta_of(other).map(|it| (it, Kind::ToolCall)),
    }
}

/// Guesses the kind of a document by its members; the first that matches wins.
fn kind_of(metadata: &Map<String, Value>) -> Kind {
    let telling = [
        ("questions", Kind::Clarification),
        ("command", Kind::TerminalCommand),
        ("operation", Kind::FileEdit),
        ("diff", Kind::FileEdit),
        ("startLine", Kind::CodeReference),
        ("errorCode", Kind::Error),
        ("purpose", Kind::CodeBlock),
        ("title", Kind::Plan),
        ("todos", Kind::TodoUpdate),
        ("toolName", Kind::ToolCall),
    ];
    telling
        .into_iter()
        .find(|(member, _)| metadata.contains_key(*member))
        .map_or(Kind::Text, |(_, kind)| kind)
}
