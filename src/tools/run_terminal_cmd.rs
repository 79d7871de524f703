//! `run_terminal_cmd`: a line for the shell.
//!
//! Each command is a fresh shell; only the folder is carried over. The model is shown the beginning and the end of what
//! was printed, as it would read in the end; people see it live and in colour. That a command fails is a result like any
//! other.

use std::{os::unix::fs::PermissionsExt as _, path::Path, sync::Arc, time::Duration};

use serde_json::{Map, Value, json};
use tokio::{sync::mpsc::UnboundedSender, time::Instant};

use super::{
    cursor::CursorCall,
    tool::{Access, Class, Context, Fault, Input, Outcome, Tool, Work, names, schema},
};
use crate::{
    config::{self, ResultLimits},
    protocol::{CallSubject, CommandState, Mode, Permission},
    sandbox::{Apart, Commands, Excerpt, How, Located, NotStarted, Place, Refused, Running, Spec, Tier, Workspace},
    shell::{CommandLine, NamedPaths, programs::git_remote::updates_refs},
    text::{ansi, redact},
};

/// The name of the tool.
pub const NAME: &str = "run_terminal_cmd";
/// The description that a model is shown.
const ABOUT: &str = "\
    Run a command in bash. Each call is a new shell: the working directory is kept from one call to the next, \
    variables are not. Nothing can be typed in and no pager opens, so pass the options that make a program ask \
    nothing. Long output is shown in part; all of it is in a file that is named. A command that takes longer than \
    its wait goes on in the background: await_command reads on, stop_command ends it, and you are told when it ends. \
    Set is_background for servers and watchers, and do not write & at the end: what a command leaves behind ends with \
    it. Later commands reach its ports on localhost.";

/// The tool `run_terminal_cmd`.
pub fn tool() -> Tool {
    Tool {
        aliases: names(["Shell", "Bash", "shell"]),
        about: ABOUT.into(),
        schema: schema(
            json!({
                "command": { "type": "string" },
                "is_background": { "type": "boolean", "description": "true: do not wait for its end" },
                "working_directory": { "type": "string", "description": "For this call; default: where the last command ended" },
                "timeout_ms": { "type": "integer", "description": "How long to wait before it goes on in the background; default 30000" },
                "required_permissions": {
                    "type": "array",
                    "items": { "type": "string", "enum": ["network", "git_write", "all"] },
                    "description": "What the command needs beyond reading files and writing in the workspace; the user may be asked"
                },
                "explanation": { "type": "string", "description": "One sentence: why this command" }
            }),
            &["command", "is_background"],
        ),
        synonyms: &[
            ("command", &["cmd"]),
            ("working_directory", &["cwd", "workdir", "workingDirectory"]),
            ("timeout_ms", &["timeout", "block_until_ms"]),
            ("is_background", &["run_in_background", "block_until_ms"]),
            ("explanation", &["description"]),
        ],
        word: "run".into(),
        subject: CallSubject::Command,
        foreign_names: &["bash"],
        rule: Some((
            "Shell",
            &["run_terminal_cmd", "bash", "command", "exec", "run", "terminal"],
        )),
        is_basic: true,
        keeps_end: true,
        cursor: Some(CursorCall {
            has_id: true,
            subject: Some(("command", &["command"])),
            ..CursorCall::new(
                "shellToolCall",
                &[
                    ("command", &["command"]),
                    ("workingDirectory", &["working_directory", "workingDirectory", "cwd"]),
                    ("timeout", &["timeout"]),
                ],
            )
        }),
        examples: &[
            r#"{ "command": "touch '{outside}/trace'", "is_background": false }"#,
            r#"{ "cmd": "echo x > new.txt; touch '{outside}/trace'", "run_in_background": true }"#,
            r#"{ "command": "ls", "is_background": "false", "required_permissions": ["all"] }"#,
        ],
        // Where nothing may be changed the sandbox sees to it, or the call is refused.
        modes: &Mode::ALL,
        ..Tool::new(NAME, Class::Runs, Work::command(touches, run))
    }
}

/// As much of a command in the background is told while it runs.
const STOOD_HEAD_BYTES: usize = 2 << 10;
const STOOD_TAIL_BYTES: usize = 6 << 10;
/// A command in the background is watched for a moment: most that fail do so at once.
const FIRST_MOMENT: Duration = Duration::from_millis(300);

/// Time to wait for a command to go after it was ended at its limit.
const LAST_MOMENT: Duration = Duration::from_secs(10);

/// Why a command cannot do what every command does, where there are no namespaces, and what to do about it.
const TOP_IS_HELD: &str = "nothing new can be made at the top of the workspace, and no file there replaced; make it with a tool \
                           that changes files and run the command again, ask for git_write if it is git that writes, or tell \
                           the user that /sandbox guard lets commands do it";

/// The checked arguments of a call.
struct Wanted {
    line: String,
    directory: Located,
    permissions: Vec<Permission>,
    is_background: bool,
}

fn touches(input: &Input, context: &Context) -> Result<Vec<Access>, Fault> {
    let Wanted {
        line,
        directory,
        permissions,
        is_background,
    } = wanted(input, context)?;
    let tier = if permissions.contains(&Permission::All) {
        Tier::None
    } else {
        Commands::tier()
    };
    let read = read_by(&line, &directory, &context.workspace, tier);
    let command = Access::Command {
        line,
        directory,
        permissions,
        is_background,
    };
    Ok(std::iter::once(command)
        .chain(read.into_iter().map(Access::Read))
        .collect())
}

/// The accesses of a line in a text that is filled in: it runs at the root of the workspace.
pub fn accesses(line: &str, workspace: &Workspace) -> Result<Vec<Access>, Fault> {
    let directory = workspace.located(workspace.root())?;
    let read = read_by(line, &directory, workspace, Commands::tier());
    let command = Access::Command {
        line: line.to_owned(),
        directory,
        permissions: Vec::new(),
        is_background: false,
    };
    Ok(std::iter::once(command)
        .chain(read.into_iter().map(Access::Read))
        .collect())
}

/// Runs a line that takes part in a text, and returns its output: at the root of the workspace, which it may only read as far
/// as there is a sandbox.
pub async fn output_of(line: &str, context: &Context, limit: Duration) -> String {
    output_in(&context.workspace, line, &context.settings.limits, limit).await
}

/// The same, outside of a call.
pub async fn output_in(workspace: &Arc<Workspace>, line: &str, limits: &ResultLimits, limit: Duration) -> String {
    // Nothing would hold it to reading, which is all that it may do.
    if !tokio::task::spawn_blocking(Commands::tier)
        .await
        .is_ok_and(|it| it != Tier::None)
    {
        return format!("[`{line}` did not run: there is no sandbox here]");
    }
    let spec = Spec {
        folders: Vec::new(),
        line: line.to_owned(),
        directory: workspace.root().to_owned(),
        permissions: Vec::new(),
        only_reads: true,
        limit: Some(limit),
        variables: Vec::new(),
    };
    let begun = Arc::clone(workspace).begin(spec, |_| {}).await;
    let foreground = match begun {
        Ok(foreground) => foreground,
        Err(error) => return format!("[`{line}` did not run: {error}]"),
    };
    foreground.running().ended().await;
    let running = foreground.leave();
    let report = Report::of(&running, &running.unread(), None, limits);
    let text = report.outcome(running.directory()).text;
    redact::held(text.trim_end()).into_owned()
}

/// Devices that hold nothing of anybody's.
const EMPTY_DEVICES: [&str; 9] = [
    "/dev/null",
    "/dev/zero",
    "/dev/full",
    "/dev/random",
    "/dev/urandom",
    "/dev/tty",
    "/dev/stdin",
    "/dev/stdout",
    "/dev/stderr",
];

/// Returns true for folders whose certificates and keys are there for every program.
fn is_of_system(path: &Path) -> bool {
    [
        "/usr",
        "/lib",
        "/lib64",
        "/etc/ssl/certs",
        "/etc/pki",
        "/etc/ca-certificates",
    ]
    .iter()
    .any(|it| path.starts_with(it))
}

/// The files and folders that a line names, which are judged as if a tool read them. Secrets are left out where the sandbox
/// hides them: a name is not always read.
fn read_by(line: &str, directory: &Located, workspace: &Workspace, tier: Tier) -> Vec<Located> {
    let NamedPaths { programs, others } = NamedPaths::of(line);
    let others = others.iter().map(|it| (it, false));
    let named = programs.iter().map(|it| (it, true)).chain(others);
    let mut found: Vec<Located> = Vec::new();
    for (written, is_program) in named {
        let Ok(file) = workspace.locate_from(&directory.path, written) else {
            continue;
        };
        let is_empty = EMPTY_DEVICES.iter().any(|it| file.path == Path::new(it)) || file.path.starts_with("/dev/fd");
        // The sandbox has its own there.
        let is_private = tier == Tier::Full
            && ["/tmp", "/var/tmp", "/dev/shm"]
                .iter()
                .any(|it| file.path.starts_with(it));
        let is_left_out = match file.place {
            Place::Hidden => tier != Tier::None && (workspace.is_masked(&file.path) || is_of_system(&file.path)),
            Place::Outside => is_empty || is_private,
            Place::Inside | Place::Added => false,
        };
        let is_known = found.iter().any(|it| it.path == file.path);
        let Ok(about) = std::fs::metadata(&file.path) else {
            continue;
        };
        // To run a program is not to read it.
        let is_run = is_program && about.is_file() && about.permissions().mode() & 0o111 != 0;
        if !is_left_out && !is_known && !is_run {
            found.push(file);
        }
    }
    found
}

fn wanted(input: &Input, context: &Context) -> Result<Wanted, Fault> {
    let line = input.text("command").unwrap_or_default();
    if line.trim().is_empty() {
        return Err(Fault::arguments("the command is empty"));
    }
    let workspace = &context.workspace;
    let directory = match input.text("working_directory").filter(|it| !it.is_empty()) {
        Some(written) => {
            let directory = workspace.locate(written)?;
            // What a model calls its folder never widens what it may do.
            match directory.place {
                Place::Inside | Place::Added => {}
                Place::Outside => return Err(Refused::Outside(directory.shown).into()),
                Place::Hidden => return Err(Refused::Hidden(directory.shown).into()),
            }
            if !directory.path.exists() {
                return Err(Refused::Missing(directory.shown).into());
            }
            if !directory.path.is_dir() {
                let message = format!("`{}` is no directory", directory.shown);
                return Err(Fault::arguments(message));
            }
            directory
        }
        None => {
            let last = workspace.located(&workspace.commands().directory());
            match last {
                Ok(last) if last.path.is_dir() => last,
                // It was removed meanwhile.
                Ok(_) | Err(_) => workspace.located(workspace.root())?,
            }
        }
    };
    let mut permissions = permissions(&input.texts("required_permissions"))?;
    // Both are asked for at once: a push that cannot note what it pushed fails after it was allowed.
    let is_enough = permissions.contains(&Permission::GitWrite) || permissions.contains(&Permission::All);
    if !is_enough && permissions.contains(&Permission::Network) && updates_refs(&CommandLine::read(line)) {
        permissions.push(Permission::GitWrite);
    }
    Ok(Wanted {
        line: line.to_owned(),
        directory,
        permissions,
        is_background: input.flag("is_background"),
    })
}

/// A word that is not known is refused: to leave it out would run the command with less than it was meant to have.
fn permissions(words: &[&str]) -> Result<Vec<Permission>, Fault> {
    let mut found = Vec::new();
    for word in words {
        let permission = match *word {
            "full_network" => Permission::Network,
            other => Permission::parse(other),
        };
        if let Permission::Other(word) = permission {
            let message = format!("`{word}` is no permission");
            return Err(Fault::arguments(message).hint("There are network, git_write and all."));
        }
        if !found.contains(&permission) {
            found.push(permission);
        }
    }
    Ok(found)
}

async fn run(input: Input, context: Context) -> Result<Outcome, Fault> {
    let Wanted {
        line,
        directory,
        permissions,
        is_background,
    } = wanted(&input, &context)?;
    if context.only_reads && (Commands::tier() != Tier::Full || !permissions.is_empty()) {
        let message = "nothing but the full sandbox keeps a command from changing something";
        return Err(Fault::new("TOOL_FORBIDDEN_IN_MODE", message));
    }
    let settings = &context.settings.sandbox;
    let asked = input.integer("timeout_ms").and_then(|it| u64::try_from(it).ok());
    let wait = asked
        .map_or(settings.command_wait, Duration::from_millis)
        .min(settings.command_limit.saturating_add(LAST_MOMENT));
    let spec = Spec {
        folders: Vec::new(),
        line,
        directory: directory.path.clone(),
        permissions: permissions.clone(),
        only_reads: context.only_reads,
        limit: (!is_background).then_some(settings.command_limit),
        variables: Vec::new(),
    };
    let mut live = Live::new(context.output.clone());
    let workspace = Arc::clone(&context.workspace);
    let mut detached = workspace.commands().detached();
    let foreground = workspace
        .begin(spec, move |piece| live.push(piece))
        .await
        .map_err(fault)?;
    let wait = if is_background { FIRST_MOMENT } else { wait };
    let mut is_detached = false;
    let ended = tokio::select! {
        ended = foreground.running().ended() => Some(ended),
        () = tokio::time::sleep(wait) => None,
        Ok(()) = detached.changed() => {
            is_detached = true;
            None
        }
    };
    let running = foreground.leave();
    if running.outcome().is_some() {
        running.tell_end();
    }
    let waited = (!is_detached).then_some(wait);
    let mut report = Report::of(&running, &running.unread(), waited, &context.settings.limits);
    if is_detached && running.outcome().is_none() {
        report.notes.push("the user sent it to the background".to_owned());
    }
    if let Some(said) = ended.and_then(|it| it.directory) {
        report.moved(&context, &directory, &said);
    }
    if context.only_reads {
        report.hint_of_mode();
    } else if !report.hint_of_hidden(&context, &directory) && report.hint(&running, &permissions) {
        context.workspace.commands().tell_of_gaps();
    }
    Ok(report.outcome(&directory.path))
}

/// The answer to a command that did not begin.
pub(super) fn fault(error: NotStarted) -> Fault {
    let message = error.to_string();
    match error {
        NotStarted::Long | NotStarted::Nul => Fault::arguments(message),
        NotStarted::Folder(_) => Fault::new("FILE_NOT_FOUND", message),
        NotStarted::Bash => Fault::new("TOOL_FAILED", message),
        NotStarted::Failed(source) => Fault::new("TOOL_FAILED", format!("{message}: {source}")),
    }
}

/// The state of a command as members of its document: all output that is kept, and its end, if it has ended.
pub fn standing(running: &Running) -> Map<String, Value> {
    let report = Report::of(running, &running.since(0), None, &ResultLimits::default());
    let outcome = report.outcome(running.directory());
    let mut members = Map::new();
    for (name, value) in outcome.data.as_object().cloned().unwrap_or_default() {
        match name.as_str() {
            "durationMs" => members.insert("duration_ms".into(), value),
            "exitCode" | "output" | "state" | "stdout" | "stderr" => members.insert(name, value),
            "logPath" if !value.is_null() => members.insert(name, value),
            _ => None,
        };
    }
    members
}

/// The same while it runs: the beginning of what it printed and the end, and not much of either, for it is told often.
pub fn stood(running: &Running) -> Map<String, Value> {
    let all = raw(&running.since(0));
    let head = all.floor_char_boundary(STOOD_HEAD_BYTES);
    let tail = all.ceil_char_boundary(all.len().saturating_sub(STOOD_TAIL_BYTES));
    let output = match (all.get(..head), all.get(tail..)) {
        (Some(first), Some(last)) if head < tail => {
            format!("{first}\n[{} bytes are left out here]\n{last}", tail - head)
        }
        _ => all,
    };
    Map::from_iter([("output".to_owned(), output.into())])
}

/// A report on a command, for the model and for people.
pub(super) struct Report {
    id: String,
    state: CommandState,
    exit_code: Option<i32>,
    duration: Option<Duration>,
    /// As it came.
    output: String,
    /// The same by stream, if it is kept apart.
    apart: Option<Apart>,
    /// As it reads.
    plain: String,
    /// Notes below the output.
    notes: Vec<String>,
    log: Option<String>,
    /// The note about output that was left out, as the last line says it.
    cut: Option<String>,
    tier: Tier,
}

impl Report {
    /// On what was printed in `part`; `waited`: so long its end has been waited for.
    pub(super) fn of(running: &Running, part: &Excerpt, waited: Option<Duration>, limits: &ResultLimits) -> Self {
        let ended = running.outcome();
        let log = running.log().map(|it| it.to_string_lossy().into_owned());
        let (plain, cut) = plain(part, log.as_deref(), limits);
        let mut notes = Vec::new();
        let how = ended.as_ref().map(|it| it.how);
        let (state, exit_code) = match how {
            None => {
                let id = running.id();
                let since = waited.map_or_else(String::new, |it| format!(" after {}", seconds(it)));
                notes.push(format!(
                    "still running{since}, in the background as `{id}`; await_command reads on"
                ));
                (CommandState::Background, None)
            }
            Some(How::Exited(code)) => {
                if code != 0 {
                    notes.push(format!("exit code: {code}"));
                }
                (CommandState::Completed, Some(code))
            }
            Some(How::Killed(signal)) => {
                // As a shell would say it.
                notes.push(format!("exit code: {} (ended by signal {signal})", 128 + signal));
                (CommandState::Completed, Some(128 + signal))
            }
            Some(How::TimedOut) => {
                let duration = ended.as_ref().map_or(Duration::ZERO, |it| it.duration);
                notes.push(format!(
                    "ended after {}, its limit; start what takes longer with is_background",
                    seconds(duration)
                ));
                (CommandState::TimedOut, None)
            }
            Some(How::Cancelled) => {
                notes.push("cancelled".to_owned());
                (CommandState::Cancelled, None)
            }
        };
        let settled = running.settled();
        notes.extend(settled.told());
        if !settled.aside.is_empty() {
            notes.push("to have such a file, write it with a tool that changes files, which asks the user".to_owned());
        }
        if settled.is_breach() {
            notes.push("the user is told, and must approve every command from now on".to_owned());
        }
        if let Some(why) = running.log_failure() {
            notes.push(format!(
                "what is left out cannot be read: the log could not be written: {why}"
            ));
        }
        Self {
            id: running.id().to_owned(),
            state,
            exit_code,
            duration: ended.map(|it| it.duration),
            output: raw(part),
            apart: running.apart(),
            plain,
            notes,
            log,
            cut,
            tier: running.tier(),
        }
    }

    /// Adds a note below the output.
    pub(super) fn note(&mut self, note: &str) {
        self.notes.push(note.to_owned());
    }

    /// The shell ended in another folder than it began in: the next one begins there, if it may.
    fn moved(&mut self, context: &Context, from: &Located, said: &Path) {
        if said == from.path {
            return;
        }
        let workspace = &context.workspace;
        match workspace.located(said) {
            Ok(to) if matches!(to.place, Place::Inside | Place::Added) => {
                self.notes.push(format!("working directory: {}", to.shown));
                workspace.commands().set_directory(to.path);
            }
            Ok(to) => self.notes.push(format!(
                "the working directory is still {}: `{}` is outside the workspace",
                from.shown, to.shown
            )),
            Err(_) => {}
        }
    }

    /// Names a file that is hidden from commands, if the command failed because of one. Returns true if it did.
    fn hint_of_hidden(&mut self, context: &Context, from: &Located) -> bool {
        if self.exit_code.is_none_or(|it| it == 0) {
            return false;
        }
        let denied = self.plain.lines().filter(|it| is_denied(it));
        let mut words = denied.flat_map(|it| it.split([':', '\'', '"', '‘', '’', ' ']));
        let hidden = words.find(|it| {
            let place = |it: &str| context.workspace.located(&from.path.join(it)).ok().map(|it| it.place);
            it.contains(['/', '.']) && place(it) == Some(Place::Hidden)
        });
        let Some(hidden) = hidden else {
            return false;
        };
        self.notes
            .push(format!("`{hidden}` is hidden from commands: no permission shows it"));
        true
    }

    /// A failure that may be the boundary's doing. Returns true if it may be that of a partial sandbox, which the user can change.
    fn hint(&mut self, running: &Running, granted: &[Permission]) -> bool {
        if self.exit_code.is_none_or(|it| it == 0) || running.tier() == Tier::None {
            return false;
        }
        let missing = missing(&self.plain, granted);
        if let Some(missing) = &missing {
            self.notes.push(format!("this may need the permission `{missing}`"));
        }
        let is_partial = running.tier() == Tier::Partial && !running.is_guarded();
        let is_gap = is_partial && missing != Some(Permission::Network) && is_denied(&self.plain);
        if is_gap {
            let gaps = running.gaps();
            self.notes
                .push(format!("the sandbox of this system is partial ({gaps}): {TOP_IS_HELD}"));
        }
        is_gap
    }

    /// A failure that may be the doing of a mode in which nothing is changed.
    fn hint_of_mode(&mut self) {
        if self.exit_code.is_some_and(|it| it != 0) && missing(&self.plain, &[]).is_some() {
            let note = "in this mode a command reads, writes in /tmp only, and has no network";
            self.notes.push(note.to_owned());
        }
    }

    /// The result for the model and the document.
    pub(super) fn outcome(self, directory: &Path) -> Outcome {
        let mut text = self.plain;
        if text.is_empty() {
            text.push_str("(no output)");
        }
        for note in &self.notes {
            text.push('\n');
            text.push_str(note);
        }
        let is_truncated = self.cut.is_some();
        if let Some(cut) = &self.cut {
            text.push('\n');
            text.push_str(cut);
        }
        let mut data = Map::new();
        data.insert("exitCode".into(), self.exit_code.into());
        data.insert("output".into(), self.output.into());
        if let Some(Apart { output, errors }) = &self.apart {
            data.insert("stdout".into(), String::from_utf8_lossy(output).into());
            data.insert("stderr".into(), String::from_utf8_lossy(errors).into());
        }
        let duration = self
            .duration
            .map(|it| u64::try_from(it.as_millis()).unwrap_or(u64::MAX));
        data.insert("durationMs".into(), duration.into());
        data.insert("state".into(), self.state.as_str().into());
        data.insert("sandbox".into(), self.tier.as_str().into());
        data.insert("logPath".into(), self.log.into());
        data.insert("workingDirectory".into(), directory.to_string_lossy().into());
        if self.state == CommandState::Background {
            data.insert("commandId".into(), self.id.into());
        }
        Outcome {
            text,
            data: Value::Object(data),
            is_truncated,
            images: Vec::new(),
        }
    }
}

/// Returns the result for the model of a command that the user stopped, which had printed `output`.
pub fn stopped(output: &str, limits: &ResultLimits) -> String {
    let part = Excerpt {
        first: output.as_bytes().to_vec(),
        ..Excerpt::default()
    };
    let (plain, _) = plain(&part, None, limits);
    if plain.is_empty() {
        return "The user stopped this command. It had printed nothing.".to_owned();
    }
    format!("{plain}\nThe user stopped this command; this is its output until then.")
}

/// The longest part of an ended command's output that the model is told without having asked, in bytes.
const LAST_BYTES: usize = 2 << 10;

/// A sentence about a background command that has ended, and the end of what the model has not read of its output.
/// `None`: it still runs.
pub fn end_note(running: &Running) -> Option<(String, String)> {
    let ended = running.outcome()?;
    let how = match ended.how {
        How::Exited(code) => format!("ended with exit code {code}"),
        How::Killed(signal) => format!("was ended by signal {signal}"),
        How::TimedOut => "was ended at its limit".to_owned(),
        How::Cancelled => "was stopped by the user".to_owned(),
    };
    let text = ansi::Output::of(&raw(&running.unread())).plain();
    let text = text.trim_end();
    let last = ending(text, LAST_BYTES);
    let about = match (last.len(), last.len() == text.len()) {
        (0, _) => "It has printed nothing since you last read.",
        (_, true) => "What it has printed since you last read:",
        (_, false) => "The end of what it has printed since you last read:",
    };
    Some((
        format!("The background command `{}` {how}. {about}", running.id()),
        last.to_owned(),
    ))
}

fn seconds(duration: Duration) -> String {
    match (duration.as_secs(), duration.subsec_millis()) {
        (0, millis) => format!("{millis} ms"),
        (seconds, _) => format!("{seconds} s"),
    }
}

/// Words of a command that was not let do something.
const DENIED: &[&str] = &[
    "permission denied",
    "operation not permitted",
    "read-only file system",
    "eacces",
    "eperm",
    "erofs",
];

fn is_denied(output: &str) -> bool {
    let lower = output.to_ascii_lowercase();
    DENIED.iter().any(|it| lower.contains(it))
}

/// The permission without which a command fails in such words.
fn missing(output: &str, granted: &[Permission]) -> Option<Permission> {
    const NETWORK: &[&str] = &[
        "could not resolve",
        "couldn't resolve",
        "name resolution",
        "name or service not known",
        "nodename nor servname",
        "network is unreachable",
        "getaddrinfo",
        "enotfound",
        "eai_again",
        "dns error",
        "no such host",
        "failed to lookup address",
    ];
    if granted.contains(&Permission::All) {
        return None;
    }
    let lower = output.to_ascii_lowercase();
    let has = |words: &[&str]| words.iter().any(|it| lower.contains(it));
    let is_git = |line: &str| line.contains(".git") || line.contains("git:") || line.contains("index.lock");
    let found = if has(NETWORK) {
        Permission::Network
    } else if lower
        .lines()
        .any(|it| is_git(it) && DENIED.iter().any(|word| it.contains(word)))
    {
        Permission::GitWrite
    } else if has(DENIED) {
        Permission::All
    } else {
        return None;
    };
    (!granted.contains(&found)).then_some(found)
}

/// The output as text, with a note for what is left out.
fn raw(part: &Excerpt) -> String {
    let mut text = String::from_utf8_lossy(&part.first).into_owned();
    if part.skipped > 0 {
        text.push_str(&format!("\n[{} bytes are left out here]\n", part.skipped));
    }
    text.push_str(&String::from_utf8_lossy(&part.last));
    text
}

/// The output as a terminal would show it in the end, cut in the middle; and a note if it was cut.
fn plain(part: &Excerpt, log: Option<&str>, limits: &ResultLimits) -> (String, Option<String>) {
    let read = |bytes: &[u8]| ansi::Output::of(&String::from_utf8_lossy(bytes)).plain();
    let (most_head, most_tail) = (config::size(limits.output_head), config::size(limits.output_tail));
    let (first, last, between) = if part.skipped == 0 {
        let joined;
        let bytes = if part.last.is_empty() {
            &part.first
        } else {
            joined = [part.first.as_slice(), &part.last].concat();
            &joined
        };
        let text = read(bytes);
        let text = text.trim_end();
        if text.len() <= most_head.saturating_add(most_tail) {
            return (text.to_owned(), None);
        }
        (text.to_owned(), text.to_owned(), None)
    } else {
        (
            read(&part.first),
            read(&part.last).trim_end().to_owned(),
            Some(part.skipped),
        )
    };
    let (head, tail) = (beginning(&first, most_head), ending(&last, most_tail));
    let shown = (head.len() + tail.len()) as u64;
    let total = match between {
        Some(skipped) => first.len() as u64 + skipped + last.len() as u64,
        None => first.len() as u64,
    };
    let all = log.map_or_else(String::new, |it| format!("; all of it is in {it}"));
    let text = format!(
        "{}\n[{} bytes are left out here]\n{tail}",
        head.trim_end_matches('\n'),
        total.saturating_sub(shown)
    );
    (
        text,
        Some(format!(
            "[cut: {shown} of {total} bytes shown, the beginning and the end{all}]"
        )),
    )
}

/// At most `most` bytes of the beginning, whole lines where they are not very long.
fn beginning(text: &str, most: usize) -> &str {
    let end = text.floor_char_boundary(most);
    let head = text.get(..end).unwrap_or_default();
    if end == text.len() {
        return head;
    }
    match head.rfind('\n') {
        Some(line) if line > most / 2 => head.get(..=line).unwrap_or_default(),
        _ => head,
    }
}

/// At most `most` bytes of the end, likewise.
fn ending(text: &str, most: usize) -> &str {
    let start = text.ceil_char_boundary(text.len().saturating_sub(most));
    let tail = text.get(start..).unwrap_or_default();
    if start == 0 {
        return tail;
    }
    match tail.find('\n') {
        Some(line) if line < most / 2 => tail.get(line + 1..).unwrap_or_default(),
        _ => tail,
    }
}

/// Hands on what a command prints while it prints it, as text and no faster than somebody could want it.
struct Live {
    output: UnboundedSender<String>,
    /// The beginning of a character whose end has not come.
    rest: Vec<u8>,
    budget: Budget,
    skipped: u64,
}

/// At once …
const BURST_BYTES: u64 = 1 << 20;
/// … and in each second after that. A command that prints faster is not shown live in full.
const FLOW_BYTES: u64 = 128 << 10;

struct Budget {
    left: u64,
    since: Instant,
}

impl Budget {
    /// Returns true if this many more bytes may pass.
    fn take(&mut self, bytes: u64, now: Instant) -> bool {
        let millis = u64::try_from(now.duration_since(self.since).as_millis()).unwrap_or(u64::MAX);
        let earned = millis.saturating_mul(FLOW_BYTES) / 1000;
        if earned > 0 {
            self.left = self.left.saturating_add(earned).min(BURST_BYTES);
            self.since = now;
        }
        let is_enough = bytes <= self.left;
        if is_enough {
            self.left -= bytes;
        }
        is_enough
    }
}

impl Live {
    fn new(output: UnboundedSender<String>) -> Self {
        Self {
            output,
            rest: Vec::new(),
            budget: Budget {
                left: BURST_BYTES,
                since: Instant::now(),
            },
            skipped: 0,
        }
    }

    fn push(&mut self, piece: &[u8]) {
        if !self.budget.take(piece.len() as u64, Instant::now()) {
            self.skipped += piece.len() as u64;
            self.rest.clear();
            return;
        }
        let mut text = String::new();
        if self.skipped > 0 {
            text.push_str(&format!("\n[{} bytes are not shown here]\n", self.skipped));
            self.skipped = 0;
        }
        self.rest.extend_from_slice(piece);
        let end = complete(&self.rest);
        text.push_str(&String::from_utf8_lossy(self.rest.get(..end).unwrap_or_default()));
        self.rest.drain(..end);
        if !text.is_empty() {
            // Nobody may be listening any more.
            self.output.send(text).ok();
        }
    }
}

impl Drop for Live {
    fn drop(&mut self) {
        if !self.rest.is_empty() {
            self.output.send(String::from_utf8_lossy(&self.rest).into_owned()).ok();
        }
    }
}

/// Number of bytes before an incomplete character at the end.
fn complete(bytes: &[u8]) -> usize {
    for back in 1..=bytes.len().min(3) {
        let at = bytes.len() - back;
        let length = match bytes.get(at).copied().unwrap_or_default() {
            0xc2..=0xdf => 2,
            0xe0..=0xef => 3,
            0xf0..=0xf4 => 4,
            // Goes on with a character: look for its beginning.
            0x80..=0xbf => continue,
            _ => return bytes.len(),
        };
        return if length > back { at } else { bytes.len() };
    }
    bytes.len()
}

#[cfg(test)]
mod tests {

    use pretty_assertions::assert_eq;
    use proptest::prelude::*;
    use tokio::sync::mpsc::{self, UnboundedReceiver};

    use super::*;
    use crate::{
        config::Settings,
        sandbox::{Fence, Seen, Workspace},
        tools::{Stop, await_command, stop_command},
    };

    struct Bench {
        _folder: tempfile::TempDir,
        context: Context,
        live: UnboundedReceiver<String>,
    }

    impl Bench {
        fn new() -> Self {
            let folder = tempfile::tempdir().unwrap();
            let root = folder.path().join("shop");
            std::fs::create_dir_all(root.join("src")).unwrap();
            std::fs::write(root.join(".env"), "").unwrap();
            let fence = Fence {
                logs: Some(folder.path().join("logs")),
                ..Fence::default()
            };
            let (output, live) = mpsc::unbounded_channel();
            let context = Context {
                workspace: Arc::new(Workspace::fenced(&root, fence).unwrap()),
                seen: Arc::new(Seen::default()),
                index: Arc::default(),
                embeddings: Arc::default(),
                findings: Arc::default(),
                servers: Arc::default(),
                skills: Arc::default(),
                settings: Arc::new(Settings::default()),
                apply: None,
                call: "call".to_owned(),
                only_reads: false,
                output,
                stop: Stop::default(),
            };
            Self {
                _folder: folder,
                context,
                live,
            }
        }

        async fn call(&self, input: Value) -> Result<Outcome, Fault> {
            run(Input(input.as_object().cloned().unwrap()), self.context.clone()).await
        }

        async fn text(&self, line: &str) -> String {
            self.call(json!({ "command": line })).await.unwrap().text
        }

        async fn wait(&self, input: Value) -> Result<Outcome, Fault> {
            let input = Input(input.as_object().cloned().unwrap());
            super::super::await_command::run(input, self.context.clone()).await
        }
    }

    #[tokio::test]
    async fn the_model_reads_what_a_person_would_in_the_end() {
        let bench = Bench::new();
        for (line, expected) in [
            ("echo hello", "hello"),
            ("true", "(no output)"),
            ("echo no >&2; exit 3", "no\nexit code: 3"),
            ("exit 1", "(no output)\nexit code: 1"),
            ("printf '\\e[31mred\\e[0m\\n'", "red"),
            ("printf '1%%\\r50%%\\r100%%\\ndone\\n'", "100%\ndone"),
            ("printf '\\e]0;title\\a\\e[2Jx\\n'", "x"),
            ("kill -KILL $$", "(no output)\nexit code: 137 (ended by signal 9)"),
            // Nothing can be typed in: whoever waits for it is told so at once.
            (
                "cat; read -r line || echo nobody; { read -r line </dev/tty; } 2>/dev/null || echo no terminal",
                "nobody\nno terminal",
            ),
            ("printf 'a\\xffb'", "a\u{fffd}b"),
        ] {
            assert_eq!(bench.text(line).await, expected, "{line}");
        }
        let outcome = bench
            .call(json!({ "command": "printf '\\e[31mred\\e[0m'; exit 2" }))
            .await
            .unwrap();
        let root = bench.context.workspace.root().display().to_string();
        let mut data = outcome.data.as_object().unwrap().clone();
        assert!(data.remove("durationMs").unwrap().is_u64());
        assert_eq!(
            Value::Object(data),
            json!({
                "exitCode": 2, "output": "\u{1b}[31mred\u{1b}[0m", "state": "completed", "sandbox": "none", "logPath": null, "workingDirectory": root,
            })
        );
    }

    #[tokio::test]
    async fn the_folder_is_carried_over_and_never_leads_out() {
        let bench = Bench::new();
        for (line, expected) in [
            ("cd src", "(no output)\nworking directory: src"),
            ("basename $PWD", "src"),
            (
                "cd /",
                "(no output)\nthe working directory is still src: `/` is outside the workspace",
            ),
            ("basename $PWD; export A=1", "src"),
            ("echo [$A]; cd ..", "[]\nworking directory: ."),
            ("mkdir gone; cd gone", "(no output)\nworking directory: gone"),
            ("rmdir ../gone", "(no output)"),
            ("basename $PWD", "shop"),
        ] {
            assert_eq!(bench.text(line).await, expected, "{line}");
        }
        let once = json!({ "command": "basename $PWD", "working_directory": "src" });
        assert_eq!(bench.call(once).await.unwrap().text, "src");
        assert_eq!(
            bench.text("basename $PWD").await,
            "shop",
            "the argument is for one call"
        );
        for (directory, code) in [
            ("..", "PATH_OUTSIDE_WORKSPACE"),
            ("absent", "FILE_NOT_FOUND"),
            (".env", "IGNORED_FILE"),
            ("~/.ssh", "IGNORED_FILE"),
        ] {
            let fault = bench
                .call(json!({ "command": "true", "working_directory": directory }))
                .await
                .unwrap_err();
            assert_eq!(fault.code, code, "{directory}");
        }
    }

    #[test]
    fn permissions_are_known_or_refused() {
        let bench = Bench::new();
        let touched = |words: Value| {
            let input = json!({ "command": "x", "required_permissions": words, "is_background": true });
            touches(&Input(input.as_object().cloned().unwrap()), &bench.context)
        };
        let root = bench.context.workspace.locate(".").unwrap();
        let expected = |permissions| {
            Ok(vec![Access::Command {
                line: "x".to_owned(),
                directory: root.clone(),
                permissions,
                is_background: true,
            }])
        };
        assert_eq!(touched(json!([])), expected(vec![]));
        assert_eq!(
            touched(json!(["full_network", "git_write", "network", "all"])),
            expected(vec![Permission::Network, Permission::GitWrite, Permission::All])
        );
        let of_line = |line: &str, words: Value| {
            let input = json!({ "command": line, "required_permissions": words, "is_background": true });
            let accesses = touches(&Input(input.as_object().cloned().unwrap()), &bench.context).unwrap();
            accesses.into_iter().find_map(|it| match it {
                Access::Command { permissions, .. } => Some(permissions),
                _ => None,
            })
        };
        let both = Some(vec![Permission::Network, Permission::GitWrite]);
        assert_eq!(of_line("git push origin main", json!(["network"])), both);
        assert_eq!(
            of_line("git fetch", json!(["git_write", "network"])),
            Some(vec![Permission::GitWrite, Permission::Network])
        );
        assert_eq!(
            of_line("git pull", json!(["network", "all"])),
            Some(vec![Permission::Network, Permission::All])
        );
        assert_eq!(of_line("git push", json!([])), Some(vec![]), "it asked for nothing");
        assert_eq!(
            of_line("git ls-remote", json!(["network"])),
            Some(vec![Permission::Network])
        );
        assert_eq!(touched(json!(["root"])).unwrap_err().code, "TOOL_ARGUMENTS_INVALID");
        let empty = touches(
            &Input(json!({ "command": " \n" }).as_object().cloned().unwrap()),
            &bench.context,
        );
        assert_eq!(empty.unwrap_err().code, "TOOL_ARGUMENTS_INVALID");
    }

    #[tokio::test]
    async fn long_output_is_cut_in_the_middle_and_the_log_is_named() {
        let bench = Bench::new();
        for (line, last) in [("seq 20000", "20000"), ("seq 1000000", "1000000")] {
            let outcome = bench.call(json!({ "command": line })).await.unwrap();
            let log = outcome.data["logPath"].as_str().unwrap();
            let whole = std::fs::read_to_string(log).unwrap();
            assert!(outcome.is_truncated && outcome.text.len() <= (32 << 10) + 400);
            let (head, rest) = outcome.text.split_once("\n[").unwrap();
            let (note, rest) = rest.split_once("]\n").unwrap();
            let (tail, cut) = rest.rsplit_once('\n').unwrap();
            assert!(whole.starts_with(&format!("{head}\n")) && head.len() > 4 << 10);
            assert!(whole.ends_with(&format!("\n{tail}\n")) && tail.len() > 12 << 10 && tail.ends_with(last));
            let skipped: usize = note.split(' ').next().unwrap().parse().unwrap();
            assert!(note.ends_with(" bytes are left out here"), "{note}");
            let shown = head.len() + 1 + tail.len();
            let total = shown + skipped;
            assert_eq!(
                cut,
                format!("[cut: {shown} of {total} bytes shown, the beginning and the end; all of it is in {log}]")
            );
            // Beside what is told the line ends around the cut are gone.
            let sum = head.len() + skipped + tail.len();
            assert!(whole.len().abs_diff(sum) <= 3, "{} {sum}", whole.len());
            // The model may read the log.
            let located = bench.context.workspace.locate(log).unwrap();
            assert_eq!((located.place, located.is_protected), (Place::Added, true));
            assert!(outcome.data["output"].as_str().unwrap().len() <= 1100 << 10);
        }
        // How it ended is said before that line.
        let failed = bench.text("seq 20000; exit 3").await;
        let (front, cut) = failed.rsplit_once('\n').unwrap();
        assert!(
            front.ends_with("\n20000\nexit code: 3") && cut.starts_with("[cut: "),
            "{cut}"
        );
        let one_line = bench
            .call(json!({ "command": "head -c 100000 /dev/zero | tr '\\0' x" }))
            .await
            .unwrap();
        assert!(one_line.text.len() > 32 << 10 && one_line.text.len() < (32 << 10) + 400);
    }

    #[tokio::test]
    async fn what_takes_long_goes_on_in_the_background() {
        let mut bench = Bench::new();
        let line = "echo one; until [ -e go ]; do sleep 0.01; done; echo two; exit 4";
        let outcome = bench
            .call(json!({ "command": line, "timeout_ms": 1000 }))
            .await
            .unwrap();
        assert_eq!(
            outcome.text,
            "one\nstill running after 1 s, in the background as `cmd-1`; await_command reads on"
        );
        assert_eq!(
            (&outcome.data["state"], &outcome.data["exitCode"]),
            (&json!("background"), &Value::Null)
        );
        assert_eq!(outcome.data["commandId"], "cmd-1");
        let look = json!({ "command_id": "cmd-1", "block_until_ms": 0 });
        let text = bench.wait(look).await.unwrap().text;
        assert_eq!(
            text,
            "(no output)\nstill running, in the background as `cmd-1`; await_command reads on"
        );
        std::fs::write(bench.context.workspace.root().join("go"), "").unwrap();
        let outcome = bench.wait(json!({ "command_id": "cmd-1" })).await.unwrap();
        assert_eq!(outcome.text, "two\nexit code: 4");
        assert_eq!(outcome.data["state"], "completed");
        assert_eq!(bench.live.recv().await.as_deref(), Some("one\n"));
        assert_eq!(bench.live.recv().await.as_deref(), Some("two\n"));
        let fault = bench.wait(json!({ "command_id": "cmd-2" })).await.unwrap_err();
        assert_eq!(
            fault.text(),
            "Error [TOOL_ARGUMENTS_INVALID]: unknown command `cmd-2`\nThere are `cmd-1`."
        );
        assert_eq!(await_command::tool().class, Class::Runs);
    }

    #[tokio::test]
    async fn commands_are_listed_and_stopped() {
        let bench = Bench::new();
        let list = || bench.wait(json!({}));
        assert_eq!(list().await.unwrap().text, "No command was run in this conversation.");
        bench
            .call(json!({ "command": "sleep 600", "is_background": true }))
            .await
            .unwrap();
        bench.text("exit 3").await;
        assert_eq!(
            list().await.unwrap().text,
            "cmd-1: running: sleep 600\ncmd-2: ended with exit code 3: exit 3"
        );
        let stop = |id: &str| {
            let input = json!({ "command_id": id });
            stop_command::run(Input(input.as_object().cloned().unwrap()), bench.context.clone())
        };
        let stopped = stop("cmd-1").await.unwrap();
        assert_eq!(
            (stopped.text.as_str(), &stopped.data["state"]),
            ("(no output)\ncancelled", &json!("cancelled"))
        );
        let running = bench.context.workspace.commands().get("cmd-1").unwrap();
        assert!(
            running.outcome().is_some() && !running.has_untold_end(),
            "who stopped it knows"
        );
        assert_eq!(
            stop("cmd-2").await.unwrap().text,
            "(no output)\nexit code: 3\nit had ended by itself"
        );
        let fault = stop("cmd-9").await.unwrap_err();
        assert_eq!(
            fault.text(),
            "Error [TOOL_ARGUMENTS_INVALID]: unknown command `cmd-9`\nThere are `cmd-1`, `cmd-2`."
        );
    }

    #[tokio::test]
    async fn in_a_mode_that_changes_nothing_no_command_runs_outside_of_the_full_sandbox() {
        let mut bench = Bench::new();
        bench.context.only_reads = true;
        let fault = bench.call(json!({ "command": "touch made" })).await.unwrap_err();
        assert_eq!(fault.code, "TOOL_FORBIDDEN_IN_MODE");
        assert!(!bench.context.workspace.root().join("made").exists());
    }

    #[test]
    fn the_output_of_a_stopped_command_is_bounded_and_plain() {
        let limits = ResultLimits::default();
        assert_eq!(
            stopped("\u{1b}[31mone\u{1b}[m\n", &limits),
            "one\nThe user stopped this command; this is its output until then."
        );
        assert_eq!(
            stopped(" \n", &limits),
            "The user stopped this command. It had printed nothing."
        );
        let long = stopped(&"line\n".repeat(100_000), &limits);
        assert!(long.len() < (32 << 10) + 400 && long.contains("bytes are left out here"));
    }

    #[tokio::test]
    async fn a_background_command_is_not_waited_for_and_a_limit_ends_one_that_is() {
        let mut bench = Bench::new();
        let outcome = bench
            .call(json!({ "command": "sleep 600", "is_background": true }))
            .await
            .unwrap();
        assert_eq!(outcome.data["state"], "background");
        let mut settings = Settings::default();
        settings.sandbox.command_limit = Duration::from_millis(50);
        bench.context.settings = Arc::new(settings);
        let outcome = bench.call(json!({ "command": "sleep 600" })).await.unwrap();
        assert_eq!(
            (&outcome.data["state"], &outcome.data["exitCode"]),
            (&json!("timed_out"), &Value::Null)
        );
        assert!(outcome.text.contains("its limit"), "{}", outcome.text);
        assert!(
            bench
                .context
                .workspace
                .commands()
                .get("cmd-1")
                .unwrap()
                .outcome()
                .is_none()
        );
    }

    #[tokio::test]
    async fn dropping_the_call_cancels_the_command() {
        let bench = Bench::new();
        let call = tokio::spawn(run(
            Input(
                json!({ "command": "touch begun; sleep 600" })
                    .as_object()
                    .cloned()
                    .unwrap(),
            ),
            bench.context.clone(),
        ));
        let begun = bench.context.workspace.root().join("begun");
        let commands = bench.context.workspace.commands();
        // It may run before it is noted.
        while !begun.exists() || commands.get("cmd-1").is_none() {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
        call.abort();
        call.await.unwrap_err();
        let running = commands.get("cmd-1").unwrap();
        assert_eq!(running.ended().await.how, How::Cancelled);
    }

    #[test]
    fn a_failure_names_the_permission_that_it_wants() {
        for (output, expected) in [
            (
                "curl: (6) Could not resolve host: example.com",
                Some(Permission::Network),
            ),
            ("Temporary failure in name resolution", Some(Permission::Network)),
            (
                "npm ERR! getaddrinfo EAI_AGAIN registry.npmjs.org",
                Some(Permission::Network),
            ),
            (
                "fatal: Unable to create '/w/.git/index.lock': Read-only file system",
                Some(Permission::GitWrite),
            ),
            ("touch: cannot touch '/etc/x': Permission denied", Some(Permission::All)),
            ("error: test failed", None),
        ] {
            assert_eq!(missing(output, &[]), expected, "{output}");
            assert_eq!(missing(output, &[Permission::All]), None);
            if let Some(it) = expected {
                assert_eq!(missing(output, &[it]), None);
            }
        }
    }

    #[test]
    fn a_flood_is_shown_in_part() {
        let start = Instant::now();
        let mut budget = Budget {
            left: BURST_BYTES,
            since: start,
        };
        assert!(budget.take(BURST_BYTES, start));
        assert!(!budget.take(1, start));
        let later = start + Duration::from_secs(1);
        assert!(budget.take(FLOW_BYTES, later) && !budget.take(FLOW_BYTES, later));
        assert!(budget.take(BURST_BYTES, later + Duration::from_secs(1000)));
        assert!(!budget.take(BURST_BYTES, later + Duration::from_secs(1000)));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(128))]
        #[test]
        fn live_text_is_the_same_however_it_is_cut(
            text in prop_oneof![any::<String>().prop_map(String::into_bytes), prop::collection::vec(any::<u8>(), 0..60)],
            cuts in prop::collection::vec(0..60_usize, 0..6),
        ) {
            let (send, mut receive) = mpsc::unbounded_channel();
            let mut live = Live::new(send);
            let mut cuts: Vec<_> = cuts.into_iter().map(|it| it.min(text.len())).collect();
            cuts.extend([0, text.len()]);
            cuts.sort_unstable();
            for pair in cuts.windows(2) {
                live.push(&text[pair[0]..pair[1]]);
            }
            drop(live);
            let mut found = String::new();
            while let Ok(piece) = receive.try_recv() {
                found.push_str(&piece);
            }
            if std::str::from_utf8(&text).is_ok() {
                prop_assert_eq!(found, String::from_utf8_lossy(&text));
            } else {
                // Where a broken character is cut, the marks for it may be more or fewer.
                let plain = |it: &str| it.replace('\u{fffd}', "");
                prop_assert_eq!(plain(&found), plain(&String::from_utf8_lossy(&text)));
            }
        }

        #[test]
        fn what_is_cut_is_a_part_within_its_bounds(text in any::<String>(), most in 0..50_usize) {
            let (head, tail) = (beginning(&text, most), ending(&text, most));
            prop_assert!(text.starts_with(head) && head.len() <= most);
            prop_assert!(text.ends_with(tail) && tail.len() <= most);
        }
    }
}
