//! A commit of accepted changes, and of nothing else.
//!
//! The tree is built in an index of its own: the last commit with the accepted changes. The person's index gets the same
//! changes afterwards, so that what they have staged, and what they have not, stays as it was. A preview writes nothing.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    hash::{DefaultHasher, Hash as _, Hasher as _},
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use tokio::sync::{Notify, watch};

use super::{
    Error, Listed, Repository,
    accepted::Accepted,
    note, on_thread, stage,
    stage::{Blob, ChangeKind, Files, LeftOut, Made},
};
use crate::{
    os::{
        file::{self, Access},
        process::Output,
    },
    protocol::{CommitFile, CommitOutcome, CommitPreview, CommitRequest, Operation, sentence},
    text::{WordList, diff::diff, redact::redact},
    tools::edit::{hunks::counts, text::Text},
};

/// Hooks that a commit runs.
const HOOKS: [&str; 6] = [
    "pre-commit",
    "prepare-commit-msg",
    "commit-msg",
    "post-commit",
    "post-index-change",
    "reference-transaction",
];

/// Options of the commit. Nothing runs that the card does not name; and git cleans up later, because it would take the index
/// of this commit for the person's, and remove what only that one needs.
const OPTIONS: WordList = WordList("-c core.fsmonitor= -c maintenance.auto=false -c gc.auto=0");

/// Files of git that say what has begun and is not finished, and what that is called.
const UNFINISHED: [(&str, &str); 5] = [
    ("MERGE_HEAD", "merge"),
    ("CHERRY_PICK_HEAD", "cherry-pick"),
    ("REVERT_HEAD", "revert"),
    ("rebase-merge", "rebase"),
    ("rebase-apply", "rebase"),
];

/// Hooks may run tests.
const COMMIT_PATIENCE: Duration = Duration::from_mins(10);
/// Time between two looks at `HEAD` while git runs.
const LOOK: Duration = Duration::from_millis(100);
/// The largest index that is copied.
const INDEX_BYTES: u64 = 1 << 30;
/// Times that a locked index is tried, and the time between them.
const TRIES: u32 = 10;
const BETWEEN: Duration = Duration::from_millis(100);
/// Bytes of a diff that a model is given to describe.
const DIFF_BYTES: usize = 24 << 10;
/// Bytes of output that are shown.
const SHOWN_BYTES: usize = 16 << 10;

/// The files of a commit before and after the accepted changes.
struct Staged {
    before: Files,
    after: Files,
    /// For each accepted document: what it did, or why it is left out.
    documents: Vec<Result<Vec<Made>, String>>,
    /// Paths that the changes create.
    created: BTreeSet<String>,
    /// The paths that differ, for the card.
    files: Vec<CommitFile>,
    /// The name of this commit: another one has another name.
    state: String,
}

impl Staged {
    /// The paths that differ from the last commit.
    fn changed(&self) -> impl Iterator<Item = (&String, Option<&Blob>, Option<&Blob>)> {
        let all = self.after.iter().map(|(path, after)| {
            let before = self.before.get(path).and_then(Option::as_ref);
            (path, before, after.as_ref())
        });
        all.filter(|(_, before, after)| before != after)
    }

    fn name(&self, repository: &Repository) -> String {
        let mut hasher = DefaultHasher::new();
        (&repository.head, &repository.branch).hash(&mut hasher);
        for (path, _, after) in self.changed() {
            (path, after.map(|it| (&it.mode, &it.bytes))).hash(&mut hasher);
        }
        format!("{:016x}", hasher.finish())
    }
}

/// Returns all paths that the changes name.
fn paths(accepted: &Accepted) -> Vec<String> {
    let mut paths = BTreeSet::new();
    for change in &accepted.changes {
        paths.insert(change.path.clone());
        if let ChangeKind::Rename(to) = &change.kind {
            paths.insert(to.clone());
        }
    }
    paths.into_iter().collect()
}

/// Reads listed files; those of `paths` that are not listed are absent.
async fn read(repository: &Repository, paths: &[String], listed: &[Listed]) -> Result<Files, Error> {
    let mut files: Files = paths.iter().map(|it| (it.clone(), None)).collect();
    for it in listed.iter().filter(|it| paths.contains(&it.path)) {
        let blob = repository.blob(it).await?;
        // One that is too large is no text, which is what an edit will find.
        let blob = blob.unwrap_or_else(|| Blob {
            mode: it.mode.clone(),
            bytes: vec![0],
        });
        files.insert(it.path.clone(), Some(blob));
    }
    Ok(files)
}

/// Makes the accepted changes on the last commit, in memory.
async fn stage(repository: &Repository, accepted: &Arc<Accepted>) -> Result<Staged, Error> {
    let paths = paths(accepted);
    let above: BTreeSet<String> = paths.iter().flat_map(|it| folders(it)).collect();
    let named: Vec<String> = paths.iter().cloned().chain(above).collect();
    let listed = repository.in_commit(repository.head.as_deref(), &named).await?;
    let before = read(repository, &paths, &listed).await?;
    let mut blocked = filtered(repository, &paths).await?;
    for path in ignored(repository, &paths).await? {
        if before.get(&path).is_some_and(Option::is_none) {
            blocked.insert(path, "git ignores it".to_owned());
        }
    }
    for it in listed.iter().filter(|it| it.mode == "160000") {
        let inside = paths.iter().filter(|path| path.starts_with(&format!("{}/", it.path)));
        blocked.extend(inside.map(|path| (path.clone(), "in a submodule".to_owned())));
    }
    let (repository, accepted) = (repository.clone(), Arc::clone(accepted));
    on_thread(move || staged(&repository, &accepted, before, &blocked)).await
}

/// The accepted changes on these files of the last commit. `blocked` says why those of a path cannot be committed.
fn staged(repository: &Repository, accepted: &Accepted, before: Files, blocked: &BTreeMap<String, String>) -> Staged {
    // What cannot be committed is not made; all other changes are, so that each document has its own answer.
    let is_blocked = |it: &stage::AcceptedChange| {
        let to = match &it.kind {
            ChangeKind::Rename(to) => Some(to),
            ChangeKind::Create(_) | ChangeKind::Delete | ChangeKind::Replace(_) => None,
        };
        blocked.get(&it.path).or_else(|| blocked.get(to?))
    };
    let free: Vec<_> = accepted
        .changes
        .iter()
        .filter(|it| is_blocked(it).is_none())
        .cloned()
        .collect();
    let mut after = before.clone();
    let mut made = stage::apply(&mut after, &free).into_iter();
    let mut documents: Vec<Result<Vec<Made>, String>> = accepted
        .hunks
        .iter()
        .map(|it| it.why_not.clone().map_or_else(|| Ok(Vec::new()), Err))
        .collect();
    let mut created = BTreeSet::new();
    for (change, owner) in accepted.changes.iter().zip(&accepted.owners) {
        let result = match is_blocked(change) {
            Some(why) => Err(why.clone()),
            None => made.next().unwrap_or(Err(LeftOut::Lost)).map_err(|it| it.to_string()),
        };
        let Some(document) = documents.get_mut(*owner) else {
            continue;
        };
        match (result, &mut *document) {
            (Ok(it), Ok(all)) => {
                if matches!(change.kind, ChangeKind::Create(_)) && it.is_new {
                    created.insert(change.path.clone());
                }
                all.push(it);
            }
            (Err(why), it @ Ok(_)) => *it = Err(why),
            (_, Err(_)) => {}
        }
    }
    let mut staged = Staged {
        before,
        after,
        documents,
        created,
        files: Vec::new(),
        state: String::new(),
    };
    staged.files = staged
        .changed()
        .map(|(path, before, after)| file_of(path, before, after))
        .collect();
    staged.state = staged.name(repository);
    staged
}

/// The folders above a path.
fn folders(path: &str) -> impl Iterator<Item = String> {
    path.match_indices('/')
        .filter_map(|(at, _)| Some(path.get(..at)?.to_owned()))
}

/// Paths whose content a program or an encoding changes on its way into a commit.
async fn filtered(repository: &Repository, paths: &[String]) -> Result<BTreeMap<String, String>, Error> {
    let mut blocked = BTreeMap::new();
    if paths.is_empty() {
        return Ok(blocked);
    }
    let attributes = repository
        .quiet()
        .args(["check-attr", "-z", "filter", "working-tree-encoding", "--"]);
    let text = attributes.args(paths).output().await?;
    let text = String::from_utf8_lossy(&text);
    let mut words = text.split_terminator('\0');
    while let (Some(path), Some(name), Some(value)) = (words.next(), words.next(), words.next()) {
        if !matches!(value, "unspecified" | "unset") {
            blocked.insert(
                path.to_owned(),
                format!("it has the attribute {name}={value}: commit it with git"),
            );
        }
    }
    Ok(blocked)
}

/// Paths that git ignores and does not track.
async fn ignored(repository: &Repository, paths: &[String]) -> Result<Vec<String>, Error> {
    if paths.is_empty() {
        return Ok(Vec::new());
    }
    // `./` keeps a leading `:` from being pathspec magic.
    let names: String = paths.iter().map(|it| format!("./{it}\0")).collect();
    let check = repository
        .quiet()
        .args(["--no-literal-pathspecs", "check-ignore", "-z", "--stdin"]);
    let Output { stdout, .. } = check.input(names).run().await?;
    let text = String::from_utf8_lossy(&stdout);
    let names = text.split_terminator('\0').filter_map(|it| it.strip_prefix("./"));
    Ok(names.map(str::to_owned).collect())
}

/// The name of a merge or the like that is not finished; also `conflict`.
async fn unfinished(repository: &Repository) -> Result<Option<&'static str>, Error> {
    let files: Vec<&str> = UNFINISHED.iter().map(|it| it.0).collect();
    let paths = repository.paths(&files).await?;
    let begun = UNFINISHED.iter().zip(paths).find(|(_, path)| path.exists());
    if let Some(((_, name), _)) = begun {
        return Ok(Some(name));
    }
    let conflicts = repository
        .quiet()
        .args(["ls-files", "--unmerged", "-z"])
        .output()
        .await?;
    Ok((!conflicts.is_empty()).then_some("conflict"))
}

/// The hooks that a commit would run, and the filters that the repository configures: `pre-commit`, `filter tidy`.
async fn hooks(repository: &Repository) -> Result<Vec<String>, Error> {
    let folder = repository.paths(&["hooks"]).await?;
    let folder = folder.first().cloned().unwrap_or_default();
    let runs = |name: &&&str| {
        let about = std::fs::metadata(folder.join(name));
        about.is_ok_and(|it| it.is_file() && it.permissions().mode() & 0o111 != 0)
    };
    let hooks = HOOKS.iter().filter(runs).map(|it| (*it).to_owned());
    let filters = super::configured_filters(&repository.top).await.unwrap_or_default();
    // Git cleans files that look changed, to know whether they are.
    let filters: BTreeSet<String> = filters
        .iter()
        .filter_map(|it| it.strip_suffix(".clean").or_else(|| it.strip_suffix(".process")))
        .map(|it| it.replacen('.', " ", 1))
        .collect();
    Ok(hooks.chain(filters).collect())
}

/// The person as git names the author: `Name <address>`. `None`: git does not know.
async fn author(repository: &Repository) -> Result<Option<String>, Error> {
    let committer = super::line(repository.quiet().args(["var", "GIT_COMMITTER_IDENT"])).await?;
    let author = super::line(repository.quiet().args(["var", "GIT_AUTHOR_IDENT"])).await?;
    // The time comes last.
    let author = author.and_then(|it| Some(it.get(..=it.rfind('>')?)?.to_owned()));
    Ok(author.filter(|_| committer.is_some()))
}

/// Describes the commit of the accepted changes, and what stands against it. Writes nothing.
pub async fn preview(repository: &Repository, accepted: &Arc<Accepted>, note: &str) -> Result<CommitPreview, Error> {
    let staged = stage(repository, accepted).await?;
    describe(repository, accepted, &staged, note).await
}

async fn describe(
    repository: &Repository,
    accepted: &Accepted,
    staged: &Staged,
    note: &str,
) -> Result<CommitPreview, Error> {
    let files = staged.files.clone();
    let signs = super::line(
        repository
            .quiet()
            .args(["config", "--type=bool", "--get", "commit.gpgsign"]),
    )
    .await?;
    let author = author(repository).await?;
    let unfinished = unfinished(repository).await?;
    let is_new = |it: &&Result<Vec<Made>, String>| matches!(it, Ok(made) if made.iter().any(|it| it.is_new));
    let hunks = staged.documents.iter().filter(is_new).count();
    let left_out: Vec<String> = accepted
        .hunks
        .iter()
        .zip(&staged.documents)
        .filter_map(|(hunk, result)| {
            let why = result.as_ref().err()?;
            Some(format!("{} {}: {why}", hunk.address, hunk.path))
        })
        .collect();
    let problem = match (unfinished, &author) {
        (Some("conflict"), _) => sentence::CONFLICTS.text().to_owned(),
        (Some(name), _) => sentence::UNFINISHED.with(name),
        (None, None) => sentence::NO_NAME.text().to_owned(),
        (None, Some(_)) if files.is_empty() && !left_out.is_empty() => sentence::NONE_FITS.text().to_owned(),
        (None, Some(_)) if files.is_empty() => sentence::COMMITTED_ALREADY.text().to_owned(),
        (None, Some(_)) => String::new(),
    };
    Ok(CommitPreview {
        branch: repository.branch.clone(),
        author: author.unwrap_or_default(),
        message: plain_message(&files),
        hunks,
        files,
        left_out,
        hooks: hooks(repository).await?,
        is_signed: signs.as_deref() == Some("true"),
        note: note.to_owned(),
        problem,
        state: staged.state.clone(),
    })
}

/// The text of a file; empty without one, and for one that is no text.
fn text(blob: Option<&Blob>) -> String {
    let text = blob.and_then(|it| Text::read(&it.bytes).ok());
    text.map(|it| it.text).unwrap_or_default()
}

fn file_of(path: &str, before: Option<&Blob>, after: Option<&Blob>) -> CommitFile {
    let (added, removed) = counts(&text(before), &text(after));
    CommitFile {
        path: path.to_owned(),
        operation: match (before, after) {
            (None, _) => Operation::Create,
            (Some(_), None) => Operation::Delete,
            (Some(_), Some(_)) => Operation::Edit,
        },
        added,
        removed,
    }
}

/// A message without a model: `Update src/cart.rs`, `Update cart.rs and 3 more files`.
fn plain_message(files: &[CommitFile]) -> String {
    let verb = match files.first().map(|it| &it.operation) {
        Some(first) if files.iter().all(|it| it.operation == *first) => match first {
            Operation::Create => "Add",
            Operation::Delete => "Delete",
            Operation::Edit | Operation::Rename | Operation::Other(_) => "Update",
        },
        Some(_) | None => "Update",
    };
    let name = |path: &str| path.rsplit('/').next().unwrap_or(path).to_owned();
    match files {
        [] => String::new(),
        [one] => format!("{verb} {}", one.path),
        [one, other] => format!("{verb} {} and {}", name(&one.path), name(&other.path)),
        [one, rest @ ..] => format!("{verb} {} and {} more files", name(&one.path), rest.len()),
    }
}

/// The accepted changes as a patch for a model to describe, with the subjects of earlier commits: no more than 24 KiB.
pub async fn patch(repository: &Repository, accepted: &Arc<Accepted>) -> Result<(String, String), Error> {
    let staged = stage(repository, accepted).await?;
    let patch = on_thread(move || patch_of(&staged)).await?;
    let subjects = match &repository.head {
        Some(head) => {
            repository
                .quiet()
                .args(["log", "--max-count=10", "--format=%s", head])
                .output()
                .await?
        }
        None => Vec::new(),
    };
    let subjects = String::from_utf8_lossy(&subjects);
    Ok((patch, redact(&subjects).into_owned()))
}

fn patch_of(staged: &Staged) -> String {
    let mut patch = String::new();
    for (path, before, after) in staged.changed() {
        let found = diff(&text(before), &text(after), 1, 1, 3);
        patch.push_str(&found.patch(before.map(|_| path.as_str()), after.map(|_| path.as_str())));
    }
    let end = patch.floor_char_boundary(DIFF_BYTES);
    if end < patch.len() {
        patch.truncate(end);
        patch.push_str("\n[the rest is left out]\n");
    }
    redact(&patch).into_owned()
}

/// The repositories in which a commit runs: hooks may take minutes, and the card can be closed and opened meanwhile.
static RUNNING: Mutex<BTreeMap<PathBuf, Handle>> = Mutex::new(BTreeMap::new());

/// A commit that runs, from outside.
#[derive(Clone)]
struct Handle {
    stop: Arc<Notify>,
    /// Closed when the commit is over.
    over: watch::Receiver<()>,
}

/// The only commit that runs in a repository, until this is dropped.
struct Running {
    folder: PathBuf,
    stop: Arc<Notify>,
    _over: watch::Sender<()>,
}

impl Running {
    fn begin(repository: &Repository) -> Result<Self, Error> {
        let mut running = RUNNING.lock().unwrap_or_else(PoisonError::into_inner);
        if running.contains_key(&repository.folder) {
            return Err(Error::Failed(
                "a commit is running: wait until its hooks have ended".to_owned(),
            ));
        }
        let stop = Arc::new(Notify::new());
        let (sender, over) = watch::channel(());
        let handle = Handle {
            stop: Arc::clone(&stop),
            over,
        };
        running.insert(repository.folder.clone(), handle);
        Ok(Self {
            folder: repository.folder.clone(),
            stop,
            _over: sender,
        })
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        RUNNING
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .remove(&self.folder);
    }
}

/// Stops the hooks of the commits that run, and waits until what is committed is in the person's index: called before the
/// program ends.
pub async fn settle() {
    stop(|_| true).await;
}

pub(super) async fn stop(of: impl Fn(&Path) -> bool) {
    let running: Vec<Handle> = {
        let running = RUNNING.lock().unwrap_or_else(PoisonError::into_inner);
        let wanted = running.iter().filter(|it| of(it.0));
        wanted.map(|it| it.1.clone()).collect()
    };
    for mut it in running {
        it.stop.notify_one();
        // It never changes; an error is the end.
        it.over.changed().await.ok();
    }
}

/// A file that is removed when this is dropped.
struct Scratch(PathBuf);

impl Drop for Scratch {
    fn drop(&mut self) {
        for path in [self.0.clone(), self.0.with_extension("lock")] {
            std::fs::remove_file(path).ok();
        }
    }
}

/// Commits the accepted changes. This runs the hooks, the filters and the signing of the person's own git.
///
/// A commit is made when `HEAD` has moved, however git ends: a hook that runs after it may fail, take too long or be stopped.
/// `made` is told at that moment, and again if a hook replaces the commit.
pub async fn commit(
    repository: &Repository,
    accepted: &Arc<Accepted>,
    request: &CommitRequest,
    note: &str,
    mut made: impl FnMut(&CommitOutcome),
) -> Result<CommitOutcome, Error> {
    let running = Running::begin(repository)?;
    let staged = stage(repository, accepted).await?;
    let preview = describe(repository, accepted, &staged, note).await?;
    if !preview.problem.is_empty() {
        return Err(Error::Failed(preview.problem));
    }
    let changed = || Error::Failed(sentence::CHANGED_MEANWHILE.text().to_owned());
    if preview.state != request.state {
        return Err(changed());
    }
    let index = scratch_index(repository).await?;
    write(
        repository,
        Some(&index.0),
        &staged.before,
        &staged.after,
        &staged.created,
    )
    .await?;
    // On another commit these files would undo what it did.
    if repository.head_now().await? != repository.head {
        return Err(changed());
    }
    let git = repository
        .plain()
        .args(OPTIONS.iter())
        .args(["commit", "--quiet", "--file=-"])
        .variable("GIT_INDEX_FILE", &index.0)
        // A passphrase is asked in a window or not at all: the terminal is the screen's.
        .variable("SSH_ASKPASS_REQUIRE", "force")
        .variable("GPG_TTY", "")
        .variable("GIT_TERMINAL_PROMPT", "0")
        .without_terminal()
        .input(request.message.as_bytes())
        .timeout(COMMIT_PATIENCE)
        .run_until(running.stop.notified());
    tokio::pin!(git);
    let mut landing = Landing {
        repository,
        accepted,
        staged: &staged,
        note,
        commit: None,
        problems: String::new(),
    };
    let ended = loop {
        tokio::select! {
            ended = &mut git => break ended,
            () = tokio::time::sleep(LOOK), if landing.commit.is_none() => {
                if let Some(new) = landing.found(&index).await {
                    landing.land(new).await;
                    made(&landing.outcome());
                }
            }
        }
    };
    let last = match &ended {
        Ok(it) if it.status.success() => repository.head_now().await?,
        Ok(_) | Err(_) => landing.found(&index).await,
    };
    if let Some(new) = last.filter(|it| Some(it) != landing.commit.as_ref().or(repository.head.as_ref())) {
        landing.land(new).await;
        made(&landing.outcome());
    }
    let mut outcome = landing.outcome();
    let output = match ended {
        Ok(it) => shown(&it),
        Err(error) if outcome.commit.is_none() => return Err(error.into()),
        Err(error) => error.to_string(),
    };
    let whole = format!("{output}{}", outcome.output);
    whole.trim().clone_into(&mut outcome.output);
    Ok(outcome)
}

/// The consequences of a commit: the person's index, and the note.
struct Landing<'a> {
    repository: &'a Repository,
    accepted: &'a Arc<Accepted>,
    staged: &'a Staged,
    note: &'a str,
    /// The commit that the index follows; `None`: there is none yet.
    commit: Option<String>,
    /// Failures on the way, a line each.
    problems: String,
}

impl Landing<'_> {
    /// The last commit, if it is the one that is being made: git may still run its hooks, and somebody else may commit.
    async fn found(&self, index: &Scratch) -> Option<String> {
        let quiet = || self.repository.quiet();
        let asked = quiet().args(["rev-parse", "--verify", "HEAD^{commit}"]).output();
        let head = String::from_utf8(asked.await.ok()?).ok()?.trim().to_owned();
        if Some(&head) == self.repository.head.as_ref() {
            return None;
        }
        let about = quiet().args(["rev-parse", &format!("{head}^{{tree}}"), &format!("{head}^@")]);
        let about = String::from_utf8(about.output().await.ok()?).ok()?;
        let mut about = about.lines();
        let tree = quiet().arg("write-tree").variable("GIT_INDEX_FILE", &index.0);
        let tree = String::from_utf8(tree.output().await.ok()?).ok()?;
        let is_ours = about.next() == Some(tree.trim()) && about.eq(self.repository.head.as_deref());
        is_ours.then_some(head)
    }

    /// Brings a new commit into the person's index and writes its note.
    async fn land(&mut self, new: String) {
        let old = self.commit.as_ref().or(self.repository.head.as_ref());
        if let Err(error) = follow(self.repository, self.accepted, self.staged, old, &new).await {
            let problem = format!("\nthe index was not updated: {error}; git reset does that");
            self.problems.push_str(&problem);
        }
        let (hunks, documents) = (&self.accepted.hunks, &self.staged.documents);
        let made = documents.iter().map(|it| it.as_ref().ok().map(Vec::as_slice));
        if let Some(text) = note::text(hunks, made, self.note)
            && let Err(error) = note::write(self.repository, &new, &text).await
        {
            self.problems.push_str(&format!("\nno note was written: {error}"));
        }
        self.commit = Some(new);
    }

    fn outcome(&self) -> CommitOutcome {
        let documents = self.accepted.hunks.iter().zip(&self.staged.documents);
        let documents = documents.filter(|it| it.1.is_ok() && self.commit.is_some());
        CommitOutcome {
            commit: self.commit.clone(),
            documents: documents.map(|(it, _)| (it.turn, it.document.clone())).collect(),
            output: self.problems.clone(),
        }
    }
}

/// An index of the last commit. It begins as a copy of the person's, so that git need not read all files again.
async fn scratch_index(repository: &Repository) -> Result<Scratch, Error> {
    let index = Scratch(repository.folder.join(format!("sheaf-index-{}", std::process::id())));
    let own = repository.paths(&["index"]).await?;
    let to = index.0.clone();
    let copy = move || match own.first().and_then(|it| file::read(it, INDEX_BYTES).ok()) {
        Some(bytes) => file::write(&to, &bytes, Access::Private),
        None => Ok(()),
    };
    let copied = on_thread(copy).await?;
    copied.map_err(|it| Error::Failed(it.to_string()))?;
    let tree = |arguments: &[&str]| {
        repository
            .quiet()
            .arg("read-tree")
            .args(arguments.iter().copied())
            .variable("GIT_INDEX_FILE", &index.0)
    };
    match repository.head.as_deref() {
        None => tree(&["--empty"]).output().await?,
        Some(head) => match tree(&["-m", head]).output().await {
            Ok(it) => it,
            Err(_) => tree(&["--reset", head]).output().await?,
        },
    };
    Ok(index)
}

/// Puts the files that differ into an index; `None`: the person's own.
async fn write(
    repository: &Repository,
    index: Option<&Path>,
    before: &Files,
    after: &Files,
    created: &BTreeSet<String>,
) -> Result<(), Error> {
    let mut lines = Vec::new();
    for (path, blob) in after.iter().filter(|(path, blob)| before.get(*path) != Some(blob)) {
        match blob {
            // First, so that a folder can take the place of a file.
            None => lines.insert(0, removal(repository, path)),
            Some(blob) => {
                let mut hash = repository.quiet().args(["hash-object", "-w", "--stdin"]);
                if created.contains(path) {
                    // With the line ends that git's attributes want.
                    hash = hash.arg(format!("--path={path}"));
                }
                let object = hash.input(blob.bytes.clone()).output().await?;
                let object = String::from_utf8_lossy(&object).trim().to_owned();
                lines.push(format!("{} {object}\t{path}\0", blob.mode));
            }
        }
    }
    update(repository, index, &lines.concat()).await
}

fn removal(repository: &Repository, path: &str) -> String {
    let length = repository.head.as_ref().map_or(40, String::len);
    format!("0 {}\t{path}\0", "0".repeat(length))
}

/// Changes entries of an index. Somebody else may have it locked for a moment.
async fn update(repository: &Repository, index: Option<&Path>, lines: &str) -> Result<(), Error> {
    if lines.is_empty() {
        return Ok(());
    }
    let mut tries = 0;
    loop {
        let mut command = repository
            .quiet()
            .args(["update-index", "-z", "--index-info"])
            .input(lines);
        if let Some(index) = index {
            command = command.variable("GIT_INDEX_FILE", index);
        }
        let Output { status, stderr, .. } = command.run().await?;
        if status.success() {
            return Ok(());
        }
        tries += 1;
        let said = String::from_utf8_lossy(&stderr).trim().to_owned();
        if tries == TRIES || !said.contains(".lock") {
            return Err(Error::Failed(said));
        }
        tokio::time::sleep(BETWEEN).await;
    }
}

/// Brings what changed from the commit `old` to `new` into the person's index. A file of which they had staged nothing becomes what is committed;
/// in any other the accepted changes are made, and where that is not possible it stays as they staged it.
async fn follow(
    repository: &Repository,
    accepted: &Arc<Accepted>,
    staged: &Staged,
    old: Option<&String>,
    new: &str,
) -> Result<(), Error> {
    let mut arguments = vec!["diff-tree", "-r", "-z", "--no-renames", "--no-commit-id", "--root"];
    arguments.extend(old.map(String::as_str));
    arguments.push(new);
    let text = repository.quiet().args(arguments).output().await?;
    let text = String::from_utf8_lossy(&text);
    let mut fields = text.split_terminator('\0');
    // Old and new mode, old and new object, and a letter; then the path.
    let mut moved: HashMap<String, [(String, String); 2]> = HashMap::new();
    while let (Some(facts), Some(path)) = (fields.next(), fields.next()) {
        let mut facts = facts.trim_start_matches(':').split(' ').map(str::to_owned);
        let mut next = || facts.next().unwrap_or_default();
        let (old_mode, new_mode, old, new) = (next(), next(), next(), next());
        moved.insert(path.to_owned(), [(old_mode, old), (new_mode, new)]);
    }
    let names: Vec<String> = moved.keys().cloned().collect();
    let listed = repository.in_index(&names).await?;
    let mut lines = Vec::new();
    let mut theirs = Vec::new();
    for (path, [old, new]) in &moved {
        let entry = listed.iter().find(|it| it.path == *path);
        let is_old = match entry {
            Some(it) => it.mode == old.0 && it.object == old.1,
            None => old.0 == "000000",
        };
        match (is_old, new.0.as_str()) {
            (false, _) => theirs.push(path.clone()),
            (true, "000000") => lines.insert(0, removal(repository, path)),
            (true, mode) => lines.push(format!("{mode} {}\t{path}\0", new.1)),
        }
    }
    update(repository, None, &lines.concat()).await?;
    // They have staged something else there.
    let before = read(repository, &theirs, &listed).await?;
    let (before, after) = {
        let accepted = Arc::clone(accepted);
        on_thread(move || {
            let after = on_index(&before, &theirs, &accepted);
            (before, after)
        })
        .await?
    };
    write(repository, None, &before, &after, &staged.created).await
}

/// Makes the accepted changes on files of the index, each wholly or not at all.
fn on_index(before: &Files, theirs: &[String], accepted: &Accepted) -> Files {
    let mut after = before.clone();
    for path in theirs {
        let is_of_path =
            |it: &&stage::AcceptedChange| it.path == *path || matches!(&it.kind, ChangeKind::Rename(to) if to == path);
        let changes: Vec<_> = accepted.changes.iter().filter(is_of_path).cloned().collect();
        let mut files = after.clone();
        if stage::apply(&mut files, &changes).iter().all(Result::is_ok) {
            after = files;
        }
    }
    after.retain(|path, _| before.contains_key(path));
    after
}

/// What git and its hooks printed, without colours, the end of it.
fn shown(output: &Output) -> String {
    let text = [&output.stdout[..], &output.stderr[..]].concat();
    let text = String::from_utf8_lossy(&text);
    let start = text.ceil_char_boundary(text.len().saturating_sub(SHOWN_BYTES));
    redact(text.get(start..).unwrap_or_default().trim()).into_owned()
}
