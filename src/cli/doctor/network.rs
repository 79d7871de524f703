//! Checks the network: reachable servers, keys, proxies, certificates.

use std::time::{Duration, Instant};

use super::{Check, CheckVerdict, Topic};
use crate::{
    config::{Environment, Gateway, KeySource, KnownService, Provider, Secret, Settings, Upstream, suggestion},
    models::{self, Failure, FailureKind, discover},
    net::client::{Client, Peer, Request, Url},
    text::figure,
};

/// Time limit for a server's answer.
pub(super) const PATIENCE: Duration = Duration::from_secs(15);

/// Time limit for a name lookup.
const NAME_PATIENCE: Duration = Duration::from_secs(5);

/// Maximum size of a list of models, in bytes.
const BODY_LIMIT_BYTES: usize = 4 << 20;

/// Runs all network checks. Also returns the keys that were used, which must be hidden.
pub(super) async fn examine(settings: &Settings, environment: &Environment) -> (Vec<Check>, Vec<Secret>) {
    let chosen = settings.upstream();
    let mut secrets = Vec::new();
    let mut checks = vec![proxy(environment)];
    let providers = settings.providers.iter().map(|(name, it)| {
        let is_chosen = matches!(chosen, Upstream::Provider(chosen, _) if chosen == name);
        ask_provider(name, it, settings, is_chosen, environment)
    });
    let gateway = async {
        if settings.gateway.connection.has_url() {
            ask_gateway(&settings.gateway, matches!(chosen, Upstream::Gateway(_)), environment).await
        } else {
            (Vec::new(), None)
        }
    };
    let found = async {
        match chosen {
            Upstream::Nobody => discover::discover(environment).await,
            Upstream::Gateway(_) | Upstream::Provider(..) => Vec::new(),
        }
    };
    let (trust, mut hosts, gateway, providers, found) = tokio::join!(
        trust(settings),
        names(settings),
        gateway,
        futures::future::join_all(providers),
        found
    );
    checks.push(trust);
    checks.append(&mut hosts);
    for (mut found, secret) in std::iter::once(gateway).chain(providers) {
        checks.append(&mut found);
        secrets.extend(secret);
    }
    if chosen == Upstream::Nobody {
        checks.push(nobody(settings, &found));
    }
    (checks, secrets)
}

/// Returns the check for settings that choose no server.
fn nobody(settings: &Settings, found: &[discover::DiscoveredProvider]) -> Check {
    let (topic, name) = (Topic::Models, "choice");
    if settings.providers.len() > 1 {
        let names: Vec<&str> = settings.providers.keys().map(String::as_str).collect();
        let remedy = format!(
            "provider = \"{}\" in config.toml, or --provider",
            names.first().unwrap_or(&"…")
        );
        return Check::doubtful(
            topic,
            name,
            &format!("none of {} is selected", names.join(", ")),
            &remedy,
        );
    }
    let offers: Vec<String> = found
        .iter()
        .map(|it| match &it.how {
            discover::Evidence::Key { variable } => {
                format!("{}, by {variable}: sheaf --provider {}", it.title, it.name)
            }
            discover::Evidence::Answered if it.kind != "openai" => {
                format!("{} at {}: sheaf --provider {}", it.title, it.base_url, it.name)
            }
            discover::Evidence::Answered => {
                format!("{} at {}: OPENAI_BASE_URL={} sheaf", it.title, it.base_url, it.base_url)
            }
            discover::Evidence::Address { .. } => format!("{}: sheaf --provider {}", it.title, it.name),
        })
        .collect();
    let seen = if offers.is_empty() {
        "no model is configured, and none was found on this machine"
    } else {
        "no model is configured, but this was found"
    };
    let remedy = if offers.is_empty() {
        "run `sheaf login`, start Ollama, or try `sheaf tour`".to_owned()
    } else {
        offers.join("\n")
    };
    Check::doubtful(topic, name, seen, &remedy)
}

/// Checks the proxy variables.
fn proxy(environment: &Environment) -> Check {
    let names = [
        "HTTPS_PROXY",
        "https_proxy",
        "HTTP_PROXY",
        "http_proxy",
        "ALL_PROXY",
        "all_proxy",
    ];
    let set = names.iter().filter_map(|name| Some((name, environment.get(name)?)));
    let seen: Vec<String> = set
        .clone()
        .map(|(name, url)| format!("{name}={}", origin_of(url)))
        .collect();
    let (topic, name) = (Topic::Network, "proxy");
    if seen.is_empty() {
        return Check::good(topic, name, "none");
    }
    let broken: Vec<&str> = set.filter(|it| origin_of(it.1) == UNREADABLE).map(|it| *it.0).collect();
    let except = environment.get("NO_PROXY").or_else(|| environment.get("no_proxy"));
    let except = except.map(|it| format!(", except for {it}")).unwrap_or_default();
    let seen = format!("{}{except}", seen.join(", "));
    if broken.is_empty() {
        return Check::good(topic, name, &seen);
    }
    let remedy = format!(
        "write {} as http://HOST:PORT or socks5h://HOST:PORT",
        broken.join(" and ")
    );
    Check::bad(topic, name, &seen, &remedy)
}

const UNREADABLE: &str = "(not an address)";

/// Returns scheme, host and port of an address, without a password.
fn origin_of(url: &str) -> String {
    // Curl and others accept a bare host and port.
    let parsed = if url.contains("://") {
        Url::parse(url)
    } else {
        Url::parse(&format!("http://{url}"))
    };
    match parsed.as_ref().ok().and_then(|it| Some((it, it.host_str()?))) {
        Some((url, host)) => {
            let port = url.port().map(|it| format!(":{it}")).unwrap_or_default();
            format!("{}://{host}{port}", url.scheme())
        }
        None => UNREADABLE.to_owned(),
    }
}

/// Returns every configured connection, with its name.
fn connections(settings: &Settings) -> Vec<(String, Peer)> {
    let gateway = Some(("gateway".to_owned(), &settings.gateway.connection));
    let providers = settings
        .providers
        .iter()
        .map(|(name, it)| (name.clone(), &it.connection));
    gateway
        .into_iter()
        .chain(providers)
        .filter_map(|(name, it)| Some((name, it.peer().ok()?)))
        .collect()
}

/// Checks that the certificates of the system and of the settings can be loaded.
async fn trust(settings: &Settings) -> Check {
    let (topic, name) = (Topic::Network, "certificates");
    let plain = Url::parse("https://localhost")
        .map(Peer::new)
        .ok()
        .map(|it| ("system".to_owned(), it));
    let files = connections(settings);
    let files = files
        .into_iter()
        .filter(|it| it.1.ca_file.is_some() || it.1.client_certificate.is_some());
    for (whose, peer) in plain.into_iter().chain(files) {
        let loaded = match Client::new(peer) {
            Ok(client) => client.warm().await,
            Err(error) => Err(error),
        };
        if let Err(error) = loaded {
            let (seen, remedy) = explain_error(&error);
            return Check::bad(topic, name, &format!("{whose}: {seen}"), &remedy);
        }
    }
    Check::good(topic, name, "system certificates loaded")
}

/// Checks that the servers' names can be resolved.
async fn names(settings: &Settings) -> Vec<Check> {
    let mut hosts: Vec<(String, u16)> = connections(settings)
        .into_iter()
        .filter_map(|(_, peer)| {
            let name = match peer.base.host()? {
                url::Host::Domain(name) => name.to_owned(),
                url::Host::Ipv4(_) | url::Host::Ipv6(_) => return None,
            };
            Some((name, peer.base.port_or_known_default()?))
        })
        .collect();
    hosts.sort();
    hosts.dedup_by(|one, two| one.0 == two.0);
    let asked = hosts.into_iter().map(|(host, port)| async move {
        let topic = Topic::Network;
        let remedy = "check the spelling and the connection; behind a proxy this may not work";
        match tokio::time::timeout(NAME_PATIENCE, tokio::net::lookup_host((host.as_str(), port))).await {
            Ok(Ok(found)) => {
                let found = found.count();
                Check::good(
                    topic,
                    "name",
                    &format!("{host}, {}", figure::count(found, "address", "addresses")),
                )
            }
            Ok(Err(error)) => Check::doubtful(topic, "name", &format!("{host} not found: {error}"), remedy),
            Err(_) => Check::doubtful(topic, "name", &format!("{host}: the lookup timed out"), remedy),
        }
    });
    futures::future::join_all(asked).await
}

/// Splits an error into its message with the root cause, on one line, and its hint.
fn explain_error(error: &dyn std::error::Error) -> (String, String) {
    let text = error.to_string();
    let (message, remedy) = text.split_once('\n').unwrap_or((&text, ""));
    // The causes in between only say that a request was made.
    let root = std::iter::successors(error.source(), |it| it.source()).last();
    let root = root
        .map(ToString::to_string)
        .filter(|it| !message.contains(it.as_str()));
    let seen = root.map_or_else(|| message.to_owned(), |it| format!("{message}: {it}"));
    (seen, remedy.to_owned())
}

/// Returns bad for the chosen server and doubtful for others.
fn failed(is_chosen: bool) -> CheckVerdict {
    if is_chosen {
        CheckVerdict::Bad
    } else {
        CheckVerdict::Doubtful
    }
}

fn shown_source(source: &KeySource) -> String {
    match source {
        KeySource::None => "none".to_owned(),
        KeySource::Given(_) => "given".to_owned(),
        KeySource::Variables(names) => format!("from {}", names.join(" or ")),
        KeySource::Command(_) => "from its command".to_owned(),
        KeySource::File(path) => format!("from {}", path.display()),
        KeySource::Keyring(name) => format!("from the keyring, `{name}`"),
    }
}

/// Checks that a needed key is available.
async fn key(
    name: &str,
    source: &KeySource,
    is_chosen: bool,
    environment: &Environment,
) -> (Option<Check>, Option<Secret>) {
    let topic = Topic::Models;
    let provider = name;
    let name = format!("{name}: key");
    match source.resolve(environment).await {
        Ok(None) => (None, None),
        Ok(Some(secret)) => (Some(Check::good(topic, &name, &shown_source(source))), Some(secret)),
        Err(error) => {
            let (seen, remedy) = explain_error(&error);
            let remedy = match (remedy.is_empty(), source) {
                (false, _) => remedy,
                (true, KeySource::Variables(names)) => {
                    let login = KnownService::named(provider).map(|it| format!("sheaf login {}, or ", it.name));
                    let variable = names.first().map_or("", String::as_str);
                    format!("{}export {variable}=…", login.unwrap_or_default())
                }
                (true, _) => "see `api_key`, `key_command` and `key_file` in `sheaf config reference`".to_owned(),
            };
            (
                Some(Check::new(topic, &name, failed(is_chosen), &seen).remedy(&remedy)),
                None,
            )
        }
    }
}

async fn ask_provider(
    name: &str,
    provider: &Provider,
    settings: &Settings,
    is_chosen: bool,
    environment: &Environment,
) -> (Vec<Check>, Option<Secret>) {
    let (check, secret) = key(name, &provider.key, is_chosen, environment).await;
    let mut checks = Vec::from_iter(check);
    if secret.is_none() && provider.key.is_some() {
        return (checks, None);
    }
    // Reuses the key, so that its command does not run twice.
    let provider = Provider {
        key: secret.clone().map_or(KeySource::None, KeySource::Given),
        ..provider.clone()
    };
    let wanted = if is_chosen {
        settings.model()
    } else {
        provider.model.as_deref()
    };
    let start = Instant::now();
    let listed = async { models::open(&provider, environment)?.models().await };
    let listed = tokio::time::timeout(PATIENCE, listed).await;
    let latency = start.elapsed();
    checks.push(match listed {
        Ok(listed) => {
            let listed = listed.map(|models| models.into_iter().map(|it| it.id).collect::<Vec<_>>());
            judge_models(name, listed.as_deref(), wanted, latency, is_chosen)
        }
        Err(_) => Check::new(Topic::Models, name, failed(is_chosen), "no answer within 15 s")
            .remedy("is the server running, and is its address right?"),
    });
    (checks, secret)
}

/// Judges the answer to a request for the list of models.
fn judge_models(
    name: &str,
    listed: Result<&[String], &Failure>,
    wanted: Option<&str>,
    latency: Duration,
    is_chosen: bool,
) -> Check {
    let topic = Topic::Models;
    let latency = figure::duration(latency.as_millis() as u64);
    match listed {
        Ok(models) => {
            let count = figure::count(models.len(), "model", "models");
            let seen = format!("answers in {latency}, {count}");
            match wanted {
                None if is_chosen => {
                    let first = models.first().map_or("…", String::as_str);
                    let remedy = format!("model = \"{first}\" in config.toml, or --model");
                    Check::doubtful(topic, name, &format!("{seen}, none chosen"), &remedy)
                }
                Some(wanted) if !models.is_empty() && !models.iter().any(|it| it == wanted) => {
                    let seen = format!("{seen}, none named `{wanted}`");
                    let remedy = suggestion(wanted, models.iter().map(String::as_str));
                    let remedy =
                        remedy.unwrap_or_else(|| "choose a listed model, unless the server accepts others".to_owned());
                    Check::doubtful(topic, name, &seen, &remedy)
                }
                Some(wanted) => Check::good(topic, name, &format!("{seen}, uses {wanted}")),
                None => Check::good(topic, name, &seen),
            }
        }
        Err(failure) => {
            let (verdict, remedy) = match failure.kind {
                FailureKind::Key => (failed(is_chosen), "check the key, and that it belongs to this address"),
                FailureKind::Credit => (failed(is_chosen), "look at the provider's billing page"),
                FailureKind::NotFound if wanted.is_some() => (
                    CheckVerdict::Doubtful,
                    "it lists no models; that is fine if the model's name is right",
                ),
                FailureKind::NotFound => (failed(is_chosen), "check the address: most end in /v1"),
                FailureKind::Busy | FailureKind::Overloaded => (CheckVerdict::Doubtful, "retry in a moment"),
                FailureKind::Unreachable | FailureKind::Interrupted => {
                    (failed(is_chosen), "is the server running, and is its address right?")
                }
                FailureKind::TooLong | FailureKind::Request | FailureKind::Garbled | FailureKind::Oversized => (
                    failed(is_chosen),
                    "check that the address is an OpenAI-compatible server",
                ),
            };
            let mut seen = failure.message.to_string();
            // The root cause says what happened.
            let root = failure.cause.as_deref().and_then(|it| it.rsplit(": ").next());
            for more in [root, failure.said.as_deref()].into_iter().flatten() {
                seen.push_str(": ");
                seen.extend(more.lines().next().unwrap_or_default().chars().take(200));
            }
            let remedy = failure.hint.as_deref().unwrap_or(remedy);
            Check::new(topic, name, verdict, &seen).remedy(remedy)
        }
    }
}

async fn ask_gateway(gateway: &Gateway, is_chosen: bool, environment: &Environment) -> (Vec<Check>, Option<Secret>) {
    let (topic, name) = (Topic::Models, "gateway");
    let (check, secret) = key(name, &gateway.token, is_chosen, environment).await;
    let mut checks = Vec::from_iter(check);
    if secret.is_none() && gateway.token.is_some() {
        return (checks, None);
    }
    let refused = |seen: &str, remedy: &str| Check::new(topic, name, failed(is_chosen), seen).remedy(remedy);
    let client = match gateway.connection.peer() {
        Ok(peer) => Client::new(peer),
        Err(error) => {
            let (seen, remedy) = explain_error(&error);
            checks.push(refused(&seen, &remedy));
            return (checks, secret);
        }
    };
    let asked = async {
        let client = client?;
        let start = Instant::now();
        // A GET of a turn's path starts none, and still checks the token.
        let status = status(&client, "api/v1/chat/completions", secret.as_ref()).await?.0;
        let latency = start.elapsed();
        let is_openai = match status {
            404 => status_of_models(&client, secret.as_ref()).await,
            _ => false,
        };
        Ok::<_, crate::net::client::Error>((status, latency, is_openai))
    };
    checks.push(match tokio::time::timeout(PATIENCE, asked).await {
        Ok(Ok((status, latency, is_openai))) => judge_gateway(status, latency, is_openai, secret.is_some(), is_chosen),
        Ok(Err(error)) => {
            let (seen, remedy) = explain_error(&error);
            let remedy = if remedy.is_empty() {
                "is it running, and is its address right?"
            } else {
                &remedy
            };
            refused(&seen, remedy)
        }
        Err(_) => refused("no answer within 15 s", "is it running, and is its address right?"),
    });
    (checks, secret)
}

async fn status(
    client: &Client,
    path: &str,
    secret: Option<&Secret>,
) -> Result<(u16, crate::net::client::Body), crate::net::client::Error> {
    let request = Request::get(path).accept("application/json");
    let request = match secret {
        Some(secret) => request.bearer(secret.expose()),
        None => request,
    };
    let response = client.open(request).await?;
    Ok((response.status.as_u16(), response.body))
}

/// Returns true if the server lists models as OpenAI's does.
async fn status_of_models(client: &Client, secret: Option<&Secret>) -> bool {
    for path in ["models", "v1/models"] {
        if let Ok((200, body)) = status(client, path, secret).await
            && let Ok(body) = body.read(BODY_LIMIT_BYTES).await
            && let Ok(list) = serde_json::from_slice::<serde_json::Value>(&body)
            && list.get("data").is_some_and(serde_json::Value::is_array)
        {
            return true;
        }
    }
    false
}

fn judge_gateway(status: u16, latency: Duration, is_openai: bool, has_token: bool, is_chosen: bool) -> Check {
    let (topic, name) = (Topic::Models, "gateway");
    let latency = figure::duration(latency.as_millis() as u64);
    let verdict = failed(is_chosen);
    match status {
        401 | 403 if has_token => Check::new(topic, name, verdict, &format!("does not accept the token ({status})"))
            .remedy("check the token: SHEAF_TOKEN or gateway.token"),
        401 | 403 => Check::new(topic, name, verdict, &format!("requires a token ({status})"))
            .remedy("set SHEAF_TOKEN or gateway.token"),
        404 if is_openai => Check::new(
            topic,
            name,
            verdict,
            "this is an OpenAI server, not a documents gateway",
        )
        .remedy("configure it as a provider: OPENAI_BASE_URL, or base_url under [providers.<name>]"),
        404 => Check::new(
            topic,
            name,
            verdict,
            "answers, but has no /api/v1/chat/completions (404)",
        )
        .remedy("check the address, without /api/v1"),
        500.. => Check::doubtful(
            topic,
            name,
            &format!("fails ({status})"),
            "check its log, or retry in a moment",
        ),
        ..500 => Check::good(topic, name, &format!("answers in {latency}")),
    }
}

#[cfg(test)]
mod tests {
    use pretty_assertions::assert_eq;

    use super::*;
    use crate::{
        config::{CommandLineSettings, SettingsFile, merge},
        net::test_server,
    };

    fn environment(words: &str) -> Environment {
        words.split_whitespace().filter_map(|it| it.split_once('=')).collect()
    }

    fn row(it: &Check) -> String {
        format!("{:?} {}: {} → {}", it.verdict, it.name, it.seen, it.remedy)
    }

    #[test]
    fn proxies_are_told_without_their_passwords() {
        for (words, expected) in [
            ("", "Good proxy: none → "),
            (
                "HTTPS_PROXY=http://me:hidden@proxy.example:3128 NO_PROXY=localhost",
                "Good proxy: HTTPS_PROXY=http://proxy.example:3128, except for localhost → ",
            ),
            ("ALL_PROXY=proxy:1", "Good proxy: ALL_PROXY=http://proxy:1 → "),
            (
                "http_proxy=http://",
                "Bad proxy: http_proxy=(not an address) → write http_proxy as http://HOST:PORT or socks5h://HOST:PORT",
            ),
        ] {
            assert_eq!(row(&proxy(&environment(words))), expected, "{words}");
        }
    }

    #[test]
    fn a_gateway_is_judged_by_its_status() {
        let ms = Duration::from_millis(12);
        for (status, is_openai, has_token, is_chosen, expected) in [
            (405, false, true, true, "Good gateway: answers in 12 ms → "),
            (400, false, true, true, "Good gateway: answers in 12 ms → "),
            (
                401,
                false,
                true,
                true,
                "Bad gateway: does not accept the token (401) → check the token: SHEAF_TOKEN or gateway.token",
            ),
            (
                403,
                false,
                false,
                false,
                "Doubtful gateway: requires a token (403) → set SHEAF_TOKEN or gateway.token",
            ),
            (
                404,
                true,
                false,
                true,
                "Bad gateway: this is an OpenAI server, not a documents gateway → configure it as a provider: OPENAI_BASE_URL, or base_url under [providers.<name>]",
            ),
            (
                404,
                false,
                false,
                true,
                "Bad gateway: answers, but has no /api/v1/chat/completions (404) → check the address, without /api/v1",
            ),
            (
                503,
                false,
                false,
                true,
                "Doubtful gateway: fails (503) → check its log, or retry in a moment",
            ),
        ] {
            assert_eq!(
                row(&judge_gateway(status, ms, is_openai, has_token, is_chosen)),
                expected,
                "{status}"
            );
        }
    }

    #[test]
    fn the_models_say_whether_the_chosen_one_is_there() {
        let models = ["qwen3:8b".to_owned(), "gemma".to_owned()];
        let ms = Duration::from_millis(12);
        for (wanted, is_chosen, expected) in [
            (Some("gemma"), true, "Good x: answers in 12 ms, 2 models, uses gemma → "),
            (
                Some("qwen3:8"),
                true,
                "Doubtful x: answers in 12 ms, 2 models, none named `qwen3:8` → did you mean `qwen3:8b`?",
            ),
            (
                None,
                true,
                "Doubtful x: answers in 12 ms, 2 models, none chosen → model = \"qwen3:8b\" in config.toml, or --model",
            ),
            (None, false, "Good x: answers in 12 ms, 2 models → "),
        ] {
            assert_eq!(
                row(&judge_models("x", Ok(&models), wanted, ms, is_chosen)),
                expected,
                "{wanted:?}"
            );
        }
    }

    #[test]
    fn a_failure_is_bad_for_the_chosen_one_only() {
        let failure = |kind| Failure::new(kind, "it failed");
        for (kind, wanted, is_chosen, expected) in [
            (FailureKind::Key, None, true, CheckVerdict::Bad),
            (FailureKind::Key, None, false, CheckVerdict::Doubtful),
            (FailureKind::Unreachable, None, true, CheckVerdict::Bad),
            (FailureKind::NotFound, Some("m"), true, CheckVerdict::Doubtful),
            (FailureKind::NotFound, None, true, CheckVerdict::Bad),
            (FailureKind::Busy, None, true, CheckVerdict::Doubtful),
        ] {
            let check = judge_models("x", Err(&failure(kind)), wanted, Duration::ZERO, is_chosen);
            assert_eq!(check.verdict, expected, "{kind:?}");
            assert!(!check.remedy.is_empty(), "{kind:?}");
        }
    }

    /// The checks on models for these settings, and the keys that were met.
    async fn asked(text: &str, words: &str) -> (Vec<String>, Vec<Secret>) {
        let file = SettingsFile {
            path: "config.toml".into(),
            text: text.to_owned(),
            is_readable_by_others: false,
        };
        let environment = environment(words);
        let (settings, problems) = merge(Some(&file), None, &environment, &CommandLineSettings::default());
        assert_eq!(problems, []);
        let (checks, secrets) = examine(&settings, &environment).await;
        let rows = checks.iter().filter(|it| it.topic == Topic::Models).map(row).collect();
        (rows, secrets)
    }

    /// Latencies differ from run to run.
    fn without_times(rows: Vec<String>) -> Vec<String> {
        let cut = |row: String| match row.split_once("answers in ") {
            Some((before, after)) => {
                let rest = after.find(',').or_else(|| after.find(" →"));
                format!(
                    "{before}answers{}",
                    rest.and_then(|it| after.get(it..)).unwrap_or_default()
                )
            }
            None => row,
        };
        rows.into_iter().map(cut).collect()
    }

    #[tokio::test]
    async fn a_provider_that_lets_us_in_is_good() {
        let page = r#"{"object":"list","data":[{"id":"m","object":"model"}]}"#;
        let url = test_server::answer(test_server::page("200 OK", "application/json", page)).await;
        let text = format!("provider = 'x'\n[providers.x]\nbase_url = '{url}/v1'\nmodel = 'm'\napi_key_env = 'KEY'");
        let (rows, secrets) = asked(&text, "KEY=sk-hidden").await;
        assert_eq!(
            without_times(rows),
            ["Good x: key: from KEY → ", "Good x: answers, 1 model, uses m → "]
        );
        assert_eq!(secrets, [Secret::new("sk-hidden")]);
    }

    #[tokio::test]
    async fn a_provider_that_refuses_the_key_is_bad_and_the_key_is_known_for_hiding() {
        let page = r#"{"error":{"message":"Incorrect API key provided: sk-hidden","code":"invalid_api_key"}}"#;
        let url = test_server::answer(test_server::page("401 Unauthorized", "application/json", page)).await;
        let text = format!("[providers.x]\nbase_url = '{url}/v1'\napi_key = 'sk-hidden'");
        let (rows, secrets) = asked(&text, "").await;
        assert_eq!(rows.len(), 2);
        assert!(
            rows[1].starts_with("Bad x: the server does not accept the key"),
            "{rows:?}"
        );
        let check = Check::bad(Topic::Models, "x", &rows[1], "");
        let report = super::super::Report::new(vec![check], &secrets);
        assert!(!report.text().contains("hidden"), "{}", report.text().as_str());
    }

    #[tokio::test]
    async fn nobody_at_the_address_and_no_key_are_told_apart() {
        let url = test_server::nobody().await;
        let (rows, _) = asked(&format!("[providers.x]\nbase_url = '{url}/v1'"), "").await;
        assert!(
            rows[0].starts_with("Bad x: ") && rows[0].contains(url.trim_start_matches("http://")),
            "{rows:?}"
        );
        let (rows, _) = asked("provider = 'groq'", "").await;
        assert_eq!(
            rows,
            ["Bad groq: key: the environment has no GROQ_API_KEY → sheaf login groq, or export GROQ_API_KEY=…"]
        );
    }

    #[tokio::test]
    async fn a_gateway_is_asked_for_its_path_with_the_token() {
        let (requests, mut diary) = test_server::diary();
        let url = test_server::listen(move |mut socket| {
            let requests = requests.clone();
            async move {
                let request = socket.request().await;
                let line = request.lines().next().unwrap_or_default().to_owned();
                let has_token = request.to_lowercase().contains("authorization: bearer hidden");
                requests.send((line, has_token)).ok();
                let status = if has_token {
                    "405 Method Not Allowed"
                } else {
                    "401 Unauthorized"
                };
                socket.send(test_server::page(status, "application/json", "{}")).await;
            }
        })
        .await;
        let text = format!("gateway.url = '{url}'");
        let (rows, _) = asked(&text, "SHEAF_TOKEN=hidden").await;
        assert_eq!(
            without_times(rows),
            ["Good gateway: key: given → ", "Good gateway: answers → "]
        );
        assert_eq!(
            diary.next().await,
            ("GET /api/v1/chat/completions HTTP/1.1".to_owned(), true)
        );
        let (rows, _) = asked(&text, "").await;
        assert_eq!(
            rows,
            ["Bad gateway: requires a token (401) → set SHEAF_TOKEN or gateway.token"]
        );
    }

    #[tokio::test]
    async fn an_openai_server_in_the_place_of_a_gateway_is_recognised() {
        let url = test_server::listen(|mut socket| async move {
            let request = socket.request().await;
            let page = if request.contains("GET /v1/models ") {
                test_server::page("200 OK", "application/json", r#"{"data":[]}"#)
            } else {
                test_server::page("404 Not Found", "text/plain", "no")
            };
            socket.send(page).await;
        })
        .await;
        let (rows, _) = asked(&format!("gateway.url = '{url}'"), "").await;
        assert!(rows[0].starts_with("Bad gateway: this is an OpenAI server"), "{rows:?}");
    }

    #[test]
    fn without_a_choice_what_was_found_is_offered() {
        let found = discover::keys(&environment("GROQ_API_KEY=k ANTHROPIC_API_KEY=k"));
        let check = nobody(&Settings::default(), &found);
        assert_eq!(
            row(&check),
            "Doubtful choice: no model is configured, but this was found → Groq, by GROQ_API_KEY: sheaf --provider \
             groq\nAnthropic, by ANTHROPIC_API_KEY: sheaf --provider anthropic"
        );
        let check = nobody(&Settings::default(), &[]);
        assert!(check.remedy.contains("sheaf tour"));
    }
}
