//! The real binary on a terminal: it starts, listens, shows, and always gives the terminal back.

use std::{
    io::Read as _,
    process::{Command, Stdio},
    sync::mpsc::channel,
    time::Duration,
};

use portable_pty::{CommandBuilder, NativePtySystem, PtySize, PtySystem as _};
use rustix::process::Signal;

use crate::{
    mock_model::Model,
    pty::{ALLOW, LEFT, Sheaf, Start},
};

/// The empty composer.
const READY: &str = "Ask anything";

/// A screen that talks to the scripted model. What it keeps of the conversation is another subject.
fn start(model: &Model, arguments: &[&str]) -> Start {
    Start::new(&[&["--no-session"], arguments].concat())
        .with("OPENAI_BASE_URL", &model.url)
        .with("OPENAI_API_KEY", "sk-test")
        .with("OPENAI_MODEL", "scripted")
}

fn ready(start: Start) -> Sheaf {
    let sheaf = start.run();
    sheaf.wait_for(READY);
    sheaf
}

/// The composer's rule says nothing of work.
fn wait_idle(sheaf: &Sheaf) {
    sheaf.wait_until("the answer is over", |seen| {
        !["agent ◐", "plan ◐", "ask ◐", "debug ◐"]
            .iter()
            .any(|it| seen.shows(it))
    });
}

#[test]
fn the_first_frame_is_whole_and_takes_keys() {
    let model = Model::start();
    let sheaf = ready(start(&model, &[]).size(100, 30));
    sheaf.wait_until("header, rule and footer are there", |seen| {
        seen.line(0).contains("~/work")
            && seen.line(0).contains("scripted")
            && seen.line_of("── agent ─").is_some()
            && seen.line_of("enter send").is_some()
    });
    assert!(sheaf.is_raw());
    sheaf.send("grüße 👋 an alle");
    sheaf.wait_for("› grüße 👋 an alle");
    sheaf.wait_until("the real cursor is behind the draft", |seen| {
        let line = seen.line_of("› grüße").unwrap_or_default();
        seen.screen().cursor_position() == (line, 3 + 16) && !seen.screen().hide_cursor()
    });
    sheaf.send(&"\x7f".repeat(10));
    sheaf.wait_until("letters are taken back, emoji as a whole", |seen| {
        seen.line_of("› grüße")
            .is_some_and(|it| seen.line(it).trim_end().ends_with("› grüße"))
    });
}

#[test]
fn an_answer_is_shown_as_it_comes() {
    let model = Model::start();
    let sheaf = ready(start(&model, &[]));
    sheaf.send("what is a sheaf?\r");
    let answer = model.asked();
    assert_eq!(answer.message(), "what is a sheaf?");
    assert_eq!(answer.request["model"], "scripted");
    assert_eq!(answer.request["stream"], true);
    sheaf.wait_for("what is a sheaf?");
    answer.says("A bundle ");
    sheaf.wait_for("A bundle");
    answer.says("of stalks, ");
    sheaf.wait_for("A bundle of stalks,");
    // A key is shown while the answer is still coming.
    sheaf.send("next");
    sheaf.wait_for("› next");
    answer.says("**bound** together.");
    answer.finish();
    sheaf.wait_for("A bundle of stalks, bound together.");
    wait_idle(&sheaf);
    sheaf.wait_until("the answer has its address", |seen| {
        seen.line_of("A bundle").is_some_and(|it| seen.line(it).contains("1.1"))
    });
    assert!(sheaf.look(|seen| !seen.shows("**")));
}

#[test]
fn a_prompt_on_the_command_line_is_sent_at_once() {
    let model = Model::start();
    let sheaf = start(&model, &["why", "does", "it", "fail?"]).run();
    let answer = model.asked();
    assert_eq!(answer.message(), "why does it fail?");
    answer.says("Because.");
    answer.finish();
    sheaf.wait_for("Because.");
}

#[test]
fn what_is_piped_in_goes_along_and_is_answered_without_a_screen() {
    let model = Model::start();
    let sheaf = start(&model, &["review", "this"]).piped("fn main() {}\n").run();
    let answer = model.asked();
    assert!(answer.message().starts_with("review this"), "{}", answer.message());
    assert!(answer.message().contains("fn main() {}"), "{}", answer.message());
    answer.says("Fine.");
    answer.finish();
    sheaf.wait_for("Fine.");
    assert_eq!(sheaf.exit(), 0, "{}", sheaf.picture());
}

#[test]
fn ctrl_c_and_esc_stop_the_answer_at_its_source() {
    let model = Model::start();
    let sheaf = ready(start(&model, &[]));
    for (turn, key) in ["\x03", "\x1b", "\x1b[99;5u"].into_iter().enumerate() {
        sheaf.send("count\r");
        let answer = model.asked();
        answer.says("one two ");
        sheaf.wait_until("the first words are there", |seen| {
            seen.screen().contents().matches("one two").count() == turn + 1
        });
        sheaf.send(key);
        answer.wait_closed();
        sheaf.wait_until("it is said", |seen| {
            seen.screen().contents().matches("stopped").count() == turn + 1
        });
        wait_idle(&sheaf);
    }
    sheaf.send("\x04");
    sheaf.assert_left(0);
}

#[test]
fn a_document_folds_and_unfolds() {
    let model = Model::start();
    let sheaf = ready(start(&model, &[]));
    sheaf.send("list\r");
    let answer = model.asked();
    answer.says("First paragraph.\n\nSecond paragraph.\n\nThird paragraph.\n");
    answer.finish();
    sheaf.wait_for("Third paragraph.");
    wait_idle(&sheaf);
    sheaf.send("\t\r");
    sheaf.wait_gone("Third paragraph.");
    sheaf.wait_for("First paragraph.");
    sheaf.send("\r");
    sheaf.wait_for("Third paragraph.");
    // A letter that means nothing among documents begins a message.
    sheaf.send("ha");
    sheaf.wait_for("› ha");
}

/// Answers both questions of the tour's form: its first option, and its second.
fn answer_the_form(sheaf: &Sheaf) {
    sheaf.send("1");
    sheaf.insist("\r", "the second question is shown", |seen| seen.shows("2/2"));
    sheaf.send("2");
    sheaf.insist("\r", "the form is sent", |seen| !seen.shows("2/2"));
}

/// A recording waits for a message before each turn; this goes to the last question.
fn go_through_the_tour(sheaf: &Sheaf) {
    sheaf.wait_for("Half a cent goes to the customer.");
    wait_idle(sheaf);
    sheaf.send("go on\r");
    sheaf.wait_for("A plan is a document like any other");
    wait_idle(sheaf);
    sheaf.send("go on\r");
    sheaf.wait_for("alt+y once");
    sheaf.wait_for("waiting for you");
}

#[test]
fn the_tour_asks_and_takes_answers() {
    let sheaf = Start::new(&["tour", "--speed", "0"]).size(100, 40).run();
    sheaf.wait_for("What does a code take off?");
    sheaf.wait_for("waiting for you");
    answer_the_form(&sheaf);
    go_through_the_tour(&sheaf);
    sheaf.insist(ALLOW, "the command is allowed", |seen| !seen.shows("waiting for you"));
    sheaf.wait_for("That is the tour");
    // The answers stay readable.
    sheaf.send("\x1b[1;5H");
    sheaf.wait_until("the answered form stays readable", |seen| {
        seen.shows("A percentage of the total") && seen.shows("In the database") && seen.shows("answered")
    });
}

#[test]
fn a_tour_that_is_told_no_goes_another_way() {
    let sheaf = Start::new(&["tour", "--speed", "0"]).size(100, 40).run();
    sheaf.wait_for("What does a code take off?");
    sheaf.wait_for("waiting for you");
    answer_the_form(&sheaf);
    go_through_the_tour(&sheaf);
    sheaf.send("\t");
    sheaf.wait_for("N no, because");
    sheaf.send("N");
    sheaf.wait_for("N no, because:");
    sheaf.send("not on a friday\r");
    sheaf.wait_for("Not pushed, as you wish.");
    sheaf.wait_gone("waiting for you");
}

#[test]
fn every_size_down_to_one_cell_is_survived() {
    let model = Model::start();
    let sheaf = ready(start(&model, &[]));
    sheaf.send("hi\r");
    let answer = model.asked();
    answer
        .says("Some words that wrap when the terminal is narrow, with a `code` and a [link](https://example.com).\n\n");
    sheaf.wait_for("Some words");
    for (columns, rows) in [(1, 1), (2, 30), (200, 1), (19, 4), (20, 5), (33, 12), (300, 100)] {
        let painted = sheaf.look(|seen| seen.raw.len());
        sheaf.resize(columns, rows);
        sheaf.wait_until("it paints again", |seen| {
            seen.raw.len() > painted && !seen.screen().contents().trim().is_empty()
        });
    }
    sheaf.resize(80, 24);
    sheaf.wait_for("Some words");
    sheaf.wait_for("── agent ◐ ");
    answer.says("And on.");
    answer.finish();
    sheaf.wait_for("And on.");
    sheaf.send("\x04");
    sheaf.assert_left(0);
}

#[test]
fn signals_end_it_and_give_the_terminal_back() {
    let model = Model::start();
    for (signal, code) in [
        (Signal::TERM, 143),
        (Signal::INT, 130),
        (Signal::QUIT, 131),
        (Signal::HUP, 129),
    ] {
        let sheaf = ready(start(&model, &[]));
        sheaf.send("a draft");
        sheaf.wait_for("a draft");
        sheaf.signal(signal);
        sheaf.assert_left(code);
    }
}

#[test]
fn a_terminal_that_goes_away_takes_it_along() {
    let model = Model::start();
    let pair = NativePtySystem::default().openpty(PtySize::default()).expect("a pty");
    let home = tempfile::tempdir().expect("a folder");
    let mut command = CommandBuilder::new(env!("CARGO_BIN_EXE_sheaf"));
    command.cwd(home.path());
    command.env_clear();
    command.env("HOME", home.path());
    command.env("OPENAI_BASE_URL", &model.url);
    let mut child = pair.slave.spawn_command(command).expect("it starts");
    drop(pair.slave);
    let mut screen = pair.master.try_clone_reader().expect("a screen");
    let mut seen = Vec::new();
    while !String::from_utf8_lossy(&seen).contains(READY) {
        let mut buffer = [0; 4096];
        let n = screen.read(&mut buffer).expect("it runs");
        assert_ne!(n, 0, "it ended: {}", String::from_utf8_lossy(&seen));
        seen.extend_from_slice(&buffer[..n]);
    }
    // The window is closed.
    drop(screen);
    drop(pair.master);
    let (ended, end) = channel();
    std::thread::spawn(move || ended.send(child.wait()));
    let status = end.recv_timeout(Duration::from_mins(2)).expect("it ends");
    assert_eq!(status.expect("our own child").exit_code(), 129);
}

#[test]
fn a_signal_in_the_middle_of_an_answer_ends_it_too() {
    let model = Model::start();
    let sheaf = ready(start(&model, &[]));
    sheaf.send("go\r");
    let answer = model.asked();
    answer.says("on and on ");
    sheaf.wait_for("on and on");
    sheaf.signal(Signal::TERM);
    sheaf.assert_left(143);
    answer.wait_closed();
}

#[test]
fn a_panic_gives_the_terminal_back_before_it_says_so() {
    let model = Model::start();
    let sheaf = ready(start(&model, &[]).with("SHEAF_DEV", "1"));
    sheaf.send("/panic\r");
    sheaf.assert_left(101);
    sheaf.wait_for("sheaf failed");
    sheaf.look(|seen| {
        let find = |bytes: &[u8]| seen.raw.windows(bytes.len()).position(|it| it == bytes);
        assert!(find(LEFT) < find(b"sheaf failed"), "{}", seen.screen().contents());
    });
    let state = sheaf.home().join(".local/state/sheaf");
    let reports = std::fs::read_dir(state).expect("a folder").flatten();
    let report = reports
        .map(|it| it.path())
        .find(|it| it.to_string_lossy().contains("crash-"))
        .expect("a report");
    let text = std::fs::read_to_string(report).expect("text");
    assert!(text.contains("asked for with /panic"), "{text}");
}

#[test]
fn nobody_but_developers_can_make_it_panic() {
    let model = Model::start();
    let sheaf = ready(start(&model, &[]));
    sheaf.send("/panic\r");
    sheaf.wait_for("unknown command /panic");
}

#[test]
fn a_fault_gives_the_terminal_back() {
    let model = Model::start();
    let sheaf = ready(start(&model, &[]));
    sheaf.signal(Signal::ABORT);
    sheaf.exit();
    sheaf.assert_restored();
}

#[test]
fn ctrl_z_stops_it_and_fg_brings_it_back() {
    let model = Model::start();
    let sheaf = ready(start(&model, &[]));
    sheaf.send("a draft");
    sheaf.wait_for("› a draft");
    for _ in 0..2 {
        sheaf.send("\x1a");
        sheaf.wait_stopped();
        sheaf.assert_restored();
        // The shell has written on the screen and was resized meanwhile.
        sheaf.resize(90, 20);
        sheaf.signal(Signal::CONT);
        sheaf.wait_until("all of it is painted again", |seen| {
            seen.screen().alternate_screen() && seen.shows("› a draft") && seen.shows("── agent ─")
        });
        sheaf.send(" more");
        sheaf.wait_for("more");
        assert!(sheaf.is_raw());
    }
    sheaf.signal(Signal::TERM);
    sheaf.assert_left(143);
}

#[test]
fn stopped_and_continued_by_somebody_else_it_paints_again() {
    let model = Model::start();
    let sheaf = ready(start(&model, &[]));
    sheaf.signal(Signal::STOP);
    sheaf.wait_stopped();
    let painted = sheaf.look(|seen| seen.raw.len());
    sheaf.signal(Signal::CONT);
    sheaf.wait_until("it paints again", |seen| {
        String::from_utf8_lossy(&seen.raw[painted..]).contains("agent")
    });
    sheaf.send("ok");
    sheaf.wait_for("› ok");
    sheaf.signal(Signal::TERM);
    sheaf.assert_left(143);
}

#[test]
fn every_way_out_leaves_with_zero() {
    let model = Model::start();
    for keys in ["\x04", "/quit\r", "\x03\x03", "a draft\x03\x03\x03", "\x1b[100;5u"] {
        let sheaf = ready(start(&model, &[]));
        sheaf.send(keys);
        sheaf.assert_left(0);
    }
}

#[test]
fn pasted_sequences_are_text_and_nothing_is_obeyed() {
    let model = Model::start();
    let sheaf = ready(start(&model, &[]));
    let before = sheaf.look(|seen| seen.raw.len());
    sheaf.paste("one\x1b[31mred\x1b]0;owned\x07\x1b[2J\x1b[?1049l\x1b]52;c;aGk=\x07\u{9b}5n\r\ntwo\rthree\u{202e}four");
    sheaf.wait_for("three");
    sheaf.wait_until("it is one draft of three lines", |seen| {
        let first = seen.line_of("› onered").unwrap_or(u16::MAX - 2);
        seen.line_of("two") == Some(first + 1) && seen.line_of("threefour") == Some(first + 2)
    });
    sheaf.look(|seen| {
        let written = &seen.raw[before..];
        for bad in ["\x1b[31m", "owned", "\x1b[2J", "1049l", "\x1b]52", "\u{202e}", "\u{9b}"] {
            let found = written.windows(bad.len()).any(|it| it == bad.as_bytes());
            assert!(!found, "{bad:?}");
        }
    });
    assert!(model.is_idle(), "a pasted line end sends nothing");
}

#[test]
fn what_a_model_says_reaches_the_terminal_as_text_only() {
    let model = Model::start();
    let sheaf = ready(start(&model, &[]));
    sheaf.send("hi\r");
    let answer = model.asked();
    answer.says("safe \x1b]0;owned\x07\x1b[2J\x1b]52;c;aGk=\x07\x1b[?1049l and sound\n\n");
    answer.says("```sh\necho \x1bc\x1b[8m\u{9b}31m done\n```\n");
    answer.finish();
    sheaf.wait_for("done");
    sheaf.wait_until("the words are there", |seen| {
        seen.shows("safe") && seen.shows("and sound")
    });
    sheaf.look(|seen| {
        for bad in [
            b"owned" as &[u8],
            b"\x1b]52",
            b"\x1bc",
            b"\x1b[8m",
            b"\x1b[?1049l",
            b"\xc2\x9b",
        ] {
            assert!(!seen.wrote(bad), "{:?}", String::from_utf8_lossy(bad));
        }
    });
}

#[test]
fn no_color_writes_no_colour() {
    let sheaf = Start::new(&["tour", "--speed", "0"])
        .with("NO_COLOR", "1")
        .size(120, 50)
        .run();
    sheaf.wait_for("What does a code take off?");
    sheaf.wait_for("waiting for you");
    answer_the_form(&sheaf);
    go_through_the_tour(&sheaf);
    // Everything is seen once.
    sheaf.insist("\x1b[5~", "the first turn is reached", |seen| {
        seen.shows("Add a discount code to the cart.")
    });
    let raw = sheaf.look(|seen| seen.raw.clone());
    assert_eq!(colours(&raw), Vec::<String>::new());
    let sheaf = Start::new(&["tour", "--speed", "0"]).run();
    sheaf.wait_for("What does a code take off?");
    assert!(
        !sheaf.look(|seen| colours(&seen.raw)).is_empty(),
        "the check sees colours"
    );
}

/// The sequences that set a colour.
fn colours(raw: &[u8]) -> Vec<String> {
    let text = String::from_utf8_lossy(raw);
    let sequences = text.split("\x1b[").skip(1).filter_map(|it| {
        let end = it.find(|it: char| !it.is_ascii_digit() && it != ';' && it != ':')?;
        let (numbers, rest) = it.split_at(end);
        rest.starts_with('m').then(|| numbers.to_owned())
    });
    sequences
        .filter(|it| {
            it.split([';', ':'])
                .any(|it| matches!(it.parse(), Ok(30..=38 | 40..=48 | 58 | 90..=107)))
        })
        .collect()
}

#[test]
fn a_terminal_that_answers_nothing_works() {
    let model = Model::start();
    let sheaf = ready(start(&model, &[]).mute());
    sheaf.send("hi\r");
    let answer = model.asked();
    answer.says("Still here.");
    answer.finish();
    sheaf.wait_for("Still here.");
    sheaf.send("\x04");
    sheaf.assert_left(0);
}

#[test]
fn a_late_answer_about_the_background_types_nothing_and_changes_the_colours() {
    let model = Model::start();
    let sheaf = ready(start(&model, &[]).mute());
    let before = sheaf.look(|seen| seen.raw.len());
    for part in ["\x1b]11;rgb:ffff/ffff/ffff\x1b\\", "\x1b[?0u", "\x1b[?62;22c"] {
        sheaf.send(part);
    }
    sheaf.wait_until("it paints in other colours", |seen| seen.raw.len() > before);
    sheaf.send("ok");
    sheaf.wait_until("only what was typed is there", |seen| {
        seen.line_of("›").is_some_and(|it| seen.line(it).trim() == "› ok")
    });
}

#[test]
fn the_mode_picker_opens_for_every_form_of_the_key() {
    let model = Model::start();
    let sheaf = ready(start(&model, &[]));
    for key in ["\x1b[46;5u", "\x1b[27;5;46~", "\x1bOQ", "\x1b[12~", "/mode\r"] {
        sheaf.send(key);
        sheaf.wait_for("finds the cause of a bug");
        sheaf.send("\x1b[B\r");
        sheaf.wait_gone("finds the cause of a bug");
    }
    // Each time from the mode in use, which is the first one, to the second one.
    sheaf.wait_for("── agent, asks first ─");
    sheaf.send("\x1b[Z");
    sheaf.wait_for("── plan ─");
    sheaf.wait_for("read-only");
    // The plain point of an older terminal is a point.
    sheaf.send("a.b");
    sheaf.wait_for("› a.b");
}

#[test]
fn every_newline_key_breaks_the_line_and_enter_sends() {
    let model = Model::start();
    let sheaf = ready(start(&model, &[]));
    let keys = ["\x1b[13;2u", "\x1b[27;2;13~", "\x1b\r", "\x1b[13;3u", "\n", "\\\r"];
    for (turn, key) in keys.into_iter().enumerate() {
        sheaf.send(&format!("first{key}second"));
        sheaf.wait_until(&format!("{key:?} breaks the line"), |seen| {
            seen.line_of("› first")
                .is_some_and(|it| seen.line(it).trim() == "› first" && seen.line(it + 1).trim() == "second")
        });
        assert!(model.is_idle(), "{key:?}");
        sheaf.send("\r");
        let answer = model.asked();
        assert_eq!(answer.message(), "first\nsecond", "{key:?}");
        let reply = format!("reply {turn}");
        answer.says(&format!("{reply} "));
        sheaf.wait_for(&reply);
        answer.finish();
        wait_idle(&sheaf);
    }
}

#[test]
fn what_is_typed_in_one_burst_arrives_in_order() {
    let model = Model::start();
    let sheaf = start(&model, &[]).run();
    // Before the first frame already; only Enter would mean something else to a terminal that is not taken over yet.
    let text = "0 1 2 3 4 5 6 7 8 9 ".repeat(40);
    sheaf.send(&text);
    sheaf.wait_until("the draft is there", |seen| {
        seen.line_of("›").is_some() && seen.shows("7 8 9")
    });
    sheaf.send("\r");
    let answer = model.asked();
    assert_eq!(answer.message(), text.trim());
    answer.finish();
}

#[test]
fn without_a_terminal_it_says_what_to_do() {
    let home = tempfile::tempdir().expect("a folder");
    let output = Command::new(env!("CARGO_BIN_EXE_sheaf"))
        .env_clear()
        .env("HOME", home.path())
        .current_dir(home.path())
        .stdin(Stdio::null())
        .output()
        .expect("it runs");
    assert_eq!(output.status.code(), Some(2));
    assert!(output.stdout.is_empty());
    let said = String::from_utf8(output.stderr).expect("text");
    assert!(said.contains("sheaf -p"), "{said}");
}
