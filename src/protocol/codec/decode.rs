//! The decoder of event streams: a state machine that repairs what it can and says so.
//!
//! It holds a copy of each document that is open, nothing of those that have ended. Every way in ends in one `done`:
//! the writer's own, `[DONE]`, an `error` event, the end of input, a broken connection.

mod body;
mod document;

use serde::{Deserialize, de::value::StrDeserializer};
use serde_json::{Map, Value, json};

use super::{
    DecodeError, Failure, Foreign, Identity, Limits,
    open::{Shelf, is_sound},
    payload::{Parts, cut, parse, take_count, take_text, take_usage, text_of, weigh_all},
    time,
};
use crate::protocol::{DocumentId, Done, Event, FinishReason, Kind, Mode, Notice, ResponseStart, Severity, Status};

/// Reads one response. Push frames until [`Decoder::is_done`], then throw it away.
pub struct Decoder {
    identity: Identity,
    limits: Limits,
    out: Vec<Event>,
    shelf: Shelf,
    phase: Phase,
    /// Notices and unknown events from before `response_start`, which must come first.
    held: Vec<Event>,
    /// A second or late `response_start`; it is sent with `done`.
    late: Option<ResponseStart>,
    /// Metadata of the response from its start.
    metadata: Map<String, Value>,
    /// Something of our protocol was seen: it is too late to call the server foreign.
    is_ours: bool,
    counts: Counts,
}

/// Amounts of the response that the limits bound.
#[derive(Default)]
struct Counts {
    tool_calls: u64,
    notices: usize,
    thinking_bytes: usize,
    response_bytes: usize,
    /// Documents were refused: ids that we do not know are theirs.
    is_full: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Waiting,
    Running,
    Done,
}

/// The events that the wire knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Name {
    ResponseStart,
    DocumentStart,
    ContentDelta,
    ToolCallStart,
    ToolCallArguments,
    ToolResult,
    MetadataDelta,
    ThinkingDelta,
    DocumentEnd,
    DocumentUpdate,
    Done,
    Error,
}

impl Name {
    fn parse(word: &str) -> Option<Self> {
        Self::deserialize(StrDeserializer::<serde::de::value::Error>::new(word)).ok()
    }

    /// Returns true if `data` wraps the event's members (`{type, documentId, data}`) instead of being one of them.
    fn is_wrapped(self, members: &Map<String, Value>) -> bool {
        let needs: &[&str] = match self {
            Self::ResponseStart => &["response", "id", "model", "conversationId", "capabilities"],
            Self::DocumentStart => &["document", "id"],
            Self::ContentDelta | Self::ThinkingDelta => &["delta", "content", "text"],
            Self::ToolCallStart => &["toolName", "name"],
            Self::ToolCallArguments => &["arguments"],
            Self::ToolResult => &["result"],
            Self::MetadataDelta => &["metadata", "append"],
            Self::DocumentUpdate => &["metadata"],
            Self::Done => &["usage", "status", "metadata", "response"],
            Self::Error => &["message", "code", "error"],
            // Everything on an end is optional, so only the bare envelope counts as one.
            Self::DocumentEnd => {
                return members
                    .keys()
                    .all(|it| matches!(it.as_str(), "type" | "documentId" | "data" | "id" | "event"));
            }
        };
        !needs.iter().any(|it| members.contains_key(*it))
    }
}

/// A failure that broke a response off: of the connection or of its writer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Breach<'a> {
    /// One of the protocol's error codes.
    pub code: &'a str,
    /// `gateway`, `stream` or `client`.
    pub source: &'a str,
    pub message: &'a str,
    pub details: &'a str,
}

impl Decoder {
    pub fn new(identity: Identity) -> Self {
        Self::with_limits(identity, Limits::default())
    }

    pub fn with_limits(identity: Identity, limits: Limits) -> Self {
        Self {
            identity,
            limits,
            out: Vec::new(),
            shelf: Shelf::default(),
            phase: Phase::Waiting,
            held: Vec::new(),
            late: None,
            metadata: Map::new(),
            is_ours: false,
            counts: Counts::default(),
        }
    }

    /// Returns true if no more events follow.
    pub fn is_done(&self) -> bool {
        self.phase == Phase::Done
    }

    /// Reads one event of a stream: its `event:` field, if it has one, and its data.
    pub fn frame(&mut self, event: Option<&str>, data: &str) -> Result<Vec<Event>, DecodeError> {
        if !self.is_done() {
            self.read(event, data)?;
        }
        Ok(std::mem::take(&mut self.out))
    }

    /// The input has ended. Without a `done` before it the response counts as interrupted.
    pub fn finish(&mut self) -> Vec<Event> {
        if !self.is_done() {
            self.notice(
                Severity::Error,
                "interrupted",
                "the stream ended before the answer did",
                None,
            );
            self.end_broken(Vec::new());
        }
        std::mem::take(&mut self.out)
    }

    /// Ends a stream that cannot be read further; an `error` document gives the reason.
    pub fn fail(&mut self, breach: &Breach<'_>) -> Vec<Event> {
        if !self.is_done() {
            let document = json!({
                "content": breach.message,
                "metadata": { "errorCode": breach.code, "source": breach.source, "details": breach.details },
            });
            self.end_broken(vec![document]);
        }
        std::mem::take(&mut self.out)
    }

    /// The user stopped the response.
    pub fn cancel(&mut self) -> Vec<Event> {
        if !self.is_done() {
            while let Some(id) = self.shelf.oldest() {
                if let Some(open) = self.shelf.get(&id) {
                    let document = &mut open.document;
                    match document.kind {
                        Kind::ToolCall if !document.metadata.contains_key("result") => {
                            document.set_result(&json!({ "status": "error", "data": "cancelled" }), None);
                        }
                        Kind::TerminalCommand => {
                            document.metadata.insert("state".into(), "cancelled".into());
                        }
                        Kind::Clarification => {
                            document.metadata.entry("outcome").or_insert_with(|| "cancelled".into());
                        }
                        _ => {}
                    }
                }
                self.close(&id, true);
            }
            self.done(Done {
                status: Some(Status::Completed),
                finish_reason: Some(FinishReason::Cancelled),
                ..Done::default()
            });
        }
        std::mem::take(&mut self.out)
    }

    fn read(&mut self, event: Option<&str>, data: &str) -> Result<(), DecodeError> {
        let event = event.map(str::trim).filter(|it| !it.is_empty() && *it != "message");
        if data.len() > self.limits.event_bytes {
            let message = format!("an event of {} bytes was skipped", data.len());
            self.notice(Severity::Error, "event-too-large", &message, None);
            return Ok(());
        }
        let text = data.trim();
        if text == "[DONE]" {
            self.end_marker();
            return Ok(());
        }
        if matches!(event, Some("ping" | "heartbeat" | "keepalive" | "keep-alive")) {
            return Ok(());
        }
        if text.is_empty() {
            if event == Some("done") {
                self.finish_with(Map::new());
            }
            return Ok(());
        }
        match parse(text) {
            Ok((Value::Object(members), mended)) => {
                if mended {
                    let message = format!("mended JSON that was not quite right: {}", quote(text));
                    self.notice(Severity::Warning, "mended-json", &message, None);
                }
                self.object(event, members)
            }
            Ok((_, _)) => {
                let message = format!("skipped data that is no JSON object: {}", quote(text));
                self.notice(Severity::Warning, "not-an-object", &message, None);
                Ok(())
            }
            Err(error) => {
                let message = format!("skipped data that is no JSON ({error}): {}", quote(text));
                self.notice(Severity::Warning, "bad-json", &message, None);
                Ok(())
            }
        }
    }

    fn object(&mut self, event: Option<&str>, mut members: Map<String, Value>) -> Result<(), DecodeError> {
        if !self.is_ours
            && let Some(what) = Foreign::of(&members)
        {
            return Err(DecodeError::Foreign { what });
        }
        let word = members.get("type").and_then(Value::as_str);
        let (by_field, by_type) = (event.and_then(Name::parse), word.and_then(Name::parse));
        let name = match (event, by_field, by_type) {
            (Some(_), Some(field), own) => {
                // `error` is a kind of document too.
                if own.is_some_and(|it| it != field && it != Name::Error) {
                    let message = format!(
                        "an event is called {} outside and {} inside; the outer name counts",
                        quote(event.unwrap_or_default()),
                        quote(word.unwrap_or_default())
                    );
                    self.notice(Severity::Warning, "two-names", &message, None);
                }
                field
            }
            (Some(outer), None, Some(own)) if own != Name::Error => {
                let message = format!(
                    "an event called {} says it is a known one and is read as such",
                    quote(outer)
                );
                self.notice(Severity::Info, "two-names", &message, None);
                own
            }
            (None, _, Some(own)) => own,
            (None, _, None) if word.is_none() && members.get("documents").is_some_and(Value::is_array) => {
                self.notice(
                    Severity::Warning,
                    "answer-in-stream",
                    "the stream holds a whole answer as one event",
                    None,
                );
                self.is_ours = true;
                self.answer(members);
                return Ok(());
            }
            (None, _, None) if word.is_none() && members.contains_key("error") => Name::Error,
            (outer, _, _) => {
                let name = outer.or(word).unwrap_or("message");
                if outer.is_none() && word.is_none() {
                    let message = "an event has no name: neither an event field nor a type";
                    self.notice(Severity::Warning, "nameless-event", message, None);
                }
                let name = cut(name, self.limits.id_bytes).to_owned();
                if outer.is_none() {
                    members.shift_remove("type");
                }
                self.unknown(name, members);
                return Ok(());
            }
        };
        self.is_ours = true;
        if let Some(Value::Object(_)) = members.get("data")
            && name.is_wrapped(&members)
            && let Some(Value::Object(inner)) = members.shift_remove("data")
        {
            members.extend(inner);
        }
        self.event(name, members);
        Ok(())
    }

    fn event(&mut self, name: Name, mut members: Map<String, Value>) {
        match name {
            Name::ResponseStart => self.response_start(members),
            Name::DocumentStart => self.document_start(members),
            Name::ContentDelta => {
                let delta = self.delta(&mut members);
                if let Some(id) = self.target(&mut members, &Kind::Text) {
                    self.grow(&id, &delta);
                }
            }
            Name::ThinkingDelta => {
                let delta = self.delta(&mut members);
                self.think(&delta);
            }
            Name::ToolCallStart => self.tool_call_start(members),
            Name::ToolCallArguments => {
                let arguments = members
                    .shift_remove("arguments")
                    .or_else(|| members.shift_remove("delta"));
                if let Some(id) = self.target(&mut members, &Kind::ToolCall) {
                    self.arguments(&id, arguments.unwrap_or(Value::Null));
                }
            }
            Name::ToolResult => self.tool_result(members),
            Name::MetadataDelta => self.metadata_delta(members),
            Name::DocumentEnd => self.document_end(members),
            Name::DocumentUpdate => self.document_update(members),
            Name::Done => self.finish_with(members),
            Name::Error => self.foreign_error(members),
        }
    }

    fn response_start(&mut self, mut members: Map<String, Value>) {
        members.shift_remove("type");
        if let Some(Value::Object(_)) = members.get("response")
            && let Some(Value::Object(inner)) = members.shift_remove("response")
        {
            members.extend(inner);
        }
        // A response object as it is at its start; its end says these anew.
        members.shift_remove("usage");
        let metadata = self.object_of(&mut members, "metadata");
        self.metadata.extend(metadata);
        let documents = members.shift_remove("documents");
        let start = self.start_of(&mut members);
        match self.phase {
            Phase::Waiting => self.begin(start),
            Phase::Running | Phase::Done => {
                self.notice(
                    Severity::Warning,
                    "late-response-start",
                    "response_start came late or twice; what it says counts at the end",
                    None,
                );
                self.late = Some(start);
            }
        }
        if let Some(Value::Array(documents)) = documents {
            self.missed(documents);
        }
    }

    /// The members of a response that are known at its start; leaves those that belong to its end.
    fn start_of(&mut self, members: &mut Map<String, Value>) -> ResponseStart {
        let limit = self.limits.id_bytes;
        let mut odd = None;
        let mut id_of = |name: &'static str| {
            let id = take_text(members, &[name])?;
            if is_sound(&id, limit) {
                return Some(id);
            }
            odd = Some(name);
            None
        };
        let id = id_of("id").map(Into::into);
        let conversation_id = id_of("conversationId").map(Into::into);
        if let Some(name) = odd {
            let message = format!("{name} is too long or has characters that no id should have");
            self.notice(Severity::Warning, "odd-id", &message, None);
        }
        let model = take_text(members, &["model"]).filter(|it| !it.is_empty());
        let mode = self.mode_of(members);
        let created = self.created_of(members);
        let capabilities = match members.shift_remove("capabilities") {
            Some(Value::Array(words)) => words.iter().filter_map(Value::as_str).map(str::to_owned).collect(),
            Some(Value::String(word)) => vec![word],
            // A map of names to whether they are there.
            Some(Value::Object(words)) => words
                .into_iter()
                .filter(|(_, has)| has.as_bool() == Some(true))
                .map(|(word, _)| word)
                .collect(),
            Some(Value::Null | Value::Bool(_) | Value::Number(_)) | None => Vec::new(),
        };
        if members.get("status").and_then(Value::as_str) == Some(Status::Streaming.as_str()) {
            members.shift_remove("status");
        }
        // What is left under these names is no text, and must not be passed on as what others would take it for.
        for name in ["id", "conversationId", "model", "mode"] {
            if members.shift_remove(name).is_some_and(|it| !it.is_null()) {
                let message = format!("{name} is no text and was dropped");
                self.notice(Severity::Warning, "wrong-type", &message, None);
            }
        }
        ResponseStart {
            id,
            conversation_id,
            model,
            mode,
            created,
            capabilities,
            extra: std::mem::take(members),
        }
    }

    fn mode_of(&mut self, members: &mut Map<String, Value>) -> Option<Mode> {
        let word = take_text(members, &["mode"])?;
        let mode = Mode::parse(&word);
        if mode.is_none() {
            let message = format!("there is no mode {}; shown as {}", quote(&word), self.identity.mode);
            self.notice(Severity::Warning, "unknown-mode", &message, None);
        }
        mode
    }

    fn created_of(&mut self, members: &mut Map<String, Value>) -> Option<String> {
        let value = members.shift_remove("created").filter(|it| !it.is_null())?;
        let created = time::read(&value);
        if created.is_none() {
            let message = format!("created is no point in time: {}", quote(&text_of(&value)));
            self.notice(Severity::Info, "bad-time", &message, None);
        }
        created
    }

    /// Opens the response; members that the writer left out are the identity's.
    fn begin(&mut self, start: ResponseStart) {
        self.phase = Phase::Running;
        self.out.push(Event::ResponseStart(ResponseStart {
            id: Some(start.id.unwrap_or_else(|| self.identity.id.clone())),
            model: Some(start.model.unwrap_or_else(|| self.identity.model.clone())),
            mode: Some(start.mode.unwrap_or(self.identity.mode)),
            created: Some(start.created.unwrap_or_else(|| time::iso(self.identity.created_ms))),
            ..start
        }));
        self.out.append(&mut self.held);
    }

    fn emit(&mut self, event: Event) {
        if self.phase == Phase::Waiting {
            if matches!(event, Event::Notice(_) | Event::Unknown { .. }) {
                self.held.push(event);
                return;
            }
            self.begin(ResponseStart::default());
        }
        self.out.push(event);
    }

    /// The text of a delta, however it is wrapped.
    fn delta(&mut self, members: &mut Map<String, Value>) -> String {
        let names = ["delta", "content", "text"];
        let delta = names
            .iter()
            .find_map(|&name| members.shift_remove(name).filter(|it| !it.is_null()));
        match delta {
            Some(Value::String(text)) => text,
            Some(other) => {
                self.notice(
                    Severity::Warning,
                    "wrong-type",
                    "a delta is no text; it was turned into one",
                    None,
                );
                text_of(&other)
            }
            None => String::new(),
        }
    }

    fn think(&mut self, delta: &str) {
        let limit = self.limits.thinking_bytes;
        let room = limit - self.counts.thinking_bytes;
        let kept = cut(delta, room);
        if kept.len() < delta.len() {
            self.counts.thinking_bytes = limit;
            if room > 0 {
                self.notice(
                    Severity::Warning,
                    "thinking-too-large",
                    "the rest of the thinking is dropped",
                    None,
                );
            }
        } else {
            self.counts.thinking_bytes += kept.len();
        }
        if !kept.is_empty() {
            self.emit(Event::ThinkingDelta { delta: kept.to_owned() });
        }
    }

    /// A member that has to be an object; anything else is dropped with a notice.
    fn object_of(&mut self, members: &mut Map<String, Value>, name: &str) -> Map<String, Value> {
        match members.shift_remove(name) {
            Some(Value::Object(inner)) => inner,
            None | Some(Value::Null) => Map::new(),
            Some(Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_)) => {
                let message = format!("{name} is no object and was dropped");
                self.notice(Severity::Warning, "wrong-type", &message, None);
                Map::new()
            }
        }
    }

    fn unknown(&mut self, name: String, members: Map<String, Value>) {
        let weight = name.len() + weigh_all(&members) + 64;
        if weight > self.response_room() {
            self.notice(
                Severity::Error,
                "response-too-large",
                "the answer is too large; events that are not known are dropped",
                None,
            );
            return;
        }
        self.counts.response_bytes += weight;
        self.emit(Event::Unknown {
            name,
            data: Value::Object(members),
        });
    }

    /// `[DONE]` on its own ends the response too.
    fn end_marker(&mut self) {
        self.is_ours = true;
        self.close_all(false);
        self.done(Done::default());
    }

    fn finish_with(&mut self, mut members: Map<String, Value>) {
        members.shift_remove("type");
        members.shift_remove("event");
        if let Some(Value::Object(_)) = members.get("response")
            && let Some(Value::Object(inner)) = members.shift_remove("response")
        {
            members.extend(inner);
        }
        if let Some(Value::Array(documents)) = members.get_mut("documents").map(Value::take) {
            members.shift_remove("documents");
            self.missed(documents);
        }
        self.close_all(false);
        let done = self.done_of(members);
        self.done(done);
    }

    /// Reads the members of a response's end.
    fn done_of(&mut self, mut members: Map<String, Value>) -> Done {
        let (usage, extra_usage) = match members.shift_remove("usage") {
            Some(Value::Object(mut usage)) => (Some(take_usage(&mut usage)), usage),
            Some(_) | None => (None, Map::new()),
        };
        let status = take_text(&mut members, &["status"]).map(|it| Status::parse(&it));
        let mut metadata = std::mem::take(&mut self.metadata);
        metadata.extend(self.object_of(&mut members, "metadata"));
        let mut finish_reason = take_text(&mut metadata, &["finishReason", "finish_reason"]);
        let mut duration_ms = take_count(&mut metadata, &["duration_ms", "durationMs"]);
        if finish_reason.is_none() {
            finish_reason = take_text(&mut members, &["finishReason", "finish_reason"]);
        }
        if duration_ms.is_none() {
            duration_ms = take_count(&mut members, &["duration_ms", "durationMs"]);
        }
        let tool_call_count = take_count(&mut metadata, &["toolCallCount"]);
        let turn_count = take_count(&mut metadata, &["turnCount"]);
        let start = self.start_of(&mut members);
        Done {
            usage,
            id: start.id,
            conversation_id: start.conversation_id,
            model: start.model,
            mode: start.mode,
            created: start.created,
            status,
            finish_reason: finish_reason.map(|it| FinishReason::parse(&it)),
            duration_ms,
            tool_call_count,
            turn_count,
            extra: start.extra,
            extra_usage,
            extra_metadata: metadata,
        }
    }

    /// The one `done` of a response, with every default filled in.
    fn done(&mut self, mut done: Done) {
        if done.status == Some(Status::Streaming) {
            let message = "the answer says at its end that it is still streaming; it counts as completed";
            self.notice(Severity::Warning, "status", message, None);
            done.status = Some(Status::Completed);
        }
        if let Some(late) = self.late.take() {
            done.id = done.id.or(late.id);
            done.conversation_id = done.conversation_id.or(late.conversation_id);
            done.model = done.model.or(late.model);
            done.mode = done.mode.or(late.mode);
            done.created = done.created.or(late.created);
            for (name, value) in late.extra {
                done.extra.entry(name).or_insert(value);
            }
        }
        let status = done.status.unwrap_or(Status::Completed);
        let finish_reason = done.finish_reason.unwrap_or(match status {
            Status::Error => FinishReason::Error,
            Status::Completed | Status::Streaming | Status::Other(_) => FinishReason::Stop,
        });
        self.emit(Event::Done(Done {
            usage: Some(done.usage.unwrap_or_default()),
            status: Some(status),
            finish_reason: Some(finish_reason),
            tool_call_count: Some(done.tool_call_count.unwrap_or(self.counts.tool_calls)),
            turn_count: Some(done.turn_count.unwrap_or(1)),
            ..done
        }));
        self.phase = Phase::Done;
    }

    /// Ends a response that was cut off: open documents are closed as incomplete, and `documents` give the reason.
    fn end_broken(&mut self, documents: Vec<Value>) {
        let finish_reason = FinishReason::Interrupted;
        self.close_all(true);
        self.report(documents);
        self.done(Done {
            status: Some(Status::Error),
            finish_reason: Some(finish_reason),
            ..Done::default()
        });
    }

    fn report(&mut self, documents: Vec<Value>) {
        for document in documents {
            if let Value::Object(members) = document {
                let mut parts = Parts::of(members);
                parts.kind = Kind::Error;
                parts.id = Some(self.shelf.fresh().to_string());
                parts.odd.clear();
                // Why it ended is shown however much there is already.
                self.limits.documents = self.limits.documents.max(self.shelf.count() + 1);
                self.settled(parts);
            }
        }
    }

    /// An `error` event, as other gateways send it, ends the response.
    fn foreign_error(&mut self, mut members: Map<String, Value>) {
        self.is_ours = true;
        members.shift_remove("type");
        let failure = Failure::of(members);
        self.close_all(true);
        self.report(vec![failure.to_document()]);
        self.done(Done {
            status: Some(Status::Error),
            finish_reason: Some(FinishReason::Error),
            ..Done::default()
        });
    }

    fn notice(&mut self, severity: Severity, code: &str, message: &str, document: Option<&DocumentId>) {
        self.counts.notices += 1;
        let limit = self.limits.notices;
        let (code, message, document) = match self.counts.notices.cmp(&limit) {
            std::cmp::Ordering::Less => (code, message, document),
            std::cmp::Ordering::Equal => ("and-more", "there is more to complain about; it is not listed", None),
            std::cmp::Ordering::Greater => return,
        };
        self.emit(Event::Notice(Notice {
            severity,
            code: code.to_owned(),
            message: message.to_owned(),
            document: document.cloned(),
        }));
    }
}

/// Quotes the beginning of a text.
fn quote(text: &str) -> String {
    let short = cut(text, 80);
    let more = if short.len() < text.len() { "…" } else { "" };
    format!("`{short}{more}`")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::Response;

    fn decoded(frames: &[(Option<&str>, &str)]) -> Response {
        let mut decoder = Decoder::new(Identity::local("m", Mode::Agent, 0));
        let mut response = Response::default();
        for (event, data) in frames {
            for event in decoder.frame(*event, data).expect("ours") {
                response.apply(&event, 0);
            }
        }
        for event in decoder.finish() {
            response.apply(&event, 0);
        }
        response
    }

    #[test]
    fn the_flat_stream_of_the_concept_folds() {
        let response = decoded(&[
            (
                None,
                r#"{"type":"document_start","document":{"id":"d1","type":"file_edit","filePath":"src/a.rs","operation":"create"}}"#,
            ),
            (
                None,
                r#"{"type":"content_delta","documentId":"d1","delta":"fn main() {}\n"}"#,
            ),
            (None, r#"{"type":"document_end","documentId":"d1"}"#),
            (
                None,
                r#"{"type":"document_start","document":{"id":"d2","type":"plan","title":"T","todos":[{"id":"x","content":"X","status":"pending"}]}}"#,
            ),
            (None, r#"{"type":"document_end","documentId":"d2"}"#),
            (None, r#"{"type":"some_future_event","x":1}"#),
            (
                None,
                r#"{"type":"done","usage":{"promptTokens":1,"completionTokens":2}}"#,
            ),
            (None, "[DONE]"),
        ]);
        assert_eq!(response.notices, []);
        assert_eq!(
            response.documents_json(),
            json!([
                { "id": "d1", "type": "file_edit", "sequence": 1, "content": "fn main() {}\n",
                  "metadata": { "filePath": "src/a.rs", "operation": "create", "language": "rust", "diff": null } },
                { "id": "d2", "type": "plan", "sequence": 2, "content": "",
                  "metadata": { "title": "T", "overview": "", "format": "markdown", "todos": [
                    { "id": "x", "content": "X", "status": "pending", "dependencies": [] } ] } },
            ])
        );
        assert_eq!(response.usage.total_tokens, 3);
        assert_eq!(response.status(), Status::Completed);
    }
}
