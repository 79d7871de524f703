//! Servers to talk to, and how to reach them.

use std::{collections::BTreeMap, path::PathBuf, time::Duration};

use super::{Environment, KeySource, Secret};
use crate::net::client::{HeaderMap, HeaderName, HeaderValue, Peer, Proxy, Timeouts, Url};

/// How to reach a server.
#[derive(Clone, Debug, PartialEq)]
pub struct Connection {
    /// Read through [`Connection::url`] only, which refuses unencrypted addresses.
    pub(super) url: Option<String>,
    /// Sent with every request. The values are secrets, since many servers take keys this way.
    pub headers: BTreeMap<String, Secret>,
    /// PEM file of certificates to trust beside the system's.
    pub ca_file: Option<PathBuf>,
    /// PEM file with the client's certificate and key.
    pub client_cert: Option<PathBuf>,
    /// Proxy URL, which may hold a password, or `none`. Unset: the proxy from the environment.
    pub proxy: Option<Secret>,
    /// True if `http://` may be used in a private network. The client refuses public addresses even then.
    pub allow_http: bool,
    pub connect_timeout: Duration,
    /// Time until the first byte of a response.
    pub first_byte_timeout: Duration,
    /// Time without any byte, heartbeats included.
    pub idle_timeout: Duration,
}

impl Default for Connection {
    fn default() -> Self {
        Self {
            url: None,
            headers: BTreeMap::new(),
            ca_file: None,
            client_cert: None,
            proxy: None,
            allow_http: false,
            connect_timeout: Duration::from_secs(10),
            first_byte_timeout: Duration::from_mins(2),
            idle_timeout: Duration::from_mins(1),
        }
    }
}

/// Reason why an address is not used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AddressError {
    #[error("no address is configured")]
    Missing,
    #[error("`{0}` is not an address\n  an address starts with https:// or http://")]
    Unreadable(String),
    #[error(
        "`{0}` would send the key and the conversation unencrypted\n  use https://, or set `allow_http = true` beside it"
    )]
    Unencrypted(String),
    #[error("the header `{0}` cannot be sent\n  its name or its value has characters that headers must not have")]
    Header(String),
}

impl Connection {
    /// Returns the address. Error: none is set, it is not an HTTP address, or it would send a key unencrypted.
    pub fn url(&self) -> Result<&str, AddressError> {
        let url = self.url.as_deref().ok_or(AddressError::Missing)?;
        let parsed = Url::parse(url).map_err(|_| AddressError::Unreadable(url.to_owned()))?;
        match parsed.scheme() {
            "https" => Ok(url),
            "http" if self.allow_http || is_loopback(&parsed) => Ok(url),
            "http" => Err(AddressError::Unencrypted(url.to_owned())),
            _ => Err(AddressError::Unreadable(url.to_owned())),
        }
    }

    /// Returns the connection in the HTTP client's form. Same errors as [`Self::url`], or an invalid header.
    pub fn peer(&self) -> Result<Peer, AddressError> {
        let url = self.url()?;
        let base = Url::parse(url).map_err(|_| AddressError::Unreadable(url.to_owned()))?;
        let mut headers = HeaderMap::new();
        for (name, value) in &self.headers {
            match (HeaderName::try_from(name), HeaderValue::try_from(value.expose())) {
                (Ok(known), Ok(mut value)) => {
                    value.set_sensitive(true);
                    headers.insert(known, value);
                }
                (Ok(_) | Err(_), Ok(_) | Err(_)) => return Err(AddressError::Header(name.clone())),
            }
        }
        Ok(Peer {
            allow_http: self.allow_http,
            headers,
            proxy: match self.proxy.as_ref().map(Secret::expose) {
                None => Proxy::Environment,
                Some("none") => Proxy::Direct,
                Some(url) => Proxy::Through(url.to_owned()),
            },
            ca_file: self.ca_file.clone(),
            client_certificate: self.client_cert.clone(),
            timeouts: Timeouts {
                connect: self.connect_timeout,
                first_byte: self.first_byte_timeout,
                idle: self.idle_timeout,
            },
            ..Peer::new(base)
        })
    }

    /// Returns true if an address is set, usable or not.
    pub fn has_url(&self) -> bool {
        self.url.is_some()
    }

    /// Replaces the address, by one found or asked for at run time.
    pub fn at(mut self, url: impl Into<String>) -> Self {
        self.url = Some(url.into());
        self
    }
}

/// Returns true if the URL names this machine.
fn is_loopback(url: &Url) -> bool {
    match url.host() {
        Some(url::Host::Domain(name)) => name == "localhost" || name.ends_with(".localhost"),
        Some(url::Host::Ipv4(it)) => it.is_loopback() || it.is_unspecified(),
        Some(url::Host::Ipv6(it)) => it.is_loopback() || it.is_unspecified(),
        None => false,
    }
}

/// A documents gateway.
#[derive(Clone, Debug, PartialEq)]
pub struct Gateway {
    pub connection: Connection,
    pub token: KeySource,
    /// `auto`, `a` or `b`.
    pub dialect: String,
    /// Workspace context that it is sent: `path`, `rules` or `layout`, each including the previous ones.
    pub context: String,
}

impl Default for Gateway {
    fn default() -> Self {
        Self {
            connection: Connection::default(),
            token: KeySource::None,
            dialect: "auto".to_owned(),
            context: "rules".to_owned(),
        }
    }
}

/// A model server.
#[derive(Clone, Debug, PartialEq)]
pub struct Provider {
    /// Wire format: `openai` (chat completions), `openai-responses`, `anthropic`, `gemini` or `ollama`.
    pub kind: String,
    pub connection: Connection,
    pub key: KeySource,
    pub model: Option<String>,
    /// True if a `<think>` block at the start of an answer is shown as thinking.
    pub think_tags: bool,
    /// Optional request fields that the server accepts. `None`: all.
    pub allow_fields: Option<Vec<String>>,
    /// Context window to request from Ollama, which otherwise truncates long conversations silently.
    pub num_ctx: Option<u64>,
    /// Maximum length of an answer to request, in tokens.
    pub max_tokens: Option<u64>,
    pub temperature: Option<f64>,
    /// When earlier reasoning is sent back: `always`, `tool_loop` or `never`.
    pub replay_reasoning: String,
}

impl Default for Provider {
    fn default() -> Self {
        Self {
            kind: "openai".to_owned(),
            connection: Connection::default(),
            key: KeySource::None,
            model: None,
            think_tags: true,
            allow_fields: None,
            num_ctx: None,
            max_tokens: None,
            temperature: None,
            replay_reasoning: "tool_loop".to_owned(),
        }
    }
}

/// The server that the settings choose.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Upstream<'a> {
    Gateway(&'a Gateway),
    /// Its name and settings.
    Provider(&'a str, &'a Provider),
    /// None is configured.
    Nobody,
}

/// A service with a known address, so that its name is enough to use it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KnownService {
    /// As in `providers.<name>` and `--provider`.
    pub name: &'static str,
    /// Display name.
    pub title: &'static str,
    /// Wire format, as in [`Provider::kind`].
    pub kind: &'static str,
    pub base_url: &'static str,
    /// Environment variables that usually hold its key, the preferred one first. Empty: it needs no key.
    pub variables: &'static [&'static str],
}

/// Returns the address in `OLLAMA_HOST`, in any of the forms that Ollama accepts. `None` if it cannot be read.
pub fn ollama_url(text: &str) -> Option<String> {
    let text = text.trim().trim_matches(['"', '\'']).trim_end_matches('/');
    let (scheme, rest) = text.split_once("://").unwrap_or(("http", text));
    let (place, path) = rest.split_once('/').unwrap_or((rest, ""));
    // The colons of an IPv6 address without brackets separate no port.
    let (host, port) = match place.rsplit_once(':') {
        Some((host, port)) if host.ends_with(']') || !host.contains([':', '[']) => (host, port.parse::<u16>().ok()?),
        Some(_) | None => (place, if scheme == "https" { 443 } else { 11434 }),
    };
    let host = match host {
        // A server that listens on all addresses is reached on this one.
        "" | "0.0.0.0" => "127.0.0.1",
        "[::]" | "::" => "[::1]",
        host => host,
    };
    let url = format!("{scheme}://{host}:{port}/{path}");
    Url::parse(&url).ok()?;
    Some(url.trim_end_matches('/').to_owned())
}

/// All known services.
pub const SERVICES: &[KnownService] = &[
    KnownService {
        name: "openai",
        title: "OpenAI",
        kind: "openai",
        base_url: "https://api.openai.com/v1",
        variables: &["OPENAI_API_KEY"],
    },
    KnownService {
        name: "openrouter",
        title: "OpenRouter",
        kind: "openai",
        base_url: "https://openrouter.ai/api/v1",
        variables: &["OPENROUTER_API_KEY"],
    },
    KnownService {
        name: "mistral",
        title: "Mistral",
        kind: "openai",
        base_url: "https://api.mistral.ai/v1",
        variables: &["MISTRAL_API_KEY"],
    },
    KnownService {
        name: "deepseek",
        title: "DeepSeek",
        kind: "openai",
        base_url: "https://api.deepseek.com/v1",
        variables: &["DEEPSEEK_API_KEY"],
    },
    KnownService {
        name: "groq",
        title: "Groq",
        kind: "openai",
        base_url: "https://api.groq.com/openai/v1",
        variables: &["GROQ_API_KEY"],
    },
    KnownService {
        name: "xai",
        title: "xAI",
        kind: "openai",
        base_url: "https://api.x.ai/v1",
        variables: &["XAI_API_KEY"],
    },
    KnownService {
        name: "together",
        title: "Together",
        kind: "openai",
        base_url: "https://api.together.xyz/v1",
        variables: &["TOGETHER_API_KEY"],
    },
    KnownService {
        name: "fireworks",
        title: "Fireworks",
        kind: "openai",
        base_url: "https://api.fireworks.ai/inference/v1",
        variables: &["FIREWORKS_API_KEY"],
    },
    KnownService {
        name: "cerebras",
        title: "Cerebras",
        kind: "openai",
        base_url: "https://api.cerebras.ai/v1",
        variables: &["CEREBRAS_API_KEY"],
    },
    KnownService {
        name: "gemini",
        title: "Gemini",
        kind: "gemini",
        base_url: "https://generativelanguage.googleapis.com/v1beta",
        variables: &["GEMINI_API_KEY", "GOOGLE_API_KEY"],
    },
    KnownService {
        name: "anthropic",
        title: "Anthropic",
        kind: "anthropic",
        base_url: "https://api.anthropic.com",
        variables: &["ANTHROPIC_API_KEY"],
    },
    KnownService {
        name: "ollama",
        title: "Ollama",
        kind: "ollama",
        base_url: "http://127.0.0.1:11434",
        variables: &[],
    },
    KnownService {
        name: "lmstudio",
        title: "LM Studio",
        kind: "openai",
        base_url: "http://127.0.0.1:1234/v1",
        variables: &[],
    },
    KnownService {
        name: "llamacpp",
        title: "llama.cpp",
        kind: "openai",
        base_url: "http://127.0.0.1:8080/v1",
        variables: &[],
    },
    KnownService {
        name: "vllm",
        title: "vLLM",
        kind: "openai",
        base_url: "http://127.0.0.1:8000/v1",
        variables: &[],
    },
];

impl KnownService {
    /// Finds a service by name.
    pub fn named(name: &str) -> Option<&'static Self> {
        SERVICES.iter().find(|it| it.name == name)
    }

    /// Returns its address. Ollama's may come from `OLLAMA_HOST`.
    pub fn url(&self, environment: &Environment) -> String {
        let elsewhere = (self.name == "ollama")
            .then(|| environment.get("OLLAMA_HOST"))
            .flatten();
        elsewhere
            .and_then(ollama_url)
            .unwrap_or_else(|| self.base_url.to_owned())
    }

    /// Returns default settings for it, with its key from the environment.
    pub fn provider(&self, environment: &Environment) -> Provider {
        Provider {
            kind: self.kind.to_owned(),
            connection: Connection::default().at(self.url(environment)),
            key: self.key(),
            ..Provider::default()
        }
    }

    /// Returns the usual source of its key.
    pub fn key(&self) -> KeySource {
        if self.variables.is_empty() {
            return KeySource::None;
        }
        KeySource::Variables(self.variables.iter().map(|it| (*it).to_owned()).collect())
    }

    /// Returns the wire format at `url`: several services have an OpenAI-compatible endpoint beside their own.
    pub fn kind_at(&self, url: &str) -> &'static str {
        let url = url.trim_end_matches('/');
        let is_compatible = url.ends_with("/openai") || (self.kind == "ollama" && url.ends_with("/v1"));
        if is_compatible { "openai" } else { self.kind }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_sent_in_the_clear_to_another_machine_without_leave() {
        let refused = |it: &str| Err(AddressError::Unencrypted(it.to_owned()));
        for (url, allow_http, expected) in [
            ("https://api.example.com/v1", false, Ok("https://api.example.com/v1")),
            ("http://localhost:1234/v1", false, Ok("http://localhost:1234/v1")),
            ("http://a.localhost", false, Ok("http://a.localhost")),
            ("http://127.9.9.9:1", false, Ok("http://127.9.9.9:1")),
            ("http://[::1]:1", false, Ok("http://[::1]:1")),
            ("http://10.0.0.1", false, refused("http://10.0.0.1")),
            ("http://10.0.0.1", true, Ok("http://10.0.0.1")),
            (
                "http://127.0.0.1.example.com",
                false,
                refused("http://127.0.0.1.example.com"),
            ),
            (
                "http://localhost@example.com",
                false,
                refused("http://localhost@example.com"),
            ),
            ("http://0.0.0.0:1", false, Ok("http://0.0.0.0:1")),
            (
                "ftp://localhost",
                true,
                Err(AddressError::Unreadable("ftp://localhost".to_owned())),
            ),
            (
                "localhost:1234",
                true,
                Err(AddressError::Unreadable("localhost:1234".to_owned())),
            ),
            ("", true, Err(AddressError::Unreadable(String::new()))),
        ] {
            let connection = Connection {
                allow_http,
                ..Connection::default().at(url)
            };
            assert_eq!(connection.url(), expected, "{url}");
        }
        assert_eq!(Connection::default().url(), Err(AddressError::Missing));
    }

    #[test]
    fn what_is_configured_reaches_the_client() {
        let mut connection = Connection {
            allow_http: true,
            proxy: Some(Secret::new("socks5h://localhost:1")),
            idle_timeout: Duration::from_secs(7),
            ..Connection::default().at("http://10.0.0.1/v1")
        };
        connection.headers.insert("X-Team".to_owned(), Secret::new("ours"));
        let peer = connection.peer().expect("all is well");
        assert_eq!(peer.base.as_str(), "http://10.0.0.1/v1");
        assert_eq!(peer.headers["x-team"], "ours");
        assert!(peer.headers["x-team"].is_sensitive() && peer.allow_http);
        assert_eq!(peer.proxy, Proxy::Through("socks5h://localhost:1".to_owned()));
        assert_eq!(peer.timeouts.idle, Duration::from_secs(7));
        connection.proxy = Some(Secret::new("none"));
        assert_eq!(connection.peer().map(|it| it.proxy).ok(), Some(Proxy::Direct));
        connection.headers.insert("X-Odd".to_owned(), Secret::new("a\nb"));
        assert_eq!(connection.peer().err(), Some(AddressError::Header("X-Odd".to_owned())));
        connection.allow_http = false;
        assert!(matches!(connection.peer(), Err(AddressError::Unencrypted(_))));
    }

    #[test]
    fn an_ollama_is_found_where_its_variable_says() {
        for (text, want) in [
            ("0.0.0.0", Some("http://127.0.0.1:11434")),
            ("localhost", Some("http://localhost:11434")),
            (":9", Some("http://127.0.0.1:9")),
            ("10.0.0.1:9", Some("http://10.0.0.1:9")),
            ("http://localhost:9/", Some("http://localhost:9")),
            ("https://ollama.example/base", Some("https://ollama.example:443/base")),
            ("[::1]:9", Some("http://[::1]:9")),
            ("[::]", Some("http://[::1]:11434")),
            (":99999", None),
            ("a b", None),
        ] {
            assert_eq!(ollama_url(text).as_deref(), want, "{text}");
        }
    }

    #[test]
    fn every_known_service_can_be_reached_as_it_stands() {
        for it in SERVICES {
            assert_eq!(
                Connection::default().at(it.base_url).url(),
                Ok(it.base_url),
                "{}",
                it.name
            );
            assert_eq!(KnownService::named(it.name), Some(it), "names are unique");
        }
    }
}
