//! Commands: Markdown files whose text becomes a message when the user types `/name`.

use std::path::{Path, PathBuf};

use super::{
    folders::{Folder, HeldFile, Owner, Surroundings},
    front_matter::FrontMatter,
    template::{Fill, Piece, pieces},
};
use crate::config::{COMMANDS, Fingerprint};

/// The folder beside the settings.
const OWN: &str = "commands";
/// A larger file is no command.
const FILE_BYTES: u64 = 256 << 10;
/// Maximum number of commands.
const MOST: usize = 500;
/// Maximum depth of subfolders.
const DEPTH: usize = 4;

/// A command of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommandFile {
    /// `name`, or `folder:name`.
    pub name: String,
    /// Its description, or its first line.
    pub about: String,
    /// The arguments that it takes, for people. May be empty.
    pub hint: String,
    /// From the root of the workspace, absolute or from `~`.
    pub path: String,
    pub owner: Owner,
    /// Permission rules in Claude Code's form that it asks for.
    pub allowed_tools: Vec<String>,
    /// The model that it asks for.
    pub model: Option<String>,
    /// Names of its arguments.
    arguments: Vec<String>,
    body: String,
}

/// Finds the commands that may act, the nearest of a name first, and the files that may not. Reads files.
pub fn find_commands(
    around: &Surroundings,
    may_act: &dyn Fn(&str, &Fingerprint) -> bool,
) -> (Vec<CommandFile>, Vec<HeldFile>) {
    let (mut found, mut held): (Vec<CommandFile>, Vec<HeldFile>) = (Vec::new(), Vec::new());
    for folder in around.folders(&COMMANDS, OWN) {
        for file in files(&folder) {
            if found.len() + held.len() == MOST {
                return (found, held);
            }
            let Ok(text) = folder.read(&file, FILE_BYTES) else {
                continue;
            };
            if name_of(&file).is_none() {
                continue;
            }
            let shown = folder.shown(&file);
            if folder.owner == Owner::Project {
                let print = Fingerprint::of(&[text.as_bytes()]);
                if !may_act(&shown, &print) {
                    held.push(HeldFile { path: shown, print });
                    continue;
                }
            }
            let command = CommandFile::read(&folder, &file, &text);
            found.extend(command.filter(|it| found.iter().all(|had| had.name != it.name)));
        }
    }
    (found, held)
}

fn files(folder: &Folder) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut open = vec![(PathBuf::new(), 0)];
    while let Some((below, depth)) = open.pop() {
        let entries = folder.entries(&below, MOST);
        for (name, is_folder) in entries {
            let path = below.join(&name);
            if !is_folder && path.extension().is_some_and(|it| it == "md") {
                found.push(path);
            } else if is_folder && depth < DEPTH {
                open.push((path, depth + 1));
            }
        }
    }
    found.sort();
    found
}

/// The name of a command: `folder:name`, in small letters.
fn name_of(file: &Path) -> Option<String> {
    let is_name = |it: &str| {
        !it.is_empty()
            && it
                .chars()
                .all(|it| it.is_ascii_alphanumeric() || matches!(it, '-' | '_'))
    };
    let stem = file.with_extension("");
    let parts: Option<Vec<&str>> = stem.iter().map(|it| it.to_str().filter(|it| is_name(it))).collect();
    Some(parts?.join(":").replace('_', "-").to_lowercase())
}

impl CommandFile {
    fn read(folder: &Folder, file: &Path, text: &str) -> Option<Self> {
        let (front, body) = FrontMatter::split(text).unwrap_or_else(|_| (FrontMatter::default(), text));
        let mut lines = body.lines().map(|it| it.trim_start_matches('#').trim());
        let first = lines.find(|it| !it.is_empty())?;
        let arguments = front.list("arguments");
        Some(Self {
            name: folder.named(name_of(file)?),
            about: front.text("description").unwrap_or(first).to_owned(),
            hint: front.text("argument-hint").unwrap_or_default().to_owned(),
            path: folder.shown(file),
            owner: folder.owner,
            allowed_tools: front.list("allowed-tools"),
            model: front.text("model").filter(|it| *it != "inherit").map(str::to_owned),
            arguments,
            body: folder.filled(body.trim_start_matches(['\r', '\n'])),
        })
    }

    /// A command of the user's, for tests.
    #[cfg(test)]
    pub fn of(name: &str, path: &str, body: &str) -> Self {
        Self {
            name: name.to_owned(),
            about: "what it is for".to_owned(),
            hint: String::new(),
            path: path.to_owned(),
            owner: Owner::User,
            allowed_tools: Vec::new(),
            model: None,
            arguments: Vec::new(),
            body: body.to_owned(),
        }
    }

    /// Its text with `arguments` filled in.
    pub fn pieces(&self, arguments: &str) -> Vec<Piece> {
        // Most files count from 1; one that names `$0` counts from there.
        let first = usize::from(!self.body.contains("$0"));
        pieces(
            &self.body,
            &Fill {
                arguments,
                names: &self.arguments,
                first,
                ..Fill::default()
            },
        )
    }

    /// The message that it becomes where nothing runs: commands of the shell stay as they are written.
    pub fn message(&self, arguments: &str) -> String {
        let shown = |piece| match piece {
            Piece::Text(text) => text,
            Piece::Shell(line) => format!("!`{line}`"),
        };
        self.pieces(arguments).into_iter().map(shown).collect()
    }
}

#[cfg(test)]
mod tests {
    use pretty_assertions::assert_eq;

    use super::*;

    #[test]
    fn commands_of_every_program_are_found_by_the_names_that_they_have_there() {
        let top = tempfile::tempdir().unwrap();
        let around = Surroundings::test(
            top.path(),
            &[
                ("work/.cursor/commands/review.md", "Cursor's"),
                ("work/.cursor/commands/note.txt", "no command"),
                ("work/.cursor/commands/empty.md", " \n"),
                ("work/.cursor/commands/a b.md", "no name"),
                ("work/.sheaf/commands/review.md", "ours"),
                ("work/.claude/commands/frontend/Unit_test.md", "Claude's"),
                ("config/commands/review.md", "the user's"),
                ("config/commands/mine.md", "mine"),
                ("home/.claude/commands/git/commit.md", "commit"),
                ("home/.cursor/commands/mine.md", "another"),
                ("secret.md", "secret"),
            ],
        );
        std::os::unix::fs::symlink(
            top.path().join("secret.md"),
            top.path().join("work/.cursor/commands/leak.md"),
        )
        .unwrap();
        let told = |found: &[CommandFile]| -> Vec<String> {
            found
                .iter()
                .map(|it| format!("{} {}", it.name, it.message("")))
                .collect()
        };
        let (found, held) = find_commands(&around, &|_, _| true);
        assert_eq!(
            told(&found),
            [
                "review ours",
                "frontend:unit-test Claude's",
                "mine mine",
                "git:commit commit"
            ]
        );
        assert_eq!(held, []);
        let print = Fingerprint::of(&[b"Cursor's"]);
        let one = |path: &str, it: &Fingerprint| (path, it) == (".cursor/commands/review.md", &print);
        let (found, held) = find_commands(&around, &one);
        assert_eq!(told(&found), ["review Cursor's", "mine mine", "git:commit commit"]);
        let held: Vec<_> = held.iter().map(|it| it.path.as_str()).collect();
        let rest = [
            ".sheaf/commands/review.md",
            ".cursor/commands/empty.md",
            ".claude/commands/frontend/Unit_test.md",
        ];
        assert_eq!(held, rest);
    }

    #[test]
    fn a_command_says_what_it_is_for_and_what_it_wants() {
        let top = tempfile::tempdir().unwrap();
        let head =
            "argument-hint: [file]\nallowed-tools: Bash(git diff:*), Read\ndescription: Looks: twice\nmodel: fast";
        let around = Surroundings::test(
            top.path(),
            &[
                ("config/commands/a.md", "\n# Review\n\nLook."),
                (
                    "config/commands/b.md",
                    &format!("---\n{head}\n---\n\nDiff: !`git diff $1`\n"),
                ),
                ("config/commands/c.md", "---\nbroken: [\n---\nLook."),
            ],
        );
        let (found, _) = find_commands(&around, &|_, _| true);
        let [a, b, c] = found.as_slice() else {
            panic!("{found:?}")
        };
        assert_eq!(
            (a.about.as_str(), a.message("x").as_str()),
            ("Review", "# Review\n\nLook.\n\nx")
        );
        assert_eq!((b.about.as_str(), b.hint.as_str()), ("Looks: twice", "[file]"));
        assert_eq!((b.allowed_tools.len(), b.model.as_deref()), (2, Some("fast")));
        assert_eq!(
            b.pieces("a.rs"),
            [
                Piece::Text("Diff: ".into()),
                Piece::Shell("git diff a.rs".into()),
                Piece::Text("\n".into())
            ]
        );
        assert_eq!(b.message("a.rs"), "Diff: !`git diff a.rs`\n");
        assert_eq!(c.about, "---", "a head that cannot be read is a text");
    }
}
