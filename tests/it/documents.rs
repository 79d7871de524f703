//! The documents protocol, held against its own text: every default row, every rule for readers, every limit, and the
//! properties that must hold for all conversations.

#![expect(
    clippy::format_collect,
    clippy::format_push_string,
    clippy::string_slice,
    reason = "inputs are built from many small texts, and a cut inside a character is a bug of the test"
)]

mod golden;
mod hostile;
mod limits;
mod properties;
mod register;
mod rows;
mod writer;

use std::collections::HashSet;

use proptest::prelude::ProptestConfig;
use serde_json::{Value, json};
use sheaf::{
    net::sse::Frames,
    protocol::{
        Dialect, Document, DocumentId, Event, Mode, Response, Status,
        codec::{self, Decoder, Identity, Limits, Strict, frame},
    },
};

/// As many cases as a test asks for, unless `PROPTEST_CASES` asks for a longer search.
fn cases(cases: u32) -> ProptestConfig {
    let searched = ProptestConfig::default();
    ProptestConfig {
        cases: if std::env::var_os("PROPTEST_CASES").is_some() {
            searched.cases
        } else {
            cases
        },
        failure_persistence: None,
        ..searched
    }
}

/// Writes one response as server-sent events.
struct Encoder {
    dialect: Dialect,
    strict: Strict,
}

impl Encoder {
    fn new(dialect: Dialect, identity: Identity) -> Self {
        Self {
            dialect,
            strict: Strict::new(identity),
        }
    }

    /// Sends user messages, notices and titles too. For our own programs: to others they mean nothing.
    fn private(self) -> Self {
        Self {
            strict: self.strict.private(),
            ..self
        }
    }

    /// The bytes for one event of the source, often none.
    fn push(&mut self, event: &Event) -> String {
        let said = self.strict.push(event);
        self.frames(&said)
    }

    /// The source has ended. Without a `done` before it the response counts as interrupted.
    fn finish(&mut self) -> String {
        let said = self.strict.finish();
        self.frames(&said)
    }

    fn frames(&self, events: &[Event]) -> String {
        let encoded = |event: &Event| {
            let text = frame(self.dialect, event);
            // An event that we do not know may have any name, even one of ours.
            if !matches!(event, Event::Unknown { .. }) {
                crate::protocol::assert_valid_stream(&text);
            }
            text
        };
        events.iter().map(encoded).collect()
    }
}

/// The answer as one object.
fn answer(response: &Response, identity: &Identity) -> Value {
    let answer = serde_json::to_value(codec::answer(response, identity)).expect("it is JSON");
    crate::protocol::assert_valid("Response", &answer);
    answer
}

/// What a reader knows before the first byte.
fn identity() -> Identity {
    Identity {
        id: "chat_local_1".into(),
        conversation_id: None,
        model: "asked".to_owned(),
        mode: Mode::Ask,
        created_ms: 1_000_000_000_000,
    }
}

/// What came of an input.
#[derive(Debug)]
struct Read {
    events: Vec<Event>,
    response: Response,
}

impl Read {
    fn of(events: Vec<Event>) -> Self {
        Self {
            response: fold(&events),
            events,
        }
    }

    fn codes(&self) -> Vec<&str> {
        self.response.notices.iter().map(|it| it.code.as_str()).collect()
    }

    fn documents(&self) -> Value {
        self.response.documents_json()
    }

    #[track_caller]
    fn document(&self, id: &str) -> &Document {
        self.response
            .get(&id.into())
            .unwrap_or_else(|| panic!("there is no {id} in {}", self.documents()))
    }

    fn metadata(&self, id: &str) -> Value {
        Value::Object(self.document(id).metadata.clone())
    }
}

fn fold(events: &[Event]) -> Response {
    let mut response = Response::default();
    for event in events {
        response.apply(event, 0);
    }
    response
}

/// Feeds bytes in pieces through the frame reader and the decoder, to the end of the input.
fn feed<'a>(pieces: impl IntoIterator<Item = &'a [u8]>, limits: Limits) -> Vec<Event> {
    let mut frames = Frames::new();
    let mut decoder = Decoder::with_limits(identity(), limits);
    let mut events = Vec::new();
    for piece in pieces {
        for frame in frames.push(piece) {
            let Ok(frame) = frame else { break };
            match decoder.frame(frame.event.as_deref(), &frame.data) {
                Ok(found) => events.extend(found),
                Err(_) => break,
            }
        }
    }
    if let Some(Ok(frame)) = frames.finish() {
        events.extend(decoder.frame(frame.event.as_deref(), &frame.data).unwrap_or_default());
    }
    events.extend(decoder.finish());
    events
}

#[track_caller]
fn stream(bytes: impl AsRef<[u8]>) -> Read {
    let events = feed([bytes.as_ref()], Limits::default());
    assert_strict(&events);
    Read::of(events)
}

/// A stream of data lines, with `done` behind it.
#[track_caller]
fn data(events: impl IntoIterator<Item = Value>) -> Read {
    let mut text: String = events.into_iter().map(|it| format!("data: {it}\n\n")).collect();
    text.push_str("data: {\"type\":\"done\"}\n\n");
    stream(text)
}

#[track_caller]
fn body(answer: &Value) -> Read {
    let events = Decoder::body(identity(), &answer.to_string()).expect("an answer");
    assert_strict(&events);
    Read::of(events)
}

/// The one document of an answer that holds it alone.
#[track_caller]
fn document(document: Value) -> Document {
    let read = body(&json!({ "documents": [document] }));
    read.response.documents.into_iter().next().expect("one document")
}

fn fixture(name: &str) -> String {
    let path = format!("{}/tests/fixtures/documents/{name}", env!("CARGO_MANIFEST_DIR"));
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// What strict events promise, whatever they were made of.
#[track_caller]
fn assert_strict(events: &[Event]) {
    let mut open: HashSet<DocumentId> = HashSet::new();
    let mut known: HashSet<DocumentId> = HashSet::new();
    assert!(
        matches!(events.first(), Some(Event::ResponseStart(_))),
        "first comes response_start: {:?}",
        events.first()
    );
    assert!(
        matches!(events.last(), Some(Event::Done(_))),
        "last comes done: {:?}",
        events.last()
    );
    for (at, event) in events.iter().enumerate() {
        match event {
            Event::ResponseStart(start) => {
                assert_eq!(at, 0, "response_start comes once");
                assert!(start.id.is_some() && start.model.is_some() && start.mode.is_some() && start.created.is_some());
            }
            Event::DocumentStart(start) => {
                assert!(known.insert(start.id.clone()), "{} starts twice", start.id);
                assert!(start.id.as_str().len() <= 256, "{} is too long", start.id);
                open.insert(start.id.clone());
            }
            Event::ContentDelta { document, delta } => {
                assert!(open.contains(document), "{document} is not open");
                assert!(!delta.is_empty(), "an empty delta");
            }
            Event::ToolCallStart { document, .. }
            | Event::ToolResult { document, .. }
            | Event::MetadataDelta { document, .. } => {
                assert!(open.contains(document), "{document} is not open");
            }
            Event::ToolCallArguments { document, arguments } => {
                assert!(open.contains(document), "{document} is not open");
                assert!(arguments.is_object(), "arguments are whole");
            }
            Event::DocumentEnd { document, .. } => assert!(open.remove(document), "{document} is not open"),
            Event::DocumentUpdate { document, .. } => assert!(known.contains(document), "{document} never started"),
            Event::Done(done) => {
                assert_eq!(at, events.len() - 1, "done comes once and last");
                assert!(open.is_empty(), "{open:?} are still open");
                assert!(done.status.is_some() && done.finish_reason.is_some() && done.usage.is_some());
                assert_ne!(done.status, Some(Status::Streaming));
            }
            Event::UserMessage(_)
            | Event::Progress(_)
            | Event::Said { .. }
            | Event::Told(_)
            | Event::Title(_)
            | Event::Branch(_) => {
                panic!("{event:?} is not for the wire")
            }
            Event::ThinkingDelta { .. } | Event::Notice(_) | Event::Unknown { .. } => {}
        }
    }
    // A log may drop what came between start and end.
    let settled: Vec<_> = events.iter().filter(|it| !is_delta(it)).cloned().collect();
    let (live, settled) = (fold(events), fold(&settled));
    assert_eq!(live.documents, settled.documents, "the deltas matter after the end");
    assert_eq!(live.to_json(), settled.to_json());
}

fn is_delta(event: &Event) -> bool {
    matches!(
        event,
        Event::ContentDelta { .. }
            | Event::ToolCallStart { .. }
            | Event::ToolCallArguments { .. }
            | Event::ToolResult { .. }
            | Event::MetadataDelta { .. }
    )
}
