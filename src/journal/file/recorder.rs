//! Follows a log and writes what is settled to a session file, on a thread of its own.
//!
//! Deltas of an open document are kept back for less than a tenth of a second, so that a crash costs no more of an answer,
//! and an answer that streams costs a few times its own length on the disk. A disk that fails costs nothing but the file: the
//! log goes on in memory, the user is told once, and everything is tried again with the next thing that is settled.

use std::{
    borrow::Cow,
    collections::HashSet,
    fs::File,
    io::{self, Write as _},
    path::{Path, PathBuf},
    sync::{Arc, Weak},
    thread::JoinHandle,
    time::{Duration, Instant},
};

use tokio::sync::oneshot;

use super::{
    Report, Session,
    error::TapeError,
    line,
    retirement::{TurnStart, WrittenTurns},
};
use crate::{
    journal::{
        Follower, Log,
        log::{delta_of, is_piece},
    },
    os::file::{self, Lock, Locked},
    protocol::{ASIDE, DocumentId, Entry, Event, Kind, Notice, Severity, Title, Turn},
};

/// Time from one look for deltas to the next, however long writing takes: what came after the one is written by the other, so a
/// killed program loses at most what it printed in its last tenth of a second.
pub(super) const HOLD: Duration = Duration::from_millis(90);

/// Entries in one write. When the disk fails, a try costs no more than this, however much waits.
const MOST_AT_ONCE: usize = 256;

/// Bytes at the end of a file that the list of sessions reads: the title is written again before it is out of their
/// reach.
const REACH_BYTES: u64 = 16 << 10;

/// Reads the part of a session that was not read when it was opened, and returns a notice about damage in it.
pub type Examine = Box<dyn FnOnce() -> Option<Notice> + Send>;

/// Writes a session while it lives; [`Recorder::finish`] or a drop writes the rest and waits for the disk.
#[derive(Debug)]
pub struct Recorder {
    id: String,
    stop: Option<oneshot::Sender<()>>,
    /// Looks for damage in the part of the file that was not read.
    examination: Option<JoinHandle<()>>,
    thread: Option<JoinHandle<Result<(), NotStored>>>,
}

impl Recorder {
    /// Starts recording. Failures are told to the log and to `report`, and so is the damage that `examine` finds meanwhile.
    pub(super) fn start(
        log: &Arc<Log>,
        follower: Follower,
        writer: Writer,
        report: Report,
        examine: Option<Examine>,
    ) -> io::Result<Self> {
        let (stop, stopped) = oneshot::channel();
        let (log, id) = (Arc::downgrade(log), writer.tape.session.id.clone());
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build()?;
        let (told, own) = (log.clone(), id.clone());
        let say = move |event: Event| {
            if let Event::Notice(notice) = &event {
                report.call(&id, notice);
            }
            if let Some(log) = told.upgrade() {
                log.append(now_ms(), event);
            }
        };
        let examine = examine.map(|examine| {
            let say = say.clone();
            let examine = move || examine().into_iter().for_each(|it| say(Event::Notice(it)));
            std::thread::Builder::new().name("examine".to_owned()).spawn(examine)
        });
        let thread = std::thread::Builder::new()
            .name("journal".to_owned())
            .spawn(move || runtime.block_on(follow(follower, stopped, writer, say, log)))?;
        Ok(Self {
            id: own,
            stop: Some(stop),
            examination: examine.transpose()?,
            thread: Some(thread),
        })
    }

    /// The id of the session that it writes.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Waits until everything that was appended so far is on the disk, or cannot be; then that is the error. The log has
    /// a notice about it, too.
    pub fn finish(mut self) -> Result<(), NotStored> {
        self.end()
    }

    fn end(&mut self) -> Result<(), NotStored> {
        drop(self.stop.take());
        if let Some(examination) = self.examination.take() {
            // A panic has been reported by its hook.
            let _ = examination.join();
        }
        let Some(thread) = self.thread.take() else {
            return Ok(());
        };
        let panicked = || NotStored("the session is not saved to disk: its writer panicked".to_owned());
        thread.join().unwrap_or_else(|_| Err(panicked()))
    }
}

impl Drop for Recorder {
    fn drop(&mut self) {
        // The log has a notice about it.
        let _ = self.end();
    }
}

/// The message that a part of a session exists in memory only, with the cause and the file.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct NotStored(String);

impl NotStored {
    pub(super) fn new(error: &TapeError, path: &Path) -> Self {
        let error = match std::error::Error::source(error) {
            Some(cause) => format!("{error}: {cause}"),
            None => error.to_string(),
        };
        tracing::debug!(error, path = %path.display(), "the session is not stored");
        Self(format!(
            "the session is not saved to disk: {error}\nfile: {}",
            path.display()
        ))
    }

    /// Returns the notice for the log.
    pub fn notice(&self) -> Notice {
        Notice::new(Severity::Warning, "session-not-stored", self.0.clone())
    }
}

/// Writes what the log gets until its end, or the recorder's. Returns why a part is not on the disk.
pub(super) async fn follow(
    mut follower: Follower,
    mut stopped: oneshot::Receiver<()>,
    mut writer: Writer,
    say: impl Fn(Event),
    log: Weak<Log>,
) -> Result<(), NotStored> {
    let mut batch = Vec::new();
    let mut goes_on = true;
    while goes_on {
        tokio::select! {
            more = follower.next(&mut batch) => goes_on = more,
            // Nobody wakes us for pieces: while an answer comes we look for ourselves.
            () = until(writer.look_again()) => {
                follower.take(&mut batch);
            }
            _ = &mut stopped => {
                follower.take(&mut batch);
                goes_on = false;
            }
        }
        let now = tokio::time::Instant::now().into_std();
        writer.take(&mut batch, now);
        let notice = if goes_on { writer.write(now) } else { writer.write_all() };
        if let Some(notice) = notice {
            say(Event::Notice(notice));
        }
        if let Some(title) = writer.title_again().filter(|_| goes_on) {
            say(Event::Title(title));
        }
        if let Some(log) = log.upgrade().filter(|_| goes_on) {
            writer.retire(&log);
        }
    }
    // A disk that refuses nothing but more of nothing costs nothing.
    writer.failure.filter(|_| !writer.held.is_empty()).map_or(Ok(()), Err)
}

async fn until(due: Option<Instant>) {
    match due {
        Some(due) => tokio::time::sleep_until(due.into()).await,
        None => std::future::pending().await,
    }
}

/// Decides when to write what. Pure: the clock is an argument.
pub(super) struct Writer {
    tape: Tape,
    /// Not on the disk yet, ordered by position.
    held: Vec<Arc<Entry>>,
    held_since: Option<Instant>,
    looked_at: Option<Instant>,
    /// True if something settled arrived since the last attempt.
    is_news: bool,
    /// There is something worth a file.
    has_begun: bool,
    /// Set while the disk refuses entries.
    failure: Option<NotStored>,
    /// A response is on its way.
    is_answering: bool,
    /// Title of the session; `since_title` counts the bytes written after it.
    title: Option<Title>,
    since_title: u64,
    /// Turns that may leave memory.
    turns: WrittenTurns,
}

impl Writer {
    pub(super) fn new(tape: Tape) -> Self {
        Self {
            tape,
            held: Vec::new(),
            held_since: None,
            looked_at: None,
            is_news: false,
            has_begun: false,
            failure: None,
            is_answering: false,
            title: None,
            since_title: 0,
            turns: WrittenTurns::default(),
        }
    }

    /// Removes old turns from memory, between two answers.
    pub(super) fn retire(&mut self, log: &Log) {
        if !self.is_answering && self.held.is_empty() {
            let Some(end) = self.tape.reel.as_ref().map(|it| it.good_bytes) else {
                return;
            };
            self.turns.retire(log, &self.tape.path, &self.tape.session.id, end);
        }
    }

    /// Continues a session. `title` is the title that the file has, `failure` what the log was told already.
    pub(super) fn of_resumed(tape: Tape, title: Option<Title>, failure: Option<NotStored>) -> Self {
        Self {
            // Where it stands in the file is not known: it is said again behind the next answer.
            since_title: if title.is_some() { REACH_BYTES } else { 0 },
            has_begun: true,
            title,
            failure,
            ..Self::new(tape)
        }
    }

    /// Returns the title if it must be written again for the list to see it.
    fn title_again(&mut self) -> Option<Title> {
        if self.is_answering || self.since_title < REACH_BYTES {
            return None;
        }
        self.since_title = 0;
        self.title.clone()
    }

    pub(super) fn take(&mut self, batch: &mut Vec<Arc<Entry>>, now: Instant) {
        self.is_news |= batch.iter().any(|it| !is_piece(&it.event));
        for entry in batch.iter() {
            self.has_begun |= is_worth_a_file(&entry.event);
            let goes_on = self.is_answering || begins(&entry.event);
            self.is_answering = self.has_begun && goes_on && !matches!(entry.event, Event::Done(_));
        }
        let ended: HashSet<(Turn, DocumentId)> = batch
            .iter()
            .filter_map(|it| {
                if let Event::DocumentEnd { document, .. } = &it.event {
                    Some((it.turn, document.clone()))
                } else {
                    None
                }
            })
            .collect();
        self.held.extend(batch.drain(..).filter(|it| !is_of_now(&it.event)));
        if !ended.is_empty() {
            self.held
                .retain(|it| !delta_of(&it.event).is_some_and(|document| ended.contains(&(it.turn, document.clone()))));
        }
        // They came after the last look.
        let earliest = self.looked_at.replace(now).unwrap_or(now);
        if self.held.is_empty() {
            self.held_since = None;
        } else {
            self.held_since.get_or_insert(earliest);
        }
    }

    /// When to look for pieces; `None` while no answer is on its way.
    pub(super) fn look_again(&self) -> Option<Instant> {
        // From the last look on and not from its end: what came while the disk was written to waits already.
        let next = self.looked_at.filter(|_| self.is_answering).map(|it| it + HOLD);
        self.due().or(next)
    }

    /// Returns the time at which unwritten entries must be written. `None` if there are none, or after a disk error.
    pub(super) fn due(&self) -> Option<Instant> {
        if self.failure.is_some() {
            return None;
        }
        self.held_since.map(|it| it + HOLD)
    }

    /// Writes settled entries, and all entries once they are due. Returns a notice about a new failure.
    pub(super) fn write(&mut self, now: Instant) -> Option<Notice> {
        let is_due = self.due().is_some_and(|due| due <= now);
        let settled = self.held.iter().rposition(|it| !is_piece(&it.event));
        let count = match settled {
            _ if is_due => self.held.len(),
            Some(at) if self.is_news => at + 1,
            Some(_) | None => 0,
        };
        self.write_first(count)
    }

    pub(super) fn write_all(&mut self) -> Option<Notice> {
        self.write_first(self.held.len())
    }

    fn write_first(&mut self, mut count: usize) -> Option<Notice> {
        self.is_news = false;
        if !self.has_begun {
            return None;
        }
        let mut notice = None;
        while count > 0 {
            let batch = count.min(MOST_AT_ONCE);
            let entries = self.held.get(..batch).unwrap_or_default();
            let must_stay = entries.iter().any(|it| must_stay(&it.event));
            let (mut titled_at, mut is_overridden) = (None, false);
            let mut title = self.title.clone();
            let mut starts = Vec::new();
            let written = self.tape.append(must_stay, |out| {
                for entry in joined(entries) {
                    if matches!(entry.event, Event::UserMessage(_)) {
                        starts.push(TurnStart {
                            turn: entry.turn,
                            position: entry.position,
                            offset: out.bytes,
                            title: title.clone(),
                        });
                    }
                    line::write_entry(&entry, out)?;
                    if let Event::Title(new) = &entry.event {
                        is_overridden = !new.clone().replace(&mut title);
                        titled_at = Some(out.bytes).filter(|_| !is_overridden);
                    }
                }
                Ok(())
            });
            let bytes = match written {
                Ok(bytes) => bytes,
                Err(error) => return self.fail(&error).or(notice),
            };
            let before = self.tape.reel.as_ref().map_or(0, |it| it.good_bytes) - bytes;
            for start in starts {
                let offset = before + start.offset;
                self.turns.add(TurnStart { offset, ..start });
            }
            self.title = title;
            self.held.drain(..batch);
            count -= batch;
            let since = bytes - titled_at.unwrap_or_default();
            self.since_title = if titled_at.is_some() {
                since
            } else if is_overridden {
                // The list reads the end of the file, where another title stands now that does not hold.
                REACH_BYTES
            } else {
                self.since_title + since
            };
            if self.failure.take().is_some() {
                notice = Some(Notice::new(
                    Severity::Info,
                    "session-stored-again",
                    "the session is stored again",
                ));
            }
        }
        if self.held.is_empty() {
            self.held_since = None;
        }
        notice
    }

    /// Returns a notice about the first failure. `None` for later ones.
    fn fail(&mut self, error: &TapeError) -> Option<Notice> {
        let failure = NotStored::new(error, &self.tape.path);
        let notice = self.failure.is_none().then(|| failure.notice());
        self.failure = Some(failure);
        notice
    }
}

/// Returns true if a conversation begins with the event. Notices, titles, and what is only between user and program,
/// are no conversation.
fn is_worth_a_file(event: &Event) -> bool {
    match event {
        Event::DocumentStart(start) => !start.metadata.contains_key(ASIDE),
        other => matches!(other, Event::UserMessage(_)),
    }
}

/// Returns true for events that mean nothing to a later reader: progress, and the state of the file, which whoever reads it
/// sees for himself.
fn is_of_now(event: &Event) -> bool {
    match event {
        Event::Notice(notice) => matches!(
            notice.code.as_str(),
            "session-not-stored" | "session-stored-again" | "session-damaged" | "session-strange"
        ),
        other => matches!(other, Event::Progress(_) | Event::Said { .. }),
    }
}

/// Returns true if an answer begins with the event.
fn begins(event: &Event) -> bool {
    matches!(
        event,
        Event::UserMessage(_) | Event::ResponseStart(_) | Event::DocumentStart(_)
    )
}

/// Returns true if the event must survive a power failure: messages, changes of the machine, ends.
fn must_stay(event: &Event) -> bool {
    match event {
        Event::DocumentStart(start) => {
            matches!(start.kind, Kind::ToolCall | Kind::TerminalCommand | Kind::FileEdit)
        }
        other => matches!(
            other,
            Event::UserMessage(_) | Event::ToolResult { .. } | Event::DocumentEnd { .. } | Event::Done(_)
        ),
    }
}

/// Joins consecutive deltas of the same text, at the position of the last one.
fn joined(entries: &[Arc<Entry>]) -> Vec<Cow<'_, Entry>> {
    let mut joined: Vec<Cow<'_, Entry>> = Vec::with_capacity(entries.len());
    for entry in entries {
        let continues = joined
            .last_mut()
            .filter(|it| it.turn == entry.turn && is_piece(&it.event));
        let continues = continues.is_some_and(|last| {
            let last = last.to_mut();
            let grown = match (&mut last.event, &entry.event) {
                (
                    Event::ContentDelta { document, delta },
                    Event::ContentDelta {
                        document: same,
                        delta: more,
                    },
                ) if document == same => {
                    delta.push_str(more);
                    true
                }
                (Event::ThinkingDelta { delta }, Event::ThinkingDelta { delta: more }) => {
                    delta.push_str(more);
                    true
                }
                (
                    Event::MetadataDelta {
                        document,
                        metadata,
                        append,
                    },
                    Event::MetadataDelta {
                        document: same,
                        metadata: none,
                        append: more,
                    },
                ) if document == same && metadata.is_empty() && none.is_empty() => {
                    match (append.as_mut_slice(), more.as_slice()) {
                        ([(member, text)], [(same, more)]) if member == same => {
                            text.push_str(more);
                            true
                        }
                        (_, _) => false,
                    }
                }
                (_, _) => false,
            };
            if grown {
                last.position = entry.position;
                last.at_ms = entry.at_ms;
            }
            grown
        });
        if !continues {
            joined.push(Cow::Borrowed(entry));
        }
    }
    joined
}

/// The file of a session. It is opened, and made if it is new, with the first thing that is written; if that fails, with
/// a later one.
#[derive(Debug)]
pub struct Tape {
    pub folder: PathBuf,
    pub path: PathBuf,
    pub session: Session,
    /// The file as it was read; empty for a new one.
    pub found: Found,
    /// The right to write it. `None` until it has been obtained.
    pub claim: Option<Claim>,
    pub reel: Option<Reel>,
}

/// State of a session file as it was read.
#[derive(Debug, Default)]
pub struct Found {
    /// Up to here every line is whole.
    pub good_bytes: u64,
    /// The last whole line does not end in a newline.
    pub lacks_newline: bool,
    /// Bytes after the last whole line. They are moved to a file of their own before anything is appended.
    pub torn: Vec<u8>,
    /// Name of that file.
    pub torn_path: PathBuf,
}

/// The right to be the only writer of a session, in this process and others.
#[derive(Debug)]
pub struct Claim {
    /// `None` if the file system has no locks.
    _lock: Option<Lock>,
}

/// An open file that is ours alone.
#[derive(Debug)]
pub struct Reel {
    pub file: File,
    /// Up to here every line is whole.
    pub good_bytes: u64,
    /// The last whole line does not end in a newline yet.
    pub lacks_newline: bool,
    /// True if an incomplete line may follow.
    pub is_torn: bool,
}

impl Tape {
    /// The file of a new session.
    pub fn new(folder: &Path, path: PathBuf, session: Session) -> Self {
        Self {
            folder: folder.to_owned(),
            path,
            session,
            found: Found::default(),
            claim: None,
            reel: None,
        }
    }

    /// Appends what `write` writes, after the first line if there is none yet. Returns the number of bytes.
    fn append(
        &mut self,
        must_stay: bool,
        write: impl FnOnce(&mut TapeWriter<'_>) -> io::Result<()>,
    ) -> Result<u64, TapeError> {
        let session = self.session.to_members();
        let reel = self.open()?;
        let is_new = reel.good_bytes == 0;
        Ok(reel.append(must_stay, |out| {
            if is_new {
                line::write(0, &session, out)?;
            }
            write(out)
        })?)
    }

    /// Writes nothing but the first line.
    pub fn create(mut self) -> Result<(), TapeError> {
        self.append(true, |_| Ok(())).map(|_| ())
    }

    /// Opens the file unless it is open, and moves a torn end out of the way.
    pub fn open(&mut self) -> Result<&mut Reel, TapeError> {
        let reel = match self.reel.take() {
            Some(reel) => reel,
            None => self.opened()?,
        };
        Ok(self.reel.insert(reel))
    }

    fn opened(&mut self) -> Result<Reel, TapeError> {
        file::private_folder(&self.folder)?;
        if self.claim.is_none() {
            self.claim = Some(claim(&self.path)?);
        }
        let file = file::append(&self.path)?;
        let Found {
            good_bytes,
            lacks_newline,
            torn,
            torn_path,
        } = &self.found;
        if file.metadata()?.len() != good_bytes + torn.len() as u64 {
            return Err(TapeError::Changed);
        }
        if !torn.is_empty() {
            file::write(torn_path, torn, file::Access::Private)?;
            file.set_len(*good_bytes)?;
        }
        Ok(Reel {
            file,
            good_bytes: *good_bytes,
            lacks_newline: *lacks_newline,
            is_torn: false,
        })
    }
}

/// Locks the session at `path`. Fails if another program holds it.
pub fn claim(path: &Path) -> Result<Claim, TapeError> {
    match file::lock(&path.with_extension("lock")) {
        Ok(Locked::Ours(lock)) => Ok(Claim { _lock: Some(lock) }),
        Ok(Locked::Theirs { process }) => Err(TapeError::Held(process)),
        Err(file::Error::Io {
            done: "locked",
            source,
            path,
        }) => {
            tracing::warn!(%source, path = %path.display(), "no lock: a second sheaf could write the same session");
            Ok(Claim { _lock: None })
        }
        Err(error) => Err(error.into()),
    }
}

impl Reel {
    /// Appends what `write` writes, all of it at once unless it is long. A part that a full disk cut off is removed before
    /// the next. Returns the number of bytes.
    fn append(
        &mut self,
        must_stay: bool,
        write: impl FnOnce(&mut TapeWriter<'_>) -> io::Result<()>,
    ) -> io::Result<u64> {
        if self.is_torn && self.file.set_len(self.good_bytes).is_ok() {
            self.is_torn = false;
        }
        let mut out = TapeWriter {
            file: &self.file,
            buffer: Vec::new(),
            bytes: 0,
        };
        // A torn line that stays gets an end of its own, and the reader skips it.
        let begun = if self.is_torn || self.lacks_newline {
            out.write_all(b"\n")
        } else {
            Ok(())
        };
        let written = begun.and_then(|()| write(&mut out)).and_then(|()| out.flush());
        let bytes = out.bytes;
        if let Err(error) = written {
            self.is_torn = true;
            return Err(error);
        }
        self.good_bytes = self.file.metadata()?.len();
        self.is_torn = false;
        self.lacks_newline = false;
        if must_stay {
            self.file.sync_data()?;
        }
        Ok(bytes)
    }
}

/// Bytes that are gathered for one write to a tape.
const WRITE_BYTES: usize = 1 << 20;

/// Gathers bytes for the file of a session, and counts them.
struct TapeWriter<'a> {
    file: &'a File,
    buffer: Vec<u8>,
    /// Number of bytes so far.
    bytes: u64,
}

impl io::Write for TapeWriter<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.buffer.extend_from_slice(bytes);
        self.bytes += bytes.len() as u64;
        if self.buffer.len() >= WRITE_BYTES {
            self.flush()?;
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.write_all(&self.buffer)?;
        self.buffer.clear();
        Ok(())
    }
}

pub fn now_ms() -> u64 {
    std::time::SystemTime::now()
        .duration_since(std::time::UNIX_EPOCH)
        .map_or(0, |it| it.as_millis() as u64)
}
