//! Every change of a turn in one place, and what is said of each.

use serde_json::json;

use super::super::{desk::*, effect::Effect};
use crate::protocol::{Command, Done, Event, Message};

fn edit(id: &str, path: &str, old: &str, new: &str, line: u64) -> [Event; 2] {
    document(
        id,
        "file_edit",
        Some(new),
        json!({ "filePath": path, "operation": "edit", "language": "rust",
            "diff": { "oldString": old, "newString": new, "startLine": line } }),
    )
}

pub fn changed(width: u16) -> Desk {
    let mut desk = Desk::new(width, 30);
    desk.events([Event::UserMessage(Message::user("change it"))]);
    desk.events(edit("a", "src/cart.rs", "let a = 1;\n", "let a = 2;\nlet b = 3;\n", 10));
    desk.events(edit("b", "src/shop/receipt.rs", "old\n", "new\n", 3));
    desk.events(edit(
        "c",
        "src/cart.rs",
        "x\n",
        &format!("{}\n", "long ".repeat(80)),
        40,
    ));
    desk.events([Event::Done(Done::default())]);
    desk
}

fn updates(desk: &Desk) -> Vec<String> {
    let update = |it: &Command| match it {
        Command::Update { document, metadata, .. } => Some(format!(
            "{} {}",
            document.as_str(),
            serde_json::to_string(metadata).unwrap()
        )),
        _ => None,
    };
    desk.sent().iter().filter_map(update).collect()
}

#[test]
fn files_stand_left_and_the_change_right() {
    for width in [80, 160] {
        let mut desk = changed(width);
        desk.keys("<ctrl+e>");
        let picture = desk.picture();
        for text in [
            "Review",
            "this turn",
            "1 of 3",
            "src/cart.rs",
            "receipt.rs",
            "let a = 1;",
            "let a = 2;",
            "let b = 3;",
            "src/cart.rs:10",
        ] {
            assert!(picture.contains(text), "{width} {text}\n{picture}");
        }
        let one = picture.lines().find(|it| it.contains("let a = 1;")).unwrap();
        assert_eq!(
            one.contains("let a = 2;"),
            width == 160,
            "side by side where there is room\n{picture}"
        );
        desk.keys("u");
        let picture = desk.picture();
        let one = picture.lines().find(|it| it.contains("let a = 1;")).unwrap();
        assert_eq!(one.contains("let a = 2;"), width == 80, "{picture}");
        desk.keys("<esc>");
        assert!(!desk.shows("Review"), "{}", desk.picture());
    }
}

#[test]
fn each_change_is_accepted_rejected_opened_or_spoken_of() {
    let mut desk = changed(100);
    desk.keys("<ctrl+e>a");
    assert!(updates(&desk).is_empty(), "not in the first moment");
    desk.later(400);
    desk.keys("a");
    assert_eq!(updates(&desk), ["a {\"accepted\":true}"]);
    assert!(desk.shows("2 of 3"), "on to the next\n{}", desk.picture());
    desk.keys("r");
    assert_eq!(
        updates(&desk).last().map(String::as_str),
        Some("c {\"applied\":\"rejected\"}")
    );
    desk.events([Event::DocumentUpdate {
        document: "c".into(),
        metadata: json!({ "applied": "rejected" }).as_object().unwrap().clone(),
    }]);
    assert!(desk.shows("✗ rejected"), "{}", desk.picture());
    desk.keys("rJe");
    assert_eq!(updates(&desk).len(), 2, "what is rejected is not rejected again");
    let opened = Effect::OpenFile {
        path: "src/shop/receipt.rs".into(),
        line: Some(3),
    };
    assert_eq!(desk.effects.last(), Some(&opened));
    desk.keys("c");
    assert_eq!(desk.app.composer.field.text(), "#1.2 ");
    assert!(!desk.shows("Review"), "{}", desk.picture());
}

#[test]
fn a_long_line_is_cut_with_a_mark_and_scrolled() {
    let mut desk = changed(90);
    desk.keys("<ctrl+e>j");
    let picture = desk.picture();
    let line = picture
        .lines()
        .find(|it| it.contains("+ long long"))
        .unwrap_or_else(|| panic!("{picture}"));
    assert!(line.trim_end().ends_with('…'), "{picture}");
    let before = line.to_owned();
    desk.keys("\u{1b}[C");
    assert!(!desk.shows(&before), "{}", desk.picture());
}

#[test]
fn r_on_an_edit_reviews_it_and_nothing_to_review_is_said() {
    let mut desk = changed(100);
    desk.keys("<tab>");
    desk.keys("kr");
    assert!(desk.shows("Review") && desk.shows("receipt.rs:3"), "{}", desk.picture());
    let mut desk = Desk::new(80, 24);
    desk.keys("/review<enter>");
    assert!(desk.shows("no file was changed"), "{}", desk.picture());
}

#[test]
fn no_width_breaks_a_review() {
    for width in 1..=300 {
        let mut desk = Desk::new(width, 12).blind();
        desk.events([Event::UserMessage(Message::user("go"))]);
        desk.events(edit("a", "src/語.rs", "語漢字\t👨‍👩‍👧\n", "e\u{301}\n語\n", 1));
        desk.keys("<ctrl+e>");
        desk.keys("uju<esc>");
    }
}

#[test]
fn a_change_that_waits_is_allowed_or_rejected_in_the_review() {
    for (key, option) in [("a", "allow_once"), ("r", "reject_once")] {
        let mut desk = Desk::new(120, 30);
        desk.events([Event::UserMessage(Message::user("change it"))]);
        desk.events([start(
            "ask",
            "clarification",
            json!({
                "kind": "approval",
                "subject": { "type": "file_edit", "metadata": {
                    "filePath": "src/cart.rs", "operation": "edit",
                    "diff": { "oldString": "let a = 1;\n", "newString": "let a = 2;\n", "startLine": 10 } } },
                "questions": [{ "id": "approval", "text": "Allow it?",
                    "options": [
                    { "id": "allow_once", "label": "once" }, { "id": "reject_once", "label": "no" }] }],
            }),
        )]);
        desk.later(1000);
        desk.keys("<ctrl+e>");
        for text in ["Review", "src/cart.rs", "not written yet", "let a = 2;"] {
            assert!(desk.shows(text), "{text}\n{}", desk.picture());
        }
        desk.keys(key);
        assert_eq!(desk.sent(), [], "it has only just appeared");
        desk.later(1000);
        desk.keys(key);
        desk.keys(key);
        let sent = desk.sent();
        let [Command::Answer { response, .. }] = sent.as_slice() else {
            panic!("{sent:?}")
        };
        assert_eq!(response.answers[0].selected_option_ids, [option]);
    }
}
