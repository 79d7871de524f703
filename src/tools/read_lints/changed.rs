//! What checkers say of a file that a tool has just changed, where they can say it in a moment.
//!
//! Only what is new is told, as far as it is known what a checker said of the file before.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::{Path, PathBuf},
    pin::pin,
    time::Duration,
};

use tokio::time::Instant;

use super::{check, dependents, is_installed};
use crate::{
    lsp::{Comparison, Edit, LanguageServers, added},
    sandbox::{Commands, Tier},
    text::language::language_of,
    tools::{
        lints::{
            Diagnostic, Severity,
            checkers::{CHECKERS, jobs},
            findings::Checker,
        },
        tool::Context,
    },
};

/// Time that is kept for what comes after an answer.
const SPARE: Duration = Duration::from_millis(50);

/// The known mistakes of files before they were changed, and how they are changed.
#[derive(Clone, Debug, Default)]
pub struct KnownMistakes {
    /// The files that a checker looks at: canonical, and whether the change makes the file.
    files: Vec<(PathBuf, bool)>,
    /// By the checkers that had looked at the files as they were.
    said: BTreeMap<PathBuf, BTreeMap<Checker, Vec<Diagnostic>>>,
    /// The changes that a language server looks at.
    edits: Vec<Edit>,
}

impl KnownMistakes {
    /// `None` where nothing would look at any of the files.
    pub fn of(edits: Vec<Edit>, context: &Context) -> Option<Self> {
        if !context.workspace.may_act() {
            return None;
        }
        let is_checked = |file: &PathBuf| {
            let language = language_of(&file.to_string_lossy());
            let is_known = CHECKERS.iter().any(|it| it.languages.contains(&language));
            is_known || context.settings.lint.contains_key(language)
        };
        let files = edits.iter().filter(|it| it.new.is_some() && is_checked(&it.file));
        let files: Vec<_> = files.map(|it| (it.file.clone(), it.old.is_none())).collect();
        let said = files.iter().map(|(it, _)| (it.clone(), context.findings.standing(it)));
        let said = said.collect();
        let is_served = |it: &Edit| LanguageServers::knows(&context.workspace, &context.settings, &it.file);
        let edits: Vec<Edit> = edits.into_iter().filter(is_served).collect();
        (!files.is_empty() || !edits.is_empty()).then_some(Self { files, said, edits })
    }

    /// The files that are still there, absolute.
    pub fn files(&self) -> BTreeSet<PathBuf> {
        let edited = self.edits.iter().filter(|it| it.new.is_some()).map(|it| &it.file);
        self.files.iter().map(|it| &it.0).chain(edited).cloned().collect()
    }
}

/// The report about a changed file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileReport {
    pub file: PathBuf,
    /// Errors and warnings, the worst first.
    pub found: Vec<Diagnostic>,
    /// None of it was there before the change, as far as checkers had looked.
    pub is_new: bool,
}

/// The report about a change.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ChangeReport {
    /// Files with problems, those that depend on the changed ones included.
    pub files: Vec<FileReport>,
    /// Number of problems that the change removed, as far as a language server knows.
    pub fixed: usize,
    /// Something has looked at the change.
    pub is_checked: bool,
    /// Why files were not looked at, each reason once.
    pub unchecked: BTreeSet<String>,
}

/// Has the language servers and the checkers look at those of the changed files that they may (`files`), as far as they are
/// likely to answer `within` a moment: what was slow the last time is not asked. `say` takes the report as soon as it is whole,
/// or at the end of the time as far as it is known; a checker that is slower goes on. Nothing runs in a workspace that may not
/// act, or without a sandbox.
pub async fn look_at_changed(
    known: &KnownMistakes,
    files: &BTreeSet<PathBuf>,
    within: Duration,
    context: &Context,
    say: impl FnOnce(ChangeReport),
) {
    if !context.workspace.may_act() || Commands::tier() == Tier::None {
        return say(ChangeReport::default());
    }
    let late = Instant::now() + within.saturating_sub(SPARE);
    let mut servers = pin!(ask_servers(known, files, within.saturating_sub(SPARE * 2), context));
    let mut checkers = pin!(ask_checkers(known, files, within, context));
    let (mut report, mut found) = (None, None);
    while report.is_none() || found.is_none() {
        tokio::select! {
            it = &mut servers, if report.is_none() => report = Some(it),
            it = &mut checkers, if found.is_none() => found = Some(it),
            () = tokio::time::sleep_until(late) => break,
        }
    }
    let is_over = found.is_some();
    say(joined(report.unwrap_or_default(), found));
    if !is_over {
        checkers.await;
    }
}

/// Both reports as one. `checkers`: `None` if they have not answered.
fn joined(mut report: ChangeReport, checkers: Option<Vec<FileReport>>) -> ChangeReport {
    for FileReport { file, found, is_new } in checkers.into_iter().flatten() {
        report.is_checked = true;
        match report.files.iter_mut().find(|it| it.file == file) {
            Some(same) => {
                // A server and a checker often report one mistake of a place, in other words.
                let place = |it: &Diagnostic| (it.severity, it.line, it.column);
                let is_known = |it: &Diagnostic| same.found.iter().any(|old| place(old) == place(it));
                let more: Vec<_> = found.into_iter().filter(|it| !is_known(it)).collect();
                same.is_new &= is_new || more.is_empty();
                same.found.extend(more);
            }
            None => report.files.push(FileReport { file, found, is_new }),
        }
    }
    for said in &mut report.files {
        said.found.sort_by_key(|it| (it.severity, it.line, it.column));
    }
    report
}

async fn ask_servers(
    known: &KnownMistakes,
    files: &BTreeSet<PathBuf>,
    within: Duration,
    context: &Context,
) -> ChangeReport {
    let edits = known
        .edits
        .iter()
        .filter(|it| it.new.is_none() || files.contains(&it.file));
    let edits: Vec<Edit> = edits.cloned().collect();
    if edits.is_empty() {
        return ChangeReport::default();
    }
    let began = Instant::now();
    let changed: Vec<&Path> = edits.iter().map(|it| it.file.as_path()).collect();
    let others = dependents(&context.workspace, &changed);
    let within = within.saturating_sub(began.elapsed());
    let asked = context
        .servers
        .compare(&context.workspace, &context.settings, edits, others, within);
    let Comparison {
        new,
        unknown,
        fixed,
        checked,
        unchecked,
    } = asked.await;
    let files = new.into_iter().map(|(file, found)| FileReport {
        is_new: !unknown.contains(&file),
        file,
        found,
    });
    ChangeReport {
        files: files.collect(),
        fixed,
        is_checked: !checked.is_empty(),
        unchecked: unchecked.into_values().collect(),
    }
}

async fn ask_checkers(
    known: &KnownMistakes,
    files: &BTreeSet<PathBuf>,
    within: Duration,
    context: &Context,
) -> Vec<FileReport> {
    let files: BTreeSet<PathBuf> = files
        .iter()
        .filter(|it| known.said.contains_key(*it))
        .cloned()
        .collect();
    let plan = jobs(
        context.workspace.root(),
        &files,
        &context.settings.lint,
        &is_installed(),
    );
    let mut all: BTreeMap<PathBuf, FileReport> = BTreeMap::new();
    for job in plan.jobs {
        if !context.findings.is_quick(&job, within) {
            continue;
        }
        // Nobody has asked, so nobody is told that it did not work.
        let Ok((found, _)) = check(&job, context).await else {
            continue;
        };
        for (file, is_made) in known.files.iter().filter(|it| job.files.contains(&it.0)) {
            let before = known.said.get(file).and_then(|it| it.get(&Checker::of(&job)));
            let own: Vec<Diagnostic> = found
                .iter()
                .filter(|it| it.file == *file && it.severity != Severity::Info)
                .cloned()
                .collect();
            let new = match before {
                Some(before) => added(before, own),
                None => own,
            };
            if new.is_empty() {
                continue;
            }
            let said = all.entry(file.clone()).or_insert_with(|| FileReport {
                file: file.clone(),
                found: Vec::new(),
                is_new: true,
            });
            said.is_new &= *is_made || before.is_some();
            said.found.extend(new);
        }
    }
    all.into_values().collect()
}

#[cfg(test)]
mod tests {
    use pretty_assertions::assert_eq;

    use super::*;

    #[test]
    fn what_a_server_knows_to_be_new_stays_new_where_a_checker_repeats_it() {
        let at = |line: u64, source: &str| Diagnostic {
            file: "a.py".into(),
            line,
            column: 1,
            severity: Severity::Error,
            message: format!("said by {source}"),
            source: source.to_owned(),
            code: None,
        };
        let of = |found: Vec<Diagnostic>, is_new| FileReport {
            file: "a.py".into(),
            found,
            is_new,
        };
        let server = || ChangeReport {
            files: vec![of(vec![at(2, "ty")], true)],
            ..ChangeReport::default()
        };
        let repeated = joined(server(), Some(vec![of(vec![at(2, "ruff")], false)]));
        assert_eq!(repeated.files, [of(vec![at(2, "ty")], true)]);
        // Something else of unknown age makes it doubtful.
        let more = joined(server(), Some(vec![of(vec![at(9, "ruff")], false)]));
        assert_eq!(more.files, [of(vec![at(2, "ty"), at(9, "ruff")], false)]);
    }
}
