//! The embedded agent over its own runner, with the real tools in a real folder and a model that is a script: what a mode
//! permits is all that happens, and whatever breaks, every call has one result and every document an end.

mod apply;
mod broken;
mod checks;
mod hunks;
mod limits;
mod modes;
mod talk;

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
    agent::runner::{self, Setup},
    config::{Environment, Settings},
    journal::{Follower, Log},
    link::{About, Asker, Link as _, local::Local},
    models::{
        Effort, EndReason, Failure, FailureKind, Model, ModelMessage, ModelRequest, Piece, PieceStream, Promise,
        Provider, Roles, Said,
    },
    protocol::{
        ClarificationResponse, Command, Document, Event, FinishReason, Kind, Message, Mode, Outcome as Dealt, Position,
        QuestionAnswer, Submit, Turn,
    },
    sandbox::Workspace,
    tools::{Class, Outcome, Tool, ToolSet, Work, built_in},
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
    /// How often the runner was polled.
    rounds: Arc<AtomicUsize>,
    script: Arc<Script>,
    /// What every approval is answered with, as long as anything is.
    answer: Option<&'static str>,
    answered: Vec<String>,
}

/// How long nothing may come before nothing will.
const PATIENCE: Duration = Duration::from_mins(1);

impl Stage {
    fn new(root: &Path, script: &Arc<Script>, settings: Settings, tools: ToolSet) -> Self {
        let log = Log::new();
        let (link, inbox) = Local::new(Arc::clone(&log), About::default());
        let setup = Setup {
            servers: None,
            provider: Arc::clone(script) as Arc<dyn Provider>,
            model: "m".to_owned(),
            conversation: "conv_1".into(),
            asker: Asker::Here,
            workspace: Some(Arc::new(Workspace::open(root).expect("a workspace"))),
            roles: Arc::new(Roles::new(&settings, &Environment::default())),
            index: Arc::default(),
            embeddings: Arc::default(),
            settings: Arc::new(settings),
            tools,
            paths: None,
            hold: sheaf::link::SandboxStatus::default(),
        };
        let rounds = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&rounds);
        let mut runner = Box::pin(runner::run(setup, Arc::clone(&log), inbox));
        let agent = tokio::spawn(std::future::poll_fn(move |cx| {
            counted.fetch_add(1, Ordering::Relaxed);
            runner.as_mut().poll(cx)
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
        let Some(place) = self.transcript.open_question() else {
            return;
        };
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
                answers: vec![QuestionAnswer {
                    question_id: "approval".to_owned(),
                    selected_option_ids: vec![answer.to_owned()],
                    free_text: None,
                    hunks: Vec::new(),
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

fn once(pieces: Vec<Piece>) -> Arc<Script> {
    let mut pieces = Some(pieces);
    Script::new(move |_, _| pieces.take().map_or_else(ok, |it| ending(it, EndReason::ToolUse)))
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
