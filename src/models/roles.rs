//! Which model does what: talking, quick side jobs, applying edits, embedding, and who stands in when one is full.
//!
//! Roles are opened when they are first asked for and keep their connections; opening asks nobody anything.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, PoisonError},
};

use super::{Failure, FailureKind, Provider, open};
use crate::config::{self, Environment, KeySource, KnownService, Settings, Upstream};

/// Services with models that are called by the service's own name: `groq/compound`, `openrouter/auto`.
const OWN_NAMED: [&str; 2] = ["groq", "openrouter"];
/// Services none of whose models has a slash in its name. Others call models by their makers' names.
const WITHOUT_SLASHES: [&str; 7] = [
    "openai",
    "anthropic",
    "gemini",
    "mistral",
    "deepseek",
    "xai",
    "cerebras",
];

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
    ///
    /// A model of the provider in use comes first: a conversation must not go to another company because a variable with its
    /// key happens to be set. `name//model` always means the provider.
    pub fn is_provider(&self, name: &str) -> bool {
        match self.settings.upstream() {
            Upstream::Provider(own, _) if own == name => !OWN_NAMED.contains(&name),
            Upstream::Provider(own, provider) if !is_without_slashes(own, provider) => self.settings.is_users(name),
            Upstream::Provider(..) | Upstream::Gateway(_) | Upstream::Nobody => {
                self.settings.providers.contains_key(name) || self.usable().contains(&name)
            }
        }
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

/// Returns true for a service none of whose models has a slash in its name, at its own address.
fn is_without_slashes(name: &str, provider: &config::Provider) -> bool {
    let service = KnownService::named(name).filter(|it| WITHOUT_SLASHES.contains(&it.name));
    let url = provider.connection.url().ok().map(|it| it.trim_end_matches('/'));
    service.is_some_and(|it| url.is_none_or(|url| url == it.base_url))
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

    /// A slash in the name of a model sends a conversation to another company only where nothing else can be meant.
    #[test]
    fn a_model_of_the_provider_in_use_comes_before_another_provider() {
        let keys = "OPENAI_API_KEY=1 GROQ_API_KEY=1 ANTHROPIC_API_KEY=1 TOGETHER_API_KEY=1 OPENROUTER_API_KEY=1";
        let own = |name: &str| format!("provider = '{name}'\n");
        for (text, more, name, expected) in [
            (own("groq"), "", "openai", false),
            (own("together"), "", "openai", false),
            (own("openrouter"), "", "anthropic", false),
            (own("ollama"), "", "openai", false),
            (BOTH.to_owned(), "", "openai", false),
            (
                own("openai"),
                "OPENAI_BASE_URL=http://127.0.0.1:1/v1",
                "anthropic",
                false,
            ),
            // The user has configured it.
            (own("groq") + "[providers.openai]\nmodel = 'm'\n", "", "openai", true),
            (BOTH.to_owned(), "", "gem", true),
            // The models of these have no slash.
            (own("anthropic"), "", "openai", true),
            (own("openai"), "", "groq", true),
            (own("openai"), "", "gemini", false),
            // Its own name: of the provider, or of a model.
            (own("anthropic"), "", "anthropic", true),
            (BOTH.to_owned(), "", "here", true),
            (own("groq"), "", "groq", false),
            (String::new(), "SHEAF_PROVIDER=groq", "groq", false),
            (own("openrouter"), "", "openrouter", false),
        ] {
            let (settings, environment) = settings(&text, &format!("{keys} {more}"));
            let roles = Roles::new(&settings, &environment);
            assert_eq!(roles.is_provider(name), expected, "{text}{more}: {name}");
        }
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
