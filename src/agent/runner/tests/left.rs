//! The start after a program was killed while a command ran.

use std::{fs, path::Path};

use pretty_assertions::assert_eq;

use super::*;
use crate::{
    protocol::{DocumentId, QuestionAnswer},
    sandbox::{Checkpoints, Fence},
};

/// A workspace in which a command has made a protected file when its program was killed.
fn workspace(base: &Path) -> Arc<Workspace> {
    let (root, aside) = (base.join("work"), base.join("aside"));
    for folder in [&root, &aside] {
        fs::create_dir(folder).expect("the test can do this");
    }
    let root = root.canonicalize().expect("it is there");
    let list = format!("root {}\0mark 0.1\0end \0", root.display());
    fs::write(aside.join("running-x.list"), list).expect("the test can do this");
    fs::write(root.join(".mcp.json"), "evil").expect("the test can do this");
    let fence = Fence {
        aside: Some(aside),
        ..Fence::default()
    };
    Arc::new(Workspace::fenced(&root, fence).expect("a folder"))
}

impl Conversation {
    fn question(&self) -> Option<DocumentId> {
        self.seen.iter().find_map(|it| match &it.event {
            Event::MetadataDelta { document, metadata, .. } if metadata.contains_key("questions") => {
                Some(document.clone())
            }
            _ => None,
        })
    }

    fn is_told(&self, code: &str) -> bool {
        self.seen
            .iter()
            .any(|it| matches!(&it.event, Event::Notice(it) if it.code == code))
    }

    fn has_said(&self, message: &str) -> bool {
        self.seen
            .iter()
            .any(|it| matches!(&it.event, Event::UserMessage(it) if it.content == message))
    }
}

fn provider(url: &str) -> Arc<dyn Provider> {
    let settings = config::Provider {
        connection: Connection::default().at(url),
        ..config::Provider::default()
    };
    models::open(&settings, &Environment::default()).expect("sound settings")
}

/// The look at the workspace may take long, and this thread draws the screen.
#[test]
fn nobody_is_held_up_by_the_look_and_a_message_of_the_start_waits_for_the_answer() {
    for command in [Command::Submit, Command::Begin] {
        let folder = tempfile::tempdir().expect("a folder");
        let workspace = workspace(folder.path());
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.expect("a runtime");
        let submit = |text: &str| Submit {
            message: Message::user(text),
            mode: Mode::Agent,
            model: None,
        };
        // Meanwhile nothing can be looked at: whoever does waits.
        let mut talk = workspace.commands().ground().hold_up(|| {
            runtime.block_on(async {
                let there = Some(Arc::clone(&workspace));
                let talk = Conversation::in_workspace(Log::new(), provider("http://127.0.0.1:9"), there, Asker::Here);
                talk.link.send(command(submit("with the start")));
                for _ in 0..100 {
                    tokio::task::yield_now().await;
                }
                assert_eq!(
                    talk.link.log().last(),
                    Position(0),
                    "nothing is read, and nothing blocks this thread"
                );
                talk
            })
        });
        runtime.block_on(async {
            talk.until("question", |it| it.question().is_some() && it.is_told("message-waits"))
                .await;
            assert!(!talk.has_said("with the start"));
            // One more of the start waits, too.
            talk.link.send(Command::Begin(submit("the second")));
            let asked = talk.link.ask(Query::Status).await;
            assert!(
                asked.is_ok()
                    && !talk
                        .link
                        .log()
                        .after(Position(0))
                        .iter()
                        .any(|it| matches!(it.event, Event::UserMessage(_)))
            );
            let question = talk.question().expect("it is open");
            let answer = QuestionAnswer {
                question_id: "left_files".to_owned(),
                selected_option_ids: vec!["put_back".to_owned()],
                free_text: None,
                hunks: Vec::new(),
            };
            let response = ClarificationResponse::new(question, Outcome::Answered, vec![answer]);
            talk.link.send(Command::Answer {
                turn: talk.link.log().turn(),
                response,
            });
            talk.until("message", |it| it.has_said("with the start")).await;
            assert_eq!(
                fs::read_to_string(workspace.root().join(".mcp.json")).expect("it is back"),
                "evil"
            );
        });
    }
}

/// Clients of a gateway are not asked about what the gateway's user did; the gateway tells.
#[tokio::test]
async fn a_conversation_of_a_gateway_does_not_look() {
    for (asker, is_looked) in [(Asker::Later, false), (Asker::Live, false), (Asker::Nobody, true)] {
        let folder = tempfile::tempdir().expect("a folder");
        let workspace = workspace(folder.path());
        let talk = Conversation::in_workspace(
            Log::new(),
            provider("http://127.0.0.1:9"),
            Some(Arc::clone(&workspace)),
            asker,
        );
        talk.link.ask(Query::Status).await.expect("it answers");
        let is_there = workspace.root().join(".mcp.json").exists();
        assert_eq!(!is_there, is_looked, "{asker:?}");
        let is_told = talk
            .link
            .log()
            .after(Position(0))
            .iter()
            .any(|it| matches!(&it.event, Event::Notice(it) if it.code == "protected"));
        assert_eq!(is_told, is_looked, "{asker:?}");
    }
}

/// Undo data that nobody can read turns undo off, and the user is told before anything is changed.
#[tokio::test]
async fn a_list_of_steps_that_is_too_long_is_told_to_the_user() {
    let folder = tempfile::tempdir().expect("a folder");
    let root = folder.path().join("work");
    fs::create_dir(&root).expect("the test can do this");
    let workspace = Arc::new(Workspace::fenced(&root, Fence::default()).expect("a folder"));
    let paths = config::Paths::under(&folder.path().join("own"));
    for (size, expected) in [(1 << 20, false), ((64 << 20) + 1, true)] {
        let list = Checkpoints::list(&paths.state.join("checkpoints"), "conv_1");
        fs::create_dir_all(list.parent().expect("it has one")).expect("the test can do this");
        fs::File::create(&list)
            .and_then(|it| it.set_len(size))
            .expect("the test can do this");
        let there = Some(Arc::clone(&workspace));
        let mut talk = Conversation::with_paths(
            Log::new(),
            provider("http://127.0.0.1:9"),
            there,
            Asker::Here,
            Some(paths.clone()),
        );
        talk.say("hi");
        talk.until("the message", |it| it.has_said("hi")).await;
        assert_eq!(talk.is_told("undo-off"), expected, "{size}");
    }
}
