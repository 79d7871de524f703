//! Servers for tests: bare sockets that do what a test tells them, which no well-meant server would.

use std::{
    future::Future,
    time::{Duration, Instant},
};

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    sync::mpsc,
};

/// Listens on this machine and runs `script` on every connection. Gives the address without a slash at its end.
pub async fn listen<F, S>(script: S) -> String
where
    S: Fn(Socket) -> F + Send + 'static,
    F: Future<Output = ()> + Send + 'static,
{
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(script(Socket { stream }));
        }
    });
    format!("http://{address}")
}

/// Answers every request with `answer` as it stands and closes the connection.
pub async fn answer(answer: impl Into<Vec<u8>>) -> String {
    let answer = answer.into();
    listen(move |mut socket| {
        let answer = answer.clone();
        async move {
            socket.request().await;
            socket.send(answer).await;
        }
    })
    .await
}

/// A whole answer with its length.
pub fn page(status: &str, media: &str, body: &str) -> String {
    let length = body.len();
    format!("HTTP/1.1 {status}\r\nContent-Type: {media}\r\nContent-Length: {length}\r\n\r\n{body}")
}

/// The head of an event stream whose end is the end of the connection.
pub const STREAM: &str = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n";

/// A port that nobody listens at.
pub async fn nobody() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    format!("http://{}", listener.local_addr().unwrap())
}

pub struct Socket {
    pub stream: TcpStream,
}

impl Socket {
    /// The next request: head and, by its length, body. Empty when the client went away.
    pub async fn request(&mut self) -> String {
        let mut text = Vec::new();
        loop {
            let Ok(byte) = self.stream.read_u8().await else {
                return String::new();
            };
            text.push(byte);
            if text.ends_with(b"\r\n\r\n") {
                break;
            }
        }
        let head = String::from_utf8_lossy(&text).to_lowercase();
        let length = head
            .lines()
            .find_map(|line| line.strip_prefix("content-length: ")?.parse().ok());
        let mut body = vec![0; length.unwrap_or(0)];
        self.stream.read_exact(&mut body).await.ok();
        text.extend(body);
        String::from_utf8_lossy(&text).into_owned()
    }

    /// Writes and flushes; a client that went away is no error.
    pub async fn send(&mut self, bytes: impl AsRef<[u8]>) {
        self.stream.write_all(bytes.as_ref()).await.ok();
        self.stream.flush().await.ok();
    }

    /// Waits until the client has closed the connection.
    pub async fn closed(&mut self) {
        let mut sink = [0; 1024];
        while let Ok(1..) = self.stream.read(&mut sink).await {}
    }

    /// Never comes back, and keeps the connection open.
    pub async fn hang(self) {
        std::future::pending::<()>().await;
        drop(self);
    }
}

/// Returns a channel on which peers report to the test, in order.
pub fn diary<T>() -> (mpsc::UnboundedSender<T>, Diary<T>) {
    let (sender, receiver) = mpsc::unbounded_channel();
    (sender, Diary(receiver))
}

/// Runs `scenario` until it measures less than a tenth of a second. A machine that has much else to do may need
/// several goes; one that never succeeds is too slow by design.
pub async fn promptly(name: &str, mut scenario: impl AsyncFnMut() -> Duration) {
    let mut best = Duration::MAX;
    for _ in 0..10 {
        best = best.min(scenario().await);
        if best < Duration::from_millis(100) {
            return;
        }
    }
    panic!("{name}: after {best:?} at best");
}

/// A server that never says a word, which leaves a client of `https` connecting. Tells of each client, and of its end.
pub async fn mute() -> (String, Diary<String>) {
    let (seen, diary) = diary();
    let base = listen(move |mut socket| {
        let seen = seen.clone();
        async move {
            seen.send("came".to_owned()).unwrap();
            socket.closed().await;
            seen.send("closed".to_owned()).unwrap();
        }
    })
    .await;
    (base.replace("http:", "https:"), diary)
}

pub struct Diary<T>(mpsc::UnboundedReceiver<T>);

impl Diary<String> {
    /// Waits until the client has gone; returns the time that this took.
    pub async fn closed(&mut self) -> Duration {
        let start = Instant::now();
        assert_eq!(self.next().await, "closed");
        start.elapsed()
    }
}

impl<T> Diary<T> {
    /// The next entry; the test fails when none comes for so long that none will.
    pub async fn next(&mut self) -> T {
        tokio::time::timeout(Duration::from_secs(20), self.0.recv())
            .await
            .expect("a peer hung")
            .expect("a peer died")
    }

    /// The entries so far.
    pub fn so_far(&mut self) -> Vec<T> {
        std::iter::from_fn(|| self.0.try_recv().ok()).collect()
    }
}
