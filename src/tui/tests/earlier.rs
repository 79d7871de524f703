//! Of a long conversation the end is shown; the rest comes when one looks for it.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use std::sync::mpsc as threads;

use super::*;
use crate::{
    config::Paths,
    journal::{Earlier, Log, Recent},
    protocol::{Cost, Entry, Position, Turn, Usage},
    transcript::Transcript,
    tui::{
        app::{Focus, effects::ReadBack},
        effect_runner::{Carried, EffectRunner},
    },
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
    // What comes from now on comes once, and at the end the old turns are let go again.
    desk.keys("G");
    desk.exchange("question 61", &["answer 61"]);
    assert!(desk.shows("answer 61"), "{}", desk.picture());
    let transcript = &desk.app.conversation.transcript;
    assert_eq!(transcript.exchanges.len(), 11);
    assert_eq!(transcript.exchanges[10].response.documents.len(), 1);
    assert_eq!(read.load(Ordering::Relaxed), 1);
    desk.keys("g");
    assert!(desk.shows("1 ▌ question 1 "), "{}", desk.picture());
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
    assert_eq!(desk.app.conversation.transcript.exchanges.len(), 11);
}

#[test]
fn an_old_document_is_copied_by_its_address_and_all_of_them_at_once() {
    for words in ["2.1", "all"] {
        let (mut desk, read) = long();
        assert_eq!(read.load(Ordering::Relaxed), 0);
        desk.keys(&format!("/copy {words}<enter>"));
        let is_there =
            matches!(desk.front.effects.last(), Some(Effect::Copy { text, .. }) if text.contains("answer 2\n\nmore 2"));
        assert!(is_there, "{words}: {}", desk.picture());
    }
}

#[test]
fn an_old_document_is_offered_by_its_address() {
    let (mut desk, read) = long();
    desk.keys("see #59.");
    assert_eq!(read.load(Ordering::Relaxed), 0);
    desk.keys("<esc> and #2.1");
    assert!(desk.shows("answer 2"), "{}", desk.picture());
}

#[test]
fn a_further_part_inherits_what_the_screen_knows_of_forgotten_turns() {
    let log = Log::new();
    let usage = Usage {
        total_tokens: 7,
        ..Usage::default()
    };
    let beside = Cost {
        usage: Usage {
            prompt_tokens: 5,
            ..Usage::default()
        },
        dollars: Some(0.5),
    };
    for nth in 1..=9 {
        log.append(1, Event::UserMessage(Message::user(format!("question {nth}"))));
        if nth == 1 {
            let todo = json!({ "id": "t", "content": "Add the field", "status": "in_progress" });
            for event in document("t", "todo_update", None, json!({ "todos": [todo], "merge": false })) {
                log.append(1, event);
            }
            log.append(1, Event::Notice(beside.notice()));
        }
        log.append(
            1,
            Event::Done(Done {
                usage: Some(usage),
                ..Done::default()
            }),
        );
    }
    let entries = log.after(Position(0));
    let whole = Transcript::from_entries(&entries);
    assert_eq!(whole.todos.list.len(), 1);
    let mut shown = Transcript::from_entries(&entries);
    assert_eq!(shown.forget_before(Turn(8)), 7);
    let mut further = Transcript::starting_at(Turn(5), None);
    let part: Vec<_> = entries.iter().filter(|it| it.turn >= Turn(5)).cloned().collect();
    further.apply_all(&part);
    further.inherit(&shown);
    for (name, fold) in [("shown", &shown), ("further", &further)] {
        assert_eq!(fold.todos.list, whole.todos.list, "{name}");
        assert_eq!(fold.usage(), whole.usage(), "{name}");
        assert_eq!(fold.cost(), whole.cost(), "{name}");
    }
}

#[test]
fn who_reads_the_end_of_a_live_conversation_loses_nothing_that_is_let_go() {
    let texts = |desk: &TestApp| {
        let exchanges = desk.app.conversation.transcript.exchanges.iter();
        exchanges.map(|it| it.asked().to_owned()).collect::<Vec<_>>()
    };
    let log = Log::new();
    let (mut desk, mut whole) = (TestApp::on(Arc::clone(&log), 60, 16), TestApp::new(60, 16));
    let usage = Usage {
        total_tokens: 7,
        ..Usage::default()
    };
    let exchange = |desk: &mut TestApp, nth: usize| {
        desk.events([Event::UserMessage(Message::user(format!("question {nth}")))]);
        desk.events(document(
            "d",
            "text",
            Some(&format!("answer {nth}\n\nmore {nth}")),
            json!({}),
        ));
        desk.events([Event::Done(Done {
            usage: Some(usage),
            ..Done::default()
        })]);
    };
    for nth in 1..=40 {
        exchange(&mut desk, nth);
        exchange(&mut whole, nth);
    }
    // They are on disk by now.
    let entries: Vec<Entry> = log.after(Position(0)).iter().map(|it| Entry::clone(it)).collect();
    let start = entries
        .iter()
        .find(|it| it.turn == Turn(31))
        .expect("it is there")
        .position;
    let recent = Recent {
        after: Position(start.0 - 1),
        turn: Turn(31),
        title: None,
    };
    let old = Old {
        entries: entries.into_iter().filter(|it| it.position < start).collect(),
        read: Arc::default(),
        pieces: false,
    };
    assert!(log.retire(recent, Box::new(old)));
    for nth in 41..=42 {
        exchange(&mut desk, nth);
        exchange(&mut whole, nth);
    }
    assert_eq!(texts(&desk).len(), 12, "what the log has let go is not here, either");
    assert_eq!(desk.picture(), whole.picture());
    let total = |desk: &TestApp| desk.app.conversation.transcript.usage();
    assert_eq!(total(&desk), total(&whole));
    for keys in [
        "<tab>kkkk",
        "<pgup>",
        "/answer 5<enter>",
        "<esc>g",
        "<pgdn>",
        "G",
        "<tab>",
    ] {
        desk.keys(keys);
        whole.keys(keys);
        assert_eq!(desk.picture(), whole.picture(), "{keys}");
        assert_eq!(total(&desk), total(&whole));
    }
    assert_eq!(texts(&desk), texts(&whole), "somebody has looked for something old");
    // Whoever reads further up keeps what is there.
    desk.keys("<tab><pgup>");
    exchange(&mut desk, 43);
    assert_eq!(texts(&desk).len(), 43);
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

/// Has the disk answer what was asked of it last.
fn answer(desk: &mut TestApp) {
    let asked = desk.front.effects.iter().rev().find_map(|it| match it {
        Effect::ReadBack(part) => Some(*part),
        _ => None,
    });
    let read = asked
        .expect("something was asked")
        .read(desk.app.conversation.link.log());
    desk.take(Msg::Done(EffectOutcome::Backfilled(Box::new(read))));
}

fn asked(desk: &TestApp) -> usize {
    let asked = desk.front.effects.iter().filter(|it| matches!(it, Effect::ReadBack(_)));
    asked.count()
}

#[test]
fn while_the_disk_does_not_answer_keys_are_drawn_and_a_line_says_so() {
    for pieces in [false, true] {
        let (mut desk, read) = conversation(pieces);
        desk.front.is_disk_held = true;
        desk.keys("<tab>");
        for _ in 0..60 {
            desk.keys("<pgup>");
        }
        // It was asked once, however often somebody scrolls.
        assert_eq!((asked(&desk), read.load(Ordering::Relaxed)), (1, 0));
        assert!(desk.shows("reading earlier turns"), "{}", desk.picture());
        assert!(desk.shows("question 51"), "{}", desk.picture());
        // Whatever one does meanwhile is done.
        desk.keys("<tab>hello");
        assert!(desk.shows("hello"), "{}", desk.picture());
        desk.exchange("question 61", &["answer 61"]);
        assert_eq!(desk.app.conversation.transcript.exchanges.len(), 11);
        answer(&mut desk);
        assert!(!desk.shows("reading earlier turns"), "{}", desk.picture());
        assert!(desk.shows("hello") && desk.shows("question 51"), "{}", desk.picture());
        let exchanges = &desk.app.conversation.transcript.exchanges;
        assert_eq!(exchanges.len(), if pieces { 21 } else { 61 });
        assert_eq!(exchanges.last().unwrap().asked(), "question 61");
        assert_eq!(exchanges.last().unwrap().response.documents.len(), 1);
        desk.exchange("question 62", &["answer 62"]);
        let exchanges = &desk.app.conversation.transcript.exchanges;
        assert_eq!(exchanges.last().unwrap().response.documents.len(), 1);
    }
}

#[test]
fn an_action_that_needs_what_is_on_the_disk_is_done_when_it_is_there() {
    // The keys behind it are for what it opens, and wait with it.
    let (mut desk, read) = long();
    desk.front.is_disk_held = true;
    desk.keys("<tab>/question 7");
    assert!(desk.shows("esc cancels"), "{}", desk.picture());
    assert!(desk.app.overlays.is_empty() && desk.app.composer.field.is_empty());
    desk.keys("<enter>");
    answer(&mut desk);
    assert_eq!(read.load(Ordering::Relaxed), 1);
    assert!(desk.shows("question 7"), "{}", desk.picture());
    // Esc drops both, and what was read is there all the same.
    let (mut desk, _) = long();
    desk.front.is_disk_held = true;
    desk.keys("<tab>vj<esc>");
    assert_eq!(desk.app.viewport.focus, Focus::Transcript);
    desk.keys("<tab>words");
    assert!(desk.shows("words"), "{}", desk.picture());
    answer(&mut desk);
    assert!(
        desk.app.overlays.is_empty() && desk.shows("words"),
        "{}",
        desk.picture()
    );
    assert_eq!(desk.app.conversation.transcript.exchanges.len(), 60);
    // A command leaves the draft to whoever types, and takes no keys from them.
    for (command, is_done) in [("/copy all", true), ("/outline", false)] {
        let (mut desk, _) = long();
        desk.front.is_disk_held = true;
        desk.keys(&format!("{command}<enter>"));
        desk.keys("more");
        assert!(desk.shows("more"), "{}", desk.picture());
        answer(&mut desk);
        let is_copied = desk.front.effects.iter().any(|it| matches!(it, Effect::Copy { .. }));
        assert_eq!((is_copied, desk.app.overlays.is_empty()), (is_done, true), "{command}");
        assert!(desk.shows("more"), "{}", desk.picture());
    }
}

#[test]
fn what_was_read_for_another_conversation_or_before_is_dropped() {
    let (mut desk, _) = conversation(true);
    desk.front.is_disk_held = true;
    desk.keys("<tab>");
    for _ in 0..60 {
        desk.keys("<pgup>");
    }
    let part = ReadBack {
        bytes: Some(4 << 20),
        number: 1,
    };
    assert_eq!(desk.front.effects.last(), Some(&Effect::ReadBack(part)));
    let late = part.read(desk.app.conversation.link.log());
    // All of it is wanted meanwhile.
    desk.keys("v");
    assert_eq!(asked(&desk), 2);
    desk.take(Msg::Done(EffectOutcome::Backfilled(Box::new(late))));
    assert_eq!(desk.app.conversation.transcript.exchanges.len(), 10);
    answer(&mut desk);
    assert_eq!(desk.app.conversation.transcript.exchanges.len(), 60);
    assert!(!desk.app.overlays.is_empty(), "{}", desk.picture());
}

/// A disk that answers when it is told to.
#[derive(Debug)]
struct Slow {
    old: Old,
    go: std::sync::Mutex<threads::Receiver<()>>,
}

impl Earlier for Slow {
    fn entries(&self) -> Vec<Entry> {
        self.go.lock().unwrap().recv().unwrap();
        self.old.entries()
    }

    fn spent(&self) -> Cost {
        Cost::default()
    }
}

#[tokio::test]
async fn what_is_on_the_disk_is_read_on_another_thread() {
    let (desk, read) = long();
    let entries = desk.app.conversation.link.log().after(Position(0));
    let (go, wait) = threads::channel();
    let old = Old {
        entries: entries.iter().map(|it| Entry::clone(it)).collect(),
        read: Arc::clone(&read),
        pieces: false,
    };
    let last = entries.last().unwrap();
    let recent = Recent {
        after: last.position,
        turn: last.turn,
        title: None,
    };
    let slow = Slow {
        old,
        go: std::sync::Mutex::new(wait),
    };
    let desk = TestApp::on(Log::from_recent(recent, Box::new(slow), Vec::new()), 60, 16);
    let folder = tempfile::tempdir().unwrap();
    let (inbox, mut outcomes) = tokio::sync::mpsc::unbounded_channel();
    let runner = EffectRunner {
        inbox,
        paths: Paths::under(folder.path()),
        keeps: false,
        library: None,
    };
    let before = read.load(Ordering::Relaxed);
    let part = ReadBack { bytes: None, number: 1 };
    // It comes back at once.
    assert!(matches!(
        runner.carry_out(Effect::ReadBack(part), &desk.app),
        Carried::Away
    ));
    assert_eq!(read.load(Ordering::Relaxed), before);
    go.send(()).unwrap();
    let Some(Msg::Done(EffectOutcome::Backfilled(read))) = outcomes.recv().await else {
        panic!("it was read")
    };
    assert_eq!(read.transcript.exchanges.len(), 60);
}
