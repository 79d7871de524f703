//! A conversation with a server over the runner, as a consumer has it.

mod breaks;
mod cancel;
mod claude;
mod left;
mod long;
mod real;

use std::{sync::Arc, time::Duration};

use pretty_assertions::assert_eq;
use serde_json::{Value, json};
use tokio::task::JoinHandle;

use super::{Setup, run};
use crate::{
    agent::prompt,
    config::{self, Connection, Environment, Settings},
    journal::{Follower, Log},
    link::{About, AskError, Asker, Link, SandboxStatus, local::Local},
    models::{self, Provider, Roles},
    net::test_server::{self, STREAM, Socket, page},
    protocol::{
        ClarificationResponse, Command, Entry, Event, Message, Mode, Outcome, Position, Progress, Query, Reply, Submit,
        Turn,
    },
    sandbox::Workspace,
    transcript::Transcript,
};

/// A conversation with a server, as a consumer has it.
struct Conversation {
    link: Local,
    follower: Follower,
    transcript: Transcript,
    seen: Vec<Arc<Entry>>,
    agent: JoinHandle<()>,
    /// Settings of its server, where a test needs them again.
    provider: config::Provider,
    /// Time without an event after which none is expected.
    patience: Duration,
}

impl Conversation {
    fn with(url: &str) -> Self {
        Self::over(config::Provider {
            connection: Connection::default().at(url),
            ..config::Provider::default()
        })
    }

    /// With a provider that asks once and never again.
    fn once(url: &str) -> Self {
        let mut connection = Connection::default().at(url);
        connection.retries = 0;
        Self::over(config::Provider {
            connection,
            ..config::Provider::default()
        })
    }

    fn over(settings: config::Provider) -> Self {
        Self::of(models::open(&settings, &Environment::default()).expect("sound settings"))
    }

    fn of(provider: Arc<dyn Provider>) -> Self {
        Self::about(Log::new(), provider)
    }

    /// One that goes on.
    fn about(log: Arc<Log>, provider: Arc<dyn Provider>) -> Self {
        Self::in_workspace(log, provider, None, Asker::Here)
    }

    fn in_workspace(
        log: Arc<Log>,
        provider: Arc<dyn Provider>,
        workspace: Option<Arc<Workspace>>,
        asker: Asker,
    ) -> Self {
        Self::with_paths(log, provider, workspace, asker, None)
    }

    fn with_paths(
        log: Arc<Log>,
        provider: Arc<dyn Provider>,
        workspace: Option<Arc<Workspace>>,
        asker: Asker,
        paths: Option<config::Paths>,
    ) -> Self {
        let (link, inbox) = Local::new(
            Arc::clone(&log),
            About {
                peer: provider.peer().to_owned(),
                ..About::default()
            },
        );
        let setup = Setup {
            servers: None,
            provider,
            model: "m".to_owned(),
            conversation: "conv_1".into(),
            asker,
            workspace,
            settings: Arc::default(),
            tools: crate::tools::ToolSet::default(),
            roles: Arc::new(Roles::new(&Settings::default(), &Environment::default())),
            index: Arc::default(),
            embeddings: Arc::default(),
            paths,
            hold: SandboxStatus::default(),
        };
        let agent = tokio::spawn(run(setup, Arc::clone(&log), inbox));
        let follower = log.follow(Position(0));
        Self {
            link,
            follower,
            transcript: Transcript::default(),
            seen: Vec::new(),
            agent,
            provider: config::Provider::default(),
            patience: Duration::from_secs(20),
        }
    }

    fn say(&self, message: &str) {
        self.submit(message, Mode::Agent, None);
    }

    fn submit(&self, message: &str, mode: Mode, model: Option<&str>) {
        self.link.send(Command::Submit(Submit {
            message: Message::user(message),
            mode,
            model: model.map(str::to_owned),
        }));
    }

    /// Reads the log until `is_there` holds of what was read.
    async fn until(&mut self, what: &str, is_there: impl Fn(&Self) -> bool) {
        while !is_there(self) {
            let mut batch = Vec::new();
            let next = tokio::time::timeout(self.patience, self.follower.next(&mut batch)).await;
            assert!(
                next.unwrap_or_else(|_| panic!("still no {what}: {:#?}", self.seen)),
                "the log ended before {what}"
            );
            self.transcript.apply_all(&batch);
            self.seen.extend(batch);
        }
    }

    async fn until_done(&mut self, turns: usize) {
        self.until("done", |it| it.ended() == turns).await;
    }

    fn ended(&self) -> usize {
        self.transcript
            .exchanges
            .iter()
            .filter(|it| !it.response.is_running())
            .count()
    }

    fn has_progress(&self, is: fn(&Progress) -> bool) -> bool {
        self.seen
            .iter()
            .any(|it| matches!(&it.event, Event::Progress(progress) if is(progress)))
    }

    /// The documents of an answer, and how it ended.
    fn shown(&self, turn: usize) -> String {
        let response = &self
            .transcript
            .exchanges
            .get(turn - 1)
            .expect("the turn is there")
            .response;
        let mut shown: Vec<String> = response
            .documents
            .iter()
            .map(|it| {
                let code = it
                    .metadata
                    .get("errorCode")
                    .and_then(Value::as_str)
                    .map(|it| format!(" {it}"));
                let cut = if it.is_incomplete() { " incomplete" } else { "" };
                format!("{}{}{cut} {:?}", it.kind, code.unwrap_or_default(), it.text())
            })
            .collect();
        let ending = response.ending.as_ref().expect("it ended");
        shown.push(format!("{} {}", ending.status, ending.finish_reason));
        shown.join(" | ")
    }
}

fn chunk(text: &str) -> String {
    format!("data: {}\n\n", json!({ "choices": [{ "delta": { "content": text } }] }))
}

const END: &str = concat!(
    "data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n",
    "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":7,\"completion_tokens\":3}}\n\n",
    "data: [DONE]\n\n"
);

fn answer(text: &str) -> String {
    format!("{STREAM}{}{END}", chunk(text))
}

/// The JSON body of a request as it came.
fn body(request: &str) -> Value {
    let (_, body) = request.split_once("\r\n\r\n").expect("a head and a body");
    serde_json::from_str(body).expect("JSON")
}

/// The system prompt of a conversation without tools.
fn system(model: &str) -> Arc<str> {
    prompt::system(&prompt::Facts {
        model,
        parallel: true,
        ..prompt::Facts::default()
    })
}

fn asks(mode: Mode, was: Option<Mode>, text: &str) -> String {
    prompt::query(text, prompt::reminder(mode, was, &prompt::Facts::default()).as_slice())
}

#[tokio::test]
async fn a_conversation_goes_on_with_what_was_said() {
    let (told, mut diary) = test_server::diary();
    let url = test_server::listen(move |mut socket: Socket| {
        let told = told.clone();
        async move {
            told.send(body(&socket.request().await)).ok();
            socket.send(answer("Look:\n```12:13:src/a.rs\nx\n```\nDone.")).await;
        }
    })
    .await;
    let mut conversation = Conversation::with(&url);
    conversation.say("# Show me\nthe code");
    conversation.until_done(1).await;
    assert_eq!(
        conversation.shown(1),
        r#"text "Look:" | code_reference "x" | text "Done." | completed stop"#
    );
    assert_eq!(conversation.transcript.title(), Some("Show me"));
    conversation.submit("and now?", Mode::Plan, Some("other"));
    conversation.until_done(2).await;
    assert_eq!(
        diary.next().await,
        json!({
            "model": "m",
            "stream": true,
            "stream_options": { "include_usage": true },
            "messages": [
                { "role": "system", "content": system("m") },
                { "role": "user", "content": asks(Mode::Agent, None, "# Show me\nthe code") },
            ],
        })
    );
    assert_eq!(
        diary.next().await,
        json!({
            "model": "other",
            "stream": true,
            "stream_options": { "include_usage": true },
            "messages": [
                { "role": "system", "content": system("other") },
                { "role": "user", "content": asks(Mode::Agent, None, "# Show me\nthe code") },
                { "role": "assistant", "content": "Look:\n```12:13:src/a.rs\nx\n```\nDone." },
                { "role": "user", "content": asks(Mode::Plan, Some(Mode::Agent), "and now?") },
            ],
        })
    );
    let [first, second] = conversation.transcript.exchanges.as_slice() else {
        panic!("two turns")
    };
    assert_eq!(
        (first.response.model.as_deref(), second.response.model.as_deref()),
        (Some("m"), Some("other"))
    );
    assert_eq!(
        (first.response.mode, second.response.mode),
        (Some(Mode::Agent), Some(Mode::Plan))
    );
    assert_eq!(first.response.usage.total_tokens, 10);
    assert_ne!(first.response.origin.id, second.response.origin.id);
}

#[tokio::test]
async fn a_slow_answer_is_shown_as_it_comes() {
    let (go_on, wait) = tokio::sync::watch::channel(0);
    let url = test_server::listen(move |mut socket: Socket| {
        let mut wait = wait.clone();
        async move {
            socket.request().await;
            socket.send(format!("{STREAM}{}", chunk("one "))).await;
            wait.wait_for(|it| *it >= 1).await.ok();
            // In two parts, the first of which ends in the middle of a character.
            let whole = chunk("zwö").into_bytes();
            let inside = whole.iter().position(|it| !it.is_ascii()).expect("the ö") + 1;
            let (head, tail) = whole.split_at(inside);
            socket.send(head).await;
            wait.wait_for(|it| *it >= 2).await.ok();
            socket.send(tail).await;
            socket.send(END).await;
        }
    })
    .await;
    let mut conversation = Conversation::with(&url);
    conversation.say("hi");
    let text = |it: &Conversation| {
        let exchange = it.transcript.exchanges.first();
        exchange
            .and_then(|it| it.response.documents.first())
            .map(|it| it.text().to_owned())
    };
    conversation
        .until("the first word", |it| text(it).as_deref() == Some("one"))
        .await;
    assert!(conversation.transcript.is_running());
    go_on.send_replace(1);
    go_on.send_replace(2);
    conversation.until_done(1).await;
    assert_eq!(conversation.shown(1), r#"text "one zwö" | completed stop"#);
}

#[tokio::test]
async fn messages_that_come_early_wait_for_their_turn() {
    let url = test_server::listen(|mut socket: Socket| async move {
        let request = body(&socket.request().await);
        let count = request["messages"].as_array().map_or(0, Vec::len);
        socket.send(answer(&format!("{count} messages"))).await;
    })
    .await;
    let mut conversation = Conversation::with(&url);
    conversation.say("one");
    conversation.say("two");
    conversation.say("three");
    conversation.until_done(3).await;
    let shown: Vec<String> = (1..=3).map(|it| conversation.shown(it)).collect();
    let want = ["2", "4", "6"].map(|it| format!("text \"{it} messages\" | completed stop"));
    assert_eq!(shown, want);
}

#[tokio::test]
async fn what_cannot_be_done_is_said() {
    let url = test_server::answer(page(
        "200 OK",
        "application/json",
        "{\"data\":[{\"id\":\"a\"},{\"id\":\"b\"}]}",
    ))
    .await;
    let mut conversation = Conversation::with(&url);
    conversation.link.send(Command::Cancel);
    conversation.link.send(Command::Answer {
        turn: Turn(1),
        response: ClarificationResponse {
            document_id: "doc_001".into(),
            outcome: Outcome::Skipped,
            answers: Vec::new(),
            reason: None,
        },
    });
    conversation.until("a notice", |it| !it.seen.is_empty()).await;
    let codes: Vec<_> = conversation
        .seen
        .iter()
        .map(|it| match &it.event {
            Event::Notice(notice) => notice.code.clone(),
            other => format!("{other:?}"),
        })
        .collect();
    assert_eq!(codes, ["no-question"]);
    let models = conversation.link.ask(Query::Models).await.expect("a list");
    assert_eq!(models, Reply::Models(vec!["a".to_owned(), "b".to_owned()]));
    let nobody = Conversation::with(&test_server::nobody().await);
    let error = nobody.link.ask(Query::Models).await.expect_err("nobody is there");
    assert!(matches!(error, AskError::Failed { .. }), "{error:?}");
    let refused = conversation.link.ask(Query::CheckRule("Shell(".to_owned())).await;
    let error = refused.expect_err("this is no rule");
    assert!(matches!(error, AskError::Refused(_)), "{error:?}");
    assert!(error.to_string().contains("Shell("), "the rule is named: {error}");
}

#[tokio::test]
async fn a_side_question_counts_as_spend_and_is_no_turn() {
    let url = test_server::answer(answer("Because of the sums.")).await;
    let mut conversation = Conversation::with(&url);
    let asked = conversation.link.ask(Query::SideQuestion("why?".to_owned())).await;
    let Ok(Reply::SideAnswer(said)) = asked else {
        panic!("{asked:?}")
    };
    assert_eq!(
        (said.text.as_str(), said.problem.as_str()),
        ("Because of the sums.", "")
    );
    conversation.until("the notice", |it| !it.seen.is_empty()).await;
    assert!(conversation.transcript.exchanges.is_empty());
    let (_, total) = conversation.transcript.usage();
    assert_eq!((total.prompt_tokens, total.completion_tokens), (7, 3));
}
