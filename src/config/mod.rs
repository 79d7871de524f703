//! Typed settings, merged from layers: defaults, user, project, environment, flags.
//!
//! `settings.rs` declares every setting with its description, default, kind of value and who may set it; reading, the
//! printed reference and the origin of each value follow from it, through [`KEYS`]. A wrong key or value never stops the
//! program: it becomes a [`Problem`] with file, line and the nearest right name, and the default applies. A project's
//! file may not set where requests go, how they get there, or which key they carry.

mod edit;
mod environment;
mod keyring;
mod layer;
mod origin;
mod paths;
mod problem;
mod provider;
mod reference;
mod secret;
mod settings;
mod trust;
mod value;

pub use edit::{SettingsWriteError, append, remove, set, store, store_all, store_server};
pub use environment::Environment;
pub use keyring::{HAS_KEYRING, KeyringError};
pub use layer::{CommandLineSettings, SettingsFile, load, merge};
pub use origin::{Layer, Origin};
pub use paths::{Paths, shown_path};
pub use problem::{Location, Problem, SourceText, distance, nearest, suggestion};
pub use provider::{AddressError, KnownService, SERVICES, Upstream, ollama_url};
pub use reference::{ExplainedValue, explain, messages, reference};
pub use secret::{KeyError, KeySource, Secret, forget_in_keyring, store_in_keyring};
pub use settings::{
    Agent, Approvals, Connection, Context, Export, Gateway, KEYS, Key, LanguageServer, McpServer, Model, Net, Prompt,
    Provider, ResultLimits, Roles, Sandbox, Search, Serve, Settings, ToolSettings, Ui, Web, is_trusted, size,
};
pub use trust::{COMMANDS, Fingerprint, TrustError, TrustRecord, TrustStore};
pub use value::{ConfiguredRule, ValueKind, duration};
