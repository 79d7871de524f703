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
use crate::os::file;

/// Name of the file that is locked, and not empty, while an undo or redo changes files.
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
        let mark = UndoMark::begin(state.kept.folder())?;
        let result = state.carry_out(workspace, plan, over);
        if let Some(mark) = mark.filter(|_| !state.is_cut()) {
            mark.end();
        }
        result
    }

    /// Returns true if the last step is an undo or redo: it may have been cut by a crash, or not told to the conversation.
    pub fn ends_with_undo(&self) -> bool {
        self.lock().ends_with_undo()
    }

    /// Finishes an undo or redo that a killed program began; files that somebody has changed since stay as they are.
    /// `None` if the last one came to its end, or another process finishes it.
    pub fn finish_cut(&self, workspace: &Workspace) -> Option<Result<Done, Refused>> {
        finish(&mut self.lock(), workspace)
    }

    /// Returns true if the last step is an undo or redo that a killed program began and nobody has finished.
    pub fn is_cut(&self) -> bool {
        self.lock().is_cut()
    }

    /// The stores of other conversations in which an undo was cut, or runs.
    fn others(&self) -> Vec<PathBuf> {
        let own = self.lock().kept.folder().to_owned();
        let stores = own.parent().map(std::fs::read_dir).into_iter().flatten().flatten();
        let others = stores.flatten().map(|it| it.path());
        others.filter(|it| *it != own && UndoMark::is_set(it)).collect()
    }

    /// Finishes what killed programs left of undos and redos of other conversations, if all of it is in this workspace. Their
    /// conversations tell of it when they are opened.
    pub fn finish_others(&self, workspace: &Workspace) -> Vec<Result<Done, Refused>> {
        let finished = self.others().into_iter().filter_map(|folder| {
            let mut state = CheckpointState::open(folder).ok()?;
            state.turn = state.steps.last().map_or(0, |it| it.turn);
            // It is there: nothing is pruned for it.
            state.kept.is_made = true;
            let files = state.steps.last().into_iter().flat_map(|it| &it.files);
            let is_here = files.clone().all(|it| workspace.base(&it.path).is_some());
            is_here.then(|| finish(&mut state, workspace)).flatten()
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

/// Finishes a cut undo, with the list as it is now: another process may have come first.
fn finish(state: &mut CheckpointState, workspace: &Workspace) -> Option<Result<Done, Refused>> {
    let mark = UndoMark::begin(state.kept.folder()).ok()?;
    if let Ok(now) = CheckpointState::open(state.kept.folder().to_owned()) {
        (state.steps, state.first) = (now.steps, now.first);
    }
    let finished = state.finish_cut(workspace);
    if let Some(mark) = mark.filter(|_| !state.is_cut()) {
        mark.end();
    }
    finished
}

/// The mark of an undo that is running. Its file says so until [`Self::end`], also if the program is killed.
struct UndoMark(file::Lock);

impl UndoMark {
    /// `Ok(None)`: nothing can be written there. The error: another process has it.
    fn begin(folder: &Path) -> Result<Option<Self>, Refused> {
        match file::lock_soon(&folder.join(RUNNING)) {
            Ok(Some(lock)) => Ok(Some(Self(lock))),
            Ok(None) => Err(Refused::Failed {
                path: folder.display().to_string(),
                source: io::ErrorKind::ResourceBusy.into(),
            }),
            Err(_) => Ok(None),
        }
    }

    /// There is nothing left to finish.
    fn end(self) {
        self.0.clear();
    }

    /// Returns true if the file says that an undo runs, or that one was cut.
    fn is_set(folder: &Path) -> bool {
        std::fs::symlink_metadata(folder.join(RUNNING)).is_ok_and(|it| it.is_file() && it.len() > 0)
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
