//! Taking back what calls did to files, and doing it again: which steps a wish means, what they would do, and what the
//! documents say afterwards.
//!
//! One place of a file that a call changed in several is taken back by its text; everything else by what stood there before,
//! byte for byte. Nothing is done where somebody has changed a file since, unless the user says so.

pub mod hunk;

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use serde_json::{Map, Value};

use crate::{
    agent::tags::wrap,
    models::Part,
    protocol::{
        Applied, Document, DocumentId, Event, FileChange, Notice, Operation, Response, Restore, RestoreConflict,
        RestorePreview, RestoreTarget, Turn, TurnChanges, UserAction, View, document::UNDONE,
    },
    sandbox::{self, Checkpoints, Marked, PathState, Plan, Seen, Turning, Which, Workspace},
    t,
    text::{diff::diff, figure},
    tools::{self, Context, Fault, Input as Arguments, Outcome},
    transcript::Transcript,
};

/// A longer patch is not shown.
const PATCH_BYTES: usize = 256 << 10;
/// Lines around a change.
const AROUND: usize = 3;

/// The result of an undo or redo.
#[derive(Debug, Default)]
pub struct Restored {
    /// Events to append, each with its turn.
    pub events: Vec<(Turn, Event)>,
    /// For the user.
    pub said: String,
    /// For the model.
    pub told: String,
    /// Files that changed, relative to the workspace.
    pub files: Vec<String>,
    /// Files that did not, each with the reason.
    pub unchanged: String,
}

impl Restored {
    /// Returns the line about it in the conversation.
    pub fn notice(&self, transcript: &Transcript, target: &RestoreTarget) -> Notice {
        let address = |turn: Turn, document: &DocumentId| {
            let at = response(transcript, turn)?.position_of(document)?;
            Some(format!("{turn}.{}", at + 1))
        };
        let (is_again, address) = match target {
            RestoreTarget::Document { turn, document } => (false, address(*turn, document)),
            RestoreTarget::RedoDocument { turn, document } => (true, address(*turn, document)),
            RestoreTarget::RedoLast => (true, None),
            RestoreTarget::Turn(_) | RestoreTarget::Last | RestoreTarget::Since(_) => (false, None),
        };
        match (address, self.files.as_slice(), is_again) {
            (Some(address), [file], false) => UserAction::UndidDocument.notice(&[&address, file]),
            (Some(address), [file], true) => UserAction::RedidDocument.notice(&[&address, file]),
            (_, files, _) => {
                let action = if is_again { UserAction::Redid } else { UserAction::Undid };
                let (first, count) = (files.first().map_or("", String::as_str), files.len().to_string());
                action.notice(&[first, &count, &self.unchanged])
            }
        }
    }
}

/// The scope of a request to undo or redo.
enum Scope<'a> {
    /// Steps, and of these the files that a document is about; empty: all.
    Steps(Which<'a>, Vec<String>),
    /// One place of several in a file.
    Place {
        turn: Turn,
        document: DocumentId,
        again: bool,
    },
}

/// The plan for these steps without the files of `except`.
fn plan(
    checkpoints: &Checkpoints,
    workspace: &Workspace,
    which: Which<'_>,
    files: &[String],
    except: &[String],
) -> Plan {
    checkpoints.plan(workspace, which, &|path| {
        let is_left = |it: &String| is_in(path, it.trim_start_matches("./").trim_end_matches('/'));
        (files.is_empty() || files.iter().any(|it| is_in(it, path))) && !except.iter().any(is_left)
    })
}

/// Returns true if `path` is `folder` or lies below it.
fn is_in(path: &str, folder: &str) -> bool {
    let rest = path.strip_prefix(folder);
    rest.is_some_and(|it| it.is_empty() || it.starts_with('/'))
}

/// The files that each turn has changed, oldest first; empty without checkpoints.
pub fn changes(seen: &Seen, workspace: &Workspace) -> Vec<TurnChanges> {
    let Some(checkpoints) = seen.checkpoints() else {
        return Vec::new();
    };
    let shown = |path: &Path| {
        path.strip_prefix(workspace.root())
            .unwrap_or(path)
            .to_string_lossy()
            .into_owned()
    };
    let turns = checkpoints.turns().into_iter().map(|it| {
        // Folders come and go with what is in them.
        let only_folders = it.folders.len() == it.paths.len();
        let counts = |path: &&std::path::PathBuf| only_folders || !it.folders.contains(*path);
        TurnChanges {
            turn: Turn(u32::try_from(it.turn).unwrap_or(u32::MAX)),
            undone: it.undone.iter().filter(counts).count(),
            paths: it.paths.iter().filter(counts).map(|it| shown(it)).collect(),
        }
    });
    turns.collect()
}

/// The changes that an undo would make. Reads the files. Errors are sentences for the user.
pub fn preview(
    seen: &Seen,
    workspace: &Workspace,
    transcript: &Transcript,
    wish: &Restore,
) -> Result<RestorePreview, String> {
    let checkpoints = seen.checkpoints().ok_or(NOTHING_KEPT)?;
    match scope(checkpoints, workspace, transcript, &wish.target)? {
        Scope::Steps(which, files) => {
            let plan = plan(checkpoints, workspace, which, &files, &wish.except);
            Ok(RestorePreview {
                files: plan.files.iter().filter(|it| !it.is_done()).map(change).collect(),
                is_partial: plan.is_partial,
                states: plan.files.iter().map(|it| (it.shown.clone(), state(it))).collect(),
            })
        }
        Scope::Place { .. } => Ok(RestorePreview::default()),
    }
}

/// Does it. Waits for the disk.
pub fn restore(
    seen: &Seen,
    workspace: &Workspace,
    transcript: &Transcript,
    wish: &Restore,
) -> Result<Restored, String> {
    let checkpoints = seen.checkpoints().ok_or(NOTHING_KEPT)?;
    match scope(checkpoints, workspace, transcript, &wish.target)? {
        Scope::Place { turn, document, again } => place(seen, workspace, transcript, turn, &document, again),
        Scope::Steps(which, files) => {
            let plan = plan(checkpoints, workspace, which, &files, &wish.except);
            if let Some(changed) = changed_since(&plan, wish) {
                return Err(format!("{changed} has changed since you looked: look again"));
            }
            let has_clash = plan.files.iter().any(|it| it.clash.is_some());
            // Where others have written into the file, the change may still be found by its text.
            if let RestoreTarget::Document { turn, document } = &wish.target
                && has_clash
                && !wish.overwrite
                && let Ok(restored) = place(seen, workspace, transcript, *turn, document, false)
            {
                return Ok(restored);
            }
            let is_again = matches!(which, Which::CallAgain { .. } | Which::LastAgain);
            steps(checkpoints, workspace, transcript, plan, wish.overwrite, is_again)
        }
    }
}

/// Finishes an undo or redo that a killed program left: in the files, and in what the documents say. `None` if there is
/// nothing to finish. Waits for the disk.
pub fn finish(
    seen: &Seen,
    workspace: &Workspace,
    transcript: &Transcript,
) -> Option<Result<(Restored, Notice), String>> {
    let checkpoints = seen.checkpoints()?;
    let (done, was_cut) = match checkpoints.finish_cut(workspace) {
        Some(Ok(done)) => (done, true),
        Some(Err(why)) => return Some(Err(format!("an interrupted undo cannot be finished: {}", chain(&why)))),
        None => (checkpoints.last_undo()?, false),
    };
    let marked = done.off.iter().map(|it| (it, true));
    let marked = marked.chain(done.on.iter().map(|it| (it, false)));
    let mut events: Vec<_> = marked
        .flat_map(|(it, is_off)| marks(workspace, transcript, it, is_off))
        .collect();
    events.retain(|(turn, event)| is_news(transcript, *turn, event));
    if !was_cut && events.is_empty() {
        return None;
    }
    let unchanged = done
        .left
        .iter()
        .map(|it| {
            let is_lost = done.lost.contains(it);
            format!(
                "{it} {}",
                if is_lost {
                    "cannot be restored"
                } else {
                    "was edited later"
                }
            )
        })
        .collect::<Vec<_>>()
        .join("; ");
    let shown = |it: &std::path::PathBuf| it.strip_prefix(workspace.root()).unwrap_or(it).display().to_string();
    let files: Vec<String> = done.files.iter().filter(|it| !it.is_dir()).map(shown).collect();
    if files.is_empty() && !done.left.is_empty() {
        return Some(Err(format!("an undo was interrupted; unchanged: {unchanged}")));
    }
    let (word, verb) = words(done.is_redo);
    let action = if done.is_redo {
        UserAction::FinishedRedo
    } else {
        UserAction::FinishedUndo
    };
    let count = files.len().to_string();
    let notice = action.notice(&[files.first().map_or("", String::as_str), &count, &unchanged]);
    let restored = Restored {
        events,
        said: format!(
            "finished an interrupted run: {verb} changes to {}",
            figure::count(files.len().max(1), "file", "files").as_str()
        ),
        told: files.iter().map(|it| format!("{word}: {it}\n")).collect(),
        files,
        unchanged,
    };
    Some(Ok((restored, notice)))
}

/// Finishes what killed programs left of undos and redos of other conversations in this workspace. Returns a sentence about
/// each of them. Waits for the disk.
pub fn finish_others(seen: &Seen, workspace: &Workspace) -> Vec<String> {
    let finished = seen.checkpoints().map(|it| it.finish_others(workspace));
    let sentence = |it: Result<sandbox::Done, sandbox::Refused>| match it {
        Ok(done) => {
            let count = done.files.iter().filter(|it| !it.is_dir()).count();
            let mut text = t!("undo-finished-other", count = count);
            if !done.left.is_empty() {
                text.push_str(&format!("; {}", t!("undo-unchanged", files = done.left.join(", "))));
            }
            text
        }
        Err(why) => format!("{}: {}", t!("undo-unfinished-other"), chain(&why)),
    };
    finished.into_iter().flatten().map(sentence).collect()
}

/// Returns true if the document does not say yet what the event says.
fn is_news(transcript: &Transcript, turn: Turn, event: &Event) -> bool {
    let Event::DocumentUpdate { document, metadata } = event else {
        return true;
    };
    let known = response(transcript, turn).and_then(|it| it.get(document));
    let known = known.and_then(|it| it.metadata.get(UNDONE)).unwrap_or(&Value::Null);
    metadata.get(UNDONE).unwrap_or(&Value::Null) != known
}

/// A text that says what is at a path.
fn state(it: &Turning) -> String {
    format!("{:?}", it.now)
}

/// Returns a file that would be restored and is not what the preview showed.
fn changed_since<'a>(plan: &'a Plan, wish: &Restore) -> Option<&'a str> {
    let seen = wish.seen.as_ref()?;
    let is_news = |it: &&Turning| !it.is_done() && seen.get(&it.shown) != Some(&state(it));
    plan.files.iter().find(is_news).map(|it| it.shown.as_str())
}

const NOTHING_KEPT: &str = "file history is not stored here";

fn scope<'a>(
    checkpoints: &Checkpoints,
    workspace: &Workspace,
    transcript: &'a Transcript,
    what: &RestoreTarget,
) -> Result<Scope<'a>, String> {
    let nothing = || "nothing to undo".to_owned();
    let all = |which| Scope::Steps(which, Vec::new());
    Ok(match what {
        RestoreTarget::Turn(turn) => all(Which::Turn(u64::from(turn.0))),
        RestoreTarget::Since(turn) => all(Which::Since(u64::from(turn.0))),
        RestoreTarget::RedoLast => all(Which::LastAgain),
        RestoreTarget::Last => {
            // Files may be as they were before already: a change was taken back by its text, or by somebody else.
            let turns = checkpoints.turns();
            let is_left = |turn: u64| {
                let plan = checkpoints.plan(workspace, Which::Turn(turn), &|_| true);
                plan.is_partial || plan.files.iter().any(|it| !it.is_done())
            };
            let mut left = turns.iter().rev().filter(|it| it.undone.len() < it.paths.len());
            all(Which::Turn(left.find(|it| is_left(it.turn)).ok_or_else(nothing)?.turn))
        }
        RestoreTarget::Document { turn, document } | RestoreTarget::RedoDocument { turn, document } => {
            let again = matches!(what, RestoreTarget::RedoDocument { .. });
            let response = response(transcript, *turn).ok_or_else(nothing)?;
            let found = response.get(document).ok_or_else(nothing)?;
            if found.is_undone() != again {
                let word = if again { "not undone yet" } else { "already undone" };
                return Err(word.to_owned());
            }
            let Some(call) = call_of(found) else {
                return Err("it changed no files".to_owned());
            };
            // It was taken back by its text: the steps do not know of it.
            if again && !hunk::is_made(found) {
                return Ok(Scope::Place {
                    turn: *turn,
                    document: document.clone(),
                    again,
                });
            }
            let paths = paths_of(found);
            let is_of_file = |it: &&Document| call_of(it) == Some(call) && paths_of(it) == paths;
            if !paths.is_empty() && response.documents.iter().filter(is_of_file).count() > 1 {
                return Ok(Scope::Place {
                    turn: *turn,
                    document: document.clone(),
                    again,
                });
            }
            let turn = u64::from(turn.0);
            let which = if again {
                Which::CallAgain { turn, call }
            } else {
                Which::Call { turn, call }
            };
            Scope::Steps(which, paths)
        }
    })
}

/// A note for the model about files that were restored.
pub fn note_for_model(told: &str) -> Part {
    let about =
        "The user has taken back, or done again, some of what you did. Read these files before you rely on them.";
    Part::Text(wrap("edit_history", &format!("{about}\n{told}")))
}

/// Runs a command, and keeps what it changes.
pub async fn watched(run: tools::Run, arguments: Arguments, context: Context) -> Result<Outcome, Fault> {
    let (seen, workspace, call) = (
        Arc::clone(&context.seen),
        Arc::clone(&context.workspace),
        context.call.clone(),
    );
    if seen.checkpoints().is_none() || context.only_reads {
        return run(arguments, context).await;
    }
    // A look that breaks down costs the way back and not the command.
    let watch = ChangeWatch::begin(&seen, &workspace, &call).await;
    let outcome = run(arguments, context).await;
    tokio::task::spawn_blocking(move || drop(watch)).await.ok();
    outcome
}

/// Looks what something has changed when it is dropped: also when nobody waits for it any more.
pub struct ChangeWatch {
    seen: Arc<Seen>,
    workspace: Arc<Workspace>,
    call: String,
    has_ended: bool,
}

impl ChangeWatch {
    /// Looks at the workspace as it is. What changes from here on is the doing of `call`.
    pub async fn begin(seen: &Arc<Seen>, workspace: &Arc<Workspace>, call: &str) -> Option<Self> {
        let (before, place) = (Arc::clone(seen), Arc::clone(workspace));
        let look = move || {
            if let Some(it) = before.checkpoints() {
                it.before_command(&place);
            }
        };
        tokio::task::spawn_blocking(look).await.ok()?;
        Some(Self {
            seen: Arc::clone(seen),
            workspace: Arc::clone(workspace),
            call: call.to_owned(),
            has_ended: false,
        })
    }

    /// The files that were changed, from the root of the workspace.
    pub async fn end(mut self) -> Vec<String> {
        tokio::task::spawn_blocking(move || self.look())
            .await
            .unwrap_or_default()
    }

    fn look(&mut self) -> Vec<String> {
        if std::mem::replace(&mut self.has_ended, true) {
            return Vec::new();
        }
        let Some(checkpoints) = self.seen.checkpoints() else {
            return Vec::new();
        };
        let paths = checkpoints.after_command(&self.workspace, &self.call);
        let shown = |it: &PathBuf| {
            let inner = it.strip_prefix(self.workspace.root()).unwrap_or(it);
            inner.to_string_lossy().into_owned()
        };
        paths.iter().map(shown).collect()
    }
}

impl Drop for ChangeWatch {
    fn drop(&mut self) {
        self.look();
    }
}

/// Takes a place of a file back, or puts it in again, by its text.
fn place(
    seen: &Seen,
    workspace: &Workspace,
    transcript: &Transcript,
    turn: Turn,
    document: &DocumentId,
    again: bool,
) -> Result<Restored, String> {
    let response = response(transcript, turn).ok_or("no such turn")?;
    let at = response.position_of(document).ok_or("no such document")?;
    let reversal = if again {
        hunk::again(response, at)
    } else {
        hunk::rejected(response, at)
    };
    let reversal = reversal.ok_or("not a file change")?.map_err(|it| it.to_string())?;
    hunk::take_back(workspace, seen, &reversal).map_err(|it| it.to_string())?;
    let (word, verb) = words(again);
    let value = if again { Value::Null } else { true.into() };
    let mut event = update(document, value);
    if let (true, Event::DocumentUpdate { metadata, .. }) = (again, &mut event) {
        metadata.insert("applied".to_owned(), Applied::Applied.as_str().into());
    }
    Ok(Restored {
        events: vec![(turn, event)],
        said: format!("{verb} a change to {}", reversal.path),
        told: format!("{word}: one of your changes of {}\n", reversal.path),
        files: vec![reversal.path],
        unchanged: String::new(),
    })
}

/// The words for the model and for the user.
const fn words(is_again: bool) -> (&'static str, &'static str) {
    if is_again {
        ("done again", "redid")
    } else {
        ("taken back", "undid")
    }
}

fn steps(
    checkpoints: &Checkpoints,
    workspace: &Workspace,
    transcript: &Transcript,
    plan: Plan,
    over: bool,
    is_again: bool,
) -> Result<Restored, String> {
    if plan.files.is_empty() {
        let why = if plan.is_partial {
            "the files' earlier content is no longer stored: there was no room"
        } else if is_again {
            "nothing to redo"
        } else {
            "nothing to undo"
        };
        return Err(why.to_owned());
    }
    let folders = plan
        .files
        .iter()
        .filter(|it| {
            [&it.now, &it.to]
                .into_iter()
                .any(|it| matches!(it, PathState::Folder { .. }))
        })
        .map(|it| it.path.clone())
        .collect::<Vec<_>>();
    // What is as it should be does not change.
    let (still, turning): (Vec<_>, Vec<_>) = plan.files.iter().partition(|it| it.is_done());
    let still: Vec<_> = still.iter().map(|it| it.path.clone()).collect();
    let reasons: Vec<String> = plan.files.iter().filter_map(|it| reason(it, over)).collect();
    let lines: Vec<String> = turning
        .iter()
        .filter(|it| reason(it, over).is_none())
        .map(|it| line(it))
        .collect();
    if turning.is_empty() {
        let verb = if is_again { "redo" } else { "undo" };
        return Err(format!("nothing to {verb}: the files are as they should be"));
    }
    let done = checkpoints.carry_out(workspace, plan, over).map_err(|it| chain(&it))?;
    if done.files.is_empty() {
        return Err(reasons.join("; "));
    }
    let shown = |it: &Path| it.strip_prefix(workspace.root()).unwrap_or(it).display().to_string();
    let changed = done.files.iter().filter(|it| !still.contains(it));
    let (only_folders, files): (Vec<_>, Vec<_>) = changed.partition(|it| folders.contains(it));
    let mut files: Vec<String> = files.into_iter().map(|it| shown(it)).collect();
    if files.is_empty() {
        files = only_folders.into_iter().map(|it| format!("{}/", shown(it))).collect();
    }
    let unchanged = reasons.join("; ");
    let (_, verb) = words(is_again);
    let mut said = format!(
        "{verb} changes to {}",
        figure::count(files.len(), "file", "files").as_str()
    );
    if !unchanged.is_empty() {
        said.push_str(&format!("; unchanged: {unchanged}"));
    }
    let mut events = Vec::new();
    for (marked, is_off) in done
        .off
        .iter()
        .map(|it| (it, true))
        .chain(done.on.iter().map(|it| (it, false)))
    {
        events.extend(marks(workspace, transcript, marked, is_off));
    }
    let told: String = lines.iter().map(|it| format!("{it}\n")).collect();
    Ok(Restored {
        events,
        said,
        told,
        files,
        unchanged,
    })
}

/// An error with what is behind it.
fn chain(error: &dyn std::error::Error) -> String {
    match error.source() {
        Some(source) => format!("{error}: {source}"),
        None => error.to_string(),
    }
}

/// The documents of a call that say what was done to these files.
fn marks(workspace: &Workspace, transcript: &Transcript, marked: &Marked, is_off: bool) -> Vec<(Turn, Event)> {
    let turn = Turn(u32::try_from(marked.turn).unwrap_or(u32::MAX));
    let Some(response) = response(transcript, turn) else {
        return Vec::new();
    };
    let whole: Value = if is_off { true.into() } else { Value::Null };
    let mut events = Vec::new();
    let is_its = |it: &&Document| call_of(it) == Some(&marked.call) && hunk::is_made(it);
    for document in response.documents.iter().filter(is_its) {
        let paths = paths_of(document);
        let value = if paths.is_empty() {
            if marked.is_whole {
                whole.clone()
            } else {
                "partly".into()
            }
        } else {
            let is_its = |path: &std::path::PathBuf| {
                let shown = path.strip_prefix(workspace.root()).unwrap_or(path);
                paths.iter().any(|it| Path::new(it) == shown)
            };
            if !marked.paths.iter().any(is_its) {
                continue;
            }
            whole.clone()
        };
        events.push((turn, update(&document.id, value)));
    }
    events
}

fn update(document: &DocumentId, value: Value) -> Event {
    Event::DocumentUpdate {
        document: document.clone(),
        metadata: Map::from_iter([(UNDONE.to_owned(), value)]),
    }
}

fn response(transcript: &Transcript, turn: Turn) -> Option<&Response> {
    transcript.exchange_of(turn).map(|it| &it.response)
}

/// The call that made a document of a command or a change; `None` for other documents.
fn call_of(document: &Document) -> Option<&str> {
    match document.view() {
        View::FileEdit(it) => it.tool_call_id,
        View::TerminalCommand(it) => it.tool_call_id,
        _ => None,
    }
}

/// The files that a change is about; empty for a command, whatever it did.
fn paths_of(document: &Document) -> Vec<String> {
    let View::FileEdit(it) = document.view() else {
        return Vec::new();
    };
    let paths = [Some(it.file_path), it.new_file_path];
    paths.into_iter().flatten().map(str::to_owned).collect()
}

/// Why a file stays as it is.
fn reason(it: &Turning, over: bool) -> Option<String> {
    if it.is_done() {
        return None;
    }
    if it.is_lost {
        return Some(format!("{} was not stored", it.shown));
    }
    match it.clash {
        _ if over => None,
        None => None,
        Some(sandbox::Clash::Foreign) => Some(format!("{} was edited later", it.shown)),
        Some(sandbox::Clash::Turn(turn)) => Some(format!("{} was edited in turn {turn}", it.shown)),
    }
}

fn line(it: &Turning) -> String {
    let word = match operation(it) {
        Operation::Create => "is there again",
        Operation::Delete => "is gone again",
        _ => "is as it was before",
    };
    format!("{} {word}", it.shown)
}

fn operation(it: &Turning) -> Operation {
    match (&it.now, &it.to) {
        (PathState::Nothing, _) => Operation::Create,
        (_, PathState::Nothing) => Operation::Delete,
        _ => Operation::Edit,
    }
}

fn change(it: &Turning) -> FileChange {
    let text = |bytes: Option<&std::sync::Arc<[u8]>>| match bytes {
        None => Some(String::new()),
        Some(bytes) if bytes.len() > PATCH_BYTES => None,
        Some(bytes) => std::str::from_utf8(bytes).ok().map(str::to_owned),
    };
    let is_folder = [&it.now, &it.to]
        .into_iter()
        .any(|it| matches!(it, PathState::Folder { .. }));
    let mut change = FileChange {
        path: if is_folder {
            format!("{}/", it.shown)
        } else {
            it.shown.clone()
        },
        operation: operation(it),
        added: 0,
        removed: 0,
        patch: String::new(),
        conflict: it.clash.map(|it| match it {
            sandbox::Clash::Foreign => RestoreConflict::User,
            sandbox::Clash::Turn(turn) => RestoreConflict::Turn(Turn(u32::try_from(turn).unwrap_or(u32::MAX))),
        }),
        is_lost: it.is_lost,
    };
    if !it.is_lost
        && !is_folder
        && let (Some(now), Some(to)) = (text(it.now_bytes.as_ref()), text(it.to_bytes.as_ref()))
    {
        let found = diff(&now, &to, 1, 1, AROUND);
        (change.added, change.removed) = (found.added, found.removed);
        change.patch = found.patch(Some(&it.shown), Some(&it.shown));
    }
    change
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::{
        journal::Log,
        protocol::{DocumentStart, Done, Kind, Message, Position},
    };

    /// Whoever overwrites later edits has decided on those that the preview showed.
    #[test]
    fn what_changed_since_the_preview_is_not_overwritten() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().join("work");
        std::fs::create_dir(&root).unwrap();
        let (path, text) = (root.join("a.txt"), |path| std::fs::read_to_string(path).unwrap());
        std::fs::write(&path, "0").unwrap();
        let workspace = Workspace::open(&root).unwrap();
        let seen = Seen::keeping(Checkpoints::open(&folder.path().join("state"), "talk").unwrap());
        seen.begin(1);
        let file = workspace.locate("a.txt").unwrap();
        let change = sandbox::Change {
            old: workspace.read(&file, 100).ok().map(Arc::from),
            new: Some(Arc::from(&b"1"[..])),
            file,
            operation: Operation::Edit,
            to: None,
            hunks: Vec::new(),
            cell: None,
        };
        workspace.commit_for(&seen, "call", &[change]).unwrap();
        std::fs::write(&path, "mine").unwrap();
        let transcript = Transcript::default();
        let mut wish = Restore {
            target: RestoreTarget::Since(Turn(1)),
            except: Vec::new(),
            overwrite: true,
            seen: None,
        };
        let found = preview(&seen, &workspace, &transcript, &wish).unwrap();
        assert_eq!(found.files[0].conflict, Some(RestoreConflict::User));
        wish.seen = Some(found.states);
        std::fs::write(&path, "mine, and more").unwrap();
        let refused = restore(&seen, &workspace, &transcript, &wish).unwrap_err();
        assert_eq!(refused, "a.txt has changed since you looked: look again");
        assert_eq!(text(&path), "mine, and more");
        // Looked at again, it is what the user decides on.
        let found = preview(&seen, &workspace, &transcript, &wish).unwrap();
        wish.seen = Some(found.states);
        restore(&seen, &workspace, &transcript, &wish).unwrap();
        assert_eq!(text(&path), "0");
    }

    fn text(workspace: &Workspace, path: &str) -> String {
        std::fs::read_to_string(workspace.root().join(path)).unwrap_or_default()
    }

    /// A conversation in which a call has changed a file and another one has made a file, and the store of both.
    fn changed() -> (tempfile::TempDir, Workspace, Seen, Arc<Log>) {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().join("work");
        std::fs::create_dir(&root).unwrap();
        std::fs::write(root.join("a.txt"), "1\n").unwrap();
        let workspace = Workspace::open(&root).unwrap();
        let seen = Seen::keeping(Checkpoints::open(&folder.path().join("kept"), "c").unwrap());
        let log = Log::new();
        log.append(0, Event::UserMessage(Message::user("go")));
        seen.begin(1);
        for (id, path, old, new) in [("a", "a.txt", Some("1\n"), "2\n"), ("b", "b.txt", None, "new\n")] {
            let change = sandbox::Change {
                file: workspace.locate(path).unwrap(),
                operation: if old.is_some() {
                    Operation::Edit
                } else {
                    Operation::Create
                },
                to: None,
                old: old.map(|it| it.as_bytes().into()),
                new: Some(new.as_bytes().into()),
                hunks: Vec::new(),
                cell: None,
            };
            workspace.commit_for(&seen, id, &[change]).unwrap();
            let mut metadata =
                json!({ "filePath": path, "operation": "create", "toolCallId": id, "applied": "applied" });
            if let Some(old) = old {
                metadata["operation"] = "edit".into();
                metadata["diff"] = json!({ "oldString": old, "newString": new, "startLine": 1 });
            }
            let start = DocumentStart {
                id: id.into(),
                kind: Kind::FileEdit,
                sequence: None,
                content: Some(new.into()),
                metadata: Map::new(),
            };
            log.append(0, Event::DocumentStart(start));
            let end = Event::DocumentEnd {
                document: id.into(),
                final_content: None,
                metadata: metadata.as_object().cloned().unwrap_or_default(),
            };
            log.append(0, end);
        }
        log.append(0, Event::Done(Done::default()));
        (folder, workspace, seen, log)
    }

    #[test]
    fn a_rejected_change_is_done_again_and_undo_claims_nothing_that_did_not_happen() {
        for (id, path, was, made) in [("a", "a.txt", "1\n", "2\n"), ("b", "b.txt", "", "new\n")] {
            let (_folder, workspace, seen, log) = changed();
            let transcript = || Transcript::from_entries(&log.after(Position(0)));
            let at = usize::from(id == "b");
            let rejected = hunk::rejected(&transcript().exchanges[0].response, at)
                .unwrap()
                .unwrap();
            hunk::take_back(&workspace, &seen, &rejected).unwrap();
            let metadata = json!({ "applied": "rejected", UNDONE: true });
            let update = Event::DocumentUpdate {
                document: id.into(),
                metadata: metadata.as_object().cloned().unwrap_or_default(),
            };
            log.append_to(Turn(1), 0, update);
            assert_eq!(text(&workspace, path), was);
            let document = document(id, true);
            let again = restore(&seen, &workspace, &transcript(), &wish(document.clone())).unwrap();
            assert_eq!(text(&workspace, path), made);
            assert_eq!(again.files, [path]);
            for (turn, event) in again.events {
                log.append_to(turn, 0, event);
            }
            let shown = transcript();
            let found = &shown.exchanges[0].response.documents[at];
            assert!(hunk::is_made(found) && !found.is_undone(), "{:?}", found.metadata);
            let twice = restore(&seen, &workspace, &transcript(), &wish(document)).unwrap_err();
            assert_eq!(twice, "not undone yet");
            // Taken back again: only the other file changes.
            hunk::take_back(&workspace, &seen, &rejected).unwrap();
            let other = if at == 0 { "b.txt" } else { "a.txt" };
            let undone = restore(&seen, &workspace, &transcript(), &wish(RestoreTarget::Last)).unwrap();
            assert_eq!(undone.files, [other], "{}", undone.said);
            assert!(
                undone.said.contains("1 file") && !undone.told.contains(path),
                "{}",
                undone.said
            );
            let nothing = restore(&seen, &workspace, &transcript(), &wish(RestoreTarget::Last)).unwrap_err();
            assert!(nothing.contains("nothing to undo"), "{nothing}");
        }
    }

    fn wish(target: RestoreTarget) -> Restore {
        Restore {
            target,
            except: Vec::new(),
            overwrite: false,
            seen: None,
        }
    }

    #[test]
    fn a_preview_shows_the_lines_that_come_and_go() {
        let (_folder, workspace, seen, log) = changed();
        let transcript = Transcript::from_entries(&log.after(Position(0)));
        let found = preview(&seen, &workspace, &transcript, &wish(RestoreTarget::Turn(Turn(1)))).unwrap();
        let shown: Vec<_> = found
            .files
            .iter()
            .map(|it| {
                let lines = it.patch.lines().filter(|it| !it.starts_with(['@', ' ']));
                let lines: Vec<_> = lines
                    .filter(|it| !it.starts_with("---") && !it.starts_with("+++"))
                    .collect();
                (
                    it.path.as_str(),
                    it.operation.clone(),
                    it.added,
                    it.removed,
                    lines.join(" "),
                )
            })
            .collect();
        assert_eq!(
            shown,
            [
                ("a.txt", Operation::Edit, 1, 1, "-2 +1".to_owned()),
                ("b.txt", Operation::Delete, 0, 1, "-new".to_owned()),
            ]
        );
        // Nobody reads a patch of a whole large file.
        let large = "x\n".repeat(PATCH_BYTES);
        std::fs::write(workspace.root().join("b.txt"), large).unwrap();
        let found = preview(&seen, &workspace, &transcript, &wish(RestoreTarget::Turn(Turn(1)))).unwrap();
        assert_eq!(
            (found.files[1].path.as_str(), found.files[1].patch.as_str()),
            ("b.txt", "")
        );
    }

    #[test]
    fn an_undo_of_a_document_or_without_some_files_leaves_the_others() {
        for (target, except, files) in [
            (document("a", false), vec![], vec!["a.txt"]),
            (document("b", false), vec![], vec!["b.txt"]),
            (RestoreTarget::Turn(Turn(1)), vec!["./b.txt".to_owned()], vec!["a.txt"]),
            (
                RestoreTarget::Turn(Turn(1)),
                vec!["b".to_owned()],
                vec!["a.txt", "b.txt"],
            ),
        ] {
            let (_folder, workspace, seen, log) = changed();
            let transcript = Transcript::from_entries(&log.after(Position(0)));
            let wish = Restore {
                except: except.clone(),
                ..wish(target.clone())
            };
            let restored = restore(&seen, &workspace, &transcript, &wish).unwrap();
            assert_eq!(restored.files, files, "{target:?} {except:?}");
            for (path, was, made) in [("a.txt", "1\n", "2\n"), ("b.txt", "", "new\n")] {
                let expected = if files.contains(&path) { was } else { made };
                assert_eq!(text(&workspace, path), expected, "{target:?} {except:?}");
            }
        }
    }

    #[test]
    fn what_was_undone_and_redone_is_undone_with_its_turn() {
        let (_folder, workspace, seen, log) = changed();
        let restored = |target| {
            let transcript = Transcript::from_entries(&log.after(Position(0)));
            let restored = restore(&seen, &workspace, &transcript, &wish(target)).unwrap();
            for (turn, event) in restored.events {
                log.append_to(turn, 0, event);
            }
            (restored.said, restored.told)
        };
        let said = |said: &str, told: &str| (said.to_owned(), told.to_owned());
        assert_eq!(
            restored(document("a", false)),
            said("undid changes to 1 file", "a.txt is as it was before\n")
        );
        assert_eq!(
            restored(document("a", true)),
            said("redid changes to 1 file", "a.txt is as it was before\n")
        );
        assert_eq!(text(&workspace, "a.txt"), "2\n");
        assert_eq!(
            restored(RestoreTarget::Last),
            said(
                "undid changes to 2 files",
                "a.txt is as it was before\nb.txt is gone again\n"
            )
        );
        assert_eq!(text(&workspace, "a.txt"), "1\n");
        assert!(!workspace.root().join("b.txt").exists());
    }

    /// What others write while a call only reads is theirs.
    #[tokio::test]
    async fn a_call_that_may_change_files_is_watched_and_no_other() {
        for (only_reads, expected) in [(false, &["made.txt"][..]), (true, &[])] {
            let folder = tempfile::tempdir().unwrap();
            let root = folder.path().join("work");
            std::fs::create_dir(&root).unwrap();
            let workspace = Arc::new(Workspace::open(&root).unwrap());
            let checkpoints = Checkpoints::open(&folder.path().join("state"), "talk").unwrap();
            let seen = Arc::new(Seen::keeping(checkpoints));
            seen.begin(1);
            let context = Context {
                workspace: Arc::clone(&workspace),
                seen: Arc::clone(&seen),
                index: Arc::default(),
                embeddings: Arc::default(),
                findings: Arc::default(),
                servers: Arc::default(),
                skills: Arc::default(),
                settings: Arc::default(),
                apply: None,
                call: "call".to_owned(),
                only_reads,
                output: tokio::sync::mpsc::unbounded_channel().0,
                stop: tools::Stop::default(),
            };
            let run: tools::Run = Arc::new(move |_, _| {
                let path = root.join("made.txt");
                Box::pin(async move {
                    std::fs::write(path, "x").unwrap();
                    Ok(Outcome::default())
                })
            });
            watched(run, Arguments::default(), context).await.unwrap();
            let target = RestoreTarget::Turn(Turn(1));
            let found = preview(&seen, &workspace, &Transcript::default(), &wish(target)).unwrap();
            let paths: Vec<_> = found.files.iter().map(|it| it.path.as_str()).collect();
            assert_eq!(paths, expected, "only_reads: {only_reads}");
        }
    }

    fn document(id: &str, again: bool) -> RestoreTarget {
        let (turn, document) = (Turn(1), id.into());
        if again {
            RestoreTarget::RedoDocument { turn, document }
        } else {
            RestoreTarget::Document { turn, document }
        }
    }

    #[test]
    fn what_was_never_made_is_not_taken_back() {
        let folder = tempfile::tempdir().unwrap();
        let workspace = Workspace::open(folder.path()).unwrap();
        let log = Log::new();
        log.append(0, Event::UserMessage(Message::user("go")));
        for (id, applied) in [("a", "applied"), ("b", "rejected"), ("c", "failed"), ("d", "applied")] {
            let metadata = json!({ "filePath": "a.txt", "operation": "edit", "toolCallId": "call", "applied": applied,
                "diff": { "oldString": "1\n", "newString": "2\n", "startLine": 1 } });
            log.append(
                0,
                Event::DocumentStart(DocumentStart {
                    id: id.into(),
                    kind: Kind::FileEdit,
                    sequence: None,
                    content: None,
                    metadata: Map::new(),
                }),
            );
            log.append(
                0,
                Event::DocumentEnd {
                    document: id.into(),
                    final_content: None,
                    metadata: metadata.as_object().cloned().unwrap_or_default(),
                },
            );
        }
        log.append(0, Event::Done(Done::default()));
        let marked = Marked {
            turn: 1,
            call: "call".to_owned(),
            paths: vec![workspace.root().join("a.txt")],
            is_whole: true,
        };
        let transcript = Transcript::from_entries(&log.after(Position(0)));
        let marks = marks(&workspace, &transcript, &marked, true);
        let marked = [
            (Turn(1), update(&"a".into(), true.into())),
            (Turn(1), update(&"d".into(), true.into())),
        ];
        assert_eq!(marks, marked);
    }
}
