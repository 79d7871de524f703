//! Servers of tools that speak the Model Context Protocol: which there are, whether they may start, and the conversation with
//! each.
//!
//! A server is foreign. What it sends (names, descriptions, schemas, results, requests of its own) is bounded here and never
//! obeyed; it is started only by [`Servers`], in the sandbox, and only if the user's own configuration names it or the user
//! has approved it. Nothing here knows an agent or a screen: tools leave this module as [`ToolInfo`] and results as
//! [`Reply`].
//!
//! | file | contents |
//! | --- | --- |
//! | `definition`, `files`, `variables` | servers as they are configured, here and in the files of other programs |
//! | `approval` | which servers and which tools the user has approved, and what has changed since |
//! | `message`, `host` | JSON-RPC, and what a server may ask of us |
//! | `stdio`, `http`, `oauth` | the two ways to reach a server, and signing in |
//! | `info` | what is known of a server, and why it gave no result |
//! | `connection` | a server that is spoken to, in either era of the protocol |
//! | `servers` | all servers of a conversation: starting, restarting, ending, calling |
//! | `content`, `schema`, `name` | results, schemas and names, made fit for models |
//! | `form` | a server's questions for the user |

mod approval;
mod connection;
mod content;
mod definition;
mod files;
mod form;
mod host;
mod http;
mod info;
mod message;
mod name;
mod oauth;
mod schema;
mod servers;
mod stdio;
mod variables;

pub use approval::{Approvals, Change, Standing, described};
pub use content::{Reply, capped};
pub use definition::{Definition, Endpoint, OAuthClient, Origin, Resolved};
pub use files::{Found, PROJECT_FILES, find};
pub use form::{Form, read as read_form};
pub use host::{Ask, Asked, Asker, Progress};
pub use info::{Era, Error, LEGACY_VERSIONS, MODERN, PromptInfo, ResourceInfo, ToolInfo};
pub use name::{ToolName, hashed_name, model_name, shown_name};
pub use oauth::{Attempt, AuthServer, Token, Tokens, challenge, find as find_auth_server, sign_in_alone};
pub use schema::reduced;
pub use servers::{IsTrusted, Note, Servers, ServersSetup, State, Status, ToolStatus, settle};
