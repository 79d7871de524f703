use crossterm::event::KeyModifiers;
use pretty_assertions::assert_eq;

use super::*;
use crate::{
    journal::{Log, Sent},
    protocol::{DocumentStart, Kind, Message, Notice, Position},
};

fn notice(text: &str) -> Event {
    Event::Notice(Notice {
        severity: Severity::Warning,
        code: "bad-json".to_owned(),
        message: text.to_owned(),
        document: None,
    })
}

fn start(id: &str) -> Event {
    Event::DocumentStart(DocumentStart {
        id: id.into(),
        kind: Kind::Text,
        sequence: None,
        content: None,
        metadata: serde_json::Map::new(),
    })
}

fn delta(id: &str, text: &str) -> Event {
    Event::ContentDelta {
        document: id.into(),
        delta: text.to_owned(),
    }
}

/// A request, and five frames of its answer, of which the fourth had to be mended.
fn watched() -> (Arc<Log>, Inspector) {
    let log = Log::new();
    let trace = log.watch();
    log.append(1_000, Event::UserMessage(Message::user("x")));
    let headers = vec![("Authorization".to_owned(), None)];
    let sent = Sent::post("http://127.0.0.1:1/api/v1/chat/completions".to_owned(), headers, "{}");
    trace.came(1_000, log.turn(), Raw::Request(sent));
    for (at, name, data, event) in [
        (1_200, Some("document_start"), "{\"id\":\"a\"}", Some(start("a"))),
        (
            1_210,
            Some("content_delta"),
            "{\"delta\":\"one\"}",
            Some(delta("a", "one")),
        ),
        (1_220, None, "{\"type\":\"content_delta\"}", Some(delta("a", " two"))),
        (
            1_230,
            Some("content_delta"),
            "{'a\u{1b}[2J'}",
            Some(notice("skipped data that is no JSON")),
        ),
        (1_240, Some("ping"), "{}", None),
    ] {
        trace.came(at, log.turn(), Raw::frame(name, data, None));
        if let Some(event) = event {
            log.append(at, event);
        }
    }
    trace.over();
    let inspector = Inspector::new(trace);
    (log, inspector)
}

fn transcript(log: &Log) -> Transcript {
    let mut transcript = Transcript::default();
    transcript.apply_all(&log.after(Position(0)));
    transcript
}

fn press(inspector: &mut Inspector, keys: &str) {
    for key in keys.chars() {
        answer(inspector, key);
    }
}

fn answer(inspector: &mut Inspector, letter: char) -> Answer {
    let event = KeyEvent::new(KeyCode::Char(letter), KeyModifiers::NONE);
    Scene::test(&Transcript::default(), |scene| inspector.key(event, scene))
}

fn shown(inspector: &mut Inspector, log: &Log, columns: u16, height: u16) -> String {
    Scene::drawn(inspector, &transcript(log), columns, height).join("\n")
}

#[test]
fn what_came_stands_beside_what_it_made() {
    let (log, mut inspector) = watched();
    // The third of the answer, in dialect B, by itself.
    press(&mut inspector, "dkk");
    let seen = shown(&mut inspector, &log, 120, 14);
    for part in [
        "Inspector   7 steps",
        "→ POST /api/v1/chat/completions",
        "▸",
        "content_delta a",
        "step 5 · 00:00:01.220 UTC · +10 ms · 220 ms into the turn",
        "data: {\"type\":\"content_delta\"}",
        "→ content_delta",
        "text a, open",
        "one two",
    ] {
        assert!(seen.contains(part), "{part}: {seen}");
    }
}

#[test]
fn repairs_are_found_and_nothing_of_the_bytes_reaches_the_terminal_raw() {
    let (log, mut inspector) = watched();
    press(&mut inspector, "gn");
    let seen = shown(&mut inspector, &log, 80, 30);
    assert!(seen.contains("! content_delta"), "{seen}");
    assert!(seen.contains("! bad-json: skipped data that is no JSON"), "{seen}");
    assert!(seen.contains("‹U+001B›[2J") && !seen.contains('\u{1b}'), "{seen}");
    // There is no other one.
    press(&mut inspector, "nN");
    assert_eq!(inspector.chosen, Some(6));
    press(&mut inspector, "[[[[");
    assert_eq!(inspector.chosen, Some(6), "a notice is about no document");
    press(&mut inspector, "k[");
    assert_eq!(inspector.chosen, Some(4), "the run has two steps");
    press(&mut inspector, "dk[");
    assert_eq!(inspector.chosen, None.or(Some(3)));
}

#[test]
fn the_request_is_copied_as_curl_and_the_step_as_it_came() {
    let (_, mut inspector) = watched();
    let key = |inspector: &mut Inspector, letter| match answer(inspector, letter) {
        Answer::Does(Effect::Copy { text, .. }) => text,
        Answer::Said(text) => text,
        _ => panic!("something is copied"),
    };
    let curl = key(&mut inspector, 'c');
    assert!(curl.starts_with("curl ") && curl.contains("$SHEAF_TOKEN"), "{curl}");
    assert_eq!(key(&mut inspector, 'y'), "event: ping\ndata: {}\n");
    let log = Log::new();
    let mut inspector = Inspector::new(log.watch());
    log.append(1, start("a"));
    assert!(key(&mut inspector, 'c').starts_with("no request: answered locally"));
    assert!(key(&mut inspector, 'y').starts_with("event: document_start\ndata: {"));
}

#[test]
fn it_stays_with_what_comes_until_one_looks_back() {
    let (log, mut inspector) = watched();
    log.append(2_000, delta("a", " three"));
    assert!(shown(&mut inspector, &log, 80, 24).contains("step 8 ·"));
    press(&mut inspector, "k");
    log.append(2_000, delta("a", " four"));
    assert!(shown(&mut inspector, &log, 80, 24).contains("step 7 ·"));
    press(&mut inspector, "G");
    assert!(shown(&mut inspector, &log, 80, 24).contains("step 9 ·"));
}

#[test]
fn a_run_of_deltas_is_one_row_with_the_text_that_they_make() {
    let (log, mut inspector) = watched();
    press(&mut inspector, "kk");
    for columns in [120, 60] {
        let seen = shown(&mut inspector, &log, columns, 24);
        for part in [
            "content_delta a ×2",
            "one two",
            "2 deltas, ",
            ": their text",
            "Inspector   7 steps",
        ] {
            assert!(seen.contains(part), "{part}: {seen}");
        }
    }
    let Answer::Does(Effect::Copy { text, .. }) = answer(&mut inspector, 'y') else {
        panic!("it is copied");
    };
    assert!(
        text.contains("{\"delta\":\"one\"}") && text.contains("\"type\""),
        "all of its frames: {text}"
    );
    press(&mut inspector, "d");
    let seen = shown(&mut inspector, &log, 120, 24);
    assert!(!seen.contains("×2"), "{seen}");
}

#[test]
fn a_filter_leaves_the_rows_with_its_words() {
    let (log, mut inspector) = watched();
    for (typed, there, gone) in [
        ("/POST", "→ POST", "content_delta"),
        ("/no json", "bad-json", "→ POST"),
        ("/two", "one two", "→ POST"),
        ("/document_start", "document_start a", "ping"),
        ("/zzz", "no matches", "ping"),
    ] {
        press(&mut inspector, typed);
        let seen = shown(&mut inspector, &log, 120, 24);
        let list: Vec<_> = seen.lines().skip(1).collect();
        let list = list.join("\n");
        assert!(list.contains(there) && !list.contains(gone), "{typed}: {seen}");
        assert!(
            seen.contains(&format!("Inspector › {}", typed.trim_start_matches('/'))),
            "{seen}"
        );
        let event = KeyEvent::new(KeyCode::Esc, KeyModifiers::NONE);
        Scene::test(&Transcript::default(), |scene| inspector.key(event, scene));
    }
    let seen = shown(&mut inspector, &log, 120, 24);
    assert!(seen.contains("→ POST") && seen.contains("ping"), "{seen}");
}

#[test]
fn nothing_is_wider_or_higher_than_the_screen_and_nothing_panics() {
    let (log, mut inspector) = watched();
    press(&mut inspector, "kkJJ");
    let transcript = transcript(&log);
    for columns in 1..300 {
        for height in [1, 2, 3, 5, 17, 60] {
            Scene::drawn(&mut inspector, &transcript, columns, height);
        }
    }
}

#[test]
fn a_long_conversation_costs_no_more_than_its_view() {
    let log = Log::new();
    let trace = log.watch();
    log.append(0, Event::UserMessage(Message::user("x")));
    log.append(0, start("a"));
    for at in 0..20_000 {
        trace.came(
            at,
            log.turn(),
            Raw::frame(Some("content_delta"), &"x".repeat(500), None),
        );
        log.append(at, delta("a", &"y".repeat(500)));
    }
    let mut inspector = Inspector::new(trace);
    // A run is one row; by themselves there are as many as fit.
    Scene::drawn(&mut inspector, &transcript(&log), 120, 40);
    press(&mut inspector, "d");
    let lines = Scene::drawn(&mut inspector, &transcript(&log), 120, 40);
    assert!(lines[39].contains("content_delta"), "{lines:#?}");
    assert!(
        lines[0].contains("20,002 steps, the first ") && lines[0].contains(" dropped"),
        "{}",
        lines[0]
    );
}

#[test]
fn pieces_of_a_calls_arguments_are_one_row_with_their_text() {
    let log = Log::new();
    let trace = log.watch();
    log.append(1_000, Event::UserMessage(Message::user("x")));
    let piece = |text: &str| {
        let call = serde_json::json!({ "index": 0, "function": { "arguments": text } });
        serde_json::json!({ "choices": [{ "delta": { "tool_calls": [call] } }] }).to_string()
    };
    for (at, text) in [(1_010, "{\"path\": "), (1_020, "\"src/cart"), (1_030, ".rs\"}")] {
        trace.came(at, log.turn(), Raw::frame(None, &piece(text), None));
    }
    let claude =
        |text: &str| serde_json::json!({ "delta": { "type": "input_json_delta", "partial_json": text } }).to_string();
    trace.came(1_035, log.turn(), Raw::frame(None, "{}", None));
    log.append(1_035, start("a"));
    for (at, text) in [(1_040, "{\"query\""), (1_050, ": \"sum\"}")] {
        trace.came(
            at,
            log.turn(),
            Raw::frame(Some("content_block_delta"), &claude(text), None),
        );
    }
    trace.over();
    let mut inspector = Inspector::new(trace);
    let seen = shown(&mut inspector, &log, 80, 30);
    for part in ["×3", r#"{"path": "src/cart.rs"}"#, "×2", r#"{"query": "sum"}"#] {
        assert!(seen.contains(part), "{part}: {seen}");
    }
}

#[test]
fn frames_whose_text_came_with_a_later_one_are_part_of_its_run() {
    let log = Log::new();
    let trace = log.watch();
    log.append(1_000, Event::UserMessage(Message::user("x")));
    log.append(1_005, start("a"));
    let came = |at, text: &str| {
        trace.came(at, log.turn(), Raw::frame(None, "{\"x\":1}", None));
        if !text.is_empty() {
            let delta = Event::ContentDelta {
                document: "a".into(),
                delta: text.to_owned(),
            };
            log.append(at, delta);
        }
    };
    for (at, text) in [(1_010, "one "), (1_020, ""), (1_030, ""), (1_040, "two three four")] {
        came(at, text);
    }
    trace.over();
    let mut inspector = Inspector::new(trace);
    let seen = shown(&mut inspector, &log, 80, 30);
    assert!(seen.contains("×4") && seen.contains("one two three four"), "{seen}");
}
