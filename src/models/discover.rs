//! Discovery of usable models before anything is configured: keys in the environment, model servers on this machine.
//!
//! Nothing is asked but this machine's own ports, each for a moment only, and nothing is sent but a question for the
//! list of models. What a server calls itself is not believed: it is known by the shape of its answer. The strings
//! are a stranger's and pass the sanitiser before they reach a terminal.

use std::{net::SocketAddr, time::Duration};

use serde_json::Value;

use crate::{
    config::{self, Connection, Environment, KeySource, KnownService, Provider, SERVICES},
    net::client::{Client, Peer, Proxy, Request, Timeouts, Url},
};

/// A usable provider.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DiscoveredProvider {
    /// As in `--provider` and `providers.<name>`: a known service's own name where it stands at its usual address.
    pub name: String,
    /// For people: `Ollama`.
    pub title: String,
    /// Wire format, as in `providers.<name>.kind`.
    pub kind: &'static str,
    pub base_url: String,
    /// Its models, at most [`MODELS_LIMIT`]. Empty if it was not asked.
    pub models: Vec<String>,
    pub how: Evidence,
}

/// The evidence for a provider.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Evidence {
    /// The environment variable holds a key for it.
    Key { variable: String },
    /// The environment variable holds its address; no key is needed or known.
    Address { variable: String },
    /// A server on this machine answered.
    Answered,
}

impl DiscoveredProvider {
    /// Settings that reach it.
    pub fn provider(&self) -> Provider {
        Provider {
            kind: self.kind.to_owned(),
            connection: Connection::default().at(&self.base_url),
            key: match &self.how {
                Evidence::Key { variable } => KeySource::Variables(vec![variable.clone()]),
                Evidence::Address { .. } | Evidence::Answered => KeySource::None,
            },
            model: self.models.first().cloned(),
            ..Provider::default()
        }
    }

    /// Returns the model that would answer, if that is known.
    pub fn model(&self) -> Option<String> {
        let listed = self.models.first().cloned();
        listed.or_else(|| self.provider().first_model().map(str::to_owned))
    }
}

/// A server with more models than anybody reads through.
pub const MODELS_LIMIT: usize = 200;

/// An id longer than this is no id.
const ID_CHARS: usize = 200;

/// A list of models is some kilobytes.
const BODY_LIMIT_BYTES: usize = 1 << 20;

/// Time limit for all servers together.
pub const PATIENCE: Duration = Duration::from_millis(400);

/// Usual ports of model servers on this machine: Ollama, LM Studio, llama.cpp, vLLM.
pub const PORTS: [u16; 4] = [11434, 1234, 8080, 8000];

/// The addresses to try: the usual ports, and where `OLLAMA_HOST` says that Ollama listens on this machine.
pub fn addresses(environment: &Environment) -> Vec<SocketAddr> {
    let mut found: Vec<SocketAddr> = PORTS.iter().map(|&port| ([127, 0, 0, 1], port).into()).collect();
    let own = environment.get("OLLAMA_HOST").and_then(ollama_host);
    if let Some(own) = own
        && !found.contains(&own)
    {
        found.push(own);
    }
    found
}

/// Reads `host`, `host:port`, `:port` or an address; none for other machines.
fn ollama_host(text: &str) -> Option<SocketAddr> {
    let text = text.trim().trim_end_matches('/');
    let text = text.strip_prefix("http://").unwrap_or(text);
    let (host, port) = match text.rsplit_once(':') {
        Some((host, port)) => (host, port.parse().ok()?),
        None => (text, 11434),
    };
    match host {
        "" | "localhost" | "127.0.0.1" | "0.0.0.0" => Some(([127, 0, 0, 1], port).into()),
        "[::1]" | "[::]" => Some((std::net::Ipv6Addr::LOCALHOST, port).into()),
        _ => None,
    }
}

/// The services for which the environment holds a key or an address, in the order of [`SERVICES`].
pub fn keys(environment: &Environment) -> Vec<DiscoveredProvider> {
    SERVICES.iter().filter_map(|it| key(it, environment)).collect()
}

fn key(known: &KnownService, environment: &Environment) -> Option<DiscoveredProvider> {
    let variable = known.variables.iter().copied().find(|it| environment.get(it).is_some());
    if known.kind == "ollama" {
        return elsewhere(known, environment);
    }
    let addressed = match known.name {
        "openai" => Some("OPENAI_BASE_URL"),
        "anthropic" => Some("ANTHROPIC_BASE_URL"),
        _ => None,
    };
    let address = addressed.and_then(|it| environment.get(it));
    let model = (known.name == "openai")
        .then(|| environment.get("OPENAI_MODEL"))
        .flatten();
    let how = match (variable, address) {
        (Some(variable), _) => Evidence::Key {
            variable: variable.to_owned(),
        },
        (None, Some(_)) => Evidence::Address {
            variable: addressed.unwrap_or_default().to_owned(),
        },
        (None, None) => return None,
    };
    Some(DiscoveredProvider {
        name: known.name.to_owned(),
        title: known.title.to_owned(),
        kind: known.kind_at(address.unwrap_or(known.base_url)),
        base_url: address.unwrap_or(known.base_url).trim_end_matches('/').to_owned(),
        models: model.into_iter().map(str::to_owned).collect(),
        how,
    })
}

/// An Ollama on another machine. One on this machine answers for itself.
fn elsewhere(known: &KnownService, environment: &Environment) -> Option<DiscoveredProvider> {
    let text = environment.get("OLLAMA_HOST")?;
    let base_url = config::ollama_url(text).filter(|_| ollama_host(text).is_none())?;
    // In the clear it can be used only where the settings allow it.
    Connection::default().at(&base_url).url().ok()?;
    Some(DiscoveredProvider {
        name: known.name.to_owned(),
        title: known.title.to_owned(),
        kind: known.kind,
        base_url,
        models: Vec::new(),
        how: Evidence::Address {
            variable: "OLLAMA_HOST".to_owned(),
        },
    })
}

/// The model servers at `addresses`, in that order, asked all at once. Ends after `patience` with what has answered.
///
/// Addresses of other machines are left out. Dropping the future drops every connection.
pub async fn servers(addresses: &[SocketAddr], patience: Duration) -> Vec<DiscoveredProvider> {
    let here = addresses.iter().filter(|it| it.ip().is_loopback());
    let asked = here.map(|&address| async move { tokio::time::timeout(patience, ask(address, patience)).await.ok()? });
    let mut found: Vec<DiscoveredProvider> = futures::future::join_all(asked).await.into_iter().flatten().collect();
    // Two of a kind need two names.
    for index in 1..found.len() {
        let (before, rest) = found.split_at_mut(index);
        let Some(this) = rest.first_mut() else { continue };
        let plain = this.name.clone();
        let mut count = 1;
        while before.iter().any(|it| it.name == this.name) {
            count += 1;
            this.name = format!("{plain}-{count}");
        }
    }
    found
}

/// Returns all usable providers, those with keys first.
pub async fn discover(environment: &Environment) -> Vec<DiscoveredProvider> {
    let mut found = keys(environment);
    found.append(&mut servers(&addresses(environment), PATIENCE).await);
    found
}

async fn ask(address: SocketAddr, patience: Duration) -> Option<DiscoveredProvider> {
    // Mostly nobody listens. That is seen at once, without a client.
    drop(tokio::net::TcpStream::connect(address).await.ok()?);
    let root = Url::parse(&format!("http://{address}")).ok()?;
    let client = Client::new(Peer {
        proxy: Proxy::Direct,
        timeouts: Timeouts {
            connect: patience,
            first_byte: patience,
            idle: patience,
        },
        ..Peer::new(root)
    })
    .ok()?;
    let (server, list) = json(&client, "v1/models").await?;
    if let Some(kind) = list.as_ref().and_then(|it| ServerKind::of(&server, it)) {
        return Some(kind.found(address, list.as_ref().map(ids).unwrap_or_default()));
    }
    // Old Ollamas, and those without a model, are known by their own list only.
    let (_, tags) = json(&client, "api/tags").await?;
    match (tags, list) {
        (Some(tags), _) if is_ollama(&tags) => Some(ServerKind::Ollama.found(address, ids(&tags))),
        (_, Some(list)) if is_list(&list) => Some(ServerKind::Unknown.found(address, ids(&list))),
        (_, Some(_) | None) => None,
    }
}

/// The `Server` header and the body of an answer; no body unless it is a success in JSON.
async fn json(client: &Client, path: &str) -> Option<(String, Option<Value>)> {
    let response = client.open(Request::get(path).accept("application/json")).await.ok()?;
    let server = response.headers.get("server").and_then(|it| it.to_str().ok());
    let server = server.unwrap_or_default().to_ascii_lowercase();
    // A server that is still loading its model says so with an error; it is there all the same.
    if !response.status.is_success() {
        return Some((server, None));
    }
    let body = response.body.read(BODY_LIMIT_BYTES).await.ok()?;
    Some((server, serde_json::from_slice(&body).ok()))
}

/// The kinds of servers that can be told apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ServerKind {
    Ollama,
    LmStudio,
    LlamaCpp,
    Vllm,
    /// A server with OpenAI's interface, otherwise unknown.
    Unknown,
}

impl ServerKind {
    /// By the list of models and, where that tells nothing, by the `Server` header.
    fn of(server: &str, list: &Value) -> Option<Self> {
        let owner = list.pointer("/data/0/owned_by").and_then(Value::as_str);
        match owner.unwrap_or_default() {
            "llamacpp" => Some(Self::LlamaCpp),
            "vllm" => Some(Self::Vllm),
            "library" => Some(Self::Ollama),
            "organization_owner" | "organization-owner" => Some(Self::LmStudio),
            _ if server.contains("llama.cpp") && is_list(list) => Some(Self::LlamaCpp),
            _ => None,
        }
    }

    const fn name(self) -> &'static str {
        match self {
            Self::Ollama => "ollama",
            Self::LmStudio => "lmstudio",
            Self::LlamaCpp => "llamacpp",
            Self::Vllm => "vllm",
            Self::Unknown => "local",
        }
    }

    fn found(self, address: SocketAddr, models: Vec<String>) -> DiscoveredProvider {
        let known = KnownService::named(self.name());
        DiscoveredProvider {
            name: self.name().to_owned(),
            title: known
                .map_or("a server that speaks like OpenAI's", |it| it.title)
                .to_owned(),
            kind: known.map_or("openai", |it| it.kind),
            base_url: match self {
                Self::Ollama => format!("http://{address}"),
                Self::LmStudio | Self::LlamaCpp | Self::Vllm | Self::Unknown => format!("http://{address}/v1"),
            },
            models,
            how: Evidence::Answered,
        }
    }
}

/// Returns true for the shape of OpenAI's list. Ollama without a model answers null.
fn is_list(value: &Value) -> bool {
    let data = value.get("data");
    value.get("object").and_then(Value::as_str) == Some("list") && data.is_some_and(|it| it.is_array() || it.is_null())
}

/// Returns true for the shape of Ollama's list.
fn is_ollama(value: &Value) -> bool {
    let models = value.get("models").and_then(Value::as_array);
    models.is_some_and(|it| it.iter().all(|it| it.get("name").is_some_and(Value::is_string)))
}

/// The ids in OpenAI's list or in Ollama's.
fn ids(list: &Value) -> Vec<String> {
    let member = |name: &str| list.get(name).and_then(Value::as_array);
    let entries = member("data").or_else(|| member("models")).into_iter().flatten();
    let ids = entries.filter_map(|it| it.get("id").or_else(|| it.get("name"))?.as_str());
    let ids = ids.filter(|it| !it.is_empty() && it.chars().count() <= ID_CHARS);
    ids.take(MODELS_LIMIT).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use pretty_assertions::assert_eq;

    use super::*;
    use crate::net::test_server;

    /// A server that answers by path; what it has no answer for is not found.
    async fn server(pages: &'static [(&'static str, &'static str)], extra: &'static str) -> SocketAddr {
        let url = test_server::listen(move |mut socket| async move {
            loop {
                let request = socket.request().await;
                let Some(path) = request.split_whitespace().nth(1) else {
                    return;
                };
                let found = pages.iter().find(|it| it.0 == path);
                let (status, body) = found.map_or(("404 Not Found", "nothing here"), |it| ("200 OK", it.1));
                let page = test_server::page(status, "application/json", body);
                socket.send(page.replacen("\r\n", &format!("\r\n{extra}"), 1)).await;
            }
        })
        .await;
        url.strip_prefix("http://")
            .and_then(|it| it.parse().ok())
            .expect("an address")
    }

    fn closed() -> SocketAddr {
        // Dropped at once: nobody listens there.
        TcpListener::bind("127.0.0.1:0")
            .and_then(|it| it.local_addr())
            .expect("a port")
    }

    /// Long enough for a busy machine: the tests wait for answers, not for its end.
    const LONG: Duration = Duration::from_secs(20);

    #[tokio::test]
    async fn servers_are_known_by_their_answers_wherever_they_listen() {
        // Shapes as each server gives them, shortened.
        const OLLAMA: &str = r#"{"object":"list","data":[{"id":"qwen3:8b","object":"model","created":1,"owned_by":"library"},{"id":"gemma","object":"model","owned_by":"library"}]}"#;
        const LMSTUDIO: &str =
            r#"{"data":[{"id":"qwen/qwen3-4b","object":"model","owned_by":"organization_owner"}],"object":"list"}"#;
        const LLAMACPP: &str = r#"{"models":[{"name":"a.gguf","model":"a.gguf"}],"object":"list","data":[{"id":"a.gguf","object":"model","owned_by":"llamacpp","meta":{"n_ctx_train":4096}}]}"#;
        const VLLM: &str =
            r#"{"object":"list","data":[{"id":"meta/llama","object":"model","owned_by":"vllm","max_model_len":8192}]}"#;
        const OTHER: &str = r#"{"object":"list","data":[{"id":"x","object":"model","owned_by":"me"}]}"#;
        const TAGS: &str = r#"{"models":[{"name":"old:7b","model":"old:7b","size":1}]}"#;
        let nothing: &[&str] = &[];
        for (sentence, pages, extra, expected) in [
            (
                "Ollama",
                &[("/v1/models", OLLAMA)] as &[_],
                "",
                Some(("ollama", &["qwen3:8b", "gemma"] as &[&str])),
            ),
            (
                "LM Studio",
                &[("/v1/models", LMSTUDIO)],
                "",
                Some(("lmstudio", &["qwen/qwen3-4b"])),
            ),
            (
                "llama.cpp",
                &[("/v1/models", LLAMACPP), ("/api/tags", TAGS)],
                "",
                Some(("llamacpp", &["a.gguf"])),
            ),
            ("vLLM", &[("/v1/models", VLLM)], "", Some(("vllm", &["meta/llama"]))),
            (
                "another one of that kind",
                &[("/v1/models", OTHER)],
                "",
                Some(("local", &["x"])),
            ),
            (
                "an old Ollama",
                &[("/api/tags", TAGS)],
                "",
                Some(("ollama", &["old:7b"])),
            ),
            (
                "an Ollama without models",
                &[
                    ("/v1/models", r#"{"object":"list","data":null}"#),
                    ("/api/tags", r#"{"models":[]}"#),
                ],
                "",
                Some(("ollama", nothing)),
            ),
            (
                "a llama.cpp known by its header",
                &[("/v1/models", r#"{"object":"list","data":[]}"#)],
                "Server: llama.cpp\r\n",
                Some(("llamacpp", nothing)),
            ),
            (
                "a web page",
                &[("/v1/models", "<html>"), ("/api/tags", "<html>")],
                "",
                None,
            ),
            (
                "other JSON",
                &[("/v1/models", r#"{"data":[1]}"#), ("/api/tags", r#"{"models":[1]}"#)],
                "",
                None,
            ),
            ("a server of something else", &[], "", None),
        ] {
            let address = server(pages, extra).await;
            let found = servers(&[address], LONG).await;
            let expected = expected.map(|(name, models)| DiscoveredProvider {
                name: name.to_owned(),
                title: KnownService::named(name)
                    .map_or("a server that speaks like OpenAI's", |it| it.title)
                    .to_owned(),
                kind: if name == "ollama" { "ollama" } else { "openai" },
                base_url: format!("http://{address}{}", if name == "ollama" { "" } else { "/v1" }),
                models: models.iter().map(|it| (*it).to_owned()).collect(),
                how: Evidence::Answered,
            });
            assert_eq!(found, Vec::from_iter(expected), "{sentence}");
        }
    }

    #[tokio::test]
    async fn all_are_asked_at_once() {
        // Neither answers before both have been asked.
        let both = std::sync::Arc::new(tokio::sync::Barrier::new(2));
        let start = || {
            let both = std::sync::Arc::clone(&both);
            test_server::listen(move |mut socket| {
                let both = std::sync::Arc::clone(&both);
                async move {
                    if socket.request().await.is_empty() {
                        return;
                    }
                    both.wait().await;
                    let page = r#"{"object":"list","data":[{"id":"m","owned_by":"vllm"}]}"#;
                    socket.send(test_server::page("200 OK", "application/json", page)).await;
                }
            })
        };
        let address = |it: String| {
            it.trim_start_matches("http://")
                .parse::<SocketAddr>()
                .expect("an address")
        };
        let (one, two) = (address(start().await), address(start().await));
        let found = servers(&[closed(), one, two], LONG).await;
        let names: Vec<(&str, String)> = found.iter().map(|it| (it.name.as_str(), it.base_url.clone())).collect();
        assert_eq!(
            names,
            [
                ("vllm", format!("http://{one}/v1")),
                ("vllm-2", format!("http://{two}/v1"))
            ]
        );
    }

    #[tokio::test]
    async fn a_mute_server_is_given_up() {
        let mute = test_server::listen(test_server::Socket::hang).await;
        let mute: SocketAddr = mute.trim_start_matches("http://").parse().expect("an address");
        assert_eq!(servers(&[mute, mute], Duration::from_millis(50)).await, []);
    }

    #[tokio::test]
    async fn no_other_machine_is_asked() {
        // A documentation address: a try would last until the end of patience.
        let elsewhere: SocketAddr = ([192, 0, 2, 1], 80).into();
        assert_eq!(servers(&[elsewhere], Duration::from_hours(1)).await, []);
    }

    #[tokio::test]
    async fn a_flood_of_models_is_bounded() {
        let entries: Vec<String> = (0..5000).map(|it| format!(r#"{{"id":"m{it}"}}"#)).collect();
        let page = format!(
            r#"{{"object":"list","data":[{{"id":"{}"}},{}]}}"#,
            "x".repeat(300),
            entries.join(",")
        );
        let page: &'static str = Box::leak(page.into_boxed_str());
        let pages: &'static [(&str, &str)] = Box::leak(Box::new([("/v1/models", page), ("/api/tags", "{}")]));
        let found = servers(&[server(pages, "").await], LONG).await;
        assert_eq!(
            found.iter().map(|it| it.models.len()).collect::<Vec<_>>(),
            [MODELS_LIMIT]
        );
        assert_eq!(found[0].models[0], "m0", "what is too long to be an id is left out");
    }

    fn environment(words: &str) -> Environment {
        words.split_whitespace().filter_map(|it| it.split_once('=')).collect()
    }

    #[test]
    fn keys_in_the_environment_are_named_with_what_can_be_done() {
        for (words, expected) in [
            ("", ""),
            ("OPENAI_API_KEY=", ""),
            ("OPENAI_API_KEY=k", "openai https://api.openai.com/v1 [] OPENAI_API_KEY"),
            (
                "OPENAI_API_KEY=k OPENAI_BASE_URL=http://localhost:1/v1/ OPENAI_MODEL=m",
                "openai http://localhost:1/v1 [\"m\"] OPENAI_API_KEY",
            ),
            (
                "OPENAI_BASE_URL=http://localhost:1/v1",
                "openai http://localhost:1/v1 [] at OPENAI_BASE_URL",
            ),
            (
                "ANTHROPIC_API_KEY=k",
                "anthropic https://api.anthropic.com [] ANTHROPIC_API_KEY",
            ),
            (
                "ANTHROPIC_API_KEY=k ANTHROPIC_BASE_URL=http://localhost:1",
                "anthropic http://localhost:1 [] ANTHROPIC_API_KEY",
            ),
            (
                "ANTHROPIC_BASE_URL=http://localhost:1",
                "anthropic http://localhost:1 [] at ANTHROPIC_BASE_URL",
            ),
            (
                "OLLAMA_HOST=https://ollama.example",
                "ollama https://ollama.example:443 [] at OLLAMA_HOST",
            ),
            ("OLLAMA_HOST=0.0.0.0 ", ""),
            ("OLLAMA_HOST=10.0.0.1", ""),
            (
                "GOOGLE_API_KEY=k GROQ_API_KEY=k",
                "groq https://api.groq.com/openai/v1 [] GROQ_API_KEY, gemini https://generativelanguage.googleapis.com/v1beta [] GOOGLE_API_KEY",
            ),
        ] {
            let found = keys(&environment(words));
            let rows: Vec<String> = found
                .iter()
                .map(|it| {
                    let how = match &it.how {
                        Evidence::Key { variable } => variable.clone(),
                        Evidence::Address { variable } => format!("at {variable}"),
                        Evidence::Answered => "answered".to_owned(),
                    };
                    format!("{} {} {:?} {how}", it.name, it.base_url, it.models)
                })
                .collect();
            assert_eq!(rows.join(", "), expected, "{words}");
        }
    }

    #[test]
    fn every_service_with_a_key_is_found_by_it() {
        for known in SERVICES {
            for variable in known.variables {
                let found = keys(&environment(&format!("{variable}=k")));
                assert_eq!(
                    found.iter().map(|it| it.name.as_str()).collect::<Vec<_>>(),
                    [known.name],
                    "{variable}"
                );
                assert_eq!(
                    found[0].provider().key,
                    KeySource::Variables(vec![(*variable).to_owned()])
                );
            }
        }
    }

    #[test]
    fn ollama_is_looked_for_where_its_variable_says_if_that_is_here() {
        for (words, expected) in [
            ("", None),
            ("OLLAMA_HOST=127.0.0.1:11434", None),
            ("OLLAMA_HOST=0.0.0.0:9", Some("127.0.0.1:9")),
            ("OLLAMA_HOST=http://localhost:9/", Some("127.0.0.1:9")),
            ("OLLAMA_HOST=:9", Some("127.0.0.1:9")),
            ("OLLAMA_HOST=[::1]:9", Some("[::1]:9")),
            ("OLLAMA_HOST=10.0.0.1:9", None),
            ("OLLAMA_HOST=https://ollama.example", None),
            ("OLLAMA_HOST=:99999", None),
        ] {
            let found = addresses(&environment(words));
            assert!(found.iter().all(|it| it.ip().is_loopback()));
            assert_eq!(
                found.get(PORTS.len()).map(ToString::to_string).as_deref(),
                expected,
                "{words}"
            );
        }
    }
}
