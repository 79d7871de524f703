//! Checks a key with the provider: by its list of models, or by one token.

use std::time::Duration;

use futures::StreamExt as _;

use crate::{
    config::{Environment, KeySource, Provider, Secret},
    models::{self, Failure, FailureKind, ModelMessage, ModelRequest, Piece},
    net::client::{Client, Request},
    text::redact::REDACTED,
};

/// Time limit of a check.
const LIMIT: Duration = Duration::from_secs(30);

/// Shortest secret that is looked for in a server's words, in bytes: a shorter one may be part of any word.
const SHORTEST_SECRET_BYTES: usize = 4;

/// Services that list their models for anyone, with the path below their address that needs the key.
const PUBLIC_LISTS: &[(&str, &str)] = &[("openrouter", "key")];

/// Result of a check.
#[derive(Debug)]
pub enum Finding {
    /// The key is accepted. With the models that the server lists.
    Works(Vec<String>),
    /// The key is refused.
    Refused(Failure),
    /// The server has no list of models, so nothing is known about the key.
    NoList(Failure),
    /// The server was not reached, or its answer says nothing about the key.
    Failed(Failure),
}

impl Finding {
    /// Returns the finding with `secret` removed from what the server said.
    pub fn without(mut self, secret: &Secret) -> Self {
        let secret = secret.expose();
        if let Self::Refused(it) | Self::NoList(it) | Self::Failed(it) = &mut self
            && let Some(said) = it.said.as_mut().filter(|_| secret.len() >= SHORTEST_SECRET_BYTES)
        {
            *said = said.replace(secret, REDACTED).into();
        }
        self
    }
}

/// Asks for the list of models. Takes at most [`LIMIT`].
pub async fn check(name: &str, provider: &Provider, environment: &Environment) -> Finding {
    let limit = LIMIT.min(provider.connection.first_byte_timeout);
    let asked = async {
        if let Some((_, path)) = PUBLIC_LISTS.iter().find(|it| it.0 == name) {
            private(provider, path).await?;
        }
        models::open(provider, environment)?.models().await
    };
    match tokio::time::timeout(limit, asked).await {
        Ok(Ok(models)) => Finding::Works(models.into_iter().map(|it| it.id).collect()),
        Ok(Err(failure)) => match failure.kind {
            FailureKind::Key => Finding::Refused(failure),
            FailureKind::NotFound => Finding::NoList(failure),
            // The account exists: only this answer is missing.
            FailureKind::Credit
            | FailureKind::Busy
            | FailureKind::TooLong
            | FailureKind::Request
            | FailureKind::Overloaded
            | FailureKind::Unreachable
            | FailureKind::Garbled
            | FailureKind::Interrupted
            | FailureKind::Oversized => Finding::Failed(failure),
        },
        Err(_) => Finding::Failed(late(limit)),
    }
}

fn late(limit: Duration) -> Failure {
    Failure::new(
        FailureKind::Unreachable,
        format!("no answer within {} s", limit.as_secs_f32().ceil()),
    )
}

/// Asks for a page that needs the key.
async fn private(provider: &Provider, path: &str) -> Result<(), Failure> {
    let KeySource::Given(secret) = &provider.key else {
        return Ok(());
    };
    let peer = provider.connection.peer();
    let peer = peer.map_err(|it| Failure::from_error(FailureKind::NotFound, &it))?;
    let client = Client::new(peer).map_err(|it| Failure::from(&it))?;
    let request = Request::get(path).accept("application/json").bearer(secret.expose());
    let response = client.open(request).await.map_err(|it| Failure::from(&it))?;
    let status = response.status.as_u16();
    if response.status.is_success() || status == 404 {
        return Ok(());
    }
    let body = response.body.beginning(1 << 14).await;
    let error = serde_json::from_slice::<serde_json::Value>(&body).unwrap_or_default();
    Err(Failure::from_server(Some(status), error.get("error").unwrap_or(&error)))
}

/// Asks `model` for one token. Takes at most [`LIMIT`].
pub async fn one_token(provider: &Provider, model: &str, environment: &Environment) -> Finding {
    let provider = Provider {
        max_tokens: Some(1),
        ..provider.clone()
    };
    let asked = async {
        let mut pieces = models::open(&provider, environment)?.stream(ModelRequest {
            model: model.to_owned(),
            messages: vec![ModelMessage::user("Hi")],
            ..ModelRequest::default()
        });
        while let Some(piece) = pieces.next().await {
            if let Piece::Error(failure) = piece {
                return Err(failure);
            }
        }
        Ok(())
    };
    match tokio::time::timeout(LIMIT, asked).await {
        Ok(Ok(())) => Finding::Works(vec![model.to_owned()]),
        Ok(Err(failure)) if failure.kind == FailureKind::Key => Finding::Refused(failure),
        Ok(Err(failure)) => Finding::Failed(failure),
        Err(_) => Finding::Failed(late(LIMIT)),
    }
}

/// Formats a failure on one line.
pub fn seen(failure: &Failure) -> String {
    let mut text = failure.message.to_string();
    let root = failure.cause.as_deref().and_then(|it| it.rsplit(": ").next());
    for more in [root, failure.said.as_deref()].into_iter().flatten() {
        text.push_str(": ");
        text.extend(more.lines().next().unwrap_or_default().chars().take(200));
    }
    text
}

/// Formats what the server said and what to do, one step per line. `page`: where a key is made.
pub fn steps(failure: &Failure, page: Option<&str>) -> String {
    let mut lines = Vec::new();
    match failure.kind {
        FailureKind::Key => {
            if let Some(said) = &failure.said {
                let first: String = said.lines().next().unwrap_or_default().chars().take(200).collect();
                lines.push(format!("the server says: {first}"));
            }
            lines.push("copy the whole key, and check that it belongs to this provider".to_owned());
            lines.extend(page.map(|it| format!("make another one at {it}")));
        }
        FailureKind::Credit => lines.push("see the provider's billing page".to_owned()),
        FailureKind::NotFound => lines.push("check its base_url: most addresses end in /v1".to_owned()),
        FailureKind::Busy | FailureKind::Overloaded => lines.push("try again in a moment".to_owned()),
        FailureKind::Unreachable | FailureKind::Interrupted => {
            lines.push("check the network, the address and the proxy; `sheaf doctor` tests them".to_owned());
        }
        FailureKind::TooLong | FailureKind::Request | FailureKind::Garbled | FailureKind::Oversized => {
            lines.push("check that its base_url and kind belong together".to_owned());
        }
    }
    lines.iter().map(|it| format!("  {it}\n")).collect()
}
