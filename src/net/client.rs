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
    net::{IpAddr, SocketAddr},
    path::{Path, PathBuf},
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

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

/// More headers than this, in bytes of names and values, are refused.
pub const HEADERS_LIMIT_BYTES: usize = 64 << 10;

/// What a redirect's target may take up in a message.
const SHOWN_TARGET_CHARS: usize = 300;

const USER_AGENT: &str = concat!("sheaf/", env!("CARGO_PKG_VERSION"));

/// How a server is reached.
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

/// Which way requests leave.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Proxy {
    /// What the environment or the system says. This machine is always reached directly.
    Environment,
    Direct,
    /// `http`, `https`, `socks4`, `socks5` or `socks5h`.
    Through(String),
}

/// How long each kind of silence is borne.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timeouts {
    /// Name, socket and TLS together.
    pub connect: Duration,
    /// From the start of the request to the first byte of the answer's body.
    pub first_byte: Duration,
    /// Between two pieces of the body, whatever they hold.
    pub idle: Duration,
}

impl Default for Timeouts {
    fn default() -> Self {
        Self {
            connect: Duration::from_secs(10),
            first_byte: Duration::from_secs(120),
            idle: Duration::from_secs(60),
        }
    }
}

/// The system's or a library's own words for what went wrong.
pub type Cause = Box<dyn StdError + Send + Sync>;

/// Why a request gave no answer, or not all of it. Sorted by who must act.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The user: the address in the configuration.
    #[error("`{address}` is not the address of a server\nwrite it as http://HOST:PORT or https://HOST")]
    Address { address: String },
    #[error(
        "{peer} is not on this machine, and http:// would send the conversation and the token readable by all between\n\
         use https://, or set `allow_http = true` for this server if it is in a private network"
    )]
    PlainHttp { peer: String },
    #[error(
        "{peer} is a public address ({address}), and http:// would send the conversation and the token readable by all \
         between\nuse https://"
    )]
    PublicHttp { peer: String, address: IpAddr },
    #[error("`{name}` cannot be sent as a header: it has characters that headers must not have")]
    Header { name: String },
    #[error("{} could not be read", .path.display())]
    File { path: PathBuf, source: std::io::Error },
    #[error("{} holds no usable PEM certificate{}", .path.display(), if *.key { " and key" } else { "" })]
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
    #[error("nothing listens at {peer}\nstart the server, or correct the address")]
    Refused { peer: String, source: Cause },
    #[error("the name `{host}` could not be looked up")]
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
    #[error("{peer} fell silent: no byte for {}", seconds(*.after))]
    IdleTimeout { peer: String, after: Duration },
    #[error("{peer} closed the connection without an answer")]
    Closed { peer: String, source: Cause },
    #[error("the connection to {peer} broke in the middle of the answer")]
    Cut { peer: String, source: Cause },
    #[error("{peer} does not speak HTTP")]
    NotHttp { peer: String, source: Cause },
    #[error(
        "{peer} redirects ({status}) to {to}, which is not followed, because the token is meant for {peer} only\n\
         if the new address is right, write it into the configuration"
    )]
    Redirect { peer: String, status: u16, to: String },
    #[error("{peer} sent more than {} KiB of headers", HEADERS_LIMIT_BYTES >> 10)]
    HeadersTooLarge { peer: String },
    #[error("{peer} answered compressed ({encoding}), which was not asked for")]
    Compressed { peer: String, encoding: String },
    #[error("{peer} sent more than {limit_bytes} bytes")]
    TooLarge { peer: String, limit_bytes: usize },

    /// We: the libraries refused for a reason that no setting explains.
    #[error("the request to {peer} could not be made")]
    Request { peer: String, source: Cause },
}

impl Error {
    /// Whether the connection failed before the server can have said anything: what a retry may mend.
    pub fn is_connection(&self) -> bool {
        match self {
            Self::Refused { .. }
            | Self::Name { .. }
            | Self::Connect { .. }
            | Self::ConnectTimeout { .. }
            | Self::Closed { .. } => true,
            Self::Address { .. }
            | Self::PlainHttp { .. }
            | Self::PublicHttp { .. }
            | Self::Header { .. }
            | Self::File { .. }
            | Self::Certificate { .. }
            | Self::Proxy { .. }
            | Self::Trust { .. }
            | Self::Tls { .. }
            | Self::FirstByteTimeout { .. }
            | Self::IdleTimeout { .. }
            | Self::Cut { .. }
            | Self::NotHttp { .. }
            | Self::Redirect { .. }
            | Self::HeadersTooLarge { .. }
            | Self::Compressed { .. }
            | Self::TooLarge { .. }
            | Self::Request { .. } => false,
        }
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

    pub fn accept(self, media: &'static str) -> Self {
        self.header("accept", media)
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

/// What came back: the head, and a body that may still be on its way.
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
    inner: OnceCell<reqwest::Client>,
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
            inner: OnceCell::new(),
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
        let mut outgoing = reqwest::Request::new(request.method, below(&peer.base, &request.path));
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
        let (status, headers) = (answer.status(), answer.headers().clone());
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
        self.0.inner.get_or_try_init(make).await
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

impl Inner {
    /// Whether TLS can never happen.
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

/// `path` below the path of `base`, whose query stays.
fn below(base: &Url, path: &str) -> Url {
    let mut url = base.clone();
    url.set_path(&format!(
        "{}/{}",
        base.path().trim_end_matches('/'),
        path.trim_start_matches('/')
    ));
    url.set_fragment(None);
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

/// How far away an address is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Reach {
    /// This machine.
    Here,
    /// A network that is not routed on the internet.
    Private,
    /// A name: known after the look-up.
    Unknown,
    Public,
}

impl Reach {
    fn of(host: &url::Host<&str>) -> Self {
        match host {
            url::Host::Domain(name) => {
                let name = name.trim_end_matches('.').to_ascii_lowercase();
                if name == "localhost" || name.ends_with(".localhost") {
                    Self::Here
                } else {
                    Self::Unknown
                }
            }
            url::Host::Ipv4(ip) => Self::of_ip((*ip).into()),
            url::Host::Ipv6(ip) => Self::of_ip((*ip).into()),
        }
    }

    fn of_ip(ip: IpAddr) -> Self {
        let private = match ip.to_canonical() {
            ip if ip.is_loopback() || ip.is_unspecified() => return Self::Here,
            // 100.64.0.0/10 is shared address space: carriers and overlay networks use it.
            IpAddr::V4(ip) => {
                ip.is_private() || ip.is_link_local() || (ip.octets()[0] == 100 && ip.octets()[1] & 0xC0 == 64)
            }
            IpAddr::V6(ip) => ip.is_unique_local() || ip.is_unicast_link_local(),
        };
        if private { Self::Private } else { Self::Public }
    }
}

/// The system's resolver, with a limit on where the peer of a plain connection may turn out to be.
struct Resolver {
    /// The peer's name and how far away it may be. Other names are those of proxies.
    only: Option<(String, Reach)>,
}

/// The look-up failed.
#[derive(Debug, thiserror::Error)]
#[error("{source}")]
struct NameError {
    host: String,
    source: std::io::Error,
}

/// A name of a plain peer led out of the private network.
#[derive(Debug, thiserror::Error)]
#[error("{address} is not a private address")]
struct NotPrivate {
    address: IpAddr,
}

impl reqwest::dns::Resolve for Resolver {
    fn resolve(&self, name: reqwest::dns::Name) -> reqwest::dns::Resolving {
        let host = name.as_str().to_owned();
        let farthest = match &self.only {
            Some((peer, Reach::Here)) if *peer == host => Reach::Here,
            Some((peer, Reach::Private | Reach::Unknown | Reach::Public)) if *peer == host => Reach::Private,
            Some(_) | None => Reach::Public,
        };
        Box::pin(async move {
            let found = tokio::net::lookup_host((host.as_str(), 0)).await.map(Vec::from_iter);
            let found: Vec<SocketAddr> = found.map_err(|source| NameError { host, source })?;
            if let Some(far) = found.iter().find(|it| Reach::of_ip(it.ip()) > farthest) {
                return Err(NotPrivate { address: far.ip() }.into());
            }
            Ok(Box::new(found.into_iter()) as reqwest::dns::Addrs)
        })
    }
}

/// The body of an answer as it comes. It gives one error at most, and nothing after it.
pub struct Body {
    /// `None` after the end or an error; the connection is then released.
    pieces: Option<futures::stream::BoxStream<'static, reqwest::Result<Bytes>>>,
    /// Rings when the peer may have been silent for too long.
    alarm: Pin<Box<Sleep>>,
    /// When the last piece came; `None` before the first.
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

    /// How long nothing has come: since the last piece, or `None` before the first.
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
