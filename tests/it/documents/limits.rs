//! What one response may cost: every limit, and nothing that grows with the square of its input.

use serde_json::{Value, json};
use sheaf::protocol::{
    Event, FinishReason, Status,
    codec::{DecodeError, Decoder, Limits},
};

use super::{Read, assert_strict, data, feed, identity, stream};

fn within(limits: Limits, text: &str) -> Read {
    let events = feed([text.as_bytes()], limits);
    assert_strict(&events);
    Read::of(events)
}

fn lines(events: impl IntoIterator<Item = Value>) -> String {
    events.into_iter().map(|it| format!("data: {it}\n\n")).collect()
}

fn start(id: &str, kind: &str) -> Value {
    json!({ "type": "document_start", "document": { "id": id, "type": kind } })
}

fn delta(id: &str, text: &str) -> Value {
    json!({ "type": "content_delta", "documentId": id, "delta": text })
}

fn append(id: &str, text: &str) -> Value {
    json!({ "type": "metadata_delta", "documentId": id, "append": { "output": text } })
}

#[test]
fn the_limits_are_the_ones_that_were_decided() {
    let limits = Limits::default();
    assert_eq!(limits.event_bytes, 16 << 20);
    assert_eq!(limits.document_bytes, 64 << 20);
    assert_eq!(limits.documents, 50_000);
    assert_eq!(limits.id_bytes, 256);
    assert_eq!(limits.notices, 1000);
    assert_eq!(limits.thinking_bytes, 8 << 20);
}

#[test]
fn an_event_of_sixteen_mebibytes_is_read_and_a_larger_one_is_skipped() {
    let mut decoder = Decoder::new(identity());
    let frame = |bytes: usize| {
        let shell = delta("a", "").to_string().len();
        delta("a", &"x".repeat(bytes - shell)).to_string()
    };
    let mut events = decoder.frame(None, &frame(16 << 20)).expect("ours");
    events.extend(decoder.frame(None, &frame((16 << 20) + 1)).expect("ours"));
    events.extend(decoder.frame(None, "[DONE]").expect("ours"));
    assert_strict(&events);
    let read = Read::of(events);
    assert_eq!(
        read.codes(),
        ["unknown-document", "event-too-large", "unclosed-document"]
    );
    assert_eq!(
        read.document("a").text().len(),
        (16 << 20) - delta("a", "").to_string().len()
    );
}

#[test]
fn content_beyond_sixty_four_mebibytes_is_cut_and_said() {
    let piece = "x".repeat(8 << 20);
    let mut decoder = Decoder::new(identity());
    let mut events = decoder.frame(None, &start("a", "text").to_string()).expect("ours");
    for _ in 0..9 {
        events.extend(decoder.frame(None, &delta("a", &piece).to_string()).expect("ours"));
    }
    events.extend(
        decoder
            .frame(None, r#"{"type":"document_end","documentId":"a"}"#)
            .expect("ours"),
    );
    events.extend(decoder.frame(None, "[DONE]").expect("ours"));
    let read = Read::of(events);
    assert_eq!(read.codes(), ["document-too-large"]);
    assert_eq!(read.document("a").text().len(), 64 << 20);
    assert_eq!(read.metadata("a")["truncated"], true);
}

#[test]
fn an_appended_member_is_cut_at_the_limit_of_its_document() {
    let limits = Limits {
        document_bytes: 1000,
        ..Limits::default()
    };
    let events = std::iter::once(start("a", "terminal_command")).chain((0..300).map(|_| append("a", "äöü")));
    let read = within(limits, &lines(events.chain([json!({ "type": "done" })])));
    let metadata = read.metadata("a");
    let output = metadata["output"].as_str().expect("output");
    assert!((900..=1000).contains(&output.len()), "{}", output.len());
    assert!("äöü".repeat(300).starts_with(output));
    assert_eq!(metadata["truncated"], true);
    assert_eq!(read.codes(), ["document-too-large", "unclosed-document"]);
}

#[test]
fn a_patch_that_replaces_counts_what_it_leaves_and_not_what_it_was() {
    let limits = Limits {
        document_bytes: 10_000,
        ..Limits::default()
    };
    let patch = |n: usize| json!({ "type": "metadata_delta", "documentId": "a", "metadata": { "progress": format!("{n:0>500}") } });
    let events = std::iter::once(start("a", "text")).chain((0..200).map(patch));
    let read = within(limits, &lines(events.chain([delta("a", "still open")])));
    assert_eq!(read.codes(), ["interrupted"]);
    assert_eq!(read.document("a").text(), "still open");
}

#[test]
fn arguments_in_pieces_count_too() {
    let limits = Limits {
        document_bytes: 1000,
        ..Limits::default()
    };
    let piece = json!({ "type": "tool_call_arguments", "documentId": "a", "arguments": "{\"a\":\"xxxxxxxxxxxxxxxx" });
    let events = std::iter::once(start("a", "tool_call")).chain((0..100).map(|_| piece.clone()));
    let read = within(limits, &lines(events));
    assert_eq!(read.codes(), ["document-too-large", "interrupted"]);
    assert!(read.metadata("a").to_string().len() < 2000);
}

#[test]
fn an_answer_beyond_its_limit_keeps_what_it_has() {
    let limits = Limits {
        response_bytes: 1000,
        ..Limits::default()
    };
    let events = (0..20).flat_map(|n| {
        [
            start(&format!("d{n}"), "text"),
            delta(&format!("d{n}"), &"x".repeat(300)),
        ]
    });
    let read = within(limits, &lines(events));
    let held: usize = read.response.documents.iter().map(|it| it.text().len()).sum();
    assert_eq!(read.response.documents.len(), 20);
    assert_eq!(held, 1000);
    let unknown = (0..50).map(|n| json!({ "type": "future", "n": n, "text": "x".repeat(100) }));
    let read = within(limits, &lines(unknown));
    assert!(
        read.events
            .iter()
            .filter(|it| matches!(it, Event::Unknown { .. }))
            .count()
            < 10
    );
}

#[test]
fn the_fifty_thousand_and_first_document_is_left_out() {
    let mut text = String::new();
    for n in 0..50_010 {
        text.push_str(&format!("data: {{\"type\":\"document_start\",\"document\":{{\"id\":\"d{n}\",\"type\":\"text\",\"content\":\"x\"}}}}\n\n"));
        text.push_str(&format!(
            "data: {{\"type\":\"document_end\",\"documentId\":\"d{n}\"}}\n\n"
        ));
    }
    text.push_str("data: {\"type\":\"done\"}\n\n");
    let read = Read::of(feed([text.as_bytes()], Limits::default()));
    assert_eq!(read.response.documents.len(), 50_000);
    assert_eq!(read.codes(), ["too-many-documents"]);
    assert_eq!(read.response.status(), Status::Completed);
}

#[test]
fn a_long_or_odd_id_is_hashed_and_still_found() {
    let long = "x".repeat(257);
    let just = "y".repeat(256);
    for id in [long.as_str(), "a\nb", "\u{202e}doc", "", "  ", "nul\0"] {
        let read = data([
            start(id, "text"),
            delta(id, "found"),
            json!({ "type": "document_end", "documentId": id }),
        ]);
        assert_eq!(read.codes(), ["odd-id"], "{id:?}");
        let [document] = &read.response.documents[..] else {
            panic!("one document")
        };
        assert_eq!(document.text(), "found");
        assert!(
            document.id.as_str().starts_with("doc_") && document.id.as_str().len() < 30,
            "{}",
            document.id
        );
    }
    let read = data([
        start(&just, "text"),
        json!({ "type": "document_end", "documentId": just }),
    ]);
    assert_eq!(read.codes(), [""; 0]);
    assert_eq!(read.response.documents[0].id.as_str(), just);
}

#[test]
fn json_nested_deeper_than_128_is_skipped() {
    let nested = |depth: usize| {
        format!(
            "data: {{\"type\":\"future\",\"x\":{}{}}}\n\n",
            "[".repeat(depth),
            "]".repeat(depth)
        )
    };
    let read = stream(nested(126) + "data: [DONE]\n\n");
    assert_eq!(read.codes(), [""; 0]);
    let read = stream(nested(200) + "data: [DONE]\n\n");
    assert_eq!(read.codes(), ["bad-json"]);
}

#[test]
fn what_nests_so_deep_that_it_could_not_be_read_back_becomes_text() {
    let deep = |depth: usize| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
    let event = format!(
        r#"data: {{"type":"document_start","document":{{"id":"a","type":"tool_call","toolName":"t","x":{},"arguments":"{{\"x\":{}}}","result":{}}}}}"#,
        deep(120),
        deep(120),
        deep(120)
    );
    let read = stream(event + "\n\ndata: {\"type\":\"document_end\",\"documentId\":\"a\"}\n\ndata: [DONE]\n\n");
    let metadata = read.metadata("a");
    assert_eq!(metadata["x"], deep(120));
    assert_eq!(metadata["result"]["data"], deep(120));
    assert!(metadata["arguments"]["_raw"].is_string());
    let again = read.response.to_json().to_string();
    serde_json::from_str::<Value>(&again).expect("it can be read back");
}

#[test]
fn after_a_thousand_notices_there_is_one_that_says_more() {
    let read = stream("data: 5\n\n".repeat(5000) + "data: [DONE]\n\n");
    let codes = read.codes();
    assert_eq!(codes.len(), 1000);
    assert_eq!(codes[998..], ["not-an-object", "and-more"]);
}

#[test]
fn thinking_is_bounded() {
    let limits = Limits {
        thinking_bytes: 100,
        ..Limits::default()
    };
    let thought = json!({ "type": "thinking_delta", "delta": "hmm… " });
    let read = within(
        limits,
        &lines((0..100).map(|_| thought.clone()).chain([json!({ "type": "done" })])),
    );
    let thoughts: String = read.response.thinking.iter().map(|it| it.text.as_str()).collect();
    assert!((90..=100).contains(&thoughts.len()), "{}", thoughts.len());
    assert_eq!(read.codes(), ["thinking-too-large"]);
}

#[test]
fn a_body_beyond_its_limit_is_refused() {
    let limits = Limits {
        body_bytes: 100,
        ..Limits::default()
    };
    let body = json!({ "documents": [], "padding": "x".repeat(100) }).to_string();
    let refused = Decoder::body_within(identity(), limits, &body);
    assert!(matches!(refused, Err(DecodeError::TooLarge { limit_bytes: 100 })));
}

#[test]
fn a_document_of_a_body_is_cut_like_one_of_a_stream() {
    let limits = Limits {
        document_bytes: 100,
        ..Limits::default()
    };
    let body = json!({ "documents": [
        { "id": "a", "type": "text", "content": "x".repeat(500) },
        { "id": "b", "type": "terminal_command", "command": "yes", "output": "y\n".repeat(500), "x": [[1, 2, 3, 4, 5, 6]] },
    ]});
    let events = Decoder::body_within(identity(), limits, &body.to_string()).expect("an answer");
    assert_strict(&events);
    let read = Read::of(events);
    assert_eq!(read.codes(), ["document-too-large"; 2]);
    assert_eq!(read.document("a").text().len(), 100);
    assert_eq!(read.metadata("b")["truncated"], true);
    assert_eq!(read.metadata("b")["output"].as_str().map(str::len), Some(97));
}

#[test]
fn two_hundred_documents_are_open_at_once() {
    let ids: Vec<_> = (0..200).map(|n| format!("d{n}")).collect();
    let mut events: Vec<_> = ids.iter().map(|it| start(it, "text")).collect();
    for round in 0..20 {
        events.extend(ids.iter().map(|it| delta(it, &format!("{it}.{round} "))));
    }
    events.extend(
        ids.iter()
            .rev()
            .map(|it| json!({ "type": "document_end", "documentId": it })),
    );
    let read = data(events);
    assert_eq!(read.codes(), [""; 0]);
    for (at, document) in read.response.documents.iter().enumerate() {
        let wanted: String = (0..20).map(|round| format!("d{at}.{round} ")).collect();
        assert_eq!(document.text(), wanted);
    }
}

#[test]
fn ten_megabytes_of_output_arrive_in_fifty_byte_pieces() {
    let piece = format!("{}\n", "x".repeat(49));
    let mut text = lines([start("a", "terminal_command")]);
    let line = lines([append("a", &piece)]);
    for _ in 0..200_000 {
        text.push_str(&line);
    }
    text.push_str(&lines([
        json!({ "type": "document_end", "documentId": "a" }),
        json!({ "type": "done" }),
    ]));
    let read = Read::of(feed([text.as_bytes()], Limits::default()));
    assert_eq!(read.codes(), [""; 0]);
    assert_eq!(read.metadata("a")["output"].as_str().map(str::len), Some(10_000_000));
}

#[test]
fn one_data_line_holds_a_megabyte() {
    let text = "zeile ✓ ".repeat(100_000);
    let read = data([
        start("a", "text"),
        delta("a", &text),
        json!({ "type": "document_end", "documentId": "a" }),
    ]);
    assert_eq!(read.codes(), [""; 0]);
    assert_eq!(read.document("a").text(), text);
}

#[test]
fn a_hundred_thousand_deltas_make_one_text() {
    let mut text = lines([start("a", "text")]);
    for n in 0..100_000 {
        text.push_str(&lines([delta("a", &format!("{n} "))]));
    }
    text.push_str("data: [DONE]\n\n");
    let read = Read::of(feed([text.as_bytes()], Limits::default()));
    let wanted: String = (0..100_000).map(|n| format!("{n} ")).collect();
    assert_eq!(read.document("a").text(), wanted);
}

#[test]
fn sequences_that_count_down_cost_no_square() {
    let mut text = String::new();
    for n in (1..=20_000).rev() {
        text.push_str(&lines([
            json!({ "type": "document_start", "document": { "id": format!("d{n}"), "type": "text", "sequence": n } }),
        ]));
    }
    text.push_str("data: [DONE]\n\n");
    let read = Read::of(feed([text.as_bytes()], Limits::default()));
    let first: Vec<_> = read
        .response
        .documents
        .iter()
        .take(3)
        .map(|it| it.id.as_str())
        .collect();
    assert_eq!(first, ["d1", "d2", "d3"]);
    assert_eq!(read.response.position_of(&"d20000".into()), Some(19_999));
}

#[test]
fn the_same_id_again_and_again_costs_no_square() {
    let read = Read::of(feed(
        [lines((0..20_000).map(|_| start("same", "text"))).as_bytes()],
        Limits::default(),
    ));
    assert_eq!(read.response.documents.len(), 20_000);
    assert!(read.response.get(&"same#20000".into()).is_some());
}

#[test]
fn events_without_an_id_go_to_the_newest_document_however_many_are_open() {
    let ids: Vec<_> = (0..5000).map(|n| format!("d{n}")).collect();
    let events = ids.iter().map(|it| start(it, "text"));
    let nameless = (0..5000).map(|_| json!({ "type": "content_delta", "delta": "x" }));
    let read = Read::of(feed([lines(events.chain(nameless)).as_bytes()], Limits::default()));
    assert_eq!(read.document("d4999").text().len(), 5000);
    assert_eq!(
        read.response.ending.as_ref().map(|it| it.finish_reason.clone()),
        Some(FinishReason::Interrupted)
    );
}
