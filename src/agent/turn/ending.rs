//! What happens when the model stops: calls to carry out, another request, or the end of the answer.

use serde_json::{Map, Value};

use super::{CALLS_PER_STEP, Effect, Memory, NO_ANSWER, Phase, Running, Steered};
use crate::{
    models::{EndReason, Failure, FailureKind, Part, Said, Tokens},
    protocol::{DocumentId, Done, Event, FinishReason, Mode, Outcome as Dealt, Severity, Status, Usage},
};

/// Pauses in a row after which a server is not asked again.
const PAUSES_MOST: u32 = 5;

impl Running {
    /// The model has ended its message.
    pub(super) fn stopped(&mut self, reason: EndReason, memory: &mut Memory) {
        let is_cut = matches!(reason, EndReason::Length | EndReason::ContentFilter);
        let has_calls = self.request.said.iter().any(|it| matches!(it, Said::Call(_)));
        let events = if is_cut {
            self.output.writer.cut()
        } else if has_calls {
            self.output.writer.flush()
        } else {
            self.output.writer.finish()
        };
        self.output.say(events);
        self.count_tokens(memory);
        self.say_unpriced(memory);
        let said = std::mem::take(&mut self.request.said);
        let is_over = matches!(reason, EndReason::ContentFilter | EndReason::Refusal);
        let mut calls = Vec::new();
        let mut kept = Vec::new();
        for part in said {
            match part {
                // What a refusal calls is not carried out, and has no result that the server would wait for.
                Said::Call(_) if is_over => {}
                Said::Call(call) => {
                    calls.push(call.clone());
                    kept.push(Said::Call(call));
                }
                Said::Text(_) | Said::Opaque(_) => kept.push(part),
            }
        }
        let has_text = kept
            .iter()
            .any(|it| matches!(it, Said::Text(it) if !it.trim().is_empty()));
        if self.request.asked_behind > 0 {
            let behind = DocumentId::numbered(self.request.asked_behind);
            memory.history.border(self.setup.turn, Some(behind));
        }
        self.request.has_compacted = false;
        memory.assistant(kept);
        // Whether tools were called is seen in the calls: servers write all kinds of reasons beside them.
        if !calls.is_empty() {
            self.guard.pauses = 0;
            return self.begin_batch(calls, memory);
        }
        let finish_reason = match reason {
            EndReason::Pause if self.guard.pauses < PAUSES_MOST => {
                self.guard.pauses += 1;
                return self.ask_model(memory);
            }
            EndReason::Stop | EndReason::ToolUse | EndReason::Pause | EndReason::Other(_) if !has_text => {
                return self.said_nothing(memory);
            }
            EndReason::Stop | EndReason::ToolUse | EndReason::Pause => FinishReason::Stop,
            EndReason::Other(word) => {
                let text = format!("the server gave `{word}` as the reason for the end");
                self.output.notice(Severity::Info, "unknown-finish-reason", text);
                FinishReason::Stop
            }
            EndReason::Length => {
                let (message, details) = if !has_text && self.output.has_thought {
                    (
                        "the limit of tokens was used up by thinking",
                        "raise `max_tokens` of the provider, ask for less, or choose a model that thinks less",
                    )
                } else {
                    (
                        "the answer reached the limit of tokens",
                        "ask it to continue, or raise `max_tokens` of the provider; a full window needs a new \
                         conversation",
                    )
                };
                self.output.error("LLM_CONTEXT_LENGTH", "llm", message, details);
                FinishReason::Length
            }
            EndReason::ContentFilter => {
                let details = "word the message differently, or choose another provider";
                let message = "a filter at the provider's stopped the answer";
                self.output.error("LLM_REFUSAL", "llm", message, details);
                FinishReason::Refusal
            }
            EndReason::Refusal => {
                // A refusal in the model's own words speaks for itself.
                if !self.request.has_declined {
                    let message = if has_text {
                        "the model declined to continue; what it wrote is not a complete answer"
                    } else {
                        "the model declined to answer"
                    };
                    let details = "word the message differently, or choose another model";
                    self.output.error("LLM_REFUSAL", "llm", message, details);
                }
                FinishReason::Refusal
            }
        };
        // Who said something in the meantime waits for an answer to that.
        if matches!(finish_reason, FinishReason::Stop | FinishReason::Length) && !self.steering.is_empty() {
            return self.ask_model(memory);
        }
        if finish_reason == FinishReason::Stop && self.mode == Mode::Debug && !self.setup.tools.is_empty() {
            self.phase = Phase::Marks;
            self.output.effects.push(Effect::FindMarks);
            return;
        }
        self.end(Status::Completed, finish_reason, memory);
    }

    fn said_nothing(&mut self, memory: &mut Memory) {
        if !self.steering.is_empty() {
            return self.ask_model(memory);
        }
        // After its calls a model may have nothing to add.
        if self.guard.calls > 0 && self.output.writer.count() > 0 {
            return self.stop(memory);
        }
        let details = if self.output.has_thought {
            "it thought and then said nothing: send the message again, or choose another model"
        } else {
            "send the message again, or choose another model"
        };
        self.output
            .error("LLM_BAD_RESPONSE", "llm", "the model's answer is empty", details);
        self.end(Status::Error, FinishReason::Error, memory);
    }

    /// The request failed. What was called in it is not carried out: it may be half of what was meant.
    pub(super) fn failed(&mut self, failure: &Failure, memory: &mut Memory) {
        self.output.cut();
        self.count_tokens(memory);
        let is_passing = matches!(
            failure.kind,
            FailureKind::Busy | FailureKind::Overloaded | FailureKind::Unreachable
        );
        if !self.request.has_output && is_passing && self.request.stand_in < self.setup.model.fallbacks {
            self.request.stand_in += 1;
            memory.made_by(format!("stand-in {}", self.request.stand_in));
            let text = format!("{}: using another model", failure.message);
            self.output.notice(Severity::Warning, "stand-in", text);
            return self.ask_model(memory);
        }
        if failure.kind == FailureKind::TooLong && !self.request.said.iter().any(|it| matches!(it, Said::Call(_))) {
            return self.overflowed(failure, memory);
        }
        self.keep_text(memory);
        self.output
            .error(failure.kind.code(), "llm", &failure.message, &failure.details());
        let finish_reason = if failure.kind == FailureKind::Interrupted {
            FinishReason::Interrupted
        } else {
            FinishReason::Error
        };
        self.end(Status::Error, finish_reason, memory);
    }

    /// Ends the answer because the model's message has more than [`CALLS_PER_STEP`] calls. None of them is carried out.
    pub(super) fn too_many_calls(&mut self, memory: &mut Memory) {
        self.output.effects.push(Effect::StopModel);
        self.output.cut();
        self.count_tokens(memory);
        self.keep_text(memory);
        let message = format!("the model made more than {CALLS_PER_STEP} calls in one step");
        let details = "none of them was carried out: ask for less at a time, or choose another model";
        self.output.error("LLM_BAD_RESPONSE", "llm", &message, details);
        self.end(Status::Error, FinishReason::Error, memory);
    }

    /// Drops the message so far: it broke off and is asked for again. What the user has read of it stays, as incomplete.
    pub(super) fn drop_part(&mut self, memory: &mut Memory) {
        self.output.cut();
        self.count_tokens(memory);
        self.request.said.clear();
        self.request.garbled.clear();
        self.request.has_output = false;
        self.request.has_declined = false;
        let text = "the answer broke off and is asked for again; what came of it is not part of the conversation";
        self.output
            .notice(Severity::Warning, crate::protocol::ANSWER_DROPPED, text.to_owned());
    }

    /// Keeps the text of an interrupted message, which the user has read.
    pub(super) fn keep_text(&mut self, memory: &mut Memory) {
        let said = std::mem::take(&mut self.request.said);
        memory.assistant(said.into_iter().filter(|it| matches!(it, Said::Text(_))).collect());
    }

    /// Ends the answer because the user stopped it: calls are dropped, questions closed.
    pub(super) fn cancel(&mut self, memory: &mut Memory) {
        if matches!(self.phase, Phase::Model) {
            self.output.effects.push(Effect::StopModel);
        }
        self.output.finish();
        self.cancel_compaction(memory);
        self.count_tokens(memory);
        self.drop_batch(memory);
        self.close_questions(Dealt::Cancelled);
        self.keep_text(memory);
        // Who stops an answer wants to think again: what was said to it goes back to where it was written.
        self.steering.clear();
        self.end(Status::Completed, FinishReason::Cancelled, memory);
    }

    /// Takes the places of instrumentation marks when the answer would end.
    pub(super) fn marks(&mut self, marks: &[String], memory: &mut Memory) {
        if !self.steering.is_empty() {
            return self.ask_model(memory);
        }
        if marks.is_empty() {
            if self.has_reminded {
                let mut events = self.output.writer.text("*All marks of instrumentation are removed.*");
                events.extend(self.output.writer.flush());
                self.output.say(events);
            }
            return self.stop(memory);
        }
        let shown = marks
            .iter()
            .take(MARKS_SHOWN)
            .map(String::as_str)
            .collect::<Vec<_>>()
            .join(", ");
        let more = marks.len().saturating_sub(MARKS_SHOWN);
        let list = if more > 0 {
            format!("{shown} and {more} more")
        } else {
            shown
        };
        if self.has_reminded {
            if self.setup.asker.is_attended() {
                return self.ask_to_reproduce(&list);
            }
            return self.leave_marks(&list, memory);
        }
        self.has_reminded = true;
        memory.user(vec![Part::Text(format!(
            "<system_reminder>\nInstrumentation is left at: {list}. If the fix is confirmed, remove every mark now. If the user has \
             to reproduce the fault first, ask them to with the `ask` tool, and say exactly how.\n</system_reminder>"
        ))]);
        self.ask_model(memory);
    }

    /// The end with marks left: it is not done.
    pub(super) fn leave_marks(&mut self, list: &str, memory: &mut Memory) {
        let message = format!("instrumentation is left: {list}");
        let details = "reproduce the fault and say so, or ask to have the marks removed";
        self.output.error("TOOL_FAILED", "debug", &message, details);
        self.end(Status::Completed, FinishReason::AwaitingInput, memory);
    }

    /// The end, once: everything that is open was closed before.
    /// Ends the answer as complete.
    pub(super) fn stop(&mut self, memory: &mut Memory) {
        self.end(Status::Completed, FinishReason::Stop, memory);
    }

    /// Ends the answer with `done`; messages that were not heard join the history.
    pub(super) fn end(&mut self, status: Status, finish_reason: FinishReason, memory: &mut Memory) {
        // What was sent and not answered: the next message must not run into it, which would change what was sent, and
        // the model should not take up what the user stopped.
        if memory.history.messages.len() == self.request.sent {
            memory.unanswered(match finish_reason {
                FinishReason::Cancelled => "(The user stopped this before an answer came.)",
                FinishReason::Stop => "(There is nothing to add.)",
                FinishReason::Length
                | FinishReason::AwaitingInput
                | FinishReason::MaxTurns
                | FinishReason::Refusal
                | FinishReason::Error
                | FinishReason::Interrupted
                | FinishReason::Other(_) => NO_ANSWER,
            });
        }
        // What was said too late for this answer is still heard with the next message.
        while let Some(Steered { message, parts, .. }) = self.steering.pop_front() {
            let events = self.output.writer.spoken(&message.content);
            self.output.say(events);
            memory.user(parts);
        }
        let Tokens {
            prompt,
            cached,
            cache_written,
            completion,
            reasoning,
        } = self.spending.tokens;
        let more = [
            ("cachedTokens", cached),
            ("cacheWrittenTokens", cache_written),
            ("reasoningTokens", reasoning),
            ("contextTokens", memory.history.counted()),
            ("contextWindow", memory.window.tokens.unwrap_or_default()),
        ];
        let done = Done {
            usage: Some(Usage {
                prompt_tokens: prompt,
                completion_tokens: completion,
                total_tokens: prompt.saturating_add(completion),
            }),
            id: Some(self.setup.response.clone()),
            conversation_id: Some(self.setup.conversation.clone()),
            status: Some(status),
            finish_reason: Some(finish_reason),
            duration_ms: Some(self.output.now_ms.saturating_sub(self.output.began_ms)),
            tool_call_count: Some(self.calls.count),
            turn_count: Some(u64::from(self.spending.requests)),
            extra_usage: more
                .into_iter()
                .filter(|(_, count)| *count > 0)
                .map(|(name, count)| (name.to_owned(), Value::from(count)))
                .chain(
                    self.spending
                        .cost
                        .filter(|it| *it > 0.0)
                        .map(|it| ("costUsd".to_owned(), Value::from(it))),
                )
                .collect::<Map<_, _>>(),
            ..Done::default()
        };
        self.output.say(vec![Event::Done(done)]);
        self.phase = Phase::Over;
    }
}

/// As many places are named.
const MARKS_SHOWN: usize = 10;
