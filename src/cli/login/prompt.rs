//! Questions on the terminal, before any screen. They are written to standard error, so that standard output can be
//! piped.

use std::{
    io::{self, IsTerminal as _, Read as _, Write as _},
    thread,
};

use anyhow::{Context as _, Result};
use rustix::termios::{LocalModes, OptionalActions, Termios, tcgetattr, tcsetattr};
use tokio::sync::oneshot;

use super::super::{code, listen, runtime};
use crate::{config::Secret, print::StopSignal, text::Sanitized};

/// Bytes of standard input that may be a key; more is none.
const LIMIT_BYTES: u64 = 64 * 1024;

/// Answer to the question for a key.
pub enum Answer {
    Given(Secret),
    /// No key, and why.
    Nothing(String),
    /// A signal came: the exit code.
    Stopped(u8),
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
pub fn piped() -> Result<Answer> {
    let mut bytes = Vec::new();
    let mut input = io::stdin().lock().take(LIMIT_BYTES);
    input.read_to_end(&mut bytes).context("standard input cannot be read")?;
    Ok(answer(&mut bytes, "standard input"))
}

/// Reads a line from the terminal without showing it. A signal stops it and leaves the terminal as it was.
pub fn hidden(question: &str) -> Result<Answer> {
    let quiet = Quiet::start();
    let stopped = runtime(false)?.block_on(async {
        let mut stops = listen();
        // Only now: what is typed at the question must not be shown.
        tell(question);
        let (send, typed) = oneshot::channel();
        // It is left behind if a signal comes: a read cannot be interrupted.
        thread::spawn(move || send.send(line()));
        tokio::select! {
            typed = typed => Ok(typed.unwrap_or_default()),
            stop = stops.recv() => Err(stop),
        }
    });
    drop(quiet);
    tell("\n");
    Ok(match stopped {
        Ok(mut line) => answer(&mut line, "the line"),
        Err(Some(StopSignal::Terminate)) => Answer::Stopped(code::TERMINATED),
        Err(Some(StopSignal::Interrupt) | None) => Answer::Stopped(code::INTERRUPTED),
    })
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
pub fn confirmed(question: &str) -> bool {
    if !io::stdin().is_terminal() {
        return false;
    }
    tell(&format!("{question} [y/N] "));
    let mut line = String::new();
    let is_read = io::stdin().read_line(&mut line).is_ok();
    is_read && matches!(line.trim().to_ascii_lowercase().as_str(), "y" | "yes")
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
