//! `error`: what failed, its code and source, the details, and what one can do now.

use super::{
    Leaf, Look,
    heading::{Facts, WORD, Weight, first_line, gap, heading, key, sign, titled, word},
    value::{Frame, text_rows},
};
use crate::{
    protocol::document::Error,
    text::{Clean, Role, Row, Span, wrap::wrap},
};

/// The next step for each code, and whether trying again can help.
const STEPS: &[(&str, &str, bool)] = &[
    ("FILE_NOT_FOUND", "Check the path.", false),
    (
        "FILE_EXISTS",
        "Choose another name, or ask for an edit of the file.",
        false,
    ),
    (
        "PERMISSION_DENIED",
        "Check the rights of the file or of its folder.",
        false,
    ),
    (
        "PATH_OUTSIDE_WORKSPACE",
        "Start sheaf with --workspace on a folder that holds the file.",
        false,
    ),
    (
        "IGNORED_FILE",
        "An ignore file keeps it from the model; change that if it may be seen.",
        false,
    ),
    (
        "EDIT_NO_MATCH",
        "The file is not as the model thinks; ask it to read the file again.",
        false,
    ),
    ("EDIT_AMBIGUOUS", "Ask for an edit with more lines around it.", false),
    ("EDIT_STALE", "The file has changed since; ask to read it again.", false),
    (
        "COMMAND_FAILED_TO_START",
        "Check that the program is installed and in the path.",
        false,
    ),
    (
        "COMMAND_TIMEOUT",
        "Ask to run it in the background, or with more time.",
        false,
    ),
    (
        "TOOL_UNKNOWN",
        "The model named a tool that there is not; it has been told.",
        false,
    ),
    (
        "TOOL_ARGUMENTS_INVALID",
        "The model has been told what was wrong with the arguments.",
        false,
    ),
    ("TOOL_FORBIDDEN_IN_MODE", "Shift+Tab changes the mode.", false),
    ("TOOL_REJECTED", "The model knows that you said no.", false),
    ("TOOL_FAILED", "The model has seen the message.", false),
    (
        "LLM_AUTH",
        "Check the provider's key; sheaf doctor says which one is used.",
        true,
    ),
    ("LLM_RATE_LIMITED", "Wait a moment.", true),
    ("LLM_OVERLOADED", "The provider has too much to do.", true),
    (
        "LLM_CONTEXT_LENGTH",
        "Begin a new conversation, or take a model with a larger window.",
        false,
    ),
    ("LLM_REFUSAL", "Ask in other words.", false),
    ("LLM_BAD_RESPONSE", "The provider sent what nobody can read.", true),
    (
        "LLM_UNAVAILABLE",
        "Check that the model's server runs; sheaf doctor looks for it.",
        true,
    ),
    ("STREAM_INTERRUPTED", "What came is kept.", true),
    (
        "STREAM_PROTOCOL",
        "The server sent what is no stream of documents; check its address.",
        true,
    ),
    (
        "UNAUTHORIZED",
        "Check the gateway's token (SHEAF_TOKEN); sheaf doctor says which one is used.",
        true,
    ),
    ("RATE_LIMITED", "Wait a moment.", true),
    ("CANCELLED", "", true),
    ("MAX_TURNS", "Say continue to go on.", false),
    ("INTERNAL", "", true),
];

/// Whether trying again can help against a failure of this code.
pub fn is_retryable(code: &str) -> bool {
    STEPS.iter().any(|(name, _, again)| *name == code && *again)
}

pub(super) fn leaf(error: &Error<'_>, look: &Look<'_>) -> Leaf {
    let message = match error.content.trim() {
        "" => Clean::literal("failed without a message"),
        text => Clean::new(text),
    };
    let title = [Span::new(message, Role::Strong).bold()];
    let mut rows = titled(&title, &[word("error")], &[gap(WORD)], facts(error), look.width);
    rows.extend(text_rows(
        &error.details,
        Frame {
            columns: look.width,
            indent: &[],
            role: Role::Dim,
        },
    ));
    rows.extend(next_step(error, look));
    Leaf {
        glyph: sign("✗", Role::Error),
        rows,
        is_line: false,
    }
}

pub(super) fn folded(error: &Error<'_>, look: &Look<'_>) -> Leaf {
    let title = [Span::new(first_line(error.content), Role::Text)];
    Leaf {
        glyph: sign("✗", Role::Error),
        rows: vec![heading("error", &title, facts(error), look.width)],
        is_line: true,
    }
}

pub(super) fn summary(error: &Error<'_>) -> Clean {
    Clean::line(&format!("error  {}  {}", first_line(error.content), error.code))
}

fn facts(error: &Error<'_>) -> Facts {
    let mut facts = Facts::default();
    facts.word(Weight::Light, error.source, Role::Dim);
    facts.word(Weight::Heavy, error.code, Role::Error);
    facts
}

fn next_step(error: &Error<'_>, look: &Look<'_>) -> Vec<Row> {
    let step = STEPS.iter().find(|(name, _, _)| *name == error.code);
    let mut spans = Vec::new();
    if let Some((_, step, _)) = step.filter(|(_, step, _)| !step.is_empty()) {
        spans.push(sign(step, Role::Dim));
    }
    // An old failure is history: only the last turn can be tried again.
    if look.newest && is_retryable(error.code) {
        if !spans.is_empty() {
            spans.push(gap(2));
        }
        spans.extend(key("r", "try again", Role::Error));
    }
    if spans.is_empty() {
        return Vec::new();
    }
    wrap(&spans, look.width, &[], &[])
}
