//! Sessions on the disk: one file of lines each, only ever appended to.
//!
//! ```text
//! sessions/<id>.jsonl            {"v":1,"n":0,"session":{…},"crc":…}   then one line per settled event
//! sessions/<id>.lock             held by the program that writes it; gone with it
//! sessions/<id>.archived         it is out of the way: not listed unless one asks
//! sessions/<id>.damaged-<time>   an end that could not be read, moved out of the way
//! ```
//!
//! What is read is never trusted to be whole: lines are checked one by one, what is damaged is left out and said, and
//! a response without an end is closed as interrupted. Nothing that was asked is asked again, nothing is run again.

mod catalogue;
mod doctor;
mod error;
mod line;
mod load;
mod parts;
mod recent;
mod record;
mod recorder;
mod retirement;
mod tail;

use std::{
    collections::HashMap,
    io,
    path::{Path, PathBuf},
    sync::Arc,
};

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

pub use catalogue::Listed;
pub use doctor::{Examined, FileFinding, Wrong};
pub use load::Stored;
pub use parts::Parts;
pub use recorder::{NotStored, Recorder};
pub use tail::Tail;

use self::{
    error::TapeError,
    recent::End,
    recorder::{Examine, Found, Tape, Writer},
};
use super::Log;
use crate::{
    os::file,
    protocol::{Event, Notice, Position, Severity},
};

/// Facts about a session beside its events.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Session {
    /// Also the name of its file: letters, digits, `-` and `_`.
    pub id: String,
    /// Milliseconds since the Unix epoch.
    pub created: u64,
    /// The folder that it is about.
    pub workspace: String,
    /// Version of the program that created it.
    pub version: String,
    /// Branch of the folder's git repository when it began; `None` without one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub branch: Option<String>,
}

impl Session {
    /// A new one, with an id that sorts by time.
    pub fn fresh(workspace: impl Into<String>, now_ms: u64) -> Self {
        Self {
            id: uuid::Uuid::now_v7().to_string(),
            created: now_ms,
            workspace: workspace.into(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            branch: None,
        }
    }

    /// Adds the git branch on which it begins.
    pub fn on_branch(self, branch: Option<String>) -> Self {
        Self { branch, ..self }
    }

    fn to_members(&self) -> Map<String, Value> {
        Map::from_iter([("session".to_owned(), serde_json::json!(self))])
    }
}

/// Extension of the mark of an archived session.
const ARCHIVED: &str = "archived";

/// Why a session cannot be had.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    #[error("no session `{id}`")]
    Missing { id: String },
    /// It can still be read, or its events copied into a new one.
    #[error("session {id} is open in another sheaf{}", by.map_or_else(String::new, |it| format!(" (process {it})")))]
    Held { id: String, by: Option<u32> },
    #[error("session {id} was written by a newer sheaf\n  update sheaf to open it")]
    Newer { id: String },
    #[error("session {id} cannot be opened")]
    Failed {
        id: String,
        #[source]
        source: TapeError,
    },
    #[error(transparent)]
    NotStored(#[from] NotStored),
}

/// The folder of all sessions.
#[derive(Clone, Debug)]
pub struct Store {
    folder: PathBuf,
    report: Report,
}

type ReportNotice = dyn Fn(&str, &Notice) + Send + Sync;

/// A function that is called with the id of a session and a notice about damage or a failed write, beside the log.
#[derive(Clone, Default)]
struct Report(Option<Arc<ReportNotice>>);

impl std::fmt::Debug for Report {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_tuple("Report").field(&self.0.is_some()).finish()
    }
}

impl Report {
    fn call(&self, id: &str, notice: &Notice) {
        if let Some(report) = &self.0
            && notice.severity > Severity::Info
        {
            report(id, notice);
        }
    }
}

/// A session that was opened to continue it.
#[derive(Debug)]
pub struct Resumed {
    pub session: Session,
    /// Log in which every response has ended; repairs are notices in it.
    pub log: Arc<Log>,
    pub recorder: Recorder,
    /// Why it continues in memory only.
    pub not_stored: Option<TapeError>,
}

impl Store {
    /// Neither reads nor makes the folder.
    pub fn new(folder: impl Into<PathBuf>) -> Self {
        Self {
            folder: folder.into(),
            report: Report::default(),
        }
    }

    /// Calls `report` with the id of a session and a notice whenever damage is read or a write fails, from any thread: for
    /// programs without a screen, which would show what the log says.
    pub fn reporting(self, report: impl Fn(&str, &Notice) + Send + Sync + 'static) -> Self {
        let report = Report(Some(Arc::new(report)));
        Self { report, ..self }
    }

    pub fn folder(&self) -> &Path {
        &self.folder
    }

    pub fn path_of(&self, id: &str) -> PathBuf {
        self.folder.join(format!("{id}.jsonl"))
    }

    /// Records `log` as a new session, including what it already holds. Fails if there can be no thread; then the log
    /// has a notice.
    pub fn record(&self, session: Session, log: &Arc<Log>) -> Result<Recorder, NotStored> {
        let (path, id) = (self.path_of(&session.id), session.id.clone());
        let writer = Writer::new(Tape::new(&self.folder, path.clone(), session));
        let started = Recorder::start(log, log.follow_settled(Position(0)), writer, self.report.clone(), None);
        started.map_err(|error| {
            let failure = NotStored::new(&error.into(), &path);
            self.report.call(&id, &failure.notice());
            log.append(recorder::now_ms(), Event::Notice(failure.notice()));
            failure
        })
    }

    /// Returns a log of what was read: every answer has an end, and damage is a notice in it.
    pub fn log_of(&self, stored: Stored, now_ms: u64) -> Arc<Log> {
        let notices = stored.notices.clone();
        let log = Log::from_entries(stored.closed());
        for notice in notices {
            log.append(now_ms, Event::Notice(notice));
        }
        log
    }

    /// Removes a session for good, unless it is open somewhere.
    pub fn remove(&self, id: &str) -> Result<(), StoreError> {
        let path = self.path_of(id);
        if !is_id(id) || !path.exists() {
            return Err(StoreError::Missing { id: id.to_owned() });
        }
        let failed = |source| match source {
            TapeError::Held(by) => StoreError::Held { id: id.to_owned(), by },
            source => StoreError::Failed {
                id: id.to_owned(),
                source,
            },
        };
        let _lock = recorder::claim(&path).map_err(failed)?;
        std::fs::remove_file(&path).map_err(|it| failed(it.into()))?;
        // Whoever waits for the lock still has the file; the next one makes another.
        std::fs::remove_file(path.with_extension("lock")).ok();
        std::fs::remove_file(path.with_extension(ARCHIVED)).ok();
        Ok(())
    }

    /// Puts a session out of the way, or back. Nothing in it changes.
    pub fn archive(&self, id: &str, is_archived: bool) -> Result<(), StoreError> {
        let path = self.path_of(id);
        if !is_id(id) || !path.exists() {
            return Err(StoreError::Missing { id: id.to_owned() });
        }
        let mark = path.with_extension(ARCHIVED);
        let failed = |source: TapeError| StoreError::Failed {
            id: id.to_owned(),
            source,
        };
        if is_archived {
            return file::write(&mark, b"", file::Access::Private).map_err(|it| failed(it.into()));
        }
        match std::fs::remove_file(&mark) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(failed(error.into())),
            Ok(()) | Err(_) => Ok(()),
        }
    }

    /// Creates the file of an empty session, so that it can be resumed.
    pub fn create(&self, session: &Session) -> Result<(), StoreError> {
        let tape = Tape::new(&self.folder, self.path_of(&session.id), session.clone());
        tape.create().map_err(|source| StoreError::Failed {
            id: session.id.clone(),
            source,
        })
    }

    /// Reads a session, even if another program has it open. Changes nothing.
    pub fn read(&self, id: &str) -> Result<Stored, StoreError> {
        let bytes = self.bytes(id)?;
        let stored = load::read(id, &bytes).map_err(|_| StoreError::Newer { id: id.to_owned() })?;
        stored.notices.iter().for_each(|it| self.report.call(id, it));
        Ok(stored)
    }

    /// Opens a session to continue it: locks it, moves a damaged end aside, ends interrupted answers. On a disk that
    /// refuses this the session continues in memory, and [`Resumed::not_stored`] tells why.
    pub fn resume(&self, id: &str, now_ms: u64) -> Result<Resumed, StoreError> {
        self.open(id, now_ms, false)
    }

    /// Like [`Self::resume`], but reads only the end of a long session; the log reads the rest on demand.
    pub fn resume_end(&self, id: &str, now_ms: u64) -> Result<Resumed, StoreError> {
        self.open(id, now_ms, true)
    }

    /// Like [`Self::resume`], but fails if nothing can be stored: for callers whose change is lost otherwise.
    pub fn resume_to_change(&self, id: &str, now_ms: u64) -> Result<Resumed, StoreError> {
        let resumed = self.open(id, now_ms, false)?;
        match resumed.not_stored {
            Some(source) => Err(StoreError::Failed {
                id: id.to_owned(),
                source,
            }),
            None => Ok(resumed),
        }
    }

    fn open(&self, id: &str, now_ms: u64, is_end_enough: bool) -> Result<Resumed, StoreError> {
        if !is_id(id) || !self.path_of(id).exists() {
            return Err(StoreError::Missing { id: id.to_owned() });
        }
        let path = self.path_of(id);
        let held = |by| StoreError::Held { id: id.to_owned(), by };
        let claim = match recorder::claim(&path) {
            Ok(claim) => Some(claim),
            Err(TapeError::Held(by)) => return Err(held(by)),
            // It is tried again, and the error is reported, when the file is opened.
            Err(_) => None,
        };
        let end = is_end_enough.then(|| End::of(&path, id)).flatten();
        let (stored, torn, is_ended, front) = match end {
            Some(it) => (it.stored, it.torn, it.is_ended, Some((it.recent, it.front))),
            None => {
                let bytes = self.bytes(id)?;
                let stored = load::read(id, &bytes).map_err(|_| StoreError::Newer { id: id.to_owned() })?;
                let torn = bytes.get(stored.good_bytes..).unwrap_or_default().to_vec();
                let is_ended = stored.good_bytes == 0 || bytes.get(stored.good_bytes - 1) == Some(&b'\n');
                (stored, torn, is_ended, None)
            }
        };
        let title = stored.title().or_else(|| front.as_ref()?.0.title.clone());
        let mut tape = Tape {
            found: Found {
                good_bytes: stored.good_bytes as u64,
                // A last line without its newline gets one with the next write.
                lacks_newline: !is_ended,
                torn,
                torn_path: self.folder.join(format!("{id}.damaged-{now_ms}")),
            },
            claim,
            ..Tape::new(&self.folder, path.clone(), stored.session.clone())
        };
        let not_stored = match tape.open() {
            Ok(_) => None,
            Err(TapeError::Held(by)) => return Err(held(by)),
            Err(error) => Some(error),
        };
        let last = stored.entries.last().map_or(Position(0), |it| it.position);
        let session = stored.session.clone();
        let (endings, mut notices) = (stored.endings(), stored.notices.clone());
        let unread = front.as_ref().map(|it| it.1.clone());
        let examine = unread.map(|it| Box::new(move || it.damage()) as Examine);
        let log = match front {
            Some((recent, front)) => End::log(stored.entries, recent, front),
            None => Log::from_entries(stored.entries),
        };
        let from = log.last().max(last);
        for (turn, at_ms, event) in endings {
            log.append_to(turn, at_ms, event);
        }
        let failure = not_stored.as_ref().map(|it| NotStored::new(it, &path));
        notices.extend(failure.as_ref().map(NotStored::notice));
        for notice in notices {
            self.report.call(id, &notice);
            log.append(now_ms, Event::Notice(notice));
        }
        let writer = Writer::of_resumed(tape, title, failure);
        let recorder = Recorder::start(&log, log.follow_settled(from), writer, self.report.clone(), examine);
        let recorder = recorder.map_err(|source| StoreError::Failed {
            id: id.to_owned(),
            source: source.into(),
        })?;
        Ok(Resumed {
            session,
            log,
            recorder,
            not_stored,
        })
    }

    /// Reads a session as another program writes it.
    pub fn tail(&self, id: &str) -> Tail {
        Tail::new(self.path_of(id))
    }

    /// All sessions, the latest first. Reads the two ends of each file only.
    pub fn list(&self) -> io::Result<Vec<Listed>> {
        catalogue::list(&self.folder, &HashMap::new())
    }

    /// Like [`Self::list`], but does not open files that are unchanged since `known`.
    pub fn list_anew(&self, known: &HashMap<String, Listed>) -> io::Result<Vec<Listed>> {
        catalogue::list(&self.folder, known)
    }

    /// Reads a session turn by turn, for callers that need some turns only.
    pub fn parts(&self, id: &str) -> Result<Parts, StoreError> {
        let bytes = self.bytes(id)?;
        Parts::of(id, bytes).map_err(|_| StoreError::Newer { id: id.to_owned() })
    }

    fn bytes(&self, id: &str) -> Result<Vec<u8>, StoreError> {
        if !is_id(id) {
            return Err(StoreError::Missing { id: id.to_owned() });
        }
        load::bytes(&self.path_of(id)).map_err(|source| match source {
            TapeError::File(error) if error.is_absent() => StoreError::Missing { id: id.to_owned() },
            source => StoreError::Failed {
                id: id.to_owned(),
                source,
            },
        })
    }
}

/// Reads lines that anybody may have written: checksums may be missing, damaged lines are left out and reported.
/// `None` if a newer version wrote them.
pub fn read_lines(name: &str, bytes: &[u8]) -> Option<Stored> {
    load::read_loosely(name, bytes).ok()
}

/// Returns true if `id` can be a file name here and leads nowhere else.
fn is_id(id: &str) -> bool {
    !id.is_empty()
        && id.len() <= 64
        && id
            .bytes()
            .all(|it| it.is_ascii_alphanumeric() || it == b'-' || it == b'_')
}

#[cfg(test)]
mod tests;
