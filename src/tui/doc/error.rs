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
    ("EDIT_STALE", "The model has to read the file as it is now.", false),
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
    let details = error.details.trim_end();
    let is_sentence = !details.contains('\n') && details.ends_with(['.', '!', '?']);
    if !is_sentence {
        let frame = Frame {
            columns: look.width,
            indent: &[],
            role: Role::Dim,
        };
        rows.extend(text_rows(details, frame));
    }
    let said = Span::new(Clean::new(if is_sentence { details } else { "" }), Role::Dim);
    rows.extend(next_step(said, error, look));
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

/// What one can do now, in the same breath as details that are a sentence.
fn next_step(said: Span, error: &Error<'_>, look: &Look<'_>) -> Vec<Row> {
    // What our own agent and links report ends with what to do.
    let says_it_itself = matches!(error.source, "llm" | "client") && !error.details.is_empty();
    let step = STEPS.iter().find(|(name, _, _)| *name == error.code && !says_it_itself);
    let mut spans = Vec::new();
    if !said.text.is_empty() {
        spans.push(said);
    }
    if let Some((_, step, _)) = step.filter(|(_, step, _)| !step.is_empty()) {
        if !spans.is_empty() {
            spans.push(gap(1));
        }
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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::{
        Fold, Sheet,
        testing::{closed, look, pictures, roles},
    };
    use super::*;
    use crate::protocol::ERROR_CODES;

    #[test]
    fn every_code_has_a_next_step() {
        let names: Vec<&str> = STEPS.iter().map(|(name, _, _)| *name).collect();
        assert_eq!(names, ERROR_CODES);
        for (name, step, again) in STEPS {
            assert!(*again || !step.is_empty(), "{name} leaves the user alone");
        }
    }

    #[test]
    fn errors() {
        let broken = closed(
            "error",
            Some("The gateway closed the stream"),
            json!({
                "errorCode": "STREAM_INTERRUPTED", "source": "stream", "details": "After 12 s and 3 documents.",
            }),
        );
        let missing = closed(
            "error",
            Some("The file could not be read"),
            json!({
                "errorCode": "FILE_NOT_FOUND", "source": "read_file", "details": { "path": "src/discount.rs" },
            }),
        );
        let strange = closed("error", None, json!({ "errorCode": "E42", "source": "" }));
        let states = [
            ("may be tried again", &broken, look(0)),
            (
                "history",
                &broken,
                Look {
                    newest: false,
                    ..look(0)
                },
            ),
            ("details that are an object", &missing, look(0)),
            ("a stranger's code, no message", &strange, look(0)),
            (
                "folded",
                &broken,
                Look {
                    fold: Fold::Folded,
                    ..look(0)
                },
            ),
        ];
        insta::assert_snapshot!(pictures(&states), @r#"
40=====================================
-- may be tried again
✗ error  The gateway closed the stream
                     STREAM_INTERRUPTED
  After 12 s and 3 documents. What came
  is kept.  r try again
-- history
✗ error  The gateway closed the stream
                     STREAM_INTERRUPTED
  After 12 s and 3 documents. What came
  is kept.
-- details that are an object
✗ error  The file could not be read
                         FILE_NOT_FOUND
  {
    "path": "src/discount.rs"
  }
  Check the path.
-- a stranger's code, no message
✗ error  failed without a message   E42
-- folded
✗ error  The gatew…  STREAM_INTERRUPTED
80=======================================================================
-- may be tried again
✗ error  The gateway closed the stream         stream  STREAM_INTERRUPTED
  After 12 s and 3 documents. What came is kept.  r try again
-- history
✗ error  The gateway closed the stream         stream  STREAM_INTERRUPTED
  After 12 s and 3 documents. What came is kept.
-- details that are an object
✗ error  The file could not be read             read_file  FILE_NOT_FOUND
  {
    "path": "src/discount.rs"
  }
  Check the path.
-- a stranger's code, no message
✗ error  failed without a message                                     E42
-- folded
✗ error  The gateway closed the stream         stream  STREAM_INTERRUPTED
120==============================================================================================================
-- may be tried again
✗ error  The gateway closed the stream                                                 stream  STREAM_INTERRUPTED
  After 12 s and 3 documents. What came is kept.  r try again
-- history
✗ error  The gateway closed the stream                                                 stream  STREAM_INTERRUPTED
  After 12 s and 3 documents. What came is kept.
-- details that are an object
✗ error  The file could not be read                                                     read_file  FILE_NOT_FOUND
  {
    "path": "src/discount.rs"
  }
  Check the path.
-- a stranger's code, no message
✗ error  failed without a message                                                                             E42
-- folded
✗ error  The gateway closed the stream                                                 stream  STREAM_INTERRUPTED
"#);
        let mut sheet = Sheet::default();
        sheet.update(&broken, &look(90));
        assert_eq!(
            roles(&sheet.rows[0]),
            "error:Dim The gateway closed the stream:Strong+bold | stream:Dim STREAM_INTERRUPTED:Error"
        );
    }
}
