//! Servers of tools (MCP) as the screen shows them, and what the user does with them there.

/// All servers of a conversation.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ServersReport {
    /// Sorted by name.
    pub servers: Vec<ServerReport>,
    /// Mistakes in their definitions: a sentence each.
    pub problems: Vec<String>,
}

/// A server.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ServerReport {
    pub name: String,
    /// The file that defines it.
    pub file: String,
    /// Its command line, or its address.
    pub line: String,
    /// Variables that it is given, as they are written.
    pub given: Vec<String>,
    /// Its folder, and what it is granted: a phrase each.
    pub reach: Vec<String>,
    /// The walls around it that are missing; empty: none, or it is no program.
    pub gaps: String,
    pub state: ServerState,
    /// Name and version that it gives itself; empty before it was reached.
    pub title: String,
    /// The version of the protocol; empty before it was reached.
    pub version: String,
    pub tools: Vec<ServerTool>,
    pub prompts: Vec<ServerPrompt>,
    pub resources: Vec<ServerResource>,
    /// The end of its log.
    pub log: Vec<String>,
    /// Fingerprint of what an approval is of.
    pub print: String,
}

/// State of a server.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum ServerState {
    #[default]
    Off,
    /// The user has to approve it; `was`: the command line or address that they approved before.
    Unapproved {
        was: Option<String>,
    },
    /// The file that defines it is not trusted.
    Untrusted,
    Unusable(String),
    Starting,
    Ready,
    SignIn,
    Failed(String),
}

/// A tool of a server.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ServerTool {
    pub name: String,
    pub about: String,
    /// About as many tokens as it takes in each request.
    pub tokens: u64,
    pub is_on: bool,
    /// It is not what was approved: what it was (`None`: it is new), and what it is.
    pub change: Option<(Option<String>, String)>,
}

/// A prompt of a server.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ServerPrompt {
    /// The word that a message begins with to use it, without its slash: `mcp__server__prompt`.
    pub command: String,
    pub about: String,
    /// Its arguments in their order, as help shows them: `<file> [focus]`.
    pub arguments: String,
}

/// Values that a server offers for the argument of a prompt that is being typed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PromptValues {
    /// The draft without the value that was begun.
    pub before: String,
    pub values: Vec<String>,
    /// No further argument follows.
    pub is_last: bool,
}

/// A resource of a server.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ServerResource {
    /// The word that attaches it to a message, without its `@`: `server:uri`.
    pub mention: String,
    pub name: String,
    pub about: String,
}

/// A change that the user makes to a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ServerChange {
    /// Approve it as it was shown, with its tools or with one tool only, and start it.
    Approve {
        tool: Option<String>,
        /// [`ServerReport::print`] of what was shown.
        shown: String,
    },
    Restart,
    /// Switch it on or off, until the conversation ends.
    Switch(bool),
    /// The same for one of its tools.
    SwitchTool(String, bool),
}
