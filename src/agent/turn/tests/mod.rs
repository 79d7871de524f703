//! What an answer does, as tables of events: what all of them need.

use std::fmt::Write;

use pretty_assertions::assert_eq;
use serde_json::{Map, Value, json};

use super::*;
use crate::{
    agent::approval::RunMode,
    models::{EndReason, Failure, FailureKind, ModelMessage},
    protocol::{
        Done, FinishReason, HunkAnswer, Operation, Outcome as Dealt, Progress, QuestionAnswer, Status, Usage,
        document::{CHECKED, pending_check},
    },
    sandbox::{Change, Hunk, Located, Place},
    tools::{self, Class, Work, ask, create_plan, object, switch_mode, todo_write},
};

mod answer;
mod calls;
mod hooks;
mod limits;
mod previews;
mod properties;
mod questions;
mod room;

#[expect(clippy::unnecessary_wraps, reason = "what a tool's table wants")]
fn nothing(_: &tools::Input, _: &tools::Context) -> Result<Vec<Access>, Fault> {
    Ok(Vec::new())
}

fn never(_: tools::Input, _: tools::Context) -> tools::Promise<Result<Outcome, Fault>> {
    Box::pin(std::future::pending())
}

fn never_proposed(_: tools::Input, _: tools::Context) -> tools::Promise<Result<Proposal, Fault>> {
    Box::pin(std::future::pending())
}

fn a_tool(name: &str, class: Class, modes: &'static [Mode], work: Work) -> Tool {
    Tool {
        modes,
        schema: json!({ "type": "object", "properties": { "file_path": { "type": "string" } }, "required": [] }).into(),
        ..Tool::new(name, class, work)
    }
}

fn look() -> Tool {
    a_tool("look", Class::Reads, &Mode::ALL, Work::call(nothing, never))
}

fn change() -> Tool {
    let modes = &[Mode::Agent, Mode::Debug];
    a_tool("change", Class::Writes, modes, Work::change(never_proposed))
}

fn run() -> Tool {
    let modes = &[Mode::Agent, Mode::Debug];
    Tool {
        schema: json!({
            "type": "object", "required": ["command"],
            "properties": { "command": { "type": "string" }, "explanation": { "type": "string" } },
        })
        .into(),
        ..a_tool("run", Class::Runs, modes, Work::command(nothing, never))
    }
}

fn member<'a>(metadata: &'a Map<String, Value>, name: &str) -> &'a str {
    metadata.get(name).and_then(Value::as_str).unwrap_or_default()
}

/// The text of a question; empty for other documents.
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
        mode: Mode::Agent,
        maker: "maker m".to_owned(),
        policy: Policy::default(),
        is_shown: false,
        blocked: None,
        setup: AnswerSetup {
            absent: Vec::new(),
            purpose: Purpose::Answer,
            turn: ProtocolTurn(1),
            model: AnswerModel {
                name: "m".to_owned(),
                system: "be good".to_owned().into(),
                summarist: "fast".to_owned(),
                fallbacks: 0,
                effort: None,
                is_blind: false,
            },
            tools: [
                look(),
                change(),
                run(),
                ask::tool(),
                create_plan::tool(),
                switch_mode::tool(),
                todo_write::tool(),
            ]
            .map(Arc::new)
            .into_iter()
            .collect(),
            settings: Arc::default(),
            limits: AnswerLimits::default(),
            conversation: "conv_1".into(),
            response: "chat_1".into(),
            asker: Asker::Here,
            custom_mode: None,
            tier: Tier::None,
        },
    }
}

/// The same with another setup.
fn submission_with(message: &str, change: impl FnOnce(&mut AnswerSetup)) -> Submission {
    let mut submission = submission(message);
    change(&mut submission.setup);
    submission
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
            Effect::Preview { job, .. } => write!(line, "preview {}", job.0),
            Effect::Make { job, .. } => write!(line, "make {}", job.0),
            Effect::Check(jobs) => write!(line, "check {:?}", jobs.iter().map(|it| it.0).collect::<Vec<_>>()),
            Effect::StopJobs => write!(line, "stop jobs"),
            Effect::Store(rules) => write!(line, "store {rules:?}"),
            Effect::Expire(document) => write!(line, "expire {document}"),
            Effect::ServerAnswered { number, response } => {
                write!(
                    line,
                    "server {number} {:?} {:?}",
                    response.outcome,
                    response.answers.len()
                )
            }
            Effect::FindMarks => write!(line, "find marks"),
            Effect::StopModel => write!(line, "stop"),
            Effect::Summarise { brief, attempt } => {
                write!(line, "summarise {} attempt {attempt}", brief.messages.len())
            }
            Effect::Forgot => write!(line, "forgot"),
            Effect::Append(event) => match event {
                Event::UserMessage(message) => write!(line, "user {:?}", message.content),
                Event::Title(title) => write!(line, "title {:?}", title.text),
                Event::ResponseStart(start) => {
                    write!(line, "response of {}", start.model.as_deref().unwrap_or("-"))
                }
                Event::ThinkingDelta { delta } => write!(line, "thinking {delta:?}"),
                Event::DocumentStart(start) => write!(line, "+{} {}", start.sequence.unwrap_or(0), start.kind),
                Event::ContentDelta { delta, .. } => write!(line, "{delta:?}"),
                Event::DocumentUpdate { document, metadata } => {
                    write!(line, "{document} updated {}", Value::from(metadata.clone()))
                }
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

/// Checks the effects of each input, after a first one that submits `hi`.
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
            preview: Preview::default(),
            tier: Tier::Partial,
            gaps: String::new(),
            limit_reached: None,
            remotes: Vec::new(),
            is_new_repository: false,
            hook: HookVerdict::default(),
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
        is_folder: false,
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
        old: format!("old {at}\n"),
        new: format!("new {at}\n"),
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
        cell: None,
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
            preview: Preview::default(),
            tier: Tier::Partial,
            gaps: String::new(),
            limit_reached: None,
            remotes: Vec::new(),
            is_new_repository: false,
            hook: HookVerdict::default(),
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

/// A change was made, and is to be looked at.
fn made(job: u64) -> Input {
    let data = json!({ CHECKED: pending_check() });
    Input::Ran {
        job: JobId(job),
        result: Ok(Outcome {
            data,
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
        answers: vec![QuestionAnswer {
            question_id: "approval".to_owned(),
            selected_option_ids: vec![option.to_owned()],
            free_text: None,
            hunks: Vec::new(),
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
        let results = self.turn.memory.history.messages.iter().rev().find_map(|it| match it {
            ModelMessage::Results(results) => Some(results),
            ModelMessage::User(_) | ModelMessage::Assistant(_) => None,
        });
        let results = results.into_iter().flatten();
        results
            .map(|it| format!("{}{}: {}", if it.is_error { "!" } else { "" }, it.call, it.text))
            .collect()
    }
}
