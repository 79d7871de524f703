//! Runs turns: takes letters, polls the model, appends to the log. The only part of the agent that touches the world.

use std::{collections::VecDeque, sync::Arc, time::Duration};

use futures::{FutureExt, StreamExt};

use super::{
    history,
    turn::{Effect, Input, Submission, Turn},
};
use crate::{
    journal::{Flood, Log, TooMany},
    link::{
        AskError,
        local::{Inbox, Letter},
    },
    model::{Failure, FailureKind, Piece, PieceStream, Provider},
    protocol::{Command, ConversationId, Event, Notice, Position, Query, Reply, ResponseId, Severity, Submit},
};

/// Whom to ask, and in which conversation.
pub struct Setup {
    pub provider: Arc<dyn Provider>,
    /// Where a message names none; empty: the server's first.
    pub model: String,
    pub conversation: ConversationId,
    /// Somebody looks at the screen.
    pub is_attended: bool,
}

/// A start is not the time to read certificates; a moment later nobody waits for them.
const WARM_UP: Duration = Duration::from_millis(200);

/// Answers until the other end of `inbox` has gone; then the running answer is cancelled and the log closed.
pub async fn run(setup: Setup, log: Arc<Log>, inbox: Inbox) {
    let warm = setup.provider.warm();
    let driver = Driver {
        setup,
        log,
        inbox,
        turn: Turn::default(),
        stream: None,
        flood: Flood::default(),
        queue: VecDeque::new(),
    };
    let warm = async {
        tokio::time::sleep(WARM_UP).await;
        warm.await;
        std::future::pending::<()>().await;
    };
    tokio::select! {
        () = driver.work() => {}
        () = warm => {}
    }
}

struct Driver {
    setup: Setup,
    log: Arc<Log>,
    inbox: Inbox,
    turn: Turn,
    stream: Option<PieceStream>,
    /// What the running answer costs.
    flood: Flood,
    /// Messages that came while an answer was being made: each opens a turn of its own after it.
    queue: VecDeque<Submit>,
}

/// As much text as one piece of a flood may become.
const GATHERED_BYTES: usize = 64 << 10;

enum Happened {
    Letter(Option<Letter>),
    Input(Input),
}

impl Driver {
    async fn work(mut self) {
        loop {
            let happened = match &mut self.stream {
                None => Happened::Letter(self.inbox.recv().await),
                // A letter first: whoever wants to stop a flood must get through.
                Some(stream) => tokio::select! {
                    biased;
                    letter = self.inbox.recv() => Happened::Letter(letter),
                    piece = stream.next() => Happened::Input(Input::Piece(piece.unwrap_or_else(endless))),
                },
            };
            match happened {
                Happened::Letter(Some(Letter::Command(command))) => self.obey(command),
                Happened::Letter(Some(Letter::Ask(query, reply))) => self.ask(query, reply),
                Happened::Letter(None) => {
                    self.step(Input::Cancel);
                    self.log.close();
                    return;
                }
                Happened::Input(input) => {
                    let (input, next) = self.gather(input);
                    self.step(input);
                    if let Some(next) = next {
                        self.step(next);
                    }
                }
            }
            if !self.turn.is_running()
                && let Some(submit) = self.queue.pop_front()
            {
                self.submit(submit);
            }
        }
    }

    /// In a flood, adds to a piece of text what is there already, and returns what came behind that.
    fn gather(&mut self, input: Input) -> (Input, Option<Input>) {
        let (mut text, stream) = match (input, &mut self.stream) {
            (Input::Piece(Piece::Text(text)), Some(stream)) => (text, stream),
            (other, _) => return (other, None),
        };
        let mut next = None;
        if self.flood.is_high() {
            while text.len() < GATHERED_BYTES {
                match stream.next().now_or_never() {
                    None => break,
                    Some(Some(Piece::Text(more))) => text.push_str(&more),
                    Some(other) => {
                        next = Some(Input::Piece(other.unwrap_or_else(endless)));
                        break;
                    }
                }
            }
        }
        (Input::Piece(Piece::Text(text)), next)
    }

    fn obey(&mut self, command: Command) {
        match command {
            Command::Submit(submit) => self.queue.push_back(submit),
            Command::Cancel => self.step(Input::Cancel),
            Command::Update {
                turn,
                document,
                metadata,
            } => {
                self.log
                    .append_to(turn, now_ms(), Event::DocumentUpdate { document, metadata });
            }
            Command::Answer { .. } => {
                let notice = Notice {
                    severity: Severity::Warning,
                    code: "no-question".to_owned(),
                    message: "no question is open: the answer was left out".to_owned(),
                    document: None,
                };
                self.log.append(now_ms(), Event::Notice(notice));
            }
        }
    }

    fn submit(&mut self, submit: Submit) {
        let submission = Submission {
            history: history::messages(&self.log.after(Position(0))),
            message: submit.message,
            mode: submit.mode,
            model: submit.model.unwrap_or_else(|| self.setup.model.clone()),
            conversation: self.setup.conversation.clone(),
            response: ResponseId::fresh(),
            is_attended: self.setup.is_attended,
        };
        self.step(Input::Submit(Box::new(submission)));
    }

    fn step(&mut self, input: Input) {
        let now = now_ms();
        let mut is_too_much = false;
        for effect in self.turn.step(input, now) {
            match effect {
                Effect::Append(event) => {
                    if matches!(event, Event::UserMessage(_)) {
                        self.flood = Flood::default();
                    }
                    is_too_much |= self.flood.count(&event) == Err(TooMany);
                    self.log.append(now, event);
                }
                Effect::CallModel(request) => self.stream = Some(self.setup.provider.stream(request)),
                Effect::StopModel => self.stream = None,
            }
        }
        if is_too_much && self.turn.is_running() {
            let message = "the answer has more pieces than can be kept";
            let failure = Failure::new(FailureKind::Oversized, message);
            self.step(Input::Piece(Piece::Error(failure)));
        }
        if !self.turn.is_running() {
            self.stream = None;
        }
    }

    /// Asks the server beside the answer that may be running.
    fn ask(&self, query: Query, reply: tokio::sync::oneshot::Sender<Result<Reply, AskError>>) {
        let peer = self.setup.provider.peer().to_owned();
        match query {
            Query::Models => {
                let models = self.setup.provider.models();
                tokio::spawn(async move {
                    let answer = match models.await {
                        Ok(models) => Ok(Reply::Models(models.into_iter().map(|it| it.id).collect())),
                        Err(failure) => Err(AskError::Failed {
                            peer,
                            source: failure.into(),
                        }),
                    };
                    // Nobody may be waiting any more.
                    let _ = reply.send(answer);
                });
            }
            Query::Files { .. } | Query::Context => {
                let _ = reply.send(Err(AskError::Unsupported { peer }));
            }
        }
    }
}

/// The end of an answer whose provider forgot it: the conversation must not hang.
fn endless() -> Piece {
    let message = "the provider stopped without a word";
    Piece::Error(Failure::new(FailureKind::Interrupted, message))
}

fn now_ms() -> u64 {
    u64::try_from(chrono::Utc::now().timestamp_millis()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use std::{io::Write, time::Instant};

    use pretty_assertions::assert_eq;
    use serde_json::{Value, json};
    use tokio::{net::TcpSocket, task::JoinHandle};

    use super::*;
    use crate::{
        agent::prompt,
        config::{self, Connection, Environment},
        journal::Follower,
        link::{About, Link, local::Local},
        model::{self, Model, ModelRequest, Promise},
        net::peer::{self, STREAM, Socket, page},
        protocol::{Entry, FinishReason, Kind, Message, Mode, Progress, Status},
        transcript::Transcript,
    };

    fn system(mode: Mode, model: &str) -> String {
        prompt::system(&prompt::Facts {
            mode,
            model,
            ..prompt::Facts::default()
        })
    }

    /// A conversation with a server, as a consumer has it.
    struct Conversation {
        link: Local,
        follower: Follower,
        transcript: Transcript,
        seen: Vec<Arc<Entry>>,
        agent: JoinHandle<()>,
        /// How long nothing may come before nothing will.
        patience: Duration,
    }

    impl Conversation {
        fn with(url: &str) -> Self {
            Self::over(config::Provider {
                connection: Connection::default().at(url),
                ..config::Provider::default()
            })
        }

        fn over(settings: config::Provider) -> Self {
            Self::of(model::open(&settings, &Environment::default()).expect("sound settings"))
        }

        fn of(provider: Arc<dyn Provider>) -> Self {
            let log = Log::new();
            let (link, inbox) = Local::new(
                Arc::clone(&log),
                About {
                    peer: provider.peer().to_owned(),
                    ..About::default()
                },
            );
            let setup = Setup {
                provider,
                model: "m".to_owned(),
                conversation: "conv_1".into(),
                is_attended: true,
            };
            let agent = tokio::spawn(run(setup, Arc::clone(&log), inbox));
            let follower = log.follow(Position(0));
            Self {
                link,
                follower,
                transcript: Transcript::default(),
                seen: Vec::new(),
                agent,
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

    #[tokio::test]
    async fn a_conversation_goes_on_with_what_was_said() {
        let (told, mut diary) = peer::diary();
        let url = peer::listen(move |mut socket: Socket| {
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
        assert_eq!(conversation.transcript.title.as_deref(), Some("Show me"));
        conversation.submit("and now?", Mode::Plan, Some("other"));
        conversation.until_done(2).await;
        assert_eq!(
            diary.next().await,
            json!({
                "model": "m",
                "stream": true,
                "stream_options": { "include_usage": true },
                "messages": [
                    { "role": "system", "content": system(Mode::Agent, "m") },
                    { "role": "user", "content": "# Show me\nthe code" },
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
                    { "role": "system", "content": system(Mode::Plan, "other") },
                    { "role": "user", "content": "# Show me\nthe code" },
                    { "role": "assistant", "content": "Look:\n\n```12:13:src/a.rs\nx\n```\n\nDone." },
                    { "role": "user", "content": "and now?" },
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
        assert_ne!(first.response.id, second.response.id);
    }

    #[tokio::test]
    async fn a_slow_answer_is_shown_as_it_comes() {
        let (go_on, wait) = tokio::sync::watch::channel(0);
        let url = peer::listen(move |mut socket: Socket| {
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
    async fn an_answer_that_breaks_off_keeps_what_came() {
        let cases = [
            (
                "cut",
                format!("{STREAM}{}", chunk("so far")),
                r#"text incomplete "so far" | error STREAM_INTERRUPTED "the answer broke off before its end" | error interrupted"#,
            ),
            (
                "cut in a fence",
                format!("{STREAM}{}", chunk("a\n```c\nx")),
                r#"text "a" | code_block incomplete "x" | error STREAM_INTERRUPTED "the answer broke off before its end" | error interrupted"#,
            ),
            (
                "an error in mid-stream",
                format!("{STREAM}{}data: {{\"error\":\"boom\"}}\n\n", chunk("so far")),
                r#"text incomplete "so far" | error LLM_BAD_RESPONSE "the server reported an error" | error error"#,
            ),
            (
                "an error at once",
                page("401 No", "application/json", "{\"error\":{\"message\":\"no\"}}"),
                r#"error LLM_AUTH "the server does not accept the key" | error error"#,
            ),
            (
                "the body is shorter than promised",
                page("200 OK", "text/event-stream", &chunk("so far")).replace("Length: ", "Length: 9"),
                r#"text incomplete "so far" | error STREAM_INTERRUPTED "the connection to URL broke in the middle of the answer" | error interrupted"#,
            ),
        ];
        for (name, answer, want) in cases {
            let url = peer::answer(answer).await;
            let mut conversation = Conversation::with(&url);
            conversation.say("hi");
            conversation.until_done(1).await;
            assert_eq!(conversation.shown(1), want.replace("URL", &url), "{name}");
        }
    }

    #[tokio::test]
    async fn a_server_that_falls_silent_is_given_up() {
        let url = peer::listen(|mut socket: Socket| async move {
            socket.request().await;
            socket.send(format!("{STREAM}{}", chunk("so far"))).await;
            socket.hang().await;
        })
        .await;
        let mut connection = Connection::default().at(&url);
        connection.idle_timeout = Duration::from_millis(100);
        let mut conversation = Conversation::over(config::Provider {
            connection,
            ..config::Provider::default()
        });
        conversation.say("hi");
        conversation.until_done(1).await;
        assert_eq!(
            conversation.shown(1),
            format!(
                "text incomplete \"so far\" | error STREAM_INTERRUPTED \"{url} fell silent: no byte for 100 ms\" | error interrupted"
            )
        );
    }

    #[tokio::test]
    async fn a_busy_server_is_asked_again_with_a_countdown() {
        let (told, mut diary) = peer::diary();
        let url = peer::listen(move |mut socket: Socket| {
            let told = told.clone();
            async move {
                socket.request().await;
                told.send(()).ok();
                let busy = page("429 Slow", "application/json", "{\"error\":\"slow down\"}");
                socket
                    .send(busy.replace("\r\n\r\n", "\r\nRetry-After: 1\r\n\r\n"))
                    .await;
            }
        })
        .await;
        let mut conversation = Conversation::with(&url);
        conversation.say("hi");
        let is_counting = |it: &Progress| matches!(it, Progress::Retrying { attempt: 1, of: 3, .. });
        conversation
            .until("the countdown", |it| it.has_progress(is_counting))
            .await;
        diary.next().await;
        diary.next().await;
        conversation.link.send(Command::Cancel);
        conversation.until_done(1).await;
        assert_eq!(conversation.shown(1), "completed cancelled");
    }

    /// Cancels once `ready`, and sees that the answer ends and `closed` comes within 100 ms, at best of three.
    async fn cancel_is_quick(
        name: &str,
        url: &str,
        ready: fn(&Conversation) -> bool,
        mut closed: Option<peer::Diary<()>>,
    ) {
        let mut best = Duration::MAX;
        for _ in 0..3 {
            let mut conversation = Conversation::with(url);
            conversation.say("hi");
            conversation.until(name, ready).await;
            let start = Instant::now();
            conversation.link.send(Command::Cancel);
            conversation.until_done(1).await;
            if let Some(closed) = &mut closed {
                closed.next().await;
            }
            best = best.min(start.elapsed());
            let ending = conversation
                .transcript
                .exchanges
                .first()
                .and_then(|it| it.response.ending.clone());
            let ending = ending.expect("it ended");
            assert_eq!(
                (ending.status, ending.finish_reason),
                (Status::Completed, FinishReason::Cancelled),
                "{name}"
            );
        }
        assert!(best < Duration::from_millis(100), "{name}: {best:?}");
    }

    #[tokio::test]
    async fn cancelling_takes_effect_at_once_while_connecting() {
        // A server whose queue of connections is full answers no more handshakes.
        let socket = TcpSocket::new_v4().expect("a socket");
        socket.bind("127.0.0.1:0".parse().expect("an address")).expect("a port");
        let listener = socket.listen(1).expect("a listener");
        let address = listener.local_addr().expect("an address");
        let mut waiting = Vec::new();
        for _ in 0..8 {
            waiting.push(tokio::spawn(tokio::net::TcpStream::connect(address)));
        }
        let is_connecting = |it: &Conversation| it.has_progress(|it| matches!(it, Progress::Waiting { .. }));
        cancel_is_quick(
            "a connection that hangs",
            &format!("http://{address}"),
            is_connecting,
            None,
        )
        .await;
        drop(listener);
    }

    #[tokio::test]
    async fn cancelling_takes_effect_at_once_while_waiting() {
        let (told, diary) = peer::diary();
        let url = peer::listen(move |mut socket: Socket| {
            let told = told.clone();
            async move {
                socket.request().await;
                socket.closed().await;
                told.send(()).ok();
            }
        })
        .await;
        let is_waiting = |it: &Conversation| it.has_progress(|it| matches!(it, Progress::Waiting { .. }));
        cancel_is_quick("the first byte", &url, is_waiting, Some(diary)).await;
    }

    #[tokio::test]
    async fn cancelling_takes_effect_at_once_in_a_flood() {
        let (told, diary) = peer::diary();
        let url = peer::listen(move |mut socket: Socket| {
            let told = told.clone();
            async move {
                use tokio::io::AsyncWriteExt;
                socket.request().await;
                socket.send(STREAM).await;
                let flood = chunk("word ").repeat(100);
                while socket.stream.write_all(flood.as_bytes()).await.is_ok() {}
                told.send(()).ok();
            }
        })
        .await;
        let is_flooded = |it: &Conversation| {
            it.transcript
                .exchanges
                .iter()
                .any(|it| !it.response.documents.is_empty())
        };
        cancel_is_quick("the first word", &url, is_flooded, Some(diary)).await;
    }

    #[tokio::test]
    async fn a_flood_of_tiny_pieces_is_joined_and_whole() {
        let url = peer::listen(|mut socket: Socket| async move {
            socket.request().await;
            socket.send(STREAM).await;
            for _ in 0..600 {
                socket.send(&chunk("xy").repeat(100)).await;
            }
            socket.send("data: [DONE]\n\n").await;
        })
        .await;
        let mut conversation = Conversation::with(&url);
        conversation.say("go");
        conversation.until_done(1).await;
        let response = &conversation.transcript.exchanges[0].response;
        assert_eq!(response.documents[0].text().len(), 120_000);
        let pieces = conversation.seen.len();
        assert!(pieces < 50_000, "{pieces} events for 60000 pieces");
    }

    #[tokio::test]
    async fn an_answer_of_nothing_but_documents_ends() {
        let url = peer::listen(|mut socket: Socket| async move {
            use tokio::io::AsyncWriteExt;
            socket.request().await;
            socket.send(STREAM).await;
            let flood = chunk(&"```\nx\n```\n".repeat(1000));
            while socket.stream.write_all(flood.as_bytes()).await.is_ok() {}
        })
        .await;
        let mut conversation = Conversation::with(&url);
        conversation.say("go");
        conversation.until_done(1).await;
        let response = &conversation.transcript.exchanges[0].response;
        assert!(response.documents.len() < 70_000, "{}", response.documents.len());
        let ending = response.ending.as_ref().expect("it ended");
        assert_eq!(ending.status, Status::Error);
    }

    #[tokio::test]
    async fn messages_that_come_early_wait_for_their_turn() {
        let url = peer::listen(|mut socket: Socket| async move {
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
        let url = peer::answer(page(
            "200 OK",
            "application/json",
            "{\"data\":[{\"id\":\"a\"},{\"id\":\"b\"}]}",
        ))
        .await;
        let mut conversation = Conversation::with(&url);
        conversation.link.send(Command::Cancel);
        conversation.link.send(Command::Answer {
            turn: crate::protocol::Turn(1),
            response: crate::protocol::ClarificationResponse {
                document_id: "doc_001".into(),
                outcome: crate::protocol::Outcome::Skipped,
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
        let nobody = Conversation::with(&peer::nobody().await);
        let error = nobody.link.ask(Query::Models).await.expect_err("nobody is there");
        assert!(matches!(error, AskError::Failed { .. }), "{error:?}");
    }

    /// A provider that breaks its promise.
    struct Mute;

    impl Provider for Mute {
        fn peer(&self) -> &'static str {
            "nobody"
        }

        fn stream(&self, _: ModelRequest) -> PieceStream {
            Box::pin(futures::stream::iter([Piece::Text("so far".to_owned())]))
        }

        fn warm(&self) -> Promise<()> {
            Box::pin(std::future::ready(()))
        }

        fn models(&self) -> Promise<Result<Vec<Model>, Failure>> {
            Box::pin(std::future::ready(Ok(Vec::new())))
        }
    }

    #[tokio::test]
    async fn a_provider_that_forgets_its_end_does_not_hang_the_conversation() {
        let mut conversation = Conversation::of(Arc::new(Mute));
        conversation.say("hi");
        conversation.until_done(1).await;
        assert_eq!(
            conversation.shown(1),
            r#"text incomplete "so far" | error STREAM_INTERRUPTED "the provider stopped without a word" | error interrupted"#
        );
    }

    #[tokio::test]
    async fn when_the_consumer_goes_the_answer_is_dropped_and_the_log_ends() {
        let (told, mut diary) = peer::diary();
        let url = peer::listen(move |mut socket: Socket| {
            let told = told.clone();
            async move {
                socket.request().await;
                socket.send(format!("{STREAM}{}", chunk("so far"))).await;
                socket.closed().await;
                told.send(()).ok();
            }
        })
        .await;
        let mut conversation = Conversation::with(&url);
        conversation.say("hi");
        let has_text = |it: &Conversation| {
            it.transcript
                .exchanges
                .iter()
                .any(|it| !it.response.documents.is_empty())
        };
        conversation.until("the first word", has_text).await;
        let Conversation {
            link,
            mut follower,
            mut transcript,
            agent,
            ..
        } = conversation;
        drop(link);
        diary.next().await;
        agent.await.expect("it ends by itself");
        let mut batch = Vec::new();
        while follower.next(&mut batch).await {}
        transcript.apply_all(&batch);
        let ending = transcript
            .exchanges
            .first()
            .and_then(|it| it.response.ending.clone())
            .expect("it ended");
        assert_eq!(ending.finish_reason, FinishReason::Cancelled);
    }

    /// With a real server: `SHEAF_TEST_MODEL_URL=http://127.0.0.1:8089 cargo test real_model -- --nocapture`.
    #[tokio::test]
    async fn a_real_model_answers() {
        let Ok(url) = std::env::var("SHEAF_TEST_MODEL_URL") else {
            // Past the capture of a test's output, which would swallow it.
            let skipped = "SKIPPED: a_real_model_answers needs SHEAF_TEST_MODEL_URL, the address of a model server";
            writeln!(std::io::stderr(), "\n{skipped}").ok();
            return;
        };
        let mut settings = config::Provider {
            connection: Connection::default().at(&url),
            ..config::Provider::default()
        };
        settings.max_tokens = Some(200);
        settings.temperature = Some(0.0);
        let mut conversation = Conversation::over(settings);
        // A busy machine needs minutes for the first word.
        conversation.patience = Duration::from_mins(5);
        let models = conversation.link.ask(Query::Models).await.expect("a list of models");
        eprintln!("models: {models:?}");
        let questions = [
            "Write a Rust function that adds two numbers. Answer with one fenced code block and nothing else.",
            "What is the name of the function in your last answer? Answer with the name only.",
        ];
        for (at, question) in questions.iter().enumerate() {
            conversation.submit(question, Mode::Agent, Some(""));
            conversation.until_done(at + 1).await;
            let exchange = conversation.transcript.exchanges.get(at).expect("the turn is there");
            eprintln!(
                "{question}\n-> {} {:?}",
                conversation.shown(at + 1),
                exchange.response.usage
            );
            let ending = exchange.response.ending.clone().expect("it ended");
            assert_eq!(ending.status, Status::Completed);
            assert!(exchange.response.usage.completion_tokens > 0, "the server counts");
            assert!(exchange.response.model.is_some(), "the server says which model");
        }
        let first = conversation.transcript.exchanges.first().expect("the turn is there");
        assert!(
            first.response.documents.iter().any(|it| it.kind == Kind::CodeBlock),
            "{}",
            conversation.shown(1)
        );
        // In mid-answer, a real server's connection too is dropped at once.
        conversation.submit("Count from 1 to 500, one number a line.", Mode::Ask, Some(""));
        let has_begun = |it: &Conversation| {
            it.transcript
                .exchanges
                .get(2)
                .is_some_and(|it| !it.response.documents.is_empty())
        };
        conversation.until("the first number", has_begun).await;
        let start = Instant::now();
        conversation.link.send(Command::Cancel);
        conversation.until_done(3).await;
        eprintln!("cancelled within {:?}: {}", start.elapsed(), conversation.shown(3));
    }
}
