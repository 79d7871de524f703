//! Sessions on real disks: a killed program, a full disk, one that cannot be written, a second program.

use std::{
    io::Read as _,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    sync::Arc,
    time::Duration,
};

use sheaf::{
    export::{ExportFormat, ExportedConversation},
    journal::{
        Log,
        file::{Session, Store, StoreError},
    },
    protocol::{DocumentStart, Event, Kind, Message, Position},
    transcript::Transcript,
};

use crate::{
    model::{Model, Script},
    print::{home, session_files, with_model},
};

/// Goes up to this many words, more than any go of the test lets through.
const WORDS: usize = 4000;

fn answer() -> Vec<String> {
    (0..WORDS).map(|it| format!("word{it} ")).collect()
}

/// The session file, once its first message is in it.
fn until_stored(folder: &Path) -> PathBuf {
    for _ in 0..2000 {
        let path = folder.exists().then(|| session_files(folder).pop()).flatten();
        if let Some(path) = path
            && std::fs::read_to_string(&path).is_ok_and(|it| it.contains("user_message") && it.ends_with('\n'))
        {
            return path;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    panic!("no session was stored in {}", folder.display());
}

#[test]
fn a_killed_program_leaves_a_beginning_of_what_it_said() {
    let model = Model::with([Script::Says(answer(), Duration::from_millis(1))]);
    let whole = answer().concat();
    // From before the first word to after the first forced write, in steps that are no multiple of anything.
    // SHEAF_TEST_KILLS=200 goes through them more finely.
    let times: u32 = std::env::var("SHEAF_TEST_KILLS")
        .ok()
        .and_then(|it| it.parse().ok())
        .unwrap_or(8);
    for kills in 0..times {
        let home = home();
        let mut command = with_model(home.path(), &model);
        let mut child = command
            .args(["-p", "x"])
            .stderr(Stdio::null())
            .spawn()
            .expect("it starts");
        let mut said = vec![0; (kills as usize * 613 * 8 / times.max(8) as usize).max(1)];
        let out = child.stdout.as_mut().expect("it is piped");
        out.read_exact(&mut said).expect("it says that much");
        child.kill().expect("it runs");
        child.wait().expect("it is dead");

        let folder = home.path().join(".local/share/sheaf/sessions");
        let path = session_files(&folder)
            .pop()
            .expect("the message was stored before the answer came");
        let store = Store::new(&folder);
        let id = path.file_stem().and_then(|it| it.to_str()).expect("an id").to_owned();
        let stored = store.read(&id).expect("it can be read");
        assert!(stored.notices.is_empty(), "a kill tears no line: {:?}", stored.notices);
        let mut transcript = Transcript::default();
        for entry in &stored.closed() {
            transcript.apply(entry);
        }
        let exchange = transcript.exchanges.first().expect("the message is there");
        assert_eq!(exchange.message.as_ref().map(|it| it.content.as_str()), Some("x"));
        let text = exchange.response.plain_text();
        assert!(whole.starts_with(&text), "{text:.100}");
        // Half a second at a word a millisecond is 500 words; the machine may be slow, but never faster.
        let lost = said.len().saturating_sub(text.len());
        assert!(lost <= 600 * 9, "{lost} bytes lost of {}", said.len());
        let resumed = store.resume(&id, 1).expect("the lock died with its holder");
        assert!(!resumed.log.after(Position(0)).is_empty());
    }
}

#[test]
fn a_session_that_is_open_is_not_opened_twice() {
    let model = Model::with([Script::Hangs(vec!["hello ".to_owned()])]);
    let home = home();
    let mut command = with_model(home.path(), &model);
    let mut child = command
        .args(["-p", "x"])
        .stderr(Stdio::null())
        .spawn()
        .expect("it starts");
    let mut said = [0; 5];
    let out = child.stdout.as_mut().expect("it is piped");
    out.read_exact(&mut said).expect("it says that much");
    let folder = home.path().join(".local/share/sheaf/sessions");
    let path = until_stored(&folder);
    let id = path.file_stem().and_then(|it| it.to_str()).expect("an id");
    let store = Store::new(&folder);
    match store.resume(id, 1) {
        Err(error @ StoreError::Held { by, .. }) => {
            assert_eq!(by, Some(child.id()));
            assert!(error.to_string().contains(&child.id().to_string()), "{error}");
        }
        other => panic!("{other:?}"),
    }
    assert!(store.read(id).is_ok(), "reading needs no lock");
    child.kill().expect("it runs");
    child.wait().expect("it is dead");
    assert!(store.resume(id, 1).is_ok());
}

/// A small file system of its own; gone when dropped. `None` where we may not mount.
struct Disk(PathBuf);

impl Disk {
    fn small(at: &Path) -> Option<Self> {
        let mounted = Command::new("mount")
            .args(["-t", "tmpfs", "-o", "size=64k", "none"])
            .arg(at)
            .stderr(Stdio::null())
            .status();
        mounted.is_ok_and(|it| it.success()).then(|| Self(at.to_owned()))
    }

    fn remount(&self, option: &str) {
        let status = Command::new("mount")
            .args(["-o", &format!("remount,{option}")])
            .arg(&self.0)
            .status()
            .expect("mount is there");
        assert!(status.success(), "{option}");
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(&self.0).status();
    }
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

fn end(id: &str, text: &str) -> Event {
    Event::DocumentEnd {
        document: id.into(),
        final_content: Some(text.into()),
        metadata: serde_json::Map::new(),
    }
}

/// Waits for a notice with the code.
fn until_said(log: &Arc<Log>, code: &str) {
    for _ in 0..2000 {
        let entries = log.after(Position(0));
        let is_said = entries
            .iter()
            .any(|it| matches!(&it.event, Event::Notice(notice) if notice.code == code));
        if is_said {
            return;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    panic!("`{code}` was never said");
}

#[test]
fn a_full_disk_costs_nothing_once_there_is_room_again() {
    let home = home();
    let Some(_disk) = Disk::small(home.path()) else {
        crate::skipped("a full disk cannot be tried here, mounting is not allowed");
        return;
    };
    let store = Store::new(home.path().join("sessions"));
    let filler = home.path().join("filler");
    let log = Log::new();
    let session = Session::fresh("/", 1);
    let id = session.id.clone();
    let recorder = store.record(session, &log).expect("a thread");
    log.append(1, Event::UserMessage(Message::user("x")));
    std::fs::write(&filler, vec![0; 40 << 10]).expect("there is room");
    for count in 0..8 {
        log.append(2, start(&format!("d{count}")));
        log.append(3, end(&format!("d{count}"), &"y".repeat(6 << 10)));
    }
    until_said(&log, "session-not-stored");
    std::fs::remove_file(&filler).expect("it is there");
    log.append(4, start("last"));
    log.append(5, end("last", "here"));
    until_said(&log, "session-stored-again");
    recorder.finish();
    let stored = store.read(&id).expect("it can be read");
    assert_eq!(stored.notices, Vec::new(), "what the full disk tore is gone");
    let mut transcript = Transcript::default();
    for entry in &stored.entries {
        transcript.apply(entry);
    }
    let documents = &transcript.exchanges[0].response.documents;
    assert_eq!(documents.len(), 9);
    assert!(documents.iter().take(8).all(|it| it.text().len() == 6 << 10));
}

#[test]
fn a_disk_that_becomes_read_only_is_said_and_the_file_stays() {
    let home = home();
    let Some(disk) = Disk::small(home.path()) else {
        crate::skipped("a read-only disk cannot be tried here, mounting is not allowed");
        return;
    };
    let store = Store::new(home.path().join("sessions"));
    disk.remount("ro");
    let log = Log::new();
    let session = Session::fresh("/", 1);
    let id = session.id.clone();
    let recorder = store.record(session, &log).expect("a thread");
    log.append(1, Event::UserMessage(Message::user("x")));
    until_said(&log, "session-not-stored");
    disk.remount("rw");
    log.append(2, start("a"));
    until_said(&log, "session-stored-again");
    recorder.finish();
    assert!(store.read(&id).is_ok());
    drop(store.resume(&id, 1).expect("it can be written again"));
    disk.remount("ro");
    assert!(matches!(store.resume(&id, 1), Err(StoreError::Failed { .. })));
    assert!(store.read(&id).is_ok(), "it can still be read");
}

/// A home that nothing can be written to, from the first moment on: the answer comes all the same, and what is not kept is said once.
#[test]
fn a_home_that_is_read_only_costs_the_file_and_nothing_else() {
    let home = home();
    let Some(disk) = Disk::small(home.path()) else {
        crate::skipped("a read-only home cannot be tried here, mounting is not allowed");
        return;
    };
    disk.remount("ro");
    let model = Model::with([Script::says("All of it.")]);
    let output = with_model(home.path(), &model)
        .args(["-p", "x"])
        .output()
        .expect("it runs");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let (out, err) = (text(&output.stdout), text(&output.stderr));
    assert!(output.status.success(), "{out}{err}");
    assert_eq!(out.trim(), "All of it.");
    assert_eq!(err.matches("not saved to disk").count(), 1, "{err}");
    // What has nothing to write works as ever, and what has to write says why it cannot.
    let run = |arguments: &[&str]| {
        with_model(home.path(), &model)
            .args(arguments)
            .output()
            .expect("it runs")
    };
    assert!(run(&["sessions", "list"]).status.success());
    assert_eq!(
        run(&["sessions", "search", "x"]).status.code(),
        Some(1),
        "there is nothing to be found"
    );
    let tour = crate::source::root().join("assets/tour/tour.jsonl");
    let refused = run(&["sessions", "import", tour.to_str().expect("plain")]);
    assert!(!refused.status.success() && !refused.stderr.is_empty(), "{refused:?}");
    // A conversation that was kept before is read, goes on, and is not lost.
    disk.remount("rw");
    let answers = Model::with([Script::says("First."), Script::says("Second.")]);
    let ask = |arguments: &[&str]| {
        with_model(home.path(), &answers)
            .args(arguments)
            .output()
            .expect("it runs")
    };
    assert!(ask(&["-p", "one"]).status.success());
    let path = session_files(&home.path().join(".local/share/sheaf/sessions"))
        .pop()
        .expect("it was kept");
    let before = std::fs::read(&path).expect("it is there");
    disk.remount("ro");
    assert!(text(&run(&["sessions", "show", "last"]).stdout).contains("First."));
    let refused = ask(&["-p", "--continue", "two"]);
    let err = text(&refused.stderr);
    assert!(refused.status.success() || !err.is_empty(), "{refused:?}");
    assert_eq!(std::fs::read(&path).expect("it is there"), before);
}

/// Whatever version of the lines a session was written in, it is read for ever: each has a file here, which is never written
/// again, and what it says beside it.
#[test]
fn every_version_that_was_ever_written_is_read() {
    let fixtures = crate::source::root().join("tests/fixtures/sessions");
    let mut versions = 0;
    for entry in std::fs::read_dir(&fixtures).expect("a folder").flatten() {
        let path = entry.path();
        if path.extension().is_none_or(|it| it != "jsonl") {
            continue;
        }
        versions += 1;
        let name = path.file_stem().and_then(|it| it.to_str()).expect("a name");
        let folder = tempfile::tempdir().expect("a folder");
        std::fs::copy(&path, folder.path().join(format!("{name}.jsonl"))).expect("a copy");
        let store = Store::new(folder.path());
        let stored = store.read(name).expect("it is read");
        assert_eq!(stored.notices, [], "{name}");
        let session = stored.session.clone();
        let said = ExportedConversation::new(session, stored.closed()).write(ExportFormat::Markdown);
        let wanted = std::fs::read_to_string(path.with_extension("md")).expect("what it says");
        pretty_assertions::assert_eq!(said, wanted, "{name}");
        // It goes on, and what it held is still there.
        let resumed = store.resume(name, 1).expect("it goes on");
        resumed.log.append(1, Event::UserMessage(Message::user("more")));
        resumed.recorder.finish();
        let again = store.read(name).expect("it is read again");
        let transcript = Transcript::from_entries(&again.entries.into_iter().map(Arc::new).collect::<Vec<_>>());
        let last = transcript.exchanges.last().and_then(|it| it.message.as_ref());
        assert_eq!(last.map(|it| it.content.as_str()), Some("more"), "{name}");
    }
    assert!(versions >= 2, "of {versions} versions there is a file");
}

/// A clock that goes back changes neither the order nor what was said.
#[test]
fn a_clock_that_goes_back_mixes_nothing_up() {
    let home = home();
    let store = Store::new(home.path().join("sessions"));
    let log = Log::new();
    let session = Session::fresh("/w", 9_000);
    let id = session.id.clone();
    let recorder = store.record(session, &log).expect("a recorder");
    log.append(9_000, Event::UserMessage(Message::user("first")));
    for (at, id) in [(9_000, "a"), (5_000, "b"), (100, "c"), (0, "d")] {
        log.append(at, start(id));
        log.append(at, end(id, id));
    }
    log.append(0, Event::UserMessage(Message::user("second")));
    recorder.finish();
    let resumed = store.resume(&id, 50).expect("it goes on");
    resumed.log.append(50, Event::UserMessage(Message::user("third")));
    resumed.recorder.finish();
    let stored = store.read(&id).expect("it is read");
    assert_eq!(stored.notices, []);
    assert!(stored.entries.is_sorted_by_key(|it| it.position));
    let transcript = Transcript::from_entries(&stored.entries.into_iter().map(Arc::new).collect::<Vec<_>>());
    let said: Vec<_> = transcript
        .exchanges
        .iter()
        .map(|it| {
            (
                it.message.as_ref().map(|it| it.content.clone()).unwrap_or_default(),
                it.response.documents.len(),
            )
        })
        .collect();
    assert_eq!(
        said,
        [
            ("first".to_owned(), 4),
            ("second".to_owned(), 0),
            ("third".to_owned(), 0)
        ]
    );
    let listed = store.list().expect("a list");
    assert_eq!(listed.len(), 1);
}
