//! Carries effects out: commands to the link, files, the clipboard, other conversations. What takes its time becomes a task or
//! goes to a thread that may block; its outcome comes back to the event loop as a message.

mod clipboard;
mod dispatch;
mod files;
pub mod history;
mod own_files;
mod sessions;

use std::sync::Arc;

use tokio::sync::mpsc;

pub use self::dispatch::Carried;
use crate::{
    config::Paths,
    tui::{
        library::Library,
        msg::{EffectOutcome, Msg},
    },
};

/// Starts work as tasks; each sends its outcome as a message.
pub struct EffectRunner {
    pub inbox: mpsc::UnboundedSender<Msg>,
    pub paths: Paths,
    /// Drafts and sent messages are stored.
    pub keeps: bool,
    /// The stored conversations; `None` where there is only the one.
    pub library: Option<Arc<dyn Library>>,
}

impl EffectRunner {
    /// Runs `work` as a task and brings its outcome back.
    pub fn spawn(&self, work: impl Future<Output = EffectOutcome> + Send + 'static) {
        let inbox = self.inbox.clone();
        tokio::spawn(async move { drop(inbox.send(Msg::Done(work.await))) });
    }

    /// Runs `work` on a thread that may block and brings its outcome back.
    pub fn block(&self, work: impl FnOnce() -> EffectOutcome + Send + 'static) {
        self.block_for(move || Msg::Done(work()));
    }

    /// Runs `work` on a thread that may block and sends the message that it ends with.
    pub fn block_for(&self, work: impl FnOnce() -> Msg + Send + 'static) {
        let inbox = self.inbox.clone();
        tokio::task::spawn_blocking(move || drop(inbox.send(work())));
    }
}
