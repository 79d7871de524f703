//! Typed settings, merged from layers: defaults, user, project, environment, flags.
//!
//! One table, [`KEYS`], lists every key with its name, its kind of value, who may set it and its field in [`Settings`];
//! reading, the printed reference and the origin of each value follow from it. A wrong key or value never stops the
//! program: it becomes a [`Problem`] with file, line and the nearest right name, and the default applies. A project's
//! file may not set where requests go, how they get there, or which key they carry.

mod edit;
mod key;
mod keyring;
mod layer;
mod limits;
mod paths;
mod problem;
mod provider;
mod reference;
mod secret;
mod trust;
mod value;

use std::{collections::BTreeMap, path::Path, time::Duration};

pub use edit::{SettingsWriteError, append, set, store};
pub use key::{KEYS, Key};
pub use layer::{CommandLineSettings, Environment, Layer, Origin, SettingsFile, load, merge};
pub use limits::{ResultLimits, size};
pub use paths::Paths;
pub use problem::{Location, Problem, SourceText, nearest, suggestion};
pub use provider::{AddressError, Connection, Gateway, KnownService, Provider, SERVICES, Upstream, ollama_url};
pub use reference::{ExplainedValue, explain, reference};
pub use secret::{KeyError, KeySource, Secret};
pub use trust::{COMMANDS, Fingerprint, TrustError, TrustRecord, TrustStore};
pub use value::{ValueKind, duration};

/// All settings, merged. The lists and tables are empty by default; [`KEYS`] describes each field.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    pub gateway: Gateway,
    /// By name: the configured providers, and the chosen one if it is a known service without settings.
    pub providers: BTreeMap<String, Provider>,
    /// Name of the provider to use, if one was chosen.
    pub provider: Option<String>,
    /// Model to ask for. A provider's own `model` of the same or a stronger layer wins: see [`Settings::model`].
    pub model: Option<String>,
    /// Mode to start in: `agent`, `plan`, `ask` or `debug`.
    pub mode: String,
    /// Name of a theme, or `auto`.
    pub theme: String,
    /// False without colours, as with `NO_COLOR`.
    pub color: bool,
    /// True if clocks tick while something runs.
    pub motion: bool,
    /// True if the program takes mouse events.
    pub mouse: bool,
    /// True if links are written as terminal hyperlinks (OSC 8).
    pub links: bool,
    pub serve: Serve,
    /// Regular expressions; matches are removed from exports, beside known keys.
    pub redact: Vec<String>,
    pub ui: Ui,
    pub agent: Agent,
    /// Settings of single tools, by tool name.
    pub tools: BTreeMap<String, ToolSettings>,
    /// Folders whose workspaces are trusted without asking. `~/` is the home folder.
    pub trusted: Vec<String>,
    pub approvals: Approvals,
    pub web: Web,
    pub sandbox: Sandbox,
    pub context: Context,
    /// Checker commands by language, as program and arguments.
    pub lint: BTreeMap<String, Vec<String>>,
    /// Limits of tool results for the model.
    pub limits: ResultLimits,
    /// The user's own rules for every model, one text each.
    pub rules: Vec<String>,
    pub prompt: Prompt,
    pub roles: Roles,
    /// By model id: properties that override the catalogue and the server.
    pub models: BTreeMap<String, Model>,
    /// Origin of each value that is not a default, by path (`gateway.url`).
    pub origins: BTreeMap<String, Origin>,
}

/// Settings of `sheaf serve`.
#[derive(Clone, Debug, PartialEq)]
pub struct Serve {
    /// Address and port.
    pub listen: String,
    /// Token that clients must send. `None`: one is generated and stored.
    pub token: Option<Secret>,
    /// Maximum number of answers at the same time.
    pub max_streams: u64,
    /// Accepted host names beside localhost.
    pub allow_host: Vec<String>,
    /// Origins of web pages that may call the server.
    pub allow_origin: Vec<String>,
    /// Time that a stored conversation's turn continues after its last reader has left.
    pub linger: Duration,
    /// `reading` or `all`: the tools that clients can use.
    pub tools: String,
    /// True if conversations are stored.
    pub stateful: bool,
    /// True if each request is logged to standard error.
    pub access_log: bool,
}

/// Settings of the screen.
#[derive(Clone, Debug, PartialEq)]
pub struct Ui {
    /// Rows of a command's output above which it is folded to head and tail.
    pub output_rows: u64,
    /// `folded`, `shown` or `hidden`.
    pub thinking: String,
    /// `auto`, `osc9`, `osc99`, `osc777`, `bell` or `off`.
    pub notify: String,
    /// Language tag such as `de`, or `auto`.
    pub language: String,
    /// TextMate theme for code: a path, or the name of a file in the themes folder.
    pub syntax_theme: Option<String>,
    /// `auto`, `off`, `kitty`, `iterm2` or `sixel`.
    pub images: String,
    /// `plain` or `nerd`: the signs before documents.
    pub glyphs: String,
    /// True if drafts are edited with Vim keys.
    pub vim: bool,
    /// Parts of the header's right side, in their order.
    pub status: Vec<String>,
    /// Program, with its arguments, whose output replaces them.
    pub status_command: Option<Vec<String>>,
}

/// Settings of the embedded agent.
#[derive(Clone, Debug, PartialEq)]
pub struct Agent {
    /// `auto`, `full` or `short`: the tools that a model is offered.
    pub profile: String,
    /// `replace`, `sketch` or `both`.
    pub edit_style: String,
    /// `auto`, `off`, `low`, `medium` or `high`.
    pub effort: String,
    /// Time that a change waits for checkers. Zero: they are not run after a change.
    pub lint_wait: Duration,
    /// Requests for one message before the user is asked to continue.
    pub max_requests: u64,
    /// Tool calls for one message before the user is asked to continue.
    pub max_calls: u64,
    /// Number of identical failing calls in a row after which the model is warned.
    pub warn_failures: u64,
    /// Number of identical failing calls in a row that ends the answer.
    pub max_failures: u64,
    /// Cost limit of one answer, in dollars. `None`: no limit.
    pub max_dollars: Option<f64>,
    /// Cost limit of a whole conversation, in dollars. `None`: no limit.
    pub max_dollars_in_all: Option<f64>,
}

impl Default for Agent {
    fn default() -> Self {
        Self {
            profile: "auto".to_owned(),
            edit_style: "replace".to_owned(),
            effort: "auto".to_owned(),
            lint_wait: Duration::from_secs(1),
            max_requests: 50,
            max_calls: 200,
            warn_failures: 3,
            max_failures: 5,
            max_dollars: None,
            max_dollars_in_all: None,
        }
    }
}

/// Settings of one tool.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolSettings {
    /// False if no model is offered the tool.
    pub enabled: bool,
    /// Modes that offer the tool. `None`: all that permit it.
    pub modes: Option<Vec<String>>,
    /// Glob patterns, from the workspace root, of files that it may touch. `None`: all that the rules permit.
    pub allowed_paths: Option<Vec<String>>,
    /// True if every call asks.
    pub require_approval: bool,
    /// Maximum size of a result for the model, in bytes. `None`: the tool's own limit.
    pub max_bytes: Option<u64>,
}

impl Default for ToolSettings {
    fn default() -> Self {
        Self {
            enabled: true,
            modes: None,
            allowed_paths: None,
            require_approval: false,
            max_bytes: None,
        }
    }
}

/// Rules for actions of a model: run without asking, ask, or refuse.
#[derive(Clone, Debug, PartialEq)]
pub struct Approvals {
    /// `ask`, `list` or `sandbox`, the strictest first.
    pub run: String,
    pub allow: Vec<ConfiguredRule>,
    pub ask: Vec<ConfiguredRule>,
    pub deny: Vec<ConfiguredRule>,
}

/// An approval rule as written in the settings, with examples that are checked when it is loaded.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ConfiguredRule {
    /// Source text, such as `Shell(git push)`.
    pub rule: String,
    /// Calls that the rule must match.
    pub matches: Vec<String>,
    /// Calls that the rule must not match.
    pub not_matches: Vec<String>,
}

impl ConfiguredRule {
    pub fn new(rule: &str) -> Self {
        Self {
            rule: rule.to_owned(),
            ..Self::default()
        }
    }
}

/// Settings of commands and their sandbox.
#[derive(Clone, Debug, PartialEq)]
pub struct Sandbox {
    /// Time that a model waits for a command before it continues in the background.
    pub command_wait: Duration,
    /// Maximum run time of a command that was not started in the background.
    pub command_limit: Duration,
    /// Names of variables passed to commands, beside the usual ones.
    pub environment: Vec<String>,
}

/// Settings of the context that a model sees.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Context {
    /// Gitignore patterns of files that no tool sees, beside the built-in ones.
    pub hidden: Vec<String>,
}

/// Settings of web access for a model.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Web {
    /// Hosts that may be fetched although they are on this machine or in a private network.
    pub allow_private: Vec<String>,
    pub search: Search,
}

/// The web search service.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Search {
    /// `searxng`, `brave` or `tavily`. `None`: the model has no web search.
    pub kind: Option<String>,
    pub connection: Connection,
    pub key: KeySource,
}

/// The user's changes to the system prompt.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Prompt {
    /// Text added at the end.
    pub append: Option<String>,
    /// Replacement texts, by the name of a block.
    pub replace: BTreeMap<String, String>,
}

/// Models for side jobs: `provider/model`, or a model of the provider in use.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Roles {
    /// For titles, summaries and other small jobs.
    pub fast: Option<String>,
    /// For merging sketched edits into files.
    pub apply: Option<String>,
    /// For embeddings; unused so far.
    pub embed: Option<String>,
    /// Tried in turn when the previous model is overloaded.
    pub fallback: Vec<String>,
}

/// Properties of a model. `None`: taken from the catalogue or the server.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Model {
    /// Context window, in tokens.
    pub window: Option<u64>,
    /// Dollars per million input tokens.
    pub price_in: Option<f64>,
    /// Dollars per million output tokens.
    pub price_out: Option<f64>,
    /// Dollars per million input tokens read from the server's cache.
    pub price_cached: Option<f64>,
    /// Maximum length of an answer, in tokens.
    pub max_output: Option<u64>,
    /// True if it can call tools.
    pub tools: Option<bool>,
    /// True if it accepts images.
    pub images: Option<bool>,
    /// True if it thinks before it answers.
    pub reasoning: Option<bool>,
}

/// Variables that locate compilers and package managers. Commands need them, and they hold no secret.
const TOOLCHAINS: &[&str] = &[
    "CARGO_HOME",
    "RUSTUP_HOME",
    "RUSTUP_TOOLCHAIN",
    "GOPATH",
    "GOROOT",
    "GOMODCACHE",
    "JAVA_HOME",
    "NVM_DIR",
    "PYENV_ROOT",
    "VIRTUAL_ENV",
    "CONDA_PREFIX",
];

impl Default for Settings {
    fn default() -> Self {
        Self {
            gateway: Gateway::default(),
            providers: BTreeMap::new(),
            provider: None,
            model: None,
            mode: "agent".to_owned(),
            theme: "auto".to_owned(),
            color: true,
            motion: true,
            mouse: true,
            links: true,
            redact: Vec::new(),
            serve: Serve {
                listen: "127.0.0.1:8643".to_owned(),
                token: None,
                max_streams: 64,
                allow_host: Vec::new(),
                allow_origin: Vec::new(),
                linger: Duration::from_mins(1),
                tools: "reading".to_owned(),
                stateful: false,
                access_log: true,
            },
            ui: Ui {
                output_rows: 20,
                thinking: "folded".to_owned(),
                notify: "auto".to_owned(),
                language: "auto".to_owned(),
                syntax_theme: None,
                images: "auto".to_owned(),
                glyphs: "plain".to_owned(),
                vim: false,
                status: ["model", "effort", "context", "cost", "sandbox"]
                    .map(str::to_owned)
                    .to_vec(),
                status_command: None,
            },
            agent: Agent::default(),
            tools: BTreeMap::new(),
            trusted: Vec::new(),
            approvals: Approvals {
                run: "sandbox".to_owned(),
                allow: Vec::new(),
                ask: Vec::new(),
                deny: Vec::new(),
            },
            web: Web::default(),
            sandbox: Sandbox {
                command_wait: Duration::from_secs(30),
                command_limit: Duration::from_mins(10),
                environment: TOOLCHAINS.iter().map(|it| (*it).to_owned()).collect(),
            },
            context: Context::default(),
            lint: BTreeMap::new(),
            limits: ResultLimits::default(),
            rules: Vec::new(),
            prompt: Prompt::default(),
            roles: Roles::default(),
            models: BTreeMap::new(),
            origins: BTreeMap::new(),
        }
    }
}

/// Returns true if `root` lies in one of `folders` or is one. False if `root` does not exist.
pub fn is_trusted(folders: &[String], root: &Path) -> bool {
    let Ok(root) = root.canonicalize() else { return false };
    folders.iter().any(|it| {
        let home = it
            .strip_prefix("~/")
            .and_then(|rest| Some(std::env::home_dir()?.join(rest)));
        let folder = home.unwrap_or_else(|| it.into());
        folder.canonicalize().is_ok_and(|it| root.starts_with(it))
    })
}

impl Settings {
    /// Returns true if the user's settings trust the workspace, without asking.
    pub fn is_trusted(&self, root: &Path) -> bool {
        is_trusted(&self.trusted, root)
    }

    /// Returns the origin of the value at `path` (`gateway.url`, `providers.local.model`).
    pub fn origin(&self, path: &str) -> &Origin {
        self.origins.get(path).unwrap_or(&Origin::DEFAULT)
    }

    /// Returns the server to talk to: the one that the strongest layer names, the gateway before a provider of the same
    /// layer.
    ///
    /// If neither is named: the provider that `OPENAI_…` variables describe, else the only one configured.
    pub fn upstream(&self) -> Upstream<'_> {
        let gateway = self
            .gateway
            .connection
            .has_url()
            .then(|| self.origin("gateway.url").layer);
        let provider = self.provider.as_ref().map(|_| self.origin("provider").layer);
        if gateway.is_some() && gateway >= provider {
            return Upstream::Gateway(&self.gateway);
        }
        let in_environment = ["base_url", "api_key"].into_iter().any(|it| {
            let layer = self.origin(&format!("providers.openai.{it}")).layer;
            layer == Layer::Environment
        });
        let mut described = self
            .providers
            .keys()
            .filter(|it| self.is_described(it))
            .map(String::as_str);
        let name = match &self.provider {
            Some(name) => Some(name.as_str()),
            None if in_environment => Some("openai"),
            None => described.next().filter(|_| described.next().is_none()),
        };
        let found = name.and_then(|name| self.providers.get_key_value(name));
        found.map_or(Upstream::Nobody, |(name, provider)| Upstream::Provider(name, provider))
    }

    /// Returns the provider of that name: as configured, or a known service.
    pub fn provider_named(&self, name: &str, environment: &Environment) -> Option<Provider> {
        let configured = self.providers.get(name).cloned();
        configured.or_else(|| Some(KnownService::named(name)?.provider(environment)))
    }

    /// Returns true if the user configured the provider, beyond a variable or a project that names its model.
    fn is_described(&self, name: &str) -> bool {
        let prefix = format!("providers.{name}.");
        self.origins.iter().any(|(path, origin)| {
            let is_users = matches!(origin.layer, Layer::User | Layer::Flag);
            path.strip_prefix(&prefix).is_some_and(|it| it != "model" || is_users)
        })
    }

    /// Returns the model to ask for: the strongest layer's, a provider's own before the general one of the same layer.
    pub fn model(&self) -> Option<&str> {
        let general = self.model.as_deref();
        let own = match self.upstream() {
            Upstream::Provider(name, provider) => {
                let layer = self.origin(&format!("providers.{name}.model")).layer;
                provider.model.as_deref().map(|it| (layer, it))
            }
            Upstream::Gateway(_) | Upstream::Nobody => None,
        };
        match own {
            Some((layer, own)) if general.is_none() || layer >= self.origin("model").layer => Some(own),
            Some(_) | None => general,
        }
    }
}
