//! Writing a message: undo, selection, chips, history, what waits, Vim.

use serde_json::json;

use super::super::{
    msg::{EffectOutcome, Msg},
    picture::{self, Source},
    terminal::Input,
    test_app::*,
};
use crate::{
    protocol::{Command, Done, Event, Message, Query},
    tui::app::Effect,
};

#[test]
fn what_was_written_is_undone_and_done_again() {
    let mut desk = TestApp::new(80, 24);
    desk.keys("one two three<ctrl+w>");
    assert_eq!(desk.app.composer.field.text(), "one two ");
    desk.keys("\u{1f}");
    assert_eq!(desk.app.composer.field.text(), "one two three");
    desk.keys("<alt+/>");
    assert_eq!(desk.app.composer.field.text(), "one two ");
    desk.keys("<alt+u>");
    assert!(desk.app.composer.field.is_empty());
    desk.keys("\u{1f}");
    assert_eq!(desk.app.composer.field.text(), "one two ", "a cleared draft comes back");
}

#[test]
fn what_is_selected_is_seen_copied_and_replaced() {
    let mut desk = TestApp::new(80, 24);
    desk.keys("one two");
    let before = desk.painted();
    desk.keys("<ctrl+shift+left>");
    assert_ne!(desk.painted(), before, "it is seen");
    desk.keys("<ctrl+c>");
    assert!(matches!(desk.front.effects.last(), Some(Effect::Copy { text, .. }) if text == "two"));
    assert_eq!(desk.app.composer.field.text(), "one two", "it was no interrupt");
    desk.keys("2");
    assert_eq!(desk.app.composer.field.text(), "one 2");
}

#[test]
fn a_large_paste_is_viewed_unfolded_and_sent_whole() {
    let mut desk = TestApp::new(80, 30);
    let pasted = "a line of a log\n".repeat(30);
    desk.keys("look: ");
    desk.paste(&pasted);
    assert!(desk.shows("look: ▤[pasted 30 lines]"), "{}", desk.picture());
    desk.keys("<ctrl+o>");
    assert!(desk.shows("expand"), "{}", desk.picture());
    desk.keys("<enter>");
    assert!(
        desk.shows("Pasted") && desk.shows("a line of a log"),
        "{}",
        desk.picture()
    );
    desk.keys("<esc><ctrl+g>");
    assert_eq!(desk.front.effects.last(), Some(&Effect::EditChip(pasted.clone())));
    desk.take(Msg::Done(EffectOutcome::ChipEdited(Ok("shorter\n".repeat(20)))));
    assert!(desk.shows("[pasted 20 lines]"), "{}", desk.picture());
    desk.keys("<ctrl+o><down><enter>");
    assert!(desk.shows("shorter") && !desk.shows("[pasted"), "{}", desk.picture());
    desk.keys("<enter>");
    let [Command::Submit(submit)] = &desk.sent()[..] else {
        panic!("{:?}", desk.sent())
    };
    assert_eq!(
        submit.message.content,
        format!("look: {}", "shorter\n".repeat(20).trim_end())
    );
}

#[test]
fn a_picture_is_pasted_dragged_or_a_path_after_all() {
    let mut desk = TestApp::new(80, 24);
    desk.keys("see ");
    desk.paste("'/tmp/my shot.png'");
    let source = Source::Path("/tmp/my shot.png".into(), "'/tmp/my shot.png'".into());
    assert_eq!(desk.front.effects.last(), Some(&Effect::Picture(source)));
    let picture = picture::of("my shot.png", b"\x89PNG\r\n\x1a\n1234").unwrap();
    desk.take(Msg::Done(EffectOutcome::Picture(Ok(picture.clone()))));
    assert!(desk.shows("see ▤[my shot.png 12 B]"), "{}", desk.picture());
    desk.keys(" ?<enter>");
    let [Command::Submit(submit)] = &desk.sent()[..] else {
        panic!("{:?}", desk.sent())
    };
    assert_eq!(submit.message.content, "see [my shot.png] ?");
    assert_eq!(submit.message.extra.get("images"), Some(&json!([picture.data])));
    let gone = Err(("it is not there".to_owned(), Some("/tmp/gone.png".to_owned())));
    desk.take(Msg::Done(EffectOutcome::Picture(gone)));
    assert_eq!(desk.app.composer.field.text(), "/tmp/gone.png");
    desk.keys("<ctrl+v>");
    assert_eq!(desk.front.effects.last(), Some(&Effect::Picture(Source::Clipboard)));
}

#[test]
fn what_was_sent_before_is_there_again() {
    let mut desk = TestApp::new(80, 24);
    let history = |texts: &[&str], draft| {
        Msg::Done(EffectOutcome::History {
            texts: texts.iter().map(|it| (*it).to_owned()).collect(),
            draft,
        })
    };
    desk.keys("first of this window<enter>");
    assert_eq!(
        desk.front.effects.last(),
        Some(&Effect::NoteSent("first of this window".into()))
    );
    desk.take(history(&["older", "newer"], None));
    desk.events([Event::UserMessage(Message::user("x")), Event::Done(Done::default())]);
    desk.keys("<up><up><up>");
    assert_eq!(desk.app.composer.field.text(), "older");
    desk.keys("<down><down><down>");
    assert_eq!(desk.app.composer.field.text(), "");
    desk.keys("<ctrl+r>");
    assert!(matches!(desk.front.effects.last(), Some(Effect::History(_))));
    desk.take(history(&["elsewhere\nin lines", "newer"], Some(0)));
    assert!(desk.shows("history"), "{}", desk.picture());
    desk.keys("else<enter>");
    assert_eq!(desk.app.composer.field.text(), "elsewhere\nin lines");
}

#[test]
fn what_waits_is_cut_with_a_mark_and_the_rest_is_counted() {
    for width in [40, 80, 120] {
        let mut desk = TestApp::new(width, 24);
        desk.events([Event::UserMessage(Message::user("go"))]);
        for n in 1..=4 {
            desk.keys(&format!("number {n} {}<enter>", "and so on ".repeat(20)));
        }
        let picture = desk.picture();
        let lines: Vec<_> = picture.lines().filter(|it| it.contains("number ")).collect();
        assert_eq!(lines.len(), 3, "{picture}");
        assert!(lines.iter().all(|it| it.contains('…')), "{picture}");
        assert!(
            lines[2].trim_end().ends_with("… (and 1 more)") || lines[2].trim_end().ends_with("…  (and 1 more)"),
            "{picture}"
        );
    }
}

#[test]
fn the_mouse_puts_the_caret_into_the_draft_and_marks_there() {
    let mut desk = TestApp::new(80, 24);
    desk.keys("one two 語<ctrl+j>three");
    let rows = desk.app.viewport.areas.composer;
    let (first, second) = (rows.y, rows.y + 1);
    let click = |desk: &mut TestApp, x: u16, y: u16, to: u16| {
        desk.take(Msg::Input(Input::Click { x, y }));
        if to != x {
            desk.take(Msg::Input(Input::Drag { x: to, y }));
        }
        desk.take(Msg::Input(Input::Release { x: to, y }));
    };
    click(&mut desk, 3 + 4, first, 3 + 4);
    desk.keys("X");
    assert_eq!(desk.app.composer.field.text(), "one Xtwo 語\nthree");
    desk.later(1000);
    click(&mut desk, 3 + 1, second, 3 + 3);
    assert_eq!(desk.app.composer.field.selected().as_deref(), Some("hr"));
    desk.keys("<ctrl+c>");
    assert!(matches!(desk.front.effects.last(), Some(Effect::Copy { text, .. }) if text == "hr"));
    desk.later(1000);
    click(&mut desk, 3 + 6, first, 3 + 6);
    click(&mut desk, 3 + 6, first, 3 + 6);
    assert_eq!(
        desk.app.composer.field.selected().as_deref(),
        Some("Xtwo"),
        "twice marks a word"
    );
    desk.later(1000);
    click(&mut desk, 70, first, 70);
    desk.keys("!");
    assert_eq!(
        desk.app.composer.field.text(),
        "one Xtwo 語!\nthree",
        "beside a row is its end"
    );
}

#[test]
fn up_and_down_keep_their_column_over_short_rows() {
    let mut desk = TestApp::new(80, 24);
    desk.keys("a long first row<ctrl+j>b<ctrl+j>a long third row<up><up>X");
    assert_eq!(desk.app.composer.field.text(), "a long first rowX\nb\na long third row");
    desk.keys("<home><ctrl+d>");
    assert!(
        desk.app.composer.field.text().starts_with(" long"),
        "ctrl+d takes a letter"
    );
}

#[test]
fn every_line_that_is_typed_is_edited_in_the_same_way() {
    // A caret that moves, words at once, undo: in the search, in a list, in the outline.
    let mut desk = TestApp::new(80, 24);
    desk.exchange("go", &["one two three"]);
    desk.keys("<tab>/too no<ctrl+w><backspace><left><backspace>w");
    assert_eq!(
        desk.app.viewport.search.as_ref().map(|it| it.pattern.as_str()),
        Some("two")
    );
    desk.keys("<esc><esc><esc><f3>tme<home>x<backspace><left>/");
    assert!(desk.shows("› /tme ") && desk.shows("/theme"), "{}", desk.picture());
    desk.keys("<esc><tab>vthrx<backspace>ee");
    assert!(desk.shows("outline › three "), "{}", desk.picture());
}

#[test]
fn an_address_behind_an_at_sign_offers_documents() {
    let mut desk = TestApp::new(80, 24);
    desk.exchange("go", &["one", "two"]);
    desk.keys("see @1.");
    assert!(desk.shows("documents") && desk.shows("1.1"), "{}", desk.picture());
    desk.keys("<tab>");
    assert_eq!(desk.app.composer.field.text(), "see #1.2 ");
    desk.keys("<alt+u>@1.x");
    assert!(!desk.shows("documents"), "{}", desk.picture());
}

#[test]
fn messages_that_wait_are_edited_reordered_and_taken_back() {
    let mut desk = TestApp::new(80, 30);
    desk.events([Event::UserMessage(Message::user("go"))]);
    desk.keys("one<enter>two<enter>three<enter>");
    desk.keys("/queue<enter>");
    assert!(desk.shows("queued messages"), "{}", desk.picture());
    desk.keys("Kd");
    let waiting = |desk: &TestApp| {
        let texts = desk.app.composer.queue.iter().map(|it| it.message.content.clone());
        texts.collect::<Vec<_>>().join(" ")
    };
    assert_eq!(waiting(&desk), "one two");
    desk.keys("kJ");
    assert_eq!(waiting(&desk), "two one");
    desk.keys("k<enter>");
    assert_eq!(
        (waiting(&desk).as_str(), desk.app.composer.field.text().as_str()),
        ("one", "two")
    );
}

#[test]
fn a_command_behind_an_exclamation_mark_is_run_and_not_sent() {
    let mut desk = TestApp::new(80, 24);
    desk.keys("! cargo test");
    assert!(desk.shows("runs in the sandbox"), "{}", desk.picture());
    desk.keys("<enter>!!secret<enter>!<enter>");
    let run = |it: &Command| match it {
        Command::Run { line, is_shown, submit } => format!("{line} {is_shown} {}", submit.message.content),
        other => panic!("{other:?}"),
    };
    let sent: Vec<String> = desk.sent().iter().map(run).collect();
    assert_eq!(sent, ["cargo test true ! cargo test", "secret false !!secret"]);
    assert!(desk.shows("! runs a command in the sandbox"), "{}", desk.picture());
    desk.app.conversation.about.runs = false;
    desk.keys("<alt+u>!ls<enter>");
    assert_eq!(desk.sent().len(), 2);
    assert_eq!(desk.app.composer.field.text(), "!ls", "the draft stays");
}

#[test]
fn vim_has_its_modes_and_leaves_sending_alone() {
    let mut desk = TestApp::new(80, 24);
    desk.keys("/vim<enter>");
    assert!(desk.shows("insert"), "{}", desk.picture());
    desk.keys("one two<esc>");
    assert!(desk.shows("normal"), "{}", desk.picture());
    desk.keys("bdw");
    assert_eq!(desk.app.composer.field.text(), "one ");
    desk.keys("Athree<enter>");
    let [Command::Submit(submit)] = &desk.sent()[..] else {
        panic!("{:?}", desk.sent())
    };
    assert_eq!(submit.message.content, "one three");
    assert!(
        desk.shows("insert"),
        "a new draft is written at once\n{}",
        desk.picture()
    );
    desk.keys("<esc><tab>");
    assert_eq!(
        desk.app.viewport.focus,
        super::super::app::Focus::Composer,
        "nothing to read yet"
    );
    desk.keys("/vim<enter>");
}

#[test]
fn in_normal_mode_a_colon_finds_commands_a_slash_words_and_nothing_half_typed_is_sent() {
    let mut desk = TestApp::new(80, 24);
    desk.exchange("go", &["one two three"]);
    desk.keys("/vim<enter>abc<esc>f<enter>");
    assert_eq!(desk.app.composer.field.text(), "abc");
    desk.keys(":cop");
    assert!(desk.shows("/copy"), "{}", desk.picture());
    desk.keys("<esc>/thr<enter>");
    assert_eq!(
        desk.app.viewport.search.as_ref().map(|it| it.pattern.as_str()),
        Some("thr")
    );
}

#[test]
fn a_number_sign_offers_documents_and_enter_still_sends() {
    let mut desk = TestApp::new(100, 30);
    desk.exchange("one", &["the first answer", "the second answer"]);
    desk.keys("see #1");
    assert!(desk.shows("documents"), "{}", desk.picture());
    assert!(desk.shows("1.2  the second answer"), "{}", desk.picture());
    desk.keys("<down><tab>");
    assert_eq!(desk.app.composer.field.text(), "see #1.1 ");
    desk.keys("and issue #1<enter>");
    assert_eq!(desk.app.composer.field.text(), "", "nobody chose anything");
    desk.keys("#first");
    assert!(desk.shows("1.1  the first answer"), "{}", desk.picture());
    desk.keys("<esc>");
    assert!(!desk.shows("documents"), "{}", desk.picture());
}

#[test]
fn a_path_with_blanks_is_put_in_so_that_it_is_one() {
    let mut desk = TestApp::new(100, 30);
    let offered = |desk: &mut TestApp, pattern: &str, file: &str| {
        desk.offer_files(pattern, vec![file.to_owned()]);
        desk.keys("<tab>");
    };
    desk.keys("see @my");
    offered(&mut desk, "my", "my notes/");
    assert_eq!(desk.app.composer.field.text(), "see @my\\ notes/");
    // What is in the folder is looked for by its own name.
    desk.keys("a");
    assert!(
        desk.asked()
            .iter()
            .any(|it| matches!(it, Query::Files { pattern, .. } if pattern == "my notes/a")),
        "{:?}",
        desk.front.effects
    );
    offered(&mut desk, "my notes/a", "my notes/a b.md");
    desk.keys(":10-20 ");
    assert_eq!(desk.app.composer.field.text(), "see @my\\ notes/a\\ b.md:10-20 ");
}

/// Types the keys of a case into an empty composer, then `|` for the caret.
fn written(keys: &str) -> String {
    let mut desk = TestApp::new(80, 24);
    for (n, part) in keys.split('▤').enumerate() {
        if n > 0 {
            desk.paste(&"pasted\n".repeat(40));
        }
        desk.keys(part);
    }
    desk.keys("|");
    desk.app.composer.field.text().replace(&"pasted\n".repeat(40), "▤")
}

#[test]
fn the_keys_of_readline_work_in_the_composer() {
    let mut wrong = Vec::new();
    for (keys, text) in [
        ("one two<ctrl+a>", "|one two"),
        ("one two<ctrl+a><ctrl+e>", "one two|"),
        ("one<ctrl+b>", "on|e"),
        ("e\u{301}<ctrl+b>", "|e\u{301}"),
        ("👨\u{200d}👩\u{200d}👧<ctrl+b>", "|👨\u{200d}👩\u{200d}👧"),
        ("▤<ctrl+b>", "|▤"),
        ("one<ctrl+a><ctrl+f>", "o|ne"),
        ("e\u{301}x<ctrl+a><ctrl+f>", "e\u{301}|x"),
        ("👨\u{200d}👩\u{200d}👧x<ctrl+a><ctrl+f>", "👨\u{200d}👩\u{200d}👧|x"),
        ("▤x<ctrl+a><ctrl+f>", "▤|x"),
        ("one<ctrl+j>two<ctrl+p>", "one|\ntwo"),
        ("one<ctrl+j>two<ctrl+p><ctrl+n>", "one\ntwo|"),
        ("one two<ctrl+b><ctrl+k>", "one tw|"),
        ("one<ctrl+j>two<ctrl+p><ctrl+a><ctrl+k>", "|\ntwo"),
        ("a▤b<ctrl+a><ctrl+f><ctrl+k>", "a|"),
        ("one two<ctrl+b><ctrl+u>", "|o"),
        ("one<ctrl+j>two<ctrl+u>", "one\n|"),
        ("ae\u{301}▤<ctrl+u>", "|"),
        ("one two<ctrl+w>", "one |"),
        ("one e\u{301}e\u{301}<ctrl+w>", "one |"),
        ("one ▤<ctrl+w>", "one |"),
        ("one two<ctrl+w><ctrl+y><ctrl+y>", "one twotwo|"),
        ("▤<ctrl+u>x<ctrl+y>", "x▤|"),
        (
            "👨\u{200d}👩\u{200d}👧e\u{301}<ctrl+a><ctrl+k>x<ctrl+y>",
            "x👨\u{200d}👩\u{200d}👧e\u{301}|",
        ),
        ("one<ctrl+a><ctrl+d>", "|ne"),
        ("e\u{301}x<ctrl+a><ctrl+d>", "|x"),
        ("👨\u{200d}👩\u{200d}👧x<ctrl+a><ctrl+d>", "|x"),
        ("▤x<ctrl+a><ctrl+d>", "|x"),
        ("one<ctrl+h>", "on|"),
        ("xe\u{301}<ctrl+h>", "x|"),
        ("x👨\u{200d}👩\u{200d}👧<ctrl+h>", "x|"),
        ("x▤<ctrl+h>", "x|"),
        ("one<ctrl+t>", "oen|"),
        ("one<ctrl+b><ctrl+t>", "oen|"),
        ("abc<ctrl+a><ctrl+f><ctrl+t>", "ba|c"),
        ("ab<ctrl+a><ctrl+t>", "|ab"),
        ("a<ctrl+t>", "a|"),
        ("a<ctrl+j>b<ctrl+t>", "a\nb|"),
        ("xe\u{301}<ctrl+t>", "e\u{301}x|"),
        (
            "👨\u{200d}👩\u{200d}👧e\u{301}<ctrl+t>",
            "e\u{301}👨\u{200d}👩\u{200d}👧|",
        ),
        ("x▤<ctrl+t>", "▤x|"),
        ("one two<alt+b>", "one |two"),
        ("one e\u{301}e<alt+b>", "one |e\u{301}e"),
        ("one ▤<alt+b>", "one |▤"),
        ("one two<ctrl+a><alt+f>", "one| two"),
        ("e\u{301}e two<ctrl+a><alt+f>", "e\u{301}e| two"),
        ("▤ two<ctrl+a><alt+f>", "▤| two"),
        ("one two<ctrl+a><alt+d>", "| two"),
        ("e\u{301}e two<ctrl+a><alt+d>", "| two"),
        ("▤ two<ctrl+a><alt+d>", "| two"),
        ("one two<alt+s>x", "x|"),
    ] {
        let got = written(keys);
        if got != text {
            wrong.push(format!("{keys:?}: {got:?}, not {text:?}"));
        }
    }
    assert_eq!(wrong, [] as [String; 0]);
}

#[test]
fn ctrl_p_recalls_what_was_sent_and_ctrl_n_leads_back() {
    for (older, newer) in [("<up>", "<down>"), ("<ctrl+p>", "<ctrl+n>")] {
        let mut desk = TestApp::new(80, 24);
        for text in ["one", "two"] {
            desk.app.composer.history.keep(text);
        }
        let mut seen = Vec::new();
        for key in [older, older, newer, newer] {
            desk.keys(key);
            seen.push(desk.app.composer.field.text());
        }
        assert_eq!(seen, ["two", "one", "two", ""], "{older}");
        desk.keys("<ctrl+d>");
        assert!(matches!(desk.front.effects.last(), Some(Effect::Quit(0))), "{older}");
    }
}

#[test]
fn any_key_skips_the_pause_of_a_recording_and_letters_stay_text() {
    let nexts = |desk: &TestApp| desk.sent().iter().filter(|it| **it == Command::Next).count();
    let draft = |desk: &TestApp| desk.app.composer.field.text();
    let mut live = TestApp::new(80, 24);
    live.events([Event::UserMessage(Message::user("go"))]);
    live.keys(" x");
    assert_eq!(
        (nexts(&live), draft(&live)),
        (0, " x".to_owned()),
        "in a conversation it is text"
    );
    let mut desk = TestApp::new(80, 24);
    desk.app.conversation.about.is_replay = true;
    desk.events([Event::UserMessage(Message::user("go"))]);
    assert!(desk.shows("any key continue"), "{}", desk.picture());
    desk.keys(" <down> ");
    assert_eq!((nexts(&desk), draft(&desk)), (3, String::new()));
    desk.keys("hi there");
    assert_eq!(
        (nexts(&desk), draft(&desk)),
        (4, "hi there".to_owned()),
        "a message goes on as text"
    );
}

/// In a window on a conversation that another program writes, Enter sends nothing, and the words stay.
#[test]
fn where_another_program_writes_words_stay_in_the_draft() {
    let mut desk = TestApp::new(100, 24);
    desk.app.conversation.about.peer = "another sheaf (process 7)".to_owned();
    desk.app.conversation.about.written_elsewhere = Some("sheaf --resume abc --fork".to_owned());
    desk.keys("my words");
    assert!(!desk.shows("enter send"), "{}", desk.picture());
    let kept = |desk: &mut TestApp, text: &str| {
        assert_eq!(desk.sent(), [], "nothing is sent");
        assert!(desk.app.composer.queue.is_empty() && desk.app.composer.said.is_empty());
        assert_eq!(desk.app.composer.field.text(), text);
    };
    desk.keys("<enter>");
    kept(&mut desk, "my words");
    assert!(
        desk.shows("not sent: another sheaf (process 7) writes this conversation")
            && desk.shows("sheaf --resume abc --fork"),
        "{}",
        desk.picture()
    );
    // The other window asks something and is answered.
    desk.events([Event::UserMessage(Message::user("theirs"))]);
    for keys in ["<enter>", "<ctrl+enter>"] {
        desk.keys(keys);
        kept(&mut desk, "my words");
    }
    desk.events([Event::Done(Done::default())]);
    kept(&mut desk, "my words");
}
