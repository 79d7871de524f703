//! The desk of a workspace's servers, on their thread: it takes jobs, and carries out each beside the others.

mod preview;

use std::{
    cell::RefCell,
    collections::{BTreeMap, BTreeSet},
    path::{Path, PathBuf},
    rc::Rc,
    sync::Arc,
    time::Duration,
};

use futures::{
    StreamExt as _,
    future::{LocalBoxFuture, join_all},
    stream::FuturesUnordered,
};
use tokio::{sync::mpsc, time::Instant};

use super::{
    Answer, Comparison, Diagnostic, Edit, Job, Look, OnDisk, Question, Severity, Spot, Unchecked, added,
    catalogue::Found,
    may_run, on_disk, position,
    server::{LookTime, Missing, Reports, Server},
    slot::{ServerKey, Slots, key},
    text_of,
    tree::{DiskChange, Tree},
    with_catalogue,
};
use crate::{config::Settings, sandbox::Workspace};

/// A server that was started so long ago and has not answered is not waited for when a change is looked at, nor is one that has
/// been reading the project for so long.
const START_PATIENCE: Duration = Duration::from_secs(3);
const READ_PATIENCE: Duration = Duration::from_millis(1500);
/// Time that a server has to read what the first open file needs.
const WARM_LIMIT: Duration = Duration::from_mins(1);
/// Files in which a symbol is renamed at once.
const MOST_RENAMED: usize = 100;
/// Changed files that are kept until a server looks at them, and files that may depend on them; a step names those that were too
/// many.
const MOST_UNSEEN: usize = 128;
const MOST_OTHERS: usize = 64;
/// Looks at a file that come to nothing, after which it is given up.
const MOST_MISSES: u32 = 3;
/// Files that a look is about.
const MOST_LOOKED_AT: usize = 40;

/// Takes jobs until all who could send one have gone; then the servers end.
pub async fn attend(workspace: Arc<Workspace>, settings: Arc<Settings>, mut jobs: mpsc::UnboundedReceiver<Job>) {
    let desk = Rc::new(Desk {
        workspace,
        settings,
        state: RefCell::default(),
        telling: tokio::sync::Mutex::default(),
    });
    let mut work: FuturesUnordered<LocalBoxFuture<'_, ()>> = FuturesUnordered::new();
    loop {
        let idle = desk.state.borrow().slots.idle_at();
        tokio::select! {
            job = jobs.recv() => match job {
                Some(job) => work.extend(Rc::clone(&desk).begin(job)),
                None => break,
            },
            Some(()) = work.next(), if !work.is_empty() => {}
            () = tokio::time::sleep_until(idle.unwrap_or_else(Instant::now)), if idle.is_some() => {
                desk.state.borrow_mut().slots.end_idle();
            }
        }
    }
    let end = desk.state.borrow_mut().slots.end_all();
    end.await;
}

struct Desk {
    workspace: Arc<Workspace>,
    settings: Arc<Settings>,
    /// Never borrowed while something is waited for.
    state: RefCell<State>,
    /// Held while the disk is compared with what servers were told of it.
    telling: tokio::sync::Mutex<()>,
}

#[derive(Default)]
struct State {
    slots: Slots,
    /// Changes that a server has not looked at, by conversation and server.
    unseen: BTreeMap<(u64, ServerKey), Unseen>,
    /// The files on the disk, as they were when servers were last told.
    tree: Option<Tree>,
}

/// Changes of a conversation that a server has not looked at.
struct Unseen {
    found: Found,
    files: BTreeMap<PathBuf, Changed>,
    /// Files that may depend on these, or were changed while an earlier message was answered.
    others: BTreeMap<PathBuf, Misses>,
    /// Files that nobody looks at, because there are too many.
    left_out: BTreeSet<PathBuf>,
    /// The problems of both before the first of the changes. `None`: they are not known.
    before: BTreeMap<PathBuf, Option<Vec<Diagnostic>>>,
    /// The server may know of these changes: what it says of further files is not what was wrong before.
    is_told: bool,
}

/// A file that was changed and not looked at.
struct Changed {
    /// It did not exist before.
    is_new: bool,
    /// It was moved here from there.
    from: Option<PathBuf>,
    misses: Misses,
}

/// Looks at a file that came to nothing.
#[derive(Clone, Copy, Debug, Default)]
struct Misses {
    /// Number of those after which the file is given up some time.
    count: u32,
    /// The step that has changed the file, or something that it depends on, was told.
    is_told: bool,
}

/// Files that a server is to look at before they change, or something that they depend on does.
struct Fresh {
    found: Found,
    /// Those that are to be changed, and are there.
    files: BTreeSet<PathBuf>,
    others: BTreeSet<PathBuf>,
    moved: Vec<(PathBuf, PathBuf)>,
    /// Files that have changed earlier: the server is not told of it yet.
    held: BTreeSet<PathBuf>,
}

/// What a server has said of files before they change, and files that will be moved: from, to.
struct LookedAt {
    key: ServerKey,
    reports: Reports,
    moved: Vec<(PathBuf, PathBuf)>,
}

impl Desk {
    /// Does at once what must not wait, and returns the rest.
    fn begin(self: Rc<Self>, job: Job) -> Option<LocalBoxFuture<'static, ()>> {
        match job {
            Job::Before {
                by,
                edits,
                others,
                is_first,
                until,
                reply,
            } => {
                // Whatever becomes of the look, it is about these from now on.
                let fresh = self.note(by, &edits, &others);
                Some(Box::pin(async move {
                    let found = self.before(by, fresh, is_first, until).await;
                    // Who does not wait any more may have written by now.
                    if reply.send(()).is_ok() {
                        self.keep(by, found);
                    }
                }))
            }
            Job::After {
                by,
                edits,
                others,
                until,
                reply,
            } => {
                self.note(by, &edits, &others);
                Some(Box::pin(async move {
                    reply.send(self.after(by, until).await).ok();
                }))
            }
            Job::Preview {
                by,
                proposed,
                others,
                until,
                reply,
            } => Some(Box::pin(async move {
                reply.send(self.preview(by, proposed, others, until).await).ok();
            })),
            Job::Look { files, until, reply } => Some(Box::pin(async move {
                reply.send(self.look(files, until).await).ok();
            })),
            Job::Ask {
                file,
                spot,
                question,
                until,
                reply,
            } => Some(Box::pin(async move {
                reply.send(self.ask(&file, spot, &question, until).await).ok();
            })),
            Job::Start(file) => Some(Box::pin(async move { self.open(&file).await })),
            Job::Begin(by) => {
                let mut state = self.state.borrow_mut();
                let own = state.unseen.iter_mut().filter(|it| it.0.0 == by);
                own.for_each(|it| it.1.grow_old());
                None
            }
            Job::Forget(by) => {
                self.state.borrow_mut().unseen.retain(|it, _| it.0 != by);
                None
            }
            Job::End => {
                let mut state = self.state.borrow_mut();
                state.unseen.clear();
                Some(Box::pin(state.slots.end_all()))
            }
        }
    }

    /// The servers of a file. Reads names of files and manifests.
    fn servers_of(&self, file: &Path) -> Vec<Found> {
        with_catalogue(&self.workspace, &self.settings, |it| it.servers(file))
    }

    /// Takes note of changes, each file once. Returns what is new, by server.
    fn note(&self, by: u64, edits: &[Edit], others: &[PathBuf]) -> Vec<Fresh> {
        let mut state = self.state.borrow_mut();
        let mut fresh: BTreeMap<ServerKey, Fresh> = BTreeMap::new();
        for edit in edits {
            for found in self.servers_of(&edit.file) {
                let unseen = state
                    .unseen
                    .entry((by, key(&found)))
                    .or_insert_with(|| Unseen::of(&found));
                let fresh = fresh.entry(key(&found)).or_insert_with(|| Fresh {
                    held: unseen.files.keys().cloned().collect(),
                    ..Fresh::of(found)
                });
                if let Some(changed) = unseen.files.get_mut(&edit.file) {
                    changed.misses.is_told = false;
                    if edit.from.is_some() && edit.from != changed.from {
                        // What was wrong here was wrong with another file.
                        changed.from.clone_from(&edit.from);
                        unseen.before.insert(edit.file.clone(), None);
                    }
                } else if unseen.files.len() < MOST_UNSEEN {
                    unseen.others.remove(&edit.file);
                    let changed = Changed {
                        is_new: edit.is_new && edit.from.is_none(),
                        from: edit.from.clone(),
                        misses: Misses::default(),
                    };
                    unseen.files.insert(edit.file.clone(), changed);
                } else {
                    unseen.left_out.insert(edit.file.clone());
                    continue;
                }
                fresh
                    .moved
                    .extend(edit.from.clone().map(|from| (from, edit.file.clone())));
                // It may be known as one that depends on an earlier change.
                if !unseen.before.contains_key(&edit.file) {
                    unseen.before.insert(edit.file.clone(), None);
                    if !edit.is_new && !unseen.is_told {
                        fresh.files.insert(edit.file.clone());
                    }
                }
            }
        }
        for other in others {
            for found in self.servers_of(other) {
                let Some(fresh) = fresh.get_mut(&key(&found)) else {
                    continue;
                };
                let Some(unseen) = state.unseen.get_mut(&(by, key(&found))) else {
                    continue;
                };
                if unseen.files.contains_key(other) {
                    continue;
                }
                if unseen.others.len() >= MOST_OTHERS && !unseen.others.contains_key(other) {
                    unseen.left_out.insert(other.clone());
                    continue;
                }
                unseen.others.entry(other.clone()).or_default().is_told = false;
                if !unseen.before.contains_key(other) {
                    unseen.before.insert(other.clone(), None);
                    if !unseen.is_told {
                        fresh.others.insert(other.clone());
                    }
                }
            }
        }
        fresh.into_values().collect()
    }

    /// Looks at files before they change.
    async fn before(&self, by: u64, fresh: Vec<Fresh>, is_first: bool, until: Instant) -> Vec<LookedAt> {
        if is_first {
            // What others have changed until now is none of the step's.
            self.tell_changes(&self.changed_by(by), until).await;
        }
        let looks = fresh.into_iter().map(async |it| {
            // One that is not there yet leaves time to the others of the step.
            let server = self.server(&it.found, half(until), true).await.ok();
            let texts = it.files.iter().chain(&it.others);
            let texts: Vec<_> = texts.filter_map(|it| Some((it.clone(), text_of(it)?))).collect();
            let reports = match server {
                Some(server) => server.look(&texts, &[], &it.held, look_time(until)).await,
                None => Reports::new(),
            };
            LookedAt {
                key: key(&it.found),
                reports,
                moved: it.moved,
            }
        });
        join_all(looks).await
    }

    /// Keeps what was found before the changes.
    fn keep(&self, by: u64, found: Vec<LookedAt>) {
        let mut state = self.state.borrow_mut();
        for LookedAt { key, reports, moved } in found {
            let Some(unseen) = state.unseen.get_mut(&(by, key)) else {
                continue;
            };
            for (file, report) in reports {
                if let (Some(known), Ok(mut report)) = (unseen.before.get_mut(&file), report) {
                    report.retain(matters);
                    known.get_or_insert(report);
                }
            }
            for (from, to) in moved {
                let known = unseen.before.get(&from).cloned().flatten();
                unseen.before.insert(to, known);
            }
        }
    }

    /// The files that a conversation has changed and servers have not looked at.
    fn changed_by(&self, by: u64) -> BTreeSet<PathBuf> {
        let state = self.state.borrow();
        let own = state.unseen.iter().filter(|it| it.0.0 == by);
        own.flat_map(|it| it.1.files.keys().cloned()).collect()
    }

    /// Has all servers look at what a conversation has changed.
    async fn after(&self, by: u64, until: Instant) -> Comparison {
        self.tell_changes(&self.changed_by(by), until).await;
        let keys: Vec<ServerKey> = {
            let state = self.state.borrow();
            let own = state.unseen.keys().filter(|it| it.0 == by);
            own.map(|it| it.1.clone()).collect()
        };
        let looks = keys.into_iter().map(|key| self.after_of(by, key, until));
        let mut comparison = Comparison::default();
        for one in join_all(looks).await {
            comparison.join(one);
        }
        comparison
    }

    /// Has one server look at them.
    async fn after_of(&self, by: u64, key: ServerKey, until: Instant) -> Comparison {
        let own = (by, key);
        let (found, files, others, moved) = {
            let state = self.state.borrow();
            let Some(unseen) = state.unseen.get(&own) else {
                return Comparison::default();
            };
            let files: Vec<(PathBuf, bool)> = unseen.files.iter().map(|it| (it.0.clone(), it.1.is_new)).collect();
            let others: Vec<PathBuf> = unseen.others.keys().cloned().collect();
            let moved: BTreeSet<PathBuf> = unseen.files.values().filter_map(|it| it.from.clone()).collect();
            (unseen.found.clone(), files, others, moved)
        };
        let (mut texts, mut written, mut gone, mut odd) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        for (file, is_new) in &files {
            let mut change = if *is_new {
                DiskChange::Created
            } else {
                DiskChange::Changed
            };
            match on_disk(file) {
                OnDisk::Text(text) => texts.push((file.clone(), text)),
                OnDisk::Other => odd.push(file.clone()),
                OnDisk::Gone => {
                    change = DiskChange::Deleted;
                    gone.push(file.clone());
                }
            }
            written.push((file.clone(), change));
        }
        for file in others {
            match text_of(&file) {
                Some(text) => texts.push((file, text)),
                None => gone.push(file),
            }
        }
        let (reports, warning) = match self.server(&found, until, true).await {
            Ok(server) => {
                let none = BTreeSet::new();
                let reports = server.look(&texts, &written, &none, look_time(until)).await;
                (reports, server.warning())
            }
            Err(missing) => {
                let reports = texts.into_iter().map(|it| (it.0, Err(missing.clone())));
                (reports.collect(), None)
            }
        };
        let mut comparison = Comparison::default();
        let mut state = self.state.borrow_mut();
        let Some(unseen) = state.unseen.get_mut(&own) else {
            return comparison;
        };
        unseen.is_told = false;
        if let Some(why) = warning {
            let looked_at = reports.iter().filter(|it| it.1.is_ok()).map(|it| it.0.clone());
            comparison.unchecked.insert(why, looked_at.collect());
        }
        for (file, report) in reports {
            unseen.take(&found.name, file, report, &mut comparison);
        }
        for file in gone {
            let before = unseen.before.get(&file).cloned().flatten();
            // What was wrong with a file that was moved is looked at where it is now.
            let fixed = before.filter(|_| !moved.contains(&file)).map_or(0, |it| it.len());
            comparison.fixed += fixed;
            unseen.forget(&file);
        }
        for file in odd {
            unseen.forget(&file);
            let why = format!(
                "{} is not told of files that are no UTF-8 text or longer than 4 MiB",
                found.name
            );
            comparison.unchecked.entry(why).or_default().insert(file);
        }
        let left_out = std::mem::take(&mut unseen.left_out);
        if !left_out.is_empty() {
            let why = format!("too many files at once for {}", found.name);
            comparison.unchecked.entry(why).or_default().extend(left_out);
        }
        if unseen.files.is_empty() && unseen.others.is_empty() {
            state.unseen.remove(&own);
        }
        comparison
    }

    /// Tells all servers of files that have come, changed or gone on the disk since they were last told, but for `except`, of
    /// which they are told otherwise. The first time there is nothing to tell, nor is there where the disk has not answered an
    /// earlier look in half of the time `until` then.
    async fn tell_changes(&self, except: &BTreeSet<PathBuf>, until: Instant) {
        for unseen in self.state.borrow_mut().unseen.values_mut() {
            unseen.is_told |= unseen.files.keys().any(|it| !except.contains(it));
        }
        let turn = tokio::time::timeout_at(half(until), self.telling.lock()).await;
        let Ok(_turn) = turn else { return };
        let before = self.state.borrow_mut().tree.take();
        let (workspace, settings) = (Arc::clone(&self.workspace), Arc::clone(&self.settings));
        let look = tokio::task::spawn_blocking(move || {
            let now = Tree::read(&workspace, &settings);
            match before {
                None => (now, Vec::new()),
                Some(mut tree) => {
                    let changes = tree.update(now);
                    (tree, changes)
                }
            }
        });
        let Ok((tree, mut changes)) = look.await else { return };
        changes.retain(|it| !except.contains(&it.0));
        let mut state = self.state.borrow_mut();
        state.tree = Some(tree);
        for server in state.slots.started() {
            server.tell_disk(&changes);
        }
    }

    async fn look(&self, files: Vec<PathBuf>, until: Instant) -> Look {
        self.tell_changes(&BTreeSet::new(), until).await;
        let mut groups: BTreeMap<ServerKey, (Found, Vec<(PathBuf, String)>)> = BTreeMap::new();
        let mut look = Look::default();
        let mut surplus = BTreeSet::new();
        for (at, file) in files.into_iter().enumerate() {
            let servers = self.servers_of(&file);
            if at >= MOST_LOOKED_AT {
                surplus.extend(Some(file).filter(|_| !servers.is_empty()));
                continue;
            }
            let Some(text) = text_of(&file) else { continue };
            for found in servers {
                let group = groups.entry(key(&found)).or_insert_with(|| (found, Vec::new()));
                group.1.push((file.clone(), text.clone()));
            }
        }
        if !surplus.is_empty() {
            let why = format!("no more than {MOST_LOOKED_AT} files are looked at");
            look.unchecked.insert(why, surplus);
        }
        let looks = groups.into_values().map(async |(found, texts)| {
            let server = match self.server(&found, until, false).await {
                Ok(server) => server,
                Err(missing) => {
                    let files = texts.into_iter().map(|it| it.0).collect();
                    let unchecked = Unchecked::from([(missing.told(&found.name), files)]);
                    return (found.name, Reports::new(), unchecked);
                }
            };
            let time = LookTime { until, patience: None };
            let mut reports = server.look(&texts, &[], &BTreeSet::new(), time).await;
            let mut unchecked = Unchecked::new();
            for (file, missing) in reports.iter().filter_map(|it| Some((it.0, it.1.as_ref().err()?))) {
                let why = missing.told(&found.name);
                unchecked.entry(why).or_default().insert(file.clone());
            }
            reports.retain(|_, it| it.is_ok());
            if let Some(why) = server.warning().filter(|_| !reports.is_empty()) {
                unchecked.insert(why, reports.keys().cloned().collect());
            }
            (found.name, reports, unchecked)
        });
        for (name, reports, unchecked) in join_all(looks).await {
            for (file, report) in reports {
                look.checked.insert(file.clone());
                let found = look.found.entry(name.clone()).or_default();
                found.insert(file, report.unwrap_or_default());
            }
            join(&mut look.unchecked, unchecked);
        }
        look
    }

    async fn ask(&self, file: &Path, spot: Spot, question: &Question, until: Instant) -> Result<Answer, String> {
        let found = self.servers_of(file).into_iter().next();
        let found = found.ok_or("no language server is installed for this file")?;
        let text = text_of(file).ok_or("the file cannot be read as text")?;
        self.tell_changes(&BTreeSet::new(), until).await;
        let server = self.server(&found, until, false).await;
        let server = server.map_err(|it| it.told(&found.name))?;
        let answer = server.ask(file, &text, spot, question, until).await?;
        let Question::Rename { old, .. } = question else {
            return Ok(Answer::Places(position::places(&answer)));
        };
        let mut renamed = Vec::new();
        let files = position::edited_files(&answer)?;
        let (root, added) = (self.workspace.root(), self.workspace.added());
        let is_inside = |it: &Path| it.starts_with(root) || added.iter().any(|root| it.starts_with(root));
        if let Some((file, _)) = files.iter().find(|it| !is_inside(&it.0)) {
            return Err(format!("it is used in {}, outside of the workspace", file.display()));
        }
        if files.len() > MOST_RENAMED {
            return Err(format!(
                "it is used in {} files, and at most {MOST_RENAMED} are changed at once",
                files.len()
            ));
        }
        for (file, edits) in files {
            let text = text_of(&file).ok_or_else(|| format!("{} cannot be read as text", file.display()))?;
            let replacements = position::replacements(&edits, &file, &text, server.encoding())?;
            if !position::replaces_only(&replacements, &text, old) {
                return Err(format!(
                    "{} would change something else in {}, whose text it may not know",
                    found.name,
                    file.display()
                ));
            }
            let new = position::replaced(&text, &replacements);
            renamed.push((file, text, new));
        }
        Ok(Answer::Renamed(renamed))
    }

    /// Has the servers of a file start, and opens it in each once that has answered.
    async fn open(&self, file: &Path) {
        if self.state.borrow().tree.is_none() {
            self.tell_changes(&BTreeSet::new(), Instant::now() + START_PATIENCE)
                .await;
        }
        let opens = self.servers_of(file).into_iter().map(async |found| {
            // Whether it works is seen when it is asked.
            let started = self.started(&found);
            let Ok((mut started, _)) = started else { return };
            let Ok(answered) = started.wait_for(Option::is_some).await.map(|it| it.clone()) else {
                return;
            };
            // It may have been changed, and told, in the meantime.
            if let Some(Ok(server)) = answered
                && let Some(text) = text_of(file)
            {
                server.open(file, &text);
                server.warm(file, Instant::now() + WARM_LIMIT).await;
            }
        });
        join_all(opens).await;
    }

    fn started(&self, found: &Found) -> Result<(super::slot::Started, Instant), String> {
        if !may_run(&self.workspace, &self.settings) {
            return Err("the workspace may not act".to_owned());
        }
        self.state.borrow_mut().slots.server(&self.workspace, found)
    }

    /// A server that has answered. `is_brief`: one that was started long ago is not waited for. Error: why there is none, or none
    /// yet.
    async fn server(&self, found: &Found, until: Instant, is_brief: bool) -> Result<Arc<Server>, Missing> {
        let (mut started, since) = self.started(found).map_err(Missing::Gone)?;
        let until = if is_brief {
            until.min(since + START_PATIENCE)
        } else {
            until
        };
        let answered = tokio::time::timeout_at(until, started.wait_for(Option::is_some)).await;
        match answered.ok().and_then(Result::ok).and_then(|it| it.clone()) {
            Some(Ok(server)) => Ok(server),
            Some(Err(why)) => {
                self.state.borrow_mut().slots.bury(&key(found));
                Err(Missing::Gone(why))
            }
            None => Err(Missing::Starting),
        }
    }
}

/// The middle between now and then.
fn half(until: Instant) -> Instant {
    let now = Instant::now();
    now + until.saturating_duration_since(now) / 2
}

/// The time of a look at a change.
fn look_time(until: Instant) -> LookTime {
    LookTime {
        until,
        patience: Some(READ_PATIENCE),
    }
}

/// Hints are no problems.
fn matters(it: &Diagnostic) -> bool {
    it.severity != Severity::Info
}

fn join(all: &mut Unchecked, more: Unchecked) {
    for (why, files) in more {
        all.entry(why).or_default().extend(files);
    }
}

impl Fresh {
    fn of(found: Found) -> Self {
        Self {
            found,
            files: BTreeSet::new(),
            others: BTreeSet::new(),
            moved: Vec::new(),
            held: BTreeSet::new(),
        }
    }
}

impl Unseen {
    fn of(found: &Found) -> Self {
        Self {
            found: found.clone(),
            files: BTreeMap::new(),
            others: BTreeMap::new(),
            left_out: BTreeSet::new(),
            before: BTreeMap::new(),
            is_told: false,
        }
    }

    /// The answer in which this was changed is over: what was changed since, by whomever, cannot be told from it any more.
    fn grow_old(&mut self) {
        for (file, it) in std::mem::take(&mut self.files) {
            if self.others.len() < MOST_OTHERS {
                self.others.insert(file, it.misses);
            } else {
                self.left_out.insert(file);
            }
        }
        self.before.clear();
        self.is_told = false;
    }

    /// Takes what the server says of a file after the changes: adds it to the comparison, and forgets the file once it is known.
    fn take(
        &mut self,
        name: &str,
        file: PathBuf,
        report: Result<Vec<Diagnostic>, Missing>,
        comparison: &mut Comparison,
    ) {
        let mut after = match report {
            Ok(after) => after,
            Err(missing) => {
                let changed = self.files.get_mut(&file).map(|it| &mut it.misses);
                let Some(misses) = changed.or_else(|| self.others.get_mut(&file)) else {
                    return;
                };
                let is_news = !std::mem::replace(&mut misses.is_told, true);
                misses.count += match missing {
                    Missing::Refused(_) => MOST_MISSES,
                    Missing::Broken(_) | Missing::Late | Missing::Gone(_) => 1,
                    Missing::Starting | Missing::Reading => 0,
                };
                if misses.count >= MOST_MISSES {
                    self.forget(&file);
                }
                if is_news {
                    let why = missing.told(name);
                    comparison.unchecked.entry(why).or_default().insert(file);
                }
                return;
            }
        };
        after.retain(matters);
        let is_new = self.files.get(&file).is_some_and(|it| it.is_new);
        let before = self.before.get(&file).cloned().flatten();
        let before = before.or_else(|| is_new.then(Vec::new));
        self.forget(&file);
        comparison.checked.insert(file.clone());
        let found = comparison.found.entry(name.to_owned()).or_default();
        found.insert(file.clone(), after.clone());
        let (list, new) = match before {
            Some(before) => {
                comparison.fixed += added(&after, before.clone()).len();
                (&mut comparison.new, added(&before, after))
            }
            None => (&mut comparison.doubtful, after),
        };
        if !new.is_empty() {
            list.entry(file).or_default().extend(new);
        }
    }

    fn forget(&mut self, file: &Path) {
        self.files.remove(file);
        self.others.remove(file);
        self.before.remove(file);
    }
}

impl Comparison {
    /// Adds what another server says.
    fn join(&mut self, other: Self) {
        let Self {
            new,
            doubtful,
            fixed,
            checked,
            unchecked,
            found,
        } = other;
        for (all, more) in [(&mut self.new, new), (&mut self.doubtful, doubtful)] {
            for (file, found) in more {
                all.entry(file).or_default().extend(found);
            }
        }
        self.fixed += fixed;
        self.checked.extend(checked);
        join(&mut self.unchecked, unchecked);
        for (name, files) in found {
            self.found.entry(name).or_default().extend(files);
        }
    }
}

#[cfg(test)]
mod tests;
