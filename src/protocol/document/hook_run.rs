//! Hooks that ran for a call, in the document of the call.

use serde_json::{Map, Value};

use super::{
    Member,
    MemberForm::{Code, Count, List, Object, Text},
    Need::{Always, Free},
    Shape, member,
};

/// The member that lists them.
pub const HOOKS: &str = "hooks";

static HOOK_RUN: Shape = Shape {
    name: "HookRun",
    about: "A hook that ran for a call.",
    members: &[
        ("hook", Text, Always, "file and event of the hook"),
        ("command", Text, Always, "its command line"),
        (
            "exitCode",
            Code,
            Free,
            "its exit code; null if it did not exit by itself",
        ),
        ("duration_ms", Count(0), Free, "duration in milliseconds"),
        (
            "effect",
            Text,
            Free,
            "what it changed, or why it failed; absent if it changed nothing",
        ),
        ("message", Text, Free, "its message, or its reason"),
    ],
};

pub(super) const MEMBER: Member = (HOOKS, List(&Object(&HOOK_RUN)), Free, "hooks that ran for the call");

/// A hook that ran for a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HookRun<'a> {
    pub hook: &'a str,
    pub command: &'a str,
    /// `None`: it did not exit by itself.
    pub exit_code: Option<i64>,
    pub duration_ms: u64,
    /// Empty if it changed nothing.
    pub effect: &'a str,
    /// May be empty.
    pub message: &'a str,
}

impl HookRun<'_> {
    /// One line for people: the hook, its time, what it did and its message.
    pub fn line(&self) -> String {
        let effect = match (self.effect, self.exit_code) {
            ("", Some(code)) => format!("exit code {code}"),
            ("", None) => "no effect".to_owned(),
            (effect, _) => effect.to_owned(),
        };
        let message = self.message.lines().next().unwrap_or_default();
        let message = if message.is_empty() || effect.contains(message) {
            String::new()
        } else {
            format!(": {message}")
        };
        format!("hook {} ({} ms): {effect}{message}", self.hook, self.duration_ms)
    }

    /// Returns true if it changed something, or failed.
    pub fn is_news(&self) -> bool {
        !self.effect.is_empty() || !self.message.is_empty()
    }
}

/// The hooks in the metadata of a document.
pub fn hook_runs(metadata: &Map<String, Value>) -> impl Iterator<Item = HookRun<'_>> {
    let runs = member::list(metadata, HOOKS).iter().filter_map(Value::as_object);
    runs.map(|it| HookRun {
        hook: member::text(it, "hook").unwrap_or_default(),
        command: member::text(it, "command").unwrap_or_default(),
        exit_code: member::integer(it, "exitCode"),
        duration_ms: member::count(it, "duration_ms").unwrap_or_default(),
        effect: member::text(it, "effect").unwrap_or_default(),
        message: member::text(it, "message").unwrap_or_default(),
    })
}
