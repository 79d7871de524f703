//! The screen over HTTP is cell for cell what the local link shows.
//!
//! ```text
//! events ─► log ─► desks                                                   three widths, local
//!      └──► log ─► gateway (here) ─► `sheaf serve --gateway` (the real binary) ─► http link ─► desks
//! ```
//!
//! One event at a time goes in at the left; the next one follows when the pictures at the right are the same.

use std::{
    future::Future,
    pin::Pin,
    sync::{Arc, mpsc},
    time::{Duration, Instant},
};

use serde_json::{Value, json};
use sheaf::{
    config::{KeySource, Secret},
    journal::{Follower, Log},
    link::{
        About, AskError, Link,
        http::{self, Http},
        replay::{Audience, Recording, Replay, Speed},
    },
    net::client::Peer,
    os::long_text,
    protocol::{
        ClarificationResponse, Command, DocumentStart, Done, Entry, Event, Kind, Message, Mode, Outcome, Position,
        Query, QuestionAnswer, Reply, ResponseStart, Submit, Turn, Usage, View,
    },
    server::{Limits, Server, ServerOptions},
    transcript::Transcript,
    tui::msg::Msg,
};

use crate::{
    model::{Model, Script},
    print::{home, sheaf, with_model},
    pty::{Seen, Start},
    serve::{Gateway, TOKEN},
    test_app::{TestApp, delta, end, start},
};

/// Only a failure waits for so long.
const PATIENCE: Duration = Duration::from_secs(30);

const WIDTHS: [u16; 3] = [40, 80, 132];

/// A link whose log the test writes, once the message stands in it: what came before that would be nobody's answer.
struct Scripted(Arc<Log>, std::sync::Mutex<mpsc::Sender<Arc<Log>>>);

impl Link for Scripted {
    fn log(&self) -> &Arc<Log> {
        &self.0
    }

    fn send(&self, command: Command) {
        if let Command::Submit(submit) = command {
            self.0.append(1, Event::UserMessage(submit.message));
            let begun = self.1.lock().expect("no test panics with it");
            begun.send(Arc::clone(&self.0)).ok();
        }
    }

    fn about(&self) -> About {
        About::default()
    }

    fn ask(&self, _: Query) -> Pin<Box<dyn Future<Output = Result<Reply, AskError>> + Send>> {
        Box::pin(async {
            Err(AskError::Unsupported {
                peer: "script".to_owned(),
            })
        })
    }
}

fn desks() -> Vec<TestApp> {
    WIDTHS.iter().map(|width| TestApp::new(*width, 50)).collect()
}

/// What the http link has said, shown as it comes.
struct Distant {
    link: Http,
    follower: Follower,
    desks: Vec<TestApp>,
}

impl Distant {
    fn new(gateway: &Gateway) -> Self {
        let url = format!("http://{}", gateway.address).parse().expect("an address");
        let settings = http::Settings {
            token: KeySource::Given(Secret::new(TOKEN)),
            ..http::Settings::new(Peer::new(url))
        };
        let link = Http::start(settings, Log::new()).expect("a client");
        Self {
            follower: link.log().follow(Position(0)),
            link,
            desks: desks(),
        }
    }

    fn submit(&self, text: &str) {
        self.link.send(Command::Submit(Submit {
            message: Message::user(text),
            mode: Mode::Agent,
            model: None,
        }));
    }

    /// Shows what has come. Clocks differ, and what a connection is doing only one side has to say.
    fn show(&mut self) {
        let mut batch = Vec::new();
        self.follower.take(&mut batch);
        for entry in batch {
            if matches!(entry.event, Event::Progress(_) | Event::Title(_)) {
                continue;
            }
            for desk in &mut self.desks {
                let entry = Entry {
                    at_ms: desk.app.now_ms,
                    ..(*entry).clone()
                };
                desk.take(Msg::Entries(vec![Arc::new(entry)]));
            }
        }
    }

    /// Waits until every picture is as `local` has it.
    async fn until_same(&mut self, local: &[TestApp], behind: &str) {
        let since = Instant::now();
        loop {
            self.show();
            let differs = self
                .desks
                .iter()
                .zip(local)
                .find(|(it, local)| it.painted() != local.painted());
            let Some((distant, local)) = differs else { return };
            assert!(
                since.elapsed() < PATIENCE,
                "behind {behind}\n=== over HTTP\n{}\n=== local\n{}",
                distant.picture(),
                local.picture()
            );
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }
}

fn append(id: &str, metadata: Value, text: &str) -> Event {
    Event::MetadataDelta {
        document: id.into(),
        metadata: metadata.as_object().cloned().unwrap_or_default(),
        append: if text.is_empty() {
            Vec::new()
        } else {
            vec![("output".to_owned(), text.to_owned())]
        },
    }
}

fn numbered(sequence: u64, event: Event) -> Event {
    match event {
        Event::DocumentStart(it) => Event::DocumentStart(DocumentStart {
            sequence: Some(sequence),
            ..it
        }),
        other => other,
    }
}

/// Every kind and every event, also two documents at once.
fn script() -> Vec<Event> {
    let todos = json!([
        { "id": "a", "content": "Read the cart", "status": "completed", "dependencies": [] },
        { "id": "b", "content": "Write the discount", "status": "in_progress", "dependencies": ["a"] },
    ]);
    let asked = json!({ "kind": "question", "questions": [
        { "id": "q1", "text": "May codes be combined?", "options": [
            { "id": "one", "label": "Only one code" }, { "id": "many", "label": "Any number" },
        ] },
    ] });
    let mut answered = asked.clone();
    answered["outcome"] = "answered".into();
    answered["answers"] = json!([{ "questionId": "q1", "selectedOptionIds": ["one"] }]);
    let edit = json!({ "filePath": "src/cart.rs", "operation": "edit", "language": "rust", "toolCallId": "call_3",
        "toolName": "edit_file", "applied": "applied", "hunk": { "index": 1, "count": 1 },
        "diff": { "oldString": "    pub items: Vec<Item>,", "newString": "    pub items: Vec<Item>,\n    pub code: Option<Code>,",
                  "startLine": 9, "endLine": 9 } });
    let command = json!({ "command": "cargo test", "workingDirectory": "/work", "permissions": [], "toolCallId": "call_4",
        "state": "completed", "exitCode": 0, "output": "\u{1b}[32mok\u{1b}[0m 1\nok 2\n", "duration_ms": 900 });
    let approval = json!({ "kind": "approval", "toolCallId": "call_5",
        "subject": { "type": "terminal_command", "content": null, "metadata": { "command": "git push", "permissions": ["network"] } },
        "questions": [{ "id": "approval", "text": "Allow `git push`?", "allowFreeText": true, "options": [
            { "id": "allow_once", "label": "Allow once" }, { "id": "reject_once", "label": "Reject" } ] }] });
    let mut refused = approval.clone();
    refused["outcome"] = "answered".into();
    refused["answers"] =
        json!([{ "questionId": "approval", "selectedOptionIds": ["reject_once"], "freeText": "not now" }]);
    let found = json!({ "status": "success", "data": "src/cart.rs:21: pub fn total" });
    let mut events = vec![
        Event::UserMessage(Message::user("Add a **discount** code 語漢字")),
        Event::ResponseStart(ResponseStart {
            id: Some("chat_1".into()),
            conversation_id: Some("conv_1".into()),
            model: Some("model".to_owned()),
            mode: Some(Mode::Agent),
            created: Some("2026-03-02T08:15:00Z".to_owned()),
            ..ResponseStart::default()
        }),
        Event::ThinkingDelta {
            delta: "One code per cart, ".to_owned(),
        },
        Event::ThinkingDelta {
            delta: "so an Option.".to_owned(),
        },
        numbered(1, start("doc_001", "text", json!({ "format": "markdown" }))),
        delta("doc_001", "I will **look"),
        delta("doc_001", "** first:\n\n- one\n- two\n\n| a | 語 |\n"),
        delta("doc_001", "|---|---|\n| 1 | 👩‍👩‍👧 |\n"),
        end(
            "doc_001",
            Some("I will **look** first:\n\n- one\n- two\n\n| a | 語 |\n|---|---|\n| 1 | 👩‍👩‍👧 |\n"),
            json!({ "format": "markdown" }),
        ),
        numbered(
            2,
            start(
                "doc_002",
                "tool_call",
                json!({ "toolName": "grep", "toolCallId": "call_1" }),
            ),
        ),
        numbered(
            3,
            start(
                "doc_003",
                "tool_call",
                json!({ "toolName": "web_search", "toolCallId": "call_2" }),
            ),
        ),
        Event::ToolCallStart {
            document: "doc_002".into(),
            tool_name: "grep".to_owned(),
            tool_call_id: Some("call_1".to_owned()),
        },
        Event::ToolCallArguments {
            document: "doc_002".into(),
            arguments: json!({ "pattern": "fn total", "path": "src" }),
        },
        Event::ToolCallArguments {
            document: "doc_003".into(),
            arguments: json!({ "search_term": "rust discount" }),
        },
        Event::ToolResult {
            document: "doc_003".into(),
            result: json!({ "status": "error", "data": "no network" }),
            duration_ms: Some(40),
        },
        end(
            "doc_003",
            None,
            json!({ "toolName": "web_search", "toolCallId": "call_2", "arguments": { "search_term": "rust discount" },
                    "result": { "status": "error", "data": "no network" }, "duration_ms": 40 }),
        ),
        Event::ToolResult {
            document: "doc_002".into(),
            result: found.clone(),
            duration_ms: Some(18),
        },
        end(
            "doc_002",
            None,
            json!({ "toolName": "grep", "toolCallId": "call_1", "arguments": { "pattern": "fn total", "path": "src" },
                    "result": found, "duration_ms": 18 }),
        ),
        numbered(
            4,
            start(
                "doc_004",
                "code_reference",
                json!({ "filePath": "src/cart.rs", "startLine": 21, "endLine": 22, "language": "rust" }),
            ),
        ),
        delta("doc_004", "pub fn total(&self) -> Money {\n"),
        delta("doc_004", "    self.sum()\n"),
        end(
            "doc_004",
            Some("pub fn total(&self) -> Money {\n    self.sum()\n"),
            json!({ "filePath": "src/cart.rs", "startLine": 21, "endLine": 22, "language": "rust" }),
        ),
        numbered(5, start("doc_005", "clarification", json!({ "kind": "question" }))),
        delta("doc_005", "One thing first:"),
        append("doc_005", asked, ""),
        end("doc_005", Some("One thing first:"), answered),
        numbered(
            6,
            start(
                "doc_006",
                "code_block",
                json!({ "language": "rust", "purpose": "new_code" }),
            ),
        ),
        delta("doc_006", "pub struct Code {\n    pub percent: u8,\n}"),
        end(
            "doc_006",
            Some("pub struct Code {\n    pub percent: u8,\n}"),
            json!({ "language": "rust", "purpose": "new_code" }),
        ),
        numbered(
            7,
            start(
                "doc_007",
                "file_edit",
                json!({ "filePath": "src/cart.rs", "operation": "edit", "language": "rust", "toolCallId": "call_3",
                        "toolName": "edit_file" }),
            ),
        ),
        delta("doc_007", "    pub items: Vec<Item>,\n"),
        delta("doc_007", "    pub code: Option<Code>,"),
        end(
            "doc_007",
            Some("    pub items: Vec<Item>,\n    pub code: Option<Code>,"),
            edit,
        ),
        numbered(
            8,
            start(
                "doc_008",
                "terminal_command",
                json!({ "command": "cargo test", "workingDirectory": "/work", "permissions": [], "toolCallId": "call_4",
                        "state": "running" }),
            ),
        ),
        append("doc_008", json!({}), "\u{1b}[32mok\u{1b}"),
        append("doc_008", json!({}), "[0m 1\n"),
        append("doc_008", json!({}), "ok 2\n"),
        end("doc_008", None, command),
        Event::DocumentUpdate {
            document: "doc_007".into(),
            metadata: json!({ "applied": "rejected" })
                .as_object()
                .cloned()
                .unwrap_or_default(),
        },
        numbered(
            9,
            start(
                "doc_009",
                "plan",
                json!({ "title": "Discount codes", "overview": "Carts accept one code.", "format": "markdown" }),
            ),
        ),
        delta("doc_009", "# Files\n\n- `src/cart.rs`"),
        end(
            "doc_009",
            Some("# Files\n\n- `src/cart.rs`"),
            json!({ "title": "Discount codes", "overview": "Carts accept one code.", "format": "markdown", "todos": todos }),
        ),
        numbered(10, start("doc_010", "todo_update", json!({}))),
        end(
            "doc_010",
            None,
            json!({ "todos": [{ "id": "b", "status": "completed" }], "merge": true }),
        ),
        numbered(
            11,
            start(
                "doc_011",
                "clarification",
                json!({ "kind": "approval", "toolCallId": "call_5" }),
            ),
        ),
        delta("doc_011", "Run this command?"),
        append("doc_011", approval, ""),
        end("doc_011", Some("Run this command?"), refused),
        numbered(
            12,
            start(
                "doc_012",
                "error",
                json!({ "errorCode": "EDIT_NO_MATCH", "source": "edit_file" }),
            ),
        ),
        delta("doc_012", "The text is not there"),
        end(
            "doc_012",
            Some("The text is not there"),
            json!({ "errorCode": "EDIT_NO_MATCH", "source": "edit_file", "details": "looked for `x`" }),
        ),
        numbered(13, start("doc_013", "hologram", json!({ "depth": 3 }))),
        delta("doc_013", "of the future"),
        end(
            "doc_013",
            Some("of the future"),
            json!({ "depth": 3, "layers": [1, { "a": null }] }),
        ),
        Event::Unknown {
            name: "some_future_event".to_owned(),
            data: json!({ "x": 1 }),
        },
        numbered(14, start("doc_014", "text", json!({ "format": "plain" }))),
        delta("doc_014", "Done *as it stands*."),
        end("doc_014", Some("Done *as it stands*."), json!({ "format": "plain" })),
        Event::Done(Done {
            usage: Some(Usage {
                prompt_tokens: 1180,
                completion_tokens: 240,
                total_tokens: 1420,
            }),
            status: Some(sheaf::protocol::Status::Completed),
            finish_reason: Some(sheaf::protocol::FinishReason::Stop),
            duration_ms: Some(3900),
            tool_call_count: Some(2),
            turn_count: Some(1),
            ..Done::default()
        }),
    ];
    // Kinds that have no document of their own above.
    let starts = |it: &Event, kind: &str| matches!(it, Event::DocumentStart(it) if it.kind.as_str() == kind);
    for (at, kind) in Kind::KNOWN.iter().enumerate() {
        if !events.iter().any(|it| starts(it, kind)) {
            let id = format!("doc_other_{at}");
            let sequence = 100 + at as u64;
            let rest = [
                numbered(sequence, start(&id, kind, json!({}))),
                end(&id, None, json!({})),
            ];
            let before_done = events.len() - 1;
            events.splice(before_done..before_done, rest);
        }
    }
    events
}

/// A gateway in this very process; each link that it opens is told.
fn gateway_here() -> (std::net::SocketAddr, mpsc::Receiver<Arc<Log>>) {
    let (opened, links) = mpsc::channel();
    let opened = std::sync::Mutex::new(opened);
    let server = Server::bind(ServerOptions {
        listen: "127.0.0.1:0".to_owned(),
        token: Secret::new(TOKEN),
        is_token_given: true,
        allow_host: Vec::new(),
        allow_origin: Vec::new(),
        max_streams: 4,
        store: None,
        linger: std::time::Duration::ZERO,
        grace: std::time::Duration::ZERO,
        models: Vec::new(),
        tools: Vec::new(),
        can_undo: false,
        open: Box::new(move |_, log| {
            let begun = opened.lock().expect("no test panics with it").clone();
            Ok(Arc::new(Scripted(log, std::sync::Mutex::new(begun))))
        }),
        log_access: Box::new(|_| {}),
        limits: Limits::default(),
    })
    .expect("a port");
    let address = server.address();
    tokio::spawn(server.run(std::future::pending()));
    (address, links)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_event_looks_the_same_from_afar() {
    looks_the_same_from_afar().await;
    // And where every text of more than a few letters lies in a file, which other tests may meet meanwhile.
    let folder = home();
    long_text::SpillPolicy::in_folder(folder.path().join("texts"))
        .with_text_bytes(3)
        .apply();
    looks_the_same_from_afar().await;
    long_text::SpillPolicy::none().apply();
}

async fn looks_the_same_from_afar() {
    let script = script();
    let kinds = script.iter().filter_map(|it| match it {
        Event::DocumentStart(start) => Some(start.kind.clone()),
        _ => None,
    });
    let kinds: Vec<_> = kinds.collect();
    for kind in Kind::KNOWN {
        assert!(kinds.contains(&Kind::parse(kind)), "the script has no {kind}");
    }
    let home = home();
    let (here, links) = gateway_here();
    let mut command = sheaf(home.path());
    command.env("SHEAF_TOKEN", TOKEN);
    let gateway = Gateway::start(command, &["--gateway", &format!("http://{here}")]);
    let mut distant = Distant::new(&gateway);
    let mut local = desks();
    let mut pictures = vec![Vec::new(); WIDTHS.len()];
    // The second turn has a history, which both gateways hear of anew.
    for turn in 1..=2 {
        let mut log = None;
        for (at, event) in script.iter().enumerate() {
            if let Event::UserMessage(message) = event {
                distant.submit(&message.content);
                log = Some(links.recv_timeout(PATIENCE).expect("the message arrives"));
            } else if let Some(log) = &log {
                log.append(1, event.clone());
            }
            for (desk, pictures) in local.iter_mut().zip(&mut pictures) {
                desk.events([event.clone()]);
                pictures.push(desk.painted());
            }
            let behind = format!("event {at} of turn {turn}, {event:?}");
            distant.until_same(&local, &behind).await;
        }
    }
    // Most events can be seen: pictures that never change would be the same, too.
    for pictures in &mut pictures {
        pictures.sort();
        pictures.dedup();
        assert!(
            pictures.len() > script.len(),
            "{} of {}",
            pictures.len(),
            2 * script.len()
        );
    }
}

/// Plays a recording to its end, choosing the last option of every question.
async fn play(link: &dyn Link, turns: usize) -> (Vec<Arc<Entry>>, Transcript) {
    let mut follower = link.log().follow(Position(0));
    let mut transcript = Transcript::default();
    let mut seen = Vec::new();
    for turn in 1..=turns {
        link.send(Command::Submit(Submit {
            message: Message::user(format!("message {turn}")),
            mode: Mode::Agent,
            model: None,
        }));
        let mut answered = Vec::new();
        while transcript.exchanges.len() < turn || transcript.is_running() {
            let mut batch = Vec::new();
            let more = tokio::time::timeout(PATIENCE, follower.next(&mut batch)).await;
            assert!(more.expect("it goes on"), "the log ended");
            transcript.apply_all(&batch);
            seen.extend(batch);
            let Some(place) = transcript.open_question() else {
                continue;
            };
            let Some(document) = transcript.get(place).filter(|it| it.is_open()) else {
                continue;
            };
            let View::Clarification(asked) = document.view() else {
                continue;
            };
            if answered.contains(&document.id) {
                continue;
            }
            answered.push(document.id.clone());
            let answers = asked.questions.iter().map(|it| QuestionAnswer {
                question_id: it.id.to_owned(),
                selected_option_ids: it.options.last().map(|it| it.id.to_owned()).into_iter().collect(),
                free_text: None,
                hunks: Vec::new(),
            });
            link.send(Command::Answer {
                turn: Turn(turn as u32),
                response: ClarificationResponse {
                    document_id: document.id.clone(),
                    outcome: Outcome::Answered,
                    answers: answers.collect(),
                    reason: None,
                },
            });
        }
        assert!(
            turn == 2 || !answered.is_empty(),
            "turn {turn} of {} asks: {:#?}",
            link.about().peer,
            transcript.exchanges.last().map(|it| it.response.to_json())
        );
    }
    (seen, transcript)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_tour_can_be_taken_over_http() {
    let path = format!("{}/assets/tour/tour.jsonl", env!("CARGO_MANIFEST_DIR"));
    let recording = Recording::read("the tour", &std::fs::read(&path).expect("it is there")).expect("it is one");
    let home = home();
    let gateway = Gateway::replay(home.path(), &path);
    let distant = Distant::new(&gateway);
    let (from_afar, distant) = play(&distant.link, 3).await;
    let (from_here, local) = play(&Replay::start(&recording, Speed::AtOnce, Audience::Asking), 3).await;
    for (distant, local) in distant.exchanges.iter().zip(&local.exchanges) {
        assert_eq!(
            distant.response.documents_json(),
            local.response.documents_json(),
            "turn {}",
            local.turn
        );
        assert!(distant.response.notices.is_empty(), "{:?}", distant.response.notices);
        assert_eq!(distant.response.usage, local.response.usage);
    }
    let rejected = distant.exchanges[2].response.get(&"doc_013".into()).expect("the push");
    assert_eq!(rejected.metadata["state"], "rejected", "the answers count");
    for width in WIDTHS {
        let show = |entries: &[Arc<Entry>]| {
            let mut desk = TestApp::new(width, 50);
            let entries = entries
                .iter()
                .filter(|it| !matches!(it.event, Event::Progress(_) | Event::Title(_)));
            let at_ms = desk.app.now_ms;
            let entries = entries.map(|it| {
                Arc::new(Entry {
                    at_ms,
                    ..(**it).clone()
                })
            });
            desk.take(Msg::Entries(entries.collect()));
            desk
        };
        let (afar, here) = (show(&from_afar), show(&from_here));
        assert_eq!(afar.picture(), here.picture());
        assert_eq!(afar.painted(), here.painted());
    }
}

/// A cell as a person sees it: the colour of a blank is not to be seen.
fn visible(cell: &vt100::Cell) -> String {
    let ink = (!cell.contents().trim().is_empty()).then(|| (cell.fgcolor(), cell.bold(), cell.dim(), cell.italic()));
    let under = (cell.bgcolor(), cell.inverse(), cell.underline());
    format!("{} {ink:?} {under:?}", cell.contents().trim())
}

/// The answer cell for cell, from its first document to the composer. The time above it may be another minute.
fn answer(seen: &Seen) -> Vec<String> {
    let screen = seen.screen();
    let (Some(first), Some(end)) = (seen.line_of("1.1"), seen.line_of("── agent ─")) else {
        return Vec::new();
    };
    let places = (first..end).flat_map(|y| (0..screen.size().1.get()).map(move |x| (y, x)));
    places.filter_map(|(y, x)| screen.cell(y, x)).map(visible).collect()
}

/// Whether code has its colours, which come a moment after its text: a keyword is not like a name.
fn is_coloured(seen: &Seen) -> bool {
    let colour = |y, x| seen.screen().cell(y, x).map(|it| format!("{:?}", it.fgcolor()));
    ["pub fn total()", "let 語 = 1;"].iter().all(|code| {
        let Some(y) = seen.line_of(code) else { return false };
        let x = seen.line(y).find(code).map_or(0, |at| at as u16);
        // The marks to the left take more bytes than columns; both are blank here.
        colour(y, x) != colour(y, x + code.len() as u16 - 4)
    })
}

#[test]
fn the_program_shows_the_same_answer_directly_and_over_a_gateway() {
    let text = "# Look\n\nUse **one** code:\n\n```12:13:src/cart.rs\npub fn total()\n```\n\nand\n\n```rust\nlet 語 = 1;\n```\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\nDone.";
    let model = Model::with([Script::says(text)]);
    let home = home();
    let gateway = Gateway::start(with_model(home.path(), &model), &[]);
    let url = format!("http://{}", gateway.address);
    for (columns, rows) in [(60, 40), (100, 40), (140, 50)] {
        let base = format!("http://{}/v1", model.address);
        let local = Start::new(&[])
            .with("OPENAI_BASE_URL", &base)
            .with("OPENAI_MODEL", "scripted");
        let distant = Start::new(&["--gateway", &url]).with("SHEAF_TOKEN", TOKEN);
        let screens = [local, distant].map(|it| it.size(columns, rows).run());
        for screen in &screens {
            screen.wait_for("Ask anything");
            screen.send("how?\r");
            screen.wait_for("Done.");
            screen.wait_until("the answer is over", |seen| {
                !["agent ◐", "plan ◐", "ask ◐", "debug ◐"]
                    .iter()
                    .any(|it| seen.shows(it))
            });
        }
        let [local, distant] = &screens;
        let since = Instant::now();
        loop {
            let (here, afar) = (local.look(answer), distant.look(answer));
            if local.look(is_coloured) && here == afar {
                break;
            }
            assert!(
                since.elapsed() < PATIENCE,
                "{:?}\n{}\n{}",
                here.iter().zip(&afar).find(|(here, afar)| here != afar),
                local.picture(),
                distant.picture()
            );
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}
