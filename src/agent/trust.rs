//! The files of a workspace that act, and what becomes of the user's answer.
//!
//! A repository is data until the user has said otherwise. The question names everything that would be switched on; it
//! is a line above the draft, holds nobody up, and not to answer it is a no. Keys, addresses, proxies, permissions and the
//! sandbox are no part of it: no file of a repository sets them, trusted or not.

use std::{collections::BTreeMap, sync::Arc};

use crate::{
    agent::prompt::rules::{self, HeldBack, RuleSet, Trust},
    config::{Fingerprint, Paths, Settings, SettingsFile, TrustError, TrustRecord, TrustStore},
    extensions::{
        Surroundings, find_commands, find_modes, find_skills,
        hooks::{Isolation, find_hooks},
        project_styles,
    },
    mcp::PROJECT_FILES,
    os::file,
    protocol::{RuleTrigger, TrustAnswer, TrustAsked, TrustEntry, TrustKind, TrustReport},
    sandbox::Workspace,
    tools::lints::checkers,
};

/// Files that the line of the question names.
const MOST_NAMED: usize = 3;
/// Entries of a workspace that are searched for rules in subfolders.
const MOST_ENTRIES: usize = 20_000;
/// More rules are never asked about at once.
const MOST_RULES: usize = 2000;
/// A longer file defines no servers.
const MOST_SERVER_BYTES: u64 = 4 << 20;
/// In the place of a path, for what is no file of its own.
const CHECKERS: &str = "(checkers)";

/// Something of the workspace that would act.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Acting {
    pub path: String,
    pub kind: TrustKind,
    pub print: Fingerprint,
    /// The user has let a file of this name act, with other content.
    pub is_changed: bool,
}

/// The files of a workspace that take effect by themselves, and which of them the user trusts.
#[derive(Clone, Debug)]
pub struct Standing {
    pub trust: Trust,
    /// Names of the checkers whose markers are in the workspace, trusted or not.
    pub checkers: Vec<String>,
    /// Files that the user has not been asked about; empty: there is nothing to ask.
    pub asked: Vec<Acting>,
    /// Files that have no effect, including those that the user has declined.
    pub shut: Vec<Acting>,
    /// Everything that would act, also what holds already: a yes is one to all of it.
    pub all: Vec<Acting>,
}

/// The trust that holds here without a question.
pub fn trust(settings: &Settings, paths: Option<&Paths>, workspace: &Workspace, is_attended: bool) -> Trust {
    if settings.is_trusted(workspace.root()) {
        return Trust::Whole;
    }
    match paths.filter(|_| is_attended) {
        Some(paths) => Trust::Said(TrustStore::under(&paths.state).record(workspace.root())),
        // Nobody is there to be shown what has changed.
        None => Trust::nobody(),
    }
}

/// Lists the files of a workspace that take effect, and those that would if the user trusted them. Reads files.
pub fn look(workspace: &Arc<Workspace>, trust: Trust, settings: &Settings) -> Standing {
    let mut found = Vec::new();
    if let Some(file) = SettingsFile::of_project(workspace.root()) {
        found.push((
            ".sheaf/config.toml".to_owned(),
            TrustKind::Settings,
            Fingerprint::of(&[file.text.as_bytes()]),
        ));
    }
    let around = Surroundings {
        workspace: Some(workspace.root().to_owned()),
        directory: std::env::current_dir().ok(),
        ..Surroundings::default()
    };
    let nobody = |_: &str, _: &Fingerprint| false;
    let (_, commands) = find_commands(&around, &nobody);
    found.extend(commands.into_iter().map(|it| (it.path, TrustKind::Command, it.print)));
    let skills = find_skills(&around, &nobody).held;
    found.extend(skills.into_iter().map(|it| (it.path, TrustKind::Skill, it.print)));
    let modes = find_modes(&around, &nobody).held;
    found.extend(modes.into_iter().map(|it| (it.path, TrustKind::Mode, it.print)));
    let styles = project_styles(&around).into_iter();
    found.extend(styles.map(|it| (it.path, TrustKind::Rule(RuleTrigger::User), it.print)));
    let hooks = find_hooks(&around, (&[], ""), Isolation::Sandbox, &nobody).held;
    found.extend(hooks.into_iter().map(|it| (it.path, TrustKind::Hooks, it.print)));
    for path in PROJECT_FILES {
        if let Ok(text) = file::read_beneath(workspace.root(), path.as_ref(), MOST_SERVER_BYTES) {
            found.push((path.to_owned(), TrustKind::Servers, Fingerprint::of(&[&text])));
        }
    }
    let held = RuleSet::load(workspace, Trust::nobody()).held_back().to_vec();
    let deeper = rules::deeper(workspace, MOST_ENTRIES);
    for rule in held.into_iter().chain(deeper).take(MOST_RULES) {
        let HeldBack { path, kind, print } = rule;
        found.push((path, TrustKind::Rule(kind.trigger()), print));
    }
    let checkers = checkers::checkers(workspace, settings);
    if !checkers.is_empty() {
        let print: Vec<&[u8]> = checkers.iter().map(String::as_bytes).collect();
        found.push((
            CHECKERS.to_owned(),
            TrustKind::Checkers(checkers.clone()),
            Fingerprint::of(&print),
        ));
    }
    let said = match &trust {
        Trust::Whole => None,
        Trust::Said(said) => Some(said.clone()),
    };
    // Whoever trusts all of it means checkers of the user's own choice, too.
    let is_checked = found.iter().any(|it| it.0 == CHECKERS && trust.lets(CHECKERS, &it.2));
    if is_checked || matches!(trust, Trust::Whole) {
        workspace.let_act();
    } else {
        workspace.stop_acting();
    }
    let acting = found.into_iter().map(|(path, kind, print)| Acting {
        is_changed: said
            .as_ref()
            .is_some_and(|it| it.is_trusted && it.files.contains_key(&path)),
        path,
        kind,
        print,
    });
    let all: Vec<Acting> = acting.collect();
    let shut = all.iter().filter(|it| !trust.lets(&it.path, &it.print));
    let shut: Vec<Acting> = shut.cloned().collect();
    let asked = shut.iter().filter(|it| !trust.knows(&it.path, &it.print));
    let asked = asked.cloned().collect();
    Standing {
        trust,
        checkers,
        asked,
        shut,
        all,
    }
}

impl Standing {
    /// Returns true if the user trusts all of it by their own answer.
    pub fn is_held(&self) -> bool {
        matches!(&self.trust, Trust::Said(said) if said.is_trusted) && self.shut.is_empty() && !self.all.is_empty()
    }

    /// Returns true if there is something to ask, and it is only checkers.
    pub fn asks_for_checkers_only(&self) -> bool {
        !self.asked.is_empty() && self.asked.iter().all(|it| it.path == CHECKERS && !it.is_changed)
    }

    /// The question, in one line.
    pub fn question(&self) -> TrustAsked {
        let named = self.asked.iter().filter(|it| it.path != CHECKERS);
        TrustAsked {
            paths: named.take(MOST_NAMED).map(|it| it.path.clone()).collect(),
            count: self.asked.len(),
            is_changed: self.asked.iter().any(|it| it.is_changed),
        }
    }

    /// The files that are off; where none is, those that are on by the user's answer.
    pub fn report(&self) -> TrustReport {
        let is_trusted = self.is_held();
        let listed = if is_trusted { &self.all } else { &self.shut };
        let entry = |it: &Acting| TrustEntry {
            path: if it.path == CHECKERS {
                String::new()
            } else {
                it.path.clone()
            },
            kind: it.kind.clone(),
            is_changed: it.is_changed && !is_trusted,
        };
        TrustReport {
            is_trusted,
            entries: listed.iter().map(entry).collect(),
        }
    }

    /// Keeps an answer about exactly these files.
    pub fn keep(&self, answer: TrustAnswer, workspace: &Workspace, paths: &Paths) -> Result<TrustRecord, TrustError> {
        let store = TrustStore::under(&paths.state);
        let prints = |list: &[Acting]| -> BTreeMap<String, Fingerprint> {
            list.iter().map(|it| (it.path.clone(), it.print.clone())).collect()
        };
        match answer {
            TrustAnswer::Trust => store.store(workspace.root(), true, prints(&self.all)),
            TrustAnswer::Distrust => store.store(workspace.root(), false, prints(&self.all)),
            TrustAnswer::Later => store.decline(workspace.root(), prints(&self.shut)),
        }
    }
}
