//! Plans of undo and redo: computed first, so that they can be shown, then carried out.

use std::{
    collections::{BTreeMap, BTreeSet, HashSet},
    ffi::OsStr,
    path::{Path, PathBuf},
    sync::Arc,
};

use super::{
    blob_store::Durability,
    path_state::{self, PathContent, PathState},
    steps::{Cause, CheckpointState, CheckpointStep, Touched},
};
use crate::sandbox::{
    files::{Place, Refused, replace::is_name_beside},
    policy::protected_names as name,
    workspace::Workspace,
};

/// The changes to undo or redo.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Which<'a> {
    /// Undoes one call of a turn.
    Call { turn: u64, call: &'a str },
    /// Undoes all calls of a turn.
    Turn(u64),
    /// Everything that happened from this turn on: files are as they were before it.
    Since(u64),
    /// Redoes an undone call.
    CallAgain { turn: u64, call: &'a str },
    /// Redoes the last undo.
    LastAgain,
}

/// Effect of an undo or redo on files.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Plan {
    /// In order of their names.
    pub files: Vec<Turning>,
    /// True if the blobs of the first turns have been removed, for lack of room.
    pub is_partial: bool,
    off: Vec<u64>,
    on: Vec<u64>,
    reverts: Option<u64>,
}

/// A path at which something else is to stand.
#[derive(Clone, Debug, PartialEq)]
pub struct Turning {
    pub path: PathBuf,
    /// For people.
    pub shown: String,
    pub now: PathState,
    pub to: PathState,
    pub now_bytes: Option<Arc<[u8]>>,
    pub to_bytes: Option<Arc<[u8]>>,
    /// The later change that would be lost. `None`: the file is as it was left.
    pub clash: Option<Clash>,
    /// True if its blob is gone, or if it may not be changed any more.
    pub is_lost: bool,
}

/// The author of a later change to a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Clash {
    /// Somebody else.
    Foreign,
    /// The agent, in this turn.
    Turn(u64),
}

/// Result of an undo or redo.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Done {
    pub files: Vec<PathBuf>,
    /// Files left unchanged, because they clash or their blobs are gone.
    pub left: Vec<String>,
    /// Those of them that nobody has edited: what they were is not stored any more, or undo may not touch them.
    pub lost: Vec<String>,
    pub off: Vec<Marked>,
    pub on: Vec<Marked>,
    /// True if it did again what an undo had undone.
    pub is_redo: bool,
}

/// A call whose changes to these files were undone or redone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Marked {
    pub turn: u64,
    pub call: String,
    pub paths: Vec<PathBuf>,
    /// Nothing of what it did is there now; of one that is done again: everything.
    pub is_whole: bool,
}

/// State of a path while steps are gone through.
struct PathHistory<'a> {
    first: u64,
    before: &'a PathState,
    after: Option<&'a PathState>,
    /// Something else was there between two steps.
    is_broken: bool,
    /// The steps changed its mode.
    changes_mode: bool,
}

impl Turning {
    /// Returns true if the path is in the wanted state already.
    pub fn is_done(&self) -> bool {
        self.now == self.to
    }
}

impl CheckpointState {
    fn chosen(&self, which: Which<'_>) -> Vec<&CheckpointStep> {
        let is_change = |it: &&CheckpointStep| it.cause == Cause::Change;
        match which {
            Which::Call { turn, call } | Which::CallAgain { turn, call } => self
                .steps
                .iter()
                .filter(is_change)
                .filter(|it| it.turn == turn && it.call == call)
                .collect(),
            Which::Turn(turn) => {
                let steps = self.steps.iter().filter(is_change);
                steps.filter(|it| it.turn == turn).collect()
            }
            Which::Since(turn) => {
                let first = self.steps.iter().position(|it| it.turn >= turn);
                let steps = first.and_then(|it| self.steps.get(it..));
                steps.unwrap_or_default().iter().collect()
            }
            Which::LastAgain => {
                let mut reverted = BTreeSet::new();
                let last = self.steps.iter().rev().find(|it| match &it.cause {
                    Cause::Turned { reverts: Some(id), .. } => {
                        reverted.insert(*id);
                        false
                    }
                    Cause::Turned { reverts: None, .. } => !reverted.contains(&it.id),
                    Cause::Change => false,
                });
                last.into_iter().collect()
            }
        }
    }

    pub fn plan(&self, workspace: &Workspace, which: Which<'_>, wanted: &dyn Fn(&str) -> bool) -> Plan {
        let steps = self.chosen(which);
        let off = self.off(u64::MAX);
        let is_again = matches!(which, Which::CallAgain { .. });
        let only_active = match which {
            Which::Call { .. } | Which::Turn(_) => Some(false),
            Which::CallAgain { .. } => Some(true),
            Which::Since(_) | Which::LastAgain => None,
        };
        let mut ways: BTreeMap<&Path, PathHistory<'_>> = BTreeMap::new();
        for step in &steps {
            for file in &step.files {
                let is_off = off.contains(&(step.id, file.path.as_path()));
                if only_active.is_some_and(|it| it != is_off) {
                    continue;
                }
                let way = ways.entry(&file.path).or_insert(PathHistory {
                    first: step.id,
                    before: &file.before,
                    after: Some(&file.before),
                    is_broken: false,
                    changes_mode: false,
                });
                way.is_broken |= way.after.is_some_and(|it| !it.is_like(&file.before));
                way.changes_mode |= file.after.as_ref().is_some_and(|it| it.mode() != file.before.mode());
                way.after = file.after.as_ref();
            }
        }
        let ids: Vec<u64> = steps.iter().map(|it| it.id).collect();
        let (off, on, reverts) = self.marks(which, &ids);
        let mut plan = Plan {
            is_partial: matches!(which, Which::Since(turn) | Which::Turn(turn) if turn < self.first),
            off,
            on,
            reverts,
            files: Vec::new(),
        };
        let target = |way: &PathHistory<'_>| {
            if is_again {
                way.after.cloned()
            } else {
                Some(way.before.clone())
            }
        };
        let is_folder = |way: &PathHistory<'_>| matches!(target(way), Some(PathState::Folder { .. }));
        let folders: BTreeSet<&Path> = ways.iter().filter(|it| is_folder(it.1)).map(|it| *it.0).collect();
        // Links of ours where a folder was: what was behind them is gone, whatever they lead to.
        let left_as = |way: &PathHistory<'_>| {
            if is_again {
                Some(way.before.clone())
            } else {
                way.after.cloned()
            }
        };
        let is_link = |way: &PathHistory<'_>| matches!(left_as(way), Some(PathState::Link { .. }));
        let links: BTreeSet<&Path> = ways.iter().filter(|it| is_link(it.1)).map(|it| *it.0).collect();
        for (path, way) in ways {
            let (to, expected) = if is_again {
                (way.after, Some(way.before))
            } else {
                (Some(way.before), way.after)
            };
            let shown = shown(workspace, path);
            if !wanted(&shown) {
                continue;
            }
            plan.files
                .push(self.turning(workspace, path, shown, to, expected, &way, &ids, &folders, &links));
        }
        plan
    }

    #[expect(clippy::too_many_arguments, reason = "one place calls it, with what it has at hand")]
    fn turning(
        &self,
        workspace: &Workspace,
        path: &Path,
        shown: String,
        to: Option<&PathState>,
        expected: Option<&PathState>,
        way: &PathHistory<'_>,
        ids: &[u64],
        folders: &BTreeSet<&Path>,
        links: &BTreeSet<&Path>,
    ) -> Turning {
        let found = || path_state::look(workspace, path, self.kept.most_bytes).ok();
        // What is to be gone and is gone is not touched.
        let is_behind = path.ancestors().skip(1).any(|it| links.contains(it));
        let is_gone = |it: &PathContent| is_behind && it.stand == PathState::Nothing && to == Some(&PathState::Nothing);
        let found = if may_touch(workspace, path, folders) {
            found()
        } else {
            found().filter(is_gone)
        };
        let is_ours = found.is_some();
        let now = found.unwrap_or(PathContent {
            stand: PathState::Other,
            bytes: None,
        });
        let mut to = to.cloned().unwrap_or(PathState::Other);
        // Whoever has made a script executable since wants it to stay so.
        if let (false, Some(mode)) = (way.changes_mode, now.stand.mode()) {
            to = to.with_mode(mode);
        }
        let to_bytes = match &to {
            PathState::File { hash, .. } => self.kept.get(hash),
            PathState::Nothing | PathState::Link { .. } | PathState::Folder { .. } | PathState::Other => None,
        };
        let is_lost =
            !is_ours || to == PathState::Other || (to_bytes.is_none() && matches!(to, PathState::File { .. }));
        let is_as_left =
            expected.is_some_and(|it| it.is_like(&now.stand) && (!way.changes_mode || it.mode() == now.stand.mode()));
        let is_there = now.stand == to;
        let clash = if is_there || (is_as_left && !way.is_broken) {
            None
        } else {
            // What the agent did later is no news to whoever reads the conversation.
            let last = self
                .steps
                .iter()
                .rev()
                .find(|it| it.files.iter().any(|it| it.path == path));
            let later = last.filter(|it| it.id > way.first && !ids.contains(&it.id));
            let is_agents = later.is_some_and(|it| {
                let file = it.files.iter().find(|it| it.path == path);
                file.and_then(|it| it.after.as_ref())
                    .is_some_and(|it| it.is_like(&now.stand))
            });
            Some(match later {
                Some(step) if is_agents => Clash::Turn(step.turn),
                Some(_) | None => Clash::Foreign,
            })
        };
        Turning {
            path: path.to_owned(),
            shown,
            now: now.stand,
            to,
            now_bytes: now.bytes,
            to_bytes,
            clash,
            is_lost,
        }
    }

    /// Returns the steps to undo, the steps to redo, and the step that is reverted by this.
    fn marks(&self, which: Which<'_>, ids: &[u64]) -> (Vec<u64>, Vec<u64>, Option<u64>) {
        let changes = |ids: &[u64]| -> Vec<u64> {
            let steps = self.steps.iter().filter(|it| it.cause == Cause::Change);
            steps.map(|it| it.id).filter(|it| ids.contains(it)).collect()
        };
        match which {
            Which::Call { .. } | Which::Turn(_) => (ids.to_vec(), Vec::new(), None),
            Which::CallAgain { .. } => (Vec::new(), ids.to_vec(), None),
            Which::Since(_) => {
                let first = ids.first().copied().unwrap_or(u64::MAX);
                let (then, now) = (self.off(first), self.off(u64::MAX));
                let older = |it: &&(u64, &Path)| it.0 < first;
                let mut off = changes(ids);
                off.extend(then.difference(&now).filter(older).map(|it| it.0));
                let on: BTreeSet<u64> = now.difference(&then).filter(older).map(|it| it.0).collect();
                (off, on.into_iter().collect(), None)
            }
            Which::LastAgain => match self.steps.iter().find(|it| ids.contains(&it.id)) {
                Some(CheckpointStep {
                    id,
                    cause: Cause::Turned { off, on, .. },
                    ..
                }) => (on.clone(), off.clone(), Some(*id)),
                Some(_) | None => (Vec::new(), Vec::new(), None),
            },
        }
    }

    pub fn carry_out(&mut self, workspace: &Workspace, plan: Plan, over: bool) -> Result<Done, Refused> {
        let Plan {
            files,
            off,
            on,
            reverts,
            is_partial: _,
        } = plan;
        let is_wanted = |it: &Turning| it.is_done() || (!it.is_lost && (over || it.clash.is_none()));
        let (wanted, left): (Vec<_>, Vec<_>) = files.into_iter().partition(is_wanted);
        let left = left.into_iter().map(|it| it.shown).collect();
        if wanted.is_empty() {
            return Ok(Done {
                left,
                ..Done::default()
            });
        }
        // Since it was worked out somebody may have written.
        for turning in &wanted {
            match path_state::look(workspace, &turning.path, self.kept.most_bytes) {
                Ok(found) if found.stand == turning.now => {}
                Ok(_) => return Err(Refused::Stale(turning.shown.clone())),
                Err(source) => {
                    return Err(Refused::Failed {
                        path: turning.shown.clone(),
                        source,
                    });
                }
            }
        }
        let before = wanted.iter().map(|it| {
            let found = PathContent {
                stand: it.now.clone(),
                bytes: it.now_bytes.clone(),
            };
            (it.path.clone(), found)
        });
        let before = before.collect();
        let targets = wanted.iter().map(|it| it.to.clone()).collect();
        let cause = Cause::Turned { off, on, reverts };
        let marks = cause.clone();
        let id = self.begin("", cause, before, targets, Durability::Synced);
        if let Err(refused) = apply(workspace, &wanted) {
            self.drop_step(id);
            return Err(refused);
        }
        self.end(workspace, id);
        let files = wanted.into_iter().map(|it| it.path).collect();
        Ok(self.done(&marks, files, left))
    }

    /// The result of a step that undid or redid something.
    fn done(&self, cause: &Cause, files: Vec<PathBuf>, left: Vec<String>) -> Done {
        let Cause::Turned { off, on, .. } = cause else {
            return Done::default();
        };
        Done {
            off: self.marked(off, &files, true),
            on: self.marked(on, &files, false),
            is_redo: off.is_empty() && !on.is_empty(),
            files,
            left,
            lost: Vec::new(),
        }
    }

    pub fn ends_with_undo(&self) -> bool {
        let last = self.steps.last();
        last.is_some_and(|it| matches!(it.cause, Cause::Turned { .. }))
    }

    pub fn last_undo(&self) -> Option<Done> {
        let last = self.steps.last().filter(|_| self.ends_with_undo())?;
        let is_ended = last.files.iter().all(|it| it.after.is_some());
        let files = last.files.iter().map(|it| it.path.clone()).collect();
        is_ended.then(|| self.done(&last.cause, files, Vec::new()))
    }

    pub fn is_cut(&self) -> bool {
        let last = self.steps.last().filter(|_| self.ends_with_undo());
        last.is_some_and(|it| it.files.iter().any(|it| it.after.is_none() && it.to.is_some()))
    }

    pub fn finish_cut(&mut self, workspace: &Workspace) -> Option<Result<Done, Refused>> {
        let step = self.steps.last().filter(|_| self.is_cut())?.clone();
        // The conversation is read in another folder: the step waits for its own.
        if step.files.iter().all(|it| workspace.base(&it.path).is_none()) {
            return None;
        }
        let folders = step
            .files
            .iter()
            .filter(|it| matches!(it.to, Some(PathState::Folder { .. })));
        let folders: BTreeSet<&Path> = folders.map(|it| it.path.as_path()).collect();
        let is_wanted = |it: &Turning| it.is_done() || (!it.is_lost && it.clash.is_none());
        let files = step.files.iter().map(|it| self.to_finish(workspace, it, &folders));
        let (wanted, left): (Vec<_>, Vec<_>) = files.partition(is_wanted);
        let lost = left.iter().filter(|it| it.is_lost).map(|it| it.shown.clone()).collect();
        let left: Vec<String> = left.into_iter().map(|it| it.shown).collect();
        let mut id = step.id;
        if !left.is_empty() {
            // What stays as it is was neither undone nor redone.
            let is_left = |it: &Touched| wanted.iter().all(|turning| turning.path != it.path);
            let files: Vec<_> = step.files.iter().filter(|it| !is_left(it)).cloned().collect();
            if !files.is_empty() {
                id = self.push("", step.cause.clone(), files);
            }
            self.drop_step(step.id);
        }
        remove_temporary(workspace, &wanted);
        if let Err(refused) = apply(workspace, &wanted) {
            return Some(Err(refused));
        }
        self.end(workspace, id);
        let files = wanted.into_iter().map(|it| it.path).collect();
        let done = self.done(&step.cause, files, left);
        Some(Ok(Done { lost, ..done }))
    }

    /// A file of an undo that was cut: as it was before, as it was to be, or changed by somebody since.
    fn to_finish(&self, workspace: &Workspace, file: &Touched, folders: &BTreeSet<&Path>) -> Turning {
        let to = file.to.clone().unwrap_or(PathState::Other);
        let found = path_state::look(workspace, &file.path, self.kept.most_bytes).ok();
        let is_gone = |it: &PathContent| it.stand == PathState::Nothing && to == PathState::Nothing;
        let found = found.filter(|it| may_touch(workspace, &file.path, folders) || is_gone(it));
        let to_bytes = match &to {
            PathState::File { hash, .. } => self.kept.get(hash),
            PathState::Nothing | PathState::Link { .. } | PathState::Folder { .. } | PathState::Other => None,
        };
        let is_kept = to_bytes.is_some() || !matches!(to, PathState::File { .. });
        let is_lost = found.is_none() || to == PathState::Other || !is_kept;
        let now = found.unwrap_or(PathContent {
            stand: PathState::Other,
            bytes: None,
        });
        Turning {
            path: file.path.clone(),
            shown: shown(workspace, &file.path),
            clash: (now.stand != file.before && now.stand != to).then_some(Clash::Foreign),
            now: now.stand,
            now_bytes: now.bytes,
            to,
            to_bytes,
            is_lost,
        }
    }

    /// Returns the steps' calls with their paths among `files`, and whether that is all that they changed.
    fn marked(&self, ids: &[u64], files: &[PathBuf], is_off: bool) -> Vec<Marked> {
        let now = self.off(u64::MAX);
        let steps = self
            .steps
            .iter()
            .filter(|it| ids.contains(&it.id) && !it.call.is_empty());
        let marked = steps.map(|step| {
            let paths = step.files.iter().map(|it| &it.path);
            Marked {
                turn: step.turn,
                call: step.call.clone(),
                is_whole: paths.clone().all(|it| now.contains(&(step.id, it.as_path())) == is_off),
                paths: paths.filter(|it| files.contains(it)).cloned().collect(),
            }
        });
        marked.filter(|it| !it.paths.is_empty()).collect()
    }
}

/// Removes the new contents of these files that the killed program had not put in their places.
fn remove_temporary(workspace: &Workspace, files: &[Turning]) {
    let names: HashSet<&OsStr> = files.iter().filter_map(|it| it.path.file_name()).collect();
    let folders: BTreeSet<&Path> = files.iter().filter_map(|it| it.path.parent()).collect();
    let is_ours = |it: &&Path| {
        let folder = workspace.located(it);
        folder.is_ok_and(|found| found.path == *it && matches!(found.place, Place::Inside | Place::Added))
    };
    let entries = folders
        .into_iter()
        .filter(is_ours)
        .filter_map(|it| std::fs::read_dir(it).ok());
    for entry in entries.flatten().flatten() {
        if is_name_beside(&entry.file_name(), &names) && entry.file_type().is_ok_and(|it| !it.is_dir()) {
            std::fs::remove_file(entry.path()).ok();
        }
    }
}

/// Makes the changes; where one fails, those before it are taken back.
fn apply(workspace: &Workspace, files: &[Turning]) -> Result<(), Refused> {
    let mut order: Vec<&Turning> = files.iter().filter(|it| !it.is_done()).collect();
    // What goes, goes from the inside; what comes, comes from the outside.
    let depth = |it: &&Turning| it.path.components().count();
    order.sort_by_key(|it| match it.to {
        PathState::Nothing => (0, usize::MAX - depth(it)),
        PathState::Folder { .. } => (1, depth(it)),
        PathState::File { .. } | PathState::Link { .. } | PathState::Other => (2, depth(it)),
    });
    let mut done: Vec<&Turning> = Vec::new();
    for it in order {
        match path_state::put(workspace, &it.path, &it.to, it.to_bytes.as_deref()) {
            Ok(()) => done.push(it),
            Err(source) => {
                let mut torn = None;
                for it in done.into_iter().rev() {
                    if let Err(source) = path_state::put(workspace, &it.path, &it.now, it.now_bytes.as_deref()) {
                        torn = Some(Refused::Torn {
                            path: it.shown.clone(),
                            source,
                        });
                    }
                }
                return Err(torn.unwrap_or(Refused::Failed {
                    path: it.shown.clone(),
                    source,
                }));
            }
        }
    }
    Ok(())
}

/// Returns true if undo may change `path`: it is in the workspace, not hidden, and not git's. `folders` will exist by
/// then.
fn may_touch(workspace: &Workspace, path: &Path, folders: &BTreeSet<&Path>) -> bool {
    let Some(parent) = path.parent() else { return false };
    let Some(base) = workspace.base(path) else { return false };
    let inner = path.strip_prefix(&base).unwrap_or(path);
    let is_below = |parent: &Path| {
        let folder = workspace.located(parent);
        folder.is_ok_and(|it| it.path == parent && matches!(it.place, Place::Inside | Place::Added))
    };
    !inner.as_os_str().is_empty()
        && !name::leads_to_git(inner)
        && !workspace.is_hidden(path)
        && (is_below(parent) || (folders.contains(parent) && may_touch(workspace, parent, folders)))
}

fn shown(workspace: &Workspace, path: &Path) -> String {
    let inner = path.strip_prefix(workspace.root()).unwrap_or(path);
    inner.to_string_lossy().into_owned()
}
