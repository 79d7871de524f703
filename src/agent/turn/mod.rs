//! One answer from the first word to `done`: a state machine that does nothing itself.
//!
//! Inputs go in with the time, effects come out; whoever drives it appends the events, asks the model and drops its
//! stream. However an answer ends (well, cut, refused, cancelled), every document is closed and `done` comes once.

use chrono::{DateTime, SecondsFormat};
use serde_json::Map;
use unicode_segmentation::UnicodeSegmentation;

use super::{history, prompt, write::Writer};
use crate::{
    model::{EndReason, Failure, FailureKind, ModelMessage, ModelRequest, Piece, Tokens},
    protocol::{
        ConversationId, Done, Event, FinishReason, Message, Mode, Notice, ResponseId, ResponseStart, Severity, Status,
        Usage,
    },
};

/// What can happen to an answer.
#[derive(Clone, Debug)]
pub enum Input {
    /// Ignored while an answer is being made.
    Submit(Box<Submission>),
    Piece(Piece),
    Cancel,
}

/// A user's message and what is needed to answer it.
#[derive(Clone, Debug)]
pub struct Submission {
    pub message: Message,
    pub mode: Mode,
    /// Empty: the server's own.
    pub model: String,
    /// The conversation before the message.
    pub history: Vec<ModelMessage>,
    pub conversation: ConversationId,
    pub response: ResponseId,
    pub is_attended: bool,
}

/// What is to be done, in this order.
#[derive(Clone, Debug, PartialEq)]
#[expect(clippy::large_enum_variant, reason = "most are events, and each lives for one step")]
pub enum Effect {
    Append(Event),
    CallModel(ModelRequest),
    /// Drops the request that is out.
    StopModel,
}

/// The answer that is being made, if one is.
#[derive(Debug, Default)]
pub struct Turn {
    running: Option<Running>,
}

#[derive(Debug)]
struct Running {
    writer: Writer,
    /// Appended with the first thing the model says, because only then its name may be known.
    start: Option<ResponseStart>,
    began_ms: u64,
    conversation: ConversationId,
    response: ResponseId,
    tokens: Tokens,
    has_thought: bool,
}

/// A title is a line in a list.
const TITLE_GRAPHEMES: usize = 60;

impl Turn {
    pub fn is_running(&self) -> bool {
        self.running.is_some()
    }

    pub fn step(&mut self, input: Input, now_ms: u64) -> Vec<Effect> {
        match (input, self.running.take()) {
            (Input::Submit(submission), None) => {
                let (running, effects) = Running::begin(*submission, now_ms);
                self.running = Some(running);
                effects
            }
            (Input::Submit(_), running @ Some(_)) => {
                self.running = running;
                Vec::new()
            }
            (Input::Piece(_) | Input::Cancel, None) => Vec::new(),
            (Input::Cancel, Some(mut running)) => {
                let mut effects = vec![Effect::StopModel];
                let events = running.writer.flush();
                running.say(events, &mut effects);
                running.end(Status::Completed, FinishReason::Cancelled, now_ms, &mut effects);
                effects
            }
            (Input::Piece(piece), Some(mut running)) => {
                let mut effects = Vec::new();
                match piece {
                    Piece::End(reason) => running.finish(reason, now_ms, &mut effects),
                    Piece::Error(failure) => running.fail(&failure, now_ms, &mut effects),
                    piece => {
                        running.take(piece, &mut effects);
                        self.running = Some(running);
                    }
                }
                effects
            }
        }
    }
}

impl Running {
    fn begin(submission: Submission, now_ms: u64) -> (Self, Vec<Effect>) {
        let Submission {
            message,
            mode,
            model,
            mut history,
            conversation,
            response,
            is_attended,
        } = submission;
        let is_first = history.is_empty();
        let title = title(&message.content);
        history::push(&mut history, ModelMessage::user(&message.content));
        let request = ModelRequest {
            model: model.clone(),
            system: prompt::system(&prompt::Facts {
                mode,
                model: &model,
                ..prompt::Facts::default()
            }),
            messages: history,
            is_attended,
            ..ModelRequest::default()
        };
        let start = ResponseStart {
            id: Some(response.clone()),
            conversation_id: Some(conversation.clone()),
            model: Some(model).filter(|it| !it.is_empty()),
            mode: Some(mode),
            created: created(now_ms),
            capabilities: Vec::new(),
            extra: Map::new(),
        };
        let running = Self {
            writer: Writer::new(mode),
            start: Some(start),
            began_ms: now_ms,
            conversation,
            response,
            tokens: Tokens::default(),
            has_thought: false,
        };
        let mut effects = vec![Effect::Append(Event::UserMessage(message))];
        effects.extend(title.filter(|_| is_first).map(|it| Effect::Append(Event::Title(it))));
        effects.push(Effect::CallModel(request));
        (running, effects)
    }

    /// A piece that leaves the answer open.
    fn take(&mut self, piece: Piece, effects: &mut Vec<Effect>) {
        match piece {
            Piece::Progress(progress) => effects.push(Effect::Append(Event::Progress(progress))),
            Piece::Start { model, .. } => {
                if let Some(start) = &mut self.start
                    && start.model.is_none()
                {
                    start.model = model;
                }
            }
            Piece::Text(text) | Piece::Refusal(text) => {
                let events = self.writer.text(&text);
                self.say(events, effects);
            }
            Piece::Thinking(delta) => {
                self.has_thought = true;
                self.say(vec![Event::ThinkingDelta { delta }], effects);
            }
            Piece::CallDone { name, .. } => {
                // The name is the model's, and it must not open a fence of its own.
                let name = name.replace(|c: char| c == '`' || c.is_control(), " ");
                let mut events = self.writer.flush();
                events.extend(self.writer.text(&format!(
                    "*The model asked for the tool `{}`, but this conversation has no tools.*",
                    name.trim()
                )));
                events.extend(self.writer.flush());
                self.say(events, effects);
            }
            Piece::Usage(tokens) => self.tokens = tokens,
            Piece::Notice(notice) => self.say(vec![Event::Notice(notice)], effects),
            // A call is worth words once it is whole; what only its maker reads is of use in a loop; the ends are elsewhere.
            Piece::CallStart { .. }
            | Piece::CallArguments { .. }
            | Piece::ThinkingDone { .. }
            | Piece::End(_)
            | Piece::Error(_) => {}
        }
    }

    fn finish(&mut self, reason: EndReason, now_ms: u64, effects: &mut Vec<Effect>) {
        let is_cut = matches!(reason, EndReason::Length | EndReason::ContentFilter);
        let events = if is_cut { self.writer.cut() } else { self.writer.flush() };
        self.say(events, effects);
        let is_empty = self.writer.count() == 0;
        let finish_reason = match reason {
            EndReason::Stop | EndReason::ToolUse | EndReason::Pause | EndReason::Other(_) if is_empty => {
                let details = if self.has_thought {
                    "it thought and then said nothing: send the message again, or choose another model"
                } else {
                    "send the message again, or choose another model"
                };
                self.error("LLM_BAD_RESPONSE", "the model's answer is empty", details, effects);
                return self.end(Status::Error, FinishReason::Error, now_ms, effects);
            }
            EndReason::Stop | EndReason::ToolUse | EndReason::Pause => FinishReason::Stop,
            EndReason::Other(word) => {
                let notice = Notice {
                    severity: Severity::Info,
                    code: "unknown-finish-reason".to_owned(),
                    message: format!("the server gave `{word}` as the reason for the end"),
                    document: None,
                };
                self.say(vec![Event::Notice(notice)], effects);
                FinishReason::Stop
            }
            EndReason::Length => {
                let (message, details) = if is_empty && self.has_thought {
                    (
                        "the limit of tokens was used up by thinking",
                        "raise `max_tokens` of the provider, ask for less, or choose a model that thinks less",
                    )
                } else {
                    (
                        "the answer reached the limit of tokens",
                        "ask it to go on, or raise `max_tokens` of the provider; a full window needs a new conversation",
                    )
                };
                self.error("LLM_CONTEXT_LENGTH", message, details, effects);
                FinishReason::Length
            }
            EndReason::ContentFilter => {
                let details = "word the message differently, or choose another provider";
                self.error(
                    "LLM_REFUSAL",
                    "a filter at the provider's stopped the answer",
                    details,
                    effects,
                );
                FinishReason::Refusal
            }
            EndReason::Refusal => {
                if is_empty {
                    let details = "word the message differently, or choose another model";
                    self.error("LLM_REFUSAL", "the model declined to answer", details, effects);
                }
                FinishReason::Refusal
            }
        };
        self.end(Status::Completed, finish_reason, now_ms, effects);
    }

    fn fail(&mut self, failure: &Failure, now_ms: u64, effects: &mut Vec<Effect>) {
        let events = self.writer.cut();
        self.say(events, effects);
        self.error(failure.kind.code(), &failure.message, &failure.details(), effects);
        let finish_reason = match failure.kind {
            FailureKind::Interrupted => FinishReason::Interrupted,
            FailureKind::Key
            | FailureKind::Credit
            | FailureKind::NotFound
            | FailureKind::TooLong
            | FailureKind::Request
            | FailureKind::Busy
            | FailureKind::Overloaded
            | FailureKind::Unreachable
            | FailureKind::Garbled
            | FailureKind::Oversized => FinishReason::Error,
        };
        self.end(Status::Error, finish_reason, now_ms, effects);
    }

    fn error(&mut self, code: &str, message: &str, details: &str, effects: &mut Vec<Effect>) {
        let events = self.writer.error(code, "llm", message, details);
        self.say(events, effects);
    }

    /// Appends events of the response, after its start.
    fn say(&mut self, events: Vec<Event>, effects: &mut Vec<Effect>) {
        if events.is_empty() {
            return;
        }
        effects.extend(self.start.take().map(|it| Effect::Append(Event::ResponseStart(it))));
        effects.extend(events.into_iter().map(Effect::Append));
    }

    fn end(&mut self, status: Status, finish_reason: FinishReason, now_ms: u64, effects: &mut Vec<Effect>) {
        let tokens = self.tokens;
        let more = [("cachedTokens", tokens.cached), ("reasoningTokens", tokens.reasoning)];
        let done = Done {
            usage: Some(Usage {
                prompt_tokens: tokens.prompt,
                completion_tokens: tokens.completion,
                total_tokens: tokens.prompt.saturating_add(tokens.completion),
            }),
            id: Some(self.response.clone()),
            conversation_id: Some(self.conversation.clone()),
            status: Some(status),
            finish_reason: Some(finish_reason),
            duration_ms: Some(now_ms.saturating_sub(self.began_ms)),
            tool_call_count: Some(0),
            turn_count: Some(1),
            extra_usage: more
                .into_iter()
                .filter(|(_, count)| *count > 0)
                .map(|(name, count)| (name.to_owned(), count.into()))
                .collect(),
            ..Done::default()
        };
        self.say(vec![Event::Done(done)], effects);
    }
}

/// ISO 8601, UTC.
fn created(now_ms: u64) -> Option<String> {
    let time = DateTime::from_timestamp_millis(i64::try_from(now_ms).ok()?)?;
    Some(time.to_rfc3339_opts(SecondsFormat::Secs, true))
}

/// The first line that says something, cut.
fn title(message: &str) -> Option<String> {
    let line = message
        .lines()
        .map(|it| it.trim_matches(|c: char| c == '#' || c.is_whitespace()));
    let line = line.into_iter().find(|it| it.chars().any(char::is_alphanumeric))?;
    let words = line.split_whitespace().collect::<Vec<_>>().join(" ");
    let mut cut: String = words.graphemes(true).take(TITLE_GRAPHEMES).collect();
    if cut.len() < words.len() {
        cut.push('…');
    }
    Some(cut)
}

#[cfg(test)]
mod tests {
    use std::fmt::Write;

    use pretty_assertions::assert_eq;
    use proptest::prelude::*;
    use serde_json::{Value, json};

    use super::*;
    use crate::protocol::{DocumentId, Progress, Response};

    fn submission(message: &str) -> Submission {
        Submission {
            message: Message::user(message),
            mode: Mode::Agent,
            model: "m".to_owned(),
            history: Vec::new(),
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

    fn calls(name: &str) -> Input {
        Input::Piece(Piece::CallDone {
            slot: 0,
            id: "a".to_owned(),
            name: name.to_owned(),
            arguments: Ok(Map::new()),
            opaque: None,
        })
    }

    /// Effects in words, one line for each input.
    fn show(effects: &[Effect]) -> String {
        let mut line = String::new();
        for effect in effects {
            if !line.is_empty() {
                line.push_str(" | ");
            }
            match effect {
                Effect::CallModel(request) => write!(line, "call {} with {}", request.model, request.messages.len()),
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
        check(
            "a tool that nobody offered",
            [says("Let me look."), calls("gr`ep\n"), ends(EndReason::ToolUse)],
            r#"response of m | +1 text | "Let me look."
               -doc_001 | +2 text | "*The model asked for the tool `gr ep`, but this conversation has no tools.*" | -doc_002
               done completed stop"#,
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
        let want = "the server says: boom\ncheck the key: OPENAI_API_KEY or the provider's key in the configuration \
                    (`sheaf doctor` tests it)";
        assert_eq!(details, Some(json!(want)));
    }

    #[test]
    fn the_next_message_follows_the_conversation() {
        let mut turn = Turn::default();
        let mut next = submission("and now?");
        next.mode = Mode::Plan;
        next.history = vec![ModelMessage::user("hi"), ModelMessage::assistant("hello")];
        let effects = turn.step(Input::Submit(Box::new(next)), 0);
        assert_eq!(show(&effects), r#"user "and now?" | call m with 3"#, "no second title");
        let Some(Effect::CallModel(request)) = effects.last() else {
            panic!("{effects:?}")
        };
        assert!(request.system.contains("<plan_mode>"), "{}", request.system);
        assert_eq!(request.messages.last(), Some(&ModelMessage::user("and now?")));
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

    fn pieces() -> impl Strategy<Value = Piece> {
        let text = prop::sample::select(vec!["a", "\n", "```", "```rust\n", "1:2:a\n", " ", "~~~\n", "é"]);
        prop_oneof![
            6 => text.clone().prop_map(|it| Piece::Text(it.to_owned())),
            2 => text.clone().prop_map(|it| Piece::Thinking(it.to_owned())),
            1 => text.prop_map(|it| Piece::Refusal(it.to_owned())),
            1 => Just(Piece::CallDone { slot: 0, id: String::new(), name: "x".to_owned(), arguments: Ok(Map::new()), opaque: None }),
            1 => Just(Piece::Usage(Tokens { prompt: 1, completion: u64::MAX, ..Tokens::default() })),
        ]
    }

    fn endings() -> impl Strategy<Value = Input> {
        prop_oneof![
            Just(Input::Cancel),
            prop::sample::select(vec![
                EndReason::Stop,
                EndReason::ToolUse,
                EndReason::Length,
                EndReason::Refusal,
                EndReason::ContentFilter,
                EndReason::Other("x".to_owned()),
            ])
            .prop_map(ends),
            prop::sample::select(vec![FailureKind::Key, FailureKind::Interrupted, FailureKind::Oversized])
                .prop_map(fails),
        ]
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(256))]

        /// The strict writer's rules, whatever a model says and however it ends.
        #[test]
        fn every_answer_is_well_formed(said in prop::collection::vec(pieces(), 0..30), ending in endings()) {
            let mut turn = Turn::default();
            let mut effects = turn.step(submit("hi"), 0);
            for piece in said {
                effects.extend(turn.step(Input::Piece(piece), 1));
            }
            effects.extend(turn.step(ending, 2));
            prop_assert!(!turn.is_running());
            let events: Vec<Event> = effects
                .into_iter()
                .filter_map(|it| match it {
                    Effect::Append(event) => Some(event),
                    Effect::CallModel(_) | Effect::StopModel => None,
                })
                .filter(|it| !matches!(it, Event::UserMessage(_) | Event::Title(_)))
                .collect();
            prop_assert!(matches!(events.first(), Some(Event::ResponseStart(_))));
            prop_assert!(matches!(events.last(), Some(Event::Done(_))));
            let count = |is: fn(&Event) -> bool| events.iter().filter(|it| is(it)).count();
            prop_assert_eq!(count(|it| matches!(it, Event::ResponseStart(_))), 1);
            prop_assert_eq!(count(|it| matches!(it, Event::Done(_))), 1);
            let mut response = Response::default();
            let mut live: Vec<(DocumentId, String)> = Vec::new();
            for event in &events {
                match event {
                    Event::DocumentStart(start) => {
                        prop_assert_eq!(start.sequence, Some(live.len() as u64 + 1));
                        live.push((start.id.clone(), String::new()));
                    }
                    Event::ContentDelta { document, delta } => {
                        let (open, content) = live.last_mut().expect("a document is open");
                        prop_assert_eq!(&*open, document);
                        content.push_str(delta);
                    }
                    Event::DocumentEnd { document, final_content, .. } => {
                        let (open, content) = live.last().expect("a document is open");
                        prop_assert_eq!(open, document);
                        prop_assert_eq!(Some(content), final_content.as_ref());
                    }
                    _ => {}
                }
                response.apply(event, 0);
            }
            prop_assert!(response.documents.iter().all(|it| !it.is_open()));
            prop_assert_eq!(count(|it| matches!(it, Event::DocumentStart(_))), count(|it| matches!(it, Event::DocumentEnd { .. })));
        }
    }
}
