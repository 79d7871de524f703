//! Questions on the terminal, before any screen. They are written to standard error, so that standard output can be
//! piped.

use std::{
    io::{self, IsTerminal as _, Read as _, Write as _},
    thread,
};

use anyhow::{Context as _, Result};
use rustix::termios::{LocalModes, OptionalActions, Termios, tcgetattr, tcsetattr};
use tokio::sync::{mpsc, oneshot};

use super::super::{Runtime, code, listen, runtime};
use crate::{config::Secret, print::StopSignal, text::Sanitized};

/// Bytes of standard input that may be a key; more is none.
const LIMIT_BYTES: u64 = 64 * 1024;

/// Answer to the question for a key.
pub enum Answer {
    Given(Secret),
    /// No key, and why.
    Nothing(String),
}

/// A signal came, and what was waited for is given up. With the exit code.
#[derive(Debug, thiserror::Error)]
#[error("stopped by a signal")]
pub struct Stopped(pub u8);

/// The runtime of a login, which hears signals from the first wait to the last. A handler of signals stays as long as the
/// program: once nobody hears it, Ctrl+C would do nothing.
pub struct Waiting {
    runtime: Runtime,
    stops: mpsc::Receiver<StopSignal>,
}

impl Waiting {
    pub fn start() -> Result<Self> {
        let runtime = runtime(false)?;
        let stops = runtime.block_on(async { listen() });
        Ok(Self { runtime, stops })
    }

    /// Waits for `future`. Error: [`Stopped`].
    pub fn wait<T>(&mut self, future: impl Future<Output = T>) -> Result<T, Stopped> {
        let stops = &mut self.stops;
        self.runtime.block_on(async {
            tokio::select! {
                it = future => Ok(it),
                stop = stops.recv() => Err(Stopped(match stop {
                    Some(StopSignal::HangUp) => code::HUNG_UP,
                    Some(StopSignal::Terminate) => code::TERMINATED,
                    Some(StopSignal::Interrupt) | None => code::INTERRUPTED,
                })),
            }
        })
    }

    /// Waits for `read`, which reads standard input on a thread: it is left behind if a signal comes, because a read cannot be
    /// interrupted. Error: [`Stopped`].
    fn typed<T: Default + Send + 'static>(&mut self, read: impl FnOnce() -> T + Send + 'static) -> Result<T, Stopped> {
        let (send, typed) = oneshot::channel();
        thread::spawn(move || send.send(read()));
        self.wait(typed).map(Result::unwrap_or_default)
    }
}

/// Writes to standard error.
pub fn tell(text: &str) {
    let mut err = io::stderr();
    let _ = err.write_all(Sanitized::new(text).as_bytes());
    let _ = err.flush();
}

fn answer(bytes: &mut [u8], source: &str) -> Answer {
    let is_empty = bytes.iter().all(u8::is_ascii_whitespace);
    let read = Secret::typed(bytes, source);
    bytes.fill(0);
    match read {
        _ if is_empty => Answer::Nothing("no key was given".to_owned()),
        Ok(secret) => Answer::Given(secret),
        Err(error) => Answer::Nothing(error.to_string()),
    }
}

/// Reads a key from standard input to its end.
pub fn piped(waiting: &mut Waiting) -> Result<Answer> {
    let read = || -> Option<io::Result<Vec<u8>>> {
        let mut bytes = Vec::new();
        let mut input = io::stdin().lock().take(LIMIT_BYTES);
        Some(input.read_to_end(&mut bytes).map(|_| bytes))
    };
    let read = waiting.typed(read)?.transpose();
    let mut bytes = read.context("standard input cannot be read")?.unwrap_or_default();
    Ok(answer(&mut bytes, "standard input"))
}

/// Reads a line from the terminal without showing it. A signal stops it and leaves the terminal as it was.
pub fn hidden(waiting: &mut Waiting, question: &str) -> Result<Answer> {
    let quiet = Quiet::start();
    // Only now: what is typed at the question must not be shown.
    tell(question);
    let typed = waiting.typed(line);
    drop(quiet);
    tell("\n");
    Ok(answer(&mut typed?, "the line"))
}

/// Reads a line of the terminal, without its end.
fn line() -> Vec<u8> {
    let mut line = Vec::with_capacity(512);
    let mut byte = [0];
    let mut input = io::stdin().lock();
    while line.len() as u64 <= LIMIT_BYTES {
        match input.read(&mut byte) {
            Ok(1) if byte != *b"\n" => line.push(byte[0]),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Ok(_) | Err(_) => break,
        }
    }
    line
}

/// Asks a question with the answers yes and no. Without a terminal the answer is no.
pub fn confirmed(waiting: &mut Waiting, question: &str) -> Result<bool, Stopped> {
    if !io::stdin().is_terminal() {
        return Ok(false);
    }
    tell(&format!("{question} [y/N] "));
    let line = waiting.typed(line)?;
    let line = String::from_utf8_lossy(&line).trim().to_ascii_lowercase();
    Ok(matches!(line.as_str(), "y" | "yes"))
}

/// A terminal that does not show what is typed, until this is dropped.
struct Quiet(Option<Termios>);

impl Quiet {
    fn start() -> Self {
        let before = tcgetattr(io::stdin()).ok();
        if let Some(before) = &before {
            let mut quiet = before.clone();
            quiet.local_modes.remove(LocalModes::ECHO);
            tcsetattr(io::stdin(), OptionalActions::Now, &quiet).ok();
        }
        Self(before)
    }
}

impl Drop for Quiet {
    fn drop(&mut self) {
        if let Some(before) = &self.0 {
            tcsetattr(io::stdin(), OptionalActions::Now, before).ok();
        }
    }
}
