//! How long the screen keeps a person waiting: `cargo bench --bench screen`.
//!
//! Each line is one kind of wait, from the key to the bytes of its frame, many times over: the median, the wait that 95 of
//! 100 stay below, the longest, and the bound that the project has set itself. Run it on an idle machine.

#![expect(clippy::print_stdout, reason = "a table of figures is what it is for")]

#[path = "../tests/it/test_app.rs"]
mod test_app;

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use serde_json::{Value, json};
use sheaf::{
    agent::prompt::context::{List, files},
    protocol::{Event, Message},
};

use self::test_app::{TestApp, delta, document, start};

const DOCUMENTS: usize = 10_000;
const PATHS: usize = 60_000;
const TIMES: usize = 300;

fn main() {
    // `cargo test --benches` only wants to know that it builds.
    if std::env::args().any(|it| it == "--test") {
        return;
    }
    println!(
        "{:<58} {:>9} {:>9} {:>9}   bound",
        "milliseconds", "median", "p95", "longest"
    );
    streaming();
    layers();
    paths();
}

/// What a closure takes, each time.
fn times(count: usize, mut work: impl FnMut(usize) -> Duration) -> Vec<Duration> {
    (0..count).map(&mut work).collect()
}

fn timed(work: impl FnOnce()) -> Duration {
    let began = Instant::now();
    work();
    began.elapsed()
}

fn say(name: &str, bound_ms: u32, mut taken: Vec<Duration>) {
    taken.sort_unstable();
    let at = |part: usize| taken.get((taken.len() * part / 100).min(taken.len().saturating_sub(1)));
    let shown = |it: Option<&Duration>| it.map_or(0.0, |it| it.as_secs_f64() * 1000.0);
    let (median, most, longest) = (shown(at(50)), shown(at(95)), shown(taken.last()));
    let mark = if most > f64::from(bound_ms) { "  above it" } else { "" };
    println!("{name:<58} {median:>9.3} {most:>9.3} {longest:>9.3}   {bound_ms}{mark}");
}

/// A conversation of so many documents, with edits among them, and an answer that is being written.
fn conversation() -> TestApp {
    let mut desk = TestApp::new(120, 40).blind();
    let mut events = Vec::new();
    for n in 0..DOCUMENTS {
        if n % 20 == 0 {
            events.push(Event::UserMessage(Message::user(format!("question {n}"))));
        }
        let id = format!("doc_{:03}", n % 20 + 1);
        let (kind, content, metadata): (_, _, Value) = match n % 5 {
            0 => (
                "tool_call",
                None,
                json!({ "toolName": "read_file", "arguments": { "target_file": "src/cart.rs" }, "result": "text" }),
            ),
            1 => (
                "file_edit",
                Some("let a = 2;\n"),
                json!({ "filePath": format!("src/part{}.rs", n % 400), "operation": "edit", "language": "rust",
                    "diff": { "oldString": "let a = 1;\n", "newString": "let a = 2;\n", "startLine": n + 1 } }),
            ),
            _ => (
                "text",
                Some("An answer of **some** words.\n\n- with\n- a list"),
                json!({}),
            ),
        };
        events.extend(document(&id, kind, content, metadata));
    }
    events.push(Event::UserMessage(Message::user("and now?")));
    events.push(start("live", "text", json!({})));
    desk.events(events);
    desk
}

/// What somebody feels who types and scrolls while an answer comes.
fn streaming() {
    let mut desk = conversation();
    let words = "The **scheduler** keeps `frames` apart, so that a *slow* terminal never delays a key.\n\n";
    let piece = |n: usize| {
        let at = n * 4 % words.len();
        words.get(at..(at + 4).min(words.len())).unwrap_or(" ")
    };
    let echo = times(TIMES * 4, |n| {
        desk.events([delta("live", piece(n))]);
        timed(|| desk.keys(if n % 40 == 39 { "<ctrl+u>" } else { "x" }))
    });
    say("a letter, 10,000 documents, an answer coming", 3, echo);
    let piece_shown = times(TIMES * 4, |n| timed(|| desk.events([delta("live", piece(n))])));
    say("a piece of the answer, 10,000 documents", 4, piece_shown);
    desk.keys("<ctrl+u>");
    for (name, key) in [("a page up", "<pgup>"), ("a page down", "<pgdn>")] {
        let scroll = times(TIMES, |n| {
            desk.events([delta("live", piece(n))]);
            timed(|| desk.keys(key))
        });
        say(&format!("{name}, 10,000 documents, an answer coming"), 4, scroll);
    }
    desk.keys("<tab>");
    let lines = times(TIMES, |n| {
        desk.events([delta("live", piece(n))]);
        timed(|| desk.keys(if n % 2 == 0 { "<up>" } else { "<down>" }))
    });
    say("a document up or down, an answer coming", 4, lines);
}

/// What opens above the conversation, and each key in it.
fn layers() {
    let mut desk = conversation();
    desk.keys("<tab>");
    for (name, open, inside) in [
        ("palette", "<f3>", "mode"),
        ("outline", "v", "question"),
        ("review of a turn", "<alt+r>", "jkju"),
        ("review of the conversation", "<alt+r>s", "jkJK"),
        ("search", "/", "words"),
        ("filter", "f", "edit"),
    ] {
        let (mut opened, mut typed) = (Vec::new(), Vec::new());
        for _ in 0..TIMES / 10 {
            for key in split(open) {
                opened.push(timed(|| desk.keys(key)));
            }
            for key in split(inside) {
                typed.push(timed(|| desk.keys(key)));
            }
            desk.keys("<esc>");
        }
        // A search and a filter stay until they are sent away.
        desk.keys("<esc><esc>");
        if !desk.app.overlays.is_empty() {
            desk.app.overlays.clear();
        }
        say(&format!("{name}: opened over 10,000 documents"), 16, opened);
        say(&format!("{name}: a key in it"), 16, typed);
    }
    staged();
}

/// A change of many hunks that waits to be allowed.
fn staged() {
    let hunks: Vec<Value> = (1..=100)
        .map(|it| json!({ "index": it, "oldString": "let a = 1;\n".repeat(20), "newString": "let a = 2;\n".repeat(20), "startLine": it * 100 }))
        .collect();
    let mut desk = conversation();
    desk.events([start(
        "ask",
        "clarification",
        json!({ "kind": "approval",
            "subject": { "type": "file_edit", "metadata": { "filePath": "src/cart.rs", "operation": "edit", "language": "rust",
                "diff": { "oldString": "let a = 1;\n".repeat(2000), "newString": "let a = 2;\n".repeat(2000), "startLine": 100 },
                "hunks": hunks } },
            "questions": [{ "id": "approval", "text": "Allow it?", "options": [
                { "id": "allow_once", "label": "once" }, { "id": "reject_once", "label": "no" }] }] }),
    )]);
    desk.later(1000);
    let opened = times(TIMES / 10, |_| {
        let taken = timed(|| desk.keys("<alt+r>"));
        desk.keys("<esc>");
        taken
    });
    say("review of 100 hunks that wait: opened", 16, opened);
    desk.keys("<alt+r>");
    desk.later(1000);
    let keys = times(98, |n| timed(|| desk.keys(if n % 2 == 0 { "j" } else { "k" })));
    say("review of 100 hunks that wait: a key in it", 16, keys);
    let decided = times(50, |_| timed(|| desk.keys("a")));
    say("review of 100 hunks that wait: a decision", 16, decided);
}

/// Files by name in a large tree: the letter is shown at once, the list follows.
fn paths() {
    let path = |n: usize| {
        let ending = ["rs", "ts", "md", "json", "txt"][n % 5];
        format!("part{:02}/src/group{:02}/module{n}.{ending}", n % 40, n / 40 % 50).into_boxed_str()
    };
    let mut all: Vec<Box<str>> = (0..PATHS).map(path).collect();
    all.sort_unstable();
    let list = List {
        files: Arc::from(all),
        ..List::default()
    };
    let mut desk = conversation();
    let (mut letters, mut ranked, mut shown) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..TIMES / 30 {
        let mut typed = String::new();
        desk.keys("@");
        for letter in "part03module43".chars() {
            typed.push(letter);
            letters.push(timed(|| desk.keys(&letter.to_string())));
            let mut files = Vec::new();
            ranked.push(timed(|| files = files::rank(&list, &typed, 10)));
            let pattern = typed.clone();
            shown.push(timed(|| desk.offer_files(&pattern, files)));
        }
        desk.keys("<ctrl+u><ctrl+u>");
    }
    say("files: a letter behind @, 60,000 paths", 16, letters);
    say("files: 60,000 paths ranked, on another thread", 16, ranked);
    say("files: the list is shown", 16, shown);
}

/// The keys of a text as `TestApp::keys` takes them, one by one.
fn split(text: &str) -> Vec<&str> {
    let mut keys = Vec::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let end = match (first, rest.find('>')) {
            ('<', Some(end)) => end + 1,
            _ => first.len_utf8(),
        };
        let (key, more) = rest.split_at(end);
        keys.push(key);
        rest = more;
    }
    keys
}
