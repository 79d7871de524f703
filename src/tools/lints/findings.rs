//! What checkers have found in a conversation, as long as the files are what they were then.
//!
//! Whoever has a checker run, the model or the program itself, leaves here what it said; whoever tells the model how things
//! stand takes from here what still holds. Nothing here runs anything.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::{Path, PathBuf},
    sync::{Mutex, MutexGuard, PoisonError},
    time::{Duration, SystemTime},
};

use super::{
    Diagnostic, Severity,
    checkers::{CheckJob, Reach},
};
use crate::lsp::Found;

/// Diagnostics that are kept of one run.
const MOST_KEPT: usize = 1000;

/// The memory of one conversation.
#[derive(Debug, Default)]
pub struct Findings(Mutex<BTreeMap<Checker, LastRun>>);

/// A checker in a folder.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Checker {
    name: String,
    folder: PathBuf,
}

impl Checker {
    /// The checker of a job.
    pub fn of(job: &CheckJob) -> Self {
        Self {
            name: job.name.clone(),
            folder: job.directory.clone(),
        }
    }

    /// A checker of this name, for tests.
    #[cfg(test)]
    pub fn named(name: &str, folder: &Path) -> Self {
        Self {
            name: name.to_owned(),
            folder: folder.to_owned(),
        }
    }
}

#[derive(Debug, Default)]
struct LastRun {
    /// The files it has checked, as they were then; `None`: the file did not exist.
    files: BTreeMap<PathBuf, Option<Print>>,
    found: Vec<(Print, Diagnostic)>,
    /// Files of which more was found than is kept.
    partial: BTreeSet<PathBuf>,
    /// The time that the last run took.
    took: Option<Duration>,
    /// When the last run began that has not failed.
    began: Option<SystemTime>,
}

/// The last output of a checker of a whole project.
#[derive(Clone, Debug, Default)]
pub struct EarlierRun {
    /// `None`: it has not run.
    began: Option<SystemTime>,
    found: BTreeMap<PathBuf, Vec<Diagnostic>>,
    partial: BTreeSet<PathBuf>,
}

impl EarlierRun {
    pub fn has_run(&self) -> bool {
        self.began.is_some()
    }

    /// Files with problems.
    pub fn files(&self) -> impl Iterator<Item = &Path> {
        self.found.keys().map(PathBuf::as_path)
    }

    /// All its errors.
    pub fn errors(&self) -> Vec<Diagnostic> {
        let all = self.found.values().flatten();
        all.filter(|it| it.severity == Severity::Error).cloned().collect()
    }

    /// The problems of a file then; `None` if they are not known, or of another text than the file has now.
    pub fn of(&self, file: &Path) -> Option<&[Diagnostic]> {
        let began = self.began.filter(|_| !self.partial.contains(file))?;
        print(file).filter(|it| it.0 <= began)?;
        Some(self.found.get(file).map_or(&[], Vec::as_slice))
    }
}

/// Tells a file from a changed one without reading it: time and length.
type Print = (SystemTime, u64);

impl LastRun {
    /// Returns true if it was about the file as it is `now`.
    fn has_checked(&self, file: &Path, now: Option<Print>) -> bool {
        now.is_some() && self.files.get(file).is_some_and(|it| *it == now)
    }
}

impl Findings {
    /// Takes the output of a run that began at `began`: it replaces the checker's earlier diagnostics of these files.
    pub fn take(&self, job: &CheckJob, began: SystemTime, found: &[Diagnostic]) {
        let mut all = self.lock();
        let said = all.entry(Checker::of(job)).or_default();
        said.took = began.elapsed().ok();
        said.began = Some(began);
        match job.reach {
            // It has looked at everything: what it does not say any more does not hold.
            Reach::Whole | Reach::Own => {
                said.found.clear();
                said.partial.clear();
            }
            Reach::Named => {
                said.found.retain(|(_, it)| !job.files.contains(&it.file));
                said.partial.retain(|it| !job.files.contains(it));
            }
        }
        said.partial
            .extend(found.iter().skip(MOST_KEPT).map(|it| it.file.clone()));
        for file in &job.files {
            // What was changed while it was looked at has to be looked at again.
            let print = print(file).filter(|it| it.0 <= began);
            said.files.insert(file.clone(), print);
        }
        for it in found.iter().take(MOST_KEPT) {
            if let Some(print) = print(&it.file).filter(|it| it.0 <= began) {
                said.found.push((print, it.clone()));
            }
        }
    }

    /// Notes how long a run took that has failed. What the checker found before still stands.
    pub fn failed(&self, job: &CheckJob, began: SystemTime) {
        self.lock().entry(Checker::of(job)).or_default().took = began.elapsed().ok();
    }

    /// Takes what language servers have found since `began`: each replaces its earlier diagnostics of the files that it has looked
    /// at.
    pub fn take_all(&self, found: &Found, began: SystemTime) {
        for (name, files) in found {
            let job = CheckJob {
                // No checker has such a name.
                name: format!("{name} (language server)"),
                line: String::new(),
                directory: PathBuf::new(),
                files: files.keys().cloned().collect(),
                reach: Reach::Named,
            };
            let found: Vec<Diagnostic> = files.values().flatten().cloned().collect();
            self.take(&job, began, &found);
        }
    }

    /// Returns the last output of a checker of a whole project; nothing for another one, which looks at the named files only.
    pub fn earlier(&self, job: &CheckJob) -> EarlierRun {
        let all = self.lock();
        let Some(said) = all.get(&Checker::of(job)).filter(|_| job.reach == Reach::Whole) else {
            return EarlierRun::default();
        };
        let mut found: BTreeMap<PathBuf, Vec<Diagnostic>> = BTreeMap::new();
        for (_, it) in said.found.iter().filter(|it| it.1.severity != Severity::Info) {
            found.entry(it.file.clone()).or_default().push(it.clone());
        }
        EarlierRun {
            began: said.began,
            found,
            partial: said.partial.clone(),
        }
    }

    /// Returns true if the checker has run here before.
    pub fn knows(&self, job: &CheckJob) -> bool {
        self.lock().contains_key(&Checker::of(job))
    }

    /// Returns true if a run of the checker has ended here, well or not.
    pub fn has_run(&self, job: &CheckJob) -> bool {
        self.lock().get(&Checker::of(job)).is_some_and(|it| it.took.is_some())
    }

    /// Returns true if the checker is likely to answer `within` this time: it did the last time, or it has not run yet
    /// and need not build a project first.
    pub fn is_quick(&self, job: &CheckJob, within: Duration) -> bool {
        let all = self.lock();
        match all.get(&Checker::of(job)).and_then(|it| it.took) {
            Some(took) => took <= within,
            None => job.reach != Reach::Whole,
        }
    }

    /// All diagnostics of a file by checker, from those that have checked it as it is now.
    pub fn standing(&self, file: &Path) -> BTreeMap<Checker, Vec<Diagnostic>> {
        let all = self.lock();
        let now = print(file);
        let current = all
            .iter()
            .filter(|(_, it)| it.has_checked(file, now) && !it.partial.contains(file));
        let found = |said: &LastRun| {
            let own = said.found.iter().filter(|(_, it)| it.file == file);
            own.map(|(_, it)| it.clone()).collect()
        };
        current.map(|(checker, said)| (checker.clone(), found(said))).collect()
    }

    /// Returns true if something has checked the file as it is.
    pub fn has_checked(&self, file: &Path) -> bool {
        let now = print(file);
        self.lock().values().any(|it| it.has_checked(file, now))
    }

    /// Returns true if nothing has changed since the checker last ran.
    pub fn is_current(&self, job: &CheckJob) -> bool {
        let all = self.lock();
        let Some(said) = all.get(&Checker::of(job)) else {
            return false;
        };
        job.files.iter().all(|it| {
            said.files
                .get(it)
                .is_some_and(|before| before.is_some() && *before == print(it))
        })
    }

    /// The diagnostics of the files that `wanted` accepts that still hold, by file, from the first line to the last.
    pub fn of(&self, wanted: &dyn Fn(&Path) -> bool) -> Vec<Diagnostic> {
        let all = self.lock();
        let found = all.values().flat_map(|it| &it.found);
        let held = found.filter(|(before, it)| wanted(&it.file) && print(&it.file).as_ref() == Some(before));
        let mut held: Vec<_> = held.map(|(_, it)| it.clone()).collect();
        held.sort_by(|a, b| (&a.file, a.line, a.column, a.severity).cmp(&(&b.file, b.line, b.column, b.severity)));
        // Two checkers may say the same of a place.
        held.dedup_by(|a, b| (&a.file, a.line, &a.message) == (&b.file, b.line, &b.message));
        held
    }

    /// The diagnostics of one run of a checker, for tests.
    #[cfg(test)]
    pub fn holding(found: &[Diagnostic]) -> Self {
        let findings = Self::default();
        let job = CheckJob {
            name: "checker".to_owned(),
            line: "checker".to_owned(),
            directory: PathBuf::new(),
            files: found.iter().map(|it| it.file.clone()).collect(),
            reach: Reach::Whole,
        };
        findings.take(&job, SystemTime::now() + std::time::Duration::from_secs(1), found);
        findings
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<Checker, LastRun>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn print(file: &Path) -> Option<Print> {
    let about = std::fs::metadata(file).ok()?;
    Some((about.modified().ok()?, about.len()))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use pretty_assertions::assert_eq;

    use super::{super::Severity, *};

    fn job(name: &str, root: &Path, files: &[&str], reach: Reach) -> CheckJob {
        CheckJob {
            name: name.to_owned(),
            line: name.to_owned(),
            directory: root.to_owned(),
            files: files.iter().map(|it| root.join(it)).collect(),
            reach,
        }
    }

    fn at(root: &Path, file: &str, line: u64) -> Diagnostic {
        Diagnostic {
            file: root.join(file),
            line,
            column: 1,
            severity: Severity::Error,
            message: format!("no {line}"),
            source: "x".to_owned(),
            code: None,
        }
    }

    #[test]
    fn what_was_found_holds_until_its_file_or_its_checker_says_otherwise() {
        let folder = tempfile::tempdir().expect("a folder");
        let root = folder.path();
        for name in ["a.py", "b.py", "c.py"] {
            fs::write(root.join(name), "1\n").expect("a file");
        }
        let later = || SystemTime::now() + Duration::from_secs(1);
        let shown = |findings: &Findings| {
            let found = findings.of(&|_| true);
            let name = |it: &Diagnostic| it.file.file_name().map(|it| it.to_string_lossy().into_owned());
            found
                .iter()
                .map(|it| format!("{}:{}", name(it).unwrap_or_default(), it.line))
                .collect::<Vec<_>>()
        };
        let findings = Findings::default();
        let named = job("ruff", root, &["a.py", "b.py"], Reach::Named);
        assert!(!findings.knows(&named) && !findings.is_current(&named));
        findings.take(
            &named,
            later(),
            &[at(root, "b.py", 2), at(root, "a.py", 7), at(root, "a.py", 3)],
        );
        assert_eq!(shown(&findings), ["a.py:3", "a.py:7", "b.py:2"]);
        assert!(findings.knows(&named) && findings.is_current(&named));
        // Only of what is wanted.
        assert_eq!(findings.of(&|it| it.ends_with("b.py")).len(), 1);
        // Of one of its files it says something new.
        findings.take(&job("ruff", root, &["a.py"], Reach::Named), later(), &[]);
        assert_eq!(shown(&findings), ["b.py:2"]);
        // The other one is changed: where its mistakes are now, nobody knows.
        fs::write(root.join("b.py"), "changed\n").expect("a file");
        assert_eq!(shown(&findings), Vec::<String>::new());
        assert!(!findings.is_current(&named));
        // What looks at everything replaces all that it has said.
        let whole = job("mypy", root, &["a.py"], Reach::Whole);
        findings.take(&whole, later(), &[at(root, "a.py", 1), at(root, "c.py", 1)]);
        findings.take(&whole, later(), &[at(root, "c.py", 2)]);
        assert_eq!(shown(&findings), ["c.py:2"]);
        // What was changed after the run had begun was perhaps not seen.
        let before = SystemTime::UNIX_EPOCH;
        findings.take(&whole, before, &[at(root, "c.py", 2)]);
        assert_eq!(shown(&findings), Vec::<String>::new());
        assert!(findings.knows(&whole) && !findings.is_current(&whole));
        // A file that is gone has no mistakes.
        findings.take(&whole, later(), &[at(root, "c.py", 2)]);
        fs::remove_file(root.join("c.py")).expect("it was there");
        assert_eq!(shown(&findings), Vec::<String>::new());
    }

    #[test]
    fn a_checker_that_was_slow_is_not_quick_and_one_that_builds_is_not_tried() {
        let folder = tempfile::tempdir().expect("a folder");
        let root = folder.path();
        fs::write(root.join("a.py"), "1\n").expect("a file");
        let findings = Findings::default();
        let moment = Duration::from_secs(1);
        let named = job("ruff", root, &["a.py"], Reach::Named);
        let whole = job("mypy", root, &["a.py"], Reach::Whole);
        assert!(findings.is_quick(&named, moment) && !findings.is_quick(&whole, moment));
        let ago = |seconds: u64| SystemTime::now() - Duration::from_secs(seconds);
        findings.take(&named, ago(5), &[]);
        findings.take(&whole, ago(0), &[]);
        assert!(!findings.is_quick(&named, moment) && findings.is_quick(&whole, moment));
    }

    #[test]
    fn what_stands_is_what_was_said_of_the_file_as_it_is() {
        let folder = tempfile::tempdir().expect("a folder");
        let root = folder.path();
        for name in ["a.py", "b.py"] {
            fs::write(root.join(name), "1\n").expect("a file");
        }
        let findings = Findings::default();
        let later = || SystemTime::now() + Duration::from_secs(1);
        let ruff = job("ruff", root, &["a.py", "b.py"], Reach::Named);
        findings.take(&ruff, later(), &[at(root, "b.py", 2)]);
        findings.take(&job("mypy", root, &["b.py"], Reach::Whole), later(), &[]);
        let shown = |name: &str| -> Vec<(String, usize)> {
            let standing = findings.standing(&root.join(name));
            standing.into_iter().map(|(it, found)| (it.name, found.len())).collect()
        };
        assert_eq!(shown("a.py"), [("ruff".to_owned(), 0)]);
        assert_eq!(shown("b.py"), [("mypy".to_owned(), 0), ("ruff".to_owned(), 1)]);
        fs::write(root.join("b.py"), "changed\n").expect("a file");
        assert_eq!(shown("b.py"), []);
        assert_eq!(shown("gone.py"), []);
    }

    #[test]
    fn of_a_file_of_which_not_all_is_kept_it_is_not_known_what_stands() {
        let folder = tempfile::tempdir().expect("a folder");
        let root = folder.path();
        for name in ["a.py", "b.py"] {
            fs::write(root.join(name), "1\n").expect("a file");
        }
        let findings = Findings::default();
        let whole = job("mypy", root, &["a.py", "b.py"], Reach::Whole);
        let later = || SystemTime::now() + Duration::from_secs(1);
        let mut found = vec![at(root, "a.py", 1)];
        found.extend((0..MOST_KEPT as u64).map(|line| at(root, "b.py", line)));
        let known = || ["a.py", "b.py"].map(|it| findings.standing(&root.join(it)).len());
        findings.take(&whole, later(), &found);
        assert_eq!(known(), [1, 0]);
        assert!(findings.has_checked(&root.join("b.py")) && findings.is_current(&whole));
        findings.take(&whole, later(), &found[..MOST_KEPT]);
        assert_eq!(known(), [1, 1]);
    }
}
