//! `sheaf conform`: the real binary judges recordings, and our own gateway.

use std::{
    io::Write as _,
    path::{Path, PathBuf},
    process::{Command, Output, Stdio},
};

use pretty_assertions::assert_eq;
use serde_json::{Value, json};

use crate::{
    model::{Model, Script},
    print::{home, sheaf, with_model},
    serve::{Gateway, TOKEN},
};

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/fixtures/documents")
        .join(name)
}

fn conform(home: &Path, arguments: &[&str]) -> Output {
    let mut command = sheaf(home);
    command.arg("conform").args(arguments).env("SHEAF_TOKEN", TOKEN);
    command.output().expect("it starts")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).expect("it is text")
}

/// What a gateway is found to do wrong.
fn findings(home: &Path, gateway: &Gateway) -> (Vec<String>, Option<i32>) {
    findings_in(home, gateway, "ask")
}

/// The same in a mode.
fn findings_in(home: &Path, gateway: &Gateway, mode: &str) -> (Vec<String>, Option<i32>) {
    let url = format!("http://{}", gateway.address);
    let output = conform(home, &[&url, "--output-format", "json", "--mode", mode]);
    let report: Value =
        serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {}", text(&output.stderr)));
    let mut found = Vec::new();
    for answer in report["answers"].as_array().expect("answers") {
        for finding in answer["findings"].as_array().expect("findings") {
            found.push(format!(
                "{}: {} {} ({})",
                answer["what"], finding["rule"], finding["said"], finding["excerpt"]
            ));
        }
    }
    assert!(report["answers"].as_array().expect("answers").len() >= 9, "{report}");
    (found, output.status.code())
}

/// What the recording was like does not matter: in both dialects, what we send of it has no error and no warning. That it
/// was not made in plan mode no server can change, nor what its source did not measure and which events it made up; and the
/// concept has no word for an answer that waits for one.
#[test]
fn our_own_gateway_conforms_whatever_it_serves() {
    let home = home();
    let tour = Path::new(env!("CARGO_MANIFEST_DIR")).join("assets/tour/tour.jsonl");
    let fixtures = ["named.sse", "data.sse", "flat.sse", "envelope.sse", "concept.json"];
    for file in fixtures.map(fixture).into_iter().chain([tour]) {
        let gateway = Gateway::replay(home.path(), file.to_str().expect("a name"));
        let (mut found, code) = findings(home.path(), &gateway);
        found.retain(|it| {
            !["plan-path", "untimed", "unknown-event", "awaits"]
                .iter()
                .any(|rule| it.contains(rule))
        });
        assert_eq!((found, code), (Vec::new(), Some(0)), "{}", file.display());
    }
}

#[test]
fn our_own_gateway_conforms_with_an_agent_behind_it() {
    let home = home();
    let model = Model::with([
        Script::Calls("I look.", vec![("list_dir", json!({ "target_directory": "." }))]),
        Script::says("Here:\n\n```rust\nfn a() {}\n```\n\nand 1:2.\n\n```1:2:src/a.rs\nfn a() {}\n```\n"),
    ]);
    let gateway = Gateway::start(with_model(home.path(), &model), &[]);
    assert_eq!(findings(home.path(), &gateway), (Vec::new(), Some(0)));
}

/// Every answer has an edit and a command that were refused, a command that ran and a call of a tool that is not there.
#[test]
fn our_own_gateway_conforms_when_calls_are_refused() {
    for mode in ["ask", "agent"] {
        let home = home();
        let calls = || {
            let run = |line: &str| ("run_terminal_cmd", json!({ "command": line, "is_background": false }));
            let write = ("write", json!({ "file_path": "new.txt", "contents": "x\n" }));
            Script::Calls(
                "I try.",
                vec![write, run("rm -r src"), run("true"), ("no_such_tool", json!({}))],
            )
        };
        let model = Model::with((0..60).flat_map(|_| [calls(), Script::says("It was refused.")]));
        let denied = "approvals.deny=[\"Shell(rm)\", \"Write(**)\"]";
        let gateway = Gateway::start(with_model(home.path(), &model), &["--tools", "all", "--set", denied]);
        let (found, code) = findings_in(home.path(), &gateway, mode);
        assert_eq!((found, code), (Vec::new(), Some(0)), "{mode}");
        let was_told = model
            .requests()
            .iter()
            .any(|it| it["messages"].to_string().contains("no_such_tool"));
        assert!(was_told, "{mode}: the calls were made");
    }
}

#[test]
fn a_recording_is_judged_by_its_bytes() {
    let home = home();
    let good = fixture("named.sse");
    let good = good.to_str().expect("a name");
    let output = conform(home.path(), &[good]);
    let out = text(&output.stdout);
    assert_eq!(output.status.code(), Some(0), "{out}");
    assert!(out.contains("stream in dialect A") && out.contains("conforms"), "{out}");

    // The decoder would mend all of this.
    let bad = home.path().join("bad.sse");
    let stream = std::fs::read_to_string(good).expect("a fixture");
    let stream = stream
        .replace("\"sequence\":2", "\"sequence\":7")
        .replace("event: done", "event: d\u{1b}[2Jone");
    std::fs::write(&bad, stream).expect("written");
    let bad = bad.to_str().expect("a name");
    let output = conform(home.path(), &[bad]);
    let out = text(&output.stdout);
    assert_eq!(output.status.code(), Some(1), "{out}");
    for part in [
        "error   sequence  §5.1  byte ",
        "doc_002",
        "> 7",
        "no-done",
        "does not conform: 2 errors",
    ] {
        assert!(out.contains(part), "{part}: {out}");
    }
    assert!(!out.contains('\u{1b}'), "{out:?}");

    let output = conform(home.path(), &[bad, "--output-format", "json"]);
    let report: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(
        (report["conforms"].as_bool(), report["errors"].as_u64()),
        (Some(false), Some(2))
    );
    let finding = &report["answers"][0]["findings"][0];
    assert_eq!(
        (
            finding["rule"].as_str(),
            finding["severity"].as_str(),
            finding["excerpt"].as_str()
        ),
        (Some("sequence"), Some("error"), Some("7"))
    );
    let bytes = std::fs::read(bad).expect("it is there");
    assert_eq!(
        bytes[usize::try_from(finding["offset"].as_u64().expect("an offset")).expect("small")],
        b'7'
    );
}

#[test]
fn standard_input_and_the_form_of_curl_are_read() {
    let home = home();
    let mut child = sheaf(home.path())
        .args(["conform", "-"])
        .stdin(Stdio::piped())
        .spawn()
        .expect("it starts");
    let stream = std::fs::read_to_string(fixture("named.sse")).expect("a fixture");
    let recorded = format!("HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\n{stream}");
    let mut input = child.stdin.take().expect("it is piped");
    input.write_all(recorded.as_bytes()).expect("it reads");
    drop(input);
    let output = child.wait_with_output().expect("it ends");
    assert_eq!(output.status.code(), Some(1));
    assert!(
        text(&output.stdout).contains("content-type  §2"),
        "{}",
        text(&output.stdout)
    );
}

#[test]
fn warnings_are_errors_for_who_is_strict() {
    let home = home();
    let file = home.path().join("warned.sse");
    let stream = std::fs::read_to_string(fixture("named.sse")).expect("a fixture");
    std::fs::write(&file, stream.replace("\"id\":\"chat_flags\"", "\"id\":\"flags\"")).expect("written");
    let file = file.to_str().expect("a name");
    for (arguments, code) in [(vec![file], 0), (vec![file, "--strict"], 1)] {
        assert_eq!(
            conform(home.path(), &arguments).status.code(),
            Some(code),
            "{arguments:?}"
        );
    }
}

#[test]
fn what_cannot_be_judged_is_said() {
    let home = home();
    let tour = Path::new(env!("CARGO_MANIFEST_DIR")).join("assets/tour/tour.jsonl");
    for (arguments, code, says) in [
        (vec![], 2, "name a gateway or a recording"),
        (vec!["/nowhere/answer.sse"], 1, "answer.sse"),
        (vec![tour.to_str().expect("a name")], 1, "sheaf serve --replay"),
        (vec!["http://127.0.0.1:1"], 1, ""),
    ] {
        let output = conform(home.path(), &arguments);
        assert_eq!(output.status.code(), Some(code), "{arguments:?}");
        assert!(
            text(&output.stderr).contains(says),
            "{arguments:?}: {}",
            text(&output.stderr)
        );
    }
    let output = conform(home.path(), &["--rules"]);
    let rules = text(&output.stdout);
    assert_eq!(rules.lines().count(), sheaf::conform::RULES.len());
    assert!(rules.contains("open-at-done"), "{rules}");
}

/// Not a test of ours alone: whatever the machine's `curl` records can be judged.
#[test]
fn a_stream_that_curl_recorded_is_judged() {
    let home = home();
    let gateway = Gateway::replay(home.path(), fixture("named.sse").to_str().expect("a name"));
    let file = home.path().join("recorded.txt");
    let status = Command::new("curl")
        .args(["-sS", "-i", "-N", "--max-time", "60", "-o"])
        .arg(&file)
        .args(["-H", "Content-Type: application/json", "-H"])
        .arg(format!("Authorization: Bearer {TOKEN}"))
        .args([
            "--data-raw",
            r#"{"model":"m","messages":[{"role":"user","content":"x"}],"stream":true}"#,
        ])
        .arg(format!("http://{}/api/v1/chat/completions", gateway.address))
        .status();
    let Ok(status) = status else {
        crate::skipped("there is no curl");
        return;
    };
    assert!(status.success());
    let output = conform(home.path(), &["--strict", file.to_str().expect("a name")]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stdout));
}
