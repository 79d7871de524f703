//! Whatever waits, words that are typed are words: they end in the draft, in a message or in an answer, and change nothing else.
//!
//! The states are checked against the source: every overlay and every purpose of a question must be among them.

use std::collections::BTreeSet;

use crossterm::event::{KeyCode, KeyEvent, KeyEventKind};
use serde_json::{Map, Value, json};

use super::{
    super::{
        msg::Msg,
        terminal::{
            Input,
            input_parser::{Burst, InputParser, gather},
        },
        test_app::*,
    },
    finding::shelf,
    rewinding::rewinding,
};
use crate::{
    protocol::{
        Branch, Command, Done, Event, FinishReason, Message, Permissions, Query, Reply, ResponseStart, RuleTrigger,
        ServerReport, ServerState, ServersReport, SideAnswer, TrustAnswer, TrustAsked, TrustEntry, TrustKind,
        TrustReport,
    },
    tui::app::{Effect, own_files::FileTask},
};

/// Something that waits for the user, or has just been closed.
pub(super) struct WaitingState {
    pub name: &'static str,
    pub open: fn(&mut TestApp),
}

pub(super) fn begun(app: &mut TestApp) {
    app.events([
        Event::UserMessage(Message::user("go")),
        Event::ResponseStart(ResponseStart::default()),
    ]);
}

pub(super) fn ended(app: &mut TestApp, finish_reason: FinishReason) {
    app.events([Event::Done(Done {
        finish_reason: Some(finish_reason),
        ..Done::default()
    })]);
}

pub(super) fn approval(app: &mut TestApp, subject: Value) {
    begun(app);
    let options = ["allow_once", "allow_session", "allow_always", "reject_once"];
    let options: Vec<_> = options.iter().map(|it| json!({ "id": it, "label": it })).collect();
    let questions = json!([{ "id": "approval", "text": "Allow it?", "options": options, "allowFreeText": true }]);
    let metadata = json!({ "kind": "approval", "subject": subject, "questions": questions });
    app.events([start("1", "clarification", metadata)]);
}

pub(super) fn form(app: &mut TestApp, count: usize, takes_text: bool) {
    begun(app);
    let options = ["this", "that", "both"].map(|it| json!({ "id": it, "label": it }));
    let questions: Vec<_> = (0..count)
        .map(|it| {
            json!({ "id": format!("q{it}"), "text": "Which?", "options": options,
                "allowFreeText": takes_text, "allowMultiple": it == 1 })
        })
        .collect();
    app.events([start(
        "1",
        "clarification",
        json!({ "kind": "question", "questions": questions }),
    )]);
}

fn plan(app: &mut TestApp) {
    begun(app);
    let todos = json!([{ "id": "t", "content": "Sum up", "status": "pending" }]);
    app.events(document(
        "1",
        "plan",
        Some("Do it."),
        json!({ "title": "Sums", "overview": "All.", "todos": todos }),
    ));
    ended(app, FinishReason::AwaitingInput);
}

/// The question before the first message: which model.
fn first_page(app: &mut TestApp, options: &[&str]) {
    let options: Vec<_> = options.iter().map(|it| json!({ "id": it, "label": it })).collect();
    let questions = json!([{ "id": "q", "text": "Which model?", "options": options, "allowFreeText": false }]);
    app.events([
        Event::ResponseStart(ResponseStart::default()),
        start(
            "1",
            "clarification",
            json!({ "kind": "question", "questions": questions }),
        ),
    ]);
}

/// The line of the question of trust.
fn trust(app: &mut TestApp) {
    let asked = TrustAsked {
        paths: vec!["AGENTS.md".to_owned()],
        count: 1,
        is_changed: false,
    };
    app.events([Event::Notice(asked.notice())]);
    assert!(app.app.conversation.transcript.trust.is_some());
}

/// Asks the agent's own question: whether to go on, or to bring a fault about.
fn question(app: &mut TestApp, options: &[&str]) {
    begun(app);
    let options: Vec<_> = options.iter().map(|it| json!({ "id": it, "label": it })).collect();
    let questions = json!([{ "id": "q", "text": "Go on?", "options": options, "allowFreeText": true }]);
    let metadata = json!({ "kind": "question", "questions": questions });
    app.events([start("1", "clarification", metadata)]);
}

/// A change that the review shows.
fn changed(app: &mut TestApp) {
    begun(app);
    let metadata = json!({ "filePath": "a.rs", "operation": "edit", "applied": "applied", "toolCallId": "c",
        "diff": { "oldString": "a\n", "newString": "b\n", "startLine": 1, "endLine": 1 } });
    app.events(document("1", "file_edit", Some("b\n"), metadata));
    ended(app, FinishReason::Stop);
}

/// Every state in which something waits and words go to the draft, or are the answer. A new one belongs here.
pub(super) const STATES: &[WaitingState] = &[
    WaitingState {
        name: "nothing",
        open: |_| {},
    },
    WaitingState {
        name: "an answer that is over",
        open: |app| app.exchange("go", &["done"]),
    },
    WaitingState {
        name: "approval of a command",
        open: |app| {
            approval(
                app,
                json!({ "type": "terminal_command", "metadata": { "command": "git push" } }),
            );
        },
    },
    WaitingState {
        name: "approval of an edit",
        open: |app| {
            let diff = json!({ "oldString": "a\n", "newString": "b\n" });
            let metadata = json!({ "filePath": "a.rs", "operation": "edit", "diff": diff });
            approval(
                app,
                json!({ "type": "file_edit", "content": "b\n", "metadata": metadata }),
            );
        },
    },
    WaitingState {
        name: "approval of a tool",
        open: |app| {
            let call = json!({ "toolName": "web_fetch", "arguments": { "url": "https://example.com" } });
            approval(app, json!({ "type": "tool_call", "metadata": call }));
        },
    },
    WaitingState {
        name: "approval of a deletion",
        open: |app| {
            let metadata = json!({ "filePath": "a.rs", "operation": "delete" });
            approval(app, json!({ "type": "file_edit", "metadata": metadata }));
        },
    },
    WaitingState {
        name: "approval of reading elsewhere",
        open: |app| {
            let call = json!({ "toolName": "read_file", "arguments": { "target_file": "/etc/hosts" } });
            approval(app, json!({ "type": "tool_call", "metadata": call }));
        },
    },
    WaitingState {
        name: "approval of a server's tool",
        open: |app| {
            let call = json!({ "toolName": "mcp__time__now", "arguments": {} });
            approval(app, json!({ "type": "tool_call", "metadata": call }));
        },
    },
    WaitingState {
        name: "approval of a mode",
        open: |app| {
            let call = json!({ "toolName": "switch_mode", "arguments": { "target_mode_id": "agent" } });
            approval(app, json!({ "type": "tool_call", "metadata": call }));
        },
    },
    WaitingState {
        name: "plan",
        open: plan,
    },
    WaitingState {
        name: "form of one question",
        open: |app| form(app, 1, true),
    },
    WaitingState {
        name: "form of two questions",
        open: |app| form(app, 2, true),
    },
    WaitingState {
        name: "form of three questions",
        open: |app| form(app, 3, true),
    },
    WaitingState {
        name: "form that takes no text",
        open: |app| form(app, 2, false),
    },
    WaitingState {
        name: "trust",
        open: trust,
    },
    WaitingState {
        name: "page of trust",
        open: |app| {
            trust(app);
            app.keys("<tab>");
            let entry = TrustEntry {
                path: "AGENTS.md".to_owned(),
                kind: TrustKind::Rule(RuleTrigger::Nothing),
                is_changed: false,
            };
            app.reply(Reply::Trust(TrustReport {
                is_trusted: false,
                entries: vec![entry],
            }));
        },
    },
    WaitingState {
        name: "whether to go on",
        open: |app| question(app, &["yes", "no"]),
    },
    WaitingState {
        name: "whether the fault came about",
        open: |app| question(app, &["reproduced", "gone", "leave"]),
    },
    WaitingState {
        name: "a line to remember",
        open: |app| app.keys("/memory be kind<enter>"),
    },
    WaitingState {
        name: "answer to a side question",
        open: |app| {
            app.keys("/btw what?<enter>");
            app.reply(Reply::SideAnswer(SideAnswer {
                text: "that".to_owned(),
                problem: String::new(),
            }));
        },
    },
    WaitingState {
        name: "first page",
        open: |app| first_page(app, &["local", "openai", "tour"]),
    },
    WaitingState {
        name: "error with retry",
        open: |app| {
            begun(app);
            let error = json!({ "errorCode": "LLM_OVERLOADED", "source": "llm" });
            app.events(document("1", "error", Some("Overloaded"), error));
            ended(app, FinishReason::Error);
        },
    },
    WaitingState {
        name: "rewind page",
        open: |app| {
            *app = rewinding(100);
        },
    },
    WaitingState {
        name: "rewind page after esc",
        open: |app| {
            *app = rewinding(100);
            app.keys("<esc>");
        },
    },
    WaitingState {
        name: "picker closed by esc",
        open: |app| {
            app.exchange("go", &["done"]);
            app.keys("<f2>");
            assert!(!app.app.overlays.is_empty());
            app.keys("<esc>");
        },
    },
    WaitingState {
        name: "answer that runs",
        open: |app| {
            begun(app);
            app.events([start("1", "text", Value::Null), delta("1", "Well, ")]);
        },
    },
];

/// Every page and list with letters or a field of its own: whoever opened it moved the focus there. What is typed changes
/// nothing but what the page is for. A new one belongs here.
pub(super) const PAGES: &[WaitingState] = &[
    WaitingState {
        name: "help",
        open: |app| app.keys("<f1>"),
    },
    WaitingState {
        name: "picker of modes",
        open: |app| app.keys("<f2>"),
    },
    WaitingState {
        name: "palette",
        open: |app| app.keys("<f3>"),
    },
    WaitingState {
        name: "inspector",
        open: |app| app.keys("/inspect<enter>"),
    },
    WaitingState {
        name: "settings",
        open: |app| app.keys("/config<enter>"),
    },
    WaitingState {
        name: "permissions",
        open: |app| {
            app.keys("/permissions<enter>");
            let permissions = Permissions {
                run: "ask".to_owned(),
                allow: vec!["Shell(make)".to_owned()],
                ..Permissions::default()
            };
            app.reply(Reply::Permissions(permissions));
        },
    },
    WaitingState {
        name: "saved conversations",
        open: |app| *app = shelf(100),
    },
    WaitingState {
        name: "outline",
        open: |app| {
            app.exchange("go", &["done"]);
            app.keys("/outline<enter>");
        },
    },
    WaitingState {
        name: "servers of tools",
        open: |app| {
            app.keys("/mcp<enter>");
            let server = ServerReport {
                name: "theirs".to_owned(),
                line: "bash server.sh".to_owned(),
                state: ServerState::Unapproved { was: None },
                ..ServerReport::default()
            };
            app.reply(Reply::Servers(ServersReport {
                servers: vec![server],
                problems: Vec::new(),
            }));
        },
    },
    WaitingState {
        name: "tasks",
        open: |app| {
            begun(app);
            let command = json!({ "command": "make serve", "output": "ready\n", "state": "background" });
            app.events(document("1", "terminal_command", None, command));
            ended(app, FinishReason::Stop);
            app.keys("/tasks<enter>");
        },
    },
    WaitingState {
        name: "queue",
        open: |app| {
            begun(app);
            app.keys("/queue later<enter>/queue<enter>");
        },
    },
    WaitingState {
        name: "branches",
        open: |app| {
            app.exchange("go", &["done"]);
            app.exchange("on", &["done"]);
            app.events([Event::Branch(Branch::default())]);
            app.exchange("elsewhere", &["done"]);
            app.keys("/branches<enter>");
        },
    },
    WaitingState {
        name: "a new todo",
        open: |app| {
            plan(app);
            app.later(1000);
            app.keys("<tab><down>i");
        },
    },
    WaitingState {
        name: "review",
        open: |app| {
            changed(app);
            app.keys("/review<enter>");
        },
    },
    WaitingState {
        name: "card of a commit",
        open: |app| {
            changed(app);
            app.keys("/review<enter>");
            app.later(1000);
            app.keys("a");
            let update = app.sent().into_iter().find_map(|it| match it {
                Command::Update { document, metadata, .. } => Some(Event::DocumentUpdate { document, metadata }),
                _ => None,
            });
            app.events(update);
            app.later(1000);
            app.keys("C");
            app.reply_to(
                |it| matches!(it, Query::CommitPreview(_)),
                Reply::CommitPreview(Box::default()),
            );
        },
    },
];

const TEXTS: [&str; 2] = ["fix but add 2 continue yes", "2 tests fail, y?"];

/// The ways in which the same keys reach the program.
fn writes(escapes: usize, text: &str) -> [Vec<Vec<u8>>; 3] {
    let escape = b"\x1b".repeat(escapes);
    let letters = text.bytes().chain(*b"\r").map(|it| vec![it]);
    let by_key = escape.iter().map(|it| vec![*it]).chain(letters).collect();
    let line = format!("{text}\r").into_bytes();
    let two = [escape.clone(), line.clone()]
        .into_iter()
        .filter(|it| !it.is_empty())
        .collect();
    [by_key, two, vec![[escape, line].concat()]]
}

/// Sends bytes as reads of the terminal; after each one nothing comes for a while.
pub(super) fn type_in(app: &mut TestApp, reads: Vec<Vec<u8>>) {
    let (mut parser, mut burst) = (InputParser::default(), Burst::default());
    for bytes in reads {
        let mut inputs = Vec::new();
        parser.push(&bytes, &mut inputs);
        parser.flush(&mut inputs);
        gather(&mut inputs, &mut burst, app.app.now_ms);
        for input in inputs {
            app.take(Msg::Input(input));
            // The page of messages is asked for and comes.
            if matches!(app.front.effects.last(), Some(Effect::Ask(ask)) if ask.query == Query::Changes) {
                app.reply(Reply::Changes(Vec::new()));
            }
        }
        app.later(400);
    }
}

#[test]
fn words_are_words_whatever_waits() {
    for state in STATES {
        for text in TEXTS {
            for escapes in 0..3 {
                for (way, reads) in writes(escapes, text).into_iter().enumerate() {
                    let what = format!("{}, {escapes} times esc, {text:?}, way {way}", state.name);
                    let mut app = TestApp::new(100, 30);
                    (state.open)(&mut app);
                    app.later(1000);
                    let (before, effects, mode) = (app.sent().len(), app.front.effects.len(), app.app.composer.mode);
                    type_in(&mut app, reads);
                    let grave = app.front.effects.iter().skip(effects).find(|it| is_grave(it, text));
                    assert!(grave.is_none(), "{what}: {grave:?}\n{}", app.picture());
                    let sent = app.sent().split_off(before);
                    let mut heard = Vec::new();
                    for command in &sent {
                        match command {
                            Command::Submit(it) | Command::Steer(it) => heard.push(it.message.content.clone()),
                            Command::Answer { response, .. } => {
                                let texts = response.answers.iter().filter_map(|it| it.free_text.clone());
                                heard.extend(texts);
                                assert!(
                                    response.answers.iter().all(|it| it.selected_option_ids.is_empty()),
                                    "{what}: {response:?}"
                                );
                            }
                            Command::Cancel => assert!(escapes > 0, "{what}: {sent:?}"),
                            other => panic!("{what}: {other:?}\n{}", app.picture()),
                        }
                    }
                    // A form of several questions has the text in its field; a message behind an answer waits in the queue.
                    heard.extend(app.app.composer.queue.iter().map(|it| it.message.content.clone()));
                    let draft = app.app.composer.field.text();
                    let is_kept = heard.is_empty() && (draft == text || app.shows(text));
                    assert!(
                        heard == [text] || is_kept,
                        "{what}: {sent:?}, draft {draft:?}\n{}",
                        app.picture()
                    );
                    assert_eq!(app.app.composer.mode, mode, "{what}");
                    assert!(app.app.overlays.is_empty(), "{what}\n{}", app.picture());
                }
            }
        }
    }
}

/// On a card that has the focus letters act, `y` and `n` on an approval at once. Elsewhere a sentence is whole, whatever its first
/// letters did.
#[test]
fn a_sentence_after_tab_loses_no_letter() {
    for state in STATES.iter().filter(|it| !it.name.starts_with("approval")) {
        for text in ["now do the same for tests", "explain", "run it again, please", "Do it"] {
            let mut app = TestApp::new(100, 30);
            (state.open)(&mut app);
            app.keys("<tab>");
            app.later(1000);
            if !app.app.overlays.is_empty() {
                continue;
            }
            let before = app.sent().len();
            type_in(&mut app, text.bytes().map(|it| vec![it]).collect());
            let draft = app.app.composer.field.text();
            let what = format!("{}: {text:?}, draft {draft:?}\n{}", state.name, app.picture());
            assert!(draft == text || app.shows(text), "{what}");
            assert_eq!(app.sent().len(), before, "{what}");
        }
    }
}

/// The editor would take the rest of the sentence as commands.
#[test]
fn no_letter_alone_opens_another_program() {
    let is_opened = |app: &TestApp| {
        let is_program = |it: &Effect| matches!(it, Effect::OpenFile { .. } | Effect::EditPlan { .. });
        app.front.effects.iter().any(is_program)
    };
    let named = |app: &mut TestApp| app.exchange("go", &["`src/cart.rs:3` holds it."]);
    for (open, key, text) in [
        (named as fn(&mut TestApp), "o", "now do the same"),
        (plan, "e", "explain how"),
    ] {
        let mut app = TestApp::new(100, 30);
        open(&mut app);
        app.keys("<tab>");
        app.later(1000);
        type_in(&mut app, text.bytes().map(|it| vec![it]).collect());
        assert_eq!(app.app.composer.field.text(), text);
        assert!(!is_opened(&app), "{key}");
        app.keys("<tab>");
        app.later(1000);
        app.keys(key);
        assert!(!is_opened(&app), "{key}\n{}", app.picture());
        app.keys("<enter>");
        assert!(is_opened(&app), "{key}\n{}", app.picture());
    }
}

#[test]
fn letters_that_moved_about_are_no_beginning_of_a_message() {
    // After another key, after a pause, and of a key that is held.
    for before in ["jkj<down>", "jkj<later>", "j<held>"] {
        let mut app = TestApp::new(100, 30);
        app.exchange("go", &["one", "two", "three"]);
        app.keys("<tab>");
        for part in before.split_inclusive('>') {
            let (keys, is_later) = (part.replace("<later>", ""), part.ends_with("<later>"));
            app.keys(&keys.replace("<held>", ""));
            if part.ends_with("<held>") {
                let mut held = KeyEvent::from(KeyCode::Char('j'));
                held.kind = KeyEventKind::Repeat;
                app.take(Msg::Input(Input::Key(held)));
            }
            if is_later {
                app.later(10_000);
            }
        }
        app.keys("new words");
        assert_eq!(app.app.composer.field.text(), "new words", "{before}");
    }
}

/// Keys that move are pressed several times; no word begins like that.
#[test]
fn keys_that_moved_step_by_step_are_no_beginning_of_a_message() {
    for (keys, draft) in [
        ("jjx", "x"),
        ("kkjjknew words", "new words"),
        ("jjand so", "and so"),
        ("just so", "just so"),
        ("keep it", "keep it"),
        ("see", "see"),
        ("nny", "nny"),
    ] {
        let mut app = TestApp::new(100, 30);
        app.exchange("go", &["one", "two", "three"]);
        app.keys("<tab>");
        app.later(1000);
        app.keys(keys);
        // The last letter of all that means something there is still a command.
        app.keys("!");
        assert_eq!(app.app.composer.field.text(), format!("{draft}!"), "{keys}");
    }
}

/// With a draft, whoever goes to the transcript is reading: the draft stays as it was written.
#[test]
fn letters_that_acted_in_the_transcript_do_not_get_into_a_draft() {
    let mut app = TestApp::new(100, 30);
    app.exchange("go", &["one", "two", "three"]);
    app.keys("my draft<tab>");
    app.later(1000);
    app.keys("jx");
    assert_eq!(app.app.composer.field.text(), "my draftx");
    // In Vim's normal mode the letter that goes to the draft is a command there.
    let mut app = TestApp::new(100, 30);
    app.exchange("go", &["one", "two", "three"]);
    app.keys("/vim<enter>imy draft<esc><tab>");
    app.later(1000);
    app.keys("jjkkx");
    assert_eq!(app.app.composer.field.text(), "imy draf");
    app.keys("<tab>");
    app.later(1000);
    app.keys("jkAt");
    assert_eq!(app.app.composer.field.text(), "imy draft");
}

#[test]
fn no_letter_alone_sends_a_message_again_or_deletes_a_todo() {
    let error = STATES.iter().find(|it| it.name == "error with retry").expect("a state");
    let mut app = TestApp::new(100, 30);
    (error.open)(&mut app);
    app.keys("<tab>");
    app.later(1000);
    app.keys("r");
    assert!(app.sent().is_empty() && app.shows("enter retry"), "{}", app.picture());
    app.keys("<esc><tab>");
    app.later(1000);
    app.keys("<enter>");
    assert!(app.sent().is_empty(), "esc removed the mark");
    app.keys("r<enter>");
    assert!(
        matches!(app.sent().as_slice(), [Command::Submit(_)]),
        "{}",
        app.picture()
    );
    let mut app = TestApp::new(100, 30);
    plan(&mut app);
    app.keys("<tab><down>");
    app.later(1000);
    app.keys("D");
    assert!(app.sent().is_empty() && app.shows("enter delete"), "{}", app.picture());
    app.keys("<enter>");
    let sent = app.sent();
    let [Command::Update { metadata, .. }] = sent.as_slice() else {
        panic!("{sent:?}\n{}", app.picture())
    };
    assert_eq!(metadata["todos"], json!([]));
}

#[test]
fn undo_does_not_bring_back_what_was_sent() {
    for is_vim in [true, false] {
        let mut app = TestApp::new(100, 30);
        if is_vim {
            app.keys("/vim<enter>");
        }
        app.keys("hello there<enter>");
        assert_eq!(app.app.composer.field.text(), "");
        app.keys(if is_vim { "<esc>uuu" } else { "<ctrl+/><ctrl+/>" });
        assert_eq!(app.app.composer.field.text(), "", "vim: {is_vim}");
    }
}

#[test]
fn an_approval_that_waits_does_not_fold() {
    let mut app = TestApp::new(100, 30);
    approval(
        &mut app,
        json!({ "type": "terminal_command", "metadata": { "command": "git push" } }),
    );
    app.keys("<tab>");
    app.later(1000);
    let before = app.picture();
    for key in ["z", "Z", "<enter>"] {
        app.keys(key);
        assert_eq!(app.picture(), before, "{key}");
    }
    // Nor does one that waits behind it: it would be decided folded.
    let mut app = TestApp::new(100, 40);
    begun(&mut app);
    let options = json!([{ "id": "allow_once", "label": "Yes" }, { "id": "reject_once", "label": "No" }]);
    let questions = json!([{ "id": "approval", "text": "Allow it?", "options": options, "allowFreeText": true }]);
    for (id, command) in [("1", "git push"), ("2", "curl evil.example")] {
        let metadata = json!({ "command": command, "wouldReach": ["evil.example"], "why": "it is needed" });
        let subject = json!({ "type": "terminal_command", "metadata": metadata });
        let metadata = json!({ "kind": "approval", "subject": subject, "questions": questions });
        app.events([start(id, "clarification", metadata)]);
    }
    app.keys("<tab>");
    app.later(1000);
    let whole = app.picture().matches("it is needed").count();
    for key in ["z", "Z", "z", "Z"] {
        app.keys(key);
        assert_eq!(
            app.picture().matches("it is needed").count(),
            whole,
            "{key}\n{}",
            app.picture()
        );
    }
    assert_eq!(whole, 2, "{}", app.picture());
}

/// In Vim's normal mode letters are Vim's: they may change the draft, and nothing else.
#[test]
fn vim_commands_change_the_draft_only() {
    for state in STATES {
        for text in TEXTS {
            for escapes in 0..3 {
                for reads in writes(escapes, text) {
                    let mut app = TestApp::new(100, 30);
                    app.keys("/vim<enter>");
                    (state.open)(&mut app);
                    app.later(1000);
                    let (before, effects, mode) = (app.sent().len(), app.front.effects.len(), app.app.composer.mode);
                    type_in(&mut app, reads);
                    let what = format!("{}, {escapes} times esc, {text:?}", state.name);
                    let grave = app.front.effects.iter().skip(effects).find(|it| is_grave(it, text));
                    assert!(grave.is_none(), "{what}: {grave:?}\n{}", app.picture());
                    for command in app.sent().split_off(before) {
                        let is_words = match &command {
                            Command::Submit(_) | Command::Steer(_) => true,
                            Command::Answer { response, .. } => {
                                response.answers.iter().all(|it| it.selected_option_ids.is_empty())
                            }
                            Command::Cancel => escapes > 0,
                            _ => false,
                        };
                        assert!(is_words, "{what}: {command:?}\n{}", app.picture());
                    }
                    assert_eq!(app.app.composer.mode, mode, "{what}");
                }
            }
        }
    }
}

#[test]
fn the_way_to_the_page_of_trust_is_not_printed_on_it() {
    let mut app = TestApp::new(100, 30);
    trust(&mut app);
    assert!(app.shows("tab details"), "{}", app.picture());
    let page = STATES.iter().find(|it| it.name == "page of trust").expect("a state");
    let mut app = TestApp::new(100, 30);
    (page.open)(&mut app);
    assert!(
        !app.app.overlays.is_empty() && !app.shows("tab details"),
        "{}",
        app.picture()
    );
    app.later(1000);
    app.keys("<tab><tab><enter>");
    let decided = app.asked().into_iter().filter(|it| matches!(it, Query::DecideTrust(_)));
    assert!(
        decided.eq([&Query::DecideTrust(TrustAnswer::Later)]),
        "{}",
        app.picture()
    );
    // What the folder's commands are now is read anew.
    app.reply_to(|it| matches!(it, Query::DecideTrust(_)), Reply::Accepted);
    assert_eq!(app.front.effects.last(), Some(&Effect::Commands));
}

/// The names of types that implement `Overlay`, and the variants of the purposes of a question, from the source.
fn in_source(folder: &str, find: fn(&str, &mut BTreeSet<String>)) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    let mut folders = vec![std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join(folder)];
    while let Some(path) = folders.pop() {
        if path.is_dir() {
            folders.extend(std::fs::read_dir(path).unwrap().map(|it| it.unwrap().path()));
        } else if path.extension().is_some_and(|it| it == "rs") {
            find(&std::fs::read_to_string(path).unwrap(), &mut found);
        }
    }
    found
}

#[test]
fn every_overlay_is_among_the_states() {
    let expected = in_source("src/tui", |text, found| {
        let lines = text.lines().filter_map(|it| it.strip_prefix("impl Overlay for "));
        found.extend(lines.map(|it| it.trim_end_matches([' ', '{']).to_owned()));
    });
    assert!(expected.len() > 10, "{expected:?}");
    let mut opened = BTreeSet::new();
    for state in STATES.iter().chain(PAGES) {
        let mut app = TestApp::new(100, 30);
        (state.open)(&mut app);
        opened.extend(app.app.overlays.last().map(|it| it.type_name().to_owned()));
    }
    let missing: Vec<_> = expected.difference(&opened).collect();
    assert!(missing.is_empty(), "no waiting state opens {missing:?}");
}

#[test]
fn every_purpose_of_a_question_is_among_the_states() {
    let covered = [
        ("Approve", "approval of a command"),
        ("Form", "form of three questions"),
        ("Mode", "approval of a mode"),
        ("Server", "form that takes no text"),
        ("GoOn", "whether to go on"),
        ("Reproduce", "whether the fault came about"),
    ];
    let purposes = in_source("src/agent/turn/question.rs", |text, found| {
        let body = text.split("enum Purpose {").nth(1).unwrap_or_default();
        let body = body.split("\n}").next().unwrap_or_default();
        let variants = body.lines().filter_map(|it| it.strip_prefix("    "));
        let variants = variants.filter(|it| it.starts_with(|c: char| c.is_ascii_uppercase()));
        found.extend(variants.map(|it| it.trim_end_matches([' ', '{', ',']).to_owned()));
    });
    assert_eq!(purposes, covered.iter().map(|it| it.0.to_owned()).collect());
    for (purpose, name) in covered {
        assert!(STATES.iter().any(|it| it.name == name), "{purpose}: no state {name}");
    }
}

/// What changes files, rules, settings or saved conversations, or ends the program.
fn is_grave(effect: &Effect, text: &str) -> bool {
    match effect {
        Effect::Ask(ask) => match &ask.query {
            // On the card the text is the message, and Enter commits.
            Query::Commit(it) => it.message != text,
            Query::ChangeServer { .. }
            | Query::DecideTrust(_)
            | Query::Sandbox { guard: Some(_) }
            | Query::Permissions { forget: true } => true,
            _ => false,
        },
        Effect::Files(work) => work.task != FileTask::Rules,
        Effect::Save { .. }
        | Effect::Begin
        | Effect::ArchiveSession { .. }
        | Effect::RemoveSession(_)
        | Effect::Resume(_)
        | Effect::Export { .. }
        | Effect::OpenRules(_)
        | Effect::Suspend
        | Effect::Quit(_) => true,
        _ => false,
    }
}

fn is_mark(metadata: &Map<String, Value>) -> bool {
    metadata.keys().all(|it| it == "accepted")
}

/// Returns true if the change of a plan is one new todo of typed words behind the one that was there. On the card `i` begins
/// one, so that after Esc only the words behind that key are in it.
fn adds_todo(metadata: &Map<String, Value>, text: &str) -> bool {
    let todos = metadata.get("todos").and_then(Value::as_array);
    let contents: Vec<_> = todos.into_iter().flatten().map(|it| it["content"].as_str()).collect();
    let is_one = matches!(contents.as_slice(), [Some("Sum up"), Some(it)] if text.ends_with(it));
    is_one && metadata.keys().all(|it| it == "todos" || it == "edited")
}

#[test]
fn what_is_typed_on_a_page_changes_nothing_but_what_the_page_is_for() {
    for state in PAGES {
        for text in TEXTS {
            for escapes in 0..3 {
                for (way, reads) in writes(escapes, text).into_iter().enumerate() {
                    let what = format!("{}, {escapes} times esc, {text:?}, way {way}", state.name);
                    let mut app = TestApp::new(100, 30);
                    (state.open)(&mut app);
                    assert!(!app.app.overlays.is_empty(), "{what}\n{}", app.picture());
                    app.later(1000);
                    let (commands, effects, mode) = (app.sent().len(), app.front.effects.len(), app.app.composer.mode);
                    type_in(&mut app, reads);
                    for command in app.sent().split_off(commands) {
                        let is_fine = match &command {
                            // The page was closed, or `c` of the review began a comment.
                            Command::Submit(it) | Command::Steer(it) => {
                                let said = it.message.content.as_str();
                                said == text || said.strip_prefix("#1.1 ").is_some_and(|it| text.ends_with(it))
                            }
                            Command::Cancel => escapes > 0,
                            // An accepted hunk, which is only a mark, and the todo that was asked for.
                            Command::Update { metadata, .. } => is_mark(metadata) || adds_todo(metadata, text),
                            _ => false,
                        };
                        assert!(is_fine, "{what}: {command:?}\n{}", app.picture());
                    }
                    let grave: Vec<_> = app
                        .front
                        .effects
                        .iter()
                        .skip(effects)
                        .filter(|it| is_grave(it, text))
                        .collect();
                    assert!(grave.is_empty(), "{what}: {grave:?}\n{}", app.picture());
                    assert_eq!(app.app.composer.mode, mode, "{what}");
                }
            }
        }
    }
}
