//! An answer as the lines of Cursor's command line: `system`, `user`, `assistant`, `tool_call`, `thinking`, `result`.
//!
//! Text between two calls is a segment. With pieces wanted, a segment comes as it grows, then once whole: with a
//! `model_call_id` before a call, without a time at the very end. That last line holds the last segment and not all of the
//! answer, because readers of the other program's output print what it holds again.

use std::{
    collections::{HashMap, HashSet, VecDeque},
    path::PathBuf,
};

use serde_json::{Map, Value, json};

use super::call::{self, Around, Call, Outcome};
use crate::{
    protocol::{Change, Document, DocumentId, Event, Kind, Response, View},
    transcript::{Todos, Transcript},
};

/// What is said of the run beside the answer.
#[derive(Clone, Debug, Default)]
pub struct Session {
    /// By which the conversation can be taken up again.
    pub id: String,
    /// Absolute.
    pub workspace: PathBuf,
    /// `env`, `flag` or `login`.
    pub key: &'static str,
}

/// Makes the lines of the answers that it is shown.
#[derive(Debug)]
pub struct Stream {
    session: Session,
    /// Pieces of text are wanted as they come.
    is_partial: bool,
    has_thinking: bool,
    /// All text since the message.
    whole: String,
    /// Where the current segment begins in it.
    segment: usize,
    /// The text that grows, and how much of it went out.
    current: Option<(DocumentId, String)>,
    /// Texts that grow beside it.
    waiting: VecDeque<DocumentId>,
    calls: HashMap<DocumentId, Call>,
    /// Documents of an edit that are not all there yet.
    edits: Vec<Document>,
    /// How many files of the call have been told.
    files: (String, usize),
    /// An edit that failed: the error behind it says why.
    failed: Option<Vec<Document>>,
    is_thinking: bool,
    requests: u64,
    denials: Vec<Value>,
    lines: Vec<Value>,
}

impl Stream {
    pub fn new(session: Session, is_partial: bool, has_thinking: bool) -> Self {
        Self {
            session,
            is_partial,
            has_thinking,
            whole: String::new(),
            segment: 0,
            current: None,
            waiting: VecDeque::new(),
            calls: HashMap::new(),
            edits: Vec::new(),
            files: (String::new(), 0),
            failed: None,
            is_thinking: false,
            requests: 0,
            denials: Vec::new(),
            lines: Vec::new(),
        }
    }

    /// The first line.
    pub fn init(&self, model: Option<&str>) -> Value {
        json!({
            "type": "system",
            "subtype": "init",
            "apiKeySource": self.session.key,
            "cwd": self.session.workspace,
            "session_id": self.session.id,
            "model": model.filter(|it| !it.is_empty()).unwrap_or("Auto"),
            "permissionMode": "default",
        })
    }

    /// What an entry of the log comes to. `change` is what it did to the exchange at `at`.
    pub fn take(
        &mut self,
        event: &Event,
        change: Change,
        at: usize,
        at_ms: u64,
        transcript: &Transcript,
    ) -> Vec<Value> {
        if let Event::UserMessage(message) = event {
            self.begin();
            self.lines.push(json!({
                "type": "user",
                "message": { "role": "user", "content": [{ "type": "text", "text": message.content }] },
                "session_id": self.session.id,
            }));
            return std::mem::take(&mut self.lines);
        }
        let Some(exchange) = transcript.exchanges.get(at) else {
            return Vec::new();
        };
        let response = &exchange.response;
        let told = Told {
            response,
            todos: &transcript.todos,
            at_ms,
        };
        if let Event::ThinkingDelta { delta } = event {
            self.think(delta, at_ms);
        }
        match change {
            Change::Opened(nth) | Change::Grew(nth) => {
                if let Some(document) = response.documents.get(nth) {
                    self.touched(document, &told);
                }
            }
            Change::Ended(nth) => {
                if let Some(document) = response.documents.get(nth) {
                    self.touched(document, &told);
                    self.ended(document, &told);
                }
            }
            Change::Finished => self.finished(&told),
            Change::Nothing | Change::Response | Change::Thinking | Change::Notice | Change::Updated(_) => {}
        }
        std::mem::take(&mut self.lines)
    }

    /// The last line of a run that went well. `structured`: the value that the answer had to be.
    pub fn result(&self, response: &Response, took_ms: u64, structured: Option<&Value>) -> Value {
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
            "result": structured.map_or_else(|| self.whole.clone(), Value::to_string),
            "session_id": self.session.id,
        }));
        if let Some(value) = structured {
            line.insert("structured_output".to_owned(), value.clone());
        }
        if let Some(id) = &response.id {
            line.insert("request_id".to_owned(), id.as_str().into());
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
        Value::Object(line)
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

    fn think(&mut self, delta: &str, at_ms: u64) {
        if self.has_thinking && !delta.is_empty() {
            self.is_thinking = true;
            self.lines.push(json!({
                "type": "thinking",
                "subtype": "delta",
                "text": delta,
                "session_id": self.session.id,
                "timestamp_ms": at_ms,
            }));
        }
    }

    fn end_thinking(&mut self, at_ms: u64) {
        if std::mem::take(&mut self.is_thinking) {
            self.lines.push(json!({
                "type": "thinking",
                "subtype": "completed",
                "session_id": self.session.id,
                "timestamp_ms": at_ms,
            }));
        }
    }

    /// A document has begun or grown.
    fn touched(&mut self, document: &Document, told: &Told<'_>) {
        self.end_thinking(told.at_ms);
        match document.kind {
            Kind::Text | Kind::CodeReference | Kind::CodeBlock | Kind::Other(_) => self.spoken(document, told),
            Kind::ToolCall | Kind::TerminalCommand | Kind::TodoUpdate | Kind::Plan | Kind::Clarification => {
                // The arguments of these are known at their end only.
                let is_late = !matches!(document.kind, Kind::ToolCall | Kind::TerminalCommand);
                if !call::is_call(document) || self.calls.contains_key(&document.id) || (is_late && document.is_open())
                {
                    return;
                }
                self.settle_failed(None, told);
                let Some(call) = call::call(document, self.around(told)) else {
                    return;
                };
                self.start(&call, told.at_ms);
                self.calls.insert(document.id.clone(), call);
            }
            Kind::FileEdit | Kind::Error => {}
        }
    }

    /// A part of the text. What comes beside another part waits for its end.
    fn spoken(&mut self, document: &Document, told: &Told<'_>) {
        match &self.current {
            Some((id, _)) if *id == document.id => {}
            Some(_) => {
                if !self.waiting.contains(&document.id) {
                    self.waiting.push_back(document.id.clone());
                }
                return;
            }
            None => self.current = Some((document.id.clone(), String::new())),
        }
        self.grow(document, told.at_ms);
        if document.is_open() {
            return;
        }
        self.current = None;
        while let Some(id) = self.waiting.pop_front() {
            let Some(next) = told.response.get(&id) else { continue };
            self.current = Some((id, String::new()));
            self.grow(next, told.at_ms);
            if next.is_open() {
                return;
            }
            self.current = None;
        }
    }

    fn grow(&mut self, document: &Document, at_ms: u64) {
        let Some((id, mut printed)) = self.current.take() else {
            return;
        };
        // What stands in a fence is told with it, and how long that has to be is known at its end.
        let fenced = document.kind != Kind::Text;
        if !(fenced && document.is_open()) {
            let fence;
            let text = if fenced {
                fence = document.plain_text();
                fence.as_str()
            } else {
                document.text()
            };
            // It only grows while it is open; its end may say something else than its pieces did.
            if !document.is_open() && !text.starts_with(&printed) {
                printed.clear();
            }
            // Blanks at the end may be all that is left of it.
            let until = text.trim_end().len();
            if let Some(more) = text.get(printed.len()..until).filter(|it| !it.is_empty()) {
                let said = if printed.is_empty() {
                    more.trim_start_matches('\n')
                } else {
                    more
                };
                let has_more = self.whole.len() > self.segment;
                let separator = if printed.is_empty() && has_more { "\n\n" } else { "" };
                let delta = format!("{separator}{said}");
                printed.push_str(more);
                self.whole.push_str(&delta);
                if self.is_partial && !delta.is_empty() {
                    let mut line = self.assistant(&delta);
                    line.insert("timestamp_ms".to_owned(), at_ms.into());
                    self.lines.push(Value::Object(line));
                }
            }
        }
        self.current = Some((id, printed));
    }

    fn ended(&mut self, document: &Document, told: &Told<'_>) {
        match document.kind {
            Kind::FileEdit => self.edited(document, told),
            Kind::Error => {
                if let View::Error(it) = document.view() {
                    let details = if it.details.is_empty() {
                        String::new()
                    } else {
                        format!("\n{}", it.details)
                    };
                    self.settle_failed(Some(&format!("{}{details}", it.content)), told);
                }
            }
            Kind::Text | Kind::CodeReference | Kind::CodeBlock | Kind::Other(_) => {}
            Kind::ToolCall | Kind::TerminalCommand | Kind::TodoUpdate | Kind::Plan | Kind::Clarification => {
                let Some(call) = self.calls.remove(&document.id) else {
                    return;
                };
                let outcome = call::outcome(document, &call, self.around(told));
                self.note_denial(std::slice::from_ref(document), &call);
                self.complete(&call, &outcome);
            }
        }
    }

    /// The change of a file: told when all its places are there.
    fn edited(&mut self, document: &Document, told: &Told<'_>) {
        let View::FileEdit(it) = document.view() else { return };
        let is_more = self.edits.last().is_some_and(|last| match last.view() {
            View::FileEdit(last) => {
                last.tool_call_id == it.tool_call_id
                    && last.file_path == it.file_path
                    && it.hunk.is_some_and(|it| it.index > 1)
            }
            _ => false,
        });
        if !is_more {
            self.settle_edits(told);
        }
        let is_whole = it.hunk.is_none_or(|it| it.index >= it.count);
        self.edits.push(document.clone());
        if is_whole {
            self.settle_edits(told);
        }
    }

    fn settle_edits(&mut self, told: &Told<'_>) {
        let edits = std::mem::take(&mut self.edits);
        if edits.is_empty() {
            return;
        }
        let is_failed = edits.first().is_some_and(|it| match it.view() {
            View::FileEdit(it) => it.applied == crate::protocol::Applied::Failed,
            _ => false,
        });
        self.settle_failed(None, told);
        if is_failed {
            self.failed = Some(edits);
        } else {
            self.tell_edit(&edits, None, told);
        }
    }

    fn settle_failed(&mut self, why: Option<&str>, told: &Told<'_>) {
        if let Some(edits) = self.failed.take() {
            self.tell_edit(&edits, why, told);
        }
    }

    fn tell_edit(&mut self, edits: &[Document], why: Option<&str>, told: &Told<'_>) {
        let id = edits.first().and_then(|it| it.metadata.get("toolCallId"));
        let id = id.and_then(Value::as_str).unwrap_or_default();
        if self.files.0 == id && !id.is_empty() {
            self.files.1 += 1;
        } else {
            self.files = (id.to_owned(), 0);
        }
        if let Some((call, outcome)) = call::edit(edits, self.files.1, why, self.around(told)) {
            self.start(&call, told.at_ms);
            self.note_denial(edits, &call);
            self.complete(&call, &outcome);
        }
    }

    fn note_denial(&mut self, documents: &[Document], call: &Call) {
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

    /// The text so far is a segment; then the call begins.
    fn start(&mut self, call: &Call, at_ms: u64) {
        let segment = self.whole.get(self.segment..).unwrap_or_default();
        if !segment.trim().is_empty() {
            self.requests += 1;
            let mut line = self.assistant(segment);
            if self.is_partial {
                line.insert("timestamp_ms".to_owned(), at_ms.into());
                line.insert(
                    "model_call_id".to_owned(),
                    format!("{}-{}", self.session.id, self.requests).into(),
                );
            }
            self.lines.push(Value::Object(line));
        }
        self.segment = self.whole.len();
        self.lines.push(json!({
            "type": "tool_call",
            "subtype": "started",
            "call_id": call.id,
            "tool_call": call.to_json(None),
            "session_id": self.session.id,
        }));
    }

    fn complete(&mut self, call: &Call, outcome: &Outcome) {
        self.lines.push(json!({
            "type": "tool_call",
            "subtype": "completed",
            "call_id": call.id,
            "tool_call": call.to_json(Some(outcome)),
            "session_id": self.session.id,
        }));
    }

    /// The last segment, and whatever was still being waited for.
    fn finished(&mut self, told: &Told<'_>) {
        self.end_thinking(told.at_ms);
        self.settle_edits(told);
        self.settle_failed(None, told);
        // What never ended has an end now: the fold of the answer closed it.
        let open: HashSet<DocumentId> = self.calls.keys().cloned().collect();
        for document in told.response.documents.iter().filter(|it| open.contains(&it.id)) {
            self.ended(document, told);
        }
        let current = self.current.as_ref().and_then(|(id, _)| told.response.get(id));
        if let Some(document) = current {
            self.spoken(document, told);
        }
        let segment = self.whole.get(self.segment..).unwrap_or_default();
        if !segment.trim().is_empty() {
            let line = self.assistant(segment);
            self.lines.push(Value::Object(line));
        }
        self.segment = self.whole.len();
    }

    fn assistant(&self, text: &str) -> Map<String, Value> {
        members(json!({
            "type": "assistant",
            "message": { "role": "assistant", "content": [{ "type": "text", "text": text }] },
            "session_id": self.session.id,
        }))
    }

    fn around<'a>(&'a self, told: &Told<'a>) -> Around<'a> {
        Around {
            workspace: &self.session.workspace,
            todos: told.todos,
        }
    }
}

/// What an entry was read beside.
struct Told<'a> {
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
