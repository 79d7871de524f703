//! Reads and changes the person's own files: settings and rules.

use std::path::{Path, PathBuf};

use super::EffectRunner;
use crate::{
    config::{self, CommandLineSettings, Environment, Location, Paths},
    os::file::{self, Access},
    t,
    tui::{
        app::{
            effects::FileWork,
            own_files::{FileOutcome, FileTask, RuleFile, RuleRole},
        },
        msg::EffectOutcome,
    },
};

/// The largest file of rules that is read, in bytes.
const RULE_BYTES: u64 = 1 << 20;
/// Files of rules that are listed.
const FILES: usize = 200;
/// The user's own file that new lines go to.
const OWN: &str = "memory.md";
/// The project's.
const PROJECT: &str = "AGENTS.md";
/// Folders and files of a workspace with rules.
const FOLDERS: [&str; 2] = [".cursor/rules", ".sheaf/rules"];

/// Does the work on a thread that may block.
pub fn work(runner: &EffectRunner, workspace: PathBuf, home: Option<PathBuf>, work: FileWork) {
    let paths = runner.paths.clone();
    runner.block(move || {
        let done = done(&paths, &workspace, home.as_deref(), &work.task);
        EffectOutcome::Filed(work, done)
    });
}

fn done(paths: &Paths, workspace: &Path, home: Option<&Path>, task: &FileTask) -> Result<FileOutcome, String> {
    let shown = |path: &Path| match (
        path.strip_prefix(workspace),
        home.and_then(|it| path.strip_prefix(it).ok()),
    ) {
        (Ok(inside), _) => inside.display().to_string(),
        (Err(_), Some(inside)) => format!("~/{}", inside.display()),
        (Err(_), None) => path.display().to_string(),
    };
    let settings = paths.settings();
    match task {
        FileTask::Rules => Ok(FileOutcome::Rules(rules(paths, workspace, &shown))),
        FileTask::AddLine { file, line } => {
            let is_link = |it: std::fs::Metadata| it.is_symlink();
            // What a project links to may be anything of the user's.
            if file.role == RuleRole::Project && std::fs::symlink_metadata(&file.path).is_ok_and(is_link) {
                return Err(t!("memory-link", file = file.shown.as_str()));
            }
            if read(&file.path)? != file.text {
                return Err(t!("memory-changed", file = file.shown.as_str()));
            }
            let text = file.with(line);
            let folder = file.path.parent().unwrap_or(workspace);
            std::fs::create_dir_all(folder).map_err(|it| it.to_string())?;
            let access = match file.role {
                RuleRole::User => Access::Private,
                RuleRole::Project | RuleRole::Other => Access::Shared,
            };
            file::write(&file.path, text.as_bytes(), access).map_err(|it| it.to_string())?;
            Ok(FileOutcome::Written {
                file: file.shown.clone(),
                line: text.lines().count(),
            })
        }
        FileTask::Setting { path, value } => {
            let was = line_of(paths, path, None);
            config::store(paths, path, value.as_deref()).map_err(|it| it.to_string())?;
            let line = line_of(paths, path, None).or(was).unwrap_or(1);
            Ok(FileOutcome::Written {
                file: shown(&settings),
                line,
            })
        }
        FileTask::Entry {
            path,
            entry,
            is_removed,
        } => {
            let was = line_of(paths, path, Some(entry));
            let stored = if *is_removed {
                config::remove(paths, path, entry)
            } else {
                config::append(paths, path, entry)
            };
            stored.map_err(|it| it.to_string())?;
            let now = line_of(paths, path, Some(entry));
            let line = if *is_removed { was } else { now }.unwrap_or(1);
            Ok(FileOutcome::Written {
                file: shown(&settings),
                line,
            })
        }
    }
}

/// The line of a setting in the user's file, or of an entry of a list.
fn line_of(paths: &Paths, path: &str, entry: Option<&str>) -> Option<usize> {
    let (settings, _) = config::load(paths, None, &Environment::default(), &CommandLineSettings::default());
    let Some(Location::File { line: first, .. }) = settings.origin(path).place else {
        return None;
    };
    let Some(entry) = entry else {
        return Some(first);
    };
    let text = read(&paths.settings()).ok().flatten()?;
    let found = text
        .lines()
        .skip(first.saturating_sub(1))
        .position(|it| it.contains(entry));
    Some(found.map_or(first, |it| first + it))
}

/// The text of a file; `None` if there is none.
fn read(path: &Path) -> Result<Option<String>, String> {
    match file::read(path, RULE_BYTES) {
        // Another encoding would not be written back as it was.
        Ok(bytes) => String::from_utf8(bytes)
            .map(Some)
            .map_err(|_| t!("memory-not-utf8", file = path.display().to_string())),
        Err(error) if error.is_absent() => Ok(None),
        Err(error) => Err(error.to_string()),
    }
}

/// The files of rules of the user and of a workspace: those that new lines go to first.
fn rules(paths: &Paths, workspace: &Path, shown: &dyn Fn(&Path) -> String) -> Vec<RuleFile> {
    let file = |path: PathBuf, role| RuleFile {
        shown: shown(&path),
        text: read(&path).ok().flatten(),
        path,
        role,
    };
    let mut found = vec![
        file(paths.rules().join(OWN), RuleRole::User),
        file(workspace.join(PROJECT), RuleRole::Project),
    ];
    let folders = std::iter::once(paths.rules()).chain(FOLDERS.map(|it| workspace.join(it)));
    for folder in folders {
        let entries = std::fs::read_dir(&folder).into_iter().flatten().flatten();
        let mut files: Vec<PathBuf> = entries.map(|it| it.path()).take(FILES).collect();
        files.retain(|it| it.extension().is_some_and(|it| it == "md" || it == "mdc"));
        files.sort();
        files.retain(|it| found.iter().all(|known| known.path != *it));
        found.extend(files.into_iter().map(|it| file(it, RuleRole::Other)));
    }
    let plain = file(workspace.join("CLAUDE.md"), RuleRole::Other);
    // It counts only where there is no AGENTS.md.
    let has_own = found.iter().any(|it| it.role == RuleRole::Project && it.text.is_some());
    if plain.text.is_some() && !has_own {
        found.push(plain);
    }
    found
}

#[cfg(test)]
mod tests {
    use std::fs;

    use pretty_assertions::assert_eq;

    use super::*;

    #[test]
    fn a_line_is_added_where_it_was_shown_and_nowhere_else() {
        let folder = tempfile::tempdir().expect("a folder");
        let (paths, work) = (Paths::under(folder.path()), folder.path().join("work"));
        fs::create_dir(&work).expect("a folder");
        let listed = || match done(&paths, &work, Some(folder.path()), &FileTask::Rules).expect("a list") {
            FileOutcome::Rules(files) => files,
            FileOutcome::Written { .. } => panic!("it is a list"),
        };
        let add = |file: &RuleFile| {
            let task = FileTask::AddLine {
                file: file.clone(),
                line: "tabs".to_owned(),
            };
            done(&paths, &work, Some(folder.path()), &task)
        };
        let written = |file: &str, line| {
            Ok(FileOutcome::Written {
                file: file.to_owned(),
                line,
            })
        };
        let files = listed();
        let names: Vec<&str> = files.iter().map(|it| it.shown.as_str()).collect();
        assert_eq!(names, ["~/config/rules/memory.md", "AGENTS.md"]);
        assert_eq!(add(&files[0]), written("~/config/rules/memory.md", 1));
        assert_eq!(add(&files[1]), written("AGENTS.md", 3));
        assert_eq!(
            fs::read_to_string(work.join("AGENTS.md")).expect("text"),
            "# AGENTS.md\n\n- tabs\n"
        );
        assert!(add(&files[1]).is_err(), "it has changed since it was shown");
        fs::write(work.join("AGENTS.md"), "Be kind.").expect("a file");
        assert_eq!(add(&listed()[1]), written("AGENTS.md", 2));
        assert_eq!(
            fs::read_to_string(work.join("AGENTS.md")).expect("text"),
            "Be kind.\n- tabs\n"
        );
        fs::remove_file(work.join("AGENTS.md")).expect("it was there");
        std::os::unix::fs::symlink(folder.path().join("other"), work.join("AGENTS.md")).expect("a link");
        assert!(add(&listed()[1]).is_err(), "a link of the project may lead anywhere");
        assert!(!folder.path().join("other").exists());
    }

    #[test]
    fn a_change_of_the_settings_names_file_and_line() {
        let folder = tempfile::tempdir().expect("a folder");
        let paths = Paths::under(folder.path());
        fs::create_dir_all(&paths.config).expect("a folder");
        let text = "# mine\ncolor = true\ntheme = 'owl'\n\n[approvals]\nallow = [\n  'Shell(ls)',\n  'Shell(git push)', # for releases\n]\n";
        fs::write(paths.settings(), text).expect("a file");
        let run = |task: &FileTask| done(&paths, Path::new("/work"), Some(folder.path()), task);
        let at = |line| {
            Ok(FileOutcome::Written {
                file: "~/config/config.toml".to_owned(),
                line,
            })
        };
        let setting = |value: Option<&str>| FileTask::Setting {
            path: "theme".to_owned(),
            value: value.map(str::to_owned),
        };
        assert_eq!(run(&setting(Some("sheaf-dark"))), at(3));
        assert_eq!(run(&setting(None)), at(3));
        let entry = |entry: &str, is_removed| FileTask::Entry {
            path: "approvals.allow",
            entry: entry.to_owned(),
            is_removed,
        };
        assert_eq!(run(&entry("Shell(git push)", true)), at(7));
        assert_eq!(run(&entry("Shell(make)", false)), at(7));
        let text = fs::read_to_string(paths.settings()).expect("text");
        assert_eq!(
            text,
            "# mine\ncolor = true\n\n[approvals]\nallow = [\n  'Shell(ls)',\n  \"Shell(make)\",\n]\n"
        );
        assert!(run(&entry("Shell(git push)", true)).is_err(), "it is not there");
        let wrong = FileTask::Setting {
            path: "color".to_owned(),
            value: Some("maybe".to_owned()),
        };
        assert!(run(&wrong).is_err_and(|it| it.contains("neither true nor false")));
    }
}
