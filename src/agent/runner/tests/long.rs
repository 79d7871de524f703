//! A conversation that was opened at its end.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use pretty_assertions::assert_eq;
use serde_json::json;

use super::*;
use crate::{
    journal::{Earlier, Recent},
    protocol::{Cost, DocumentStart, Done, Kind, document::COMPACT},
};

#[derive(Debug)]
struct Old {
    entries: Vec<Entry>,
    /// Number of them that are near the end.
    last: usize,
    read: Arc<AtomicUsize>,
}

impl Earlier for Old {
    fn entries(&self) -> Vec<Entry> {
        self.read.fetch_add(1, Ordering::Relaxed);
        self.entries.clone()
    }

    fn last(&self, _: u64) -> Option<(Turn, Vec<Entry>)> {
        let entries = self.entries.get(self.entries.len() - self.last..).unwrap_or_default();
        Some((entries.first()?.turn, entries.to_vec()))
    }

    fn spent(&self) -> Cost {
        Cost::default()
    }
}

/// Questions without an answer of so many bytes each: three that are far back, two before the end, one at the end.
fn log(bytes: [usize; 3]) -> (Arc<Log>, Arc<AtomicUsize>) {
    log_with(bytes, Vec::new())
}

/// The same, with something more in the last answer.
fn log_with(bytes: [usize; 3], last: Vec<Event>) -> (Arc<Log>, Arc<AtomicUsize>) {
    let all = Log::new();
    let mut last = Some(last);
    let [far, near, end] = bytes;
    for (what, count, bytes) in [("far", 3, far), ("near", 2, near), ("end", 1, end)] {
        for _ in 0..count {
            all.append(
                1,
                Event::UserMessage(Message::user(format!("{what} {}", "x".repeat(bytes)))),
            );
            for event in last.take_if(|_| what == "end").unwrap_or_default() {
                all.append(1, event);
            }
            all.append(1, Event::Done(Done::default()));
        }
    }
    let mut entries: Vec<Entry> = all.after(Position(0)).iter().map(|it| Entry::clone(it)).collect();
    let recent = entries.split_off(10);
    let read = Arc::new(AtomicUsize::new(0));
    let old = Old {
        entries,
        last: 4,
        read: Arc::clone(&read),
    };
    let start = Recent {
        after: Position(10),
        turn: Turn(6),
        title: None,
    };
    (Log::from_recent(start, Box::new(old), recent), read)
}

/// Asks something behind the conversation: the request, which of the questions before the model is told of, and how often all
/// was read for it.
async fn told_of(log: Arc<Log>, read: &AtomicUsize) -> (String, Vec<&'static str>, usize) {
    let (told, mut diary) = test_server::diary();
    let url = test_server::listen(move |mut socket: Socket| {
        let told = told.clone();
        async move {
            told.send(body(&socket.request().await)).ok();
            socket.send(answer("ok")).await;
        }
    })
    .await;
    let provider = config::Provider {
        connection: Connection::default().at(&url),
        ..config::Provider::default()
    };
    let provider = models::open(&provider, &Environment::default()).expect("sound settings");
    let conversation = Conversation::about(log, provider);
    let before = read.load(Ordering::Relaxed);
    conversation.say("and now?");
    let asked = diary.next().await.to_string();
    let found = ["far", "near", "end"]
        .into_iter()
        .filter(|it| asked.contains(&format!("{it} xxxxxxxxx")))
        .collect();
    (asked, found, read.load(Ordering::Relaxed) - before)
}

#[tokio::test]
async fn no_more_of_a_long_conversation_is_read_than_a_request_can_hold() {
    const MUCH: usize = 1_200_000;
    // What is told of, and whether all was read for it.
    let cases = [
        ([9, 9, MUCH], ["end"].as_slice(), 0),
        ([9, MUCH / 2, 9], ["near", "end"].as_slice(), 0),
        ([9, 9, 9], ["far", "near", "end"].as_slice(), 1),
    ];
    for (bytes, wanted, reads) in cases {
        let (log, read) = log(bytes);
        let (asked, found, read) = told_of(log, &read).await;
        assert_eq!(found, wanted);
        assert_eq!(read, reads, "{wanted:?}");
        assert!(asked.contains("and now?"));
    }
}

/// The document of a compaction that kept so many turns.
fn summary(kept_turns: usize) -> [Event; 2] {
    let start = DocumentStart {
        id: "c".into(),
        kind: Kind::ToolCall,
        sequence: None,
        content: None,
        metadata: serde_json::Map::new(),
    };
    let said = json!({
        "toolName": COMPACT,
        "arguments": {},
        "result": { "status": "success", "data": { "content": "they spoke about xx" } },
        "compaction": { "cause": "full", "way": "summary", "beforeTokens": 9, "afterTokens": 3, "keptTurns": kept_turns },
    });
    let end = Event::DocumentEnd {
        document: "c".into(),
        final_content: None,
        metadata: said.as_object().cloned().unwrap_or_default(),
    };
    [Event::DocumentStart(start), end]
}

#[tokio::test]
async fn a_summary_that_kept_turns_in_front_of_the_end_is_not_enough() {
    // How many turns were kept, what the model is told of, and whether all was read for it.
    for (kept, wanted, reads) in [
        (1, ["end"].as_slice(), 0),
        (3, ["near", "end"].as_slice(), 0),
        (5, ["far", "near", "end"].as_slice(), 1),
    ] {
        let (log, read) = log_with([9, 9, 9], summary(kept).to_vec());
        let (asked, found, read) = told_of(log, &read).await;
        assert_eq!(found, wanted, "{kept}");
        assert_eq!(read, reads, "{kept}");
        assert!(asked.contains("they spoke about xx"), "{kept}");
    }
}
