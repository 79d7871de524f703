//! The server that answers, the origin of its key, the limits that it reports, and what was spent.

use crate::{
    config::Upstream,
    locale::figure,
    protocol::{Query, Reply, ServerStatus},
    t,
    text::figure::ago,
    tui::{
        app::{Action, App, Effect, effects::ask},
        overlays::Page,
    },
};

pub const STATUS: Action = Action::new("status", "status", |app, _| {
    let draft = app.composer.field.version();
    vec![ask!(Query::Status, Reply::Status, or_default, move |app, status| {
        let mut facts = server(app, &status);
        facts.extend([
            (t!("status-mode"), app.composer.mode.as_str().to_owned()),
            (t!("status-folder"), app.conversation.workspace.label.clone()),
            (t!("status-version"), env!("CARGO_PKG_VERSION").to_owned()),
        ]);
        facts.extend(spent(app));
        page(app, draft, t!("status-title"), &facts, &status)
    })]
});

pub const USAGE: Action = Action::new("usage", "usage", |app, _| {
    let draft = app.composer.field.version();
    vec![ask!(Query::Status, Reply::Status, or_default, move |app, status| {
        let mut facts = spent(app);
        facts.extend(server(app, &status));
        page(app, draft, t!("usage-title"), &facts, &status)
    })]
});

fn page(
    app: &mut App,
    draft: u64,
    title: &'static str,
    facts: &[(&'static str, String)],
    status: &ServerStatus,
) -> Vec<Effect> {
    let note = if status.limits_at_ms == 0 {
        t!("status-not-asked").to_owned()
    } else if status.limits.is_empty() {
        t!("status-no-limits").to_owned()
    } else {
        let ago = ago(app.now_ms.saturating_sub(status.limits_at_ms));
        t!("status-reported", ago = ago.as_str())
    };
    app.open_late(draft, Page::status(title, facts, &status.limits, &note))
}

/// Word of the link for a key that is a value of the settings.
const GIVEN: &str = "settings";

/// The file or variable that set the key of the provider in use.
fn origin(app: &App) -> String {
    let settings = &app.preferences.settings;
    match settings.upstream() {
        Upstream::Provider(name, _) => settings.origin(&format!("providers.{name}.api_key")).to_string(),
        Upstream::Gateway(_) | Upstream::Nobody => GIVEN.to_owned(),
    }
}

/// The server, its model and its key.
fn server(app: &App, status: &ServerStatus) -> Vec<(&'static str, String)> {
    let about = &app.conversation.about;
    let peer = if status.peer.is_empty() {
        app.conversation.peer()
    } else {
        status.peer.clone()
    };
    let own = Some(status.model.as_str()).filter(|it| !it.is_empty());
    let model = app.composer.model_name(about).or(own);
    let key = match status.key.as_str() {
        "" => t!("status-no-key").to_owned(),
        GIVEN => origin(app),
        key => key.to_owned(),
    };
    let mut facts = vec![
        (t!("status-server"), peer),
        (t!("status-model"), model.unwrap_or_default().to_owned()),
        (t!("status-key"), key),
    ];
    if let Some(window) = app.conversation.window() {
        facts.push((
            t!("status-window"),
            t!("status-tokens", count = figure::tokens(window).as_str()),
        ));
    }
    facts
}

/// What the last turn and the conversation have cost.
fn spent(app: &App) -> Vec<(&'static str, String)> {
    let transcript = &app.conversation.transcript;
    let sum = |tokens: u64, cost: Option<f64>| {
        let tokens = figure::tokens(tokens);
        match cost {
            Some(cost) => t!(
                "status-spent",
                count = tokens.as_str(),
                cost = figure::money(cost).as_str()
            ),
            None => t!("status-spent-unknown", count = tokens.as_str()),
        }
    };
    let turn = transcript.exchanges.last().map(|it| {
        let usage = &it.response.usage;
        let cost = it
            .response
            .extra_usage
            .get("costUsd")
            .and_then(serde_json::Value::as_f64);
        (
            t!("status-turn"),
            sum(usage.prompt_tokens + usage.completion_tokens, cost),
        )
    });
    let (_, total) = transcript.usage();
    let session = sum(total.prompt_tokens + total.completion_tokens, transcript.cost());
    turn.into_iter().chain([(t!("status-session"), session)]).collect()
}
