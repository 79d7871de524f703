//! Settings and surroundings of a conversation, as its embedder gives them.

use std::sync::Arc;

use crate::{
    config::{Paths, Settings},
    embedding::EmbeddingService,
    index::Index,
    link::{Asker, SandboxStatus},
    mcp::Servers,
    models::{Provider, Roles},
    protocol::ConversationId,
    sandbox::Workspace,
    tools::ToolSet,
};

/// Settings and surroundings of one conversation with the agent.
pub struct Setup {
    /// The server that answers where a message names no other.
    pub provider: Arc<dyn Provider>,
    /// The model that answers where a message names none; empty: the server's first.
    pub model: String,
    /// The id of the conversation.
    pub conversation: ConversationId,
    /// The one who answers questions.
    pub asker: Asker,
    /// The folder that tools work in; `None`: there are no tools.
    pub workspace: Option<Arc<Workspace>>,
    /// The settings when the conversation began.
    pub settings: Arc<Settings>,
    /// All that may be offered in some mode.
    pub tools: ToolSet,
    /// Servers whose tools are offered, too; `None`: there are none.
    pub servers: Option<Arc<Servers>>,
    /// Other models: by name, for other jobs, and for when one is overloaded.
    pub roles: Arc<Roles>,
    /// The chunks of the workspace's code.
    pub index: Arc<Index>,
    /// Vectors of code.
    pub embeddings: Arc<EmbeddingService>,
    /// The folders in which rules and earlier states of files are kept; `None`: they are not kept.
    pub paths: Option<Paths>,
    /// The state of the sandbox, which the screen reads.
    pub hold: SandboxStatus,
}
