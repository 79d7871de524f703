//! Final events of responses that the gateway ends itself: for a question, at shutdown, or when the link fails.

use serde_json::{Map, Value};

use crate::{
    journal::{Cut, closing},
    protocol::{Document, DocumentId, DocumentStart, Done, Event, FinishReason, Kind, Response, Status, Usage},
};

/// Returns true if the document is a question that still waits for its answer.
pub fn is_open_question(document: &Document) -> bool {
    document
        .clarification()
        .is_some_and(|it| document.is_open() && it.outcome.is_none() && !it.questions.is_empty())
}

/// Returns the final events of a response whose open question is to be answered by the next message. `took_ms` is the
/// response's duration in milliseconds, here and below.
pub fn awaiting_input(response: &Response, took_ms: u64) -> Vec<Event> {
    let waiting: Vec<_> = response.documents.iter().filter(|it| is_open_question(it)).collect();
    let ended = waiting.iter().map(|it| Event::DocumentEnd {
        document: it.id.clone(),
        final_content: it.content.clone(),
        metadata: it.metadata.clone(),
    });
    let is_other = |it: &Event| match it {
        Event::DocumentEnd { document, .. } => waiting.iter().all(|it| it.id != *document),
        _ => false,
    };
    let others = closing(response, Cut::Cancelled).into_iter().filter(is_other);
    ended
        .chain(others)
        .chain([Event::Done(Done {
            status: Some(Status::Completed),
            finish_reason: Some(FinishReason::AwaitingInput),
            duration_ms: Some(took_ms),
            ..Done::default()
        })])
        .collect()
}

/// Returns the final events of a response that a shutdown cuts off. `usage` is what the link reported, if anything.
pub fn shut_down(response: &Response, usage: Option<Usage>, took_ms: u64) -> Vec<Event> {
    let mut events = failed(response, "STREAM_INTERRUPTED", "the gateway is shutting down", took_ms);
    if let Some(Event::Done(done)) = events.last_mut() {
        done.usage = usage;
    }
    events
}

/// Returns the final events of a failed response: closes open documents and adds an error document with `code` and
/// `message`.
pub fn failed(response: &Response, code: &str, message: &str, took_ms: u64) -> Vec<Event> {
    let ends = closing(response, Cut::Interrupted);
    let mut events: Vec<_> = ends.into_iter().filter(|it| !matches!(it, Event::Done(_))).collect();
    let mut number = response.documents.len() as u64 + 1;
    while response.get(&DocumentId::numbered(number)).is_some() {
        number += 1;
    }
    let id = DocumentId::numbered(number);
    let metadata = Map::from_iter([
        ("errorCode".to_owned(), Value::from(code)),
        ("source".to_owned(), "gateway".into()),
        ("details".to_owned(), "".into()),
    ]);
    events.push(Event::DocumentStart(DocumentStart {
        id: id.clone(),
        kind: Kind::Error,
        sequence: Some(response.documents.len() as u64 + 1),
        content: Some(message.into()),
        metadata: metadata.clone(),
    }));
    events.push(Event::DocumentEnd {
        document: id,
        final_content: Some(message.into()),
        metadata,
    });
    events.push(Event::Done(Done {
        status: Some(Status::Error),
        finish_reason: Some(FinishReason::Error),
        duration_ms: Some(took_ms),
        ..Done::default()
    }));
    events
}
