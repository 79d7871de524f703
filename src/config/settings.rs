//! All settings: each with its description, field, default, kind of value, and who may set it.
//!
//! To add one, add a field to a struct below. Parsing, the `SHEAF_…` variable, the reference and the origin of its value
//! follow from that line. The description of a field is both its documentation and its text in the reference.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    sync::LazyLock,
    time::Duration,
};

use super::{
    ConfiguredRule, KeySource, Origin, Secret,
    value::{KeyMethod, Slot, ValueKind},
};
use crate::text::WordList;

/// Returns the field of a setting, for the name that replaces `*`.
type FindSlot = dyn for<'a> Fn(&'a mut Settings, &str) -> Slot<'a> + Send + Sync;

/// A setting: its path, kind of value and field in [`Settings`].
pub struct Key {
    /// Dotted path; `*` stands for a name that the user chooses.
    pub path: String,
    pub kind: ValueKind,
    /// Environment variable that sets it.
    pub variable: Option<String>,
    /// True if a project's file may set it.
    pub in_project: bool,
    /// True if a project's value may only add to the user's caution.
    pub(super) tightens: bool,
    /// Description in English, for the reference.
    pub about: &'static str,
    /// Returns the field, for the name that replaces `*`.
    pub(super) slot: Box<FindSlot>,
}

impl Key {
    /// Describes the key `name` in the table `section`, which is empty for the top level.
    fn new(
        section: &str,
        name: &str,
        about: &'static str,
        kind: ValueKind,
        slot: impl for<'a> Fn(&'a mut Settings, &str) -> Slot<'a> + Send + Sync + 'static,
    ) -> Self {
        Self {
            path: [section, name].join(".").trim_start_matches('.').to_owned(),
            kind,
            variable: None,
            in_project: false,
            tightens: false,
            about: about.trim_start(),
            slot: Box::new(slot),
        }
    }

    /// Gives it the variable that follows from its path: `ui.vim` is `SHEAF_UI_VIM`.
    fn variable(self) -> Self {
        let name = format!("SHEAF_{}", self.path.replace('.', "_").to_ascii_uppercase());
        self.set_by(&name)
    }

    fn set_by(mut self, variable: &str) -> Self {
        self.variable = Some(variable.to_owned());
        self
    }

    fn in_project(mut self) -> Self {
        self.in_project = true;
        self
    }

    fn tightens(mut self) -> Self {
        self.tightens = true;
        self.in_project()
    }

    /// Returns the parts of its path.
    pub(super) fn parts(&self) -> std::str::Split<'_, char> {
        self.path.split('.')
    }

    /// Returns the id of its description in other languages: `setting-net-retry-for` for `net.retry_for`. Keys that are
    /// described alike share the id of the first one.
    pub fn text_id(&self) -> String {
        let first = KEYS.iter().find(|it| it.about == self.about).unwrap_or(self);
        let parts = first.parts().filter(|it| *it != "*");
        parts.fold("setting".to_owned(), |id, part| {
            format!("{id}-{}", part.replace('_', "-"))
        })
    }

    /// Returns true if it is one of the alternatives for setting an API key or token, which exclude each other.
    pub(super) fn gives_key(&self) -> bool {
        matches!((self.slot)(&mut Settings::default(), ""), Slot::Key(..))
    }

    /// Returns the keys that may begin with the first part of a path, which is most of what a search among all has to look at.
    pub(super) fn beginning_like(path: &[String]) -> impl Iterator<Item = &'static Self> {
        let first = path.first().map_or("", String::as_str);
        KEYS.iter().filter(move |it| it.path.starts_with(first))
    }

    /// Finds the key at a path.
    pub(super) fn at(path: &[String]) -> Option<&'static Self> {
        Self::beginning_like(path).find(|key| {
            let mut parts = key.parts();
            path.iter()
                .all(|it| parts.next().is_some_and(|part| part == "*" || part == it))
                && parts.next().is_none()
        })
    }
}

/// Returns the struct that holds a table of settings, for the name that replaces `*`.
type Section<T> = for<'a> fn(&'a mut Settings, &str) -> &'a mut T;

/// Declares a struct of settings. Each field has a default; one that is a setting then has its kind of value, and any of
/// `variable`, `in_project` and `tightens`.
macro_rules! settings {
    (
        $(#[$meta:meta])* pub struct $name:ident {
            $($(#[doc = $about:literal])* $vis:vis $field:ident: $type:ty = $default:expr $(, $kind:expr $(, $flag:ident)*)?;)*
        }
    ) => {
        $(#[$meta])*
        #[derive(Clone, Debug, PartialEq)]
        pub struct $name {
            $($(#[doc = $about])* $vis $field: $type,)*
        }

        impl Default for $name {
            fn default() -> Self {
                Self { $($field: $default,)* }
            }
        }

        impl $name {
            fn keys(section: &str, this: Section<Self>) -> Vec<Key> {
                let mut keys = Vec::new();
                $(settings!(@key keys, section, this.$field, concat!($($about),*) $(, $kind $(, $flag)*)?);)*
                keys
            }
        }
    };
    (@key $keys:ident, $section:ident, $this:ident.$field:ident, $about:expr) => {};
    (@key $keys:ident, $section:ident, $this:ident.$field:ident, $about:expr, $kind:expr $(, $flag:ident)*) => {
        let key = Key::new($section, stringify!($field), $about, $kind, move |it, name| {
            Slot::from(&mut $this(it, name).$field)
        });
        $keys.push(key$(.$flag())*);
    };
}

const COUNT: ValueKind = ValueKind::Whole {
    least: 1,
    most: u64::MAX,
};

/// Range of counts of lines, matches and files.
const ENTRIES: ValueKind = range(1, 1_000_000);

const BYTES: ValueKind = range(1 << 10, 64 << 20);

const fn range(least: u64, most: u64) -> ValueKind {
    ValueKind::Whole { least, most }
}

/// Variables of other programs that are honoured, with the path that each sets.
pub(super) const FOREIGN_VARIABLES: &[(&str, &str)] = &[
    ("OPENAI_BASE_URL", "providers.openai.base_url"),
    ("OPENAI_API_KEY", "providers.openai.api_key"),
    ("OPENAI_MODEL", "providers.openai.model"),
    ("ANTHROPIC_BASE_URL", "providers.anthropic.base_url"),
];

/// `SHEAF_…` variables that are no settings.
pub(super) const NON_SETTING_VARIABLES: &[&str] = &[
    "SHEAF_COMMIT",
    "SHEAF_DEV",
    "SHEAF_LOG",
    "SHEAF_SANDBOX",
    "SHEAF_SANDBOX_AT_MOST",
];

/// All keys, in the order of the reference.
pub static KEYS: LazyLock<Vec<Key>> = LazyLock::new(|| {
    let url = "Address of the documents gateway to use instead of a provider.";
    let gateway = Key::new("gateway", "url", url, ValueKind::Url, |it, _| {
        Slot::from(&mut it.gateway.connection.url)
    });
    let token = ["token", "token_env", "token_command", "token_file", "token_keyring"];
    let cache_token = [
        "cache_token",
        "cache_token_env",
        "cache_token_command",
        "cache_token_file",
        "cache_token_keyring",
    ];
    let url = "Address, up to `/v1`. A known service needs none.";
    let base_url = Key::new("providers.*", "base_url", url, ValueKind::Url, |it, name| {
        Slot::from(&mut provider(it, name).connection.url)
    });
    let api_key = ["api_key", "api_key_env", "key_command", "key_file", "keyring"];
    let block = "Replacement of a block of the system prompt, or the file `prompts/<block>.md`: role, communication, \
                 no_tools, tool_calling, maximize_parallel_tool_calls, maximize_context_understanding, making_code_changes, \
                 using_git, long_work, citing_code, task_management, model_guidance, plan_mode, ask_mode, debug_mode.";
    let block = Key::new("prompt.replace", "*", block, ValueKind::Text, |it, name| {
        Slot::from(it.prompt.replace.entry(name.to_owned()).or_default())
    });
    let url = "Address of the service: needed for SearXNG, known for the others.";
    let search_url = Key::new("web.search", "url", url, ValueKind::Url, |it, _| {
        Slot::from(&mut it.web.search.connection.url)
    });
    let allow = "Allow an unencrypted address in a private network.";
    let allow_http = Key::new("web.search", "allow_http", allow, ValueKind::Flag, |it, _| {
        Slot::from(&mut it.web.search.connection.allow_http)
    });
    let command = "Checker of a language, such as \"cargo clippy --message-format=json\" for rust. cargo check, tsc, eslint, \
                   ruff and go vet need no entry.";
    let lint = Key::new("lint", "*", command, ValueKind::Command, |it, name| {
        Slot::from(it.lint.entry(name.to_owned()).or_default())
    });
    let sections = [
        Settings::keys("", |it, _| it),
        Net::keys("net", |it, _| &mut it.net),
        vec![gateway.set_by("SHEAF_GATEWAY")],
        key_source("gateway", token, Some("SHEAF_TOKEN"), |it, _| &mut it.gateway.token),
        Gateway::keys("gateway", |it, _| &mut it.gateway),
        Connection::keys("gateway", |it, _| &mut it.gateway.connection),
        vec![base_url],
        key_source("providers.*", api_key, None, |it, name| &mut provider(it, name).key),
        Provider::keys("providers.*", provider),
        Connection::keys("providers.*", |it, name| &mut provider(it, name).connection),
        Prompt::keys("prompt", |it, _| &mut it.prompt),
        vec![block],
        Roles::keys("roles", |it, _| &mut it.roles),
        Indexing::keys("index", |it, _| &mut it.index),
        key_source("index", cache_token, Some("SHEAF_INDEX_CACHE_TOKEN"), |it, _| {
            &mut it.index.cache_token
        }),
        Model::keys("models.*", |it, name| it.models.entry(name.to_owned()).or_default()),
        Agent::keys("agent", |it, _| &mut it.agent),
        HookSettings::keys("hooks.*", |it, name| it.hooks.entry(name.to_owned()).or_default()),
        ToolSettings::keys("tools.*", |it, name| it.tools.entry(name.to_owned()).or_default()),
        ResultLimits::keys("limits", |it, _| &mut it.limits),
        Approvals::keys("approvals", |it, _| &mut it.approvals),
        Web::keys("web", |it, _| &mut it.web),
        Search::keys("web.search", |it, _| &mut it.web.search),
        vec![search_url.variable()],
        key_source("web.search", api_key, Some("SHEAF_WEB_SEARCH_API_KEY"), |it, _| {
            &mut it.web.search.key
        }),
        vec![allow_http],
        Ui::keys("ui", |it, _| &mut it.ui),
        Sandbox::keys("sandbox", |it, _| &mut it.sandbox),
        Context::keys("context", |it, _| &mut it.context),
        vec![lint],
        McpServer::keys("mcp.*", |it, name| it.mcp.entry(name.to_owned()).or_default()),
        LanguageServer::keys("lsp.*", |it, name| it.lsp.entry(name.to_owned()).or_default()),
        Commit::keys("commit", |it, _| &mut it.commit),
        Export::keys("export", |it, _| &mut it.export),
        Serve::keys("serve", |it, _| &mut it.serve),
    ];
    sections.into_iter().flatten().collect()
});

fn provider<'a>(settings: &'a mut Settings, name: &str) -> &'a mut Provider {
    settings.providers.entry(name.to_owned()).or_default()
}

/// Describes the alternatives for an API key or token: itself, variable, command, file, keyring. `variable` sets the key
/// itself.
fn key_source(section: &str, names: [&str; 5], variable: Option<&str>, source: Section<KeySource>) -> Vec<Key> {
    let kinds = [
        (
            KeyMethod::Given,
            ValueKind::Secret,
            "The key or token. In a file only if no one else can read that file.",
        ),
        (
            KeyMethod::Variable,
            ValueKind::Text,
            "Environment variable that holds the key.",
        ),
        (
            KeyMethod::Command,
            ValueKind::Command,
            "Command whose first line of output is the key; run when a request is made.",
        ),
        (
            KeyMethod::File,
            ValueKind::Path,
            "File that holds the key and that only you can read.",
        ),
        (
            KeyMethod::Keyring,
            ValueKind::Text,
            "Name of the key in the system's keyring, under the service `sheaf`; for builds with the feature `keyring`.",
        ),
    ];
    let keys = names.into_iter().zip(kinds).map(|(name, (method, kind, about))| {
        let key = Key::new(section, name, about, kind, move |it, name| {
            Slot::Key(source(it, name), method)
        });
        match variable {
            Some(variable) if method == KeyMethod::Given => key.set_by(variable),
            Some(_) | None => key,
        }
    });
    keys.collect()
}

settings! {
    /// All settings, merged. Lists and tables are empty by default.
    pub struct Settings {
        /// Provider to use: one of `providers`, or a known service such as openai, openrouter, ollama.
        pub provider: Option<String> = None, ValueKind::Text, variable, in_project;
        /// Model to use, unless the provider's own entry names one. Unset: its usual one; `sheaf status` shows which.
        pub model: Option<String> = None, ValueKind::Text, variable, in_project;
        /// Mode to start in.
        pub mode: String = "agent".to_owned(), ValueKind::Word(&["agent", "plan", "ask", "debug"]), variable, in_project;
        /// Name of a theme, or `auto`: dark or light, as the terminal's background.
        pub theme: String = "auto".to_owned(), ValueKind::Text, variable, in_project;
        /// Use colours. A `NO_COLOR` that is not empty turns them off.
        pub color: bool = true, ValueKind::Flag, variable;
        /// Show running timers.
        pub motion: bool = true, ValueKind::Flag, variable;
        /// Use the mouse: the wheel scrolls, clicks select. The terminal's own selection then needs Shift.
        pub mouse: bool = true, ValueKind::Flag, variable;
        /// Make links clickable in terminals that support it (OSC 8).
        pub links: bool = true, ValueKind::Flag, variable;
        /// Your own rules for every model, beside those of the workspace: one text each.
        pub rules: Vec<String> = Vec::new(), ValueKind::List;
        /// Folders whose workspaces are trusted without asking; `~/` is the home folder.
        pub trusted: Vec<String> = Vec::new(), ValueKind::List;
        pub net: Net = Net::default();
        pub gateway: Gateway = Gateway::default();
        /// By name: the configured providers, and the chosen one if it is a known service without settings.
        pub providers: BTreeMap<String, Provider> = BTreeMap::new();
        pub serve: Serve = Serve::default();
        pub export: Export = Export::default();
        pub commit: Commit = Commit::default();
        pub ui: Ui = Ui::default();
        pub agent: Agent = Agent::default();
        /// Settings of single tools, by tool name.
        pub tools: BTreeMap<String, ToolSettings> = BTreeMap::new();
        pub approvals: Approvals = Approvals::default();
        pub web: Web = Web::default();
        pub sandbox: Sandbox = Sandbox::default();
        pub context: Context = Context::default();
        /// Checker commands by language, as program and arguments.
        pub lint: BTreeMap<String, Vec<String>> = BTreeMap::new();
        /// MCP servers, by name.
        pub mcp: BTreeMap<String, McpServer> = BTreeMap::new();
        /// Language servers, by name.
        pub lsp: BTreeMap<String, LanguageServer> = BTreeMap::new();
        pub limits: ResultLimits = ResultLimits::default();
        pub prompt: Prompt = Prompt::default();
        pub roles: Roles = Roles::default();
        /// The index of the code.
        pub index: Indexing = Indexing::default();
        /// By name: your own hooks.
        pub hooks: BTreeMap<String, HookSettings> = BTreeMap::new();
        /// By model id: properties that override the catalogue and the server.
        pub models: BTreeMap<String, Model> = BTreeMap::new();
        /// Origin of each value that is not a default, by path (`gateway.url`).
        pub origins: BTreeMap<String, Origin> = BTreeMap::new();
    }
}

settings! {
    /// Requests to models and gateways.
    pub struct Net {
        /// Number of times that a failed request is repeated: no connection, a server that is busy or failed, an answer that broke
        /// off before one of its calls was complete.
        pub retries: u64 = 10, ValueKind::Whole { least: 0, most: 100 }, variable;
        /// Time limit for all of that; a longer pause that a server asks for is not waited for without a person.
        pub retry_for: Duration = Duration::from_mins(3), ValueKind::Duration, variable;
    }
}

settings! {
    /// A documents gateway.
    pub struct Gateway {
        pub connection: Connection = Connection::default();
        pub token: KeySource = KeySource::None;
        /// Dialect of the stream to request.
        pub dialect: String = "auto".to_owned(), ValueKind::Word(&["auto", "a", "b"]);
        /// Workspace context to send: its path; also your rules and those of a trusted workspace; also the names of its
        /// files. The files that your messages name with `@` are sent as open files with each.
        pub context: String = "layout".to_owned(), ValueKind::Word(&["path", "rules", "layout"]), variable;
    }
}

settings! {
    /// Address of a server and how to reach it.
    pub struct Connection {
        /// Read through [`Connection::url`] only, which refuses unencrypted addresses.
        pub(super) url: Option<String> = None;
        /// Additional headers of every request. Values are kept secret.
        pub headers: BTreeMap<String, Secret> = BTreeMap::new(), ValueKind::Headers;
        /// Certificates to trust in addition to the system's (PEM).
        pub ca_file: Option<PathBuf> = None, ValueKind::Path;
        /// Your certificate and its private key in one file (PEM).
        pub client_cert: Option<PathBuf> = None, ValueKind::Path;
        /// Proxy to use instead of the environment's, or `none`.
        pub proxy: Option<Secret> = None, ValueKind::Proxy;
        /// Allow an unencrypted address in a private network.
        pub allow_http: bool = false, ValueKind::Flag;
        /// `net.retries`.
        pub retries: u64 = 10;
        /// `net.retry_for`.
        pub retry_for: Duration = Duration::from_mins(3);
        /// Time limit for connecting.
        pub connect_timeout: Duration = Duration::from_secs(10), ValueKind::Duration;
        /// Time limit until the first byte of an answer; a server that loads its model first needs minutes.
        pub first_byte_timeout: Duration = Duration::from_mins(2), ValueKind::Duration;
        /// Time limit without any byte, heartbeats included.
        pub idle_timeout: Duration = Duration::from_mins(1), ValueKind::Duration;
    }
}

settings! {
    /// A model server.
    pub struct Provider {
        /// Wire format; openai means chat completions, as most servers use. A known service needs none.
        pub kind: String = "openai".to_owned(),
            ValueKind::Word(&["openai", "openai-responses", "anthropic", "gemini", "ollama"]);
        pub connection: Connection = Connection::default();
        pub key: KeySource = KeySource::None;
        /// Model to use with this provider.
        pub model: Option<String> = None, ValueKind::Text, in_project;
        /// Show a `<think>` block at the start of an answer as thinking.
        pub think_tags: bool = true, ValueKind::Flag;
        /// Optional request fields that the server accepts, if it refuses unknown ones. Unset: all are sent.
        pub allow_fields: Option<Vec<String>> = None, ValueKind::List;
        /// Context window to request from Ollama, in tokens. Unset: the model's own, up to 32768.
        pub num_ctx: Option<u64> = None, COUNT;
        /// Maximum length of an answer to request, in tokens.
        pub max_tokens: Option<u64> = None, COUNT;
        /// Sampling temperature.
        pub temperature: Option<f64> = None, ValueKind::Number;
        /// When earlier reasoning is sent back to the model.
        pub replay_reasoning: String = "tool_loop".to_owned(), ValueKind::Word(&["tool_loop", "always", "never"]);
    }
}

settings! {
    /// The user's changes to the system prompt.
    pub struct Prompt {
        /// Text at the end of the system prompt; or the file `prompts/append.md` beside the configuration.
        pub append: Option<String> = None, ValueKind::Text;
        /// Output style: the name of a file in `output-styles/` beside the settings, `.sheaf` or `.claude`.
        pub style: Option<String> = None, ValueKind::Text, variable;
        /// Replacement texts, by the name of a block.
        pub replace: BTreeMap<String, String> = BTreeMap::new();
        /// Text of `--system-prompt`, in place of all blocks.
        pub given_whole: Option<String> = None;
        /// Text of `--append-system-prompt`.
        pub given_end: Option<String> = None;
    }
}

settings! {
    /// Models for side jobs: `provider/model`, or a model of the provider in use.
    pub struct Roles {
        /// Model for titles, summaries and other small jobs: provider/model, or a model of the provider in use.
        pub fast: Option<String> = None, ValueKind::Text, variable;
        /// Model that merges sketched edits into files.
        pub apply: Option<String> = None, ValueKind::Text, variable;
        /// Model that finds code by its meaning: provider/model, "local/NAME" for an installed one (`sheaf index model`), or
        /// "none". Unset: an installed one, if any.
        pub embed: Option<String> = None, ValueKind::Text, variable;
        /// Models to try in turn when the previous one is overloaded.
        pub fallback: Vec<String> = Vec::new(), ValueKind::List, variable;
    }
}

settings! {
    /// The index of the code.
    pub struct Indexing {
        /// Shared vectors: file:///folder, or an https address that answers GET, HEAD and PUT. Only vectors and hashes
        /// are sent there.
        pub cache: Option<String> = None, ValueKind::Text, variable;
        pub cache_token: KeySource = KeySource::None;
        /// Maximum size of all stored vectors, in bytes. The least recently used ones go first.
        pub size: u64 = 1 << 30, range(1 << 20, 1 << 40), variable;
        /// Compute vectors for the whole workspace with a local model while sheaf is idle.
        pub background: bool = true, ValueKind::Flag, variable;
    }
}

settings! {
    /// Properties of a model. Unset: taken from the catalogue or the server.
    pub struct Model {
        /// Context window, in tokens.
        pub window: Option<u64> = None, COUNT, in_project;
        /// Dollars per million input tokens.
        pub price_in: Option<f64> = None, ValueKind::Number, in_project;
        /// Dollars per million output tokens.
        pub price_out: Option<f64> = None, ValueKind::Number, in_project;
        /// Dollars per million input tokens read from the server's cache.
        pub price_cached: Option<f64> = None, ValueKind::Number, in_project;
        /// Maximum length of an answer, in tokens.
        pub max_output: Option<u64> = None, COUNT, in_project;
        /// True if it can call tools.
        pub tools: Option<bool> = None, ValueKind::Flag, in_project;
        /// True if it accepts images.
        pub images: Option<bool> = None, ValueKind::Flag, in_project;
        /// True if it thinks before it answers.
        pub reasoning: Option<bool> = None, ValueKind::Flag, in_project;
    }
}

settings! {
    /// A program that sheaf calls at a fixed point.
    pub struct HookSettings {
        /// Event: session_start, session_end, prompt, tool_before, tool_after, tool_failed, shell_before, mcp_before,
        /// read_before, edit_after, compact_before, stop, notification; or one of Cursor or Claude Code, in their format.
        pub event: String = String::new(), ValueKind::Text;
        /// The command line. It gets the event as JSON on stdin; exit code 2 refuses.
        pub command: String = String::new(), ValueKind::Text;
        /// Regular expression for the tool, the command or the file. Unset: always.
        pub matcher: Option<String> = None, ValueKind::Text;
        /// Time limit.
        pub timeout: Duration = Duration::from_mins(1), ValueKind::Duration;
        /// Refuse if the hook itself fails.
        pub fail_closed: bool = false, ValueKind::Flag;
        /// Run it in the sandbox.
        pub sandbox: bool = true, ValueKind::Flag;
        /// Let it use the network.
        pub network: bool = false, ValueKind::Flag;
    }
}

settings! {
    /// Settings of the embedded agent.
    pub struct Agent {
        /// Hooks from files (hooks.json, Claude Code's settings): off, sandboxed, sandboxed with network, or unsandboxed.
        pub hooks: String = "sandbox".to_owned(), ValueKind::Word(&["off", "sandbox", "network", "free"]);
        /// Tools that are offered to a model: all, a short list, or the short list for windows below 32,000 tokens.
        pub profile: String = "auto".to_owned(), ValueKind::Word(&["auto", "full", "short"]), variable, in_project;
        /// Tools for changing files: exact replacement, a sketch that is merged, or both.
        pub edit_style: String = "replace".to_owned(),
            ValueKind::Word(&["replace", "sketch", "both"]), variable, in_project;
        /// Reasoning effort of models that support it.
        pub effort: String = "auto".to_owned(),
            ValueKind::Word(&["auto", "off", "low", "medium", "high"]), variable, in_project;
        /// Language servers look at each change before it is shown as done, in a trusted workspace with a sandbox.
        pub language_servers: bool = true, ValueKind::Flag, variable;
        /// Maximum time that the result of a change waits for checkers and language servers, in a trusted workspace; 0s: changes are
        /// not checked. A slower checker is not run again.
        pub lint_wait: Duration = Duration::from_millis(1500), ValueKind::Grace, variable;
        /// Model requests for one message before you are asked whether to continue.
        pub max_requests: u64 = 50, COUNT, variable;
        /// Tool calls for one message before you are asked whether to continue.
        pub max_calls: u64 = 200, COUNT, variable;
        /// Warn the model after this many identical failures in a row.
        pub warn_failures: u64 = 3, COUNT, variable;
        /// Stop after this many identical failures in a row.
        pub max_failures: u64 = 5, COUNT, variable;
        /// Cost of one answer, in dollars, at which you are asked whether to continue. Checked before each request, if the
        /// model's price is known.
        pub max_dollars: Option<f64> = None, ValueKind::Number, variable;
        /// The same for a whole conversation.
        pub max_dollars_in_all: Option<f64> = None, ValueKind::Number, variable;
        /// True if `max_dollars` is that of `--max-budget-usd`.
        pub is_budget_given: bool = false;
    }
}

settings! {
    /// Settings of one tool.
    pub struct ToolSettings {
        /// Offer the tool to models.
        pub enabled: bool = true, ValueKind::Flag;
        /// Modes that offer the tool, of those that permit it.
        pub modes: Option<Vec<String>> = None, ValueKind::List;
        /// Glob patterns, from the workspace's root, of files that it may touch, such as "src/**". Others are refused.
        pub allowed_paths: Option<Vec<String>> = None, ValueKind::List;
        /// Ask before every call.
        pub require_approval: bool = false, ValueKind::Flag;
        /// Maximum size of a result for the model, in bytes.
        pub max_bytes: Option<u64> = None, COUNT;
    }
}

settings! {
    /// Maximum sizes of tool results. A result that is cut says so, and how to get the rest.
    #[derive(Copy, Eq)]
    pub struct ResultLimits {
        /// Lines of one `read_file` result.
        pub read_lines: u64 = 2000, ENTRIES, variable;
        /// Bytes of one `read_file` result.
        pub read_bytes: u64 = 256 << 10, BYTES, variable;
        /// Characters after which a line of a file is cut.
        pub line_characters: u64 = 2000, ENTRIES, variable;
        /// Matches of one `grep` result.
        pub grep_matches: u64 = 200, ENTRIES, variable;
        /// Files of one `grep` result.
        pub grep_files: u64 = 100, ENTRIES, variable;
        /// Bytes of one `grep` result.
        pub grep_bytes: u64 = 64 << 10, BYTES, variable;
        /// Files of one search by name.
        pub glob_files: u64 = 200, ENTRIES, variable;
        /// Entries of one folder listing.
        pub list_entries: u64 = 500, ENTRIES, variable;
        /// Chunks of one `codebase_search` result.
        pub search_chunks: u64 = 10, range(1, 100), variable;
        /// Bytes of one `codebase_search` result.
        pub search_bytes: u64 = 32 << 10, BYTES, variable;
        /// Time after which a search returns what it has found so far.
        pub search_time: Duration = Duration::from_secs(10), ValueKind::Duration, variable;
        /// Bytes of command output shown to the model: from the start.
        pub output_head: u64 = 8 << 10, range(1 << 10, 256 << 10), variable;
        /// Bytes of command output shown to the model: from the end (the full log is kept).
        pub output_tail: u64 = 24 << 10, range(1 << 10, 768 << 10), variable;
        /// Bytes of a web page that are downloaded.
        pub fetch_bytes: u64 = 1 << 20, BYTES, variable;
        /// Bytes of a web page's text for the model.
        pub fetch_text: u64 = 48 << 10, BYTES, variable;
        /// Redirects that a page may take.
        pub fetch_redirects: u64 = 5, range(0, 20), variable;
        /// Time limit for one page.
        pub fetch_time: Duration = Duration::from_secs(20), ValueKind::Duration, variable;
    }
}

settings! {
    /// Rules for actions of a model: run without asking, ask, or refuse.
    pub struct Approvals {
        /// Actions that need no approval: none that run or change something; changes of files, and listed commands; also
        /// every command in the full sandbox. A project can only make it stricter.
        pub run: String = "sandbox".to_owned(), ValueKind::Word(&["ask", "list", "sandbox"]), variable, tightens;
        /// Actions that run without asking, such as "Shell(cargo test)", "Read(~/notes/**)", "WebFetch(docs.rs)".
        pub allow: Vec<ConfiguredRule> = Vec::new(), ValueKind::Rules;
        /// Actions that always ask, even if allowed. A project can add to it.
        pub ask: Vec<ConfiguredRule> = Vec::new(), ValueKind::Rules, tightens;
        /// Actions that are refused, even if allowed. A project can add to it.
        pub deny: Vec<ConfiguredRule> = Vec::new(), ValueKind::Rules, tightens;
        /// Command that decides approvals without a screen: it gets each as JSON on stdin and prints `{"behavior": "allow"}`
        /// or `{"behavior": "deny", "message": "…"}`. Anything else is a refusal.
        pub program: Option<String> = None, ValueKind::Text;
        /// Time that the command has for one answer.
        pub program_timeout: Duration = Duration::from_mins(1), ValueKind::Duration;
    }
}

settings! {
    /// Settings of web access for a model.
    pub struct Web {
        /// Hosts that web_fetch may reach although they are on this machine or in a private network, such as localhost.
        pub allow_private: Vec<String> = Vec::new(), ValueKind::List;
        pub search: Search = Search::default();
    }
}

settings! {
    /// The web search service.
    pub struct Search {
        /// Service that searches the web for the model. `provider`: the model's own provider does (Anthropic, Gemini 3, and
        /// OpenAI's models that reason), which costs money for each search and sends the query out without asking. Unset: the model has no
        /// web search.
        pub kind: Option<String> = None, ValueKind::Word(&["searxng", "brave", "tavily", "provider"]), variable;
        pub connection: Connection = Connection::default();
        pub key: KeySource = KeySource::None;
    }
}

settings! {
    /// Settings of the screen.
    pub struct Ui {
        /// Lines of a command's output that are shown until it is unfolded: the first and the last ones.
        pub output_rows: u64 = 8, COUNT, variable, in_project;
        /// Notification when an answer ends or a question waits while another window has the focus.
        pub notify: String = "auto".to_owned(),
            ValueKind::Word(&["auto", "osc9", "osc99", "osc777", "bell", "off"]), variable;
        /// Language of the interface: `auto` (from LANGUAGE, LC_ALL, LC_MESSAGES and LANG), `en`, `de`, or the name of a
        /// file in the folder `locale` beside the settings.
        pub language: String = "auto".to_owned(), ValueKind::Text, variable;
        /// TextMate theme for code: a path, or the name of a .tmTheme file beside your own themes.
        pub syntax_theme: Option<String> = None, ValueKind::Text, variable;
        /// Display of a model's thinking.
        pub thinking: String = "folded".to_owned(), ValueKind::Word(&["folded", "shown", "hidden"]), variable, in_project;
        /// Items at the right of the header, in order. The sandbox state is always shown.
        pub status: Vec<String> = ["model", "effort", "context", "cost", "sandbox"].map(str::to_owned).to_vec(),
            ValueKind::Words(&["model", "effort", "context", "cost", "sandbox"]);
        /// Command whose output replaces these items, up to four lines with colours; it gets the state as JSON on its standard input.
        pub status_command: Option<Vec<String>> = None, ValueKind::Command;
        /// Protocol for pictures: the one that the terminal reports, none (a line describes them), or this one.
        pub images: String = "auto".to_owned(), ValueKind::Word(&["auto", "off", "kitty", "iterm2", "sixel"]), variable;
        /// Signs before documents: from any font, or from a Nerd Font, which your terminal must then use.
        pub glyphs: String = "plain".to_owned(), ValueKind::Word(&["plain", "nerd"]), variable;
        /// Edit drafts with Vim keys.
        pub vim: bool = false, ValueKind::Flag, variable;
    }
}

settings! {
    /// Settings of commands and their sandbox.
    pub struct Sandbox {
        /// Time that a model waits for a command before it continues in the background, unless the command says otherwise.
        pub command_wait: Duration = Duration::from_secs(30), ValueKind::Duration, variable;
        /// Maximum run time of a command. One that was started in the background runs until the session ends.
        pub command_limit: Duration = Duration::from_mins(10), ValueKind::Duration, variable;
        /// Variables passed to a model's commands, beside PATH, HOME, LANG and the like; not for keys.
        pub environment: Vec<String> = TOOLCHAINS.iter().map(str::to_owned).collect(), ValueKind::List, variable;
    }
}

settings! {
    /// Settings of the context that a model sees.
    pub struct Context {
        /// Gitignore patterns of files that no tool sees, beside secrets such as .env; "!.env.example" shows one, "~/notes"
        /// is in your home folder.
        pub hidden: Vec<String> = Vec::new(), ValueKind::List, variable;
    }
}

settings! {
    /// An MCP server. Without command and url it is what a file of another program calls so, with these grants.
    pub struct McpServer {
        /// Program to start; it runs in the sandbox.
        pub command: Option<String> = None, ValueKind::Text;
        /// Arguments of the program.
        pub args: Vec<String> = Vec::new(), ValueKind::List;
        /// Variables for the program, beside PATH, HOME and the like; `${NAME}` is a variable of yours.
        pub env: BTreeMap<String, String> = BTreeMap::new(), ValueKind::Variables;
        /// Address of a server that is reached over HTTP instead.
        pub url: Option<String> = None, ValueKind::Text;
        /// Additional headers of every request to it; `${NAME}` is a variable of yours. Values are kept secret.
        pub headers: BTreeMap<String, Secret> = BTreeMap::new(), ValueKind::Headers;
        /// Let the program use the network.
        pub network: bool = false, ValueKind::Flag;
        /// Folders that the program may write: "." is the workspace, "~/notes" is in your home folder. It writes nowhere else.
        pub folders: Vec<String> = Vec::new(), ValueKind::List;
        /// Use the server.
        pub enabled: bool = true, ValueKind::Flag;
        /// Time limit of a call, which progress does not extend; 0s: a minute without progress, ten minutes in all.
        pub timeout: Duration = Duration::ZERO, ValueKind::Grace;
        /// Names of its tools that are not offered.
        pub disabled_tools: Vec<String> = Vec::new(), ValueKind::List;
        /// Client id that you registered with the server's authorization server, for `sheaf mcp login`.
        pub client_id: Option<String> = None, ValueKind::Text;
        /// Secret that belongs to it, if there is one. In a file only if no one else can read that file.
        pub client_secret: Option<Secret> = None, ValueKind::Secret;
        /// File of the private key (PKCS #8 in PEM, ES256 or RS256) that belongs to it, instead of a secret.
        pub client_key_file: Option<PathBuf> = None, ValueKind::Path;
        /// Sign-in method: your browser, or client credentials (the id and its secret or key).
        pub sign_in: String = "browser".to_owned(), ValueKind::Word(&["browser", "client"]);
    }
}

settings! {
    /// A language server. The known ones (rust-analyzer, tsc, typescript-language-server, ty, basedpyright-langserver,
    /// pyright-langserver, gopls, clangd) need no settings; what is set here replaces what is known of them.
    pub struct LanguageServer {
        /// Program to start; it runs in the sandbox, without network, and writes nothing.
        pub command: Option<String> = None, ValueKind::Text;
        /// Arguments of the program.
        pub args: Vec<String> = Vec::new(), ValueKind::List;
        /// Extensions of the files that it handles: ".lua".
        pub extensions: Vec<String> = Vec::new(), ValueKind::List;
        /// Names of files that mark a project's root, where it starts; without one it starts in the workspace.
        pub root_markers: Vec<String> = Vec::new(), ValueKind::List;
        /// The member initializationOptions, as JSON.
        pub initialization: String = String::new(), ValueKind::Text;
        /// Variables for the program, beside PATH, HOME and the like.
        pub env: BTreeMap<String, String> = BTreeMap::new(), ValueKind::Variables;
        /// Use the server.
        pub enabled: bool = true, ValueKind::Flag;
    }
}

settings! {
    /// Settings of `/commit` and of `C` in the review.
    pub struct Commit {
        /// Note on each commit in refs/notes/sheaf: file, lines, address, model and first line of your message per hunk; full
        /// has the whole message.
        pub note: String = "short".to_owned(), ValueKind::Word(&["off", "short", "full"]), variable;
    }
}

settings! {
    /// Settings of exported conversations.
    pub struct Export {
        /// Regular expressions of texts to remove from an export, beside keys; `[redacted]` replaces them.
        pub redact: Vec<String> = Vec::new(), ValueKind::List, variable;
    }
}

settings! {
    /// Settings of `sheaf serve`.
    pub struct Serve {
        /// Address and port that `sheaf serve` listens on.
        pub listen: String = "127.0.0.1:8643".to_owned(), ValueKind::Text, variable;
        /// Token that clients must send. Unset: one is generated and kept in a file that only you can read.
        pub token: Option<Secret> = None, ValueKind::Secret, variable;
        /// Maximum number of answers that stream at the same time.
        pub max_streams: u64 = 64, range(1, 4096), variable;
        /// Accepted host names beside localhost, behind a proxy.
        pub allow_host: Vec<String> = Vec::new(), ValueKind::List, variable;
        /// Origins of web pages that may call the server, such as `https://example.com`.
        pub allow_origin: Vec<String> = Vec::new(), ValueKind::List, variable;
        /// Time that a stored conversation's turn continues after its last reader has left.
        pub linger: Duration = Duration::from_mins(1), ValueKind::Duration, variable;
        /// Time that a stream of no stored conversation continues without a reader, so that its client can return; 0s stops
        /// it at once.
        pub grace: Duration = Duration::from_secs(30), ValueKind::Grace, variable;
        /// Tools for clients: reading and searching files, or all, with commands in the sandbox only.
        pub tools: String = "reading".to_owned(), ValueKind::Word(&["reading", "all"]), variable;
        /// Models that clients may name; empty: any. A request that names none gets your default.
        pub models: Vec<String> = Vec::new(), ValueKind::List, variable;
        /// Store conversations, so that clients send new messages only and can return to an answer.
        pub stateful: bool = false, ValueKind::Flag, variable;
        /// Log each request to standard error: method, path, status and duration, nothing of its content.
        pub access_log: bool = true, ValueKind::Flag;
    }
}

/// Variables that locate compilers and package managers. Commands need them, and they hold no secret.
const TOOLCHAINS: WordList = WordList(
    "CARGO_HOME RUSTUP_HOME RUSTUP_TOOLCHAIN GOPATH GOROOT GOMODCACHE JAVA_HOME NVM_DIR PYENV_ROOT VIRTUAL_ENV
     CONDA_PREFIX",
);

/// Converts a limit to `usize`; a larger one becomes the maximum.
pub fn size(limit: u64) -> usize {
    usize::try_from(limit).unwrap_or(usize::MAX)
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

    /// Returns the files that hold a key or a token, by the settings. A relative path begins in the current folder.
    pub fn key_files(&self) -> Vec<PathBuf> {
        let keys = self.key_sources().filter_map(|it| match it {
            KeySource::File(path) => Some(path.clone()),
            KeySource::None
            | KeySource::Given(_)
            | KeySource::Variables(_)
            | KeySource::Command(_)
            | KeySource::Keyring(_) => None,
        });
        let connections = self.providers.values().map(|it| &it.connection);
        let connections = connections.chain([&self.gateway.connection, &self.web.search.connection]);
        let clients = self.mcp.values().filter_map(|it| it.client_key_file.clone());
        keys.chain(connections.filter_map(|it| it.client_cert.clone()))
            .chain(clients)
            .map(|it| std::path::absolute(&it).unwrap_or(it))
            .collect()
    }

    /// Returns the command lines, and words of such, that run with rights which the sandbox gives to no command: they print keys,
    /// decide approvals, or are servers of tools with the network or folders of their own.
    pub fn privileged_commands(&self) -> Vec<&str> {
        let keys = self.key_sources().filter_map(|it| match it {
            KeySource::Command(words) => Some(words),
            KeySource::None
            | KeySource::Given(_)
            | KeySource::Variables(_)
            | KeySource::File(_)
            | KeySource::Keyring(_) => None,
        });
        let servers = self.mcp.values().filter(|it| it.network || !it.folders.is_empty());
        let servers = servers.flat_map(|it| it.command.iter().chain(&it.args));
        let words = self.approvals.program.iter().chain(keys.flatten()).chain(servers);
        words.map(String::as_str).collect()
    }

    fn key_sources(&self) -> impl Iterator<Item = &KeySource> {
        let providers = self.providers.values().map(|it| &it.key);
        providers.chain([&self.gateway.token, &self.web.search.key, &self.index.cache_token])
    }

    /// Returns the origin of the value at `path` (`gateway.url`, `providers.local.model`).
    pub fn origin(&self, path: &str) -> &Origin {
        self.origins.get(path).unwrap_or(&Origin::DEFAULT)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_reference_shows_every_setting() {
        insta::assert_snapshot!(crate::config::reference(), @r#####"
        # Configuration

        From weakest to strongest: defaults, `$XDG_CONFIG_HOME/sheaf/config.toml`, `.sheaf/config.toml` of a trusted
        workspace, the environment, flags. A project may set only what is marked ◇.

        ## Top level

        - `provider` ◇: text; default unset; `SHEAF_PROVIDER`
          Provider to use: one of `providers`, or a known service such as openai, openrouter, ollama.
        - `model` ◇: text; default unset; `SHEAF_MODEL`
          Model to use, unless the provider's own entry names one. Unset: its usual one; `sheaf status` shows which.
        - `mode` ◇: agent | plan | ask | debug; default `"agent"`; `SHEAF_MODE`
          Mode to start in.
        - `theme` ◇: text; default `"auto"`; `SHEAF_THEME`
          Name of a theme, or `auto`: dark or light, as the terminal's background.
        - `color`: true | false; default `true`; `SHEAF_COLOR`
          Use colours. A `NO_COLOR` that is not empty turns them off.
        - `motion`: true | false; default `true`; `SHEAF_MOTION`
          Show running timers.
        - `mouse`: true | false; default `true`; `SHEAF_MOUSE`
          Use the mouse: the wheel scrolls, clicks select. The terminal's own selection then needs Shift.
        - `links`: true | false; default `true`; `SHEAF_LINKS`
          Make links clickable in terminals that support it (OSC 8).
        - `rules`: list of texts; default `[]`
          Your own rules for every model, beside those of the workspace: one text each.
        - `trusted`: list of texts; default `[]`
          Folders whose workspaces are trusted without asking; `~/` is the home folder.

        ## [net]

        - `retries`: whole number, 0 to 100; default `10`; `SHEAF_NET_RETRIES`
          Number of times that a failed request is repeated: no connection, a server that is busy or failed, an answer that broke off before one of its calls was complete.
        - `retry_for`: duration, such as "60s"; default `"3m"`; `SHEAF_NET_RETRY_FOR`
          Time limit for all of that; a longer pause that a server asks for is not waited for without a person.

        ## [gateway]

        - `url`: address; default unset; `SHEAF_GATEWAY`
          Address of the documents gateway to use instead of a provider.
        - `token`: secret text; default unset; `SHEAF_TOKEN`
          The key or token. In a file only if no one else can read that file.
        - `token_env`: text; default unset
          Environment variable that holds the key.
        - `token_command`: command, as a text for the shell or a list; default unset
          Command whose first line of output is the key; run when a request is made.
        - `token_file`: path; default unset
          File that holds the key and that only you can read.
        - `token_keyring`: text; default unset
          Name of the key in the system's keyring, under the service `sheaf`; for builds with the feature `keyring`.
        - `dialect`: auto | a | b; default `"auto"`
          Dialect of the stream to request.
        - `context`: path | rules | layout; default `"layout"`; `SHEAF_GATEWAY_CONTEXT`
          Workspace context to send: its path; also your rules and those of a trusted workspace; also the names of its files. The files that your messages name with `@` are sent as open files with each.
        - `headers`: table of texts; default unset
          Additional headers of every request. Values are kept secret.
        - `ca_file`: path; default unset
          Certificates to trust in addition to the system's (PEM).
        - `client_cert`: path; default unset
          Your certificate and its private key in one file (PEM).
        - `proxy`: address of a proxy | none; default unset
          Proxy to use instead of the environment's, or `none`.
        - `allow_http`: true | false; default `false`
          Allow an unencrypted address in a private network.
        - `connect_timeout`: duration, such as "60s"; default `"10s"`
          Time limit for connecting.
        - `first_byte_timeout`: duration, such as "60s"; default `"2m"`
          Time limit until the first byte of an answer; a server that loads its model first needs minutes.
        - `idle_timeout`: duration, such as "60s"; default `"60s"`
          Time limit without any byte, heartbeats included.

        ## [providers.<name>]

        - `base_url`: address; default unset; `OPENAI_BASE_URL` for providers.openai.base_url, `ANTHROPIC_BASE_URL` for providers.anthropic.base_url
          Address, up to `/v1`. A known service needs none.
        - `api_key`: secret text; default unset; `OPENAI_API_KEY` for providers.openai.api_key
          The key or token. In a file only if no one else can read that file.
        - `api_key_env`: text; default unset
          Environment variable that holds the key.
        - `key_command`: command, as a text for the shell or a list; default unset
          Command whose first line of output is the key; run when a request is made.
        - `key_file`: path; default unset
          File that holds the key and that only you can read.
        - `keyring`: text; default unset
          Name of the key in the system's keyring, under the service `sheaf`; for builds with the feature `keyring`.
        - `kind`: openai | openai-responses | anthropic | gemini | ollama; default `"openai"`
          Wire format; openai means chat completions, as most servers use. A known service needs none.
        - `model` ◇: text; default unset; `OPENAI_MODEL` for providers.openai.model
          Model to use with this provider.
        - `think_tags`: true | false; default `true`
          Show a `<think>` block at the start of an answer as thinking.
        - `allow_fields`: list of texts; default unset
          Optional request fields that the server accepts, if it refuses unknown ones. Unset: all are sent.
        - `num_ctx`: whole number from 1; default unset
          Context window to request from Ollama, in tokens. Unset: the model's own, up to 32768.
        - `max_tokens`: whole number from 1; default unset
          Maximum length of an answer to request, in tokens.
        - `temperature`: number; default unset
          Sampling temperature.
        - `replay_reasoning`: tool_loop | always | never; default `"tool_loop"`
          When earlier reasoning is sent back to the model.
        - `headers`: table of texts; default unset
          Additional headers of every request. Values are kept secret.
        - `ca_file`: path; default unset
          Certificates to trust in addition to the system's (PEM).
        - `client_cert`: path; default unset
          Your certificate and its private key in one file (PEM).
        - `proxy`: address of a proxy | none; default unset
          Proxy to use instead of the environment's, or `none`.
        - `allow_http`: true | false; default `false`
          Allow an unencrypted address in a private network.
        - `connect_timeout`: duration, such as "60s"; default `"10s"`
          Time limit for connecting.
        - `first_byte_timeout`: duration, such as "60s"; default `"2m"`
          Time limit until the first byte of an answer; a server that loads its model first needs minutes.
        - `idle_timeout`: duration, such as "60s"; default `"60s"`
          Time limit without any byte, heartbeats included.

        ## [prompt]

        - `append`: text; default unset
          Text at the end of the system prompt; or the file `prompts/append.md` beside the configuration.
        - `style`: text; default unset; `SHEAF_PROMPT_STYLE`
          Output style: the name of a file in `output-styles/` beside the settings, `.sheaf` or `.claude`.

        ## [prompt.replace]

        - `<name>`: text; default `""`
          Replacement of a block of the system prompt, or the file `prompts/<block>.md`: role, communication, no_tools, tool_calling, maximize_parallel_tool_calls, maximize_context_understanding, making_code_changes, using_git, long_work, citing_code, task_management, model_guidance, plan_mode, ask_mode, debug_mode.

        ## [roles]

        - `fast`: text; default unset; `SHEAF_ROLES_FAST`
          Model for titles, summaries and other small jobs: provider/model, or a model of the provider in use.
        - `apply`: text; default unset; `SHEAF_ROLES_APPLY`
          Model that merges sketched edits into files.
        - `embed`: text; default unset; `SHEAF_ROLES_EMBED`
          Model that finds code by its meaning: provider/model, "local/NAME" for an installed one (`sheaf index model`), or "none". Unset: an installed one, if any.
        - `fallback`: list of texts; default `[]`; `SHEAF_ROLES_FALLBACK`
          Models to try in turn when the previous one is overloaded.

        ## [index]

        - `cache`: text; default unset; `SHEAF_INDEX_CACHE`
          Shared vectors: file:///folder, or an https address that answers GET, HEAD and PUT. Only vectors and hashes are sent there.
        - `size`: whole number, 1048576 to 1099511627776; default `1073741824`; `SHEAF_INDEX_SIZE`
          Maximum size of all stored vectors, in bytes. The least recently used ones go first.
        - `background`: true | false; default `true`; `SHEAF_INDEX_BACKGROUND`
          Compute vectors for the whole workspace with a local model while sheaf is idle.
        - `cache_token`: secret text; default unset; `SHEAF_INDEX_CACHE_TOKEN`
          The key or token. In a file only if no one else can read that file.
        - `cache_token_env`: text; default unset
          Environment variable that holds the key.
        - `cache_token_command`: command, as a text for the shell or a list; default unset
          Command whose first line of output is the key; run when a request is made.
        - `cache_token_file`: path; default unset
          File that holds the key and that only you can read.
        - `cache_token_keyring`: text; default unset
          Name of the key in the system's keyring, under the service `sheaf`; for builds with the feature `keyring`.

        ## [models.<name>]

        - `window` ◇: whole number from 1; default unset
          Context window, in tokens.
        - `price_in` ◇: number; default unset
          Dollars per million input tokens.
        - `price_out` ◇: number; default unset
          Dollars per million output tokens.
        - `price_cached` ◇: number; default unset
          Dollars per million input tokens read from the server's cache.
        - `max_output` ◇: whole number from 1; default unset
          Maximum length of an answer, in tokens.
        - `tools` ◇: true | false; default unset
          True if it can call tools.
        - `images` ◇: true | false; default unset
          True if it accepts images.
        - `reasoning` ◇: true | false; default unset
          True if it thinks before it answers.

        ## [agent]

        - `hooks`: off | sandbox | network | free; default `"sandbox"`
          Hooks from files (hooks.json, Claude Code's settings): off, sandboxed, sandboxed with network, or unsandboxed.
        - `profile` ◇: auto | full | short; default `"auto"`; `SHEAF_AGENT_PROFILE`
          Tools that are offered to a model: all, a short list, or the short list for windows below 32,000 tokens.
        - `edit_style` ◇: replace | sketch | both; default `"replace"`; `SHEAF_AGENT_EDIT_STYLE`
          Tools for changing files: exact replacement, a sketch that is merged, or both.
        - `effort` ◇: auto | off | low | medium | high; default `"auto"`; `SHEAF_AGENT_EFFORT`
          Reasoning effort of models that support it.
        - `language_servers`: true | false; default `true`; `SHEAF_AGENT_LANGUAGE_SERVERS`
          Language servers look at each change before it is shown as done, in a trusted workspace with a sandbox.
        - `lint_wait`: duration, such as "60s"; default `"1500ms"`; `SHEAF_AGENT_LINT_WAIT`
          Maximum time that the result of a change waits for checkers and language servers, in a trusted workspace; 0s: changes are not checked. A slower checker is not run again.
        - `max_requests`: whole number from 1; default `50`; `SHEAF_AGENT_MAX_REQUESTS`
          Model requests for one message before you are asked whether to continue.
        - `max_calls`: whole number from 1; default `200`; `SHEAF_AGENT_MAX_CALLS`
          Tool calls for one message before you are asked whether to continue.
        - `warn_failures`: whole number from 1; default `3`; `SHEAF_AGENT_WARN_FAILURES`
          Warn the model after this many identical failures in a row.
        - `max_failures`: whole number from 1; default `5`; `SHEAF_AGENT_MAX_FAILURES`
          Stop after this many identical failures in a row.
        - `max_dollars`: number; default unset; `SHEAF_AGENT_MAX_DOLLARS`
          Cost of one answer, in dollars, at which you are asked whether to continue. Checked before each request, if the model's price is known.
        - `max_dollars_in_all`: number; default unset; `SHEAF_AGENT_MAX_DOLLARS_IN_ALL`
          The same for a whole conversation.

        ## [hooks.<name>]

        - `event`: text; default `""`
          Event: session_start, session_end, prompt, tool_before, tool_after, tool_failed, shell_before, mcp_before, read_before, edit_after, compact_before, stop, notification; or one of Cursor or Claude Code, in their format.
        - `command`: text; default `""`
          The command line. It gets the event as JSON on stdin; exit code 2 refuses.
        - `matcher`: text; default unset
          Regular expression for the tool, the command or the file. Unset: always.
        - `timeout`: duration, such as "60s"; default `"60s"`
          Time limit.
        - `fail_closed`: true | false; default `false`
          Refuse if the hook itself fails.
        - `sandbox`: true | false; default `true`
          Run it in the sandbox.
        - `network`: true | false; default `false`
          Let it use the network.

        ## [tools.<name>]

        - `enabled`: true | false; default `true`
          Offer the tool to models.
        - `modes`: list of texts; default unset
          Modes that offer the tool, of those that permit it.
        - `allowed_paths`: list of texts; default unset
          Glob patterns, from the workspace's root, of files that it may touch, such as "src/**". Others are refused.
        - `require_approval`: true | false; default `false`
          Ask before every call.
        - `max_bytes`: whole number from 1; default unset
          Maximum size of a result for the model, in bytes.

        ## [limits]

        - `read_lines`: whole number, 1 to 1000000; default `2000`; `SHEAF_LIMITS_READ_LINES`
          Lines of one `read_file` result.
        - `read_bytes`: whole number, 1024 to 67108864; default `262144`; `SHEAF_LIMITS_READ_BYTES`
          Bytes of one `read_file` result.
        - `line_characters`: whole number, 1 to 1000000; default `2000`; `SHEAF_LIMITS_LINE_CHARACTERS`
          Characters after which a line of a file is cut.
        - `grep_matches`: whole number, 1 to 1000000; default `200`; `SHEAF_LIMITS_GREP_MATCHES`
          Matches of one `grep` result.
        - `grep_files`: whole number, 1 to 1000000; default `100`; `SHEAF_LIMITS_GREP_FILES`
          Files of one `grep` result.
        - `grep_bytes`: whole number, 1024 to 67108864; default `65536`; `SHEAF_LIMITS_GREP_BYTES`
          Bytes of one `grep` result.
        - `glob_files`: whole number, 1 to 1000000; default `200`; `SHEAF_LIMITS_GLOB_FILES`
          Files of one search by name.
        - `list_entries`: whole number, 1 to 1000000; default `500`; `SHEAF_LIMITS_LIST_ENTRIES`
          Entries of one folder listing.
        - `search_chunks`: whole number, 1 to 100; default `10`; `SHEAF_LIMITS_SEARCH_CHUNKS`
          Chunks of one `codebase_search` result.
        - `search_bytes`: whole number, 1024 to 67108864; default `32768`; `SHEAF_LIMITS_SEARCH_BYTES`
          Bytes of one `codebase_search` result.
        - `search_time`: duration, such as "60s"; default `"10s"`; `SHEAF_LIMITS_SEARCH_TIME`
          Time after which a search returns what it has found so far.
        - `output_head`: whole number, 1024 to 262144; default `8192`; `SHEAF_LIMITS_OUTPUT_HEAD`
          Bytes of command output shown to the model: from the start.
        - `output_tail`: whole number, 1024 to 786432; default `24576`; `SHEAF_LIMITS_OUTPUT_TAIL`
          Bytes of command output shown to the model: from the end (the full log is kept).
        - `fetch_bytes`: whole number, 1024 to 67108864; default `1048576`; `SHEAF_LIMITS_FETCH_BYTES`
          Bytes of a web page that are downloaded.
        - `fetch_text`: whole number, 1024 to 67108864; default `49152`; `SHEAF_LIMITS_FETCH_TEXT`
          Bytes of a web page's text for the model.
        - `fetch_redirects`: whole number, 0 to 20; default `5`; `SHEAF_LIMITS_FETCH_REDIRECTS`
          Redirects that a page may take.
        - `fetch_time`: duration, such as "60s"; default `"20s"`; `SHEAF_LIMITS_FETCH_TIME`
          Time limit for one page.

        ## [approvals]

        - `run` ◇: ask | list | sandbox; default `"sandbox"`; `SHEAF_APPROVALS_RUN`
          Actions that need no approval: none that run or change something; changes of files, and listed commands; also every command in the full sandbox. A project can only make it stricter.
        - `allow`: list of rules; default `[]`
          Actions that run without asking, such as "Shell(cargo test)", "Read(~/notes/**)", "WebFetch(docs.rs)".
        - `ask` ◇: list of rules; default `[]`
          Actions that always ask, even if allowed. A project can add to it.
        - `deny` ◇: list of rules; default `[]`
          Actions that are refused, even if allowed. A project can add to it.
        - `program`: text; default unset
          Command that decides approvals without a screen: it gets each as JSON on stdin and prints `{"behavior": "allow"}` or `{"behavior": "deny", "message": "…"}`. Anything else is a refusal.
        - `program_timeout`: duration, such as "60s"; default `"60s"`
          Time that the command has for one answer.

        ## [web]

        - `allow_private`: list of texts; default `[]`
          Hosts that web_fetch may reach although they are on this machine or in a private network, such as localhost.

        ## [web.search]

        - `kind`: searxng | brave | tavily | provider; default unset; `SHEAF_WEB_SEARCH_KIND`
          Service that searches the web for the model. `provider`: the model's own provider does (Anthropic, Gemini 3, and OpenAI's models that reason), which costs money for each search and sends the query out without asking. Unset: the model has no web search.
        - `url`: address; default unset; `SHEAF_WEB_SEARCH_URL`
          Address of the service: needed for SearXNG, known for the others.
        - `api_key`: secret text; default unset; `SHEAF_WEB_SEARCH_API_KEY`
          The key or token. In a file only if no one else can read that file.
        - `api_key_env`: text; default unset
          Environment variable that holds the key.
        - `key_command`: command, as a text for the shell or a list; default unset
          Command whose first line of output is the key; run when a request is made.
        - `key_file`: path; default unset
          File that holds the key and that only you can read.
        - `keyring`: text; default unset
          Name of the key in the system's keyring, under the service `sheaf`; for builds with the feature `keyring`.
        - `allow_http`: true | false; default `false`
          Allow an unencrypted address in a private network.

        ## [ui]

        - `output_rows` ◇: whole number from 1; default `8`; `SHEAF_UI_OUTPUT_ROWS`
          Lines of a command's output that are shown until it is unfolded: the first and the last ones.
        - `notify`: auto | osc9 | osc99 | osc777 | bell | off; default `"auto"`; `SHEAF_UI_NOTIFY`
          Notification when an answer ends or a question waits while another window has the focus.
        - `language`: text; default `"auto"`; `SHEAF_UI_LANGUAGE`
          Language of the interface: `auto` (from LANGUAGE, LC_ALL, LC_MESSAGES and LANG), `en`, `de`, or the name of a file in the folder `locale` beside the settings.
        - `syntax_theme`: text; default unset; `SHEAF_UI_SYNTAX_THEME`
          TextMate theme for code: a path, or the name of a .tmTheme file beside your own themes.
        - `thinking` ◇: folded | shown | hidden; default `"folded"`; `SHEAF_UI_THINKING`
          Display of a model's thinking.
        - `status`: list of model | effort | context | cost | sandbox; default `["model", "effort", "context", "cost", "sandbox"]`
          Items at the right of the header, in order. The sandbox state is always shown.
        - `status_command`: command, as a text for the shell or a list; default unset
          Command whose output replaces these items, up to four lines with colours; it gets the state as JSON on its standard input.
        - `images`: auto | off | kitty | iterm2 | sixel; default `"auto"`; `SHEAF_UI_IMAGES`
          Protocol for pictures: the one that the terminal reports, none (a line describes them), or this one.
        - `glyphs`: plain | nerd; default `"plain"`; `SHEAF_UI_GLYPHS`
          Signs before documents: from any font, or from a Nerd Font, which your terminal must then use.
        - `vim`: true | false; default `false`; `SHEAF_UI_VIM`
          Edit drafts with Vim keys.

        ## [sandbox]

        - `command_wait`: duration, such as "60s"; default `"30s"`; `SHEAF_SANDBOX_COMMAND_WAIT`
          Time that a model waits for a command before it continues in the background, unless the command says otherwise.
        - `command_limit`: duration, such as "60s"; default `"10m"`; `SHEAF_SANDBOX_COMMAND_LIMIT`
          Maximum run time of a command. One that was started in the background runs until the session ends.
        - `environment`: list of texts; default `["CARGO_HOME", "RUSTUP_HOME", "RUSTUP_TOOLCHAIN", "GOPATH", "GOROOT", "GOMODCACHE", "JAVA_HOME", "NVM_DIR", "PYENV_ROOT", "VIRTUAL_ENV", "CONDA_PREFIX"]`; `SHEAF_SANDBOX_ENVIRONMENT`
          Variables passed to a model's commands, beside PATH, HOME, LANG and the like; not for keys.

        ## [context]

        - `hidden`: list of texts; default `[]`; `SHEAF_CONTEXT_HIDDEN`
          Gitignore patterns of files that no tool sees, beside secrets such as .env; "!.env.example" shows one, "~/notes" is in your home folder.

        ## [lint]

        - `<name>`: command, as a text for the shell or a list; default `[]`
          Checker of a language, such as "cargo clippy --message-format=json" for rust. cargo check, tsc, eslint, ruff and go vet need no entry.

        ## [mcp.<name>]

        - `command`: text; default unset
          Program to start; it runs in the sandbox.
        - `args`: list of texts; default `[]`
          Arguments of the program.
        - `env`: table of texts; default unset
          Variables for the program, beside PATH, HOME and the like; `${NAME}` is a variable of yours.
        - `url`: text; default unset
          Address of a server that is reached over HTTP instead.
        - `headers`: table of texts; default unset
          Additional headers of every request to it; `${NAME}` is a variable of yours. Values are kept secret.
        - `network`: true | false; default `false`
          Let the program use the network.
        - `folders`: list of texts; default `[]`
          Folders that the program may write: "." is the workspace, "~/notes" is in your home folder. It writes nowhere else.
        - `enabled`: true | false; default `true`
          Use the server.
        - `timeout`: duration, such as "60s"; default `"0s"`
          Time limit of a call, which progress does not extend; 0s: a minute without progress, ten minutes in all.
        - `disabled_tools`: list of texts; default `[]`
          Names of its tools that are not offered.
        - `client_id`: text; default unset
          Client id that you registered with the server's authorization server, for `sheaf mcp login`.
        - `client_secret`: secret text; default unset
          Secret that belongs to it, if there is one. In a file only if no one else can read that file.
        - `client_key_file`: path; default unset
          File of the private key (PKCS #8 in PEM, ES256 or RS256) that belongs to it, instead of a secret.
        - `sign_in`: browser | client; default `"browser"`
          Sign-in method: your browser, or client credentials (the id and its secret or key).

        ## [lsp.<name>]

        - `command`: text; default unset
          Program to start; it runs in the sandbox, without network, and writes nothing.
        - `args`: list of texts; default `[]`
          Arguments of the program.
        - `extensions`: list of texts; default `[]`
          Extensions of the files that it handles: ".lua".
        - `root_markers`: list of texts; default `[]`
          Names of files that mark a project's root, where it starts; without one it starts in the workspace.
        - `initialization`: text; default `""`
          The member initializationOptions, as JSON.
        - `env`: table of texts; default unset
          Variables for the program, beside PATH, HOME and the like.
        - `enabled`: true | false; default `true`
          Use the server.

        ## [commit]

        - `note`: off | short | full; default `"short"`; `SHEAF_COMMIT_NOTE`
          Note on each commit in refs/notes/sheaf: file, lines, address, model and first line of your message per hunk; full has the whole message.

        ## [export]

        - `redact`: list of texts; default `[]`; `SHEAF_EXPORT_REDACT`
          Regular expressions of texts to remove from an export, beside keys; `[redacted]` replaces them.

        ## [serve]

        - `listen`: text; default `"127.0.0.1:8643"`; `SHEAF_SERVE_LISTEN`
          Address and port that `sheaf serve` listens on.
        - `token`: secret text; default unset; `SHEAF_SERVE_TOKEN`
          Token that clients must send. Unset: one is generated and kept in a file that only you can read.
        - `max_streams`: whole number, 1 to 4096; default `64`; `SHEAF_SERVE_MAX_STREAMS`
          Maximum number of answers that stream at the same time.
        - `allow_host`: list of texts; default `[]`; `SHEAF_SERVE_ALLOW_HOST`
          Accepted host names beside localhost, behind a proxy.
        - `allow_origin`: list of texts; default `[]`; `SHEAF_SERVE_ALLOW_ORIGIN`
          Origins of web pages that may call the server, such as `https://example.com`.
        - `linger`: duration, such as "60s"; default `"60s"`; `SHEAF_SERVE_LINGER`
          Time that a stored conversation's turn continues after its last reader has left.
        - `grace`: duration, such as "60s"; default `"30s"`; `SHEAF_SERVE_GRACE`
          Time that a stream of no stored conversation continues without a reader, so that its client can return; 0s stops it at once.
        - `tools`: reading | all; default `"reading"`; `SHEAF_SERVE_TOOLS`
          Tools for clients: reading and searching files, or all, with commands in the sandbox only.
        - `models`: list of texts; default `[]`; `SHEAF_SERVE_MODELS`
          Models that clients may name; empty: any. A request that names none gets your default.
        - `stateful`: true | false; default `false`; `SHEAF_SERVE_STATEFUL`
          Store conversations, so that clients send new messages only and can return to an answer.
        - `access_log`: true | false; default `true`
          Log each request to standard error: method, path, status and duration, nothing of its content.
        "#####);
    }

    #[test]
    fn paths_and_variables_are_unique_and_variables_follow_the_path() {
        let mut seen = Vec::new();
        for key in KEYS.iter() {
            assert!(!seen.contains(&key.path), "{}", key.path);
            seen.push(key.path.clone());
            // What people type most has a shorter name.
            let short = [("gateway.url", "SHEAF_GATEWAY"), ("gateway.token", "SHEAF_TOKEN")];
            let expected = short.iter().find(|it| it.0 == key.path).map_or_else(
                || format!("SHEAF_{}", key.path.replace('.', "_").to_ascii_uppercase()),
                |it| it.1.to_owned(),
            );
            if let Some(variable) = &key.variable {
                assert_eq!(*variable, expected);
                assert!(!seen.contains(variable), "{variable}");
                seen.push(variable.clone());
            }
        }
    }

    #[test]
    fn a_project_cannot_say_where_requests_go_or_what_they_carry() {
        for key in KEYS.iter().filter(|it| it.in_project) {
            let last = key.parts().next_back().unwrap_or_default();
            let harmless = [
                "provider",
                "model",
                "mode",
                "theme",
                "window",
                "price_in",
                "price_out",
                "price_cached",
                "max_output",
                "tools",
                "images",
                "reasoning",
                "output_rows",
                "thinking",
                "profile",
                "edit_style",
                "effort",
            ];
            if key.tightens {
                assert!(key.path.starts_with("approvals."), "{}", key.path);
                continue;
            }
            assert!(harmless.contains(&last), "{}", key.path);
        }
    }
}
