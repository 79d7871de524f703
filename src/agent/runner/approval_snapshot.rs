//! What stands behind a command that the user was asked about: where it runs, and the files that it names.
//!
//! `bash release.sh` says nothing; the script says it all. What the user has looked at is kept as a number, and when the
//! command begins it is looked at again: whoever changed a file in between gets another question.

use std::path::PathBuf;

use crate::{
    config::Fingerprint,
    sandbox::{Place, Workspace},
    shell::CommandLine,
    tools::Access,
};

/// A larger file is data, not a script.
const MOST_BYTES: u64 = 10 << 20;
/// Files that are checked for one command.
const MOST_FILES: usize = 64;

/// Files that programs read without being told their names.
const UNNAMED: [(&str, &[&str]); 10] = [
    ("make", &["GNUmakefile", "makefile", "Makefile"]),
    ("gmake", &["GNUmakefile", "makefile", "Makefile"]),
    ("just", &["justfile", "Justfile", ".justfile"]),
    ("npm", &["package.json"]),
    ("pnpm", &["package.json"]),
    ("yarn", &["package.json"]),
    ("npx", &["package.json"]),
    ("cargo", &["Cargo.toml", "build.rs"]),
    ("docker", &["Dockerfile", "docker-compose.yml", "compose.yaml"]),
    ("rake", &["Rakefile"]),
];

/// The state of the files that a command would run, when the user was asked about it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ApprovalSnapshot {
    /// The working directory of the command.
    pub directory: Option<PathBuf>,
    files: Vec<(PathBuf, Fingerprint)>,
}

impl ApprovalSnapshot {
    /// Looks at what a call would run. Reads files.
    pub fn of(accesses: &[Access], workspace: &Workspace) -> Self {
        let mut behind = Self::default();
        for access in accesses {
            let Access::Command { line, directory, .. } = access else {
                continue;
            };
            behind.directory = Some(directory.path.clone());
            for name in names(line) {
                let Ok(file) = workspace.locate_from(&directory.path, &name) else {
                    continue;
                };
                let is_known = behind.files.iter().any(|it| it.0 == file.path);
                if file.place == Place::Hidden || is_known || behind.files.len() >= MOST_FILES {
                    continue;
                }
                if let Ok(bytes) = workspace.read(&file, MOST_BYTES) {
                    behind.files.push((file.path, Fingerprint::of(&[&bytes])));
                }
            }
        }
        behind
    }

    /// The first file that is not what it was.
    pub fn changed(&self, workspace: &Workspace) -> Option<String> {
        let is_same = |(path, print): &&(PathBuf, Fingerprint)| {
            let now = workspace.located(path).and_then(|it| workspace.read(&it, MOST_BYTES));
            now.is_ok_and(|it| Fingerprint::of(&[&it]) == *print)
        };
        let (path, _) = self.files.iter().find(|it| !is_same(it))?;
        let shown = workspace.located(path).map(|it| it.shown);
        Some(shown.unwrap_or_else(|_| path.display().to_string()))
    }
}

/// Words of a line that may be files, and files that its programs read unasked.
fn names(line: &str) -> Vec<String> {
    let line = CommandLine::read(line);
    let mut names = Vec::new();
    for command in &line.commands {
        let program = command
            .words
            .first()
            .and_then(|it| it.text.as_deref())
            .unwrap_or_default();
        let program = program.rsplit('/').next().unwrap_or(program);
        let unnamed = UNNAMED.iter().filter(|it| it.0 == program).flat_map(|it| it.1);
        names.extend(unnamed.map(|it| (*it).to_owned()));
        for word in command.words.iter().filter_map(|it| it.text.as_deref()) {
            names.push(word.to_owned());
            // `--config=x`, `-fx`.
            names.extend(word.split_once('=').map(|it| it.1.to_owned()));
            let short = word.strip_prefix('-').filter(|it| !it.starts_with('-'));
            names.extend(short.and_then(|it| it.get(1..)).map(str::to_owned));
        }
    }
    let read = line.redirects.iter().filter(|it| !it.writes);
    names.extend(read.filter_map(|it| it.file.text.clone()));
    names.retain(|it| !it.is_empty() && it.len() < 1024);
    names
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn a_file_that_a_command_names_is_compared_when_it_begins() {
        let folder = tempfile::tempdir().unwrap();
        for (path, text) in [
            ("go.sh", "echo 1"),
            ("sub/in.txt", "x"),
            ("Makefile", "all:"),
            ("c.toml", ""),
            (".env", "k"),
        ] {
            let path = folder.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        let workspace = Workspace::open(folder.path()).unwrap();
        let behind = |line: &str| {
            let access = Access::Command {
                line: line.to_owned(),
                directory: workspace.located(workspace.root()).unwrap(),
                permissions: Vec::new(),
                is_background: false,
            };
            ApprovalSnapshot::of(&[access], &workspace)
        };
        for (line, file) in [
            ("bash go.sh", "go.sh"),
            ("bash -x ./go.sh --all", "go.sh"),
            ("true && (cd . ; sh go.sh)", "go.sh"),
            ("echo $(bash go.sh)", "go.sh"),
            ("sort < sub/in.txt", "sub/in.txt"),
            ("make -j2 all", "Makefile"),
            ("tool --config=c.toml", "c.toml"),
            ("tool -fc.toml", "c.toml"),
        ] {
            let before = behind(line);
            assert_eq!(before.changed(&workspace), None, "{line}");
            let path = folder.path().join(file);
            let old = fs::read(&path).unwrap();
            fs::write(&path, "evil").unwrap();
            assert_eq!(before.changed(&workspace).as_deref(), Some(file), "{line}");
            fs::remove_file(&path).unwrap();
            assert_eq!(before.changed(&workspace).as_deref(), Some(file), "{line}");
            fs::write(&path, old).unwrap();
        }
        // What no tool reads is nothing to compare, and what is not there neither.
        let before = behind("cat .env gone");
        fs::write(folder.path().join(".env"), "y").unwrap();
        assert_eq!(before.changed(&workspace), None);
    }
}
