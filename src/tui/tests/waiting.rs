//! Whatever waits, words that are typed are words: they end in the draft, in a message or in an answer, and change nothing else.

use serde_json::{Value, json};

use super::{
    super::{
        msg::Msg,
        terminal::input_parser::{Burst, InputParser, gather},
        test_app::*,
    },
    rewinding::rewinding,
};
use crate::{
    protocol::{Command, Done, Event, FinishReason, Message, Reply, ResponseStart},
    tui::app::Effect,
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

/// A question before the first message: which model, or whether to trust the folder.
fn first_page(app: &mut TestApp, options: &[&str]) {
    let options: Vec<_> = options.iter().map(|it| json!({ "id": it, "label": it })).collect();
    let questions = json!([{ "id": "q", "text": "Trust this folder?", "options": options, "allowFreeText": false }]);
    app.events([
        Event::ResponseStart(ResponseStart::default()),
        start(
            "1",
            "clarification",
            json!({ "kind": "question", "questions": questions }),
        ),
    ]);
}

/// Every state in which something waits. A new one belongs here.
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
        open: |app| first_page(app, &["not_now", "trust", "never"]),
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
fn type_in(app: &mut TestApp, reads: Vec<Vec<u8>>) {
    let (mut parser, mut burst) = (InputParser::default(), Burst::default());
    for bytes in reads {
        let mut inputs = Vec::new();
        parser.push(&bytes, &mut inputs);
        parser.flush(&mut inputs);
        gather(&mut inputs, &mut burst, app.app.now_ms);
        for input in inputs {
            app.take(Msg::Input(input));
            // The page of messages is asked for and comes.
            if matches!(app.front.effects.last(), Some(Effect::Ask(ask)) if ask.query == crate::protocol::Query::Changes)
            {
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
                    let (before, mode) = (app.sent().len(), app.app.composer.mode);
                    type_in(&mut app, reads);
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
                    let (before, mode) = (app.sent().len(), app.app.composer.mode);
                    type_in(&mut app, reads);
                    let what = format!("{}, {escapes} times esc, {text:?}", state.name);
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
