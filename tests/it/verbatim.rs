//! `-p` prints the model's own bytes: fences, info strings and blank lines, however the stream is cut.

use std::{future, sync::Arc};

use futures::stream;
use pretty_assertions::assert_eq;
use proptest::prelude::*;
use serde_json::{Value, json};
use sheaf::{
    agent::runner::{self, Setup},
    config::{Environment, Settings},
    journal::Log,
    link::{About, Asker, SandboxStatus, local::Local},
    models::{EndReason, Failure, Model as ListedModel, ModelRequest, Piece, PieceStream, Promise, Provider, Roles},
    print::{self, Format, Outputs},
    protocol::{Message, Mode, Submit},
    tools::ToolSet,
};

use crate::{
    model::{Model, Script},
    print::{home, with_model},
};

/// A model that says the same pieces to every request.
struct Pieces(Vec<String>);

impl Provider for Pieces {
    fn peer(&self) -> &'static str {
        "pieces"
    }

    fn stream(&self, _: ModelRequest) -> PieceStream {
        let said = self.0.clone().into_iter().map(Piece::Text);
        Box::pin(stream::iter(said.chain([Piece::End(EndReason::Stop)])))
    }

    fn warm(&self) -> Promise<()> {
        Box::pin(future::ready(()))
    }

    fn models(&self) -> Promise<Result<Vec<ListedModel>, Failure>> {
        Box::pin(future::ready(Ok(Vec::new())))
    }
}

/// What a run in this format prints for an answer of these pieces.
fn printed(pieces: Vec<String>, format: Format, is_partial: bool) -> String {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime");
    runtime.block_on(async {
        let log = Log::new();
        let (link, inbox) = Local::new(Arc::clone(&log), About::default());
        let settings = Settings::default();
        let setup = Setup {
            servers: None,
            provider: Arc::new(Pieces(pieces)),
            model: "m".to_owned(),
            conversation: "conv_1".into(),
            asker: Asker::Nobody,
            workspace: None,
            roles: Arc::new(Roles::new(&settings, &Environment::default())),
            index: Arc::default(),
            embeddings: Arc::default(),
            settings: Arc::new(settings),
            tools: ToolSet::default(),
            paths: None,
            hold: SandboxStatus::default(),
        };
        tokio::spawn(runner::run(setup, log, inbox));
        let submit = Submit {
            message: Message::user("x"),
            mode: Mode::Agent,
            model: None,
        };
        let (mut out, mut err) = (Vec::new(), Vec::new());
        let outputs = Outputs {
            out: &mut out,
            err: &mut err,
        };
        let options = print::PrintOptions {
            is_partial,
            ..format.into()
        };
        let (_stop, mut stops) = tokio::sync::mpsc::channel(1);
        let ending = print::run(&link, Some(submit), options, outputs, &mut stops, || 0).await;
        assert_eq!(ending, print::RunOutcome::Answered, "{}", String::from_utf8_lossy(&err));
        String::from_utf8(out).expect("it is text")
    })
}

/// Checks all that a run prints for `text`, in these pieces.
fn check(text: &str, pieces: &[String]) {
    // A carriage return moves a terminal's cursor.
    let mut lines = text.replace('\r', "");
    if !lines.ends_with('\n') {
        lines.push('\n');
    }
    assert_eq!(
        printed(pieces.to_vec(), Format::Text, false),
        lines,
        "text of {pieces:?}"
    );

    let object: Value = serde_json::from_str(&printed(pieces.to_vec(), Format::Json, false)).expect("one object");
    assert_eq!(object["result"], text, "result of {pieces:?}");

    let stream = printed(pieces.to_vec(), Format::StreamJson, true);
    let stream: Vec<Value> = stream
        .lines()
        .map(|it| serde_json::from_str(it).expect("JSON"))
        .collect();
    let said = |it: &Value| {
        it["message"]["content"][0]["text"]
            .as_str()
            .unwrap_or_default()
            .to_owned()
    };
    let answers = stream.iter().filter(|it| it["type"] == "assistant");
    let (parts, segments): (Vec<_>, Vec<_>) = answers.partition(|it| it.get("timestamp_ms").is_some());
    assert_eq!(
        parts.into_iter().map(said).collect::<String>(),
        text,
        "parts of {pieces:?}"
    );
    assert_eq!(
        segments.into_iter().map(said).collect::<String>(),
        text,
        "segments of {pieces:?}"
    );
}

/// `text`, cut at these places.
fn cut(text: &str, places: &[prop::sample::Index]) -> Vec<String> {
    let mut at: Vec<usize> = places
        .iter()
        .map(|it| text.floor_char_boundary(it.index(text.len() + 1)))
        .collect();
    at.sort_unstable();
    at.push(text.len());
    let mut pieces = Vec::new();
    let mut from = 0;
    for to in at {
        pieces.push(text[from..to].to_owned());
        from = to;
    }
    pieces.retain(|it| !it.is_empty());
    pieces
}

const ANSWER: &str = "\n\nLook:  \n\n\n~~~~rust,no_run {.x}   \nlet x = 1;\n\n\n~~~~  \n\n   ```\n   indented\n   ```\n\
                      ```12:14:src/a.rs\ncited\n```\nDone.\u{20}\u{20}\n\n\n";

#[test]
fn an_answer_is_printed_as_it_was_written() {
    for (text, why) in [
        (ANSWER, "all that the segmenter changes"),
        ("plain", "no newline at the end"),
        ("```\nnever closed", "an open fence"),
        ("```rust\n```\n", "an empty block"),
        ("a\r\nb\r\n", "CRLF"),
        ("- ```rust\n  x\n  ```\n", "a fence in a list"),
        ("```` md\n```\nx\n```\n````\n\n", "a longer fence"),
    ] {
        check(text, &[text.to_owned()]);
        let letters: Vec<String> = text.chars().map(String::from).collect();
        assert!(letters.len() > 3, "{why}");
        check(text, &letters);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]
    #[test]
    fn bytes_are_kept_however_the_stream_is_cut(
        lines in prop::collection::vec(
            prop::sample::select(vec![
                "```", "```rust", "~~~~ x y", "   ```", "", "  ", "text  ", "\tx", "1:2:a.rs", "```1:2:a.rs", "- ```", "`` ` ``", "ä👩‍👩‍👧",
            ]),
            1..12,
        ),
        is_closed in any::<bool>(),
        places in prop::collection::vec(any::<prop::sample::Index>(), 0..12),
    ) {
        let mut text = format!("x{}", lines.join("\n"));
        if is_closed {
            text.push('\n');
        }
        check(&text, &cut(&text, &places));
    }
}

#[test]
fn a_call_between_two_texts_leaves_a_blank_line_and_changes_no_byte_of_them() {
    let home = home();
    let script = || {
        Model::with([
            Script::Calls(
                "```sh\nls\n```\n",
                vec![("list_dir", json!({ "target_directory": "." }))],
            ),
            Script::Says(vec!["\nTwo".into(), " files.\n\n".into()], std::time::Duration::ZERO),
        ])
    };
    let model = script();
    let mut command = with_model(home.path(), &model);
    let output = command.args(["-p", "x"]).output().expect("it starts");
    assert_eq!(
        String::from_utf8_lossy(&output.stdout),
        "```sh\nls\n```\n\nTwo files.\n\n"
    );
    let model = script();
    let mut command = with_model(home.path(), &model);
    let output = command
        .args(["-p", "x", "--output-format", "json"])
        .output()
        .expect("it starts");
    let object: Value = serde_json::from_slice(&output.stdout).expect("one object");
    assert_eq!(object["result"], "```sh\nls\n```\n\nTwo files.\n\n");
}

#[test]
fn a_commands_errors_are_apart_from_its_output_where_they_are_data() {
    let home = home();
    let boxed = crate::command_line::run(home.path(), &["sandbox", "run", "--", "true"]);
    if boxed.code != Some(0) {
        return crate::skipped("there is no sandbox here, and a command would be asked about");
    }
    let line = "echo one; echo two >&2; exit 3";
    let call = json!({ "command": line, "is_background": false });
    for (format, is_apart) in [("stream-json", true), ("documents", true), ("text", false)] {
        let model = Model::with([
            Script::Calls("", vec![("run_terminal_cmd", call.clone())]),
            Script::says("done"),
        ]);
        let mut command = with_model(home.path(), &model);
        command.args(["-p", "x", "--output-format", format]);
        let output = command.output().expect("it starts");
        let out = String::from_utf8(output.stdout).expect("it is text");
        let err = String::from_utf8_lossy(&output.stderr);
        let result = match format {
            "stream-json" => {
                let lines = out.lines().map(|it| serde_json::from_str::<Value>(it).expect("JSON"));
                let mut calls = lines.filter(|it| it["type"] == "tool_call" && it["subtype"] == "completed");
                let call = calls.next().unwrap_or_else(|| panic!("no call: {out} {err}"));
                call["tool_call"]["shellToolCall"]["result"]["failure"].clone()
            }
            "documents" => {
                let answer: Value = serde_json::from_str(&out).expect("one object");
                answer["documents"][0]["metadata"].clone()
            }
            _ => {
                assert_eq!(out, "done\n");
                continue;
            }
        };
        assert!(is_apart);
        assert_eq!(
            (&result["stdout"], &result["stderr"], &result["exitCode"]),
            (&json!("one\n"), &json!("two\n"), &json!(3)),
            "{format}: {result} {err}"
        );
    }
}
