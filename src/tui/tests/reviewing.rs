//! Every change of a turn in one place, and what is said of each.

use serde_json::json;

use super::super::{
    msg::{EffectOutcome, Msg},
    test_app::*,
};
use crate::{
    protocol::{Command, Done, Event, Message, RestoreTarget, Turn},
    tui::app::Effect,
};

fn edit(id: &str, path: &str, old: &str, new: &str, line: u64) -> [Event; 2] {
    document(
        id,
        "file_edit",
        Some(new),
        json!({ "filePath": path, "operation": "edit", "language": "rust",
            "diff": { "oldString": old, "newString": new, "startLine": line } }),
    )
}

pub fn changed(width: u16) -> TestApp {
    let mut desk = TestApp::new(width, 30);
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

fn updates(desk: &TestApp) -> Vec<String> {
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
        desk.keys("<alt+r>");
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
fn one_file_needs_no_list_beside_its_change() {
    let mut desk = TestApp::new(80, 24);
    desk.events([Event::UserMessage(Message::user("change it"))]);
    desk.events(edit("a", "src/cart.rs", "let a = 1;\n", "let a = 2;\n", 10));
    desk.events([Event::Done(Done::default())]);
    desk.keys("<alt+r>");
    let places = desk.picture().matches("cart.rs").count();
    assert_eq!(places, 1, "{}", desk.picture());
    assert!(!desk.shows("│"), "{}", desk.picture());
    assert!(desk.shows("Keys go to the review"), "{}", desk.picture());
    desk.keys("<esc>");
    assert!(desk.shows("Ask anything"), "{}", desk.picture());
}

#[test]
fn each_change_is_accepted_rejected_opened_or_spoken_of() {
    let mut desk = changed(100);
    desk.keys("<alt+r>a");
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
    assert!(desk.shows("3 of 3"), "on to the next here, too\n{}", desk.picture());
    desk.keys("k");
    assert!(desk.shows("✗ rejected"), "{}", desk.picture());
    desk.later(400);
    desk.keys("rJe");
    let opens = |it: &Effect| matches!(it, Effect::OpenFile { .. });
    assert!(!desk.front.effects.iter().any(opens), "a letter opens no other program");
    desk.keys("<enter>");
    assert_eq!(updates(&desk).len(), 2, "what is rejected is not rejected again");
    let opened = Effect::OpenFile {
        path: "src/shop/receipt.rs".into(),
        line: Some(3),
    };
    assert_eq!(desk.front.effects.last(), Some(&opened));
    desk.keys("c");
    assert_eq!(desk.app.composer.field.text(), "#1.2 ");
    assert!(!desk.shows("Review"), "{}", desk.picture());
}

#[test]
fn a_yes_to_what_was_taken_back_brings_it_back() {
    for (metadata, is_brought) in [
        (json!({ "applied": "rejected", "undone": true }), true),
        (json!({ "undone": true }), true),
        (json!({ "applied": "rejected" }), false),
    ] {
        let mut desk = changed(100);
        desk.events([Event::DocumentUpdate {
            document: "a".into(),
            metadata: metadata.as_object().unwrap().clone(),
        }]);
        desk.keys("<alt+r>");
        desk.later(1000);
        desk.keys("a");
        assert!(updates(&desk).is_empty(), "{metadata}: it is not on the disk");
        assert!(desk.shows("1 of 3"), "{metadata}\n{}", desk.picture());
        let target = RestoreTarget::RedoDocument {
            turn: Turn(1),
            document: "a".into(),
        };
        let is_redo = |it: &Command| matches!(it, Command::Restore(it) if it.target == target);
        assert_eq!(desk.sent().iter().any(is_redo), is_brought, "{metadata}");
        let said = if is_brought {
            "a then accepts it"
        } else {
            "before it was written"
        };
        assert!(desk.shows(said), "{metadata}\n{}", desk.picture());
    }
}

#[test]
fn the_footer_of_the_review_shows_what_decides_and_what_is_possible() {
    let footer = |desk: &TestApp| desk.picture().lines().last().unwrap_or_default().trim().to_owned();
    let mut desk = changed(80);
    desk.keys("<alt+r>");
    let shown = footer(&desk);
    assert!(
        shown.starts_with("a accept   r reject   j k hunk   C commit   "),
        "{shown}"
    );
    let mut desk = changed(40);
    desk.keys("<alt+r>");
    assert_eq!(footer(&desk), "a accept   r reject   esc back   f1");
    let mut desk = changed(30);
    desk.keys("<alt+r>");
    assert_eq!(footer(&desk), "a accept   r reject   f1");
    // Nothing is written yet: there is nothing to commit.
    let desk = staged(120);
    assert!(footer(&desk).contains("j k hunk   c comment"), "{}", footer(&desk));
    // The key that decides on each hunk is named on the card.
    let mut desk = asked(120);
    desk.later(1000);
    desk.keys("<esc><tab>");
    assert!(
        footer(&desk).contains("r each hunk   + - context"),
        "{}",
        desk.picture()
    );
}

#[test]
fn what_a_page_says_of_its_keys_goes_with_the_page() {
    let mut desk = changed(100);
    desk.keys("words<alt+r>");
    desk.later(1000);
    desk.keys("e");
    assert!(desk.shows(crate::t!("review-enter-edits")), "{}", desk.picture());
    desk.keys("<esc>");
    assert!(!desk.shows(crate::t!("review-enter-edits")), "{}", desk.picture());
    // What was done stays to be read.
    desk.keys("<alt+r>");
    desk.later(1000);
    desk.keys("+<esc>");
    assert_eq!(desk.app.toast, Some(crate::t!("action-context-lines", count = 6usize)));
}

#[test]
fn a_long_line_is_cut_with_a_mark_and_scrolled() {
    let mut desk = changed(90);
    desk.keys("<alt+r>j");
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
    let mut desk = TestApp::new(80, 24);
    desk.keys("/review<enter>");
    assert!(desk.shows("no changes to review"), "{}", desk.picture());
}

#[test]
fn no_width_breaks_a_review() {
    for width in 1..=300 {
        let mut desk = TestApp::new(width, 12).blind();
        desk.events([Event::UserMessage(Message::user("go"))]);
        desk.events(edit("a", "src/語.rs", "語漢字\t👨‍👩‍👧\n", "e\u{301}\n語\n", 1));
        desk.keys("<alt+r>");
        desk.keys("uju<esc>");
    }
}

#[test]
fn a_change_that_waits_is_allowed_or_rejected_in_the_review() {
    for (key, option) in [("a", "allow_once"), ("r", "reject_once")] {
        let mut desk = TestApp::new(120, 30);
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
        desk.keys("<alt+r>");
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

#[test]
fn what_makes_a_yes_grave_is_said_in_the_review() {
    let mut desk = TestApp::new(120, 30);
    desk.events([Event::UserMessage(Message::user("change it"))]);
    desk.events([start(
        "ask",
        "clarification",
        json!({
            "kind": "approval",
            "subject": { "type": "file_edit", "metadata": {
                "filePath": ".vscode/settings.json", "operation": "edit", "protected": true,
                "diff": { "oldString": "1\n", "newString": "2\n", "startLine": 10 } } },
            "questions": [{ "id": "approval", "text": "Allow it?", "options": [
                { "id": "allow_once", "label": "once" }, { "id": "reject_once", "label": "no" }] }],
        }),
    )]);
    desk.events([Event::ContentDelta {
        document: "ask".into(),
        delta: "2 of 3 that are made together or not at all.".to_owned(),
    }]);
    desk.later(1000);
    desk.keys("<alt+r>");
    for text in ["protected", "2 of 3 that are made together", "not written yet"] {
        assert!(desk.shows(text), "{text}\n{}", desk.picture());
    }
}

#[test]
fn a_long_line_is_scrolled_to_its_end_and_no_further() {
    let mut desk = changed(80);
    desk.keys("<alt+r>j");
    let begin = desk.picture();
    assert!(begin.contains("+ long long") && begin.contains('…'), "{begin}");
    desk.keys(&"<right>".repeat(100));
    let end = desk.picture();
    assert!(end.contains("+ …") && end.contains("ong long "), "{end}");
    desk.keys("<left>");
    assert_ne!(desk.picture(), end);
    desk.keys(&"<left>".repeat(100));
    assert_eq!(desk.picture(), begin);
}

#[test]
fn what_failed_is_no_change_and_what_was_taken_back_says_so() {
    let mut desk = changed(120);
    let failed = json!({ "filePath": "src/gone.rs", "operation": "edit", "applied": "failed" });
    desk.events(document("d", "file_edit", None, failed));
    desk.keys("<alt+r>");
    assert!(desk.shows("1 of 3") && !desk.shows("gone.rs "), "{}", desk.picture());
    // Two of the file: one stays, the other is taken back.
    for (id, metadata) in [("a", json!({ "accepted": true })), ("c", json!({ "undone": true }))] {
        desk.events([Event::DocumentUpdate {
            document: id.into(),
            metadata: serde_json::from_value(metadata).unwrap(),
        }]);
    }
    desk.keys("j");
    assert!(
        desk.shows("✓ src/cart.rs") && desk.shows("1/2") && desk.shows("↶ undone"),
        "{}",
        desk.picture()
    );
}

#[test]
fn what_was_let_be_written_is_accepted() {
    let mut desk = TestApp::new(120, 30);
    desk.events([Event::UserMessage(Message::user("change it"))]);
    let change = json!({ "filePath": "src/cart.rs", "operation": "edit", "toolCallId": "1",
        "diff": { "oldString": "1\n", "newString": "2\n", "startLine": 10 } });
    desk.events(document(
        "ask",
        "clarification",
        None,
        json!({
            "kind": "approval", "toolCallId": "1",
            "subject": { "type": "file_edit", "metadata": change },
            "questions": [{ "id": "approval", "text": "Allow it?", "options": [{ "id": "allow_once", "label": "once" }] }],
            "outcome": "answered",
            "answers": [{ "questionId": "approval", "selectedOptionIds": ["allow_once"] }],
        }),
    ));
    desk.events(document("a", "file_edit", None, change));
    desk.events(edit("b", "src/shop.rs", "old\n", "new\n", 3));
    desk.keys("<alt+r>");
    assert!(
        desk.shows("✓ src/cart.rs") && desk.shows("✓ accepted") && desk.shows("○ src/shop.rs"),
        "{}",
        desk.picture()
    );
}

#[test]
fn what_a_no_means_for_several_files_is_said_once_and_with_the_reason() {
    let mut desk = TestApp::new(160, 30);
    desk.events([Event::UserMessage(Message::user("change it"))]);
    desk.events([start(
        "ask",
        "clarification",
        json!({
            "kind": "approval",
            "subject": { "type": "file_edit", "metadata": {
                "filePath": "a.rs", "operation": "edit", "together": { "at": 2, "of": 3 },
                "diff": { "oldString": "1\n", "newString": "2\n", "startLine": 10 } } },
            "questions": [{ "id": "approval", "text": "Allow it?", "options": [
                { "id": "allow_once", "label": "once" }, { "id": "reject_once", "label": "no" }] }],
        }),
    )]);
    let lead = "change 2 of 3 in one step: rejecting one rejects all, unless hunks were chosen before; it is new";
    desk.events([Event::ContentDelta {
        document: "ask".into(),
        delta: lead.to_owned(),
    }]);
    desk.later(1000);
    let picture = desk.picture();
    assert_eq!(picture.matches("rejecting one rejects all").count(), 1, "{picture}");
    assert!(picture.contains("2 of 3") && picture.contains("it is new"), "{picture}");
}

#[test]
fn a_change_that_takes_the_place_of_another_is_not_decided_on_unread() {
    let mut desk = TestApp::new(120, 30);
    desk.events([Event::UserMessage(Message::user("change them"))]);
    let ask = |id: &str, path: &str| {
        start(
            id,
            "clarification",
            json!({
                "kind": "approval",
                "subject": { "type": "file_edit", "metadata": {
                    "filePath": path, "operation": "edit",
                    "diff": { "oldString": "1\n", "newString": "2\n", "startLine": 10 } } },
                "questions": [{ "id": "approval", "text": "Allow it?", "options": [
                    { "id": "allow_once", "label": "once" }, { "id": "reject_once", "label": "no" }] }],
            }),
        )
    };
    desk.events([ask("one", "a.rs"), ask("two", "b.rs")]);
    desk.later(1000);
    desk.keys("<alt+r>");
    desk.later(1000);
    assert!(desk.shows("a.rs") && desk.shows("b.rs"), "{}", desk.picture());
    // The first one is answered in another window.
    desk.events([Event::DocumentEnd {
        document: "one".into(),
        final_content: None,
        metadata: serde_json::from_value(json!({ "outcome": "answered", "answers": [{ "questionId": "approval", "selectedOptionIds": ["allow_once"] }] })).unwrap(),
    }]);
    desk.keys("a");
    assert_eq!(desk.sent(), [], "{}", desk.picture());
    desk.later(1000);
    desk.keys("a");
    assert_eq!(desk.sent().len(), 1, "{}", desk.picture());
}

/// A change of three hunks that waits to be allowed, in the review.
fn staged(width: u16) -> TestApp {
    let mut desk = asked(width);
    desk.later(1000);
    desk.keys("<alt+r>");
    desk.later(1000);
    desk
}

fn asked(width: u16) -> TestApp {
    let mut desk = TestApp::new(width, 30);
    let hunk = |index: u64| {
        json!({ "index": index, "oldString": format!("let a{index} = 1;\n"), "newString": format!("let a{index} = 2;\n"),
            "startLine": index * 10, "endLine": index * 10 })
    };
    desk.events([Event::UserMessage(Message::user("change it"))]);
    desk.events([start(
        "ask",
        "clarification",
        json!({
            "kind": "approval",
            "subject": { "type": "file_edit", "metadata": {
                "filePath": "src/cart.rs", "operation": "edit", "language": "rust",
                "diff": { "oldString": "let a1 = 1;\n", "newString": "let a1 = 2;\n", "startLine": 10 },
                "hunks": [hunk(1), hunk(2), hunk(3)] } },
            "questions": [{ "id": "approval", "text": "Allow it?", "options": [
                { "id": "allow_once", "label": "once" }, { "id": "reject_once", "label": "no" }] }],
        }),
    )]);
    desk
}

fn answered(desk: &TestApp) -> serde_json::Value {
    let sent = desk.sent();
    let [Command::Answer { response, .. }] = sent.as_slice() else {
        panic!("{sent:?}")
    };
    serde_json::to_value(&response.answers[0]).unwrap()
}

#[test]
fn hunks_of_a_change_that_waits_are_decided_one_by_one() {
    let mut desk = staged(100);
    assert!(
        desk.shows("hunk 1 of 3") && desk.shows("let a1 = 2;"),
        "{}",
        desk.picture()
    );
    desk.keys("a");
    assert!(
        desk.shows("hunk 2 of 3") && desk.shows("1 accepted") && desk.shows("let a2 = 2;"),
        "{}",
        desk.picture()
    );
    desk.keys("cwhy two?<enter>");
    assert!(
        desk.shows("your comment: why two?") && desk.shows("✗ rejected"),
        "{}",
        desk.picture()
    );
    desk.keys("je<enter>");
    let Some(Effect::EditHunk {
        turn,
        document,
        index: 3,
        path,
        text,
    }) = desk.front.effects.last().cloned()
    else {
        panic!("{:?}", desk.front.effects)
    };
    assert_eq!((path.as_str(), text.as_str()), ("src/cart.rs", "let a3 = 2;\n"));
    assert_eq!(desk.sent(), [], "one is still open");
    // Left and opened again it is as it was.
    desk.keys("<esc><alt+r>");
    assert!(desk.shows("1 accepted   1 rejected"), "{}", desk.picture());
    desk.take(Msg::Done(EffectOutcome::HunkEdited {
        turn,
        document,
        index: 3,
        text: Ok("let a3 = 3;\n".to_owned()),
    }));
    assert_eq!(
        answered(&desk),
        json!({ "questionId": "approval", "selectedOptionIds": ["reject_once"],
            "freeText": "only hunk 1, 3 of 3; hunk 2: why two?; hunk 3 is to be:\nlet a3 = 3;\n",
            "hunks": [
                { "index": 1, "accepted": true },
                { "index": 2, "accepted": false, "comment": "why two?" },
                { "index": 3, "accepted": true, "newString": "let a3 = 3;\n" },
            ] })
    );
}

#[test]
fn a_yes_to_all_does_not_write_what_was_left_out() {
    let mut desk = staged(100);
    desk.keys("r<esc>");
    desk.later(1000);
    desk.keys("<alt+y>");
    assert_eq!(desk.sent(), [], "{}", desk.picture());
    assert!(desk.shows("decided on"), "{}", desk.picture());
    desk.keys("<alt+r>");
    desk.later(1000);
    assert!(desk.shows("1 rejected"), "{}", desk.picture());
    desk.keys("<esc><alt+n>");
    assert_eq!(answered(&desk)["selectedOptionIds"], json!(["reject_once"]));
}

#[test]
fn a_yes_for_the_session_does_not_write_what_was_left_out_of_another() {
    let mut desk = asked(100);
    desk.events([start(
        "other",
        "clarification",
        json!({
            "kind": "approval",
            "subject": { "type": "terminal_command", "metadata": { "command": "ls" } },
            "questions": [{ "id": "approval", "text": "Allow it?", "options": [
                { "id": "allow_once", "label": "once" }, { "id": "allow_session", "label": "session" },
                { "id": "reject_once", "label": "no" }] }],
        }),
    )]);
    desk.later(1000);
    desk.keys("<alt+r>");
    desk.later(1000);
    desk.keys("r<esc>");
    desk.later(1000);
    desk.keys("<tab>");
    desk.later(1000);
    desk.keys("j");
    desk.later(1000);
    desk.keys("a<enter>");
    assert_eq!(desk.sent(), [], "{}", desk.picture());
    assert!(desk.shows("y allows only this one"), "{}", desk.picture());
    desk.keys("y");
    assert_eq!(answered(&desk)["selectedOptionIds"], json!(["allow_once"]));
}

#[test]
fn a_key_that_is_held_decides_on_one_hunk() {
    // At once, after the wait of a terminal before a key comes again, and with slow repeats.
    for (wait, gap) in [(0, 0), (250, 33), (500, 33), (660, 25), (500, 120)] {
        let mut desk = staged(100);
        desk.keys("a");
        desk.later(wait);
        for _ in 0..40 {
            desk.keys("a");
            desk.later(gap);
        }
        assert!(
            desk.shows("1 accepted") && desk.shows("hunk 2 of 3"),
            "{wait} {gap}\n{}",
            desk.picture()
        );
        assert_eq!(desk.sent(), []);
        desk.later(1000);
        desk.keys("a");
        assert!(desk.shows("2 accepted"), "let go and pressed again\n{}", desk.picture());
    }
}

#[test]
fn the_other_key_waits_until_the_next_hunk_was_seen() {
    let mut desk = staged(100);
    desk.keys("ar");
    assert!(desk.shows("1 accepted   0 rejected"), "{}", desk.picture());
    desk.later(400);
    desk.keys("r");
    assert!(desk.shows("1 rejected"), "{}", desk.picture());
}

#[test]
fn a_remark_that_is_emptied_is_taken_back() {
    let mut desk = staged(100);
    desk.keys("cwhy<enter>");
    assert!(desk.shows("your comment: why"), "{}", desk.picture());
    desk.keys("c<ctrl+u><enter>");
    assert!(!desk.shows("your comment"), "{}", desk.picture());
}

#[test]
fn what_was_written_for_an_answered_question_stands_in_the_draft() {
    let mut desk = staged(100);
    desk.keys("e<enter>");
    let Some(Effect::EditHunk { turn, document, .. }) = desk.front.effects.last().cloned() else {
        panic!("{:?}", desk.front.effects)
    };
    desk.events([Event::DocumentEnd {
        document: "ask".into(),
        final_content: None,
        metadata: serde_json::from_value(json!({ "outcome": "answered" })).unwrap(),
    }]);
    desk.take(Msg::Done(EffectOutcome::HunkEdited {
        turn,
        document,
        index: 1,
        text: Ok("let mine = 1;\n".to_owned()),
    }));
    assert_eq!(desk.sent(), []);
    let draft = desk.app.composer.field.text();
    assert_eq!(draft.trim_end(), "#1.1 let mine = 1;");
}

#[test]
fn a_remark_is_about_what_it_was_begun_on() {
    let mut desk = staged(100);
    desk.keys("cwhy");
    desk.events([Event::DocumentEnd {
        document: "ask".into(),
        final_content: None,
        metadata: serde_json::from_value(json!({ "outcome": "answered" })).unwrap(),
    }]);
    desk.keys("<enter>");
    assert_eq!(desk.sent(), []);
    assert!(desk.shows("answered"), "{}", desk.picture());
    assert_eq!(desk.app.composer.field.text(), "#1.1 why");
}

#[test]
fn all_hunks_accepted_are_a_yes_and_none_is_a_no() {
    for (keys, answer) in [
        (
            "aaa",
            json!({ "questionId": "approval", "selectedOptionIds": ["allow_once"],
                "hunks": [{ "index": 1, "accepted": true }, { "index": 2, "accepted": true }, { "index": 3, "accepted": true }] }),
        ),
        (
            "rrr",
            json!({ "questionId": "approval", "selectedOptionIds": ["reject_once"], "freeText": "none of it",
                "hunks": [{ "index": 1, "accepted": false }, { "index": 2, "accepted": false }, { "index": 3, "accepted": false }] }),
        ),
    ] {
        let mut desk = staged(80);
        for key in keys.chars() {
            desk.keys(&key.to_string());
            desk.later(800);
        }
        assert_eq!(answered(&desk), answer);
    }
}

/// One edit that knows the lines around it.
fn with_context(width: u16) -> TestApp {
    let mut desk = TestApp::new(width, 40);
    let lines = |range: std::ops::Range<usize>| -> String { range.map(|it| format!("line {it}\n")).collect() };
    desk.events([Event::UserMessage(Message::user("change it"))]);
    desk.events(document(
        "a",
        "file_edit",
        Some("new\n"),
        json!({ "filePath": "src/cart.rs", "operation": "edit", "language": "text", "diff": {
            "oldString": "old\n", "newString": "new\n", "startLine": 21, "endLine": 21,
            "contextBefore": lines(9..21), "contextAfter": lines(22..34),
        } }),
    ));
    desk.events([Event::Done(Done::default())]);
    desk
}

#[test]
fn plus_and_minus_show_more_and_fewer_lines_around_a_change() {
    let shown = |desk: &mut TestApp| -> Vec<usize> {
        let picture = desk.picture();
        (9..34).filter(|it| picture.contains(&format!("line {it}"))).collect()
    };
    let around = |lines: usize| -> Vec<usize> { (21 - lines..21).chain(22..22 + lines).collect() };
    for (width, opens) in [(60, "<tab>"), (200, "<tab>"), (60, "<alt+r>"), (200, "<alt+r>")] {
        let mut desk = with_context(width);
        desk.keys(opens);
        assert_eq!(shown(&mut desk), around(3), "{opens}");
        for (key, lines) in [
            ('+', 6),
            ('+', 12),
            ('+', 12),
            ('-', 6),
            ('-', 3),
            ('-', 1),
            ('-', 0),
            ('-', 0),
            ('+', 1),
        ] {
            desk.keys(&key.to_string());
            assert_eq!(
                shown(&mut desk),
                around(lines),
                "{key} {opens} {width}\n{}",
                desk.picture()
            );
            let says = if lines == 1 {
                "1 line of context".to_owned()
            } else {
                format!("{lines} lines of context")
            };
            assert!(desk.shows(&says), "{}", desk.picture());
        }
    }
    // In the composer they are text.
    let mut desk = with_context(60);
    desk.keys("+-");
    assert_eq!(
        (desk.app.composer.field.text(), shown(&mut desk)),
        ("+-".to_owned(), around(3))
    );
}
