//! Of a long conversation the end is shown; the rest comes when one looks for it.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use super::*;
use crate::{
    journal::{Earlier, Log, Recent},
    protocol::{Cost, Entry, Position, Turn, Usage},
};

#[derive(Debug)]
struct Old {
    entries: Vec<Entry>,
    read: Arc<AtomicUsize>,
    /// A part of them can be read, too.
    pieces: bool,
}

impl Earlier for Old {
    fn entries(&self) -> Vec<Entry> {
        self.read.fetch_add(1, Ordering::Relaxed);
        self.entries.clone()
    }

    /// Ten turns for each step of the reader's, as long as there are so many.
    fn last(&self, bytes: u64) -> Option<(Turn, Vec<Entry>)> {
        let turns = u32::try_from(bytes >> 22).ok()? * 10;
        let turn = Turn(51_u32.checked_sub(turns).filter(|it| self.pieces && *it > 1)?);
        let entries = self.entries.iter().filter(|it| it.turn >= turn);
        Some((turn, entries.cloned().collect()))
    }

    fn spent(&self) -> Cost {
        Cost::default()
    }
}

/// Sixty exchanges, of which the last ten are in memory; and how often the others were read.
fn long() -> (TestApp, Arc<AtomicUsize>) {
    conversation(false)
}

fn conversation(pieces: bool) -> (TestApp, Arc<AtomicUsize>) {
    let all = Log::new();
    for nth in 1..=60 {
        all.append(1, Event::UserMessage(Message::user(format!("question {nth}"))));
        let id = format!("d{nth}");
        for event in document(&id, "text", Some(&format!("answer {nth}\n\nmore {nth}")), json!({})) {
            all.append(1, event);
        }
        all.append(1, Event::Done(Done::default()));
    }
    let mut entries: Vec<Entry> = all.after(Position(0)).iter().map(|it| Entry::clone(it)).collect();
    let from = entries.iter().position(|it| it.turn == Turn(51)).expect("it is there");
    let recent = entries.split_off(from);
    let after = entries.last().expect("there are some").position;
    let read = Arc::new(AtomicUsize::new(0));
    let old = Old {
        entries,
        read: Arc::clone(&read),
        pieces,
    };
    let start = Recent {
        after,
        turn: Turn(51),
        title: None,
    };
    let log = Log::from_recent(start, Box::new(old), recent);
    let mut desk = TestApp::on(log, 60, 16);
    desk.events([]);
    (desk, read)
}

#[test]
fn the_end_stands_there_without_the_rest_and_goes_on() {
    let (mut desk, read) = long();
    assert!(desk.shows("answer 60"), "{}", desk.picture());
    assert_eq!(desk.app.conversation.transcript.exchanges.len(), 10);
    desk.exchange("question 61", &["answer 61"]);
    desk.keys("hello<tab>kkjj<tab>");
    assert!(desk.shows("answer 61") && desk.shows("hello"), "{}", desk.picture());
    assert_eq!(
        (
            read.load(Ordering::Relaxed),
            desk.app.conversation.transcript.exchanges.len()
        ),
        (0, 11)
    );
    // What an older answer costs is counted, although it is not there.
    let usage = Usage {
        total_tokens: 77,
        ..Usage::default()
    };
    let spent = Cost {
        usage,
        dollars: Some(1.5),
    };
    let before = desk.app.conversation.link.log().recent().expect("it is long").turn;
    for log in [Arc::clone(desk.app.conversation.link.log()), Log::new()] {
        desk.take(Msg::Done(EffectOutcome::SpentEarlier { log, spent, before }));
    }
    assert_eq!(desk.app.conversation.transcript.usage().1.total_tokens, 77);
    assert_eq!(desk.app.conversation.transcript.cost(), Some(1.5));
    // What happens to an older document is nothing that is shown here.
    desk.app.conversation.link.log().append_to(
        Turn(3),
        1,
        Event::DocumentUpdate {
            document: "d3".into(),
            metadata: serde_json::Map::new(),
        },
    );
    desk.events([]);
    assert_eq!(desk.app.conversation.transcript.exchanges.len(), 11);
}

#[test]
fn who_reads_up_comes_to_the_beginning() {
    let (mut desk, read) = long();
    desk.keys("<tab>");
    let mut before = desk.picture();
    for _ in 0..60 {
        if read.load(Ordering::Relaxed) > 0 {
            break;
        }
        before = desk.picture();
        desk.keys("<pgup>");
    }
    // It came when the first line did, which stays where it is.
    assert_eq!(read.load(Ordering::Relaxed), 1);
    assert!(desk.shows("question 51"), "{before}\n{}", desk.picture());
    assert_eq!(desk.app.conversation.transcript.exchanges.len(), 60);
    desk.keys("<pgup>");
    assert!(
        desk.shows("question 50") || desk.shows("answer 50"),
        "{}",
        desk.picture()
    );
    desk.keys("g");
    assert!(desk.shows("1 ▌ question 1 "), "{}", desk.picture());
    // What comes from now on comes once.
    desk.keys("G");
    desk.exchange("question 61", &["answer 61"]);
    assert!(desk.shows("answer 61"), "{}", desk.picture());
    assert_eq!(desk.app.conversation.transcript.exchanges.len(), 61);
    assert_eq!(
        desk.app.conversation.transcript.exchanges[60].response.documents.len(),
        1
    );
    assert_eq!(read.load(Ordering::Relaxed), 1);
}

#[test]
fn who_reads_up_is_given_more_each_time_and_all_of_it_last() {
    let (mut desk, read) = conversation(true);
    let usage = Usage {
        total_tokens: 77,
        ..Usage::default()
    };
    let log = Arc::clone(desk.app.conversation.link.log());
    let spent = Cost { usage, dollars: None };
    let before = log.recent().expect("it is long").turn;
    desk.take(Msg::Done(EffectOutcome::SpentEarlier { log, spent, before }));
    desk.keys("<tab>");
    let mut counts = vec![10];
    for _ in 0..400 {
        desk.keys("<pgup>");
        let transcript = &desk.app.conversation.transcript;
        if counts.last() != Some(&transcript.exchanges.len()) {
            counts.push(transcript.exchanges.len());
            let first = transcript.exchanges.first().map(|it| it.turn.0);
            assert_eq!(first, Some(61 - u32::try_from(transcript.exchanges.len()).unwrap()));
            // What was read meanwhile is not counted twice.
            let wanted = if transcript.is_partial() { 77 } else { 0 };
            assert_eq!(transcript.usage().1.total_tokens, wanted);
        }
    }
    assert_eq!(counts, [10, 20, 30, 50, 60]);
    assert_eq!(read.load(Ordering::Relaxed), 1, "all of it is read once");
    assert!(desk.shows("1 ▌ question 1 "), "{}", desk.picture());
    desk.keys("G");
    desk.exchange("question 61", &["answer 61"]);
    assert!(desk.shows("answer 61"), "{}", desk.picture());
    assert_eq!(desk.app.conversation.transcript.exchanges.len(), 61);
}

#[test]
fn who_looks_for_something_old_finds_it() {
    for keys in ["<tab>/question 7<enter>", "<tab>fquestion<enter>g", "<tab>v"] {
        let (mut desk, read) = long();
        desk.keys(keys);
        assert_eq!(read.load(Ordering::Relaxed), 1, "{keys}");
        assert_eq!(desk.app.conversation.transcript.exchanges.len(), 60, "{keys}");
        if keys.contains('7') {
            assert!(desk.shows("question 7"), "{}", desk.picture());
        }
    }
    let (mut desk, _) = long();
    desk.keys("<tab>g");
    assert!(desk.shows("1 ▌ question 1 "), "{}", desk.picture());
}
