//! One answer without a screen, and the command-line options of a run.

use std::{
    io::{self, IsTerminal as _, Write},
    path::{Path, PathBuf},
    sync::Arc,
};

use anyhow::Result;
use serde_json::Value;

use super::{
    CliContext,
    arguments::{CommonArguments, InputFormat, OutputArguments, OutputFormat, PermissionMode, Run},
    chat::{self, ResumeTarget},
    code, complain, dialogue, has_unreadable_rules, open, print_answer, printing_store, runtime, schema,
};
use crate::{
    agent::{
        approval::{FORCE, Rule},
        prompt::context::mentions,
        tool_choice,
    },
    cli::open::ConversationOptions,
    config::{
        ConfiguredRule, Fingerprint, KeySource, Layer, Location, Problem, Settings, TrustStore, Upstream, suggestion,
    },
    extensions::{Surroundings, find_modes},
    os::file,
    print::{Approver, PrintOptions, SessionInfo},
    protocol::{Message, Mode, Submit},
    sandbox::{self, Tier},
    tools,
};

/// Programs that `acceptEdits` lets run, as docs/headless.md lists them. They list, read, make, copy and move files; none of them
/// deletes one or runs another program.
const FILE_PROGRAMS: &str = "ls tree pwd stat file du cat head tail wc diff cmp grep rg find realpath basename dirname echo mkdir rmdir \
                             touch cp mv";

/// Applies the options of a run to the settings. Error: the message about an option with an impossible value.
pub fn apply_arguments(wanted: &Run, base: &mut CliContext, has_screen: bool) -> Result<(), String> {
    let settings = &mut base.settings;
    let home = std::env::home_dir();
    for (flag, rules, list) in [
        ("--allow", &wanted.allow, &mut settings.approvals.allow),
        ("--deny", &wanted.deny, &mut settings.approvals.deny),
    ] {
        for rule in rules {
            let rule = Rule::parse(rule, home.as_deref()).map_err(|it| format!("{flag}: {it}"))?;
            list.push(ConfiguredRule::new(&rule.to_string()));
        }
    }
    if wanted.force {
        FORCE.clone_into(&mut settings.approvals.run);
    }
    match wanted.permission_mode {
        None | Some(PermissionMode::Default) => {}
        Some(PermissionMode::AcceptEdits) => {
            "list".clone_into(&mut settings.approvals.run);
            let rules = FILE_PROGRAMS.split(' ').map(|it| format!("Shell({it})"));
            let rules = rules.chain(["Write(**)".to_owned()]);
            settings
                .approvals
                .allow
                .extend(rules.map(|it| ConfiguredRule::new(&it)));
        }
        Some(PermissionMode::Plan) => "plan".clone_into(&mut settings.mode),
        Some(PermissionMode::BypassPermissions) => FORCE.clone_into(&mut settings.approvals.run),
    }
    apply_prompts(wanted, settings)?;
    if let Some(command) = &wanted.permission_prompt_tool {
        settings.approvals.program = Some(command.clone());
    }
    if let Some(names) = &wanted.tools {
        for tool in unnamed_tools(names)? {
            settings.tools.entry(tool).or_default().enabled = false;
        }
    }
    if let Some(most) = wanted.max_budget_usd {
        let is_least = settings.agent.max_dollars.is_none_or(|it| most < it);
        if is_least {
            settings.agent.max_dollars = Some(most);
            settings.agent.is_budget_given = true;
        }
    }
    if let Some(most) = wanted.max_turns {
        settings.agent.max_requests = most;
    }
    if wanted.trust {
        settings.trusted.push(base.workspace.to_string_lossy().into_owned());
    }
    base.custom_mode.clone_from(&wanted.agent);
    let is_elsewhere = wanted.attach.is_some() || matches!(settings.upstream(), Upstream::Gateway(_));
    if let Some(name) = wanted.agent.as_deref().filter(|_| is_elsewhere) {
        let mode = remote_mode(name, base, has_screen)?;
        mode.as_str().clone_into(&mut base.settings.mode);
    }
    for folder in &wanted.add_dir {
        if !folder.is_dir() {
            return Err(format!("--add-dir: {} is not a folder", folder.display()));
        }
    }
    Ok(())
}

/// Returns the mode that a gateway is told beside the name of a custom one: the nearest that it knows. Error: there is no such mode.
fn remote_mode(name: &str, base: &CliContext, has_screen: bool) -> Result<Mode, String> {
    let is_whole = base.settings.is_trusted(&base.workspace);
    // Nobody is there to be shown what has changed.
    let said = has_screen.then(|| TrustStore::under(&base.paths.state).record(&base.workspace));
    let may_act = |path: &str, print: &Fingerprint| is_whole || said.as_ref().is_some_and(|it| it.allows(path, print));
    let (around, _) = Surroundings::of_user(Some(base.workspace.clone()), Some(&base.paths));
    let modes = find_modes(&around, &may_act).modes;
    if let Some(mode) = modes.iter().find(|it| it.name == name) {
        return Ok(mode.base);
    }
    let names: Vec<&str> = modes.iter().map(|it| it.name.as_str()).collect();
    let others = if names.is_empty() {
        String::new()
    } else {
        format!("; there are {}", names.join(", "))
    };
    Err(format!(
        "--agent: there is no mode `{name}` here, or it is not trusted{others}"
    ))
}

/// Applies the texts that are given for the system prompt.
fn apply_prompts(wanted: &Run, settings: &mut Settings) -> Result<(), String> {
    let flags = [
        ("--system-prompt", &wanted.system_prompt),
        ("--append-system-prompt", &wanted.append_system_prompt),
    ];
    for (flag, text) in flags {
        if text.is_some() && matches!(settings.upstream(), Upstream::Gateway(_)) {
            return Err(format!(
                "{flag}: a gateway has its own system prompt\n  put the text into the prompt, or name a model server: --provider NAME"
            ));
        }
    }
    settings.prompt.given_whole.clone_from(&wanted.system_prompt);
    settings.prompt.given_end.clone_from(&wanted.append_system_prompt);
    Ok(())
}

/// Returns the names of the tools that a list of names leaves out. Error: a name that no tool has.
fn unnamed_tools(names: &str) -> Result<Vec<String>, String> {
    let names = tool_names(names);
    let tools = tools::built_in();
    for name in &names {
        if !tools.iter().any(|it| tool_choice::is_meant(it, name)) {
            let known: Vec<&str> = tools.iter().map(|it| it.name.as_str()).collect();
            let near = suggestion(name, known.iter().copied()).map_or_else(String::new, |it| format!("; {it}"));
            return Err(format!(
                "--tools: there is no tool `{name}`{near}\n  there are {}",
                known.join(", ")
            ));
        }
    }
    let left = tools
        .iter()
        .filter(|tool| !names.iter().any(|name| tool_choice::is_meant(tool, name)));
    Ok(left.map(|it| it.name.clone()).collect())
}

/// Returns the word for what a run may do without being asked.
fn permission(wanted: &Run) -> &'static str {
    match wanted.permission_mode {
        Some(mode) => mode.as_str(),
        None if wanted.force => PermissionMode::BypassPermissions.as_str(),
        None => PermissionMode::Default.as_str(),
    }
}

/// Returns absolute paths; a folder that does not exist is left as it is.
pub fn folders(named: &[PathBuf]) -> Vec<PathBuf> {
    named.iter().map(|it| absolute(it)).collect()
}

fn absolute(path: &Path) -> PathBuf {
    std::fs::canonicalize(path).unwrap_or_else(|_| path.to_owned())
}

/// Returns the print options for an answer in the conversation `id`.
pub fn options(base: &CliContext, printing: &OutputArguments, common: &CommonArguments, id: String) -> PrintOptions {
    PrintOptions {
        format: printing.output_format.into(),
        is_partial: printing.stream_partial_output,
        has_thinking: printing.include_thinking,
        has_progress: printing.output_format == OutputFormat::Text && io::stderr().is_terminal(),
        is_held: printing.output.is_some() || !io::stdout().is_terminal(),
        session: SessionInfo {
            id,
            workspace: base.workspace.clone(),
            key: key_source(base),
            permission: "default",
        },
        mode: base.mode(),
        custom_mode: base.custom_mode.clone(),
        schema: None,
        wants_sandbox: common.sandbox != Some(false) && matches!(base.settings.upstream(), Upstream::Provider(..)),
        input: None,
        approver: None,
        budget: None,
        retry_for: Some(base.settings.net.retry_for),
    }
}

/// Returns the reason why there is no sandbox, for a user who requires one. `None` if there is one, or for a gateway,
/// which runs commands elsewhere.
pub fn missing_sandbox(base: &CliContext) -> Option<String> {
    let runs_here = matches!(base.settings.upstream(), Upstream::Provider(..));
    let layers = sandbox::layers();
    (runs_here && layers.tier == Tier::None).then(|| {
        let remedies = layers
            .list
            .iter()
            .map(|it| it.remedy.as_str())
            .filter(|it| !it.is_empty());
        let remedies: String = remedies.map(|it| format!("\n  {it}")).collect();
        format!(
            "no sandbox is available: {}{remedies}\n  without --sandbox on, sheaf asks before each command",
            layers.why
        )
    })
}

/// Returns the source of the API key: `login`, `env` and `flag` in the words of Cursor's command line, `settings` or `none`.
fn key_source(base: &CliContext) -> &'static str {
    let (source, path) = match base.settings.upstream() {
        Upstream::Gateway(it) => (&it.token, "gateway.token".to_owned()),
        Upstream::Provider(name, it) => (&it.key, format!("providers.{name}.api_key")),
        Upstream::Nobody => return "login",
    };
    let layer = base.settings.origin(&path).layer;
    match (source, layer) {
        (KeySource::Variables(_), _) | (KeySource::Given(_), Layer::Environment) => "env",
        (KeySource::Given(_), Layer::Flag) => "flag",
        (KeySource::Given(_) | KeySource::Command(_), _) => "settings",
        (KeySource::None, _) => "none",
        (KeySource::File(_) | KeySource::Keyring(_), _) => "login",
    }
}

/// Returns the program that decides approvals, if there is one.
fn approver(base: &CliContext, session: &SessionInfo) -> Option<Approver> {
    let approvals = &base.settings.approvals;
    let command = approvals.program.clone().filter(|it| !it.trim().is_empty())?;
    Some(Approver {
        command,
        timeout: approvals.program_timeout,
        session: session.id.clone(),
        workspace: session.workspace.clone(),
    })
}

/// Returns the names in a list of tools.
pub fn tool_names(list: &str) -> Vec<String> {
    let names = list.split([',', ' ']).filter(|it| !it.is_empty());
    names.map(str::to_owned).collect()
}

/// Opens the place for the answer: the file that is named, or standard output. Error: why it cannot be written.
pub fn answer_output(path: Option<&Path>) -> Result<Box<dyn Write>, String> {
    let Some(path) = path else {
        return Ok(Box::new(io::stdout().lock()));
    };
    match file::create(path) {
        Ok(file) => Ok(Box::new(file)),
        Err(error) => {
            let folder = path.parent().filter(|it| !it.as_os_str().is_empty() && !it.is_dir());
            let hint = folder.map_or_else(
                || "name a file that can be written".to_owned(),
                |it| format!("create {} first", it.display()),
            );
            Err(format!(
                "--output: {} cannot be written: {error}\n  {hint}",
                path.display()
            ))
        }
    }
}

/// Reads pictures as they are sent with a message.
fn pictures(paths: &[PathBuf]) -> Result<Vec<Value>, String> {
    let one = |path: &PathBuf| {
        let wrong = |why: &str| format!("--image: {}: {why}", path.display());
        let bytes = file::read(path, mentions::IMAGE_BYTES).map_err(|it| format!("--image: {it}"))?;
        mentions::picture(&bytes).map_err(wrong)
    };
    paths.iter().map(one).collect()
}

/// Sends the prompt, prints the answer and returns the exit code.
pub fn print(
    base: CliContext,
    prompt: Option<String>,
    printing: &OutputArguments,
    common: &CommonArguments,
    wanted: &Run,
    resumed: Option<ResumeTarget>,
) -> Result<u8> {
    for problem in &base.problems {
        complain(&problem.to_string());
    }
    // A mistake in a file is reported and the default applies. A mistake in a flag ends the run: input must not go to
    // another server than the one named.
    // And nobody is there to be asked where what settings forbid is not known.
    let is_end = |it: &Problem| matches!(it.place, Location::Flag(_)) || it.leaves_open;
    if base.problems.iter().any(is_end) || has_unreadable_rules(&base) {
        return Ok(code::USAGE);
    }
    let (prompt, form) = match (&wanted.output_schema, prompt) {
        (Some(path), Some(prompt)) => match schema::form(path) {
            Ok((asking, form)) => (Some(format!("{prompt}\n\n{asking}")), Some(form)),
            Err(problem) => {
                complain(&format!("--output-schema: {problem}"));
                return Ok(code::USAGE);
            }
        },
        (_, prompt) => (prompt, None),
    };
    let is_own = matches!(base.settings.upstream(), Upstream::Provider(..));
    let mut message = prompt.map(|it| {
        if is_own {
            Message::typed_line(it)
        } else {
            Message::user(it)
        }
    });
    match (pictures(&wanted.image), &mut message) {
        (Ok(images), _) if images.is_empty() => {}
        (Ok(images), Some(message)) => {
            message.extra.insert("images".to_owned(), images.into());
        }
        (Ok(_), None) => {
            complain("--image needs a prompt\n  images of other messages are parts of their lines");
            return Ok(code::USAGE);
        }
        (Err(problem), _) => {
            complain(&problem);
            return Ok(code::USAGE);
        }
    }
    let out = match answer_output(printing.output.as_deref()) {
        Ok(out) => out,
        Err(problem) => {
            complain(&problem);
            return Ok(code::USAGE);
        }
    };
    let store = printing_store(&base);
    runtime(false)?.block_on(async move {
        let opened = match &resumed {
            Some(it) if wanted.fork => chat::fork(&base, &store, it, wanted.session_id.as_deref(), wanted.no_session)?,
            Some(it) => chat::open(&base, &store, it, wanted.no_session)?,
            None => chat::begin(&base, wanted.session_id.as_deref())?,
        };
        let has_program = base.settings.approvals.program.is_some();
        let is_dialogue = wanted.input_format == InputFormat::StreamJson;
        let talk = ConversationOptions {
            workspace: base.workspace.clone(),
            added: folders(&wanted.add_dir),
            tools: wanted.tools.as_deref().map(tool_names),
            log: Arc::clone(&opened.log),
            is_copy: opened.is_copy,
            is_attended: false,
            is_answered: has_program || is_dialogue,
            has_user_answers: is_dialogue && !has_program,
            is_apart: printing.output_format != OutputFormat::Text,
        };
        let link = open::link(&base.settings, &base.environment, &talk)?.ok_or_else(open::no_server_error)?;
        let recorder = match opened.recorder {
            None if !wanted.no_session && resumed.is_none() => chat::record(&store, opened.session.clone(), link.log()),
            recorder => recorder,
        };
        let mode = base.mode();
        let submit = message.map(|message| Submit {
            message,
            mode,
            model: None,
        });
        let mut options = PrintOptions {
            schema: form,
            ..options(&base, printing, common, opened.session.id.clone())
        };
        options.session.permission = permission(wanted);
        options.mode = mode;
        options.budget = wanted.max_budget_usd;
        options.approver = approver(&base, &options.session);
        if wanted.input_format == InputFormat::StreamJson {
            options.input = Some(dialogue::read_input()?);
        }
        let code = print_answer(&*link, submit, options, out).await;
        drop(link);
        // Waits for the last write; the store has reported it if it failed.
        drop(recorder);
        Ok(code)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_lists_the_programs_that_accept_edits_lets_run() {
        let page = include_str!("../../docs/headless.md");
        let listed = page
            .split_once("The plain file commands are `")
            .and_then(|it| it.1.split_once('`'));
        assert_eq!(listed.map(|it| it.0), Some(FILE_PROGRAMS));
    }
}
