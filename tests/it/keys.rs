//! Words that somebody types while something waits are words. Each of these once did something else, in the real binary.

use std::{
    path::Path,
    time::{Duration, Instant},
};

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::{
    mock_model::{Answer, Model},
    print::session_files,
    pty::{ALLOW, LIMIT, Sheaf, Start},
};

const WAITING: &str = "waiting for you";

/// Sentences that are full of keys, typed in each of these cases, too.
const SENTENCES: [&str; 2] = ["fix but add 2 continue yes", "2 tests fail, y?"];

/// The words of a case, and the sentences.
fn words(of_the_case: &'static str) -> impl Iterator<Item = &'static str> {
    std::iter::once(of_the_case).chain(SENTENCES)
}

fn start(model: &Model, arguments: &[&str]) -> Sheaf {
    let sheaf = Start::new(&[&["--no-session"], arguments].concat())
        .with("OPENAI_BASE_URL", &model.url)
        .with("OPENAI_API_KEY", "sk-test")
        .with("OPENAI_MODEL", "scripted")
        .size(100, 40)
        .run();
    sheaf.wait_for("Ask anything");
    sheaf
}

fn asked(sheaf: &Sheaf, model: &Model, text: &str) -> Answer {
    sheaf.send(&format!("{text}\r"));
    model.asked()
}

/// An answer that has written `new.txt` and is over.
fn written(sheaf: &Sheaf, model: &Model) {
    let write = json!({ "file_path": "new.txt", "contents": "new\n" });
    asked(sheaf, model, "write it").calls(&[("write", write)]);
    let answer = model.asked();
    answer.says("Written.");
    answer.finish();
    sheaf.wait_for("Written.");
    sheaf.wait_until("the answer is over", |seen| !seen.shows("agent ◐"));
    assert!(sheaf.home().join("work/new.txt").exists(), "{}", sheaf.picture());
}

fn ask_form(model: &Model, sheaf: &Sheaf, count: usize) {
    let options = json!([{ "id": "a", "label": "Redis" }, { "id": "b", "label": "Postgres" }]);
    let questions: Vec<Value> = (1..=count)
        .map(|it| json!({ "id": format!("q{it}"), "prompt": format!("Question {it}?"), "options": options }))
        .collect();
    asked(sheaf, model, "go").calls(&[("ask", json!({ "title": "Before I begin", "questions": questions }))]);
    sheaf.wait_for("Question 1?");
    sheaf.wait_for(WAITING);
}

/// Presses Enter and the words go to the model as a message.
fn is_sent(sheaf: &Sheaf, model: &Model, text: &str) {
    sheaf.wait_for(&format!("› {text}"));
    sheaf.send("\r");
    assert!(model.asked().message().contains(text));
}

#[test]
fn esc_then_fix_the_tests_reverts_no_file() {
    for text in words("fix the tests") {
        for escapes in ["\x1b", "\x1b\x1b"] {
            let model = Model::start();
            let sheaf = start(&model, &[]);
            written(&sheaf, &model);
            sheaf.send(escapes);
            sheaf.send(text);
            is_sent(&sheaf, &model, text);
            assert!(sheaf.home().join("work/new.txt").exists());
        }
    }
}

#[test]
fn esc_then_continue_please_keeps_the_conversation() {
    for text in words("continue please") {
        let model = Model::start();
        let sheaf = start(&model, &[]);
        written(&sheaf, &model);
        // Two presses, each on its own: the page is open when the words come.
        sheaf.send("\x1b");
        sheaf.wait_for("esc again");
        sheaf.send("\x1b");
        sheaf.wait_for("to a message");
        sheaf.send(text);
        sheaf.wait_gone("to a message");
        sheaf.wait_for(&format!("› {text}"));
        sheaf.send("\r");
        let answer = model.asked();
        assert!(answer.message().contains(text));
        assert!(answer.request.to_string().contains("write it"), "nothing was dropped");
    }
}

#[test]
fn vim_esc_esc_b_moves_in_the_draft() {
    let model = Model::start();
    let sheaf = start(&model, &["--set", "ui.vim=true"]);
    written(&sheaf, &model);
    for key in ["\x1b", "\x1b", "\x1b", "b"] {
        sheaf.send(key);
    }
    sheaf.send("inow\r");
    assert!(model.asked().message().contains("now"));
    assert!(sheaf.home().join("work/new.txt").exists());
}

#[test]
fn add_tests_too_allows_nothing() {
    for text in words("add tests too, yes") {
        let model = Model::start();
        // Without a sandbox commands ask.
        let sheaf = start(&model, &["--sandbox", "off"]);
        let command = json!({ "command": "touch made", "is_background": false });
        asked(&sheaf, &model, "go").calls(&[("run_terminal_cmd", command)]);
        sheaf.wait_for("alt+y once");
        sheaf.send(&format!("{text}\r"));
        sheaf.wait_for(text);
        sheaf.wait_for("alt+y once");
        assert!(!sheaf.home().join("work/made").exists());
        // The chord decides, and what was said goes along.
        sheaf.insist(ALLOW, "the command is allowed", |seen| !seen.shows("alt+y once"));
        let next = model.asked();
        assert!(next.request.to_string().contains(text));
        assert!(sheaf.home().join("work/made").exists());
    }
}

#[test]
fn but_do_not_touch_redis_builds_no_plan() {
    for text in words("but do not touch Redis") {
        let model = Model::start();
        let sheaf = start(&model, &["--mode", "plan"]);
        let todos = json!([{ "id": "t", "content": "Sum up" }]);
        let plan = json!({ "name": "Sums", "overview": "All of it.", "plan": "Do it.", "todos": todos });
        asked(&sheaf, &model, "plan it").calls(&[("create_plan", plan)]);
        sheaf.wait_for("tab plan");
        sheaf.send(text);
        is_sent(&sheaf, &model, text);
        assert!(sheaf.look(|seen| seen.shows("── plan ")), "{}", sheaf.picture());
    }
}

#[test]
fn shift_tab_to_a_read_only_mode_stops_the_writing() {
    let model = Model::start();
    let sheaf = start(&model, &[]);
    let answer = asked(&sheaf, &model, "write it");
    answer.says("I am going to write.");
    sheaf.wait_for("I am going to write.");
    sheaf.send("\x1b[Z\x1b[Z");
    sheaf.wait_for("── agent → read-only · next: plan");
    answer.calls(&[("write", json!({ "file_path": "new.txt", "contents": "new\n" }))]);
    let next = model.asked();
    assert!(next.results().concat().contains("plan mode"), "{:?}", next.results());
    assert!(!sheaf.home().join("work/new.txt").exists());
}

#[test]
fn a_mode_with_more_rights_is_for_the_next_message() {
    let model = Model::start();
    let sheaf = start(&model, &["--mode", "plan"]);
    let answer = asked(&sheaf, &model, "look at it");
    answer.says("I am looking.");
    sheaf.wait_for("I am looking.");
    for _ in 0..3 {
        sheaf.send("\x1b[Z");
    }
    sheaf.wait_for("── plan · next: agent");
    answer.calls(&[("write", json!({ "file_path": "new.txt", "contents": "new\n" }))]);
    model.asked();
    assert!(!sheaf.home().join("work/new.txt").exists());
}

#[test]
fn a_digit_answers_nothing_before_enter() {
    for text in words("2 tests fail, why?") {
        let model = Model::start();
        let sheaf = start(&model, &[]);
        ask_form(&model, &sheaf, 1);
        sheaf.send(text);
        sheaf.wait_for(text);
        assert!(model.is_idle());
        sheaf.insist("\r", "it is answered", |seen| !seen.shows(WAITING));
        let told = model.asked().results().concat();
        assert!(told.contains(text) && !told.contains("Postgres"), "{told}");
    }
}

#[test]
fn a_form_that_is_scrolled_out_of_view_is_shown_before_it_is_answered() {
    let model = Model::start();
    let sheaf = start(&model, &[]);
    let answer = asked(&sheaf, &model, "go");
    answer.says(&"A long answer.\n\n".repeat(200));
    answer.finish();
    sheaf.wait_for("Ask");
    ask_form(&model, &sheaf, 2);
    let page_up = "\x1b[5~";
    sheaf.insist(page_up, "the form is out of view", |seen| {
        !seen.shows("Question 1?") && !seen.shows("Skip all")
    });
    for key in ["2", "\r"] {
        sheaf.send(key);
        sheaf.wait_until(&format!("the question is shown after {key:?}"), |seen| {
            seen.shows("Question 1?")
        });
        assert!(
            sheaf.look(|seen| seen.shows("read it, then press the key again")),
            "{}",
            sheaf.picture()
        );
        assert!(model.is_idle());
        sheaf.insist(page_up, "the form is out of view", |seen| !seen.shows("Skip all"));
    }
}

#[test]
fn a_message_beside_a_form_is_in_one_request_with_the_answers_that_were_given() {
    let model = Model::start();
    let sheaf = start(&model, &[]);
    ask_form(&model, &sheaf, 2);
    sheaf.send("2");
    sheaf.insist("\r", "the next question is shown", |seen| seen.shows("Question 2?"));
    sheaf.send("\x1b");
    sheaf.wait_until("the form is left", |seen| !seen.shows("shift+tab previous"));
    sheaf.send("use tabs\r");
    let next = model.asked();
    let request = next.request["messages"].to_string();
    assert!(request.contains("Postgres"), "{request}");
    assert!(next.message().contains("use tabs"), "{}", next.message());
}

#[test]
fn a_question_is_read_before_enter_answers_it_however_small_the_screen_is() {
    for size in [(80, 10), (40, 10), (30, 10), (40, 8)] {
        let model = Model::start();
        let sheaf = start(&model, &[]);
        ask_form(&model, &sheaf, 3);
        sheaf.resize(size.0, size.1);
        for number in 1..=2 {
            let current = |number: usize| format!("{number}/3 Question {number}?");
            sheaf.wait_until("the question and its first choice", |seen| {
                seen.shows(&current(number)) && seen.shows("1› Redis")
            });
            sheaf.insist_slowly("\r", "the next question", |seen| seen.shows(&current(number + 1)));
        }
        sheaf.send("\u{1b}[B\u{1b}[B\u{1b}[B");
        sheaf.wait_for("› Skip all questions");
        sheaf.insist_slowly("\r", "it is skipped", |seen| !seen.shows(WAITING));
        let answer = model.asked();
        answer.says("I go on without.");
        answer.finish();
        sheaf.wait_for("I go on without.");
    }
}

#[test]
fn a_command_on_the_command_line_is_no_message() {
    let model = Model::start();
    for (text, expected) in [("/status", "key from"), ("/staus", "did you mean /status?")] {
        let sheaf = Start::new(&["--no-session", text])
            .with("OPENAI_BASE_URL", &model.url)
            .with("OPENAI_API_KEY", "sk-test")
            .size(100, 40)
            .run();
        sheaf.wait_for(expected);
        assert!(model.is_idle(), "{}", sheaf.picture());
    }
}

#[test]
fn a_command_of_a_file_on_the_command_line_is_filled_in() {
    for (file, text) in [
        (".config/sheaf/commands/fixit.md", "Mend it: $ARGUMENTS"),
        (
            ".config/sheaf/skills/fixit/SKILL.md",
            "---\nname: fixit\ndescription: Mends.\n---\nMend it: $ARGUMENTS",
        ),
    ] {
        let model = Model::start();
        let sheaf = Start::new(&["--no-session", "/fixit the cart"])
            .file(file, text)
            .with("OPENAI_BASE_URL", &model.url)
            .with("OPENAI_API_KEY", "sk-test")
            .with("OPENAI_MODEL", "scripted")
            .size(100, 40)
            .run();
        let answer = model.asked();
        let request = answer.request["messages"].to_string();
        assert!(request.contains("Mend it: the cart"), "{file}: {request}");
        answer.says("Mended.");
        answer.finish();
        sheaf.wait_for("Mended.");
    }
}

/// It may be the beginning of a file that a shell has put there.
#[test]
fn a_line_to_run_on_the_command_line_waits_for_enter() {
    let model = Model::start();
    let sheaf = Start::new(&["--no-session", "!touch made"])
        .with("OPENAI_BASE_URL", &model.url)
        .with("OPENAI_API_KEY", "sk-test")
        .with("OPENAI_MODEL", "scripted")
        .size(100, 40)
        .run();
    sheaf.wait_for("!touch made");
    sheaf.wait_for("enter runs this command");
    assert!(model.is_idle(), "{}", sheaf.picture());
    assert!(!sheaf.home().join("work/made").exists());
    sheaf.send("\r");
    sheaf.wait_until("it has run", |_| sheaf.home().join("work/made").exists());
}

#[test]
fn words_for_one_question_keep_the_answers_to_the_others() {
    let model = Model::start();
    let sheaf = start(&model, &[]);
    ask_form(&model, &sheaf, 2);
    sheaf.send("2");
    sheaf.insist("\r", "the next question is shown", |seen| seen.shows("Question 2?"));
    sheaf.send("something else");
    sheaf.wait_for("something else");
    sheaf.insist("\r", "it is answered", |seen| !seen.shows(WAITING));
    let told = model.asked().results().concat();
    assert!(told.contains("Postgres") && told.contains("something else"), "{told}");
}

#[test]
fn enter_never_folds_a_form_that_waits() {
    let model = Model::start();
    let sheaf = start(&model, &[]);
    ask_form(&model, &sheaf, 2);
    sheaf.insist("\r", "it goes on to the next", |seen| seen.shows("Question 2?"));
    assert!(
        sheaf.look(|seen| seen.shows("Skip all questions")),
        "{}",
        sheaf.picture()
    );
}

#[test]
fn the_printed_keys_of_an_error_and_of_a_form_do_what_they_say() {
    let model = Model::start();
    let sheaf = start(&model, &["--set", "net.retries=0"]);
    // The connection is cut before the first word.
    drop(asked(&sheaf, &model, "hello"));
    sheaf.wait_for("tab, r, enter retry");
    sheaf.send("\t");
    sheaf.wait_for("tab returns here");
    sheaf.insist_slowly("r", "the mark", |seen| seen.shows("enter retry   esc back"));
    assert!(model.is_idle(), "a letter only marks");
    sheaf.insist_slowly("\r", "it is sent", |seen| seen.shows("agent ◐"));
    let again = model.asked();
    assert!(again.message().contains("hello"));
    again.says("Well.");
    again.finish();
    sheaf.wait_for("Well.");

    ask_form(&model, &sheaf, 2);
    sheaf.wait_for("Skip all questions");
    sheaf.send("\u{1b}[B\u{1b}[B\u{1b}[B");
    sheaf.wait_for("› Skip all questions");
    sheaf.wait_for("enter skip");
    sheaf.insist_slowly("\r", "it is skipped", |seen| !seen.shows(WAITING));
    let results = model.asked().results();
    assert!(results.iter().any(|it| it.contains("skipped")), "{results:?}");
}

#[test]
fn a_draft_of_a_killed_session_is_offered_and_never_sent() {
    let model = Model::start();
    let begin = || {
        Start::new(&[])
            .with("OPENAI_BASE_URL", &model.url)
            .with("OPENAI_API_KEY", "sk-test")
            .with("OPENAI_MODEL", "scripted")
            .size(100, 40)
    };
    let killed = begin().run();
    killed.wait_for("Ask anything");
    killed.send("drop the table of users");
    killed.wait_for("› drop the table of users");
    // A pause of typing stores the draft.
    let drafts = killed.home().join(".local/state/sheaf/drafts");
    let end = Instant::now() + LIMIT;
    while !files_hold(&drafts, "table of users") {
        assert!(Instant::now() < end, "no draft is stored");
        std::thread::sleep(Duration::from_millis(10));
    }
    killed.signal(Signal::KILL);
    killed.exit();

    let sheaf = begin().after(&killed).run();
    sheaf.wait_for("ctrl+s restores the draft of your last session");
    sheaf.send("hello\r");
    assert!(!model.asked().request.to_string().contains("table of users"));
    sheaf.send("\x13");
    sheaf.wait_for("› drop the table of users");
}

/// The program on a screen, with a model.
fn begin(model: &Model, arguments: &[&str]) -> Start {
    Start::new(arguments)
        .with("OPENAI_BASE_URL", &model.url)
        .with("OPENAI_API_KEY", "sk-test")
        .with("OPENAI_MODEL", "scripted")
        .size(100, 40)
}

/// A second window on a conversation: what is typed there stays there, whatever the first one writes, and outlives a kill.
#[test]
fn a_second_window_keeps_its_words() {
    let model = Model::start();
    let begin = |arguments: &[&str]| begin(&model, arguments);
    let first = begin(&[]).run();
    first.wait_for("Ask anything");
    let answer = asked(&first, &model, "one");
    answer.says("First answer.");
    answer.finish();
    first.wait_for("First answer.");
    let sessions = first.home().join(".local/share/sheaf/sessions");
    let id = session_files(&sessions).pop().expect("it is stored");
    let id = id.file_stem().and_then(|it| it.to_str()).expect("an id").to_owned();
    // The words of the command line are a draft, too.
    let second = begin(&["--resume", &id, "and then"]).after(&first).run();
    second.wait_for("First answer.");
    second.wait_for("not sent: another sheaf");
    second.wait_for("› and then");
    second.send(" mine");
    second.wait_for("› and then mine");
    // A pause of typing stores the draft.
    let drafts = first.home().join(".local/state/sheaf/drafts");
    let end = Instant::now() + LIMIT;
    while !files_hold(&drafts, "and then mine") {
        assert!(Instant::now() < end, "no draft is stored");
        std::thread::sleep(Duration::from_millis(10));
    }
    let answer = asked(&first, &model, "two");
    answer.says("Second answer");
    second.wait_for("Second answer");
    second.send("\r");
    second.wait_for("--fork continues a copy");
    second.wait_for("› and then mine");
    answer.says(" ends here.");
    answer.finish();
    second.wait_for("Second answer ends here.");
    second.wait_until("the answer is over", |seen| !seen.shows("agent ◐"));
    second.send("\r!");
    second.wait_for("› and then mine!");
    assert!(model.is_idle(), "nothing of it was sent");
    assert!(files_hold(&drafts, "and then mine"), "the first window has removed it");
    second.signal(Signal::KILL);
    second.exit();
    let next = begin(&[]).after(&first).run();
    next.wait_for("ctrl+s restores the draft of your last session");
    next.send("\x13");
    next.wait_for("› and then mine");
}

#[test]
fn quitting_says_how_to_resume_and_resume_without_an_id_shows_the_list() {
    let model = Model::start();
    let begin = |arguments: &[&str]| begin(&model, arguments);
    let first = begin(&[]).run();
    first.wait_for("Ask anything");
    let answer = asked(&first, &model, "one");
    answer.says("First answer.");
    answer.finish();
    first.wait_for("First answer.");
    first.wait_until("the answer is over", |seen| !seen.shows("agent ◐"));
    first.send("/quit\r");
    first.wait_for("sheaf --resume ");
    assert_eq!(first.exit(), 0);
    // It is stored by now.
    let sessions = first.home().join(".local/share/sheaf/sessions");
    let id = session_files(&sessions).pop().expect("it is stored");
    let id = id.file_stem().and_then(|it| it.to_str()).expect("an id").to_owned();
    first.wait_for(&format!("sheaf --resume {id}"));
    let second = begin(&["--resume"]).after(&first).run();
    second.wait_for("enter resume");
    assert!(!second.look(|it| it.shows("in use")), "{}", second.picture());
    second.send("\r");
    second.wait_for("First answer.");
    second.wait_gone("enter resume");
    second.send("/resume\r");
    second.wait_for("one  in use");
    second.send("\x1b");
    second.wait_gone("enter resume");
    second.send("/quit\r");
    second.wait_for(&format!("sheaf --resume {id}"));
    assert_eq!(second.exit(), 0);
    // Nothing was said.
    let third = begin(&[]).after(&first).run();
    third.wait_for("Ask anything");
    third.send("/quit\r");
    assert_eq!(third.exit(), 0);
    assert!(!third.look(|it| it.shows("--resume")), "{}", third.picture());
}

/// Returns true if a stored draft in the folder contains the text.
fn files_hold(folder: &Path, text: &str) -> bool {
    let files = std::fs::read_dir(folder).into_iter().flatten().flatten();
    // The file in the making is renamed when it is whole: before that a signal finds nothing stored.
    let files = files
        .map(|it| it.path())
        .filter(|it| it.extension().is_some_and(|it| it == "json"));
    let mut texts = files.filter_map(|it| std::fs::read_to_string(it).ok());
    texts.any(|it| it.contains(text))
}

#[test]
fn two_unknown_commands_are_not_one_message() {
    let model = Model::start();
    let sheaf = start(&model, &[]);
    for command in ["/frobnicate", "/tralala"] {
        sheaf.send(&format!("{command}\r"));
        sheaf.wait_for(&format!("unknown command {command}"));
    }
    assert!(model.is_idle());
    sheaf.send("hello\r");
    let answer = model.asked();
    assert!(answer.message().ends_with("hello"));
    answer.says("Yes.");
    answer.finish();
    sheaf.wait_for("Yes.");
    // The arguments of one are no part of the message that comes next.
    sheaf.send("/frobnicate with words\r");
    sheaf.wait_for("unknown command /frobnicate");
    sheaf.send("good bye\r");
    assert!(model.asked().message().ends_with("good bye"));
}

#[test]
fn ctrl_b_sends_a_command_to_the_background_and_the_model_goes_on() {
    let model = Model::start();
    let sheaf = start(&model, &["--set", "approvals.allow=['Shell(sleep)']"]);
    let command = json!({ "command": "sleep 300", "is_background": false, "timeout_ms": 250_000 });
    asked(&sheaf, &model, "go").calls(&[("run_terminal_cmd", command)]);
    sheaf.wait_for("sleep 300");
    // The key is for the command once that runs.
    sheaf.insist("\x02", "it is in the background", |seen| seen.shows("◐ background"));
    let told = model.asked().results().concat();
    assert!(told.contains("in the background as"), "{told}");
    assert!(told.contains("the user sent it to the background"), "{told}");
}

#[test]
fn ctrl_b_lists_the_commands_in_the_background_and_delete_stops_one() {
    let model = Model::start();
    let sheaf = start(&model, &["--set", "approvals.allow=['Shell(printf)', 'Shell(sleep)']"]);
    let command = json!({ "command": "printf 'so %s\\n' far; sleep 300", "is_background": true });
    asked(&sheaf, &model, "go").calls(&[("run_terminal_cmd", command)]);
    let next = model.asked();
    next.says("It runs.");
    next.finish();
    sheaf.wait_until("the answer is over", |seen| {
        seen.shows("It runs.") && !seen.shows("agent ◐")
    });
    sheaf.insist("\x02", "the list is open", |seen| {
        seen.shows("background commands") && seen.shows("so far") && seen.shows("del stop")
    });
    sheaf.insist("\x1b[3~", "the command has ended", |seen| {
        seen.shows("no command runs in the background")
    });
    sheaf.insist("\x1b", "the list is closed", |seen| !seen.shows("background commands"));
    let told = asked(&sheaf, &model, "well?").request.to_string();
    assert!(
        told.contains("The background command `cmd-1` was stopped by the user."),
        "{told}"
    );
}

#[test]
fn what_a_command_printed_until_the_person_stopped_it_reaches_the_model() {
    let model = Model::start();
    let sheaf = start(&model, &["--set", "approvals.allow=['Shell(printf)', 'Shell(sleep)']"]);
    let command = json!({ "command": "printf 'so %s\\n' far; sleep 300", "is_background": false });
    asked(&sheaf, &model, "go").calls(&[("run_terminal_cmd", command)]);
    sheaf.wait_for("so far");
    sheaf.send("\x03");
    sheaf.wait_until("the answer is over", |seen| !seen.shows("agent ◐"));
    let told = asked(&sheaf, &model, "well?").request.to_string();
    assert!(
        told.contains("so far\\nThe user stopped this command; this is its output until then."),
        "{told}"
    );
}

#[test]
fn an_approval_shows_the_explanation_of_its_call() {
    let model = Model::start();
    // Without a sandbox commands ask.
    let sheaf = start(&model, &["--sandbox", "off"]);
    let why = "Only a build shows whether the header is found";
    let command = json!({ "command": "touch made", "is_background": false, "explanation": why });
    asked(&sheaf, &model, "go").calls(&[("run_terminal_cmd", command)]);
    sheaf.wait_until("the question and its reason", |seen| {
        seen.shows("alt+y once") && seen.shows(why)
    });
}

#[test]
fn the_agent_that_asks_first_asks_before_it_writes() {
    let model = Model::start();
    let sheaf = start(&model, &[]);
    let answer = asked(&sheaf, &model, "write it");
    answer.says("I am going to write.");
    sheaf.wait_for("I am going to write.");
    // It takes effect in the running answer.
    sheaf.send("\x1b[Z");
    sheaf.wait_for("agent, asks first");
    let write = json!({ "file_path": "new.txt", "contents": "new\n" });
    answer.calls(&[("write", write)]);
    sheaf.insist(ALLOW, "the change is allowed", |seen| seen.shows("allowed once"));
    let next = model.asked();
    assert!(sheaf.home().join("work/new.txt").exists());
    next.says("Done.");
    next.finish();
    sheaf.wait_until("the answer is over", |seen| !seen.shows("agent ◐"));
    // And in the next one.
    let write = json!({ "file_path": "other.txt", "contents": "new\n" });
    asked(&sheaf, &model, "another").calls(&[("write", write)]);
    sheaf.wait_for(WAITING);
    assert!(!sheaf.home().join("work/other.txt").exists());
}
