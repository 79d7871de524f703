//! The fold of one response: events in, documents out. Pure and total.

use std::collections::{HashMap, HashSet};

use serde_json::{Map, Value};

use super::{
    ConversationId, DocumentId, FinishReason, Mode, Notice, ResponseId, Status, Usage,
    document::{Document, DocumentStart, Kind, View},
    event::{Branch, Done, Event, ResponseStart},
    long_json::LongJson,
};
use crate::os::long_text::LongText;

/// One answer: its documents in order, and facts about the whole.
#[derive(Clone, Debug, Default)]
pub struct Response {
    pub origin: Origin,
    pub model: Option<String>,
    pub mode: Option<Mode>,
    pub documents: Vec<Document>,
    pub usage: Usage,
    /// `None`: still streaming.
    pub ending: Option<Ending>,
    /// Reasoning of the model, each piece with the number of documents before it.
    pub thinking: Vec<Thinking>,
    pub notices: Vec<Notice>,
    pub extra: Map<String, Value>,
    /// Members of `usage` that we do not know.
    pub extra_usage: Map<String, Value>,
    index: HashMap<DocumentId, usize>,
    order: DocumentOrder,
}

/// Identity of a response and abilities of its server, as `response_start` gave them.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Origin {
    pub id: Option<ResponseId>,
    pub conversation_id: Option<ConversationId>,
    pub created: Option<String>,
    pub capabilities: Vec<String>,
}

/// Order of `documents`: by sequence as long as every document has one, else by arrival.
#[derive(Clone, Debug, Default)]
struct DocumentOrder {
    /// Arrival number of each of `documents`.
    arrival: Vec<u64>,
    /// True once a document without a sequence has arrived.
    by_arrival: bool,
    /// True if a late document is at the end, to be sorted in when the response ends.
    is_postponed: bool,
    /// Number of documents that were moved to make room for late ones.
    moved: usize,
    /// Approvals, and the actions that came after them, by call and file.
    decisions: HashMap<String, Decision>,
    /// Questions that have no outcome.
    unanswered: HashSet<DocumentId>,
    /// Calls that ask for another mode.
    switches: HashSet<DocumentId>,
}

/// Documents of one call about one file.
#[derive(Clone, Debug, Default)]
struct Decision {
    approvals: Vec<DocumentId>,
    actions: Vec<DocumentId>,
}

/// Once late documents have moved so many others, they wait at the end: a stream that counts down must not cost
/// quadratic time.
const MOVES_LIMIT: usize = 1_000_000;

/// End of a response.
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
    /// Index of the document that follows it.
    pub before: usize,
    pub text: LongText,
}

/// Effect of an event, so that the caller touches only what changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResponseChange {
    Nothing,
    /// Something about the response as a whole.
    Response,
    Thinking,
    Notice,
    /// The user did something that no document shows; of the fold of a conversation only.
    Acted(usize),
    Opened(usize),
    /// Content or metadata of an open document.
    Grew(usize),
    Ended(usize),
    /// A document changed after its end.
    Updated(usize),
    Finished,
}

impl Response {
    /// Returns the response as if it had ended with this document. `None` if it has no such document.
    pub fn upto(&self, document: &DocumentId) -> Option<Self> {
        let count = if document.as_str() == Branch::NOTHING {
            0
        } else {
            self.position_of(document)? + 1
        };
        let mut cut = self.clone();
        cut.documents.truncate(count);
        cut.index.retain(|_, it| *it < count);
        cut.order.arrival.truncate(count);
        cut.thinking.retain(|it| it.before < count);
        cut.ending = Some(Ending {
            status: Status::Completed,
            finish_reason: FinishReason::Stop,
            duration_ms: None,
            tool_call_count: None,
            turn_count: None,
            extra_metadata: Map::new(),
        });
        Some(cut)
    }

    pub fn apply(&mut self, event: &Event, at_ms: u64) -> ResponseChange {
        match event {
            Event::ResponseStart(start) => {
                self.begin(start);
                ResponseChange::Response
            }
            Event::DocumentStart(start) => self.open(start, at_ms),
            Event::ContentDelta { document, delta } => self.grow(document, |it| it.push_content(delta)),
            Event::ToolCallStart {
                document,
                tool_name,
                tool_call_id,
            } => {
                let change = self.grow(document, |it| it.name_call(tool_name, tool_call_id.as_deref()));
                self.note(document);
                change
            }
            Event::ToolCallArguments { document, arguments } => self.grow(document, |it| {
                it.push_arguments(arguments);
            }),
            Event::ToolResult {
                document,
                result,
                duration_ms,
            } => self.grow(document, |it| it.set_result(result, *duration_ms)),
            Event::MetadataDelta {
                document,
                metadata,
                append,
            } => {
                let change = self.grow(document, |it| {
                    it.patch(metadata);
                    for (member, text) in append {
                        it.append(member, text);
                    }
                });
                self.note(document);
                change
            }
            Event::ThinkingDelta { delta } => {
                self.think(delta);
                ResponseChange::Thinking
            }
            Event::DocumentEnd {
                document,
                final_content,
                metadata,
            } => {
                let change = self.grow(document, |it| {
                    it.assign(metadata);
                    if let Some(text) = final_content {
                        it.content = Some(text.clone());
                    }
                    it.ended_ms = at_ms;
                    it.finish();
                });
                self.note(document);
                match change {
                    ResponseChange::Grew(at) => ResponseChange::Ended(at),
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
                    self.note_question(document);
                    ResponseChange::Updated(at)
                }
                None => ResponseChange::Nothing,
            },
            Event::Notice(notice) => {
                self.notices.push(notice.clone());
                ResponseChange::Notice
            }
            Event::Done(done) => {
                self.end(done);
                ResponseChange::Finished
            }
            Event::UserMessage(_)
            | Event::Progress(_)
            | Event::Said { .. }
            | Event::Told(_)
            | Event::Title(_)
            | Event::Branch(_)
            | Event::Unknown { .. } => ResponseChange::Nothing,
        }
    }

    pub fn get(&self, id: &DocumentId) -> Option<&Document> {
        self.documents.get(*self.index.get(id)?)
    }

    pub fn position_of(&self, id: &DocumentId) -> Option<usize> {
        self.index.get(id).copied()
    }

    /// Notes what a reader asks for in each frame.
    fn note(&mut self, id: &DocumentId) {
        self.note_decision(id);
        self.note_question(id);
        let call = self.get(id).filter(|it| it.kind == Kind::ToolCall);
        if call.is_some_and(switches_mode) {
            self.order.switches.insert(id.clone());
        }
    }

    /// Notes a question until it has an outcome.
    fn note_question(&mut self, id: &DocumentId) {
        let Some(document) = self.get(id).filter(|it| it.kind == Kind::Clarification) else {
            return;
        };
        if document.clarification().is_some_and(|it| it.outcome.is_none()) {
            self.order.unanswered.insert(id.clone());
        } else {
            self.order.unanswered.remove(id);
        }
    }

    /// Returns the indexes of the questions that have no outcome, in no order.
    pub fn unanswered(&self) -> impl Iterator<Item = usize> {
        self.order.unanswered.iter().filter_map(|it| self.position_of(it))
    }

    /// Notes an approval, or an action after one, under its call and file.
    fn note_decision(&mut self, id: &DocumentId) {
        let Some((key, document)) = self.get(id).and_then(|it| Some((it.decision_key()?, it))) else {
            return;
        };
        let list = if document.kind == Kind::Clarification {
            &mut self.order.decisions.entry(key).or_default().approvals
        } else {
            match self.order.decisions.get_mut(&key) {
                Some(it) => &mut it.actions,
                None => return,
            }
        };
        if !list.iter().rev().any(|it| it == id) {
            list.push(id.clone());
        }
    }

    fn decision_at(&self, at: usize) -> Option<&Decision> {
        self.order.decisions.get(&self.documents.get(at)?.decision_key()?)
    }

    /// Returns the indexes of the approvals before the document at `at` that name its call and file, the last one first.
    pub fn approvals_before(&self, at: usize) -> Vec<usize> {
        let approvals = self.decision_at(at).into_iter().flat_map(|it| &it.approvals);
        let mut found: Vec<_> = approvals
            .filter_map(|it| self.position_of(it))
            .filter(|it| *it < at)
            .collect();
        found.sort_by_key(|it| std::cmp::Reverse(*it));
        found
    }

    /// Returns the indexes of the actions after the approval at `at` that have its call and file.
    pub fn actions_after(&self, at: usize) -> impl Iterator<Item = usize> {
        let actions = self.decision_at(at).into_iter().flat_map(|it| &it.actions);
        actions.filter_map(|it| self.position_of(it)).filter(move |it| *it > at)
    }

    /// The number a person uses for the document at `at`; a strict writer sends the same as its sequence.
    pub fn number(&self, at: usize) -> u64 {
        at as u64 + 1
    }

    /// Returns the mode in force when the document at index `at` began: a user may agree to another mode during an
    /// answer.
    pub fn mode_at(&self, at: usize) -> Option<Mode> {
        let mut switches: Vec<_> = self
            .order
            .switches
            .iter()
            .filter_map(|it| self.position_of(it))
            .collect();
        switches.retain(|it| *it < at);
        switches.sort_unstable();
        let mut documents = switches.iter().rev().filter_map(|it| self.documents.get(*it));
        documents.find_map(changed_mode).or(self.mode)
    }

    pub fn is_running(&self) -> bool {
        self.ending.is_none()
    }

    pub fn status(&self) -> Status {
        self.ending.as_ref().map_or(Status::Streaming, |it| it.status.clone())
    }

    /// The response object as a strict writer prints it.
    pub fn to_json(&self) -> Value {
        self.with_documents(self.documents_json())
    }

    /// The same without copies of contents that are in files.
    pub fn to_long_json(&self) -> LongJson {
        let mut stored = Vec::new();
        let documents = self.documents.iter().enumerate().map(|(at, it)| {
            let (value, content) = it.to_json_apart(self.number(at));
            stored.extend(content.map(|it| (format!("/documents/{at}/content"), it)));
            value
        });
        let whole = LongJson::from(self.with_documents(documents.collect()));
        stored
            .into_iter()
            .fold(whole, |it, (pointer, text)| it.with(&pointer, text))
    }

    fn with_documents(&self, documents: Value) -> Value {
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
            for (name, value) in &ending.extra_metadata {
                metadata.entry(name.clone()).or_insert_with(|| value.clone());
            }
        }
        let mut usage = self.extra_usage.clone();
        usage.insert("promptTokens".into(), self.usage.prompt_tokens.into());
        usage.insert("completionTokens".into(), self.usage.completion_tokens.into());
        usage.insert("totalTokens".into(), self.usage.total_tokens.into());
        // What nobody said is left out: null is no string, and readers have defaults for what is absent.
        let mut whole = Map::new();
        let mut say = |name: &str, text: Option<&str>| {
            if let Some(text) = text {
                whole.insert(name.to_owned(), text.into());
            }
        };
        say("id", self.origin.id.as_ref().map(ResponseId::as_str));
        say(
            "conversationId",
            self.origin.conversation_id.as_ref().map(ConversationId::as_str),
        );
        say("model", self.model.as_deref());
        say("mode", Some(self.mode.unwrap_or_default().as_str()));
        say("created", self.origin.created.as_deref());
        say("status", Some(self.status().as_str()));
        whole.insert("documents".into(), documents);
        whole.insert("usage".into(), usage.into());
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

    /// Returns the answer as one text for readers that know no documents, such as a stateless gateway.
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
        self.origin.id.clone_from(&start.id);
        self.origin.conversation_id.clone_from(&start.conversation_id);
        self.model.clone_from(&start.model);
        self.mode = start.mode;
        self.origin.created.clone_from(&start.created);
        self.origin.capabilities.clone_from(&start.capabilities);
        self.extra.clone_from(&start.extra);
    }

    fn open(&mut self, start: &DocumentStart, at_ms: u64) -> ResponseChange {
        if self.index.contains_key(&start.id) {
            return ResponseChange::Nothing;
        }
        let arrival = self.documents.len() as u64;
        let at = self.place(start.sequence);
        self.documents.insert(at, Document::open(start.clone(), at_ms));
        self.order.arrival.insert(at, arrival);
        self.index.insert(start.id.clone(), at);
        self.reindex(at + 1);
        self.note(&start.id);
        if start.sequence.is_none() && !self.order.by_arrival {
            self.order.by_arrival = true;
            self.sort();
        }
        ResponseChange::Opened(self.index.get(&start.id).copied().unwrap_or(at))
    }

    /// Returns the index at which a new document is inserted.
    fn place(&mut self, sequence: Option<u64>) -> usize {
        let end = self.documents.len();
        let last = self.documents.last().and_then(|it| it.sequence);
        if self.order.by_arrival || sequence.is_none() || last <= sequence {
            return end;
        }
        let at = self.documents.partition_point(|it| it.sequence <= sequence);
        if self.order.is_postponed || self.order.moved + (end - at) > MOVES_LIMIT {
            self.order.is_postponed = true;
            return end;
        }
        self.order.moved += end - at;
        at
    }

    fn sort(&mut self) {
        let by_arrival = self.order.by_arrival;
        let mut pairs: Vec<_> = std::mem::take(&mut self.order.arrival)
            .into_iter()
            .zip(std::mem::take(&mut self.documents))
            .collect();
        pairs.sort_by_key(|(arrival, it)| (if by_arrival { None } else { it.sequence }, *arrival));
        (self.order.arrival, self.documents) = pairs.into_iter().unzip();
        self.reindex(0);
    }

    fn reindex(&mut self, from: usize) {
        for (at, it) in self.documents.iter().enumerate().skip(from) {
            if let Some(slot) = self.index.get_mut(&it.id) {
                *slot = at;
            }
        }
    }

    fn grow(&mut self, id: &DocumentId, change: impl FnOnce(&mut Document)) -> ResponseChange {
        let Some(at) = self.index.get(id).copied() else {
            return ResponseChange::Nothing;
        };
        match self.documents.get_mut(at) {
            Some(it) if it.is_open() => {
                change(it);
                ResponseChange::Grew(at)
            }
            Some(_) | None => ResponseChange::Nothing,
        }
    }

    fn think(&mut self, delta: &str) {
        let before = self.documents.len();
        match self.thinking.last_mut() {
            Some(last) if last.before == before => last.text.push_str(delta),
            Some(_) | None => self.thinking.push(Thinking {
                before,
                text: delta.into(),
            }),
        }
    }

    fn end(&mut self, done: &Done) {
        if let Some(usage) = done.usage {
            self.usage = usage;
        }
        if done.id.is_some() {
            self.origin.id.clone_from(&done.id);
        }
        if done.conversation_id.is_some() {
            self.origin.conversation_id.clone_from(&done.conversation_id);
        }
        if done.model.is_some() {
            self.model.clone_from(&done.model);
        }
        if done.mode.is_some() {
            self.mode = done.mode;
        }
        if done.created.is_some() {
            self.origin.created.clone_from(&done.created);
        }
        for it in &mut self.documents {
            if it.is_open() {
                it.finish();
            }
            it.settle();
        }
        for it in &mut self.thinking {
            it.text = std::mem::take(&mut it.text).settled();
        }
        if self.order.is_postponed && !self.order.by_arrival {
            self.sort();
        }
        let status = done.status.clone().unwrap_or(Status::Completed);
        let finish_reason = done.finish_reason.clone().unwrap_or(match status {
            Status::Error => FinishReason::Error,
            Status::Completed | Status::Streaming | Status::Other(_) => FinishReason::Stop,
        });
        self.extra.extend(done.extra.clone());
        self.extra_usage.extend(done.extra_usage.clone());
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

/// Returns true for a call that asks for another mode.
fn switches_mode(document: &Document) -> bool {
    matches!(document.view(), View::ToolCall(call) if call.tool_name == "switch_mode")
}

/// The mode that the agent went on in after this document.
fn changed_mode(document: &Document) -> Option<Mode> {
    if !switches_mode(document) {
        return None;
    }
    let result = document.metadata.get("result")?;
    let is_done = result.get("status").and_then(Value::as_str) == Some("success");
    let mode = result.get("data")?.get("mode")?.as_str()?;
    Mode::parse(mode).filter(|_| is_done)
}
