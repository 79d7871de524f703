//! What checkers say of a file that a tool has just changed, where they can say it in a moment.
//!
//! Only what is new is told, as far as it is known what a checker said of the file before.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::PathBuf,
    time::Duration,
};

use super::{check, is_installed};
use crate::{
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

/// The known mistakes of files before they were changed.
#[derive(Clone, Debug, Default)]
pub struct KnownMistakes {
    /// Canonical, and whether the change makes the file.
    files: Vec<(PathBuf, bool)>,
    /// By the checkers that had looked at the files as they were.
    said: BTreeMap<PathBuf, BTreeMap<Checker, Vec<Diagnostic>>>,
}

impl KnownMistakes {
    /// `None` where no checker would look at any of the files.
    pub fn of(files: impl Iterator<Item = (PathBuf, bool)>, context: &Context) -> Option<Self> {
        let is_checked = |(file, _): &(PathBuf, bool)| {
            let language = language_of(&file.to_string_lossy());
            let is_known = CHECKERS.iter().any(|it| it.languages.contains(&language));
            is_known || context.settings.lint.contains_key(language)
        };
        let files: Vec<_> = files.filter(is_checked).collect();
        if files.is_empty() || !context.workspace.may_act() {
            return None;
        }
        let said = files.iter().map(|(it, _)| (it.clone(), context.findings.standing(it)));
        Some(Self {
            said: said.collect(),
            files,
        })
    }

    /// The files, absolute.
    pub fn files(&self) -> impl Iterator<Item = &PathBuf> {
        self.files.iter().map(|it| &it.0)
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

/// Has the checkers look at those of the changed files that they may (`files`), as far as they are likely to answer
/// `within` a moment: what was slow the last time is not asked. Nothing runs in a workspace that may not act, or without a
/// sandbox.
pub async fn look_at_changed(
    known: &KnownMistakes,
    files: &BTreeSet<PathBuf>,
    within: Duration,
    context: &Context,
) -> Vec<FileReport> {
    if !context.workspace.may_act() || Commands::tier() == Tier::None {
        return Vec::new();
    }
    let plan = jobs(context.workspace.root(), files, &context.settings.lint, &is_installed());
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
    let mut all: Vec<_> = all.into_values().collect();
    for said in &mut all {
        said.found.sort_by_key(|it| (it.severity, it.line, it.column));
    }
    all
}

/// The mistakes that are in `after` and not in `before`, on whatever line.
fn added(before: &[Diagnostic], after: Vec<Diagnostic>) -> Vec<Diagnostic> {
    fn same(it: &Diagnostic) -> (Severity, Option<&str>, &str) {
        (it.severity, it.code.as_deref(), &it.message)
    }
    let mut left: Vec<_> = before.iter().map(same).collect();
    let is_new = |it: &Diagnostic| match left.iter().position(|old| *old == same(it)) {
        Some(at) => {
            left.swap_remove(at);
            false
        }
        None => true,
    };
    let mut is_new = is_new;
    after.into_iter().filter(|it| is_new(it)).collect()
}

#[cfg(test)]
mod tests {
    use pretty_assertions::assert_eq;

    use super::*;

    #[test]
    fn what_was_there_before_is_not_new_wherever_it_stands_now() {
        let at = |line: u64, message: &str| Diagnostic {
            file: "a.py".into(),
            line,
            column: 1,
            severity: Severity::Error,
            message: message.to_owned(),
            source: "ruff".to_owned(),
            code: None,
        };
        let before = [at(1, "unused"), at(4, "undefined")];
        let after = vec![
            at(3, "unused"),
            at(6, "undefined"),
            at(9, "undefined"),
            at(12, "too long"),
        ];
        assert_eq!(added(&before, after), [at(9, "undefined"), at(12, "too long")]);
        assert_eq!(added(&before, Vec::new()), []);
    }
}
