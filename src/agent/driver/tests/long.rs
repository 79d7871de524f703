//! A conversation that was opened at its end.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use pretty_assertions::assert_eq;

use super::*;
use crate::{
    journal::{Earlier, Recent},
    protocol::{Done, Spent},
};

#[derive(Debug)]
struct Old {
    entries: Vec<Entry>,
    /// How many of them are near the end.
    last: usize,
    read: Arc<AtomicUsize>,
}

impl Earlier for Old {
    fn entries(&self) -> Vec<Entry> {
        self.read.fetch_add(1, Ordering::Relaxed);
        self.entries.clone()
    }

    fn last(&self) -> Vec<Entry> {
        self.entries
            .get(self.entries.len() - self.last..)
            .unwrap_or_default()
            .to_vec()
    }

    fn spent(&self) -> Spent {
        Spent::default()
    }
}

/// Questions without an answer of so many bytes each: three that are far back, two before the end, one at the end.
fn log(bytes: [usize; 3]) -> (Arc<Log>, Arc<AtomicUsize>) {
    let all = Log::new();
    let [far, near, end] = bytes;
    for (what, count, bytes) in [("far", 3, far), ("near", 2, near), ("end", 1, end)] {
        for _ in 0..count {
            all.append(
                1,
                Event::UserMessage(Message::user(format!("{what} {}", "x".repeat(bytes)))),
            );
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
        let (told, mut diary) = peer::diary();
        let url = peer::listen(move |mut socket: Socket| {
            let told = told.clone();
            async move {
                told.send(body(&socket.request().await)).ok();
                socket.send(answer("ok")).await;
            }
        })
        .await;
        let (log, read) = log(bytes);
        let provider = config::Provider {
            connection: Connection::default().at(&url),
            ..config::Provider::default()
        };
        let provider = model::open(&provider, &Environment::default()).expect("sound settings");
        let conversation = Conversation::about(log, provider);
        let before = read.load(Ordering::Relaxed);
        conversation.say("and now?");
        let asked = diary.next().await.to_string();
        let found: Vec<&str> = ["far", "near", "end"]
            .into_iter()
            .filter(|it| asked.contains(&format!("{it} xxxxxxxxx")))
            .collect();
        assert_eq!(found, wanted);
        assert_eq!(read.load(Ordering::Relaxed) - before, reads, "{wanted:?}");
        assert!(asked.contains("and now?"));
    }
}
