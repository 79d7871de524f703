//! The end of a long session: what is shown when it is opened, without reading the rest.
//!
//! It begins with a turn, and nothing in it leads back behind that: a branch to an older turn, a list of todos whose plan was
//! made before, make it begin earlier, or the session is read whole. The rest is read when somebody looks back.

use std::{
    collections::HashSet,
    fs::File,
    io::{BufRead as _, BufReader, Read as _, Seek as _, SeekFrom},
    path::{Path, PathBuf},
};

use regex::bytes::Regex;

use super::{
    Session, line,
    load::{self, Stored},
    record,
};
use crate::{
    journal::{
        Log,
        backfill::{Earlier, Recent},
    },
    os::file,
    protocol::{Cost, Entry, Event, Kind, Notice, Position, Title, Turn, document::TodoUpdate},
};

/// A smaller session is read whole: that costs a few hundredths of a second.
const LONG_BYTES: u64 = 8 << 20;
/// Bytes that are read of the end; a later value is used if the part has no suitable beginning.
const END_BYTES: [u64; 3] = [1 << 20, 4 << 20, 16 << 20];
/// Maximum size of the first line, which holds the session's facts.
const FIRST_BYTES: u64 = 64 << 10;
/// Pattern near the beginning of a message's line, which opens a turn.
const MESSAGE: &str = r#"(?-u)^.{0,128}?"event":"user_message""#;
/// Pattern near the beginning of the line that ends an answer, after three numbers.
const DONE: &str = r#"(?-u)^.{0,128}?"event":"done""#;

/// The end of a session, and its offset in the file.
pub struct End {
    /// Its good bytes are counted from the beginning of the file.
    pub stored: Stored,
    /// True if the last complete line has its newline.
    pub is_ended: bool,
    /// Bytes after the last complete line.
    pub torn: Vec<u8>,
    pub recent: Recent,
    pub front: Front,
}

/// The part of the session before the end that was read.
#[derive(Clone, Debug)]
pub struct Front {
    path: PathBuf,
    id: String,
    bytes: u64,
}

impl Front {
    /// Creates it for the first `bytes` bytes of the session at `path`.
    pub fn of(path: &Path, id: &str, bytes: u64) -> Self {
        Self {
            path: path.to_owned(),
            id: id.to_owned(),
            bytes,
        }
    }
}

impl End {
    /// `None`: the session has to be read whole.
    pub fn of(path: &Path, id: &str) -> Option<Self> {
        let mut file = file::open(path).ok()?;
        let length = file.metadata().ok()?.len();
        if length < LONG_BYTES {
            return None;
        }
        let (session, title) = beginning(&mut file)?;
        let mark = Regex::new(MESSAGE).ok()?;
        END_BYTES
            .into_iter()
            .filter(|window| *window < length)
            .find_map(|window| Self::within(&mut file, path, id, &session, &mark, length - window))
            .map(|mut it| {
                it.recent.title = it.stored.title().is_none().then_some(title).flatten();
                it
            })
    }

    fn within(file: &mut File, path: &Path, id: &str, session: &Session, mark: &Regex, from: u64) -> Option<Self> {
        let mut bytes = Vec::new();
        file.seek(SeekFrom::Start(from)).ok()?;
        file.read_to_end(&mut bytes).ok()?;
        let (start, begins) = first_turn(&bytes, mark)?;
        let bytes = bytes.get(start..)?;
        let mut stored = load::read(id, bytes).ok()?;
        // Where lines in the middle are damaged, the whole is needed to say so.
        let is_whole = stored.notices.iter().all(|it| it.code == "session-cut");
        let turn = Turn(begins.turn);
        if !is_whole || leads_back(stored.entries.iter(), turn) {
            return None;
        }
        let torn = bytes.get(stored.good_bytes..)?.to_vec();
        let is_ended = stored.good_bytes == 0 || bytes.get(stored.good_bytes - 1) == Some(&b'\n');
        stored.session = session.clone();
        stored.from = turn;
        let bytes = from + start as u64;
        stored.good_bytes += usize::try_from(bytes).ok()?;
        Some(Self {
            stored,
            is_ended,
            torn,
            recent: Recent {
                after: Position(begins.position.saturating_sub(1)),
                turn,
                title: None,
            },
            front: Front::of(path, id, bytes),
        })
    }
}

/// Returns the offset and the glance of the first turn that begins in a part of a file. `None` if none does.
fn first_turn(bytes: &[u8], mark: &Regex) -> Option<(usize, line::Glance)> {
    let mut start = 0;
    for (nth, line) in bytes.split_inclusive(|it| *it == b'\n').enumerate() {
        // The first line may be the rest of one.
        let glance = line::glance(line.trim_ascii_end()).filter(|_| nth > 0 && mark.is_match(line));
        if let Some(it) = glance {
            return Some((start, it));
        }
        start += line.len();
    }
    None
}

/// Reads the session's facts, and the title if it is set early; the list of sessions looks in the same places.
fn beginning(file: &mut File) -> Option<(Session, Option<Title>)> {
    let mut bytes = Vec::new();
    file.take(FIRST_BYTES).read_to_end(&mut bytes).ok()?;
    let mut lines = bytes.split_inclusive(|it| *it == b'\n');
    let (_, mut members) = line::read(lines.next()?.trim_ascii_end(), true).ok()?;
    let session = serde_json::from_value(members.shift_remove("session")?).ok()?;
    let mut title = None;
    for line in lines {
        if let Ok((position, members)) = line::read(line.trim_ascii_end(), true)
            && let Some(Event::Title(it)) = record::from_members(Position(position), members).map(|it| it.event)
        {
            it.replace(&mut title);
        }
    }
    Some((session, title))
}

/// Returns true if the entries from a turn on cannot be understood without earlier ones.
pub fn leads_back<'a>(entries: impl IntoIterator<Item = &'a Entry>, turn: Turn) -> bool {
    let mut has_todos = false;
    let mut updates = HashSet::new();
    entries.into_iter().any(|it| match &it.event {
        Event::Branch(branch) => branch.after < turn,
        Event::DocumentStart(start) => {
            has_todos |= start.kind == Kind::Plan;
            if start.kind == Kind::TodoUpdate {
                updates.insert((it.turn, &start.id));
            }
            false
        }
        Event::DocumentEnd { document, metadata, .. } if updates.remove(&(it.turn, document)) => {
            // A list that replaces all todos needs none before it.
            has_todos |= !TodoUpdate::of(metadata).merge;
            !has_todos
        }
        _ => false,
    })
}

impl Front {
    fn open(&self) -> Option<impl std::io::Read> {
        let file = file::open(&self.path).inspect_err(|error| {
            tracing::warn!(%error, "earlier messages cannot be read");
        });
        Some(file.ok()?.take(self.bytes))
    }

    /// Returns a notice if some of its lines are damaged. Reads all of it, but compares checksums only.
    pub fn damage(&self) -> Option<Notice> {
        let mut reader = BufReader::with_capacity(1 << 18, self.open()?);
        let (mut text, mut count) = (Vec::new(), 0);
        while reader.read_until(b'\n', &mut text).is_ok_and(|it| it > 0) {
            let line = text.trim_ascii();
            count += usize::from(!line.is_empty() && !line::is_whole(line));
            text.clear();
        }
        (count > 0).then(|| load::damaged(count))
    }
}

impl Earlier for Front {
    fn entries(&self) -> Vec<Entry> {
        let mut bytes = Vec::new();
        let read = self.open().is_some_and(|mut it| it.read_to_end(&mut bytes).is_ok());
        // What came before something broke is there all the same.
        tracing::debug!(read, bytes = bytes.len(), "what was said earlier");
        load::read(&self.id, &bytes).map(|it| it.entries).unwrap_or_default()
    }

    fn last(&self, bytes: u64) -> Option<(Turn, Vec<Entry>)> {
        let from = self.bytes.checked_sub(bytes)?;
        let mut file = file::open(&self.path).ok()?;
        file.seek(SeekFrom::Start(from)).ok()?;
        let mut text = Vec::new();
        file.take(bytes).read_to_end(&mut text).ok()?;
        let (start, begins) = first_turn(&text, &Regex::new(MESSAGE).ok()?)?;
        let turn = Turn(begins.turn);
        let stored = load::read(&self.id, text.get(start..)?).ok()?;
        let stands_alone = stored.notices.is_empty() && !leads_back(stored.entries.iter(), turn);
        stands_alone.then_some((turn, stored.entries))
    }

    fn spent(&self) -> Cost {
        let mut spent = Cost::default();
        let (Some(file), Ok(done)) = (self.open(), Regex::new(DONE)) else {
            return spent;
        };
        let mut reader = BufReader::with_capacity(1 << 18, file);
        let mut text = Vec::new();
        while reader.read_until(b'\n', &mut text).is_ok_and(|it| it > 0) {
            if done.is_match(&text)
                && let Ok((position, members)) = line::read(text.trim_ascii_end(), true)
                && let Some(Event::Done(it)) = record::from_members(Position(position), members).map(|it| it.event)
            {
                spent.add(&Cost {
                    usage: it.usage.unwrap_or_default(),
                    dollars: it.extra_usage.get("costUsd").and_then(serde_json::Value::as_f64),
                });
            }
            text.clear();
        }
        spent
    }
}

impl End {
    /// Creates the log of the session; older entries are read from the file on demand.
    pub fn log(entries: Vec<Entry>, recent: Recent, front: Front) -> std::sync::Arc<Log> {
        Log::from_recent(recent, Box::new(front), entries)
    }
}
