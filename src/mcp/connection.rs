//! A server that is spoken to, in either era of the protocol.
//!
//! The newest revision is stateless: every request carries the version and our abilities, and a question to the user is an
//! answer that asks to be sent again. All earlier ones begin with a handshake, and the server sends requests of its own. Which
//! one a server speaks is found out by asking; whatever it answers that is no [`Era::Modern`] counts as the handshake era.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use serde_json::{Map, Value, json};
use tokio::{
    sync::{mpsc, oneshot},
    time::Instant,
};

use super::{
    content::capped,
    host::{Host, Progress},
    http::Http,
    info::{Era, Error, LEGACY, LEGACY_VERSIONS, MODERN, PromptInfo, ResourceInfo, ToolInfo},
    message::{self, RpcError},
    stdio::Stdio,
};
use crate::{config::Fingerprint, text::Sanitized};

/// Time that a server has to answer the question for its era.
const PROBE: Duration = Duration::from_secs(3);
/// Time that it has for the handshake, and for a list. Some download themselves first.
const START: Duration = Duration::from_mins(1);
/// Time without an answer or progress after which a call is given up.
const IDLE: Duration = Duration::from_mins(1);
/// Time after which a call is given up whatever it reports.
const WALL: Duration = Duration::from_mins(10);
/// Pages of a list that are fetched.
const MOST_PAGES: usize = 100;
/// Entries of a list that are kept.
const MOST_ENTRIES: usize = 1000;
/// Lists and objects inside each other in a schema; a tool with more is left out.
const SCHEMA_DEPTH: usize = 100;
/// Bytes of an entry; a longer one is left out.
const ENTRY_BYTES: usize = 256 << 10;
/// Bytes of a list; a longer one is an error.
const LIST_BYTES: usize = 8 << 20;
/// Values of an argument that are offered.
const MOST_VALUES: usize = 100;
/// A longer value is not offered.
const MOST_VALUE_BYTES: usize = 200;
/// Rounds of questions that one call may ask.
const MOST_ROUNDS: usize = 10;
/// Bytes of a description that are kept.
const ABOUT_BYTES: usize = 2 << 10;
/// Bytes of a server's instructions that are kept.
const INSTRUCTION_BYTES: usize = 16 << 10;

/// The way to a server.
pub enum Transport {
    Stdio(Stdio),
    Http(Box<Http>),
}

/// Times that a call may take.
#[derive(Clone, Copy, Debug)]
pub struct Patience {
    pub idle: Duration,
    pub wall: Duration,
}

impl Patience {
    /// As the configuration of a server says, which progress does not extend; else as usual.
    pub fn of(timeout: Option<Duration>) -> Self {
        timeout.map_or(Self { idle: IDLE, wall: WALL }, |it| Self { idle: it, wall: it })
    }
}

/// A server that answers.
pub struct Connection {
    transport: Transport,
    host: Arc<Host>,
    era: Era,
    next: AtomicU64,
    /// Its abilities: the members of `capabilities`.
    abilities: Value,
    /// Its name and version, for people.
    pub title: String,
    /// Its own description of its tools.
    pub instructions: String,
}

impl Connection {
    /// Finds out what the server speaks, and opens it. `known`: the era that it was found to speak before.
    pub async fn open(transport: Transport, host: Arc<Host>, known: Option<&Era>) -> Result<Self, Error> {
        let mut connection = Self {
            transport,
            host,
            era: Era::Modern,
            next: AtomicU64::new(1),
            abilities: Value::Null,
            title: String::new(),
            instructions: String::new(),
        };
        let is_legacy = matches!(known, Some(Era::Legacy(_)));
        if !is_legacy && connection.discover().await? {
            return Ok(connection);
        }
        connection.shake_hands().await?;
        Ok(connection)
    }

    /// Asks the question of the stateless era. Returns false if the server does not speak it; an error if it can be asked
    /// nothing else either.
    async fn discover(&mut self) -> Result<bool, Error> {
        let asked = self.exchange("server/discover", Map::new(), None);
        let Ok(found) = tokio::time::timeout(PROBE, asked).await else {
            return Ok(false);
        };
        let versions = match &found {
            Ok(result) => result.get("supportedVersions"),
            Err(Error::Rpc(error)) if error.code == RpcError::VERSION => error.data.get("supported"),
            Err(error @ (Error::Gone(_) | Error::SignIn { .. })) => return Err(error.clone()),
            Err(_) => None,
        };
        let is_modern = versions
            .and_then(Value::as_array)
            .is_some_and(|it| it.iter().any(|it| it == MODERN));
        if let (true, Ok(result)) = (is_modern, &found) {
            self.introduce(result, result.pointer("/_meta/io.modelcontextprotocol~1serverInfo"));
        }
        Ok(is_modern)
    }

    async fn shake_hands(&mut self) -> Result<(), Error> {
        self.era = Era::Legacy(LEGACY.to_owned());
        let params = object(json!({
            "protocolVersion": LEGACY,
            "capabilities": self.our_abilities(),
            "clientInfo": client_info(),
        }));
        let asked = self.exchange("initialize", params, None);
        let result = tokio::time::timeout(START, asked).await;
        let result = result.unwrap_or(Err(Error::Timeout(START)))?;
        let version = result
            .get("protocolVersion")
            .and_then(Value::as_str)
            .unwrap_or_default();
        if !LEGACY_VERSIONS.contains(&version) {
            let version = Sanitized::line(version.get(..40).unwrap_or(version)).into_string();
            return Err(Error::Version(if version.is_empty() {
                "it names none".to_owned()
            } else {
                version
            }));
        }
        self.era = Era::Legacy(version.to_owned());
        if let Transport::Http(http) = &mut self.transport {
            http.set_version(version);
        }
        self.introduce(&result, result.get("serverInfo"));
        let told = self.notify("notifications/initialized", Map::new());
        tokio::time::timeout(START, told)
            .await
            .unwrap_or(Err(Error::Timeout(START)))
    }

    fn introduce(&mut self, result: &Value, info: Option<&Value>) {
        let text = |name: &str| {
            info.and_then(|it| it.get(name))
                .and_then(Value::as_str)
                .unwrap_or_default()
        };
        let title = format!("{} {}", text("name"), text("version"));
        self.title = capped(Sanitized::line(title.trim()).as_str(), 100);
        self.abilities = result.get("capabilities").cloned().unwrap_or_default();
        let said = result.get("instructions").and_then(Value::as_str).unwrap_or_default();
        self.instructions = capped(Sanitized::new(said).as_str(), INSTRUCTION_BYTES);
    }

    /// The era that it speaks.
    pub fn era(&self) -> &Era {
        &self.era
    }

    /// Waits until it has ended; for ever where nothing can end.
    pub async fn over(&self) -> String {
        match &self.transport {
            Transport::Stdio(it) => {
                let mut over = it.over();
                let why = over.wait_for(Option::is_some).await.ok();
                why.and_then(|it| it.clone())
                    .unwrap_or_else(|| "it has ended".to_owned())
            }
            Transport::Http(_) => std::future::pending().await,
        }
    }

    /// Ends the connection: whoever waits for an answer hears so, and the server's input is closed.
    pub fn hang_up(&self) {
        if let Transport::Stdio(it) = &self.transport {
            it.hang_up();
        }
    }

    /// Ends what the server keeps for us.
    pub async fn close(&self) {
        if let Transport::Http(http) = &self.transport {
            http.close().await;
        }
    }

    /// Returns true if the server says that it has `what`: tools, prompts, resources.
    pub fn has(&self, what: &str) -> bool {
        self.abilities.get(what).is_some_and(|it| !it.is_null())
    }

    /// All tools, in the server's order, and why others are left out: their names or schemas cannot be used.
    pub async fn tools(&self) -> Result<(Vec<ToolInfo>, Vec<String>), Error> {
        let (mut tools, mut left_out): (Vec<ToolInfo>, _) = (Vec::new(), Vec::new());
        for entry in self.list("tools/list", "tools").await? {
            match tool(&entry) {
                Ok(tool) if tools.iter().any(|it| it.name == tool.name) => {
                    left_out.push(format!("a second tool `{}`", tool.name));
                }
                Ok(tool) => tools.push(tool),
                Err(why) => left_out.push(format!("a tool: {why}")),
            }
        }
        for why in &left_out {
            self.host.log(&format!("left out: {why}"));
        }
        if let Transport::Http(http) = &self.transport {
            http.note_headers(&tools);
        }
        Ok((tools, left_out))
    }

    /// All prompts.
    pub async fn prompts(&self) -> Result<Vec<PromptInfo>, Error> {
        if !self.has("prompts") {
            return Ok(Vec::new());
        }
        let entries = self.list("prompts/list", "prompts").await?;
        let prompt = |it: &Value| {
            let name = name_of(it)?;
            let arguments = it.get("arguments").and_then(Value::as_array);
            let arguments = arguments.into_iter().flatten().take(32).filter_map(|it| {
                let is_required = it.get("required").and_then(Value::as_bool).unwrap_or_default();
                Some((name_of(it)?, is_required))
            });
            Some(PromptInfo {
                name,
                about: line_of(it, "description"),
                arguments: arguments.collect(),
            })
        };
        Ok(entries.iter().filter_map(prompt).collect())
    }

    /// All resources that have an address of their own, then the templates of others.
    pub async fn resources(&self) -> Result<Vec<ResourceInfo>, Error> {
        if !self.has("resources") {
            return Ok(Vec::new());
        }
        let entries = self.list("resources/list", "resources").await?;
        // Not every server has them.
        let templates = self.list("resources/templates/list", "resourceTemplates").await;
        let resource = |it: &Value| {
            let uri = it
                .get("uri")
                .or_else(|| it.get("uriTemplate"))
                .and_then(Value::as_str)?;
            let is_plain =
                uri.len() <= 2048 && !uri.contains(char::is_whitespace) && Sanitized::line(uri).as_str() == uri;
            is_plain.then(|| ResourceInfo {
                uri: uri.to_owned(),
                name: line_of(it, "name"),
                about: line_of(it, "description"),
            })
        };
        let all = entries.iter().chain(templates.iter().flatten());
        Ok(all.filter_map(resource).collect())
    }

    /// The content of a resource, as it came.
    pub async fn read_resource(&self, uri: &str, patience: Patience) -> Result<Value, Error> {
        let params = object(json!({ "uri": uri }));
        self.ask("resources/read", params, patience, None).await
    }

    /// The messages of a prompt, as they came.
    pub async fn prompt(&self, name: &str, arguments: Map<String, Value>, patience: Patience) -> Result<Value, Error> {
        let params = object(json!({ "name": name, "arguments": arguments }));
        self.ask("prompts/get", params, patience, None).await
    }

    /// The values that the server offers for the argument of a prompt: `name` with what was typed of it, and the arguments
    /// before it. Empty if it offers none.
    pub async fn values(
        &self,
        prompt: &str,
        (name, typed): (&str, &str),
        before: Map<String, Value>,
        patience: Patience,
    ) -> Result<Vec<String>, Error> {
        if !self.has("completions") {
            return Ok(Vec::new());
        }
        let params = object(json!({
            "ref": { "type": "ref/prompt", "name": prompt },
            "argument": { "name": name, "value": typed },
            "context": { "arguments": before },
        }));
        let reply = self.ask("completion/complete", params, patience, None).await?;
        let values = reply.pointer("/completion/values").and_then(Value::as_array);
        let values = values.into_iter().flatten().filter_map(Value::as_str);
        let is_plain = |it: &&str| (1..=MOST_VALUE_BYTES).contains(&it.len()) && Sanitized::line(it).as_str() == *it;
        Ok(values.filter(is_plain).take(MOST_VALUES).map(str::to_owned).collect())
    }

    /// Calls a tool. Dropping this cancels the call.
    pub async fn call(
        &self,
        tool: &str,
        arguments: Map<String, Value>,
        patience: Patience,
        progress: Option<mpsc::UnboundedSender<Progress>>,
    ) -> Result<Value, Error> {
        let params = object(json!({ "name": tool, "arguments": arguments }));
        self.ask("tools/call", params, patience, progress).await
    }

    /// Hears what the server says unasked as long as this is waited for: changes of its lists, and questions. Programs of the
    /// handshake era need nothing for that. Ends at once if the server says nothing. `opened` is told, or dropped, once nothing that
    /// is asked during a call can be lost.
    pub async fn listen(&self, opened: oneshot::Sender<()>) {
        let tells = |list: &str| self.abilities.pointer(&format!("/{list}/listChanged")) == Some(&Value::Bool(true));
        let wanted = json!({
            "toolsListChanged": tells("tools"),
            "promptsListChanged": tells("prompts"),
            "resourcesListChanged": tells("resources"),
        });
        if let (Era::Legacy(_), Transport::Http(http)) = (&self.era, &self.transport) {
            return http.stand(&self.host, opened).await;
        }
        drop(opened);
        let is_any = ["tools", "prompts", "resources"].into_iter().any(tells);
        if self.era == Era::Modern && is_any {
            let params = object(json!({ "notifications": wanted }));
            if let Err(error) = self.exchange("subscriptions/listen", params, None).await {
                self.host.log(&format!("changes of its lists are not heard: {error}"));
            }
        }
    }

    /// All entries of a list, page by page.
    async fn list(&self, method: &str, member: &str) -> Result<Vec<Value>, Error> {
        let (mut entries, mut total) = (Vec::new(), 0);
        let mut cursor: Option<String> = None;
        for _ in 0..MOST_PAGES {
            let mut params = Map::new();
            if let Some(cursor) = &cursor {
                params.insert("cursor".to_owned(), cursor.clone().into());
            }
            let asked = self.exchange(method, params, None);
            let page = tokio::time::timeout(START, asked).await;
            let mut page = page.unwrap_or(Err(Error::Timeout(START)))?;
            let Some(Value::Array(found)) = page.get_mut(member).map(Value::take) else {
                return Err(Error::Malformed(format!("{method} gives no list `{member}`")));
            };
            // Its fingerprint is of all of it, so none of it may be cut.
            let small = found.into_iter().filter_map(|it| {
                let size = it.to_string().len();
                if size > ENTRY_BYTES {
                    self.host
                        .log("left out: an entry of a list that is longer than 256 KiB");
                    return None;
                }
                total += size;
                Some(it)
            });
            entries.extend(small);
            let next = page.get("nextCursor").and_then(Value::as_str).map(str::to_owned);
            if total > LIST_BYTES {
                return Err(Error::Malformed(format!("{method} gives more than 8 MiB")));
            }
            if entries.len() > MOST_ENTRIES || next.is_none() || next == cursor {
                break;
            }
            cursor = next;
        }
        if entries.len() > MOST_ENTRIES {
            self.host
                .log(&format!("left out: all of {method} beyond the first {MOST_ENTRIES}"));
            entries.truncate(MOST_ENTRIES);
        }
        Ok(entries)
    }

    /// A request that may ask the user something: sent again with the answers until it is complete.
    async fn ask(
        &self,
        method: &str,
        params: Map<String, Value>,
        patience: Patience,
        progress: Option<mpsc::UnboundedSender<Progress>>,
    ) -> Result<Value, Error> {
        let mut sent = params.clone();
        for _ in 0..MOST_ROUNDS {
            let result = self.patient(method, sent, patience, progress.clone()).await?;
            match result.get("resultType").and_then(Value::as_str) {
                None | Some("complete") => return Ok(result),
                Some("input_required") => {}
                Some(other) => {
                    let other = capped(Sanitized::line(other).as_str(), 40);
                    return Err(Error::Malformed(format!("a result of the unknown type `{other}`")));
                }
            }
            let mut answers = Map::new();
            let requests = result.get("inputRequests").and_then(Value::as_object);
            for (key, request) in requests.into_iter().flatten().take(MOST_ROUNDS) {
                let wanted = request.get("method").and_then(Value::as_str).unwrap_or_default();
                let params = request.get("params").cloned().unwrap_or_default();
                let answer = self.host.answer(wanted, params).await;
                let answer = answer.map_err(|it| Error::Malformed(format!("it asks for `{wanted}`: {}", it.1)))?;
                answers.insert(key.clone(), answer);
            }
            sent = params.clone();
            if !answers.is_empty() {
                sent.insert("inputResponses".to_owned(), answers.into());
            }
            if let Some(state) = result.get("requestState") {
                sent.insert("requestState".to_owned(), state.clone());
            }
        }
        Err(Error::Malformed(format!("it asks for more input {MOST_ROUNDS} times")))
    }

    /// A request that is waited for as long as it reports progress.
    async fn patient(
        &self,
        method: &str,
        params: Map<String, Value>,
        patience: Patience,
        progress: Option<mpsc::UnboundedSender<Progress>>,
    ) -> Result<Value, Error> {
        let (report, mut reports) = mpsc::unbounded_channel();
        let asked = self.exchange(method, params, Some(report));
        tokio::pin!(asked);
        let wall = Instant::now() + patience.wall;
        let mut deadline = wall.min(Instant::now() + patience.idle);
        let mut has_reports = true;
        loop {
            tokio::select! {
                biased;
                result = &mut asked => return result,
                report = reports.recv(), if has_reports => match report {
                    Some(report) => {
                        deadline = wall.min(Instant::now() + patience.idle);
                        if let Some(progress) = &progress {
                            let _ = progress.send(report);
                        }
                    }
                    None => has_reports = false,
                },
                () = tokio::time::sleep_until(deadline) => {
                    // While the user thinks about a question of the server's, nobody is late.
                    if self.host.is_asking() {
                        deadline = Instant::now() + patience.idle;
                        continue;
                    }
                    return Err(Error::Timeout(if deadline == wall { patience.wall } else { patience.idle }));
                }
            }
        }
    }

    /// Sends one request and waits for its answer.
    async fn exchange(
        &self,
        method: &str,
        mut params: Map<String, Value>,
        progress: Option<mpsc::UnboundedSender<Progress>>,
    ) -> Result<Value, Error> {
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        let mut meta = match self.era {
            Era::Modern => object(json!({
                "io.modelcontextprotocol/protocolVersion": MODERN,
                "io.modelcontextprotocol/clientInfo": client_info(),
                "io.modelcontextprotocol/clientCapabilities": self.our_abilities(),
            })),
            Era::Legacy(_) => Map::new(),
        };
        if progress.is_some() {
            meta.insert("progressToken".to_owned(), id.into());
        }
        if !meta.is_empty() {
            params.insert("_meta".to_owned(), meta.into());
        }
        let mut running = Running {
            connection: self,
            id,
            is_answered: false,
        };
        if let Some(progress) = progress {
            self.host.follow(id, progress);
        }
        let message = message::request(id, method, params);
        let result = match &self.transport {
            Transport::Stdio(it) => it.request(id, &message).await,
            Transport::Http(it) => it.request(id, &message, &self.era, &self.host).await,
        };
        // Nobody has to be told that an answer is not wanted that has come.
        running.is_answered = true;
        result
    }

    async fn notify(&self, method: &str, params: Map<String, Value>) -> Result<(), Error> {
        let message = message::notification(method, params);
        match &self.transport {
            Transport::Stdio(it) => it.send(&message).await,
            Transport::Http(it) => it.send(&message, &self.era).await,
        }
    }

    fn our_abilities(&self) -> Value {
        let mut ours = Map::new();
        if self.host.can_ask() {
            ours.insert("elicitation".to_owned(), json!({ "form": {}, "url": {} }));
        }
        if matches!(self.era, Era::Legacy(_)) {
            ours.insert("roots".to_owned(), json!({ "listChanged": false }));
        }
        ours.into()
    }
}

/// A request that is being waited for. Dropped without an answer, it is cancelled.
struct Running<'a> {
    connection: &'a Connection,
    id: u64,
    is_answered: bool,
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        self.connection.host.forget(self.id);
        if self.is_answered {
            return;
        }
        let params = object(json!({ "requestId": self.id, "reason": "cancelled" }));
        let cancelled = message::notification("notifications/cancelled", params);
        match (&self.connection.transport, &self.connection.era) {
            (Transport::Stdio(stdio), _) => stdio.try_send(&cancelled),
            (Transport::Http(http), Era::Legacy(_)) => http.try_send(&cancelled),
            // To stop reading is to cancel.
            (Transport::Http(_), Era::Modern) => {}
        }
    }
}

fn client_info() -> Value {
    json!({ "name": "sheaf", "version": env!("CARGO_PKG_VERSION") })
}

fn object(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(members) => members,
        _ => Map::new(),
    }
}

/// The name of an entry, if it can be shown and said as it is.
fn name_of(entry: &Value) -> Option<String> {
    let name = entry.get("name").and_then(Value::as_str)?;
    let is_plain =
        !name.is_empty() && name.len() <= 128 && !name.chars().any(|it| it.is_whitespace() || it.is_control());
    (is_plain && Sanitized::line(name).as_str() == name).then(|| name.to_owned())
}

fn line_of(entry: &Value, member: &str) -> String {
    let text = entry.get(member).and_then(Value::as_str).unwrap_or_default();
    capped(Sanitized::line(text).as_str(), 300)
}

/// Reads an entry of the list of tools. Error: why it cannot be used.
fn tool(entry: &Value) -> Result<ToolInfo, String> {
    let text = |name: &str| entry.get(name).and_then(Value::as_str).unwrap_or_default();
    let name = text("name");
    let is_plain = |it: char| it.is_ascii_alphanumeric() || "_.-/".contains(it);
    if name.is_empty() || name.len() > 128 || !name.chars().all(is_plain) {
        let shown = capped(Sanitized::line(name).as_str(), 60);
        return Err(format!("`{shown}` cannot be its name"));
    }
    let schema = entry.get("inputSchema").cloned().unwrap_or_default();
    if depth(&schema) > SCHEMA_DEPTH {
        return Err(format!("`{name}`: its schema is nested more than {SCHEMA_DEPTH} deep"));
    }
    let title = match text("title") {
        "" => entry
            .pointer("/annotations/title")
            .and_then(Value::as_str)
            .unwrap_or_default(),
        title => title,
    };
    let print = Fingerprint::of(&[
        name.as_bytes(),
        title.as_bytes(),
        text("description").as_bytes(),
        schema.to_string().as_bytes(),
    ]);
    Ok(ToolInfo {
        name: name.to_owned(),
        title: capped(Sanitized::line(title).as_str(), 100),
        about: capped(Sanitized::new(text("description")).as_str(), ABOUT_BYTES),
        schema,
        print,
    })
}

/// Lists and objects inside each other. The reader has bounded them.
fn depth(value: &Value) -> usize {
    match value {
        Value::Array(items) => 1 + items.iter().map(depth).max().unwrap_or_default(),
        Value::Object(members) => 1 + members.values().map(depth).max().unwrap_or_default(),
        _ => 0,
    }
}

#[cfg(test)]
pub mod tests {
    use pretty_assertions::assert_eq;
    use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, duplex};

    use super::*;

    /// A server that answers each message by `answer`: lines to send back.
    pub fn server(answer: impl Fn(&Value) -> Vec<String> + Send + 'static) -> (Transport, Arc<Host>) {
        let host = Arc::new(Host::new("test", vec!["/work".into()]));
        let (input, far_input) = duplex(1 << 16);
        let (far_output, output) = duplex(1 << 16);
        tokio::spawn(async move {
            let mut lines = BufReader::new(far_input).lines();
            let mut far_output = far_output;
            while let Ok(Some(line)) = lines.next_line().await {
                let message: Value = serde_json::from_str(&line).expect("we send JSON");
                for line in answer(&message) {
                    let line = format!("{line}\n");
                    if far_output.write_all(line.as_bytes()).await.is_err() {
                        return;
                    }
                }
            }
        });
        let stdio = Stdio::start(input, output, tokio::io::empty(), Arc::clone(&host));
        (Transport::Stdio(stdio), host)
    }

    pub fn result(message: &Value, result: Value) -> Vec<String> {
        vec![json!({ "jsonrpc": "2.0", "id": message["id"], "result": result }).to_string()]
    }

    fn error(message: &Value, code: i64, data: Value) -> Vec<String> {
        let error = json!({ "code": code, "message": "no", "data": data });
        vec![json!({ "jsonrpc": "2.0", "id": message["id"], "error": error }).to_string()]
    }

    fn is(message: &Value, method: &str) -> bool {
        message["method"] == method
    }

    fn hello(message: &Value, version: &str) -> Vec<String> {
        let info = json!({ "name": "s\u{202e}rv", "version": "1" });
        if is(message, "initialize") {
            assert_eq!(message["params"]["protocolVersion"], LEGACY);
            return result(
                message,
                json!({ "protocolVersion": version, "capabilities": { "tools": {} }, "serverInfo": info }),
            );
        }
        Vec::new()
    }

    #[tokio::test(start_paused = true)]
    async fn the_era_is_found_whatever_a_server_answers() {
        let modern = json!({ "supportedVersions": ["2027-01-01", MODERN], "capabilities": { "tools": {} } });
        type Answering = Box<dyn Fn(&Value) -> Vec<String> + Send>;
        let cases: Vec<(&str, Answering, Result<&str, &str>)> = vec![
            (
                "a modern server",
                Box::new(move |it| result(it, modern.clone())),
                Ok(MODERN),
            ),
            (
                "a modern one that speaks another version, too",
                Box::new(|it| error(it, -32022, json!({ "supported": [MODERN] }))),
                Ok(MODERN),
            ),
            (
                "a later one only",
                Box::new(|it| error(it, -32022, json!({ "supported": ["2031-01-01"] }))),
                Err("error -32022: no"),
            ),
            (
                "an unknown method",
                Box::new(|it| {
                    if is(it, "initialize") {
                        hello(it, LEGACY)
                    } else {
                        error(it, -32601, Value::Null)
                    }
                }),
                Ok(LEGACY),
            ),
            (
                "any other error",
                Box::new(|it| {
                    if is(it, "initialize") {
                        hello(it, "2024-11-05")
                    } else {
                        error(it, -1, Value::Null)
                    }
                }),
                Ok("2024-11-05"),
            ),
            (
                "an empty result for everything it does not know",
                Box::new(|it| {
                    if is(it, "initialize") {
                        hello(it, LEGACY)
                    } else {
                        result(it, json!({}))
                    }
                }),
                Ok(LEGACY),
            ),
            ("silence", Box::new(|it| hello(it, "2025-03-26")), Ok("2025-03-26")),
            (
                "answers to other ids",
                Box::new(|it| {
                    let mut lines = vec![r#"{"id":99,"result":{"supportedVersions":["2026-07-28"]}}"#.to_owned()];
                    lines.extend(hello(it, LEGACY));
                    lines
                }),
                Ok(LEGACY),
            ),
            (
                "a version that nobody knows",
                Box::new(|it| hello(it, "1999-01-01")),
                Err("it speaks no version of the protocol that sheaf does: 1999-01-01"),
            ),
            ("nothing at all", Box::new(|_| Vec::new()), Err("no answer within 60 s")),
        ];
        for (name, answer, expected) in cases {
            let (transport, host) = server(answer);
            let opened = Connection::open(transport, host, None).await;
            let found = opened
                .as_ref()
                .map(|it| it.era().version())
                .map_err(ToString::to_string);
            assert_eq!(found, expected.map_err(str::to_owned), "{name}");
            if let Ok(it) = opened {
                assert!(!it.title.contains('\u{202e}'), "{name}");
            }
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_known_era_is_not_asked_for_again() {
        let (transport, host) = server(|it| {
            assert!(!is(it, "server/discover"), "{it}");
            hello(it, LEGACY)
        });
        let era = Era::Legacy(LEGACY.to_owned());
        let opened = Connection::open(transport, host, Some(&era)).await;
        assert_eq!(opened.expect("it answers").era().version(), LEGACY);
    }

    async fn open(answer: impl Fn(&Value) -> Vec<String> + Send + 'static) -> Connection {
        let (transport, host) = server(move |it| {
            if is(it, "server/discover") {
                let able = json!({ "tools": {}, "prompts": {}, "resources": {} });
                return result(it, json!({ "supportedVersions": [MODERN], "capabilities": able }));
            }
            answer(it)
        });
        Connection::open(transport, host, None).await.expect("it answers")
    }

    #[tokio::test(start_paused = true)]
    async fn lists_are_read_page_by_page_and_end() {
        let connection = open(|it| {
            let page: usize = it["params"]["cursor"].as_str().unwrap_or("0").parse().expect("ours");
            let tools = [json!({ "name": format!("t{page}"), "description": "x", "inputSchema": {} })];
            // It never says that this was the last page.
            result(it, json!({ "tools": tools, "nextCursor": (page + 1).to_string() }))
        })
        .await;
        let (tools, _) = connection.tools().await.expect("a list");
        assert_eq!((tools.len(), tools[99].name.as_str()), (MOST_PAGES, "t99"));
        // The same cursor again is a loop.
        let connection = open(|it| {
            let tools = [json!({ "name": "same", "inputSchema": {} })];
            result(it, json!({ "tools": tools, "nextCursor": "x" }))
        })
        .await;
        assert_eq!(connection.tools().await.expect("a list").0.len(), 1, "names are unique");
    }

    #[tokio::test(start_paused = true)]
    async fn a_tool_that_is_nested_too_deeply_is_left_out_alone() {
        let connection = open(|it| {
            let deep = |depth: usize| format!("{}1{}", "{\"items\":".repeat(depth), "}".repeat(depth));
            let tool = |name: &str, depth| format!(r#"{{"name":"{name}","inputSchema":{}}}"#, deep(depth));
            let tools = [tool("fine", 100), tool("deep", 101), tool("deeper", 3000)].join(",");
            vec![format!(r#"{{"id":{},"result":{{"tools":[{tools}]}}}}"#, it["id"])]
        })
        .await;
        let (tools, left_out) = connection.tools().await.expect("a list");
        assert_eq!(tools.iter().map(|it| it.name.as_str()).collect::<Vec<_>>(), ["fine"]);
        let why = |name: &str| format!("a tool: `{name}`: its schema is nested more than 100 deep");
        assert_eq!(left_out, [why("deep"), why("deeper")]);
    }

    #[tokio::test(start_paused = true)]
    async fn what_a_server_says_of_its_tools_is_harmless() {
        let connection = open(|it| {
            let tool = |name: &str, about: &str| json!({ "name": name, "description": about, "inputSchema": {} });
            let tools = [
                tool(
                    "good",
                    &format!("first\u{1b}]0;x\u{7} \u{202e}line\n{}", "x".repeat(50_000)),
                ),
                tool("bad\u{1b}[2J", "x"),
                tool("", "x"),
                tool(&"n".repeat(200), "x"),
                tool("good", "again"),
            ];
            result(it, json!({ "tools": tools }))
        })
        .await;
        let (tools, left_out) = connection.tools().await.expect("a list");
        assert_eq!(tools.iter().map(|it| it.name.as_str()).collect::<Vec<_>>(), ["good"]);
        assert_eq!(left_out.len(), 4, "{left_out:?}");
        let about = &tools[0].about;
        assert!(about.len() <= ABOUT_BYTES + 40, "{}", about.len());
        assert!(!about.contains(['\u{1b}', '\u{202e}', '\u{7}']), "{about}");
        let log = connection.host.logged().join("\n");
        assert!(
            log.contains("cannot be its name") && log.contains("a second tool `good`"),
            "{log}"
        );
    }

    #[tokio::test(start_paused = true)]
    async fn a_call_asks_the_user_and_is_sent_again_with_the_answer() {
        let connection = open(|it| {
            let params = &it["params"];
            match params["inputResponses"]["who"]["content"]["name"].as_str() {
                Some(name) => {
                    assert_eq!(params["requestState"], "opaque");
                    result(it, json!({ "resultType": "complete", "content": [{ "type": "text", "text": format!("hi {name}") }] }))
                }
                None => {
                    let request = json!({ "method": "elicitation/create", "params": { "message": "Your name?" } });
                    result(it, json!({ "resultType": "input_required", "requestState": "opaque", "inputRequests": { "who": request } }))
                }
            }
        })
        .await;
        connection.host.set_asker(Some(Arc::new(|ask| {
            assert_eq!(
                (ask.server.as_str(), ask.params["message"].as_str()),
                ("test", Some("Your name?"))
            );
            Box::pin(async { json!({ "action": "accept", "content": { "name": "Kim" } }) })
        })));
        let said = connection.call("greet", Map::new(), Patience::of(None), None).await;
        assert_eq!(said.expect("an answer")["content"][0]["text"], "hi Kim");
        // One that never has enough is left.
        let connection =
            open(|it| result(it, json!({ "resultType": "input_required", "requestState": "again" }))).await;
        let said = connection.call("greet", Map::new(), Patience::of(None), None).await;
        assert_eq!(
            said.map_err(|it| it.to_string()),
            Err("an answer cannot be read: it asks for more input 10 times".to_owned())
        );
    }

    #[tokio::test(start_paused = true)]
    async fn a_call_ends_in_time() {
        // It reports progress all the time, and never ends.
        let connection = open(|it| {
            let token = it["params"]["_meta"]["progressToken"].clone();
            let report =
                json!({ "method": "notifications/progress", "params": { "progressToken": token, "progress": 1 } });
            vec![report.to_string()]
        })
        .await;
        let before = Instant::now();
        let patience = Patience {
            idle: Duration::from_secs(5),
            wall: Duration::from_mins(1),
        };
        let (told, mut tells) = mpsc::unbounded_channel();
        let said = connection.call("slow", Map::new(), patience, Some(told)).await;
        assert_eq!(said, Err(Error::Timeout(Duration::from_secs(5))));
        assert!(before.elapsed() < Duration::from_secs(6));
        assert_eq!(tells.try_recv().map(|it| it.progress), Ok(1.0));
    }

    #[tokio::test(start_paused = true)]
    async fn a_call_that_is_dropped_is_cancelled() {
        let (seen, mut cancelled) = mpsc::unbounded_channel();
        let connection = open(move |it| {
            let _ = seen.send(it.clone());
            Vec::new()
        })
        .await;
        let call = connection.call("slow", Map::new(), Patience::of(None), None);
        tokio::time::timeout(Duration::from_secs(1), call)
            .await
            .expect_err("it hangs");
        let call = cancelled.recv().await.expect("the call");
        let cancel = cancelled.recv().await.expect("its end");
        assert_eq!(cancel["method"], "notifications/cancelled");
        assert_eq!(cancel["params"]["requestId"], call["id"]);
    }

    #[tokio::test(start_paused = true)]
    async fn an_answer_that_cannot_be_read_fails_the_call_at_once() {
        for (line, expected) in [
            ("{\"id\": 1, \"result\": ", "an answer cannot be read"),
            (
                &*format!("{{\"id\":2,\"result\":{}{}}}", "[".repeat(400), "]".repeat(400)),
                "recursion limit",
            ),
        ] {
            let line = line.to_owned();
            let connection = open(move |_| vec!["Listening.".to_owned(), line.clone()]).await;
            let said = connection.call("x", Map::new(), Patience::of(None), None).await;
            let said = said.expect_err("no answer").to_string();
            assert!(said.contains(expected), "{said}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_server_of_the_handshake_is_told_the_folders_and_asks_the_user() {
        let (seen, mut answers) = mpsc::unbounded_channel();
        let (transport, host) = server(move |it| {
            if it["method"].is_null() {
                let _ = seen.send(it.clone());
                return Vec::new();
            }
            if is(it, "notifications/initialized") {
                return vec![
                    r#"{"id":"r1","method":"roots/list"}"#.to_owned(),
                    r#"{"id":7,"method":"elicitation/create","params":{"message":"?"}}"#.to_owned(),
                    r#"{"id":8,"method":"sampling/createMessage"}"#.to_owned(),
                ];
            }
            hello(it, LEGACY)
        });
        host.set_asker(Some(Arc::new(|_| Box::pin(async { json!({ "action": "cancel" }) }))));
        let connection = Connection::open(transport, host, None).await.expect("it answers");
        let mut found = Vec::new();
        for _ in 0..3 {
            found.push(answers.recv().await.expect("an answer"));
        }
        found.sort_by_key(|it| it["id"].to_string());
        assert_eq!(found[0]["result"]["roots"][0]["uri"], "file:///work");
        assert_eq!(found[1]["result"]["action"], "cancel");
        assert_eq!(found[2]["error"]["code"], -32601);
        drop(connection);
    }
}
