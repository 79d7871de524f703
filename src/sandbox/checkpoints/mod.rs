//! Checkpoints: undo and redo of the changes that the agent made to files.
//!
//! Every change is a *step*: which call made it, in which turn, and what stood at each path before and after. Bytes are kept
//! under their hash, beside a list that is only ever appended to: a crash loses nothing that was listed. Taking back is a step,
//! too, and so can be taken back. What does not fit is not kept, the oldest first, and that is said. Nothing here fails
//! a change: an edit without a way back is better than none on a full disk.
//!
//! What a command changed is found by looking at the workspace before and after it (`survey`). Git has no part in it.

mod blob_store;
mod path_state;
mod steps;
mod survey;
mod undo_plan;

use std::{
    io,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::SystemTime,
};

pub use path_state::{PathContent, PathState};
pub use steps::Changed;
pub use undo_plan::{Clash, Done, Marked, Plan, Turning, Which};

use self::{
    blob_store::Durability,
    path_state::hashed,
    steps::{Cause, CheckpointState},
    survey::Survey,
};
use super::{files::Refused, workspace::Workspace};
use crate::os::file::{self, Locked};

/// Name of the file that is there, and locked, while an undo or redo changes files.
const RUNNING: &str = "running";

/// The store of one conversation.
#[derive(Debug)]
pub struct Checkpoints {
    state: Mutex<CheckpointState>,
    /// Last survey of the workspace; `None` until the first command.
    survey: Mutex<Option<Survey>>,
}

impl Checkpoints {
    /// The store of the conversation `name` below `folder`. Both are made when there is something to keep; then old
    /// conversations are pruned.
    pub fn open(folder: &Path, name: &str) -> io::Result<Self> {
        Ok(Self {
            state: Mutex::new(CheckpointState::open(folder.join(folder_name(name)))?),
            survey: Mutex::default(),
        })
    }

    /// The list of the conversation `name` below `folder`.
    #[cfg(test)]
    pub fn list(folder: &Path, name: &str) -> std::path::PathBuf {
        folder.join(folder_name(name)).join(blob_store::LIST)
    }

    /// Returns the stores below `folder`: name of the folder, size in bytes, time of the last use.
    pub fn stores(folder: &Path) -> Vec<(String, u64, SystemTime)> {
        blob_store::stores(folder)
    }

    /// Returns true if `name` is the folder of `conversation`.
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
    pub fn began(&self, call: &str, files: Vec<(PathBuf, PathContent)>) -> u64 {
        self.lock()
            .begin(call, Cause::Change, files, Vec::new(), Durability::Synced)
    }

    /// The step was done.
    pub fn ended(&self, workspace: &Workspace, step: u64) {
        self.lock().end(workspace, step);
    }

    /// Nothing came of the step.
    pub fn dropped(&self, step: u64) {
        self.lock().drop_step(step);
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

    /// The command that `call` ran has ended, or goes on unwatched: what has changed since is kept as its doing. Gives the
    /// paths.
    pub fn after_command(&self, workspace: &Workspace, call: &str) -> Vec<PathBuf> {
        let mut survey = self.survey.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(looked) = &mut *survey else {
            return Vec::new();
        };
        let differences = looked.refresh(workspace);
        if differences.is_empty() {
            return Vec::new();
        }
        let paths = differences.iter().map(|it| it.0.clone()).collect();
        self.lock().command(call, differences, looked);
        if looked.is_worn() {
            *survey = None;
        }
        paths
    }

    /// Turns in which calls changed files, and which files: those that stand as the call left them, and those that were taken
    /// back.
    pub fn turns(&self) -> Vec<Changed> {
        self.lock().changed()
    }

    /// Returns the bytes of a file before and after the change that a call of `turn` made to it; `None` for each that is
    /// not kept, or if there was no file.
    pub fn contents(&self, turn: u64, call: &str, path: &Path) -> [Option<Arc<[u8]>>; 2] {
        self.lock().contents(turn, call, path)
    }

    /// Plans an undo or redo, without carrying it out. Files for which `wanted` is false are left out.
    pub fn plan(&self, workspace: &Workspace, which: Which<'_>, wanted: &dyn Fn(&str) -> bool) -> Plan {
        self.lock().plan(workspace, which, wanted)
    }

    /// Does it, with all files or none. Files that clash stay as they are unless `over`; what was lost stays in any case.
    pub fn carry_out(&self, workspace: &Workspace, plan: Plan, over: bool) -> Result<Done, Refused> {
        let mut state = self.lock();
        let _running = Running::begin(state.kept.folder());
        state.carry_out(workspace, plan, over)
    }

    /// Returns true if the last step is an undo or redo: it may have been cut by a crash, or not told to the conversation.
    pub fn ends_with_undo(&self) -> bool {
        self.lock().ends_with_undo()
    }

    /// Finishes an undo or redo that a killed program began; files that somebody has changed since stay as they are.
    /// `None` if the last one came to its end.
    pub fn finish_cut(&self, workspace: &Workspace) -> Option<Result<Done, Refused>> {
        let mut state = self.lock();
        let _running = Running::begin(state.kept.folder());
        state.finish_cut(workspace)
    }

    /// Returns true if the last step is an undo or redo that a killed program began and nobody has finished.
    pub fn is_cut(&self) -> bool {
        self.lock().is_cut()
    }

    /// Finishes what killed programs left of undos and redos of other conversations in this workspace. Their conversations
    /// tell of it when they are opened.
    pub fn finish_others(&self, workspace: &Workspace) -> Vec<Result<Done, Refused>> {
        let own = self.lock().kept.folder().to_owned();
        let stores = own.parent().map(std::fs::read_dir).into_iter().flatten().flatten();
        let others = stores
            .flatten()
            .map(|it| it.path())
            .filter(|it| *it != own && it.join(RUNNING).is_file());
        let finished = others.filter_map(|folder| {
            let running = Running::begin(&folder)?;
            let mut state = CheckpointState::open(folder).ok()?;
            state.turn = state.steps.last().map_or(0, |it| it.turn);
            let finished = state.finish_cut(workspace);
            if finished.is_none() && state.is_cut() {
                running.stay();
            }
            finished
        });
        finished.collect()
    }

    /// Returns the result of the last step if it is an undo or redo that came to its end.
    pub fn last_undo(&self) -> Option<Done> {
        self.lock().last_undo()
    }

    fn lock(&self) -> MutexGuard<'_, CheckpointState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The mark of an undo that is running. It stays behind, unlocked, if the program is killed.
struct Running {
    lock: Option<file::Lock>,
    path: PathBuf,
}

impl Running {
    /// `None`: another process has it, or nothing can be written there.
    fn begin(folder: &Path) -> Option<Self> {
        let path = folder.join(RUNNING);
        match file::lock(&path) {
            Ok(Locked::Ours(lock)) => Some(Self { lock: Some(lock), path }),
            Ok(Locked::Theirs { .. }) | Err(_) => None,
        }
    }

    /// Unlocks it and leaves it: there is still something to finish.
    fn stay(mut self) {
        self.lock = None;
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if self.lock.is_some() {
            std::fs::remove_file(&self.path).ok();
        }
    }
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
