//! The table of all keys. Reading, origins, the reference and `SHEAF_…` variables follow from it.

use super::{
    Settings,
    value::{KeyMethod, Slot, ValueKind},
};

/// A setting: its path, kind of value and field in [`Settings`].
pub struct Key {
    /// Dotted path; `*` stands for a name that the user chooses.
    pub path: &'static str,
    pub kind: ValueKind,
    /// Environment variable that sets it.
    pub variable: Option<&'static str>,
    /// True if a project's file may set it.
    pub in_project: bool,
    /// True if a project's value may only add to the user's caution.
    pub(super) tightens: bool,
    /// Description for the reference.
    pub about: &'static str,
    /// Returns the field, for the name that replaces `*`.
    pub(super) slot: for<'a> fn(&'a mut Settings, &str) -> Slot<'a>,
}

impl Key {
    const fn new(
        path: &'static str,
        kind: ValueKind,
        slot: for<'a> fn(&'a mut Settings, &str) -> Slot<'a>,
        about: &'static str,
    ) -> Self {
        Self {
            path,
            kind,
            variable: None,
            in_project: false,
            tightens: false,
            about,
            slot,
        }
    }

    const fn variable(mut self, name: &'static str) -> Self {
        self.variable = Some(name);
        self
    }

    const fn in_project(mut self) -> Self {
        self.in_project = true;
        self
    }

    const fn tightens(mut self) -> Self {
        self.in_project = true;
        self.tightens = true;
        self
    }

    /// Returns the parts of its path.
    pub(super) fn parts(&self) -> std::str::Split<'static, char> {
        self.path.split('.')
    }

    /// Returns true if it is one of the alternatives for setting an API key or token, which exclude each other.
    pub(super) fn gives_key(&self) -> bool {
        matches!((self.slot)(&mut Settings::default(), ""), Slot::Key(..))
    }

    /// Finds the key at a path.
    pub(super) fn at(path: &[String]) -> Option<&'static Self> {
        KEYS.iter().find(|key| {
            let mut parts = key.parts();
            path.iter()
                .all(|it| parts.next().is_some_and(|part| part == "*" || part == it))
                && parts.next().is_none()
        })
    }
}

const COUNT: ValueKind = ValueKind::Whole {
    least: 1,
    most: u64::MAX,
};

/// Range of counts of lines, matches and files.
const ENTRIES: ValueKind = ValueKind::Whole {
    least: 1,
    most: 1_000_000,
};

const BYTES: ValueKind = ValueKind::Whole {
    least: 1 << 10,
    most: 64 << 20,
};

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
pub const KEYS: &[Key] = &[
    Key::new(
        "provider",
        ValueKind::Text,
        |it, _| Slot::MaybeText(&mut it.provider),
        "The provider to use: one of `providers`, or a service known by name such as openai, openrouter, ollama.",
    )
    .variable("SHEAF_PROVIDER")
    .in_project(),
    Key::new(
        "model",
        ValueKind::Text,
        |it, _| Slot::MaybeText(&mut it.model),
        "The model to ask for where the provider's own entry names none.",
    )
    .variable("SHEAF_MODEL")
    .in_project(),
    Key::new(
        "mode",
        ValueKind::Word(&["agent", "plan", "ask", "debug"]),
        |it, _| Slot::Text(&mut it.mode),
        "The mode to start in.",
    )
    .variable("SHEAF_MODE")
    .in_project(),
    Key::new(
        "theme",
        ValueKind::Text,
        |it, _| Slot::Text(&mut it.theme),
        "The name of a theme, or `auto`: dark or light by the terminal's background.",
    )
    .variable("SHEAF_THEME")
    .in_project(),
    Key::new(
        "color",
        ValueKind::Flag,
        |it, _| Slot::Flag(&mut it.color),
        "Whether there are colours; a `NO_COLOR` that is not empty turns them off.",
    )
    .variable("SHEAF_COLOR"),
    Key::new(
        "motion",
        ValueKind::Flag,
        |it, _| Slot::Flag(&mut it.motion),
        "Whether clocks tick while something runs.",
    )
    .variable("SHEAF_MOTION"),
    Key::new(
        "mouse",
        ValueKind::Flag,
        |it, _| Slot::Flag(&mut it.mouse),
        "Whether the wheel scrolls and clicks select; the terminal's own selection then wants Shift.",
    )
    .variable("SHEAF_MOUSE"),
    Key::new(
        "links",
        ValueKind::Flag,
        |it, _| Slot::Flag(&mut it.links),
        "Whether links can be clicked in terminals that know how (OSC 8).",
    )
    .variable("SHEAF_LINKS"),
    Key::new(
        "rules",
        ValueKind::List,
        |it, _| Slot::List(&mut it.rules),
        "What every model is told to keep to, beside the rules of the workspace: one text each.",
    ),
    Key::new(
        "gateway.url",
        ValueKind::Url,
        |it, _| Slot::MaybeText(&mut it.gateway.connection.url),
        "The documents gateway to talk to, instead of a provider.",
    )
    .variable("SHEAF_GATEWAY"),
    Key::new(
        "gateway.token",
        ValueKind::Secret,
        |it, _| Slot::Key(&mut it.gateway.token, KeyMethod::Given),
        "Its token. In a file only when no one else can read that file.",
    )
    .variable("SHEAF_TOKEN"),
    Key::new(
        "gateway.token_env",
        ValueKind::Text,
        |it, _| Slot::Key(&mut it.gateway.token, KeyMethod::Variable),
        "The environment variable that holds its token.",
    ),
    Key::new(
        "gateway.token_command",
        ValueKind::Command,
        |it, _| Slot::Key(&mut it.gateway.token, KeyMethod::Command),
        "A command whose first line of output is its token; run when a request is made.",
    ),
    Key::new(
        "gateway.token_file",
        ValueKind::Path,
        |it, _| Slot::Key(&mut it.gateway.token, KeyMethod::File),
        "A file that only you can read and that holds its token.",
    ),
    Key::new(
        "gateway.token_keyring",
        ValueKind::Text,
        |it, _| Slot::Key(&mut it.gateway.token, KeyMethod::Keyring),
        "The name under which the system's keyring holds its token, with the service `sheaf`; for builds with the feature `keyring`.",
    ),
    Key::new(
        "gateway.dialect",
        ValueKind::Word(&["auto", "a", "b"]),
        |it, _| Slot::Text(&mut it.gateway.dialect),
        "The dialect of the stream to ask for.",
    ),
    Key::new(
        "gateway.context",
        ValueKind::Word(&["path", "rules", "layout"]),
        |it, _| Slot::Text(&mut it.gateway.context),
        "What the gateway is told of the workspace: its path alone, your rules and those of a trusted workspace too, or the \
         names of its files as well.",
    )
    .variable("SHEAF_GATEWAY_CONTEXT"),
    Key::new(
        "gateway.headers",
        ValueKind::Headers,
        |it, _| Slot::Headers(&mut it.gateway.connection.headers),
        "More headers to send with every request.",
    ),
    Key::new(
        "gateway.ca_file",
        ValueKind::Path,
        |it, _| Slot::Path(&mut it.gateway.connection.ca_file),
        "Certificates to trust beside the system's (PEM).",
    ),
    Key::new(
        "gateway.client_cert",
        ValueKind::Path,
        |it, _| Slot::Path(&mut it.gateway.connection.client_cert),
        "Our certificate and its key in one file (PEM).",
    ),
    Key::new(
        "gateway.proxy",
        ValueKind::Proxy,
        |it, _| Slot::Proxy(&mut it.gateway.connection.proxy),
        "The proxy to go through instead of the environment's, or `none`.",
    ),
    Key::new(
        "gateway.allow_http",
        ValueKind::Flag,
        |it, _| Slot::Flag(&mut it.gateway.connection.allow_http),
        "Whether an unencrypted address in a private network may be used.",
    ),
    Key::new(
        "gateway.connect_timeout",
        ValueKind::Duration,
        |it, _| Slot::Duration(&mut it.gateway.connection.connect_timeout),
        "How long connecting may take.",
    ),
    Key::new(
        "gateway.first_byte_timeout",
        ValueKind::Duration,
        |it, _| Slot::Duration(&mut it.gateway.connection.first_byte_timeout),
        "How long an answer may take to begin.",
    ),
    Key::new(
        "gateway.idle_timeout",
        ValueKind::Duration,
        |it, _| Slot::Duration(&mut it.gateway.connection.idle_timeout),
        "How long an answer may pause without a sign of life.",
    ),
    Key::new(
        "providers.*.kind",
        ValueKind::Word(&["openai", "openai-responses", "anthropic", "gemini", "ollama"]),
        |it, name| Slot::Text(&mut provider(it, name).kind),
        "What it speaks; openai means chat completions, as most servers do. A service known by name needs none.",
    ),
    Key::new(
        "providers.*.base_url",
        ValueKind::Url,
        |it, name| Slot::MaybeText(&mut provider(it, name).connection.url),
        "Its address, up to /v1. A service known by name needs none.",
    ),
    Key::new(
        "providers.*.model",
        ValueKind::Text,
        |it, name| Slot::MaybeText(&mut provider(it, name).model),
        "The model to ask it for.",
    )
    .in_project(),
    Key::new(
        "providers.*.api_key",
        ValueKind::Secret,
        |it, name| Slot::Key(&mut provider(it, name).key, KeyMethod::Given),
        "Its key. In a file only when no one else can read that file.",
    ),
    Key::new(
        "providers.*.api_key_env",
        ValueKind::Text,
        |it, name| Slot::Key(&mut provider(it, name).key, KeyMethod::Variable),
        "The environment variable that holds its key.",
    ),
    Key::new(
        "providers.*.key_command",
        ValueKind::Command,
        |it, name| Slot::Key(&mut provider(it, name).key, KeyMethod::Command),
        "A command whose first line of output is its key; run when a request is made.",
    ),
    Key::new(
        "providers.*.key_file",
        ValueKind::Path,
        |it, name| Slot::Key(&mut provider(it, name).key, KeyMethod::File),
        "A file that only you can read and that holds its key.",
    ),
    Key::new(
        "providers.*.keyring",
        ValueKind::Text,
        |it, name| Slot::Key(&mut provider(it, name).key, KeyMethod::Keyring),
        "The name under which the system's keyring holds its key, with the service `sheaf`; for builds with the feature `keyring`.",
    ),
    Key::new(
        "providers.*.headers",
        ValueKind::Headers,
        |it, name| Slot::Headers(&mut provider(it, name).connection.headers),
        "More headers to send with every request.",
    ),
    Key::new(
        "providers.*.ca_file",
        ValueKind::Path,
        |it, name| Slot::Path(&mut provider(it, name).connection.ca_file),
        "Certificates to trust beside the system's (PEM).",
    ),
    Key::new(
        "providers.*.client_cert",
        ValueKind::Path,
        |it, name| Slot::Path(&mut provider(it, name).connection.client_cert),
        "Our certificate and its key in one file (PEM).",
    ),
    Key::new(
        "providers.*.proxy",
        ValueKind::Proxy,
        |it, name| Slot::Proxy(&mut provider(it, name).connection.proxy),
        "The proxy to go through instead of the environment's, or `none`.",
    ),
    Key::new(
        "providers.*.allow_http",
        ValueKind::Flag,
        |it, name| Slot::Flag(&mut provider(it, name).connection.allow_http),
        "Whether an unencrypted address in a private network may be used.",
    ),
    Key::new(
        "providers.*.connect_timeout",
        ValueKind::Duration,
        |it, name| Slot::Duration(&mut provider(it, name).connection.connect_timeout),
        "How long connecting may take.",
    ),
    Key::new(
        "providers.*.first_byte_timeout",
        ValueKind::Duration,
        |it, name| Slot::Duration(&mut provider(it, name).connection.first_byte_timeout),
        "How long an answer may take to begin; a server that loads its model first wants minutes.",
    ),
    Key::new(
        "providers.*.idle_timeout",
        ValueKind::Duration,
        |it, name| Slot::Duration(&mut provider(it, name).connection.idle_timeout),
        "How long an answer may pause without a sign of life.",
    ),
    Key::new(
        "providers.*.think_tags",
        ValueKind::Flag,
        |it, name| Slot::Flag(&mut provider(it, name).think_tags),
        "Whether a <think> block at the start of an answer is shown as thinking.",
    ),
    Key::new(
        "providers.*.allow_fields",
        ValueKind::List,
        |it, name| Slot::MaybeList(&mut provider(it, name).allow_fields),
        "The optional fields of a request that it takes, for servers that refuse what they do not know; without it all are sent.",
    ),
    Key::new(
        "providers.*.num_ctx",
        COUNT,
        |it, name| Slot::MaybeWhole(&mut provider(it, name).num_ctx),
        "The window to ask an Ollama for; without it what the model has, up to 32768 tokens.",
    ),
    Key::new(
        "providers.*.max_tokens",
        COUNT,
        |it, name| Slot::MaybeWhole(&mut provider(it, name).max_tokens),
        "The most tokens to ask for in one answer.",
    ),
    Key::new(
        "providers.*.temperature",
        ValueKind::Number,
        |it, name| Slot::MaybeNumber(&mut provider(it, name).temperature),
        "How freely it may choose its words, where it has such a thing.",
    ),
    Key::new(
        "providers.*.replay_reasoning",
        ValueKind::Word(&["tool_loop", "always", "never"]),
        |it, name| Slot::Text(&mut provider(it, name).replay_reasoning),
        "When its earlier reasoning is sent back to it.",
    ),
    Key::new(
        "prompt.append",
        ValueKind::Text,
        |it, _| Slot::MaybeText(&mut it.prompt.append),
        "Words at the end of the system prompt; or the file `prompts/append.md` beside the configuration.",
    ),
    Key::new(
        "prompt.replace.*",
        ValueKind::Text,
        |it, name| Slot::Text(it.prompt.replace.entry(name.to_owned()).or_default()),
        "A block of the system prompt in words of your own, or the file `prompts/<block>.md`: role, communication, \
         no_tools, tool_calling, maximize_parallel_tool_calls, maximize_context_understanding, making_code_changes, \
         citing_code, task_management, plan_mode, ask_mode, debug_mode.",
    ),
    Key::new(
        "roles.fast",
        ValueKind::Text,
        |it, _| Slot::MaybeText(&mut it.roles.fast),
        "The model for titles, summaries and other side jobs: provider/model, or a model of the provider in use.",
    )
    .variable("SHEAF_ROLES_FAST"),
    Key::new(
        "roles.apply",
        ValueKind::Text,
        |it, _| Slot::MaybeText(&mut it.roles.apply),
        "The model that puts sketched edits into files.",
    )
    .variable("SHEAF_ROLES_APPLY"),
    Key::new(
        "roles.embed",
        ValueKind::Text,
        |it, _| Slot::MaybeText(&mut it.roles.embed),
        "The model that makes vectors of texts. Nothing asks for them yet: code is searched by its words.",
    )
    .variable("SHEAF_ROLES_EMBED"),
    Key::new(
        "roles.fallback",
        ValueKind::List,
        |it, _| Slot::List(&mut it.roles.fallback),
        "The models that are asked in turn when the one before is overloaded.",
    )
    .variable("SHEAF_ROLES_FALLBACK"),
    Key::new(
        "models.*.window",
        COUNT,
        |it, name| Slot::MaybeWhole(&mut model(it, name).window),
        "The tokens that the model takes in.",
    )
    .in_project(),
    Key::new(
        "models.*.price_in",
        ValueKind::Number,
        |it, name| Slot::MaybeNumber(&mut model(it, name).price_in),
        "Dollars for a million tokens in.",
    )
    .in_project(),
    Key::new(
        "models.*.price_out",
        ValueKind::Number,
        |it, name| Slot::MaybeNumber(&mut model(it, name).price_out),
        "Dollars for a million tokens out.",
    )
    .in_project(),
    Key::new(
        "models.*.price_cached",
        ValueKind::Number,
        |it, name| Slot::MaybeNumber(&mut model(it, name).price_cached),
        "Dollars for a million tokens that the server had in its cache.",
    )
    .in_project(),
    Key::new(
        "models.*.max_output",
        COUNT,
        |it, name| Slot::MaybeWhole(&mut model(it, name).max_output),
        "The most tokens of an answer.",
    )
    .in_project(),
    Key::new(
        "models.*.tools",
        ValueKind::Flag,
        |it, name| Slot::MaybeFlag(&mut model(it, name).tools),
        "Whether it can call tools.",
    )
    .in_project(),
    Key::new(
        "models.*.images",
        ValueKind::Flag,
        |it, name| Slot::MaybeFlag(&mut model(it, name).images),
        "Whether it can see images.",
    )
    .in_project(),
    Key::new(
        "models.*.reasoning",
        ValueKind::Flag,
        |it, name| Slot::MaybeFlag(&mut model(it, name).reasoning),
        "Whether it thinks before it answers.",
    )
    .in_project(),
    Key::new(
        "agent.profile",
        ValueKind::Word(&["auto", "full", "short"]),
        |it, _| Slot::Text(&mut it.agent.profile),
        "Which tools a model is offered: all, the few that matter most, or those below a window of 32,000 tokens.",
    )
    .variable("SHEAF_AGENT_PROFILE")
    .in_project(),
    Key::new(
        "agent.edit_style",
        ValueKind::Word(&["replace", "sketch", "both"]),
        |it, _| Slot::Text(&mut it.agent.edit_style),
        "How a model changes files: by exact replacement, by a sketch that is merged, or as it likes.",
    )
    .variable("SHEAF_AGENT_EDIT_STYLE")
    .in_project(),
    Key::new(
        "agent.effort",
        ValueKind::Word(&["auto", "off", "low", "medium", "high"]),
        |it, _| Slot::Text(&mut it.agent.effort),
        "How hard a model thinks before it answers, where it can be told.",
    )
    .variable("SHEAF_AGENT_EFFORT")
    .in_project(),
    Key::new(
        "agent.lint_wait",
        ValueKind::Duration,
        |it, _| Slot::Duration(&mut it.agent.lint_wait),
        "How long the result of a change waits for what checkers say of it, in a workspace that may act; those that took longer are not asked again. `0s`: not at all.",
    )
    .variable("SHEAF_AGENT_LINT_WAIT"),
    Key::new(
        "agent.max_requests",
        COUNT,
        |it, _| Slot::Whole(&mut it.agent.max_requests),
        "After so many requests for one message you are asked whether to go on.",
    )
    .variable("SHEAF_AGENT_MAX_REQUESTS"),
    Key::new(
        "agent.max_calls",
        COUNT,
        |it, _| Slot::Whole(&mut it.agent.max_calls),
        "After so many calls of tools for one message you are asked whether to go on.",
    )
    .variable("SHEAF_AGENT_MAX_CALLS"),
    Key::new(
        "agent.warn_failures",
        COUNT,
        |it, _| Slot::Whole(&mut it.agent.warn_failures),
        "The same call failing in the same way so often in a row: the model is told so.",
    )
    .variable("SHEAF_AGENT_WARN_FAILURES"),
    Key::new(
        "agent.max_failures",
        COUNT,
        |it, _| Slot::Whole(&mut it.agent.max_failures),
        "The same, and the answer ends.",
    )
    .variable("SHEAF_AGENT_MAX_FAILURES"),
    Key::new(
        "agent.max_dollars",
        ValueKind::Number,
        |it, _| Slot::MaybeNumber(&mut it.agent.max_dollars),
        "After an answer has cost so much you are asked whether to go on; it is looked at before each request, and only where the price of the model is known.",
    )
    .variable("SHEAF_AGENT_MAX_DOLLARS"),
    Key::new(
        "agent.max_dollars_in_all",
        ValueKind::Number,
        |it, _| Slot::MaybeNumber(&mut it.agent.max_dollars_in_all),
        "The same for a whole conversation.",
    )
    .variable("SHEAF_AGENT_MAX_DOLLARS_IN_ALL"),
    Key::new(
        "trusted",
        ValueKind::List,
        |it, _| Slot::List(&mut it.trusted),
        "Folders whose own rules hold; the rules of any other are listed and not followed.",
    ),
    Key::new(
        "tools.*.enabled",
        ValueKind::Flag,
        |it, name| Slot::Flag(&mut tool(it, name).enabled),
        "Whether a tool is offered.",
    ),
    Key::new(
        "tools.*.modes",
        ValueKind::List,
        |it, name| Slot::MaybeList(&mut tool(it, name).modes),
        "The modes that it is offered in, of those that permit it.",
    ),
    Key::new(
        "tools.*.allowed_paths",
        ValueKind::List,
        |it, name| Slot::MaybeList(&mut tool(it, name).allowed_paths),
        "What it may touch, as patterns from the workspace's root such as \"src/**\"; everything else is refused.",
    ),
    Key::new(
        "tools.*.require_approval",
        ValueKind::Flag,
        |it, name| Slot::Flag(&mut tool(it, name).require_approval),
        "Whether every use of it asks.",
    ),
    Key::new(
        "tools.*.max_bytes",
        COUNT,
        |it, name| Slot::MaybeWhole(&mut tool(it, name).max_bytes),
        "The most that a model is given of a result.",
    ),
    Key::new(
        "limits.read_lines",
        ENTRIES,
        |it, _| Slot::Whole(&mut it.limits.read_lines),
        "The most lines that a model is given of a file at a time.",
    )
    .variable("SHEAF_LIMITS_READ_LINES"),
    Key::new(
        "limits.read_bytes",
        BYTES,
        |it, _| Slot::Whole(&mut it.limits.read_bytes),
        "The most bytes of a file at a time.",
    )
    .variable("SHEAF_LIMITS_READ_BYTES"),
    Key::new(
        "limits.line_characters",
        ENTRIES,
        |it, _| Slot::Whole(&mut it.limits.line_characters),
        "A line of a file is cut after so many characters.",
    )
    .variable("SHEAF_LIMITS_LINE_CHARACTERS"),
    Key::new(
        "limits.grep_matches",
        ENTRIES,
        |it, _| Slot::Whole(&mut it.limits.grep_matches),
        "The most matches of one search with `grep`.",
    )
    .variable("SHEAF_LIMITS_GREP_MATCHES"),
    Key::new(
        "limits.grep_files",
        ENTRIES,
        |it, _| Slot::Whole(&mut it.limits.grep_files),
        "The most files that they are shown of.",
    )
    .variable("SHEAF_LIMITS_GREP_FILES"),
    Key::new(
        "limits.grep_bytes",
        BYTES,
        |it, _| Slot::Whole(&mut it.limits.grep_bytes),
        "The most bytes of them.",
    )
    .variable("SHEAF_LIMITS_GREP_BYTES"),
    Key::new(
        "limits.glob_files",
        ENTRIES,
        |it, _| Slot::Whole(&mut it.limits.glob_files),
        "The most files of a search by name.",
    )
    .variable("SHEAF_LIMITS_GLOB_FILES"),
    Key::new(
        "limits.list_entries",
        ENTRIES,
        |it, _| Slot::Whole(&mut it.limits.list_entries),
        "The most entries of a listing.",
    )
    .variable("SHEAF_LIMITS_LIST_ENTRIES"),
    Key::new(
        "limits.search_chunks",
        ValueKind::Whole { least: 1, most: 100 },
        |it, _| Slot::Whole(&mut it.limits.search_chunks),
        "The most places of a search by words.",
    )
    .variable("SHEAF_LIMITS_SEARCH_CHUNKS"),
    Key::new(
        "limits.search_bytes",
        BYTES,
        |it, _| Slot::Whole(&mut it.limits.search_bytes),
        "The most bytes of them.",
    )
    .variable("SHEAF_LIMITS_SEARCH_BYTES"),
    Key::new(
        "limits.search_time",
        ValueKind::Duration,
        |it, _| Slot::Duration(&mut it.limits.search_time),
        "A search that takes longer shows what it has.",
    )
    .variable("SHEAF_LIMITS_SEARCH_TIME"),
    Key::new(
        "limits.output_head",
        ValueKind::Whole { least: 1 << 10, most: 256 << 10 },
        |it, _| Slot::Whole(&mut it.limits.output_head),
        "Bytes of the beginning of what a command printed that a model is given …",
    )
    .variable("SHEAF_LIMITS_OUTPUT_HEAD"),
    Key::new(
        "limits.output_tail",
        ValueKind::Whole { least: 1 << 10, most: 768 << 10 },
        |it, _| Slot::Whole(&mut it.limits.output_tail),
        "… and of its end; the log that is named holds all of it.",
    )
    .variable("SHEAF_LIMITS_OUTPUT_TAIL"),
    Key::new(
        "limits.fetch_bytes",
        BYTES,
        |it, _| Slot::Whole(&mut it.limits.fetch_bytes),
        "The most bytes of a page that are loaded.",
    )
    .variable("SHEAF_LIMITS_FETCH_BYTES"),
    Key::new(
        "limits.fetch_text",
        BYTES,
        |it, _| Slot::Whole(&mut it.limits.fetch_text),
        "The most bytes of its text that a model is given.",
    )
    .variable("SHEAF_LIMITS_FETCH_TEXT"),
    Key::new(
        "limits.fetch_redirects",
        ValueKind::Whole { least: 0, most: 20 },
        |it, _| Slot::Whole(&mut it.limits.fetch_redirects),
        "How often a page may lead to another.",
    )
    .variable("SHEAF_LIMITS_FETCH_REDIRECTS"),
    Key::new(
        "limits.fetch_time",
        ValueKind::Duration,
        |it, _| Slot::Duration(&mut it.limits.fetch_time),
        "How long a page may take, all in all.",
    )
    .variable("SHEAF_LIMITS_FETCH_TIME"),
    Key::new(
        "approvals.run",
        ValueKind::Word(&["ask", "list", "sandbox"]),
        |it, _| Slot::Text(&mut it.approvals.run),
        "How much a model may do unasked: nothing that runs or changes; changes of files, and commands of the list; or also every command that the sandbox holds. A project can only make it stricter.",
    )
    .variable("SHEAF_APPROVALS_RUN")
    .tightens(),
    Key::new(
        "approvals.allow",
        ValueKind::Rules,
        |it, _| Slot::Rules(&mut it.approvals.allow),
        "What goes on without a question, such as \"Shell(cargo test)\", \"Read(~/notes/**)\", \"WebFetch(docs.rs)\".",
    ),
    Key::new(
        "approvals.ask",
        ValueKind::Rules,
        |it, _| Slot::Rules(&mut it.approvals.ask),
        "What always asks, whatever is allowed. A project can add to it.",
    )
    .tightens(),
    Key::new(
        "approvals.deny",
        ValueKind::Rules,
        |it, _| Slot::Rules(&mut it.approvals.deny),
        "What is refused, whatever is allowed. A project can add to it.",
    )
    .tightens(),
    Key::new(
        "web.allow_private",
        ValueKind::List,
        |it, _| Slot::List(&mut it.web.allow_private),
        "Hosts that web_fetch may reach although they are on this machine or in a private network, such as localhost.",
    ),
    Key::new(
        "web.search.kind",
        ValueKind::Word(&["searxng", "brave", "tavily"]),
        |it, _| Slot::MaybeText(&mut it.web.search.kind),
        "The service that searches the web for the model; without one it is not offered.",
    )
    .variable("SHEAF_WEB_SEARCH_KIND"),
    Key::new(
        "web.search.url",
        ValueKind::Url,
        |it, _| Slot::MaybeText(&mut it.web.search.connection.url),
        "Its address: that of your SearXNG; the others know theirs.",
    )
    .variable("SHEAF_WEB_SEARCH_URL"),
    Key::new(
        "web.search.api_key",
        ValueKind::Secret,
        |it, _| Slot::Key(&mut it.web.search.key, KeyMethod::Given),
        "Its key. In a file only when no one else can read that file.",
    )
    .variable("SHEAF_WEB_SEARCH_API_KEY"),
    Key::new(
        "web.search.api_key_env",
        ValueKind::Text,
        |it, _| Slot::Key(&mut it.web.search.key, KeyMethod::Variable),
        "The environment variable that holds its key.",
    ),
    Key::new(
        "web.search.key_command",
        ValueKind::Command,
        |it, _| Slot::Key(&mut it.web.search.key, KeyMethod::Command),
        "A command whose first line of output is its key; run when a request is made.",
    ),
    Key::new(
        "web.search.key_file",
        ValueKind::Path,
        |it, _| Slot::Key(&mut it.web.search.key, KeyMethod::File),
        "A file that only you can read and that holds its key.",
    ),
    Key::new(
        "web.search.keyring",
        ValueKind::Text,
        |it, _| Slot::Key(&mut it.web.search.key, KeyMethod::Keyring),
        "The name under which the system's keyring holds its key, with the service `sheaf`; for builds with the feature `keyring`.",
    ),
    Key::new(
        "web.search.allow_http",
        ValueKind::Flag,
        |it, _| Slot::Flag(&mut it.web.search.connection.allow_http),
        "Whether an unencrypted address in a private network may be used.",
    ),
    Key::new(
        "ui.output_rows",
        COUNT,
        |it, _| Slot::Whole(&mut it.ui.output_rows),
        "Rows of a command's output above which it is folded to head and tail.",
    )
    .variable("SHEAF_UI_OUTPUT_ROWS")
    .in_project(),
    Key::new(
        "ui.notify",
        ValueKind::Word(&["auto", "osc9", "osc99", "osc777", "bell", "off"]),
        |it, _| Slot::Text(&mut it.ui.notify),
        "How you are told that an answer has ended or a question waits while you look at another window.",
    )
    .variable("SHEAF_UI_NOTIFY"),
    Key::new(
        "ui.language",
        ValueKind::Text,
        |it, _| Slot::Text(&mut it.ui.language),
        "What the interface speaks: `auto` (by LANGUAGE, LC_ALL, LC_MESSAGES and LANG), `en`, `de`, or the name of a file in the folder `locale` beside the settings.",
    )
    .variable("SHEAF_UI_LANGUAGE"),
    Key::new(
        "ui.syntax_theme",
        ValueKind::Text,
        |it, _| Slot::MaybeText(&mut it.ui.syntax_theme),
        "Colours for code from a theme in TextMate's form: a path, or the name of a .tmTheme file beside your own themes.",
    )
    .variable("SHEAF_UI_SYNTAX_THEME"),
    Key::new(
        "ui.thinking",
        ValueKind::Word(&["folded", "shown", "hidden"]),
        |it, _| Slot::Text(&mut it.ui.thinking),
        "How a model's thinking is shown.",
    )
    .variable("SHEAF_UI_THINKING")
    .in_project(),
    Key::new(
        "ui.status",
        ValueKind::Words(&["model", "effort", "context", "cost", "sandbox"]),
        |it, _| Slot::List(&mut it.ui.status),
        "What stands at the right of the header, in this order. What holds commands is said in any case.",
    ),
    Key::new(
        "ui.status_command",
        ValueKind::Command,
        |it, _| Slot::MaybeList(&mut it.ui.status_command),
        "A command whose first line of output stands there instead; it is told the state as JSON on its standard input.",
    ),
    Key::new(
        "ui.images",
        ValueKind::Word(&["auto", "off", "kitty", "iterm2", "sixel"]),
        |it, _| Slot::Text(&mut it.ui.images),
        "How pictures are drawn: as the terminal says that it can, not at all (a line says what they are), or by the protocol that is named, whatever the terminal says.",
    )
    .variable("SHEAF_UI_IMAGES"),
    Key::new(
        "ui.glyphs",
        ValueKind::Word(&["plain", "nerd"]),
        |it, _| Slot::Text(&mut it.ui.glyphs),
        "The signs before documents: such that every font has, or those of a Nerd Font, which your terminal then has to use.",
    )
    .variable("SHEAF_UI_GLYPHS"),
    Key::new(
        "ui.vim",
        ValueKind::Flag,
        |it, _| Slot::Flag(&mut it.ui.vim),
        "Whether drafts are edited as in Vim.",
    )
    .variable("SHEAF_UI_VIM"),
    Key::new(
        "sandbox.command_wait",
        ValueKind::Duration,
        |it, _| Slot::Duration(&mut it.sandbox.command_wait),
        "How long a model waits for a command that says nothing else, before the command goes on in the background.",
    )
    .variable("SHEAF_SANDBOX_COMMAND_WAIT"),
    Key::new(
        "sandbox.command_limit",
        ValueKind::Duration,
        |it, _| Slot::Duration(&mut it.sandbox.command_limit),
        "How long a command may take; one that was started in the background lives until the session ends.",
    )
    .variable("SHEAF_SANDBOX_COMMAND_LIMIT"),
    Key::new(
        "sandbox.environment",
        ValueKind::List,
        |it, _| Slot::List(&mut it.sandbox.environment),
        "Variables that commands of a model are told, beside PATH, HOME, LANG and their like; keys do not belong here.",
    )
    .variable("SHEAF_SANDBOX_ENVIRONMENT"),
    Key::new(
        "context.hidden",
        ValueKind::List,
        |it, _| Slot::List(&mut it.context.hidden),
        "Patterns, as in a .gitignore, of files that no tool sees, beside secrets such as .env; \"!.env.example\" shows one, \"~/notes\" lies in your home.",
    )
    .variable("SHEAF_CONTEXT_HIDDEN"),
    Key::new(
        "lint.*",
        ValueKind::Command,
        |it, name| Slot::List(it.lint.entry(name.to_owned()).or_default()),
        "What checks files of a language, such as \"cargo clippy --message-format=json\" for rust; cargo check, tsc, eslint, ruff and go vet need no entry.",
    ),
    Key::new(
        "export.redact",
        ValueKind::List,
        |it, _| Slot::List(&mut it.redact),
        "Regular expressions of what an exported conversation must not hold, beside keys: `[redacted]` stands there instead.",
    )
    .variable("SHEAF_EXPORT_REDACT"),
    Key::new(
        "serve.listen",
        ValueKind::Text,
        |it, _| Slot::Text(&mut it.serve.listen),
        "Where `sheaf serve` listens: address and port.",
    )
    .variable("SHEAF_SERVE_LISTEN"),
    Key::new(
        "serve.token",
        ValueKind::Secret,
        |it, _| Slot::Secret(&mut it.serve.token),
        "What a client must show; without it one is made and kept in a file that only you can read.",
    )
    .variable("SHEAF_SERVE_TOKEN"),
    Key::new(
        "serve.max_streams",
        ValueKind::Whole { least: 1, most: 4096 },
        |it, _| Slot::Whole(&mut it.serve.max_streams),
        "How many answers may stream at the same time.",
    )
    .variable("SHEAF_SERVE_MAX_STREAMS"),
    Key::new(
        "serve.allow_host",
        ValueKind::List,
        |it, _| Slot::List(&mut it.serve.allow_host),
        "Names beside localhost under which clients may ask for it, behind a proxy.",
    )
    .variable("SHEAF_SERVE_ALLOW_HOST"),
    Key::new(
        "serve.allow_origin",
        ValueKind::List,
        |it, _| Slot::List(&mut it.serve.allow_origin),
        "Web pages that may call it, such as https://example.com.",
    )
    .variable("SHEAF_SERVE_ALLOW_ORIGIN"),
    Key::new(
        "serve.linger",
        ValueKind::Duration,
        |it, _| Slot::Duration(&mut it.serve.linger),
        "How long the turn of a conversation goes on after its last reader left.",
    )
    .variable("SHEAF_SERVE_LINGER"),
    Key::new(
        "serve.tools",
        ValueKind::Word(&["reading", "all"]),
        |it, _| Slot::Text(&mut it.serve.tools),
        "What clients can have done: reading and searching files, or everything, with commands in the sandbox only.",
    )
    .variable("SHEAF_SERVE_TOOLS"),
    Key::new(
        "serve.stateful",
        ValueKind::Flag,
        |it, _| Slot::Flag(&mut it.serve.stateful),
        "Whether conversations are kept, so that clients send new messages only and can come back to an answer.",
    )
    .variable("SHEAF_SERVE_STATEFUL"),
    Key::new(
        "serve.access_log",
        ValueKind::Flag,
        |it, _| Slot::Flag(&mut it.serve.access_log),
        "Whether each answered request is a line on standard error: method, path, status and duration, and nothing of what was said.",
    ),
];

fn provider<'a>(settings: &'a mut Settings, name: &str) -> &'a mut super::Provider {
    settings.providers.entry(name.to_owned()).or_default()
}

fn tool<'a>(settings: &'a mut Settings, name: &str) -> &'a mut super::ToolSettings {
    settings.tools.entry(name.to_owned()).or_default()
}

fn model<'a>(settings: &'a mut Settings, name: &str) -> &'a mut super::Model {
    settings.models.entry(name.to_owned()).or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_and_variables_are_unique_and_variables_follow_the_path() {
        let mut seen = Vec::new();
        for key in KEYS {
            assert!(!seen.contains(&key.path), "{}", key.path);
            seen.push(key.path);
            // What people type most has a shorter name.
            let short = [("gateway.url", "SHEAF_GATEWAY"), ("gateway.token", "SHEAF_TOKEN")];
            let expected = short.iter().find(|it| it.0 == key.path).map_or_else(
                || format!("SHEAF_{}", key.path.replace('.', "_").to_ascii_uppercase()),
                |it| it.1.to_owned(),
            );
            if let Some(variable) = key.variable {
                assert_eq!(variable, expected);
                assert!(!seen.contains(&variable), "{variable}");
                seen.push(variable);
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
