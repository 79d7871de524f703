//! Hooks of the whole conversation: after an answer, before a summary, when the user is wanted, and at the end.

use std::{pin::Pin, time::Duration};

use futures::StreamExt;

use super::{
    Runner,
    notices::{now_ms, warn},
};
use crate::{
    agent::{
        approval::RunMode,
        history::{self, summary},
        hooks::HookNews,
        turn::{Input, Purpose},
    },
    extensions::hooks::{Decision, Occasion, Point},
    link::Asker,
    models::PieceStream,
    protocol::{CUSTOM_MODE, Event, FinishReason, Kind, Message, Position, Status, Submit, UserAction},
    transcript::Transcript,
};

/// The longest that the end of the program waits for hooks.
const LAST_MOMENT: Duration = Duration::from_secs(5);

/// The hooks after an answer, and the message with which one goes on.
pub type Stopping = Pin<Box<dyn Future<Output = Option<Submit>> + Send>>;

impl Runner {
    /// Tells the user what a hook did.
    pub(super) fn hook_news(&mut self, news: HookNews) {
        match news {
            HookNews::Ran { call, runs } => self.tools.hook_runs.note(call, runs),
            HookNews::Line(line) => self.tools.hook_runs.say(line),
            HookNews::KeepsHistory(why) => {
                let why = format!("a hook keeps the conversation as it is: {why}");
                self.step(Input::KeepHistory(why));
            }
            HookNews::Halt(why) => {
                warn(&self.log, "hook", format!("a hook ended the answer: {why}"));
                self.step(Input::Cancel);
            }
        }
    }

    /// Tells the documents of calls which hooks ran for them, and the conversation what hooks did beside calls. What they did to a
    /// message stands behind it.
    pub(super) fn tell_hook_runs(&mut self) {
        if self.messages.next.is_none() {
            for line in self.tools.hook_runs.take_lines() {
                let notice = UserAction::HookRan.notice(&[&line]);
                self.log.append(now_ms(), Event::Notice(notice));
            }
        }
        for event in self.tools.hook_runs.due(&self.log) {
            self.log.append(now_ms(), event);
        }
    }

    /// Calls the hooks after an answer; one that goes on with it sends the next message.
    pub(super) fn call_stop_hooks(&mut self) {
        let hooks = self.context.hooks();
        let is_own = self.messages.user_command.is_some();
        if is_own || self.setup.asker != Asker::Here || !hooks.has(Point::Stop) {
            return;
        }
        let transcript = Transcript::from_entries(&self.log.after(Position(0)));
        let Some(exchange) = transcript.exchanges.last() else {
            return;
        };
        // Nothing was answered: the history was compacted, or a hook kept the message back.
        if !history::is_of_model(exchange) {
            return;
        }
        let ending = exchange
            .response
            .ending
            .as_ref()
            .map(|it| (&it.status, &it.finish_reason));
        let status = match ending {
            Some((_, FinishReason::Cancelled)) => "aborted",
            Some((Status::Completed, _)) => "completed",
            Some(_) | None => "error",
        };
        let mut documents = exchange.response.documents.iter().rev();
        let last = documents.find(|it| it.kind == Kind::Text);
        let occasion = Occasion::Stop {
            status,
            loops: hooks.loops(),
            last_message: last.and_then(|it| it.content.as_deref()).unwrap_or_default().to_owned(),
        };
        // What the user has narrowed stays narrow.
        let mut message = Message::user("");
        for name in [CUSTOM_MODE, "approvals"] {
            let said = exchange.message.as_ref().and_then(|it| it.extra.get(name));
            message.extra.extend(said.map(|it| (name.to_owned(), it.clone())));
        }
        if self.turn.memory.policy.run == RunMode::Ask {
            message.extra.insert("approvals".to_owned(), "ask".into());
        }
        let mode = self.messages.mode.unwrap_or_default();
        let ended_in = exchange.response.mode.filter(|it| it.is_read_only());
        let mode = ended_in.unwrap_or(mode);
        let is_complete = status == "completed";
        self.messages.stopping = Some(Box::pin(async move {
            let followup = hooks.run(occasion).await.followup.filter(|_| is_complete)?;
            hooks.count_loop();
            Some(Submit {
                message: Message {
                    content: followup,
                    ..message
                },
                mode,
                model: None,
            })
        }));
    }

    /// Asks for a summary, unless a hook forbids it.
    pub(super) fn summarise_unless_blocked(&mut self, brief: &summary::SummaryRequest, attempt: u32) {
        self.summarise(brief, attempt);
        let hooks = self.context.hooks();
        if attempt > 0 || !hooks.has(Point::CompactBefore) {
            return;
        }
        let Some(stream) = self.answer.stream.take() else {
            return;
        };
        let history = &self.turn.memory.history;
        let occasion = Occasion::CompactBefore {
            is_asked: self
                .turn
                .purpose()
                .is_some_and(|it| matches!(it, Purpose::Compaction(_))),
            keep: brief.keep.clone(),
            tokens: history.tokens(0),
            window: self.turn.memory.window.tokens,
            messages: history.messages.len(),
            replaced: brief.messages.len(),
            is_first: !history.has_summary(),
        };
        let asked = async move {
            let merged = hooks.run(occasion).await;
            match merged.decision {
                // The news ends the wait for a summary.
                Some(Decision::Deny) => {
                    hooks.keep_history(&merged.reason);
                    Box::pin(futures::stream::pending()) as PieceStream
                }
                Some(Decision::Ask | Decision::Allow) | None => stream,
            }
        };
        self.answer.stream = Some(Box::pin(futures::stream::once(asked).flatten()));
    }

    /// Calls the hooks that tell the user that they are wanted. Nobody waits for them.
    pub(super) fn notify_hooks(&self) {
        let hooks = self.context.hooks();
        if hooks.has(Point::Notification) {
            let occasion = Occasion::Notification {
                message: "sheaf needs your answer".to_owned(),
                kind: "permission_prompt",
            };
            tokio::spawn(async move { hooks.run(occasion).await });
        }
    }

    /// Calls the hooks of the end, and waits a moment for them.
    pub(super) fn end_session(&self) -> impl Future<Output = ()> + Send + use<> {
        let hooks = self.context.hooks();
        let is_called = hooks.end_once() && hooks.has(Point::SessionEnd);
        let first = is_called.then(|| self.log.after(Position(0)).first().map(|it| it.at_ms));
        let occasion = Occasion::SessionEnd {
            duration_ms: first.flatten().map_or(0, |it| now_ms().saturating_sub(it)),
        };
        async move {
            if is_called && tokio::time::timeout(LAST_MOMENT, hooks.run(occasion)).await.is_err() {
                tracing::warn!("the hooks of the end took longer than {LAST_MOMENT:?}");
            }
        }
    }
}
