//! Recorded answers of real servers, cut at every byte.

use std::path::PathBuf;

use pretty_assertions::assert_eq;

use super::*;

fn fixture(name: &str) -> Vec<u8> {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("tests/fixtures/openai")
        .join(name);
    std::fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

const MOCKED: &str = "Hello! This is a mocked answer from the proxy, with ünïcödé 🦀 and a newline\nsecond line.";
const REVERSE: &str = "```rust\nfn reverse_string(s: &str) -> String {\n    s.chars().rev().collect()\n}\n```";

/// Returns the readable text of each recorded stream.
fn recorded() -> Vec<(&'static str, String)> {
    let qwen = "start qwen2.5-coder-1.5b";
    let call = |id: &str, name: &str, arguments: &str| {
        let whole: Value = serde_json::from_str(arguments).expect("whole arguments");
        format!("call 0 {id:?} {name:?} | arguments 0 {arguments:?}#called 0 {id:?} {name:?} {whole}")
    };
    // A call, then the count of tokens, then the call's end: that is the order in which they come.
    let called = |start: &str, call: String, usage: &str| {
        let (begun, done) = call.split_once('#').expect("two parts");
        format!("{start} | {begun} | usage {usage} | {done} | end ToolUse")
    };
    let count = "1, 2, 3, 4, 5, 6";
    vec![
        ("aimock-chat-reasoning", r#"start gpt-4o | thinking "First I consider the question carefully." | text "The answer is 42 🦀." | usage 2(0)+5(0) | opaque {"reasoning_content":"First I consider the question carefully."} | end Stop"#.into()),
        ("aimock-chat-text", r#"start gpt-4o | text "Hello from aimock, a deterministic server." | usage 2(0)+11(0) | end Stop"#.into()),
        ("aimock-chat-tools", concat!(
            r#"start gpt-4o | text "Let me look." | call 0 "call_JWKF7KsJghleXklk" "grep" | "#,
            r#"arguments 0 "{\"pattern\":\"TODO\",\"glob\":\"*.py\"}" | call 1 "call_e8oyLEHzDK2W8-Of" "read_file" | "#,
            r#"arguments 1 "{\"path\":\"src/main.rs\"}" | usage 3(0)+20(0) | "#,
            r#"called 0 "call_JWKF7KsJghleXklk" "grep" {"pattern":"TODO","glob":"*.py"} | "#,
            r#"called 1 "call_e8oyLEHzDK2W8-Of" "read_file" {"path":"src/main.rs"} | end ToolUse"#
        ).into()),
        ("litellm-mock-text-usage", format!("start mock-gpt | text {MOCKED:?} | usage 8(0)+26(0) | end Stop")),
        ("litellm-mock-text", format!("start mock-gpt | text {MOCKED:?} | end Stop")),
        ("litellm-mock-toolcalls", format!("start mock-gpt | text {MOCKED:?} | usage 8(0)+26(0) | end Stop")),
        ("litellm-qwen-text-nousage", r#"start qwen | text "Hello!" | end Stop"#.into()),
        ("litellm-qwen-text-usage", r#"start qwen | text "Hello!" | usage 35(34)+3(0) | end Stop"#.into()),
        ("litellm-qwen-tool-required", called(
            "start qwen",
            call("zFcWFydnNKRMSxCUdaA7j91vvwVGUpNv", "grep", "{\n    \"pattern\": \"TODO\",\n    \"glob\": \"*.py\"\n  }"),
            "233(18)+35(0)",
        )),
        ("llamacpp-keepalive-ping", r#"start qwen-0.5b | text "The quick brown fox jumps over the lazy" | usage 3534(0)+8(0) | end Length"#.into()),
        ("llamacpp-officialtpl-length", format!("{qwen} | text {count:?} | usage 39(24)+16(0) | end Length")),
        ("llamacpp-officialtpl-stopseq", format!("{qwen} | text \"{count}, \" | usage 41(30)+19(0) | end Stop")),
        ("llamacpp-officialtpl-text-nousage", format!("{qwen} | text \"Hello!\" | end Stop")),
        ("llamacpp-officialtpl-text-usage", format!("{qwen} | text {REVERSE:?} | usage 42(0)+25(0) | end Stop")),
        ("llamacpp-officialtpl-tool-parallel", {
            let call = |path: &str| format!("{{\n  \"name\": \"read_file\",\n  \"arguments\": {{\n    \"path\": \"{path}\",\n    \"start_line\": 1,\n    \"end_line\": 100\n  }}\n}}\n");
            let text = format!("```json\n{}{}```", call("Cargo.toml"), call("src/lib.rs"));
            format!("{qwen} | text {text:?} | usage 336(314)+93(0) | end Stop")
        }),
        ("llamacpp-officialtpl-tool-required", {
            let text = "```json\n{\n  \"name\": \"grep\",\n  \"arguments\": {\n    \"pattern\": \"TODO\",\n    \"glob\": \"*.py\"\n  }\n}\n".to_owned()
                + &"```\n".repeat(39);
            format!("{qwen} | text {text:?} | usage 327(314)+150(0) | end Length")
        }),
        ("llamacpp-officialtpl-unicode", format!("{qwen} | text {:?} | usage 53(24)+21(0) | end Stop", "日本語 🦀🚀 naïve — ünïcödé 👩\u{200d}💻")),
        ("llamacpp-qwen1.5b-err-role", format!("{qwen} | text \"I'm sorry, but\" | end Length")),
        ("llamacpp-qwen1.5b-json-schema", format!("{qwen} | text {:?} | usage 39(24)+15(0) | end Stop", r#"{ "name": "Ada", "age": 36 }"#)),
        ("llamacpp-qwen1.5b-legacy-completions", format!(
            "{qwen} | text {:?} | usage 6(0)+20(0) | end Length",
            "\n    return a + b\n\ndef subtract(a, b):\n    return a - b\n\ndef"
        )),
        ("llamacpp-qwen1.5b-length", format!("{qwen} | text {count:?} | usage 39(24)+16(0) | end Length")),
        ("llamacpp-qwen1.5b-logprobs", format!("{qwen} | text \"Yes.\" | usage 32(24)+3(0) | end Stop")),
        ("llamacpp-qwen1.5b-stopseq", format!("{qwen} | text \"{count}, \" | usage 41(30)+19(0) | end Stop")),
        ("llamacpp-qwen1.5b-text-nousage", format!("{qwen} | text \"Hello!\" | end Stop")),
        ("llamacpp-qwen1.5b-text-usage", format!("{qwen} | text {REVERSE:?} | usage 42(5)+25(0) | end Stop")),
        ("llamacpp-qwen1.5b-tool-auto", called(
            qwen,
            call("lHgmVlm0Bq4EbVIQgo7tzhVayOuUrQXF", "read_file", r#"{"path": "src/main.rs", "start_line": 1, "end_line": 10}"#),
            "324(5)+38(0)",
        )),
        ("llamacpp-qwen1.5b-tool-named", called(
            qwen,
            call("tU22aYiRzdKTzvKrxT83ksr4hgR7fcLw", "read_file", r#"{"path": "main.py", "start_line": 1, "end_line": 10}"#),
            "322(312)+37(0)",
        )),
        ("llamacpp-qwen1.5b-tool-required", called(
            qwen,
            call("Qj9sISTP0W62aIqyyXO0MxOJookdj6rw", "grep", r#"{"pattern": "TODO", "glob": "*.py"}"#),
            "325(312)+26(0)",
        )),
        ("llamacpp-qwen1.5b-tool-result-turn", called(
            qwen,
            call("8SpzWsuCErl6fBLVecHlluIomdO2TYjk", "write_file", r#"{"path": "src/main.rs", "content": "fn main() {\n    println!(\"hi\");\n}"}"#),
            "374(312)+43(0)",
        )),
        ("llamacpp-qwen1.5b-tool-write-long", {
            let code = "def fizz_buzz(n):\\n    for i in range(1, n+1):\\n        if i % 3 == 0 and i % 5 == 0:\\n            print('FizzBuzz')\\n        elif i % 3 == 0:\\n            print('Fizz')\\n        elif i % 5 == 0:\\n            print('Buzz')\\n        else:\\n            print(i)\\n\\nif __name__ == '__main__':\\n    fizz_buzz(30)";
            let arguments = format!("{{\"path\": \"fizz.py\", \"content\": \"{code}\"}}");
            called(qwen, call("Wtga5q17BO9FZC1J7fPd2DPCwOXPKS6T", "write_file", &arguments), "346(312)+140(0)")
        }),
    ]
}

#[test]
fn recorded_streams_are_read_wherever_they_are_cut() {
    for (name, want) in recorded() {
        let body = fixture(&format!("{name}.sse"));
        assert_eq!(show(&decode([body.as_slice()])), want, "{name}");
        assert_eq!(show(&decode(body.chunks(1))), want, "{name}, byte by byte");
        // Some billion bytes: a minute with optimisation, half an hour without. See CONTRIBUTING.md.
        if std::env::var_os("SHEAF_TEST_EVERY_SPLIT").is_some() {
            for at in 0..=body.len() {
                let (head, tail) = body.split_at(at);
                assert_eq!(show(&decode([head, tail])), want, "{name}, cut at {at}");
            }
            continue;
        }
        // Cut between two events, the whole answer is decoded anew each time.
        let text = String::from_utf8(body).expect("recorded as UTF-8");
        let events: Vec<_> = text.split_inclusive("\n\n").map(str::as_bytes).collect();
        let mut at = 0;
        for event in &events {
            at += event.len();
            let (head, tail) = text.as_bytes().split_at(at);
            assert_eq!(show(&decode([head, tail])), want, "{name}, cut at {at}");
        }
        // Cut inside an event, the frames are the same: nothing but they reaches the decoder. The events beside it
        // come in the same pieces; those further away have no influence, as the cuts between them show.
        for at in 0..events.len() {
            let (before, behind) = (at.checked_sub(1).map(|it| events[it]), events.get(at + 1));
            let before = before.unwrap_or_default();
            let near = [before, events[at], behind.copied().unwrap_or_default()].concat();
            let whole = frames([near.as_slice()]);
            for cut in 0..=events[at].len() {
                let (head, tail) = near.split_at(before.len() + cut);
                assert_eq!(frames([head, tail]), whole, "{name}, event {at} cut at {cut}");
            }
        }
    }
}

fn frames<'a>(chunks: impl IntoIterator<Item = &'a [u8]>) -> Vec<Frame> {
    let mut frames = Frames::new();
    let mut found: Vec<_> = chunks.into_iter().flat_map(|it| frames.push(it)).collect();
    found.extend(frames.finish());
    found.into_iter().map(|it| it.expect("no line is too long")).collect()
}

#[test]
fn recorded_bodies_are_read() {
    let cases = [
        (
            "litellm-mock-nostream-toolcalls",
            format!("start mock-gpt | usage 10(0)+20(0) | text {MOCKED:?} | end Stop"),
        ),
        (
            "llamacpp-qwen1.5b-nostream",
            r#"start qwen2.5-coder-1.5b | usage 32(25)+10(0) | text "Hello! How can I assist you today?" | end Stop"#
                .to_owned(),
        ),
    ];
    for (name, want) in cases {
        let body = String::from_utf8(fixture(&format!("{name}.sse"))).expect("UTF-8");
        assert_eq!(show(&Decoder::new(true).whole(&body)), want, "{name}");
    }
}

#[test]
fn recorded_errors_name_what_to_do() {
    let cases = [
        ("aimock-chat-err429", 429, FailureKind::Busy),
        ("aimock-chat-nomatch", 404, FailureKind::NotFound),
        ("litellm-err-badkey", 400, FailureKind::Key),
        ("litellm-err-context", 400, FailureKind::TooLong),
        ("litellm-err-dead-upstream", 500, FailureKind::Unreachable),
        ("litellm-err-unknown-model", 400, FailureKind::NotFound),
        ("llamacpp-err-503-loading", 503, FailureKind::Overloaded),
        ("llamacpp-qwen1.5b-err-404", 404, FailureKind::NotFound),
        ("llamacpp-qwen1.5b-err-badjson", 400, FailureKind::Request),
        ("llamacpp-qwen1.5b-err-context", 400, FailureKind::TooLong),
    ];
    for (name, status, want) in cases {
        let body: Value = serde_json::from_slice(&fixture(&format!("{name}.sse"))).expect("JSON");
        let error = body.get("error").expect("an error");
        let failure = Failure::from_server(Some(status), error);
        assert_eq!(failure.kind, want, "{name}: {failure:?}");
        let said = error.get("message").and_then(Value::as_str).expect("a message");
        assert_eq!(failure.said.as_deref(), Some(said), "{name}");
    }
}

#[test]
fn every_recording_has_its_test() {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/openai");
    let count = std::fs::read_dir(folder)
        .expect("the folder is there")
        .filter(|it| {
            it.as_ref()
                .is_ok_and(|it| it.path().extension().is_some_and(|it| it == "sse"))
        })
        .count();
    assert_eq!(count, recorded().len() + 2 + 10);
}
