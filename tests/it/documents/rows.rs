//! The tables of documents.md 4 and 5: what a reader does where a member is absent or comes in another form.
//!
//! `ROWS` is transcribed from the tables; each row has one named test, and a test counts them.

use std::collections::BTreeSet;

use pretty_assertions::assert_eq;
use serde_json::{Value, json};
use sheaf::protocol::{
    Applied, CommandState, FinishReason, Kind, Mode, Operation, Outcome, Permission, Purpose, QuestionKind, Status,
    TextFormat, TodoStatus, View,
    document::{Clarification, CodeBlock, CodeReference, Error, FileEdit, Plan, TerminalCommand, TodoUpdate, ToolCall},
};

use super::{Document, Read, answer, body, data, document, identity};

/// Section and member of every row that says what a reader does.
const ROWS: &[(&str, &str)] = &[
    ("4", "id"),
    ("4", "conversationId"),
    ("4", "model"),
    ("4", "mode"),
    ("4", "created"),
    ("4", "status"),
    ("4", "documents"),
    ("4", "usage.promptTokens usage.completionTokens"),
    ("4", "usage.totalTokens"),
    ("4", "metadata.duration_ms"),
    ("4", "metadata.toolCallCount"),
    ("4", "metadata.turnCount"),
    ("4", "metadata.finishReason"),
    ("5.1", "id"),
    ("5.1", "type"),
    ("5.1", "sequence"),
    ("5.1", "content"),
    ("5.1", "metadata"),
    ("5.2", "flat members"),
    ("5.2", "explicit metadata wins"),
    ("5.2", "durationMs"),
    ("5.2", "path file target_file"),
    ("5.2", "call_id callId"),
    ("5.2", "name"),
    ("5.2", "exit_code"),
    ("5.2", "cwd"),
    ("5.2", "code"),
    ("5.2", "old_string new_string"),
    ("5.2", "plan"),
    ("5.2", "prompt question"),
    ("5.2", "unknown members"),
    ("5.3", "format"),
    ("5.4", "filePath"),
    ("5.4", "startLine endLine"),
    ("5.4", "language"),
    ("5.5", "language"),
    ("5.5", "purpose"),
    ("5.6", "filePath"),
    ("5.6", "operation"),
    ("5.6", "language"),
    ("5.6", "diff"),
    ("5.6", "diff.oldString diff.newString"),
    ("5.6", "diff.startLine diff.endLine"),
    ("5.6", "newFilePath"),
    ("5.6", "toolCallId toolName"),
    ("5.6", "applied"),
    ("5.6", "hunk"),
    ("5.7", "toolName"),
    ("5.7", "toolCallId"),
    ("5.7", "arguments"),
    ("5.7", "result"),
    ("5.7", "duration_ms"),
    ("5.7", "truncated"),
    ("5.7.1", "string number array null"),
    ("5.7.1", "status"),
    ("5.7.1", "error"),
    ("5.7.1", "any other object"),
    ("5.7.1", "no result"),
    ("5.8", "command"),
    ("5.8", "workingDirectory"),
    ("5.8", "exitCode"),
    ("5.8", "output"),
    ("5.8", "duration_ms"),
    ("5.8", "permissions"),
    ("5.8", "toolCallId"),
    ("5.8", "state"),
    ("5.8", "truncated"),
    ("5.9", "title"),
    ("5.9", "overview"),
    ("5.9", "todos"),
    ("5.9", "todos[].id"),
    ("5.9", "todos[].content"),
    ("5.9", "todos[].status"),
    ("5.9", "todos[].dependencies"),
    ("5.9", "format"),
    ("5.10", "questions"),
    ("5.10", "questions[].id"),
    ("5.10", "questions[].text"),
    ("5.10", "questions[].options"),
    ("5.10", "questions[].allowMultiple"),
    ("5.10", "questions[].allowFreeText"),
    ("5.10", "options[].description"),
    ("5.10", "kind"),
    ("5.10", "outcome"),
    ("5.10", "answers"),
    ("5.11", "errorCode"),
    ("5.11", "source"),
    ("5.11", "details"),
    ("5.12", "todos"),
    ("5.12", "todos[].content todos[].dependencies"),
    ("5.12", "merge"),
];

macro_rules! rows {
    ($($section:literal $member:literal $name:ident $test:block)*) => {
        const TESTED: &[(&str, &str)] = &[$(($section, $member)),*];
        $(#[test] fn $name() $test)*
    };
}

#[test]
fn every_row_of_the_tables_has_its_test() {
    let rows: BTreeSet<_> = ROWS.iter().collect();
    let tested: BTreeSet<_> = TESTED.iter().collect();
    assert_eq!(rows, tested);
    assert_eq!(
        (ROWS.len(), TESTED.len()),
        (rows.len(), rows.len()),
        "a row comes twice"
    );
    assert_eq!(ROWS.len(), 91);
}

/// The answer without documents that says only this.
fn bare(member: &str, value: Value) -> Read {
    body(&json!({ "documents": [], member: value }))
}

fn whole(read: &Read) -> Value {
    answer(&read.response, &identity())
}

/// A document of a kind with these flat members.
fn flat(kind: &str, mut members: Value) -> Document {
    members["id"] = "d".into();
    members["type"] = kind.into();
    document(members)
}

macro_rules! views {
    ($($name:ident $variant:ident $view:ident;)*) => {$(
        #[track_caller]
        fn $name(document: &Document) -> $view<'_> {
            match document.view() {
                View::$variant(it) => it,
                other => panic!("{other:?}"),
            }
        }
    )*};
}

views! {
    reference CodeReference CodeReference;
    block CodeBlock CodeBlock;
    edit FileEdit FileEdit;
    call ToolCall ToolCall;
    command TerminalCommand TerminalCommand;
    plan Plan Plan;
    question Clarification Clarification;
    error Error Error;
    update TodoUpdate TodoUpdate;
}

rows! {
    "4" "id" an_answer_without_an_id_gets_a_local_one {
        assert_eq!(whole(&bare("x", json!(1)))["id"], "chat_local_1");
        assert_eq!(whole(&bare("id", json!("chat_9")))["id"], "chat_9");
        assert_eq!(whole(&bare("id", json!(9)))["id"], "9");
    }
    "4" "conversationId" a_missing_conversation_is_not_made_up {
        assert_eq!(bare("x", json!(1)).response.origin.conversation_id, None);
        let named = bare("conversationId", json!("conv_1")).response.origin.conversation_id;
        assert_eq!(named, Some("conv_1".into()));
    }
    "4" "model" a_missing_model_is_the_one_asked_for {
        assert_eq!(bare("x", json!(1)).response.model.as_deref(), Some("asked"));
        assert_eq!(bare("model", json!("paper-1")).response.model.as_deref(), Some("paper-1"));
    }
    "4" "mode" a_missing_mode_is_the_one_asked_for {
        assert_eq!(bare("x", json!(1)).response.mode, Some(Mode::Ask));
        assert_eq!(bare("mode", json!("debug")).response.mode, Some(Mode::Debug));
        let unknown = bare("mode", json!("dream"));
        assert_eq!(unknown.response.mode, Some(Mode::Ask));
        assert_eq!(unknown.codes(), ["unknown-mode"]);
    }
    "4" "created" a_missing_time_is_the_receipt_and_every_form_is_read {
        assert_eq!(whole(&bare("x", json!(1)))["created"], "2001-09-09T01:46:40Z");
        for form in [json!("2026-05-04T12:20:30+02:00"), json!(1_777_890_030), json!(1_777_890_030_000_u64)] {
            assert_eq!(whole(&bare("created", form))["created"], "2026-05-04T10:20:30Z");
        }
        let odd = bare("created", json!("yesterday"));
        assert_eq!(whole(&odd)["created"], "2001-09-09T01:46:40Z");
        assert_eq!(odd.codes(), ["bad-time"]);
    }
    "4" "status" an_answer_without_a_status_is_completed {
        assert_eq!(bare("x", json!(1)).response.status(), Status::Completed);
        assert_eq!(bare("status", json!("error")).response.status(), Status::Error);
        assert_eq!(bare("status", json!("paused")).response.status(), Status::Other("paused".into()));
    }
    "4" "documents" an_answer_without_documents_has_none {
        assert_eq!(body(&json!({ "id": "chat_1", "status": "completed" })).documents(), json!([]));
        assert_eq!(body(&json!({ "id": "chat_1", "documents": null })).documents(), json!([]));
    }
    "4" "usage.promptTokens usage.completionTokens" unknown_usage_is_zero {
        let none = json!({ "promptTokens": 0, "completionTokens": 0, "totalTokens": 0 });
        assert_eq!(whole(&bare("x", json!(1)))["usage"], none);
        assert_eq!(whole(&bare("usage", json!({})))["usage"], none);
        assert_eq!(whole(&bare("usage", json!("many")))["usage"], none);
        let some = whole(&bare("usage", json!({ "promptTokens": "7", "completionTokens": 2.0, "cached": 5 })));
        assert_eq!(some["usage"], json!({ "promptTokens": 7, "completionTokens": 2, "totalTokens": 9, "cached": 5 }));
    }
    "4" "usage.totalTokens" a_missing_total_is_the_sum {
        let usage = json!({ "promptTokens": 7, "completionTokens": 2 });
        assert_eq!(bare("usage", usage).response.usage.total_tokens, 9);
        let said = json!({ "promptTokens": 7, "completionTokens": 2, "totalTokens": 12 });
        assert_eq!(bare("usage", said).response.usage.total_tokens, 12);
        let most = json!({ "promptTokens": u64::MAX, "completionTokens": u64::MAX });
        assert!(bare("usage", most).response.usage.total_tokens > 0);
    }
    "4" "metadata.duration_ms" the_duration_has_two_names {
        let duration = |metadata| whole(&bare("metadata", metadata))["metadata"]["duration_ms"].clone();
        assert_eq!(duration(json!({ "duration_ms": 5 })), 5);
        assert_eq!(duration(json!({ "durationMs": 5 })), 5);
        assert_eq!(duration(json!({})), 0);
    }
    "4" "metadata.toolCallCount" missing_tool_calls_are_counted_and_edits_and_commands_are_not_among_them {
        let documents = json!([
            { "id": "a", "type": "tool_call" }, { "id": "b", "type": "file_edit" }, { "id": "c", "type": "tool_call" },
            { "id": "d", "type": "terminal_command" },
        ]);
        assert_eq!(whole(&body(&json!({ "documents": documents })))["metadata"]["toolCallCount"], 2);
        let said = json!({ "documents": documents, "metadata": { "toolCallCount": 7 } });
        assert_eq!(whole(&body(&said))["metadata"]["toolCallCount"], 7);
    }
    "4" "metadata.turnCount" a_missing_count_of_turns_is_one {
        assert_eq!(whole(&bare("x", json!(1)))["metadata"]["turnCount"], 1);
        assert_eq!(whole(&bare("metadata", json!({ "turnCount": 3 })))["metadata"]["turnCount"], 3);
    }
    "4" "metadata.finishReason" a_missing_reason_is_stop {
        let reason = |read: Read| read.response.ending.expect("it ended").finish_reason;
        assert_eq!(reason(bare("x", json!(1))), FinishReason::Stop);
        assert_eq!(reason(bare("metadata", json!({ "finishReason": "length" }))), FinishReason::Length);
        assert_eq!(reason(bare("status", json!("error"))), FinishReason::Error);
    }
    "5.1" "id" ids_are_unique_in_a_response_and_a_missing_one_is_made {
        let read = body(&json!({ "documents": [
            { "id": "a", "type": "text", "content": "1" }, { "id": "a", "type": "text", "content": "2" },
            { "type": "text", "content": "3" }, { "id": 7, "type": "text", "content": "4" },
        ]}));
        let ids: Vec<_> = read.response.documents.iter().map(|it| it.id.as_str()).collect();
        assert_eq!(ids, ["a", "a#2", "doc_003", "7"]);
        assert_eq!(read.codes(), ["duplicate-id", "missing-id"]);
    }
    "5.1" "type" an_unknown_type_is_kept_whole {
        let sent = json!({ "id": "d", "type": "chart", "content": "c", "points": [1, null], "metadata": { "x": { "y": null } } });
        let it = document(sent);
        assert_eq!(it.kind, Kind::Other("chart".into()));
        let View::Unknown(view) = it.view() else { panic!("{it:?}") };
        assert_eq!((view.kind, view.content), ("chart", Some("c")));
        assert_eq!(json!(view.metadata), json!({ "points": [1, null], "x": { "y": null } }));
    }
    "5.1" "sequence" documents_are_sorted_only_if_every_one_has_a_sequence {
        let order = |sequences: [Value; 3]| {
            let documents: Vec<_> = ["a", "b", "c"].iter().zip(sequences)
                .map(|(id, sequence)| json!({ "id": id, "type": "text", "sequence": sequence })).collect();
            let starts = documents.iter().map(|it| json!({ "type": "document_start", "document": it }));
            let of_stream: Vec<_> = data(starts.collect::<Vec<_>>()).response.documents;
            let of_body = body(&json!({ "documents": documents })).response.documents;
            let ids = |list: &[Document]| list.iter().map(|it| it.id.to_string()).collect::<String>();
            assert_eq!(ids(&of_stream), ids(&of_body));
            ids(&of_body)
        };
        assert_eq!(order([json!(3), json!(1), json!(2)]), "bca");
        assert_eq!(order([json!("30"), json!(10), json!(20)]), "bca");
        assert_eq!(order([json!(3), json!(null), json!(1)]), "abc");
        assert_eq!(order([json!(3), json!(0), json!(1)]), "abc");
        assert_eq!(order([json!(2), json!(1), json!("x")]), "abc");
        assert_eq!(order([json!(2), json!(2), json!(1)]), "cab");
    }
    "5.1" "content" content_may_be_null_and_odd_content_becomes_text {
        for kind in ["tool_call", "terminal_command", "todo_update"] {
            assert_eq!(flat(kind, json!({})).content, None, "{kind}");
            assert_eq!(flat(kind, json!({ "content": "" })).content, None, "{kind}");
        }
        assert_eq!(flat("text", json!({})).text(), "");
        assert_eq!(flat("text", json!({ "content": 42 })).text(), "42");
        let parts = json!([{ "type": "text", "text": "a" }, { "type": "text", "text": "b" }]);
        assert_eq!(flat("text", json!({ "content": parts })).text(), "ab");
    }
    "5.1" "metadata" metadata_that_is_missing_or_no_object_is_no_obstacle {
        assert_eq!(json!(flat("text", json!({ "metadata": null })).metadata), json!({ "format": "markdown" }));
        let text = flat("code_block", json!({ "metadata": "{\"language\":\"go\"}" }));
        assert_eq!(block(&text).language, "go");
        let list = flat("text", json!({ "metadata": [1] }));
        assert_eq!(list.metadata.get("metadata"), Some(&json!([1])));
    }
    "5.2" "flat members" flat_members_become_metadata {
        let it = flat("tool_call", json!({ "toolName": "grep", "arguments": { "pattern": "x" }, "result": "found" }));
        assert_eq!(json!(it.metadata), json!({
            "toolName": "grep", "arguments": { "pattern": "x" }, "toolCallId": "call_d",
            "result": { "status": "success", "data": "found" },
        }));
    }
    "5.2" "explicit metadata wins" explicit_metadata_wins_over_flat_members {
        let it = flat("code_block", json!({ "language": "c", "metadata": { "language": "go" } }));
        assert_eq!(block(&it).language, "go");
    }
    "5.2" "durationMs" duration_has_an_alias {
        assert_eq!(call(&flat("tool_call", json!({ "durationMs": 4 }))).duration_ms, Some(4));
        assert_eq!(command(&flat("terminal_command", json!({ "durationMs": "4" }))).duration_ms, Some(4));
    }
    "5.2" "path file target_file" paths_have_three_aliases {
        for alias in ["path", "file", "target_file"] {
            assert_eq!(edit(&flat("file_edit", json!({ alias: "src/a.rs" }))).file_path, "src/a.rs");
            assert_eq!(reference(&flat("code_reference", json!({ alias: "src/a.rs" }))).file_path, "src/a.rs");
        }
    }
    "5.2" "call_id callId" the_calls_id_has_two_aliases {
        for alias in ["call_id", "callId"] {
            assert_eq!(call(&flat("tool_call", json!({ alias: "c7" }))).tool_call_id, Some("c7"));
            assert_eq!(edit(&flat("file_edit", json!({ alias: "c7" }))).tool_call_id, Some("c7"));
        }
    }
    "5.2" "name" a_name_is_a_tools_or_a_plans_and_nobody_elses {
        assert_eq!(call(&flat("tool_call", json!({ "name": "grep" }))).tool_name, "grep");
        assert_eq!(plan(&flat("plan", json!({ "name": "Discounts" }))).title, "Discounts");
        assert_eq!(flat("text", json!({ "name": "kept" })).metadata.get("name"), Some(&json!("kept")));
        let both = flat("tool_call", json!({ "name": "kept", "toolName": "grep" }));
        assert_eq!((call(&both).tool_name, both.metadata.get("name")), ("grep", Some(&json!("kept"))));
    }
    "5.2" "exit_code" the_exit_code_has_an_alias {
        assert_eq!(command(&flat("terminal_command", json!({ "exit_code": 3 }))).exit_code, Some(3));
    }
    "5.2" "code" an_errors_code_has_an_alias {
        let it = flat("error", json!({ "code": "TOOL_FAILED" }));
        assert_eq!(it.metadata.get("errorCode"), Some(&json!("TOOL_FAILED")));
        assert_eq!(flat("text", json!({ "code": "kept" })).metadata.get("code"), Some(&json!("kept")));
    }
    "5.2" "cwd" the_working_directory_has_an_alias {
        assert_eq!(command(&flat("terminal_command", json!({ "cwd": "/tmp" }))).working_directory, Some("/tmp"));
    }
    "5.2" "old_string new_string" old_and_new_strings_make_a_diff_wherever_they_stand {
        for members in [
            json!({ "old_string": "a", "new_string": "b" }),
            json!({ "oldString": "a", "newString": "b" }),
            json!({ "diff": { "old_string": "a", "new_string": "b" } }),
            json!({ "diff": null, "old_string": "a", "new_string": "b" }),
        ] {
            let it = flat("file_edit", members);
            assert_eq!(it.metadata.get("diff"), Some(&json!({ "oldString": "a", "newString": "b" })));
            assert_eq!(edit(&it).operation, Operation::Edit);
        }
    }
    "5.2" "plan" a_plans_text_may_be_called_plan {
        assert_eq!(flat("plan", json!({ "plan": "# P" })).text(), "# P");
        assert_eq!(flat("plan", json!({ "metadata": { "plan": "# P" } })).text(), "# P");
        assert_eq!(flat("plan", json!({ "plan": "# P", "content": "# C" })).text(), "# C");
    }
    "5.2" "prompt question" a_questions_text_has_two_aliases {
        for alias in ["prompt", "question"] {
            let it = flat("clarification", json!({ "questions": [{ "id": "q", alias: "Why?" }] }));
            assert_eq!(question(&it).questions[0].text, "Why?");
        }
    }
    "5.2" "unknown members" unknown_members_stay_as_they_are {
        let odd = json!({ "deep": [{ "null": null }], "ünï": "✓", "empty": {} });
        for kind in Kind::KNOWN.iter().chain(&["chart"]) {
            let it = flat(kind, json!({ "x_vendor": odd }));
            assert_eq!(it.metadata.get("x_vendor"), Some(&odd), "{kind}");
            assert_eq!(it.to_json(1)["metadata"]["x_vendor"], odd, "{kind}");
        }
    }
    "5.3" "format" text_is_markdown {
        let format = |members| match flat("text", members).view() {
            View::Text(it) => it.format,
            other => panic!("{other:?}"),
        };
        assert_eq!(format(json!({})), TextFormat::Markdown);
        assert_eq!(format(json!({ "format": "plain" })), TextFormat::Plain);
        assert_eq!(format(json!({ "format": "rst" })), TextFormat::Other("rst".into()));
        assert_eq!(flat("text", json!({})).metadata.get("format"), Some(&json!("markdown")));
    }
    "5.4" "filePath" a_citation_without_a_path_is_shown_without_one {
        assert_eq!(reference(&flat("code_reference", json!({}))).file_path, "");
    }
    "5.4" "startLine endLine" lines_are_clamped_and_swapped {
        let lines = |start: Value, end: Value| {
            let it = flat("code_reference", json!({ "startLine": start, "endLine": end }));
            let (first, last) = (reference(&it).start_line, reference(&it).end_line);
            assert_eq!(json!([it.metadata["startLine"], it.metadata["endLine"]]), json!([first, last]));
            (first, last)
        };
        assert_eq!(lines(json!(3), json!(9)), (3, 9));
        assert_eq!(lines(json!(9), json!(3)), (3, 9));
        assert_eq!(lines(json!(0), json!(-4)), (1, 1));
        assert_eq!(lines(json!("3"), json!(9.0)), (3, 9));
        assert_eq!(lines(json!(5), json!(null)), (5, 5));
        assert_eq!(lines(json!(null), json!([])), (1, 1));
    }
    "5.4" "language" a_citations_language_follows_from_its_path {
        let language = |members| reference(&flat("code_reference", members)).language.to_owned();
        assert_eq!(language(json!({ "filePath": "src/a.rs" })), "rust");
        assert_eq!(language(json!({ "filePath": "a.py", "language": "cython" })), "cython");
        assert_eq!(language(json!({ "filePath": "LICENSE" })), "");
        assert_eq!(flat("code_reference", json!({ "filePath": "a.ts" })).metadata["language"], "typescript");
    }
    "5.5" "language" a_block_without_a_language_is_plain {
        assert_eq!(block(&flat("code_block", json!({}))).language, "");
    }
    "5.5" "purpose" a_block_without_a_purpose_is_new_code {
        assert_eq!(block(&flat("code_block", json!({}))).purpose, Purpose::NewCode);
        assert_eq!(block(&flat("code_block", json!({ "purpose": "example" }))).purpose, Purpose::Example);
        assert_eq!(flat("code_block", json!({})).metadata["purpose"], "new_code");
    }
    "5.6" "filePath" an_edit_without_a_path_is_shown_without_one {
        assert_eq!(edit(&flat("file_edit", json!({}))).file_path, "");
    }
    "5.6" "operation" an_edit_that_does_not_say_what_it_does_edits_if_it_has_a_diff {
        let operation = |members| edit(&flat("file_edit", members)).operation;
        assert_eq!(operation(json!({})), Operation::Create);
        assert_eq!(operation(json!({ "diff": {} })), Operation::Edit);
        assert_eq!(operation(json!({ "operation": "rename" })), Operation::Rename);
        assert_eq!(operation(json!({ "operation": "chmod" })), Operation::Other("chmod".into()));
    }
    "5.6" "language" an_edits_language_follows_from_its_path {
        assert_eq!(edit(&flat("file_edit", json!({ "filePath": "Makefile" }))).language, "makefile");
        assert_eq!(flat("file_edit", json!({ "filePath": "a/b.kt" })).metadata["language"], "kotlin");
    }
    "5.6" "diff" no_diff_and_null_are_the_same_and_the_writer_says_null {
        let (absent, null) = (flat("file_edit", json!({})), flat("file_edit", json!({ "diff": null })));
        assert_eq!(edit(&absent).diff, None);
        assert_eq!(absent, null);
        assert_eq!(absent.to_json(1)["metadata"].get("diff"), Some(&Value::Null));
        assert_eq!(null.to_json(1), absent.to_json(1));
    }
    "5.6" "diff.oldString diff.newString" a_half_of_a_diff_that_is_missing_is_empty {
        let it = flat("file_edit", json!({ "diff": { "newString": "b" } }));
        let diff = edit(&it).diff.expect("a diff");
        assert_eq!((diff.old, diff.new), ("", "b"));
    }
    "5.6" "diff.startLine diff.endLine" an_insertion_ends_before_it_starts {
        let it = flat("file_edit", json!({ "diff": { "oldString": "", "newString": "b", "startLine": 4, "endLine": "3" } }));
        let diff = edit(&it).diff.expect("a diff");
        assert_eq!((diff.start_line, diff.end_line), (Some(4), Some(3)));
        let loose = flat("file_edit", json!({ "oldString": "a", "newString": "b", "startLine": 4, "endLine": 4 }));
        assert_eq!(edit(&loose).diff.expect("a diff").start_line, Some(4));
        assert_eq!(edit(&flat("file_edit", json!({ "diff": {} }))).diff.expect("a diff").start_line, None);
    }
    "5.6" "newFilePath" a_renaming_may_have_no_target {
        assert_eq!(edit(&flat("file_edit", json!({ "operation": "rename" }))).new_file_path, None);
        let it = flat("file_edit", json!({ "operation": "rename", "newFilePath": "b.rs" }));
        assert_eq!(edit(&it).new_file_path, Some("b.rs"));
    }
    "5.6" "toolCallId toolName" an_edit_may_name_its_call {
        let it = flat("file_edit", json!({ "toolCallId": 31, "toolName": "edit_file" }));
        assert_eq!((edit(&it).tool_call_id, edit(&it).tool_name), (Some("31"), Some("edit_file")));
        assert_eq!(edit(&flat("file_edit", json!({}))).tool_call_id, None);
    }
    "5.6" "applied" an_edit_that_does_not_say_was_applied {
        assert_eq!(edit(&flat("file_edit", json!({}))).applied, Applied::Applied);
        assert_eq!(edit(&flat("file_edit", json!({ "applied": "rejected" }))).applied, Applied::Rejected);
    }
    "5.6" "hunk" a_hunk_has_a_place_among_others {
        let it = flat("file_edit", json!({ "hunk": { "index": 2, "count": "3" } }));
        assert_eq!(edit(&it).hunk.map(|it| (it.index, it.count)), Some((2, 3)));
        assert_eq!(edit(&flat("file_edit", json!({ "hunk": { "index": 2 } }))).hunk, None);
        assert_eq!(edit(&flat("file_edit", json!({}))).hunk, None);
    }
    "5.7" "toolName" a_call_without_a_name_is_a_tool {
        assert_eq!(call(&flat("tool_call", json!({}))).tool_name, "tool");
    }
    "5.7" "toolCallId" a_calls_id_is_made_of_its_documents {
        assert_eq!(call(&flat("tool_call", json!({}))).tool_call_id, Some("call_d"));
        assert_eq!(call(&flat("tool_call", json!({ "toolCallId": "c" }))).tool_call_id, Some("c"));
    }
    "5.7" "arguments" arguments_in_a_string_are_parsed_or_kept_raw {
        let arguments = |value| json!(call(&flat("tool_call", json!({ "arguments": value }))).arguments);
        assert_eq!(arguments(json!({ "a": null })), json!({ "a": null }));
        assert_eq!(arguments(json!("{\"a\":1}")), json!({ "a": 1 }));
        assert_eq!(arguments(json!("{\"a\":")), json!({ "_raw": "{\"a\":" }));
        assert_eq!(arguments(json!("[1]")), json!({ "_raw": "[1]" }));
        assert_eq!(arguments(json!([1])), json!({ "_raw": "[1]" }));
        assert_eq!(arguments(json!(null)), json!({}));
        assert_eq!(arguments(json!("")), json!({}));
        assert_eq!(json!(call(&flat("tool_call", json!({}))).arguments), json!({}));
    }
    "5.7" "result" a_result_is_status_and_data {
        let it = flat("tool_call", json!({ "result": { "status": "error", "data": { "why": null } } }));
        let result = call(&it).result.expect("a result");
        assert_eq!((result.failed, result.data), (true, &json!({ "why": null })));
    }
    "5.7" "duration_ms" a_duration_may_be_missing_or_a_float {
        assert_eq!(call(&flat("tool_call", json!({}))).duration_ms, None);
        assert_eq!(call(&flat("tool_call", json!({ "duration_ms": 18.7 }))).duration_ms, Some(18));
    }
    "5.7" "truncated" a_call_is_whole_unless_it_says_so {
        assert!(!call(&flat("tool_call", json!({}))).truncated);
        assert!(call(&flat("tool_call", json!({ "truncated": "true" }))).truncated);
    }
    "5.7.1" "string number array null" bare_results_are_successes {
        for value in [json!("text"), json!(7), json!([1, null]), json!(true), json!(null)] {
            let it = flat("tool_call", json!({ "result": value }));
            assert_eq!(it.metadata["result"], json!({ "status": "success", "data": value }));
        }
    }
    "5.7.1" "status" a_result_with_a_status_stays_and_missing_data_is_null {
        let result = |value| flat("tool_call", json!({ "result": value })).metadata["result"].clone();
        assert_eq!(result(json!({ "status": "error", "data": 1, "x": 2 })), json!({ "status": "error", "data": 1, "x": 2 }));
        assert_eq!(result(json!({ "status": "success" })), json!({ "status": "success", "data": null }));
    }
    "5.7.1" "error" a_result_with_an_error_failed {
        let result = |value| flat("tool_call", json!({ "result": value })).metadata["result"].clone();
        assert_eq!(result(json!({ "error": "no file" })), json!({ "status": "error", "data": "no file" }));
        let object = json!({ "error": { "code": 2 } });
        assert_eq!(result(object), json!({ "status": "error", "data": { "code": 2 } }));
        let neither = json!({ "error": null, "lines": 3 });
        assert_eq!(result(neither.clone()), json!({ "status": "success", "data": neither }));
    }
    "5.7.1" "any other object" any_other_result_is_a_success {
        let it = flat("tool_call", json!({ "result": { "status": "fine", "n": 1 } }));
        assert_eq!(it.metadata["result"], json!({ "status": "success", "data": { "status": "fine", "n": 1 } }));
    }
    "5.7.1" "no result" a_call_without_a_result_is_shown_as_such_and_written_as_failed {
        let it = flat("tool_call", json!({ "toolName": "grep" }));
        assert_eq!(call(&it).result, None);
        assert_eq!(it.metadata.get("result"), None);
        let written = it.to_json(1);
        assert_eq!(written["metadata"]["result"], json!({ "status": "error", "data": "no result received" }));
        assert_eq!(call(&document(written)).result, None);
    }
    "5.8" "command" a_command_may_be_missing {
        assert_eq!(command(&flat("terminal_command", json!({}))).command, "");
    }
    "5.8" "workingDirectory" a_working_directory_is_optional {
        assert_eq!(command(&flat("terminal_command", json!({}))).working_directory, None);
        let it = flat("terminal_command", json!({ "workingDirectory": "/srv" }));
        assert_eq!(command(&it).working_directory, Some("/srv"));
    }
    "5.8" "exitCode" an_exit_code_may_be_null_or_missing {
        for members in [json!({}), json!({ "exitCode": null })] {
            let it = flat("terminal_command", members);
            assert_eq!(command(&it).exit_code, None);
            assert_eq!(it.to_json(1)["metadata"].get("exitCode"), Some(&Value::Null));
        }
        assert_eq!(command(&flat("terminal_command", json!({ "exitCode": "-9" }))).exit_code, Some(-9));
    }
    "5.8" "output" output_is_empty_where_there_is_none {
        assert_eq!(command(&flat("terminal_command", json!({}))).output, "");
        assert_eq!(flat("terminal_command", json!({})).metadata["output"], "");
        assert_eq!(command(&flat("terminal_command", json!({ "content": "printed" }))).output, "printed");
    }
    "5.8" "duration_ms" a_commands_duration_may_be_missing {
        assert_eq!(command(&flat("terminal_command", json!({}))).duration_ms, None);
    }
    "5.8" "permissions" no_permissions_mean_the_sandboxs_default {
        assert_eq!(command(&flat("terminal_command", json!({}))).permissions, []);
        assert_eq!(flat("terminal_command", json!({})).metadata["permissions"], json!([]));
        let it = flat("terminal_command", json!({ "permissions": ["network", "moon"] }));
        assert_eq!(command(&it).permissions, [Permission::Network, Permission::Other("moon".into())]);
        let one = flat("terminal_command", json!({ "permissions": "all" }));
        assert_eq!(command(&one).permissions, [Permission::All]);
    }
    "5.8" "toolCallId" a_command_may_name_its_call {
        let it = flat("terminal_command", json!({ "toolCallId": "c1" }));
        assert_eq!(command(&it).tool_call_id, Some("c1"));
    }
    "5.8" "state" a_command_with_an_exit_code_is_completed {
        let state = |members| command(&flat("terminal_command", members)).state;
        assert_eq!(state(json!({ "exitCode": 1 })), CommandState::Completed);
        assert_eq!(state(json!({})), CommandState::Completed);
        assert_eq!(state(json!({ "exitCode": null, "state": "background" })), CommandState::Background);
        assert_eq!(state(json!({ "state": "paused" })), CommandState::Other("paused".into()));
        assert_eq!(state(json!({ "incomplete": true })), CommandState::Cancelled);
    }
    "5.8" "truncated" output_is_whole_unless_it_says_so {
        assert!(!command(&flat("terminal_command", json!({}))).truncated);
        assert!(command(&flat("terminal_command", json!({ "truncated": true }))).truncated);
    }
    "5.9" "title" a_plan_may_have_no_title {
        assert_eq!(plan(&flat("plan", json!({}))).title, "");
        assert_eq!(flat("plan", json!({})).metadata["title"], "");
    }
    "5.9" "overview" a_plans_overview_is_empty_where_there_is_none {
        assert_eq!(flat("plan", json!({ "title": "T" })).metadata["overview"], "");
    }
    "5.9" "todos" a_plan_may_have_no_todos {
        assert_eq!(plan(&flat("plan", json!({}))).todos, []);
        assert_eq!(flat("plan", json!({})).metadata["todos"], json!([]));
    }
    "5.9" "todos[].id" a_todo_without_an_id_gets_its_place {
        let it = flat("plan", json!({ "todos": [{ "content": "A" }, "B", { "id": 3, "content": "C" }] }));
        let ids: Vec<_> = plan(&it).todos.iter().map(|it| (it.id, it.content)).collect();
        assert_eq!(ids, [("todo-1", "A"), ("todo-2", "B"), ("3", "C")]);
    }
    "5.9" "todos[].content" a_todo_without_a_text_is_its_id {
        let it = flat("plan", json!({ "todos": [{ "id": "add-type" }] }));
        assert_eq!(plan(&it).todos[0].content, "add-type");
    }
    "5.9" "todos[].status" a_todo_without_a_status_is_pending {
        let it = flat("plan", json!({ "todos": [{ "id": "a" }, { "id": "b", "status": "someday" }] }));
        assert_eq!(plan(&it).todos[0].status, TodoStatus::Pending);
        assert_eq!(plan(&it).todos[1].status, TodoStatus::Other("someday".into()));
    }
    "5.9" "todos[].dependencies" unknown_and_circular_dependencies_are_ignored {
        let it = flat("plan", json!({ "todos": [
            { "id": "a" },
            { "id": "b", "dependencies": ["a", "nobody", "b"] },
            { "id": "c", "dependencies": ["d", "a"] },
            { "id": "d", "dependencies": ["c"] },
        ]}));
        assert_eq!(it.metadata["todos"][0]["dependencies"], json!([]));
        let view = plan(&it);
        let dependencies: Vec<_> = view.todos.iter().map(|it| it.dependencies.clone()).collect();
        assert_eq!(dependencies, [vec![], vec!["a"], vec!["a"], vec![]]);
        assert_eq!(it.metadata["todos"][1]["dependencies"], json!(["a", "nobody", "b"]));
        let read = body(&json!({ "documents": [it.to_json(1)] }));
        assert_eq!(read.codes(), ["bad-dependency"]);
    }
    "5.9" "format" a_plan_is_markdown {
        assert_eq!(flat("plan", json!({})).metadata["format"], "markdown");
    }
    "5.10" "questions" a_clarification_may_have_no_questions {
        assert_eq!(question(&flat("clarification", json!({}))).questions, []);
        let it = flat("clarification", json!({ "questions": ["Why?"] }));
        assert_eq!(question(&it).questions[0].text, "Why?");
    }
    "5.10" "questions[].id" a_question_without_an_id_gets_its_place {
        let it = flat("clarification", json!({ "questions": [{ "text": "A" }, { "id": 7, "text": "B" }] }));
        let ids: Vec<_> = question(&it).questions.iter().map(|it| it.id).collect();
        assert_eq!(ids, ["q1", "7"]);
    }
    "5.10" "questions[].text" a_question_may_have_no_text {
        let it = flat("clarification", json!({ "questions": [{ "id": "q" }] }));
        assert_eq!(question(&it).questions[0].text, "");
    }
    "5.10" "questions[].options" plain_options_are_their_own_ids_and_none_mean_free_text {
        let it = flat("clarification", json!({ "questions": [
            { "options": ["Yes", { "id": "no" }, { "label": "Later" }, { "id": 4, "label": "Four" }, 5] }, { "text": "Why?" },
        ]}));
        let view = question(&it);
        let options: Vec<_> = view.questions[0].options.iter().map(|it| (it.id, it.label)).collect();
        assert_eq!(options, [("Yes", "Yes"), ("no", "no"), ("Later", "Later"), ("4", "Four"), ("5", "5")]);
        assert_eq!(view.questions[1].options, []);
    }
    "5.10" "questions[].allowMultiple" one_option_may_be_chosen {
        let it = flat("clarification", json!({ "questions": [{}, { "allowMultiple": true }] }));
        let multiple: Vec<_> = question(&it).questions.iter().map(|it| it.allow_multiple).collect();
        assert_eq!(multiple, [false, true]);
    }
    "5.10" "questions[].allowFreeText" free_text_is_welcome {
        let it = flat("clarification", json!({ "questions": [{}, { "allowFreeText": false }] }));
        let free: Vec<_> = question(&it).questions.iter().map(|it| it.allow_free_text).collect();
        assert_eq!(free, [true, false]);
    }
    "5.10" "options[].description" an_option_may_describe_itself {
        let it = flat("clarification", json!({ "questions": [{ "options": [{ "id": "a", "description": "slow" }, "b"] }] }));
        let view = question(&it);
        assert_eq!(view.questions[0].options[0].description, Some("slow"));
        assert_eq!(view.questions[0].options[1].description, None);
    }
    "5.10" "kind" a_clarification_is_a_question {
        assert_eq!(question(&flat("clarification", json!({}))).kind, QuestionKind::Question);
        assert_eq!(question(&flat("clarification", json!({ "kind": "approval" }))).kind, QuestionKind::Approval);
    }
    "5.10" "outcome" a_clarification_without_an_outcome_waits {
        assert_eq!(question(&flat("clarification", json!({}))).outcome, None);
        let it = flat("clarification", json!({ "outcome": "skipped" }));
        assert_eq!(question(&it).outcome, Some(Outcome::Skipped));
    }
    "5.10" "answers" answers_are_read_and_odd_ones_left_out {
        let it = flat("clarification", json!({ "answers": [
            { "questionId": "q1", "selectedOptionIds": ["a"] }, 7, { "questionId": "q2", "freeText": "Redis" },
        ]}));
        let answers = question(&it).answers;
        assert_eq!(answers.len(), 2);
        assert_eq!(answers[0].selected_option_ids, ["a"]);
        assert_eq!(answers[1].free_text.as_deref(), Some("Redis"));
    }
    "5.11" "errorCode" any_error_code_is_accepted {
        assert_eq!(error(&flat("error", json!({ "errorCode": "odd code" }))).code, "odd code");
        assert_eq!(error(&flat("error", json!({}))).code, "INTERNAL");
    }
    "5.11" "source" an_error_without_a_source_is_the_gateways {
        assert_eq!(error(&flat("error", json!({}))).source, "gateway");
    }
    "5.11" "details" details_may_be_an_object {
        assert_eq!(error(&flat("error", json!({}))).details, "");
        let it = flat("error", json!({ "details": { "path": "a" } }));
        assert_eq!(error(&it).details, "{\n  \"path\": \"a\"\n}");
    }
    "5.12" "todos" an_update_may_be_empty {
        assert_eq!(update(&flat("todo_update", json!({}))).todos, []);
        assert_eq!(flat("todo_update", json!({})).metadata["todos"], json!([]));
    }
    "5.12" "todos[].content todos[].dependencies" an_update_leaves_what_it_does_not_say {
        let it = flat("todo_update", json!({ "todos": [
            { "id": "a", "status": "completed" }, { "id": "b", "content": "B", "dependencies": ["a"] },
        ]}));
        let view = update(&it);
        assert_eq!((view.todos[0].content, &view.todos[0].dependencies), (None, &None));
        assert_eq!((view.todos[1].content, &view.todos[1].status), (Some("B"), &None));
        assert_eq!(view.todos[1].dependencies, Some(vec!["a"]));
    }
    "5.12" "merge" an_update_merges_unless_it_replaces {
        assert!(update(&flat("todo_update", json!({}))).merge);
        assert!(!update(&flat("todo_update", json!({ "merge": false }))).merge);
    }
}
