//! `await_command`: what a command in the background has printed since.

use std::time::Duration;

use serde_json::json;

use super::{
    run_terminal_cmd::Report,
    tool::{Class, Context, Fault, Input, Outcome, Tool, Work, names, schema},
};
use crate::{
    protocol::{CallSubject, Mode},
    sandbox::{How, Running},
};

/// The description that a model is shown.
const ABOUT: &str = "Wait for a command that runs in the background, and read what it has printed since it was last asked. Without an id: \
     list the commands.";

/// Other names of `command_id`.
pub(super) const ID_SYNONYMS: &[&str] = &["commandId", "id", "shell_id", "bash_id", "task_id"];

/// The tool `await_command`.
pub fn tool() -> Tool {
    Tool {
        aliases: names(["AwaitShell", "BashOutput", "TaskOutput"]),
        about: ABOUT.into(),
        schema: schema(
            json!({
                "command_id": { "type": "string", "description": "As run_terminal_cmd gave it; left out: list them" },
                "block_until_ms": { "type": "integer", "description": "How long to wait for its end; 0: only look; default 30000" }
            }),
            &[],
        ),
        synonyms: &[
            ("command_id", ID_SYNONYMS),
            ("block_until_ms", &["timeout_ms", "timeout"]),
        ],
        word: "await".into(),
        subject: CallSubject::Command,
        keeps_end: true,
        modes: &Mode::ALL,
        examples: &["{}", r#"{ "command_id": "cmd_1", "id": "1", "timeout_ms": 1 }"#],
        ..Tool::new("await_command", Class::Runs, Work::call(|_, _| Ok(Vec::new()), run))
    }
}

/// Nobody waits longer than this for one call.
const LONGEST_WAIT: Duration = Duration::from_mins(10);

/// Waits for a command's end, and reports the output since the last call.
pub(super) async fn run(input: Input, context: Context) -> Result<Outcome, Fault> {
    let id = input.text("command_id").unwrap_or_default();
    if id.is_empty() {
        return Ok(list(&context));
    }
    let running = known(&context, id)?;
    let asked = input.integer("block_until_ms").and_then(|it| u64::try_from(it).ok());
    let wait = asked.map_or(context.settings.sandbox.command_wait, Duration::from_millis);
    tokio::time::timeout(wait.min(LONGEST_WAIT), running.ended()).await.ok();
    if running.outcome().is_some() {
        running.tell_end();
    }
    let report = Report::of(&running, &running.unread(), None, &context.settings.limits);
    Ok(report.outcome(running.directory()))
}

/// The command with this id.
pub(super) fn known(context: &Context, id: &str) -> Result<Running, Fault> {
    let commands = context.workspace.commands();
    if let Some(running) = commands.get(id) {
        return Ok(running);
    }
    let known: Vec<_> = commands.all().iter().map(|it| format!("`{}`", it.id())).collect();
    let fault = Fault::arguments(format!("unknown command `{id}`"));
    Err(if known.is_empty() {
        fault.hint("No command was run in this conversation.")
    } else {
        fault.hint(format!("There are {}.", known.join(", ")))
    })
}

/// The longest part of a command's line in a list, in bytes.
const LINE_BYTES: usize = 200;

/// The commands in memory, those that run first.
fn list(context: &Context) -> Outcome {
    let mut all = context.workspace.commands().all();
    all.sort_by_key(|it| it.outcome().is_some());
    let line = |it: &Running| {
        let text = it.line().replace('\n', " ");
        let cut = text.floor_char_boundary(LINE_BYTES);
        let text = match text.get(..cut) {
            Some(start) if cut < text.len() => format!("{start}…"),
            _ => text,
        };
        format!("{}: {}: {text}", it.id(), state(it))
    };
    let lines: Vec<String> = all.iter().map(line).collect();
    let text = if lines.is_empty() {
        "No command was run in this conversation.".to_owned()
    } else {
        lines.join("\n")
    };
    let item = |it: &Running| json!({ "commandId": it.id(), "command": it.line(), "state": state(it) });
    Outcome {
        text,
        data: json!({ "commands": all.iter().map(item).collect::<Vec<_>>() }),
        ..Outcome::default()
    }
}

fn state(running: &Running) -> String {
    match running.outcome().map(|it| it.how) {
        None => "running".to_owned(),
        Some(How::Exited(code)) => format!("ended with exit code {code}"),
        Some(How::Killed(signal)) => format!("ended by signal {signal}"),
        Some(How::TimedOut) => "ended at its limit".to_owned(),
        Some(How::Cancelled) => "stopped".to_owned(),
    }
}
