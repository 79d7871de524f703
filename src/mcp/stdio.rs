//! A server that is a child: one JSON message a line, on its standard input and output; its standard error is a log.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use serde_json::Value;
use tokio::{
    io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _},
    sync::{mpsc, oneshot, watch},
};

use super::{
    host::Host,
    info::Error,
    message::{self, Message},
};

/// A longer line ends the connection.
pub const LINE_BYTES: usize = 16 << 20;
/// Bytes of one read.
const PIECE_BYTES: usize = 64 << 10;
/// Messages that wait to be written; whoever writes more waits.
const MOST_WAITING: usize = 64;

/// The two streams of a server.
pub struct Stdio {
    out: mpsc::Sender<Vec<u8>>,
    shared: Arc<Shared>,
}

/// What the task that reads shares with those who wait.
struct Shared {
    waiting: Mutex<HashMap<u64, oneshot::Sender<Result<Value, Error>>>>,
    /// Why the connection has ended; `None` while it lives.
    over: watch::Sender<Option<String>>,
}

impl Shared {
    fn waiting(&self) -> MutexGuard<'_, HashMap<u64, oneshot::Sender<Result<Value, Error>>>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Ends the connection: whoever waits hears why.
    fn end(&self, why: &str) {
        self.over.send_if_modified(|it| {
            let is_first = it.is_none();
            it.get_or_insert_with(|| why.to_owned());
            is_first
        });
        self.fail_all(&Error::Gone(why.to_owned()));
    }

    fn fail_all(&self, error: &Error) {
        let waiting = std::mem::take(&mut *self.waiting());
        for (_, to) in waiting {
            let _ = to.send(Err(error.clone()));
        }
    }
}

/// Takes itself off the list of those who wait, whatever becomes of it.
struct Waiting<'a>(&'a Shared, u64);

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.waiting().remove(&self.1);
    }
}

impl Stdio {
    /// Speaks through these streams, on tasks of the current runtime, until one of them ends.
    pub fn start(
        input: impl AsyncWrite + Send + Unpin + 'static,
        output: impl AsyncRead + Send + Unpin + 'static,
        errors: impl AsyncRead + Send + Unpin + 'static,
        host: Arc<Host>,
    ) -> Self {
        let (out, to_write) = mpsc::channel(MOST_WAITING);
        let shared = Arc::new(Shared {
            waiting: Mutex::default(),
            over: watch::Sender::new(None),
        });
        tokio::spawn(write(input, to_write, Arc::clone(&shared)));
        tokio::spawn(read(output, out.downgrade(), Arc::clone(&host), Arc::clone(&shared)));
        tokio::spawn(keep_log(errors, host));
        Self { out, shared }
    }

    /// Sends a request and waits for its answer.
    pub async fn request(&self, id: u64, message: &Value) -> Result<Value, Error> {
        if let Some(why) = self.shared.over.borrow().clone() {
            return Err(Error::Gone(why));
        }
        let (to, answer) = oneshot::channel();
        self.shared.waiting().insert(id, to);
        let _waiting = Waiting(&self.shared, id);
        self.send(message).await?;
        answer
            .await
            .unwrap_or_else(|_| Err(Error::Gone("the connection was closed".to_owned())))
    }

    /// Sends a message that nobody answers.
    pub async fn send(&self, message: &Value) -> Result<(), Error> {
        let sent = self.out.send(line(message)).await;
        sent.map_err(|_| Error::Gone(self.why().unwrap_or_else(|| "its input is closed".to_owned())))
    }

    /// Sends a message if there is room for it, without waiting.
    pub fn try_send(&self, message: &Value) {
        self.out.try_send(line(message)).ok();
    }

    /// Why the connection has ended; `None` while it lives.
    pub fn why(&self) -> Option<String> {
        self.shared.over.borrow().clone()
    }

    /// Ends the connection.
    pub fn hang_up(&self) {
        self.shared.end("it was closed");
    }

    /// Waits until the connection has ended.
    pub fn over(&self) -> watch::Receiver<Option<String>> {
        self.shared.over.subscribe()
    }
}

fn line(message: &Value) -> Vec<u8> {
    let mut line = serde_json::to_vec(message).unwrap_or_default();
    line.push(b'\n');
    line
}

async fn write(mut input: impl AsyncWrite + Unpin, mut to_write: mpsc::Receiver<Vec<u8>>, shared: Arc<Shared>) {
    let mut over = shared.over.subscribe();
    loop {
        let line = tokio::select! {
            _ = over.wait_for(Option::is_some) => break,
            line = to_write.recv() => line,
        };
        let Some(line) = line else { break };
        if let Err(error) = input.write_all(&line).await {
            return shared.end(&format!("it reads nothing any more: {error}"));
        }
        if input.flush().await.is_err() {
            return;
        }
    }
    // The end of its input asks a server to end.
    input.shutdown().await.ok();
}

/// Splits a stream into lines of at most [`LINE_BYTES`].
#[derive(Default)]
struct Lines {
    held: Vec<u8>,
}

impl Lines {
    /// Calls `each` with every whole line. Error: a line is too long.
    fn push(&mut self, piece: &[u8], mut each: impl FnMut(&[u8])) -> Result<(), ()> {
        let mut rest = piece;
        while let Some(end) = memchr::memchr(b'\n', rest) {
            let (line, after) = (
                rest.get(..end).unwrap_or_default(),
                rest.get(end + 1..).unwrap_or_default(),
            );
            if self.held.is_empty() {
                each(line);
            } else {
                self.held.extend_from_slice(line);
                if self.held.len() > LINE_BYTES {
                    return Err(());
                }
                each(&std::mem::take(&mut self.held));
            }
            rest = after;
        }
        self.held.extend_from_slice(rest);
        if self.held.len() > LINE_BYTES { Err(()) } else { Ok(()) }
    }
}

async fn read(
    mut output: impl AsyncRead + Unpin,
    out: mpsc::WeakSender<Vec<u8>>,
    host: Arc<Host>,
    shared: Arc<Shared>,
) {
    let mut lines = Lines::default();
    let mut piece = vec![0; PIECE_BYTES];
    let why = loop {
        let count = match output.read(&mut piece).await {
            Ok(0) => break "it has ended".to_owned(),
            Ok(count) => count,
            Err(error) => break format!("it cannot be read: {error}"),
        };
        let fed = lines.push(piece.get(..count).unwrap_or_default(), |line| {
            take(line, &out, &host, &shared);
        });
        if fed.is_err() {
            break "it sent a line of more than 16 MiB".to_owned();
        }
        // A flood must not keep others on this thread from their turn.
        tokio::task::yield_now().await;
    };
    shared.end(&why);
}

fn take(line: &[u8], out: &mpsc::WeakSender<Vec<u8>>, host: &Arc<Host>, shared: &Arc<Shared>) {
    let line = line.trim_ascii();
    if line.is_empty() {
        return;
    }
    match message::parse(line) {
        Ok(Message::Response { id, result }) => {
            // An answer that nobody waits for is an answer to nobody.
            if let Some(to) = shared.waiting().remove(&id) {
                let _ = to.send(result.map_err(Error::Rpc));
            }
        }
        Ok(Message::Notification { method, params }) => host.hear(&method, &params),
        Ok(Message::Request { id, method, params }) => {
            let Some(place) = host.admit() else { return };
            let (out, host) = (out.clone(), Arc::clone(host));
            tokio::spawn(async move {
                let _place = place;
                let result = host.answer(&method, params).await;
                if let Some(out) = out.upgrade() {
                    out.send(self::line(&message::response(&id, result))).await.ok();
                }
            });
        }
        Ok(Message::Stray) => {}
        // Programs print greetings; what looks like an answer and is none would be waited for in vain.
        Err(why) if line.first() == Some(&b'{') => shared.fail_all(&Error::Malformed(why)),
        Err(_) => host.log(&String::from_utf8_lossy(
            line.get(..PIECE_BYTES.min(line.len())).unwrap_or_default(),
        )),
    }
}

/// Keeps what a server prints as its log.
async fn keep_log(mut errors: impl AsyncRead + Unpin, host: Arc<Host>) {
    let mut held = Vec::new();
    let mut piece = vec![0; 8 << 10];
    while let Ok(count @ 1..) = errors.read(&mut piece).await {
        for byte in piece.get(..count).unwrap_or_default() {
            if *byte == b'\n' {
                host.log(&String::from_utf8_lossy(&held));
                held.clear();
            } else if held.len() < 4 << 10 {
                held.push(*byte);
            }
        }
        tokio::task::yield_now().await;
    }
    host.log(&String::from_utf8_lossy(&held));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn split(pieces: &[&[u8]]) -> Vec<String> {
        let (mut lines, mut found) = (Lines::default(), Vec::new());
        for piece in pieces {
            lines
                .push(piece, |it| found.push(String::from_utf8_lossy(it).into_owned()))
                .expect("short lines");
        }
        found
    }

    #[test]
    fn lines_are_the_same_at_every_split() {
        let text = "{\"a\":1}\n\n{\"é\":2}\r\nrest\n".as_bytes();
        let whole = split(&[text]);
        assert_eq!(whole, ["{\"a\":1}", "", "{\"é\":2}\r", "rest"]);
        for at in 0..=text.len() {
            assert_eq!(split(&[&text[..at], &text[at..]]), whole, "{at}");
        }
    }

    #[test]
    fn a_line_without_end_is_refused() {
        let mut lines = Lines::default();
        let piece = vec![b'x'; 1 << 20];
        let fed: Vec<_> = (0..17).map(|_| lines.push(&piece, |_| panic!("no line"))).collect();
        assert_eq!(fed.iter().filter(|it| it.is_ok()).count(), 16);
    }
}
