//! A gateway's bytes become the same answer however they are cut, and what is made of them is strict.

use sheaf::{
    net::sse::Frames,
    protocol::{
        Event, Mode, Response,
        codec::{Decoder, Identity, Limits},
    },
};

/// The first byte says where the bytes are cut.
pub fn check(data: &[u8]) {
    let Some((cut, bytes)) = data.split_first() else { return };
    let (first, last) = bytes.split_at(usize::from(*cut) * bytes.len() / 256);
    let whole = fold(&read(&[bytes]));
    let halves = fold(&read(&[first, last]));
    assert_eq!(told(&whole), told(&halves));
    assert!(whole.ending.is_some(), "an answer always ends");
}

/// Everything but the tables by which it is found.
fn told(it: &Response) -> String {
    format!(
        "{:?} {:?} {:?} {:?} {:?}",
        it.origin.id, it.documents, it.ending, it.notices, it.usage
    )
}

fn read(pieces: &[&[u8]]) -> Vec<Event> {
    let limits = Limits {
        document_bytes: 4096,
        response_bytes: 1 << 16,
        documents: 64,
        ..Limits::default()
    };
    let identity = Identity {
        id: "chat_local_1".into(),
        conversation_id: None,
        model: "asked".to_owned(),
        mode: Mode::Ask,
        created_ms: 1_000_000_000_000,
    };
    let mut frames = Frames::new();
    let mut decoder = Decoder::with_limits(identity, limits);
    let mut events = Vec::new();
    // Behind a frame that ends the reading nothing is read any more, wherever the bytes were cut.
    let mut goes_on = true;
    'pieces: for piece in pieces {
        for frame in frames.push(piece) {
            let found = frame
                .ok()
                .and_then(|it| decoder.frame(it.event.as_deref(), &it.data).ok());
            let Some(found) = found else {
                goes_on = false;
                break 'pieces;
            };
            events.extend(found);
        }
    }
    if goes_on && let Some(Ok(frame)) = frames.finish() {
        events.extend(decoder.frame(frame.event.as_deref(), &frame.data).unwrap_or_default());
    }
    events.extend(decoder.finish());
    events
}

fn fold(events: &[Event]) -> Response {
    let mut response = Response::default();
    for event in events {
        response.apply(event, 0);
    }
    response
}
