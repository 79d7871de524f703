//! Work on the person's own files, as data: their settings, and the files of rules that they add to.

use std::path::PathBuf;

/// Work on the person's own files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FileTask {
    /// Lists the files of rules.
    Rules,
    /// Adds a line to a file of rules, unless it is no longer as it was read.
    AddLine { file: RuleFile, line: String },
    /// Sets a setting in the user's file; `None` removes it.
    Setting { path: String, value: Option<String> },
    /// Adds an entry to a list of the user's settings, or removes it.
    Entry {
        path: &'static str,
        entry: String,
        is_removed: bool,
    },
}

/// The outcome of work on files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FileOutcome {
    Rules(Vec<RuleFile>),
    /// A file was written, at this line (from 1).
    Written {
        file: String,
        line: usize,
    },
}

/// A file of rules.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RuleFile {
    pub path: PathBuf,
    /// As it is shown: `~/.config/sheaf/rules/memory.md`, `AGENTS.md`.
    pub shown: String,
    /// `None`: there is no such file yet.
    pub text: Option<String>,
    /// The file that new lines of this sort go to.
    pub role: RuleRole,
}

/// Whose rules a file holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RuleRole {
    /// The user's own, for all projects; new lines go there.
    User,
    /// The project's; new lines go there.
    Project,
    /// Another file that is read.
    #[default]
    Other,
}

impl RuleFile {
    /// The text of the file with a line added as an item at its end.
    pub fn with(&self, line: &str) -> String {
        let mut text = self.text.clone().unwrap_or_default();
        if text.is_empty() && self.role == RuleRole::Project {
            text.push_str("# AGENTS.md\n\n");
        }
        if !text.is_empty() && !text.ends_with('\n') {
            text.push('\n');
        }
        text.push_str(&format!("- {line}\n"));
        text
    }
}
