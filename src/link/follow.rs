//! A link to a conversation that another sheaf on this machine has open: it is read as it is written, and nothing is said in it
//! from here but what answers an open question, which goes through the other one's [`Door`].

use std::{
    future::Future,
    io::{self, BufRead as _, Read as _, Write as _},
    os::unix::net::{UnixListener, UnixStream},
    path::{Path, PathBuf},
    pin::Pin,
    sync::Arc,
    time::Duration,
};

use serde::{Deserialize, Serialize};

use super::{About, AskError, Link};
use crate::{
    journal::{Log, file::Tail},
    os::{
        file::{self, Locked},
        lazy_channel,
    },
    protocol::{ClarificationResponse, Command, Event, Notice, Query, Reply, Severity, Turn},
};

/// Interval at which new entries are looked for.
const LOOK: Duration = Duration::from_millis(200);
/// Number of such intervals after which it is checked that the writer still lives.
const LOOKS_UNTIL_ALIVE: u32 = 10;
/// Maximum size of a message through a door, in bytes. A message is an answer to a question.
const MOST_BYTES: u64 = 256 << 10;
/// Time limit for a message through a door.
const PATIENCE: Duration = Duration::from_secs(2);

/// A message through a door: a line of JSON.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum PeerMessage {
    Answer {
        turn: Turn,
        response: ClarificationResponse,
    },
    Cancel,
}

/// The other window's end.
pub struct Follow {
    log: Arc<Log>,
    about: About,
    commands: lazy_channel::Outbox<Command>,
}

/// A session that another process writes, and the way to reach that process.
#[derive(Debug)]
pub struct Followed {
    pub tail: Tail,
    pub id: String,
    /// The process that writes it.
    pub by: Option<u32>,
    /// Path of its socket.
    pub door: PathBuf,
    /// Held as long as it writes.
    pub lock: PathBuf,
}

impl Follow {
    /// Must be called in a runtime.
    pub fn start(followed: Followed) -> Self {
        let log = Log::new();
        let (commands, inbox) = lazy_channel::channel();
        let other = followed.by.map_or_else(String::new, |it| format!(" (process {it})"));
        let about = About {
            peer: format!("another sheaf{other}"),
            model: Some(format!("read-only: open in another sheaf{other}")),
            written_elsewhere: Some(format!("sheaf --resume {} --fork", followed.id)),
            ..About::default()
        };
        tokio::spawn(follow(followed, Arc::clone(&log), inbox));
        Self { log, about, commands }
    }
}

impl Link for Follow {
    fn log(&self) -> &Arc<Log> {
        &self.log
    }

    fn send(&self, command: Command) {
        // The task ends only when this sender is gone.
        let _ = self.commands.send(command);
    }

    fn about(&self) -> About {
        self.about.clone()
    }

    fn ask(&self, _: Query) -> Pin<Box<dyn Future<Output = Result<Reply, AskError>> + Send>> {
        let peer = self.about.peer.clone();
        Box::pin(std::future::ready(Err(AskError::Unsupported { peer })))
    }
}

async fn follow(mut followed: Followed, log: Arc<Log>, mut inbox: lazy_channel::Inbox<Command>) {
    let say = |message: String| {
        let notice = Notice::new(Severity::Warning, "read-only", message);
        let at_ms = u64::try_from(chrono::Utc::now().timestamp_millis()).unwrap_or_default();
        log.append(at_ms, Event::Notice(notice));
    };
    let hint = format!("sheaf --resume {} --fork continues a copy", followed.id);
    let mut looks = 0;
    let mut is_alone = false;
    loop {
        if let Ok(entries) = followed.tail.read() {
            for entry in entries {
                log.mirror(entry);
            }
        }
        looks += 1;
        if looks % LOOKS_UNTIL_ALIVE == 0 && !is_alone && matches!(file::lock(&followed.lock), Ok(Locked::Ours(_))) {
            is_alone = true;
            say(format!(
                "the other window has closed: sheaf --resume {} continues here",
                followed.id
            ));
        }
        tokio::select! {
            command = inbox.recv() => match command {
                None => return,
                Some(Command::Answer { turn, response }) => {
                    if let Err(error) = knock(&followed.door, &PeerMessage::Answer { turn, response }) {
                        say(format!("it has to be answered in the other window: {error}"));
                    }
                }
                Some(Command::Cancel) => {
                    if let Err(error) = knock(&followed.door, &PeerMessage::Cancel) {
                        say(format!("it has to be stopped in the other window: {error}"));
                    }
                }
                Some(
                    Command::Submit(_)
                    | Command::Begin(_)
                    | Command::Steer(_)
                    | Command::Run { .. }
                    | Command::RepeatCall { .. }
                    | Command::Compact { .. }
                    | Command::Rename(_)
                    | Command::Update { .. }
                    | Command::SwitchBranch(_)
                    | Command::Restore(_)
                    | Command::Restrict(_)
                    | Command::Background
                    | Command::StopCommand { .. }
                    | Command::Record(_)
                    | Command::Next,
                ) => say(format!("this window only follows: {hint}")),
            },
            () = tokio::time::sleep(LOOK) => {}
        }
    }
}

fn knock(door: &Path, word: &PeerMessage) -> io::Result<()> {
    let mut line = serde_json::to_vec(word)?;
    line.push(b'\n');
    let mut stream = UnixStream::connect(door)?;
    stream.set_write_timeout(Some(PATIENCE))?;
    stream.write_all(&line)
}

/// Socket on which this process hears other windows of the same conversation. Removed when dropped.
#[derive(Debug)]
pub struct Door {
    path: PathBuf,
}

impl Door {
    /// Opens it at `path`, in a folder that is the user's alone. What is heard goes to `link`. Whoever opens it holds the lock of
    /// the conversation, so a door that is there already is one that a crash left behind.
    pub fn open(path: PathBuf, link: &Arc<dyn Link>) -> io::Result<Self> {
        if let Some(folder) = path.parent() {
            file::private_folder(folder).map_err(io::Error::other)?;
        }
        match std::fs::remove_file(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            Ok(()) | Err(_) => {}
        }
        let listener = UnixListener::bind(&path)?;
        let link = Arc::downgrade(link);
        let hear = move || {
            for stream in listener.incoming() {
                let Some(link) = link.upgrade() else { return };
                if let Ok(Some(word)) = stream.and_then(|it| heard(&it)) {
                    link.send(match word {
                        PeerMessage::Answer { turn, response } => Command::Answer { turn, response },
                        PeerMessage::Cancel => Command::Cancel,
                    });
                }
            }
        };
        std::thread::Builder::new().name("door".to_owned()).spawn(hear)?;
        Ok(Self { path })
    }
}

impl Drop for Door {
    fn drop(&mut self) {
        // The thread sees at the next knock that nobody is there, or goes with the program.
        std::fs::remove_file(&self.path).ok();
    }
}

/// `None`: it is nothing that is understood.
fn heard(stream: &UnixStream) -> io::Result<Option<PeerMessage>> {
    stream.set_read_timeout(Some(PATIENCE))?;
    let mut line = String::new();
    io::BufReader::new(stream.take(MOST_BYTES)).read_line(&mut line)?;
    Ok(serde_json::from_str(&line).ok())
}

#[cfg(test)]
mod tests {
    use pretty_assertions::assert_eq;

    use super::*;
    use crate::{
        journal::file::{Session, Store},
        link::local::{Local, Request},
        protocol::{DocumentStart, Kind, Message, Outcome, Position},
        transcript::Transcript,
    };

    fn question() -> [Event; 2] {
        let members = |value: serde_json::Value| value.as_object().cloned().unwrap_or_default();
        [
            Event::DocumentStart(DocumentStart {
                id: "q".into(),
                kind: Kind::Clarification,
                sequence: Some(1),
                content: None,
                metadata: members(serde_json::json!({ "kind": "approval" })),
            }),
            Event::MetadataDelta {
                document: "q".into(),
                metadata: members(serde_json::json!({ "questions": [{ "id": "a", "text": "May it?" }] })),
                append: Vec::new(),
            },
        ]
    }

    /// Reads until it holds.
    async fn until(link: &Follow, what: &str, holds: impl Fn(&Transcript) -> bool) {
        let mut follower = link.log().follow(Position(0));
        let mut transcript = Transcript::default();
        while !holds(&transcript) {
            let mut batch = Vec::new();
            let more = tokio::time::timeout(Duration::from_secs(20), follower.next(&mut batch)).await;
            assert!(more.unwrap_or_else(|_| panic!("still no {what}")), "{what}");
            transcript.apply_all(&batch);
        }
    }

    #[tokio::test]
    async fn a_second_window_sees_what_the_first_does_and_answers_its_questions() {
        let folder = tempfile::tempdir().expect("a folder");
        let store = Store::new(folder.path().join("sessions"));
        let log = Log::new();
        let (first, mut inbox) = Local::new(Arc::clone(&log), About::default());
        let first: Arc<dyn Link> = Arc::new(first);
        let session = Session::fresh("/w", 1);
        let id = session.id.clone();
        let recorder = store.record(session, &log).expect("a recorder");
        log.append(1, Event::UserMessage(Message::user("hello")));
        for event in question() {
            log.append(1, event);
        }
        let door = folder.path().join("doors/one.sock");
        let opened = Door::open(door.clone(), &first).expect("a door");
        while !store.path_of(&id).exists() {
            tokio::task::yield_now().await;
        }
        let second = Follow::start(Followed {
            tail: store.tail(&id),
            id: id.clone(),
            by: Some(7),
            door,
            lock: store.path_of(&id).with_extension("lock"),
        });
        until(&second, "question", |it| it.open_question().is_some()).await;
        let response = ClarificationResponse {
            document_id: "q".into(),
            outcome: Outcome::Answered,
            answers: Vec::new(),
            reason: None,
        };
        second.send(Command::Answer {
            turn: Turn(1),
            response: response.clone(),
        });
        let heard = tokio::time::timeout(Duration::from_secs(20), inbox.recv()).await;
        let Ok(Some(Request::Command(heard))) = heard else {
            panic!("nothing was heard")
        };
        assert_eq!(
            heard,
            Command::Answer {
                turn: Turn(1),
                response
            }
        );
        // What closes it in the first window closes it in the second.
        let metadata = serde_json::json!({ "kind": "approval", "outcome": "answered" });
        log.append(
            2,
            Event::DocumentEnd {
                document: "q".into(),
                final_content: None,
                metadata: metadata.as_object().cloned().unwrap_or_default(),
            },
        );
        until(&second, "end", |it| {
            it.open_question().is_none() && !it.exchanges.is_empty()
        })
        .await;
        // Anything else stays in the first one.
        second.send(Command::Cancel);
        assert!(matches!(inbox.recv().await, Some(Request::Command(Command::Cancel))));
        drop(opened);
        recorder.finish().expect("it is stored");
        until(&second, "news of the end", |_| {
            second
                .log()
                .after(Position(0))
                .iter()
                .any(|it| matches!(&it.event, Event::Notice(it) if it.message.contains("has closed")))
        })
        .await;
    }
}
