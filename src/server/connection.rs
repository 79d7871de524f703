//! Clients' connections, and a client's socket with checks that the HTTP library lacks: time for a request head, heads with
//! two body lengths, and readers that stop reading.
//!
//! The library accepts a request with `Transfer-Encoding` and `Content-Length` and ignores the latter. A proxy in front
//! may have used the other one (request smuggling), so heads are scanned here before the library sees them.

use std::{
    collections::VecDeque,
    future::Future,
    io,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    task::{Context, Poll},
    time::Duration,
};

use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    task::{AbortHandle, JoinSet},
    time::{Sleep, sleep},
};

/// Size at which the scanner gives up on a head. The library refuses shorter ones already.
const HEAD_LIMIT_BYTES: usize = 128 << 10;

/// Shared flag: a head on this connection had two body lengths, so nothing later on it can be trusted.
#[derive(Clone, Debug, Default)]
pub struct LengthConflict(Arc<AtomicBool>);

impl LengthConflict {
    /// Returns true once such a head has been read.
    pub fn is_seen(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// Number of a connection's requests whose answers have not been sent.
#[derive(Clone, Debug, Default)]
pub struct OpenRequests(Arc<AtomicUsize>);

/// A request whose answer has not been sent, until it is dropped.
#[derive(Debug)]
pub struct OpenRequest(OpenRequests);

impl OpenRequests {
    /// Counts a request.
    pub fn begin(&self) -> OpenRequest {
        self.0.fetch_add(1, Ordering::Relaxed);
        OpenRequest(self.clone())
    }

    fn is_empty(&self) -> bool {
        self.0.load(Ordering::Relaxed) == 0
    }
}

impl Drop for OpenRequest {
    fn drop(&mut self) {
        self.0.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// The open connections, up to a limit. A connection without an open request makes room for a new one, so clients that
/// send part of a request, or nothing, block nobody.
pub struct Connections {
    limit: usize,
    tasks: JoinSet<()>,
    /// Oldest first.
    open: VecDeque<(AbortHandle, OpenRequests)>,
}

impl Connections {
    pub fn new(limit: usize) -> Self {
        Self {
            limit,
            tasks: JoinSet::new(),
            open: VecDeque::new(),
        }
    }

    /// Makes room for a connection: at the limit, closes the oldest one without an open request. Returns false if there is
    /// none.
    pub fn make_room(&mut self) -> bool {
        while self.tasks.try_join_next().is_some() {}
        if self.open.len() >= self.limit {
            self.open.retain(|(task, _)| !task.is_finished());
        }
        if self.open.len() < self.limit {
            return true;
        }
        let waiting = self.open.iter().position(|(_, requests)| requests.is_empty());
        let Some((task, _)) = waiting.and_then(|at| self.open.remove(at)) else {
            return false;
        };
        task.abort();
        true
    }

    /// Serves a connection.
    pub fn serve(&mut self, requests: OpenRequests, connection: impl Future<Output = ()> + Send + 'static) {
        self.open.push_back((self.tasks.spawn(connection), requests));
    }

    /// Waits until all connections have ended.
    pub async fn finish(mut self) {
        while self.tasks.join_next().await.is_some() {}
    }
}

/// Time limits of a client's socket.
#[derive(Clone, Copy, Debug)]
pub struct Timeouts {
    /// From the first byte of a request head to its last.
    pub head: Duration,
    /// Until a full socket takes one more byte.
    pub write: Duration,
}

/// Wraps a socket: reads and writes fail with `TimedOut` past their limits, and heads are scanned for two lengths.
pub struct ClientSocket<S> {
    socket: S,
    timeouts: Timeouts,
    conflict: LengthConflict,
    scanner: HeadScanner,
    /// Set while a head is incomplete.
    head_timer: Option<Pin<Box<Sleep>>>,
    /// Set while the socket is full.
    write_timer: Option<Pin<Box<Sleep>>>,
    requests: OpenRequests,
    /// Set while the socket is full: the end of an answer may be waiting.
    unsent: Option<OpenRequest>,
}

impl<S> ClientSocket<S> {
    pub fn new(socket: S, timeouts: Timeouts, conflict: LengthConflict, requests: OpenRequests) -> Self {
        Self {
            socket,
            timeouts,
            conflict,
            scanner: HeadScanner::default(),
            head_timer: None,
            write_timer: None,
            requests,
            unsent: None,
        }
    }

    /// Returns the wrapped socket.
    pub fn into_inner(self) -> S {
        self.socket
    }
}

/// Starts the timer if it is not running, and returns true if it has expired.
fn has_expired(timer: &mut Option<Pin<Box<Sleep>>>, timeout: Duration, cx: &mut Context<'_>) -> bool {
    let timer = timer.get_or_insert_with(|| Box::pin(sleep(timeout)));
    timer.as_mut().poll(cx).is_ready()
}

impl<S: AsyncRead + Unpin> AsyncRead for ClientSocket<S> {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let this = &mut *self;
        let before = buffer.filled().len();
        match Pin::new(&mut this.socket).poll_read(cx, buffer) {
            Poll::Ready(Ok(())) => {
                let new = buffer.filled().get(before..).unwrap_or_default();
                if this.scanner.push(new) {
                    this.conflict.0.store(true, Ordering::Relaxed);
                }
                if !this.scanner.is_in_head() {
                    this.head_timer = None;
                }
                Poll::Ready(Ok(()))
            }
            Poll::Ready(Err(error)) => Poll::Ready(Err(error)),
            Poll::Pending if this.scanner.is_in_head() && has_expired(&mut this.head_timer, this.timeouts.head, cx) => {
                Poll::Ready(Err(io::ErrorKind::TimedOut.into()))
            }
            Poll::Pending => Poll::Pending,
        }
    }
}

impl<S: AsyncWrite + Unpin> ClientSocket<S> {
    fn check_write(&mut self, result: Poll<io::Result<usize>>, cx: &mut Context<'_>) -> Poll<io::Result<usize>> {
        match result {
            Poll::Ready(result) => {
                self.write_timer = None;
                self.unsent = None;
                Poll::Ready(result)
            }
            Poll::Pending if has_expired(&mut self.write_timer, self.timeouts.write, cx) => {
                Poll::Ready(Err(io::ErrorKind::TimedOut.into()))
            }
            Poll::Pending => {
                let requests = &self.requests;
                self.unsent.get_or_insert_with(|| requests.begin());
                Poll::Pending
            }
        }
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for ClientSocket<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let result = Pin::new(&mut self.socket).poll_write(cx, bytes);
        self.check_write(result, cx)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        pieces: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let result = Pin::new(&mut self.socket).poll_write_vectored(cx, pieces);
        self.check_write(result, cx)
    }

    fn is_write_vectored(&self) -> bool {
        self.socket.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.socket).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.socket).poll_shutdown(cx)
    }
}

/// Finds the request heads in the bytes that a client sends, however they are split.
#[derive(Debug)]
enum HeadScanner {
    /// In a head, with the bytes of it that have arrived.
    Head(Vec<u8>),
    /// In a body, with the number of bytes left until the next head.
    Body(u64),
    /// Scanning has stopped. After a chunked body the server closes the connection; anything malformed the library
    /// refuses.
    Over,
}

impl Default for HeadScanner {
    fn default() -> Self {
        Self::Head(Vec::new())
    }
}

impl HeadScanner {
    fn is_in_head(&self) -> bool {
        matches!(self, Self::Head(head) if !head.is_empty())
    }

    /// Scans more bytes. Returns true if a head that ends in them has two body lengths.
    fn push(&mut self, mut bytes: &[u8]) -> bool {
        let mut conflict = false;
        while !bytes.is_empty() {
            match self {
                Self::Over => return conflict,
                Self::Body(left) => {
                    let here = usize::try_from(*left).map_or(bytes.len(), |it| it.min(bytes.len()));
                    *left -= here as u64;
                    bytes = bytes.get(here..).unwrap_or_default();
                    if *left == 0 {
                        *self = Self::default();
                    }
                }
                Self::Head(head) => {
                    // Empty lines before a request are skipped, as by the library.
                    if head.is_empty() && matches!(bytes.first(), Some(b'\r' | b'\n')) {
                        bytes = bytes.get(1..).unwrap_or_default();
                        continue;
                    }
                    let line = bytes
                        .iter()
                        .position(|it| *it == b'\n')
                        .map_or(bytes.len(), |it| it + 1);
                    let (new, rest) = bytes.split_at(line);
                    head.extend_from_slice(new);
                    bytes = rest;
                    if head.ends_with(b"\n\r\n") || head.ends_with(b"\n\n") {
                        let length = BodyLength::of(head);
                        conflict |= length == BodyLength::Conflicting;
                        *self = match length {
                            BodyLength::Known(0) => Self::default(),
                            BodyLength::Known(left) => Self::Body(left),
                            BodyLength::Chunked | BodyLength::Conflicting | BodyLength::Invalid => Self::Over,
                        };
                    } else if head.len() > HEAD_LIMIT_BYTES {
                        *self = Self::Over;
                    }
                }
            }
        }
        conflict
    }
}

/// Length of the body, as a request head declares it.
#[derive(Debug, PartialEq, Eq)]
enum BodyLength {
    Known(u64),
    Chunked,
    Conflicting,
    Invalid,
}

impl BodyLength {
    fn of(head: &[u8]) -> Self {
        let mut known = None;
        let mut in_chunks = false;
        for line in head.split(|it| *it == b'\n').skip(1) {
            let Some(colon) = line.iter().position(|it| *it == b':') else {
                continue;
            };
            let (name, value) = line.split_at(colon);
            if name.trim_ascii().eq_ignore_ascii_case(b"transfer-encoding") {
                in_chunks = true;
            } else if name.trim_ascii().eq_ignore_ascii_case(b"content-length") {
                let value = value.get(1..).unwrap_or_default().trim_ascii();
                known = Some(std::str::from_utf8(value).ok().and_then(|it| it.parse().ok()));
            }
        }
        match (known, in_chunks) {
            (Some(_), true) => Self::Conflicting,
            (None, true) => Self::Chunked,
            (Some(Some(length)), false) => Self::Known(length),
            (Some(None), false) => Self::Invalid,
            (None, false) => Self::Known(0),
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    use super::*;

    const PATIENCE: Timeouts = Timeouts {
        head: Duration::from_millis(50),
        write: Duration::from_millis(50),
    };

    #[test]
    fn two_lengths_are_seen_at_every_split_and_nothing_else_is_one() {
        let cases: &[(&str, bool, &str)] = &[
            ("a length", false, "POST / HTTP/1.1\r\nContent-Length: 2\r\n\r\n{}"),
            (
                "chunks",
                false,
                "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n",
            ),
            (
                "both",
                true,
                "POST / HTTP/1.1\r\ncontent-length: 2\r\nTRANSFER-ENCODING : chunked\r\n\r\n",
            ),
            (
                "both, the other way round",
                true,
                "\r\nPOST / HTTP/1.1\nTransfer-Encoding: chunked\nContent-Length: 2\n\n",
            ),
            (
                "a body that looks like a head",
                false,
                "POST / HTTP/1.1\r\nContent-Length: 56\r\n\r\nA: b\r\nTransfer-Encoding: chunked\r\nContent-Length: 2\r\n\r\nGET / HTTP/1.1\r\n\r\n",
            ),
            (
                "in the second request",
                true,
                "POST / HTTP/1.1\r\nContent-Length: 2\r\n\r\n{}POST / HTTP/1.1\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n",
            ),
            ("no number", false, "POST / HTTP/1.1\r\nContent-Length: x\r\n\r\n"),
        ];
        for (name, wanted, text) in cases {
            let bytes = text.as_bytes();
            for at in 0..bytes.len() {
                let mut scanner = HeadScanner::default();
                let (before, behind) = bytes.split_at(at);
                let found = scanner.push(before) | scanner.push(behind);
                assert_eq!(found, *wanted, "{name} at {at}");
            }
            let mut scanner = HeadScanner::default();
            let found = bytes.chunks(1).fold(false, |found, it| scanner.push(it) | found);
            assert_eq!(found, *wanted, "{name} byte by byte");
        }
    }

    #[tokio::test]
    async fn a_connection_without_a_request_makes_room_and_one_with_a_request_does_not() {
        let mut connections = Connections::new(2);
        let requests = [0; 3].map(|_| OpenRequests::default());
        let [first, second, _] = requests.each_ref().map(OpenRequests::begin);
        for it in &requests[..2] {
            assert!(connections.make_room());
            connections.serve(it.clone(), std::future::pending());
        }
        assert!(!connections.make_room(), "both are at work");
        drop(second);
        assert!(connections.make_room(), "the one that waits is closed");
        let (closed, is_closed) = tokio::sync::oneshot::channel::<()>();
        connections.serve(OpenRequests::default(), async move {
            let _open = closed;
            std::future::pending::<()>().await;
        });
        let other = OpenRequests::default();
        let _open = other.begin();
        assert!(connections.make_room());
        connections.serve(other, std::future::pending());
        assert!(is_closed.await.is_err(), "it was closed");
        assert!(!connections.make_room(), "again, both are at work");
        drop(first);
        assert!(connections.make_room());
        // One that has ended needs no other to go.
        connections.serve(requests[2].clone(), std::future::ready(()));
        tokio::task::yield_now().await;
        assert!(connections.make_room());
    }

    #[tokio::test]
    async fn a_full_socket_counts_as_an_open_request() {
        let (mut client, server) = tokio::io::duplex(4);
        let requests = OpenRequests::default();
        let mut wire = ClientSocket::new(server, PATIENCE, LengthConflict::default(), requests.clone());
        assert!(requests.is_empty());
        let mut sending = tokio::spawn(async move { wire.write_all(b"12345678").await.map(|()| wire) });
        while requests.is_empty() {
            tokio::select! {
                _ = &mut sending => panic!("it cannot have been sent"),
                () = tokio::task::yield_now() => {}
            }
        }
        client.read_exact(&mut [0; 8]).await.expect("it is sent");
        let _wire = sending.await.expect("it ends").expect("it was sent");
        assert!(requests.is_empty());
    }

    #[tokio::test]
    async fn a_head_that_does_not_end_is_not_waited_for_and_silence_is() {
        let (mut client, server) = tokio::io::duplex(64);
        let mut wire = ClientSocket::new(server, PATIENCE, LengthConflict::default(), OpenRequests::default());
        client.write_all(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n").await.unwrap();
        let mut bytes = [0; 64];
        assert!(wire.read(&mut bytes).await.unwrap() > 0);
        let silent = tokio::time::timeout(PATIENCE.head * 3, wire.read(&mut bytes)).await;
        assert!(silent.is_err(), "between requests somebody else counts");
        client.write_all(b"GET / HT").await.unwrap();
        assert!(wire.read(&mut bytes).await.unwrap() > 0);
        let error = wire.read(&mut bytes).await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
    }

    #[tokio::test]
    async fn a_reader_that_does_not_read_is_cut_and_a_slow_one_is_not() {
        // All of it takes longer than a socket may stand still, no part of it does, also where the machine is busy.
        let timeouts = Timeouts {
            write: Duration::from_secs(2),
            ..PATIENCE
        };
        let (mut client, server) = tokio::io::duplex(64);
        let mut wire = ClientSocket::new(server, timeouts, LengthConflict::default(), OpenRequests::default());
        let reader = tokio::spawn(async move {
            for _ in 0..6 {
                tokio::time::sleep(timeouts.write / 3).await;
                client.read_exact(&mut [0; 16]).await.unwrap();
            }
        });
        wire.write_all(&[1; 128]).await.expect("it takes a little at a time");
        reader.await.unwrap();
        let (_client, server) = tokio::io::duplex(64);
        let mut wire = ClientSocket::new(server, PATIENCE, LengthConflict::default(), OpenRequests::default());
        let error = wire.write_all(&[1; 128]).await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
    }
}
