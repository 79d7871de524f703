//! The problems in the files of a conversation, for the page that lists them.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    sync::Arc,
    time::{Duration, SystemTime},
};

use super::checks::allowed;
use crate::{
    config::Settings,
    lsp::{Around, Diagnostic, LanguageServers, Severity},
    protocol::{ProblemEntry, ProblemsReport},
    sandbox::{Place, Workspace},
    text::language::language_of,
    tools::{
        lints::{Findings, checkers::CHECKERS},
        read_lints,
    },
};

/// Time that language servers have: one may have to read the project first.
const PATIENCE: Duration = Duration::from_secs(10);
/// Files that are looked at.
const MOST_FILES: usize = 40;
/// Problems that are listed.
const MOST_LISTED: usize = 500;

/// Everything that knows of problems.
pub struct Sources {
    pub workspace: Arc<Workspace>,
    pub settings: Arc<Settings>,
    pub servers: Arc<LanguageServers>,
    pub findings: Arc<Findings>,
    /// The files that the conversation has changed, and others that it knows.
    pub changed: Vec<PathBuf>,
    pub known: Vec<PathBuf>,
}

/// Has language servers look at the files, and adds what checkers have found in them.
pub async fn find(sources: Sources) -> ProblemsReport {
    let workspace = &sources.workspace;
    let is_inside = |it: &PathBuf| {
        let located = workspace.located(it);
        located.is_ok_and(|it| matches!(it.place, Place::Inside | Place::Added) && it.path.is_file())
    };
    // Those that import a changed file may be broken by it.
    let (changed, place) = (sources.changed.clone(), Arc::clone(workspace));
    let settings = Arc::clone(&sources.settings);
    let importers = tokio::task::spawn_blocking(move || {
        let changed: Vec<&Path> = changed.iter().map(PathBuf::as_path).collect();
        read_lints::dependents(&place, &changed, &allowed(&place, &settings)).files
    });
    let importers = importers.await.unwrap_or_default();
    let mut files: Vec<PathBuf> = Vec::new();
    for file in sources.changed.into_iter().chain(importers).chain(sources.known) {
        if files.len() < MOST_FILES && !files.contains(&file) && is_inside(&file) {
            files.push(file);
        }
    }
    let around = Around {
        workspace,
        settings: &sources.settings,
    };
    let began = SystemTime::now();
    let look = sources.servers.look(around, files.clone(), PATIENCE).await;
    sources.findings.take_all(&look.found, began);
    let mut found: Vec<Diagnostic> = look
        .found
        .into_values()
        .flat_map(BTreeMap::into_values)
        .flatten()
        .collect();
    let known = sources.findings.of(&|file| files.iter().any(|it| it == file));
    // A server and a checker often report one mistake of a place, in other words.
    let place = |it: &Diagnostic| (it.file.clone(), it.line, it.column);
    let is_new = |it: &Diagnostic| !found.iter().any(|old| place(old) == place(it));
    let more: Vec<Diagnostic> = known.into_iter().filter(is_new).collect();
    found.extend(more);
    found.retain(|it| it.severity != Severity::Info);
    found.sort_by(|a, b| (a.severity, &a.file, a.line, a.column).cmp(&(b.severity, &b.file, b.line, b.column)));
    let shown = |it: &Diagnostic| {
        let located = workspace.located(&it.file);
        located.map_or_else(|_| it.file.display().to_string(), |it| it.shown)
    };
    let entry = |it: &Diagnostic| ProblemEntry {
        path: shown(it),
        line: it.line,
        column: it.column,
        is_error: it.severity == Severity::Error,
        message: it.message.clone(),
        source: it.source.clone(),
    };
    let place = |file: &PathBuf| {
        let located = workspace.located(file);
        located.map_or_else(|_| file.display().to_string(), |it| it.shown)
    };
    let mut unchecked: Vec<String> = Vec::new();
    for (why, files) in &look.unchecked {
        unchecked.push(format!("{why} ({})", read_lints::listed(files, place)));
    }
    // Nothing is known of what nobody has looked at; of prose nobody expects it where something was looked at.
    let is_seen = |it: &PathBuf| look.checked.contains(it) || sources.findings.has_checked(it);
    let has_seen = files.iter().any(is_seen);
    let is_code = |it: &PathBuf| {
        let language = language_of(&it.to_string_lossy());
        CHECKERS.iter().any(|it| it.languages.contains(&language)) || sources.settings.lint.contains_key(language)
    };
    let is_missed = |it: &&PathBuf| {
        let has_reason = || look.unchecked.values().any(|files| files.contains(*it));
        !is_seen(it) && !has_reason() && (is_code(it) || !has_seen)
    };
    let missed: Vec<&PathBuf> = files.iter().filter(is_missed).collect();
    if !missed.is_empty() {
        unchecked.push(format!(
            "no checker or language server for them ({})",
            read_lints::listed(missed, place)
        ));
    }
    ProblemsReport {
        problems: found.iter().take(MOST_LISTED).map(entry).collect(),
        unchecked,
    }
}

#[cfg(test)]
mod tests {
    use std::{collections::BTreeSet, fs};

    use pretty_assertions::assert_eq;

    use super::*;

    #[tokio::test]
    async fn what_nobody_has_looked_at_is_not_free_of_problems() {
        let top = tempfile::tempdir().expect("a folder");
        let root = top.path().canonicalize().expect("a folder");
        let files = ["a.py", "b.py", "notes.md"].map(|it| root.join(it));
        for file in &files {
            fs::write(file, "").expect("written");
        }
        let findings = Arc::new(Findings::default());
        let sources = || Sources {
            workspace: Arc::new(Workspace::open(&root).expect("a workspace")),
            settings: Arc::default(),
            servers: Arc::new(LanguageServers::off()),
            findings: Arc::clone(&findings),
            changed: files.to_vec(),
            known: Vec::new(),
        };
        let unchecked = find(sources()).await.unchecked;
        assert_eq!(
            unchecked,
            ["no checker or language server for them (a.py, b.py, notes.md)"]
        );
        let looked_at = BTreeMap::from([(files[0].clone(), Vec::new())]);
        let later = SystemTime::now() + Duration::from_secs(1);
        findings.take_all(&BTreeMap::from([("ty".to_owned(), looked_at)]), later);
        let report = find(sources()).await;
        assert_eq!(report.unchecked, ["no checker or language server for them (b.py)"]);
        assert_eq!(report.problems.len(), 0);
        let all: BTreeSet<_> = files.into_iter().filter(|it| findings.has_checked(it)).collect();
        assert_eq!(all, BTreeSet::from([root.join("a.py")]));
    }
}
