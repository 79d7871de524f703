//! A command that runs or has run: its output, how it ended, and stopping it.

use std::{
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex, MutexGuard, OnceLock, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use rustix::process::Signal;
use tokio::sync::watch;

use super::{
    output_capture::{Apart, Excerpt, Printed},
    process_tree::Family,
};
use crate::sandbox::{kernel, policy::Tier, protect::Settled};

/// End of a command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ended {
    pub how: How,
    pub duration: Duration,
    /// The folder in which its shell was at its end, if it said so.
    pub directory: Option<PathBuf>,
}

/// The way in which a command ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum How {
    Exited(i32),
    /// By a signal that we did not send.
    Killed(i32),
    TimedOut,
    Cancelled,
}

/// A command that runs or has run. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Running(pub(super) Arc<Command>);

/// State of a command, shared by its attendant and all who wait for it.
#[derive(Debug)]
pub struct Command {
    pub id: String,
    pub line: String,
    pub directory: PathBuf,
    /// Sandbox that it runs in.
    pub tier: Tier,
    pub is_guarded: bool,
    pub family: Family,
    pub printed: Mutex<Printed>,
    /// Parts that the model knows.
    pub shown: Shown,
    /// Reason to end the command, once there is one.
    pub stop: watch::Sender<Option<How>>,
    pub ended: watch::Sender<Option<Ended>>,
    /// Counts what was printed, for those who wait for more.
    pub news: watch::Sender<u64>,
    /// Results for the protected files that it created or changed.
    pub settled: OnceLock<Settled>,
}

/// Parts of a command that the model knows.
#[derive(Debug, Default)]
pub struct Shown {
    /// Bytes of the output.
    output: Mutex<u64>,
    /// That it has ended.
    end: AtomicBool,
}

impl Running {
    /// Returns the id by which `await_command` asks for it.
    pub fn id(&self) -> &str {
        &self.0.id
    }

    pub fn line(&self) -> &str {
        &self.0.line
    }

    /// Returns the folder in which it was started.
    pub fn directory(&self) -> &Path {
        &self.0.directory
    }

    /// Returns the sandbox that it ran in.
    pub fn tier(&self) -> Tier {
        self.0.tier
    }

    /// Returns what the sandbox did not cover.
    pub fn gaps(&self) -> &'static str {
        kernel::layers().but(self.is_guarded())
    }

    /// Returns true if it could write the whole workspace although the sandbox is partial.
    pub fn is_guarded(&self) -> bool {
        self.0.is_guarded
    }

    /// Returns its end. `None` while it runs.
    pub fn outcome(&self) -> Option<Ended> {
        self.0.ended.borrow().clone()
    }

    pub async fn ended(&self) -> Ended {
        let mut ended = self.0.ended.subscribe();
        let found = ended.wait_for(Option::is_some).await;
        found
            .ok()
            .and_then(|it| it.clone())
            .expect("the sender lives in the command")
    }

    /// Waits until it has printed something beyond `read` bytes, or has ended.
    pub async fn news(&self, read: u64) {
        let mut news = self.0.news.subscribe();
        tokio::select! {
            _ = news.wait_for(|it| *it > read) => {}
            _ = self.ended() => {}
        }
    }

    /// The output from the byte `start` on.
    pub fn since(&self, start: u64) -> Excerpt {
        lock(&self.0.printed).since(start)
    }

    /// Returns the output since the last call.
    pub fn unread(&self) -> Excerpt {
        let mut shown = lock(&self.0.shown.output);
        let part = self.since(*shown);
        *shown = part.end;
        part
    }

    /// Returns standard output and standard error so far, the beginning of each. `None`: they are not kept apart.
    pub fn apart(&self) -> Option<Apart> {
        lock(&self.0.printed).apart().cloned()
    }

    /// The file that has all of the output, if it is long.
    pub fn log(&self) -> Option<PathBuf> {
        lock(&self.0.printed).log()
    }

    /// Returns the reason why the log is missing although the output is long.
    pub fn log_failure(&self) -> Option<String> {
        lock(&self.0.printed).log_failure()
    }

    /// Returns the results for protected files that it created or changed. Empty until it has ended.
    pub fn settled(&self) -> Settled {
        self.0.settled.get().cloned().unwrap_or_default()
    }

    /// The model is told that it has ended.
    pub fn tell_end(&self) {
        self.0.shown.end.store(true, Ordering::Release);
    }

    /// Returns true if it has ended and the model does not know.
    pub fn has_untold_end(&self) -> bool {
        self.outcome().is_some() && !self.0.shown.end.load(Ordering::Acquire)
    }

    /// Asks it to end, and ends it when it does not.
    pub fn stop(&self) {
        self.0.stop(How::Cancelled);
    }

    /// While this is held the command is somebody's to wait for: dropping it stops the command.
    pub fn foreground(self) -> Foreground {
        Foreground(Some(self))
    }
}

impl Command {
    pub fn stop(&self, why: How) {
        // It has ended, if perhaps what it made is being looked at.
        if self.ended.borrow().is_some() || self.family.group.is_gone() {
            return;
        }
        let is_first = self.stop.send_if_modified(|it| {
            let is_first = it.is_none();
            it.get_or_insert(why);
            is_first
        });
        if is_first {
            self.family.group.signal(Signal::TERM);
        }
    }
}

/// Somebody waits for a command.
#[derive(Debug)]
pub struct Foreground(Option<Running>);

impl Foreground {
    pub fn running(&self) -> &Running {
        self.0.as_ref().expect("only leaving takes it, and that ends this")
    }

    /// Stops waiting and lets the command continue.
    pub fn leave(mut self) -> Running {
        self.0.take().expect("only leaving takes it, and that ends this")
    }
}

impl Drop for Foreground {
    fn drop(&mut self) {
        if let Some(running) = &self.0 {
            running.stop();
        }
    }
}

pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
