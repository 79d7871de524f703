//! Pages of strangers: one GET of an address that somebody else chose.
//!
//! Who chooses the address may mean this machine or its neighbours, so a name is looked up once, every address that it has
//! must be public, and the connection goes to the addresses that were checked. The same holds for each redirect. A redirect
//! to another host is not followed: that one host may be reached says nothing about the next.

use std::{
    future::Future,
    io::{self, Read as _},
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr},
    pin::Pin,
    time::Duration,
};

use futures::StreamExt as _;
use reqwest::{
    StatusCode, Url,
    header::{self, HeaderMap, HeaderValue},
};

use super::client::{Cause, HEADERS_LIMIT_BYTES, USER_AGENT};

/// Finds the addresses of a name.
pub trait Resolve: Send + Sync {
    fn resolve<'a>(&'a self, host: &'a str) -> Pin<Box<dyn Future<Output = io::Result<Vec<IpAddr>>> + Send + 'a>>;
}

/// The system's own way.
pub struct System;

impl Resolve for System {
    fn resolve<'a>(&'a self, host: &'a str) -> Pin<Box<dyn Future<Output = io::Result<Vec<IpAddr>>> + Send + 'a>> {
        Box::pin(async move { Ok(tokio::net::lookup_host((host, 0)).await?.map(|it| it.ip()).collect()) })
    }
}

/// Limits of one fetch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FetchLimits {
    /// Maximum size of the unpacked body, in bytes; the rest is left out.
    pub bytes: usize,
    pub redirects: usize,
    /// For all of it.
    pub time: Duration,
}

/// Options of a fetch.
pub struct FetchOptions<'a> {
    pub limits: FetchLimits,
    pub resolver: &'a dyn Resolve,
    /// Hosts that may be near.
    pub near: &'a [String],
}

/// A fetched page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Page {
    /// Address after all redirects.
    pub url: Url,
    pub status: StatusCode,
    /// `text/html`, in lower case; empty when the server does not say.
    pub media: String,
    pub charset: Option<String>,
    pub body: Vec<u8>,
    /// True if the page is longer than the limit.
    pub is_cut: bool,
}

/// Result of a successful fetch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    Page(Page),
    /// A redirect to another host, which was not followed.
    Elsewhere(Url),
}

/// Reason why there is no page. Sorted by who must act.
#[derive(Debug, thiserror::Error)]
pub enum Refused {
    /// For the one who chose the address.
    #[error("`{0}` is not an address that can be fetched: it starts with http:// or https:// and names a host")]
    Address(String),
    #[error("the address contains a user name or a password")]
    Credentials,
    #[error("{host} is this machine or a private network ({address})")]
    Near { host: String, address: IpAddr },
    #[error("it was redirected more than {0} times")]
    Redirects(usize),
    #[error("{host} redirects to `{to}`, which is not an address")]
    Nowhere { host: String, to: String },
    /// The network, or whoever runs the server.
    #[error("host not found: `{host}`")]
    Name { host: String, source: io::Error },
    #[error("{host} did not answer as a web server does")]
    Failed { host: String, source: Cause },
    #[error("{host} took longer than {} s", .after.as_secs())]
    Slow { host: String, after: Duration },
    #[error("{host} sent more than {} KiB of headers", HEADERS_LIMIT_BYTES >> 10)]
    Headers { host: String },
}

/// Fetches a page.
pub async fn get(url: &Url, way: &FetchOptions<'_>) -> Result<Answer, Refused> {
    let host = url.host_str().unwrap_or_default().to_owned();
    let after = way.limits.time;
    let slow = |_| Refused::Slow { host, after };
    tokio::time::timeout(after, follow(url, way))
        .await
        .unwrap_or_else(|it| Err(slow(it)))
}

async fn follow(url: &Url, way: &FetchOptions<'_>) -> Result<Answer, Refused> {
    let mut url = url.clone();
    for _ in 0..=way.limits.redirects {
        let addresses = check(&url, way).await?;
        let host = url.host_str().unwrap_or_default().to_owned();
        let failed = |error: reqwest::Error| Refused::Failed {
            host: host.clone(),
            source: error.without_url().into(),
        };
        let client = client(&url, &addresses, way.limits.time).await.map_err(failed)?;
        let request = client
            .get(url.clone())
            .header(
                header::ACCEPT,
                "text/html,application/xhtml+xml,text/markdown,text/plain,application/json,*/*;q=0.5",
            )
            .header(header::ACCEPT_ENCODING, "gzip, identity");
        let answer = request.send().await.map_err(failed)?;
        let (status, headers) = (answer.status(), answer.headers().clone());
        let size: usize = headers
            .iter()
            .map(|(name, value)| name.as_str().len() + value.len())
            .sum();
        if size > HEADERS_LIMIT_BYTES {
            return Err(Refused::Headers { host });
        }
        // 304 and its like name no place.
        let location = headers.get(header::LOCATION).filter(|_| status.is_redirection());
        if let Some(location) = location {
            let to = String::from_utf8_lossy(location.as_bytes())
                .chars()
                .take(2000)
                .collect::<String>();
            let next = url.join(&to).map_err(|_| Refused::Nowhere { host: host.clone(), to })?;
            if !is_same(&url, &next) {
                check(&next, way).await?;
                return Ok(Answer::Elsewhere(next));
            }
            url = next;
            continue;
        }
        let (body, is_cut) = read(answer, &headers, way.limits.bytes).await.map_err(failed)?;
        let (media, charset) = kind(&headers);
        return Ok(Answer::Page(Page {
            url,
            status,
            media,
            charset,
            body,
            is_cut,
        }));
    }
    Err(Refused::Redirects(way.limits.redirects))
}

/// Returns true if permission for one address covers the other: the host is the same, and encryption is not given up.
fn is_same(from: &Url, to: &Url) -> bool {
    from.host_str() == to.host_str() && !(from.scheme() == "https" && to.scheme() != "https")
}

/// The addresses that the host of `url` has, all of which may be reached.
pub async fn check(url: &Url, way: &FetchOptions<'_>) -> Result<Vec<SocketAddr>, Refused> {
    let host = url.host_str().unwrap_or_default();
    if !matches!(url.scheme(), "http" | "https") || host.is_empty() {
        return Err(Refused::Address(shown(url)));
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err(Refused::Credentials);
    }
    let addresses = match url.host() {
        Some(url::Host::Ipv4(ip)) => vec![IpAddr::V4(ip)],
        Some(url::Host::Ipv6(ip)) => vec![IpAddr::V6(ip)],
        Some(url::Host::Domain(name)) => {
            let failed = |source| Refused::Name {
                host: host.to_owned(),
                source,
            };
            let found = way.resolver.resolve(name).await.map_err(failed)?;
            if found.is_empty() {
                return Err(failed(io::ErrorKind::NotFound.into()));
            }
            found
        }
        None => return Err(Refused::Address(shown(url))),
    };
    near(host, &addresses, way.near)?;
    Ok(addresses.into_iter().map(|it| SocketAddr::new(it, 0)).collect())
}

/// Refuses an address that names a private place itself, before anybody is asked about it or a name is looked up.
pub fn check_literal(url: &Url, allowed: &[String]) -> Result<(), Refused> {
    let address = match url.host() {
        Some(url::Host::Ipv4(ip)) => IpAddr::V4(ip),
        Some(url::Host::Ipv6(ip)) => IpAddr::V6(ip),
        Some(url::Host::Domain(_)) | None => return Ok(()),
    };
    near(url.host_str().unwrap_or_default(), &[address], allowed)
}

/// Refuses what is not public and not among what the user has `allowed`.
fn near(host: &str, addresses: &[IpAddr], allowed: &[String]) -> Result<(), Refused> {
    let bare = |it: &str| it.trim_matches(['[', ']']).trim_end_matches('.').to_ascii_lowercase();
    if allowed.iter().any(|it| bare(it) == bare(host)) {
        return Ok(());
    }
    match addresses.iter().find(|it| !is_public(**it)) {
        Some(address) => Err(Refused::Near {
            host: host.to_owned(),
            address: *address,
        }),
        None => Ok(()),
    }
}

/// An address without what may be a password.
fn shown(url: &Url) -> String {
    let mut url = url.clone();
    url.set_username("").ok();
    url.set_password(None).ok();
    url.as_str().chars().take(300).collect()
}

/// A client that knows one name, and the addresses that were checked for it.
async fn client(url: &Url, addresses: &[SocketAddr], time: Duration) -> reqwest::Result<reqwest::Client> {
    // A provider that somebody else installed before serves as well.
    rustls::crypto::ring::default_provider().install_default().ok();
    let builder = reqwest::Client::builder()
        .user_agent(USER_AGENT)
        .redirect(reqwest::redirect::Policy::none())
        .referer(false)
        .retry(reqwest::retry::never())
        .connect_timeout(time)
        .http2_max_header_list_size(HEADERS_LIMIT_BYTES as u32)
        // A proxy would look the name up anew, and might find something else.
        .no_proxy()
        .dns_resolver(Nobody)
        .resolve_to_addrs(url.host_str().unwrap_or_default(), addresses);
    if url.scheme() == "http" {
        return builder.tls_certs_only([]).build();
    }
    // Reading the system's certificates takes milliseconds; nobody else on this thread has to wait for them.
    let built = tokio::task::spawn_blocking(move || builder.build()).await;
    built.expect("building a client does not panic, and nobody cancels it")
}

/// Looks nothing up: what is connected to has been looked up before.
struct Nobody;

impl reqwest::dns::Resolve for Nobody {
    fn resolve(&self, _: reqwest::dns::Name) -> reqwest::dns::Resolving {
        Box::pin(async { Err(io::Error::from(io::ErrorKind::NotFound).into()) })
    }
}

/// The body as far as the limit, unpacked.
async fn read(answer: reqwest::Response, headers: &HeaderMap, limit: usize) -> reqwest::Result<(Vec<u8>, bool)> {
    let mut pieces = answer.bytes_stream();
    let mut raw = Vec::new();
    let mut is_cut = false;
    while let Some(piece) = pieces.next().await {
        raw.extend_from_slice(&piece?);
        if raw.len() > limit {
            raw.truncate(limit);
            is_cut = true;
            break;
        }
    }
    let encoding = headers.get(header::CONTENT_ENCODING).map(HeaderValue::as_bytes);
    if !encoding.is_some_and(|it| it.eq_ignore_ascii_case(b"gzip") || it.eq_ignore_ascii_case(b"x-gzip")) {
        return Ok((raw, is_cut));
    }
    let mut plain = Vec::new();
    let unpacked = flate2::read::MultiGzDecoder::new(raw.as_slice())
        .take(limit as u64 + 1)
        .read_to_end(&mut plain);
    // What was unpacked before it broke is what there is.
    let is_cut = is_cut || unpacked.is_err() || plain.len() > limit;
    plain.truncate(limit);
    Ok((plain, is_cut))
}

/// The media type and the character set that a server says.
fn kind(headers: &HeaderMap) -> (String, Option<String>) {
    let value = headers.get(header::CONTENT_TYPE).and_then(|it| it.to_str().ok());
    let mut parts = value.unwrap_or_default().split(';');
    let media = parts.next().unwrap_or_default().trim().to_ascii_lowercase();
    let charset = parts.find_map(|it| {
        let (name, value) = it.split_once('=')?;
        let is_charset = name.trim().eq_ignore_ascii_case("charset");
        is_charset.then(|| value.trim().trim_matches(['"', '\'']).to_ascii_lowercase())
    });
    (media, charset)
}

/// Returns true if an address is publicly routed. Unknown ranges count as private.
pub fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(ip) => is_public_v4(ip),
        IpAddr::V6(ip) => is_public_v6(ip),
    }
}

fn is_public_v4(ip: Ipv4Addr) -> bool {
    let is_special = match ip.octets() {
        // This network, shared address space of carriers and overlay networks, loopback, link-local with the metadata
        // services of clouds, special purposes, old relays, measuring, groups and what is kept back.
        [0 | 127 | 224..=255, ..] | [169, 254, ..] | [192, 0, 0, _] | [192, 88, 99, _] => true,
        [100, second, ..] if second & 0xC0 == 64 => true,
        [198, second, ..] if second & 0xFE == 18 => true,
        // A service for the machines of one cloud under an address that looks public.
        [168, 63, 129, 16] => true,
        _ => ip.is_private() || ip.is_documentation(),
    };
    !is_special
}

fn is_public_v6(ip: Ipv6Addr) -> bool {
    let [first, second, third, .., low, lowest] = ip.segments();
    let v4 = |high: u16, low: u16| Ipv4Addr::from((u32::from(high) << 16) | u32::from(low));
    if let Some(mapped) = ip.to_ipv4_mapped() {
        return is_public_v4(mapped);
    }
    match (first, second) {
        // Translated to IPv4 on the way.
        (0x64, 0xFF9B) if ip.segments()[2..6] == [0; 4] => is_public_v4(v4(low, lowest)),
        // 6to4: the IPv4 address of the router follows.
        (0x2002, _) => is_public_v4(v4(second, third)),
        // Teredo, benchmarks, ORCHID and other special purposes; documentation.
        (0x2001, 0..0x200 | 0xDB8) => false,
        (0x3FFF, 0..0x1000) => false,
        // Global unicast is what begins with 001; loopback, link-local, unique local and groups do not.
        _ => first & 0xE000 == 0x2000,
    }
}

#[cfg(test)]
mod tests {
    use std::{
        collections::BTreeMap,
        sync::{
            Mutex,
            atomic::{AtomicUsize, Ordering},
        },
    };

    use pretty_assertions::assert_eq;

    use super::*;
    use crate::net::test_server;

    const LIMITS: FetchLimits = FetchLimits {
        bytes: 1 << 20,
        redirects: 5,
        time: Duration::from_secs(20),
    };

    /// Knows some names, each with one list of addresses for each time it is asked; the last one stays.
    #[derive(Default)]
    struct Book {
        names: BTreeMap<&'static str, Vec<Vec<&'static str>>>,
        asked: Mutex<Vec<String>>,
    }

    impl Book {
        fn of(names: &[(&'static str, &[&[&'static str]])]) -> Self {
            Self {
                names: names
                    .iter()
                    .map(|(name, it)| (*name, it.iter().map(|it| it.to_vec()).collect()))
                    .collect(),
                asked: Mutex::default(),
            }
        }
    }

    impl Resolve for Book {
        fn resolve<'a>(&'a self, host: &'a str) -> Pin<Box<dyn Future<Output = io::Result<Vec<IpAddr>>> + Send + 'a>> {
            let mut asked = self.asked.lock().unwrap();
            let times = asked.iter().filter(|it| *it == host).count();
            asked.push(host.to_owned());
            let lists = self.names.get(host);
            let found = lists.and_then(|it| it.get(times.min(it.len() - 1)));
            let found = found.map(|it| it.iter().map(|it| it.parse().unwrap()).collect());
            Box::pin(async move { found.ok_or_else(|| io::ErrorKind::NotFound.into()) })
        }
    }

    async fn fetch(url: &str, book: &Book, near: &[&str]) -> Result<Answer, Refused> {
        let near: Vec<String> = near.iter().map(|it| (*it).to_owned()).collect();
        let way = FetchOptions {
            limits: LIMITS,
            resolver: book,
            near: &near,
        };
        get(&Url::parse(url).expect(url), &way).await
    }

    #[test]
    fn what_is_near_is_not_public() {
        for address in [
            "0.0.0.0",
            "0.1.2.3",
            "10.0.0.1",
            "10.255.255.255",
            "100.64.0.1",
            "100.100.100.200",
            "100.127.255.255",
            "127.0.0.1",
            "127.255.255.254",
            "169.254.0.1",
            "169.254.169.254",
            "172.16.0.1",
            "172.31.255.255",
            "192.0.0.1",
            "192.0.0.192",
            "192.0.2.1",
            "192.88.99.1",
            "192.168.0.1",
            "198.18.0.1",
            "198.19.255.255",
            "198.51.100.1",
            "203.0.113.1",
            "224.0.0.1",
            "239.255.255.255",
            "240.0.0.1",
            "255.255.255.255",
            "168.63.129.16",
            "::",
            "::1",
            "::2",
            "::ffff:127.0.0.1",
            "::ffff:10.0.0.1",
            "::ffff:169.254.169.254",
            "::127.0.0.1",
            "::ffff:0:127.0.0.1",
            "64:ff9b::7f00:1",
            "64:ff9b::a00:1",
            "64:ff9b:1::1",
            "100::1",
            "2001::1",
            "2001:0:7f00:1::",
            "2001:2::1",
            "2001:10::1",
            "2001:db8::1",
            "2002:7f00:1::",
            "2002:a9fe:a9fe::1",
            "3fff::1",
            "4000::1",
            "5f00::1",
            "fc00::1",
            "fd00:ec2::254",
            "fd12:3456::1",
            "fe80::1",
            "febf::1",
            "fec0::1",
            "ff02::1",
            "ff0e::1",
        ] {
            assert!(!is_public(address.parse().unwrap()), "{address}");
        }
        for address in [
            "1.1.1.1",
            "8.8.8.8",
            "93.184.215.14",
            "100.63.255.255",
            "100.128.0.1",
            "126.255.255.255",
            "128.0.0.1",
            "169.253.0.1",
            "172.15.0.1",
            "172.32.0.1",
            "192.1.0.1",
            "192.167.0.1",
            "198.17.0.1",
            "198.20.0.1",
            "223.255.255.255",
            "::ffff:8.8.8.8",
            "64:ff9b::808:808",
            "2002:808:808::1",
            "2001:4860:4860::8888",
            "2606:4700:4700::1111",
            "2a00:1450:4001:81b::200e",
        ] {
            assert!(is_public(address.parse().unwrap()), "{address}");
        }
    }

    #[tokio::test]
    async fn no_way_to_write_this_machine_leads_to_it() {
        let seen = std::sync::Arc::new(AtomicUsize::new(0));
        let counted = seen.clone();
        let base = test_server::listen(move |mut socket| {
            counted.fetch_add(1, Ordering::SeqCst);
            async move {
                socket.request().await;
                socket.send(test_server::page("200 OK", "text/plain", "secret")).await;
            }
        })
        .await;
        let port = base.rsplit(':').next().unwrap();
        let book = Book::of(&[
            ("localhost", &[&["127.0.0.1"]]),
            ("inside.example", &[&["10.0.0.7"]]),
            ("both.example", &[&["93.184.215.14", "127.0.0.1"]]),
            ("both6.example", &[&["2606:4700:4700::1111", "::1"]]),
            ("mapped.example", &[&["::ffff:127.0.0.1"]]),
            ("metadata.google.internal", &[&["169.254.169.254"]]),
            ("localhost.", &[&["127.0.0.1"]]),
        ]);
        for host in [
            "127.0.0.1",
            "2130706433",
            "0x7f000001",
            "0x7f.1",
            "0177.0.0.1",
            "017700000001",
            "127.1",
            "127.0.1",
            "0",
            "0.0.0.0",
            "[::1]",
            "[::]",
            "[::ffff:127.0.0.1]",
            "[::ffff:7f00:1]",
            "[0:0:0:0:0:ffff:127.0.0.1]",
            "[64:ff9b::127.0.0.1]",
            "localhost",
            "LOCALHOST",
            "localhost.",
            "inside.example",
            "both.example",
            "both6.example",
            "mapped.example",
            "metadata.google.internal",
            "169.254.169.254",
            "2852039166",
            "100.64.1.1",
            "[fe80::1]",
            "[fd00::1]",
            "１２７.０.０.１",
            "127。0。0。1",
            "①②⑦.⓪.⓪.①",
        ] {
            let url = format!("http://{host}:{port}/");
            match fetch(&url, &book, &[]).await {
                Err(Refused::Near { .. }) => {}
                other => panic!("{url}: {other:?}"),
            }
        }
        for url in [
            "ftp://x.example/",
            "file:///etc/passwd",
            "data:text/plain,x",
            "gopher://x.example/",
            "http://me:pw@both.example/",
        ] {
            let refused = fetch(url, &book, &[]).await.expect_err(url);
            assert!(
                matches!(refused, Refused::Address(_) | Refused::Credentials),
                "{refused:?}"
            );
            assert!(!refused.to_string().contains("pw"), "{refused}");
        }
        assert_eq!(seen.load(Ordering::SeqCst), 0, "somebody came");
    }

    /// A server that sends `/to` to where `to` says, everything else to the page.
    async fn redirecting(to: impl Fn(&str) -> String + Send + Sync + 'static) -> String {
        let to = std::sync::Arc::new(to);
        test_server::listen(move |mut socket| {
            let to = to.clone();
            async move {
                let request = socket.request().await;
                let path = request.split(' ').nth(1).unwrap_or_default().to_owned();
                let answer = match path.as_str() {
                    "/page" => test_server::page("200 OK", "text/plain; charset=UTF-8", "here"),
                    path => format!(
                        "HTTP/1.1 302 Found\r\nLocation: {}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n",
                        to(path)
                    ),
                };
                socket.send(answer).await;
            }
        })
        .await
    }

    #[tokio::test]
    async fn a_redirect_is_checked_like_the_first_address() {
        let base = redirecting(|path| match path {
            "/loop" => "/loop".to_owned(),
            "/one" => "/two".to_owned(),
            "/two" => "/page".to_owned(),
            "/local" => "http://127.0.0.1:1/x".to_owned(),
            "/decimal" => "http://2130706433/".to_owned(),
            "/mapped" => "http://[::ffff:127.0.0.1]/".to_owned(),
            "/metadata" => "http://169.254.169.254/latest/meta-data/".to_owned(),
            "/name" => "http://inside.example/".to_owned(),
            "/file" => "file:///etc/passwd".to_owned(),
            "/user" => "//me:pw@other.example/".to_owned(),
            "/other" => "https://other.example/x?a=b".to_owned(),
            "/bad" => "http://[".to_owned(),
            _ => "/page".to_owned(),
        })
        .await;
        let port = base.rsplit(':').next().unwrap();
        let book = Book::of(&[
            ("site.example", &[&["127.0.0.1"]]),
            ("inside.example", &[&["10.0.0.1"]]),
            ("other.example", &[&["93.184.215.14"]]),
        ]);
        let at = |path: &str| format!("http://site.example:{port}{path}");
        for (path, expected) in [
            ("/page", "here"),
            ("/one", "here"),
            ("/loop", "it was redirected more than 5 times"),
            ("/local", "127.0.0.1 is this machine or a private network (127.0.0.1)"),
            ("/decimal", "127.0.0.1 is this machine or a private network (127.0.0.1)"),
            (
                "/mapped",
                "[::ffff:7f00:1] is this machine or a private network (::ffff:127.0.0.1)",
            ),
            (
                "/metadata",
                "169.254.169.254 is this machine or a private network (169.254.169.254)",
            ),
            (
                "/name",
                "inside.example is this machine or a private network (10.0.0.1)",
            ),
            (
                "/file",
                "`file:///etc/passwd` is not an address that can be fetched: it starts with http:// or https:// and names a host",
            ),
            ("/user", "the address contains a user name or a password"),
            ("/other", "elsewhere: https://other.example/x?a=b"),
            ("/bad", "site.example redirects to `http://[`, which is not an address"),
        ] {
            let found = match fetch(&at(path), &book, &["Site.Example"]).await {
                Ok(Answer::Page(page)) => String::from_utf8(page.body).unwrap(),
                Ok(Answer::Elsewhere(url)) => format!("elsewhere: {url}"),
                Err(refused) => refused.to_string(),
            };
            assert_eq!(found, expected, "{path}");
        }
    }

    #[tokio::test]
    async fn a_name_that_changes_between_two_looks_is_looked_up_once_for_each_request() {
        let base = test_server::answer(test_server::page("200 OK", "text/plain", "here")).await;
        let port = base.rsplit(':').next().unwrap();
        // The second look-up would lead into the private network.
        let book = Book::of(&[("site.example", &[&["127.0.0.1"], &["10.0.0.1"]])]);
        let answer = fetch(&format!("http://site.example:{port}/"), &book, &["site.example"]).await;
        assert!(matches!(answer, Ok(Answer::Page(_))), "{answer:?}");
        assert_eq!(*book.asked.lock().unwrap(), ["site.example"]);

        // And in a redirect it is looked up, and checked, anew.
        let base = redirecting(|_| "/again".to_owned()).await;
        let port = base.rsplit(':').next().unwrap();
        let book = Book::of(&[("site.example", &[&["127.0.0.1"]])]);
        let url = Url::parse(&format!("http://site.example:{port}/x")).unwrap();
        let way = FetchOptions {
            limits: LIMITS,
            resolver: &book,
            near: &["site.example".to_owned()],
        };
        assert!(matches!(get(&url, &way).await, Err(Refused::Redirects(5))));
        assert_eq!(book.asked.lock().unwrap().len(), 6);
    }

    fn gzip(bytes: &[u8]) -> Vec<u8> {
        use std::io::Write as _;
        let mut packer = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
        packer.write_all(bytes).unwrap();
        packer.finish().unwrap()
    }

    async fn body(head: &str, bytes: Vec<u8>) -> Page {
        let mut answer = format!("HTTP/1.1 200 OK\r\n{head}Content-Length: {}\r\n\r\n", bytes.len()).into_bytes();
        answer.extend(bytes);
        let base = test_server::answer(answer).await;
        let port = base.rsplit(':').next().unwrap();
        let book = Book::of(&[("site.example", &[&["127.0.0.1"]])]);
        match fetch(&format!("http://site.example:{port}/"), &book, &["site.example"]).await {
            Ok(Answer::Page(page)) => page,
            other => panic!("{other:?}"),
        }
    }

    #[tokio::test]
    async fn a_body_is_unpacked_and_cut_at_the_limit() {
        let head = "Content-Type: Text/HTML; Charset=\"ISO-8859-1\"\r\n";
        let page = body(head, b"plain".to_vec()).await;
        assert_eq!(
            (page.media.as_str(), page.charset.as_deref()),
            ("text/html", Some("iso-8859-1"))
        );
        assert_eq!((page.body.as_slice(), page.is_cut), (&b"plain"[..], false));
        let packed = "Content-Encoding: gzip\r\n";
        let page = body(packed, gzip(b"packed")).await;
        assert_eq!((page.body.as_slice(), page.is_cut), (&b"packed"[..], false));
        // A few kilobytes that unpack to sixty megabytes.
        let page = body(packed, gzip(&vec![0; 60 << 20])).await;
        assert_eq!((page.body.len(), page.is_cut), (LIMITS.bytes, true));
        let held = page.body.capacity();
        assert!(
            held <= 4 * LIMITS.bytes,
            "{held} bytes were unpacked for {}",
            LIMITS.bytes
        );
        let page = body("", vec![b'x'; LIMITS.bytes + 1]).await;
        assert_eq!((page.body.len(), page.is_cut), (LIMITS.bytes, true));
        let page = body("", vec![b'x'; LIMITS.bytes]).await;
        assert_eq!((page.body.len(), page.is_cut), (LIMITS.bytes, false));
        let mut broken = gzip(&b"some text ".repeat(1000));
        broken.truncate(broken.len() - 12);
        let page = body(packed, broken).await;
        assert!(page.is_cut);
    }

    #[tokio::test]
    async fn a_server_that_says_nothing_is_left() {
        let base = test_server::listen(test_server::Socket::hang).await;
        let port = base.rsplit(':').next().unwrap();
        let book = Book::of(&[("site.example", &[&["127.0.0.1"]])]);
        let way = FetchOptions {
            limits: FetchLimits {
                time: Duration::from_millis(200),
                ..LIMITS
            },
            resolver: &book,
            near: &["site.example".to_owned()],
        };
        let url = Url::parse(&format!("http://site.example:{port}/")).unwrap();
        assert!(matches!(get(&url, &way).await, Err(Refused::Slow { .. })));
    }

    #[tokio::test]
    async fn the_request_says_who_asks_and_carries_nothing_else() {
        let (sender, mut diary) = test_server::diary();
        let base = test_server::listen(move |mut socket| {
            let sender = sender.clone();
            async move {
                sender.send(socket.request().await).unwrap();
                socket.send(test_server::page("200 OK", "text/plain", "x")).await;
            }
        })
        .await;
        let port = base.rsplit(':').next().unwrap();
        let book = Book::of(&[("site.example", &[&["127.0.0.1"]])]);
        let url = format!("http://site.example:{port}/a?b=c#d");
        fetch(&url, &book, &["site.example"]).await.expect("a page");
        let request = diary.next().await.to_lowercase();
        assert!(request.starts_with("get /a?b=c http/1.1\r\n"), "{request}");
        let names: Vec<_> = request
            .lines()
            .skip(1)
            .filter_map(|it| it.split(':').next())
            .filter(|it| !it.is_empty())
            .collect();
        let mut names = names;
        names.sort_unstable();
        assert_eq!(names, ["accept", "accept-encoding", "host", "user-agent"]);
    }
}
