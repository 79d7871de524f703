//! What language servers and checkers say of the files that a step has changed, where they can say it in a moment.
//!
//! Language servers look at a file before it is changed and after the step; a checker is asked after the step only, and what it
//! said before is known if it had looked at the file as it was. So each problem is new, or of unknown age.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::{Path, PathBuf},
    pin::pin,
    sync::atomic::{AtomicBool, Ordering},
    time::{Duration, SystemTime},
};

use tokio::time::Instant;

use super::{check, check_over, dependents, is_installed};
use crate::{
    lsp::{Comparison, Edit, LATE, Unchecked, added},
    sandbox::{Commands, Tier},
    text::language::language_of,
    tools::{
        lints::{
            Diagnostic, Severity,
            checkers::{CHECKERS, CheckJob, CheckPlan, Reach, jobs},
            findings::{Checker, EarlierRun},
        },
        tool::Context,
    },
};

/// Time that is kept for what comes after an answer.
const SPARE: Duration = Duration::from_millis(50);

/// Languages whose server does not report what only the compiler does, such as a name that is gone.
const INCOMPLETE: [&str; 1] = ["rust"];

/// Returns true for files that may be looked at without a question.
pub type Allowed<'a> = &'a (dyn Fn(&Path) -> bool + Sync);

/// The known mistakes of files before they were changed, and how they are changed.
#[derive(Clone, Debug, Default)]
pub struct KnownMistakes {
    /// The files that a checker looks at, or looked at before they were deleted: canonical.
    files: BTreeMap<PathBuf, KnownFile>,
    /// The changes that a language server looks at.
    edits: Vec<Edit>,
    /// Files of which it was not found out what depends on them.
    unsearched: BTreeSet<PathBuf>,
    /// There may be more files that depend on the others than were found.
    is_cut: bool,
}

/// A file as checkers know it from before it was changed.
#[derive(Clone, Debug)]
struct KnownFile {
    /// The change makes it.
    is_made: bool,
    /// It was moved here from there.
    from: Option<PathBuf>,
    /// By the checkers that had looked at it as it was.
    said: BTreeMap<Checker, Vec<Diagnostic>>,
}

impl KnownMistakes {
    /// Only of the changed files that may be looked at (`allowed`). `None` where nothing would look at any of them.
    pub fn of(edits: Vec<Edit>, allowed: Allowed<'_>, context: &Context) -> Option<Self> {
        if !context.workspace.may_act() {
            return None;
        }
        let is_checked = |file: &PathBuf| {
            let language = language_of(&file.to_string_lossy());
            let is_known = CHECKERS.iter().any(|it| it.languages.contains(&language));
            is_known || context.settings.lint.contains_key(language)
        };
        let edits: Vec<Edit> = edits.into_iter().filter(|it| allowed(&it.file)).collect();
        let known = |it: &Edit| KnownFile {
            is_made: it.is_new && it.from.is_none(),
            from: it.from.clone(),
            said: context.findings.standing(it.from.as_ref().unwrap_or(&it.file)),
        };
        let files = edits.iter().filter(|it| is_checked(&it.file));
        let files: BTreeMap<_, _> = files.map(|it| (it.file.clone(), known(it))).collect();
        let is_served = |it: &Edit| context.servers.knows(&context.workspace, &context.settings, &it.file);
        let edits: Vec<Edit> = edits.into_iter().filter(is_served).collect();
        let unsearched = edits.iter().map(|it| it.file.clone()).collect();
        (!files.is_empty() || !edits.is_empty()).then_some(Self {
            files,
            edits,
            unsearched,
            is_cut: false,
        })
    }

    /// Has the language servers, and checkers that look at named files only, look at the files before they are changed, until then;
    /// `is_first`: nothing of the step has been changed yet. No checker runs while some are `busy`.
    pub async fn look(
        &mut self,
        is_first: bool,
        until: Instant,
        allowed: Allowed<'_>,
        context: &Context,
        busy: &AtomicBool,
    ) {
        let is_served = !self.edits.is_empty();
        let others = if is_served && Instant::now() < until {
            self.search(allowed, context)
        } else {
            Vec::new()
        };
        let changes = (self.edits.clone(), others);
        let serve = async {
            if is_served {
                context.servers.before(context.around(), changes, is_first, until).await;
            }
        };
        futures::join!(serve, self.check(until, context, busy));
        self.note_standing(context);
    }

    /// Takes what checkers have found since in the files as they are.
    fn note_standing(&mut self, context: &Context) {
        for (file, known) in self.files.iter_mut().filter(|it| it.1.from.is_none()) {
            known.said.extend(context.findings.standing(file));
        }
    }

    /// Has checkers look at the files that they have not looked at as they are.
    async fn check(&self, until: Instant, context: &Context, busy: &AtomicBool) {
        let is_there = |it: &(&PathBuf, &KnownFile)| !it.1.is_made && it.1.from.is_none() && it.0.is_file();
        let files: BTreeSet<PathBuf> = self.files.iter().filter(is_there).map(|it| it.0.clone()).collect();
        let plan = jobs(
            context.workspace.root(),
            &files,
            &context.settings.lint,
            &is_installed(),
        );
        let within = until.saturating_duration_since(Instant::now());
        let is_wanted = |job: &CheckJob| {
            let has_said = |it: &PathBuf| {
                self.files
                    .get(it)
                    .is_some_and(|it| it.said.contains_key(&Checker::of(job)))
            };
            job.reach == Reach::Named && context.findings.is_quick(job, within) && !job.files.iter().all(has_said)
        };
        let wanted: Vec<CheckJob> = plan.jobs.into_iter().filter(is_wanted).collect();
        if wanted.is_empty() || Commands::tier() == Tier::None {
            return;
        }
        let Some(_turn) = Turn::take(busy) else { return };
        for job in wanted {
            // What it does not say in time is not known.
            let _ = tokio::time::timeout_at(until, check(&job, context)).await;
        }
    }

    /// The files that depend on those of which it is not known yet. Reads the beginnings of files.
    fn search(&mut self, allowed: Allowed<'_>, context: &Context) -> Vec<PathBuf> {
        let changed: Vec<&Path> = self.unsearched.iter().map(PathBuf::as_path).collect();
        if changed.is_empty() {
            return Vec::new();
        }
        let found = dependents(&context.workspace, &changed, allowed);
        self.unsearched.clear();
        self.is_cut |= found.is_cut;
        found.files
    }

    /// The same with a later change of the same step.
    pub fn and(mut self, later: Self) -> Self {
        for (file, known) in later.files {
            let Some(from) = &known.from else {
                self.files.entry(file).or_insert(known);
                continue;
            };
            // It is what that one was, whatever was here before.
            let before = self.files.get(from).cloned().unwrap_or(known);
            self.files.insert(file, before);
        }
        for edit in later.edits {
            match self.edits.iter_mut().find(|it| it.file == edit.file) {
                Some(same) => same.is_deleted = edit.is_deleted,
                None => self.edits.push(edit),
            }
        }
        self.unsearched.extend(later.unsearched);
        self.is_cut |= later.is_cut;
        self
    }
}

/// The report about a changed file, or one that depends on it: errors and warnings, the worst first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileReport {
    pub file: PathBuf,
    /// They were not there before the change.
    pub new: Vec<Diagnostic>,
    /// They may be older: nothing had looked at the file before.
    pub doubtful: Vec<Diagnostic>,
}

/// The report about the changes of a step.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ChangeReport {
    /// Files with problems, those that depend on the changed ones included.
    pub files: Vec<FileReport>,
    /// Number of problems that the change removed, as far as it is known.
    pub fixed: usize,
    /// Files that were looked at, those that depend on the changed ones included.
    pub checked: BTreeSet<PathBuf>,
    /// All errors and warnings of these files, new or not.
    pub found: BTreeMap<PathBuf, Vec<Diagnostic>>,
    /// Files that were not looked at, by the reason.
    pub unchecked: Unchecked,
}

/// The report of checkers about the files that they look at.
#[derive(Debug, Default)]
struct CheckerReport {
    /// Files that were looked at, clean ones included, with the number of problems that are gone.
    files: Vec<(FileReport, usize)>,
    /// All errors and warnings of these files.
    found: BTreeMap<PathBuf, Vec<Diagnostic>>,
    /// Why no checker has looked at files.
    missed: Vec<(String, PathBuf)>,
}

impl CheckerReport {
    /// Takes what a checker has found in the changed files, and in others if it looks at all.
    fn take(
        &mut self,
        job: &CheckJob,
        found: &[Diagnostic],
        earlier: &EarlierRun,
        known: &KnownMistakes,
        allowed: Allowed<'_>,
    ) {
        for (file, before) in known.files.iter().filter(|it| job.files.contains(it.0)) {
            let (is_made, before) = (before.is_made, before.said.get(&Checker::of(job)));
            let own = found
                .iter()
                .filter(|it| it.file == *file && it.severity != Severity::Info);
            let own: Vec<Diagnostic> = own.cloned().collect();
            let own_all = own.clone();
            let fixed = before.map_or(0, |it| added(&own, it.clone()).len());
            let (new, doubtful) = match before {
                Some(before) => (added(before, own), Vec::new()),
                None if is_made => (own, Vec::new()),
                None => (Vec::new(), own),
            };
            let file = file.clone();
            self.found.entry(file.clone()).or_default().extend(own_all);
            self.files.push((FileReport { file, new, doubtful }, fixed));
        }
        if job.reach == Reach::Whole {
            let is_other = |it: &Path| !known.files.contains_key(it) && allowed(it);
            let others = others(found, earlier, is_other, &mut self.found);
            self.files.extend(others);
        }
    }
}

impl ChangeReport {
    fn file(&mut self, file: &Path) -> &mut FileReport {
        let at = self.files.iter().position(|it| it.file == file);
        let at = at.unwrap_or_else(|| {
            self.files.push(FileReport {
                file: file.to_owned(),
                new: Vec::new(),
                doubtful: Vec::new(),
            });
            self.files.len() - 1
        });
        &mut self.files[at]
    }
}

/// Has the language servers and the checkers look at what a step has changed, as far as they are likely to answer `within` a
/// moment: what was slow the last time is not asked, nor are checkers while some are `busy`. Of the files that depend on them only
/// the `allowed` ones are looked at. `say` takes the report as soon as
/// it is whole, or at the end of the time as far as it is known; a checker that is slower goes on. Nothing runs in a workspace
/// that may not act, or without a sandbox.
pub async fn look_at_changed(
    mut known: KnownMistakes,
    (within, allowed): (Duration, Allowed<'_>),
    context: &Context,
    busy: &AtomicBool,
    say: impl FnOnce(ChangeReport),
) {
    if !context.workspace.may_act() || Commands::tier() == Tier::None {
        return say(ChangeReport::default());
    }
    let late = Instant::now() + within.saturating_sub(SPARE);
    let others = known.search(allowed, context);
    let known = &known;
    let mut servers = pin!(ask_servers(
        known,
        others,
        late.checked_sub(SPARE).unwrap_or(late),
        context
    ));
    let files = known.files.keys().filter(|it| it.is_file()).cloned().collect();
    let (jobs, mut missed) = wanted(&files, within, context);
    let asked: BTreeSet<PathBuf> = jobs.iter().flat_map(|it| it.files.clone()).collect();
    let turn = if jobs.is_empty() { None } else { Turn::take(busy) };
    let may_check = turn.is_some();
    let mut checkers = pin!(async move {
        match turn {
            Some(_turn) => ask_checkers(known, jobs, allowed, context).await,
            None => CheckerReport::default(),
        }
    });
    let (mut report, mut found) = (None, None);
    while report.is_none() || found.is_none() {
        tokio::select! {
            it = &mut servers, if report.is_none() => report = Some(it),
            it = &mut checkers, if found.is_none() => found = Some(it),
            () = tokio::time::sleep_until(late) => break,
        }
    }
    let is_over = found.is_some();
    let mut report = report.unwrap_or_else(|| {
        let files = known.edits.iter().filter(|it| !it.is_deleted).map(|it| it.file.clone());
        ChangeReport {
            unchecked: Unchecked::from([(LATE.to_owned(), files.collect())]),
            ..ChangeReport::default()
        }
    });
    report.unchecked.retain(|_, files| !files.is_empty());
    let mut found = found.unwrap_or_default();
    found.missed.append(&mut missed);
    let why = match (may_check, is_over) {
        (true, true) => None,
        (true, false) => Some("checkers have not answered in time"),
        (false, _) => Some("checkers are still at work on an earlier change"),
    };
    if let Some(why) = why.filter(|_| !asked.is_empty()) {
        report.unchecked.insert(why.to_owned(), asked);
    }
    say(joined(report, found));
    if !is_over {
        checkers.await;
    }
}

/// The turn to run checkers, which nobody else has meanwhile.
struct Turn<'a>(&'a AtomicBool);

impl<'a> Turn<'a> {
    /// `None`: somebody else has it.
    fn take(busy: &'a AtomicBool) -> Option<Self> {
        (!busy.swap(true, Ordering::AcqRel)).then_some(Self(busy))
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        self.0.store(false, Ordering::Release);
    }
}

/// Returns true if the language server of a file does not report all that the compiler does.
fn is_incomplete(file: &Path) -> bool {
    INCOMPLETE.contains(&language_of(&file.to_string_lossy()))
}

/// Both reports as one.
fn joined(mut report: ChangeReport, checkers: CheckerReport) -> ChangeReport {
    // A server and a checker often report one mistake of a place, in other words.
    let place = |it: &Diagnostic| (it.severity, it.line, it.column);
    let served = report.checked.clone();
    let mut fixed_served = 0;
    for (file, found) in checkers.found {
        report.found.entry(file).or_default().extend(found);
    }
    for (FileReport { file, new, doubtful }, fixed) in checkers.files {
        // Of a file that a server has looked at, it has counted what is gone, as far as it reports it.
        if !served.contains(&file) {
            report.fixed += fixed;
        } else if is_incomplete(&file) {
            fixed_served += fixed;
        }
        report.checked.insert(file.clone());
        let same = report.file(&file);
        same.doubtful
            .retain(|it| !new.iter().any(|new| place(new) == place(it)));
        for it in new {
            if !same.new.iter().any(|old| place(old) == place(&it)) {
                same.new.push(it);
            }
        }
        for it in doubtful {
            let mut known = same.new.iter().chain(&same.doubtful);
            if !known.any(|old| place(old) == place(&it)) {
                same.doubtful.push(it);
            }
        }
    }
    report.fixed = report.fixed.max(fixed_served);
    // Where nothing looks at anything, that is no news.
    if !report.checked.is_empty() {
        for (why, file) in checkers.missed {
            if (!report.checked.contains(&file) || is_incomplete(&file))
                && !report.unchecked.values().any(|it| it.contains(&file))
            {
                report.unchecked.entry(why).or_default().insert(file);
            }
        }
    }
    report.files.retain(|it| !it.new.is_empty() || !it.doubtful.is_empty());
    for said in &mut report.files {
        said.new.sort_by_key(|it| (it.severity, it.line, it.column));
        said.doubtful.sort_by_key(|it| (it.severity, it.line, it.column));
    }
    report
}

/// The report of language servers and checkers about changes that are proposed and not made, each file with its new text; see
/// [`LanguageServers::preview`](crate::lsp::LanguageServers::preview). Only the `allowed` files are looked at, and only checkers are
/// asked that are likely to answer `until` then, while none is `busy`.
pub async fn look_at_proposed(
    mut proposed: Vec<(Edit, String)>,
    until: Instant,
    allowed: Allowed<'_>,
    context: &Context,
    busy: &AtomicBool,
) -> ChangeReport {
    proposed.retain(|it| allowed(&it.0.file));
    let edits = proposed.iter().map(|it| it.0.clone()).collect();
    let Some(mut known) = KnownMistakes::of(edits, allowed, context) else {
        return ChangeReport::default();
    };
    let others = known.search(allowed, context);
    let is_cut = known.is_cut;
    let edits = known.edits.clone();
    let is_served = |it: &&(Edit, String)| edits.iter().any(|edit| edit.file == it.0.file);
    let served: Vec<_> = proposed.iter().filter(is_served).cloned().collect();
    let servers = async {
        if served.is_empty() {
            return ChangeReport::default();
        }
        let asked = context.servers.preview(context.around(), served, others, until);
        let comparison = asked.await.unwrap_or_default();
        report(comparison, is_cut, edits.iter().map(|it| it.file.clone()))
    };
    let late = until.checked_sub(SPARE).unwrap_or(until);
    let checkers = check_proposed(known, proposed, late, allowed, context, busy);
    let (report, checkers) = futures::join!(servers, checkers);
    joined(report, checkers)
}

/// What checkers say of files with proposed texts, which they see in an overlay.
async fn check_proposed(
    mut known: KnownMistakes,
    proposed: Vec<(Edit, String)>,
    until: Instant,
    allowed: Allowed<'_>,
    context: &Context,
    busy: &AtomicBool,
) -> CheckerReport {
    let mut report = CheckerReport::default();
    if Commands::tier() == Tier::None {
        return report;
    }
    known.check(until, context, busy).await;
    known.note_standing(context);
    let is_deleted = |it: &Path| proposed.iter().any(|(edit, _)| edit.is_deleted && edit.file == it);
    let files = known.files.keys().filter(|it| !is_deleted(it)).cloned().collect();
    let within = until.saturating_duration_since(Instant::now());
    let (jobs, missed) = wanted(&files, within, context);
    report.missed = missed;
    let Some(_turn) = Turn::take(busy) else { return report };
    let texts: Vec<_> = proposed.iter().map(|it| (it.0.file.clone(), it.1.clone())).collect();
    for job in jobs {
        let earlier = context.findings.earlier(&job);
        let found = tokio::time::timeout_at(until, check_over(&job, texts.clone(), context)).await;
        match found.ok().flatten() {
            Some(found) => report.take(&job, &found, &earlier, &known, allowed),
            None => {
                let why = format!("{} looks at it when it is written", job.name);
                report.missed.extend(job.files.into_iter().map(|it| (why.clone(), it)));
            }
        }
    }
    report
}

async fn ask_servers(known: &KnownMistakes, others: Vec<PathBuf>, until: Instant, context: &Context) -> ChangeReport {
    if known.edits.is_empty() {
        return ChangeReport::default();
    }
    let began = SystemTime::now();
    let asked = context
        .servers
        .after(context.around(), known.edits.clone(), others, until);
    let Some(comparison) = asked.await else {
        return ChangeReport::default();
    };
    context.findings.take_all(&comparison.found, began);
    report(comparison, known.is_cut, known.edits.iter().map(|it| it.file.clone()))
}

/// What the servers say of these files; `is_cut`: there may be more that depend on them than were looked at.
fn report(comparison: Comparison, is_cut: bool, files: impl Iterator<Item = PathBuf>) -> ChangeReport {
    let Comparison {
        new,
        doubtful,
        fixed,
        checked,
        mut unchecked,
        found,
    } = comparison;
    let mut all: BTreeMap<PathBuf, Vec<Diagnostic>> = BTreeMap::new();
    for (file, found) in found.into_values().flatten() {
        all.entry(file).or_default().extend(found);
    }
    if is_cut {
        let why = "more files may depend on these than were looked at";
        unchecked.insert(why.to_owned(), files.collect());
    }
    let mut report = ChangeReport {
        fixed,
        checked,
        found: all,
        unchecked,
        ..ChangeReport::default()
    };
    for (file, found) in new {
        report.file(&file).new = found;
    }
    for (file, found) in doubtful {
        report.file(&file).doubtful = found;
    }
    report
}

/// The checkers that are likely to answer `within` this time, and why files have none.
fn wanted(files: &BTreeSet<PathBuf>, within: Duration, context: &Context) -> (Vec<CheckJob>, Vec<(String, PathBuf)>) {
    let settings = &context.settings.lint;
    let CheckPlan { jobs, absent, .. } = jobs(context.workspace.root(), files, settings, &is_installed());
    let (jobs, slow): (Vec<_>, Vec<_>) = jobs.into_iter().partition(|it| context.findings.is_quick(it, within));
    let why = |file: &PathBuf| {
        let slow = slow.iter().find(|it| it.files.contains(file));
        let absent = || absent.get(language_of(&file.to_string_lossy())).cloned();
        let not_asked = |it: &CheckJob| {
            if context.findings.has_run(it) {
                format!("{} takes too long to be waited for", it.name)
            } else {
                format!("{} has not run yet: read_lints runs it", it.name)
            }
        };
        slow.map(not_asked).or_else(absent)
    };
    let missed = files.iter().filter_map(|it| Some((why(it)?, it.clone()))).collect();
    (jobs, missed)
}

async fn ask_checkers(
    known: &KnownMistakes,
    jobs: Vec<CheckJob>,
    allowed: Allowed<'_>,
    context: &Context,
) -> CheckerReport {
    let mut report = CheckerReport::default();
    for job in jobs {
        let earlier = context.findings.earlier(&job);
        // Nobody has asked: where nothing else works either, nobody is told.
        let Ok((found, None)) = check(&job, context).await else {
            let why = format!("{} did not work", job.name);
            report.missed.extend(job.files.into_iter().map(|it| (why.clone(), it)));
            continue;
        };
        report.take(&job, &found, &earlier, known, allowed);
    }
    report
}

/// The reports about files that a step has not changed, of which a checker of the whole project says something else than before.
fn others(
    found: &[Diagnostic],
    earlier: &EarlierRun,
    is_wanted: impl Fn(&Path) -> bool,
    all: &mut BTreeMap<PathBuf, Vec<Diagnostic>>,
) -> Vec<(FileReport, usize)> {
    let mut now: BTreeMap<&Path, Vec<Diagnostic>> = earlier.files().map(|it| (it, Vec::new())).collect();
    for it in found.iter().filter(|it| it.severity != Severity::Info) {
        now.entry(&it.file).or_default().push(it.clone());
    }
    now.retain(|file, _| is_wanted(file) && file.is_file());
    let mut reports = Vec::new();
    if !earlier.has_run() {
        return reports;
    }
    // A compiler that comes upon an error says nothing of what it would have come to later.
    let then = earlier.errors();
    let errors = found.iter().filter(|it| it.severity == Severity::Error);
    let errors: Vec<Diagnostic> = errors.cloned().collect();
    let has_new_errors = !added(&then, errors.clone()).is_empty();
    let has_fewer_errors = !added(&errors, then).is_empty();
    for (file, own) in now {
        let known = earlier.of(file);
        let gone = known.map_or(0, |it| added(&own, it.to_vec()).len());
        let fixed = if has_new_errors { 0 } else { gone };
        let (new, doubtful) = match known {
            Some(known) if has_fewer_errors => (Vec::new(), added(known, own.clone())),
            Some(known) => (added(known, own.clone()), Vec::new()),
            None => (Vec::new(), own.clone()),
        };
        if fixed == 0 && new.is_empty() && doubtful.is_empty() {
            continue;
        }
        all.entry(file.to_owned()).or_default().extend(own);
        let file = file.to_owned();
        reports.push((FileReport { file, new, doubtful }, fixed));
    }
    reports
}

#[cfg(test)]
mod tests {
    use pretty_assertions::assert_eq;

    use super::*;
    use crate::tools::lints::Findings;

    #[test]
    fn a_problem_that_is_surely_new_stays_new_whatever_a_checker_adds() {
        let at = |line: u64, source: &str| Diagnostic {
            file: "a.py".into(),
            line,
            column: 1,
            severity: Severity::Error,
            message: format!("said by {source}"),
            source: source.to_owned(),
            code: None,
        };
        let of = |new: &[&Diagnostic], doubtful: &[&Diagnostic]| FileReport {
            file: "a.py".into(),
            new: new.iter().copied().cloned().collect(),
            doubtful: doubtful.iter().copied().cloned().collect(),
        };
        let (ty, ruff, old) = (at(2, "ty"), at(2, "ruff"), at(9, "ruff"));
        let server = |report: FileReport| ChangeReport {
            files: vec![report],
            ..ChangeReport::default()
        };
        for (name, said, more, expected) in [
            (
                "one that a checker repeats is new once",
                of(&[&ty], &[]),
                of(&[], &[&ruff]),
                of(&[&ty], &[]),
            ),
            (
                "something old beside it does not hide it",
                of(&[&ty], &[]),
                of(&[], &[&old]),
                of(&[&ty], &[&old]),
            ),
            (
                "what a checker knows to be new is not doubtful",
                of(&[], &[&ty, &old]),
                of(&[&ruff], &[]),
                of(&[&ruff], &[&old]),
            ),
        ] {
            let checkers = CheckerReport {
                files: vec![(more, 0)],
                ..CheckerReport::default()
            };
            assert_eq!(joined(server(said), checkers).files, [expected], "{name}");
        }
    }

    #[test]
    fn a_checker_of_the_whole_project_tells_of_files_that_depend_on_the_change() {
        let folder = tempfile::tempdir().expect("a folder");
        let root = folder.path();
        for name in ["lib.rs", "main.rs", "late.rs", "hidden.rs", "mended.rs"] {
            std::fs::write(root.join(name), "x").expect("a file");
        }
        let at = |file: &str, message: &str| Diagnostic {
            file: root.join(file),
            line: 1,
            column: 1,
            severity: Severity::Error,
            message: message.to_owned(),
            source: "rustc".to_owned(),
            code: None,
        };
        let job = CheckJob {
            name: "cargo check".to_owned(),
            line: "cargo check".to_owned(),
            directory: root.to_owned(),
            files: vec![root.join("lib.rs")],
            reach: Reach::Whole,
        };
        let now = [
            at("main.rs", "old"),
            at("main.rs", "no total"),
            at("late.rs", "no total"),
            at("hidden.rs", "no total"),
            at("lib.rs", "its own"),
        ];
        let is_wanted = |it: &Path| !it.ends_with("lib.rs") && !it.ends_with("hidden.rs");
        let shown = |now: &[Diagnostic], findings: &Findings| {
            let mut all = BTreeMap::new();
            let reports = others(now, &findings.earlier(&job), is_wanted, &mut all);
            let told = |it: &[Diagnostic]| it.iter().map(|it| it.message.clone()).collect::<Vec<_>>().join(", ");
            let name = |it: &Path| {
                it.file_name()
                    .map(|it| it.to_string_lossy().into_owned())
                    .unwrap_or_default()
            };
            let one = |(it, fixed): &(FileReport, usize)| {
                format!(
                    "{}: new [{}] older [{}] fixed {fixed}",
                    name(&it.file),
                    told(&it.new),
                    told(&it.doubtful)
                )
            };
            reports.iter().map(one).collect::<Vec<_>>()
        };
        let findings = Findings::default();
        assert_eq!(
            shown(&now, &findings),
            Vec::<String>::new(),
            "it has not run before: all may be older"
        );
        let began = SystemTime::now() + Duration::from_secs(1);
        let unused = Diagnostic {
            severity: Severity::Warning,
            ..at("mended.rs", "unused")
        };
        findings.take(&job, began, &[at("main.rs", "old"), unused.clone()]);
        // What was changed after that run is known by nobody.
        let late = std::fs::File::options()
            .append(true)
            .open(root.join("late.rs"))
            .expect("it is ours");
        late.set_modified(began + Duration::from_secs(5)).expect("a time");
        assert_eq!(
            shown(&now, &findings),
            [
                "late.rs: new [] older [no total] fixed 0",
                "main.rs: new [no total] older [] fixed 0",
            ],
            "behind a new error the compiler may not have come to `unused`"
        );
        assert_eq!(
            shown(&[at("main.rs", "old")], &findings),
            ["mended.rs: new [] older [] fixed 1"]
        );
        assert_eq!(
            shown(&[unused, at("main.rs", "moved")], &findings),
            ["main.rs: new [] older [moved] fixed 0"],
            "it may have hidden behind `old`, which is gone"
        );
    }

    #[test]
    fn a_file_that_takes_the_place_of_another_in_a_step_is_compared_with_what_it_was() {
        let known = |is_made: bool, from: Option<&str>, said: &[&str]| KnownFile {
            is_made,
            from: from.map(PathBuf::from),
            said: said
                .iter()
                .map(|it| (Checker::named(it, Path::new("/w")), Vec::new()))
                .collect(),
        };
        let of = |files: Vec<(&str, KnownFile)>| KnownMistakes {
            files: files.into_iter().map(|it| (PathBuf::from(it.0), it.1)).collect(),
            ..KnownMistakes::default()
        };
        let deleted = || of(vec![("a.py", known(false, None, &["of a"]))]);
        for (name, steps, expected) in [
            (
                "deleted and made again",
                vec![deleted(), of(vec![("a.py", known(true, None, &[]))])],
                (false, "of a"),
            ),
            (
                "deleted, and another moved there",
                vec![deleted(), of(vec![("a.py", known(false, Some("b.py"), &["of b"]))])],
                (false, "of b"),
            ),
            (
                "changed, and moved then",
                vec![
                    of(vec![("b.py", known(false, None, &["of b"]))]),
                    of(vec![("a.py", known(false, Some("b.py"), &[]))]),
                ],
                (false, "of b"),
            ),
        ] {
            let all = steps.into_iter().reduce(KnownMistakes::and).expect("some");
            let file = &all.files[Path::new("a.py")];
            let said: Vec<_> = file.said.keys().cloned().collect();
            let expected = (expected.0, vec![Checker::named(expected.1, Path::new("/w"))]);
            assert_eq!((file.is_made, said), expected, "{name}");
        }
    }
}
