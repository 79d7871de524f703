//! `terminal_command`: a command, what it printed and how it ended.

use serde_json::{Value, json};

use super::{
    ContentRule, Document, KindGroup, KindRow,
    MemberForm::{Code, Count, Flag, List, Object, Text, Word},
    Need::{Always, Expected, Free, Structure, Timed},
    file_edit::FAILURE,
    hook_run, member,
    normal::{lines_closed, rename},
};
use crate::{
    protocol::{CommandState, Permission},
    text::Role,
};

#[derive(Clone, Debug, PartialEq)]
pub struct TerminalCommand<'a> {
    pub command: &'a str,
    pub working_directory: Option<&'a str>,
    /// `None`: running, in the background, rejected or stopped.
    pub exit_code: Option<i64>,
    /// Standard output and error, unchanged; may contain escape sequences.
    pub output: &'a str,
    pub duration_ms: Option<u64>,
    /// Empty: the sandbox's default.
    pub permissions: Vec<Permission>,
    /// Strength of the sandbox around it: `full`, `partial` or `none`. `None` from other writers.
    pub sandbox: Option<&'a str>,
    pub state: CommandState,
    pub truncated: bool,
    pub tool_call_id: Option<&'a str>,
}

impl<'a> TerminalCommand<'a> {
    pub(super) fn read(it: &'a Document) -> Self {
        let members = &it.metadata;
        let exit_code = member::integer(members, "exitCode");
        Self {
            command: member::text(members, "command").unwrap_or_default(),
            working_directory: member::text(members, "workingDirectory"),
            exit_code,
            // Some writers stream what a command prints as content.
            output: member::text(members, "output")
                .filter(|it| !it.is_empty())
                .unwrap_or_else(|| it.text()),
            duration_ms: member::count(members, "duration_ms"),
            permissions: member::texts(members, "permissions")
                .into_iter()
                .map(Permission::parse)
                .collect(),
            sandbox: member::text(members, "sandbox"),
            state: match member::text(members, "state") {
                Some(word) => CommandState::parse(word),
                None if exit_code.is_some() => CommandState::Completed,
                None if it.is_open() => CommandState::Running,
                None if it.is_incomplete() => CommandState::Cancelled,
                // Writers of the flat form need not say how a command ended.
                None => CommandState::Completed,
            },
            truncated: member::boolean(members, "truncated").unwrap_or_default(),
            tool_call_id: member::text(members, "toolCallId"),
        }
    }

    pub(super) fn plain_text(&self) -> String {
        let exit = self
            .exit_code
            .map_or_else(|| self.state.to_string(), |code| format!("exit {code}"));
        format!("$ {}\n{}[{exit}]", self.command, lines_closed(self.output))
    }
}

pub(super) static ROW: KindRow = KindRow {
    aliases: &["command", "terminal"],
    members: &[
        ("command", Text, Always, "command line, as the shell reads it"),
        ("workingDirectory", Text, Free, "folder in which it runs"),
        (
            "exitCode",
            Code,
            Free,
            "exit code; null while it runs, in the background, when it was rejected or stopped",
        ),
        (
            "output",
            Text,
            Expected,
            "standard output and error as they came, escape sequences included",
        ),
        (
            "stdout",
            Text,
            Free,
            "standard output alone, the beginning of it, if it was kept apart",
        ),
        ("stderr", Text, Free, "standard error alone, likewise"),
        ("duration_ms", Count(0), Timed, "duration in milliseconds"),
        (
            "permissions",
            List(&Word(Permission::KNOWN)),
            Structure,
            "permissions beyond the sandbox's default; `[]` for none",
        ),
        ("toolCallId", Text, Free, "call that runs the command"),
        (
            "state",
            Word(CommandState::KNOWN),
            Free,
            "absent means `completed` if there is an exit code",
        ),
        ("truncated", Flag, Free, "true if the output was cut"),
        (
            "sandbox",
            Word(&["full", "partial", "none"]),
            Free,
            "strength of the sandbox around the command",
        ),
        ("logPath", Text, Free, "file with all of the output"),
        (
            "failure",
            Object(&FAILURE),
            Free,
            "why it failed, as the `error` document after it says",
        ),
        ("reason", Text, Free, "reason for a rejected command"),
        hook_run::MEMBER,
    ],
    content: ContentRule::Absent,
    group: KindGroup::Action,
    label: "plain-kind-terminal-command",
    sign: ("$", Role::Done),
    normalise: |members| {
        rename(members, "cwd", "workingDirectory");
        rename(members, "exit_code", "exitCode");
        if let Some(word @ Value::String(_)) = members.get_mut("permissions") {
            *word = json!([word.take()]);
        }
    },
    fill: |metadata, _| {
        member::default(metadata, "command", "");
        member::default(metadata, "output", "");
        member::default(metadata, "permissions", Vec::<Value>::new());
        metadata.entry("exitCode").or_insert(Value::Null);
    },
    ..KindRow::DEFAULT
};
