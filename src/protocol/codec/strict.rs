//! Events as a strict writer says them, whatever the source did: one event here is one on the wire.
//!
//! It folds each open document, so that the end it gives is complete even where the source's was not, and so that a
//! source whose deltas are gone (a journal) still reads as a stream: the text goes out as a delta, a call's arguments
//! and result as their events. What was strict already stays as it was.

use std::collections::{BTreeMap, HashMap, HashSet};

use serde_json::{Map, Value};

use super::{
    Identity, Limits,
    open::is_sound,
    payload::{cut, text_of, weigh},
    time::iso,
};
use crate::{
    os::long_text::LongText,
    protocol::{Document, DocumentId, DocumentStart, Done, Event, FinishReason, Kind, ResponseStart, Status},
};

/// Largest text of one event in bytes. Each byte may take six in JSON, and readers stop at lines of 16 MiB.
const PIECE_BYTES: usize = 1 << 20;

/// Largest metadata of one event in bytes; larger metadata is sent in several events.
const METADATA_BYTES: usize = 2 << 20;

/// Makes the events of one response strict.
pub struct Strict {
    identity: Identity,
    /// Our own events go out too.
    is_private: bool,
    /// The source's ends may lack the text that came before them.
    keeps_texts: bool,
    out: Vec<Event>,
    has_begun: bool,
    is_done: bool,
    /// In boxes: a table has room for three more, and most answers have one open at a time.
    open: HashMap<DocumentId, Box<Sent>>,
    by_sequence: BTreeMap<u64, DocumentId>,
    /// Ids on the wire.
    used: HashSet<DocumentId>,
    /// Documents of the source that go by another name on the wire.
    renamed: HashMap<DocumentId, DocumentId>,
    sequence: u64,
    tool_calls: u64,
}

/// An open document, and what the receiver knows of it.
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
    /// Members of the start with nulls that no patch could carry.
    with_nulls: Map<String, Value>,
}

impl Strict {
    pub fn new(identity: Identity) -> Self {
        Self {
            identity,
            is_private: false,
            keeps_texts: true,
            out: Vec::new(),
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

    /// Passes user messages, notices and titles on too.
    pub fn private(self) -> Self {
        Self {
            is_private: true,
            ..self
        }
    }

    /// For a source whose documents end with all of the text that their deltas said: it is not kept for the end.
    pub fn of_whole_ends(self) -> Self {
        Self {
            keeps_texts: false,
            ..self
        }
    }

    pub fn is_done(&self) -> bool {
        self.is_done
    }

    /// Returns the events to send for one event of the source; often none.
    pub fn push(&mut self, event: &Event) -> Vec<Event> {
        if !self.is_done {
            self.take_over(event);
        }
        std::mem::take(&mut self.out)
    }

    /// The source has ended. Without a `done` before it the response counts as interrupted.
    pub fn finish(&mut self) -> Vec<Event> {
        self.push(&Event::Done(Done {
            status: Some(Status::Error),
            finish_reason: Some(FinishReason::Interrupted),
            ..Done::default()
        }))
    }

    fn take_over(&mut self, event: &Event) {
        match event {
            Event::ResponseStart(start) => self.begin(start),
            Event::DocumentStart(start) => self.document_start(start),
            Event::ContentDelta { document, delta } => {
                if let Some(mut sent) = self.open.remove(document) {
                    if self.keeps_texts {
                        sent.document.push_content(delta);
                    }
                    self.content(&sent.wire, delta);
                    sent.has_text = true;
                    self.open.insert(document.clone(), sent);
                }
            }
            Event::ToolCallStart {
                document,
                tool_name,
                tool_call_id,
            } => {
                if let Some(mut sent) = self.open.remove(document) {
                    sent.document.name_call(tool_name, tool_call_id.as_deref());
                    self.call(&mut sent);
                    self.open.insert(document.clone(), sent);
                }
            }
            Event::ToolCallArguments { document, arguments } => {
                if let Some(mut sent) = self.open.remove(document) {
                    if sent.document.push_arguments(arguments).is_some() {
                        self.named(&mut sent);
                        self.arguments(&mut sent);
                    }
                    self.open.insert(document.clone(), sent);
                }
            }
            Event::ToolResult {
                document,
                result,
                duration_ms,
            } => {
                if let Some(mut sent) = self.open.remove(document) {
                    self.result(&mut sent, result, *duration_ms);
                    self.open.insert(document.clone(), sent);
                }
            }
            Event::MetadataDelta {
                document,
                metadata,
                append,
            } => {
                if let Some(mut sent) = self.open.remove(document) {
                    self.metadata_delta(&mut sent, metadata, append);
                    self.open.insert(document.clone(), sent);
                }
            }
            Event::ThinkingDelta { delta } => {
                for piece in pieces(delta) {
                    self.emit(Event::ThinkingDelta {
                        delta: piece.to_owned(),
                    });
                }
            }
            Event::DocumentEnd {
                document,
                final_content,
                metadata,
            } => self.document_end(document, final_content.as_ref(), metadata),
            Event::DocumentUpdate { document, metadata } => self.document_update(document, metadata),
            Event::UserMessage(_) | Event::Notice(_) | Event::Title(_) | Event::Branch(_) => {
                if self.is_private {
                    self.emit(event.clone());
                }
            }
            Event::Progress(_) | Event::Told(_) | Event::Said { .. } => {}
            Event::Done(done) => self.done(done),
            Event::Unknown { .. } => self.emit(event.clone()),
        }
    }

    fn begin(&mut self, start: &ResponseStart) {
        if self.has_begun {
            return;
        }
        self.has_begun = true;
        let identity = &self.identity;
        // Nobody need know the model, but it has to be said: who asks for none may be answered by a recording that names none.
        let mut models = [start.model.as_deref(), Some(identity.model.as_str())]
            .into_iter()
            .flatten();
        let model = models.find(|it| !it.is_empty()).unwrap_or("unknown");
        self.out.push(Event::ResponseStart(ResponseStart {
            id: Some(start.id.clone().unwrap_or_else(|| identity.id.clone())),
            conversation_id: start
                .conversation_id
                .clone()
                .or_else(|| identity.conversation_id.clone()),
            model: Some(model.to_owned()),
            mode: Some(start.mode.unwrap_or(identity.mode)),
            created: Some(start.created.clone().unwrap_or_else(|| iso(identity.created_ms))),
            capabilities: start.capabilities.clone(),
            extra: start.extra.clone(),
        }));
    }

    fn document_start(&mut self, start: &DocumentStart) {
        self.ensure_begun();
        // A source that begins a document twice has forgotten the end of the first one.
        if self.open.contains_key(&start.id) {
            self.document_end(&start.id, None, &Map::new());
        }
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
        self.emit(Event::DocumentStart(DocumentStart {
            id: sent.wire.clone(),
            kind: start.kind.clone(),
            sequence: Some(self.sequence),
            content: None,
            metadata,
        }));
        if let Some(text) = start.content.as_deref().filter(|it| !it.is_empty()) {
            self.content(&sent.wire, text);
            sent.has_text = true;
        }
        self.in_pieces(&mut sent, large);
        self.by_sequence.insert(self.sequence, start.id.clone());
        self.open.insert(start.id.clone(), Box::new(sent));
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
            self.emit(Event::ContentDelta {
                document: wire.clone(),
                delta: piece.to_owned(),
            });
        }
    }

    fn call(&mut self, sent: &mut Sent) {
        let member = |name: &str| sent.document.metadata.get(name).map(text_of);
        let tool_name = member("toolName").unwrap_or_else(|| "tool".to_owned());
        // The default that every reader makes up for a call, so that they agree.
        let made = || (sent.document.kind == Kind::ToolCall).then(|| format!("call_{}", sent.document.id));
        let tool_call_id = member("toolCallId").or_else(made);
        self.emit(Event::ToolCallStart {
            document: sent.wire.clone(),
            tool_name,
            tool_call_id,
        });
        sent.has_name = true;
        sent.named.extend(["toolName".to_owned(), "toolCallId".to_owned()]);
    }

    /// Sends the start of a call before everything else of it, even if the source names the tool on the document
    /// only.
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
            Some(text) => Map::from_iter([("_raw".to_owned(), text.into())]).into(),
            None => arguments,
        };
        self.emit(Event::ToolCallArguments {
            document: sent.wire.clone(),
            arguments,
        });
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
            result = serde_json::json!({ "status": "success", "data": text });
            sent.document.metadata.insert("truncated".into(), true.into());
        }
        self.emit(Event::ToolResult {
            document: sent.wire.clone(),
            result,
            duration_ms,
        });
        sent.has_result = true;
        let valued = sent.document.metadata.iter().filter(|(_, value)| !value.is_null());
        sent.named.extend(valued.map(|(name, _)| name.clone()));
    }

    fn metadata_delta(&mut self, sent: &mut Sent, metadata: &Map<String, Value>, append: &[(String, String)]) {
        sent.document.patch(metadata);
        let (patch, large) = divide(metadata.clone());
        for name in patch.keys() {
            sent.named.insert(name.clone());
            sent.with_nulls.shift_remove(name);
        }
        let mut short: Vec<(String, String)> = Vec::new();
        let mut long = Vec::new();
        for (name, text) in append {
            sent.document.append(name, text);
            sent.named.insert(name.clone());
            if text.len() > PIECE_BYTES {
                long.push((name, text));
            } else if let Some((_, before)) = short.iter_mut().find(|it| it.0 == *name) {
                before.push_str(text);
            } else {
                short.push((name.clone(), text.clone()));
            }
        }
        self.patch(&sent.wire, patch, short);
        for (name, text) in long {
            self.append(&sent.wire, name, text);
        }
        self.in_pieces(sent, large);
    }

    fn patch(&mut self, wire: &DocumentId, metadata: Map<String, Value>, append: Vec<(String, String)>) {
        if !metadata.is_empty() || !append.is_empty() {
            self.emit(Event::MetadataDelta {
                document: wire.clone(),
                metadata,
                append,
            });
        }
    }

    fn append(&mut self, wire: &DocumentId, name: &str, text: &str) {
        for piece in pieces(text) {
            self.patch(wire, Map::new(), vec![(name.to_owned(), piece.to_owned())]);
        }
    }

    /// Sends texts that are too large for one event, unless they are there already.
    fn in_pieces(&mut self, sent: &mut Sent, large: Vec<(String, Value)>) {
        for (name, value) in large {
            match value {
                Value::String(text) => {
                    self.patch(&sent.wire, Map::from_iter([(name.clone(), "".into())]), Vec::new());
                    self.append(&sent.wire, &name, &text);
                    sent.named.insert(name);
                }
                // A call's arguments and result have their own events; anything else of that size is left out.
                Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => {}
            }
        }
    }

    fn document_end(&mut self, id: &DocumentId, final_content: Option<&LongText>, metadata: &Map<String, Value>) {
        let Some(mut sent) = self.taken(id) else { return };
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
        let streamed = sent.document.content.take().map(LongText::settled);
        sent.document.content = final_content.or(streamed.as_ref()).cloned();
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
        let final_content = self.final_content(&mut sent, streamed.as_ref());
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
        self.emit(Event::DocumentEnd {
            document: sent.wire,
            final_content,
            metadata: patch,
        });
    }

    /// The document of that name, the source's or the one on the wire.
    fn taken(&mut self, id: &DocumentId) -> Option<Box<Sent>> {
        self.open.remove(id).or_else(|| {
            let named = self.open.iter().find(|(_, sent)| sent.wire == *id);
            let source = named.map(|(source, _)| source.clone())?;
            self.open.remove(&source)
        })
    }

    /// Returns the text that the end must carry. If nothing was sent yet, sends it as deltas instead.
    fn final_content(&mut self, sent: &mut Sent, streamed: Option<&LongText>) -> Option<LongText> {
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
        let was_sent = !self.keeps_texts || streamed == Some(&content);
        (content.len() <= PIECE_BYTES || !was_sent).then_some(content)
    }

    fn document_update(&mut self, id: &DocumentId, metadata: &Map<String, Value>) {
        if let Some(mut sent) = self.open.remove(id) {
            self.metadata_delta(&mut sent, metadata, &[]);
            self.open.insert(id.clone(), sent);
            return;
        }
        let wire = self.renamed.get(id).unwrap_or(id).clone();
        if self.used.contains(&wire) {
            self.emit(Event::DocumentUpdate {
                document: wire,
                metadata: metadata.clone(),
            });
        }
    }

    fn done(&mut self, done: &Done) {
        self.ensure_begun();
        while let Some((_, id)) = self.by_sequence.pop_first() {
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
        self.emit(Event::Done(Done {
            usage: Some(done.usage.unwrap_or_default()),
            status: Some(status),
            finish_reason: Some(finish_reason),
            tool_call_count: Some(done.tool_call_count.unwrap_or(self.tool_calls)),
            turn_count: Some(done.turn_count.unwrap_or(1)),
            ..done.clone()
        }));
        self.is_done = true;
    }

    fn ensure_begun(&mut self) {
        if !self.has_begun {
            self.begin(&ResponseStart::default());
        }
    }

    fn emit(&mut self, event: Event) {
        self.ensure_begun();
        self.out.push(event);
    }
}

/// Returns true if an object in the value contains a null, which a merge patch would take for a removal.
fn carries_null(value: &Value) -> bool {
    match value {
        Value::Object(members) => members.values().any(|it| it.is_null() || carries_null(it)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => false,
    }
}

/// Divides metadata into members that fit into one event and texts that do not.
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::{Mode, codec::Identity};

    #[test]
    fn the_text_of_whole_ends_is_passed_on_as_it_is_unless_it_is_long() {
        let document = |text: String| {
            [
                Event::DocumentStart(DocumentStart {
                    id: "a".into(),
                    kind: Kind::Text,
                    sequence: None,
                    content: None,
                    metadata: Map::new(),
                }),
                Event::ContentDelta {
                    document: "a".into(),
                    delta: text.clone(),
                },
                Event::DocumentEnd {
                    document: "a".into(),
                    final_content: Some(text.into()),
                    metadata: Map::new(),
                },
            ]
        };
        let identity = Identity::local("m", Mode::Agent, 0);
        for text in ["short".to_owned(), "long".repeat(PIECE_BYTES)] {
            let strict = || Strict::new(identity.clone());
            let said = |mut strict: Strict| -> Vec<Event> {
                let events = document(text.clone());
                events.iter().flat_map(|it| strict.push(it)).collect()
            };
            assert_eq!(said(strict().of_whole_ends()), said(strict()));
        }
    }

    /// A link is not trusted: it may begin a document that it has not ended.
    #[test]
    fn a_document_that_begins_twice_has_two_ends() {
        let start = Event::DocumentStart(DocumentStart {
            id: "a".into(),
            kind: Kind::Text,
            sequence: None,
            content: None,
            metadata: Map::new(),
        });
        let mut strict = Strict::new(Identity::local("m", Mode::Agent, 0));
        let events: Vec<Event> = [start.clone(), start, Event::Done(Done::default())]
            .iter()
            .flat_map(|it| strict.push(it))
            .collect();
        let named = |is: fn(&Event) -> bool| events.iter().filter(|it| is(it)).count();
        assert_eq!(named(|it| matches!(it, Event::DocumentStart(_))), 2);
        assert_eq!(named(|it| matches!(it, Event::DocumentEnd { .. })), 2);
        assert!(strict.is_done());
    }
}
