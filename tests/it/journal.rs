//! Sessions on a real disk: a second program, files of older versions, a clock that goes back.

use std::{
    io::Read as _,
    path::{Path, PathBuf},
    process::Stdio,
    sync::Arc,
    time::Duration,
};

use sheaf::{
    export::{ExportFormat, ExportedConversation},
    journal::{
        Log,
        file::{Session, Store, StoreError},
    },
    protocol::{DocumentStart, Event, Kind, Message},
    transcript::Transcript,
};

use crate::{
    model::{Model, Script},
    print::{home, session_files, with_model},
};

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
fn a_session_that_is_open_is_not_opened_twice() {
    let model = Model::with([Script::Hangs(vec!["hello ".to_owned()])]);
    let home = home();
    let mut command = with_model(home.path(), &model);
    // Text would wait for its end, as standard output is a pipe.
    command.args(["-p", "x", "--output-format", "stream-json", "--stream-partial-output"]);
    let mut child = command.stderr(Stdio::null()).spawn().expect("it starts");
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

pub fn start(id: &str) -> Event {
    Event::DocumentStart(DocumentStart {
        id: id.into(),
        kind: Kind::Text,
        sequence: None,
        content: None,
        metadata: serde_json::Map::new(),
    })
}

pub fn end(id: &str, text: &str) -> Event {
    Event::DocumentEnd {
        document: id.into(),
        final_content: Some(text.into()),
        metadata: serde_json::Map::new(),
    }
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
        resumed.recorder.finish().expect("it is stored");
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
    recorder.finish().expect("it is stored");
    let resumed = store.resume(&id, 50).expect("it goes on");
    resumed.log.append(50, Event::UserMessage(Message::user("third")));
    resumed.recorder.finish().expect("it is stored");
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
