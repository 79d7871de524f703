//! Documents as events: the strict writer's side of the protocol.
//!
//! Numbers documents in the order in which they start, keeps one open at a time, and ends each with its whole
//! content and metadata, so that a reader may ignore everything between.

use serde_json::{Map, Value, json};

use crate::{
    agent::segmenter::{Header, Segment, Segmenter},
    os::long_text::LongText,
    protocol::{DocumentId, DocumentStart, Event, Kind, Mode, Purpose, TextFormat, document::language_of},
};

/// The documents of one response.
#[derive(Debug)]
pub struct Writer {
    mode: Mode,
    segmenter: Segmenter,
    /// Number of documents that have started.
    count: u64,
    open: Option<OpenDocument>,
}

#[derive(Debug)]
struct OpenDocument {
    id: DocumentId,
    content: LongText,
    metadata: Map<String, Value>,
}

impl Writer {
    /// A writer without documents, whose code blocks are those of `mode`.
    pub fn new(mode: Mode) -> Self {
        Self {
            mode,
            segmenter: Segmenter::default(),
            count: 0,
            open: None,
        }
    }

    /// Takes the next piece of the model's text, which may end anywhere. Returns its events.
    pub fn text(&mut self, piece: &str) -> Vec<Event> {
        let segments = self.segmenter.push(piece);
        self.write(segments)
    }

    /// Ends the document that the text has open, before anything else starts. Code without its last fence is complete then: more
    /// follows it.
    pub fn flush(&mut self) -> Vec<Event> {
        let mut segments = self.segmenter.finish();
        if let Some(Segment::Close { incomplete }) = segments.last_mut() {
            *incomplete = false;
        }
        self.write(segments)
    }

    /// Ends the document that the text has open at the end of the answer. Code without its last fence is incomplete.
    pub fn finish(&mut self) -> Vec<Event> {
        let segments = self.segmenter.finish();
        self.write(segments)
    }

    /// Like [`Self::flush`], when the text was cut off: the document that was being written is incomplete.
    pub fn cut(&mut self) -> Vec<Event> {
        let mut segments = self.segmenter.finish();
        if let Some(Segment::Close { incomplete }) = segments.last_mut() {
            *incomplete = true;
        }
        let mut events = self.write(segments);
        events.extend(self.flush());
        events
    }

    /// An `error` document, whole. Ends what the text has open.
    pub fn error(&mut self, code: &str, source: &str, message: &str, details: &str) -> Vec<Event> {
        let known = members(&json!({ "errorCode": code, "source": source }));
        let whole = members(&json!({ "errorCode": code, "source": source, "details": details }));
        self.whole(Kind::Error, known, Some(message), whole)
    }

    /// A document that is there at once, `metadata` being what it starts with and `end` all of it.
    pub fn whole(
        &mut self,
        kind: Kind,
        metadata: Map<String, Value>,
        content: Option<&str>,
        end: Map<String, Value>,
    ) -> Vec<Event> {
        let mut events = self.flush();
        self.start(kind, metadata, &mut events);
        if let Some(content) = content.filter(|it| !it.is_empty()) {
            self.grow(content, &mut events);
        }
        if let Some(open) = self.open.take() {
            events.push(Event::DocumentEnd {
                document: open.id,
                final_content: content.map(|it| LongText::from(it).settled()),
                metadata: end,
            });
        }
        events
    }

    /// A document with a message that the user sent while the answer was being made.
    pub fn spoken(&mut self, message: &str) -> Vec<Event> {
        let metadata = members(&json!({ "format": TextFormat::Plain, "role": "user" }));
        self.whole(Kind::Text, metadata.clone(), Some(message), metadata)
    }

    /// Starts a document that stays open beside the text, and beside others of its sort; whoever began it ends it.
    pub fn begin(&mut self, kind: Kind, metadata: Map<String, Value>, events: &mut Vec<Event>) -> DocumentId {
        events.extend(self.flush());
        self.start(kind, metadata, events);
        let open = self.open.take();
        open.map_or_else(|| DocumentId::numbered(self.count), |it| it.id)
    }

    /// Changes the mode of the documents that follow.
    pub fn enter(&mut self, mode: Mode) {
        self.mode = mode;
    }

    /// Number of documents that have started.
    pub fn count(&self) -> u64 {
        self.count
    }

    fn write(&mut self, segments: Vec<Segment>) -> Vec<Event> {
        let mut events = Vec::new();
        for segment in segments {
            match segment {
                Segment::Open(header) => {
                    let (kind, metadata) = self.describe(header);
                    self.start(kind, metadata, &mut events);
                }
                Segment::Delta(delta) => self.grow(&delta, &mut events),
                Segment::Close { incomplete } => {
                    if incomplete && let Some(open) = &mut self.open {
                        open.metadata.insert("incomplete".into(), true.into());
                    }
                    self.end(&mut events);
                }
            }
        }
        events
    }

    fn describe(&self, header: Header) -> (Kind, Map<String, Value>) {
        match header {
            Header::Text => (Kind::Text, members(&json!({ "format": TextFormat::Markdown }))),
            Header::Code { language, info } => {
                let purpose = match self.mode {
                    Mode::Ask => Purpose::Example,
                    Mode::Plan => Purpose::Suggestion,
                    Mode::Agent | Mode::Debug => Purpose::NewCode,
                };
                let mut metadata = members(&json!({ "language": language, "purpose": purpose }));
                if let Some(info) = info {
                    metadata.insert("info".into(), info.into());
                }
                (Kind::CodeBlock, metadata)
            }
            Header::Citation {
                path,
                first,
                last,
                language,
            } => {
                let language = language.unwrap_or_else(|| language_of(&path).to_owned());
                let metadata = json!({ "filePath": path, "startLine": first, "endLine": last, "language": language });
                (Kind::CodeReference, members(&metadata))
            }
        }
    }

    fn start(&mut self, kind: Kind, metadata: Map<String, Value>, events: &mut Vec<Event>) {
        self.count += 1;
        let id = DocumentId::numbered(self.count);
        events.push(Event::DocumentStart(DocumentStart {
            id: id.clone(),
            kind,
            sequence: Some(self.count),
            content: None,
            metadata: metadata.clone(),
        }));
        self.open = Some(OpenDocument {
            id,
            content: LongText::new(),
            metadata,
        });
    }

    fn grow(&mut self, delta: &str, events: &mut Vec<Event>) {
        let Some(open) = &mut self.open else { return };
        open.content.push_str(delta);
        events.push(Event::ContentDelta {
            document: open.id.clone(),
            delta: delta.to_owned(),
        });
    }

    fn end(&mut self, events: &mut Vec<Event>) {
        let Some(open) = self.open.take() else { return };
        events.push(Event::DocumentEnd {
            document: open.id,
            final_content: Some(open.content.settled()),
            metadata: open.metadata,
        });
    }
}

/// The end of a document without text.
pub fn document_end(document: DocumentId, metadata: Map<String, Value>) -> Event {
    Event::DocumentEnd {
        document,
        final_content: None,
        metadata,
    }
}

fn members(object: &Value) -> Map<String, Value> {
    object.as_object().cloned().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use pretty_assertions::assert_eq;

    use super::*;
    use crate::protocol::Response;

    fn start(id: &str, kind: Kind, sequence: u64, metadata: Value) -> Event {
        Event::DocumentStart(DocumentStart {
            id: id.into(),
            kind,
            sequence: Some(sequence),
            content: None,
            metadata: members(&metadata),
        })
    }

    fn delta(id: &str, delta: &str) -> Event {
        Event::ContentDelta {
            document: id.into(),
            delta: delta.to_owned(),
        }
    }

    fn end(id: &str, content: &str, metadata: Value) -> Event {
        Event::DocumentEnd {
            document: id.into(),
            final_content: Some(content.into()),
            metadata: members(&metadata),
        }
    }

    #[test]
    fn each_kind_travels_as_its_row_says() {
        let mut writer = Writer::new(Mode::Agent);
        let mut events = writer.text("Look:\n```12:14:src/cart.rs\na\n```\n```rust,no_run\nb\n```\n");
        events.extend(writer.error("LLM_OVERLOADED", "llm", "busy", "wait"));
        let text = json!({ "format": "markdown" });
        let cited = json!({ "filePath": "src/cart.rs", "startLine": 12, "endLine": 14, "language": "rust" });
        let block = json!({ "language": "rust", "purpose": "new_code", "info": "rust,no_run" });
        assert_eq!(
            events,
            [
                start("doc_001", Kind::Text, 1, text.clone()),
                delta("doc_001", "Look:"),
                end("doc_001", "Look:", text),
                start("doc_002", Kind::CodeReference, 2, cited.clone()),
                delta("doc_002", "a"),
                end("doc_002", "a", cited),
                start("doc_003", Kind::CodeBlock, 3, block.clone()),
                delta("doc_003", "b"),
                end("doc_003", "b", block),
                start(
                    "doc_004",
                    Kind::Error,
                    4,
                    json!({ "errorCode": "LLM_OVERLOADED", "source": "llm" })
                ),
                delta("doc_004", "busy"),
                end(
                    "doc_004",
                    "busy",
                    json!({ "errorCode": "LLM_OVERLOADED", "source": "llm", "details": "wait" })
                ),
            ]
        );
    }

    #[test]
    fn the_mode_decides_what_code_is_for() {
        let wants = [
            (Mode::Agent, "new_code"),
            (Mode::Debug, "new_code"),
            (Mode::Ask, "example"),
            (Mode::Plan, "suggestion"),
        ];
        for (mode, want) in wants {
            let events = Writer::new(mode).text("```\n");
            let Some(Event::DocumentStart(start)) = events.first() else {
                panic!("{events:?}")
            };
            assert_eq!(start.metadata.get("purpose"), Some(&json!(want)), "{mode}");
        }
    }

    fn fold(events: &[Event]) -> Vec<(String, bool)> {
        let mut response = Response::default();
        for event in events {
            response.apply(event, 0);
        }
        assert!(response.documents.iter().all(|it| !it.is_open()));
        response
            .documents
            .iter()
            .map(|it| (it.text().to_owned(), it.is_incomplete()))
            .collect()
    }

    #[test]
    fn code_without_its_last_fence_is_incomplete_at_the_end_and_not_before_something_else() {
        for (text, at_end) in [
            ("```\ntwo\n", true),
            ("```ru", true),
            ("```\ntwo\n```", false),
            ("one", false),
        ] {
            let mut writer = Writer::new(Mode::Agent);
            let mut events = writer.text(text);
            events.extend(writer.flush());
            assert!(fold(&events).iter().all(|it| !it.1), "{text:?}: {events:?}");
            let mut writer = Writer::new(Mode::Agent);
            let mut events = writer.text(text);
            events.extend(writer.finish());
            assert_eq!(fold(&events).last().map(|it| it.1), Some(at_end), "{text:?}");
        }
    }

    #[test]
    fn only_what_was_being_written_is_incomplete() {
        let cases: &[(&str, &[(&str, bool)])] = &[
            ("one ", &[("one", true)]),
            ("one\n```\ntwo", &[("one", false), ("two", true)]),
            ("one\n```\ntwo\n```", &[("one", false), ("two", true)]),
            ("one\n```\ntwo\n```\n", &[("one", false), ("two", false)]),
            ("one\n```ru", &[("one", false), ("", true)]),
            ("", &[]),
        ];
        for (text, want) in cases {
            let mut writer = Writer::new(Mode::Agent);
            let mut events = writer.text(text);
            events.extend(writer.cut());
            let want: Vec<_> = want
                .iter()
                .map(|(content, cut)| ((*content).to_owned(), *cut))
                .collect();
            assert_eq!(fold(&events), want, "{text:?}");
        }
    }
}
