//! The embedded agent over its own driver, with the real tools in a real folder and a model that is a script: what a mode
//! permits is all that happens, and whatever breaks, every call has one result and every document an end.

mod checks;

use std::{
    collections::BTreeMap,
    fs,
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use futures::StreamExt as _;
use serde_json::{Value, json};
use sheaf::{
    agent::driver::{self, Setup},
    config::{Environment, Settings},
    journal::{Follower, Log},
    link::{About, Asker, Link as _, local::Local},
    model::{
        Effort, EndReason, Failure, FailureKind, Model, ModelMessage, ModelRequest, Piece, PieceStream, Promise,
        Provider, Roles, Said,
    },
    protocol::{
        Answer, ClarificationResponse, Command, Document, Event, FinishReason, Kind, Message, Mode, Outcome as Dealt,
        Position, Submit, Turn,
    },
    sandbox::Workspace,
    tool::{Class, Outcome, TOOLS, Tool, Work},
    transcript::{Transcript, is_approval},
};

/// What the model says to one request: pieces, each after what it waits for.
type Answers = Box<dyn FnMut(usize, &ModelRequest) -> PieceStream + Send>;

/// A model that says what a test wrote, and keeps what it was asked.
struct Script {
    asked: Mutex<Vec<ModelRequest>>,
    answers: Mutex<Answers>,
    /// How often any of its streams was polled.
    polls: Arc<AtomicUsize>,
}

impl Script {
    fn new(answers: impl FnMut(usize, &ModelRequest) -> PieceStream + Send + 'static) -> Arc<Self> {
        Arc::new(Self {
            asked: Mutex::default(),
            answers: Mutex::new(Box::new(answers)),
            polls: Arc::default(),
        })
    }

    fn asked(&self) -> Vec<ModelRequest> {
        self.asked.lock().expect("no test panics with it").clone()
    }
}

impl Provider for Script {
    fn peer(&self) -> &'static str {
        "a script"
    }

    fn stream(&self, request: ModelRequest) -> PieceStream {
        let at = {
            let mut asked = self.asked.lock().expect("no test panics with it");
            asked.push(request.clone());
            asked.len() - 1
        };
        let mut pieces = (self.answers.lock().expect("no test panics with it"))(at, &request);
        let polls = Arc::clone(&self.polls);
        Box::pin(futures::stream::poll_fn(move |cx| {
            polls.fetch_add(1, Ordering::Relaxed);
            pieces.poll_next_unpin(cx)
        }))
    }

    fn warm(&self) -> Promise<()> {
        Box::pin(std::future::ready(()))
    }

    fn models(&self) -> Promise<Result<Vec<Model>, Failure>> {
        Box::pin(std::future::ready(Ok(Vec::new())))
    }
}

fn said(pieces: Vec<Piece>) -> PieceStream {
    Box::pin(futures::stream::iter(pieces))
}

/// These pieces, and then nothing for ever.
fn said_and_silent(pieces: Vec<Piece>) -> PieceStream {
    Box::pin(futures::stream::iter(pieces).chain(futures::stream::pending()))
}

fn ending(mut pieces: Vec<Piece>, reason: EndReason) -> PieceStream {
    pieces.push(Piece::End(reason));
    said(pieces)
}

fn ok() -> PieceStream {
    ending(vec![Piece::Text("ok".to_owned())], EndReason::Stop)
}

fn call(id: &str, name: &str, arguments: &Value) -> Piece {
    Piece::CallDone {
        slot: 0,
        id: id.to_owned(),
        name: name.to_owned(),
        arguments: arguments.as_object().cloned().ok_or_else(|| arguments.to_string()),
        opaque: None,
    }
}

struct Stage {
    link: Option<Local>,
    follower: Follower,
    transcript: Transcript,
    events: Vec<Event>,
    agent: tokio::task::JoinHandle<()>,
    /// How often the driver was polled.
    rounds: Arc<AtomicUsize>,
    script: Arc<Script>,
    /// What every approval is answered with, as long as anything is.
    answer: Option<&'static str>,
    answered: Vec<String>,
}

/// How long nothing may come before nothing will.
const PATIENCE: Duration = Duration::from_mins(1);

impl Stage {
    fn new(root: &Path, script: &Arc<Script>, settings: Settings, tools: Vec<&'static Tool>) -> Self {
        let log = Log::new();
        let (link, inbox) = Local::new(Arc::clone(&log), About::default());
        let setup = Setup {
            provider: Arc::clone(script) as Arc<dyn Provider>,
            model: "m".to_owned(),
            conversation: "conv_1".into(),
            asker: Asker::Here,
            workspace: Some(Arc::new(Workspace::open(root).expect("a workspace"))),
            roles: Arc::new(Roles::new(&settings, &Environment::default())),
            settings: Arc::new(settings),
            tools,
            paths: None,
            hold: sheaf::link::Hold::default(),
        };
        let rounds = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&rounds);
        let mut driver = Box::pin(driver::run(setup, Arc::clone(&log), inbox));
        let agent = tokio::spawn(std::future::poll_fn(move |cx| {
            counted.fetch_add(1, Ordering::Relaxed);
            driver.as_mut().poll(cx)
        }));
        Self {
            follower: log.follow(Position(0)),
            link: Some(link),
            transcript: Transcript::default(),
            events: Vec::new(),
            agent,
            rounds,
            script: Arc::clone(script),
            answer: None,
            answered: Vec::new(),
        }
    }

    fn send(&self, command: Command) {
        self.link.as_ref().expect("the consumer is there").send(command);
    }

    fn say(&self, text: &str, mode: Mode) {
        self.send(Command::Submit(Submit {
            message: Message::user(text),
            mode,
            model: None,
        }));
    }

    /// Reads on until `holds`; answers what is asked meanwhile, if that is wanted.
    async fn until(&mut self, what: &str, holds: impl Fn(&Self) -> bool) {
        while !holds(self) {
            self.deal();
            let mut batch = Vec::new();
            let more = tokio::time::timeout(PATIENCE, self.follower.next(&mut batch)).await;
            let more =
                more.unwrap_or_else(|_| panic!("still no {what}, {} answers ended: {:#?}", self.ended(), self.tail()));
            assert!(more || !batch.is_empty(), "the log ended before {what}");
            self.transcript.apply_all(&batch);
            self.events.extend(batch.iter().map(|it| it.event.clone()));
        }
    }

    /// Answers the oldest open question: approvals as told, all else not at all.
    fn deal(&mut self) {
        let Some(answer) = self.answer else { return };
        let Some(place) = self.transcript.waiting() else { return };
        let Some(document) = self.transcript.get(place) else {
            return;
        };
        let turn = Turn(u32::try_from(self.transcript.exchanges.len()).expect("few turns"));
        let subject = document.metadata.get("subject").cloned().unwrap_or_default();
        let is_mode = subject["metadata"]["toolName"] == "switch_mode";
        let response = if is_approval(document) && !is_mode {
            self.answered.push(subject.to_string());
            ClarificationResponse {
                document_id: document.id.clone(),
                outcome: Dealt::Answered,
                answers: vec![Answer {
                    question_id: "approval".to_owned(),
                    selected_option_ids: vec![answer.to_owned()],
                    free_text: None,
                }],
                reason: None,
            }
        } else {
            ClarificationResponse {
                document_id: document.id.clone(),
                outcome: Dealt::Skipped,
                answers: Vec::new(),
                reason: None,
            }
        };
        self.send(Command::Answer { turn, response });
    }

    fn tail(&self) -> Vec<&Event> {
        self.events.iter().rev().take(12).collect()
    }

    async fn done(&mut self, turns: usize) {
        self.until(&format!("end of answer {turns}"), |it| it.ended() == turns)
            .await;
    }

    /// How many answers have ended. The question whether the workspace is trusted comes when it comes, as a turn of its own,
    /// and is no answer: it bears no number.
    fn ended(&self) -> usize {
        let is_answer = |it: &&Event| matches!(it, Event::Done(done) if done.id.is_some());
        self.events.iter().filter(is_answer).count()
    }

    fn documents(&self) -> Vec<&Document> {
        let last = self.transcript.exchanges.last();
        last.into_iter().flat_map(|it| &it.response.documents).collect()
    }

    fn finish(&self) -> FinishReason {
        let last = self.transcript.exchanges.last().expect("a turn");
        last.response.ending.clone().expect("it ended").finish_reason
    }

    fn has_open(&self, kind: &Kind) -> bool {
        let last = self.transcript.exchanges.last();
        last.is_some_and(|it| it.response.documents.iter().any(|it| it.kind == *kind && it.is_open()))
    }

    /// What must hold after every answer, however it went.
    async fn check(&mut self, name: &str) {
        let mut open: BTreeMap<String, i32> = BTreeMap::new();
        for event in &self.events {
            match event {
                Event::UserMessage(_) => assert!(open.values().all(|it| *it == 0), "{name}: {open:?} are open"),
                Event::DocumentStart(start) => *open.entry(start.id.to_string()).or_default() += 1,
                Event::DocumentEnd { document, .. } => *open.entry(document.to_string()).or_default() -= 1,
                _ => {}
            }
        }
        assert!(open.values().all(|it| *it == 0), "{name}: {open:?} are open");
        // What the model is told next shows whether every call was answered, once and in its order.
        self.answer = None;
        let asked = self.script.asked().len();
        let turns = self.ended();
        self.say("and now?", Mode::Ask);
        self.done(turns + 1).await;
        let requests = self.script.asked();
        assert!(requests.len() > asked, "{name}: it was not asked again");
        for request in &requests {
            check_paired(name, &request.messages);
        }
        // Servers keep what begins alike.
        for pair in requests.windows(2) {
            let [before, after] = pair else { continue };
            let is_compact = format!("{:?}", after.messages).contains("[result dropped to make room");
            let begins = after.messages.get(..before.messages.len()) == Some(&before.messages[..]);
            assert!(
                begins || is_compact,
                "{name}: what was sent has been rewritten: {before:?}\n{after:?}"
            );
        }
    }
}

/// Every call has exactly one result, in the message behind it and in the order of the calls, and no two have an id.
fn check_paired(name: &str, messages: &[ModelMessage]) {
    let mut ids = Vec::new();
    for (at, message) in messages.iter().enumerate() {
        let calls: Vec<&str> = match message {
            ModelMessage::Assistant(said) => said
                .iter()
                .filter_map(|it| match it {
                    Said::Call(call) => Some(call.id.as_str()),
                    Said::Text(_) | Said::Opaque(_) => None,
                })
                .collect(),
            ModelMessage::User(_) => continue,
            ModelMessage::Results(results) => {
                let before = at.checked_sub(1).and_then(|it| messages.get(it));
                assert!(
                    matches!(before, Some(ModelMessage::Assistant(_))),
                    "{name}: results of nothing: {results:?}"
                );
                continue;
            }
        };
        if calls.is_empty() {
            continue;
        }
        let results: Vec<&str> = match messages.get(at + 1) {
            Some(ModelMessage::Results(results)) => results.iter().map(|it| it.call.as_str()).collect(),
            other => panic!("{name}: {calls:?} are followed by {other:?}"),
        };
        assert_eq!(results, calls, "{name}");
        ids.extend(calls);
    }
    let count = ids.len();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), count, "{name}: an id twice");
}

/// Every file and folder with what it holds and may do.
fn tree(root: &Path) -> BTreeMap<PathBuf, (u32, Vec<u8>)> {
    let mut found = BTreeMap::new();
    let mut folders = vec![root.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).expect("a folder") {
            let path = entry.expect("an entry").path();
            let kind = fs::symlink_metadata(&path).expect("it is there");
            let bytes = if kind.is_file() {
                fs::read(&path).expect("a file")
            } else {
                Vec::new()
            };
            if kind.is_dir() {
                folders.push(path.clone());
            }
            found.insert(path, (kind.permissions().mode(), bytes));
        }
    }
    found
}

/// A repository with something for every tool; commands and linters in it leave a trace in `outside`.
fn workspace(outside: &Path) -> tempfile::TempDir {
    let root = tempfile::tempdir().expect("a folder");
    let write = |name: &str, text: &str| {
        let path = root.path().join(name);
        fs::create_dir_all(path.parent().expect("a parent")).expect("a folder");
        fs::write(path, text).expect("a file");
    };
    write("a.txt", "one\ntwo\nthree\n");
    write("src/a.py", "def total():\n    return 0\n");
    write("src/a.rs", "fn total() -> u64 {\n    0\n}\n");
    write(
        "a.ipynb",
        r#"{"cells":[{"cell_type":"code","execution_count":null,"metadata":{},"outputs":[],"source":["x = 1\n"]}],"metadata":{},"nbformat":4,"nbformat_minor":5}"#,
    );
    write("empty.txt", "");
    write(
        "linter.sh",
        &format!("#!/bin/sh\ntouch '{}'\n", outside.join("linted").display()),
    );
    fs::set_permissions(root.path().join("linter.sh"), fs::Permissions::from_mode(0o755)).expect("its mode");
    root
}

/// For every tool: arguments that would do something, by the names of its schema and by those of other programs.
fn arguments(tool: &Tool, outside: &Path) -> Vec<Value> {
    let trace = outside.join("trace").display().to_string();
    let plan = json!({ "name": "p", "overview": "o", "plan": "# p", "todos": [{ "id": "a", "content": "b" }] });
    match tool.name {
        "codebase_search" => vec![json!({ "query": "Where is the total?", "target_directories": ["src"] })],
        "grep" => vec![
            json!({ "pattern": "total" }),
            json!({ "pattern": "one", "path": "a.txt", "output_mode": "content" }),
        ],
        "read_file" => vec![
            json!({ "target_file": "a.txt" }),
            json!({ "path": "../../etc/hostname" }),
        ],
        "glob_file_search" => vec![json!({ "glob_pattern": "**/*" }), json!({ "pattern": "*.rs" })],
        "list_dir" => vec![json!({ "target_directory": "." }), json!({ "path": "src" })],
        "read_lints" => vec![json!({}), json!({ "paths": ["src/a.py"] }), json!({ "path": "src" })],
        "edit_file" => vec![
            json!({ "target_file": "a.txt", "instructions": "i", "code_edit": "one\nTWO\nthree\n" }),
            json!({ "target_file": "new.txt", "instructions": "i", "code_edit": "new\n" }),
        ],
        "search_replace" => vec![
            json!({ "file_path": "a.txt", "old_string": "two", "new_string": "2" }),
            json!({ "file_path": "new.txt", "old_string": "", "new_string": "new\n" }),
            json!({ "path": "a.txt", "old_str": "two", "new_str": "2", "replace_all": "true" }),
            json!({ "file_path": "a.txt", "edits": [{ "old_string": "one", "new_string": "1" }] }),
            json!({ "target_file": "a.txt", "instructions": "i", "code_edit": "one\nTWO\nthree\n" }),
        ],
        "write" => vec![
            json!({ "file_path": "a.txt", "contents": "gone" }),
            json!({ "path": "deep/new.txt", "content": "new" }),
            json!({ "file_path": trace, "contents": "outside" }),
        ],
        "delete_file" => vec![json!({ "target_file": "a.txt" }), json!({ "path": "empty.txt" })],
        "edit_notebook" => vec![
            json!({ "target_notebook": "a.ipynb", "cell_idx": 0, "is_new_cell": false, "cell_language": "python",
                    "old_string": "x = 1", "new_string": "x = 2" }),
            json!({ "notebook_path": "a.ipynb", "cell_idx": "1", "is_new_cell": "true", "cell_language": "python",
                    "old_string": "", "new_string": "y = 2" }),
        ],
        "apply_patch" => vec![
            json!({ "patch": "*** Begin Patch\n*** Update File: a.txt\n@@\n one\n-two\n+2\n*** End Patch" }),
            json!({ "input": "*** Begin Patch\n*** Add File: new.txt\n+new\n*** Delete File: empty.txt\n*** End Patch" }),
        ],
        "run_terminal_cmd" => vec![
            json!({ "command": format!("touch '{trace}'"), "is_background": false }),
            json!({ "cmd": format!("echo x > new.txt; touch '{trace}'"), "run_in_background": true }),
            json!({ "command": "ls", "is_background": "false", "required_permissions": ["all"] }),
        ],
        "await_command" => vec![json!({ "command_id": "cmd_1", "id": "1", "timeout_ms": 1 })],
        "web_search" => vec![json!({ "search_term": "cart" })],
        "web_fetch" => vec![
            json!({ "url": "http://127.0.0.1:9/" }),
            json!({ "url": "file:///etc/hostname" }),
        ],
        "todo_write" => vec![json!({ "merge": false, "todos": [{ "id": "a", "content": "b", "status": "pending" }] })],
        "create_plan" => vec![plan],
        "ask" => vec![
            json!({ "title": "t", "questions": [{ "id": "q", "prompt": "p", "options": [{ "id": "a", "label": "A" }, { "id": "b", "label": "B" }] }] }),
        ],
        "switch_mode" => ["agent", "debug", "plan", "ask"]
            .map(|it| json!({ "target_mode_id": it }))
            .to_vec(),
        other => panic!("`{other}` is new: say here what it would be called with"),
    }
}

/// In every mode, every tool by every name, offered or switched off, by a user who says yes to whatever is asked of calls
/// and never to another mode.
#[tokio::test]
async fn in_plan_and_ask_mode_nothing_changes_and_nothing_runs() {
    for mode in Mode::ALL {
        for is_offered in [true, false] {
            let outside = tempfile::tempdir().expect("a folder");
            let root = workspace(outside.path());
            let before = tree(root.path());
            let mut settings = Settings::default();
            settings.agent.profile = "full".to_owned();
            settings.agent.edit_style = "both".to_owned();
            settings.agent.max_calls = 10_000;
            settings.lint.insert(
                "python".to_owned(),
                vec![root.path().join("linter.sh").display().to_string()],
            );
            for tool in TOOLS {
                settings.tools.entry(tool.name.to_owned()).or_default().enabled = is_offered;
            }
            // A call of every name with everything that would do something, each twice: after a read it is no blind edit.
            let mut batches: Vec<(&'static str, &'static Tool, Vec<Piece>)> = Vec::new();
            for tool in TOOLS {
                for name in std::iter::once(&tool.name).chain(tool.aliases) {
                    let mut pieces = Vec::new();
                    let read = call(&format!("r-{name}"), "read_file", &json!({ "target_file": "a.txt" }));
                    pieces.push(read);
                    for (at, arguments) in arguments(tool, outside.path()).iter().enumerate() {
                        pieces.push(call(&format!("{name}-{at}"), name, arguments));
                    }
                    let wrapped = json!({ "tool_uses": [{ "recipient_name": format!("functions.{name}"), "parameters": arguments(tool, outside.path())[0] }] });
                    pieces.push(call(&format!("w-{name}"), "multi_tool_use.parallel", &wrapped));
                    batches.push((name, tool, pieces));
                }
            }
            let names: Vec<(&str, &Tool)> = batches.iter().map(|(name, tool, _)| (*name, *tool)).collect();
            let mut left = batches.into_iter();
            let script = Script::new(move |_, request| match request.messages.last() {
                Some(ModelMessage::Results(_)) => ok(),
                _ => left
                    .next()
                    .map_or_else(ok, |(_, _, pieces)| ending(pieces, EndReason::ToolUse)),
            });
            let mut stage = Stage::new(root.path(), &script, settings, TOOLS.to_vec());
            stage.answer = Some("allow_once");
            for (turn, (name, tool)) in names.iter().enumerate() {
                stage.say(name, mode);
                stage.done(turn + 1).await;
                let is_changing = !matches!(mode, Mode::Agent | Mode::Debug) || !is_offered;
                if is_changing {
                    assert!(
                        before == tree(root.path()),
                        "{name} ({}) changed something in {mode} mode",
                        tool.name
                    );
                    assert_eq!(
                        fs::read_dir(outside.path()).expect("a folder").count(),
                        0,
                        "{name} ran in {mode} mode"
                    );
                }
            }
            if !is_offered {
                assert_eq!(
                    stage.answered,
                    Vec::<String>::new(),
                    "{mode}: what is switched off is not asked about"
                );
            }
            // The control: where it is permitted and somebody says yes, the very same calls do change things.
            if matches!(mode, Mode::Agent | Mode::Debug) && is_offered {
                assert!(
                    before != tree(root.path()),
                    "{mode}: nothing that was called did anything"
                );
                assert!(outside.path().join("trace").exists(), "{mode}: no command ran");
                assert!(!stage.answered.is_empty(), "{mode}: nothing was asked");
            }
            for request in stage.script.asked() {
                let offered: Vec<&str> = request.tools.iter().map(|it| it.name.as_str()).collect();
                let wrong = offered.iter().find(|name| {
                    let tool = TOOLS.iter().find(|it| it.name == **name).expect("a tool");
                    !tool.modes.contains(&mode) || !is_offered
                });
                assert_eq!(wrong, None, "{mode}: it is offered");
                check_paired(mode.as_str(), &request.messages);
            }
        }
    }
}

/// A message may say how hard it is to be thought about, and the next one is as the settings say again.
#[tokio::test]
async fn a_message_says_how_hard_it_is_thought_about() {
    let outside = tempfile::tempdir().expect("a folder");
    let root = workspace(outside.path());
    let script = Script::new(|_, _| ok());
    let mut settings = Settings::default();
    settings.agent.effort = "low".to_owned();
    let mut stage = Stage::new(root.path(), &script, settings, Vec::new());
    for (turn, effort) in [Some("high"), None, Some("auto"), Some("nonsense")]
        .into_iter()
        .enumerate()
    {
        let mut message = Message::user("go");
        if let Some(effort) = effort {
            message.extra.insert("effort".to_owned(), effort.into());
        }
        stage.send(Command::Submit(Submit {
            message,
            mode: Mode::Ask,
            model: None,
        }));
        stage.done(turn + 1).await;
    }
    let efforts: Vec<_> = stage.script.asked().iter().map(|it| it.effort).collect();
    assert_eq!(
        efforts,
        [Some(Effort::High), Some(Effort::Low), None, Some(Effort::Low)]
    );
}

/// Whoever asks for another mode gets it by a yes and by nothing else.
#[tokio::test]
async fn another_mode_needs_a_yes() {
    for (answer, changes) in [
        ("allow_once", true),
        ("reject_once", false),
        ("", false),
        ("something else", false),
    ] {
        let outside = tempfile::tempdir().expect("a folder");
        let root = workspace(outside.path());
        let script = Script::new(|at, _| match at {
            0 => ending(
                vec![
                    call(
                        "1",
                        "switch_mode",
                        &json!({ "target_mode_id": "agent", "explanation": "to write" }),
                    ),
                    // In the same message: judged before anybody could say yes.
                    call("2", "write", &json!({ "file_path": "early.txt", "contents": "x" })),
                ],
                EndReason::ToolUse,
            ),
            1 => ending(
                vec![call("3", "Write", &json!({ "file_path": "late.txt", "contents": "x" }))],
                EndReason::ToolUse,
            ),
            _ => ok(),
        });
        let mut stage = Stage::new(root.path(), &script, Settings::default(), TOOLS.to_vec());
        stage.say("go", Mode::Plan);
        stage
            .until("the question", |it| it.transcript.waiting().is_some())
            .await;
        let place = stage.transcript.waiting().expect("it is open");
        let document = stage.transcript.get(place).expect("it is there").id.clone();
        let response = ClarificationResponse {
            document_id: document,
            outcome: if answer.is_empty() {
                Dealt::Skipped
            } else {
                Dealt::Answered
            },
            answers: vec![Answer {
                question_id: "approval".to_owned(),
                selected_option_ids: vec![answer.to_owned()],
                free_text: None,
            }],
            reason: None,
        };
        stage.send(Command::Answer {
            turn: Turn(1),
            response,
        });
        stage.done(1).await;
        assert!(
            !root.path().join("early.txt").exists(),
            "{answer:?}: it was written before the yes"
        );
        assert_eq!(root.path().join("late.txt").exists(), changes, "{answer:?}");
        stage.check(answer).await;
    }
}

#[expect(clippy::unnecessary_wraps, reason = "what the table of a tool wants")]
fn nothing(_: &sheaf::tool::Input, _: &sheaf::tool::Context) -> Result<Vec<sheaf::tool::Access>, sheaf::tool::Fault> {
    Ok(Vec::new())
}

const fn fake(name: &'static str, class: Class, work: Work) -> Tool {
    Tool {
        name,
        aliases: &[],
        about: "",
        class,
        modes: &Mode::ALL,
        schema: || json!({ "type": "object", "properties": {}, "required": [] }),
        synonyms: &[],
        work,
    }
}

#[expect(clippy::unnecessary_wraps, reason = "what the promise of a tool gives")]
fn fine() -> Result<Outcome, sheaf::tool::Fault> {
    Ok(Outcome {
        text: "fine".to_owned(),
        ..Outcome::default()
    })
}

static PANICS: Tool = fake(
    "panics",
    Class::Reads,
    Work::Call {
        touches: nothing,
        run: |_, _| Box::pin(async { panic!("planted") }),
    },
);
static PANICS_EARLY: Tool = fake(
    "panics_early",
    Class::Reads,
    Work::Call {
        touches: |_, _| panic!("planted"),
        run: |_, _| Box::pin(async { fine() }),
    },
);
static PANICS_AT_ONCE: Tool = fake(
    "panics_at_once",
    Class::Reads,
    Work::Call {
        touches: nothing,
        run: |_, _| panic!("planted"),
    },
);
static PANICS_CHANGING: Tool = fake("panics_changing", Class::Writes, Work::Change(|_, _| panic!("planted")));
static PANICS_COMMANDING: Tool = fake(
    "panics_commanding",
    Class::Reads,
    Work::Command {
        touches: nothing,
        run: |_, _| Box::pin(async { panic!("planted") }),
    },
);
/// Never comes to an end and waits decently.
static HANGS: Tool = fake(
    "hangs",
    Class::Reads,
    Work::Call {
        touches: nothing,
        run: |_, _| Box::pin(std::future::pending()),
    },
);
/// Never comes to an end, keeps its thread busy, and looks at the sign that nobody waits.
static BUSY: Tool = fake(
    "busy",
    Class::Reads,
    Work::Call {
        touches: nothing,
        run: |_, context| {
            Box::pin(async move {
                while !context.stop.is_set() {
                    std::thread::sleep(Duration::from_millis(1));
                }
                fine()
            })
        },
    },
);
/// Works out a change for ever.
static PONDERS: Tool = fake(
    "ponders",
    Class::Writes,
    Work::Change(|_, _| Box::pin(std::future::pending())),
);
static CROWD: Tool = fake(
    "crowd",
    Class::Reads,
    Work::Call {
        touches: nothing,
        run: |_, _| Box::pin(crowd()),
    },
);
/// How many run beside each other, and the most that did.
static HERE: AtomicUsize = AtomicUsize::new(0);
static MOST: AtomicUsize = AtomicUsize::new(0);

async fn crowd() -> Result<Outcome, sheaf::tool::Fault> {
    let here = HERE.fetch_add(1, Ordering::SeqCst) + 1;
    MOST.fetch_max(here, Ordering::SeqCst);
    tokio::time::sleep(Duration::from_millis(5)).await;
    HERE.fetch_sub(1, Ordering::SeqCst);
    fine()
}

/// All that may go wrong beside all that is real.
fn tools() -> Vec<&'static Tool> {
    let fakes = [
        &PANICS,
        &PANICS_EARLY,
        &PANICS_AT_ONCE,
        &PANICS_CHANGING,
        &PANICS_COMMANDING,
        &HANGS,
        &BUSY,
        &PONDERS,
        &CROWD,
    ];
    fakes.into_iter().chain(TOOLS.iter().copied()).collect()
}

fn stage(script: &Arc<Script>) -> (tempfile::TempDir, tempfile::TempDir, Stage) {
    let outside = tempfile::tempdir().expect("a folder");
    let root = workspace(outside.path());
    let stage = Stage::new(root.path(), script, Settings::default(), tools());
    (outside, root, stage)
}

/// The results of the last message that has any.
fn results(script: &Script) -> Vec<String> {
    let asked = script.asked();
    let messages = asked.iter().flat_map(|it| it.messages.iter());
    let mut results = messages.filter_map(|it| match it {
        ModelMessage::Results(results) => Some(results),
        ModelMessage::User(_) | ModelMessage::Assistant(_) => None,
    });
    let last = results.next_back().expect("there are results");
    last.iter().map(|it| it.text.clone()).collect()
}

fn once(pieces: Vec<Piece>) -> Arc<Script> {
    let mut pieces = Some(pieces);
    Script::new(move |_, _| pieces.take().map_or_else(ok, |it| ending(it, EndReason::ToolUse)))
}

#[tokio::test]
async fn a_tool_that_breaks_down_fails_its_call_and_nothing_else() {
    let names = [
        "panics",
        "panics_early",
        "panics_at_once",
        "panics_changing",
        "panics_commanding",
    ];
    let mut pieces: Vec<Piece> = names.iter().map(|it| call(it, it, &json!({}))).collect();
    pieces.push(call("after", "read_file", &json!({ "target_file": "a.txt" })));
    let script = once(pieces);
    let (_outside, _root, mut stage) = stage(&script);
    stage.say("go", Mode::Agent);
    stage.done(1).await;
    assert_eq!(stage.finish(), FinishReason::Stop);
    let results = results(&script);
    let (last, broken) = results.split_last().expect("results");
    for (name, result) in names.iter().zip(broken) {
        let want = "Error [INTERNAL]: the tool broke down: planted";
        assert!(result.starts_with(want), "{name}: {result}");
    }
    assert!(last.contains("two"), "{last}");
    stage.check("panics").await;
}

#[tokio::test]
async fn fifty_calls_of_one_name_and_one_id_have_fifty_results_and_run_eight_at_a_time() {
    for id in ["same", ""] {
        MOST.store(0, Ordering::SeqCst);
        let script = once((0..50).map(|it| call(id, "crowd", &json!({ "nth": it }))).collect());
        let (_outside, _root, mut stage) = stage(&script);
        stage.say("go", Mode::Agent);
        stage.done(1).await;
        assert_eq!(results(&script), vec!["fine"; 50]);
        assert_eq!(MOST.load(Ordering::SeqCst), 8);
        let calls = stage.documents().iter().filter(|it| it.kind == Kind::ToolCall).count();
        assert_eq!(calls, 50);
        stage.check("fifty").await;
    }
}

/// What was called in a message that never came to its end is not carried out.
#[tokio::test]
async fn a_call_of_a_message_that_broke_off_never_runs() {
    let write = || call("1", "write", &json!({ "file_path": "new.txt", "contents": "x" }));
    let start = || Piece::CallStart {
        slot: 0,
        id: "1".to_owned(),
        name: "write".to_owned(),
    };
    let half = || Piece::CallArguments {
        slot: 0,
        fragment: "{\"file_path\": \"new.txt\", \"con".to_owned(),
    };
    let broke = |kind| Piece::Error(Failure::new(kind, "it broke"));
    let text = || Piece::Text("I write".to_owned());
    let cases = [
        (
            "cut in the arguments",
            vec![text(), start(), half(), broke(FailureKind::Interrupted)],
        ),
        (
            "cut behind a whole call",
            vec![text(), start(), write(), broke(FailureKind::Interrupted)],
        ),
        (
            "an error behind a whole call",
            vec![write(), broke(FailureKind::Garbled)],
        ),
        (
            "overloaded behind a whole call",
            vec![write(), broke(FailureKind::Overloaded)],
        ),
        ("no end at all behind a whole call", vec![write()]),
    ];
    for (name, pieces) in cases {
        let mut pieces = Some(pieces);
        let script = Script::new(move |_, _| pieces.take().map_or_else(ok, said));
        let (_outside, root, mut stage) = stage(&script);
        stage.say("go", Mode::Agent);
        stage.done(1).await;
        assert_ne!(stage.finish(), FinishReason::Stop, "{name}");
        assert!(stage.documents().iter().any(|it| it.kind == Kind::Error), "{name}");
        assert!(!root.path().join("new.txt").exists(), "{name}");
        stage.check(name).await;
        assert!(!root.path().join("new.txt").exists(), "{name}, later");
        let asked = script.asked();
        let told = &asked.last().expect("it was asked").messages;
        let is_call = |it: &ModelMessage| matches!(it, ModelMessage::Assistant(said) if said.iter().any(|it| matches!(it, Said::Call(_))));
        assert!(!told.iter().any(is_call), "{name}: the call is remembered");
    }
}

/// Whether a process is there that is no zombie.
fn is_alive(pid: &str) -> bool {
    let stat = fs::read_to_string(format!("/proc/{}/stat", pid.trim())).unwrap_or_default();
    stat.rsplit_once(") ")
        .is_some_and(|(_, rest)| !rest.starts_with(['Z', 'X']))
}

async fn until_dead(pid: &str, name: &str) {
    for _ in 0..2000 {
        if !is_alive(pid) {
            return;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    panic!("{name}: the command is still there");
}

/// A command that says who it is and then sleeps; its number stands in a file.
fn sleeper(folder: &Path) -> Piece {
    let file = folder.join("pid").display().to_string();
    let line = format!("echo $$ > '{file}'; echo begun; exec sleep 600");
    call(
        "1",
        "run_terminal_cmd",
        &json!({ "command": line, "is_background": false }),
    )
}

#[tokio::test]
async fn cancelling_in_any_phase_closes_everything_and_answers_every_call() {
    type Holds = fn(&Stage) -> bool;
    let is_asked: Holds = |it| !it.script.asked().is_empty();
    let has_text: Holds = |it| it.has_open(&Kind::Text);
    let is_waiting: Holds = |it| it.transcript.waiting().is_some();
    let has_call: Holds = |it| it.has_open(&Kind::ToolCall);
    let has_output: Holds = |it| {
        it.documents().iter().any(|it| {
            it.kind == Kind::TerminalCommand
                && it.is_open()
                && it.metadata.get("output").is_some_and(|it| it == "begun\n")
        })
    };
    let read = || call("0", "read_file", &json!({ "target_file": "a.txt" }));
    let form = json!({ "title": "t", "questions": [{ "id": "q", "prompt": "p", "options": [{ "id": "a", "label": "A" }, { "id": "b", "label": "B" }] }] });
    let cases: Vec<(&str, Vec<Piece>, bool, Holds)> = vec![
        ("before it is asked", vec![], false, |_| true),
        ("while it connects", vec![], false, is_asked),
        (
            "while it writes",
            vec![Piece::Text("so far".to_owned())],
            false,
            has_text,
        ),
        (
            "behind a whole call",
            vec![Piece::Text("so far".to_owned()), read()],
            false,
            has_text,
        ),
        (
            "while a change is worked out",
            vec![call("1", "ponders", &json!({})), read()],
            true,
            |it| it.script.asked().len() == 1 && it.script.polls.load(Ordering::Relaxed) >= 3,
        ),
        (
            "while an approval is open",
            vec![
                call(
                    "1",
                    "run_terminal_cmd",
                    &json!({ "command": "ls", "is_background": false }),
                ),
                read(),
            ],
            true,
            is_waiting,
        ),
        (
            "while a form is open",
            vec![read(), call("1", "ask", &form)],
            true,
            is_waiting,
        ),
        (
            "while a mode is asked for",
            vec![read(), call("1", "switch_mode", &json!({ "target_mode_id": "ask" }))],
            true,
            is_waiting,
        ),
        (
            "while a tool runs",
            vec![read(), call("1", "hangs", &json!({})), read()],
            true,
            has_call,
        ),
        (
            "while a tool keeps its thread",
            vec![call("1", "busy", &json!({})), read()],
            true,
            has_call,
        ),
        ("while a command runs", vec![], true, has_output),
    ];
    for (name, mut pieces, ends, holds) in cases {
        let trace = tempfile::tempdir().expect("a folder");
        let is_command = name == "while a command runs";
        if is_command {
            pieces = vec![sleeper(trace.path()), read()];
        }
        let mut first = Some(pieces);
        let script = Script::new(move |_, _| match first.take() {
            Some(pieces) if ends => ending(pieces, EndReason::ToolUse),
            Some(pieces) => said_and_silent(pieces),
            None => ok(),
        });
        let (_outside, _root, mut stage) = stage(&script);
        if is_command {
            stage.answer = Some("allow_once");
        }
        stage.say("go", Mode::Agent);
        stage.until(name, |it| it.ended() == 0 && holds(it)).await;
        stage.send(Command::Cancel);
        stage.done(1).await;
        assert_eq!(stage.finish(), FinishReason::Cancelled, "{name}");
        if is_command {
            let pid = fs::read_to_string(trace.path().join("pid")).unwrap();
            until_dead(&pid, name).await;
        }
        stage.check(name).await;
        assert_eq!(stage.finish(), FinishReason::Stop, "{name}: the next answer");
    }
}

#[tokio::test]
async fn when_the_consumer_goes_its_commands_end() {
    let trace = tempfile::tempdir().expect("a folder");
    let script = once(vec![sleeper(trace.path())]);
    let (_outside, _root, mut stage) = stage(&script);
    stage.answer = Some("allow_once");
    stage.say("go", Mode::Agent);
    let file = trace.path().join("pid");
    let has_begun = |it: &Stage| {
        it.has_open(&Kind::TerminalCommand) && fs::read_to_string(&file).is_ok_and(|it| it.ends_with('\n'))
    };
    stage.until("the command", has_begun).await;
    let pid = fs::read_to_string(&file).unwrap();
    assert!(is_alive(&pid));
    drop(stage.link.take());
    (&mut stage.agent).await.expect("it ends by itself");
    until_dead(&pid, "gone").await;
    let mut batch = Vec::new();
    while stage.follower.next(&mut batch).await {}
    stage.transcript.apply_all(&batch);
    assert!(stage.documents().iter().all(|it| !it.is_open()));
    assert_eq!(stage.finish(), FinishReason::Cancelled);
}

/// While tools run or the user thinks there is nothing to do: not for the driver and not for the stream that has ended.
#[tokio::test]
async fn whoever_waits_does_not_spin() {
    let form = json!({ "title": "t", "questions": [{ "id": "q", "prompt": "p", "options": [{ "id": "a", "label": "A" }, { "id": "b", "label": "B" }] }] });
    type Holds = fn(&Stage) -> bool;
    let has_call: Holds = |it| it.has_open(&Kind::ToolCall);
    let is_waiting: Holds = |it| it.transcript.waiting().is_some();
    for (name, piece, holds) in [
        ("a tool", call("1", "hangs", &json!({})), has_call),
        ("a question", call("1", "ask", &form), is_waiting),
    ] {
        let script = once(vec![piece]);
        let (_outside, _root, mut stage) = stage(&script);
        stage.say("go", Mode::Agent);
        stage.until(name, holds).await;
        // What is still on its way comes first.
        let mut quiet = 0;
        let mut last = stage.rounds.load(Ordering::Relaxed);
        while quiet < 100 {
            tokio::task::yield_now().await;
            std::thread::yield_now();
            let now = stage.rounds.load(Ordering::Relaxed);
            quiet = if now == last { quiet + 1 } else { 0 };
            last = now;
            assert!(now < 10_000, "{name}: it never comes to rest");
        }
        // Warming up and the like may wake it now and then.
        let polls = script.polls.load(Ordering::Relaxed);
        for _ in 0..20_000 {
            tokio::task::yield_now().await;
        }
        let more = stage.rounds.load(Ordering::Relaxed) - last;
        assert!(more < 20, "{name}: {more} rounds while there is nothing to do");
        assert_eq!(
            script.polls.load(Ordering::Relaxed),
            polls,
            "{name}: the stream that has ended was polled"
        );
        stage.send(Command::Cancel);
        stage.done(1).await;
        stage.check(name).await;
    }
}

#[tokio::test]
async fn what_is_said_meanwhile_joins_the_answer_or_waits_for_its_own() {
    let form = json!({ "title": "t", "questions": [{ "id": "q", "prompt": "p", "options": [{ "id": "a", "label": "A" }, { "id": "b", "label": "B" }] }] });
    let script = once(vec![call("1", "ask", &form)]);
    let (_outside, _root, mut stage) = stage(&script);
    let message = |text: &str| Submit {
        message: Message::user(text),
        mode: Mode::Agent,
        model: None,
    };
    stage.say("go", Mode::Agent);
    stage
        .until("the question", |it| it.transcript.waiting().is_some())
        .await;
    stage.send(Command::Submit(message("a turn of its own")));
    stage.send(Command::Steer(message("turn left")));
    // Its answer lets the turn go on.
    stage.answer = Some("allow_once");
    stage.done(2).await;
    let asked = script.asked();
    let shown: Vec<String> = asked.iter().map(|it| format!("{:?}", it.messages)).collect();
    let has = |at: usize, text: &str| shown[at].contains(text);
    assert_eq!(asked.len(), 3);
    assert_eq!(
        (has(0, "turn left"), has(1, "turn left"), has(2, "turn left")),
        (false, true, true)
    );
    assert_eq!(
        (has(1, "a turn of its own"), has(2, "a turn of its own")),
        (false, true)
    );
    assert!(
        matches!(asked[1].messages.last(), Some(ModelMessage::User(_))),
        "behind the results"
    );
    stage.check("steering").await;
}

#[tokio::test]
async fn limits_of_the_settings_ask_whether_to_go_on() {
    for (limit, is_calls) in [("requests", false), ("calls", true)] {
        let outside = tempfile::tempdir().expect("a folder");
        let root = workspace(outside.path());
        let mut settings = Settings::default();
        if is_calls {
            settings.agent.max_calls = 3;
        } else {
            settings.agent.max_requests = 3;
        }
        let script = Script::new(|at, _| {
            // A call that differs each time is no circle.
            let arguments = json!({ "pattern": format!("total{at}") });
            ending(vec![call(&at.to_string(), "grep", &arguments)], EndReason::ToolUse)
        });
        let mut stage = Stage::new(root.path(), &script, settings, TOOLS.to_vec());
        stage.say("go", Mode::Agent);
        stage
            .until("the question", |it| it.transcript.waiting().is_some())
            .await;
        assert_eq!(script.asked().len(), 3, "{limit}");
        let answer = |document, word: &str| ClarificationResponse {
            document_id: document,
            outcome: Dealt::Answered,
            answers: vec![Answer {
                question_id: "go_on".to_owned(),
                selected_option_ids: vec![word.to_owned()],
                free_text: None,
            }],
            reason: None,
        };
        let place = stage.transcript.waiting().expect("it is open");
        let document = stage.transcript.get(place).expect("it is there").id.clone();
        stage.send(Command::Answer {
            turn: Turn(1),
            response: answer(document.clone(), "yes"),
        });
        stage
            .until("the next question", |it| {
                it.transcript
                    .waiting()
                    .is_some_and(|at| it.transcript.get(at).is_some_and(|it| it.id != document))
            })
            .await;
        assert_eq!(script.asked().len(), 6, "{limit}: as many again");
        let place = stage.transcript.waiting().expect("it is open");
        let document = stage.transcript.get(place).expect("it is there").id.clone();
        stage.send(Command::Answer {
            turn: Turn(1),
            response: answer(document, "no"),
        });
        stage.done(1).await;
        assert_eq!(stage.finish(), FinishReason::MaxTurns, "{limit}");
        for request in script.asked() {
            check_paired(limit, &request.messages);
        }
    }
}

#[tokio::test]
async fn what_is_said_in_between_brings_what_it_points_at_and_its_mode() {
    let folder = tempfile::tempdir().expect("a folder");
    fs::write(folder.path().join("a.txt"), "one\ntwo\nthree\n").expect("written");
    let (go, wait) = tokio::sync::watch::channel(false);
    let script = Script::new(move |at, _| {
        if at > 0 {
            return ok();
        }
        let mut wait = wait.clone();
        let end = async move {
            wait.wait_for(|it| *it).await.expect("the test is there");
            Piece::End(EndReason::Stop)
        };
        let begin = futures::stream::iter([Piece::Text("I look.".to_owned())]);
        Box::pin(begin.chain(futures::stream::once(end)))
    });
    let mut stage = Stage::new(folder.path(), &script, Settings::default(), TOOLS.to_vec());
    stage.say("go", Mode::Agent);
    stage
        .until("a word", |it| {
            it.events.iter().any(|it| matches!(it, Event::ContentDelta { .. }))
        })
        .await;
    stage.send(Command::Steer(Submit {
        message: Message::user("mind @a.txt:2-2, and plan first"),
        mode: Mode::Plan,
        model: None,
    }));
    go.send_replace(true);
    // It is heard in this answer or, where that ended too soon, as a message of its own.
    stage
        .until("an answer to it", |it| {
            it.script.asked().len() == 2 && !it.transcript.is_running()
        })
        .await;
    let asked = script.asked();
    let last = format!("{:?}", asked[1].messages.last());
    assert!(last.contains("2|two") && !last.contains("1|one"), "{last}");
    assert!(last.contains("Plan mode is on") || last.contains("plan mode"), "{last}");
    let names: Vec<&str> = asked[1].tools.iter().map(|it| it.name.as_str()).collect();
    assert!(names.contains(&"create_plan") && !names.contains(&"write"), "{names:?}");
    stage.check("said in between").await;
}

/// The texts of everything that a request tells the model.
fn told(request: &ModelRequest) -> String {
    format!("{:?}", request.messages)
}

#[tokio::test]
async fn what_the_user_runs_is_a_document_and_told_only_where_that_is_wanted() {
    let script = Script::new(|_, _| ok());
    let (_outside, _root, mut stage) = stage(&script);
    stage.answer = Some("allow_once");
    let run = |stage: &Stage, line: &str, is_shown: bool| {
        stage.send(Command::Run {
            submit: Submit {
                message: Message::user(format!("! {line}")),
                mode: Mode::Ask,
                model: None,
            },
            line: line.to_owned(),
            is_shown,
        });
    };
    run(&stage, "echo shown-$((40 + 2))", true);
    stage.done(1).await;
    // Where nothing holds commands, the user's own are asked about like all others.
    let documents = stage.documents();
    let document = documents.last().expect("the command");
    assert_eq!(document.kind, Kind::TerminalCommand);
    assert_eq!(document.metadata["command"], "echo shown-$((40 + 2))");
    assert_eq!(document.metadata["exitCode"], 0, "{document:?}");
    assert!(
        document.metadata["output"].to_string().contains("shown-42"),
        "{document:?}"
    );
    assert_eq!(stage.finish(), FinishReason::Stop);
    run(&stage, "echo hidden-$((40 + 2))", false);
    stage.done(2).await;
    assert!(script.asked().is_empty(), "the model is not asked");
    stage.say("what did it print?", Mode::Agent);
    stage.done(3).await;
    let asked = script.asked();
    let told = told(asked.last().expect("it was asked"));
    assert!(told.contains("shown-42") && !told.contains("hidden"), "{told}");
    check_paired(
        "after commands of the user's",
        &asked.last().expect("it was asked").messages,
    );
}

#[tokio::test]
async fn a_rejected_change_is_taken_back_where_it_still_stands() {
    let script = Script::new(|at, _| match at {
        0 => ending(
            vec![call("r", "read_file", &json!({ "target_file": "a.txt" }))],
            EndReason::ToolUse,
        ),
        1 => ending(
            vec![call(
                "e",
                "search_replace",
                &json!({ "file_path": "a.txt", "old_string": "two", "new_string": "2" }),
            )],
            EndReason::ToolUse,
        ),
        _ => ok(),
    });
    let (_outside, root, mut stage) = stage(&script);
    stage.answer = Some("allow_once");
    let file = root.path().join("a.txt");
    let before = fs::read_to_string(&file).expect("it is there");
    stage.say("change it", Mode::Agent);
    stage.done(1).await;
    assert_ne!(fs::read_to_string(&file).expect("it is there"), before);
    let documents = stage.documents();
    let edit = documents.iter().find(|it| it.kind == Kind::FileEdit).expect("an edit");
    let reject = Command::Update {
        turn: Turn(1),
        document: edit.id.clone(),
        metadata: json!({ "applied": "rejected" }).as_object().expect("an object").clone(),
    };
    // Lines that came above it meanwhile do not matter; what it wrote does.
    let changed = fs::read_to_string(&file).expect("it is there");
    fs::write(&file, format!("above\n{changed}")).expect("it is written");
    stage.send(reject.clone());
    let is_rejected =
        |it: &Event| matches!(it, Event::DocumentUpdate { metadata, .. } if metadata["applied"] == "rejected");
    stage
        .until("the rejection", |it| it.events.iter().any(is_rejected))
        .await;
    assert_eq!(
        fs::read_to_string(&file).expect("it is there"),
        format!("above\n{before}")
    );
    stage.send(reject);
    let is_kept =
        |it: &Event| matches!(it, Event::Notice(it) if it.code == "not-taken-back" && it.message.contains("already"));
    stage.until("a word about it", |it| it.events.iter().any(is_kept)).await;
    assert_eq!(
        fs::read_to_string(&file).expect("it is there"),
        format!("above\n{before}")
    );
}
