//! What files were before the agent changed them, and what it made of them, so that it can be undone and done again.
//!
//! Every change is a *step*: which call made it, in which turn, and what stood at each path before and after. Bytes are kept
//! under their hash, beside a list that is only ever appended to: a crash loses nothing that was listed. Taking back is a step,
//! too, and so can be taken back. What does not fit is not kept, the oldest first, and that is said. Nothing here fails
//! a change: an edit without a way back is better than none on a full disk.
//!
//! What a command changed is found by looking at the workspace before and after it (`survey`). Git has no part in it.

mod kept;
mod plan;
mod stand;
mod survey;

use std::{
    collections::BTreeSet,
    io::{self, Write as _},
    path::{Path, PathBuf},
    sync::{Mutex, MutexGuard, PoisonError},
    time::SystemTime,
};

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

pub use plan::{Clash, Done, Marked, Plan, Turning, Which};
pub(in crate::sandbox) use stand::Found;
pub use stand::Stand;

use self::{
    kept::{Care, Kept},
    stand::written,
    survey::{Differences, Survey},
};
use super::Workspace;
use crate::os::file;

/// What one conversation may keep.
const MOST_BYTES: u64 = 256 << 20;
/// More of the list is not read.
const LONGEST_LIST: u64 = 64 << 20;
/// Where the steps stand.
const LIST: &str = "steps";
/// Of what one command changed so much is kept, and of so many files.
const MOST_OF_COMMAND: u64 = 64 << 20;
const MOST_FILES_OF_COMMAND: usize = 5000;

/// The store of one conversation.
#[derive(Debug)]
pub struct Checkpoints {
    state: Mutex<State>,
    /// Of the workspace, from the first command on.
    survey: Mutex<Option<Survey>>,
}

#[derive(Debug)]
struct State {
    kept: Kept,
    /// The turn that changes belong to.
    turn: u64,
    steps: Vec<Step>,
    /// Nothing is known of turns before this one.
    first: u64,
}

/// Something that was done to files.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Step {
    id: u64,
    turn: u64,
    /// The call that did it; empty: the user had it done.
    call: String,
    cause: Cause,
    files: Vec<Touched>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Cause {
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

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Touched {
    #[serde(with = "written")]
    path: PathBuf,
    before: Stand,
    /// `None`: it did not come to its end.
    after: Option<Stand>,
}

/// A line of the list.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Line {
    Began(Step),
    /// What stands at the paths of the step now, in their order.
    Ended {
        step: u64,
        after: Vec<Stand>,
    },
    /// It was taken back at once, or changed nothing.
    Dropped {
        step: u64,
    },
    /// What was kept before this turn is gone.
    Forgot {
        before: u64,
    },
}

impl Checkpoints {
    /// The store of the conversation `name` below `folder`. Both are made when there is something to keep; then old
    /// conversations are pruned.
    pub fn open(folder: &Path, name: &str) -> io::Result<Self> {
        let own = folder.join(folder_name(name));
        let mut state = State {
            kept: Kept::open(own.clone(), MOST_BYTES),
            turn: 0,
            steps: Vec::new(),
            first: 0,
        };
        match file::read(&own.join(LIST), LONGEST_LIST) {
            Ok(bytes) => state.load(&bytes),
            Err(error) if error.is_absent() => {}
            Err(error) => return Err(io::Error::other(error)),
        }
        Ok(Self {
            state: Mutex::new(state),
            survey: Mutex::default(),
        })
    }

    /// What is kept below `folder`, conversation by conversation: the folder's name, its bytes, and when it was last used.
    pub fn stores(folder: &Path) -> Vec<(String, u64, SystemTime)> {
        kept::stores(folder)
    }

    /// Whether what is kept under this name is that of the conversation.
    pub fn is_of(name: &str, conversation: &str) -> bool {
        folder_name(conversation) == name
    }

    /// Removes what is kept of a conversation: its files cannot be taken back any more.
    pub fn remove(folder: &Path, conversation: &str) {
        std::fs::remove_dir_all(folder.join(folder_name(conversation))).ok();
    }

    /// A message of the user's begins, which opens `turn`.
    pub fn begin(&self, turn: u64) {
        self.lock().turn = turn;
    }

    /// `call` is about to change what stands at these paths. Gives the number of the step.
    pub(super) fn began(&self, call: &str, files: Vec<(PathBuf, Found)>) -> u64 {
        self.lock().begin(call, Cause::Change, files, Care::Synced)
    }

    /// The step was done.
    pub(super) fn ended(&self, workspace: &Workspace, step: u64) {
        self.lock().end(workspace, step);
    }

    /// Nothing came of the step.
    pub(super) fn dropped(&self, step: u64) {
        let mut state = self.lock();
        state.list(&Line::Dropped { step });
        state.steps.retain(|it| it.id != step);
    }

    /// Looks at the workspace for the first time, which takes a while: commands need to know what was there. Returns when it is
    /// done, or when somebody waits for it.
    pub fn prepare(&self, workspace: &Workspace) {
        let mut survey = self.survey.lock().unwrap_or_else(PoisonError::into_inner);
        if survey.is_none() {
            let folder = self.lock().scratch();
            *survey = folder.map(|it| Survey::of(workspace, &it));
        }
    }

    /// A command is about to run: what has changed since the last look is not its doing.
    pub fn before_command(&self, workspace: &Workspace) {
        survey::hurry();
        self.prepare(workspace);
        survey::hurried();
        if let Some(survey) = &mut *self.survey.lock().unwrap_or_else(PoisonError::into_inner) {
            survey.refresh(workspace);
        }
    }

    /// The command that `call` ran has ended, or goes on unwatched: what has changed since is kept as its doing. Gives how
    /// many files that were.
    pub fn after_command(&self, workspace: &Workspace, call: &str) -> usize {
        let mut survey = self.survey.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(looked) = &mut *survey else { return 0 };
        let differences = looked.refresh(workspace);
        if differences.is_empty() {
            return 0;
        }
        let count = differences.len();
        self.lock().command(call, differences, looked);
        if looked.is_worn() {
            *survey = None;
        }
        count
    }

    /// Turns in which calls changed files, and which files: those that stand as the call left them, and those that were taken
    /// back.
    pub fn turns(&self) -> Vec<Changed> {
        self.lock().changed()
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What the calls of a turn did to files.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Changed {
    pub turn: u64,
    pub paths: BTreeSet<PathBuf>,
    /// Those among them that are folders.
    pub folders: BTreeSet<PathBuf>,
    /// Those of which everything that the turn did is taken back.
    pub undone: BTreeSet<PathBuf>,
}

impl State {
    fn next_id(&self) -> u64 {
        self.steps.last().map_or(1, |it| it.id + 1)
    }

    /// Keeps what stands there and lists the step.
    fn begin(&mut self, call: &str, cause: Cause, files: Vec<(PathBuf, Found)>, care: Care) -> u64 {
        let files = files
            .into_iter()
            .map(|(path, found)| Touched {
                before: self.keep(found, care),
                path,
                after: None,
            })
            .collect();
        let step = Step {
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

    /// What stands there now is what the step made of it.
    fn end(&mut self, workspace: &Workspace, id: u64) {
        let paths: Vec<PathBuf> = match self.steps.iter().find(|it| it.id == id) {
            Some(step) => step.files.iter().map(|it| it.path.clone()).collect(),
            None => return,
        };
        let after: Vec<Stand> = paths
            .iter()
            .map(|path| match workspace.stand(path, self.kept.most_bytes) {
                // The bytes are those of the file, which is on the disk.
                Ok(found) => self.keep(found, Care::Later),
                Err(_) => Stand::Other,
            })
            .collect();
        self.list(&Line::Ended {
            step: id,
            after: after.clone(),
        });
        self.settle(id, after);
    }

    fn settle(&mut self, id: u64, after: Vec<Stand>) {
        if let Some(step) = self.steps.iter_mut().find(|it| it.id == id) {
            for (file, stand) in step.files.iter_mut().zip(after) {
                file.after = Some(stand);
            }
        }
    }

    /// A step that is over already.
    fn command(&mut self, call: &str, differences: Differences, survey: &Survey) {
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
                state.keep(found, Care::Later)
            };
            let before = kept(&before, self);
            let after = kept(&after, self);
            files.push(Touched {
                path,
                before,
                after: Some(after),
            });
        }
        let step = Step {
            id: self.next_id(),
            turn: self.turn,
            call: call.to_owned(),
            cause: Cause::Change,
            files,
        };
        let line = Line::Began(step);
        self.list(&line);
        if let Line::Began(step) = line {
            self.steps.push(step);
        }
    }

    /// Puts the bytes under their hash, making room for them; where that fails, the hash is all that is known.
    fn keep(&mut self, found: Found, care: Care) -> Stand {
        if let (Stand::File { hash, .. }, Some(bytes)) = (&found.stand, &found.bytes)
            && let Err(error) = self.store(hash, bytes, care)
        {
            tracing::warn!(%error, "a file cannot be kept for undoing");
        }
        found.stand
    }

    fn store(&mut self, hash: &str, bytes: &[u8], care: Care) -> io::Result<()> {
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
                Stand::File { hash, .. } => Some(hash.as_str()),
                Stand::Nothing | Stand::Link { .. } | Stand::Folder { .. } | Stand::Other => None,
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
    fn scratch(&mut self) -> Option<PathBuf> {
        match self.kept.make() {
            Ok(()) => Some(self.kept.folder().to_owned()),
            Err(error) => {
                tracing::warn!(%error, "what commands change cannot be kept");
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
    fn off(&self, until: u64) -> BTreeSet<(u64, &Path)> {
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

    fn changed(&self) -> Vec<Changed> {
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
                if is_folder.iter().flatten().any(|it| matches!(it, Stand::Folder { .. })) {
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

impl Workspace {
    /// What stands at an absolute path below one of the folders.
    fn stand(&self, path: &Path, most: u64) -> io::Result<Found> {
        let base = self.base(path).ok_or(io::ErrorKind::InvalidInput)?;
        let inner = path.strip_prefix(&base).map_err(io::Error::other)?;
        stand::look(&base, inner, most)
    }
}

fn hashed(bytes: &[u8]) -> String {
    use std::fmt::Write as _;
    let mut text = String::with_capacity(64);
    for byte in Sha256::digest(bytes) {
        write!(text, "{byte:02x}").expect("a string takes everything");
    }
    text
}

/// The name of a conversation may come from anywhere, and is the name of a folder only where it can be.
fn folder_name(name: &str) -> String {
    let is_plain = |it: char| it.is_ascii_alphanumeric() || it == '-' || it == '_';
    if (1..=64).contains(&name.len()) && name.chars().all(is_plain) {
        name.to_owned()
    } else {
        hashed(name.as_bytes())
    }
}

#[cfg(test)]
mod tests;
