//! An answer as the lines of Cursor's command line: `system`, `user`, `assistant`, `tool_call`, `thinking`, `result`.
//!
//! Text between two calls is a segment. With pieces wanted, a segment is printed as it grows, then once as a whole:
//! with a `model_call_id` before a call, without a timestamp at the very end. That last line contains only the last
//! segment, because readers of Cursor's output print it again.

use std::{
    collections::{HashMap, HashSet, VecDeque},
    path::PathBuf,
};

use serde_json::{Map, Value, json};

use super::{
    call::{self, Around, CursorCall, Outcome},
    text::{PrintedText, is_replaced, parts, trimmed},
};
use crate::{
    os::long_text::{LongText, note_read},
    protocol::{
        ANSWER_DROPPED, Document, DocumentId, Event, FinishReason, Kind, KindGroup, Response, ResponseChange, Turn,
        View, long_json::LongJson,
    },
    transcript::{Todos, Transcript},
};

/// Facts about the run, for the first line.
#[derive(Clone, Debug, Default)]
pub struct SessionInfo {
    /// Id to resume the conversation with.
    pub id: String,
    /// Absolute path.
    pub workspace: PathBuf,
    /// Source of the API key: `env`, `flag`, `settings`, `login` or `none`.
    pub key: &'static str,
    /// Permissions of the run, in Cursor's words.
    pub permission: &'static str,
}

/// Turns log entries into Cursor's lines.
#[derive(Debug, Default)]
pub struct CursorStream {
    session: SessionInfo,
    /// True if text is printed in pieces as it grows.
    is_partial: bool,
    has_thinking: bool,
    growing: GrowingText,
    calls: HashMap<DocumentId, CursorCall>,
    edit: EditCall,
    is_thinking: bool,
    requests: u64,
    denials: Vec<Value>,
    lines: Vec<LongJson>,
}

/// Place of the text in a line of the model.
const ASSISTANT_TEXT: &str = "/message/content/0/text";

/// Text of the answer.
#[derive(Debug, Default)]
struct GrowingText {
    /// All text since the message.
    whole: LongText,
    /// Byte offset in `whole` of the current segment.
    segment: usize,
    /// Document whose text is being printed, and how much of it has been.
    current: Option<(DocumentId, PrintedText)>,
    /// Last text if it broke off, and its byte offset in `whole`: what comes instead of it replaces it.
    broken: Option<(DocumentId, usize)>,
    /// True if `whole` has a text that broke off and was not replaced.
    is_incomplete: bool,
    /// True once the link says what the model wrote: documents of text are then not printed.
    is_said: bool,
    /// Documents that stream at the same time and wait for their turn.
    waiting: VecDeque<DocumentId>,
}

/// A file edit, which several documents may describe.
#[derive(Debug, Default)]
struct EditCall {
    /// Documents of an edit that is not complete yet.
    edits: Vec<Document>,
    /// Call id, and the number of its files printed so far.
    edited_files: (String, usize),
    /// A failed edit, until the error after it says why.
    failed: Option<Vec<Document>>,
}

impl CursorStream {
    pub fn new(session: SessionInfo, is_partial: bool, has_thinking: bool) -> Self {
        Self {
            session,
            is_partial,
            has_thinking,
            ..Self::default()
        }
    }

    /// Returns the first line.
    pub fn init(&self, model: Option<&str>) -> Value {
        json!({
            "type": "system",
            "subtype": "init",
            "apiKeySource": self.session.key,
            "cwd": self.session.workspace,
            "session_id": self.session.id,
            "model": model.filter(|it| !it.is_empty()).unwrap_or("Auto"),
            "permissionMode": self.session.permission,
        })
    }

    /// Returns the lines for one log entry. `change` is its effect on the exchange with index `at`.
    pub fn take(
        &mut self,
        event: &Event,
        change: ResponseChange,
        at: usize,
        at_ms: u64,
        transcript: &Transcript,
    ) -> Vec<LongJson> {
        if let Event::UserMessage(message) = event {
            self.begin();
            self.user(&message.content);
            return std::mem::take(&mut self.lines);
        }
        let Some(exchange) = transcript.exchanges.get(at) else {
            return Vec::new();
        };
        let response = &exchange.response;
        let context = EntryContext {
            response,
            todos: &transcript.todos,
            at_ms,
        };
        if let Event::Said { delta } = event {
            self.say(delta, at_ms);
        }
        if let Event::Notice(notice) = event
            && notice.code == ANSWER_DROPPED
        {
            self.growing.whole.truncate(self.growing.segment);
        }
        if let Event::ThinkingDelta { delta } = event {
            self.think(delta, at_ms);
        }
        match change {
            ResponseChange::Opened(nth) | ResponseChange::Grew(nth) => {
                if let Some(document) = response.documents.get(nth) {
                    self.update(document, &context);
                }
            }
            ResponseChange::Ended(nth) => {
                if let Some(document) = response.documents.get(nth) {
                    self.update(document, &context);
                    self.finish_document(document, &context);
                }
            }
            ResponseChange::Finished => self.finish_response(&context),
            ResponseChange::Nothing
            | ResponseChange::Response
            | ResponseChange::Thinking
            | ResponseChange::Notice
            | ResponseChange::Acted(_)
            | ResponseChange::Updated(_) => {}
        }
        std::mem::take(&mut self.lines)
    }

    /// Returns the last line of a successful run. `structured` is the value of an answer that had to have a form, `question`
    /// the document of the question that waits for an answer.
    pub fn result(
        &self,
        response: &Response,
        took_ms: u64,
        structured: Option<&Value>,
        question: Option<&Document>,
    ) -> LongJson {
        let took_ms = response
            .ending
            .as_ref()
            .and_then(|it| it.duration_ms)
            .unwrap_or(took_ms);
        let mut line = members(json!({
            "type": "result",
            "subtype": "success",
            "duration_ms": took_ms,
            "duration_api_ms": took_ms,
            "is_error": false,
            "result": structured.map(Value::to_string).unwrap_or_default(),
            "session_id": self.session.id,
        }));
        if let Some(value) = structured {
            line.insert("structured_output".to_owned(), value.clone());
        } else if self.is_incomplete() {
            line.insert("incomplete".to_owned(), true.into());
        }
        // Readers of Cursor's output know only answers that end by themselves.
        let reason = response.ending.as_ref().map(|it| &it.finish_reason);
        let reason = question.map_or(reason, |_| Some(&FinishReason::AwaitingInput));
        if let Some(reason) = reason.filter(|it| **it != FinishReason::Stop) {
            line.insert("finishReason".to_owned(), reason.as_str().into());
        }
        if let Some(question) = question {
            let questions = question
                .metadata
                .get("questions")
                .filter(|it| *it != &json!([]))
                .cloned();
            let in_words = || json!([{ "text": question.text() }]);
            line.insert("questions".to_owned(), questions.unwrap_or_else(in_words));
        }
        if let Some(id) = &response.origin.id {
            line.insert("request_id".to_owned(), id.as_str().into());
        }
        if let Some(turns) = response.ending.as_ref().and_then(|it| it.turn_count) {
            line.insert("num_turns".to_owned(), turns.into());
        }
        if let Some(dollars) = response.extra_usage.get("costUsd").filter(|it| it.is_number()) {
            line.insert("total_cost_usd".to_owned(), dollars.clone());
        }
        if response.usage.total_tokens > 0 {
            let count = |name: &str| {
                response
                    .extra_usage
                    .get(name)
                    .and_then(Value::as_u64)
                    .unwrap_or_default()
            };
            let usage = json!({
                "inputTokens": response.usage.prompt_tokens,
                "outputTokens": response.usage.completion_tokens,
                "cacheReadTokens": count("cachedTokens"),
                "cacheWriteTokens": count("cacheWrittenTokens"),
            });
            line.insert("usage".to_owned(), usage);
        }
        if !self.denials.is_empty() {
            line.insert("permission_denials".to_owned(), self.denials.clone().into());
        }
        let line = LongJson::from(Value::Object(line));
        if structured.is_some() {
            line
        } else {
            line.with("/result", self.growing.whole.clone())
        }
    }

    /// Returns true if the text has a part that broke off and that nothing came instead of.
    pub fn is_incomplete(&self) -> bool {
        self.growing.is_incomplete || self.growing.broken.is_some()
    }

    /// Returns the line for a question or an approval that waits for an answer: its document, as number `number` of `turn`.
    pub fn question(&self, turn: Turn, document: &Document, number: u64) -> Value {
        json!({
            "type": "clarification",
            "subtype": "requested",
            "document_id": document.id,
            "turn": turn,
            "document": document.to_json(number),
            "session_id": self.session.id,
        })
    }

    /// Returns the last line of a turn that failed, where another may follow it.
    pub fn failed(&self, response: &Response) -> LongJson {
        let errors = response.documents.iter().filter_map(|it| match it.view() {
            View::Error(it) if it.details.is_empty() => Some(it.content.to_owned()),
            View::Error(it) => Some(format!("{}\n{}", it.content.trim_end(), it.details)),
            _ => None,
        });
        let errors: Vec<String> = errors.collect();
        let is_cancelled = response
            .ending
            .as_ref()
            .is_some_and(|it| it.finish_reason == FinishReason::Cancelled);
        let line = json!({
            "type": "result",
            "subtype": if is_cancelled { "cancelled" } else { "error" },
            "is_error": true,
            "result": "",
            "errors": errors,
            "session_id": self.session.id,
        });
        LongJson::from(line).with("/result", self.growing.whole.clone())
    }

    /// Forgets what belongs to the turn that has ended.
    pub fn end_turn(&mut self) {
        self.denials.clear();
    }

    fn begin(&mut self) {
        let denials = std::mem::take(&mut self.denials);
        let requests = self.requests;
        *self = Self {
            requests,
            denials,
            ..Self::new(self.session.clone(), self.is_partial, self.has_thinking)
        };
    }

    fn user(&mut self, text: &str) {
        let line = json!({
            "type": "user",
            "message": { "role": "user", "content": [{ "type": "text", "text": text }] },
            "session_id": self.session.id,
        });
        self.lines.push(line.into());
    }

    /// Adds text exactly as the model wrote it.
    fn say(&mut self, delta: &str, at_ms: u64) {
        self.end_thinking(at_ms);
        self.growing.is_said = true;
        self.growing.whole.push_str(delta);
        if self.is_partial {
            self.print_piece(delta.into(), at_ms);
        }
    }

    fn print_piece(&mut self, delta: LongText, at_ms: u64) {
        if !delta.is_empty() {
            let mut line = self.assistant();
            line.insert("timestamp_ms".to_owned(), at_ms.into());
            self.push_text(line, delta);
        }
    }

    /// Adds a line of [`Self::assistant`].
    fn push_text(&mut self, line: Map<String, Value>, text: LongText) {
        self.lines
            .push(LongJson::from(Value::Object(line)).with(ASSISTANT_TEXT, text));
    }

    fn think(&mut self, delta: &str, at_ms: u64) {
        if self.has_thinking && !delta.is_empty() {
            self.is_thinking = true;
            let line = json!({
                "type": "thinking",
                "subtype": "delta",
                "text": delta,
                "session_id": self.session.id,
                "timestamp_ms": at_ms,
            });
            self.lines.push(line.into());
        }
    }

    fn end_thinking(&mut self, at_ms: u64) {
        if std::mem::take(&mut self.is_thinking) {
            let line = json!({
                "type": "thinking",
                "subtype": "completed",
                "session_id": self.session.id,
                "timestamp_ms": at_ms,
            });
            self.lines.push(line.into());
        }
    }

    /// Handles a document that began or grew.
    fn update(&mut self, document: &Document, context: &EntryContext<'_>) {
        self.end_thinking(context.at_ms);
        self.drop_broken(context.response);
        match document.kind.row().group {
            // What the user said during the answer.
            KindGroup::Text if document.metadata.get("role").is_some_and(|it| it == "user") => {
                if !document.is_open() {
                    self.flush_segment(context.at_ms);
                    self.user(document.text());
                }
            }
            KindGroup::Text if self.growing.is_said => {}
            KindGroup::Text | KindGroup::Unknown => self.update_text(document, context),
            KindGroup::Action | KindGroup::Page if document.kind != Kind::FileEdit => {
                // Their arguments are complete only at their end.
                let is_late = !matches!(document.kind, Kind::ToolCall | Kind::TerminalCommand);
                if !call::is_call(document) || self.calls.contains_key(&document.id) || (is_late && document.is_open())
                {
                    return;
                }
                self.settle_failed(None, context);
                let Some(call) = call::call(document, self.call_context(context)) else {
                    return;
                };
                self.start(&call, context.at_ms);
                self.calls.insert(document.id.clone(), call);
            }
            KindGroup::Action | KindGroup::Page | KindGroup::Failure => {}
        }
    }

    /// Prints new text of a document. Other documents that stream at the same time wait for its end.
    fn update_text(&mut self, document: &Document, context: &EntryContext<'_>) {
        match &self.growing.current {
            Some((id, _)) if *id == document.id => {}
            Some(_) => {
                if !self.growing.waiting.contains(&document.id) {
                    self.growing.waiting.push_back(document.id.clone());
                }
                return;
            }
            None => self.growing.current = Some((document.id.clone(), PrintedText::default())),
        }
        self.grow(document, context.at_ms);
        if document.is_open() {
            return;
        }
        self.end_text(document, context.response);
        while let Some(id) = self.growing.waiting.pop_front() {
            let Some(next) = context.response.get(&id) else {
                continue;
            };
            self.growing.current = Some((id, PrintedText::default()));
            self.grow(next, context.at_ms);
            if next.is_open() {
                return;
            }
            self.end_text(next, context.response);
        }
    }

    /// Ends the text that is being printed.
    fn end_text(&mut self, document: &Document, response: &Response) {
        let printed = self.growing.current.take().map_or(0, |it| it.1.bytes - it.1.newlines);
        if document.is_incomplete() && printed > 0 {
            let begins = self.growing.whole.len().saturating_sub(printed);
            self.growing.broken = Some((document.id.clone(), begins));
            self.drop_broken(response);
        }
    }

    /// Takes back a text that broke off once something has come instead of it.
    fn drop_broken(&mut self, response: &Response) {
        let Some((id, begins)) = &self.growing.broken else {
            return;
        };
        if response.get(id).is_some_and(|it| is_replaced(response, it)) {
            let whole = self.growing.whole.as_str();
            let before = whole.get(..*begins).unwrap_or_default();
            let kept = before.trim_end_matches('\n').len().max(self.growing.segment);
            self.growing.whole.truncate(kept);
            self.growing.broken = None;
        }
    }

    fn grow(&mut self, document: &Document, at_ms: u64) {
        let Some((id, mut printed)) = self.growing.current.take() else {
            return;
        };
        // Code is printed with its fence, whose length depends on the complete text.
        let fenced = document.kind != Kind::Text;
        if !(fenced && document.is_open()) {
            let text = document.text();
            // An open document only grows; its end may replace the text.
            if !document.is_open() && !fenced && !printed.begins(text) {
                printed = PrintedText::default();
            }
            // Trailing blanks wait: nothing else may follow.
            let new = if fenced {
                trimmed(document.plain_pieces())
            } else {
                let more = text.trim_end().get(printed.bytes..).filter(|it| !it.is_empty());
                more.map(Into::into).into_iter().collect()
            };
            let from = self.growing.whole.len();
            if !new.is_empty() && printed.bytes == 0 && from > self.growing.segment {
                self.growing.whole.push_str("\n\n");
            }
            for part in new.iter().flat_map(|it| parts(it)) {
                let is_start = printed.has_only_newlines();
                printed.push(part);
                let part = if is_start { part.trim_start_matches('\n') } else { part };
                self.growing.whole.push_str(part);
                note_read(part.len());
            }
            if self.is_partial {
                self.print_piece(self.growing.whole.from_byte(from), at_ms);
            }
        }
        self.growing.current = Some((id, printed));
    }

    fn finish_document(&mut self, document: &Document, context: &EntryContext<'_>) {
        match document.kind {
            Kind::FileEdit => self.add_edit(document, context),
            Kind::Error => {
                if let View::Error(it) = document.view() {
                    let details = if it.details.is_empty() {
                        String::new()
                    } else {
                        format!("\n{}", it.details)
                    };
                    self.settle_failed(Some(&format!("{}{details}", it.content)), context);
                }
            }
            _ => {
                let Some(call) = self.calls.remove(&document.id) else {
                    return;
                };
                let outcome = call::outcome(document, &call, self.call_context(context));
                self.note_denial(std::slice::from_ref(document), &call);
                self.complete(&call, &outcome);
            }
        }
    }

    /// Adds a document of an edit; prints the edit when all its hunks are there.
    fn add_edit(&mut self, document: &Document, context: &EntryContext<'_>) {
        let View::FileEdit(it) = document.view() else { return };
        let is_more = self.edit.edits.last().is_some_and(|last| match last.view() {
            View::FileEdit(last) => {
                last.tool_call_id == it.tool_call_id
                    && last.file_path == it.file_path
                    && it.hunk.is_some_and(|it| it.index > 1)
            }
            _ => false,
        });
        if !is_more {
            self.settle_edits(context);
        }
        let is_whole = it.hunk.is_none_or(|it| it.index >= it.count);
        self.edit.edits.push(document.clone());
        if is_whole {
            self.settle_edits(context);
        }
    }

    fn settle_edits(&mut self, context: &EntryContext<'_>) {
        let edits = std::mem::take(&mut self.edit.edits);
        if edits.is_empty() {
            return;
        }
        let is_failed = edits.first().is_some_and(|it| match it.view() {
            View::FileEdit(it) => it.applied == crate::protocol::Applied::Failed,
            _ => false,
        });
        self.settle_failed(None, context);
        if is_failed {
            self.edit.failed = Some(edits);
        } else {
            self.tell_edit(&edits, None, context);
        }
    }

    fn settle_failed(&mut self, why: Option<&str>, context: &EntryContext<'_>) {
        if let Some(edits) = self.edit.failed.take() {
            self.tell_edit(&edits, why, context);
        }
    }

    fn tell_edit(&mut self, edits: &[Document], why: Option<&str>, context: &EntryContext<'_>) {
        let id = edits.first().and_then(|it| it.metadata.get("toolCallId"));
        let id = id.and_then(Value::as_str).unwrap_or_default();
        if self.edit.edited_files.0 == id && !id.is_empty() {
            self.edit.edited_files.1 += 1;
        } else {
            self.edit.edited_files = (id.to_owned(), 0);
        }
        if let Some((call, outcome)) = call::edit(edits, self.edit.edited_files.1, why, self.call_context(context)) {
            self.start(&call, context.at_ms);
            self.note_denial(edits, &call);
            self.complete(&call, &outcome);
        }
    }

    fn note_denial(&mut self, documents: &[Document], call: &CursorCall) {
        let Some(document) = documents.first().filter(|it| call::is_rejected(it)) else {
            return;
        };
        let mut denial = members(json!({
            "tool": call.gist(),
            "call_id": call.id,
            "reason": document.metadata.get("reason"),
        }));
        if let Some(missing) = document.metadata.get("missing") {
            denial.insert("missing".to_owned(), missing.clone());
        }
        self.denials.push(Value::Object(denial));
    }

    /// Prints the current segment, if there is one.
    fn flush_segment(&mut self, at_ms: u64) {
        let segment = self.growing.whole.from_byte(self.growing.segment);
        if !segment.trim().is_empty() {
            self.requests += 1;
            let mut line = self.assistant();
            if self.is_partial {
                line.insert("timestamp_ms".to_owned(), at_ms.into());
                line.insert(
                    "model_call_id".to_owned(),
                    format!("{}-{}", self.session.id, self.requests).into(),
                );
            }
            self.push_text(line, segment);
        }
        self.growing.segment = self.growing.whole.len();
        self.growing.is_incomplete |= self.growing.broken.take().is_some();
    }

    /// Ends the current segment and begins a call.
    fn start(&mut self, call: &CursorCall, at_ms: u64) {
        self.flush_segment(at_ms);
        let line = json!({
            "type": "tool_call",
            "subtype": "started",
            "call_id": call.id,
            "tool_call": call.to_json(None),
            "session_id": self.session.id,
        });
        self.lines.push(line.into());
    }

    fn complete(&mut self, call: &CursorCall, outcome: &Outcome) {
        let line = json!({
            "type": "tool_call",
            "subtype": "completed",
            "call_id": call.id,
            "tool_call": call.to_json(Some(outcome)),
            "session_id": self.session.id,
        });
        self.lines.push(line.into());
    }

    /// Prints everything unfinished, then the last segment.
    fn finish_response(&mut self, context: &EntryContext<'_>) {
        self.end_thinking(context.at_ms);
        self.settle_edits(context);
        self.settle_failed(None, context);
        // Calls without an end were closed by the transcript.
        let open: HashSet<DocumentId> = self.calls.keys().cloned().collect();
        for document in context.response.documents.iter().filter(|it| open.contains(&it.id)) {
            self.finish_document(document, context);
        }
        let current = self
            .growing
            .current
            .as_ref()
            .and_then(|(id, _)| context.response.get(id));
        if let Some(document) = current {
            self.update_text(document, context);
        }
        let segment = self.growing.whole.from_byte(self.growing.segment);
        if !segment.trim().is_empty() {
            self.push_text(self.assistant(), segment);
        }
        self.growing.segment = self.growing.whole.len();
    }

    /// Returns a line for a text of the model, without the text.
    fn assistant(&self) -> Map<String, Value> {
        members(json!({
            "type": "assistant",
            "message": { "role": "assistant", "content": [{ "type": "text", "text": "" }] },
            "session_id": self.session.id,
        }))
    }

    fn call_context<'a>(&'a self, context: &EntryContext<'a>) -> Around<'a> {
        Around {
            workspace: &self.session.workspace,
            todos: context.todos,
        }
    }
}

/// The response and time that an entry belongs to.
struct EntryContext<'a> {
    response: &'a Response,
    todos: &'a Todos,
    at_ms: u64,
}

fn members(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(members) => members,
        _ => Map::new(),
    }
}

#[cfg(test)]
mod tests;
