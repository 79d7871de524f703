//! `sheaf mcp`: servers of tools, outside of a conversation.

use std::{
    collections::BTreeMap,
    io::{self, BufRead as _, IsTerminal as _, Write as _},
    sync::Arc,
    time::Duration,
};

use anyhow::{Context as _, Result};
use serde_json::{Map, Value};

use super::{
    CliContext,
    arguments::{Mcp, McpAdd, McpLogin, McpTask, McpTest, TargetArguments},
    code, complain, open, runtime, say,
};
use crate::{
    agent::served,
    config::{McpServer, Secret, store_server},
    extensions::installed,
    mcp::{
        self, Approvals, Change, Definition, Endpoint, Found, OAuthClient, Servers, Standing, State, Status, ToolName,
        described,
    },
    sandbox::{self, Fence, Tier, Workspace},
    text::{figure, width},
};

/// Time that a server has to start.
const PATIENCE: Duration = Duration::from_mins(2);
/// Times that one call may ask for more scopes.
const MOST_STEPS: usize = 2;
/// Time that a user has to sign in where nobody can paste an address.
const LOGIN_PATIENCE: Duration = Duration::from_mins(5);

/// Runs the subcommand.
pub fn run(asked: &Mcp) -> Result<u8> {
    let base = CliContext::of(&asked.common, &TargetArguments::default())?;
    match &asked.ask {
        McpTask::List { json } => Ok(list(&base, *json)),
        McpTask::Add(wanted) => add(&base, wanted),
        McpTask::Show { name } => Ok(with(&base, name, |it| show(&base, it))),
        McpTask::Approve { name, yes } => {
            let found = found(&base);
            let Some(definition) = found.servers.iter().find(|it| it.name == *name) else {
                return Ok(unknown(name, &found));
            };
            approve(&base, &found, definition, *yes)
        }
        McpTask::Test(wanted) => test(&base, wanted),
        McpTask::Serve => super::mcp_serve::run(&asked.common),
        McpTask::Login(wanted) => login(&base, wanted, None),
        McpTask::Logout { target } => logout(&base, target),
        McpTask::Remove { name } => remove(&base, name),
    }
}

fn found(base: &CliContext) -> Found {
    let (plugins, _) = installed(&base.paths.data);
    mcp::find(
        &base.settings.mcp,
        &root(base),
        std::env::home_dir().as_deref(),
        &plugins,
    )
}

fn root(base: &CliContext) -> std::path::PathBuf {
    base.workspace.canonicalize().unwrap_or_else(|_| base.workspace.clone())
}

fn with(base: &CliContext, name: &str, then: impl FnOnce(&Definition)) -> u8 {
    let found = found(base);
    match found.servers.iter().find(|it| it.name == name) {
        Some(definition) => {
            then(definition);
            code::OK
        }
        None => unknown(name, &found),
    }
}

fn unknown(name: &str, found: &Found) -> u8 {
    let names: Vec<&str> = found.servers.iter().map(|it| it.name.as_str()).collect();
    let near = crate::config::suggestion(name, names.iter().copied());
    let hint = near.unwrap_or_else(|| "`sheaf mcp list` shows all".to_owned());
    complain(&format!("there is no MCP server `{name}`\n  {hint}"));
    code::FAILED
}

/// What keeps a server from starting, in a word or a sentence; `ready to start` if nothing does.
fn standing(base: &CliContext, definition: &Definition, files: &Found) -> String {
    if !definition.is_enabled {
        return "off".to_owned();
    }
    if let Endpoint::Unusable(why) = &definition.endpoint {
        return why.clone();
    }
    let root = root(base);
    match Approvals::under(&base.paths.state).standing(&root, definition) {
        Standing::New => return format!("not approved; `sheaf mcp approve {}`", definition.name),
        Standing::Changed { .. } => {
            return format!("changed since you approved it; `sheaf mcp approve {}`", definition.name);
        }
        Standing::Approved => {}
    }
    if !is_of_trusted_file(base, files, definition) {
        return format!("its file is not trusted; `sheaf mcp approve {}`", definition.name);
    }
    let variable = |name: &str| base.environment.get(name).map(str::to_owned);
    match definition.resolve(&root, &variable) {
        Ok(_) => "ready to start".to_owned(),
        Err(why) => why,
    }
}

fn list(base: &CliContext, json: bool) -> u8 {
    let found = found(base);
    for it in &found.servers {
        let state = standing(base, it, &found);
        if json {
            let row = serde_json::json!({
                "name": it.name, "file": it.origin.shown(), "state": state, "line": it.line(),
                "network": it.network, "folders": it.folders,
            });
            say(&format!("{row}\n"));
        } else {
            say(&format!(
                "{}  {}  ({})\n  {}\n",
                it.name,
                it.line(),
                it.origin.shown(),
                state
            ));
        }
    }
    for problem in &found.problems {
        complain(problem);
    }
    if found.servers.is_empty() && !json {
        complain("no MCP servers are configured\n  sheaf mcp add NAME -- COMMAND   adds one");
    }
    code::OK
}

/// What becomes of the line of a definition.
fn verb(it: &Definition) -> &'static str {
    match it.endpoint {
        Endpoint::Http { .. } => "reaches",
        Endpoint::Program { .. } | Endpoint::Unusable(_) => "runs",
    }
}

fn show(base: &CliContext, it: &Definition) {
    let found = found(base);
    let mut lines = vec![
        format!("{}  ({})", it.name, it.origin.shown()),
        format!("  {}: {}", verb(it), it.line()),
    ];
    let given = it.given();
    if !given.is_empty() {
        lines.push(format!("  given: {}", given.join(", ")));
    }
    if matches!(it.endpoint, Endpoint::Program { .. }) {
        lines.push(format!("  network: {}", if it.network { "yes" } else { "no" }));
        let folders = if it.folders.is_empty() {
            "none".to_owned()
        } else {
            it.folders.join(", ")
        };
        lines.push(format!("  may write: {folders}"));
        lines.push(format!("  sandbox: {}", walls()));
    }
    if !it.disabled_tools.is_empty() {
        lines.push(format!("  tools off: {}", it.disabled_tools.join(", ")));
    }
    lines.push(format!("  state: {}", standing(base, it, &found)));
    say(&format!("{}\n", lines.join("\n")));
}

/// The walls that a program runs in.
fn walls() -> String {
    let layers = sandbox::layers();
    match layers.tier {
        Tier::Full => "whole".to_owned(),
        Tier::Partial => format!("partial, without: {}", layers.but(false)),
        Tier::None => format!("none ({}): it may do what you may", layers.but(false)),
    }
}

fn add(base: &CliContext, wanted: &McpAdd) -> Result<u8> {
    let McpAdd {
        name,
        url,
        env,
        header,
        network,
        folder,
        command,
    } = wanted;
    let is_plain = |it: char| it.is_alphanumeric() || "-_.".contains(it);
    if name.is_empty() || name.len() > 64 || !name.chars().all(is_plain) {
        complain(&format!(
            "`{name}` cannot be the name of a server\n  use letters, digits, '-', '_' and '.'"
        ));
        return Ok(code::USAGE);
    }
    let mut words = command.iter().cloned();
    let mut entry = McpServer {
        command: words.next(),
        args: words.collect(),
        url: url.clone(),
        network: *network,
        folders: folder.clone(),
        ..McpServer::default()
    };
    for pair in env {
        let Some((name, value)) = pair.split_once('=') else {
            complain(&format!("--env: `{pair}` is not NAME=VALUE"));
            return Ok(code::USAGE);
        };
        entry.env.insert(name.to_owned(), value.to_owned());
    }
    for pair in header {
        let Some((name, value)) = pair.split_once(':') else {
            complain("--header: it is not 'Name: value'");
            return Ok(code::USAGE);
        };
        entry.headers.insert(name.trim().to_owned(), Secret::new(value.trim()));
    }
    store_server(&base.paths, name, Some(&entry))?;
    say(&format!(
        "added `{name}` to {}\n  sheaf mcp test {name}   starts it and lists its tools\n",
        crate::config::shown_path(&base.paths.settings())
    ));
    Ok(code::OK)
}

fn remove(base: &CliContext, name: &str) -> Result<u8> {
    let found = found(base);
    let definition = found.servers.iter().find(|it| it.name == name);
    let is_removed = store_server(&base.paths, name, None)?;
    if let Some(definition) = definition {
        Approvals::under(&base.paths.state)
            .forget(&root(base), definition)
            .map_err(anyhow::Error::msg)?;
        if definition.origin != mcp::Origin::Settings {
            complain(&format!(
                "`{name}` is defined in {}: remove it there\n  its approval is withdrawn",
                definition.origin.shown()
            ));
            return Ok(if is_removed { code::OK } else { code::FAILED });
        }
    }
    if !is_removed {
        return Ok(unknown(name, &found));
    }
    say(&format!("removed `{name}`\n"));
    Ok(code::OK)
}

/// Shows what a server would run, asks, and keeps the yes; of one that is approved, shows which tools have changed.
fn approve(base: &CliContext, found: &Found, definition: &Definition, yes: bool) -> Result<u8> {
    let root = root(base);
    let approvals = Approvals::under(&base.paths.state);
    let standing = approvals.standing(&root, definition);
    if definition.is_foreign() {
        let file = definition.origin.shown();
        let print = found.files.get(file);
        let is_known = is_of_trusted_file(base, found, definition);
        if standing != Standing::Approved || !is_known {
            say(&format!("{}  (from {file})\n", definition.name));
            if let Standing::Changed { was } = &standing {
                say(&format!("- {was}\n+ {}\n", described(definition)));
            } else {
                say(&format!("  {}: {}\n", verb(definition), definition.line()));
                for (word, all) in [("given", definition.given()), ("and", definition.reach())] {
                    if !all.is_empty() {
                        say(&format!("  {word}: {}\n", all.join(", ")));
                    }
                }
            }
            if matches!(definition.endpoint, Endpoint::Program { .. }) {
                say(&format!("  sandbox: {}\n", walls()));
            }
            if !yes && !asked("Approve it?")? {
                complain("not approved");
                return Ok(code::FAILED);
            }
            approvals.approve(&root, definition).map_err(anyhow::Error::msg)?;
            if let Some(print) = print.filter(|_| !is_known) {
                crate::config::TrustStore::under(&base.paths.state).trust_file(&root, file, print.clone())?;
            }
            say("approved\n");
            return Ok(code::OK);
        }
    }
    // The definition is approved: what is left are its tools.
    let (servers, status) = started(base, base.settings.mcp.clone(), &definition.name, true)?;
    let changes: Vec<Change> = status.tools.iter().filter_map(|it| it.change.clone()).collect();
    if status.state != State::Ready {
        complain(&format!("{}: {}", definition.name, open::state_line(&status.state)));
        return Ok(code::FAILED);
    }
    if changes.is_empty() {
        say("nothing has changed since it was approved\n");
        return Ok(code::OK);
    }
    for Change { tool, was, now } in &changes {
        say(&format!("{tool}\n"));
        if let Some(was) = was {
            say(&marked('-', was));
        }
        say(&marked('+', now));
    }
    if !yes && !asked("Approve these tools?")? {
        complain("not approved");
        return Ok(code::FAILED);
    }
    let shown = status.print.to_string();
    servers
        .approve(&definition.name, None, &shown)
        .map_err(anyhow::Error::msg)?;
    say("approved\n");
    Ok(code::OK)
}

fn marked(sign: char, text: &str) -> String {
    let lines = text.lines().map(|it| format!("  {sign} {it}\n"));
    lines.collect()
}

/// Asks a question on the terminal. An error without one.
fn asked(question: &str) -> Result<bool> {
    if !io::stdin().is_terminal() {
        anyhow::bail!("standard input is no terminal, so sheaf cannot ask you here\n  --yes approves without asking");
    }
    say(&format!("{question} [y/N] "));
    io::stdout().flush()?;
    let mut line = String::new();
    io::stdin().lock().read_line(&mut line)?;
    Ok(matches!(line.trim(), "y" | "Y" | "yes"))
}

/// Starts one server and waits until it is ready or has failed.
fn started(
    base: &CliContext,
    settings: BTreeMap<String, McpServer>,
    name: &str,
    is_free: bool,
) -> Result<(Arc<Servers>, Status)> {
    let fence = Fence::configured(&base.settings, Some(&base.paths), Vec::new());
    let root = root(base);
    let workspace = Workspace::fenced(&root, fence).with_context(|| format!("{} cannot be opened", root.display()))?;
    let mut setup = open::servers_setup(
        &base.settings,
        Some(&base.paths),
        &base.environment,
        &Arc::new(workspace),
        false,
    );
    setup.settings = settings;
    setup.only = Some(name.to_owned());
    let servers = Arc::new(Servers::new(setup));
    // Nobody is asked here: a form is answered with its defaults.
    servers.set_asker(Some(Arc::new(|ask| {
        let answer = mcp::read_form(&ask).ok().and_then(|it| it.answered(&[]).ok());
        Box::pin(async move { answer.unwrap_or_else(|| serde_json::json!({ "action": "decline" })) })
    })));
    if io::stderr().is_terminal() {
        complain(&format!("starting {name} …"));
    }
    let waiting = Arc::clone(&servers);
    let status = runtime(false)?.block_on(async move {
        waiting.start();
        waiting.settled(PATIENCE).await;
        let status = waiting.statuses().into_iter().next();
        if is_free
            && status
                .as_ref()
                .is_some_and(|it| matches!(&it.state, State::Unusable(why) if why.contains("no sandbox")))
        {
            // Whoever types the command has decided it.
            if let Some(it) = &status {
                waiting.approve(&it.definition.name, None, &it.print.to_string()).ok();
            }
            waiting.settled(PATIENCE).await;
        }
        waiting.statuses().into_iter().next()
    });
    let status = status.with_context(|| format!("there is no MCP server `{name}`\n`sheaf mcp list` shows all"))?;
    Ok((servers, status))
}

/// A server behind HTTP, as one signs in to it.
struct Address {
    url: String,
    headers: Vec<(String, String)>,
    client: OAuthClient,
}

fn address(base: &CliContext, target: &str) -> Result<Address> {
    if target.starts_with("http://") || target.starts_with("https://") {
        return Ok(Address {
            url: target.to_owned(),
            headers: Vec::new(),
            client: OAuthClient::default(),
        });
    }
    let found = found(base);
    let definition = found.servers.iter().find(|it| it.name == target);
    let definition =
        definition.with_context(|| format!("there is no MCP server `{target}`\n`sheaf mcp list` shows all"))?;
    if !may_start(base, &found, definition) {
        let file = definition.origin.shown();
        anyhow::bail!(
            "`{target}` of {file} is not approved, so nothing is sent to it\n  sheaf mcp approve {target} shows what it is and asks"
        );
    }
    let variable = |name: &str| base.environment.get(name).map(str::to_owned);
    match definition.resolve(&root(base), &variable).map_err(anyhow::Error::msg)? {
        mcp::Resolved::Http { url, headers } => Ok(Address {
            url,
            headers,
            client: definition.client.clone(),
        }),
        mcp::Resolved::Program { .. } => {
            anyhow::bail!("`{target}` is a program, which signs in by itself\n  give it a key: [mcp.{target}] env")
        }
    }
}

/// Returns true if a server is the user's own, or approved and its project's file is trusted.
fn may_start(base: &CliContext, found: &Found, definition: &Definition) -> bool {
    let standing = Approvals::under(&base.paths.state).standing(&root(base), definition);
    is_of_trusted_file(base, found, definition) && standing == Standing::Approved
}

/// Returns false for a server of a project whose file the user does not trust as it is.
fn is_of_trusted_file(base: &CliContext, found: &Found, definition: &Definition) -> bool {
    let mcp::Origin::Project(file) = &definition.origin else {
        return true;
    };
    let is_trusted = open::is_trusted(&base.settings, Some(&base.paths), &root(base));
    found.files.get(file).is_some_and(|it| is_trusted(file, it))
}

/// Signs in. `challenge`: what the server has answered to a call, if it wants more than it has given before.
fn login(base: &CliContext, wanted: &McpLogin, challenge: Option<String>) -> Result<u8> {
    let Address {
        url,
        headers,
        mut client,
    } = address(base, &wanted.target)?;
    client.id = wanted.client_id.clone().or(client.id);
    let is_remote = base.environment.get("SSH_CONNECTION").is_some();
    let tokens = mcp::Tokens::under(&base.paths.state);
    let failed = anyhow::Error::msg;
    runtime(false)?.block_on(async {
        let has_more = challenge.is_some();
        let challenge = match challenge {
            Some(challenge) => challenge,
            None => mcp::challenge(&url, headers).await.map_err(failed)?,
        };
        let mut server = mcp::find_auth_server(&url, &challenge).await.map_err(failed)?;
        if let Some(token) = tokens.get(&url).filter(|_| has_more) {
            server.add_scopes(token.scope());
        }
        if client.is_alone {
            let token = mcp::sign_in_alone(server, &client).await.map_err(failed)?;
            return tokens.keep(&url, token).map_err(failed);
        }
        let issuer = server.issuer.clone();
        let attempt = mcp::Attempt::begin(server, &client).await.map_err(failed)?;
        say(&format!("Sign in at {issuer}:\n  {}\n", attempt.address));
        if !wanted.no_browser && !is_remote {
            served::browse(attempt.address.as_str());
        }
        let redirected = if io::stdin().is_terminal() {
            say(
                "When the browser shows an error instead of coming back here, paste the address that it was sent to:\n",
            );
            let (to, mut typed) = tokio::sync::mpsc::unbounded_channel();
            // Nobody waits for this thread, which may read for ever.
            std::thread::spawn(move || {
                for line in io::stdin().lock().lines().map_while(Result::ok) {
                    let _ = to.send(line);
                }
            });
            loop {
                tokio::select! {
                    redirected = attempt.callback() => break redirected,
                    Some(line) = typed.recv() => match attempt.answer(&line) {
                        Ok(_) => break Ok(line),
                        Err(_) if line.trim().is_empty() => {}
                        Err(why) => say(&format!("{why}: paste all of it, or press Ctrl+C to stop\n")),
                    },
                }
            }
        } else {
            let waited = tokio::time::timeout(LOGIN_PATIENCE, attempt.callback()).await;
            waited.unwrap_or_else(|_| Err("nobody signed in within 5 minutes".to_owned()))
        };
        let token = attempt.finish(&redirected.map_err(failed)?).await.map_err(failed)?;
        tokens.keep(&url, token).map_err(failed)
    })?;
    say("signed in\n");
    Ok(code::OK)
}

fn logout(base: &CliContext, target: &str) -> Result<u8> {
    let url = address(base, target)?.url;
    let removed = mcp::Tokens::under(&base.paths.state)
        .remove(&url)
        .map_err(anyhow::Error::msg)?;
    let Some(token) = removed else {
        complain(&format!("you are not signed in to `{target}`"));
        return Ok(code::FAILED);
    };
    if let Err(why) = runtime(false)?.block_on(token.revoke()) {
        complain(&format!(
            "the token is removed here, but the server could not be told: {why}"
        ));
    }
    say("signed out\n");
    Ok(code::OK)
}

fn test(base: &CliContext, wanted: &McpTest) -> Result<u8> {
    let is_address = wanted.target.starts_with("http://") || wanted.target.starts_with("https://");
    let mut settings = base.settings.mcp.clone();
    let name = if is_address {
        let entry = McpServer {
            url: Some(wanted.target.clone()),
            ..McpServer::default()
        };
        settings.insert("test".to_owned(), entry);
        "test"
    } else {
        &wanted.target
    };
    let sign_in = McpLogin {
        target: wanted.target.clone(),
        no_browser: false,
        client_id: wanted.client_id.clone(),
    };
    let (mut servers, mut status) = started(base, settings.clone(), name, true)?;
    if status.state == State::SignIn && wanted.login {
        login(base, &sign_in, None)?;
        (servers, status) = started(base, settings.clone(), name, true)?;
    }
    if status.state != State::Ready {
        complain(&format!("{name}: {}", open::state_line(&status.state)));
        if matches!(status.state, State::Unapproved(_) | State::Untrusted) {
            complain(&format!(
                "`sheaf mcp approve {name}` shows what it would run and approves it"
            ));
        }
        return Ok(code::FAILED);
    }
    let total: u64 = status.tools.iter().map(|it| served::cost(name, &it.info)).sum();
    say(&format!(
        "{}  protocol {}, {} (about {total} tokens), {}, {}\n",
        if status.title.is_empty() { name } else { &status.title },
        status.version,
        figure::count(status.tools.len(), "tool", "tools"),
        figure::count(status.prompts.len(), "prompt", "prompts"),
        figure::count(status.resources.len(), "resource", "resources"),
    ));
    for it in &status.tools {
        let note = match (&it.change, it.is_on) {
            (Some(_), _) => " (changed since it was approved: not offered)",
            (None, false) => " (off)",
            (None, true) => "",
        };
        let about = it.info.about.lines().next().unwrap_or_default();
        say(&format!("  {}{note}  {}\n", it.info.name, width::cut_end(about, 90)));
    }
    let Some(tool) = &wanted.call else {
        return Ok(code::OK);
    };
    let arguments: Map<String, Value> = match &wanted.arguments {
        Some(text) => serde_json::from_str(text).context("--arguments: it is no JSON object")?,
        None => Map::new(),
    };
    let tool = ToolName {
        server: name.to_owned(),
        tool: tool.clone(),
    };
    let mut called = runtime(false)?.block_on(servers.call(&tool, arguments.clone(), None));
    for _ in 0..MOST_STEPS {
        let Err(mcp::Error::SignIn { challenge }) = &called else {
            break;
        };
        if !wanted.login || challenge.is_empty() {
            break;
        }
        // It wants more than it was given.
        login(base, &sign_in, Some(challenge.clone()))?;
        let (again, _) = started(base, settings.clone(), name, true)?;
        called = runtime(false)?.block_on(again.call(&tool, arguments.clone(), None));
    }
    let reply = called.with_context(|| format!("the tool `{}` gave no result", tool.tool))?;
    say(&format!("{}\n", reply.text.trim_end()));
    if !reply.pictures.is_empty() {
        say(&format!("({} pictures)\n", reply.pictures.len()));
    }
    Ok(if reply.is_error { code::FAILED } else { code::OK })
}
