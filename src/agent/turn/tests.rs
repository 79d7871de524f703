//! What an answer does, as tables of events.

use std::fmt::Write;

use pretty_assertions::assert_eq;
use proptest::prelude::*;
use serde_json::{Map, Value, json};

use super::{batch::object, *};
use crate::{
    model::{EndReason, Failure, FailureKind, ModelMessage},
    protocol::{Answer, Done, FinishReason, Operation, Outcome as Dealt, Progress, Status, Usage},
    sandbox::{Change, Hunk, Located, Place},
    tool::{self, Class, Work, ask, create_plan, switch_mode, todo_write},
};

#[expect(clippy::unnecessary_wraps, reason = "what a tool's table wants")]
fn nothing(_: &tool::Input, _: &tool::Context) -> Result<Vec<Access>, Fault> {
    Ok(Vec::new())
}

fn never(_: tool::Input, _: tool::Context) -> tool::Promise<Result<Outcome, Fault>> {
    Box::pin(std::future::pending())
}

fn never_proposed(_: tool::Input, _: tool::Context) -> tool::Promise<Result<Proposal, Fault>> {
    Box::pin(std::future::pending())
}

const fn a_tool(name: &'static str, class: Class, modes: &'static [Mode], work: Work) -> Tool {
    Tool {
        name,
        aliases: &[],
        about: "",
        class,
        modes,
        schema: || json!({ "type": "object", "properties": { "file_path": { "type": "string" } }, "required": [] }),
        synonyms: &[],
        work,
    }
}

const CALL: Work = Work::Call {
    touches: nothing,
    run: never,
};
static LOOK: Tool = a_tool("look", Class::Reads, &Mode::ALL, CALL);
static CHANGE: Tool = a_tool(
    "change",
    Class::Writes,
    &[Mode::Agent, Mode::Debug],
    Work::Change(never_proposed),
);
static RUN: Tool = Tool {
    schema: || json!({ "type": "object", "properties": { "command": { "type": "string" } }, "required": ["command"] }),
    ..a_tool(
        "run",
        Class::Runs,
        &[Mode::Agent, Mode::Debug],
        Work::Command {
            touches: nothing,
            run: never,
        },
    )
};

fn member<'a>(metadata: &'a Map<String, Value>, name: &str) -> &'a str {
    metadata.get(name).and_then(Value::as_str).unwrap_or_default()
}

/// What a question asks, if it is one.
fn gist_of(metadata: &Map<String, Value>) -> String {
    let questions = metadata
        .get("questions")
        .and_then(Value::as_array)
        .cloned()
        .unwrap_or_default();
    let texts: Vec<String> = questions
        .iter()
        .map(|it| {
            let options = it["options"].as_array().cloned().unwrap_or_default();
            let ids: Vec<&str> = options.iter().filter_map(|it| it["id"].as_str()).collect();
            format!("{} {}", it["text"].as_str().unwrap_or_default(), ids.join("/"))
        })
        .collect();
    texts.join(", ")
}

/// The request that the model gets last.
fn asked(effects: &[Effect]) -> &ModelRequest {
    let mut requests = effects.iter().filter_map(|it| match it {
        Effect::CallModel { request, .. } => Some(request),
        _ => None,
    });
    requests.next_back().expect("the model is asked")
}

fn submission(message: &str) -> Submission {
    Submission {
        message: Message::user(message),
        parts: vec![Part::Text(message.to_owned())],
        opening: Vec::new(),
        system: "be good".to_owned(),
        mode: Mode::Agent,
        model: "m".to_owned(),
        maker: "maker m".to_owned(),
        fallbacks: 0,
        effort: None,
        tools: vec![
            &LOOK,
            &CHANGE,
            &RUN,
            &ask::TOOL,
            &create_plan::TOOL,
            &switch_mode::TOOL,
            &todo_write::TOOL,
        ],
        settings: Arc::default(),
        policy: Policy::default(),
        limits: Limits::default(),
        conversation: "conv_1".into(),
        response: "chat_1".into(),
        is_attended: true,
    }
}

fn submit(message: &str) -> Input {
    Input::Submit(Box::new(submission(message)))
}

fn says(text: &str) -> Input {
    Input::Piece(Piece::Text(text.to_owned()))
}

fn thinks(text: &str) -> Input {
    Input::Piece(Piece::Thinking(text.to_owned()))
}

fn ends(reason: EndReason) -> Input {
    Input::Piece(Piece::End(reason))
}

fn fails(kind: FailureKind) -> Input {
    Input::Piece(Piece::Error(Failure::new(kind, "it broke").saying("boom")))
}

fn counts(prompt: u64, completion: u64) -> Input {
    Input::Piece(Piece::Usage(Tokens {
        prompt,
        completion,
        ..Tokens::default()
    }))
}

/// Effects in words, one line for each input.
fn show(effects: &[Effect]) -> String {
    let mut line = String::new();
    for effect in effects {
        if !line.is_empty() {
            line.push_str(" | ");
        }
        match effect {
            Effect::CallModel { request, stand_in: 0 } => {
                write!(line, "call {} with {}", request.model, request.messages.len())
            }
            Effect::CallModel { request, stand_in } => {
                write!(line, "call stand-in {stand_in} with {}", request.messages.len())
            }
            Effect::Prepare { job, tool, .. } => write!(line, "prepare {} {}", job.0, tool.name),
            Effect::Run { job, tool, .. } => write!(line, "run {} {}", job.0, tool.name),
            Effect::Make { job, .. } => write!(line, "make {}", job.0),
            Effect::StopJobs => write!(line, "stop jobs"),
            Effect::Store(rules) => write!(line, "store {rules:?}"),
            Effect::Expire(document) => write!(line, "expire {document}"),
            Effect::FindMarks => write!(line, "find marks"),
            Effect::StopModel => write!(line, "stop"),
            Effect::Append(event) => match event {
                Event::UserMessage(message) => write!(line, "user {:?}", message.content),
                Event::Title(title) => write!(line, "title {title:?}"),
                Event::ResponseStart(start) => {
                    write!(line, "response of {}", start.model.as_deref().unwrap_or("-"))
                }
                Event::ThinkingDelta { delta } => write!(line, "thinking {delta:?}"),
                Event::DocumentStart(start) => write!(line, "+{} {}", start.sequence.unwrap_or(0), start.kind),
                Event::ContentDelta { delta, .. } => write!(line, "{delta:?}"),
                Event::DocumentEnd { document, metadata, .. } => {
                    let code = metadata.get("errorCode").and_then(Value::as_str).unwrap_or_default();
                    let cut = if metadata.contains_key("incomplete") {
                        " incomplete"
                    } else {
                        ""
                    };
                    let code = [
                        code,
                        member(metadata, "state"),
                        member(metadata, "applied"),
                        member(metadata, "outcome"),
                    ]
                    .into_iter()
                    .find(|it| !it.is_empty())
                    .unwrap_or_default();
                    let word = if code.is_empty() {
                        String::new()
                    } else {
                        format!(" {code}")
                    };
                    write!(line, "-{document}{word}{cut}")
                }
                Event::Done(done) => {
                    let (status, reason) = (
                        done.status.as_ref().expect("set"),
                        done.finish_reason.as_ref().expect("set"),
                    );
                    write!(line, "done {status} {reason}")
                }
                Event::ToolCallStart { tool_name, .. } => write!(line, "{tool_name}"),
                Event::ToolCallArguments { arguments, .. } => write!(line, "{arguments}"),
                Event::ToolResult { result, .. } => write!(line, "= {} {}", result["status"], result["data"]),
                Event::MetadataDelta { metadata, append, .. } => {
                    let appended: Vec<&str> = append.iter().map(|(_, it)| it.as_str()).collect();
                    write!(line, "~{}{}", appended.join(""), gist_of(metadata))
                }
                Event::Notice(notice) => write!(line, "notice {}", notice.code),
                Event::Progress(progress) => write!(line, "progress {progress:?}"),
                other => write!(line, "{other:?}"),
            },
        }
        .expect("a String takes everything");
    }
    line
}

/// What each input brings, after a first one that submits `hi`.
fn check<const N: usize>(name: &str, inputs: [Input; N], want: &str) {
    let mut turn = Turn::default();
    assert_eq!(
        show(&turn.step(submit("hi"), 0)),
        r#"user "hi" | title "hi" | call m with 1"#,
        "{name}"
    );
    let got: Vec<String> = inputs.into_iter().map(|it| show(&turn.step(it, 0))).collect();
    let want: Vec<&str> = want.split('\n').map(str::trim).collect();
    assert_eq!(got, want, "{name}");
    assert!(!turn.is_running(), "{name}");
}

#[test]
fn an_answer_becomes_documents() {
    check(
        "text, code and an end",
        [
            says("Look:\n"),
            says("```rust\nfn"),
            says(" a() {}\n```"),
            ends(EndReason::Stop),
        ],
        r#"response of m | +1 text | "Look:"
           -doc_001 | +2 code_block | "fn"
           " a() {}"
           -doc_002 | done completed stop"#,
    );
    check(
        "thinking is no document",
        [thinks("hm"), thinks("."), says("hi"), ends(EndReason::Stop)],
        r#"response of m | thinking "hm"
           thinking "."
           +1 text | "hi"
           -doc_001 | done completed stop"#,
    );
    check(
        "an unknown reason is an end that is spoken of",
        [says("hi"), ends(EndReason::Other("cosmic_ray".to_owned()))],
        r#"response of m | +1 text | "hi"
           -doc_001 | notice unknown-finish-reason | done completed stop"#,
    );
    check(
        "progress comes before the response",
        [
            Input::Piece(Piece::Progress(Progress::Idle)),
            Input::Piece(Piece::Start {
                response_id: None,
                model: Some("m-2024".to_owned()),
            }),
            says("hi"),
            ends(EndReason::Stop),
        ],
        r#"progress Idle

           response of m | +1 text | "hi"
           -doc_001 | done completed stop"#,
    );
}

#[test]
fn an_answer_that_fails_keeps_what_came() {
    check(
        "in mid-text",
        [says("so "), fails(FailureKind::Overloaded)],
        r#"response of m | +1 text | "so"
           -doc_001 incomplete | +2 error | "it broke" | -doc_002 LLM_OVERLOADED | done error error"#,
    );
    check(
        "in a fence",
        [says("a\n```c\nx"), fails(FailureKind::Interrupted)],
        r#"response of m | +1 text | "a" | -doc_001 | +2 code_block | "x"
           -doc_002 incomplete | +3 error | "it broke" | -doc_003 STREAM_INTERRUPTED | done error interrupted"#,
    );
    check(
        "before anything",
        [fails(FailureKind::Key)],
        r#"response of m | +1 error | "it broke" | -doc_001 LLM_AUTH | done error error"#,
    );
    check(
        "with nothing at all",
        [ends(EndReason::Stop)],
        r#"response of m | +1 error | "the model's answer is empty" | -doc_001 LLM_BAD_RESPONSE | done error error"#,
    );
    check(
        "with white space only",
        [says("\n \n"), ends(EndReason::Stop)],
        r#"
           response of m | +1 error | "the model's answer is empty" | -doc_001 LLM_BAD_RESPONSE | done error error"#,
    );
}

#[test]
fn cancelling_ends_at_once() {
    check(
        "before the first word",
        [Input::Cancel, says("late"), ends(EndReason::Stop)],
        "stop | response of m | done completed cancelled\n\n",
    );
    check(
        "in mid-text",
        [says("so "), Input::Cancel, says("late"), Input::Cancel],
        r#"response of m | +1 text | "so"
           stop | -doc_001 | done completed cancelled

        "#,
    );
    check(
        "in a fence",
        [says("```\nx"), Input::Cancel],
        r#"response of m | +1 code_block | "x"
           stop | -doc_001 incomplete | done completed cancelled"#,
    );
    assert!(Turn::default().step(Input::Cancel, 0).is_empty(), "nothing runs");
}

#[test]
fn ends_that_the_user_must_act_on_are_said() {
    check(
        "the limit",
        [says("so"), ends(EndReason::Length)],
        r#"response of m | +1 text | "so"
           -doc_001 incomplete | +2 error | "the answer reached the limit of tokens" | -doc_002 LLM_CONTEXT_LENGTH | done completed length"#,
    );
    check(
        "the limit in mid-thought",
        [thinks("hm"), ends(EndReason::Length)],
        r#"response of m | thinking "hm"
           +1 error | "the limit of tokens was used up by thinking" | -doc_001 LLM_CONTEXT_LENGTH | done completed length"#,
    );
    check(
        "a filter",
        [says("so"), ends(EndReason::ContentFilter)],
        r#"response of m | +1 text | "so"
           -doc_001 incomplete | +2 error | "a filter at the provider's stopped the answer" | -doc_002 LLM_REFUSAL | done completed refusal"#,
    );
    check(
        "a refusal speaks for itself",
        [Input::Piece(Piece::Refusal("No.".to_owned())), ends(EndReason::Refusal)],
        r#"response of m | +1 text | "No."
           -doc_001 | done completed refusal"#,
    );
    check(
        "a silent refusal",
        [ends(EndReason::Refusal)],
        r#"response of m | +1 error | "the model declined to answer" | -doc_001 LLM_REFUSAL | done completed refusal"#,
    );
}

#[test]
fn what_is_known_of_an_answer_is_told() {
    let mut turn = Turn::default();
    let mut submission = submission("hi");
    submission.model = String::new();
    let now = 1_772_439_300_000;
    turn.step(Input::Submit(Box::new(submission)), now);
    let start = Piece::Start {
        response_id: Some("c".to_owned()),
        model: Some("served".to_owned()),
    };
    turn.step(Input::Piece(start), now + 5);
    let started = turn.step(says("hi"), now + 10);
    let Some(Effect::Append(Event::ResponseStart(start))) = started.first() else {
        panic!("{started:?}")
    };
    assert_eq!(
        start,
        &ResponseStart {
            id: Some("chat_1".into()),
            conversation_id: Some("conv_1".into()),
            model: Some("served".to_owned()),
            mode: Some(Mode::Agent),
            created: Some("2026-03-02T08:15:00Z".to_owned()),
            capabilities: vec!["live_input".to_owned()],
            ..ResponseStart::default()
        }
    );
    turn.step(counts(5, 1), now + 20);
    turn.step(counts(5, 3), now + 30);
    let ended = turn.step(ends(EndReason::Stop), now + 3900);
    let Some(Effect::Append(Event::Done(done))) = ended.last() else {
        panic!("{ended:?}")
    };
    assert_eq!(
        done,
        &Done {
            usage: Some(Usage {
                prompt_tokens: 5,
                completion_tokens: 3,
                total_tokens: 8
            }),
            id: Some("chat_1".into()),
            conversation_id: Some("conv_1".into()),
            status: Some(Status::Completed),
            finish_reason: Some(FinishReason::Stop),
            duration_ms: Some(3900),
            tool_call_count: Some(0),
            turn_count: Some(1),
            extra_usage: object(json!({ "contextTokens": 8 })),
            ..Done::default()
        }
    );
}

#[test]
fn an_error_says_what_to_do() {
    let mut turn = Turn::default();
    turn.step(submit("hi"), 0);
    let effects = turn.step(fails(FailureKind::Key), 0);
    let details = effects.iter().find_map(|it| match it {
        Effect::Append(Event::DocumentEnd { metadata, .. }) => metadata.get("details").cloned(),
        _ => None,
    });
    let want = "the server says: boom\ncheck the key: the provider's variable or its key in the configuration \
                (`sheaf doctor` tests it)";
    assert_eq!(details, Some(json!(want)));
}

#[test]
fn the_next_message_follows_the_conversation() {
    let mut turn = Turn::default();
    turn.memory.messages = vec![ModelMessage::user("hi"), ModelMessage::assistant("hello")];
    let mut next = submission("and now?");
    next.mode = Mode::Plan;
    let effects = turn.step(Input::Submit(Box::new(next)), 0);
    assert_eq!(show(&effects), r#"user "and now?" | call m with 3"#, "no second title");
    assert_eq!(asked(&effects).messages.last(), Some(&ModelMessage::user("and now?")));
    assert!(turn.step(submit("more"), 0).is_empty(), "one answer at a time");
    assert!(turn.is_running());
}

#[test]
fn titles() {
    let long = "x".repeat(61);
    let cut = format!("{}…", "x".repeat(60));
    let cases: &[(&str, Option<&str>)] = &[
        ("hello", Some("hello")),
        ("\n\n  ## Fix   the cart \nplease", Some("Fix the cart")),
        ("```\ncode\n```", Some("code")),
        ("---\n日本語", Some("日本語")),
        (&long, Some(&cut)),
        ("", None),
        ("???", None),
    ];
    for (message, want) in cases {
        assert_eq!(title(message).as_deref(), *want, "{message:?}");
    }
}

fn call(id: &str, name: &str, arguments: Value) -> Input {
    Input::Piece(Piece::CallDone {
        slot: 0,
        id: id.to_owned(),
        name: name.to_owned(),
        arguments: Ok(object(arguments)),
        opaque: None,
    })
}

fn garbled(id: &str, name: &str, text: &str) -> Input {
    Input::Piece(Piece::CallDone {
        slot: 0,
        id: id.to_owned(),
        name: name.to_owned(),
        arguments: Err(text.to_owned()),
        opaque: None,
    })
}

fn touching(job: u64, accesses: Vec<Access>) -> Input {
    Input::Prepared {
        job: JobId(job),
        result: Ok(Prepared {
            accesses,
            proposal: None,
            tier: Tier::Partial,
        }),
    }
}

fn harmless(job: u64) -> Input {
    touching(job, Vec::new())
}

fn place(shown: &str) -> Located {
    Located {
        path: format!("/w/{shown}").into(),
        shown: shown.to_owned(),
        place: Place::Inside,
        is_protected: false,
    }
}

fn command(line: &str) -> Vec<Access> {
    vec![Access::Command {
        line: line.to_owned(),
        directory: place("."),
        permissions: Vec::new(),
        is_background: false,
    }]
}

/// A change of `a.rs` in two places.
fn proposing(job: u64) -> Input {
    let hunk = |at: u64| Hunk {
        old: format!("old {at}"),
        new: format!("new {at}"),
        start: at,
        end: at,
    };
    let change = Change {
        file: place("a.rs"),
        operation: Operation::Edit,
        to: None,
        old: Some("old 1\nsame\nold 3\n".as_bytes().into()),
        new: Some("new 1\nsame\nnew 3\n".as_bytes().into()),
        hunks: vec![hunk(1), hunk(3)],
    };
    let proposal = Proposal {
        changes: vec![change],
        text: "changed a.rs".to_owned(),
        data: Map::new(),
    };
    Input::Prepared {
        job: JobId(job),
        result: Ok(Prepared {
            accesses: proposal.accesses(),
            proposal: Some(proposal),
            tier: Tier::Partial,
        }),
    }
}

fn ran(job: u64, text: &str) -> Input {
    Input::Ran {
        job: JobId(job),
        result: Ok(Outcome {
            text: text.to_owned(),
            data: text.into(),
            ..Outcome::default()
        }),
        took_ms: 5,
    }
}

fn broke(job: u64, message: &str) -> Input {
    Input::Ran {
        job: JobId(job),
        result: Err(Fault::new("TOOL_FAILED", message)),
        took_ms: 5,
    }
}

fn answer(document: &str, option: &str) -> Input {
    Input::Answer(ClarificationResponse {
        document_id: document.into(),
        outcome: Dealt::Answered,
        answers: vec![Answer {
            question_id: "approval".to_owned(),
            selected_option_ids: vec![option.to_owned()],
            free_text: None,
        }],
        reason: None,
    })
}

/// A conversation that was asked `hi`.
struct Talk {
    turn: Turn,
    effects: Vec<Effect>,
}

impl Talk {
    fn begin() -> Self {
        Self::of(submission("hi"))
    }

    fn of(submission: Submission) -> Self {
        let mut turn = Turn::default();
        let effects = turn.step(Input::Submit(Box::new(submission)), 0);
        Self { turn, effects }
    }

    /// Says `input` and shows what comes of it.
    fn says(&mut self, input: Input) -> String {
        self.effects = self.turn.step(input, 0);
        show(&self.effects)
    }

    fn all(&mut self, inputs: impl IntoIterator<Item = Input>) -> &mut Self {
        for input in inputs {
            self.says(input);
        }
        self
    }

    /// Results as the model reads them, with a sign before errors.
    fn results(&self) -> Vec<String> {
        let results = self.turn.memory.messages.iter().rev().find_map(|it| match it {
            ModelMessage::Results(results) => Some(results),
            ModelMessage::User(_) | ModelMessage::Assistant(_) => None,
        });
        let results = results.into_iter().flatten();
        results
            .map(|it| format!("{}{}: {}", if it.is_error { "!" } else { "" }, it.call, it.text))
            .collect()
    }
}

#[test]
fn a_call_is_looked_at_run_and_answered() {
    let mut talk = Talk::begin();
    let says = [
        (
            super::tests::says("Let me look."),
            r#"response of m | +1 text | "Let me look.""#,
        ),
        (call("a", "look", json!({ "file_path": "x" })), ""),
        (ends(EndReason::Stop), "-doc_001 | prepare 1 look"),
        (harmless(1), r#"+2 tool_call | look | {"file_path":"x"} | run 1 look"#),
        (
            ran(1, "it is there"),
            r#"= "success" "it is there" | -doc_002 | call m with 3"#,
        ),
        (super::tests::says("It is."), r#"+3 text | "It is.""#),
        (ends(EndReason::Stop), "-doc_003 | done completed stop"),
    ];
    for (input, want) in says {
        assert_eq!(talk.says(input), want);
    }
    assert_eq!(talk.results(), ["a: it is there"]);
    let kinds: Vec<&str> = talk
        .turn
        .memory
        .messages
        .iter()
        .map(|it| match it {
            ModelMessage::User(_) => "user",
            ModelMessage::Assistant(_) => "assistant",
            ModelMessage::Results(_) => "results",
        })
        .collect();
    assert_eq!(kinds, ["user", "assistant", "results", "assistant"]);
}

#[test]
fn readers_run_together_and_writers_alone() {
    let mut talk = Talk::begin();
    talk.all([
        call("a", "look", json!({})),
        call("b", "look", json!({})),
        call("c", "change", json!({})),
        call("d", "look", json!({})),
    ]);
    assert_eq!(
        talk.says(ends(EndReason::ToolUse)),
        "prepare 1 look | prepare 2 look | prepare 4 look",
        "what is changed is worked out when its turn comes"
    );
    talk.all([harmless(1), harmless(4)]);
    assert_eq!(talk.says(harmless(2)), "+2 tool_call | look | {} | run 2 look");
    assert_eq!(talk.says(ran(2, "two")), r#"= "success" "two" | -doc_002"#);
    assert_eq!(
        talk.says(ran(1, "one")),
        r#"= "success" "one" | -doc_001 | prepare 3 change"#
    );
    assert_eq!(talk.says(proposing(3)), "make 3");
    assert_eq!(
        talk.says(ran(3, "")),
        r#"+3 file_edit | "new 1" | -doc_003 applied | +4 file_edit | "new 3" | -doc_004 applied | +5 tool_call | look | {} | run 4 look"#
    );
    assert_eq!(
        talk.says(ran(4, "four")),
        r#"= "success" "four" | -doc_005 | call m with 3"#
    );
    assert_eq!(
        talk.results(),
        ["a: one", "b: two", "c: changed a.rs", "d: four"],
        "in the order of the calls"
    );
}

#[test]
fn no_more_than_eight_readers_run_at_a_time() {
    let mut talk = Talk::begin();
    talk.all((1..=10).map(|it| call(&format!("c{it}"), "look", json!({}))));
    talk.says(ends(EndReason::ToolUse));
    let started: String = (1..=10).map(|it| talk.says(harmless(it))).collect();
    assert_eq!(started.matches("run ").count(), 8);
    assert!(talk.says(ran(1, "x")).ends_with("run 9 look"));
    assert!(talk.says(ran(2, "x")).ends_with("run 10 look"));
}

#[test]
fn a_call_that_cannot_be_is_answered_and_the_model_goes_on() {
    let cases: Vec<(&str, Mode, Input, &str)> = vec![
        (
            "an unknown tool",
            Mode::Agent,
            call("a", "gr\nep", json!({})),
            "!a: Error [TOOL_UNKNOWN]: there is no tool called `grep`\nThe tools are: look, change, run, ask, switch_mode, todo_write.",
        ),
        (
            "a change in plan mode",
            Mode::Plan,
            call("a", "change", json!({})),
            "!a: Error [TOOL_FORBIDDEN_IN_MODE]: `change` cannot be used in plan mode\nGo on without it, or ask for another mode with switch_mode.",
        ),
        (
            "a plan in agent mode",
            Mode::Agent,
            call("a", "CreatePlan", json!({ "name": "x", "plan": "y" })),
            "!a: Error [TOOL_FORBIDDEN_IN_MODE]: `create_plan` cannot be used in agent mode\nGo on without it, or ask for another mode with switch_mode.",
        ),
    ];
    for (name, mode, input, want) in cases {
        let mut said = submission("hi");
        said.mode = mode;
        let mut talk = Talk::of(said);
        talk.says(input);
        let shown = talk.says(ends(EndReason::ToolUse));
        assert!(shown.ends_with("call m with 3"), "{name}: {shown}");
        assert_eq!(talk.results(), [want], "{name}");
    }
}

#[test]
fn arguments_that_are_no_json_are_told_and_no_more_than_three_times() {
    let mut talk = Talk::begin();
    for nth in 1..=3 {
        talk.says(garbled(&format!("a{nth}"), "run", "{\"command\": "));
        let shown = talk.says(ends(EndReason::ToolUse));
        let results = talk.results();
        let [result] = results.as_slice() else {
            panic!("{results:?}")
        };
        assert!(
            result.starts_with(&format!("!a{nth}: Error [TOOL_ARGUMENTS_INVALID]")),
            "{result}"
        );
        assert_eq!(shown.ends_with("done error error"), nth == 3, "{shown}");
    }
    let calls: Vec<&Map<String, Value>> = talk
        .turn
        .memory
        .messages
        .iter()
        .filter_map(|it| match it {
            ModelMessage::Assistant(said) => Some(said),
            ModelMessage::User(_) | ModelMessage::Results(_) => None,
        })
        .flatten()
        .filter_map(|it| match it {
            Said::Call(call) => Some(&call.arguments),
            Said::Text(_) | Said::Opaque(_) => None,
        })
        .collect();
    assert!(
        calls.len() == 3 && calls.iter().all(|it| it.is_empty()),
        "nothing garbled is remembered"
    );
}

#[test]
fn a_call_in_a_message_that_broke_off_never_runs() {
    for ending in [fails(FailureKind::Interrupted), Input::Cancel, ends(EndReason::Refusal)] {
        let mut talk = Talk::begin();
        talk.all([says("Now"), call("a", "run", json!({ "command": "rm -r ." }))]);
        let shown = talk.says(ending);
        assert!(!shown.contains("prepare") && shown.contains("done"), "{shown}");
        let is_text = |it: &Said| matches!(it, Said::Text(_));
        let kept = talk.turn.memory.messages.iter().all(|it| match it {
            ModelMessage::Assistant(said) => said.iter().all(is_text),
            ModelMessage::User(_) => true,
            ModelMessage::Results(_) => false,
        });
        assert!(kept, "{:?}", talk.turn.memory.messages);
    }
}

#[test]
fn a_command_asks_and_runs_with_its_output() {
    let mut talk = Talk::begin();
    talk.says(call("a", "run", json!({ "command": "cargo test" })));
    assert_eq!(talk.says(ends(EndReason::ToolUse)), "prepare 1 run");
    let asked = talk.says(touching(1, command("cargo test")));
    assert!(asked.starts_with("response of m | +1 clarification"), "{asked}");
    assert!(
        asked.contains("Run this command? allow_once/allow_session/allow_always/reject_once"),
        "{asked}"
    );
    assert_eq!(
        talk.says(answer("doc_001", "allow_once")),
        "-doc_001 answered | +2 terminal_command | run 1 run"
    );
    let output = |text: &str| Input::Output {
        job: JobId(1),
        text: text.to_owned(),
    };
    assert_eq!(talk.says(output("building\n")), "~building\n");
    let done = Input::Ran {
        job: JobId(1),
        result: Ok(Outcome {
            text: "building\nexit code: 2".to_owned(),
            data: json!({ "exitCode": 2, "output": "building\n", "durationMs": 9, "state": "completed", "logPath": null }),
            ..Outcome::default()
        }),
        took_ms: 10,
    };
    assert_eq!(talk.says(done), "-doc_002 completed | call m with 3");
    assert_eq!(
        talk.results(),
        ["a: building\nexit code: 2"],
        "a code other than 0 is no error of the tool's"
    );
}

#[test]
fn what_the_user_rejects_is_not_done_and_the_model_hears_why() {
    let mut talk = Talk::begin();
    talk.says(call("a", "run", json!({ "command": "cargo test" })));
    talk.all([ends(EndReason::ToolUse), touching(1, command("cargo test"))]);
    let reason = Input::Answer(ClarificationResponse {
        document_id: "doc_001".into(),
        outcome: Dealt::Answered,
        answers: vec![Answer {
            question_id: "approval".to_owned(),
            selected_option_ids: vec!["reject_once".to_owned()],
            free_text: Some("use ninja".to_owned()),
        }],
        reason: None,
    });
    assert_eq!(
        talk.says(reason),
        "-doc_001 answered | +2 terminal_command | -doc_002 rejected | call m with 3"
    );
    assert_eq!(
        talk.results(),
        [
            "!a: Error [TOOL_REJECTED]: the user rejected this; reason: use ninja\nDo not try the same thing in another way. Go on without it, or ask."
        ]
    );
}

#[test]
fn questions_of_a_message_are_asked_together_and_a_rule_answers_the_rest() {
    let mut talk = Talk::begin();
    talk.all([
        call("a", "run", json!({ "command": "cargo test" })),
        call("b", "run", json!({ "command": "cargo test" })),
        ends(EndReason::ToolUse),
        touching(1, command("cargo test")),
    ]);
    assert!(
        talk.says(touching(2, command("cargo test")))
            .contains("+2 clarification")
    );
    let shown = talk.says(answer("doc_001", "allow_session"));
    assert_eq!(
        shown, "-doc_001 answered | +3 terminal_command | run 1 run | -doc_002 skipped",
        "the second waits for the first, and asks no more"
    );
    let over = Input::Ran {
        job: JobId(1),
        result: Ok(Outcome::default()),
        took_ms: 1,
    };
    assert_eq!(talk.says(over), "-doc_003 completed | +4 terminal_command | run 2 run");
}

#[test]
fn cancelling_answers_every_call() {
    let mut talk = Talk::begin();
    talk.all([
        call("a", "look", json!({})),
        call("b", "run", json!({ "command": "cargo test" })),
        call("c", "ask", json!({ "questions": ["Why?"] })),
        ends(EndReason::ToolUse),
        harmless(1),
        touching(2, command("cargo test")),
    ]);
    assert_eq!(
        talk.says(Input::Cancel),
        r#"stop jobs | -doc_002 cancelled | = "error" "cancelled" | -doc_001 | done completed cancelled"#
    );
    assert_eq!(
        talk.results(),
        [
            "!a: Cancelled by the user.",
            "!b: Cancelled by the user.",
            "!c: Cancelled by the user."
        ]
    );
    assert_eq!(talk.says(ran(1, "late")), "");
}

#[test]
fn a_question_of_the_models_is_answered() {
    let mut talk = Talk::begin();
    let form =
        json!({ "title": "Two things", "questions": [{ "id": "q", "prompt": "Which?", "options": ["One", "Two"] }] });
    talk.says(call("a", "AskQuestion", form));
    assert_eq!(
        talk.says(ends(EndReason::ToolUse)),
        r#"response of m | +1 clarification | "Two things" | ~Which? One/Two"#
    );
    let dealt = Input::Answer(ClarificationResponse {
        document_id: "doc_001".into(),
        outcome: Dealt::Answered,
        answers: vec![Answer {
            question_id: "q".to_owned(),
            selected_option_ids: vec!["Two".to_owned()],
            free_text: None,
        }],
        reason: None,
    });
    assert_eq!(talk.says(dealt), "-doc_001 answered | call m with 3");
    assert_eq!(talk.results(), ["a: Which? -> Two"]);
}

#[test]
fn where_nobody_is_there_questions_are_skipped_and_permissions_missing() {
    let mut said = submission("hi");
    said.is_attended = false;
    let mut talk = Talk::of(said);
    talk.all([
        call("a", "ask", json!({ "questions": ["Why?"] })),
        call("b", "run", json!({ "command": "cargo test" })),
        call("c", "switch_mode", json!({ "target_mode_id": "plan" })),
        ends(EndReason::ToolUse),
        touching(2, command("cargo test")),
    ]);
    let results = talk.results();
    assert_eq!(results.len(), 3);
    assert_eq!(
        results[0],
        "a: The user skipped the questions: decide yourself and say what you assumed."
    );
    assert!(results[1].starts_with("!b: Error [TOOL_REJECTED]"), "{}", results[1]);
    assert!(results[2].starts_with("!c: Error [TOOL_REJECTED]"), "{}", results[2]);
}

#[test]
fn a_plan_gives_the_user_the_word() {
    let mut said = submission("hi");
    said.mode = Mode::Plan;
    let mut talk = Talk::of(said);
    let plan = json!({ "name": "Codes", "overview": "o", "plan": "# Codes", "todos": [{ "id": "a", "content": "A" }] });
    talk.says(call("p", "create_plan", plan));
    assert_eq!(
        talk.says(ends(EndReason::ToolUse)),
        r##"response of m | +1 plan | "# Codes" | -doc_001 | done completed awaiting_input"##
    );
    assert_eq!(talk.turn.memory.todos.checklist(), "- [ ] A (a)");
    let shown = show(&talk.turn.step(submit("Build it."), 0));
    assert_eq!(shown, r#"user "Build it." | call m with 4"#);
}

#[test]
fn todos_are_kept_and_told_back() {
    let mut talk = Talk::begin();
    let todos = json!({ "merge": false, "todos": [{ "id": "a", "content": "A", "status": "done" }, { "id": "b", "content": "B" }] });
    talk.says(call("t", "todo_write", todos));
    assert_eq!(
        talk.says(ends(EndReason::ToolUse)),
        "response of m | +1 todo_update | -doc_001 | call m with 3"
    );
    assert_eq!(talk.results(), ["t: - [x] A (a)\n- [ ] B (b)"]);
}

#[test]
fn another_mode_needs_a_yes_and_changes_what_is_offered() {
    let names = |effects: &[Effect]| {
        asked(effects)
            .tools
            .iter()
            .map(|it| it.name.clone())
            .collect::<Vec<_>>()
            .join(" ")
    };
    let mut said = submission("hi");
    said.mode = Mode::Plan;
    let mut talk = Talk::of(said.clone());
    assert_eq!(names(&talk.effects), "look ask create_plan switch_mode");
    talk.says(call(
        "m",
        "switch_mode",
        json!({ "target_mode_id": "agent", "explanation": "to build" }),
    ));
    let shown = talk.says(ends(EndReason::ToolUse));
    assert!(
        shown.ends_with("~Go on in agent mode? allow_once/reject_once | expire doc_001"),
        "{shown}"
    );
    talk.says(answer("doc_001", "allow_once"));
    assert_eq!(names(&talk.effects), "look change run ask switch_mode todo_write");
    assert_eq!(talk.turn.mode(), Some(Mode::Agent));

    let mut talk = Talk::of(said);
    talk.says(call("m", "switch_mode", json!({ "target_mode_id": "agent" })));
    talk.says(ends(EndReason::ToolUse));
    let shown = talk.says(Input::Expired("doc_001".into()));
    assert!(shown.ends_with("call m with 3"), "{shown}");
    assert_eq!(
        talk.results(),
        ["!m: Error [TOOL_REJECTED]: the user wants to stay in plan mode; reason: nobody answered"]
    );
    assert_eq!(names(&talk.effects), "look ask create_plan switch_mode");
}

#[test]
fn what_is_said_in_between_is_heard_before_the_next_request() {
    let mut talk = Talk::begin();
    let steer = || Input::Steer {
        message: Message::user("use tabs"),
        parts: vec![Part::Text("use tabs".to_owned())],
    };
    talk.all([
        call("a", "look", json!({})),
        steer(),
        ends(EndReason::ToolUse),
        harmless(1),
    ]);
    assert_eq!(
        talk.says(ran(1, "x")),
        r#"= "success" "x" | -doc_001 | +2 text | "use tabs" | -doc_002 | call m with 4"#
    );
    assert_eq!(
        asked(&talk.effects).messages.last(),
        Some(&ModelMessage::user("use tabs"))
    );
    talk.all([says("Ok."), steer()]);
    let shown = talk.says(ends(EndReason::Stop));
    assert!(
        shown.ends_with(r#"+4 text | "use tabs" | -doc_004 | call m with 6"#),
        "it is no end while something was said: {shown}"
    );
}

#[test]
fn a_model_that_goes_round_in_circles_is_stopped() {
    let mut talk = Talk::begin();
    let mut shown = String::new();
    for nth in 1..=5 {
        talk.all([
            call(&format!("a{nth}"), "look", json!({})),
            ends(EndReason::ToolUse),
            harmless(nth),
        ]);
        shown = talk.says(broke(nth, "no such thing"));
        assert_eq!(talk.results()[0].contains("failed three times"), nth == 3, "{nth}");
    }
    assert!(shown.ends_with("done error error"), "{shown}");

    let mut talk = Talk::begin();
    for nth in 1..=4 {
        talk.all([
            call(&format!("a{nth}"), "look", json!({})),
            ends(EndReason::ToolUse),
            harmless(nth),
        ]);
        shown = talk.says(ran(nth, "the same"));
    }
    assert!(shown.ends_with("~Go on? yes/no"), "{shown}");
    assert!(talk.says(answer("doc_005", "yes")).ends_with("call m with 9"));
}

#[test]
fn after_so_many_requests_the_user_is_asked_or_the_answer_ends() {
    for is_attended in [true, false] {
        let mut said = submission("hi");
        said.limits.requests = 2;
        said.is_attended = is_attended;
        let mut talk = Talk::of(said);
        let mut shown = String::new();
        for nth in 1..=2 {
            talk.all([
                call(&format!("a{nth}"), "look", json!({})),
                ends(EndReason::ToolUse),
                harmless(nth),
            ]);
            shown = talk.says(ran(nth, &nth.to_string()));
        }
        if is_attended {
            assert!(shown.ends_with("~Go on? yes/no"), "{shown}");
            assert!(talk.says(answer("doc_003", "no")).ends_with("done completed max_turns"));
        } else {
            assert!(shown.ends_with("done completed max_turns"), "{shown}");
        }
    }
}

#[test]
fn an_overloaded_model_is_stood_in_for_before_it_said_anything() {
    let mut said = submission("hi");
    said.fallbacks = 1;
    let mut talk = Talk::of(said.clone());
    assert_eq!(
        talk.says(fails(FailureKind::Overloaded)),
        "response of m | notice stand-in | call stand-in 1 with 1"
    );
    assert!(talk.says(fails(FailureKind::Overloaded)).ends_with("done error error"));
    let mut talk = Talk::of(said);
    talk.says(says("So"));
    assert!(
        talk.says(fails(FailureKind::Overloaded)).ends_with("done error error"),
        "half an answer is not asked for again"
    );
}

#[test]
fn a_conversation_that_no_longer_fits_loses_its_oldest_results_once() {
    let mut talk = Talk::begin();
    for nth in 1..=6 {
        talk.all([
            call(
                &format!("a{nth}"),
                "look",
                json!({ "n": nth, "file_path": nth.to_string() }),
            ),
            ends(EndReason::ToolUse),
            harmless(nth),
        ]);
        talk.says(ran(nth, &"x".repeat(1000)));
    }
    assert!(
        talk.says(fails(FailureKind::TooLong))
            .ends_with("notice compacted | call m with 13")
    );
    let lengths: Vec<usize> = asked(&talk.effects)
        .messages
        .iter()
        .filter_map(|it| match it {
            ModelMessage::Results(results) => results.first().map(|it| it.text.len()),
            ModelMessage::User(_) | ModelMessage::Assistant(_) => None,
        })
        .collect();
    assert!(
        lengths[..2].iter().all(|it| *it < 200) && lengths[2..].iter().all(|it| *it == 1000),
        "{lengths:?}"
    );
    assert!(talk.says(fails(FailureKind::TooLong)).ends_with("done error error"));
}

#[test]
fn marks_that_debugging_left_are_no_end() {
    let mut said = submission("hi");
    said.mode = Mode::Debug;
    let mut talk = Talk::of(said);
    talk.says(says("Fixed."));
    assert_eq!(talk.says(ends(EndReason::Stop)), "-doc_001 | find marks");
    assert_eq!(talk.says(Input::Marks(vec!["a.rs:3".to_owned()])), "call m with 3");
    talk.says(says("Removed."));
    talk.says(ends(EndReason::Stop));
    assert_eq!(
        talk.says(Input::Marks(Vec::new())),
        r#"+3 text | "*All marks of instrumentation are removed.*" | -doc_003 | done completed stop"#
    );
    let mut said = submission("hi");
    said.mode = Mode::Debug;
    let mut talk = Talk::of(said);
    talk.all([
        says("Fixed."),
        ends(EndReason::Stop),
        Input::Marks(vec!["a.rs:3".to_owned()]),
        says("Yes."),
        ends(EndReason::Stop),
    ]);
    let shown = talk.says(Input::Marks(vec!["a.rs:3".to_owned()]));
    assert!(
        shown.contains(r#""instrumentation is left: a.rs:3""#) && shown.ends_with("done completed awaiting_input"),
        "{shown}"
    );
}

#[test]
fn calls_wrapped_into_one_get_one_result() {
    let mut talk = Talk::begin();
    let uses = json!({ "tool_uses": [
        { "recipient_name": "functions.look", "parameters": {} },
        { "recipient_name": "functions.look", "parameters": { "file_path": "b" } },
    ] });
    talk.all([
        call("a", "multi_tool_use.parallel", uses),
        ends(EndReason::ToolUse),
        harmless(1),
        harmless(2),
        ran(2, "two"),
    ]);
    talk.says(ran(1, "one"));
    assert_eq!(talk.results(), ["a: 1. look\none\n\n2. look\ntwo"]);
}

#[test]
fn ids_are_made_unique() {
    let mut talk = Talk::begin();
    talk.all([
        call("", "look", json!({})),
        call("", "look", json!({})),
        call("call", "look", json!({})),
        ends(EndReason::ToolUse),
        harmless(1),
        harmless(2),
        harmless(3),
        ran(1, "1"),
        ran(2, "2"),
        ran(3, "3"),
    ]);
    assert_eq!(talk.results(), ["call_2: 1", "call_3: 2", "call: 3"]);
}

#[test]
fn what_was_sent_is_only_added_to() {
    let mut talk = Talk::begin();
    let first = asked(&talk.effects).clone();
    talk.all([
        call("a", "look", json!({})),
        ends(EndReason::ToolUse),
        harmless(1),
        ran(1, "x"),
    ]);
    let second = asked(&talk.effects).clone();
    talk.all([says("ok"), ends(EndReason::Stop)]);
    talk.effects = talk.turn.step(submit("more"), 0);
    let third = asked(&talk.effects).clone();
    for (before, after) in [(&first, &second), (&second, &third)] {
        assert_eq!(after.messages[..before.messages.len()], before.messages[..]);
        assert_eq!((&after.system, &after.tools), (&before.system, &before.tools));
    }
}

fn any_piece() -> impl Strategy<Value = Piece> {
    let text = prop::sample::select(vec!["a", "\n", "```", "```rust\n", "1:2:a\n", " ", "~~~\n", "é"]);
    let name = prop::sample::select(vec![
        "look",
        "look",
        "change",
        "run",
        "ask",
        "create_plan",
        "CreatePlan",
        "todo_write",
        "switch_mode",
        "write",
        "Bash",
        "nobody",
    ]);
    let arguments = prop::sample::select(vec![
        json!({}),
        json!({ "command": "x", "file_path": "y" }),
        json!({ "questions": ["a?"], "name": "n", "plan": "p", "target_mode_id": "agent" }),
        json!({ "merge": true, "todos": [{ "id": "a" }] }),
    ]);
    prop_oneof![
        4 => text.clone().prop_map(|it| Piece::Text(it.to_owned())),
        1 => text.clone().prop_map(|it| Piece::Thinking(it.to_owned())),
        1 => text.prop_map(|it| Piece::Refusal(it.to_owned())),
        1 => Just(Piece::ThinkingDone { opaque: json!(1) }),
        4 => (name, arguments, "[ab]?").prop_map(|(name, arguments, id)| Piece::CallDone {
            slot: 0,
            id,
            name: name.to_owned(),
            arguments: Ok(object(arguments)),
            opaque: None,
        }),
        1 => Just(Piece::CallDone { slot: 0, id: String::new(), name: "run".to_owned(), arguments: Err("{".to_owned()), opaque: None }),
        1 => Just(Piece::Usage(Tokens { prompt: 1, completion: u64::MAX, ..Tokens::default() })),
    ]
}

fn any_end() -> impl Strategy<Value = EndReason> {
    prop::sample::select(vec![
        EndReason::Stop,
        EndReason::ToolUse,
        EndReason::ToolUse,
        EndReason::Length,
        EndReason::Refusal,
        EndReason::ContentFilter,
        EndReason::Pause,
        EndReason::Other("x".to_owned()),
    ])
}

/// The world's next answer to what is open: the choices come from outside.
#[derive(Clone, Debug)]
struct World {
    messages: Vec<(Vec<Piece>, EndReason)>,
    choices: Vec<u8>,
    mode: Mode,
    is_attended: bool,
    cancel_after: usize,
}

fn any_world() -> impl Strategy<Value = World> {
    (
        prop::collection::vec((prop::collection::vec(any_piece(), 0..8), any_end()), 1..5),
        prop::collection::vec(any::<u8>(), 1..40),
        prop::sample::select(Mode::ALL.to_vec()),
        any::<bool>(),
        0_usize..80,
    )
        .prop_map(|(messages, choices, mode, is_attended, cancel_after)| World {
            messages,
            choices,
            mode,
            is_attended,
            cancel_after,
        })
}

/// Plays a whole answer and gives every effect, in order.
fn play(world: &World) -> (Turn, Vec<Effect>) {
    let mut said = submission("hi");
    said.mode = world.mode;
    said.is_attended = world.is_attended;
    let mut turn = Turn::default();
    let mut all = turn.step(Input::Submit(Box::new(said)), 0);
    let mut open: Vec<Input> = Vec::new();
    let mut messages = world.messages.iter();
    let mut choices = world.choices.iter().cycle();
    let mut seen = 0;
    let mut steps = 0;
    while turn.is_running() {
        for effect in &all[seen..] {
            match effect {
                Effect::CallModel { .. } => match messages.next() {
                    Some((pieces, reason)) => {
                        open.extend(pieces.iter().cloned().map(Input::Piece));
                        open.push(Input::Piece(Piece::End(reason.clone())));
                    }
                    None => open.push(fails(FailureKind::Interrupted)),
                },
                Effect::Prepare { job, tool, .. } => open.push(match tool.name {
                    "change" => proposing(job.0),
                    "run" => touching(job.0, command("cargo test")),
                    _ => harmless(job.0),
                }),
                Effect::Run { job, .. } => open.push(ran(job.0, "x")),
                Effect::Make { job, .. } => open.push(ran(job.0, "")),
                Effect::FindMarks => open.push(Input::Marks(Vec::new())),
                Effect::Append(Event::DocumentStart(start)) if start.kind == crate::protocol::Kind::Clarification => {
                    let options = [
                        "allow_once",
                        "allow_session",
                        "allow_always",
                        "reject_once",
                        "yes",
                        "no",
                    ];
                    let choice = usize::from(*choices.next().unwrap_or(&0));
                    open.push(answer(start.id.as_str(), options[choice % options.len()]));
                }
                Effect::Append(_) | Effect::StopModel | Effect::StopJobs | Effect::Store(_) | Effect::Expire(_) => {}
            }
        }
        seen = all.len();
        steps += 1;
        if open.is_empty() || steps > world.cancel_after {
            all.extend(turn.step(Input::Cancel, 1));
            break;
        }
        // Pieces come in their order; everything else in any.
        let choice = usize::from(*choices.next().unwrap_or(&0)) % open.len();
        let is_piece = |it: &Input| matches!(it, Input::Piece(_));
        let at = if is_piece(&open[choice]) {
            open.iter().position(is_piece).unwrap_or(choice)
        } else {
            choice
        };
        let next = open.remove(at);
        all.extend(turn.step(next, 1));
    }
    (turn, all)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    /// The strict writer's rules, whatever a model says, the world answers and the user does.
    #[test]
    fn every_answer_is_well_formed(world in any_world()) {
        let (turn, effects) = play(&world);
        prop_assert!(!turn.is_running());
        let mut open: BTreeMap<DocumentId, String> = BTreeMap::new();
        let mut count = 0;
        let mut starts = 0;
        let mut dones = 0;
        let mut response = crate::protocol::Response::default();
        for effect in &effects {
            let Effect::Append(event) = effect else { continue };
            if matches!(event, Event::UserMessage(_) | Event::Title(_)) {
                continue;
            }
            prop_assert_eq!(dones, 0, "nothing comes after the end");
            match event {
                Event::ResponseStart(_) => starts += 1,
                Event::Done(_) => dones += 1,
                Event::DocumentStart(start) => {
                    count += 1;
                    prop_assert_eq!(start.sequence, Some(count));
                    open.insert(start.id.clone(), String::new());
                }
                Event::ContentDelta { document, delta } => {
                    open.get_mut(document).expect("it is open").push_str(delta);
                }
                Event::DocumentEnd { document, final_content, .. } => {
                    let content = open.remove(document).expect("it is open");
                    prop_assert_eq!(content, final_content.clone().unwrap_or_default());
                }
                Event::MetadataDelta { document, .. } | Event::ToolResult { document, .. } => {
                    prop_assert!(open.contains_key(document));
                }
                _ => {}
            }
            response.apply(event, 0);
        }
        prop_assert_eq!((starts, dones), (1, 1));
        prop_assert!(open.is_empty(), "{:?}", open);
        prop_assert!(response.documents.iter().all(|it| !it.is_open()));
    }

    /// Servers refuse a conversation in which a call has no result, or two.
    #[test]
    fn every_call_has_one_result_before_the_next_request(world in any_world()) {
        let (turn, effects) = play(&world);
        let requests = effects.iter().filter_map(|it| match it {
            Effect::CallModel { request, .. } => Some(&request.messages),
            _ => None,
        });
        for messages in requests.chain([&turn.memory.messages]) {
            let mut waiting: Vec<&str> = Vec::new();
            let mut ids = std::collections::BTreeSet::new();
            for message in messages {
                match message {
                    ModelMessage::Results(results) => {
                        let given: Vec<&str> = results.iter().map(|it| it.call.as_str()).collect();
                        prop_assert_eq!(std::mem::take(&mut waiting), given);
                        prop_assert!(results.iter().all(|it| !it.text.trim().is_empty()));
                    }
                    ModelMessage::User(_) | ModelMessage::Assistant(_) => {
                        prop_assert!(waiting.is_empty(), "{:?}", waiting);
                    }
                }
                if let ModelMessage::Assistant(said) = message {
                    for part in said {
                        if let Said::Call(call) = part {
                            prop_assert!(ids.insert(call.id.clone()), "{} twice", call.id);
                            waiting.push(&call.id);
                        }
                    }
                }
            }
            prop_assert!(waiting.is_empty());
        }
    }

    /// What the mode forbids is neither offered nor looked at nor run, whatever the model calls.
    #[test]
    fn a_mode_holds_whatever_the_model_says(world in any_world()) {
        let (_, effects) = play(&world);
        let mut mode = world.mode;
        for effect in &effects {
            match effect {
                Effect::Append(Event::ToolResult { result, .. }) => {
                    if let Some(word) = result["data"]["mode"].as_str() {
                        mode = Mode::parse(word).unwrap_or(mode);
                    }
                }
                Effect::CallModel { request, .. } => {
                    for tool in &request.tools {
                        let known = submission("").tools.into_iter().find(|it| it.name == tool.name).expect("one of ours");
                        prop_assert!(known.modes.contains(&mode), "{} is offered in {}", tool.name, mode);
                    }
                }
                Effect::Prepare { tool, .. } | Effect::Run { tool, .. } => {
                    prop_assert!(tool.modes.contains(&mode), "{} in {}", tool.name, mode);
                }
                Effect::Make { .. } => prop_assert!(!mode.is_read_only()),
                _ => {}
            }
        }
    }
}
