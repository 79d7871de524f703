//! `read_lints`: what compilers and checkers say of files.
//!
//! A checker of a repository runs the repository's code (build scripts, plugins), so that a call is judged as the command
//! that it is. What it prints is read by its shape, not by the name of the program: a configured command may be any. What
//! was found is kept in `Findings`, for the messages that follow.

mod changed;
mod dependents;

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Write as _,
    path::{Path, PathBuf},
    sync::Arc,
    time::{Duration, SystemTime},
};

use serde_json::{Value, json};

pub use changed::{ChangeReport, FileReport, KnownMistakes, look_at_changed, look_at_proposed};
pub use dependents::{Dependents, dependents};

use super::{
    cursor::{Answer, CursorCall},
    lints::{
        Diagnostic, Severity,
        checkers::{CHECKERS, CheckJob, CheckPlan, Reach, jobs},
        diagnostic,
    },
    run_terminal_cmd,
    tool::{Access, Class, Context, Fault, Input, Outcome, Tool, Work, names},
};
use crate::{
    os,
    protocol::CallSubject,
    sandbox::{Bounds, Commands, Ended, Foreground, How, Located, Place, Refused, Running, Spec, Tier, Workspace},
    text::language::language_of,
};

/// The name of the tool.
pub const NAME: &str = "read_lints";
/// The description that a model is shown.
const ABOUT: &str = "\
    Read what compilers and linters say of files: errors and warnings with their places. Without paths, of the \
    files that you changed in this turn. Use it after edits; not before, and not for files you did not touch.";

/// The tool `read_lints`.
pub fn tool() -> Tool {
    Tool {
        aliases: names(["ReadLints"]),
        about: ABOUT.into(),
        schema: super::schema(
            json!({
                "paths": {
                    "type": "array",
                    "items": { "type": "string" },
                    "description": "Files or directories; absent: the files changed in this turn"
                }
            }),
            &[],
        ),
        synonyms: &[("paths", &["path", "target_files", "files", "target_file"])],
        word: "lints".into(),
        subject: CallSubject::Lints,
        runs_code: true,
        cursor: Some(CursorCall {
            result: |it| json!({ "fileDiagnostics": printed(it) }),
            ..CursorCall::new("readLintsToolCall", &[("paths", &["paths"])])
        }),
        examples: &["{}", r#"{ "paths": ["src/a.py"] }"#, r#"{ "path": "src" }"#],
        ..Tool::new(NAME, Class::Reads, Work::call(touches, run))
    }
}

/// A directory is looked through for so many files to learn its languages.
const MOST_FILES: usize = 2000;
/// Files of a directory of which language servers are looked for, and those that are asked about.
const MOST_ASKED: usize = 200;
const MOST_SERVED: usize = 40;
/// Time that language servers have when the model asks: one may have to read the project first.
const SERVER_LIMIT: Duration = Duration::from_secs(20);
/// The model reads so many diagnostics.
const MOST_SHOWN: usize = 100;
/// Mistakes that the document holds.
const MOST_KEPT: usize = 1000;
/// Names of files in a line.
const MOST_NAMED: usize = 5;
/// More of what a checker prints is not read.
const MOST_OUTPUT: u64 = 64 << 20;
/// Lines that are kept of the output of a checker that failed.
const SAID_LINES: usize = 12;

fn touches(input: &Input, context: &Context) -> Result<Vec<Access>, Fault> {
    if !context.workspace.may_act() {
        let message = "checkers run what the repository says, and the user has not said that they trust this workspace";
        return Err(Fault::new("WORKSPACE_UNTRUSTED", message)
            .hint("Go on without diagnostics; the user can let it act with /trust or --trust."));
    }
    let Planned { targets, plan, .. } = plan(input, context)?;
    if Commands::tier() != Tier::None {
        return targets
            .iter()
            .map(|it| Ok(Access::Read(context.workspace.located(it)?)))
            .collect();
    }
    plan.jobs
        .into_iter()
        .map(|job| {
            Ok(Access::Command {
                line: job.line,
                directory: context.workspace.located(&job.directory)?,
                permissions: Vec::new(),
                is_background: false,
            })
        })
        .collect()
}

/// What is meant, and what would check it.
struct Planned {
    /// Files and directories, by their canonical paths.
    targets: Vec<PathBuf>,
    plan: CheckPlan,
    /// Files that language servers look at.
    served: Vec<PathBuf>,
}

fn plan(input: &Input, context: &Context) -> Result<Planned, Fault> {
    let workspace = &*context.workspace;
    let mut targets = Vec::new();
    let paths = input.texts("paths");
    for written in &paths {
        let target = workspace.locate(written)?;
        match target.place {
            Place::Inside | Place::Added => {}
            Place::Outside => return Err(Refused::Outside(target.shown).into()),
            Place::Hidden => return Err(Refused::Hidden(target.shown).into()),
        }
        if !target.path.exists() {
            return Err(Refused::Missing(target.shown).into());
        }
        targets.push(target);
    }
    if paths.is_empty() {
        let changed = context.seen.changed();
        let there = changed.iter().filter_map(|it| workspace.located(it).ok());
        targets.extend(there.filter(|it| it.path.is_file() && matches!(it.place, Place::Inside | Place::Added)));
    }
    let mut files = BTreeSet::new();
    for target in &targets {
        let stop = context.stop.clone();
        let bounds = Bounds::until(move || stop.is_set());
        gather(workspace, target, bounds, &mut files)?;
    }
    let mut plan = jobs(workspace.root(), &files, &context.settings.lint, &is_installed());
    // Of all that lies in a folder, only what some checker could check is missed; a file that was named is always.
    let named = targets.iter().filter(|it| it.path.is_file());
    let named: BTreeSet<_> = named.map(|it| language_of(&it.path.to_string_lossy())).collect();
    if !plan.jobs.is_empty() {
        let is_missed = |it: &str| named.contains(it) || CHECKERS.iter().any(|checker| checker.languages.contains(&it));
        plan.absent.retain(|language, _| is_missed(language));
    }
    let is_served = |it: &&PathBuf| context.servers.knows(workspace, &context.settings, it);
    let mut served: Vec<PathBuf> = files.iter().take(MOST_ASKED).filter(is_served).cloned().collect();
    if !served.is_empty() && (served.len() > MOST_SERVED || files.len() > MOST_ASKED) {
        let text = format!("language servers look at {MOST_SERVED} files of a directory: name the others");
        plan.unanswered.insert(text);
        served.truncate(MOST_SERVED);
    }
    let languages: BTreeSet<_> = served.iter().map(|it| language_of(&it.to_string_lossy())).collect();
    plan.absent.retain(|language, _| !languages.contains(language));
    Ok(Planned {
        targets: targets.into_iter().map(|it| it.path).collect(),
        plan,
        served,
    })
}

fn is_installed() -> impl Fn(&str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    move |program| os::process::find(program, &path).is_some()
}

/// The files of a target, as far as searches see them.
fn gather(workspace: &Workspace, target: &Located, bounds: Bounds, files: &mut BTreeSet<PathBuf>) -> Result<(), Fault> {
    if !target.path.is_dir() {
        files.insert(target.path.clone());
        return Ok(());
    }
    for entry in workspace.walker(target, bounds)?.entries().flatten() {
        if files.len() >= MOST_FILES {
            break;
        }
        if entry.file_type().is_some_and(|it| it.is_file()) {
            files.insert(entry.into_path());
        }
    }
    Ok(())
}
async fn run(input: Input, context: Context) -> Result<Outcome, Fault> {
    let Planned {
        targets,
        mut plan,
        served,
    } = plan(&input, &context)?;
    if targets.is_empty() {
        return Ok(Outcome {
            text: "No file was changed in this turn. Name the files to check in `paths`.".to_owned(),
            data: json!({ "fileDiagnostics": [], "available": true }),
            ..Outcome::default()
        });
    }
    if plan.jobs.is_empty() && served.is_empty() {
        let why: Vec<_> = plan.unchecked().into_iter().collect();
        return Ok(Outcome {
            text: format!(
                "These files cannot be checked: {}. The user can name a command in the configuration, as `lint.<language>`.",
                why.join("; ")
            ),
            data: json!({ "fileDiagnostics": [], "available": false }),
            ..Outcome::default()
        });
    }
    let mut found = BTreeSet::new();
    let mut failed = Vec::new();
    let began = SystemTime::now();
    let look = context.servers.look(context.around(), served, SERVER_LIMIT).await;
    context.findings.take_all(&look.found, began);
    found.extend(look.found.into_values().flat_map(BTreeMap::into_values).flatten());
    for (why, files) in look.unchecked {
        let shown = |file: &PathBuf| {
            let inner = file.strip_prefix(context.workspace.root()).unwrap_or(file);
            inner.to_string_lossy().into_owned()
        };
        plan.unanswered.insert(format!("{why} ({})", listed(&files, shown)));
    }
    // What the server of a project says is what its compiler says.
    plan.jobs
        .retain(|it| it.name != "tsc" || !it.files.iter().all(|file| look.checked.contains(file)));
    for job in &plan.jobs {
        let (said, failure) = check(job, &context).await?;
        found.extend(said);
        failed.extend(failure);
    }
    let has_server = !look.checked.is_empty();
    Ok(report(
        &targets,
        &plan,
        found,
        (&failed, has_server),
        &context.workspace,
    ))
}

/// The names of the first of these, and how many there are besides.
pub fn listed<I: IntoIterator<IntoIter: ExactSizeIterator>>(all: I, name: impl Fn(I::Item) -> String) -> String {
    let all = all.into_iter();
    let more = all.len().saturating_sub(MOST_NAMED);
    let shown: Vec<String> = all.take(MOST_NAMED).map(name).collect();
    let more = if more > 0 {
        format!(" and {more} more")
    } else {
        String::new()
    };
    format!("{}{more}", shown.join(", "))
}

/// Runs a checker and keeps what it says; with it, how it failed, if it did.
async fn check(job: &CheckJob, context: &Context) -> Result<(Vec<Diagnostic>, Option<String>), Fault> {
    let began = SystemTime::now();
    let workspace = Arc::clone(&context.workspace);
    let foreground = workspace
        .begin(spec(job, context), |_| {})
        .await
        .map_err(run_terminal_cmd::fault)?;
    let (said, failure) = said(job, foreground, context).await;
    if failure.is_some() {
        context.findings.failed(job, began);
    } else {
        context.findings.take(job, began, &said);
    }
    Ok((said, failure))
}

/// What a checker says of files with these texts in the place of those that they have. `None`: it cannot be shown them here, or did
/// not work.
async fn check_over(job: &CheckJob, files: Vec<(PathBuf, String)>, context: &Context) -> Option<Vec<Diagnostic>> {
    let workspace = Arc::clone(&context.workspace);
    let begun = workspace.begin_over(spec(job, context), files).await;
    let (foreground, _overlay) = begun
        .map_err(|error| tracing::debug!(%error, "a checker looks at no proposal"))
        .ok()?;
    let (said, failure) = said(job, foreground, context).await;
    failure.is_none().then_some(said)
}

/// What a checker that runs says in the end, and why it did not work if so.
async fn said(job: &CheckJob, foreground: Foreground, context: &Context) -> (Vec<Diagnostic>, Option<String>) {
    let ended = foreground.running().ended().await;
    let running = foreground.leave();
    let output = output(&running);
    let mut said = diagnostic::read(&job.name, &output);
    let has_failed = said.is_empty() && ended.how != How::Exited(0);
    let failure = has_failed.then(|| failure(job, &ended, &output));
    let root = context.workspace.root();
    for it in &mut said {
        it.file = placed(&it.file, &job.directory, root);
    }
    // A program and its tests are two targets, and what is wrong with both is said twice.
    let mut all = BTreeSet::new();
    said.retain(|it| all.insert(it.clone()));
    (said, failure)
}

/// The command of a checker.
fn spec(job: &CheckJob, context: &Context) -> Spec {
    Spec {
        folders: Vec::new(),
        line: job.line.clone(),
        directory: job.directory.clone(),
        permissions: Vec::new(),
        only_reads: true,
        limit: Some(context.settings.sandbox.command_limit),
        variables: Vec::new(),
    }
}

/// Has checkers look again at `files` where these are new to them, beside the conversation and without a word: what they
/// find goes to [`Context::findings`].
///
/// What looks only at the files that it is told runs at any time; a command of the user's own once the agent has changed
/// something; and what has to build a whole project once the model has asked for it. Nothing runs in a workspace that
/// may not act, or without a sandbox.
pub async fn look_again(files: &BTreeSet<PathBuf>, has_changed: bool, context: &Context) {
    if !context.workspace.may_act() || Commands::tier() == Tier::None {
        return;
    }
    let plan = jobs(context.workspace.root(), files, &context.settings.lint, &is_installed());
    for job in plan.jobs {
        let findings = &context.findings;
        let is_wanted = match job.reach {
            Reach::Named => true,
            Reach::Own => has_changed || findings.knows(&job),
            Reach::Whole => findings.knows(&job),
        };
        if is_wanted && !findings.is_current(&job) {
            // Nobody has asked, so nobody is told that it did not work.
            let _ = check(&job, context).await;
        }
    }
}

/// All that a checker printed.
fn output(running: &Running) -> String {
    let whole = running.log().and_then(|it| os::file::read(&it, MOST_OUTPUT).ok());
    let bytes = whole.unwrap_or_else(|| {
        let part = running.since(0);
        [part.first, part.last].concat()
    });
    String::from_utf8_lossy(&bytes).into_owned()
}

/// A checker that says nothing and did not succeed.
fn failure(job: &CheckJob, ended: &Ended, output: &str) -> String {
    let how = match ended.how {
        How::Exited(code) => format!("exit code {code}"),
        How::Killed(signal) => format!("ended by signal {signal}"),
        How::TimedOut => "it took too long".to_owned(),
        How::Cancelled => "cancelled".to_owned(),
    };
    let plain = crate::text::ansi::Output::of(output).plain();
    let lines: Vec<_> = plain.lines().filter(|it| !it.trim().is_empty()).collect();
    let last = lines.get(lines.len().saturating_sub(SAID_LINES)..).unwrap_or_default();
    format!("`{}` did not work ({how}):\n{}", job.name, last.join("\n"))
}

/// The file that a checker means, which speaks from its folder or from one above.
fn placed(file: &Path, directory: &Path, root: &Path) -> PathBuf {
    let mut folders = directory.ancestors().take_while(|it| it.starts_with(root));
    let found = folders.find_map(|it| it.join(file).canonicalize().ok());
    found.unwrap_or_else(|| directory.join(file))
}

fn report(
    targets: &[PathBuf],
    plan: &CheckPlan,
    found: BTreeSet<Diagnostic>,
    (failed, has_server): (&[String], bool),
    workspace: &Workspace,
) -> Outcome {
    let is_wanted = |it: &Diagnostic| targets.iter().any(|target| it.file.starts_with(target));
    let (mut wanted, others): (Vec<_>, Vec<_>) = found.into_iter().partition(is_wanted);
    // Errors first, then by place.
    wanted.sort_by(|a, b| (a.severity, &a.file, a.line, a.column).cmp(&(b.severity, &b.file, b.line, b.column)));
    let shown = |file: &Path| match file.strip_prefix(workspace.root()) {
        Ok(inner) => inner.to_string_lossy().into_owned(),
        Err(_) => file.to_string_lossy().into_owned(),
    };
    let mut text = String::new();
    for it in wanted.iter().take(MOST_SHOWN) {
        let _ = writeln!(text, "{}:{}", shown(&it.file), it.told());
    }
    if wanted.len() > MOST_SHOWN {
        let _ = writeln!(text, "[cut: {MOST_SHOWN} of {} shown]", wanted.len());
    }
    let has_answer = has_server || failed.len() < plan.jobs.len();
    if wanted.is_empty() && failed.is_empty() && has_answer {
        let place = if others.is_empty() { "" } else { " in these files" };
        let _ = writeln!(text, "No problems were found{place}.");
    }
    let errors: Vec<_> = others.iter().filter(|it| it.severity == Severity::Error).collect();
    if !errors.is_empty() {
        let files: BTreeSet<_> = errors.iter().map(|it| shown(&it.file)).collect();
        let files = listed(files, |it| it);
        let _ = writeln!(text, "Errors in other files: {} in {files}.", errors.len());
    }
    for it in failed {
        let _ = writeln!(text, "{it}");
    }
    for it in plan.unchecked() {
        let _ = writeln!(text, "Not checked: {it}.");
    }
    let is_truncated = wanted.len() > MOST_SHOWN;
    let mut files: BTreeMap<String, Vec<Value>> = BTreeMap::new();
    for it in wanted.into_iter().take(MOST_KEPT) {
        files.entry(shown(&it.file)).or_default().push(json!({
            "line": it.line,
            "column": it.column,
            "severity": it.severity.as_str(),
            "message": it.message,
            "source": it.source,
            "code": it.code,
        }));
    }
    let files: Vec<_> = files
        .into_iter()
        .map(|(file, diagnostics)| json!({ "filePath": file, "diagnostics": diagnostics }))
        .collect();
    Outcome {
        text: text.trim_end().to_owned(),
        data: json!({
            "fileDiagnostics": files,
            "available": failed.len() < plan.jobs.len() || has_server,
            "failedCheckers": failed.len(),
        }),
        is_truncated,
        images: Vec::new(),
    }
}
/// The diagnostics of a result as Cursor has them: with ranges that count from 0, as language servers do.
fn printed(answer: &Answer<'_>) -> Vec<Value> {
    let files = answer.members.get("fileDiagnostics").and_then(Value::as_array);
    let files = files.map(Vec::as_slice).unwrap_or_default();
    let place = |it: &Value| {
        let at = |name: &str| it.get(name).and_then(Value::as_u64).unwrap_or(1).saturating_sub(1);
        json!({ "line": at("line"), "character": at("column") })
    };
    let one = |it: &Value| {
        if it.get("range").is_some() {
            return it.clone();
        }
        json!({
            "severity": it.get("severity"),
            "range": { "start": place(it), "end": place(it) },
            "message": it.get("message"),
            "source": it.get("source"),
            "code": it.get("code"),
        })
    };
    let file = |it: &Value| {
        let found = it.get("diagnostics").and_then(Value::as_array);
        let found: Vec<Value> = found.into_iter().flatten().map(one).collect();
        json!({ "path": it.get("filePath").or(it.get("path")), "diagnostics": found })
    };
    files.iter().map(file).collect()
}

#[cfg(test)]
mod tests;
