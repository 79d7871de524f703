//! Servers to talk to, and how to reach them.

use super::{Connection, Environment, Gateway, KeySource, Layer, Net, Provider, Secret, Settings};
use crate::net::{
    client::{HeaderMap, HeaderName, HeaderValue, Peer, Proxy, Timeouts, Url},
    retry::Policy,
};

/// Reason why an address is not used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AddressError {
    #[error("no address is configured")]
    Missing,
    #[error("`{0}` is not an address\n  an address starts with https:// or http://")]
    Unreadable(String),
    #[error(
        "`{0}` would send the key and the conversation unencrypted\n  use https://, or set `allow_http = true` for it"
    )]
    Unencrypted(String),
    #[error("the header `{0}` cannot be sent\n  its name or its value contains invalid characters")]
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

    /// Repeats failed requests as the settings say.
    pub fn retry_as(&mut self, net: &Net) {
        self.retries = net.retries;
        self.retry_for = net.retry_for;
    }

    /// Returns the rules for repeating failed requests.
    pub fn retry_policy(&self) -> Policy {
        Policy {
            retries: u32::try_from(self.retries).unwrap_or(u32::MAX),
            within: self.retry_for,
            ..Policy::default()
        }
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

/// The server that the settings choose.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Upstream<'a> {
    Gateway(&'a Gateway),
    /// Its name and settings.
    Provider(&'a str, &'a Provider),
    /// None is configured.
    Nobody,
}

impl Provider {
    /// Returns the model that a known service at this address starts with; `None` for every other server.
    pub fn first_model(&self) -> Option<&'static str> {
        let url = self.connection.url.as_deref()?.trim_end_matches('/');
        let is_here = |it: &&KnownService| it.base_url == url && it.kind == self.kind;
        SERVICES.iter().find(is_here)?.model
    }
}

impl Settings {
    /// Returns the server to talk to: the one that the strongest layer names, the gateway before a provider of the same
    /// layer.
    ///
    /// If neither is named: the provider that `OPENAI_…` variables describe, else the only one configured.
    pub fn upstream(&self) -> Upstream<'_> {
        let gateway = self
            .gateway
            .connection
            .has_url()
            .then(|| self.origin("gateway.url").layer);
        let provider = self.provider.as_ref().map(|_| self.origin("provider").layer);
        if gateway.is_some() && gateway >= provider {
            return Upstream::Gateway(&self.gateway);
        }
        let in_environment = ["base_url", "api_key"].into_iter().any(|it| {
            let layer = self.origin(&format!("providers.openai.{it}")).layer;
            layer == Layer::Environment
        });
        let mut described = self
            .providers
            .keys()
            .filter(|it| self.is_described(it))
            .map(String::as_str);
        let name = match &self.provider {
            Some(name) => Some(name.as_str()),
            None if in_environment => Some("openai"),
            None => described.next().filter(|_| described.next().is_none()),
        };
        let found = name.and_then(|name| self.providers.get_key_value(name));
        found.map_or(Upstream::Nobody, |(name, provider)| Upstream::Provider(name, provider))
    }

    /// Returns the provider of that name: as configured, or a known service.
    pub fn provider_named(&self, name: &str, environment: &Environment) -> Option<Provider> {
        let configured = self.providers.get(name).cloned();
        configured.or_else(|| {
            let mut provider = KnownService::named(name)?.provider(environment);
            provider.connection.retry_as(&self.net);
            Some(provider)
        })
    }

    /// Returns true if the user configured the provider, beyond a variable or a project that names its model.
    fn is_described(&self, name: &str) -> bool {
        let prefix = format!("providers.{name}.");
        self.origins.iter().any(|(path, origin)| {
            let is_users = matches!(origin.layer, Layer::User | Layer::Flag);
            path.strip_prefix(&prefix).is_some_and(|it| it != "model" || is_users)
        })
    }

    /// Returns true if the user's own file or the command line says anything about the provider.
    pub fn is_users(&self, name: &str) -> bool {
        let prefix = format!("providers.{name}.");
        let is_users = |layer| matches!(layer, Layer::User | Layer::Flag);
        let mut origins = self.origins.iter();
        origins.any(|(path, origin)| path.starts_with(&prefix) && is_users(origin.layer))
    }

    /// Returns the model to ask for: the strongest layer's, a provider's own before the general one of the same layer. If none
    /// is chosen, the one that the provider's service starts with.
    pub fn model(&self) -> Option<&str> {
        let general = self.model.as_deref();
        let own = match self.upstream() {
            Upstream::Provider(name, provider) => {
                let layer = self.origin(&format!("providers.{name}.model")).layer;
                provider.model.as_deref().map(|it| (layer, it))
            }
            Upstream::Gateway(_) | Upstream::Nobody => None,
        };
        match own {
            Some((layer, own)) if general.is_none() || layer >= self.origin("model").layer => Some(own),
            Some(_) | None => general.or_else(|| match self.upstream() {
                Upstream::Provider(_, provider) => provider.first_model(),
                Upstream::Gateway(_) | Upstream::Nobody => None,
            }),
        }
    }
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
    /// The model that is asked where none is chosen. `None`: the first usable one that the server lists.
    pub model: Option<&'static str>,
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

const fn service(
    name: &'static str,
    title: &'static str,
    kind: &'static str,
    base_url: &'static str,
    variables: &'static [&'static str],
) -> KnownService {
    KnownService {
        name,
        title,
        kind,
        base_url,
        variables,
        model: None,
    }
}

impl KnownService {
    const fn starts_with(self, model: &'static str) -> Self {
        Self {
            model: Some(model),
            ..self
        }
    }
}

/// All known services: name, title, wire format, address, variables of the key.
pub const SERVICES: &[KnownService] = &[
    service(
        "openai",
        "OpenAI",
        "openai",
        "https://api.openai.com/v1",
        &["OPENAI_API_KEY"],
    )
    .starts_with("gpt-6.1-sol"),
    service(
        "openrouter",
        "OpenRouter",
        "openai",
        "https://openrouter.ai/api/v1",
        &["OPENROUTER_API_KEY"],
    ),
    service(
        "mistral",
        "Mistral",
        "openai",
        "https://api.mistral.ai/v1",
        &["MISTRAL_API_KEY"],
    )
    .starts_with("devstral-latest"),
    service(
        "deepseek",
        "DeepSeek",
        "openai",
        "https://api.deepseek.com/v1",
        &["DEEPSEEK_API_KEY"],
    )
    .starts_with("deepseek-v4-pro"),
    service(
        "groq",
        "Groq",
        "openai",
        "https://api.groq.com/openai/v1",
        &["GROQ_API_KEY"],
    ),
    service("xai", "xAI", "openai", "https://api.x.ai/v1", &["XAI_API_KEY"]).starts_with("grok-4.7"),
    service(
        "together",
        "Together",
        "openai",
        "https://api.together.xyz/v1",
        &["TOGETHER_API_KEY"],
    ),
    service(
        "fireworks",
        "Fireworks",
        "openai",
        "https://api.fireworks.ai/inference/v1",
        &["FIREWORKS_API_KEY"],
    ),
    service(
        "cerebras",
        "Cerebras",
        "openai",
        "https://api.cerebras.ai/v1",
        &["CEREBRAS_API_KEY"],
    ),
    service(
        "gemini",
        "Gemini",
        "gemini",
        "https://generativelanguage.googleapis.com/v1beta",
        &["GEMINI_API_KEY", "GOOGLE_API_KEY"],
    )
    .starts_with("gemini-pro-latest"),
    service(
        "anthropic",
        "Anthropic",
        "anthropic",
        "https://api.anthropic.com",
        &["ANTHROPIC_API_KEY"],
    )
    .starts_with("claude-sonnet-5-5"),
    service("ollama", "Ollama", "ollama", "http://127.0.0.1:11434", &[]),
    service("lmstudio", "LM Studio", "openai", "http://127.0.0.1:1234/v1", &[]),
    service("llamacpp", "llama.cpp", "openai", "http://127.0.0.1:8080/v1", &[]),
    service("vllm", "vLLM", "openai", "http://127.0.0.1:8000/v1", &[]),
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
    use std::time::Duration;

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
