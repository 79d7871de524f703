//! A program that is killed in the middle of an answer: what it has printed is in the session, on the screen, with `-p` and from
//! `sheaf serve`.

use std::{
    cell::RefCell,
    io::{Read, Write as _},
    path::{Path, PathBuf},
    process::{Child, Stdio},
    time::{Duration, Instant},
};

use serde_json::json;
use sheaf::{
    journal::file::{Store, Stored},
    protocol::Position,
    transcript::Transcript,
};

use crate::{
    mock_model,
    model::{Model, Script},
    print::{home, session_files, with_model},
    pty::{LIMIT, Sheaf, Start},
    serve::{Gateway, request},
};

/// How the answer is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    Printed,
    Screen,
    Served,
}

/// A running program that shows an answer of numbered words.
enum Shower {
    Printed(Child),
    Screen(Sheaf),
    Served(Gateway, std::net::TcpStream),
}

/// Numbered words. A number is read only if the dot after it is there.
fn words(count: usize) -> Vec<String> {
    (1..=count).map(|it| format!("word{it}. ")).collect()
}

/// Returns the highest number of a word in a text, 0 if there is none.
fn highest(text: &str) -> usize {
    let mut parts = text.rsplit("word");
    parts
        .find_map(|it| it.split_once('.')?.0.parse().ok())
        .unwrap_or_default()
}

impl Way {
    fn start(self, home: &Path, model: &Model) -> Shower {
        match self {
            Self::Printed => {
                let mut command = with_model(home, model);
                // Text would wait for its end, as standard output is a pipe.
                command.args(["-p", "x", "--output-format", "stream-json", "--stream-partial-output"]);
                let child = command.stderr(Stdio::null()).spawn();
                Shower::Printed(child.expect("it starts"))
            }
            Self::Screen => {
                let sheaf = Start::new(&[])
                    .with("OPENAI_BASE_URL", &format!("http://{}/v1", model.address))
                    .with("OPENAI_API_KEY", "secret-key")
                    .with("OPENAI_MODEL", "scripted")
                    .run_in(home);
                sheaf.wait_for("Ask anything");
                sheaf.send("x\r");
                Shower::Screen(sheaf)
            }
            Self::Served => {
                let gateway = Gateway::start(with_model(home, model), &["--stateful"]);
                let body = json!({ "messages": [{ "role": "user", "content": "x" }], "stream": true });
                let mut socket = gateway.connect();
                let whole = request(gateway.address, "/api/v1/chat/completions", &body.to_string());
                socket.write_all(&whole).expect("it listens");
                Shower::Served(gateway, socket)
            }
        }
    }

    fn folder(self, home: &Path) -> PathBuf {
        home.join(match self {
            Self::Printed | Self::Screen => ".local/share/sheaf/sessions",
            Self::Served => ".local/state/sheaf/served",
        })
    }
}

impl Shower {
    /// Reads until the word `wanted` is shown. Returns the highest word that was shown at each time.
    fn until(&mut self, wanted: usize) -> Vec<(Instant, usize)> {
        match self {
            Self::Printed(child) => read_until(child.stdout.as_mut().expect("it is piped"), wanted),
            Self::Served(_, socket) => read_until(socket, wanted),
            Self::Screen(sheaf) => {
                let shown = RefCell::new(Vec::new());
                sheaf.wait_until(&format!("word{wanted} is shown"), |seen| {
                    let highest = highest(&seen.screen().contents());
                    shown.borrow_mut().push((Instant::now(), highest));
                    highest >= wanted
                });
                shown.into_inner()
            }
        }
    }

    fn kill(&mut self) {
        match self {
            Self::Printed(child) | Self::Served(Gateway { child, .. }, _) => {
                child.kill().expect("it runs");
                child.wait().expect("it is dead");
            }
            Self::Screen(sheaf) => {
                sheaf.signal(rustix::process::Signal::KILL);
                sheaf.exit();
            }
        }
    }
}

fn read_until(from: &mut impl Read, wanted: usize) -> Vec<(Instant, usize)> {
    let mut text = Vec::new();
    let mut shown = vec![(Instant::now(), 0)];
    let mut buffer = [0; 4096];
    while shown.last().is_some_and(|it| it.1 < wanted) {
        let read = from.read(&mut buffer).expect("it can be read");
        assert!(read > 0, "it ended after {:?}", String::from_utf8_lossy(&text));
        text.extend_from_slice(&buffer[..read]);
        let from = text.len().saturating_sub(2 * buffer.len());
        shown.push((Instant::now(), highest(&String::from_utf8_lossy(&text[from..]))));
    }
    shown
}

/// Returns what is stored of the only session, and its id. `None` if there is none yet.
fn stored(folder: &Path) -> Option<(String, Stored)> {
    let path = folder.exists().then(|| session_files(folder).pop()).flatten()?;
    let id = path.file_stem()?.to_str()?.to_owned();
    let stored = Store::new(folder).read(&id).ok()?;
    Some((id, stored))
}

fn text_of(stored: Stored) -> String {
    let mut transcript = Transcript::default();
    for entry in &stored.closed() {
        transcript.apply(entry);
    }
    let exchange = transcript.exchanges.first();
    exchange.map(|it| it.response.plain_text()).unwrap_or_default()
}

/// That the session of a killed program is whole, a beginning of the answer, and can be resumed. Returns its highest word.
fn highest_stored(folder: &Path, whole: &str) -> usize {
    let (id, found) = stored(folder).expect("the message was stored before the answer came");
    assert!(found.notices.is_empty(), "a kill tears no line: {:?}", found.notices);
    let text = text_of(found);
    assert!(whole.starts_with(&text), "{text:.100}");
    let resumed = Store::new(folder)
        .resume(&id, 1)
        .expect("the lock died with its holder");
    assert!(!resumed.log.after(Position(0)).is_empty());
    highest(&text)
}

/// Nothing more happens after the words: no end of a document has them written.
#[test]
fn what_was_printed_is_in_the_session_of_a_killed_program() {
    for way in [Way::Printed, Way::Screen, Way::Served] {
        for count in [1, 80, 700] {
            let whole = words(count).concat();
            let model = Model::with([Script::Hangs(words(count))]);
            let home = home();
            let folder = way.folder(home.path());
            let mut shower = way.start(home.path(), &model);
            shower.until(count);
            let began = Instant::now();
            while stored(&folder).is_none_or(|it| highest(&text_of(it.1)) < count) {
                assert!(
                    began.elapsed() < LIMIT,
                    "{way:?}: word{count} was printed and never stored"
                );
                std::thread::sleep(Duration::from_millis(5));
            }
            shower.kill();
            assert_eq!(highest_stored(&folder, &whole), count, "{way:?}");
        }
    }
}

/// The same while words stream, one in a millisecond, with the time that the promise allows. It measures the machine, too, so it is
/// for people: `SHEAF_TEST_KILLS=100 cargo test --test it killed -- --nocapture` kills so many programs of each kind.
#[test]
fn what_was_printed_a_tenth_of_a_second_ago_survives_a_kill() {
    let kills = std::env::var("SHEAF_TEST_KILLS").ok().and_then(|it| it.parse().ok());
    let Some(kills) = kills.filter(|it: &usize| *it > 0) else {
        return;
    };
    let whole = words(4000).concat();
    for way in [Way::Printed, Way::Screen, Way::Served] {
        let mut lost = Vec::new();
        for nth in 0..kills {
            let model = Model::with([Script::Says(words(4000), Duration::from_millis(1))]);
            let home = home();
            let mut shower = way.start(home.path(), &model);
            // From the first word on, in steps that are no multiple of anything.
            let mut shown = shower.until(1 + nth * 997 % 1500);
            let killed = Instant::now();
            shower.kill();
            let stored = highest_stored(&way.folder(home.path()), &whole);
            shown.retain(|it| it.1 > stored);
            let oldest = shown.first().map_or(Duration::ZERO, |it| killed - it.0);
            lost.push((oldest, shown.last().map_or(0, |it| it.1 - stored)));
        }
        lost.sort_unstable();
        let late = lost.iter().filter(|it| it.0 > Duration::from_millis(100)).count();
        println!(
            "{way:?}: {kills} kills, {late} lost words printed more than 100 ms before; the oldest lost word was {:?} old, \
             the median {:?}, most words lost {:?}",
            lost[kills - 1].0,
            lost[kills / 2].0,
            lost.iter().map(|it| it.1).max()
        );
    }
}

/// A command makes a protected file, and sheaf is killed before it ends. The next start puts the file aside, names it and asks; so it
/// does without a screen, where nobody can be asked. A command that ends leaves nothing to look at.
#[test]
fn what_a_command_made_when_sheaf_was_killed_is_put_aside_and_asked_about() {
    let begin = |arguments: &[&str], model: &mock_model::Model| {
        Start::new(arguments)
            .with("OPENAI_BASE_URL", &model.url)
            .with("OPENAI_API_KEY", "secret-key")
            .with("OPENAI_MODEL", "scripted")
            .size(110, 40)
            .file("work/sub/code.rs", "// code")
    };
    for next in ["screen", "-p", "ends"] {
        let model = mock_model::Model::start();
        let first = begin(&[], &model).run();
        first.wait_for("Ask anything");
        first.send("go\r");
        let path = first.home().join("work/sub/.mcp.json");
        let lists = || {
            let files = std::fs::read_dir(first.home().join(".local/state/sheaf/aside"));
            let names = files.into_iter().flatten().flatten().map(|it| it.file_name());
            names.filter(|it| it.to_string_lossy().ends_with(".list")).count()
        };
        let wait = if next == "ends" { "" } else { "; sleep 600" };
        let command = json!({ "command": format!("echo evil > sub/.mcp.json{wait}"), "is_background": false });
        model.asked().calls(&[("run_terminal_cmd", command)]);
        if next == "ends" {
            let told = model.asked().results().pop().expect("a result");
            assert!(told.contains("put aside") && !path.exists(), "{told}");
            assert_eq!(lists(), 0);
            continue;
        }
        let began = Instant::now();
        // A shell makes the file before it writes to it.
        let is_written = || std::fs::read_to_string(&path).is_ok_and(|it| it == "evil\n");
        while !is_written() && !first.look(|seen| seen.shows("waiting for you")) {
            assert!(began.elapsed() < LIMIT, "the command does nothing\n{}", first.picture());
            std::thread::sleep(Duration::from_millis(5));
        }
        if !path.exists() {
            return crate::skipped("commands ask here: there is no sandbox");
        }
        assert_eq!(lists(), 1);
        first.signal(rustix::process::Signal::KILL);
        first.exit();
        if next == "-p" {
            let answers = Model::with([Script::says("Yes.")]);
            let mut command = with_model(first.home(), &answers);
            let command = command
                .args(["-p", "--continue", "more"])
                .current_dir(first.home().join("work"));
            let err = String::from_utf8(command.output().expect("it runs").stderr).expect("text");
            assert!(
                err.contains("protected files that are new or changed") && err.contains("sub/.mcp.json"),
                "{err}"
            );
            assert!(!path.exists());
        } else {
            // What the program is started with waits for the answer.
            let second = begin(&["--continue", "and then"], &model).after(&first).run();
            second.wait_for("sheaf was killed while a command ran");
            second.wait_for("sub/.mcp.json (new)");
            assert!(!path.exists(), "it is put aside");
            second.wait_for("Put these files back?");
            second.wait_for("Skip");
            assert!(model.is_idle(), "the question comes first");
            second.send("2");
            second.insist("\r", "it is put back", |seen| seen.shows("Put back."));
            assert_eq!(std::fs::read_to_string(&path).expect("it is back"), "evil\n");
            let answer = model.asked();
            assert_eq!(answer.message(), "and then");
            answer.finish();
        }
        assert_eq!(lists(), 0, "it is looked at once");
    }
}

/// A gateway looks once, when it starts, and tells whoever started it.
#[test]
fn a_gateway_tells_what_a_command_left_when_sheaf_was_killed() {
    let home = home();
    let (work, aside) = (home.path().join("work"), home.path().join(".local/state/sheaf/aside"));
    for folder in [&work, &aside] {
        std::fs::create_dir_all(folder).expect("a folder");
    }
    let work = work.canonicalize().expect("it is there");
    let list = format!("root {}\0mark 0.1\0end \0", work.display());
    std::fs::write(aside.join("running-x.list"), list).expect("a file");
    std::fs::write(work.join(".mcp.json"), "evil").expect("a file");
    let errors = home.path().join("errors");
    let model = Model::with([Script::says("Yes.")]);
    let mut command = with_model(home.path(), &model);
    command
        .current_dir(&work)
        .stderr(std::fs::File::create(&errors).expect("a file"));
    let gateway = Gateway::start(command, &[]);
    let said = std::fs::read_to_string(&errors).expect("it is there");
    assert!(
        said.contains("sheaf was killed while a command ran") && said.contains(".mcp.json →"),
        "{said}"
    );
    assert!(!work.join(".mcp.json").exists() && !aside.join("running-x.list").exists());
    drop(gateway);
}
