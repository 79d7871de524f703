//! The HTTP gateway: answers requests of the documents protocol from any link.
//!
//! ```text
//! socket ─► wire ─► door (who may come in) ─► route ─► chat, openai ─► talk (the conversation so far) ─► Link
//!    ▲                                                                                               │ log
//!    └──────── reader, with a pen ◄──────── turn: the response in a log of its own ◄──── its keeper ◄─┘
//! ```
//!
//! It never knows what answers: an agent, another gateway, a recording. Without a store each request opens a link of its
//! own, with the conversation that came along, and nothing is remembered afterwards; with one, a conversation is kept
//! and goes on with the next message. Whoever asks is a stranger until the token is shown, and may be slow, greedy or
//! malicious after that: every wait has an end and every queue a limit.

mod chat;
mod door;
mod ending;
mod hall;
mod kept;
mod openai;
mod reader;
mod refusal;
mod route;
mod talk;
#[cfg(test)]
mod tests;
pub mod token;
mod turn;
mod wire;

use std::{
    future::Future,
    io,
    net::{IpAddr, Ipv4Addr, SocketAddr},
    pin::pin,
    sync::Arc,
    time::Duration,
};

use axum::{
    Router,
    http::{Request as HttpRequest, StatusCode},
};
use hyper::{body::Incoming, server::conn::http1};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpSocket, TcpStream},
    sync::{Semaphore, watch},
    task::JoinSet,
    time::timeout,
};
use tower_service::Service;

pub use self::route::Visit;
use self::{
    door::Door,
    hall::Hall,
    kept::Kept,
    refusal::Refusal,
    wire::{Conflict, Patience, Wire},
};
use crate::{
    config::Secret,
    journal::{Log, file::Store},
    link::{Asker, Link},
    protocol::Request,
};

/// Why a link cannot be had for a request.
pub type OpenError = Box<dyn std::error::Error + Send + Sync>;

/// What a link is opened for.
#[derive(Clone, Copy, Debug)]
pub struct Wanted<'a> {
    pub request: &'a Request,
    /// Who is there to answer questions.
    pub asker: Asker,
}

/// Opens a link for a request; the log holds the conversation before its message.
///
/// Called on the server's runtime. A link that keeps a log of its own may leave this one alone.
pub type Opener = dyn Fn(&Wanted<'_>, Arc<Log>) -> Result<Arc<dyn Link>, OpenError> + Send + Sync;

/// What a gateway is made of.
pub struct Setup {
    /// `127.0.0.1:8643`, `localhost:0`, `[::1]:8643`, or a port alone.
    pub listen: String,
    pub token: Secret,
    /// The user chose the token: without that, other machines cannot be let in.
    pub is_token_given: bool,
    pub allow_host: Vec<String>,
    pub allow_origin: Vec<String>,
    /// How many answers may run at the same time.
    pub max_streams: usize,
    /// Where conversations are kept; `None`: they are not, and each request brings its own.
    pub store: Option<Store>,
    /// How long the turn of a kept conversation goes on after its last reader left.
    pub linger: Duration,
    /// What clients can have done here, by name.
    pub tools: Vec<String>,
    pub open: Box<Opener>,
    /// Told of every request that was answered.
    pub visited: Box<dyn Fn(&Visit) + Send + Sync>,
    pub limits: Limits,
}

/// What one client, and all of them together, may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    pub connections: usize,
    pub head_bytes: usize,
    pub head_fields: usize,
    pub head_time: Duration,
    pub body_bytes: usize,
    pub body_time: Duration,
    /// Between two requests on a connection.
    pub idle_time: Duration,
    /// What waits for one reader, with as much in the system.
    pub queue_bytes: usize,
    /// For a full queue to move.
    pub write_time: Duration,
    /// Silence after which a stream shows that it lives.
    pub ping: Duration,
    /// An answer to a wrong token, when there were many.
    pub failure_delay: Duration,
    /// For running answers to end when the server does.
    pub farewell: Duration,
    /// How long a question waits for its answer.
    pub patience: Duration,
    /// How long an ended response, or a conversation that nobody uses, is held in memory.
    pub keep: Duration,
}

impl Limits {
    /// For so many streams at a time. Whoever reads one may want to stop it, or answer a question, on another connection.
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
            ping: Duration::from_secs(15),
            failure_delay: Duration::from_secs(1),
            farewell: Duration::from_secs(5),
            patience: Duration::from_mins(10),
            keep: Duration::from_mins(10),
        }
    }
}

/// Why there is no gateway.
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

/// A gateway that listens.
pub struct Server {
    listener: TcpListener,
    address: SocketAddr,
    router: Router,
    house: Arc<route::House>,
    limits: Limits,
    stopping: watch::Sender<bool>,
}

impl Server {
    /// Takes the port. Connections wait until [`Self::run`].
    pub fn bind(setup: Setup) -> Result<Self, ServeError> {
        let wanted = address(&setup.listen)?;
        let is_guarded = setup.is_token_given && token::is_strong(&setup.token);
        if !wanted.ip().is_loopback() && !is_guarded {
            return Err(ServeError::Token(wanted));
        }
        let limits = setup.limits;
        let failed = |source| ServeError::Listen {
            address: wanted,
            source,
        };
        let listener = listen(wanted, limits.queue_bytes).map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        let (stopping, stop) = watch::channel(false);
        let house = Arc::new(route::House {
            door: Door::new(setup.token.expose(), &setup.allow_host, &setup.allow_origin),
            open: setup.open,
            visited: setup.visited,
            answers: Arc::new(Semaphore::new(setup.max_streams)),
            hall: Hall::default(),
            kept: setup.store.map(Kept::new),
            linger: setup.linger,
            tools: setup.tools,
            limits,
            stop,
        });
        Ok(Self {
            listener,
            address,
            router: route::router(Arc::clone(&house)),
            house,
            limits,
            stopping,
        })
    }

    /// Where it listens, with the port that was found.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Answers until `stop` is over; then lets running answers say their last word.
    pub async fn run(self, stop: impl Future<Output = ()>) {
        let mut stop = pin!(stop);
        let mut guests = JoinSet::new();
        let mut sweeping = tokio::time::interval(self.limits.keep / 8);
        loop {
            tokio::select! {
                () = &mut stop => break,
                _ = sweeping.tick() => {
                    let (house, keep) = (Arc::clone(&self.house), self.limits.keep);
                    tokio::spawn(async move { house.sweep(keep).await });
                }
                Some(_) = guests.join_next() => {}
                accepted = self.listener.accept() => match accepted {
                    Ok((socket, _)) if guests.len() < self.limits.connections => {
                        let stop = self.stopping.subscribe();
                        guests.spawn(attend(socket, self.router.clone(), self.limits, stop));
                    }
                    Ok((socket, _)) => turn_away(&socket),
                    // Out of descriptors, mostly: a moment later some are free.
                    Err(error) => {
                        tracing::warn!(%error, "a connection could not be accepted");
                        tokio::time::sleep(Duration::from_millis(100)).await;
                    }
                }
            }
        }
        drop(self.listener);
        self.stopping.send_replace(true);
        let all = async { while guests.join_next().await.is_some() {} };
        if timeout(self.limits.farewell, all).await.is_err() {
            tracing::info!("some clients did not take their last word");
        }
        if let Some(kept) = &self.house.kept {
            kept.finish().await;
        }
    }
}

/// An address as people write it. Names are not looked up: only this machine has one here.
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
    // A restart must not wait for the old connections to be forgotten.
    #[cfg(unix)]
    socket.set_reuseaddr(true)?;
    // Accepted sockets inherit it: what a slow reader has not taken stays small.
    socket.set_send_buffer_size(u32::try_from(queue_bytes).unwrap_or(u32::MAX))?;
    socket.bind(address)?;
    socket.listen(1024)
}

fn open(opener: &Opener, wanted: &Wanted<'_>, log: Arc<Log>) -> Result<Arc<dyn Link>, Refusal> {
    opener(wanted, log).map_err(|error| {
        let text = error.to_string();
        let (message, hint) = text.split_once('\n').unwrap_or((&text, ""));
        Refusal::new(StatusCode::BAD_GATEWAY, message).details(hint.trim())
    })
}

fn now_ms() -> u64 {
    u64::try_from(chrono::Utc::now().timestamp_millis()).unwrap_or_default()
}

/// What a handler may know of the connection.
#[derive(Clone, Debug)]
struct Guest {
    local: SocketAddr,
    conflict: Conflict,
}

/// Serves one connection to its end.
async fn attend(socket: TcpStream, router: Router, limits: Limits, mut stop: watch::Receiver<bool>) {
    let Ok(local) = socket.local_addr() else { return };
    let _ = socket.set_nodelay(true);
    let guest = Guest {
        local,
        conflict: Conflict::default(),
    };
    let patience = Patience {
        head: limits.head_time,
        write: limits.write_time,
    };
    let wire = Wire::new(socket, patience, guest.conflict.clone());
    let service = hyper::service::service_fn(move |mut request: HttpRequest<Incoming>| {
        request.extensions_mut().insert(guest.clone());
        router.clone().call(request)
    });
    let mut connection = http1::Builder::new()
        .timer(TokioTimer::new())
        // The wire watches heads; this is for the time before one begins.
        .header_read_timeout(limits.idle_time)
        .max_headers(limits.head_fields)
        .max_header_size(limits.head_bytes)
        .max_buf_size(limits.queue_bytes)
        .serve_connection(TokioIo::new(wire), service);
    let mut is_stopping = false;
    let served = loop {
        tokio::select! {
            served = std::future::poll_fn(|cx| connection.poll_without_shutdown(cx)) => break served,
            _ = stop.changed(), if !is_stopping => {
                is_stopping = true;
                std::pin::Pin::new(&mut connection).graceful_shutdown();
            }
        }
    };
    match served {
        Ok(()) => linger(connection.into_parts().io.into_inner().into_inner()).await,
        Err(error) => tracing::debug!(%error, "a connection broke"),
    }
}

/// How long, and how much, a client that is still talking is listened to: it reads the answer only afterwards.
const LINGER: Duration = Duration::from_secs(2);
const LINGER_BYTES: usize = 64 << 20;

/// Closes a connection so that the answer arrives: bytes that nobody read would make the system take it back.
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

/// Too many are here already.
fn turn_away(socket: &TcpStream) {
    let refusal =
        b"HTTP/1.1 503 Service Unavailable\r\nRetry-After: 1\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
    // A new socket has room for so little; whoever cannot take it is turned away all the same.
    let _ = socket.try_write(refusal);
}
