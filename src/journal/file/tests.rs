//! Real files, cut and changed everywhere.

use std::{
    fs,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use pretty_assertions::assert_eq;
use proptest::prelude::*;
use serde_json::{Map, Value, json};

use super::{
    recorder::{HOLD, Tape, Writer, follow},
    *,
};
use crate::protocol::{
    DocumentId, DocumentStart, Done, Entry, FinishReason, Kind, Message, Response, ResponseStart, Title, Turn,
};

fn members(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(members) => members,
        other => panic!("no object: {other}"),
    }
}

fn start(id: &str, kind: &str) -> Event {
    Event::DocumentStart(DocumentStart {
        id: id.into(),
        kind: Kind::parse(kind),
        sequence: None,
        content: None,
        metadata: Map::new(),
    })
}

fn say(id: &str, delta: &str) -> Event {
    Event::ContentDelta {
        document: id.into(),
        delta: delta.to_owned(),
    }
}

fn output(id: &str, text: &str) -> Event {
    Event::MetadataDelta {
        document: id.into(),
        metadata: Map::new(),
        append: vec![("output".to_owned(), text.to_owned())],
    }
}

fn end(id: &str, content: Option<&str>, metadata: Value) -> Event {
    Event::DocumentEnd {
        document: id.into(),
        final_content: content.map(Into::into),
        metadata: members(metadata),
    }
}

/// Two turns with everything that a file has to keep, one document at a time; the second has no end.
fn conversation() -> Vec<Event> {
    let mut events = vec![
        Event::UserMessage(Message::user("grüße\n\u{1b}[2J")),
        Event::Title("A title".into()),
        Event::ResponseStart(ResponseStart {
            model: Some("m".to_owned()),
            ..ResponseStart::default()
        }),
    ];
    for word in ["Let ", "me ", "think."] {
        events.push(Event::ThinkingDelta { delta: word.to_owned() });
    }
    events.push(start("a", "text"));
    for word in ["one ", "two ", "three"] {
        events.push(say("a", word));
    }
    events.push(end("a", Some("one two three"), json!({ "format": "markdown" })));
    events.push(start("b", "tool_call"));
    events.push(Event::ToolCallStart {
        document: "b".into(),
        tool_name: "grep".to_owned(),
        tool_call_id: Some("call_1".to_owned()),
    });
    events.push(Event::ToolCallArguments {
        document: "b".into(),
        arguments: json!({ "pattern": "x" }),
    });
    events.push(Event::ToolResult {
        document: "b".into(),
        result: json!({ "status": "success", "data": "found" }),
        duration_ms: Some(3),
    });
    events.push(end(
        "b",
        None,
        json!({ "toolName": "grep", "toolCallId": "call_1", "arguments": { "pattern": "x" },
                "result": { "status": "success", "data": "found" }, "duration_ms": 3 }),
    ));
    events.push(Event::Done(Done::default()));
    events.push(Event::DocumentUpdate {
        document: "a".into(),
        metadata: members(json!({ "note": 1 })),
    });
    events.push(Event::UserMessage(Message::user("more")));
    events.push(start("a", "terminal_command"));
    for line in ["first\n", "second\n", "third\n"] {
        events.push(output("a", line));
    }
    events
}

/// Messages, documents and ends as a reader sees them, as text.
fn seen(entries: &[Entry]) -> Vec<String> {
    let mut turns: Vec<(Turn, Option<String>, Response)> = Vec::new();
    for entry in entries {
        if turns.iter().all(|it| it.0 != entry.turn) {
            turns.push((entry.turn, None, Response::default()));
        }
        let (_, message, response) = turns
            .iter_mut()
            .find(|it| it.0 == entry.turn)
            .expect("it was just put there");
        if let Event::UserMessage(it) = &entry.event {
            *message = Some(it.content.clone());
        }
        response.apply(&entry.event, entry.at_ms);
    }
    let mut lines = Vec::new();
    for (turn, message, response) in &turns {
        lines.push(format!(
            "turn {turn} {message:?} {:?} {:?}",
            response.model, response.thinking
        ));
        for it in &response.documents {
            lines.push(format!(
                "{} {} {} {:?} {}",
                it.id,
                it.kind,
                if it.is_open() { "Open" } else { "Closed" },
                it.content,
                Value::Object(it.metadata.clone())
            ));
        }
        lines.push(format!("{:?}", response.ending));
    }
    lines
}

fn log_of(events: Vec<Event>) -> Arc<Log> {
    let log = Log::new();
    for (at, event) in events.into_iter().enumerate() {
        log.append(1_000 + at as u64, event);
    }
    log
}

/// Every state that a live reader passes through.
fn live_states(events: &[Event]) -> Vec<Vec<String>> {
    let mut turn = Turn(0);
    let mut entries = Vec::new();
    let mut states = vec![seen(&[])];
    for (at, event) in events.iter().enumerate() {
        if matches!(event, Event::UserMessage(_)) {
            turn.0 += 1;
        }
        entries.push(Entry {
            position: Position(at as u64 + 1),
            turn,
            at_ms: 1_000 + at as u64,
            event: event.clone(),
        });
        states.push(seen(&entries));
    }
    states
}

fn session() -> Session {
    Session {
        id: "s-1".to_owned(),
        created: 1,
        workspace: "/home/kim/shop".to_owned(),
        version: "0".to_owned(),
        branch: None,
    }
}

fn tape(folder: &Path) -> Tape {
    Tape::new(folder, folder.join("s-1.jsonl"), session())
}

/// Writes the events with a pause of `pause` after each, as a recorder would that is never late.
fn write(folder: &Path, events: &[Event], pause: Duration) -> PathBuf {
    let log = Log::new();
    let mut follower = log.follow(Position(0));
    let mut writer = Writer::new(tape(folder));
    let mut now = Instant::now();
    let mut batch = Vec::new();
    for (at, event) in events.iter().enumerate() {
        log.append(1_000 + at as u64, event.clone());
        follower.take(&mut batch);
        writer.take(&mut batch, now);
        assert_eq!(writer.write(now), None);
        now += pause;
        if writer.due().is_some_and(|due| due <= now) {
            assert_eq!(writer.write(now), None);
        }
    }
    assert_eq!(writer.write_all(), None);
    folder.join("s-1.jsonl")
}

fn folder() -> tempfile::TempDir {
    tempfile::tempdir().expect("a folder")
}

const PAUSES: [Duration; 3] = [Duration::ZERO, Duration::from_millis(200), Duration::from_secs(1)];

#[test]
fn what_is_written_is_read() {
    for pause in PAUSES {
        let folder = folder();
        let events = conversation();
        write(folder.path(), &events, pause);
        let stored = Store::new(folder.path()).read("s-1").expect("it is there");
        assert_eq!(Some(&seen(&stored.entries)), live_states(&events).last(), "{pause:?}");
        assert_eq!((stored.session, stored.notices), (session(), Vec::new()));
    }
}

#[test]
fn pieces_of_what_has_ended_cost_nothing() {
    let folder = folder();
    let events: Vec<_> = std::iter::once(Event::UserMessage(Message::user("x")))
        .chain([start("a", "text")])
        .chain((0..1000).map(|_| say("a", "word ")))
        .chain([end("a", Some(&"word ".repeat(1000)), json!({}))])
        .collect();
    let path = write(folder.path(), &events, Duration::ZERO);
    let text = fs::read_to_string(path).expect("it is there");
    assert_eq!(text.lines().count(), 4, "the session, the message, the start, the end");
    assert!(text.len() < 6_000, "{} bytes for 5000", text.len());
}

#[test]
fn pieces_wait_for_others_and_for_a_moment_only() {
    let folder = folder();
    let log = log_of(vec![Event::UserMessage(Message::user("x")), start("a", "text")]);
    let mut writer = Writer::new(tape(folder.path()));
    let mut follower = log.follow(Position(0));
    let begin = Instant::now();
    let mut take = |writer: &mut Writer, now| {
        let mut batch = Vec::new();
        follower.take(&mut batch);
        writer.take(&mut batch, now);
        assert_eq!(writer.write(now), None);
    };
    let stored = || {
        Store::new(folder.path())
            .read("s-1")
            .expect("it is there")
            .entries
            .len()
    };
    take(&mut writer, begin);
    log.append(1, say("a", "one "));
    take(&mut writer, begin);
    log.append(2, say("a", "two"));
    take(&mut writer, begin + HOLD / 2);
    assert_eq!(stored(), 2);
    assert_eq!(writer.due(), Some(begin + HOLD));
    assert_eq!(writer.write(begin + HOLD), None);
    assert_eq!(stored(), 3, "the two pieces in one line");
    assert_eq!(writer.due(), None, "an idle session wakes nobody up");
}

/// The time at which the recorder looks and writes, for a piece that is said at any moment of an answer. The disk takes a while for
/// the message at its beginning.
#[test]
fn a_piece_is_in_the_file_a_tenth_of_a_second_after_it_was_said() {
    const DISK: Duration = Duration::from_millis(60);
    for (after_ms, mut disk) in (0..250).step_by(3).flat_map(|it| [(it, Duration::ZERO), (it, DISK)]) {
        let folder = folder();
        let log = log_of(vec![Event::UserMessage(Message::user("x")), start("a", "text")]);
        let mut writer = Writer::new(tape(folder.path()));
        let mut follower = log.follow(Position(0));
        let mut now = Instant::now();
        let said_at = now + Duration::from_millis(after_ms);
        let mut is_said = false;
        loop {
            let mut batch = Vec::new();
            follower.take(&mut batch);
            writer.take(&mut batch, now);
            assert_eq!(writer.write(now), None);
            let text = fs::read_to_string(folder.path().join("s-1.jsonl")).expect("it has begun");
            if text.contains("the piece") {
                break;
            }
            let next = writer.look_again().expect("an answer is on its way");
            if !is_said && next >= said_at {
                log.append(2, say("a", "the piece"));
                is_said = true;
            }
            now = next.max(now + std::mem::take(&mut disk));
        }
        let took = now - said_at;
        assert!(took <= Duration::from_millis(100), "said after {after_ms} ms: {took:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_stream_is_written_at_its_looks_and_at_no_other_time() {
    let folder = folder();
    let log = log_of(vec![Event::UserMessage(Message::user("x")), start("a", "text")]);
    let (stop, stopped) = tokio::sync::oneshot::channel();
    let (writer, follower) = (Writer::new(tape(folder.path())), log.follow_settled(Position(0)));
    let recorder = tokio::spawn(follow(follower, stopped, writer, |_| {}, Arc::downgrade(&log)));
    let text = || fs::read_to_string(folder.path().join("s-1.jsonl")).unwrap_or_default();
    let tick = Duration::from_millis(1);
    for nth in 0..1800_u64 {
        tokio::time::sleep(tick).await;
        if let Some(oldest) = nth.checked_sub(100) {
            assert!(text().contains(&format!(" {oldest}.")), "{oldest} at {nth}: {}", text());
        }
        log.append(nth, say("a", &format!(" {nth}.")));
    }
    assert!(text().lines().count() <= 3 + 1800 / 90, "{}", text());
    // When the answer is over there is nothing to look for.
    log.append(1, end("a", Some("whole"), json!({})));
    log.append(1, Event::Done(Done::default()));
    tokio::time::sleep(tick).await;
    assert!(text().contains("whole"), "{}", text());
    drop(stop);
    assert_eq!(recorder.await.expect("no panic"), Ok(()));
}

#[test]
fn many_documents_that_end_together_are_looked_through_once() {
    let folder = folder();
    let log = Log::new();
    let mut follower = log.follow(Position(0));
    let mut batch = Vec::new();
    for at in 0..30_000 {
        let id = at.to_string();
        log.append(0, start(&id, "text"));
        log.append(0, say(&id, "word"));
        // Read before its end makes it superfluous.
        follower.take(&mut batch);
        log.append(0, end(&id, Some("word"), json!({})));
    }
    follower.take(&mut batch);
    assert_eq!(batch.len(), 90_000);
    let mut writer = Writer::new(tape(folder.path()));
    let began = Instant::now();
    writer.take(&mut batch, began);
    // Each of them against each other one would take minutes.
    assert!(began.elapsed() < Duration::from_secs(5), "{:?}", began.elapsed());
}

#[test]
fn a_file_cut_at_any_byte_is_a_moment_of_the_conversation() {
    for pause in PAUSES {
        let folder = folder();
        let events = conversation();
        let whole = fs::read(write(folder.path(), &events, pause)).expect("it is there");
        let states = live_states(&events);
        let mut latest = 0;
        let mut entries = Vec::new();
        for length in 0..=whole.len() {
            let stored = load::read("s-1", &whole[..length]).expect("it is not newer");
            if stored.entries != entries {
                let now = seen(&stored.entries);
                let at = states.iter().skip(latest).position(|it| *it == now);
                latest += at.unwrap_or_else(|| panic!("{length} bytes after {pause:?}: {now:#?}"));
                entries = stored.entries;
            }
            let is_whole = length == 0 || whole[length - 1] == b'\n' || whole.get(length) == Some(&b'\n');
            assert_eq!(stored.notices.is_empty(), is_whole, "{length} bytes: a cut is said");
        }
        assert_eq!(latest, states.len() - 1);
    }
}

#[test]
fn a_changed_byte_costs_its_line_at_most() {
    let folder = folder();
    let events = conversation();
    let whole = fs::read(write(folder.path(), &events, Duration::ZERO)).expect("it is there");
    let all = load::read("s-1", &whole).expect("it is whole").entries;
    for at in 0..whole.len() {
        let mut changed = whole.clone();
        changed[at] ^= 0x11;
        let stored = load::read("s-1", &changed).expect("no change makes it newer");
        let line = whole[..at].split(|&it| it == b'\n').count() - 1;
        // Without its newline a line runs into the next one.
        let lost = if whole[at] == b'\n' {
            vec![line, line + 1]
        } else {
            vec![line]
        };
        let is_kept = |number: usize| !lost.contains(&number);
        // The session stands on line 0.
        for (number, entry) in all.iter().enumerate().filter(|(number, _)| is_kept(number + 1)) {
            assert!(stored.entries.contains(entry), "byte {at} cost line {}", number + 1);
        }
        assert!(!stored.notices.is_empty(), "byte {at}: damage is said");
        if is_kept(0) {
            assert_eq!(stored.session, session());
        }
        if at % 16 == 0 {
            let _ = seen(&stored.entries);
        }
    }
}

#[test]
fn a_document_whose_start_is_lost_is_still_there() {
    let folder = folder();
    let path = write(folder.path(), &conversation(), Duration::ZERO);
    let text = fs::read_to_string(path).expect("it is there");
    let without: Vec<_> = text
        .lines()
        .map(|line| {
            if line.contains("document_start") && line.contains("\"a\"") {
                "damaged"
            } else {
                line
            }
        })
        .collect();
    let stored = load::read("s-1", without.join("\n").as_bytes()).expect("it is not newer");
    let now = seen(&stored.entries).join("\n");
    assert!(now.contains(r#"a text Closed Some("one two three")"#), "{now}");
}

#[test]
fn a_damaged_end_is_moved_away_and_a_damaged_middle_is_left_out() {
    let folder = folder();
    let store = Store::new(folder.path());
    let path = write(folder.path(), &conversation(), Duration::ZERO);
    let whole = fs::read(&path).expect("it is there");
    let mut damaged = whole.clone();
    let second = whole.iter().position(|&it| it == b'\n').expect("a line") + 20;
    damaged[second] ^= 1;
    damaged.extend_from_slice(b"{\"v\":1,\"n\":99,\"half");
    fs::write(&path, &damaged).expect("written");

    let resumed = store.resume("s-1", 77).expect("it can be opened");
    let codes: Vec<_> = resumed
        .log
        .after(Position(0))
        .iter()
        .filter_map(|it| match &it.event {
            Event::Notice(notice) => Some(notice.code.clone()),
            _ => None,
        })
        .collect();
    assert_eq!(codes, ["session-damaged", "session-cut"]);
    assert_eq!(
        fs::read(folder.path().join("s-1.damaged-77")).expect("the end is kept"),
        b"{\"v\":1,\"n\":99,\"half"
    );
    resumed.recorder.finish().expect("it is stored");
    let after = fs::read(&path).expect("it is there");
    assert_eq!(after[..whole.len()], damaged[..whole.len()], "nothing is overwritten");
    let again = store.read("s-1").expect("it is there");
    assert_eq!(again.notices.len(), 1, "the middle is still damaged, the end is not");
}

#[test]
fn what_had_no_end_is_interrupted_once_and_nothing_is_asked_again() {
    let folder = folder();
    let store = Store::new(folder.path());
    let mut events = conversation();
    events.push(start("q", "clarification"));
    events.push(Event::MetadataDelta {
        document: "q".into(),
        metadata: members(json!({ "questions": [{ "id": "q1", "text": "Which?" }] })),
        append: Vec::new(),
    });
    write(folder.path(), &events, Duration::ZERO);
    let resumed = store.resume("s-1", 5).expect("it can be opened");
    let first: Vec<Entry> = resumed
        .log
        .after(Position(0))
        .iter()
        .map(|it| Entry::clone(it))
        .collect();
    let state = seen(&first).join("\n");
    assert!(state.contains("cancelled"), "{state}");
    assert!(
        state.contains("first\\nsecond\\nthird\\n"),
        "what the command printed is kept: {state}"
    );
    let reason = first.iter().rev().find_map(|it| match &it.event {
        Event::Done(done) => done.finish_reason.clone(),
        _ => None,
    });
    assert_eq!(reason, Some(FinishReason::Interrupted));
    resumed.log.append(9, Event::UserMessage(Message::user("go on")));
    resumed.recorder.finish().expect("it is stored");

    let again = store.read("s-1").expect("it is there");
    assert!(again.endings().len() == 1, "only the new turn has no end");
    // The title is said again behind it, where the list finds it: not before the message is written, and perhaps not yet.
    let is_said = |it: &&Entry| it.turn == Turn(3) && !matches!(it.event, Event::Title(_));
    let texts: Vec<_> = again.entries.iter().filter(is_said).collect();
    assert_eq!(texts.len(), 1, "the new turn stands behind the old ones");
}

#[test]
fn a_session_goes_on_behind_a_last_line_without_its_newline() {
    let folder = folder();
    let store = Store::new(folder.path());
    let path = write(folder.path(), &conversation(), Duration::ZERO);
    let whole = fs::read(&path).expect("it is there");
    fs::write(&path, &whole[..whole.len() - 1]).expect("written");
    let resumed = store.resume("s-1", 5).expect("it can be opened");
    resumed.log.append(9, Event::UserMessage(Message::user("go on")));
    resumed.recorder.finish().expect("it is stored");
    let again = store.read("s-1").expect("it is there");
    assert_eq!(again.notices, Vec::new());
    assert!(seen(&again.entries).join("\n").contains("go on"));
}

#[test]
fn who_comes_second_is_told_by_whom_and_may_read() {
    let folder = folder();
    let store = Store::new(folder.path());
    write(folder.path(), &conversation(), Duration::ZERO);
    let first = store.resume("s-1", 5).expect("it is free");
    match store.resume("s-1", 6) {
        Err(StoreError::Held { by, .. }) => assert_eq!(by, Some(std::process::id())),
        other => panic!("{other:?}"),
    }
    assert!(store.read("s-1").is_ok());
    drop(first);
    store.resume("s-1", 7).expect("it is free again");
}

#[test]
fn sessions_that_are_not_there_or_newer_say_so() {
    let folder = folder();
    let store = Store::new(folder.path());
    for id in ["none", "", "../s-1", "a/b", "a b"] {
        assert!(matches!(store.read(id), Err(StoreError::Missing { .. })), "{id}");
        assert!(matches!(store.resume(id, 1), Err(StoreError::Missing { .. })), "{id}");
    }
    let path = write(folder.path(), &conversation(), Duration::ZERO);
    let body = br#"{"v":3,"n":99"#;
    let line = format!("{{\"v\":3,\"n\":99,\"crc\":{}}}\n", crc32fast::hash(body));
    let mut bytes = fs::read(&path).expect("it is there");
    bytes.extend_from_slice(line.as_bytes());
    fs::write(&path, &bytes).expect("written");
    assert!(matches!(store.resume("s-1", 1), Err(StoreError::Newer { .. })));
    assert_eq!(fs::read(&path).expect("it is there"), bytes, "it is left alone");
}

#[test]
fn a_recorder_follows_a_log_from_its_beginning_to_its_end() {
    let folder = folder();
    let store = Store::new(folder.path().join("new/sessions"));
    let log = Log::new();
    let events = conversation();
    let recorder = store.record(session(), &log).expect("a thread");
    for (at, event) in events.iter().enumerate() {
        log.append(1_000 + at as u64, event.clone());
        if at % 5 == 0 {
            std::thread::yield_now();
        }
    }
    recorder.finish().expect("it is stored");
    let stored = store.read("s-1").expect("it is there");
    assert_eq!(Some(&seen(&stored.entries)), live_states(&events).last());
}

#[test]
fn nothing_said_leaves_no_file() {
    let folder = folder();
    let store = Store::new(folder.path().join("sessions"));
    let log = Log::new();
    let recorder = store.record(session(), &log).expect("a thread");
    log.append(1, Event::Title("nothing yet".into()));
    // A question of the program's own, which nobody has answered yet.
    log.append(1, Event::ResponseStart(ResponseStart::default()));
    let mut own = start("doc_001", "clarification");
    if let Event::DocumentStart(start) = &mut own {
        start.metadata = members(json!({ "aside": true }));
    }
    log.append(1, own);
    recorder.finish().expect("it is stored");
    assert!(!store.folder().exists());
}

#[test]
fn a_disk_that_fails_is_said_once_and_tried_again_and_loses_nothing() {
    let home = folder();
    // A file stands where the folder should be, so that nothing can be made below it; root is stopped by that, too.
    let place = home.path().join("sessions");
    fs::write(&place, "in the way").expect("written");
    let log = Log::new();
    let mut follower = log.follow(Position(0));
    let mut writer = Writer::new(tape(&place));
    let now = Instant::now();
    let mut notices = Vec::new();
    let events = conversation();
    for (at, event) in events.iter().enumerate() {
        if at == events.len() - 5 {
            fs::remove_file(&place).expect("removed");
        }
        log.append(1_000 + at as u64, event.clone());
        let mut batch = Vec::new();
        follower.take(&mut batch);
        writer.take(&mut batch, now);
        notices.extend(writer.write(now).map(|it| it.code));
    }
    assert_eq!(writer.write_all(), None);
    assert_eq!(notices, ["session-not-stored", "session-stored-again"]);
    let stored = Store::new(&place).read("s-1").expect("it is there");
    assert_eq!(Some(&seen(&stored.entries)), live_states(&events).last());
}

/// The disk refuses what it is asked to keep, so that what is asked for is seen.
#[cfg(target_os = "linux")]
#[test]
fn what_must_outlive_a_power_failure_is_brought_to_the_disk_and_nothing_else() {
    use crate::os::refused_sync::without_sync;
    let result = || Event::ToolResult {
        document: "t".into(),
        result: json!({ "status": "success" }),
        duration_ms: None,
    };
    let arguments = || Event::ToolCallArguments {
        document: "t".into(),
        arguments: json!({ "pattern": "x" }),
    };
    for (what, event, must_stay) in [
        ("a message", Event::UserMessage(Message::user("x")), true),
        ("the start of a call", start("t", "tool_call"), true),
        ("the start of a command", start("t", "terminal_command"), true),
        ("the start of an edit", start("t", "file_edit"), true),
        ("a result", result(), true),
        ("the end of a text", end("a", Some("x"), json!({})), true),
        ("the end of a call", end("t", None, json!({})), true),
        ("the end of an answer", Event::Done(Done::default()), true),
        ("the start of a text", start("b", "text"), false),
        (
            "the start of an answer",
            Event::ResponseStart(ResponseStart::default()),
            false,
        ),
        ("a piece", say("a", "x"), false),
        ("output", output("t", "x"), false),
        ("a thought", Event::ThinkingDelta { delta: "x".to_owned() }, false),
        ("arguments", arguments(), false),
        ("a title", Event::Title("x".into()), false),
    ] {
        let folder = folder();
        let log = log_of(vec![Event::UserMessage(Message::user("before")), start("a", "text")]);
        let mut follower = log.follow(Position(0));
        let mut writer = Writer::new(tape(folder.path()));
        let now = Instant::now();
        let mut batch = Vec::new();
        follower.take(&mut batch);
        writer.take(&mut batch, now);
        assert_eq!(writer.write(now), None);
        log.append(2, event);
        follower.take(&mut batch);
        writer.take(&mut batch, now);
        let notice = without_sync(|| writer.write_all());
        assert_eq!(notice.is_some(), must_stay, "{what}: {notice:?}");
        let code = notice.map(|it| it.code);
        assert!(code.is_none_or(|it| it == "session-not-stored"), "{what}");
        assert_eq!(
            writer.write_all().is_some(),
            must_stay,
            "{what}: it is tried again, and said"
        );
    }
}

#[test]
fn a_session_that_was_cut_is_examined_and_nothing_in_a_whole_one_is_wrong() {
    let folder = folder();
    let torn = b"{\"v\":1,\"n\":99";
    let path = write(
        folder.path(),
        &[Event::UserMessage(Message::user("x")), Event::Done(Done::default())],
        Duration::ZERO,
    );
    let store = Store::new(folder.path());
    let found = || {
        let examined = store.examine().expect("it is read");
        assert_eq!(examined.sessions, 1);
        let findings = examined.findings.into_iter().filter(|it| it.file == "s-1.jsonl");
        findings.map(|it| it.wrong).collect::<Vec<_>>()
    };
    assert_eq!(found(), []);
    let whole = fs::read(&path).expect("it is there");
    fs::write(&path, [&whole[..], torn].concat()).expect("written");
    assert_eq!(found(), [doctor::Wrong::Tail(torn.len())]);
}

#[test]
fn a_turn_is_read_from_its_own_lines() {
    let folder = folder();
    write(folder.path(), &conversation(), Duration::ZERO);
    let parts = Store::new(folder.path()).parts("s-1").expect("it is there");
    let turns: Vec<_> = parts.turns().map(|it| it.0).collect();
    assert_eq!(turns, [Turn(2), Turn(1)]);
    let events = |entries: Vec<Entry>, turn: Turn| -> Vec<Event> {
        let of_turn = entries.into_iter().filter(|it| it.turn == turn);
        of_turn.map(|it| it.event).collect()
    };
    for turn in turns {
        assert_eq!(events(parts.entries(turn), turn), events(parts.all(), turn), "{turn}");
    }
}

#[test]
fn files_of_others_among_the_sessions_are_no_sessions() {
    let folder = folder();
    for name in ["my notes.jsonl", "..jsonl", ".jsonl", "a.txt"] {
        fs::write(folder.path().join(name), "no session\n").expect("written");
    }
    let examined = Store::new(folder.path()).examine().expect("it is read");
    assert_eq!((examined.sessions, examined.findings.len()), (0, 0));
}

#[test]
fn an_id_that_is_no_name_of_a_session_leads_nowhere() {
    let folder = folder();
    let place = folder.path().join("sessions");
    let store = Store::new(&place);
    fs::create_dir(&place).expect("a folder");
    for outside in ["outside.jsonl", "outside.lock", "outside.archived"] {
        fs::write(folder.path().join(outside), "").expect("written");
    }
    for id in ["../outside", "/outside", ".", "..", "", "none", "a\0b", &"x".repeat(65)] {
        let is_missing = |result: Result<(), StoreError>| matches!(result, Err(StoreError::Missing { .. }));
        assert!(is_missing(store.archive(id, true)), "{id}");
        assert!(is_missing(store.archive(id, false)), "{id}");
        assert!(is_missing(store.remove(id)), "{id}");
        assert!(is_missing(store.read(id).map(drop)), "{id}");
        assert!(is_missing(store.resume(id, 1).map(drop)), "{id}");
    }
    assert_eq!(fs::read_dir(&place).expect("a folder").count(), 0);
    assert_eq!(fs::read_dir(folder.path()).expect("a folder").count(), 4);
}

#[test]
fn the_list_tells_sessions_apart_by_their_ends() {
    let folder = folder();
    let store = Store::new(folder.path());
    assert_eq!(
        Store::new(folder.path().join("none"))
            .list()
            .expect("no folder, no sessions"),
        Vec::new()
    );
    for (id, title, filler) in [
        ("a", Some("Discount codes"), 10),
        ("b", None, 40_000),
        ("c", None, 700_000),
    ] {
        let log = Log::new();
        let recorder = store
            .record(
                Session {
                    id: id.to_owned(),
                    ..session()
                },
                &log,
            )
            .expect("a thread");
        log.append(5, Event::UserMessage(Message::user("\n  first line \nsecond")));
        if let Some(title) = title {
            log.append(6, Event::Title(title.into()));
        }
        log.append(7, start("a", "text"));
        log.append(8, end("a", Some(&"x".repeat(filler)), json!({})));
        log.append(9, Event::UserMessage(Message::user("y".repeat(filler))));
        recorder.finish().expect("it is stored");
    }
    fs::write(folder.path().join("d.jsonl"), "no session").expect("written");
    fs::write(folder.path().join("e.txt"), "no session").expect("written");
    let mut listed = store.list().expect("the folder can be read");
    listed.sort_by(|a, b| a.session.id.cmp(&b.session.id));
    let facts: Vec<_> = listed
        .iter()
        .map(|it| {
            (
                it.session.id.as_str(),
                it.title.as_deref(),
                it.turns,
                it.session.workspace.as_str(),
            )
        })
        .collect();
    assert_eq!(
        facts,
        [
            ("a", Some("Discount codes"), 2, "/home/kim/shop"),
            ("b", Some("first line"), 2, "/home/kim/shop"),
            ("c", Some("first line"), 2, "/home/kim/shop"),
        ]
    );
}

#[test]
fn a_session_that_was_only_opened_keeps_its_place_in_the_list() {
    let folder = folder();
    let store = Store::new(folder.path());
    for (id, at_ms) in [("old", 5), ("new", 100)] {
        let log = Log::new();
        let session = Session {
            id: id.to_owned(),
            ..session()
        };
        let recorder = store.record(session, &log).expect("a thread");
        log.append(at_ms, Event::UserMessage(Message::user("go")));
        log.append(at_ms + 1, start("a", "text"));
        log.append(at_ms + 2, end("a", Some("done"), json!({})));
        log.append(at_ms + 3, Event::Done(Done::default()));
        recorder.finish().expect("it is stored");
    }
    let order = || {
        let listed = store.list().expect("the folder can be read").into_iter();
        listed.map(|it| (it.session.id, it.changed)).collect::<Vec<_>>()
    };
    let expected = [("new".to_owned(), 103), ("old".to_owned(), 8)];
    assert_eq!(order(), expected);
    let resumed = store.resume("old", 1000).expect("it is there");
    // More than is read of the end.
    for _ in 0..1000 {
        let notice = Notice::new(
            Severity::Info,
            "trust-asked",
            "the folder asks for trust, as it did before",
        );
        resumed.log.append(1000, Event::Notice(notice));
    }
    resumed.log.append(1000, Event::Title("Another".into()));
    let update = Event::DocumentUpdate {
        document: "a".into(),
        metadata: members(json!({ "state": "lost" })),
    };
    resumed.log.append_to(Turn(1), 1000, update);
    resumed.recorder.finish().expect("it is stored");
    assert_eq!(order(), expected);
    let resumed = store.resume("old", 2000).expect("it is there");
    resumed.log.append(2000, Event::UserMessage(Message::user("more")));
    resumed.recorder.finish().expect("it is stored");
    assert_eq!(order().first().map(|it| it.1), Some(2000));
}

#[test]
fn what_the_user_calls_a_session_is_in_the_list_however_long_it_becomes() {
    let folder = folder();
    let store = Store::new(folder.path());
    let log = Log::new();
    let recorder = store.record(session(), &log).expect("a thread");
    log.append(5, Event::UserMessage(Message::user("first line")));
    let named = Title {
        text: "Mine".to_owned(),
        by_user: true,
    };
    log.append(6, Event::Title(named));
    recorder.finish().expect("it is stored");
    // What a model thinks of later does not count, and neither does where in the file the word stands.
    for turn in 0..4 {
        let resumed = store.resume("s-1", 9).expect("it is there");
        let log = resumed.log;
        log.append(7, Event::UserMessage(Message::user("more")));
        log.append(7, Event::ResponseStart(ResponseStart::default()));
        log.append(7, start("a", "text"));
        log.append(8, end("a", Some(&"x".repeat(50_000)), json!({})));
        log.append(9, Event::Done(Done::default()));
        if turn == 2 {
            log.append(9, Event::Title("A model's".into()));
        }
        // What is said again comes by itself.
        let has_said = || {
            log.after(Position(0))
                .iter()
                .filter(|it| matches!(it.event, Event::Title(_)))
                .count()
                > turn + 1
        };
        while !has_said() {
            std::thread::yield_now();
        }
        resumed.recorder.finish().expect("it is stored");
    }
    let listed = store.list().expect("the folder can be read");
    assert_eq!(listed[0].title.as_deref(), Some("Mine"));
}

/// Any conversation with documents that grow side by side.
fn any_events() -> impl Strategy<Value = Vec<Event>> {
    let step = (0..7u8, 0..3usize, "[a-zäö \n]{0,6}");
    prop::collection::vec(step, 0..40).prop_map(|steps| {
        let mut events = Vec::new();
        let mut texts: Vec<(DocumentId, String, bool)> = Vec::new();
        let mut count = 0;
        for (what, which, words) in steps {
            let open: Vec<_> = (0..texts.len()).filter(|&at| texts[at].2).collect();
            let chosen = open.get(which % open.len().max(1)).copied();
            match (what, chosen) {
                (0, _) => {
                    for it in &mut texts {
                        it.2 = false;
                    }
                    events.push(Event::Done(Done::default()));
                    events.push(Event::UserMessage(Message::user(words)));
                }
                (1, _) => {
                    count += 1;
                    let id = format!("d{count}");
                    events.push(start(&id, "text"));
                    texts.push((id.as_str().into(), String::new(), true));
                }
                (2, Some(at)) => {
                    events.push(end(texts[at].0.as_str(), Some(&texts[at].1), json!({})));
                    texts[at].2 = false;
                }
                (3, _) => events.push(Event::ThinkingDelta { delta: words }),
                (_, Some(at)) => {
                    texts[at].1.push_str(&words);
                    events.push(say(texts[at].0.as_str(), &words));
                }
                (_, None) => {}
            }
        }
        events
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]
    #[test]
    fn any_conversation_cut_anywhere_holds_prefixes_only(events in any_events(), pause in 0..700u64, cut in any::<prop::sample::Index>()) {
        let folder = folder();
        let path = write(folder.path(), &events, Duration::from_millis(pause));
        let whole = fs::read(path).unwrap_or_default();
        let stored = load::read("s-1", &whole).expect("it is not newer");
        let states = live_states(&events);
        if !whole.is_empty() {
            prop_assert_eq!(Some(&seen(&stored.entries)), states.last());
        }
        let part = load::read("s-1", &whole[..cut.index(whole.len() + 1)]).expect("it is not newer");
        let texts = |entries: &[Entry]| {
            let mut texts: Vec<(DocumentId, String)> = Vec::new();
            let mut response = Response::default();
            for entry in entries {
                // Ids are unique in these conversations, so that one response can hold them all.
                if !matches!(entry.event, Event::Done(_)) {
                    response.apply(&entry.event, 0);
                }
            }
            texts.extend(response.documents.iter().map(|it| (it.id.clone(), it.text().to_owned())));
            texts
        };
        let (all, some) = (texts(&stored.entries), texts(&part.entries));
        prop_assert!(some.len() <= all.len());
        for ((id, text), (same, part)) in all.iter().zip(&some) {
            prop_assert_eq!(id, same);
            prop_assert!(text.starts_with(part.as_str()), "{} is no beginning of {}", part, text);
        }
    }
}

/// A session of nine mebibytes whose last turns are like the first ones.
fn long(folder: &Path, last: impl IntoIterator<Item = Event>) -> (Store, Vec<u8>) {
    let store = Store::new(folder);
    let mut bytes = Vec::new();
    line::write(0, &session().to_members(), &mut bytes).expect("memory takes it");
    let mut number = 0;
    let mut turn = 0;
    let mut put = |event: Event| {
        number += 1;
        turn += u32::from(matches!(event, Event::UserMessage(_)));
        let entry = Entry {
            position: Position(number),
            turn: crate::protocol::Turn(turn),
            at_ms: number,
            event,
        };
        line::write_entry(&entry, &mut bytes).expect("memory takes it");
    };
    put(Event::UserMessage(Message::user("the first of all")));
    put(Event::Title("Long".into()));
    put(Event::Done(crate::protocol::Done::default()));
    for nth in 0..900 {
        if nth % 5 == 0 {
            put(Event::UserMessage(Message::user(format!("message {nth}"))));
        }
        let id = format!("d{nth}");
        put(start(&id, "text"));
        put(end(&id, Some(&"word ".repeat(2100)), json!({})));
        if nth % 5 == 4 {
            put(Event::Done(crate::protocol::Done {
                usage: Some(crate::protocol::Usage {
                    total_tokens: 7,
                    ..crate::protocol::Usage::default()
                }),
                extra_usage: members(json!({ "costUsd": 0.5 })),
                ..crate::protocol::Done::default()
            }));
            put(Event::Title("Long".into()));
        }
    }
    last.into_iter().for_each(&mut put);
    fs::write(folder.join("s-1.jsonl"), &bytes).expect("written");
    (store, bytes)
}

fn texts(log: &Log) -> Vec<String> {
    let entries: Vec<Entry> = log.after(Position(0)).iter().map(|it| Entry::clone(it)).collect();
    seen(&entries)
}

#[test]
fn of_a_long_session_the_end_is_in_memory_and_the_rest_is_there_all_the_same() {
    let folder = folder();
    let torn = b"{\"v\":1,\"n\":99999,\"half";
    let (store, bytes) = long(folder.path(), []);
    let whole = store.resume("s-1", 5).expect("it can be opened");
    assert_eq!(whole.log.recent(), None);
    let wanted = texts(&whole.log);
    drop(whole.recorder);

    fs::write(folder.path().join("s-1.jsonl"), [&bytes[..], torn].concat()).expect("written");
    let opened = store.resume_end("s-1", 5).expect("it can be opened");
    let recent = opened.log.recent().expect("it is long");
    assert_eq!(recent.title, None, "it is said again");
    assert_eq!(opened.session, session());
    let state = opened.log.after(recent.after);
    assert!(state.len() < 1000 && state[0].turn == recent.turn, "{}", state.len());
    assert!(matches!(state[0].event, Event::UserMessage(_)));
    assert_eq!(
        fs::read(folder.path().join("s-1.damaged-5")).expect("the torn end is kept"),
        torn
    );
    let cut = |log: &Log| {
        texts(log)
            .into_iter()
            .filter(|it| !it.contains("session-cut"))
            .collect::<Vec<_>>()
    };
    assert_eq!(cut(&opened.log), wanted);
    let spent = opened.log.spent_earlier().expect("it is long").0;
    let turns = recent.turn.0 - 2;
    assert_eq!(
        (spent.usage.total_tokens, spent.dollars),
        (u64::from(turns) * 7, Some(f64::from(turns) * 0.5))
    );
    // Some more is there without all of it: whole turns, up to the end.
    let lately = opened.log.lately().expect("there is more");
    assert!(matches!(lately[0].event, Event::UserMessage(_)));
    assert!(
        (Turn(2)..recent.turn).contains(&lately[0].turn),
        "{:?} of {:?}",
        lately[0].turn,
        recent.turn
    );
    let whole = opened.log.after(Position(0));
    assert_eq!(lately[..], whole[whole.len() - lately.len()..]);
    // A reader of everything gets everything, and nothing twice.
    let mut all = Vec::new();
    let mut follower = opened.log.follow(Position(0));
    assert!(follower.take(&mut all));
    assert!(all.is_sorted_by(|a, b| a.position < b.position), "each once, in order");
    // It goes on behind what was there.
    opened.log.append(6, Event::UserMessage(Message::user("and now")));
    assert_eq!(opened.log.turn().0, 182);
    assert!(follower.take(&mut all));
    opened.recorder.finish().expect("it is stored");
    let again = store.read("s-1").expect("it is there");
    assert_eq!(again.entries.len(), all.len());
    let after = fs::read(folder.path().join("s-1.jsonl")).expect("it is there");
    assert_eq!(after[..bytes.len()], bytes[..], "nothing is overwritten");
}

/// Damage in the part of a long session that is not read when it is opened.
#[test]
fn damage_far_back_is_said_too() {
    let folder = folder();
    let (store, mut bytes) = long(folder.path(), []);
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    fs::write(folder.path().join("s-1.jsonl"), &bytes).expect("written");
    let reported = Arc::new(std::sync::Mutex::new(Vec::new()));
    let heard = Arc::clone(&reported);
    let store = store.reporting(move |id, notice| {
        heard.lock().expect("no panic").push(format!("{id} {}", notice.code));
    });
    let opened = store.resume_end("s-1", 5).expect("it can be opened");
    assert!(opened.log.recent().is_some(), "it is long");
    let log = Arc::clone(&opened.log);
    opened.recorder.finish().expect("it is stored");
    let recent = log.recent().expect("it is long").after;
    let said = log.after(recent).into_iter().filter_map(|it| match &it.event {
        Event::Notice(notice) => Some(notice.message.clone()),
        _ => None,
    });
    assert_eq!(
        said.collect::<Vec<_>>(),
        ["1 line of this session cannot be read and was left out"]
    );
    assert_eq!(*reported.lock().expect("no panic"), ["s-1 session-damaged"]);
}

#[test]
fn what_leads_back_behind_the_end_has_the_session_read_whole() {
    let back = Event::Branch(crate::protocol::Branch {
        after: crate::protocol::Turn(1),
        ..Default::default()
    });
    let folder = folder();
    let (store, _) = long(folder.path(), [back, Event::UserMessage(Message::user("elsewhere"))]);
    let opened = store.resume_end("s-1", 5).expect("it can be opened");
    assert_eq!(opened.log.recent(), None);
    // A branch to a turn that is in the end does not matter.
    drop(opened.recorder);
    let near = Event::Branch(crate::protocol::Branch {
        after: crate::protocol::Turn(180),
        ..Default::default()
    });
    let (store, bytes) = long(folder.path(), [near, Event::UserMessage(Message::user("elsewhere"))]);
    let opened = store.resume_end("s-1", 5).expect("it can be opened");
    assert!(opened.log.recent().is_some());
    drop(opened.recorder);
    // Nor does a short one have an end.
    let short = &bytes[..=bytes.iter().position(|it| *it == b'\n').expect("a line")];
    fs::write(folder.path().join("s-1.jsonl"), short).expect("written");
    let opened = store.resume_end("s-1", 5).expect("it can be opened");
    assert_eq!(opened.log.recent(), None);
}

/// A server that ran in the background ends with the program, long after the answer that started it.
#[test]
fn what_is_said_late_of_an_old_answer_does_not_end_it_again() {
    let folder = folder();
    let ran = Event::DocumentUpdate {
        document: "d1".into(),
        metadata: members(json!({ "exitCode": 143 })),
    };
    let (store, bytes) = long(folder.path(), []);
    let mut late = bytes.clone();
    let entry = Entry {
        position: Position(1_000_000),
        turn: Turn(2),
        at_ms: 1,
        event: ran,
    };
    line::write_entry(&entry, &mut late).expect("memory takes it");
    fs::write(folder.path().join("s-1.jsonl"), &late).expect("written");
    let opened = store.resume_end("s-1", 5).expect("it can be opened");
    assert!(opened.log.recent().is_some(), "it is long");
    opened.recorder.finish().expect("it is stored");
    drop(opened.log);
    let after = fs::read(folder.path().join("s-1.jsonl")).expect("it is there");
    assert_eq!(
        String::from_utf8_lossy(&after[bytes.len()..]),
        String::from_utf8_lossy(&late[bytes.len()..])
    );
}

/// A clock that stands before its own past loses nothing and puts nothing in another order.
#[test]
fn a_clock_that_goes_back_changes_no_order() {
    let folder = folder();
    let store = Store::new(folder.path());
    let log = Log::new();
    let recorder = store.record(session(), &log).expect("a thread");
    for (at_ms, text) in [(9_000_000, "one"), (1_000, "two"), (5_000_000, "three")] {
        log.append(at_ms, Event::UserMessage(Message::user(text)));
        log.append(at_ms, start(text, "text"));
        log.append(at_ms.saturating_sub(900), end(text, Some(text), json!({})));
        log.append(at_ms, Event::Done(crate::protocol::Done::default()));
    }
    recorder.finish().expect("it is stored");
    let stored = store.read("s-1").expect("it is there");
    assert_eq!(stored.notices, []);
    let said = |it: &Entry| match &it.event {
        Event::UserMessage(message) => Some((it.turn.0, message.content.clone())),
        _ => None,
    };
    let order: Vec<_> = stored.entries.iter().filter_map(said).collect();
    assert_eq!(order, [(1, "one".into()), (2, "two".into()), (3, "three".into())]);
    // It goes on, also where now is before everything that was said.
    let resumed = store.resume("s-1", 1).expect("it is there");
    resumed.log.append(1, Event::UserMessage(Message::user("four")));
    resumed.recorder.finish().expect("it is stored");
    let stored = store.read("s-1").expect("it is there");
    assert!(stored.notices.is_empty() && stored.entries.is_sorted_by_key(|it| it.position));
    // A file from before the time that the machine knows, and one from the future, are in the list.
    for (id, at) in [
        ("s-2", std::time::UNIX_EPOCH - Duration::from_hours(24)),
        ("s-3", std::time::UNIX_EPOCH + Duration::from_hours(2_500_000)),
    ] {
        fs::copy(store.path_of("s-1"), store.path_of(id)).expect("a copy");
        let file = fs::File::options()
            .append(true)
            .open(store.path_of(id))
            .expect("it is there");
        file.set_modified(at).expect("it can be set");
    }
    let listed: Vec<String> = store
        .list()
        .expect("listed")
        .into_iter()
        .map(|it| it.session.id)
        .collect();
    assert_eq!(listed.len(), 3);
    // Ids sort by when a session began, and are never the same.
    let ids: std::collections::BTreeSet<String> = (0..64).map(|_| Session::fresh("/", 1).id).collect();
    assert_eq!(ids.len(), 64);
}

/// A recorder that is never late, and the log that it follows.
struct Recorded {
    log: Arc<Log>,
    follower: crate::journal::Follower,
    writer: Writer,
}

impl Recorded {
    fn new(folder: &Path) -> Self {
        let log = Log::new();
        Self {
            follower: log.follow_settled(Position(0)),
            writer: Writer::new(tape(folder)),
            log,
        }
    }

    fn say(&mut self, events: impl IntoIterator<Item = Event>) {
        for event in events {
            self.log.append(self.log.last().0 + 1, event);
            let mut batch = Vec::new();
            self.follower.take(&mut batch);
            self.writer.take(&mut batch, Instant::now());
            assert_eq!(self.writer.write(Instant::now()), None);
            self.writer.retire(&self.log);
        }
    }

    /// A turn of about 100 kB with these documents beside its text.
    fn turn(&mut self, number: usize, more: Vec<Event>) {
        let text = format!("answer {number}. ").repeat(8_000);
        let begin = [
            Event::UserMessage(Message::user(format!("question {number}"))),
            start("a", "text"),
        ];
        let pieces = text
            .as_bytes()
            .chunks(2_000)
            .map(|it| say("a", &String::from_utf8_lossy(it)));
        self.say(begin.into_iter().chain(pieces.collect::<Vec<_>>()));
        self.say([end("a", Some(&text), json!({}))].into_iter().chain(more));
        self.say([Event::Done(Done::default())]);
    }

    fn entries(&self) -> Vec<Entry> {
        self.log.after(Position(0)).iter().map(|it| Entry::clone(it)).collect()
    }
}

fn todos(id: &str, merge: bool) -> Vec<Event> {
    let todo = json!({ "id": "t", "content": "T", "status": "pending" });
    vec![
        start(id, "todo_update"),
        end(id, None, json!({ "todos": [todo], "merge": merge })),
    ]
}

#[test]
fn a_conversation_that_grows_long_lets_its_old_turns_go_and_reads_the_same() {
    let (folder, other) = (folder(), folder());
    let (mut recorded, mut whole) = (Recorded::new(folder.path()), Recorded::new(other.path()));
    // The control keeps everything: somebody who reads closely has not come further than the beginning.
    let _slow = whole.log.follow_closely(Position(0));
    for number in 1..=60 {
        for it in [&mut recorded, &mut whole] {
            it.turn(number, Vec::new());
        }
    }
    assert_eq!(whole.log.recent(), None);
    let recent = recorded.log.recent().expect("old turns have gone");
    assert!(recent.turn >= Turn(20) && recent.turn <= Turn(56), "{recent:?}");
    assert_eq!(seen(&recorded.entries()), seen(&whole.entries()));
    assert_eq!(recorded.entries(), whole.entries());
    // A follower reads on from anywhere.
    for since in [0, 5, recent.after.0 - 1, recent.after.0, recent.after.0 + 1] {
        let mut batch = Vec::new();
        recorded.log.follow(Position(since)).take(&mut batch);
        let wanted = whole.log.after(Position(since));
        assert_eq!(batch, wanted, "after {since}");
    }
    // What happens to an old document is stored, and said to who reads on.
    let ran = Event::DocumentUpdate {
        document: "a".into(),
        metadata: members(json!({ "undone": true })),
    };
    for it in [&mut recorded, &mut whole] {
        it.log.append_to(Turn(2), 1, ran.clone());
        it.turn(61, Vec::new());
    }
    assert_eq!(recorded.entries(), whole.entries());
    // Whoever goes back to an old turn needs what came before it.
    let back = Event::Branch(crate::protocol::Branch {
        after: Turn(3),
        ..crate::protocol::Branch::default()
    });
    for it in [&mut recorded, &mut whole] {
        it.say([back.clone()]);
    }
    assert_eq!(recorded.log.recent(), None, "all of it is in memory again");
    assert_eq!(recorded.entries(), whole.entries());
    for number in 62..=120 {
        for it in [&mut recorded, &mut whole] {
            it.turn(number, Vec::new());
        }
    }
    assert!(
        recorded.log.recent().expect("they go again").turn > Turn(61),
        "none before the branch"
    );
    assert_eq!(recorded.entries(), whole.entries());
    // And so does who opens the session.
    assert_eq!(recorded.writer.write_all(), None);
    let stored = Store::new(folder.path()).read("s-1").expect("it is there");
    assert_eq!(seen(&stored.entries), seen(&whole.entries()));
}

#[test]
fn turns_go_only_where_the_rest_makes_sense_without_them() {
    for (name, first, later, may_go) in [
        ("nothing", vec![], vec![], true),
        ("a list that goes on", todos("t", false), todos("t", true), false),
        ("lists of their own", todos("t", false), todos("t", false), true),
    ] {
        let folder = folder();
        let mut recorded = Recorded::new(folder.path());
        recorded.turn(1, first);
        for number in 2..=40 {
            recorded.turn(number, later.clone());
        }
        assert_eq!(recorded.log.recent().is_some(), may_go, "{name}");
    }
}

#[test]
fn who_cannot_store_keeps_everything() {
    let folder = folder();
    let file = folder.path().join("no-folder");
    fs::write(&file, "").expect("a file");
    let mut recorded = Recorded::new(&file);
    for number in 1..=30 {
        let text = "x".repeat(100_000);
        let question = Event::UserMessage(Message::user(format!("question {number}")));
        for event in [
            question,
            start("a", "text"),
            end("a", Some(&text), json!({})),
            Event::Done(Done::default()),
        ] {
            recorded.log.append(1, event);
            let mut batch = Vec::new();
            recorded.follower.take(&mut batch);
            recorded.writer.take(&mut batch, Instant::now());
            recorded.writer.write(Instant::now());
            recorded.writer.retire(&recorded.log);
        }
    }
    assert_eq!(recorded.log.recent(), None);
    assert_eq!(recorded.entries().len(), 120);
}
