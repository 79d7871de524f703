//! What was done to files is taken back or done again, and the conversation goes on elsewhere.

use std::sync::Arc;

use futures::FutureExt;

use super::{Driver, now_ms};
use crate::{
    agent::{
        history::{self, Called},
        review,
        undo::{self, Restored},
    },
    protocol::{
        Applied, Branch, ClarificationResponse, DocumentId, Event, Kind, Message, Notice, Position, Response, Restore,
        Severity, Submit, Turn,
    },
    transcript::Transcript,
};

impl Driver {
    /// Begins to take back the next change that the user has rejected; what it did is in the log afterwards.
    pub(super) fn take_back(&mut self) {
        while self.reversal.is_none()
            && let Some((turn, document)) = self.rejected.front()
        {
            let mut response = Response::default();
            for entry in self.log.after(Position(0)).iter().filter(|it| it.turn == *turn) {
                response.apply(&entry.event, entry.at_ms);
            }
            let at = response.position_of(document);
            match at.and_then(|it| review::rejected(&response, it)) {
                Some(Ok(rejected)) => {
                    let workspace = self.setup.workspace.clone();
                    let seen = Arc::clone(&self.seen);
                    let work = tokio::task::spawn_blocking(move || {
                        let workspace = workspace.ok_or("there is no workspace here")?;
                        review::take_back(&workspace, &seen, &rejected).map_err(|it| it.to_string())
                    });
                    self.reversal =
                        Some(Box::pin(work.map(|it| {
                            it.unwrap_or_else(|it| Err(format!("taking it back broke down: {it}")))
                        })));
                }
                Some(Err(why)) => {
                    self.rejected.pop_front();
                    self.say_kept(why.to_string());
                }
                None => {
                    self.rejected.pop_front();
                    self.say_kept("it is no change of a file".to_owned());
                }
            }
        }
    }

    pub(super) fn reversed(&mut self, result: Result<(), String>) {
        self.reversal = None;
        if let Some((turn, document)) = self.rejected.pop_front() {
            match result {
                Ok(()) => {
                    let mut metadata = serde_json::Map::new();
                    metadata.insert("applied".into(), Applied::Rejected.as_str().into());
                    self.log
                        .append_to(turn, now_ms(), Event::DocumentUpdate { document, metadata });
                }
                Err(why) => self.say_kept(why),
            }
        }
        self.take_back();
    }

    /// The call that a document shows, where it can be made by the user, too.
    pub(super) fn call_behind(&self, turn: Turn, document: &DocumentId) -> Option<Called> {
        let mut response = Response::default();
        for entry in self.log.after(Position(0)).iter().filter(|it| it.turn == turn) {
            response.apply(&entry.event, entry.at_ms);
        }
        let document = response.get(document)?;
        let is_users = matches!(document.kind, Kind::ToolCall | Kind::TerminalCommand | Kind::FileEdit);
        let called = history::called(document, None).filter(|_| is_users)?;
        self.setup
            .tools
            .iter()
            .any(|it| it.name == called.name)
            .then_some(called)
    }

    /// The message that answers the question to which the conversation went back, if that is the one.
    pub(super) fn answering(&self, turn: Turn, response: ClarificationResponse) -> Option<Submit> {
        let is_of_it = |it: &Submit| {
            let answer = it.message.clarification_response.as_ref();
            answer.is_some_and(|it| it.document_id == response.document_id)
        };
        // The first answer counts, also when its turn has not begun yet.
        if self.next.is_some() || self.queue.iter().any(|it| is_of_it(&it.0)) {
            return None;
        }
        let transcript = Transcript::of(&self.log.after(Position(0)));
        let question = transcript.reopened(turn, &response.document_id)?.clarification()?;
        let message = Message {
            content: question.readable(&response),
            clarification_response: Some(response),
            ..Message::user("")
        };
        Some(Submit {
            message,
            mode: self.mode.unwrap_or_default(),
            model: None,
        })
    }

    /// The conversation goes on somewhere else: the model is told what was said there, and nothing else.
    pub(super) fn go_on(&mut self, branch: Branch) {
        if self.turn.is_running() || self.next.is_some() {
            return self.notice(
                "not-there",
                "an answer is being made: the conversation goes on here".to_owned(),
            );
        }
        self.log.append(now_ms(), Event::Branch(branch));
        let transcript = Transcript::of(&self.log.after(Position(0)));
        self.turn.memory.begin_again(transcript.todos);
        self.is_seeded = false;
        self.told.clear();
    }

    /// Begins to take back, or to do again, what calls did to files.
    pub(super) fn restore(&mut self, wish: Restore) {
        if self.turn.is_running() || self.next.is_some() || self.restoring.is_some() {
            return self.notice(
                "not-restored",
                "nothing is taken back while an answer is made".to_owned(),
            );
        }
        let Some(workspace) = self.setup.workspace.clone() else {
            return self.notice("not-restored", "there is no workspace here".to_owned());
        };
        let seen = Arc::clone(&self.seen);
        let entries = self.log.after(Position(0));
        let work = tokio::task::spawn_blocking(move || {
            let transcript = Transcript::of(&entries);
            undo::restore(&seen, &workspace, &transcript, &wish)
        });
        let broken = |it| Err(format!("taking it back broke down: {it}"));
        self.restoring = Some(Box::pin(work.map(move |it| it.unwrap_or_else(broken))));
    }

    pub(super) fn restored(&mut self, result: Result<Restored, String>) {
        self.restoring = None;
        match result {
            Ok(Restored { events, said, told }) => {
                for (turn, event) in events {
                    self.log.append_to(turn, now_ms(), event);
                }
                self.told.push_str(&told);
                let notice = Notice {
                    severity: Severity::Info,
                    code: "restored".to_owned(),
                    message: said,
                    document: None,
                };
                self.log.append(now_ms(), Event::Notice(notice));
            }
            Err(why) => self.notice("not-restored", why),
        }
    }

    pub(super) fn say_kept(&self, message: String) {
        let notice = Notice {
            severity: Severity::Warning,
            code: "not-taken-back".to_owned(),
            message,
            document: None,
        };
        self.log.append(now_ms(), Event::Notice(notice));
    }
}
