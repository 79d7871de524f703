//! Access control: decides from the head of a request, before any of its body is read, if the request is accepted.
//!
//! A web page in the user's browser can send requests to this machine, and a DNS name can be pointed at it. So a
//! request must use one of our own host names, must not come from a foreign web page, and must carry the token.

use std::{
    collections::VecDeque,
    net::{IpAddr, SocketAddr},
    sync::{Mutex, PoisonError},
    time::{Duration, Instant},
};

use axum::http::{
    HeaderMap, Method, StatusCode,
    header::{AUTHORIZATION, CONTENT_TYPE, HOST, ORIGIN},
    request::Parts,
    uri::Authority,
};
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

use super::refusal::Refusal;

/// Path of the health check, the only one that needs no token.
pub const HEALTH: &str = "/healthz";

/// Header in which Anthropic's clients send the token.
const API_KEY: &str = "x-api-key";

/// Wrong tokens per [`FAILURE_WINDOW`] that are taken for a person's mistakes. After more, answers are delayed.
const MAX_FAILURES: usize = 10;
const FAILURE_WINDOW: Duration = Duration::from_mins(1);

/// Accepted token, hosts and origins, with the times of recent failures.
pub struct AccessPolicy {
    /// SHA-256 of the token, so that the time of a comparison reveals neither its length nor its beginning.
    token: [u8; 32],
    hosts: Vec<Host>,
    origins: Vec<String>,
    /// Times of the last wrong tokens, oldest first, at most [`MAX_FAILURES`].
    failures: Mutex<VecDeque<Instant>>,
}

/// A host name from the settings. Without a port any port matches, since a proxy in front has its own.
struct Host {
    name: String,
    port: Option<u16>,
}

impl AccessPolicy {
    /// Creates a policy from the settings. A host may have a port; blanks, case and a trailing slash of an origin are
    /// ignored.
    pub fn new(token: &str, allow_host: &[String], allow_origin: &[String]) -> Self {
        let host = |it: &String| {
            let it = it.trim().to_ascii_lowercase();
            let split = it
                .rsplit_once(':')
                .filter(|(name, _)| !name.ends_with(':') && !name.is_empty());
            match split.and_then(|(name, port)| Some((name, port.parse().ok()?))) {
                Some((name, port)) => Host {
                    name: name.to_owned(),
                    port: Some(port),
                },
                None => Host { name: it, port: None },
            }
        };
        let origin = |it: &String| it.trim().trim_end_matches('/').to_ascii_lowercase();
        Self {
            token: Sha256::digest(token).into(),
            hosts: allow_host.iter().map(host).collect(),
            origins: allow_origin.iter().map(origin).filter(|it| !it.is_empty()).collect(),
            failures: Mutex::default(),
        }
    }

    /// Checks the request target, `Host` and `Origin` of a request. `local` is the server's end of its connection.
    ///
    /// Does not check the token: see [`Self::has_valid_token`]. The refusal has status 400, 403 or 421.
    pub fn check_host_and_origin(&self, head: &Parts, local: SocketAddr) -> Result<(), Refusal> {
        if head.uri.authority().is_some() || head.uri.scheme().is_some() || head.method == Method::CONNECT {
            return Err(Refusal::new(
                StatusCode::BAD_REQUEST,
                "a request names a path, not a whole address",
            ));
        }
        let mut hosts = head.headers.get_all(HOST).iter();
        let (Some(host), None) = (hosts.next(), hosts.next()) else {
            return Err(Refusal::new(StatusCode::BAD_REQUEST, "a request has one Host header"));
        };
        if !host.to_str().is_ok_and(|it| self.is_own_host(it, local)) {
            return Err(
                Refusal::new(StatusCode::MISDIRECTED_REQUEST, "this server does not go by that name")
                    .details("ask for 127.0.0.1 or localhost with its port, or start it with --allow-host"),
            );
        }
        if head.headers.contains_key(ORIGIN) && self.allowed_origin(&head.headers).is_none() {
            return Err(
                Refusal::new(StatusCode::FORBIDDEN, "web pages may not call this server")
                    .details("start it with --allow-origin to let one"),
            );
        }
        Ok(())
    }

    /// Returns the request's `Origin` if it is an allowed one. `None` without one, with several, or with another.
    pub fn allowed_origin<'a>(&self, headers: &'a HeaderMap) -> Option<&'a str> {
        let mut origins = headers.get_all(ORIGIN).iter();
        let (Some(origin), None) = (origins.next(), origins.next()) else {
            return None;
        };
        let origin = origin.to_str().ok()?;
        self.origins
            .iter()
            .any(|it| it.eq_ignore_ascii_case(origin))
            .then_some(origin)
    }

    fn is_own_host(&self, host: &str, local: SocketAddr) -> bool {
        let Ok(authority) = host.parse::<Authority>() else {
            return false;
        };
        // `user@host` is an authority, but no Host header.
        if host.contains('@') {
            return false;
        }
        let name = authority.host().to_ascii_lowercase();
        let port = authority.port_u16();
        if authority.port().is_some() && port.is_none() {
            return false;
        }
        let here = match name.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>() {
            Ok(address) => {
                let mapped = local.ip().to_canonical();
                address == mapped || ["127.0.0.1", "::1"].iter().any(|it| address.to_string() == *it)
            }
            Err(_) => name == "localhost",
        };
        if here {
            return port.unwrap_or(80) == local.port();
        }
        self.hosts
            .iter()
            .any(|it| it.name == name && it.port.is_none_or(|it| port.unwrap_or(80) == it))
    }

    /// Returns true if the only `Authorization` header carries the token; without one, if the only `x-api-key` header is
    /// the token, as Anthropic's clients send it. A token elsewhere, as in the query, is ignored.
    pub fn has_valid_token(&self, headers: &HeaderMap) -> bool {
        let only = |name: &str| {
            let mut shown = headers.get_all(name).iter();
            let (Some(shown), None) = (shown.next(), shown.next()) else {
                return None;
            };
            shown.to_str().ok()
        };
        let token = if headers.contains_key(AUTHORIZATION) {
            let shown = only(AUTHORIZATION.as_str()).and_then(|it| it.split_once(' '));
            shown.filter(|it| it.0.eq_ignore_ascii_case("bearer")).map(|it| it.1)
        } else {
            only(API_KEY)
        };
        let Some(token) = token else { return false };
        let digest: [u8; 32] = Sha256::digest(token.trim()).into();
        bool::from(digest.ct_eq(&self.token))
    }

    /// Records a wrong token at `now`. Returns true if there were so many that the answer should be delayed.
    pub fn note_failure(&self, now: Instant) -> bool {
        let mut failures = self.failures.lock().unwrap_or_else(PoisonError::into_inner);
        while failures
            .front()
            .is_some_and(|it| now.saturating_duration_since(*it) > FAILURE_WINDOW)
        {
            failures.pop_front();
        }
        let is_many = failures.len() >= MAX_FAILURES;
        if is_many {
            failures.pop_front();
        }
        failures.push_back(now);
        is_many
    }
}

/// Returns true if the body's only `Content-Type` is `application/json`, with or without parameters.
pub fn is_json(headers: &HeaderMap) -> bool {
    let mut types = headers.get_all(CONTENT_TYPE).iter();
    let (Some(media), None) = (types.next(), types.next()) else {
        return false;
    };
    let media = media.to_str().unwrap_or_default().split(';').next().unwrap_or_default();
    media.trim().eq_ignore_ascii_case("application/json")
}

#[cfg(test)]
mod tests {
    use axum::http::Request;

    use super::*;

    fn access() -> AccessPolicy {
        let hosts = ["Docs.example".to_owned(), "tunnel.example:8443".to_owned()];
        AccessPolicy::new("secret", &hosts, &["https://app.example/".to_owned()])
    }

    fn head(target: &str, headers: &[(&str, &str)]) -> Parts {
        let mut request = Request::builder().uri(target);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        request.body(()).unwrap().into_parts().0
    }

    fn local() -> SocketAddr {
        "127.0.0.1:8643".parse().unwrap()
    }

    #[test]
    fn only_our_own_names_with_our_own_port_are_answered() {
        let cases = [
            ("127.0.0.1:8643", 200),
            ("localhost:8643", 200),
            ("LocalHost:8643", 200),
            ("[::1]:8643", 200),
            ("docs.example", 200),
            ("DOCS.example:443", 200),
            ("tunnel.example:8443", 200),
            ("tunnel.example", 421),
            ("127.0.0.1", 421),
            ("127.0.0.1:80", 421),
            ("localhost:8644", 421),
            ("127.0.0.2:8643", 421),
            ("0.0.0.0:8643", 421),
            ("evil.example:8643", 421),
            ("localhost.evil.example:8643", 421),
            ("127.0.0.1.evil.example:8643", 421),
            ("localhost:8643@evil.example", 421),
            ("evil@localhost:8643", 421),
            ("localhost:99999", 421),
            ("localhost:", 421),
            ("", 421),
            ("a b", 421),
        ];
        for (host, wanted) in cases {
            let got = access().check_host_and_origin(&head("/healthz", &[("host", host)]), local());
            assert_eq!(got.map_or_else(|it| it.status.as_u16(), |()| 200), wanted, "{host}");
        }
        let elsewhere: SocketAddr = "192.168.1.5:8643".parse().unwrap();
        for (host, wanted) in [("192.168.1.5:8643", true), ("192.168.1.6:8643", false)] {
            let got = access().check_host_and_origin(&head("/", &[("host", host)]), elsewhere);
            assert_eq!(got.is_ok(), wanted, "{host}");
        }
    }

    #[test]
    fn what_could_be_read_in_two_ways_is_refused() {
        let host = ("host", "localhost:8643");
        for (name, target, headers) in [
            ("a whole address", "http://localhost:8643/healthz", vec![host]),
            ("two hosts", "/healthz", vec![host, host]),
            ("no host", "/healthz", vec![]),
        ] {
            let refusal = access()
                .check_host_and_origin(&head(target, &headers), local())
                .unwrap_err();
            assert_eq!(refusal.status, StatusCode::BAD_REQUEST, "{name}");
        }
    }

    #[test]
    fn a_page_may_call_only_when_it_is_listed() {
        let host = ("host", "localhost:8643");
        for (origin, wanted) in [
            ("https://app.example", true),
            ("HTTPS://APP.example", true),
            ("https://app.example.evil.example", false),
            ("http://app.example", false),
            ("null", false),
            ("http://localhost:8643", false),
            ("", false),
        ] {
            let got = access().check_host_and_origin(&head("/", &[host, ("origin", origin)]), local());
            assert_eq!(got.is_ok(), wanted, "{origin}");
        }
        let two = [
            host,
            ("origin", "https://app.example"),
            ("origin", "https://app.example"),
        ];
        assert!(access().check_host_and_origin(&head("/", &two), local()).is_err());
    }

    #[test]
    fn the_token_stands_in_one_header_and_nowhere_else() {
        let has_valid_token = |headers: &[(&str, &str)]| {
            access().has_valid_token(&head("/?token=secret&access_token=secret", headers).headers)
        };
        assert!(has_valid_token(&[("authorization", "Bearer secret")]));
        assert!(has_valid_token(&[("authorization", "bearer secret")]));
        assert!(has_valid_token(&[("x-api-key", "secret")]));
        for (name, headers) in [
            ("in the query only", &[][..]),
            (
                "twice",
                &[("authorization", "Bearer secret"), ("authorization", "Bearer secret")],
            ),
            ("another scheme", &[("authorization", "Basic secret")]),
            ("no scheme", &[("authorization", "secret")]),
            ("a part of it", &[("authorization", "Bearer secre")]),
            ("more than it", &[("authorization", "Bearer secrets")]),
            ("nothing", &[("authorization", "Bearer ")]),
            ("a cookie", &[("cookie", "token=secret")]),
            ("another key", &[("x-api-key", "secrets")]),
            ("no key", &[("x-api-key", "")]),
            ("two keys", &[("x-api-key", "secret"), ("x-api-key", "secret")]),
            (
                "a key beside a wrong token",
                &[("authorization", "Bearer secrets"), ("x-api-key", "secret")],
            ),
        ] {
            assert!(!has_valid_token(headers), "{name}");
        }
    }

    #[test]
    fn guessing_is_slowed_down_and_mistakes_are_not() {
        let access = access();
        let start = Instant::now();
        for _ in 0..MAX_FAILURES {
            assert!(!access.note_failure(start));
        }
        assert!(access.note_failure(start));
        assert!(access.note_failure(start + FAILURE_WINDOW));
        assert!(!access.note_failure(start + FAILURE_WINDOW * 3));
    }

    #[test]
    fn a_body_has_to_be_json_by_name() {
        for (media, wanted) in [
            ("application/json", true),
            ("Application/JSON; charset=utf-8", true),
            ("text/plain", false),
            ("application/x-www-form-urlencoded", false),
            ("application/jsonx", false),
        ] {
            assert_eq!(
                is_json(&head("/", &[("content-type", media)]).headers),
                wanted,
                "{media}"
            );
        }
        assert!(!is_json(&HeaderMap::new()));
    }
}
