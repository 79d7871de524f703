//! Checkers that look at the files one works on, beside the conversation: what they find goes with the next message. Nobody
//! waits for them, and nothing is said where they do not work.
//!
//! They run only where the model could have them run without a question: see
//! [`look_again`](crate::tool::read_lints::look_again).

use std::{collections::BTreeSet, path::PathBuf, sync::Arc};

use tokio::sync::{mpsc, watch};

use super::{
    approval::{self, Facts, Rules, RunMode, Verdict},
    driver::Setup,
    offer,
};
use crate::{
    config::Settings,
    os::panic,
    protocol::Mode,
    sandbox::{Place, Seen, Tier, Workspace},
    tool::{
        Access, Class, Context, Stop,
        read_lints::{self, Findings},
    },
};

/// So many files that the agent knows are looked at, and as many that others name.
const MOST_FILES: usize = 40;

/// The checkers of a conversation. Dropping it ends what runs.
#[derive(Debug)]
pub struct Checks {
    findings: Arc<Findings>,
    /// `None`: they are not to run by themselves.
    wanted: Option<watch::Sender<Look>>,
    /// Whoever runs something hears when this is gone.
    _alive: watch::Sender<()>,
}

/// What is to be looked at.
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
        let (alive, stopped) = watch::channel(());
        let wanted = may_run(setup)
            .then_some(setup.workspace.as_ref())
            .flatten()
            .map(|workspace| {
                let (wanted, looks) = watch::channel(Look::default());
                let context = Context {
                    workspace: Arc::clone(workspace),
                    seen: Arc::new(Seen::default()),
                    index: Arc::default(),
                    findings: Arc::clone(&findings),
                    settings: Arc::clone(&setup.settings),
                    apply: None,
                    call: String::new(),
                    output: mpsc::unbounded_channel().0,
                    stop: Stop::default(),
                };
                tokio::spawn(work(looks, stopped, context));
                wanted
            });
        Self {
            findings,
            wanted,
            _alive: alive,
        }
    }

    /// What was found, also by the calls of the model.
    pub fn findings(&self) -> Arc<Findings> {
        Arc::clone(&self.findings)
    }

    /// Whether [`Self::looker`] does anything.
    pub const fn are_on(&self) -> bool {
        self.wanted.is_some()
    }

    /// Wants files to be looked at, once what runs has ended; of several wishes the last one holds.
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

/// Whether the model could have checkers run and nobody would be asked.
fn may_run(setup: &Setup) -> bool {
    let settings = &setup.settings;
    let tool = &read_lints::TOOL;
    let is_on = settings.tools.get(tool.name).is_none_or(|it| it.enabled);
    is_on && setup.asker.is_attended() && setup.tools.contains(&tool) && !offer::must_ask(settings, tool)
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

/// The files that may be looked at without a question.
fn files(look: &Look, workspace: &Workspace, settings: &Settings) -> BTreeSet<PathBuf> {
    let (rules, _) = Rules::read(settings, std::env::home_dir().as_deref());
    let facts = Facts {
        mode: Mode::Agent,
        run: RunMode::parse(&settings.approvals.run),
        tier: Tier::None,
        rules: &rules,
        is_attended: true,
        // Files are read here, and no command is judged.
        is_halted: false,
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
            && offer::out_of_bounds(settings, &read_lints::TOOL, &access).is_none()
    });
    allowed.map(|it| it.path).collect()
}
