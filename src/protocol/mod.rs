//! The documents protocol: one vocabulary for the screen, the journal, the gateway and the headless formats.
//!
//! 1. Positions grow; gaps are legal. A reader asks for "after N".
//! 2. `document_end` carries the whole metadata and the final content, and wins. Deltas are a preview.
//! 3. The fold is total and pure: no error, no clock, no I/O, no idea whether it is live or replayed.
//! 4. A prompt is opened by an event and closed by an event, never by the local keypress.
//! 5. Unknown events, kinds and members are values: kept, shown plainly, forwarded untouched.
//! 6. Nobody else's words: provider wire types stop at `models/`, ratatui types never come here.

pub mod codec;
mod command;
pub mod document;
mod event;
mod id;
pub mod long_json;
pub mod plan_file;
mod request;
mod response;
pub mod schema;
pub mod sentence;
mod servers;
pub mod tool_label;
mod trust;
mod user_action;
mod word;

pub use command::{
    Command, CommitFile, CommitOutcome, CommitPreview, CommitRequest, CompactionScope, ContextName, ContextNote,
    ContextPart, ExtensionEntry, ExtensionState, FileChange, GitChanges, Mechanism, ModelOffer, ModelOffers,
    NotOffered, Permissions, ProblemEntry, ProblemsReport, Query, RateLimit, Reply, Restore, RestoreConflict,
    RestorePreview, RestoreTarget, Restriction, Sandbox, SandboxLayer, SandboxNote, ServerStatus, SideAnswer, Submit,
    SymbolLocation, TurnChanges,
};
pub use document::{Document, DocumentStart, ERROR_CODES, FileEdit, KINDS, Kind, KindGroup, Todo as PlanTodo, View};
pub use event::{Branch, Cost, Done, Entry, Event, Notice, Progress, ResponseStart, Severity, Title, Usage};
pub use id::{Address, ConversationId, DocumentId, Position, ResponseId, Turn};
pub use request::{
    BUILDS, COMMAND, CUSTOM_MODE, ClarificationResponse, Dialect, HunkAnswer, Message, PASTES, PartKind,
    QuestionAnswer, Request,
};
pub use response::{Ending, Response, ResponseChange, Thinking};
pub use servers::{
    PromptValues, ServerChange, ServerPrompt, ServerReport, ServerResource, ServerState, ServerTool, ServersReport,
};
pub use tool_label::{CallSubject, ToolLabel};
pub use trust::{RuleTrigger, TrustAnswer, TrustAsked, TrustEntry, TrustKind, TrustReport};
pub use user_action::UserAction;
pub use word::{
    Applied, CommandState, FinishReason, Mode, Operation, Outcome, Permission, Purpose, QuestionKind, Role, Status,
    TextFormat, TodoStatus,
};

/// Member that marks a message or document as only between the user and the program. No model receives it.
pub const ASIDE: &str = "aside";

/// Code of the notice that the model's message so far is void: it broke off and is asked for again.
pub const ANSWER_DROPPED: &str = "answer-dropped";

/// Code of the notice that an undo of another conversation, which was cut, was finished.
pub const UNDO_FINISHED: &str = "undo-finished";
