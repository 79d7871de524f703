//! Commands and queries that a consumer sends to a link. All their effects arrive as events.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::{
    Address, Branch, ClarificationResponse, Document, DocumentId, Message, Mode, Notice, Operation, PromptValues,
    RuleTrigger, ServerChange, ServersReport, TrustAnswer, TrustReport, Turn,
};

#[derive(Clone, Debug, PartialEq)]
pub enum Command {
    /// A message of the user: opens a turn.
    Submit(Submit),
    /// The message that a program was started with: a [`Self::Submit`] that closes no question, which was not there when it was
    /// written. It waits.
    Begin(Submit),
    /// Steers the running answer: the message joins it. Opens a turn if no answer is running.
    Steer(Submit),
    /// Runs a command of the user's in a turn of its own; `submit` holds what the user typed. No message can request
    /// it, so no other machine can.
    Run {
        submit: Submit,
        line: String,
        /// The model is told of it.
        is_shown: bool,
    },
    /// Repeats the call of a document for the user, in a turn of its own on a branch that begins at `from`; `submit`
    /// holds what the user typed. Changes nothing if the call cannot be repeated.
    RepeatCall {
        submit: Submit,
        turn: Turn,
        document: DocumentId,
        from: Branch,
    },
    /// Shortens the model's history in a turn of its own, in which `submit` holds what the user typed. Nothing that
    /// is shown changes.
    Compact { submit: Submit, scope: CompactionScope },
    /// Sets the user's title for the conversation.
    Rename(String),
    /// An answer to an open clarification or approval of `turn`.
    Answer {
        turn: Turn,
        response: ClarificationResponse,
    },
    /// A recording that is played a document at a time shows the next one.
    Next,
    /// Stops the running response; does nothing when none runs.
    Cancel,
    /// Takes rights from the running answer. Does nothing when no answer is running, or for rights that it does not have.
    Restrict(Restriction),
    /// Stops waiting for the commands that the running answer waits for: they continue in the background.
    Background,
    /// Stops a command that runs in the background, by its document.
    StopCommand { turn: Turn, document: DocumentId },
    /// Changes a document after its end (an edited todo, a rejected hunk).
    Update {
        turn: Turn,
        document: DocumentId,
        metadata: Map<String, Value>,
    },
    /// Continues the conversation on another branch. Nothing is lost.
    SwitchBranch(Branch),
    /// Undoes or redoes changes of files. The result is an `undone` member in the documents of the changes, and a
    /// notice.
    Restore(Restore),
    /// Records in the conversation what the user did beside it.
    Record(Notice),
}

/// Rights taken from a running answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Restriction {
    /// It continues in this read-only mode: from now on its calls that change something are refused.
    Mode(Mode),
    /// From now on it asks before each change and each command, unless a rule allows it.
    AsksFirst,
}

/// Part of the model's history that is shortened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CompactionScope {
    /// Replaces the conversation so far with a summary. `keep` is what the user wants it to contain; may be empty.
    Summary { keep: String },
    /// Removes the result of one call from the model's context.
    DropResult(Address),
}

/// Files to undo or redo.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Restore {
    pub target: RestoreTarget,
    /// Paths that stay as they are, with everything below them.
    pub except: Vec<String>,
    /// True to restore files that were changed later, too.
    pub overwrite: bool,
    /// The states in the preview that the user decided on: nothing is restored if a file has changed since. `None`: there
    /// was no preview.
    pub seen: Option<BTreeMap<String, String>>,
}

/// Changes of files to undo or redo.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RestoreTarget {
    /// The changes of one document.
    Document { turn: Turn, document: DocumentId },
    /// The same, again.
    RedoDocument { turn: Turn, document: DocumentId },
    /// All of a turn.
    Turn(Turn),
    /// The last turn that changed files and was not undone.
    Last,
    /// Redoes the last undo.
    RedoLast,
    /// Everything from this turn on: files become as they were before it.
    Since(Turn),
}

#[derive(Clone, Debug, PartialEq)]
pub struct Submit {
    pub message: Message,
    pub mode: Mode,
    /// `None`: the link's own.
    pub model: Option<String>,
}

/// A question that is answered at once and leaves no trace in the conversation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Query {
    /// The ids of the models that one may choose.
    Models,
    /// The models of all providers that have a key, with what the choice depends on.
    ModelOffers,
    /// Files of the workspace whose path matches what the user typed, the best first.
    Files { pattern: String, limit: usize },
    /// Functions and types of the workspace's code whose name matches what the user typed, the best first.
    Symbols { pattern: String, limit: usize },
    /// The parts of the next request and their sizes.
    Context,
    /// The files of the workspace that act, or would if the user trusted it.
    Trust,
    /// Keep the answer to the report on trust that was asked for last.
    DecideTrust(TrustAnswer),
    /// The servers of tools, their states and their tools. Starts them if nothing has yet.
    Servers,
    /// Values for the argument that a draft ends with, which begins with the command of a server's prompt.
    PromptValues(String),
    /// Do something with a server of tools; answered as [`Query::Servers`].
    ChangeServer { server: String, change: ServerChange },
    /// The changes that each turn made to files.
    Changes,
    /// The effect of an undo, before it is made.
    RestorePreview(Restore),
    /// The user has had this file of the workspace open, and may have changed it.
    FileOpened(String),
    /// The state of the sandbox. `guard` first allows or forbids writing the whole workspace where the sandbox is
    /// only partial; protected files are then compared and restored.
    Sandbox { guard: Option<bool> },
    /// The permissions of tools. With `forget`, those granted until the end of the session are removed first.
    Permissions { forget: bool },
    /// The commit of these documents, before it is made. Changes nothing.
    CommitPreview(Vec<(Turn, DocumentId)>),
    /// A message for the commit of these documents, by a model.
    CommitMessage(Vec<(Turn, DocumentId)>),
    /// Commit these documents in the user's own git, with its hooks and signing. Each document gets the name of the commit.
    Commit(Box<CommitRequest>),
    /// The changes of the workspace since the last commit.
    GitChanges,
    /// A question of the user's about the conversation; neither it nor the answer becomes a part of it.
    SideQuestion(String),
    /// The user has added a rule to the settings' list of this name, or removed it: from now on it holds here.
    ChangeRule {
        list: &'static str,
        rule: String,
        is_removed: bool,
    },
    /// Finds mistakes in a permission rule; refuses it with the reason.
    CheckRule(String),
    /// The server that answers, the origin of its key, and the limits that it reports.
    Status,
    /// The skills of the user and of the project, and what is wrong with others.
    Skills,
    /// The same for hooks.
    Hooks,
    /// The problems in the files of this conversation, as language servers and checkers know them.
    Problems,
    /// The program is about to end: calls the hooks of the end, and answers when they are done.
    EndSession,
}

/// Models to choose from, those of the provider in use first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ModelOffers {
    pub models: Vec<ModelOffer>,
    /// Providers that gave no list, each with the reason.
    pub problems: Vec<String>,
}

/// A model that can be chosen.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ModelOffer {
    /// Text that chooses it, as [`Submit::model`]: its id, with its provider in front where needed.
    pub name: String,
    pub id: String,
    /// Display name of its provider.
    pub provider: String,
    /// True if its provider is the one of the settings.
    pub is_own: bool,
    /// Tokens that fit, if known.
    pub window: Option<u64>,
    /// Prices of input and output in thousandths of a dollar for a million tokens, if known.
    pub price: Option<(u64, u64)>,
    /// True if it is known to have a reasoning effort.
    pub has_effort: bool,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Reply {
    Models(Vec<String>),
    ModelOffers(ModelOffers),
    /// Paths from the workspace's root, directories with a `/` at the end.
    Files(Vec<String>),
    Symbols(Vec<SymbolLocation>),
    Context(Vec<ContextPart>),
    Changes(Vec<TurnChanges>),
    RestorePreview(RestorePreview),
    Sandbox(Sandbox),
    Permissions(Permissions),
    CommitPreview(Box<CommitPreview>),
    CommitMessage(String),
    Commit(CommitOutcome),
    GitChanges(GitChanges),
    SideAnswer(SideAnswer),
    Status(ServerStatus),
    Trust(TrustReport),
    Extensions(Vec<ExtensionEntry>),
    Problems(ProblemsReport),
    Servers(ServersReport),
    PromptValues(PromptValues),
    /// Accepted; the effects arrive in the log.
    Accepted,
}

/// The problems in the files of a conversation.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProblemsReport {
    /// Errors first.
    pub problems: Vec<ProblemEntry>,
    /// Why files were not looked at, each reason once.
    pub unchecked: Vec<String>,
}

/// A problem in a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProblemEntry {
    /// From the workspace's root, if the file is in it.
    pub path: String,
    /// From 1, as the column.
    pub line: u64,
    pub column: u64,
    pub is_error: bool,
    pub message: String,
    /// The program that reports it.
    pub source: String,
}

/// A skill or a hook, or a file that is none.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ExtensionEntry {
    /// May be empty.
    pub name: String,
    /// In the words of its author. May be empty.
    pub about: String,
    /// Its file.
    pub path: String,
    pub state: ExtensionState,
    /// Tokens of each request, and those when it is used; `None`: it costs none.
    pub tokens: Option<(u64, u64)>,
}

/// The effect of an extension, or the reason why it has none.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum ExtensionState {
    #[default]
    Active,
    /// The model has it in its context.
    Loaded,
    /// Only the user can use it.
    UserOnly,
    /// Only the model can use it.
    ModelOnly,
    Untrusted,
    /// Another one, in this file, has its name.
    Shadowed(String),
    /// An event or a kind that this program does not know.
    Unsupported,
    /// The mistake in it.
    Problem(String),
}

/// A commit of accepted documents, and of nothing else.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommitRequest {
    pub documents: Vec<(Turn, DocumentId)>,
    pub message: String,
    /// The state that the preview has shown; in any other nothing is committed.
    pub state: String,
}

/// A commit of accepted documents, before it is made.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CommitPreview {
    /// `None` for a detached head.
    pub branch: Option<String>,
    /// `Name <address>`.
    pub author: String,
    /// The files that the commit changes, by path.
    pub files: Vec<CommitFile>,
    /// Documents in the commit.
    pub hunks: usize,
    /// Documents that cannot be committed: address, path and reason.
    pub left_out: Vec<String>,
    /// Hooks of the repository that run.
    pub hooks: Vec<String>,
    pub is_signed: bool,
    /// The setting `commit.note`.
    pub note: String,
    /// A message that needs no model.
    pub message: String,
    /// Reason why nothing can be committed; `""` if it can.
    pub problem: String,
    /// Name of this state of the repository and the documents.
    pub state: String,
}

/// A file of a commit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommitFile {
    /// From the top of the repository.
    pub path: String,
    pub operation: Operation,
    /// Lines; 0 for a file that is not text.
    pub added: usize,
    pub removed: usize,
}

/// The changes of the workspace since the last commit.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct GitChanges {
    /// A document for each hunk, in the order of the paths.
    pub documents: Vec<Document>,
    /// Reason why there are none; `""` if nothing is in the way.
    pub problem: String,
}

/// The server that answers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ServerStatus {
    /// `openai at api.openai.com`.
    pub peer: String,
    /// Empty: the server's first.
    pub model: String,
    /// Origin of its key; `""` if it needs none.
    pub key: String,
    /// As of its last answer; empty if it reports none.
    pub limits: Vec<RateLimit>,
    /// When it reported them, in milliseconds since the Unix epoch; 0: it was not asked yet.
    pub limits_at_ms: u64,
}

/// A limit that a server reports, in its own words; `""` for what it does not say.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RateLimit {
    /// `requests`, `input tokens`.
    pub scope: String,
    pub limit: String,
    pub remaining: String,
    pub reset: String,
}

/// The answer to a side question.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SideAnswer {
    /// Markdown.
    pub text: String,
    /// Reason why there is no answer; `""` if there is one.
    pub problem: String,
}

/// The result of a commit.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CommitOutcome {
    /// The commit; `None`: nothing was committed, and `output` says why.
    pub commit: Option<String>,
    /// The documents that it contains.
    pub documents: Vec<(Turn, DocumentId)>,
    /// Output of git and of hooks; may be empty.
    pub output: String,
}

/// A definition in the workspace's code.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SymbolLocation {
    pub name: String,
    /// The type or module that it belongs to.
    pub owner: Option<String>,
    /// Keyword of the definition in its language: `fn`, `class`.
    pub keyword: String,
    /// From the workspace's root.
    pub path: String,
    /// Lines from 1, inclusive.
    pub first_line: u64,
    pub last_line: u64,
}

/// The changes that one turn made to files.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TurnChanges {
    pub turn: Turn,
    /// Relative to the workspace, in their order.
    pub paths: Vec<String>,
    /// Number of changes that are undone.
    pub undone: usize,
}

/// The effect of an undo on files.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RestorePreview {
    pub files: Vec<FileChange>,
    /// True if the first turns cannot be undone any more, because there was no room to keep their files.
    pub is_partial: bool,
    /// A text for each file that changes with its content and mode, for [`Restore::seen`].
    pub states: BTreeMap<String, String>,
}

/// A file that would be something else.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileChange {
    /// Relative to the workspace; folders end with `/`.
    pub path: String,
    pub operation: Operation,
    /// Lines added and removed; 0 for files that are not text.
    pub added: usize,
    pub removed: usize,
    /// The change as a patch. `""` for binary files, and for patches that are too long.
    pub patch: String,
    /// A later change of the file, which an undo would lose. Such a file stays as it is unless the user decides
    /// otherwise.
    pub conflict: Option<RestoreConflict>,
    /// It cannot be brought back.
    pub is_lost: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RestoreConflict {
    /// The user, or a program of theirs.
    User,
    /// The agent, in this turn.
    Turn(Turn),
}

/// The state of the sandbox, layer by layer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sandbox {
    pub layers: Vec<SandboxLayer>,
    pub notes: Vec<SandboxNote>,
}

/// Calls that run without a question, and calls that do not.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Permissions {
    /// Mode from the settings: `ask`, `list` or `sandbox`; `force` if nothing asks in this run.
    pub run: String,
    /// Rules in their written form.
    pub deny: Vec<String>,
    pub ask: Vec<String>,
    pub allow: Vec<String>,
    /// Rules that hold until the end of the session.
    pub session: Vec<String>,
    /// A rule could not be read, so everything asks.
    pub has_invalid_rule: bool,
}

/// A choice that the user has about the sandbox, or the effect of one just made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SandboxNote {
    /// The wish could not be stored, and why.
    NotSaved(String),
    /// A command changed a protected file.
    GuardTripped,
    GuardOn,
    GuardOff,
    /// Nothing of a whole sandbox is to be guarded.
    GuardNotNeeded,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SandboxLayer {
    /// `files`, `system calls` …
    pub name: String,
    pub is_active: bool,
    /// Mechanism that enforces the layer, or whose absence disables it. `None` if no single one does.
    pub mechanism: Option<Mechanism>,
    /// The effect of the layer, or why it is missing. English, for clients that have no text for `means`.
    pub about: String,
    /// Advice; `""` if there is none.
    pub remedy: String,
}

/// Mechanism of a sandbox layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mechanism {
    /// Namespaces and filters of Linux.
    Kernel,
    /// The sandbox of macOS.
    Seatbelt,
    /// The version of its interface; 0: it is not there.
    Landlock(u32),
    /// Not needed: other mechanisms do its work.
    Needless,
}

/// A part of the model's context.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ContextPart {
    pub name: ContextName,
    /// An estimate, until the server counts.
    pub tokens: u64,
    /// Remarks about the part: that it was cut, or why it is missing.
    pub notes: Vec<ContextNote>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ContextName {
    SystemPrompt,
    /// By its path.
    Rule(String),
    ServerInstructions,
    Tools,
    Tool(String),
    /// The text between tags of this name.
    Tag(&'static str),
    Messages,
    Answers,
    Results,
    Images,
    All,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ContextNote {
    /// The user's addition is at its end.
    UserAddition,
    /// Number of parts that the user's words replace.
    UserReplacements(usize),
    Untrusted,
    /// Only the description is sent.
    DescriptionOnly,
    NotSent(RuleTrigger),
    ToolCount(usize),
    NotOffered(NotOffered),
    Estimate,
    Window(u64),
    /// By the server, for the last request.
    CountedByServer(u64),
    /// The price of the model is unknown. The name is the model's; `None` is the server's own model.
    Unpriced(Option<String>),
}

/// Why a tool is not offered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotOffered {
    SwitchedOff,
    ModelCallsNone,
    NoSearchService,
    /// No checker may or can run in the workspace.
    NoChecker,
    /// No language server may or can run in the workspace.
    NoServer,
    /// It runs what the workspace says, which is not trusted.
    Untrusted,
    NoSkill,
    EditStyle,
    OtherModels,
    SmallWindow,
}
