//! Takes back or does again what was done to files.

use std::{collections::VecDeque, pin::Pin, sync::Arc};

use futures::FutureExt;

use super::notices::{now_ms, warn};
use crate::{
    agent::undo::{self, Restored, hunk},
    journal::Log,
    protocol::{
        Applied, DocumentId, Event, Notice, Position, Response, Restore, Turn, UNDO_FINISHED, UserAction,
        document::UNDONE, sentence,
    },
    sandbox::{Seen, Workspace},
    transcript::Transcript,
};

/// Work that restores files; an error is a sentence for the user.
type Restoring<T> = Pin<Box<dyn Future<Output = Result<T, String>> + Send>>;

/// Changes of files that are being taken back or done again, one after the other.
#[derive(Default)]
pub struct Restorer {
    /// Changes that the user has rejected, in their order; the first one is being taken back.
    rejected: VecDeque<(Turn, DocumentId)>,
    /// The first of `rejected` is being taken back.
    pub reversal: Option<Restoring<Notice>>,
    /// Files are being restored.
    pub restoring: Option<Restoring<Option<(Restored, Notice)>>>,
    /// The words in which the model is told of what was restored; empty: nothing was.
    pub told: String,
}

/// The files of the conversation.
#[derive(Clone, Copy)]
pub struct Files<'a> {
    /// `None`: there are none.
    pub workspace: Option<&'a Arc<Workspace>>,
    /// Files that the agent has read and written.
    pub seen: &'a Arc<Seen>,
}

impl Restorer {
    /// Takes back a change that the user has rejected, after those before it.
    pub fn reject(&mut self, place: (Turn, DocumentId), files: Files<'_>, log: &Arc<Log>) {
        self.rejected.push_back(place);
        self.take_back(files, log);
    }

    /// Begins to take back the next change that the user has rejected; what it did is in the log afterwards.
    fn take_back(&mut self, files: Files<'_>, log: &Arc<Log>) {
        if self.reversal.is_some() {
            return;
        }
        let Some((turn, document)) = self.rejected.front().cloned() else {
            return;
        };
        let (workspace, seen, log) = (files.workspace.cloned(), Arc::clone(files.seen), Arc::clone(log));
        let work = tokio::task::spawn_blocking(move || {
            let (rejected, notice) = rejected(&log, turn, &document)?;
            let workspace = workspace.ok_or(sentence::NO_WORKSPACE.text())?;
            let done = hunk::take_back(&workspace, &seen, &rejected);
            done.map(|()| notice).map_err(|it| it.to_string())
        });
        self.reversal =
            Some(Box::pin(work.map(|it| {
                it.unwrap_or_else(|it| Err(format!("taking it back broke down: {it}")))
            })));
    }

    /// Notes that the first rejected change was taken back, and goes on with the next one.
    pub fn reversed(&mut self, result: Result<Notice, String>, files: Files<'_>, log: &Arc<Log>) {
        self.reversal = None;
        if let Some((turn, document)) = self.rejected.pop_front() {
            match result {
                Ok(notice) => {
                    // It was on the disk, so it can be done again.
                    let mut metadata = serde_json::Map::new();
                    metadata.insert("applied".into(), Applied::Rejected.as_str().into());
                    metadata.insert(UNDONE.into(), true.into());
                    log.append_to(turn, now_ms(), Event::DocumentUpdate { document, metadata });
                    log.append(now_ms(), Event::Notice(notice));
                }
                Err(why) => warn(log, "not-taken-back", why),
            }
        }
        self.take_back(files, log);
    }

    /// Begins to take back, or to do again, what calls did to files; not while an answer is made (`is_busy`).
    pub fn restore(&mut self, wish: Restore, is_busy: bool, files: Files<'_>, log: &Arc<Log>) {
        if is_busy || self.restoring.is_some() {
            return warn(log, "not-restored", sentence::UNDO_BUSY.text());
        }
        let Some(workspace) = files.workspace.cloned() else {
            return warn(log, "not-restored", sentence::NO_WORKSPACE.text());
        };
        let seen = Arc::clone(files.seen);
        let log = Arc::clone(log);
        let work = tokio::task::spawn_blocking(move || {
            let transcript = Transcript::from_entries(&log.after(Position(0)));
            let restored = undo::restore(&seen, &workspace, &transcript, &wish)?;
            let notice = restored.notice(&transcript, &wish.target);
            Ok(Some((restored, notice)))
        });
        self.restoring = Some(Box::pin(work.map(|it| it.unwrap_or_else(|it| Err(broken(&it))))));
    }

    /// Begins to finish what a killed program left of an undo. A message waits for it.
    pub fn finish(&mut self, files: Files<'_>, log: &Arc<Log>) {
        let Some(checkpoints) = files.seen.checkpoints() else {
            return;
        };
        let is_due = checkpoints.ends_with_undo();
        let Some(workspace) = files.workspace.cloned() else {
            return;
        };
        let (seen, log) = (Arc::clone(files.seen), Arc::clone(log));
        let work = tokio::task::spawn_blocking(move || {
            for finished in undo::finish_others(&seen, &workspace) {
                warn(&log, UNDO_FINISHED, finished);
            }
            if !is_due {
                return Ok(None);
            }
            let transcript = Transcript::from_entries(&log.after(Position(0)));
            undo::finish(&seen, &workspace, &transcript).transpose()
        });
        self.restoring = Some(Box::pin(work.map(|it| it.unwrap_or_else(|it| Err(broken(&it))))));
    }

    /// Notes what was restored.
    pub fn restored(&mut self, result: Result<Option<(Restored, Notice)>, String>, log: &Log) {
        self.restoring = None;
        match result {
            Ok(None) => {}
            Ok(Some((Restored { events, told, .. }, notice))) => {
                for (turn, event) in events {
                    log.append_to(turn, now_ms(), event);
                }
                self.told.push_str(&told);
                log.append(now_ms(), Event::Notice(notice));
            }
            Err(why) => warn(log, "not-restored", why),
        }
    }
}

/// The change of a document, to be taken back, and the line that says so. Reads the log, of which much may be on the disk.
fn rejected(log: &Log, turn: Turn, document: &DocumentId) -> Result<(hunk::Rejected, Notice), String> {
    let mut response = Response::default();
    for entry in log.after(Position(0)).iter().filter(|it| it.turn == turn) {
        response.apply(&entry.event, entry.at_ms);
    }
    let at = response.position_of(document).ok_or(sentence::NO_CHANGE.text())?;
    let rejected = hunk::rejected(&response, at).ok_or(sentence::NO_CHANGE.text())?;
    let rejected = rejected.map_err(|it| it.to_string())?;
    let address = format!("{turn}.{}", response.number(at));
    let notice = UserAction::UndidDocument.notice(&[&address, &rejected.path]);
    Ok((rejected, notice))
}

fn broken(error: &tokio::task::JoinError) -> String {
    format!("taking it back broke down: {error}")
}
