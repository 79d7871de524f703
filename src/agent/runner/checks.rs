//! Checkers that look at the files one works on, beside the conversation: what they find goes with the next message. Nobody
//! waits for them, and nothing is said where they do not work. Those that answer in a moment are asked about each change at
//! once ([`Lints`]).
//!
//! They run only where the model could have them run without a question: see
//! [`look_again`](crate::tools::read_lints::look_again).

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Write as _,
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use serde_json::{Value, json};
use tokio::{
    sync::{oneshot, watch},
    time::Instant,
};

use super::setup::Setup;
use crate::{
    agent::{
        approval::{self, Facts, Rules, RunMode, Verdict},
        tool_selection,
        turn::{CheckReport, ProposalReport},
    },
    config::Settings,
    lsp::{Diagnostic, Edit, LanguageServers, Unchecked, added},
    os::panic,
    protocol::Mode,
    sandbox::{Place, Tier, Workspace},
    text::{figure, redact},
    tools::{
        Access, Change, Class, Context,
        lints::{Findings, Severity},
        read_lints::{self, ChangeReport, FileReport},
    },
};

pub use crate::tools::read_lints::KnownMistakes;

/// Files that are checked of those that the agent knows, and as many of those that others name.
const MOST_FILES: usize = 40;
/// Bytes of a new text that is looked at before it is written.
const MOST_BYTES: usize = 4 << 20;
/// Reports about one file while one message is answered: a model that has not fixed it by then will not.
const MOST_ROUNDS: u32 = 3;
/// Mistakes that are reported for one file, and for all.
const MOST_TOLD: usize = 10;
const MOST_TOLD_IN_ALL: usize = 20;
/// Mistakes of one file that are reported although they may be older than the change.
const FEW: usize = 3;
/// The part of `agent.lint_wait` in which files are looked at before they are changed.
const BEFORE: f32 = 0.4;
/// Problems that the document of a change holds.
const MOST_SHOWN: usize = 20;
/// Characters of one mistake.
const MOST_CHARS: usize = 300;

/// The checkers of a conversation. Dropping it ends what runs.
#[derive(Debug)]
pub struct Checks {
    findings: Arc<Findings>,
    servers: Arc<LanguageServers>,
    /// `None`: they are not to run by themselves.
    wanted: Option<watch::Sender<Look>>,
    /// `None`: they are not asked about changes.
    lints: Option<Lints>,
    /// Whoever runs something hears when this is gone.
    _alive: watch::Sender<()>,
}

/// Files to be checked.
#[derive(Clone, Debug, Default)]
pub struct Look {
    /// As the user and the tree name them, what matters most first.
    pub named: Vec<String>,
    /// Canonical; what matters most first.
    pub known: Vec<PathBuf>,
    /// The agent has changed something.
    pub has_changed: bool,
}

impl Checks {
    /// Needs a runtime.
    pub fn start(setup: &Setup) -> Self {
        let findings = Arc::<Findings>::default();
        let servers = Arc::new(if may_run(setup) {
            LanguageServers::default()
        } else {
            LanguageServers::off()
        });
        let (alive, stopped) = watch::channel(());
        let context = setup
            .workspace
            .as_ref()
            .filter(|_| may_run(setup))
            .map(|workspace| Context {
                findings: Arc::clone(&findings),
                servers: Arc::clone(&servers),
                only_reads: true,
                ..Context::apart(Arc::clone(workspace), Arc::clone(&setup.settings), Arc::default())
            });
        let is_waited = !setup.settings.agent.lint_wait.is_zero();
        let lints = context
            .clone()
            .filter(|_| is_waited)
            .map(|context| Lints::new(context, stopped.clone()));
        let wanted = context.filter(|_| setup.asker.is_attended()).map(|context| {
            let (wanted, looks) = watch::channel(Look::default());
            tokio::spawn(work(looks, stopped, context));
            wanted
        });
        Self {
            findings,
            servers,
            wanted,
            lints,
            _alive: alive,
        }
    }

    /// The results of the checkers in this conversation, including those of the model's own calls.
    pub fn findings(&self) -> Arc<Findings> {
        Arc::clone(&self.findings)
    }

    /// The language servers of this conversation, which start when somebody asks them.
    pub fn servers(&self) -> Arc<LanguageServers> {
        Arc::clone(&self.servers)
    }

    /// The checkers for files that calls have changed; `None`: they are off.
    pub fn lints(&self) -> Option<Lints> {
        self.lints.clone()
    }

    /// Returns true if [`Self::looker`] does anything.
    pub const fn are_on(&self) -> bool {
        self.wanted.is_some()
    }

    /// Returns a function that asks for files to be checked once the run in progress has ended. A later request replaces one
    /// that waits. Does nothing unless [`Self::are_on`].
    pub fn looker(&self) -> impl Fn(Look) + Send + use<> {
        let wanted = self.wanted.clone();
        move |look| {
            if let Some(wanted) = &wanted {
                wanted.send_modify(|it| {
                    *it = Look {
                        has_changed: it.has_changed || look.has_changed,
                        ..look
                    };
                });
            }
        }
    }
}

/// Returns true if the model could run checkers without a question.
pub fn may_run(setup: &Setup) -> bool {
    let settings = &setup.settings;
    let tool = setup.tools.get(read_lints::NAME);
    let is_on = settings.tools.get(read_lints::NAME).is_none_or(|it| it.enabled);
    is_on && tool.is_some_and(|it| !tool_selection::must_ask(settings, it, &[]))
}

/// Language servers and checkers that are asked about the changes of a step.
#[derive(Clone, Debug)]
pub struct Lints(Arc<Asked>);

struct Asked {
    context: Context,
    /// What the model was told while one message is answered.
    told: Mutex<Told>,
    /// What is left of the time that looks at files before changes of the step may take; `None`: there was none yet.
    before_left: Mutex<Option<Duration>>,
    /// Checkers that were asked have not answered, and are not waited for.
    is_busy: AtomicBool,
    stopped: watch::Receiver<()>,
}

/// What the model was told while one message is answered.
#[derive(Debug, Default)]
struct Told {
    /// Number of steps after which problems of each file were told: new ones, and others only.
    rounds: BTreeMap<(PathBuf, bool), u32>,
    /// Why files were not looked at.
    unchecked: BTreeSet<String>,
    /// Problems that its changes have brought and that are left, by file.
    open: BTreeMap<PathBuf, Vec<Diagnostic>>,
}

impl std::fmt::Debug for Asked {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Asked")
            .field("is_busy", &self.is_busy)
            .finish_non_exhaustive()
    }
}

impl Lints {
    fn new(context: Context, stopped: watch::Receiver<()>) -> Self {
        Self(Arc::new(Asked {
            context,
            told: Mutex::default(),
            before_left: Mutex::default(),
            is_busy: AtomicBool::new(false),
            stopped,
        }))
    }

    /// A message of the user's begins.
    pub fn begin(&self) {
        *self.told() = Told::default();
        self.0.context.servers.begin();
        self.begin_step();
    }

    /// A step begins: the model is asked.
    pub fn begin_step(&self) {
        *self.before_left() = None;
    }

    /// Has language servers and quick checkers look at files that are about to be changed, and gives the known mistakes for
    /// [`Self::after`]; `None` where nothing will be reported. All calls of a step together wait for at most two fifths of `agent.lint_wait`.
    pub async fn before(&self, changes: &[Change]) -> Option<KnownMistakes> {
        let Context {
            workspace, settings, ..
        } = &self.0.context;
        let edits: Vec<Edit> = changes.iter().flat_map(edits).collect();
        let allowed = allowed(workspace, settings);
        let mut known = KnownMistakes::of(edits, &allowed, &self.0.context)?;
        let (is_first, left) = {
            let mut left = self.before_left();
            let is_first = left.is_none();
            (is_first, *left.get_or_insert(settings.agent.lint_wait.mul_f32(BEFORE)))
        };
        let began = Instant::now();
        let (context, is_busy) = (&self.0.context, &self.0.is_busy);
        known.look(is_first, began + left, &allowed, context, is_busy).await;
        // What is between the looks, such as a command or a question, is no wait for a server.
        let mut left = self.before_left();
        *left = left.map(|it| it.saturating_sub(began.elapsed()));
        Some(known)
    }

    /// The report of language servers about changes that are proposed and not made, for the person who is to be asked about them.
    /// Waits for at most `agent.lint_wait`.
    pub async fn preview(&self, changes: &[Change]) -> ProposalReport {
        let context = &self.0.context;
        let proposed: Vec<_> = changes.iter().flat_map(proposed).collect();
        if proposed.len() > MOST_FILES {
            return ProposalReport::default();
        }
        let until = Instant::now() + context.settings.agent.lint_wait;
        let allowed = allowed(&context.workspace, &context.settings);
        let report = read_lints::look_at_proposed(proposed, until, &allowed, context, &self.0.is_busy).await;
        let new = report.files.iter().filter(|it| !it.new.is_empty());
        let mut text = String::new();
        for FileReport { file, new, .. } in new.clone() {
            let room = MOST_TOLD_IN_ALL.saturating_sub(text.lines().count());
            list_into(
                &mut text,
                &format!("New lint errors in `{}`:", self.shown(file)),
                new,
                room,
            );
        }
        let errors = new.flat_map(|it| &it.new).filter(|it| it.severity == Severity::Error);
        ProposalReport {
            errors: errors.count(),
            text: redact::held(text.trim_end()).into_owned(),
            checked: self.checked(&report, &BTreeMap::new(), self.unchecked(&report)),
        }
    }

    /// The report about all that a step has changed; an empty one where checking takes longer than a moment.
    pub async fn after(self, known: KnownMistakes) -> CheckReport {
        self.begin_step();
        let (send, mut said) = oneshot::channel();
        // Whoever sets it reports: what is told counts, and is told once.
        let is_told = Arc::new(AtomicBool::new(false));
        let is_told_here = Arc::clone(&is_told);
        let lints = self.clone();
        let wait = self.0.context.settings.agent.lint_wait;
        let runtime = tokio::runtime::Handle::current();
        // On one thread from its beginning to its end: a child that dies with its parent dies with the thread that made it.
        let run = move || {
            let Asked {
                context,
                is_busy,
                stopped,
                ..
            } = &*lints.0;
            let mut stopped = stopped.clone();
            let allowed = allowed(&context.workspace, &context.settings);
            runtime.block_on(async {
                // Who did not wait so long hears of it with the next message.
                let say = |report: ChangeReport| {
                    if !is_told_here.swap(true, Ordering::AcqRel) {
                        drop(send.send(lints.report(&report)));
                    }
                };
                let looking = read_lints::look_at_changed(known, (wait, &allowed), context, is_busy, say);
                tokio::select! {
                    biased;
                    _ = stopped.changed() => {}
                    _ = panic::contained(looking) => {}
                }
            });
        };
        tokio::task::spawn_blocking(run);
        let report = match tokio::time::timeout(wait, &mut said).await {
            Ok(report) => report.ok(),
            Err(_) if is_told.swap(true, Ordering::AcqRel) => said.await.ok(),
            Err(_) => None,
        };
        report.unwrap_or_else(|| {
            self.report(&ChangeReport {
                unchecked: Unchecked::from([("the check has not ended in time".to_owned(), BTreeSet::new())]),
                ..ChangeReport::default()
            })
        })
    }

    /// The report for the model and the documents. Looks up how each file that is named is known.
    fn report(&self, report: &ChangeReport) -> CheckReport {
        let unchecked = self.unchecked(report);
        let open = self.left_open(report);
        CheckReport {
            text: self.tell(report, &open, &unchecked).unwrap_or_default(),
            checked: self.checked(report, &open, unchecked),
        }
    }

    /// The problems that earlier changes of the answer have brought and that are left after this one, by file. Notes the new ones.
    fn left_open(&self, report: &ChangeReport) -> BTreeMap<PathBuf, Vec<Diagnostic>> {
        let mut told = self.told();
        for file in &report.checked {
            let Some(open) = told.open.get_mut(file) else { continue };
            let now = report.found.get(file).map_or(&[][..], Vec::as_slice);
            for gone in added(now, open.clone()) {
                if let Some(at) = open.iter().position(|it| *it == gone) {
                    open.swap_remove(at);
                }
            }
        }
        told.open.retain(|file, it| !it.is_empty() && file.exists());
        let left = told.open.clone();
        for FileReport { file, new, .. } in report.files.iter().filter(|it| !it.new.is_empty()) {
            told.open.entry(file.clone()).or_default().extend(new.iter().cloned());
        }
        left
    }

    /// Why files were not looked at, each reason with the first of its files.
    fn unchecked(&self, report: &ChangeReport) -> Vec<String> {
        let one = |(why, files): (&String, &BTreeSet<PathBuf>)| {
            if files.is_empty() {
                return redact::held(why).into_owned();
            }
            let files = read_lints::listed(files, |it| self.shown(it));
            format!("{} ({files})", redact::held(why))
        };
        report.unchecked.iter().map(one).collect()
    }

    /// The member `checked` of the documents of the changes; `None` if nothing has looked at them.
    fn checked(
        &self,
        report: &ChangeReport,
        open: &BTreeMap<PathBuf, Vec<Diagnostic>>,
        unchecked: Vec<String>,
    ) -> Option<Value> {
        if report.checked.is_empty() && unchecked.is_empty() {
            return None;
        }
        let problems = report.files.iter().flat_map(|it| &it.new);
        let older = report.files.iter().flat_map(|it| &it.doubtful);
        let older_count = older.clone().count();
        let shown = |it: &Diagnostic| {
            json!({
                "filePath": self.shown(&it.file),
                "line": it.line,
                "column": it.column,
                "severity": it.severity.as_str(),
                "message": redact::held(&it.message),
                "source": redact::held(&it.source),
                "code": it.code.as_deref().map(redact::held),
            })
        };
        let mut checked = json!({
            // The document says that it is pending, and an update is merged with what was there.
            "isPending": false,
            "isChecked": !report.checked.is_empty(),
            "newProblems": problems.clone().count(),
            "fixedProblems": report.fixed,
            "problems": problems.take(MOST_SHOWN).map(shown).collect::<Vec<_>>(),
            "unchecked": unchecked,
        });
        let older: Vec<Value> = older.take(MOST_SHOWN).map(shown).collect();
        if !older.is_empty() {
            checked["olderProblems"] = older.into();
            checked["olderCount"] = older_count.into();
        }
        if !open.is_empty() {
            checked["openProblems"] = open.values().map(Vec::len).sum::<usize>().into();
        }
        Some(checked)
    }

    /// A file as people and the model know it.
    fn shown(&self, file: &Path) -> String {
        let located = self.0.context.workspace.located(file);
        located.map_or_else(|_| file.display().to_string(), |it| it.shown)
    }

    /// What the model is told. Of what may be older than the change it is told the number, and the problems themselves where
    /// they are few.
    fn tell(
        &self,
        report: &ChangeReport,
        open: &BTreeMap<PathBuf, Vec<Diagnostic>>,
        unchecked: &[String],
    ) -> Option<String> {
        let mut told = self.told();
        let mut text = String::new();
        let mut left = MOST_TOLD_IN_ALL;
        // A file that was looked at again and has nothing new may still have what was told before.
        let (looked_at, others): (Vec<_>, Vec<_>) = open.iter().partition(|it| report.checked.contains(it.0));
        let mut files: BTreeMap<&PathBuf, [&[Diagnostic]; 3]> = looked_at
            .into_iter()
            .map(|(file, still)| (file, [&[][..], &[], still]))
            .collect();
        for FileReport { file, new, doubtful } in &report.files {
            let lists = files.entry(file).or_default();
            (lists[0], lists[1]) = (new, doubtful);
        }
        for (file, [new, doubtful, still]) in files {
            // However often an old one was told, a new one is heard.
            let round = told.rounds.entry((file.clone(), !new.is_empty())).or_default();
            if *round == MOST_ROUNDS {
                continue;
            }
            *round += 1;
            let name = self.shown(file);
            let mut list = |head: String, found: &[Diagnostic]| {
                left -= list_into(&mut text, &head, found, left);
            };
            if !new.is_empty() {
                list(format!("New lint errors in `{name}`:"), new);
            }
            if !still.is_empty() {
                list(format!("Still there from an earlier change, in `{name}`:"), still);
            }
            match doubtful.len() {
                0 => {}
                count if count > FEW => {
                    // The worst come first.
                    let errors = doubtful.iter().filter(|it| it.severity == Severity::Error).count();
                    let few = doubtful.get(..errors).filter(|it| it.len() <= FEW).unwrap_or_default();
                    let end = if few.is_empty() {
                        "read_lints lists them."
                    } else {
                        "These are errors:"
                    };
                    let head = format!("Lint errors in `{name}` that may be older than this change: {count}. {end}");
                    list(head, few);
                }
                _ => {
                    let head = format!("Lint errors in `{name}`, some of which may be older than this change:");
                    list(head, doubtful);
                }
            }
            if *round == MOST_ROUNDS {
                let _ = writeln!(
                    text,
                    "This was told for the third time: if it is not mended by the next change, leave it and say so."
                );
            }
        }
        // Whoever mends one thing is not to believe that all is well.
        for (file, still) in others.into_iter().filter(|_| report.fixed > 0) {
            let _ = writeln!(
                text,
                "Still there from an earlier change: {} in `{}`.",
                figure::count(still.len(), "lint error", "lint errors"),
                self.shown(file)
            );
        }
        for why in unchecked {
            if told.unchecked.len() < MOST_TOLD_IN_ALL && told.unchecked.insert(why.clone()) {
                let _ = writeln!(text, "Not checked: {why}.");
            }
        }
        text.truncate(text.trim_end().len());
        (!text.is_empty()).then_some(text)
    }

    fn told(&self) -> MutexGuard<'_, Told> {
        self.0.told.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn before_left(&self) -> MutexGuard<'_, Option<Duration>> {
        self.0.before_left.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

async fn work(mut looks: watch::Receiver<Look>, stopped: watch::Receiver<()>, context: Context) {
    while looks.changed().await.is_ok() {
        let look = looks.borrow_and_update().clone();
        let (context, mut stopped) = (context.clone(), stopped.clone());
        let runtime = tokio::runtime::Handle::current();
        // On one thread from its beginning to its end: a child that dies with its parent dies with the thread that made it.
        let run = move || {
            runtime.block_on(async move {
                let files = files(&look, &context.workspace, &context.settings);
                let looking = panic::contained(read_lints::look_again(&files, look.has_changed, &context));
                tokio::select! {
                    biased;
                    _ = stopped.changed() => {}
                    _ = looking => {}
                }
            });
        };
        let _ = tokio::task::spawn_blocking(run).await;
    }
}

/// Appends problems under a heading, at most [`MOST_TOLD`] and as many as there is `room` for; returns their number.
fn list_into(text: &mut String, head: &str, found: &[Diagnostic], room: usize) -> usize {
    let _ = writeln!(text, "{head}");
    let most = MOST_TOLD.min(room);
    for it in found.iter().take(most) {
        let told: String = it.told().chars().take(MOST_CHARS).collect();
        let _ = writeln!(text, "{}", told.replace('\n', " "));
    }
    if found.len() > most {
        let _ = writeln!(text, "[cut: {most} of {} shown; read_lints shows all]", found.len());
    }
    found.len().min(most)
}

/// The files that a change touches, with their new texts; nothing where one is no text, or longer than servers are told.
fn proposed(change: &Change) -> Vec<(Edit, String)> {
    let new = change.new.as_deref().unwrap_or_default();
    let new = str::from_utf8(new).ok().filter(|it| it.len() <= MOST_BYTES);
    let Some(new) = new else { return Vec::new() };
    let text = |it: Edit| {
        let text = if it.is_deleted { "" } else { new }.to_owned();
        (it, text)
    };
    edits(change).into_iter().map(text).collect()
}

/// The files that a change touches; a renamed one is another file.
fn edits(change: &Change) -> Vec<Edit> {
    let edit = |file: &Path, is_new, is_deleted| Edit {
        file: file.to_owned(),
        is_new,
        is_deleted,
        from: None,
    };
    let file = &change.file.path;
    match &change.to {
        Some(to) if to.path != *file => vec![
            edit(file, false, true),
            Edit {
                from: Some(file.clone()),
                ..edit(&to.path, true, false)
            },
        ],
        Some(_) | None => vec![edit(file, change.old.is_none(), change.new.is_none())],
    }
}

/// The files that may be looked at without a question.
fn files(look: &Look, workspace: &Workspace, settings: &Settings) -> BTreeSet<PathBuf> {
    let named = look
        .named
        .iter()
        .filter_map(|it| workspace.locate(it).ok())
        .take(MOST_FILES);
    let known = look
        .known
        .iter()
        .filter_map(|it| workspace.located(it).ok())
        .take(MOST_FILES);
    let allowed = allowed(workspace, settings);
    let files = named.chain(known).map(|it| it.path);
    files.filter(|it| it.is_file() && allowed(it)).collect()
}

/// Returns a function that returns true for files that may be looked at without a question, whether they are there or not.
pub fn allowed<'a>(workspace: &'a Workspace, settings: &'a Settings) -> impl Fn(&Path) -> bool + use<'a> {
    let (rules, _) = Rules::read(settings, std::env::home_dir().as_deref());
    move |file| {
        let facts = Facts {
            mode: Mode::Agent,
            run: RunMode::parse(&settings.approvals.run),
            tier: Tier::None,
            gaps: "",
            rules: &rules,
            is_attended: true,
            // Files are read here, and no command is judged.
            is_halted: false,
            limit_reached: None,
            remotes: &[],
            is_new_repository: false,
            is_sandbox_off: false,
        };
        let located = workspace.located(file).ok();
        let access = located.filter(|it| matches!(it.place, Place::Inside | Place::Added));
        access.map(|it| [Access::Read(it)]).is_some_and(|access| {
            approval::judge(&access, Class::Reads, &facts) == Verdict::Allow
                && tool_selection::out_of_bounds(settings, read_lints::NAME, &access).is_none()
        })
    }
}
