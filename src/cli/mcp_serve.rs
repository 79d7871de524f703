//! `sheaf mcp serve`: sheaf's own tools as an MCP server on standard input and output, in either era of the protocol.
//!
//! Tools that read are judged as in a conversation that nobody watches. A change of files is shown to the client's user as a question with
//! its diff (elicitation) and made only after a yes; a client that cannot ask has no tools that change files. No command is ever run.

use std::{
    collections::HashMap,
    io,
    path::PathBuf,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
};

use anyhow::{Context as _, Result};
use serde_json::{Map, Value, json};
use tokio::{
    io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader, Stdout},
    sync::{mpsc, oneshot},
};

use super::{
    CliContext,
    arguments::{CommonArguments, TargetArguments},
    code, has_unreadable_rules, printing_store, runtime, sessions, why,
};
use crate::{
    agent::approval::{Facts, Rules, RunMode, Tier, Verdict, judge},
    config::{Fingerprint, Settings},
    embedding::EmbeddingService,
    index::Index,
    mcp::{LEGACY_VERSIONS, MODERN},
    print::json,
    protocol::{Mode, Operation},
    sandbox::{Fence, Seen, Workspace},
    text::{Sanitized, diff},
    tools::{self, Access, Class, Context, Fault, Hunk, Input, Outcome, Proposal, Tool, Work, arguments},
};

/// Bytes of one message.
const LINE_BYTES: u64 = 16 << 20;
/// Bytes of a diff in a question.
const DIFF_BYTES: usize = 8 << 10;

/// What every request is answered with.
struct Server {
    base: CliContext,
    workspace: Arc<Workspace>,
    seen: Arc<Seen>,
    /// The index of the code; one for all calls.
    index: Arc<Index>,
    embeddings: Arc<EmbeddingService>,
    settings: Arc<Settings>,
    rules: Rules,
    out: mpsc::UnboundedSender<Sanitized>,
    /// The client of the handshake era can ask its user.
    can_ask: AtomicBool,
    next: AtomicU64,
    /// Questions to the client that wait for an answer.
    asked: Mutex<HashMap<u64, (Value, oneshot::Sender<Value>)>>,
    /// The client has gone.
    is_over: AtomicBool,
}

/// Serves until the input ends.
pub fn run(common: &CommonArguments) -> Result<u8> {
    let base = CliContext::of(common, &TargetArguments::default())?;
    if has_unreadable_rules(&base) {
        return Ok(code::USAGE);
    }
    let fence = Fence::configured(&base.settings, Some(&base.paths), Vec::new());
    let workspace = Workspace::fenced(&base.workspace, fence)
        .with_context(|| format!("{} cannot be opened", base.workspace.display()))?;
    let index = Index::stored(&base.paths.cache, workspace.root());
    let (rules, _) = Rules::read(&base.settings, std::env::home_dir().as_deref());
    let (out, mut lines) = mpsc::unbounded_channel::<Sanitized>();
    let server = Arc::new(Server {
        workspace: Arc::new(workspace),
        seen: Arc::default(),
        index: Arc::new(index),
        embeddings: Arc::new(super::open::embeddings(&base)),
        settings: Arc::new(base.settings.clone()),
        rules,
        out,
        can_ask: AtomicBool::new(false),
        next: AtomicU64::new(1),
        asked: Mutex::default(),
        is_over: AtomicBool::new(false),
        base,
    });
    runtime(false)?.block_on(async move {
        let writer = tokio::spawn(async move {
            let mut stdout = tokio::io::stdout();
            while let Some(line) = lines.recv().await {
                if write(&mut stdout, &line).await.is_err() {
                    return;
                }
            }
        });
        let mut input = BufReader::new(tokio::io::stdin());
        let mut running = tokio::task::JoinSet::new();
        loop {
            let mut line = Vec::new();
            let read = (&mut input).take(LINE_BYTES).read_until(b'\n', &mut line).await?;
            if read == 0 {
                break;
            }
            let Ok(Value::Object(message)) = serde_json::from_slice(&line) else {
                server.send(&failure(&Value::Null, -32700, "this is no JSON object"));
                continue;
            };
            let server = Arc::clone(&server);
            running.spawn(async move { server.take(message).await });
            while running.try_join_next().is_some() {}
        }
        {
            // Nobody is there any more to answer.
            let mut asked = server.asked();
            server.is_over.store(true, Ordering::Release);
            asked.clear();
        }
        while running.join_next().await.is_some() {}
        drop(server);
        writer.await.ok();
        anyhow::Ok(())
    })?;
    Ok(code::OK)
}

async fn write(stdout: &mut Stdout, line: &Sanitized) -> io::Result<()> {
    stdout.write_all(line.as_bytes()).await?;
    stdout.flush().await
}

fn failure(id: &Value, code: i64, message: &str) -> Value {
    json!({ "jsonrpc": "2.0", "id": id, "error": { "code": code, "message": message } })
}

/// A request for a tool.
struct Caller {
    id: Value,
    params: Value,
    is_modern: bool,
}

impl Server {
    fn asked(&self) -> MutexGuard<'_, HashMap<u64, (Value, oneshot::Sender<Value>)>> {
        self.asked.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn send(&self, message: &Value) {
        // The writer goes with the client.
        let _ = self.out.send(json::line(message));
    }

    async fn take(self: Arc<Self>, mut message: Map<String, Value>) {
        let id = message.remove("id").unwrap_or_default();
        let Some(method) = message.get("method").and_then(Value::as_str).map(str::to_owned) else {
            // The answer to a question of ours.
            let to = id.as_u64().and_then(|it| self.asked().remove(&it));
            if let Some((_, to)) = to {
                let _ = to.send(message.remove("result").unwrap_or_default());
            }
            return;
        };
        let params = message.remove("params").unwrap_or_default();
        if id.is_null() {
            if method == "notifications/cancelled" {
                // Its question is not answered any more.
                let of = params.get("requestId").cloned().unwrap_or_default();
                self.asked().retain(|_, it| it.0 != of);
            }
            return;
        }
        let version = params
            .pointer("/_meta/io.modelcontextprotocol~1protocolVersion")
            .and_then(Value::as_str);
        if let Some(version) = version.filter(|it| *it != MODERN) {
            let error = json!({ "code": -32022, "message": "this version is not spoken", "data": { "supported": [MODERN], "requested": version } });
            return self.send(&json!({ "jsonrpc": "2.0", "id": id, "error": error }));
        }
        let is_modern = version.is_some();
        let result = match method.as_str() {
            "initialize" => Ok(self.initialize(&params)),
            "server/discover" if is_modern => {
                Ok(json!({ "supportedVersions": [MODERN], "capabilities": { "tools": {} } }))
            }
            "ping" => Ok(json!({})),
            "tools/list" => {
                let tools: Vec<Value> = self
                    .tools(&params)
                    .iter()
                    .map(|it| described(it))
                    .chain(own_tools())
                    .collect();
                Ok(json!({ "tools": tools }))
            }
            "tools/call" => Arc::clone(&self).call(&id, params, is_modern).await,
            _ => Err((-32601, "method not found".to_owned())),
        };
        match result {
            Ok(Value::Object(mut result)) => {
                if is_modern {
                    result.entry("resultType").or_insert_with(|| "complete".into());
                    if method != "tools/call" {
                        result.insert("ttlMs".to_owned(), 0.into());
                        result.insert("cacheScope".to_owned(), "private".into());
                    }
                    result.insert(
                        "_meta".to_owned(),
                        json!({ "io.modelcontextprotocol/serverInfo": info() }),
                    );
                }
                self.send(&json!({ "jsonrpc": "2.0", "id": id, "result": result }));
            }
            Ok(_) => {}
            Err((code, message)) => self.send(&failure(&id, code, &message)),
        }
    }

    fn initialize(&self, params: &Value) -> Value {
        let asks = params
            .pointer("/capabilities/elicitation")
            .is_some_and(|it| !it.is_null());
        self.can_ask.store(asks, Ordering::Release);
        let wanted = params
            .get("protocolVersion")
            .and_then(Value::as_str)
            .unwrap_or_default();
        let version = LEGACY_VERSIONS
            .into_iter()
            .find(|it| *it == wanted)
            .unwrap_or(LEGACY_VERSIONS[0]);
        json!({ "protocolVersion": version, "capabilities": { "tools": {} }, "serverInfo": info() })
    }

    /// The tools for this client: those that read, and those that change files if it can ask its user.
    fn tools(&self, params: &Value) -> Vec<Arc<Tool>> {
        let can_ask = self.can_ask(params);
        let is_offered = |it: &&Arc<Tool>| match (&it.work, it.class) {
            (Work::Call { .. }, Class::Reads) => it.only_looks(),
            (Work::Change(_), _) => can_ask,
            _ => false,
        };
        tools::built_in().iter().filter(is_offered).cloned().collect()
    }

    fn can_ask(&self, params: &Value) -> bool {
        let modern = params.pointer("/_meta/io.modelcontextprotocol~1clientCapabilities/elicitation");
        self.can_ask.load(Ordering::Acquire) || modern.is_some_and(|it| !it.is_null())
    }

    async fn call(self: Arc<Self>, id: &Value, params: Value, is_modern: bool) -> Result<Value, (i64, String)> {
        let name = params.get("name").and_then(Value::as_str).unwrap_or_default();
        let given = params
            .get("arguments")
            .and_then(Value::as_object)
            .cloned()
            .unwrap_or_default();
        if let Some(text) = self.own(name, &given).await {
            return Ok(result(text));
        }
        let tools = self.tools(&params);
        let Some(tool) = tools.iter().find(|it| it.name == name).cloned() else {
            return Err((-32602, "there is no such tool".to_owned()));
        };
        let input = match arguments::read(&tool, Ok(&given)) {
            Ok(input) => input,
            Err(fault) => return Ok(result(Err(fault.text()))),
        };
        let server = Arc::clone(&self);
        let from = Caller {
            id: id.clone(),
            params,
            is_modern,
        };
        let handle = tokio::runtime::Handle::current();
        let worked = tokio::task::spawn_blocking(move || handle.block_on(server.work(&tool, input, &from)));
        match worked.await {
            Ok(result) => Ok(result),
            Err(error) => Err((-32603, format!("the tool broke down: {error}"))),
        }
    }

    /// Does what a tool is asked to, as far as it is allowed.
    async fn work(&self, tool: &Tool, input: Input, from: &Caller) -> Value {
        Arc::clone(&self.workspace).look_once().await;
        let (settings, index) = (Arc::clone(&self.settings), Arc::clone(&self.index));
        let context = Context {
            seen: Arc::clone(&self.seen),
            embeddings: Arc::clone(&self.embeddings),
            ..Context::apart(Arc::clone(&self.workspace), settings, index)
        };
        let done = match &tool.work {
            Work::Call { touches, run } => match touches(&input, &context) {
                Ok(accesses) => match judge(&accesses, tool.class, &self.facts(false)) {
                    Verdict::Allow => run(input, context).await,
                    Verdict::Deny(why) => Err(Fault::new("TOOL_REJECTED", why)),
                    Verdict::Ask(question) => Err(Fault::new("TOOL_REJECTED", question.why)),
                },
                Err(fault) => Err(fault),
            },
            Work::Change(propose) => match propose(input, context.clone()).await {
                Ok(proposal) => return self.change(tool, proposal, &context, from).await,
                Err(fault) => Err(fault),
            },
            Work::Command { .. } | Work::Turn(_) => Err(Fault::new("TOOL_FAILED", "this is not offered here")),
        };
        result(done.map(|it: Outcome| it.text).map_err(|it| it.text()))
    }

    fn facts(&self, is_attended: bool) -> Facts<'_> {
        Facts {
            mode: Mode::Agent,
            run: RunMode::List,
            tier: Tier::None,
            gaps: "",
            rules: &self.rules,
            is_attended,
            is_halted: false,
            limit_reached: None,
            is_new_repository: false,
            is_sandbox_off: false,
            remotes: &[],
        }
    }

    /// Shows a change to the client's user, and makes it after a yes.
    async fn change(&self, tool: &Tool, proposal: Proposal, context: &Context, from: &Caller) -> Value {
        let Caller { id, params, is_modern } = from;
        if let Verdict::Deny(why) = judge(&proposal.accesses(), tool.class, &self.facts(true)) {
            return result(Err(Fault::new("TOOL_REJECTED", why).text()));
        }
        let shown = shown(&proposal);
        if shown.len() > DIFF_BYTES {
            let why = "the change is too long to be shown to the user: make it in several calls";
            return result(Err(Fault::new("TOOL_REJECTED", why).text()));
        }
        // A yes is to exactly this change.
        let state = Fingerprint::of(&[format!("{:?}", proposal.changes).as_bytes()]).to_string();
        let question =
            json!({ "mode": "form", "message": shown, "requestedSchema": { "type": "object", "properties": {} } });
        let answer = if *is_modern {
            let is_same = params.get("requestState").and_then(Value::as_str) == Some(&state);
            match params.pointer("/inputResponses/approve").filter(|_| is_same) {
                Some(answer) => answer.clone(),
                None => {
                    return json!({
                        "resultType": "input_required",
                        "requestState": state,
                        "inputRequests": { "approve": { "method": "elicitation/create", "params": question } },
                    });
                }
            }
        } else {
            let number = self.next.fetch_add(1, Ordering::Relaxed);
            let (to, answer) = oneshot::channel();
            {
                let mut asked = self.asked();
                // One that is asked after the end would wait for ever.
                if !self.is_over.load(Ordering::Acquire) {
                    asked.insert(number, (id.clone(), to));
                }
            }
            self.send(&json!({ "jsonrpc": "2.0", "id": number, "method": "elicitation/create", "params": question }));
            answer.await.unwrap_or_default()
        };
        if answer.get("action").and_then(Value::as_str) != Some("accept") {
            return result(Err(Fault::new("TOOL_REJECTED", "the user rejected this").text()));
        }
        let made = self.workspace.commit_for(&self.seen, &context.call, &proposal.changes);
        result(made.map(|()| proposal.text).map_err(|it| Fault::from(it).text()))
    }

    /// A file that may be read without a question. Error: why not.
    fn readable(&self, written: &str) -> Result<PathBuf, String> {
        let located = self.workspace.locate(written).map_err(|it| it.to_string())?;
        let path = located.path.clone();
        match judge(&[Access::Read(located)], Class::Reads, &self.facts(false)) {
            Verdict::Allow => Ok(path),
            Verdict::Deny(why) => Err(why),
            Verdict::Ask(question) => Err(question.why),
        }
    }

    /// The tools that are none of the agent's. `None`: another tool is meant.
    async fn own(&self, name: &str, given: &Map<String, Value>) -> Option<Result<String, String>> {
        let text = |name: &str| given.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
        let base = self.base.clone();
        let work: Box<dyn FnOnce() -> Result<String> + Send> = match name {
            "why" => {
                let place = text("place");
                let file = place.rsplit_once(':').map_or(place.as_str(), |it| it.0);
                let located = match self.readable(file) {
                    Ok(located) => located,
                    Err(why) => return Some(Err(why)),
                };
                let line = place.rsplit_once(':').map_or("", |it| it.1);
                let path = format!("{}:{line}", located.display());
                Box::new(move || why::told(&base, &path))
            }
            "sessions" => {
                let words = text("query").to_lowercase();
                Box::new(move || sessions::rows(&base, &printing_store(&base), &words))
            }
            _ => return None,
        };
        let done = tokio::task::spawn_blocking(work).await;
        let done = done
            .map_err(|it| it.to_string())
            .and_then(|it| it.map_err(|it| it.to_string()));
        Some(done)
    }
}

fn info() -> Value {
    json!({ "name": "sheaf", "version": env!("CARGO_PKG_VERSION") })
}

fn described(tool: &Tool) -> Value {
    json!({
        "name": tool.name,
        "description": tool.about,
        "inputSchema": tool.schema,
        "annotations": { "readOnlyHint": tool.only_looks(), "openWorldHint": false },
    })
}

/// Tools that only make sense outside of a conversation.
fn own_tools() -> [Value; 2] {
    let tool = |name: &str, about: &str, properties: Value, required: &[&str]| {
        json!({
            "name": name,
            "description": about,
            "inputSchema": tools::schema(properties, required),
            "annotations": { "readOnlyHint": true, "openWorldHint": false },
        })
    };
    [
        tool(
            "why",
            "Tells which saved conversation of sheaf, message and model wrote a line of a file.",
            json!({ "place": { "type": "string", "description": "file:line, from the root of the workspace" } }),
            &["place"],
        ),
        tool(
            "sessions",
            "Lists the saved conversations of sheaf in this workspace, the newest first.",
            json!({ "query": { "type": "string", "description": "Words of the title" } }),
            &[],
        ),
    ]
}

fn result(done: Result<String, String>) -> Value {
    let is_error = done.is_err();
    let text = done.unwrap_or_else(|it| it);
    json!({ "content": [{ "type": "text", "text": text }], "isError": is_error })
}

/// A change as a question: the files and the diff.
fn shown(proposal: &Proposal) -> String {
    let mut text = String::from("sheaf wants to change files:");
    for change in &proposal.changes {
        let hunk = |it: &Hunk| {
            let line = usize::try_from(it.start).unwrap_or(1);
            let path = change.file.shown.as_str();
            let (old, new) = match change.operation {
                Operation::Create => (None, Some(path)),
                Operation::Delete => (Some(path), None),
                _ => (Some(path), Some(path)),
            };
            diff::diff(&it.old, &it.new, line, line, 3).patch(old, new)
        };
        let patch: String = change.hunks.iter().map(hunk).collect();
        text.push_str(&format!(
            "\n{} {}\n{patch}",
            change.operation.as_str(),
            change.file.shown
        ));
    }
    // What the file gets is what is shown, also where it cannot be seen.
    crate::text::visible(&text).into_string()
}
