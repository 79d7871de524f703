//! Typed settings from layers: defaults, user, project, environment, flags.
//!
//! One table ([`KEYS`]) says what a key is called, what it takes, where it may come from and where it goes; reading,
//! the printed reference and the origin of each value follow from it. A wrong key or value never stops the program:
//! it becomes a [`Problem`] with file, line and the nearest right name, and everything else holds. A project's file may
//! not say where requests go, how they get there, or what key they carry.

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

pub use edit::{NotStored, append, set, store};
pub use key::{KEYS, Key};
pub use layer::{Environment, File, Layer, Options, Origin, load, merge};
pub use limits::{Limits, size};
pub use paths::Paths;
pub use problem::{Place, Problem, Source, nearest, suggestion};
pub use provider::{Connection, Gateway, Known, Provider, Refused, SERVICES, Upstream, ollama_url};
pub use reference::{Explained, explain, reference};
pub use secret::{KeyError, KeySource, Secret};
pub use trust::{COMMANDS, Ledger, LedgerError, Print, Said};
pub use value::{Kind, duration};

/// Everything that can be configured.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    pub gateway: Gateway,
    /// By name: what is configured, and the chosen one where its name alone says enough.
    pub providers: BTreeMap<String, Provider>,
    /// The name of the provider to use.
    pub provider: Option<String>,
    pub model: Option<String>,
    /// `agent`, `plan`, `ask` or `debug`.
    pub mode: String,
    /// The name of a theme, or `auto`.
    pub theme: String,
    pub color: bool,
    /// Whether clocks may tick while something runs.
    pub motion: bool,
    pub mouse: bool,
    /// Whether links carry their target for the terminal (OSC 8).
    pub links: bool,
    pub serve: Serve,
    /// Regular expressions of what no export holds.
    pub redact: Vec<String>,
    pub ui: Ui,
    pub agent: Agent,
    /// By name.
    pub tools: BTreeMap<String, ToolSettings>,
    /// Folders whose own rules hold.
    pub trusted: Vec<String>,
    pub approvals: Approvals,
    pub web: Web,
    pub sandbox: Sandbox,
    pub context: Context,
    /// By language: what says what is wrong with a file.
    pub lint: BTreeMap<String, Vec<String>>,
    /// How much of a result a model is given.
    pub limits: Limits,
    /// What the user wants every model to keep to.
    pub rules: Vec<String>,
    pub prompt: Prompt,
    pub roles: Roles,
    /// By id: what the program cannot ask the server.
    pub models: BTreeMap<String, Model>,
    /// By path, for all that is not a default.
    pub origins: BTreeMap<String, Origin>,
}

/// `sheaf serve`.
#[derive(Clone, Debug, PartialEq)]
pub struct Serve {
    /// Address and port.
    pub listen: String,
    pub token: Option<Secret>,
    pub max_streams: u64,
    /// Names beside localhost under which a request may ask for the server.
    pub allow_host: Vec<String>,
    /// Origins of web pages that may call.
    pub allow_origin: Vec<String>,
    /// How long a turn with a conversation goes on after its last reader left.
    pub linger: Duration,
    /// `reading` or `all`.
    pub tools: String,
    /// Conversations are kept.
    pub stateful: bool,
    /// Each answered request is a line on standard error.
    pub access_log: bool,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Ui {
    /// Rows of a command's output above which it is folded to head and tail.
    pub output_rows: u64,
    /// `folded`, `shown` or `hidden`.
    pub thinking: String,
    pub notify: String,
    /// A tag as `de`, or `auto`.
    pub language: String,
    /// A theme for code in TextMate's form: a path, or a name in the folder of themes.
    pub syntax_theme: Option<String>,
    /// `auto` or `off`: whether pictures are drawn where the terminal can.
    pub images: String,
    /// `plain` or `nerd`: the signs before documents.
    pub glyphs: String,
    /// Whether drafts are edited as in Vim.
    pub vim: bool,
    /// Parts of the header's right side, in their order.
    pub status: Vec<String>,
    /// A program that says what stands there instead, with its arguments.
    pub status_command: Option<Vec<String>>,
}

/// How the embedded agent works.
#[derive(Clone, Debug, PartialEq)]
pub struct Agent {
    /// `auto`, `full` or `short`.
    pub profile: String,
    /// `replace`, `sketch` or `both`.
    pub edit_style: String,
    /// `auto`, `off`, `low`, `medium` or `high`.
    pub effort: String,
    /// Zero: checkers are not asked about a change.
    pub lint_wait: Duration,
    pub max_requests: u64,
    pub max_calls: u64,
    /// The same call that fails so often in a row is warned of, and ends the answer.
    pub warn_failures: u64,
    pub max_failures: u64,
    /// What one answer may cost, and a whole conversation; `None`: anything.
    pub max_dollars: Option<f64>,
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

/// What the user says of one tool.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolSettings {
    pub enabled: bool,
    /// `None`: all that permit it.
    pub modes: Option<Vec<String>>,
    /// `None`: everything that the rules permit.
    pub allowed_paths: Option<Vec<String>>,
    pub require_approval: bool,
    /// Of a result, for the model; `None`: what the tool itself gives at most.
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

/// What a model may do without a question, and what it may not.
#[derive(Clone, Debug, PartialEq)]
pub struct Approvals {
    /// `ask`, `list` or `sandbox`.
    pub run: String,
    pub allow: Vec<Guard>,
    pub ask: Vec<Guard>,
    pub deny: Vec<Guard>,
}

/// A rule as it is written, with examples that whoever reads it checks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Guard {
    pub rule: String,
    /// What it must hold for.
    pub matches: Vec<String>,
    /// And what it must not.
    pub not_matches: Vec<String>,
}

impl Guard {
    pub fn new(rule: &str) -> Self {
        Self {
            rule: rule.to_owned(),
            ..Self::default()
        }
    }
}

/// What is around commands.
#[derive(Clone, Debug, PartialEq)]
pub struct Sandbox {
    /// How long a command is waited for before it goes on in the background.
    pub command_wait: Duration,
    /// How long a command may take that was not started in the background.
    pub command_limit: Duration,
    /// Names of variables that commands are told.
    pub environment: Vec<String>,
}

/// What a model is shown.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Context {
    /// Patterns of files that no tool sees, behind the built-in ones.
    pub hidden: Vec<String>,
}

/// How the web is reached for a model.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Web {
    /// Hosts that are reached although they are near.
    pub allow_private: Vec<String>,
    pub search: Search,
}

/// The service that searches.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Search {
    /// `searxng`, `brave` or `tavily`.
    pub kind: Option<String>,
    pub connection: Connection,
    pub key: KeySource,
}

/// The user's part in the system prompt.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Prompt {
    /// Stands at the end.
    pub append: Option<String>,
    /// By the name of a block: what is said in its place.
    pub replace: BTreeMap<String, String>,
}

/// Which models do what beside talking: `provider/model`, or a model of the provider that talks.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Roles {
    /// Titles, summaries and other side jobs.
    pub fast: Option<String>,
    /// Puts sketched edits into files.
    pub apply: Option<String>,
    pub embed: Option<String>,
    /// Asked in turn when the one before is overloaded.
    pub fallback: Vec<String>,
}

/// What is known of a model.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Model {
    /// Tokens that it can take in.
    pub window: Option<u64>,
    /// Dollars for a million tokens in.
    pub price_in: Option<f64>,
    /// Dollars for a million tokens out.
    pub price_out: Option<f64>,
    /// Dollars for a million tokens that the server had in its cache.
    pub price_cached: Option<f64>,
    /// Tokens of an answer at most.
    pub max_output: Option<u64>,
    /// Whether it calls tools.
    pub tools: Option<bool>,
    /// Whether it sees images.
    pub images: Option<bool>,
    /// Whether it thinks before it answers.
    pub reasoning: Option<bool>,
}

/// Where compilers and package managers live: without these a command would not find them, and they hold no secret.
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
            limits: Limits::default(),
            rules: Vec::new(),
            prompt: Prompt::default(),
            roles: Roles::default(),
            models: BTreeMap::new(),
            origins: BTreeMap::new(),
        }
    }
}

/// Whether one of these folders, or one above it, is `root`.
pub fn trusts(folders: &[String], root: &Path) -> bool {
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
    /// Whether the user's own settings let everything of a workspace act.
    pub fn trusts(&self, root: &Path) -> bool {
        trusts(&self.trusted, root)
    }

    /// Where the value at `path` (`gateway.url`, `providers.local.model`) comes from.
    pub fn origin(&self, path: &str) -> &Origin {
        self.origins.get(path).unwrap_or(&Origin::DEFAULT)
    }

    /// Whom to talk to: what the strongest layer names, the gateway before a provider of the same layer.
    ///
    /// When neither is named, the provider that `OPENAI_…` describes, else the only one configured.
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

    /// The provider of that name: as it is configured, or a service that is known by it.
    pub fn provider_named(&self, name: &str, environment: &Environment) -> Option<Provider> {
        let configured = self.providers.get(name).cloned();
        configured.or_else(|| Some(Known::named(name)?.provider(environment)))
    }

    /// Whether the user said more of a provider than a variable or a project that names a model for it.
    fn is_described(&self, name: &str) -> bool {
        let prefix = format!("providers.{name}.");
        self.origins.iter().any(|(path, origin)| {
            let is_users = matches!(origin.layer, Layer::User | Layer::Flag);
            path.strip_prefix(&prefix).is_some_and(|it| it != "model" || is_users)
        })
    }

    /// The model to ask for: the strongest layer's word, the upstream's own before the general one of the same layer.
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
