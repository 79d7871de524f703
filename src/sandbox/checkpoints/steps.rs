//! Steps: which call changed which files, and what was at each path before and after, in a list that is only appended to.

use std::{
    collections::BTreeSet,
    io::{self, Write as _},
    path::{Path, PathBuf},
    sync::Arc,
};

use serde::{Deserialize, Serialize};

use super::{
    blob_store::{BlobStore, Durability, LIST},
    path_state::{self, PathContent, PathState, written},
    survey::{self, Differences, Survey},
};
use crate::{os::file, sandbox::workspace::Workspace};

/// Bytes of file contents kept for one conversation.
const MOST_BYTES: u64 = 256 << 20;
/// Bytes of the list that are read at most; a longer list is an error.
const LONGEST_LIST: u64 = 64 << 20;
/// Bytes of file contents kept of the changes of one command.
const MOST_OF_COMMAND: u64 = 64 << 20;
/// Files whose contents are kept of the changes of one command.
const MOST_FILES_OF_COMMAND: usize = 5000;

/// The steps of one conversation, with their blobs.
#[derive(Debug)]
pub struct CheckpointState {
    pub kept: BlobStore,
    /// The turn that changes belong to.
    pub turn: u64,
    pub steps: Vec<CheckpointStep>,
    /// Nothing is known of turns before this one.
    pub first: u64,
}

/// Something that was done to files.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CheckpointStep {
    pub id: u64,
    pub turn: u64,
    /// The call that did it; empty: the user had it done.
    pub call: String,
    pub cause: Cause,
    pub files: Vec<Touched>,
}

/// The reason for a step.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Cause {
    Change,
    /// Steps were taken back, or done again, as far as they are about the same files.
    Turned {
        off: Vec<u64>,
        on: Vec<u64>,
        /// The step of this sort that it is the opposite of.
        #[serde(default)]
        reverts: Option<u64>,
    },
}

/// A path that a step changed, with its states before and after.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Touched {
    #[serde(with = "written")]
    pub path: PathBuf,
    pub before: PathState,
    /// `None`: it did not come to its end.
    pub after: Option<PathState>,
    /// The state that an undo or redo brings about, so that it can be finished after a crash. `None` for changes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<PathState>,
}

/// A line of the list.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Line {
    Began(CheckpointStep),
    /// The states of the step's paths after it, in their order.
    Ended {
        step: u64,
        after: Vec<PathState>,
    },
    /// The step was undone at once, or changed nothing.
    Dropped {
        step: u64,
    },
    /// Blobs of steps before this turn have been removed.
    Forgot {
        before: u64,
    },
}

/// The files that the calls of one turn changed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Changed {
    pub turn: u64,
    pub paths: BTreeSet<PathBuf>,
    /// Paths that are folders.
    pub folders: BTreeSet<PathBuf>,
    /// Paths whose changes in this turn have all been undone.
    pub undone: BTreeSet<PathBuf>,
}

impl CheckpointState {
    /// Reads the list in `folder`, if there is one.
    pub fn open(folder: PathBuf) -> io::Result<Self> {
        let mut state = Self {
            kept: BlobStore::open(folder, MOST_BYTES),
            turn: 0,
            steps: Vec::new(),
            first: 0,
        };
        match file::read(&state.kept.folder().join(LIST), LONGEST_LIST) {
            Ok(bytes) => state.load(&bytes),
            Err(error) if error.is_absent() => {}
            Err(error) => return Err(io::Error::other(error)),
        }
        Ok(state)
    }

    /// Removes a step of which nothing came.
    pub fn drop_step(&mut self, id: u64) {
        self.list(&Line::Dropped { step: id });
        self.steps.retain(|it| it.id != id);
    }

    fn next_id(&self) -> u64 {
        self.steps.last().map_or(1, |it| it.id + 1)
    }

    /// Keeps what stands there and lists the step. `targets`: the states that an undo brings about, in the order of the
    /// files; empty for a change.
    pub fn begin(
        &mut self,
        call: &str,
        cause: Cause,
        files: Vec<(PathBuf, PathContent)>,
        targets: Vec<PathState>,
        care: Durability,
    ) -> u64 {
        let mut targets = targets.into_iter();
        let files = files
            .into_iter()
            .map(|(path, found)| Touched {
                before: self.keep(found, care),
                path,
                after: None,
                to: targets.next(),
            })
            .collect();
        self.push(call, cause, files)
    }

    /// Lists a step. Returns its number.
    pub fn push(&mut self, call: &str, cause: Cause, files: Vec<Touched>) -> u64 {
        let step = CheckpointStep {
            id: self.next_id(),
            turn: self.turn,
            call: call.to_owned(),
            cause,
            files,
        };
        let id = step.id;
        let line = Line::Began(step);
        self.list(&line);
        if let Line::Began(step) = line {
            self.steps.push(step);
        }
        id
    }

    /// Records the current states of a step's paths as its result.
    pub fn end(&mut self, workspace: &Workspace, id: u64) {
        let paths: Vec<PathBuf> = match self.steps.iter().find(|it| it.id == id) {
            Some(step) => step.files.iter().map(|it| it.path.clone()).collect(),
            None => return,
        };
        let after: Vec<PathState> = paths
            .iter()
            .map(|path| match path_state::look(workspace, path, self.kept.most_bytes) {
                // The bytes are those of the file, which is on the disk.
                Ok(found) => self.keep(found, Durability::Later),
                Err(_) => PathState::Other,
            })
            .collect();
        self.list(&Line::Ended {
            step: id,
            after: after.clone(),
        });
        self.settle(id, after);
    }

    fn settle(&mut self, id: u64, after: Vec<PathState>) {
        if let Some(step) = self.steps.iter_mut().find(|it| it.id == id) {
            for (file, stand) in step.files.iter_mut().zip(after) {
                file.after = Some(stand);
            }
        }
    }

    /// A step that is over already.
    pub fn command(&mut self, call: &str, differences: Differences, survey: &Survey) {
        let mut bytes = 0;
        let mut files = Vec::new();
        for (n, (path, (before, after))) in differences.into_iter().enumerate() {
            let mut kept = |seen: &survey::Seen, state: &mut Self| {
                let found = survey.found(seen);
                let size = found.bytes.as_ref().map_or(0, |it| it.len() as u64);
                bytes += size;
                if size > 0 && (bytes > MOST_OF_COMMAND || n >= MOST_FILES_OF_COMMAND) {
                    // Its hash says whether somebody changed it.
                    return found.stand;
                }
                state.keep(found, Durability::Later)
            };
            let before = kept(&before, self);
            let after = kept(&after, self);
            files.push(Touched {
                path,
                before,
                after: Some(after),
                to: None,
            });
        }
        self.push(call, Cause::Change, files);
    }

    /// Puts the bytes under their hash, making room for them; where that fails, the hash is all that is known.
    fn keep(&mut self, found: PathContent, care: Durability) -> PathState {
        if let (PathState::File { hash, .. }, Some(bytes)) = (&found.stand, &found.bytes)
            && let Err(error) = self.store(hash, bytes, care)
        {
            tracing::warn!(%error, "a file could not be saved for undo");
        }
        found.stand
    }

    fn store(&mut self, hash: &str, bytes: &[u8], care: Durability) -> io::Result<()> {
        if self.kept.has(hash, bytes) {
            return Ok(());
        }
        let size = bytes.len() as u64;
        if size > self.kept.most_bytes {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        while !self.kept.has_room(size) {
            let oldest = self.steps.iter().map(|it| it.turn).min();
            let Some(oldest) = oldest.filter(|it| *it < self.turn) else {
                return Err(io::ErrorKind::QuotaExceeded.into());
            };
            self.list(&Line::Forgot { before: oldest + 1 });
            self.forget(oldest + 1);
            let used = self.steps.iter().flat_map(|it| &it.files);
            let used = used.flat_map(|it| [Some(&it.before), it.after.as_ref()]).flatten();
            let used = used.filter_map(|it| match it {
                PathState::File { hash, .. } => Some(hash.as_str()),
                PathState::Nothing | PathState::Link { .. } | PathState::Folder { .. } | PathState::Other => None,
            });
            let used: BTreeSet<&str> = used.collect();
            self.kept.retain(&used);
        }
        self.kept.put(hash, bytes, care)
    }

    fn list(&mut self, line: &Line) {
        let written = serde_json::to_vec(line)
            .map_err(io::Error::other)
            .and_then(|mut bytes| {
                bytes.push(b'\n');
                self.kept.make()?;
                file::append(&self.kept.folder().join(LIST))
                    .map_err(io::Error::other)?
                    .write_all(&bytes)
            });
        if let Err(error) = written {
            tracing::warn!(%error, "the list of checkpoints cannot be written");
        }
    }

    /// The folder for what is only needed while the program runs.
    pub fn scratch(&mut self) -> Option<PathBuf> {
        match self.kept.make() {
            Ok(()) => Some(self.kept.folder().to_owned()),
            Err(error) => {
                tracing::warn!(%error, "changes by commands cannot be saved for undo");
                None
            }
        }
    }

    fn load(&mut self, bytes: &[u8]) {
        // A line that was cut by a crash is no line.
        for line in bytes
            .split(|it| *it == b'\n')
            .filter_map(|it| serde_json::from_slice(it).ok())
        {
            match line {
                Line::Began(step) => {
                    self.turn = self.turn.max(step.turn);
                    self.steps.push(step);
                }
                Line::Ended { step, after } => self.settle(step, after),
                Line::Dropped { step } => self.steps.retain(|it| it.id != step),
                Line::Forgot { before } => self.forget(before),
            }
        }
    }

    fn forget(&mut self, turn: u64) {
        self.first = self.first.max(turn);
        self.steps.retain(|it| it.turn >= turn);
    }

    /// Files of steps that are taken back.
    pub fn off(&self, until: u64) -> BTreeSet<(u64, &Path)> {
        let mut off = BTreeSet::new();
        for step in self.steps.iter().filter(|it| it.id < until) {
            let Cause::Turned { off: back, on, .. } = &step.cause else {
                continue;
            };
            for file in &step.files {
                off.extend(back.iter().map(|it| (*it, file.path.as_path())));
                for id in on {
                    off.remove(&(*id, file.path.as_path()));
                }
            }
        }
        off
    }

    /// The bytes of a file before and after a call of `turn` changed it, as far as they are kept.
    pub fn contents(&self, turn: u64, call: &str, path: &Path) -> [Option<Arc<[u8]>>; 2] {
        let is_it = |it: &&CheckpointStep| it.turn == turn && it.call == call && it.cause == Cause::Change;
        let of_path = |it: &CheckpointStep| it.files.iter().find(|it| it.path == path).cloned();
        let touched = self.steps.iter().filter(is_it).find_map(of_path);
        let get = |state: Option<&PathState>| match state? {
            PathState::File { hash, .. } => self.kept.get(hash),
            PathState::Nothing | PathState::Link { .. } | PathState::Folder { .. } | PathState::Other => None,
        };
        let after = touched.as_ref().and_then(|it| it.after.as_ref());
        [get(touched.as_ref().map(|it| &it.before)), get(after)]
    }

    pub fn changed(&self) -> Vec<Changed> {
        let off = self.off(u64::MAX);
        let mut turns: Vec<Changed> = Vec::new();
        for step in &self.steps {
            if step.call.is_empty() || step.cause != Cause::Change {
                continue;
            }
            let at = match turns.iter().position(|it| it.turn == step.turn) {
                Some(at) => at,
                None => {
                    turns.push(Changed {
                        turn: step.turn,
                        ..Changed::default()
                    });
                    turns.len() - 1
                }
            };
            let Some(changed) = turns.get_mut(at) else { continue };
            for file in &step.files {
                let is_off = off.contains(&(step.id, file.path.as_path()));
                let is_new = changed.paths.insert(file.path.clone());
                let is_folder = [Some(&file.before), file.after.as_ref()];
                if is_folder
                    .iter()
                    .flatten()
                    .any(|it| matches!(it, PathState::Folder { .. }))
                {
                    changed.folders.insert(file.path.clone());
                }
                if is_off && is_new {
                    changed.undone.insert(file.path.clone());
                } else if !is_off {
                    changed.undone.remove(&file.path);
                }
            }
        }
        turns
    }
}
