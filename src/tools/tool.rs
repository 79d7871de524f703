//! A tool, what it is given and what it gives: the types that all tools share.

use std::{
    future::Future,
    ops::Deref,
    pin::Pin,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicBool, Ordering},
    },
};

use serde_json::{Map, Value, json};
use tokio::sync::mpsc;

use super::{cursor::CursorCall, lints::Findings};
use crate::{
    config::Settings,
    embedding::EmbeddingService,
    extensions::SkillShelf,
    index::Index,
    lsp::{Around, LanguageServers},
    models::{Chosen, Image, ToolSpec},
    protocol::{CallSubject, Mode, NotOffered, Operation, Permission},
    sandbox::{Change, Located, Refused, Seen, Workspace},
};

/// A tool: everything that is known about it.
pub struct Tool {
    /// The one name that a model is shown. It is also the name in the settings (`tools.<name>`).
    pub name: String,
    /// Other names that models know it by.
    pub aliases: Vec<String>,
    /// The description that a model is shown.
    pub about: Arc<str>,
    /// The kind of its effects.
    pub class: Class,
    /// The modes in which it may be used.
    pub modes: &'static [Mode],
    /// An object schema of `type, properties, required, items, enum, description` only.
    pub schema: Arc<Value>,
    /// Arguments of calls that do something, as JSON, by the names of the schema and by those of other programs; tests call
    /// them in each mode. They speak of the files `a.txt`, `empty.txt`, `a.ipynb` and `src/a.py` of a workspace; `{outside}` is
    /// a folder outside it. Never empty for a built-in tool.
    pub examples: &'static [&'static str],
    /// Other names of arguments, by the canonical one; `list[].member` names a member of a list's items.
    pub synonyms: &'static [(&'static str, &'static [&'static str])],
    /// The form that its arguments had in earlier generations; `None`: other names say it all.
    pub old_form: Option<OldForm>,
    /// The way in which it is done.
    pub work: Work,
    /// The word that the screen shows for it.
    pub word: String,
    /// The subject of its calls on the screen.
    pub subject: CallSubject,
    /// Names that gateways have for it and that no model is to call it by.
    pub foreign_names: &'static [&'static str],
    /// The kind of approval rule that speaks about it (`Shell`), and what people write by mistake for that kind (`bash`).
    pub rule: Option<(&'static str, &'static [&'static str])>,
    /// The shape in which Cursor's command line prints its calls; `None`: as a plain function.
    pub cursor: Option<CursorCall>,
    /// Offered to models with a small window, too.
    pub is_basic: bool,
    /// A result that is cut keeps its end, too: it says how the work ended.
    pub keeps_end: bool,
    /// Changes no file itself, but may run code of the workspace.
    pub runs_code: bool,
    /// Its arguments are somebody else's to check: they are passed on as they come.
    pub takes_any: bool,
    /// It is done when it is called, and in no list: another tool finds it.
    pub is_hidden: bool,
    /// Reaches out and changes nothing here, so that its calls run beside those that read.
    pub is_apart: bool,
    /// Returns the tool's own reason for not being offered with these settings to a model; the flag: its window is small.
    pub withheld: fn(&Settings, model: &str, is_small: bool) -> Option<NotOffered>,
    /// The description for a model, once there was a request.
    pub spec: OnceLock<Arc<ToolSpec>>,
}

impl Tool {
    /// A tool without arguments, aliases and a label. One that writes or runs may be used in agent and debug mode only,
    /// another in all modes.
    pub fn new(name: &str, class: Class, work: Work) -> Self {
        Self {
            name: name.to_owned(),
            aliases: Vec::new(),
            about: Arc::default(),
            class,
            modes: match class {
                Class::Writes | Class::Runs => &[Mode::Agent, Mode::Debug],
                Class::Reads | Class::Talks | Class::State => &Mode::ALL,
            },
            schema: schema(json!({}), &[]),
            examples: &[],
            synonyms: &[],
            old_form: None,
            work,
            word: name.to_owned(),
            subject: CallSubject::Other,
            foreign_names: &[],
            rule: None,
            cursor: None,
            is_basic: false,
            keeps_end: false,
            runs_code: false,
            takes_any: false,
            is_hidden: false,
            is_apart: false,
            withheld: |_, _, _| None,
            spec: OnceLock::new(),
        }
    }

    /// The same, which may be used in all modes as far as its calls are allowed there.
    #[must_use]
    pub fn in_all_modes(self) -> Self {
        Self {
            modes: &Mode::ALL,
            ..self
        }
    }

    /// Returns true if `name` is its name or one of its aliases.
    pub fn is_called(&self, name: &str) -> bool {
        self.name == name || self.aliases.iter().any(|it| it == name)
    }

    /// The tool as it is offered to a model. All conversations share it.
    pub fn spec(&self) -> Arc<ToolSpec> {
        let spec = || ToolSpec {
            name: self.name.clone(),
            aliases: self.aliases.clone(),
            about: Arc::clone(&self.about),
            parameters: Arc::clone(&self.schema),
        };
        Arc::clone(self.spec.get_or_init(|| spec().into()))
    }

    /// Returns true if it leaves files and the machine as they are, and runs no code of the workspace.
    pub fn only_looks(&self) -> bool {
        match self.class {
            Class::Reads => !self.runs_code,
            Class::Talks | Class::State => true,
            Class::Writes | Class::Runs => false,
        }
    }
}

impl std::fmt::Debug for Tool {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.name)
    }
}

impl PartialEq for Tool {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

/// Owned names, for [`Tool::aliases`].
pub fn names<const N: usize>(names: [&str; N]) -> Vec<String> {
    names.map(str::to_owned).to_vec()
}

/// The schema of an object with these properties, of which the `required` ones must be given.
pub fn schema(properties: Value, required: &[&str]) -> Arc<Value> {
    json!({ "type": "object", "properties": properties, "required": required }).into()
}

/// The form that the arguments of a tool had in an earlier generation.
#[derive(Clone, Copy)]
pub struct OldForm {
    /// Rewrites the arguments in place, into those of the schema and `kept`.
    pub fold: fn(&mut Map<String, Value>),
    /// Members that the tool reads although its schema does not show them.
    pub kept: &'static [&'static str],
}

impl OldForm {
    /// A form that comes to nothing but members of the schema.
    pub const fn new(fold: fn(&mut Map<String, Value>)) -> Self {
        Self { fold, kept: &[] }
    }
}

/// Tools, in the order in which a model is shown them.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ToolSet {
    tools: Vec<Arc<Tool>>,
    is_by_mode: bool,
}

impl ToolSet {
    /// The tool that a model means by `name` with these arguments: `Edit` is two tools, told apart by what is said.
    pub fn find(&self, name: &str, arguments: &Map<String, Value>) -> Option<&Arc<Tool>> {
        let name = match name {
            "Edit" if arguments.contains_key("code_edit") => "edit_file",
            name => name,
        };
        self.tools.iter().find(|it| it.is_called(name))
    }

    /// The tool with this name of its own.
    pub fn get(&self, name: &str) -> Option<&Arc<Tool>> {
        self.tools.iter().find(|it| it.name == name)
    }

    /// The tools that `keeps` returns true for, in the same order.
    pub fn filtered(&self, keeps: impl Fn(&Tool) -> bool) -> Self {
        Self {
            tools: self.tools.iter().filter(|it| keeps(it)).cloned().collect(),
            is_by_mode: self.is_by_mode,
        }
    }

    /// The same tools, of which a request lists those of its mode only: for models that do not cope with more, and for
    /// clients that have named the tools. Other requests list the same tools in all modes, so that servers know their
    /// beginning again.
    #[must_use]
    pub fn by_mode(self, is_by_mode: bool) -> Self {
        Self { is_by_mode, ..self }
    }

    /// Returns true if a request lists the tools of its mode only.
    pub fn is_by_mode(&self) -> bool {
        self.is_by_mode
    }
}

impl Deref for ToolSet {
    type Target = [Arc<Tool>];

    fn deref(&self) -> &Self::Target {
        &self.tools
    }
}

impl FromIterator<Arc<Tool>> for ToolSet {
    fn from_iter<I: IntoIterator<Item = Arc<Tool>>>(tools: I) -> Self {
        Self {
            tools: tools.into_iter().collect(),
            is_by_mode: false,
        }
    }
}

/// The kind of a tool's effects; decides which calls may run beside each other.
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

/// The way in which a tool is done.
#[derive(Clone)]
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

impl Work {
    /// See [`Work::Call`].
    pub fn call<F: Future<Output = Result<Outcome, Fault>> + Send + 'static>(
        touches: impl Fn(&Input, &Context) -> Result<Vec<Access>, Fault> + Send + Sync + 'static,
        run: impl Fn(Input, Context) -> F + Send + Sync + 'static,
    ) -> Self {
        Self::Call {
            touches: Arc::new(touches),
            run: Arc::new(move |input, context| Box::pin(run(input, context))),
        }
    }

    /// See [`Work::Command`].
    pub fn command<F: Future<Output = Result<Outcome, Fault>> + Send + 'static>(
        touches: impl Fn(&Input, &Context) -> Result<Vec<Access>, Fault> + Send + Sync + 'static,
        run: impl Fn(Input, Context) -> F + Send + Sync + 'static,
    ) -> Self {
        Self::Command {
            touches: Arc::new(touches),
            run: Arc::new(move |input, context| Box::pin(run(input, context))),
        }
    }

    /// See [`Work::Change`].
    pub fn change<F: Future<Output = Result<Proposal, Fault>> + Send + 'static>(
        propose: impl Fn(Input, Context) -> F + Send + Sync + 'static,
    ) -> Self {
        Self::Change(Arc::new(move |input, context| Box::pin(propose(input, context))))
    }
}

/// A tool that belongs to the turn itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    Todos,
    Plan,
    Ask,
    Mode,
}

/// Work that is going on. Dropping it stops it.
pub type Promise<T> = Pin<Box<dyn Future<Output = T> + Send>>;
/// Works out what a call would touch. Quick: it may look at the file system, and changes nothing.
pub type Touches = Arc<dyn Fn(&Input, &Context) -> Result<Vec<Access>, Fault> + Send + Sync>;
/// Runs a call.
pub type Run = Arc<dyn Fn(Input, Context) -> Promise<Result<Outcome, Fault>> + Send + Sync>;
/// Works out a change without making it.
pub type Propose = Arc<dyn Fn(Input, Context) -> Promise<Result<Proposal, Fault>> + Send + Sync>;

/// The arguments of a call: canonical names, values of the schema's types.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Input(pub Map<String, Value>);

impl Input {
    /// The text of an argument; `None` if it is absent or no text.
    pub fn text(&self, name: &str) -> Option<&str> {
        self.0.get(name).and_then(Value::as_str)
    }

    /// The whole number of an argument; `None` if it is absent or no whole number.
    pub fn integer(&self, name: &str) -> Option<i64> {
        self.0.get(name).and_then(Value::as_i64)
    }

    /// The truth of an argument; false if it is absent.
    pub fn flag(&self, name: &str) -> bool {
        self.0.get(name).and_then(Value::as_bool).unwrap_or_default()
    }

    /// The texts of a list; empty if it is absent.
    pub fn texts(&self, name: &str) -> Vec<&str> {
        let items = self.0.get(name).and_then(Value::as_array);
        items.into_iter().flatten().filter_map(Value::as_str).collect()
    }
}

/// Everything that a tool works with. Cheap to clone.
#[derive(Clone)]
pub struct Context {
    pub workspace: Arc<Workspace>,
    /// Files that the agent has read and written in this conversation.
    pub seen: Arc<Seen>,
    /// The index of the code; one for all calls of a session.
    pub index: Arc<Index>,
    /// Vectors of the code.
    pub embeddings: Arc<EmbeddingService>,
    /// The results of the checkers in this conversation.
    pub findings: Arc<Findings>,
    /// The language servers of this conversation.
    pub servers: Arc<LanguageServers>,
    /// The skills of this conversation.
    pub skills: Arc<SkillShelf>,
    pub settings: Arc<Settings>,
    /// The model that merges a sketch where the lines alone are ambiguous; `None`: there is none.
    pub apply: Option<Chosen>,
    /// The id of the call.
    pub call: String,
    /// The mode lets nothing be changed: a command is run so that it cannot.
    pub only_reads: bool,
    /// Takes what a command prints, while it prints it.
    pub output: mpsc::UnboundedSender<String>,
    /// Set when nobody waits for the result any more: work on other threads looks at it.
    pub stop: Stop,
}

impl Context {
    /// The workspace and the settings, for language servers.
    pub fn around(&self) -> Around<'_> {
        Around {
            workspace: &self.workspace,
            settings: &self.settings,
        }
    }

    /// The context of a call that belongs to no conversation.
    pub fn apart(workspace: Arc<Workspace>, settings: Arc<Settings>, index: Arc<Index>) -> Self {
        Self {
            workspace,
            seen: Arc::default(),
            index,
            embeddings: Arc::default(),
            findings: Arc::default(),
            servers: Arc::default(),
            skills: Arc::default(),
            settings,
            apply: None,
            call: uuid::Uuid::new_v4().simple().to_string(),
            only_reads: false,
            output: mpsc::unbounded_channel().0,
            stop: Stop::default(),
        }
    }
}

/// A sign that work is not wanted any more.
#[derive(Clone, Debug, Default)]
pub struct Stop(Arc<AtomicBool>);

impl Stop {
    /// Tells the work to stop.
    pub fn set(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Returns true if the work should stop.
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

/// The result of a call.
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
    /// The accesses that rules judge.
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
    /// A hint for the next try.
    pub next: Option<String>,
    /// The sentence as the model reads it, if that is another one: with a frame around what is not ours.
    pub told: Option<String>,
}

impl Fault {
    /// An error without a hint.
    pub fn new(code: &'static str, message: impl Into<String>) -> Self {
        Self {
            code,
            message: message.into(),
            next: None,
            told: None,
        }
    }

    /// The model's arguments are at fault.
    pub fn arguments(message: impl Into<String>) -> Self {
        Self::new("TOOL_ARGUMENTS_INVALID", message)
    }

    /// Adds a hint for the next try.
    pub fn hint(mut self, next: impl Into<String>) -> Self {
        self.next = Some(next.into());
        self
    }

    /// The result that the model reads.
    pub fn text(&self) -> String {
        let message = self.told.as_ref().unwrap_or(&self.message);
        match &self.next {
            Some(next) => format!("Error [{}]: {message}\n{next}", self.code),
            None => format!("Error [{}]: {message}", self.code),
        }
    }
}

impl From<Refused> for Fault {
    fn from(refused: Refused) -> Self {
        let message = refused.to_string();
        match refused {
            Refused::Path(_) => Self::arguments(message),
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
