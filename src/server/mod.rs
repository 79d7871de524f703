//! The HTTP gateway (`sheaf serve`): answers requests of the documents protocol and of OpenAI's and Anthropic's APIs from any [`Link`].
//!
//! ```text
//! socket ─► connection ─► auth ─► route ─► chat, façades ─► history (the conversation before) ─► Link
//!    ▲                                                                                            │ log
//!    └──── reader, with an encoder ◄──── turn: the response in its own log ◄──── event relay ◄──┘
//! ```
//!
//! It does not know what answers: an agent, another gateway or a recording. Without a session store, each request opens
//! its own link with the conversation that the request carries, and nothing is remembered afterwards. With a store, a
//! conversation stays open and continues with the next message. Every client is untrusted until it shows the token, and
//! may be slow, greedy or malicious after that: every wait has a timeout and every queue a limit.

mod anthropic;
mod auth;
mod chat;
mod chunk_channel;
mod connection;
mod conversations;
mod ending;
mod events;
mod facade;
mod flatten;
mod history;
mod openai;
mod reader;
mod refusal;
mod registry;
mod route;
mod sessions;
mod state;
mod stream_connection;
#[cfg(test)]
mod tests;
pub mod token;
mod turn;

use std::{
    future::Future,
    io,
    net::{IpAddr, Ipv4Addr, SocketAddr},
    pin::pin,
    sync::{Arc, atomic::AtomicBool},
    task::Poll,
    time::Duration,
};

use axum::{
    Router,
    body::Body,
    http::{Request as HttpRequest, Response as HttpResponse, StatusCode},
};
use hyper::{body::Incoming, server::conn::http1};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpSocket, TcpStream},
    sync::{Semaphore, watch},
    time::timeout,
};
use tower_service::Service;

pub use self::state::AccessRecord;
use self::{
    auth::AccessPolicy,
    connection::{ClientSocket, Connections, LengthConflict, OpenRequests, Timeouts},
    refusal::Refusal,
    registry::ResponseRegistry,
    sessions::Conversations,
    state::ServerState,
    stream_connection::StreamSlot,
};
use crate::{
    config::Secret,
    journal::{Log, file::Store},
    link::{Asker, Link},
    protocol::Request,
};

/// Reason why an [`Opener`] could not open a link. Its text goes to the client: the first line is the message, the rest
/// the hint.
pub type OpenError = Box<dyn std::error::Error + Send + Sync>;

/// Input of an [`Opener`]: the request to answer, and its client's way to answer questions.
#[derive(Clone, Copy, Debug)]
pub struct LinkRequest<'a> {
    /// Default request, without messages, when only the link's models or tools are asked for.
    pub request: &'a Request,
    /// The client's way to answer questions: while the turn runs, or with its next message.
    pub asker: Asker,
}

/// Opens a link for a request. The log holds the conversation before the request's last message.
///
/// It is called on the server's runtime. A link with a log of its own may ignore the one passed in.
pub type Opener = dyn Fn(&LinkRequest<'_>, Arc<Log>) -> Result<Arc<dyn Link>, OpenError> + Send + Sync;

/// Everything that [`Server::bind`] needs.
pub struct ServerOptions {
    /// Address to listen on: `127.0.0.1:8643`, `localhost:0`, `[::1]:8643`, or a port alone. Port 0 takes any free one.
    pub listen: String,
    /// Bearer token that every request but the health check must carry.
    pub token: Secret,
    /// True if the user chose the token. A generated one is not accepted for addresses that other machines can reach.
    pub is_token_given: bool,
    /// Accepted `Host` names beside localhost and the server's own address, with or without a port.
    pub allow_host: Vec<String>,
    /// Origins of web pages that may call the server (`https://app.example`). Empty: none.
    pub allow_origin: Vec<String>,
    /// Maximum number of answers that run at the same time. Further requests get status 503.
    pub max_streams: usize,
    /// Session files of the conversations. `None`: nothing is stored, and each request carries its whole conversation.
    pub store: Option<Store>,
    /// Time that the turn of a stored conversation continues after its last reader has left.
    pub linger: Duration,
    /// Time that another stream continues after its last reader has left, so that a client can return. Zero: none.
    pub grace: Duration,
    /// Models that requests may name. Empty: any.
    pub models: Vec<String>,
    /// Names of the tools that the agent may use here, for `GET /v1/models`.
    pub tools: Vec<String>,
    /// True if clients may undo what the agent did to files.
    pub can_undo: bool,
    pub open: Box<Opener>,
    /// Called once for each request, after its response has been sent or abandoned.
    pub log_access: Box<dyn Fn(&AccessRecord) + Send + Sync>,
    pub limits: Limits,
}

/// Limits on time and memory, per client and in total.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Maximum number of open connections. A further one replaces the oldest that has no open request, or gets status 503.
    pub connections: usize,
    /// Maximum size of a request head, in bytes.
    pub head_bytes: usize,
    /// Maximum number of header fields.
    pub head_fields: usize,
    /// Time from the first byte of a request head to its last.
    pub head_time: Duration,
    /// Maximum size of a request body, in bytes.
    pub body_bytes: usize,
    /// Time for the whole request body.
    pub body_time: Duration,
    /// Time that a connection may be idle between two requests.
    pub idle_time: Duration,
    /// Size of a connection's buffer in the HTTP library, and of its send buffer in the system, in bytes each.
    pub queue_bytes: usize,
    /// Time that a full send buffer may stay full before the reader is cut off.
    pub write_time: Duration,
    /// Silence after which a stream sends a ping. Also the longest wait for the first event of an OpenAI stream.
    pub ping_interval: Duration,
    /// Delay of the answer to a wrong token after many of them.
    pub failure_delay: Duration,
    /// Time that running answers have to finish when the server stops.
    pub shutdown_time: Duration,
    /// Time that a question of a running turn waits for its answer.
    pub question_time: Duration,
    /// Time that an ended response of a stored conversation, or an unused conversation, stays in memory.
    pub retention: Duration,
    /// Time that any other ended stream stays in memory.
    pub brief_retention: Duration,
}

impl Limits {
    /// Returns the defaults, with room for two connections per stream: a reader may need a second one to cancel or to
    /// answer a question.
    pub fn for_streams(count: usize) -> Self {
        let limits = Self::default();
        Self {
            connections: limits.connections.max(count.saturating_mul(2)),
            ..limits
        }
    }
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connections: 256,
            head_bytes: 64 << 10,
            head_fields: 100,
            head_time: Duration::from_secs(10),
            body_bytes: 32 << 20,
            body_time: Duration::from_secs(30),
            idle_time: Duration::from_secs(15),
            queue_bytes: 64 << 10,
            write_time: Duration::from_secs(10),
            ping_interval: Duration::from_secs(15),
            failure_delay: Duration::from_secs(1),
            shutdown_time: Duration::from_millis(1500),
            question_time: Duration::from_mins(10),
            retention: Duration::from_mins(10),
            brief_retention: Duration::from_mins(5),
        }
    }
}

/// Reason why the server did not start.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    #[error("`{0}` is no address to listen at\n  write it as 127.0.0.1:8643, or a port alone")]
    Address(String),
    #[error(
        "{0} can be reached from other machines, so the token has to be yours\n  \
         set SHEAF_SERVE_TOKEN to one of at least 22 characters, `openssl rand -hex 32` makes one"
    )]
    Token(SocketAddr),
    #[error("{address} cannot be listened at\n  is another sheaf there? --listen names another port")]
    Listen { address: SocketAddr, source: io::Error },
}

/// A gateway that listens, from [`Server::bind`] on.
pub struct Server {
    listener: TcpListener,
    address: SocketAddr,
    router: Router,
    state: Arc<ServerState>,
    limits: Limits,
    stopping: watch::Sender<bool>,
}

impl Server {
    /// Binds the port. Connections wait in the system's queue until [`Self::run`].
    ///
    /// Errors: the address cannot be parsed or bound, or other machines can reach it and the token was not chosen by
    /// the user or is weak.
    pub fn bind(options: ServerOptions) -> Result<Self, ServeError> {
        let wanted = address(&options.listen)?;
        let is_guarded = options.is_token_given && token::is_strong(&options.token);
        if !wanted.ip().is_loopback() && !is_guarded {
            return Err(ServeError::Token(wanted));
        }
        let limits = options.limits;
        let failed = |source| ServeError::Listen {
            address: wanted,
            source,
        };
        let listener = listen(wanted, limits.queue_bytes).map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        let (stopping, stop) = watch::channel(false);
        let state = Arc::new(ServerState {
            access: AccessPolicy::new(options.token.expose(), &options.allow_host, &options.allow_origin),
            open: options.open,
            log_access: options.log_access,
            answers: Arc::new(Semaphore::new(options.max_streams)),
            responses: ResponseRegistry::default(),
            conversations: options.store.map(Conversations::new),
            linger: options.linger,
            grace: options.grace,
            models: options.models,
            tools: options.tools,
            can_undo: options.can_undo,
            limits,
            stop,
            is_trim_due: AtomicBool::new(false),
        });
        Ok(Self {
            listener,
            address,
            router: route::router(Arc::clone(&state)),
            state,
            limits,
            stopping,
        })
    }

    /// Returns the address that it listens on, with the actual port.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Serves requests until `stop` completes. Then it gives running answers [`Limits::shutdown_time`] to finish and
    /// writes all stored conversations to disk.
    pub async fn run(self, stop: impl Future<Output = ()>) {
        let mut stop = pin!(stop);
        let mut connections = Connections::new(self.limits.connections);
        let shortest = self.limits.retention.min(self.limits.brief_retention);
        let mut sweeping = tokio::time::interval(shortest / 8);
        loop {
            tokio::select! {
                () = &mut stop => break,
                _ = sweeping.tick() => {
                    let state = Arc::clone(&self.state);
                    tokio::spawn(async move { state.sweep().await });
                }
                accepted = self.listener.accept() => match accepted {
                    Ok((socket, _)) if connections.make_room() => {
                        let (stop, requests) = (self.stopping.subscribe(), OpenRequests::default());
                        let served = serve_connection(socket, self.router.clone(), self.limits, requests.clone(), stop);
                        connections.serve(requests, served);
                    }
                    Ok((socket, _)) => reject(&socket),
                    // Usually the process is out of file descriptors; some are free again a moment later.
                    Err(error) => {
                        tracing::warn!(%error, "a connection could not be accepted");
                        tokio::time::sleep(Duration::from_millis(100)).await;
                    }
                }
            }
        }
        drop(self.listener);
        self.stopping.send_replace(true);
        if timeout(self.limits.shutdown_time, connections.finish()).await.is_err() {
            tracing::info!("some clients did not take their last word");
        }
        if let Some(conversations) = &self.state.conversations {
            conversations.finish().await;
        }
    }
}

/// Parses a listen address. No name but `localhost` is resolved.
fn address(text: &str) -> Result<SocketAddr, ServeError> {
    let text = text.trim();
    let here = IpAddr::V4(Ipv4Addr::LOCALHOST);
    if let Ok(address) = text.parse() {
        return Ok(address);
    }
    let port = text.strip_prefix("localhost:").unwrap_or(text);
    port.parse()
        .map(|port| SocketAddr::new(here, port))
        .map_err(|_| ServeError::Address(text.to_owned()))
}

fn listen(address: SocketAddr, queue_bytes: usize) -> io::Result<TcpListener> {
    let socket = if address.is_ipv4() {
        TcpSocket::new_v4()?
    } else {
        TcpSocket::new_v6()?
    };
    // A restart must not wait until the system has closed the old connections.
    #[cfg(unix)]
    socket.set_reuseaddr(true)?;
    // Accepted sockets inherit it, so little unread data waits in the system for a slow reader.
    socket.set_send_buffer_size(u32::try_from(queue_bytes).unwrap_or(u32::MAX))?;
    socket.bind(address)?;
    socket.listen(1024)
}

fn open(opener: &Opener, request: &LinkRequest<'_>, log: Arc<Log>) -> Result<Arc<dyn Link>, Refusal> {
    opener(request, log).map_err(|error| {
        let text = error.to_string();
        let (message, hint) = text.split_once('\n').unwrap_or((&text, ""));
        Refusal::new(StatusCode::BAD_GATEWAY, message).details(hint.trim())
    })
}

fn now_ms() -> u64 {
    u64::try_from(chrono::Utc::now().timestamp_millis()).unwrap_or_default()
}

/// Facts about its connection that a request handler may need, as a request extension.
#[derive(Clone, Debug)]
struct ConnectionInfo {
    local: SocketAddr,
    conflict: LengthConflict,
    requests: OpenRequests,
}

/// Serves one connection until it closes.
async fn serve_connection(
    socket: TcpStream,
    router: Router,
    limits: Limits,
    requests: OpenRequests,
    stop: watch::Receiver<bool>,
) {
    let Ok(local) = socket.local_addr() else { return };
    let _ = socket.set_nodelay(true);
    let info = ConnectionInfo {
        local,
        conflict: LengthConflict::default(),
        requests,
    };
    let timeouts = Timeouts {
        head: limits.head_time,
        write: limits.write_time,
    };
    let socket = ClientSocket::new(socket, timeouts, info.conflict.clone(), info.requests.clone());
    // In boxes: what is over when an answer streams.
    let Some((mut socket, stream)) = Box::pin(serve_requests(socket, router, limits, info, stop)).await else {
        return;
    };
    if let Some(stream) = stream
        && let Err(error) = stream_connection::send(&mut socket, stream).await
    {
        tracing::debug!(%error, "a stream broke");
        return;
    }
    Box::pin(linger(socket.into_inner())).await;
}

/// A client's socket, and the event stream that is to be sent on it.
type Served = (ClientSocket<TcpStream>, Option<HttpResponse<Body>>);

/// Answers requests until the connection closes or an answer is an event stream. `None`: the connection broke.
async fn serve_requests(
    socket: ClientSocket<TcpStream>,
    router: Router,
    limits: Limits,
    info: ConnectionInfo,
    mut stop: watch::Receiver<bool>,
) -> Option<Served> {
    let slot = StreamSlot::default();
    let streams = slot.clone();
    let service = hyper::service::service_fn(move |mut request: HttpRequest<Incoming>| {
        let is_streamable = stream_connection::is_streamable(&request);
        request.extensions_mut().insert(info.clone());
        Box::pin(slot.clone().answer(is_streamable, router.clone().call(request)))
    });
    let mut connection = http1::Builder::new()
        .timer(TokioTimer::new())
        // [`ClientSocket`] limits the time of a head; this limits the time before one begins.
        .header_read_timeout(limits.idle_time)
        .max_headers(limits.head_fields)
        .max_header_size(limits.head_bytes)
        .max_buf_size(limits.queue_bytes)
        .serve_connection(TokioIo::new(socket), service);
    let mut is_stopping = false;
    let stream = loop {
        let served = std::future::poll_fn(|cx| {
            let served = connection.poll_without_shutdown(cx);
            match streams.take() {
                Some(stream) => Poll::Ready(Ok(Some(stream))),
                None => served.map_ok(|()| None),
            }
        });
        tokio::select! {
            served = served => break served,
            _ = stop.changed(), if !is_stopping => {
                is_stopping = true;
                std::pin::Pin::new(&mut connection).graceful_shutdown();
            }
        }
    };
    match stream {
        Ok(stream) => Some((connection.into_parts().io.into_inner(), stream)),
        Err(error) => {
            tracing::debug!(%error, "a connection broke");
            None
        }
    }
}

/// Time, and bytes, that are still read from a client that sends more: it reads the answer only afterwards.
const LINGER: Duration = Duration::from_secs(2);
const LINGER_BYTES: usize = 64 << 20;

/// Closes a connection so that the answer arrives: with unread bytes in its buffer the system would reset it instead.
async fn linger(mut socket: TcpStream) {
    if socket.shutdown().await.is_err() {
        return;
    }
    let drain = async {
        let mut scrap = vec![0; 16 << 10];
        let mut left = LINGER_BYTES;
        while left > 0 {
            match socket.read(&mut scrap).await {
                Ok(count) if count > 0 => left = left.saturating_sub(count),
                Ok(_) | Err(_) => return,
            }
        }
    };
    let _ = timeout(LINGER, drain).await;
}

/// Answers a connection above the limit with status 503.
fn reject(socket: &TcpStream) {
    let refusal =
        b"HTTP/1.1 503 Service Unavailable\r\nRetry-After: 1\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
    // A new socket has room for so few bytes; if not, the client is rejected without an answer.
    let _ = socket.try_write(refusal);
}
