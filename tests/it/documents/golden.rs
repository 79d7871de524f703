//! Whole conversations in every form that they travel in.

use pretty_assertions::assert_eq;
use serde_json::{Value, json};

use super::{Read, answer, body, fixture, identity, stream};

/// The whole answer, as a strict writer prints it.
fn whole(read: &Read) -> Value {
    answer(&read.response, &identity())
}

fn expected(name: &str) -> Value {
    serde_json::from_str(&fixture(name)).expect(name)
}

/// What a reader writes down of the structure body: nothing is missing in it but one `diff: null`, which it has.
fn structure() -> Value {
    expected("structure.json")
}

#[test]
fn the_structure_body_reads_as_it_stands() {
    let read = body(&structure());
    assert_eq!(read.codes(), [""; 0]);
    assert_eq!(whole(&read), structure());
}

#[test]
fn the_named_stream_folds_to_the_structure_body() {
    let read = stream(fixture("named.sse"));
    assert_eq!(read.codes(), [""; 0]);
    assert_eq!(whole(&read), structure());
}

#[test]
fn a_stream_folds_the_same_at_every_split() {
    for name in ["envelope.sse", "flat.sse", "questions.sse"] {
        let text = fixture(name);
        let bytes = text.as_bytes();
        let wanted = stream(bytes).events;
        for at in 0..bytes.len() {
            let (left, right) = bytes.split_at(at);
            assert_eq!(
                super::feed([left, right], super::Limits::default()),
                wanted,
                "{name} split at {at}"
            );
        }
    }
}

#[test]
fn the_concept_body_says_the_same_in_other_words() {
    let read = body(&expected("concept.json"));
    assert_eq!(read.codes(), [""; 0]);
    let mut wanted = structure();
    // What the concept has no member for.
    wanted["metadata"] = json!({ "duration_ms": 0, "toolCallCount": 1, "turnCount": 1, "finishReason": "stop" });
    wanted
        .as_object_mut()
        .expect("an object")
        .shift_remove("conversationId");
    assert_eq!(whole(&read), wanted);
}

#[test]
fn the_data_stream_says_the_same_in_other_words() {
    let read = stream(fixture("data.sse"));
    assert_eq!(read.codes(), [""; 0]);
    let mut wanted = structure()["documents"].clone();
    // What the concept's stream has no member for.
    wanted[1]["metadata"]
        .as_object_mut()
        .expect("an object")
        .shift_remove("duration_ms");
    assert_eq!(read.documents(), wanted);
    assert_eq!(whole(&read)["usage"], structure()["usage"]);
    assert_eq!(whole(&read)["id"], "chat_local_1");
    assert_eq!(whole(&read)["model"], "asked");
}

#[test]
fn the_envelope_of_the_type_block_folds() {
    let read = stream(fixture("envelope.sse"));
    assert_eq!(read.codes(), [""; 0]);
    assert_eq!(read.documents(), expected("envelope.json"));
    assert_eq!(whole(&read)["id"], "chat_flags");
    assert_eq!(whole(&read)["usage"]["totalTokens"], 11);
}

#[test]
fn the_flat_stream_with_an_event_of_the_future_folds() {
    let read = stream(fixture("flat.sse"));
    assert_eq!(read.codes(), [""; 0]);
    assert_eq!(read.documents(), expected("flat.json"));
    assert_eq!(whole(&read)["usage"]["totalTokens"], 3);
    assert_eq!(whole(&read)["status"], "completed");
}

#[test]
fn the_stream_that_ends_with_questions_folds() {
    let read = stream(fixture("questions.sse"));
    assert_eq!(read.codes(), [""; 0]);
    assert_eq!(read.documents(), expected("questions.json"));
    assert_eq!(read.response.origin.capabilities, ["live_input"]);
    assert_eq!(
        whole(&read)["metadata"],
        json!({ "duration_ms": 1200, "toolCallCount": 0, "turnCount": 1, "finishReason": "awaiting_input" })
    );
}
