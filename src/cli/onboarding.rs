//! The first minute: nothing is configured, so the conversation itself asks which server to use.
//!
//! It is a producer like any other. Its findings and its question are in the transcript; the answer replaces the link.
//! Messages typed before that are sent to the chosen server.

use std::{
    path::PathBuf,
    sync::{Arc, Mutex, PoisonError},
};

use anyhow::Result;
use serde_json::{Map, Value, json};
use tokio::sync::mpsc;

use super::{arguments::TOUR_SPEED, live_tour, open};
use crate::{
    config::{Environment, Settings},
    journal::{Log, file::Recorder},
    link::{
        About, AskError, Link,
        local::{Inbox, Local, Request},
        replay::{Audience, Recording, Replay, Speed},
    },
    models::discover::{self, DiscoveredProvider, Evidence},
    protocol::{
        ClarificationResponse, Command, DocumentId, DocumentStart, Done, Event, FinishReason, Kind, Outcome,
        ResponseStart, Status, Submit, Turn, sentence,
    },
    t,
    tui::now_ms,
};

/// Starts to record a conversation's log, unless nothing is to be stored.
pub type StartRecording = Box<dyn Fn(&Arc<Log>) -> Option<Recorder> + Send>;

/// Everything needed to open the chosen server.
pub struct Onboarding {
    pub settings: Settings,
    pub environment: Environment,
    pub workspace: PathBuf,
    pub tour: Recording,
    /// Receives the chosen link.
    pub switch: mpsc::UnboundedSender<Arc<dyn Link>>,
    /// Starts the recording of a conversation with a real server.
    pub record: StartRecording,
    /// Keeps recorders until the program ends.
    pub recorders: Arc<Mutex<Vec<Recorder>>>,
    /// Keeps the folders of live tours until the program ends.
    pub tour_folders: Arc<Mutex<Vec<live_tour::TourFolder>>>,
}

/// Starts the conversation that asks. Connects only to ports of this machine.
pub fn start(onboarding: Onboarding) -> Arc<dyn Link> {
    let log = Log::new();
    let about = About {
        peer: sentence::NO_MODEL.text().to_owned(),
        ..About::default()
    };
    let (link, inbox) = Local::new(Arc::clone(&log), about);
    tokio::spawn(ask(onboarding, log, inbox));
    Arc::new(link)
}

async fn ask(onboarding: Onboarding, log: Arc<Log>, mut inbox: Inbox) {
    let mut page = OnboardingPage::new(&log);
    page.begin();
    page.text(&greeting());
    let found = discover::discover(&onboarding.environment).await;
    page.text(&report(&found));
    page.question(&found, false);
    // Messages that wait for a server.
    let mut pending: Vec<Submit> = Vec::new();
    while let Some(letter) = inbox.recv().await {
        match letter {
            Request::Command(Command::Answer { turn, response }) => {
                if !page.is_open(turn, &response.document_id) {
                    continue;
                }
                page.answer(&response);
                let link = match choice(&response, &found).map(|it| onboarding.open(&it, &found)) {
                    Some(Ok(link)) => link,
                    Some(Err(error)) => {
                        page.error(&super::chain(&error));
                        page.question(&found, !pending.is_empty());
                        continue;
                    }
                    None => {
                        page.end();
                        continue;
                    }
                };
                // The response stays open: at its end the screen would send its queue to nobody.
                for submit in pending.drain(..) {
                    link.send(Command::Begin(submit));
                }
                if onboarding.switch.send(link).is_err() {
                    break;
                }
            }
            Request::Command(Command::Submit(submit) | Command::Begin(submit) | Command::Steer(submit)) => {
                page.close();
                log.append(now_ms(), Event::UserMessage(submit.message.clone()));
                pending.push(submit);
                page = OnboardingPage::new(&log);
                page.begin();
                page.text(t!("first-message-waits"));
                page.question(&found, !pending.is_empty());
            }
            Request::Command(
                Command::Run { .. }
                | Command::RepeatCall { .. }
                | Command::Compact { .. }
                | Command::Rename(_)
                | Command::Restore(_)
                | Command::SwitchBranch(_)
                | Command::Restrict(_)
                | Command::Background
                | Command::StopCommand { .. }
                | Command::Next,
            ) => {}
            Request::Command(Command::Record(notice)) => {
                log.append(now_ms(), Event::Notice(notice));
            }
            Request::Command(Command::Cancel) => page.close(),
            Request::Command(Command::Update {
                turn,
                document,
                metadata,
            }) => {
                log.append_to(turn, now_ms(), Event::DocumentUpdate { document, metadata });
            }
            Request::Ask(_, reply) => {
                let _ = reply.send(Err(AskError::Unsupported {
                    peer: sentence::NO_MODEL.text().to_owned(),
                }));
            }
        }
    }
    log.close();
}

fn greeting() -> String {
    let [welcome, documents, numbers] = [t!("first-welcome"), t!("first-documents"), t!("first-numbers")];
    format!("**{welcome}** {documents} {numbers}")
}

/// Describes the servers found, as Markdown.
fn report(found: &[DiscoveredProvider]) -> String {
    let list = |begin: &str, lines: Vec<String>| {
        let lines = lines.into_iter().map(|it| format!("\n- {it}"));
        format!("{begin}\n{}", lines.collect::<String>())
    };
    if found.is_empty() {
        let ways = [
            t!("first-login"),
            t!("first-variable"),
            t!("first-local"),
            t!("first-gateway"),
        ];
        return list(t!("first-nothing"), ways.map(str::to_owned).into());
    }
    list(t!("first-found"), found.iter().map(line).collect())
}

fn line(it: &DiscoveredProvider) -> String {
    let url = it.base_url.as_str();
    let about = match &it.how {
        Evidence::Key { variable } => {
            let with = it.model().map(|it| format!(" {}", t!("first-with", model = it)));
            let key = t!("first-key", variable = variable.as_str());
            format!("{}: {key}", with.unwrap_or_default())
        }
        Evidence::Address { variable } => {
            let address = t!("first-address", url = url, variable = variable.as_str());
            format!(" {address}")
        }
        Evidence::Answered => {
            let models = match it.models.as_slice() {
                [] => t!("first-none-loaded").to_owned(),
                [one] => t!("first-with", model = one.as_str()),
                [first, rest @ ..] => t!("first-with-more", model = first.as_str(), count = rest.len()),
            };
            format!(" {}, {models}", t!("first-server", url = url))
        }
    };
    format!("**{}**{about}", it.title)
}

/// The question which server to use. With `has_message` only a server can be chosen: a tour would answer the message.
fn question(found: &[DiscoveredProvider], has_message: bool) -> Value {
    let mut options: Vec<Value> = found
        .iter()
        .map(|it| {
            json!({
                "id": format!("use:{}", it.name),
                "label": match it.model() {
                    Some(model) => format!("{} ({model})", it.title),
                    None => it.title.clone(),
                },
                "description": t!("first-keep", name = it.name.as_str()),
            })
        })
        .collect();
    if !has_message {
        for (id, label, about) in [
            ("tour", t!("first-tour"), t!("first-tour-about")),
            ("live", t!("first-live"), t!("first-live-about")),
        ] {
            options.push(json!({ "id": id, "label": label, "description": about }));
        }
    }
    json!([{
        "id": "whom",
        "text": t!("first-question"),
        "options": options,
        "allowFreeText": true,
    }])
}

/// The user's answer.
#[derive(Clone, Debug, PartialEq, Eq)]
enum ServerChoice {
    /// A server that was found, by name.
    Server(String),
    Gateway(String),
    Tour,
    Live,
}

/// Returns the user's choice; `None` for none.
fn choice(response: &ClarificationResponse, found: &[DiscoveredProvider]) -> Option<ServerChoice> {
    if response.outcome != Outcome::Answered {
        return None;
    }
    let answer = response.answers.first()?;
    if let Some(url) = answer.free_text.as_deref().map(str::trim).filter(|it| !it.is_empty()) {
        let url = if url.contains("://") {
            url.to_owned()
        } else {
            format!("https://{url}")
        };
        return Some(ServerChoice::Gateway(url));
    }
    let id = answer.selected_option_ids.first()?;
    if id == "tour" {
        return Some(ServerChoice::Tour);
    }
    if id == "live" {
        return Some(ServerChoice::Live);
    }
    let name = id.strip_prefix("use:")?;
    found
        .iter()
        .any(|it| it.name == name)
        .then(|| ServerChoice::Server(name.to_owned()))
}

impl Onboarding {
    fn open(&self, choice: &ServerChoice, found: &[DiscoveredProvider]) -> Result<Arc<dyn Link>> {
        let link = match choice {
            ServerChoice::Tour => {
                return Ok(Arc::new(Replay::start(&self.tour, tour_speed(), Audience::Present)));
            }
            ServerChoice::Live => {
                let stage = live_tour::TourFolder::create()?;
                let link = live_tour::link(&stage, tour_speed())?;
                self.tour_folders
                    .lock()
                    .unwrap_or_else(PoisonError::into_inner)
                    .push(stage);
                link.send(Command::Submit(live_tour::opening()));
                return Ok(link);
            }
            ServerChoice::Server(name) => {
                let found = found.iter().find(|it| it.name == *name);
                let found = found.ok_or_else(|| anyhow::anyhow!("{name} is no longer there"))?;
                open::local_agent(
                    &self.settings,
                    &found.provider(),
                    &self.environment,
                    Some(&self.workspace),
                    true,
                )?
            }
            ServerChoice::Gateway(url) => {
                let mut gateway = self.settings.gateway.clone();
                gateway.connection = gateway.connection.at(url);
                open::gateway(&self.settings, &gateway, &self.environment, None, true)?
            }
        };
        if let Some(recorder) = (self.record)(link.log()) {
            self.recorders
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .push(recorder);
        }
        Ok(link)
    }
}

fn tour_speed() -> Speed {
    Speed::parse(TOUR_SPEED).unwrap_or(Speed::Times(1.0))
}

/// One response, written by this module.
struct OnboardingPage {
    log: Arc<Log>,
    turn: Turn,
    count: u64,
    question: Option<(DocumentId, Value)>,
    is_over: bool,
}

impl OnboardingPage {
    fn new(log: &Arc<Log>) -> Self {
        Self {
            turn: log.turn(),
            log: Arc::clone(log),
            count: 0,
            question: None,
            is_over: false,
        }
    }

    fn say(&self, event: Event) {
        self.log.append(now_ms(), event);
    }

    fn begin(&self) {
        self.say(Event::ResponseStart(ResponseStart::default()));
    }

    fn start(&mut self, kind: Kind) -> DocumentId {
        self.count += 1;
        let id = DocumentId::numbered(self.count);
        self.say(Event::DocumentStart(DocumentStart {
            id: id.clone(),
            kind,
            sequence: Some(self.count),
            content: None,
            metadata: Map::new(),
        }));
        id
    }

    fn write(&mut self, kind: Kind, text: &str, metadata: Map<String, Value>) {
        let document = self.start(kind);
        self.say(Event::DocumentEnd {
            document,
            final_content: Some(text.into()),
            metadata,
        });
    }

    fn text(&mut self, text: &str) {
        self.write(Kind::Text, text, members([("format", "markdown".into())]));
    }

    fn error(&mut self, text: &str) {
        let (message, details) = text.split_once('\n').unwrap_or((text, ""));
        let details = details.trim().into();
        let metadata = members([
            ("errorCode", "INTERNAL".into()),
            ("source", "client".into()),
            ("details", details),
        ]);
        self.write(Kind::Error, message, metadata);
    }

    /// Opens a question and leaves it open.
    fn question(&mut self, found: &[DiscoveredProvider], has_message: bool) {
        let document = self.start(Kind::Clarification);
        let questions = question(found, has_message);
        self.say(Event::MetadataDelta {
            document: document.clone(),
            metadata: members([("kind", "question".into()), ("questions", questions.clone())]),
            append: Vec::new(),
        });
        self.question = Some((document, questions));
    }

    fn is_open(&self, turn: Turn, document: &DocumentId) -> bool {
        turn == self.turn && self.question.as_ref().is_some_and(|(it, _)| it == document)
    }

    fn answer(&mut self, response: &ClarificationResponse) {
        if let Some((document, questions)) = self.question.take() {
            self.say(Event::DocumentEnd {
                document,
                final_content: None,
                metadata: members([
                    ("kind", "question".into()),
                    ("questions", questions),
                    ("outcome", json!(response.outcome)),
                    ("answers", json!(response.answers)),
                ]),
            });
        }
    }

    /// Ends the response; an open question counts as skipped.
    fn close(&mut self) {
        let (reason, document) = match &self.question {
            Some((document, _)) => (FinishReason::Cancelled, document.clone()),
            None => (FinishReason::Stop, DocumentId::numbered(0)),
        };
        self.answer(&ClarificationResponse::new(document, Outcome::Skipped, Vec::new()));
        self.done(reason);
    }

    fn end(&mut self) {
        self.done(FinishReason::Stop);
    }

    fn done(&mut self, reason: FinishReason) {
        if !std::mem::replace(&mut self.is_over, true) {
            self.say(Event::Done(Done {
                status: Some(Status::Completed),
                finish_reason: Some(reason),
                ..Done::default()
            }));
        }
    }
}

fn members<const N: usize>(pairs: [(&str, Value); N]) -> Map<String, Value> {
    pairs
        .into_iter()
        .map(|(name, value)| (name.to_owned(), value))
        .collect()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::{
        protocol::{Address, Message, Mode, Position, View},
        transcript::Transcript,
    };

    fn found(name: &str, how: Evidence, models: &[&str]) -> DiscoveredProvider {
        DiscoveredProvider {
            name: name.to_owned(),
            title: name.to_uppercase(),
            kind: "openai",
            base_url: "http://127.0.0.1:1/v1".to_owned(),
            models: models.iter().map(|&it| it.to_owned()).collect(),
            how,
        }
    }

    fn answered(option: &str, free_text: Option<&str>) -> ClarificationResponse {
        serde_json::from_value(json!({
            "documentId": "doc_003", "outcome": "answered",
            "answers": [{ "questionId": "whom", "selectedOptionIds": [option], "freeText": free_text }],
        }))
        .expect("is an answer")
    }

    #[test]
    fn what_was_found_is_said_and_offered() {
        let key = |variable: &str| Evidence::Key {
            variable: variable.to_owned(),
        };
        let all = [
            found("this", key("THIS_KEY"), &[]),
            found("ollama", Evidence::Answered, &["qwen", "llama"]),
        ];
        let text = report(&all);
        assert!(text.contains("**THIS**: key in `THIS_KEY`"), "{text}");
        assert!(
            text.contains("**OLLAMA** at http://127.0.0.1:1/v1, with `qwen` and 1 more"),
            "{text}"
        );
        let questions = question(&all, false);
        let ids: Vec<_> = questions[0]["options"]
            .as_array()
            .expect("a list")
            .iter()
            .map(|it| it["id"].as_str().expect("a text"))
            .collect();
        assert_eq!(ids, ["use:this", "use:ollama", "tour", "live"]);
        let with_message = question(&all, true);
        assert_eq!(with_message[0]["options"].as_array().map(Vec::len), Some(2));
        assert!(report(&[]).contains("OPENAI_API_KEY") && report(&[]).contains("sheaf login"));
    }

    #[test]
    fn an_answer_is_a_server_a_gateway_the_tour_or_nothing() {
        let all = [found("ollama", Evidence::Answered, &[])];
        for (option, text, wants) in [
            ("use:ollama", None, Some(ServerChoice::Server("ollama".to_owned()))),
            ("use:other", None, None),
            ("tour", None, Some(ServerChoice::Tour)),
            ("live", None, Some(ServerChoice::Live)),
            (
                "",
                Some(" docs.example "),
                Some(ServerChoice::Gateway("https://docs.example".to_owned())),
            ),
            (
                "",
                Some("http://localhost:1"),
                Some(ServerChoice::Gateway("http://localhost:1".to_owned())),
            ),
            ("odd", Some("  "), None),
        ] {
            assert_eq!(choice(&answered(option, text), &all), wants, "{option} {text:?}");
        }
    }

    /// Applies what comes until the condition holds.
    async fn follow(link: &Arc<dyn Link>, holds: impl Fn(&Transcript) -> bool) -> Transcript {
        let mut follower = link.log().follow(Position(0));
        let mut transcript = Transcript::default();
        while !holds(&transcript) {
            let mut batch = Vec::new();
            let more = tokio::time::timeout(Duration::from_secs(10), follower.next(&mut batch)).await;
            assert!(more.expect("something comes"), "the log ended");
            transcript.apply_all(&batch);
        }
        transcript
    }

    #[tokio::test]
    async fn the_answer_puts_another_link_in_place_and_early_messages_reach_it() {
        let (switch, mut switched) = mpsc::unbounded_channel();
        let tour = super::super::tour().expect("it can be played");
        let link = start(Onboarding {
            settings: Settings::default(),
            environment: Environment::default(),
            workspace: std::env::temp_dir(),
            tour,
            switch,
            record: Box::new(|_| None),
            recorders: Arc::default(),
            tour_folders: Arc::default(),
        });
        let transcript = follow(&link, |it| it.open_question().is_some()).await;
        let place = transcript.open_question().expect("a question is open");
        assert_eq!(
            transcript.address(place),
            Some(Address {
                turn: Turn(0),
                number: 3
            })
        );
        link.send(Command::Submit(Submit {
            message: Message::user("early"),
            mode: Mode::Agent,
            model: None,
        }));
        let transcript = follow(&link, |it| it.exchanges.len() == 2 && it.open_question().is_some()).await;
        let place = transcript.open_question().expect("it is asked again");
        let document = transcript.get(place).expect("it is there");
        // A tour would answer the message.
        assert!(matches!(
            document.view(),
            View::Clarification(it) if it.questions[0].options.iter().all(|it| it.id.starts_with("use:"))
        ));
        let mut response = answered("", Some("not an address at all"));
        response.document_id = document.id.clone();
        link.send(Command::Answer {
            turn: Turn(1),
            response,
        });
        let transcript = follow(&link, |it| {
            it.exchanges.len() == 2
                && it.exchanges[1]
                    .response
                    .documents
                    .iter()
                    .any(|it| it.kind == Kind::Error)
                && it.open_question().is_some()
        })
        .await;
        let place = transcript.open_question().expect("it is asked a third time");
        let mut response = answered("", Some("http://127.0.0.1:9"));
        response.document_id = transcript.get(place).expect("it is there").id.clone();
        link.send(Command::Answer {
            turn: Turn(1),
            response,
        });
        let chosen = switched.recv().await.expect("a link comes");
        let log = chosen.log().after(Position(0));
        let is_early = |it: &Event| matches!(it, Event::UserMessage(message) if message.content == "early");
        assert!(!chosen.about().is_replay);
        assert!(log.iter().any(|it| is_early(&it.event)), "{log:?}");
    }
}
