//! What the figures of the conversations that are kept come from: `cargo bench --bench memory`. All of it is the real program, in
//! a process of its own, on files of its own.

#![allow(
    clippy::disallowed_methods,
    reason = "what is measured is the real program, started as a user starts it"
)]

#[path = "memory/peer.rs"]
mod peer;
#[path = "memory/resident.rs"]
mod resident;
#[path = "../tests/it/test_app.rs"]
mod test_app;

use std::{
    io::{Read as _, Write as _},
    path::Path,
    process::{Command, Output, Stdio},
    sync::LazyLock,
    time::{Duration, Instant},
};

use divan::Bencher;
use portable_pty::{CommandBuilder, NativePtySystem, PtySize, PtySystem as _};
use serde_json::json;
use sheaf::{
    journal::{
        Log,
        file::{Session, Store},
    },
    protocol::{ConversationId, Done, Event, Message, ResponseStart},
};

use self::test_app::document;

const PROGRAM: &str = env!("CARGO_BIN_EXE_sheaf");

/// So much may be resident when a session of 100 MB has been opened, in kibibytes.
const MOST_RESIDENT_KIB: u64 = 60 << 10;

fn main() -> std::process::ExitCode {
    divan::main();
    if resident::is_within() {
        std::process::ExitCode::SUCCESS
    } else {
        std::process::ExitCode::FAILURE
    }
}

struct Home(tempfile::TempDir);

impl Home {
    fn new() -> Self {
        // In memory where there is such a folder: what is measured is the program and not who shares its disk.
        let shared = Path::new("/dev/shm");
        let home = if shared.is_dir() {
            tempfile::tempdir_in(shared)
        } else {
            tempfile::tempdir()
        };
        Self(home.expect("a folder"))
    }

    fn store(&self) -> Store {
        Store::new(self.0.path().join(".local/share/sheaf/sessions"))
    }

    fn folder(&self) -> String {
        self.0.path().to_string_lossy().into_owned()
    }

    fn variables(&self) -> [(&'static str, String); 4] {
        [
            ("HOME", self.folder()),
            ("PATH", std::env::var("PATH").unwrap_or_default()),
            ("TERM", "xterm-256color".to_owned()),
            // Nobody is asked anything: there has to be somebody to be opened for.
            ("OPENAI_BASE_URL", "http://127.0.0.1:9/v1".to_owned()),
        ]
    }

    fn run(&self, arguments: &[&str]) -> Output {
        Command::new(PROGRAM)
            .args(arguments)
            .env_clear()
            .envs(self.variables())
            .current_dir(self.0.path())
            .stdin(Stdio::null())
            .output()
            .expect("it runs")
    }
}

/// Words that are as different as those of real conversations, the same ones each time.
struct Words(u64);

impl Words {
    fn next(&mut self) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        self.0 >> 33
    }

    fn text(&mut self, count: usize) -> String {
        const BEGIN: [&str; 16] = [
            "cart", "total", "price", "scope", "parse", "token", "index", "write", "frame", "cache", "draft", "event",
            "branch", "theme", "width", "stone",
        ];
        const END: [&str; 8] = ["", "s", "er", "ing", "_id", "Map", "::new", "()?"];
        let mut text = String::new();
        for _ in 0..count {
            let (begin, end) = (self.next() as usize % BEGIN.len(), self.next() as usize % END.len());
            text.push_str(BEGIN[begin]);
            text.push_str(END[end]);
            text.push(if self.next().is_multiple_of(12) { '\n' } else { ' ' });
        }
        text
    }
}

fn tell(log: &Log, turns: usize, words: usize, mark: &str, seed: u64) {
    let mut random = Words(seed);
    log.append(1, Event::Title(format!("about {}", random.text(3)).as_str().into()));
    for turn in 1..=turns {
        log.append(
            1,
            Event::UserMessage(Message::user(format!("{} {mark}", random.text(20)))),
        );
        // Every answer of ours says which conversation it belongs to.
        log.append(
            1,
            Event::ResponseStart(ResponseStart {
                conversation_id: Some(ConversationId::from(format!("c{seed}").as_str())),
                ..ResponseStart::default()
            }),
        );
        for (at, kind) in ["text", "tool_call", "terminal_command", "file_edit", "text"]
            .iter()
            .enumerate()
        {
            let text = random.text(words);
            let (content, metadata) = match *kind {
                "tool_call" => (
                    None,
                    json!({ "toolName": "read_file", "arguments": { "target_file": "src/cart.rs" }, "result": { "status": "success", "data": text } }),
                ),
                "terminal_command" => (
                    None,
                    json!({ "command": "cargo test", "exitCode": u8::from(turn % 4 == 0), "output": text }),
                ),
                "file_edit" => (
                    None,
                    json!({ "filePath": "src/cart.rs", "operation": "edit", "diff": { "oldString": "a", "newString": text }, "applied": "applied" }),
                ),
                _ => (Some(format!("{text} end{turn}")), json!({})),
            };
            for event in document(&format!("d{at}"), kind, content.as_deref(), metadata) {
                log.append(1, event);
            }
        }
        log.append(1, Event::Done(Done::default()));
    }
}

/// A thousand conversations of a hundred kilobytes, all of them known to the cache.
static THOUSAND: LazyLock<Home> = LazyLock::new(|| {
    let home = Home::new();
    let store = home.store();
    for nth in 0..1000 {
        let log = Log::new();
        let session = Session::fresh(home.folder(), 1);
        let recorder = store.record(session, &log).expect("a thread");
        tell(&log, 12, 220, &format!("needle{nth:04}"), nth);
        recorder.finish().expect("it is stored");
    }
    // Each search takes in some of what is new: the last ones take in nothing.
    let mut quick = 0;
    for _ in 0..600 {
        let began = Instant::now();
        home.run(&["sessions", "search", "nowhere"]);
        quick = if began.elapsed() < Duration::from_millis(40) {
            quick + 1
        } else {
            0
        };
        if quick > 5 {
            break;
        }
    }
    home
});

/// The whole program: 50 ms is the most it may take.
#[divan::bench(args = ["needle0500", "needle050", "nowhere", "type:error", "since:1h exit=7 cart"], sample_count = 20)]
fn search_over_a_thousand_conversations(bencher: Bencher<'_, '_>, words: &str) {
    let home = &*THOUSAND;
    let wanted = match words {
        "needle0500" => 12,
        "needle050" => 120,
        _ => 0,
    };
    bencher.bench_local(|| {
        let output = home.run(&["sessions", "search", words]);
        let found = String::from_utf8_lossy(&output.stdout).lines().count();
        assert_eq!(found, wanted, "{words}");
    });
}

#[divan::bench(sample_count = 20)]
fn list_of_a_thousand_conversations(bencher: Bencher<'_, '_>) {
    let home = &*THOUSAND;
    bencher.bench_local(|| assert!(home.run(&["sessions", "list"]).status.success()));
}

static LONG: LazyLock<Home> = LazyLock::new(|| {
    let home = Home::new();
    let log = Log::new();
    let session = Session::fresh(home.folder(), 1);
    tell(&log, 4000, 780, "", 7);
    let recorder = home.store().record(session, &log).expect("a thread");
    recorder.finish().expect("it is stored");
    home
});

/// From the start of the program until the end of a session of 100 MB is on the screen: 150 ms is the most it may take. What is
/// resident then, and a while later, is looked at, too.
#[divan::bench(sample_count = 10)]
fn a_session_of_a_hundred_megabytes_shows_its_end(bencher: Bencher<'_, '_>) {
    let home = &*LONG;
    let path = home.store().list().expect("listed").pop().expect("it is there");
    assert!(path.bytes > 95_000_000, "{}", path.bytes);
    let mut most = 0;
    bencher.bench_local(|| most = most.max(opened(home)));
    let mut out = std::io::stdout();
    let _ = writeln!(
        out,
        "a_session_of_a_hundred_megabytes: {} MiB resident at most",
        most >> 10
    );
    assert!(most <= MOST_RESIDENT_KIB, "{most} KiB");
}

/// Opens the long session until its last words are shown, and says how much is resident.
fn opened(home: &Home) -> u64 {
    let size = PtySize {
        rows: 40,
        cols: 120,
        ..PtySize::default()
    };
    let pair = NativePtySystem::default().openpty(size).expect("a terminal");
    let mut command = CommandBuilder::new(PROGRAM);
    command.env_clear();
    command.cwd(home.0.path());
    command.arg("--continue");
    for (name, value) in home.variables() {
        command.env(name, value);
    }
    let mut child = pair.slave.spawn_command(command).expect("it starts");
    let mut reader = pair.master.try_clone_reader().expect("a reader");
    let (mut seen, mut some) = (Vec::new(), [0; 1 << 14]);
    let is_there = |seen: &[u8]| seen.windows(7).any(|it| it == b"end4000");
    while !is_there(&seen) {
        match reader.read(&mut some) {
            Ok(count) if count > 0 => seen.extend_from_slice(&some[..count]),
            _ => panic!("it ended: {}", String::from_utf8_lossy(&seen)),
        }
    }
    let status = std::fs::read_to_string(format!("/proc/{}/status", child.process_id().unwrap_or_default()));
    let status = status.unwrap_or_default();
    let line = status.lines().find_map(|it| it.strip_prefix("VmRSS:"));
    let resident = line.and_then(|it| it.trim().trim_end_matches(" kB").parse().ok());
    child.kill().expect("it runs");
    let _ = child.wait();
    resident.unwrap_or_default()
}
