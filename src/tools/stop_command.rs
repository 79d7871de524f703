//! `stop_command`: ends a command that runs in the background.

use std::time::Duration;

use serde_json::json;

use super::{
    await_command::{self, known},
    run_terminal_cmd::Report,
    tool::{Class, Context, Fault, Input, Outcome, Tool, Work, names, schema},
};
use crate::protocol::{CallSubject, Mode};

/// The description that a model is shown.
const ABOUT: &str = "End a command that runs in the background, and read what it has printed since it was last asked.";

/// The tool `stop_command`.
pub fn tool() -> Tool {
    Tool {
        aliases: names(["KillShell", "KillBash", "TaskStop"]),
        about: ABOUT.into(),
        schema: schema(
            json!({
                "command_id": { "type": "string", "description": "As run_terminal_cmd gave it" }
            }),
            &["command_id"],
        ),
        synonyms: &[("command_id", await_command::ID_SYNONYMS)],
        word: "stop".into(),
        subject: CallSubject::Command,
        keeps_end: true,
        modes: &Mode::ALL,
        examples: &[r#"{ "command_id": "cmd-1" }"#, r#"{ "shell_id": "cmd-1" }"#],
        ..Tool::new("stop_command", Class::Runs, Work::call(|_, _| Ok(Vec::new()), run))
    }
}

/// Longer than a command has to end by itself.
const LONGEST_WAIT: Duration = Duration::from_secs(10);

/// Ends a command, and reports the output since the last call.
pub(super) async fn run(input: Input, context: Context) -> Result<Outcome, Fault> {
    let running = known(&context, input.text("command_id").unwrap_or_default())?;
    let had_ended = running.outcome().is_some();
    running.stop();
    let is_over = tokio::time::timeout(LONGEST_WAIT, running.ended()).await.is_ok();
    if !is_over {
        let message = format!("`{}` does not end: a process of it cannot be killed", running.id());
        return Err(Fault::new("TOOL_FAILED", message).hint("Go on without it, and tell the user."));
    }
    running.tell_end();
    let mut report = Report::of(&running, &running.unread(), None, &context.settings.limits);
    if had_ended {
        report.note("it had ended by itself");
    }
    Ok(report.outcome(running.directory()))
}
