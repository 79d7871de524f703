//! A line for the shell, taken apart: its commands, the files it is redirected to, and why rules cannot judge it.
//!
//! Pure. [`programs`] knows what programs do with their arguments, [`tests_of`] finds the tests that a line runs.

use std::path::{Path, PathBuf};

mod named_paths;
mod parser;
pub mod programs;
mod test_runner;

pub use named_paths::NamedPaths;
pub use test_runner::{Tests, tests_of};

/// A line that has been read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CommandLine {
    /// Every simple command, inside substitutions too, in the order of the text.
    pub commands: Vec<SimpleCommand>,
    pub redirects: Vec<Redirect>,
    /// Why rules do not allow it; empty for a plain line.
    pub doubts: Vec<Doubt>,
}

/// A program and its arguments.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SimpleCommand {
    /// Never empty.
    pub words: Vec<ShellWord>,
    /// Takes what another command prints.
    pub is_fed: bool,
}

/// A word of a command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShellWord {
    /// The text that the program gets; `None` where the shell puts something in its place.
    pub text: Option<String>,
    /// As it stands in the line.
    pub source: String,
    /// The part of its beginning that is certain.
    pub start: String,
    /// Some of it is in quotes, or a backslash is in it.
    pub is_quoted: bool,
}

/// A redirection from or to a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Redirect {
    pub file: ShellWord,
    pub writes: bool,
}

/// Something that rules cannot see through.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, thiserror::Error)]
pub enum Doubt {
    #[error("it is very long")]
    Long,
    #[error("it contains no command")]
    Empty,
    #[error("it has characters that cannot be seen")]
    Control,
    #[error("it has several lines")]
    Lines,
    #[error("it is not complete")]
    Broken,
    #[error("it has more than 32 commands")]
    Many,
    #[error("it is nested very deeply")]
    Deep,
    #[error("a command in it is run for its output")]
    Substitution,
    #[error("the shell would expand a part of it")]
    Expansion,
    #[error("it sets a variable")]
    Assignment,
    #[error("it defines a function")]
    Function,
    #[error("it runs something in the background")]
    Background,
    #[error("it has a here-document")]
    HereDocument,
    #[error("it has loops or conditions")]
    Keyword,
    #[error("the program is not named in full")]
    Program,
    #[error("it changes the shell itself, or runs text as a command")]
    Builtin,
    #[error("a program in it runs another one")]
    Wrapper,
    #[error("an option in it can run another program or write a file")]
    Option,
    #[error("a program in it reads its commands from elsewhere")]
    Script,
    #[error("it opens a device or a connection")]
    Device,
    #[error("a part of it cannot be parsed")]
    Unknown,
}

impl CommandLine {
    /// Returns true if rules can judge the line.
    pub fn is_plain(&self) -> bool {
        self.doubts.is_empty()
    }

    /// The folders that its commands may run in, if it begins in `start`: each that it goes to by name, on the way, and those
    /// that git is told.
    pub fn folders(&self, start: &Path) -> Vec<PathBuf> {
        let mut folders = vec![start.to_owned()];
        let mut here = start.to_owned();
        for command in &self.commands {
            let texts = command.texts();
            match texts.as_slice() {
                [Some("cd" | "pushd"), Some(to)] => {
                    here.push(to);
                    folders.push(here.clone());
                }
                [Some("git"), rest @ ..] => {
                    let told = rest.windows(2).filter(|it| it.first() == Some(&Some("-C")));
                    folders.extend(told.filter_map(|it| Some(here.join(it.get(1).copied()??))));
                }
                _ => {}
            }
        }
        folders
    }

    /// Returns true if it runs something beside git.
    pub fn runs_others_than_git(&self) -> bool {
        let is_other = |it: &SimpleCommand| {
            let program = it.words.first().and_then(|it| it.text.as_deref());
            !it.is_move() && program.is_none_or(|it| programs::base(it) != "git")
        };
        self.commands.iter().any(is_other)
    }

    /// Returns true if the line lets git make a submodule, and runs nothing but git's own commands.
    pub fn makes_submodules(&self) -> bool {
        // `git submodule` runs programs of git's, and no others unless it is told so.
        let is_known = self.doubts.iter().all(|it| *it == Doubt::Wrapper);
        let is_gits = |it: &SimpleCommand| it.is_move() || it.git_command().is_some();
        let makes = |it: &SimpleCommand| {
            let command = it.git_command().unwrap_or_default();
            matches!(command.as_slice(), ["submodule", "add" | "update", ..])
        };
        is_known
            && self.redirects.iter().all(Redirect::is_harmless)
            && self.commands.iter().all(is_gits)
            && self.commands.iter().any(makes)
    }

    /// Adds a reason why rules cannot judge the line, once.
    pub(super) fn doubt(&mut self, doubt: Doubt) {
        if let Err(at) = self.doubts.binary_search(&doubt) {
            self.doubts.insert(at, doubt);
        }
    }
}

impl ShellWord {
    /// Adds characters that are certain; nothing once the word is unknown.
    pub(super) fn extend(&mut self, more: impl IntoIterator<Item = char>) {
        if let Some(text) = &mut self.text {
            text.extend(more);
        }
    }

    /// From here on nobody knows what it will be.
    pub(super) fn unknown(&mut self) {
        if let Some(known) = self.text.take() {
            self.start = known;
        }
    }

    /// Returns true if it is all digits.
    pub(super) fn is_number(&self) -> bool {
        let digits = self.text.as_deref().unwrap_or_default();
        !digits.is_empty() && digits.bytes().all(|it| it.is_ascii_digit())
    }

    /// Returns true if a program may take it for an option.
    pub fn may_be_option(&self) -> bool {
        match &self.text {
            Some(text) => text.starts_with(['-', '+']),
            // What a variable holds may fall apart into words.
            None => self.start.is_empty() || self.start.starts_with(['-', '+']) || self.source.contains('$'),
        }
    }
}

/// Devices that a line may read and write without a question.
pub(super) const HARMLESS_DEVICES: [&str; 5] = ["/dev/null", "/dev/stdin", "/dev/stdout", "/dev/stderr", "/dev/zero"];

impl Redirect {
    /// Returns true if its file is a device that keeps nothing, such as `/dev/null`.
    pub fn is_harmless(&self) -> bool {
        let file = self.file.text.as_deref().unwrap_or_default();
        HARMLESS_DEVICES.contains(&file)
    }
}

impl SimpleCommand {
    /// The texts of its words; `None` for a word that the shell replaces.
    pub fn texts(&self) -> Vec<Option<&str>> {
        self.words.iter().map(|it| it.text.as_deref()).collect()
    }

    /// The command of git and its words, if that is one by which git runs only itself, without an option that says otherwise.
    fn git_command(&self) -> Option<Vec<&str>> {
        /// Options by which git is given settings, or programs to run.
        const TELLING: [&str; 7] = [
            "-c",
            "--config",
            "--exec-path",
            "--git-dir",
            "--template",
            "--upload-pack",
            "--work-tree",
        ];
        let words: Option<Vec<&str>> = self.texts().into_iter().collect();
        let words = words?;
        let ["git", command @ ..] = words.as_slice() else {
            return None;
        };
        let is_telling = |it: &&str| TELLING.iter().any(|option| it.starts_with(option));
        let is_own = match command {
            ["submodule", verb, ..] => ["add", "init", "status", "sync", "update"].contains(verb),
            [verb, ..] => ["add", "commit", "diff", "fetch", "log", "status"].contains(verb),
            [] => false,
        };
        (is_own && !command.iter().any(is_telling)).then(|| command.to_vec())
    }

    /// Goes to a folder below, which changes nothing by itself.
    pub fn is_free(&self) -> bool {
        match self.texts().as_slice() {
            [Some("cd"), Some(to)] => {
                !to.is_empty() && !to.starts_with(['/', '-', '~']) && !to.split('/').any(|it| it == "..")
            }
            _ => false,
        }
    }

    /// Returns true if it changes the working directory.
    pub fn is_move(&self) -> bool {
        self.words
            .first()
            .and_then(|it| it.text.as_deref())
            .is_some_and(|it| matches!(it, "cd" | "pushd" | "popd"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_that_lets_git_make_submodules_runs_nothing_else() {
        for (line, expected) in [
            ("git submodule add https://example.com/lib.git lib", true),
            ("git submodule add -b main --name x ../lib lib && git commit -m x", true),
            ("git submodule update --init --recursive", true),
            ("git -C /elsewhere submodule update --init", false),
            ("cd sub && git submodule update --init", true),
            ("git submodule status", false),
            ("git submodule foreach 'make install'", false),
            ("git submodule update --init && git submodule foreach ls", false),
            (
                "git submodule add x lib; cp evil .git/modules/lib/hooks/post-checkout",
                false,
            ),
            ("git submodule add x lib > .git/modules/lib/config", false),
            ("git -c core.sshCommand=evil submodule add x lib", false),
            ("git --exec-path=. submodule add x lib", false),
            ("GIT_SSH_COMMAND=evil git submodule add x lib", false),
            ("./git submodule add x lib", false),
            ("git submodule add $(evil) lib", false),
            ("git submodule add \"$URL\" lib", false),
            ("sh -c 'git submodule add x lib'", false),
            ("git x && git submodule add x lib", false),
            ("echo git submodule add x lib", false),
        ] {
            assert_eq!(CommandLine::read(line).makes_submodules(), expected, "{line}");
        }
    }
}
