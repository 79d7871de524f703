//! One HTTP client per server that sheaf talks to.
//!
//! What a token needs is the rule here: redirects are never followed, plain `http://` goes to this machine or, when
//! allowed by hand, to a private network, and a name that resolves to anything else is refused after the look-up.
//! Every wait has an end: connecting, the first byte of the body, and silence after it. Dropping the future or the
//! body closes the connection.
//!
//! Nothing is loaded before the first request, and a client for this machine never reads the system's certificates:
//! that alone can take longer than the whole start of the program.

use std::{
    error::Error as StdError,
    net::IpAddr,
    path::{Path, PathBuf},
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

mod reach;

use bytes::Bytes;
use futures::{Stream, StreamExt};
pub use reqwest::{
    Method, StatusCode, Url,
    header::{self, HeaderMap, HeaderName, HeaderValue},
};
use tokio::{
    sync::OnceCell,
    time::{Instant, Sleep},
};

use self::reach::{NameError, NotPrivate, Reach, Resolver};

/// Maximum size of all headers, in bytes of names and values.
pub const HEADERS_LIMIT_BYTES: usize = 64 << 10;

/// Maximum characters of a redirect's target in a message.
const SHOWN_TARGET_CHARS: usize = 300;

pub(super) const USER_AGENT: &str = concat!("sheaf/", env!("CARGO_PKG_VERSION"));

/// A server and how to reach it.
#[derive(Clone)]
pub struct Peer {
    /// Requests go below its path and keep its query.
    pub base: Url,
    /// Lets `http://` go to a private address that is not this machine.
    pub allow_http: bool,
    /// Sent with every request.
    pub headers: HeaderMap,
    pub proxy: Proxy,
    /// PEM certificates that are trusted beside the system's.
    pub ca_file: Option<PathBuf>,
    /// PEM with our certificate and its key.
    pub client_certificate: Option<PathBuf>,
    pub timeouts: Timeouts,
}

impl Peer {
    pub fn new(base: Url) -> Self {
        Self {
            base,
            allow_http: false,
            headers: HeaderMap::new(),
            proxy: Proxy::Environment,
            ca_file: None,
            client_certificate: None,
            timeouts: Timeouts::default(),
        }
    }
}

/// Route of requests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Proxy {
    /// Proxy of the environment or the system. This machine is always reached directly.
    Environment,
    Direct,
    /// `http`, `https`, `socks4`, `socks5` or `socks5h`.
    Through(String),
}

/// Time limits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timeouts {
    /// Name, socket and TLS together.
    pub connect: Duration,
    /// From the start of the request to the first byte of the answer's body.
    pub first_byte: Duration,
    /// Maximum time between two pieces of the body, heartbeats included.
    pub idle: Duration,
}

impl Default for Timeouts {
    fn default() -> Self {
        Self {
            connect: Duration::from_secs(10),
            first_byte: Duration::from_mins(2),
            idle: Duration::from_mins(1),
        }
    }
}

/// The system's or a library's own words for what went wrong.
pub type Cause = Box<dyn StdError + Send + Sync>;

/// Reason why a request gave no answer, or not all of it. Sorted by who must act.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The user: the address in the configuration.
    #[error("`{address}` is not the address of a server\nwrite it as http://HOST:PORT or https://HOST")]
    Address { address: String },
    #[error(
        "{peer} is not on this machine, and http:// would send the conversation and the token in plain text\n\
         use https://; for a provider or gateway in a private network, set `allow_http = true`"
    )]
    PlainHttp { peer: String },
    #[error(
        "{peer} is a public address ({address}), and http:// would send the conversation and the token in plain text\n\
         use https://"
    )]
    PublicHttp { peer: String, address: IpAddr },
    #[error("`{name}` cannot be sent as a header: it contains invalid characters")]
    Header { name: String },
    #[error("{} could not be read", .path.display())]
    File { path: PathBuf, source: std::io::Error },
    #[error("{} contains no usable PEM certificate{}", .path.display(), if *.key { " and key" } else { "" })]
    Certificate {
        path: PathBuf,
        key: bool,
        source: Option<Cause>,
    },
    #[error("the proxy cannot be used\nwrite it as http://HOST:PORT or socks5h://HOST:PORT")]
    Proxy { source: Cause },
    #[error("the certificates that this system trusts could not be loaded\ninstall ca-certificates, or set `ca_file`")]
    Trust { source: Cause },

    /// The user or the network: nobody is there.
    #[error("connection refused: {peer}\nis the server running, and is its address right?")]
    Refused { peer: String, source: Cause },
    #[error("host not found: `{host}`")]
    Name { host: String, source: Cause },
    #[error("no secure connection to {peer}")]
    Tls { peer: String, source: Cause },
    #[error("no connection to {peer}")]
    Connect { peer: String, source: Cause },
    #[error("no connection to {peer} within {}", seconds(*.after))]
    ConnectTimeout { peer: String, after: Duration },

    /// Whoever runs the server.
    #[error("{peer} did not answer within {}", seconds(*.after))]
    FirstByteTimeout { peer: String, after: Duration },
    #[error("{peer} sent no data for {}", seconds(*.after))]
    IdleTimeout { peer: String, after: Duration },
    #[error("{peer} closed the connection without an answer")]
    Closed { peer: String, source: Cause },
    #[error("the connection to {peer} broke during the answer")]
    Cut { peer: String, source: Cause },
    #[error("{peer} does not speak HTTP")]
    NotHttp { peer: String, source: Cause },
    #[error(
        "{peer} redirects ({status}) to {to}, which is not followed, because the token is for {peer} only\n\
         if the new address is right, use it in your settings"
    )]
    Redirect { peer: String, status: u16, to: String },
    #[error("{peer} sent more than {} KiB of headers", HEADERS_LIMIT_BYTES >> 10)]
    HeadersTooLarge { peer: String },
    #[error("{peer} sent a compressed answer ({encoding}) that was not requested")]
    Compressed { peer: String, encoding: String },
    #[error("{peer} sent more than {limit_bytes} bytes")]
    TooLarge { peer: String, limit_bytes: usize },

    /// We: the libraries refused for a reason that no setting explains.
    #[error("the request to {peer} could not be made")]
    Request { peer: String, source: Cause },
}

impl Error {
    /// Returns true if the connection failed before the server can have answered, so that a retry may help.
    pub fn is_connection(&self) -> bool {
        matches!(
            self,
            Self::Refused { .. }
                | Self::Name { .. }
                | Self::Connect { .. }
                | Self::ConnectTimeout { .. }
                | Self::Closed { .. }
        )
    }
}

fn seconds(duration: Duration) -> String {
    match duration.as_millis() {
        millis if millis % 1000 == 0 => format!("{} s", millis / 1000),
        millis => format!("{millis} ms"),
    }
}

/// A request below a peer's address.
pub struct Request {
    method: Method,
    path: String,
    query: Vec<(String, String)>,
    headers: HeaderMap,
    body: Option<Bytes>,
    /// The first header that could not be made; [`Client::open`] reports it.
    bad_header: Option<String>,
}

impl Request {
    /// `path` is joined to the base: `api/v1/models`.
    pub fn get(path: impl Into<String>) -> Self {
        Self {
            method: Method::GET,
            path: path.into(),
            query: Vec::new(),
            headers: HeaderMap::new(),
            body: None,
            bad_header: None,
        }
    }

    /// A body of JSON text.
    pub fn post(path: impl Into<String>, json: impl Into<Bytes>) -> Self {
        let mut request = Self {
            method: Method::POST,
            body: Some(json.into()),
            ..Self::get(path)
        };
        request
            .headers
            .insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
        request
    }

    /// Stores a body under the path.
    pub fn put(path: impl Into<String>, body: impl Into<Bytes>) -> Self {
        Self {
            method: Method::PUT,
            body: Some(body.into()),
            ..Self::get(path)
        }
    }

    /// Asks for the head of an answer only.
    pub fn head(path: impl Into<String>) -> Self {
        Self {
            method: Method::HEAD,
            ..Self::get(path)
        }
    }

    /// Without a body.
    pub fn delete(path: impl Into<String>) -> Self {
        Self {
            method: Method::DELETE,
            ..Self::get(path)
        }
    }

    /// Replaces the body.
    pub fn with_body(self, body: impl Into<Bytes>) -> Self {
        Self {
            body: Some(body.into()),
            ..self
        }
    }

    /// Adds `name=value` behind what the base's address has of a query.
    pub fn query(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.query.push((name.into(), value.into()));
        self
    }

    pub fn accept(self, media: &'static str) -> Self {
        self.header("accept", media)
    }

    /// Returns the request's URL below a peer's base.
    pub fn url(&self, base: &Url) -> Url {
        below(base, &self.path, &self.query)
    }

    /// Names in lower case and values. What a value is worth to a stranger the caller has to know.
    pub fn headers(&self) -> impl Iterator<Item = (&str, Option<&str>)> {
        self.headers
            .iter()
            .map(|(name, value)| (name.as_str(), value.to_str().ok()))
    }

    /// Empty where there is none.
    pub fn body(&self) -> &[u8] {
        self.body.as_deref().unwrap_or_default()
    }

    pub fn bearer(self, token: &str) -> Self {
        self.header("authorization", &format!("Bearer {token}"))
    }

    /// Replaces the header `name`; its value never appears in a log.
    pub fn header(mut self, name: &str, value: &str) -> Self {
        match (HeaderName::try_from(name), HeaderValue::try_from(value)) {
            (Ok(name), Ok(mut value)) => {
                value.set_sensitive(true);
                self.headers.insert(name, value);
            }
            (Ok(_) | Err(_), Ok(_) | Err(_)) => {
                self.bad_header.get_or_insert_with(|| name.to_owned());
            }
        }
        self
    }
}

/// A response: the head, and a body that may still be arriving.
pub struct Response {
    pub status: StatusCode,
    pub headers: HeaderMap,
    pub body: Body,
}

impl Response {
    /// The media type in lower case without its parameters: `text/event-stream`. Empty when there is none.
    pub fn media_type(&self) -> String {
        let value = self
            .headers
            .get(header::CONTENT_TYPE)
            .and_then(|it| it.to_str().ok())
            .unwrap_or_default();
        value.split(';').next().unwrap_or_default().trim().to_ascii_lowercase()
    }
}

/// A client for one peer. Clones share their connections.
#[derive(Clone)]
pub struct Client(Arc<Inner>);

struct Inner {
    peer: Peer,
    /// `https://host:port`, for messages.
    name: String,
    reach: Reach,
    client: OnceCell<reqwest::Client>,
}

impl Client {
    /// Checks the address. Reads no file and opens nothing.
    pub fn new(peer: Peer) -> Result<Self, Error> {
        let name = name_of(&peer.base);
        let address = || Error::Address { address: name.clone() };
        let host = peer.base.host().ok_or_else(address)?;
        let reach = Reach::of(&host);
        match peer.base.scheme() {
            "https" => {}
            "http" => match (reach, host) {
                (Reach::Here, _) => {}
                (Reach::Private | Reach::Unknown, _) if peer.allow_http => {}
                (Reach::Public, url::Host::Ipv4(ip)) => {
                    return Err(Error::PublicHttp {
                        peer: name,
                        address: ip.into(),
                    });
                }
                (Reach::Public, url::Host::Ipv6(ip)) => {
                    return Err(Error::PublicHttp {
                        peer: name,
                        address: ip.into(),
                    });
                }
                (Reach::Private | Reach::Unknown | Reach::Public, _) => return Err(Error::PlainHttp { peer: name }),
            },
            _ => return Err(address()),
        }
        Ok(Self(Arc::new(Inner {
            peer,
            name,
            reach,
            client: OnceCell::new(),
        })))
    }

    /// The peer's scheme, host and port, as messages name it.
    pub fn name(&self) -> &str {
        &self.0.name
    }

    pub fn peer(&self) -> &Peer {
        &self.0.peer
    }

    /// Loads what the first request would have to wait for.
    pub async fn warm(&self) -> Result<(), Error> {
        self.ready().await.map(drop)
    }

    /// Sends `request` and waits for the head of the answer. Any status but a redirect is an answer.
    pub async fn open(&self, request: Request) -> Result<Response, Error> {
        let Inner { peer, name, .. } = &*self.0;
        let first_byte = Instant::now() + peer.timeouts.first_byte;
        if let Some(name) = request.bad_header {
            return Err(Error::Header { name });
        }
        let client = self.ready().await?;
        let mut outgoing = reqwest::Request::new(request.method, below(&peer.base, &request.path, &request.query));
        outgoing.headers_mut().extend(peer.headers.clone());
        outgoing
            .headers_mut()
            .insert(header::ACCEPT_ENCODING, HeaderValue::from_static("identity"));
        for (name, value) in &request.headers {
            outgoing.headers_mut().insert(name, value.clone());
        }
        *outgoing.body_mut() = request.body.map(Into::into);

        let answer = match tokio::time::timeout_at(first_byte, client.execute(outgoing)).await {
            Err(_) => {
                return Err(Error::FirstByteTimeout {
                    peer: name.clone(),
                    after: peer.timeouts.first_byte,
                });
            }
            Ok(Err(error)) => return Err(self.failed(error)),
            Ok(Ok(answer)) => answer,
        };
        let (status, headers) = (answer.status(), copied(answer.headers()));
        if headers
            .iter()
            .map(|(name, value)| name.as_str().len() + value.len())
            .sum::<usize>()
            > HEADERS_LIMIT_BYTES
        {
            return Err(Error::HeadersTooLarge { peer: name.clone() });
        }
        if status.is_redirection() {
            let to = headers.get(header::LOCATION).map_or_else(
                || "nowhere".to_owned(),
                |it| {
                    String::from_utf8_lossy(it.as_bytes())
                        .chars()
                        .take(SHOWN_TARGET_CHARS)
                        .collect()
                },
            );
            return Err(Error::Redirect {
                peer: name.clone(),
                status: status.as_u16(),
                to,
            });
        }
        if let Some(encoding) = headers.get(header::CONTENT_ENCODING)
            && encoding.as_bytes() != b"identity"
        {
            let encoding = String::from_utf8_lossy(encoding.as_bytes()).chars().take(40).collect();
            return Err(Error::Compressed {
                peer: name.clone(),
                encoding,
            });
        }
        let body = Body {
            pieces: Some(answer.bytes_stream().boxed()),
            alarm: Box::pin(tokio::time::sleep_until(first_byte)),
            last: None,
            timeouts: peer.timeouts,
            peer: name.clone(),
        };
        Ok(Response { status, headers, body })
    }

    async fn ready(&self) -> Result<&reqwest::Client, Error> {
        let make = || async {
            // Reading the system's certificates takes milliseconds; nobody else on this thread has to wait for them.
            let this = Arc::clone(&self.0);
            if this.is_plain() {
                return this.build();
            }
            let peer = this.name.clone();
            tokio::task::spawn_blocking(move || this.build())
                .await
                .unwrap_or_else(|source| {
                    Err(Error::Request {
                        peer,
                        source: source.into(),
                    })
                })
        };
        self.0.client.get_or_try_init(make).await
    }

    /// Sorts what a request died of.
    fn failed(&self, error: reqwest::Error) -> Error {
        let Inner {
            peer: Peer { timeouts, .. },
            name,
            ..
        } = &*self.0;
        let peer = name.clone();
        let error = error.without_url();
        if error.is_timeout() {
            return Error::ConnectTimeout {
                peer,
                after: timeouts.connect,
            };
        }
        if let Some(NameError { host, .. }) = find(&error) {
            return Error::Name {
                host: host.clone(),
                source: error.into(),
            };
        }
        if let Some(&NotPrivate { address }) = find(&error) {
            return Error::PublicHttp { peer, address };
        }
        if error.is_connect() {
            let refused =
                find(&error).is_some_and(|it: &std::io::Error| it.kind() == std::io::ErrorKind::ConnectionRefused);
            let source = error.into();
            return match refused {
                true => Error::Refused { peer, source },
                false if find::<rustls::Error>(&*source).is_some() => Error::Tls { peer, source },
                false => Error::Connect { peer, source },
            };
        }
        if error.is_builder() {
            return Error::Request {
                peer,
                source: error.into(),
            };
        }
        match find(&error) {
            Some(it) if hyper::Error::is_parse_too_large(it) => Error::HeadersTooLarge { peer },
            Some(it) if it.is_parse() => Error::NotHttp {
                peer,
                source: error.into(),
            },
            Some(_) | None => Error::Closed {
                peer,
                source: error.into(),
            },
        }
    }
}

/// Copies headers: the library's own are parts of its buffer, which could not be used for the body as long as they are kept.
fn copied(headers: &HeaderMap) -> HeaderMap {
    let copied = headers.iter().map(|(name, value)| {
        let copy = HeaderValue::from_bytes(value.as_bytes());
        (name.clone(), copy.unwrap_or_else(|_| value.clone()))
    });
    copied.collect()
}

impl Inner {
    /// Returns true if TLS is never used.
    fn is_plain(&self) -> bool {
        self.peer.base.scheme() == "http" && self.goes_direct()
    }

    fn goes_direct(&self) -> bool {
        match self.peer.proxy {
            Proxy::Environment => self.reach == Reach::Here,
            Proxy::Direct => true,
            Proxy::Through(_) => false,
        }
    }

    fn build(&self) -> Result<reqwest::Client, Error> {
        // A provider that somebody else installed before serves as well.
        rustls::crypto::ring::default_provider().install_default().ok();
        let Peer {
            base,
            headers: _,
            allow_http: _,
            proxy,
            ca_file,
            client_certificate,
            timeouts,
        } = &self.peer;
        let mut builder = reqwest::Client::builder()
            .user_agent(USER_AGENT)
            .redirect(reqwest::redirect::Policy::none())
            .referer(false)
            .retry(reqwest::retry::never())
            .connect_timeout(timeouts.connect)
            .http2_max_header_list_size(HEADERS_LIMIT_BYTES as u32);
        if base.scheme() == "http" {
            let host = base.host_str().unwrap_or_default().to_owned();
            builder = builder.dns_resolver(Resolver {
                only: Some((host, self.reach)),
            });
        } else {
            builder = builder.dns_resolver(Resolver { only: None });
        }
        match proxy {
            _ if self.goes_direct() => builder = builder.no_proxy(),
            Proxy::Environment | Proxy::Direct => {}
            Proxy::Through(url) => {
                let proxy = reqwest::Proxy::all(url).map_err(|it| Error::Proxy {
                    source: it.without_url().into(),
                })?;
                builder = builder.no_proxy().proxy(proxy);
            }
        }
        if self.is_plain() {
            builder = builder.tls_certs_only([]);
        }
        if let Some(path) = ca_file {
            let certificate = |source| Error::Certificate {
                path: path.clone(),
                key: false,
                source,
            };
            let found =
                reqwest::Certificate::from_pem_bundle(&read(path)?).map_err(|it| certificate(Some(it.into())))?;
            if found.is_empty() {
                return Err(certificate(None));
            }
            if !self.is_plain() {
                builder = builder.tls_certs_merge(found);
            }
        }
        if let Some(path) = client_certificate {
            let identity = reqwest::Identity::from_pem(&read(path)?).map_err(|it| Error::Certificate {
                path: path.clone(),
                key: true,
                source: Some(it.into()),
            })?;
            builder = builder.identity(identity);
        }
        builder.build().map_err(|it| Error::Trust {
            source: it.without_url().into(),
        })
    }
}

fn read(path: &Path) -> Result<Vec<u8>, Error> {
    std::fs::read(path).map_err(|source| Error::File {
        path: path.to_owned(),
        source,
    })
}

/// Scheme, host and port; a user, password, path or query in the address stays out of messages.
fn name_of(url: &Url) -> String {
    match (url.host_str(), url.port()) {
        (Some(host), Some(port)) => format!("{}://{host}:{port}", url.scheme()),
        (Some(host), None) => format!("{}://{host}", url.scheme()),
        (None, _) => format!("{}:", url.scheme()),
    }
}

/// `path` below the path of `base`, whose query stays in front of `query`.
fn below(base: &Url, path: &str, query: &[(String, String)]) -> Url {
    let mut url = base.clone();
    url.set_path(&format!(
        "{}/{}",
        base.path().trim_end_matches('/'),
        path.trim_start_matches('/')
    ));
    url.set_fragment(None);
    if !query.is_empty() {
        url.query_pairs_mut().extend_pairs(query);
    }
    url
}

/// The first cause of type `T` in the chain, looking into the errors that `io::Error` wraps.
fn find<'a, T: StdError + 'static>(error: &'a (dyn StdError + 'static)) -> Option<&'a T> {
    let mut next = Some(error);
    while let Some(error) = next {
        if let Some(found) = error.downcast_ref() {
            return Some(found);
        }
        let inside = error.downcast_ref::<std::io::Error>().and_then(|it| it.get_ref());
        next = match inside {
            Some(inside) => Some(inside as &(dyn StdError + 'static)),
            None => error.source(),
        };
    }
    None
}

/// The body of an answer as it comes. It gives one error at most, and nothing after it.
pub struct Body {
    /// `None` after the end or an error; the connection is then released.
    pieces: Option<futures::stream::BoxStream<'static, reqwest::Result<Bytes>>>,
    /// Rings when the peer may have been silent for too long.
    alarm: Pin<Box<Sleep>>,
    /// Time of the last piece; `None` before the first.
    last: Option<Instant>,
    timeouts: Timeouts,
    peer: String,
}

impl Body {
    /// The whole body, at most `limit_bytes` of it.
    pub async fn read(mut self, limit_bytes: usize) -> Result<Vec<u8>, Error> {
        let mut whole = Vec::new();
        while let Some(piece) = self.next().await {
            let piece = piece?;
            if whole.len() + piece.len() > limit_bytes {
                return Err(Error::TooLarge {
                    peer: self.peer,
                    limit_bytes,
                });
            }
            whole.extend_from_slice(&piece);
        }
        Ok(whole)
    }

    /// The first bytes of the body, as many as came before the limit, the end or an error: for error pages.
    pub async fn beginning(mut self, limit_bytes: usize) -> Vec<u8> {
        let mut begun = Vec::new();
        while let Some(Ok(piece)) = self.next().await {
            begun.extend_from_slice(&piece);
            if begun.len() >= limit_bytes {
                begun.truncate(limit_bytes);
                break;
            }
        }
        begun
    }

    /// Returns the time since the last piece. `None` before the first.
    pub fn silent_for(&self) -> Option<Duration> {
        self.last.map(|it| it.elapsed())
    }
}

impl Stream for Body {
    type Item = Result<Bytes, Error>;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = self.get_mut();
        let Some(pieces) = &mut this.pieces else {
            return Poll::Ready(None);
        };
        // What has come is taken before the clock is read: a reader that was slow must not blame the peer.
        match pieces.as_mut().poll_next(cx) {
            Poll::Ready(Some(Ok(piece))) => {
                let now = Instant::now();
                if this.last.replace(now).is_none() {
                    this.alarm.as_mut().reset(now + this.timeouts.idle);
                }
                return Poll::Ready(Some(Ok(piece)));
            }
            Poll::Ready(Some(Err(error))) => {
                this.pieces = None;
                let source = error.without_url().into();
                return Poll::Ready(Some(Err(Error::Cut {
                    peer: this.peer.clone(),
                    source,
                })));
            }
            Poll::Ready(None) => {
                this.pieces = None;
                return Poll::Ready(None);
            }
            Poll::Pending => {}
        }
        // The alarm is moved when it rings, not with every piece; only the first has another measure before it.
        while this.alarm.as_mut().poll(cx).is_ready() {
            let due = this.last.map_or(this.alarm.deadline(), |it| it + this.timeouts.idle);
            if due > Instant::now() {
                this.alarm.as_mut().reset(due);
                continue;
            }
            this.pieces = None;
            let peer = this.peer.clone();
            return Poll::Ready(Some(Err(match this.last {
                None => Error::FirstByteTimeout {
                    peer,
                    after: this.timeouts.first_byte,
                },
                Some(_) => Error::IdleTimeout {
                    peer,
                    after: this.timeouts.idle,
                },
            })));
        }
        Poll::Pending
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::net::test_server::{self, STREAM, diary, page};
    use pretty_assertions::assert_eq;

    fn client(base: &str) -> Client {
        with(base, |_| {})
    }

    fn with(base: &str, change: impl FnOnce(&mut Peer)) -> Client {
        let mut peer = Peer::new(base.parse().unwrap());
        change(&mut peer);
        Client::new(peer).unwrap()
    }

    async fn failure(client: &Client) -> Error {
        let mut answer = match client.open(Request::get("x")).await {
            Err(error) => return error,
            Ok(answer) => answer,
        };
        while let Some(piece) = answer.body.next().await {
            if let Err(error) = piece {
                return error;
            }
        }
        panic!("a whole answer with status {}", answer.status);
    }

    /// The failure, which has to come long before the timeouts that were not meant to ring.
    async fn soon(client: &Client) -> Error {
        let failing = tokio::time::timeout(Duration::from_secs(20), failure(client));
        failing.await.expect("another timeout should have rung")
    }

    /// The variant's name.
    fn kind(error: &Error) -> String {
        format!("{error:?}")
            .chars()
            .take_while(char::is_ascii_alphanumeric)
            .collect()
    }

    #[test]
    fn plain_http_stays_on_this_machine_or_in_an_allowed_private_network() {
        let cases = [
            ("http://localhost:8080", "ok", "ok"),
            ("http://LOCALHOST.", "ok", "ok"),
            ("http://api.localhost", "ok", "ok"),
            ("http://127.0.0.1:1", "ok", "ok"),
            ("http://127.9.9.9", "ok", "ok"),
            ("http://2130706433", "ok", "ok"),
            ("http://[::1]:1", "ok", "ok"),
            ("http://[::ffff:127.0.0.1]", "ok", "ok"),
            ("http://0.0.0.0:8000", "ok", "ok"),
            ("http://192.168.1.9", "PlainHttp", "ok"),
            ("http://10.1.2.3", "PlainHttp", "ok"),
            ("http://172.31.0.1", "PlainHttp", "ok"),
            ("http://100.100.1.1", "PlainHttp", "ok"),
            ("http://169.254.1.1", "PlainHttp", "ok"),
            ("http://[fd00::1]", "PlainHttp", "ok"),
            ("http://[fe80::1]", "PlainHttp", "ok"),
            ("http://gpu-box:11434", "PlainHttp", "ok"),
            ("http://localhost.example.com", "PlainHttp", "ok"),
            ("http://172.32.0.1", "PublicHttp", "PublicHttp"),
            ("http://100.128.0.1", "PublicHttp", "PublicHttp"),
            ("http://8.8.8.8", "PublicHttp", "PublicHttp"),
            ("http://[::ffff:8.8.8.8]", "PublicHttp", "PublicHttp"),
            ("http://[2001:db8::1]", "PublicHttp", "PublicHttp"),
            ("https://8.8.8.8", "ok", "ok"),
            ("https://example.com/v1", "ok", "ok"),
            ("ftp://localhost", "Address", "Address"),
            ("localhost:8080", "Address", "Address"),
            ("file:///etc/passwd", "Address", "Address"),
        ];
        for (base, closed, open) in cases {
            for (allow_http, expected) in [(false, closed), (true, open)] {
                let mut peer = Peer::new(base.parse().unwrap());
                peer.allow_http = allow_http;
                let found = Client::new(peer).map_or_else(|it| kind(&it), |_| "ok".to_owned());
                assert_eq!(found, expected, "{base}, allow_http = {allow_http}");
            }
        }
    }

    #[test]
    fn a_path_goes_below_the_base_and_the_query_stays() {
        let cases = [
            ("http://h", "a/b", "http://h/a/b"),
            ("http://h/", "/a", "http://h/a"),
            ("http://h/v1", "a", "http://h/v1/a"),
            ("http://h/v1/?key=2#top", "a", "http://h/v1/a?key=2"),
            ("http://h/v1", "a?b#c", "http://h/v1/a%3Fb%23c"),
            ("http://h/v1", "//evil.example/a", "http://h/v1/evil.example/a"),
        ];
        for (base, path, expected) in cases {
            assert_eq!(
                below(&base.parse().unwrap(), path, &[]).as_str(),
                expected,
                "{path} below {base}"
            );
        }

        let query = [("alt".to_owned(), "s&e".to_owned())];
        for (base, want) in [
            ("http://h/v1", "http://h/v1/a?alt=s%26e"),
            ("http://h/v1?api-version=1", "http://h/v1/a?api-version=1&alt=s%26e"),
        ] {
            assert_eq!(below(&base.parse().unwrap(), "a", &query).as_str(), want);
        }
    }

    #[tokio::test]
    async fn a_request_carries_what_it_was_given_and_our_name() {
        let (seen, mut diary) = diary();
        let base = test_server::listen(move |mut socket| {
            let seen = seen.clone();
            async move {
                seen.send(socket.request().await).unwrap();
                socket
                    .send(page("200 OK", "Application/JSON; charset=utf-8", "{}"))
                    .await;
            }
        })
        .await;
        let client = with(&format!("{base}/deep?v=1"), |peer| {
            peer.headers.insert("x-team", HeaderValue::from_static("blue"));
            peer.headers.insert("x-both", HeaderValue::from_static("peer"));
        });
        let request = Request::post("go", r#"{"a":1}"#)
            .bearer("secret")
            .accept("text/event-stream")
            .header("x-both", "own");
        let answer = client.open(request).await.unwrap();
        assert_eq!(
            (answer.status.as_u16(), answer.media_type().as_str()),
            (200, "application/json")
        );
        assert_eq!(answer.body.read(10).await.unwrap(), b"{}");
        let request = diary.next().await.to_lowercase();
        for line in [
            "post /deep/go?v=1 http/1.1",
            "authorization: bearer secret",
            "accept: text/event-stream",
            "accept-encoding: identity",
            "content-type: application/json",
            "x-team: blue",
            "x-both: own",
            &format!("user-agent: {USER_AGENT}"),
            r#"{"a":1}"#,
        ] {
            assert!(request.lines().any(|it| it == line), "`{line}` in\n{request}");
        }
    }

    #[tokio::test]
    async fn a_header_that_cannot_be_sent_is_an_error() {
        let base = test_server::answer(page("200 OK", "text/plain", "")).await;
        let error = client(&base)
            .open(Request::get("x").bearer("a\nb"))
            .await
            .err()
            .unwrap();
        assert_eq!(kind(&error), "Header");
        assert!(error.to_string().contains("authorization") && !error.to_string().contains("a\nb"));
    }

    #[tokio::test]
    async fn a_redirect_is_an_error_that_names_its_target_and_nobody_goes_there() {
        let (seen, mut diary) = diary();
        let thief = test_server::listen(move |mut socket| {
            let seen = seen.clone();
            async move {
                seen.send(socket.request().await).unwrap();
            }
        })
        .await;
        for status in [
            "301 Moved",
            "302 Found",
            "303 See Other",
            "307 Temporary",
            "308 Permanent",
        ] {
            let base = test_server::answer(format!(
                "HTTP/1.1 {status}\r\nLocation: {thief}/x\r\nContent-Length: 0\r\n\r\n"
            ))
            .await;
            let client = client(&base);
            let error = client
                .open(Request::post("x", "{}").bearer("secret"))
                .await
                .err()
                .unwrap();
            assert_eq!(kind(&error), "Redirect");
            assert!(error.to_string().contains(&format!("{thief}/x")), "{error}");
        }
        assert_eq!(diary.so_far(), Vec::<String>::new());
    }

    #[tokio::test]
    async fn each_way_to_fail_has_its_name() {
        let many = "X: 1\r\n".repeat(200);
        let fat = format!("X: {}\r\n", "1".repeat(HEADERS_LIMIT_BYTES));
        let huge = format!("X: {}\r\n", "1".repeat(2 << 20));
        let cases: &[(&str, &str, String)] = &[
            ("closed at once", "Closed", String::new()),
            ("closed within the head", "Closed", "HTTP/1.1 200 OK\r\nContent-".into()),
            ("another protocol", "NotHttp", "SSH-2.0-OpenSSH_9.2p1\r\n\r\n".into()),
            (
                "too many headers",
                "HeadersTooLarge",
                format!("HTTP/1.1 200 OK\r\n{many}\r\n"),
            ),
            (
                "fat headers",
                "HeadersTooLarge",
                format!("HTTP/1.1 200 OK\r\n{fat}\r\n"),
            ),
            (
                "huge headers",
                "HeadersTooLarge",
                format!("HTTP/1.1 200 OK\r\n{huge}\r\n"),
            ),
            (
                "compressed",
                "Compressed",
                "HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\n\r\n\x1f".into(),
            ),
            (
                "a redirect to nowhere",
                "Redirect",
                "HTTP/1.1 302 Found\r\nContent-Length: 0\r\n\r\n".into(),
            ),
            ("not modified", "Redirect", "HTTP/1.1 304 Not Modified\r\n\r\n".into()),
            (
                "cut before its length",
                "Cut",
                "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nabc".into(),
            ),
            (
                "cut between chunks",
                "Cut",
                "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n".into(),
            ),
            (
                "bad chunks",
                "Cut",
                "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\nabc\r\n".into(),
            ),
        ];
        for (name, expected, answer) in cases {
            let base = test_server::answer(answer.as_str()).await;
            let error = failure(&client(&base)).await;
            assert_eq!(kind(&error), *expected, "{name}: {error:?}");
            assert_eq!(error.is_connection(), *expected == "Closed", "{name}");
        }
    }

    #[tokio::test]
    async fn nobody_there_is_told_from_a_name_that_nobody_has() {
        let error = failure(&client(&test_server::nobody().await)).await;
        assert_eq!((kind(&error).as_str(), error.is_connection()), ("Refused", true));
        // No label may be so long: the look-up fails without asking anybody.
        let host = "a".repeat(70);
        let error = failure(&with(&format!("http://{host}:1"), |it| it.allow_http = true)).await;
        assert_eq!((kind(&error).as_str(), error.is_connection()), ("Name", true));
        assert!(error.to_string().contains(&host));
    }

    #[tokio::test]
    async fn a_name_of_a_plain_peer_must_lead_to_where_it_may_be() {
        use reqwest::dns::Resolve;
        let resolve = |reach| {
            let only = Some(("127.0.0.1".to_owned(), reach));
            Resolver { only }.resolve("127.0.0.1".parse().unwrap())
        };
        assert!(resolve(Reach::Here).await.is_ok());
        let only = Some(("8.8.8.8".to_owned(), Reach::Unknown));
        let error = Resolver { only }
            .resolve("8.8.8.8".parse().unwrap())
            .await
            .err()
            .unwrap();
        assert!(error.downcast_ref::<NotPrivate>().is_some());
        let only = Some(("10.0.0.1".to_owned(), Reach::Here));
        assert!(Resolver { only }.resolve("10.0.0.1".parse().unwrap()).await.is_err());
        let only = Some(("peer".to_owned(), Reach::Here));
        assert!(
            Resolver { only }.resolve("8.8.8.8".parse().unwrap()).await.is_ok(),
            "a proxy may be anywhere"
        );
    }

    #[tokio::test]
    async fn messages_and_their_chains_keep_secrets() {
        let mut base: Url = test_server::nobody().await.parse().unwrap();
        base.set_username("kim").unwrap();
        base.set_password(Some("hunter2")).unwrap();
        base.set_query(Some("key=hunter3"));
        let error = failure(&client(base.as_str())).await;
        assert!(!format!("{error:?} {error}").contains("hunter"), "{error:?}");
    }

    const SHORT: Duration = Duration::from_millis(60);
    const LONG: Duration = Duration::from_mins(10);

    #[tokio::test]
    async fn every_wait_has_an_end() {
        let first = |it: &mut Peer| {
            it.timeouts = Timeouts {
                connect: LONG,
                first_byte: SHORT,
                idle: LONG,
            }
        };
        let idle = |it: &mut Peer| {
            it.timeouts = Timeouts {
                connect: LONG,
                first_byte: LONG,
                idle: SHORT,
            }
        };

        let silent = test_server::listen(test_server::Socket::hang).await;
        assert_eq!(kind(&soon(&with(&silent, first)).await), "FirstByteTimeout");

        let begun = |bytes: String| {
            test_server::listen(move |mut socket| {
                let bytes = bytes.clone();
                async move {
                    socket.request().await;
                    socket.send(bytes).await;
                    socket.hang().await;
                }
            })
        };
        assert_eq!(
            kind(&soon(&with(&begun("HTTP/1.1 200".into()).await, first)).await),
            "FirstByteTimeout"
        );
        assert_eq!(
            kind(&soon(&with(&begun(STREAM.into()).await, first)).await),
            "FirstByteTimeout"
        );
        assert_eq!(
            kind(&soon(&with(&begun(format!("{STREAM}: hi\n")).await, idle)).await),
            "IdleTimeout"
        );

        // The TLS handshake belongs to connecting.
        let silent = silent.replace("http:", "https:");
        let client = with(&silent, |it| {
            it.timeouts = Timeouts {
                connect: SHORT,
                first_byte: LONG,
                idle: LONG,
            };
            it.ca_file = Some(fixture("ca.pem"));
        });
        let error = soon(&client).await;
        assert_eq!((kind(&error).as_str(), error.is_connection()), ("ConnectTimeout", true));
    }

    #[tokio::test]
    async fn any_byte_is_a_sign_of_life() {
        let base = test_server::listen(|mut socket| async move {
            socket.request().await;
            socket.send(STREAM).await;
            for _ in 0..10 {
                tokio::time::sleep(Duration::from_millis(150)).await;
                socket.send(":").await;
            }
        })
        .await;
        let idle = Duration::from_secs(1);
        let client = with(&base, |it| {
            it.timeouts = Timeouts {
                connect: LONG,
                first_byte: LONG,
                idle,
            }
        });
        let answer = client.open(Request::get("x")).await.unwrap();
        assert_eq!(answer.body.read(100).await.unwrap(), b"::::::::::");
    }

    #[tokio::test]
    async fn a_body_is_read_up_to_a_limit() {
        let base = test_server::answer(page("500 Oh", "text/html", "0123456789")).await;
        let client = client(&base);
        let body = async || client.open(Request::get("x")).await.unwrap().body;
        assert_eq!(body().await.read(10).await.unwrap(), b"0123456789");
        assert_eq!(kind(&body().await.read(9).await.unwrap_err()), "TooLarge");
        assert_eq!(body().await.beginning(4).await, b"0123");
        assert_eq!(body().await.beginning(40).await, b"0123456789");
    }

    /// In each state, the peer sees the connection close when the client lets go.
    #[tokio::test]
    async fn letting_go_closes_the_connection_at_once() {
        let (seen, mut diary) = diary();
        let base = test_server::listen(move |mut socket| {
            let seen = seen.clone();
            async move {
                let request = socket.request().await;
                if request.contains("stream") {
                    socket.send(format!("{STREAM}data: 1\n\n")).await;
                }
                seen.send("asked".to_owned()).unwrap();
                socket.closed().await;
                seen.send("closed".to_owned()).unwrap();
            }
        })
        .await;
        let plain = client(&base);
        test_server::promptly("waiting", async || {
            let client = plain.clone();
            let waiting = tokio::spawn(async move { client.open(Request::get("wait")).await.map(drop) });
            assert_eq!(diary.next().await, "asked");
            waiting.abort();
            diary.closed().await
        })
        .await;
        test_server::promptly("streaming", async || {
            let mut answer = plain.open(Request::get("stream")).await.unwrap();
            assert_eq!(answer.body.next().await.unwrap().unwrap(), "data: 1\n\n");
            assert_eq!(diary.next().await, "asked");
            drop(answer);
            diary.closed().await
        })
        .await;
        let (mute, mut diary) = test_server::mute().await;
        let client = with(&mute, |it| {
            it.ca_file = Some(fixture("ca.pem"));
        });
        test_server::promptly("connecting", async || {
            let client = client.clone();
            let connecting = tokio::spawn(async move { client.open(Request::get("x")).await.map(drop) });
            assert_eq!(diary.next().await, "came");
            connecting.abort();
            diary.closed().await
        })
        .await;
    }

    #[tokio::test]
    async fn a_proxy_is_asked_for_everything_when_it_is_named() {
        let (seen, mut diary) = diary();
        let proxy = test_server::listen(move |mut socket| {
            let seen = seen.clone();
            async move {
                seen.send(socket.request().await).unwrap();
                socket.send(page("200 OK", "text/plain", "")).await;
            }
        })
        .await;
        let through = Proxy::Through(proxy);
        let client = with("http://127.0.0.1:9/v1", |it| it.proxy = through);
        client.open(Request::get("x")).await.unwrap();
        assert!(
            diary
                .next()
                .await
                .starts_with("GET http://127.0.0.1:9/v1/x HTTP/1.1\r\n")
        );

        let client = with("http://127.0.0.1:9", |it| {
            it.proxy = Proxy::Through("::nonsense".into());
        });
        assert_eq!(kind(&failure(&client).await), "Proxy");
    }

    #[test]
    fn only_clients_that_can_never_need_tls_do_without() {
        let plain = |base: &str, proxy: Proxy| {
            with(base, |it| {
                it.allow_http = true;
                it.proxy = proxy;
            })
            .0
            .is_plain()
        };
        assert!(plain("http://localhost", Proxy::Environment));
        assert!(plain("http://10.0.0.1", Proxy::Direct));
        assert!(!plain("http://10.0.0.1", Proxy::Environment));
        assert!(!plain("http://localhost", Proxy::Through("https://proxy".into())));
        assert!(!plain("https://localhost", Proxy::Direct));
    }

    fn fixture(name: &str) -> PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("tests/fixtures/tls")
            .join(name)
    }

    fn pem(
        name: &str,
    ) -> (
        Vec<rustls::pki_types::CertificateDer<'static>>,
        Option<rustls::pki_types::PrivateKeyDer<'static>>,
    ) {
        use rustls::pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject};
        let path = fixture(name);
        let certificates = CertificateDer::pem_file_iter(&path)
            .unwrap()
            .collect::<Result<_, _>>()
            .unwrap();
        (certificates, PrivateKeyDer::from_pem_file(&path).ok())
    }

    type Change<'a> = &'a dyn Fn(&mut Peer);

    /// A server with TLS that answers one request per connection, and says who the client was.
    fn tls_server() -> String {
        use std::io::{Read, Write};
        rustls::crypto::ring::default_provider().install_default().ok();
        let mut roots = rustls::RootCertStore::empty();
        roots.add(pem("ca.pem").0.remove(0)).unwrap();
        let asks = rustls::server::WebPkiClientVerifier::builder(roots.into())
            .allow_unauthenticated()
            .build()
            .unwrap();
        let (chain, key) = pem("server.pem");
        let config = rustls::ServerConfig::builder()
            .with_client_cert_verifier(asks)
            .with_single_cert(chain, key.unwrap());
        let config = Arc::new(config.unwrap());
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let mut stream = stream.unwrap();
                let mut connection = rustls::ServerConnection::new(Arc::clone(&config)).unwrap();
                let mut tls = rustls::Stream::new(&mut connection, &mut stream);
                let mut request = Vec::new();
                let mut byte = [0];
                while !request.ends_with(b"\r\n\r\n") && tls.read_exact(&mut byte).is_ok() {
                    request.push(byte[0]);
                }
                let known = tls.conn.peer_certificates().is_some_and(|it| !it.is_empty());
                let body = if known { "known" } else { "stranger" };
                tls.write_all(page("200 OK", "text/plain", body).as_bytes()).ok();
                tls.conn.send_close_notify();
                tls.flush().ok();
            }
        });
        format!("https://localhost:{port}")
    }

    #[tokio::test]
    async fn tls_trusts_the_given_authority_and_shows_the_given_certificate() {
        let base = tls_server();
        let ask = async |change: &dyn Fn(&mut Peer)| {
            let answer = with(&base, change).open(Request::get("x")).await?;
            Ok::<_, Error>(String::from_utf8(answer.body.read(100).await?).unwrap())
        };
        let error = ask(&|_| {}).await.unwrap_err();
        assert!(matches!(kind(&error).as_str(), "Tls" | "Trust"), "{error:?}");
        assert_eq!(
            ask(&|it| it.ca_file = Some(fixture("ca.pem"))).await.unwrap(),
            "stranger"
        );
        let both = |it: &mut Peer| {
            it.ca_file = Some(fixture("ca.pem"));
            it.client_certificate = Some(fixture("client.pem"));
        };
        assert_eq!(ask(&both).await.unwrap(), "known");

        let cases: &[(&str, Change<'_>)] = &[
            ("File", &|it| it.ca_file = Some(fixture("absent.pem"))),
            ("Certificate", &|it| it.ca_file = Some(fixture("../../../Cargo.toml"))),
            ("Certificate", &|it| it.client_certificate = Some(fixture("ca.pem"))),
        ];
        for (expected, change) in cases {
            let error = ask(change).await.unwrap_err();
            assert_eq!(kind(&error), *expected, "{error:?}");
        }
    }
}
