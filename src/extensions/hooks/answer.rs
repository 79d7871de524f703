//! What the answer of a hook means, and the answers of several hooks together. Pure.

use serde_json::{Map, Value, json};

use super::{Dialect, Hook, Point};
use crate::extensions::folders::Owner;

/// Text that a hook adds to a conversation at one time, in bytes.
const CONTEXT_BYTES: usize = 10_000;
/// A reason or a message of a hook, in bytes.
const REASON_BYTES: usize = 2_000;

/// A decision of a hook, the weakest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Decision {
    Allow,
    Ask,
    Deny,
}

/// The end of a hook's program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    Code(i32),
    Signal(i32),
    TimedOut,
    Cancelled,
}

/// The answer of a hook. The default says nothing.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Answer {
    pub decision: Option<Decision>,
    /// For the model.
    pub reason: String,
    /// For the user.
    pub message: String,
    /// The arguments of the call, changed.
    pub input: Option<Map<String, Value>>,
    /// Text that the model is told in addition.
    pub context: String,
    /// Text that the model is told instead of the result.
    pub output: Option<String>,
    /// Message to the model after its answer.
    pub followup: Option<String>,
    /// Variables for later hooks.
    pub variables: Vec<(String, String)>,
    /// The answer ends, for this reason.
    pub halt: Option<String>,
}

/// A hook that did not do what it should.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Broken(pub String);

/// Reads the answer of a hook from its end and its output.
pub fn read_answer(hook: &Hook, exit: Exit, stdout: &str, stderr: &str) -> Result<Answer, Broken> {
    match exit {
        Exit::Code(0) => match hook.dialect {
            Dialect::Sheaf | Dialect::Cursor => cursor(hook.point, stdout),
            Dialect::Claude => claude(hook.point, stdout),
        },
        Exit::Code(2) => Ok(refused(hook.point, stderr)),
        Exit::Code(127) => Err(broken(stderr, "its program was not found (exit code 127)")),
        Exit::Code(code) => Err(broken(stderr, &format!("exit code {code}"))),
        Exit::Signal(signal) => Err(Broken(format!("it was ended by signal {signal}"))),
        Exit::TimedOut => Err(Broken(format!("it took longer than {} s", hook.timeout.as_secs_f64()))),
        Exit::Cancelled => Err(Broken("it was cancelled".to_owned())),
    }
}

fn broken(stderr: &str, what: &str) -> Broken {
    match stderr.lines().find(|it| !it.trim().is_empty()) {
        Some(line) => Broken(format!("{what}: {}", cut(line.trim(), 200))),
        None => Broken(what.to_owned()),
    }
}

/// The meaning of exit code 2: no, for the reason on standard error.
fn refused(point: Point, stderr: &str) -> Answer {
    let reason = cut(stderr.trim(), REASON_BYTES);
    let mut answer = Answer::default();
    match point {
        Point::Stop => answer.followup = Some(reason).filter(|it| !it.is_empty()),
        Point::ToolAfter | Point::ToolFailed | Point::EditAfter => answer.context = reason,
        Point::SessionStart | Point::SessionEnd | Point::Notification => answer.message = reason,
        Point::Prompt
        | Point::ToolBefore
        | Point::ShellBefore
        | Point::McpBefore
        | Point::ReadBefore
        | Point::SubagentStart
        | Point::SubagentStop
        | Point::CompactBefore => {
            answer.decision = Some(Decision::Deny);
            answer.reason = reason;
        }
    }
    answer
}

/// The answer of a program of which the first line says that it goes on by itself: the next line that is one, else nothing.
/// `None`: it says nothing of the kind.
fn detached(stdout: &str) -> Option<Map<String, Value>> {
    let mut lines = stdout.lines().filter(|it| !it.trim().is_empty());
    let first = parsed(lines.next()?).ok()?;
    let is_detached = first.get("async").and_then(Value::as_bool) == Some(true);
    is_detached.then(|| lines.find_map(|it| parsed(it).ok()).unwrap_or_default())
}

fn parsed(stdout: &str) -> Result<Map<String, Value>, Broken> {
    match serde_json::from_str(stdout.trim()) {
        Ok(Value::Object(members)) => Ok(members),
        Ok(_) => Err(Broken("its output is no JSON object".to_owned())),
        Err(error) => Err(Broken(format!("its output is not JSON: {error}"))),
    }
}

fn text(members: &Map<String, Value>, name: &str) -> String {
    let text = members.get(name).and_then(Value::as_str).unwrap_or_default();
    cut(text.trim(), REASON_BYTES)
}

fn context(members: &Map<String, Value>, name: &str) -> String {
    let text = members.get(name).and_then(Value::as_str).unwrap_or_default();
    cut(text.trim(), CONTEXT_BYTES)
}

fn cut(text: &str, most: usize) -> String {
    if text.len() <= most {
        return text.to_owned();
    }
    let begin = text.get(..text.floor_char_boundary(most)).unwrap_or_default();
    format!("{begin}\n[cut: {} bytes are left out]", text.len() - begin.len())
}

fn decision(word: &str) -> Result<Option<Decision>, Broken> {
    match word {
        "" | "defer" => Ok(None),
        "allow" | "approve" => Ok(Some(Decision::Allow)),
        "ask" => Ok(Some(Decision::Ask)),
        "deny" | "block" => Ok(Some(Decision::Deny)),
        other => Err(Broken(format!(
            "`{}` is no decision: allow, ask or deny",
            cut(other, 40)
        ))),
    }
}

fn cursor(point: Point, stdout: &str) -> Result<Answer, Broken> {
    if stdout.trim().is_empty() {
        return Ok(Answer::default());
    }
    let members = parsed(stdout)?;
    let message = text(&members, "user_message");
    let mut answer = Answer {
        message: if message.is_empty() {
            text(&members, "userMessage")
        } else {
            message
        },
        ..Answer::default()
    };
    match point {
        Point::ToolBefore | Point::ShellBefore | Point::McpBefore | Point::ReadBefore | Point::SubagentStart => {
            // An older form has other names.
            let word = Some(text(&members, "permission")).filter(|it| !it.is_empty());
            answer.decision = decision(&word.unwrap_or_else(|| text(&members, "decision")))?;
            let reasons = ["agent_message", "agentMessage", "reason"].map(|it| text(&members, it));
            answer.reason = reasons
                .into_iter()
                .find(|it| !it.is_empty())
                .unwrap_or_else(|| answer.message.clone());
            if point == Point::ToolBefore {
                answer.input = members.get("updated_input").and_then(Value::as_object).cloned();
            }
        }
        Point::Prompt => {
            if members.get("continue") == Some(&Value::Bool(false)) {
                answer.decision = Some(Decision::Deny);
                answer.reason.clone_from(&answer.message);
            }
        }
        Point::ToolAfter => {
            answer.context = context(&members, "additional_context");
            answer.output = members.get("updated_mcp_tool_output").map(|it| match it {
                Value::String(text) => text.clone(),
                other => other.to_string(),
            });
        }
        Point::SessionStart => {
            answer.context = context(&members, "additional_context");
            let variables = members.get("env").and_then(Value::as_object).into_iter().flatten();
            let is_name = |it: &str| {
                let mut bytes = it.bytes();
                bytes.next().is_some_and(|it| it.is_ascii_alphabetic() || it == b'_')
                    && bytes.all(|it| it.is_ascii_alphanumeric() || it == b'_')
            };
            answer.variables = variables
                .filter_map(|(name, value)| Some((name.clone(), value.as_str()?.to_owned())))
                .filter(|(name, value)| is_name(name) && !value.contains('\0'))
                .collect();
        }
        Point::Stop | Point::SubagentStop => {
            answer.followup = Some(context(&members, "followup_message")).filter(|it| !it.is_empty());
        }
        Point::SessionEnd | Point::ToolFailed | Point::EditAfter | Point::CompactBefore | Point::Notification => {}
    }
    Ok(answer)
}

fn claude(point: Point, stdout: &str) -> Result<Answer, Broken> {
    let written = stdout.trim();
    // What is no JSON is a text: context where a model is about to read, else for a log.
    if !written.starts_with('{') {
        let is_context = matches!(point, Point::SessionStart | Point::Prompt);
        return Ok(Answer {
            context: if is_context {
                cut(written, CONTEXT_BYTES)
            } else {
                String::new()
            },
            ..Answer::default()
        });
    }
    let members = match detached(written) {
        Some(members) => members,
        None => parsed(written)?,
    };
    let none = Map::new();
    let own = members
        .get("hookSpecificOutput")
        .and_then(Value::as_object)
        .unwrap_or(&none);
    let mut answer = Answer {
        message: text(&members, "systemMessage"),
        context: context(own, "additionalContext"),
        ..Answer::default()
    };
    if members.get("continue") == Some(&Value::Bool(false)) {
        let why = text(&members, "stopReason");
        answer.halt = Some(if why.is_empty() {
            "a hook ended the answer".to_owned()
        } else {
            why
        });
    }
    let general = decision(&text(&members, "decision"))?;
    let reason = text(&members, "reason");
    match point {
        Point::ToolBefore => {
            answer.decision = decision(&text(own, "permissionDecision"))?.or(general);
            let why = text(own, "permissionDecisionReason");
            answer.reason = if why.is_empty() { reason } else { why };
            answer.input = own.get("updatedInput").and_then(Value::as_object).cloned();
        }
        Point::ToolAfter => {
            if general == Some(Decision::Deny) {
                answer.context = [answer.context, reason]
                    .into_iter()
                    .filter(|it| !it.is_empty())
                    .collect::<Vec<_>>()
                    .join("\n");
            }
            answer.output = own.get("updatedToolOutput").map(|it| match it {
                Value::String(text) => text.clone(),
                other => other.to_string(),
            });
        }
        Point::Stop => {
            if general == Some(Decision::Deny) {
                answer.followup = Some(reason).filter(|it| !it.is_empty());
            }
        }
        Point::Prompt | Point::CompactBefore => {
            answer.decision = general.filter(|it| *it == Decision::Deny);
            answer.reason = reason;
        }
        Point::SessionStart
        | Point::SessionEnd
        | Point::ToolFailed
        | Point::ShellBefore
        | Point::McpBefore
        | Point::ReadBefore
        | Point::EditAfter
        | Point::SubagentStart
        | Point::SubagentStop
        | Point::Notification => {}
    }
    Ok(answer)
}

/// A hook that was run.
#[derive(Clone, Debug)]
pub struct Run<'a> {
    pub hook: &'a Hook,
    pub result: Result<Answer, Broken>,
    pub took_ms: u64,
    /// `None`: it did not run.
    pub exit: Option<Exit>,
}

impl Run<'_> {
    /// The run as the document of its call has it.
    fn told(&self, effect: &str, message: &str) -> Value {
        let exit = match self.exit {
            Some(Exit::Code(code)) => Some(code),
            Some(Exit::Signal(_) | Exit::TimedOut | Exit::Cancelled) | None => None,
        };
        let mut told = json!({
            "hook": format!("{} {}", self.hook.path, self.hook.event),
            "command": cut(&self.hook.command, REASON_BYTES),
            "exitCode": exit,
            "duration_ms": self.took_ms,
        });
        if let Some(members) = told.as_object_mut() {
            for (name, text) in [("effect", effect), ("message", message)] {
                if !text.is_empty() {
                    members.insert(name.to_owned(), text.into());
                }
            }
        }
        told
    }
}

/// A variable that a hook sets for later hooks of its own file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GivenVariable {
    pub owner: Owner,
    /// The file, as it is shown.
    pub path: String,
    /// Its name and its value.
    pub variable: (String, String),
}

/// The answers of all hooks of an occasion together.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Merged {
    pub decision: Option<Decision>,
    /// The user's own hook allows it, and no other hook objects: the question may be left out. A project's hook gives no
    /// permissions.
    pub lifts_question: bool,
    /// For the model.
    pub reason: String,
    pub input: Option<Map<String, Value>>,
    pub context: String,
    pub output: Option<String>,
    pub followup: Option<String>,
    /// For later hooks of the same file.
    pub variables: Vec<GivenVariable>,
    pub halt: Option<String>,
    /// For the user: a line for each hook that changed something or broke down.
    pub lines: Vec<String>,
    /// Each run, in the form of a `HookRun` of a document.
    pub runs: Vec<Value>,
}

/// Puts the answers together: no goes before ask, and ask before yes; changed input counts if one hook alone changes it. A hook
/// that broke down counts as a no where its file or its point says so, else it says nothing. `loops`: number of times that
/// a hook has gone on with this answer.
pub fn merge(runs: &[Run<'_>], loops: u32) -> Merged {
    let mut merged = Merged::default();
    let mut inputs = Vec::new();
    for run in runs {
        let Run {
            hook, result, took_ms, ..
        } = run;
        let name = format!("hook {} {}", hook.path, hook.event);
        let answer = match result {
            Ok(answer) => answer.clone(),
            Err(Broken(why)) => {
                let is_closed = hook.fails_closed || hook.point.fails_closed();
                let ends = if is_closed { "; it counts as a no" } else { "" };
                merged.lines.push(format!("{name}: {why}{ends}"));
                merged.runs.push(run.told(&format!("{why}{ends}"), ""));
                if is_closed {
                    deny(&mut merged, format!("a hook that guards this broke down: {why}"));
                }
                continue;
            }
        };
        let mut told = Vec::new();
        match answer.decision {
            Some(Decision::Deny) => {
                told.push("denied".to_owned());
                let reason = if answer.reason.is_empty() {
                    format!("a hook of {} forbids it", hook.path)
                } else {
                    answer.reason.clone()
                };
                deny(&mut merged, reason);
            }
            Some(Decision::Ask) => {
                told.push("asks".to_owned());
                if merged.decision != Some(Decision::Deny) {
                    merged.decision = Some(Decision::Ask);
                    merged.reason.clone_from(&answer.reason);
                }
            }
            Some(Decision::Allow) => {
                merged.decision = merged.decision.max(Some(Decision::Allow));
                merged.lifts_question |= hook.owner == Owner::User;
            }
            None => {}
        }
        if let Some(input) = answer.input {
            told.push("changed the input".to_owned());
            inputs.push(input);
        }
        if !answer.context.is_empty() {
            told.push("added context".to_owned());
            if !merged.context.is_empty() {
                merged.context.push_str("\n\n");
            }
            merged.context.push_str(&answer.context);
        }
        if answer.output.is_some() {
            told.push("changed the output".to_owned());
            merged.output = answer.output;
        }
        if let Some(followup) = answer.followup.filter(|_| loops < hook.loop_limit) {
            told.push("goes on".to_owned());
            merged.followup = Some(match merged.followup.take() {
                Some(before) => format!("{before}\n\n{followup}"),
                None => followup,
            });
        }
        if answer.halt.is_some() {
            told.push("ended the answer".to_owned());
            merged.halt = answer.halt;
        }
        let given = answer.variables.into_iter().map(|variable| GivenVariable {
            owner: hook.owner,
            path: hook.path.clone(),
            variable,
        });
        merged.variables.extend(given);
        let said = if answer.message.is_empty() {
            &answer.reason
        } else {
            &answer.message
        };
        merged.runs.push(run.told(&told.join(", "), said));
        if !answer.message.is_empty() {
            told.push(answer.message);
        }
        if !told.is_empty() {
            merged.lines.push(format!("{name} ({took_ms} ms): {}", told.join(", ")));
        }
    }
    merged.lifts_question &= merged.decision == Some(Decision::Allow);
    if inputs.len() > 1 {
        merged
            .lines
            .push("more than one hook changes the input; it stays as it was".to_owned());
    } else {
        merged.input = inputs.pop();
    }
    merged
}

fn deny(merged: &mut Merged, reason: String) {
    if merged.decision == Some(Decision::Deny) {
        merged.reason = format!("{}\n{reason}", merged.reason);
    } else {
        merged.decision = Some(Decision::Deny);
        merged.reason = reason;
    }
}
