//! The list of providers: which ones work, where their keys come from, and what to do next.

use std::fmt::Write as _;

use futures::future;

use super::{
    SUBSCRIPTIONS,
    check::{self, Finding},
    key_page, title,
};
use crate::{
    config::{
        Environment, KeyError, KeySource, KnownService, Location, Provider, SERVICES, Settings, Upstream, shown_path,
    },
    text::figure,
};

/// Services that are always listed, in this order; others only with a key.
const USUAL: [&str; 9] = [
    "openai",
    "anthropic",
    "gemini",
    "openrouter",
    "mistral",
    "ollama",
    "lmstudio",
    "llamacpp",
    "vllm",
];

/// A line of the list.
struct Row {
    sign: &'static str,
    title: String,
    state: String,
    next: Option<String>,
}

/// Asks all listed providers at once, and formats the list. Takes at most the time of one check.
pub async fn report(settings: &Settings, environment: &Environment) -> String {
    let rows = names(settings, environment).into_iter().filter_map(|name| {
        let provider = settings.provider_named(&name, environment)?;
        Some(row(name, provider, settings, environment))
    });
    let rows = future::join_all(rows).await;
    let mut text = String::new();
    for it in &rows {
        let _ = writeln!(text, "{} {:<11} {}", it.sign, it.title, it.state);
        if let Some(next) = &it.next {
            let _ = writeln!(text, "              → {next}");
        }
    }
    let _ = match settings.upstream() {
        Upstream::Provider(name, provider) => {
            let model = settings
                .model()
                .or(provider.model.as_deref())
                .unwrap_or("its first model");
            writeln!(text, "\nsheaf starts with {}, {model}.", title(name))
        }
        Upstream::Gateway(_) => writeln!(text, "\nsheaf starts with the gateway of the settings."),
        Upstream::Nobody => writeln!(text, "\nNo model is configured yet: sheaf login PROVIDER stores a key."),
    };
    let _ = writeln!(text, "{SUBSCRIPTIONS}");
    text
}

/// Names of the listed providers: the usual ones, then those with settings or a key.
fn names(settings: &Settings, environment: &Environment) -> Vec<String> {
    let has_key = |it: &&KnownService| it.variables.iter().any(|it| environment.get(it).is_some());
    let with_key = SERVICES.iter().filter(has_key).map(|it| it.name);
    let own = settings.providers.keys().map(String::as_str);
    let mut names: Vec<String> = Vec::new();
    for name in USUAL.into_iter().chain(with_key).chain(own) {
        if !names.iter().any(|it| it == name) {
            names.push(name.to_owned());
        }
    }
    names
}

async fn row(name: String, provider: Provider, settings: &Settings, environment: &Environment) -> Row {
    let title = title(&name).to_owned();
    let made = |sign, state: String, next: Option<String>| Row {
        sign,
        title: title.clone(),
        state,
        next,
    };
    let login = || Some(format!("sheaf login {name}"));
    let source = source(&name, &provider.key, settings);
    let secret = match provider.key.resolve(environment).await {
        Ok(secret) => secret,
        Err(KeyError::Unset(_)) if matches!(provider.key, KeySource::Variables(_)) => {
            let page = key_page(&name).map(|it| format!("; keys: {it}")).unwrap_or_default();
            return made("·", "no key".to_owned(), login().map(|it| format!("{it}{page}")));
        }
        Err(error) => {
            let text = error.to_string();
            let (seen, step) = text.split_once('\n').unwrap_or((&text, ""));
            let cause = std::error::Error::source(&error).map(ToString::to_string);
            let (cause, more) = match &cause {
                Some(it) => it.split_once('\n').unwrap_or((it, "")),
                None => ("", ""),
            };
            let state = [seen, cause, &source].into_iter().filter(|it| !it.is_empty());
            let next = [step, more].into_iter().find(|it| !it.is_empty()).map(str::to_owned);
            return made("✗", state.collect::<Vec<_>>().join(" · "), next.or_else(login));
        }
    };
    let has_key = secret.is_some();
    let provider = Provider {
        // A command runs once.
        key: secret.map_or(KeySource::None, KeySource::Given),
        ..provider
    };
    let url = provider.connection.url().unwrap_or_default().to_owned();
    let from = if has_key { source } else { url };
    match check::check(&name, &provider, environment).await {
        Finding::Works(models) => {
            let count = figure::count(models.len(), "model", "models");
            made("✓", format!("works, {count} · {from}"), None)
        }
        Finding::Refused(_) => made("✗", format!("the key was refused · {from}"), login()),
        Finding::NoList(_) => made("·", format!("not checked: it has no list of models · {from}"), None),
        Finding::Failed(_) if !has_key => {
            let next = KnownService::named(&name).map(|it| format!("start {}, then: sheaf login {name}", it.title));
            made("·", format!("no server at {from}"), next)
        }
        Finding::Failed(failure) => {
            let step = check::steps(&failure, None);
            let next = step.lines().next().map(|it| it.trim().to_owned());
            made("✗", format!("{} · {from}", check::seen(&failure)), next)
        }
    }
}

/// Origin of a key, for people.
fn source(name: &str, key: &KeySource, settings: &Settings) -> String {
    match key {
        KeySource::None => String::new(),
        KeySource::Given(_) => match &settings.origin(&format!("providers.{name}.api_key")).place {
            Some(Location::Variable(variable)) => format!("variable {variable}"),
            Some(Location::File { path, .. }) => format!("settings {}", shown_path(path)),
            Some(Location::Flag(flag)) => format!("option {flag}"),
            None => "settings".to_owned(),
        },
        KeySource::Variables(names) => format!("variable {}", names.join(" or ")),
        KeySource::Command(_) => "command".to_owned(),
        KeySource::File(path) => format!("file {}", shown_path(path)),
        KeySource::Keyring(entry) => format!("keyring `{entry}`"),
    }
}
