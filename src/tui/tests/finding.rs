//! Finding one's way in a conversation: search, filter, outline, marks of the mouse, copies, times.

use std::{num::NonZeroU16, sync::Arc};

use proptest::prelude::*;
use serde_json::json;

use super::super::{
    msg::{EffectOutcome, Msg},
    terminal::Input,
    test_app::*,
};
use crate::{
    protocol::{Command, Done, Event, Message, Position},
    transcript::Transcript,
    tui::app::Effect,
};

/// A conversation of two turns with a bit of everything.
pub fn conversation(width: u16, height: u16) -> TestApp {
    let mut desk = TestApp::new(width, height);
    desk.events([Event::UserMessage(Message::user("add a code to the cart"))]);
    desk.events(document(
        "a",
        "text",
        Some("The **Cart** has a `total`, see src/cart.rs:21."),
        json!({}),
    ));
    desk.events(document(
        "b",
        "tool_call",
        None,
        json!({ "toolName": "grep", "arguments": { "pattern": "fn total" }, "result": { "status": "success", "data": "src/cart.rs:21: fn total" } }),
    ));
    desk.events(document(
        "c",
        "file_edit",
        Some("let b;\n"),
        json!({ "filePath": "src/cart.rs", "operation": "edit", "diff": { "oldString": "let a;\n", "newString": "let b;\n", "startLine": 3 } }),
    ));
    desk.later(1000);
    desk.events([start("d", "terminal_command", json!({ "command": "cargo test" }))]);
    desk.later(2500);
    desk.events([end("d", None, json!({ "command": "cargo test", "output": "error: the cart is broken\n  --> src/cart.rs:3:9\n", "exitCode": 101 }))]);
    desk.events([Event::Done(Done::default())]);
    desk.exchange("and now?", &["Nothing more to say about the\ncart."]);
    desk
}

fn selected(desk: &TestApp) -> String {
    desk.app
        .viewport
        .pane
        .selected
        .map(|it| super::super::widgets::transcript::address(&desk.app.conversation.transcript, it))
        .unwrap_or_default()
}

fn copied(desk: &TestApp) -> String {
    desk.front
        .effects
        .iter()
        .rev()
        .find_map(|it| match it {
            Effect::Copy { text, .. } => Some(text.clone()),
            _ => None,
        })
        .unwrap_or_default()
}

#[test]
fn a_search_goes_where_the_words_are_while_they_are_typed() {
    let mut desk = conversation(80, 30);
    desk.keys("<tab><tab>");
    desk.keys("/");
    assert_eq!(
        desk.app.composer.field.text(),
        "/",
        "in the composer a slash is a slash"
    );
    desk.keys("<backspace><tab>g/cart");
    assert_eq!(selected(&desk), "1");
    assert!(desk.shows("/cart  1 of 6"), "{}", desk.picture());
    desk.keys("<enter>n");
    assert_eq!(selected(&desk), "1.1");
    desk.keys("nn");
    assert_eq!(selected(&desk), "1.2", "{}", desk.picture());
    desk.keys("N");
    assert_eq!(selected(&desk), "1.1");
    desk.keys("NNN");
    assert_eq!(selected(&desk), "2.1", "{}", desk.picture());
    assert!(desk.shows("wrapped to the end"), "{}", desk.picture());
    desk.keys("n");
    assert_eq!(selected(&desk), "1");
    desk.keys("<esc>");
    assert!(!desk.shows("/cart  "), "{}", desk.picture());
    assert_eq!(selected(&desk), "1", "the first esc ends the search only");
}

#[test]
fn a_search_finds_what_is_folded_away_and_over_breaks_and_marks() {
    let mut desk = conversation(80, 30);
    desk.keys("<tab>g/the cart has<enter>");
    assert_eq!(selected(&desk), "1.1");
    desk.keys("/about the cart<enter>");
    assert_eq!(selected(&desk), "2.1", "{}", desk.picture());
    desk.keys("gzn");
    desk.keys("/is broken<enter>");
    assert_eq!(selected(&desk), "1.4");
    assert!(desk.shows("the cart is broken"), "it is unfolded\n{}", desk.picture());
    desk.keys("/no such words");
    assert!(desk.shows("no match for “no such words”"), "{}", desk.picture());
    desk.keys("<esc>");
    assert!(
        desk.shows("/is broken"),
        "the search before is back\n{}",
        desk.picture()
    );
}

#[test]
fn what_is_found_stands_out_and_the_one_gone_to_more() {
    let mut desk = conversation(80, 30);
    desk.keys("/search cart<enter>");
    let kinds: Vec<_> = desk.app.viewport.lights.iter().map(|it| it.kind).collect();
    let here = kinds
        .iter()
        .filter(|it| **it == crate::tui::widgets::transcript::Lit::Here)
        .count();
    assert_eq!(here, 1);
    assert!(kinds.len() > 5, "{kinds:?}");
    let before = desk.painted();
    desk.keys("n");
    assert_ne!(desk.painted(), before);
}

#[test]
fn a_filter_shows_a_part_and_keeps_it_so_while_more_comes() {
    let mut desk = conversation(80, 30);
    desk.keys("/filter edits, failed<enter>");
    assert!(desk.shows("nothing matches edits failed"), "{}", desk.picture());
    desk.keys("/filter edits commands<enter>");
    let picture = desk.picture();
    assert!(
        picture.contains("1.3") && picture.contains("1.4") && !picture.contains("1.1"),
        "{picture}"
    );
    assert!(
        picture.contains("add a code") && !picture.contains("and now?"),
        "{picture}"
    );
    assert!(picture.contains("only edits commands"), "{picture}");
    desk.exchange("more", &["a text"]);
    assert!(!desk.shows("a text"), "{}", desk.picture());
    desk.events([Event::UserMessage(Message::user("again"))]);
    desk.events(document(
        "x",
        "terminal_command",
        None,
        json!({ "command": "make", "exitCode": 0 }),
    ));
    desk.events([Event::Done(Done::default())]);
    assert!(desk.shows("make") && desk.shows("again"), "{}", desk.picture());
    desk.keys("<tab><esc>");
    assert!(desk.shows("a text") && !desk.shows("only edits"), "{}", desk.picture());
    desk.keys("<esc>/filter nowhere<enter>");
    assert!(desk.shows("nothing matches nowhere"), "{}", desk.picture());
    desk.keys("<esc>");
    assert!(
        desk.shows("a text") && !desk.shows("only nowhere"),
        "{}",
        desk.picture()
    );
    desk.keys("<esc>/filter type:cats<enter>");
    assert!(desk.shows("unknown kind"), "{}", desk.picture());
}

#[test]
fn a_filter_speaks_the_language_of_the_search() {
    let mut desk = conversation(100, 30);
    for (words, shown, hidden) in [
        ("type:file_edit", "1.3", "1.4"),
        ("exit!=0 since:7d", "1.4", "1.3"),
        ("type:message now", "and now?", "add a code"),
        ("edits path:src/**", "1.3", "1.4"),
    ] {
        desk.keys(&format!("/filter {words}<enter>"));
        assert!(desk.shows(shown) && !desk.shows(hidden), "{words}\n{}", desk.picture());
        assert!(desk.shows(&format!("only {words}")), "{words}\n{}", desk.picture());
        desk.keys("<tab><esc><esc>");
        assert!(desk.shows("1.3") && desk.shows("1.4"), "{}", desk.picture());
    }
}

#[test]
fn a_filter_is_chosen_from_a_list_that_counts() {
    let mut desk = conversation(80, 30);
    desk.keys("<tab>f");
    let picture = desk.picture();
    let counts = picture.lines().find(|it| it.contains("failed")).unwrap_or_default();
    assert!(counts.trim_end().ends_with("1 │"), "{picture}");
    desk.keys("failed<enter>");
    assert!(desk.shows("cargo test") && !desk.shows("1.1"), "{}", desk.picture());
    desk.keys("fpath:src/** type:edit");
    assert!(desk.shows("enter shows matches"), "{}", desk.picture());
    desk.keys("<enter>");
    assert!(desk.shows("1.3") && !desk.shows("cargo test"), "{}", desk.picture());
}

#[test]
fn the_outline_lists_everything_and_the_conversation_follows() {
    for width in [60, 120] {
        let mut desk = conversation(width, 30);
        desk.keys("<tab>v");
        let picture = desk.picture();
        for text in ["outline", "and now?", "2.1 ", "1.4 ✗", "1.3 ±", "7 of 7"] {
            assert!(picture.contains(text), "{width} {text}\n{picture}");
        }
        desk.keys("<up><up>");
        assert_eq!(selected(&desk), "1.4");
        desk.keys("cargo<enter>");
        assert_eq!(selected(&desk), "1.4");
        assert!(!desk.shows("outline"), "{}", desk.picture());
        desk.keys("vg<esc>");
        assert_eq!(selected(&desk), "1.4", "esc goes back to where one was");
    }
}

fn mouse(desk: &mut TestApp, from: (u16, u16), to: (u16, u16)) {
    desk.take(Msg::Input(Input::Click { x: from.0, y: from.1 }));
    desk.take(Msg::Input(Input::Drag { x: to.0, y: to.1 }));
    desk.take(Msg::Input(Input::Release { x: to.0, y: to.1 }));
}

pub(super) fn place_of(desk: &TestApp, text: &str) -> (u16, u16) {
    let picture = desk.picture();
    let (y, line) = picture
        .lines()
        .enumerate()
        .find(|(_, it)| it.contains(text))
        .unwrap_or_else(|| panic!("{text} is not in\n{picture}"));
    let x = line.split(text).next().unwrap_or_default().chars().count();
    (x as u16, y as u16)
}

#[test]
fn what_the_mouse_marks_is_copied_without_gutters_and_breaks() {
    let mut desk = TestApp::new(44, 30);
    desk.exchange(
        "go",
        &["take the long way round past src/shop/cart.rs\n\n```rust\nlet a = 1;\nlet b = 2;\n```"],
    );
    let from = place_of(&desk, "long");
    let to = place_of(&desk, "a = 1");
    mouse(&mut desk, from, to);
    assert_eq!(
        copied(&desk),
        "long way round past src/shop/cart.rs\n\nlet a",
        "{}",
        desk.picture()
    );
    assert!(desk.app.viewport.lights.len() > 2);
    desk.keys("<tab>");
    assert!(desk.app.viewport.lights.is_empty(), "a key lets go");
    mouse(&mut desk, to, from);
    assert_eq!(
        copied(&desk),
        "long way round past src/shop/cart.rs\n\nlet a",
        "upwards, too"
    );
}

#[test]
fn a_click_selects_and_opens_the_line_of_a_file_under_it() {
    let mut desk = conversation(80, 30);
    let opens = |desk: &TestApp| matches!(desk.front.effects.last(), Some(Effect::OpenFile { .. }));
    let at = place_of(&desk, "Cart has");
    mouse(&mut desk, at, at);
    assert_eq!(selected(&desk), "1.1");
    assert!(!opens(&desk));
    // The first click goes there, another one opens it.
    let at = place_of(&desk, "src/cart.rs  ");
    desk.later(1000);
    mouse(&mut desk, at, at);
    assert!(
        !opens(&desk) && desk.shows("click again to open src/cart.rs"),
        "{}",
        desk.picture()
    );
    let at = place_of(&desk, "src/cart.rs  ");
    desk.later(1000);
    mouse(&mut desk, at, at);
    assert!(opens(&desk));
    desk.front.effects.clear();
    desk.later(1000);
    let at = place_of(&desk, "src/cart.rs:21.");
    mouse(&mut desk, at, at);
    assert!(
        !opens(&desk) && desk.shows("click again to open src/cart.rs:21"),
        "{}",
        desk.picture()
    );
    let at = place_of(&desk, "src/cart.rs:21.");
    desk.later(1000);
    mouse(&mut desk, at, at);
    let opened = Effect::OpenFile {
        path: "src/cart.rs".into(),
        line: Some(21),
    };
    assert_eq!(desk.front.effects.last(), Some(&opened));
    desk.front.effects.clear();
    desk.later(1000);
    desk.keys("o<enter>");
    assert_eq!(desk.front.effects.last(), Some(&opened));
}

#[test]
fn a_click_that_only_comes_here_and_two_that_mean_a_word_open_nothing() {
    let mut desk = conversation(80, 30);
    let opens = |desk: &TestApp| {
        desk.front
            .effects
            .iter()
            .any(|it| matches!(it, Effect::OpenFile { .. }))
    };
    let at = place_of(&desk, "src/cart.rs:21.");
    mouse(&mut desk, at, at);
    mouse(&mut desk, at, at);
    assert!(!opens(&desk), "the composer had the focus");
    assert!(copied(&desk).contains("src/cart.rs:21"), "{}", copied(&desk));
    desk.later(10_000);
    desk.take(Msg::Input(Input::Focus(false)));
    desk.take(Msg::Input(Input::Focus(true)));
    mouse(&mut desk, at, at);
    assert!(!opens(&desk), "the window had not the focus");
    desk.later(10_000);
    mouse(&mut desk, at, at);
    assert!(opens(&desk), "{}", desk.picture());
}

#[test]
fn what_is_pasted_is_searched_for_at_once() {
    let mut desk = conversation(80, 30);
    desk.keys("<tab>g/");
    desk.paste("cart");
    assert!(desk.shows("/cart  1 of 6"), "{}", desk.picture());
    desk.paste(&"語".repeat(100_000));
    assert!(
        pattern(&desk).is_some_and(|it| it.len() <= 16 << 10),
        "a long one is cut"
    );
}

fn pattern(desk: &TestApp) -> Option<&str> {
    desk.app.viewport.search.as_ref().map(|it| it.pattern.as_str())
}

#[test]
fn two_clicks_copy_a_word_and_three_a_line() {
    let mut desk = TestApp::new(44, 30);
    desk.exchange("go", &["take the long (way/round) past everything that stands there"]);
    let at = place_of(&desk, "round");
    mouse(&mut desk, at, at);
    assert_eq!(copied(&desk), "");
    // The first one has gone there.
    let at = place_of(&desk, "long");
    desk.later(1000);
    mouse(&mut desk, at, at);
    mouse(&mut desk, at, at);
    assert_eq!(copied(&desk), "long");
    assert!(!desk.app.viewport.lights.is_empty(), "it is seen");
    mouse(&mut desk, at, at);
    assert_eq!(
        copied(&desk),
        "take the long (way/round) past everything that stands there"
    );
}

#[test]
fn jumps_to_edits_and_errors_go_round_and_back() {
    let mut desk = conversation(80, 30);
    desk.keys("<tab>");
    assert_eq!(selected(&desk), "2.1");
    desk.keys("d");
    assert_eq!(
        selected(&desk),
        "1.4",
        "the newest is where one is: what failed is above"
    );
    assert!(desk.shows("wrapped to the top"), "{}", desk.picture());
    desk.keys("d");
    assert!(desk.shows("the only one"), "{}", desk.picture());
    desk.keys("E");
    assert_eq!(selected(&desk), "1.3");
    desk.keys("gD");
    assert_eq!(selected(&desk), "1.4");
    desk.keys("Gw");
    assert!(desk.shows("no question is waiting"), "{}", desk.picture());
}

#[test]
fn beside_the_outline_the_conversation_is_broken_anew() {
    let mut desk = TestApp::new(120, 30);
    desk.exchange("go", &[&"word ".repeat(60)]);
    let before = desk.picture();
    desk.keys("<tab>v");
    let picture = desk.picture();
    let row = picture.lines().find(|it| it.contains("1.1   word")).unwrap_or_default();
    assert!(row.contains("word word     │"), "no word is cut: {picture}");
    desk.keys("<esc><esc>");
    assert_eq!(desk.picture(), before);
}

#[test]
fn a_mouse_that_is_not_ours_does_nothing_here() {
    let mut desk = conversation(80, 30);
    desk.keys("/mouse wheel<enter>");
    assert!(matches!(desk.front.effects.last(), Some(Effect::Mouse(it)) if it.as_str() == "wheel"));
    let at = place_of(&desk, "Nothing more");
    mouse(&mut desk, at, (at.0 + 5, at.1));
    assert_eq!((copied(&desk), selected(&desk)), (String::new(), String::new()));
    desk.keys("/mouse sideways<enter>");
    assert!(desk.shows("unknown mouse mode sideways"), "{}", desk.picture());
}

#[test]
fn copies_come_in_the_form_that_is_asked_for() {
    let mut desk = conversation(80, 30);
    for (command, text) in [
        ("/copy 1.1", "The **Cart** has a `total`, see src/cart.rs:21."),
        ("/copy plain #1.1", "The Cart has a total, see src/cart.rs:21."),
        ("/copy code 1.3", "let b;"),
        (
            "/copy markdown 1.3",
            "```diff\n--- a/src/cart.rs\n+++ b/src/cart.rs\n@@ -3,1 +3,1 @@\n-let a;\n+let b;\n```",
        ),
        ("/copy", "Nothing more to say about the\ncart."),
        ("/copy code all", "let b;\n\ncargo test"),
    ] {
        desk.keys(&format!("{command}<enter>"));
        assert_eq!(copied(&desk), text, "{command}");
    }
    desk.keys("/filter questions edits<enter>/copy all<enter>");
    let all = copied(&desk);
    assert!(all.starts_with("> add a code to the cart\n\n```diff\n"), "{all}");
    assert!(!all.contains("Nothing more"), "only what is shown: {all}");
    desk.keys("/copy everything<enter>");
    assert!(desk.shows("cannot copy everything"), "{}", desk.picture());
}

#[test]
fn times_are_shown_on_demand() {
    let mut desk = conversation(100, 30);
    let before = desk.picture();
    desk.keys("<tab>T");
    let picture = desk.picture();
    let line = picture.lines().find(|it| it.contains("1.4")).unwrap_or_default();
    assert!(line.trim_end().ends_with("2.5 s"), "{picture}");
    desk.keys("T<esc>");
    assert_eq!(desk.picture(), before);
    assert_eq!(desk.sent(), [] as [Command; 0]);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// Whatever is open and wherever one is, no size and no key is too odd.
    #[test]
    fn no_size_and_no_key_panics(
        width in 1u16..301,
        height in 1u16..60,
        keys in proptest::collection::vec(prop_oneof![
            Just("/"), Just("f"), Just("v"), Just("n"), Just("N"), Just("<enter>"), Just("<esc>"), Just("<tab>"), Just("<up>"),
            Just("<down>"), Just("z"), Just("Z"), Just("T"), Just("c"), Just("a"), Just("<backspace>"), Just("<pgup>"), Just("G"),
            Just("g"), Just("語"), Just("<f2>"), Just("<f3>"), Just("<ctrl+r>"), Just("<alt+r>"), Just("]"), Just("["),
        ], 0..40),
        marks in proptest::collection::vec((0u16..301, 0u16..60), 0..6),
    ) {
        let mut desk = conversation(width, height);
        for key in &keys {
            desk.keys(key);
        }
        for pair in marks.chunks_exact(2) {
            mouse(&mut desk, pair[0], pair[1]);
        }
        desk.resize(height.max(1), width.min(60));
        desk.keys("<esc><esc><esc>");
        desk.exchange("more", &["words"]);
    }
}

fn kept(id: &str, title: &str, elsewhere: &str) -> crate::tui::library::StoredSession {
    crate::tui::library::StoredSession {
        is_open: false,
        id: id.to_owned(),
        title: title.to_owned(),
        elsewhere: elsewhere.to_owned(),
        folder: format!("/home/kim/{elsewhere} it"),
        turns: 2,
        changed: 0,
        is_archived: false,
    }
}

/// Opens the list of two conversations here and one elsewhere.
pub fn shelf(width: u16) -> TestApp {
    let mut desk = conversation(width, 30);
    desk.keys("/resume<enter>");
    assert!(matches!(desk.front.effects.last(), Some(Effect::Sessions(_))));
    let listed = vec![
        kept("a", "Discount codes", ""),
        kept("b", "A faster parser", "~/parser"),
        kept("c", "Receipts 漢字", ""),
    ];
    desk.take(Msg::Done(EffectOutcome::Sessions(Ok(listed), 0)));
    assert_eq!(desk.front.effects.last(), Some(&Effect::PreviewSession("a".to_owned())));
    desk
}

#[test]
fn a_conversation_is_found_by_its_title_and_by_what_was_said() {
    let mut desk = shelf(120);
    assert!(
        desk.shows("Discount codes") && !desk.shows("A faster parser"),
        "{}",
        desk.picture()
    );
    let said = crate::journal::Log::new();
    said.append(0, Event::UserMessage(Message::user("Only one \x1b[31mcode")));
    desk.take(Msg::Done(EffectOutcome::SessionPreview {
        id: "a".to_owned(),
        preview: Box::new(crate::tui::library::SessionPreview {
            end: Transcript::from_entries(&said.after(Position(0))),
            ..crate::tui::library::SessionPreview::default()
        }),
    }));
    assert!(desk.shows("▌ Only one code"), "{}", desk.picture());
    desk.keys("<tab>");
    assert!(
        desk.shows("A faster parser") && desk.shows("everywhere"),
        "{}",
        desk.picture()
    );
    desk.keys("rounding");
    assert!(desk.shows("no matches"), "{}", desk.picture());
    let found = |words: &str| {
        Msg::Done(EffectOutcome::SessionsFound {
            words: words.to_owned(),
            found: vec![("c".to_owned(), "the rounding of the receipt".to_owned())],
        })
    };
    desk.take(found("roundin"));
    assert!(!desk.shows("Receipts"), "what is not looked for any more is not shown");
    desk.take(found("rounding"));
    assert!(
        desk.shows("Receipts 漢字") && desk.shows("the rounding"),
        "{}",
        desk.picture()
    );
    desk.keys("<enter>");
    assert_eq!(desk.front.effects.last(), Some(&Effect::Resume("c".to_owned())));
}

#[test]
fn a_list_that_was_read_while_a_conversation_was_opened_is_read_again() {
    let mut desk = shelf(80);
    let link = Arc::clone(&desk.app.conversation.link);
    desk.take(Msg::Switch(link));
    assert_eq!(desk.front.effects.last(), Some(&Effect::RelistSessions));
    let mut opened = kept("a", "Discount codes", "");
    opened.is_open = true;
    desk.take(Msg::Done(EffectOutcome::SessionChanged {
        failed: None,
        kept: Some(vec![opened]),
    }));
    assert!(desk.shows("Discount codes  in use"), "{}", desk.picture());
}

#[test]
fn a_conversation_about_another_folder_is_taken_up_there() {
    let mut desk = shelf(80);
    desk.keys("<tab><down><enter>");
    let Some(Effect::Copy { text, what }) = desk.front.effects.last() else {
        panic!("{:?}", desk.front.effects)
    };
    assert_eq!(text, "cd '/home/kim/~/parser it' && sheaf --resume b");
    assert!(what.contains("~/parser"), "{what}");
}

#[test]
fn a_new_conversation_waits_for_the_old_one_to_stop() {
    let mut desk = conversation(80, 24);
    desk.keys("/new<enter>");
    assert_eq!(desk.front.effects.last(), Some(&Effect::Begin));
    desk.keys("/clear<enter>");
    assert_eq!(desk.front.effects.iter().filter(|it| **it == Effect::Begin).count(), 2);
    desk.events([Event::UserMessage(Message::user("more"))]);
    desk.keys("/new<enter>/resume<enter>");
    assert!(desk.shows("still working"), "{}", desk.picture());
    assert!(!desk.front.effects.iter().any(|it| matches!(it, Effect::Sessions(_))));
    let mut empty = TestApp::new(80, 24);
    empty.keys("/new<enter>");
    assert!(empty.shows("this conversation is already new"), "{}", empty.picture());
}

proptest! {
    #[test]
    fn no_size_breaks_the_list_of_conversations(width in 1u16..200, height in 1u16..60, keys in "[a-c]{0,3}") {
        let mut desk = shelf(120);
        desk.keys(&format!("<tab>{keys}<down><pgdn><up>"));
        desk.resize(width, height);
        desk.draw();
    }
}

#[test]
fn what_is_shown_is_printed_as_lines_and_moves_no_cursor() {
    let printed = |desk: &TestApp| {
        let text = desk.front.effects.iter().rev().find_map(|it| match it {
            Effect::Print(text) => Some(text.clone()),
            _ => None,
        });
        text.expect("something is printed")
    };
    let lines = |text: &str| -> Vec<String> {
        let [rows, columns] = [200, 100].map(|it| NonZeroU16::new(it).expect("it is not zero"));
        let mut terminal = vt100::Parser::new(rows, columns, 0);
        terminal.process(text.as_bytes());
        let lines = terminal.screen().contents();
        lines.lines().map(|it| it.trim_end().to_owned()).collect()
    };
    let mut desk = conversation(100, 60);
    let picture = desk.picture();
    desk.keys("/print<enter>");
    let text = printed(&desk);
    for sequence in text.split('\x1b').skip(1) {
        let codes = sequence.trim_start_matches(|it: char| it == '[' || it == ';' || it.is_ascii_digit());
        assert!(codes.starts_with('m'), "{sequence:?} is no colour");
    }
    let found = lines(&text);
    for line in [
        "add a code to the cart",
        "fn total",
        "let b;",
        "the cart is broken",
        "cart.",
    ] {
        assert!(found.iter().any(|it| it.contains(line)), "{line}: {found:#?}");
    }
    // Line by line what the screen shows, which has room for all of it.
    let shown: Vec<&str> = picture.lines().map(str::trim_end).collect();
    for line in found.iter().filter(|it| !it.is_empty()) {
        assert!(shown.contains(&line.as_str()), "{line:?} is not in\n{picture}");
    }
    desk.keys("/filter commands<enter>/print<enter>");
    let found = lines(&printed(&desk));
    assert!(found.iter().any(|it| it.contains("cargo test")), "{found:#?}");
    assert!(!found.iter().any(|it| it.contains("let b;")), "{found:#?}");
    let mut empty = TestApp::new(80, 24);
    empty.keys("/print<enter>");
    assert!(empty.shows("nothing to print"), "{}", empty.picture());
}

#[test]
fn a_conversation_is_put_out_of_the_way_and_removed_only_on_the_second_press() {
    let mut desk = shelf(80);
    desk.keys("<ctrl+a>");
    let archived = Effect::ArchiveSession {
        id: "a".to_owned(),
        is_archived: true,
    };
    assert_eq!(desk.front.effects.last(), Some(&archived));
    let mut first = kept("a", "Discount codes", "");
    first.is_archived = true;
    desk.take(Msg::Done(EffectOutcome::SessionChanged {
        failed: None,
        kept: Some(vec![first, kept("c", "Receipts", "")]),
    }));
    let shown = desk.picture();
    assert!(
        !shown.contains("Discount codes") && shown.contains("Receipts"),
        "{shown}"
    );
    desk.keys("<ctrl+t>");
    let shown = desk.picture();
    assert!(shown.contains("Discount codes  archived"), "{shown}");
    let count = desk.front.effects.len();
    desk.keys("<ctrl+d>");
    assert!(desk.picture().contains("ctrl+d again deletes it permanently"));
    // Any other key is a no.
    desk.keys("<down><ctrl+d>");
    assert!(
        !desk
            .front
            .effects
            .iter()
            .skip(count)
            .any(|it| matches!(it, Effect::RemoveSession(_)))
    );
    desk.keys("<ctrl+d>");
    assert!(
        matches!(desk.front.effects.last(), Some(Effect::RemoveSession(_))),
        "{:?}",
        desk.front.effects.last()
    );
}
