//! Going back to before a message, taking back what one document did, and the branches of a conversation.

use std::collections::BTreeMap;

use serde_json::json;

use super::super::{msg::Msg, test_app::*};
use crate::{
    protocol::{
        Branch, Command, Done, Event, FileChange, Message, Operation, Query, Reply, Restore, RestoreConflict,
        RestorePreview, RestoreTarget, Turn, TurnChanges,
    },
    tui::app::Effect,
};

fn file(path: &str, clash: Option<RestoreConflict>) -> FileChange {
    FileChange {
        path: path.to_owned(),
        operation: Operation::Edit,
        added: 1,
        removed: 2,
        patch: format!("--- a/{path}\n+++ b/{path}\n@@ -1,2 +1,1 @@\n-new line\n-another\n+old line\n"),
        conflict: clash,
        is_lost: false,
    }
}

fn changes() -> Vec<TurnChanges> {
    vec![
        TurnChanges {
            turn: Turn(1),
            paths: vec!["src/cart.rs".to_owned(), "src/shop.rs".to_owned()],
            undone: 0,
        },
        TurnChanges {
            turn: Turn(2),
            paths: vec!["README.md".to_owned()],
            undone: 1,
        },
    ]
}

/// What the preview says of the files.
fn states() -> BTreeMap<String, String> {
    BTreeMap::from([("src/cart.rs".to_owned(), "as it is".to_owned())])
}

/// What the last effect asked about files, answered.
fn answered(desk: &mut TestApp, files: Vec<FileChange>) {
    let asked = desk.asked();
    assert!(matches!(asked.last(), Some(Query::RestorePreview(_))), "{asked:?}");
    let found = RestorePreview {
        files,
        is_partial: false,
        states: states(),
    };
    desk.reply(Reply::RestorePreview(found));
}

pub fn rewinding(width: u16) -> TestApp {
    let mut desk = TestApp::new(width, 24);
    desk.exchange("add a discount", &["done"]);
    desk.exchange("say so in the readme", &["done, too"]);
    desk.exchange("thanks", &["with pleasure"]);
    desk.keys("<esc>");
    assert!(desk.asked().is_empty(), "{}", desk.picture());
    desk.keys("<esc>");
    assert_eq!(
        desk.asked().last(),
        Some(&&Query::Changes),
        "esc twice on an empty draft"
    );
    desk.reply(Reply::Changes(changes()));
    desk.later(400);
    desk
}

#[test]
fn esc_counts_twice_only_if_nothing_was_typed_between() {
    let mut desk = TestApp::new(80, 24);
    desk.exchange("add a discount", &["done"]);
    desk.keys("<esc>");
    assert!(desk.picture().contains("esc again to rewind"), "{}", desk.picture());
    desk.keys("x");
    assert!(!desk.picture().contains("esc again to rewind"), "{}", desk.picture());
    desk.keys("<backspace><esc>");
    assert!(desk.asked().is_empty(), "{}", desk.picture());
    desk.keys("<esc>");
    assert_eq!(desk.asked().last(), Some(&&Query::Changes));
}

#[test]
fn the_messages_stand_left_and_what_becomes_of_files_right() {
    for width in [40, 80, 120, 200] {
        let mut desk = rewinding(width);
        answered(&mut desk, Vec::new());
        for text in [
            "Rewind",
            "add a disc",
            "2 files",
            "undone",
            "thanks",
            "no files changed",
        ] {
            assert!(desk.shows(text), "{width} {text}\n{}", desk.picture());
        }
        desk.keys("<up><up>");
        answered(
            &mut desk,
            vec![
                file("src/cart.rs", None),
                file("src/shop.rs", Some(RestoreConflict::User)),
            ],
        );
        for text in [
            "restores 1 of 2 files",
            "cart.rs",
            "edited later",
            "old line",
            "new line",
        ] {
            assert!(desk.shows(text), "{width} {text}\n{}", desk.picture());
        }
        desk.keys("<enter>");
        for text in [
            "turn 1",
            "restore the conv",
            "discard your later",
            "restore 1 file only",
        ] {
            assert!(desk.shows(text) || width < 80, "{width} {text}\n{}", desk.picture());
        }
        desk.keys("<esc>");
        assert!(desk.shows("restores 1 of 2 files"), "{}", desk.picture());
        desk.keys("<esc>");
        assert!(!desk.shows("Rewind"), "{}", desk.picture());
    }
}

#[test]
fn files_conversation_or_both_and_all_but_some() {
    let restore = |but: &[&str], over| {
        Command::Restore(Restore {
            target: RestoreTarget::Since(Turn(1)),
            except: but.iter().map(|it| (*it).to_owned()).collect(),
            overwrite: over,
            seen: Some(states()),
        })
    };
    let go_on = Command::SwitchBranch(Branch::default());
    for (keys, wanted) in [
        ("", vec![restore(&[], false), go_on.clone()]),
        ("<down>", vec![restore(&[], false)]),
        ("<down><down>", vec![go_on.clone()]),
        ("<down><down><down>", vec![restore(&[], true), go_on]),
        ("<down><down><down><down>", vec![restore(&[], true)]),
    ] {
        let mut desk = rewinding(100);
        desk.keys("<up><up>");
        assert_eq!(desk.sent(), [], "nothing before it is known what it does");
        answered(
            &mut desk,
            vec![
                file("src/cart.rs", None),
                file("src/shop.rs", Some(RestoreConflict::Turn(Turn(2)))),
            ],
        );
        desk.keys("<enter>");
        desk.keys(keys);
        desk.later(400);
        assert_eq!(desk.sent(), [], "it is asked once");
        desk.keys("<enter>");
        assert_eq!(desk.sent(), wanted, "{keys}");
        let has_words = wanted.iter().any(|it| matches!(it, Command::SwitchBranch(_)));
        let draft = desk.app.composer.field.text();
        assert_eq!(draft, if has_words { "add a discount" } else { "" }, "{keys}");
    }
}

#[test]
fn keys_that_decide_wait_a_moment() {
    let mut desk = rewinding(100);
    answered(&mut desk, Vec::new());
    desk.keys("<esc>");
    desk.keys("/rewind 1<enter>");
    desk.reply(Reply::Changes(changes()));
    answered(&mut desk, vec![file("a", None)]);
    desk.keys("<enter><enter><enter>");
    assert_eq!(desk.sent(), []);
    desk.later(400);
    desk.keys("<enter><enter><enter>");
    assert_eq!(desk.sent(), []);
    desk.later(400);
    desk.keys("<down><enter>");
    assert_eq!(desk.sent().len(), 1);
}

#[test]
fn a_file_can_be_left_as_it_is() {
    let mut desk = rewinding(100);
    desk.keys("<up><up>");
    answered(&mut desk, vec![file("src/cart.rs", None), file("src/shop.rs", None)]);
    desk.keys("<right><down><enter><left><enter><down>");
    desk.later(400);
    desk.keys("<enter>");
    let [Command::Restore(restore)] = &desk.sent()[..] else {
        panic!("{:?}", desk.sent())
    };
    assert_eq!(restore.except, ["src/shop.rs"]);
}

#[test]
fn what_is_typed_on_the_page_goes_to_the_draft() {
    for text in ["fix the tests", "continue please", "both", "2 tests fail, y?", " x"] {
        let mut desk = rewinding(100);
        answered(&mut desk, vec![file("src/cart.rs", None)]);
        desk.keys(text);
        assert_eq!(desk.app.composer.field.text(), text);
        assert!(!desk.shows("Rewind") && desk.sent().is_empty(), "{}", desk.picture());
        // From the ways to go back, too.
        let mut desk = rewinding(100);
        answered(&mut desk, vec![file("src/cart.rs", None)]);
        desk.keys("<enter>");
        desk.keys(text);
        assert_eq!(desk.app.composer.field.text(), text);
        assert!(desk.sent().is_empty());
    }
}

#[test]
fn commands_of_undoing_say_what_they_mean() {
    let mut desk = TestApp::new(100, 24);
    desk.exchange("go", &["done"]);
    let sent = |desk: &mut TestApp, words: &str| {
        let before = desk.sent().len();
        desk.keys(words);
        desk.keys("<enter>");
        desk.sent().get(before..).unwrap_or_default().to_vec()
    };
    let restore = |what| {
        vec![Command::Restore(Restore {
            target: what,
            except: Vec::new(),
            overwrite: false,
            seen: None,
        })]
    };
    assert_eq!(sent(&mut desk, "/undo"), restore(RestoreTarget::Last));
    assert_eq!(sent(&mut desk, "/redo"), restore(RestoreTarget::RedoLast));
    assert_eq!(sent(&mut desk, "/undo 1"), restore(RestoreTarget::Turn(Turn(1))));
    let document = || "doc_001".into();
    assert_eq!(
        sent(&mut desk, "/undo 1.1"),
        restore(RestoreTarget::Document {
            turn: Turn(1),
            document: document()
        })
    );
    assert_eq!(
        sent(&mut desk, "/redo 1.1"),
        restore(RestoreTarget::RedoDocument {
            turn: Turn(1),
            document: document()
        })
    );
    assert_eq!(sent(&mut desk, "/undo 9.9"), []);
    assert!(desk.shows("no document 9.9"), "{}", desk.picture());
}

#[test]
fn what_is_taken_back_says_so() {
    let mut desk = TestApp::new(100, 24);
    desk.events(document(
        "a",
        "file_edit",
        Some("new\n"),
        json!({ "filePath": "a.rs", "operation": "edit", "diff": { "oldString": "old\n", "newString": "new\n" } }),
    ));
    desk.events(document(
        "b",
        "terminal_command",
        None,
        json!({ "command": "make", "exitCode": 0 }),
    ));
    assert!(desk.shows("applied"));
    for (id, value) in [("a", json!(true)), ("b", json!("partly"))] {
        desk.events([Event::DocumentUpdate {
            document: id.into(),
            metadata: json!({ "undone": value }).as_object().unwrap().clone(),
        }]);
    }
    assert!(
        !desk.shows("applied") && desk.shows("↶ undone") && desk.shows("↶ partly undone"),
        "{}",
        desk.picture()
    );
}

pub fn branched(width: u16) -> TestApp {
    let mut desk = TestApp::new(width, 24);
    desk.exchange("begin", &["begun"]);
    desk.exchange("in blue", &["it is blue"]);
    desk.events([Event::Branch(Branch {
        after: Turn(1),
        ..Branch::default()
    })]);
    assert!(!desk.shows("in blue") && desk.shows("begun"), "{}", desk.picture());
    desk.exchange("in red", &["it is red"]);
    desk
}

#[test]
fn the_tree_shows_every_branch_and_leads_to_each() {
    for width in [40, 90, 140] {
        let mut desk = branched(width);
        desk.keys("/branches<enter>");
        for text in ["Branches", "2 branches", "begin", "in blue", "in red", "it is red"] {
            assert!(desk.shows(text), "{width} {text}\n{}", desk.picture());
        }
        desk.keys("<up>");
        assert!(desk.shows("it is blue"), "{}", desk.picture());
        let both = desk.shows("it is red");
        assert_eq!(
            both,
            width == 140,
            "side by side where there is room\n{}",
            desk.picture()
        );
        desk.keys("<enter>");
        let go_on = Command::SwitchBranch(Branch {
            after: Turn(2),
            ..Branch::default()
        });
        assert_eq!(desk.sent(), [go_on]);
    }
}

#[test]
fn a_message_is_written_again_and_a_document_is_gone_on_from() {
    let mut desk = TestApp::new(100, 24);
    desk.exchange("begin", &["one", "two"]);
    desk.exchange("more", &["three"]);
    desk.keys("/reword<enter>");
    let go_on = |after, upto: Option<&str>| {
        Command::SwitchBranch(Branch {
            after: Turn(after),
            upto: upto.map(Into::into),
            is_open: false,
        })
    };
    assert_eq!(desk.sent(), [go_on(1, None)]);
    assert_eq!(desk.app.composer.field.text(), "more");
    desk.keys("<alt+u><tab>kkk");
    desk.take(Msg::Input(super::super::terminal::Input::Focus(true)));
    let effects = (super::super::actions::branch::GO_ON.run)(&mut desk.app, "");
    assert_eq!(effects, [Effect::Send(go_on(1, Some("doc_001")))]);
}

#[test]
fn a_call_is_made_again_and_a_question_opened_by_their_addresses() {
    let mut desk = TestApp::new(100, 24);
    desk.events([Event::UserMessage(Message::user("go"))]);
    let read = json!({ "toolName": "read_file", "arguments": { "target_file": "a" }, "result": { "status": "success", "data": "x" } });
    desk.events(document("a", "tool_call", None, read));
    let options = json!([{ "id": "up", "label": "upward" }, { "id": "down", "label": "downward" }]);
    let asked = json!({ "questions": [{ "id": "q", "prompt": "which way?", "options": options }],
        "outcome": "answered", "answers": [{ "questionId": "q", "selectedOptionIds": ["up"] }] });
    desk.events(document("b", "clarification", None, asked));
    desk.events(document("c", "text", Some("the rest"), json!({})));
    desk.events([Event::Done(Done::default())]);
    let go_on = |upto: &str, is_open| {
        Command::SwitchBranch(Branch {
            after: Turn(1),
            upto: Some(upto.into()),
            is_open,
        })
    };
    desk.keys("/again 1.3<enter>");
    assert!(
        desk.sent().is_empty() && desk.shows("only calls and questions"),
        "{}",
        desk.picture()
    );
    desk.keys("/again 7.1<enter>");
    assert!(
        desk.sent().is_empty() && desk.shows("7.1 is not on this branch"),
        "{}",
        desk.picture()
    );
    desk.keys("/branch 1.1<enter>");
    desk.keys("/again 1.1<enter>");
    desk.keys("/again 1.2<enter>");
    let sent = desk.sent();
    assert_eq!(sent[0], go_on("a", false));
    assert!(
        matches!(&sent[1], Command::RepeatCall { submit, turn: Turn(1), document, from }
            if submit.message.content == "/again 1.1" && *document == "a".into()
                && Command::SwitchBranch(from.clone()) == go_on(Branch::NOTHING, false)),
        "whoever makes it goes back, if it can be made: {sent:?}"
    );
    assert_eq!(sent[2], go_on("b", true));
    let Command::SwitchBranch(open) = sent[2].clone() else {
        panic!("{sent:?}")
    };
    desk.events([Event::Branch(open)]);
    assert!(desk.shows("downward") && !desk.shows("the rest"), "{}", desk.picture());
    // It has the keys, as a new one would.
    desk.later(1000);
    desk.keys("2<enter>");
    let sent = desk.sent();
    assert!(
        matches!(sent.last(), Some(Command::Answer { turn: Turn(1), response }) if response.answers[0].selected_option_ids == ["down"]),
        "{sent:?}"
    );
    // The rest of the answer is a branch, and one gets back to it.
    desk.keys("<alt+u>/branches<enter>");
    assert!(
        desk.shows("the rest of this answer") && desk.shows("1.3"),
        "{}",
        desk.picture()
    );
    desk.keys("<down><enter>");
    let back = Command::SwitchBranch(Branch {
        after: Turn(1),
        ..Branch::default()
    });
    assert_eq!(desk.sent().last(), Some(&back));
}

#[test]
fn again_alone_repeats_the_last_answer_as_another_branch() {
    let mut desk = TestApp::new(100, 24);
    desk.keys("/again<enter>");
    assert!(
        desk.sent().is_empty() && desk.shows("no messages yet"),
        "{}",
        desk.picture()
    );
    let pictures = json!(["data:image/png;base64,AA"]);
    let mut second = Message::user("second");
    second.extra.insert("images".to_owned(), pictures);
    for (id, message) in [("a", Message::user("first")), ("b", second.clone())] {
        desk.events([Event::UserMessage(message)]);
        desk.events(document(id, "text", Some("so"), json!({})));
        desk.events([Event::Done(Done::default())]);
    }
    desk.keys("/again<enter>");
    let sent = desk.sent();
    let back = Command::SwitchBranch(Branch {
        after: Turn(1),
        ..Branch::default()
    });
    assert_eq!(sent[0], back);
    assert!(
        matches!(&sent[1], Command::Submit(it) if it.message == second),
        "{sent:?}"
    );
    // A hint about what cannot be stays for a second, and goes with the next key.
    desk.keys("/again 9.9<enter>");
    desk.keys("x");
    assert!(desk.shows("9.9 is not on this branch"), "{}", desk.picture());
    desk.later(1000);
    desk.keys("x");
    assert!(!desk.shows("9.9 is not"), "{}", desk.picture());
}

#[test]
fn a_change_that_stands_is_not_made_again() {
    let mut desk = TestApp::new(100, 24);
    desk.events([Event::UserMessage(Message::user("go"))]);
    let change = |undone: bool| {
        json!({ "filePath": "a.rs", "operation": "edit", "applied": "applied", "toolCallId": "c", "undone": undone,
            "diff": { "oldString": "1\n", "newString": "2\n", "startLine": 1 } })
    };
    desk.events(document("a", "file_edit", None, change(false)));
    desk.events(document("b", "file_edit", None, change(true)));
    desk.events([Event::Done(Done::default())]);
    desk.keys("/again 1.1<enter>");
    assert!(desk.sent().is_empty() && desk.shows("/undo 1.1"), "{}", desk.picture());
    desk.keys("/again 1.2<enter>");
    assert!(
        matches!(desk.sent().as_slice(), [Command::RepeatCall { .. }]),
        "{:?}",
        desk.sent()
    );
}

#[test]
fn no_width_breaks_them() {
    for width in 1..=300 {
        let mut desk = rewinding(width).blind();
        answered(&mut desk, vec![file("src/語/👨‍👩‍👧.rs", Some(RestoreConflict::User))]);
        desk.keys("o<tab> j<esc><esc>");
        let mut desk = branched(width.max(30)).blind();
        desk.resize(width, 12);
        desk.keys("/branches<enter>");
        desk.keys("<up><down><esc>");
    }
}
