//! Hooks: programs of the user or a project that are called at fixed points, as files of Cursor and Claude Code describe them.
//!
//! Pure, but for reading the files: what a hook is told and what its answer means is worked out here; running it is not.

mod answer;
mod file;
mod input;

pub use answer::{Answer, Broken, Decision, Exit, GivenVariable, Merged, Run, merge, read_answer};
pub use file::{OwnHook, find_hooks};
pub use input::{Common, Occasion, ToolCall, hook_input, patched_files};

use std::{path::PathBuf, time::Duration};

use regex::Regex;

use super::folders::{HeldFile, Owner};
use crate::config::Fingerprint;

/// A point at which hooks are called.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Point {
    SessionStart,
    SessionEnd,
    /// Before a message of the user is sent.
    Prompt,
    /// Before a call of a tool is judged.
    ToolBefore,
    /// After a call that succeeded.
    ToolAfter,
    ToolFailed,
    /// Before a command of the shell is judged.
    ShellBefore,
    /// Before a call of an MCP server's tool is judged.
    McpBefore,
    /// Before a file is read.
    ReadBefore,
    /// After a file was changed.
    EditAfter,
    SubagentStart,
    SubagentStop,
    /// Before the history is replaced by a summary.
    CompactBefore,
    /// After an answer.
    Stop,
    /// When the user is wanted.
    Notification,
}

impl Point {
    /// All points with their names, Cursor's events and Claude Code's.
    const ALL: [(Self, &str, &str, &str); 15] = [
        (Self::SessionStart, "session_start", "sessionStart", "SessionStart"),
        (Self::SessionEnd, "session_end", "sessionEnd", "SessionEnd"),
        (Self::Prompt, "prompt", "beforeSubmitPrompt", "UserPromptSubmit"),
        (Self::ToolBefore, "tool_before", "preToolUse", "PreToolUse"),
        (Self::ToolAfter, "tool_after", "postToolUse", "PostToolUse"),
        (
            Self::ToolFailed,
            "tool_failed",
            "postToolUseFailure",
            "PostToolUseFailure",
        ),
        (Self::ShellBefore, "shell_before", "beforeShellExecution", ""),
        (Self::McpBefore, "mcp_before", "beforeMCPExecution", ""),
        (Self::ReadBefore, "read_before", "beforeReadFile", ""),
        (Self::EditAfter, "edit_after", "afterFileEdit", ""),
        (Self::SubagentStart, "subagent_start", "subagentStart", "SubagentStart"),
        (Self::SubagentStop, "subagent_stop", "subagentStop", "SubagentStop"),
        (Self::CompactBefore, "compact_before", "preCompact", "PreCompact"),
        (Self::Stop, "stop", "stop", "Stop"),
        (Self::Notification, "notification", "", "Notification"),
    ];

    /// Its name in files of sheaf.
    pub fn name(self) -> &'static str {
        Self::ALL.iter().find(|it| it.0 == self).map_or("", |it| it.1)
    }

    /// The point of an event, by the names of a dialect.
    fn of(dialect: Dialect, event: &str) -> Option<Self> {
        let found = Self::ALL.iter().find(|(_, own, cursor, claude)| match dialect {
            Dialect::Sheaf => *own == event || *cursor == event,
            Dialect::Cursor => *cursor == event,
            Dialect::Claude => *claude == event,
        });
        // There are no subagents yet.
        let known = found.filter(|it| !event.is_empty() && !matches!(it.0, Self::SubagentStart | Self::SubagentStop));
        known.map(|it| it.0)
    }

    /// A hook that breaks down at this point counts as a no.
    pub fn fails_closed(self) -> bool {
        matches!(self, Self::ReadBefore | Self::McpBefore)
    }
}

/// The form of a hook's input and answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dialect {
    /// Cursor's form, with names of our own.
    Sheaf,
    Cursor,
    Claude,
}

/// The boundary around a hook while it runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Isolation {
    /// The sandbox, without network.
    #[default]
    Sandbox,
    /// The sandbox, with network.
    Network,
    /// Nothing. Only the user's own settings say so.
    Free,
}

/// A hook.
#[derive(Clone, Debug)]
pub struct Hook {
    pub point: Point,
    pub dialect: Dialect,
    /// The event, as its file calls it.
    pub event: String,
    /// A line for the shell.
    pub command: String,
    /// `None`: it is called each time.
    pub matcher: Option<Matcher>,
    /// A permission rule that a call must fit (`Edit(*.rs)`); only of Claude Code.
    pub condition: Option<String>,
    pub timeout: Duration,
    /// If it breaks down, that counts as a no.
    pub fails_closed: bool,
    /// Number of times that it may go on with an answer.
    pub loop_limit: u32,
    /// Nobody waits for it.
    pub is_detached: bool,
    /// It is called once in a conversation.
    pub is_once: bool,
    pub isolation: Isolation,
    /// The file that it is in, as people see it.
    pub path: String,
    pub owner: Owner,
    /// The folder in which it runs.
    pub directory: PathBuf,
    /// A folder of the user's that it may read, with its scripts perhaps.
    pub folder: Option<PathBuf>,
    /// Variables beside those of every hook.
    pub variables: Vec<(String, String)>,
}

impl Hook {
    /// Returns true if both may run in one sandbox.
    pub fn shares_with(&self, other: &Self) -> bool {
        (self.isolation, self.owner) == (other.isolation, other.owner)
    }
}

/// The subjects that a hook is called for.
#[derive(Clone, Debug)]
pub enum Matcher {
    /// One of these names.
    Names(Vec<String>),
    Pattern(Regex),
}

impl Matcher {
    /// Returns true if it fits one of the subjects.
    fn fits(&self, subjects: &[String]) -> bool {
        subjects.iter().any(|subject| match self {
            Self::Names(names) => names.iter().any(|it| it == subject),
            Self::Pattern(pattern) => pattern.is_match(subject),
        })
    }
}

/// The hooks of the user and of a project, and what is to be said of others.
#[derive(Clone, Debug, Default)]
pub struct HookSet {
    pub hooks: Vec<Hook>,
    /// Events and kinds of handlers that are not supported: file and name.
    pub unsupported: Vec<(String, String)>,
    /// Mistakes, each with its file.
    pub problems: Vec<(String, String)>,
    /// Files that the user has not trusted.
    pub held: Vec<HeldFile>,
    /// The file that switches all hooks off.
    pub switched_off_by: Option<String>,
    /// Files of the project that act, as they were approved. Empty where no content has to be approved.
    pub approved: Vec<ApprovedFile>,
}

/// A file of hooks with the scripts of the workspace that it names, as the user approved them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ApprovedFile {
    root: PathBuf,
    pub path: String,
    scripts: Vec<String>,
    print: Fingerprint,
}

impl HookSet {
    /// The hooks to call at an occasion. One that stands in several files is called once.
    pub fn at(&self, occasion: &Occasion) -> Vec<&Hook> {
        if self.switched_off_by.is_some() {
            return Vec::new();
        }
        let mut found: Vec<&Hook> = Vec::new();
        for hook in self.hooks.iter().filter(|it| it.point == occasion.point()) {
            let subjects = occasion.subjects(hook.dialect);
            let is_meant = hook.matcher.as_ref().is_none_or(|it| it.fits(&subjects));
            let is_meant = is_meant && hook.condition.as_ref().is_none_or(|it| occasion.fits(it));
            // Claude Code calls its hooks only after an answer that has come to its end.
            let is_over = !matches!(occasion, Occasion::Stop { status, .. } if *status != "completed");
            if is_meant && (is_over || hook.dialect != Dialect::Claude) {
                found.push(hook);
            }
        }
        let stands_for = |(at, one): (usize, &Hook), (other_at, other): (usize, &Hook)| {
            let is_same =
                (&one.command, &one.event, &one.directory) == (&other.command, &other.event, &other.directory);
            let is_first = one.owner == other.owner && at < other_at;
            // Nobody's copy takes the place of the user's own hook.
            let is_users =
                one.owner == Owner::User && other.owner != Owner::User && one.fails_closed >= other.fails_closed;
            is_same && (is_first || is_users)
        };
        let all: Vec<(usize, &Hook)> = found.iter().copied().enumerate().collect();
        let is_needed = |it: &(usize, &Hook)| !all.iter().any(|one| stands_for(*one, *it));
        all.iter().filter(|it| is_needed(it)).map(|it| it.1).collect()
    }

    /// Returns true if there is a hook for this point.
    pub fn has(&self, point: Point) -> bool {
        self.switched_off_by.is_none() && self.hooks.iter().any(|it| it.point == point)
    }
}

#[cfg(test)]
mod tests;
