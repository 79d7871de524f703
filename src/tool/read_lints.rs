//! `read_lints`: what compilers and checkers say of files.
//!
//! A checker of a repository runs the repository's code (build scripts, plugins), so that a call is judged as the command
//! that it is. What it prints is read by its shape, not by the name of the program: a configured command may be any.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Write as _,
    path::{Path, PathBuf},
    sync::Arc,
};

use serde::Deserialize;
use serde_json::{Value, json};

use super::{Access, Class, Context, Fault, Input, Outcome, Tool, Work, run_terminal_cmd};
use crate::{
    config::Settings,
    os,
    protocol::Mode,
    sandbox::{Commands, Ended, How, Located, Place, Refused, Running, Spec, Tier, Workspace},
    text::language::language_of,
};

pub const TOOL: Tool = Tool {
    name: "read_lints",
    aliases: &["ReadLints"],
    about: "Read what compilers and linters say of files: errors and warnings with their places. Without paths, of the \
            files that you changed in this turn. Use it after edits; not before, and not for files you did not touch.",
    class: Class::Reads,
    modes: &Mode::ALL,
    schema: || {
        json!({
            "type": "object",
            "properties": {
                "paths": {
                    "type": "array",
                    "items": { "type": "string" },
                    "description": "Files or directories; absent: the files changed in this turn"
                }
            },
            "required": []
        })
    },
    synonyms: &[("paths", &["path", "target_files", "files", "target_file"])],
    work: Work::Call {
        touches,
        run: |input, context| Box::pin(run(input, context)),
    },
};

/// A directory is looked through for so many files to learn its languages.
const MOST_FILES: usize = 2000;
/// So many files are named to a checker that wants them named.
const MOST_NAMED: usize = 200;
/// The model reads so many diagnostics.
const MOST_SHOWN: usize = 100;
/// Of so many the document is told.
const MOST_KEPT: usize = 1000;
/// More of what a checker prints is not read.
const MOST_OUTPUT: u64 = 64 << 20;
/// Of what a checker said that did not work.
const SAID_LINES: usize = 12;

/// A checker that is to run.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Job {
    /// What people call it.
    name: String,
    line: String,
    directory: PathBuf,
}

/// What is asked for: which files, and what would check them.
#[derive(Debug, Default)]
struct Plan {
    /// Canonical; files and directories.
    targets: Vec<PathBuf>,
    jobs: Vec<Job>,
    /// Why there is no job for a language, by the language.
    absent: BTreeMap<&'static str, String>,
}

impl Plan {
    fn unchecked(&self) -> BTreeSet<&str> {
        self.absent.values().map(String::as_str).collect()
    }
}

/// Something that a checker says.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Diagnostic {
    file: PathBuf,
    line: u64,
    column: u64,
    severity: Severity,
    message: String,
    source: String,
    code: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Severity {
    Error,
    Warning,
    Info,
}

impl Severity {
    const fn as_str(self) -> &'static str {
        match self {
            Self::Error => "error",
            Self::Warning => "warning",
            Self::Info => "info",
        }
    }

    /// The word of a checker's.
    fn parse(word: &str) -> Option<Self> {
        let word = word.to_ascii_lowercase();
        match word.split(' ').next_back().unwrap_or_default() {
            "error" | "fatal" | "failure" => Some(Self::Error),
            "warning" | "warn" => Some(Self::Warning),
            "info" | "information" | "note" | "hint" | "help" | "style" | "convention" | "refactor" => Some(Self::Info),
            _ => None,
        }
    }
}

/// The checkers that would be run for a workspace if it may act; for the user to read.
pub fn checkers(root: &Path, settings: &Settings) -> Vec<&'static str> {
    let is_here = |it: &&Checker| {
        let is_configured = it
            .languages
            .iter()
            .all(|language| settings.lint.contains_key(*language));
        !is_configured && has_one_of(it.markers, root)
    };
    CHECKERS.iter().filter(is_here).map(|it| it.name).collect()
}

fn touches(input: &Input, context: &Context) -> Result<Vec<Access>, Fault> {
    if !context.workspace.may_act() {
        let message = "checkers run what the repository says, and the user has not said that they trust this workspace";
        return Err(Fault::new("WORKSPACE_UNTRUSTED", message)
            .hint("Go on without diagnostics; the user can let it act with /trust or --trust."));
    }
    let plan = plan(input, context)?;
    if Commands::tier() != Tier::None {
        return plan
            .targets
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

fn plan(input: &Input, context: &Context) -> Result<Plan, Fault> {
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
        gather(workspace, target, &mut files)?;
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    let is_there = |program: &str| os::process::find(program, &path).is_some();
    let mut plan = jobs(workspace.root(), &files, &context.settings.lint, &is_there);
    // Of all that lies in a folder, only what some checker could check is missed; a file that was named is always.
    let named = targets.iter().filter(|it| it.path.is_file());
    let named: BTreeSet<_> = named.map(|it| language_of(&it.path.to_string_lossy())).collect();
    if !plan.jobs.is_empty() {
        let is_missed = |it: &str| named.contains(it) || CHECKERS.iter().any(|checker| checker.languages.contains(&it));
        plan.absent.retain(|language, _| is_missed(language));
    }
    plan.targets = targets.into_iter().map(|it| it.path).collect();
    Ok(plan)
}

/// The files of a target, as far as searches see them.
fn gather(workspace: &Workspace, target: &Located, files: &mut BTreeSet<PathBuf>) -> Result<(), Fault> {
    if !target.path.is_dir() {
        files.insert(target.path.clone());
        return Ok(());
    }
    for entry in workspace.walker(target)?.build().flatten() {
        if files.len() >= MOST_FILES {
            break;
        }
        if entry.file_type().is_some_and(|it| it.is_file()) {
            files.insert(entry.into_path());
        }
    }
    Ok(())
}

/// What would check these files.
fn jobs(
    root: &Path,
    files: &BTreeSet<PathBuf>,
    configured: &BTreeMap<String, Vec<String>>,
    is_there: &dyn Fn(&str) -> bool,
) -> Plan {
    let mut languages: BTreeMap<&'static str, Vec<&Path>> = BTreeMap::new();
    for file in files {
        let language = language_of(&file.to_string_lossy());
        languages.entry(language).or_default().push(file);
    }
    let mut plan = Plan::default();
    let push = |plan: &mut Plan, job: Job| {
        if !plan.jobs.contains(&job) {
            plan.jobs.push(job);
        }
    };
    // A checker that wants its files named is run once in a folder, whatever languages they are in.
    let mut named: BTreeMap<(PathBuf, &str), (usize, usize)> = BTreeMap::new();
    for (language, files) in languages {
        if let Some(words) = configured.get(language) {
            let job = Job {
                name: match words.as_slice() {
                    [program, rest @ ..] if rest.first().is_none_or(|it| it != "-c") => program.clone(),
                    _ => language.to_owned(),
                },
                line: configured_line(words),
                directory: root.to_owned(),
            };
            push(&mut plan, job);
            continue;
        }
        let before = plan.jobs.len();
        let mut is_checked = false;
        let mut missing = BTreeSet::new();
        for checker in CHECKERS.iter().filter(|it| it.languages.contains(&language)) {
            // By the folder with the marker: several packages are several jobs.
            let mut folders: BTreeMap<PathBuf, Vec<&Path>> = BTreeMap::new();
            for file in &files {
                if let Some(folder) = folder_with(checker.markers, file, root) {
                    folders.entry(folder).or_default().push(file);
                }
            }
            for (folder, files) in folders {
                let own = folder.join("node_modules/.bin").join(checker.program);
                let program = if own.is_file() {
                    quoted(&own.to_string_lossy())
                } else if is_there(checker.program) {
                    checker.program.to_owned()
                } else {
                    missing.insert(checker.program);
                    continue;
                };
                let line = checker.line.replace("PROGRAM", &program);
                if !checker.names_files {
                    let job = Job {
                        name: checker.name.to_owned(),
                        line,
                        directory: folder,
                    };
                    push(&mut plan, job);
                    continue;
                }
                let key = (folder.clone(), checker.name);
                let (at, count) = named.entry(key).or_insert_with(|| {
                    plan.jobs.push(Job {
                        name: checker.name.to_owned(),
                        line,
                        directory: folder.clone(),
                    });
                    (plan.jobs.len() - 1, 0)
                });
                is_checked = true;
                for file in files.iter().take(MOST_NAMED.saturating_sub(*count)) {
                    *count += 1;
                    let inner = file.strip_prefix(&folder).unwrap_or(file);
                    if let Some(job) = plan.jobs.get_mut(*at) {
                        // A name that begins with a dash is no option.
                        let _ = write!(job.line, " {}", quoted(&format!("./{}", inner.to_string_lossy())));
                    }
                }
            }
        }
        if plan.jobs.len() == before && !is_checked {
            let programs: Vec<_> = missing.into_iter().collect();
            let why = if programs.is_empty() {
                format!("nothing is configured that checks {language}")
            } else {
                format!("{} is not installed", programs.join(" or "))
            };
            plan.absent.insert(language, why);
        }
    }
    plan
}

/// A checker that needs no configuration.
struct Checker {
    name: &'static str,
    languages: &'static [&'static str],
    /// Files of which one lies in the folder that it works in, or above the file. `*` at the end stands for anything.
    markers: &'static [&'static str],
    program: &'static str,
    /// For the shell; the program's path comes in place of `PROGRAM`.
    line: &'static str,
    names_files: bool,
}

const SCRIPTS: &[&str] = &["javascript", "jsx", "typescript", "tsx"];

const CHECKERS: &[Checker] = &[
    Checker {
        name: "cargo check",
        languages: &["rust"],
        markers: &["Cargo.toml"],
        program: "cargo",
        // Beside the user's own builds, which it would wait for and make build anew.
        line: "CARGO_TARGET_DIR=\"$TMPDIR/cargo\" PROGRAM check --quiet --all-targets --message-format=json",
        names_files: false,
    },
    Checker {
        name: "tsc",
        languages: &["typescript", "tsx"],
        markers: &["tsconfig.json"],
        program: "tsc",
        line: "PROGRAM --noEmit --pretty false -p .",
        names_files: false,
    },
    Checker {
        name: "eslint",
        languages: SCRIPTS,
        markers: &["eslint.config.*", ".eslintrc*"],
        program: "eslint",
        line: "PROGRAM --format json",
        names_files: true,
    },
    Checker {
        name: "ruff",
        languages: &["python"],
        markers: &["ruff.toml", ".ruff.toml", "pyproject.toml"],
        program: "ruff",
        line: "PROGRAM check --no-cache --output-format json",
        names_files: true,
    },
    Checker {
        name: "go vet",
        languages: &["go"],
        markers: &["go.mod"],
        program: "go",
        line: "PROGRAM vet ./...",
        names_files: false,
    },
];

/// The nearest folder from a file up to the root that has one of the markers.
fn folder_with(markers: &[&str], file: &Path, root: &Path) -> Option<PathBuf> {
    file.ancestors()
        .skip(1)
        .take_while(|it| it.starts_with(root))
        .find(|folder| has_one_of(markers, folder))
        .map(Path::to_owned)
}

fn has_one_of(markers: &[&str], folder: &Path) -> bool {
    markers.iter().any(|marker| match marker.strip_suffix('*') {
        Some(start) => std::fs::read_dir(folder).is_ok_and(|entries| {
            entries
                .flatten()
                .any(|it| it.file_name().to_string_lossy().starts_with(start))
        }),
        None => folder.join(marker).is_file(),
    })
}

fn configured_line(words: &[String]) -> String {
    match words {
        [shell, option, line] if shell == "sh" && option == "-c" => line.clone(),
        words => words.iter().map(|it| quoted(it)).collect::<Vec<_>>().join(" "),
    }
}

/// A word for the shell.
fn quoted(word: &str) -> String {
    let is_plain = |it: char| it.is_ascii_alphanumeric() || "-_./=:@%+,".contains(it);
    if !word.is_empty() && word.chars().all(is_plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

async fn run(input: Input, context: Context) -> Result<Outcome, Fault> {
    let plan = plan(&input, &context)?;
    if plan.targets.is_empty() {
        return Ok(Outcome {
            text: "No file was changed in this turn. Name the files to check in `paths`.".to_owned(),
            data: json!({ "fileDiagnostics": [], "available": true }),
            ..Outcome::default()
        });
    }
    if plan.jobs.is_empty() {
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
    for job in &plan.jobs {
        let spec = Spec {
            line: job.line.clone(),
            directory: job.directory.clone(),
            permissions: Vec::new(),
            only_reads: true,
            limit: Some(context.settings.sandbox.command_limit),
            variables: Vec::new(),
        };
        let workspace = Arc::clone(&context.workspace);
        let foreground = workspace.begin(spec, |_| {}).await.map_err(run_terminal_cmd::fault)?;
        let ended = foreground.running().ended().await;
        let running = foreground.leave();
        let output = output(&running);
        let said = read(&job.name, &output);
        if said.is_empty() && ended.how != How::Exited(0) {
            failed.push(failure(job, &ended, &output));
        }
        let root = context.workspace.root();
        found.extend(said.into_iter().map(|it| Diagnostic {
            file: placed(&it.file, &job.directory, root),
            ..it
        }));
    }
    Ok(report(&plan, found, &failed, &context.workspace))
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
fn failure(job: &Job, ended: &Ended, output: &str) -> String {
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

fn report(plan: &Plan, found: BTreeSet<Diagnostic>, failed: &[String], workspace: &Workspace) -> Outcome {
    let is_wanted = |it: &Diagnostic| plan.targets.iter().any(|target| it.file.starts_with(target));
    let (mut wanted, others): (Vec<_>, Vec<_>) = found.into_iter().partition(is_wanted);
    // Errors first, then by place.
    wanted.sort_by(|a, b| (a.severity, &a.file, a.line, a.column).cmp(&(b.severity, &b.file, b.line, b.column)));
    let shown = |file: &Path| match file.strip_prefix(workspace.root()) {
        Ok(inner) => inner.to_string_lossy().into_owned(),
        Err(_) => file.to_string_lossy().into_owned(),
    };
    let mut text = String::new();
    for it in wanted.iter().take(MOST_SHOWN) {
        let code = it.code.as_ref().map_or_else(String::new, |it| format!("[{it}]"));
        let _ = writeln!(
            text,
            "{}:{}:{} {}{code}: {} ({})",
            shown(&it.file),
            it.line,
            it.column,
            it.severity.as_str(),
            it.message,
            it.source
        );
    }
    if wanted.len() > MOST_SHOWN {
        let _ = writeln!(text, "[cut: {MOST_SHOWN} of {} shown]", wanted.len());
    }
    if wanted.is_empty() && failed.is_empty() {
        let place = if others.is_empty() { "" } else { " in these files" };
        let _ = writeln!(text, "No problems were found{place}.");
    }
    let errors: Vec<_> = others.iter().filter(|it| it.severity == Severity::Error).collect();
    if !errors.is_empty() {
        let files: BTreeSet<_> = errors.iter().map(|it| shown(&it.file)).collect();
        let names: Vec<_> = files.iter().take(5).map(String::as_str).collect();
        let more = files.len().saturating_sub(names.len());
        let more = if more > 0 {
            format!(" and {more} more")
        } else {
            String::new()
        };
        let _ = writeln!(
            text,
            "Errors in other files: {} in {}{more}.",
            errors.len(),
            names.join(", ")
        );
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
            "available": failed.len() < plan.jobs.len(),
            "failedCheckers": failed.len(),
        }),
        is_truncated,
        images: Vec::new(),
    }
}

/// What a checker says, by the shape of it: cargo's lines, eslint's or ruff's list, tsc's lines, or `file:line:column:`.
fn read(source: &str, output: &str) -> Vec<Diagnostic> {
    for reader in [cargo, listed, typescript, plain] {
        let found = reader(source, output);
        if !found.is_empty() {
            return found;
        }
    }
    Vec::new()
}

#[derive(Deserialize)]
struct CargoLine {
    reason: String,
    message: Option<RustMessage>,
}

#[derive(Deserialize)]
struct RustMessage {
    message: String,
    level: String,
    code: Option<RustCode>,
    #[serde(default)]
    spans: Vec<RustSpan>,
}

#[derive(Deserialize)]
struct RustCode {
    code: String,
}

#[derive(Deserialize)]
struct RustSpan {
    file_name: PathBuf,
    line_start: u64,
    column_start: u64,
    is_primary: bool,
    label: Option<String>,
}

/// `cargo … --message-format=json`
fn cargo(source: &str, output: &str) -> Vec<Diagnostic> {
    let lines = output.lines().filter(|it| it.starts_with("{\"reason\""));
    let messages = lines
        .filter_map(|it| serde_json::from_str::<CargoLine>(it).ok())
        .filter(|it| it.reason == "compiler-message")
        .filter_map(|it| it.message);
    messages
        .filter_map(|it| {
            let at = it.spans.iter().find(|it| it.is_primary)?;
            // What is expected and what is found stands beside the place.
            let label = at
                .label
                .as_ref()
                .filter(|label| !label.is_empty() && **label != it.message);
            let is_lint = it.code.as_ref().is_some_and(|it| it.code.contains("clippy::"));
            Some(Diagnostic {
                file: at.file_name.clone(),
                line: at.line_start,
                column: at.column_start,
                severity: Severity::parse(it.level.split(':').next().unwrap_or_default()).unwrap_or(Severity::Info),
                message: label.map_or_else(|| it.message.clone(), |label| format!("{}: {label}", it.message)),
                source: if is_lint {
                    "clippy"
                } else if source == "cargo check" {
                    "rustc"
                } else {
                    source
                }
                .to_owned(),
                code: it.code.map(|it| it.code),
            })
        })
        .collect()
}

/// A list in JSON: eslint's files with messages, or ruff's messages with files.
fn listed(source: &str, output: &str) -> Vec<Diagnostic> {
    // In front of it stands what the program had to say beside.
    let starts = std::iter::once(0).chain(output.match_indices('\n').map(|it| it.0 + 1));
    let list = starts
        .filter(|at| output.get(*at..).is_some_and(|it| it.starts_with('[')))
        .take(20)
        .find_map(|at| {
            let mut values = serde_json::Deserializer::from_str(output.get(at..)?).into_iter::<Vec<Value>>();
            values.next()?.ok()
        });
    let number = |value: &Value| value.as_u64().unwrap_or(1).max(1);
    let text = |value: &Value| value.as_str().filter(|it| !it.is_empty()).map(str::to_owned);
    let mut found = Vec::new();
    for item in list.unwrap_or_default() {
        if let (Some(file), Some(messages)) = (item["filePath"].as_str(), item["messages"].as_array()) {
            // A file that it is not set up for is none of its concern, and no problem.
            let is_ignored = |it: &&Value| it["message"].as_str().is_some_and(|it| it.starts_with("File ignored "));
            found.extend(messages.iter().filter(|it| !is_ignored(it)).map(|it| Diagnostic {
                file: file.into(),
                line: number(&it["line"]),
                column: number(&it["column"]),
                severity: if it["severity"] == 2 {
                    Severity::Error
                } else {
                    Severity::Warning
                },
                message: text(&it["message"]).unwrap_or_default(),
                source: source.to_owned(),
                code: text(&it["ruleId"]),
            }));
        } else if let (Some(file), Some(message)) = (item["filename"].as_str(), item["message"].as_str()) {
            let code = text(&item["code"]).filter(|it| it != "invalid-syntax");
            let word = item["severity"].as_str().and_then(Severity::parse);
            let usual = if code.is_none() {
                Severity::Error
            } else {
                Severity::Warning
            };
            found.push(Diagnostic {
                file: file.into(),
                line: number(&item["location"]["row"]),
                column: number(&item["location"]["column"]),
                severity: word.unwrap_or(usual),
                message: message.to_owned(),
                source: source.to_owned(),
                code,
            });
        }
    }
    found
}

/// `src/a.ts(3,5): error TS2322: …`, with lines below it that are indented.
fn typescript(source: &str, output: &str) -> Vec<Diagnostic> {
    let mut found: Vec<Diagnostic> = Vec::new();
    for line in output.lines() {
        if let Some(it) = typescript_line(source, line) {
            found.push(it);
        } else if let (Some(last), true) = (found.last_mut(), line.starts_with("  ")) {
            last.message.push_str("; ");
            last.message.push_str(line.trim());
        }
    }
    found
}

fn typescript_line(source: &str, line: &str) -> Option<Diagnostic> {
    let (place, rest) = line.split_once("): ")?;
    let (file, place) = place.rsplit_once('(')?;
    let (row, column) = place.split_once(',')?;
    let (head, message) = rest.split_once(": ")?;
    let (severity, code) = head.split_once(' ')?;
    Some(Diagnostic {
        file: file.into(),
        line: row.parse().ok()?,
        column: column.parse().ok()?,
        severity: Severity::parse(severity)?,
        message: message.to_owned(),
        source: source.to_owned(),
        code: Some(code.to_owned()),
    })
}

/// `file:line:column: message`, as most programs say it.
fn plain(source: &str, output: &str) -> Vec<Diagnostic> {
    let text = crate::text::ansi::Output::of(output).plain();
    text.lines().filter_map(|it| plain_line(source, it)).collect()
}

fn plain_line(source: &str, line: &str) -> Option<Diagnostic> {
    let line = line.strip_prefix("vet: ").unwrap_or(line).trim_start();
    // The place below a message that was meant for people; what the message is stands above.
    if line.starts_with("-->") {
        return None;
    }
    // The first number behind a colon is the line, so that a path may have one.
    let mut from = 0;
    let (file, row, rest) = loop {
        let at = from + line.get(from..)?.find(':')?;
        let (file, rest) = (line.get(..at)?, line.get(at + 1..)?);
        let digits = rest.len() - rest.trim_start_matches(|it: char| it.is_ascii_digit()).len();
        match (
            rest.get(..digits).and_then(|it| it.parse::<u64>().ok()),
            rest.get(digits..),
        ) {
            (Some(row), Some(rest)) if rest.starts_with(':') => break (file, row, rest.get(1..)?),
            _ => from = at + 1,
        }
    };
    // A path, and no sentence that has a time in it.
    if file.is_empty() || file.contains("  ") || !file.contains(['.', '/']) || row == 0 {
        return None;
    }
    let digits = rest.len() - rest.trim_start_matches(|it: char| it.is_ascii_digit()).len();
    let (column, rest) = match (rest.get(..digits).and_then(|it| it.parse().ok()), rest.get(digits..)) {
        (Some(column), Some(more)) if more.starts_with(':') => (column, more.get(1..)?),
        _ => (1, rest),
    };
    let rest = rest.trim();
    let (severity, message) = match rest.split_once(':') {
        Some((word, message)) if Severity::parse(word).is_some() => (Severity::parse(word)?, message.trim()),
        _ => (Severity::Error, rest),
    };
    (!message.is_empty()).then(|| Diagnostic {
        file: file.into(),
        line: row,
        column,
        severity,
        message: message.to_owned(),
        source: source.to_owned(),
        code: None,
    })
}

#[cfg(test)]
mod tests {
    use std::{fs, sync::Arc};

    use pretty_assertions::assert_eq;
    use proptest::prelude::*;
    use tokio::sync::mpsc;

    use super::*;
    use crate::{
        config::Settings,
        sandbox::{Fence, Seen},
        tool::Stop,
    };

    fn lines(found: &[Diagnostic]) -> Vec<String> {
        found
            .iter()
            .map(|it| {
                let code = it.code.as_deref().unwrap_or("-");
                let place = format!("{}:{}:{}", it.file.display(), it.line, it.column);
                format!("{place} {} {code} {} ({})", it.severity.as_str(), it.message, it.source)
            })
            .collect()
    }

    #[test]
    fn what_checkers_really_print_is_read() {
        // Recorded from cargo 1.95, tsc 7.0, eslint 10.15 and ruff 0.17, with the folder renamed.
        for (source, output, expected) in [
            (
                "cargo check",
                include_str!("../../tests/fixtures/lints/cargo.txt"),
                &[
                    "src/main.rs:2:18 error E0308 mismatched types: expected `u32`, found `&str` (rustc)",
                    "src/main.rs:3:5 error E0425 cannot find function `missing` in this scope: not found in this scope (rustc)",
                    "src/main.rs:2:9 warning unused_variables unused variable: `unused` (rustc)",
                ][..],
            ),
            (
                "tsc",
                include_str!("../../tests/fixtures/lints/tsc.txt"),
                &[
                    "src/a.ts:1:7 error TS2322 Type 'string' is not assignable to type 'number'. (tsc)",
                    "src/a.ts:3:52 error TS2339 Property 'size' does not exist on type 'Shape'. (tsc)",
                    "src/a.ts:4:7 error TS2741 Property 'name' is missing in type '{ side: number; }' but required in type 'Shape'. (tsc)",
                    "src/a.ts:5:14 error TS2554 Expected 1 arguments, but got 2. (tsc)",
                ],
            ),
            (
                "eslint",
                include_str!("../../tests/fixtures/lints/eslint.json"),
                &[
                    "/w/src/b.js:1:7 warning no-unused-vars 'a' is assigned a value but never used. (eslint)",
                    "/w/src/b.js:2:1 error no-undef 'missing' is not defined. (eslint)",
                    "/w/src/c.js:1:1 error - Parsing error: The keyword 'let' is reserved (eslint)",
                ],
            ),
            (
                "ruff",
                include_str!("../../tests/fixtures/lints/ruff.json"),
                &[
                    "/w/d.py:1:1 error I001 Import block is un-sorted or un-formatted (ruff)",
                    "/w/d.py:1:8 error F401 `os` imported but unused (ruff)",
                    "/w/d.py:2:7 error F821 Undefined name `undefined` (ruff)",
                    "/w/e.py:1:7 error - Expected a parameter or the end of the parameter list (ruff)",
                    "/w/e.py:2:1 error - unexpected EOF while parsing (ruff)",
                ],
            ),
            // Written after the documentation of these programs.
            (
                "go vet",
                "# example.com/shop\n./cart.go:5:2: undefined: total\nvet: ./cart.go:7:9: result of fmt.Sprintf call not used\nexit status 1\n",
                &[
                    "./cart.go:5:2 error - undefined: total (go vet)",
                    "./cart.go:7:9 error - result of fmt.Sprintf call not used (go vet)",
                ],
            ),
            (
                "gcc",
                "a.c: In function 'main':\na.c:3:5: warning: unused variable 'x' [-Wunused-variable]\na.c:4:1: fatal error: no.h: No such file\na.sh:7: note: quote this\n  --> a.rs:1:9\n12:30:00 finished at 10:20\nhttp://x.example:80/: hm\n",
                &[
                    "a.c:3:5 warning - unused variable 'x' [-Wunused-variable] (gcc)",
                    "a.c:4:1 error - no.h: No such file (gcc)",
                    "a.sh:7:1 info - quote this (gcc)",
                ],
            ),
            ("none", "All checks passed!\n[]\n", &[]),
        ] {
            assert_eq!(lines(&read(source, output)), expected, "{source}");
        }
    }

    fn files(root: &Path, names: &[&str]) -> BTreeSet<PathBuf> {
        for name in names {
            let path = root.join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "").unwrap();
        }
        names.iter().map(|it| root.join(it)).collect()
    }

    #[test]
    fn each_language_has_its_checker_where_its_marker_is() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        files(
            &root,
            &[
                "Cargo.toml",
                "web/tsconfig.json",
                "web/eslint.config.mjs",
                "web/node_modules/.bin/tsc",
                "py/pyproject.toml",
                "go.mod",
            ],
        );
        let found = files(
            &root,
            &[
                "src/main.rs",
                "src/lib.rs",
                "web/src/a b.ts",
                "web/src/c.tsx",
                "py/x.py",
                "cmd/m.go",
                "lone/y.py",
                "README.md",
            ],
        );
        let plan = jobs(&root, &found, &BTreeMap::new(), &|it| it != "go");
        let shown: Vec<_> = plan
            .jobs
            .iter()
            .map(|it| {
                let inner = it.directory.strip_prefix(&root).unwrap().display();
                format!("{inner} | {}", it.line.replace(&root.display().to_string(), "ROOT"))
            })
            .collect();
        assert_eq!(
            shown,
            [
                "py | ruff check --no-cache --output-format json ./x.py",
                " | CARGO_TARGET_DIR=\"$TMPDIR/cargo\" cargo check --quiet --all-targets --message-format=json",
                "web | ROOT/web/node_modules/.bin/tsc --noEmit --pretty false -p .",
                "web | eslint --format json ./src/c.tsx './src/a b.ts'",
            ]
        );
        let absent: Vec<_> = plan.unchecked().into_iter().collect();
        assert_eq!(
            absent,
            ["go is not installed", "nothing is configured that checks markdown"]
        );

        let words = |it: &[&str]| it.iter().map(|it| (*it).to_owned()).collect::<Vec<_>>();
        let configured = BTreeMap::from([
            ("rust".to_owned(), words(&["sh", "-c", "cargo clippy | cat"])),
            ("python".to_owned(), words(&["my lint", "--x='y' z"])),
        ]);
        let plan = jobs(&root, &found, &configured, &|_| false);
        let lines: Vec<_> = plan.jobs.iter().map(|it| it.line.as_str()).collect();
        assert_eq!(lines[..2], [r"'my lint' '--x='\''y'\'' z'", "cargo clippy | cat"]);
    }

    struct Bench {
        folder: tempfile::TempDir,
        context: Context,
    }

    impl Bench {
        fn new(settings: Settings) -> Self {
            let folder = tempfile::tempdir().unwrap();
            let root = folder.path().join("shop");
            fs::create_dir_all(&root).unwrap();
            let fence = Fence {
                passed: settings.sandbox.environment.clone(),
                ..Fence::default()
            };
            let context = Context {
                workspace: Arc::new(Workspace::fenced(&root, fence).unwrap()),
                seen: Arc::new(Seen::default()),
                index: Arc::default(),
                settings: Arc::new(settings),
                apply: None,
                call: "call".to_owned(),
                output: mpsc::unbounded_channel().0,
                stop: Stop::default(),
            };
            Self { folder, context }
        }

        fn put(&self, name: &str, text: &str) {
            let path = self.folder.path().join("shop").join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }

        async fn call(&self, paths: &[&str]) -> Result<Outcome, Fault> {
            let input = json!({ "paths": paths });
            run(Input(input.as_object().cloned().unwrap()), self.context.clone()).await
        }
    }

    #[tokio::test]
    async fn a_crate_is_really_checked() {
        let bench = Bench::new(Settings::default());
        bench.put(
            "Cargo.toml",
            "[package]\nname = 'shop'\nversion = '0.1.0'\nedition = '2024'\n[workspace]\n",
        );
        bench.put(
            "src/main.rs",
            "mod cart;\nfn main() {\n    let x: u32 = \"three\";\n}\n",
        );
        bench.put("src/cart.rs", "pub fn f() { nothing() }\n");
        let outcome = bench.call(&["src/main.rs"]).await.unwrap();
        assert_eq!(
            outcome.text,
            "src/main.rs:3:18 error[E0308]: mismatched types: expected `u32`, found `&str` (rustc)\n\
             Errors in other files: 1 in src/cart.rs."
        );
        assert_eq!(
            outcome.data,
            json!({
                "fileDiagnostics": [{ "filePath": "src/main.rs", "diagnostics": [{
                    "line": 3, "column": 18, "severity": "error", "message": "mismatched types: expected `u32`, found `&str`",
                    "source": "rustc", "code": "E0308",
                }]}],
                "available": true,
                "failedCheckers": 0,
            })
        );
        assert!(!bench.folder.path().join("shop/target").exists());
        // The files that the agent changed are the ones that are meant.
        let cart = bench.context.workspace.locate("src/cart.rs").unwrap();
        bench.context.seen.wrote(&cart, Some(b"x"));
        let outcome = bench.call(&[]).await.unwrap();
        assert!(
            outcome.text.starts_with("src/cart.rs:1:14 error[E0425]"),
            "{}",
            outcome.text
        );
        bench.put("src/main.rs", "mod cart;\nfn main() { cart::f() }\n");
        bench.put("src/cart.rs", "pub fn f() {}\n");
        assert_eq!(bench.call(&["src"]).await.unwrap().text, "No problems were found.");
        bench.put("Cargo.toml", "[package");
        let outcome = bench.call(&["src"]).await.unwrap();
        assert!(
            outcome.text.starts_with("`cargo check` did not work (exit code 101):"),
            "{}",
            outcome.text
        );
        assert_eq!(outcome.data["available"], false);
    }

    #[tokio::test]
    async fn what_cannot_be_checked_is_said_and_is_no_failure() {
        let bench = Bench::new(Settings::default());
        bench.put("notes.md", "");
        bench.put(".env", "");
        let outcome = bench.call(&["notes.md"]).await.unwrap();
        assert!(
            outcome.text.contains("nothing is configured that checks markdown"),
            "{}",
            outcome.text
        );
        assert_eq!(outcome.data, json!({ "fileDiagnostics": [], "available": false }));
        let outcome = bench.call(&[]).await.unwrap();
        assert!(outcome.text.starts_with("No file was changed"), "{}", outcome.text);
        for (path, code) in [
            ("absent.rs", "FILE_NOT_FOUND"),
            (".env", "IGNORED_FILE"),
            ("..", "PATH_OUTSIDE_WORKSPACE"),
        ] {
            assert_eq!(bench.call(&[path]).await.unwrap_err().code, code);
        }
    }

    #[tokio::test]
    async fn a_configured_command_is_judged_as_what_it_is() {
        let mut settings = Settings::default();
        let words = ["sh", "-c", "echo 'notes.md:2: warning: too short'"].map(str::to_owned);
        settings.lint.insert("markdown".to_owned(), words.to_vec());
        let bench = Bench::new(settings);
        bench.put("notes.md", "");
        let refused = bench.call(&["notes.md"]).await;
        let input = json!({ "paths": ["notes.md"] });
        let judged = touches(&Input(input.as_object().cloned().unwrap()), &bench.context);
        assert_eq!(judged.unwrap_err().code, "WORKSPACE_UNTRUSTED", "{refused:?}");
        bench.context.workspace.let_act();
        let outcome = bench.call(&["notes.md"]).await.unwrap();
        assert_eq!(outcome.text, "notes.md:2:1 warning: too short (markdown)");
        let input = json!({ "paths": ["notes.md"] });
        let touched = touches(&Input(input.as_object().cloned().unwrap()), &bench.context).unwrap();
        let line = "echo 'notes.md:2: warning: too short'";
        assert!(
            matches!(&touched[..], [Access::Command { line: it, .. }] if it == line),
            "{touched:?}"
        );
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(256))]
        #[test]
        fn any_output_is_read_without_harm(text in "(\\PC|[a-z./:(),\n\\[\\]{}\"0-9 ]){0,120}") {
            read("x", &text);
        }
    }
}
