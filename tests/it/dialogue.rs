//! `--input-format stream-json`: several turns, steering, answers and approvals over the standard input of one process;
//! and a program that decides approvals.

use std::{
    io::{BufRead as _, BufReader, Read as _, Write as _},
    path::{Path, PathBuf},
    process::{Child, ChildStdin, ChildStdout, Command, Stdio},
};

use pretty_assertions::assert_eq;
use serde_json::{Value, json};

use crate::{
    headless::{Ran, ask, workspace},
    mock_model,
    model::{Model, Script},
    print::{home, sheaf},
};

/// A run whose standard input the test writes.
struct Dialogue {
    child: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
}

impl Dialogue {
    fn start(home: &Path, url: &str, flags: &[&str]) -> Self {
        let mut command: Command = sheaf(home);
        command
            .env("OPENAI_BASE_URL", url)
            .env("OPENAI_API_KEY", "secret-key")
            .env("OPENAI_MODEL", "scripted")
            .arg("--workspace")
            .arg(workspace(home))
            .args(["-p", "--input-format", "stream-json", "--output-format", "stream-json"])
            .args(flags)
            .stdin(Stdio::piped());
        let mut child = command.spawn().expect("it starts");
        Self {
            input: child.stdin.take(),
            output: BufReader::new(child.stdout.take().expect("it is piped")),
            child,
        }
    }

    fn sends(&mut self, line: &Value) {
        let input = self.input.as_mut().expect("it is open");
        writeln!(input, "{line}")
            .and_then(|()| input.flush())
            .expect("it reads");
    }

    fn says(&mut self, text: &str) {
        self.sends(&json!({ "type": "user", "message": { "role": "user", "content": text } }));
    }

    /// All lines up to the next one of this type, with it.
    fn until(&mut self, kind: &str) -> Vec<Value> {
        let mut lines = Vec::new();
        loop {
            let mut line = String::new();
            let count = self.output.read_line(&mut line).expect("it can be read");
            assert!(count > 0, "it ended after {lines:?}: {}", self.errors());
            let line: Value = serde_json::from_str(&line).expect("JSON");
            let is_it = line["type"] == kind;
            lines.push(line);
            if is_it {
                return lines;
            }
        }
    }

    fn next(&mut self, kind: &str) -> Value {
        self.until(kind).pop().expect("a line")
    }

    fn errors(&mut self) -> String {
        let mut text = String::new();
        let _ = self
            .child
            .stderr
            .as_mut()
            .expect("it is piped")
            .read_to_string(&mut text);
        text
    }

    /// Ends standard input. Returns the rest of the output, the errors and the exit code.
    fn end(mut self) -> (String, String, Option<i32>) {
        drop(self.input.take());
        let mut rest = String::new();
        self.output.read_to_string(&mut rest).expect("it is text");
        let errors = self.errors();
        (rest, errors, self.child.wait().expect("it ends").code())
    }
}

fn says(request: &Value, text: &str) -> bool {
    request["messages"].to_string().contains(text)
}

#[test]
fn one_process_answers_several_messages() {
    let home = home();
    let model = mock_model::Model::start();
    let mut run = Dialogue::start(home.path(), &model.url, &[]);
    run.says("first question");
    let answer = model.asked();
    assert_eq!(answer.message(), "first question");
    answer.says("one");
    // A message that waits is the next turn.
    run.sends(&json!({ "type": "user", "queue": true, "message": { "content": [{ "type": "text", "text": "second question" }] } }));
    answer.finish();
    let first = run.until("result");
    assert_eq!(first[0]["subtype"], "init");
    let kinds: Vec<_> = first.iter().map(|it| it["type"].as_str().unwrap_or_default()).collect();
    assert_eq!(kinds, ["system", "user", "assistant", "result"]);
    assert_eq!(first[3]["result"], "one");
    let answer = model.asked();
    assert_eq!(answer.message(), "second question");
    assert!(says(&answer.request, "first question") && says(&answer.request, "one"));
    answer.says("two");
    answer.finish();
    let second = run.until("result");
    let kinds: Vec<_> = second
        .iter()
        .map(|it| it["type"].as_str().unwrap_or_default())
        .collect();
    assert_eq!(kinds, ["user", "assistant", "result"]);
    assert_eq!(second[2]["result"], "two");
    assert_eq!(first[3]["session_id"], second[2]["session_id"]);
    assert_eq!(run.end(), (String::new(), String::new(), Some(0)));
}

#[test]
fn a_message_during_an_answer_steers_it() {
    let home = home();
    let model = mock_model::Model::start();
    let mut run = Dialogue::start(home.path(), &model.url, &[]);
    run.says("look around");
    let first = model.asked();
    run.says("only the readme");
    first.calls(&[("read_file", json!({ "target_file": "none-0" }))]);
    let mut steps = 1;
    let last = loop {
        let answer = model.asked();
        if says(&answer.request, "only the readme") {
            break answer;
        }
        steps += 1;
        assert!(steps < 45, "the message never came");
        answer.calls(&[("read_file", json!({ "target_file": format!("none-{steps}") }))]);
    };
    last.says("fine");
    last.finish();
    let lines = run.until("result");
    let said: Vec<_> = lines
        .iter()
        .filter(|it| it["type"] == "user")
        .map(|it| it["message"]["content"][0]["text"].clone())
        .collect();
    assert_eq!(said, ["look around", "only the readme"], "one turn");
    assert_eq!(lines.last().expect("a line")["result"], "fine");
    assert_eq!(run.end().2, Some(0));
}

fn write_call() -> Vec<(&'static str, Value)> {
    vec![("write", json!({ "file_path": "new.txt", "contents": "x\n" }))]
}

const ASKS: [&str; 2] = ["--set", "approvals.run=ask"];

#[test]
fn approvals_are_asked_for_and_answered() {
    for (option, is_written) in [("allow_once", true), ("reject_once", false)] {
        let home = home();
        let model = Model::with([Script::Calls("", write_call()), Script::says("done")]);
        let url = format!("http://{}/v1", model.address);
        let mut run = Dialogue::start(home.path(), &url, &ASKS);
        run.says("write it");
        let asked = run.next("clarification");
        assert_eq!(asked["subtype"], "requested");
        let document = &asked["document"];
        assert_eq!(document["metadata"]["kind"], "approval");
        assert_eq!(document["metadata"]["subject"]["metadata"]["filePath"], "new.txt");
        let path = workspace(home.path()).join("new.txt");
        assert!(!path.exists());
        run.sends(&json!({
            "type": "clarification_response",
            "documentId": asked["document_id"],
            "outcome": "answered",
            "answers": [{ "questionId": "approval", "selectedOptionIds": [option] }],
        }));
        let result = run.next("result");
        assert_eq!(result["subtype"], "success");
        assert_eq!(path.exists(), is_written, "{option}");
        assert_eq!(result.get("permission_denials").is_some(), !is_written, "{result}");
        let (_, err, code) = run.end();
        assert_eq!((err.as_str(), code), ("", Some(0)), "{option}");
    }
}

#[test]
fn once_standard_input_has_ended_nobody_can_allow_anything() {
    let home = home();
    let model = Model::with([Script::Calls("", write_call()), Script::says("done")]);
    let url = format!("http://{}/v1", model.address);
    let mut run = Dialogue::start(home.path(), &url, &ASKS);
    run.says("write it");
    run.next("clarification");
    let (out, err, code) = run.end();
    assert!(err.contains("refused: "), "{err}");
    assert!(out.contains("\"result\""), "{out}");
    assert_eq!(code, Some(4));
    assert!(!workspace(home.path()).join("new.txt").exists());
}

#[test]
fn an_answer_to_no_question_is_reported_and_changes_nothing() {
    let home = home();
    let model = mock_model::Model::start();
    let mut run = Dialogue::start(home.path(), &model.url, &[]);
    run.says("hello");
    let answer = model.asked();
    run.sends(&json!({ "type": "clarification_response", "documentId": "doc_009", "outcome": "skipped" }));
    answer.says("hi");
    answer.finish();
    run.next("result");
    let (_, err, code) = run.end();
    assert_eq!(code, Some(0));
    assert!(
        err.is_empty() || err.contains("`doc_009` is not an open question"),
        "{err}"
    );
}

#[test]
fn a_stop_ends_the_turn_and_the_next_message_begins_another() {
    let home = home();
    let model = mock_model::Model::start();
    let mut run = Dialogue::start(home.path(), &model.url, &[]);
    run.says("hello");
    let answer = model.asked();
    run.sends(&json!({ "type": "cancel" }));
    let stopped = run.next("result");
    assert_eq!(
        (&stopped["subtype"], &stopped["is_error"]),
        (&json!("cancelled"), &json!(true))
    );
    drop(answer);
    run.says("again");
    let answer = model.asked();
    answer.says("hi");
    answer.finish();
    assert_eq!(run.next("result")["result"], "hi");
    assert_eq!(run.end().2, Some(0));
    // The code is that of the last turn.
    let model = mock_model::Model::start();
    let mut run = Dialogue::start(home.path(), &model.url, &[]);
    run.says("hello");
    let _answer = model.asked();
    run.sends(&json!({ "type": "cancel" }));
    run.next("result");
    assert_eq!(run.end().2, Some(1));
}

#[test]
fn a_turn_that_fails_ends_with_a_result_that_says_so() {
    let home = home();
    let model = Model::with([
        Script::Refuses(401, json!({ "error": { "message": "no such key" } })),
        Script::says("hi"),
    ]);
    let url = format!("http://{}/v1", model.address);
    let mut run = Dialogue::start(home.path(), &url, &[]);
    run.says("hello");
    let failed = run.next("result");
    assert_eq!(
        (&failed["subtype"], &failed["is_error"]),
        (&json!("error"), &json!(true))
    );
    assert!(failed["errors"].to_string().contains("no such key"), "{failed}");
    run.says("again");
    assert_eq!(run.next("result")["result"], "hi");
    assert_eq!(run.end().2, Some(0));
}

#[test]
fn a_wrong_line_ends_the_run_with_its_number_and_what_is_right() {
    let home = home();
    let model = Model::with([Script::says("hi")]);
    let url = format!("http://{}/v1", model.address);
    let mut run = Dialogue::start(home.path(), &url, &[]);
    run.says("hello");
    run.next("result");
    run.sends(&json!({ "type": "usr" }));
    let (_, err, code) = run.end();
    assert_eq!(code, Some(2));
    assert!(
        err.contains("line 2 of standard input: there is no type `usr`"),
        "{err}"
    );
    for (flags, says) in [
        (
            &["-p", "--input-format", "stream-json"][..],
            "--output-format stream-json",
        ),
        (
            &[
                "-p",
                "--input-format",
                "stream-json",
                "--output-format",
                "stream-json",
                "--output-schema",
                "x.json",
            ],
            "--output-schema is for one answer",
        ),
    ] {
        let ran = ask(home.path(), &model, flags);
        assert_eq!(ran.code, Some(2));
        assert!(ran.err.contains(says), "{}", ran.err);
    }
}

/// An executable program that does this with the approval on its standard input.
fn program(home: &Path, script: &str) -> PathBuf {
    use std::os::unix::fs::PermissionsExt as _;
    let path = home.join("decide");
    std::fs::write(&path, format!("#!/bin/sh\n{script}\n")).expect("written");
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).expect("changed");
    path
}

#[test]
fn a_program_decides_approvals() {
    let cases: [(&str, bool, Option<i32>, &str); 5] = [
        ("cat > asked.json; echo '{\"behavior\":\"allow\"}'", true, Some(0), ""),
        (
            "echo '{\"behavior\":\"deny\",\"message\":\"not here\"}'",
            false,
            Some(0),
            "said no: not here",
        ),
        (
            "echo '{\"behavior\":\"allow\"}'; exit 7",
            false,
            Some(4),
            "exit status: 7",
        ),
        ("echo yes", false, Some(4), "no JSON object"),
        ("sleep 60", false, Some(4), "did not answer within 0.5 s"),
    ];
    for (script, is_written, code, says) in cases {
        let home = home();
        let program = program(home.path(), script);
        let model = Model::with([Script::Calls("", write_call()), Script::says("done")]);
        let program = program.to_str().expect("it is text");
        let mut flags = vec![
            "-p",
            "x",
            "--output-format",
            "json",
            "--permission-prompt-tool",
            program,
        ];
        flags.extend(["--set", "approvals.program_timeout=500ms"]);
        flags.extend(ASKS);
        let ran: Ran = ask(home.path(), &model, &flags);
        let folder = workspace(home.path());
        assert_eq!(folder.join("new.txt").exists(), is_written, "{script}: {}", ran.err);
        assert_eq!(ran.code, code, "{script}: {}", ran.err);
        assert!(
            ran.err.contains(says) && (is_written || ran.err.contains("new.txt")),
            "{script}: {}",
            ran.err
        );
        if is_written {
            assert_eq!(ran.err, "");
            let asked = std::fs::read_to_string(folder.join("asked.json")).expect("it was asked");
            let asked: Value = serde_json::from_str(&asked).expect("JSON");
            assert_eq!(asked["type"], "approval");
            assert_eq!(asked["session_id"], ran.json()["session_id"]);
            assert_eq!(
                asked["document"]["metadata"]["subject"]["metadata"]["filePath"],
                "new.txt"
            );
        } else {
            let denials = &ran.json()["permission_denials"];
            assert_eq!(denials.as_array().map(Vec::len), Some(1), "{script}: {}", ran.out);
            // The model hears the reason.
            let told = model.requests().pop().expect("a request");
            let told = told["messages"]
                .as_array()
                .and_then(|it| it.last())
                .expect("a result")
                .to_string();
            let reason = says.trim_start_matches("said no: ");
            assert!(told.contains(reason), "{script}: {told}");
        }
    }
}

#[test]
fn what_a_program_decides_is_not_part_of_the_text() {
    let decisions = [
        ("echo '{\"behavior\":\"allow\"}'", Some(0)),
        ("echo '{\"behavior\":\"deny\",\"message\":\"not here\"}'", Some(0)),
        ("exit 7", Some(4)),
    ];
    for (script, code) in decisions {
        let home = home();
        let program = program(home.path(), script);
        let model = Model::with([Script::Calls("I write.", write_call()), Script::says("done")]);
        let program = program.to_str().expect("it is text");
        let mut flags = vec!["-p", "x", "--permission-prompt-tool", program];
        flags.extend(ASKS);
        let ran: Ran = ask(home.path(), &model, &flags);
        assert_eq!(
            (ran.out.as_str(), ran.code),
            ("I write.\n\ndone\n", code),
            "{script}: {}",
            ran.err
        );
    }
}
