//! Which checkers there are for files, and how they are called.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Write as _,
    path::{Path, PathBuf},
    time::Duration,
};

use crate::{
    config::Settings,
    lsp::LanguageServers,
    sandbox::{Bounds, Workspace},
    text::language::language_of,
};

/// Entries of a workspace that are searched for the files that mark a checker.
const MOST_ENTRIES: usize = 20_000;
/// Maximum time of the look for checkers.
const PATIENCE: Duration = Duration::from_secs(10);
/// Files that are passed to a checker that wants them named.
const MOST_NAMED: usize = 200;

/// The name of all language servers in the list of [`checkers`].
const LANGUAGE_SERVERS: &str = "language servers";

/// A checker that is to run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CheckJob {
    /// The name that people use.
    pub name: String,
    pub line: String,
    pub directory: PathBuf,
    /// The files that it is run for.
    pub files: Vec<PathBuf>,
    pub reach: Reach,
}

/// The files that a run of a checker covers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reach {
    /// The files that are named to it.
    Named,
    /// All that belongs together: it may have to build a lot the first time.
    Whole,
    /// Whatever the user's own command covers.
    Own,
}

/// The checkers for some files.
#[derive(Debug, Default)]
pub struct CheckPlan {
    pub jobs: Vec<CheckJob>,
    /// Why there is no job for a language, by the language.
    pub absent: BTreeMap<&'static str, String>,
    /// Why language servers did not look at files.
    pub unanswered: BTreeSet<String>,
}

impl CheckPlan {
    /// Reasons why files are not checked, each once.
    pub fn unchecked(&self) -> BTreeSet<&str> {
        self.absent
            .values()
            .chain(&self.unanswered)
            .map(String::as_str)
            .collect()
    }
}

/// The checkers that would be run for a workspace if it may act, for the user to read: those whose marker lies in it, and
/// the user's own for the languages that are there.
pub fn checkers(workspace: &Workspace, settings: &Settings) -> Vec<String> {
    let mut found = BTreeSet::new();
    let own = |language: &str| settings.lint.get(language).map(|it| shown(language, it));
    let is_replaced = |it: &Checker| it.languages.iter().all(|it| settings.lint.contains_key(*it));
    let wanted: Vec<_> = CHECKERS.iter().filter(|it| !is_replaced(it)).collect();
    let root = workspace.locate("").and_then(|it| {
        let bounds = Bounds::within(PATIENCE).entries(MOST_ENTRIES);
        workspace.walker(&it, bounds)
    });
    for entry in root.iter().flat_map(|it| it.entries().flatten()) {
        if !entry.file_type().is_some_and(|it| it.is_file()) {
            continue;
        }
        let name = entry.file_name().to_string_lossy();
        let marked = wanted
            .iter()
            .filter(|it| it.markers.iter().any(|it| is_marker(it, &name)));
        found.extend(marked.map(|it| it.name.to_owned()));
        if !settings.lint.is_empty() {
            found.extend(own(language_of(&name)));
        }
    }
    if LanguageServers::is_any_installed(workspace, settings) {
        found.insert(LANGUAGE_SERVERS.to_owned());
    }
    found.into_iter().collect()
}

/// Returns true if a checker of this name, as [`checkers`] gives it, can be run here: it is the user's own, or its program
/// is installed.
pub fn can_run(name: &str, root: &Path, is_there: &dyn Fn(&str) -> bool) -> bool {
    let mut known = CHECKERS.iter().filter(|it| it.name == name).peekable();
    let is_own = known.peek().is_none();
    // Packages bring their own; which of them does is seen when it runs.
    let is_local = |it: &Checker| root.join("node_modules/.bin").join(it.program).is_file();
    is_own || known.any(|it| is_there(it.program) || is_local(it))
}

/// The name of a user's own command.
fn shown(language: &str, words: &[String]) -> String {
    match words {
        [program, rest @ ..] if rest.first().is_none_or(|it| it != "-c") => program.clone(),
        _ => language.to_owned(),
    }
}

/// The checkers that would check these files.
pub fn jobs(
    root: &Path,
    files: &BTreeSet<PathBuf>,
    configured: &BTreeMap<String, Vec<String>>,
    is_there: &dyn Fn(&str) -> bool,
) -> CheckPlan {
    let mut languages: BTreeMap<&'static str, Vec<&Path>> = BTreeMap::new();
    for file in files {
        let language = language_of(&file.to_string_lossy());
        languages.entry(language).or_default().push(file);
    }
    let mut plan = CheckPlan::default();
    let push = |plan: &mut CheckPlan, job: CheckJob| {
        let is_same = |it: &&mut CheckJob| it.line == job.line && it.directory == job.directory;
        match plan.jobs.iter_mut().find(is_same) {
            Some(same) => same.files.extend(job.files),
            None => plan.jobs.push(job),
        }
    };
    let all = |files: &[&Path]| files.iter().map(|it| it.to_path_buf()).collect::<Vec<_>>();
    // A checker that wants its files named is run once in a folder, whatever languages they are in.
    let mut named: BTreeMap<(PathBuf, &str), (usize, usize)> = BTreeMap::new();
    for (language, files) in languages {
        if let Some(words) = configured.get(language) {
            let job = CheckJob {
                name: shown(language, words),
                line: configured_line(words),
                directory: root.to_owned(),
                files: all(&files),
                reach: Reach::Own,
            };
            push(&mut plan, job);
            continue;
        }
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
                let local = folder.join("node_modules/.bin").join(checker.program);
                let program = if local.is_file() {
                    quoted(&local.to_string_lossy())
                } else if is_there(checker.program) {
                    checker.program.to_owned()
                } else {
                    missing.insert(checker.program);
                    continue;
                };
                let mut line = checker.line.replace("PROGRAM", &program);
                let is_locked = || {
                    folder
                        .ancestors()
                        .take_while(|it| it.starts_with(root))
                        .any(|it| it.join(LOCK).exists())
                };
                if checker.program == "cargo" && !is_locked() {
                    line = format!("{UNLOCKED}{line}");
                }
                is_checked = true;
                if !checker.names_files {
                    let job = CheckJob {
                        name: checker.name.to_owned(),
                        line,
                        directory: folder,
                        files: all(&files),
                        reach: Reach::Whole,
                    };
                    push(&mut plan, job);
                    continue;
                }
                let key = (folder.clone(), checker.name);
                let (at, count) = named.entry(key).or_insert_with(|| {
                    plan.jobs.push(CheckJob {
                        name: checker.name.to_owned(),
                        line,
                        directory: folder.clone(),
                        files: Vec::new(),
                        reach: Reach::Named,
                    });
                    (plan.jobs.len() - 1, 0)
                });
                for file in files.iter().take(MOST_NAMED.saturating_sub(*count)) {
                    *count += 1;
                    let inner = file.strip_prefix(&folder).unwrap_or(file);
                    if let Some(job) = plan.jobs.get_mut(*at) {
                        job.files.push(file.to_path_buf());
                        // A name that begins with a dash is no option.
                        let _ = write!(job.line, " {}", quoted(&format!("./{}", inner.to_string_lossy())));
                    }
                }
            }
        }
        if !is_checked {
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

/// The file that cargo writes into a folder that has none; it cannot here, because the folder is read-only.
const LOCK: &str = "Cargo.lock";
/// Goes to a folder of links, where it can. What is said of files is said from there, by the same names.
const UNLOCKED: &str = "at=\"$TMPDIR/unlocked$PWD\" && mkdir -p \"$at\" && ln -sfn \"$PWD\"/* \"$at\" && \
                        { ln -sfn \"$PWD\"/.cargo \"$at\"; cd \"$at\"; } && ";

/// A checker that needs no configuration.
pub struct Checker {
    name: &'static str,
    pub languages: &'static [&'static str],
    /// Files of which one lies in the folder that it works in, or above the file. `*` at the end stands for anything.
    markers: &'static [&'static str],
    program: &'static str,
    /// For the shell; the program's path comes in place of `PROGRAM`.
    line: &'static str,
    names_files: bool,
}

const SCRIPTS: &[&str] = &["javascript", "jsx", "typescript", "tsx"];

/// The known checkers.
pub const CHECKERS: &[Checker] = &[
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
        // Its cache in the home folder cannot be written, and without one it does not work.
        line: "GOCACHE=\"$TMPDIR/go\" GOTOOLCHAIN=local PROGRAM vet ./...",
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
        Some(_) => std::fs::read_dir(folder).is_ok_and(|entries| {
            entries
                .flatten()
                .any(|it| is_marker(marker, &it.file_name().to_string_lossy()))
        }),
        None => folder.join(marker).is_file(),
    })
}

fn is_marker(marker: &str, name: &str) -> bool {
    match marker.strip_suffix('*') {
        Some(start) => name.starts_with(start),
        None => name == marker,
    }
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
