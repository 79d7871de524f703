//! The table of rules: what a gateway's answer has to be, each with the section of the documents protocol that says so.
//!
//! An error is what a reader has to repair or guess at. A warning is what readers cope with and a strict writer does not
//! do. A note is allowed by one of the texts behind the protocol and worth knowing.

use crate::protocol::Severity::{self, Error, Info, Warning};

/// One rule of the grammar.
#[derive(Debug, PartialEq, Eq)]
pub struct Rule {
    /// Kebab-case, never changed: programs filter by it.
    pub id: &'static str,
    /// Section of the documents protocol.
    pub section: &'static str,
    pub severity: Severity,
    /// The rule as a sentence.
    pub text: &'static str,
}

macro_rules! rules {
    ($($name:ident = $id:literal, $section:literal, $severity:ident, $text:literal;)*) => {
        $(pub static $name: Rule = Rule { id: $id, section: $section, severity: $severity, text: $text };)*

        /// Every rule, in the order of the sections.
        pub static RULES: &[&Rule] = &[$(&$name),*];
    };
}

rules! {
    // 2: HTTP
    CONTENT_TYPE = "content-type", "2", Error, "an answer has the content type `application/json` or `text/event-stream`";
    CHARSET = "charset", "2", Warning, "both are UTF-8; a `charset`, if present, is utf-8";
    STREAM_AS_ASKED = "stream-as-asked", "2", Error, "the member `stream` decides between a stream and an object, whatever `Accept` says";
    COMPRESSED_STREAM = "compressed-stream", "2", Warning, "a stream is not compressed: its events would wait in a buffer";
    ERROR_STATUS = "error-status", "2", Error, "a failure before the stream starts has a status of 400 or more";
    ERROR_BODY = "error-body", "2", Error, "a refusal carries `{\"error\": {code, message, source, details}}`";
    ERROR_BODY_FORM = "error-body-form", "2", Warning, "a refusal has the protocol's own form, not another that readers accept";
    BAD_REQUEST = "bad-request", "2", Error, "an invalid request is refused";
    NO_TOKEN = "no-token", "2", Error, "a server that requires a token refuses a wrong one with 401 or 403";
    CHALLENGE = "challenge", "2", Warning, "a 401 names the scheme in `WWW-Authenticate`";
    PLAN_PATH = "plan-path", "2", Warning, "`/chat/plan` answers, and does so in plan mode";
    SAME_OBJECT = "same-object", "1", Error, "the stream, folded to its end, is the response object";
    UNREADABLE = "unreadable", "2", Error, "an answer can be read to its end";

    // 4: the response object
    NOT_AN_ANSWER = "not-an-answer", "4", Error, "a JSON answer is a response object";
    RESPONSE_MEMBER = "response-member", "4", Error, "a response has its id, model, mode, created, status, documents, usage and metadata";
    RESPONSE_TYPE = "response-type", "4", Error, "a member of the response has its type";
    RESPONSE_ID = "response-id", "4", Warning, "ids of responses begin with `chat_`, of conversations with `conv_`";
    CREATED = "created", "4", Warning, "`created` is ISO 8601 in UTC, with a Z";
    STATUS_WORD = "status", "4", Error, "`status` is completed, streaming or error, and a response that has ended does not stream";
    FINISH_REASON = "finish-reason", "4", Warning, "`finishReason` is one of the protocol's words and goes with the status";
    USAGE = "usage", "4", Error, "`usage` has whole numbers for promptTokens and completionTokens";
    USAGE_TOTAL = "usage-total", "4", Warning, "`totalTokens` is there and is the sum of the other two";
    TOOL_CALL_COUNT = "tool-call-count", "4", Warning, "`toolCallCount` counts the documents of type tool_call";

    // 5: documents
    ID_FORM = "id-form", "5.1", Error, "an id is text of 1 to 256 bytes, all of it visible";
    DUPLICATE_ID = "duplicate-id", "5.1", Error, "an id is unique inside of the response";
    UNKNOWN_TYPE = "unknown-type", "5.1", Warning, "a document's type is one of the ten";
    SEQUENCE = "sequence", "5.1", Error, "`sequence` counts from 1 without gaps, in the order of the starts";
    SEQUENCE_MISSING = "sequence-missing", "5.1", Warning, "every document has a `sequence`";
    SEQUENCE_MIXED = "sequence-mixed", "5.1", Error, "either every document has a `sequence` or none has";
    CONTENT = "content", "5.1", Error, "`content` is a text, or null where the type has none";
    METADATA = "metadata", "5.1", Error, "`metadata` is an object";
    FLAT = "flat-members", "5.2", Warning, "members of a type are in `metadata`, not beside it";
    ALIAS = "alias", "5.2", Warning, "a member goes by its own name, not by another that readers accept";
    MEMBER_MISSING = "member-missing", "5", Error, "a document has what its type requires";
    MEMBER_LEFT_OUT = "member-left-out", "5", Warning, "a strict writer leaves no member to the readers' defaults";
    UNTIMED = "untimed", "5", Info, "an action that took time has its `duration_ms`";
    MEMBER_TYPE = "member-type", "5", Error, "a member has its type";
    MEMBER_WORD = "member-word", "5", Error, "where the protocol lists the words, a member is one of them";
    EMPTY_TEXT = "empty-text", "7.1", Warning, "a text without visible characters is not sent";
    LINES = "lines", "5.4", Error, "lines count from 1, and the last is not before the first";
    PATH = "path", "5.4", Warning, "a `filePath` is relative to the workspace and divided by `/`";
    DIFF = "diff", "5.6", Error, "an edit has a `diff`, nothing else has one";
    DIFF_LINES = "diff-lines", "5.6", Error, "a diff's lines are those of `oldString` before the edit; an insertion ends a line before it starts";
    EDIT_CONTENT = "edit-content", "5.6", Warning, "an edit's content is the new text, null for delete and rename";
    RENAME_TARGET = "rename-target", "5.6", Warning, "a rename names the new path in `newFilePath`";
    HUNK = "hunk", "5.6", Warning, "a hunk's index is between 1 and its count";
    FAILED_EDIT = "failed-edit", "5.6", Warning, "an edit that failed is followed by an `error` document";
    NO_RESULT = "no-result", "5.7", Error, "a tool call that has ended has a result";
    RESULT_FORM = "result-form", "5.7.1", Warning, "a result is `{status, data}`, with status success or error";
    EDIT_AS_CALL = "edit-as-call", "7.2", Warning, "tools that edit, run, plan or keep todos are documents of their own type";
    EXIT_CODE = "exit-code", "5.8", Error, "a command that completed has an exit code, one that did not has a `state`";
    TODO_IDS = "todo-ids", "5.9", Error, "the ids of todos are unique in their plan";
    TODO_SLUG = "todo-slug", "5.9", Warning, "a todo's id is a slug in kebab-case";
    DEPENDENCIES = "dependencies", "5.9", Warning, "todos depend on todos of the plan, and never in a circle";
    QUESTIONS = "questions", "5.10", Error, "a clarification has at least one question, each with a unique id";
    OPTIONS = "options", "5.10", Warning, "options are objects with `id` and `label`";
    ANSWERS = "answers", "9.2", Warning, "answers are to questions that were asked, and choose options that were offered";
    APPROVAL = "approval", "9.3", Error, "an approval shows what it is about in `subject`, without id and sequence, and offers allow and reject";
    ERROR_CODE_FORM = "error-code-form", "5.11", Error, "an `errorCode` is UPPER_SNAKE";
    ERROR_CODE = "error-code", "11", Info, "an `errorCode` is from the writers' list";
    LIMITS = "limits", "6.1", Error, "an answer stays within 50,000 documents of 64 MiB each";

    // 6.1: framing
    UTF8 = "utf-8", "6.1", Error, "a stream is UTF-8";
    BOM = "bom", "6.1", Error, "a byte order mark appears only at the very start";
    LINE_LIMIT = "line-limit", "6.1", Error, "no line is longer than 16 MiB, and no event";
    FIELD = "field", "6.1", Warning, "the fields of an event are `data`, `event`, `id` and `retry`";
    NO_DATA = "no-data", "6.1", Error, "an event has a data line, or it is never dispatched";
    UNENDED = "unended-event", "6.1", Error, "a blank line ends every event, the last one too";
    EVENT_ID = "event-id", "6.1", Error, "`id:` lines are whole numbers that grow";
    SILENCE = "silence", "6.1", Warning, "a writer that is silent sends `: ping` every 15 s";

    // 6.2 to 6.4: dialects
    BAD_JSON = "bad-json", "6.4", Error, "data is JSON, or `[DONE]`";
    NOT_AN_OBJECT = "not-an-object", "6.4", Error, "data is a JSON object";
    DUPLICATE_MEMBER = "duplicate-member", "6.4", Warning, "an object names a member once";
    FOREIGN = "foreign-protocol", "12", Error, "the server speaks the documents protocol";
    NAMELESS = "nameless-event", "6.4", Error, "an event has a name";
    TWO_NAMES = "two-names", "6.4", Error, "an event's field and its `type` do not name two events";
    MIXED_DIALECTS = "mixed-dialects", "6.4", Error, "a stream keeps to one dialect";
    ENVELOPE = "envelope", "6.4", Error, "the members of an event are not wrapped in `data`";
    DOCUMENT_MEMBER = "document-member", "6.3", Error, "dialect B wraps the new document in `document`, dialect A does not";
    DIALECT_WISH = "dialect-wish", "3", Info, "the dialect is the one that `streamOptions` asked for";
    DONE_MARKER = "done-marker", "6.3", Error, "`[DONE]` ends dialect B, after `done`; dialect A has none";

    // 6.5: events
    UNKNOWN_EVENT = "unknown-event", "6.5", Info, "readers ignore an event that the protocol does not know";
    ERROR_EVENT = "error-event", "6.5", Error, "a failure is an `error` document and a `done`, not an `error` event";
    EVENT_MEMBER = "event-member", "6.5", Error, "an event has its members, each of its type";
    NO_START = "no-response-start", "6.5", Info, "`response_start` identifies the answer";
    LATE_START = "late-response-start", "6.5", Error, "`response_start` comes first, and once";
    START_MEMBER = "start-member", "6.5", Warning, "`response_start` has id, conversationId, model, mode, created and the status streaming";
    ARGUMENTS_ONCE = "arguments-once", "6.5", Warning, "a call's arguments and result are sent once, whole";
    USER_MESSAGE = "user-message", "6.5", Warning, "the user's message is not sent back";
    FINAL_CONTENT = "final-content", "6.5", Warning, "`finalContent` equals the joined deltas";
    END_METADATA = "end-metadata", "6.7", Warning, "the metadata of `document_end` is complete";
    APPEND = "append", "6.5", Error, "`append` adds text to members that are text";

    // 6.6: order
    UNKNOWN_DOCUMENT = "unknown-document", "6.6", Error, "an event is about a document that was started";
    AFTER_END = "after-end", "6.6", Error, "nothing but `document_update` comes for a document that has ended";
    UPDATE_EARLY = "update-early", "6.5", Warning, "`document_update` is for documents that have ended";
    TOOL_ORDER = "tool-order", "6.6", Error, "a call's events are start, arguments, result, in this order";
    TOOL_EVENT = "tool-event", "6.6", Warning, "events of calls are about documents of type tool_call";
    TEXTS_OVERLAP = "texts-overlap", "6.6", Warning, "texts are not open at the same time";
    OPEN_AT_DONE = "open-at-done", "6.6", Error, "every document ends before `done`";
    NO_DONE = "no-done", "6.6", Error, "a stream has a `done`";
    AFTER_DONE = "after-done", "6.6", Error, "nothing comes after `done` but `[DONE]`";

    // 8, 9: modes and interaction
    MODE = "mode", "8", Error, "plan and ask mode change nothing, and ask mode plans nothing";
    AWAITS = "awaits", "9.1", Warning, "a response awaits input exactly if its last document asks for it";
    LIVE_INPUT = "live-input", "9.2", Error, "a server that offers `live_input` accepts an answer with 202 and continues";
    CANCEL = "cancel", "9.4", Error, "a server that offers `cancel` accepts it any number of times, and the stream ends with a completed `done`";
    COME_BACK = "come-back", "9.5", Error, "a client that returns with `Last-Event-ID` gets the later events, in order and once";
    FACADE = "openai-facade", "12", Warning, "`/v1` answers as OpenAI's clients expect";
    CANCELLED = "cancelled", "9.4", Warning, "a stopped response is completed and cancelled, and its documents say so";
    ERROR_END = "error-end", "10", Warning, "a response with the status error has an `error` document";
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn ids_are_unique_and_kebab_case_and_texts_are_sentences() {
        let ids: BTreeSet<_> = RULES.iter().map(|it| it.id).collect();
        assert_eq!(ids.len(), RULES.len());
        for rule in RULES {
            let is_kebab = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
            assert!(rule.id.chars().all(is_kebab), "{}", rule.id);
            assert!(!rule.text.is_empty() && !rule.text.ends_with('.'), "{}", rule.id);
            assert!(rule.section.starts_with(|c: char| c.is_ascii_digit()), "{}", rule.id);
        }
    }
}
