//! Whom to talk to, as a link.

use std::{path::Path, sync::Arc};

use anyhow::Result;
use serde_json::json;

use crate::{
    agent::driver,
    config::{Environment, Gateway, Provider, Settings, Upstream},
    journal::Log,
    link::{
        About, Link,
        http::{self, Http},
        local::Local,
    },
    model::{self, catalogue},
    protocol::{ConversationId, Dialect},
};

/// What to do when nothing is configured, for those who have no screen to be asked on.
const NOTHING: &str = "there is nobody to ask\n  \
     set OPENAI_API_KEY, or OPENAI_BASE_URL for a model server of your own,\n  \
     or name a server: --provider NAME, --gateway URL\n  \
     `sheaf doctor` says what it finds, `sheaf tour` needs none of it";

/// Why there is no link, for those who have no screen to be asked on.
pub fn nobody() -> anyhow::Error {
    anyhow::anyhow!(NOTHING)
}

/// The link that the settings ask for; `None` when they name nobody. Opens no connection.
pub fn link(
    settings: &Settings,
    environment: &Environment,
    workspace: &Path,
    is_attended: bool,
) -> Result<Option<Arc<dyn Link>>> {
    match settings.upstream() {
        Upstream::Gateway(it) => gateway(settings, it, environment, Some(workspace), is_attended).map(Some),
        Upstream::Provider(_, provider) => local(settings, provider, environment, is_attended).map(Some),
        Upstream::Nobody => Ok(None),
    }
}

/// A documents gateway.
pub fn gateway(
    settings: &Settings,
    gateway: &Gateway,
    environment: &Environment,
    workspace: Option<&Path>,
    is_attended: bool,
) -> Result<Arc<dyn Link>> {
    let settings = http::Settings {
        token: gateway.token.clone(),
        environment: environment.clone(),
        model: settings.model.clone(),
        dialect: match gateway.dialect.as_str() {
            "a" => Some(Dialect::Named),
            "b" => Some(Dialect::Data),
            _ => None,
        },
        context: workspace.map(|it| json!({ "workspacePath": it })),
        is_attended,
        ..http::Settings::new(gateway.connection.peer()?)
    };
    Ok(Arc::new(Http::start(settings, Log::new())?))
}

/// The embedded agent with `provider`.
pub fn local(
    settings: &Settings,
    provider: &Provider,
    environment: &Environment,
    is_attended: bool,
) -> Result<Arc<dyn Link>> {
    let model = settings.model().or(provider.model.as_deref()).map(str::to_owned);
    let known = model.as_ref().and_then(|it| settings.models.get(it));
    let provider = model::open(provider, environment)?;
    let about = About {
        peer: provider.peer().to_owned(),
        window: known
            .and_then(|it| it.window)
            .or_else(|| model.as_deref().and_then(catalogue::window)),
        model: model.clone(),
        is_replay: false,
    };
    let log = Log::new();
    let (link, inbox) = Local::new(Arc::clone(&log), about);
    let setup = driver::Setup {
        provider,
        model: model.unwrap_or_default(),
        conversation: ConversationId::fresh(),
        is_attended,
    };
    tokio::spawn(driver::run(setup, log, inbox));
    Ok(Arc::new(link))
}
