//! Making room: within an answer, before the model is asked or because its server refused, or as a turn of its own that the
//! user wants. One try for each request: what did not help is not tried again, but named.

use serde_json::{Map, Value, json};

use super::{Effect, Memory, Phase, Running};
use crate::{
    agent::{
        cut::{head, tokens},
        history::{
            compaction::{self, CannotCompact, CompactionPlan, Sizes},
            message_history::{self, MessageHistory},
            summary::SummaryRequest,
        },
        writer::document_end,
    },
    models::{EndReason, Failure, Piece, Tokens, catalogue},
    protocol::{
        Address, CompactionScope, DocumentId, Event, FinishReason, Kind, Severity, Status, TodoStatus,
        document::{COMPACT, Cause, Compaction, CompactionMethod},
    },
    text::figure,
    tools::object,
};

/// A compaction for which a model writes the summary.
#[derive(Debug)]
pub struct OpenCompaction {
    plan: CompactionPlan,
    cause: Cause,
    keep: String,
    shown: CompactionDocument,
    summary: String,
    attempt: u32,
}

/// The document that says so.
#[derive(Debug)]
struct CompactionDocument {
    document: DocumentId,
    metadata: Map<String, Value>,
    began_ms: u64,
}

/// A summary is asked for so often: of the model for side jobs, then of the conversation's own, with less to read.
const ATTEMPTS: u32 = 2;
/// More than this is no summary.
const SUMMARY_BYTES: usize = 64 << 10;

impl Running {
    /// The sizes of the next request.
    pub(super) fn sizes(&self, memory: &Memory) -> Sizes {
        let refused = memory
            .window
            .refused
            .as_ref()
            .filter(|it| it.0 == self.setup.model.name);
        let window = match (memory.window.tokens, refused.map(|it| it.1)) {
            (Some(window), Some(refused)) => Some(window.min(refused)),
            (window, refused) => window.or(refused),
        };
        Sizes {
            system: tokens(&self.setup.model.system),
            tools: self.offered().iter().map(|it| message_history::tool_size(it)).sum(),
            window,
        }
    }

    /// Before the model is asked: whether something else comes first.
    pub(super) fn compacts_first(&mut self, memory: &mut Memory) -> bool {
        if self.request.has_compacted || (memory.window.tokens.is_none() && memory.window.refused.is_none()) {
            return false;
        }
        let sizes = self.sizes(memory);
        if !sizes.is_full(&memory.history) || memory.history.tokens(sizes.fixed()) < memory.window.no_compaction_below {
            return false;
        }
        match compaction::plan(&memory.history, &sizes, Cause::Full) {
            Ok(plan) => {
                self.carry_out(plan, Cause::Full, String::new(), memory);
                true
            }
            Err(hopeless) => self.stays_full(&hopeless, sizes, memory),
        }
    }

    /// No room can be made. What still fits is sent, and said; what does not is the end.
    fn stays_full(&mut self, hopeless: &CannotCompact, sizes: Sizes, memory: &mut Memory) -> bool {
        self.request.has_compacted = true;
        let tokens = memory.history.tokens(sizes.fixed());
        // Our own estimate may be wrong: then the server decides.
        let is_over = memory.history.counted() > 0 && sizes.window.is_some_and(|it| tokens >= it);
        if is_over {
            self.does_not_fit(hopeless, sizes.window, "", memory);
            return true;
        }
        // It is said again when a good deal has come since.
        memory.window.no_compaction_below = tokens.saturating_add(tokens / 10);
        let (message, _) = hopeless.words(sizes.window);
        self.output.notice(Severity::Warning, "compacted", message);
        false
    }

    /// The end: what is too big, and what one can do.
    fn does_not_fit(&mut self, hopeless: &CannotCompact, window: Option<u64>, because: &str, memory: &mut Memory) {
        let (message, mut details) = hopeless.words(window);
        if !because.is_empty() {
            details = format!("{details}\n{because}");
        }
        self.output.error("LLM_CONTEXT_LENGTH", "llm", &message, &details);
        self.end(Status::Error, FinishReason::Error, memory);
    }

    /// The server refused what was sent because it is too long.
    pub(super) fn overflowed(&mut self, failure: &Failure, memory: &mut Memory) {
        let sizes = self.sizes(memory);
        let tokens = memory.history.tokens(sizes.fixed());
        if self.request.has_compacted {
            let hopeless = compaction::biggest(&memory.history, &sizes);
            self.keep_text(memory);
            return self.does_not_fit(&hopeless, sizes.window, &failure.details(), memory);
        }
        // One that stands in may have a smaller window, which is none of the other's.
        if self.request.stand_in == 0 {
            memory.window.refused = Some((self.setup.model.name.clone(), tokens));
        }
        let sizes = Sizes {
            window: Some(self.sizes(memory).window.map_or(tokens, |it| it.min(tokens))),
            ..self.sizes(memory)
        };
        match compaction::plan(&memory.history, &sizes, Cause::Overflow) {
            Ok(plan) => {
                if self.request.has_output {
                    self.drop_part(memory);
                }
                self.carry_out(plan, Cause::Overflow, String::new(), memory);
            }
            Err(hopeless) => {
                self.keep_text(memory);
                self.does_not_fit(&hopeless, memory.window.tokens, &failure.details(), memory);
            }
        }
    }

    /// A turn of its own, in which nothing else happens.
    pub(super) fn compact(&mut self, wish: CompactionScope, memory: &mut Memory) {
        // Nothing was sent that could want an answer.
        self.request.sent = usize::MAX;
        match wish {
            CompactionScope::DropResult(address) => self.drop_result(address, memory),
            CompactionScope::Summary { keep } => {
                match compaction::plan(&memory.history, &self.sizes(memory), Cause::Asked) {
                    Ok(plan) => self.carry_out(plan, Cause::Asked, keep, memory),
                    Err(_) => {
                        let message = if memory.history.messages.is_empty() {
                            "no messages yet"
                        } else {
                            "all that a summary could stand for is in one already, or is too new"
                        };
                        let details = "say something first";
                        self.output.error("NOTHING_TO_COMPACT", "client", message, details);
                        self.stop(memory);
                    }
                }
            }
        }
    }

    fn drop_result(&mut self, address: Address, memory: &mut Memory) {
        let sizes = self.sizes(memory);
        let before = memory.history.tokens(sizes.fixed());
        let is_it = |it: &(&String, &Address)| *it.1 == address;
        let calls: Vec<String> = memory
            .history
            .places
            .iter()
            .filter(is_it)
            .map(|it| it.0.clone())
            .collect();
        let scale = memory.history.scale(sizes.fixed());
        if memory.history.drop_calls(&calls).0 == 0 {
            let message = format!("{address} is not a tool result that can be dropped");
            let details = "/context shows what takes room";
            self.output.error("NOTHING_TO_COMPACT", "client", &message, details);
            return self.stop(memory);
        }
        let after = scaled(&memory.history, &sizes, scale).min(before);
        memory.shortened(after);
        let shown = self.open_compaction(json!({ "result": address.to_string() }));
        let mark = Compaction {
            cause: Cause::Asked,
            way: CompactionMethod::Single,
            before_tokens: before,
            after_tokens: after,
            window_tokens: sizes.window,
            calls,
            ..Compaction::default()
        };
        let said = format!("{address} is no longer in context. You can still read it here.");
        self.close_compaction(shown, &said, &mark);
        self.stop(memory);
    }

    /// Carries out a plan.
    fn carry_out(&mut self, plan: CompactionPlan, cause: Cause, keep: String, memory: &mut Memory) {
        let arguments = if keep.trim().is_empty() {
            json!({})
        } else {
            json!({ "keep": keep })
        };
        let shown = self.open_compaction(arguments);
        self.request.has_compacted = true;
        if plan.way == CompactionMethod::Results {
            self.drop_old(shown, plan, cause, memory);
            return self.go_on(cause, memory);
        }
        let room = OpenCompaction {
            plan,
            cause,
            keep,
            shown,
            summary: String::new(),
            attempt: 0,
        };
        self.ask_for_summary(&room, memory);
        self.phase = Phase::Compaction(Box::new(room));
    }

    fn ask_for_summary(&mut self, room: &OpenCompaction, memory: &Memory) {
        self.request.tokens = Tokens::default();
        let told = &memory.history;
        let head = told.messages.get(..room.plan.at).unwrap_or_default();
        // The surroundings stay, so that they need no summary.
        let messages = head.iter().enumerate().filter(|(at, _)| told.opened_at != Some(*at));
        self.output.effects.push(Effect::Summarise {
            brief: SummaryRequest {
                messages: messages.map(|it| it.1.clone()).collect(),
                keep: room.keep.clone(),
                tokens: room.plan.summary.max(200),
                window: self.sizes(memory).window,
            },
            attempt: room.attempt,
        });
    }

    /// Takes a piece of the summary.
    pub(super) fn summary_piece(&mut self, piece: Piece, memory: &mut Memory) {
        let Phase::Compaction(mut room) = std::mem::replace(&mut self.phase, Phase::Leave) else {
            return;
        };
        match piece {
            Piece::Text(text) => {
                if room.summary.len() < SUMMARY_BYTES {
                    room.summary.push_str(&text);
                }
            }
            Piece::Progress(progress) => self.output.effects.push(Effect::Append(Event::Progress(progress))),
            Piece::Usage(tokens) => self.request.tokens = tokens,
            Piece::End(EndReason::Stop | EndReason::Length | EndReason::Other(_) | EndReason::Pause)
                if !room.summary.trim().is_empty() =>
            {
                self.pay_for_summary(room.attempt, memory);
                return self.summarised(*room, memory);
            }
            Piece::End(_) => return self.no_summary(*room, "no summary came", memory),
            Piece::Error(failure) => {
                let why = failure.message.to_string();
                return self.no_summary(*room, &why, memory);
            }
            Piece::Void => room.summary.clear(),
            Piece::Start { .. }
            | Piece::Thinking(_)
            | Piece::ThinkingDone { .. }
            | Piece::Searched(_)
            | Piece::CallStart { .. }
            | Piece::CallArguments { .. }
            | Piece::CallDone { .. }
            | Piece::Refusal(_)
            | Piece::Notice(_)
            | Piece::Seen(_) => {}
        }
        self.phase = Phase::Compaction(room);
    }

    fn pay_for_summary(&mut self, attempt: u32, memory: &mut Memory) {
        let tokens = std::mem::take(&mut self.request.tokens);
        let model = if attempt == 0 {
            &self.setup.model.summarist
        } else {
            &self.setup.model.name
        };
        let known = catalogue::known(model, &self.setup.settings.models);
        self.pay(&tokens, known.prices, memory);
    }

    fn summarised(&mut self, room: OpenCompaction, memory: &mut Memory) {
        let OpenCompaction {
            plan,
            cause,
            shown,
            summary,
            ..
        } = room;
        let sizes = self.sizes(memory);
        let scale = memory.history.scale(sizes.fixed());
        let limit = usize::try_from(plan.summary.max(200) * 6).unwrap_or(usize::MAX);
        let summary = summary.trim();
        let mut summary = head(summary, limit).unwrap_or(summary).trim_end().to_owned();
        summary.push_str(&open_todos(memory));
        let mut shorter = memory.history.clone();
        shorter.summarise(plan.at, &summary);
        let after = scaled(&shorter, &sizes, scale);
        if !compaction::is_worth(plan.before, after) {
            let why = format!(
                "a summary would save nothing: {} tokens would become {}",
                compaction::count(plan.before),
                compaction::count(after)
            );
            self.fail_compaction(shown, &why);
            return match cause {
                Cause::Asked => self.stop(memory),
                Cause::Full => self.go_on_without(plan.before, memory),
                Cause::Overflow => {
                    let hopeless = compaction::biggest(&memory.history, &sizes);
                    self.does_not_fit(&hopeless, sizes.window, "", memory);
                }
            };
        }
        memory.history = shorter;
        memory.shortened(after);
        let mark = plan.mark(cause, sizes.window, after);
        self.close_compaction(shown, &summary, &mark);
        self.output.effects.push(Effect::Forgot);
        self.go_on(cause, memory);
    }

    /// Leaves the history as it is, because a hook forbids the summary.
    pub(super) fn keep_history(&mut self, why: &str, memory: &mut Memory) {
        let Phase::Compaction(room) = std::mem::replace(&mut self.phase, Phase::Leave) else {
            return;
        };
        self.output.effects.push(Effect::StopModel);
        let OpenCompaction { plan, cause, shown, .. } = *room;
        self.uncompacted(shown, cause, plan.before, why, memory);
    }

    /// Asks once more, or does without.
    fn no_summary(&mut self, mut room: OpenCompaction, why: &str, memory: &mut Memory) {
        self.pay_for_summary(room.attempt, memory);
        room.attempt += 1;
        room.summary.clear();
        if room.attempt < ATTEMPTS {
            self.ask_for_summary(&room, memory);
            self.phase = Phase::Compaction(Box::new(room));
            return;
        }
        let OpenCompaction { plan, cause, shown, .. } = room;
        let (count, saved) = memory.history.droppable(plan.at);
        if count > 0 && cause != Cause::Asked && compaction::is_worth(plan.before, plan.before.saturating_sub(saved)) {
            let plan = CompactionPlan {
                way: CompactionMethod::Results,
                ..plan
            };
            self.drop_old(shown, plan, cause, memory);
            return self.go_on(cause, memory);
        }
        self.uncompacted(shown, cause, plan.before, why, memory);
    }

    /// The history stays as it is.
    fn uncompacted(&mut self, shown: CompactionDocument, cause: Cause, tokens: u64, why: &str, memory: &mut Memory) {
        self.fail_compaction(shown, why);
        match cause {
            Cause::Asked => self.stop(memory),
            Cause::Full => self.go_on_without(tokens, memory),
            Cause::Overflow => {
                let hopeless = compaction::biggest(&memory.history, &self.sizes(memory));
                let because = format!("no summary could be made: {why}");
                self.does_not_fit(&hopeless, memory.window.tokens, &because, memory);
            }
        }
    }

    /// There is still a little room: the answer goes on, and it is tried again when more has come.
    fn go_on_without(&mut self, tokens: u64, memory: &mut Memory) {
        memory.window.no_compaction_below = tokens.saturating_add(tokens / 10);
        self.request(memory);
    }

    /// Puts lines in the place of old results.
    fn drop_old(&mut self, shown: CompactionDocument, plan: CompactionPlan, cause: Cause, memory: &mut Memory) {
        let sizes = self.sizes(memory);
        let scale = memory.history.scale(sizes.fixed());
        let (count, _) = memory.history.drop_results(plan.at);
        let after = scaled(&memory.history, &sizes, scale).min(plan.before);
        memory.shortened(after);
        let count = figure::count(count, "old result", "old results");
        let said = format!(
            "Removed {} of tools from context. You can still read them here.",
            count.as_str()
        );
        let mark = plan.mark(cause, sizes.window, after);
        self.close_compaction(shown, &said, &mark);
    }

    fn go_on(&mut self, cause: Cause, memory: &mut Memory) {
        match cause {
            Cause::Asked => self.stop(memory),
            Cause::Full | Cause::Overflow => self.request(memory),
        }
    }

    fn open_compaction(&mut self, arguments: Value) -> CompactionDocument {
        self.calls.count += 1;
        let id = format!("{COMPACT}_{}", self.output.writer.count() + 1);
        let mut metadata = object(json!({ "toolName": COMPACT, "toolCallId": id }));
        let mut events = Vec::new();
        let document = self.output.writer.begin(Kind::ToolCall, metadata.clone(), &mut events);
        metadata.insert("arguments".into(), arguments.clone());
        events.push(Event::ToolCallStart {
            document: document.clone(),
            tool_name: COMPACT.to_owned(),
            tool_call_id: Some(id),
        });
        events.push(Event::ToolCallArguments {
            document: document.clone(),
            arguments,
        });
        self.output.say(events);
        CompactionDocument {
            document,
            metadata,
            began_ms: self.output.now_ms,
        }
    }

    fn close_compaction(&mut self, mut shown: CompactionDocument, said: &str, mark: &Compaction) {
        shown.metadata.insert("compaction".into(), mark.to_json());
        let data = json!({
            "content": said, "beforeTokens": mark.before_tokens, "afterTokens": mark.after_tokens,
        });
        self.end_compaction(shown, json!({ "status": "success", "data": data }));
    }

    fn fail_compaction(&mut self, shown: CompactionDocument, why: &str) {
        self.end_compaction(shown, json!({ "status": "error", "data": why }));
    }

    fn end_compaction(&mut self, mut shown: CompactionDocument, result: Value) {
        let took = self.output.now_ms.saturating_sub(shown.began_ms);
        shown.metadata.insert("result".into(), result.clone());
        shown.metadata.insert("duration_ms".into(), took.into());
        let events = vec![
            Event::ToolResult {
                document: shown.document.clone(),
                result,
                duration_ms: Some(took),
            },
            document_end(shown.document, shown.metadata),
        ];
        self.output.say(events);
    }

    /// The user stopped it: everything stays as it was.
    pub(super) fn cancel_compaction(&mut self, memory: &mut Memory) {
        if !matches!(self.phase, Phase::Compaction(_)) {
            return;
        }
        let Phase::Compaction(room) = std::mem::replace(&mut self.phase, Phase::Leave) else {
            return;
        };
        self.output.effects.push(Effect::StopModel);
        self.pay_for_summary(room.attempt, memory);
        self.fail_compaction(room.shown, "cancelled");
    }
}

/// Tokens of a request, estimated, where the server's count was so many times as much.
fn scaled(told: &MessageHistory, sizes: &Sizes, scale: f64) -> u64 {
    ((sizes.fixed() + told.size_of(0..)) as f64 * scale) as u64
}

/// The open todos as Markdown, which the agent knows better than a summary could say; may be empty.
fn open_todos(memory: &Memory) -> String {
    let is_open = |it: &&crate::transcript::Todo| !matches!(it.status, TodoStatus::Completed | TodoStatus::Cancelled);
    let lines: String = memory
        .todos
        .list
        .iter()
        .filter(is_open)
        .map(|it| format!("\n- [{}] {} ({})", it.id, it.content, it.status.as_str()))
        .collect();
    if lines.is_empty() {
        return String::new();
    }
    format!("\n\n## Todos that are open{lines}")
}
