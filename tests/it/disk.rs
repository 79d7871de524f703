//! Disks that are full or cannot be written: the conversation continues in memory, and the user is told.

use std::{
    io::Write as _,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    sync::Arc,
    time::Duration,
};

use sheaf::{
    journal::{
        Log,
        file::{Session, Store, StoreError},
    },
    protocol::{Event, Message, Position},
    transcript::Transcript,
};

use crate::{
    journal::{end, start},
    model::{Model, Script},
    print::{home, session_files, with_model},
    pty::Start,
};

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
    recorder.finish().expect("it is stored");
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
    recorder.finish().expect("it is stored");
    assert!(store.read(&id).is_ok());
    drop(store.resume(&id, 1).expect("it can be written again"));
    disk.remount("ro");
    assert!(matches!(store.resume_to_change(&id, 1), Err(StoreError::Failed { .. })));
    // A conversation continues in memory, and what is said before there is room again is stored then.
    let resumed = store.resume(&id, 1).expect("it is read");
    assert!(resumed.not_stored.is_some());
    resumed.log.append(3, Event::UserMessage(Message::user("in memory")));
    disk.remount("rw");
    resumed
        .log
        .append(4, Event::UserMessage(Message::user("and on the disk")));
    resumed.recorder.finish().expect("it is stored");
    let stored = store.read(&id).expect("it can be read");
    let messages = stored.entries.iter().filter_map(|it| match &it.event {
        Event::UserMessage(message) => Some(message.content.as_str()),
        _ => None,
    });
    assert_eq!(messages.collect::<Vec<_>>(), ["x", "in memory", "and on the disk"]);
    assert_eq!(stored.notices, []);
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
    let renamed = run(&["sessions", "rename", "last", "Mine"]);
    assert!(
        !renamed.status.success(),
        "what cannot be stored is no success: {renamed:?}"
    );
    assert_eq!(std::fs::read(&path).expect("it is there"), before);
}

/// A reason why nothing can be stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Wall {
    /// No room on the file system.
    Full,
    /// It is mounted read-only.
    ReadOnly,
    /// `ulimit -f`: no file may grow.
    FileSize,
    /// The files belong to the user, who may not write them.
    Rights,
}

/// A home with one stored conversation, on a file system of its own where the wall needs one.
struct StoredHome {
    wall: Wall,
    folder: tempfile::TempDir,
    disk: Option<Disk>,
}

impl StoredHome {
    /// `None`: this wall cannot be built here.
    fn new(wall: Wall) -> Option<Self> {
        let folder = home();
        let disk = match wall {
            Wall::Full | Wall::ReadOnly => Some(Disk::small(folder.path())?),
            Wall::FileSize => None,
            Wall::Rights if rustix::process::geteuid().is_root() => return None,
            Wall::Rights => None,
        };
        let model = Model::with([Script::says("First.")]);
        let first = with_model(folder.path(), &model)
            .args(["-p", "one"])
            .output()
            .expect("it runs");
        assert!(first.status.success(), "{first:?}");
        assert_eq!(first.stderr, b"");
        Some(Self { wall, folder, disk })
    }

    fn session(&self) -> PathBuf {
        let files = session_files(&self.folder.path().join(".local/share/sheaf/sessions"));
        files.into_iter().min().expect("one was stored")
    }

    fn build(&self) {
        match self.wall {
            Wall::Full => fill(&self.folder.path().join("filler")),
            Wall::ReadOnly => self.disk.as_ref().expect("it has one").remount("ro"),
            Wall::FileSize => {}
            Wall::Rights => self.set_mode(0o400),
        }
    }

    fn remove(&self) {
        match self.wall {
            Wall::Full => std::fs::remove_file(self.folder.path().join("filler")).expect("it is there"),
            Wall::ReadOnly => self.disk.as_ref().expect("it has one").remount("rw"),
            Wall::FileSize => {}
            Wall::Rights => self.set_mode(0o600),
        }
    }

    fn set_mode(&self, mode: u32) {
        use std::os::unix::fs::PermissionsExt as _;
        let file = self.session();
        for path in [file.with_extension("lock"), file] {
            std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).expect("they are ours");
        }
    }

    fn command(&self, model: &Model) -> Command {
        let plain = with_model(self.folder.path(), model);
        if self.wall != Wall::FileSize {
            return plain;
        }
        let mut command = Command::new("/bin/sh");
        command
            .args(["-c", "ulimit -f 0; exec \"$@\"", "sh"])
            .arg(plain.get_program())
            .env_clear()
            .envs(plain.get_envs().filter_map(|(name, value)| Some((name, value?))))
            .current_dir(self.folder.path())
            .stdin(Stdio::null());
        command
    }
}

/// Writes until there is no room.
fn fill(path: &Path) {
    let mut file = std::fs::File::create(path).expect("a file");
    while file.write_all(&[0; 4096]).is_ok() {}
}

/// New, continued and resumed conversations, whose file is whole or ends in half a line: each is answered, and that it is not stored
/// is said exactly once, however the end of the answer and the last write meet. `SHEAF_TEST_ROUNDS` repeats it.
#[test]
fn what_cannot_be_stored_continues_in_memory_and_is_said_once() {
    let rounds = std::env::var("SHEAF_TEST_ROUNDS").ok().and_then(|it| it.parse().ok());
    // Longer than what is free at the end of a page.
    let long = "word ".repeat(1200);
    let torn = b"{\"v\":1,\"n\":99,\"half";
    let mut runs = 0;
    for wall in [Wall::Full, Wall::ReadOnly, Wall::FileSize, Wall::Rights] {
        for (start, is_torn) in [
            ("new", false),
            ("--continue", false),
            ("--continue", true),
            ("--resume", false),
            ("--resume", true),
        ] {
            // In a folder that is the user's own, a new file can be made.
            if wall == Wall::Rights && start == "new" {
                continue;
            }
            for _ in 0..rounds.unwrap_or(1) {
                let Some(home) = StoredHome::new(wall) else {
                    crate::skipped(&format!("{wall:?} cannot be tried here by this user"));
                    break;
                };
                let path = home.session();
                if is_torn {
                    let file = std::fs::File::options().append(true).open(&path);
                    file.expect("it is there").write_all(torn).expect("there is room");
                }
                let before = std::fs::read(&path).expect("it is there");
                home.build();
                let model = Model::with([Script::says(&long)]);
                let mut command = home.command(&model);
                command.args(["-p", "two"]);
                match start {
                    "new" => {}
                    "--resume" => {
                        command.arg("--resume").arg(path.file_stem().expect("an id"));
                    }
                    option => {
                        command.arg(option);
                    }
                }
                let output = command.output().expect("it runs");
                let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
                let (out, err) = (text(&output.stdout), text(&output.stderr));
                let case = format!("{wall:?} {start} torn: {is_torn}\n{err}");
                assert!(output.status.success(), "{case}");
                assert_eq!(out.trim(), long.trim(), "{case}");
                assert_eq!(err.matches("not saved to disk").count(), 1, "{case}");
                assert_eq!(err.matches("cannot be read").count(), usize::from(is_torn), "{case}");
                let after = std::fs::read(&path).expect("it is there");
                assert!(after.starts_with(&before), "{case}");
                runs += 1;
                // With room again it goes on from where the file ends.
                home.remove();
                let next = with_model(home.folder.path(), &Model::with([Script::says("Third.")]))
                    .args(["-p", "--resume"])
                    .arg(path.file_stem().expect("an id"))
                    .arg("three")
                    .output()
                    .expect("it runs");
                assert!(
                    next.status.success() && text(&next.stdout).contains("Third."),
                    "{next:?}"
                );
                assert!(!text(&next.stderr).contains("not saved"), "{next:?}");
            }
        }
    }
    println!("{runs} runs");
}

/// The screen says it in the rule above the composer, and once more when it is gone.
#[test]
fn on_the_screen_a_conversation_continues_in_memory() {
    let Some(stored) = StoredHome::new(Wall::ReadOnly) else {
        crate::skipped("a read-only home cannot be tried here, mounting is not allowed");
        return;
    };
    std::fs::create_dir(stored.folder.path().join("work")).expect("a folder");
    let path = stored.session();
    let before = std::fs::read(&path).expect("it is there");
    stored.build();
    let model = Model::with([Script::says("Second.")]);
    let id = path.file_stem().and_then(|it| it.to_str()).expect("an id");
    let sheaf = Start::new(&["--resume", id])
        .with("OPENAI_BASE_URL", &format!("http://{}/v1", model.address))
        .with("OPENAI_API_KEY", "secret-key")
        .with("OPENAI_MODEL", "scripted")
        .size(100, 30)
        .run_in(stored.folder.path());
    sheaf.wait_for("First.");
    sheaf.wait_for("not saved");
    sheaf.send("two\r");
    sheaf.wait_for("Second.");
    sheaf.wait_for("not saved");
    sheaf.send("\x04");
    sheaf.assert_left(0);
    sheaf.wait_for("the session is not saved to disk");
    assert_eq!(std::fs::read(&path).expect("it is there"), before);
}
