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
};

use serde_json::{Value, json};
use tokio::sync::{oneshot, watch};

use super::setup::Setup;
use crate::{
    agent::{
        approval::{self, Facts, Rules, RunMode, Verdict},
        tool_selection,
        turn::CheckReport,
    },
    config::Settings,
    lsp::{Edit, LanguageServers},
    os::panic,
    protocol::Mode,
    sandbox::{Place, Tier, Workspace},
    text::redact,
    tools::{
        Access, Change, Class, Context,
        lints::Findings,
        read_lints::{self, ChangeReport, FileReport},
    },
};

pub use crate::tools::read_lints::KnownMistakes;

/// Files that are checked of those that the agent knows, and as many of those that others name.
const MOST_FILES: usize = 40;
/// Reports about one file while one message is answered: a model that has not fixed it by then will not.
const MOST_ROUNDS: u32 = 3;
/// Mistakes that are reported for one file.
const MOST_TOLD: usize = 10;
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
fn may_run(setup: &Setup) -> bool {
    let settings = &setup.settings;
    let tool = setup.tools.get(read_lints::NAME);
    let is_on = settings.tools.get(read_lints::NAME).is_none_or(|it| it.enabled);
    is_on && tool.is_some_and(|it| !tool_selection::must_ask(settings, it, &[]))
}

/// Checkers that are asked about what a call has just changed.
#[derive(Clone, Debug)]
pub struct Lints(Arc<Asked>);

struct Asked {
    context: Context,
    /// Number of reports about each file while one message is answered.
    rounds: Mutex<BTreeMap<PathBuf, u32>>,
    /// Some that were asked have not answered, and are not waited for.
    is_busy: AtomicBool,
    stopped: watch::Receiver<()>,
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
            rounds: Mutex::default(),
            is_busy: AtomicBool::new(false),
            stopped,
        }))
    }

    /// A message of the user's begins.
    pub fn begin(&self) {
        self.rounds().clear();
    }

    /// The known mistakes of files that are about to be changed, for [`Self::after`]; `None` where nothing will be
    /// reported.
    pub fn before(&self, changes: &[Change]) -> Option<KnownMistakes> {
        let Context {
            workspace,
            settings,
            servers,
            ..
        } = &self.0.context;
        let edits: Vec<Edit> = changes.iter().flat_map(edits).collect();
        if self.0.is_busy.load(Ordering::Acquire) {
            // The next report is about these, too.
            servers.note(workspace, settings, edits);
            return None;
        }
        let rounds = self.rounds();
        let is_open = |it: &Edit| rounds.get(&it.file).is_none_or(|it| *it < MOST_ROUNDS);
        let (edits, muted): (Vec<Edit>, Vec<Edit>) = edits.into_iter().partition(is_open);
        if !muted.is_empty() {
            servers.note(workspace, settings, muted);
        }
        KnownMistakes::of(edits, &self.0.context)
    }

    /// The report about files that have been changed; an empty one where checking takes longer than a moment.
    pub async fn after(self, known: KnownMistakes) -> CheckReport {
        let (send, said) = oneshot::channel();
        let asked = Arc::clone(&self.0);
        if asked.is_busy.swap(true, Ordering::AcqRel) {
            return CheckReport::default();
        }
        let wait = asked.context.settings.agent.lint_wait;
        let runtime = tokio::runtime::Handle::current();
        // On one thread from its beginning to its end: a child that dies with its parent dies with the thread that made it.
        let run = move || {
            let mut stopped = asked.stopped.clone();
            runtime.block_on(async {
                let Context {
                    workspace, settings, ..
                } = &asked.context;
                let look = Look {
                    known: known.files().into_iter().collect(),
                    ..Look::default()
                };
                let files = files(&look, workspace, settings);
                // Who did not wait so long hears of it with the next message.
                let say = |report| drop(send.send(report));
                let looking = read_lints::look_at_changed(&known, &files, wait, &asked.context, say);
                tokio::select! {
                    biased;
                    _ = stopped.changed() => {}
                    _ = panic::contained(looking) => {}
                }
            });
            asked.is_busy.store(false, Ordering::Release);
        };
        tokio::task::spawn_blocking(run);
        let report = tokio::time::timeout(wait, said).await.ok().and_then(Result::ok);
        let report = report.unwrap_or_default();
        CheckReport {
            text: self.tell(&report.files).unwrap_or_default(),
            checked: self.checked(&report),
        }
    }

    /// The member `checked` of the document of a change; `None` if nothing has looked at it.
    fn checked(&self, report: &ChangeReport) -> Option<Value> {
        if !report.is_checked && report.unchecked.is_empty() {
            return None;
        }
        // What may be older than the change is told to the model, and is no problem of the change.
        let problems = report.files.iter().filter(|it| it.is_new).flat_map(|it| &it.found);
        let shown = problems.clone().take(MOST_SHOWN).map(|it| {
            json!({
                "filePath": self.shown(&it.file),
                "line": it.line,
                "column": it.column,
                "severity": it.severity.as_str(),
                "message": redact::held(&it.message),
                "source": redact::held(&it.source),
                "code": it.code.as_deref().map(redact::held),
            })
        });
        // They are told to the model, so the change does not pass as clean.
        let doubtful = report.files.iter().filter(|it| !it.is_new);
        let doubtful = doubtful.map(|it| format!("problems in {} may be older than this change", self.shown(&it.file)));
        let unchecked = report.unchecked.iter().map(|it| redact::held(it).into_owned());
        let unchecked: Vec<String> = unchecked.chain(doubtful).collect();
        Some(json!({
            "isChecked": report.is_checked,
            "newProblems": problems.clone().count(),
            "fixedProblems": report.fixed,
            "problems": shown.collect::<Vec<_>>(),
            "unchecked": unchecked,
        }))
    }

    /// A file as people and the model know it.
    fn shown(&self, file: &Path) -> String {
        let located = self.0.context.workspace.located(file);
        located.map_or_else(|_| file.display().to_string(), |it| it.shown)
    }

    fn tell(&self, found: &[FileReport]) -> Option<String> {
        let mut rounds = self.rounds();
        let mut text = String::new();
        for FileReport { file, found, is_new } in found {
            let round = rounds.entry(file.clone()).or_default();
            *round += 1;
            let name = self.shown(file);
            let _ = match is_new {
                true => writeln!(text, "New lint errors in `{name}`:"),
                false => writeln!(
                    text,
                    "Lint errors in `{name}`, some of which may be older than this change:"
                ),
            };
            for it in found.iter().take(MOST_TOLD) {
                let told: String = it.told().chars().take(MOST_CHARS).collect();
                let _ = writeln!(text, "{}", told.replace('\n', " "));
            }
            if found.len() > MOST_TOLD {
                let _ = writeln!(
                    text,
                    "[cut: {MOST_TOLD} of {} shown; read_lints shows all]",
                    found.len()
                );
            }
            if *round == MOST_ROUNDS {
                let _ = writeln!(
                    text,
                    "This was told for the third time: if it is not mended by the next change, leave it and say so."
                );
            }
        }
        text.truncate(text.trim_end().len());
        (!text.is_empty()).then_some(text)
    }

    fn rounds(&self) -> MutexGuard<'_, BTreeMap<PathBuf, u32>> {
        self.0.rounds.lock().unwrap_or_else(PoisonError::into_inner)
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

/// The files that a change touches; a renamed one is another file.
fn edits(change: &Change) -> Vec<Edit> {
    let text = |it: &Option<Arc<[u8]>>| it.as_ref().map(|it| String::from_utf8_lossy(it).into_owned());
    let (old, new) = (text(&change.old), text(&change.new));
    let file = change.file.path.clone();
    match &change.to {
        // What was wrong in it before is not new at its new place.
        Some(to) if to.path != file => vec![
            Edit {
                file,
                old: old.clone(),
                new: None,
            },
            Edit {
                file: to.path.clone(),
                old,
                new,
            },
        ],
        Some(_) | None => vec![Edit { file, old, new }],
    }
}

/// The files that may be looked at without a question.
fn files(look: &Look, workspace: &Workspace, settings: &Settings) -> BTreeSet<PathBuf> {
    let (rules, _) = Rules::read(settings, std::env::home_dir().as_deref());
    let facts = Facts {
        mode: Mode::Agent,
        run: RunMode::parse(&settings.approvals.run),
        tier: Tier::None,
        gaps: "",
        rules: &rules,
        is_attended: true,
        // Files are read here, and no command is judged.
        is_halted: false,
        is_partly_known: false,
        remotes: &[],
        is_new_repository: false,
        is_sandbox_off: false,
    };
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
    let there = named
        .chain(known)
        .filter(|it| matches!(it.place, Place::Inside | Place::Added) && it.path.is_file());
    let allowed = there.filter(|it| {
        let access = [Access::Read(it.clone())];
        approval::judge(&access, Class::Reads, &facts) == Verdict::Allow
            && tool_selection::out_of_bounds(settings, read_lints::NAME, &access).is_none()
    });
    allowed.map(|it| it.path).collect()
}
