//! What the performance figures of the parts come from: `cargo bench`.

use divan::{Bencher, black_box};
use serde_json::json;
use sheaf::{
    net::sse,
    protocol::{Event, Message, Mode, codec},
    text::{NoColours, markdown::Flow},
    tui::desk::{Desk, delta, document, end, start},
};

fn main() {
    divan::main();
}

/// Markdown as models write it, about four characters a token.
fn tokens(count: usize) -> Vec<String> {
    let paragraph = "The **scheduler** keeps `frames` apart, so that a *slow* terminal never delays a key. ";
    let block = format!(
        "{}\n\n- one item of a list\n- another with `code`\n\n",
        paragraph.repeat(4)
    );
    let text = block.repeat(count * 4 / block.len() + 1);
    text.as_bytes()
        .chunks(4)
        .take(count)
        .map(|it| String::from_utf8_lossy(it).into_owned())
        .collect()
}

#[divan::bench(args = [5_000, 20_000])]
fn markdown_token_by_token(bencher: Bencher<'_, '_>, count: usize) {
    let tokens = tokens(count);
    bencher.bench_local(|| {
        let mut flow = Flow::new(1);
        let (mut source, mut rows) = (String::new(), Vec::new());
        for token in &tokens {
            source.push_str(token);
            flow.update(&source, false, 110, &NoColours, &mut rows);
        }
        rows.len()
    });
}

#[divan::bench(args = [20_000])]
fn events_decoded(bencher: Bencher<'_, '_>, count: usize) {
    let mut body =
        String::from("event: document_start\ndata: {\"id\":\"doc_001\",\"type\":\"text\",\"sequence\":1}\n\n");
    for token in tokens(count) {
        body.push_str(&format!(
            "event: content_delta\ndata: {}\n\n",
            json!({ "documentId": "doc_001", "delta": token })
        ));
    }
    body.push_str("event: done\ndata: {}\n\n");
    bencher.bench_local(|| {
        let mut frames = sse::Frames::new();
        let identity = codec::Identity::local("model", Mode::Agent, 0);
        let mut decoder = codec::Decoder::new(identity);
        let mut events = 0;
        for chunk in body.as_bytes().chunks(1400) {
            for frame in frames.push(chunk) {
                let frame = frame.expect("no line is too long");
                let decoded = decoder.frame(frame.event.as_deref(), &frame.data);
                events += decoded.expect("the dialect is known").len();
            }
        }
        black_box(events)
    });
}

#[divan::bench]
fn frame_per_token(bencher: Bencher<'_, '_>) {
    let tokens = tokens(2_000);
    bencher.bench_local(|| {
        let mut desk = Desk::new(120, 40).blind();
        desk.events([Event::UserMessage(Message::user("go")), start("a", "text", json!({}))]);
        for token in &tokens {
            desk.events([delta("a", token)]);
        }
        desk.events([end("a", None, json!({}))]);
        desk.bytes()
    });
}

fn long_conversation(documents: usize) -> Vec<Event> {
    let mut events = Vec::new();
    for n in 0..documents {
        if n % 20 == 0 {
            events.push(Event::UserMessage(Message::user(format!("question {n}"))));
        }
        let id = format!("doc_{:03}", n % 20 + 1);
        if n % 3 == 0 {
            let arguments =
                json!({ "toolName": "read_file", "arguments": { "target_file": "src/cart.rs" }, "result": "text" });
            events.extend(document(&id, "tool_call", None, arguments));
        } else {
            events.extend(document(
                &id,
                "text",
                Some("An answer of **some** words.\n\n- with\n- a list"),
                json!({}),
            ));
        }
    }
    events
}

#[divan::bench(sample_count = 10)]
fn ten_thousand_documents_open(bencher: Bencher<'_, '_>) {
    let events = long_conversation(10_000);
    bencher.with_inputs(|| events.clone()).bench_local_values(|events| {
        let mut desk = Desk::new(120, 40).blind();
        desk.events(events);
        desk.bytes()
    });
}

#[divan::bench]
fn ten_thousand_documents_scroll_one_page(bencher: Bencher<'_, '_>) {
    let mut desk = Desk::new(120, 40).blind();
    desk.events(long_conversation(10_000));
    bencher.bench_local(|| desk.keys("<pgup>"));
}

#[divan::bench]
fn key_to_frame(bencher: Bencher<'_, '_>) {
    let mut desk = Desk::new(120, 40).blind();
    desk.events(long_conversation(200));
    bencher.bench_local(|| desk.keys("x"));
}
