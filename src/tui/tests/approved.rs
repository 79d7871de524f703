//! A change that was decided on is shown once: the approval gives way to the change that follows it.

use serde_json::{Map, Value, json};

use super::super::test_app::*;
use crate::{
    protocol::{
        Command, Done, Event, Message, ResponseStart,
        document::{VIEWS, pending_check, unchecked},
    },
    transcript::DocumentIndex,
    tui::{app::inline::Inline, terminal::Surface, terminal::inline_region::Region, widgets::transcript::Item},
};

/// The approval of a change of a file, and its answer.
fn asked(id: &str, path: &str) -> Event {
    let options = ["allow_once", "allow_session", "allow_always", "reject_once"];
    let options: Vec<_> = options.iter().map(|it| json!({ "id": it, "label": it })).collect();
    let subject = json!({ "type": "file_edit", "content": "new\n", "metadata": {
        "filePath": path, "operation": "edit", "toolCallId": "call_1", "applied": "pending",
        "diff": { "oldString": "old\n", "newString": "new\n", "startLine": 3, "endLine": 3 },
    } });
    start(
        id,
        "clarification",
        json!({ "kind": "approval", "toolCallId": "call_1", "subject": subject,
            "questions": [{ "id": "approval", "text": "Allow it?", "options": options, "allowFreeText": true }] }),
    )
}

fn closed(id: &str, metadata: Value) -> Event {
    let Value::Object(metadata) = metadata else {
        panic!("it is an object")
    };
    Event::DocumentEnd {
        document: id.into(),
        final_content: None,
        metadata,
    }
}

fn answered(id: &str, option: &str, words: Option<&str>) -> Event {
    closed(
        id,
        json!({ "outcome": "answered", "answers": [{
            "questionId": "approval", "selectedOptionIds": [option], "freeText": words,
        }] }),
    )
}

/// The change itself, made or not.
fn made(id: &str, path: &str, applied: &str, more: Value) -> [Event; 2] {
    let mut metadata = json!({
        "filePath": path, "operation": "edit", "toolCallId": "call_1", "applied": applied,
        "diff": { "oldString": "old\n", "newString": "new\n", "startLine": 3, "endLine": 3 },
    });
    if let (Value::Object(members), Value::Object(more)) = (&mut metadata, more) {
        members.extend(more);
    }
    document(id, "file_edit", Some("new\n"), metadata)
}

fn begun() -> [Event; 2] {
    [
        Event::UserMessage(Message::user("change it")),
        Event::ResponseStart(ResponseStart::default()),
    ]
}

/// The pictures of a conversation that came event by event, and of the same that was read at once.
fn pictures(events: &[Event], width: u16) -> [String; 2] {
    let mut live = TestApp::new(width, 24);
    for event in events {
        live.events([event.clone()]);
        live.picture();
    }
    let mut replayed = TestApp::new(width, 24);
    replayed.events(events.iter().cloned());
    [live.picture(), replayed.picture()]
}

#[test]
fn an_approved_change_is_shown_once_with_how_it_was_allowed() {
    for (option, says) in [
        ("allow_once", "allowed once"),
        ("allow_session", "allowed for this session"),
        ("allow_always", "always allowed"),
    ] {
        for width in [60, 80, 120, 200] {
            let mut events = begun().to_vec();
            events.push(asked("1", "src/cart.rs"));
            events.push(answered("1", option, None));
            events.extend(made("2", "src/cart.rs", "applied", json!({})));
            events.push(Event::Done(Done::default()));
            let [live, replayed] = pictures(&events, width);
            assert_eq!(live, replayed, "{width}");
            assert_eq!(live.matches("− old").count(), 1, "{live}");
            assert_eq!(live.matches(says).count(), 1, "{live}");
            assert!(!live.contains("? allow"), "{live}");
            assert!(live.contains("1.2 ± edit"), "its own address stays\n{live}");
        }
    }
}

/// The approval of a command or a call, its answer, and the document of what was decided.
fn decided(kind: &str, option: &str, words: Option<&str>, outcome: &Value) -> Vec<Event> {
    let what = json!({ "command": "git push", "toolName": "web_fetch", "toolCallId": "call_1",
        "arguments": { "url": "https://example.org" } });
    let options = ["allow_once", "allow_session", "reject_once"].map(|it| json!({ "id": it, "label": it }));
    let mut events = begun().to_vec();
    events.push(start(
        "1",
        "clarification",
        json!({ "kind": "approval", "toolCallId": "call_1", "subject": { "type": kind, "metadata": what },
            "questions": [{ "id": "approval", "text": "Allow it?", "options": options, "allowFreeText": true }] }),
    ));
    events.push(answered("1", option, words));
    let mut done = what;
    if let (Value::Object(members), Value::Object(more)) = (&mut done, outcome) {
        members.extend(more.clone());
    }
    events.extend(document("2", kind, None, done));
    events.push(Event::Done(Done::default()));
    events
}

#[test]
fn an_approved_command_or_call_is_shown_once_with_how_it_was_decided() {
    for (kind, option, words, outcome, title, says) in [
        (
            "terminal_command",
            "allow_once",
            None,
            json!({ "exitCode": 0, "output": "ok\n" }),
            "$ git push",
            "allowed once",
        ),
        (
            "terminal_command",
            "reject_once",
            Some("not today"),
            json!({ "state": "rejected" }),
            "$ git push",
            "not today",
        ),
        (
            "tool_call",
            "allow_session",
            None,
            json!({ "result": { "status": "success", "data": "" } }),
            "fetch",
            "allowed for this session",
        ),
        (
            "tool_call",
            "reject_once",
            Some("not today"),
            json!({ "result": { "status": "error", "data": "Error [TOOL_REJECTED]: the user rejected this" } }),
            "fetch",
            "not today",
        ),
    ] {
        let events = decided(kind, option, words, &outcome);
        for width in [80, 120, 200] {
            let [live, replayed] = pictures(&events, width);
            assert_eq!(live, replayed, "{kind} {width}");
            assert!(!live.contains("? allow"), "{kind} {option}\n{live}");
            assert_eq!(live.matches(title).count(), 1, "{kind} {option}\n{live}");
            assert_eq!(live.matches(says).count(), 1, "{kind} {option}\n{live}");
        }
    }
}

#[test]
fn a_failed_change_is_one_line_in_plain_words() {
    let failure = json!({ "errorCode": "EDIT_NO_MATCH", "message": "no match in `a.rs`", "details": "Read it again." });
    let mut events = begun().to_vec();
    let mut made = made(
        "1",
        "a.rs",
        "failed",
        json!({ "failure": failure, "toolCallId": "call_1" }),
    );
    if let Event::DocumentStart(start) = &mut made[0] {
        start.content = None;
        start.metadata.shift_remove("diff");
    }
    events.extend(made);
    let told = json!({ "errorCode": "EDIT_NO_MATCH", "source": "edit_file", "details": "Read it again." });
    events.extend(document("2", "error", Some("no match in `a.rs`"), told));
    events.push(Event::Done(Done::default()));
    for width in [40, 80, 120, 200] {
        let [live, replayed] = pictures(&events, width);
        assert_eq!(live, replayed, "{width}");
        assert!(
            !live.contains("EDIT_NO_MATCH") && !live.contains("Read it again"),
            "{width}\n{live}"
        );
        assert_eq!(live.matches("a.rs").count(), 1, "{width}\n{live}");
    }
    let mut desk = TestApp::new(80, 24);
    desk.events(events);
    desk.keys("<tab>");
    let edit = Item::Document(DocumentIndex {
        exchange: 0,
        document: 0,
    });
    desk.app.viewport.pane.selected = Some(edit);
    desk.keys("<enter>");
    assert!(
        desk.shows("no match in `a.rs`") && desk.shows("Read it again."),
        "{}",
        desk.picture()
    );
}

#[test]
fn a_refused_change_is_shown_once_with_the_reason() {
    let mut events = begun().to_vec();
    events.push(asked("1", "src/cart.rs"));
    events.push(answered("1", "reject_once", Some("keep the old name")));
    events.extend(made("2", "src/cart.rs", "rejected", json!({})));
    events.push(Event::Done(Done::default()));
    let [live, replayed] = pictures(&events, 80);
    assert_eq!(live, replayed);
    assert_eq!(live.matches("− old").count(), 1, "{live}");
    assert_eq!(live.matches("rejected").count(), 1, "{live}");
    assert_eq!(live.matches("keep the old name").count(), 1, "{live}");
}

#[test]
fn what_was_said_of_a_hunk_stands_on_that_hunk() {
    let mut events = begun().to_vec();
    events.push(asked("1", "src/cart.rs"));
    events.push(closed(
        "1",
        json!({ "outcome": "answered", "answers": [{
            "questionId": "approval", "selectedOptionIds": ["reject_once"], "freeText": "only hunk 1 of 2",
            "hunks": [{ "index": 1, "accepted": true }, { "index": 2, "accepted": false, "comment": "leave it" }],
        }] }),
    ));
    events.extend(made(
        "2",
        "src/cart.rs",
        "applied",
        json!({ "hunk": { "index": 1, "count": 2 } }),
    ));
    events.extend(made(
        "3",
        "src/cart.rs",
        "rejected",
        json!({ "hunk": { "index": 2, "count": 2 } }),
    ));
    events.push(Event::Done(Done::default()));
    let [live, replayed] = pictures(&events, 80);
    assert_eq!(live, replayed);
    assert!(!live.contains("? allow") && !live.contains("only hunk 1"), "{live}");
    assert_eq!(
        [live.matches("allowed once").count(), live.matches("leave it").count()],
        [1, 1],
        "{live}"
    );
}

#[test]
fn an_approval_without_a_change_stays() {
    // It was stopped, or it is of another file.
    for (outcome, path) in [("cancelled", "src/cart.rs"), ("answered", "src/other.rs")] {
        let mut events = begun().to_vec();
        events.push(asked("1", "src/cart.rs"));
        events.push(closed("1", json!({ "outcome": outcome })));
        events.extend(made("2", path, "applied", json!({})));
        events.push(Event::Done(Done::default()));
        let [live, replayed] = pictures(&events, 80);
        assert_eq!(live, replayed);
        assert!(live.contains("1.1 ? allow  edit src/cart.rs"), "{live}");
    }
}

#[test]
fn the_approval_stays_in_view_until_its_change_comes_and_the_selection_goes_on_to_that() {
    let mut desk = TestApp::new(80, 24);
    desk.events(begun());
    desk.events([asked("1", "a.rs"), asked("2", "b.rs")]);
    desk.keys("<tab>");
    assert!(desk.shows("edit a.rs") && desk.shows("edit b.rs"), "{}", desk.picture());
    desk.events([answered("1", "allow_once", None)]);
    assert!(desk.shows("edit a.rs"), "it is not written yet\n{}", desk.picture());
    desk.events([answered("2", "allow_once", None)]);
    // Who reads it goes on to the change.
    let document = |document| Item::Document(DocumentIndex { exchange: 0, document });
    desk.app.viewport.pane.selected = Some(document(0));
    desk.events(made("3", "a.rs", "applied", json!({})));
    desk.events(made("4", "b.rs", "applied", json!({})));
    assert_eq!(
        desk.app.viewport.pane.items,
        [Item::Message(0), document(2), document(3)]
    );
    assert_eq!(desk.app.viewport.pane.selected, Some(document(2)));
    // Who filters for questions finds them.
    desk.keys("<esc>/filter questions<enter>");
    assert!(desk.shows("? allow"), "{}", desk.picture());
}

#[test]
fn the_work_for_an_edit_does_not_grow_with_the_answer() {
    let views = |count: usize| {
        let mut desk = TestApp::new(80, 24);
        desk.events(begun());
        let events = (0..count).flat_map(|it| {
            let (approval, edit, path) = (format!("a{it}"), format!("e{it}"), format!("f{it}.rs"));
            let decided = [asked(&approval, &path), answered(&approval, "allow_once", None)];
            decided.into_iter().chain(made(&edit, &path, "applied", json!({})))
        });
        let events: Vec<_> = events.collect();
        let before = VIEWS.get();
        desk.events(events);
        (VIEWS.get() - before) / count
    };
    let (few, many) = (views(50), views(500));
    assert!(many <= few + 1, "{few} {many}");
}

#[test]
fn the_work_of_a_frame_does_not_grow_with_the_decided_edits() {
    let views = |count: usize| {
        let mut desk = TestApp::new(80, 24);
        desk.events(begun());
        for it in 0..count {
            let (approval, edit, path) = (format!("a{it}"), format!("e{it}"), format!("f{it}.rs"));
            desk.events([asked(&approval, &path), answered(&approval, "allow_once", None)]);
            desk.events(made(&edit, &path, "applied", json!({})));
        }
        desk.keys("a");
        let before = VIEWS.get();
        desk.keys("b");
        VIEWS.get() - before
    };
    assert_eq!(views(20), views(200));
}

#[test]
fn inline_an_approval_waits_for_its_change_before_it_is_printed() {
    let mut desk = TestApp::new(80, 24);
    desk.app.terminal.inline = Some(Inline::default());
    let mut screen = Surface::new(80, 24);
    let mut region = Region::new((80, 24));
    let mut printed = |desk: &mut TestApp| {
        desk.app.prepare_inline(&mut region, &mut screen, &mut Vec::new());
        desk.app.terminal.inline.as_ref().map(|it| it.printed)
    };
    desk.events(begun());
    desk.events([asked("1", "src/cart.rs")]);
    assert_eq!(printed(&mut desk), Some(1), "the message");
    desk.events([answered("1", "allow_once", None)]);
    assert_eq!(printed(&mut desk), Some(1), "it is about to be replaced");
    desk.events(made("2", "src/cart.rs", "applied", json!({})));
    assert_eq!(desk.app.viewport.pane.items.len(), 2);
    // Without a change it is printed when the answer ends.
    desk.events([asked("3", "src/other.rs"), answered("3", "allow_once", None)]);
    desk.events([Event::Done(Done::default())]);
    assert_eq!(
        desk.app.viewport.pane.items.len(),
        4,
        "message, change, approval, receipt"
    );
}

#[test]
fn inline_a_change_is_printed_once_it_has_been_looked_at() {
    // A deletion shows no code, which would wait for its colours.
    let mut desk = TestApp::new(80, 24);
    desk.app.terminal.inline = Some(Inline::default());
    let mut screen = Surface::new(80, 24);
    let mut region = Region::new((80, 24));
    let mut printed = |desk: &mut TestApp| {
        desk.app.prepare_inline(&mut region, &mut screen, &mut Vec::new());
        desk.app.terminal.inline.as_ref().map(|it| it.printed)
    };
    let deleted = |id: &str| {
        let about =
            json!({ "filePath": "a.rs", "operation": "delete", "applied": "applied", "checked": pending_check() });
        document(id, "file_edit", None, about)
    };
    desk.events(begun());
    desk.events(deleted("1"));
    assert_eq!(printed(&mut desk), Some(1), "the message");
    let metadata = Map::from_iter([("checked".to_owned(), unchecked(&[]))]);
    desk.events([Event::DocumentUpdate {
        document: "1".into(),
        metadata,
    }]);
    assert_eq!(printed(&mut desk), Some(2), "it says what came of it");
    // Where the answer ends before, nothing more will come of it.
    desk.events(deleted("2"));
    assert_eq!(printed(&mut desk), Some(2));
    desk.events([Event::Done(Done::default())]);
    assert_eq!(printed(&mut desk), Some(4), "the change and the end");
}

/// An approval of a command of 40 lines.
fn long_command() -> Event {
    long_command_of("ask")
}

/// The same, with an id of its own.
fn long_command_of(id: &str) -> Event {
    let command: Vec<_> = (1..=40).map(|it| format!("curl https://host-{it}.example")).collect();
    let options = [
        json!({ "id": "allow_once", "label": "Once" }),
        json!({ "id": "reject_once", "label": "No" }),
    ];
    let subject = json!({ "type": "terminal_command", "command": command.join("\n"), "workingDirectory": "/p" });
    start(
        id,
        "clarification",
        json!({ "kind": "approval", "toolCallId": format!("call_{id}"), "subject": subject,
            "questions": [{ "id": "approval", "text": "Allow it?", "options": options }] }),
    )
}

#[test]
fn a_command_is_allowed_only_once_all_of_it_was_on_the_screen() {
    let answers = |desk: &TestApp| {
        desk.sent()
            .iter()
            .filter(|it| matches!(it, Command::Answer { .. }))
            .count()
    };
    // Who follows the end sees it from its first line.
    let mut desk = TestApp::new(80, 16);
    desk.events(begun());
    desk.events([long_command()]);
    assert!(
        desk.shows("host-1.example") && !desk.shows("host-40.example"),
        "{}",
        desk.picture()
    );
    // The rest is counted, and shown before it can be allowed.
    assert!(desk.shows("more rows ↓"), "{}", desk.picture());
    desk.later(1000);
    let mut presses = 0;
    while desk.shows("↓") {
        desk.keys("<alt+y>");
        presses += 1;
        assert_eq!(answers(&desk), 0, "there is more: {}", desk.picture());
        if presses == 1 {
            assert!(
                !desk.shows("host-1.example") && !desk.shows("host-40.example"),
                "{}",
                desk.picture()
            );
        }
    }
    assert!(desk.shows("host-40.example"), "{}", desk.picture());
    assert!(presses >= 3, "{presses}");
    desk.keys("<alt+y>");
    assert_eq!(answers(&desk), 1);
    // Who goes to its end has not seen what lies between.
    let mut desk = TestApp::new(80, 16);
    desk.events(begun());
    desk.events([long_command()]);
    desk.picture();
    desk.keys("<tab><end>");
    desk.later(1000);
    assert!(desk.shows("host-40.example"), "{}", desk.picture());
    desk.keys("y");
    assert_eq!(answers(&desk), 0, "{}", desk.picture());
    assert!(desk.shows("host-14.example"), "{}", desk.picture());
    for _ in 0..presses {
        desk.keys("y");
    }
    assert_eq!(answers(&desk), 1);
    // Who reads elsewhere is taken there first.
    let mut desk = TestApp::new(80, 16);
    desk.events(begun());
    let text: Vec<_> = (1..=60).map(|it| format!("line {it}")).collect();
    desk.events([start("t", "text", json!({})), delta("t", &text.join("\n\n"))]);
    desk.picture();
    desk.keys("<pgup><pgup>");
    desk.events([long_command()]);
    desk.later(1000);
    assert!(!desk.shows("host-1.example"), "{}", desk.picture());
    desk.keys("<alt+y>");
    assert_eq!(answers(&desk), 0, "it was not seen");
    assert!(desk.shows("host-1.example"), "{}", desk.picture());
    for _ in 0..presses {
        desk.keys("<alt+y>");
        assert_eq!(answers(&desk), 0, "its end was not seen");
    }
    desk.keys("<alt+y>");
    assert_eq!(answers(&desk), 1);
}

#[test]
fn the_rest_of_an_approval_is_where_the_arrow_points() {
    let mut desk = TestApp::new(40, 12);
    desk.events(begun());
    desk.events([long_command()]);
    desk.picture();
    assert!(desk.shows("more rows ↓"), "{}", desk.picture());
    let footer = desk.picture().lines().last().unwrap_or_default().to_owned();
    assert!(
        ["alt+y", "alt+n", "f1"].iter().all(|it| footer.contains(it)),
        "{footer}"
    );
    // The card is shown to its end: what was not seen is above.
    desk.keys("<tab><end>");
    assert!(
        desk.shows("more rows ↑") && !desk.shows("more rows ↓"),
        "{}",
        desk.picture()
    );
    let is_answered = |desk: &TestApp| desk.sent().iter().any(|it| matches!(it, Command::Answer { .. }));
    let seen = |desk: &TestApp| {
        let seen = desk.app.questions.seen.values().next();
        seen.map_or((0, 0), |it| (it.rows, it.left))
    };
    let (_, mut left) = seen(&desk);
    while left > 0 {
        let (from, rows) = seen(&desk);
        desk.later(1000);
        desk.keys("y");
        assert!(!is_answered(&desk), "{left} rows were not read");
        let item = Item::Document(DocumentIndex {
            exchange: 0,
            document: 0,
        });
        let first = desk.app.viewport.pane.rows_in_view(item).map(|it| it.0);
        assert!(
            first.is_some_and(|it| it <= from),
            "nothing is skipped: {first:?} {from}"
        );
        left = seen(&desk).1;
        assert!(left < rows, "each press shows more");
    }
    // The end was seen at first: it is not asked for again.
    desk.later(1000);
    desk.keys("y");
    assert!(is_answered(&desk), "{}", desk.picture());
}

/// The card is read from its first row on; the keys go there, and the view stays.
#[test]
fn going_to_a_tall_approval_leaves_it_where_it_is() {
    for (width, height) in [(60, 16), (90, 16), (100, 24), (52, 12)] {
        let mut desk = TestApp::new(width, height);
        desk.events(begun());
        desk.events([long_command()]);
        desk.later(1000);
        assert!(desk.shows("host-1.example"), "{}", desk.picture());
        for way in ["<tab>", "<esc><up>", "<esc><enter>"] {
            desk.keys(way);
            desk.later(1000);
            assert!(
                desk.shows("host-1.example") && desk.shows("more rows ↓"),
                "{way}\n{}",
                desk.picture()
            );
        }
        // From there `y` leads to the rest, and only then it allows.
        for _ in 0..60 {
            if !desk.shows("more rows") {
                break;
            }
            assert!(desk.sent().is_empty(), "{}", desk.picture());
            desk.keys("y");
            desk.later(1000);
        }
        assert!(desk.shows("host-40.example"), "{}", desk.picture());
        desk.keys("y");
        assert!(
            matches!(desk.sent().as_slice(), [Command::Answer { .. }]),
            "{}",
            desk.picture()
        );
    }
    // What comes after a no is followed.
    let mut desk = TestApp::new(80, 16);
    desk.events(begun());
    desk.events([long_command()]);
    desk.later(1000);
    desk.keys("<tab>");
    desk.later(1000);
    desk.keys("n");
    desk.events([answered("ask", "reject_once", None)]);
    let text: Vec<_> = (1..=60).map(|it| format!("line {it}")).collect();
    desk.events([start("t", "text", json!({})), delta("t", &text.join("\n\n"))]);
    assert!(desk.shows("line 60"), "{}", desk.picture());
}

/// What waits behind the oldest one is no less read before it is allowed.
#[test]
fn each_of_several_approvals_is_allowed_only_once_all_of_it_was_on_the_screen() {
    let mut desk = TestApp::new(90, 16);
    desk.events(begun());
    desk.events(["a", "b", "c"].map(long_command_of));
    desk.later(1000);
    desk.keys("<tab><end>");
    assert!(desk.shows("host-40.example"), "{}", desk.picture());
    super::clicking::click(&mut desk, "host-38.example");
    desk.later(1000);
    desk.keys("y");
    assert!(
        desk.sent().is_empty(),
        "its first rows were never shown\n{}",
        desk.picture()
    );
    assert!(desk.shows("host-1.example"), "{}", desk.picture());
    let mut presses = 0;
    while desk.sent().is_empty() {
        assert!(presses < 40, "{}", desk.picture());
        presses += 1;
        desk.later(1000);
        desk.keys("y");
    }
    assert!(presses >= 3, "{presses}");
    let sent = desk.sent();
    let [Command::Answer { response, .. }] = sent.as_slice() else {
        panic!("{sent:?}")
    };
    assert_eq!(response.document_id.as_str(), "c");
    // The end of one is seen as well as its beginning, and what was seen of one is not seen of another.
    desk.later(1000);
    desk.keys("<alt+y>");
    assert_eq!(desk.sent().len(), 1, "{}", desk.picture());
}

/// Rows of one layout are no rows of another one.
#[test]
fn what_was_seen_in_another_width_is_not_taken_for_what_stands_there_now() {
    let is_allowed = |desk: &TestApp| desk.sent().iter().any(|it| matches!(it, Command::Answer { .. }));
    let long = |desk: &mut TestApp| {
        let lines: Vec<_> = (1..=14).map(|it| format!("echo {it} {}", "word ".repeat(30))).collect();
        let options = json!([{ "id": "allow_once", "label": "Once" }, { "id": "reject_once", "label": "No" }]);
        let subject = json!({ "type": "terminal_command", "command": lines.join("\n"), "workingDirectory": "/p" });
        desk.events(begun());
        desk.events([start(
            "ask",
            "clarification",
            json!({ "kind": "approval", "toolCallId": "call_1", "subject": subject,
                "questions": [{ "id": "approval", "text": "Allow it?", "options": options }] }),
        )]);
        desk.later(1000);
    };
    // Half of many rows is not all of few.
    let mut desk = TestApp::new(50, 60);
    long(&mut desk);
    assert!(desk.shows("echo 1 ") && !desk.shows("echo 14 "), "{}", desk.picture());
    desk.resize(180, 16);
    assert!(!desk.shows("echo 14 "), "{}", desk.picture());
    desk.keys("<alt+y>");
    assert!(!is_allowed(&desk), "its end was never shown\n{}", desk.picture());
    // Who has read all of it has read it at every width.
    let mut desk = TestApp::new(180, 24);
    long(&mut desk);
    while desk.shows("more rows") {
        desk.later(1000);
        desk.keys("<alt+y>");
    }
    assert!(!is_allowed(&desk), "{}", desk.picture());
    desk.resize(50, 12);
    desk.later(1000);
    desk.keys("<alt+y>");
    assert!(is_allowed(&desk), "{}", desk.picture());
}

#[test]
fn a_question_that_waits_is_not_folded() {
    let mut desk = TestApp::new(80, 24);
    desk.events(begun());
    desk.events([asked("1", "a.rs")]);
    desk.later(1000);
    desk.keys("<tab>");
    let before = desk.picture();
    desk.keys(" ");
    assert_eq!(desk.picture(), before);
}
