//! What a model can do: one file a tool, one line each in [`TOOLS`].
//!
//! A tool says what it would touch before it does anything, so that the call can be judged; a tool that changes files works
//! out the change first, so that it can be shown before it is made. Tools reach files and commands through
//! [`sandbox`](crate::sandbox) only. A mistake of the model's is an answer to the model ([`Fault`]), never a failure of
//! the program.

pub mod apply_patch;
pub mod arguments;
pub mod ask;
pub mod await_command;
pub mod codebase_search;
pub mod create_plan;
pub mod delete_file;
pub mod edit;
pub mod edit_file;
pub mod edit_notebook;
pub mod glob_file_search;
pub mod grep;
mod html;
pub mod list_dir;
pub mod read_file;
pub mod read_lints;
pub mod run_terminal_cmd;
pub mod search_replace;
pub mod switch_mode;
pub mod todo_write;
mod walk;
pub mod web_fetch;
pub mod web_search;
pub mod write;

use std::{
    future::Future,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use serde_json::{Map, Value};
use tokio::sync::mpsc;

use crate::{
    config::Settings,
    index::Index,
    model::{Chosen, Image},
    protocol::{Mode, Operation, Permission},
    sandbox::{Located, Refused, Seen, Workspace},
};

pub use crate::sandbox::{Cell, Change, Hunk};

/// A tool.
pub struct Tool {
    /// The one name that a model is shown.
    pub name: &'static str,
    /// Other names that models know it by.
    pub aliases: &'static [&'static str],
    /// For the model.
    pub about: &'static str,
    pub class: Class,
    pub modes: &'static [Mode],
    /// An object schema of `type, properties, required, items, enum, description` only.
    pub schema: fn() -> Value,
    /// Other names of arguments, by the canonical one.
    pub synonyms: &'static [(&'static str, &'static [&'static str])],
    pub work: Work,
}

impl std::fmt::Debug for Tool {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name)
    }
}

impl PartialEq for Tool {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

/// What kind of thing a tool does; decides what may run beside what.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    Reads,
    Writes,
    /// Runs something, or reaches out.
    Runs,
    /// Asks the user: comes last of the calls of a message.
    Talks,
    /// Changes what the agent remembers.
    State,
}

/// How it is done.
#[derive(Clone, Copy)]
pub enum Work {
    /// Judged by what it would touch, then run. Shown as a call of a tool.
    Call { touches: Touches, run: Run },
    /// The change is worked out, judged, shown and then made. Shown as edits.
    Change(Propose),
    /// A shell command: its output is shown while it runs.
    Command { touches: Touches, run: Run },
    /// The turn itself does it.
    Turn(Part),
}

/// What the turn does itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    Todos,
    Plan,
    Ask,
    Mode,
}

pub type Promise<T> = Pin<Box<dyn Future<Output = T> + Send>>;
/// Quick: it may look at the file system, and changes nothing.
pub type Touches = fn(&Input, &Context) -> Result<Vec<Access>, Fault>;
/// Dropping the promise stops the work.
pub type Run = fn(Input, Context) -> Promise<Result<Outcome, Fault>>;
pub type Propose = fn(Input, Context) -> Promise<Result<Proposal, Fault>>;

/// The arguments of a call: canonical names, values of the schema's types.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Input(pub Map<String, Value>);

impl Input {
    pub fn text(&self, name: &str) -> Option<&str> {
        self.0.get(name).and_then(Value::as_str)
    }

    pub fn integer(&self, name: &str) -> Option<i64> {
        self.0.get(name).and_then(Value::as_i64)
    }

    pub fn flag(&self, name: &str) -> bool {
        self.0.get(name).and_then(Value::as_bool).unwrap_or_default()
    }

    pub fn texts(&self, name: &str) -> Vec<&str> {
        let items = self.0.get(name).and_then(Value::as_array);
        items.into_iter().flatten().filter_map(Value::as_str).collect()
    }
}

/// What a tool has to work with. Cheap to clone.
#[derive(Clone)]
pub struct Context {
    pub workspace: Arc<Workspace>,
    /// What the agent has read and written in this conversation.
    pub seen: Arc<Seen>,
    /// What is known of the code; one for all calls of a session.
    pub index: Arc<Index>,
    /// What checkers have found in this conversation.
    pub findings: Arc<read_lints::Findings>,
    pub settings: Arc<Settings>,
    /// Who merges what a sketch of a change leaves open; `None`: nobody.
    pub apply: Option<Chosen>,
    /// The id of the call.
    pub call: String,
    /// Takes what a command prints, while it prints it.
    pub output: mpsc::UnboundedSender<String>,
    /// Set when nobody waits for the result any more: work on other threads looks at it.
    pub stop: Stop,
}

/// A sign that work is not wanted any more.
#[derive(Clone, Debug, Default)]
pub struct Stop(Arc<AtomicBool>);

impl Stop {
    pub fn set(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    pub fn is_set(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// Something that a call would touch: what rules speak about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Access {
    Read(Located),
    Write(Located),
    Delete(Located),
    Command {
        line: String,
        directory: Located,
        permissions: Vec<Permission>,
        is_background: bool,
    },
    Fetch {
        url: String,
        host: String,
    },
    Search,
    Mcp {
        server: String,
        tool: String,
    },
}

/// What a call came to.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Outcome {
    /// For the model. Never empty.
    pub text: String,
    /// For the document: the data of the result, or the members of a command's document.
    pub data: Value,
    /// Something was cut.
    pub is_truncated: bool,
    pub images: Vec<Image>,
}

/// A change of files that has been worked out and not been made.
#[derive(Clone, Debug, PartialEq)]
pub struct Proposal {
    pub changes: Vec<Change>,
    /// For the model, once the change is made.
    pub text: String,
    /// The data of the result: what was done to which files, in figures and as a diff.
    pub data: Map<String, Value>,
}

impl Proposal {
    /// What rules speak about.
    pub fn accesses(&self) -> Vec<Access> {
        let mut accesses = Vec::new();
        for change in &self.changes {
            accesses.push(match change.operation {
                Operation::Delete => Access::Delete(change.file.clone()),
                Operation::Create | Operation::Edit | Operation::Rename | Operation::Other(_) => {
                    Access::Write(change.file.clone())
                }
            });
            accesses.extend(change.to.clone().map(Access::Write));
        }
        accesses
    }
}

/// Why a call gave no result, in words that help the model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// `FILE_NOT_FOUND`, `EDIT_NO_MATCH` …: the protocol's list of error codes.
    pub code: &'static str,
    /// A sentence.
    pub message: String,
    /// What to do about it.
    pub next: Option<String>,
}

impl Fault {
    pub fn new(code: &'static str, message: impl Into<String>) -> Self {
        Self {
            code,
            message: message.into(),
            next: None,
        }
    }

    pub fn hint(mut self, next: impl Into<String>) -> Self {
        self.next = Some(next.into());
        self
    }

    /// The result that the model reads.
    pub fn text(&self) -> String {
        match &self.next {
            Some(next) => format!("Error [{}]: {}\n{next}", self.code, self.message),
            None => format!("Error [{}]: {}", self.code, self.message),
        }
    }
}

impl From<Refused> for Fault {
    fn from(refused: Refused) -> Self {
        let message = refused.to_string();
        match refused {
            Refused::Path(_) => Self::new("TOOL_ARGUMENTS_INVALID", message),
            Refused::Missing(_) => Self::new("FILE_NOT_FOUND", message),
            Refused::Outside(_) => Self::new("PATH_OUTSIDE_WORKSPACE", message),
            Refused::Git(_) => Self::new("PERMISSION_DENIED", message).hint("Use git itself, by a command."),
            Refused::Hidden(_) => Self::new("IGNORED_FILE", message),
            Refused::Directory(_) | Refused::Special(_) | Refused::Huge { .. } => Self::new("TOOL_FAILED", message),
            Refused::Exists(_) => Self::new("FILE_EXISTS", message),
            Refused::Unread(_) => Self::new("EDIT_STALE", message).hint("Read the file first."),
            Refused::Stale(_) => Self::new("EDIT_STALE", message).hint("Read the file again."),
            Refused::Torn { path: _, source } => Self::new("TOOL_FAILED", format!("{message}: {source}")),
            Refused::Failed { path: _, source } => {
                let code = match source.kind() {
                    std::io::ErrorKind::PermissionDenied => "PERMISSION_DENIED",
                    _ => "TOOL_FAILED",
                };
                Self::new(code, format!("{message}: {source}"))
            }
        }
    }
}

/// All tools, in the order in which a model is shown them.
pub const TOOLS: &[&Tool] = &[
    &codebase_search::TOOL,
    &grep::TOOL,
    &read_file::TOOL,
    &glob_file_search::TOOL,
    &list_dir::TOOL,
    &read_lints::TOOL,
    &edit_file::TOOL,
    &search_replace::TOOL,
    &write::TOOL,
    &delete_file::TOOL,
    &edit_notebook::TOOL,
    &apply_patch::TOOL,
    &run_terminal_cmd::TOOL,
    &await_command::TOOL,
    &web_search::TOOL,
    &web_fetch::TOOL,
    &todo_write::TOOL,
    &create_plan::TOOL,
    &ask::TOOL,
    &switch_mode::TOOL,
];

/// The tool of `tools` that a model means by `name` with these arguments: `Edit` is two tools, told apart by what is said.
pub fn find(tools: &[&'static Tool], name: &str, arguments: &Map<String, Value>) -> Option<&'static Tool> {
    let name = match name {
        "Edit" if arguments.contains_key("code_edit") => "edit_file",
        name => name,
    };
    let mut tools = tools.iter().copied();
    tools.find(|it| it.name == name || it.aliases.contains(&name))
}
