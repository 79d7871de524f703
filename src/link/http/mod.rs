//! A documents gateway: requests go up over HTTP, events come down as a stream or as one JSON object.
//!
//! Nothing that a gateway sends is run, and nothing that it does can make this program wait for ever or grow without
//! bound. A request is repeated by itself only when no byte of an answer came, because tools may have run after that.
//!
//! ```text
//! Command ─► Driver ─► Request ─► net::client ─► gateway
//!    Log ◄─ Driver ◄─ codec::Decoder ◄─ net::sse ◄─┘
//! ```

pub mod attach;
mod context;
mod driver;
mod history;
#[cfg(test)]
mod tests;

use std::{future::Future, pin::Pin, sync::Arc, time::Duration};

use serde_json::Value;

pub use self::context::Context;
use self::driver::Driver;
pub use self::history::{COMPLETIONS, PLAN, below_response, root};
use super::{About, AskError, Link};
use crate::{
    config::{Environment, KeySource},
    journal::Log,
    net::{
        client::{self, Client, Peer, Request},
        retry::Policy,
    },
    os::lazy_channel,
    protocol::{Command, Dialect, Query, Reply},
};

/// Time limit for a query beside the conversation.
const ASIDE: Duration = Duration::from_secs(10);

/// A list of models is not longer.
const MODELS_LIMIT_BYTES: usize = 4 << 20;

/// Settings of a link to a gateway.
#[derive(Clone)]
pub struct Settings {
    /// The address may be that of the server or of one of its endpoints, as people paste it.
    pub peer: Peer,
    pub token: KeySource,
    /// Environment in which the token's variables are looked up.
    pub environment: Environment,
    /// For messages that name none.
    pub model: Option<String>,
    /// `None`: the gateway's own choice.
    pub dialect: Option<Dialect>,
    pub context: Option<Context>,
    /// `None`: all tools that the mode permits.
    pub tools: Option<Vec<String>>,
    pub available_tools: Option<Value>,
    pub retries: Policy,
    /// Somebody watches: a long pause that the gateway asks for is waited for, because it can be stopped.
    pub is_attended: bool,
    /// False if questions cannot be answered while the gateway answers: it then ends its answer with them.
    pub accepts_answers: bool,
    /// True if answers are what a user wrote: each of them allows as many requests as a message.
    pub has_user_answers: bool,
}

impl Settings {
    /// Asks `peer` without a token and with every default, for somebody who watches.
    pub fn new(peer: Peer) -> Self {
        Self {
            peer,
            token: KeySource::None,
            environment: Environment::default(),
            model: None,
            dialect: None,
            context: None,
            tools: None,
            available_tools: None,
            retries: Policy::default(),
            is_attended: true,
            accepts_answers: true,
            has_user_answers: false,
        }
    }

    /// A client for the gateway. Its connections and memory are shared by all who have a clone of it.
    pub fn client(&self) -> Result<Client, client::Error> {
        Client::new(Peer {
            base: history::root(self.peer.base.clone()),
            ..self.peer.clone()
        })
    }
}

/// A conversation with a gateway.
pub struct Http {
    log: Arc<Log>,
    about: About,
    client: Client,
    settings: Arc<Settings>,
    commands: lazy_channel::Outbox<Command>,
}

impl Http {
    /// Opens a conversation, or goes on with the one in `log`, on the current Tokio runtime. Sends nothing yet.
    ///
    /// Dropping the link stops what runs.
    pub fn start(settings: Settings, log: Arc<Log>) -> Result<Self, client::Error> {
        Ok(Self::over(settings.client()?, settings, log))
    }

    /// The same as [`Http::start`], over the client of these settings that several conversations share.
    pub fn over(client: Client, settings: Settings, log: Arc<Log>) -> Self {
        let host = client.name().split_once("://").map_or(client.name(), |(_, host)| host);
        let about = About {
            peer: format!("gateway {host}"),
            model: settings.model.clone(),
            ..About::default()
        };
        let settings = Arc::new(settings);
        let (commands, inbox) = lazy_channel::channel();
        let driver = Driver::new(client.clone(), Arc::clone(&settings), Arc::clone(&log), inbox);
        tokio::spawn(Box::new(driver).run());
        Self {
            log,
            about,
            client,
            settings,
            commands,
        }
    }
}

impl Link for Http {
    fn log(&self) -> &Arc<Log> {
        &self.log
    }

    fn send(&self, command: Command) {
        // The driver ends only after this sender is gone.
        let _ = self.commands.send(command);
    }

    fn about(&self) -> About {
        self.about.clone()
    }

    fn ask(&self, query: Query) -> Pin<Box<dyn Future<Output = Result<Reply, AskError>> + Send>> {
        let (client, settings, peer) = (self.client.clone(), Arc::clone(&self.settings), self.about.peer.clone());
        Box::pin(async move {
            // The workspace and the prompt are the gateway's own affair.
            let Query::Models = query else {
                return Err(AskError::Unsupported { peer });
            };
            let asked = tokio::time::timeout(ASIDE, models(&client, &settings)).await;
            let failed = |source| AskError::Failed {
                peer: peer.clone(),
                source,
            };
            match asked {
                Ok(Ok(Some(names))) => Ok(Reply::Models(names)),
                Ok(Ok(None)) => Err(AskError::Unsupported { peer }),
                Ok(Err(source)) => Err(failed(source)),
                Err(late) => Err(failed(late.into())),
            }
        })
    }
}

/// Returns the list at `/v1/models`, in the form of model servers. `None` if the gateway has no such list.
async fn models(
    client: &Client,
    settings: &Settings,
) -> Result<Option<Vec<String>>, Box<dyn std::error::Error + Send + Sync>> {
    let mut request = Request::get("v1/models").accept("application/json");
    if let Some(token) = settings.token.resolve(&settings.environment).await? {
        request = request.bearer(token.expose());
    }
    let answer = client.open(request).await?;
    if !answer.status.is_success() {
        return Ok(None);
    }
    let body = answer.body.read(MODELS_LIMIT_BYTES).await?;
    let Ok(list) = serde_json::from_slice::<Value>(&body) else {
        return Ok(None);
    };
    let names = list.get("data").and_then(Value::as_array).map(|models| {
        let names = models.iter().filter_map(|it| it.get("id")?.as_str());
        names.map(str::to_owned).collect()
    });
    Ok(names)
}
