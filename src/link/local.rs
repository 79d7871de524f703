//! A link to a producer in this very program: the log is shared, commands go through a channel.
//!
//! Whoever connects the two gives the [`Inbox`] to the producer and keeps the [`Local`].

use std::{future::Future, pin::Pin, sync::Arc};

use tokio::sync::oneshot;

use super::{About, AskError, Link};
use crate::{
    journal::Log,
    os::lazy_channel,
    protocol::{Command, Event, Notice, Query, Reply, Severity},
};

/// The consumer's end.
pub struct Local {
    log: Arc<Log>,
    outbox: lazy_channel::Outbox<Request>,
    about: About,
}

/// A request to the producer.
#[derive(Debug)]
#[expect(clippy::large_enum_variant, reason = "a person sends a few of them a minute")]
pub enum Request {
    Command(Command),
    /// Dropping the sender is an answer, too: it cannot be answered.
    Ask(Query, oneshot::Sender<Result<Reply, AskError>>),
}

/// The producer's end. It is empty for good once the consumer has gone.
pub type Inbox = lazy_channel::Inbox<Request>;

impl Local {
    pub fn new(log: Arc<Log>, about: About) -> (Self, Inbox) {
        let (outbox, inbox) = lazy_channel::channel();
        (Self { log, outbox, about }, inbox)
    }
}

impl Link for Local {
    fn log(&self) -> &Arc<Log> {
        &self.log
    }

    fn send(&self, command: Command) {
        if self.outbox.send(Request::Command(command)).is_err() {
            let notice = Notice::new(
                Severity::Error,
                "nobody-there",
                format!("{} has ended: nothing was sent", self.about.peer),
            );
            let at_ms = u64::try_from(chrono::Utc::now().timestamp_millis()).unwrap_or_default();
            self.log.append(at_ms, Event::Notice(notice));
        }
    }

    fn about(&self) -> About {
        self.about.clone()
    }

    fn has_whole_ends(&self) -> bool {
        true
    }

    fn ask(&self, query: Query) -> Pin<Box<dyn Future<Output = Result<Reply, AskError>> + Send>> {
        let (sender, receiver) = oneshot::channel();
        let sent = self.outbox.send(Request::Ask(query, sender)).is_ok();
        let peer = self.about.peer.clone();
        Box::pin(async move {
            match receiver.await {
                Ok(reply) if sent => reply,
                Ok(_) | Err(_) => Err(AskError::Unsupported { peer }),
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::Position;

    fn local() -> (Local, Inbox) {
        let about = About {
            peer: "somebody".to_owned(),
            ..About::default()
        };
        Local::new(Log::new(), about)
    }

    #[tokio::test]
    async fn commands_and_questions_arrive_in_order() {
        let (link, mut inbox) = local();
        link.send(Command::Cancel);
        let asked = link.ask(Query::Models);
        assert!(matches!(inbox.recv().await, Some(Request::Command(Command::Cancel))));
        let Some(Request::Ask(Query::Models, reply)) = inbox.recv().await else {
            panic!("a question")
        };
        reply
            .send(Ok(Reply::Models(vec!["m".to_owned()])))
            .expect("somebody waits");
        assert_eq!(asked.await.expect("a reply"), Reply::Models(vec!["m".to_owned()]));
        drop(link);
        assert!(inbox.recv().await.is_none());
    }

    #[tokio::test]
    async fn a_producer_that_has_ended_is_said_so() {
        let (link, inbox) = local();
        drop(inbox);
        link.send(Command::Cancel);
        let entries = link.log().after(Position(0));
        let [entry] = entries.as_slice() else {
            panic!("{entries:?}")
        };
        assert!(matches!(&entry.event, Event::Notice(it) if it.code == "nobody-there"));
        assert!(matches!(
            link.ask(Query::Models).await,
            Err(AskError::Unsupported { .. })
        ));
    }
}
