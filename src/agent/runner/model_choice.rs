//! The model that answers: which it is, what it takes in, and the title that a model for side jobs thinks of.

use std::{
    collections::{HashMap, HashSet},
    pin::Pin,
    sync::Arc,
    time::Duration,
};

use futures::{StreamExt, stream::FuturesUnordered};

use super::{
    model_offers,
    notices::{notice, warn},
};
use crate::{
    agent::{history, runner::setup::Setup},
    journal::Log,
    models::{Chosen, Effort, Model, ModelMessage, ModelRequest, Piece, catalogue, lookup},
    protocol::{Event, Position, Severity},
};

/// A server and its model.
pub type ServerModel = (String, String);
/// The models that a provider lists, or why it gave no list.
pub type ModelList = Result<Vec<Model>, String>;
type Sizing = Pin<Box<dyn Future<Output = (ServerModel, Option<u64>)> + Send>>;

/// The model that answers.
pub struct ModelChoice {
    /// The server and the model.
    pub chosen: Chosen,
    /// Windows of models that only their servers know, in tokens: found out once, beside their first answer.
    windows: HashMap<ServerModel, Option<u64>>,
    /// Servers that are asked for such windows.
    pub sizing: FuturesUnordered<Sizing>,
    /// Titles that are being thought of.
    pub titles: FuturesUnordered<Pin<Box<dyn Future<Output = Option<String>> + Send>>>,
    has_title: bool,
    /// The provider is asked for its list.
    pub listing: Option<Pin<Box<dyn Future<Output = ModelList> + Send>>>,
    /// Its answer; a failure only until the message that it was asked for is sent. `None`: it was not asked.
    listed: Option<ModelList>,
    /// The longest that a message waits for the list.
    patience: Duration,
    /// What was said of models that files ask for: once each.
    told: HashSet<String>,
}

/// The longest that a message waits for a list that could not be had before.
const PATIENCE_AGAIN: Duration = Duration::from_secs(2);

/// Returns true for a model that is used without asking the provider for its list: the one of the settings, one that they
/// describe, and one of another provider.
fn is_settled(wanted: &str, setup: &Setup) -> bool {
    wanted == setup.model || setup.settings.models.contains_key(wanted) || is_elsewhere(wanted, setup)
}

/// Returns true for a model that is named with its provider.
fn is_elsewhere(wanted: &str, setup: &Setup) -> bool {
    let parts = wanted.split_once('/');
    parts.is_some_and(|(name, model)| setup.roles.is_provider(name) || model.starts_with('/'))
}

impl ModelChoice {
    /// The model of the settings.
    pub fn new(setup: &Setup) -> Self {
        Self {
            chosen: Chosen {
                provider: Arc::clone(&setup.provider),
                model: setup.model.clone(),
            },
            windows: HashMap::new(),
            sizing: FuturesUnordered::new(),
            titles: FuturesUnordered::new(),
            has_title: false,
            listing: None,
            listed: None,
            patience: model_offers::LIMIT,
            told: HashSet::new(),
        }
    }

    /// Returns true while it is not known if the provider has a model that a file asks for; asks the provider first.
    pub fn waits_for_list(&mut self, wanted: &str, setup: &Setup) -> bool {
        if is_settled(wanted, setup) || self.listed.is_some() {
            return false;
        }
        let patience = self.patience;
        self.listing.get_or_insert_with(|| {
            let list = tokio::time::timeout(patience, setup.provider.models());
            Box::pin(async move {
                let list = list
                    .await
                    .map_err(|_| format!("no answer within {} s", patience.as_secs()))?;
                list.map_err(|it| it.message.into_string())
            })
        });
        true
    }

    /// Keeps the provider's list.
    pub fn list(&mut self, models: ModelList) {
        self.listing = None;
        self.patience = if models.is_ok() {
            model_offers::LIMIT
        } else {
            PATIENCE_AGAIN
        };
        self.listed = Some(models);
    }

    /// Waits no longer for the provider's list.
    pub fn stop_listing(&mut self) {
        self.listing = None;
    }

    /// Returns the model that is meant by what a file asks for. `None`: there is none, which the user is told once, or the provider
    /// was not asked. After a failure the next message asks again.
    pub fn find(&mut self, (wanted, by): (String, String), setup: &Setup, log: &Log) -> Option<String> {
        if is_settled(&wanted, setup) {
            return Some(wanted);
        }
        let peer = setup.provider.peer();
        let (found, warning) = match self.listed.take()? {
            Ok(list) => {
                let found = lookup::find(&wanted, &list).map(|it| it.id.clone());
                // A server without a list may have it.
                let is_likely = list.is_empty() && catalogue::window(&wanted).is_some();
                let found = found.or_else(|| is_likely.then(|| wanted.clone()));
                let warning = format!(
                    "{by} asks for the model {wanted}, which {peer} does not list; [models.\"{wanted}\"] in config.toml has it used anyway"
                );
                self.listed = Some(Ok(list));
                let warning = found.is_none().then_some(warning);
                (found, warning)
            }
            Err(why) => {
                // No server has a model of a family's name.
                let found = (!lookup::is_family(&wanted)).then(|| wanted.clone());
                let instead = if found.is_some() {
                    "it is used under this name"
                } else {
                    "your usual model is used"
                };
                let warning = format!(
                    "{by} asks for the model {wanted}, but {peer} could not be asked for its models, so {instead}: {why}"
                );
                (found, Some(warning))
            }
        };
        if let Some(warning) = warning
            && self.told.insert(warning.clone())
        {
            warn(log, "model-unknown", warning);
        }
        found
    }

    /// Keeps a window that a server has told.
    pub fn sized(&mut self, asked: ServerModel, window: Option<u64>) {
        self.windows.insert(asked, window);
    }

    /// Returns the window of the model in tokens: what the settings or the catalogue say, else what its server says, which
    /// is asked once. `None`: it is not known, or not yet.
    pub fn window(&mut self, setup: &Setup) -> Option<u64> {
        let Chosen { provider, model } = &self.chosen;
        let known = catalogue::known(model, &setup.settings.models).window;
        let asked = (provider.peer().to_owned(), model.clone());
        let window = known.or(self.windows.get(&asked).copied().flatten());
        if known.is_some() || !setup.asker.is_attended() || self.windows.contains_key(&asked) {
            return window;
        }
        self.windows.insert(asked.clone(), None);
        let provider = Arc::clone(provider);
        self.sizing.push(Box::pin(async move {
            let model = asked.1.clone();
            if let Some(window) = provider.window(model.clone()).await {
                return (asked, Some(window));
            }
            let listed = provider.models().await.unwrap_or_default();
            let found = listed.iter().find(|it| it.id == model || model.is_empty());
            (asked, found.and_then(|it| it.window))
        }));
        window
    }

    /// Chooses who answers from here on: a model of the provider, or another provider's as `provider/model`.
    pub fn choose(&mut self, wanted: Option<&str>, setup: &Setup, log: &Log) {
        let provider = Arc::clone(&setup.provider);
        let Some(wanted) = wanted.filter(|it| !it.is_empty()) else {
            self.chosen = Chosen {
                provider,
                model: setup.model.clone(),
            };
            return;
        };
        if is_elsewhere(wanted, setup) {
            match setup.roles.named(wanted) {
                Ok(chosen) => return self.chosen = chosen,
                Err(failure) => {
                    notice(log, Severity::Error, "no-such-model", failure.message);
                }
            }
        }
        self.chosen = Chosen {
            provider,
            model: wanted.to_owned(),
        };
    }

    /// Asks the model for side jobs for a title, once, where there is one.
    pub fn think_of_title(&mut self, setup: &Setup, log: &Log) {
        if std::mem::replace(&mut self.has_title, true) || !setup.asker.is_attended() {
            return;
        }
        let Ok(Some(fast)) = setup.roles.fast() else {
            return;
        };
        // A long one has had time for it.
        if log.recent().is_some() {
            return;
        }
        // A conversation that was taken up again has its title: the user's, or one that was thought of then.
        let entries = log.after(Position(0));
        let titles = entries.iter().filter_map(|it| match &it.event {
            Event::Title(title) => Some(title),
            _ => None,
        });
        // One that stands in its file several times was only repeated there: it is the beginning of the first message.
        let texts: HashSet<&str> = titles.clone().map(|it| it.text.as_str()).collect();
        if texts.len() > 1 || titles.clone().any(|it| it.by_user) {
            return;
        }
        let mut said = history::text_only(&log.after(Position(0))).messages;
        said.truncate(2);
        said.push(ModelMessage::user(
            "Give this conversation a title of at most six words, in its language. Answer with the title alone.",
        ));
        let request = ModelRequest {
            model: fast.model,
            messages: said,
            effort: Some(Effort::Off),
            ..ModelRequest::default()
        };
        let mut pieces = fast.provider.stream(request);
        self.titles.push(Box::pin(async move {
            let mut title = String::new();
            while let Some(piece) = pieces.next().await {
                match piece {
                    Piece::Text(text) if title.len() < 400 => title.push_str(&text),
                    Piece::Error(_) => return None,
                    _ => {}
                }
            }
            let line = title.lines().map(str::trim).find(|it| !it.is_empty())?;
            let line = line.trim_matches(['"', '#', '*', ' ', '.']);
            (!line.is_empty() && line.chars().count() <= 80).then(|| line.to_owned())
        }));
    }
}
