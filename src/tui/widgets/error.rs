//! `error`: message, code and source, details, and the next step.

use serde_json::Value;

use super::{
    DocumentKind, Fold, Key, Leaf, RenderContext, copy,
    heading::{Facts, Weight, first_line, gap, heading, key, put_key, sign, titled, with_code, word},
    value::{ValueFrame, text_rows},
};
use crate::{
    locale,
    protocol::{
        Document,
        document::Error,
        sentence::{self, Sentence},
        tool_label,
    },
    t,
    text::{Role, Sanitized, Span, StyledLine, width::width, wrap::wrap},
};

/// The message of the next step for each code, and whether trying again can help.
const STEPS: &[(&str, &str, bool)] = &[
    ("FILE_NOT_FOUND", "error-step-file-not-found", false),
    ("FILE_EXISTS", "error-step-file-exists", false),
    ("PERMISSION_DENIED", "error-step-permission-denied", false),
    ("PATH_OUTSIDE_WORKSPACE", "error-step-path-outside-workspace", false),
    ("IGNORED_FILE", "error-step-ignored-file", false),
    ("EDIT_NO_MATCH", "error-step-edit-no-match", false),
    ("EDIT_AMBIGUOUS", "error-step-edit-ambiguous", false),
    ("EDIT_STALE", "error-step-edit-stale", false),
    ("COMMAND_FAILED_TO_START", "error-step-command-failed-to-start", false),
    ("COMMAND_TIMEOUT", "error-step-command-timeout", false),
    ("TOOL_UNKNOWN", "error-step-tool-unknown", false),
    ("TOOL_ARGUMENTS_INVALID", "error-step-tool-arguments-invalid", false),
    ("TOOL_FORBIDDEN_IN_MODE", "error-step-tool-forbidden-in-mode", false),
    ("TOOL_REJECTED", "", false),
    ("TOOL_FAILED", "error-step-tool-failed", false),
    ("LLM_AUTH", "error-step-llm-auth", true),
    ("LLM_RATE_LIMITED", "error-step-llm-rate-limited", true),
    ("LLM_OVERLOADED", "error-step-llm-overloaded", true),
    ("LLM_CONTEXT_LENGTH", "error-step-llm-context-length", false),
    ("LLM_REFUSAL", "error-step-llm-refusal", false),
    ("LLM_BAD_RESPONSE", "error-step-llm-bad-response", true),
    ("LLM_UNAVAILABLE", "error-step-llm-unavailable", true),
    ("STREAM_INTERRUPTED", "error-step-stream-interrupted", true),
    ("STREAM_PROTOCOL", "error-step-stream-protocol", true),
    ("UNAUTHORIZED", "error-step-unauthorized", true),
    ("RATE_LIMITED", "error-step-rate-limited", true),
    ("CANCELLED", "", true),
    ("MAX_TURNS", "error-step-max-turns", false),
    ("INTERNAL", "", true),
];

/// The message that says for each code of a tool what failed; the tool's own text is for the model.
const REASONS: &[(&str, &str)] = &[
    ("FILE_NOT_FOUND", "reason-file-not-found"),
    ("FILE_EXISTS", "reason-file-exists"),
    ("PERMISSION_DENIED", "reason-permission-denied"),
    ("PATH_OUTSIDE_WORKSPACE", "reason-path-outside-workspace"),
    ("IGNORED_FILE", "reason-ignored-file"),
    ("EDIT_NO_MATCH", "reason-edit-no-match"),
    ("EDIT_AMBIGUOUS", "reason-edit-ambiguous"),
    ("EDIT_STALE", "reason-edit-stale"),
    ("COMMAND_FAILED_TO_START", "reason-command-failed-to-start"),
    ("COMMAND_TIMEOUT", "reason-command-timeout"),
    ("TOOL_UNKNOWN", "reason-tool-unknown"),
    ("TOOL_ARGUMENTS_INVALID", "reason-tool-arguments-invalid"),
    ("TOOL_FORBIDDEN_IN_MODE", "reason-tool-forbidden-in-mode"),
    ("WORKSPACE_UNTRUSTED", "reason-workspace-untrusted"),
    ("TOOL_REJECTED", "reason-tool-rejected"),
    ("CANCELLED", "reason-cancelled"),
];

/// Bytes of details up to which they are words for a person, and no output.
const MOST_SAID: usize = 1000;

/// Returns in a few words why a tool failed, by the code and the message of the failure. `None` for codes that say less than the
/// tool itself.
pub(super) fn reason(code: &str, message: &str) -> Option<Sanitized> {
    if is_not_offered(message) {
        return Some(Sanitized::literal(t!("reason-tool-not-offered")));
    }
    let (_, id) = REASONS.iter().find(|it| it.0 == code)?;
    Some(Sanitized::literal(locale::text(id)))
}

/// Returns true if a tool was refused because the model was not told of it, which no mode changes.
fn is_not_offered(message: &str) -> bool {
    let said = Sentence::find(message.lines().next().unwrap_or_default());
    said.is_some_and(|it| it.0.message == sentence::NOT_OFFERED.message)
}

/// Returns in one line why an action failed. `None` if it did not, or an error document says it.
pub(super) fn failure(document: &Document) -> Option<Sanitized> {
    let failure = document.metadata.get("failure")?;
    let text = |name: &str| failure.get(name).and_then(Value::as_str).unwrap_or_default();
    let message = text("message");
    Some(reason(text("errorCode"), message).unwrap_or_else(|| first_line(message)))
}

/// The words that the model was told of a failure.
pub(super) fn failure_rows(document: &Document, columns: usize) -> Vec<StyledLine> {
    let failure = document.metadata.get("failure");
    let texts = ["message", "details"].map(|name| failure?.get(name)?.as_str());
    let frame = ValueFrame {
        columns,
        indent: &[],
        role: Role::Dim,
    };
    texts
        .into_iter()
        .flatten()
        .flat_map(|it| text_rows(it, frame))
        .collect()
}

/// Returns true for an error of a tool that is usually shown as its reason only.
pub fn error_leaves_out(error: &Error<'_>) -> bool {
    error.is_of_tool() && reason(error.code, error.content).is_some()
}

/// Returns true if a retry can help after an error with this code.
pub fn is_retryable(code: &str) -> bool {
    STEPS.iter().any(|(name, _, again)| *name == code && *again)
}

impl DocumentKind for Error<'_> {
    fn whole(&self, _: &Document, context: &RenderContext<'_>) -> Leaf {
        if context.fold != Fold::Full
            && self.is_of_tool()
            && let Some(reason) = reason(self.code, self.content)
        {
            let title = [Span::new(reason, Role::Text)];
            let head = heading(t!("error-word"), &title, facts(self), context.width);
            return Leaf::line(sign("✗", Role::Error), head);
        }
        let message = match self.content.trim() {
            "" => Sanitized::literal(t!("error-without-message")),
            text => Sanitized::new(text),
        };
        let title: Vec<Span> = with_code(&message, Role::Strong).into_iter().map(Span::bold).collect();
        let word = word(t!("error-word"));
        let under = gap(width(&word.text));
        let mut rows = titled(&title, &[word], &[under], facts(self), context.width);
        let details = self.details.trim_end();
        let is_sentence = !details.contains('\n') && details.ends_with(['.', '!', '?']);
        if !is_sentence {
            let frame = ValueFrame {
                columns: context.width,
                indent: &[],
                role: Role::Dim,
            };
            rows.extend(detail_rows(details, frame));
        }
        let said = with_code(&Sanitized::new(if is_sentence { details } else { "" }), Role::Dim);
        rows.extend(next_step(said, self, context));
        Leaf::block(sign("✗", Role::Error), rows)
    }

    fn folded(&self, _: &Document, context: &RenderContext<'_>) -> Leaf {
        let title = [Span::new(first_line(self.content), Role::Text)];
        Leaf::line(
            sign("✗", Role::Error),
            heading(t!("error-word"), &title, facts(self), context.width),
        )
    }

    fn summary(&self, _: &Document) -> Sanitized {
        Sanitized::line(&format!(
            "{}  {}  {}",
            t!("error-word"),
            first_line(self.content),
            self.code
        ))
    }

    fn depends(&self, _: &Document, context: &RenderContext<'_>, key: &mut Key) {
        key.newest = context.newest;
        key.selected = context.newest && context.selected;
        key.elsewhere = context.newest && context.elsewhere;
    }

    fn copy_text(&self, _: &Document) -> Sanitized {
        let parts = [self.content, self.code, self.source, &self.details];
        Sanitized::from(copy::joined(&parts, "\n"))
    }

    fn markdown(&self, document: &Document) -> String {
        let text = self.copy_text(document);
        text.lines().map(|it| format!("> {it}\n")).collect()
    }
}

impl Error<'_> {
    /// Returns true if a tool reported it: the words are the model's, who reads them and goes on.
    fn is_of_tool(&self) -> bool {
        tool_label::label(self.source).is_some() || self.source.starts_with("mcp__")
    }
}

fn facts(error: &Error<'_>) -> Facts {
    let mut facts = Facts::default();
    facts.word(Weight::Light, error.source, Role::Dim);
    facts.word(Weight::Heavy, error.code, Role::Error);
    facts
}

/// Details of several lines, which end with what to do. Long ones are shown as they are.
fn detail_rows(details: &str, frame: ValueFrame<'_>) -> Vec<StyledLine> {
    if details.len() > MOST_SAID {
        return text_rows(details, frame);
    }
    let lines = details.lines().map(|it| with_code(&Sanitized::new(it), frame.role));
    lines.flat_map(|it| wrap(&it, frame.columns, &[], &[])).collect()
}

/// The key that tries again, with the way to it from where the focus is.
pub(super) fn retry_key(context: &RenderContext<'_>) -> Vec<Span> {
    let name = match (context.selected, context.elsewhere) {
        (true, _) => t!("key-mark-retry"),
        (false, true) => t!("key-end-retry"),
        (false, false) => t!("key-tab-retry"),
    };
    key(name, t!("key-retry"), Role::Error)
}

/// The next step, after details that are a sentence.
fn next_step(said: Vec<Span>, error: &Error<'_>, look: &RenderContext<'_>) -> Vec<StyledLine> {
    // What our own agent and links report ends with what to do.
    let says_it_itself = matches!(error.source, "llm" | "client") && !error.details.is_empty();
    let says_it_itself = says_it_itself || is_not_offered(error.content);
    let step = STEPS.iter().find(|(name, _, _)| *name == error.code && !says_it_itself);
    let mut spans = said;
    if let Some((_, step, _)) = step.filter(|(_, step, _)| !step.is_empty()) {
        if !spans.is_empty() {
            spans.push(gap(1));
        }
        spans.extend(with_code(&Sanitized::literal(locale::text(step)), Role::Dim));
    }
    // An old failure is history: only the last turn can be tried again.
    let mut rows = if spans.is_empty() {
        Vec::new()
    } else {
        wrap(&spans, look.width, &[], &[])
    };
    if look.newest && is_retryable(error.code) {
        put_key(&mut rows, &retry_key(look), 2, look.width);
    }
    rows
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::{
        DocumentState, Fold,
        testing::{closed, look, pictures, roles},
    };
    use super::*;
    use crate::protocol::ERROR_CODES;

    #[test]
    fn every_code_has_a_next_step() {
        let names: Vec<&str> = STEPS.iter().map(|(name, _, _)| *name).collect();
        assert_eq!(names, ERROR_CODES);
        for (name, step, again) in STEPS {
            // The user rejected that tool, so there is nothing to explain.
            assert!(
                *again || !step.is_empty() || *name == "TOOL_REJECTED",
                "{name} leaves the user alone"
            );
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
                RenderContext {
                    newest: false,
                    ..look(0)
                },
            ),
            ("words for the model wait behind a line", &missing, look(0)),
            ("a stranger's code, no message", &strange, look(0)),
            (
                "folded",
                &broken,
                RenderContext {
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
  After 12 s and 3 documents. The
  partial answer is kept.
  tab, r, enter retry
-- history
✗ error  The gateway closed the stream
                     STREAM_INTERRUPTED
  After 12 s and 3 documents. The
  partial answer is kept.
-- words for the model wait behind a line
✗ error  file not found  FILE_NOT_FOUND
-- a stranger's code, no message
✗ error  failed without a message   E42
-- folded
✗ error  The gatew…  STREAM_INTERRUPTED
80=======================================================================
-- may be tried again
✗ error  The gateway closed the stream         stream  STREAM_INTERRUPTED
  After 12 s and 3 documents. The partial answer is kept.
  tab, r, enter retry
-- history
✗ error  The gateway closed the stream         stream  STREAM_INTERRUPTED
  After 12 s and 3 documents. The partial answer is kept.
-- words for the model wait behind a line
✗ error  file not found                         read_file  FILE_NOT_FOUND
-- a stranger's code, no message
✗ error  failed without a message                                     E42
-- folded
✗ error  The gateway closed the stream         stream  STREAM_INTERRUPTED
120==============================================================================================================
-- may be tried again
✗ error  The gateway closed the stream                                                 stream  STREAM_INTERRUPTED
  After 12 s and 3 documents. The partial answer is kept.  tab, r, enter retry
-- history
✗ error  The gateway closed the stream                                                 stream  STREAM_INTERRUPTED
  After 12 s and 3 documents. The partial answer is kept.
-- words for the model wait behind a line
✗ error  file not found                                                                 read_file  FILE_NOT_FOUND
-- a stranger's code, no message
✗ error  failed without a message                                                                             E42
-- folded
✗ error  The gateway closed the stream                                                 stream  STREAM_INTERRUPTED
"#);
        let mut sheet = DocumentState::default();
        sheet.lay_out(&broken, &look(90));
        assert_eq!(
            roles(&sheet.rows[0]),
            "error:Dim The gateway closed the stream:Strong+bold | stream:Dim STREAM_INTERRUPTED:Error"
        );
    }
}
