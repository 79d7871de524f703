//! `sheaf login` and `sheaf logout`: stores a key per provider, checks it, and lists the providers that work.
//!
//! A key is read from the terminal without echo, or from standard input; never from an argument, which other users of
//! the machine and the shell's history would see. It is stored where the settings can already read it: a private file,
//! a command or the keyring. No output contains a key.

mod check;
mod list;
mod prompt;

use std::{
    io::{self, IsTerminal as _},
    path::PathBuf,
};

use anyhow::Result;

use self::{
    check::Finding,
    prompt::{Answer, Stopped, Waiting},
};
use super::{
    CliContext,
    arguments::{CommonArguments, Login, Logout, TargetArguments},
    code, complain, runtime, say,
};
use crate::{
    config::{self, KeySource, KnownService, Provider, Secret, Upstream, forget_in_keyring, store_in_keyring},
    models::catalogue,
    os::file,
    text::figure,
};

/// Members of `providers.NAME` that say where its key comes from.
const KEY_MEMBERS: [&str; 5] = ["api_key", "api_key_env", "key_command", "key_file", "keyring"];

/// Note on subscriptions, for the list and the help.
pub const SUBSCRIPTIONS: &str =
    "Subscriptions (ChatGPT, Claude Pro or Max) work only in their vendors' own programs; sheaf needs an API key.";

/// Runs `sheaf login`. Returns the exit code.
pub fn login(arguments: &Login) -> Result<u8> {
    if !arguments.extra.is_empty() || arguments.key.is_some() {
        complain(
            "a key is never an argument: the shell's history and other users could see it\n  \
             sheaf login PROVIDER asks for it; revoke a key that you typed there\n  \
             to send the words as a prompt: sheaf -- login …",
        );
        return Ok(code::USAGE);
    }
    let base = context(&arguments.common)?;
    let Some(name) = &arguments.provider else {
        let report = runtime(false)?.block_on(list::report(&base.settings, &base.environment));
        say(&report);
        return Ok(code::OK);
    };
    let Some((name, provider)) = provider(&base, name) else {
        return Ok(unknown(&base, name));
    };
    let account = Account { base, name, provider };
    if account.needs_no_key() {
        return account.use_server();
    }
    let done = Waiting::start().and_then(|mut it| account.login(arguments, &mut it));
    done.or_else(|error| error.downcast::<Stopped>().map(|it| it.0))
}

/// Runs `sheaf logout`. Returns the exit code.
pub fn logout(arguments: &Logout) -> Result<u8> {
    let base = context(&arguments.common)?;
    match provider(&base, &arguments.provider) {
        Some((name, provider)) => Account { base, name, provider }.logout(),
        None => Ok(unknown(&base, &arguments.provider)),
    }
}

/// Loads the user's own settings: a project cannot say anything about keys.
fn context(common: &CommonArguments) -> Result<CliContext> {
    let base = CliContext::by(common, &TargetArguments::default(), super::TrustSource::Settings)?;
    for problem in &base.problems {
        complain(&problem.to_string());
    }
    Ok(base)
}

/// Finds a provider by its name or title, ignoring case.
fn provider(base: &CliContext, wanted: &str) -> Option<(String, Provider)> {
    let known = config::SERVICES
        .iter()
        .find(|it| it.name.eq_ignore_ascii_case(wanted) || it.title.eq_ignore_ascii_case(wanted));
    let name = known.map_or(wanted, |it| it.name);
    Some((name.to_owned(), base.settings.provider_named(name, &base.environment)?))
}

/// Reports an unknown provider. A word that may be a key is not repeated.
fn unknown(base: &CliContext, wanted: &str) -> u8 {
    let own = base.settings.providers.keys().map(String::as_str);
    let services = config::SERVICES.iter().map(|it| it.name);
    let services = services.filter(|it| !base.settings.providers.contains_key(*it));
    let names: Vec<&str> = own.chain(services).collect();
    let is_name = wanted.len() <= 16 && wanted.bytes().all(|it| it.is_ascii_alphabetic());
    if is_name {
        let hint = config::suggestion(wanted, names.iter().copied());
        let hint = hint.unwrap_or_else(|| format!("providers: {}", names.join(", ")));
        complain(&format!("unknown provider `{wanted}`\n  {hint}"));
    } else {
        complain(&format!(
            "this is not the name of a provider\n  providers: {}\n  a key is never an argument; revoke one that you typed there",
            names.join(", ")
        ));
    }
    code::USAGE
}

/// Returns the page where a service's keys are made.
fn key_page(name: &str) -> Option<&'static str> {
    Some(match name {
        "openai" => "https://platform.openai.com/api-keys",
        "anthropic" => "https://console.anthropic.com/settings/keys",
        "gemini" => "https://aistudio.google.com/apikey",
        "openrouter" => "https://openrouter.ai/settings/keys",
        "mistral" => "https://console.mistral.ai/api-keys",
        "deepseek" => "https://platform.deepseek.com/api_keys",
        "groq" => "https://console.groq.com/keys",
        "xai" => "https://console.x.ai",
        "together" => "https://api.together.ai/settings/api-keys",
        "fireworks" => "https://fireworks.ai/account/api-keys",
        "cerebras" => "https://cloud.cerebras.ai",
        _ => return None,
    })
}

/// Title of a provider, as people know it.
fn title(name: &str) -> &str {
    KnownService::named(name).map_or(name, |it| it.title)
}

/// Place for a key that is stored.
enum Place {
    File(PathBuf),
    Command(String),
    Keyring,
}

impl Place {
    /// Returns the setting that points at it, and its value.
    fn setting(&self, name: &str) -> (&'static str, String) {
        match self {
            Self::File(path) => ("key_file", path.display().to_string()),
            Self::Command(line) => ("key_command", line.clone()),
            Self::Keyring => ("keyring", name.to_owned()),
        }
    }
}

/// A provider, and what the settings say about it.
struct Account {
    base: CliContext,
    name: String,
    provider: Provider,
}

impl Account {
    fn title(&self) -> &str {
        title(&self.name)
    }

    /// Path of a member of its settings.
    fn path(&self, member: &str) -> String {
        // A name with dots or blanks is quoted.
        let is_plain = self
            .name
            .bytes()
            .all(|it| it.is_ascii_alphanumeric() || b"-_".contains(&it));
        if is_plain {
            format!("providers.{}.{member}", self.name)
        } else {
            format!("providers.'{}'.{member}", self.name)
        }
    }

    /// Returns true for a server on this machine that asks for no key.
    fn needs_no_key(&self) -> bool {
        !self.provider.key.is_some() && KnownService::named(&self.name).is_some_and(|it| it.variables.is_empty())
    }

    /// Checks a server that needs no key, and uses it if nothing else is configured.
    fn use_server(&self) -> Result<u8> {
        let found = runtime(false)?.block_on(check::check(&self.name, &self.provider, &self.base.environment));
        let url = self.provider.connection.url().unwrap_or_default();
        match found {
            Finding::Works(models) => {
                let count = figure::count(models.len(), "model", "models");
                say(&format!(
                    "{} needs no key. It answers at {url}: {count}.\n",
                    self.title()
                ));
                self.start_with(&models, None)?;
                Ok(code::OK)
            }
            Finding::Refused(_) | Finding::NoList(_) | Finding::Failed(_) => {
                complain(&format!(
                    "{} needs no key, but no server answers at {url}\n  start it, then run: sheaf login {}",
                    self.title(),
                    self.name
                ));
                Ok(code::FAILED)
            }
        }
    }

    fn login(&self, arguments: &Login, waiting: &mut Waiting) -> Result<u8> {
        if arguments.keyring && !config::HAS_KEYRING {
            complain(&config::KeyringError::NotBuilt.to_string().replace('\n', "\n  "));
            return Ok(code::FAILED);
        }
        let place = match &arguments.key_command {
            Some(line) => Place::Command(line.clone()),
            None if arguments.keyring => Place::Keyring,
            None => match self.key_file() {
                Some(path) => Place::File(path),
                None => {
                    complain(&format!(
                        "`{}` cannot be the name of a file\n  use --key-command, or rename the provider",
                        self.name
                    ));
                    return Ok(code::USAGE);
                }
            },
        };
        let secret = match &place {
            Place::Command(line) => self.command_key(line, waiting),
            Place::File(_) | Place::Keyring => self.asked(waiting),
        };
        let secret = match secret? {
            Answer::Given(secret) => secret,
            Answer::Nothing(problem) => {
                complain(&format!("{problem}\n  nothing was stored"));
                return Ok(code::FAILED);
            }
        };
        let Some(models) = self.accepted(&secret, arguments, waiting)? else {
            return Ok(code::FAILED);
        };
        self.store(&place, &secret, waiting)?;
        self.start_with(&models, arguments.model.as_deref())?;
        Ok(code::OK)
    }

    /// File for its key; `None` if its name is no name of a file.
    fn key_file(&self) -> Option<PathBuf> {
        let is_plain = self
            .name
            .bytes()
            .all(|it| it.is_ascii_alphanumeric() || b"-_.".contains(&it));
        (is_plain && !self.name.starts_with('.') && self.name.len() <= 64)
            .then(|| self.base.paths.keys().join(&self.name))
    }

    /// Runs the key command once.
    fn command_key(&self, line: &str, waiting: &mut Waiting) -> Result<Answer> {
        let words = ["sh", "-c", line].map(str::to_owned).to_vec();
        let source = KeySource::Command(words);
        Ok(match waiting.wait(source.resolve(&self.base.environment))? {
            Ok(Some(secret)) => Answer::Given(secret),
            Ok(None) => Answer::Nothing("the key command gave no key".to_owned()),
            Err(error) => Answer::Nothing(super::chain(&anyhow::Error::new(error))),
        })
    }

    /// Reads the key from the terminal or from standard input.
    fn asked(&self, waiting: &mut Waiting) -> Result<Answer> {
        if !io::stdin().is_terminal() {
            return prompt::piped(waiting);
        }
        if let Some(page) = key_page(&self.name) {
            prompt::tell(&format!("Make an API key at {page}\n{SUBSCRIPTIONS}\n"));
        }
        let question = format!("Paste the API key of {} (it is not shown): ", self.title());
        prompt::hidden(waiting, &question)
    }

    /// Checks a key, and asks if it is to be stored unchecked. Returns the models that the server lists, or `None` if the
    /// key is not to be stored. Without a terminal, `--model` is the consent to a request for one token.
    fn accepted(&self, secret: &Secret, arguments: &Login, waiting: &mut Waiting) -> Result<Option<Vec<String>>> {
        if arguments.no_check {
            return Ok(Some(Vec::new()));
        }
        let provider = Provider {
            key: KeySource::Given(secret.clone()),
            ..self.provider.clone()
        };
        prompt::tell(&format!(
            "Checking the key with {} …\n",
            provider.connection.url().unwrap_or_default()
        ));
        let mut finding = waiting.wait(check::check(&self.name, &provider, &self.base.environment))?;
        if let Finding::NoList(_) = finding {
            let is_attended = io::stdin().is_terminal();
            let configured = provider.model.clone().filter(|_| is_attended);
            let model = arguments.model.clone().or(configured);
            let Some(model) = model else {
                complain(&format!(
                    "{} has no list of models to check the key with\n  \
                     name a model to check it with one token: sheaf login {} --model ID\n  \
                     or store it unchecked with --no-check",
                    self.title(),
                    self.name
                ));
                return Ok(None);
            };
            let question = format!(
                "{} has no list of models. Check the key with a request for one token of {model}? It may cost a fraction \
                 of a cent.",
                self.title()
            );
            if !is_attended {
                prompt::tell(&format!(
                    "{} has no list of models. Asking {model} for one token, which may cost a fraction of a cent …\n",
                    self.title()
                ));
            } else if !prompt::confirmed(waiting, &question)? {
                say("The key is stored unchecked.\n");
                return Ok(Some(Vec::new()));
            }
            finding = waiting.wait(check::one_token(&provider, &model, &self.base.environment))?;
            if let Finding::Works(models) = finding {
                say(&format!("{} accepts the key.\n", self.title()));
                return Ok(Some(models));
            }
        }
        // The server may repeat the key, which may be too short to be known as one.
        let finding = finding.without(secret);
        match finding {
            Finding::Works(models) => {
                if !models.is_empty() {
                    let count = figure::count(models.len(), "model", "models");
                    say(&format!("{} accepts the key: {count}.\n", self.title()));
                }
                Ok(Some(models))
            }
            Finding::Refused(failure) => {
                complain(&format!(
                    "the key was refused by {}\n{}  nothing was stored",
                    self.title(),
                    check::steps(&failure, key_page(&self.name))
                ));
                Ok(None)
            }
            Finding::NoList(failure) | Finding::Failed(failure) => {
                complain(&format!(
                    "the key could not be checked: {}\n{}",
                    check::seen(&failure),
                    check::steps(&failure, None)
                ));
                if prompt::confirmed(waiting, "Store the key unchecked?")? {
                    return Ok(Some(Vec::new()));
                }
                complain("nothing was stored; --no-check stores a key unchecked");
                Ok(None)
            }
        }
    }

    /// Stores the key, and the setting that points at it instead of any other.
    fn store(&self, place: &Place, secret: &Secret, waiting: &mut Waiting) -> Result<()> {
        match place {
            Place::File(path) => {
                file::private_folder(&self.base.paths.keys())?;
                let mut text = secret.expose().as_bytes().to_vec();
                text.push(b'\n');
                let stored = file::write_secret(path, &text);
                text.fill(0);
                stored?;
                say(&format!(
                    "Stored in {}, readable only by you.\n",
                    config::shown_path(path)
                ));
            }
            Place::Command(_) => say("Stored the command; it runs when a key is needed.\n"),
            Place::Keyring => {
                waiting.wait(store_in_keyring(&self.name, secret))??;
                say(&format!("Stored in the keyring as `{}`.\n", self.name));
            }
        }
        let (member, value) = place.setting(&self.name);
        let replaced = self.configured().into_iter().filter(|it| *it != member);
        for old in replaced {
            say(&format!("Replaced {} in the settings.\n", self.path(old)));
        }
        let mut values: Vec<(String, Option<String>)> = KEY_MEMBERS.iter().map(|it| (self.path(it), None)).collect();
        values.push((self.path(member), Some(value)));
        config::store_all(&self.base.paths, &values)?;
        Ok(())
    }

    /// Members with its key in the user's file.
    fn configured(&self) -> Vec<&'static str> {
        let is_users = |it: &&str| {
            let origin = self.base.settings.origin(&format!("providers.{}.{it}", self.name));
            origin.layer == config::Layer::User
        };
        KEY_MEMBERS.into_iter().filter(is_users).collect()
    }

    /// Makes it the provider to start with if there is none, with a model; and says what sheaf starts with.
    fn start_with(&self, models: &[String], wanted: Option<&str>) -> Result<()> {
        let before = match self.base.settings.upstream() {
            Upstream::Provider(name, _) => Some(name.to_owned()),
            Upstream::Gateway(_) | Upstream::Nobody => None,
        };
        let paths = &self.base.paths;
        let again = || {
            config::load(
                paths,
                None,
                &self.base.environment,
                &config::CommandLineSettings::default(),
            )
            .0
        };
        if again().upstream() == Upstream::Nobody {
            // Two providers without a choice between them would be a question again.
            config::store(paths, "provider", Some(before.as_deref().unwrap_or(&self.name)))?;
        }
        let settings = again();
        let own = settings.providers.get(&self.name).and_then(|it| it.model.as_deref());
        let is_open = own.is_none() && settings.model.is_none();
        let model = wanted
            .map(str::to_owned)
            .or_else(|| is_open.then(|| usual(models)).flatten());
        if let Some(model) = model.filter(|it| own != Some(it)) {
            config::store(paths, &self.path("model"), Some(&model))?;
        }
        self.tell_start(&again());
        Ok(())
    }

    fn tell_start(&self, settings: &config::Settings) {
        let used = settings.provider_named(&self.name, &self.base.environment);
        if let Some(KeySource::Given(_) | KeySource::Variables(_)) = used.map(|it| it.key)
            && let Some(variable) = variable(&self.name, settings, &self.base.environment)
        {
            say(&format!("{variable} is set and is used instead of the stored key.\n"));
        }
        match settings.upstream() {
            Upstream::Provider(name, provider) => {
                let model = settings.model().or(provider.model.as_deref());
                let model = model.map_or_else(|| "its first model".to_owned(), str::to_owned);
                say(&format!(
                    "sheaf starts with {}, {model}; /model changes it.\n",
                    title(name)
                ));
                if name != self.name {
                    say(&format!(
                        "For {}: sheaf --provider {}, or sheaf config set provider {}\n",
                        self.title(),
                        self.name,
                        self.name
                    ));
                }
            }
            Upstream::Gateway(_) => say(&format!(
                "sheaf starts with the gateway; for {}: sheaf --provider {}\n",
                self.title(),
                self.name
            )),
            Upstream::Nobody => {}
        }
    }

    fn logout(&self) -> Result<u8> {
        let mut removed = Vec::new();
        if let Some(path) = self.key_file()
            && file::remove(&path)?
        {
            removed.push(config::shown_path(&path));
        }
        let configured = self.configured();
        if configured.contains(&"keyring") {
            let KeySource::Keyring(entry) = &self.provider.key else {
                // A variable covers the setting; its entry has the provider's name.
                return self.forget(&self.name, removed, &configured);
            };
            return self.forget(entry, removed, &configured);
        }
        self.forget_settings(removed, &configured)
    }

    fn forget(&self, entry: &str, mut removed: Vec<String>, configured: &[&'static str]) -> Result<u8> {
        match runtime(false)?.block_on(forget_in_keyring(entry)) {
            Ok(true) => removed.push(format!("`{entry}` in the keyring")),
            Ok(false) => {}
            Err(error) => complain(&format!("the keyring still has `{entry}`: {error}")),
        }
        self.forget_settings(removed, configured)
    }

    /// Removes the settings of the key, and those that nothing uses without it.
    fn forget_settings(&self, mut removed: Vec<String>, configured: &[&'static str]) -> Result<u8> {
        let mut values: Vec<(String, Option<String>)> = Vec::new();
        for member in configured {
            // A file of the user's own stays where it is.
            removed.push(format!("{} in the settings", self.path(member)));
            values.push((self.path(member), None));
        }
        if removed.is_empty() {
            say(&format!("No key of {} is stored.\n", self.title()));
        } else {
            let settings = &self.base.settings;
            let variable = variable(&self.name, settings, &self.base.environment);
            let is_service = KnownService::named(&self.name).is_some();
            let has_address =
                settings.origin(&format!("providers.{}.base_url", self.name)).layer == config::Layer::User;
            if is_service && !has_address && variable.is_none() {
                values.push((self.path("model"), None));
                if settings.origin("provider").layer == config::Layer::User
                    && settings.provider.as_deref() == Some(self.name.as_str())
                {
                    values.push(("provider".to_owned(), None));
                }
            }
            config::store_all(&self.base.paths, &values)?;
            for it in &removed {
                say(&format!("Removed {it}.\n"));
            }
        }
        if let Some(variable) = variable(&self.name, &self.base.settings, &self.base.environment) {
            say(&format!(
                "{variable} still provides a key of {}; unset it to log out completely.\n",
                self.title()
            ));
        }
        if let Some(page) = key_page(&self.name).filter(|_| !removed.is_empty()) {
            say(&format!("To revoke the key itself: {page}\n"));
        }
        Ok(code::OK)
    }
}

/// Returns the variable that provides a key of this provider now.
fn variable(name: &str, settings: &config::Settings, environment: &config::Environment) -> Option<String> {
    let named = match &settings.providers.get(name).map(|it| &it.key) {
        Some(KeySource::Variables(names)) => names.clone(),
        Some(_) | None => Vec::new(),
    };
    let usual = KnownService::named(name).into_iter().flat_map(|it| it.variables);
    let mut all = named.into_iter().chain(usual.map(|it| (*it).to_owned()));
    all.find(|it| environment.get(it).is_some())
}

/// Returns a model to start with: of those in the catalogue that can call tools, one in the middle of the price list; else
/// the first. `None` if nothing is listed.
fn usual(models: &[String]) -> Option<String> {
    let mut priced: Vec<(f64, &String)> = models
        .iter()
        .filter_map(|id| {
            let known = catalogue::listed(id);
            let price = known
                .prices
                .filter(|_| known.tools == Some(true) && known.until.is_none())?;
            Some((price.output, id))
        })
        .collect();
    priced.sort_by(|a, b| a.0.total_cmp(&b.0));
    let middle = priced.get(priced.len() / 2).map(|it| it.1);
    middle.or_else(|| models.first()).cloned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_model_to_start_with_calls_tools_and_is_neither_the_cheapest_nor_the_dearest() {
        for (listed, expected) in [
            (
                &["whisper-1", "gpt-5.4-pro", "gpt-5.4-mini", "gpt-5.4"][..],
                Some("gpt-5.4"),
            ),
            (
                &["claude-haiku-4-5", "claude-opus-5", "claude-sonnet-5"],
                Some("claude-sonnet-5"),
            ),
            (&["own", "other"], Some("own")),
            (&[], None),
        ] {
            let listed: Vec<String> = listed.iter().map(|it| (*it).to_owned()).collect();
            assert_eq!(usual(&listed).as_deref(), expected, "{listed:?}");
        }
    }

    #[test]
    fn every_service_with_a_key_has_a_page_for_it() {
        for it in config::SERVICES {
            assert_eq!(key_page(it.name).is_some(), !it.variables.is_empty(), "{}", it.name);
        }
    }
}
