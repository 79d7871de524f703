//! Tools of servers (MCP) as tools of the agent.
//!
//! Where the schemas of all of them would take more than a part of the model's window, the model is offered two tools instead: one
//! that finds tools by words, one that calls what was found.

use std::{convert::Infallible, sync::Arc, time::Duration};

use serde_json::{Map, Value, json};
use tokio::sync::mpsc;

use crate::{
    agent::tags::{guard, wrap_with},
    mcp::{
        Endpoint, Error, Progress, PromptInfo, Reply, ResourceInfo, Servers, Standing, State, Status, ToolInfo,
        ToolName, ToolStatus, capped, hashed_name, model_name, reduced, shown_name,
    },
    models::Part,
    os::process,
    protocol::{
        PromptValues, ServerChange, ServerPrompt, ServerReport, ServerResource, ServerState, ServerTool, ServersReport,
    },
    sandbox::{self, Tier},
    tools::{Access, Class, Context, Fault, Input, Outcome, Tool, ToolSet, Work, schema},
};

/// The part of the window that schemas may take, as a divisor: 8 %.
const WINDOW_PART: f64 = 0.08;
/// The window of a model of which none is known.
const USUAL_WINDOW: u64 = 128_000;
/// Bytes that one token stands for.
const BYTES_PER_TOKEN: f64 = 3.3;
/// Bytes of a result that a model is given: 25,000 tokens, two thirds of them from its beginning.
const RESULT_BYTES: usize = 82_500;
const HEAD_BYTES: usize = 55_000;
/// Bytes of a result that its document keeps.
const SHOWN_BYTES: usize = 64 << 10;
/// Tools that a search finds.
const MOST_FOUND: usize = 8;
/// Bytes of what a server says of itself beside its tools that were found.
const SAID_BYTES: usize = 2 << 10;
/// Bytes that a search answers with.
const FOUND_BYTES: usize = 24 << 10;
/// Time between two reports of how far a call is.
const BETWEEN_REPORTS: Duration = Duration::from_millis(250);
/// Words of the line that describes a server.
const LINE_WORDS: usize = 12;

/// The name of the tool that finds tools.
pub const SEARCH: &str = "mcp_search";
/// The name of the tool that calls a tool that was found.
pub const CALL: &str = "mcp_call";

/// `own` and the tools of servers, for a model with `window` tokens.
pub fn with_servers(own: &ToolSet, servers: Option<&Arc<Servers>>, window: Option<u64>) -> ToolSet {
    let Some(servers) = servers.filter(|_| !own.is_empty()) else {
        return own.clone();
    };
    let all = own
        .iter()
        .cloned()
        .chain(tools(servers, window).into_iter().map(Arc::new));
    all.collect::<ToolSet>().by_mode(own.is_by_mode())
}

/// Instructions of the servers for the system prompt, by name. Empty where their tools are found by words: they come with these.
pub fn instructions(servers: Option<&Arc<Servers>>, tools: &ToolSet) -> Vec<(String, String)> {
    let servers = servers.filter(|_| tools.get(SEARCH).is_none());
    servers.map(|it| it.instructions()).unwrap_or_default()
}

/// The tools of all servers. Where they are too many, two that stand for them come first, and the others are in no list; a
/// model may know their names from an earlier request.
fn tools(servers: &Arc<Servers>, window: Option<u64>) -> Vec<Tool> {
    let known = servers.tools();
    if known.is_empty() {
        return Vec::new();
    }
    let mut tools: Vec<Tool> = Vec::with_capacity(known.len());
    for (name, info) in &known {
        let plain = model_name(&name.server, &name.tool);
        let is_taken = tools.iter().any(|it| it.name == plain);
        let called = if is_taken {
            hashed_name(&name.server, &name.tool)
        } else {
            plain
        };
        // A server that gives a tool the hashed name of another one loses it.
        if tools.iter().any(|it| it.name == called) {
            continue;
        }
        tools.push(tool(servers, name, info, &called));
    }
    let limit = window.unwrap_or(USUAL_WINDOW) as f64 * WINDOW_PART;
    if tools.iter().map(tokens).sum::<f64>() <= limit {
        return tools;
    }
    let hidden = tools.into_iter().map(|it| Tool { is_hidden: true, ..it });
    [search_tool(servers, &known), call_tool(servers)]
        .into_iter()
        .chain(hidden)
        .collect()
}

/// About as many tokens as a tool takes in each request.
fn tokens(tool: &Tool) -> f64 {
    let bytes = tool.name.len() + tool.about.len() + tool.schema.to_string().len() + 40;
    bytes as f64 / BYTES_PER_TOKEN
}

/// About as many tokens as a tool of a server takes in each request, if it is offered by itself.
pub fn cost(server: &str, info: &ToolInfo) -> u64 {
    let about = about(server, info);
    let bytes = model_name(server, &info.name).len() + about.len() + reduced(&info.schema).to_string().len() + 40;
    (bytes as f64 / BYTES_PER_TOKEN).ceil() as u64
}

fn about(server: &str, info: &ToolInfo) -> String {
    let about = if info.about.trim().is_empty() {
        &info.title
    } else {
        &info.about
    };
    format!(
        "Tool of the MCP server {server}, in its own words: {}",
        guard(about.trim())
    )
}

fn tool(servers: &Arc<Servers>, name: &ToolName, info: &ToolInfo, called: &str) -> Tool {
    let (judged, run_by) = (name.clone(), name.clone());
    let servers = Arc::clone(servers);
    Tool {
        about: about(&name.server, info).into(),
        schema: guarded(reduced(&info.schema)).into(),
        word: shown_name(&name.server, &name.tool),
        takes_any: true,
        is_basic: true,
        ..Tool::new(
            called,
            Class::Runs,
            Work::call(
                move |_, _| Ok(vec![access(&judged)]),
                move |input, context| {
                    let (servers, name) = (Arc::clone(&servers), run_by.clone());
                    async move { call(&servers, &name, input.0, &context).await }
                },
            ),
        )
    }
    .in_all_modes()
}

/// A schema whose descriptions hold no tag of ours.
fn guarded(schema: Value) -> Value {
    match schema {
        Value::Object(members) => {
            let safe = |(name, it): (String, Value)| match it {
                Value::String(text) if name == "description" || name == "title" => (name, guard(&text).into()),
                other => (name, guarded(other)),
            };
            Value::Object(members.into_iter().map(safe).collect())
        }
        Value::Array(all) => all.into_iter().map(guarded).collect(),
        other => other,
    }
}

fn access(name: &ToolName) -> Access {
    Access::Mcp {
        server: name.server.clone(),
        tool: name.tool.clone(),
    }
}

/// Calls a tool of a server.
async fn call(
    servers: &Servers,
    name: &ToolName,
    arguments: Map<String, Value>,
    context: &Context,
) -> Result<Outcome, Fault> {
    let (report, reports) = mpsc::unbounded_channel();
    let asked = servers.call(name, arguments, Some(report));
    let reply = tokio::select! {
        biased;
        reply = asked => reply,
        never = tell_progress(reports, &context.output) => match never {},
    };
    let reply = reply.map_err(|it| fault(&name.server, &it))?;
    if reply.is_error {
        let said = capped(&reply.text, SHOWN_BYTES);
        return Err(Fault {
            told: Some(foreign(name, &said)),
            ..Fault::new("TOOL_FAILED", format!("{}: {}", name.server, said.trim()))
        });
    }
    Ok(outcome(name, reply, context))
}

/// Tells how far a call is, each report as a line of JSON; of several within a moment the last one. Never ends.
async fn tell_progress(
    mut reports: mpsc::UnboundedReceiver<Progress>,
    output: &mpsc::UnboundedSender<String>,
) -> Infallible {
    while let Some(mut report) = reports.recv().await {
        while let Ok(newer) = reports.try_recv() {
            report = newer;
        }
        let whole = |it: f64| (0.0..1e15).contains(&it).then_some(it as u64);
        let (step, total) = (whole(report.progress), report.total.and_then(whole));
        let step = json!({ "step": step, "total": total, "message": report.message });
        // Nobody listens any more: the call is being cancelled.
        output.send(format!("{step}\n")).ok();
        tokio::time::sleep(BETWEEN_REPORTS).await;
    }
    std::future::pending().await
}

/// A text of a server's, marked as such.
fn foreign(name: &ToolName, text: &str) -> String {
    let attributes = [("server", name.server.as_str()), ("tool", name.tool.as_str())];
    wrap_with("mcp_result", &attributes, text)
}

fn fault(server: &str, error: &Error) -> Fault {
    // It may quote the server.
    let message = format!("the MCP server `{server}`: {}", guard(&error.to_string()));
    match error {
        Error::Gone(_) | Error::Start(_) | Error::SessionEnded => Fault::new("TOOL_FAILED", message)
            .hint("It is started again if it can be; try once more, or go on without it."),
        Error::Timeout(_) => Fault::new("TOOL_TIMEOUT", message).hint("Ask it for less, or go on without it."),
        Error::SignIn { .. } => {
            Fault::new("TOOL_FAILED", message).hint(format!("The user signs in with `sheaf mcp login {server}`."))
        }
        Error::Rpc(_) | Error::Malformed(_) | Error::Http(_) | Error::Version(_) => Fault::new("TOOL_FAILED", message),
    }
}

/// The result for the model: bounded, and marked as foreign.
fn outcome(name: &ToolName, reply: Reply, context: &Context) -> Outcome {
    let Reply { text, pictures, .. } = reply;
    let is_long = text.len() > RESULT_BYTES;
    let told = if is_long {
        cut(&text, name, context)
    } else {
        text.clone()
    };
    let told = if told.trim().is_empty() { "(no text)" } else { &told };
    Outcome {
        text: foreign(name, told),
        data: capped(&text, SHOWN_BYTES).into(),
        is_truncated: is_long,
        images: pictures,
    }
}

/// The beginning and the end of a long result, and the file that has all of it.
fn cut(text: &str, name: &ToolName, context: &Context) -> String {
    let head = text.get(..text.floor_char_boundary(HEAD_BYTES)).unwrap_or_default();
    let tail = text.ceil_char_boundary(text.len() - (RESULT_BYTES - HEAD_BYTES));
    let tail = text.get(tail..).unwrap_or_default();
    let file = format!("mcp-{}-{}.txt", model_name(&name.server, &name.tool), context.call);
    let kept = context.workspace.commands().keep(&file, text.as_bytes());
    let place = match kept {
        Ok(path) => format!("all of it is in {}", path.display()),
        Err(error) => format!("the rest could not be kept: {error}"),
    };
    let left = text.len() - head.len() - tail.len();
    format!("{head}\n[{left} bytes are left out here; {place}]\n{tail}")
}

/// Reads the resources that a message of the user's mentions as `@server:uri`. Warnings: which could not be read.
pub async fn resources_of(text: &str, servers: &Servers) -> (Vec<Part>, Vec<String>) {
    let (mut parts, mut warnings) = (Vec::new(), Vec::new());
    for (server, uri) in resources_in(text, &servers.statuses()) {
        if uri.contains('{') {
            warnings.push(format!(
                "@{server}:{uri} was not read: put a value where the braces are"
            ));
            continue;
        }
        match servers.resource(&server, &uri).await {
            Ok(reply) => {
                let body = capped(&reply.text, RESULT_BYTES);
                let attributes = [("server", server.as_str()), ("uri", uri.as_str())];
                parts.push(Part::Text(wrap_with("mcp_resource", &attributes, &body)));
                parts.extend(reply.pictures.into_iter().map(Part::Image));
            }
            Err(error) => warnings.push(format!("@{server}:{uri} could not be read: {error}")),
        }
    }
    (parts, warnings)
}

/// The prompt that a message of the user's begins with as `/mcp__server__prompt arguments`, filled in by its server; nothing if it begins
/// with none. Error: why there is no such prompt to send.
pub async fn prompt_of(text: &str, servers: Option<&Servers>) -> Result<Vec<Part>, String> {
    if !text.trim_start().starts_with(PROMPT) {
        return Ok(Vec::new());
    }
    let servers = servers.ok_or("no MCP server is configured here: sheaf mcp add adds one")?;
    let (server, prompt, arguments) = prompt_in(text, &servers.statuses())?;
    let reply = servers.prompt(&server, &prompt, arguments).await;
    let reply = reply.map_err(|it| format!("the prompt {prompt} of {server} was not filled in: {it}"))?;
    let body = capped(&reply.text, RESULT_BYTES);
    let attributes = [("server", server.as_str()), ("name", prompt.as_str())];
    let text = Part::Text(wrap_with("mcp_prompt", &attributes, &body));
    let pictures = reply.pictures.into_iter().map(Part::Image);
    Ok(std::iter::once(text).chain(pictures).collect())
}

/// Returns true if a message names a prompt or a resource of a server, which is fetched before the message is sent.
pub fn is_fetched_for(text: &str, servers: Option<&Servers>) -> bool {
    let names_resource = |it: &Servers| text.contains('@') && !resources_in(text, &it.statuses()).is_empty();
    text.trim_start().starts_with(PROMPT) || servers.is_some_and(names_resource)
}

/// Time that a server has to offer values while somebody types.
const VALUES_PATIENCE: Duration = Duration::from_secs(3);
/// How a message begins that uses a prompt of a server.
const PROMPT: &str = "/mcp__";
/// Resources that one message may attach.
const MOST_RESOURCES: usize = 8;

fn resources_in(text: &str, statuses: &[Status]) -> Vec<(String, String)> {
    let words = text.split_whitespace().filter_map(|it| it.strip_prefix('@'));
    let named = words.filter_map(|word| {
        let (server, uri) = word.split_once(':')?;
        let uri = uri.trim_end_matches([',', ';', '.', ')', '?', '!']);
        let is_known = statuses
            .iter()
            .any(|it| it.definition.name == server && it.state == State::Ready);
        (is_known && !uri.is_empty()).then(|| (server.to_owned(), uri.to_owned()))
    });
    let mut found: Vec<(String, String)> = Vec::new();
    for it in named {
        if !found.contains(&it) && found.len() < MOST_RESOURCES {
            found.push(it);
        }
    }
    found
}

/// A server, one of its prompts, and the arguments for it.
type NamedPrompt = (String, String, Map<String, Value>);

/// Arguments are `name=value` words, or words in the order of the prompt's arguments, the last of which takes the rest.
fn prompt_in(text: &str, statuses: &[Status]) -> Result<NamedPrompt, String> {
    let line = text.trim_start().trim_start_matches('/');
    let (called, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
    let ready = statuses.iter().filter(|it| it.state == State::Ready);
    let mut prompts = ready.flat_map(|it| it.prompts.iter().map(move |prompt| (&it.definition.name, prompt)));
    let found = prompts.find(|(server, prompt)| model_name(server, &prompt.name) == called);
    let (server, prompt) =
        found.ok_or_else(|| format!("no MCP server that is ready has a prompt /{called}; see /mcp"))?;
    let mut arguments = Map::new();
    let (mut words, count) = (rest.trim(), prompt.arguments.len());
    for (at, (name, _)) in prompt.arguments.iter().enumerate() {
        if words.is_empty() {
            break;
        }
        let is_last = at + 1 == count;
        let (word, after) = if is_last {
            (words, "")
        } else {
            words.split_once(char::is_whitespace).unwrap_or((words, ""))
        };
        let (name, value) = match word.split_once('=') {
            Some((named, value)) if prompt.arguments.iter().any(|it| it.0 == named) => (named, value),
            _ => (name.as_str(), word),
        };
        arguments.insert(name.to_owned(), value.into());
        words = after.trim_start();
    }
    let is_missing = |(name, is_required): &&(String, bool)| *is_required && !arguments.contains_key(name);
    match prompt.arguments.iter().find(is_missing) {
        Some((name, _)) => Err(format!("/{called} needs {name}: /{called} {}", shown_arguments(prompt))),
        None => Ok((server.clone(), prompt.name.clone(), arguments)),
    }
}

/// The values that its server offers for the argument that a draft ends with, which begins as `/mcp__server__prompt `. Empty if it
/// offers none.
pub async fn prompt_values(draft: &str, servers: &Servers) -> PromptValues {
    let Some(typing) = Typing::of(draft, &servers.statuses()) else {
        return PromptValues::default();
    };
    let argument = (typing.name.as_str(), typing.typed.as_str());
    let asked = servers.values(&typing.server, &typing.prompt, argument, typing.before);
    let mut values = match tokio::time::timeout(VALUES_PATIENCE, asked).await {
        Ok(Ok(values)) => values,
        Ok(Err(error)) => {
            tracing::debug!(%error, "no values for a prompt");
            Vec::new()
        }
        Err(_) => Vec::new(),
    };
    // Only the last argument may have blanks.
    values.retain(|it| typing.is_last || !it.contains(char::is_whitespace));
    let end = draft.len() - typing.typed.len();
    PromptValues {
        before: draft.get(..end).unwrap_or_default().to_owned(),
        values,
        is_last: typing.is_last,
    }
}

/// The argument of a prompt that is being typed.
#[derive(Debug, PartialEq)]
struct Typing {
    server: String,
    prompt: String,
    /// The name of the argument, and the end of the draft that is its value.
    name: String,
    typed: String,
    /// The arguments before it.
    before: Map<String, Value>,
    is_last: bool,
}

impl Typing {
    fn of(draft: &str, statuses: &[Status]) -> Option<Self> {
        let (called, rest) = draft.strip_prefix('/')?.split_once(char::is_whitespace)?;
        let ready = statuses.iter().filter(|it| it.state == State::Ready);
        let mut prompts = ready.flat_map(|it| it.prompts.iter().map(move |prompt| (&it.definition.name, prompt)));
        let (server, prompt) = prompts.find(|(server, prompt)| model_name(server, &prompt.name) == called)?;
        let names: Vec<&str> = prompt.arguments.iter().map(|it| it.0.as_str()).collect();
        let (mut before, mut words) = (Map::new(), rest.trim_start());
        for (at, name) in names.iter().enumerate() {
            let is_last = at + 1 == names.len();
            let (word, after) = match words.split_once(char::is_whitespace).filter(|_| !is_last) {
                Some((word, after)) => (word, Some(after.trim_start())),
                None => (words, None),
            };
            let (name, value) = match word.split_once('=') {
                Some((named, value)) if names.contains(&named) => (named, value),
                _ => (*name, word),
            };
            match after {
                Some(after) => words = after,
                None => {
                    return Some(Self {
                        server: server.clone(),
                        prompt: prompt.name.clone(),
                        name: name.to_owned(),
                        typed: value.to_owned(),
                        before,
                        is_last,
                    });
                }
            }
            before.insert(name.to_owned(), value.into());
        }
        None
    }
}

/// The arguments of a prompt, as help shows them.
fn shown_arguments(prompt: &PromptInfo) -> String {
    let shown = prompt.arguments.iter().map(|(name, is_required)| {
        if *is_required {
            format!("<{name}>")
        } else {
            format!("[{name}]")
        }
    });
    shown.collect::<Vec<_>>().join(" ")
}

/// The tool that finds tools by words. Its description has a line for each server.
fn search_tool(servers: &Arc<Servers>, known: &[(ToolName, ToolInfo)]) -> Tool {
    let mut about =
        "Find tools of the MCP servers below by words of what they do; the answer has their arguments, for mcp_call."
            .to_owned();
    let mut names: Vec<&str> = known.iter().map(|it| it.0.server.as_str()).collect();
    names.dedup();
    let said = servers.instructions();
    for name in names {
        let count = known.iter().filter(|it| it.0.server == name).count();
        let line = said.iter().find(|it| it.0 == name).map(|it| it.1.as_str());
        let line = line.map_or_else(|| first_tools(name, known), first_words);
        about.push_str(&format!("\n- {name} ({count} tools): {}", guard(&line)));
    }
    let servers = Arc::clone(servers);
    Tool {
        about: about.into(),
        schema: schema(
            json!({
                "query": { "type": "string", "description": "Words, such as the name of a thing and what to do with it" },
                "server": { "type": "string", "description": "Only tools of this server" },
            }),
            &["query"],
        ),
        word: "find tools".into(),
        is_basic: true,
        ..Tool::new(
            SEARCH,
            Class::Reads,
            Work::call(
                |_, _| Ok(Vec::new()),
                move |input, _| {
                    let servers = Arc::clone(&servers);
                    async move { Ok(found(&servers, &input)) }
                },
            ),
        )
    }
}

fn first_words(text: &str) -> String {
    let words: Vec<&str> = text.split_whitespace().take(LINE_WORDS).collect();
    capped(&words.join(" "), 120)
}

fn first_tools(server: &str, known: &[(ToolName, ToolInfo)]) -> String {
    let names = known
        .iter()
        .filter(|it| it.0.server == server)
        .map(|it| it.0.tool.as_str());
    capped(&names.take(LINE_WORDS).collect::<Vec<_>>().join(", "), 120)
}

/// The tools that fit the words best, with their arguments.
fn found(servers: &Servers, input: &Input) -> Outcome {
    let (query, server) = (input.text("query").unwrap_or_default(), input.text("server"));
    let known = servers.tools();
    let ranked = rank(&known, query, server);
    let mut text = String::new();
    for (name, info) in ranked.iter().take(MOST_FOUND) {
        let entry = json!({
            "server": name.server,
            "tool": name.tool,
            "description": info.about,
            "arguments": reduced(&info.schema),
        });
        let entry = entry.to_string();
        if !text.is_empty() && text.len() + entry.len() > FOUND_BYTES {
            break;
        }
        text.push_str(&entry);
        text.push('\n');
    }
    let said = servers.instructions();
    let is_found = |it: &&(String, String)| ranked.iter().take(MOST_FOUND).any(|found| found.0.server == it.0);
    for (server, said) in said.iter().filter(is_found) {
        let entry = json!({ "server": server, "instructions": capped(said, SAID_BYTES) }).to_string();
        if text.len() + entry.len() > FOUND_BYTES {
            break;
        }
        text.push_str(&entry);
        text.push('\n');
    }
    let names: Vec<String> = ranked
        .iter()
        .take(MOST_FOUND)
        .map(|it| shown_name(&it.0.server, &it.0.tool))
        .collect();
    if text.is_empty() {
        "no tool fits; try other words".clone_into(&mut text);
    }
    Outcome {
        text: wrap_with("mcp_tools", &[], &text),
        data: names.join("\n").into(),
        ..Outcome::default()
    }
}

/// The tools that have words of the query, the best first. A word in a name counts most.
fn rank<'a>(known: &'a [(ToolName, ToolInfo)], query: &str, server: Option<&str>) -> Vec<&'a (ToolName, ToolInfo)> {
    let query = query.to_lowercase();
    let words: Vec<&str> = query
        .split(|it: char| !it.is_alphanumeric())
        .filter(|it| it.len() > 1)
        .collect();
    let score = |(name, info): &(ToolName, ToolInfo)| {
        let (tool, server) = (name.tool.to_lowercase(), name.server.to_lowercase());
        let about = format!("{} {}", info.title, info.about).to_lowercase();
        let points = |word: &&str| {
            let stem = word.strip_suffix('s').filter(|it| it.len() > 2).unwrap_or(word);
            4 * u32::from(tool.contains(stem)) + 2 * u32::from(server.contains(stem)) + u32::from(about.contains(stem))
        };
        words.iter().map(points).sum::<u32>() + 100 * u32::from(tool == query.trim())
    };
    let wanted = known
        .iter()
        .filter(|it| server.is_none_or(|server| it.0.server == server));
    let mut ranked: Vec<_> = wanted
        .map(|it| (score(it), it))
        .filter(|it| it.0 > 0 || words.is_empty())
        .collect();
    ranked.sort_by_key(|it| std::cmp::Reverse(it.0));
    ranked.into_iter().map(|it| it.1).collect()
}

/// The tool that calls a tool that was found.
fn call_tool(servers: &Arc<Servers>) -> Tool {
    let servers = Arc::clone(servers);
    Tool {
        about: "Call a tool of an MCP server that mcp_search has found, with the arguments that it described.".into(),
        schema: schema(
            json!({
                "server": { "type": "string" },
                "tool": { "type": "string" },
                "arguments": { "type": "object", "description": "As mcp_search described them" },
            }),
            &["server", "tool"],
        ),
        word: "call".into(),
        takes_any: true,
        is_basic: true,
        ..Tool::new(
            CALL,
            Class::Runs,
            Work::call(
                |input, _| Ok(vec![access(&named(input)?)]),
                move |input, context| {
                    let servers = Arc::clone(&servers);
                    async move {
                        let name = named(&input)?;
                        if !servers.is_offered(&name) {
                            let shown = shown_name(&name.server, &name.tool);
                            return Err(Fault::arguments(format!("there is no tool `{shown}`"))
                                .hint("mcp_search finds those that there are."));
                        }
                        let arguments = match input.0.get("arguments") {
                            Some(Value::Object(arguments)) => arguments.clone(),
                            Some(Value::String(text)) => serde_json::from_str(text)
                                .map_err(|_| Fault::arguments("the argument `arguments` must be an object"))?,
                            Some(Value::Null) | None => Map::new(),
                            Some(Value::Bool(_) | Value::Number(_) | Value::Array(_)) => {
                                return Err(Fault::arguments("the argument `arguments` must be an object"));
                            }
                        };
                        call(&servers, &name, arguments, &context).await
                    }
                },
            ),
        )
    }
    .in_all_modes()
}

fn named(input: &Input) -> Result<ToolName, Fault> {
    let text = |name: &str| {
        let text = input.text(name).filter(|it| !it.is_empty());
        text.ok_or_else(|| Fault::arguments(format!("the argument `{name}` is missing")))
    };
    Ok(ToolName {
        server: text("server")?.to_owned(),
        tool: text("tool")?.to_owned(),
    })
}

/// Opens an address in the user's browser. Nobody waits for it. Must be called in a runtime.
pub fn browse(url: &str) {
    let program = if cfg!(target_os = "macos") { "open" } else { "xdg-open" };
    let command = process::Command::new(program)
        .arg(url)
        .without_output()
        .without_terminal();
    tokio::spawn(async move {
        if let Err(error) = command.run().await {
            tracing::warn!(%error, "the browser could not be started");
        }
    });
}

/// All servers, for the screen.
pub fn report(servers: &Servers) -> ServersReport {
    let layers = sandbox::layers();
    let gaps = match layers.tier {
        Tier::Full => String::new(),
        Tier::Partial => format!("partial, without: {}", layers.but(false)),
        Tier::None => format!("none: {}", layers.but(false)),
    };
    let server = |it: Status| {
        let is_program = matches!(it.definition.endpoint, Endpoint::Program { .. });
        let name = it.definition.name.clone();
        let tool = |it: &ToolStatus| ServerTool {
            name: it.info.name.clone(),
            about: it.info.about.clone(),
            tokens: cost(&name, &it.info),
            is_on: it.is_on,
            change: it.change.as_ref().map(|it| (it.was.clone(), it.now.clone())),
        };
        let prompt = |it: &PromptInfo| ServerPrompt {
            command: model_name(&name, &it.name),
            about: it.about.clone(),
            arguments: shown_arguments(it),
        };
        let resource = |it: &ResourceInfo| ServerResource {
            mention: format!("{name}:{}", it.uri),
            name: it.name.clone(),
            about: it.about.clone(),
        };
        ServerReport {
            file: it.definition.origin.shown().to_owned(),
            line: it.definition.line(),
            given: it.definition.given(),
            reach: it.definition.reach(),
            gaps: if is_program { gaps.clone() } else { String::new() },
            state: match it.state {
                State::Off => ServerState::Off,
                State::Unapproved(Standing::Changed { was }) => ServerState::Unapproved { was: Some(was) },
                State::Unapproved(Standing::New | Standing::Approved) => ServerState::Unapproved { was: None },
                State::Untrusted => ServerState::Untrusted,
                State::Unusable(why) => ServerState::Unusable(why),
                State::Starting => ServerState::Starting,
                State::Ready => ServerState::Ready,
                State::SignIn => ServerState::SignIn,
                State::Failed(why) => ServerState::Failed(why),
            },
            title: it.title,
            version: it.version,
            tools: it.tools.iter().map(tool).collect(),
            prompts: it.prompts.iter().map(prompt).collect(),
            resources: it.resources.iter().map(resource).collect(),
            log: it.log,
            print: it.print.to_string(),
            name: it.definition.name,
        }
    };
    ServersReport {
        servers: servers.statuses().into_iter().map(server).collect(),
        problems: servers.problems(),
    }
}

/// Does what the user wants with a server. Error: why it was not done.
pub fn change(servers: &Servers, server: &str, change: ServerChange) -> Result<(), String> {
    match change {
        ServerChange::Approve { tool, shown } => servers.approve(server, tool.as_deref(), &shown)?,
        ServerChange::Restart => servers.restart(server),
        ServerChange::Switch(is_on) => servers.switch(server, is_on),
        ServerChange::SwitchTool(tool, is_on) => servers.switch_tool(server, &tool, is_on),
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Fingerprint;

    fn known(server: &str, tool: &str, about: &str) -> (ToolName, ToolInfo) {
        let name = ToolName {
            server: server.to_owned(),
            tool: tool.to_owned(),
        };
        let info = ToolInfo {
            name: tool.to_owned(),
            title: String::new(),
            about: about.to_owned(),
            schema: json!({}),
            print: Fingerprint::of(&[]),
        };
        (name, info)
    }

    fn status(prompt: &str, arguments: &[(&str, bool)]) -> Status {
        let entry = crate::config::McpServer {
            command: Some("x".to_owned()),
            ..crate::config::McpServer::default()
        };
        Status {
            definition: crate::mcp::Definition::of_settings("docs", &entry).expect("it has a command"),
            state: State::Ready,
            version: String::new(),
            title: String::new(),
            tools: Vec::new(),
            prompts: vec![PromptInfo {
                name: prompt.to_owned(),
                about: String::new(),
                arguments: arguments
                    .iter()
                    .map(|(name, is_required)| ((*name).to_owned(), *is_required))
                    .collect(),
            }],
            resources: Vec::new(),
            log: Vec::new(),
            print: Fingerprint::of(&[]),
        }
    }

    #[test]
    fn a_message_names_resources_and_a_prompt() {
        let all = [status("review", &[("file", true), ("how", false)])];
        assert_eq!(
            resources_in(
                "see @docs:file:///a.md, and @docs:x://b @docs:x://b @other:x://c @src/main.rs me@docs:y",
                &all
            ),
            [("docs", "file:///a.md"), ("docs", "x://b")].map(|(a, b)| (a.to_owned(), b.to_owned()))
        );
        let usage = "/mcp__docs__review needs file: /mcp__docs__review <file> [how]";
        for (text, expected) in [
            ("/mcp__docs__review a.rs", Ok(r#"{"file":"a.rs"}"#)),
            (
                "/mcp__docs__review a.rs very well",
                Ok(r#"{"file":"a.rs","how":"very well"}"#),
            ),
            (
                "/mcp__docs__review file=a.rs how=x y",
                Ok(r#"{"file":"a.rs","how":"x y"}"#),
            ),
            ("/mcp__docs__review how=x a.rs", Err(usage)),
            ("/mcp__docs__review", Err(usage)),
            (
                "/mcp__docs__other",
                Err("no MCP server that is ready has a prompt /mcp__docs__other; see /mcp"),
            ),
        ] {
            let found = prompt_in(text, &all).map(|it| Value::from(it.2).to_string());
            let found = found.as_deref().map_err(String::as_str);
            assert_eq!(found, expected, "{text}");
        }
        let typing = |draft: &str| {
            let it = Typing::of(draft, &all)?;
            Some((it.name, it.typed, Value::from(it.before).to_string(), it.is_last))
        };
        let expected = |name: &str, typed: &str, before: &str, is_last| {
            Some((name.to_owned(), typed.to_owned(), before.to_owned(), is_last))
        };
        assert_eq!(typing("/mcp__docs__review"), None);
        assert_eq!(typing("/mcp__docs__other a"), None);
        assert_eq!(typing("/mcp__docs__review "), expected("file", "", "{}", false));
        assert_eq!(typing("/mcp__docs__review a.r"), expected("file", "a.r", "{}", false));
        let before = r#"{"file":"a.rs"}"#;
        assert_eq!(typing("/mcp__docs__review a.rs "), expected("how", "", before, true));
        assert_eq!(
            typing("/mcp__docs__review a.rs very w"),
            expected("how", "very w", before, true)
        );
        assert_eq!(typing("/mcp__docs__review how=x"), expected("how", "x", "{}", false));
    }

    #[test]
    fn words_find_the_tool_that_is_meant() {
        let all = [
            known("git", "git_log", "Shows the commits of a repository"),
            known("git", "git_status", "Shows the working tree"),
            known("tickets", "create_issue", "Creates an issue in a project"),
            known("tickets", "list_issues", "Lists issues"),
            known("time", "get_current_time", "The time in a time zone"),
        ];
        for (query, server, expected) in [
            ("create issue", None, Some("create_issue")),
            ("list the issues of a project", None, Some("list_issues")),
            ("git_status", None, Some("git_status")),
            ("commits", None, Some("git_log")),
            ("what time is it in Berlin", None, Some("get_current_time")),
            ("time", Some("git"), None),
            ("weather", None, None),
        ] {
            let found = rank(&all, query, server);
            assert_eq!(found.first().map(|it| it.0.tool.as_str()), expected, "{query}");
        }
        assert_eq!(rank(&all, "", Some("git")).len(), 2, "no words: all of a server");
    }
}
