//! The model that answers: which it is, what it takes in, and the title that a model for side jobs thinks of.

use std::{
    collections::{HashMap, HashSet},
    pin::Pin,
    sync::Arc,
};

use futures::{StreamExt, stream::FuturesUnordered};

use super::{
    model_offers,
    notices::{notice, warn},
};
use crate::{
    agent::{history, runner::setup::Setup},
    journal::Log,
    models::{Chosen, Effort, ModelMessage, ModelRequest, Piece, catalogue},
    protocol::{Event, Position, Severity},
};

/// A server and its model.
pub type ServerModel = (String, String);
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
    pub listing: Option<Pin<Box<dyn Future<Output = Vec<String>> + Send>>>,
    /// Ids of the models that the provider lists, in its order; empty if it gave no list. `None`: it was not asked.
    listed: Option<Vec<String>>,
    /// Models that files ask for in vain, and who asks: each is said once.
    unknown: HashSet<(String, String)>,
}

/// Names of families that Claude Code's files use for the newest model of each.
const FAMILIES: [&str; 3] = ["haiku", "sonnet", "opus"];

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
            unknown: HashSet::new(),
        }
    }

    /// Returns true while it is not known if the provider has a model that a file asks for; asks the provider first.
    pub fn waits_for_list(&mut self, wanted: &str, setup: &Setup) -> bool {
        if is_settled(wanted, setup) || self.listed.is_some() {
            return false;
        }
        self.listing.get_or_insert_with(|| {
            let list = tokio::time::timeout(model_offers::LIMIT, setup.provider.models());
            Box::pin(async move {
                let models = list.await.ok().and_then(Result::ok).unwrap_or_default();
                models.into_iter().map(|it| it.id).collect()
            })
        });
        true
    }

    /// Keeps the provider's list.
    pub fn list(&mut self, models: Vec<String>) {
        self.listing = None;
        self.listed = Some(models);
    }

    /// Returns the model that is meant by what a file asks for. `None`: there is none, which the user is told once.
    pub fn find(&mut self, (wanted, by): (String, String), setup: &Setup, log: &Log) -> Option<String> {
        if is_settled(&wanted, setup) {
            return Some(wanted);
        }
        let listed = self.listed.as_deref().unwrap_or_default();
        let is_meant = |id: &&String| {
            **id == wanted || FAMILIES.contains(&wanted.as_str()) && id.contains("claude") && id.contains(&wanted)
        };
        let found = listed.iter().find(is_meant).cloned();
        // A server without a list may have it.
        let found = found.or_else(|| {
            let is_known = listed.is_empty() && catalogue::window(&wanted).is_some();
            is_known.then(|| wanted.clone())
        });
        if found.is_none() && self.unknown.insert((wanted.clone(), by.clone())) {
            let peer = setup.provider.peer();
            let message = format!(
                "{by} asks for the model {wanted}, which {peer} does not list; [models.\"{wanted}\"] in config.toml has it used anyway"
            );
            warn(log, "model-unknown", message);
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
