//! The encoder of event streams: writes what the protocol's own text allows, whatever the source did.
//!
//! It folds each open document, so that the end it writes is complete even where the source's was not, and so that a
//! source whose deltas are gone (a journal) still reads as a stream: the text goes out as a delta, a call's arguments
//! and result as their events. Dialect B differs from A in framing only.

use std::collections::{BTreeMap, HashMap, HashSet};

use serde_json::{Map, Value};

use super::{
    Identity, Limits,
    open::is_sound,
    payload::{cut, weigh},
    time::iso,
};
use crate::protocol::{
    Dialect, Document, DocumentId, DocumentStart, Done, Event, FinishReason, Kind, Response, ResponseStart, Status,
    Usage,
};

/// A comment that keeps a silent stream alive.
pub const PING: &str = ": ping\n\n";

/// How many bytes of text one event carries. Each byte may take six in JSON, and readers stop at lines of 16 MiB.
const PIECE_BYTES: usize = 1 << 20;

/// How many bytes of metadata one event carries; what is larger travels in pieces.
const METADATA_BYTES: usize = 2 << 20;

/// How far a reader has come: `7` has had everything of the source's seventh event, `7.2` two parts of the eighth as well.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Mark {
    pub number: u64,
    pub part: usize,
}

impl Mark {
    /// What a reader sends back; `None` for what was never sent.
    pub fn parse(text: &str) -> Option<Self> {
        let is_number = |it: &str| !it.is_empty() && it.bytes().all(|it| it.is_ascii_digit());
        let (number, part) = text.split_once('.').unwrap_or((text, "0"));
        if !is_number(number) || !is_number(part) {
            return None;
        }
        Some(Self {
            number: number.parse().ok()?,
            part: part.parse().ok()?,
        })
    }
}

impl std::fmt::Display for Mark {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.part {
            0 => write!(f, "{}", self.number),
            part => write!(f, "{}.{part}", self.number),
        }
    }
}

/// Writes one response as server-sent events.
pub struct Encoder {
    dialect: Dialect,
    identity: Identity,
    /// Our own events go out too.
    is_private: bool,
    out: String,
    /// Where the events in `out` start.
    starts: Vec<usize>,
    has_begun: bool,
    is_done: bool,
    open: HashMap<DocumentId, Sent>,
    by_sequence: BTreeMap<u64, DocumentId>,
    /// Ids on the wire.
    used: HashSet<DocumentId>,
    /// Documents of the source that go by another name on the wire.
    renamed: HashMap<DocumentId, DocumentId>,
    sequence: u64,
    tool_calls: u64,
}

/// An open document and what the other side knows of it.
struct Sent {
    document: Document,
    sequence: u64,
    wire: DocumentId,
    /// The text that went out as deltas is the document's.
    has_text: bool,
    has_name: bool,
    has_arguments: bool,
    has_result: bool,
    /// Metadata members that the other side has a value for.
    named: HashSet<String>,
    /// Members of the start whose nulls no patch could carry.
    with_nulls: Map<String, Value>,
}

impl Encoder {
    pub fn new(dialect: Dialect, identity: Identity) -> Self {
        Self {
            dialect,
            identity,
            is_private: false,
            out: String::new(),
            starts: Vec::new(),
            has_begun: false,
            is_done: false,
            open: HashMap::new(),
            by_sequence: BTreeMap::new(),
            used: HashSet::new(),
            renamed: HashMap::new(),
            sequence: 0,
            tool_calls: 0,
        }
    }

    /// Sends user messages, notices and titles too. For our own programs: to others they mean nothing.
    pub fn private(self) -> Self {
        Self {
            is_private: true,
            ..self
        }
    }

    pub fn is_done(&self) -> bool {
        self.is_done
    }

    /// The bytes for one event of the source, often none.
    pub fn push(&mut self, event: &Event) -> String {
        self.starts.clear();
        if !self.is_done {
            self.write(event);
        }
        std::mem::take(&mut self.out)
    }

    /// As [`Self::push`], for a reader that can come back: each event written bears a mark, and [`Self::resume`] goes on
    /// behind it. The last one bears the number of the source's event, those before it the number before and a count.
    pub fn push_marked(&mut self, event: &Event, number: u64) -> String {
        let plain = self.push(event);
        self.marked(&plain, number, 0)
    }

    /// `plain` without its first events, the others marked.
    fn marked(&self, plain: &str, number: u64, skip: usize) -> String {
        let mut out = String::new();
        for (at, start) in self.starts.iter().enumerate().skip(skip) {
            let end = self.starts.get(at + 1).copied().unwrap_or(plain.len());
            let mark = Mark {
                number: if at + 1 == self.starts.len() {
                    number
                } else {
                    number.saturating_sub(1)
                },
                part: if at + 1 == self.starts.len() { 0 } else { at + 1 },
            };
            out.push_str(&format!("id: {mark}\n"));
            out.push_str(plain.get(*start..end).unwrap_or_default());
        }
        out
    }

    /// Takes an event that the other side has had already.
    pub fn skip(&mut self, event: &Event) {
        self.push(event);
    }

    /// After what was skipped: the event of which the other side has had `parts`, if any.
    ///
    /// Pieces of documents that have ended meanwhile may be gone. Their text is not said again as a piece: the other side
    /// has some of it, and the end carries the whole.
    pub fn resume(&mut self) {
        for sent in self.open.values_mut() {
            sent.has_text = true;
        }
    }

    /// As [`Self::push_marked`], without the first `parts` of what is written.
    pub fn push_rest(&mut self, event: &Event, number: u64, parts: usize) -> String {
        let plain = self.push(event);
        // An end says again what is not sure to have arrived, and how many events that takes depends on what was skipped.
        let parts = if matches!(event, Event::DocumentEnd { .. }) {
            0
        } else {
            parts
        };
        self.marked(&plain, number, parts)
    }

    /// The source has ended. Without a `done` before it the response counts as interrupted.
    pub fn finish(&mut self) -> String {
        self.push(&Event::Done(Done {
            status: Some(Status::Error),
            finish_reason: Some(FinishReason::Interrupted),
            ..Done::default()
        }))
    }

    fn write(&mut self, event: &Event) {
        match event {
            Event::ResponseStart(start) => self.begin(start),
            Event::DocumentStart(start) => self.document_start(start),
            Event::ContentDelta { document, delta } => {
                if let Some(mut sent) = self.take(document) {
                    sent.document.push_content(delta);
                    self.content(&sent.wire, delta);
                    sent.has_text = true;
                    self.put_back(document, sent);
                }
            }
            Event::ToolCallStart {
                document,
                tool_name,
                tool_call_id,
            } => {
                if let Some(mut sent) = self.take(document) {
                    sent.document.name_call(tool_name, tool_call_id.as_deref());
                    self.call(&mut sent);
                    self.put_back(document, sent);
                }
            }
            Event::ToolCallArguments { document, arguments } => {
                if let Some(mut sent) = self.take(document) {
                    if sent.document.push_arguments(arguments).is_some() {
                        self.named(&mut sent);
                        self.arguments(&mut sent);
                    }
                    self.put_back(document, sent);
                }
            }
            Event::ToolResult {
                document,
                result,
                duration_ms,
            } => {
                if let Some(mut sent) = self.take(document) {
                    self.result(&mut sent, result, *duration_ms);
                    self.put_back(document, sent);
                }
            }
            Event::MetadataDelta {
                document,
                metadata,
                append,
            } => {
                if let Some(mut sent) = self.take(document) {
                    self.metadata_delta(&mut sent, metadata, append);
                    self.put_back(document, sent);
                }
            }
            Event::ThinkingDelta { delta } => {
                for piece in pieces(delta) {
                    self.send("thinking_delta", &mut members([("delta", piece.into())]));
                }
            }
            Event::DocumentEnd {
                document,
                final_content,
                metadata,
            } => self.document_end(document, final_content.as_deref(), metadata),
            Event::DocumentUpdate { document, metadata } => self.document_update(document, metadata),
            Event::UserMessage(_) | Event::Notice(_) | Event::Title(_) => {
                if self.is_private {
                    let (name, data) = super::record::parts(event);
                    self.send_any(&name, data);
                }
            }
            Event::Progress(_) => {}
            Event::Done(done) => self.done(done),
            Event::Unknown { name, data } => self.send_any(name, data.clone()),
        }
    }

    fn begin(&mut self, start: &ResponseStart) {
        if self.has_begun {
            return;
        }
        self.has_begun = true;
        let mut whole = head(
            &self.identity,
            start.id.as_ref().map(crate::protocol::ResponseId::as_str),
            start.conversation_id.as_ref(),
            start.model.as_deref(),
            start.mode,
            start.created.as_deref(),
        );
        whole.insert("status".into(), Status::Streaming.as_str().into());
        if !start.capabilities.is_empty() {
            whole.insert("capabilities".into(), start.capabilities.as_slice().into());
        }
        add(&mut whole, &start.extra);
        match self.dialect {
            Dialect::Named => self.send("response_start", &mut whole),
            Dialect::Data => self.send("response_start", &mut members([("response", whole.into())])),
        }
    }

    fn document_start(&mut self, start: &DocumentStart) {
        self.ensure_begun();
        self.sequence += 1;
        if start.kind == Kind::ToolCall {
            self.tool_calls += 1;
        }
        let wire = self.name(&start.id);
        let mut sent = Sent {
            document: Document::open(start.clone(), 0),
            sequence: self.sequence,
            wire,
            has_text: false,
            has_name: false,
            has_arguments: false,
            has_result: false,
            named: HashSet::new(),
            with_nulls: Map::new(),
        };
        let (metadata, large) = divide(start.metadata.clone());
        sent.named = metadata
            .iter()
            .filter(|(_, it)| !it.is_null())
            .map(|(name, _)| name.clone())
            .collect();
        sent.with_nulls = metadata
            .iter()
            .filter(|(_, value)| carries_null(value))
            .map(|(name, value)| (name.clone(), value.clone()))
            .collect();
        let mut document = members([
            ("id", sent.wire.as_str().into()),
            ("type", start.kind.as_str().into()),
            ("sequence", self.sequence.into()),
            ("metadata", metadata.into()),
        ]);
        match self.dialect {
            Dialect::Named => self.send("document_start", &mut document),
            Dialect::Data => self.send("document_start", &mut members([("document", document.into())])),
        }
        if let Some(text) = start.content.as_deref().filter(|it| !it.is_empty()) {
            self.content(&sent.wire, text);
            sent.has_text = true;
        }
        self.in_pieces(&mut sent, large);
        self.by_sequence.insert(self.sequence, start.id.clone());
        self.open.insert(start.id.clone(), sent);
    }

    /// An id on the wire: the source's, if it is sound and new.
    fn name(&mut self, id: &DocumentId) -> DocumentId {
        let mut wire = id.clone();
        let mut number = self.sequence;
        while self.used.contains(&wire) || !is_sound(wire.as_str(), Limits::default().id_bytes) {
            wire = DocumentId::numbered(number);
            number += 1;
        }
        if wire == *id {
            self.renamed.remove(id);
        } else {
            self.renamed.insert(id.clone(), wire.clone());
        }
        self.used.insert(wire.clone());
        wire
    }

    fn content(&mut self, wire: &DocumentId, text: &str) {
        for piece in pieces(text) {
            let mut data = members([("documentId", wire.as_str().into()), ("delta", piece.into())]);
            self.send("content_delta", &mut data);
        }
    }

    fn call(&mut self, sent: &mut Sent) {
        let member = |name: &str| sent.document.metadata.get(name).cloned();
        let mut data = members([
            ("documentId", sent.wire.as_str().into()),
            ("toolName", member("toolName").unwrap_or_else(|| "tool".into())),
        ]);
        // The default that every reader makes up for a call, so that they agree.
        let made = || (sent.document.kind == Kind::ToolCall).then(|| format!("call_{}", sent.document.id).into());
        if let Some(id) = member("toolCallId").or_else(made) {
            data.insert("toolCallId".into(), id);
        }
        self.send("tool_call_start", &mut data);
        sent.has_name = true;
        sent.named.extend(["toolName".to_owned(), "toolCallId".to_owned()]);
    }

    /// The start of a call comes before everything else of it, also where the source names the tool on the document only.
    fn named(&mut self, sent: &mut Sent) {
        let is_known = sent.document.kind == Kind::ToolCall && sent.document.metadata.contains_key("toolName");
        if is_known && !sent.has_name {
            self.call(sent);
        }
    }

    fn arguments(&mut self, sent: &mut Sent) {
        let Some(arguments) = sent.document.metadata.get("arguments").cloned() else {
            return;
        };
        let arguments = match small(&arguments) {
            Some(text) => members([("_raw", text.into())]).into(),
            None => arguments,
        };
        let mut data = members([("documentId", sent.wire.as_str().into()), ("arguments", arguments)]);
        self.send("tool_call_arguments", &mut data);
        sent.has_arguments = true;
        sent.named.insert("arguments".to_owned());
    }

    fn result(&mut self, sent: &mut Sent, result: &Value, duration_ms: Option<u64>) {
        self.named(sent);
        let is_call = sent.document.kind == Kind::ToolCall;
        if sent.document.settle_arguments().is_some() || (is_call && !sent.has_arguments) {
            self.arguments(sent);
        }
        sent.document.set_result(result, duration_ms);
        let result = if sent.document.kind == Kind::ToolCall {
            sent.document.metadata.get("result").unwrap_or(result)
        } else {
            result
        };
        let mut result = result.clone();
        if let Some(text) = small(&result) {
            result = members([("status", "success".into()), ("data", text.into())]).into();
            sent.document.metadata.insert("truncated".into(), true.into());
        }
        let mut data = members([("documentId", sent.wire.as_str().into()), ("result", result)]);
        if let Some(duration) = duration_ms {
            data.insert("duration_ms".into(), duration.into());
        }
        self.send("tool_result", &mut data);
        sent.has_result = true;
        sent.named.extend(sent.document.metadata.keys().cloned());
    }

    fn metadata_delta(&mut self, sent: &mut Sent, metadata: &Map<String, Value>, append: &[(String, String)]) {
        sent.document.patch(metadata);
        let (patch, large) = divide(metadata.clone());
        for name in patch.keys() {
            sent.named.insert(name.clone());
            sent.with_nulls.shift_remove(name);
        }
        let mut data = members([("documentId", sent.wire.as_str().into())]);
        if !patch.is_empty() {
            data.insert("metadata".into(), patch.into());
        }
        let mut appended = Map::new();
        let mut long = Vec::new();
        for (name, text) in append {
            sent.document.append(name, text);
            sent.named.insert(name.clone());
            if text.len() > PIECE_BYTES {
                long.push((name, text));
            } else if let Some(Value::String(before)) = appended.get_mut(name) {
                before.push_str(text);
            } else {
                appended.insert(name.clone(), text.as_str().into());
            }
        }
        if !appended.is_empty() {
            data.insert("append".into(), appended.into());
        }
        if data.len() > 1 {
            self.send("metadata_delta", &mut data);
        }
        for (name, text) in long {
            self.append(&sent.wire, name, text);
        }
        self.in_pieces(sent, large);
    }

    fn append(&mut self, wire: &DocumentId, name: &str, text: &str) {
        for piece in pieces(text) {
            let append = Map::from_iter([(name.to_owned(), piece.into())]);
            let mut data = members([("documentId", wire.as_str().into()), ("append", append.into())]);
            self.send("metadata_delta", &mut data);
        }
    }

    /// Sends texts that are too large for one event, unless they are there already.
    fn in_pieces(&mut self, sent: &mut Sent, large: Vec<(String, Value)>) {
        for (name, value) in large {
            match value {
                Value::String(text) => {
                    let patch = Map::from_iter([(name.clone(), "".into())]);
                    let mut data = members([("documentId", sent.wire.as_str().into()), ("metadata", patch.into())]);
                    self.send("metadata_delta", &mut data);
                    self.append(&sent.wire, &name, &text);
                    sent.named.insert(name);
                }
                // A call's arguments and result have their own events; anything else of that size is left out.
                Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => {}
            }
        }
    }

    fn document_end(&mut self, id: &DocumentId, final_content: Option<&str>, metadata: &Map<String, Value>) {
        let Some(mut sent) = self.take(id) else { return };
        self.by_sequence.remove(&sent.sequence);
        // Every change so far went out as it came, so the other side has these; saying them twice could be too much.
        let known: Map<_, _> = sent
            .document
            .metadata
            .iter()
            .filter(|(_, value)| value.as_str().is_some_and(|it| it.len() > PIECE_BYTES / 4))
            .map(|(name, value)| (name.clone(), value.clone()))
            .collect();
        sent.document.assign(metadata);
        let streamed = sent.document.content.take();
        sent.document.content = final_content.map(str::to_owned).or_else(|| streamed.clone());
        sent.document.finish();
        sent.document.settle_result();

        if sent.document.kind == Kind::ToolCall {
            // Too late is worse than not at all: the end says everything once more.
            if !sent.has_name && !sent.has_arguments && !sent.has_result {
                self.call(&mut sent);
            }
            if !sent.has_arguments && !sent.has_result {
                self.arguments(&mut sent);
            }
            if !sent.has_result
                && let Some(result) = sent.document.metadata.get("result").cloned()
            {
                let duration = sent.document.metadata.get("duration_ms").and_then(Value::as_u64);
                self.result(&mut sent, &result, duration);
            }
        }
        let final_content = self.final_content(&mut sent, streamed.as_deref());
        let complete: Map<_, _> = sent
            .document
            .metadata
            .iter()
            .filter(|(name, value)| {
                !value.is_null()
                    && ![&sent.with_nulls, &known]
                        .iter()
                        .any(|it| it.get(*name) == Some(*value))
            })
            .map(|(name, value)| (name.clone(), value.clone()))
            .collect();
        let (mut patch, large) = divide(complete);
        self.in_pieces(&mut sent, large);
        let gone = |name: &&String| sent.document.metadata.get(*name).is_none_or(Value::is_null);
        for name in sent.named.iter().filter(gone) {
            patch.insert(name.clone(), Value::Null);
        }
        let mut data = members([("documentId", sent.wire.as_str().into())]);
        if let Some(text) = final_content {
            data.insert("finalContent".into(), text.into());
        }
        data.insert("metadata".into(), patch.into());
        self.send("document_end", &mut data);
    }

    /// The text that the end must carry; sends it as deltas instead where nothing of it went out yet.
    fn final_content(&mut self, sent: &mut Sent, streamed: Option<&str>) -> Option<String> {
        let content = sent.document.content.clone()?;
        if content.is_empty() {
            // These kinds tell an empty text from none.
            let tells = matches!(sent.document.kind, Kind::FileEdit | Kind::Other(_));
            return (tells || sent.has_text).then_some(content);
        }
        if !sent.has_text {
            self.content(&sent.wire, &content);
            return None;
        }
        (content.len() <= PIECE_BYTES || streamed != Some(content.as_str())).then_some(content)
    }

    fn document_update(&mut self, id: &DocumentId, metadata: &Map<String, Value>) {
        if let Some(mut sent) = self.take(id) {
            self.metadata_delta(&mut sent, metadata, &[]);
            self.put_back(id, sent);
            return;
        }
        let wire = self.renamed.get(id).unwrap_or(id).clone();
        if self.used.contains(&wire) {
            let metadata = Value::Object(metadata.clone());
            let mut data = members([("documentId", wire.as_str().into()), ("metadata", metadata)]);
            self.send("document_update", &mut data);
        }
    }

    fn done(&mut self, done: &Done) {
        self.ensure_begun();
        while let Some(id) = self.by_sequence.values().next().cloned() {
            self.document_end(&id, None, &Map::new());
        }
        let status = match &done.status {
            None | Some(Status::Streaming) => Status::Completed,
            Some(status) => status.clone(),
        };
        let finish_reason = done.finish_reason.clone().unwrap_or(match status {
            Status::Error => FinishReason::Error,
            Status::Completed | Status::Streaming | Status::Other(_) => FinishReason::Stop,
        });
        let mut metadata = Map::new();
        if let Some(duration) = done.duration_ms {
            metadata.insert("duration_ms".into(), duration.into());
        }
        metadata.insert(
            "toolCallCount".into(),
            done.tool_call_count.unwrap_or(self.tool_calls).into(),
        );
        metadata.insert("turnCount".into(), done.turn_count.unwrap_or(1).into());
        metadata.insert("finishReason".into(), finish_reason.as_str().into());
        add(&mut metadata, &done.extra_metadata);
        let mut data = Map::new();
        data.insert("usage".into(), usage(done.usage.unwrap_or_default(), &done.extra_usage));
        let mut say = |name: &str, text: Option<&str>| {
            if let Some(text) = text {
                data.insert(name.to_owned(), text.into());
            }
        };
        say("id", done.id.as_ref().map(crate::protocol::ResponseId::as_str));
        say(
            "conversationId",
            done.conversation_id
                .as_ref()
                .map(crate::protocol::ConversationId::as_str),
        );
        say("model", done.model.as_deref());
        say("mode", done.mode.map(crate::protocol::Mode::as_str));
        say("created", done.created.as_deref());
        say("status", Some(status.as_str()));
        data.insert("metadata".into(), metadata.into());
        add(&mut data, &done.extra);
        self.send("done", &mut data);
        self.is_done = true;
        if self.dialect == Dialect::Data {
            self.starts.push(self.out.len());
            self.out.push_str("data: [DONE]\n\n");
        }
    }

    fn take(&mut self, id: &DocumentId) -> Option<Sent> {
        self.open.remove(id)
    }

    fn put_back(&mut self, id: &DocumentId, sent: Sent) {
        self.open.insert(id.clone(), sent);
    }

    fn ensure_begun(&mut self) {
        if !self.has_begun {
            self.begin(&ResponseStart::default());
        }
    }

    /// Writes one event of the protocol.
    fn send(&mut self, name: &str, data: &mut Map<String, Value>) {
        self.ensure_begun();
        self.starts.push(self.out.len());
        match self.dialect {
            Dialect::Named => self.line("event", name),
            Dialect::Data => {
                data.shift_insert(0, "type".to_owned(), name.into());
            }
        }
        let json = Value::Object(std::mem::take(data)).to_string();
        self.line("data", &json);
        self.out.push('\n');
    }

    /// Writes an event that the protocol does not know, under a name that may be anything.
    fn send_any(&mut self, name: &str, data: Value) {
        let mut data = match data {
            Value::Object(members) => members,
            other => members([("data", other)]),
        };
        let is_plain = !name.is_empty() && name != "message" && name.trim() == name && !name.contains(char::is_control);
        if self.dialect == Dialect::Named && is_plain {
            self.send(name, &mut data);
            return;
        }
        self.ensure_begun();
        self.starts.push(self.out.len());
        // A member called `type` cannot stand beside the name.
        if data.contains_key("type") {
            data = members([("data", data.into())]);
        }
        data.shift_insert(0, "type".to_owned(), name.into());
        self.line("data", &Value::Object(data).to_string());
        self.out.push('\n');
    }

    fn line(&mut self, field: &str, value: &str) {
        debug_assert!(
            !value.contains(['\n', '\r']),
            "JSON and plain names have no line breaks"
        );
        self.out.push_str(field);
        self.out.push_str(": ");
        self.out.push_str(value);
        self.out.push('\n');
    }
}

/// The JSON answer of a strict writer: what nobody said is the identity's.
pub fn answer(response: &Response, identity: &Identity) -> Value {
    let mut whole = head(
        identity,
        response.id.as_ref().map(crate::protocol::ResponseId::as_str),
        response.conversation_id.as_ref(),
        response.model.as_deref(),
        response.mode,
        response.created.as_deref(),
    );
    if let Value::Object(members) = response.to_json() {
        add(&mut whole, &members);
    }
    whole.into()
}

/// The members of a response that are known at its start.
fn head(
    identity: &Identity,
    id: Option<&str>,
    conversation_id: Option<&crate::protocol::ConversationId>,
    model: Option<&str>,
    mode: Option<crate::protocol::Mode>,
    created: Option<&str>,
) -> Map<String, Value> {
    let mut whole = members([("id", id.unwrap_or(identity.id.as_str()).into())]);
    if let Some(conversation) = conversation_id.or(identity.conversation_id.as_ref()) {
        whole.insert("conversationId".into(), conversation.as_str().into());
    }
    // Nobody need know it, but it has to be said: who asks for no model may be answered by a recording that names none.
    let mut models = [model, Some(identity.model.as_str())].into_iter().flatten();
    let model = models.find(|it| !it.is_empty()).unwrap_or("unknown");
    whole.insert("model".into(), model.into());
    whole.insert("mode".into(), mode.unwrap_or(identity.mode).as_str().into());
    let created = created.map_or_else(|| iso(identity.created_ms), str::to_owned);
    whole.insert("created".into(), created.into());
    whole
}

fn usage(usage: Usage, extra: &Map<String, Value>) -> Value {
    let mut whole = members([
        ("promptTokens", usage.prompt_tokens.into()),
        ("completionTokens", usage.completion_tokens.into()),
        ("totalTokens", usage.total_tokens.into()),
    ]);
    add(&mut whole, extra);
    whole.into()
}

fn members<const N: usize>(pairs: [(&str, Value); N]) -> Map<String, Value> {
    pairs
        .into_iter()
        .map(|(name, value)| (name.to_owned(), value))
        .collect()
}

/// Adds what is not there yet.
fn add(whole: &mut Map<String, Value>, extra: &Map<String, Value>) {
    for (name, value) in extra {
        whole.entry(name.clone()).or_insert_with(|| value.clone());
    }
}

/// Whether an object in the value holds a null, which a merge patch would take for a removal.
fn carries_null(value: &Value) -> bool {
    match value {
        Value::Object(members) => members.values().any(|it| it.is_null() || carries_null(it)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => false,
    }
}

/// What fits into one event, and what does not.
fn divide(mut metadata: Map<String, Value>) -> (Map<String, Value>, Vec<(String, Value)>) {
    let mut room = METADATA_BYTES;
    let mut large = Vec::new();
    let too_large: Vec<_> = metadata
        .iter()
        .filter_map(|(name, value)| {
            let weight = weigh(value);
            if weight <= room {
                room -= weight;
                None
            } else {
                Some(name.clone())
            }
        })
        .collect();
    for name in too_large {
        if let Some(value) = metadata.shift_remove(&name) {
            large.push((name, value));
        }
    }
    (metadata, large)
}

/// The start of the value's text, if the value is too large for one event.
fn small(value: &Value) -> Option<String> {
    if weigh(value) <= METADATA_BYTES {
        return None;
    }
    let whole = value.to_string();
    if whole.len() <= Limits::default().event_bytes - PIECE_BYTES {
        return None;
    }
    let data = value.get("data").and_then(Value::as_str).unwrap_or(&whole);
    Some(cut(data, METADATA_BYTES).to_owned())
}

/// The text in pieces of at most [`PIECE_BYTES`].
fn pieces(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        let piece = cut(rest, PIECE_BYTES);
        rest = rest.get(piece.len()..).unwrap_or_default();
        (!piece.is_empty()).then_some(piece)
    })
}
