//! Which model does what: talking, quick side jobs, applying edits, embedding, and who stands in when one is full.
//!
//! Roles are opened when they are first asked for and keep their connections; opening asks nobody anything.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, PoisonError},
};

use super::{Failure, FailureKind, Provider, open};
use crate::config::{self, Environment, KeySource, Settings, Upstream};

/// A model and who has it.
#[derive(Clone)]
pub struct Chosen {
    pub provider: Arc<dyn Provider>,
    /// Empty: the first that the server lists.
    pub model: String,
}

/// The models of the settings, by what they do.
pub struct Roles {
    settings: Settings,
    environment: Environment,
    /// By what they are called in the settings.
    opened: Mutex<BTreeMap<String, Arc<dyn Provider>>>,
}

impl Roles {
    pub fn new(settings: &Settings, environment: &Environment) -> Self {
        Self {
            settings: settings.clone(),
            environment: environment.clone(),
            opened: Mutex::default(),
        }
    }

    /// Returns the model that talks with the user. `None` if the settings name no provider.
    #[cfg(test)]
    pub fn chat(&self) -> Result<Option<Chosen>, Failure> {
        let Upstream::Provider(name, provider) = self.settings.upstream() else {
            return Ok(None);
        };
        let model = self.settings.model().unwrap_or_default().to_owned();
        let provider = self.opened(name, provider)?;
        Ok(Some(Chosen { provider, model }))
    }

    /// For titles, summaries and the like; none: whoever talks does it.
    pub fn fast(&self) -> Result<Option<Chosen>, Failure> {
        self.role(self.settings.roles.fast.as_deref())
    }

    /// For putting sketched edits into files; none: whoever talks does it.
    pub fn apply(&self) -> Result<Option<Chosen>, Failure> {
        self.role(self.settings.roles.apply.as_deref())
    }

    /// For vectors of texts, by [`Provider::embed`]; none: there are no vectors from a server.
    pub fn embed(&self) -> Result<Option<Chosen>, Failure> {
        let Some(text) = self.settings.roles.embed.as_deref() else {
            return Ok(None);
        };
        let (name, mut provider, model) = named(&self.settings, &self.environment, text)?;
        // It embeds with the model of its settings, so it is another one than that for talking.
        provider.model = Some(model.clone());
        let provider = self.opened(&format!("{name}/{model}"), &provider)?;
        Ok(Some(Chosen { provider, model }))
    }

    /// Returns the models to try in turn when one is overloaded. One that cannot be opened is left out.
    pub fn fallback(&self) -> Vec<Chosen> {
        let named = self.settings.roles.fallback.iter();
        named.filter_map(|it| self.role(Some(it)).ok().flatten()).collect()
    }

    /// `provider/model` (or `provider//model`, which is never taken for a model's name), a provider alone, or a model of the
    /// provider that talks.
    pub fn named(&self, text: &str) -> Result<Chosen, Failure> {
        let (name, provider, model) = named(&self.settings, &self.environment, text)?;
        let provider = self.opened(&name, &provider)?;
        Ok(Chosen { provider, model })
    }

    /// Returns the name of the provider of the settings; `None` if they choose a gateway or nothing.
    pub fn own(&self) -> Option<&str> {
        match self.settings.upstream() {
            Upstream::Provider(name, _) => Some(name),
            Upstream::Gateway(_) | Upstream::Nobody => None,
        }
    }

    /// Returns the names of the providers that have a key or need none: those of the settings, then services whose
    /// variable is set.
    pub fn usable(&self) -> Vec<&str> {
        let configured = self.settings.providers.iter().filter(|(_, it)| match &it.key {
            KeySource::Variables(names) => names.iter().any(|it| self.environment.get(it).is_some()),
            KeySource::None
            | KeySource::Given(_)
            | KeySource::Command(_)
            | KeySource::File(_)
            | KeySource::Keyring(_) => true,
        });
        let configured = configured.map(|(name, _)| name.as_str());
        let services = config::SERVICES.iter().filter(|it| {
            let is_configured = self.settings.providers.contains_key(it.name);
            !is_configured && it.variables.iter().any(|it| self.environment.get(it).is_some())
        });
        configured.chain(services.map(|it| it.name)).collect()
    }

    /// Returns true if `name/model` means the provider `name`, not a model with a slash in its name.
    pub fn is_provider(&self, name: &str) -> bool {
        // OpenRouter calls its models by their makers' names.
        self.settings.providers.contains_key(name)
            || (self.own() != Some("openrouter") && self.usable().contains(&name))
    }

    /// Opens a provider by name.
    pub fn provider(&self, name: &str) -> Result<Arc<dyn Provider>, Failure> {
        let found = self.settings.provider_named(name, &self.environment);
        let provider =
            found.ok_or_else(|| Failure::new(FailureKind::NotFound, format!("unknown provider `{name}`")))?;
        self.opened(name, &provider)
    }

    fn role(&self, text: Option<&str>) -> Result<Option<Chosen>, Failure> {
        text.map(|it| self.named(it)).transpose()
    }

    fn opened(&self, name: &str, settings: &config::Provider) -> Result<Arc<dyn Provider>, Failure> {
        let mut opened = self.opened.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(provider) = opened.get(name) {
            return Ok(Arc::clone(provider));
        }
        let provider = open(settings, &self.environment)?;
        opened.insert(name.to_owned(), Arc::clone(&provider));
        Ok(provider)
    }
}

/// The provider's name and settings, and the model. A slash may also belong to a model's name.
fn named(
    settings: &Settings,
    environment: &Environment,
    text: &str,
) -> Result<(String, config::Provider, String), Failure> {
    let text = text.trim();
    let (name, model) = text.split_once('/').unwrap_or((text, ""));
    if let Some(provider) = settings.provider_named(name, environment) {
        let model = if model.is_empty() {
            provider.model.clone().unwrap_or_default()
        } else {
            model.strip_prefix('/').unwrap_or(model).to_owned()
        };
        return Ok((name.to_owned(), provider, model));
    }
    if let Upstream::Provider(name, provider) = settings.upstream() {
        return Ok((name.to_owned(), provider.clone(), text.to_owned()));
    }
    let message = format!("`{text}` names no provider");
    let known = settings.providers.keys().map(String::as_str);
    let known: Vec<&str> = known.chain(config::SERVICES.iter().map(|it| it.name)).collect();
    Err(Failure::new(FailureKind::NotFound, message).hint(format!("write provider/model; known: {}", known.join(", "))))
}

#[cfg(test)]
mod tests {
    use pretty_assertions::assert_eq;

    use super::*;
    use crate::config::{CommandLineSettings, merge};

    fn settings(text: &str, variables: &str) -> (Settings, Environment) {
        let environment: Environment = variables
            .split_whitespace()
            .filter_map(|it| it.split_once('='))
            .collect();
        let file = config::SettingsFile::of_user("config.toml", text);
        let (settings, problems) = merge(Some(&file), None, &environment, &CommandLineSettings::default());
        assert_eq!(problems, [], "{text}");
        (settings, environment)
    }

    const BOTH: &str = "provider = 'here'\n\
        [providers.here]\nbase_url = 'http://127.0.0.1:1/v1'\nmodel = 'm'\n\
        [providers.gem]\nkind = 'gemini'\nbase_url = 'http://127.0.0.1:2'\nmodel = 'g'\n";

    #[test]
    fn a_name_is_a_provider_and_a_model() {
        let (settings, environment) = settings(BOTH, "OLLAMA_HOST=localhost:9");
        for (text, want) in [
            ("gem/gemini-x", "gemini at 127.0.0.1:2 gemini-x"),
            ("gem", "gemini at 127.0.0.1:2 g"),
            ("gem/", "gemini at 127.0.0.1:2 g"),
            ("here/qwen/qwen3", "openai at 127.0.0.1:1 qwen/qwen3"),
            ("qwen/qwen3", "openai at 127.0.0.1:1 qwen/qwen3"),
            ("other", "openai at 127.0.0.1:1 other"),
            ("ollama/qwen3:8b", "ollama at localhost:9 qwen3:8b"),
            ("anthropic/claude-x", "anthropic at api.anthropic.com claude-x"),
        ] {
            let chosen = Roles::new(&settings, &environment)
                .named(text)
                .unwrap_or_else(|it| panic!("{text}: {it}"));
            assert_eq!(format!("{} {}", chosen.provider.peer(), chosen.model), want, "{text}");
        }
        let nobody = Roles::new(&Settings::default(), &environment)
            .named("odd/m")
            .err()
            .expect("nobody");
        assert_eq!(&*nobody.message, "`odd/m` names no provider");
    }

    #[test]
    fn each_role_is_opened_once_and_only_if_it_is_named() {
        let text = format!(
            "{BOTH}[roles]\nfast = 'gem/small'\nembed = 'gem/embedder'\nfallback = ['gem/big', 'here/small']\n"
        );
        let (settings, environment) = settings(&text, "");
        let roles = Roles::new(&settings, &environment);
        let chat = roles.chat().expect("sound").expect("named");
        assert_eq!(
            (chat.provider.peer(), chat.model.as_str()),
            ("openai at 127.0.0.1:1", "m")
        );
        let fast = roles.fast().expect("sound").expect("named");
        let again = roles.fast().expect("sound").expect("named");
        assert!(
            Arc::ptr_eq(&fast.provider, &again.provider),
            "one provider, one set of connections"
        );
        assert_eq!(fast.model, "small");
        assert!(roles.apply().expect("sound").is_none());
        let embed = roles.embed().expect("sound").expect("named");
        assert!(!Arc::ptr_eq(&embed.provider, &fast.provider), "it has another model");
        let models: Vec<String> = roles.fallback().into_iter().map(|it| it.model).collect();
        assert_eq!(models, ["big", "small"]);
        let roles = Roles::new(&Settings::default(), &environment);
        assert!(roles.chat().expect("sound").is_none() && roles.fallback().is_empty());
    }
}
