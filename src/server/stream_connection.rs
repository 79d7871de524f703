//! Event streams on a client's connection, written without the HTTP library: for each connection it keeps buffers of 16 KiB and
//! more as long as an answer takes.
//!
//! The library reads the request and runs its handler. An answer that is an event stream is then taken from it together with
//! the socket, which is closed behind the stream.

use std::{
    convert::Infallible,
    future::{pending, poll_fn},
    io,
    pin::Pin,
    sync::{Arc, Mutex, PoisonError},
    task::{Context, Poll},
};

use axum::{
    body::Body,
    http::{Method, Request as HttpRequest, Response as HttpResponse, Version, header, response::Parts},
};
use bytes::Buf;
use chrono::Utc;
use http_body_util::BodyExt;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt, ReadBuf};

/// Media type of event streams.
pub const MEDIA_TYPE: &str = "text/event-stream";

/// Bytes of further requests that are read, and thrown away, to notice that the client has gone.
const UNREAD_BYTES: usize = 64 << 10;

/// An event stream that a handler has answered with, on its way to the connection.
#[derive(Clone, Default)]
pub struct StreamSlot(Arc<Mutex<Option<HttpResponse<Body>>>>);

impl StreamSlot {
    /// Returns the answer of a handler, unless it is an event stream: then the connection finds it here, and this never ends.
    pub async fn answer(
        self,
        is_streamable: bool,
        answering: impl Future<Output = Result<HttpResponse<Body>, Infallible>>,
    ) -> Result<HttpResponse<Body>, Infallible> {
        let response = answering.await?;
        let media_type = response.headers().get(header::CONTENT_TYPE);
        if !is_streamable || media_type.is_none_or(|it| it != MEDIA_TYPE) {
            return Ok(response);
        }
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(response);
        pending().await
    }

    /// Takes the stream; `None` if there is none yet.
    pub fn take(&self) -> Option<HttpResponse<Body>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

/// Returns true if the answer to a request may be sent in chunks.
pub fn is_streamable<T>(request: &HttpRequest<T>) -> bool {
    request.version() == Version::HTTP_11 && request.method() != Method::HEAD
}

/// Sends an event stream. Fails if the client goes before its end.
pub async fn send(socket: &mut (impl AsyncRead + AsyncWrite + Unpin), response: HttpResponse<Body>) -> io::Result<()> {
    let (parts, mut body) = response.into_parts();
    let head = head(&parts);
    drop(parts);
    socket.write_all_buf(&mut head.as_slice()).await?;
    drop(head);
    let mut left = UNREAD_BYTES;
    loop {
        let frame = tokio::select! {
            biased;
            frame = body.frame() => frame,
            gone = poll_fn(|cx| poll_gone(socket, &mut left, cx)) => return Err(gone),
        };
        let Some(frame) = frame else { break };
        // An empty chunk would be the end.
        if let Ok(data) = frame.map_err(io::Error::other)?.into_data()
            && !data.is_empty()
        {
            let size = format!("{:x}\r\n", data.len());
            let mut chunk = size.as_bytes().chain(data).chain(&b"\r\n"[..]);
            socket.write_all_buf(&mut chunk).await?;
        }
    }
    socket.write_all(b"0\r\n\r\n").await
}

/// The head of the answer, as bytes.
fn head(parts: &Parts) -> Vec<u8> {
    let mut head = format!("HTTP/1.1 {}\r\n", parts.status).into_bytes();
    for (name, value) in parts.headers.iter().filter(|(name, _)| *name != header::CONNECTION) {
        head.extend_from_slice(name.as_str().as_bytes());
        head.extend_from_slice(b": ");
        head.extend_from_slice(value.as_bytes());
        head.extend_from_slice(b"\r\n");
    }
    let date = Utc::now().format("%a, %d %b %Y %H:%M:%S GMT");
    let rest = format!("connection: close\r\ntransfer-encoding: chunked\r\ndate: {date}\r\n\r\n");
    head.extend_from_slice(rest.as_bytes());
    head
}

/// Is ready when the client has closed the connection. What it sends is not looked at.
fn poll_gone(socket: &mut (impl AsyncRead + Unpin), left: &mut usize, cx: &mut Context<'_>) -> Poll<io::Error> {
    let mut scrap = [0; 512];
    while *left > 0 {
        let mut buffer = ReadBuf::new(&mut scrap);
        match Pin::new(&mut *socket).poll_read(cx, &mut buffer) {
            Poll::Ready(Ok(())) if buffer.filled().is_empty() => {
                return Poll::Ready(io::ErrorKind::UnexpectedEof.into());
            }
            Poll::Ready(Ok(())) => *left = left.saturating_sub(buffer.filled().len()),
            Poll::Ready(Err(error)) => return Poll::Ready(error),
            Poll::Pending => return Poll::Pending,
        }
    }
    Poll::Pending
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;
    use tokio::io::{AsyncReadExt, duplex};

    use super::*;
    use crate::server::reader::{StreamBody, send as put};

    fn response(body: StreamBody) -> HttpResponse<Body> {
        let mut response = HttpResponse::new(Body::new(body));
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(MEDIA_TYPE));
        headers.insert(header::CONNECTION, HeaderValue::from_static("keep-alive"));
        response
    }

    #[tokio::test]
    async fn a_stream_is_sent_in_chunks_and_says_that_nothing_follows() {
        let (mut client, mut socket) = duplex(16);
        let body = StreamBody::of(async |out| {
            for text in ["data: 1\n\n", "data: a longer one, twice\n\n"] {
                assert!(put(&out, text.to_owned()).await);
            }
        });
        let sending = tokio::spawn(async move { send(&mut socket, response(body)).await });
        client.write_all(b"more").await.expect("it is thrown away");
        let mut sent = String::new();
        client.read_to_string(&mut sent).await.expect("text");
        sending.await.expect("it ends").expect("it is sent");
        let (head, body) = sent.split_once("\r\n\r\n").expect("a head");
        let lines: Vec<&str> = head.lines().collect();
        let [status, kind, connection, coding, date] = lines.as_slice() else {
            panic!("{head}")
        };
        assert_eq!(*status, "HTTP/1.1 200 OK");
        assert_eq!(*kind, "content-type: text/event-stream");
        assert_eq!(
            (*connection, *coding),
            ("connection: close", "transfer-encoding: chunked")
        );
        assert!(date.starts_with("date: ") && date.ends_with(" GMT"), "{date}");
        assert_eq!(
            body,
            "9\r\ndata: 1\n\n\r\n1b\r\ndata: a longer one, twice\n\n\r\n0\r\n\r\n"
        );
    }

    #[tokio::test]
    async fn a_client_that_goes_while_nothing_is_sent_is_noticed() {
        let (mut client, mut socket) = duplex(1024);
        let body = StreamBody::of(async |out| out.closed().await);
        let sending = tokio::spawn(async move { send(&mut socket, response(body)).await });
        let mut head = [0; 15];
        client.read_exact(&mut head).await.expect("the head comes at once");
        drop(client);
        let error = sending.await.expect("it ends").expect_err("nobody is there");
        assert_eq!(error.kind(), io::ErrorKind::UnexpectedEof);
    }
}
