//! Hooks around the calls of tools: what they are told, and what their answers do to a call and its result.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use serde_json::{Map, Value};

use crate::{
    agent::{
        hooks::{Hooks, changed_input},
        served,
    },
    extensions::hooks::{Decision, Merged, Occasion, Point, ToolCall},
    sandbox::{Commands, Tier},
    tools::{Access, Context, Fault, Input as Arguments, Outcome, Proposal, Tool, rename_symbol, run_terminal_cmd},
};

/// The tool whose calls are reads of a file.
const READ: &str = "read_file";
/// The beginning of what a hook adds to a result.
const ADDED: &str = "[a hook adds] ";
/// Files of one patch that hooks are called for, one by one.
const MOST_FILES: usize = 100;
/// Bytes of a file that a hook is shown before it is read.
const CONTENT_BYTES: u64 = 1 << 20;

/// A call that is going to run, as hooks are told it, and what hooks have added to its result.
pub struct Noted {
    pub call: ToolCall,
    pub context: String,
}

/// A call as hooks are told it.
pub fn call(tool: &Tool, arguments: &Arguments, accesses: &[Access], context: &Context) -> ToolCall {
    let root = context.workspace.root().to_string_lossy().into_owned();
    let directory = accesses.iter().find_map(|it| match it {
        Access::Command { directory, .. } => Some(directory.path.to_string_lossy().into_owned()),
        _ => None,
    });
    let mcp = accesses.iter().find_map(|it| match it {
        Access::Mcp { server, tool } => Some((server.clone(), tool.clone())),
        _ => None,
    });
    ToolCall {
        id: context.call.clone(),
        name: tool.name.clone(),
        arguments: inner(tool, arguments).unwrap_or_else(|| arguments.0.clone()),
        mcp,
        file: None,
        directory: directory.unwrap_or_else(|| root.clone()),
        root,
    }
}

/// The arguments of a server's tool that is called through another tool, which hooks need not know.
fn inner(tool: &Tool, arguments: &Arguments) -> Option<Map<String, Value>> {
    if tool.name != served::CALL {
        return None;
    }
    match arguments.0.get("arguments") {
        Some(Value::Object(inner)) => Some(inner.clone()),
        Some(Value::String(text)) => serde_json::from_str(text).ok(),
        Some(_) | None => Some(Map::new()),
    }
}

/// The arguments of a call after a hook has changed what it was told.
pub fn changed(tool: &Tool, arguments: &Arguments, changed: &Map<String, Value>) -> Map<String, Value> {
    match inner(tool, arguments) {
        None => changed_input(tool.synonyms, &arguments.0, changed),
        Some(inner) => {
            let mut whole = arguments.0.clone();
            whole.insert("arguments".to_owned(), changed_input(&[], &inner, changed).into());
            whole
        }
    }
}

/// Calls the hooks of a call that has been prepared.
pub async fn before(
    hooks: &Arc<Hooks>,
    tool: &Tool,
    arguments: &Arguments,
    accesses: &[Access],
    context: &Context,
) -> Merged {
    let points = [
        Point::ToolBefore,
        Point::ShellBefore,
        Point::McpBefore,
        Point::ReadBefore,
    ];
    if !points.iter().any(|it| hooks.has(*it)) {
        return Merged::default();
    }
    let call = call(tool, arguments, accesses, context);
    let mut occasions: Vec<Occasion> = about_each_file(&call, accesses)
        .into_iter()
        .map(Occasion::ToolBefore)
        .collect();
    // A call may have several commands: a skill whose text has some.
    for access in accesses {
        let Access::Command { line, .. } = access else { continue };
        let asked = arguments.integer("timeout_ms").and_then(|it| u64::try_from(it).ok());
        let wait = context.settings.sandbox.command_wait;
        occasions.push(shell(call.clone(), line, asked.map_or(wait, Duration::from_millis)));
    }
    if call.mcp.is_some() {
        occasions.push(Occasion::McpBefore(call.clone()));
    }
    if tool.name == READ && hooks.has(Point::ReadBefore) {
        for access in accesses {
            let Access::Read(file) = access else { continue };
            let content = context.workspace.read(file, CONTENT_BYTES).unwrap_or_default();
            occasions.push(Occasion::ReadBefore {
                call: call.clone(),
                path: file.path.to_string_lossy().into_owned(),
                content: String::from_utf8_lossy(&content).into_owned(),
            });
        }
    }
    let runs = occasions.into_iter().map(|it| hooks.run(it));
    let all = futures::future::join_all(runs).await;
    all.into_iter().fold(Merged::default(), joined)
}

/// The call once for each file that it names in one argument: guards look at a path.
fn about_each_file(call: &ToolCall, accesses: &[Access]) -> Vec<ToolCall> {
    let mut files = call.patched_files();
    if call.name == rename_symbol::NAME {
        files.extend(accesses.iter().filter_map(|it| match it {
            Access::Write(file) => Some(file.shown.clone()),
            _ => None,
        }));
    }
    if files.len() < 2 {
        return vec![call.clone()];
    }
    let about = |file: &String| ToolCall {
        file: Some(file.clone()),
        ..call.clone()
    };
    files.iter().take(MOST_FILES).map(about).collect()
}

/// A command of the shell as hooks are told it.
fn shell(call: ToolCall, line: &str, timeout: Duration) -> Occasion {
    Occasion::ShellBefore {
        call,
        command: line.to_owned(),
        timeout_ms: u64::try_from(timeout.as_millis()).unwrap_or(u64::MAX),
        is_sandboxed: Commands::tier() != Tier::None,
    }
}

/// Calls the hooks of a command that is a part of the user's message. Returns the reason why not; `None`: it may run.
pub async fn forbids(hooks: &Arc<Hooks>, line: &str, timeout: Duration) -> Option<String> {
    let root = hooks.root()?.to_string_lossy().into_owned();
    let arguments = serde_json::json!({ "command": line });
    let call = ToolCall {
        name: run_terminal_cmd::NAME.to_owned(),
        arguments: arguments.as_object().cloned().unwrap_or_default(),
        directory: root.clone(),
        root,
        ..ToolCall::default()
    };
    let asked = [Occasion::ToolBefore(call.clone()), shell(call, line, timeout)];
    let answers = futures::future::join_all(asked.into_iter().map(|it| hooks.run(it))).await;
    let answer = answers.into_iter().fold(Merged::default(), joined);
    // Nobody is asked here, and what is written is what runs.
    let is_refused = answer.decision > Some(Decision::Allow) || answer.input.is_some() || answer.halt.is_some();
    is_refused.then(|| {
        let said = if answer.reason.is_empty() {
            answer.halt
        } else {
            Some(answer.reason)
        };
        said.filter(|it| !it.is_empty())
            .unwrap_or_else(|| "a hook refuses it".to_owned())
    })
}

/// Two answers as one: the stricter decision, with its reason.
fn joined(mut one: Merged, other: Merged) -> Merged {
    let objects = |it: &Merged| it.decision.is_some_and(|it| it != Decision::Allow);
    one.lifts_question = (one.lifts_question || other.lifts_question) && !objects(&one) && !objects(&other);
    if other.decision > one.decision {
        one.decision = other.decision;
        one.reason = other.reason;
    }
    one.input = one.input.or(other.input);
    one.halt = one.halt.or(other.halt);
    add(&mut one.context, &other.context);
    one
}

/// The stricter of two answers of the guards: of a call, and of what a hook has made of it.
pub fn judged_again(first: Merged, second: Merged) -> Merged {
    let lifts_question = first.lifts_question && second.lifts_question;
    // The same hooks add the same context.
    let context = String::new();
    let mut merged = joined(first, Merged { context, ..second });
    merged.lifts_question &= lifts_question;
    merged
}

/// Calls the hooks of a call that has run; what they add stands behind its result.
pub async fn after(
    hooks: &Arc<Hooks>,
    noted: Option<Noted>,
    mut result: Result<Outcome, Fault>,
    began: Instant,
) -> Result<Outcome, Fault> {
    let Some(Noted { call, context }) = noted else {
        return result;
    };
    if let Ok(outcome) = &mut result {
        add(&mut outcome.text, &context);
    }
    let point = if result.is_ok() {
        Point::ToolAfter
    } else {
        Point::ToolFailed
    };
    if !hooks.has(point) {
        return result;
    }
    let duration_ms = u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX);
    match result {
        Ok(mut outcome) => {
            let is_foreign = call.mcp.is_some();
            let merged = hooks
                .run(Occasion::ToolAfter {
                    call,
                    output: outcome.text.clone(),
                    data: outcome.data.clone(),
                    duration_ms,
                })
                .await;
            if let Some(text) = merged.output.filter(|it| is_foreign || !it.is_empty()) {
                outcome.text = text;
            }
            add(&mut outcome.text, &merged.context);
            Ok(outcome)
        }
        Err(mut fault) => {
            let is_denied = matches!(
                fault.code,
                "PERMISSION_DENIED" | "TOOL_REJECTED" | "PATH_OUTSIDE_WORKSPACE"
            );
            let merged = hooks
                .run(Occasion::ToolFailed {
                    call,
                    error: fault.message.clone(),
                    is_timeout: fault.code == "TOOL_TIMEOUT",
                    is_denied,
                    duration_ms,
                })
                .await;
            if !merged.context.is_empty() {
                add(fault.next.get_or_insert_default(), &merged.context);
            }
            Err(fault)
        }
    }
}

/// Calls the hooks of a change that was made. The text is what they add to its result; empty: nothing.
pub async fn after_edit(
    hooks: &Arc<Hooks>,
    noted: Option<Noted>,
    (call, proposal): (&str, &Proposal),
    began: Instant,
) -> Outcome {
    let mut outcome = Outcome::default();
    if let Some(noted) = &noted {
        add(&mut outcome.text, &noted.context);
    }
    if hooks.has(Point::EditAfter) {
        for change in &proposal.changes {
            let file = change.to.as_ref().unwrap_or(&change.file);
            let edits = change.hunks.iter().map(|it| (it.old.clone(), it.new.clone()));
            let merged = hooks
                .run(Occasion::EditAfter {
                    call: call.to_owned(),
                    path: file.path.to_string_lossy().into_owned(),
                    edits: edits.collect(),
                })
                .await;
            add(&mut outcome.text, &merged.context);
        }
    }
    if let Some(Noted { call, .. }) = noted.filter(|_| hooks.has(Point::ToolAfter)) {
        let merged = hooks
            .run(Occasion::ToolAfter {
                call,
                output: proposal.text.clone(),
                data: proposal.data.clone().into(),
                duration_ms: u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX),
            })
            .await;
        add(&mut outcome.text, &merged.context);
    }
    outcome
}

/// Puts what hooks say behind a text.
fn add(text: &mut String, said: &str) {
    if said.is_empty() {
        return;
    }
    if !text.is_empty() {
        text.push_str("\n\n");
    }
    if !said.starts_with(ADDED) {
        text.push_str(ADDED);
    }
    text.push_str(said);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_two_answers_the_stricter_one_counts_and_nothing_is_lost() {
        let asked = |decision, halt: Option<&str>| Merged {
            decision,
            halt: halt.map(str::to_owned),
            ..Merged::default()
        };
        for (one, other, decision, halt) in [
            (asked(None, None), asked(None, Some("enough")), None, Some("enough")),
            (asked(None, Some("enough")), asked(None, None), None, Some("enough")),
            (
                asked(Some(Decision::Deny), None),
                asked(Some(Decision::Allow), Some("x")),
                Some(Decision::Deny),
                Some("x"),
            ),
        ] {
            let both = joined(one, other);
            assert_eq!((both.decision, both.halt.as_deref()), (decision, halt));
        }
    }
}
