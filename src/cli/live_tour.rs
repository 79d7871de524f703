//! The live tour: the real agent in a temporary copy of a small project, with a script instead of a model.
//!
//! All its files, and everything that the agent stores, are in one folder that is removed with the [`TourFolder`].

use std::{
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use anyhow::{Context as _, Result};

use super::open;
use crate::{
    config::{Approvals, Paths, Settings},
    link::{Link, replay::Speed},
    models::script::Script,
    os::file::{self, Access},
    protocol::{ConversationId, Message, Mode, Submit},
};

/// The model's scripted answers.
const SCRIPT: &str = include_str!("../../assets/tour/script.toml");

/// Files of the project: path and content.
const FILES: [(&str, &str); 6] = [
    ("README.md", include_str!("../../assets/tour/workspace/README.md")),
    ("hours", include_str!("../../assets/tour/workspace/hours")),
    ("lib/time.sh", include_str!("../../assets/tour/workspace/lib/time.sh")),
    ("sheet.txt", include_str!("../../assets/tour/workspace/sheet.txt")),
    ("test/run.sh", include_str!("../../assets/tour/workspace/test/run.sh")),
    ("test/soak.sh", include_str!("../../assets/tour/workspace/test/soak.sh")),
];

/// Text of the first message.
pub const OPENING: &str = "Show me around.";

/// Delay after each word, like a model at moderate speed.
const PACE: Duration = Duration::from_millis(22);

/// A temporary folder with a copy of the project, removed on drop.
#[derive(Debug)]
pub struct TourFolder {
    folder: PathBuf,
}

impl TourFolder {
    /// Creates the folder and its files.
    pub fn create() -> Result<Self> {
        let name = ConversationId::fresh();
        // The end of an id is random.
        let name = format!("sheaf-tour-{}", name.as_str().get(27..).unwrap_or(name.as_str()));
        let folder = std::env::temp_dir().join(name);
        file::private_folder(&folder).context("the tour needs a folder for its files")?;
        let folder = folder.canonicalize().context("the folder of the tour is gone")?;
        // From here on it is removed on every error.
        let tour = Self { folder };
        let workspace = tour.workspace();
        for (path, text) in FILES {
            let path = workspace.join(path);
            if let Some(parent) = path.parent() {
                file::private_folder(parent)?;
            }
            file::write(&path, text.as_bytes(), Access::Private)?;
        }
        Ok(tour)
    }

    /// Path of the project.
    pub fn workspace(&self) -> PathBuf {
        self.folder.join("hours")
    }

    /// Folders for the agent's own files, beside the project.
    fn paths(&self) -> Paths {
        Paths::under(&self.folder.join("sheaf"))
    }
}

impl Drop for TourFolder {
    fn drop(&mut self) {
        if let Err(error) = std::fs::remove_dir_all(&self.folder) {
            tracing::error!(%error, folder = %self.folder.display(), "the folder of the tour could not be removed");
        }
    }
}

/// Opens a link to the agent in the folder. The user's settings do not apply: the script expects defaults.
pub fn link(tour: &TourFolder, speed: Speed) -> Result<Arc<dyn Link>> {
    let settings = Settings {
        approvals: Approvals {
            run: "list".to_owned(),
            ..Settings::default().approvals
        },
        ..Settings::default()
    };
    let workspace = tour.workspace();
    let provider = script(&workspace)?.provider(speed.takes(PACE));
    open::scripted_agent(provider, settings, &workspace, tour.paths())
}

fn script(workspace: &Path) -> Result<Script> {
    Ok(Script::read(SCRIPT, &workspace.to_string_lossy())?)
}

/// Returns the first message.
pub fn opening() -> Submit {
    Submit {
        message: Message::user(OPENING),
        mode: Mode::Agent,
        model: None,
    }
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use super::*;
    use crate::{
        journal::Follower,
        protocol::{
            ClarificationResponse, Command, FinishReason, Kind, Outcome, Position, QuestionAnswer, Status, View,
        },
        transcript::Transcript,
    };

    fn files(folder: &Path) -> BTreeMap<String, String> {
        let mut found = BTreeMap::new();
        let mut folders = vec![folder.to_owned()];
        while let Some(next) = folders.pop() {
            for entry in std::fs::read_dir(next).expect("a folder").flatten() {
                let path = entry.path();
                if path.is_dir() {
                    folders.push(path);
                } else {
                    let name = path
                        .strip_prefix(folder)
                        .expect("below it")
                        .to_string_lossy()
                        .into_owned();
                    found.insert(name, std::fs::read_to_string(&path).expect("text"));
                }
            }
        }
        found
    }

    #[test]
    fn the_stage_is_the_project_and_goes_with_its_end() {
        let tour = TourFolder::create().expect("a stage");
        let project = Path::new(env!("CARGO_MANIFEST_DIR")).join("assets/tour/workspace");
        assert_eq!(files(&tour.workspace()), files(&project));
        let other = TourFolder::create().expect("another one");
        assert_ne!(tour.folder, other.folder);
        let folder = tour.folder.clone();
        drop(tour);
        assert!(!folder.exists());
        assert!(other.folder.exists());
    }

    /// A tour whose questions are all answered with the first option.
    struct Tour {
        link: Arc<dyn Link>,
        follower: Follower,
        transcript: Transcript,
        folder: TourFolder,
        answered: BTreeSet<(usize, usize)>,
    }

    impl Tour {
        fn begin() -> Self {
            let tour = TourFolder::create().expect("a stage");
            let link = link(&tour, Speed::AtOnce).expect("a tour");
            Self {
                follower: link.log().follow(Position(0)),
                link,
                transcript: Transcript::default(),
                folder: tour,
                answered: BTreeSet::new(),
            }
        }

        /// Says something and follows until the answer is over.
        async fn say(&mut self, text: &str, ends: FinishReason) {
            let turns = self.transcript.exchanges.len();
            self.link.send(Command::Submit(Submit {
                message: Message::user(text),
                mode: Mode::Agent,
                model: None,
            }));
            loop {
                if self.transcript.exchanges.len() > turns
                    && self
                        .transcript
                        .exchanges
                        .last()
                        .is_some_and(|it| !it.response.is_running())
                {
                    break;
                }
                self.answer();
                let mut batch = Vec::new();
                assert!(self.follower.next(&mut batch).await, "the log ended");
                self.transcript.apply_all(&batch);
            }
            let response = &self.transcript.exchanges.last().expect("a turn").response;
            let ending = response.ending.clone().expect("it is over");
            assert_eq!(ending.status, Status::Completed, "{text}");
            assert_eq!(ending.finish_reason, ends, "{text}");
            for document in &response.documents {
                assert_ne!(document.kind, Kind::Error, "{text}: {}", document.text());
                let status = document.metadata.get("result").and_then(|it| it.get("status"));
                assert_ne!(
                    status.and_then(|it| it.as_str()),
                    Some("error"),
                    "{text}: {:?}",
                    document.metadata
                );
            }
        }

        fn answer(&mut self) {
            let Some(place) = self.transcript.open_question() else {
                return;
            };
            if !self.answered.insert((place.exchange, place.document)) {
                return;
            }
            let document = self.transcript.get(place).expect("it is there");
            let View::Clarification(asked) = document.view() else {
                panic!("a question")
            };
            let answers = asked.questions.iter().map(|it| QuestionAnswer {
                question_id: it.id.to_owned(),
                selected_option_ids: it.options.first().map(|it| it.id.to_owned()).into_iter().collect(),
                free_text: None,
                hunks: Vec::new(),
            });
            let response = ClarificationResponse {
                document_id: document.id.clone(),
                outcome: Outcome::Answered,
                answers: answers.collect(),
                reason: None,
            };
            let turn = self.transcript.exchanges[place.exchange].turn;
            self.link.send(Command::Answer { turn, response });
        }
    }

    #[tokio::test]
    async fn every_scene_does_what_it_says() {
        let mut tour = Tour::begin();
        tour.say(OPENING, FinishReason::Stop).await;
        let file = |tour: &Tour, name: &str| files(&tour.folder.workspace()).remove(name).expect("it is there");
        assert!(
            file(&tour, "lib/time.sh").contains("${h#0}"),
            "the first option mends the test"
        );
        tour.say("Fix the failing test", FinishReason::Stop).await;
        tour.say("Plan totals by project", FinishReason::AwaitingInput).await;
        assert_eq!(file(&tour, "hours"), FILES[1].1, "a plan changes nothing");
        tour.say("Build the plan \"Totals by project\".", FinishReason::Stop)
            .await;
        assert_eq!(tour.transcript.todos.progress(), (4, 4));
        tour.say("Explain @lib/time.sh", FinishReason::Stop).await;
        tour.say("Round the times", FinishReason::Stop).await;
        assert!(file(&tour, "lib/time.sh").contains("nearest quarter"));
        tour.say("Why is the night shift negative?", FinishReason::Stop).await;
        assert!(
            !files(&tour.folder.workspace())
                .values()
                .any(|it| it.contains("SHEAF-DEBUG"))
        );
        tour.say("What is the meaning of life?", FinishReason::Stop).await;
        // The project is what all the scenes made of it, and it works.
        let output = std::process::Command::new("sh")
            .args(["-c", "sh test/run.sh && sh hours sheet.txt"])
            .current_dir(tour.folder.workspace())
            .output()
            .expect("it runs");
        let said = String::from_utf8(output.stdout).expect("text");
        assert!(output.status.success(), "{said}");
        assert!(said.contains("7 good, 0 bad"), "{said}");
        // 2:15 and 3:15 in the garden, 4:45 and 2:45 in the shop.
        assert!(
            said.ends_with("shop         7:30\ngarden       5:30\nin all      13:00\n"),
            "{said}"
        );
    }

    #[tokio::test]
    async fn a_feature_before_the_fix_does_not_hide_what_fails() {
        let mut tour = Tour::begin();
        tour.say("Plan totals by project", FinishReason::AwaitingInput).await;
        tour.say("Build the plan \"Totals by project\".", FinishReason::Stop)
            .await;
        assert_eq!(tour.transcript.todos.progress(), (4, 4));
        let response = &tour.transcript.exchanges.last().expect("a turn").response;
        let said = response.documents.last().expect("a document").text();
        assert!(said.contains("two tests fail"), "{said}");
    }

    #[test]
    fn what_the_script_offers_is_heard() {
        let script = script(Path::new("/tmp/x")).expect("it is sound");
        for (attempt, about) in script.offers() {
            assert!(script.hears(attempt), "{attempt}");
            assert!(!about.is_empty(), "{attempt}");
        }
        assert!(script.hears(OPENING));
        assert!(!script.hears("hello"));
    }
}
