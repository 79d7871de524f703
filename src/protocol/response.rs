//! The fold of one response: events in, documents out. Pure and total.

use std::collections::HashMap;

use serde_json::{Map, Value, json};

use super::{
    ConversationId, DocumentId, FinishReason, Mode, Notice, ResponseId, Status, Usage,
    document::Document,
    event::{DocumentStart, Done, Event, ResponseStart},
};

/// One answer: its documents in order and what is known about the whole.
#[derive(Clone, Debug, Default)]
pub struct Response {
    pub id: Option<ResponseId>,
    pub conversation_id: Option<ConversationId>,
    pub model: Option<String>,
    pub mode: Option<Mode>,
    pub created: Option<String>,
    pub capabilities: Vec<String>,
    pub documents: Vec<Document>,
    pub usage: Usage,
    /// `None`: still streaming.
    pub ending: Option<Ending>,
    /// What the model thought, and after how many documents it did.
    pub thinking: Vec<Thinking>,
    pub notices: Vec<Notice>,
    pub extra: Map<String, Value>,
    index: HashMap<DocumentId, usize>,
    /// Arrival numbers beside `documents`: their order when not every document has a sequence.
    arrival: Vec<u64>,
}

/// How a response ended.
#[derive(Clone, Debug, PartialEq)]
pub struct Ending {
    pub status: Status,
    pub finish_reason: FinishReason,
    pub duration_ms: Option<u64>,
    /// `None`: count the documents.
    pub tool_call_count: Option<u64>,
    pub turn_count: Option<u64>,
    pub extra_metadata: Map<String, Value>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Thinking {
    /// It stands before the document with this index.
    pub before: usize,
    pub text: String,
}

/// What an event did, so that the caller touches only that.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    Nothing,
    /// Something about the response as a whole.
    Response,
    Thinking,
    Notice,
    Opened(usize),
    /// Content or metadata of an open document.
    Grew(usize),
    Ended(usize),
    /// A document changed after its end.
    Updated(usize),
    Finished,
}

impl Response {
    pub fn apply(&mut self, event: &Event, at_ms: u64) -> Change {
        match event {
            Event::ResponseStart(start) => {
                self.begin(start);
                Change::Response
            }
            Event::DocumentStart(start) => self.open(start, at_ms),
            Event::ContentDelta { document, delta } => self.grow(document, |it| it.push_content(delta)),
            Event::ToolCallStart {
                document,
                tool_name,
                tool_call_id,
            } => self.grow(document, |it| {
                it.version += 1;
                it.metadata.insert("toolName".into(), tool_name.as_str().into());
                if let Some(id) = tool_call_id {
                    it.metadata.insert("toolCallId".into(), id.as_str().into());
                }
            }),
            Event::ToolCallArguments { document, arguments } => self.grow(document, |it| it.push_arguments(arguments)),
            Event::ToolResult {
                document,
                result,
                duration_ms,
            } => self.grow(document, |it| it.set_result(result, *duration_ms)),
            Event::MetadataDelta {
                document,
                metadata,
                append,
            } => self.grow(document, |it| {
                it.patch(metadata);
                for (member, text) in append {
                    it.append(member, text);
                }
            }),
            Event::ThinkingDelta { delta } => {
                self.think(delta);
                Change::Thinking
            }
            Event::DocumentEnd {
                document,
                final_content,
                metadata,
            } => {
                match self.grow(document, |it| {
                    it.patch(metadata);
                    if let Some(text) = final_content {
                        it.content = Some(text.clone());
                    }
                    it.finish();
                }) {
                    Change::Grew(at) => Change::Ended(at),
                    other => other,
                }
            }
            Event::DocumentUpdate { document, metadata } => match self.index.get(document).copied() {
                Some(at) => {
                    if let Some(it) = self.documents.get_mut(at) {
                        it.patch(metadata);
                        if !it.is_open() {
                            it.fill();
                        }
                    }
                    Change::Updated(at)
                }
                None => Change::Nothing,
            },
            Event::Notice(notice) => {
                self.notices.push(notice.clone());
                Change::Notice
            }
            Event::Done(done) => {
                self.end(done);
                Change::Finished
            }
            Event::UserMessage(_) | Event::Progress(_) | Event::Title(_) | Event::Unknown { .. } => Change::Nothing,
        }
    }

    pub fn get(&self, id: &DocumentId) -> Option<&Document> {
        self.documents.get(*self.index.get(id)?)
    }

    pub fn position_of(&self, id: &DocumentId) -> Option<usize> {
        self.index.get(id).copied()
    }

    /// The number a person uses for the document at `at`: its sequence where the sequences are sound, else its place.
    pub fn number(&self, at: usize) -> u64 {
        let sequence = self.documents.get(at).and_then(|it| it.sequence);
        match sequence {
            Some(sequence) if self.is_sound() => sequence,
            Some(_) | None => at as u64 + 1,
        }
    }

    pub fn is_running(&self) -> bool {
        self.ending.is_none()
    }

    pub fn status(&self) -> Status {
        self.ending.as_ref().map_or(Status::Streaming, |it| it.status.clone())
    }

    /// The response object as a strict writer prints it.
    pub fn to_json(&self) -> Value {
        let ending = self.ending.as_ref();
        let calls = self
            .documents
            .iter()
            .filter(|it| it.kind == super::Kind::ToolCall)
            .count() as u64;
        let mut metadata = Map::new();
        metadata.insert(
            "duration_ms".into(),
            ending.and_then(|it| it.duration_ms).unwrap_or(0).into(),
        );
        metadata.insert(
            "toolCallCount".into(),
            ending.and_then(|it| it.tool_call_count).unwrap_or(calls).into(),
        );
        metadata.insert(
            "turnCount".into(),
            ending.and_then(|it| it.turn_count).unwrap_or(1).into(),
        );
        if let Some(ending) = ending {
            metadata.insert("finishReason".into(), ending.finish_reason.as_str().into());
            metadata.extend(ending.extra_metadata.clone());
        }
        let mut whole = Map::new();
        whole.insert("id".into(), json!(self.id));
        whole.insert("conversationId".into(), json!(self.conversation_id));
        whole.insert("model".into(), json!(self.model));
        whole.insert("mode".into(), json!(self.mode.unwrap_or_default()));
        whole.insert("created".into(), json!(self.created));
        whole.insert("status".into(), json!(self.status()));
        whole.insert("documents".into(), self.documents_json());
        whole.insert("usage".into(), json!(self.usage));
        whole.insert("metadata".into(), metadata.into());
        for (name, value) in &self.extra {
            whole.entry(name.clone()).or_insert_with(|| value.clone());
        }
        whole.into()
    }

    pub fn documents_json(&self) -> Value {
        self.documents
            .iter()
            .enumerate()
            .map(|(at, it)| it.to_json(self.number(at)))
            .collect()
    }

    /// The answer as one text that a reader without documents understands; what goes back to a stateless gateway.
    pub fn plain_text(&self) -> String {
        let parts: Vec<_> = self
            .documents
            .iter()
            .map(Document::plain_text)
            .filter(|it| !it.is_empty())
            .collect();
        parts.join("\n\n")
    }

    fn begin(&mut self, start: &ResponseStart) {
        self.id.clone_from(&start.id);
        self.conversation_id.clone_from(&start.conversation_id);
        self.model.clone_from(&start.model);
        self.mode = start.mode;
        self.created.clone_from(&start.created);
        self.capabilities.clone_from(&start.capabilities);
        self.extra.clone_from(&start.extra);
    }

    fn open(&mut self, start: &DocumentStart, at_ms: u64) -> Change {
        if self.index.contains_key(&start.id) {
            return Change::Nothing;
        }
        let at = self.documents.len();
        self.index.insert(start.id.clone(), at);
        self.arrival.push(at as u64);
        let in_order = self
            .documents
            .last()
            .is_none_or(|it| match (it.sequence, start.sequence) {
                (Some(last), Some(new)) => last <= new,
                // From here on arrival decides; whatever was sorted before goes back to it.
                (Some(_), None) => false,
                (None, _) => true,
            });
        self.documents.push(Document::open(start.clone(), at_ms));
        if !in_order {
            self.sort();
        }
        Change::Opened(self.index.get(&start.id).copied().unwrap_or(at))
    }

    /// By sequence if every document has one, else by arrival.
    fn sort(&mut self) {
        let sequenced = self.documents.iter().all(|it| it.sequence.is_some());
        let mut pairs: Vec<_> = std::mem::take(&mut self.arrival)
            .into_iter()
            .zip(std::mem::take(&mut self.documents))
            .collect();
        pairs.sort_by_key(|(arrival, it)| (if sequenced { it.sequence } else { None }, *arrival));
        (self.arrival, self.documents) = pairs.into_iter().unzip();
        for (at, it) in self.documents.iter().enumerate() {
            if let Some(slot) = self.index.get_mut(&it.id) {
                *slot = at;
            }
        }
    }

    /// Whether the sequences can serve as numbers: all there, each larger than the one before.
    fn is_sound(&self) -> bool {
        let mut last = 0;
        self.documents.iter().all(|it| match it.sequence {
            Some(sequence) if sequence > last => {
                last = sequence;
                true
            }
            Some(_) | None => false,
        })
    }

    fn grow(&mut self, id: &DocumentId, change: impl FnOnce(&mut Document)) -> Change {
        let Some(at) = self.index.get(id).copied() else {
            return Change::Nothing;
        };
        match self.documents.get_mut(at) {
            Some(it) if it.is_open() => {
                change(it);
                Change::Grew(at)
            }
            Some(_) | None => Change::Nothing,
        }
    }

    fn think(&mut self, delta: &str) {
        let before = self.documents.len();
        match self.thinking.last_mut() {
            Some(last) if last.before == before => last.text.push_str(delta),
            Some(_) | None => self.thinking.push(Thinking {
                before,
                text: delta.to_owned(),
            }),
        }
    }

    fn end(&mut self, done: &Done) {
        if let Some(usage) = done.usage {
            self.usage = usage;
        }
        if done.id.is_some() {
            self.id.clone_from(&done.id);
        }
        if done.conversation_id.is_some() {
            self.conversation_id.clone_from(&done.conversation_id);
        }
        for it in self.documents.iter_mut().filter(|it| it.is_open()) {
            it.finish();
        }
        let status = done.status.clone().unwrap_or(Status::Completed);
        let finish_reason = done.finish_reason.clone().unwrap_or(match status {
            Status::Error => FinishReason::Error,
            Status::Completed | Status::Streaming | Status::Other(_) => FinishReason::Stop,
        });
        self.extra.extend(done.extra.clone());
        self.ending = Some(Ending {
            status,
            finish_reason,
            duration_ms: done.duration_ms,
            tool_call_count: done.tool_call_count,
            turn_count: done.turn_count,
            extra_metadata: done.extra_metadata.clone(),
        });
    }
}
