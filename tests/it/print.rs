//! `sheaf -p`: the real binary against a scripted model server.

use std::{
    io::{Read as _, Write as _},
    path::Path,
    process::{Child, Command, Output, Stdio},
    time::{Duration, Instant},
};

use serde_json::{Value, json};

use crate::model::{Model, Script, query, words};

/// The binary with a home of its own and none of our variables.
pub fn sheaf(home: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_sheaf"));
    command
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap_or_default())
        .env("HOME", home)
        .env("LANG", "C.UTF-8")
        .current_dir(home)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command
}

pub fn with_model(home: &Path, model: &Model) -> Command {
    let mut command = sheaf(home);
    command
        .env("OPENAI_BASE_URL", format!("http://{}/v1", model.address))
        .env("OPENAI_API_KEY", "secret-key")
        .env("OPENAI_MODEL", "scripted");
    command
}

pub fn home() -> tempfile::TempDir {
    tempfile::tempdir().expect("a folder")
}

fn run(mut command: Command) -> Output {
    command.output().expect("it starts")
}

fn texts(output: &Output) -> (String, String, Option<i32>) {
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).expect("it is text");
    (text(&output.stdout), text(&output.stderr), output.status.code())
}

/// Waits until the child has written `text`, and gives what it wrote so far.
fn until_it_says(child: &mut Child, text: &str) -> String {
    let out = child.stdout.as_mut().expect("it is piped");
    let mut said = Vec::new();
    let mut byte = [0];
    while !String::from_utf8_lossy(&said).contains(text) {
        assert_eq!(
            out.read(&mut byte).expect("it can be read"),
            1,
            "it ended after {said:?}"
        );
        said.push(byte[0]);
    }
    String::from_utf8_lossy(&said).into_owned()
}

fn signal(child: &Child, signal: rustix::process::Signal) {
    let id = rustix::process::Pid::from_child(child);
    rustix::process::kill_process(id, signal).expect("it runs");
}

#[test]
fn the_answer_is_all_that_is_on_standard_output() {
    let home = home();
    let model = Model::with([Script::says("Use `map` here.\n\n```rust\nlet x = 1;\n```\n")]);
    let mut command = with_model(home.path(), &model);
    command.args(["-p", "how", "then?"]);
    let (out, err, code) = texts(&run(command));
    assert_eq!(out, "Use `map` here.\n\n```rust\nlet x = 1;\n```\n");
    assert_eq!((err.as_str(), code), ("", Some(0)));
    let requests = model.requests();
    assert_eq!(requests.len(), 1);
    let messages = requests[0]["messages"].as_array().expect("there are messages");
    let last = messages.last().expect("one at least")["content"].as_str();
    assert_eq!(query(last.expect("a text")), "how then?");
}

#[test]
fn the_answer_comes_while_it_is_made() {
    let home = home();
    let model = Model::with([Script::Hangs(words("first words "))]);
    let mut command = with_model(home.path(), &model);
    command.args(["-p", "x", "--output-format", "stream-json", "--stream-partial-output"]);
    let mut child = command.spawn().expect("it starts");
    until_it_says(&mut child, "words");
    signal(&child, rustix::process::Signal::INT);
    assert_eq!(child.wait().expect("it ends").code(), Some(130));
}

#[test]
fn signals_cancel_the_turn_and_leave_what_was_said() {
    for (name, code, kind) in [
        ("interrupt", 130, rustix::process::Signal::INT),
        ("terminate", 143, rustix::process::Signal::TERM),
    ] {
        let home = home();
        let model = Model::with([Script::Hangs(words("half an "))]);
        let mut command = with_model(home.path(), &model);
        command.args(["-p", "x", "--output-format", "text"]);
        let mut child = command.spawn().expect("it starts");
        let is_stored = || {
            let folder = home.path().join(".local/share/sheaf/sessions");
            let files = if folder.is_dir() {
                session_files(&folder)
            } else {
                Vec::new()
            };
            let texts = files.iter().filter_map(|it| std::fs::read_to_string(it).ok());
            texts.collect::<String>().contains("half an")
        };
        let begun = Instant::now();
        while !is_stored() {
            assert!(begun.elapsed() < Duration::from_secs(20), "{name}: nothing came");
            std::thread::sleep(Duration::from_millis(5));
        }
        let asked = Instant::now();
        signal(&child, kind);
        until_it_says(&mut child, "half an");
        assert_eq!(child.wait().expect("it ends").code(), Some(code), "{name}");
        assert!(asked.elapsed() < Duration::from_secs(2), "{name} is heard");
        let stored = only_session(home.path());
        assert!(stored.contains(r#""finalContent":"half an"#), "{stored}");
        assert!(stored.contains(r#""finishReason":"cancelled""#), "{stored}");
    }
}

#[test]
fn documents_are_the_folded_answer() {
    let home = home();
    let model = Model::with([Script::says("See\n```rust\nlet x;\n```\n")]);
    let mut command = with_model(home.path(), &model);
    command.args(["-p", "x", "--output-format", "documents"]);
    let (out, err, code) = texts(&run(command));
    assert_eq!((err.as_str(), code), ("", Some(0)));
    let answer: Value = serde_json::from_str(&out).expect("one JSON object");
    let kinds: Vec<_> = answer["documents"]
        .as_array()
        .expect("a list")
        .iter()
        .map(|it| (it["type"].clone(), it["sequence"].clone(), it["content"].clone()))
        .collect();
    assert_eq!(
        kinds,
        [
            (json!("text"), json!(1), json!("See")),
            (json!("code_block"), json!(2), json!("let x;")),
        ]
    );
    assert_eq!(answer["status"], "completed");
    assert_eq!(answer["usage"]["totalTokens"], 15);
}

/// Text that is too long for memory is printed out of a file: as it would be if it were short.
#[test]
fn an_answer_of_any_length_has_the_same_form() {
    /// With what has to be escaped by itself, because of its neighbours, and not at all.
    const PIECE: &str = "grüße \"x\" a\u{9b}2Jb \u{202e}c d\u{200d} e\n";
    /// Repetitions that are more than 4 MiB.
    const LONG: usize = 8 * 16_000;
    for (format, options) in [
        ("json", None),
        ("stream-json", Some("--stream-partial-output")),
        ("events", None),
        ("documents", None),
    ] {
        let printed = |count: usize| {
            let model = Model::with([Script::Says(vec![PIECE.repeat(count / 8); 8], Duration::ZERO)]);
            let home = home();
            let mut command = with_model(home.path(), &model);
            command.args(["-p", "x", "--output-format", format]).args(options);
            let (out, err, code) = texts(&run(command));
            assert_eq!(code, Some(0), "{format}: {err}");
            let values = serde_json::Deserializer::from_str(&out).into_iter::<Value>();
            let values: Vec<_> = values.collect::<Result<_, _>>().expect("it is JSON");
            let again = values.iter().map(|it| {
                let text = match format {
                    "documents" => serde_json::to_string_pretty(it).expect("it is JSON"),
                    _ => it.to_string(),
                };
                sheaf::print::harmless(text + "\n").into_string()
            });
            assert!(again.collect::<String>() == out, "{format} of {count}: {out:.300}");
            values
        };
        let whole = PIECE.repeat(LONG);
        let is_whole = |it: &Value| it.as_str().is_some_and(|it| it.trim_end() == whole.trim_end());
        let (short, long) = (printed(8), printed(LONG));
        let found = long.iter().map(|it| count(it, &is_whole)).sum::<usize>();
        // In Cursor's lines the model's last text comes before the result, and again in it.
        assert_eq!(found, if format == "stream-json" { 2 } else { 1 }, "{format}");
        assert_eq!(short.last().map(shape), long.last().map(shape), "{format}");
    }
}

/// Counts the strings in a value that are what is looked for.
fn count(value: &Value, is_it: &impl Fn(&Value) -> bool) -> usize {
    let here = usize::from(is_it(value));
    match value {
        Value::Array(values) => values.iter().map(|it| count(it, is_it)).sum::<usize>() + here,
        Value::Object(members) => members.values().map(|it| count(it, is_it)).sum::<usize>() + here,
        _ => here,
    }
}

/// The names in a value, in their order.
fn shape(value: &Value) -> String {
    match value {
        Value::Object(members) => {
            let members = members.iter().map(|(name, it)| format!("{name}{}", shape(it)));
            format!("{{{}}}", members.collect::<Vec<_>>().join(" "))
        }
        Value::Array(values) => values.iter().map(shape).collect(),
        _ => String::new(),
    }
}

#[test]
fn what_a_model_sends_does_nothing_to_a_terminal() {
    let home = home();
    let evil = "a\u{1b}[2Jb\u{9b}31mc\u{202e}d\u{7}e\u{1b}]0;title\u{7}f";
    let pieces = evil.chars().map(String::from).collect();
    let model = Model::with([Script::Says(pieces, Duration::ZERO)]);
    for format in ["text", "documents"] {
        let mut command = with_model(home.path(), &model);
        command.args(["-p", "x", "--output-format", format]);
        let (out, _, code) = texts(&run(command));
        assert_eq!(code, Some(0));
        assert!(
            !out.chars().any(|it| it.is_control() && it != '\n' || it == '\u{202e}'),
            "{out:?}"
        );
        if format == "documents" {
            let answer: Value = serde_json::from_str(&out).expect("one JSON object");
            assert_eq!(answer["documents"][0]["content"], evil, "nothing is lost");
        }
    }
}

#[test]
fn what_fails_is_said_on_standard_error_with_a_code() {
    let home = home();
    let refused = json!({ "error": { "message": "no such key", "code": "invalid_api_key" } });
    for (script, says) in [
        (Script::Refuses(401, refused), "no such key"),
        (Script::Breaks(words("half ")), "error: "),
    ] {
        let model = Model::with([script]);
        let mut command = with_model(home.path(), &model);
        command.args(["-p", "x", "--set", "net.retries=0"]);
        let (_, err, code) = texts(&run(command));
        assert_eq!(code, Some(1), "{err}");
        assert!(err.contains(says), "{err}");
        assert!(!err.contains("secret-key"), "{err}");
    }
}

#[test]
fn an_answer_that_breaks_off_is_asked_for_again_and_its_part_is_no_result() {
    let home = home();
    for (format, wanted) in [("text", "the whole answer\n"), ("json", "the whole answer")] {
        let model = Model::with([Script::Breaks(words("half ")), Script::says("the whole answer")]);
        let mut command = with_model(home.path(), &model);
        command.args(["-p", "x", "--output-format", format]);
        let (out, err, code) = texts(&run(command));
        assert_eq!(code, Some(0), "{err}");
        assert!(err.contains("broke off and is asked for again"), "{err}");
        if format == "text" {
            assert_eq!(out, wanted);
        } else {
            let object: Value = serde_json::from_str(&out).expect("one object");
            assert_eq!(object["result"], wanted);
        }
        assert_eq!(model.requests().len(), 2);
    }
}

#[test]
fn an_answer_that_ends_badly_is_a_failure_and_says_why() {
    let home = home();
    let cases = [
        ("length", "limit of tokens"),
        ("content_filter", "a filter at the provider"),
        ("error", "error"),
    ];
    for (reason, says) in cases {
        let model = Model::with([Script::Ends("half", reason)]);
        let mut command = with_model(home.path(), &model);
        command.args(["-p", "x", "--output-format", "json"]);
        let (out, err, code) = texts(&run(command));
        assert_eq!((out.as_str(), code), ("", Some(1)), "{reason}: {err}");
        assert!(err.contains(says), "{reason}: {err}");
    }
}

#[test]
fn with_nobody_to_ask_it_says_what_to_set() {
    let home = home();
    let mut command = sheaf(home.path());
    command.args(["-p", "x"]);
    let (out, err, code) = texts(&run(command));
    assert_eq!((out.as_str(), code), ("", Some(1)));
    for way in ["OPENAI_API_KEY", "OPENAI_BASE_URL", "--gateway", "sheaf tour"] {
        assert!(err.contains(way), "{err}");
    }
}

#[test]
fn what_cannot_be_meant_is_a_usage_error() {
    let home = home();
    for arguments in [
        &["-p"][..],
        &["--mode", "dream"],
        &["-p", "tour"],
        &["replay"],
        &["--no-such"],
    ] {
        let mut command = sheaf(home.path());
        command.args(arguments);
        let (out, err, code) = texts(&run(command));
        assert_eq!((out.as_str(), code), ("", Some(2)), "{arguments:?}: {err}");
        assert!(!err.is_empty());
    }
    let mut command = sheaf(home.path());
    command.args(["replay", "/no/such/file", "-p"]);
    let (_, err, code) = texts(&run(command));
    assert_eq!(code, Some(1));
    assert!(err.contains("/no/such/file"), "{err}");
}

#[test]
fn standard_input_goes_along() {
    let home = home();
    let model = Model::with([Script::says("seen")]);
    let long = "line\n".repeat(100_000);
    for (arguments, input, content) in [
        (
            &["-p", "review"][..],
            "a\nb\n",
            "review\n\nStandard input:\n\n```\na\nb\n```",
        ),
        (&["-p"], "what is this?\n", "what is this?"),
        (
            &["-p", "long"],
            long.as_str(),
            "long\n\nStandard input (its first 256 KiB, 233 KiB more were left out):",
        ),
    ] {
        let mut command = with_model(home.path(), &model);
        let mut child = command
            .args(arguments)
            .stdin(Stdio::piped())
            .spawn()
            .expect("it starts");
        let mut pipe = child.stdin.take().expect("it is piped");
        let input = input.to_owned();
        let writer = std::thread::spawn(move || pipe.write_all(input.as_bytes()));
        let output = child.wait_with_output().expect("it ends");
        writer.join().expect("no panic").expect("all of it is taken");
        assert_eq!(output.status.code(), Some(0));
        let requests = model.requests();
        let messages = requests.last().expect("one came")["messages"]
            .as_array()
            .expect("a list")
            .clone();
        let sent = messages.last().expect("one at least")["content"]
            .as_str()
            .expect("text")
            .to_owned();
        assert!(query(&sent).starts_with(content), "{sent:.200}");
        let is_cut = String::from_utf8_lossy(&output.stderr).contains("left out");
        assert_eq!(is_cut, content.contains("left out"), "a cut is said to the user, too");
    }
}

#[test]
fn a_reader_that_leaves_ends_it() {
    let home = home();
    let model = Model::with([Script::Says(
        vec!["word ".to_owned(); 100_000],
        Duration::from_micros(50),
    )]);
    let mut command = with_model(home.path(), &model);
    command.args(["-p", "x", "--output-format", "stream-json", "--stream-partial-output"]);
    let mut child = command.spawn().expect("it starts");
    until_it_says(&mut child, "word");
    drop(child.stdout.take());
    assert_eq!(child.wait().expect("it ends").code(), Some(1));
}

#[test]
fn a_recording_is_printed_as_it_stands() {
    let home = home();
    let stream = "event: document_start\ndata: {\"id\":\"d\",\"type\":\"text\",\"sequence\":1}\n\n\
                  event: content_delta\ndata: {\"documentId\":\"d\",\"delta\":\"hello\"}\n\n\
                  event: document_end\ndata: {\"documentId\":\"d\"}\n\n\
                  event: done\ndata: {\"usage\":{\"promptTokens\":1,\"completionTokens\":2}}\n\n";
    let bare = "data: {\"type\":\"document_start\",\"document\":{\"id\":\"d\",\"type\":\"text\"}}\n\n\
                data: {\"type\":\"content_delta\",\"documentId\":\"d\",\"delta\":\"hello\"}\n\n\
                data: {\"type\":\"document_end\",\"documentId\":\"d\"}\n\ndata: [DONE]\n\n";
    let object = json!({ "documents": [{ "id": "d", "type": "text", "content": "hello" }] });
    let pretty = serde_json::to_string_pretty(&object).expect("it is JSON");
    for (name, text) in [
        ("a.sse", stream.to_owned()),
        ("b.sse", bare.to_owned()),
        ("line.json", object.to_string()),
        ("pretty.json", pretty),
    ] {
        let file = home.path().join(name);
        std::fs::write(&file, text).expect("written");
        let replay = |format: &str| {
            let mut command = sheaf(home.path());
            command
                .arg("replay")
                .arg(&file)
                .args(["-p", "--speed", "max", "--output-format", format]);
            texts(&run(command))
        };
        assert_eq!(replay("text"), ("hello\n".to_owned(), String::new(), Some(0)), "{name}");
        let (out, _, _) = replay("documents");
        let answer: Value = serde_json::from_str(&out).expect("one JSON object");
        assert_eq!(answer["documents"][0]["content"], "hello", "{name}");
    }
    let sessions = home.path().join(".local/share/sheaf/sessions");
    assert!(!sessions.exists(), "a recording is not recorded again");
}

#[test]
fn a_foreign_or_empty_recording_says_what_it_is() {
    let home = home();
    for (text, says) in [
        (
            "data: {\"object\":\"chat.completion.chunk\",\"choices\":[]}\n\n",
            "configure it as a provider",
        ),
        ("", "contains no answer"),
        ("just words", "contains no answer"),
        ("{\"a\": ", "cannot be played"),
    ] {
        let file = home.path().join("file");
        std::fs::write(&file, text).expect("written");
        let mut command = sheaf(home.path());
        command.arg("replay").arg(&file).arg("-p");
        let (out, err, code) = texts(&run(command));
        assert_eq!((out.as_str(), code), ("", Some(1)), "{text}: {err}");
        assert!(err.contains(says), "{text}: {err}");
    }
}

#[test]
fn a_session_is_kept_and_can_be_played_and_none_is_when_none_is_wanted() {
    let home = home();
    let model = Model::with([Script::says("the answer")]);
    let mut command = with_model(home.path(), &model);
    command.args(["-p", "x", "--no-session"]);
    assert_eq!(texts(&run(command)).2, Some(0));
    assert!(!home.path().join(".local/share/sheaf/sessions").exists());

    let mut command = with_model(home.path(), &model);
    command.args(["-p", "x"]);
    assert_eq!(texts(&run(command)).2, Some(0));
    let folder = home.path().join(".local/share/sheaf/sessions");
    let file = session_files(&folder).pop().expect("one is kept");
    let mut command = sheaf(home.path());
    command.arg("replay").arg(file).args(["-p", "--speed", "max"]);
    assert_eq!(
        texts(&run(command)),
        ("the answer\n".to_owned(), String::new(), Some(0))
    );
}

#[test]
fn help_and_version_are_no_failures() {
    let home = home();
    for (argument, says) in [
        ("--help", "Examples:"),
        ("--version", env!("CARGO_PKG_VERSION")),
        ("-h", "Usage:"),
    ] {
        let mut command = sheaf(home.path());
        command.arg(argument);
        let (out, err, code) = texts(&run(command));
        assert_eq!((err.as_str(), code), ("", Some(0)));
        assert!(out.contains(says), "{out}");
    }
}

pub fn session_files(folder: &Path) -> Vec<std::path::PathBuf> {
    let files = std::fs::read_dir(folder).expect("sessions are kept");
    let files = files.flatten().map(|it| it.path());
    files
        .filter(|it| it.extension().is_some_and(|it| it == "jsonl"))
        .collect()
}

fn only_session(home: &Path) -> String {
    let files = session_files(&home.join(".local/share/sheaf/sessions"));
    assert_eq!(files.len(), 1, "{files:?}");
    std::fs::read_to_string(&files[0]).expect("it can be read")
}
