//! The part of the decoder that is about documents: each starts once, grows while it is open, ends once and whole.

use serde_json::{Map, Value, json};

use super::{
    super::{
        open::{Naming, OpenDocument, fit},
        payload::{Parts, cut, take_count, take_text, text_of, weigh, weigh_all},
    },
    Decoder, quote,
};
use crate::{
    os::long_text::LongText,
    protocol::{
        Document, DocumentId, DocumentStart, Event, Kind, Severity,
        document::{Plan, normalise, normalise_result},
    },
};

impl Decoder {
    pub(super) fn document_start(&mut self, mut members: Map<String, Value>) {
        if members.get("type").and_then(Value::as_str) == Some("document_start") {
            members.shift_remove("type");
        }
        if let Some(Value::Object(_)) = members.get("document")
            && let Some(Value::Object(mut inner)) = members.shift_remove("document")
        {
            for name in ["sequence", "metadata", "documentId"] {
                if let Some(value) = members.shift_remove(name)
                    && !inner.contains_key(name)
                {
                    inner.insert(name.to_owned(), value);
                }
            }
            members = inner;
        }
        // The envelope names the document a second time.
        if members.get("id").is_some_and(|it| !it.is_null()) {
            members.shift_remove("documentId");
        }
        let parts = Parts::of(members);
        self.open(parts);
    }

    /// Opens a document; `None` when there are too many.
    pub(super) fn open(&mut self, parts: Parts) -> Option<DocumentId> {
        if self.shelf.count() >= self.limits.documents {
            if !self.counts.is_full {
                let message = format!("only the first {} documents are kept", self.limits.documents);
                self.notice(Severity::Error, "too-many-documents", &message, None);
            }
            self.counts.is_full = true;
            return None;
        }
        let (id, naming) = self.shelf.name(parts.id.as_deref(), &self.limits);
        match naming {
            Naming::AsSent => {}
            Naming::Missing => {
                let message = format!("a document has no id; it is called {id}");
                self.notice(Severity::Warning, "missing-id", &message, Some(&id));
            }
            Naming::Hashed => {
                let message = format!("a document's id is too long or odd; it is called {id}");
                self.notice(Severity::Warning, "odd-id", &message, Some(&id));
            }
            Naming::Duplicate => {
                let message = format!("a second document has the same id; it is called {id}");
                self.notice(Severity::Warning, "duplicate-id", &message, Some(&id));
            }
        }
        for name in &parts.odd {
            let message = format!("a document's {name} is missing or of the wrong type");
            self.notice(Severity::Warning, "wrong-type", &message, Some(&id));
        }
        let mut metadata = normalise(&parts.kind, parts.metadata);
        let mut content = parts.content;
        let room = self.limits.document_bytes.min(self.response_room());
        let is_cut = fit(&mut content, &mut metadata, room);
        self.counts.response_bytes += content.as_ref().map_or(0, String::len) + weigh_all(&metadata);
        if parts.kind == Kind::ToolCall {
            self.counts.tool_calls += 1;
        }
        let start = DocumentStart {
            id: id.clone(),
            kind: parts.kind,
            sequence: parts.sequence,
            content: content.map(|it| LongText::from(it).settled()),
            metadata,
        };
        let mut open = OpenDocument::new(Document::open(start.clone(), 0), self.shelf.count() as u64);
        open.is_cut = is_cut;
        self.shelf.put(parts.id.as_deref(), open, &self.limits);
        self.emit(Event::DocumentStart(start));
        if is_cut {
            self.notice_cut(&id);
        }
        Some(id)
    }

    /// Returns the open document that an event is about; opens one of `kind` if none was started.
    pub(super) fn target(&mut self, members: &mut Map<String, Value>, kind: &Kind) -> Option<DocumentId> {
        let wire = take_text(members, &["documentId", "document_id", "id"]);
        let Some(wire) = wire else {
            let newest = self.shelf.newest();
            let message = match &newest {
                Some(id) => format!("an event names no document; {id} takes it"),
                None => "an event names no document and none is open".to_owned(),
            };
            self.notice(Severity::Warning, "missing-id", &message, newest.as_ref());
            return newest.or_else(|| self.open(implicit(None, kind)));
        };
        let id = self.shelf.route(&wire, &self.limits);
        if self.shelf.is_open(&id) {
            return Some(id);
        }
        if self.shelf.is_known(&id) {
            let message = format!("{id} has ended; what came for it later is dropped");
            self.notice(Severity::Warning, "late-event", &message, Some(&id));
            return None;
        }
        if self.counts.is_full {
            return None;
        }
        let opened = self.open(implicit(Some(wire), kind))?;
        let message = format!("nobody started {opened}; it is shown as {kind}");
        self.notice(Severity::Warning, "unknown-document", &message, Some(&opened));
        Some(opened)
    }

    pub(super) fn grow(&mut self, id: &DocumentId, delta: &str) {
        let taken = self.room(id, delta.len());
        let delta = cut(delta, taken);
        if delta.is_empty() {
            return;
        }
        if let Some(open) = self.shelf.get(id) {
            open.document.push_content(delta);
        }
        self.emit(Event::ContentDelta {
            document: id.clone(),
            delta: delta.to_owned(),
        });
    }

    /// Returns the number of `wanted` bytes that still fit into the document. Adds a notice once when it is full.
    pub(super) fn room(&mut self, id: &DocumentId, wanted: usize) -> usize {
        let response_room = self.response_room();
        let limit = self.limits.document_bytes;
        let Some(open) = self.shelf.get(id) else { return 0 };
        let was_cut = open.is_cut;
        let mut room = open.room(wanted, limit);
        if room > response_room {
            room = response_room;
            open.is_cut = true;
        }
        let is_cut = open.is_cut;
        self.counts.response_bytes += room;
        if is_cut && !was_cut {
            self.notice_cut(id);
        }
        room
    }

    pub(super) fn response_room(&self) -> usize {
        self.limits.response_bytes.saturating_sub(self.counts.response_bytes)
    }

    pub(super) fn notice_cut(&mut self, id: &DocumentId) {
        let message = format!("{id} is too large; what goes beyond is cut");
        self.notice(Severity::Error, "document-too-large", &message, Some(id));
    }

    pub(super) fn tool_call_start(&mut self, mut members: Map<String, Value>) {
        let tool_name = take_text(&mut members, &["toolName", "tool_name", "name"]);
        let tool_call_id = take_text(&mut members, &["toolCallId", "call_id", "callId"]);
        let arguments = members.shift_remove("arguments").filter(|it| !it.is_null());
        let Some(id) = self.target(&mut members, &Kind::ToolCall) else {
            return;
        };
        let before = |open: &OpenDocument| {
            open.document
                .metadata
                .get("toolName")
                .and_then(Value::as_str)
                .map(str::to_owned)
        };
        let tool_name = tool_name.or_else(|| self.shelf.get(&id).and_then(|it| before(it)));
        let wanted = tool_name.as_ref().map_or(0, String::len) + tool_call_id.as_ref().map_or(0, String::len);
        if self.room(&id, wanted) < wanted {
            return;
        }
        let tool_name = tool_name.unwrap_or_else(|| "tool".to_owned());
        if let Some(open) = self.shelf.get(&id) {
            open.document.name_call(&tool_name, tool_call_id.as_deref());
        }
        self.emit(Event::ToolCallStart {
            document: id.clone(),
            tool_name,
            tool_call_id,
        });
        if let Some(arguments) = arguments {
            self.arguments(&id, arguments);
        }
    }

    /// Gathers fragments and emits the arguments once they are complete.
    pub(super) fn arguments(&mut self, id: &DocumentId, arguments: Value) {
        let wanted = weigh(&arguments);
        if self.room(id, wanted) < wanted {
            return;
        }
        let Some(open) = self.shelf.get(id) else { return };
        let whole = open.document.push_arguments(&arguments);
        if let Some(whole) = whole {
            self.emit(Event::ToolCallArguments {
                document: id.clone(),
                arguments: whole,
            });
        }
    }

    pub(super) fn tool_result(&mut self, mut members: Map<String, Value>) {
        let duration_ms = take_count(&mut members, &["duration_ms", "durationMs"]);
        let truncated = members.shift_remove("truncated").filter(Value::is_boolean);
        let mut result = members.shift_remove("result").unwrap_or(Value::Null);
        // A result that is a text may have its status, and its data, beside it.
        let status = take_text(&mut members, &["status"]).filter(|it| matches!(it.as_str(), "success" | "error"));
        let data = members.shift_remove("data");
        if result.is_string() && (status.is_some() || data.is_some()) {
            let status = status.unwrap_or_else(|| "success".to_owned());
            result = json!({ "status": status, "data": data.unwrap_or(result) });
        }
        let Some(id) = self.target(&mut members, &Kind::ToolCall) else {
            return;
        };
        let wanted = weigh(&result);
        if self.room(&id, wanted) < wanted {
            return;
        }
        let Some(open) = self.shelf.get(&id) else { return };
        let settled = open.document.settle_arguments();
        let result = if open.document.kind == Kind::ToolCall {
            normalise_result(result)
        } else {
            result
        };
        open.document.set_result(&result, duration_ms);
        if let Some(arguments) = settled {
            self.emit(Event::ToolCallArguments {
                document: id.clone(),
                arguments,
            });
        }
        self.emit(Event::ToolResult {
            document: id.clone(),
            result,
            duration_ms,
        });
        if let Some(truncated) = truncated {
            let patch = Map::from_iter([("truncated".to_owned(), truncated)]);
            self.patch(&id, patch, Vec::new());
        }
    }

    pub(super) fn metadata_delta(&mut self, mut members: Map<String, Value>) {
        let patch = self.object_of(&mut members, "metadata");
        let appended = self.object_of(&mut members, "append");
        let Some(id) = self.target(&mut members, &Kind::Text) else {
            return;
        };
        let mut append = Vec::new();
        for (member, text) in appended {
            if !matches!(text, Value::String(_)) {
                let message = format!(
                    "what is appended to {} is no text; it was turned into one",
                    quote(&member)
                );
                self.notice(Severity::Warning, "wrong-type", &message, Some(&id));
            }
            append.push((member, text_of(&text)));
        }
        self.patch(&id, patch, append);
    }

    pub(super) fn patch(&mut self, id: &DocumentId, patch: Map<String, Value>, append: Vec<(String, String)>) {
        let wanted = weigh_all(&patch);
        let patch = if self.room(id, wanted) < wanted {
            Map::new()
        } else {
            patch
        };
        let mut kept = Vec::with_capacity(append.len());
        for (member, text) in append {
            let taken = self.room(id, text.len());
            let text = cut(&text, taken);
            if !text.is_empty() {
                kept.push((member, text.to_owned()));
            }
        }
        let Some(open) = self.shelf.get(id) else { return };
        let patch = normalise(&open.document.kind, patch);
        open.document.patch(&patch);
        for (member, text) in &kept {
            open.document.append(member, text);
        }
        if !patch.is_empty() || !kept.is_empty() {
            self.emit(Event::MetadataDelta {
                document: id.clone(),
                metadata: patch,
                append: kept,
            });
        }
    }

    pub(super) fn document_end(&mut self, mut members: Map<String, Value>) {
        members.shift_remove("type");
        members.shift_remove("event");
        let mut final_content = members.shift_remove("finalContent").filter(|it| !it.is_null());
        let mut patch = Map::new();
        if let Some(Value::Object(_)) = members.get("document")
            && let Some(Value::Object(inner)) = members.shift_remove("document")
        {
            let whole = Parts::of(inner);
            if let Some(id) = whole.id {
                members.entry("documentId").or_insert(Value::String(id));
            }
            final_content = final_content.or(whole.content.map(Value::String));
            patch = whole.metadata;
        }
        let explicit = self.object_of(&mut members, "metadata");
        let wire = take_text(&mut members, &["documentId", "document_id", "id"]);
        members.shift_remove("id");
        members.shift_remove("sequence");
        let content = members.shift_remove("content").filter(|it| !it.is_null());
        let final_content = final_content.or(content);
        patch.extend(members);
        patch.extend(explicit);

        let route = wire.as_deref().map(|it| self.shelf.route(it, &self.limits));
        if let Some(id) = &route
            && !self.shelf.is_known(id)
            && patch.is_empty()
            && final_content.is_none()
        {
            if !self.counts.is_full {
                let message = format!("nobody started {id}, and it ended empty");
                self.notice(Severity::Warning, "unknown-document", &message, None);
            }
            return;
        }
        let mut address = Map::new();
        if let Some(wire) = wire {
            address.insert("documentId".into(), wire.into());
        } else if self.shelf.newest().is_none() {
            self.notice(
                Severity::Warning,
                "missing-id",
                "an end names no document and none is open",
                None,
            );
            return;
        }
        let Some(id) = self.target(&mut address, &Kind::Text) else {
            return;
        };
        let wanted = weigh_all(&patch);
        let fits = self.room(&id, wanted) >= wanted;
        if let Some(open) = self.shelf.get(&id)
            && fits
        {
            open.remember();
            open.document.patch(&patch);
        }
        if let Some(text) = final_content {
            self.final_content(&id, text);
        }
        self.close(&id, false);
    }

    pub(super) fn final_content(&mut self, id: &DocumentId, text: Value) {
        let text = match text {
            Value::String(text) => text,
            other => {
                let message = format!("the final content of {id} is no text; it was turned into one");
                self.notice(Severity::Warning, "wrong-type", &message, Some(id));
                text_of(&other)
            }
        };
        let response_room = self.response_room();
        let limit = self.limits.document_bytes;
        let Some(open) = self.shelf.get(id) else { return };
        if open.document.content.as_deref() == Some(text.as_str()) {
            return;
        }
        let before = open.document.text();
        // A writer that sent no deltas contradicts nobody.
        let differs = !before.is_empty();
        let kept = cut(&text, limit.min(response_room + before.len()));
        let grown = kept.len().saturating_sub(before.len());
        open.is_cut = kept.len() < text.len();
        open.document.content = Some(kept.into());
        self.counts.response_bytes += grown;
        if differs {
            let message = format!("the final content of {id} differs from its pieces and replaces them");
            self.notice(Severity::Warning, "final-content", &message, Some(id));
        }
    }

    pub(super) fn document_update(&mut self, mut members: Map<String, Value>) {
        let patch = self.object_of(&mut members, "metadata");
        let Some(wire) = take_text(&mut members, &["documentId", "document_id", "id"]) else {
            self.notice(Severity::Warning, "missing-id", "an update names no document", None);
            return;
        };
        let id = self.shelf.route(&wire, &self.limits);
        if !self.shelf.is_known(&id) {
            let message = format!("an update is about {id}, which nobody started");
            self.notice(Severity::Warning, "unknown-document", &message, None);
            return;
        }
        if patch.is_empty() {
            return;
        }
        if self.shelf.is_open(&id) {
            self.patch(&id, patch, Vec::new());
            return;
        }
        let weight = weigh_all(&patch);
        if weight > self.response_room() {
            self.notice(
                Severity::Error,
                "response-too-large",
                "the answer is too large; changes are dropped",
                None,
            );
            return;
        }
        self.counts.response_bytes += weight;
        self.emit(Event::DocumentUpdate {
            document: id,
            metadata: patch,
        });
    }

    /// Ends a document with its complete metadata and content.
    pub(super) fn close(&mut self, id: &DocumentId, is_incomplete: bool) {
        let Some(mut open) = self.shelf.take(id) else { return };
        let document = &mut open.document;
        if is_incomplete {
            document.metadata.insert("incomplete".into(), true.into());
        }
        if open.is_cut {
            document.metadata.insert("truncated".into(), true.into());
        }
        document.finish();
        let is_unsound = document.kind == Kind::Plan && Plan::is_unsound(&document.metadata);
        let final_content = document.content.take();
        let metadata = open.settled();
        self.emit(Event::DocumentEnd {
            document: id.clone(),
            final_content,
            metadata,
        });
        if is_unsound {
            let message = format!("todos of {id} depend on ones that are not there, or in a circle; that is ignored");
            self.notice(Severity::Warning, "bad-dependency", &message, Some(id));
        }
    }

    pub(super) fn close_all(&mut self, is_incomplete: bool) {
        while let Some(id) = self.shelf.oldest() {
            if !is_incomplete {
                let message = format!("{id} was still open at the end of the answer");
                self.notice(Severity::Warning, "unclosed-document", &message, Some(&id));
            }
            self.close(&id, is_incomplete);
        }
    }

    /// Documents of a final list that the stream did not carry.
    pub(super) fn missed(&mut self, documents: Vec<Value>) {
        for document in documents {
            if let Value::Object(members) = document {
                let parts = Parts::of(members);
                let id = parts.id.as_deref().map(|it| self.shelf.route(it, &self.limits));
                if id.is_none_or(|it| !self.shelf.is_known(&it)) {
                    self.settled(parts);
                }
            }
        }
    }

    /// Opens and ends a document that arrived complete.
    pub(super) fn settled(&mut self, mut parts: Parts) {
        if parts.kind == Kind::ToolCall
            && let Some(result) = parts.metadata.get_mut("result").filter(|it| it.is_null())
        {
            // In a patch null takes a member away; in a document it is what the call gave.
            *result = normalise_result(Value::Null);
        }
        if let Some(id) = self.open(parts) {
            self.close(&id, false);
        }
    }
}

/// Returns the parts of a document that was never started.
fn implicit(id: Option<String>, kind: &Kind) -> Parts {
    Parts {
        id,
        kind: kind.clone(),
        sequence: None,
        content: None,
        metadata: Map::new(),
        odd: Vec::new(),
    }
}
