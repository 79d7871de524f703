//! The task that attends a command until its end.

use std::{
    fs::File,
    io,
    os::unix::process::ExitStatusExt,
    process::ExitStatus,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use tokio::{net::unix::pipe::Receiver, process::Child, signal::unix::Signal};

use super::{
    launch::told_folder,
    output_capture::Stream,
    running::{Command, Ended, How, lock},
    session::Grave,
};
use crate::{
    os::lazy_channel::Outbox,
    sandbox::protect::{Around, Settled},
};

/// Time that a command has to end by itself after it was asked to.
const GRACE: Duration = Duration::from_secs(2);
/// Time that an ended command's pipe is still read, if a process that cannot be killed holds it open.
const LAST_WORDS: Duration = Duration::from_millis(500);
/// Interval at which it is checked whether the asked processes have gone.
const LOOK: Duration = Duration::from_millis(10);
/// Maximum size of one read, in bytes.
const PIECE_BYTES: usize = 64 << 10;

/// Reads what a command prints and waits for its end. When the runtime goes, so does the command.
pub struct Attendant {
    pub command: Arc<Command>,
    pub child: Child,
    /// Comes when a child has ended; asked for before this one began.
    pub children: Signal,
    pub readers: Readers,
    pub told: File,
    pub started: Instant,
    pub limit: Option<Duration>,
    /// `None` once it has settled.
    pub around: Option<Around>,
    pub is_halted: Arc<AtomicBool>,
    pub tell: Outbox<Settled>,
    pub grave: Option<Grave>,
    pub is_done: bool,
}

impl Attendant {
    pub async fn attend(mut self, mut output: impl FnMut(&[u8])) {
        let mut readers = std::mem::take(&mut self.readers);
        let mut piece = vec![0; PIECE_BYTES];
        let mut stop = self.command.stop.subscribe();
        let limit = self.limit;
        let limit = async move {
            match limit {
                Some(limit) => tokio::time::sleep(limit).await,
                None => std::future::pending().await,
            }
        };
        tokio::pin!(limit);
        let grace = tokio::time::sleep(GRACE);
        tokio::pin!(grace);
        let mut why = None;
        // It is not waited for yet: while it is there its group's number is its own.
        while !self.command.family.group.has_ended() {
            tokio::select! {
                // A flood must not keep anybody from stopping it.
                biased;
                asked = async { stop.wait_for(Option::is_some).await.ok().and_then(|it| *it) }, if why.is_none() => {
                    why = asked.or(Some(How::Cancelled));
                    grace.as_mut().reset(tokio::time::Instant::now() + GRACE);
                    self.ask_strays();
                }
                () = &mut limit, if why.is_none() => self.command.stop(How::TimedOut),
                () = &mut grace, if why.is_some() => {
                    self.kill().await;
                    grace.as_mut().reset(tokio::time::Instant::now() + GRACE);
                }
                _ = self.children.recv() => {}
                more = readers.read(&mut piece), if !readers.is_over() => {
                    if let Some((stream, more)) = more {
                        self.print(stream, &piece[..more], &mut output);
                    }
                }
            }
        }
        // It may end before it is seen here that it was asked to.
        if why.is_none() && stop.borrow().is_some() {
            why = *stop.borrow();
            grace.as_mut().reset(tokio::time::Instant::now() + GRACE);
            self.ask_strays();
        }
        if why.is_some() {
            // The shell is gone; what it started has the rest of the time.
            let deadline = grace.deadline();
            while self.is_group_alive().await && tokio::time::Instant::now() < deadline {
                if readers.is_over() {
                    tokio::time::sleep(LOOK).await;
                    continue;
                }
                let drained = async {
                    while let Some((stream, more)) = readers.read(&mut piece).await {
                        self.print(stream, &piece[..more], &mut output);
                    }
                };
                tokio::time::timeout(LOOK, drained).await.ok();
            }
        }
        self.kill().await;
        let status = self.reap();
        let last_words = async {
            while let Some((stream, more)) = readers.read(&mut piece).await {
                self.print(stream, &piece[..more], &mut output);
            }
        };
        tokio::time::timeout(LAST_WORDS, last_words).await.ok();
        // It looks at every folder of the workspace, which may take seconds.
        let around = self.around.take();
        let settled = tokio::task::spawn_blocking(move || settle(around)).await;
        self.settled(settled.unwrap_or_else(|error| {
            tracing::error!(%error, "it is not known what a command has made");
            Settled::default()
        }));
        self.is_done = true;
        if let Some(grave) = &mut self.grave {
            grave.close();
        }
        self.end(why.unwrap_or_else(|| how(status)));
    }

    /// Asks those to end that left the group; looking for them takes a moment.
    fn ask_strays(&self) {
        let family = self.command.family.clone();
        tokio::task::spawn_blocking(move || family.ask_strays());
    }

    /// Ends what is left, without holding up others meanwhile.
    async fn kill(&self) {
        let family = self.command.family.clone();
        tokio::task::spawn_blocking(move || family.kill()).await.ok();
    }

    /// Returns true if something of the group lives, without holding up others meanwhile.
    async fn is_group_alive(&self) -> bool {
        let family = self.command.family.clone();
        tokio::task::spawn_blocking(move || family.is_group_alive())
            .await
            .unwrap_or_default()
    }

    /// Waits for the command, which has ended. Nobody sends anything to its group from here on.
    fn reap(&mut self) -> io::Result<ExitStatus> {
        if let Some(grave) = &mut self.grave {
            grave.dig();
        }
        self.command.family.group.reap(&mut self.child)
    }

    /// Nothing of the command runs any more, and this was found.
    fn settled(&mut self, settled: Settled) {
        if settled.is_breach() {
            self.is_halted.store(true, Ordering::Release);
        }
        if settled != Settled::default() {
            // Nobody may be listening.
            self.tell.send(settled.clone()).ok();
        }
        self.command.settled.set(settled).ok();
    }

    fn print(&self, stream: Stream, bytes: &[u8], output: &mut impl FnMut(&[u8])) {
        let total = {
            let mut printed = lock(&self.command.printed);
            printed.push_from(stream, bytes);
            printed.total()
        };
        output(bytes);
        self.command.news.send_replace(total);
    }

    fn end(&mut self, how: How) {
        let directory = if how == How::TimedOut || how == How::Cancelled {
            None
        } else {
            told_folder(&mut self.told)
        };
        self.command.ended.send_replace(Some(Ended {
            how,
            duration: self.started.elapsed(),
            directory,
        }));
    }
}

impl Drop for Attendant {
    fn drop(&mut self) {
        if !self.is_done {
            self.command.family.kill();
            // Whoever drops the child may wait for it.
            self.reap().ok();
            let settled = settle(self.around.take());
            self.settled(settled);
            if let Some(grave) = &mut self.grave {
                grave.close();
            }
            self.end(How::Cancelled);
        }
    }
}

fn settle(around: Option<Around>) -> Settled {
    around.map(|mut it| it.settle()).unwrap_or_default()
}

/// The pipes of a command: one with all of its output, or one for each stream.
#[derive(Default)]
pub struct Readers {
    pub output: Option<Receiver>,
    pub errors: Option<Receiver>,
}

impl Readers {
    fn is_over(&self) -> bool {
        self.output.is_none() && self.errors.is_none()
    }

    /// Reads into `piece` from the stream that has something. Returns the number of bytes, never 0; `None` at the end
    /// of all streams. Nothing is lost if the caller stops waiting.
    async fn read(&mut self, piece: &mut [u8]) -> Option<(Stream, usize)> {
        loop {
            let stream = tokio::select! {
                () = ready(self.output.as_ref()), if self.output.is_some() => Stream::Output,
                () = ready(self.errors.as_ref()), if self.errors.is_some() => Stream::Errors,
                else => return None,
            };
            let reader = match stream {
                Stream::Output => &mut self.output,
                Stream::Errors => &mut self.errors,
            };
            match reader.as_ref().map(|it| it.try_read(piece)) {
                Some(Ok(more @ 1..)) => return Some((stream, more)),
                Some(Err(error)) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => {}
                Some(Ok(_) | Err(_)) | None => *reader = None,
            }
        }
    }
}

/// Waits until there is something to read; an error is found by reading.
async fn ready(reader: Option<&Receiver>) {
    if let Some(reader) = reader {
        reader.readable().await.ok();
    }
}

fn how(status: io::Result<ExitStatus>) -> How {
    match status {
        Ok(status) => match (status.code(), status.signal()) {
            (Some(code), _) => How::Exited(code),
            (None, signal) => How::Killed(signal.unwrap_or_default()),
        },
        Err(_) => How::Killed(0),
    }
}
