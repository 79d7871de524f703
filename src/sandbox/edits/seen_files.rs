//! Record of the files that the agent has read and written in a conversation: an edit of an unread file is a guess.

use std::{
    collections::BTreeMap,
    ops::RangeInclusive,
    path::PathBuf,
    sync::{Mutex, MutexGuard, PoisonError},
};

use sha2::{Digest, Sha256};

use crate::sandbox::{
    checkpoints::Checkpoints,
    files::{Located, Refused},
};

/// The memory of one conversation.
#[derive(Debug, Default)]
pub struct Seen {
    files: Mutex<BTreeMap<PathBuf, File>>,
    checkpoints: Option<Checkpoints>,
}

/// Content of a file that the model has read, and the lines that it was shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SeenFile {
    /// SHA-256 of its content.
    pub hash: [u8; 32],
    /// Lines that were shown, from 1.
    pub lines: Vec<RangeInclusive<u64>>,
}

#[derive(Clone, Debug)]
struct File {
    hash: [u8; 32],
    /// Lines that were shown to the model, from 1.
    lines: Vec<RangeInclusive<u64>>,
    /// Changed by the agent since the last message of the user.
    is_changed: bool,
}

impl SeenFile {
    /// The content `bytes`, of which `lines` were shown.
    pub fn new(bytes: &[u8], lines: RangeInclusive<u64>) -> Self {
        Self {
            hash: Sha256::digest(bytes).into(),
            lines: vec![lines],
        }
    }
}

impl Seen {
    /// Keeps what files were before the agent changed them.
    pub fn keeping(checkpoints: Checkpoints) -> Self {
        Self {
            files: Mutex::default(),
            checkpoints: Some(checkpoints),
        }
    }

    /// Returns the store for undo. `None`: nothing is stored.
    pub fn checkpoints(&self) -> Option<&Checkpoints> {
        self.checkpoints.as_ref()
    }

    /// The model was shown `lines` of the file, whose whole content is `bytes`.
    pub fn read(&self, file: &Located, bytes: &[u8], lines: RangeInclusive<u64>) {
        self.note(file, SeenFile::new(bytes, lines));
    }

    /// The model was shown a part of the file with a message.
    pub fn note(&self, file: &Located, part: SeenFile) {
        let SeenFile { hash, lines } = part;
        let mut files = self.lock();
        let known = files.entry(file.path.clone()).or_insert_with(|| File {
            hash,
            lines: Vec::new(),
            is_changed: false,
        });
        if known.hash != hash {
            known.hash = hash;
            known.lines.clear();
        }
        known.lines.extend(lines);
    }

    /// The agent wrote the file, which is `bytes` now: it knows all of it.
    pub fn wrote(&self, file: &Located, bytes: Option<&[u8]>) {
        let mut files = self.lock();
        match bytes {
            Some(bytes) => {
                let whole = File {
                    hash: Sha256::digest(bytes).into(),
                    lines: std::iter::once(1..=u64::MAX).collect(),
                    is_changed: true,
                };
                files.insert(file.path.clone(), whole);
            }
            None => {
                files.remove(&file.path);
            }
        }
    }

    /// Checks that the model has read the file, and that `bytes` (its content now) are what it read.
    pub fn check(&self, file: &Located, bytes: &[u8]) -> Result<(), Refused> {
        let hash: [u8; 32] = Sha256::digest(bytes).into();
        match self.lock().get(&file.path) {
            None => Err(Refused::Unread(file.shown.clone())),
            Some(known) if known.hash != hash => Err(Refused::Stale(file.shown.clone())),
            Some(_) => Ok(()),
        }
    }

    /// The lines that the model was shown of a file that passes [`Self::check`], counted from 1: stretches that neither
    /// overlap nor touch, first to last.
    pub fn shown(&self, file: &Located) -> Vec<RangeInclusive<u64>> {
        joined(match self.lock().get(&file.path) {
            Some(known) => known.lines.clone(),
            None => Vec::new(),
        })
    }

    /// Files that the agent has changed since [`Self::begin`], in order of their names.
    pub fn changed(&self) -> Vec<PathBuf> {
        let files = self.lock();
        files
            .iter()
            .filter(|(_, it)| it.is_changed)
            .map(|(path, _)| path.clone())
            .collect()
    }

    /// Files that the agent has read or written.
    pub fn known(&self) -> Vec<PathBuf> {
        self.lock().keys().cloned().collect()
    }

    /// All files, as [`Self::restore`] takes them. The lines are stretches that neither overlap nor touch.
    pub fn record(&self) -> BTreeMap<PathBuf, SeenFile> {
        let files = self.lock();
        let record = |(path, it): (&PathBuf, &File)| {
            let lines = joined(it.lines.clone());
            (path.clone(), SeenFile { hash: it.hash, lines })
        };
        files.iter().map(record).collect()
    }

    /// Replaces what is known of files by an older record. A file that has changed since then is stale.
    pub fn restore(&self, record: BTreeMap<PathBuf, SeenFile>) {
        let file = |SeenFile { hash, lines }| File {
            hash,
            lines,
            is_changed: false,
        };
        *self.lock() = record.into_iter().map(|(path, it)| (path, file(it))).collect();
    }

    /// A message of the user's begins, which opens the turn with this number.
    pub fn begin(&self, turn: u64) {
        if let Some(checkpoints) = &self.checkpoints {
            checkpoints.begin(turn);
        }
        for file in self.lock().values_mut() {
            file.is_changed = false;
        }
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<PathBuf, File>> {
        self.files.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The stretches in order, without overlaps and neighbours.
fn joined(mut lines: Vec<RangeInclusive<u64>>) -> Vec<RangeInclusive<u64>> {
    lines.sort_by_key(|it| *it.start());
    let mut joined: Vec<RangeInclusive<u64>> = Vec::new();
    for part in lines {
        match joined.last_mut() {
            Some(last) if *part.start() <= last.end().saturating_add(1) => {
                *last = *last.start()..=*last.end().max(part.end());
            }
            Some(_) | None => joined.push(part),
        }
    }
    joined
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sandbox::files::Place;

    #[test]
    fn stretches_that_were_shown_are_joined() {
        let seen = Seen::default();
        let file = Located {
            path: "/f".into(),
            shown: "f".to_owned(),
            place: Place::Inside,
            is_protected: false,
            is_folder: false,
        };
        assert_eq!(seen.shown(&file), []);
        for lines in [20..=30, 1..=5, 6..=8, 10..=12, 11..=11, 25..=40] {
            seen.read(&file, b"text", lines);
        }
        assert_eq!(seen.shown(&file), [1..=8, 10..=12, 20..=40]);
        // Of another content nothing is known.
        seen.read(&file, b"other", 3..=3);
        assert_eq!(seen.shown(&file), std::slice::from_ref(&(3..=3)));
        seen.wrote(&file, Some(b"own"));
        assert_eq!(seen.shown(&file), std::slice::from_ref(&(1..=u64::MAX)));
    }
}
