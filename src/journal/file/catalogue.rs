//! The list of sessions, read from the two ends of each file; of a file that is as it was, not even that.

use std::{
    collections::{HashMap, HashSet},
    fs::{self, File, Metadata},
    io::{self, Read as _, Seek as _, SeekFrom},
    path::{Path, PathBuf},
    time::UNIX_EPOCH,
};

use regex::bytes::Regex;
use serde::{Deserialize, Serialize};

use super::{ARCHIVED, Session, is_id, line, record};
use crate::{
    os::file,
    protocol::{Event, Position, Title, Turn},
};

/// Bytes that are read of each end of a file; a later value is used only if the one before holds no complete line.
const END_BYTES: [u64; 3] = [32 << 10, 512 << 10, 8 << 20];

/// Pattern that a line of interest contains near its beginning.
const MARKS: &str = r#"(?-u)"(session|event":"(title|user_message))""#;

/// Texts near the beginning of lines that are no part of the conversation.
const ASIDE: [&[u8]; 3] = [
    br#""event":"notice""#,
    br#""event":"title""#,
    br#""event":"document_update""#,
];

/// Latest byte at which the pattern begins: after three numbers.
const NEAR_BYTES: usize = 128;

/// The first message serves as a title up to this many characters.
const TITLE_CHARACTERS: usize = 80;

/// A session in the list.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Listed {
    pub session: Session,
    /// Title, else the first line of the first message. `None` if neither was found.
    pub title: Option<String>,
    pub turns: u32,
    /// When a message or a part of an answer was last added, in milliseconds since the Unix epoch. Opening a session adds neither.
    pub changed: u64,
    /// When its file was last written, in the same unit.
    pub modified: u64,
    pub bytes: u64,
    /// It is out of the way.
    pub is_archived: bool,
}

/// Lists the sessions of a folder. `known` are earlier results by id; they hold for files of the same size and time.
pub fn list(folder: &Path, known: &HashMap<String, Listed>) -> io::Result<Vec<Listed>> {
    let files = match fs::read_dir(folder) {
        Ok(files) => files,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error),
    };
    let marks = Regex::new(MARKS).map_err(io::Error::other)?;
    let paths: Vec<PathBuf> = files.flatten().map(|it| it.path()).collect();
    let is_mark = |it: &&PathBuf| it.extension().is_some_and(|it| it == ARCHIVED);
    let archived: HashSet<PathBuf> = paths.iter().filter(is_mark).map(|it| it.with_extension("")).collect();
    let mut listed: Vec<Listed> = paths.iter().filter_map(|it| read(it, &marks, known)).collect();
    for it in &mut listed {
        it.is_archived = archived.contains(&folder.join(&it.session.id));
    }
    listed.sort_by(|a, b| (b.changed, &b.session.id).cmp(&(a.changed, &a.session.id)));
    Ok(listed)
}

/// Returns the time of the last write in milliseconds since the Unix epoch; 0 for times before it.
fn modified(facts: &Metadata) -> u64 {
    let since = facts.modified().ok().and_then(|it| it.duration_since(UNIX_EPOCH).ok());
    since.map_or(0, |it| it.as_millis() as u64)
}

/// Returns the session in a file. `None` if it is no session.
fn read(path: &Path, marks: &Regex, known: &HashMap<String, Listed>) -> Option<Listed> {
    if path.extension()? != "jsonl" {
        return None;
    }
    let id = path.file_stem()?.to_str().filter(|it| is_id(it))?;
    if let Some(known) = known.get(id) {
        let facts = fs::symlink_metadata(path).ok()?;
        if facts.is_file() && facts.len() == known.bytes && modified(&facts) == known.modified {
            return Some(Listed {
                is_archived: false,
                ..known.clone()
            });
        }
    }
    let mut file = file::open(path).ok()?;
    let facts = file.metadata().ok()?;
    let modified = modified(&facts);
    let mut found = SessionHead::new(marks.clone());
    let mut looked_at = 0;
    for window in END_BYTES {
        found.scan(&part(&mut file, 0, window)?, false);
        looked_at = window;
        if found.first_ms.is_some() || window >= facts.len() {
            break;
        }
    }
    for window in END_BYTES {
        if looked_at >= facts.len() {
            break;
        }
        let from = facts.len().saturating_sub(window);
        looked_at = looked_at.max(window);
        if found.scan(&part(&mut file, from, window)?, from > 0) {
            break;
        }
    }
    if !found.is_session {
        return None;
    }
    Some(Listed {
        session: found.session.unwrap_or_else(|| Session {
            id: id.to_owned(),
            created: found.first_ms.unwrap_or(modified),
            workspace: String::new(),
            version: String::new(),
            branch: None,
        }),
        title: found.title.map(|it| it.text).or(found.message),
        turns: found.turns.0,
        changed: found.last_ms.unwrap_or(modified),
        modified,
        bytes: facts.len(),
        is_archived: false,
    })
}

fn part(file: &mut File, from: u64, limit: u64) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    file.seek(SeekFrom::Start(from)).ok()?;
    file.take(limit).read_to_end(&mut bytes).ok()?;
    Some(bytes)
}

struct SessionHead {
    marks: Regex,
    is_session: bool,
    session: Option<Session>,
    first_ms: Option<u64>,
    /// The latest time of a line that [`is_said`].
    last_ms: Option<u64>,
    title: Option<Title>,
    message: Option<String>,
    turns: Turn,
}

impl SessionHead {
    fn new(marks: Regex) -> Self {
        Self {
            marks,
            is_session: false,
            session: None,
            first_ms: None,
            last_ms: None,
            title: None,
            message: None,
            turns: Turn::default(),
        }
    }

    /// Looks at the whole lines of a part of the file; its first one may lack its beginning.
    /// Returns true if there was a part of the conversation.
    fn scan(&mut self, bytes: &[u8], starts_anywhere: bool) -> bool {
        let mut has_said = false;
        let mut said = |head: &mut Self, at_ms: u64| {
            head.last_ms = head.last_ms.max(Some(at_ms));
            has_said = true;
        };
        for text in bytes.split(|&it| it == b'\n').skip(usize::from(starts_anywhere)) {
            // What has neither a name nor a title nor a message says when it happened, and that is read at a glance.
            let has_more = self.marks.is_match(text.get(..NEAR_BYTES).unwrap_or(text));
            if let Some(it) = line::glance(text).filter(|_| !has_more) {
                self.is_session = true;
                self.first_ms.get_or_insert(it.at_ms);
                if is_said(text) {
                    said(self, it.at_ms);
                }
                self.turns = self.turns.max(Turn(it.turn));
                continue;
            }
            let Ok((position, mut members)) = line::read(text, true) else {
                continue;
            };
            self.is_session = true;
            if let Some(session) = members.shift_remove("session") {
                self.session = serde_json::from_value(session).ok();
                continue;
            }
            let Some(entry) = record::from_members(Position(position), members) else {
                continue;
            };
            self.first_ms.get_or_insert(entry.at_ms);
            if is_said(text) {
                said(self, entry.at_ms);
            }
            self.turns = self.turns.max(entry.turn);
            if let Event::Title(title) = entry.event {
                title.replace(&mut self.title);
            } else if let Event::UserMessage(message) = entry.event
                && self.message.is_none()
            {
                let typed = message.typed();
                let line = typed.lines().find(|it| !it.trim().is_empty());
                self.message = line.map(|it| it.trim().chars().take(TITLE_CHARACTERS).collect());
            }
        }
        has_said
    }
}

/// Returns true if a line is a part of the conversation. Opening a session may leave notices, its title, and what became of a
/// command that ran in the background.
fn is_said(line: &[u8]) -> bool {
    let near = line.get(..NEAR_BYTES).unwrap_or(line);
    !ASIDE.iter().any(|it| near.windows(it.len()).any(|at| at == *it))
}
