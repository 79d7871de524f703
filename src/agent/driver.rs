//! Runs turns: takes letters, polls the model, appends to the log. The only part of the agent that touches the world.

use std::{collections::VecDeque, sync::Arc, time::Duration};

use futures::StreamExt;

use super::{
    history,
    turn::{Effect, Input, Submission, Turn},
};
use crate::{
    journal::Log,
    link::{
        AskError,
        local::{Inbox, Letter},
    },
    model::{PieceStream, Provider},
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
    /// Messages that came while an answer was being made: each opens a turn of its own after it.
    queue: VecDeque<Submit>,
}

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
                    piece = stream.next() => Happened::Input(match piece {
                        Some(piece) => Input::Piece(piece),
                        // A provider that forgets its end must not hang the conversation.
                        None => Input::Cancel,
                    }),
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
                Happened::Input(input) => self.step(input),
            }
            if !self.turn.is_running()
                && let Some(submit) = self.queue.pop_front()
            {
                self.submit(submit);
            }
        }
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
        for effect in self.turn.step(input, now) {
            match effect {
                Effect::Append(event) => {
                    self.log.append(now, event);
                }
                Effect::CallModel(request) => self.stream = Some(self.setup.provider.stream(request)),
                Effect::StopModel => self.stream = None,
            }
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
        }
    }
}

fn now_ms() -> u64 {
    u64::try_from(chrono::Utc::now().timestamp_millis()).unwrap_or_default()
}
