//! `await_command`: what a command in the background has printed since.

use std::time::Duration;

use serde_json::json;

use super::{
    run_terminal_cmd::Report,
    tool::{Class, Context, Fault, Input, Outcome, Tool, Work, names, schema},
};
use crate::protocol::CallSubject;

/// The description that a model is shown.
const ABOUT: &str =
    "Wait for a command that runs in the background, and read what it has printed since it was last asked.";

/// The tool `await_command`.
pub fn tool() -> Tool {
    Tool {
        aliases: names(["AwaitShell"]),
        about: ABOUT.into(),
        schema: schema(
            json!({
                "command_id": { "type": "string", "description": "As run_terminal_cmd gave it" },
                "block_until_ms": { "type": "integer", "description": "How long to wait for its end; 0: only look; default 30000" }
            }),
            &["command_id"],
        ),
        synonyms: &[
            ("command_id", &["commandId", "id", "shell_id", "task_id"]),
            ("block_until_ms", &["timeout_ms", "timeout"]),
        ],
        word: "await".into(),
        subject: CallSubject::Command,
        keeps_end: true,
        examples: &[r#"{ "command_id": "cmd_1", "id": "1", "timeout_ms": 1 }"#],
        ..Tool::new("await_command", Class::Runs, Work::call(|_, _| Ok(Vec::new()), run))
    }
}

/// Nobody waits longer than this for one call.
const LONGEST_WAIT: Duration = Duration::from_mins(10);

/// Waits for a command's end, and reports the output since the last call.
pub(super) async fn run(input: Input, context: Context) -> Result<Outcome, Fault> {
    let id = input.text("command_id").unwrap_or_default();
    let commands = context.workspace.commands();
    let Some(running) = commands.get(id) else {
        let known: Vec<_> = commands.all().iter().map(|it| format!("`{}`", it.id())).collect();
        let fault = Fault::arguments(format!("unknown command `{id}`"));
        return Err(if known.is_empty() {
            fault.hint("No command was run in this conversation.")
        } else {
            fault.hint(format!("There are {}.", known.join(", ")))
        });
    };
    let asked = input.integer("block_until_ms").and_then(|it| u64::try_from(it).ok());
    let wait = asked.map_or(context.settings.sandbox.command_wait, Duration::from_millis);
    tokio::time::timeout(wait.min(LONGEST_WAIT), running.ended()).await.ok();
    let report = Report::of(&running, &running.unread(), None, &context.settings.limits);
    Ok(report.outcome(running.directory()))
}
