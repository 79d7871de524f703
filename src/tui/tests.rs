//! What the screen does, seen from outside.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use serde_json::json;

mod approved;
mod clicking;
mod commands;
mod composing;
mod earlier;
mod finding;
mod german;
mod images;
mod looks;
mod pages;
mod reviewing;
mod rewinding;
mod scrolling;
mod waiting;

use super::{
    app::{App, Effect},
    msg::{EffectOutcome, Msg},
    test_app::*,
};
use crate::{
    journal::Log,
    link::{About, local::Local},
    protocol::{
        Command, Done, Event, FinishReason, Message, Mode, Notice, ProblemEntry, ProblemsReport, Query, Reply,
        Severity, SymbolLocation, UserAction,
    },
    text::{CodeLine, Colours, Role, Sanitized, Span},
};

fn words(n: usize) -> String {
    (1..=n).map(|it| format!("line {it}\n\n")).collect()
}

#[test]
fn a_message_is_sent_with_the_mode_and_clears_the_draft() {
    let mut desk = TestApp::new(80, 24);
    desk.keys("<shift+tab>hello<enter>");
    let [Command::Submit(submit)] = &desk.sent()[..] else {
        panic!("{:?}", desk.sent())
    };
    assert_eq!((submit.message.content.as_str(), submit.mode), ("hello", Mode::Plan));
    assert!(desk.app.composer.field.is_empty());
}

#[test]
fn what_is_lost_is_said_and_repairs_are_not() {
    let cases = [
        (Severity::Error, "too-large", true),
        (Severity::Warning, "session-not-stored", true),
        (Severity::Warning, "odd-id", false),
    ];
    for (severity, code, is_said) in cases {
        let mut desk = TestApp::new(80, 24);
        desk.events([Event::Notice(Notice {
            severity,
            code: code.to_owned(),
            message: "something \x1b[31mhappened".to_owned(),
            document: None,
        })]);
        desk.draw();
        assert_eq!(desk.shows("something happened"), is_said, "{code}\n{}", desk.picture());
        desk.keys("x");
        assert_eq!(desk.shows("something happened"), is_said, "nobody has read it yet");
        desk.later(1900);
        desk.keys("x");
        assert_eq!(desk.shows("something happened"), is_said, "it stays two seconds");
        desk.later(100);
        desk.keys("x");
        assert!(!desk.shows("something happened"), "it goes with the next key");
    }
}

#[test]
fn what_the_user_did_stays_in_the_transcript_where_it_happened() {
    let mut desk = TestApp::new(80, 24);
    let trusted = Event::Notice(UserAction::Trusted.notice(&[]));
    desk.events([trusted]);
    assert!(!desk.app.conversation.is_busy(), "nobody answers it");
    desk.exchange("one", &["First answer."]);
    desk.events([Event::Notice(
        UserAction::HookRan.notice(&["hook h.json Stop (3 ms): goes on"]),
    )]);
    assert!(desk.shows("· hook h.json Stop (3 ms): goes on"), "{}", desk.picture());
    desk.events([Event::Notice(UserAction::UndidDocument.notice(&["1.1", "a.rs"]))]);
    desk.exchange("two", &["Second answer."]);
    let lines = |desk: &mut TestApp| {
        desk.draw();
        let picture = desk.picture();
        let lines = picture.lines().map(|it| it.trim().to_owned());
        let wanted = ["trusted", "one", "First", "undid", "two", "Second"];
        let lines = lines.filter(|line| wanted.iter().any(|it| line.contains(it)));
        lines
            .map(|it| it.split("   ").last().unwrap_or_default().trim().to_owned())
            .collect::<Vec<_>>()
    };
    let first = lines(&mut desk);
    assert_eq!(first[0], "· trusted this folder · /trust to change");
    assert_eq!(first[3], "· undid 1.1 a.rs · /redo 1.1");
    assert_eq!(first.len(), 6, "{}", desk.picture());
    // Listed anew, as when the conversation is opened again.
    let App {
        viewport, conversation, ..
    } = &mut desk.app;
    viewport.pane.list(0, &conversation.transcript);
    assert_eq!(lines(&mut desk), first);
    assert!(desk.app.toast.is_none(), "the line is in view");
}

#[test]
fn every_way_to_break_a_line_breaks_it() {
    for key in ["<alt+enter>", "<shift+enter>", "<ctrl+j>", "\\<enter>"] {
        let mut desk = TestApp::new(80, 24);
        desk.keys(&format!("a{key}b"));
        assert_eq!(desk.app.composer.field.text(), "a\nb", "{key}");
        assert!(desk.sent().is_empty(), "{key}");
    }
}

#[test]
fn the_composer_grows_to_eight_rows_or_a_third_and_says_that_more_is_above() {
    for (height, most) in [(24, 8), (40, 13)] {
        let mut desk = TestApp::new(80, height);
        desk.keys(&"x<ctrl+j>".repeat(5));
        assert_eq!(desk.app.viewport.areas.composer.height, 6);
        assert!(desk.shows(" › x"), "{}", desk.picture());
        desk.keys(&"y<ctrl+j>".repeat(9));
        assert_eq!(desk.app.viewport.areas.composer.height, most);
        assert!(desk.shows("↑› "), "{}", desk.picture());
    }
}

#[test]
fn the_mode_is_on_the_rule_and_shift_tab_goes_round() {
    let mut desk = TestApp::new(80, 24);
    for mode in ["agent", "plan", "ask", "debug", "agent"] {
        assert!(desk.shows(&format!("── {mode} ─")), "{mode}\n{}", desk.picture());
        desk.keys("<shift+tab>");
    }
    desk.keys("/mode debug<enter>");
    assert!(desk.shows("── debug ─"));
    desk.keys("<ctrl+.><down><enter>");
    assert!(desk.shows("── agent ─"), "{}", desk.picture());
}

#[test]
fn what_vim_calls_quitting_quits() {
    for typed in ["q", "wq", "q!", "x"] {
        let mut desk = TestApp::new(80, 24);
        desk.keys("/vim<enter><esc>:");
        desk.keys(typed);
        desk.keys("<enter>");
        assert!(
            matches!(desk.front.effects.last(), Some(Effect::Quit(0))),
            "{typed}\n{}",
            desk.picture()
        );
    }
}

#[test]
fn each_notice_is_seen_whatever_the_keys_between_do() {
    let mut desk = TestApp::new(100, 24);
    let notice = |message: &str| {
        Event::Notice(Notice {
            severity: Severity::Error,
            code: "x".into(),
            message: message.into(),
            document: None,
        })
    };
    desk.events(["the first", "the second", "the third"].map(notice));
    for (key, shown) in [("", "the first"), ("<f1>", "the second"), ("<esc>", "the third")] {
        desk.later(2000);
        desk.keys(key);
        assert!(desk.shows(shown), "{key}: {}", desk.picture());
    }
    // They belong to the conversation that they came in.
    desk.events(["the fourth", "the fifth"].map(notice));
    let (link, _inbox) = Local::new(Log::new(), About::default());
    desk.take(Msg::Switch(Arc::new(link)));
    for _ in 0..3 {
        desk.later(2000);
        desk.keys("<left>");
        assert!(!desk.shows("the fifth"), "{}", desk.picture());
    }
}

#[test]
fn what_was_stashed_is_not_called_so_once_it_is_back() {
    let mut desk = TestApp::new(80, 24);
    desk.keys("a thought<ctrl+s>");
    assert!(desk.shows(crate::t!("action-stashed")), "{}", desk.picture());
    desk.keys("<ctrl+s>");
    assert!(desk.shows("› a thought"), "{}", desk.picture());
    assert!(!desk.shows(crate::t!("action-stashed")), "{}", desk.picture());
}

#[test]
fn help_is_filtered_by_letters_which_never_reach_the_draft() {
    let mut desk = TestApp::new(80, 24);
    desk.keys("<f1>stash");
    assert!(desk.shows("› stash") && desk.shows("ctrl+s"), "{}", desk.picture());
    desk.keys("<esc><esc>");
    assert_eq!(desk.app.composer.field.text(), "");
}

#[test]
fn a_wrong_command_says_so_and_keeps_the_draft() {
    let mut desk = TestApp::new(80, 24);
    desk.keys("/mdoe plan<enter>");
    assert!(
        desk.shows("unknown command /mdoe (did you mean /mode?)"),
        "{}",
        desk.picture()
    );
    assert_eq!(desk.app.composer.field.text(), "/mdoe plan");
    assert!(desk.sent().is_empty());
}

/// An open question with two options, before or after a first message.
fn asked(desk: &mut TestApp, message: Option<&str>) {
    desk.events(message.map(|it| Event::UserMessage(Message::user(it))));
    let questions = json!([{"id": "q", "text": "Whom?", "allowFreeText": true,
        "options": [{"id": "a", "label": "this"}, {"id": "b", "label": "that"}]}]);
    desk.events([
        Event::ResponseStart(crate::protocol::ResponseStart::default()),
        start(
            "1",
            "clarification",
            json!({"kind": "question", "questions": questions}),
        ),
    ]);
}

#[test]
fn on_the_first_page_every_letter_goes_to_the_composer() {
    for text in ["should it", "other things", "just do", "yes", "why?"] {
        let mut desk = TestApp::new(80, 24);
        asked(&mut desk, None);
        desk.later(1000);
        desk.keys(text);
        assert_eq!(desk.app.composer.field.text(), text);
        assert!(desk.sent().is_empty(), "{text}");
    }
}

#[test]
fn on_the_first_page_the_question_is_answered_from_its_card_only() {
    let mut desk = TestApp::new(80, 24);
    asked(&mut desk, None);
    assert!(desk.shows("tab answer"), "{}", desk.picture());
    desk.later(1000);
    desk.keys("2 tests");
    assert_eq!(desk.app.composer.field.text(), "2 tests");
    for way in ["<tab>", "<up>", "<enter>"] {
        let mut desk = TestApp::new(80, 24);
        asked(&mut desk, None);
        desk.later(1000);
        desk.keys(way);
        desk.later(1000);
        desk.keys("2");
        assert_eq!(desk.sent(), [], "a digit only marks");
        desk.keys("<enter>");
        let [Command::Answer { response, .. }] = &desk.sent()[..] else {
            panic!("{way} {:?}\n{}", desk.sent(), desk.picture())
        };
        assert_eq!(response.answers[0].selected_option_ids, ["b"]);
        // What is written then is a message again, and no command of the transcript's.
        desk.events([end("1", None, json!({"kind": "question", "outcome": "answered"}))]);
        desk.keys("rules of the house");
        assert_eq!(desk.app.composer.field.text(), "rules of the house");
    }
}

#[test]
fn a_question_that_comes_under_the_hands_of_a_writer_takes_the_words_as_its_answer() {
    let mut desk = TestApp::new(80, 24);
    asked(&mut desk, Some("go"));
    desk.keys("so it is");
    assert!(desk.sent().is_empty());
    assert!(desk.shows("so it is"), "{}", desk.picture());
    desk.later(1000);
    desk.keys("<enter>");
    let [Command::Answer { response, .. }] = &desk.sent()[..] else {
        panic!("{:?}", desk.sent())
    };
    assert_eq!(response.answers[0].free_text.as_deref(), Some("so it is"));
}

#[test]
fn a_question_never_takes_the_focus_from_a_draft() {
    let mut desk = TestApp::new(80, 24);
    desk.keys("but do");
    asked(&mut desk, Some("go"));
    desk.later(1000);
    desk.keys(" 1 thing");
    assert_eq!(desk.app.composer.field.text(), "but do 1 thing");
    assert!(desk.shows("tab answer"), "{}", desk.picture());
}

#[test]
fn esc_leaves_a_question_waiting() {
    let mut desk = TestApp::new(80, 24);
    asked(&mut desk, Some("go"));
    desk.later(1000);
    desk.keys("<esc>fix it");
    assert_eq!(desk.app.composer.field.text(), "fix it");
    assert!(desk.sent().is_empty());
}

/// A plan that ends the answer.
fn planned(desk: &mut TestApp) {
    desk.events([
        Event::UserMessage(Message::user("plan it")),
        Event::ResponseStart(crate::protocol::ResponseStart::default()),
    ]);
    let todo = json!({ "id": "t", "content": "Sum up", "status": "pending" });
    desk.events(document(
        "1",
        "plan",
        Some("Do it."),
        json!({ "title": "Sums", "overview": "All of it.", "todos": [todo] }),
    ));
    desk.events([Event::Done(Done {
        finish_reason: Some(FinishReason::AwaitingInput),
        ..Done::default()
    })]);
}

#[test]
fn a_plan_that_waits_is_built_from_its_card_by_a_mark_and_enter() {
    let mut desk = TestApp::new(80, 24);
    planned(&mut desk);
    desk.draw();
    assert!(
        desk.shows("tab plan") && desk.shows("waiting for you"),
        "{}",
        desk.picture()
    );
    desk.later(1000);
    desk.keys("but do not touch Redis");
    assert_eq!(desk.app.composer.field.text(), "but do not touch Redis");
    desk.keys("<tab>");
    assert!(desk.shows("b build"), "{}", desk.picture());
    desk.later(1000);
    desk.keys("b");
    assert!(
        desk.sent().is_empty() && desk.shows("enter build"),
        "{}",
        desk.picture()
    );
    desk.keys("<esc><tab>");
    desk.later(1000);
    desk.keys("<enter>");
    assert!(desk.sent().is_empty(), "esc removed the mark");
    desk.keys("b<enter>");
    let [Command::Submit(submit)] = &desk.sent()[..] else {
        panic!("{:?}", desk.sent())
    };
    assert_eq!(submit.message.content, "Build the plan \"Sums\".");
    assert_eq!(submit.mode, Mode::Agent);
}

#[test]
fn a_plan_does_not_take_the_keys_from_somebody_who_writes() {
    for text in ["so it is", "explain", "jump", "build", "2 tests"] {
        let mut desk = TestApp::new(80, 24);
        planned(&mut desk);
        desk.later(1000);
        desk.keys(text);
        assert_eq!(desk.app.composer.field.text(), text);
        assert!(desk.sent().is_empty());
    }
    // What was said after it takes the word from it.
    let mut desk = TestApp::new(80, 24);
    planned(&mut desk);
    desk.later(1000);
    desk.keys("no<enter>");
    desk.exchange("no", &["Another one?"]);
    desk.draw();
    assert!(!desk.shows("waiting for you"), "{}", desk.picture());
}

#[test]
fn lines_are_named_right_behind_a_file_that_was_put_in() {
    let mut desk = TestApp::new(80, 24);
    let put_in = |desk: &mut TestApp| {
        desk.keys("@car");
        desk.offer_files("car", vec!["src/cart.rs".to_owned()]);
        desk.keys("<tab>");
    };
    put_in(&mut desk);
    desk.keys(":3-9 and ");
    put_in(&mut desk);
    desk.keys("is : here");
    assert_eq!(
        desk.app.composer.field.text(),
        "@src/cart.rs:3-9 and @src/cart.rs is : here"
    );
}

#[test]
fn functions_and_types_stand_behind_the_files_and_put_in_their_lines() {
    let mut desk = TestApp::new(80, 30);
    let symbol = |name: &str, first: u64| SymbolLocation {
        name: name.to_owned(),
        owner: Some("Cart".to_owned()),
        keyword: "fn".to_owned(),
        path: "src/cart.rs".to_owned(),
        first_line: first,
        last_line: first + 9,
    };
    let files = |desk: &mut TestApp, pattern: &str| {
        let files = (0..10).map(|it| format!("docs/total{it}.md"));
        desk.offer_files(pattern, files.collect());
    };
    let symbols = |desk: &mut TestApp, wanted: &str, symbols: Vec<SymbolLocation>| {
        let is_meant = |it: &Query| matches!(it, Query::Symbols { pattern, .. } if pattern == wanted);
        desk.reply_to(is_meant, Reply::Symbols(symbols));
    };
    desk.keys("@t");
    let pattern = "t".to_owned();
    let files_only = Query::Files { pattern, limit: 10 };
    assert_eq!(desk.asked().last(), Some(&&files_only), "a letter is no name");
    desk.keys("ot");
    let pattern = "tot".to_owned();
    assert_eq!(desk.asked().last(), Some(&&Query::Symbols { pattern, limit: 10 }));
    files(&mut desk, "tot");
    symbols(&mut desk, "tot", vec![symbol("total", 10), symbol("total_of", 30)]);
    let picture = desk.picture();
    for text in ["docs/total7.md", "total_of", "fn   Cart · src/cart.rs:30"] {
        assert!(picture.contains(text), "{text}\n{picture}");
    }
    assert!(!picture.contains("docs/total8.md"), "{picture}");
    // An answer to what is not typed any more changes nothing.
    symbols(&mut desk, "to", vec![symbol("other", 1)]);
    assert!(!desk.shows("other"), "{}", desk.picture());
    desk.keys("<up><tab>");
    assert_eq!(desk.app.composer.field.text(), "@src/cart.rs:30-39 ");
    // What comes before the files do stays when they come.
    desk.keys("and @tot");
    symbols(&mut desk, "tot", vec![symbol("total", 10)]);
    files(&mut desk, "tot");
    assert!(
        desk.shows("docs/total8.md") && desk.shows("fn   Cart"),
        "{}",
        desk.picture()
    );
}

#[test]
fn a_slash_shows_the_commands_that_fit() {
    let mut desk = TestApp::new(80, 24);
    desk.keys("/mo");
    assert!(desk.shows("/mode ") && desk.shows("/model "), "{}", desk.picture());
    assert!(!desk.shows("/theme"), "{}", desk.picture());
    desk.keys("de plan of mine");
    assert!(desk.shows("shift+tab mode"), "{}", desk.picture());
}

#[test]
fn a_wrong_setting_is_said_to_its_end_at_40_columns() {
    let mut desk = TestApp::new(40, 24);
    desk.app.preferences.problems = vec![
        "/home/kim/.config/sheaf/config.toml:3:1: unknown key `ui.output_rws`\n  did you mean `output_rows`?".into(),
    ];
    desk.draw();
    assert!(
        desk.picture()
            .replace(['\n', ' '], "")
            .contains("`ui.output_rws`didyoumean`output_rows`?"),
        "{}",
        desk.picture()
    );
}

#[test]
fn what_is_wrong_with_the_settings_can_be_read_in_a_conversation() {
    let mut desk = TestApp::new(60, 24);
    desk.exchange("go", &["done"]);
    desk.keys("/problems<enter>");
    desk.reply(Reply::Problems(ProblemsReport::default()));
    assert!(desk.shows("no problems"), "{}", desk.picture());
    desk.app.preferences.problems = vec!["$SHEAF_THEME: unknown theme `owl`\n  did you mean `own`?".into()];
    desk.keys("/problems<enter>");
    desk.reply(Reply::Problems(ProblemsReport::default()));
    assert!(
        desk.shows("unknown theme `owl`") && desk.shows("did you mean `own`?"),
        "{}",
        desk.picture()
    );
    desk.keys("<esc>");
    assert!(desk.shows("done"), "{}", desk.picture());
    // Those of the code stand beside them, and lead to their place.
    desk.keys("/problems<enter>");
    let problem = ProblemEntry {
        path: "src/a.py".to_owned(),
        line: 7,
        column: 3,
        is_error: true,
        message: "`x` is not\u{1b}[31m defined".to_owned(),
        source: "ty".to_owned(),
    };
    desk.reply(Reply::Problems(ProblemsReport {
        problems: vec![problem],
        unchecked: Vec::new(),
    }));
    assert!(
        desk.shows("1 problem in the settings") && desk.shows("src/a.py:7:3"),
        "{}",
        desk.picture()
    );
    desk.keys("<down><enter>");
    let opens = |it: &Effect| matches!(it, Effect::OpenFile { path, line: Some(7) } if path == "src/a.py");
    assert!(desk.front.effects.iter().any(opens), "{:?}", desk.front.effects);
}

#[test]
fn a_path_at_the_beginning_is_no_command() {
    let mut desk = TestApp::new(80, 24);
    desk.keys("/usr/lib is full<enter>");
    assert_eq!(desk.sent().len(), 1);
}

#[test]
fn the_view_follows_the_end_while_the_reader_is_there() {
    let mut desk = TestApp::new(60, 16);
    desk.exchange("go", &[&words(30)]);
    assert!(desk.shows("line 30"));
    desk.exchange("more", &["the newest word"]);
    assert!(desk.shows("the newest word"));
}

#[test]
fn a_reader_who_scrolled_up_stays_where_they_are_and_is_told_what_came() {
    let mut desk = TestApp::new(60, 16);
    desk.exchange("go", &[&words(30)]);
    desk.keys("<pgup>");
    let before: Vec<_> = desk.picture().lines().take(10).map(str::to_owned).collect();
    desk.events([Event::UserMessage(Message::user("more"))]);
    desk.events(document("a", "text", Some("one"), json!({})));
    desk.events(document("b", "text", Some("two"), json!({})));
    let after: Vec<_> = desk.picture().lines().take(10).map(str::to_owned).collect();
    assert_eq!(before, after);
    assert!(desk.shows("2 new ↓"), "{}", desk.picture());
    desk.keys("<pgdn><pgdn><pgdn>");
    assert!(desk.shows("two") && !desk.shows("new ↓"), "{}", desk.picture());
}

#[test]
fn a_growing_document_above_does_not_move_the_view() {
    let mut desk = TestApp::new(60, 16);
    desk.events([
        Event::UserMessage(Message::user("go")),
        start("a", "text", json!({})),
        delta("a", &words(3)),
    ]);
    desk.events(document("b", "text", Some(&words(30)), json!({})));
    desk.keys("<pgup>");
    let before: Vec<_> = desk.picture().lines().take(10).map(str::to_owned).collect();
    desk.events([delta("a", &words(20))]);
    let after: Vec<_> = desk.picture().lines().take(10).map(str::to_owned).collect();
    assert_eq!(before, after);
}

#[test]
fn the_reader_keeps_the_place_when_the_width_changes() {
    let mut desk = TestApp::new(100, 20);
    for n in 0..20 {
        desk.exchange(
            &format!("question {n}"),
            &[&format!("answer {n}. {}", "words that wrap ".repeat(20))],
        );
    }
    desk.keys("<pgup><pgup><pgup>");
    let first = |desk: &TestApp| {
        desk.app
            .viewport
            .pane
            .lines
            .iter()
            .find_map(super::widgets::transcript::VisibleLine::item)
            .unwrap()
    };
    let before = first(&desk);
    desk.resize(50, 20);
    assert_eq!(first(&desk), before);
    desk.resize(1, 1);
    desk.resize(100, 20);
    assert_eq!(first(&desk), before);
}

#[test]
fn a_storm_of_sizes_ends_in_what_a_fresh_draw_shows() {
    let talk = |width, height| {
        let mut desk = TestApp::new(width, height);
        desk.exchange(
            "hello 語漢字 👨‍👩‍👧",
            &[
                "# Title\n\n- one\n- two\n\n| a | b |\n|---|---|\n| 1 | 語 |\n\n```rust\nfn main() {}\n```",
                "and a paragraph that is long enough to be broken anew at nearly every width that there is",
            ],
        );
        desk
    };
    let mut stormy = talk(80, 24);
    let mut number = 7_u32;
    let mut next = |most: u32| {
        number = number.wrapping_mul(1_103_515_245).wrapping_add(12_345);
        u16::try_from(number / 65_536 % most + 1).expect("it is small")
    };
    for (width, height) in [(80, 24), (40, 12), (120, 40), (200, 50), (23, 9)] {
        for _ in 0..40 {
            stormy.resize(next(220), next(60));
        }
        stormy.resize(width, height);
        assert_eq!(stormy.picture(), talk(width, height).picture(), "{width}x{height}");
    }
}

#[test]
fn any_size_can_be_drawn() {
    let mut desk = TestApp::new(80, 24);
    desk.exchange(
        "hello 語漢字 👨‍👩‍👧",
        &["# Title\n\n- one\n- two\n\n| a | b |\n|---|---|\n| 1 | 語 |\n\n```rust\nfn main() {}\n```"],
    );
    desk.keys("draft of some length");
    for width in [1, 2, 3, 5, 8, 13, 20, 21, 39, 40, 59, 60, 61, 120, 300] {
        for height in [1, 2, 4, 5, 6, 7, 8, 15, 16, 17, 50] {
            desk.resize(width, height);
            desk.keys("<tab><up><tab>");
        }
    }
}

#[test]
fn keys_in_the_transcript_walk_fold_and_come_back() {
    let mut desk = TestApp::new(80, 30);
    desk.exchange("go", &["first answer\n\nwith more", "second answer"]);
    desk.keys("<tab>");
    assert_eq!(
        desk.app
            .viewport
            .selected()
            .and_then(|it| desk.app.conversation.transcript.address(it))
            .unwrap()
            .to_string(),
        "1.2"
    );
    desk.keys("k<enter>");
    assert!(!desk.shows("with more"), "{}", desk.picture());
    desk.keys("<enter>");
    assert!(desk.shows("with more"), "{}", desk.picture());
    desk.keys("y");
    assert!(
        matches!(desk.front.effects.last(), Some(Effect::Copy { what, text }) if what == "1.1" && text.contains("with more"))
    );
    desk.keys("<esc>x");
    assert_eq!(desk.app.composer.field.text(), "x");
}

#[test]
fn a_message_behind_a_running_answer_waits_for_its_turn() {
    let mut desk = TestApp::new(80, 24);
    desk.events([Event::UserMessage(Message::user("go"))]);
    desk.keys("and then this<enter>");
    assert!(desk.sent().is_empty());
    assert!(desk.shows("queued  and then this"), "{}", desk.picture());
    desk.events([Event::Done(Done::default())]);
    let [Command::Submit(submit)] = &desk.sent()[..] else {
        panic!("{:?}", desk.sent())
    };
    assert_eq!(submit.message.content, "and then this");
}

#[test]
fn a_conversation_that_is_not_stored_says_so_until_it_is() {
    let notice = |code: &str| {
        Event::Notice(Notice {
            severity: Severity::Warning,
            code: code.into(),
            message: "the disk".into(),
            document: None,
        })
    };
    let mut desk = TestApp::new(80, 24);
    desk.events([Event::UserMessage(Message::user("go")), notice("session-not-stored")]);
    desk.keys("x");
    assert!(desk.shows("not saved"), "{}", desk.picture());
    desk.events([notice("session-stored-again")]);
    desk.keys("y");
    assert!(!desk.shows("not saved"), "{}", desk.picture());
}

#[test]
fn what_waited_behind_a_stopped_answer_comes_back_into_the_draft() {
    let mut desk = TestApp::new(80, 24);
    desk.events([Event::UserMessage(Message::user("go"))]);
    desk.keys("first<enter>second<enter>third");
    desk.keys("<esc>");
    desk.events([Event::Done(Done {
        finish_reason: Some(FinishReason::Cancelled),
        ..Done::default()
    })]);
    assert_eq!(desk.sent(), [Command::Cancel]);
    assert_eq!(desk.app.composer.field.text(), "first\nsecond\nthird");
    assert!(!desk.shows("queued"), "{}", desk.picture());
}

#[test]
fn ctrl_c_stops_then_clears_then_quits() {
    let mut desk = TestApp::new(80, 24);
    desk.events([Event::UserMessage(Message::user("go"))]);
    desk.keys("draft<ctrl+c>");
    assert_eq!(desk.sent(), [Command::Cancel]);
    desk.events([Event::Done(Done {
        finish_reason: Some(FinishReason::Cancelled),
        ..Done::default()
    })]);
    assert!(desk.shows("stopped"), "{}", desk.picture());
    desk.keys("<ctrl+c>");
    assert!(desk.app.composer.field.is_empty());
    desk.keys("<up>");
    assert_eq!(desk.app.composer.field.text(), "draft");
    desk.keys("<ctrl+c><ctrl+c>");
    assert!(desk.front.effects.iter().all(|it| !matches!(it, Effect::Quit(_))));
    desk.keys("<ctrl+c>");
    assert_eq!(desk.front.effects.last(), Some(&Effect::Quit(0)));
}

#[test]
fn nothing_a_stranger_wrote_is_obeyed() {
    let evil = "a\u{1b}]0;owned\u{7}b\u{1b}[2Jc\u{9b}31md\u{202e}e\u{200b}f";
    let mut desk = TestApp::new(80, 24);
    desk.events([Event::Title(evil.into())]);
    desk.exchange(evil, &[evil]);
    desk.events(document(
        "e",
        "error",
        Some(evil),
        json!({ "errorCode": evil, "source": evil, "details": evil }),
    ));
    desk.events(document("u", "novel", Some(evil), json!({ evil: evil })));
    desk.paste(evil);
    let picture = desk.picture();
    assert!(
        desk.line(0).contains("abcdef") && !desk.line(0).contains("owned"),
        "{picture}"
    );
    assert!(
        !picture
            .chars()
            .any(|it| it.is_control() && it != '\n' || ('\u{202a}'..='\u{202e}').contains(&it)),
        "{picture:?}"
    );
}

/// Colours that count how often they are asked for.
#[derive(Default)]
struct Counting(AtomicUsize);

impl Colours for Counting {
    fn code(&self, _: u64, _: &str, source: &str, _: bool) -> Arc<Vec<CodeLine>> {
        self.0.fetch_add(1, Ordering::Relaxed);
        let line = |text: &str| -> CodeLine { [Span::new(Sanitized::new(text), Role::Keyword)].into() };
        Arc::new(source.lines().map(line).collect())
    }
}

#[test]
fn colours_are_asked_for_only_where_code_is_seen() {
    let asked_for = |documents: usize| {
        let mut desk = TestApp::new(100, 40);
        let colours = Arc::new(Counting::default());
        desk.app.appearance.colours = Arc::clone(&colours) as Arc<_>;
        let code = json!({ "language": "rust" });
        let events: Vec<_> = std::iter::once(Event::UserMessage(Message::user("go")))
            .chain(
                (0..documents).flat_map(|n| document(&format!("d{n}"), "code_block", Some("fn a() {}"), code.clone())),
            )
            .collect();
        desk.events(events);
        let opened = colours.0.swap(0, Ordering::Relaxed);
        desk.keys("<pgup>");
        let scrolled = colours.0.swap(0, Ordering::Relaxed);
        desk.events([start("t", "text", json!({})), delta("t", "x")]);
        desk.keys("typing");
        (opened, scrolled, colours.0.load(Ordering::Relaxed))
    };
    let (small, large) = (asked_for(100), asked_for(10_000));
    assert_eq!(small, large);
    assert!(small.0 > 0 && small.0 < 40, "{small:?}");
    assert_eq!(small.2, 0, "what is shown already is not asked for again");
}

#[test]
fn what_a_frame_costs_does_not_grow_with_the_conversation() {
    let layouts_for = |documents: usize| {
        let mut desk = TestApp::new(100, 40);
        let events: Vec<_> = std::iter::once(Event::UserMessage(Message::user("go")))
            .chain((0..documents).flat_map(|n| document(&format!("d{n}"), "text", Some("some text"), json!({}))))
            .collect();
        desk.events(events);
        let before = desk.app.viewport.pane.laid_out();
        desk.keys("<pgup>");
        for n in 0..20 {
            desk.events([start(&format!("t{n}"), "text", json!({})), delta(&format!("t{n}"), "x")]);
        }
        (before, desk.app.viewport.pane.laid_out() - before)
    };
    let small = layouts_for(100);
    let large = layouts_for(10_000);
    assert!(large.0 <= small.0 && large.1 <= small.1, "{small:?} {large:?}");
}
